"""Whole responses of OpenAI Chat: read, written, and written for what other dialects said.

Source: dialects.md §1.2, §1.4, §1.6, §1.8, §7.1, §7.6; seeds.md S1.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.dialects import DIALECTS
from streamkit.dialects.openai_chat.providers import ChatClient
from streamkit.errors import BrokenFrame, NeedsRepair, NotThisDialect
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.policy import LENIENT, STRICT
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.corpora import recordings
from tests.whole_answers import ANSWERING_WHOLE

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
COMPLETE = Verdict("complete")


def whole(message: dict[str, Any], finish: str | None = "stop", **beside: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish}
    return {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **beside}


def read(body: dict[str, Any], dialect: str = "openai-chat", **options: Any) -> Response:
    report = options.pop("report", None)
    return decode_response(json.dumps(body).encode(), dialect, ReadOptions(**options), report=report)


def write(response: Response, to: str = "openai-chat", **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    fixed = {"make_id": lambda prefix: f"{prefix}1", "clock": lambda: 1.0}
    return json.loads(encode_response(response, to, report=report, **fixed, **options)), report


def response(*parts: Any, stop: Any = "stop", vendor: str = "openai", **members: Any) -> Response:
    choice = Choice(parts=list(parts), stop_reason=stop)
    return Response("openai-chat", id="i", model="m", created=1, vendor=vendor, choices=[choice], clean=True, **members)


def call(call_id: str = "c1", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}, **more}


DETAILS = [
    {"type": "reasoning.text", "text": "h", "signature": "S", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "D", "format": "openai-responses-v1", "index": 1},
    {"type": "reasoning.summary", "summary": "m", "index": 2},
]
CITATION = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}

AUDIO = {"id": "a", "data": "AA", "expires_at": 2, "transcript": "x"}

#: A message, its stop reason, and the parts that it says, both ways.
MESSAGES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "text": ({"content": "hi"}, "stop", [Text("hi")]),
    "no text": ({"content": ""}, "length", []),
    "a refusal": ({"refusal": "no"}, "stop", [Refusal("no")]),
    "calls": (
        {"content": "wait", "tool_calls": [call(), call("c2", '{"q": oops')]},
        "tool_calls",
        [
            Text("wait"),
            ToolCall(0, "c1", "look", "{}", verdict=COMPLETE),
            ToolCall(1, "c2", "look", '{"q": oops', verdict=Verdict("malformed", "a character that begins no value", 6)),
        ],
    ),
    "a custom call": (
        {"tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "run", "input": "1 + 1"}}]},
        "tool_calls",
        [ToolCall(0, "c1", "run", "1 + 1", "custom", COMPLETE)],
    ),
    "a signed call": (
        {"tool_calls": [call(extra_content={"google": {"thought_signature": "S"}}, x=1)]},
        "tool_calls",
        [ToolCall(0, "c1", "look", "{}", verdict=COMPLETE, signature=Opaque("google", "S"), extras={"x": 1})],
    ),
    "signed text": (
        {"content": "a", "extra_content": {"google": {"thought_signature": "S"}}},
        "stop",
        [Text("a", Opaque("google", "S"))],
    ),
    "reasoning": ({"content": "a", "reasoning_content": "hm"}, "stop", [Reasoning("hm"), Text("a")]),
    "details": (
        {"content": "a", "reasoning_content": "h\n\nm", "reasoning_details": DETAILS},
        "stop",
        [
            Reasoning("h", signature=Opaque("anthropic", "S")),
            RedactedReasoning(Opaque("openai", "D")),
            Reasoning("m", "summary"),
            Text("a"),
        ],
    ),
    "beside the text": (
        {"content": "a", "annotations": [CITATION], "audio": AUDIO, "executed_tools": [1]},
        "stop",
        [
            Text("a"),
            Aside("openai", "audio", "audio", AUDIO),
            Aside("openai", "citation", "annotation", CITATION),
            Aside("openai", "metadata", "delta.executed_tools", [1]),
        ],
    ),
}  # fmt: skip


def without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """A body without what says nothing: members of messages that are null, no annotations, no log probabilities."""
    for choice in body["choices"]:
        choice["message"] = {name: value for name, value in choice["message"].items() if value not in (None, [])}
        if choice.get("logprobs", 0) is None:
            del choice["logprobs"]
    return body


def test_an_answer_has_what_the_schema_requires():
    """llm-comply 0.5 asks for each of these members."""
    for part in Text("a"), ToolCall(0, "c1", "look", "{}", ended=True):
        written, _ = write(response(part))
        (choice,) = written["choices"]
        assert choice.keys() == {"index", "message", "finish_reason", "logprobs"}
        assert choice["logprobs"] is None
        assert choice["message"].keys() >= {"role", "content", "refusal", "annotations"}
        assert (choice["message"]["refusal"], choice["message"]["annotations"]) == (None, [])


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_parts_and_come_back(name):
    message, finish, parts = MESSAGES[name]
    body = whole(message, finish, usage=USAGE, system_fingerprint="f")
    found = read(body)
    assert found.clean
    assert found.choices[0].parts == parts
    assert (found.choices[0].native_stop_reason, found.id, found.model, found.created) == (finish, "i", "m", 1)
    assert (found.usage.input_total, found.extras) == (11, {"system_fingerprint": "f"})
    assert not found.report.repairs
    written, report = write(found)
    expected = whole(message, finish, usage=USAGE, system_fingerprint="f")
    assert without_nulls(written) == without_nulls(expected)
    assert not report.losses


def test_choices_with_all_that_stands_beside_the_message():
    logprobs = {"content": [{"token": "a", "logprob": -1}], "refusal": None}
    body = whole({"content": "a"}, logprobs=None)
    body["choices"] = [
        {**body["choices"][0], "logprobs": logprobs, "content_filter_results": {"hate": 1}},
        {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
    ]
    found = read(body)
    assert [choice.text for choice in found.choices] == ["a", "b"]
    assert [aside.type for aside in found.choices[0].asides] == ["logprobs", "choices.content_filter_results"]
    written, report = write(found)
    del body["logprobs"]
    assert without_nulls(written) == without_nulls(body)
    assert not report.losses


@pytest.mark.parametrize(
    ("message", "beside", "repairs"),
    [
        ({"tool_calls": [{**call(), "function": {"name": "look", "arguments": {"q": 1.0}}}]}, {}, {"arguments_not_text": 1}),
        ({"tool_calls": [{"type": "function", "function": {"name": "look", "arguments": "{}"}}]}, {}, {"id_missing": 1}),
        ({"content": [{"type": "text", "text": "a"}]}, {}, {"content_as_list": 1}),
        ({"tool_calls": call()}, {}, {"list_missing": 1}),
        ({"tool_calls": {"0": call()}}, {}, {"list_missing": 1}),
        ({"function_call": {"name": "look", "arguments": "{}"}}, {}, {}),
        ({"function_call": {"name": "look", "arguments": "{}"}, "tool_calls": [call()]}, {}, {"said_twice": 1}),
    ],
)  # fmt: skip
def test_what_providers_get_wrong_is_a_counted_repair(message, beside, repairs):
    found = read(whole(message, "stop", **beside))
    repairs = {**repairs, "stop_with_calls": 1} if "content" not in message else repairs
    assert dict(found.report.repairs) == repairs
    assert len(found.tool_calls) == ("content" not in message)
    assert found.clean


def test_arguments_as_an_object_keep_their_text():
    body = json.dumps(whole({"tool_calls": [call()]}, "tool_calls")).encode()
    found = decode_response(body.replace(b'"{}"', b'{"a": 1.0, "b": 18446744073709551616}'), "openai-chat")
    assert found.tool_calls[0].arguments == '{"a": 1.0, "b": 18446744073709551616}'


def test_the_policy_says_what_is_tolerated():
    with pytest.raises(NeedsRepair):
        read(whole({"content": [{"type": "text", "text": "a"}]}), policy=STRICT)
    unfinished = whole({"content": "a"}, None)
    assert not read(unfinished).clean
    assert read(unfinished).choices[0].stop_reason is None
    assert read(unfinished, policy=LENIENT).clean
    assert read(whole({"tool_calls": [call()]}, None)).report.repairs == {"finish_derived": 1}


def test_a_call_that_the_length_cut_off_is_truncated():
    found = read(whole({"tool_calls": [call(arguments='{"q": ')]}, "length"))
    assert (found.tool_calls[0].verdict.kind, found.choices[0].stop_reason) == ("truncated", "length")


# -- errors ------------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[Any, str, str, dict[str, int]]] = [
    ({"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": None}}, "invalid_request", "m", {}),
    ({"error": {"message": "m", "code": 429, "metadata": {"raw": "r"}}, "user_id": "u"}, "rate_limit", "m", {}),
    ({"error": "m"}, "server", "m", {"error_shape": 1}),
    ({"object": "error", "message": "m", "type": "invalid_request_error", "code": 400}, "invalid_request", "m", {"error_shape": 1}),
    ({"detail": "m"}, "server", "m", {"error_shape": 1}),
    ({"error": {"message": "m", "code": 502}, "choices": [{"index": 0, "message": {}, "finish_reason": "error"}]}, "server", "m", {}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "message", "repairs"), ERRORS)
def test_an_error_body_is_no_exception(body, kind, message, repairs):
    found = read(body)
    assert (found.error.type, found.error.message, found.clean) == (kind, message, False)
    assert dict(found.report.repairs) == repairs
    assert found.report.provider_error == (kind, message)
    written, _ = write(found)
    assert written["error"]["message"] == message


def test_an_error_of_the_dialect_comes_back_as_it_was():
    body = ERRORS[0][0]
    assert write(read(body))[0] == body


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", NotThisDialect),
        (b"<html>502</html>", NotThisDialect),
        (b'data: {"choices": []}\n\n', NotThisDialect),
        (b"[]", NotThisDialect),
        (b'{"type": "message", "content": []}', NotThisDialect),
        (b'{"model": "m", "message": {"role": "assistant", "content": "a"}, "done": true}', NotThisDialect),
        (b'{"object": "text_completion", "choices": [{"text": "a", "index": 0}]}', NotThisDialect),
        (b'{"choices": [', BrokenFrame),
    ],
)
def test_a_body_of_another_kind_is_refused_with_what_was_found(body, error):
    report = StreamReport()
    with pytest.raises(error) as caught:
        decode_response(body, "openai-chat", report=report)
    assert body[:10].decode() in str(caught.value)
    assert report.error is caught.value


# -- writing what others said ------------------------------------------------------------------------------------------

FOREIGN: dict[str, tuple[Response, dict[str, Any], str, dict[str, int]]] = {
    "several texts": (response(Text("a"), Text("b")), {"content": "ab"}, "stop", {"block_boundary": 1}),
    "text behind a call": (
        response(ToolCall(0, "c1", "look", ""), Text("a"), stop="tool_calls"),
        {"content": "a", "tool_calls": [call()]},
        "tool_calls",
        {"block_order": 1},
    ),
    "unsigned reasoning in blocks": (
        response(Reasoning("a"), Reasoning("b"), Text("c")),
        {"content": "c", "reasoning_content": "a\n\nb"},
        "stop",
        {"block_boundary": 1},
    ),
    "a call without a name": (
        response(ToolCall(0, "c1", "", "{}"), stop="tool_calls"),
        {"content": ""},
        "length",
        {"call_withheld": 1, "stop_reason": 1},
    ),
    "a refusal": (response(Refusal("no"), stop="refusal"), {"refusal": "no"}, "stop", {}),
    "a refusal without words": (
        response(Text("a"), stop="refusal"),
        {"content": "a"},
        "content_filter",
        {"stop_reason": 1},
    ),
    "members of another vendor": (
        response(
            ToolCall(0, "c1", "look", "{}", extras={"caller": {}}),
            Aside("anthropic", "citation", "c", {}),
            vendor="anthropic",
            extras={"container": {}},
            stop="tool_calls",
        ),
        {"tool_calls": [call()]},
        "tool_calls",
        {"metadata": 1, "citation": 1, "response_fields": 1},
    ),
    "asides in pieces": (
        response(
            Text("a"),
            Aside("openai", "audio", "audio", {"id": "a", "data": "AA", "transcript": "x"}),
            Aside("openai", "audio", "audio", {"data": "BB", "transcript": "y", "expires_at": 2}),
            Aside("openai", "metadata", "delta.token_id", 1),
            Aside("openai", "metadata", "delta.token_id", 2),
            Aside("openai", "unknown_event", "field", 5),
        ),
        {
            "content": "a",
            "audio": {"id": "a", "data": "AABB", "transcript": "xy", "expires_at": 2},
            "token_id": 1,
        },
        "stop",
        {"metadata": 1, "unknown_event": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_what_a_message_cannot_say_is_a_counted_loss(name):
    said, message, finish, losses = FOREIGN[name]
    written, report = write(said)
    assert without_nulls(written) == without_nulls(whole(message, finish))
    assert dict(report.losses) == losses


def test_logprobs_that_came_in_pieces_are_joined():
    pieces = [Aside("openai", "logprobs", "logprobs", {"content": [number], "refusal": None}) for number in (1, 2)]
    written, _ = write(response(Text("a"), *pieces))
    assert written["choices"][0]["logprobs"] == {"content": [1, 2], "refusal": None}


def test_a_stop_sequence_is_lost():
    said = response(Text("a"), stop="stop_sequence")
    said.choices[0].stop_sequence = "x"
    written, report = write(said)
    assert written["choices"][0]["finish_reason"] == "stop"
    assert report.losses == {"stop_reason": 1, "stop_sequence": 1}


def test_counts_of_another_dialect():
    written, _ = write(response(Text("a"), usage=UsageReported(10, 4, None, 5, 2, None)))
    assert written["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


def test_the_profile_says_where_reasoning_goes():
    said = response(
        Reasoning("h", signature=Opaque("anthropic", "S")), RedactedReasoning(Opaque("openai", "D")), Text("a")
    )
    profile = ChatClient(reasoning_fields=("reasoning",), reasoning_details=False)
    written, report = write(said, profile=profile)
    assert without_nulls(written) == without_nulls(whole({"content": "a", "reasoning": "h"}))
    assert report.losses == {"reasoning_signature": 1, "reasoning_opaque": 1}


def test_a_response_that_was_cut_is_an_error_and_never_an_answer():
    said = response(Text("a"), ToolCall(0, "c1", "look", '{"q"'))
    said.clean = False
    written, report = write(said)
    assert written["error"]["code"] == "stream_truncated"
    assert written.keys() == {"error"}
    assert report.losses == {"answer_withheld": 1}
    assert [withheld.arguments for withheld in report.withheld] == ['{"q"']


def test_an_error_of_another_dialect():
    said = response()
    said.clean, said.error = False, ProviderFailed("rate_limit", "slow down", "rate_limit_error", vendor="anthropic")
    assert write(said)[0] == {
        "error": {"message": "slow down", "type": "rate_limit_exceeded", "param": None, "code": None}
    }


# -- streams and bodies say the same -----------------------------------------------------------------------------------


def told(said: Response) -> list[Any]:
    """What a response says, for comparing it with what became of it."""
    return [
        (
            choice.index,
            choice.text,
            choice.refusal,
            choice.reasoning,
            [(each.id, each.name, each.arguments.strip() or "{}", each.kind, each.ended) for each in choice.tool_calls],
        )
        for choice in said.choices
    ]


async def test_a_recorded_stream_as_a_whole_body_says_the_same():
    for recorded in recordings("openai-chat"):
        streamed = await collect(source_of([recorded.body]), "openai-chat")
        if not streamed.clean:
            continue
        report = StreamReport()
        found = decode_response(encode_response(streamed, "openai-chat", report=report), "openai-chat")
        assert told(found) == told(streamed), recorded.name
        assert (found.usage, found.id, found.created) == (streamed.usage, streamed.id, streamed.created), recorded.name
        assert [choice.stop_reason for choice in found.choices] == [choice.stop_reason for choice in streamed.choices]
        assert found.report.repairs == Counter(), recorded.name
        assert found.clean


@pytest.mark.parametrize("source", [name for name in DIALECTS.built_in if name != "openai-chat"])
async def test_a_recorded_stream_of_another_dialect_becomes_a_body(source):
    for recorded in recordings(source):
        streamed = await collect(source_of([recorded.body]), source)
        found = decode_response(encode_response(streamed, "openai-chat"), "openai-chat")
        if streamed.clean:
            assert told(found) == told(streamed), recorded.name
        else:
            assert found.error is not None


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MESSAGES)
def test_the_official_client_reads_it(client, replay, name):
    message, finish, parts = MESSAGES[name]
    written, _ = write(response(*parts, stop=finish, usage=UsageReported(11, None, None, 7, None, 18)))
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
    response = read({**whole({}), "choices": choices}, dialect, report=report)
    assert [choice.text for choice in response.choices] == ["A", "B"]
    assert set(report.repairs) <= {"choice_index_missing", "index_reused", "index_invalid"}
    assert report.repairs


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
def test_a_byte_order_mark_before_a_body_is_passed_over(dialect):
    response = read(whole({"content": "Hi"}))
    body = encode_response(response, dialect)
    report = StreamReport()
    assert decode_response(b"\xef\xbb\xbf" + body, dialect, report=report).choices[0].text == "Hi"
    assert not report.repairs


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000])
@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
def test_calls_numbered_by_what_is_no_number_are_read(dialect, number):
    function = {"name": "f", "arguments": "{}"}
    response = read(whole({"tool_calls": {number: {"id": "a", "function": function}}}, "tool_calls"), dialect)
    assert [call.name for call in response.choices[0].tool_calls] == ["f"]


def test_blocks_of_litellm_are_blocks():
    blocks = [{"type": "thinking", "thinking": text, "signature": "c2ln"} for text in "AB"]
    redacted = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
    found = read(whole({"content": "Hi", "reasoning_content": "AB", "thinking_blocks": [*blocks, redacted]}, "stop"))
    assert found.choices[0].parts == [
        Reasoning("A", signature=Opaque("anthropic", "c2ln")),
        Reasoning("B", signature=Opaque("anthropic", "c2ln"), block=1),
        RedactedReasoning(Opaque("anthropic", "ZGF0YQ=="), block=2),
        Text("Hi"),
    ]


def split(*choices: tuple[dict[str, Any], str]) -> dict[str, Any]:
    body = whole({"content": ""}, "stop")
    parts = [
        {"index": number, "message": {"role": "assistant", **message}, "finish_reason": reason}
        for number, (message, reason) in enumerate(choices)
    ]
    return {**body, "choices": parts}


CALLED = [call(), call(id="c2")]


def test_text_and_calls_in_several_choices_are_one_message():
    body = split(
        ({"content": "I look."}, "tool_calls"),
        ({"content": None, "tool_calls": CALLED[:1]}, "tool_calls"),
        ({"tool_calls": CALLED[1:]}, "tool_calls"),
    )
    found = read(body)
    [choice] = found.choices
    assert (choice.text, [each.id for each in choice.tool_calls], choice.stop_reason) == (
        "I look.",
        ["c1", "c2"],
        "tool_calls",
    )
    assert found.report.repairs == {"choices_split": 2}
    claude = json.loads(encode_response(found, "anthropic"))
    assert [block["type"] for block in claude["content"]] == ["text", "tool_use", "tool_use"]


@pytest.mark.parametrize(
    "choices",
    [
        (({"content": "A"}, "stop"), ({"tool_calls": CALLED[:1]}, "tool_calls")),
        (({"content": "A", "tool_calls": CALLED[:1]}, "tool_calls"), ({"tool_calls": CALLED[1:]}, "tool_calls")),
        (({"content": "A"}, "stop"), ({"content": "B"}, "stop")),
    ],
)
def test_alternatives_stay_alternatives(choices):
    found = read(split(*choices))
    assert len(found.choices) == 2
    assert not found.report.repairs["choices_split"]
