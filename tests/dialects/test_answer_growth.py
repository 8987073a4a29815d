"""Reading an answer takes work in proportion to its size, and a limit is looked at before the work that it bounds."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit import decode_response, encode_response
from streamkit.errors import TooManyBlocks, TooManyToolCalls
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from tests.framing import binary
from tests.laws.running import read
from tests.working import FACTOR, growth, work

#: Far beyond what an answer may hold, so that the decoders' own work is seen.
WIDE = Limits(tool_calls=100_000, choices=100_000, content_blocks=100_000)
SIZE = 100


def function(number: int) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": {"a": number}}}


def chat(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def cohere(message: dict[str, Any]) -> dict[str, Any]:
    return {"id": "x", "finish_reason": "TOOL_CALL", "message": {"role": "assistant", **message}}


def ollama(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": "m",
        "message": {"role": "assistant", "content": "", **message},
        "done": True,
        "done_reason": "stop",
    }


def responses(calls: list[dict[str, Any]]) -> dict[str, Any]:
    output = [{**call["function"], "type": "function_call", "id": call["id"], "call_id": call["id"]} for call in calls]
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": output}


def listed(calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": calls}


def numbered(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """A list as PHP writes one with gaps."""
    return {"tool_calls": {str(number): call for number, call in enumerate(calls)}}


BODIES = {
    "openai-chat": ("openai-chat", lambda calls: chat(listed(calls))),
    "openai-chat, numbered": ("openai-chat", lambda calls: chat(numbered(calls))),
    "mistral": ("mistral", lambda calls: chat(listed(calls))),
    "cohere": ("cohere", lambda calls: cohere(listed(calls))),
    "cohere, numbered": ("cohere", lambda calls: cohere(numbered(calls))),
    "ollama": ("ollama", lambda calls: ollama(listed(calls))),
    "ollama, numbered": ("ollama", lambda calls: ollama(numbered(calls))),
    "openai-responses": ("openai-responses", responses),
}


@pytest.mark.parametrize("name", BODIES)
def test_arguments_that_are_objects_take_work_in_proportion(name):
    dialect, make = BODIES[name]

    def reading(size):
        body = orjson.dumps(make([function(number) for number in range(size)]))
        return lambda: decode_response(body, dialect, ReadOptions(limits=WIDE))

    assert growth(reading, SIZE) < FACTOR


@pytest.mark.parametrize("name", BODIES)
def test_calls_beyond_the_limit_are_not_read(name):
    dialect, make = BODIES[name]
    limits = Limits(tool_calls=4, content_blocks=8)

    def refused(size):
        body = orjson.dumps(make([function(number) for number in range(size)]))

        def refuse():
            with pytest.raises((TooManyToolCalls, TooManyBlocks)):
                decode_response(body, dialect, ReadOptions(limits=limits))

        return refuse

    def allowed(size):
        body = orjson.dumps(make([function(number) for number in range(size)]))
        return lambda: decode_response(body, dialect, ReadOptions(limits=WIDE))

    refused(20)()
    assert work(refused(SIZE)) < work(allowed(SIZE)) / 10


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
def test_fragments_of_one_call_may_be_many_in_one_frame(dialect):
    text = orjson.dumps({"a": "x" * 1000}).decode()
    fragments = [{"index": 0, "id": "call_0", "function": {"name": "f", "arguments": ""}}]
    fragments += [{"index": 0, "function": {"arguments": letter}} for letter in text]
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first = {**chunk, "choices": [{"index": 0, "delta": {"tool_calls": fragments}, "finish_reason": None}]}
    last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    stream = b"".join(b"data: %b\n\n" % orjson.dumps(one) for one in (first, last)) + b"data: [DONE]\n\n"
    found = read(dialect, [stream], Limits(tool_calls=4))
    assert [call.arguments for call in found.calls] == [text]


def test_items_that_the_client_runs_take_work_in_proportion():
    """Of Responses, in the answer of another dialect."""

    def writing(size):
        action = {"type": "exec", "command": ["ls"], "env": {}}
        items = [
            {
                "type": "local_shell_call",
                "id": f"l{number}",
                "call_id": f"c{number}",
                "status": "completed",
                "action": action,
            }
            for number in range(size)
        ]
        body = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": items}
        response = decode_response(orjson.dumps(body), "openai-responses", ReadOptions(limits=WIDE))
        return lambda: encode_response(response, "openai-chat", limits=WIDE)

    assert growth(writing, SIZE) < FACTOR


def test_terminal_responses_behind_the_end_take_work_in_proportion():
    """Each has its own item, and what came before is not compared with each of them again."""

    def event(kind: str, **members: Any) -> bytes:
        return b"data: %b\n\n" % orjson.dumps({"type": kind, **members})

    def message(number: int) -> dict[str, Any]:
        content = [{"type": "output_text", "text": "Hello", "annotations": []}]
        return {"id": f"m{number}", "type": "message", "role": "assistant", "content": content}

    def reading(size):
        pieces = [event("response.created", response={"id": "r", "status": "in_progress", "output": []})]
        for number in range(size):
            pieces.append(event("response.output_item.done", output_index=number, item=message(number)))
            ended = {"id": "r", "status": "completed", "output": [message(number)]}
            pieces.append(event("response.completed", response=ended))
        return lambda: read("openai-responses", pieces)

    assert growth(reading, SIZE) < FACTOR


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_calls_that_stay_open_are_not_counted_again_at_each_end(dialect):
    """Behind the first end come more, by turns with calls that nothing ends."""

    def anthropic(kind: str, **members: Any) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **members}))

    def call(number: int) -> bytes:
        if dialect == "bedrock":
            start = {"toolUse": {"toolUseId": f"t{number}", "name": "f"}}
            return binary.event("contentBlockStart", orjson.dumps({"contentBlockIndex": number, "start": start}))
        block = {"type": "tool_use", "id": f"t{number}", "name": "f", "input": {}}
        return anthropic("content_block_start", index=number, content_block=block)

    def end() -> bytes:
        if dialect == "bedrock":
            return binary.event("messageStop", orjson.dumps({"stopReason": "tool_use"}))
        return anthropic("message_stop")

    def reading(size):
        pieces = [piece for number in range(size) for piece in (call(number), end())]
        return lambda: read(dialect, pieces)

    assert growth(reading, SIZE) < FACTOR
