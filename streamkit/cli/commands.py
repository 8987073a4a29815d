"""Combine the subcommands of ``streamkit``: each has a module in this package.

Data goes to standard output, and everything else to standard error. design.md §8 defines the exit statuses; after SIGINT the
status is 130, as shells expect.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import sys
import textwrap
from collections.abc import Iterable, Sequence
from importlib import import_module
from inspect import iscoroutinefunction
from itertools import takewhile
from typing import Any, Final

from streamkit import __version__
from streamkit.cli.streams import prepare_standard_streams, say_failure, visible
from streamkit.errors import SourceFailed, UsageError
from streamkit.report import Status
from streamkit.text.quoting import meant

STATUSES = """\
exit status:
  0  done
  1  failed: the input could not be read to its end, the request is invalid, or the output could not be written
  2  usage: the options, the arguments or the configuration are wrong
  3  the stream ended before its completion point, or the input was empty
  4  the provider reported an error
  5  the input is not in the expected dialect, or a body is not JSON
  6  lint: the stream is not clean, but streamkit would repair it
"""


#: The subcommands in the order of ``streamkit --help``. Each has a module in this package, with ``HELP``,
#: ``DETAIL``, ``add_options`` and ``run``.
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
    "import",
    "completion",
)
MOST_COLUMNS: Final = 100  #: longer lines of prose are hard to read
#: The modules that are not named like their commands.
MODULES: Final = {"import": "import_config"}  # a keyword


def filled(text: str, width: int) -> str:
    """Return a help text in lines of at most ``width`` characters: paragraphs are filled, and indented lines stay."""
    lines: list[str] = []
    paragraph: list[str] = []
    for line in (*text.splitlines(), ""):
        if line and not line[0].isspace():
            paragraph.append(line)
            continue
        lines += textwrap.wrap(" ".join(paragraph), width, break_on_hyphens=False)
        paragraph.clear()
        if status := re.match(r" +\d  ", line):
            indent = " " * status.end()
            lines += textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
        else:
            lines += _command(line, width)
    return "\n".join(lines[:-1])


def _command(line: str, width: int) -> list[str]:
    """Return a line of an example, divided before options only, so that a shell still reads it as one command."""
    first, *options = re.split(r" (?=--)", line)
    lines = [first]
    for option in options:
        if len(f"{lines[-1]} {option} \\") <= width:
            lines[-1] += f" {option}"
        else:
            lines[-1] += " \\"
            lines.append(f"      {option}")
    return lines


class Layout(argparse.RawDescriptionHelpFormatter):
    """Fills the paragraphs of a description to the width of the terminal."""

    def _fill_text(self, text: str, width: int, _indent: str) -> str:
        return filled(text, min(width, MOST_COLUMNS))


#: The option by which other commands name the dialect of their input.
SAME_MEANING: Final = {"--dialect": "--from", "--from": "--dialect"}


class Parser(argparse.ArgumentParser):
    """The parser of the command and of its subcommands.

    For a wrong word it suggests the nearest known word. Python 3.14's own parser can do that too, but for choices only.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=Layout, **settings)
        self.suggest_on_error = False  # Python 3.15 would suggest a choice a second time

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments. First refuse an unknown option, since argparse would rather complain about missing ones."""
        known = self._option_string_actions
        # the arguments after a command's name are for the command's parser, and those after -- are not options
        for given in takewhile(lambda each: each != "--" and (self._subparsers is None or each.startswith("-")), args):
            name = given.partition("=")[0]
            is_option = name.startswith("--") and " " not in given
            if is_option and not any(each.startswith(name) for each in known):
                other = SAME_MEANING.get(name)
                hint = f"; did you mean {other}?" if other in known else meant(name, known, str)
                self.error(f"no option is called {visible(name)}{hint}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += meant(value, map(str, action.choices or ()))
            raise


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of these commands, and import their modules. Its ``--help`` is the commands' documentation."""
    about = "Parse, check and translate the streams of LLM providers."
    top = Parser(prog="streamkit", description=about, epilog=STATUSES)
    top.add_argument("--version", action="version", version=f"streamkit {__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=Parser)
    for name in names:
        module = import_module(f"streamkit.cli.{MODULES.get(name, name.replace('-', '_'))}")
        epilog = getattr(module, "STATUSES", STATUSES)
        command = commands.add_parser(name, help=module.HELP, description=module.DETAIL, epilog=epilog)
        command.set_defaults(run=module.run)
        module.add_options(command)
    return top


def _needed(arguments: Sequence[str]) -> Iterable[str]:
    """Return the commands whose parsers these arguments need. Importing the other commands would take time."""
    return arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


async def _run(options: argparse.Namespace) -> int:
    """Run a command so that an interrupt can end it during a blocking write as well as while it waits.

    asyncio's own handler would only cancel the task, and a task in a blocking write does not notice that. But if the event
    loop itself is running, raising an exception could lose the wake-up of a task, so the task is cancelled instead.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def interrupt(_signal: int, _frame: object) -> None:
        if asyncio.current_task(loop) is not None:
            raise KeyboardInterrupt
        if task is not None:
            task.cancel()  # immediately, since the task's next step may be a write that never ends

    # the loop's handler makes a signal wake the loop even just before it waits; then this function's handler replaces it
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    signal.signal(signal.SIGINT, interrupt)
    return int(await options.run(options))


def run(arguments: Sequence[str]) -> int:
    """Run a command and return the exit status. Without arguments, print the help to standard error: it is a mistake."""
    prepare_standard_streams()
    if not arguments:
        parser().print_help(sys.stderr)
        return int(Status.USAGE)
    options = parser(_needed(arguments)).parse_args(arguments)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        if iscoroutinefunction(options.run):
            return asyncio.run(_run(options))
        return int(options.run(options))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    except BrokenPipeError:  # the reader closed the pipe; prevent a second error when Python flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Status.FAILED)
    except (UsageError, SourceFailed, OSError) as error:  # such as an input that cannot be opened
        return int(say_failure(error))
