"""Tokens in spans, by recordings whose upstreams counted them again and again: once, as last told, never 0 for unknown (observe.md O4)."""

import json
from contextlib import suppress

import pytest

from tests.corpora import CORPORA, streams
from tests.gateway.running import leg
from tests.gateway.test_telemetry import by_kind, traced
from tests.otel.spans import Spans
from tests.sampling import few
from tests.web.faults import good

USAGE = "gen_ai.usage."
#: The counts that conventions have, by what a provider calls them. Of several, the sum (Gemini counts thoughts beside the text).
GEMINI = {
    "input_tokens": ("promptTokenCount", "toolUsePromptTokenCount"),
    "cache_read.input_tokens": ("cachedContentTokenCount",),
    "output_tokens": ("candidatesTokenCount", "thoughtsTokenCount"),
    "reasoning.output_tokens": ("thoughtsTokenCount",),
}
CHAT = {"input_tokens": ("prompt_tokens",), "output_tokens": ("completion_tokens",)}
CHAT_DETAILS = {
    "cache_read.input_tokens": ("prompt_tokens_details", "cached_tokens"),
    "reasoning.output_tokens": ("completion_tokens_details", "reasoning_tokens"),
}


def documents(body):
    """The JSON objects of an event stream, as far as they came whole."""
    for line in body.split(b"\n")[:-1]:
        if line.startswith(b"data:"):
            with suppress(ValueError):
                yield json.loads(line[5:])


def counted(dialect, body):
    """The last counts in a stream by the names of the conventions; empty: none came."""
    member = "usageMetadata" if dialect == "gemini" else "usage"
    *_, last = {}, *(each[member] for each in documents(body) if isinstance(each, dict) and each.get(member))
    names = GEMINI if dialect == "gemini" else CHAT
    found = {name: [last[each] for each in members if each in last] for name, members in names.items()}
    counts = {name: sum(values) for name, values in found.items() if values and None not in values}
    if dialect == "openai-chat":
        for name, (outer, inner) in CHAT_DETAILS.items():
            if (value := (last.get(outer) or {}).get(inner)) is not None:
                counts[name] = value
    return counts


async def told(upstream, chunks, client="openai-chat"):
    """The tokens in the one span that has any, of a stream of these chunks."""
    spans = Spans()
    async with traced(spans, leg(good(upstream, chunks), dialect=upstream)) as running:
        await running.asked(client)
        await running.outcomes()
    server, (call,) = by_kind(spans)
    assert not [name for name in server.attributes if name.startswith(USAGE)]
    return {name.removeprefix(USAGE): count for name, count in call.attributes.items() if name.startswith(USAGE)}


def several():
    """Recordings in which tokens are counted more than once."""
    found = [] if CORPORA is None else streams()
    kinds = [each for each in found if each.dialect in {"gemini", "openai-chat"} and each.framing == "sse"]
    member = {"gemini": b'"usageMetadata"', "openai-chat": b'"completion_tokens"'}
    return [each for each in kinds if each.body.count(member[each.dialect]) > 1]


RECORDED = few(several(), 1, "usage", name=lambda stream: stream.name)


@pytest.mark.skipif(CORPORA is None, reason="no corpora: set STREAMKIT_CORPORA to their folder")
@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("stream", RECORDED)
async def test_the_last_count_of_a_recording_is_told_once(stream, client):
    assert await told(stream.dialect, stream.chunks, client) == counted(stream.dialect, stream.body)


@pytest.mark.skipif(CORPORA is None, reason="no corpora: set STREAMKIT_CORPORA to their folder")
@pytest.mark.parametrize("stream", RECORDED)
async def test_of_a_recording_that_is_cut_the_counts_that_came_are_told(stream):
    for part in (0.1, 0.5, 0.9):
        body = stream.body[: int(len(stream.body) * part)]
        assert await told(stream.dialect, [body]) == counted(stream.dialect, body)


def event(document):
    kind = f"event: {document['type']}\n" if "type" in document else ""
    return f"{kind}data: {json.dumps(document)}\n\n".encode()


def chat(**members):
    return event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **members})


def continuous(number, text="", reason=None):
    """A chunk of a server that counts in each (vLLM's ``continuous_usage_stats``)."""
    delta = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return chat(choices=[delta], usage={"prompt_tokens": 7, "completion_tokens": number, "total_tokens": 7 + number})


def started(fresh, read, written, output):
    """The first event of Anthropic's dialect, which leaves the cache out of what is input."""
    counts = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": counts}
    return event({"type": "message_start", "message": message})


CONTINUOUS = [*(continuous(number, "la ") for number in range(1, 5)), continuous(5, reason="stop"), b"data: [DONE]\n\n"]
CACHED = [
    started(3, 1000, 20, 1),
    event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}),
    event({"type": "content_block_stop", "index": 0}),
    event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}}),
    event({"type": "message_stop"}),
]
#: What servers write that count at the end alone.
ZEROS = [started(0, 0, 0, 0), *CACHED[1:4]]
UNCOUNTED = [chat(choices=[{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}])]


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
@pytest.mark.parametrize(
    ("upstream", "chunks", "counts"),
    [
        ("openai-chat", CONTINUOUS, {"input_tokens": 7, "output_tokens": 5}),
        ("openai-chat", CONTINUOUS[:2], {"input_tokens": 7, "output_tokens": 2}),
        ("openai-chat", UNCOUNTED, {}),
        ("anthropic", ZEROS, {}),
        (
            "anthropic",
            CACHED,
            {
                "input_tokens": 1023,
                "cache_read.input_tokens": 1000,
                "cache_creation.input_tokens": 20,
                "output_tokens": 12,
            },
        ),
    ],
    ids=["counted in each chunk", "the same, cut", "cut without a count", "cut behind zeros", "cached"],
)
async def test_the_last_count_is_told_with_its_cache_and_none_where_none_came(upstream, chunks, counts, client):
    assert await told(upstream, chunks, client) == counts
