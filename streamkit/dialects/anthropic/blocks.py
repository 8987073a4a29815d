"""Content blocks as Anthropic's readers need them: one open at a time, dense indices, no block without content.

Source: design.md §5, dialects.md §0.4, §3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import orjson

from streamkit.dialects.streams.block_queue import Block, BlockQueue
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.limits import Limits

#: Before a delta of a block, by its index.
DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
ARGUMENTS = b'{"type":"input_json_delta","partial_json":%b}'
#: A whole event.
FRAGMENT = DELTA + ARGUMENTS + b"}\n\n"
#: An unsigned thinking block still needs the member; a client replays it as it is.
STARTS: Mapping[str, bytes] = {
    "text": b'{"type":"text","text":""}',
    "refusal": b'{"type":"text","text":""}',
    "thinking": b'{"type":"thinking","thinking":"","signature":""}',
}


class BlockWriter(BlockQueue):
    """Writes block events through ``event(name, payload)``, and deltas of a block that is open as bytes."""

    starts: ClassVar = STARTS

    arguments_template: ClassVar = ARGUMENTS

    def __init__(self, event: Callable[[bytes, bytes], None], write: Callable[[bytes], None], limits: Limits) -> None:
        super().__init__(limits)
        self._event = event
        self._write = write
        self._next_index = 0

    def write_start(self, block: Block) -> None:
        block.index = self._next_index
        self._next_index += 1
        self._event(
            b"content_block_start",
            b'{"type":"content_block_start","index":%d,"content_block":%b}' % (block.index, block.start),
        )

    def around(self, block: Block) -> tuple[bytes, bytes]:
        return DELTA % block.index, b"}\n\n"

    def write_fragment(self, block: Block, fragment: str) -> None:
        self._write(FRAGMENT % (block.index, orjson.dumps(fragment)))  # in half of the time of three templates

    def write_delta(self, block: Block, delta: bytes) -> None:
        self._write(b"%b%b}\n\n" % (DELTA % block.index, delta))

    def write_deltas(self, block: Block, deltas: list[bytes]) -> None:
        before, behind = self.around(block)
        self._write(before + (behind + before).join(deltas) + behind)

    def write_stop(self, block: Block) -> None:
        """Clients assign a signature, so it is written whole, right before the stop (dialects.md §0.4)."""
        if block.signature:
            signature = "".join(block.signature)
            if block.signer:
                signature = seal("reasoning", block.signer, signature)
            self.write_delta(block, b'{"type":"signature_delta","signature":%b}' % orjson.dumps(signature))
        self._event(b"content_block_stop", b'{"type":"content_block_stop","index":%d}' % block.index)
