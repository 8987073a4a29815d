"""Responses that a server keeps: responses generated in the background, and responses that later requests continue.

An id of this server replaces the provider's id, because local engines' ids can be guessed and repeated. The id is in the
``response`` of a few events, which are the only text that changes. The kept value is JSON text: the input of a response, and
the response. A conversation continues after this input and output, and an ``item_reference`` is replaced by the item of that
id.

The state of a response in the background is read from its stream: from the last event with a ``response``, or from the error
at the end. So no response stays in progress for ever.

Source: resume.md §4.6, §5.4, §13.1; R6, R27; dialects.md §2.2, §2.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from streamkit.conversation.messages import Request
from streamkit.dialects.http import BACKGROUND_SETTING, STATELESS, KeptAnswer, Query, StoredForm
from streamkit.dialects.members.fields import fields_of
from streamkit.dialects.members.values import json_value
from streamkit.dialects.openai_responses.encode import DEFAULTS
from streamkit.dialects.openai_responses.kept import (
    body_of,
    conversation_in,
    items_of,
    joined,
    not_found,
    output_in,
    refused,
    value_of,
)
from streamkit.dialects.openai_responses.socket import ENDS, FAILED, ITEM_DONE, typed
from streamkit.dialects.openai_responses.wire import ERROR_TYPES, VENDOR
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.framing.sse import SSEParser, serialize_sse
from streamkit.report import StreamReport
from streamkit.text.quoting import writable
from streamkit.tool_calls.value_text import ValueTexts, item_texts, value_text, with_members

dumps = orjson.dumps
PREVIOUS: Final = "previous_response_id"
NUMBER: Final = "sequence_number"
#: The statuses of a response that has not ended.
UNDERWAY: Final = frozenset({"queued", "in_progress"})
_RESPONSE: Final = b'"response"'
_DONE: Final = ITEM_DONE.encode()
#: Matches the line ends after an event.
_EVENT_END: Final = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)+")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False, "": False}


class KeptRequest:
    """A request body that may refer to earlier responses."""

    def __init__(self, body: bytes) -> None:
        fields = fields_of(body, StreamReport())
        self._members = fields.peek_all()
        self._texts = ValueTexts(fields.body.text)
        previous, asked = self._members.get(PREVIOUS), self._members.get("input")
        if previous is not None and not isinstance(previous, str):
            raise BadRequest(PREVIOUS, "the id of a response is needed")
        self.previous_id = previous or ""
        self.is_kept = self._members.get("store") is not False
        items = asked if isinstance(asked, list) else []
        self.item_ids = {f"input[{at}]": item["id"] for at, item in enumerate(items) if _is_reference(item)}
        self.input = items_of(asked, self._text("input")) or b""

    def resolved(self, previous: bytes, items: Mapping[str, bytes]) -> bytes:
        asked = self.input
        if self.item_ids:
            texts = enumerate(item_texts(self._text("input").decode()))
            asked = joined(items.get(self.item_ids.get(f"input[{at}]", ""), text) for at, text in texts)
        self.input = joined([conversation_in(previous) if previous else b"", asked])
        members = {name: self._text(name) for name in self._members if name != PREVIOUS}
        return body_of({**members, "input": b"[%b]" % self.input})

    def unknown(self, place: str) -> ProviderFailed:
        if not place:
            return not_found("no such response is kept here, or none any more")
        message = f"{place}: no such item is kept here, or none any more; send the item itself, and store: false"
        return refused(message, param=place)

    def _text(self, name: str) -> bytes:
        return self._texts.text(name).encode() if name in self._members else b""


def _is_reference(item: Any) -> bool:
    """Return whether an input item refers to a kept item. A reference needs no type if it has nothing but an id."""
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return False
    return item.get("type") == "item_reference" or item.keys() == {"id"}


class ResponseWriter:
    """Puts the server's id into a response, and collects the output items in case the last event lacks them."""

    def __init__(self, response_id: str, is_background: bool, previous_id: str) -> None:
        said = {"id": response_id, "background": is_background, PREVIOUS: previous_id or None, "store": True}
        self._said = {name: dumps(value) for name, value in said.items()}
        self._done: list[bytes] = []  # finished output items
        self._response = b""  # the complete response, after it ended normally

    def feed(self, chunk: bytes, /) -> bytes:
        if _RESPONSE not in chunk and _DONE not in chunk:
            return chunk
        begin, pieces = 0, []
        for end in [*(found.end() for found in _EVENT_END.finditer(chunk)), len(chunk)]:
            pieces.append(self._event(chunk[begin:end]))
            begin = end
        return b"".join(pieces)

    def _event(self, event: bytes) -> bytes:
        if _RESPONSE not in event and _DONE not in event:
            return event
        for frame in _frames(event):
            kind, payload = typed(frame)
            if kind == ITEM_DONE:
                self._done.append(value_text(payload, "item").encode())
            elif isinstance(response := _object(payload).get("response"), dict):
                said = with_members(frame.data, self._said, "response")
                if kind in ENDS:
                    self._end(said, response)
                return event.replace(frame.data, said) if frame.data in event else serialize_sse(said, event=kind)
        return event

    def _end(self, event: bytes, response: Mapping[str, Any]) -> None:
        output = b"[%b]" % output_in(event, response, self._done)
        self._response = with_members(value_text(event, "response").encode(), {"output": output})

    def whole(self, body: bytes, /) -> bytes:
        said = with_members(body, self._said)
        if _object(body).get("status") in {"completed", "incomplete"}:
            self._response = value_text(said).encode()
        return said

    def kept(self, asked: bytes, /) -> KeptAnswer | None:
        if not self._response:
            return None
        return KeptAnswer(value_of(asked, self._response), _items_in(self._response))


def _object(text: bytes) -> dict[str, Any]:
    """Return the members of a JSON object. Its strings may contain halves of surrogate pairs, which orjson refuses."""
    value = json_value(text)
    if value is None:
        with suppress(ValueError):
            value = json.loads(text)
    return value if isinstance(value, dict) else {}


def _items_in(response: bytes) -> dict[str, bytes]:
    """Return the items of a response's output, by their ids."""
    texts = item_texts(value_text(response, "output"))
    return {item["id"]: text for text in texts if isinstance((item := _object(text)).get("id"), str)}


def _frames(event: bytes) -> list[Any]:
    """Return those frames of the events whose payload is a JSON object."""
    return [frame for frame in SSEParser().feed(event) if frame.data.lstrip().startswith(b"{")]


class Behind:
    """Forwards the events of a stream after a given sequence number. Events without a number are counted instead.

    If a failure has a number that the client has already seen, it gets the next number, because the client would ignore it
    (R6).
    """

    def __init__(self, response_id: str, number: int) -> None:
        self.fault: Exception | None = None
        self._writer = ResponseWriter(response_id, is_background=True, previous_id="")
        self._number = number  # the number of the last event that the client has
        self._last = -1  # the number of the last event that was read
        self._held = bytearray()
        self._passes = number < 0

    def feed(self, chunk: bytes, /) -> bytes:
        begun = max(0, len(self._held) - len(b"\r\n\r"))  # the bytes before were already searched
        self._held += chunk
        end = max((found.end() for found in _EVENT_END.finditer(self._held, begun)), default=0)
        events = bytes(self._held[:end])
        del self._held[:end]
        if self._passes:
            return events
        begin, pieces = 0, []
        for found in _EVENT_END.finditer(events):
            pieces.append(self._event(events[begin : found.end()]))
            begin = found.end()
        return b"".join(pieces)

    def finish(self) -> bytes:
        if self._last < self._number:
            self.fault = BadRequest("starting_after", f"this response has no event {self._number}")
        rest, self._held = bytes(self._held), bytearray()
        return rest if self._passes else b""

    def abandon(self) -> bytes:
        return b""

    def _event(self, event: bytes) -> bytes:
        for frame in _frames(event):
            kind, payload = typed(frame)
            number = _object(payload).get(NUMBER)
            self._last = max(self._last + 1, number) if type(number) is int else self._last + 1
            if self._last > self._number:
                self._passes = True
            elif kind in {"error", FAILED}:
                self._number += 1
                self._last = self._number
                return serialize_sse(with_members(payload, {NUMBER: b"%d" % self._number}), event=kind)
            else:
                return b""
        return event if self._passes else b""


def read_background(request: Request, is_served: bool) -> bool:
    """Return whether a response must be generated in the background. Remove the member, which no upstream needs.

    Raises BadRequest if the background is not available.
    """
    asked = request.extras.get("background")
    if asked is not None and not isinstance(asked, bool):
        raise BadRequest("background", "true or false is needed")
    if not asked:
        return False
    del request.extras["background"]
    if not is_served:
        instead = "ask without background, and with stream: true if it takes long"
        raise BadRequest("background", f"{STATELESS}, {BACKGROUND_SETTING}; {instead}")
    if request.extras.get("store") is False:
        raise BadRequest("store", "a response in the background is kept; leave store: false out, or background")
    return True


def queued(response_id: str, created: int, model: str, settings: Mapping[str, Any]) -> bytes:
    """Return a response that has not begun, as JSON."""
    begun = {"id": response_id, "object": "response", "created_at": created, "model": model, "status": "queued"}
    nothing: dict[str, Any] = {"error": None, "incomplete_details": None, "output": [], "usage": None}
    return dumps({**begun, **nothing, **DEFAULTS, **settings, "background": True, "store": True})


def answer_of(log: bytes, end: str, begun: bytes) -> bytes:
    """Return the response in a stream, whose ``end`` is empty while it continues. ``begun`` is used if the stream has none."""
    response, error = begun, None
    for event in reversed(_EVENT_END.split(log)):
        if _RESPONSE not in event and b"error" not in event:
            continue
        for frame in _frames(event + b"\n\n"):
            kind, payload = typed(frame)
            members = _object(payload)
            if kind == "error" and error is None:
                error = _error_in(members)
            if isinstance(members.get("response"), dict):
                return _ended(value_text(payload, "response").encode(), end, error)
    return _ended(response, end, error)


def _ended(response: bytes, end: str, error: Mapping[str, Any] | None) -> bytes:
    """Return the response with a status that says how its stream ended, unless it already has a final status."""
    status = _object(response).get("status")
    if end == "cancelled" and status not in {"completed", "incomplete"}:
        return with_members(response, {"status": b'"cancelled"', "error": b"null"})
    if not end or status not in UNDERWAY:
        return response
    told = error or {"code": "server_error", "message": "the response broke off; ask again"}
    return with_members(response, {"status": b'"failed"', "error": dumps(told)})


def _error_in(event: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in event.items() if name not in {"type", NUMBER}}
    failed = provider_failed(event.get("error") or flat, VENDOR, ERROR_TYPES)
    return {"code": failed.code or "server_error", "message": writable(failed.message)}


def stream_asked(query: Query) -> tuple[bool, int]:
    """Return whether ``GET`` of a response requests its stream, and after which event. Raises BadRequest."""
    asked, after = _TRUTH.get(query.get("stream", "").lower()), query.get("starting_after", "")
    if asked is None:
        raise BadRequest("stream", "true or false is needed")
    if after and _NUMBER.fullmatch(after) is None:
        raise BadRequest("starting_after", "the sequence_number of an event is needed")
    return asked, int(after) if after else -1


def ids_in(value: bytes) -> Sequence[str]:
    """Return the ids of the output items of a kept response."""
    return [*_items_in(value_text(value, "response").encode())]


STORED: Final = StoredForm(
    path="/v1/responses",
    prefix="resp_",
    background=read_background,
    request=KeptRequest,
    writer=ResponseWriter,
    queued=queued,
    answer=answer_of,
    answer_in=lambda value: value_text(value, "response").encode(),
    ids_in=ids_in,
    stream_asked=stream_asked,
    behind=Behind,
    deleted=lambda response_id: {"id": response_id, "object": "response", "deleted": True},
    not_background=refused("Cannot cancel a synchronous response.", param="response_id"),
)
