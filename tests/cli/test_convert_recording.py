"""Old files become recordings, which the other commands read."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from streamkit.lab.recording import read_recording
from tests.cli.command import DEMO, run
from tests.lab.recording.cassettes import cassette, entry


def converted(folder, *arguments):
    return run("convert-recording", "-o", str(folder), *map(str, arguments))


def test_the_exchanges_of_a_cassette_are_files_of_their_own(tmp_path):
    old, out = tmp_path / "chats.jsonl", tmp_path / "new" / "recordings"
    old.write_bytes(cassette(entry(), entry(id="../../evil")))
    done = converted(out, old)
    paths = [Path(line) for line in done.stdout.decode().splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    assert paths == [out / "chats-1.stream.jsonl", out / "chats-2.stream.jsonl"] == sorted(out.iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert read_recording(paths[0]).request.path == "/v1/chat/completions"
    shown = json.loads(run("inspect", "--json", str(paths[0])).stdout)
    assert (shown["clean"], shown["choices"][0]["text"]) == (True, "2^64: ü")
    assert shown["times"]["greatest_gap_s"] == 0.247


def test_fixtures_are_written_in_the_dialect_that_is_named(tmp_path):
    old = tmp_path / "weather.json"
    old.write_text(json.dumps({"fixtures": [{"match": {}, "response": {"content": "Rain."}}]}))
    done = converted(tmp_path / "out", "--dialect", "anthropic", old)
    path = tmp_path / "out" / "weather.stream.jsonl"
    assert (done.returncode, done.stdout.decode()) == (0, f"{path}\n")
    assert run("lint", str(path)).stdout.decode() == f"{path}: anthropic, clean\n"
    assert (
        converted(tmp_path / "out", old)
        .stderr.decode()
        .startswith(f"streamkit: {old}: fixtures of aimock have no dialect")
    )


def test_raw_bytes_are_whole_in_their_recording_and_no_file_is_written_over(tmp_path):
    assert converted(tmp_path, DEMO).returncode == 0
    path = tmp_path / "two_calls.stream.jsonl"
    assert read_recording(path).body == DEMO.read_bytes()
    again = converted(tmp_path, DEMO)
    assert (again.returncode, again.stderr.decode()) == (2, f"streamkit: {path} exists already\n")
    copied = converted(tmp_path / "copy", path)
    assert (tmp_path / "copy" / path.name).read_bytes() == path.read_bytes()
    assert copied.returncode == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<html>", "neither a recording nor a stream of a known dialect: found an HTML page ('<html>')"),
        ('{"schema_version":1,"request":{},"response":{}}', "'method' is missing"),
        ('{"_meta":{}}', "contains no responses"),
    ],
)
def test_what_cannot_be_read_is_named(content, message, tmp_path):
    old = tmp_path / "old"
    old.write_text(content)
    done = converted(tmp_path / "out", old)
    assert done.stderr.decode().startswith(f"streamkit: {old}")
    assert message in done.stderr.decode()
    assert done.stdout == b""
    others = converted(tmp_path / "out", "/no/such/file", old, DEMO)
    assert (others.returncode, len(others.stdout.splitlines())) == (max(1, done.returncode), 1)
    assert others.stderr.startswith(b"streamkit: cannot read /no/such/file: No such file or directory\n")


WHOLE = b'{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'


def test_a_whole_response_of_the_named_dialect_is_recorded_as_one(tmp_path):
    old = tmp_path / "old"
    old.write_bytes(WHOLE)
    assert converted(tmp_path, "--dialect", "openai-chat", old).returncode == 0
    recording = read_recording(tmp_path / "old.stream.jsonl")
    assert (recording.body, recording.response.headers) == (WHOLE, {"content-type": "application/json"})


@pytest.mark.parametrize(
    ("content", "status", "found"),
    [
        (b"<html>", 5, "neither a recording nor an event stream: found an HTML page ('<html>')"),
        (b" \n", 3, "neither a recording nor a stream of anthropic: found nothing"),
        (b'{"a":', 1, "no JSON: '{\"a\":' (at byte 0)"),
        (b'{"a":1}', 5, "neither a recording nor anthropic: found frames of another dialect ('{\"a\":1}')"),
        (DEMO.read_bytes()[:400], 5, "neither a recording nor anthropic: found frames of another dialect ("),
    ],
)
def test_what_is_no_response_of_the_named_dialect_is_refused(content, status, found, tmp_path):
    old = tmp_path / "old"
    old.write_bytes(content)
    done = converted(tmp_path / "out", "--dialect", "anthropic", old)
    assert done.stderr.decode().startswith(f"streamkit: {old}: {found}")
    assert (done.returncode, done.stdout, (tmp_path / "out").exists()) == (status, b"", False)
