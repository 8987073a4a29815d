"""Input and output of the command line, in bytes.

Input is read through the event loop and never in a thread: a blocking read in a thread would keep the process alive after
SIGINT. The descriptor stays blocking, since the shell shares a terminal; the loop waits until a read will not block.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from typing import Any

from streamkit.errors import SourceFailed
from streamkit.text.quoting import printable_json, shortened

READ_BYTES = 64 * 1024
STDIN = "-"
STDIN_DESCRIPTOR, STDOUT_DESCRIPTOR = 0, 1


def read(path: str) -> AsyncGenerator[bytes, None]:
    """Return an iterator over the reads of a file, or of standard input for ``-``. Raises SourceFailed if opening fails."""
    try:
        return _reads(path, STDIN_DESCRIPTOR if path == STDIN else os.open(path, os.O_RDONLY))
    except OSError as error:
        raise _failed(path, error) from error


async def _reads(path: str, descriptor: int) -> AsyncGenerator[bytes, None]:
    try:
        while True:
            await _readable(descriptor)
            try:
                chunk = os.read(descriptor, READ_BYTES)
            except OSError as error:
                raise _failed(path, error) from error
            if not chunk:
                return
            yield chunk
    finally:
        if descriptor != STDIN_DESCRIPTOR:
            os.close(descriptor)


def _failed(path: str, error: OSError) -> SourceFailed:
    return SourceFailed(f"cannot read {name_of(path)}: {error.strerror}")


async def _readable(descriptor: int) -> None:
    """Wait until reading a pipe, socket or terminal will not block. Reading a regular file never blocks."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:  # the descriptor is a regular file, which epoll does not support
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def write(data: bytes) -> None:
    """Write all of ``data`` to standard output without buffering. Raises BrokenPipeError if the reader closed the pipe."""
    view = memoryview(data)
    while view:
        view = view[os.write(STDOUT_DESCRIPTOR, view) :]


def write_json(value: Any) -> None:
    """Write a value as one line of JSON to standard output, with characters escaped that could control a terminal."""
    write(f"{printable_json(value)}\n".encode())


def say(line: str) -> None:
    """Print one line for people to standard error."""
    print(f"streamkit: {visible(line)}", file=sys.stderr)


def visible(text: str) -> str:
    """Escape control characters, so that text from a stream cannot move a terminal's cursor (limits.md T12)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, width: int) -> str:
    """Return the beginning of a text as one line of at most ``width`` characters."""
    return shortened(visible(text[: width + 1]), width)


def name_of(path: str) -> str:
    """Return the name of a file in messages; ``-`` is standard input."""
    return "(standard input)" if path == STDIN else path
