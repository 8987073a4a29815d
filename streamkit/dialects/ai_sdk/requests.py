"""Read and write the AI SDK's request, a list of ``UIMessage``.

An assistant message may have several steps. Each becomes an assistant turn, and the results of its calls a user turn after it.
Model, system message and tools are the application's: assistant-ui and some programs write them in further members. A call
whose input was still streaming is truncated, so it is dropped and counted: the SDK never runs or converts it either.

Parts that are only for a user interface (sources, data, metadata) are kept for this dialect, and are a counted loss for
others. Whether a text was still streaming (``state``) is ignored.

Before a request is written, everything that a route does not take (``capabilities``) is dropped (``translation/lowering``). A
result is in the part of its call, so all turns between two user messages are one assistant message, with a step for each. The
model and the tools (by name) are members next to the messages, as assistant-ui writes them; a route may ignore them. The route
chooses its options itself, and the tools that may be called are the only ones offered.

Source: ui-protocols.md §1.4, §1.8; ai 7.0.173, ``convertToModelMessages``, ``validateUIMessages``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve

from streamkit.conversation.media import data_uri, kind_of_type, media_type_of
from streamkit.conversation.messages import (
    Extras,
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
from streamkit.dialects.ai_sdk import wire
from streamkit.dialects.lowering import ANYBODY, Capabilities, Lowering, Place, told_by
from streamkit.dialects.members.fields import (
    CONTENT,
    Fields,
    RequestReader,
    add_missing,
    is_data_uri,
    media_of,
    members_of,
    read_options,
    unknown_part,
    without_none,
)
from streamkit.dialects.members.values import details_of
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams.approvals import (
    APPROVAL,
    MADE_ID,
    Approval,
    answer_in,
    answer_text,
    approval_in,
    is_approval,
)
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import check_arguments

#: The states of a call without an outcome, from the earliest to the latest.
STATES: Final = ("input-streaming", "input-available", "approval-requested", wire.RESPONDED)
#: The beginnings of part types in user messages that are only for a user interface: the AI SDK sends none to a model.
SHOWN: Final = ("data-", "source-", wire.STEP_START, wire.TOOL, wire.DYNAMIC_TOOL, "reasoning", "custom")
Message: TypeAlias = dict[str, Any]
_REFUSED: Final = frozenset({wire.DENIED, wire.RESPONDED})  # the client did not run the call
FAILED: Final = "Error"  # the ``errorText`` of a tool that failed without a message


# -- reading -----------------------------------------------------------------------------------------------------------


class AISDKRequestReader(RequestReader):
    """Reads one request."""

    dialect = wire.VENDOR
    exchange = wire.EXCHANGE
    _calls = 0  # the number of calls in the current step

    def begun(self, fields: Fields) -> Request:
        return Request(self.dialect, fields.string("model"), stream=True)

    def options(self, fields: Fields) -> Options:
        settings = fields.fields("callSettings") if isinstance(fields.peek("callSettings"), dict) else None
        return Options() if settings is None else read_options(settings, wire.OPTIONS)

    def tools(self, fields: Fields) -> list[Tool]:
        """Read the tools by name, in assistant-ui's form. Anything else in ``tools`` is the application's, and is ignored."""
        tools = fields.fields("tools") if isinstance(fields.peek("tools"), dict) else None
        return [] if tools is None else [self._tool(name, tools.needed_fields(name)) for name in tools.names]

    def _tool(self, name: str, tool: Fields) -> Tool:
        return Tool(name, tool.string("description"), tool.mapping("parameters"), extras=tool.rest() or None)

    def read_turns(self, fields: Fields) -> None:
        if system := fields.string(wire.SYSTEM):
            self.turns.append(Turn("system", [Text(system)], native_role=wire.SYSTEM))
        for message in fields.needed_each("messages"):
            role, name = message.needed("role"), message.string("id") or ""
            begin = len(self.turns)
            if role == "assistant":
                self._assistant(message, name)
            elif role in {"system", "user"}:
                parts = [self._part(part, part.needed("type")) for part in message.needed_each("parts")]
                self.turns.append(Turn("system" if role == "system" else "user", [*parts], native_ids=(name,)))
            else:
                raise message.wrong(f"unknown role {quoted(role)}; must be 'system', 'user' or 'assistant'", "role")
            self.turns[begin].extras = message.rest() or None

    def _assistant(self, message: Fields, name: str) -> None:
        """Read the steps of an assistant message: the model's output, and the results of its calls."""
        begin = len(self.turns)
        answer: list[Part] = []
        results: list[Part] = []
        parts = list(message.needed_each("parts"))
        for part in self._latest_states(parts):
            kind = part.needed("type")
            if kind in {wire.STEP_START, wire.STEERING}:
                self._end_step(answer, results, name)
                answer, results = [], []
            if kind == wire.STEERING:
                steering = [self._part(each, each.needed("type")) for each in part.needed_each("parts")]
                ids = (name, part.string("id") or "")
                self.turns.append(Turn("user", [*steering], native_role=wire.STEERING, native_ids=ids))
            elif kind == wire.DYNAMIC_TOOL or kind.startswith(wire.TOOL):
                self._call(part, kind, answer, results)
            elif kind == "reasoning":
                answer += self._reasoning(part)
            elif kind != wire.STEP_START:
                answer.append(self._part(part, kind))
            elif part.rest():  # the encoder writes the mark between steps without other members
                self.report.lose("metadata", what=kind)
        self._end_step(answer, results, name)
        if len(self.turns) == begin:
            self.turns.append(Turn("assistant", native_ids=(name,)))

    def _latest_states(self, parts: Sequence[Fields]) -> list[Fields]:
        """Return the parts of a message without older states of a call.

        A client that answers an approval or runs a tool may add a part instead of changing the existing one. Two parts that
        both have an outcome, with different inputs, are two calls: some providers give one id twice.
        """
        latest: dict[tuple[str, str], int] = {}
        older: set[int] = set()
        for number, part in enumerate(parts):
            kind, call_id = part.peek("type"), part.peek("toolCallId")
            name = part.peek("toolName") if kind == wire.DYNAMIC_TOOL else kind
            if not (isinstance(name, str) and isinstance(call_id, str)):
                continue
            key = (call_id, name.removeprefix(wire.TOOL))
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
        if kind == wire.FILE:
            return self._file(part)
        unknown = unknown_part(wire.VENDOR, kind, part)
        return evolve(unknown, place="") if kind.startswith(SHOWN) else unknown

    def _file(self, part: Fields) -> Media:
        """Read a file at a URL (which may be a ``data:`` URI), or by its id at a provider."""
        media_type, url, reference = part.string("mediaType"), part.string("url"), part.peek("providerReference")
        media = Media(kind_of_type(media_type), media_type, name=part.string("filename"), place=part.place)
        ids = [*reference.values()] if isinstance(reference, dict) else []
        if len(ids) == 1 and isinstance(ids[0], str):
            media.file_id = ids[0]
        elif url is None:
            raise part.wrong("is missing; must be a string", "url")
        elif is_data_uri(url):
            declared, media.data = media_of(url, part.at("url"))
            media.media_type = media_type if media_type and "/" in media_type else declared
        else:
            media.url = url
        media.extras = part.rest() or None
        return media

    def _reasoning(self, part: Fields) -> list[Part]:
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

    def _metadata(self, part: Fields, name: str, *, is_empty: bool) -> wire.Read:
        """Read the opaque values in ``providerMetadata``; its other members stay in the part."""
        metadata = part.mapping(name)
        read = wire.read_metadata(metadata or {}, is_empty=is_empty)
        for _ in read.signatures[1:]:  # a part has room for one signature
            self.report.lose("reasoning_signature")
        if read.others:
            part.replace(name, read.others)
        return read

    def _call(self, part: Fields, kind: str, answer: list[Part], results: list[Part]) -> None:
        if (call := _approval(part, kind, self._calls)) is not None:
            answer.append(call)
            self._calls += 1
            given = part.peek("approval")
            if isinstance(given.get("approved"), bool):
                words = answer_text(given["approved"], given.get("reason"))
                results.append(ToolResult(call.id, [Text(words)], place=part.place))
            part.rest()
            return
        if part.peek("providerExecuted") is True:
            answer.append(Aside(wire.VENDOR, "server_tool", f"{CONTENT}{kind}", {"type": kind, **part.rest()}))
            return
        state = part.needed("state")
        name = part.needed("toolName") if kind == wire.DYNAMIC_TOOL else kind.removeprefix(wire.TOOL)
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
        call.extras = ({"type": kind} if kind == wire.DYNAMIC_TOOL else {}) | part.rest() or None
        answer.append(call)
        self._calls += 1
        if result is not None:
            results.append(result)

    def _input(self, part: Fields, call: ToolCall, state: str) -> None:
        """Read the arguments: the JSON text of the input unchanged, or an input that is a string."""
        name = "rawInput" if state == "output-error" and "input" not in part and "rawInput" in part else "input"
        value = part.peek(name)
        if isinstance(value, str):
            call.arguments = str(part.take(name))
            call.kind = "function" if state == "output-error" else "custom"
        elif value is not None:
            call.arguments = part.text_of(name)

    def _result(self, part: Fields, call: ToolCall, state: str) -> ToolResult | None:
        """Read the output or the error of a tool; None for a call without an outcome."""
        approval = part.peek("approval")
        refused = isinstance(approval, dict) and approval.get("approved") is False
        result = ToolResult(call.id, name=call.name, place=part.place)
        match state:
            case "output-available" if part.peek("preliminary") is not True:
                return self._output(part, result)
            case "output-error":
                text = part.string("errorText") or ""
            case _ if state == wire.DENIED or (state == wire.RESPONDED and refused):
                reason = approval.get("reason") if isinstance(approval, dict) else None
                text, result.native = reason if isinstance(reason, str) and reason else wire.NOT_ALLOWED, state
            case "output-available" | "input-available" | "approval-requested" | wire.RESPONDED:
                return None
            case _:
                raise part.wrong(f"unknown state {quoted(state)} of a tool call", "state")
        result.parts, result.is_error = [Text(text)], True
        return result

    def _output(self, part: Fields, result: ToolResult) -> ToolResult:
        value: Any = part.peek("output")
        if value is None:
            return result
        if isinstance(value, str):
            return evolve(result, parts=[Text(str(part.take("output")))] if value else [])
        return evolve(result, parts=[Text(part.text_of("output"))], native="output")


def _approval(part: Fields, kind: str, number: int) -> ToolCall | None:
    """Return the call for a request for approval that a response of streamkit made; None for any other call."""
    call_id, given = part.peek("toolCallId"), part.peek("approval")
    if kind != wire.DYNAMIC_TOOL or not isinstance(given, dict) or not is_approval(str(call_id), APPROVAL):
        return None
    value: Any = part.peek("input")
    text = value if isinstance(value, str) else part.text_of("input") if value is not None else ""
    server = details_of(details_of(part.peek_all(), "callProviderMetadata"), MADE).get(wire.SERVER)
    tool = str(part.peek("toolName")).removeprefix(wire.MCP)
    approval = Approval(str(call_id).removeprefix(MADE_ID), str(server or ""), tool, text)
    return ToolCall(number, approval.call_id, APPROVAL, approval.call_arguments, place=part.place)


def _progress(part: Fields) -> int:
    """Return how far a call has got, by the state of its part; an outcome is the furthest."""
    state = part.peek("state")
    if state == "output-available" and part.peek("preliminary") is True:
        state = wire.RESPONDED
    return STATES.index(state) if state in STATES else len(STATES)


# -- what a route takes ------------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media that the route can reach, else None and a loss."""
    elsewhere = media.data is None and media.url is None and media.file_id is not None  # at another provider
    if elsewhere and place != "result":
        to.lose("media", f"{media.kind}, by an id")
        return None
    return own_media(media, place, to)


def own_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media that can be part of a message, else None and a loss. Results are text only."""
    nowhere = media.data is None and media.url is None and media.file_id is None
    if nowhere or place == "result":
        to.lose("media", media.kind)
        return None
    to.lose_look(media)
    return media


def own_aside(aside: Aside, place: Place) -> bool:
    """Return whether an aside was read from a message, and not from a chunk of a stream."""
    return place != "result" and aside.type.startswith(CONTENT)


FOREIGN: Final = Capabilities(
    dialect=wire.VENDOR,
    vendor=wire.VENDOR,
    title="the AI SDK",
    native_roles=False,
    signs_reasoning=ANYBODY,
    signs_texts=ANYBODY,
    signs_calls=ANYBODY,
    unsigned_reasoning=True,
    arguments="any",
    custom_calls=True,
    asides=own_aside,
    media=fit_media,
    empty_turns=True,
    results="apart",
    some_tools=True,
    offered_to="a route of the AI SDK",
    strict_tools=False,
)
OWN: Final = evolve(FOREIGN, media=own_media, most_marks=0, options=frozenset(wire.OPTIONS))
capabilities: Final = told_by(OWN, FOREIGN)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    exchange, messages = request.exchange, Messages(report)
    for turn in request.turns:
        messages.add(turn)
    tools, settings = {tool.name: _tool(tool) for tool in request.tools}, members_of(request.options, wire.OPTIONS)
    body = {
        "id": exchange.get("id") or random_id("chat_"),
        "messages": messages.written,
        "trigger": exchange.get("trigger") or "submit-message",
        **{name: value for name, value in exchange.items() if name not in {"id", "trigger", wire.ANSWER_ID}},
        **without_none(model=request.model or None, tools=tools or None, callSettings=settings or None),
    }
    return add_missing(body, request.extras)


def _tool(tool: Tool) -> dict[str, Any]:
    return add_missing(without_none(description=tool.description, parameters=tool.parameters), tool.extras)


class Messages:
    """Writes the messages of one request, and numbers those without an id."""

    def __init__(self, report: StreamReport) -> None:
        self.written: list[Message] = []
        self._report = report
        self._calls: dict[str, dict[str, Any]] = {}  # the parts of calls, by the call's id
        self._message: Message | None = None  # the assistant message that the next step may join
        self._ids: tuple[str, ...] = ()  # the ids of the turns in that message

    def add(self, turn: Turn) -> None:
        """Write a turn; skip the system text, which has its own member."""
        if turn.role == "assistant":
            self._add_step(turn)
        elif turn.parts and isinstance(turn.parts[0], ToolResult):
            for part in turn.parts:
                self._end_call(part)
        elif turn.native_role == wire.STEERING and self._message is not None:
            parts = [_part(part) for part in turn.parts]
            self._message["parts"].append({"type": wire.STEERING, "id": turn.native_ids[-1], "parts": parts})
        elif turn.native_role != wire.SYSTEM:
            self._begin(turn)["parts"] += [_part(part) for part in turn.parts]
            self._message = None

    def _begin(self, turn: Turn) -> Message:
        name = turn.native_ids[0] if turn.native_ids else f"message_{len(self.written) + 1}"
        message = add_missing({"id": name, "role": turn.role, "parts": []}, turn.extras)
        self.written.append(message)
        return message

    def _add_step(self, turn: Turn) -> None:
        """Write a step: into the current assistant message, or a new one if the ids show that the client had several."""
        if self._message is None or turn.native_ids != self._ids:
            self._message, self._ids = self._begin(turn), turn.native_ids
        parts = []
        for part in turn.parts:
            written = _part(part)
            if isinstance(part, ToolCall):
                self._calls[part.id] = written
            parts.append(written)
        if parts:
            self._message["parts"] += [{"type": wire.STEP_START}, *parts]

    def _end_call(self, result: Part) -> None:
        """Write a result into the part of its call."""
        if not isinstance(result, ToolResult):
            raise TypeError(f"no result is a {type(result).__name__}")
        part = self._calls.get(result.call_id)
        if part is None:  # the call is one that this dialect does not write
            self._report.lose("metadata", what="result")
        elif is_approval(result.call_id, APPROVAL) and isinstance(given := part.get("approval"), dict):
            approved, reason = answer_in(result.text, failed=result.is_error)
            given |= {"approved": approved} | ({"reason": reason} if reason else {})
            part["state"] = wire.RESPONDED
        else:
            part.update(_outcome(result))
            add_missing(part, result.extras)


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            written = {"type": "text", "text": part.text, **wire.metadata_of("text", part.signature)}
        case Reasoning():
            written = {"type": "reasoning", "text": part.text, **wire.metadata_of("reasoning", part.signature)}
        case RedactedReasoning():
            written = {"type": "reasoning", "text": "", **wire.metadata_of("opaque", part.opaque)}
        case Media():
            written = _file(part)
        case ToolCall():
            written = _call(part)
        case Aside():
            return dict(part.raw)
        case _:
            raise TypeError(f"a message can't contain a {type(part).__name__}")
    return add_missing(written, part.extras)


def _file(media: Media) -> dict[str, Any]:
    """Return a file part with a URL, or with the bytes as a ``data:`` URI."""
    url = media.url or ""
    if media.data is not None:
        url = data_uri(media)
    kind = media.media_type or (media.kind if media.kind != "file" and media.data is None else media_type_of(media))
    return {"type": wire.FILE, "mediaType": kind, **without_none(filename=media.name), "url": url}


def _asked(approval: Approval) -> dict[str, Any]:
    """Return the part for a request for approval: of a call of this dialect, or of another provider's tool."""
    own = wire.approval_of_id(approval.id)
    request, call_id, is_executed, is_dynamic = own or (approval.id, approval.call_id, True, True)
    tool = approval.tool if own else f"{wire.MCP}{approval.tool}"
    is_json = check_arguments(approval.arguments).kind == "complete"
    return {
        **({"type": wire.DYNAMIC_TOOL, "toolName": tool} if is_dynamic else {"type": f"{wire.TOOL}{tool}"}),
        "toolCallId": call_id,
        "state": "approval-requested",
        "input": orjson.Fragment(approval.arguments.strip().encode()) if is_json else approval.arguments,
        **({"providerExecuted": True} if is_executed else {}),
        **({} if own else {"callProviderMetadata": {MADE: {wire.SERVER: approval.server}}}),
        "approval": {"id": request},
    }


def _call(call: ToolCall) -> dict[str, Any]:
    if (approval := approval_in(call.id, call.name, call.arguments)) is not None:
        return _asked(approval)
    extras = call.extras or {}
    named: dict[str, Any] = {"type": f"{wire.TOOL}{call.name}"}
    if extras.get("type") == wire.DYNAMIC_TOOL:
        named = {"type": wire.DYNAMIC_TOOL, "toolName": call.name}
    part = {**named, "toolCallId": call.id, "state": _waiting(extras), "input": _input(call)}
    return part | wire.metadata_of("call", call.signature, "callProviderMetadata")


def _waiting(extras: Extras) -> str:
    """Return the state of a call without a result."""
    if extras.get("preliminary") is True:
        return "output-available"
    approval = extras.get("approval")
    if not isinstance(approval, dict):
        return "input-available"
    return wire.RESPONDED if isinstance(approval.get("approved"), bool) else "approval-requested"


def _input(call: ToolCall) -> Any:
    """Return the arguments: as JSON if they are valid JSON, else as a string."""
    is_json = call.kind != "custom" and check_arguments(call.arguments).kind in {"complete", "not_an_object"}
    return orjson.Fragment(call.arguments.strip().encode()) if is_json else call.arguments


def _outcome(result: ToolResult) -> dict[str, Any]:
    """Return the members that a result sets in the part of its call."""
    if not result.is_error:
        is_json = result.native == "output"
        return {
            "state": "output-available",
            "output": orjson.Fragment(result.text.encode()) if is_json else result.text,
        }
    if result.native in _REFUSED:
        return {"state": result.native}
    return {"state": "output-error", "errorText": result.text or FAILED}
