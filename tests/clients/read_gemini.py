"""What google-genai makes of a stream."""

from __future__ import annotations

from typing import Any

from tests.clients.shapes import Call, Choice, Reader, Reading, Usage


def fold(client: Any, name: str) -> Reading:
    reading = Reading()
    for chunk in client.models.generate_content_stream(model=name, contents="?"):
        reading.usage = usage_of(chunk.usage_metadata) or reading.usage
        for said in chunk.candidates or []:
            choice = reading.choices.setdefault(said.index or 0, Choice())
            for part in (said.content and said.content.parts) or []:
                add(choice, part)
            if said.finish_reason is not None:
                choice.stop = said.finish_reason.value
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            reading.choices.setdefault(0, Choice()).stop = feedback.block_reason.value
    return reading


def add(choice: Choice, part: Any) -> None:
    if part.function_call is not None:
        call = part.function_call
        choice.calls.append(Call(call.name, call.args, call.id))
    elif part.thought:
        choice.reasoning += part.text or ""
    else:
        choice.text += part.text or ""


def usage_of(raw: Any) -> Usage | None:
    """None as long as nothing is counted: some chunks only tell the kind of traffic."""
    if raw is None:
        return None
    usage = Usage(
        total_of(raw.prompt_token_count, raw.tool_use_prompt_token_count),
        total_of(raw.candidates_token_count, raw.thoughts_token_count),
        raw.total_token_count,
        raw.cached_content_token_count,
        None,
        raw.thoughts_token_count,
    )
    return None if usage == Usage() else usage


def total_of(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


READERS = [Reader("google-genai fold", "gemini", "google.genai", fold)]
