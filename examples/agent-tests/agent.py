"""A small agent: it sends a request, runs the tool that the model calls, and repeats this until the model calls no tool."""

import json
import sys

from openai import OpenAI

TEMPERATURES = {"Oslo": -3, "Lima": 24}
TOOL = {
    "type": "function",
    "function": {
        "name": "temperature",
        "description": "The temperature in a city, in °C.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": [*TEMPERATURES]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
#: The highest number of requests for one question.
STEPS = 5


def temperature(city: str) -> str:
    """Return the tool's result."""
    return f"{TEMPERATURES[city]} °C"


def ask(question: str, base_url: str, model: str = "demo", key: str = "none") -> str:
    """Return the model's answer. Raises the SDK's errors, and RuntimeError if the model calls a tool in every response."""
    messages = [{"role": "user", "content": question}]
    with OpenAI(base_url=base_url, api_key=key, max_retries=0) as client:
        for _ in range(STEPS):
            with client.chat.completions.stream(
                model=model, messages=messages, tools=[TOOL]
            ) as stream:
                message = stream.get_final_completion().choices[0].message
            if not message.tool_calls:
                return message.content or ""
            calls = [
                call.model_dump(
                    include={
                        "id": True,
                        "type": True,
                        "function": {"name", "arguments"},
                    }
                )
                for call in message.tool_calls
            ]
            messages.append(
                {"role": "assistant", "content": message.content, "tool_calls": calls}
            )
            for call in message.tool_calls:
                result = temperature(**json.loads(call.function.arguments))
                messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": result}
                )
    raise RuntimeError(f"no answer after {STEPS} requests")


if __name__ == "__main__":
    print(ask(sys.argv[2], sys.argv[1]))
