"""Options that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias, get_args

from attrs import evolve

from streamkit.dialects import DIALECTS, client_named, dialect_named, source_named
from streamkit.errors import UsageError
from streamkit.policy import POLICIES, Policy, TextCalls, ThinkTags

AUTO = "auto"
#: Two dialects for the examples of the help. The second of the table is of the first one's vendor.
ONE, OTHER = list(DIALECTS.built_in)[:3:2]
#: The type of an argument: gives back a name that is known.
Named: TypeAlias = Callable[[str], str]


def _known(find: Callable[[str], object], *words: str) -> Named:
    """The type of a name that ``find`` knows, or of one of the ``words``.

    Only the name that is given is asked for, so that the package of no other dialect is imported.
    """

    def known(name: str) -> str:
        if name not in words:
            try:
                find(name)
            except UsageError as error:
                raise argparse.ArgumentTypeError(str(error)) from error
        return name

    return known


#: What comes in: a dialect or a provider; what goes out: a dialect or a client.
source, client = _known(source_named), _known(client_named)
source_or_auto, dialect_or_auto = _known(source_named, AUTO), _known(dialect_named, AUTO)


def add_dialects(
    command: Any, source: Named, comes: str, target: Named, goes: str, *, recordings: bool = False
) -> None:
    """Add ``--from`` and ``--to``, each with its type and its help. A command that reads recordings needs no ``--from``."""
    if recordings:
        comes += " (default: a recording's own)"
    for name, dest, kind, what in (("--from", "source", source, comes), ("--to", "target", target, goes)):
        is_needed = name == "--to" or not recordings
        command.add_argument(name, dest=dest, required=is_needed, type=kind, metavar="DIALECT", help=what)


def add_policy(command: argparse.ArgumentParser) -> None:
    """Add ``--policy`` to a command, by default ``tolerant``."""
    command.add_argument(
        "--policy",
        choices=POLICIES,
        default="tolerant",
        help="what is tolerated: strict repairs nothing, lenient accepts more ends and splits calls (default: tolerant)",
    )


def add_in_text(command: argparse.ArgumentParser) -> None:
    """What stands in the text and is none."""
    command.add_argument(
        "--think-tags",
        choices=get_args(ThinkTags),
        help="thinking between tags (<think>…</think>) at the start of the text, as reasoning: auto of providers known to send"
        " it so, on of any, opened where the tag was opened in the prompt (default: auto, off with --policy strict)",
    )
    command.add_argument(
        "--text-calls",
        action="append",
        choices=get_args(TextCalls),
        metavar="GRAMMAR",
        help=f"calls that the model wrote into its text, as calls; may be said again: {', '.join(get_args(TextCalls))}",
    )


def policy_of(options: argparse.Namespace) -> Policy:
    """The policy that the options of ``add_policy`` and ``add_in_text`` say."""
    policy = evolve(POLICIES[options.policy], text_calls=tuple(options.text_calls or ()))
    return policy if options.think_tags is None else evolve(policy, think_tags=options.think_tags)
