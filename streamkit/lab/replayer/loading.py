"""Recordings of files and folders, in the order in which they were made.

A file may have the bytes of a stream, or be a cassette of reel-vcr, too (``recording/loading.py``).

Refuses what can't be replayed: a recording that says neither what was answered nor how it ended; and one of which reads are
missing, since what is left is an answer that nobody gave.

Source: observe.md O27, O30.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve, frozen

from streamkit.errors import UsageError
from streamkit.lab.recording import SUFFIX, BadRecording, RecordedRequest, Recording
from streamkit.lab.recording.loading import load as recordings_in


@frozen
class Loaded:
    """A recording that can be replayed, and what messages call it."""

    name: str
    recording: Recording
    #: That it answers; None: any that no other recording answers.
    request: RecordedRequest | None


def load(paths: Iterable[str | Path]) -> list[Loaded]:
    """The recordings in files, and in all ``*.stream.jsonl`` below folders, by the time when they began.

    Raises UsageError for a folder without any, BadRecording for a file that can't be replayed, OSError.
    """
    loaded = [loaded for path in paths for file in _files(Path(path)) for loaded in _loaded_of(file)]
    return sorted(loaded, key=lambda each: (each.recording.at, each.name))


def _loaded_of(file: Path) -> Iterator[Loaded]:
    recordings = recordings_in(file)
    for number, recording in enumerate(recordings):
        name = str(file) if len(recordings) == 1 else f"{file}[{number}]"
        yield _loaded(name, recording)


def _loaded(name: str, recording: Recording) -> Loaded:
    if recording.response is None and (recording.end is None or recording.end.kind == "whole"):
        raise BadRecording(name, None, "it has neither an answer nor an end without one")
    if recording.end is not None and recording.end.dropped:
        raise BadRecording(name, None, f"{recording.end.dropped:,} reads are missing in it")
    request = recording.request
    if request is not None and "request.body" in recording.removed:
        request = evolve(request, body=None)  # its shape, or without a key: what was sent is known by its sum
    return Loaded(name, recording, request)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob(f"*{SUFFIX}"))
    if not found:
        raise UsageError(f"{path}: no file in this folder ends with {SUFFIX}")
    return found
