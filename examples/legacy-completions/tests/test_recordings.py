"""Recorded streams of OpenAI and vLLM. They are not part of this package: the tests skip without them.

``STREAMKIT_CORPORA`` names a folder whose ``read.py`` yields them.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from machines import broken_rules, read, write

from streamkit.testing import cut_at, cuts


def recordings():
    path = Path(os.environ.get("STREAMKIT_CORPORA", "")) / "read.py"
    if not path.is_file():
        pytest.skip("no recordings: set STREAMKIT_CORPORA to their folder")
    pytest.importorskip("yaml")
    spec = importlib.util.spec_from_file_location("corpora_read", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return list(module.streams(dialect="openai-legacy-completions"))


def test_the_recordings_are_read_without_a_repair_however_they_are_cut():
    streams = recordings()
    assert len(streams) >= 30
    for stream in streams:
        whole = read([stream.body])
        assert whole.clean, stream.name
        assert whole.text.strip(), stream.name
        assert whole.report.repairs == {}, stream.name
        assert broken_rules(stream.body, notes=False) == [], stream.name
        for reads in [*cuts(stream.body, sample=5), cut_at(stream.body, list(range(1, len(stream.body))))]:
            assert read(reads).events == whole.events, stream.name


def test_the_recordings_come_back_as_they_were():
    for stream in recordings():
        there = read([stream.body])
        output, report = write(there)
        assert read([output]).events == there.events, stream.name
        assert (report.losses, broken_rules(output)) == ({}, []), stream.name
