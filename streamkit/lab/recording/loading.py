"""Recordings from a file of any form that is read: ours, raw bytes of a stream, and those of two other tools.

What is not ours is marked as not exact, and has the times that its file has, or none. Which form it is, its content says.

Source: observe.md O30.
"""

from __future__ import annotations

from pathlib import Path

from streamkit.detect import dialect_of
from streamkit.dialects import source_named
from streamkit.errors import NotThisDialect
from streamkit.lab.recording.aimock import is_aimock, parse_aimock
from streamkit.lab.recording.lines import sha256_of
from streamkit.lab.recording.recording import (
    SUFFIX,
    BadRecording,
    End,
    Read,
    RecordedResponse,
    Recording,
    is_recording,
    parse_recording,
)
from streamkit.lab.recording.reel import is_reel, parse_reel


def load(path: str | Path, *, dialect: str = "") -> list[Recording]:
    """The recordings in a file: one of ours, or of the raw bytes of a stream; of other tools' files as many as they have.

    ``dialect`` is that of the answers (a provider's name will do) where the file does not say it: of raw bytes it is found out
    by default; in it the answers of aimock's fixtures are written, which say what is meant and in no dialect. Raises
    BadRecording, UsageError for an unknown name and where one is needed, and OSError where the file can't be read.
    """
    path = Path(path)
    return parse_any(path.read_bytes(), name=str(path), dialect=dialect)


def parse_any(content: bytes, *, name: str = "the recording", dialect: str = "") -> list[Recording]:
    """As ``load``, of the content of a file; ``name`` is what messages call it."""
    if is_recording(content):
        return [parse_recording(content, name=name)]
    if is_reel(content):
        return parse_reel(content, name=name, dialect=dialect)
    if is_aimock(content):
        return parse_aimock(content, name=name, dialect=dialect)
    return [raw_recording(content, name=name, dialect=dialect)]


def raw_recording(body: bytes, *, name: str = "the recording", dialect: str = "") -> Recording:
    """The bytes of a stream as a recording: one read, without a time. Raises BadRecording where it is none of any dialect."""
    dialect = source_named(dialect)[0].name if dialect else _dialect_of(body, name)
    headers = {"content-type": source_named(dialect)[0].media_type}
    return Recording(
        id=Path(name).name.removesuffix(SUFFIX),
        dialect=dialect,
        exact=False,
        response=RecordedResponse(t=0.0, status=200, headers=headers),
        reads=(Read(0.0, body),),
        end=End(t=0.0, kind="whole", reads=1, bytes=len(body), sha256=sha256_of(body)),
    )


def _dialect_of(body: bytes, name: str) -> str:
    try:
        return dialect_of(body)
    except NotThisDialect as error:
        raise BadRecording(name, None, f"neither a recording nor {error.expected}: found {error.found}") from error
