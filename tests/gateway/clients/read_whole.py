"""What the official clients make of a whole answer, each in the shape that ``tests/clients`` has for streams."""

from __future__ import annotations

import warnings
from typing import Any, Final

from tests.clients.read_gemini import add
from tests.clients.read_gemini import usage_of as gemini_usage
from tests.clients.read_interactions import usage_of as interactions_usage
from tests.clients.read_responses import CALLS, call_of, stop_of
from tests.clients.read_responses import usage_of as responses_usage
from tests.clients.readers import anthropic_reading, ollama_usage, openai_reasoning, openai_usage
from tests.clients.shapes import ASK, Call, Choice, Reader, Reading, parsed


def openai(client: Any, model: str) -> Reading:
    found = client.chat.completions.create(model=model, messages=ASK)
    reading = Reading(usage=openai_usage(found.usage))
    for said in found.choices:
        message = said.message
        calls = [openai_call(call) for call in message.tool_calls or []]
        reading.choices[said.index] = Choice(
            message.content or "", message.refusal or "", openai_reasoning(message), calls, said.finish_reason
        )
    return reading


def openai_call(call: Any) -> Call:
    said, text = (call.custom, call.custom.input) if call.type == "custom" else (call.function, call.function.arguments)
    return Call(said.name, parsed(text), call.id, text)


def responses(client: Any, model: str) -> Reading:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of pydantic, about the tools of other vendors in a response
        found = client.responses.create(model=model, input="?")
    choice = Choice(stop=stop_of(found))
    for item in found.output:
        if item.type in CALLS:
            choice.calls.append(call_of(item))
        elif item.type == "message":
            for part in item.content:
                choice.text += getattr(part, "text", "")
                choice.refusal += getattr(part, "refusal", "")
        elif item.type == "reasoning":
            choice.reasoning += "".join(part.text for part in [*item.summary, *(item.content or [])])
    return Reading({0: choice}, responses_usage(found.usage))


def anthropic(client: Any, model: str) -> Reading:
    found = client.messages.create(model=model, messages=ASK, max_tokens=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of pydantic, about blocks that are newer than its types
        blocks = [block.to_dict() for block in found.content]
    return anthropic_reading(blocks, found.stop_reason, found.usage.to_dict())


def ollama(client: Any, model: str) -> Reading:
    found = client.chat(model=model, messages=ASK)
    message = found.message
    calls = [Call(call.function.name, dict(call.function.arguments)) for call in message.tool_calls or []]
    choice = Choice(message.content or "", "", message.thinking or "", calls, found.done_reason)
    return Reading({0: choice}, ollama_usage(found.prompt_eval_count, found.eval_count))


def gemini(client: Any, model: str) -> Reading:
    found = client.models.generate_content(model=model, contents="?")
    reading = Reading(usage=gemini_usage(found.usage_metadata))
    for said in found.candidates or []:
        choice = reading.choices.setdefault(said.index or 0, Choice())
        for part in (said.content and said.content.parts) or []:
            add(choice, part)
        choice.stop = said.finish_reason and said.finish_reason.value
    if found.prompt_feedback is not None and found.prompt_feedback.block_reason is not None:
        reading.choices.setdefault(0, Choice()).stop = found.prompt_feedback.block_reason.value
    return reading


def interactions(client: Any, model: str) -> Reading:
    found = client.interactions.create(model=model, input="?")
    choice = Choice(stop=found.status)
    for step in found.steps or []:
        match step.type:
            case "model_output":
                choice.text += "".join(content.text for content in step.content or [] if content.type == "text")
            case "thought":
                choice.reasoning += "".join(content.text for content in step.summary or [] if content.type == "text")
            case "function_call":
                choice.calls.append(Call(step.name, step.arguments, step.id))
    assert choice.text.endswith(found.output_text)
    return Reading({0: choice}, interactions_usage(found.usage))


WHOLE_READERS: Final = [
    Reader("openai whole", "openai-chat", "openai", openai),
    Reader("openai responses whole", "openai-responses", "openai", responses),
    Reader("anthropic whole", "anthropic", "anthropic", anthropic),
    Reader("ollama whole", "ollama", "ollama", ollama),
    Reader("google-genai whole", "gemini", "google.genai", gemini),
    Reader("google-genai interactions whole", "gemini-interactions", "google.genai.interactions", interactions),
]
