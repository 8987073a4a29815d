"""Read output items: their start and end, tool calls, and items that no other dialect understands.

Items are found by index, or by id if the index is wrong. They are numbered in the order in which they begin, because an index
twice. Only ``output_item.done`` ends a call. An item without events is read from the terminal response.

Source: dialects.md §2.1, §2.2, §2.4, quirks.md 80, 131, 132.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from streamkit.dialects.members.values import others_of, text_of
from streamkit.dialects.openai_responses.asides import read_image
from streamkit.dialects.openai_responses.texts import (
    DELTA_FIELDS,
    EACH_DELTA,
    OPEN_LOOKED_AT,
    Item,
    ItemPart,
    LastDelta,
    TextReader,
    placeless,
)
from streamkit.dialects.openai_responses.wire import CALL_INPUTS, OWN_ITEMS, SPEECHES, VENDOR, Speech
from streamkit.dialects.streams.client_calls import is_clients, may_be_clients
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE
from streamkit.dialects.vocabulary.roles import is_other_role
from streamkit.errors import TooManyBlocks
from streamkit.events import Aside, AsideKind, ToolCallDelta, ToolCallEnded, ToolCallWhole, ToolKind
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.repeats import LOOKED_AT, paired

#: For each known type of item, the members that are read. Other members are kept for this dialect.
ITEM_FIELDS: Mapping[str, frozenset[str]] = {
    "message": frozenset({"id", "type", "status", "role", "content"}),
    "reasoning": frozenset({"id", "type", "status", "summary", "content", "encrypted_content"}),
    "function_call": frozenset({"id", "type", "status", "call_id", "name", "arguments"}),
    "custom_tool_call": frozenset({"id", "type", "status", "call_id", "name", "input"}),
}


#: Items that change the options or the tools of later responses.
SETTINGS: Final = frozenset({"additional_tools", "configuration_update"})
#: The kind of an item of the type ``custom_tool_call`` that the provider itself has run. No item has this type.
SERVED_CUSTOM: Final = "custom_tool_call of the provider"
#: Items that the provider writes, its tools or its agents, whose types do not end as those of other such items do.
SERVERS: Final = SETTINGS | {
    *("agent_message", "mcp_approval_response", "program", "program_output", "tool_search_output", SERVED_CUSTOM)
}


class Copy(NamedTuple):
    """A part of an item, as a later event (the end of the item or of the response) repeats it."""

    speech: Speech | None  #: the kind of part; None if no other dialect understands it
    place: int
    text: str
    found: dict[str, Any]

    @property
    def key(self) -> tuple[str, int]:
        """The list that contains the part, and the part's position in that list."""
        return ("" if self.speech is None else self.speech.place), self.place


class ItemReader(TextReader):
    """The part of the decoder that reads output items."""

    dialect = "openai-responses"
    vendor = VENDOR
    idle = EACH_DELTA - {"delta"}
    learns_alone = False
    _last: Item | None = None
    _last_call: Item | None = None
    _calls = 0
    customs: frozenset[str] | None = (
        None  #: names of the client's custom tools; None: all custom calls are the client's
    )
    _last_done: tuple[Item, dict[str, Any]] | None = None  # the item that was closed last, and its members

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._open: dict[Item, None] = {}  # the open items, in the order in which they began
        self.began: list[Item] = []  # all items
        self._by_id: dict[str, Item] = {}
        self._by_call_id: dict[str, Item] = {}
        self.waiting: set[str] = set()  #: ids of items that the client must run or approve
        self.unknown: dict[str, str] = {}  #: the same for items of unknown types: their types, by id
        self._lacking: dict[Item, None] = {}  # finished calls without a name or arguments, which the end may contain

    def ensure_started(self) -> None:
        """Emit the start of the response if there was none."""
        raise NotImplementedError

    def close(self) -> None:
        """End the input. Emit contents that only the starts of items had."""
        self.settle_starts()

    def settle_starts(self) -> None:
        """Emit the content that waits in open items, and the ends of calls, because no more events follow."""
        for item in self._open:
            self._whole_input(item, item.start)
            for part in item.parts.values():
                self.settle(part)
        self.end_lacking()

    def end_lacking(self) -> None:
        """End the finished calls that still lack a name or arguments, after the terminal response was read."""
        self.out += [ToolCallEnded(item.call) for item in self._lacking]
        self._lacking.clear()

    def kind_of(self, item: dict[str, Any]) -> Any:
        """Return the type of an item; for a call of a custom tool that only the provider has, ``SERVED_CUSTOM``."""
        kind = item.get("type")
        if self.customs is None or kind != "custom_tool_call":
            return kind
        name = item.get("name")
        return SERVED_CUSTOM if isinstance(name, str) and name and name not in self.customs else kind

    # -- where items begin -----------------------------------------------------------------------------------------

    def item_added(self, document: dict[str, Any], path: tuple[str | int, ...] = ("item",)) -> None:
        """Begin an item, which is at ``path`` in the frame."""
        start = document.get("item")
        if start is None:  # the first delta opens the item, because this start is empty
            return
        if type(start) is not dict:
            start = self.fields(start)
            document = {**document, "item": start}
        kind, item_id = self.string(self.kind_of(start)), self.string(start.get("id"))
        index = self.index(document.get("output_index"))
        if index is None:
            self.report.repair("index_missing")
            index = self.next_index
        before = self.items_at.get(index)
        if before is not None and before.open and before.id == item_id:
            self.report.repair("block_reopened")
            if item_id or kind == before.kind:
                return
            self._end(before, ended=False)
        elif before is not None:  # the earlier item is still found by its id while it is open
            self.report.repair("index_reused")
        item = self._begin(index, kind, item_id, start)
        if kind in CALL_INPUTS:
            item.start = self._input(start, kind, *path)
        elif kind in OWN_ITEMS:
            self._unknown(item, start)
            for copy in self._copies(start):
                if copy.text and copy.speech is not None:
                    self.start_part(self.part_at(item, copy.speech, copy.place), copy.speech, copy.text)
        elif kind.strip():
            self._carry(document, item)
        else:
            self.keep_invalid(document)

    def _begin(self, index: int, kind: str, item_id: str, start: dict[str, Any]) -> Item:
        self.ensure_started()
        if len(self.began) >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        item = Item(kind, item_id, is_other_role=is_other_role(start.get("role")))
        self.began.append(item)
        self._last = self.items_at[index] = item
        if index >= self.next_index:
            self.next_index = index + 1
        self._open[item] = None
        if item_id:
            self._by_id[item_id] = item
        if kind in CALL_INPUTS:
            self._begin_call(item, start)
        return item

    def located(self, document: dict[str, Any]) -> Item | None:
        index, item_id = document.get("output_index"), document.get("item_id")
        item = self.items_at.get(index) if type(index) is int else None
        if item is not None and item.open and item.id == item_id and self._by_id.get(item_id) is item:  # the usual case
            return item
        self._last_done = None
        index = self.index(index)
        named = self._named(item_id) or self._named(document.get("call_id"))
        if index is None:
            self.report.repair("index_missing")
            return named or self._last
        item = self.items_at.get(index)
        if named is not None and named is not item and named.open:
            self.report.repair("index_reused")
            return named
        return item

    def find(self, document: dict[str, Any], kind: str) -> Item:
        """Return the item that an event names. Begin an item if there is none, or if it is of another kind and closed."""
        item = self.located(document)
        if item is None or (item.kind != kind and not item.open):
            self.report.repair("block_unopened")
            index, item_id = self.index(document.get("output_index")), document.get("item_id")
            place = self.next_index if index is None else index
            item = self._begin(place, kind, item_id if isinstance(item_id, str) else "", {})
        return item

    def _named(self, name: Any) -> Item | None:
        """Return the item with this id. Some servers send the id of its call."""
        return self._by_id.get(name) or self._by_call_id.get(name) if isinstance(name, str) else None

    # -- where they end --------------------------------------------------------------------------------------------

    def item_done(self, document: dict[str, Any]) -> None:
        found = document.get("item")
        if type(found) is not dict:
            found = self.fields(found)
            document = {**document, "item": found}
        kind = self.string(self.kind_of(found))
        item = self.find({"item_id": found.get("id"), "call_id": found.get("call_id"), **document}, kind)
        if not item.open and self._is_another(item, found):
            self.report.repair("index_reused")
            item = self._begin(self.next_index, kind, self.string(found.get("id")), {})
        if not item.open:
            self.report.repair("block_unopened")
        elif item.kind not in OWN_ITEMS:
            if kind != item.kind:
                self.report.repair("block_mismatch")
            if not item.carried and kind.strip():  # no event began the item
                self._carry_start(item, found)
            self._carry(document, item)
            self._end(item)
        elif item.kind == kind:
            self._whole_item(item, found, ("item",))
        else:
            self.report.repair("block_mismatch")
            self._end(item, ended=False)

    def _is_another(self, item: Item, found: dict[str, Any]) -> bool:
        """Return whether a finished item is not the closed item at its index: no event began it, and its ids are others."""
        known = (item.id, found.get("id")), (item.call_id, found.get("call_id"))
        named = [pair for pair in known if pair[0] and text_of(pair[1])]
        return bool(named) and all(old != new for old, new in named) and not self._repeats(item, found)

    def _whole_item(self, item: Item, found: dict[str, Any], path: tuple[str | int, ...]) -> None:
        """Read a finished item: emit what is new in it, and its end."""
        item.is_other_role = item.is_other_role or is_other_role(found.get("role"))
        if item.kind in CALL_INPUTS:
            self._whole_call(item, found, path)
        else:
            self._last_done = (item, found) if self.whole_parts(item, self._copies(found)) else None
            self._unknown(item, found)
        if item.kind == "reasoning" and (blob := self.string(found.get("encrypted_content"))):
            self.opaque(blob, item)
        status = found.get("status")
        self._end(item, ended=status in (None, "completed"), incomplete=status == "incomplete")

    def _end(self, item: Item, *, ended: bool = True, incomplete: bool = False) -> None:
        """Close an item. A call whose item is incomplete was not ended by the wire."""
        item.open = False
        self._open.pop(item, None)
        for part in item.parts.values():
            if part.start or part.echo is not None:
                self.settle(part)
        if item.kind in CALL_INPUTS:
            self._whole_input(item, item.start)
            may_be_empty = item.kind == "custom_tool_call"  # a custom tool's input may be empty
            lacks = not item.name or not (may_be_empty or item.has_input)
            if lacks and ended and not incomplete:
                self._lacking[item] = None
            elif ended or incomplete:
                self.out.append(ToolCallEnded(item.call, whole=not incomplete))

    def _unknown(self, item: Item, found: dict[str, Any]) -> None:
        """Emit the unknown members of an item, except those that were emitted at its start."""
        for name, value in others_of(found, ITEM_FIELDS[item.kind]).items():
            if name not in item.fields:
                item.fields |= {name}
                self.out.append(Aside(VENDOR, "metadata", f"{item.kind}.{name}", value, block=self.block_of(item)))

    def _carry(self, document: dict[str, Any], item: Item) -> None:
        """Keep a frame of an item that no other dialect understands. The item consists of all these frames."""
        item.carried = True
        block = self.block_of(item)
        found = document.get("item")
        found = found if isinstance(found, dict) else {}
        kind = aside_kind(item.kind, found)
        name = found.get("call_id") or found.get("id")
        if isinstance(name, str) and kind == "client_tool":  # the client must run the item and return a result
            self.waiting.add(name)
        elif isinstance(name, str) and may_be_clients(item.kind, found):
            self.unknown[name] = item.kind
        elif isinstance(name, str) and item.kind.endswith("_output"):  # the server itself ran the call before it
            self.unknown.pop(name, None)
            if item.kind == "shell_call_output":
                self.waiting.discard(name)
        aside = Aside(VENDOR, kind, str(document.get("type")), placeless(document), block=block)
        image = read_image(aside.raw.get("item"), aside) if aside.type == DONE else None
        self.out.append(image or aside)

    def carry_event(self, document: dict[str, Any], kind: AsideKind) -> None:
        """Keep an event that belongs to an item which no other dialect understands."""
        self.ensure_started()
        index = document.get("output_index")
        item = self.items_at.get(index) if type(index) is int else self._last
        block = self.block_of(item) if item is not None and item.carried else 0
        self.out.append(Aside(VENDOR, kind, str(document.get("type")), placeless(document), block=block))

    # -- tool calls ------------------------------------------------------------------------------------------------

    def _begin_call(self, item: Item, found: dict[str, Any]) -> None:
        item.call, self._calls = self._calls, self._calls + 1
        self._last_call = item
        kind: ToolKind = "custom" if item.kind == "custom_tool_call" else "function"
        delta = ToolCallDelta(item.call, *self._identity(item, found), kind=kind)
        delta.extras = others_of(found, ITEM_FIELDS[item.kind]) or None
        delta.signature, self.signature = self.signature, None
        delta.is_ended_by_wire = True
        self.out.append(delta)

    def _identity(self, item: Item, found: dict[str, Any]) -> tuple[str | None, str | None]:
        """Return the id and the name of a call if they are new; otherwise None or an empty string."""
        call_id, name = self.string(found.get("call_id")), self.string(found.get("name"))
        if (item.call_id and call_id == "" and "call_id" in found) or (item.name and name == "" and "name" in found):
            self.report.repair("identity_blank")  # the earlier id and name are kept
        new = call_id if call_id != item.call_id else "", name if name != item.name else ""
        item.call_id, item.name = call_id or item.call_id, name or item.name
        if new[0]:
            self._by_call_id[call_id] = item
        return new[0] or None, new[1] or None

    def _input(self, found: dict[str, Any], kind: str, *path: str | int) -> str:
        """Return the arguments in an item or event. An object's exact text is kept, so that 1.0 and 2^64 are not changed."""
        name = CALL_INPUTS[kind]
        value = found.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.report.repair("arguments_not_text")
        return self.text_at(*path, name)

    def call_delta(self, document: dict[str, Any], kind: str) -> None:
        named = self._open_item(document, kind)
        item = named or self._call(document, kind)
        if item is None:
            return
        if text := self.string(document.get("delta")):
            item.start = ""
            self.out.append(ToolCallDelta(item.call, arguments=text))
            if named is not None and document.keys() <= DELTA_FIELDS and "logprobs" not in document:
                self.last_delta = LastDelta(document, "output_index", None, _arguments, item.call)

    def call_done(self, document: dict[str, Any], kind: str) -> None:
        item = self._open_item(document, kind) or self._call(document, kind)
        if item is None:
            return
        if not item.name and (name := self.string(document.get("name"))):  # the start of the item had no name
            item.name = name
            self.out.append(ToolCallDelta(item.call, name=name))
        self._whole_input(item, self._input(document, kind))

    def _whole_input(self, item: Item, text: str) -> None:
        if text:
            item.start = ""
            item.has_input = True
            self.out.append(ToolCallWhole(item.call, text))

    def _open_item(self, document: dict[str, Any], kind: str) -> Item | None:
        """Return the open item of this kind if the event names it by index and id; otherwise None (see ``find``)."""
        index = document.get("output_index")
        item = self.items_at.get(index) if type(index) is int else None
        named = item is not None and item.kind == kind and item.open and document.get("item_id") == item.id
        return item if named else None

    def _call(self, document: dict[str, Any], kind: str) -> Item | None:
        """Return the call of an event that does not name an open one by both index and id.

        None: the provider itself has run the call, and the event was kept as an aside.
        """
        if self.customs is not None and (item := self.located(document)) is not None and item.kind == SERVED_CUSTOM:
            self.carry_event(document, "server_tool")
            return None
        item = self.find(document, kind)
        if item.kind not in CALL_INPUTS:
            self.report.repair("block_mismatch")
            item = self._last_call or self._begin(self.next_index, kind, "", {})
        return item

    def _whole_call(self, item: Item, found: dict[str, Any], path: tuple[str | int, ...]) -> None:
        call_id, name = self._identity(item, found)
        if call_id or name:  # the start of the call lacked these
            self.out.append(ToolCallDelta(item.call, call_id, name))
        self._whole_input(item, self._input(found, item.kind, *path))

    # -- repetitions -----------------------------------------------------------------------------------------------

    def open_items(self, kind: str, first: Item | None) -> Iterator[Item]:
        if first is not None and first.kind == kind:
            yield first
        for item in islice(self._open, OPEN_LOOKED_AT):
            if item.kind == kind and item is not first:
                yield item

    def _copies(self, found: dict[str, Any], *, again: bool = False) -> list[Copy]:
        """Return the parts of a message or reasoning item. ``again``: only the texts of known parts are needed."""
        copies = []
        of_content = "reasoning_text" if found.get("type") == "reasoning" else "output_text"
        for name, kind in ("summary", "summary_text"), ("content", of_content):
            values = found.get(name)
            if values is None or values == []:  # the start of an item has no parts
                continue
            for place, value in enumerate(values if type(values) is list else self.contents(values)):
                part = value if type(value) is dict else self.part_of(value, kind)
                type_name = part.get("type")
                speech = SPEECHES.get(type_name if type(type_name) is str else self.string(type_name))
                text = "" if speech is None else part.get(speech.name)
                if speech is not None or not again:
                    text = text if type(text) is str else self.string(text)
                    copies.append(Copy(speech, place, text, {} if again else part))
        return copies

    def whole_parts(self, item: Item, copies: list[Copy]) -> bool:
        """Emit what the deltas of a finished item lacked. Return whether all parts are where their deltas were (usual)."""
        used: set[int] = set()
        left: list[Copy] = []
        for copy in copies:
            speech, place, text, found = copy
            part = None if speech is None else item.parts.get((speech.place, place))
            if speech is None and not left:
                self._carry_copy(item, copy)
            elif speech and part and self.goes_on(part, speech, text, found.get("logprobs")):
                used.add(part.number)
                if found:
                    self.emit_others(part, found)
            else:
                left.append(copy)
        if left:
            self._misplaced(item, left, used)
        return not left

    def _carry_copy(self, item: Item, copy: Copy) -> None:
        if not item.carried:
            name = f"content.{self.string(copy.found.get('type'))}"
            self.out.append(Aside(VENDOR, "unknown_event", name, copy.found, block=self.block_of(item)))

    def _misplaced(self, item: Item, copies: list[Copy], used: set[int]) -> None:
        """Read parts of a finished item that differ from the deltas at their position: new parts, or parts that moved."""
        free = [part for part in item.parts.values() if part.number not in used and self.has_text(part)]
        texts = [copy for copy in copies if copy.text]
        if not free and texts:
            for other in list(self.open_items(item.kind, None)):
                if other is not item and any(self.agrees(part, texts[0].text) for part in other.parts.values()):
                    self.report.repair("whole_misplaced")
                    self.whole_parts(other, copies)
                    return
        if free and self.has_all_text(free, texts):
            self.report.repair("whole_misplaced")
            return
        parts = paired(
            copies, free,
            lambda copy, part: copy.speech is part.speech and self.agrees(part, copy.text),
            lambda copy, part: item.kind == "reasoning" and copy.speech is not None and self.agrees(part, copy.text),
            lambda copy, part: item.parts.get(copy.key) is part,
            lambda copy, part: copy.speech is part.speech and bool(copy.text),
        )  # fmt: skip
        for copy, found_part in zip(copies, parts, strict=True):
            if copy.speech is None:
                self._carry_copy(item, copy)
                continue
            if found_part is not None and self.agrees(found_part, copy.text):
                self.report.repair("whole_misplaced")
            part = found_part or self.part_at(item, copy.speech, copy.place)
            if found_part is None and self.has_text(part):  # the place is taken: a new part after all others
                part = self.part_at(item, copy.speech, 1 + max(place for _, place in item.parts))
            self.whole_text(part, copy.speech, copy.text, copy.found.get("logprobs"))
            self.emit_others(part, copy.found)

    def has_all_text(self, parts: Sequence[ItemPart], copies: Sequence[Copy]) -> bool:
        """Return whether the copies and the parts have the same text in total, although it is divided differently."""
        rest: str | None = "".join([copy.text for copy in copies])
        for part in parts:
            self.settle(part)
            text = self.texts.begun(part.number)
            rest = text.rest_of(rest) if text is not None and rest is not None else rest
        return rest == ""

    # -- the terminal response -------------------------------------------------------------------------------------

    def whole_output(self, output: list[Any], *, ended: bool) -> None:
        """Read the items of a terminal response: emit items that had no events, missing ends, and missing contents."""
        items: list[Item | None] = []
        free: list[Item] = []
        entries, left = [], []
        for place, value in enumerate(output):
            found = value if type(value) is dict else self.fields(value)
            kind = self.kind_of(found)
            if self._open or type(kind) is not str or kind not in OWN_ITEMS:
                self._carry_entry(place, found)
                kind = self.string(kind)
            if kind in OWN_ITEMS:
                entries.append((place, found))
                items.append(self._at(place, found))  # the usual case: the item at this place
        if None in items or len(self.began) > LOOKED_AT:
            known = [item for item in self.began if item.kind in OWN_ITEMS]
            items = paired(
                entries, known,
                lambda entry, item: self._at(*entry) is item,
                lambda entry, item: _is_named(item, entry[1]),
            )  # fmt: skip
            by_id = set(map(id, items))
            free = [item for item in known if id(item) not in by_id]
        for (place, found), item in zip(entries, items, strict=True):
            if item is None:
                left.append((place, found))
            else:
                self._whole_entry(item, found, place, ended=ended)
        if left:
            self._left(left, free, ended=ended)
        for item in list(self._open) if self._open and ended else ():
            if item.kind in OWN_ITEMS:
                self.report.repair("block_unclosed")
            self._end(item, ended=False)
        self.end_lacking()

    def _left(self, left: list[tuple[int, dict[str, Any]]], free: list[Item], *, ended: bool) -> None:
        """Match entries of the output with items. Neither the places nor the ids of these entries and items agree."""
        for kind in ("message", "reasoning") if free else ():
            if self._divided(kind, left, free):
                left = [entry for entry in left if entry[1]["type"] != kind]
        items = paired(
            left, free,
            lambda entry, item: self._repeats(item, entry[1]),
            lambda entry, item: self.items_at.get(entry[0]) is item and item.kind == entry[1]["type"],
            lambda entry, item: item.kind == entry[1]["type"] and item.name == (entry[1].get("name") or ""),
            lambda entry, item: item.kind == entry[1]["type"] and item in self._lacking and not item.name,
        )  # fmt: skip
        for (place, found), item in zip(left, items, strict=True):
            self._whole_entry(item, found, place, ended=ended)

    def _at(self, place: int, found: dict[str, Any]) -> Item | None:
        """Return the item at this place, if the entry of the output at the same place has the item's id."""
        item = self.items_at.get(place)
        return item if item is not None and _is_named(item, found) else None

    def _whole_entry(self, item: Item | None, found: dict[str, Any], place: int, *, ended: bool) -> None:
        path = ("response", "output", place)
        if item is None:
            self.report.repair("block_unopened")
            item = self._begin(place, self.string(found["type"]), self.string(found.get("id")), found)
            self._whole_item(item, found, path)
        elif not ended:
            return
        elif item.open:
            self.report.repair("block_unclosed")
            self._whole_item(item, found, path)
        elif item.kind not in CALL_INPUTS:
            if self._last_done is None or self._last_done[0] is not item or self._last_done[1] != found:
                self.whole_parts(item, self._copies(found, again=True))
        elif item in self._lacking:
            known = item.call_id, item.name, item.has_input
            self._whole_call(item, found, path)
            if (item.call_id, item.name, item.has_input) != known:
                self.report.repair("block_unclosed")
        elif text := self._input(found, item.kind, *path):
            self.out.append(ToolCallWhole(item.call, text))

    def _carry_entry(self, place: int, found: dict[str, Any]) -> None:
        """Keep an entry of the output that no other dialect understands, unless events already sent the whole item."""
        kind, item_id = self.string(self.kind_of(found)), found.get("id")
        item = self._by_id.get(item_id) if isinstance(item_id, str) and item_id else self.items_at.get(place)
        if item is not None and item.kind == kind and item.carried and item.open:
            self.report.repair("block_unclosed")
            self._carry({"type": DONE, "item": found}, item)
            self._end(item)
        elif kind.strip() and kind not in OWN_ITEMS and (item is None or item.kind != kind):
            self.report.repair("block_unopened")
            self.whole_carried(self._begin(place, kind, self.string(item_id), found), found)

    def whole_carried(self, item: Item, found: dict[str, Any]) -> None:
        """Keep a whole item that no other dialect understands, as the two frames that a stream would contain."""
        self._carry_start(item, found)
        self._carry({"type": DONE, "item": found}, item)
        self._end(item)

    def _carry_start(self, item: Item, found: dict[str, Any]) -> None:
        """Keep the start that an item lacks, made from the whole item: encoders and clients need both frames."""
        start = {**found, "status": "in_progress"} if "status" in found else found
        self._carry({"type": ADDED, "item": start}, item)

    def _divided(self, kind: str, entries: list[tuple[int, dict[str, Any]]], items: list[Item]) -> bool:
        """Return whether entries and items of a kind have the same text in total, although it is divided differently."""
        texts = [copy for _, found in entries if found["type"] == kind for copy in self._copies(found) if copy.text]
        parts = [part for item in items if item.kind == kind for part in item.parts.values() if self.has_text(part)]
        return bool(texts) and len(texts) != len(parts) > 0 and self.has_all_text(parts, texts)

    def _repeats(self, item: Item, found: dict[str, Any]) -> bool:
        """Return whether an entry of the output has the same text as an item with another id."""
        if item.kind != found.get("type") or item.kind in CALL_INPUTS:
            return False
        texts = [copy for copy in self._copies(found) if copy.text]
        parts = [part for part in item.parts.values() if self.has_text(part)]
        return bool(texts and parts) and self.has_all_text(parts, texts)


def _arguments(text: str, _choice: int, call: int) -> ToolCallDelta:
    return ToolCallDelta(call, None, None, text)


def _is_named(item: Item, found: dict[str, Any]) -> bool:
    """Return whether an entry of the output has the id of an item, or of the item's call."""
    if item.kind != found["type"]:
        return False
    return bool(item.id and item.id == found.get("id")) or bool(item.call_id and item.call_id == found.get("call_id"))


def aside_kind(kind: str, item: Mapping[str, Any]) -> AsideKind:
    """Return the kind of aside for an item: run by the client, run by the server, or unknown."""
    if is_clients(kind, item):
        return "client_tool"
    is_servers = kind in SERVERS or kind.endswith(("_call", "_call_output", "_list_tools", "_approval_request"))
    return "server_tool" if is_servers else "unknown_event"
