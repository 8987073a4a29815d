"""What the vectors of Bedrock do not show: errors by kind, what its own dialect carries back, counts and latency."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from streamkit import StreamReport
from streamkit.dialects import DIALECTS
from streamkit.dialects.bedrock.wire import EXCEPTION_NAMES, EXCEPTIONS, INEXACT_ERRORS, STOP_NAMES
from streamkit.dialects.profiles import Encoding
from streamkit.events import (
    ErrorType,
    ProviderFailed,
    ResponseFinished,
    ResponseStarted,
    StopReason,
    StreamEnded,
    TextDelta,
    UsageReported,
)
from tests.framing.binary import chunks, error, event, exception, message_payloads
from tests.laws.running import read, translate
from tests.vectors import anthropic as am
from tests.vectors.bedrock import HI, START, begin, counts, delta, finish, stop, vector


def failure(body: bytes) -> ProviderFailed:
    (found,) = (one for one in read("bedrock", [body]).events if type(one) is ProviderFailed)
    return found


def payloads(body: bytes) -> list[tuple[str, Any]]:
    return [next(iter(json.loads(payload).items())) for _, payload in message_payloads(body)]


def again(body: bytes) -> tuple[list[tuple[str, Any]], dict[str, int]]:
    """A stream decoded and written anew."""
    output, report = translate("bedrock", "bedrock", [body], passing=False)
    return payloads(output), dict(report.losses)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_has_its_kind_its_name_and_its_status(name):
    found = failure(exception(name, {"message": "no", "p": "abc"}))
    assert (found.type, found.http_status) == EXCEPTIONS[name]
    assert (found.message, found.native_type, found.code, found.vendor) == ("no", name, None, "bedrock")


def test_an_exception_of_the_future_and_one_without_a_message_are_errors():
    assert failure(exception("novelException", {"message": "no"})).type == "server"
    assert failure(exception("throttlingException", {})).message == "an error without a message: throttlingException"
    assert failure(exception("throttlingException", b"")).type == "rate_limit"


def test_an_error_has_its_code_and_its_message_in_headers():
    found = failure(error("ThrottlingException", "busy"))
    assert (found.type, found.message, found.code, found.native_type) == (
        "rate_limit",
        "busy",
        "ThrottlingException",
        None,
    )


@pytest.mark.parametrize("kind", get_args(ErrorType))
def test_every_error_is_written_as_an_exception_that_readers_know(kind):
    report = StreamReport()
    output = DIALECTS["bedrock"].encoder(Encoding(), report).feed([ProviderFailed(kind, "no")])
    ((name, payload),) = payloads(output)
    assert name == f"exception:{EXCEPTION_NAMES[kind]}"
    assert payload == {"message": "no"}
    assert report.losses["error_detail"] == (kind in INEXACT_ERRORS)


def test_an_exception_is_written_again_with_all_it_said():
    body = exception("modelStreamErrorException", {"message": "no", "originalStatusCode": 500, "p": "abc"})
    assert again(body) == ([("exception:modelStreamErrorException", {"message": "no", "originalStatusCode": 500})], {})


# -- what Bedrock's own dialect carries --------------------------------------------------------------------------------


def test_what_only_bedrock_understands_is_written_again():
    tool = {"toolUse": {"toolUseId": "s", "name": "web", "type": "server_tool_use"}}
    body = vector(
        "", START, ("novelty", {"x": 1}), begin(0, **tool), delta(0, toolUse={"input": "{}"}), stop(0),
        delta(1, text="Hi"), delta(1, citation={"title": "t"}), stop(1),
        finish("guardrail_intervened", additionalModelResponseFields={"x": 1}), counts(trace={"y": 2}),
    ).body  # fmt: skip
    assert again(body) == (
        [
            ("messageStart", {"role": "assistant"}),
            ("novelty", {"x": 1}),
            ("contentBlockStart", {"contentBlockIndex": 0, "start": tool}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Hi"}}),
            ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"citation": {"title": "t"}}}),
            ("contentBlockStop", {"contentBlockIndex": 1}),
            ("messageStop", {"stopReason": "guardrail_intervened", "additionalModelResponseFields": {"x": 1}}),
            (
                "metadata",
                {
                    "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
                    "metrics": {"latencyMs": 321},
                    "trace": {"y": 2},
                },
            ),
        ],
        {},
    )


def test_events_of_the_other_kind_of_stream_are_not_written_as_events():
    mixed = vector("", START, *HI, finish()).body + chunks(am.START)
    assert again(mixed)[1] == {"unknown_event": 1}
    mixed = chunks(am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP) + event(*finish())
    written, losses = again(mixed)
    assert [name for name, _ in written].count("messageStop") == 1
    assert losses["unknown_event"] == 1


def test_the_models_own_events_stay_anthropics():
    body = chunks(am.START, am.begin(0, "redacted_thinking", data="eA=="), am.stop(0), am.finish("end_turn"), am.STOP)
    output, report = translate("bedrock", "anthropic", [body])
    assert b'{"type":"redacted_thinking","data":"eA=="}' in output
    assert not report.losses


# -- the end -----------------------------------------------------------------------------------------------------------


#: Without any call a turn that calls tools is a plain stop.
@pytest.mark.parametrize("reason", sorted({*get_args(StopReason)} - {"tool_calls"}))
def test_every_stop_reason_has_a_word(reason):
    output, _ = ended(ResponseFinished(reason))
    assert ("messageStop", {"stopReason": STOP_NAMES[reason]}) in output


def test_the_stop_sequence_stands_where_anthropics_models_put_it():
    output, losses = ended(ResponseFinished("stop_sequence", stop_sequence="END"))
    fields = {"delta": {"stop_sequence": "END"}}
    assert output[-1] == ("messageStop", {"stopReason": "stop_sequence", "additionalModelResponseFields": fields})
    assert losses == {}


def ended(*events: Any) -> tuple[list[tuple[str, Any]], dict[str, int]]:
    times = iter([1.0, 3.5])
    report = StreamReport()
    encoder = DIALECTS["bedrock"].encoder(Encoding(clock=lambda: next(times)), report)
    return payloads(encoder.feed([ResponseStarted(), TextDelta("Hi"), *events, StreamEnded(clean=True)])), dict(
        report.losses
    )


@pytest.mark.parametrize(
    ("usage", "written", "losses"),
    [
        (UsageReported(9, 5, 2, 4), (2, 4, 13, 5, 2), {}),
        (UsageReported(9, None, None, 4, None, 99), (9, 4, 99, None, None), {}),
        (UsageReported(9, None, None, None), (9, 0, 9, None, None), {"usage_unknown": 1}),
        (UsageReported(9, None, None, 4, 3), (9, 4, 13, None, None), {"usage_detail": 1}),
        (UsageReported(1, 5, None, 4), (0, 4, 5, 5, None), {}),
    ],
)
def test_counts_leave_the_cache_out_and_the_latency_is_what_passed_here(usage, written, losses):
    output, counted = ended(usage, ResponseFinished("stop"))
    name, found = output[-1]
    names = ("inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    assert (name, tuple(found["usage"].get(one) for one in names)) == ("metadata", written)
    assert found["metrics"] == {"latencyMs": 2500}
    assert counted == losses
