"""``streamkit inspect``: show the content of a stream, as a picture for people or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict

from streamkit.cli.inputs import error_object, open_or_say, refused
from streamkit.cli.options import (
    AUTO,
    add_in_text,
    add_policy,
    add_recordings,
    add_renamed,
    client,
    policy_of,
    port,
    source_or_auto,
)
from streamkit.cli.picture import Palette, Picture, Times, table, timing_rows
from streamkit.cli.progress import progress
from streamkit.cli.streams import files_of, name_of, say, write, write_json
from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Choice, Media, OutputFormat, Response, ToolCall
from streamkit.errors import StreamError, UsageError
from streamkit.events import Event, Verdict
from streamkit.lab.recording import TIME_DIGITS
from streamkit.pipeline import Pipe, pipe
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions
from streamkit.recipes import events_of
from streamkit.report import Status, StreamReport, describe
from streamkit.tool_calls.accumulate import accumulate_tool_calls
from streamkit.tool_calls.schema import ToolSchemas

HELP = "show the content of a stream"
DETAIL = """\
Reads one or more streams and shows a timeline of what arrived, the tool calls with their verdicts, the stop reason, the usage,
and the repairs. Without --from, the command detects the dialect. With several files, the exit status is the highest exit
status of all files.

--timings adds a table with one row for each stage. A row has the time of the stage alone, its share of the work, and the
number of reads, frames or events that went into the stage and out of it. The time of the source is the time of waiting for the
input, which is not part of the work. The times are from one run. If the machine is busy, repeat the command.

--tools FILE checks the arguments of each call against the schema of its tool. FILE is JSON with the tools of the request, or
with the whole request.

--output json checks that the text is one JSON value. --output FILE checks the text against the JSON schema in FILE.

--json prints one object on one line for each file:
  {"file", "dialect", "choices": [{"index", "text", "reasoning", "refusal",
    "tool_calls": [{"index", "id", "name", "arguments", "verdict"}],
    "stop_reason", "native_stop_reason",
    "media": [{"kind", "media_type", "url", "file_id", "name", "data_chars"}]}],
   "usage", "clean", "error", "repairs": {kind: count}, "losses": {kind: count}}
With --output, each choice whose text was checked has "verdict". If the verdict is bad, the choice also has "reason" and
"position". If the input is a recording or a live stream, the object has:
  "times": {"first_output_s", "last_output_s", "greatest_gap_s", "stalls"}
The times are in seconds. They begin with the request in a recording, and with the command in a live stream. A gap above 5 s is
a stall.
With --timings, the object has "timings": [{"stage", "seconds", "items_in", "items_out"}]; the first entry is the source.
If a file cannot be opened, or is in no known dialect, "dialect" is null, and "error" has the reason.
"arguments" is the text as received, and "data_chars" is the length of the base64 text of an image or file.

With --web, the command does not print the content. It serves a page on loopback until Ctrl-C, and prints the page's address.
The page shows which bytes led to which events, repairs and losses. With --to, the page also shows the stream in that dialect.
A stream on standard input is shown live, with its times.

A recording (*.stream.jsonl) states its dialect and its times. If the recorded response failed, the command fails in the same
way. The command recognises a recording by its first bytes, so a recording may also come from standard input.

examples:
  curl -N … | streamkit inspect
  streamkit inspect answer.stream.jsonl
  streamkit inspect --web --to DIALECT recording.sse
"""
#: The members of the JSON object for usage, in the order of the output.
USAGE = ("input_total", "input_cached", "input_cache_write", "output_total", "output_reasoning", "total")
#: The members of the JSON object for a choice, in the order of the output.
CHOICE = ("index", "text", "reasoning", "refusal", "tool_calls", "stop_reason", "native_stop_reason")


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit inspect``."""
    add = command.add_argument
    add(
        "--from",
        dest="source",
        default=AUTO,
        type=source_or_auto,
        metavar="DIALECT",
        help="the input's dialect, or its provider; auto detects the dialect (default: the dialect in a recording, or "
        "else auto)",
    )
    add_policy(command)
    add_in_text(command)
    add("--tools", metavar="TOOLS", help="a JSON file with the tools of the request, or with the whole request")
    add("--output", metavar="SCHEMA", help="'json', or a JSON file with the schema that the text must match")
    add("--json", action="store_true", help="print one JSON object for each file")
    add("--timings", action="store_true", help="show the time of each stage")
    add_renamed(command, "--profile", "--timings")
    add(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="when to use colors. auto: on a terminal, unless NO_COLOR is set (default: auto)",
    )
    add("--web", action="store_true", help="serve a page with the streams for a browser on this machine")
    add("--to", dest="target", type=client, metavar="DIALECT", help="with --web: also show the stream in this dialect")
    add("--port", type=port, default=0, metavar="N", help="with --web: the port of the page (default: any free port)")
    add_recordings(command)


async def run(options: argparse.Namespace) -> Status:
    """Show each file. Return the worst status of all files."""
    palette = Palette.wanted(options.color, sys.stdout)
    tools = None if options.tools is None else tools_of(options.tools)
    output = None if options.output is None else output_of(options.output)
    read_options = ReadOptions(policy=policy_of(options), tools=tools, output=output)
    files = [path for path, _ in files_of(options.files)]
    if options.web:
        if options.json or options.timings:
            raise UsageError("--json and --timings cannot be used with --web")
        from streamkit.cli.inspect_web import show  # noqa: PLC0415 - imports a server, which only --web needs

        return await show(files, options.source, read_options, client=options.target, port=options.port)
    if options.target is not None or options.port:
        raise UsageError("--to and --port need --web")
    with progress(files):
        statuses = [
            await inspect(path, options.source, palette, read_options, as_json=options.json, timings=options.timings)
            for path in files
        ]
    return max(statuses)


def tools_of(path: str) -> ToolSchemas:
    """Return the tools in a JSON file. Raises UsageError if the file has no tools or an invalid schema."""
    try:
        document = json.loads(Path(path).read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    tools = document.get("tools") if isinstance(document, dict) else document
    if not isinstance(tools, list):
        raise UsageError(f"{path}: must be a list of tools, or a request with one")
    try:
        schemas = ToolSchemas(tools)
        schemas.compile()
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    return schemas


def output_of(given: str) -> OutputFormat:
    """Return what the text must be: any JSON, or what matches the schema in a file. Raises UsageError for another file."""
    if given == "json":
        return OutputFormat("json", root="any")
    try:
        return OutputFormat("schema", json.loads(Path(given).read_text("utf-8")))
    except ValueError as error:
        raise UsageError(f"{given}: not JSON: {error}") from error


async def inspect(
    path: str,
    dialect: str,
    palette: Palette,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    as_json: bool,
    timings: bool = False,
) -> Status:
    """Read one file, show it, and return its status."""
    found = await open_or_say(path, dialect, unread=as_object(path, Response(""), None) if as_json else None)
    if isinstance(found, Status):
        return found
    opened, dialect = found
    report = StreamReport()
    source, failed = opened.source(report), opened.refusal(dialect)
    clock = (lambda: source.now) if opened.has_times else (lambda: 0.0)
    picture = Picture(palette, clock, is_timed=opened.recording is not None)
    stream: Pipe[list[Event]] = (
        pipe(refused(failed), accumulate_tool_calls(), report=report, timings=timings)
        if failed is not None
        else events_of(source, dialect, options, report=report, timings=timings)
    )
    async with stream:
        collector = Collector(dialect, report)
        try:
            async for batch in stream:
                collector.feed(batch)
                picture.feed(batch, ended=source.ended_at is not None)
        except StreamError as error:
            report.interrupted(error)
    response = collector.finish()
    if report.error is not None:
        say(f"{name_of(path)}: {describe(report.error)}")
    if as_json:
        write_json(as_object(path, response, picture.times))
    elif report.status is not Status.NOT_THIS_DIALECT:
        shown = picture.draw(name_of(path), response) + (table(report.timings) if timings else "")
        write(shown.encode(sys.stdout.encoding or "utf-8", "replace"))
    return report.status


def as_object(path: str, response: Response, times: Times | None) -> dict[str, Any]:
    """Return the JSON form of one file's response."""
    report = response.report
    seconds = {} if times is None else asdict(times)
    rounded = {name: round(each, TIME_DIGITS) if isinstance(each, float) else each for name, each in seconds.items()}
    timed = {"times": rounded} if rounded else {}
    timings = {"timings": timing_rows(report.timings)} if report.timings else {}
    return {
        "file": path,
        "dialect": response.dialect or None,
        "choices": [_choice(choice) for choice in response.choices],
        "usage": response.usage and _members(response.usage, USAGE),
        "clean": response.clean,
        "error": None if (error := response.error or report.error) is None else error_object(error),
        "repairs": dict(report.repairs),
        "losses": dict(report.losses),
        **timed,
        **timings,
    }


def _members(value: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _choice(choice: Choice) -> dict[str, Any]:
    calls, media = [_call(call) for call in choice.tool_calls], [_media(media) for media in choice.media]
    verdict = {} if choice.verdict is None else _verdict(choice.verdict)
    return {**_members(choice, CHOICE), "tool_calls": calls, "media": media, **verdict}


def _media(media: Media) -> dict[str, Any]:
    members = _members(media, ("kind", "media_type", "url", "file_id", "name"))
    return {**members, "data_chars": None if media.data is None else len(media.data)}


def _call(call: ToolCall) -> dict[str, Any]:
    verdict = {"verdict": None} if call.verdict is None else _verdict(call.verdict)
    return {**_members(call, ("index", "id", "name", "arguments")), **verdict}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    more = {} if verdict.reason is None else {"reason": verdict.reason, "position": verdict.position}
    return {"verdict": verdict.kind, **more}
