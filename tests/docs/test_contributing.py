"""The map in CONTRIBUTING.md and the walk in design.md: the files that they name are there, and so is what to look for in them."""

from __future__ import annotations

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = (
    (ROOT / "CONTRIBUTING.md")
    .read_text("utf-8")
    .partition("## Map of the house")[2]
    .partition("## Rules of the house")[0]
)
PATHS = sorted(set(re.findall(r"`((?:streamkit|tests|docs|tools|benchmarks)/[\w./-]*)`", MAP)))
PLACES = re.findall(r"`(streamkit/[\w/]+\.py)`, `(\w+)`", MAP)
STEPS = re.findall(r"`([\w/]+)\.py::([\w.]+)`", (ROOT / "docs" / "explanation" / "design.md").read_text("utf-8"))


def test_the_map_is_read():
    assert len(PATHS) > 15
    assert len(PLACES) >= 5
    assert len(STEPS) > 10


@pytest.mark.parametrize("path", PATHS)
def test_a_path_of_the_map_is_there(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("path", "name"), PLACES)
def test_a_name_of_the_map_stands_in_its_file(path, name):
    assert re.search(rf"\b{name}\b", (ROOT / path).read_text("utf-8"))


@pytest.mark.parametrize(("path", "name"), STEPS)
def test_a_step_of_the_walk_is_there(path, name):
    assert attrgetter(name)(import_module(f"streamkit.{path.replace('/', '.')}"))


def test_every_package_has_a_room_on_the_map():
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "streamkit").glob("*/__init__.py")}
    assert {package for package in packages if f"{package.rpartition('/')[2]}/" not in MAP} <= {
        "streamkit/text",
        "streamkit/testing",
    }
