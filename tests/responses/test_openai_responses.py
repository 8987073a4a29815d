"""Whole responses of OpenAI Responses: read, written, and written for what other dialects said.

Source: dialects.md §2.1, §2.2, §2.4, §7.1, §7.2, §7.5, §7.6; quirks.md R14.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.dialects.openai_responses.encode import settings_of
from streamkit.dialects.profiles import Profile
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BrokenFrame, NeedsRepair, NotThisDialect, TooManyBlocks
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.limits import Limits
from streamkit.policy import STRICT
from streamkit.recipes import collect
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.tool_calls.check import NOT_ENDED
from streamkit.translation.bodies import decode_request, decode_response, encode_response
from tests.corpora import recordings
from tests.responses.rows import Dialect, Row, rows
from tests.vectors.openai_responses import VECTORS

VENDOR = "openai-responses"
USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 14,
}  # fmt: skip
COUNTS = UsageReported(9, 4, 1, 5, 2, 14)
COMPLETE = Verdict("complete")
CITATION = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
LOGPROB = {"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
COMPACTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "E"}
#: What a response says of its request, and must say.
ECHO = {
    "background": False,
    "completed_at": None,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}  # fmt: skip


def whole(*output: Any, status: str | None = "completed", reason: str | None = None, **beside: Any) -> dict[str, Any]:
    said = {"id": "resp_7", "object": "response", "created_at": 1, "model": "m", "status": status, "error": None}
    details = None if reason is None else {"reason": reason}
    return {**said, "incomplete_details": details, **ECHO, "output": list(output), "usage": USAGE, **beside}


def message(*content: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": list(content),
        **more,
    }


def text(said: str, annotations: Any = (), logprobs: Any = ()) -> dict[str, Any]:
    return {"type": "output_text", "text": said, "annotations": list(annotations), "logprobs": list(logprobs)}


def thought(*texts: str, raw: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    item = {"id": "rs_1", "type": "reasoning", "status": "completed"}
    summary = [{"type": "summary_text", "text": each} for each in texts]
    content = {"content": [{"type": "reasoning_text", "text": each} for each in raw]} if raw else {}
    return {**item, "summary": summary, **content, **more}


def called(call_id: str = "c1", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    item = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": call_id, "name": "look"}
    return {**item, "arguments": arguments, **more}


def hosted(item: dict[str, Any], block: int, kind: str = "server_tool") -> list[Aside]:
    """The frames that a stream would have had of an item that only this vendor understands."""
    start = {**item, "status": "in_progress"} if "status" in item else item
    frames = [
        {"type": f"response.output_item.{name}", "item": each} for name, each in (("added", start), ("done", item))
    ]
    return [Aside(VENDOR, kind, frame["type"], frame, block=block) for frame in frames]


RESPONSES_API = Dialect(
    VENDOR,
    Response("openai-chat", id="resp_7", model="m", created=1, vendor="openai", usage=COUNTS, clean=True),
    labels=False,
)

#: A response, its stop reason, and the parts that it says, both ways.
RESPONSES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "text": (whole(message(text("hi"))), "stop", [Text("hi")]),
    "nothing": (whole(), "stop", []),
    "several texts": (whole(message(text("a"), text("b"))), "stop", [Text("a"), Text("b")]),
    "a refusal": (whole(message({"type": "refusal", "refusal": "no"})), "refusal", [Refusal("no")]),
    "a phase": (whole(message(text("a"), phase="commentary")), "stop", [
        Aside(VENDOR, "metadata", "message.phase", "commentary"), Text("a"),
    ]),
    "what stands beside a text": (whole(message(text("a", [CITATION, CITATION], [LOGPROB]))), "stop", [
        Aside(VENDOR, "logprobs", "logprobs", [LOGPROB]), Text("a"), Aside(VENDOR, "citation", "annotation", CITATION),
        Aside(VENDOR, "citation", "annotation", CITATION),
    ]),
    "an unknown part": (
        whole(message(text("a"), {"type": "output_video", "x": 1})), "stop",
        [Text("a"), Aside(VENDOR, "unknown_event", "content.output_video", {"type": "output_video", "x": 1})],
    ),
    "calls": (
        whole(message(text("wait")), called(), called("c2", '{"q": oops', namespace="n")), "tool_calls",
        [Text("wait"), ToolCall(0, "c1", "look", "{}", verdict=COMPLETE), ToolCall(
            1, "c2", "look", '{"q": oops', verdict=Verdict("malformed", "a character that begins no value", 6), extras={"namespace": "n"},
        )],
    ),
    "text behind a call": (whole(called(), message(text("so"))), "tool_calls", [
        ToolCall(0, "c1", "look", "{}", verdict=COMPLETE), Text("so"),
    ]),
    "a custom call": (
        whole({"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "c1", "name": "run", "input": "1 + 1"}),
        "tool_calls", [ToolCall(0, "c1", "run", "1 + 1", "custom", COMPLETE)],
    ),
    "a call that the length cut off": (
        whole(called("c1", '{"q": ', status="incomplete"), status="incomplete", reason="max_output_tokens"), "length",
        [ToolCall(0, "c1", "look", '{"q": ', verdict=Verdict("truncated", NOT_ENDED, 6), ended=False)],
    ),
    "a call that was cut before its arguments": (
        whole(called("c1", "", status="incomplete"), status="incomplete", reason="max_output_tokens"), "length",
        [ToolCall(0, "c1", "look", "", verdict=Verdict("truncated", NOT_ENDED, 0), ended=False)],
    ),
    "a call that says it is incomplete, though its text is an object": (
        whole(called("c1", "{}", status="incomplete"), status="incomplete", reason="max_output_tokens"), "length",
        [ToolCall(0, "c1", "look", "{}", verdict=Verdict("truncated", NOT_ENDED, 2), ended=False)],
    ),
    "reasoning": (
        whole(thought("h", "m", encrypted_content="E"), thought("so", raw=("hm",)), message(text("a"))), "stop",
        [
            Reasoning("h", "summary"), Reasoning("m", "summary", Opaque("openai", "E")), Reasoning("so", "summary"), Reasoning("hm"),
            Text("a"),
        ],
    ),
    "encrypted reasoning": (
        whole(thought(encrypted_content="E"), thought("h", format="f")), "stop",
        [RedactedReasoning(Opaque("openai", "E")), Aside(VENDOR, "metadata", "reasoning.format", "f", block=1), Reasoning("h", "summary")],
    ),
    "what another vendor made": (
        whole(
            thought("h", encrypted_content=seal("reasoning", "anthropic", "S")),
            thought(encrypted_content=seal("opaque", "anthropic", "D")), message(text("a")),
            thought(encrypted_content=seal("text", "google", "T")), thought(encrypted_content=seal("part", "google", "P")),
            thought(encrypted_content=seal("call", "google", "C")), called(),
        ),
        "tool_calls",
        [
            Reasoning("h", "summary", Opaque("anthropic", "S")), RedactedReasoning(Opaque("anthropic", "D")),
            Text("a", Opaque("google", "T")), Text("", Opaque("google", "P")),
            ToolCall(0, "c1", "look", "{}", verdict=COMPLETE, signature=Opaque("google", "C")),
        ],
    ),
    "what the provider runs": (whole(SEARCH, message(text("a")), COMPACTED), "stop", [*hosted(SEARCH, 0), Text("a"), *hosted(
        COMPACTED, 2, "unknown_event",
    )]),
    "length": (whole(message(text("a")), status="incomplete", reason="max_output_tokens"), "length", [Text("a")]),
    "filtered": (whole(status="incomplete", reason="content_filter"), "content_filter", []),
    "a reason of its own": (whole(message(text("a")), status="incomplete", reason="max_messages"), "length", [Text("a")]),
    "what the end adds": (
        whole(message(text("a")), completed_at=2, service_tier="flex", store=True), "stop",
        [Text("a"), Aside(VENDOR, "metadata", "response.completed_at", 2)],
    ),
}  # fmt: skip


ODD = [([5], 1), ([{"x": 1}], 1), ([{}], 0), ([{"type": " "}], 1), ("none", 1), (None, 0)]


def test_a_body_of_another_server_may_lack_what_only_tells_its_kind():
    found = RESPONSES_API.read(
        {"output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}], "status": "completed"}
    )
    assert (found.clean, found.text) == (True, "hi")
    with pytest.raises(NeedsRepair):
        RESPONSES_API.read(whole({**called(), "arguments": {}}), policy=STRICT)


# -- errors ------------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[Any, str, str, dict[str, int]]] = [
    ({"error": {"message": "m", "type": "invalid_request_error", "param": "input", "code": None}}, "invalid_request", "m", {}),
    ({"error": {"message": "m", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}, "rate_limit", "m", {}),
    ({"type": "error", "error": {"message": "m", "code": "server_error"}}, "server", "m", {}),
    ({"error": "m"}, "server", "m", {"error_shape": 1}),
    ({"object": "error", "message": "m", "code": 400}, "invalid_request", "m", {"error_shape": 1}),
    ({"detail": "m"}, "server", "m", {"error_shape": 1}),
    ({"type": "error", "message": "m", "code": "server_error", "param": None}, "server", "m", {"error_shape": 1}),
    (whole(message(text("a")), status="failed", error={"code": "server_error", "message": "m"}), "server", "m", {}),
    (whole(status="failed"), "server", "the response failed", {}),
    (whole(message(text("a")), status="cancelled"), "server", "the provider gave the finish reason 'cancelled'", {}),
    (whole(status=None, error={"code": "rate_limit_exceeded", "message": "m"}), "rate_limit", "m", {}),
]  # fmt: skip

OTHERS = [
    (b"", NotThisDialect),
    (b"<html>502</html>", NotThisDialect),
    (b'data: {"type": "response.created"}\n\n', NotThisDialect),
    (b"[]", NotThisDialect),
    (b'{"type": "message", "content": []}', NotThisDialect),
    (b'{"object": "chat.completion", "choices": []}', NotThisDialect),
    (b'{"output": {"message": {}}, "stopReason": "end_turn"}', NotThisDialect),
    (b'{"object": "response", "output": [', BrokenFrame),
]  # fmt: skip


# -- writing what others said ------------------------------------------------------------------------------------------

FOREIGN: dict[str, tuple[Response, dict[str, Any], dict[str, int]]] = {
    "text and calls": (
        RESPONSES_API.response(Text("a"), Text(""), ToolCall(0, "c1", "look", ""), stop="tool_calls"), whole(message(text("a")), called()), {},
    ),
    "reasoning": (
        RESPONSES_API.response(Reasoning("h", signature=Opaque("anthropic", "S")), Reasoning("m", "summary"), Text("a")),
        whole(thought(raw=("h",), encrypted_content=seal("reasoning", "anthropic", "S")), thought("m"), message(text("a"))), {},
    ),
    "a refusal without words": (
        RESPONSES_API.response(Text("a"), stop="refusal"), whole(message(text("a")), status="incomplete", reason="content_filter"), {"stop_reason": 1},
    ),
    "a pause": (RESPONSES_API.response(Text("a"), stop="pause"), whole(message(text("a")), status="incomplete", reason="steered"), {"stop_reason": 1}),
    "a full context": (RESPONSES_API.response(stop="context_full"), whole(status="incomplete", reason="max_output_tokens"), {"stop_reason": 1}),
    "a stop sequence": (RESPONSES_API.response(Text("a"), stop="stop_sequence"), whole(message(text("a"))), {"stop_reason": 1}),
    "a call without a name": (RESPONSES_API.response(ToolCall(0, "c1", "", "{}"), stop="tool_calls"), whole(), {"call_withheld": 1, "stop_reason": 1}),
    "a call that is cut": (
        RESPONSES_API.response(ToolCall(0, "c1", "look", '{"q', verdict=Verdict("truncated")), stop="length"),
        whole(called("c1", '{"q', status="incomplete"), status="incomplete", reason="max_output_tokens"), {},
    ),
    "members of another vendor": (
        RESPONSES_API.response(
            ToolCall(0, "c1", "look", "{}", extras={"caller": {}}), Aside("anthropic", "citation", "c", {}), vendor="anthropic",
            extras={"container": {}}, stop="tool_calls",
        ),
        whole(called()), {"metadata": 1, "citation": 1, "response_fields": 1},
    ),
    "no counts": (RESPONSES_API.response(usage=None), whole(usage=None), {}),
    "some counts": (
        RESPONSES_API.response(usage=UsageReported(9, None, None, 5, None, None)),
        whole(usage={
            **USAGE, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }),
        {"usage_unknown": 1},
    ),
}  # fmt: skip


# -- streams and bodies say the same -----------------------------------------------------------------------------------


def told(said: Response) -> list[Any]:
    """What a response says, for comparing it with what became of it."""
    return [
        (
            choice.text,
            choice.refusal,
            choice.reasoning,
            [part.opaque for part in choice.parts if isinstance(part, RedactedReasoning)],
            [(each.id, each.name, each.arguments.strip() or "{}", each.kind) for each in choice.tool_calls],
        )
        for choice in said.choices[:1]
    ]


def items_of(said: Response) -> list[Any]:
    """What only this vendor understands: citations, the ends of its items, and members of messages."""
    kinds = ("response.output_item.done", "annotation", "message.phase", "reasoning.format")
    return [(each.type, each.raw) for each in said.choices[0].asides if each.type in kinds]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
async def test_a_stream_as_a_whole_body_says_the_same(vector):
    streamed = await collect(source_of([vector.body]), VENDOR)
    if not streamed.clean:
        pytest.skip("the stream is no whole response")
    found = decode_response(encode_response(streamed, VENDOR), VENDOR)
    assert found.clean
    assert told(found) == told(streamed)
    assert found.report.repairs == Counter()


async def test_a_recorded_stream_as_a_whole_body_says_the_same():
    for recorded in recordings(VENDOR):
        streamed = await collect(source_of([recorded.body]), VENDOR)
        if not streamed.clean:
            continue
        report = StreamReport()
        found = decode_response(encode_response(streamed, VENDOR, report=report), VENDOR)
        assert told(found) == told(streamed), recorded.name
        assert items_of(found) == items_of(streamed), recorded.name
        assert (found.usage, found.id, found.created) == (streamed.usage, streamed.id, streamed.created), recorded.name
        assert [choice.stop_reason for choice in found.choices] == [choice.stop_reason for choice in streamed.choices]
        assert found.report.repairs == Counter(), recorded.name
        assert not report.losses.keys() - {"metadata", "unknown_event", "audio"}, recorded.name


async def test_the_last_event_of_a_recorded_stream_is_a_whole_body():
    """All that the stream said in pieces, its terminal event says again."""
    compared = 0
    for recorded in recordings(VENDOR):
        ends = [
            line
            for line in recorded.body.splitlines()
            if line.startswith((b'data: {"type":"response.completed"', b'data: {"type": "response.completed"'))
        ]
        if len(ends) != 1:  # one of them holds a whole conversation
            continue
        terminal = orjson.loads(ends[0].removeprefix(b"data: "))["response"]
        if not terminal.get("output"):
            continue
        streamed = await collect(source_of([recorded.body]), VENDOR)
        found = RESPONSES_API.read(terminal)
        assert told(found) == told(streamed), recorded.name
        assert items_of(found) == items_of(streamed), recorded.name
        written, report = RESPONSES_API.write(found)
        assert normal(written["output"]) == normal(terminal["output"]), recorded.name
        assert {**written, "output": None} == {**ALWAYS, **told_members(terminal), "output": None}, recorded.name
        assert not report.losses, recorded.name
        compared += 1
    assert compared >= 40


#: Members that are written where the server left them out.
ALWAYS = {"error": None, "incomplete_details": None, **ECHO}


def told_members(body: dict[str, Any]) -> dict[str, Any]:
    """The members of a response that say anything."""
    return {name: value for name, value in body.items() if value not in (None, "", [], {})}


def normal(output: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Output without what a response does not keep: the ids of own items, that they are completed, and empty reasoning."""
    kept = []
    for item in output:
        own = item["type"] in {"message", "reasoning", "function_call", "custom_tool_call"}
        dropped = {"id", "status"} if own else set()
        said = {name: value for name, value in item.items() if name not in dropped and value not in ([], None)}
        if said != {"type": "reasoning"}:
            kept.append(said)
    return kept


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RESPONSES, *FOREIGN])
def test_the_official_client_reads_it(client, replay, name):
    said = RESPONSES_API.read(RESPONSES[name][0]) if name in RESPONSES else FOREIGN[name][0]
    written, _ = RESPONSES_API.write(said)
    model = replay.register(orjson.dumps(written), "application/json")
    seen = client("openai").responses.create(model=model, input="hi")
    if name != "an unknown part":
        type(seen).model_validate(written)  # what came is what its types promise
    assert seen.status == written["status"]
    assert seen.output_text == said.text
    calls = [(item.call_id, item.name) for item in seen.output if item.type in {"function_call", "custom_tool_call"}]
    assert calls == [(call.id, call.name) for call in said.tool_calls if call.name]
    assert (seen.usage is None) == (said.usage is None)


def test_a_response_says_again_what_its_request_set_and_nothing_is_stored():
    asked = {
        "model": "m",
        "input": "hi",
        "instructions": "be short",
        "store": True,
        "temperature": 0.0,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_object"}},
        "tool_choice": "none",
        "truncation": "auto",
        "metadata": {"a": "b"},
    }
    profile = Profile(settings=settings_of(decode_request(json.dumps(asked).encode(), "openai-responses")))
    said = Response(
        "openai-chat", id="i", model="m", choices=[Choice(parts=[Text("a")], stop_reason="stop")], clean=True
    )
    written = json.loads(encode_response(said, "openai-responses", profile=profile))
    again = {name: asked[name] for name in ("temperature", "text", "tool_choice", "truncation", "metadata")}
    expected = ECHO | again | {"reasoning": {"effort": "low", "summary": None}}
    assert {name: written[name] for name in ECHO} == expected


# -- all rows ----------------------------------------------------------------------------------------------------------

WELL = {
    "clean": True, "id": "resp_7", "model": "m", "created": 1, "usage.input_total": 9, "usage.input_cached": 4, "usage.total": 14,
}  # fmt: skip
CUT = whole(message(text("a")), status="incomplete")


def error_row(body: Any, kind: str, told: str, repairs: dict[str, int]) -> Row:
    return RESPONSES_API.failed(
        body,
        kind,
        told,
        repairs,
        at={"error.message": told, "output": ...},
        losses=None if "usage" in body else {"answer_withheld": 1} if body.get("output") else {},
    )


ROWS = {
    **rows("responses", RESPONSES, lambda body, stop, parts: RESPONSES_API.kept(body, parts, said={**WELL, "choices[0].stop_reason": stop})),
    "an incomplete response says why": Row(
        CUT, None, {"choices[0].stop_reason": "length"}, written={**CUT, "incomplete_details": {"reason": "max_output_tokens"}}, losses={"stop_reason": 1}
    ),
    **rows("a status that is no end", ["queued", "in_progress", None, "strange"], lambda status: Row(
        whole(message(text("a")), status=status), None, {"clean": False, "text": "a"}, None, at={"error.code": "stream_truncated"}
    )),
    **rows("odd output", ODD, lambda output, asides: RESPONSES_API.mended(
        {**whole(), "output": output}, {"field_invalid": 1} if asides else {}, **({"choices[0].asides[0].vendor": VENDOR} if asides else {"choices[0].asides": []})
    )),
    "arguments as an object": RESPONSES_API.mended(
        whole(called("c1", {"a": 1.5})), {"arguments_not_text": 1}, **{"choices[0].parts[0].arguments": '{"a": 1.5}'}
    ),
    "too many items": Row(
        whole(called("c0"), called("c1"), called("c2")), refused=(TooManyBlocks, ""), options={"limits": Limits(content_blocks=2)}
    ),
    **rows("errors", ERRORS, error_row),
    "an error that comes back": RESPONSES_API.kept(ERRORS[1][0], None),
    "an error of another dialect": RESPONSES_API.of_another(
        RESPONSES_API.response(clean=False, error=ProviderFailed("rate_limit", "slow down", "rate_limit_error", "x", vendor="anthropic")),
        {"error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}}, {"error_detail": 1},
    ),
    "a response that was cut": RESPONSES_API.of_another(
        RESPONSES_API.response(Text("a"), ToolCall(0, "c1", "look", '{"q"'), clean=False), None, {"answer_withheld": 1}, withheld=1,
        at={"error.code": "stream_truncated", "output": ...},
    ),
    **rows("of another kind", OTHERS, lambda body, error: RESPONSES_API.refused(body, error, body[:10].decode())),
    **rows("another dialect", FOREIGN, RESPONSES_API.of_another),
    "a second choice and the text that stopped the first": RESPONSES_API.of_another(
        evolve(RESPONSES_API.foreign, choices=[
            Choice(parts=[Text("a")], stop_reason="stop", stop_sequence="x"), Choice(1, parts=[Text("b")], stop_reason="stop"),
        ]),
        whole(message(text("a"))), {"extra_choice": 1, "stop_sequence": 1},
    ),
    "nothing at all": RESPONSES_API.of_another(Response("ollama", clean=True), whole(id="resp_1", model="", usage=None), None),
    "asides of a stream find their places": RESPONSES_API.of_another(
        RESPONSES_API.response(
            Aside(VENDOR, "logprobs", "logprobs", [1], block=0), Aside(VENDOR, "metadata", "message.phase", "commentary", block=0), Text("a"),
            Aside(VENDOR, "logprobs", "logprobs", [2], block=0), Aside(VENDOR, "metadata", "message.x", 1, block=0),
            *[Aside(VENDOR, "server_tool", frame["type"], frame, block=3) for frame in (
                {"type": "response.output_item.added", "item": {**SEARCH, "status": "in_progress"}},
                {"type": "response.web_search_call.searching", "item_id": "ws_1"},
            )],
            Aside(VENDOR, "unknown_event", "response.strange", {"type": "response.strange"}, block=3),
            Aside(VENDOR, "audio", "response.audio.delta", {"type": "response.audio.delta"}),
            Aside(VENDOR, "metadata", "response.service_tier", "flex"), Aside(VENDOR, "metadata", "delta.x", 1),
            vendor=VENDOR, extras={"service_tier": "auto"},
        ),
        whole(message(text("a", logprobs=[1, 2]), phase="commentary", x=1), {**SEARCH, "status": "incomplete"}, service_tier="flex"),
        {"unknown_event": 1, "audio": 1, "metadata": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    RESPONSES_API.check(ROWS[name])
