"""Turns to Anthropic's messages.

Each turn is put into blocks first, and arranged then. Results come first in the one message behind their calls. The server
refuses an empty text (quirks.md 81), and one of white space where a message has nothing else, so both are left out. Content of
one plain text is a string.

Requests read in this dialect keep their messages: the server joins neighbours of one role by itself, and a system's message
stays at its place. Of other dialects, neighbours are joined, because servers that imitate this one want the roles to
alternate, and a system's message in the middle stays only where the server takes it: behind the user's last word, in front of
the assistant's or at the end. Elsewhere it goes to the top.

Thinking goes back as it came if Anthropic signed it; any other is refused, and left out.

Source: dialects.md §3.2, §7.3, §7.4; seeds.md S2.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import Any, TypeAlias

from attrs import define, field

from streamkit.conversation.messages import (
    CacheMark,
    Extras,
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.anthropic.asides import BlockList
from streamkit.dialects.anthropic.wire import CACHE_CONTROLS, IMAGE_TYPES, VENDOR
from streamkit.dialects.bodies.request_writer import RequestWriter, given, is_blank, media_type_of, merged
from streamkit.events import Aside

Block: TypeAlias = dict[str, Any]


@define
class Message:
    role: str
    blocks: list[Block]
    extras: Extras = field(factory=dict)

    def body(self) -> dict[str, Any]:
        return merged({"role": self.role, "content": plain(self.blocks)}, self.extras)


def plain(blocks: list[Block]) -> str | list[Block]:
    """Content as a string where it is one plain text."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return str(blocks[0]["text"])
    return blocks


class MessageWriter(RequestWriter):
    """The part of the writer of requests that writes messages."""

    dialect = "anthropic"
    vendor = VENDOR
    ids = re.compile(r"[A-Za-z0-9_-]+")
    names = re.compile(r"[A-Za-z0-9_-]{1,128}")
    users = re.compile(r"[^@]{1,256}")  # addresses are refused

    def conversation(self) -> tuple[list[Block], list[Message]]:
        """The system's blocks, and the messages."""
        written = [message for turn in self.request.turns if (message := self._message(turn)).blocks]
        leading = len(list(takewhile(lambda message: message.role == "system", written)))
        system = [block for message in written[:leading] for block in message.blocks]
        if self.own:
            return system, [message for run in _runs(written[leading:]) for message in self._results_first(run)]
        placed = [message for run in _runs(written[leading:]) for message in self._placed(run, system)]
        messages = [self._joined(list(same)) for _, same in groupby(placed, key=lambda message: message.role)]
        return system, [message for run in _runs(messages) for message in self._results_first(run)]

    def _message(self, turn: Turn) -> Message:
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        if not turn.parts:
            self.report.repair("turn_empty")
        return Message(turn.role, self._blocks(turn.parts, turn.role), self.extras(turn.extras))

    # -- the order of messages -------------------------------------------------------------------------------------

    def _placed(self, run: Sequence[Message], system: list[Block]) -> list[Message]:
        """What was said between two turns of the assistant, the user's words before the system's; the rest goes to the top."""
        spoken = [message for message in run if message.role != "system"]
        behind = list(takewhile(lambda message: message.role == "system", reversed(run)))[::-1] if spoken else []
        for message in run[: len(run) - len(behind)]:
            if message.role == "system":
                self.lose("system_place")
                system += message.blocks
        return [*spoken, *behind]

    def _joined(self, messages: Sequence[Message]) -> Message:
        """Neighbours as one. Results and what follows them are two turns in some dialects and one here, which is no repair."""
        telling = sum(not all(map(_is_result, message.blocks)) for message in messages)
        for _ in range(telling - 1):
            self.report.repair("turns_joined")
        return Message(messages[0].role, [block for message in messages for block in message.blocks])

    def _results_first(self, run: list[Message]) -> list[Message]:
        """The messages between two of the assistant, with all results in front in the first of the user's."""
        first = next((message for message in run if message.role == "user"), None)
        if first is None:
            return run
        leading = list(takewhile(_is_result, first.blocks))
        late = [block for message in run for block in message.blocks if _is_result(block)][len(leading) :]
        if late:
            for message in run:
                message.blocks = [block for block in message.blocks if not _is_result(block)]
            first.blocks = [*leading, *late, *first.blocks]
        for _ in late:
            self.report.repair("result_moved")
        return [message for message in run if message.blocks]

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _blocks(self, parts: Iterable[Part], role: str) -> list[Block]:
        blocks = BlockList(self.report)
        parts = list(parts)
        alone = all(map(is_blank, parts))
        for part in parts:
            match part:
                case Text(item=item) if item is not None:  # a compaction, whoever sent it back
                    blocks.add(dict(item))
                case Text() | Refusal():
                    self._text(part, blocks, alone=alone)
                case Aside():
                    if self.aside(part):
                        blocks.aside(part)
                case Reasoning() | RedactedReasoning():
                    if (thought := self._thought(part)) is not None:
                        blocks.add(merged(thought, self.extras(part.extras)))
                case Media() | ToolCall() | ToolResult():
                    if (block := self._block(part, role)) is not None:
                        blocks.add(merged(block | self.cache(part.cache), self.extras(part.extras)))
        return blocks.finish()

    def _block(self, part: Media | ToolCall | ToolResult, role: str) -> Block | None:
        match part:
            case Media():
                return self.media(part, role)
            case ToolCall():
                return self._call(part)
            case _:
                return self._result(part)

    def _text(self, part: Text | Refusal, blocks: BlockList, *, alone: bool) -> None:
        """Add a text; ``alone``: whether there is nothing but white space in the message."""
        block = {"type": "text", "text": part.text}
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        elif part.signature is not None:
            self.lose("reasoning_signature", part.signature.vendor)
        if part.text and not alone:
            cache = self.cache(part.cache) if isinstance(part, Text) else {}
            blocks.text(merged(block | cache, self.extras(part.extras)), part.block)
            return
        if isinstance(part, Text) and part.cache is not None:
            self.lose("cache_mark", part.cache)
        if isinstance(part, Refusal) or part.signature is None:
            self.report.repair("turn_empty")

    def _thought(self, part: Reasoning | RedactedReasoning) -> Block | None:
        """Reasoning that Anthropic made; None for any other, which its server refuses."""
        if isinstance(part, RedactedReasoning):
            if part.opaque.vendor == VENDOR:
                return {"type": "redacted_thinking", "data": part.opaque.blob}
            self.lose("reasoning_opaque", part.opaque.vendor)
            return None
        if part.signature is not None and part.signature.vendor == VENDOR:
            return {"type": "thinking", "thinking": part.text, "signature": part.signature.blob}
        if part.signature is not None:
            self.lose("reasoning_signature", part.signature.vendor)
        if part.text:
            self.lose("reasoning_history")
        return None

    def _call(self, call: ToolCall) -> Block:
        if call.signature is not None:
            self.lose("reasoning_signature", call.signature.vendor)
        return {
            "type": "tool_use",
            "id": self.call_id(call.id),
            "name": self.tool_name(call.name),
            "input": self.object_arguments(call),
        }

    def _result(self, result: ToolResult) -> Block:
        said = self._blocks(result.parts, "tool_result")
        return given(
            type="tool_result",
            tool_use_id=self.call_id(result.call_id),
            content=plain(said) if said else None,
            is_error=result.is_error or None,
        )

    def cache(self, mark: CacheMark | None) -> dict[str, Any]:
        """The mark of a part or tool; the spans of other vendors are not the same."""
        if mark is None:
            return {}
        if not self.own:
            self.lose("cache_mark", mark)
        return {"cache_control": dict(CACHE_CONTROLS[mark])}

    # -- media -----------------------------------------------------------------------------------------------------

    def media(self, media: Media, role: str) -> Block | None:
        """An image or a document; None for what the dialect can't carry there."""
        allowed = self.own or role in {"user", "tool_result"}  # none of the assistant's (dialects.md §3.0)
        source = self._source(media) if allowed else None
        if source is None:
            self.lose("media", media.media_type or media.kind)
            return None
        if media.detail not in {None, "auto"}:
            self.lose("metadata", "detail")
        if media.kind == "file":
            return given(type="document", source=source, title=media.name)
        if media.name is not None:
            self.lose("metadata", "name")
        return {"type": "image", "source": source}

    def _source(self, media: Media) -> dict[str, Any] | None:
        if media.kind not in {"image", "file"}:
            return None
        if media.data is not None:
            return self._data(media, media.data)
        if media.url is not None:
            known = media.kind == "image" or media.media_type in {None, "application/pdf"}
            return {"type": "url", "url": media.url} if known else None
        if media.file_id is not None and self.own:  # another provider's ids mean nothing here
            return {"type": "file", "file_id": media.file_id}
        return None

    def _data(self, media: Media, data: str) -> dict[str, Any] | None:
        kind = media_type_of(media)
        if kind in IMAGE_TYPES if media.kind == "image" else kind == "application/pdf":
            return {"type": "base64", "media_type": kind, "data": data}
        if self.own and kind != "text/plain":
            return {"type": "base64", "media_type": kind, "data": data}
        if media.kind == "file" and kind.startswith("text/"):
            text = _text_of(data)
            if text is not None and kind != "text/plain":
                self.lose("metadata", kind)
            return None if text is None else {"type": "text", "media_type": "text/plain", "data": text}
        return None


def _runs(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """What the assistant says, and what is said between."""
    for _, run in groupby(messages, key=lambda message: message.role == "assistant"):
        yield list(run)


def _is_result(block: Block) -> bool:
    return block.get("type") == "tool_result"


def _text_of(data: str) -> str | None:
    """The text that is in base64; None if it is none."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
