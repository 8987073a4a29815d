"""Items of a conversation as JSON text, kept for later requests: the input of a request, and the output of its response.

The text of items is copied from bodies and events, so that no number changes.

Source: dialects.md §2.2, §2.3; ui-protocols.md §4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from streamkit.dialects.openai_responses.wire import VENDOR
from streamkit.events import ProviderFailed
from streamkit.tool_calls.value_text import value_text


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
