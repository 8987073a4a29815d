"""Quirks that several dialects share: each change imitates a server's fault, which streamkit must repair."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.dialects.quirks.calls import Fragments
from streamkit.dialects.quirks.changes import (
    BYTE_FF,
    Change,
    Changes,
    ChangeStep,
    EventForm,
    Frames,
    Payload,
    Where,
    both,
    copied,
    cut,
    every,
    first,
    insert,
    put,
    reword,
    turn,
    value_at,
)

EVENTS: Final = Changes(EventForm())
#: Selects every JSON payload. It selects nothing in a stream of another form, such as Google's JSON array.
ANY: Final = every("")
#: The two UTF-16 halves of a character above U+FFFF.
HIGH, LOW = "\ud83d", "\ude00"
_EVENT_LINE: Final = re.compile(rb"^event: ?[^\r\n]*\r?\n", re.MULTILINE)


def text_quirks(changes: Changes, where: Where, text: str) -> Mapping[str, Change]:
    """Return the quirks of text in deltas. ``where`` selects the deltas; their text is at the path ``text``."""

    def halves(payload: Payload) -> tuple[Payload, ...]:
        return copied(payload, put(text, value_at(payload, text) + HIGH)), copied(payload, put(text, LOW))

    return {
        "invalid_utf8": changes.edit(where, turn(text, lambda value: value + BYTE_FF)),
        "lone_surrogate": changes.edit(where, turn(text, lambda value: value + HIGH)),
        "character_cut": changes.each(where, halves),
        "number_out_of_range": changes.edit(where, put("elapsed", 10**400)),
        "payload_in_list": changes.each(where, lambda payload: ([payload],)),
        "text_as_object": changes.edit(evolve(where, part=slice(None)), turn(text, lambda value: {"text": value})),
    }


def call_quirks(calls: Fragments, name: str, call_id: str) -> Mapping[str, Change]:
    """Return the quirks of calls that are sent in fragments. ``name`` and ``call_id`` are paths in a call's start."""
    changes, starts = calls.changes, every(name)
    first_fragment = evolve(calls.fragment, part=slice(1))
    return {
        "id_missing": changes.edit(starts, cut(call_id)),
        "id_duplicate": changes.share(starts, call_id, starts, call_id),
        "call_nameless": changes.edit(first(name), cut(name)),
        "arguments_repeated": calls.again(),
        "arguments_cumulative": both(changes.halve(first_fragment, calls.text), calls.cumulative()),
        "custom_input_bare": calls.one(bare_input),
    }


def stop_quirks(
    changes: Changes,
    call: Where,
    reason: str,
    foreign: Mapping[str, str],
    *,
    called: str,
    stopped: str,
    unknown: str = "done_calling",
) -> Mapping[str, Change]:
    """Return the quirks of the stop reason at the path ``reason``. ``foreign``: other dialects' words, by this dialect's.

    The reason is ``called`` if there is a ``call``, otherwise ``stopped``. ``unknown`` is a word that no dialect has.
    """
    after_calls = every(reason, called)
    return {
        "stop_with_calls": changes.edit(after_calls, put(reason, stopped)),
        "stop_unknown_with_calls": changes.edit(after_calls, put(reason, unknown)),
        "calls_without_call": changes.unless(call, changes.edit(every(reason, stopped), put(reason, called))),
        "stop_reason_foreign": changes.edit(every(reason), reword(reason, foreign)),
    }


def end_quirks(
    changes: Changes, content: Where, *steps: ChangeStep, end: Where | None, error: Where | None
) -> Mapping[str, Change]:
    """Return the quirks in which content is repeated after the end. The ``steps`` change the repeated payload.

    ``end`` selects a payload of successful streams, and ``error`` one of failed streams. None: the quirk is impossible.
    """
    again = changes.move(content, *steps)
    behind_end: Mapping[str, Change] = {} if end is None else {"after_end": changes.when(end, again)}
    behind_error: Mapping[str, Change] = {} if error is None else {"after_error": changes.when(error, again)}
    return {**behind_end, **behind_error}


def event_quirks(*, done_mark: bool, end: bytes = b"\n\n") -> Mapping[str, Change]:
    """Return the quirks of server-sent events that end with ``end``. ``done_mark``: ``[DONE]`` ends the dialect's streams."""
    changes: dict[str, Change] = {
        "sse_field_unknown": _unknown_field,
        "comment_as_data": insert(1, b"data: : keep-alive" + end),
        "last_event_unterminated": unterminated,
        "payload_no_object": insert(1, b"data: null" + end),
    }
    if not done_mark:
        changes["foreign_terminator"] = insert(-1, b"data: [DONE]" + end)
    return {kind: EVENTS.when(ANY, change) for kind, change in changes.items()}


def stray_errors(error: Where) -> Mapping[str, Change]:
    """Return the quirks in which the payload that ``error`` selects is sent in a wrong SSE field, or in none."""
    return {
        "sse_error_field": EVENTS.rewrite(error, lambda frame: frame.replace(b"data: ", b"error: ", 1)),
        "sse_bare_json": EVENTS.rewrite(error, lambda frame: frame.replace(b"data: ", b"", 1)),
    }


def without_event_lines(frames: Frames) -> Frames:
    """Remove the lines that name the events."""
    return tuple(map(without_event_line, frames))


def without_event_line(frame: bytes) -> bytes:
    """Return the frame without the line that names its event."""
    return _EVENT_LINE.sub(b"", frame)


def surrounded(changes: Changes, first: Where, last: Where, text: str) -> Change:
    """Return a change that writes ``<think>`` before the ``first`` delta's text and ``</think>`` after the ``last``'s."""
    opened = changes.edit(first, turn(text, lambda value: f"<think>{value}"))
    return both(opened, changes.edit(last, turn(text, lambda value: f"{value}</think>")))


def call_text(name: Any, arguments: Any) -> str:
    """Return a call in the form in which Hermes and Qwen write it into their text."""
    return f"\n<tool_call>{compact({'name': name, 'arguments': arguments})}</tool_call>"


def compact(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def bare_input(arguments: str) -> str:
    """Return the string in arguments of the form ``{"input": "…"}``; other arguments unchanged."""
    document = json.loads(arguments)
    match document:
        case {"input": str(text)} if len(document) == 1:
            return text
    return arguments


def unterminated(frames: Frames) -> Frames:
    """Remove the line ends after the last event."""
    return (*frames[:-1], *(frame.rstrip(b"\r\n") for frame in frames[-1:]))


def _unknown_field(frames: Frames) -> Frames:
    return tuple(frame if number else b"status: 200\n" + frame for number, frame in enumerate(frames))
