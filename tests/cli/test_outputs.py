"""``streamkit convert`` with files and folders: which dialect it finds, where it writes, and what it refuses to overwrite."""

from __future__ import annotations

import json
import os

import pytest

from streamkit.cli import main
from tests.cli.command import DEMO, run
from tests.cli.recorded import recorded
from tests.vectors import VECTORS

TO = ("convert", "-q", "--to", "anthropic")
DATA = DEMO.read_bytes()


@pytest.fixture(scope="module")
def converted():
    return run(*TO, "--from", "openai-chat", stdin=DATA).stdout


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a folder of two streams, of which one is in a subfolder, and a hidden file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_bytes(DATA)
    (tmp_path / "in" / "sub" / "b.c.sse").write_bytes(DATA)
    (tmp_path / "in" / ".hidden").write_bytes(b"no stream")
    return tmp_path


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


REQUEST = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
RESPONSE = b'{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'


@pytest.mark.parametrize(("command", "body"), [("convert-request", REQUEST), ("convert-response", RESPONSE)])
def test_bodies_are_written_to_files_and_folders_too(folder, command, body):
    to = (command, "-q", "--from", "openai-chat", "--to", "anthropic")
    for name in ("a.json", "b.json"):
        (folder / "in" / "sub" / name).write_bytes(body)
    single = run(*to, stdin=body).stdout
    assert single.startswith(b"{")
    assert run(*to, "-o", "one.json", "in/sub/a.json").returncode == 0
    assert run(*to, "-o", "out", "in/sub/a.json", "in/sub/b.json").returncode == 0
    assert {(folder / name).read_bytes() for name in ("one.json", "out/a.json", "out/b.json")} == {single}
    again = run(*to, "-o", "one.json", "in/sub/a.json")
    assert again.returncode == 2
    assert again.stderr.endswith(b" exists; add --force to overwrite it, or name another output\n")
    assert run(*to, "--force", "-o", "one.json", "in/sub/a.json").returncode == 0
    assert run(*to, "--force", stdin=body).stderr == b"streamkit: --force needs --out\n"


@pytest.mark.parametrize("command", ["convert", "convert-request", "convert-response"])
def test_a_missing_file_leaves_the_others(folder, command):
    names = [] if command == "convert" else ["--from", "openai-chat"]
    body = {"convert": DATA, "convert-request": REQUEST, "convert-response": RESPONSE}[command]
    (folder / "good").write_bytes(body)
    done = run(command, "-q", *names, "--to", "anthropic", "-o", "out/", "missing", "good")
    assert (done.returncode, len(files_in(folder / "out"))) == (1, 1)
    assert b"missing" in done.stderr


@pytest.mark.parametrize("dialect", dict.fromkeys(vector.dialect for vector in VECTORS if vector.dialect != "mistral"))
def test_the_dialect_of_the_input_is_detected(dialect):
    vector = next(v for v in VECTORS if v.dialect == dialect and v.clean and len(v.body) > 200)
    named, found = (run("convert", "--to", "ollama", *more, stdin=vector.body) for more in (["--from", dialect], []))
    assert (found.returncode, found.stderr) == (named.returncode, named.stderr)
    assert len(found.stdout) == pytest.approx(len(named.stdout), abs=100)  # the times in it differ
    assert f"(standard input): {dialect} -> ollama".encode() in found.stderr


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["-o", "out.sse", "in/a.txt"], ["out.sse"]),
        (["--out", "new/out", "in/a.txt"], ["new/out"]),
        (["-o", "out/", "in/a.txt"], ["out/a.sse"]),
        (["-o", "in", "in/a.txt"], ["in/a.sse"]),
        (["-o", "out", "in/a.txt", "in/sub/b.c.sse"], ["out/a.sse", "out/b.c.sse"]),
        (["-o", "out", "in"], ["out/a.sse", "out/sub/b.c.sse"]),
        (["-o", "in/out", "in"], ["in/out/a.sse", "in/out/sub/b.c.sse"]),
        (["-o", ".", "in"], ["a.sse", "sub/b.c.sse"]),
    ],
    ids=" ".join,
)
def test_outputs_are_named_like_their_inputs(folder, converted, arguments, written):
    before = files_in(folder)
    done = run(*TO, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert files_in(folder) == sorted([*before, *written])
    assert {(folder / name).read_bytes() for name in written} == {converted}
    again = run(*TO, *arguments)
    assert again.returncode == 2
    assert again.stderr.endswith(b" exists; add --force to overwrite it, or name another output\n")
    (folder / written[-1]).write_bytes(b"other")
    assert run(*TO, "--force", *arguments).returncode == 0
    assert files_in(folder) == sorted([*before, *written])
    assert (folder / written[-1]).read_bytes() == converted


@pytest.mark.parametrize(("dialect", "name"), [("ollama", "a.ndjson"), ("bedrock", "a.bin"), ("gemini", "a.sse")])
def test_the_ending_is_that_of_the_output_dialect(folder, dialect, name):
    assert run("convert", "-q", "--to", dialect, "-o", "out/", "in/a.txt").returncode == 0
    assert files_in(folder / "out") == [name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["in"], "add --out DIR: a folder, or more than one file, is converted into a folder"),
        (["in/a.txt", "in/a.txt"], "add --out DIR: a folder, or more than one file, is converted into a folder"),
        (["-o", "out", "in/a.txt", "in/a.txt"], "in/a.txt and in/a.txt would both become out/a.sse; convert them into two folders"),
        (["-o", "in/a.txt", "--force", "in/a.txt"], "--out: in/a.txt is the input; name another output"),
        (["-o", "in/sub/", "--force", "in/sub/b.c.sse"], "--out: in/sub/b.c.sse is the input; name another output"),
        (["-o", "in/a.txt", "--force", "in"], "--out: in/a.txt is a file; name a folder for these inputs"),
        (["-o", "in", "in"], "--out: in is the input folder; name another folder"),
        (["-o", "in/sub", "in", "in/sub"], "--out: in/sub is the input folder; name another folder"),
        (["-o", "out", "empty"], "empty: no file in this folder"),
        (["-o", "out/", "-"], "--out: standard input has no name; write --out DIR/NAME"),
        (["--force", "in/a.txt"], "--force needs --out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_has_no_clear_output_is_refused_before_anything_is_written(folder, arguments, message):
    (folder / "empty" / "empty").mkdir(parents=True)
    before = {name: (folder / name).read_bytes() for name in files_in(folder)}
    done = run(*TO, *arguments)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"streamkit: {message}\n")
    assert {name: (folder / name).read_bytes() for name in files_in(folder)} == before


def test_one_bad_file_leaves_no_output_and_the_others_are_converted(folder):
    (folder / "in" / "README").write_bytes(b"no stream\n")
    done = run(*TO, "-o", "out", "in")
    assert (done.returncode, files_in(folder / "out")) == (5, ["a.sse", "sub/b.c.sse"])
    assert done.stderr.startswith(b"streamkit: in/README: not a stream of a known dialect")


def test_a_dash_as_the_output_is_standard_output(folder, converted):
    before = files_in(folder)
    done = run(*TO, "-o", "-", stdin=DATA)
    assert (done.returncode, done.stdout, files_in(folder)) == (0, converted, before)
    assert run(*TO, "--force", "-o", "-", stdin=DATA).stderr == b"streamkit: --force needs --out\n"


def test_standard_input_is_written_to_a_file(folder, converted):
    assert run(*TO, "-o", "out.sse", stdin=DATA).returncode == 0
    assert (folder / "out.sse").read_bytes() == converted


@pytest.mark.parametrize("command", ["inspect", "lint"])
def test_the_files_of_a_folder_are_read(folder, command):
    done = run(command, "--json", "in")
    files = [json.loads(line)["file"] for line in done.stdout.splitlines()]
    assert (done.returncode, files) == (0, ["in/a.txt", "in/sub/b.c.sse"])
    (folder / "empty").mkdir()
    done = run(command, "empty")
    assert (done.returncode, done.stderr) == (2, b"streamkit: empty: no file in this folder\n")


def test_a_folder_that_cannot_be_read_is_an_error(folder, monkeypatch, capfd):
    def scandir(path):
        if str(path) == "in/sub":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    scan = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    for command in (["lint"], ["inspect"], [*TO, "-o", "out"], ["replay"]):
        assert main([*command, "in"]) == 1
        assert capfd.readouterr() == ("", "streamkit: cannot read in/sub: Permission denied\n")
    assert not (folder / "out").exists()


def test_a_file_that_cannot_be_read_is_an_error_and_a_pipe_is_skipped(folder):
    (folder / "in" / "link").symlink_to("missing")
    os.mkfifo(folder / "in" / "pipe")
    done = run("lint", "in")
    assert (done.returncode, done.stderr) == (1, b"streamkit: cannot read in/link: No such file or directory\n")
    assert len(done.stdout.splitlines()) == 2


def test_a_response_without_a_dialect_leaves_the_others(folder):
    (folder / "a.json").write_bytes(RESPONSE)
    (folder / "b.stream.jsonl").write_bytes(recorded([(0.5, RESPONSE)]))
    done = run("convert-response", "-q", "--to", "anthropic", "-o", "out", "a.json", "b.stream.jsonl")
    assert done.stderr == b"streamkit: a.json: add --from DIALECT; only a recording names its dialect\n"
    assert (done.returncode, files_in(folder / "out")) == (2, ["b.json"])
