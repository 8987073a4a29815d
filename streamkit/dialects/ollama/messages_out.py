"""Turns to Ollama's messages.

A turn is one message, and each result in it a ``tool`` message of its own in front. Content is one text: several are joined,
those of the assistant as they stand, since a model's text may be cut anywhere, and others by a blank line. Images stand beside
it as bare base64, those of a tool's answer too.

Templates differ in what they do with a system message behind the first, and some refuse it (ollama#17774): from other
dialects all that the system says is one message in front.

Source: dialects.md §4.1, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

from streamkit.conversation.messages import (
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_writer import ERROR, RequestWriter, merged
from streamkit.dialects.ollama.media import IMAGES
from streamkit.dialects.ollama.wire import VENDOR
from streamkit.dialects.profiles import Target
from streamkit.events import Aside
from streamkit.report import StreamReport

BLANK_LINE: Final = "\n\n"


class MessageWriter(RequestWriter):
    """The part of the writer of requests that writes messages."""

    dialect = "ollama"
    text_files = False
    vendor = VENDOR

    def __init__(self, request: Request, target: Target, report: StreamReport) -> None:
        super().__init__(request, target, report)
        calls = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]
        self._names = {call.id: call.name for call in calls}
        #: Ids that the reader made, for calls that came without one.
        self._made = {call.id for call in calls if call.id_made} if self.own else set()

    def messages(self) -> Iterable[dict[str, Any]]:
        messages = self._messages()
        return messages if self.own else self.answered(messages)

    def _messages(self) -> Iterator[dict[str, Any]]:
        turns: Sequence[Turn] = self.request.turns
        if not self.own:
            system = [turn for turn in turns if turn.role == "system"]
            if system:
                yield self._system(system)
            turns = [turn for turn in turns if turn.role != "system"]
        for turn in turns:
            if turn.role == "assistant":
                yield self._assistant(turn)
                continue
            results = [part for part in turn.parts if isinstance(part, ToolResult)]
            if any(not isinstance(part, ToolResult) for part in turn.parts[: len(results)]):
                self.report.repair("result_moved")
            for result in results:
                yield self._result(result)
            said = [part for part in turn.parts if not isinstance(part, ToolResult)]
            if said or not results:
                yield self._said(turn, said, BLANK_LINE)

    def _system(self, turns: list[Turn]) -> dict[str, Any]:
        """All that the system says, as one message."""
        leading = len(list(takewhile(lambda turn: turn.role == "system", self.request.turns)))
        for _ in turns[1:leading]:
            self.report.repair("turns_joined")
        for _ in turns[leading:]:
            self.lose("system_place")
        messages = [self._said(turn, turn.parts, BLANK_LINE) for turn in turns]
        images = [image for message in messages for image in message.get("images", ())]
        written = {"role": "system", "content": BLANK_LINE.join(message["content"] for message in messages)}
        return {**written, "images": images} if images else written

    def _said(self, turn: Turn, parts: Sequence[Part], joint: str) -> dict[str, Any]:
        """The message of a turn, with its content."""
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        return merged({"role": turn.role, **self._content(parts, joint)}, self.extras(turn.extras))

    # -- content ---------------------------------------------------------------------------------------------------

    def _content(self, parts: Sequence[Part], joint: str) -> dict[str, Any]:
        """``content``, and ``images`` if there are any. The server puts images in front of the text."""
        texts: list[str] = []
        images: list[str] = []
        late = False
        for part in parts:
            match part:
                case Text():
                    self._bare(part)
                    if part.signature is not None:
                        self.lose("reasoning_signature", part.signature.vendor)
                    texts.append(part.text)
                case Refusal():
                    self.lose("refusal_as_text")
                    self.extras(part.extras)
                    texts.append(part.text)
                case Media() if part.kind in IMAGES and part.data is not None:
                    self._bare(part)
                    late = late or any(texts)
                    images.append(part.data)
                case Media():
                    self.lose(
                        "media", part.kind if part.data is not None else f"{part.kind}, not in the request itself"
                    )
                case Aside():
                    self.lose(part.kind, part.type)
                case _:
                    raise TypeError(f"content has no {type(part).__name__}")
        if late:
            self.lose("block_order")
        content = {"content": self._joined(texts, joint)}
        return {**content, "images": images} if images else content

    def _bare(self, part: Text | Media) -> None:
        """Count what a part says beside its text or its bytes: Ollama has no place for it."""
        if part.cache is not None:
            self.lose("cache_mark", part.cache)
        if isinstance(part, Media):
            for name in ("detail", "name"):
                if getattr(part, name) is not None:
                    self.lose("metadata", name)
        self.extras(part.extras)

    def _joined(self, texts: list[str], joint: str) -> str:
        """Texts as one; the boundaries between them are lost."""
        texts = [text for text in texts if text]
        if len(texts) > 1:
            self.report.lose("block_boundary", len(texts) - 1)
        return joint.join(texts)

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _assistant(self, turn: Turn) -> dict[str, Any]:
        said: list[Part] = []
        thought: list[str] = []
        calls: list[dict[str, Any]] = []
        beside: dict[str, Any] = {}
        late = False  # whether something came behind what it is written in front of
        for part in turn.parts:
            match part:
                case Reasoning():
                    late = late or bool(said or calls)
                    thought.append(self._visible(part))
                case RedactedReasoning():
                    self.lose("reasoning_opaque", part.opaque.vendor)
                case ToolCall():
                    calls.append(self._call(part))
                case Aside() if self.own and part.vendor == VENDOR and part.type.startswith("message."):
                    beside[part.type.removeprefix("message.")] = part.raw
                case Aside():
                    self.lose(part.kind, part.type)
                case _:
                    late = late or bool(calls)
                    said.append(part)
        if late:
            self.lose("block_order")
        message = {**self._said(turn, said, ""), **beside}
        if thinking := self._joined(thought, ""):
            message["thinking"] = thinking
        if calls:
            message["tool_calls"] = calls
        return message

    def _visible(self, part: Reasoning) -> str:
        if part.signature is not None:
            self.lose("reasoning_signature", part.signature.vendor)
        self.extras(part.extras)
        return part.text

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> dict[str, Any]:
        if call.signature is not None:
            self.lose("reasoning_signature", call.signature.vendor)
        if call.cache is not None:
            self.lose("cache_mark", call.cache)
        function = {"name": self.tool_name(call.name), "arguments": self.object_arguments(call)}
        written = {"id": call.id, "function": function} if self._has_id(call.id) else {"function": function}
        return merged(written, self.extras(call.extras))

    def _has_id(self, call_id: str) -> bool:
        return call_id != "" and call_id not in self._made

    def _result(self, result: ToolResult) -> dict[str, Any]:
        """A ``tool`` message. It names the tool, which is all that older servers go by."""
        if result.cache is not None:
            self.lose("cache_mark", result.cache)
        message = {"role": "tool", **self._content(result.parts, BLANK_LINE)}
        if result.is_error:
            self.lose("result_error", result.call_id)
            message["content"] = f"{ERROR}{message['content']}"
        called = self._names.get(result.call_id)
        name = result.name or called if self.own else called or result.name
        if name is not None:
            message["tool_name"] = self.tool_name(name)
        if self._has_id(result.call_id):
            message["tool_call_id"] = result.call_id
        return merged(message, self.extras(result.extras))
