"""Read and write whole Chat responses: ``chat.completion`` and error bodies.

A whole body is read as one chunk with ``message`` instead of ``delta``, by the stream decoder; its calls need no index. A
written message has one text, one refusal and any number of calls. Reasoning is written to the plain fields that the client
reads and, if a part is signed or encrypted, to OpenRouter's details. Losses are counted as in streams.

Source: dialects.md §1.2, §1.4, §1.6, §1.8; seeds.md S1 (whole responses).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Text, ToolCall
from streamkit.dialects.bodies.openai import identity
from streamkit.dialects.bodies.responses import ResponseWriter
from streamkit.dialects.members.fields import add_missing
from streamkit.dialects.members.values import details_of, name_of, number_in
from streamkit.dialects.openai_chat import wire
from streamkit.dialects.openai_chat.decode import ChatDecoder
from streamkit.dialects.openai_chat.providers import client_of
from streamkit.dialects.streams.event_encoder import stop_word
from streamkit.events import Aside, MediaGenerated, ProviderFailed, TerminatorSeen
from streamkit.text.one_string import one_string


class ChatBodyDecoder(ChatDecoder):
    """Reads one whole body."""

    whole_calls: ClassVar[bool] = True
    _parts_of_one: Mapping[int, None] = {}  #: positions of choices that are one message together
    _index_of_one = 0  #: the index of that message
    _calls_before = 0  #: the number of calls in earlier choices of the same message
    _calls_read = 0

    def decode(self, document: dict[str, Any]) -> None:
        self._parts_of_one = _parts_of_one(document.get("choices"))
        super().decode(document)
        if "choices" in document:
            self.out.append(TerminatorSeen(derives_calls=True))

    def _choice(self, choice: Any, position: int) -> None:
        """Read one choice. Each is a separate message, even if two have the same index, except for ``_parts_of_one``."""
        choice = self.alone(choice)
        first = next(iter(self._parts_of_one), None)
        if position != first and position in self._parts_of_one:
            self.report.repair("choices_split")
            self._calls_before = self._calls_read
            choice = {**choice, "index": self._index_of_one}
        elif type(choice) is dict:
            self._calls_before = self._calls_read = 0
            index = choice.get("index")
            if (position if index is None else number_in(index)) in self._choices:
                self.report.repair("index_reused")
                choice = {**choice, "index": max(self._choices) + 1}  # the number of choices is limited
        super()._choice(choice, position)
        if position == first:
            self._index_of_one = [*self._choices][-1]

    def tool_call(self, call: Any, choice: int, path: tuple[Any, ...]) -> None:
        """Read one whole call, which gets its place in the list as its index."""
        # the path ends with "tool_calls" if a single call replaces the list
        number = self._calls_before + (0 if path[-1] == "tool_calls" else number_in(path[-1]) or 0)
        self._calls_read = number + 1
        super().tool_call({**call, "index": number} if isinstance(call, dict) else call, choice, path)


def _parts_of_one(choices: Any) -> dict[int, None]:
    """Return the positions of choices that form one message: all end with ``tool_calls``, and one has no call.

    Copilot writes the text of some models into one choice and the calls into another. A real alternative without calls has
    another finish reason, and a real alternative with calls is complete by itself.
    """
    has_calls = {
        position: bool(details_of(choice, "message").get("tool_calls"))
        for position, choice in enumerate(choices if isinstance(choices, list) else ())
        if isinstance(choice, dict) and choice.get("finish_reason") == "tool_calls"
    }
    return dict.fromkeys(has_calls) if {*has_calls.values()} == {True, False} else {}


class ChatResponseWriter(ResponseWriter):
    """Writes one response."""

    #: The vendor whose extras, asides, token counts and errors are written unchanged.
    vendor: ClassVar[str] = wire.VENDOR

    def answer(self) -> dict[str, Any]:
        response = self.response
        body: dict[str, Any] = {**identity(response, self.encoding, "chatcmpl-", "chat.completion"), "choices": []}
        body["choices"] = [self.choice(choice, body) for choice in response.choices]
        body |= self.usage()
        return add_missing(body, self.own_extras(response.extras, "response_fields"))

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return {"error": wire.encode_error(failure, self.vendor)}

    def usage(self) -> dict[str, Any]:
        usage = self.response.usage
        return {} if usage is None else {"usage": wire.encode_usage(usage, self.report, self.vendor)}

    def choice(self, choice: Choice, body: dict[str, Any]) -> dict[str, Any]:
        """Return one choice, and add members of the whole body to ``body``."""
        message = self.message(choice)
        found = self.finish_reason(choice, called="tool_calls" in message)
        reason = stop_word(found, choice.stop_sequence, self.report)
        written: dict[str, Any] = {"index": choice.index, "message": message, "finish_reason": reason}
        for aside in choice.asides:
            self.aside(aside, body, written, message)
        self.growing.finish()
        self.complete(written, choice)
        return written

    def complete(self, written: dict[str, Any], choice: Choice) -> None:
        """Add the members that OpenAI's schema requires, and an empty text if the response has no content."""
        written.setdefault("logprobs", None)
        message = written["message"]
        annotations = message.setdefault("annotations", [])
        has_others = choice.refusal or annotations or message.keys() != {"role", "content", "refusal", "annotations"}
        if not has_others:
            message["content"] = choice.text

    def finish_reason(self, choice: Choice, *, called: bool) -> tuple[str, bool]:
        reason = choice.stop_reason or "other"
        return wire.finish_reason(reason, choice.native_stop_reason, refused=choice.refusal != "", called=called)

    def message(self, choice: Choice) -> dict[str, Any]:
        self.lose_order(choice)
        texts = [part for part in choice.parts if isinstance(part, Text)]
        if len(texts) > 1:
            self.report.lose("block_boundary", len(texts) - 1)
        calls = [written for call in choice.tool_calls if (written := self.call(call)) is not None]
        message: dict[str, Any] = {"role": "assistant", "content": choice.text or None}
        message["refusal"] = choice.refusal or None
        message |= self.reasoning([part for part in choice.parts if isinstance(part, Reasoning | RedactedReasoning)])
        if calls:
            message["tool_calls"] = calls
        self._sign(message, texts)
        return message

    def _sign(self, message: dict[str, Any], texts: list[Text]) -> None:
        """Write the signature of the text. There is a place for one signature; more signatures are lost."""
        signatures = [text.signature for text in texts if text.signature is not None]
        if signatures and client_of(self.encoding.profile).reasoning_details:
            message["extra_content"] = wire.extra_content(signatures.pop())
        if signatures:
            self.report.lose("reasoning_signature", len(signatures))

    def reasoning(self, parts: list[Reasoning | RedactedReasoning]) -> dict[str, Any]:
        client = client_of(self.encoding.profile)
        visible = [part for part in parts if isinstance(part, Reasoning)]
        signed = sum(part.signature is not None for part in visible)
        encrypted = len(parts) - len(visible)
        written: dict[str, Any] = {}
        if text := one_string(part.text for part in visible):
            written = dict.fromkeys(client.reasoning_fields, text)
        if (signed or encrypted) and client.reasoning_details:
            details = [detail for part in parts if (detail := wire.reasoning_detail(part))]
            written["reasoning_details"] = [{**detail, "index": number} for number, detail in enumerate(details)]
            return written
        for kind, times in ("reasoning_signature", signed), ("reasoning_opaque", encrypted):
            if times:
                self.report.lose(kind, times)
        if len(visible) > 1:
            self.report.lose("block_boundary", len(visible) - 1)
        return written

    def call(self, call: ToolCall) -> dict[str, Any] | None:
        """Return one call; None if it has no name or is truncated, so that no client could run it."""
        if not call.name or not call.ended:
            self.withhold(call)
            return None
        written = wire.tool_call(call)
        if call.signature is not None:
            written["extra_content"] = wire.extra_content(call.signature)
        return add_missing(written, self.own_extras(call.extras))

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return wire.write_images(media, self.vendor)

    def aside(self, aside: Aside, body: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> None:
        """Write an aside of this dialect in its place; several pieces are joined."""
        name, value = aside.type, aside.raw
        if aside.vendor != self.vendor:
            self.report.lose(aside.kind, what=name_of(aside))
        elif aside.kind == "logprobs":
            self._join(choice, "logprobs", value)
        elif aside.kind == "audio":
            self._join(message, "audio", value)
        elif aside.kind == "citation":
            self._join(message, "annotations", [value])
        elif name == wire.DELTA_IMAGES:
            self._join(message, wire.IMAGES, value)
        elif name.startswith("delta."):
            self._put(message, name.removeprefix("delta."), value)
        elif name.startswith("choices."):
            self._put(choice, name.removeprefix("choices."), value)
        elif aside.kind == "metadata":
            self._put(body, name, value)
        else:
            self.report.lose(aside.kind, what=name)

    def _put(self, place: dict[str, Any], name: str, value: Any) -> None:
        """Write a member. Count a loss if it already has another value."""
        if place.setdefault(name, value) != value:
            self.report.lose("metadata", what=name)

    def _join(self, place: dict[str, Any], name: str, value: Any) -> None:
        """Append to an existing list, or to the text fields of audio; replace any other value."""
        before = place.get(name)
        if isinstance(before, list) and isinstance(value, list):
            self.growing.extend(place, name, value)
        elif isinstance(before, dict) and isinstance(value, dict):
            joined = self.growing.inner(place, name)
            for key, piece in value.items():
                if key in {"data", "transcript"} and isinstance(joined.get(key), str) and isinstance(piece, str):
                    self.growing.append(joined, key, piece)
                else:
                    self._join(joined, key, piece)
        elif value is not None or name not in place:
            self.growing.put(place, name, value)
