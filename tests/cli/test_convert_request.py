"""``streamkit convert-request`` as a user runs it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.conversation.messages import Options, Request, Text, Tool, ToolCall, ToolChoice, ToolResult, Turn
from streamkit.dialects import DIALECTS
from streamkit.translation.bodies import decode_request, encode_request
from tests.cli.command import run

BODIES = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None]
ARGUMENTS = '{"q": 1.0, "n": 18446744073709551616}'
SCHEMA = {"type": "object", "properties": {"q": {"type": "number"}}, "required": ["q"]}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": ARGUMENTS}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "description": "looks", "parameters": SCHEMA}}],
    "max_completion_tokens": 9,
}  # fmt: skip
TO_OLLAMA = ("convert-request", "--from", "openai-chat", "--to", "ollama")


def conversation() -> Request:
    turns = [
        Turn("system", [Text("rules")]),
        Turn("user", [Text("Hi")]),
        Turn("assistant", [Text("so"), ToolCall(0, "call_abc1", "look", '{"q": 1.5}')]),
        Turn("user", [ToolResult("call_abc1", [Text("a cat")], "look")]),
    ]
    return Request("", "m", turns, [Tool("look", "looks", SCHEMA)], options=Options(max_tokens=90))


def facts(body: bytes, dialect: str) -> list[Any]:
    request = decode_request(body, dialect)
    parts = [part for turn in request.turns for part in turn.parts]
    calls = [(part.name, json.loads(part.arguments)) for part in parts if isinstance(part, ToolCall)]
    results = [part.text for part in parts if isinstance(part, ToolResult)]
    texts = [part.text for part in parts if isinstance(part, Text)]
    most = 90 if dialect in {"ag-ui", "ai-sdk"} else request.options.max_tokens  # which the server chooses itself
    return [texts, calls, results, [tool.name for tool in request.tools], most]


SAID = [["rules", "Hi", "so"], [("look", {"q": 1.5})], ["a cat"], ["look"], 90]


def chat(**changes: Any) -> bytes:
    return json.dumps(CHAT | changes).encode()


@pytest.mark.parametrize(
    ("source", "target"), [*((name, "openai-chat") for name in BODIES), *(("openai-chat", name) for name in BODIES)]
)
def test_a_request_says_the_same_in_another_dialect(source, target):
    said = [*SAID[:-1], None if source in {"ag-ui", "ai-sdk"} else SAID[-1]]
    done = run("convert-request", "--from", source, "--to", target, stdin=encode_request(conversation(), source))
    assert done.returncode == 0, done.stderr
    assert facts(done.stdout, target) == said
    assert done.stderr.startswith(b"streamkit: (standard input): %b -> %b: " % (source.encode(), target.encode()))


def test_a_file_gives_the_same_as_standard_input(tmp_path):
    (tmp_path / "request.json").write_bytes(chat())
    done = run(*TO_OLLAMA, str(tmp_path / "request.json"))
    assert done.stdout == run(*TO_OLLAMA, stdin=chat()).stdout
    assert b"request.json: openai-chat -> ollama: 3 turns, 1 tool\n" in done.stderr


def test_numbers_keep_their_digits_on_one_line_and_on_several():
    plain, pretty = run(*TO_OLLAMA, stdin=chat()), run(*TO_OLLAMA, "--indent", stdin=chat())
    assert plain.stdout.count(b"\n") == 1
    assert ARGUMENTS.encode() in plain.stdout
    assert b'  "n": 18446744073709551616\n' in pretty.stdout
    assert json.loads(pretty.stdout) == json.loads(plain.stdout)
    assert pretty.stdout.decode() == json.dumps(json.loads(plain.stdout), indent=2, ensure_ascii=False) + "\n"


def test_what_is_lost_is_told_with_its_name():
    done = run(*TO_OLLAMA, stdin=chat(logit_bias={"1": 2}, user="u"))
    told = done.stderr.decode().splitlines()
    assert len(told) == 2
    assert told[1].startswith("streamkit:   loss parameter (2): ")
    assert told[1].endswith(": user, logit_bias")
    assert run(*TO_OLLAMA, "-q", stdin=chat(user="u")).stderr == b""


def test_control_characters_do_not_reach_the_terminal():
    done = run(*TO_OLLAMA, stdin=chat(**{"\x1b[2J": 1}))
    assert b"\x1b" not in done.stderr
    assert b"\\x1b[2J" in done.stderr


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (chat(messages=[{"role": "nobody"}]), b"messages[0].role: "),
        (chat(messages=CHAT["messages"][:1] + CHAT["messages"][2:]), b"messages[1]: "),
        (chat(tool_choice="required"), b"tool_choice: "),
        (b'{"model": "m", "messages": [], "tools": ' + b"[" * 300 + b"]" * 300 + b"}", b"tools: nested deeper"),
    ],
)
def test_a_request_that_cannot_be_is_one_line_with_the_path_and_status_1(body, path):
    done = run(*TO_OLLAMA, stdin=body)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"streamkit: (standard input): " + path)


def test_a_byte_order_mark_is_skipped():
    marked, plain = (run(*TO_OLLAMA, stdin=mark + chat()) for mark in (b"\xef\xbb\xbf", b""))
    assert (marked.returncode, marked.stdout) == (0, plain.stdout)


@pytest.mark.parametrize("body", [b"<html>", b'{"model"', b"[]", b"\x1f\x8b"])
def test_what_is_no_json_object_has_status_5(body):
    done = run(*TO_OLLAMA, stdin=body)
    assert done.returncode == 5
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1


def test_repair_mends_the_history():
    body = chat(messages=CHAT["messages"][:2] + [{"role": "user", "content": "well?"}])
    assert run(*TO_OLLAMA, stdin=body).returncode == 1
    done = run(*TO_OLLAMA, "--repair", stdin=body)
    assert done.returncode == 0
    assert json.loads(done.stdout)["messages"][2]["role"] == "tool"
    assert b"repair result_missing (1)" in done.stderr


def test_emulate_imitates_what_the_dialect_lacks():
    done = run(*TO_OLLAMA, "--emulate", stdin=chat(tool_choice="required"))
    assert done.returncode == 0
    assert b"loss tool_choice (1)" in done.stderr


def test_a_bound_is_written_where_one_is_needed():
    body = chat(max_completion_tokens=None)
    command = ("convert-request", "-q", "--from", "openai-chat", "--to", "anthropic")
    assert json.loads(run(*command, stdin=body).stdout)["max_tokens"] == 4096
    assert json.loads(run(*command, "--max-tokens", "77", stdin=body).stdout)["max_tokens"] == 77
    assert json.loads(run(*command, stdin=chat()).stdout)["max_tokens"] == 9


def test_the_model_may_be_named():
    assert json.loads(run(*TO_OLLAMA, "--model", "qwen3:8b", stdin=chat()).stdout)["model"] == "qwen3:8b"


def test_clients_and_providers_may_be_named():
    done = run("convert-request", "--from", "openai-python", "--to", "deepseek", stdin=chat())
    assert done.returncode == 0
    assert json.loads(done.stdout)["max_tokens"] == 9


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from", "openai-chat"),
        ("--from", "nobody", "--to", "ollama"),
        ("--from", "deepseek", "--to", "ollama"),
        ("--from", "openai-chat", "--to", "ollama", "--max-tokens", "0"),
        ("--from", "openai-chat", "--to", "ollama", "--max-tokens", "many"),
    ],
)
def test_a_mistake_in_the_call_exits_2(arguments):
    assert run("convert-request", *arguments, stdin=chat()).returncode == 2


def test_a_missing_file_is_named():
    done = run(*TO_OLLAMA, "/no/such/file")
    assert done.returncode == 1
    assert b"/no/such/file" in done.stderr


def test_a_choice_of_one_tool_goes_where_the_dialect_has_it():
    request = conversation()
    request.tool_choice = ToolChoice("required", ("look",))
    done = run(
        "convert-request", "--from", "openai-chat", "--to", "anthropic", stdin=encode_request(request, "openai-chat")
    )
    assert json.loads(done.stdout)["tool_choice"] == {"type": "tool", "name": "look"}
