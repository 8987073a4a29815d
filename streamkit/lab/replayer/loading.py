"""Load recordings from files and folders, in the order in which they began, and split their bytes into reads.

A file may also have the raw bytes of a stream, or be a cassette of reel-vcr (``recording/loading.py``).

Recordings that cannot be replayed are refused: those that have neither a response nor an end without one, and those that lack
reads, since the remaining reads are a response that no provider sent.

``cut_reads`` may split a response into different reads than the recorded ones. A piece has the time of its last byte. If a
response has no dialect, such as a list of models, it cannot be split into events, and its reads stay as recorded.

Source: observe.md O27, O30.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import evolve, frozen

from streamkit.detection import dialect_of
from streamkit.dialects import source_named
from streamkit.errors import NotThisDialect, UsageError
from streamkit.lab.recording import SUFFIX, BadRecording, Read, RecordedRequest, Recording
from streamkit.lab.recording.folders import files_below
from streamkit.lab.recording.loading import load as recordings_in
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.testing.cuts import cut_at
from streamkit.text.quoting import quoted


@frozen
class Loaded:
    """A recording that can be replayed, and its name in messages."""

    name: str
    recording: Recording
    #: The request that it answers; None: any request that no other recording answers.
    request: RecordedRequest | None


def load(paths: Iterable[str | Path]) -> list[Loaded]:
    """Return the recordings in files and in all ``*.stream.jsonl`` below folders, sorted by the time when they began.

    Hidden files are skipped. Raises UsageError for a folder without recordings, SourceFailed for one that cannot be read,
    BadRecording for a file that cannot be replayed, and OSError.
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
        raise BadRecording(name, None, "it has neither a response nor an end that explains why")
    if recording.end is not None and recording.end.dropped:
        raise BadRecording(name, None, f"it lacks {recording.end.dropped:,} reads")
    request = recording.request
    if request is not None and "request.body" in recording.removed:
        # the recording's body was changed (keys removed or only its shape kept), so compare the hash of the sent body
        request = evolve(request, body=None)
    return Loaded(name, recording, request)


def recordings_below(folder: Path) -> list[Path]:
    """Return the ``*.stream.jsonl`` in a folder and its subfolders. Raises SourceFailed for a folder that cannot be read."""
    return [file for file in files_below(folder) if file.name.endswith(SUFFIX)]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = recordings_below(path)
    if not found:
        raise UsageError(f"{path}: no file in this folder ends with {SUFFIX}")
    return found


# -- splitting the bytes -----------------------------------------------------------------------------------------------


Kind: TypeAlias = Literal["reads", "events", "bytes", "random"]
RANDOM_BYTES: Final = 64  #: the longest piece of a random split, in bytes
_NUMBERED: Final = re.compile(r"(bytes|random)=([0-9]{1,9})")
_LINE: Final = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n|\Z)")


@frozen
class Cut:
    """How to split a response: into its recorded reads, after each event, into pieces of some bytes, or at random."""

    kind: Kind = "reads"
    number: int = 0  #: the size of each piece in bytes, or the seed of a random split


def cut_in(text: str) -> Cut:
    """Parse ``reads``, ``events``, ``bytes=N`` or ``random=SEED``. Raises UsageError for other text."""
    if text in {"reads", "events"}:
        return Cut("events" if text == "events" else "reads")
    found = _NUMBERED.fullmatch(text)
    if found is None or found[0] == "bytes=0":
        raise UsageError(f"a cut must be reads, events, bytes=N or random=SEED, not {quoted(text)}")
    return Cut("bytes" if found[1] == "bytes" else "random", int(found[2]))


def cut_reads(recording: Recording, cut: Cut) -> list[Read]:
    """Return the reads of a recording, or its bytes split as ``cut`` says. Omit empty reads."""
    reads = [read for read in recording.reads if read.data]
    if cut.kind == "reads" or not reads:
        return reads
    body = recording.body
    ends = list(accumulate(len(read.data) for read in reads))
    if cut.kind == "events":
        try:
            dialect = recording.dialect or dialect_of(body)
        except NotThisDialect:
            return reads
        places = _event_ends(body, dialect)
    else:
        places = _places(len(body), cut)
    pieces = cut_at(body, places)
    return [
        Read(reads[bisect_left(ends, end)].t, piece)
        for piece, end in zip(pieces, accumulate(map(len, pieces)), strict=True)
    ]


def _places(size: int, cut: Cut) -> list[int]:
    if cut.kind == "bytes":
        return list(range(cut.number, size, cut.number))
    chosen = random.Random(cut.number)  # noqa: S311 - reproducible, nothing secret
    places, at = [], chosen.randint(1, RANDOM_BYTES)
    while at < size:
        places.append(at)
        at += chosen.randint(1, RANDOM_BYTES)
    return places


def _event_ends(body: bytes, dialect: str) -> list[int]:
    """Return the offsets after each frame and comment with its blank lines. Do not split after a parser's fault."""
    parser = source_named(dialect)[0].parser(DEFAULT_LIMITS, StreamReport())
    places: set[int] = set()
    for line in _LINE.findall(body):
        places.update(frame.offset for frame in parser.feed(line))
        places.add(parser.boundary)
        if parser.fault is not None:
            break
    return sorted(place for place in places if 0 < place < len(body) and body[place] not in b"\r\n")
