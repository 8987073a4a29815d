"""Responses over a WebSocket: a request is a message ``response.create``, an answer its events, one a message.

A connection keeps the last response that ended as it should, with all that it was asked: the next message may name it as
``previous_response_id`` and send new items only. What is kept is JSON text, not objects, up to a limit in bytes; behind it the
client is told to send the whole input, with the code at which Codex does so by itself.

Refused: other messages (``response.steer``), and ``stream_id``, by which several responses would share a connection.

Source: ui-protocols.md §4.1; dialects.md §2.3; openai 3.57 ``types/responses/responses_client_event.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.http import SHOWN_CHARS, SocketRequest
from streamkit.dialects.openai_responses.wire import VENDOR
from streamkit.events import ProviderFailed
from streamkit.framing.sse import SSEParser
from streamkit.text.quoting import quoted

#: Members that a message has beside those of a body.
_ENVELOPE: Final = ("type", "generate", "previous_response_id")
#: Ends at which the output is whole as far as it goes, so that a conversation may go on behind it.
_ENDS: Final = frozenset({"response.completed", "response.incomplete"})
#: What an event has somewhere in it that is looked into.
_LOOKED_INTO: Final = (b"response.output_item.done", *(end.encode() for end in _ENDS))


class SocketConversation:
    """The messages of one connection. It keeps at most ``limit_bytes`` of the last response and its request."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._id = ""  # of the last response
        self._items = b""  # its input and its output, with commas between
        self._left_out = ""  # the id of a response that was not kept
        self._input = b""  # of the request under way
        self._output: list[bytes] = []  # of the response under way
        self._parser = SSEParser()

    @property
    def kept_bytes(self) -> int:
        return len(self._items)

    def read(self, message: bytes) -> SocketRequest | ProviderFailed:
        try:
            members = orjson.loads(message)
        except orjson.JSONDecodeError as error:
            return _refused(f"the message is not JSON: {error}")
        if not isinstance(members, dict):
            return _refused("the message has to be a JSON object")
        if members.get("type") != "response.create":
            kind = quoted(str(members.get("type")), SHOWN_CHARS)
            return _refused(f"messages of the type response.create are served here, and not {kind}", param="type")
        if members.get("stream_id") is not None:
            return _refused(
                "responses of one connection come one after the other; leave stream_id out", param="stream_id"
            )
        previous, warm_up = members.get("previous_response_id"), members.get("generate") is False
        if previous is not None and previous != self._id:
            return self._unknown(previous)
        request = {name: value for name, value in members.items() if name not in _ENVELOPE} | {"stream": True}
        items = _items_of(request.get("input"))
        if items is not None:
            earlier = [self._items] if previous is not None and self._items else []
            self._input = b",".join([*earlier, *([items] if items else [])])
            request["input"] = orjson.Fragment(b"[%b]" % self._input)
        self._output, self._parser = [], SSEParser()
        return SocketRequest(orjson.dumps(request), warm_up=warm_up)

    def write(self, chunk: bytes) -> list[str]:
        payloads = [frame.data for frame in self._parser.feed(chunk)]
        for payload in payloads:
            if any(kind in payload for kind in _LOOKED_INTO):
                self._look_into(payload)
        return [payload.decode("utf-8", "replace") for payload in payloads if payload.startswith(b"{")]

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> str:
        members = {"type": "error", "status": status, **orjson.loads(body), "headers": dict(headers)}
        return orjson.dumps(members).decode()

    def forget(self) -> None:
        self._id, self._items, self._left_out = "", b"", self._id

    def _look_into(self, payload: bytes) -> None:
        event = orjson.loads(payload)
        if event.get("type") == "response.output_item.done" and isinstance(event.get("item"), dict):
            self._output.append(orjson.dumps(event["item"]))
        elif event.get("type") in _ENDS and isinstance(event.get("response"), dict):
            self._keep(event["response"])

    def _keep(self, response: Mapping[str, Any]) -> None:
        """Keep a response that ended: its own ``output``, else the items that came (dialects.md §2.2)."""
        output = [orjson.dumps(item) for item in response.get("output") or ()] or self._output
        self._id = str(response.get("id") or "")
        self._items = b",".join([*([self._input] if self._input else []), *output])
        self._input, self._output = b"", []
        if len(self._items) > self._limit_bytes:
            self.forget()

    def _unknown(self, previous: object) -> ProviderFailed:
        name = quoted(str(previous), SHOWN_CHARS)
        why = f"no response {name} is kept on this connection, which keeps its last one"
        if previous == self._left_out:
            why = f"the response {name} and its input are larger than what may be kept of them"
        message = f"{why}; send the whole input, without previous_response_id"
        return _refused(message, code="previous_response_not_found", param="previous_response_id")


def _items_of(value: object) -> bytes | None:
    """An ``input`` as items with commas between; None for what can't be one, of which the decoder says what is wrong."""
    if value is None:
        return b""
    if isinstance(value, str):
        return orjson.dumps({"type": "message", "role": "user", "content": value})
    return orjson.dumps(value)[1:-1] if isinstance(value, list) else None


def _refused(message: str, *, code: str | None = None, param: str | None = None) -> ProviderFailed:
    raw = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return ProviderFailed("invalid_request", message, code=code, http_status=400, vendor=VENDOR, raw=raw)
