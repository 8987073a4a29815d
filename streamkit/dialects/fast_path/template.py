r"""Payloads that differ in a few values only, read without parsing the rest of them again.

Most payloads of a stream are alike but for the text they bring. A **template** is the bytes around these **holes**::

    {"id":"c1","choices":[{"index":0,"delta":{"content":|" the"|},"finish_reason":null}]}

Bytes that are template, JSON string, template are the same document with another string in it: JSON is deterministic, so the
match proves it. It is learned from two payloads that a decoder read one after the other, and found to say the same but for
what is in the holes: ``template_around`` one text, ``template_of`` whatever differs. Where the holes are says the decoder's
class (``FrameDecoder.opaque_holes``).

Of many payloads the holes are parsed together, as one array. A **mark** of white space stands between its items, and another
in the place of each part between two holes of a payload: raw in a string it is no JSON, so that no hole can reach into the
next. The marks must be there in the order of the parts, and as many items as holes, each of the right type.

Source: design.md §9; RFC 8259 §2, §7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import orjson

from streamkit.events import Aside, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta, UsageReported
from streamkit.tool_calls.delta_run import Delta, DeltaRun, delta_like

#: What stands in a hole: text of the delta, and the same again; the index of a call; padding that means nothing: a string, a
#: whole number, or blanks; an object of token counts.
Kind: TypeAlias = Literal["text", "again", "index", "pad", "number", "space", "usage"]
#: What is no hole where it is the same in both payloads.
CONSTANT: Final = frozenset({"pad", "number", "space"})
#: Padding in letters, digits and signs, and its quotes. Other padding would have to be parsed.
PADDING: Final = bytes(set(range(0x20, 0x7F)) - set(b"\\"))
#: A greater index is left to the decoder.
INDICES: Final = {b"%d" % index: index for index in range(32)}
_QUOTE: Final = ord('"')
_ZERO: Final = ord("0")
_MARK: Final = b"\t"  # those between holes end with CR; none of them begins another
_NO_MARKS: Final = bytes(set(range(256)) - set(b"\t\r\n"))
DELTAS: Final = frozenset({TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta})
loads, dumps = orjson.loads, orjson.dumps
#: Token counts as the event that says them.
ReadUsage: TypeAlias = Callable[[dict[str, Any]], Any]


class Template:
    """The bytes around the holes: of ``parts`` there is one more than of ``kinds``, which name the holes; what is read are
    deltas like ``like``, whose index is at most ``most``.
    """

    __slots__ = (
        "_around", "_is_text", "_marked", "_marks", "_mids", "_most", "_other",
        "_usage", "events", "head", "is_simple", "kinds", "like", "read", "reads_many", "tail", "text_within",
    )  # fmt: skip

    def __init__(
        self, parts: list[bytes], kinds: list[Kind], decoded: list[Any], most: int, usage: ReadUsage | None
    ) -> None:
        self.head, *self._mids, self.tail = parts
        self._around = len(self.head) + len(self.tail)
        self.kinds = kinds
        self.like: Delta = decoded[0]
        #: What a payload says behind its delta, which is always the same; None where its token counts are.
        self.events = decoded[1:]
        self._most = most
        self._usage = usage
        #: What one payload says; None if it is not like the others. Raises ValueError where a hole has no JSON.
        self.read: Callable[[bytes], list[Any] | None] = self._read_text
        #: Gives the text as JSON of what stands between ``head`` and ``tail``, or None if it is not like the others; itself
        #: None where more is to be read.
        self.text_within: Callable[[bytes], bytes | None] | None = None
        if kinds == ["text"]:
            self.text_within = _only_text
            self.read = self._read_text if self.events else self._read_only_text
        elif "index" not in kinds and "usage" not in kinds:
            self.text_within = (
                self._text_and_other if len(kinds) == 2 and "again" not in kinds else self._text_and_others
            )
        elif kinds == ["index", "text"] and not self.events and type(self.like) is ToolCallDelta:
            self.read = self._read_fragment
        else:
            self.read = self._read_holes
        #: Whether a payload says one delta, and behind its text nothing but asides that are always the same.
        self.is_simple = (
            not self.events
            if type(self.like) is ToolCallDelta
            else self.text_within is not None and all(type(event) is Aside for event in self.events)
        )
        self._other: Kind = next((kind for kind in kinds if kind != "text"), "text")
        self._is_text = type(self.like) is TextDelta
        #: Whether ``read_many`` can read anything.
        self.reads_many = not self.events and not {"usage", "space", "again"} & set(kinds)
        #: The parts between holes, the mark of each, and all marks of a payload in their order.
        self._marked = [(mid, b"," + b"\n" * number + b"\r") for number, mid in enumerate(self._mids)]
        self._marks = b"".join([mark[1:] for _, mark in self._marked]) + _MARK

    def _read_only_text(self, payload: bytes) -> list[Any] | None:
        text = payload.removeprefix(self.head).removesuffix(self.tail)  # as ``_only_text``, a call less
        size = len(text)
        if size < 3 or size != len(payload) - self._around or text[0] != _QUOTE or text[-1] != _QUOTE:
            return None
        like: Any = self.like
        if self._is_text:
            return [TextDelta(loads(text), like.choice, like.block)]
        return [delta_like(like, loads(text), None)]

    def _read_text(self, payload: bytes) -> list[Any] | None:
        within = payload.removeprefix(self.head).removesuffix(self.tail)  # half of the time of asking and cutting
        if len(within) != len(payload) - self._around:
            return None
        text = cast("Callable[[bytes], bytes | None]", self.text_within)(within)
        return None if text is None else [delta_like(self.like, loads(text), None), *self.events]

    def _text_and_other(self, holes: bytes) -> bytes | None:
        """The text where there is one more hole, which says nothing: a third of the time of any number of holes."""
        if self.kinds[0] == "text":  # which may have what stands between the two, unlike the other
            text, found, other = holes.rpartition(self._mids[0])
        else:
            other, found, text = holes.partition(self._mids[0])
        if not found or len(text) < 3 or text[0] != _QUOTE or text[-1] != _QUOTE or not _is_padding(other, self._other):
            return None
        return text

    def _text_and_others(self, holes: bytes) -> bytes | None:
        """The same for any number of holes."""
        return self._values(holes).get("text")

    def _read_fragment(self, payload: bytes) -> list[Any] | None:
        """A fragment of one of the calls that may take turns."""
        holes = payload.removeprefix(self.head).removesuffix(self.tail)
        if len(holes) != len(payload) - self._around:
            return None
        label, _, text = holes.partition(self._mids[0])
        index = INDICES.get(label, self._most + 1)
        if index > self._most or len(text) < 3 or text[0] != _QUOTE or text[-1] != _QUOTE:
            return None
        like: Any = self.like
        return [ToolCallDelta(index, None, None, loads(text), like.choice, like.kind)]

    def _read_holes(self, payload: bytes) -> list[Any] | None:
        holes = payload.removeprefix(self.head).removesuffix(self.tail)
        values = self._values(holes) if len(holes) == len(payload) - self._around else {}
        if not values:
            return None
        index = INDICES.get(values["index"], self._most + 1) if "index" in values else None
        if index is not None and index > self._most:
            return None
        delta = delta_like(self.like, loads(values["text"]), index)
        if self._usage is None:
            return [delta, *self.events]
        raw = loads(values["usage"])
        counted = self._usage(raw) if type(raw) is dict and raw else None
        if counted is None:
            return None
        return [delta, *(counted if event is None else event for event in self.events)]

    def _values(self, holes: bytes) -> dict[Kind, bytes]:
        """What is in the holes that are read; nothing if that is no text, or if another hole has what it may not have."""
        values: dict[Kind, bytes] = {}
        for hole, kind in zip(self._cut(holes), self.kinds, strict=False):
            if kind in CONSTANT:
                if not _is_padding(hole, kind):
                    return {}
            elif values.setdefault("text" if kind == "again" else kind, hole) != hole:
                return {}
        text = values.get("text", b"")
        return values if len(text) > 2 and text[0] == _QUOTE == text[-1] else {}

    def _cut(self, rest: bytes) -> list[bytes]:
        """What is in each hole; nothing if the payload is not like the others."""
        holes = []
        for part in self._mids:
            hole, found, rest = rest.partition(part)
            if not found:
                return []
            holes.append(hole)
        return [*holes, rest]

    def read_many(self, payloads: Sequence[bytes]) -> DeltaRun | None:
        """What like payloads say with which ``payloads`` begin; None if there are none, or none that can be read at once."""
        head, tail, begin, end = self.head, self.tail, len(self.head), -len(self.tail)
        holes = [payload[begin:end] for payload in payloads]
        if head + (tail + head).join(holes) + tail != b"".join(payloads):  # looked at all at once: a third of the time
            alike = [payload.startswith(head) and payload.endswith(tail) for payload in payloads]
            holes = holes[: (*alike, False).index(False)]
        good, bad, run = 0, len(holes) + 1, None  # so many from the first are good, so many are not
        while bad - good > 1:
            middle = len(holes) if bad > len(holes) else (good + bad) // 2
            found = self._run(holes[:middle])
            if found is None:
                bad = middle
            else:
                good, run = middle, found
        return run

    def _run(self, holes: list[bytes]) -> DeltaRun | None:
        """The deltas of these holes, those of a payload in one; None if one of them has another kind of value."""
        columns = self._columns(holes)
        if columns is None:
            return None
        texts, indices = columns["text"], columns.get("index")
        if indices is None:
            return DeltaRun(self.like, texts)
        labels = set(indices)
        if not 0 <= min(labels) <= max(labels) <= self._most:
            return None
        if len(labels) > 1:
            return DeltaRun(self.like, texts, indices)
        return DeltaRun(delta_like(self.like, "", indices[0]), texts)

    def _columns(self, holes: list[bytes]) -> dict[Kind, list[Any]] | None:
        """The values of each kind; None if one of them is of another type."""
        flat = (b"," + _MARK).join(holes)
        if b"\r" in flat or b"\n" in flat:  # white space for JSON; here a mark
            return None
        for mid, mark in self._marked:  # all at once: a sixth of the time of cutting one hole after the other
            flat = flat.replace(mid, mark)
        if self._marked and flat.translate(None, _NO_MARKS) + _MARK != self._marks * len(holes):
            return None
        try:
            values = loads(b"[%b]" % flat)
            width = len(self.kinds)
            columns = [values[number::width] for number in range(width)]
            if len(values) == width * len(holes) and all(map(_are, columns, self.kinds)):
                return dict(zip(self.kinds, columns, strict=True))
        except (ValueError, TypeError):
            pass
        return None


def _only_text(hole: bytes) -> bytes | None:
    """The text where it is the only hole."""
    return hole if len(hole) > 2 and hole[0] == _QUOTE and hole[-1] == _QUOTE else None


def _is_padding(hole: bytes, kind: Kind) -> bool:
    if kind == "space":
        return not hole.strip(b" ")
    if kind == "number":
        return hole.isdigit() and (hole[0] != _ZERO or hole == b"0")
    return (
        len(hole) > 1 and hole.count(b'"') == 2 and hole[0] == _QUOTE == hole[-1] and not hole.translate(None, PADDING)
    )


def _are(values: list[Any], kind: Kind) -> bool:
    """Whether all ``values`` are of this kind. Raises TypeError for some that are not."""
    if kind in ("text", "pad"):
        "".join(values)
        return kind == "pad" or "" not in values  # decoders take empty text for none
    return set(map(type, values)) == {int}


def template_around(
    holes: re.Pattern[bytes], payloads: tuple[bytes, bytes], decoded: tuple[Any, Any], most: int
) -> Template | None:
    """The template of two payloads that differ in the text of the one delta that was ``decoded`` of each, and in blanks at
    their end; None where more differs.

    Gain: a tenth of the time of ``template_of``, which looks for holes of every kind in both.
    """
    (like, payload), (before, delta) = payloads, decoded
    member = "arguments" if type(delta) is ToolCallDelta else "text"
    text, other = getattr(delta, member), getattr(before, member, None)
    if not text or not other or text == other or delta_like(before, text, None) != delta:
        return None
    hole = dumps(text)
    at = payload.find(hole)
    if at < 0:
        return None
    head, tail = payload[:at], payload[at + len(hole) :]
    before_tail = head + dumps(other)
    if not like.startswith(before_tail):
        return None
    parts, kinds = [head, tail], ["text"]
    if (other_tail := like[len(before_tail) :]) != tail:
        end = tail[:-1].rstrip(b" ")
        if "space" not in holes.groupindex or end != other_tail[:-1].rstrip(b" ") or end[-1:] + tail[-1:] != b"}}":
            return None
        parts, kinds = [head, end, b"}"], ["text", "space"]
    name = payload.rfind(b'"', 0, payload.rfind(b'"', 0, at))
    found = holes.match(payload, name) if name >= 0 else None
    if found is None or found.lastgroup != "text" or found.start("text") != at:
        return None
    return Template(parts, cast("list[Kind]", kinds), [delta], most, None)


def template_of(
    holes: re.Pattern[bytes],
    payloads: tuple[bytes, bytes],
    decoded: tuple[list[Any], list[Any]],
    most: int,
    usage: ReadUsage,
) -> Template | None:
    """The template of two payloads that a decoder read one after the other, and what was ``decoded`` of each; None if they
    have none.
    """
    like, payload = payloads
    (_, *before), (delta, *behind) = decoded
    text = other_text = b""
    parts: list[bytes] = []
    kinds: list[Kind] = []
    end = 0
    for hole, other in zip(holes.finditer(payload), holes.finditer(like), strict=False):
        kind = cast("Kind", hole.lastgroup)
        if kind in CONSTANT and hole[kind] == other[hole.lastindex or 0]:
            continue
        if kind == "text":
            kind, text, other_text = ("again" if text else "text"), hole["text"], other["text"]
        parts.append(payload[end : hole.start(hole.lastindex or 0)])
        kinds.append(kind)
        end = hole.end(hole.lastindex or 0)
    if not text or kinds.count("index") > 1 or kinds.count("usage") > 1:
        return None
    if text == other_text and (behind or "again" in kinds):  # what comes with it may depend on it
        return None
    counted = "usage" in kinds
    if counted:
        behind = [None if type(event) is UsageReported else event for event in behind]
        before = [None if type(event) is UsageReported else event for event in before]
    if before != behind:
        return None
    template = Template([*parts, payload[end:]], kinds, [delta, *behind], most, usage if counted else None)
    try:
        return template if (template.read(like), template.read(payload)) == decoded else None
    except ValueError:
        return None
