"""S4: Zed's reader of Ollama's dialect refused every call with "invalid value: map, expected map with a single key".

Source: seeds.md S4.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import ollama
import pytest

from streamkit import Status, StreamReport, transcode
from streamkit.dialects.ollama.wire import OllamaClient
from streamkit.testing import cuts, source_of
from tests.cli.command import run

#: Argument text as the model wrote it, the text of the object that must stand in the line, and the loss.
ARGUMENTS = {
    "an object": ('{"city":"Oslo"}', '{"city":"Oslo"}', None),
    "nothing": ("", "{}", None),
    "white space": (" \n", "{}", None),
    "numbers and key order": ('{"z":1.0,"a":1e21,"m":18446744073709551616,"b":0.10}',) * 2 + (None,),
    "digits that no double holds": ('{"id":1234567890123456789,"x":1E400}',) * 2 + (None,),
    "the same key twice": ('{"a":1,"a":2}', '{"a":1,"a":2}', None),
    "pretty-printed": ('{\r\n  "a": 1\n}', '{    "a": 1 }', None),
    "escapes": (r'{"a":"\u00e9\n\"\\","b":"é"}',) * 2 + (None,),
    "a list": ("[1,2]", r'{"_raw_arguments":"[1,2]"}', "arguments_wrapped"),
    "a text": (r'"{\"a\":1}"', r'{"_raw_arguments":"\"{\\\"a\\\":1}\""}', "arguments_wrapped"),
    "null": ("null", '{"_raw_arguments":"null"}', "arguments_wrapped"),
    "no JSON": ("{'city': 'Oslo'}", """{"_raw_arguments":"{'city': 'Oslo'}"}""", "arguments_wrapped"),
    "two objects": ('{"a":1}{"b":2}', r'{"_raw_arguments":"{\"a\":1}{\"b\":2}"}', "arguments_wrapped"),
    "an object with that very key": ('{"_raw_arguments":"x"}', '{"_raw_arguments":"x"}', None),
}


class Refused(Exception):
    """The reader can't take the line."""


def read_line(line: bytes) -> dict[str, Any]:
    """The message of a line, by the scenario's reader. Raises Refused.

    ``model``, ``created_at`` and ``done`` on every line, ``content`` a string, a call an object with the one key ``function``
    and its arguments an object.
    """
    document = json.loads(line)
    message = document.get("message")
    kinds = [type(document.get(name)) for name in ("model", "created_at", "done")]
    if kinds != [str, str, bool] or type(message) is not dict:
        raise Refused(f"a member is missing or of another kind: {line!r}")
    if [type(message.get(name)) for name in ("role", "content")] != [str, str]:
        raise Refused(f"role and content must be strings: {message}")
    for call in message.get("tool_calls", ()):
        if list(call) != ["function"]:
            raise Refused("invalid value: map, expected map with a single key")
        if [type(call["function"].get(name)) for name in ("name", "arguments")] != [str, dict]:
            raise Refused(f"a name and an object are expected: {call}")
    return message


def frame(payload: dict[str, Any], *, named: bool = False) -> str:
    return (f"event: {payload['type']}\n" if named else "") + f"data: {json.dumps(payload)}\n\n"


def halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def chat(*texts: str, finish: str = "tool_calls") -> bytes:
    """Calls named f0, f1 … in OpenAI's dialect, after a word of text."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
        return frame({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    parts = [chunk({"role": "assistant", "content": "Looking."})]
    for index, text in enumerate(texts):
        start = {"index": index, "id": f"id{index}", "type": "function"}
        parts.append(chunk({"tool_calls": [{**start, "function": {"name": f"f{index}", "arguments": ""}}]}))
        parts += [chunk({"tool_calls": [{"index": index, "function": {"arguments": half}}]}) for half in halves(text)]
    return "".join([*parts, chunk({}, finish), "data: [DONE]\n\n"]).encode()


def messages(*texts: str, finish: str = "tool_use") -> bytes:
    """The same in Anthropic's dialect."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Looking."}},
        {"type": "content_block_stop", "index": 0},
    ]
    for index, text in enumerate(texts, 1):
        block = {"type": "tool_use", "id": f"id{index - 1}", "name": f"f{index - 1}", "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for half in halves(text):
            delta = {"type": "input_json_delta", "partial_json": half}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": finish, "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    return "".join(frame(event, named=True) for event in events).encode()


SOURCES = {"openai-chat": chat, "anthropic": messages}


async def to_ollama(dialect: str, reads: list[bytes], **options: Any) -> tuple[list[bytes], StreamReport]:
    report = StreamReport()
    async with transcode(source_of(reads), dialect, "ollama", report=report, **options) as stream:
        output = b"".join([piece async for piece in stream])
    assert output.endswith(b"\n")
    return output.splitlines(), report


@pytest.mark.parametrize("dialect", SOURCES)
@pytest.mark.parametrize("what", ARGUMENTS)
async def test_arguments_are_an_object_with_the_models_own_text(dialect, what):
    text, expected, loss = ARGUMENTS[what]
    for reads in cuts(SOURCES[dialect](text), sample=5):
        lines, report = await to_ollama(dialect, reads)
        assert [read_line(line)["content"] for line in lines] == ["Looking.", "", ""]
        entry = '"tool_calls":[{"function":{"name":"f0","arguments":' + expected + "}}]"
        assert [entry in line.decode() for line in lines] == [False, True, False]
        assert [json.loads(line)["done"] for line in lines] == [False, False, True]
        assert dict(report.losses) == {"call_id": 1, **({loss: 1} if loss else {})}


@pytest.mark.parametrize("dialect", SOURCES)
async def test_every_line_satisfies_the_strict_reader_with_many_calls(dialect):
    texts = [text for text, _, _ in ARGUMENTS.values()]
    lines, report = await to_ollama(dialect, [SOURCES[dialect](*texts)])
    calls = [call for line in lines for call in read_line(line).get("tool_calls", ())]
    assert [call["function"]["name"] for call in calls] == [f"f{index}" for index in range(len(texts))]
    assert report.losses["arguments_wrapped"] == sum(loss is not None for _, _, loss in ARGUMENTS.values())


async def test_ids_beside_function_are_written_only_when_asked():
    lines, _ = await to_ollama("openai-chat", [chat("{}")], profile=OllamaClient(call_ids=True))
    (with_id,) = (line for line in lines if b"tool_calls" in line)
    assert json.loads(with_id)["message"]["tool_calls"][0]["id"] == "id0"
    with pytest.raises(Refused, match="single key"):
        read_line(with_id)


async def test_ollamas_own_lines_are_made_fit_when_reencoded():
    line = (
        b'{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":'
        b'[{"id":"call_1","function":{"index":0,"name":"f","arguments":{"z":1.0,"a":2}}}]},"done":true,"done_reason":"stop"}\n'
    )
    with pytest.raises(Refused):
        read_line(line)
    lines, _ = await to_ollama("ollama", [line], reencode=True)
    assert [read_line(each).get("tool_calls") for each in lines] == [
        [{"function": {"name": "f", "arguments": {"z": 1.0, "a": 2}}}],
        None,
    ]
    assert b'"arguments":{"z":1.0,"a":2}' in lines[0]


@pytest.mark.parametrize(("dialect", "finish"), [("openai-chat", "length"), ("anthropic", "max_tokens")])
async def test_a_truncated_call_is_withheld_and_the_good_one_is_not(dialect, finish):
    """Wrapped or mended it would be executed (design.md §4)."""
    lines, report = await to_ollama(dialect, [SOURCES[dialect]('{"a":1}', '{"b":', finish=finish)])
    calls = [call for line in lines for call in read_line(line).get("tool_calls", ())]
    assert calls == [{"function": {"name": "f0", "arguments": {"a": 1}}}]
    assert [(held.name, held.arguments) for held in report.withheld] == [("f1", '{"b":')]
    assert dict(report.losses) == {"call_id": 1, "call_withheld": 1}
    assert json.loads(lines[-1])["done_reason"] == "length"


@pytest.mark.parametrize("dialect", SOURCES)
async def test_ollamas_own_client_reads_the_same(dialect):
    texts = [text for text, _, _ in ARGUMENTS.values()]
    lines, _ = await to_ollama(dialect, [SOURCES[dialect](*texts)])
    body = b"".join(line + b"\n" for line in lines)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    with ollama.Client("http://upstream", transport=transport) as client:
        answers = list(client.chat("m", [], stream=True))
    found = [dict(call.function.arguments) for answer in answers for call in answer.message.tool_calls or ()]
    assert found == [json.loads(expected) for _, expected, _ in ARGUMENTS.values()]


def test_the_command_line_writes_the_same_and_tells_of_the_loss():
    converted = run("convert", "--from", "openai-chat", "--to", "ollama", stdin=chat("", "[1]"))
    assert converted.returncode == Status.DONE
    calls = [call for line in converted.stdout.splitlines() for call in read_line(line).get("tool_calls", ())]
    assert [call["function"]["arguments"] for call in calls] == [{}, {"_raw_arguments": "[1]"}]
    assert b"arguments_wrapped" in converted.stderr
