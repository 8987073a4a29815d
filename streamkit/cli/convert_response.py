"""``streamkit convert-response``: translate one whole response body for a client of another dialect."""

from __future__ import annotations

import argparse

from streamkit.cli.convert import ending, print_report
from streamkit.cli.inputs import open_named
from streamkit.cli.options import ONE, OTHER, add_dialects, add_in_text, add_policy, client, policy_of, source
from streamkit.cli.streams import add_body, refuse, title_of, write_body
from streamkit.conversation.messages import Response
from streamkit.dialects import client_named
from streamkit.errors import NotThisDialect, StreamError
from streamkit.read_options import ReadOptions
from streamkit.report import Status, StreamReport
from streamkit.translation.bodies import decode_response, encode_response
from streamkit.translation.citations import carry_citations_of

HELP = "translate one whole response body for a client of another dialect"
DETAIL = f"""\
Reads the body of a provider's response that was not streamed, and writes the body for a client. Repairs and losses are
reported on standard error.

A provider's error becomes an error body of the client's dialect, with exit status 4; an incomplete response becomes one with
exit status 3. The model's output is then a loss.

A recording (*.stream.jsonl) of such a response states its dialect and its status.

examples:
  streamkit convert-response --from {OTHER} --to {ONE} response.json
  streamkit convert-response --to {ONE} answer.stream.jsonl
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit convert-response``."""
    provider = "the provider's dialect, or the provider"
    add_dialects(command, source, provider, client, "the client's dialect, or the client", recordings=True)
    add_policy(command)
    add_in_text(command)
    add_body(command)


async def run(options: argparse.Namespace) -> Status:
    """Convert a whole response. Return how the response ended."""
    opened, options.source = await open_named(options.file, options.source)
    failed, report = opened.refusal(options.source), StreamReport()
    try:
        body = b"".join([chunk async for chunk in opened.source(report)])
        if failed is None:
            response = decode_response(body, options.source, ReadOptions(policy=policy_of(options)), report=report)
            carry_citations_of(response, client_named(options.target)[0].name)
        else:
            report.provider_error = (failed.type, failed.message)
            response = Response(options.source, report, error=failed)
    except StreamError as error:
        refuse(options, error)
        return Status.NOT_THIS_DIALECT if isinstance(error, NotThisDialect) else Status.FAILED
    write_body(encode_response(response, options.target), options)
    if not options.quiet:
        status = "" if failed is None else f"status {failed.http_status}, "
        print_report(report, f"{title_of(options)}: {status}{ending(report)}")
    return report.status
