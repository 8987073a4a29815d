"""``streamkit mock``: serve a scripted provider, and print a verdict on its client."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from streamkit.cli.options import add_stage, port, stage_named
from streamkit.cli.streams import say, write
from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.report import STREAM_REPAIRS, Status

HELP = "respond like a provider, by a script, and report the client's faults"
DETAIL = """\
Serves clients of any dialect on loopback. The responses are streamed or whole, and come from the turns of a script in TOML:

  [[turn]]
  steps = [
    { say = "Let me look." },
    { call = { name = "weather", arguments = { city = "Berlin" } } },
  ]
  [[turn]]
  steps = [{ say = "It rains" }, { wait = 0.2 }, { cut = true }]

These steps exist: say, think, call, wait, usage, stop, error, status, stall, cut, reset, raw, comment. A turn may have a
match, which selects requests: by a part of the user's text (text), by an offered tool (tool), or by the number of the request
in its conversation (turn). Without a script, a demo model responds, which calls the offered tools and quotes their results.
With the same seed and the same requests, the responses have the same bytes.

The mock ignores keys. GET /verdict returns the faults of the client until now, as JSON. Ctrl-C ends the mock and
prints the faults. It is a fault if the client takes an interrupted stream for a whole response, executes a call that was never
finished, or ignores Retry-After. It is also a fault if the client repeats a request that was refused permanently, has no
timeout for a stall, or keeps a connection open after the end of the stream.

--stage passes the events of every response through a stage, as in streamkit convert. The stage must not wait. --quirk KIND
changes the bytes of every response, as some providers do. KIND is the kind of repair that the response then needs.
--list-quirks prints what each quirk changes, and which responses it can change.

A script needs the extra `gateway`: pip install 'streamkit-llm[gateway]'. The exit status is 1 if the client has faults.

examples:
  streamkit mock
  streamkit mock script.toml --dialect DIALECT --port 9000
  streamkit mock --quirk index_missing --quirk id_missing --tokens-per-s 0
  streamkit mock --list-quirks --dialect DIALECT
"""
EXTRA = "a script in a file needs the extra `gateway`: pip install 'streamkit-llm[gateway]' (missing: {})"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit mock``."""
    add = command.add_argument
    add(
        "script",
        nargs="?",
        metavar="SCRIPT.toml",
        help="the script with the turns (default: none, so a demo model responds)",
    )
    add("--dialect", default="any", metavar="NAME", help="serve clients of this dialect (default: any)")
    add("--port", type=port, default=8090, metavar="N", help="the port; 0 means any free port (default: 8090)")
    add(
        "--quirk",
        action="append",
        default=[],
        metavar="KIND",
        help="change every response so that it needs this kind of repair; may be repeated",
    )
    add("--list-quirks", action="store_true", help="list all quirks, or only the quirks of --dialect, and exit")
    add_stage(command)
    add("--seed", type=int, default=0, metavar="N", help="the seed for ids and waiting times (default: 0)")
    add(
        "--speed",
        type=float,
        default=1.0,
        metavar="F",
        help="the speed: 2 is twice as fast, and 0 never waits (default: 1)",
    )
    add(
        "--tokens-per-s",
        type=float,
        default=40.0,
        metavar="N",
        help="the number of tokens in a second; 0 means as fast as possible (default: 40)",
    )
    add(
        "--first-token-s",
        type=float,
        default=0.4,
        metavar="S",
        help="the seconds before the first token (default: 0.4)",
    )


async def run(options: argparse.Namespace) -> Status:
    """Serve until a signal. Return FAILED if the client has faults."""
    # imported here so that other commands start faster
    from streamkit.lab.mock import Mock, Timing  # noqa: PLC0415
    from streamkit.lab.mock.server import script_of  # noqa: PLC0415
    from streamkit.lab.server import serving, signalled  # noqa: PLC0415
    from streamkit.toml.findings import ConfigError  # noqa: PLC0415

    if options.list_quirks:
        write("".join(f"{line}\n" for line in _quirks(options.dialect)).encode())
        return Status.DONE
    try:
        script = script_of(options.script)
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA.format(error.name)) from error
    except ConfigError as error:
        for finding in error.findings:  # one line for each fault, so that editors can jump to it
            say(str(finding))
        return Status.USAGE
    timing = Timing(first_token_s=options.first_token_s, tokens_per_s=options.tokens_per_s, speed=options.speed)
    stages = [stage_named(text) for text in options.stage]
    mock = Mock(script, dialect=options.dialect, quirks=options.quirk, timing=timing, seed=options.seed, stages=stages)
    with _log_on_stderr():
        async with serving(mock.app(), ("127.0.0.1", options.port), "clients") as url:
            urls = mock.urls(url)
            width = max(map(len, urls))
            print("base URLs:", *(f"  {name:<{width}}  {url}" for name, url in urls.items()), sep="\n", flush=True)
            await signalled()
    verdict = mock.verdict
    print(verdict, flush=True)
    return Status.DONE if verdict.clean else Status.FAILED


def _quirks(dialect: str) -> Iterator[str]:
    """Yield lines for each quirk of a dialect or of all: its kind, its change, its needs, and the dialects that have it."""
    from streamkit.lab.mock.quirks import quirks_of  # noqa: PLC0415 - imported late, as in run
    from streamkit.lab.mock.server import ANY  # noqa: PLC0415

    every = {name: quirks_of(name) for name in (DIALECTS if dialect == ANY else [dialect])}
    for kind in STREAM_REPAIRS:
        having = {name: quirks[kind] for name, quirks in every.items() if kind in quirks}
        if having:
            quirk = next(iter(having.values()))
            yield f"{kind}: {quirk.what}"
            yield f"    needs: {', '.join(quirk.needs)}" + (f"; of the reader: {quirk.reader}" if quirk.reader else "")
            if len(every) > 1:
                yield f"    of: {', '.join(having)}"


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    log, handler = logging.getLogger("streamkit.mock"), logging.StreamHandler(sys.stderr)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
