"""The source distribution: the whole repository, whose tests run where it was unpacked."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What no packager needs, and what is made here.
LEFT_OUT = {".git", ".ci", ".gitignore", "build", "dist", "__pycache__", "node_modules", "fuzz-finds", "mutants"}
BUILD = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])"


def left_out(_folder, names):
    return [name for name in names if name in LEFT_OUT or name.startswith(".") or name.endswith((".egg-info", ".pyc"))]


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The folder of an unpacked source distribution, and the tree that it was made of."""
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("the backend of pyproject.toml is not here: pip install 'setuptools>=77'")
    tree, out = tmp_path_factory.mktemp("tree") / "streamkit", tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, tree, ignore=left_out)
    subprocess.run([sys.executable, "-c", BUILD, out], cwd=tree, check=True, capture_output=True)
    [archive] = out.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(out, filter="data")
    [folder] = (path for path in out.iterdir() if path.is_dir())
    return folder, tree


def test_it_has_every_file_of_the_repository(unpacked):
    folder, tree = unpacked
    made = re.compile(r".*\.egg-info/.*|build/.*")
    missing = {name for name in files_in(tree) - files_in(folder) if not made.fullmatch(name)}
    assert missing == set()
    assert not [name for name in files_in(folder) if name.endswith(".pyc")]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(["tests/test_pipeline.py", "tests/web/test_hosts.py"], id="a part of them"),
        pytest.param(["--collect-only", "tests"], id="all of them are found", marks=pytest.mark.exhaustive),
    ],
)
def test_its_tests_run_where_it_was_unpacked(unpacked, how):
    folder, _ = unpacked
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = "import sys, pytest; status = pytest.main(sys.argv[1:]); import streamkit; print(streamkit.__file__); sys.exit(status)"
    run = [sys.executable, "-c", code, "-q", "-p", "no:xdist", *how]
    done = subprocess.run(run, cwd=folder, env=env, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert Path(done.stdout.splitlines()[-1]).is_relative_to(folder)  # and not those of the repository


def test_the_versions_that_are_promised_are_those_that_are_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" :: ")[2] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    assert named == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={named[0]}"
    assert "make test-versions" in (ROOT / "CONTRIBUTING.md").read_text("utf-8")
