"""Small streams for the checkers: one at least for every rule, and streams that break none.

Each vector is what the stream is, the stream, and what it breaks, in order: ``rule`` alone is an error, ``rule*`` a note.
"""

from __future__ import annotations

import json
from typing import Any

from tests.dialects import (
    lint_ag_ui,
    lint_ai_sdk,
    lint_bedrock,
    lint_cohere,
    lint_gemini,
    lint_interactions,
    lint_mistral,
    lint_responses,
)

Vector = tuple[str, bytes, str]


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# -- openai-chat -------------------------------------------------------------------------------------------------------

DONE = b"data: [DONE]\n\n"


def data(payload: Any) -> bytes:
    return b"data: " + (payload if isinstance(payload, bytes) else dumps(payload)) + b"\n\n"


def chunk(*choices: Any, **fields: Any) -> bytes:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": list(choices)}
    return data({**head, **fields})


def choice(delta: Any, finish: Any = None, index: Any = 0) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": finish}


def say(**delta: Any) -> bytes:
    return chunk(choice(delta))


def call(index: Any = 0, **fields: Any) -> bytes:
    return say(tool_calls=[{"index": index, **fields}])


def starts(index: int = 0, id: Any = "a", name: Any = "f", type: Any = "function") -> bytes:
    return call(index, id=id, type=type, function={"name": name, "arguments": ""})


ROLE = say(role="assistant", content="")
STOP = chunk(choice({}, "stop"))
CALLS = chunk(choice({}, "tool_calls"))
USAGE = chunk(usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
FAILED = data({"error": {"message": "no", "type": "server_error", "param": None, "code": None}})
MORE = {"function": {"arguments": "{}"}}

# fmt: off
CHAT: list[Vector] = [
    ("text", ROLE + say(content="a") + STOP + USAGE + DONE, ""),
    ("a comment, CRLF, no space", (b": hi\n\n" + ROLE + STOP + DONE).replace(b"\n", b"\r\n").replace(b": ", b":"), ""),
    ("two calls", ROLE + starts() + call(**MORE) + starts(1, "b") + call(1, **MORE) + CALLS + DONE, ""),
    ("calls that interleave", ROLE + starts() + starts(1, "b") + call(1, **MORE) + call(**MORE) + CALLS + DONE, ""),
    ("two choices", ROLE + chunk(choice({"role": "assistant"}, index=1)) + STOP + chunk(choice({}, "length", 1)) + DONE, ""),
    ("calls with one id in two choices",
     chunk(*(choice({"role": "assistant", "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}]}, "tool_calls", n) for n in (0, 1))) + DONE, ""),
    ("an error at once", FAILED, ""),
    ("an error later", ROLE + say(content="a") + FAILED + DONE, ""),
    ("a number that no double holds", ROLE + data(b'{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[],"x":1E400}') + STOP + DONE, ""),
    ("half a surrogate pair", ROLE + data(b'{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[],"x":"\\ud800"}') + STOP + DONE, ""),
    ("a byte that is no UTF-8", ROLE + data(b'{"x":"\xff"}') + STOP + DONE, "not_utf8"),
    ("half an object", ROLE + data(b'{"x":') + STOP + DONE, "not_json"),
    ("NaN", ROLE + data(b'{"x":NaN}') + STOP + DONE, "not_json"),
    ("nesting without end", ROLE + data(b'{"x":' + b"[" * 100_000) + STOP + DONE, "not_json"),
    ("a list", ROLE + data([]) + STOP + DONE, "not_object"),
    ("no finish reason", ROLE + say(content="a") + DONE, "truncated"),
    ("one of two choices finished", ROLE + chunk(choice({"role": "assistant"}, index=1)) + STOP + DONE, "truncated"),
    ("nothing but [DONE]", DONE, "truncated"),
    ("the last event cut off", ROLE + STOP[:-1], "unterminated done*"),
    ("[DONE] cut off", ROLE + STOP + DONE[:-1], "unterminated*"),
    ("empty data", ROLE + b"data:\n\n" + STOP + DONE, "empty_data"),
    ("another object", ROLE + chunk(choice({}, "stop"), object="chat.completion.done") + DONE, "object"),
    ("a blank object", chunk(object="") + ROLE + STOP + DONE, "object*"),
    ("another id", ROLE + chunk(choice({}, "stop"), id="c2") + DONE, "identity*"),
    ("another model, and back", ROLE + chunk(model="n") + STOP + DONE, "identity* identity*"),
    ("no id", ROLE + chunk(choice({}, "stop"), id=None) + DONE, "identity"),
    ("choices null", ROLE + data({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": None}) + STOP + DONE, "choices"),
    ("a choice without an index", ROLE + chunk({"delta": {}}) + STOP + DONE, "choices"),
    ("a choice of index true", ROLE + chunk(choice({}, index=True)) + STOP + DONE, "choices"),
    ("a choice that is no object", ROLE + chunk("stop") + STOP + DONE, "choices"),
    ("delta null", ROLE + chunk(choice(None, "stop")) + DONE, "delta"),
    ("content in parts", ROLE + say(content=[{"type": "text", "text": "a"}]) + STOP + DONE, "text"),
    ("a refusal that is a number", ROLE + say(refusal=1) + STOP + DONE, "text"),
    ("role on each chunk", ROLE + ROLE + STOP + DONE, "role*"),
    ("no role", say(content="a") + say(content="b") + STOP + DONE, "role*"),
    ("a finish reason that is a number", ROLE + chunk(choice({}, 1)) + STOP + DONE, "finish_reason"),
    ("a blank finish reason", ROLE + chunk(choice({}, "")) + STOP + DONE, "finish_reason"),
    ("two finish reasons", ROLE + STOP + CALLS + DONE, "after_finish* finish_reason"),
    ("one finish reason twice", ROLE + STOP + STOP + DONE, "after_finish* finish_reason*"),
    ("text after the end", ROLE + STOP + say(content="a") + DONE, "after_finish"),
    ("an empty delta after the end", ROLE + STOP + say(content="") + DONE, "after_finish*"),
    ("tool_calls that are no list", ROLE + say(tool_calls={}) + STOP + DONE, "tool_calls"),
    ("a call that is no object", ROLE + say(tool_calls=["f"]) + STOP + DONE, "tool_calls"),
    ("a function that is no object", ROLE + call(function="f") + STOP + DONE, "tool_calls"),
    ("a call without an index", ROLE + call(None, **MORE) + STOP + DONE, "call_index"),
    ("the first call has index 1", ROLE + starts(1) + CALLS + DONE, "call_index"),
    ("a gap", ROLE + starts() + starts(2, "b") + CALLS + DONE, "call_index"),
    ("call 1 before call 0", ROLE + starts(1) + starts(0, "b") + CALLS + DONE, "call_index call_index"),
    ("no id in the first fragment", ROLE + starts(id=None) + CALLS + DONE, "call_start"),
    ("a blank name", ROLE + starts(name=" ") + CALLS + DONE, "call_start"),
    ("a custom tool", ROLE + starts(type="custom") + CALLS + DONE, "call_start"),
    ("one id for two calls", ROLE + starts() + starts(1) + CALLS + DONE, "call_id"),
    ("null and blank identities later", ROLE + starts() + call(id=None, function={"name": "", "arguments": "{}"}) + CALLS + DONE, "call_repeat* call_repeat*"),
    ("the identity again", ROLE + starts() + call(id="a", function={"name": "f", "arguments": "{}"}) + CALLS + DONE, "call_repeat call_repeat"),
    ("another id for the same call", ROLE + starts() + call(id="b", **MORE) + CALLS + DONE, "call_repeat"),
    ("arguments that are an object", ROLE + starts() + call(function={"arguments": {}}) + CALLS + DONE, "arguments"),
    ("arguments null", ROLE + starts() + call(function={"arguments": None}) + CALLS + DONE, "arguments*"),
    ("usage beside the finish reason", ROLE + chunk(choice({}, "stop"), usage={"total_tokens": 2}) + DONE, "usage*"),
    ("usage that is a number", ROLE + STOP + chunk(usage=2) + DONE, "usage"),
    ("the usage chunk too early", ROLE + USAGE + STOP + DONE, "after_usage"),
    ("an error that is a text", ROLE + data({"error": "no"}), "error*"),
    ("an error event without error", ROLE + b'event: error\ndata: {"message":"no"}\n\n', "error"),
    ("an error that is no member", ROLE + data({"object": "error", "message": "no"}), "error"),
    ("text after an error", FAILED + ROLE + DONE, "after_error"),
    ("no [DONE]", ROLE + STOP, "done*"),
    ("[DONE] twice", ROLE + STOP + DONE + DONE, "after_done"),
    ("usage after [DONE]", ROLE + STOP + DONE + USAGE, "after_done"),
]
# fmt: on

# -- anthropic ---------------------------------------------------------------------------------------------------------


def event(type: str, **fields: Any) -> bytes:
    return b"event: %b\n" % type.encode() + data({"type": type, **fields})


def message(**fields: Any) -> bytes:
    head = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return event("message_start", message={**head, "usage": {"input_tokens": 1, "output_tokens": 1}, **fields})


def opens(index: Any = 0, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block or {"type": "text", "text": ""})


def adds(index: Any = 0, **delta: Any) -> bytes:
    return event("content_block_delta", index=index, delta=delta or {"type": "text_delta", "text": "a"})


def closes(index: Any = 0) -> bytes:
    return event("content_block_stop", index=index)


def text(index: int = 0) -> bytes:
    return opens(index) + adds(index) + closes(index)


def uses(*fragments: Any, index: int = 0, **block: Any) -> bytes:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {}, **block}
    pieces = (adds(index, type="input_json_delta", partial_json=fragment) for fragment in fragments)
    return opens(index, **start) + b"".join(pieces) + closes(index)


def thinks(*deltas: dict[str, Any]) -> bytes:
    return opens(type="thinking", thinking="", signature="") + b"".join(adds(**delta) for delta in deltas) + closes()


def stops(reason: Any = "end_turn", usage: Any = None) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": 2} if usage is None else usage)


START, END = message(), stops() + event("message_stop")
PING = event("ping")
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "no"})
THOUGHT = {"type": "thinking_delta", "thinking": "a"}
SIGNED = {"type": "signature_delta", "signature": "s"}

# fmt: off
ANTHROPIC: list[Vector] = [
    ("text and a call", START + text() + uses('{"a"', ":1}", index=1) + END, ""),
    ("pings everywhere", PING + START + PING + opens() + PING + adds() + closes() + PING + END, ""),
    ("a call without arguments", START + uses("") + uses(index=1, id="u") + END, ""),
    ("thinking, signed and not", START + thinks(THOUGHT, SIGNED) + opens(1, type="thinking", thinking="", signature="") + closes(1) + END, ""),
    ("a citation", START + opens() + adds() + adds(type="citations_delta", citation={"type": "x"}) + closes() + END, ""),
    ("a server tool's blocks",
     START + opens(type="server_tool_use", id="s", name="web_search", input={}) + adds(type="input_json_delta", partial_json="{")
     + closes() + opens(1, type="web_search_tool_result", content=[]) + closes(1) + END, ""),
    ("news of the API", START + event("news") + opens(type="novel") + adds(type="text_delta", text="a") + adds(type="novel_delta") + closes() + END, ""),
    ("two message_deltas", START + text() + stops(None) + END, ""),
    ("nothing said", START + END, ""),
    ("an error at once", OVERLOADED, ""),
    ("an error in a block", START + opens() + adds() + OVERLOADED, ""),
    ("a byte that is no UTF-8", START + b'event: ping\ndata: {"type":"\xff"}\n\n' + END, "not_utf8"),
    ("no JSON", START + b"event: ping\ndata: {\n\n" + END, "not_json"),
    ("no object", START + b'event: ping\ndata: "ping"\n\n' + END, "not_object"),
    ("cut in a block", START + opens() + adds(), "truncated"),
    ("cut before the stop reason", START + text(), "truncated"),
    ("nothing at all", PING, "truncated"),
    ("the last event cut off", (START + END)[:-1], "unterminated"),
    ("no event line", START + data({"type": "ping"}) + END, "event"),
    ("another event line", START + b"event: ping\n" + data({"type": "pong"}) + END, "event"),
    ("no type", START + data({"index": 0}) + END, "event"),
    ("a type that is a list", START + data({"type": []}) + END, "event"),
    ("no message_start", text() + END, "message_start"),
    ("message_start twice", START + START + END, "message_start"),
    ("no message", event("message_start") + END, "message"),
    ("a message without id", message(id="") + END, "message"),
    ("a message that has content", message(content=[{"type": "text", "text": "a"}]) + END, "message"),
    ("a message of the user", message(role="user") + END, "message"),
    ("no usage at the start", message(usage=None) + END, "usage"),
    ("no input_tokens", message(usage={"output_tokens": 1}) + END, "usage"),
    ("output_tokens null at the end", START + stops(usage={"output_tokens": None}) + event("message_stop"), "usage"),
    ("the first block has index 1", START + text(1) + END, "block_index"),
    ("an index twice", START + text() + text() + END, "block_index"),
    ("index true", START + text() + opens(True) + adds(True) + closes(True) + END, "block_index"),
    ("two blocks open", START + opens() + adds() + text(1) + END, "block_order"),
    ("a delta of a closed block", START + text() + adds() + END, "block_order"),
    ("a stop of another block", START + opens() + adds() + closes(1) + closes() + END, "block_order"),
    ("a stop of a closed block", START + text() + closes() + END, "block_order"),
    ("a block open at the end", START + opens() + adds() + END, "block_order"),
    ("no content_block", START + event("content_block_start", index=0) + closes() + END, "block"),
    ("a text block without text", START + opens(type="text") + adds() + closes() + END, "block"),
    ("a call without id", START + uses(id="") + END, "tool_use"),
    ("a call without name", START + uses(name=None) + END, "tool_use"),
    ("a call with input null", START + uses(input=None) + END, "tool_use"),
    ("a call with its input at the start", START + uses(input={"a": 1}) + END, "tool_use*"),
    ("one id for two calls", START + uses() + uses(index=1) + END, "tool_id"),
    ("arguments in a text block", START + opens() + adds() + adds(type="input_json_delta", partial_json="") + closes() + END, "delta"),
    ("text in a call", START + opens(type="tool_use", id="t", name="f", input={}) + adds() + closes() + END, "delta"),
    ("a delta in redacted thinking", START + opens(type="redacted_thinking", data="x") + adds(**THOUGHT) + closes() + END, "delta"),
    ("a delta that is null", START + opens() + event("content_block_delta", index=0, delta=None) + adds() + closes() + END, "delta"),
    ("a delta without its text", START + opens() + adds(type="text_delta") + adds() + closes() + END, "delta"),
    ("arguments that are an object", START + uses({"a": 1}) + END, "delta"),
    ("a citation that is text", START + opens() + adds() + adds(type="citations_delta", citation="x") + closes() + END, "delta"),
    ("a signature in two pieces", START + thinks(THOUGHT, SIGNED, SIGNED) + END, "signature"),
    ("thinking after its signature", START + thinks(SIGNED, THOUGHT) + END, "signature"),
    ("a text block without any text", START + opens() + adds(type="text_delta", text="") + closes() + END, "empty_text"),
    ("input cut off", START + uses('{"a":') + END, "input_unparsable*"),
    ("input that is a list", START + uses("[]") + END, "input_unparsable*"),
    ("input of two objects", START + uses("{}", "{}") + END, "input_unparsable*"),
    ("input with NaN", START + uses('{"a":NaN}') + END, "input_unparsable*"),
    ("message_delta without delta", START + event("message_delta", usage={"output_tokens": 1}) + END, "message_delta"),
    ("a blank stop reason", START + stops("") + event("message_stop"), "message_delta"),
    ("no stop reason", START + stops(None) + event("message_stop"), "stop_reason"),
    ("no message_delta", START + text() + event("message_stop"), "stop_reason"),
    ("no message_stop", START + text() + stops(), "message_stop*"),
    ("message_stop twice", START + END + event("message_stop"), "after_stop"),
    ("[DONE]", START + END + DONE, "after_stop*"),
    ("an error that is text", START + event("error", error="no"), "error"),
    ("an error without a type", START + event("error", error={"message": "no"}), "error"),
    ("message_stop after an error", START + OVERLOADED + event("message_stop"), "after_error"),
]
# fmt: on

# -- ollama ------------------------------------------------------------------------------------------------------------


def row(**fields: Any) -> bytes:
    head: dict[str, Any] = {"model": "m", "created_at": "2026-11-01T00:00:00.123456789Z"}
    if not fields.keys() & {"message", "response"}:
        head["message"] = {"role": "assistant", "content": "a"}
    head["done"] = False
    return dumps({name: value for name, value in (head | fields).items() if value is not ...}) + b"\n"


def calls(*entries: Any) -> bytes:
    return row(message={"role": "assistant", "content": "", "tool_calls": list(entries)})


LAST = row(message={"role": "assistant", "content": ""}, done=True, done_reason="stop", eval_count=3)
CALL = {"function": {"name": "f", "arguments": {"a": 1}}}

# fmt: off
OLLAMA: list[Vector] = [
    ("text", row() + row(message={"role": "assistant", "content": "", "thinking": "b"}) + LAST, ""),
    ("calls", calls(CALL, {"function": {"index": 1, "name": "f", "arguments": {}}}) + LAST, ""),
    ("generate", row(response="a") + row(response="", thinking="b") + row(response="", done=True, done_reason="stop", context=[1]), ""),
    ("text in the last line", row(done=True, done_reason="length"), ""),
    ("times with an offset", row(created_at="2026-11-01T00:00:00+01:00") + LAST, ""),
    ("separators as escapes", row(message={"role": "assistant", "content": "#"}).replace(b"#", b"\\u2028") + LAST, ""),
    ("CRLF", (row() + LAST).replace(b"\n", b"\r\n"), ""),
    ("an error", row() + b'{"error":"no"}\n', ""),
    ("a byte that is no UTF-8", row() + b'{"x":"\xff"}\n' + LAST, "not_utf8"),
    ("no JSON", row() + b"{\n" + LAST, "not_json"),
    ("no object", row() + b"[]\n" + LAST, "not_object"),
    ("no last line", row(), "truncated"),
    ("the last line cut off", row() + LAST[:-1], "unterminated*"),
    ("the last line cut short", row() + LAST[:-9], "unterminated* not_json truncated"),
    *((f"a raw U+{ord(char):04X}", row(message={"role": "assistant", "content": char}) + LAST, "separator") for char in "\x85\u2028\u2029"),
    ("a CR between tokens", row().replace(b",", b",\r", 1) + LAST, "separator"),
    ("no model", row(model=...) + LAST, "head"),
    ("a time that is a number", row(created_at=1) + LAST, "head"),
    ("a time without its zone", row(created_at="2026-11-01T00:00:00") + LAST, "head"),
    ("the 30th of February", row(created_at="2026-02-30T00:00:00Z") + LAST, "head"),
    ("done that is no boolean", row(done="false") + LAST, "head"),
    ("message and response", row() + row(message={"role": "assistant", "content": ""}, response="") + LAST, "kind"),
    ("generate and chat", row(response="a") + LAST, "kind"),
    ("neither", row(message=...) + LAST, "kind"),
    ("a message that is null", row(message=None) + LAST, "message"),
    ("no role", row(message={"content": "a"}) + LAST, "message"),
    ("content null", row(message={"role": "assistant", "content": None}) + LAST, "message"),
    ("a response that is null", row(response=None) + row(response="", done=True, done_reason="stop"), "response"),
    ("thinking that is a boolean", row(message={"role": "assistant", "content": "", "thinking": True}) + LAST, "thinking"),
    ("tool_calls that are no list", row(message={"role": "assistant", "content": "", "tool_calls": {}}) + LAST, "tool_calls"),
    ("a call without function", calls({"name": "f", "arguments": {}}) + LAST, "tool_calls"),
    ("a call that is no object", calls("f") + LAST, "tool_calls"),
    ("a call with a type", calls({"type": "function", **CALL}) + LAST, "tool_calls"),
    ("a call with an id", calls({"id": "c", **CALL}) + LAST, "call_id*"),
    ("a call without name", calls({"function": {"arguments": {}}}) + LAST, "call_name"),
    ("arguments that are a text", calls({"function": {"name": "f", "arguments": "{}"}}) + LAST, "arguments"),
    ("a call without arguments", calls({"function": {"name": "f"}}) + LAST, "arguments"),
    ("half a token", row(done=True, done_reason="stop", eval_count=1.5), "counts"),
    ("a time below zero", row(done=True, done_reason="stop", total_duration=-1), "counts"),
    ("no done_reason", row(done=True), "done_reason"),
    ("a blank done_reason", row(done=True, done_reason=""), "done_reason"),
    ("a line after the last", LAST + LAST, "after_done"),
    ("an error that is an object", row() + b'{"error":{"message":"no"}}\n', "error"),
    ("an error that is blank", row() + b'{"error":""}\n', "error"),
    ("a line after an error", b'{"error":"no"}\n' + LAST, "after_error"),
]
# fmt: on


VECTORS = {
    "openai-chat": CHAT,
    "openai-responses": lint_responses.RESPONSES,
    "anthropic": ANTHROPIC,
    "ollama": OLLAMA,
    "cohere": lint_cohere.COHERE,
    "gemini": lint_gemini.GEMINI,
    "mistral": lint_mistral.MISTRAL,
    "bedrock": lint_bedrock.BEDROCK,
    "gemini-interactions": lint_interactions.INTERACTIONS,
    "ag-ui": lint_ag_ui.AG_UI,
    "ai-sdk": lint_ai_sdk.AI_SDK,
}
