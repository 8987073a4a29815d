"""Send requests to a Responses server over a WebSocket: a request is a message ``response.create``, its events are messages.

A message is turned into the event that it would be over HTTP, so that one decoder reads both. The type of a message shows
whether it is the last, because the socket stays open. An error instead of a response is a message with an HTTP status. The
error's headers are next to the error (Codex) or in it (openai-python). Only streamkit uses these headers, so no event
contains them. ``stream`` is left out, as in openai-python.

Source: ui-protocols.md §4.1; dialects.md §2.1, §2.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.http import SocketEndpoint, SocketRefusal
from streamkit.dialects.members.values import CONTAINERS, is_deep, json_value
from streamkit.framing.sse import serialize_sse

#: Types of messages that are the last message of a response.
ENDS: Final = frozenset({
    "error", "response.cancelled", "response.completed", "response.done", "response.failed", "response.incomplete",
})  # fmt: skip
#: Finds the type where servers usually write it: first. Parsing the whole message would take as long as decoding it.
TYPE: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([a-z_.]{1,64})"')
NAME: Final = re.compile(r"[a-z_.]{1,64}")


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
    return type_of(received) in ENDS


def refusal(received: bytes) -> SocketRefusal | None:
    """Return the error in a message that the server sent instead of a response; None for events.

    An ``error`` without an HTTP status is an event.
    """
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
