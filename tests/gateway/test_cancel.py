"""A client that leaves is heard of by its upstream, in every window, and nothing is left behind (limits.md C8)."""

import asyncio

import orjson
import pytest

from streamkit.web.source import Timeouts
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream, Hang, Script, Send
from tests.web.faults import FAULTS, chunk, head, silence_before_headers, speech
from tests.web.leaks import in_use
from tests.web.raw_client import RawClient

PATIENT = Timeouts(first_byte_s=60, idle_s=60)
DIALECT = "openai-chat"


def headers_only(*, stream: bool) -> Script:
    media = "text/event-stream" if stream else "application/json"
    return Script((Send(head(200, {"Content-Type": media, "Transfer-Encoding": "chunked"})), Hang()))


def role_only() -> Script:
    first = speech(DIALECT)[0]
    start = head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
    return Script((Send(start), Send(chunk(first)), Hang()))


#: Where the upstream is when its client leaves.
WINDOWS = {
    "before its headers": (silence_before_headers, [True, False]),
    "before its first byte": (headers_only, [True, False]),
    "before the model spoke": (role_only, [True]),
    "within the answer": (FAULTS["silence mid-stream"], [True, False]),
}
CASES = [(name, stream) for name, (_, streams) in WINDOWS.items() for stream in streams]


def script(window: str, *, stream: bool) -> Script:
    make = WINDOWS[window][0]
    if make is headers_only:
        return headers_only(stream=stream)
    return make(DIALECT, whole=not stream) if window == "within the answer" else make()


async def leave(
    url: str, client: str, how: str, upstream: EvilUpstream, number: int, *, stream: bool, spoken: bool
) -> float:
    """One trial: seconds from leaving until the upstream saw it."""
    path, body = asking(client, stream=stream)
    loop = asyncio.get_running_loop()
    async with RawClient(url) as leaver:
        await leaver.send("POST", path, body=orjson.dumps(body))
        request = await upstream.request(number)
        if spoken:
            await leaver.read_headers()
        else:
            await asyncio.sleep(0.02)  # until the gateway has read what the upstream wrote
        left = loop.time()
        leaver.leave(how)
        return await request.left() - left


async def trials(window: str, client: str, how: str, times: int, *, stream: bool) -> list[float]:
    upstream = EvilUpstream(script(window, stream=stream))
    async with upstream, gateway(config_of([upstream_at(upstream, DIALECT, timeouts=PATIENT)])) as running:
        before = await in_use()
        spoken = stream and window == "within the answer"
        waits = [
            await leave(running.url, client, how, upstream, number, stream=stream, spoken=spoken)
            for number in range(times)
        ]
        assert await running.outcomes() == {("one", "client_left"): times}
        left = await in_use() - before
        assert not left, f"{window}, {how}: {sorted(left)}"
        return waits


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize(("window", "stream"), CASES)
async def test_the_upstream_hears_of_it(window, stream, how):
    assert await trials(window, "anthropic", how, 3, stream=stream)


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "ollama", "gemini"])
async def test_it_is_so_for_clients_of_every_dialect(client):
    assert await trials("within the answer", client, "fin", 2, stream=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize(("window", "stream"), CASES)
async def test_two_hundred_times(window, stream, how):
    assert len(await trials(window, "anthropic", how, 200, stream=stream)) == 200
