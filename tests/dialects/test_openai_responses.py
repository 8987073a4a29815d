"""What is Responses' own: every event type, who has the last word on a text, calls that wait, encrypted reasoning."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.openai_responses.decode import ResponsesDecoder
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.sealed_reasoning import unseal
from streamkit.errors import HeldTooLong
from streamkit.events import (
    ChoiceStarted,
    Opaque,
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
from tests.laws.running import CLOCK, maker, read
from tests.vectors.openai_responses import START, USAGE, VECTORS, call, last, message, numbered, thought

START_OF = (ResponseStarted("r", "m", 1), ChoiceStarted())


def encoded(*events, limits=DEFAULT_LIMITS, stop="stop"):
    """The payloads of what is written for events."""
    encoder = DIALECTS["openai-responses"].encoder(
        Encoding(limits=limits, make_id=maker(), clock=CLOCK), StreamReport()
    )
    output = encoder.feed([*START_OF, *events])
    if encoder.fault is not None:
        raise encoder.fault
    if stop is not None:
        output += encoder.feed([ResponseFinished(stop), StreamEnded(clean=True)])
    else:
        output += encoder.feed([StreamEnded(clean=False)])
    return [json.loads(event.partition(b"data: ")[2]) for event in output.split(b"\n\n")[:-1]]


def kinds(payloads):
    return [payload["type"].removeprefix("response.") for payload in payloads]


def finished(number, arguments="{}", verdict="complete", *, ended=True):
    return ToolCallFinished(number, f"c{number}", "f", arguments, ended=ended, verdict=Verdict(verdict))


# -- decoding ----------------------------------------------------------------------------------------------------------


def test_every_event_type_of_the_client_is_known():
    responses = pytest.importorskip("openai.types.responses")
    union = get_args(get_args(responses.ResponseStreamEvent)[0])
    names = {get_args(event.model_fields["type"].annotation)[0] for event in union}
    assert len(names) == 59
    assert names <= ResponsesDecoder._read_by.keys()


@pytest.mark.parametrize("left_out", range(1, 5))
def test_any_of_the_copies_will_do(left_out):
    """Added, part added, delta, text done, part done, item done, last: the first of these that is there is enough."""
    events = message(0, "Hello")
    body = numbered(START, events[0], *events[left_out + 1 :], last("completed", events[-1]))
    assert read("openai-responses", [body]).text() == "Hello"


# -- encoding ----------------------------------------------------------------------------------------------------------


def test_calls_that_interleave_are_written_one_behind_the_other():
    payloads = encoded(
        ToolCallStarted(0, "c0", "f"), ToolCallStarted(1, "c1", "g"),
        ToolCallArguments(0, '{"x"'), ToolCallArguments(1, '{"y"'), ToolCallArguments(0, ":1}"), ToolCallArguments(1, ":2}"),
        finished(0, '{"x":1}'), finished(1, '{"y":2}'), stop="tool_calls",
    )  # fmt: skip
    places = [payload["output_index"] for payload in payloads if "output_index" in payload]
    assert places == sorted(places)
    assert [item["arguments"] for item in payloads[-1]["response"]["output"]] == ['{"x":1}', '{"y":2}']


def test_what_is_kept_for_the_last_event_has_a_limit():
    text = TextDelta("x" * 98)
    assert encoded(text, limits=Limits(held_chars=100))[-1]["response"]["output"]
    with pytest.raises(HeldTooLong):
        encoded(text, TextDelta("x"), limits=Limits(held_chars=100))


def test_what_waits_is_written_even_where_the_limit_ended_the_stream():
    limits = Limits(held_chars=100)
    encoder = DIALECTS["openai-responses"].encoder(Encoding(limits=limits, make_id=maker()), StreamReport())
    output = encoder.feed(
        [*START_OF, ToolCallStarted(0, "c0", "f"), *[TextDelta("twenty characters, so") for _ in range(9)]]
    )
    assert isinstance(encoder.fault, HeldTooLong)
    output += encoder.fail(encoder.fault)
    assert output.count(b"response.output_text.delta\n") == 4
    assert output.count(b"event: response.failed\n") == 1


@pytest.mark.parametrize("verdict", ["complete", "empty", "malformed", "not_an_object", "truncated"])
def test_only_a_truncated_call_is_not_completed(verdict):
    payloads = encoded(
        ToolCallStarted(0, "c0", "f"), ToolCallArguments(0, '{"x"'), finished(0, '{"x"', verdict), stop="length"
    )
    (item,) = payloads[-1]["response"]["output"]
    assert item["status"] == ("incomplete" if verdict == "truncated" else "completed")
    assert ("function_call_arguments.done" in kinds(payloads)) == (verdict != "truncated")
    assert payloads[-1]["type"] == "response.incomplete"


def test_an_unfinished_call_is_in_no_output_when_the_stream_fails():
    payloads = encoded(
        TextDelta("Hi"), ToolCallStarted(0, "c0", "f"), ToolCallArguments(0, "{}"), finished(0, ended=False), stop=None
    )
    assert kinds(payloads)[-2:] == ["error", "failed"]
    assert [item["type"] for item in payloads[-1]["response"]["output"]] == ["message"]
    assert sum(kind == "output_item.done" for kind in kinds(payloads)) == 1


def test_text_that_a_failure_cut_is_in_its_output_as_incomplete():
    (item,) = encoded(TextDelta("Hi"), stop=None)[-1]["response"]["output"]
    assert (item["status"], item["content"][0]["text"]) == ("incomplete", "Hi")


def test_text_behind_text_makes_one_message_and_text_behind_a_call_another():
    payloads = encoded(
        TextDelta("a", block=0), TextDelta("b", block=1), ToolCallStarted(0, "c0", "f"), finished(0), TextDelta("c", block=2),
        stop="tool_calls",
    )  # fmt: skip
    output = payloads[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "message"]
    assert [[part["text"] for part in item["content"]] for item in output[::2]] == [["a", "b"], ["c"]]


def test_an_error_in_front_of_everything_is_told_twice_and_starts_nothing():
    (vector,) = [one for one in VECTORS if one.name == "an error at once"]
    assert [event.partition(b"\n")[0] for event in written_again(vector.body).split(b"\n\n")[:-1]] == [
        b"event: error",
        b"event: response.failed",
    ]


def written_again(body):
    encoder = DIALECTS["openai-responses"].encoder(Encoding(make_id=maker(), clock=CLOCK), StreamReport())
    return encoder.feed(read("openai-responses", [body]).events) + encoder.finish()


# -- what only its vendor can read -------------------------------------------------------------------------------------

REASONING = ReasoningDelta("hm", kind="summary")
OPAQUES = {
    "of OpenAI, with a summary": [REASONING, ReasoningSignature("b3Bh", "openai")],
    "of OpenAI, alone": [ReasoningOpaque("b3Bh", "openai")],
    "two in a row": [REASONING, ReasoningSignature("x", "openai"), ReasoningDelta("so", block=1, kind="summary"), ReasoningSignature("y", "openai", block=1)],
    "a signature of another": [REASONING, ReasoningSignature("c2ln", "anthropic")],
    "a signature without any text": [ReasoningSignature("c2ln", "anthropic")],
    "redacted by another": [ReasoningOpaque("cmVk", "anthropic")],
    "a signature of a text": [TextDelta("Hi"), ReasoningSignature("dGh0", "google", on="text")],
    "a signature of a part without text": [ReasoningSignature("dGh0", "google", on="text")],
    "a signature of a call": [ToolCallStarted(0, "c0", "f", signature=Opaque("google", "dGh0")), ToolCallArguments(0, "{}"), finished(0)],
}  # fmt: skip


@pytest.mark.parametrize("what", OPAQUES)
def test_opaque_reasoning_comes_back_as_it_was(what):
    events = OPAQUES[what]
    stop = "tool_calls" if what.endswith("call") else "stop"
    encoder = DIALECTS["openai-responses"].encoder(Encoding(make_id=maker(), clock=CLOCK), report := StreamReport())
    output = encoder.feed([*START_OF, *events, ResponseFinished(stop), StreamEnded(clean=True)])
    assert not report.losses
    assert read("openai-responses", [output]).events[2:-2] == events


@pytest.mark.parametrize(("vendor", "sealed"), [("openai", False), ("anthropic", True), ("google", True)])
def test_only_its_own_vendor_gets_it_unsealed(vendor, sealed):
    (item,) = encoded(ReasoningOpaque("b3Bh", vendor))[-1]["response"]["output"]
    assert (unseal(item["encrypted_content"]) is not None) == sealed
    assert sealed or item["encrypted_content"] == "b3Bh"


def test_encrypted_content_is_taken_from_the_end_of_its_item():
    early, *rest = thought(0, "hm", encrypted_content="whole")
    early["item"]["encrypted_content"] = "hal"
    found = read("openai-responses", [numbered(START, early, *rest, last("completed", rest[-1]))])
    assert [event.blob for event in found.events if type(event) is ReasoningSignature] == ["whole"]


# -- what the last event says ------------------------------------------------------------------------------------------


def test_usage_and_fields_of_the_response_come_back():
    body = numbered(
        START, *call(0, "c", "f", "{}"), last("completed", call(0, "c", "f", "{}")[-1], service_tier="flex")
    )
    response = json.loads(written_again(body).split(b"\n\n")[-2].partition(b"data: ")[2])["response"]
    assert (response["usage"], response["service_tier"]) == (USAGE, "flex")
