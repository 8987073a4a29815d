"""Load recordings from files and folders, in the order in which they began.

A file may also have the raw bytes of a stream, or be a cassette of reel-vcr (``recording/loading.py``).

Recordings that cannot be replayed are refused: those that have neither a response nor an end without one, and those that lack
reads, since the remaining reads are a response that no provider sent.

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
    """A recording that can be replayed, and its name in messages."""

    name: str
    recording: Recording
    #: The request that it answers; None: any request that no other recording answers.
    request: RecordedRequest | None


def load(paths: Iterable[str | Path]) -> list[Loaded]:
    """Return the recordings in files and in all ``*.stream.jsonl`` below folders, sorted by the time when they began.

    Raises UsageError for a folder without recordings, BadRecording for a file that cannot be replayed, and OSError.
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
        # the recording's body was changed (keys removed or only its shape kept), so compare the hash of the sent body
        request = evolve(request, body=None)
    return Loaded(name, recording, request)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob(f"*{SUFFIX}"))
    if not found:
        raise UsageError(f"{path}: no file in this folder ends with {SUFFIX}")
    return found
