"""Whole responses of Mistral: read, written, and written for what other dialects said.

Source: dialects.md §0.4, §6.3, §7.1; the response types of mistralai 3.7.0.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BrokenFrame, NotThisDialect
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.policy import STRICT
from streamkit.recipes import collect
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.text.identifiers import nine_characters
from streamkit.translation.bodies import decode_response, encode_response
from tests.responses.rows import Dialect, Row, rows
from tests.vectors import VECTORS

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
COMPLETE = Verdict("complete")
NINE = "aaaaaaaa1"


def whole(message: dict[str, Any], finish: str | None = "stop", **beside: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": "", **message}, "finish_reason": finish}
    head = {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE}
    return {**head, "choices": [choice], **beside}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def thinking(*texts: str, **members: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [text(content) for content in texts], **members}


def call(call_id: str = NINE, arguments: str = "{}", index: int = 0, **more: Any) -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, "index": index, **more}


MISTRAL = Dialect(
    "mistral",
    Response(
        "mistral",
        id="i",
        model="m",
        created=1,
        vendor="mistral",
        clean=True,
        usage=UsageReported(11, None, None, 7, None, 18, USAGE, "mistral"),
    ),
)
REFERENCE = {"type": "reference", "reference_ids": [1]}

#: A message, its stop reason, and the parts that it says, both ways.
MESSAGES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "text": ({"content": "hi"}, "stop", [Text("hi")]),
    "no text": ({"content": ""}, "length", []),
    "calls": (
        {"content": "wait", "tool_calls": [call(), call("bbbbbbbb2", '{"q": oops', 1, x=1)]}, "tool_calls",
        [Text("wait"), ToolCall(0, NINE, "look", "{}", verdict=COMPLETE), ToolCall(
            1, "bbbbbbbb2", "look", '{"q": oops', verdict=Verdict("malformed", "a character that begins no value", 6), extras={"x": 1},
        )],
    ),
    "thoughts": ({"content": [thinking("hm"), text("hi")]}, "stop", [Reasoning("hm"), Text("hi")]),
    "signed thoughts": (
        {"content": [thinking("one", signature="S"), thinking("two", signature="T"), text("hi")]}, "model_length",
        [Reasoning("one", signature=Opaque("mistral", "S")), Reasoning("two", signature=Opaque("mistral", "T")), Text("hi")],
    ),
    "what other vendors signed": (
        {
            "content": [
                thinking("hm", signature=seal("reasoning", "anthropic", "A")), thinking(signature=seal("opaque", "openai", "O")),
                text("hi"), thinking(signature=seal("text", "google", "T")), thinking(signature=seal("call", "google", "C")),
                thinking(signature=seal("call", "google", "D")),
            ],
            "tool_calls": [call(), call("bbbbbbbb2", index=1)],
        },
        "tool_calls",
        [
            Reasoning("hm", signature=Opaque("anthropic", "A")), RedactedReasoning(Opaque("openai", "O")),
            Text("hi", Opaque("google", "T")), ToolCall(0, NINE, "look", "{}", verdict=COMPLETE, signature=Opaque("google", "C")),
            ToolCall(1, "bbbbbbbb2", "look", "{}", verdict=COMPLETE, signature=Opaque("google", "D")),
        ],
    ),
    "a signature of a part without text": (
        {"content": [thinking(signature=seal("part", "google", "P"))]}, "stop", [Text("", Opaque("google", "P"))],
    ),
    "other parts": (
        {"content": [text("hi"), REFERENCE, {**thinking("hm"), "mood": 1}], "flavour": "x"}, "stop",
        [
            Text("hi"), Aside("mistral", "citation", "content.reference", REFERENCE), Reasoning("hm"),
            Aside("mistral", "metadata", "thinking:mood", 1), Aside("mistral", "metadata", "delta.flavour", "x"),
        ],
    ),
}  # fmt: skip


# -- errors ------------------------------------------------------------------------------------------------------------

FLAT = {"object": "error", "message": "m", "type": "rate_limited", "param": None, "code": "1300"}
UNFIT = {
    "detail": [
        {"type": "missing", "loc": ["body", "messages", 0, "role"], "msg": "Field required"},
        {"msg": "and more"},
        5,
    ]
}
ERRORS: list[tuple[Any, str, str, dict[str, int]]] = [
    (FLAT, "rate_limit", "m", {}),
    ({**FLAT, "type": "invalid_request_message_order", "code": "3230", "raw_status_code": 400}, "invalid_request", "m", {}),
    ({**FLAT, "type": "invalid_function_call", "code": "3280"}, "invalid_request", "m", {}),
    (UNFIT, "invalid_request", "body.messages.0.role: Field required; and more; 5", {}),
    ({"detail": "m"}, "server", "m", {"error_shape": 1}),
    ({"message": "m", "request_id": "r"}, "server", "m", {"error_shape": 1}),
    ({"error": {"message": "m", "type": "server_error"}}, "server", "m", {}),
]  # fmt: skip

OTHERS = [
    (b"", NotThisDialect),
    (b"<html>502</html>", NotThisDialect),
    (b'{"type": "message", "content": []}', NotThisDialect),
    (b'{"model": "m", "message": {"role": "assistant", "content": "a"}, "done": true}', NotThisDialect),
    (b'{"choices": [', BrokenFrame),
]  # fmt: skip


# -- writing what others said ------------------------------------------------------------------------------------------

FOREIGN: dict[str, tuple[Response, dict[str, Any], str, dict[str, int]]] = {
    "several texts": (MISTRAL.response(Text("a"), Text("b")), {"content": "ab"}, "stop", {"block_boundary": 1}),
    "texts around a thought": (
        MISTRAL.response(Text("a"), Reasoning("hm"), Reasoning(""), Text("b")), {"content": [text("a"), thinking("hm"), text("b")]}, "stop", {},
    ),
    "text behind a call": (
        MISTRAL.response(ToolCall(0, NINE, "look", ""), Text("a"), stop="tool_calls"), {"content": "a", "tool_calls": [call()]}, "tool_calls",
        {"block_order": 1},
    ),
    "an id of another kind": (
        MISTRAL.response(ToolCall(0, "toolu_1", "look", "{}"), stop="tool_calls"), {"tool_calls": [call(nine_characters("toolu_1"))]}, "tool_calls",
        {"call_id": 1},
    ),
    "calls that nobody may run": (
        MISTRAL.response(
            ToolCall(0, NINE, "", "{}"), ToolCall(1, NINE, "look", '{"q"'), ToolCall(2, NINE, "look", "{}", ended=False), stop="tool_calls",
        ),
        {}, "length", {"call_withheld": 3, "stop_reason": 1},
    ),
    "a custom call": (
        MISTRAL.response(ToolCall(0, NINE, "look", "1 + 1", "custom"), stop="tool_calls"), {"tool_calls": [call(arguments='{"input":"1 + 1"}')]},
        "tool_calls", {"custom_tool_wrapped": 1},
    ),
    "a signed call behind one that is not": (
        MISTRAL.response(
            ToolCall(0, NINE, "look", "{}"), ToolCall(1, "bbbbbbbb2", "look", "{}", signature=Opaque("google", "S")), stop="tool_calls",
        ),
        {"tool_calls": [call(), call("bbbbbbbb2", index=1)]}, "tool_calls", {"reasoning_signature": 1},
    ),
    "a refusal": (MISTRAL.response(Refusal("no"), stop="refusal"), {"content": "no"}, "stop", {"refusal_as_text": 1, "stop_reason": 1}),
    "members of another vendor": (
        MISTRAL.response(
            ToolCall(0, NINE, "look", "{}", extras={"caller": {}}), Aside("anthropic", "citation", "c", {}), vendor="anthropic",
            extras={"container": {}}, stop="tool_calls",
        ),
        {"tool_calls": [call()]}, "tool_calls", {"metadata": 1, "citation": 1, "response_fields": 1},
    ),
    "parts that no client could read": (
        MISTRAL.response(Aside("mistral", "unknown_event", "content.x", 5), Text("a")), {"content": "a"}, "stop", {"unknown_event": 1},
    ),
}  # fmt: skip


# -- streams and bodies say the same -----------------------------------------------------------------------------------


def told(said: Response) -> list[Any]:
    """What a response says, for comparing it with what became of it; parts in order, as far as a stream has one."""
    return [
        (
            choice.index,
            choice.text + choice.refusal,
            choice.reasoning,
            [(nine_characters(each.id), each.name, each.arguments.strip() or "{}") for each in choice.tool_calls],
        )
        for choice in said.choices
    ]


@pytest.mark.parametrize(
    "vector", [vector for vector in VECTORS if vector.dialect == "mistral"], ids=lambda vector: vector.name
)
async def test_a_stream_as_a_whole_body_says_the_same(vector):
    if vector.fault is not None:
        pytest.skip("the stream can't be read")
    streamed = await collect(source_of([vector.body]), "mistral")
    report = StreamReport()
    found = decode_response(encode_response(streamed, "mistral", report=report), "mistral")
    if not streamed.clean:
        assert found.error is not None
        return
    assert found.report.repairs == Counter()
    withheld = {entry.arguments for entry in report.withheld}
    kept = [each for each in told(streamed)[0][3] if each[2] not in withheld]
    assert told(found)[0] == (*told(streamed)[0][:3], kept)
    kept = [aside.raw for aside in streamed.choices[0].asides if aside.type != "field"]  # a value of a wrong type
    assert [aside.raw for aside in found.choices[0].asides] == kept
    assert (found.usage, found.id, found.created) == (streamed.usage, streamed.id, streamed.created)


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MESSAGES)
def test_the_official_client_reads_it(client, replay, name):
    message, finish, parts = MESSAGES[name]
    stop = {"model_length": "context_full"}.get(finish, finish)
    written, _ = MISTRAL.write(MISTRAL.response(*parts, stop=stop))
    model = replay.register(orjson.dumps(written), "application/json")
    completion = client("mistralai.client").chat.complete(model=model, messages=[{"role": "user", "content": "hi"}])
    seen = completion.choices[0]
    assert seen.finish_reason == finish
    assert [each.id for each in seen.message.tool_calls or ()] == [each["id"] for each in message.get("tool_calls", ())]
    chunks = seen.message.content if isinstance(seen.message.content, list) else [seen.message]
    assert [getattr(chunk, "type", None) for chunk in chunks] == (
        [each["type"] for each in message["content"]] if isinstance(message.get("content"), list) else [None]
    )
    assert completion.usage.total_tokens == 18


def test_the_official_client_raises_for_an_error(client, replay):
    from mistralai.client.errors import ResponseValidationError  # noqa: PLC0415 - it may be missing

    model = replay.register(orjson.dumps(MISTRAL.write(MISTRAL.read(FLAT))[0]), "application/json")
    with pytest.raises(ResponseValidationError) as caught:
        client("mistralai.client").chat.complete(model=model, messages=[{"role": "user", "content": "hi"}])
    assert json.loads(caught.value.body) == FLAT


# -- all rows ----------------------------------------------------------------------------------------------------------

LOGPROBS = {"content": [{"token": "a", "logprob": -1}]}
CHOICES = whole({}, choices=[
    {**whole({"content": "a"})["choices"][0], "logprobs": LOGPROBS, "prompt_logprobs": LOGPROBS},
    {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
])  # fmt: skip
BARE = [{"function": {"name": "look", "arguments": "{}"}}, {"id": "null", "function": {"name": "f", "arguments": ""}}]


def message_row(message: dict[str, Any], finish: str, parts: list[Any]) -> Row:
    return MISTRAL.kept(whole(message, finish, service_tier="x"), parts, said={
        "clean": True, "choices[0].native_stop_reason": finish, "id": "i", "model": "m", "created": 1, "extras": {"service_tier": "x"},
        "usage.input_total": 11,
    })  # fmt: skip


def error_row(body: Any, kind: str, message: str, repairs: dict[str, int]) -> Row:
    return MISTRAL.failed(body, kind, message, repairs, at={"object": "error", "message": message}, losses={})


ROWS = {
    **rows("messages", MESSAGES, message_row),
    "choices with all that is beside the message": MISTRAL.kept(CHOICES, None, said={
        "choices[0].text": "a", "choices[1].text": "b", "choices[0].asides[0].type": "logprobs", "choices[0].asides[1].type": "choices.prompt_logprobs",
    }),
    "what the server says by default": Row(whole({"content": "a", "tool_calls": None, "prefix": False}), [Text("a")]),
    "arguments as an object": Row(
        whole({"tool_calls": [call(arguments={"a": 1.5})]}, "tool_calls"), None, {"choices[0].parts[0].arguments": '{"a": 1.5}'},
        options={"policy": STRICT},
    ),
    "calls without an id or an index": MISTRAL.mended(
        whole({"tool_calls": BARE}, "tool_calls"), {"id_missing": 2, "identity_blank": 1},
        **{"choices[0].parts[0].name": "look", "choices[0].parts[1].name": "f"},
    ),
    **rows("errors", ERRORS, error_row),
    **rows("errors that come back", [FLAT, {**FLAT, "raw_status_code": 429}], lambda body: MISTRAL.kept(body, None)),
    "an error of another dialect": MISTRAL.of_another(
        MISTRAL.response(clean=False, error=ProviderFailed("rate_limit", "slow down", "rate_limit_error", vendor="anthropic")),
        {**FLAT, "message": "slow down", "type": "rate_limit_exceeded", "code": None}, {"error_detail": 1},
    ),
    "a response that was cut": MISTRAL.of_another(
        MISTRAL.response(Text("a"), ToolCall(0, NINE, "look", '{"q"'), clean=False), None, {"answer_withheld": 1},
        at={"object": "error", "code": "stream_truncated"},
    ),
    **rows("of another kind", OTHERS, MISTRAL.refused),
    **rows("another dialect", FOREIGN, lambda said, message, finish, losses: MISTRAL.of_another(said, whole(message, finish), losses)),
    "the client demands counts": MISTRAL.of_another(MISTRAL.response(Text("a"), usage=None), whole({"content": "a"}, usage={}), None),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    MISTRAL.check(ROWS[name])
