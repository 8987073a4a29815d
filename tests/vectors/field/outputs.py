"""What a client sees in a translation: readers that share no code with the package, and take nothing but the grammar."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from tests.vectors.field.case import Block, Said, Text, Thinking, Use

DELTAS = {
    "text": {"text_delta": "text"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
}


@define
class Seen:
    said: list[Said] = field(factory=list)
    stop: str | None = None
    error: str | None = None
    usage: Mapping[str, object] | None = None


def see_anthropic(body: bytes) -> Seen:
    seen, count, finished = Seen(), 0, False
    block: dict[str, Any] | None = None
    events = body.decode().split("\n\n")
    assert events.pop() == ""
    for number, text in enumerate(events):
        head, _, data = text.partition("\n")
        payload = json.loads(data.removeprefix("data: "))
        assert (head, data[:6]) == (f"event: {payload['type']}", "data: ")
        assert not finished
        assert seen.error is None
        kind = payload["type"]
        assert (kind == "message_start") == (number == 0 and kind != "error")
        if kind == "content_block_start":
            assert block is None
            assert payload["index"] == count
            start = payload["content_block"]
            block = {**start, "delta": ""} if start["type"] in DELTAS else {"type": start["type"]}
        elif kind == "content_block_delta":
            assert block is not None
            assert payload["index"] == count
            if block["type"] in DELTAS:
                name = DELTAS[block["type"]][payload["delta"]["type"]]
                into = "delta" if block["type"] == "tool_use" else name
                block[into] += payload["delta"][name]
        elif kind == "content_block_stop":
            assert block is not None
            seen.said.append(block_said(block))
            block, count = None, count + 1
        elif kind == "message_delta":
            assert block is None
            seen.stop, seen.usage = payload["delta"]["stop_reason"], payload["usage"]
        elif kind == "error":
            seen.error = payload["error"]["message"]
        else:
            assert kind in {"message_start", "message_stop"}
            finished = kind == "message_stop"
    if block is not None:
        assert seen.error is not None
        seen.said.append(block_said(block))
    assert finished == (seen.stop is not None) == (seen.error is None)
    return seen


def block_said(block: dict[str, Any]) -> Said:
    if block["type"] == "text":
        assert block["text"]
        return Text(block["text"])
    if block["type"] == "thinking":
        return Thinking(block["thinking"], block["signature"])
    if block["type"] == "tool_use":
        assert block["input"] == {}
        return Use(block["id"], block["name"], block["delta"])
    return Block(block["type"])


def see_chat(body: bytes) -> Seen:
    seen, calls, signature = Seen(), {}, ""
    texts = {"reasoning_content": "", "content": "", "refusal": ""}
    frames = body.decode().split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") for frame in frames)
    done = frames[-1] == "data: [DONE]"
    for frame in frames[: -1 if done else None]:
        payload = json.loads(frame[6:])
        assert seen.error is None
        if "error" in payload:
            seen.error = payload["error"]["message"]
            continue
        assert payload["object"] == "chat.completion.chunk"
        seen.usage = payload.get("usage", seen.usage)
        for choice in payload["choices"]:
            assert choice["index"] == 0
            delta = choice["delta"]
            for name in texts:
                texts[name] += delta.get(name) or ""
            for detail in delta.get("reasoning_details", ()):
                signature += detail.get("signature", "")
            for call in delta.get("tool_calls", ()):
                function = call["function"]
                if call["index"] == len(calls):
                    assert call["type"] == "function"
                    calls[call["index"]] = Use(call["id"], function["name"], function["arguments"])
                else:  # a continuation: nothing but text
                    assert call.keys() == {"index", "function"}
                    assert function.keys() == {"arguments"}
                    old = calls[call["index"]]
                    calls[call["index"]] = Use(old.id, old.name, old.arguments + function["arguments"])
            if choice.get("finish_reason"):
                assert seen.stop is None
                seen.stop = choice["finish_reason"]
    assert done == (seen.stop is not None) == (seen.error is None)
    seen.said = [*flat(texts["reasoning_content"], texts["content"] + texts["refusal"], signature), *calls.values()]
    return seen


def see_ollama(body: bytes) -> Seen:
    seen, calls, thinking, content = Seen(), [], "", ""
    lines = body.decode().split("\n")
    assert lines.pop() == ""
    for line in lines:
        payload = json.loads(line)
        assert seen.stop is None
        assert seen.error is None
        if "error" in payload:
            seen.error = payload["error"]
            continue
        assert payload.keys() >= {"model", "created_at", "message", "done"}
        said = payload["message"]
        assert said["role"] == "assistant"
        content, thinking = content + said["content"], thinking + said.get("thinking", "")
        for call in said.get("tool_calls", ()):
            assert call.keys() == {"function"}
            assert type(call["function"]["arguments"]) is dict
            start = line.index('"arguments":') + len('"arguments":')  # one call a line; its text as written
            end = json.JSONDecoder().raw_decode(line, start)[1]
            calls.append(Use(None, call["function"]["name"], line[start:end]))
        if payload["done"]:
            seen.stop = payload["done_reason"]
            seen.usage = {name: count for name, count in payload.items() if name.endswith("_count")}
    assert (seen.stop is None) == (seen.error is not None)
    seen.said = [*flat(thinking, content), *calls]
    return seen


def flat(thinking: str, text: str, signature: str = "") -> list[Said]:
    return [*([Thinking(thinking, signature)] if thinking else []), *([Text(text)] if text else [])]


SEE: Mapping[str, Callable[[bytes], Seen]] = {
    "anthropic": see_anthropic,
    "openai-chat": see_chat,
    "ollama": see_ollama,
}
