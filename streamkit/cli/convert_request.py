"""``streamkit convert-request``: translate one request body for a provider of another dialect."""

from __future__ import annotations

import argparse
from functools import partial
from typing import get_args

from streamkit.cli.convert import print_report
from streamkit.cli.inputs import json_body
from streamkit.cli.options import ONE, OTHER, add_dialects, client, source
from streamkit.cli.outputs import Output, add_outputs, each_file
from streamkit.cli.streams import add_body, line_of, name_of, read, say_failure
from streamkit.dialects.profiles import DEFAULT_MAX_TOKENS
from streamkit.errors import BadRequest, NotThisDialect
from streamkit.policy import AssistantFirst, AssistantLast, LinkedMedia, UnreadableParts
from streamkit.report import Status, StreamReport
from streamkit.text.quoting import quoted
from streamkit.translation.bodies import decode_request, drop_unreadable, encode_request

HELP = "translate one request body for a provider of another dialect"
DETAIL = f"""\
Reads a client's request body and writes the request body for a provider, with its messages, tools, tool choice and options.
Anything that the provider's dialect cannot express is lost, and each loss is reported on standard error. Numbers in arguments
keep all their digits.

If a request is invalid, the command prints one line with the path of the fault, and the exit status is 1. A call without a
result is a fault, and so is a result without a call. --repair repairs these faults. If the dialect lacks a feature of the
request, such as a required tool call, this is a fault, too. --emulate imitates such features.

examples:
  streamkit convert-request --from {ONE} --to {OTHER} request.json
  streamkit convert-request --from {ONE} --to {OTHER} --out converted requests
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit convert-request``."""
    add = command.add_argument
    add_dialects(command, client, "the client's dialect", source, "the provider's dialect or name")
    add("--model", help="the name of the model at the provider (default: the model in the request)")
    add(
        "--model-like",
        metavar="MODEL",
        help="a known model that accepts the same requests, if streamkit does not know the model's name",
    )
    add(
        "--max-tokens",
        type=_positive,
        default=DEFAULT_MAX_TOKENS,
        metavar="N",
        help=f"the token limit, if the dialect requires a limit and the request has none (default: {DEFAULT_MAX_TOKENS})",
    )
    add("--repair", action="store_true", help="repair calls that have no result, and results that have no call")
    add(
        "--emulate",
        action="store_true",
        help="imitate features that the dialect lacks, instead of refusing the request",
    )
    add(
        "--assistant-first",
        choices=get_args(AssistantFirst),
        default="bridge",
        help="what to do if a history begins with the assistant and the dialect refuses this. bridge: add a short user turn "
        "at the beginning; refuse: fail (default: bridge)",
    )
    add(
        "--assistant-last",
        choices=get_args(AssistantLast),
        default="bridge",
        help="what to do if a history ends with the assistant's text and the model cannot continue this text. bridge: add a "
        "short user turn at the end; refuse: fail (default: bridge)",
    )
    add(
        "--linked-media",
        choices=get_args(LinkedMedia),
        default="refuse",
        help="what to do if the request has media at a URL and the dialect refuses this. refuse: fail; drop: drop the media "
        "(default: refuse)",
    )
    add(
        "--unreadable",
        choices=get_args(UnreadableParts),
        default="refuse",
        help="what to do with parts that only another provider can read (files by id, containers, prompts by id, vector "
        "stores). refuse: fail; drop: drop these parts (default: refuse)",
    )
    add_body(command)
    add_outputs(command, "request bodies")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a number of tokens, not {quoted(text)}")
    return int(text)


async def run(options: argparse.Namespace) -> Status:
    """Convert each request body. Return a failure status if the target's dialect cannot express one."""
    return await each_file(options, "application/json", partial(_convert, options))


async def _convert(options: argparse.Namespace, path: str, output: Output) -> Status:
    report = StreamReport()
    body = b"".join([chunk async for chunk in read(path)])
    try:
        request = decode_request(json_body(body, options.source), options.source, report=report)
        request.model = options.model or request.model
        if options.unreadable == "drop":
            request = drop_unreadable(request, options.target, report=report)
        written = encode_request(
            request,
            options.target,
            repair=options.repair,
            max_tokens=options.max_tokens,
            emulate=options.emulate,
            assistant_first=options.assistant_first,
            assistant_last=options.assistant_last,
            linked_media=options.linked_media,
            model_like=options.model_like,
            report=report,
        )
    except (BadRequest, NotThisDialect) as error:
        status = say_failure(error, path)
        is_no_object = isinstance(error, BadRequest) and not error.path
        return Status.NOT_THIS_DIALECT if is_no_object else status
    output.write(line_of(written, indent=options.indent))
    if not options.quiet:
        turns, tools = len(request.turns), len(request.tools)
        size = f"{turns} turn{'' if turns == 1 else 's'}, {tools} tool{'' if tools == 1 else 's'}"
        print_report(report, f"{name_of(path)}: {options.source} -> {options.target}: {size}")
    return Status.DONE
