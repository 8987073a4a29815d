"""A recording as a source: the reads as they were cut, and the error that a live source would have raised."""

from __future__ import annotations

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import ConnectTimeout, FirstByteTimeout, IdleTimeout, Interrupted, SourceFailed, TotalTimeout
from streamkit.events import ProviderFailed
from streamkit.http_errors import encode_error
from streamkit.lab.recording import End, Read, RecordedResponse, Recording
from streamkit.lab.recording.source import RecordedSource, failure, refusal
from streamkit.recipes import collect, transcode
from streamkit.report import StreamReport
from tests.sampling import few, name_of
from tests.vectors import VECTORS

READS = (Read(0.5, b"a"), Read(1.25, b"b"))
DONE = next(vector for vector in VECTORS if vector.dialect == "openai-chat" and vector.clean and vector.text)

#: Streams that are not whole in their middle, as those are of which each chunk has a reason to stop.
OPEN_HALFWAY = [
    vector
    for vector in VECTORS
    if vector.clean and vector.name not in ("the reason in every chunk", "reasons that differ")
]


def recorded(kind, *, t=61.25, reads=READS, **members) -> Recording:
    return Recording(id="1", reads=reads, end=End(t=t, kind=kind, **members))


async def test_the_reads_come_as_they_were_cut_each_at_its_time():
    source = RecordedSource(recorded("whole"))
    assert [(chunk, source.now) async for chunk in source] == [(b"a", 0.5), (b"b", 1.25)]
    assert (source.now, source.ended_at) == (1.25, 61.25)


@pytest.mark.parametrize(
    ("recording", "kind", "message"),
    [
        (recorded("cut"), SourceFailed, "the connection to the upstream broke"),
        (recorded("reset"), SourceFailed, "the connection to the upstream broke: Connection reset by peer"),
        (recorded("client_left"), SourceFailed, "the client disconnected before the response ended"),
        (recorded("unreachable", reads=()), SourceFailed, "no connection to the upstream could be made"),
        (recorded("timeout:idle"), IdleTimeout, "The upstream sent no further bytes within 60 s"),
        (recorded("timeout:first_byte", reads=()), FirstByteTimeout, "The upstream sent no first byte within 61.2 s"),
        (recorded("timeout:total"), TotalTimeout, "The upstream's response did not end within 61.2 s"),
        (recorded("timeout:connect", reads=()), ConnectTimeout, "The upstream could not be reached within 61.2 s"),
        (recorded("timeout:lunch"), SourceFailed, "the recording ends with 'timeout:lunch'"),
        (recorded("shut_down"), Interrupted, "the server was shutting down"),
        (recorded("truncated_by_recorder"), SourceFailed, "the recording ends before the response, which was too large"),
        (recorded("withheld"), SourceFailed, "the recording ends before the response, in which a key came next"),
        (recorded("whole", dropped=3, reads=()), SourceFailed, "the recording lacks 3 reads, which came too fast to be written"),
        (Recording(id="1", reads=READS), SourceFailed, "the recording has no end: its recorder was killed"),
    ],
)  # fmt: skip
async def test_what_ended_it_is_raised(recording, kind, message):
    source = RecordedSource(recording)
    assert [await anext(source) for _ in recording.reads] == [read.data for read in recording.reads]
    with pytest.raises(SourceFailed) as caught:
        await anext(source)
    assert (type(caught.value), str(caught.value)) == (kind, message)
    assert failure(recorded("whole")) is None


async def test_what_is_left_of_a_recording_that_lacks_reads_is_not_given():
    with pytest.raises(SourceFailed):
        await anext(RecordedSource(recorded("whole", dropped=1)))


@pytest.mark.parametrize("kind", ["cut", "reset", "client_left", "timeout:idle", "shut_down"])
@pytest.mark.parametrize("vector", few(OPEN_HALFWAY, 1, "recordings that end early", name=name_of))
async def test_no_recording_that_is_not_whole_looks_whole(vector, kind):
    half = Recording(id="1", reads=(Read(0.1, vector.body[: len(vector.body) // 2]),), end=End(t=1, kind=kind))
    response = await collect(RecordedSource(half, report := StreamReport()), vector.dialect, report=report)
    assert not response.clean
    assert isinstance(report.error, SourceFailed) or report.broken_frame is not None


@pytest.mark.parametrize(("kind", "repairs"), [("client_left", {}), ("reset", {"fault_after_end": 1})])
async def test_what_comes_behind_the_terminator_takes_nothing_back(kind, repairs):
    recording = Recording(id="1", reads=(Read(0.1, DONE.body),), end=End(t=1, kind=kind))
    response = await collect(RecordedSource(recording, report := StreamReport()), DONE.dialect, report=report)
    assert (response.clean, report.repairs) == (True, repairs)
    for target in (DONE.dialect, "anthropic"):
        report = StreamReport()
        async with transcode(RecordedSource(recording, report), DONE.dialect, target, report=report) as stream:
            assert [chunk async for chunk in stream]
        assert (report.clean, report.repairs) == (True, repairs)


@pytest.mark.parametrize("dialect", [name for name, each in DIALECTS.built_in.items() if each.errors is not None])
def test_an_error_instead_of_an_answer_is_decoded(dialect):
    answer = encode_error(ProviderFailed("rate_limit", "Slow down.", retry_after_s=7.0), dialect)
    response = RecordedResponse(t=0.1, status=answer.status, headers=answer.headers)
    recording = Recording(id="1", response=response, reads=(Read(0.1, answer.body),), end=End(t=1, kind="whole"))
    failed = refusal(recording, dialect)
    assert (failed.type, failed.message, failed.http_status, failed.retry_after_s) == (
        "rate_limit", "Slow down.", answer.status, 7.0,
    )  # fmt: skip
    assert refusal(recorded("whole"), dialect) is None
