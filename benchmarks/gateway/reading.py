"""An answer as a client saw it: which bytes came when, and what was said in them. Read when the clock no longer runs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from attrs import field, frozen

from benchmarks.gateway.script import MARK_BYTES, Script, fault_in

#: An event that comes so soon behind another of its stream came with it: somebody held it back (quirks.md 123).
CLUMPED_NS: Final = 1_000_000
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})")


@frozen
class Arrival:
    """A delta of text."""

    due_ns: int
    at_ns: int  #: when the last byte of its event came


@frozen
class Answer:
    """One stream, read to where it ended."""

    status: int
    body: bytes
    arrivals: tuple[Arrival, ...]
    first_ns: int | None  #: when the first byte of the body came
    fault: str  #: why it is not the whole answer; empty if it is

    @property
    def lateness_ns(self) -> list[int]:
        return [arrival.at_ns - arrival.due_ns for arrival in self.arrivals]

    @property
    def gaps_ns(self) -> list[int]:
        """From each event to the one behind it."""
        times = [arrival.at_ns for arrival in self.arrivals]
        return [later - sooner for sooner, later in pairwise(times)]


@frozen
class Reads:
    """What a socket gave: when, and which bytes."""

    reads: list[tuple[int, bytes]] = field(factory=list)

    def answer(self, dialect: str, script: Script) -> Answer:
        raw = b"".join(data for _, data in self.reads)
        head = raw.find(b"\r\n\r\n") + 4
        status = _STATUS.match(raw)
        if status is None or head < 4:
            return Answer(0, b"", (), None, "no HTTP" if raw else "nothing came")
        chunked = b"transfer-encoding: chunked" in raw[:head].lower()
        pieces, ended = _chunks(raw, head) if chunked else ([(head, raw[head:])], True)
        body = b"".join(piece for _, piece in pieces)
        fault = "" if status[1] == b"200" else f"status {status[1].decode()}: {body[:200].decode('utf-8', 'replace')}"
        fault = fault or ("" if ended else "it broke off") or fault_in(body, dialect, script)
        clock = _Clock(self.reads, pieces)
        arrivals = tuple(
            Arrival(int(mark[2]), clock.at(body.find(b"\n\n", mark.end()) + 1)) for mark in MARK_BYTES.finditer(body)
        )
        return Answer(int(status[1]), body, arrivals, clock.at(0) if body else None, fault)


class _Clock:
    """When a byte of the body came."""

    def __init__(self, reads: Sequence[tuple[int, bytes]], pieces: Iterable[tuple[int, bytes]]) -> None:
        self._starts: list[int] = []  # of each piece: in the body
        self._shifts: list[int] = []  # and what lies before it beside the body
        self._ends: list[int] = []  # of each read, in all that came
        self._times = [when for when, _ in reads]
        at = 0
        for start, piece in pieces:
            self._starts.append(at)
            self._shifts.append(start - at)
            at += len(piece)
        behind = 0
        for _, data in reads:
            behind += len(data)
            self._ends.append(behind)

    def at(self, offset: int) -> int:
        piece = bisect_left(self._starts, offset + 1) - 1
        return self._times[bisect_left(self._ends, offset + self._shifts[piece] + 1)]


def _chunks(raw: bytes, at: int) -> tuple[list[tuple[int, bytes]], bool]:
    """The chunks of a body, each with its place, and whether the last one came (RFC 9112 §7.1)."""
    pieces: list[tuple[int, bytes]] = []
    while (line := raw.find(b"\r\n", at)) >= 0:
        size = int(raw[at:line].partition(b";")[0], 16)
        if not size:
            return pieces, True
        pieces.append((line + 2, raw[line + 2 : line + 2 + size]))
        at = line + 2 + size + 2
    return pieces, False


def clumped(answers: Iterable[Answer]) -> float:
    """The share of events that came within a millisecond of the one before."""
    gaps = [gap for answer in answers for gap in answer.gaps_ns]
    return sum(gap < CLUMPED_NS for gap in gaps) / len(gaps) if gaps else 0.0


def quantiles_ms(values_ns: Iterable[int]) -> dict[str, float]:
    """Median, 90th and 99th percentile and the largest, in milliseconds."""
    ordered = sorted(values_ns)
    if not ordered:
        return {}
    last = len(ordered) - 1
    found = {f"p{percent}": ordered[round(last * percent / 100)] / 1e6 for percent in (50, 90, 99)}
    return {**found, "max": ordered[-1] / 1e6, "count": len(ordered)}
