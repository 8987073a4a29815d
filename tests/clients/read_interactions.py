"""What google-genai's interactions make of a stream.

The client yields events and gathers nothing. This fold is the program that Google's documentation describes: the steps by
their index, and calls that are run once the interaction is completed. An error is an event, which the client does not
raise: the program does, by the client's class for errors.
"""

from __future__ import annotations

from typing import Any

from tests.clients.read_gemini import total_of
from tests.clients.shapes import Call, Choice, Reader, Reading, Usage, parsed


def fold(client: Any, name: str) -> Reading:
    from google.genai import _interactions as errors  # noqa: PLC0415 - it may be missing

    reading, choice = Reading(), Choice()
    calls: dict[int, Call] = {}
    for event in client.interactions.create(model=name, input="?", stream=True):
        match event.event_type:
            case "step.start" if event.step.type == "function_call":
                assert event.step.arguments == {}
                calls[event.index] = Call(event.step.name, None, event.step.id, "")
            case "step.delta":
                add(event.delta, choice, calls.get(event.index))
            case "interaction.completed":
                choice.stop, choice.calls = event.interaction.status, [*calls.values()]
                reading.usage = usage_of(event.interaction.usage)
            case "error":
                raise errors.APIError(event.error.message, None, body=event.error)
    if choice.stop is None:
        raise EOFError("the stream ended without an end and without an error")
    for call in choice.calls:
        call.arguments = parsed(call.text or "")
    reading.choices[0] = choice
    return reading


def add(delta: Any, choice: Choice, call: Call | None) -> None:
    match delta.type:
        case "text":
            choice.text += delta.text
        case "thought_summary" if delta.content.type == "text":
            choice.reasoning += delta.content.text
        case "arguments_delta":
            assert call is not None
            call.text = (call.text or "") + delta.arguments


def usage_of(raw: Any) -> Usage | None:
    if raw is None:
        return None
    return Usage(
        total_of(raw.total_input_tokens, raw.total_tool_use_tokens),
        total_of(raw.total_output_tokens, raw.total_thought_tokens),
        raw.total_tokens,
        raw.total_cached_tokens,
        None,
        raw.total_thought_tokens,
    )


READERS = [Reader("google-genai interactions fold", "gemini-interactions", "google.genai.interactions", fold)]
