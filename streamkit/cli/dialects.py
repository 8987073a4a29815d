"""``streamkit dialects``: list the dialects with their origin, and the providers and clients that use them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain, starmap
from textwrap import wrap
from typing import Any, Final

from streamkit.cli.streams import visible, write, write_json
from streamkit.dialects import DIALECTS, Candidate, dialect_named
from streamkit.dialects.base import Dialect
from streamkit.report import Status

HELP = "list the dialects, and the providers and clients whose names can replace a dialect's name"
DETAIL = """\
Lists every dialect with its title and its origin. A dialect is built in, or an installed package provides it by an entry
point. If an entry point cannot be used, the command lists it with the reason, and the exit status is 1. The other dialects
still work.

Then the command lists the providers and the clients. You may use the name of a provider instead of an input's dialect, and the
name of a client instead of an output's dialect. A stream can be read without the name of its provider.

With a NAME, the command describes that dialect, provider or client: the media type of the streams, the repairs that a
provider's streams usually need, the fields that the provider adds, and the changes that streamkit makes for a client.

--json prints one object on one line for each dialect:
  {"name", "title", "media_type", "directions": ["in", "out"],
   "distribution", "version", "entry_point", "error",
   "providers": [{"name", "title", "habits": {repair: how}, "adds": {field: what}}],
   "clients": [{"name", "title", "changes": {setting: value}}]}
"distribution", "version" and "entry_point" are null for built-in dialects. "error" is null if the dialect can be used.

examples:
  streamkit dialects
  streamkit dialects deepseek claude-code
"""
DIRECTIONS = ("in", "out")  #: every dialect has both a decoder and an encoder, so all have both directions
#: The entries' lists of names that can replace a dialect's name, and the option that accepts them.
_KINDS: Final = {"providers": "--from", "clients": "--to"}
WIDTH: Final = 80
STATUSES = ""  #: ``DETAIL`` has the exit statuses of this command


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit dialects``."""
    add = command.add_argument
    add("--json", action="store_true", help="print one JSON object for each dialect")
    add("names", nargs="*", metavar="NAME", help="the dialects, providers and clients to describe (default: list all)")


async def run(options: argparse.Namespace) -> Status:
    """List the dialects. Return a failure status if a dialect of another package cannot be used."""
    candidates = DIALECTS.candidates()
    entries = [_as_object(name, dialect) for name, dialect in DIALECTS.built_in.items()]
    entries += [_as_object(candidate.name, candidate.dialect, candidate) for candidate in candidates]
    chosen = [_named(name, entries) for name in options.names] or [(entry, None) for entry in entries]
    if options.json:
        for entry, _ in chosen:
            write_json(entry)
    else:
        lines = chain.from_iterable(starmap(_details, chosen)) if options.names else _lines(entries)
        write("".join(visible(line) + "\n" for line in lines).encode())
    return Status.FAILED if any(entry["error"] is not None for entry, _ in chosen) else Status.DONE


def _named(name: str, entries: list[dict[str, Any]]) -> tuple[dict[str, Any], str | None]:
    """Return a dialect's entry, and the name of the provider or client if ``name`` is one. Raises UsageError."""
    for entry in entries:
        if name == entry["name"]:
            return entry, None
        if any(name == each["name"] for kind in _KINDS for each in entry[kind]):
            return entry, name
    dialect_named(name, "provider", "client")
    raise AssertionError(name)  # pragma: no cover - every usable dialect has an entry


def _as_object(name: str, dialect: Dialect | None, candidate: Candidate | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "title": dialect and dialect.title,
        "media_type": dialect and dialect.media_type,
        "directions": DIRECTIONS if dialect else (),
        "distribution": candidate and candidate.distribution,
        "version": candidate and candidate.version,
        "entry_point": candidate and candidate.value,
        "error": (candidate and candidate.reason) or None,
        "providers": [
            {"name": one.name, "title": one.title, "habits": dict(one.habits), "adds": dict(one.adds)}
            for one in (dialect.providers if dialect else ())
        ],
        "clients": [
            {"name": one.name, "title": one.title, "changes": one.changes}
            for one in (dialect.clients if dialect else ())
        ],
    }


def _origin(entry: dict[str, Any]) -> str:
    return f"{entry['distribution']} {entry['version']}" if entry["distribution"] else "built in"


def _lines(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of the usable dialects, then the unusable ones, and the names of the providers and the clients."""
    yield from _table([(entry["name"], entry["title"], _origin(entry)) for entry in entries if entry["error"] is None])
    for entry in entries:
        if entry["error"] is not None:
            yield _unusable(entry)
    for kind, option in _KINDS.items():
        yield ""
        names = " ".join(each["name"] for entry in entries for each in entry[kind])
        yield from wrap(f"{kind} ({option}): {names}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    yield ""
    yield "`streamkit dialects NAME` describes a dialect, a provider or a client."


def _unusable(entry: dict[str, Any]) -> str:
    return f"cannot be used: {entry['name']} of {_origin(entry)} ({entry['entry_point']}): {entry['error']}"


def _details(entry: dict[str, Any], only: str | None) -> Iterator[str]:
    """Yield the description of a dialect with its providers and clients, or ``only`` of one of them."""
    if entry["error"] is not None:
        yield _unusable(entry)
        return
    if only is None:
        yield f"{entry['name']}: {entry['title']}"
        yield f"  streams: {entry['media_type']}, {' and '.join(entry['directions'])}; {_origin(entry)}"
    for kind, option in _KINDS.items():
        for each in entry[kind]:
            if only in (None, each["name"]):
                yield f"  {kind.removesuffix('s')} {each['name']} ({option} {each['name']}): {each['title']}"
                yield f"    dialect: {entry['name']}"
                yield from (f"    repair {name}: {how}" for name, how in each.get("habits", {}).items())
                yield from (f"    adds {name}: {what}" for name, what in each.get("adds", {}).items())
                yield from (f"    changes {name} = {value}" for name, value in each.get("changes", {}).items())
                if each.get("changes") == {}:
                    yield "    changes nothing"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
