"""Where the recorded streams and conformance data are. They are not part of this repository: tests skip without them."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.framing.binary import framed


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


def streams_of(reader: Any) -> Iterator[Any]:
    """All that ``read.py`` yields; Bedrock's, of which the payloads were kept as lines of JSON, in binary messages."""
    for stream in reader.streams():
        if stream.dialect == "bedrock-converse-json":
            yield replace(stream, dialect="bedrock", framing="binary", chunks=(framed(stream.body),))
        else:
            yield stream


@cache
def _reader() -> Any:
    """The corpora's own ``read.py``, which needs PyYAML; skips the test where there is none."""
    path = require_corpora() / "read.py"
    spec = importlib.util.spec_from_file_location("corpora_read", path)
    if spec is None or spec.loader is None:
        pytest.skip(f"no {path.name} in the corpora")
    pytest.importorskip("yaml")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@cache
def streams() -> tuple[Any, ...]:
    """Every recorded stream, read once: most of the time goes into the cassettes, whatever dialect is wanted."""
    return tuple(streams_of(_reader()))


@cache
def recordings(dialect: str) -> list[Any]:
    """The recorded streams of a dialect, each with ``name``, ``chunks`` and ``body``; skips the test where there are none."""
    return [stream for stream in streams() if stream.dialect == dialect]


@cache
def _requests() -> tuple[Any, ...]:
    return tuple(_reader().requests())


@cache
def requests(dialect: str) -> list[Any]:
    """The recorded requests of a dialect, each with ``name``, ``url`` and ``body``, a dict that is not to be changed."""
    return [request for request in _requests() if request.dialect == dialect]
