"""Responses over a WebSocket: a request is a message ``response.create``, and each event of its response is a message.

**To a server.** A message is turned into the event that it would be over HTTP, so that one decoder reads both. Its type shows
whether it is the last, because the socket stays open. An error instead of a response is a message with an HTTP status. The
error's headers are next to the error (Codex) or in it (openai-python). Only streamkit uses these headers, so no event
contains them. ``stream`` is left out, as in openai-python.

**To a client.** A connection keeps the last response that ended normally, with its whole input, as JSON text up to a limit in
bytes. The next message may name it as ``previous_response_id``, and then contains only new items. For other ids, the client
gets an error, after which Codex sends the whole input, unless a store has the response (``recall``).

Nothing may follow the last event of a response: a client would take it for the next response. So ``response.failed`` replaces
the ``error`` before it, and a single ``error`` gets a status, because Codex ignores an error without one. Other messages
(``response.steer``) are refused, and so is ``stream_id``, with which several responses would share a connection. The text of
items is copied from bodies and events, so that no number changes.

Source: ui-protocols.md §4.1; dialects.md §2.1, §2.2, §2.3; openai 3.57 ``types/responses/responses_client_event.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from streamkit.dialects.http import SHOWN_CHARS, SocketEndpoint, SocketRefusal, SocketRequest
from streamkit.dialects.members.fields import fields_of
from streamkit.dialects.members.values import CONTAINERS, is_deep, json_value
from streamkit.dialects.openai_responses.decode import OTHER_TERMINAL, known_status
from streamkit.dialects.openai_responses.wire import ERROR_TYPES, ERRORS, VENDOR, encode_error
from streamkit.dialects.vocabulary.client_tools import DONE
from streamkit.dialects.vocabulary.context_overflow import is_overflow
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.framing.frame import Frame
from streamkit.framing.sse import SSEParser, serialize_sse
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.value_text import ValueTexts, value_text

#: Members that only a WebSocket message has. They are removed from the request body.
_ENVELOPE: Final = ("type", "generate", "previous_response_id")
#: Last events of a response whose output is complete enough that the next message may continue it.
ENDS: Final = frozenset({"response.completed", "response.incomplete"})
FAILED: Final = "response.failed"
#: All events that are the last of a response. A client takes a later event for the response to its next message.
_LAST: Final = frozenset({*ENDS, FAILED, OTHER_TERMINAL, "response.cancelled", "error"})
#: Finds the type where servers usually write it: first. Parsing the whole message would take as long as decoding it.
TYPE: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([a-z_.]{1,64})"')
NAME: Final = re.compile(r"[a-z_.]{1,64}")
_NOTHING: Final = ("", b"")

# -- items of a conversation, kept as JSON text ------------------------------------------------------------------------


def items_of(value: object, text: bytes) -> bytes | None:
    """Return ``input`` as JSON items separated by commas; None if it is malformed. The request's reader reports that."""
    if value is None:
        return b""
    if isinstance(value, str):
        return b'{"type":"message","role":"user","content":%b}' % text
    return inside(text) if isinstance(value, list) else None


def inside(text: bytes) -> bytes:
    """Return the JSON text between the brackets of a list."""
    return text[1:-1].strip()


def joined(parts: Iterable[bytes]) -> bytes:
    """Return items one after another, separated by commas."""
    return b",".join(filter(None, parts))


def output_in(event: bytes, response: Mapping[str, Any], done: Sequence[bytes]) -> bytes:
    """Return the output items of a response that ended with ``event``: its ``output`` or, if that is empty, ``done``."""
    own = isinstance(response.get("output"), list) and response["output"]
    return inside(value_text(event, "response", "output").encode()) if own else joined(done)


def body_of(members: Mapping[str, bytes]) -> bytes:
    """Return a JSON object, from the names and the JSON texts of its members."""
    return b"{%b}" % b",".join(b"%b:%b" % (orjson.dumps(name), text) for name, text in members.items())


def refused(message: str, *, code: str | None = None, param: str | None = None) -> ProviderFailed:
    """Return the failure for a malformed request (400), in the words of the dialect's own server."""
    raw = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return ProviderFailed("invalid_request", message, code=code, http_status=400, vendor=VENDOR, raw=raw)


def not_found(why: str) -> ProviderFailed:
    """Return the failure that a response is not kept. After it, Codex sends the whole input (ui-protocols.md §4.1)."""
    message = f"{why}; send the whole input, without previous_response_id"
    return refused(message, code="previous_response_not_found", param="previous_response_id")


def value_of(asked: bytes, response: bytes) -> bytes:
    """Return the JSON text that is stored for a response: its input items and the response itself."""
    return b'{"input":[%b],"response":%b}' % (asked, response)


def conversation_in(value: bytes) -> bytes:
    """Return the items that precede the input of the next request: the input and the output of a kept response."""
    paths = ("input",), ("response", "output")
    return joined(inside(value_text(value, *path).encode()) for path in paths)


# -- to a server -------------------------------------------------------------------------------------------------------


def message(body: bytes) -> bytes:
    """Return the message for the request in ``body``: a non-empty JSON object without ``stream``."""
    return b'{"type":"response.create",' + body.lstrip()[1:]


def event(received: bytes) -> bytes:
    """Return the bytes of a stream's event for a message of a response."""
    kind = type_of(received)
    if kind == "error":
        received = _without_headers(received)
    return serialize_sse(received, event=kind or None)


def is_last(received: bytes) -> bool:
    """Return whether a message is the last message of its response."""
    return type_of(received) in _LAST


def refusal(received: bytes) -> SocketRefusal | None:
    """Return the error that a server sent instead of a response; None for events, as is an ``error`` without a status."""
    members = json_value(received) if type_of(received) == "error" else None
    if not isinstance(members, dict):
        return None
    status = members.get("status", members.get("status_code"))
    if type(status) is not int or not 400 <= status < 600:
        return None
    headers, error = _headers_in(members), members.get("error")
    if isinstance(error, dict):
        headers |= _headers_in(error)
    return SocketRefusal(status, headers, orjson.dumps({"error": _bare(error)}))


def type_of(received: bytes) -> str:
    """Return the type of a message; "" if its type is missing or cannot be an event's name."""
    found = TYPE.match(received)
    if found is not None:
        return found[1].decode()
    members = json_value(received)
    kind = members.get("type") if isinstance(members, dict) else None
    return kind if isinstance(kind, str) and NAME.fullmatch(kind) else ""


def _headers_in(members: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers in an object. Numbers are converted to text."""
    value = members.get("headers")
    if not isinstance(value, dict):
        return {}
    return {name: str(text) for name, text in value.items() if isinstance(text, str | int | float)}


def _without_headers(received: bytes) -> bytes:
    members = json_value(received)
    if not isinstance(members, dict):
        return received
    error = members.get("error")
    if "headers" not in members and not (isinstance(error, dict) and "headers" in error):
        return received
    return orjson.dumps({name: _bare(value) for name, value in members.items() if name != "headers"})


def _bare(value: Any) -> Any:
    """Return a value inside an error; None if it is nested so deeply that it cannot be written."""
    if type(value) in CONTAINERS and is_deep(value):
        return None
    return {name: inner for name, inner in value.items() if name != "headers"} if isinstance(value, dict) else value


ENDPOINT: Final = SocketEndpoint(message=message, event=event, is_last=is_last, refusal=refusal)


# -- to a client -------------------------------------------------------------------------------------------------------


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
            instead = "send new input in a response.create after the response has ended"
            return refused(f"the type of a message must be 'response.create', not {kind}; {instead}", param="type")
        if members.get("stream_id") is not None:
            return refused("a connection has only one response at a time; remove stream_id", param="stream_id")
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
            if kind == DONE and self._input is not None:
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
            return not_found(f"the response {name} and its input were too large to keep")
        self.unknown_id = str(previous)
        return not_found(f"this connection keeps only its last response, which is not {name}")


def failure_in(event: Mapping[str, Any]) -> ProviderFailed:
    """Return the failure of an ``error`` event, which is nested or flat."""
    flat = {name: value for name, value in event.items() if name not in {"type", "sequence_number"}}
    return provider_failed(event.get("error") or flat, VENDOR, ERROR_TYPES)


def _error_of(event: Mapping[str, Any]) -> str:
    """Return an ``error`` event for a client, with the status that the error would have over HTTP."""
    failed = failure_in(event)
    status = failed.http_status or ERRORS.statuses["invalid_request" if is_overflow(failed) else failed.type]
    number = {name: event[name] for name in ("sequence_number",) if name in event}
    members = {"status": status, "error": encode_error(failed, StreamReport())}
    return orjson.dumps({"type": "error", **members, **number}).decode()


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
