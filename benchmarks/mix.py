"""Streams that look like recorded ones, for everyone: drawn from ``shapes.json`` by a seed, so the same on any machine.

Lengths of streams and of fragments, what a stream says and what its provider adds are drawn as the recordings have them.
Chat's are written here, by eight providers' habits; those of other dialects by our encoders.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

from benchmarks import content, inputs
from benchmarks.content import SEED, Call, Content
from benchmarks.inputs import CHAT, Input

#: The least, the nine deciles and the greatest of what was measured of recorded streams, and shares of them.
SHAPES: Final = Path(__file__).with_name("shapes.json")
#: Dialects whose recordings are enough to say anything of.
DIALECTS: Final = ("openai-chat", "anthropic", "openai-responses", "gemini")
#: Streams of each dialect.
STREAMS: Final = 60
#: How providers begin a chunk: their members in their order, ``%d`` for the number of the stream.
HEADS: Final = (
    (
        '{"id":"chatcmpl-DuLe5uYcQLe3hznEQpmI0pr8q%d","object":"chat.completion.chunk","created":1782321945,"model":"gpt-5.2-2025-12-11",'
        '"service_tier":"default","system_fingerprint":"fp_6c0d7f1e2a",'
    ),
    (
        '{"id":"gen-1777319882-wHdEm7r8yf7gRyPRho%d","object":"chat.completion.chunk","created":1777319882,"model":"maker/model-5",'
        '"provider":"Maker",'
    ),
    (
        '{"id":"7027d986-3c59-a37a-9a5f-50713e0%d","object":"chat.completion.chunk","created":1770772293,"model":"model-3-mini",'
        '"system_fingerprint":"fp_2a885414fb",'
    ),
    (
        '{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1770770839,"model":"llama-3.3-70b-versatile",'
        '"system_fingerprint":"fp_f8b414701e",'
    ),
    '{"id": "20260313050307%d", "created": 1773349387, "object": "chat.completion.chunk", "model": "glm-4.7-flash", ',
    '{"id":"a5d3ef55-0903-5b1f-746a-%d","object":"chat.completion.chunk","created":1762103809,"model":"code-fast-1",',
    '{"model":"deepseek-v4-pro","id":"7334c29d-a064-437e-9d15-%d","object":"chat.completion.chunk","created":1781043323,',
    (
        '{"created":1754716412,"id":"chatcmpl-C2WBYGbjjGZj4CJN%d","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk",'
        '"system_fingerprint":"fp_ee1d74bde0",'
    ),
)
FILTERED: Final = (
    '"content_filter_results":{"hate":{"filtered":false,"severity":"safe"},'
    '"violence":{"filtered":false,"severity":"safe"}},'
)


@cache
def mix(dialect: str, count: int = STREAMS) -> tuple[Input, ...]:
    """``count`` streams of a dialect."""
    shape = json.loads(SHAPES.read_text("utf-8"))[dialect]
    dice = random.Random(f"{SEED} {dialect}")  # noqa: S311 - reproducible, nothing secret
    found = []
    for number in range(count):
        habits = {name for name, share in shape["share_of_streams"].items() if dice.random() < share}
        said = _content(shape, habits, dice, number)
        name = f"{dialect} {number}"
        found.append(
            _chat(name, said, habits, dice, number) if dialect == CHAT else inputs.encoded(name, said, dialect)
        )
    return tuple(found)


def drawn(deciles: Sequence[int], dice: random.Random) -> int:
    """A number as they are distributed; between two deciles any is as likely as another."""
    place = dice.random() * (len(deciles) - 1)
    low, high = deciles[int(place)], deciles[min(int(place) + 1, len(deciles) - 1)]
    return round(low + (high - low) * (place - int(place)))


def _content(shape: dict[str, Any], habits: set[str], dice: random.Random, number: int) -> Content:
    left = max(1, drawn(shape["events"], dice) - 3)  # the start, the stop and the counts say nothing
    prose = "".join(content.words(4 * left * max(1, shape["fragment_chars"][5]) // 3 + 50, seed=number))
    reasoning = left // 3 if "reasoning" in habits else 0
    calls = (left - reasoning) * 2 // 3 if "calls" in habits else 0
    texts = _fragments(prose, left - calls, shape["fragment_chars"], dice)
    found: list[Call] = []
    for name in ("get_weather", "search")[: 1 + (calls > 20)] if calls else ():
        sizes = [max(2, drawn(shape["fragment_chars"], dice)) for _ in range(max(1, calls // (1 + (calls > 20))))]
        arguments = content.document(max(96, sum(sizes)), seed=number)
        places = sorted({min(place, len(arguments)) for place in accumulate(sizes)} - {len(arguments)})
        pieces = tuple(arguments[begin:end] for begin, end in pairwise([0, *places, len(arguments)]))
        found.append(Call(f"call_{number}{name}", name, pieces))
    order = tuple(index for index, call in enumerate(found) for _ in call.fragments)
    return Content(text=texts[reasoning:], reasoning=texts[:reasoning], calls=tuple(found), order=order)


def _fragments(prose: str, count: int, deciles: Sequence[int], dice: random.Random) -> tuple[str, ...]:
    found, at = [], 0
    for _ in range(count):
        size = max(1, min(drawn(deciles, dice), 60))
        found.append(prose[at : at + size] or ".")
        at += size
    return tuple(found)


def _chat(name: str, said: Content, habits: set[str], dice: random.Random, number: int) -> Input:
    head = dice.choice(HEADS) % number
    loose = ": " in head  # as Python's json writes it
    filtered = FILTERED if "filter results" in habits else ""
    payloads = []
    for at, (delta, finish) in enumerate(inputs.deltas(said)):
        changed = delta
        if "reasoning in two members" in habits and delta.startswith('{"reasoning_content":'):
            text = delta.removeprefix('{"reasoning_content":').removesuffix("}")
            changed = (
                f'{{"reasoning":{text},"reasoning_details":[{{"type":"reasoning.text","text":{text},"index":0}}]}}'
            )
        if "role in each event" in habits and at and delta != "{}":
            changed = f'{{"role":"assistant",{changed[1:]}'
        reason = f'"{finish}"' if finish else "null"
        logprobs = '"logprobs":null,' if number % 2 else ""
        choice = f'"choices":[{{{filtered}"index":0,"delta":{changed},{logprobs}"finish_reason":{reason}}}]'
        usage = f',"usage":{inputs.usage_json(at)}' if "usage in each event" in habits else ""
        padding = inputs.random_padding(dice) if "padding" in habits else ""
        payloads.append(f"{head}{choice}{usage}{padding}}}")
    payloads.append(f'{head}"choices":[],"usage":{inputs.usage_json(said.deltas)}}}')
    if loose:
        payloads = [json.dumps(json.loads(payload), ensure_ascii=False) for payload in payloads]
    documents = tuple(payload.encode() for payload in payloads)
    body = b"".join(b"data: %b\n\n" % payload for payload in [*documents, b"[DONE]"])
    return Input(name, CHAT, body, documents, said)
