"""``streamkit convert``: translate a stream from standard input or a file into another dialect on standard output."""

from __future__ import annotations

import argparse

from attrs import evolve

from streamkit.cli.inputs import open_named, refused
from streamkit.cli.options import (
    ONE,
    OTHER,
    add_dialects,
    add_in_text,
    add_policy,
    add_stage,
    client,
    policy_of,
    source,
    stage_named,
)
from streamkit.cli.streams import add_file, refuse, say, title_of, write
from streamkit.dialects import DIALECTS, client_named, encode
from streamkit.pipeline import pipe
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.report import LOSSES, REPAIRS, Status, StreamReport, describe
from streamkit.tool_calls.accumulate import accumulate_tool_calls

HELP = "translate a stream into another dialect"
DETAIL = f"""\
Reads a recorded or live stream (curl -N … | streamkit convert …) and writes each piece as soon as it arrives. If both dialects
are the same, frames are copied byte for byte; --reencode decodes and encodes them, which repairs the provider's errors.
`streamkit dialects` lists the dialects.

If the input is interrupted or fails, everything that arrived is written, then an error frame of the output dialect, and no
success terminator. Repairs and losses are reported on standard error.

--stage passes the events through a stage before they are encoded. Name a stage of a package or of a module in this directory,
or a function that returns a stage; with arguments, write a table of TOML, as in the last example.

A recording (*.stream.jsonl) states its dialect. It fails as the recorded response did: with an interrupted connection, a
timeout, or an error status. Recordings are recognised by their first bytes, also on standard input.

examples:
  streamkit convert --from {ONE} --to {OTHER} answer.sse
  streamkit convert --to {OTHER} answer.stream.jsonl
  streamkit convert --to {OTHER} --stage '{{ use = "streamkit:redact", args = ["ACME-4711"] }}' answer.stream.jsonl
"""
#: The names of the dialects to which the option ``--no-usage`` applies, for the help.
USAGE_ON_REQUEST = ", ".join(name for name, dialect in DIALECTS.built_in.items() if dialect.usage_on_request)
#: The names of the dialects to which the option ``--call-ids`` applies, for the help.
IDS_ON_REQUEST = ", ".join(name for name, dialect in DIALECTS.built_in.items() if dialect.with_call_ids is not None)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit convert``."""
    add = command.add_argument
    add_dialects(command, source, "the input's dialect", client, "the output's dialect", recordings=True)
    add("--reencode", action="store_true", help="decode and encode even if both dialects are the same")
    add("--no-usage", action="store_true", help=f"{USAGE_ON_REQUEST}: omit the usage chunk, as for clients without it")
    add("--call-ids", action="store_true", help=f"{IDS_ON_REQUEST}: write ids of tool calls (strict readers fail)")
    add_stage(command)
    add_policy(command)
    add_in_text(command)
    add_file(command, "a recording, or the bytes of a stream")


async def run(options: argparse.Namespace) -> Status:
    """Convert a stream. Return how the stream ended."""
    dialect, profile = client_named(options.target)
    if options.call_ids:
        profile = dialect.with_call_ids or profile
    if options.no_usage:
        profile = evolve(profile, include_usage=False)
    stages = [stage_named(text) for text in options.stage]
    opened, options.source = await open_named(options.file, options.source)
    failed, report = opened.refusal(options.source), StreamReport()
    stream = (
        pipe(refused(failed), accumulate_tool_calls(), encode(options.target, profile=profile), report=report)
        if failed is not None
        else transcode(
            opened.source(report),
            options.source,
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
            write(chunk)
    if report.status is Status.NOT_THIS_DIALECT and report.error is not None:
        refuse(options, report.error)
    elif not options.quiet:
        what = f"{report.frames} frames" if failed is None else f"status {failed.http_status}"
        print_report(report, f"{title_of(options)}: {what}, {ending(report)}")
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
