"""What a client of Cohere, of Mistral, of Gemini Interactions or of AG-UI sees in a translation; see ``outputs.py``."""

from __future__ import annotations

import json
from typing import Any

from tests.vectors.field.case import Block, Said, Text, Thinking, Use
from tests.vectors.field.seen import Seen, flat

#: Of each block, the event that adds to it and the one that ends it.
COHERE = {"content-start": ("content-delta", "content-end"), "tool-call-start": ("tool-call-delta", "tool-call-end")}


def see_cohere(body: bytes) -> Seen:
    seen, counts, started, ended = Seen(), dict.fromkeys(COHERE, 0), False, False
    block: tuple[str, int] | None = None  # the start of what is open, and its index
    plan = ""
    frames = body.decode().split("\n\n")
    assert frames.pop() == ""
    for frame in frames:
        head, _, data = frame.partition("\n")
        payload = json.loads(data.removeprefix("data: "))
        kind, index = payload["type"], payload.get("index")
        assert head == f"event: {kind}"
        assert not ended
        message = payload.get("delta", {}).get("message", {})
        if kind == "message-start":
            assert not started
            started = True
        elif kind in COHERE:
            assert block is None
            assert index == counts[kind]
            block, counts[kind] = (kind, index), index + 1
            seen.said.append(started_with(kind, message))
        elif kind == "tool-plan-delta":
            assert block is None
            plan += message["tool_plan"]
        elif kind == "message-end":
            ended = True
            see_end(seen, payload["delta"])
            assert seen.error is not None or (started and block is None)
        else:
            assert block is not None
            assert (kind in COHERE[block[0]], index) == (True, block[1])
            if kind == COHERE[block[0]][0]:
                seen.said[-1] = grown(seen.said[-1], message)
            else:
                block = None
    assert ended
    seen.said = [*([Thinking(plan)] if plan else []), *seen.said]
    return seen


def see_end(seen: Seen, delta: dict[str, Any]) -> None:
    seen.usage = delta.get("usage")
    if delta["finish_reason"] in {"ERROR", "TIMEOUT"}:
        seen.error = delta["error"]
    else:
        seen.stop = delta["finish_reason"]


def started_with(kind: str, message: dict[str, Any]) -> Said:
    if kind == "tool-call-start":
        call = message["tool_calls"]
        assert call["type"] == "function"
        return Use(call["id"], call["function"]["name"], call["function"]["arguments"])
    content = message["content"]
    return Text(content["text"]) if content["type"] == "text" else Thinking(content["thinking"])


def grown(block: Said, message: dict[str, Any]) -> Said:
    if isinstance(block, Use):
        return Use(block.id, block.name, block.arguments + message["tool_calls"]["function"]["arguments"])
    if isinstance(block, Text):
        return Text(block.text + message["content"]["text"])
    assert isinstance(block, Thinking)
    return Thinking(block.text + message["content"]["thinking"])


def see_mistral(body: bytes) -> Seen:
    seen, text, thinking, signature = Seen(), "", "", ""
    calls: list[Use] = []
    frames = body.decode().split("\n\n")
    assert frames.pop() == ""
    done = frames[-1] == "data: [DONE]"
    for frame in frames[: -1 if done else None]:
        payload = json.loads(frame.removeprefix("data: "))
        assert seen.error is None
        if payload["object"] == "error":
            seen.error = payload["message"]
            continue
        seen.usage = payload.get("usage", seen.usage)
        for choice in payload["choices"]:
            assert (choice["index"], seen.stop) == (0, None)
            content = choice["delta"].get("content") or ""
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for part in parts:
                text += part["text"] if part["type"] == "text" else ""
                thinking += "".join(thought["text"] for thought in part.get("thinking", ()))
                signature += part.get("signature", "")
            for call in choice["delta"].get("tool_calls", ()):
                assert (call["index"], call["type"]) == (len(calls), "function")
                calls.append(Use(call["id"], call["function"]["name"], call["function"]["arguments"]))
            seen.stop = choice["finish_reason"]
    assert done == (seen.stop is not None) == (seen.error is None)
    seen.said = [*flat(thinking, text, signature), *calls]
    return seen


def see_ag_ui(body: bytes) -> Seen:
    """Messages and calls in the order in which they began."""
    seen, answered, open_ids = Seen(), set(), set()
    said: dict[str, Said] = {}
    frames = body.decode().split("\n\n")
    assert frames.pop() == ""
    for number, frame in enumerate(frames):
        event = json.loads(frame.removeprefix("data: "))
        kind, name = event["type"], event.get("messageId", event.get("toolCallId", ""))
        assert (seen.stop, seen.error) == (None, None)
        assert (kind == "RUN_STARTED") == (number == 0) or kind == "RUN_ERROR"
        match kind:
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                said.setdefault(name, Text("") if kind.startswith("TEXT") else Thinking(""))
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" | "TOOL_CALL_ARGS":
                assert event["delta"]
                said[name] = more(said[name], event["delta"])
            case "TOOL_CALL_START":
                said[name] = Use(name, event["toolCallName"], "")
            case "TOOL_CALL_RESULT":
                answered.add(event["toolCallId"])
            case "RUN_FINISHED":
                assert not open_ids
                seen.stop, seen.usage = event["metadata"]["finishReason"], event.get("usage", [None])[0]
            case "RUN_ERROR":
                seen.error = event["message"]
                assert answered == {use.id for use in said.values() if isinstance(use, Use)}
        if kind.endswith("_START"):
            open_ids.add((kind.removesuffix("_START"), name))
        elif kind.endswith("_END"):
            open_ids.remove((kind.removesuffix("_END"), name))
    assert seen.stop or seen.error
    seen.said = [*said.values()]
    return seen


def see_ai_sdk(body: bytes) -> Seen:
    """Parts in the order of their starts; what makes a call available stands at the clean end, and nowhere else."""
    seen, open_parts, ended = Seen(), set(), set()
    said: dict[str, Said] = {}
    frames = body.decode().split("\n\n")
    assert frames.pop() == ""
    done = frames[-1] == "data: [DONE]"
    for frame in frames[: -1 if done else None]:
        chunk = json.loads(frame.removeprefix("data: "))
        kind = chunk["type"]
        name = chunk.get("id", chunk.get("toolCallId", ""))
        assert (seen.stop, seen.error) == (None, None)
        match kind:
            case "text-start" | "reasoning-start":
                assert name not in said
                said[name] = Text("") if kind == "text-start" else Thinking("")
                open_parts.add(name)
            case "text-delta" | "reasoning-delta":
                assert name in open_parts
                said[name] = more(said[name], chunk["delta"])
            case "text-end" | "reasoning-end":
                open_parts.remove(name)
            case "tool-input-start":
                said[name] = Use(name, chunk["toolName"], "")
            case "tool-input-delta":
                assert chunk["inputTextDelta"]
                said[name] = more(said[name], chunk["inputTextDelta"])
            case "tool-input-available" | "tool-input-error":
                ended.add(name)
            case "error":
                assert not ended
                seen.error = chunk["errorText"]
            case "finish":
                assert not open_parts
                seen.stop = chunk["finishReason"]
                seen.usage = chunk.get("messageMetadata", {}).get("usage")
    assert done == (seen.stop is not None) == (seen.error is None)
    seen.said = [*said.values()]
    return seen


def see_interactions(body: bytes) -> Seen:
    """Steps in the order in which they came, one at a time."""
    seen, step, said = Seen(), None, None
    frames = body.decode().split("\n\n")
    assert frames.pop() == ""
    for number, frame in enumerate(frames):
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        kind = event["event_type"]
        assert name == f"event: {kind}"
        assert (seen.stop, seen.error) == (None, None)
        assert (kind == "interaction.created") == (number == 0) or kind == "error"
        match kind:
            case "step.start":
                assert step is None
                step, said = event["step"], begun(event["step"])
            case "step.delta":
                assert step is not None
                said = longer(said, event["delta"])
            case "step.stop":
                seen.said.append(said or Block(step["type"]))
                step = said = None
            case "interaction.completed":
                assert step is None
                seen.stop, seen.usage = event["interaction"]["status"], event["interaction"].get("usage")
            case "error":
                seen.error = event["error"]["message"]
    if step is not None:
        assert seen.error is not None
        seen.said.append(said or Block(step["type"]))
    assert seen.stop or seen.error
    return seen


def begun(step: dict[str, Any]) -> Said:
    match step["type"]:
        case "model_output":
            return Text("")
        case "thought":
            return Thinking("", step.get("signature", ""))
        case "function_call":
            assert step["arguments"] == {}
            return Use(step["id"], step["name"], "")
    return Block(step["type"])


def longer(said: Said | None, delta: dict[str, Any]) -> Said:
    match delta["type"]:
        case "text":
            assert delta["text"]
            return more(said, delta["text"])
        case "thought_summary":
            return more(said, delta["content"]["text"])
        case "thought_signature":
            assert isinstance(said, Thinking)
            return Thinking(said.text, delta["signature"])
        case "arguments_delta":
            return more(said, delta["arguments"])
    return Block(delta["type"])


def more(said: Said | None, delta: str) -> Said:
    if isinstance(said, Use):
        return Use(said.id, said.name, said.arguments + delta)
    assert isinstance(said, Text | Thinking)
    return Text(said.text + delta) if isinstance(said, Text) else Thinking(said.text + delta)
