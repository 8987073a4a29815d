"""A capture as the page draws it: each read with the events, repairs and losses that came of it, each write beside it.

A ``Playback`` belongs to one watcher. It goes on where it was, a slice at a time, so that reading a whole stream again holds
up no other. Long texts are cut for the page: how much is missing stands beside them.

Source: observe.md O38, O39.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import fields, has

from streamkit.dialects import client_named, source_named
from streamkit.lab.inspector.captures import Capture, CapturedStep, Captures
from streamkit.observer import Observer, Seen
from streamkit.report import LOSSES, REPAIRS, describe
from streamkit.text.quoting import shortened
from streamkit.web.source import Beginning

#: Of one text so many characters are shown, and of a value that is neither text nor number.
TEXT_CHARS: Final = 16 * 1024
VALUE_CHARS: Final = 1000
#: Members that are shown though they are 0; and one that has the name of the message's own.
LABELS: Final = frozenset({"choice", "call"})
_NAMES: Final[Mapping[str, str]] = {"type": "error_type"}
#: Bytes of a stream that are read again before others have their turn, or one read: it takes a few milliseconds.
SLICE_BYTES: Final = 4 * 1024


class Feed:
    """What one watcher is sent: the list of streams as it changes, and the one that it follows, from its beginning."""

    def __init__(self, captures: Captures, followed: str | None = None) -> None:
        self._captures = captures
        self._sent: dict[str, int] = {}  # of each stream that the watcher knows, its version
        capture = None if followed is None else captures.get(followed)
        self._playback = None if capture is None else Playback(capture)

    def take(self) -> bytes:
        """What changed since, as lines of JSON; empty: nothing did."""
        messages = [*self._list(), *([] if self._playback is None else self._playback.take())]
        return "".join(json.dumps(message, separators=(",", ":")) + "\n" for message in messages).encode()

    def _list(self) -> Iterator[dict[str, Any]]:
        kept = {capture.id: capture for capture in self._captures}
        changed = [capture for capture in kept.values() if self._sent.get(capture.id) != capture.version]
        gone = [capture_id for capture_id in self._sent if capture_id not in kept]
        if changed or gone:
            yield {"type": "streams", "changed": [summary(capture) for capture in changed], "gone": gone}
        self._sent = {capture.id: capture.version for capture in kept.values()}


def summary(capture: Capture) -> dict[str, Any]:
    """A stream in the list. ``ended`` are the members of the log's line, None while it lives."""
    return {
        "id": capture.id,
        "began": capture.began,
        "seconds": round(capture.seconds, 4),
        "timed": capture.timed,
        "stall_s": capture.stall_s,
        "client": capture.client,
        "about": dict(capture.about),
        "attempts": [{"upstream": each.upstream, "dialect": each.dialect} for each in capture.attempts],
        "bytes": capture.read_bytes,
        "left_out": capture.left_out,
        "ended": None if capture.ended is None else dict(capture.ended),
    }


class Playback:
    """One capture from its beginning, and on as it grows."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._next = 0  # of the steps
        self._attempt = -1
        self._observer: Observer | None = None
        self._read = self._written = 0  # bytes, the former of this attempt
        self._ended = False

    def take(self) -> list[dict[str, Any]]:
        """The steps that are new, up to a slice of them; at the end of the capture one that says so."""
        steps, size = self._capture.steps, 0
        messages: list[dict[str, Any]] = []
        while self._next < len(steps) and size < SLICE_BYTES:
            step = steps[self._next]
            self._next += 1
            size += len(step.data)
            messages += self._step(step)
        if self._capture.ended is not None and self._next >= len(steps) and not self._ended:
            self._ended = True
            messages += [*self._finish(self._capture.seconds), {"type": "ended"}]
        return messages

    def _step(self, step: CapturedStep) -> Iterator[dict[str, Any]]:
        match step.kind:
            case "attempt":
                yield from self._finish(step.at)
                yield self._begin(step)
            case "read":
                yield from self._came(step)
            case _:
                yield self._write(step.at, step.data, kind=step.kind)

    def _begin(self, step: CapturedStep) -> dict[str, Any]:
        self._attempt += 1
        attempt, client = self._capture.attempts[self._attempt], self._capture.client
        if client is not None and not self._capture.encodes:
            passes = client_named(client)[0] is source_named(attempt.dialect)[0]
            client = None if passes else client  # what passes byte for byte loses nothing
        self._observer, self._read = Observer(attempt.dialect, attempt.options, client=client, whole=attempt.whole), 0
        about = {"upstream": attempt.upstream, "dialect": attempt.dialect}
        return {"type": "attempt", "at": step.at, "attempt": self._attempt, **about}

    def _came(self, step: CapturedStep) -> Iterator[dict[str, Any]]:
        found: list[Seen] = []
        if self._observer is not None and self._observer.fault is None:
            found = _up_to_fault(self._observer.feed(step.data))
        yield {
            "type": "read",
            "at": round(step.at, 5),
            "attempt": self._attempt,
            "offset": self._read,
            **self._shown_bytes(step.data),
            "alive": not any(seen.events for seen in found) and not Beginning().feed(step.data),
            **self._found(found),
        }
        self._read += len(step.data)
        yield from self._written_of(found, step.at)

    def _finish(self, at: float) -> Iterator[dict[str, Any]]:
        """The end of what an upstream said, if it said anything; of what was not kept of it nothing is told."""
        if self._observer is None or not self._read:
            return
        observer, self._observer = self._observer, None
        is_whole, report = not self._capture.left_out, observer.report
        found = _up_to_fault(observer.finish()) if is_whole and observer.fault is None else []
        yield {
            "type": "end",
            "at": round(at, 5),
            "attempt": self._attempt,
            "offset": self._read,
            "status": report.status.name.lower() if is_whole else "not_kept",
            "error": None if report.error is None else self._text(describe(report.error)),
            **self._found(found),
        }
        yield from self._written_of(found, at)

    def _written_of(self, found: list[Seen], at: float) -> Iterator[dict[str, Any]]:
        """What was written of what was read, where nothing else wrote it."""
        written = b"".join(seen.written for seen in found)
        if written and self._capture.encodes:
            yield self._write(at, written)

    def _write(self, at: float, data: bytes, kind: str = "write") -> dict[str, Any]:
        offset, self._written = self._written, self._written + len(data)
        return {"type": kind, "at": round(at, 5), "offset": offset, **self._shown_bytes(data)}

    # -- what is shown of it -----------------------------------------------------------------------------------------

    def _shown_bytes(self, data: bytes) -> dict[str, Any]:
        r"""Bytes as text: those that are not UTF-8, and halves of a character that two reads share, as ``\xNN``."""
        text = data[:TEXT_CHARS].decode("utf-8", "backslashreplace")
        return {"size": len(data), "text": self._capture.hide(text), "cut": max(0, len(data) - TEXT_CHARS)}

    def _text(self, text: str) -> str:
        return self._capture.hide(text[:TEXT_CHARS])

    def _found(self, found: list[Seen]) -> dict[str, Any]:
        return {
            "events": [
                {"at": seen.offset, "type": type(event).__name__, **self._members(event)}
                for seen in found
                for event in seen.events
            ],
            "repairs": [each for seen in found for each in _counted(REPAIRS, seen.offset, seen.repairs)],
            "losses": [each for seen in found for each in _counted(LOSSES, seen.offset, seen.losses)],
        }

    def _members(self, value: Any) -> dict[str, Any]:
        """Return the members of an event, or of a value in it, that say something; labels always do."""
        named = {member.name: (getattr(value, member.name), member.default) for member in fields(type(value))}
        return {
            _NAMES.get(name, name): self._value(inner)
            for name, (inner, default) in named.items()
            if inner is not None and (inner != default or name in LABELS)
        }

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, bool | int | float):
            return value
        if has(type(value)):
            return self._members(value)
        return shortened(self._text(json.dumps(value, default=str, ensure_ascii=False)), VALUE_CHARS)


def _up_to_fault(found: list[Seen]) -> list[Seen]:
    """Nothing after a fault is shown."""
    return found[: next((number for number, seen in enumerate(found, 1) if seen.fault is not None), None)]


def _counted(meanings: Mapping[str, str], offset: int, counts: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for kind, times in counts.items():
        yield {"at": offset, "kind": kind, "times": times, "meaning": meanings[kind]}
