"""The files of a folder and its subfolders."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NoReturn

from streamkit.errors import SourceFailed


def files_below(folder: Path) -> list[Path]:
    """Return the files of a folder and its subfolders, sorted. Leave out hidden files and folders, and pipes and devices.

    A file that cannot be read is in the list, so that reading it fails. Raises SourceFailed for a folder that cannot be read:
    without its files, the list would be incomplete.
    """
    found: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in names if not name.startswith(".")]
    return sorted(path for path in found if not _is_special(path))


def _refuse(error: OSError) -> NoReturn:
    raise SourceFailed(f"cannot read {error.filename}: {error.strerror}") from error


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:  # such as a link to a missing file
        return False
