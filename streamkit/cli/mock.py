"""``streamkit mock``: a scripted provider, with a verdict on its client."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamkit.cli.streams import say, write
from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.report import STREAM_REPAIRS, Status

HELP = "answer as a provider does, by a script, and say what the client did wrong"
DETAIL = """\
Answers clients of any dialect on loopback, streamed and whole, by the turns of a script in TOML:

  [[turn]]
  steps = [{ say = "Let me look." }, { call = { name = "weather", arguments = { city = "Berlin" } } }]
  [[turn]]
  steps = [{ say = "It rains" }, { wait = 0.2 }, { cut = true }]

The steps: say, think, call, wait, usage, stop, error, status, stall, cut, reset, raw, comment. A turn may have a match: what
the user said (text), a tool that is offered (tool), how often the model was asked (turn). Without a script a demo model
answers, which calls the tools that it is offered and reads their results back. The same seed and requests give the same bytes.

Keys are not looked at. GET /verdict says what the client did wrong so far, as JSON; Ctrl-C ends the mock and prints it.
Faults: a stream that was cut was taken for a whole answer, a call that was never finished was run, Retry-After was ignored, a
request that was refused for good came again, a stall had no time-out, a connection was kept behind the end of the stream.

--quirk breaks the bytes of every answer as some provider does; its kinds are those of the repairs that a reader then needs.
--list-quirks says what each changes, and what an answer must have for it.

A script needs the extra `gateway`: pip install 'streamkit-llm[gateway]'. The exit status is 1 where the client has faults.

examples:
  streamkit mock
  streamkit mock script.toml --dialect DIALECT --port 9000
  streamkit mock --quirk index_missing --quirk id_missing --tokens-per-s 0
  streamkit mock --list-quirks --dialect DIALECT
"""
EXTRA = "a script in a file needs more than the library: pip install 'streamkit-llm[gateway]' (missing: {})"
PORTS = 65535


def add_to(commands: Any) -> None:
    """Add ``streamkit mock`` and its options to the parser's commands."""
    command = commands.add_parser("mock", help=HELP, description=DETAIL)
    command.add_argument(
        "script", nargs="?", metavar="SCRIPT.toml", help="what is said; without one a demo model answers"
    )
    command.add_argument("--dialect", default="any", metavar="NAME", help="answer clients of this one (default: any)")
    command.add_argument(
        "--port", type=int, default=8090, metavar="N", help="the port; 0 is any free one (default: 8090)"
    )
    command.add_argument(
        "--quirk", action="append", default=[], metavar="KIND", help="break every answer so; may be given several times"
    )
    command.add_argument(
        "--list-quirks", action="store_true", help="list the kinds, those of --dialect if given, and exit"
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of ids and of the pace (default: 0)")
    command.add_argument(
        "--speed", type=float, default=1.0, metavar="F", help="a factor for every wait; 0 never waits (default: 1)"
    )
    command.add_argument(
        "--tokens-per-s", type=float, default=40.0, metavar="N", help="0 is as fast as possible (default: 40)"
    )
    command.add_argument(
        "--first-token-s", type=float, default=0.4, metavar="S", help="seconds before the first token (default: 0.4)"
    )
    command.set_defaults(run=run)


async def run(options: argparse.Namespace) -> Status:
    """Serve until a signal; the status is FAILED where the client has faults."""
    # here, since other commands start sooner without it
    from streamkit.lab.mock import Mock, Timing  # noqa: PLC0415
    from streamkit.lab.mock.serving import script_of  # noqa: PLC0415
    from streamkit.lab.server import serving, signalled  # noqa: PLC0415
    from streamkit.toml.findings import ConfigError  # noqa: PLC0415

    if options.list_quirks:
        write("".join(f"{line}\n" for line in _quirks(options.dialect)).encode())
        return Status.DONE
    if not 0 <= options.port <= PORTS:
        raise UsageError(f"--port takes a number up to {PORTS}, not {options.port}")
    try:
        script = script_of(options.script)
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA.format(error.name)) from error
    except ConfigError as error:
        for finding in error.findings:  # each in a line of its own, which editors can go to
            say(str(finding))
        return Status.USAGE
    timing = Timing(first_token_s=options.first_token_s, tokens_per_s=options.tokens_per_s, speed=options.speed)
    mock = Mock(script, dialect=options.dialect, quirks=options.quirk, timing=timing, seed=options.seed)
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
    """Each quirk of a dialect, or of all: its kind, what it changes, what it needs, and whose it is."""
    from streamkit.lab.mock.quirks import quirks_of  # noqa: PLC0415 - as in run
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
