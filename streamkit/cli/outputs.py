"""The outputs of ``streamkit convert``: standard output, a file, or a folder with a file for each input.

Nothing is overwritten without ``--force``, and an input never by its own output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from streamkit.cli.streams import STDIN, write
from streamkit.errors import SourceFailed, UsageError
from streamkit.lab.recording import SUFFIX

#: The endings of output files by the media type of the output's dialect.
ENDINGS: Final = {"text/event-stream": ".sse", "application/x-ndjson": ".ndjson"}
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


def outputs(inputs: Sequence[str], out: str | None, media_type: str, *, force: bool) -> list[tuple[str, Path | None]]:
    """Return each input file with its output; None is standard output. Raises UsageError before anything is written."""
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
        for path, place in _files(inputs, target):
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


def _files(inputs: Sequence[str], target: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file, and those of each folder and its subfolders, with the path below the folder. Skip hidden files."""
    for given in inputs:
        if given == STDIN:
            raise UsageError("--out: standard input has no name; write --out DIR/NAME")
        folder = Path(given)
        if not folder.is_dir():
            yield given, Path(folder.name)
            continue
        for path in sorted(folder.rglob("*")):
            place = path.relative_to(folder)
            is_hidden = any(part.startswith(".") for part in place.parts)
            if path.is_file() and not is_hidden and target.resolve() not in path.resolve().parents:
                yield str(path), place


def _stem(name: str) -> str:
    return name.removesuffix(SUFFIX) if name.endswith(SUFFIX) else name.rpartition(".")[0] or name
