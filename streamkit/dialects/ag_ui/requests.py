"""Read and write AG-UI's request, ``RunAgentInput``.

No member names a model, so the model is that of ``forwardedProps`` or of the route. The response is always a stream. The
application's ``context`` is read as a system message before the others. The application's state is for agents and never
reaches a model. Its answer to an interrupt (``resume``) is the result of a call, if streamkit made the interrupt of a call.

A reasoning message becomes a part of the assistant turn after it. An activity message is only for the user interface: it is
dropped and counted.

Before a request is written, everything that agents do not take (``capabilities``) is dropped (``translation/lowering``). The
ids of the run and of its messages are the client's, or made up. Reasoning is written as a message before the assistant's,
opaque reasoning as one with no text; each call and each message has a member for data that only a vendor can read. The agent
chooses its options itself: no member sets them, and the tools that may be called are the only ones offered. A model is named
in ``forwardedProps``, which agents may ignore.

Source: ui-protocols.md §2.6; @ag-ui/core 1.0.0, ``RunAgentInputSchema``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, dropwhile
from typing import Any, Final, TypeAlias, cast

from attrs import evolve

from streamkit.conversation.media import KINDS, TYPES, media_type_of
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
from streamkit.dialects.ag_ui import wire
from streamkit.dialects.ag_ui.wire import CONTEXT, EXCHANGE, NOT_RUN_ID, VENDOR
from streamkit.dialects.lowering import ANYBODY, Capabilities, Lowering, Place, of_parts, told_by
from streamkit.dialects.members.fields import (
    CONTENT,
    Fields,
    TurnReader,
    add_missing,
    base64_of,
    content_of,
    function_call,
    function_tool,
    is_data_uri,
    media_of,
    plain_or_list,
    unknown_part,
    without_none,
)
from streamkit.dialects.members.values import json_value
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams.approvals import APPROVED, answer_in, answer_text, approval_in, is_approval
from streamkit.dialects.vocabulary.sealed_reasoning import signature_text, unseal, unsealed
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.text.quoting import quoted

Message: TypeAlias = dict[str, Any]
FAILED: Final = "Error"  # the ``error`` of a tool that failed without a message


# -- reading -----------------------------------------------------------------------------------------------------------


class AgUiRequestReader(TurnReader):
    """Reads one request."""

    dialect = VENDOR
    exchange = EXCHANGE

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._thoughts: list[Part] = []  # reasoning for the next assistant turn
        self._ids: list[str] = []  # the ids of the reasoning messages

    def begun(self, fields: Fields) -> Request:
        props = fields.fields("forwardedProps") if isinstance(fields.peek("forwardedProps"), dict) else None
        return Request(self.dialect, props.string("model") if props is not None else None, stream=True)

    def options(self, _fields: Fields) -> Options:
        return Options()

    def tool(self, tool: Fields) -> Tool:
        return function_tool(tool, tool)

    def read_turns(self, fields: Fields) -> None:
        if context := [f"{entry.needed('description')}: {entry.needed('value')}" for entry in fields.each(CONTEXT)]:
            self.turns.append(Turn("system", [Text(text) for text in context], native_role=CONTEXT))
        for message in fields.needed_each("messages"):
            self._read(message, message.needed("role"))
        self._end_thoughts()
        if isinstance(entries := fields.peek(wire.RESUME), list):
            fields.replace(wire.RESUME, self._resumed(entries) or None)

    def _resumed(self, entries: list[Any]) -> list[Any]:
        """Add a result for each entry that answers a call for approval of a streamkit response. Return the other entries."""
        parts = [(part, turn) for turn in self.turns for part in turn.parts]
        asking = {
            part.id: id(turn) for part, turn in parts if isinstance(part, ToolCall) and is_approval(part.id, part.name)
        }
        answered = {part.call_id for part, _ in parts if isinstance(part, ToolResult)}
        others: list[Any] = []
        results: dict[int, list[Part]] = {}  # by the identity of the turn with the calls
        for entry in entries:
            name = entry.get("interruptId") if isinstance(entry, dict) else None
            if not isinstance(name, str) or name not in asking:
                others.append(entry)
            elif name in answered:
                self.report.repair("said_twice")
            else:
                answered.add(name)
                results.setdefault(asking[name], []).append(ToolResult(name, [Text(_words(entry))], native=wire.RESUME))
                for member in entry.keys() - {"interruptId", "status", "payload"}:
                    self.report.lose("metadata", what=f"{wire.RESUME}.{member}")
        turns, self.turns[:] = [*self.turns], []
        for turn in turns:
            before = self.turns[-1] if self.turns else turn
            found = results.pop(id(before), None)
            if found and any(isinstance(part, ToolResult) for part in turn.parts):
                turn.parts.extend(found)
            elif found:
                self.turns.append(Turn("user", found))
            self.turns.append(turn)
        self.turns.extend(Turn("user", found) for found in results.values())
        return others

    def _read(self, message: Fields, role: str) -> None:
        message_id = message.string("id") or ""
        if role == "reasoning":
            self._results = None
            self._ids.append(message_id)
            self._thoughts.append(self._thought(message))
            return
        if role == "activity":
            self.report.lose("metadata", what=role)
            return
        if role != "assistant":
            self._end_thoughts()
        if role == "tool":
            result = self.result(message)
            # streamkit writes such ids in results for calls that were not run
            result.is_error = result.is_error or message_id.startswith(NOT_RUN_ID)
            result.native_id, result.extras = message_id, message.rest() or None
            self.join(result)
            return
        self._results = None
        turn = self.turn(message, role)
        turn.parts[:0] = self._thoughts
        turn.native_ids = (*self._ids, message_id)
        turn.name, turn.extras = message.string("name"), message.rest() or None
        self.turns.append(turn)
        self._thoughts, self._ids = [], []

    def _end_thoughts(self) -> None:
        """Add a turn with only reasoning if no assistant message follows the reasoning messages."""
        if self._thoughts:
            self.turns.append(Turn("assistant", self._thoughts, native_ids=tuple(self._ids)))
            self._thoughts, self._ids = [], []

    def _thought(self, message: Fields) -> Part:
        """Read a reasoning message: reasoning, or data that only a vendor can read."""
        text, value = message.string("content") or "", message.string("encryptedValue")
        extras = message.rest() or None
        if not value:
            return Reasoning(text, extras=extras)
        sealed, opaque = unseal(value), unsealed(value, VENDOR)
        if sealed is not None and not text and sealed.kind == "opaque":
            return RedactedReasoning(opaque, extras=extras)
        if sealed is not None and not text and sealed.kind in {"text", "part"}:
            return Text("", opaque, extras=extras)
        return Reasoning(text, signature=opaque, extras=extras)

    def turn(self, message: Fields, role: str) -> Turn:
        if role != "developer":
            return super().turn(message, role)
        return Turn("system", [*self.content(message)], native_role=role)

    def content(self, message: Fields) -> Sequence[Part]:
        return content_of(message, self._part)

    def _part(self, part: Fields) -> Text | Media | Aside:
        kind = part.needed("type")
        if kind == "text":
            return Text(part.needed("text"), extras=part.rest() or None)
        if kind == "binary" and "mimeType" in part:
            return self._binary(part)
        if kind not in KINDS:
            return unknown_part(VENDOR, kind, part)
        source = part.needed_fields("source")
        media = Media(KINDS[kind], source.string("mimeType"), place=part.place)
        value, at = source.needed("value"), source.at("value")
        match source.needed("type"):
            case "data":
                media.data = base64_of(value, at)
            case "url" if is_data_uri(value):
                media.media_type, media.data = media_of(value, at)
            case "url":
                media.url = value
            case "file":
                media.file_id = value
            case other:
                raise source.wrong(f"must be 'data', 'url' or 'file', not {quoted(other)}", "type")
        media.extras = part.rest() or None
        return media

    def _binary(self, part: Fields) -> Media:
        """Read media in the form of version 0, in which the media type says what kind they are."""
        media_type = part.needed("mimeType")
        kind = KINDS.get(media_type.partition("/")[0], "file")
        media = Media(kind, media_type, part.string("data"), part.string("url"), part.string("id"), place=part.place)
        media.name, media.extras = part.string("filename"), part.rest() or None
        if media.data is not None:
            base64_of(media.data, part.at("data"))
        elif media.url is None and media.file_id is None:
            raise part.wrong("must have `data`, `url` or `id`")
        return media

    def assistant(self, message: Fields) -> Turn:
        parts: list[Part] = []
        content, value = message.string("content"), message.string("encryptedValue")
        if content or value:
            parts.append(Text(content or "", unsealed(value, VENDOR) if value else None))
        parts += [self._call(call, number) for number, call in enumerate(message.each("toolCalls"))]
        return Turn("assistant", parts)

    def _call(self, call: Fields, number: int) -> ToolCall:
        read = function_call(call, number)
        if value := call.string("encryptedValue"):
            read.signature = unsealed(value, VENDOR)
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        result = ToolResult(message.string("toolCallId") or "", place=message.place)
        result.parts = content_of(message, self._part)
        error = message.string("error")
        if error and error not in result.text:
            result.parts.append(Text(error))
        result.is_error = error is not None
        return result


def _words(entry: Mapping[str, Any]) -> str:
    """Return the text of the result for a client's answer to a request for approval."""
    payload = entry.get("payload")
    given = payload if isinstance(payload, dict) else {"approved": payload is True or payload == APPROVED}
    said = [given[name] for name in ("approved", "approve") if name in given]
    approved = entry.get("status") != "cancelled" and bool(said) and all(each is True for each in said)
    return answer_text(approved, given.get("reason"))


# -- what agents take --------------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media that the agent can reach, else None and a loss. Agents of version 0 take results as text only."""
    stored = place == "user" and media.file_id is not None  # only another provider has the bytes
    if stored or place == "result":
        to.lose("media", f"{media.kind}, by an id" if stored else media.kind)
        return None
    return own_media(media, place, to)


def own_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return a user's or a result's media without their detail settings. In other places, count a loss and return None."""
    if place in {"system", "assistant"} or (media.data or media.url or media.file_id) is None:
        to.lose("media", media.kind)
        return None
    to.lose_look(media, "name")
    return media


def fit(part: Part, place: Place, to: Lowering) -> Part | None:
    """Drop parts and signatures that messages have no place for; each is a loss."""
    match part:
        case Text(signature=Opaque() as signed) if place != "assistant":
            to.lose("reasoning_signature", signed.vendor)
            return evolve(part, signature=None)
        case Aside() if place == "assistant" or not part.type.startswith(CONTENT):
            to.lose(part.kind, part.type)
            return None
    return part


def as_text(part: Part, place: Place, to: Lowering) -> Part | None:
    """Join the texts of a result, give each call arguments, and drop empty texts of the assistant."""
    match part:
        case ToolResult() if len(part.parts) > 1:
            return evolve(part, parts=[Text(_joined([cast("Text", inner).text for inner in part.parts], to.report))])
        case ToolCall() if not part.arguments.strip():
            return evolve(part, arguments="{}")
        case Text(text="", signature=None) if place == "assistant":
            return None
    return part


FOREIGN: Final = Capabilities(
    dialect=VENDOR,
    vendor=VENDOR,
    title="AG-UI",
    text_files=False,
    turn_names=True,
    native_roles=False,
    signs_reasoning=ANYBODY,
    signs_texts=ANYBODY,
    signs_calls=ANYBODY,
    unsigned_reasoning=True,
    media=fit_media,
    empty_turns=True,
    empty_answers=False,
    results="behind calls",
    some_tools=True,
    offered_to="an AG-UI agent",
    strict_tools=False,
    said=(of_parts(fit, as_text),),
)
OWN: Final = evolve(FOREIGN, media=own_media, most_marks=0, results="apart", said=(of_parts(fit),))
capabilities: Final = told_by(OWN, FOREIGN)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    exchange, extras, messages = request.exchange, dict(request.extras), Messages(report)
    turns, resume = _resume(request.turns, report)
    if resume:
        extras[wire.RESUME] = [*resume, *(extras.get(wire.RESUME) or ())]
    body = {
        "threadId": exchange.get("threadId") or random_id("thread_"),
        "runId": exchange.get("runId") or random_id("run_"),
        **{name: value for name, value in exchange.items() if name not in {"threadId", "runId"}},
        "state": extras.pop("state", {}),
        "messages": [message for turn in turns for message in messages.of(turn)],
        "tools": [_tool(tool) for tool in request.tools],
        CONTEXT: exchange.get(CONTEXT) or [],
        "forwardedProps": without_none(model=request.model or None),
    }
    return add_missing(body, extras)


def _resume(turns: Sequence[Turn], report: StreamReport) -> tuple[Sequence[Turn], list[dict[str, Any]]]:
    """Return the turns, and the answers to interrupts in the last results.

    An interrupt was a call in another dialect. If it was about a call of the agent, the turns have that call again.
    """
    results = {part.call_id: part for turn in turns for part in turn.parts if isinstance(part, ToolResult)}
    calls = {part.id: part for turn in turns for part in turn.parts if isinstance(part, ToolCall)}
    interrupts: dict[
        str, tuple[str, ToolCall | None]
    ] = {}  # by the id of the call: the interrupt's id, the agent's call
    for call in calls.values():
        approval, result = approval_in(call.id, call.name, call.arguments), results.get(call.id)
        ids = None if approval is None else wire.approval_of_id(approval.id)
        if approval is not None and ids is not None:
            interrupts[call.id] = ids[0], ToolCall(call.index, ids[1], approval.tool, approval.arguments)
        elif call.name == wire.INTERRUPT and call.id.startswith(wire.INTERRUPT_ID):
            interrupts[call.id] = call.id.removeprefix(wire.INTERRUPT_ID), None
        elif approval is not None and result is not None and result.native == wire.RESUME:
            interrupts[call.id] = call.id, call
    if not interrupts:
        return turns, []
    last = max(number for number, turn in enumerate(turns) if turn.role == "assistant")
    kept, resume = [], list[dict[str, Any]]()
    for number, turn in enumerate(turns):
        parts: list[Part] = []
        for part in turn.parts:
            name = part.id if isinstance(part, ToolCall) else part.call_id if isinstance(part, ToolResult) else ""
            if name not in interrupts:
                parts.append(part)
            elif number < last:  # the agent has gone on since
                report.lose("metadata", what=wire.INTERRUPT)
            elif isinstance(part, ToolResult):
                resume.append(_answer(interrupts[name][0], part, is_approval=interrupts[name][1] is not None))
            elif (about := interrupts[name][1]) is not None:
                parts.append(about)
        if parts or not turn.parts:
            kept.append(evolve(turn, parts=parts))
    return kept, resume


def _answer(interrupt: str, result: ToolResult, *, is_approval: bool) -> dict[str, Any]:
    """Return the entry of ``resume`` for the result of a call."""
    if is_approval:
        approved, reason = answer_in(result.text, failed=result.is_error)
        payload: Any = {"approved": approved, **({"reason": reason} if reason else {})}
    elif result.is_error:
        return {"interruptId": interrupt, "status": "cancelled"}
    else:
        value = json_value(result.text)
        payload = result.text if value is None else value
    return {"interruptId": interrupt, "status": "resolved", "payload": payload}


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.kind == "server":
        return dict(tool.raw or {})
    definition = without_none(name=tool.name, description=tool.description or "", parameters=tool.parameters)
    return add_missing(definition, tool.extras)


class Messages:
    """Writes the messages of one request, and numbers those without an id."""

    def __init__(self, report: StreamReport) -> None:
        self._report = report
        self._numbers = count(1)

    def of(self, turn: Turn) -> Iterator[Message]:
        """Yield the messages of a turn; none for the application's context, which has its own member."""
        if turn.role == "assistant":
            yield from self._spoken(turn)
        elif turn.parts and all(isinstance(part, ToolResult) for part in turn.parts):
            for part in turn.parts:
                yield self._result(cast("ToolResult", part))
        elif turn.native_role != CONTEXT:
            content: Any = _content(turn.parts)
            if turn.role == "system" and not isinstance(content, str):  # a system message can only be text
                content = _joined([str(part.get("text", "")) for part in content], self._report, "\n\n")
            yield self._message(turn, turn.native_ids[-1:], turn.native_role or turn.role, content=content)

    def _id(self, given: str | None) -> str:
        """Return the id that the client gave to a message, or one made from its number."""
        return given or f"message_{next(self._numbers)}"

    def _message(self, turn: Turn, ids: Sequence[str], role: str, **members: Any) -> Message:
        message = {"id": self._id(next(iter(ids), None)), "role": role, **members, **without_none(name=turn.name)}
        return add_missing(message, turn.extras)

    def _spoken(self, turn: Turn) -> Iterator[Message]:
        """Yield the reasoning messages of an assistant turn, then its message."""
        ids, rest = [*turn.native_ids], list[Part]()
        for part in turn.parts:
            thought = _thought(part)
            if thought is None:
                rest.append(part)
                continue
            if rest:
                self._report.lose("block_order")
            yield {"id": self._id(ids.pop(0) if ids else None), "role": "reasoning", **thought}
        if rest or not turn.parts:
            yield self._message(turn, ids, "assistant", **self._members(rest))

    def _members(self, parts: Sequence[Part]) -> dict[str, Any]:
        """Return the members of an assistant message: one text with the last of the signatures, and the calls after it."""
        texts = [part for part in parts if isinstance(part, Text)]
        calls = [_call(part) for part in parts if isinstance(part, ToolCall)]
        for part in dropwhile(lambda part: not isinstance(part, ToolCall), parts):
            if isinstance(part, Text):
                self._report.lose("block_order")
        signatures = [text.signature for text in texts if text.signature is not None]
        for signature in signatures[:-1]:
            self._report.lose("reasoning_signature", what=signature.vendor)
        return without_none(
            content=_joined([text.text for text in texts], self._report) or None,
            toolCalls=calls or None,
            encryptedValue=signature_text(signatures[-1] if signatures else None, VENDOR, "text"),
        )

    def _result(self, result: ToolResult) -> Message:
        written = {"role": "tool", "toolCallId": result.call_id, "content": _content(result.parts)}
        error = (result.text or FAILED) if result.is_error else None
        return add_missing({"id": self._id(result.native_id)} | written | without_none(error=error), result.extras)


def _thought(part: Part) -> Message | None:
    """Return a message for reasoning, or for a text with only a signature; None for a part that is no separate message."""
    match part:
        case RedactedReasoning():
            text, value = "", signature_text(part.opaque, VENDOR, "opaque")
        case Reasoning():
            text, value = part.text, signature_text(part.signature, VENDOR)
        case Text(text="", signature=Opaque()):
            text, value = "", signature_text(part.signature, VENDOR, "text")
        case _:
            return None
    return add_missing({"content": text, **without_none(encryptedValue=value)}, part.extras)


def _joined(texts: Sequence[str], report: StreamReport, between: str = "") -> str:
    """Join texts that are not empty; each boundary between them is a loss."""
    texts = [text for text in texts if text]
    if len(texts) > 1:
        report.lose("block_boundary", len(texts) - 1)
    return between.join(texts)


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    return plain_or_list([_part(part) for part in parts])


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return add_missing({"type": "text", "text": part.text}, part.extras)
        case Media():
            return add_missing({"type": TYPES[part.kind], "source": _source(part)}, part.extras)
        case Aside():
            return dict(part.raw)
    raise TypeError(f"content can't contain a {type(part).__name__}")


def _source(media: Media) -> dict[str, Any]:
    if media.data is not None:
        return {"type": "data", "value": media.data, "mimeType": media_type_of(media)}
    kind, value = ("url", media.url) if media.url is not None else ("file", media.file_id or "")
    return {"type": kind, "value": value, **without_none(mimeType=media.media_type)}


def _call(call: ToolCall) -> dict[str, Any]:
    written = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    return add_missing(
        written | without_none(encryptedValue=signature_text(call.signature, VENDOR, "call")), call.extras
    )
