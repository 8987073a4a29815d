"""The words that decoders and encoders have among themselves are nobody else's: an event of such a name is one that nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.events import Aside
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from tests.laws.running import translate
from tests.vectors import VECTORS, ag_ui, anthropic, cohere, gemini, mistral, ollama
from tests.vectors import gemini_interactions as interactions
from tests.vectors import openai_responses as responses
from tests.vectors.field.outputs import SEE
from tests.vectors.openai_chat import DONE, ROLE, STOP, said
from tests.vectors.vector import lines, named, sse

#: A whole answer of each dialect, and how its frames are written.
STREAMS: dict[str, tuple[list[Any], Callable[..., bytes]]] = {
    "openai-chat": ([ROLE, said("Hi"), STOP, DONE], sse),
    "openai-responses": ([responses.START, *responses.HI, responses.last("completed", responses.HI[-1])], sse),
    "anthropic": ([anthropic.START, *anthropic.block(0, "Hi"), anthropic.finish("end_turn"), anthropic.STOP], sse),
    "ollama": ([ollama.line("Hi"), ollama.end()], lines),
    "gemini": ([gemini.chunk(gemini.text("Hi")), gemini.STOP], gemini.events),
    "gemini-interactions": ([interactions.START, *interactions.text(0, "Hi"), interactions.finish()], sse),
    "cohere": ([cohere.START, *cohere.block(0, "Hi"), cohere.finish()], named),
    "mistral": ([mistral.ROLE, said("Hi"), mistral.finish("stop"), mistral.DONE], sse),
    "ag-ui": ([ag_ui.START, *ag_ui.text("m", "Hi"), ag_ui.finish()], sse),
    "ai-sdk": (
        [
            {"type": "start"},
            {"type": "text-start", "id": "0"},
            {"type": "text-delta", "id": "0", "delta": "Hi"},
            {"type": "text-end", "id": "0"},
            {"type": "finish", "finishReason": "stop"},
        ],
        sse,
    ),
}
RUNNABLE = {"type": "tool-input-available", "toolCallId": "z", "toolName": "f", "input": {}}
RESULT = {"type": "TOOL_CALL_RESULT", "toolCallId": "z", "messageId": "x", "content": "y"}
#: What an encoder looks for in the notes of its decoder.
MEMBERS: tuple[dict[str, Any], ...] = (
    {},
    {**RUNNABLE, "toolCallName": "f", "arguments": "{}", "output": RUNNABLE, "result": RESULT},
    {"item": {"type": "function_call"}, "delta": {"x": 1}, "content_block": {"type": "new"}, "explanation": "no"},
)


def words() -> Iterator[str]:
    """The types of all asides that the vectors bring, and those that stand for several frames."""
    for vector in VECTORS:
        dialect, report = DIALECTS[vector.dialect], StreamReport()
        parser, decoder = dialect.parser(DEFAULT_LIMITS, report), dialect.decoder(DEFAULT_LIMITS, report)
        events = decoder.feed(parser.feed(vector.body) + parser.finish()) + decoder.finish()
        yield from (event.type for event in events if isinstance(event, Aside))
    yield from ("tool", "TOOL_CALL", "part", "step", "step.", "delta", "thought.delta", "citation", "debug", "message")
    yield from ("message_delta.stop_details", "message.images", "delta.images", "content.text", "event.error")


def is_known(dialect: str, word: str) -> bool:
    """Whether the dialect itself has an event of that name."""
    decoder = DIALECTS[dialect].decoder(DEFAULT_LIMITS, StreamReport())
    parser = DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport())
    frames, written = STREAMS[dialect]
    body = written(frames[0], {"type": word, "event_type": word})
    return not any(
        isinstance(event, Aside) and event.type == f"event.{word}" for event in decoder.feed(parser.feed(body))
    )


@pytest.mark.parametrize("dialect", STREAMS)
def test_an_event_with_a_word_of_ours_is_one_that_nobody_knows(dialect):
    frames, written = STREAMS[dialect]
    names = sorted({word for word in words() if not is_known(dialect, word)})
    for cut in (len(frames), 2):
        for target in {dialect, "ai-sdk", "ag-ui", "openai-chat"}:
            before = SEE[target](translate(dialect, target, [written(*frames[:cut])], passing=False)[0])
            for word in names:
                for members in MEMBERS:
                    unknown = {**members, "type": word, "event_type": word}
                    body = written(frames[0], unknown, *frames[1:cut])
                    output, report = translate(dialect, target, [body], passing=False)
                    assert report.error is None, (word, target)
                    if target == dialect and dialect in {"anthropic", "cohere", "openai-responses"}:
                        continue  # they write it as it came
                    seen = SEE[target](output)
                    assert (seen.said, seen.stop) == (before.said, before.stop), (word, target)
                    assert report.losses["unknown_event"], (word, target)
