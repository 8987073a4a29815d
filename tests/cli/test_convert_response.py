"""``streamkit convert-response`` as a user runs it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.conversation.messages import Choice, Response, Text, ToolCall
from streamkit.events import ProviderFailed, UsageReported
from streamkit.translation.bodies import decode_response, encode_response
from tests.cli.command import run
from tests.whole_answers import ANSWERING_WHOLE

PAIRS = [*((name, "openai-chat") for name in ANSWERING_WHOLE), *(("openai-chat", name) for name in ANSWERING_WHOLE)]
ARGUMENTS = b'{"q": 1.0, "n": 18446744073709551616}'
OLLAMA = (
    b'{"model":"m","created_at":"2025-01-01T00:00:00Z","message":{"role":"assistant","content":"so","tool_calls":['
    b'{"function":{"name":"look","arguments":%b}}]},"done":true,"done_reason":"stop","eval_count":4}' % ARGUMENTS
)


def answer(**members: Any) -> Response:
    parts: list[Any] = [Text("so"), ToolCall(0, "call_abc1", "look", '{"q": 1.5}')]
    usage = UsageReported(input_total=9, output_total=4, total=13)
    choice = Choice(parts=parts, stop_reason="tool_calls")
    return Response("", id="i", model="m", created=1, choices=[choice], usage=usage, **{"clean": True, **members})


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_response_says_the_same_in_another_dialect(source, target):
    done = run("convert-response", "--from", source, "--to", target, stdin=encode_response(answer(), source))
    assert done.returncode == 0, done.stderr
    response = decode_response(done.stdout, target)
    assert response.clean
    assert response.text == "so"
    assert [(call.name, json.loads(call.arguments)) for call in response.tool_calls] == [("look", {"q": 1.5})]
    assert response.choices[0].stop_reason == "tool_calls"
    assert (response.usage.input_total, response.usage.output_total) == (9, 4)
    assert done.stderr.startswith(b"streamkit: (standard input): %b -> %b: clean" % (source.encode(), target.encode()))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_an_error_body_stays_an_error_and_has_status_4(source, target):
    body = encode_response(answer(clean=False, error=ProviderFailed("server", "out of memory")), source)
    done = run("convert-response", "--from", source, "--to", target, stdin=body)
    assert done.returncode == 4, done.stderr
    assert decode_response(done.stdout, target).error.message == "out of memory"
    assert b"out of memory" in done.stderr


def test_a_dialect_whose_answers_are_streams_has_none_that_is_whole():
    done = run("convert-response", "--from", "ollama", "--to", "ag-ui", stdin=OLLAMA)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"ag-ui has no whole responses: its responses are always streams" in done.stderr
    done = run("convert-response", "--from", "ag-ui", "--to", "ollama", stdin=b'{"type":"RUN_ERROR","message":"busy"}')
    assert (done.returncode, json.loads(done.stdout)) == (4, {"error": "busy"})


def test_a_file_gives_the_same_as_standard_input(tmp_path):
    (tmp_path / "response.json").write_bytes(OLLAMA)
    command = ("convert-response", "--from", "ollama", "--to", "ollama")
    assert run(*command, str(tmp_path / "response.json")).stdout == run(*command, stdin=OLLAMA).stdout


def test_numbers_keep_their_digits_on_one_line_and_on_several():
    command = ("convert-response", "--from", "ollama", "--to", "ollama")
    plain, pretty = run(*command, stdin=OLLAMA), run(*command, "--indent", stdin=OLLAMA)
    assert ARGUMENTS in plain.stdout
    assert plain.stdout.count(b"\n") == 1
    assert b'"n": 18446744073709551616\n' in pretty.stdout
    assert json.loads(pretty.stdout) == json.loads(plain.stdout)


def test_what_was_repaired_and_lost_is_told():
    body = OLLAMA.replace(ARGUMENTS, b'"{}"')
    done = run("convert-response", "--from", "ollama", "--to", "openai-chat", stdin=body)
    assert b"repair arguments_not_object (1)" in done.stderr
    assert run("convert-response", "-q", "--from", "ollama", "--to", "openai-chat", stdin=body).stderr == b""
    assert (
        run("convert-response", "--policy", "strict", "--from", "ollama", "--to", "ollama", stdin=body).returncode == 1
    )


def test_a_client_may_be_named():
    chat = encode_response(answer(), "openai-chat")
    for client, keys in ("zed", {"function"}), ("ollama-python", {"id", "function"}):
        done = run("convert-response", "--from", "deepseek", "--to", client, stdin=chat)
        assert json.loads(done.stdout)["message"]["tool_calls"][0].keys() == keys


def test_a_response_that_was_cut_is_an_error_and_has_status_3():
    done = run("convert-response", "--from", "ollama", "--to", "openai-chat", stdin=OLLAMA.replace(b"true", b"false"))
    assert done.returncode == 3
    assert json.loads(done.stdout).keys() == {"error"}
    assert b"withheld (answer_withheld): look" in done.stderr


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"choices": []}', b'{"model": "m"', b"\x1f\x8b"])
@pytest.mark.parametrize("dialect", ["ollama", "anthropic"])
def test_a_body_of_another_kind_has_status_5(body, dialect):
    done = run("convert-response", "--from", dialect, "--to", "openai-chat", stdin=body)
    assert done.returncode == 5
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [("--from", "ollama"), ("--from", "zed", "--to", "ollama"), ("--what",)])
def test_a_mistake_in_the_call_exits_2(arguments):
    assert run("convert-response", *arguments, stdin=OLLAMA).returncode == 2
