"""Facts about event streams that others wrote down, each at every cut.

``sse_wpt_mime.json`` is left out: its facts are about HTTP's Content-Type, and there is no HTTP in a framing.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from streamkit.framing.sse import SSEParser
from tests.corpora import CORPORA, require_corpora
from tests.framing.cuts import cuts, read, same_at_every_cut

browser = partial(SSEParser, last_event="drop")


def facts(name: str) -> list[Any]:
    if CORPORA is None:
        return [pytest.param(None, id="no-corpora")]
    cases = json.loads((CORPORA / "facts" / f"{name}.json").read_text("utf-8"))
    return [pytest.param(case, id=case["name"].replace(" ", "-")) for case in cases]


EVENTS = [*facts("sse_wpt"), *facts("sse_httpx_sse"), *facts("sse_provider_sdks")]


@pytest.mark.parametrize("fact", EVENTS)
def test_a_stream_gives_the_recorded_events_at_every_cut(fact):
    require_corpora()
    expected = fact["expected"]
    assert set(expected) <= {"events", "retry", "last_event_id"}
    data = fact["input"].encode()
    frames = same_at_every_cut(browser, data).frames
    found = [{"event": f.event, "data": f.text, "id": f.id} for f in frames]
    if fact["profile"] == "sdk":
        # The SDKs dispatch a block that has an event type and no data; the standard drops it (HTML §9.2.6, "dispatch the
        # event", step 2: the data buffer is empty), and so do we: no dialect says anything by a type alone.
        assert all(event["data"] == "" for event in expected["events"])
        assert "data" not in fact["input"]
        assert found == []
    else:
        assert found == expected["events"]
    for reads in [[data], *cuts(data)]:
        parser = browser()
        for chunk in reads:
            parser.feed(chunk)
        parser.finish()
        assert parser.retry == expected.get("retry", parser.retry)
        assert parser.last_event_id == expected.get("last_event_id", parser.last_event_id)


@pytest.mark.parametrize(
    "fact", [fact for fact in facts("sse_provider_sdks") if CORPORA is None or "chunks_hex" in fact.values[0]]
)
def test_the_recorded_reads_give_what_the_whole_gives(fact):
    require_corpora()
    reads = [bytes.fromhex(chunk) for chunk in fact["chunks_hex"]]
    assert b"".join(reads) == fact["input"].encode()
    assert read(browser, reads) == read(browser, [fact["input"].encode()])


class LineRecorder(SSEParser):
    """The parser's own line level: what ``feed`` hands to ``_read``, and at the end the partial line.

    The recorded facts flush a last line without its end; here that is the partial line, which ``finish`` takes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[bytes] = []

    def _begun_payload(self, chunk):
        return [], 0

    def _read_alike(self, window, first):
        return 0

    def _read(self, lines, width):
        self.lines += lines
        super()._read(lines, width)

    def flushed(self) -> list[str]:
        last = self._take()
        return [line.decode() for line in [*self.lines, *([last] if last else [])]]


@pytest.mark.parametrize("fact", facts("sse_line_decoder"))
def test_lines_end_where_they_were_recorded_to_end_at_every_cut(fact):
    require_corpora()
    recorded = [chunk.encode() for chunk in fact["chunks"]]
    for reads in [recorded, *cuts(b"".join(recorded))]:
        recorder = LineRecorder()
        for chunk in reads:
            recorder.feed(chunk)
        assert recorder.flushed() == fact["expected"], reads
