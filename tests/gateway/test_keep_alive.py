"""Behind a real nginx: keep-alives bridge an upstream's silence, and nothing is held back on the way (limits.md C10).

nginx's defaults are kept but for ``proxy_read_timeout``, which is 60 s there and 2 s here; the exhaustive form waits for the
60 s. An upstream that is as silent directly behind it shows that it does cut.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, asynccontextmanager

import orjson
import pytest
from aiohttp import ClientPayloadError, ClientSession
from attrs import frozen

from streamkit import collect, decode_response
from streamkit.testing import source_of
from streamkit.web.source import Timeouts
from tests.gateway.fault_matrix import CLIENTS
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import Delay, EvilUpstream, Script, Send, Until
from tests.web.faults import END_OF_CHUNKS, TEXT, asks_for_stream, chunk, good, head, speech, whole
from tests.web.nginx import nginx
from tests.web.raw_client import RawClient

UPSTREAM = "openai-chat"
PATIENT = Timeouts(first_byte_s=300, idle_s=300)
#: What each client's own readers pass over: a comment where lines are events, an event that says nothing elsewhere.
FORMS = {
    "openai-chat": b": keep-alive\n\n",
    "openai-responses": b": keep-alive\n\n",
    "anthropic": b'event: ping\ndata: {"type":"ping"}\n\n',
    "ollama": b'{"model":"","created_at":"1970-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":false}\n',
    "gemini": b'data: {"candidates":[{"content":{"parts":[],"role":"model"},"index":0}]}\r\n\r\n',
}
SHORT = "proxy_read_timeout 2s;"


@frozen
class Heard:
    """What came through nginx."""

    status: int
    body: bytes
    whole: bool  #: the transfer ended as it should


async def hear(url: str, path: str, body: dict) -> Heard:
    async with ClientSession() as session, session.post(url + path, json=body) as response:
        heard = bytearray()
        try:
            async for data in response.content.iter_any():
                heard += data
        except ClientPayloadError:
            return Heard(response.status, bytes(heard), whole=False)
        return Heard(response.status, bytes(heard), whole=True)


async def hear_all(url: str, model: str = "silent") -> tuple[dict[str, Heard], Heard, dict[str, Heard]]:
    """Every client's stream, Gemini's as an array, and every client's whole answer, all at once."""
    path, body = asking("gemini", model=model)
    heard = await asyncio.gather(
        *(hear(url, *asking(client, model=model)) for client in CLIENTS),
        hear(url, path.removesuffix("?alt=sse"), body),
        *(hear(url, *asking(client, stream=False, model=model)) for client in CLIENTS),
    )
    return dict(zip(CLIENTS, heard[:5], strict=True)), heard[5], dict(zip(CLIENTS, heard[6:], strict=True))


def silent_for(before_s: float, within_s: float):
    """An upstream's script: silent before its headers, and within the stream again; of the model ``mid``, there only."""

    def play(request):
        first = [] if request.json()["model"] == "mid" else [Delay(before_s)]
        if not asks_for_stream(request, UPSTREAM):
            return Script((*first, *whole(UPSTREAM).steps))
        steps = good(UPSTREAM).steps
        half = len(steps) // 2
        return Script((*first, *steps[:half], Delay(within_s), *steps[half:]))

    return play


@asynccontextmanager
async def behind_nginx(program, folder, upstream: EvilUpstream, *, directives: str = "", **server):
    """The URL of an nginx in front of a gateway in front of the upstream."""
    config = config_of([upstream_at(upstream, UPSTREAM, timeouts=PATIENT)], server=server)
    async with gateway(config) as running:
        port = int(running.url.rpartition(":")[2])
        with nginx(program, port, folder, directives=directives) as url:
            yield url


async def assert_survived(streams: dict[str, Heard], array: Heard, wholes: dict[str, Heard]) -> None:
    for client, heard in streams.items():
        form = FORMS[client]
        assert (heard.status, heard.whole) == (200, True), client
        assert heard.body.startswith(form), client
        assert form in heard.body[heard.body.index(b"cold") :], client
        read = await collect(source_of([heard.body]), client)
        assert (read.clean, read.text, len(read.tool_calls)) == (True, TEXT, 1), client
    assert (array.status, array.whole, array.body[:1]) == (200, True, b" ")
    parts = [part for event in orjson.loads(array.body) for part in event["candidates"][0]["content"]["parts"]]
    assert "".join(part.get("text", "") for part in parts) == TEXT
    for client, heard in wholes.items():
        assert (heard.status, heard.whole, heard.body[:1]) == (200, True, b" "), client
        answer = decode_response(heard.body, client)
        assert (answer.clean, answer.text, len(answer.tool_calls)) == (True, TEXT, 1), client


def assert_timed_out(heard: Heard) -> None:
    assert heard.status == 504
    assert b"nginx" in heard.body  # and not the gateway's own


async def test_silence_is_bridged_for_every_client_in_its_own_form(nginx_program, tmp_path):
    async with (
        EvilUpstream(silent_for(3.5, 3.5)) as upstream,
        behind_nginx(
            nginx_program, tmp_path, upstream, directives=SHORT, keep_alive_s=0.5, whole_keep_alive=True
        ) as url,
    ):
        await assert_survived(*await hear_all(url))


async def test_without_keep_alives_nginx_ends_the_same_answers(nginx_program, tmp_path):
    async with (
        EvilUpstream(silent_for(60, 60)) as upstream,
        behind_nginx(nginx_program, tmp_path, upstream, directives=SHORT, keep_alive_s=1000) as url,
    ):
        ended, within = await asyncio.gather(hear_all(url), hear_all(url, "mid"))
        streams, array, wholes = ended
        for heard in (*streams.values(), array, *wholes.values()):
            assert_timed_out(heard)
        streams, array, _ = within
        for client, heard in streams.items():
            assert (heard.status, heard.whole) == (200, False), client
            assert not (await collect(source_of([heard.body]), client)).clean, client
        assert not array.whole
        for request in upstream.requests:
            if request.played_at is None:
                await request.left()  # nginx closed its connection, and so the gateway the upstream's


async def test_nginx_holds_nothing_back(nginx_program, tmp_path):
    """Each word is sent when all have read the one before: if one is held back, nobody ever gets the next."""
    gates = {orjson.dumps(word): asyncio.Event() for word in re.findall(r"\S+\s*", TEXT)}
    steps = [Send(head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}))]
    for data in speech(UPSTREAM):
        steps += [Until(gate) for word, gate in gates.items() if word in data]
        steps.append(Send(chunk(data)))
    path, body = asking("gemini")
    asked = [*map(asking, CLIENTS), (path.removesuffix("?alt=sse"), body)]
    async with (
        EvilUpstream(Script((*steps, Send(END_OF_CHUNKS)))) as upstream,
        behind_nginx(nginx_program, tmp_path, upstream) as url,
        AsyncExitStack() as stack,
    ):
        clients = [await stack.enter_async_context(RawClient(url)) for _ in asked]
        for client, (path, body) in zip(clients, asked, strict=True):
            await client.send("POST", path, headers={"Content-Type": "application/json"}, body=orjson.dumps(body))
        for word, gate in gates.items():
            gate.set()
            for client in clients:
                await client.read_until(word)
        for client in clients:
            assert (await client.read_to_end()).end == "complete"


@pytest.mark.exhaustive
@pytest.mark.timeout(240)
async def test_ninety_silent_seconds_behind_nginx_as_it_is_installed(nginx_program, tmp_path):
    for name in ("gateway", "direct"):
        (tmp_path / name).mkdir()
    async with (
        EvilUpstream(silent_for(90, 20)) as upstream,
        behind_nginx(nginx_program, tmp_path / "gateway", upstream, whole_keep_alive=True) as url,
    ):
        with nginx(nginx_program, upstream.port, tmp_path / "direct") as direct:
            path, body = asking(UPSTREAM, model="silent")
            heard, cut = await asyncio.gather(hear_all(url), hear(direct, path, body))
    assert_timed_out(cut)
    await assert_survived(*heard)
