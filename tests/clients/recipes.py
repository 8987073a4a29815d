"""Recordings, and what ``collect`` and ``transcode`` make of them: each made once, whoever asks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from functools import cache
from itertools import product

from attrs import frozen

from streamkit.conversation.messages import Response
from streamkit.dialects import DIALECTS
from streamkit.dialects.linting import Violation
from streamkit.limits import DEFAULT_LIMITS
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect, transcode
from streamkit.report import StreamReport
from tests import corpora

DIRECTIONS = list(product(DIALECTS, DIALECTS))


@frozen
class Recording:
    name: str
    dialect: str
    body: bytes


@frozen
class Output:
    body: bytes
    report: StreamReport


@cache
def recordings(dialect: str) -> tuple[Recording, ...]:
    """Every recorded stream of a dialect; skips the test that asks without them."""
    return tuple(Recording(one.name, dialect, one.body) for one in corpora.recordings(dialect))


def counting_ids() -> Callable[[str], str]:
    """Ids by number and kind: ``collect`` and ``transcode`` then give a nameless call the same one."""
    made: Counter[str] = Counter()

    def make_id(prefix: str) -> str:
        made[prefix] += 1
        return f"{prefix}made{made[prefix]}"

    return make_id


async def in_one_read(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


@cache
def whole(body: bytes, dialect: str) -> Response:
    return asyncio.run(collect(in_one_read(body), dialect, ReadOptions(make_id=counting_ids())))


@cache
def converted(body: bytes, source: str, target: str, *, reencode: bool = True) -> Output:
    async def convert() -> Output:
        pipe = transcode(
            in_one_read(body), source, target, ReadOptions(make_id=counting_ids()), reencode=reencode, clock=lambda: 0.0
        )
        async with pipe as stream:
            return Output(b"".join([piece async for piece in stream]), stream.report)

    return asyncio.run(convert())


@cache
def violations(body: bytes, dialect: str) -> tuple[Violation, ...]:
    """All that the dialect's checker finds, notes included."""
    parser, linter = DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport()), DIALECTS[dialect].linter()
    found = [*linter.feed(parser.feed(body)), *linter.feed(parser.finish()), *linter.finish()]
    assert parser.fault is None, parser.fault
    return tuple(found)


def conforms(recording: Recording) -> bool:
    return all(found.severity != "error" for found in violations(recording.body, recording.dialect))
