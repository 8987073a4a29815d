"""What the commands that convert share: reading a whole body, writing one over several lines, telling what became of it."""

from __future__ import annotations

import argparse
import re
from typing import Any

from streamkit.cli.streams import STDIN, name_of, read, say, write
from streamkit.report import describe

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s{}\[\],:"]++|[{}\[\],:]', re.DOTALL)
_OPENERS, _CLOSERS = frozenset((b"{", b"[")), frozenset((b"}", b"]"))


def add_body(command: Any) -> None:
    """The options about the body itself."""
    command.add_argument("--indent", action="store_true", help="write the body over several lines, for people")
    add_file(command, "the body")


def add_file(command: Any, what: str) -> None:
    """What is converted, and whether its report is told."""
    command.add_argument("--quiet", "-q", action="store_true", help="no report on standard error")
    command.add_argument("file", nargs="?", default=STDIN, metavar="FILE", help=f"{what}; standard input by default")


async def body_of(path: str) -> bytes:
    """Read the whole of a file, or of standard input where the path is ``-``."""
    return b"".join([chunk async for chunk in read(path)])


def write_body(body: bytes, options: argparse.Namespace) -> None:
    """Write a JSON body and a line end to standard output, indented where that is asked for."""
    write((indented(body) if options.indent else body) + b"\n")


def title_of(options: argparse.Namespace) -> str:
    """The heading of a report: the file, the dialect that came in and the one that goes out."""
    return f"{name_of(options.file)}: {options.source} -> {options.target}"


def refuse(options: argparse.Namespace, error: Exception) -> None:
    """Why there is no body, on one line."""
    say(f"{name_of(options.file)}: {describe(error)}")


def indented(body: bytes) -> bytes:
    """The same JSON over several lines. Only the blanks between tokens change: numbers keep their digits."""
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
