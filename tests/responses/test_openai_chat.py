"""Whole responses of OpenAI Chat: read, written, and written for what other dialects said.

Source: dialects.md §1.2, §1.4, §1.6, §1.8, §7.1, §7.6; seeds.md S1.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.dialects.openai_chat.providers import ChatClient
from streamkit.errors import BrokenFrame, NeedsRepair, NotThisDialect
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.policy import LENIENT, STRICT
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_response, encode_response
from tests.responses.rows import Dialect, Row, rows
from tests.whole_answers import ANSWERING_WHOLE

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
COMPLETE = Verdict("complete")


def whole(message: dict[str, Any], finish: str | None = "stop", **beside: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    return {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **beside}


def call(call_id: str = "c1", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}, **more}


def without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """A body without what says nothing: members of messages that are null, no annotations, no log probabilities."""
    choices = []
    for choice in body.get("choices", ()):
        message = {name: value for name, value in choice["message"].items() if value not in (None, [])}
        choices.append({**{name: value for name, value in choice.items() if value is not None}, "message": message})
    return {**body, "choices": choices} if "choices" in body else body


CHAT = Dialect(
    "openai-chat", Response("openai-chat", id="i", model="m", created=1, vendor="openai", clean=True), without_nulls
)
DETAILS = [
    {"type": "reasoning.text", "text": "h", "signature": "S", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "D", "format": "openai-responses-v1", "index": 1},
    {"type": "reasoning.summary", "summary": "m", "index": 2},
]  # fmt: skip
CITATION = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}

AUDIO = {"id": "a", "data": "AA", "expires_at": 2, "transcript": "x"}

#: A message, its stop reason, and the parts that it says, both ways.
MESSAGES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "text": ({"content": "hi"}, "stop", [Text("hi")]),
    "no text": ({"content": ""}, "length", []),
    "a refusal": ({"refusal": "no"}, "stop", [Refusal("no")]),
    "calls": (
        {"content": "wait", "tool_calls": [call(), call("c2", '{"q": oops')]}, "tool_calls",
        [Text("wait"), ToolCall(0, "c1", "look", "{}", verdict=COMPLETE), ToolCall(1, "c2", "look", '{"q": oops', verdict=Verdict(
            "malformed", "a character that begins no value", 6,
        ))],
    ),
    "a custom call": (
        {"tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "run", "input": "1 + 1"}}]}, "tool_calls",
        [ToolCall(0, "c1", "run", "1 + 1", "custom", COMPLETE)],
    ),
    "a signed call": (
        {"tool_calls": [call(extra_content={"google": {"thought_signature": "S"}}, x=1)]}, "tool_calls",
        [ToolCall(0, "c1", "look", "{}", verdict=COMPLETE, signature=Opaque("google", "S"), extras={"x": 1})],
    ),
    "signed text": ({"content": "a", "extra_content": {"google": {"thought_signature": "S"}}}, "stop", [Text("a", Opaque("google", "S"))]),
    "reasoning": ({"content": "a", "reasoning_content": "hm"}, "stop", [Reasoning("hm"), Text("a")]),
    "details": (
        {"content": "a", "reasoning_content": "h\n\nm", "reasoning_details": DETAILS}, "stop",
        [
            Reasoning("h", signature=Opaque("anthropic", "S")), RedactedReasoning(Opaque("openai", "D")), Reasoning("m", "summary"),
            Text("a"),
        ],
    ),
    "beside the text": (
        {"content": "a", "annotations": [CITATION], "audio": AUDIO, "executed_tools": [1]}, "stop",
        [
            Text("a"), Aside("openai", "audio", "audio", AUDIO), Aside("openai", "citation", "annotation", CITATION),
            Aside("openai", "metadata", "delta.executed_tools", [1]),
        ],
    ),
}  # fmt: skip


def test_an_answer_has_what_the_schema_requires():
    """llm-comply 0.5 asks for each of these members."""
    for part in Text("a"), ToolCall(0, "c1", "look", "{}", ended=True):
        written, _ = CHAT.write(CHAT.response(part))
        (choice,) = written["choices"]
        assert choice.keys() == {"index", "message", "finish_reason", "logprobs"}
        assert choice["logprobs"] is None
        assert choice["message"].keys() >= {"role", "content", "refusal", "annotations"}
        assert (choice["message"]["refusal"], choice["message"]["annotations"]) == (None, [])


MENDED = [
    ({"tool_calls": [{**call(), "function": {"name": "look", "arguments": {"q": 1.0}}}]}, {}, {"arguments_not_text": 1}),
    ({"tool_calls": [{"type": "function", "function": {"name": "look", "arguments": "{}"}}]}, {}, {"id_missing": 1}),
    ({"content": [{"type": "text", "text": "a"}]}, {}, {"content_as_list": 1}),
    ({"tool_calls": call()}, {}, {"list_missing": 1}),
    ({"tool_calls": {"0": call()}}, {}, {"list_missing": 1}),
    ({"function_call": {"name": "look", "arguments": "{}"}}, {}, {}),
    ({"function_call": {"name": "look", "arguments": "{}"}, "tool_calls": [call()]}, {}, {"said_twice": 1}),
]  # fmt: skip


def test_the_policy_says_what_is_tolerated():
    with pytest.raises(NeedsRepair):
        CHAT.read(whole({"content": [{"type": "text", "text": "a"}]}), policy=STRICT)
    unfinished = whole({"content": "a"}, None)
    assert not CHAT.read(unfinished).clean
    assert CHAT.read(unfinished).choices[0].stop_reason is None
    assert CHAT.read(unfinished, policy=LENIENT).clean
    assert CHAT.read(whole({"tool_calls": [call()]}, None)).report.repairs == {"finish_derived": 1}


# -- errors ------------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[Any, str, str, dict[str, int]]] = [
    ({"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": None}}, "invalid_request", "m", {}),
    ({"error": {"message": "m", "code": 429, "metadata": {"raw": "r"}}, "user_id": "u"}, "rate_limit", "m", {}),
    ({"error": "m"}, "server", "m", {"error_shape": 1}),
    ({"object": "error", "message": "m", "type": "invalid_request_error", "code": 400}, "invalid_request", "m", {"error_shape": 1}),
    ({"detail": "m"}, "server", "m", {"error_shape": 1}),
    ({"error": {"message": "m", "code": 502}, "choices": [{"index": 0, "message": {}, "finish_reason": "error"}]}, "server", "m", {}),
]  # fmt: skip

OTHERS = [
    (b"", NotThisDialect),
    (b"<html>502</html>", NotThisDialect),
    (b'data: {"choices": []}\n\n', NotThisDialect),
    (b"[]", NotThisDialect),
    (b'{"type": "message", "content": []}', NotThisDialect),
    (b'{"model": "m", "message": {"role": "assistant", "content": "a"}, "done": true}', NotThisDialect),
    (b'{"object": "text_completion", "choices": [{"text": "a", "index": 0}]}', NotThisDialect),
    (b'{"choices": [', BrokenFrame),
]  # fmt: skip


# -- writing what others said ------------------------------------------------------------------------------------------

FOREIGN: dict[str, tuple[Response, dict[str, Any], str, dict[str, int]]] = {
    "several texts": (CHAT.response(Text("a"), Text("b")), {"content": "ab"}, "stop", {"block_boundary": 1}),
    "text behind a call": (
        CHAT.response(ToolCall(0, "c1", "look", ""), Text("a"), stop="tool_calls"), {"content": "a", "tool_calls": [call()]}, "tool_calls",
        {"block_order": 1},
    ),
    "unsigned reasoning in blocks": (
        CHAT.response(Reasoning("a"), Reasoning("b"), Text("c")), {"content": "c", "reasoning_content": "a\n\nb"}, "stop", {"block_boundary": 1},
    ),
    "a call without a name": (
        CHAT.response(ToolCall(0, "c1", "", "{}"), stop="tool_calls"), {"content": ""}, "length", {"call_withheld": 1, "stop_reason": 1},
    ),
    "a refusal": (CHAT.response(Refusal("no"), stop="refusal"), {"refusal": "no"}, "stop", {}),
    "a refusal without words": (CHAT.response(Text("a"), stop="refusal"), {"content": "a"}, "content_filter", {"stop_reason": 1}),
    "members of another vendor": (
        CHAT.response(
            ToolCall(0, "c1", "look", "{}", extras={"caller": {}}), Aside("anthropic", "citation", "c", {}), vendor="anthropic",
            extras={"container": {}}, stop="tool_calls",
        ),
        {"tool_calls": [call()]}, "tool_calls", {"metadata": 1, "citation": 1, "response_fields": 1},
    ),
    "asides in pieces": (
        CHAT.response(
            Text("a"), Aside("openai", "audio", "audio", {"id": "a", "data": "AA", "transcript": "x"}),
            Aside("openai", "audio", "audio", {"data": "BB", "transcript": "y", "expires_at": 2}),
            Aside("openai", "metadata", "delta.token_id", 1), Aside("openai", "metadata", "delta.token_id", 2),
            Aside("openai", "unknown_event", "field", 5),
        ),
        {"content": "a", "audio": {"id": "a", "data": "AABB", "transcript": "xy", "expires_at": 2}, "token_id": 1}, "stop",
        {"metadata": 1, "unknown_event": 1},
    ),
}  # fmt: skip


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MESSAGES)
def test_the_official_client_reads_it(client, replay, name):
    message, finish, parts = MESSAGES[name]
    written, _ = CHAT.write(CHAT.response(*parts, stop=finish, usage=UsageReported(11, None, None, 7, None, 18)))
    model = replay.register(orjson.dumps(written), "application/json")
    completion = client("openai").chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
    type(completion).model_validate(completion.model_dump(exclude_none=True))  # what came is what its types promise
    seen = completion.choices[0]
    assert seen.finish_reason == finish
    assert (seen.message.content or "") == (message.get("content") or "")
    assert seen.message.refusal == message.get("refusal")
    assert [each.id for each in seen.message.tool_calls or ()] == [each["id"] for each in message.get("tool_calls", ())]
    assert completion.usage.total_tokens == 18


@pytest.mark.parametrize("indices", [(None, None), (0, 0), ("0", "0"), (1, 1), (0, None), (None, 0)])
@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
def test_each_choice_of_a_body_is_an_answer_of_its_own(dialect, indices):
    choices = [
        {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        | ({} if index is None else {"index": index})
        for text, index in zip("AB", indices, strict=True)
    ]
    report = StreamReport()
    response = decode_response(orjson.dumps({**whole({}), "choices": choices}), dialect, report=report)
    assert [choice.text for choice in response.choices] == ["A", "B"]
    assert set(report.repairs) <= {"choice_index_missing", "index_reused", "index_invalid"}
    assert report.repairs


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
def test_a_byte_order_mark_before_a_body_is_passed_over(dialect):
    response = CHAT.read(whole({"content": "Hi"}))
    body = encode_response(response, dialect)
    report = StreamReport()
    assert decode_response(b"\xef\xbb\xbf" + body, dialect, report=report).choices[0].text == "Hi"
    assert not report.repairs


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000])
@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
def test_calls_numbered_by_what_is_no_number_are_read(dialect, number):
    function = {"name": "f", "arguments": "{}"}
    body = whole({"tool_calls": {number: {"id": "a", "function": function}}}, "tool_calls")
    response = decode_response(json.dumps(body).encode(), dialect)
    assert [call.name for call in response.choices[0].tool_calls] == ["f"]


def split(*choices: tuple[dict[str, Any], str]) -> dict[str, Any]:
    body = whole({"content": ""}, "stop")
    parts = [
        {"index": number, "message": {"role": "assistant", **message}, "finish_reason": reason}
        for number, (message, reason) in enumerate(choices)
    ]
    return {**body, "choices": parts}


CALLED = [call(), call(id="c2")]

ALTERNATIVES = [
    (({"content": "A"}, "stop"), ({"tool_calls": CALLED[:1]}, "tool_calls")),
    (({"content": "A", "tool_calls": CALLED[:1]}, "tool_calls"), ({"tool_calls": CALLED[1:]}, "tool_calls")),
    (({"content": "A"}, "stop"), ({"content": "B"}, "stop")),
]  # fmt: skip


# -- all rows ----------------------------------------------------------------------------------------------------------

LOGPROBS = {"content": [{"token": "a", "logprob": -1}], "refusal": None}
CHOICES = whole({}, choices=[
    {**whole({"content": "a"})["choices"][0], "logprobs": LOGPROBS, "content_filter_results": {"hate": 1}},
    {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
])  # fmt: skip
THINKING = [{"type": "thinking", "thinking": text, "signature": "c2ln"} for text in "AB"]
REDACTED = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
SPLIT = split(
    ({"content": "I look."}, "tool_calls"), ({"content": None, "tool_calls": CALLED[:1]}, "tool_calls"), ({"tool_calls": CALLED[1:]}, "tool_calls")
)  # fmt: skip


def message_row(message: dict[str, Any], finish: str, parts: list[Any]) -> Row:
    return CHAT.kept(whole(message, finish, usage=USAGE, system_fingerprint="f"), parts, said={
        "clean": True, "choices[0].native_stop_reason": finish, "id": "i", "model": "m", "created": 1, "usage.input_total": 11,
        "extras": {"system_fingerprint": "f"},
    })  # fmt: skip


def mended_row(message: dict[str, Any], beside: dict[str, Any], repairs: dict[str, int]) -> Row:
    calls = "content" not in message
    return CHAT.mended(whole(message, "stop", **beside), {**repairs, "stop_with_calls": 1} if calls else repairs, **(
        {"choices[0].parts[0].name": "look"} if calls else {"choices[0].tool_calls": []}
    ))  # fmt: skip


def error_row(body: Any, kind: str, message: str, repairs: dict[str, int]) -> Row:
    return CHAT.failed(body, kind, message, repairs, at={"error.message": message})


ROWS = {
    **rows("messages", MESSAGES, message_row),
    "choices with all that is beside the message": CHAT.kept(CHOICES, None, said={
        "choices[0].text": "a", "choices[1].text": "b", "choices[0].asides[0].type": "logprobs",
        "choices[0].asides[1].type": "choices.content_filter_results",
    }),
    **rows("mended", MENDED, mended_row),
    "a call that the length cut off": Row(whole({"tool_calls": [call(arguments='{"q": ')]}, "length"), None, {
        "choices[0].parts[0].verdict.kind": "truncated", "choices[0].stop_reason": "length",
    }),
    **rows("errors", ERRORS, error_row),
    "an error that comes back": CHAT.kept(ERRORS[0][0], None),
    **rows("of another kind", OTHERS, lambda body, error: CHAT.refused(body, error, body[:10].decode())),
    **rows("another dialect", FOREIGN, lambda said, message, finish, losses: CHAT.of_another(said, whole(message, finish), losses)),
    "logprobs in pieces": CHAT.of_another(
        CHAT.response(Text("a"), *[Aside("openai", "logprobs", "logprobs", {"content": [n], "refusal": None}) for n in (1, 2)]), None, None,
        at={"choices[0].logprobs": {"content": [1, 2], "refusal": None}},
    ),
    "a stop sequence": CHAT.of_another(
        evolve(CHAT.foreign, choices=[Choice(parts=[Text("a")], stop_reason="stop_sequence", stop_sequence="x")]), whole({"content": "a"}),
        {"stop_reason": 1, "stop_sequence": 1},
    ),
    "counts of another dialect": CHAT.of_another(
        CHAT.response(Text("a"), usage=UsageReported(10, 4, None, 5, 2, None)),
        whole({"content": "a"}, usage={
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 2},
        }), None,
    ),
    "the profile says where reasoning goes": CHAT.of_another(
        CHAT.response(Reasoning("h", signature=Opaque("anthropic", "S")), RedactedReasoning(Opaque("openai", "D")), Text("a")),
        whole({"content": "a", "reasoning": "h"}), {"reasoning_signature": 1, "reasoning_opaque": 1},
        target={"profile": ChatClient(reasoning_fields=("reasoning",), reasoning_details=False)},
    ),
    "a response that was cut": CHAT.of_another(
        CHAT.response(Text("a"), ToolCall(0, "c1", "look", '{"q"'), clean=False), None, {"answer_withheld": 1}, withheld=1,
        at={"error.code": "stream_truncated", "choices": ...},
    ),
    "an error of another dialect": CHAT.of_another(
        CHAT.response(clean=False, error=ProviderFailed("rate_limit", "slow down", "rate_limit_error", vendor="anthropic")),
        {"error": {"message": "slow down", "type": "rate_limit_exceeded", "param": None, "code": None}}, None,
    ),
    "blocks of LiteLLM": Row(
        whole({"content": "Hi", "reasoning_content": "AB", "thinking_blocks": [*THINKING, REDACTED]}),
        [
            Reasoning("A", signature=Opaque("anthropic", "c2ln")), Reasoning("B", signature=Opaque("anthropic", "c2ln")),
            RedactedReasoning(Opaque("anthropic", "ZGF0YQ==")), Text("Hi"),
        ],
    ),
    "text and calls in several choices": Row(
        SPLIT, None,
        {
            "choices[0].text": "I look.", "choices[0].tool_calls[0].id": "c1", "choices[0].tool_calls[1].id": "c2",
            "choices[0].stop_reason": "tool_calls", "choices[1]": ...,
        },
        {"choices_split": 2},
    ),
    **rows("alternatives", ALTERNATIVES, lambda *choices: Row(split(*choices), None, {"choices[1].index": 1, "choices[2]": ...}, None)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    CHAT.check(ROWS[name])
