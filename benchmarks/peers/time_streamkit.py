"""streamkit: the same work, in a process of its own as every peer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from worker import Stream, Task, digest, main, said

from streamkit import collect, transcode
from streamkit.conversation.messages import Text, ToolCall
from streamkit.framing.sse import SSEParser
from streamkit.tool_calls.partial_arguments import PartialJSON

RUNNER = asyncio.Runner()


def sse(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    def parse() -> list[bytes]:
        parser = SSEParser()
        found = [frame.data for read in stream.reads for frame in parser.feed(read)]
        return found + [frame.data for frame in parser.finish()]

    return parse, digest


def accumulate(stream: Stream, dialect: str = "openai-chat") -> tuple[Task, Callable[[Any], Any]]:
    return lambda: RUNNER.run(collect(stream.aiter(), dialect)), tell


def accumulate_anthropic(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    return accumulate(stream, "anthropic")


def tell(response: Any) -> dict[str, Any]:
    choice = response.choices[0]
    text = "".join(part.text for part in choice.parts if isinstance(part, Text))
    calls = [(part.name, part.arguments) for part in choice.parts if isinstance(part, ToolCall)]
    return said(text, calls, choice.stop_reason)


def reencode(stream: Stream, *, join: bool = True) -> tuple[Task, Callable[[Any], Any]]:
    async def ask() -> bytes:
        async with transcode(stream.aiter(), "openai-chat", "anthropic", join=join) as chunks:
            return b"".join([chunk async for chunk in chunks])

    return lambda: RUNNER.run(ask()), bytes


def reencode_unjoined(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    return reencode(stream, join=False)


def streams(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    """Each stream in a recipe of its own."""
    source, target = stream.dialects

    async def ask() -> list[bytes]:
        outputs = []
        for one in stream.many:
            async with transcode(one.aiter(), source, target) as chunks:
                outputs.append(b"".join([chunk async for chunk in chunks]))
        return outputs

    return lambda: RUNNER.run(ask()), list


def partial(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    def look() -> Any:
        growing, value = PartialJSON(), None
        for fragment in stream.fragments:
            growing.feed(fragment)
            value = growing.value
        return value

    return look, lambda value: value


WORKS = {
    "sse": sse,
    "accumulate": accumulate,
    "accumulate_anthropic": accumulate_anthropic,
    "reencode": reencode,
    "reencode_unjoined": reencode_unjoined,
    "streams": streams,
    "partial": partial,
}
main({name: ("streamkit-llm", work) for name, work in WORKS.items()})
