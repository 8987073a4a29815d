"""``streamkit doctor``: send a server a few small requests, and check each response."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamkit.cli.options import source
from streamkit.cli.streams import say, visible, write
from streamkit.dialects import source_named
from streamkit.errors import BadRequest, SourceFailed, UsageError
from streamkit.lab.recording import SUFFIX, lines_of
from streamkit.report import Status
from streamkit.text.quoting import printable_json

if TYPE_CHECKING:
    from streamkit.lab.doctor import Judged, Plan
    from streamkit.web.upstream import Upstream
    from streamkit.web.upstream.hiding import Cut

#: The colours of the badge; red for every other verdict.
BADGE_COLOURS = {"clean": "brightgreen", "repairable": "yellow"}
HELP = "check a server: send a few small requests, and check each response with its dialect's grammar"
DETAIL = """\
Sends at most 10 requests, which cost at most 2,000 tokens. The requests ask for a text, for the same text with usage, for the
same text as a whole response, for a tool call, for two calls in one response, and for a required call. Other requests send a
tool's result, set a token limit that is too low, or are malformed. For one more request, the command closes the
connection before the response ends. Before the first
request, the command prints the highest possible cost and asks for consent. It does not ask with --yes, or if the server is on
loopback. If standard input is not a terminal, --yes is required. The command repeats no request and follows no redirect. The
status 401, 403, 404 or 429 ends the check.

URL is the base URL, in the form that the dialect's official client expects. A key is sent to the server only if an option says
where the key is. The key is never printed or written, and no report contains the host.

The command checks each stream against the grammar, as lint does. It also checks whether the status, content type, stop reason,
calls and token counts fit the request, and whether events arrive one by one. If events arrive together, this is only a note in
the report, because a fast server may send them together.

exit status: 0 clean; 1 broken, or no response; 6 not clean, but streamkit would read the stream; 5 not in the expected
dialect.

--json prints one object:

  {"dialect", "model", "verdict", "requests", "most_tokens",
   "left_out": {probe: reason}, "probes": [{"probe", "verdict", "status", "end",
    "bytes", "reads", "frames", "headers_s", "first_s", "last_s", "greatest_gap_s",
    "stop_reason", "calls", "input_tokens", "output_tokens", "violations", "repairs",
    "other_repairs", "findings": [{"rule", "severity", "message", "advice"}]}]}

"violations", "repairs" and "other_repairs" have the same form as for lint.

examples:
  streamkit doctor http://127.0.0.1:8000/v1 --dialect DIALECT --model MODEL
  streamkit doctor https://api.example.com/v1 --dialect DIALECT --model MODEL --key-env EXAMPLE_KEY --yes --keep answers
"""
TIMEOUT_S = 60.0
#: File modes of the kept recordings and of their folder: only this user may read them, since responses are private.
FILE_MODE, FOLDER_MODE = 0o600, 0o700
STATUSES = ""  #: ``DETAIL`` has the exit statuses of this command


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit doctor``."""
    add = command.add_argument
    add("url", metavar="URL", help="the base URL, such as https://host/v1")
    add("--dialect", required=True, type=source, metavar="DIALECT", help="the server's dialect, or the provider's name")
    add("--model", required=True, help="the model to request")
    keys = command.add_mutually_exclusive_group()
    keys.add_argument("--key-env", metavar="NAME", help="the environment variable that contains the key")
    keys.add_argument("--key-file", metavar="PATH", help="the file that contains the key and nothing else")
    add(
        "--auth",
        help="how to send the key, as in the setting `auth` of the gateway's configuration (default: as the dialect "
        "requires; none without a key)",
    )
    add("--region", help="the region for AWS signatures (--auth sigv4)")
    add("--service", help="the service for AWS signatures, such as execute-api (default: the service of the dialect)")
    add("--proxy", metavar="URL", help="an HTTP proxy to send the requests through")
    add(
        "--ca-file",
        metavar="PATH",
        help="a file with the root certificates to accept, instead of the system's certificates",
    )
    add("--client-cert", metavar="PATH", help="a file with the certificate to send to the server")
    add("--client-key", metavar="PATH", help="a file with the key of --client-cert, unless the key is in the same file")
    add("--yes", action="store_true", help="send the requests without asking for consent")
    add(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help=f"the longest time for a response, in seconds (default: {TIMEOUT_S:g})",
    )
    add("--keep", metavar="DIR", help="save each response in DIR as a recording, which lint can read")
    add("--badge", metavar="FILE", help="write the verdict to FILE, as JSON for an endpoint badge of shields.io")
    forms = command.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print one JSON object")
    forms.add_argument("--markdown", action="store_true", help="print a report to paste into an issue")


async def run(options: argparse.Namespace) -> Status:
    """Examine the server. Raises UsageError for invalid options, and if the user cannot be asked for consent."""
    from streamkit.lab.doctor import plan  # noqa: PLC0415 - imports aiohttp, which most commands do not need
    from streamkit.web.upstream import redactor  # noqa: PLC0415
    from streamkit.web.upstream.requests import address  # noqa: PLC0415

    upstream = upstream_of(options)
    try:
        chosen = plan(options.dialect, options.model)
        address(upstream, options.model, stream=True)
    except BadRequest as error:
        raise UsageError(f"--model: {error}") from error
    folder = None if options.keep is None else folder_for(options.keep)
    if options.badge is not None:
        check_badge(Path(options.badge))
    if not consents(upstream, chosen, yes=options.yes):
        say("nothing was sent")
        return Status.USAGE
    return await examined(options, upstream, chosen, redactor([upstream]), folder)


def upstream_of(options: argparse.Namespace) -> Upstream:
    """Return the server with the named key. Raises UsageError, whose message never contains the key."""
    from streamkit.web.source import Timeouts  # noqa: PLC0415
    from streamkit.web.upstream import Secret, Upstream  # noqa: PLC0415

    key = _key(options)
    dialect, provider = source_named(options.dialect)
    endpoint = dialect.http.endpoint_of(provider)
    usual = "bearer" if endpoint is None else endpoint.auth
    auth = options.auth or ("none" if key is None else (provider.auth if provider is not None else "") or usual)
    seconds = options.timeout
    if not seconds > 0:
        raise UsageError("--timeout must be a number of seconds above 0")
    return Upstream(
        name="doctor",
        dialect=options.dialect,
        base_url=options.url,
        auth=auth,
        key=None if key is None else Secret(key),
        region=options.region,
        service=options.service,
        proxy=options.proxy,
        ca_file=options.ca_file,
        client_cert=options.client_cert,
        client_key=options.client_key,
        timeouts=Timeouts(connect_s=min(10.0, seconds), first_byte_s=seconds, idle_s=seconds, total_s=seconds),
    )


def _key(options: argparse.Namespace) -> str | None:
    if options.key_env is not None:
        found = os.environ.get(options.key_env)
        if not found:
            raise UsageError("--key-env: the environment variable is missing or empty")
        return found.strip()
    if options.key_file is None:
        return None
    try:
        return Path(options.key_file).read_text("utf-8").strip()
    except UnicodeDecodeError as error:
        raise UsageError("--key-file: the file must be text in UTF-8") from error
    except OSError as error:
        raise UsageError(f"--key-file: the file can't be read: {error.strerror}") from error


def folder_for(path: str) -> Path:
    """Return the folder for recordings, made before any request is sent. Raises UsageError if it has recordings."""
    folder = Path(path)
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        there = any(folder.glob(f"*{SUFFIX}"))
    except OSError as error:
        raise UsageError(f"--keep: the folder can't be made: {error.strerror}") from error
    if there:
        raise UsageError("--keep: the folder has recordings already; name another")
    return folder


def consents(upstream: Upstream, chosen: Plan, *, yes: bool) -> bool:
    """Print the highest possible cost and ask for consent. With ``yes`` or for this machine, do not ask.

    Raises UsageError if standard input is no terminal.
    """
    from yarl import URL  # noqa: PLC0415

    from streamkit.web.hosts import is_loopback  # noqa: PLC0415

    url = URL(upstream.base_url)
    cost = (
        f"{len(chosen.probes)} requests to {url.origin()}, for at most {chosen.tokens:,} tokens "
        f"({chosen.prompt_tokens:,} of prompts, {chosen.answer_tokens:,} of responses)"
    )
    say(cost)
    here = is_loopback(url.host or "")
    if url.scheme == "http" and upstream.key is not None and not here:
        say("the key is sent in clear text: the URL begins with http://")
    if yes or here:
        return True
    if not sys.stdin.isatty():
        raise UsageError("cannot ask for consent, because standard input is not a terminal: add --yes")
    print("Send them? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


async def examined(
    options: argparse.Namespace, upstream: Upstream, chosen: Plan, cut: Cut, folder: Path | None
) -> Status:
    """Send the probes and print the results. Return the worst status."""
    from streamkit.lab.doctor import Examination  # noqa: PLC0415
    from streamkit.lab.doctor.reporting import line_of, status_of  # noqa: PLC0415
    from streamkit.web.upstream import client_session  # noqa: PLC0415

    lines = not (options.json or options.markdown)
    judged: list[Judged] = []
    async with client_session() as session:
        examination = Examination(session=session, upstream=upstream, model=options.model)
        for number, probe in enumerate(chosen.probes, 1):
            found = await examination.examine(probe)
            judged.append(found)
            if lines:
                show(line_of(found), cut)
            if folder is not None:
                await asyncio.to_thread(keep, found, folder / f"{number:02}-{probe.name}", cut)
            if found.ends:
                break
    _report(options, chosen, judged, cut)
    if options.badge is not None:
        write_badge(Path(options.badge), status_of(judged))
    return status_of(judged)


def check_badge(path: Path) -> None:
    """Raise UsageError, before any request is sent, if the badge can't be written."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"--badge: {path} can't be written; name a file in a folder that exists")


def write_badge(path: Path, status: Status) -> None:
    """Write a badge with the verdict, or replace the one that is there. Raises SourceFailed."""
    from streamkit.lab.doctor.reporting import verdict_of  # noqa: PLC0415

    verdict = verdict_of(status)
    colour = BADGE_COLOURS.get(verdict, "red")
    badge = {"schemaVersion": 1, "label": "streamkit doctor", "message": verdict, "color": colour}
    try:
        path.write_text(printable_json(badge) + "\n", "utf-8")
    except OSError as error:
        raise SourceFailed(f"cannot write {path}: {error.strerror}") from error


def _report(options: argparse.Namespace, chosen: Plan, judged: Sequence[Judged], cut: Cut) -> None:
    from streamkit.lab.doctor.reporting import as_lines, as_markdown, as_object  # noqa: PLC0415

    if options.json:
        show(printable_json(as_object(options.dialect, options.model, chosen, judged)), cut)
        return
    form = as_markdown if options.markdown else as_lines
    for line in form(options.dialect, options.model, chosen, judged):
        show(line, cut)


def show(line: str, cut: Cut) -> None:
    """Write one line to standard output without keys, and with control characters escaped."""
    write(f"{visible(cut(line))}\n".encode())


def keep(judged: Judged, path: Path, cut: Cut) -> None:
    """Save a response as a recording, unless the response repeats the key. Raises SourceFailed."""
    file = path.with_name(path.name + SUFFIX)
    body = judged.recording.body.decode("utf-8", "surrogateescape")
    content = b"".join(lines_of(judged.recording))
    if cut(body) != body or cut(text := content.decode()) != text:
        say(f"{file.name} was not saved, because the server's response repeats the key")
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    except OSError as error:
        raise SourceFailed(f"cannot write {file}: {error.strerror}") from error
