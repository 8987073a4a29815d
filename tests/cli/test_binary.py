"""Binary event streams on the command line: bytes in and out, offsets of messages, no binary on a terminal."""

from __future__ import annotations

import json

from tests.cli.command import DEMO, run
from tests.framing.binary import event, exception
from tests.vectors.bedrock import START, block, counts, finish, tool, vector

DATA = vector(
    "", START, *block(0, "Hi"), *tool(1, "tooluse_a", "f", '{"x":', "1.0}"), finish("tool_use"), counts()
).body
BEGUN = vector("", START, *block(0, "Hi")).body


def test_a_binary_stream_converts_from_a_file_and_to_one(tmp_path):
    recording = tmp_path / "recording.bin"
    recording.write_bytes(DATA)
    done = run("convert", "-q", "--from", "bedrock", "--to", "openai-chat", str(recording))
    assert done.returncode == 0
    assert done.stdout.endswith(b"data: [DONE]\n\n")
    assert b'"name":"f"' in done.stdout
    assert run("convert", "-q", "--from", "bedrock", "--to", "bedrock", str(recording)).stdout == DATA
    demo = run("convert", "-q", "--from", "openai-chat", "--to", "bedrock", str(DEMO)).stdout
    assert run("lint", "--dialect", "bedrock", stdin=demo).returncode == 0
    (found,) = map(json.loads, run("inspect", "--json", stdin=demo).stdout.splitlines())
    assert found["dialect"] == "bedrock"
    assert [call["name"] for call in found["choices"][0]["tool_calls"]] == ["get_weather", "get_time"]


def test_a_cut_binary_stream_ends_in_an_exception_and_status_3():
    done = run("convert", "--from", "bedrock", "--to", "bedrock", stdin=DATA[:-200])
    assert done.returncode == 3
    passed = len(DATA) - len(event(*counts())) - len(event(*finish("tool_use")))
    assert done.stdout.startswith(DATA[:passed])
    assert b"modelStreamErrorException" in done.stdout[passed:]
    assert b"messageStop" not in done.stdout
    assert b"\0" not in done.stderr


def test_lint_names_the_message_and_its_byte_whatever_bytes_it_has():
    newlines = vector("", START, *block(0, "\n" * 13), finish(), finish(), counts()).body
    (found,) = map(json.loads, run("lint", "--json", stdin=newlines).stdout.splitlines())
    (violation,) = found["violations"]
    assert (violation["rule"], violation["frame"]) == ("after_stop", 4)
    assert violation["offset"] == len(newlines) - len(event(*finish())) - len(event(*counts()))
    assert violation["streamkit"] == ["after_end"]


def test_an_exception_is_status_4_and_a_flipped_bit_status_1():
    busy = BEGUN + exception("throttlingException", {"message": "busy"})
    assert run("inspect", stdin=busy).returncode == 4
    flipped = BEGUN[:-1] + bytes([BEGUN[-1] ^ 1])
    done = run("convert", "--from", "bedrock", "--to", "anthropic", stdin=flipped)
    assert done.returncode == 1
    assert b"checksum" in done.stderr


def test_another_dialect_names_what_it_found():
    done = run("convert", "--from", "openai-chat", "--to", "anthropic", stdin=DATA)
    assert done.returncode == 5
    assert b"a binary event stream" in done.stderr
    html = run("convert", "--from", "bedrock", "--to", "bedrock", stdin=b"<html>502</html>")
    assert html.returncode == 5
    assert b"an HTML page" in html.stderr
