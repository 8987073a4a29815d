"""The release script refuses what is not ready, and two builds of a source distribution are the same bytes."""

from __future__ import annotations

import io
import re
import tarfile
import tomllib

import pytest

from tools import install_matrix, oldest, public_api, release

READY = {
    "version": "0.1.0",
    "changelog": "# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-11-29)\n\n- all\n",
    "status": "",
    "tags": [],
    "released": public_api.released("0.1.0", public_api.page()),
}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        pytest.param({}, None, id="ready"),
        pytest.param({"status": " M README.md"}, "the tree has changes", id="a change"),
        pytest.param({"changelog": READY["changelog"].replace("(2026-11-29)", "")}, "no heading", id="no date"),
        pytest.param(
            {"changelog": READY["changelog"].replace("ased\n", "ased\n\n- more\n")}, "lines under", id="a line"
        ),
        pytest.param({"tags": ["v0.1.0"]}, "the tag v0.1.0 exists", id="a tag"),
        pytest.param({"released": "0.0.9\n"}, "released-api.txt is not that", id="the API of another version"),
        pytest.param(
            {"version": "0.1.0.dev0", "changelog": READY["changelog"].replace("0.1.0 (", "0.1.0.dev0 (")},
            "write a version such as",
            id="a development version",
        ),
    ],
)
def test_a_release_is_refused_with_what_to_do(changed, fault):
    found = list(release.faults(**{**READY, **changed}))
    assert [fault in each for each in found][:1] == ([True] if fault else [])


def packed(path, names, mtime, owner):
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = 3, mtime, owner
            archive.addfile(member, io.BytesIO(b"abc"))
    return path


def test_a_normalised_archive_says_nothing_of_time_owner_and_order(tmp_path):
    one = packed(tmp_path / "one.tar.gz", ["a/b", "a/c"], 1, "me")
    other = packed(tmp_path / "other.tar.gz", ["a/c", "a/b"], 2, "you")
    assert one.read_bytes() != other.read_bytes()
    for path in (one, other):
        release.normalise(path, 1_700_000_000)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as archive:
        assert archive.getnames() == ["a/b", "a/c"]
        assert archive.extractfile("a/b").read() == b"abc"


def test_each_dependency_has_a_lower_bound_that_the_oldest_run_reads():
    bounds = oldest.bounds()
    assert bounds["aiohttp"] == "3.14.4"
    assert bounds["google-auth"]  # with an extra of its own
    assert {"attrs", "orjson", "cattrs", "redis", "brotli"} <= bounds.keys()


def test_the_install_matrix_knows_what_each_extra_brings():
    assert set(install_matrix.IMPORTS) == {"", *release.EXTRAS}
    named = tomllib.loads((release.ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(release.EXTRAS) == named.keys() - {"bench", "clients", "dev", "docs", "fuzz", "mutation"}


def test_the_page_at_pypi_has_no_relative_links(tmp_path):
    for name in ("README.md", "pyproject.toml"):
        (tmp_path / name).write_text((release.ROOT / name).read_text("utf-8"), "utf-8")
    release.address(tmp_path, "https://code.example/o/streamkit", "0.1.0")
    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text("utf-8"))
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "https://code.example/o/streamkit/blob/v0.1.0/docs/why.md" in links
    assert "https://code.example/o/streamkit/raw/v0.1.0/docs/drawings/gateway.svg" in links
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    assert urls["Repository"] == "https://code.example/o/streamkit"
