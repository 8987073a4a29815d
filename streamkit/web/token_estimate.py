"""How many tokens a request has, about: for clients that ask for a count where no upstream can give one.

A refusal is worse than an estimate: Claude Code then asks for a completion of one token, once for each thing that it would
like to know the size of. What a model reads is counted: text, thinking, calls and their results, tools with their schemas, the
schema of the answer, a few tokens around each turn and tool, and a flat number for each image, sound or file.

With the extra ``tokens`` text is counted by OpenAI's vocabulary ``o200k_base``, which the package has in itself: nothing is
fetched. It takes two seconds once and 140 MiB, and counts 4 MB a second. Without it, and for more than ``MOST_CHARS``, it is
counted by bytes of UTF-8. Other models' vocabularies differ: Claude's newer ones make up to a third more tokens of a text.

Source: Claude's documentation, "Vision" (an image is at most about 1,600 tokens); OpenAI's cookbook, "How to count tokens"
(the tokens around messages).
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from attrs import frozen

from streamkit.conversation.messages import Media, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from streamkit.events import Aside

#: What clients that ask for a count get where no upstream gives one: an estimate, an error; or an error always.
CountTokens: TypeAlias = Literal["estimate", "upstream", "off"]
#: The header that marks an estimate; its value says how it was made.
ESTIMATED: Final = "x-streamkit-count"
#: Bytes of UTF-8 in a token: prose in English has 4 to 4.5, in Chinese 3.5 to 4, code and JSON 3 to 3.5. Rather too many
#: tokens than too few, since clients cut their history by them.
TOKEN_BYTES: Final = 3.5
#: Around each turn and in front of the answer; around each tool, call and result.
TURN_TOKENS, TOOL_TOKENS = 4, 12
#: Of an image, and of anything else that is no text: what providers say of a large image, and of a page of a file.
IMAGE_TOKENS, FILE_TOKENS = 1_600, 3_000
VOCABULARY: Final = "o200k_base"
#: What is counted by the vocabulary: a quarter of a second's work.
MOST_CHARS: Final = 1_000_000
#: The package refuses a text of more than 200,000 tokens; a character is at most four of them.
PIECE_CHARS: Final = 40_000
_LOADING: Final = Lock()


@frozen
class Estimate:
    """A count of tokens that no provider gave, and how it was made."""

    tokens: int
    method: str  #: the vocabulary, or ``bytes``

    @property
    def headers(self) -> dict[str, str]:
        return {ESTIMATED: f"estimate; method={self.method}"}


async def estimate(request: Request) -> Estimate:
    """About how many tokens a request has. The work is done beside the event loop, where there is much."""
    return await asyncio.to_thread(estimated, request)


def estimated(request: Request) -> Estimate:
    """Estimate the input tokens of a request: its texts, and what is around them."""
    texts = list(_texts(request))
    tokens, method = _of_texts(texts)
    return Estimate(tokens + _around(request), method)


def _of_texts(texts: list[str]) -> tuple[int, str]:
    with _LOADING:  # several threads ask at once
        encode = _vocabulary() if sum(map(len, texts)) <= MOST_CHARS else None
    if encode is not None:
        pieces = (text[at : at + PIECE_CHARS] for text in texts for at in range(0, len(text), PIECE_CHARS))
        return sum(len(encode(piece)) for piece in pieces), VOCABULARY
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return -int(-size // TOKEN_BYTES), "bytes"


@cache
def _vocabulary() -> Callable[[str], list[int]] | None:
    """What makes tokens of a text; None without the extra ``tokens``."""
    if find_spec("bpe_openai") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it opens its data in a way that Python 3.11 deprecates
        module: Any = import_module("bpe_openai")  # only now, since it takes seconds and memory, and most never need it
        encode: Callable[[str], list[int]] = module.get_encoding(VOCABULARY).encode_ordinary
    return encode


def _texts(request: Request) -> Iterator[str]:
    for turn in request.turns:
        yield from _of_parts(turn.parts)
    for tool in request.tools:
        yield from (tool.name, tool.description or "")
        yield from _json(tool.parameters if tool.parameters is not None else tool.native_parameters)
    output = request.options.output
    if output is not None:
        yield from _json(output.schema)


def _of_parts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text() | Refusal() | Reasoning():
                yield part.text
            case ToolCall():
                yield part.name
                yield part.arguments
            case ToolResult():
                yield from _of_parts(part.parts)
            case Aside():
                yield from _json(part.raw)


def _json(value: Any) -> Iterator[str]:
    if value is not None:
        yield json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _around(request: Request) -> int:
    """The tokens of what has no text: roles, marks around tools, images and files."""
    tokens = TURN_TOKENS * (len(request.turns) + 1) + TOOL_TOKENS * len(request.tools)
    for turn in request.turns:
        for part in turn.parts:
            inner = part.parts if isinstance(part, ToolResult) else [part]
            tokens += TOOL_TOKENS * isinstance(part, ToolCall | ToolResult)
            tokens += sum(_of_media(media) for media in inner if isinstance(media, Media))
    return tokens


def _of_media(media: Media) -> int:
    """A text that came as a file is as long as it is."""
    if media.kind == "image":
        return IMAGE_TOKENS
    if media.data is not None and (media.media_type or "").startswith("text/"):
        return int(len(media.data) * 3 / 4 / TOKEN_BYTES)  # base64
    return FILE_TOKENS
