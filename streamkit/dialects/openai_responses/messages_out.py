"""Turns to items of the input.

A turn of the user or the system is a message, and each result in it an item of its own at its place: this server asks for no
order beyond a call before its output. The only text of the system in front of all is ``instructions``, if no item said it.

What the assistant said is a message for each text, since an id is what several parts of one share, and only the server gives
ids. Reasoning goes back if this vendor encrypted it, with its own id or none: the encrypted text is bound to it, and a made
one is refused. Without that, an item goes back only where it came from.

Source: dialects.md §2.2, §2.3, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from streamkit.conversation.messages import (
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
from streamkit.dialects.bodies.request_writer import as_error, given, merged
from streamkit.dialects.openai_responses.client_items import items_again
from streamkit.dialects.openai_responses.content_out import ContentWriter
from streamkit.dialects.openai_responses.output import (
    Item,
    OutputList,
    call_item,
    of_item,
    reasoning_item,
    thoughts,
)
from streamkit.dialects.openai_responses.wire import (
    CONTENT,
    OPAQUE_VENDOR,
    OUTPUTS,
)
from streamkit.dialects.streams.compactions import COMPACTION, OPENAIS
from streamkit.events import Aside


class MessageWriter(ContentWriter):
    """The part of the writer of requests that writes the input."""

    _again: Mapping[str, tuple[Item, Item | None]]  #: calls that were items of this dialect: see ``client_items.py``

    def conversation(self) -> tuple[str | None, list[Item]]:
        """The instructions, and the items of the input."""
        turns = self.request.turns
        self._again = {} if self.own else items_again(turns)
        instructions = self._instructions(turns)
        return instructions, [item for turn in turns[instructions is not None :] for item in self._items(turn)]

    def _instructions(self, turns: Sequence[Turn]) -> str | None:
        """What the system says in front, if it is one plain text and nothing but a place in the request would be lost."""
        leading = len(list(takewhile(lambda turn: turn.role == "system", turns)))
        if leading == 0 or turns[0].name is not None or turns[0].extras or len(turns[0].parts) != 1:
            return None
        if turns[0].native_role is not None if self.own else leading > 1:
            return None
        text = turns[0].parts[0]
        plain = isinstance(text, Text) and text.cache is None and text.signature is None and not text.extras
        return text.text if isinstance(text, Text) and plain else None

    def _items(self, turn: Turn) -> Iterator[Item]:
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        extras = dict(self.extras(turn.extras))
        if turn.role == "assistant":
            yield from self._assistant(turn)
        else:
            role = "developer" if turn.native_role == "developer" else turn.role
            yield from self._told(turn.parts, role, extras)
        for name in extras:  # of no message
            self.lose("metadata", name)

    def _told(self, parts: Sequence[Part], role: str, extras: dict[str, Any]) -> Iterator[Item]:
        """What the user, the system or a tool says: messages, and items between them."""
        content: list[Part] = []
        for part in parts:
            if isinstance(part, ToolResult) or (isinstance(part, Aside) and not part.type.startswith(CONTENT)):
                if content:
                    yield self._message(content, role, extras)
                    content = []
                if isinstance(part, ToolResult):
                    yield self._result(part)
                elif self.aside(part):
                    yield from self._alone(part)
            else:
                content.append(part)
        if content or not parts:
            yield self._message(content, role, extras)

    def _alone(self, part: Aside) -> list[Item]:
        output = OutputList(self.report, _begun)
        output.aside(part)
        return output.finish()

    def _message(self, parts: Sequence[Part], role: str, extras: dict[str, Any]) -> Item:
        """A message; the first of a turn has what the turn says of itself."""
        message = merged({"role": role, "content": self.content(parts)}, extras)
        extras.clear()
        return message

    def _result(self, result: ToolResult) -> Item:
        if self.own and result.item is not None:
            return dict(result.item)
        _, output = self._again.get(result.call_id, (None, None))
        if output is not None:
            return output
        parts: Sequence[Part] = result.parts
        if result.is_error:
            self.lose("result_error", result.call_id)
            parts = as_error(parts)
        if result.cache is not None:
            self.lose("cache_mark", result.cache)
        item = {
            "type": OUTPUTS[result.kind],
            "call_id": self.call_id(result.call_id),
            "output": self.content(parts),
        }
        if result.name is not None and self.own:  # elsewhere the call says it
            item["name"] = result.name
        return merged(item, self.extras(result.extras))

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _assistant(self, turn: Turn) -> list[Item]:
        output = OutputList(self.report, _begun)
        for part in thoughts(turn.parts):
            if isinstance(part, list):
                self._thought(part, output)
            else:
                self._part_of_assistant(part, output)
        if not turn.parts:
            self.report.repair("turn_empty")
        return [_plain(item) for item in output.finish()]

    def _part_of_assistant(self, part: Part, output: OutputList) -> None:
        match part:
            case RedactedReasoning():
                self._redacted(part, output)
            case Text() | Refusal():
                self._said(part, output)
            case ToolCall():
                output.add(self._call(part))
            case Media():
                self.lose("media", part.kind)
            case Aside():
                if self.aside(part):
                    output.aside(part)
            case _:
                raise TypeError(f"an assistant's turn has no {type(part).__name__}")

    def _said(self, part: Text | Refusal, output: OutputList) -> None:
        if isinstance(part, Refusal):
            written: Item = {"type": "refusal", "refusal": part.text}
        else:
            written = {"type": "output_text", "text": part.text, "annotations": []}
            if part.signature is not None:
                self.lose("reasoning_signature", part.signature.vendor)
            if part.cache is not None:
                self.lose("cache_mark", part.cache)
            if not part.text and (part.signature is not None or not self.own):
                if part.signature is None:
                    self.report.repair("turn_empty")
                return
        members, item = self._split(part.extras)
        output.said(merged(written, members), part.block, item, apart=True)

    def _split(self, extras: Extras | None) -> tuple[Item, Extras | None]:
        """The members of a part, and those of its item.

        In Chat's ``reasoning_details`` the id of an encrypted one is that of the item that it was here.
        """
        if self.related and not self.own and extras and str(extras.get("id")).startswith("rs_"):
            return {}, {"id": extras["id"]}
        kept = dict(self.extras(extras))
        return kept, kept.pop("item", None)

    def _thought(self, run: list[Reasoning], output: OutputList) -> None:
        """The reasoning of one item: what this vendor encrypted, or what came so without."""
        signature = run[-1].signature
        encrypted = signature.blob if signature is not None and signature.vendor == OPAQUE_VENDOR else None
        item = of_item(run[0])
        told = item is not None or any(part.kind == "raw" and part.text for part in run)
        if encrypted is None and (signature is not None or not (self.own and told)):
            if signature is not None:
                self.lose("reasoning_signature", signature.vendor)
            for part in run:
                if part.text:
                    self.lose("reasoning_history")
            return
        for part in run:
            self.extras(part.extras)
        body = reasoning_item(run if self.own else [Reasoning(part.text, part.kind) for part in run])
        kept = item if self.own else None
        output.add({**body, **(kept or {}), **given(encrypted_content=encrypted)}, [part.block for part in run])

    def _redacted(self, part: RedactedReasoning, output: OutputList) -> None:
        if part.opaque.vendor == OPENAIS:
            output.add({"type": COMPACTION, "encrypted_content": part.opaque.blob})
            return
        if part.opaque.vendor != OPAQUE_VENDOR:
            self.lose("reasoning_opaque", part.opaque.vendor)
            return
        _, item = self._split(part.extras)
        output.add(
            {"type": "reasoning", **(item or {}), "summary": [], "encrypted_content": part.opaque.blob}, [part.block]
        )

    def _call(self, call: ToolCall) -> Item:
        if self.own and call.item is not None:
            return dict(call.item)
        if call.signature is not None:
            self.lose("reasoning_signature", call.signature.vendor)
        if call.cache is not None:
            self.lose("cache_mark", call.cache)
        if (again := self._again.get(call.id)) is not None:
            return again[0]
        item = call_item(call, self.call_id(call.id), self.tool_name(call.name))
        return merged(item, self.extras(call.extras))


def _begun(members: Extras) -> Item:
    """The beginning of a message of the assistant's."""
    return {"type": "message", "role": "assistant", **members, "content": []}


def _plain(item: Item) -> Item:
    """A message of one plain text in its short form, unless the server knows it by an id: then it must say its status."""
    if item.get("type") != "message" or "content" not in item:
        return item
    if "id" in item:
        return {"status": "completed", **item}
    content = item["content"]
    if len(content) == 1 and content[0].get("type") == "output_text":
        text = {name: value for name, value in content[0].items() if (name, value) != ("annotations", [])}
        if text.keys() == {"type", "text"}:
            return {**{name: value for name, value in item.items() if name != "type"}, "content": text["text"]}
    return item
