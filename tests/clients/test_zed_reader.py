"""What Zed's Ollama reader of late 2025 demands of a line, and that every line we write satisfies it.

It reads a call as an enumeration with one variant, so that an entry of ``tool_calls`` is an object with the single key
``function``. Source: dialects.md (the strict reader), seeds.md S4.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from tests.clients.recipes import converted, recordings
from tests.clients.vectors import LOSSY, WHOLE

GOOD_CALL = {"function": {"name": "add", "arguments": {"x": 1}}}


class Refused(Exception):
    """The reader can't take the line."""


def read_line(line: bytes) -> None:
    """Raises Refused for a line that it can't take."""
    try:
        document = json.loads(line.decode("utf-8"))
    except ValueError as error:
        raise Refused(f"no JSON: {error}") from error
    line_object = member(document, "line", dict)
    for name, kind in (("model", str), ("created_at", str), ("done", bool)):
        member(line_object.get(name), name, kind)
    message = member(line_object.get("message"), "message", dict)
    for name in ("role", "content"):
        member(message.get(name), name, str)
    if message.get("tool_calls") is not None:
        for call in member(message["tool_calls"], "tool_calls", list):
            read_call(call)


def read_call(call: object) -> None:
    entry = member(call, "entry of tool_calls", dict)
    if list(entry) != ["function"]:
        raise Refused(f"invalid value: map {sorted(entry)}, expected map with a single key")
    function = member(entry["function"], "function", dict)
    member(function.get("name"), "name", str)
    member(function.get("arguments"), "arguments", dict)


def member(value: Any, name: str, kind: type) -> Any:
    if type(value) is not kind:
        raise Refused(f"{name} is {value!r:.80}, expected {kind.__name__}")
    return value


def line_with(**changes: Any) -> bytes:
    line = {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "", "tool_calls": [GOOD_CALL]},
        "done": False,
        **changes,
    }
    return json.dumps({name: value for name, value in line.items() if value is not None}).encode()


def with_calls(*calls: Any) -> bytes:
    return line_with(message={"role": "assistant", "content": "", "tool_calls": list(calls)})


REFUSED = {
    "an id beside function": with_calls({"id": "call_1", **GOOD_CALL}),
    "a type beside function": with_calls({"type": "function", **GOOD_CALL}),
    "a call without function": with_calls({}),
    "a call that is text": with_calls("add"),
    "arguments as text": with_calls({"function": {"name": "add", "arguments": '{"x":1}'}}),
    "arguments that are null": with_calls({"function": {"name": "add", "arguments": None}}),
    "a list as arguments": with_calls({"function": {"name": "add", "arguments": [1]}}),
    "a call without a name": with_calls({"function": {"arguments": {}}}),
    "no content": line_with(message={"role": "assistant"}),
    "content that is null": line_with(message={"role": "assistant", "content": None}),
    "no role": line_with(message={"content": ""}),
    "no message": line_with(message=None),
    "no model": line_with(model=None),
    "no created_at": line_with(created_at=None),
    "created_at as a number": line_with(created_at=1),
    "no done": line_with(done=None),
    "done as text": line_with(done="false"),
    "a list": b"[]",
    "half a line": line_with()[:-1],
    "a blank line": b"",
}


@pytest.mark.parametrize("line", [line_with(), line_with(message={"role": "assistant", "content": "é"}, done=True)])
def test_a_plain_line_is_read(line: bytes):
    read_line(line)


@pytest.mark.parametrize("what", REFUSED)
def test_the_reader_is_strict(what: str):
    with pytest.raises(Refused):
        read_line(REFUSED[what])


def refusals(body: bytes) -> list[str]:
    """What the reader says to each line; the output of a clean stream ends each with LF."""
    assert body.endswith(b"\n")
    found = []
    for line in body[:-1].split(b"\n"):
        try:
            read_line(line)
        except Refused as error:
            found.append(f"{error} in {line!r:.200}")
    return found


@pytest.mark.parametrize("source", DIALECTS)
def test_every_recording_is_written_as_lines_the_reader_takes(source: str):
    complaints = [
        f"{recording.name}, {source} to ollama: {refusal}"
        for recording in recordings(source)
        for refusal in refusals(converted(recording.body, source, "ollama").body)
    ]
    assert not complaints, "\n".join(complaints[:30])


@pytest.mark.parametrize("body", [*(vector.body for vector in WHOLE), *LOSSY.values()])
def test_our_vectors_are_written_as_lines_the_reader_takes(body: bytes):
    assert not refusals(converted(body, "openai-chat", "ollama").body)


def test_arguments_are_the_models_own_text():
    """Key order and numbers as written, `""` as an object, text that is no object under one key (seeds.md S4)."""
    interleaved = converted(WHOLE[1].body, "openai-chat", "ollama").body
    assert b'"arguments":{"x":1.0,"y":18446744073709551616}' in interleaved
    assert b'"arguments":{}' in converted(WHOLE[3].body, "openai-chat", "ollama").body
    wrapped = converted(LOSSY["arguments_wrapped"], "openai-chat", "ollama")
    assert b'"arguments":{"_raw_arguments":"{\\"x\\" 1}"}' in wrapped.body
    assert wrapped.report.losses == {"arguments_wrapped": 2, "call_id": 2}
