"""Encode events as Responses events: all events of each output item, and the whole output again in the last event.

``ItemWriter`` writes the events of items; this module finds the item of an event. Ids of items are made; the response and the
calls keep their ids. The terminal event waits for ``StreamEnded``.

A failure is written twice: as ``error``, both nested and flat, which openai-python raises, and then as ``response.failed``,
which some clients need (quirks.md 113). Its output has no unfinished call. ``[DONE]`` is never written.

Source: dialects.md §0.4, §2.1, §2.2, §2.4, quirks.md 131.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

import orjson
from attrs import evolve

from streamkit.conversation.messages import Request
from streamkit.dialects.bodies.openai import identity
from streamkit.dialects.members.values import json_value, unknown_event
from streamkit.dialects.openai_responses import wire
from streamkit.dialects.openai_responses.asides import write_image
from streamkit.dialects.openai_responses.output import called
from streamkit.dialects.openai_responses.request_out import write
from streamkit.dialects.openai_responses.writer import FreeText, ItemWriter, Label, event_of
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams.block_encoder import BlockEncoder
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.compactions import COMPACTION
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.events import (
    Aside,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.framing.frame import Frame
from streamkit.report import StreamReport

dumps = orjson.dumps
#: Names of events that may be copied from the source. They contain no line end, so they cannot end a line (limits.md T1).
NAME: Final = re.compile(r"[a-z][a-z0-9_.]{0,127}")
#: The beginnings of names of events that belong to an item or part, and mean nothing without it.
PLACED: Final = ("response.output_item.", "response.content_part.", "response.reasoning_summary_part.")
#: The most extra members of a response, or of items that have not begun. More members are not a sensible response.
FEW: Final = 64
#: Members that the schema requires of a response, with the documented defaults, for an unknown request. Nothing is stored
#: here. Instructions and tools are not repeated, because they may be long.
DEFAULTS: Final[Mapping[str, Any]] = {
    "background": False,
    "completed_at": None,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
DEFAULT_MEMBERS: Final = dumps(DEFAULTS)[1:-1]
#: Templates of a response after its first members: in the events of its start, and in its terminal event.
STARTED: Final = b'%b,"status":"in_progress","error":null,"incomplete_details":null,"usage":null,"output":[]}'
ENDED: Final = b'%%b,"status":"%b","error":%%b,"incomplete_details":%%b,"usage":%%b,"output":[%%b]}'
#: The template of the two events that start a response.
STARTS: Final = b"".join(
    event_of(b"response." + name, b',"response":' + STARTED) for name in (b"created", b"in_progress")
)
ERROR: Final = event_of(b"error", b',"error":%b,%b')
ENDS: Final = {
    status: event_of(b"response." + status, b',"response":' + ENDED % status)
    for status in (b"completed", b"incomplete", b"failed")
}
#: Members of the client's request that the response must repeat.
ECHOED: Final = (
    "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls", "prompt_cache_key", "reasoning",
    "safety_identifier", "temperature", "text", "tool_choice", "top_logprobs", "top_p", "truncation",
)  # fmt: skip


def settings_of(request: Request) -> dict[str, Any]:
    """Return the settings of a request that its response repeats (``Profile.settings``)."""
    if request.dialect != wire.VENDOR:
        return {}
    asked = write(evolve(request, turns=[]), Target(), StreamReport())
    settings = {name: asked[name] for name in ECHOED if asked.get(name) is not None}
    for name in "reasoning", "text":
        if isinstance(settings.get(name), dict):
            settings[name] = DEFAULTS[name] | settings[name]
    return settings


class ResponsesEncoder(BlockEncoder):
    """Encodes the events of a stream."""

    vendor = native = wire.VENDOR
    writer = ItemWriter
    signer = wire.OPAQUE_VENDOR
    _blocks: ItemWriter
    _head = b""  # the first members of each response, as JSON without the closing brace
    _waits = False  # whether the client must run an item of this dialect
    _images = 0  # the number of images of another vendor written
    _compacted = False
    _passed: tuple[ResponseStarted | None, Frame | None] = None, None
    _changed: dict[str, Any] | None = None  # the members in ``_head``, after one of them changed

    def response_started(self, event: ResponseStarted) -> None:
        self._begin(event)
        number, head = self._blocks.number, self._head
        self._blocks.number = number + 2
        self.write(STARTS % (number, head, number + 1, head))

    def _begin(self, event: ResponseStarted) -> None:
        self._started = True
        made = identity(event, self.encoding, "resp_", "response", "created_at")
        extras = {**self.encoding.profile.settings, **self.response_extras(event)}
        if extras:
            self._head = dumps({**made, **DEFAULTS, **extras})[:-1]
        else:
            self._head = b"%b,%b" % (dumps(made)[:-1], DEFAULT_MEMBERS)

    def follow(self, start: ResponseStarted | None, last: Frame, _begun: Collection[str]) -> None:
        """Continue after events that were forwarded without this encoder. ``last`` is the last forwarded frame."""
        self._passed = start, last

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        items = self._blocks
        if (choice, block) == items.goes_on:  # the usual case
            items.write_text(dumps(text))
        else:
            self.push(TextDelta(text, choice, block))

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        items = self._blocks
        if (choice, block, kind) == items.goes_on:
            items.write_text(dumps(text))
        else:
            self.push(ReasoningDelta(text, choice, block, kind))

    def text(self, event: TextDelta) -> None:
        items, place = self._blocks, (event.choice, event.block)
        if place == items.goes_on:
            items.write_text(dumps(event.text))
            return
        items.text(("text", event.block), dumps(event.text))
        if self._spoke and self._is_open("text", *place):
            items.goes_on = place

    def refusal(self, event: RefusalDelta) -> None:
        self._refused = True
        self._blocks.text(("refusal", event.block), dumps(event.text))

    def reasoning(self, event: ReasoningDelta) -> None:
        items, place = self._blocks, (event.choice, event.block, event.kind)
        if place == items.goes_on:
            items.write_text(dumps(event.text))
            return
        self._thought.add(event.block)
        key, last = ("thinking", event.block), items.last
        if last is None or last.key != key or last.start != event.kind.encode():
            last = items.add(key, event.kind.encode())
        items.delta(last, dumps(event.text))
        if self._is_open("thinking", event.choice, event.block):
            items.goes_on = place

    def redacted(self, data: str, number: int) -> None:
        self._blocks.hold(len(data))
        block = self._blocks.add(("thinking", number), b"")
        block.add_signature(data)
        self._blocks.end(block)

    def call_started(self, event: ToolCallStarted) -> None:
        if not event.name:
            return
        start = {"call_id": event.id, **called(event.name, event.qualified), **self.own_extras(event.extras)}
        if event.signature is not None:  # call items have no signature: seal it in an item before the call
            self.redacted(seal("call", event.signature.vendor, event.signature.blob), event.call)
        key = "custom" if event.kind == "custom" else "call", event.call
        block = self._calls[event.call] = self._blocks.add(key, dumps(start), needs_end=True)
        if event.kind == "custom":
            block.scanner = FreeText()

    def call_finished(self, event: ToolCallFinished) -> None:
        block = self._calls.get(event.call)
        if block is not None and not block.closed:
            if event.ended and event.kind == "function" and not event.arguments.strip():
                self._blocks.arguments(block, "{}")  # clients parse the text, and "" is not JSON (quirks.md 42)
            verdict = event.verdict
            if not event.ended or (verdict is not None and verdict.kind == "truncated"):
                self._blocks.incomplete |= {block.key}
        super().call_finished(event)

    def media_form(self, media: MediaGenerated) -> list[Aside]:
        self._images += 1
        return write_image(media, self._images)

    def aside(self, event: Aside) -> None:
        if event.type == WAITS:  # the item itself is written
            self._waits = True
        elif event.kind in {"citation", "logprobs"}:
            self._blocks.text(("text", event.block), dumps(event.raw))
        elif event.kind == "metadata" and event.type not in wire.ASIDES:
            self._metadata(event)
        elif (name := unknown_event(event)) is not None:
            self._unknown(name, event)
        elif not _is_event(event.type, event.raw):
            self.lose(event.kind)
        elif event.type == "response.output_item.added":
            if not event.raw.keys() <= {"type", "item"}:  # members of the event other than the item cannot be written
                self.lose(event.kind)
            item = event.raw["item"]
            if isinstance(item.get("type"), str):
                self._blocks.add(("hosted", event.block), dumps(item), needs_end=True)
                self._waits = self._waits or event.kind == "client_tool"
                self._compacted = self._compacted or item["type"] == COMPACTION
            else:
                self.lose(event.kind)
        elif (block := self._blocks.find(("hosted", event.block))) is not None:
            self._blocks.delta(block, dumps(event.raw))
            if event.type == "response.output_item.done":
                self._blocks.end(block)
        elif event.kind in {"audio", "metadata"}:
            self._unknown(event.type, event)
        else:
            self.lose(event.kind)

    def _unknown(self, name: str, event: Aside) -> None:
        """Write an event of this dialect unchanged, unless its name belongs to an item."""
        if not _is_event(name, event.raw) or name.startswith(PLACED):
            self.lose(event.kind)
            return
        self.begin()
        members = dumps({member: value for member, value in event.raw.items() if member != "type"})[1:-1]
        self._blocks.numbered(event_of(name.encode(), b",%b" if members else b"%b"), members)

    def _metadata(self, event: Aside) -> None:
        """Keep a member until the response, or the item to which it belongs, is written."""
        owner, _, name = event.type.partition(".")
        label: Label = owner.encode(), event.block
        if owner != "response":
            fields = self._blocks.fields.setdefault(label, {})
        elif self._changed is None:
            fields = self._changed = orjson.loads(self._head + b"}") if self._started else {}
        else:
            fields = self._changed
        if owner not in {"response", "message", "reasoning"} or len(fields) + len(self._blocks.fields) > FEW:
            self.lose("metadata")
        else:
            fields.pop(name, None)  # a changed member moves to the end
            fields[name] = event.raw

    def stop(self) -> ResponseFinished:
        ended = self._stop
        if ended is not None and ended.reason == "tool_calls" and self._waits:
            return ended
        if ended is not None and ended.reason == "compaction" and not self._compacted:  # no compaction was made
            self.lose("stop_reason")
            return evolve(ended, reason="length")
        return super().stop()

    def terminate(self) -> None:
        self._blocks.finish()
        self._blocks.close_item()
        for fields in self._blocks.fields.values():
            self.report.lose("metadata", len(fields))
        if self._usage is not None:
            wire.count_usage_losses(self._usage, self.report)
        stop = self.stop()
        status, incomplete = wire.encode_end(stop, self.report, own=self._vendor == wire.VENDOR, refused=self._refused)
        self.begin()
        self._end_response(status.encode(), self._blocks.output, b"null", dumps(incomplete))

    def _end_response(self, status: bytes, output: list[bytes], error: bytes, incomplete: bytes = b"null") -> None:
        head = self._head if self._changed is None else dumps(self._changed)[:-1]
        usage = b"null" if self._usage is None else dumps(wire.encode_usage(self._usage))
        self._blocks.numbered(ENDS[status], head, error, incomplete, usage, b",".join(output))

    def error(self, event: ProviderFailed) -> None:
        error = wire.encode_error(event, self.report)
        code = error["code"]
        if not self._started:
            self._begin(self._passed[0] or ResponseStarted())
            self._blocks.number = _number_behind(self._passed[1])
        flat = dumps({"code": code, "message": event.message, "param": None})[1:-1]
        self._blocks.numbered(ERROR, dumps(error), flat)
        unfinished = self._blocks.unfinished()
        output = self._blocks.output + ([] if unfinished is None else [unfinished])
        self._end_response(b"failed", output, dumps({"code": code, "message": event.message}))


def _is_event(name: str, raw: Any) -> bool:
    """Return whether an aside is an event of this dialect, which can be written unchanged."""
    return isinstance(raw, dict) and raw.get("type") == name and NAME.fullmatch(name) is not None


def _number_behind(last: Frame | None) -> int:
    """Return the sequence number to use after a frame; 0 if there is no frame or it has no number."""
    document = None if last is None else json_value(last.data)
    number = document.get("sequence_number") if isinstance(document, dict) else None
    return number + 1 if type(number) is int else 0
