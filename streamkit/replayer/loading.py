"""Recordings of files and folders, in the order in which they were made.

Refuses what can't be replayed: a recording without a request, which nothing could ask for; one that says neither what was
answered nor how it ended; and one of which reads are missing, since what is left is an answer that nobody gave.

Source: observe.md O27.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve, frozen

from streamkit.errors import UsageError
from streamkit.recording import SUFFIX, BadRecording, RecordedRequest, Recording, read_recording


@frozen
class Loaded:
    """A recording that can be replayed, and what messages call it."""

    name: str
    recording: Recording
    request: RecordedRequest


def load(paths: Iterable[str | Path]) -> list[Loaded]:
    """The recordings in files, and in all ``*.stream.jsonl`` below folders, by the time when they began.

    Raises UsageError for a folder without any, BadRecording for a file that can't be replayed, OSError.
    """
    loaded = [loaded_of(file) for path in paths for file in _files(Path(path))]
    return sorted(loaded, key=lambda each: (each.recording.at, each.name))


def loaded_of(file: Path) -> Loaded:
    """The recording in a file. Raises BadRecording, OSError."""
    recording, name = read_recording(file), str(file)
    if recording.request is None:
        raise BadRecording(name, None, "it has no request, so that nothing could ask for it")
    if recording.response is None and (recording.end is None or recording.end.kind == "whole"):
        raise BadRecording(name, None, "it has neither an answer nor an end without one")
    if recording.end is not None and recording.end.dropped:
        raise BadRecording(name, None, f"{recording.end.dropped:,} reads are missing in it")
    request = recording.request
    if "request.body" in recording.removed:  # its shape, or without a key: what was sent is known by its sum
        request = evolve(request, body=None)
    return Loaded(name, recording, request)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob(f"*{SUFFIX}"))
    if not found:
        raise UsageError(f"{path}: no file in this folder ends with {SUFFIX}")
    return found
