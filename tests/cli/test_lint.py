from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamkit.dialects.linting import CASES, CUT, GARBLES, KNOWN, STOPPED, STOPS, TORN, UNFINISHED
from streamkit.report import REPAIRS
from tests.cli.command import DEMO, run
from tests.vectors.openai_chat import CALLED, DONE, ROLE, STOP, call, calls
from tests.vectors.vector import sse

DATA = DEMO.read_bytes()


def test_a_well_formed_stream_is_clean():
    done = run("lint", "--dialect", "openai-chat", str(DEMO))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"clean" in done.stdout


def test_what_streamkit_reads_anyway_would_be_repaired():
    done = run("lint", "--dialect", "openai-chat", "--json", stdin=WITHOUT_INDEX)
    assert done.returncode == 6
    (found,) = (json.loads(line) for line in done.stdout.splitlines())
    assert found["verdict"] == "repairable"
    first = found["violations"][0]
    at = WITHOUT_INDEX.index(b"tool_calls")
    assert WITHOUT_INDEX.rindex(b"data:", 0, at) == first["offset"], "the byte is where the frame begins"


def test_a_cut_stream_is_broken():
    done = run("lint", "--dialect", "openai-chat", stdin=DATA[:1500])
    assert done.returncode == 1
    assert b"truncated" in done.stdout


def test_a_broken_frame_is_named_with_its_byte():
    at = DATA.index(b"data: ", 900)
    done = run("lint", "--dialect", "openai-chat", stdin=DATA[:at] + b"data: {nonsense}\n\n" + DATA[at:])
    assert done.returncode == 1
    assert f"byte {at}".encode() in done.stdout


def test_another_dialect_exits_5():
    assert run("lint", "--dialect", "anthropic", str(DEMO)).returncode == 5
    assert run("lint", stdin=b"<html>").returncode == 5


def test_the_worst_of_several_files_is_the_status(tmp_path):
    cut = tmp_path / "cut.sse"
    cut.write_bytes(DATA[:1500])
    assert run("lint", str(DEMO), str(cut)).returncode == 1


# -- explanations ------------------------------------------------------------------------------------------------------


def linted(body: bytes, *arguments: str) -> dict[str, Any]:
    done = run("lint", "--dialect", "openai-chat", "--json", *arguments, stdin=body)
    return json.loads(done.stdout)


TWO_WITHOUT_INDEX = DATA.replace(b'"index": 1, "function"', b'"function"')  # and their fragments alternate
WITHOUT_INDEX = sse(ROLE, calls(call(None, "a", "f", "")), calls(call(None, arguments="{}")), CALLED, DONE)
HEAD = sse(ROLE)
STOPPED_WITH_A_CALL = sse(ROLE, calls(call(0, "a", "f", "{}")), STOP, DONE)


def test_a_violation_says_its_case_and_its_repair():
    first, *rest = linted(WITHOUT_INDEX)["violations"]
    assert (first["rule"], first["case"], first["streamkit"]) == ("call_index", 6, ["index_missing"])
    assert len(rest) == 1


def test_calls_that_cannot_be_told_apart_are_broken_and_not_repaired():
    found = linted(TWO_WITHOUT_INDEX)
    assert found["verdict"] == "broken"
    garbled = [violation for violation in found["violations"] if violation["rule"] == "garbled"]
    assert [violation["streamkit"] for violation in garbled] == [GARBLES] * len(garbled)
    assert "are malformed: " in garbled[0]["message"] or "are truncated: " in garbled[0]["message"]
    first = sse(ROLE, calls(call(None, "a", "f", "{}")), calls(call(None, "b", "g", '{"a":')), CALLED, DONE)
    assert linted(first)["verdict"] == "repairable"  # the last call may be truncated


def test_the_answers_of_a_note_and_of_what_follows_a_fault():
    found = linted(HEAD + sse(b"{oops}", {**ROLE, "object": "odd"}, b"{}"))
    by_rule = {violation["rule"]: violation for violation in found["violations"]}
    assert (by_rule["not_json"]["case"], by_rule["not_json"]["streamkit"]) == (115, STOPS)
    assert by_rule["object"]["streamkit"] == STOPPED
    (done,) = linted(sse(ROLE, STOP))["violations"]
    assert (done["rule"], done["severity"], done["streamkit"]) == ("done", "note", KNOWN)


def test_a_cut_stream_and_one_with_its_terminator_are_told_apart():
    (cut,) = linted(HEAD)["violations"]
    assert (cut["rule"], cut["case"], cut["streamkit"]) == ("truncated", 65, CUT)
    (ended,) = linted(HEAD + sse(DONE))["violations"]
    assert (ended["rule"], ended["case"], ended["streamkit"]) == ("truncated", 61, UNFINISHED)
    torn = {violation["rule"]: violation["streamkit"] for violation in linted(HEAD + b'data: {"id":')["violations"]}
    assert torn == {"unterminated": TORN, "not_json": TORN, "truncated": CUT}


def test_a_repair_that_no_broken_rule_explains_is_told_with_its_place():
    found = linted(STOPPED_WITH_A_CALL)
    assert found["violations"] == []
    assert found["repairs"] == {"stop_with_calls": 1}
    (other,) = found["other_repairs"]
    assert (other["repair"], other["frame"], other["case"]) == ("stop_with_calls", 3, 52)
    assert STOPPED_WITH_A_CALL[other["offset"] :] == b"data: [DONE]\n\n"


# -- the text ----------------------------------------------------------------------------------------------------------


def test_the_text_explains_each_violation_on_the_line_below():
    done = run("lint", "--dialect", "openai-chat", stdin=STOPPED_WITH_A_CALL)
    head, place, explanation, repairs = done.stdout.decode().splitlines()
    assert head.endswith("openai-chat, repairable")
    assert place.endswith("frame 3: no rule is broken")
    assert explanation == f"    looks like field failure 52: {CASES[52]}. streamkit repairs it: {REPAIRS['stop_with_calls']} (stop_with_calls)"  # fmt: skip
    assert repairs == "  repairs: stop_with_calls 1"


def test_the_same_explanation_is_not_told_again():
    body = sse(ROLE, calls(call(None, "a", "f", "")), *[calls(call(None, arguments=" "))] * 1000, CALLED, DONE)
    last = body.rindex(b"data:", 0, body.index(sse(CALLED)))
    told = run("lint", "--dialect", "openai-chat", stdin=body).stdout.decode()
    assert f"(and 1000 more, the last at byte {last}, frame 1001)" in told
    assert len(told.splitlines()) == 4


def test_another_explanation_of_one_rule_has_its_own_line():
    body = sse(ROLE, calls(call(0, "a", "f", "")), calls(call(0, "a")), calls(call(0, None, "f", "{}")), CALLED, DONE)
    told = run("lint", "--dialect", "openai-chat", stdin=body).stdout.decode()
    assert told.count("error call_repeat") == 2
    assert "field failure 30" in told
    assert "field failure 36" in told


# -- the how-to --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (DATA, 0, ""),
        (WITHOUT_INDEX, 1, "requests/one.json: not clean\n"),
        (TWO_WITHOUT_INDEX, 1, "requests/one.json: broken\n"),
        (DATA[:1500], 1, "requests/one.json: broken\n"),
    ],
)
def test_the_shell_job_of_the_how_to_tells_what_is_not_clean(tmp_path, answer, status, told):
    """The page's own script, with a ``curl`` that answers from a file."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "check-your-server.md").read_text("utf-8")
    (tmp_path / "job.sh").write_text(page.partition("```sh\n#!/bin/sh")[2].partition("```")[0], "utf-8")
    (tmp_path / "answer").write_bytes(answer)
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "one.json").write_text("{}")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, line in {"curl": "exec cat answer", "streamkit": f'exec "{sys.executable}" -m streamkit "$@"'}.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "SERVER": "http://localhost"}
    done = subprocess.run(["sh", "job.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, told, "")
    assert json.loads((tmp_path / "requests" / "one.lint.json").read_text())["dialect"] == "openai-chat"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_letter_of_the_wires_moves_a_terminal(form, tmp_path):
    frame = json.dumps({"type": "x\x1b[2J", "\x9b31m": "\u202eabc\x7f"}, ensure_ascii=False)
    recording = tmp_path / "a\x9b\u202eb.sse"
    recording.write_text(f"event: message_start\ndata: {{\x9b\u202e\n\nevent: \u202e\x9b31m\x7f\ndata: {frame}\n\n")
    done = run("lint", "--dialect", "anthropic", *form, str(recording))
    told = done.stdout.decode() + done.stderr.decode()
    assert len(told) > 100
    assert all(line.isprintable() for line in told.splitlines())
    if form:
        assert json.loads(done.stdout)["file"] == str(recording)
