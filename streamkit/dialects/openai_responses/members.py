"""Which members of each event are read, and which members of items and parts were already emitted.

Events repeat each item three or four times. A member that an earlier event of the item had is not emitted again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from streamkit.dialects.members.known import Members, kept
from streamkit.dialects.members.values import has_value
from streamkit.dialects.openai_responses.items import ITEM_FIELDS
from streamkit.dialects.openai_responses.wire import CALL_EVENTS, CALL_INPUTS, PLACES, SPEECHES

COMMON: Final = (*PLACES, "call_id")
#: The members of a response that are read here. The decoder itself keeps all other members.
RESPONSE: Final = kept("output", "error", incomplete_details=Members("reason"))
EVENTS: Final[Mapping[str, Members]] = {
    name: members.also(*COMMON)
    for name, members in {
        **dict.fromkeys(("response.created", "response.queued", "response.in_progress"), Members("response")),
        **{
            f"response.{end}": Members(response=RESPONSE)
            for end in ("completed", "incomplete", "failed", "cancelled", "done")
        },
        **{f"response.output_item.{end}": Members("item") for end in ("added", "done")},
        **{
            f"response.{name}_part.{end}": Members("part")
            for name in ("content", "reasoning_summary")
            for end in ("added", "done")
        },
        **{f"{speech.events}.done": Members(speech.name) for speech in SPEECHES.values()},
        "response.output_text.done": Members("text", "logprobs"),
        **{f"{event}.delta": Members("delta") for event in CALL_EVENTS},
        **{f"{event}.done": Members(CALL_INPUTS[kind], "name") for event, kind in CALL_EVENTS.items()},
        "response.output_text.annotation.added": Members("annotation", "annotation_index"),
        "error": Members("error", "code", "message", "param"),
    }.items()
}
PART_FIELDS: Final = frozenset({"type", "text", "refusal", "annotations", "logprobs"})
#: The most members that are remembered. Members beyond this number are emitted each time.
FEW: Final = 1000


@define
class SaidBefore:
    """Members of items and parts that were already emitted, by the item's id or, without an id, its place."""

    _reported: set[tuple[Any, ...]] = field(factory=set)

    def _is_new(self, *key: Any) -> bool:
        if key in self._reported:
            return False
        if len(self._reported) < FEW:
            self._reported.add(key)
        return True

    def of_item(self, item: Any, place: Any, event: str = "") -> list[tuple[str, Any]]:
        """Return the members of an item that were not emitted before; empty if the reader of items keeps them itself."""
        new: list[tuple[str, Any]] = []
        kind = item.get("type") if type(item) is dict else None
        if type(kind) is not str or (fields := ITEM_FIELDS.get(kind)) is None:  # kept whole
            return new
        if not item.keys() <= fields:
            whose = item.get("id") if isinstance(item.get("id"), str) and item["id"] else _number(place)
            kept = bool(event) and (kind not in CALL_INPUTS or event.endswith("added"))
            for name, value in item.items():
                if name not in fields and has_value(value) and self._is_new(whose, name) and not kept:
                    new.append((f"item.{name}", value))
        for group in ("content", "summary") if kind not in CALL_INPUTS else ():
            if type(parts := item.get(group)) is list:
                for number, part in enumerate(parts):
                    if type(part) is dict and not part.keys() <= PART_FIELDS:
                        new += self.of_part(part, place, group, number)
        return new

    def of_part(self, part: Any, place: Any, group: str, number: Any) -> list[tuple[str, Any]]:
        if type(kind := part.get("type")) is not str or kind not in SPEECHES:
            return []
        where = _number(place), group, _number(number)
        return [
            (f"part.{name}", value)
            for name, value in part.items()
            if name not in PART_FIELDS and has_value(value) and self._is_new(*where, name)
        ]

    def of_event(self, document: dict[str, Any]) -> list[tuple[str, Any]]:
        if "item" in document:
            return self.of_item(document["item"], document.get("output_index"), document["type"])
        new: list[tuple[str, Any]] = []
        if (part := document.get("part")) is not None:
            if type(part) is dict and not part.keys() <= PART_FIELDS:
                group = "summary" if "summary" in document["type"] else "content"
                new = self.of_part(part, document.get("output_index"), group, document.get(f"{group}_index"))
        elif type(response := document.get("response")) is dict and type(output := response.get("output")) is list:
            for number, item in enumerate(output):
                new += self.of_item(item, number)
        return new


def _number(place: Any) -> int | None:
    return place if type(place) is int else None
