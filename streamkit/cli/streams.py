"""Input and output of the command line, in bytes, and what the convert commands share for whole bodies.

Input is read through the event loop and never in a thread: a blocking read in a thread would keep the process alive after
SIGINT. The descriptor stays blocking, since the shell shares a terminal; the loop waits until a read will not block.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

from streamkit.errors import NotThisDialect, SourceFailed, UsageError
from streamkit.framing.frame import NOTHING
from streamkit.lab.recording.folders import files_below
from streamkit.report import Status, describe
from streamkit.text.quoting import printable_json, shortened

READ_BYTES = 64 * 1024
STDIN = STDOUT = "-"
STDIN_DESCRIPTOR, STDOUT_DESCRIPTOR = 0, 1


def prepare_standard_streams() -> None:
    """Open the null device for each closed descriptor of 0 to 2, and print "?" for a character that stdout cannot encode.

    Without this, the next opened file would get a closed descriptor's number, and ``print`` to a closed standard error would
    write into the data. Reading from a closed standard input and writing data to a closed standard output still fail.
    """
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # it is closed, so it is the lowest free descriptor
            os.set_inheritable(os.open(os.devnull, mode), True)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nothing, "r" if name == "stdin" else "w", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="replace")


def files_of(inputs: Sequence[str], target: Path | None = None) -> list[tuple[str, Path]]:
    """Return the input files, and the files of each input folder, with their paths below the folder.

    Files in ``target``, a folder for outputs, are left out if it is in the input folder. Raises UsageError if there are no
    files or if ``target`` is the input folder, and SourceFailed for a folder that cannot be read.
    """
    found: list[tuple[str, Path]] = []
    outputs = None if target is None else target.resolve()
    for given in inputs:
        folder = Path(given)
        if not folder.is_dir():
            found.append((given, Path(folder.name)))
            continue
        whole = folder.resolve()
        if outputs == whole:
            raise UsageError(f"--out: {target} is the input folder; name another folder")
        earlier = outputs if outputs is not None and whole in outputs.parents else None
        found += [
            (str(path), path.relative_to(folder))
            for path in files_below(folder)
            if earlier is None or earlier not in path.resolve().parents
        ]
    if not found:
        raise UsageError(f"{', '.join(inputs)}: no file in this folder")
    return found


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


def size_of(path: str) -> int | None:
    """Return the size of a file, or of the file that is standard input. For a pipe, a terminal and no file, return None."""
    try:
        found = os.fstat(STDIN_DESCRIPTOR) if path == STDIN else Path(path).stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


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


on_line: list[Callable[[], None]] = []  #: called before each line on a terminal: a progress bar is removed


def write(data: bytes) -> None:
    """Write all of ``data`` to standard output without buffering.

    Raises BrokenPipeError if the reader closed the pipe, and SourceFailed for other errors, such as a full disk.
    """
    for call in on_line:
        call()
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(STDOUT_DESCRIPTOR, view) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SourceFailed(f"cannot write (standard output): {error.strerror}") from error


def write_json(value: Any) -> None:
    """Write a value as one line of JSON to standard output, with characters escaped that could control a terminal."""
    write(f"{printable_json(value)}\n".encode())


def say(line: str) -> None:
    """Print one line for people to standard error."""
    for call in on_line:
        call()
    print(f"streamkit: {visible(line)}", file=sys.stderr)


def say_failure(error: Exception, path: str | None = None) -> Status:
    """Print the error that ended a command, or its work on the file at ``path``, with advice. Return the status.

    Give no ``path`` if the error's message names the file.
    """
    if isinstance(error, OSError) and error.filename is not None:
        text = f"cannot read {error.filename}: {error.strerror}"
    else:
        text = describe(error)
    unknown = error.__cause__ if isinstance(error, SourceFailed) and error.__cause__ is not None else error
    advice = _advice(unknown.found, records=unknown is not error) if isinstance(unknown, NotThisDialect) else ""
    say(f"{'' if path is None else f'{name_of(path)}: '}{text}{advice}")
    if isinstance(unknown, NotThisDialect):
        return Status.CUT if unknown.found == NOTHING else Status.NOT_THIS_DIALECT
    return Status.USAGE if isinstance(error, UsageError) else Status.FAILED


def _advice(found: str, *, records: bool) -> str:
    """Return what to do with an input that ``NotThisDialect.found`` describes. ``records``: it was to become a recording."""
    if found.startswith("a JSON body"):
        return f"; for a whole response, {'name the dialect' if records else 'use streamkit convert-response'}"
    if found.startswith("a stream"):
        return "; for a stream, use streamkit convert"
    if found.startswith("binary data (1f 8b"):
        return "; this is a gzip file: decompress it first (gunzip)"
    return "; name the dialect" if found.endswith(" bytes") else ""


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


# -- bodies ------------------------------------------------------------------------------------------------------------


_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s{}\[\],:"]++|[{}\[\],:]', re.DOTALL)
_OPENERS, _CLOSERS = frozenset((b"{", b"[")), frozenset((b"}", b"]"))


def add_body(command: Any) -> None:
    """Add ``--indent`` and ``--quiet``."""
    command.add_argument(
        "--indent", action="store_true", help="write the body in several lines, so that people can read it"
    )
    add_quiet(command)


def add_quiet(command: Any) -> None:
    """Add ``--quiet``."""
    command.add_argument("--quiet", "-q", action="store_true", help="write no report on standard error")


def line_of(body: bytes, *, indent: bool) -> bytes:
    """Return a JSON body with a line end, indented for ``--indent``."""
    return (indented(body) if indent else body) + b"\n"


def indented(body: bytes) -> bytes:
    """Return the same JSON over several lines. Only whitespace between tokens changes, so numbers keep their digits."""
    written: list[bytes] = []
    depth, before = 0, b""
    for token in _TOKEN.findall(body):
        if token in _CLOSERS:
            depth -= 1
        if before == b",":
            written.append(b"\n" + b"  " * depth)
        elif before == b":":
            written.append(b" ")
        elif (before in _OPENERS) != (token in _CLOSERS):
            written.append(b"\n" + b"  " * depth)
        if token in _OPENERS:
            depth += 1
        written.append(token)
        before = token
    return b"".join(written)
