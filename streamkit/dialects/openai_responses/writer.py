"""Write output items as clients need them: one open at a time, each complete, and all of them again at the end.

The blocks of ``BlockQueue`` are parts here. Adjacent text parts are one message, and reasoning parts up to a signature are
one item; any other block is an item. An item is closed when the next one opens, a call as soon as it ended. Texts are kept as
the JSON that was written, because four events and the terminal response repeat them.

The first byte of a delta shows its type: a string is text, an object is an annotation or a frame of an item that only this
vendor understands, and a list has the log probabilities of the next text.

Source: dialects.md §2.1, §2.2, §2.4, quirks.md 131.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeAlias

import orjson

from streamkit.dialects.openai_responses import wire
from streamkit.dialects.streams.block_encoder import BlockQueue, Key, QueuedBlock
from streamkit.dialects.streams.event_encoder import EventEncoder
from streamkit.errors import HeldTooLong
from streamkit.tool_calls.object_scanner import LazyScanner

dumps = orjson.dumps


def event_of(name: bytes, members: bytes) -> bytes:
    """Return the template of an event. Its number and ``members`` are filled in later; ``members`` is also a template."""
    return b'event: %b\ndata: {"type":"%b","sequence_number":%%d%b}\n\n' % (name, name, members)


ITEM_ADDED: Final = event_of(b"response.output_item.added", b',"output_index":%d,"item":%b')
ITEM_DONE: Final = event_of(b"response.output_item.done", b',"output_index":%d,"item":%b')
ANNOTATION: Final = event_of(b"response.output_text.annotation.added", b',%b,"annotation_index":%d,"annotation":%b')
#: A template for templates of deltas: it is first filled with the place of a part, and then with the text.
DELTA: Final = b'event: %b.delta\ndata: {"type":"%b.delta",%%b,"delta":%%%%b%%b,"sequence_number":%%%%d}\n\n'


class Form:
    """The form of a kind of block, as templates, so that one operation writes an event.

    ``events`` is the name of its events without the last word, and ``member`` has its whole text. ``part`` is the type of the
    part; if it is empty, the text belongs to the item itself. ``place`` is the member that numbers the parts.
    """

    def __init__(
        self, prefix: str, item: str, events: str = "", member: str = "", part: str = "", place: str = ""
    ) -> None:
        self.item = item.encode()  #: the type of the item
        self.prefix = prefix  #: the prefix of the item's id
        self.member = member.encode()
        self.part = part.encode()
        self.head = b',"role":"assistant"' if item == "message" else b""
        self.in_summary = place == "summary_index"
        self.suffix = b',"logprobs":[]' if part == "output_text" else b""  #: the members after each text
        empty = {"message": b',"content":[]', "reasoning": b',"summary":[]'}.get(item, b',"%b":""' % self.member)
        start = b'{"id":%%b,"type":"%b","status":"in_progress"%%b%%b%b}' % (self.item, empty)
        self.added = ITEM_ADDED.replace(b"%b", start)
        self.address = b'"item_id":%%b,"output_index":%%d,"%b":%%d' % place.encode()
        empty_part = (self.part, self.member, self.suffix and b',"annotations":[]' + self.suffix)
        part_event = b"response.reasoning_summary_part" if self.in_summary else b"response.content_part"
        self.part_added = event_of(part_event + b".added", b',%b,"part":' + b'{"type":"%b","%b":""%b}' % empty_part)
        self.delta = DELTA % (events.encode(), events.encode())
        self.done = event_of(events.encode() + b".done", b',%%b,"%b":"%%b"%%b' % self.member) if events else b""
        self.stop = self.done + event_of(part_event + b".done", b',%b,"part":%b')


def _of_part(prefix: str, speech: wire.Speech) -> Form:
    return Form(prefix, speech.item, speech.events, speech.name, speech.type, speech.place)


TEXT: Final = _of_part("msg_", wire.TEXT)
FORMS: Final[Mapping[str, Form]] = {
    "text": TEXT,
    "refusal": _of_part("msg_", wire.REFUSAL),
    "raw": _of_part("rs_", wire.THOUGHT),
    "summary": _of_part("rs_", wire.SUMMARY),
    "thinking": Form("rs_", "reasoning"),  # opaque, without any text
    "call": Form("fc_", "function_call", "response.function_call_arguments", "arguments"),
    "custom": Form("ctc_", "custom_tool_call", "response.custom_tool_call_input", "input"),
    "hosted": Form("", ""),
}


Label: TypeAlias = tuple[bytes, int]  #: the type of an item, and the label of one of its blocks


class FreeText(LazyScanner):
    """Stands in for a JSON scanner in calls of custom tools, whose input is free text without a recognisable end."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0)

    def append(self, fragment: str) -> None:
        pass

    def append_to_end(self, _text: str) -> None:
        pass


class Item:
    """What was written of an output item."""

    id = b""
    head = b""  #: the role of a message, or the identity of a call
    fields: Mapping[str, Any] = {}  #: unknown members of the vendor
    own = b""  #: the member of a call with all arguments, as JSON
    opaque = b""  #: ``encrypted_content``

    def __init__(self, kind: bytes, index: int) -> None:
        self.type = kind
        self.index = index
        self.content: list[bytes] = []  #: finished parts
        self.summary: list[bytes] = []
        self.labels: list[Label] = []  #: labels of its parts


def _more(fields: Mapping[str, Any]) -> bytes:
    """Return unknown members of an item as JSON text to append to the other members."""
    return b"," + dumps(fields)[1:-1] if fields else b""


class ItemWriter(BlockQueue):
    """Writes the numbered events of items."""

    starts: ClassVar = dict.fromkeys(FORMS, b"")
    number = 0  #: number of the next event
    incomplete: frozenset[Key] = frozenset()  #: calls that ended before their arguments were complete
    _item: Item | None = None
    # About the open part:
    _form = TEXT
    _address = b""
    _delta = b""  # a template of the part's deltas
    _next_logprobs = b""
    _text: bytearray  # the part's text so far: the JSON string as written, without its quotes
    _annotations: list[bytes]
    _logprobs: list[bytes]

    def __init__(self, encoder: EventEncoder) -> None:
        super().__init__(encoder)
        self.output: list[bytes] = []  #: finished items
        self.fields: dict[Label, dict[str, Any]] = {}  #: unknown members of items
        self._make_id = encoder.encoding.make_id

    def arguments_delta(self, fragment: str) -> bytes:
        return dumps(fragment)

    def write_fragment(self, block: QueuedBlock, fragment: str) -> None:  # noqa: ARG002 - it is the open one
        self.write_text(dumps(fragment))

    def flush(self, *, drop: set[Key]) -> None:
        self._held_chars = 0  # the stream failed, so no more text can exceed the limit
        super().flush(drop=drop)

    def numbered(self, template: bytes, *members: bytes | int) -> None:
        self.write(template % (self.number, *members))
        self.number += 1

    def write_start(self, block: QueuedBlock) -> None:
        """Open the part for a block. Open an item first if the part belongs to a new item."""
        kind, number = block.key
        form = self._form = FORMS[block.start.decode() if kind == "thinking" and block.start else kind]
        item, label = self._item, (form.item, number)
        if item is None or not form.part or item.type != form.item or item.opaque or label in self.fields:
            self.close_item()
            item = self._open_item(block, form, label)
        block.index = item.index
        item.labels.append(label)
        self._text, self._annotations, self._logprobs, self._next_logprobs = bytearray(), [], [], b""
        if form.part:
            address = form.address % (item.id, item.index, len(item.summary if form.in_summary else item.content))
            self.numbered(form.part_added, address)
        else:
            address = b'"item_id":%b,"output_index":%d' % (item.id, item.index)
        self._address = address
        self._delta = form.delta % (address.replace(b"%", b"%%"), form.suffix)

    def write_text(self, delta: bytes) -> None:
        """Write more text of the open part. Most deltas of a stream are written here."""
        held = self._held_chars = self._held_chars + len(delta)  # the terminal event repeats the text, so it is kept
        if held > self.limits.held_chars:
            raise HeldTooLong(self.limits.held_chars)
        self._text += delta[1:-1]
        number = self.number
        self.number = number + 1
        self.write(self._delta % (delta, number))

    def write_delta(self, block: QueuedBlock, delta: bytes) -> None:
        """Write a delta. The first byte shows what it is (see the top of this file)."""
        first = delta[0]
        if first == ord('"') and not self._next_logprobs:
            self.write_text(delta)
        elif first == ord('"'):
            plain, suffix = self._delta, b',"logprobs":' + self._next_logprobs
            self._delta = self._form.delta % (self._address.replace(b"%", b"%%"), suffix.replace(b"%", b"%%"))
            self.write_text(delta)
            self._delta, self._next_logprobs = plain, b""
        elif block.key[0] == "hosted":
            self._hosted(block, delta)
        elif first == ord("["):
            self.hold(len(delta))
            self._logprobs.append(delta[1:-1])
            self._next_logprobs, self.goes_on = delta, None
        else:
            self.hold(len(delta))
            self.numbered(ANNOTATION, self._address, len(self._annotations), delta)
            self._annotations.append(delta)

    def write_stop(self, block: QueuedBlock) -> None:
        item, form = self._item, self._form
        if item is None:
            return
        if self._next_logprobs:  # log probabilities that no text followed
            self.write_delta(block, b'""')
        text, number = bytes(self._text), self.number
        if form.part:
            part = self._part(text)
            (item.summary if form.in_summary else item.content).append(part)
            tail = b',"logprobs":[%b]' % b",".join(self._logprobs) if form is TEXT else b""
            self.number = number + 2
            self.write(form.stop % (number, self._address, text, tail, number + 1, self._address, part))
            if not block.signature:  # more reasoning parts may belong to the same item
                return
        elif form.member:  # a client may run a completed call, so a truncated one is never completed
            item.own = b',"%b":"%b"' % (form.member, text)
            whole = block.may_close and block.key not in self.incomplete
            if whole:
                self.numbered(form.done, self._address, text, b"")
            self.close_item(whole=whole)
            return
        if block.signature:
            item.opaque = b',"encrypted_content":%b' % dumps(block.whole_signature())
        if block.key[0] == "hosted" and len(self.output) < self._next_index:  # the source did not end this item
            start = {**orjson.loads(block.start), "status": "incomplete"}
            self._hosted(block, dumps({"type": "response.output_item.done", "item": start}))
        self.close_item()

    def _part(self, text: bytes) -> bytes:
        """Return the open part as JSON. ``text`` is its JSON string without the quotes."""
        form = self._form
        if form is not TEXT:
            return b'{"type":"%b","%b":"%b"}' % (form.part, form.member, text)
        annotations, logprobs = b",".join(self._annotations), b",".join(self._logprobs)
        return b'{"type":"output_text","text":"%b","annotations":[%b],"logprobs":[%b]}' % (text, annotations, logprobs)

    def _open_item(self, block: QueuedBlock, form: Form, label: Label) -> Item:
        item = self._item = Item(form.item, self._next_index)
        self._next_index += 1
        if not form.item:
            self.numbered(ITEM_ADDED, item.index, block.start)
            return item
        item.id = dumps(self._make_id(form.prefix))
        if self.fields:
            item.fields = self.fields.pop(label, {})
        item.head = b"," + block.start[1:-1] if form.member and not form.part else form.head
        self.numbered(form.added, item.index, item.id, item.head, _more(item.fields))
        return item

    def close_item(self, *, whole: bool = True) -> None:
        item, self._item = self._item, None
        if item is None or not item.type:
            return
        done = self._whole(item, b"completed" if whole else b"incomplete")
        self.output.append(done)
        self.numbered(ITEM_DONE, item.index, done)

    def _whole(self, item: Item, status: bytes) -> bytes:
        if self.fields:
            for label in item.labels:
                item.fields = {**item.fields, **self.fields.pop(label, {})}
        if item.type == b"message":
            members = b',"content":[%b]' % b",".join(item.content)
        elif item.type == b"reasoning":
            content = b',"content":[%b]' % b",".join(item.content) if item.content else b""
            members = b',"summary":[%b]%b%b' % (b",".join(item.summary), content, item.opaque)
        else:
            members = item.own
        known = item.id, item.type, status, item.head, _more(item.fields), members
        return b'{"id":%b,"type":"%b","status":"%b"%b%b%b}' % known

    def unfinished(self) -> bytes | None:
        """Return the item that is still open after a failure, as JSON; None for a call, because no client may run it."""
        item = self._item
        if item is None or item.type not in {b"message", b"reasoning"}:
            return None
        if self.current is not None and self._form.part:
            part = self._part(bytes(self._text))
            (item.summary if self._form.in_summary else item.content).append(part)
        return self._whole(item, b"incomplete")

    def _hosted(self, block: QueuedBlock, frame: bytes) -> None:
        """Write a frame of an item that no other dialect understands. The item gets a new index."""
        document = orjson.loads(frame)
        name = document.pop("type").encode()
        if name == b"response.output_item.done":
            start, item = orjson.loads(block.start), document["item"]
            item = item if isinstance(item, dict) else start
            document["item"] = {**item, "id": start.get("id"), "type": start["type"]}
            done = dumps(document["item"])
            self.hold(len(done))
            self.output.append(done)
        self.numbered(event_of(name, b",%b"), dumps({"output_index": block.index, **document})[1:-1])
