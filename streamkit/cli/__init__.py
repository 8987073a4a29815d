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
from collections.abc import Sequence
from importlib.metadata import version
from inspect import iscoroutinefunction
from typing import Any

from streamkit.cli import (
    convert,
    convert_recording,
    convert_request,
    convert_response,
    dialects,
    doctor,
    inspect,
    lint,
    mock,
    record,
    replay,
    serve,
)
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


class Parser(argparse.ArgumentParser):
    """Of the command and of its subcommands: their texts are laid out as they stand, with the exit statuses behind them."""

    def __init__(self, **settings: Any) -> None:
        laid_out = {"epilog": STATUSES, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**{**laid_out, **settings})


def parser() -> argparse.ArgumentParser:
    """The command's parser; ``--help`` is its documentation."""
    top = Parser(prog="streamkit", description="Parse, check and translate the streams of LLM providers.")
    top.add_argument("--version", action="version", version=f"streamkit {version('streamkit-llm')}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=Parser)
    for command in (
        convert,
        convert_request,
        convert_response,
        convert_recording,
        inspect,
        lint,
        dialects,
        record,
        replay,
        mock,
        doctor,
        serve,
    ):
        command.add_to(commands)
    return top


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
    options = parser().parse_args(arguments)
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
