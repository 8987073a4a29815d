"""llm-rosetta: the stream processor of its pipeline, as its gateway runs it; framed and parsed here on both sides."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

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


main({"reencode": ("llm-rosetta", reencode)})
