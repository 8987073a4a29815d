"""The ``streamkit`` command: one file a subcommand; here they are put together.

Standard output is data, standard error everything else. Exit statuses are design.md §8's; 130 after SIGINT, as shells
expect.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from inspect import iscoroutinefunction
from typing import Any, Final

from streamkit.cli.streams import say
from streamkit.errors import SourceFailed, UsageError
from streamkit.report import Status

STATUSES = """\
exit status:
  0  done
  1  failed: the input could not be read to its end, a request can't be, or the output was closed
  2  usage
  3  the stream was cut: it ended before its completion point (empty input too)
  4  the provider reported an error
  5  not this dialect
  6  lint: not clean, but it would be repaired
"""


#: In the order of ``streamkit --help``; each has a module of its own in this package.
COMMANDS: Final = (
    "convert",
    "convert-request",
    "convert-response",
    "convert-recording",
    "inspect",
    "lint",
    "dialects",
    "record",
    "replay",
    "mock",
    "doctor",
    "serve",
)


class Parser(argparse.ArgumentParser):
    """Of the command and of its subcommands: their texts are laid out as they stand, with the exit statuses behind them."""

    def __init__(self, **settings: Any) -> None:
        laid_out = {"epilog": STATUSES, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**{**laid_out, **settings})


class Version(argparse.Action):
    """Prints the version of the distribution, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"streamkit {version('streamkit-llm')}")
        parser.exit()


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands; its ``--help`` is their documentation. The module of each command is imported."""
    top = Parser(prog="streamkit", description="Parse, check and translate the streams of LLM providers.")
    top.add_argument("--version", action=Version, nargs=0, help="show program's version number and exit")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=Parser)
    for name in names:
        import_module(f"streamkit.cli.{name.replace('-', '_')}").add_to(commands)
    return top


def _needed(arguments: Sequence[str]) -> Iterable[str]:
    """The commands whose parsers these arguments need: those of others are slow to import."""
    first = arguments[0] if arguments else ""
    if first == "--version":
        return ()
    return (first,) if first in COMMANDS else COMMANDS


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


async def _run(options: argparse.Namespace) -> int:
    """Run a command that an interrupt ends wherever it is: in a write that its reader does not take, or while it waits.

    asyncio's own handler would only cancel the task, which such a write never hears; and an exception that is raised while
    the event loop itself is at work may leave a task without what was to wake it.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def interrupt(_signal: int, _frame: object) -> None:
        if asyncio.current_task(loop) is not None:
            raise KeyboardInterrupt
        if task is not None:
            task.cancel()  # at once: its next step may be a write that never ends

    # a handler of the loop's own lets a signal wake it that comes just before it waits; then ours takes its place
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    signal.signal(signal.SIGINT, interrupt)
    return int(await options.run(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parser(_needed(given)).parse_args(given)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        if iscoroutinefunction(options.run):
            return asyncio.run(_run(options))
        return int(options.run(options))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    except BrokenPipeError:  # the reader left; what Python flushes at exit must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Status.FAILED)
    except UsageError as error:
        say(str(error))
        return int(Status.USAGE)
    except (SourceFailed, OSError) as error:  # an input that can't be opened, an output that is full
        say(str(error))
        return int(Status.FAILED)
