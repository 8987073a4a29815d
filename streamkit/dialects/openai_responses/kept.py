"""Items of a conversation as JSON text: what a request says and what its response has, from which the next request goes on.

The text of items is cut out of bodies and events, so that no number changes on its way.

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
    """An ``input`` as items with commas between; None for what can't be one, of which the decoder says what is wrong."""
    if value is None:
        return b""
    if isinstance(value, str):
        return b'{"type":"message","role":"user","content":%b}' % text
    return inside(text) if isinstance(value, list) else None


def inside(text: bytes) -> bytes:
    """What stands between the brackets of a list."""
    return text[1:-1].strip()


def joined(parts: Iterable[bytes]) -> bytes:
    """Items behind one another, with commas between."""
    return b",".join(filter(None, parts))


def output_in(event: bytes, response: Mapping[str, Any], done: Sequence[bytes]) -> bytes:
    """The items of a response that ended with ``event``: its own ``output``, else those that came as ``done``."""
    own = isinstance(response.get("output"), list) and response["output"]
    return inside(value_text(event, "response", "output").encode()) if own else joined(done)


def body_of(members: Mapping[str, bytes]) -> bytes:
    """A JSON object of members whose texts are given."""
    return b"{%b}" % b",".join(b"%b:%b" % (orjson.dumps(name), text) for name, text in members.items())


def refused(message: str, *, code: str | None = None, param: str | None = None) -> ProviderFailed:
    """A request that can't be (400), as the dialect's own server says it."""
    raw = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return ProviderFailed("invalid_request", message, code=code, http_status=400, vendor=VENDOR, raw=raw)


def not_found(why: str) -> ProviderFailed:
    """No response of that id is kept: the code at which Codex sends the whole input by itself (ui-protocols.md §4.1)."""
    message = f"{why}; send the whole input, without previous_response_id"
    return refused(message, code="previous_response_not_found", param="previous_response_id")


def value_of(asked: bytes, response: bytes) -> bytes:
    """What is kept of a response: the items that it was asked, and itself."""
    return b'{"input":[%b],"response":%b}' % (asked, response)


def conversation_in(value: bytes) -> bytes:
    """The items with which a conversation goes on behind a kept response."""
    paths = ("input",), ("response", "output")
    return joined(inside(value_text(value, *path).encode()) for path in paths)
