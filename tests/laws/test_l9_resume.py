"""L9: what a client has when its connection ends, and what it gets when it comes back, are the whole answer, byte for byte.

Of whichever stream, in whichever dialect, wherever it was cut and however often. The ids of events and keep-alives are no part
of the answer. What travels here is what ``Reply`` writes, without a socket: tests/web/resume has those.
"""

from __future__ import annotations

import random

import pytest

from streamkit.resume import MemoryStore
from streamkit.web.resume.following import Following
from streamkit.web.resume.settings import takes_ids
from tests.laws.running import OURS, every_stream
from tests.resume.answers import CLIENTS, Answer, answers_of
from tests.resume.reading import cursors, resumed_from, without_ids
from tests.sampling import part_of, parts

#: A form of an answer: a client, and whether it asks for an array.
FORMS = [*((client, False) for client in CLIENTS), ("gemini", True)]
EACH_FORM = pytest.mark.parametrize(("client", "is_array"), FORMS)


class Kept:
    """An answer in a log, whole."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.has_ids = takes_ids(answer.meta.dialect, is_array=answer.meta.is_array)
        self._store = MemoryStore()

    async def __aenter__(self):
        self._log = await self._store.create(self._store.new_id(), self.answer.meta)
        for frame in self.answer.frames:
            self._log.append(frame)
        self._log.end("done")
        return self

    async def __aexit__(self, *_exc):
        await self._store.close()

    async def read(self, after: int = 0) -> bytes:
        """What a client gets that reads on behind byte ``after``."""
        reading = await self._log.open(after)
        following = Following(self._log, after, reading, has_ids=self.has_ids)
        try:
            async with following.pipe() as pipe:
                return b"".join([data async for data in pipe])
        finally:
            await reading.aclose()

    def kept(self, got: bytes, position: int) -> tuple[bytes, int]:
        """What a client keeps that came back at byte ``position`` and got this, and from where it reads on."""
        if not self.has_ids:
            return got, position + len(got)
        text, offset = resumed_from(got)
        return text, offset or position

    async def read_with_cuts(self, rng: random.Random, cuts: int) -> bytes:
        """What a client has in the end whose connection is cut so often."""
        text, position = b"", 0
        for _ in range(cuts):
            got = await self.read(position)
            more, position = self.kept(got[: rng.randrange(len(got) + 1)], position)
            text += more
        return text + without_ids(await self.read(position))


async def check(answer: Answer, cuts: int, seed: str) -> None:
    async with Kept(answer) as kept:
        assert await kept.read_with_cuts(random.Random(seed), cuts) == answer.body, (str(answer), cuts)


@pytest.mark.parametrize("stream", every_stream("l9", ours=2, recorded_=1))
async def test_the_first_part_and_the_rest_are_the_whole(stream):
    for number, client in enumerate(random.Random(str(stream)).sample(CLIENTS, 2)):
        for answer in answers_of(stream, client):
            await check(answer, number, str(stream))
            await check(answer, 2, f"{stream} again")


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("stream", every_stream("l9 all"))
async def test_of_every_stream_in_every_dialect(stream, client):
    for answer in answers_of(stream, client):
        for number in range(20):
            await check(answer, number % 4, f"{stream} {number}")


def long_answer(client: str, *, is_array: bool, size: int) -> Answer:
    """An answer of that many bytes or more, with the call, text of several bytes a character, and reasoning of our vectors."""
    said = [s for s in OURS if s.dialect == "openai-chat" and s.name in {"text", "reasoning", "two calls in turn"}]
    found = [answer for s in said for answer in answers_of(s, client) if answer.meta.is_array is is_array]
    frames = [frame for answer in found for frame in answer.frames]
    return Answer(found[0].meta, frames * (size // sum(map(len, frames)) + 1))


@pytest.mark.parametrize("part", parts(32))
@EACH_FORM
async def test_after_any_byte_comes_what_is_behind_it(client, is_array, part):
    answer = long_answer(client, is_array=is_array, size=4096)
    async with Kept(answer) as kept:
        for after in part_of(range(len(answer.body) + 1), part, turn=FORMS.index((client, is_array))):
            assert without_ids(await kept.read(after)) == answer.body[after:], after


@EACH_FORM
async def test_after_every_events_id_comes_what_is_behind_the_event(client, is_array):
    answer = long_answer(client, is_array=is_array, size=1024)
    async with Kept(answer) as kept:
        whole = await kept.read()
        ids = cursors(whole)
        assert bool(ids) is kept.has_ids
        if client != "gemini" and kept.has_ids:
            assert len(ids) == len(answer.frames)
        for end, offset in ids:
            assert await kept.read(offset) == whole[end:]
            assert without_ids(whole[:end]) == answer.body[:offset]
