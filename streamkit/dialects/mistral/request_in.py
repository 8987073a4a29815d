"""Mistral's requests to the neutral conversation: Chat's, with other names, words and kinds of parts.

The assistant thinks in its content. A thinking is read as the decoder of streams reads it: its text is reasoning, what else is
in it an aside, and another vendor's signature is unsealed, that of a call for the calls of its message in their order. In
other messages than the assistant's a thinking is an example of one (the system shows how to think), and a part that only this
dialect knows.

Source: dialects.md §6.3, §7.3; Mistral's own refusals, of ids above all; the request types of mistralai 3.7.0, which also have
``top_k`` and log probabilities.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from streamkit.conversation.messages import (
    Media,
    Options,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_reader import RequestReader, image_of, media_at, read_options, server_tool
from streamkit.dialects.members.fields import Fields, is_data_uri, media_of
from streamkit.dialects.members.values import text_of
from streamkit.dialects.mistral.wire import ASIDES, CONTENT, OPTIONS, THINKING, VENDOR
from streamkit.dialects.openai_chat.request_in import ChatRequestReader
from streamkit.dialects.vocabulary.sealed_reasoning import unseal, unsealed
from streamkit.events import Aside, Opaque
from streamkit.text.quoting import quoted

#: Roles of Chat that are unknown here.
NO_ROLES = frozenset({"developer", "function"})


class MistralRequestReader(ChatRequestReader):
    """Reads one request."""

    dialect = "mistral"
    vendor: ClassVar[str] = VENDOR

    stream_usage = RequestReader.stream_usage  # every stream ends with token counts, and no member asks for them

    def options(self, fields: Fields) -> Options:
        names = {**OPTIONS, "max_tokens": "max_tokens", "top_k": "top_k", "service_tier": "service_tier"}
        return read_options(
            fields, names, stop=self.stop(fields), thinking=self.thinking(fields), output=self.output(fields)
        )

    def thinking(self, fields: Fields) -> Thinking | None:
        """How much to think, which is an effort."""
        effort = fields.string("reasoning_effort")
        return None if effort is None else Thinking(effort)

    # -- tools -----------------------------------------------------------------------------------------------------

    tools = RequestReader.tools  # in one member

    def tool(self, tool: Fields) -> Tool:
        """A function, or a tool that Mistral runs. A function may come without its type."""
        kind = tool.string("type") or "function"
        if kind == "function":
            return self.function(tool.needed_fields("function"), tool)
        return server_tool(kind, tool, kind)

    def choice(self, fields: Fields, name: str) -> ToolChoice | None:
        """The choice among tools; none in the older member ``function_call``."""
        if name != "tool_choice":
            return None
        if not isinstance(fields.peek(name), dict):
            return super().choice(fields, name)
        choice = fields.fields_of_type(name, {"function"})
        if choice is None:
            return self.choice_of_hosted(fields, name)
        choice.take("type")
        return ToolChoice("required", (choice.needed_fields("function").needed("name"),))

    def mode(self, mode: str, path: str) -> ToolChoice:
        """A choice in one word: Chat's, or ``any``."""
        return super().mode("required" if mode == "any" else mode, path)

    # -- messages --------------------------------------------------------------------------------------------------

    def role(self, message: Fields) -> str:
        """The role of a message. Raises BadRequest for one that only Chat has."""
        role = super().role(message)
        if role in NO_ROLES:
            raise message.wrong(f"there is no role {quoted(role)}", "role")
        return role

    def part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), extras=part.rest() or None)
            case "image_url":
                is_object = isinstance(part.peek("image_url"), dict)
                media = image_of(part) if is_object else media_at("image", part, "image_url")
            case "document_url":
                media = media_at("file", part, "document_url")
                media.name = part.string("document_name")
            case "input_audio":
                media = self._input_audio(part)
            case "file":
                media = Media("file", file_id=part.needed("file_id"), place=part.place)
            case kind:
                return _aside(CONTENT, kind, part)
        media.extras = part.rest() or None
        return media

    def _input_audio(self, part: Fields) -> Media:
        """A sound: where it is, or itself as base64, which the dialect takes bare as well."""
        audio = part.needed("input_audio")
        if audio.startswith(("http:", "https:")):
            return Media("audio", url=audio, place=part.place)
        if is_data_uri(audio):
            return Media("audio", *media_of(audio, part.at("input_audio")))
        return Media("audio", data=audio)

    # -- the assistant's messages ----------------------------------------------------------------------------------

    def assistant(self, message: Fields) -> Turn:
        parts, signatures = self._content_and_signatures(message)
        for read in self.calls(message):
            read.signature = signatures.popleft() if signatures else None
            parts.append(read)
        parts += [RedactedReasoning(signature) for signature in signatures]  # of calls that are not there
        if message.peek("prefix") is False:  # the client writes the default
            message.take("prefix")
        return Turn("assistant", parts)

    def _content_and_signatures(self, message: Fields) -> tuple[list[Part], deque[Opaque]]:
        """The parts of the content, and signatures of calls."""
        content = message.text_or_each("content")
        signatures: deque[Opaque] = deque()
        if isinstance(content, str):
            return [Text(content)] if content else [], signatures
        parts: list[Part] = []
        text: Text | None = None  # the last one
        for part in content:
            before = len(parts)
            if part.peek("type") == "thinking":
                self._thinking(part, parts, signatures, text)
            else:
                parts.append(self.part(part))
            text = next((new for new in reversed(parts[before:]) if isinstance(new, Text)), text)
        return parts, signatures

    def _thinking(self, chunk: Fields, parts: list[Part], signatures: deque[Opaque], before: Text | None) -> None:
        """A thinking, and what its signature signs: the text ``before`` it, perhaps."""
        chunk.take("type")
        thoughts = _thoughts(chunk)
        blob = chunk.string("signature")
        sealed = unseal(blob) if blob else None
        if blob and (sealed is None or sealed.kind == "reasoning"):
            _last(thoughts).signature = unsealed(blob, VENDOR)
        if members := chunk.rest():
            _last(thoughts).extras = members
        parts += thoughts
        if sealed is None:
            return
        opaque = sealed.opaque
        if sealed.kind == "call":
            signatures.append(opaque)
        elif sealed.kind == "opaque":
            parts.append(RedactedReasoning(opaque))
        elif sealed.kind == "text" and before is not None:
            before.signature = opaque
        elif sealed.kind in {"text", "part"}:
            parts.append(Text("", opaque))

    # -- calls and results -----------------------------------------------------------------------------------------

    def call(self, call: Fields, number: int) -> ToolCall:
        """A call, whose arguments may be an object; the client writes "null" where it knows no id."""
        if call.peek("type") == "function":
            call.take("type")
        function = call.needed_fields("function")
        is_object = isinstance(function.peek("arguments"), dict)
        arguments = function.text_of("arguments") if is_object else function.string("arguments") or ""
        read = ToolCall(number, text_of(call.string("id")) or "", function.needed("name"), arguments, place=call.place)
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        """A result; the client writes "null" where it knows no id."""
        result = super().result(message)
        result.call_id = text_of(result.call_id) or ""
        return result


def _aside(where: str, kind: str, part: Fields) -> Aside:
    """A part that only this dialect knows."""
    raw = {"type": kind, **part.rest()}
    return Aside(VENDOR, ASIDES.get(kind, "unknown_event"), f"{where}{kind}", raw, place=part.place)


def _thoughts(chunk: Fields) -> list[Reasoning | Aside]:
    """What a thinking is made of: neighbouring texts are one, and whatever else is in it stands between them."""
    thoughts: list[Reasoning | Aside] = []
    texts: list[str] = []  # of the last text

    def close() -> None:
        if texts:
            thoughts.append(Reasoning("".join(texts)))
            texts.clear()

    for thought in chunk.needed_each("thinking"):
        kind = thought.needed("type")
        if kind == "text" and thought.names in ([], ["text"]):
            texts.append(thought.needed("text"))
        else:
            close()
            thoughts.append(_aside(THINKING, kind, thought))
    close()
    return thoughts


def _last(thoughts: list[Reasoning | Aside]) -> Reasoning:
    """The last text of a thinking, for what belongs to the whole of it; an empty one where something else stands last."""
    last = thoughts[-1] if thoughts else None
    if not isinstance(last, Reasoning):
        last = Reasoning("")
        thoughts.append(last)
    return last
