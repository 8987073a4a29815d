"""What the official client of Mistral makes of a stream: chunks as it validates them, added up as a program does."""

from __future__ import annotations

import json
from typing import Any

from tests.clients.shapes import ASK, Call, Choice, Reader, Reading, StreamFailed, Usage, parsed


def fold_mistral(client: Any, name: str) -> Reading:
    from mistralai.client.errors import ResponseValidationError  # noqa: PLC0415 - it may be missing

    reading = Reading()
    try:
        with client.chat.stream(model=name, messages=ASK) as stream:
            for event in stream:
                take(reading, event.data)
    except ResponseValidationError as error:  # an error frame is no chunk; what it says is in the body only
        raise StreamFailed(error.body) from error
    return reading


def take(reading: Reading, chunk: Any) -> None:
    if chunk.usage is not None:
        reading.usage = mistral_usage(chunk.usage)
    for part in chunk.choices:
        choice = reading.choices.setdefault(part.index, Choice())
        add_content(choice, part.delta.content or "")
        for call in part.delta.tool_calls or []:
            assert call.index == len(choice.calls), f"call {call.index} comes after {len(choice.calls)}"
            text = call.function.arguments
            assert isinstance(text, str), text
            choice.calls.append(Call(call.function.name, parsed(text), call.id, text))
        choice.stop = part.finish_reason or choice.stop


def add_content(choice: Choice, content: Any) -> None:
    if isinstance(content, str):
        choice.text += content
        return
    for part in content:
        if part.type == "text":
            choice.text += part.text
        elif part.type == "thinking":
            choice.reasoning += "".join(thought.text for thought in part.thinking if thought.type == "text")


def mistral_usage(usage: Any) -> Usage:
    """Details are extra fields of the client's type."""
    raw = json.loads(usage.model_dump_json())
    given, output = raw.get("prompt_tokens_details") or {}, raw.get("completion_tokens_details") or {}
    return Usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
        given.get("cached_tokens"),
        given.get("cache_write_tokens"),
        output.get("reasoning_tokens"),
    )


READERS = [Reader("mistral fold", "mistral", "mistralai.client", fold_mistral)]
