"""Recordings for the tests of commands, as the bytes of their files."""

from __future__ import annotations

from collections.abc import Iterable

from streamkit.lab.recording import End, Read, RecordedResponse, Recording, lines_of


def recorded(
    reads: Iterable[tuple[float, bytes]], dialect: str = "openai-chat", *, end: str | None = "whole", t: float | None = None,
    status: int = 200, headers: dict[str, str] | None = None, dropped: int = 0, provider: str = "",
) -> bytes:  # fmt: skip
    """A recording of these reads; ``end`` None: its recorder was stopped; ``t``: when it ended, by default with its last read."""
    made = [Read(*read) for read in reads]
    return b"".join(
        lines_of(
            Recording(
                id="r1",
                at="2026-11-22T18:01:20.955Z",
                dialect=dialect,
                provider=provider,
                response=RecordedResponse(t=0.4132, status=status, headers=headers or {})
                if end != "unreachable"
                else None,
                reads=made,
                end=None
                if end is None
                else End(t=t if t is not None else made[-1].t if made else 0.0, kind=end, dropped=dropped),
            )
        )
    )


def in_reads(body: bytes, size: int, first_s: float = 0.5, step_s: float = 0.25) -> list[tuple[float, bytes]]:
    """The body in reads of so many bytes, which end in the middle of events and characters."""
    return [(first_s + n * step_s, body[at : at + size]) for n, at in enumerate(range(0, len(body), size))]
