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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from streamkit.conversation.messages import Request
from streamkit.dialects.http import BACKGROUND_SETTING, SHOWN_CHARS, STATELESS, KeptAnswer, Query, StoredForm, page_size
from streamkit.dialects.members.fields import fields_of, kind_of
from streamkit.dialects.members.values import json_value
from streamkit.dialects.openai_responses.encode import DEFAULTS
from streamkit.dialects.openai_responses.socket import (
    ENDS,
    FAILED,
    body_of,
    conversation_in,
    failure_in,
    items_of,
    joined,
    not_found,
    output_in,
    refused,
    typed,
    value_of,
)
from streamkit.dialects.vocabulary.client_tools import DONE
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.framing.sse import SSEParser, serialize_sse
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed
from streamkit.text.quoting import quoted, writable
from streamkit.tool_calls.value_text import ValueTexts, item_texts, value_text, with_members

dumps = orjson.dumps
PREVIOUS: Final = "previous_response_id"
NUMBER: Final = "sequence_number"
_RESPONSE: Final = b'"response"'
_DONE: Final = DONE.encode()
#: The beginning of an item's id, by the item's type. A message needs no type.
_PREFIXES: Final[Mapping[Any, str]] = {
    **dict.fromkeys((None, "message"), "msg_"),
    "reasoning": "rs_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
}
_EVENT_END: Final = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)+")  #: matches the line ends after an event


class KeptRequest:
    """A request body that may refer to earlier responses."""

    def __init__(self, body: bytes) -> None:
        fields = fields_of(body, StreamReport())
        self._members = fields.peek_all()
        self._texts = ValueTexts(fields.body.text)
        previous, asked = self._members.get(PREVIOUS), self._members.get("input")
        if previous is not None and not isinstance(previous, str):
            raise BadRequest(PREVIOUS, f"must be the id of a response, not {kind_of(previous)}")
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
            return not_found("this server has no response with this id, or no longer has it")
        message = f"{place}: this server has no item with this id, or no longer has it; send the item itself, and store: false"
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
        members = {"id": response_id, "background": is_background, PREVIOUS: previous_id or None, "store": True}
        self._members = {name: dumps(value) for name, value in members.items()}
        self._done: list[bytes] = []  # finished output items
        self._response = b""  # the complete response, after it ended normally

    def feed(self, chunk: bytes, /) -> bytes:
        return b"".join(map(self._event, _events(chunk))) if _RESPONSE in chunk or _DONE in chunk else chunk

    def _event(self, event: bytes) -> bytes:
        if _RESPONSE not in event and _DONE not in event:
            return event
        for frame in _frames(event):
            kind, payload = typed(frame)
            if kind == DONE:
                self._done.append(value_text(payload, "item").encode())
            elif isinstance(response := _object(payload).get("response"), dict):
                data = with_members(frame.data, self._members, "response")
                if kind in ENDS:
                    output = b"[%b]" % output_in(data, response, self._done)
                    self._response = with_members(value_text(data, "response").encode(), {"output": output})
                return event.replace(frame.data, data) if frame.data in event else serialize_sse(data, event=kind)
        return event

    def whole(self, body: bytes, /) -> bytes:
        whole = with_members(body, self._members)
        if _object(body).get("status") in {"completed", "incomplete"}:
            self._response = value_text(whole).encode()
        return whole

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


def _events(chunk: bytes) -> Iterator[bytes]:
    """Split bytes of a stream after each event."""
    begin = 0
    for end in [*(found.end() for found in _EVENT_END.finditer(chunk)), len(chunk)]:
        yield chunk[begin:end]
        begin = end


def _frames(event: bytes) -> list[Any]:
    """Return those frames of the events whose payload is a JSON object."""
    return [frame for frame in SSEParser().feed(event) if frame.data.lstrip().startswith(b"{")]


class Behind:
    """Forwards the events of a stream after a given sequence number. Events without a number are counted instead.

    A failure whose number the client has already seen gets the next number, or the client would ignore it (R6).
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
        return events if self._passes else b"".join(map(self._event, _events(events)))

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
    """Return whether to generate a response in the background. Remove the member. Raises BadRequest if it is unavailable."""
    asked = request.extras.get("background")
    if asked is not None and not isinstance(asked, bool):
        raise BadRequest("background", f"must be true or false, not {kind_of(asked)}")
    if not asked:
        return False
    del request.extras["background"]
    if not is_served:
        instead = "send the request without background, and with stream: true if the response takes long"
        raise BadRequest("background", f"{STATELESS}, {BACKGROUND_SETTING}; {instead}")
    if request.extras.get("store") is False:
        raise BadRequest(
            "store", "must not be false, because a background response is stored; remove it, or background"
        )
    return True


def queued(response_id: str, created: int, model: str, settings: Mapping[str, Any]) -> bytes:
    """Return a response that has not begun, as JSON."""
    begun = {"id": response_id, "object": "response", "created_at": created, "model": model, "status": "queued"}
    nothing: dict[str, Any] = {"error": None, "incomplete_details": None, "output": [], "usage": None}
    return dumps({**begun, **nothing, **DEFAULTS, **settings, "background": True, "store": True})


def answer_of(log: bytes, end: str, begun: bytes) -> bytes:
    """Return the response in a stream, whose ``end`` is empty while it continues. ``begun`` is used if the stream has none."""
    error: dict[str, Any] | None = None
    for event in reversed(_EVENT_END.split(log)):
        if _RESPONSE not in event and b"error" not in event:
            continue
        for frame in _frames(event + b"\n\n"):
            kind, payload = typed(frame)
            members = _object(payload)
            if kind == "error" and error is None:
                failed = failure_in(members)
                error = {"code": failed.code or "server_error", "message": writable(failed.message)}
            if isinstance(members.get("response"), dict):
                return _ended(value_text(payload, "response").encode(), end, error)
    return _ended(begun, end, error)


def _ended(response: bytes, end: str, error: Mapping[str, Any] | None) -> bytes:
    """Return the response with a status that says how its stream ended, unless it already has a final status."""
    status = _object(response).get("status")
    if end == "cancelled" and status not in {"completed", "incomplete"}:
        return with_members(response, {"status": b'"cancelled"', "error": b"null"})
    if not end or status not in {"queued", "in_progress"}:
        return response
    failure = error or {"code": "server_error", "message": "the response was interrupted; retry the request"}
    return with_members(response, {"status": b'"failed"', "error": dumps(failure)})


def stream_asked(query: Query) -> tuple[bool, int]:
    """Return whether ``GET`` of a response requests its stream, and after which event. Raises BadRequest."""
    words = {"true": True, "1": True, "false": False, "0": False, "": False}
    asked, after = words.get(query.get("stream", "").lower()), query.get("starting_after", "")
    if asked is None:
        raise BadRequest("stream", f"must be true or false, not {quoted(query['stream'], SHOWN_CHARS)}")
    if after and re.fullmatch(r"0|[1-9][0-9]{0,8}", after) is None:
        raise BadRequest("starting_after", f"must be the sequence_number of an event, not {quoted(after, SHOWN_CHARS)}")
    return asked, int(after) if after else -1


def input_items(value: bytes, query: Query) -> bytes:
    """Return the page of a kept response's input items that ``query`` asks for, as JSON. Raises BadRequest.

    The input is the whole conversation before the response. Clients of this list expect ids and lists of parts, which an item
    of a request may lack: a text becomes a part, and an id is made from the item's place, so that it is the same each time.
    """
    order = query.get("order") or "desc"
    if order not in {"asc", "desc"}:
        raise BadRequest("order", f"must be 'asc' or 'desc', not {quoted(order, SHOWN_CHARS)}")
    size, after = page_size(query, "limit", 20, most=100), query.get("after")
    response_id = _object(value_text(value, "response").encode()).get("id")
    items: dict[str, bytes] = {}
    for at, text in enumerate(item_texts(value_text(value, "input"))):
        item = _object(text)
        item_id = item.get("id")
        if not isinstance(item_id, str) or not item_id or item_id in items:  # a conversation may repeat an item
            item_id = f"{_PREFIXES.get(item.get('type'), 'item_')}{hashed(f'{response_id} {at}', 22)}"
        items[item_id] = _listed(text, item, item_id)
    ids = [*items] if order == "asc" else [*items][::-1]
    if after and after not in items:
        raise BadRequest("after", f"this response has no input item {quoted(after, SHOWN_CHARS)}")
    begin = ids.index(after) + 1 if after else 0
    page = ids[begin : begin + size]
    return body_of(
        {
            "object": b'"list"',
            "data": b"[%b]" % joined(items[item_id] for item_id in page),
            "first_id": dumps(page[0] if page else None),
            "last_id": dumps(page[-1] if page else None),
            "has_more": dumps(begin + size < len(ids)),
        }
    )


def _listed(text: bytes, item: Mapping[str, Any], item_id: str) -> bytes:
    """Return an input item with an id, a type and, instead of a message's text, a list with one part."""
    members = {"id": dumps(item_id), "type": dumps(item.get("type") or "message")}
    if "role" in item and isinstance(item.get("content"), str):
        is_output = item["role"] == "assistant"
        part: dict[str, Any] = {"type": "output_text", "annotations": []} if is_output else {"type": "input_text"}
        members["content"] = b"[%b]" % with_members(dumps(part), {"text": value_text(text, "content").encode()})
    return with_members(text, members)


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
    input_items=input_items,
    stream_asked=stream_asked,
    behind=Behind,
    deleted=lambda response_id: {"id": response_id, "object": "response", "deleted": True},
    not_background=refused("Cannot cancel a synchronous response.", param="response_id"),
)
