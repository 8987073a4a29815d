"""``streamkit lint``: check whether a stream is well-formed, and explain each violation."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamkit.cli.inputs import error_object, open_or_say
from streamkit.cli.options import AUTO, add_recordings, dialect_or_auto
from streamkit.cli.progress import progress
from streamkit.cli.streams import files_of, name_of, say, say_failure, visible, write, write_json
from streamkit.errors import NotThisDialect, SourceFailed
from streamkit.lint import VERDICTS, Check, Found, members_of, sentence
from streamkit.report import Status

HELP = "check a stream against its dialect's grammar"
DETAIL = """\
Reports each rule of the dialect that a stream breaks, with the byte and the frame. For each violation, the report also says
which known failure of other software the violation resembles, and what streamkit would do. A violation is an error if it
breaks the grammar, or if a client cannot read it. A violation is a note if it is common and every client can read it. A stream
with only notes is clean. A repeated violation is printed once. With several files, the exit status is the highest exit status
of all files.

exit status: 0 clean; 1 broken, empty, or not readable to its end; 4 the recorded response is an error, so it has no stream; 5
not in the expected dialect; 6 not clean, but streamkit would read the stream to a clean end, with all its calls.

--json prints one object on one line for each file:
  {"file", "dialect", "verdict": "clean" | "repairable" | "broken",
   "violations": [{"rule", "message", "offset", "frame", "severity",
    "case": number | null, "streamkit": [repair] | text}],
   "repairs": {kind: count}, "other_repairs": [{"repair", "offset", "frame", "case"}]}
"case" is the number of a failure on the page "Field failures". "streamkit" has the kinds of repair that the frame needed, or a
text that says what streamkit would do. "other_repairs" has the repairs that belong to no violation. If a file
cannot be checked, "verdict" is null, and the object also has "error": {"type", "message"}.

A recording (*.stream.jsonl) states its dialect. A stream that was interrupted while it was recorded counts as broken. If the
status of the recorded response is not 200, the recording has no stream, and the exit status is 4.

examples:
  curl -N … | streamkit lint --dialect DIALECT
  streamkit lint answer.stream.jsonl
"""
#: The members of the JSON object for a file that could not be checked.
UNCHECKED: Final[Mapping[str, Any]] = {
    "dialect": None,
    "verdict": None,
    "violations": [],
    "repairs": {},
    "other_repairs": [],
}
STATUSES = ""  #: ``DETAIL`` has the exit statuses of this command


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit lint``."""
    add = command.add_argument
    add(
        "--dialect",
        default=AUTO,
        type=dialect_or_auto,
        metavar="DIALECT",
        help="the input's dialect; auto detects the dialect (default: the dialect in a recording, or else auto)",
    )
    add("--json", action="store_true", help="print one JSON object for each file")
    add_recordings(command)


async def run(options: argparse.Namespace) -> Status:
    """Check each file. Return the worst status of all files."""
    files = [path for path, _ in files_of(options.files)]
    with progress(files):
        statuses = [await lint(path, options.dialect, as_json=options.json) for path in files]
    return max(statuses)


async def lint(path: str, dialect: str, *, as_json: bool) -> Status:
    """Check one file, print the result, and return its status."""
    unread = {"file": path, **UNCHECKED}
    opened_or_status = await open_or_say(path, dialect, unread=unread if as_json else None)
    if isinstance(opened_or_status, Status):
        return Status.FAILED if opened_or_status is Status.CUT else opened_or_status  # an empty stream is broken
    opened, dialect = opened_or_status
    failed = opened.refusal(dialect)
    if failed is not None:
        what = f"the provider responded with status {failed.http_status}, {failed.type}: {failed.message}"
        say(f"{name_of(path)}: not a stream: {what}")
        if as_json:
            write_json({**unread, "dialect": dialect, "error": error_object(failed)})
        return Status.PROVIDER_ERROR
    check = Check(dialect)
    source = opened.source(check.report)
    try:
        async for chunk in source:
            check.feed(chunk)
    except SourceFailed as error:
        check.break_off(error)
    finally:
        await source.aclose()
    status, fault = check.finish(), check.fault
    if isinstance(fault, SourceFailed | NotThisDialect):
        failure = say_failure(fault, path)
        if status is Status.NOT_THIS_DIALECT or not check.report.bytes_in:
            if as_json:
                write_json({**unread, "dialect": dialect, "error": error_object(fault)})
            return failure
    if as_json:
        head = {"file": path, "dialect": check.dialect.name, "verdict": VERDICTS.get(status, "broken")}
        write_json(head | members_of(check))
    else:
        _print(path, check, status)
    return status


# -- printing the result --------------------------------------------------------------------------------------------------


def _print(path: str, check: Check, status: Status) -> None:
    groups: dict[object, list[Found]] = {}
    for found in check.found:
        groups.setdefault(found.kind, []).append(found)
    lines = [f"{name_of(path)}: {check.dialect.name}, {VERDICTS.get(status, 'broken')}"]
    for group in groups.values():
        lines += _lines(group)
    if check.report.repairs:
        lines.append(f"  repairs: {', '.join(f'{kind} {times}' for kind, times in check.report.repairs.items())}")
    write("".join(visible(line) + "\n" for line in lines).encode())


def _lines(group: list[Found]) -> Iterator[str]:
    first, *others = group
    more = f" (and {len(others)} more, the last at {_where(others[-1])})" if others else ""
    yield f"  {_where(first)}: {first.what}{more}"
    yield f"    {sentence(first.explanation)}"


def _where(found: Found) -> str:
    return f"byte {found.offset}" + (f", frame {found.frame}" if found.frame >= 0 else "")
