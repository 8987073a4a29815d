"""Bytes in and out of the command line.

Input is read through the event loop, never in a thread: a blocking read in an executor would keep the process alive after
SIGINT. The descriptor stays blocking (a terminal is shared with the shell); the loop only says when a read will not wait.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from typing import Any

from streamkit.errors import SourceFailed
from streamkit.text.printable import printable_json
from streamkit.text.quoting import shortened

READ_BYTES = 64 * 1024
STDIN = "-"
STDIN_DESCRIPTOR, STDOUT_DESCRIPTOR = 0, 1


def read(path: str) -> AsyncGenerator[bytes, None]:
    """What each read of a file, or of standard input for ``-``, brings. Raises SourceFailed, at once if it can't be opened."""
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
    """Wait until a read of a pipe, socket or terminal will not wait. A regular file never does."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:  # epoll refuses regular files
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def write(data: bytes) -> None:
    """All of ``data`` to standard output, at once. Raises BrokenPipeError when the reader left."""
    view = memoryview(data)
    while view:
        view = view[os.write(STDOUT_DESCRIPTOR, view) :]


def write_json(value: Any) -> None:
    """A value as a line of JSON to standard output, safe to be shown in a terminal."""
    write(f"{printable_json(value)}\n".encode())


def say(line: str) -> None:
    """One line for people on standard error."""
    print(f"streamkit: {visible(line)}", file=sys.stderr)


def visible(text: str) -> str:
    """Text from the wire without the power to move a terminal's cursor: control characters are escaped (limits.md T12)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, width: int) -> str:
    """The beginning of a text on one line, at most ``width`` characters."""
    return shortened(visible(text[: width + 1]), width)


def name_of(path: str) -> str:
    """How a report names a file; ``-`` is standard input."""
    return "(standard input)" if path == STDIN else path
