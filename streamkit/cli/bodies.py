"""Functions that the convert commands share: read a whole body, write it with indentation, and report an error."""

from __future__ import annotations

import argparse
import re
from typing import Any

from streamkit.cli.streams import STDIN, name_of, read, say, write
from streamkit.report import describe

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s{}\[\],:"]++|[{}\[\],:]', re.DOTALL)
_OPENERS, _CLOSERS = frozenset((b"{", b"[")), frozenset((b"}", b"]"))


def add_body(command: Any) -> None:
    """Add ``--indent``, and the options of ``add_file``."""
    command.add_argument("--indent", action="store_true", help="write the body over several lines, for people")
    add_file(command, "the body")


def add_file(command: Any, what: str) -> None:
    """Add the input file and ``--quiet``. ``what`` describes the file in the help."""
    command.add_argument("--quiet", "-q", action="store_true", help="no report on standard error")
    command.add_argument("file", nargs="?", default=STDIN, metavar="FILE", help=f"{what}; standard input by default")


async def body_of(path: str) -> bytes:
    """Read a whole file, or all of standard input if the path is ``-``."""
    return b"".join([chunk async for chunk in read(path)])


def write_body(body: bytes, options: argparse.Namespace) -> None:
    """Write a JSON body and a line end to standard output, indented with ``--indent``."""
    write((indented(body) if options.indent else body) + b"\n")


def title_of(options: argparse.Namespace) -> str:
    """Return the heading of a report: the file, the input's dialect and the output's dialect."""
    return f"{name_of(options.file)}: {options.source} -> {options.target}"


def refuse(options: argparse.Namespace, error: Exception) -> None:
    """Print on one line why no body is written."""
    say(f"{name_of(options.file)}: {describe(error)}")


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
