"""llm-babel: ``translate_stream`` from openai-chat to anthropic-messages; framed and parsed here on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from llm_transform.registry import translate_stream
from worker import Stream, Task, documents, main, sse_of

ENVELOPE = {"id": "c", "model": "m", "created": 1700000000}


def reencode(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    def convert() -> bytes:
        events = translate_stream("openai-chat", "anthropic-messages", documents(stream.reads), dict(ENVELOPE))
        return b"".join([sse_of(event, number) for event in events])

    return convert, bytes


def number(value: Any) -> orjson.Fragment:
    """Its numbers keep their spelling."""
    return orjson.Fragment(value.token)


main({"reencode": ("llm-babel", reencode)})
