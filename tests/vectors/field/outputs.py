"""What a client sees in a translation: readers that share no code with the package, and take nothing but the grammar."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.framing.binary import message_payloads
from tests.vectors.field.case import Block, Said, Text, Thinking, Use
from tests.vectors.field.see_others import see_ag_ui, see_ai_sdk, see_cohere, see_interactions, see_mistral
from tests.vectors.field.seen import Seen, flat

DELTAS = {
    "text": {"text_delta": "text"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
}


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
            if block["type"] in DELTAS and payload["delta"]["type"] != "citations_delta":
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


def see_gemini(body: bytes) -> Seen:
    """Unsigned parts of a kind that stand together are one; a signature on an empty part is a block that only its vendor reads."""
    seen = Seen()
    frames = body.decode().split("\r\n\r\n")
    assert frames.pop() == ""
    opened: type | None = None
    for frame in frames:
        assert frame.startswith("data: ")
        payload = json.loads(frame[6:])
        assert seen.stop is None
        assert seen.error is None
        if "error" in payload:
            assert next(iter(payload)) == "error"
            seen.error = payload["error"]["message"]
            continue
        seen.usage = payload.get("usageMetadata", seen.usage)
        for candidate in payload.get("candidates", ()):
            assert candidate["index"] == 0
            assert candidate["content"]["role"] == "model"
            for part in candidate["content"]["parts"]:
                opened = see_part(seen, part, frame, opened)
            seen.stop = candidate.get("finishReason")
    assert (seen.stop is None) == (seen.error is not None)
    return seen


def see_part(seen: Seen, part: dict[str, Any], frame: str, opened: type | None) -> type | None:
    """Add a part; the kind of block that the next unsigned part may go on with."""
    signature = part.get("thoughtSignature", "")
    if "functionCall" in part:
        call = part["functionCall"]
        assert type(call["args"]) is dict
        start = frame.index('"args":') + len('"args":')  # one call a frame; its text as written
        end = json.JSONDecoder().raw_decode(frame, start)[1]
        seen.said.append(Use(call["id"], call["name"], frame[start:end]))
    elif not part["text"]:
        if signature:
            seen.said.append(Block("thoughtSignature"))
        return None if signature else opened
    else:
        kind = Thinking if part.get("thought") else Text
        text = part["text"]
        if opened is kind and not signature:
            last = seen.said.pop()
            assert isinstance(last, Thinking | Text)
            text = last.text + text
        seen.said.append(Thinking(text, signature) if kind is Thinking else Text(text))
        return None if signature else kind
    return None


def see_bedrock(body: bytes) -> Seen:
    seen, block, count, finished = Seen(), None, 0, False
    for number, (_, text) in enumerate(message_payloads(body)):
        ((kind, payload),) = json.loads(text).items()
        assert seen.error is None
        assert finished is False or kind == "metadata"
        assert (kind == "messageStart") == (number == 0 and ":" not in kind)
        if kind == "contentBlockStart":
            assert block is None
            assert payload["contentBlockIndex"] == count
            use = payload["start"]["toolUse"]
            block = Use(use["toolUseId"], use["name"], "")
        elif kind == "contentBlockDelta":
            assert payload["contentBlockIndex"] == count
            block = with_delta(block, payload["delta"])
        elif kind == "contentBlockStop":
            assert block is not None
            assert payload["contentBlockIndex"] == count
            seen.said.append(block)
            block, count = None, count + 1
        elif kind == "messageStop":
            assert block is None
            seen.stop, finished = payload["stopReason"], True
        elif kind == "metadata":
            seen.usage = payload["usage"]
        elif kind.startswith("exception:"):
            seen.error = payload["message"]
    if block is not None:
        assert seen.error is not None
        seen.said.append(block)
    assert (seen.stop is None) == (seen.error is not None)
    return seen


def with_delta(block: Said | None, delta: dict[str, Any]) -> Said:
    """A block that has grown; one of text or of reasoning begins with its first delta."""
    ((member, value),) = delta.items()
    if member == "text":
        block = block or Text("")
        assert isinstance(block, Text)
        return Text(block.text + value)
    if member == "toolUse":
        assert isinstance(block, Use)
        return Use(block.id, block.name, block.arguments + value["input"])
    block = block or Thinking("")
    assert member == "reasoningContent"
    assert isinstance(block, Thinking)
    return Thinking(block.text + value.get("text", ""), block.signature + value.get("signature", ""))


#: For each event with a fragment: the type of the item it belongs to.
FRAGMENTS = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
}


def see_responses(body: bytes) -> Seen:
    """Reads as strict programs do: an item at a time, from its start to its end; a failure by ``response.failed`` alone."""
    seen, done, text = Seen(), [], ""
    item: dict[str, Any] | None = None
    last: dict[str, Any] = {}
    events = body.decode().split("\n\n")
    assert events.pop() == ""
    for number, event in enumerate(events):
        head, _, data = event.partition("\n")
        payload = json.loads(data.removeprefix("data: "))
        kind = payload["type"]
        assert (head, data[:6], payload["sequence_number"]) == (f"event: {kind}", "data: ", number)
        assert not last
        assert (kind == "response.created") == (number == 0 and kind != "error")
        assert kind == "error" or "error" not in payload
        if kind == "response.output_item.added":
            assert item is None
            assert payload["output_index"] == len(done)
            item, text = payload["item"], ""
            assert item.get("status", "in_progress") == "in_progress"  # a compaction has none
        elif kind == "response.output_item.done":
            assert item is not None
            assert {**item, **payload["item"]} == payload["item"]
            done.append(payload["item"])
            seen.said += item_said(payload["item"], text)
            item = None
        elif kind in FRAGMENTS:
            assert item is not None
            assert (payload["item_id"], payload["output_index"]) == (item["id"], len(done))
            assert item["type"] == FRAGMENTS[kind]
            text += payload["delta"]
        elif kind in {"response.completed", "response.incomplete", "response.failed"}:
            last = payload["response"]
            assert kind == f"response.{last['status']}"
    assert last
    if last["status"] == "failed":
        seen.error = last["error"]["message"]
        if item is not None:  # what was told of it, and no more
            seen.said += item_said(item, text)
    else:
        assert item is None
        assert last["output"] == done
        seen.stop = (last["incomplete_details"] or {"reason": last["status"]})["reason"]
    seen.usage = last["usage"]
    return seen


def item_said(item: dict[str, Any], text: str) -> list[Said]:
    if item["type"] == "message":
        return [Text(text)]
    if item["type"] == "reasoning":
        return [Thinking(text, item.get("encrypted_content", ""))]
    if item["type"] in {"function_call", "custom_tool_call"}:
        return [Use(item["call_id"], item["name"], text)]
    return [Block(item["type"])]


SEE: Mapping[str, Callable[[bytes], Seen]] = {
    "openai-responses": see_responses,
    "anthropic": see_anthropic,
    "openai-chat": see_chat,
    "ollama": see_ollama,
    "bedrock": see_bedrock,
    "gemini": see_gemini,
    "cohere": see_cohere,
    "mistral": see_mistral,
    "gemini-interactions": see_interactions,
    "ag-ui": see_ag_ui,
    "ai-sdk": see_ai_sdk,
}
