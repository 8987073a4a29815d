"""A program for each official client that lets a model call tools: as its documentation shows, and with nothing forgiven.

The first leg is read by the client's own types (and accumulators, where it has one), its message goes back as the client holds
it, the results behind it, and the second leg is read in the same way.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field, frozen

QUESTION: Final = "How cold is it in Zürich, and what is 2 + 3?"
SYSTEM: Final = "Use the tools."
TOOLS: Final = {
    "get_weather": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "add": {"a": {"type": "integer"}, "b": {"type": "integer"}},
}


@define
class Told:
    """What a program came to know."""

    text: str = ""  #: of the first leg
    calls: list[tuple[str, dict[str, Any]]] = field(factory=list)
    answer: str = ""  #: of the second


@frozen
class Program:
    """``run(client, model, stream)``."""

    dialect: str
    package: str
    run: Callable[[Any, str, bool], Told]


def result_of(name: str, arguments: dict[str, Any]) -> str:
    """What the tools say, in JavaScript too."""
    return f"{name}: ½ of {json.dumps(arguments, ensure_ascii=False, separators=(',', ':'))}"


def schema(name: str) -> dict[str, Any]:
    members = TOOLS[name]
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def openai(client: Any, model: str, stream: bool) -> Told:
    functions = [{"name": name, "description": name, "parameters": schema(name), "strict": True} for name in TOOLS]
    tools = [{"type": "function", "function": function} for function in functions]
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]

    def ask() -> Any:
        if not stream:
            return client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
        with client.chat.completions.stream(model=model, messages=messages, tools=tools) as events:
            return events.get_final_completion().choices[0].message

    said = ask()
    told = Told(said.content)
    messages.append(said)
    for call in said.tool_calls:
        arguments = json.loads(call.function.arguments)
        told.calls.append((call.function.name, arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result_of(call.function.name, arguments)})
    told.answer = ask().content
    return told


def responses(client: Any, model: str, stream: bool) -> Told:
    tools = [
        {"type": "function", "name": name, "description": name, "parameters": schema(name), "strict": True}
        for name in TOOLS
    ]
    items: list[Any] = [{"role": "user", "content": QUESTION}]

    def ask() -> Any:
        sent = {"model": model, "input": items, "tools": tools, "instructions": SYSTEM, "store": False}
        if not stream:
            return client.responses.create(**sent)
        with client.responses.stream(**sent) as events:
            return events.get_final_response()

    said = ask()
    told = Told(said.output_text)
    items += said.output
    for item in said.output:
        if item.type == "function_call":
            arguments = json.loads(item.arguments)
            told.calls.append((item.name, arguments))
            items.append(
                {"type": "function_call_output", "call_id": item.call_id, "output": result_of(item.name, arguments)}
            )
    told.answer = ask().output_text
    return told


def anthropic(client: Any, model: str, stream: bool) -> Told:
    tools = [{"name": name, "description": name, "input_schema": schema(name)} for name in TOOLS]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]

    def ask() -> Any:
        sent = {"model": model, "messages": messages, "tools": tools, "system": SYSTEM, "max_tokens": 500}
        if not stream:
            return client.messages.create(**sent)
        with client.messages.stream(**sent) as events:
            return events.get_final_message()

    said = ask()
    told = Told("".join(block.text for block in said.content if block.type == "text"))
    messages.append({"role": "assistant", "content": said.content})
    results = []
    for block in said.content:
        if block.type == "tool_use":
            told.calls.append((block.name, block.input))
            result = result_of(block.name, block.input)
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": result})
    messages.append({"role": "user", "content": results})
    told.answer = "".join(block.text for block in ask().content if block.type == "text")
    return told


def ollama(client: Any, model: str, stream: bool) -> Told:
    functions = [{"name": name, "description": name, "parameters": schema(name)} for name in TOOLS]
    tools = [{"type": "function", "function": function} for function in functions]
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]

    def ask() -> dict[str, Any]:
        parts = client.chat(model=model, messages=messages, tools=tools, stream=stream)
        said: dict[str, Any] = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
        for part in parts if stream else [parts]:
            said["content"] += part.message.content or ""
            said["thinking"] += part.message.thinking or ""
            said["tool_calls"] += part.message.tool_calls or []
        assert part.done
        return said

    said = ask()
    told = Told(said["content"])
    messages.append(said)
    for call in said["tool_calls"]:
        name, arguments = call.function.name, dict(call.function.arguments)
        told.calls.append((name, arguments))
        messages.append({"role": "tool", "tool_name": name, "content": result_of(name, arguments)})
    told.answer = ask()["content"]
    return told


def gemini(client: Any, model: str, stream: bool) -> Told:
    from google.genai import types  # noqa: PLC0415 - it may be missing

    declared = [
        types.FunctionDeclaration(name=name, description=name, parameters_json_schema=schema(name)) for name in TOOLS
    ]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)], system_instruction=SYSTEM)
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]

    def ask() -> Any:
        asked = client.models.generate_content_stream if stream else client.models.generate_content
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there are parts which are no text
            found = asked(model=model, contents=contents, config=config)
            chunks = list(found) if stream else [found]
        parts = [part for chunk in chunks for said in chunk.candidates or [] for part in said.content.parts or []]
        return types.Content(role="model", parts=parts)

    said = ask()
    told = Told("".join(part.text or "" for part in said.parts if not part.thought))
    contents.append(said)
    results = []
    for call in (part.function_call for part in said.parts if part.function_call):
        told.calls.append((call.name, call.args))
        output = {"output": result_of(call.name, call.args)}
        results.append(
            types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=output))
        )
    contents.append(types.Content(role="user", parts=results))
    told.answer = "".join(part.text or "" for part in ask().parts if not part.thought)
    return told


def interactions(client: Any, model: str, stream: bool) -> Told:
    tools = [{"type": "function", "name": name, "description": name, "parameters": schema(name)} for name in TOOLS]
    steps: list[Any] = [{"type": "user_input", "content": [{"type": "text", "text": QUESTION}]}]

    def ask() -> list[Any]:
        asked = {"model": model, "input": steps, "tools": tools, "system_instruction": SYSTEM, "store": False}
        found = client.interactions.create(**asked, stream=stream)
        return gathered(found) if stream else [step.model_dump(exclude_none=True) for step in found.steps]

    said = ask()
    told = Told(text_of(said))
    steps.extend(said)
    for call in (step for step in said if step["type"] == "function_call"):
        told.calls.append((call["name"], call["arguments"]))
        result = result_of(call["name"], call["arguments"])
        steps.append({"type": "function_result", "call_id": call["id"], "name": call["name"], "result": result})
    told.answer = text_of(ask())
    return told


def gathered(events: Any) -> list[Any]:
    """The steps of a stream, as the documentation puts them together."""
    steps: dict[int, Any] = {}
    arguments: dict[int, str] = {}
    ended = False
    for event in events:
        if event.event_type == "step.start":
            steps[event.index] = event.step.model_dump(exclude_none=True)
        elif event.event_type == "step.delta":
            step, delta = steps[event.index], event.delta
            match delta.type:
                case "text":
                    content = step.setdefault("content", [])
                    if not content:
                        content.append({"type": "text", "text": ""})
                    content[-1]["text"] += delta.text
                case "thought_summary":
                    step.setdefault("summary", []).append(delta.content.model_dump(exclude_none=True))
                case "thought_signature":
                    step["signature"] = delta.signature
                case "arguments_delta":
                    arguments[event.index] = arguments.get(event.index, "") + delta.arguments
        ended = ended or event.event_type == "interaction.completed"
    assert ended
    for index, text in arguments.items():
        steps[index]["arguments"] = json.loads(text)
    return [*steps.values()]


def text_of(steps: list[Any]) -> str:
    outputs = (step for step in steps if step["type"] == "model_output")
    return "".join(content["text"] for step in outputs for content in step.get("content", ()))


PROGRAMS: Final = [
    Program("openai-chat", "openai", openai),
    Program("openai-responses", "openai", responses),
    Program("anthropic", "anthropic", anthropic),
    Program("ollama", "ollama", ollama),
    Program("gemini", "google.genai", gemini),
    Program("gemini-interactions", "google.genai.interactions", interactions),
]
