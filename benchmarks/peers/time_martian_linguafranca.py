"""linguafranca (a Rust core): ``convert_response_stream_json`` from Chat to Messages; framed and parsed here on both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import linguafranca
from worker import Stream, Task, documents, main, sse_of

FORMATS = {
    "source_format": linguafranca.FormatName.OPENAI_CHAT_COMPLETIONS,
    "target_format": linguafranca.FormatName.ANTHROPIC_MESSAGES,
}


def reencode(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    def convert() -> bytes:
        events = linguafranca.convert_response_stream_json(documents(stream.reads), **FORMATS)
        return b"".join([sse_of(event) for event in events])

    return convert, bytes


main({"reencode": ("martian-linguafranca", reencode)})
