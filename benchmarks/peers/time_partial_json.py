"""jiter (Rust) and partial-json-parser: the text so far is parsed again whenever a fragment came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jiter
import partial_json_parser
from worker import Stream, Task, main


def with_jiter(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    fragments = [fragment.encode() for fragment in stream.fragments]

    def look() -> Any:
        text, value = b"", None
        for fragment in fragments:
            text += fragment
            value = jiter.from_json(text, partial_mode=True)
        return value

    return look, same


def with_partial_json_parser(stream: Stream) -> tuple[Task, Callable[[Any], Any]]:
    def look() -> Any:
        text, value = "", None
        for fragment in stream.fragments:
            text += fragment
            value = partial_json_parser.loads(text)
        return value

    return look, same


def same(value: Any) -> Any:
    return value


main({"jiter": ("jiter", with_jiter), "partial-json-parser": ("partial-json-parser", with_partial_json_parser)})
