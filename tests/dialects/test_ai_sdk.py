"""The AI SDK's stream: what clients refuse, what waits for the end, and what only a vendor can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.ai_sdk.wire import is_refused
from streamkit.dialects.profiles import DEFAULT_PROFILE, Encoding, Profile
from streamkit.events import (
    Event,
    MediaGenerated,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    Verdict,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import StreamReport
from tests.laws.running import read, translate
from tests.vectors import ai_sdk as ui
from tests.vectors.vector import sse

CLEAN = (ResponseFinished("tool_calls"), StreamEnded(clean=True))
STOPPED = (ResponseFinished("stop"), StreamEnded(clean=True))


def written(
    *events: Event, limits: Limits = DEFAULT_LIMITS, profile: Profile = DEFAULT_PROFILE
) -> tuple[list[dict[str, Any]], StreamReport]:
    """The chunks of an answer, and what was lost."""
    report = StreamReport()
    encoder = DIALECTS["ai-sdk"].encoder(Encoding(limits=limits, profile=profile), report)
    body = encoder.feed([ResponseStarted(vendor="openai"), *events]) + encoder.finish()
    frames = [frame.removeprefix("data: ") for frame in body.decode().split("\n\n")[:-1]]
    return [json.loads(frame) for frame in frames if frame != "[DONE]"], report


def call(arguments: str, kind: Any = "function") -> tuple[Event, ...]:
    return (
        ToolCallStarted(0, "c", "f", kind=kind),
        ToolCallArguments(0, arguments),
        ToolCallFinished(0, "c", "f", arguments, kind=kind, verdict=Verdict("complete")),
    )


def kinds(chunks: list[dict[str, Any]]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


def test_an_input_is_available_behind_all_else():
    chunks, report = written(*call('{"x":1}'), TextDelta("Hi"), *CLEAN)
    assert kinds(chunks)[-3:] == ["tool-input-available", "finish-step", "finish"]
    assert chunks[-3]["input"] == {"x": 1}
    assert not report.losses


def test_nothing_of_an_answer_that_fails_ends():
    chunks, _ = written(*call('{"x":1}'), TextDelta("Hi"), StreamEnded(clean=False))
    assert kinds(chunks)[2:] == ["tool-input-start", "tool-input-delta", "text-start", "text-delta", "error"]


def test_an_answer_without_a_word_is_no_empty_step():
    chunks, _ = written(ResponseFinished("stop"), StreamEnded(clean=True))
    assert kinds(chunks) == ["start", "start-step", "text-start", "text-end", "finish-step", "finish"]


@pytest.mark.parametrize(
    "arguments",
    ['{"__proto__":1}', '{"a":{"\\u005f_proto__":1}}', '{"constructor":{"prototype":1}}', '{"__proto__" : 1}'],
)
def test_an_input_with_keys_that_clients_refuse_is_told_as_an_error(arguments):
    assert is_refused(arguments.encode())
    chunks, _ = written(*call(arguments), *CLEAN)
    ended = next(chunk for chunk in chunks if chunk["type"] == "tool-input-error")
    assert (ended["input"], "tool-input-available" in kinds(chunks)) == (arguments, False)


ASKED = {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "a"}
REFUSED = ui.call_error("a", "{x", "no JSON")


@pytest.mark.parametrize(
    ("end", "chunks", "loss"),
    [
        (ui.finish(), [REFUSED], "metadata"),
        (ui.finish(), [ui.call_error("a", {"x": 1}, "x is too small")], "metadata"),
        (ui.finish(), [REFUSED, {"type": "tool-output-error", "toolCallId": "a", "errorText": "not run"}], "server_tool"),
        (ui.finish(), [ui.available("a", {"x": 1}, title="F")], "metadata"),
        (ui.finish(), [REFUSED, ASKED], "client_tool"),
        (ui.finish(), [ui.available("a", "{x", providerExecuted=True), ASKED], "client_tool"),
        (ui.FAILED, [ui.available("a", {}, providerExecuted=True), ASKED], "client_tool"),
        (ui.FAILED, [ui.available("a", {}), ASKED], "client_tool"),
    ],
)  # fmt: skip
def test_what_a_server_says_of_a_call_is_written_again_and_lost_with_a_count(end, chunks, loss):
    executed = {name: True for name in ("providerExecuted",) if name in chunks[0]}
    body = ui.answer(ui.call_start("a", **executed), *chunks, end=end)
    output, report = translate("ai-sdk", "ai-sdk", [body], passing=False)
    kept = [sse(chunk) in output for chunk in chunks]
    assert kept == [True, True][: len(kept)] if end is not ui.FAILED else not kept[-1]
    assert report.losses == ({"client_tool": 1} if end is ui.FAILED else {})
    assert translate("ai-sdk", "openai-chat", [body], passing=False)[1].losses[loss]


def test_the_same_words_as_values_are_no_such_keys():
    assert not is_refused(b'{"a":"__proto__","constructor":1}')


def test_clients_that_refuse_members_get_none_of_the_later_ones():
    (client,) = DIALECTS["ai-sdk"].clients
    chunks, report = written(*call("ls", "custom"), *CLEAN, profile=client)
    assert not [chunk for chunk in chunks if "inputEncoding" in chunk or "finishReason" in chunk]
    assert report.losses == {"stop_reason": 1}
    chunks, report = written(*call("ls", "custom"), *CLEAN)
    assert (chunks[2]["inputEncoding"], chunks[-1]["finishReason"]) == ("text", "tool-calls")
    assert not report.losses


@pytest.mark.parametrize(
    ("event", "metadata"),
    [
        (ReasoningSignature("s", "anthropic"), {"anthropic": {"signature": "s"}}),
        (ReasoningSignature("s", "google"), {"google": {"thoughtSignature": "s"}}),
        (ReasoningSignature("s", "openai"), {"openai": {"reasoningEncryptedContent": "s"}}),
        (ReasoningSignature("s", "acme"), "streamkit"),
        (ReasoningOpaque("s", "anthropic", 0, 1), {"anthropic": {"redactedData": "s"}}),
        (ReasoningOpaque("s", "google", 0, 1), "streamkit"),
    ],
)
def test_what_only_a_vendor_reads_stands_under_the_names_of_the_sdks_providers(event, metadata):
    chunks, report = written(ReasoningDelta("hm"), event, *STOPPED)
    (found,) = [chunk["providerMetadata"] for chunk in chunks if "providerMetadata" in chunk]
    assert found == metadata or (metadata == "streamkit" and [*found] == [metadata])
    assert not report.losses
    back = read("ai-sdk", [sse(*chunks)]).events
    assert [each for each in back if type(each) is type(event)] == [event]


def test_a_signature_whose_part_is_closed_is_a_loss():
    _, report = written(ReasoningDelta("hm"), TextDelta("Hi"), ReasoningSignature("s", "anthropic"), *STOPPED)
    assert report.losses == {"reasoning_signature": 1}


def test_a_part_that_goes_on_behind_another_is_a_new_part():
    chunks, report = written(TextDelta("a"), ReasoningDelta("hm", 0, 1), TextDelta("b"), *STOPPED)
    ids = [chunk["id"] for chunk in chunks if chunk["type"].endswith("-start") and "id" in chunk]
    assert len({*ids}) == len(ids) == 3
    assert report.losses == {"block_boundary": 1}


def test_an_image_is_a_file_and_one_in_a_providers_store_is_a_loss():
    chunks, _ = written(MediaGenerated("image", "image/png", data="AA=="), *STOPPED)
    assert chunks[2] == {"type": "file", "url": "data:image/png;base64,AA==", "mediaType": "image/png"}
    _, report = written(MediaGenerated("image", "image/png", file_id="f"), *STOPPED)
    assert report.losses == {"media_output": 1}


def test_what_waits_for_the_end_is_bounded():
    _, report = written(*call('{"x":"' + "y" * 90 + '"}'), *CLEAN, limits=Limits(held_chars=99))
    assert not report.error
    encoder = DIALECTS["ai-sdk"].encoder(Encoding(limits=Limits(held_chars=90)), StreamReport())
    encoder.feed([*call('{"x":"' + "y" * 90 + '"}')])
    assert type(encoder.fault).__name__ == "HeldTooLong"


@pytest.mark.parametrize(
    "chunks",
    [
        [ui.text(name=str(number))[0] | {"providerMetadata": {"a": {"b": "y" * 99}}} for number in range(20)],
        [ui.call_start("c"), *({"type": "data-x", "data": "y" * 99} for _ in range(20))],
    ],
    ids=["metadata of parts that are open", "data behind a call"],
)
def test_what_a_reader_holds_is_bounded(chunks):
    found = read("ai-sdk", [sse(ui.START, *chunks)], limits=Limits(held_chars=1500))
    assert found.fault.startswith("HeldTooLong:")


def test_a_call_that_the_server_ran_is_written_without_an_input_that_is_available():
    body = ui.answer(ui.available("a", {"x": 1}, "look"), ui.output("a", [1]), ui.text("Hi"))
    report = StreamReport()
    (aside, *_) = [event for event in read("ai-sdk", [body]).events if getattr(event, "kind", "") == "server_tool"]
    encoder = DIALECTS["ai-sdk"].encoder(Encoding(), report)
    output = encoder.feed([aside])
    assert [json.loads(frame[6:])["type"] for frame in output.decode().split("\n\n")[:-1]] == [
        "start",
        "start-step",
        "tool-input-start",
        "tool-input-delta",
        "tool-output-available",
    ]
