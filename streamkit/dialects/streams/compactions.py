"""Compactions, which stand for what was said before: Anthropic's blocks and OpenAI's items, in answers for another dialect.

Each is opaque to all but its maker, and must come back to that as it was. Towards Responses, Anthropic's block is an item, its
``encrypted_content`` the whole block, sealed. Towards Anthropic, OpenAI's item is a block: its clients send such a block back
as it is, and may leave out what was said before it, as those of OpenAI may; with null for a summary it would say that it
failed. In every other dialect the summary of an Anthropic block is text, and OpenAI's text, which nobody else reads, stands
where that of encrypted reasoning does: who knows no compactions goes on sending all of the conversation beside it.

A delta of Anthropic's assigns the whole summary, so all of it is told when the block ends.

Source: dialects.md §3.1; anthropic 2.12, ``BetaCompactionBlock`` and ``BetaCompactionContentBlockDelta``; openai 3.54,
``ResponseCompactionItem``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson

from streamkit.dialects.members.values import has_value, json_value
from streamkit.dialects.streams.client_calls import ADDED, DONE
from streamkit.dialects.vocabulary.sealed_reasoning import MADE, seal, unseal
from streamkit.events import Aside, Event, ReasoningOpaque, TextDelta
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

COMPACTION: Final = "compaction"
#: Vendors whose asides may be carried, and what these are: blocks of content, or items. Their dialects add them (``wire.py``).
FORMS: Final[dict[str, Literal["block", "item"]]] = {}
#: Whose opaque text OpenAI's is, where that of reasoning stands and in what is sealed. A block is sealed as its vendor's.
OPENAIS: Final = "openai_compaction"
#: The summary of a block that stands for OpenAI's item: null would say that there is none, and "" is refused.
UNREADABLE: Final = "(A summary of the conversation that only OpenAI can read.)"
#: Members of each frame, and of the block or the delta in it, that are read or that the loss of the form stands for.
FRAME: Final = frozenset({"type", "index", "content_block", "delta"})
SAID: Final = frozenset({"type", "content", "encrypted_content", "signature", "tool_changes"})
#: Of OpenAI's item; its id is none of any other server.
ITEM: Final = frozenset({"type", "id", "status", "encrypted_content"})
#: What to send for one, instead.
INSTEAD: Final = "send the messages that it stands for, or their summary as a message"
#: The event that tells that one is being made.
PROGRESS: Final = "response.compaction.compacting"


class CompactionReader:
    """The compactions of one answer, frame by frame, for a dialect whose own asides are those of ``native``."""

    def __init__(self, native: str, report: StreamReport) -> None:
        self._native = native
        self._form = FORMS.get(native)
        self._report = report
        self._blocks: dict[int, dict[str, Any]] = {}  # Anthropic's that are open, by their label
        self._items: set[int] = set()  # OpenAI's

    def take(self, aside: Aside) -> list[Event]:
        """What an aside is for the dialect: itself, if it is not of a compaction."""
        raw = aside.raw if isinstance(aside.raw, Mapping) else {}
        form = FORMS.get(aside.vendor)
        if form is None or form == self._form:
            return [aside]
        return self._of_block(aside, raw) if form == "block" else self._of_item(aside, raw)

    def finish(self) -> None:
        """Nothing more comes: count what has no end."""
        for _ in (*self._blocks, *self._items):
            self._report.lose(COMPACTION)

    # -- Anthropic's -----------------------------------------------------------------------------------------------

    def _of_block(self, aside: Aside, raw: Mapping[str, Any]) -> list[Event]:
        if aside.type == "content_block_start":
            block = raw.get("content_block")
            if not isinstance(block, Mapping) or block.get("type") != COMPACTION:
                return [aside]
            self._lose_unread(raw, block)
            self._blocks[aside.block] = dict(block)
        elif aside.block not in self._blocks:
            return [aside]
        elif aside.type == "content_block_delta":
            delta = raw.get("delta")
            self._lose_unread(raw, delta)
            if isinstance(delta, Mapping):
                members = {name: value for name, value in delta.items() if name != "type" and value is not None}
                self._blocks[aside.block] |= members
        elif aside.type == "content_block_stop":
            self._lose_unread(raw, None)
            return self._summary(self._blocks.pop(aside.block), aside)
        else:
            return [aside]
        return []

    def _summary(self, block: dict[str, Any], aside: Aside) -> list[Event]:
        summary = block.get("content")
        if not isinstance(summary, str) or not summary:  # it failed, and stands for nothing
            self._report.lose(COMPACTION)
            for name in sorted(block.keys() - SAID) if self._form == "item" else ():
                self._report.lose("unknown_event", what=f"{COMPACTION}.{name}")
            return []
        if self._form != "item":
            self._report.lose(COMPACTION)
            return [TextDelta(summary, aside.choice, aside.block)]
        sealed = seal("opaque", f"{aside.vendor}_{COMPACTION}", orjson.dumps(block).decode())
        item = {"id": f"cmp_{MADE}_{hashed(sealed, 22)}", "type": COMPACTION, "encrypted_content": sealed}
        return [
            Aside(self._native, "unknown_event", kind, {"type": kind, "item": item}, aside.choice, aside.block)
            for kind in (ADDED, DONE)
        ]

    def _lose_unread(self, frame: Mapping[str, Any], inner: Any) -> None:
        """Count the members of a frame, and of the block or delta in it, that nobody knows. All of a block is sealed."""
        inside = inner.keys() - SAID if isinstance(inner, Mapping) and self._form != "item" else set()
        for name in sorted((frame.keys() - FRAME) | inside):
            self._report.lose("unknown_event", what=f"{COMPACTION}.{name}")

    # -- OpenAI's --------------------------------------------------------------------------------------------------

    def _of_item(self, aside: Aside, raw: Mapping[str, Any]) -> list[Event]:
        item = raw.get("item") if aside.type in {ADDED, DONE} else None
        if not isinstance(item, Mapping) or item.get("type") != COMPACTION:
            return [] if aside.type == PROGRESS else [aside]
        if aside.type == ADDED:
            self._items.add(aside.block)
            return []
        self._items.discard(aside.block)
        blob = item.get("encrypted_content")
        if not isinstance(blob, str) or not blob:
            self._report.lose(COMPACTION)
            return []
        for name in sorted(item.keys() - ITEM):
            if has_value(item[name]):
                self._report.lose("metadata", what=f"{COMPACTION}.{name}")
        if self._form != "block":
            return [ReasoningOpaque(blob, OPENAIS, aside.choice, aside.block)]
        sealed = seal("opaque", OPENAIS, blob)
        members = {"content": UNREADABLE, "encrypted_content": sealed}
        return [
            Aside(self._native, "unknown_event", str(frame["type"]), frame, aside.choice, aside.block)
            for frame in (
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": COMPACTION, "content": None, "encrypted_content": None},
                },
                {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", **members}},
                {"type": "content_block_stop", "index": 0},
            )
        ]


# -- what comes back ---------------------------------------------------------------------------------------------------


def openais_in(encrypted: Any) -> str | None:
    """OpenAI's own text in the ``encrypted_content`` of a block of Anthropic's dialect; None if it is Anthropic's."""
    sealed = unseal(encrypted) if isinstance(encrypted, str) else None
    return sealed.blob if sealed is not None and sealed.vendor == OPENAIS else None


def block_in(encrypted: Any) -> dict[str, Any] | None:
    """Anthropic's block in the ``encrypted_content`` of an item of Responses; None if it is OpenAI's."""
    sealed = unseal(encrypted) if isinstance(encrypted, str) else None
    makers = {f"{vendor}_{COMPACTION}" for vendor, form in FORMS.items() if form == "block"}
    if sealed is None or sealed.vendor not in makers:
        return None
    block = json_value(sealed.blob)
    return block if isinstance(block, dict) and isinstance(block.get("content"), str) else None
