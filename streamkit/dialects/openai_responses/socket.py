"""Responses over a WebSocket: a request is a message ``response.create``, and each event of its response is a message.

A connection keeps the last response that ended normally, with its whole input, as JSON text up to a limit in bytes. The next
message may name it as ``previous_response_id``, and then contains only new items. For other ids, the client gets an error,
after which Codex sends the whole input, unless a store has the response (``recall``).

Nothing may follow the last event of a response: a client would take it for the next response. So ``response.failed`` replaces
the ``error`` before it, and a single ``error`` gets a status, because Codex ignores an error without one. Other messages
(``response.steer``) are refused, and so is ``stream_id``, with which several responses would share a connection.

Source: ui-protocols.md §4.1; dialects.md §2.3; openai 3.57 ``types/responses/responses_client_event.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.http import SHOWN_CHARS, SocketRequest
from streamkit.dialects.members.fields import fields_of
from streamkit.dialects.openai_responses.decode import OTHER_TERMINAL, known_status
from streamkit.dialects.openai_responses.errors import ERRORS
from streamkit.dialects.openai_responses.kept import (
    body_of,
    conversation_in,
    items_of,
    joined,
    not_found,
    output_in,
    refused,
)
from streamkit.dialects.openai_responses.socket_out import NAME, type_of
from streamkit.dialects.openai_responses.wire import ERROR_TYPES, VENDOR, encode_error
from streamkit.dialects.vocabulary.context_overflow import is_overflow
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.framing.frame import Frame
from streamkit.framing.sse import SSEParser
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.value_text import ValueTexts, value_text

#: Members that only a WebSocket message has. They are removed from the request body.
_ENVELOPE: Final = ("type", "generate", "previous_response_id")
#: Last events of a response whose output is complete enough that the next message may continue it.
ENDS: Final = frozenset({"response.completed", "response.incomplete"})
FAILED: Final = "response.failed"
ITEM_DONE: Final = "response.output_item.done"
#: All events that are the last of a response. A client takes a later event for the response to its next message.
_LAST: Final = frozenset({*ENDS, FAILED, "response.cancelled", "error"})
_NOTHING: Final = ("", b"")


class SocketConversation:
    """The messages of one connection. It keeps at most ``limit_bytes`` of the last response and its request."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._id = ""  # id of the last response
        self._items = b""  # the input and output items of that response, separated by commas
        self._left_out = ""  # the id of the last response, if it was too large to keep
        self._input: bytes | None = b""  # input of the request in progress; None: do not keep its response
        self._output: list[bytes] = []  # output items of the response in progress
        self._output_bytes = 0
        self._last = _NOTHING  # the final event of the response in progress; sent when the stream ends
        self._parser = SSEParser()
        self.unknown_id = ""

    @property
    def kept_bytes(self) -> int:
        return len(self._items) + len(self._input or b"")

    def read(self, message: bytes) -> SocketRequest | ProviderFailed:
        report, self.unknown_id = StreamReport(), ""
        try:
            fields = fields_of(message, report)
        except BadRequest as error:
            return refused(str(error), param=error.path or None)
        members = fields.peek_all()
        if members.get("type") != "response.create":
            kind = quoted(str(members.get("type")), SHOWN_CHARS)
            return refused(f"messages of the type response.create are served here, and not {kind}", param="type")
        if members.get("stream_id") is not None:
            return refused(
                "responses of one connection come one after the other; leave stream_id out", param="stream_id"
            )
        previous = members.get("previous_response_id")
        if previous is not None and previous != self._id:
            return self._unknown(previous)
        texts = ValueTexts(fields.body.text)
        request = {name: texts.text(name).encode() for name in members if name not in _ENVELOPE}
        items = items_of(members.get("input"), request.get("input", b""))
        self.over()
        if items is not None:
            asked = joined([self._items if previous is not None else b"", items])
            request["input"] = b"[%b]" % asked
            self._input = asked if len(asked) <= self._limit_bytes else None
        body = body_of({**request, "stream": b"true"})
        return SocketRequest(body, warm_up=_is_warm_up(members), report=report)

    def write(self, chunk: bytes) -> list[str]:
        written: list[str] = []
        for frame in self._parser.feed(chunk):
            if not frame.data.startswith(b"{"):
                continue
            kind, payload = typed(frame)
            if kind == ITEM_DONE and self._input is not None:
                self._output.append(value_text(payload, "item").encode())
                self._output_bytes += len(self._output[-1])
                if self._output_bytes > self._limit_bytes:
                    self._input, self._output = None, []
            if kind not in _LAST:
                written.append(payload.decode("utf-8", "replace"))
            elif self._last[0] != "error" or kind == FAILED:  # response.failed replaces an error before it
                self._last = kind, payload
        return written

    def end(self) -> list[str]:
        kind, payload = self._last
        if kind in ENDS:
            self._keep(payload)
        self.over()
        if not payload:
            return []
        return [_error_of(orjson.loads(payload)) if kind == "error" else payload.decode("utf-8", "replace")]

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> str:
        members, named = orjson.loads(body), dict(headers)
        if isinstance(members.get("error"), dict):
            members["error"]["headers"] = named
        return orjson.dumps({"type": "error", "status": status, **members, "headers": named}).decode()

    def over(self) -> None:
        self._input, self._output, self._output_bytes = b"", [], 0
        self._last, self._parser = _NOTHING, SSEParser()

    def forget(self) -> None:
        self._id, self._items, self._left_out = "", b"", self._id or self._left_out
        self._input, self._output = None, []

    def _keep(self, payload: bytes) -> None:
        """Keep a response that ended, with its ``output`` or, if that is empty, the items of its events (dialects.md §2.2)."""
        response = orjson.loads(payload).get("response")
        if not isinstance(response, dict):
            return
        self._id, self._items = str(response.get("id") or ""), b""
        if self._input is None:
            self.forget()
            return
        self._items = joined([self._input, output_in(payload, response, self._output)])
        self._forget_beyond_limit()

    def recall(self, answer_id: str, value: bytes) -> None:
        self._id, self._items = answer_id, conversation_in(value)
        self._forget_beyond_limit()

    def _forget_beyond_limit(self) -> None:
        if len(self._items) > self._limit_bytes:
            self.forget()

    def _unknown(self, previous: object) -> ProviderFailed:
        name = quoted(str(previous), SHOWN_CHARS)
        if previous == self._left_out:
            return not_found(f"the response {name} and its input are larger than what may be kept of them")
        self.unknown_id = str(previous)
        return not_found(f"no response {name} is kept on this connection, which keeps its last one")


def _error_of(event: Mapping[str, Any]) -> str:
    """Return an ``error`` event for a client, with the status that the error would have over HTTP."""
    flat = {name: value for name, value in event.items() if name not in {"type", "sequence_number"}}
    failed = provider_failed(event.get("error") or flat, VENDOR, ERROR_TYPES)
    status = failed.http_status or ERRORS.statuses["invalid_request" if is_overflow(failed) else failed.type]
    number = {name: event[name] for name in ("sequence_number",) if name in event}
    told = {"status": status, "error": encode_error(failed, StreamReport())}
    return orjson.dumps({"type": "error", **told, **number}).decode()


def typed(frame: Frame) -> tuple[str, bytes]:
    """Return the type of an event, and its payload with that type. Some servers write the type only in the ``event:`` line.

    A last event with another server's name (``response.done``) is renamed, because clients would not stop at it.
    """
    kind, payload = type_of(frame.data), frame.data
    if not kind and NAME.fullmatch(frame.event) and frame.event != "message":
        kind, rest = frame.event, payload[1:].lstrip()
        payload = b'{"type":"%b"%b%b' % (kind.encode(), b"" if rest.startswith(b"}") else b",", rest)
    if kind == OTHER_TERMINAL:
        response = orjson.loads(payload).get("response")
        kind = f"response.{(isinstance(response, dict) and known_status(response.get('status'))) or 'completed'}"
        payload = payload.replace(b'"%b"' % OTHER_TERMINAL.encode(), b'"%b"' % kind.encode(), 1)
    return kind, payload


def _is_warm_up(members: Mapping[str, Any]) -> bool:
    """Return whether the server must generate no output, only prepare the prompt cache or keep the request."""
    cache = members.get("prompt_cache_options")
    return members.get("generate") is False or (isinstance(cache, dict) and cache.get("prewarm") is True)
