"""The first byte decides which of two framings a body has."""

from __future__ import annotations

import orjson
import pytest

from streamkit.detection import Detector
from streamkit.dialects.gemini.framing import GeminiParser
from tests.framing.cuts import same_at_every_cut
from tests.vectors.gemini import BUSY, ERROR, array, chunk, events, text


@pytest.mark.parametrize(
    ("body", "frames"),
    [
        (b" \r\n[{}]", [b"{}"]), (b"\xef\xbb\xbf[{}]", [b"{}"]), (b"data: {}\n\n", [b"{}"]), (b": [\n\ndata: {}\n\n", [b"{}"]),
        (ERROR, [ERROR]), (b"\n" * 300 + b"data: {}\n\n", [b"{}"]), (b" ", []), (b"", []), (b"\xef\xbb\xbf", []),
    ],
)  # fmt: skip
def test_the_first_byte_tells_the_framing(body, frames):
    found = same_at_every_cut(GeminiParser, body) if len(body) < 300 else None
    parser = GeminiParser()
    assert [frame.data for frame in parser.feed(body) + parser.finish()] == frames
    assert found is None or [frame.data for frame in found.frames] == frames


@pytest.mark.parametrize("body", [events(chunk(text("a"))), array(chunk(text("a"))), ERROR, orjson.dumps([BUSY])])
def test_it_is_detected(body):
    detector = Detector()
    assert (detector.feed(body) or detector.finish()) == "gemini"
