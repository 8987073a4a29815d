"""Build output items from the assistant's parts, for whole responses and for the history in requests.

The label of an aside's block says where the aside belongs: a citation to a text, a member to an item, a frame to an item that
no other dialect understands. As in a stream, an aside may precede that text or item.

Source: dialects.md §2.1, §2.2, §2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from streamkit.conversation.messages import Extras, Part, Reasoning, ToolCall
from streamkit.dialects.members.values import Growing
from streamkit.dialects.openai_responses.wire import CALL_INPUTS, CONTENT, ITEM
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE
from streamkit.events import Aside, QualifiedName
from streamkit.report import StreamReport

Item: TypeAlias = dict[str, Any]
#: A key for items: the item's type, and the label of one of its blocks.
Label: TypeAlias = tuple[str, int]


class OutputList:
    """The items of one turn, in the order in which they began."""

    def __init__(self, report: StreamReport, message: Callable[[Extras], Item]) -> None:
        self.report = report
        self.items: list[Item] = []
        self._new_message = message
        self._message: tuple[Item, Any] | None = None  # the message that may continue, and its id if known
        self._texts: dict[int, Item] = {}
        self._owners: dict[Label, Item] = {}
        self._hosted: dict[int, Item] = {}
        self._unended: set[int] = set()
        self._fields: dict[Label, dict[str, Any]] = {}  # members that preceded their item
        self._beside: dict[int, list[Aside]] = {}  # asides that preceded their text
        self._growing = Growing()

    def add(self, item: Item, labels: Iterable[int] = ()) -> None:
        """Add a whole item. The labels are those of the blocks from which it was made."""
        self._message = None
        self.items.append(item)
        for label in labels:
            self._own((item["type"], label), item)

    def add_part(self, part: Item, label: int, of_item: Extras | None, *, apart: bool) -> None:
        """Add a part of a message.

        It joins the message before it if ``of_item`` has the id of that message. If neither has an id, it also joins, unless
        parts without an id must be ``apart``.
        """
        named = (of_item or {}).get("id")
        fresh = (apart and named is None) or ("message", label) in self._fields
        if self._message is None or fresh or self._message[1] != named:
            item = self._new_message(of_item or {})
            self.add(item)
            self._message = item, named
        self._message[0]["content"].append(part)
        self._own(("message", label), self._message[0])
        if part.get("type") == "output_text":
            self._texts[label] = part
            for aside in self._beside.pop(label, ()):
                self._put(part, aside)

    def aside(self, part: Aside) -> None:
        """Add the content of an aside of this dialect. Count it as lost if the text or item it belongs to is missing."""
        kind, _, name = part.type.partition(".")
        if part.type.startswith(ITEM):
            self.add(part.raw)
        elif part.type.startswith(CONTENT):
            named = self._message[1] if self._message is not None else None
            self.add_part(part.raw, part.block, None if named is None else {"id": named}, apart=False)
        elif part.kind in {"citation", "logprobs"}:
            text = self._texts.get(part.block)
            if text is None:
                self._beside.setdefault(part.block, []).append(part)
            else:
                self._put(text, part)
        elif part.kind == "metadata" and kind in {"message", "reasoning"}:
            owner = self._owners.get((kind, part.block))
            fields = self._fields.setdefault((kind, part.block), {}) if owner is None else owner
            fields[name] = part.raw
        elif part.type in {ADDED, DONE} and isinstance(part.raw, dict) and _is_item(part.raw.get("item")):
            self._frame(part)
        elif part.kind != "server_tool" or part.block not in self._hosted:
            self.report.lose(part.kind, what=part.type)

    def finish(self) -> list[Item]:
        for label in self._unended:
            self._hosted[label]["status"] = "incomplete"
        for fields in self._fields.values():
            for name in fields:
                self.report.lose("metadata", what=name)
        for asides in self._beside.values():
            for aside in asides:
                self.report.lose(aside.kind, what=aside.type)
        return self.items

    def _own(self, label: Label, item: Item) -> None:
        self._owners[label] = item
        item |= self._fields.pop(label, {})

    def _put(self, text: Item, aside: Aside) -> None:
        name, values = ("annotations", [aside.raw]) if aside.kind == "citation" else ("logprobs", aside.raw)
        self._growing.extend(text, name, values)

    def _frame(self, part: Aside) -> None:
        """Add the start or the end of an item that no other dialect understands."""
        item, label, begins = dict(part.raw["item"]), part.block, part.type == ADDED
        (self._unended.add if begins else self._unended.discard)(label)
        if begins or label not in self._hosted:
            self._hosted[label] = item
            self.add(item)
        else:
            start = self._hosted[label]
            start.clear()
            start.update(item)


def _is_item(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def of_item(part: Part) -> Mapping[str, Any] | None:
    """Return the members of the item to which a part belongs. Only the item's first part has all; others have the id."""
    extras = None if isinstance(part, Aside) else part.extras
    return extras.get("item") if extras else None


def thoughts(parts: Iterable[Part]) -> Iterator[Part | list[Reasoning]]:
    """Yield the parts. Reasoning parts of one item are yielded as a list: an item ends at a signature or another id."""
    run: list[Reasoning] = []
    for part in parts:
        joins = isinstance(part, Reasoning) and run and run[-1].signature is None and _id_of(part) == _id_of(run[-1])
        if run and not joins:
            yield run
            run = []
        if isinstance(part, Reasoning):
            run.append(part)
        else:
            yield part
    if run:
        yield run


def _id_of(part: Part) -> Any:
    return (of_item(part) or {}).get("id")


def reasoning_item(run: list[Reasoning]) -> Item:
    """Return the reasoning item for these texts. The member ``summary`` is required, even if it is empty."""
    lists: Item = {"summary": [], "content": []}
    for part in run:
        if part.text:
            name, kind = ("summary", "summary_text") if part.kind == "summary" else ("content", "reasoning_text")
            extras = {key: value for key, value in (part.extras or {}).items() if key != "item"}
            lists[name].append({"type": kind, "text": part.text, **extras})
    if not lists["content"]:
        del lists["content"]
    return {"type": "reasoning", **lists}


def called(name: str, qualified: QualifiedName | None) -> Item:
    """Return the members that name the called tool: its name, or its namespace and the name in it."""
    return {"name": name} if qualified is None else {"name": qualified.name, "namespace": qualified.namespace}


def call_item(call: ToolCall, *, cut: bool = False) -> Item:
    """Return the item for a call. Empty arguments become {}, since "" is not JSON (quirks.md 42), except in a ``cut`` call."""
    kind = "custom_tool_call" if call.kind == "custom" else "function_call"
    text = call.arguments if cut or call.kind == "custom" or call.arguments.strip() else "{}"
    return {"type": kind, "call_id": call.id, **called(call.name, call.qualified), CALL_INPUTS[kind]: text}
