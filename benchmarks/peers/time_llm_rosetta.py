"""llm-rosetta: the stream processor of its pipeline, as its gateway runs it; framed and parsed here on both sides."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import orjson
from llm_rosetta.pipeline import ConversionPipeline
from worker import MESSAGES, Stream, Task, documents, main, sse_of

logging.disable()
REQUEST = {"model": "m", "max_tokens": 100, "stream": True, "messages": MESSAGES}


def reencode(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    def convert() -> bytes:
        pipeline = ConversionPipeline("anthropic", "openai_chat")
        pipeline.convert_request(dict(REQUEST))
        process = pipeline.create_stream_processor().process_chunk
        return b"".join([sse_of(event) for chunk in documents(stream.reads) for event in process(chunk)])

    return convert, bytes


#: Its names of dialects, and a request for each that it writes.
NAMES = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "google",
}
REQUESTS = {
    "anthropic": REQUEST,
    "openai-chat": {"model": "m", "stream": True, "messages": MESSAGES},
    "openai-responses": {"model": "m", "stream": True, "input": "Hi"},
}


def streams(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    """Each stream in a pipeline of its own, as each request has one; a stream that it can't read gives nothing."""
    source, target = stream.dialects

    def write(event: Any) -> bytes:
        if target == "openai-chat":
            return b"data: %b\n\n" % orjson.dumps(event)
        return sse_of(event)

    def convert() -> list[bytes]:
        outputs = []
        for one in stream.many:
            pipeline = ConversionPipeline(NAMES[target], NAMES[source])
            pipeline.convert_request(dict(REQUESTS[target]))
            process = pipeline.create_stream_processor().process_chunk
            try:
                outputs.append(b"".join([write(event) for chunk in documents(one.reads) for event in process(chunk)]))
            except Exception:  # noqa: BLE001 - whatever it raises
                outputs.append(b"")
        return outputs

    return convert, list


main({"reencode": ("llm-rosetta", reencode), "streams": ("llm-rosetta", streams)})
