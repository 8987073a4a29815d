"""Faults of servers that send Responses events: for each repair of the decoder, a change of a stream that needs the repair.

A text is repeated after its deltas, as a whole. So a change of a text must change all repetitions of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from streamkit.dialects.quirks import (
    BYTE_FF,
    EVENTS,
    HIGH,
    LOW,
    Change,
    Fragments,
    Frames,
    Payload,
    Where,
    bare_input,
    both,
    copied,
    cut,
    end_quirks,
    event_quirks,
    every,
    first,
    last,
    put,
    rewrite,
    stray_errors,
    turn,
    value_at,
    without_event_line,
)

ADDED, DONE = "response.output_item.added", "response.output_item.done"
PART_DONE: Final = "response.content_part.done"
TEXT, TEXT_DONE = "response.output_text.delta", "response.output_text.done"
ARGUMENTS, ARGUMENTS_DONE = "response.function_call_arguments.delta", "response.function_call_arguments.done"
INDEX: Final = "output_index"
ENDED: Final = every("type", "response.completed", "response.incomplete")
FAILED: Final = every("type", "response.failed")
ERROR: Final = every("type", "error")
REASON: Final = "response.incomplete_details.reason"

edit, add = EVENTS.edit, EVENTS.add


def _item(event: str, kind: str, *, part: slice = slice(None)) -> Where:
    """Select the events with this name about items of this kind."""
    return Where("", lambda payload: payload.get("type") == event and value_at(payload, "item.type") == kind, part)


CALL_ADDED, MESSAGE_ADDED = _item(ADDED, "function_call"), _item(ADDED, "message", part=slice(1))
LAST_CALL_DONE: Final = _item(DONE, "function_call", part=slice(-1, None))
FRAGMENTS: Final = Fragments(
    changes=EVENTS, start=CALL_ADDED, fragment=every("type", ARGUMENTS), key=INDEX, text="delta"
)
#: Turns the start of a message into the start of another item.
MORE: Final = (
    put(INDEX, 99),
    put("item.id", "msg_more"),
    put("item.content", [{"type": "output_text", "text": "And more."}]),
)


def _items(payload: Payload) -> Iterator[dict[str, Any]]:
    """Return all whole items in an event: the event's item, and the items in its response."""
    found = [payload.get("item"), *(payload.get("response") or {}).get("output", ())]
    return (item for item in found if isinstance(item, dict))


def _calls(change: Callable[[dict[str, Any]], None]) -> Change:
    """Return a change of each call item. It is made in every event that contains the whole item."""

    def step(payload: Payload) -> None:
        for item in _items(payload):
            if item["type"] == "function_call":
                change(item)

    return edit(every("type"), step)


def _of_first_call(make: Callable[[Payload], Change]) -> Change:
    """Return a change that is made from the event that adds the first call. Without a call, nothing changes."""

    def change(frames: Frames) -> Frames:
        added = next(EVENTS.having(CALL_ADDED, frames), None)
        return frames if added is None else make(added)(frames)

    return change


@_of_first_call
def _call_ids(added: Payload) -> Change:
    """Give every call the id of the first call."""
    return _calls(lambda call: call.update(call_id=added["item"]["call_id"]))


@_of_first_call
def _nameless(added: Payload) -> Change:
    """Remove the name of the first call from all its events."""
    return _calls(lambda call: call.pop("name") if call["id"] == added["item"]["id"] else None)


def _text_goes_on(*deltas: str) -> Change:
    """Return a change that appends these deltas to the text of the first message, and to the repetitions of that text."""

    def change(frames: Frames) -> Frames:
        texts = list(EVENTS.having(every("type", TEXT), frames))
        if not texts:
            return frames
        name = texts[0]["item_id"]
        last_one = [payload for payload in texts if payload["item_id"] == name][-1]

        def more(payload: Payload) -> list[Payload]:
            if payload == last_one:
                return [payload, *(copied(payload, put("delta", text)) for text in deltas)]
            _append(payload, name, "".join(deltas))
            return [payload]

        return EVENTS.each(every("type"), more)(frames)

    return change


def _append(payload: Payload, name: str, text: str) -> None:
    """Append ``text`` to the whole text of the item ``name``, if this event contains it."""
    if payload.get("item_id") == name and payload["type"] == TEXT_DONE:
        payload["text"] += text
    if payload.get("item_id") == name and payload["type"] == PART_DONE:
        payload["part"]["text"] += text
    for item in _items(payload):
        if item["id"] == name and item["content"]:
            item["content"][-1]["text"] += text


@_of_first_call
def _text_in_call(added: Payload) -> Change:
    """Insert a delta event that repeats the first text, but names the first call as its item."""
    place = put(INDEX, added[INDEX]), put("item_id", added["item"]["id"])
    return EVENTS.move(first("type", TEXT), *place, behind=CALL_ADDED)


def _bare_response(payload: Payload) -> None:
    payload |= {**payload.pop("response"), "type": payload["type"]}


QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=False),
    **stray_errors(ERROR),
    **end_quirks(EVENTS, MESSAGE_ADDED, *MORE, end=ENDED, error=FAILED),
    "invalid_utf8": _text_goes_on(BYTE_FF),
    "lone_surrogate": _text_goes_on(HIGH),
    "character_cut": _text_goes_on(HIGH, LOW),
    "event_type_missing": EVENTS.unless(ERROR, edit(every("type"), cut("type"))),
    "number_out_of_range": edit(first("type", TEXT), put("elapsed", 10**400)),
    "payload_in_list": EVENTS.each(first("type", TEXT), lambda payload: ([payload],)),
    "field_invalid": edit(first("type", PART_DONE), put("part.annotations", "none")),
    "error_shape": both(EVENTS.rewrite(ERROR, without_event_line), edit(ERROR, cut("type"))),
    "index_invalid": edit(every(INDEX), turn(INDEX, str)),
    "text_as_object": edit(every("type", TEXT), turn("delta", lambda text: {"text": text})),
    "list_missing": edit(ENDED, turn("response.output", lambda output: dict(enumerate(output)))),
    "list_unasked": edit(every("item"), turn("item", lambda item: [item])),
    "object_missing": edit(_item(DONE, "message"), turn("item.content.0", lambda part: part["text"])),
    "arguments_not_text": edit(every("type", ARGUMENTS_DONE), turn("arguments", json.loads)),
    "block_unopened": EVENTS.drop(MESSAGE_ADDED),
    "block_unclosed": EVENTS.when(ENDED, EVENTS.drop(last("type", DONE))),
    "block_mismatch": _text_in_call,
    "block_reopened": add(MESSAGE_ADDED),
    "response_bare": edit(every("response"), _bare_response),
    "response_restarted": add(first("type", "response.created")),
    "index_missing": edit(every(INDEX), cut(INDEX)),
    "index_reused": edit(every(INDEX), put(INDEX, 0)),
    "id_missing": _calls(lambda call: call.pop("call_id")),
    "id_duplicate": _call_ids,
    "call_nameless": _nameless,
    "arguments_repeated": FRAGMENTS.again(),
    "arguments_cumulative": both(EVENTS.halve(first("type", ARGUMENTS), "delta"), FRAGMENTS.cumulative()),
    "arguments_replaced": EVENTS.when(ENDED, FRAGMENTS.one(lambda _text: "{}")),
    "empty_object_prefix": add(first("type", ARGUMENTS), put("delta", "{}"), behind=False),
    "fragments_missing": EVENTS.when(
        ENDED, both(EVENTS.halve(last("type", TEXT), "delta"), EVENTS.drop(last("type", TEXT)))
    ),
    "whole_differs": edit(every("type", TEXT_DONE), put("text", "Something else.")),
    "whole_misplaced": edit(every("type", TEXT_DONE), turn("content_index", lambda index: index + 1)),
    "text_repeated": EVENTS.share(first("type", TEXT), "delta", first("part.type", "output_text"), "part.text"),
    "arguments_late": EVENTS.when(
        ENDED, EVENTS.move(last("type", ARGUMENTS), put("delta", "late"), behind=LAST_CALL_DONE)
    ),
    "custom_input_bare": both(
        FRAGMENTS.one(bare_input),
        _calls(lambda call: call.update(arguments=call["arguments"] and bare_input(call["arguments"]))),
        edit(every("type", ARGUMENTS_DONE), turn("arguments", bare_input)),
    ),
    "stop_reason_foreign": edit(every(REASON), put(REASON, "max_tokens")),
    "stop_conflict": edit(every("type", "response.incomplete"), put("response.status", "completed")),
    "terminal_renamed": rewrite(b"response.completed", b"response.done"),
}
