"""Load recordings from a file in any known format: streamkit's, the raw bytes of a stream, and those of two other tools.

The content decides the format. A recording from another format is marked as not exact, and has the times that its file has, if
any.

Source: observe.md O30.
"""

from __future__ import annotations

from pathlib import Path

from streamkit.detection import dialect_of
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
    """Return the recordings in a file: one from streamkit's format or from raw bytes, all of another tool's file.

    ``dialect`` is the dialect of the responses, or a provider's name, if the file does not state it. The default detects the
    dialect of raw bytes. A fixture of aimock states no dialect, so ``dialect`` is required there: its responses are written in
    it. Raises BadRecording, UsageError if ``dialect`` is unknown or missing, and OSError if the file cannot be read.
    """
    path = Path(path)
    return parse_any(path.read_bytes(), name=str(path), dialect=dialect)


def parse_any(content: bytes, *, name: str = "the recording", dialect: str = "") -> list[Recording]:
    """Return the recordings in a file's content, as ``load`` does. ``name`` is the file's name in error messages."""
    if is_recording(content):
        return [parse_recording(content, name=name)]
    if is_reel(content):
        return parse_reel(content, name=name, dialect=dialect)
    if is_aimock(content):
        return parse_aimock(content, name=name, dialect=dialect)
    return [raw_recording(content, name=name, dialect=dialect)]


def raw_recording(body: bytes, *, name: str = "the recording", dialect: str = "") -> Recording:
    """Return a stream's bytes as a recording of one read at time 0. Raises BadRecording if no dialect is detected."""
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
