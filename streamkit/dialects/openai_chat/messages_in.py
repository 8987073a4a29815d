"""Chat messages to turns.

Each message is one turn, but the answers of ``tool`` messages that stand together are one turn of the user. The older
``function_call`` and role ``function`` are read as a tool call and its result, paired by name, with an id made of the number
of the message. Reasoning comes in one of several fields; which one is remembered, so that it goes back where it came from.

Source: dialects.md §1.3, §1.6, §7.3, §7.4.
"""

from __future__ import annotations

from typing import ClassVar, cast

from streamkit.conversation.messages import (
    CacheMark,
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
from streamkit.dialects.bodies.request_writer import given
from streamkit.dialects.members.fields import Fields, is_data_uri, media_of
from streamkit.dialects.members.values import text_of
from streamkit.dialects.openai_chat.delta import PLAIN_REASONING
from streamkit.dialects.openai_chat.wire import AUDIO_TYPES, CACHE_SPANS, VENDOR, format_of, signature_in
from streamkit.events import Aside, Opaque, ToolKind
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: The member that says what a call was given, by its kind.
INPUTS = {"function": "arguments", "custom": "input"}


class MessageReader:
    """The part of the reader of requests that reads messages."""

    vendor: ClassVar[str] = VENDOR

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.turns: list[Turn] = []
        self._results: Turn | None = None  #: the turn that further results join
        self._answered: set[str] = set()  #: the calls that it answers
        self._custom: set[str] = set()  #: ids of calls of custom tools
        self._functions: dict[str, str] = {}  #: ids of calls of the older kind that wait for their result, by name
        self._twins: set[str] = set()  #: ids of calls that were said in both members

    def message(self, message: Fields) -> None:
        role = message.needed("role")
        if role in {"tool", "function"}:
            self._answer(self.result(message) if role == "tool" else self._function_result(message))
            return
        self._results = None
        match role:
            case "system" | "developer":
                turn = Turn("system", self.content(message), native_role=role if role == "developer" else None)
            case "user":
                turn = Turn("user", self.content(message))
            case "assistant":
                turn = self.assistant(message)
            case _:
                raise message.wrong(f"there is no role {quoted(role)}", "role")
        turn.name = message.string("name")
        turn.extras = message.rest() or None
        self.turns.append(turn)

    def _answer(self, result: ToolResult) -> None:
        """Let a result join those that it stands with. Who writes a call in two members may answer it twice."""
        if self._results is None:
            self._results = Turn("user")
            self.turns.append(self._results)
            self._answered.clear()
        if result.call_id in self._twins and result.call_id in self._answered:
            self.report.repair("said_twice")
            return
        self._answered.add(result.call_id)
        self._results.parts.append(result)

    # -- content ---------------------------------------------------------------------------------------------------

    def content(self, message: Fields) -> list[Part]:
        content = message.text_or_each("content")
        if isinstance(content, str):
            return [Text(content)] if content else []
        return [self.part(part) for part in content]

    def part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), cache=self._cache(part), extras=part.rest() or None)
            case "refusal":
                return Refusal(part.needed("refusal"), part.rest() or None)
            case "image_url":
                return self._image(part)
            case "input_audio":
                return self._audio(part)
            case "file":
                return self._file(part)
            case kind:
                return Aside(self.vendor, "unknown_event", f"content.{kind}", {"type": kind, **part.rest()})

    def _image(self, part: Fields) -> Media:
        image = part.needed_fields("image_url")
        media = Media(
            "image", url=image.needed("url"), detail=image.string("detail"), cache=self._cache(part), place=part.place
        )
        if media.url is not None and is_data_uri(media.url):
            media.media_type, media.data = media_of(media.url, image.at("url"))
            media.url = None
        media.extras = part.rest() or None
        return media

    def _audio(self, part: Fields) -> Media:
        audio = part.needed_fields("input_audio")
        kind = audio.needed("format")
        media = Media("audio", AUDIO_TYPES.get(kind, f"audio/{kind}"), audio.needed("data"), cache=self._cache(part))
        media.extras = part.rest() or None
        return media

    def _file(self, part: Fields) -> Media:
        file = part.needed_fields("file")
        data = file.string("file_data")
        media = Media("file", data=data, file_id=file.string("file_id"), name=file.string("filename"))
        if data is not None and is_data_uri(data):
            media.media_type, media.data = media_of(data, file.at("file_data"))
        media.cache = self._cache(part)
        media.extras = part.rest() or None
        return media

    def _cache(self, part: Fields) -> CacheMark | None:
        mark = part.fields("prompt_cache_breakpoint")
        if mark is None:
            return None
        mode, ttl = mark.string("mode"), mark.string("ttl")
        if mode != "explicit":
            raise mark.wrong(f"'explicit' is needed, not {quoted(mode)}", "mode")
        if ttl not in CACHE_SPANS:
            raise mark.wrong(f"'30m' or '12h' is needed, not {quoted(ttl)}", "ttl")
        return CACHE_SPANS[ttl]

    # -- what the assistant said -----------------------------------------------------------------------------------

    def assistant(self, message: Fields) -> Turn:
        turn = Turn("assistant")
        reasoning = self._reasoning(message, turn)
        said = self.content(message)
        if refusal := message.string("refusal"):
            said.append(Refusal(refusal))
        calls = self.calls(message)
        beside = [Aside(self.vendor, "citation", "annotation", raw) for raw in message.listed("annotations")]
        if (audio := message.take("audio")) is not None:
            beside.append(Aside(self.vendor, "audio", "audio", audio))
        turn.parts = [*_signing(reasoning, calls), *said, *calls, *beside]
        signature = signature_in(message.peek("extra_content"))
        last = next((part for part in reversed(said) if isinstance(part, Text)), None)
        if signature is not None and last is not None:
            message.take("extra_content")
            last.signature = signature
        return turn

    def _reasoning(self, message: Fields, turn: Turn) -> list[Part]:
        """The reasoning of a message: its details, else one of the fields of plain text that say the same."""
        parts = [self._detail(detail, number) for number, detail in enumerate(message.each("reasoning_details"))]
        if parts:
            turn.native_reasoning = "reasoning_details"
        text = "".join(part.text for part in parts if isinstance(part, Reasoning))
        for name in PLAIN_REASONING:
            plain = message.peek(name)
            if plain and plain == text:  # said already
                message.take(name)
            elif plain and not text:
                text = message.needed(name)
                signed = [part for part in parts if isinstance(part, Reasoning) and part.signature is not None]
                if (
                    len(signed) == 1 and not signed[0].extras
                ):  # a stream put together: deltas tell text and signature apart
                    signed[0].text = text
                else:
                    parts.insert(0, Reasoning(text))
                turn.native_reasoning = turn.native_reasoning or name
        return parts

    def _detail(self, detail: Fields, number: int) -> Part:
        """One of OpenRouter's details. Its place and format are kept where they are not those that it would be given."""
        kind, form = detail.string("type"), detail.string("format")
        vendor = (text_of(form) or "openrouter").split("-")[0]
        part: Part
        match kind:
            case "reasoning.text" | "reasoning.summary":
                name = kind.removeprefix("reasoning.")
                text, signature = detail.string(name) or "", detail.string("signature")
                part = Reasoning(text, "summary" if name == "summary" else "raw")
                part.signature = Opaque(vendor, signature) if signature else None
            case "reasoning.encrypted":
                part = RedactedReasoning(Opaque(vendor, detail.needed("data")))
                signature = vendor
            case _:
                raw = given(type=kind, format=form) | detail.rest()
                return Aside(self.vendor, "unknown_event", f"reasoning_details.{kind}", raw)
        if detail.peek("index") == number:
            detail.take("index")
        if signature and form == format_of(vendor):
            form = None
        part.extras = (given(format=form) | detail.rest()) or None
        return part

    # -- calls and results -----------------------------------------------------------------------------------------

    def calls(self, message: Fields) -> list[ToolCall]:
        """The calls of a message; the older single one only where the list has no call of that name (llama-cpp-python)."""
        calls = [self.call(call, number) for number, call in enumerate(message.each("tool_calls"))]
        if function := message.fields("function_call"):
            older = self._function_call(function, message, len(calls))
            twin = next((call for call in calls if call.name == older.name), None)
            if twin is None:
                calls.append(older)
            else:
                self.report.repair("said_twice")
                self._functions[older.name] = twin.id
                self._twins.add(twin.id)
        return calls

    def call(self, call: Fields, number: int) -> ToolCall:
        kind = call.string("type") or "function"
        if kind not in INPUTS:
            raise call.wrong(f"there is no call of type {quoted(kind)}", "type")
        called = call.needed_fields(kind)
        read = ToolCall(
            number, call.string("id") or "", called.needed("name"), called.string(INPUTS[kind]) or "", place=call.place
        )
        read.kind = cast("ToolKind", kind)
        if read.kind == "custom":
            self._custom.add(read.id)
        read.signature = signature_in(call.peek("extra_content"))
        if read.signature is not None:
            call.take("extra_content")
        read.extras = call.rest() or None
        return read

    def _function_call(self, function: Fields, message: Fields, number: int) -> ToolCall:
        name = function.needed("name")
        call_id = self._functions[name] = f"function_call_{message.path[-1]}"
        return ToolCall(number, call_id, name, function.string("arguments") or "", place=function.place)

    def result(self, message: Fields) -> ToolResult:
        call_id = message.string("tool_call_id") or ""
        result = ToolResult(call_id, self._said(message), message.string("name"), place=message.place)
        result.kind = "custom" if call_id in self._custom else "function"
        result.extras = message.rest() or None
        return result

    def _function_result(self, message: Fields) -> ToolResult:
        name = message.needed("name")
        result = ToolResult(self._functions.pop(name, ""), self._said(message), name, place=message.place)
        result.extras = message.rest() or None
        return result

    def _said(self, message: Fields) -> list[Text | Media | Aside]:
        """What a tool said."""
        parts = self.content(message)
        for number, part in enumerate(parts):
            if not isinstance(part, Text | Media | Aside):
                raise message.wrong("a tool can't refuse", f"content[{number}]")
        return cast("list[Text | Media | Aside]", parts)


def _signing(reasoning: list[Part], calls: list[ToolCall]) -> list[Part]:
    """The reasoning without what signs a call: encrypted details that have the id of one (Gemini behind OpenRouter)."""
    by_id: dict[str, ToolCall] = {call.id: call for call in calls if call.signature is None}
    kept: list[Part] = []
    for part in reasoning:
        call = None
        if isinstance(part, RedactedReasoning) and part.extras and part.extras.keys() == {"id"}:
            signed = part.extras["id"]
            call = by_id.pop(signed, None) if isinstance(signed, str) else None
        if call is None or not isinstance(part, RedactedReasoning):
            kept.append(part)
        else:
            call.signature = part.opaque
    return kept
