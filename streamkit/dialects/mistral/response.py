"""Read and write Mistral's whole responses and error bodies: OpenAI Chat's, with the differences of Mistral's streams.

Text and thinking are parts of the content, in order; content of text only is a string. Signatures are written as in a stream
(``encode.py``): in their thinking part, or sealed in a separate one, those of calls among the text. Only the order links these
to their calls, so a signature after an unsigned call is lost.

Source: dialects.md §0.4, §6.3 (what readers accept).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Refusal, Text, ToolCall
from streamkit.dialects.members.fields import PLAIN_TEXT, add_missing
from streamkit.dialects.members.values import name_of
from streamkit.dialects.mistral.encode import Chunks, image_chunk, is_content, whole_call
from streamkit.dialects.mistral.wire import VENDOR, encode_error, encode_usage, finish_reason
from streamkit.dialects.openai_chat.response import ChatResponseWriter
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal, signature_text
from streamkit.events import Aside, MediaGenerated, Opaque, ProviderFailed


class MistralResponseWriter(ChatResponseWriter):
    """Writes one response."""

    vendor: ClassVar[str] = VENDOR

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return encode_error(failure, self.report)

    def usage(self) -> dict[str, Any]:
        """Return the token counts. The client demands the object, but no counts in it."""
        usage = self.response.usage
        return {"usage": {} if usage is None else encode_usage(usage, self.report)}

    def finish_reason(self, choice: Choice, *, called: bool) -> tuple[str, bool]:
        return finish_reason(choice.stop_reason or "other", choice.native_stop_reason, called=called)

    def complete(self, written: dict[str, Any], choice: Choice) -> None:
        """Do nothing: Mistral's schema requires no further members."""

    def message(self, choice: Choice) -> dict[str, Any]:
        chunks = Chunks()
        called = False
        for part in choice.parts:
            called = called or isinstance(part, ToolCall)
            if called and isinstance(part, Text | Refusal | Reasoning):
                self.report.lose("block_order")
            match part:
                case Text() | Refusal():
                    self._add_text(part.text, chunks)
                    if isinstance(part, Text) and part.signature is not None:
                        _seal(chunks, "text" if part.text else "part", part.signature)
                case Reasoning():
                    signature = signature_text(part.signature, VENDOR)
                    if part.text or signature:
                        chunks.think(part.text, signature)
                case RedactedReasoning():
                    _seal(chunks, "opaque", part.opaque)
                case Aside() if is_content(part) and not chunks.aside(part):
                    self.report.lose(part.kind, what=name_of(part))
        if choice.refusal:
            self.report.lose("refusal_as_text")
        calls = self._calls(choice, chunks)
        self.growing.finish()
        return {"role": "assistant", "content": chunks.content, **({"tool_calls": calls} if calls else {})}

    def _add_text(self, text: str, chunks: Chunks) -> None:
        """Add text. Append it to a text directly before it, because readers join adjacent texts."""
        last = chunks.written[-1] if chunks.written else None
        if not text:
            return
        if last is not None and last.keys() == PLAIN_TEXT and last["type"] == "text":
            self.report.lose("block_boundary")
            self.growing.append(last, "text", text)
        else:
            chunks.add({"type": "text", "text": text})

    def _calls(self, choice: Choice, chunks: Chunks) -> list[dict[str, Any]]:
        """Return the calls, and add their signatures to ``chunks``."""
        calls: list[dict[str, Any]] = []
        unsigned = False
        for call in choice.tool_calls:
            written = self.call(call)
            if written is None:
                continue
            calls.append({**written, "index": len(calls)})
            if call.signature is None:
                unsigned = True
            elif unsigned:
                self.report.lose("reasoning_signature")
            else:
                _seal(chunks, "call", call.signature)
        return calls

    def call(self, call: ToolCall) -> dict[str, Any] | None:
        """Return one call; None if it is truncated or has no name."""
        written = whole_call(call, self.encoding.limits, self.report)
        return None if written is None else add_missing(written, self.own_extras(call.extras))

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return image_chunk(media)

    def aside(self, aside: Aside, body: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> None:
        """Write an aside of this dialect where it belongs, unless it is in the content."""
        if not is_content(aside):
            super().aside(aside, body, choice, message)


def _seal(chunks: Chunks, kind: Kind, opaque: Opaque) -> None:
    """Add data that only another vendor can read, in a separate thinking part."""
    chunks.add({"type": "thinking", "thinking": [], "signature": seal(kind, opaque.vendor, opaque.blob)})
