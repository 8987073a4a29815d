"""The number of tokens in a request: ask one upstream for it, or estimate it, and return it to a client.

``web/upstream/requests.py`` builds the request to an upstream and parses its response. If no upstream can count, refusing is
worse than estimating: Claude Code then requests a completion of one token for each text whose size it wants to know. The
estimate counts what a model reads: text, thinking, calls and their results, tools with their schemas, the schema of the
response, a few tokens around each turn and tool, and a fixed number for each image, sound or file.

With the extra ``tokens``, text is counted with OpenAI's vocabulary ``o200k_base``, which the package contains: nothing is
downloaded. Loading it takes two seconds and 140 MiB; it counts 4 MB a second. Without it, and for more than ``MOST_CHARS``
characters, tokens are estimated from the bytes of UTF-8. Other models' vocabularies differ: Claude's newer ones make up to a
third more tokens from a text.

Source: clients.md §10.4; Claude's documentation, "Vision" (an image is at most about 1,600 tokens); OpenAI's cookbook, "How to
count tokens" (the tokens around messages).
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import orjson
from aiohttp import web
from attrs import define, frozen

from streamkit.conversation.messages import Media, Reasoning, Refusal, Request, Text, Tool, ToolCall, ToolResult
from streamkit.dialects import client_named
from streamkit.errors import UsageError
from streamkit.events import Aside, ProviderFailed
from streamkit.web.opening import UNFIT
from streamkit.web.refusals import Refused, no_count
from streamkit.web.side_requests import SideRequest
from streamkit.web.surfaces import Ask, surfaces
from streamkit.web.upstream import count_of
from streamkit.web.upstream.requests import NO_HEADERS, as_gateway_failure

#: What a client gets if no upstream can count: an estimate, an error (``upstream``), or always an error (``off``).
CountTokens: TypeAlias = Literal["estimate", "upstream", "off"]
ESTIMATED: Final = "x-streamkit-count"  #: The response header that marks an estimate. Its value names the method.
#: Bytes of UTF-8 in a token: English prose has 4 to 4.5, Chinese 3.5 to 4, code and JSON 3 to 3.5. An estimate should be too
#: high rather than too low, since clients shorten their history by it.
TOKEN_BYTES: Final = 3.5
#: Tokens around each turn and before the response; tokens around each tool, call and result.
TURN_TOKENS, TOOL_TOKENS = 4, 12
#: Tokens of an image, and of other media without text: what providers report for a large image and for a page of a file.
IMAGE_TOKENS, FILE_TOKENS = 1_600, 3_000
VOCABULARY: Final = "o200k_base"
#: Longer texts are not counted with the vocabulary, since that takes more than a quarter of a second.
MOST_CHARS: Final = 1_000_000
#: The most characters that are counted in one call. The package refuses a text of more than 200,000 tokens, and a character
#: has at most four tokens.
PIECE_CHARS: Final = 40_000
_LOADING: Final = Lock()


@frozen
class Estimate:
    """An estimated number of tokens, and how it was estimated."""

    tokens: int
    method: str  #: the vocabulary's name, or ``bytes``

    @property
    def headers(self) -> dict[str, str]:
        return {ESTIMATED: f"estimate; method={self.method}"}


async def estimate(request: Request) -> Estimate:
    """Estimate the tokens of a request in a thread, so that the event loop is not blocked."""
    return await asyncio.to_thread(estimated, request)


def estimated(request: Request) -> Estimate:
    """Estimate the input tokens of a request: the tokens of its texts and a fixed number for everything else. Blocks."""
    texts = list(_texts(request))
    tokens, method = _of_texts(texts)
    return Estimate(tokens + _around(request), method)


def _of_texts(texts: list[str]) -> tuple[int, str]:
    with _LOADING:  # several threads may call this function at once; the vocabulary must be loaded only once
        encode = _vocabulary() if sum(map(len, texts)) <= MOST_CHARS else None
    if encode is not None:
        pieces = (text[at : at + PIECE_CHARS] for text in texts for at in range(0, len(text), PIECE_CHARS))
        return sum(len(encode(piece)) for piece in pieces), VOCABULARY
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return -int(-size // TOKEN_BYTES), "bytes"


@cache
def _vocabulary() -> Callable[[str], list[int]] | None:
    """Return the function that splits a text into tokens; None without the extra ``tokens``."""
    if find_spec("bpe_openai") is None:
        return None
    with warnings.catch_warnings():
        # the module opens its data in a way that Python 3.11 deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        module: Any = import_module("bpe_openai")  # imported late: it takes seconds and memory, and is rarely needed
        encode: Callable[[str], list[int]] = module.get_encoding(VOCABULARY).encode_ordinary
    return encode


def _texts(request: Request) -> Iterator[str]:
    for turn in request.turns:
        yield from _of_parts(turn.parts)
    yield from _of_tools(request.tools)
    output = request.options.output
    if output is not None:
        yield from _json(output.schema)


def _of_tools(tools: Iterable[Tool]) -> Iterator[str]:
    for tool in tools:
        yield from (tool.name, tool.description or "")
        yield from _json(tool.parameters if tool.parameters is not None else tool.native_parameters)


def estimated_tools(tools: Sequence[Tool]) -> int:
    """Estimate the tokens of definitions by their bytes, which takes less than 10 µs for a tool."""
    size = sum(len(text.encode("utf-8", "replace")) for text in _of_tools(tools))
    return TOOL_TOKENS * len(tools) - int(-size // TOKEN_BYTES)


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
    """Return the tokens of everything but text: roles, marks around tools, images and files."""
    tokens = TURN_TOKENS * (len(request.turns) + 1) + TOOL_TOKENS * len(request.tools)
    for turn in request.turns:
        for part in turn.parts:
            inner = part.parts if isinstance(part, ToolResult) else [part]
            tokens += TOOL_TOKENS * isinstance(part, ToolCall | ToolResult)
            tokens += sum(_of_media(media) for media in inner if isinstance(media, Media))
    return tokens


def _of_media(media: Media) -> int:
    """Estimate the tokens of media. A text file is counted by its length."""
    if media.kind == "image":
        return IMAGE_TOKENS
    if media.data is not None and (media.media_type or "").startswith("text/"):
        return int(len(media.data) * 3 / 4 / TOKEN_BYTES)  # 4 characters of base64 are 3 bytes
    return FILE_TOKENS


# -- counts by upstreams -----------------------------------------------------------------------------------------------


#: Failures that the request itself causes; they are never replaced with an estimate.
_OF_THE_REQUEST: Final = frozenset({"invalid_request", "too_large"})
COUNT_BYTES: Final = 64 * 1024  #: the largest response to a count, which is one number in a small object


@define
class Count(SideRequest[int]):
    """One count by an upstream that can count."""

    body_bytes = COUNT_BYTES

    def read(self, body: bytes) -> int:
        return count_of(self.upstream, body)


async def first_count(
    ask: Ask,
    counts: Iterable[Count],
    mode: CountTokens,
    fetch: Callable[[Count], Awaitable[int | ProviderFailed]] = Count.fetch,
) -> web.Response:
    """Return the first count that an upstream in ``counts`` gives, else an estimate, as a response to the client.

    Raises Refused if there is no count and ``mode`` allows no estimate: with ``not_found`` if no upstream can count, else with
    the last failure. Also raises Refused if an upstream says that the request itself is wrong.
    """
    failed, headers = no_count(ask.model), NO_HEADERS
    for count in counts:
        if mode == "off" or count.upstream.token_count is None:
            continue
        tokens = await fetch(count)
        if isinstance(tokens, int):
            return count_response(ask.dialect, tokens, count.upstream_headers)
        failed = as_gateway_failure(tokens, [count.upstream], count.client_headers)
        headers = count.upstream_headers
    if mode != "estimate" or (failed.type in _OF_THE_REQUEST and failed.code != UNFIT):
        raise Refused(failed, headers)
    found = await estimate(ask.request)
    return count_response(ask.dialect, found.tokens, found.headers)


def count_response(dialect: str, tokens: int, headers: Mapping[str, str] = NO_HEADERS) -> web.Response:
    """Return the response with a count for a client of ``dialect``. Raises UsageError for a dialect without token counts."""
    name = client_named(dialect)[0].name
    surface = surfaces().get(name)
    if surface is None or not surface.count:
        ask = ", ".join(name for name, surface in surfaces().items() if surface.count)
        raise UsageError(f"{name} has no path for token counts; these dialects have one: {ask}")
    body = orjson.dumps(surface.count_answer(tokens))
    return web.Response(body=body, content_type="application/json", headers=headers)
