"""What follows an answer that nobody will end: an error that its client sees, and never a second end."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from streamkit.errors import SourceFailed
from streamkit.resume import Meta, closing
from tests.clients.recipes import violations
from tests.laws.oracle import says_success
from tests.laws.running import OURS, every_stream, read
from tests.resume.answers import CLIENTS, Answer, answers_of

#: Rules that a stream breaks where a client was told to run a call and the process died before the next byte, and those that
#: what a provider left out breaks: a call without an id, which can't be answered, and no numbers to go on from.
UNAVOIDABLE = {"ai-sdk": {"run_and_failed"}, "ag-ui": {"unanswered"}, "openai-responses": {"sequence"}}


def rules(body: bytes, client: str) -> Counter[str]:
    return Counter(found.rule for found in violations(body, client))


def check(answer: Answer, end: int) -> None:
    """The answer broke off behind byte ``end``, where a frame ends."""
    client, written = answer.client, answer.body[:end]
    told = closing(answer.meta, written)
    before, after = read(client, [written]), read(client, [written + told])
    where = f"{answer} broken off after {end} bytes"
    if answer.meta.is_array:
        json.loads(written + told)
    if before.clean:
        assert told in {b"", b"]"}, where
        return
    assert not after.clean, where
    assert not says_success(client, written + told) or says_success(client, written), where
    assert not after.fault or before.fault, (where, after.fault)
    assert after.error is not None or before.fault, where
    assert before.error in {None, after.error}, where  # the provider's own words stay the last ones
    assert (after.text(), after.reasoning) == (before.text(), before.reasoning), where
    assert not closing(answer.meta, written + told), where
    if not before.fault:
        new = rules(written + told, client) - rules(written, client)
        assert not new.keys() - UNAVOIDABLE.get(client, set()), (where, new, told)


@pytest.mark.parametrize("stream", every_stream("closing", ours=2, recorded_=1))
def test_an_answer_that_broke_off_reads_as_failed(stream):
    rng = random.Random(str(stream))
    for client in rng.sample(CLIENTS, 2):
        for answer in answers_of(stream, client):
            for end in sorted({answer.ends[-1], *rng.choices(answer.ends, k=2)}):
                check(answer, end)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("stream", every_stream("closing all"))
def test_an_answer_that_broke_off_anywhere_reads_as_failed(stream, client):
    for answer in answers_of(stream, client):
        ends = answer.ends if len(answer.ends) < 200 else [0, *random.Random(1).sample(answer.ends, 200)]
        for end in ends:
            check(answer, end)


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "gemini"])
def test_an_error_is_seen_behind_half_a_frame(client):
    stream = next(s for s in OURS if s.dialect == "openai-chat" and s.name == "text")
    for answer in answers_of(stream, client):
        for cut in range(answer.ends[1], answer.ends[1] + 40):
            written = answer.body[:cut]
            told = read(client, [written + closing(answer.meta, written)])
            assert told.error is not None or told.fault, written
            assert not told.clean


def test_what_the_provider_said_is_not_replaced():
    """A reason to stop that says itself that the answer failed is its end; a call without a name fails in our words."""
    said = next(s for s in OURS if s.dialect == "gemini" and s.name == "a call that the model got wrong")
    answer = next(iter(answers_of(said, "gemini")))
    assert not closing(answer.meta, said.body)
    nameless = next(s for s in OURS if s.dialect == "openai-chat" and s.name == "a call without a name")
    written = nameless.body.removesuffix(b"data: [DONE]\n\n")
    assert b"without a name" in closing(Meta(dialect="openai-chat"), written)


def test_an_error_of_responses_numbers_on_and_keeps_the_id():
    stream = next(s for s in OURS if s.dialect == "openai-responses" and s.name == "text")
    answer = list(answers_of(stream, "openai-responses"))[-1]
    written = b"".join(answer.frames[:4])
    told = closing(answer.meta, written, SourceFailed("gone"))
    before, after = (
        [json.loads(line[6:]) for line in part.split(b"\n") if line.startswith(b"data: ")] for part in (written, told)
    )
    assert [event["sequence_number"] for event in after] == [len(before), len(before) + 1]
    assert after[-1]["response"]["id"] == before[0]["response"]["id"]
    assert after[0]["message"] == "gone"


def test_every_call_of_ag_ui_is_answered_before_the_error():
    stream = next(s for s in OURS if s.dialect == "openai-chat" and s.name == "two calls that interleave")
    answer = next(iter(answers_of(stream, "ag-ui")))
    for end in answer.ends[:-1]:
        written = answer.body[:end]
        events = [json.loads(line[6:]) for line in (written + closing(answer.meta, written)).splitlines() if line]
        begun = {event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_START"}
        answered = {event["toolCallId"] for event in events if event["type"] == "TOOL_CALL_RESULT"}
        assert answered == begun
        assert events[-1]["type"] == "RUN_ERROR"


def test_an_array_of_nothing_is_one_of_an_error():
    told = closing(Meta(dialect="gemini", is_array=True), b"")
    assert json.loads(told)[0]["error"]["status"] == "INTERNAL"
