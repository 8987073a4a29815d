"""A client that leaves is heard of by its upstream, in every window, and nothing is left behind (limits.md C8)."""

import asyncio
import logging

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.web import reply, source
from streamkit.web.source import Timeouts
from tests.gateway.running import asking, behind, config_of, gateway, upstream_at
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
    "within the response": (FAULTS["silence mid-stream"], [True, False]),
}
CASES = [(name, stream) for name, (_, streams) in WINDOWS.items() for stream in streams]


def script(window: str, *, stream: bool) -> Script:
    make = WINDOWS[window][0]
    if make is headers_only:
        return headers_only(stream=stream)
    return make(DIALECT, whole=not stream) if window == "within the response" else make()


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
        spoken = stream and window == "within the response"
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
    assert await trials("within the response", client, "fin", 2, stream=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize(("window", "stream"), CASES)
async def test_two_hundred_times(window, stream, how):
    assert len(await trials(window, "anthropic", how, 200, stream=stream)) == 200


# -- a client that has all of it ---------------------------------------------------------------------------------------

#: What the last event of a whole answer has in it, in each dialect.
TERMINATORS = {
    "openai-chat": b"[DONE]",
    "openai-responses": b'"response.completed"',
    "anthropic": b"message_stop",
    "ollama": b'"done":true',
    "gemini": b'"finishReason"',
}


def left_open(upstream: str) -> Script:
    """A sound stream whose body stays open, as some servers leave it."""
    start = head(200, {"Content-Type": DIALECTS[upstream].media_type, "Transfer-Encoding": "chunked"})
    return Script((Send(start), *(Send(chunk(part)) for part in speech(upstream)), Hang()))


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("upstream", ["openai-chat", "openai-responses", "anthropic", "ollama"])
@pytest.mark.parametrize("client", TERMINATORS)
async def test_a_client_that_leaves_at_the_terminator_had_a_whole_answer(client, upstream, how, caplog, monkeypatch):
    """Codex does, at ``response.completed``, while the upstream's body may still be open."""
    monkeypatch.setattr(source, "DRAIN_S", 0.1)  # a second in life: tests/web/test_exchange.py
    monkeypatch.setattr(reply, "DRAIN_S", 0.1)
    caplog.set_level(logging.INFO)
    async with behind(left_open(upstream), dialect=upstream) as running:
        async with running.client(client, tools=True) as leaver:
            await leaver.read_until(TERMINATORS[client])
            leaver.leave(how)
            assert await running.outcomes() == {("one", "success"): 1}
        assert running.counted("requests_total", ending="whole", status="200") == 1
    [line] = [record.fields for record in caplog.records if record.name == "streamkit.gateway"]
    assert (line["ending"], line["status"], line["attempts"][0]["outcome"]) == ("whole", 200, "success")


async def test_a_client_that_leaves_before_the_terminator_had_none():
    """Though its upstream had said all that there was to say."""
    *spoken, last = speech(DIALECT)
    assert b"[DONE]" in last
    start = head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
    script = Script((Send(start), *(Send(chunk(part)) for part in spoken), Hang()))
    async with behind(script, dialect=DIALECT) as running, running.client(DIALECT) as leaver:
        await leaver.read_until(b'"finish_reason":"tool_calls"')
        leaver.leave("fin")
        assert await running.outcomes() == {("one", "client_left"): 1}


async def test_a_terminator_that_came_too_early_is_not_passed_and_makes_no_answer_whole():
    start = head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
    early = Script(
        (
            Send(start),
            Send(chunk(speech(DIALECT)[0])),
            Send(chunk(speech(DIALECT)[1])),
            Send(chunk(b"data: [DONE]\n\n")),
            Hang(),
        )
    )
    async with behind(early, dialect=DIALECT) as running, running.client(DIALECT) as leaver:
        await leaver.read_until(b'"content"')
        leaver.leave("rst")
        assert await running.outcomes() == {("one", "client_left"): 1}
