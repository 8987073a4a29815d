"""Compactions, which replace earlier parts of a conversation: Anthropic's blocks and OpenAI's items, for other dialects.

Only its vendor can read a compaction, and it must return to that vendor unchanged. In Responses, Anthropic's block is
an item with the whole block sealed in ``encrypted_content`` (``seal``). In Anthropic's dialect, OpenAI's item is a block:
clients of both send compactions back, and may leave out the messages before them. (The summary of that block must not be null,
because null means that the compaction failed.) In every other dialect, the summary of an Anthropic block is text, and
OpenAI's opaque text is written as encrypted reasoning: clients that know no compactions keep sending the whole conversation.

Each of Anthropic's deltas replaces the whole summary, so the summary is emitted when its block ends.

Source: dialects.md §3.1; anthropic 2.12, ``BetaCompactionBlock`` and ``BetaCompactionContentBlockDelta``; openai 3.54,
``ResponseCompactionItem``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson

from streamkit.conversation.messages import Unreadable
from streamkit.dialects.members.values import has_value, json_value
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE
from streamkit.dialects.vocabulary.sealed_reasoning import MADE, seal, unseal
from streamkit.events import Aside, Event, ReasoningOpaque, TextDelta
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

COMPACTION: Final = "compaction"
#: By vendor whose asides may be translated: whether its compactions are blocks or items. The ``wire.py`` files add entries.
FORMS: Final[dict[str, Literal["block", "item"]]] = {}
#: The vendor name under which OpenAI's opaque text is sealed or written as reasoning. Blocks are sealed as ``…_compaction``.
OPENAIS: Final = "openai_compaction"
#: The summary of an Anthropic block that represents OpenAI's item: null would mean a failure, and "" is refused.
UNREADABLE: Final = "(A summary of the conversation that only OpenAI can read.)"
#: Members of a frame, and of the block or delta in it, which are not counted as lost: they are read, or the loss of the whole
#: compaction includes them.
FRAME: Final = frozenset({"type", "index", "content_block", "delta"})
SAID: Final = frozenset({"type", "content", "encrypted_content", "signature", "tool_changes"})
#: Members of OpenAI's item that are not counted as lost. Its id is useless to other servers.
ITEM: Final = frozenset({"type", "id", "status", "encrypted_content"})
#: OpenAI's item in a request.
SUMMARY: Final = Unreadable("a compaction of OpenAI", "send the messages that it replaces, or a summary of them")
PROGRESS: Final = "response.compaction.compacting"  #: the event which reports that a compaction is being made


class CompactionReader:
    """Translates the compactions of one response for a target dialect. ``native``: the vendor of that dialect's asides."""

    def __init__(self, native: str, report: StreamReport) -> None:
        self._native = native
        self._form = FORMS.get(native)
        self._report = report
        self._blocks: dict[int, dict[str, Any]] = {}  # Anthropic's open blocks, by their label
        self._items: set[int] = set()  # labels of OpenAI's open items

    def take(self, aside: Aside) -> list[Event]:
        """Return the events for an aside in the target dialect. An aside that is not about a compaction is returned itself."""
        raw = aside.raw if isinstance(aside.raw, Mapping) else {}
        form = FORMS.get(aside.vendor)
        if form is None or form == self._form:
            return [aside]
        return self._of_block(aside, raw) if form == "block" else self._of_item(aside, raw)

    def finish(self) -> None:
        """Count as lost the compactions that began and did not end."""
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
        if not isinstance(summary, str) or not summary:  # the compaction failed
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
        """Count unknown members of a frame, and of the block or delta in it, as lost. A sealed block keeps all its members."""
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


# -- compactions in requests -------------------------------------------------------------------------------------------


def openais_in(encrypted: Any) -> str | None:
    """Return OpenAI's text in the ``encrypted_content`` of an Anthropic block; None if the block is Anthropic's."""
    sealed = unseal(encrypted) if isinstance(encrypted, str) else None
    return sealed.blob if sealed is not None and sealed.vendor == OPENAIS else None


def block_in(encrypted: Any) -> dict[str, Any] | None:
    """Return Anthropic's block in the ``encrypted_content`` of a Responses item; None if the item is OpenAI's."""
    sealed = unseal(encrypted) if isinstance(encrypted, str) else None
    makers = {f"{vendor}_{COMPACTION}" for vendor, form in FORMS.items() if form == "block"}
    if sealed is None or sealed.vendor not in makers:
        return None
    block = json_value(sealed.blob)
    return block if isinstance(block, dict) and isinstance(block.get("content"), str) else None
