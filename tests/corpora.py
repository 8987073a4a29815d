"""Where the recorded streams and conformance data are. They are not part of this repository: tests skip without them."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest


def _find() -> Path | None:
    named = os.environ.get("STREAMKIT_CORPORA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "corpora"
    return folder if folder.is_dir() else None


CORPORA: Path | None = _find()


def require_corpora() -> Path:
    """The folder, or skip the test that asks."""
    if CORPORA is None:
        pytest.skip("no corpora: set STREAMKIT_CORPORA to their folder")
    return CORPORA


@cache
def recordings(dialect: str) -> list[Any]:
    """The recorded streams of a dialect, each with ``name``, ``chunks`` and ``body``; skips the test where there are none.

    They are read by the corpora's own ``read.py``, which needs PyYAML.
    """
    path = require_corpora() / "read.py"
    spec = importlib.util.spec_from_file_location("corpora_read", path)
    if spec is None or spec.loader is None:
        pytest.skip(f"no {path.name} in the corpora")
    pytest.importorskip("yaml")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return list(module.streams(dialect=dialect))
