"""Blocks that only this vendor understands: to the messages of a stream, and put together of them again.

An aside of such a block is the payload of a message, whether it came in a stream, in a whole response or in the history of a
request, so that what was read in one place can be written in each of the others. Blocks that no stream has are one aside. A
citation belongs to the text block with its label.

Source: dialects.md §6.1; botocore's model of ``ContentBlock`` and ``ContentBlockDelta``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from attrs import define, field

from streamkit.dialects.bedrock.content import SERVER
from streamkit.dialects.bedrock.wire import VENDOR
from streamkit.dialects.members.growing import Growing
from streamkit.dialects.members.values import said
from streamkit.dialects.streams.event_encoder import wrapped_arguments
from streamkit.events import Aside, AsideKind
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

#: What stands before the member of a block that is one aside, with the whole block as it came.
CONTENT: Final = "content."
#: The members of blocks that a stream begins with a start, and what of them comes behind it.
STREAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "toolUse": ("input",),
    "toolResult": ("content",),
    "image": ("source", "error"),
}


def is_server(member: str, value: Any) -> bool:
    """Whether a block is of a tool that the provider runs itself: such a call or result has a type."""
    return member in SERVER and isinstance(value, dict) and said(value.get("type"))


def asides_of(member: str, value: Any, number: int, input_text: str = "") -> Iterator[Aside]:
    """The asides of a whole block; ``input_text`` is the text of a call's input."""
    if member not in STREAMED or not isinstance(value, dict):
        yield Aside(VENDOR, "unknown_event", CONTENT + member, {member: value}, block=number)
        return
    kind: AsideKind = "server_tool" if member in SERVER else "unknown_event"
    for event, payload in messages_of(member, value, number, input_text):
        yield Aside(VENDOR, kind, event, payload, block=number)


def messages_of(
    member: str, value: Mapping[str, Any], index: int, input_text: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages of a whole block, as a stream would have sent it: an event type and its payload each."""
    late = STREAMED[member]
    start = {name: inner for name, inner in value.items() if name not in late}
    yield "contentBlockStart", {"contentBlockIndex": index, "start": {member: start}}
    delta: Any = {name: value[name] for name in late if value.get(name) is not None}
    if member == "toolUse":
        delta = {"input": input_text} if input_text else {}
    elif member == "toolResult":
        delta = delta.get("content")
    if delta:
        yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {member: delta}}
    yield "contentBlockStop", {"contentBlockIndex": index}


@define
class _Raw:
    """A block that grows by its messages."""

    member: str
    value: dict[str, Any]
    input: list[str] = field(factory=list)
    growing: Growing = field(factory=Growing)

    def take(self, delta: Any) -> bool:
        """Add a delta; False for one that does not belong here."""
        more = delta.get(self.member) if isinstance(delta, dict) else None
        match self.member, more:
            case "toolUse", {"input": str(fragment)}:
                self.input.append(fragment)
            case "toolResult", list():
                self.growing.extend(self.value, "content", more)
            case "image", dict() if not more.keys() & self.value.keys():
                self.value |= more
            case _:
                return False
        return True


class BlockList:
    """The blocks of one message as they are put together, in the order in which they began."""

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.blocks: list[dict[str, Any]] = []
        self._texts: dict[int, dict[str, Any]] = {}
        self._raw: dict[int, _Raw] = {}
        self._citations: dict[int, list[Any]] = {}  # that came before their text

    def add(self, block: dict[str, Any]) -> None:
        self.blocks.append(block)

    def text(self, text: str, label: int, extras: Mapping[str, Any] | None = None) -> None:
        """Add a text block, which citations with its label belong to; ``extras`` are of one with citations."""
        block: dict[str, Any] = {"text": text}
        if extras:
            block = {"citationsContent": {"content": [{"text": text}], **extras}}
        self._texts[label] = block
        self.blocks.append(block)
        for citation in self._citations.pop(label, []):
            _cite(block, citation)

    def aside(self, part: Aside) -> None:
        """Add what an aside of this vendor says of a block, or count that there is no place for it."""
        start = part.raw.get("start") if part.type == "contentBlockStart" else None
        if part.type == "citation":
            self._citation(part)
        elif part.type.startswith(CONTENT):
            self.blocks.append(part.raw)
        elif isinstance(start, dict) and start.keys() & STREAMED.keys():
            ((member, value), *_) = start.items()
            raw = self._raw[part.block] = _Raw(member, dict(value))
            self.blocks.append({member: raw.value})
        elif not self._belongs(part):
            self.report.lose(part.kind, what=part.type)

    def _citation(self, part: Aside) -> None:
        block = self._texts.get(part.block)
        if block is not None:
            _cite(block, part.raw)
        else:
            self._citations.setdefault(part.block, []).append(part.raw)

    def _belongs(self, part: Aside) -> bool:
        """Whether a further message is one of a block that is here; it is added to it."""
        raw = self._raw.get(part.block)
        if raw is None:
            return False
        return part.type == "contentBlockStop" or (part.type == "contentBlockDelta" and raw.take(part.raw.get("delta")))

    def finish(self) -> list[dict[str, Any]]:
        """All of them, whole."""
        for raw in self._raw.values():
            if raw.member == "toolUse":
                raw.value["input"] = self._input(raw)
            elif raw.member == "toolResult":
                raw.value.setdefault("content", [])
        for citations in self._citations.values():
            self.report.lose("citation", len(citations))
        return self.blocks

    def _input(self, raw: _Raw) -> orjson.Fragment:
        text = "".join(raw.input)
        verdict = check_arguments(text).kind
        if verdict == "empty":
            return orjson.Fragment(b"{}")
        if verdict == "complete":
            return orjson.Fragment(text)
        self.report.lose("arguments_wrapped", what=str(raw.value.get("name")))
        return orjson.Fragment(wrapped_arguments(text))


def _cite(block: dict[str, Any], citation: Any) -> None:
    """Add a citation to a text block, which becomes one of text with citations."""
    if "text" in block:
        block["citationsContent"] = {"content": [{"text": block.pop("text")}]}
    block["citationsContent"].setdefault("citations", []).append(citation)
