"""Blocks that only this vendor understands: to the frames of a stream, and put together of them again.

An aside of such a block is a frame, whether it came in a stream, in a whole response or in the history of a request, so that
what was read in one place can be written in each of the others. Citations are asides of the text block with their label.

Source: dialects.md §3.1, §3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from attrs import define, field

from streamkit.dialects.anthropic.wire import VENDOR
from streamkit.dialects.streams.event_encoder import wrapped_arguments
from streamkit.events import Aside, AsideKind
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

#: What stands before the type of a block that is one aside, with the whole block as it came.
CONTENT = "content."


def aside_of(frame: dict[str, Any], kind: str, number: int) -> Aside:
    """A frame of a block of that kind as an aside."""
    server = kind == "server_tool_use" or kind.endswith("_tool_result") or kind.startswith("mcp_")
    what: AsideKind = "server_tool" if server else "unknown_event"
    return Aside(VENDOR, what, str(frame.get("type")), frame, block=number)


def frames_of(block: Mapping[str, Any], index: int, input_text: str | None) -> Iterator[dict[str, Any]]:
    """The frames of a whole block, as a stream would have sent it: an input comes behind its start, as text."""
    if input_text is not None:
        block = {**block, "input": {}}
    yield {"type": "content_block_start", "index": index, "content_block": dict(block)}
    if input_text is not None:
        delta = {"type": "input_json_delta", "partial_json": input_text}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


@define
class _Raw:
    """A block that grows by its frames."""

    block: dict[str, Any]
    input: list[str] = field(factory=list)

    def take(self, delta: Any) -> bool:
        """Add a delta; False for one of a kind that is not known."""
        if not isinstance(delta, dict):
            return False
        match delta.get("type"), delta.get("partial_json"):
            case "input_json_delta", str(fragment):
                self.input.append(fragment)
                return True
            case "compaction_delta", _:
                self.block |= {name: value for name, value in delta.items() if name != "type"}
                return True
        return False


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

    def text(self, block: dict[str, Any], label: int) -> None:
        """Add a text block, which citations with its label belong to."""
        self.blocks.append(block)
        self._texts[label] = block
        if label in self._citations:
            block["citations"] = self._citations.pop(label)

    def aside(self, part: Aside) -> None:
        """Add what an aside of this vendor says of a block, or count that there is no place for it."""
        if part.type == "citations_delta":
            self._citation(part)
        elif part.type == "content_block_start":
            raw = self._raw[part.block] = _Raw(dict(part.raw["content_block"]))
            self.blocks.append(raw.block)
        elif part.type.startswith(CONTENT):
            self.blocks.append(part.raw)
        elif not self._belongs(part):
            self.report.lose(part.kind, what=part.type)

    def _citation(self, part: Aside) -> None:
        text = self._texts.get(part.block)
        if text is not None:
            text.setdefault("citations", []).append(part.raw)
        else:
            self._citations.setdefault(part.block, []).append(part.raw)

    def _belongs(self, part: Aside) -> bool:
        """Whether a further frame is one of a block that is here; it is added to it."""
        raw = self._raw.get(part.block)
        if raw is None:
            return False
        return part.type == "content_block_stop" or (
            part.type == "content_block_delta" and raw.take(part.raw.get("delta"))
        )

    def finish(self) -> list[dict[str, Any]]:
        """All of them, whole."""
        for raw in self._raw.values():
            text = "".join(raw.input)
            if check_arguments(text).kind == "complete":
                raw.block["input"] = orjson.Fragment(text)
            elif text.strip():
                self.report.lose("arguments_wrapped", what=str(raw.block.get("name")))
                raw.block["input"] = orjson.Fragment(wrapped_arguments(text))
        for citations in self._citations.values():
            self.report.lose("citation", len(citations))
        return self.blocks
