"""``streamkit completion``: print the script with which a shell completes the commands, their options and their arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from streamkit.cli.options import AUTO, client, dialect_or_auto, source, source_or_auto
from streamkit.cli.streams import write
from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.report import Status

HELP = "print a script that makes a shell complete commands and options"
DETAIL = """\
Prints a script for a shell. After the script is loaded, Tab completes commands, options, dialects, providers and files. Print
the script again after you update streamkit or install another dialect. If the folder of an example does not exist, create it
with `mkdir -p`.

The command needs the extra `cli`: pip install 'streamkit-llm[cli]'.

examples:
  streamkit completion bash > ~/.local/share/bash-completion/completions/streamkit
  streamkit completion zsh > ~/.zfunc/_streamkit    # a folder of your fpath
  streamkit completion fish > ~/.config/fish/completions/streamkit.fish
"""
STATUSES = """\
exit status:
  0  done
  2  usage, or the extra is missing
"""
SHELLS: Final = ("bash", "zsh", "fish", "tcsh", "powershell")
EXTRA: Final = "streamkit completion needs the extra `cli`: pip install 'streamkit-llm[cli]' (missing: {})"
FILES: Final = {"FILE", "PATH", "TOOLS", "SCHEMA", "SCRIPT.toml"}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit completion``."""
    command.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace) -> Status:
    """Print the script. Raises UsageError if shtab is not installed."""
    try:  # imported here, since other commands do not need the extra
        import shtab  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA.format(error.name)) from error
    from streamkit.cli.commands import parser  # noqa: PLC0415 - which imports this module

    top = parser()
    for action in _actions(top):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "DIR":
            action.complete = shtab.DIR  # type: ignore[attr-defined]
        elif action.choices is None:
            action.choices = _names(action.type) or None
    write(shtab.complete(top, options.shell).encode())
    return Status.DONE


def _actions(of: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the actions of a parser and of its commands."""
    for action in of._actions:  # noqa: SLF001 - argparse has no other list of them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command, short in zip(action.choices.values(), action._choices_actions, strict=True):  # noqa: SLF001
                command.description = short.help  # shtab shows the first line of the description beside a name
                yield from _actions(command)


def _names(kind: object) -> list[str]:
    """Return the names that an argument of this type can have: dialects, and providers or clients."""
    if kind not in (source, source_or_auto, dialect_or_auto, client):
        return []
    names = [AUTO] if kind in (source_or_auto, dialect_or_auto) else []
    for dialect in DIALECTS.values():
        more = dialect.clients if kind is client else () if kind is dialect_or_auto else dialect.providers
        names += [dialect.name, *(each.name for each in more)]
    return names
