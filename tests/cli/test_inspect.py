from __future__ import annotations

import json
import os

import pytest

from tests.cli.command import DEMO, run
from tests.vectors.openai_chat import DONE, ROLE, STOP, said
from tests.vectors.vector import sse

DATA = DEMO.read_bytes()


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_json_has_exactly_the_promised_shape():
    done = run("inspect", "--json", str(DEMO))
    (found,) = objects(done)
    assert done.returncode == 0
    assert list(found) == ["file", "dialect", "choices", "usage", "clean", "error", "repairs", "losses"]
    (choice,) = found["choices"]
    assert list(choice) == [
        "index", "text", "reasoning", "refusal", "tool_calls", "stop_reason", "native_stop_reason", "media",
    ]  # fmt: skip
    assert found["file"] == str(DEMO)
    assert found["dialect"] == "openai-chat"
    assert choice["text"] == "Let me look that up for you."
    assert choice["tool_calls"][1] == {
        "index": 1,
        "id": "call_t2",
        "name": "get_time",
        "arguments": '{"zone": "Atlantic/Reykjavik", "precision": 1.0}',
        "verdict": "complete",
    }
    assert (choice["stop_reason"], choice["native_stop_reason"]) == ("tool_calls", "tool_calls")
    assert found["usage"]["output_total"] == 58
    assert (found["clean"], found["error"], found["repairs"], found["losses"]) == (True, None, {}, {})


def test_the_dialect_is_found_out_for_each():
    for dialect in ("openai-chat", "anthropic", "ollama"):
        data = run("convert", "-q", "--from", "openai-chat", "--to", dialect, stdin=DATA).stdout
        (found,) = objects(run("inspect", "--json", stdin=data))
        assert found["dialect"] == dialect
        assert [call["name"] for call in found["choices"][0]["tool_calls"]] == ["get_weather", "get_time"]


def test_the_worst_of_several_files_is_the_status(tmp_path):
    cut = tmp_path / "cut.sse"
    cut.write_bytes(DATA[:2000])
    html = tmp_path / "page.html"
    html.write_bytes(b"<html><body>no</body></html>")
    assert run("inspect", "--json", str(DEMO), str(cut)).returncode == 3
    done = run("inspect", "--json", str(cut), str(html), str(DEMO))
    assert done.returncode == 5
    assert [found["clean"] for found in objects(done)] == [False, False, True]
    assert done.stderr.count(b"\n") == 1
    assert b"page.html" in done.stderr
    assert b"HTML" in done.stderr


def test_a_cut_call_is_truncated_and_its_text_is_shown():
    at = DATA.index(b'"days')
    (found,) = objects(run("inspect", "--json", stdin=DATA[: DATA.index(b"\n\n", at) + 2]))
    call = found["choices"][0]["tool_calls"][0]
    assert call["verdict"] == "truncated"
    assert call["arguments"] == '{"city": "Reykjavík", "days": 3, "units": '
    assert found["choices"][0]["stop_reason"] is None


@pytest.mark.parametrize(
    ("schema", "verdict", "reason"),
    [
        (None, "complete", None),
        ({"type": "object"}, "complete", None),
        ({"properties": {"a": {"type": "string"}}}, "schema_invalid", 'at /a: the value is not of type "string"'),
    ],
)
def test_a_text_is_checked_as_asked(schema, verdict, reason, tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))
    data = sse(ROLE, said('{"a": 1}'), STOP, DONE)
    output = "json" if schema is None else str(file)
    (found,) = objects(run("inspect", "--json", "--output", output, stdin=data))
    assert (found["choices"][0]["verdict"], found["choices"][0].get("reason")) == (verdict, reason)
    shown = run("inspect", "--output", output, stdin=data).stdout.decode()
    assert f"JSON text  {verdict}\n" in shown
    assert (reason or "") in shown


def test_an_image_that_the_model_made_is_shown():
    part = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    data = sse({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]})
    assert b"image image/png  (12 characters of base64)" in run("inspect", stdin=data).stdout
    ((media,),) = [choice["media"] for choice in objects(run("inspect", "--json", stdin=data))[0]["choices"]]
    assert media == {
        "kind": "image", "media_type": "image/png", "url": None, "file_id": None, "name": None, "data_chars": 12
    }  # fmt: skip


def test_a_file_that_has_no_tools_is_named(tmp_path):
    path = tmp_path / "tools.json"
    path.write_text("[1]")
    done = run("inspect", "--tools", str(path), str(DEMO))
    assert (done.returncode, done.stderr.decode()) == (2, f"streamkit: {path}: not a tool definition: 1\n")


def test_a_missing_file_does_not_hide_the_others():
    done = run("inspect", "--json", "/no/such/file", str(DEMO))
    assert done.returncode == 1
    assert [each["file"] for each in objects(done)] == ["/no/such/file", str(DEMO)]
    assert b"/no/such/file" in done.stderr


def test_the_picture_shows_lanes_verdicts_and_the_end():
    done = run("inspect", str(DEMO), PYTHONIOENCODING="utf-8")
    picture = done.stdout.decode()
    for sign in (
        "call 0 get_weather",
        "call 1 get_time",
        "complete",
        "stop reason tool_calls",
        "112 in, 58 out",
        "clean end",
    ):
        assert sign in picture
    assert "\x1b" not in picture, "no colour into a pipe"


def test_colour_when_asked_and_ascii_where_the_terminal_has_no_more():
    assert b"\x1b[" in run("inspect", "--color", "always", str(DEMO)).stdout
    plain = run("inspect", str(DEMO), PYTHONIOENCODING="ascii")
    assert plain.returncode == 0
    assert plain.stdout.isascii()


def test_control_characters_of_the_wire_do_not_reach_the_terminal():
    evil = DATA.replace(b"Let me ", b"\\u001b[2J\\u0007Let me ").replace(b"get_weather", b"get\\u001b]0;x\\u0007")
    done = run("inspect", "--color", "never", stdin=evil)
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert b"\x07" not in done.stdout


def test_repairs_are_named_in_the_picture():
    broken = DATA.replace(b'{"index": 1, "function"', b'{"index": 1, "id": "call_other", "function"')
    done = run("inspect", stdin=broken)
    assert b"id_changed" in done.stdout


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_letter_of_the_wires_moves_a_terminal(form, tmp_path):
    nasty = "\x1b[2J\x7f\x85\x9b31m\u2028\u061c\u202eabc\u2066\ufeff"
    delta = {
        "content": nasty,
        "tool_calls": [{"index": 0, "id": nasty, "function": {"name": nasty, "arguments": nasty}}],
    }
    chunk = {"model": nasty, "choices": [{"index": 0, "delta": delta, "finish_reason": nasty}]}
    recording = tmp_path / os.fsdecode(f"a{nasty}b".encode() + b"\xff.sse")
    recording.write_text(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\ndata: {{{nasty}\n\ndata: [DONE]\n\n")
    done = run("inspect", "--from", "openai-chat", *form, str(recording))
    told = done.stdout.decode() + done.stderr.decode()
    assert len(told) > 100
    assert all(line.isprintable() for line in told.splitlines())
    if form:
        said = json.loads(done.stdout)
        assert said["file"] == str(recording)
        assert said["choices"][0]["text"] == nasty


def test_timings_add_the_stages_to_the_json():
    plain, timed = (objects(run("inspect", "--json", *more, str(DEMO)))[0] for more in ((), ("--timings",)))
    rows = timed.pop("timings")
    assert timed == plain
    assert [(row["stage"], row["items_in"], row["items_out"]) for row in rows] == [
        ("source", 0, 1),
        ("parse openai-chat", 1, 24),
        ("decode openai-chat", 24, 25),
        ("accumulate_tool_calls", 25, 27),
        ("pipe", 1, 27),
    ]
    assert all(0 < row["seconds"] < 60 for row in rows)


def test_an_old_option_is_the_new_one_and_says_so():
    done = run("inspect", "--json", "--profile", str(DEMO))
    assert "timings" in objects(done)[0]
    assert done.stderr == b"streamkit: --profile is now --timings; the next release drops the old name\n"


def test_timings_are_a_table_behind_the_picture(tmp_path):
    plain = run("inspect", str(DEMO)).stdout
    shown = run("inspect", "--timings", str(DEMO)).stdout
    assert shown.startswith(plain)
    assert [line.split()[0] for line in shown[len(plain) :].decode().splitlines()[:-1]] == [
        "stage", "source", "parse", "decode", "accumulate_tool_calls", "pipe"
    ]  # fmt: skip
    html = tmp_path / "page.html"
    html.write_bytes(b"<html><body>no</body></html>")
    assert run("inspect", "--timings", str(html)).stdout == b""
