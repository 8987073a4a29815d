"""What openai-python makes of a Responses stream: its events added up, and its helper's final response."""

from __future__ import annotations

import warnings
from typing import Any

from tests.clients.shapes import Call, Choice, Reader, Reading, Usage, parsed

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


def fold_responses(client: Any, name: str) -> Reading:
    """The deltas and the ends of calls, as programs that show a turn while it comes; nothing is taken from the last event."""
    choice, usage = Choice(), None
    for event in client.responses.create(model=name, input="?", stream=True):
        match event.type:
            case "response.output_text.delta":
                choice.text += event.delta
            case "response.refusal.delta":
                choice.refusal += event.delta
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                choice.reasoning += event.delta
            case "response.output_item.done" if event.item.type in CALLS:
                choice.calls.append(call_of(event.item))
            case "response.completed" | "response.incomplete":
                choice.stop, usage = stop_of(event.response), usage_of(event.response.usage)
    return Reading({0: choice}, usage)


def help_responses(client: Any, name: str) -> Reading:
    with warnings.catch_warnings(), client.responses.stream(model=name, input="?") as stream:
        warnings.simplefilter("ignore", UserWarning)  # of pydantic, about the tools of other vendors in a response
        # its final response is that of a completed one alone
        ends = [event.response for event in stream if event.type in {"response.completed", "response.incomplete"}]
    choice = Choice(stop=stop_of(ends[0]))
    for item in ends[0].output:
        if item.type in CALLS:
            choice.calls.append(call_of(item))
        elif item.type == "message":
            for part in item.content:
                choice.text += getattr(part, "text", "")
                choice.refusal += getattr(part, "refusal", "")
        elif item.type == "reasoning":
            choice.reasoning += "".join(part.text for part in [*item.summary, *(item.content or [])])
    return Reading({0: choice}, usage_of(ends[0].usage))


def call_of(item: Any) -> Call:
    text = getattr(item, CALLS[item.type])
    return Call(item.name, parsed(text), item.call_id, text)


def stop_of(response: Any) -> str:
    if response.status == "incomplete":
        return str(response.incomplete_details.reason)
    return str(response.status)


def usage_of(usage: Any) -> Usage | None:
    if usage is None:
        return None
    raw = usage.to_dict()
    given, output = raw.get("input_tokens_details") or {}, raw.get("output_tokens_details") or {}
    return Usage(
        raw["input_tokens"],
        raw["output_tokens"],
        raw["total_tokens"],
        given.get("cached_tokens"),
        given.get("cache_write_tokens"),
        output.get("reasoning_tokens"),
    )


READERS = [
    Reader("openai responses fold", "openai-responses", "openai", fold_responses),
    Reader("openai responses helper", "openai-responses", "openai", help_responses),
]
