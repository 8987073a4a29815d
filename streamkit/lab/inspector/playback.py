"""Turn a capture into messages for the page: each read with its events, repairs and losses, and each write.

A ``Playback`` belongs to one watcher. Each call continues where the last one stopped and handles one slice, so that replaying
a long stream does not block the event loop. Long texts are truncated, and the message says how many bytes are missing.

``follow`` plays a recording into a capture. A file of raw bytes has no times, so it is shown frame by frame, over a scale of
bytes.

Source: observe.md O38, O39.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping
from typing import Any, Final

from attrs import fields, has

from streamkit.dialects import client_named, source_named
from streamkit.errors import SourceFailed
from streamkit.lab.inspector.captures import Capture, CapturedStep, Captures
from streamkit.limits import DEFAULT_LIMITS
from streamkit.observer import Observer, Seen
from streamkit.pipeline import close_each
from streamkit.read_options import ReadOptions
from streamkit.report import LOSSES, REPAIRS, Status, StreamReport, describe
from streamkit.text.quoting import shortened
from streamkit.web.source import Beginning

TEXT_CHARS: Final = 16 * 1024  #: the most bytes of a read, and the most characters of a text, that the page gets
VALUE_CHARS: Final = 1000  #: the most characters that the page gets of any value that is neither text nor number
#: Event members that are shown even if they have the default value. ``type`` is renamed: messages have a ``type`` already.
LABELS: Final = frozenset({"choice", "call"})
_NAMES: Final[Mapping[str, str]] = {"type": "error_type"}
#: Bytes that are replayed in one call. A call handles at least one read, and takes a few milliseconds.
SLICE_BYTES: Final = 4 * 1024


class Feed:
    """The messages for one watcher: upstreams that rest, changes in the list of streams, and the stream that it follows."""

    def __init__(self, captures: Captures, followed: str | None = None) -> None:
        self._captures = captures
        self._sent: dict[str, int] = {}  # the version of each stream that the watcher has received
        self._resting: Mapping[tuple[str, str], int] = {}  # the resting upstreams that the watcher knows
        capture = None if followed is None else captures.get(followed)
        self._playback = None if capture is None else Playback(capture)

    def take(self) -> bytes:
        """Return the changes since the last call, as JSON Lines. Empty if nothing changed."""
        messages = [*self._rests(), *self._list(), *([] if self._playback is None else self._playback.take())]
        return "".join(json.dumps(message, separators=(",", ":")) + "\n" for message in messages).encode()

    def _rests(self) -> Iterator[dict[str, Any]]:
        if self._captures.resting != self._resting:
            self._resting = self._captures.resting
            rests = [{"upstream": name, "why": why, "models": models} for (name, why), models in self._resting.items()]
            yield {"type": "upstreams", "resting": rests}

    def _list(self) -> Iterator[dict[str, Any]]:
        kept = {capture.id: capture for capture in self._captures}
        changed = [capture for capture in kept.values() if self._sent.get(capture.id) != capture.version]
        gone = [capture_id for capture_id in self._sent if capture_id not in kept]
        if changed or gone:
            yield {"type": "streams", "changed": [summary(capture) for capture in changed], "gone": gone}
        self._sent = {capture.id: capture.version for capture in kept.values()}


def summary(capture: Capture) -> dict[str, Any]:
    """Return a stream's entry in the list. ``ended`` has the members of its log line; None while the stream is open."""
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
    """Messages of one capture from its beginning, including steps that are added later."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._next = 0  # position of the next step
        self._attempt = -1
        self._observer: Observer | None = None
        self._read = self._written = 0  # bytes read in this attempt, and bytes written in all attempts
        self._ended = False

    def take(self) -> list[dict[str, Any]]:
        """Return messages for the next slice of steps. After the capture's last step, add a message of type ``ended``."""
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
                yield from self._read_step(step)
            case _:
                yield self._write(step.at, step.data, kind=step.kind)

    def _begin(self, step: CapturedStep) -> dict[str, Any]:
        self._attempt += 1
        attempt, client = self._capture.attempts[self._attempt], self._capture.client
        if client is not None and not self._capture.encodes:
            passes = client_named(client)[0] is source_named(attempt.dialect)[0]
            client = None if passes else client  # a stream relayed byte for byte has no losses
        self._observer, self._read = Observer(attempt.dialect, attempt.options, client=client, whole=attempt.whole), 0
        about = {"upstream": attempt.upstream, "dialect": attempt.dialect}
        return {"type": "attempt", "at": step.at, "attempt": self._attempt, **about}

    def _read_step(self, step: CapturedStep) -> Iterator[dict[str, Any]]:
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
        """Yield the end of an attempt, if it had any read. If bytes were left out, the status is ``not_kept``."""
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
        """Yield a write with the encoded bytes of these reads, if the playback encodes the output."""
        written = b"".join(seen.written for seen in found)
        if written and self._capture.encodes:
            yield self._write(at, written)

    def _write(self, at: float, data: bytes, kind: str = "write") -> dict[str, Any]:
        offset, self._written = self._written, self._written + len(data)
        return {"type": kind, "at": round(at, 5), "offset": offset, **self._shown_bytes(data)}

    # -- values for the page -------------------------------------------------------------------------------------------

    def _shown_bytes(self, data: bytes) -> dict[str, Any]:
        r"""Return bytes as text. Bytes that are not UTF-8 become ``\xNN``, as do characters split between two reads."""
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
        """Return the members of an event, or of a value in it, that differ from their defaults. Always include ``LABELS``."""
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
    """Return the results up to and including the first fault."""
    return found[: next((number for number, seen in enumerate(found, 1) if seen.fault is not None), None)]


def _counted(meanings: Mapping[str, str], offset: int, counts: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for kind, times in counts.items():
        yield {"at": offset, "kind": kind, "times": times, "meaning": meanings[kind]}


# -- recordings --------------------------------------------------------------------------------------------------------


#: The word for each status in the list of streams.
ENDINGS: Final[Mapping[Status, str]] = {
    Status.DONE: "whole",
    Status.CUT: "cut",
    Status.FAILED: "failed",
    Status.PROVIDER_ERROR: "error",
    Status.NOT_THIS_DIALECT: "other dialect",
}


async def follow(
    source: AsyncIterable[bytes],
    capture: Capture,
    dialect: str,
    options: ReadOptions,
    *,
    upstream: str = "",
    whole: bool = False,
) -> None:
    """Put all reads of ``source`` into ``capture`` as they arrive. If the capture has no times, put each frame separately.

    ``upstream`` is the name of the upstream, by default the file. ``whole`` marks one JSON document instead of a stream.

    Closes the source. Raises the source's errors, unless the stream was complete before, and UsageError for an unknown name.
    """
    observer = Observer(dialect, options, whole=whole)
    capture.attempt(upstream or capture.about.get("file", ""), dialect, options, whole=whole)
    chunks = source if capture.timed or whole else frames(source, dialect)
    try:
        try:
            async for chunk in chunks:
                capture.read(chunk)
                observer.feed(chunk)
        except SourceFailed as error:
            if not observer.report.terminated:
                capture.end({"ending": ENDINGS[Status.FAILED], "error": str(error)})
                raise
        observer.finish()
        capture.end({"ending": ENDINGS[observer.report.status]})
    finally:
        if capture.ended is None:
            capture.end({"ending": ENDINGS[Status.FAILED]})
        await close_each(chunks, source)


async def frames(source: AsyncIterable[bytes], dialect: str) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of each frame of ``dialect``; joined, they are the source's bytes. Raises the source's errors."""
    parser = source_named(dialect)[0].parser(DEFAULT_LIMITS, StreamReport())
    held, begin = b"", 0  # bytes that are not yielded yet, and the offset of their first byte
    failed = None
    try:
        async for chunk in source:
            held += chunk
            for frame in parser.feed(chunk):
                if frame.offset > begin:
                    yield held[: frame.offset - begin]
                    held, begin = held[frame.offset - begin :], frame.offset
    except SourceFailed as error:
        failed = error
    if held:
        yield held
    if failed is not None:
        raise failed
