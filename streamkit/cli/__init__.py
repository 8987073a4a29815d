"""The ``streamkit`` command. ``commands.py`` combines the subcommands, each of which has a module in this package."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from streamkit import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status. For ``--version`` alone, nothing else is imported."""
    given = sys.argv[1:] if arguments is None else arguments
    if [*given] == ["--version"]:
        print(f"streamkit {__version__}")
        return 0
    return int(import_module("streamkit.cli.commands").run(given))
