"""Cases 157 to 176: words of other dialects, one thing in two members, halves of characters, values of another shape."""

from __future__ import annotations

import json
from typing import Any

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import gemini_interactions as gi
from tests.vectors import mistral as mi
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Thinking, Use
from tests.vectors.field.shapes import (
    NO_REASON,
    anthropic,
    bedrock,
    calling,
    chat,
    cohere,
    failed,
    form,
    gemini,
    message,
    messages,
    mistral,
    ollama,
    ollama_turn,
    responses,
    responses_turn,
    written,
)
from tests.vectors.openai_chat import CALLED, DONE, HEAD, ROLE, call, calls, chunk, said
from tests.vectors.vector import Call, lines, named, sse

A = Call("f", '{"x":1}', id="a")
CUT = Call("f", '{"x":', "truncated", id="a")
NUMBER = Call("f", "7", "not_an_object", id="a")
WHOLE = calls(call(0, "a", "f", '{"x":1}'))
OPEN = calls(call(0, "a", "f", '{"x":'))
USED = {"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use")}
SMILED = Call("f", '{"x":"\N{GRINNING FACE}"}', id="a")
JOINED = {"character_cut": 1}
FOREIGN = {"stop_reason_foreign": 1}
#: Usage of the vectors that Anthropic's clients get as well.
GONE = {"error": {"message": "gone", "type": "server_error"}}
COUNTED = {"input_tokens": 9, "output_tokens": 4}


def twice(name: str, fragment: str, id: str) -> dict[str, Any]:
    """A chunk with a fragment of a call in both members."""
    return chunk({"function_call": {"name": name, "arguments": fragment}, "tool_calls": [call(0, id, name, fragment)]})


def halves(body: bytes) -> bytes:
    """The bytes with a half of U+1F600 for each ``<`` and ``>``."""
    return body.replace(b"<", rb"\ud83d").replace(b">", rb"\ude00")


def halved(*payloads: Any) -> bytes:
    return halves(sse(*payloads))


CASES = (
    Case(
        number=157, refs="pgEdge/pgedge-postgres-mcp#217; QwenLM/qwen-code#9884",
        cause="the stop reason is a word of another dialect: `tool_use` in place of `tool_calls`, or the reverse",
        does="streamkit reads the stop reasons of all dialects in every dialect. The client gets the reason of its own dialect, so it runs the call.",
        forms=(
            chat(WHOLE, chunk(finish="tool_use"), DONE, name="tool_use in Chat", calls=(A,), stop="tool_calls", repairs=FOREIGN, to={**USED, "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}),
            chat(WHOLE, chunk(finish="TOOL_CALLS"), DONE, name="capitals in Chat", calls=(A,), stop="tool_calls", repairs=FOREIGN, to=USED),
            message(
                *am.tool(0, "a", "f", '{"x":1}'), name="tool_calls in Anthropic", reason="tool_calls", calls=(A,), stop="tool_calls", repairs=FOREIGN,
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"), "anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", usage=COUNTED)},
            ),
            bedrock(
                br.START, *br.tool(0, "a", "f", '{"x":1}'), br.finish("tool_calls"), br.counts(), name="tool_calls in Bedrock", calls=(A,), stop="tool_calls", repairs=FOREIGN,
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls", losses={"metadata": 1}), "bedrock": written(Use("a", "f", '{"x":1}'), stop="tool_use")},
            ),
            cohere(*co.tool(0, "a", "f", '{"x":1}'), name="tool_calls in Cohere", reason="tool_calls", calls=(A,), stop="tool_calls", repairs=FOREIGN, to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}),
            ollama(
                ol.line(tool_calls=[ol.call("f", {"x": 1}, id="a")]), ol.end("tool_use"), name="tool_use in Ollama", calls=(A,), stop="tool_calls", repairs=FOREIGN,
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"), "ollama": written(Use(None, "f", '{"x":1}'), losses={"call_id": 1})},
            ),
            gemini(
                gm.chunk(gm.call("f", {"x": 1}, id="a"), finish="tool_calls"), name="tool_calls in Gemini", calls=(A,), stop="tool_calls", repairs=FOREIGN,
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"), "gemini": written(Use("a", "f", '{"x":1}'), stop="STOP")},
            ),
            mistral(mi.calls(mi.call("a", "f", '{"x":1}')), name="tool_use in Mistral", reason="tool_use", calls=(A,), stop="tool_calls", repairs=FOREIGN, to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}),
        ),
    ),
    Case(
        number=158, refs="QwenLM/qwen-code#9884; BerriAI/litellm#40040",
        cause="the stop reason for the token limit is a word of another dialect: `max_tokens`, `MAX_TOKENS` or `length`. Or the status is `completed` in spite of this stop reason",
        does="streamkit always reads this stop reason as the token limit. streamkit never treats a truncated response as complete, or a truncated call as finished.",
        forms=(
            chat(said("Hi"), chunk(finish="MAX_TOKENS"), DONE, name="MAX_TOKENS in Chat", text="Hi", stop="length", repairs=FOREIGN, to={"anthropic": messages(Text("Hi"), stop="max_tokens"), "openai-chat": written(Text("Hi"), stop="length")}),
            chat(OPEN, chunk(finish="max_tokens"), DONE, name="a call cut by max_tokens in Chat", calls=(CUT,), stop="length", repairs=FOREIGN, to={"anthropic": messages(Use("a", "f", '{"x":'), stop="max_tokens")}),
            message(*am.block(0, "Hi"), name="length in Anthropic", reason="length", text="Hi", stop="length", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"), stop="length")}),
            bedrock(br.START, *br.block(0, "Hi"), br.finish("length"), br.counts(), name="length in Bedrock", text="Hi", stop="length", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"), stop="length", losses={"metadata": 1})}),
            cohere(*co.block(0, "Hi"), name="length in Cohere", reason="length", text="Hi", stop="length", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"), stop="length")}),
            ollama(ol.line("Hi"), ol.end("max_tokens"), name="max_tokens in Ollama", text="Hi", stop="length", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"), stop="length")}),
            gemini(gm.chunk(gm.text("Hi"), finish="length"), name="length in Gemini", text="Hi", stop="length", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"), stop="length")}),
            mistral(mi.said("Hi"), name="max_tokens in Mistral", reason="max_tokens", text="Hi", stop="length", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"), stop="length")}),
            responses_turn(
                *rs.HI, end=rs.cut_off("max_tokens", rs.HI[-1]), name="max_tokens in Responses", text="Hello", stop="length", repairs=FOREIGN, to={"openai-chat": written(Text("Hello"), stop="length")},
            ),
            responses_turn(
                *rs.HI, end=rs.last("completed", rs.HI[-1], incomplete_details={"reason": "max_output_tokens"}), name="completed and cut in Responses", text="Hello", stop="length",
                repairs={"stop_conflict": 1}, to={"openai-chat": written(Text("Hello"), stop="length")},
            ),
        ),
    ),
    Case(
        number=159, refs="QwenLM/qwen-code#9884; vespa-engine/vespa#33327",
        cause="the stop reason is a word of another dialect for a natural stop, a filter, a stop sequence or a failure: `end_turn`, `STOP`, `SAFETY`, `COMPLETE` or `error`",
        does="streamkit reads each word by its meaning. An unknown reason becomes `other`. A failure never becomes a success.",
        forms=(
            chat(said("Hi"), chunk(finish="end_turn"), DONE, name="end_turn in Chat", text="Hi", repairs=FOREIGN, to={"anthropic": messages(Text("Hi"))}),
            chat(said("Hi"), chunk(finish="FinishReason.STOP"), DONE, name="an enumeration's name in Chat", text="Hi", repairs=FOREIGN, to={"anthropic": messages(Text("Hi"))}),
            chat(said("Hi"), chunk(finish="SAFETY"), DONE, name="SAFETY in Chat", text="Hi", stop="content_filter", repairs=FOREIGN, to={"anthropic": messages(Text("Hi"), stop="refusal", losses={"stop_reason": 1})}),
            chat(said("Hi"), chunk(finish="stop_sequence"), DONE, name="stop_sequence in Chat", text="Hi", stop="stop_sequence", repairs=FOREIGN, to={"anthropic": messages(Text("Hi"), stop="stop_sequence")}),
            chat(said("Hi"), chunk(finish="llama"), DONE, name="a word of nobody", text="Hi", stop="other", to={"anthropic": messages(Text("Hi"), losses={"stop_reason": 1})}),
            anthropic(am.START, *am.block(0, "Hi"), am.finish("STOP"), am.STOP, name="STOP in Anthropic", text="Hi", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"))}),
            anthropic(am.START, *am.block(0, "Hi"), am.finish("sensitive"), am.STOP, name="sensitive in Anthropic", text="Hi", stop="content_filter", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"), stop="content_filter")}),
            cohere(*co.block(0, "Hi"), name="end_turn in Cohere", reason="end_turn", text="Hi", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"))}),
            gemini(gm.chunk(gm.text("Hi"), finish="stop"), name="small letters in Gemini", text="Hi", repairs=FOREIGN, to={"openai-chat": written(Text("Hi")), "gemini": written(Text("Hi"), stop="STOP")}),
            ollama(ol.line("Hi"), ol.end("COMPLETE"), name="COMPLETE in Ollama", text="Hi", repairs=FOREIGN, to={"openai-chat": written(Text("Hi"))}),
        ),
    ),
    Case(
        number=160, refs="llama-cpp-python; langchain-ai/langchain#22589",
        cause="each fragment of a call is in both `function_call` and `tool_calls`, as llama-cpp-python writes it if the request requires a certain tool",
        does="streamkit reads one of the two members. streamkit ignores the other member and counts a repair. If the names differ, there are two calls. If only the arguments differ, streamkit withholds the arguments in the ignored member.",
        forms=(
            calling(twice("f", '{"x"', "a"), twice("f", ":1}", "a"), name="in one chunk", calls=(A,), repairs={"said_twice": 2, "id_repeated": 1, "name_repeated": 1}),
            calling(
                chunk({"function_call": {"name": "f", "arguments": '{"x"'}}), calls(call(0, "a", "f", '{"x"')), chunk({"function_call": {"arguments": ":1}"}}), calls(call(0, arguments=":1}")),
                name="in turns", calls=(Call("f", '{"x":1}', id="call_1"),), repairs={"said_twice": 2}, to={"openai-chat": written(Use("call_1", "f", '{"x":1}'), stop="tool_calls")},
            ),
            calling(
                calls(call(0, "a", "f", '{"x"')), chunk({"function_call": {"name": "f", "arguments": '{"x"'}}), calls(call(0, arguments=":1}")), chunk({"function_call": {"arguments": ":1}"}}),
                name="in turns the other way", calls=(A,), repairs={"said_twice": 2},
            ),
            calling(
                chunk({"function_call": {"name": "f", "arguments": '{"x":2}'}, "tool_calls": [call(0, "a", "f", '{"x":1}')]}), name="other arguments", calls=(A,), repairs={"said_twice": 1}, withheld=('{"x":2}',),
            ),
            calling(
                chunk({"function_call": {"name": "g", "arguments": '{"y":2}'}, "tool_calls": [call(0, "a", "f", '{"x":1}')]}), name="another call", calls=(A, Call("g", '{"y":2}', id="call_1")),
                repairs={"index_reused": 1}, to={"openai-chat": written(Use("a", "f", '{"x":1}'), Use("call_1", "g", '{"y":2}'), stop="tool_calls")},
            ),
            calling(
                calls({**call(0, "a", "f", '{"x":1}'), "custom": {"name": "f", "input": '{"x":1}'}}), name="a function and a custom tool in one entry", calls=(A,), repairs={"said_twice": 1},
            ),
            mistral(
                mi.chunk({"tool_calls": [mi.call("a", "f", '{"x":1}')], "function_call": {"name": "f", "arguments": '{"x":1}'}}), name="Mistral", calls=(A,), stop="tool_calls", repairs={"said_twice": 1},
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=161, refs="ollama; vLLM",
        cause="text, reasoning or calls are in two members with the same meaning: `reasoning` and `reasoning_content`, or `message` and `response`",
        does="streamkit reads one of the two members. If the members differ, streamkit counts a repair. A member that appears alone is always read.",
        forms=(
            chat(chunk({"reasoning": "hm", "reasoning_content": "hm"}), said("Hi"), chunk(finish="stop"), DONE, name="alike", text="Hi", reasoning="hm", to={"anthropic": messages(Thinking("hm"), Text("Hi"))}),
            chat(
                chunk({"reasoning": "hm", "reasoning_content": "so"}), said("Hi"), chunk(finish="stop"), DONE, name="unlike", text="Hi", reasoning="hm", repairs={"said_twice": 1},
                to={"anthropic": messages(Thinking("hm"), Text("Hi"))},
            ),
            ollama_turn({**ol.line("Hi"), "response": "Hi"}, name="message and response", text="Hi", repairs={"said_twice": 1}, to={"openai-chat": written(Text("Hi"))}),
            ollama_turn(
                {**ol.line("Hi"), "tool_calls": [ol.call("f", {"x": 1}, id="a")]}, name="calls beside the message", text="Hi", calls=(A,), stop="tool_calls", repairs={"said_twice": 1},
                to={"openai-chat": written(Text("Hi"), Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=162, refs="elizaOS/eliza#30904; vercel/ai; JavaScript servers that split text by UTF-16 units",
        cause="a character above U+FFFF is split between two deltas, with half a surrogate pair in each",
        does="streamkit joins the two halves in text, reasoning, refusals and arguments, in all dialects. A half without its other half becomes U+FFFD.",
        forms=(
            chat(halved(ROLE, said("a<"), said(">b"), chunk(finish="stop"), DONE), name="text of Chat", text="a\N{GRINNING FACE}b", repairs=JOINED, to={"anthropic": messages(Text("a\N{GRINNING FACE}b"))}),
            chat(
                halved(ROLE, chunk({"reasoning": "<", "reasoning_content": "<"}), chunk({"reasoning": ">", "reasoning_content": ">"}), chunk({"refusal": "n<"}), chunk({"refusal": ">"}), chunk(finish="stop"), DONE),
                name="reasoning and refusal of Chat", reasoning="\N{GRINNING FACE}", refusal="n\N{GRINNING FACE}", stop="refusal", repairs={"character_cut": 3},
                to={"anthropic": messages(Thinking("\N{GRINNING FACE}"), Text("n\N{GRINNING FACE}"), stop="refusal", losses={"refusal_as_text": 1})},
            ),
            chat(
                halved(calls(call(0, "a", "f", '{"x":"<')), calls(call(1, "b", "g", '{"y":"<')), calls(call(0, arguments='>"}')), calls(call(1, arguments='>"}')), CALLED, DONE), name="arguments of two calls",
                calls=(Call("f", '{"x":"\N{GRINNING FACE}"}', id="a"), Call("g", '{"y":"\N{GRINNING FACE}"}', id="b")), stop="tool_calls", repairs={"character_cut": 2},
                to={"anthropic": messages(Use("a", "f", '{"x":"\N{GRINNING FACE}"}'), Use("b", "g", '{"y":"\N{GRINNING FACE}"}'), stop="tool_use")},
            ),
            chat(
                halved(ROLE, said("<"), {**HEAD, "choices": []}, b"", said("><"), said(""), said(">"), chunk(finish="stop"), DONE), name="with a chunk between, and twice", text="\N{GRINNING FACE}\N{GRINNING FACE}",
                repairs={"character_cut": 2}, to={"anthropic": messages(Text("\N{GRINNING FACE}\N{GRINNING FACE}"))},
            ),
            chat(halved(ROLE, said("a<"), said("b"), chunk(finish="stop"), DONE), name="another delta instead", text="a\ufffdb", repairs={"lone_surrogate": 1}, to={"anthropic": messages(Text("a\ufffdb"))}),
            chat(halved(ROLE, said("a<"), chunk(finish="stop"), DONE), name="the end instead", text="a\ufffd", repairs={"lone_surrogate": 1}, to={"anthropic": messages(Text("a\ufffd"))}),
            chat(halved(ROLE, said("a<")), name="cut behind a half", text="a\ufffd", stop=None, repairs={"lone_surrogate": 1}, to={"anthropic": failed(Text("a\ufffd"), error=NO_REASON)}),
            chat(
                halved(ROLE, said("a<"), said(">"))[:-9], name="cut inside the second half", text="a\ufffd", stop=None, repairs={"lone_surrogate": 1},
                to={"anthropic": failed(Text("a\ufffd"), error=f"{NO_REASON} (cut inside a frame)")},
            ),
            anthropic(
                halves(
                    named(
                        am.START, am.begin(0, "thinking", thinking=""), am.delta(0, "thinking_delta", thinking="<"), am.PING, am.delta(0, "thinking_delta", thinking=">"), am.stop(0),
                        am.begin(1, "text", text=""), am.delta(1, "text_delta", text="a<"), am.delta(1, "text_delta", text=">b"), am.stop(1), *am.tool(2, "a", "f", '{"x":"<', '>"}'), am.finish("tool_use"), am.STOP,
                    )
                ),
                name="Anthropic", text="a\N{GRINNING FACE}b", reasoning="\N{GRINNING FACE}", calls=(SMILED,), stop="tool_calls", repairs={"character_cut": 3},
                to={"openai-chat": written(Thinking("\N{GRINNING FACE}"), Text("a\N{GRINNING FACE}b"), Use("a", "f", '{"x":"\N{GRINNING FACE}"}'), stop="tool_calls")},
            ),
            responses(
                halves(rs.numbered(rs.START, *rs.message(0, "a<", ">b"), *rs.call(1, "a", "f", '{"x":"<', '>"}'), rs.last("completed"))), name="Responses", text="a\N{GRINNING FACE}b",
                calls=(SMILED,), stop="tool_calls", repairs={"character_cut": 2}, to={"openai-chat": written(Text("a\N{GRINNING FACE}b"), Use("a", "f", '{"x":"\N{GRINNING FACE}"}'), stop="tool_calls")},
            ),
            gemini(
                halves(gm.events(gm.chunk(gm.thought("<")), gm.chunk(gm.thought(">")), gm.chunk(gm.text("a<")), gm.chunk(gm.text(">b")), gm.STOP)), name="Gemini", text="a\N{GRINNING FACE}b", reasoning="\N{GRINNING FACE}",
                repairs={"character_cut": 2}, to={"openai-chat": written(Thinking("\N{GRINNING FACE}"), Text("a\N{GRINNING FACE}b"))},
            ),
            gemini(
                halves(gm.events(gm.chunk(gm.partial(("$.x", "<"), name="f", id="a")), gm.chunk(gm.partial(("$.x", ">"), more=False)), gm.STOP)), name="arguments in parts of Gemini",
                calls=(SMILED,), stop="tool_calls", repairs=JOINED, to={"openai-chat": written(Use("a", "f", '{"x":"\N{GRINNING FACE}"}'), stop="tool_calls")},
            ),
            form("ollama", halves(lines(ol.line("a<"), ol.line(">b"), ol.end())), "Ollama", {"openai-chat": written(Text("a\N{GRINNING FACE}b"))}, {"text": "a\N{GRINNING FACE}b", "repairs": JOINED}),
            form("cohere", halves(named(co.START, co.begin(0), co.delta(0, "a<"), co.delta(0, ">b"), co.end(0), co.finish())), "Cohere", {"openai-chat": written(Text("a\N{GRINNING FACE}b"))}, {"text": "a\N{GRINNING FACE}b", "repairs": JOINED}),
            form("mistral", halves(sse(mi.ROLE, mi.said([mi.text("a<")]), mi.said([mi.text(">b")]), mi.finish(), mi.DONE)), "Mistral", {"openai-chat": written(Text("a\N{GRINNING FACE}b"))}, {"text": "a\N{GRINNING FACE}b", "repairs": JOINED}),
            bedrock(
                br.START, *((kind, halves(json.dumps(body).encode())) for kind, body in br.block(0, "a<", ">b")), br.finish(), br.counts(), name="Bedrock", text="a\N{GRINNING FACE}b", repairs=JOINED,
                to={"openai-chat": written(Text("a\N{GRINNING FACE}b"), losses={"metadata": 1})},
            ),
            bedrock(
                br.native("", *(halves(json.dumps(event).encode()) for event in (am.START, *am.tool(0, "a", "f", '{"x":"<', '>"}'), am.finish("tool_use"), am.STOP))).body, name="Anthropic's events in Bedrock",
                calls=(SMILED,), stop="tool_calls", repairs=JOINED, to={"openai-chat": written(Use("a", "f", '{"x":"\N{GRINNING FACE}"}'), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=163, refs="vercel/ai (a recording of four consecutive responses); llmock",
        cause="text or calls arrive after the terminator (`[DONE]`, `message_stop`, `response.completed`, `done`, `message-end` or `messageStop`)",
        does="The response is over, so streamkit counts later frames but does not emit them. There are two exceptions: errors, and token counts if there were none before.",
        forms=(
            chat(said("Hi"), chunk(finish="stop"), DONE, said("!"), calls(call(0, "a", "f", "{}")), CALLED, DONE, name="Chat", text="Hi", repairs={"after_end": 4}, to={"anthropic": messages(Text("Hi")), "openai-chat": written(Text("Hi"))}),
            chat(
                said("Hi"), chunk(finish="stop"), DONE, {**HEAD, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}, name="token counts", text="Hi", repairs={"after_end": 1},
                to={"anthropic": messages(Text("Hi"), usage=COUNTED)},
            ),
            chat(
                said("Hi"), chunk(finish="stop"), {**HEAD, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}, DONE,
                {**HEAD, "choices": [], "usage": {"prompt_tokens": 315, "completion_tokens": 12, "total_tokens": 327}}, name="token counts of the next answer", text="Hi", repairs={"after_end": 1},
                to={"anthropic": messages(Text("Hi"), usage=COUNTED)},
            ),
            anthropic(
                am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP, *am.tool(1, "a", "f", "{}"), am.finish("tool_use"), am.STOP, name="Anthropic", text="Hi", repairs={"after_end": 5},
                to={"openai-chat": written(Text("Hi"))},
            ),
            anthropic(
                am.START, *am.block(0, "Hi"), {**am.finish("end_turn"), "usage": {}}, am.STOP, am.finish(None), name="token counts of Anthropic", text="Hi", repairs={"after_end": 1},
                to={"anthropic": messages(Text("Hi"), usage={"input_tokens": 9, "output_tokens": 4})},
            ),
            anthropic(
                am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP, {**am.finish(None), "usage": {"output_tokens": 12}}, name="token counts of Anthropic's next answer", text="Hi", repairs={"after_end": 1},
                to={"anthropic": messages(Text("Hi"), usage={"input_tokens": 9, "output_tokens": 4})},
            ),
            ollama(ol.line("Hi"), ol.end(), ol.line("!"), ol.line(tool_calls=[ol.call("f", {})]), name="Ollama", text="Hi", repairs={"after_end": 2}, to={"openai-chat": written(Text("Hi"))}),
            bedrock(br.START, *br.block(0, "Hi"), br.finish(), *br.block(1, "!"), br.counts(), name="Bedrock", text="Hi", repairs={"after_end": 2}, to={"openai-chat": written(Text("Hi"), losses={"metadata": 1})}),
            form("cohere", named(co.START, *co.block(0, "Hi"), co.finish(), *co.block(1, "!")), "Cohere", {"openai-chat": written(Text("Hi"))}, {"text": "Hi", "repairs": {"after_end": 3}}),
            form("mistral", sse(mi.ROLE, mi.said("Hi"), mi.finish(), mi.DONE, mi.said("!")), "Mistral", {"openai-chat": written(Text("Hi"))}, {"text": "Hi", "repairs": {"after_end": 1}}),
            responses(
                rs.START, *rs.HI, rs.last("completed", rs.HI[-1]), rs.START, *rs.message(1, "!"), rs.last("completed"), name="Responses", text="Hello", repairs={"after_end": 8, "response_restarted": 1},
                to={"openai-chat": written(Text("Hello"))},
            ),
        ),
    ),
    Case(
        number=164, refs="google-gemini/gemini-cli#22489; new-api; proxies that write a ping as JSON",
        cause='a payload is not an object: it is `null`, `[]` or `"ping"`, or a list with an error or a chunk in it',
        does="streamkit ignores values without content, and reads the objects of a list one by one. An error keeps its message and type. streamkit counts a repair for each such payload.",
        forms=(
            chat(ROLE, b"null", b"[]", b'"ping"', b"1", b"true", said("Hi"), chunk(finish="stop"), DONE, name="Chat", text="Hi", repairs={"payload_no_object": 5}, to={"anthropic": messages(Text("Hi"))}),
            chat(b"null", [ROLE, said("Hi")], [chunk(finish="stop")], DONE, name="chunks in lists", text="Hi", repairs={"payload_no_object": 1, "payload_in_list": 2}, to={"anthropic": messages(Text("Hi"))}),
            chat(
                ROLE, [calls(call(0, "a", "f", {"x": 1.0}))], CALLED, DONE, name="an object in a list keeps its text", calls=(Call("f", '{"x":1.0}', id="a"),), stop="tool_calls", repairs={"payload_in_list": 1, "arguments_not_text": 1},
                to={"anthropic": messages(Use("a", "f", '{"x":1.0}'), stop="tool_use")},
            ),
            chat(ROLE, said("Hi"), [GONE], name="an error in a list", text="Hi", stop=None, repairs={"payload_in_list": 1}, provider_error="gone", to={"anthropic": failed(Text("Hi"), error="gone")}),
            chat([GONE], name="nothing but an error in a list", stop=None, repairs={"payload_in_list": 1}, provider_error="gone", to={"anthropic": failed(error="gone")}),
            chat(
                sse(ROLE, said("Hi")) + b'event: error\ndata: "gone"\n\n', name="an error that is a string", text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="gone", to={"anthropic": failed(Text("Hi"), error="gone")},
            ),
            anthropic(
                named(am.START, *am.block(0, "Hi")) + b"event: ping\ndata: null\n\nevent: message\ndata: []\n\n" + named(am.finish("end_turn"), am.STOP), name="Anthropic", text="Hi", repairs={"payload_no_object": 2},
                to={"openai-chat": written(Text("Hi"))},
            ),
            anthropic(
                named(am.START) + b"event: error\ndata: " + json.dumps([{"type": "error", **GONE}]).encode() + b"\n\n", name="Anthropic's error", stop=None, repairs={"payload_in_list": 1}, provider_error="gone",
                to={"openai-chat": failed(error="gone")},
            ),
            responses(
                rs.numbered(rs.START) + b"data: null\n\n" + rs.numbered(*rs.HI, rs.last("completed", rs.HI[-1])), name="Responses", text="Hello", repairs={"payload_no_object": 1}, to={"openai-chat": written(Text("Hello"))},
            ),
            form("ollama", lines(ol.line("Hi"), b"null", b'"ping"', ol.end()), "Ollama", {"openai-chat": written(Text("Hi"))}, {"text": "Hi", "repairs": {"payload_no_object": 2}}),
            form("ollama", lines(ol.line("Hi"), [{"error": "gone"}]), "Ollama's error", {"openai-chat": failed(Text("Hi"), error="gone")}, {"text": "Hi", "stop": None, "repairs": {"payload_in_list": 1}, "provider_error": "gone"}),
            gemini(gm.events(gm.chunk(gm.text("Hi")), b"null", [gm.STOP]), name="Gemini", text="Hi", repairs={"payload_no_object": 1, "payload_in_list": 1}, to={"openai-chat": written(Text("Hi"))}),
            gemini(gm.events([gm.BUSY]), name="Gemini's error", stop=None, repairs={"payload_in_list": 1}, provider_error="busy", to={"openai-chat": failed(error="busy")}),
            form(
                "cohere", named(co.START, *co.block(0, "Hi")) + b"data: []\n\n" + named(co.finish()), "Cohere", {"openai-chat": written(Text("Hi"))}, {"text": "Hi", "repairs": {"payload_no_object": 1}},
            ),
            form("mistral", sse(mi.ROLE, b"null", mi.said("Hi"), mi.finish(), mi.DONE), "Mistral", {"openai-chat": written(Text("Hi"))}, {"text": "Hi", "repairs": {"payload_no_object": 1}}),
            bedrock(
                br.START, ("metadata", b"null"), *br.block(0, "Hi"), br.finish(), br.counts(), name="Bedrock", text="Hi", repairs={"payload_no_object": 1}, to={"openai-chat": written(Text("Hi"), losses={"metadata": 1})},
            ),
        ),
    ),
    Case(
        number=165, refs="vLLM; new-api; gateways that write calls and arguments as objects; xuzhougeng/wisp-science#424; home-assistant/core#168343",
        cause="values have the wrong type or place: an index is text, the arguments, the reasoning or `tool_calls` are an object, or a call has no `function` around its name and arguments",
        does="streamkit reads each value by its meaning, and counts a repair. Arguments keep their original text.",
        forms=(
            calling(
                calls(call("0", "a", "f", '{"x":')), calls(call("1", "b", "g", "{}")), calls(call("0", arguments="1}")), name="indices as text", calls=(A, Call("g", "{}", id="b")), repairs={"index_invalid": 3},
            ),
            calling(
                chunk({"tool_calls": call(0, "a", "f", '{"x":')}), chunk({"tool_calls": call(0, arguments="1}")}), name="tool_calls as an object", calls=(A,), repairs={"list_missing": 2},
            ),
            calling(
                chunk({"tool_calls": {"0": call(0, "a", "f", {"x": 1.0}), "1": call(1, "b", "g", {})}}), name="tool_calls by number", calls=(Call("f", '{"x":1.0}', id="a"), Call("g", "{}", id="b")),
                repairs={"list_missing": 1, "arguments_not_text": 2},
            ),
            calling(
                calls({"index": 0, "id": "a", "type": "function", "name": "f", "arguments": '{"x":'}), calls({"index": 0, "arguments": "1}"}), name="calls without function", calls=(A,), repairs={"call_shape": 2}, to=USED,
            ),
            calling(
                calls({"name": "f", "arguments": {"x": 1}}), name="calls without function and id", calls=(Call("f", '{"x":1}', id="call_1"),), repairs={"call_shape": 1, "arguments_not_text": 1, "index_missing": 1, "id_missing": 1},
            ),
            calling(
                calls({"index": 0, "id": "a", "type": "custom", "name": "f", "input": "x = 1"}), name="custom calls without their object", calls=(Call("f", "x = 1", id="a"),), repairs={"call_shape": 1},
                to={"anthropic": messages(Use("a", "f", '{"input":"x = 1"}'), stop="tool_use", losses={"custom_tool_wrapped": 1})},
            ),
            calling(
                calls({"index": 0, "id": "a", "function": {"name": "f"}, "arguments": '{"x":1}'}), name="arguments next to function", calls=(A,), repairs={"call_shape": 1}, to=USED,
            ),
            calling(
                calls({"index": 0, "id": "a", "function": {"name": "f", "parameters": {"x": 1}}}), name="parameters as arguments", calls=(A,), repairs={"call_shape": 1, "arguments_not_text": 1}, to=USED,
            ),
            calling(
                calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}', "parameters": {"y": 2}}}), name="parameters next to arguments", calls=(A,), repairs={},
                to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", losses={"unknown_event": 1})},
            ),
            calling(
                chunk({"tool_calls": [{"index": 0, "id": "a", "name": "f", "arguments": '{"x":1}'}], "function_call": {"name": "f", "arguments": '{"x":1}'}}), name="a call without function, twice", calls=(A,),
                repairs={"call_shape": 1, "said_twice": 1}, to=USED,
            ),
            chat(
                chunk({"reasoning_content": {"type": "text", "text": "h"}}), chunk({"reasoning_content": [{"text": "m"}]}), said("Hi"), chunk(finish="stop"), DONE, name="reasoning as an object", text="Hi", reasoning="hm",
                repairs={"text_as_object": 2}, to={"anthropic": messages(Thinking("hm"), Text("Hi"))},
            ),
            message(
                am.begin(0, "tool_use", id="a", name="f", input={}), am.delta(0, "input_json_delta", partial_json={"x": 1}), am.stop(0), name="partial_json as an object", reason="tool_use", calls=(A,), stop="tool_calls",
                repairs={"arguments_not_text": 1}, to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
            anthropic(
                am.START, *({**event, "index": "0"} for event in am.block(0, "Hi")), am.finish("end_turn"), am.STOP, name="indices as text of Anthropic", text="Hi", repairs={"index_invalid": 3}, to={"openai-chat": written(Text("Hi"))},
            ),
            bedrock(
                br.START, br.begin(0, toolUse={"toolUseId": "a", "name": "f"}), br.delta(0, toolUse={"input": {"x": 1}}), br.stop(0), br.finish("tool_use"), br.counts(), name="input as an object of Bedrock", calls=(A,),
                stop="tool_calls", repairs={"arguments_not_text": 1}, to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls", losses={"metadata": 1})},
            ),
            message(
                am.begin(0, "tool_use", id="a", name="f", input={}), am.delta(0, "input_json_delta", partial_json=7), am.stop(0), name="partial_json as a number", reason="tool_use", calls=(NUMBER,), stop="tool_calls",
                repairs={"arguments_not_text": 1}, to={"openai-chat": written(Use("a", "f", "7"), stop="tool_calls")},
            ),
            bedrock(
                br.START, br.begin(0, toolUse={"toolUseId": "a", "name": "f"}), br.delta(0, toolUse={"input": 7}), br.stop(0), br.finish("tool_use"), br.counts(), name="input as a number of Bedrock", calls=(NUMBER,),
                stop="tool_calls", repairs={"arguments_not_text": 1}, to={"openai-chat": written(Use("a", "f", "7"), stop="tool_calls", losses={"metadata": 1})},
            ),
            form(
                "gemini-interactions", gi.named(gi.START, *gi.tool(0, "a", "f", 7), gi.event("interaction.completed", interaction=gi.interaction("requires_action"))), "arguments as a number of Interactions",
                {"openai-chat": written(Use("a", "f", "7"), stop="tool_calls")}, {"calls": (NUMBER,), "stop": "tool_calls", "repairs": {"arguments_not_text": 1}},
            ),
            ollama_turn(
                ol.line(tool_calls=ol.call("f", {"x": 1.0}, id="a")), name="tool_calls of Ollama as an object", calls=(Call("f", '{"x":1.0}', id="a"),), stop="tool_calls", repairs={"list_missing": 1},
                to={"openai-chat": written(Use("a", "f", '{"x":1.0}'), stop="tool_calls")},
            ),
            ollama_turn(
                ol.line(tool_calls=[{"id": "a", "name": "f", "parameters": {"x": 1.0}}]), name="calls of Ollama without function", calls=(Call("f", '{"x":1.0}', id="a"),), stop="tool_calls", repairs={"call_shape": 2},
                to={"openai-chat": written(Use("a", "f", '{"x":1.0}'), stop="tool_calls")},
            ),
            ollama_turn(ol.line("Hi", thinking={"content": "hm"}), name="thinking of Ollama as an object", text="Hi", reasoning="hm", repairs={"text_as_object": 1}, to={"openai-chat": written(Thinking("hm"), Text("Hi"))}),
            mistral(
                mi.chunk({"tool_calls": mi.call("a", "f", {"x": 1})}), name="tool_calls of Mistral as an object", calls=(A,), stop="tool_calls", repairs={"list_missing": 1},
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
            mistral(
                mi.chunk({"tool_calls": [{"id": "a", "name": "f", "arguments": {"x": 1}, "index": 0}]}), name="calls of Mistral without function", calls=(A,), stop="tool_calls", repairs={"call_shape": 1},
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
            form(
                "cohere", named(co.START, co.event("tool-call-start", 0, tool_calls={"id": "a", "type": "function", "name": "f", "parameters": {"x": 1}}), co.event("tool-call-end", 0), co.finish("TOOL_CALL")),
                "a call of Cohere without function", {"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}, {"calls": (A,), "stop": "tool_calls", "repairs": {"call_shape": 2, "arguments_not_text": 1}},
            ),
            form(
                "cohere", named(co.START, co.event("tool-call-start", 0, tool_calls={"id": "a", "name": "f"}), co.event("tool-call-delta", 0, tool_calls={"arguments": '{"x":1}'}), co.event("tool-call-end", 0), co.finish("TOOL_CALL")),
                "fragments of Cohere without function", {"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}, {"calls": (A,), "stop": "tool_calls", "repairs": {"call_shape": 2}},
            ),
            form(
                "cohere", named(co.START, *({**event, "index": "0"} for event in co.block(0, "Hi")), co.finish()), "indices as text of Cohere", {"openai-chat": written(Text("Hi"))}, {"text": "Hi", "repairs": {"index_invalid": 3}},
            ),
            form(
                "cohere", named(co.START, co.begin(0), *(co.event("content-delta", 0, content=content) for content in ("H", [{"text": "i"}], ["!"])), co.end(0), co.finish()), "content as text and as a list of Cohere",
                {"openai-chat": written(Text("Hi!"))}, {"text": "Hi!", "repairs": {"object_missing": 2, "list_unasked": 2}},
            ),
            form(
                "cohere", named(co.START, co.event("tool-call-start", 0, tool_calls=[{"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]), co.event("tool-call-end", 0), co.finish("TOOL_CALL")),
                "a call in a list of Cohere", {"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}, {"calls": (A,), "stop": "tool_calls", "repairs": {"list_unasked": 1, "arguments_not_text": 1}},
            ),
            gemini(gm.chunk(gm.text("Hi"), index="0", finish="STOP"), name="an index as text of Gemini", text="Hi", repairs={"index_invalid": 1}, to={"openai-chat": written(Text("Hi"))}),
        ),
    ),
)  # fmt: skip
