"""The building blocks of quirks: changes of a stream's frames that imitate the faults of servers in tests.

A change takes the frames of a stream, each as bytes, and returns changed frames. If the stream lacks what the change needs, it
returns the same frames. It depends only on the frames, so a stream is always changed in the same way.

A path names a member of a payload by its steps from the top, separated by dots: ``choices.0.delta.content``. A step of digits
is an index of a list.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, Protocol, TypeAlias

from attrs import evolve, frozen

from streamkit.framing.eventstream import EventStreamParser, serialize_eventstream

Frames: TypeAlias = tuple[bytes, ...]
Change: TypeAlias = Callable[[Frames], Frames]
Payload: TypeAlias = dict[str, Any]
#: Returns the payloads that replace a payload. Each gets a frame like the original's. The argument may be changed.
Edit: TypeAlias = Callable[[Payload], Sequence[Any]]
ChangeStep: TypeAlias = Callable[[Payload], None]  #: changes a payload in place

MISSING: Final = object()
#: The character that represents the byte FF in a text, as in Python's error handler ``surrogateescape``.
BYTE_FF: Final = "\udcff"
_DATA = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)


class Form(Protocol):
    """How a frame contains its payload."""

    def load(self, frame: bytes) -> Payload | None:
        """Return the payload; None for a frame without a JSON object."""

    def dump(self, frame: bytes, payload: Any, /) -> bytes:
        """Return the frame with another payload."""


class EventForm:
    """An SSE event with one line of data."""

    def load(self, frame: bytes) -> Payload | None:
        found = _DATA.search(frame)
        return None if found is None else _object(found[1])

    def dump(self, frame: bytes, payload: Any) -> bytes:
        return _DATA.sub(lambda _found: b"data: " + _text(payload), frame, count=1)


class LineForm:
    """A line of NDJSON."""

    def load(self, frame: bytes) -> Payload | None:
        return _object(frame)

    def dump(self, _frame: bytes, payload: Any) -> bytes:
        return _text(payload) + b"\n"


class MessageForm:
    """A binary message of Amazon's event stream. Its headers are kept."""

    def load(self, frame: bytes) -> Payload | None:
        found = EventStreamParser().feed(frame)
        return _object(found[0].data) if len(found) == 1 else None

    def dump(self, frame: bytes, payload: Any) -> bytes:
        [message] = EventStreamParser().feed(frame)
        return serialize_eventstream(message.headers, _text(payload))


def _object(text: bytes) -> Payload | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _text(payload: Any) -> bytes:
    """Return compact JSON, or bytes unchanged. ``BYTE_FF`` becomes the byte FF; other surrogates are escaped."""
    if isinstance(payload, bytes):
        return payload
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").replace(b"\\udcff", b"\xff")


# -- paths -------------------------------------------------------------------------------------------------------------


def value_at(payload: Any, path: str) -> Any:
    """Return the value at a path; ``MISSING`` if there is none."""
    for step in path.split(".") if path else ():
        if isinstance(payload, dict):
            payload = payload.get(step, MISSING)
        elif isinstance(payload, list) and step.isdigit() and int(step) < len(payload):
            payload = payload[int(step)]
        else:
            return MISSING
    return payload


def put(path: str, value: Any) -> ChangeStep:
    """Return a step that sets the member at ``path``. The objects above it must exist."""
    return turn(path, lambda _old: value)


def turn(path: str, change: Callable[[Any], Any]) -> ChangeStep:
    """Return a step that replaces the member at ``path`` by a function of its value."""
    above, _, name = path.rpartition(".")

    def step(payload: Payload) -> None:
        parent = value_at(payload, above) if above else payload
        key: Any = int(name) if isinstance(parent, list) else name
        parent[key] = change(parent[key] if isinstance(parent, list) else parent.get(key, MISSING))

    return step


def reword(path: str, words: Mapping[str, str]) -> ChangeStep:
    """Return a step that replaces the word at ``path`` by its entry in ``words``; a word without an entry stays."""
    return turn(path, lambda word: words.get(word, word))


def rename(path: str, name: str) -> ChangeStep:
    """Return a step that renames the member at ``path`` and moves it to the end of its object."""
    above, _, old = path.rpartition(".")

    def step(payload: Payload) -> None:
        parent = value_at(payload, above)
        parent[name] = parent.pop(old)

    return step


def hoist(path: str) -> ChangeStep:
    """Return a step that replaces the object at ``path`` by its members."""
    above, _, name = path.rpartition(".")

    def step(payload: Payload) -> None:
        parent = value_at(payload, above)
        parent |= parent.pop(name)

    return step


def cut(path: str) -> ChangeStep:
    """Return a step that removes the member at ``path``."""
    above, _, name = path.rpartition(".")

    def step(payload: Payload) -> None:
        (value_at(payload, above) if above else payload).pop(name, None)

    return step


def copied(payload: Payload, *steps: ChangeStep) -> Payload:
    """Return a changed copy of a payload."""
    copy = deepcopy(payload)
    for step in steps:
        step(copy)
    return copy


# -- selecting frames --------------------------------------------------------------------------------------------------


@frozen
class Where:
    """Selects payloads for which ``fits`` returns True for the value at ``path``; of these, the slice ``part``."""

    path: str
    fits: Callable[[Any], bool]
    part: slice = slice(None)

    def has(self, payload: Payload) -> bool:
        return self.fits(value_at(payload, self.path))


def every(path: str, *values: Any, kind: type = object) -> Where:
    """Select payloads with one of ``values`` at ``path``, or any value of that ``kind`` except None and ""."""
    if values:
        return Where(path, lambda value: value in values)
    return Where(path, lambda value: value is not MISSING and value not in ("", None) and isinstance(value, kind))


def first(path: str, *values: Any, kind: type = object, at: int = 0) -> Where:
    """Select the first of the payloads that ``every`` selects, or the one at position ``at``."""
    return evolve(every(path, *values, kind=kind), part=slice(at, at + 1))


def last(path: str, *values: Any, kind: type = object) -> Where:
    """Select the last of the payloads that ``every`` selects."""
    return evolve(every(path, *values, kind=kind), part=slice(-1, None))


# -- changes -----------------------------------------------------------------------------------------------------------


def both(*changes: Change) -> Change:
    """Return a change that makes all changes, one after the other; none of them if one changes nothing."""

    def change(frames: Frames) -> Frames:
        now = frames
        for one in changes:
            before, now = now, one(now)
            if now == before:
                return frames
        return now

    return change


@frozen
class Changes:
    """Makes changes for streams whose frames have the form ``form``."""

    form: Form

    def each(self, where: Where, edit: Edit) -> Change:
        """Return a change that replaces each selected payload by the payloads that ``edit`` returns."""

        def change(frames: Frames) -> Frames:
            payloads = [self.form.load(frame) for frame in frames]
            chosen = set(self._places(payloads, where))
            changed: list[bytes] = []
            for number, (frame, payload) in enumerate(zip(frames, payloads, strict=True)):
                if number in chosen and payload is not None:
                    before = deepcopy(payload)
                    made = edit(payload)
                    changed += [frame if one == before else self.form.dump(frame, one) for one in made]
                else:
                    changed.append(frame)
            return tuple(changed)

        return change

    def edit(self, where: Where, *steps: ChangeStep) -> Change:
        def edit(payload: Payload) -> Sequence[Any]:
            for step in steps:
                step(payload)
            return (payload,)

        return self.each(where, edit)

    def add(self, where: Where, *steps: ChangeStep, behind: bool = True) -> Change:
        """Return a change that inserts a changed copy after each selected payload; before it if ``behind`` is False."""

        def edit(payload: Payload) -> Sequence[Any]:
            copy = copied(payload, *steps)
            return (payload, copy) if behind else (copy, payload)

        return self.each(where, edit)

    def drop(self, where: Where) -> Change:
        return self.each(where, lambda _payload: ())

    def halve(self, where: Where, path: str, *, then: Sequence[ChangeStep] = ()) -> Change:
        """Return a change that splits the text at ``path`` into two payloads, and applies ``then`` to the second."""

        def edit(payload: Payload) -> Sequence[Any]:
            text = value_at(payload, path)
            half = (len(text) + 1) // 2
            return (copied(payload, put(path, text[:half])), copied(payload, put(path, text[half:]), *then))

        return self.each(where, edit)

    def when(self, where: Where, change: Change) -> Change:
        """Return a change that is only made in streams with a payload that ``where`` selects."""
        return lambda frames: change(frames) if self._has(frames, where) else frames

    def unless(self, where: Where, change: Change) -> Change:
        """Return a change that is only made in streams without a payload that ``where`` selects."""
        return lambda frames: frames if self._has(frames, where) else change(frames)

    def share(self, source: Where, path: str, target: Where, to: str) -> Change:
        """Return a change that copies the value at ``path`` of the first ``source`` to the path ``to`` of each ``target``."""

        def change(frames: Frames) -> Frames:
            payload = next(self.having(source, frames), None)
            return frames if payload is None else self.edit(target, put(to, value_at(payload, path)))(frames)

        return change

    def move(self, source: Where, *steps: ChangeStep, behind: Where | None = None) -> Change:
        """Return a change that inserts a changed copy of the first ``source`` after the first ``behind``, or at the end."""

        def change(frames: Frames) -> Frames:
            payloads = [self.form.load(frame) for frame in frames]
            sources, places = self._places(payloads, source), [len(frames) - 1]
            if behind is not None:
                places = self._places(payloads, behind)
            if not sources or not places:
                return frames
            number, place = sources[0], places[0] + 1
            moved = self.form.dump(frames[number], copied(payloads[number] or {}, *steps))
            return (*frames[:place], moved, *frames[place:])

        return change

    def rewrite(self, where: Where, edit: Callable[[bytes], bytes]) -> Change:
        """Return a change that applies ``edit`` to the bytes of the selected frames."""

        def change(frames: Frames) -> Frames:
            chosen = set(self._places([self.form.load(frame) for frame in frames], where))
            return tuple(edit(frame) if number in chosen else frame for number, frame in enumerate(frames))

        return change

    def having(self, where: Where, frames: Frames) -> Iterator[Payload]:
        """Return the payloads that fit ``where``, without regard to its slice."""
        return (payload for payload in map(self.form.load, frames) if payload is not None and where.has(payload))

    def _has(self, frames: Frames, where: Where) -> bool:
        return bool(self._places([self.form.load(frame) for frame in frames], where))

    def _places(self, payloads: Sequence[Payload | None], where: Where) -> list[int]:
        found = [number for number, payload in enumerate(payloads) if payload is not None and where.has(payload)]
        return found[where.part]


# -- changes of bytes --------------------------------------------------------------------------------------------------


def insert(number: int, frame: bytes) -> Change:
    """Return a change that inserts a frame at this position. A negative position counts from the end."""

    def change(frames: Frames) -> Frames:
        place = number if number >= 0 else len(frames) + 1 + number
        return (*frames[:place], frame, *frames[place:])

    return change


def rewrite(old: bytes, new: bytes) -> Change:
    """Return a change that replaces bytes wherever they occur."""
    return lambda frames: tuple(frame.replace(old, new) for frame in frames)


@frozen(kw_only=True)
class Fragments:
    """The calls of a stream: ``start`` selects payloads that start a call, ``fragment`` those with a fragment of arguments.

    Payloads with the same value at the path ``key`` belong to one call. The text of a fragment is at the path ``text``.
    """

    changes: Changes
    start: Where
    fragment: Where
    key: str
    text: str

    def carry(self, path: str) -> Change:
        """Return a change that repeats the member at ``path`` of a call's start in all fragments of that call."""

        def change(frames: Frames) -> Frames:
            said: dict[Any, Any] = {}

            def edit(payload: Payload) -> tuple[Payload]:
                key = value_at(payload, self.key)
                if self._starts(payload):
                    said[key] = value_at(payload, path)
                elif key in said:
                    put(path, said[key])(payload)
                return (payload,)

            return self.changes.each(self._either, edit)(frames)

        return change

    def whole(self, path: str, make: Callable[[str], Any]) -> Change:
        """Return a change that sets ``path`` of a call's start to ``make(all arguments)``, and drops the fragments."""

        def change(frames: Frames) -> Frames:
            texts = self._texts(frames)

            def edit(payload: Payload) -> tuple[Payload, ...]:
                text = texts.get(value_at(payload, self.key), "")
                if not self._starts(payload):
                    return ()
                put(path, make(text))(payload)
                return (payload,)

            return self.changes.each(self._either, edit)(frames)

        return change

    def one(self, make: Callable[[str], Any]) -> Change:
        """Return a change that replaces all fragments of a call by one with ``make(all arguments)``.

        A call whose arguments ``make`` does not change keeps its fragments.
        """

        def change(frames: Frames) -> Frames:
            made = {key: value for key, text in self._texts(frames).items() if (value := make(text)) != text}
            left = dict(made)

            def edit(payload: Payload) -> tuple[Payload, ...]:
                key = value_at(payload, self.key)
                if key not in made:
                    return (payload,)
                if key not in left:
                    return ()
                put(self.text, left.pop(key))(payload)
                return (payload,)

            return self.changes.each(self.fragment, edit)(frames)

        return change

    def cumulative(self) -> Change:
        """Return a change that puts, into each fragment, all arguments of the call up to that fragment."""

        def change(frames: Frames) -> Frames:
            texts: defaultdict[Any, str] = defaultdict(str)

            def edit(payload: Payload) -> tuple[Payload]:
                key = value_at(payload, self.key)
                texts[key] += value_at(payload, self.text)
                put(self.text, texts[key])(payload)
                return (payload,)

            return self.changes.each(self.fragment, edit)(frames)

        return change

    def again(self) -> Change:
        """Return a change that repeats all arguments of a call after its last fragment, unless they are ``{}``."""

        def change(frames: Frames) -> Frames:
            texts = self._texts(frames)
            left = Counter(value_at(payload, self.key) for payload in self._fragments(frames))

            def edit(payload: Payload) -> tuple[Payload, ...]:
                key = value_at(payload, self.key)
                left[key] -= 1
                if left[key] or texts[key] == "{}":
                    return (payload,)
                return (payload, copied(payload, put(self.text, texts[key])))

            return self.changes.each(self.fragment, edit)(frames)

        return change

    @property
    def _either(self) -> Where:
        return Where("", lambda payload: self._starts(payload) or self.fragment.has(payload))

    def _starts(self, payload: Payload) -> bool:
        return self.start.has(payload)

    def _fragments(self, frames: Frames) -> Iterator[Payload]:
        return self.changes.having(self.fragment, frames)

    def _texts(self, frames: Frames) -> dict[Any, str]:
        texts: defaultdict[Any, str] = defaultdict(str)
        for payload in self._fragments(frames):
            texts[value_at(payload, self.key)] += value_at(payload, self.text)
        return texts


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
