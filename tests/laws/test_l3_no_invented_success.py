"""L3: a stream that ends before its completion point gives no success, and nothing that arrived is lost.

The completion point comes from ``oracle.py``, which knows none of our decoders. Beyond it a cut may still lose usage (Chat
sends it after the finish reason) and whatever a provider said after its own finish reason: text and calls are then
compared only for what had arrived.
"""

from __future__ import annotations

import json
import random

import pytest

from streamkit.dialects import DIALECTS
from streamkit.report import Status
from streamkit.testing.cuts import single_cuts
from tests.laws.oracle import CLIENT_ITEMS, Fact, facts, says_success, waits_for_client
from tests.laws.running import OURS, every_stream, in_one_line, read, translate
from tests.sampling import few, part_of, parts
from tests.vectors import VECTORS
from tests.vectors.field import CASES

#: Those whose call has no name are failed by no frame: the oracle looks at frames.
NAMELESS = {f"{v.dialect}-{v.name}" for v in VECTORS if v.repairs.get("call_nameless") and not v.clean}
ERRORS = NAMELESS | {
    f"{v.dialect}-{v.name}" for v in VECTORS if v.fault or (v.dialect == "ollama" and "separators" in v.name)
}
NOWHERE = Fact(0, complete=False, text="", ended_calls=0)
NEVER_CLEAN = (Status.CUT, Status.NOT_THIS_DIALECT, Status.PROVIDER_ERROR, Status.FAILED)
#: Text in which an ill-formed character was replaced, by us as by the oracle, but perhaps not by as many marks.
REPLACED = "\ufffd"


def check_cut(stream, marks, whole, end, targets):
    """The stream cut at byte ``end``, translated into ``targets``."""
    passed = [mark for mark in marks if mark.end <= end]
    mark = passed[-1] if passed else NOWHERE
    body = stream.body[:end]
    cut = read(stream.dialect, [body])
    where = f"cut after {end} of {len(stream.body)} bytes"
    if not cut.fault and REPLACED not in mark.text:
        assert cut.text() == mark.text, where
    assert whole.text().startswith(cut.text().rstrip(REPLACED)), where  # the second half of a character may be cut off
    assert cut.clean == mark.complete, where

    def passes(target):
        return target == stream.dialect and end % 2 == 0

    outputs = {target: translate(stream.dialect, target, [body], passing=passes(target)) for target in targets}
    if mark.complete:
        for target, (output, report) in outputs.items():
            assert report.status is Status.DONE, (where, target)
            if not passes(target):  # frames that pass are the provider's, its missing terminator too
                assert says_success(target, output), (where, target)
        if all(later.quiet for later in marks[len(passed) :]):
            assert (cut.text(), cut.reasoning, cut.refusal, cut.stops) == (
                whole.text(),
                whole.reasoning,
                whole.refusal,
                whole.stops,
            )
            assert [(c.name, c.arguments, c.verdict) for c in cut.calls] == [
                (c.name, c.arguments, c.verdict) for c in whole.calls
            ], where
        return
    complete = [call for call in cut.calls if call.verdict.kind in {"complete", "empty"}]
    assert len(complete) <= mark.ended_calls, (where, complete)
    assert cut.report.status in NEVER_CLEAN, where
    for target, (output, report) in outputs.items():
        if not passes(target):
            assert not says_success(target, output), (where, target)
        assert report.clean is False, (where, target)
        assert report.status in NEVER_CLEAN, (where, target)
        written = read(target, [output])
        assert not written.clean, (where, target)
        waited = (report.broken_frame or b"").decode("utf-8", "replace")  # behind a call that clients would run
        rest = cut.text().removeprefix(written.text())
        joined = written.text().replace("\n\n", "")  # a blank line may be between a commentary and the answer
        assert written.text().startswith(cut.text()) or joined.startswith(cut.text()) or rest in waited, (where, target)
        held = "".join(one.arguments for one in report.withheld)
        for call in cut.calls:
            if call.choice == 0:
                spelled = json.dumps(call.arguments)[1:-1]  # in an object that wraps it
                spellings = (call.arguments, spelled, in_one_line(call.arguments))
                carried = any(text in other.arguments for other in written.calls for text in spellings)
                assert carried or call.arguments.strip() in held or not call.ended, (where, target, call)
    torso = stream.body[mark.end : end].lstrip()
    if torso.startswith((b"data: {", b"{")) and b"\n" not in torso and not cut.fault and not cut.report.provider_error:
        assert cut.report.broken_frame == torso.removeprefix(b"data: "), where


def check(stream, ends, targets_of):
    marks = facts(stream.dialect, stream.body)
    whole = read(stream.dialect, [stream.body])
    if whole.fault:
        marks = [mark for mark in marks if mark.text is not None]
    for end in ends:
        check_cut(stream, marks, whole, end, targets_of(end))


def healthy(stream) -> bool:
    return stream is None or str(stream) not in {error.replace(" ", "-") for error in ERRORS}


STREAMS = [param for param in every_stream("l3") if healthy(param.values[0])]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_cut_stream_never_looks_whole(stream):
    size = len(stream.body)
    rng = random.Random(size)
    ends = {0, size, *(rng.randrange(size + 1) for _ in range(2))}
    for mark in facts(stream.dialect, stream.body)[-2:]:
        ends |= {mark.end - 1, mark.end, min(mark.end + 1, size)}
    names = list(DIALECTS)
    check(stream, sorted(ends), lambda end: [names[end % len(names)]])


@pytest.mark.parametrize("part", parts(2))
@pytest.mark.parametrize("stream", few([s for s in OURS if healthy(s) and len(s.body) < 1000], 1, "l3 short"))
def test_a_short_stream_never_looks_whole_wherever_it_is_cut(stream, part):
    names = list(DIALECTS)
    ends = random.Random(str(stream)).sample(range(len(stream.body) + 1), len(stream.body) + 1)
    check(stream, part_of(ends, part), lambda end: [names[end % len(names)]])


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_never_looks_whole_at_every_cut(stream):
    size = len(stream.body)
    names = list(DIALECTS)
    # each cut reads and translates anew: with the figures of L1 this law alone would take an hour
    places = single_cuts(size, all_up_to=8192, edge=2048, seeded=500)
    check(stream, [0, *places, size], lambda end: [names[end % len(names)]])


WAITING = {
    name: body
    for name, body in [
        *((stream.name, stream.body) for stream in OURS if stream.dialect == "openai-responses"),
        *((f"{case.number} {form.name}", form.body) for case in CASES for form in case.forms if form.dialect == "openai-responses"),
    ]
    if waits_for_client(body)
}  # fmt: skip


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("name", WAITING)
def test_a_turn_that_waits_for_its_client_is_told_as_done_by_no_dialect(name, target):
    output, _ = translate("openai-responses", target, [WAITING[name]], passing=False)
    written = read(target, [output])
    assert not written.clean or written.stops[0] in {"tool_calls", "length", "content_filter"}


def test_streams_of_each_kind_wait():
    assert all(any(kind.encode() in body for body in WAITING.values()) for kind in CLIENT_ITEMS)


def test_the_oracle_agrees_with_what_the_vectors_say():
    for vector in VECTORS:
        if not vector.fault and f"{vector.dialect}-{vector.name}" not in NAMELESS:
            marks = facts(vector.dialect, vector.body)
            assert (marks[-1].complete if marks else False) == vector.clean, vector.name
