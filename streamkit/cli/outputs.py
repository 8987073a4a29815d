"""The inputs and outputs of the commands that convert: standard output, a file, or a folder with a file for each input.

Nothing is overwritten without ``--force``, and an input never by its own output.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from streamkit.cli.progress import progress
from streamkit.cli.streams import STDIN, STDOUT, files_of, say_failure, write
from streamkit.errors import SourceFailed, UsageError
from streamkit.lab.recording import SUFFIX
from streamkit.report import Status

#: The endings of output files by the media type of the output's dialect.
ENDINGS: Final = {"text/event-stream": ".sse", "application/x-ndjson": ".ndjson", "application/json": ".json"}
OTHER_ENDING: Final = ".bin"


class Output:
    """An output. A file is made at the first write, so that a refused input leaves none."""

    def __init__(self, path: Path | None, *, force: bool) -> None:
        self._path, self._mode = path, "wb" if force else "xb"
        self._file: Any = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, data: bytes) -> None:
        """Write a piece at once, so that a reader of the file can follow a live stream. Raises SourceFailed."""
        if self._path is None:
            write(data)
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open(self._mode)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise SourceFailed(f"cannot write {self._path}: {error.strerror}") from error


def add_outputs(command: Any, what: str) -> None:
    """Add ``--out``, ``--force`` and the input files. ``what`` describes the files in the help."""
    add = command.add_argument
    add(
        "--out",
        "-o",
        metavar="PATH",
        help="the file to write, or the folder for the files (default: -, standard output)",
    )
    add("--force", action="store_true", help="with --out: overwrite files")
    add(
        "files",
        nargs="*",
        default=[STDIN],
        metavar="FILE",
        help=f"{what}, or folders with such files (default: standard input)",
    )


async def each_file(options: Namespace, media_type: str, convert: Callable[[str, Output], Awaitable[Status]]) -> Status:
    """Convert each input into its output. Return the worst status. Raises UsageError before anything is written.

    An error in one input is printed, and the other inputs are converted.
    """
    out = None if options.out == STDOUT else options.out
    if options.force and out is None:
        raise UsageError("--force needs --out")
    pairs = outputs(options.files, out, media_type, force=options.force)
    worst = Status.DONE
    with progress([path for path, _ in pairs], writes_text=out is None):
        for path, written in pairs:
            with closing(Output(written, force=options.force)) as output:
                try:
                    status = await convert(path, output)
                except (SourceFailed, UsageError) as error:
                    status = say_failure(error)
                worst = max(worst, status)
    return worst


def outputs(inputs: Sequence[str], out: str | None, media_type: str, *, force: bool) -> list[tuple[str, Path | None]]:
    """Return each input file with its output; None is standard output.

    Raises UsageError, and SourceFailed for a folder that cannot be read, before anything is written.
    """
    is_several = len(inputs) > 1 or any(Path(given).is_dir() for given in inputs)
    if out is None:
        if is_several:
            raise UsageError("add --out DIR: a folder, or more than one file, is converted into a folder")
        return [(inputs[0], None)]
    target = Path(out)
    found: dict[Path, str] = {}
    if not is_several and not target.is_dir() and not out.endswith("/"):
        found[target] = inputs[0]
    else:
        if target.exists() and not target.is_dir():
            raise UsageError(f"--out: {out} is a file; name a folder for these inputs")
        if STDIN in inputs:
            raise UsageError("--out: standard input has no name; write --out DIR/NAME")
        for path, place in files_of(inputs, target):
            written = target / place.with_name(_stem(place.name) + ENDINGS.get(media_type, OTHER_ENDING))
            if written in found:
                raise UsageError(
                    f"{found[written]} and {path} would both become {written}; convert them into two folders"
                )
            found[written] = path
    for written, path in found.items():
        if not written.exists():
            continue
        if path != STDIN and Path(path).exists() and written.samefile(path):
            raise UsageError(f"--out: {written} is the input; name another output")
        if not force:
            raise UsageError(f"{written} exists; add --force to overwrite it, or name another output")
    return [(path, written) for written, path in found.items()]


def _stem(name: str) -> str:
    return name.removesuffix(SUFFIX) if name.endswith(SUFFIX) else name.rpartition(".")[0] or name
