"""The part of the checker that follows output items: from added to done, with their parts and their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field

from streamkit.dialects.linting.grammar import GrammarChecker, is_filled, is_index, is_text, load_json, shown
from streamkit.limits import DEFAULT_LIMITS

#: Characters of a text that are kept to be compared; a longer one is not judged.
TEXT_CHARS = DEFAULT_LIMITS.arguments_chars
#: Fragments of a text, of a character at least, that fill what a message shows.
SHOWN = 60
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
#: Items whose events are known.
KNOWN_ITEMS = frozenset({"message", "reasoning", *CALLS})
#: For each type of part: its item, what counts it there, and its member.
PARTS: Mapping[str, tuple[str, str, str]] = {
    "output_text": ("message", "content_index", "text"),
    "refusal": ("message", "content_index", "refusal"),
    "reasoning_text": ("reasoning", "content_index", "text"),
    "summary_text": ("reasoning", "summary_index", "text"),
}
#: For the events of each: its part.
EVENTS: Mapping[str, str] = {
    "response.output_text": "output_text",
    "response.refusal": "refusal",
    "response.reasoning_text": "reasoning_text",
    "response.reasoning_summary_text": "summary_text",
}


@define
class _Text:
    """The fragments of a part or of a call."""

    kind: str
    fragments: list[str] = field(factory=list)
    chars: int = 0

    def add(self, fragment: str) -> None:
        self.chars += len(fragment)
        if fragment and self.chars <= TEXT_CHARS:
            self.fragments.append(fragment)

    def differs(self, whole: str) -> bool:
        """Whether a whole text is not that of the deltas, where there were any."""
        if not 0 < self.chars <= TEXT_CHARS:
            return False
        return self.chars != len(whole) or "".join(self.fragments) != whole

    @property
    def beginning(self) -> str:
        """As much as a message shows."""
        return "".join(self.fragments[:SHOWN])


@define
class _Item:
    kind: str
    id: object
    done: bool = False
    parts: dict[tuple[str, int], _Text] = field(factory=dict)
    counts: Counter[str] = field(factory=Counter)  #: of the parts, by what numbers them
    text: _Text | None = None  #: of a call


class ItemChecker(GrammarChecker):
    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, _Item] = {}
        self._open: int | None = None  # the index of the item that was added last, unless it is done
        self._call_ids: set[str] = set()
        self.item_handlers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.content_part.added": self._part_added,
            "response.reasoning_summary_part.added": self._part_added,
            "response.content_part.done": self._part_done,
            "response.reasoning_summary_part.done": self._part_done,
            **{f"{event}.delta": partial(self._text_delta, kind=kind) for event, kind in EVENTS.items()},
            **{f"{event}.done": partial(self._text_done, kind=kind) for event, kind in EVENTS.items()},
            "response.function_call_arguments.delta": partial(self._call_delta, kind="function_call"),
            "response.function_call_arguments.done": partial(self._call_done, kind="function_call"),
            "response.custom_tool_call_input.delta": partial(self._call_delta, kind="custom_tool_call"),
            "response.custom_tool_call_input.done": partial(self._call_done, kind="custom_tool_call"),
        }

    # -- items -----------------------------------------------------------------------------------------------------

    def _item_added(self, document: dict[str, Any]) -> None:
        index, item = document.get("output_index"), document.get("item")
        if not isinstance(item, dict) or not is_filled(item.get("type")):
            self.broken("item", f"item is {shown(item)}")
            item = {"type": ""}
        kind, item_id = item["type"], item.get("id")
        if kind in KNOWN_ITEMS and not is_filled(item_id):
            self.broken("item", f"the id of a {kind} is {shown(item_id)}")
        if type(index) is not int or not is_index(index) or index in self._items:
            self.broken("output_index", f"output_index is {shown(index)}, not {len(self._items)}")
            index = -1 - len(self._items)
        elif index != len(self._items):
            self.broken("output_index", f"output_index is {index}, not {len(self._items)}", "note")
        if self._open is not None:
            self.broken("interleaved", f"item {index} is added while item {self._open} is open", "note")
        self._items[index] = _Item(kind, item_id, text=_Text(kind) if kind in CALLS else None)
        self._open = index
        if kind in CALLS:
            self._call(item, first=True)

    def _call(self, item: dict[str, Any], *, first: bool) -> None:
        call_id, name, text = item.get("call_id"), item.get("name"), item.get(CALLS[item["type"]])
        if not is_filled(call_id) or not is_filled(name) or not (is_text(text) or (first and text is None)):
            self.broken("call", f"call_id is {shown(call_id)}, name {shown(name)}, input {shown(text)}")
        elif first and call_id in self._call_ids:
            self.broken("call_id", f"the call_id {shown(call_id)} again")
        if is_filled(call_id):
            self._call_ids.add(call_id)

    def _find(self, document: dict[str, Any], item_id: object) -> _Item | None:
        """The open item that an event names; None, and noted, if there is none."""
        index = document.get("output_index")
        item = self._items.get(index) if type(index) is int else None
        if item is None or item.done:
            self.broken("item_order", f"{document['type']} for item {shown(index)}, which is not open")
            return None
        if item.kind in KNOWN_ITEMS and item_id != item.id:
            self.broken("item_id", f"item_id is {shown(item_id)}, not {shown(item.id)}")
        return item

    def _item_done(self, document: dict[str, Any]) -> None:
        found = document.get("item")
        if not isinstance(found, dict) or not is_filled(found.get("type")):
            self.broken("item", f"item is {shown(found)}")
            found = {"type": ""}
        item = self._find(document, found.get("id"))
        if item is None:
            return
        item.done = True
        if self._open == document["output_index"]:
            self._open = None
        if found["type"] and found["type"] != item.kind:
            self.broken("item", f"the type is {shown(found['type'])}, not {shown(item.kind)}")
        elif item.text is not None and found["type"]:
            self._call(found, first=False)
            self._whole(item.text, found.get(CALLS[item.kind]))
            if item.kind == "function_call" and found.get("status") != "incomplete":
                self._arguments(found.get("arguments"))
        else:
            for name in ("content", "summary"):
                parts = found.get(name)
                if not isinstance(parts, list | None):
                    self.broken("part", f"{name} of the item is {shown(parts)}")
                for place, part in enumerate(parts if isinstance(parts, list) else ()):
                    self._whole_part(item, place, part)

    def _arguments(self, text: object) -> None:
        if is_filled(text) and not is_object(text):
            self.broken("arguments_unparsable", f"the arguments are {shown(text)}", "note")

    def check_output(self, output: object, *, completed: bool) -> None:
        """The items of the last response, against those that were done."""
        ids = [item.id for item in self._items.values() if item.done]
        if completed and len(ids) < len(self._items):
            self.broken("unfinished", f"{len(self._items) - len(ids)} items are not done")
        if isinstance(output, list):
            repeated = [item.get("id") if isinstance(item, dict) else item for item in output]
            if sorted(map(repr, repeated)) != sorted(map(repr, ids)):
                self.broken("output", f"output has {shown(repeated)}, done were {shown(ids)}")

    # -- parts and texts -------------------------------------------------------------------------------------------

    def _part_added(self, document: dict[str, Any]) -> None:
        item = self._find(document, document.get("item_id"))
        if item is None:
            return
        part = document.get("part")
        if not isinstance(part, dict) or not is_filled(part.get("type")):
            self.broken("part", f"part is {shown(part)}")
            return
        belongs, counted, member = PARTS.get(part["type"], (item.kind, "content_index", ""))
        place = document.get(counted)
        if belongs != item.kind:
            self.broken("part", f"{shown(part['type'])} in an item of type {shown(item.kind)}")
        elif place != item.counts[counted]:
            self.broken("part_order", f"{counted} is {shown(place)}")
        if type(place) is int:
            item.counts[counted] += (counted, place) not in item.parts
            text = item.parts[counted, place] = _Text(part["type"])
            if member and is_text(part.get(member)):
                text.add(part[member])

    def _text(self, document: dict[str, Any], kind: str) -> _Text | None:
        """The open part that an event names; None, and noted, if there is none."""
        item = self._find(document, document.get("item_id"))
        if item is None:
            return None
        belongs, counted, _ = PARTS[kind]
        place = document.get(counted)
        text = item.parts.get((counted, place)) if type(place) is int else None
        if belongs != item.kind:
            self.broken("delta", f"{document['type']} in an item of type {shown(item.kind)}")
        elif text is None:
            self.broken("part_order", f"{document['type']} for part {shown(place)}, which was not added")
        elif text.kind != kind:
            self.broken("delta", f"{document['type']} in a part of type {shown(text.kind)}")
        return text

    def _text_delta(self, document: dict[str, Any], kind: str) -> None:
        self._delta(self._text(document, kind), document.get("delta"))

    def _text_done(self, document: dict[str, Any], kind: str) -> None:
        self._whole(self._text(document, kind), document.get(PARTS[kind][2]))

    def _part_done(self, document: dict[str, Any]) -> None:
        part = document.get("part")
        if not isinstance(part, dict) or not is_filled(part.get("type")):
            self.broken("part", f"part is {shown(part)}")
        elif part["type"] in PARTS:
            self._whole(self._text(document, part["type"]), part.get(PARTS[part["type"]][2]))

    def _whole_part(self, item: _Item, place: int, part: object) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(kind, str) and kind in PARTS:
            _, counted, member = PARTS[kind]
            self._whole(item.parts.get((counted, place)), part.get(member))

    def _call_text(self, document: dict[str, Any], kind: str) -> _Text | None:
        item = self._find(document, document.get("item_id"))
        if item is not None and item.kind != kind:
            self.broken("delta", f"{document['type']} in an item of type {shown(item.kind)}")
        return item.text if item is not None else None

    def _call_delta(self, document: dict[str, Any], kind: str) -> None:
        self._delta(self._call_text(document, kind), document.get("delta"))

    def _call_done(self, document: dict[str, Any], kind: str) -> None:
        self._whole(self._call_text(document, kind), document.get(CALLS[kind]))

    def _delta(self, text: _Text | None, delta: object) -> None:
        if not is_text(delta):
            self.broken("delta", f"delta is {shown(delta)}")
        elif text is not None:
            text.add(delta)

    def _whole(self, text: _Text | None, whole: object) -> None:
        if text is None:
            return
        if not is_text(whole):
            self.broken("whole", f"the whole text is {shown(whole)}")
        elif text.differs(whole):
            self.broken("whole", f"the whole text is {shown(whole)}, the deltas say {shown(text.beginning)}")


def is_object(text: str) -> bool:
    """Whether a text is one JSON object."""
    try:
        return isinstance(load_json(text), dict)
    except ValueError:
        return False
