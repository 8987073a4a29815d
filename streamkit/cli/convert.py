"""``streamkit convert``: translate a stream from standard input or a file into another dialect on standard output."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from attrs import evolve

from streamkit.cli.inputs import open_or_say, refused
from streamkit.cli.options import (
    AUTO,
    ONE,
    OTHER,
    add_in_text,
    add_policy,
    add_stage,
    client,
    policy_of,
    source_or_auto,
    stage_named,
)
from streamkit.cli.outputs import Output, add_outputs, each_file
from streamkit.cli.streams import add_quiet, name_of, say
from streamkit.dialects import DIALECTS, client_named, encode
from streamkit.dialects.profiles import Profile
from streamkit.errors import UsageError
from streamkit.pipeline import pipe
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.report import LOSSES, REPAIRS, Status, StreamReport, describe
from streamkit.rewrite.given import EventStage
from streamkit.tool_calls.accumulate import accumulate_tool_calls

HELP = "translate a stream into another dialect"
DETAIL = f"""\
Reads a recorded or live stream (curl -N … | streamkit convert …) and writes the output while the input arrives. If both
dialects are the same, frames are copied byte for byte. With --reencode, frames are decoded and encoded even in this case,
which repairs the provider's errors. `streamkit dialects` lists the dialects. Without --from, the command detects the input's
dialect from the first frames, and reports the dialect. If streams of two dialects begin in the same way, the detected dialect
may be wrong. In this case, use --from.

With --out PATH, the output is a file instead of standard output. The command writes one file for each input if PATH is a
folder (an existing folder, or a name that ends in /), if FILE is a folder, or if there are several files. The output's dialect
decides whether answer.stream.jsonl becomes answer.sse, answer.ndjson or answer.bin. Subfolders are kept, and hidden files are
skipped. If an output file exists, nothing is converted, unless --force allows the command to overwrite files. The exit status
is the highest exit status of all files.

If the input is interrupted or fails, the command writes everything that arrived. After that, it writes an error frame of the
output's dialect instead of the success terminator. Repairs and losses are reported on standard error.

--stage passes the events through a stage before they are encoded. The value is the name of a stage, or of a function that
returns a stage, in a package or in a module in this directory. If the function needs arguments, write a table of TOML instead
of the name, as in the last example.

A recording (*.stream.jsonl) states its dialect. If the recorded response failed (an interrupted connection, a timeout, an
error status), the command fails in the same way. The command recognises a recording by its first bytes, so a recording may
also come from standard input.

examples:
  streamkit convert --to {OTHER} answer.sse
  streamkit convert --from {ONE} --to {OTHER} --out answers/ *.sse
  streamkit convert --to {OTHER} --out answers recordings
  streamkit convert --to {OTHER} --stage '{{ use = "streamkit:redact", args = ["ACME-4711"] }}' answer.stream.jsonl
"""
#: The names of the dialects to which the option ``--no-usage`` applies, for the help.
USAGE_ON_REQUEST = ", ".join(name for name, dialect in DIALECTS.built_in.items() if dialect.usage_on_request)
#: The names of the dialects to which the option ``--call-ids`` applies, for the help.
IDS_ON_REQUEST = ", ".join(name for name, dialect in DIALECTS.built_in.items() if dialect.with_call_ids is not None)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit convert``."""
    add = command.add_argument
    what = "the input's dialect, or its provider; auto detects the dialect (default: the dialect in a recording, or else auto)"
    add("--from", dest="source", default=AUTO, type=source_or_auto, metavar="DIALECT", help=what)
    add(
        "--to",
        dest="target",
        required=True,
        type=client,
        metavar="DIALECT",
        help="the output's dialect, or the client that reads the output",
    )
    add("--reencode", action="store_true", help="decode and encode even if both dialects are the same")
    add(
        "--no-usage",
        action="store_true",
        help=f"{USAGE_ON_REQUEST}: leave the usage out, as for clients that do not request it",
    )
    add(
        "--call-ids",
        action="store_true",
        help=f"{IDS_ON_REQUEST}: write ids of tool calls (strict clients refuse these ids)",
    )
    add_stage(command)
    add_policy(command)
    add_in_text(command)
    add_quiet(command)
    add_outputs(command, "recordings, bytes of streams")


async def run(options: argparse.Namespace) -> Status:
    """Convert each stream. Return the worst of their ends."""
    dialect, profile = client_named(options.target)
    if options.call_ids:
        if dialect.with_call_ids is None:
            raise UsageError(f"--call-ids has no effect on {options.target}; it is for {IDS_ON_REQUEST}")
        profile = dialect.with_call_ids
    if options.no_usage:
        if not dialect.usage_on_request:
            raise UsageError(f"--no-usage has no effect on {options.target}; it is for {USAGE_ON_REQUEST}")
        profile = evolve(profile, include_usage=False)
    stages = [stage_named(text) for text in options.stage]
    return await each_file(
        options, dialect.media_type, lambda path, output: convert(path, output, options, profile, stages)
    )


async def convert(
    path: str, output: Output, options: argparse.Namespace, profile: Profile, stages: Sequence[EventStage]
) -> Status:
    """Convert one stream, and print its report. Return how the stream ended."""
    found = await open_or_say(path, options.source)
    if isinstance(found, Status):
        return found
    opened, source = found
    failed, report = opened.refusal(source), StreamReport()
    stream = (
        pipe(refused(failed), accumulate_tool_calls(), encode(options.target, profile=profile), report=report)
        if failed is not None
        else transcode(
            opened.source(report),
            source,
            options.target,
            ReadOptions(policy=policy_of(options)),
            stages=stages,
            report=report,
            profile=profile,
            reencode=options.reencode,
        )
    )
    async with stream:
        async for chunk in stream:
            output.write(chunk)
    if report.status is Status.NOT_THIS_DIALECT and report.error is not None:
        say(f"{name_of(path)}: {describe(report.error)}")
    elif not options.quiet:
        what = f"{report.frames} frames" if failed is None else f"status {failed.http_status}"
        print_report(report, f"{name_of(path)}: {source} -> {options.target}: {what}, {ending(report)}")
    return report.status


def print_report(report: StreamReport, title: str) -> None:
    """Print the report: each kind of repair and loss with its count and meaning, and the names of lost parts."""
    say(title)
    for kind, times in report.repairs.items():
        known = f"; known of this provider: {report.habits[kind]}" if kind in report.habits else ""
        say(f"  repair {kind} ({times}): {REPAIRS[kind]}{known}")
    for kind, times in report.losses.items():
        names = ", ".join(dict.fromkeys(what for lost, what in report.lost if lost == kind))
        say(f"  loss {kind} ({times}): {LOSSES[kind]}{f': {names}' if names else ''}")
    for call in report.withheld:
        say(f"  withheld ({call.kind}): {call.name or 'a call without a name'} {call.arguments}")
    if report.broken_frame is not None:
        say(f"  incomplete frame: {report.broken_frame.decode('utf-8', 'replace')}")


def ending(report: StreamReport) -> str:
    """Return how the stream ended, in a few words."""
    if report.error is not None:
        return f"failed: {describe(report.error)}"
    if report.provider_error is not None:
        return f"the provider reported an error: {': '.join(report.provider_error)}"
    return "clean" if report.clean else "cut: it ended before its completion point"
