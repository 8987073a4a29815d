"""Content blocks, calls and the tool plan as Cohere's readers need them: one open at a time, each in its own row of indices.

Clients keep one pending call, so a call's fragments stand between its start and its end and nothing else does. The tool
plan has neither start nor end.

Source: dialects.md §6.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from streamkit.dialects.streams.block_queue import Block, BlockQueue
from streamkit.limits import Limits

CONTENT_DELTA = b'event: content-delta\ndata: {"type":"content-delta","index":%d,%b}\n\n'
CALL_DELTA = b'event: tool-call-delta\ndata: {"type":"tool-call-delta","index":%d,%b}\n\n'


class BlockWriter(BlockQueue):
    """Writes the events of blocks through ``event(name, members)``, and deltas, which are members of theirs, as bytes."""

    starts: ClassVar = {
        "text": b'{"type":"text","text":""}',
        "refusal": b'{"type":"text","text":""}',
        "thinking": b'{"type":"thinking","thinking":""}',
        "plan": b"",
    }

    arguments_template: ClassVar = b'"delta":{"message":{"tool_calls":{"function":{"arguments":%b}}}}'

    def __init__(self, event: Callable[[bytes, bytes], None], write: Callable[[bytes], None], limits: Limits) -> None:
        super().__init__(limits)
        self._event = event
        self._write = write
        self._contents = 0
        self._calls = 0

    def write_start(self, block: Block) -> None:
        kind = block.key[0]
        if kind == "call":
            block.index = self._calls
            self._calls += 1
            self._event(
                b"tool-call-start", b'"index":%d,"delta":{"message":{"tool_calls":%b}}' % (block.index, block.start)
            )
        elif kind != "plan":
            block.index = self._contents
            self._contents += 1
            self._event(b"content-start", b'"index":%d,"delta":{"message":{"content":%b}}' % (block.index, block.start))

    def write_delta(self, block: Block, delta: bytes) -> None:
        kind = block.key[0]
        if kind == "plan":
            self._event(b"tool-plan-delta", delta)
        else:
            self._write((CALL_DELTA if kind == "call" else CONTENT_DELTA) % (block.index, delta))

    def write_stop(self, block: Block) -> None:
        kind = block.key[0]
        if kind != "plan":
            self._event(b"tool-call-end" if kind == "call" else b"content-end", b'"index":%d' % block.index)
