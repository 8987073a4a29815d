"""``streamkit convert-recording``: write raw streams and other tools' files as recordings."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from streamkit.cli.options import AUTO, OTHER, source_or_auto
from streamkit.cli.streams import say, say_failure, write
from streamkit.errors import SourceFailed, UsageError
from streamkit.lab.recording import SUFFIX, Recording, lines_of
from streamkit.lab.recording.loading import load
from streamkit.report import Status

HELP = "write recordings from raw streams and from files of other tools"
DETAIL = f"""\
Reads the bytes of streams (server-sent events, JSON Lines, Amazon's event stream), cassettes of the program reel-vcr (JSON
Lines) and fixtures of the program aimock (JSON). Writes each response to a recording (*{SUFFIX}), which the other commands can
read. Prints the paths of the new files. If such a file exists already, the command does not change it, and fails. With the
option --dialect, a file may also have a whole response. Any other content is refused.

The recordings are marked as not exact, because raw bytes have no times, and a cassette has events instead of the received
bytes. A fixture has only the content of a response. The command writes this content in the dialect of the option --dialect.
Cassettes also contain the requests, so `streamkit replay` can compare new requests with them.

examples:
  streamkit convert-recording -o recordings cassette.jsonl
  streamkit convert-recording -o recordings --dialect {OTHER} fixtures.json
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit convert-recording``."""
    add = command.add_argument
    add(
        "--out",
        "-o",
        required=True,
        metavar="DIR",
        help="the folder for the recordings, which is created if it does not exist",
    )
    add(
        "--dialect",
        type=source_or_auto,
        default=AUTO,
        metavar="DIALECT",
        help="the dialect of the responses (default: auto); required for fixtures of aimock",
    )
    add("files", nargs="+", metavar="FILE", help="the files to convert")


def run(options: argparse.Namespace) -> Status:
    """Convert each file. Return the worst status of all files."""
    dialect = "" if options.dialect == AUTO else options.dialect
    return max([_convert(Path(file), Path(options.out), dialect) for file in options.files])


def _convert(file: Path, folder: Path, dialect: str) -> Status:
    """Convert one file. If it fails, print the reason."""
    stem = file.name.removesuffix(SUFFIX) if file.name.endswith(SUFFIX) else file.stem
    try:
        recordings = load(file, dialect=dialect)
        for number, recording in enumerate(recordings, 1):
            path = folder / f"{stem}{SUFFIX if len(recordings) == 1 else f'-{number}{SUFFIX}'}"
            _keep(recording, path)
            write(f"{path}\n".encode(errors="surrogateescape"))
    except BrokenPipeError:  # the reader of the paths left
        raise
    except (UsageError, SourceFailed, OSError) as error:
        return say_failure(error)
    if not recordings:
        say(f"{file} contains no responses, so nothing was written")
    return Status.DONE


def _keep(recording: Recording, path: Path) -> None:
    """Write a new file that only this user can read. Raises UsageError if the file exists, and SourceFailed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(lines_of(recording))
    except FileExistsError as error:
        raise UsageError(f"{error.filename} exists already") from error
    except OSError as error:
        raise SourceFailed(f"cannot write {path}: {error.strerror}") from error
