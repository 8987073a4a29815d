"""How Anthropic is asked for a summary in place of the conversation: as an edit of the context, or as all that is wanted.

The edit ``compact_20260112`` summarises once the input is long, and the answer goes on unless it is to pause. A request with
``compaction`` is answered by the summary alone; what only shapes a reply is refused beside it, other edits included. Each is a
beta of its own, and so is a block of such a summary in the history.

Source: anthropic 2.12, ``BetaCompact20260112EditParam``, ``BetaCompactionConfigParam`` and its tool runner; Anthropic,
"Compaction", for the least trigger and the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import Compaction, Request, Text
from streamkit.dialects.bodies.request_writer import given
from streamkit.dialects.members.fields import Fields

EDIT: Final = "compact_20260112"
SUMMARIZE: Final = "summarize"
#: The values of ``anthropic-beta`` without which the server refuses an edit, and a summary alone.
EDIT_BETA, SUMMARY_BETA = "compact-2026-01-12", "compact-2026-09-04"
#: A trigger may not be less.
LEAST_TRIGGER: Final = 50_000
#: The first version of Claude that takes it.
FIRST_COMPACTING: Final = (4, 6)
#: Members of the edit that have a word of ours.
READ: Final = frozenset({"type", "trigger", "pause_after_compaction", "instructions"})


def read_compaction(fields: Fields) -> Compaction | None:
    """What ``compaction`` or an edit in ``context_management`` asks for. Other edits stay where they are."""
    raw = fields.peek("compaction")
    asked = fields.fields_of_type("compaction", {SUMMARIZE})
    if asked is not None:
        asked.needed("type")
        return Compaction(now=True, instructions=_words(asked.string("instructions")), native={"compaction": raw})
    management = fields.peek("context_management")
    given_edits = management.get("edits") if isinstance(management, dict) else None
    edits: list[Any] = given_edits if isinstance(given_edits, list) else []
    edit = next(filter(_is_edit, edits), None)
    if edit is None:
        return None
    compaction = _of_edit(edit)
    left = _unread(edit)
    others = [other for other in edits if other is not edit] + ([{"type": EDIT, **left}] if left else [])
    rest = {name: value for name, value in management.items() if name != "edits"}
    fields.replace("context_management", rest | ({"edits": others} if others else {}) or None)
    return evolve(compaction, native={"context_management": management})


def _is_edit(edit: Any) -> bool:
    return isinstance(edit, dict) and edit.get("type") == EDIT


def _of_edit(edit: Mapping[str, Any]) -> Compaction:
    pause, words = edit.get("pause_after_compaction"), edit.get("instructions")
    return Compaction(
        threshold=_tokens(edit.get("trigger")),
        pause=pause if isinstance(pause, bool) else None,
        instructions=_words(words) if isinstance(words, str) else None,
    )


def _unread(edit: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an edit that have no word of ours: unknown ones, a trigger that counts something else."""
    left = {name: value for name, value in edit.items() if name not in READ}
    trigger = edit.get("trigger")
    return left | ({"trigger": trigger} if trigger is not None and _tokens(trigger) is None else {})


def _tokens(trigger: Any) -> int | None:
    if not isinstance(trigger, Mapping) or trigger.get("type") != "input_tokens":
        return None
    value = trigger.get("value")
    return value if type(value) is int else None


def _words(text: str | None) -> str | None:
    """Instructions; blank ones count as none."""
    return text if text is not None and text.strip() else None


def members_of(compaction: Compaction) -> dict[str, Any]:
    """The members that ask for one."""
    if compaction.now:
        return {"compaction": given(type=SUMMARIZE, instructions=compaction.instructions)}
    tokens = compaction.threshold
    edit = given(
        type=EDIT,
        trigger=None if tokens is None else {"type": "input_tokens", "value": max(tokens, LEAST_TRIGGER)},
        pause_after_compaction=compaction.pause or None,
        instructions=compaction.instructions,
    )
    return {"context_management": {"edits": [edit]}}


def features_of(request: Request) -> dict[str, str]:
    """The headers without which the server refuses what a request of another dialect becomes."""
    compaction = request.options.compaction
    asked = [] if compaction is None else [SUMMARY_BETA if compaction.now else EDIT_BETA]
    betas = dict.fromkeys([*asked, *_of_blocks(request)])
    return {"anthropic-beta": ",".join(betas)} if betas else {}


def _of_blocks(request: Request) -> Iterator[str]:
    for part in (part for turn in request.turns for part in turn.parts):
        if isinstance(part, Text) and part.item is not None:
            yield SUMMARY_BETA if part.item.get("signature") else EDIT_BETA
