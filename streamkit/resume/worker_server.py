"""A worker's socket, through which the other workers of its host read the logs in its memory.

Source: resume.md §12, §12.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from streamkit.resume import LogError, MemoryStore, Reading, StoreDown
from streamkit.resume.worker_wire import (
    CALL_S,
    DATA,
    END,
    FRAME_BYTES,
    Frames,
    Question,
    error_frame,
    frame,
    opened_frame,
)

#: When this worker stops: seconds that readers in other workers have to read the rest of ended logs.
CLOSE_S: Final = 0.5
#: Seconds until the server notices that a reader has left. If a log has the most readers allowed, a new reader waits for
#: this long, since the same client may have left and come back.
LEAVING_S: Final = 0.02
#: Connections that may wait to be accepted; a further connection is refused as by a dead worker.
BACKLOG: Final = 1024


class WorkerServer:
    """Answers questions of other workers about ``store`` at a socket."""

    def __init__(self, store: MemoryStore, path: Path) -> None:
        self._store = store
        self._path = path
        self._server: asyncio.Server | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen; further calls do nothing. Raises OSError if that fails."""
        if self._server is None:
            self._server = await asyncio.start_unix_server(self._connected, self._path, backlog=BACKLOG)

    async def close(self) -> None:
        """Accept no further connections. Readers get the rest of ended logs."""
        if self._server is None:
            return
        self._server.close()
        self._path.unlink(missing_ok=True)
        if self._answering:
            _, late = await asyncio.wait(self._answering, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._answer(reader, writer))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(CALL_S):
                question = Question.read(*await Frames(reader).read())
            await _while_there(reader, self._tell(question, writer))
        except LogError as error:
            writer.write(error_frame(error))
        except (EOFError, OSError, TimeoutError):
            return  # the other worker has closed the connection
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            writer.close()

    async def _tell(self, question: Question, writer: asyncio.StreamWriter) -> None:
        store, name, owner = self._store, question.name, question.owner
        if question.operation == "open":
            await self._tell_log(question, writer)
            return
        if question.operation == "load":
            data = await store.load(name, owner)
            for begin in range(0, len(data), FRAME_BYTES):
                writer.write(frame(DATA, data[begin : begin + FRAME_BYTES]))
                await writer.drain()
        else:
            await (store.stop if question.operation == "stop" else store.delete)(name, owner)
        writer.write(frame(END))

    async def _tell_log(self, question: Question, writer: asyncio.StreamWriter) -> None:
        """Send all of a log: after a crash of this worker, only a reader with its beginning can write a matching error."""
        asked = await self._opened(question)
        ended = asked.ended
        await asked.aclose()
        reading = await self._store.open(question.name, question.owner)
        try:
            writer.write(opened_frame(reading.meta, ended))
            async for data in reading:
                writer.write(frame(DATA, data))
                await writer.drain()
            writer.write(frame(END, (reading.ended or "aborted").encode()))
            await writer.drain()
        finally:
            await reading.aclose()

    async def _opened(self, question: Question) -> Reading:
        """Open the log after the cursor, to check both. Raises LogError."""
        try:
            return await self._store.open(question.name, question.owner, question.after)
        except StoreDown:  # the log has the most readers allowed
            await asyncio.sleep(LEAVING_S)
            return await self._store.open(question.name, question.owner, question.after)


async def _while_there(reader: asyncio.StreamReader, work: Coroutine[Any, Any, None]) -> None:
    """Run ``work`` until the asking worker closes its connection, on which it sends nothing more."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, leaving):
            task.cancel()
        done, _ = await asyncio.gather(working, leaving, return_exceptions=True)
    if isinstance(done, Exception):
        raise done
