"""A finished stream leaves nothing to the garbage collector: all that it made is freed with the last reference to it."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

from streamkit import transcode
from streamkit.dialects import DIALECTS
from tests.laws.quirky import conforming


@pytest.fixture
def garbage() -> Iterator[list[object]]:
    """What a collection finds, which happens only where the test asks for it."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 300):
        yield body[start : start + 300]


async def pass_on(source: str, target: str, answer: str) -> None:
    """Read and write a stream; within one dialect also let its bytes pass."""
    for reencode in {True, source != target}:
        body = in_pieces(conforming(source, answer).body)
        async with transcode(body, source, target, reencode=reencode) as pieces:
            async for _ in pieces:
                pass
        assert (pieces.report.clean, bool(pieces.report.verdicts)) == (True, answer == "calls")


@pytest.mark.parametrize("answer", ["text", "calls"])
@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
async def test_a_finished_stream_leaves_nothing_to_the_collector(source, target, answer, garbage):
    await pass_on(source, target, answer)  # makes what is made once for all streams
    gc.collect()
    garbage.clear()
    await pass_on(source, target, answer)
    gc.collect()
    assert Counter(type(thing).__qualname__ for thing in garbage) == {}
