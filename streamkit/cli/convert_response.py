"""``streamkit convert-response``: translate one whole response body for a client of another dialect."""

from __future__ import annotations

import argparse
from functools import partial

from streamkit.cli.convert import ending, print_report
from streamkit.cli.inputs import json_body, json_fault, open_named
from streamkit.cli.options import ONE, OTHER, add_dialects, add_in_text, add_policy, client, policy_of, source
from streamkit.cli.outputs import Output, add_outputs, each_file
from streamkit.cli.streams import add_body, line_of, name_of, say, say_failure
from streamkit.conversation.messages import Response
from streamkit.dialects import client_named
from streamkit.errors import BrokenFrame, StreamError
from streamkit.read_options import ReadOptions
from streamkit.report import Status, StreamReport
from streamkit.translation.bodies import decode_response, encode_response
from streamkit.translation.citations import carry_citations_of

HELP = "translate one whole response body for a client of another dialect"
DETAIL = f"""\
Reads the body of a provider's response that was not streamed, and writes the body for a client. Repairs and losses are
reported on standard error.

A provider's error becomes an error body of the client's dialect, and the exit status is 4. An incomplete response also becomes
an error body, and the exit status is 3. The output in an incomplete response counts as lost.

A recording (*.stream.jsonl) of such a response states the dialect and the status of the response.

examples:
  streamkit convert-response --from {OTHER} --to {ONE} response.json
  streamkit convert-response --to {ONE} answer.stream.jsonl
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit convert-response``."""
    provider = "the provider's dialect or name"
    add_dialects(command, source, provider, client, "the client's dialect or name", recordings=True)
    add_policy(command)
    add_in_text(command)
    add_body(command)
    add_outputs(command, "response bodies, recordings")


async def run(options: argparse.Namespace) -> Status:
    """Convert each response. Return the worst of their ends."""
    return await each_file(options, "application/json", partial(_convert, options))


async def _convert(options: argparse.Namespace, path: str, output: Output) -> Status:
    opened, dialect = await open_named(path, options.source)
    failed, report = opened.refusal(dialect), StreamReport()
    try:
        body = b"".join([chunk async for chunk in opened.source(report)])
        if failed is None:
            response = decode_response(
                json_body(body, dialect), dialect, ReadOptions(policy=policy_of(options)), report=report
            )
            carry_citations_of(response, client_named(options.target)[0].name)
        else:
            report.provider_error = (failed.type, failed.message)
            response = Response(dialect, report, error=failed)
    except BrokenFrame as error:
        say(f"{name_of(path)}: {error}{json_fault(error.payload)}")
        return Status.NOT_THIS_DIALECT
    except StreamError as error:
        return say_failure(error, path)
    output.write(line_of(encode_response(response, options.target), indent=options.indent))
    if not options.quiet:
        status = "" if failed is None else f"status {failed.http_status}, "
        print_report(report, f"{name_of(path)}: {dialect} -> {options.target}: {status}{ending(report)}")
    return report.status
