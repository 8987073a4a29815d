"""Finds: inputs that broke a law, each in a file that says what came of it and how to run it again."""

from __future__ import annotations

import hashlib
import json
import traceback
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
#: Inputs that once broke a law and are run by the ordinary tests since (``tests/fuzz/test_found.py``).
KEPT = Path(__file__).parent / "found"


@frozen
class Find:
    """``data`` is the input. In the file it stands as Latin-1, a character a byte, so that it can be read."""

    target: str
    error: str
    where: str
    data: bytes

    @property
    def kind(self) -> tuple[str, str, str]:
        """What is the same of finds that have one cause, as far as one can tell."""
        return self.target, self.error.partition(":")[0], self.where

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.target}-{hashlib.sha256(self.data).hexdigest()[:12]}.json"
        document = {
            "target": self.target,
            "error": self.error[:2000],
            "where": self.where,
            "replay": f"python -m tests.fuzz --replay {path.name}",
            "data": self.data.decode("latin-1"),
        }
        path.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        return path


def read_find(path: Path) -> Find:
    document = json.loads(path.read_text("utf-8"))
    return Find(document["target"], document["error"], document["where"], document["data"].encode("latin-1"))


def find_of(target: str, data: bytes, error: BaseException) -> Find:
    """A find, by the innermost line of ours that its error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{ROOT}/streamkit/" in frame.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return Find(target, f"{type(error).__name__}: {error}", where, data)
