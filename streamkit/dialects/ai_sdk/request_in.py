"""The AI SDK's request, a list of ``UIMessage``, to the neutral conversation.

A message of the assistant's may hold several steps, each of which is a turn, and the results of its calls the user's turn
behind it. Model, system message and tools are the application's own: they stand in further members where assistant-ui or a
program writes them. A call whose input was still streaming was cut, and is dropped and counted: no path of the SDK runs or
converts it.

What a user interface alone shows (sources, data, metadata) is kept for this dialect, and a counted loss elsewhere. Whether a
text was still streaming (``state``) is passed over.

Source: ui-protocols.md §1.4, §1.8; ai 7.0.173, ``convertToModelMessages``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Options,
    Part,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.ai_sdk.media import kind_of
from streamkit.dialects.ai_sdk.provider_metadata import Read, read_metadata
from streamkit.dialects.ai_sdk.wire import (
    DENIED,
    DYNAMIC_TOOL,
    EXCHANGE,
    FILE,
    NOT_ALLOWED,
    OPTIONS,
    RESPONDED,
    STEERING,
    STEP_START,
    SYSTEM,
    TOOL,
    VENDOR,
)
from streamkit.dialects.bodies.blocks_as_text import CONTENT
from streamkit.dialects.bodies.request_reader import RequestReader, read_options, unknown_part
from streamkit.dialects.members.fields import Fields, is_data_uri, media_of
from streamkit.events import Aside
from streamkit.text.quoting import quoted

#: The states of a call that has no outcome yet, the least of them first.
STATES: Final = ("input-streaming", "input-available", "approval-requested", RESPONDED)
#: The beginnings of types of parts of a user's message that are only for a user interface: the AI SDK sends none of them.
SHOWN: Final = ("data-", "source-", STEP_START, TOOL, DYNAMIC_TOOL, "reasoning", "custom")


class AISDKRequestReader(RequestReader):
    """Reads one request."""

    dialect = VENDOR
    exchange = EXCHANGE
    _calls = 0  # of the step at hand

    def begun(self, fields: Fields) -> Request:
        return Request(self.dialect, fields.string("model"), stream=True)

    def options(self, fields: Fields) -> Options:
        settings = fields.fields("callSettings") if isinstance(fields.peek("callSettings"), dict) else None
        return Options() if settings is None else read_options(settings, OPTIONS)

    def tools(self, fields: Fields) -> list[Tool]:
        """The tools by name, as assistant-ui has them; a list of anything else is the application's own."""
        tools = fields.fields("tools") if isinstance(fields.peek("tools"), dict) else None
        return [] if tools is None else [self._tool(name, tools.needed_fields(name)) for name in tools.names]

    def _tool(self, name: str, tool: Fields) -> Tool:
        return Tool(name, tool.string("description"), tool.mapping("parameters"), extras=tool.rest() or None)

    # -- messages --------------------------------------------------------------------------------------------------

    def read_turns(self, fields: Fields) -> None:
        if system := fields.string(SYSTEM):
            self.turns.append(Turn("system", [Text(system)], native_role=SYSTEM))
        for message in fields.needed_each("messages"):
            role, name = message.needed("role"), message.string("id") or ""
            begin = len(self.turns)
            if role == "assistant":
                self._assistant(message, name)
            elif role in {"system", "user"}:
                parts = [self._part(part, part.needed("type")) for part in message.needed_each("parts")]
                self.turns.append(Turn("system" if role == "system" else "user", [*parts], native_ids=(name,)))
            else:
                raise message.wrong(f"there is no role {quoted(role)}", "role")
            self.turns[begin].extras = message.rest() or None

    def _assistant(self, message: Fields, name: str) -> None:
        """The steps of a message: what the model said, and the results of its calls."""
        begin = len(self.turns)
        answer: list[Part] = []
        results: list[Part] = []
        parts = list(message.needed_each("parts"))
        for part in self._latest_states(parts):
            kind = part.needed("type")
            if kind in {STEP_START, STEERING}:
                self._end_step(answer, results, name)
                answer, results = [], []
            if kind == STEERING:
                steering = [self._part(each, each.needed("type")) for each in part.needed_each("parts")]
                ids = (name, part.string("id") or "")
                self.turns.append(Turn("user", [*steering], native_role=STEERING, native_ids=ids))
            elif kind == DYNAMIC_TOOL or kind.startswith(TOOL):
                self._call(part, kind, answer, results)
            elif kind == "reasoning":
                answer += self._reasoning(part)
            elif kind != STEP_START:
                answer.append(self._part(part, kind))
            elif part.rest():  # the mark between steps is made anew
                self.report.lose("metadata", what=kind)
        self._end_step(answer, results, name)
        if len(self.turns) == begin:
            self.turns.append(Turn("assistant", native_ids=(name,)))

    def _latest_states(self, parts: Sequence[Fields]) -> list[Fields]:
        """Return the parts of a message without older states of a call.

        A client that answers an approval, or that runs a tool, may add a part instead of changing the one that is there. Two
        parts with an outcome each, of different inputs, are two calls of a provider that gives an id twice.
        """
        latest: dict[tuple[str, str], int] = {}
        older: set[int] = set()
        for number, part in enumerate(parts):
            kind, call_id = part.peek("type"), part.peek("toolCallId")
            name = part.peek("toolName") if kind == DYNAMIC_TOOL else kind
            if not (isinstance(name, str) and isinstance(call_id, str)):
                continue
            key = (call_id, name.removeprefix(TOOL))
            before = latest.get(key)
            if before is None:
                latest[key] = number
                continue
            progress, rank = _progress(part), _progress(parts[before])
            if progress == rank == len(STATES) and part.peek("input") != parts[before].peek("input"):
                latest[key] = number
                continue
            self.report.repair("said_twice")
            older.add(before if progress >= rank else number)
            latest[key] = number if progress >= rank else before
        return [part for number, part in enumerate(parts) if number not in older]

    def _end_step(self, answer: list[Part], results: list[Part], name: str) -> None:
        self._calls = 0
        if answer:
            self.turns.append(Turn("assistant", answer, native_ids=(name,)))
        if results:
            self.turns.append(Turn("user", results, native_ids=(name,)))

    def _part(self, part: Fields, kind: str) -> Text | Media | Aside:
        if kind == "text":
            text, read = part.needed("text"), self._metadata(part, "providerMetadata", is_empty=False)
            part.take("state")
            signature = read.signatures[0] if read.signatures else None
            return Text(text, signature, extras=part.rest() or None)
        if kind == FILE:
            return self._file(part)
        unknown = unknown_part(VENDOR, kind, part)
        return evolve(unknown, place="") if kind.startswith(SHOWN) else unknown

    def _file(self, part: Fields) -> Media:
        """A file at a URL, which may hold it, or by its id at a provider."""
        media_type, url, reference = part.string("mediaType"), part.string("url"), part.peek("providerReference")
        media = Media(kind_of(media_type), media_type, name=part.string("filename"), place=part.place)
        if (
            isinstance(reference, dict)
            and len(reference) == 1
            and isinstance(each := next(iter(reference.values())), str)
        ):
            media.file_id = each
        elif url is None:
            raise part.wrong("text is needed, and there is none", "url")
        elif is_data_uri(url):
            declared, media.data = media_of(url, part.at("url"))
            media.media_type = media_type if media_type and "/" in media_type else declared
        else:
            media.url = url
        media.extras = part.rest() or None
        return media

    def _reasoning(self, part: Fields) -> list[Part]:
        """Thinking, and what only a vendor can read of it."""
        text = part.string("text") or ""
        read = self._metadata(part, "providerMetadata", is_empty=not text)
        part.take("state")
        extras = part.rest() or None
        parts: list[Part] = [RedactedReasoning(opaque) for opaque in read.redacted]
        if text or read.signatures or not parts:
            parts.insert(0, Reasoning(text, signature=read.signatures[0] if read.signatures else None))
        first = parts[0]
        if isinstance(first, Reasoning | RedactedReasoning):
            first.extras = extras
        return parts

    def _metadata(self, part: Fields, name: str, *, is_empty: bool) -> Read:
        """What only a vendor can read; all else stays where it is."""
        metadata = part.mapping(name)
        read = read_metadata(metadata or {}, is_empty=is_empty)
        for _ in read.signatures[1:]:  # a part has one place
            self.report.lose("reasoning_signature")
        if read.others:
            part.replace(name, read.others)
        return read

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, part: Fields, kind: str, answer: list[Part], results: list[Part]) -> None:
        """A call, and the result that its part has."""
        if part.peek("providerExecuted") is True:
            answer.append(Aside(VENDOR, "server_tool", f"{CONTENT}{kind}", {"type": kind, **part.rest()}))
            return
        state = part.needed("state")
        name = part.needed("toolName") if kind == DYNAMIC_TOOL else kind.removeprefix(TOOL)
        if state == "input-streaming":
            self.report.lose("call_withheld", what=name)
            part.rest()
            return
        call = ToolCall(self._calls, part.needed("toolCallId"), name, "")
        call.place = part.place
        result = self._result(part, call, state)
        self._input(part, call, state)
        signatures = self._metadata(part, "callProviderMetadata", is_empty=False).signatures
        call.signature = signatures[0] if signatures else None
        call.extras = ({"type": kind} if kind == DYNAMIC_TOOL else {}) | part.rest() or None
        answer.append(call)
        self._calls += 1
        if result is not None:
            results.append(result)

    def _input(self, part: Fields, call: ToolCall, state: str) -> None:
        """The arguments: the text of the input as it stands, or a text that is the input."""
        name = "rawInput" if state == "output-error" and "input" not in part and "rawInput" in part else "input"
        value = part.peek(name)
        if isinstance(value, str):
            call.arguments = str(part.take(name))
            call.kind = "function" if state == "output-error" else "custom"
        elif value is not None:
            call.arguments = part.text_of(name)

    def _result(self, part: Fields, call: ToolCall, state: str) -> ToolResult | None:
        """What the tool said, or why it did not; None for a call that waits."""
        approval = part.peek("approval")
        refused = isinstance(approval, dict) and approval.get("approved") is False
        result = ToolResult(call.id, name=call.name, place=part.place)
        match state:
            case "output-available":
                if part.peek("preliminary") is True:
                    return None
                return self._output(part, result)
            case "output-error":
                text = part.string("errorText") or ""
            case _ if state == DENIED or (state == RESPONDED and refused):
                reason = approval.get("reason") if isinstance(approval, dict) else None
                text, result.native = reason if isinstance(reason, str) and reason else NOT_ALLOWED, state
            case "input-available" | "approval-requested":
                return None
            case _ if state == RESPONDED:
                return None
            case _:
                raise part.wrong(f"there is no state {quoted(state)}", "state")
        result.parts, result.is_error = [Text(text)], True
        return result

    def _output(self, part: Fields, result: ToolResult) -> ToolResult:
        value: Any = part.peek("output")
        if value is None:
            return result
        if isinstance(value, str):
            return evolve(result, parts=[Text(str(part.take("output")))] if value else [])
        return evolve(result, parts=[Text(part.text_of("output"))], native="output")


def _progress(part: Fields) -> int:
    """Return how far a call is by the state of its part; an outcome is the furthest."""
    state = part.peek("state")
    if state == "output-available" and part.peek("preliminary") is True:
        state = RESPONDED
    return STATES.index(state) if state in STATES else len(STATES)
