"""Content blocks as ConverseStream has them: one open at a time, dense indices, a start for calls alone.

Source: dialects.md §6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import orjson

from streamkit.dialects.bedrock.wire import EVENTS
from streamkit.dialects.streams.block_queue import Block, BlockQueue
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.framing.eventstream import serialize_headers
from streamkit.limits import Limits


def headers(event: str) -> bytes:
    """The headers of an event, in the order in which Bedrock writes them."""
    return serialize_headers({":event-type": event, ":content-type": "application/json", ":message-type": "event"})


HEADERS: Mapping[str, bytes] = {event: headers(event) for event in EVENTS}
START, DELTA, STOP = (HEADERS[f"contentBlock{part}"] for part in ("Start", "Delta", "Stop"))


class BlockWriter(BlockQueue):
    """Writes block events through ``write(headers, payload)``."""

    starts: ClassVar = {"text": b"", "refusal": b"", "thinking": b""}
    arguments_template: ClassVar = b'{"toolUse":{"input":%b}}'

    def __init__(self, write: Callable[[bytes, bytes], None], limits: Limits) -> None:
        super().__init__(limits)
        self._write = write
        self._next_index = 0

    def write_start(self, block: Block) -> None:
        block.index = self._next_index
        self._next_index += 1
        if block.start:
            self._write(START, b'{"contentBlockIndex":%d,"start":%b}' % (block.index, block.start))

    def write_delta(self, block: Block, delta: bytes) -> None:
        self._write(DELTA, b'{"contentBlockIndex":%d,"delta":%b}' % (block.index, delta))

    def write_stop(self, block: Block) -> None:
        if block.signature:
            signature = "".join(block.signature)
            if block.signer:
                signature = seal("reasoning", block.signer, signature)
            self.write_delta(block, b'{"reasoningContent":{"signature":%b}}' % orjson.dumps(signature))
        self._write(STOP, b'{"contentBlockIndex":%d}' % block.index)
