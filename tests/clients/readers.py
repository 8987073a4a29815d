"""What the official clients make of a stream, each in the same shape.

A *fold* adds up what the client yields, as a plain program would and with nothing forgiven; a *helper* is the client's own
accumulator. Both raise whatever the client raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.clients import read_bedrock, read_cohere, read_gemini, read_interactions, read_mistral, read_responses
from tests.clients.shapes import ASK, Call, Choice, Reader, Reading, Usage, parsed

NOTHING: Mapping[str, Any] = {}


# -- openai --------------------------------------------------------------------------------------------------------


def fold_openai(client: Any, name: str) -> Reading:
    reading = Reading()
    calls: dict[tuple[int, int], Call] = {}
    options = {"include_usage": True}
    for chunk in client.chat.completions.create(model=name, messages=ASK, stream=True, stream_options=options):
        reading.usage = openai_usage(chunk.usage) or reading.usage
        for part in chunk.choices:
            choice = reading.choices.setdefault(part.index, Choice())
            choice.text += part.delta.content or ""
            choice.refusal += part.delta.refusal or ""
            choice.reasoning += openai_reasoning(part.delta)
            choice.stop = part.finish_reason or choice.stop
            for fragment in part.delta.tool_calls or []:
                where = part.index, fragment.index
                if where not in calls:  # identity comes with the first fragment or never
                    calls[where] = Call(fragment.function.name, None, fragment.id, "")
                    choice.calls.append(calls[where])
                calls[where].text = (calls[where].text or "") + (fragment.function.arguments or "")
    for call in calls.values():
        call.arguments = parsed(call.text or "")
    return reading


def help_openai(client: Any, name: str) -> Reading:
    from openai import ContentFilterFinishReasonError, LengthFinishReasonError  # noqa: PLC0415 - it may be missing

    with client.chat.completions.stream(model=name, messages=ASK, stream_options={"include_usage": True}) as stream:
        try:
            whole = stream.get_final_completion()
        except (LengthFinishReasonError, ContentFilterFinishReasonError):  # its way to tell these two stop reasons
            whole = stream.current_completion_snapshot
    reading = Reading(usage=openai_usage(whole.usage))
    for said in whole.choices:
        message = said.message
        calls = [
            Call(call.function.name, parsed(call.function.arguments), call.id, call.function.arguments)
            for call in message.tool_calls or []
        ]
        reading.choices[said.index] = Choice(
            message.content or "", message.refusal or "", openai_reasoning(message), calls, said.finish_reason
        )
    return reading


def openai_reasoning(message: Any) -> str:
    """The client types no reasoning and hands its fields on; programs look for either name."""
    extra = message.model_extra or {}
    return extra.get("reasoning_content") or extra.get("reasoning") or ""


def openai_usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    raw = usage.to_dict()
    given, output = raw.get("prompt_tokens_details") or {}, raw.get("completion_tokens_details") or {}
    return Usage(
        raw.get("prompt_tokens"),
        raw.get("completion_tokens"),
        raw.get("total_tokens"),
        given.get("cached_tokens"),
        given.get("cache_write_tokens"),
        output.get("reasoning_tokens"),
    )


# -- anthropic -----------------------------------------------------------------------------------------------------


def fold_anthropic(client: Any, name: str) -> Reading:
    blocks: list[dict[str, Any]] = []
    usage: dict[str, Any] = {}
    stop = None
    for event in client.messages.create(model=name, messages=ASK, max_tokens=1, stream=True):
        match event.type:
            case "message_start":
                usage.update(event.message.usage.to_dict())
            case "content_block_start":
                assert event.index == len(blocks), f"block {event.index} starts after {len(blocks)}"
                blocks.append({**event.content_block.to_dict(), "json": ""})
            case "content_block_delta":
                add_delta(blocks[event.index], event.delta)
            case "message_delta":
                stop = event.delta.stop_reason
                usage.update((key, count) for key, count in event.usage.to_dict().items() if count is not None)
    return anthropic_reading(blocks, stop, usage)


def add_delta(block: dict[str, Any], delta: Any) -> None:
    match delta.type:
        case "text_delta":
            block["text"] += delta.text
        case "thinking_delta":
            block["thinking"] += delta.thinking
        case "input_json_delta":
            block["json"] += delta.partial_json


def help_anthropic(client: Any, name: str) -> Reading:
    with client.messages.stream(model=name, messages=ASK, max_tokens=1) as stream:
        whole = stream.get_final_message()
    blocks = [block.to_dict() for block in whole.content]
    return anthropic_reading(blocks, whole.stop_reason, whole.usage.to_dict())


def anthropic_reading(blocks: Iterable[Mapping[str, Any]], stop: str | None, usage: Mapping[str, Any]) -> Reading:
    choice = Choice(stop=stop)
    for block in blocks:
        match block["type"]:
            case "text":
                choice.text += block["text"]
            case "thinking":
                choice.reasoning += block["thinking"]
            case "tool_use":
                text = block.get("json")
                arguments = block["input"] if text is None else parsed(text)
                choice.calls.append(Call(block["name"], arguments, block["id"], text))
    return Reading({0: choice}, anthropic_usage(usage))


def anthropic_usage(raw: Mapping[str, Any]) -> Usage:
    read, written = raw.get("cache_read_input_tokens"), raw.get("cache_creation_input_tokens")
    given = raw["input_tokens"] + (read or 0) + (written or 0)
    output = raw["output_tokens"]
    thinking = (raw.get("output_tokens_details") or NOTHING).get("thinking_tokens")
    return Usage(given, output, given + output, read, written, thinking)


# -- ollama --------------------------------------------------------------------------------------------------------


def fold_ollama(client: Any, name: str) -> Reading:
    choice, usage = Choice(), None
    for part in client.chat(model=name, messages=ASK, stream=True):
        choice.text += part.message.content or ""
        choice.reasoning += part.message.thinking or ""
        for call in part.message.tool_calls or []:
            choice.calls.append(Call(call.function.name, dict(call.function.arguments)))
        if part.done:
            choice.stop = part.done_reason
            usage = ollama_usage(part.prompt_eval_count, part.eval_count)
    return Reading({0: choice}, usage)


def ollama_usage(given: int | None, output: int | None) -> Usage | None:
    if given is None and output is None:
        return None
    return Usage(given, output, None if given is None or output is None else given + output)


READERS = [
    Reader("openai fold", "openai-chat", "openai", fold_openai),
    Reader("openai helper", "openai-chat", "openai", help_openai),
    Reader("anthropic fold", "anthropic", "anthropic", fold_anthropic),
    Reader("anthropic helper", "anthropic", "anthropic", help_anthropic),
    Reader("ollama fold", "ollama", "ollama", fold_ollama),
    *read_responses.READERS,
    *read_cohere.READERS,
    *read_mistral.READERS,
    *read_bedrock.READERS,
    *read_gemini.READERS,
    *read_interactions.READERS,
]
