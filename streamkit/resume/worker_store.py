"""The store for several workers of one host, and the protocol of the workers: one question per connection, and its answer.

Each worker keeps its responses in memory, and reads the responses of other workers through their unix sockets. A log's id
names the worker that has it. A reader in another worker gets all bytes of the log and follows them, so that it can write a
matching error if that worker dies. Values are looked up in all workers: of two with one name the newer one counts.

A frame is a kind (one byte), a length (four bytes, big-endian) and as many bytes. A question is one frame. The answer to
``open`` is ``OPENED``, then the log from its first byte as ``DATA``, then ``END`` with the word for its end. The answer to
``load`` is ``DATA`` and ``END``, to other questions ``END``. Any answer may be ``ERROR`` at any point. A connection that ends
without ``END`` or ``ERROR`` means that the worker died. Both sides check sizes and words.

Source: resume.md §12, §12.1, §13.6; R19.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, cast, get_args

import attrs
import orjson
from attrs import field, frozen

from streamkit.dialects import client_named
from streamkit.errors import StreamError, UsageError
from streamkit.resume.closing import Closer
from streamkit.resume.log import (
    ENDS,
    LARGEST_OFFSET,
    BadCursor,
    End,
    Log,
    LogError,
    LogGap,
    LogGone,
    Meta,
    Reading,
    StoreDown,
    boot_in,
    checked_id,
)
from streamkit.resume.memory import MemoryStore

QUESTION, OPENED, DATA, END, ERROR = b"Q", b"O", b"D", b"E", b"X"
_HEADER: Final = struct.Struct(">cI")
#: The largest frame. Logs are sent in pieces of this size; questions and messages are shorter.
FRAME_BYTES: Final = 64 * 1024
CALL_S: Final = 1.0  #: Seconds to wait for another worker's answer. Its event loop may be busy.
#: The longest path of a socket (``sun_path`` of unix(7) and of BSD's unix(4), without its zero byte).
PATH_BYTES: Final = (108 if sys.platform == "linux" else 104) - 1

Operation: TypeAlias = Literal["open", "stop", "delete", "load"]
_OPERATIONS: Final = frozenset(get_args(Operation))
_ERRORS: Final[dict[str, type[LogError]]] = {
    "gone": LogGone, "cursor": BadCursor, "gap": LogGap, "down": StoreDown
}  # fmt: skip
_WORDS: Final = {kind: word for word, kind in _ERRORS.items()}
UNREADABLE: Final = "another worker sent an invalid frame"


def socket_path(directory: Path, boot: str) -> Path:
    """Return the path of the socket of the worker ``boot``."""
    return directory / f"{boot}.sock"


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return _HEADER.pack(kind, len(payload)) + payload


@frozen
class Question:
    """A question from one worker to another."""

    operation: Operation
    name: str  #: the id of a log, or the name of a value
    owner: str = field(default="", repr=False)
    after: int = 0

    def frame(self) -> bytes:
        """Return the question as a frame. Raises LogGone if the name is too long."""
        payload = orjson.dumps([self.operation, self.name, self.owner, self.after])
        if len(payload) > FRAME_BYTES:
            raise LogGone  # the name is too long for any kept log or value
        return frame(QUESTION, payload)

    @classmethod
    def read(cls, kind: bytes, payload: bytes) -> Self:
        """Return the question in a frame. Raises StoreDown if the frame is no question."""
        try:
            operation, name, owner, after = orjson.loads(payload)
        except ValueError:
            raise StoreDown(UNREADABLE) from None
        is_text = isinstance(name, str) and isinstance(owner, str)
        is_known = kind == QUESTION and isinstance(operation, str) and operation in _OPERATIONS
        if not is_known or not is_text or type(after) is not int or not 0 <= after <= LARGEST_OFFSET:
            raise StoreDown(UNREADABLE)
        return cls(cast("Operation", operation), name, owner, after)


def opened_frame(meta: Meta, ended: End | None) -> bytes:
    """Return the first frame of an answer to ``open``. ``ended``: how the log ended, if the reader already has all of it."""
    return frame(OPENED, orjson.dumps([attrs.asdict(meta), ended]))


def opened_in(payload: bytes) -> tuple[Meta, End | None]:
    """Return the content of ``opened_frame``. Raises StoreDown if it is invalid."""
    try:
        document, ended = orjson.loads(payload)
        meta = Meta(**document)
        client_named(meta.dialect)
    except (ValueError, TypeError, UsageError):
        raise StoreDown(UNREADABLE) from None
    if any(type(getattr(meta, name)) is not kind for name, kind in _META_TYPES.items()):
        raise StoreDown(UNREADABLE)
    return meta, None if ended is None else end_in(ended)


def end_in(word: Any) -> End:
    """Return the kind of end that ``word`` names. Raises StoreDown if it names none."""
    if not isinstance(word, str) or word not in ENDS:
        raise StoreDown(UNREADABLE)
    return cast("End", word)


_META_TYPES: Final = {
    attribute.name: str if attribute.default is attrs.NOTHING else type(attribute.default)
    for attribute in attrs.fields(Meta)
}


def error_frame(error: LogError) -> bytes:
    """Return an error as a frame. An error whose class has no word in the protocol is sent as ``down``."""
    return frame(ERROR, orjson.dumps([_WORDS.get(type(error), "down"), str(error)[: FRAME_BYTES // 8]]))


def error_in(payload: bytes) -> LogError:
    """Return the error in a frame."""
    try:
        word, message = orjson.loads(payload)
        return _ERRORS[word](str(message))
    except (ValueError, TypeError, KeyError):
        return StoreDown(UNREADABLE)


class Frames:
    """Reads the frames of a connection one by one. A cancelled read loses no bytes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._header = b""

    async def read(self) -> tuple[bytes, bytes]:
        """Return the next frame. Raises EOFError or OSError if the connection ended, and StoreDown for an invalid frame."""
        self._header = self._header or await self._reader.readexactly(_HEADER.size)
        kind, size = _HEADER.unpack(self._header)
        if size > FRAME_BYTES:
            raise StoreDown(UNREADABLE)
        payload = await self._reader.readexactly(size)
        self._header = b""
        return kind, payload


# -- answers to other workers ------------------------------------------------------------------------------------------


CLOSE_S: Final = (
    0.5  #: when this worker stops: seconds that readers in other workers have to read the rest of ended logs
)
#: Seconds until the server notices that a reader has left. If a log has the most readers allowed, a new reader waits for
#: this long, since the same client may have left and come back.
LEAVING_S: Final = 0.02
BACKLOG: Final = 1024  #: connections that may wait to be accepted; a further connection is refused as by a dead worker


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
            await _while_there(reader, self._respond(question, writer))
        except LogError as error:
            writer.write(error_frame(error))
        except (EOFError, OSError, TimeoutError):
            return  # the other worker has closed the connection
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            writer.close()

    async def _respond(self, question: Question, writer: asyncio.StreamWriter) -> None:
        store, name, owner = self._store, question.name, question.owner
        if question.operation == "open":
            await self._send_log(question, writer)
            return
        if question.operation == "load":
            data = await store.load(name, owner)
            for begin in range(0, len(data), FRAME_BYTES):
                writer.write(frame(DATA, data[begin : begin + FRAME_BYTES]))
                await writer.drain()
        else:
            await (store.stop if question.operation == "stop" else store.delete)(name, owner)
        writer.write(frame(END))

    async def _send_log(self, question: Question, writer: asyncio.StreamWriter) -> None:
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


# -- the store ---------------------------------------------------------------------------------------------------------


events = logging.getLogger("streamkit.resume")

#: The error message for a client if the worker that keeps the response does not answer.
SILENT: Final = "the process that has this response does not respond; retry later"
#: Stored before each value: the time when it was saved, by a clock that all processes of a host share.
_SAVED: Final = struct.Struct(">Q")


class WorkerStore:
    """The memory of this worker, ``own``, and of the workers with sockets in ``directory``, which nothing else uses."""

    def __init__(self, own: MemoryStore, directory: Path) -> None:
        self.own = own
        self.lost = own.lost
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

    async def start(self) -> None:
        """Let other workers ask for what is kept here, if possible. Never raises."""
        with suppress(StoreDown):
            await self._listen()

    def new_id(self, prefix: str = "st_") -> str:
        return self.own.new_id(prefix)

    async def create(self, log_id: str, meta: Meta, stop: Callable[[], None] = lambda: None) -> Log:
        if self._elsewhere(log_id) is not None:
            raise StoreDown("the id belongs to another process, which may already have a log with it")
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
                events.error("other workers can't read this worker's responses", extra={"fields": {"reason": reason}})
            raise StoreDown(f"other workers can't read this worker's responses: {reason.lower()}") from error

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
