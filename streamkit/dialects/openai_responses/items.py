"""What output items say: where they begin and end, tool calls, and items that only this vendor understands.

Items are found by index, or by id where the index says something else; they are labelled by their order, since an index may
be used twice. Only ``output_item.done`` ends a call. An item that no event brought is read from the terminal response.

Source: dialects.md §2.1, §2.2, §2.4, quirks.md 80, 131, 132.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.decoding import said
from streamkit.dialects.openai_responses.texts import Item, TextReader, placeless
from streamkit.dialects.openai_responses.wire import CALL_INPUTS, OWN_ITEMS, VENDOR
from streamkit.errors import TooManyBlocks
from streamkit.events import Aside, AsideKind, ToolCallDelta, ToolCallEnded, ToolCallWhole, ToolKind
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.value_text import value_text

#: What is read of each own item; the rest is the vendor's.
ITEM_FIELDS: Mapping[str, frozenset[str]] = {
    "message": frozenset({"id", "type", "status", "role", "content"}),
    "reasoning": frozenset({"id", "type", "status", "summary", "content", "encrypted_content"}),
    "function_call": frozenset({"id", "type", "status", "call_id", "name", "arguments"}),
    "custom_tool_call": frozenset({"id", "type", "status", "call_id", "name", "input"}),
}
SERVER_ITEMS = ("_call", "_call_output", "_list_tools", "_approval_request")


class ItemReader(TextReader):
    """The part of the decoder that reads output items."""

    dialect = "openai-responses"
    vendor = VENDOR

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._open: dict[Item, None] = {}  # in the order they began
        self._begun_items = 0
        self._by_id: dict[str, Item] = {}
        self._by_call_id: dict[str, Item] = {}
        self._kinds: set[str] = set()  # of the items that came
        self._last: Item | None = None
        self._last_call: Item | None = None
        self._calls = 0

    def ensure_started(self) -> None:
        """Say that the response started if it did not."""
        raise NotImplementedError

    def close(self) -> None:
        for item in self._open:  # the input ended behind a start that brought all arguments
            if item.start:
                self.out.append(ToolCallWhole(item.call, item.start))

    # -- where items begin -----------------------------------------------------------------------------------------

    def item_added(self, document: dict[str, Any]) -> None:
        if document.get("item") is None:  # some servers send an empty start: the first delta opens the item
            return
        start = self.fields(document["item"])
        kind, item_id = self.string(start.get("type")), self.string(start.get("id"))
        index = self.index(document.get("output_index"))
        if index is None:
            self.report.repair("index_missing")
            index = max(self.items_at, default=-1) + 1
        before = self.items_at.get(index)
        if before is not None and before.open and before.id == item_id:
            self.report.repair("block_reopened")
            if item_id or kind == before.kind:
                return
            self._end(before, ended=False)
        elif before is not None:  # an open one is still found by its id
            self.report.repair("index_reused")
        item = self._begin(index, kind, item_id, start)
        if kind in CALL_INPUTS:
            item.start = self._input(start, kind, "item")
        elif kind in OWN_ITEMS:
            self._unknown(item, start)
        elif kind.strip():
            self._carry(document, item)
        else:
            self.odd(document)

    def _begin(self, index: int, kind: str, item_id: str, start: dict[str, Any]) -> Item:
        self.ensure_started()
        if self._begun_items >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._begun_items += 1
        item = Item(kind, item_id)
        self._last = self.items_at[index] = item
        self._open[item] = None
        self._kinds.add(kind)
        if item_id:
            self._by_id[item_id] = item
        if kind in CALL_INPUTS:
            self._begin_call(item, start)
        return item

    def find(self, document: dict[str, Any], kind: str) -> Item:
        index, item_id = self.index(document.get("output_index")), document.get("item_id")
        named = self._named(item_id) or self._named(document.get("call_id"))
        item = self._last if index is None else self.items_at.get(index)
        if index is None:
            self.report.repair("index_missing")
            item = named or item
        elif named is not None and named is not item and named.open:
            self.report.repair("index_reused")
            item = named
        if item is None or (item.kind != kind and not item.open):
            self.report.repair("block_unopened")
            place = max(self.items_at, default=-1) + 1 if index is None else index
            item = self._begin(place, kind, item_id if isinstance(item_id, str) else "", {})
        return item

    def _named(self, name: Any) -> Item | None:
        """The item of this id; some servers give that of its call."""
        return self._by_id.get(name) or self._by_call_id.get(name) if isinstance(name, str) else None

    # -- where they end --------------------------------------------------------------------------------------------

    def item_done(self, document: dict[str, Any]) -> None:
        found = self.fields(document.get("item"))
        kind = self.string(found.get("type"))
        item = self.find({"item_id": found.get("id"), **document}, kind)
        if not item.open:
            self.report.repair("block_unopened")
        elif item.kind not in OWN_ITEMS:
            if kind != item.kind:
                self.report.repair("block_mismatch")
            self._carry(document, item)
            self._end(item)
        elif item.kind == kind:
            self._whole_item(item, found, ("item",))
        else:
            self.report.repair("block_mismatch")
            self._end(item, ended=False)

    def _whole_item(self, item: Item, found: dict[str, Any], path: tuple[str | int, ...]) -> None:
        """An item as it is when it is done: what of it was not said yet, and its end."""
        if item.kind in CALL_INPUTS:
            self._whole_call(item, found, path)
        else:
            for name in ("summary", "content"):
                for place, part in enumerate(self.items(found.get(name))):
                    self.whole_part(item, place, self.fields(part))
            self._unknown(item, found)
        if item.kind == "reasoning" and (blob := self.string(found.get("encrypted_content"))):
            self.opaque(blob, item)
        status = found.get("status")
        self._end(item, ended=status in (None, "completed"), incomplete=status == "incomplete")

    def _end(self, item: Item, *, ended: bool = True, incomplete: bool = False) -> None:
        """Nothing more comes for an item. The wire has not ended the call of one that says it is incomplete."""
        item.open = False
        self._open.pop(item, None)
        if item.kind in CALL_INPUTS:
            if item.start:
                self.out.append(ToolCallWhole(item.call, item.start))
            if ended or incomplete:
                self.out.append(ToolCallEnded(item.call, whole=not incomplete))

    def _unknown(self, item: Item, found: dict[str, Any]) -> None:
        """Fields of an item that are the vendor's; those that its start had are not said again."""
        known = ITEM_FIELDS[item.kind] | item.fields
        for name, value in found.items():
            if name not in known and said(value):
                item.fields.add(name)
                self.out.append(Aside(VENDOR, "metadata", f"{item.kind}.{name}", value, block=self.block_of(item)))

    def _carry(self, document: dict[str, Any], item: Item) -> None:
        """A frame of an item that only this vendor understands; the frames together are the item."""
        item.carried = True
        kind: AsideKind = "server_tool" if item.kind.endswith(SERVER_ITEMS) else "unknown_event"
        block = self.block_of(item)
        self.out.append(Aside(VENDOR, kind, str(document.get("type")), placeless(document), block=block))

    def carry_event(self, document: dict[str, Any], kind: AsideKind) -> None:
        """An event inside such an item."""
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
        known = ITEM_FIELDS[item.kind]
        delta.extras = {name: value for name, value in found.items() if name not in known and said(value)} or None
        delta.signature, self.signature = self.signature, None
        self.out.append(delta)

    def _identity(self, item: Item, found: dict[str, Any]) -> tuple[str | None, str | None]:
        """What of a call's id and name is new."""
        call_id, name = self.string(found.get("call_id")), self.string(found.get("name"))
        new = call_id if call_id != item.call_id else "", name if name != item.name else ""
        item.call_id, item.name = call_id or item.call_id, name or item.name
        if new[0]:
            self._by_call_id[call_id] = item
        return new[0] or None, new[1] or None

    def _input(self, found: dict[str, Any], kind: str, *path: str | int) -> str:
        """The arguments in an item or an event; an object's own text, so that 1.0 and 2^64 stay what they were."""
        name = CALL_INPUTS[kind]
        value = found.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.report.repair("arguments_not_text")
        return value_text(self.frame.data, *path, name)

    def call_delta(self, document: dict[str, Any], kind: str) -> None:
        item = self._call(document, kind)
        if text := self.string(document.get("delta")):
            item.start = ""
            self.out.append(ToolCallDelta(item.call, arguments=text))

    def call_done(self, document: dict[str, Any], kind: str) -> None:
        item = self._call(document, kind)
        if text := self._input(document, kind):
            item.start = ""
            self.out.append(ToolCallWhole(item.call, text))

    def _call(self, document: dict[str, Any], kind: str) -> Item:
        """The call that an event names."""
        index = document.get("output_index")
        item = self.items_at.get(index) if type(index) is int else None
        if item is not None and item.kind == kind and item.open and document.get("item_id") == item.id:
            return item  # nearly always
        item = self.find(document, kind)
        if item.kind not in CALL_INPUTS:
            self.report.repair("block_mismatch")
            item = self._last_call or self._begin(max(self.items_at) + 1, kind, "", {})
        return item

    def _whole_call(self, item: Item, found: dict[str, Any], path: tuple[str | int, ...]) -> None:
        call_id, name = self._identity(item, found)
        if call_id or name:  # the start was missing, or said less
            self.out.append(ToolCallDelta(item.call, call_id, name))
        if text := self._input(found, item.kind, *path):
            item.start = ""
            self.out.append(ToolCallWhole(item.call, text))

    # -- the terminal response -------------------------------------------------------------------------------------

    def whole_output(self, output: list[Any], *, ended: bool) -> None:
        """The items of a terminal response: those that no event brought, and those that no event ended."""
        came = frozenset(self._kinds)
        for place, value in enumerate(output):
            found = self.fields(value)
            kind = self.string(found.get("type"))
            item = self._seen(place, found, kind)
            if item is None and kind in OWN_ITEMS and (kind in CALL_INPUTS or kind not in came):
                self.report.repair("block_unopened")
                item = self._begin(place, kind, self.string(found.get("id")), found)
                self._whole_item(item, found, ("response", "output", place))
            elif item is not None and item.open and item.kind == kind and kind in OWN_ITEMS and ended:
                self.report.repair("block_unclosed")
                self._whole_item(item, found, ("response", "output", place))
        for item in list(self._open) if ended else ():
            if item.kind in OWN_ITEMS:
                self.report.repair("block_unclosed")
            self._end(item, ended=False)

    def _seen(self, place: int, found: dict[str, Any], kind: str) -> Item | None:
        """The item that an entry of the output repeats."""
        item_id, call_id = found.get("id"), found.get("call_id")
        if isinstance(item_id, str) and item_id in self._by_id:
            return self._by_id[item_id]
        if isinstance(call_id, str) and call_id in self._by_call_id:
            return self._by_call_id[call_id]
        item = self.items_at.get(place)
        return item if item is not None and item.kind == kind else None
