"""What the official client of Cohere makes of a stream. It adds nothing up and raises for no event: a program does."""

from __future__ import annotations

from typing import Any

from tests.clients.shapes import ASK, Call, Choice, Reader, Reading, StreamFailed, Usage, parsed


def fold_cohere(client: Any, name: str) -> Reading:
    choice = Choice()
    calls: list[Any] = []
    for event in client.chat_stream(model=name, messages=ASK):
        message = getattr(getattr(event, "delta", None), "message", None)
        match event.type:
            case "content-start" | "content-delta":
                choice.text += message.content.text or ""
                choice.reasoning += message.content.thinking or ""
            case "tool-plan-delta":
                choice.reasoning += message.tool_plan
            case "tool-call-start":
                call = message.tool_calls
                assert event.index == len(calls), f"call {event.index} starts after {len(calls)}"
                calls.append(Call(call.function.name, None, call.id, call.function.arguments))
            case "tool-call-delta":
                assert event.index == len(calls) - 1, f"text of call {event.index}, pending is the last of {len(calls)}"
                calls[-1].text += message.tool_calls.function.arguments
            case "message-end":
                return finished(choice, calls, event.delta)
    raise StreamFailed("no message-end")


def finished(choice: Choice, calls: list[Any], end: Any) -> Reading:
    if end.error or end.finish_reason in {"ERROR", "TIMEOUT"}:
        raise StreamFailed(end.error)
    for call in calls:
        call.arguments = parsed(call.text)
    choice.calls, choice.stop = calls, end.finish_reason
    return Reading({0: choice}, cohere_usage(end.usage))


def cohere_usage(usage: Any) -> Usage | None:
    """The client's counts are floats."""
    if usage is None:
        return None
    counts = [usage.tokens and usage.tokens.input_tokens, usage.tokens and usage.tokens.output_tokens]
    given, output, cached = (None if count is None else int(count) for count in [*counts, usage.cached_tokens])
    return Usage(given, output, None if given is None or output is None else given + output, cached)


READERS = [Reader("cohere fold", "cohere", "cohere", fold_cohere)]
