"""Content blocks, the tool plan and tool calls as Cohere streams them.

Blocks and calls have each their own row of indices. An index is a label, and the number that an event carries on is ours:
two blocks that share an index stay two. The tool plan is a block of its own, without a start and an end.

Source: dialects.md §6.2.
"""

from __future__ import annotations

import re
from typing import Any

from attrs import define

from streamkit.dialects.cohere.wire import CITATION, CONTENT_START, VENDOR
from streamkit.dialects.members.values import said
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import StartText
from streamkit.errors import TooManyBlocks, TooManyToolCalls
from streamkit.events import Aside, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallEnded
from streamkit.limits import Limits
from streamkit.report import StreamReport

DELTA_FIELDS = frozenset({"type", "index", "delta", "logprobs"})
CONTENT_FIELDS = frozenset({"type", "text", "thinking"})
CALL_FIELDS = frozenset({"id", "type", "function"})
SPOKEN = frozenset({"text", "thinking"})


@define
class Block:
    kind: str  #: blank until its start or its first delta says it
    number: int  #: its place among all blocks of the response: the label of its events
    #: The text that came with the start, until a delta or the end settles whether it is said again.
    start: StartText | None = None


#: Where deltas differ (``fast_path/template.py``).
HOLES = re.compile(rb'"(?:text|thinking|tool_plan|arguments)"\s*:\s*(?P<text>"(?:[^"\\]|\\.)++")')


class ContentReader(FrameDecoder):
    """The part of the decoder that reads what lies between the start and the end of the message."""

    dialect = "cohere"
    vendor = VENDOR
    holes = HOLES
    #: Where a call stands in its document.
    call_path: tuple[str | int, ...] = ("delta", "message", "tool_calls")

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._blocks: dict[int, Block] = {}  # open ones
        self._block_index = 0  # of the last delta or start
        self._used: set[int] = set()  # indices of blocks that were closed
        self._seen = 0
        self._plan: int | None = None  # number of the tool plan
        self._calls: dict[int, int] = {}  # by index, the number of the call that came last
        self._call_index = 0
        self._open_calls: set[int] = set()  # indices
        self._seen_calls = 0

    def ensure_started(self) -> None:
        """Say that the response started if it did not."""
        raise NotImplementedError

    def message(self, document: dict[str, Any]) -> dict[str, Any]:
        return self.fields(self.fields(document.get("delta")).get("message"))

    def _content(self, document: dict[str, Any]) -> dict[str, Any]:
        """The content of an event. Some servers write it as the only item of a list, or as text."""
        content = self.message(document).get("content")
        if type(content) is list and len(content) == 1:
            self.report.repair("list_unasked")
            content = content[0]
        if type(content) is str and content:
            self.report.repair("object_missing")
            return {"text": content}
        return self.fields(content)

    def _index(self, document: dict[str, Any], default: int) -> int:
        index = self.index(document.get("index"))
        if index is None:
            self.report.repair("index_missing")
            return default
        return index

    # -- content ---------------------------------------------------------------------------------------------------

    def content_start(self, document: dict[str, Any]) -> None:
        content = self._content(document)
        index = self._index(document, max(self._blocks, default=-1) + 1)
        block = self._begin(index, self.string(content.get("type")))
        if block.kind and block.kind not in SPOKEN:
            self.out.append(Aside(VENDOR, "unknown_event", CONTENT_START, document, block=block.number))
        else:
            self._start_with(content, block)

    def content_delta(self, document: dict[str, Any]) -> None:
        content = self._content(document)
        index = self._block_index = self._index(document, self._block_index)
        block = self._blocks.get(index)
        if block is None:
            self.report.repair("block_unopened")
            block = self._begin(index, "thinking" if content.get("thinking") else "text")
        if block.kind and block.kind not in SPOKEN:
            self.out.append(Aside(VENDOR, "unknown_event", "content-delta", document, block=block.number))
            return
        self._say(content, block)
        if logprobs := document.get("logprobs"):
            self.out.append(Aside(VENDOR, "logprobs", "logprobs", logprobs, block=block.number))
        if not document.keys() <= DELTA_FIELDS:
            for name, value in document.items():
                if name not in DELTA_FIELDS and said(value):
                    self.out.append(Aside(VENDOR, "metadata", f"content-delta.{name}", value, block=block.number))

    def content_end(self, document: dict[str, Any]) -> None:
        index = self._index(document, self._block_index)
        block = self._blocks.pop(index, None)
        if block is None:
            self.report.repair("block_unopened")
            return
        self._used.add(index)
        self._settle(block)
        if block.kind and block.kind not in SPOKEN:
            self.out.append(Aside(VENDOR, "unknown_event", "content-end", document, block=block.number))

    def _start_with(self, content: dict[str, Any], block: Block) -> None:
        """The text that a block starts with, nearly always none."""
        for kind in ("text", "thinking"):
            if block.start is None and block.kind in (kind, "") and type(content.get(kind)) is str and content[kind]:
                self._belongs(block, kind)
                block.start = StartText(content[kind])
                content = {name: value for name, value in content.items() if name != kind}
        self._say(content, block)

    def _settle(self, block: Block) -> None:
        """Say what a block started with: no delta tells any more whether it is said again."""
        if block.start is not None:
            (text, repeated), block.start = block.start.settle(), None
            if repeated:
                self.report.repair("text_repeated")
            self._say({block.kind: text}, block)

    def _say(self, content: dict[str, Any], block: Block) -> None:
        """The text of a start or of a delta, by the kind that it names itself."""
        if block.start is not None and (fragment := self.string(content.get(block.kind))):
            told, repeated = block.start.follow(fragment) or ("", False)
            if told:
                block.start = None
            if repeated:
                self.report.repair("text_repeated")
            content = {**content, block.kind: told}
        if text := self.string(content.get("text")):
            self._belongs(block, "text")
            self.out.append(TextDelta(text, 0, block.number))
        if thinking := self.string(content.get("thinking")):
            self._belongs(block, "thinking")
            self.out.append(ReasoningDelta(thinking, 0, block.number))
        if not content.keys() <= CONTENT_FIELDS:
            for name, value in content.items():
                if name not in CONTENT_FIELDS and said(value):
                    self.out.append(Aside(VENDOR, "metadata", f"content.{name}", value, block=block.number))

    def _belongs(self, block: Block, kind: str) -> None:
        if not block.kind:
            block.kind = kind
        elif block.kind != kind:
            self.report.repair("block_mismatch")

    def _begin(self, index: int, kind: str) -> Block:
        self.ensure_started()
        if index in self._blocks:
            self.report.repair("block_reopened")
        elif index in self._used:
            self.report.repair("index_reused")
        self._block_index = index
        block = self._blocks[index] = Block(kind, self._number())
        return block

    def _number(self) -> int:
        """The next block's."""
        if self._seen >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._seen += 1
        return self._seen - 1

    def tool_plan(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        if text := self.string(self.message(document).get("tool_plan")):
            if self._plan is None:
                self._plan = self._number()
            self.out.append(ReasoningDelta(text, 0, self._plan, "summary"))

    def citation(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        if citation := self.fields(self.message(document).get("citations")):
            self.out.append(Aside(VENDOR, "citation", CITATION, citation))

    # -- tool calls ------------------------------------------------------------------------------------------------

    def call_start(self, document: dict[str, Any]) -> None:
        call, path = self._call(document)
        index = self._index(document, max(self._calls, default=-1) + 1)
        self._begin_call(index)
        function = self.fields(call.get("function"))
        delta = ToolCallDelta(
            self._calls[index], self.string(call.get("id")) or None, self.string(function.get("name")) or None
        )
        if not call.keys() <= CALL_FIELDS:
            delta.extras = {name: value for name, value in call.items() if name not in CALL_FIELDS and said(value)}
        self._arguments(function, delta, path)

    def call_delta(self, document: dict[str, Any]) -> None:
        call, path = self._call(document)
        index = self._call_index = self._index(document, self._call_index)
        if index not in self._calls:
            self.report.repair("block_unopened")
            self._begin_call(index)
        self._arguments(self.fields(call.get("function")), ToolCallDelta(self._calls[index]), path)

    def call_end(self, document: dict[str, Any]) -> None:
        index = self._index(document, self._call_index)
        if index in self._open_calls:
            self._open_calls.remove(index)
            self.out.append(ToolCallEnded(self._calls[index]))
        else:
            self.report.repair("block_unopened")

    def _begin_call(self, index: int) -> None:
        self.ensure_started()
        if index in self._open_calls:
            self.report.repair("block_reopened")
            self.out.append(ToolCallEnded(self._calls[index]))
        elif index in self._calls:
            self.report.repair("index_reused")
        if self._seen_calls >= self.limits.content_blocks:  # beyond the limit of calls, however many of them are one
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        self._call_index = index
        self._open_calls.add(index)
        self._calls[index] = self._seen_calls
        self._seen_calls += 1

    def _call(self, document: dict[str, Any]) -> tuple[dict[str, Any], tuple[str | int, ...]]:
        """The call of an event, and its path. Some servers write it as the only item of a list."""
        call = self.message(document).get("tool_calls")
        if type(call) is list and len(call) == 1 and type(call[0]) is dict:
            self.report.repair("list_unasked")
            return call[0], (*self.call_path, 0)
        return self.fields(call), self.call_path

    def _arguments(self, function: dict[str, Any], delta: ToolCallDelta, path: tuple[str | int, ...]) -> None:
        arguments = function.get("arguments")
        if isinstance(arguments, str) or arguments is None:
            delta.arguments = arguments
        else:
            self.report.repair("arguments_not_text")
            delta.arguments = self.text_at(*path, "function", "arguments")
            delta.snapshot = True
        self.out.append(delta)

    # -- the end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self.settle_starts()

    def settle_starts(self) -> None:
        """Say what blocks started with: nothing more comes."""
        for block in self._blocks.values():
            self._settle(block)

    def close_all(self) -> None:
        """The message ended well: what is still open ends with it."""
        self.settle_starts()
        for _ in (*self._blocks, *self._open_calls):
            self.report.repair("block_unclosed")
        self._blocks.clear()
        self._open_calls.clear()
