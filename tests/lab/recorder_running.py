"""A recording proxy in front of an upstream that tests script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from streamkit.lab.recorder import TIMEOUTS, Exchanged, Proxy, base_url
from streamkit.lab.recording import Recording, read_recording
from streamkit.lab.recording.recorder import Recorder
from streamkit.web.listening import listening, url_of
from streamkit.web.source import Timeouts
from tests.web.serving import eventually

#: For tests that wait for one.
QUICK = Timeouts(connect_s=1.0, first_byte_s=0.1, idle_s=0.1)


@define
class Running:
    url: str
    directory: Path
    recorder: Recorder
    told: list[Exchanged] = field(factory=list)
    warned: list[str] = field(factory=list)

    async def recorded(self, number: int = 0) -> Recording:
        """The recording of the exchange that ended as the n-th."""
        await eventually(lambda: len(self.told) > number)
        file = self.told[number].file
        assert file is not None
        return read_recording(file)

    def written(self) -> bytes:
        """All bytes in the directory, and the names there."""
        return b"".join(path.name.encode() + path.read_bytes() for path in self.directory.rglob("*"))


@asynccontextmanager
async def recording(
    to: str, directory: Path, *, timeouts: Timeouts = TIMEOUTS, **options: Any
) -> AsyncIterator[Running]:
    """A proxy in front of ``to``; ``options`` are those of the recorder, and ``dialect`` and ``provider`` of the proxy."""
    named = {name: options.pop(name) for name in ("dialect", "provider") if name in options}
    warned: list[str] = []
    told: list[Exchanged] = []
    recorder = Recorder(directory, warn=warned.append, **options)
    proxy = Proxy(base_url(to), recorder, told.append, timeouts=timeouts, **named)
    try:
        async with listening(proxy.app(), ("127.0.0.1", 0), idle_s=75.0, decompress=False) as bound:
            yield Running(url_of(bound), directory, recorder, told, warned)
    finally:
        assert await asyncio.to_thread(recorder.close)
        await asyncio.sleep(0)
