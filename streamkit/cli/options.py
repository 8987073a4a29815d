"""Options that several commands have."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from typing import Any, TypeAlias, get_args

from attrs import evolve

from streamkit.cli.streams import STDIN, say
from streamkit.dialects import DIALECTS, client_named, dialect_named, source_named
from streamkit.errors import UsageError
from streamkit.policy import POLICIES, Policy, TextCalls, ThinkTags
from streamkit.rewrite.given import EventStage, load_stage
from streamkit.text.quoting import quoted

AUTO = "auto"
PORTS = 65535  #: the highest port
#: Two dialects for examples in the help. The second dialect of the table is skipped: its vendor is that of the first.
ONE, OTHER = list(DIALECTS.built_in)[:3:2]
#: The ``type`` of an argparse argument: returns a known name unchanged, and refuses other names.
Named: TypeAlias = Callable[[str], str]


def _known(find: Callable[[str], object], *words: str) -> Named:
    """Return an argument type for the names that ``find`` knows, and for ``words``.

    Only the given name is looked up, so that no other dialect's package is imported.
    """

    def known(name: str) -> str:
        if name not in words:
            try:
                find(name)
            except UsageError as error:
                raise argparse.ArgumentTypeError(str(error)) from error
        return name

    return known


#: An input's dialect may be named by a provider, and an output's dialect by a client.
source, client = _known(source_named), _known(client_named)
source_or_auto, dialect_or_auto = _known(source_named, AUTO), _known(dialect_named, AUTO)


def port(text: str) -> int:
    """Return the number of a port, 0 for any free port. The ``type`` of an argparse argument."""
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(PORTS)) or int(text) > PORTS:
        raise argparse.ArgumentTypeError(f"must be 0 to {PORTS}, not {quoted(text)}")
    return int(text)


def add_dialects(
    command: Any, source: Named, comes: str, target: Named, goes: str, *, recordings: bool = False
) -> None:
    """Add ``--from`` and ``--to``, each with its type and help. ``--from`` is optional if the command reads recordings."""
    if recordings:
        comes += " (default: the recording's dialect)"
    for name, dest, kind, what in (("--from", "source", source, comes), ("--to", "target", target, goes)):
        is_needed = name == "--to" or not recordings
        command.add_argument(name, dest=dest, required=is_needed, type=kind, metavar="DIALECT", help=what)


class _Renamed(argparse.Action):
    """A flag under its old name. It sets what the new flag, ``const``, sets, and reports the new name."""

    def __call__(self, _parser: Any, namespace: argparse.Namespace, *_: Any) -> None:
        say(f"{self.option_strings[0]} is now {self.const}; the next release drops the old name")
        setattr(namespace, self.dest, True)


def add_renamed(command: argparse.ArgumentParser, old: str, new: str) -> None:
    """Let a command accept a flag under its old name, which its help does not show. Add the new flag before."""
    dest = new.removeprefix("--")
    command.add_argument(old, action=_Renamed, nargs=0, const=new, dest=dest, help=argparse.SUPPRESS)


def add_policy(command: argparse.ArgumentParser) -> None:
    """Add ``--policy`` to a command. The default is ``tolerant``."""
    command.add_argument(
        "--policy",
        choices=POLICIES,
        default="tolerant",
        help="which faults of a stream to tolerate. strict: no fault that needs a repair; tolerant: the usual faults, "
        "which streamkit repairs; lenient: like tolerant, but also accept more streams without a stop reason, and split "
        "merged calls (default: tolerant)",
    )


def add_in_text(command: argparse.ArgumentParser) -> None:
    """Add the options about reasoning and tool calls that a model wrote into its text."""
    command.add_argument(
        "--think-tags",
        choices=get_args(ThinkTags),
        help="when to read text between thinking tags (<think>…</think>) at the start of a response as reasoning. auto: if "
        "the provider is known to send such tags; on: always; opened: always, for a prompt that already has the opening "
        "tag; off: never (default: auto, or off with --policy strict)",
    )
    command.add_argument(
        "--text-calls",
        action="append",
        choices=get_args(TextCalls),
        metavar="GRAMMAR",
        help="the form in which the model writes calls as text; these calls become tool calls; may be repeated: "
        f"{', '.join(get_args(TextCalls))}",
    )


def policy_of(options: argparse.Namespace) -> Policy:
    """Return the policy that the options of ``add_policy`` and ``add_in_text`` select."""
    policy = evolve(POLICIES[options.policy], text_calls=tuple(options.text_calls or ()))
    return policy if options.think_tags is None else evolve(policy, think_tags=options.think_tags)


def add_recordings(command: argparse.ArgumentParser) -> None:
    """Add the input files of a command that writes no streams."""
    help_text = "recordings, or bytes of streams, or folders with such files (default: standard input)"
    command.add_argument("files", nargs="*", default=[STDIN], metavar="FILE", help=help_text)


def add_stage(command: argparse.ArgumentParser) -> None:
    """Add the option ``--stage``."""
    command.add_argument(
        "--stage",
        action="append",
        default=[],
        metavar="MODULE:NAME",
        help="a stage through which the events pass; may be repeated",
    )


def stage_named(text: str) -> EventStage:
    """Return the stage that an option names, as ``module:name`` or a table of TOML. Raises UsageError."""
    try:
        return load_stage(tomllib.loads(f"stage = {text}")["stage"] if text.startswith("{") else text)
    except ValueError as error:  # from tomllib
        raise UsageError(f"--stage: {quoted(text)} is no table of TOML: {error}") from error
    except UsageError as error:
        raise UsageError(f"--stage: {error}") from error
