"""Prepare a release that a person publishes: ``make release``.

python -m tools.release                 # try: check and build into build/release; nothing is tagged
python -m tools.release --tag --repository https://github.com/OWNER/streamkit    # the same, and then the tag vVERSION
python -m tools.release --skip-tests    # try without `make test`, never with --tag
python -m tools.release --prepare       # after the version and the changelog: write tools/released-api.txt

It checks that the tree is clean, that the changelog has the version and nothing under "Unreleased", that the tag is new, that
``tools/released-api.txt`` is that of this version, and the tests. It builds wheel and source distribution twice, with the time
of the last commit, and compares their hashes. It adds an SBOM of the runtime dependencies with all extras that users install,
as CycloneDX, and SHA256SUMS. Nothing is uploaded. The package's page at PyPI gets the address of the repository, and links to
the files at this version in place of the README's relative links.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import streamkit
from tools import public_api

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "release"
EXTRAS = (
    "aws",
    "cli",
    "gateway",
    "google",
    "import",
    "otel",
    "redis",
    "schema",
    "tokens",
    "tools",
)  #: those that users install
BUILD = "import sys, setuptools.build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"
NEXT = """\
Next, by hand:
  1. git push origin v{version}
  2. pip install twine && twine check {out}/*.whl {out}/*.tar.gz
  3. twine upload {out}/*.whl {out}/*.tar.gz   (or let a trusted publisher upload these two files)
  4. Attach all files of {out} to the release page, with the changelog's part of {version}.
  5. Write the next development version in streamkit/__init__.py.
"""


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout.strip()


def faults(version: str, changelog: str, status: str, tags: list[str], released: str) -> Iterator[str]:
    """Yield what forbids a release, each with what to do."""
    if status:
        yield f"the tree has changes: commit them\n{status}"
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        yield f"__version__ in streamkit/__init__.py is {version}: write a version such as 0.1.0"
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        yield f'CHANGELOG.md has no heading "## {version} (YYYY-MM-DD)": write it'
    if public_api.unreleased_part(changelog).strip():
        yield f'CHANGELOG.md has lines under "Unreleased": move them under {version}'
    if f"v{version}" in tags:
        yield f"the tag v{version} exists: raise __version__ in streamkit/__init__.py"
    if released != public_api.released(version, public_api.page()):
        yield "tools/released-api.txt is not that of this version: run `python -m tools.release --prepare`, and commit it"


def build(tree: Path, out: Path, epoch: str) -> dict[str, str]:
    """Build wheel and source distribution of a copy of the tree. Return the hash of each file by its name."""
    out.mkdir(parents=True)
    for what in ("build_sdist", "build_wheel"):  # a process for each: in one, setuptools loses the second
        run(sys.executable, "-c", BUILD, what, out, cwd=tree, SOURCE_DATE_EPOCH=epoch)
    [archive] = out.glob("*.tar.gz")
    normalise(archive, int(epoch))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}


def normalise(archive: Path, epoch: int) -> None:
    """Write a source distribution again with one time, one owner and one order, which setuptools leaves to the machine."""
    packed = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            content = old.extractfile(member) if member.isfile() else None
            member.mtime, member.uid, member.gid, member.uname, member.gname, member.pax_headers = (
                epoch,
                0,
                0,
                "",
                "",
                {},
            )
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(member, content)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", 9, file, epoch) as zipped:
        zipped.write(packed.getvalue())


def address(tree: Path, repository: str, version: str) -> None:
    """Write the repository's address into the metadata, and make the README's relative links absolute, for PyPI's page."""
    project = tree / "pyproject.toml"
    urls = f'[project.urls]\nRepository = "{repository}"\n\n'
    project.write_text(project.read_text("utf-8").replace("[project.scripts]\n", f"{urls}[project.scripts]\n"), "utf-8")
    readme = tree / "README.md"
    readme.write_text(absolute(readme.read_text("utf-8"), repository, version), "utf-8")


def absolute(page: str, repository: str, version: str) -> str:
    """Return a page in Markdown whose links lead to the files of a version: pictures to their bytes, others to their pages."""
    return re.sub(
        r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)",
        lambda link: f"{link[1]}[{link[2]}]({repository}/{'raw' if link[1] else 'blob'}/v{version}/{link[3]})",
        page,
    )


def copy(folder: Path, repository: str, version: str) -> Path:
    """Return a copy of the files that git has in the last commit: what else is in the tree goes into no release."""
    folder.mkdir(parents=True)
    archive = folder.with_suffix(".tar")
    run("git", "archive", "--format=tar", "-o", archive, "HEAD")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    if repository:
        address(folder, repository, version)
    return folder


def build_twice(out: Path, epoch: str, repository: str, version: str) -> dict[str, str]:
    """Build in two folders and compare. Return the hashes."""
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        first = build(copy(Path(name, "a", "streamkit"), repository, version), out, epoch)
        second = build(copy(Path(name, "another", "name"), repository, version), Path(name, "out"), epoch)
    if first != second:
        sys.exit(f"two builds differ:\n{first}\n{second}")
    return first


def add_sbom(out: Path, version: str, epoch: str) -> Path:
    """Install the wheel with the extras of users in an environment of its own, and list what is in it."""
    [wheel] = out.glob("*.whl")
    target = out / f"streamkit_llm-{version}.cdx.json"
    with tempfile.TemporaryDirectory() as name:
        tool, installed = Path(name, "tool"), Path(name, "installed")
        run(sys.executable, "-m", "venv", tool)
        run(sys.executable, "-m", "venv", "--without-pip", installed)
        run(tool / "bin" / "python", "-m", "pip", "install", "--quiet", "cyclonedx-bom>=7")
        pip = [tool / "bin" / "python", "-m", "pip", "--python", installed / "bin" / "python"]
        run(*pip, "install", "--quiet", f"{wheel}[{','.join(EXTRAS)}]")
        command = [tool / "bin" / "cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON", "-o", target]
        run(*command, "--pyproject", ROOT / "pyproject.toml", installed / "bin" / "python", SOURCE_DATE_EPOCH=epoch)
    return target


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--tag", action="store_true", help="set the tag after all checks; without it nothing is changed"
    )
    parser.add_argument("--skip-tests", action="store_true", help="leave out `make test`; not with --tag")
    parser.add_argument("--prepare", action="store_true", help="write tools/released-api.txt and end")
    parser.add_argument("--repository", default="", metavar="URL", help="the repository's address, for PyPI's page")
    chosen = parser.parse_args(arguments)
    if chosen.tag and not chosen.repository:
        parser.error("PyPI's page needs the repository's address: add --repository https://github.com/OWNER/streamkit")
    if chosen.tag and chosen.skip_tests:
        parser.error("a release needs the tests: leave out --skip-tests or --tag")
    version = streamkit.__version__
    if chosen.prepare:
        public_api.RELEASED.write_text(public_api.released(version, public_api.page()), "utf-8")
        print(f"wrote tools/released-api.txt for {version}")
        return 0
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    tags, status = run("git", "tag").split(), run("git", "status", "--porcelain")
    found = list(faults(version, changelog, status, tags, public_api.RELEASED.read_text("utf-8")))
    print(*(f"NOT READY: {fault}" for fault in found), sep="\n", flush=True)
    if found and chosen.tag:
        return 1
    if not chosen.skip_tests:
        print("make test …", flush=True)
        run("make", "test")
    epoch = run("git", "log", "-1", "--format=%ct")
    hashes = build_twice(OUT, epoch, chosen.repository.rstrip("/"), version)
    print("two builds have the same hashes")
    sbom = add_sbom(OUT, version, epoch)
    hashes[sbom.name] = hashlib.sha256(sbom.read_bytes()).hexdigest()
    sums = "".join(f"{digest}  {name}\n" for name, digest in hashes.items())
    (OUT / "SHA256SUMS").write_text(sums, "utf-8")
    print(sums, end="")
    if chosen.tag:
        run("git", "tag", "-a", f"v{version}", "-m", f"Release {version}")
        print(f"tagged v{version}")
        print(NEXT.format(version=version, out=OUT.relative_to(ROOT)), end="")
    else:
        print(
            "tried only: nothing is tagged. `make release RELEASE='--tag --repository URL'` sets the tag and says what next"
        )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
