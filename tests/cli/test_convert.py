"""The command as a user runs it: a process, pipes, signals, exit statuses."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.cli.command import DEMO, run, start

DATA = DEMO.read_bytes()
FRAMES = DATA.split(b"\n\n")


def test_a_file_converts_and_the_report_is_on_stderr():
    done = run("convert", "--from", "openai-chat", "--to", "ollama", str(DEMO))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [call["function"] for line in lines for call in line["message"].get("tool_calls", [])]
    assert done.returncode == 0
    assert [call["name"] for call in calls] == ["get_weather", "get_time"]
    assert calls[1]["arguments"] == {"zone": "Atlantic/Reykjavik", "precision": 1.0}
    assert b'"precision": 1.0}' in done.stdout
    assert lines[-1]["done"] is True
    assert b"clean" in done.stderr
    assert b"usage_detail" in done.stderr


def test_standard_input_gives_the_same_as_the_file():
    arguments = ("convert", "--from", "openai-chat", "--to", "anthropic")
    assert run(*arguments, stdin=DATA).stdout == run(*arguments, str(DEMO)).stdout


def test_events_pass_a_stage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_stages.py").write_text(
        "async def quiet(batches):\n    async for batch in batches:\n        yield batch\n"
    )
    redact = '{ use = "streamkit:redact", args = [{ regex = "Reykjav.k" }], replacement = "there" }'
    arguments = ("convert", "--from", "openai-chat", "--to", "openai-chat", "--stage", redact)
    done = run(*arguments, "--stage", "my_stages:quiet", str(DEMO))
    assert (done.returncode, b"Reykjav" in done.stdout, b"there" in done.stdout) == (0, False, True)
    done = run("convert", "--to", "anthropic", "--stage", "no_such:x", str(DEMO))
    assert (done.returncode, b"--stage: no_such can't be imported" in done.stderr) == (2, True)


def test_quiet_says_nothing():
    assert run("convert", "-q", "--from", "openai-chat", "--to", "anthropic", str(DEMO)).stderr == b""


def test_the_first_output_comes_before_the_input_ends():
    with start("convert", "--from", "openai-chat", "--to", "anthropic") as process:
        process.stdin.write(b"\n\n".join(FRAMES[:3]) + b"\n\n")
        assert b"event: message_start" in os.read(process.stdout.fileno(), 65536)
        process.stdin.write(b"\n\n".join(FRAMES[3:]))
        process.stdin.close()
        assert process.stdout.read().endswith(b'{"type":"message_stop"}\n\n')
    assert process.returncode == 0


@pytest.mark.parametrize("data", [b"", b"\n\n", b"   "])
def test_empty_input_is_cut(data):
    done = run("convert", "--from", "openai-chat", "--to", "anthropic", stdin=data)
    assert done.returncode == 3
    assert b"message_stop" not in done.stdout


def test_a_cut_stream_exits_3_with_all_that_arrived_and_an_error_frame():
    done = run("convert", "--from", "openai-chat", "--to", "openai-chat", stdin=DATA[:900])
    assert done.returncode == 3
    whole = DATA[: DATA.rindex(b"\n\n", 0, 900) + 2]
    assert done.stdout.startswith(whole)
    assert b'"code":"stream_truncated"' in done.stdout[len(whole) :]
    assert b"[DONE]" not in done.stdout


def test_a_provider_error_exits_4():
    error = b'data: {"error":{"message":"overloaded, \\u001b[2J try later","type":"overloaded"}}\n\n'
    done = run(
        "convert", "--from", "openai-chat", "--to", "anthropic", stdin=b"\n\n".join(FRAMES[:6]) + b"\n\n" + error
    )
    assert done.returncode == 4
    assert b'"type":"overloaded_error"' in done.stdout
    assert b"\x1b" not in done.stderr, "control characters must not reach the terminal"


@pytest.mark.parametrize(
    ("source", "to"),
    [("openai-chat", "anthropic"), ("anthropic", "openai-chat"), ("ollama", "ollama"), ("openai-chat", "openai-chat")],
)
@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>\n", b"HTML"),
        (b'{\n  "error": {"message": "no such model"}\n}\n', b"JSON"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", b"binary"),
        (b"Internal Server Error\n", b"Internal Server Error"),
    ],
    ids=["html", "json-body", "gzip", "text"],
)
def test_what_is_not_this_dialect_gets_one_clear_line_and_status_5(data, found, source, to):
    done = run("convert", "--from", source, "--to", to, stdin=data)
    assert done.returncode == 5, done.stderr
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert found in done.stderr
    assert b"byte 0" in done.stderr
    for success in (b"[DONE]", b"message_stop", b'"done":true'):
        assert success not in done.stdout


def test_another_dialects_stream_is_named_as_such():
    anthropic = run("convert", "-q", "--from", "openai-chat", "--to", "anthropic", stdin=DATA).stdout
    done = run("convert", "--from", "openai-chat", "--to", "ollama", stdin=anthropic)
    assert done.returncode == 5
    assert b"message_start" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [(), ("convert",), ("convert", "--from", "nobody", "--to", "anthropic"), ("frobnicate",), ("convert", "--what")],
)
def test_a_mistake_in_the_call_exits_2(arguments):
    assert run(*arguments).returncode == 2


def test_a_missing_file_is_named():
    done = run("convert", "--from", "ollama", "--to", "anthropic", "/no/such/file")
    assert done.returncode == 1
    assert b"/no/such/file" in done.stderr
    assert b"Traceback" not in done.stderr


def test_sigint_ends_it_while_it_waits_for_input():
    with start("convert", "--from", "openai-chat", "--to", "anthropic") as process:
        process.stdin.write(b"\n\n".join(FRAMES[:3]) + b"\n\n")
        os.read(process.stdout.fileno(), 65536)  # it runs, and now it waits
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert b"Traceback" not in process.stderr.read()


def test_a_reader_that_leaves_ends_it_without_a_traceback():
    with start("convert", "--from", "openai-chat", "--to", "anthropic") as process:
        process.stdin.write(b"\n\n".join(FRAMES[:3]) + b"\n\n")
        os.read(process.stdout.fileno(), 65536)
        process.stdout.close()
        process.stdin.write(b"\n\n".join(FRAMES[3:]))
        process.stdin.close()
        assert process.wait(timeout=10) == 1
        assert b"Traceback" not in process.stderr.read()


def test_sigint_ends_it_while_the_reader_is_stalled():
    """Its write fills the pipe and blocks; nobody ever reads."""
    frame = FRAMES[7].replace(b'"content": "', b'"content": "' + b"x" * 4_000) + b"\n\n"
    assert len(frame) > 4_000
    with start("convert", "--from", "openai-chat", "--to", "openai-chat") as process:
        process.stdin.write(frame * 16)
        os.read(process.stdout.fileno(), 1)
        process.stdin.write(frame * 8)  # what is not read of it has room in the pipe
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert b"Traceback" not in process.stderr.read()


def test_usage_is_written_by_default_and_can_be_left_out():
    anthropic = run("convert", "-q", "--from", "openai-chat", "--to", "anthropic", stdin=DATA).stdout
    arguments = ("convert", "-q", "--from", "anthropic", "--to", "openai-chat")
    assert b'"usage":{"prompt_tokens":112' in run(*arguments, stdin=anthropic).stdout
    assert b'"usage"' not in run(*arguments, "--no-usage", stdin=anthropic).stdout


@pytest.mark.parametrize(("option", "dialect"), [("--no-usage", "openai-chat"), ("--call-ids", "ollama")])
def test_an_option_without_effect_is_refused(option, dialect):
    done = run("convert", option, "--to", "anthropic", stdin=DATA)
    message = f"streamkit: {option} has no effect on anthropic; it is for {dialect}\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", message)
    assert run("convert", option, "--to", dialect, stdin=DATA).returncode == 0


def test_reencode_mends_what_pass_through_leaves():
    broken = DATA.replace(b'"tool_calls": [{"index": 0, "id"', b'"tool_calls": [{"id"')
    assert broken != DATA
    arguments = ("convert", "-q", "--from", "openai-chat", "--to", "openai-chat")
    assert run(*arguments, stdin=broken).stdout == broken
    assert (
        run("lint", "--dialect", "openai-chat", stdin=run(*arguments, "--reencode", stdin=broken).stdout).returncode
        == 0
    )


def test_version_and_help():
    assert run("--version").stdout.startswith(b"streamkit ")
    for command in ((), ("convert",), ("inspect",), ("lint",)):
        done = run(*command, "--help")
        assert done.returncode == 0
        assert b"exit status" in done.stdout


def test_a_provider_that_is_named_says_which_repairs_are_no_surprise(tmp_path):
    body = b'data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},'
    body += b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    (tmp_path / "s.sse").write_bytes(body)
    told = run("convert", "--from", "gemini-openai", "--to", "claude-code", str(tmp_path / "s.sse")).stderr.decode()
    assert "known of this provider: the stop reason is `stop` although the model called tools" in told
    told = run("convert", "--from", "openai-chat", "--to", "anthropic", str(tmp_path / "s.sse")).stderr.decode()
    assert "repair stop_with_calls" in told
    assert "known of" not in told
