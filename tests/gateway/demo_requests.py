"""Requests to the demo model, as OpenAI's clients write them."""

from __future__ import annotations

from typing import Any

HELLO = {"role": "user", "content": "How is the weather, and what time is it?"}


def function(name: str, parameters: object) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def custom(name: str) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name}}


def result_of(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


WEATHER = function(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "examples": ["Reykjavík"]},
            "days": {"type": "integer", "minimum": 2},
            "units": {"enum": ["metric", "imperial"]},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
TIME = function("get_time", {"type": "object", "properties": {"zone": {"const": "UTC"}}, "required": ["zone"]})
ASSISTANT_CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Bergen"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "get_time", "arguments": '{"zone":"UTC"}'}},
    ],
}
RESULT = result_of("call_1", "12 °C, rain")


def asking(**body: object) -> dict[str, Any]:
    """A request: what is given, and a model and a message unless they are given too."""
    return {"model": "demo", "messages": [HELLO], **body}
