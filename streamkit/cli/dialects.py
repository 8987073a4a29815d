"""``streamkit dialects``: list the dialects with their origin, and the providers and clients that use them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from streamkit.cli.streams import visible, write, write_json
from streamkit.dialects import DIALECTS, Candidate
from streamkit.dialects.base import Dialect
from streamkit.report import Status

HELP = "list the dialects, and the providers and clients whose names can replace a dialect's name"
DETAIL = """\
Lists every dialect with its title, the media type of its streams, its directions (in: it can be read; out: it can be written),
and its origin: built in, or the installed distribution whose entry point provides it. An entry point that cannot be used is
listed with the reason, and the exit status is 1; the other dialects still work.

Then it lists the providers, whose names are accepted for an input's dialect, and the clients, whose names are accepted for an
output's dialect. A provider's name is never needed to read a stream. It states which repairs are expected, and which members
the provider sends in addition to the dialect's fields. A client's name changes the output as listed, or not at all.

--json prints one object on one line for each entry:
  {"name", "title", "media_type", "directions": ["in", "out"], "distribution", "version", "entry_point", "error",
   "providers": [{"name", "title", "habits": {repair: how}, "adds": {field: what}}],
   "clients": [{"name", "title", "changes": {setting: value}}]}
where "distribution", "version" and "entry_point" are null for built-in dialects, and "error" is null for usable dialects.

example:
  streamkit dialects
"""
DIRECTIONS = ("in", "out")  #: every dialect has both a decoder and an encoder, so all have both directions
STATUSES = ""  #: ``DETAIL`` has the exit statuses of this command


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit dialects``."""
    add = command.add_argument
    add("--json", action="store_true", help="print one JSON object for each entry")


async def run(options: argparse.Namespace) -> Status:
    """List the dialects. Return a failure status if a dialect of another package cannot be used."""
    candidates = DIALECTS.candidates()
    entries = [_as_object(name, dialect) for name, dialect in DIALECTS.built_in.items()]
    entries += [_as_object(candidate.name, candidate.dialect, candidate) for candidate in candidates]
    if options.json:
        for entry in entries:
            write_json(entry)
    else:
        write("".join(visible(line) + "\n" for line in _lines(entries)).encode())
    return Status.FAILED if any(candidate.dialect is None for candidate in candidates) else Status.DONE


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


def _lines(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of the usable dialects, then the unusable ones, the providers and the clients."""
    rows = [
        (
            entry["name"],
            entry["title"],
            entry["media_type"],
            ", ".join(entry["directions"]),
            f"{entry['distribution']} {entry['version']}" if entry["distribution"] else "built in",
        )
        for entry in entries
        if entry["error"] is None
    ]
    yield from _table(rows)
    for entry in entries:
        if entry["error"] is not None:
            origin = f"{entry['distribution']} {entry['version']} ({entry['entry_point']})"
            yield f"can't be used: {entry['name']} of {origin}: {entry['error']}"
    yield ""
    yield "providers (--from), their expected repairs, and what they send in addition to the dialect's fields:"
    for entry in entries:
        for provider in entry["providers"]:
            yield f"  {provider['name']} ({entry['name']}): {provider['title']}"
            yield from (f"    repair {kind}: {how}" for kind, how in provider["habits"].items())
            yield from (f"    adds {name}: {what}" for name, what in provider["adds"].items())
    yield ""
    yield "clients (--to), and how the output for them differs:"
    for entry in entries:
        for client in entry["clients"]:
            changes = ", ".join(f"{name} = {value}" for name, value in client["changes"].items())
            yield f"  {client['name']} ({entry['name']}): {client['title']}; {changes or 'the default'}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
