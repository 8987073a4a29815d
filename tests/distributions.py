"""Installed distributions without installing: a ``.dist-info`` on the path is all that Python knows of one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamkit.dialects import GROUP


def write_distribution(
    folder: Path, name: str, dialects: Mapping[str, str], *, group: str = GROUP, version: str = "1.0"
) -> None:
    """Make ``folder``, once it is on the path, hold a distribution with these entry points."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    points = "".join(f"{point} = {value}\n" for point, value in dialects.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{points}", "utf-8")


def install(project: Path, folder: Path) -> dict[str, Any]:
    """``pip install --editable project`` as far as entry points go; returns the project's table of ``pyproject.toml``."""
    found: dict[str, Any] = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    for group, points in found["entry-points"].items():
        write_distribution(folder, found["name"], points, group=group, version=found["version"])
    return found
