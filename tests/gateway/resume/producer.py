"""A process that writes an answer into a store: ``python -m tests.gateway.resume.producer URL SEED PACE_S LEASE_S``.

It prints the log's id, and ``finished`` with the log's fate at its end.
"""

from __future__ import annotations

import asyncio
import random
import sys

from streamkit.resume import Meta
from streamkit.resume.redis_store import RedisSettings, RedisStore


def answer(seed: int) -> list[bytes]:
    """The events of an answer, of which no two are alike."""
    draw = random.Random(seed)
    head = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"'
    events = [
        b'%b%d %b"},"finish_reason":null}]}\n\n'
        % (head, number, bytes(draw.choices(b"abcdefgh", k=draw.randint(1, 300))))
        for number in range(draw.randint(20, 200))
    ]
    return [*events, b"data: [DONE]\n\n"]


async def produce(url: str, seed: int, pace_s: float, lease_s: float) -> None:
    store = RedisStore(url, settings=RedisSettings(lease_s=lease_s, flush_s=0.02))
    log = await store.create(store.new_id(), Meta(dialect="openai-chat", owner="me"))
    print(log.id, flush=True)
    events = answer(seed)
    draw = random.Random(seed + 1)
    for event in events[:-1]:
        log.append(event)
        await asyncio.sleep(draw.random() * pace_s)
    log.end("done", events[-1])
    await store.close()
    print("finished", log.lost, flush=True)


if __name__ == "__main__":
    url, seed, pace_s, lease_s = sys.argv[1:]
    asyncio.run(produce(url, int(seed), float(pace_s), float(lease_s)))
