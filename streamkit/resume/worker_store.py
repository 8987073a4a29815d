"""The store for several workers of one host.

Each worker keeps its responses in memory, and reads the responses of other workers through their sockets. A log's id names the
worker that has it. A reader in another worker gets all bytes of the log and follows them, so that it can write a matching
error if that worker dies. Values are looked up in all workers: of two with one name the newer one counts.

Source: resume.md §12, §12.1; R19.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from streamkit.errors import StreamError
from streamkit.resume import Log, LogGone, MemoryStore, Meta, Reading, StoreDown
from streamkit.resume.closing import Closer
from streamkit.resume.identity import boot_in, checked_id
from streamkit.resume.log import End, Lost
from streamkit.resume.worker_server import WorkerServer
from streamkit.resume.worker_wire import (
    CALL_S,
    DATA,
    END,
    ERROR,
    OPENED,
    UNREADABLE,
    Frames,
    Question,
    end_in,
    error_in,
    opened_in,
    socket_path,
)

events = logging.getLogger("streamkit.resume")

#: The error message for a client if the worker that keeps the response does not answer.
SILENT: Final = "the process that has this answer does not respond; ask again"
#: Stored before each value: the time when it was saved, by a clock that all processes of a host share.
_SAVED: Final = struct.Struct(">Q")


class WorkerStore:
    """The memory of this worker, ``own``, and of the workers with sockets in ``directory``, which nothing else uses."""

    def __init__(self, own: MemoryStore, directory: Path) -> None:
        self.own = own
        self._directory = directory
        self._path = socket_path(directory, own.boot)
        self._server = WorkerServer(own, self._path)
        self._starting = asyncio.Lock()
        self._is_deaf = False  # True: this worker can't listen on its socket, and has logged that

    @property
    def live(self) -> int:
        return self.own.live

    @property
    def kept(self) -> int:
        return self.own.kept

    @property
    def held_bytes(self) -> int:
        return self.own.held_bytes

    @property
    def lost(self) -> Counter[Lost]:
        return self.own.lost

    async def start(self) -> None:
        """Let other workers ask for what is kept here, if possible. Never raises."""
        with suppress(StoreDown):
            await self._listen()

    def new_id(self, prefix: str = "st_") -> str:
        return self.own.new_id(prefix)

    async def create(self, log_id: str, meta: Meta, stop: Callable[[], None] = lambda: None) -> Log:
        if self._elsewhere(log_id) is not None:
            raise StoreDown("the id is another process's, which may have a log of it already")
        await self._listen()
        return await self.own.create(log_id, meta, stop)

    async def open(self, log_id: str, owner: str = "", after: int = 0) -> Reading:
        if (path := self._elsewhere(log_id)) is None:
            return await self.own.open(log_id, owner, after)
        return await _opened(path, Question("open", log_id, owner, after))

    async def stop(self, log_id: str, owner: str = "") -> None:
        if (path := self._elsewhere(log_id)) is None:
            await self.own.stop(log_id, owner)
        else:
            await _answer(path, Question("stop", log_id, owner))

    async def delete(self, log_id: str, owner: str = "") -> None:
        if (path := self._elsewhere(log_id)) is None:
            await self.own.delete(log_id, owner)
        else:
            await _answer(path, Question("delete", log_id, owner))

    async def save(self, name: str, data: bytes, owner: str = "", ttl_s: float | None = None) -> None:
        await self._listen()
        await self.own.save(name, _SAVED.pack(time.monotonic_ns()) + data, owner, ttl_s)

    async def load(self, name: str, owner: str = "") -> bytes:
        question = Question("load", name, owner)
        others = [path for path in self._directory.glob("*.sock") if path != self._path]
        asking = self.own.load(name, owner), *(_answer(path, question, self.own.limits.all_bytes) for path in others)
        found = await asyncio.gather(*asking, return_exceptions=True)
        values = [value for value in found if isinstance(value, bytes)]
        if not values:
            raise next((error for error in found if not isinstance(error, LogGone | bytes)), LogGone())
        return max(values, key=_SAVED.unpack_from)[_SAVED.size :]

    async def close(self) -> None:
        await self._server.close()
        await self.own.close()

    async def _listen(self) -> None:
        """Let other workers ask for what is kept here. Raises StoreDown."""
        try:
            async with self._starting:
                await self._server.start()
        except OSError as error:
            reason = error.strerror or str(error)
            if not self._is_deaf:
                self._is_deaf = True
                events.error("other workers can't ask this one for its answers", extra={"fields": {"reason": reason}})
            raise StoreDown(f"other workers could not ask for it: {reason.lower()}") from error

    def _elsewhere(self, log_id: str) -> Path | None:
        """Return the socket of the worker that has a log; None: this worker. Raises LogGone."""
        boot = boot_in(checked_id(log_id))
        if boot == self.own.boot:
            return None
        if not boot:
            raise LogGone  # the log was in another store, or in a process without workers
        return socket_path(self._directory, boot)


# -- questions to another worker ---------------------------------------------------------------------------------------


class _Connection:
    """One question to another worker, and its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._frames = Frames(reader)
        self._writer = writer

    async def read(self, *kinds: bytes) -> tuple[bytes, bytes]:
        """Return the next frame, one of ``kinds``. Raises LogError, and EOFError or OSError if the other worker is gone."""
        kind, payload = await self._frames.read()
        if kind == ERROR:
            raise error_in(payload)
        if kind not in kinds:
            raise StoreDown(UNREADABLE)
        return kind, payload

    def close(self) -> None:
        self._writer.transport.abort()  # nothing more will be read


async def _asked(path: Path, question: Question) -> _Connection:
    """Send a question to the worker at ``path``. Raises LogGone if there is no such worker, and OSError."""
    asked = question.frame()
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except (FileNotFoundError, ConnectionRefusedError):
        raise LogGone from None
    writer.write(asked)
    return _Connection(reader, writer)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Raise StoreDown if another worker takes too long or disappears during the block."""
    try:
        async with asyncio.timeout(CALL_S):
            yield
    except (TimeoutError, EOFError, OSError) as error:
        raise StoreDown(SILENT) from error


async def _answer(path: Path, question: Question, most_bytes: int = 0) -> bytes:
    """Return all bytes of an answer, at most ``most_bytes``. Raises LogGone and StoreDown."""
    found = bytearray()
    async with _in_time():
        connection = await _asked(path, question)
        try:
            while (part := await connection.read(DATA, END))[0] == DATA:
                found += part[1]
                if len(found) > most_bytes:
                    raise StoreDown(UNREADABLE)
        finally:
            connection.close()
    return bytes(found)


async def _opened(path: Path, question: Question) -> WorkerReading:
    """Open a log of the worker at ``path``. Raises LogGone, BadCursor and StoreDown."""
    async with _in_time():
        connection = await _asked(path, question)
        try:
            meta, ended = opened_in((await connection.read(OPENED))[1])
        except BaseException:
            connection.close()
            raise
    return WorkerReading(connection, meta, question.after, ended)


class WorkerReading:
    """One reader of another worker's log, after byte ``after``."""

    def __init__(self, connection: _Connection, meta: Meta, after: int, ended: End | None) -> None:
        self.meta = meta
        self.ended = ended
        self._connection = connection
        self._after = after
        self._seen = 0  # bytes of the log that were received, from its beginning
        self._closer = Closer(meta)
        self._is_open = True

    def __aiter__(self) -> WorkerReading:
        return self

    async def __anext__(self) -> bytes:
        while self._is_open:
            if data := await self._next():
                return data
        raise StopAsyncIteration

    async def closing(self, position: int, error: StreamError) -> bytes:  # noqa: ARG002 - this side has all bytes
        return self._closer.close(error)

    async def aclose(self) -> None:
        self._is_open = False
        self._connection.close()

    async def _next(self) -> bytes:
        """Return the bytes after the cursor, if the next frame has any. Raises LogError."""
        try:
            kind, data = await self._connection.read(DATA, END)
        except (EOFError, OSError):
            await self.aclose()
            self.ended = "aborted"
            return self._closer.close()
        if kind == END:
            await self.aclose()
            self.ended = end_in(data.decode("latin-1"))
            return b""
        skipped = max(0, self._after - self._seen)
        self._seen += len(data)
        self._closer.feed(data)
        return data[skipped:]
