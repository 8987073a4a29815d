"""The proxy passes what a provider says as it comes, records that, and nothing that it may not know."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import threading

import pytest
from aiohttp import ClientSession, web
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.lab.recorder import TIMEOUTS, base_url
from streamkit.lab.recording import writer as writing
from streamkit.lab.recording.writer import RecorderLimits
from tests.lab.recorder_running import QUICK, recording
from tests.web.evil import Delay, EvilUpstream, Fin, Hang, Rst, Script, Send
from tests.web.faults import END_OF_CHUNKS, chunk, good, head, refuse, speech
from tests.web.raw_client import RawClient, ask
from tests.web.serving import answering, eventually, serving

pytestmark = pytest.mark.usefixtures("no_leaks")
STREAM = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
PATH = "/v1/chat/completions"
KEYS = {"header": "planted-header-1a2b", "query": "planted-query-3c4d", "cookie": "planted-cookie-5e6f"}
#: Cut in characters, lines and events, with comments, other line ends, and bytes that are no UTF-8.
QUIRKY = [b": hi\r\n\r", b'\ndata: {"a":"\xf0\x9f', b'\x99\x82"}\n\n', b"\xff\xfe\n", b"data: [DO", b"NE]\n\n", b"\n"]  # fmt: skip
PAUSES_S = (0.002, 0.004, 0.03, 0.002, 0.01, 0.002, 0.005)


def streamed(parts, *ends, pause_s=0.01):
    pieces = [step for part in parts for step in (Send(chunk(part)), Delay(pause_s))]
    return Script((Send(head(200, STREAM)), *pieces, *(ends or (Send(END_OF_CHUNKS),))))


def quirky():
    pieces = [step for part, s in zip(QUIRKY, PAUSES_S, strict=True) for step in (Delay(s), Send(chunk(part)))]
    return Script((Send(head(200, STREAM)), *pieces, Delay(0.002), Send(END_OF_CHUNKS)))


async def test_reads_are_those_that_are_seen_directly_in_the_client_and_in_the_file(tmp_path):
    async with EvilUpstream(quirky()) as upstream, recording(upstream.url, tmp_path) as proxy:
        direct = await ask(upstream.url, PATH, body=b"{}")
        through = await ask(proxy.url, PATH, body=b"{}")
        found = await proxy.recorded()
        sent_at = [at for at, _ in upstream.requests[1].sent][1:-1]
    assert b"".join(QUIRKY) == direct.body == through.body == found.body
    seen = [data for _, data in direct.reads]
    assert [data for _, data in through.reads] == seen == [read.data for read in found.reads] == QUIRKY
    assert found.ending == "whole"
    start = sent_at[0] - found.reads[0].t
    for read, sent, came in zip(found.reads, sent_at, through.reads, strict=True):
        assert abs(read.t + start - sent) < 0.25
        assert came[0] - sent < 0.25


@pytest.mark.parametrize(
    ("script", "kind", "client_end"),
    [
        (streamed(QUIRKY[:2]), "whole", "complete"),
        (streamed(QUIRKY[:2], Fin()), "cut", "cut"),
        (streamed(QUIRKY[:2], Rst()), "reset", "cut"),
        (streamed(QUIRKY[1:3], Hang()), "timeout:idle", "cut"),
        (Script((Send(head(200, {"Content-Length": "9"})), Send(b"abc"), Delay(0.02), Fin())), "cut", "cut"),
        (Script((Send(head(200, {"Content-Length": "3"})), Send(b"abc"))), "whole", "complete"),
        (Script((Send(head(204)),)), "whole", "complete"),
        (Script((Hang(),)), "timeout:first_byte", "complete"),
        (Script((Rst(),)), "unreachable", "complete"),
        (refuse(), "unreachable", "complete"),
    ],
)
async def test_the_end_is_what_it_was(tmp_path, script, kind, client_end):
    timeouts = QUICK if kind.startswith("timeout") else TIMEOUTS
    async with EvilUpstream(script) as upstream, recording(upstream.url, tmp_path, timeouts=timeouts) as proxy:
        answer = await ask(proxy.url, PATH, body=b"{}")
        found = await proxy.recorded()
    assert (found.ending, answer.end) == (kind, client_end)
    assert proxy.told[0].end == kind
    if found.response is None:
        assert answer.status == (504 if kind.startswith("timeout") else 502)
        assert "error" in answer.json()
        assert proxy.told[0].status is None
    else:
        assert answer.status == found.response.status
        assert answer.body == found.body
        assert (found.end.reads, found.end.bytes) == (len(found.reads), len(found.body))


async def test_a_client_that_leaves_is_told_upstream_at_once(tmp_path):
    async with EvilUpstream(streamed(QUIRKY[:1], Hang())) as upstream, recording(upstream.url, tmp_path) as proxy:
        for number, wanted in enumerate([QUIRKY[0], b""]):
            async with RawClient(proxy.url) as client:
                await client.send("POST", PATH, body=b"{}")
                request = await upstream.request(number)
                await client.read_until(wanted)
                client.leave("rst")
            await request.left()
            assert (await proxy.recorded(number)).ending == "client_left"


async def test_what_is_under_way_as_the_proxy_ends_is_shut_down(tmp_path):
    async with EvilUpstream(streamed(QUIRKY[:1], Hang()), paths={"/silent": [Script((Hang(),))]}) as upstream:
        async with recording(upstream.url, tmp_path) as proxy:
            asked = [asyncio.create_task(ask(proxy.url, path, body=b"{}")) for path in (PATH, "/silent")]
            for number in range(2):
                await upstream.request(number)
            await asyncio.sleep(0.05)
        answers = await asyncio.gather(*asked)
        assert [(await proxy.recorded(number)).ending for number in range(2)] == ["shut_down", "shut_down"]
    assert answers[0].end == "cut"


# -- what passes -------------------------------------------------------------------------------------------------------


async def test_requests_and_answers_pass_as_they_are_but_for_what_belongs_to_a_connection(tmp_path):
    headers = {"Content-Type": "a/b", "Content-Length": "2", "X-Own": "up", "Keep-Alive": "timeout=5",
               "Connection": "keep-alive, X-Hop", "X-Hop": "1", "Location": "http://127.0.0.1:1/", "Set-Cookie": "a=b"}  # fmt: skip
    body = b'\x1f\x8b no gzip {"n":18446744073709551616}'
    async with (
        EvilUpstream(Script((Send(head(307, headers) + b"hi"),))) as upstream,
        recording(upstream.url + "/base/", tmp_path) as proxy,
        RawClient(proxy.url) as client,
    ):
        sent = {"Authorization": "Bearer k", "Content-Encoding": "gzip", "X-Own": "down", "TE": "trailers",
                "Connection": "TE, X-Hop", "X-Hop": "1", "Accept-Encoding": "br", "Expect": "100-continue"}  # fmt: skip
        await client.send("PATCH", "/a%2Fb//c?x=%20&y=1", headers=sent, body=body)
        answer = await client.read_to_end()
        found = await proxy.recorded()
        request = upstream.requests[0]
    assert (request.method, request.target, request.body) == ("PATCH", "/base/a%2Fb//c?x=%20&y=1", body)
    assert dict(request.headers) == {
        "host": upstream.url.removeprefix("http://"), "authorization": "Bearer k", "content-encoding": "gzip",
        "x-own": "down", "accept-encoding": "identity", "content-length": str(len(body)),
    }  # fmt: skip
    assert (answer.status, bytes(answer.body)) == (307, b"hi")
    passed = {name: answer.headers.get(name) for name in ("content-type", "x-own", "location", "set-cookie", "x-hop")}
    assert passed == {
        "content-type": "a/b", "x-own": "up", "location": "http://127.0.0.1:1/", "set-cookie": "a=b", "x-hop": None,
    }  # fmt: skip
    assert (found.request.body, found.request.path) == (body, "/base/a%2Fb//c?x=%20&y=1")
    assert found.request.method == "PATCH"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE"])
async def test_requests_without_a_body_pass_without_one(tmp_path, method):
    script = Script((Send(head(200, {"Content-Length": "2"}) + (b"" if method == "HEAD" else b"ok")),))
    async with EvilUpstream(script) as upstream, recording(upstream.url, tmp_path) as proxy:
        answer = await ask(proxy.url, "/v1/models", method=method)
        found = await proxy.recorded()
    assert (upstream.requests[0].method, upstream.requests[0].body) == (method, b"")
    assert (answer.status, answer.headers["content-length"]) == (200, "2")
    assert found.body == (b"" if method == "HEAD" else b"ok")


async def test_an_answer_that_is_compressed_all_the_same_passes_as_it_is(tmp_path):
    packed = gzip.compress(b"data: 1\n\n")
    answer = Script((Send(head(200, {"Content-Encoding": "gzip", "Content-Length": str(len(packed))}) + packed),))
    async with EvilUpstream(answer) as upstream, recording(upstream.url, tmp_path) as proxy:
        came = await ask(proxy.url, PATH, body=b"{}")
        found = await proxy.recorded()
    assert bytes(came.body) == found.body == packed
    assert came.headers["content-encoding"] == found.response.headers["content-encoding"] == "gzip"


async def test_nothing_waits_for_what_comes_behind(tmp_path):
    """The client has each part while the provider still waits for it to say so."""
    heard = asyncio.Event()

    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b"one", b"two"):
            await response.write(part)
            await heard.wait()
            heard.clear()
        return response

    async with (
        serving(answering(answer)) as port,
        recording(f"http://127.0.0.1:{port}", tmp_path) as proxy,
        RawClient(proxy.url) as client,
    ):
        await client.send("POST", PATH, body=b"{}")
        for part in (b"one", b"two"):
            await client.read_until(part)
            heard.set()
        await client.read_to_end()
        assert [read.data for read in (await proxy.recorded()).reads] == [b"one", b"two"]


@pytest.mark.parametrize(
    ("path", "headers", "status", "words"),
    [
        ("/v1/models", {"Host": "evil.example"}, 421, "the recorder does not serve the host name 'evil.example'"),
        (PATH, {"Origin": "https://evil.example"}, 403, "web pages"),
        (PATH, {"Sec-Fetch-Site": "cross-site"}, 403, "web pages"),
        ("/v1/../admin", {}, 400, "must not contain"),
        ("/v1/%2e%2E%2fadmin", {}, 400, "must not contain"),
        ("http://127.0.0.1:9/v1/models", {}, 400, "must begin with"),
    ],
)
async def test_what_may_not_ask_is_refused_and_nobody_is_asked(tmp_path, path, headers, status, words):
    async with EvilUpstream(good("openai-chat")) as upstream, recording(upstream.url, tmp_path) as proxy:
        answer = await ask(proxy.url, path, method="GET", headers=headers)
    assert (answer.status, upstream.requests) == (status, [])
    assert words in answer.json()["error"]["message"]
    assert list(tmp_path.iterdir()) == []


async def test_a_web_socket_is_refused_clearly(tmp_path):
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "eA==",
        "Sec-WebSocket-Version": "13",
    }
    async with EvilUpstream(good("openai-chat")) as upstream, recording(upstream.url, tmp_path) as proxy:
        answer = await ask(proxy.url, "/v1/responses", method="GET", headers=upgrade)
    assert (answer.status, upstream.requests) == (426, [])
    assert "does not serve WebSockets" in answer.json()["error"]["message"]


async def test_pages_of_this_machine_may_ask(tmp_path):
    headers = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"}
    async with EvilUpstream(good("openai-chat")) as upstream, recording(upstream.url, tmp_path) as proxy:
        assert (await ask(proxy.url, PATH, body=b"{}", headers=headers)).status == 200


@pytest.mark.parametrize(
    "text", ["api.example.com", "ftp://x", "https://", "https://u:p@x", "https://x/?a", "https://x/#", "https://a b"]
)
def test_an_address_that_can_not_be_is_refused(text):
    with pytest.raises(UsageError):
        base_url(text)


# -- what is written ---------------------------------------------------------------------------------------------------


async def test_planted_keys_are_passed_and_written_nowhere(tmp_path):
    text = " ".join(KEYS.values()) + " 18446744073709551616"
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "n": 2**64}).encode()
    headers = {"Authorization": f"Bearer {KEYS['header']}", "Cookie": f"a=1; session={KEYS['cookie']}"}
    echo = [b'data: {"a":"planted-he', b'ader-1a2b"}\n\n', b"data: more\n\n"]
    async with (
        EvilUpstream(good("openai-chat"), streamed(echo)) as upstream,
        recording(upstream.url, tmp_path) as proxy,
    ):
        for _ in range(2):
            answer = await ask(proxy.url, f"{PATH}?api_key={KEYS['query']}&a=1", headers=headers, body=body)
        sound, echoed = await proxy.recorded(0), await proxy.recorded(1)
        assert upstream.requests[0].body == body
        assert upstream.requests[0].target == f"{PATH}?api_key={KEYS['query']}&a=1"
        assert upstream.requests[0].header("authorization") == headers["Authorization"]
        assert upstream.requests[0].header("cookie") == headers["Cookie"]
        assert bytes(answer.body) == b"".join(echo)
        assert b"planted" not in proxy.written()
    assert b"18446744073709551616" in sound.request.body
    assert sound.request.path == f"{PATH}?a=1"
    assert set(sound.removed) >= {"request.headers", "request.path", "request.body"}
    assert sound.body == b"".join(speech("openai-chat"))
    assert (echoed.ending, proxy.told[1].file_end, proxy.told[1].end) == ("withheld", "withheld", "whole")


@pytest.mark.parametrize(
    ("path", "named", "found"),
    [
        ("/v1/messages", {}, ("anthropic", "")),
        ("/openai/deployments/x/chat/completions", {}, ("openai-chat", "")),
        (PATH, {"dialect": "openai-chat", "provider": "deepseek"}, ("openai-chat", "deepseek")),
    ],
)
async def test_the_dialect_is_the_paths_or_the_answers_unless_it_is_named(tmp_path, path, named, found):
    async with EvilUpstream(good("openai-chat")) as upstream, recording(upstream.url, tmp_path, **named) as proxy:
        await ask(proxy.url, path, body=b"{}")
        kept = await proxy.recorded()
    assert (kept.dialect, kept.provider) == found
    assert re.fullmatch(rf"\d{{8}}T\d{{6}}\.\d{{6}}Z-[0-9a-f]{{16}}-{found[0]}\.stream\.jsonl", proxy.told[0].file.name)


async def test_a_stream_is_whole_though_its_file_is_full_or_the_disk_is_slow(tmp_path, monkeypatch):
    is_slow, write = threading.Event(), os.write

    def slow(descriptor, data):
        is_slow.wait(10)
        return write(descriptor, data)

    parts = [b"x" * 1000] * 60
    limits = RecorderLimits(file_bytes=20_000)
    async with EvilUpstream(streamed(parts, pause_s=0)) as upstream:
        async with recording(upstream.url, tmp_path / "full", limits=limits) as proxy:
            answer = await ask(proxy.url, PATH, body=b"{}")
            full = await proxy.recorded()
        assert (bytes(answer.body), full.ending) == (b"".join(parts), "truncated_by_recorder")
        monkeypatch.setattr(writing.os, "write", slow)
        slower = evolve(RecorderLimits(), queue_bytes=10_000)
        async with recording(upstream.url, tmp_path / "slow", limits=slower) as proxy:
            for _ in range(2):
                answer = await ask(proxy.url, PATH, body=b"{}")
                assert (bytes(answer.body), answer.end) == (b"".join(parts), "complete")
            is_slow.set()
            await eventually(lambda: len(proxy.told) == 2)
    assert proxy.recorder.dropped > 0


@pytest.mark.exhaustive
async def test_a_gibibyte_passes_and_its_file_stops_where_it_may(tmp_path):
    part, times = b"x" * (1 << 20), 1024

    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(times):
            await response.write(part)
        return response

    size = 0
    async with (
        serving(answering(answer)) as port,
        recording(f"http://127.0.0.1:{port}", tmp_path) as proxy,
        ClientSession() as session,
        session.get(f"{proxy.url}/v1/big") as through,
    ):
        async for data in through.content.iter_any():
            size += len(data)
        found = await proxy.recorded()
    assert size == times * len(part)
    assert proxy.told[0].end == "whole"
    assert found.ending == "truncated_by_recorder"
    assert 60 * len(part) < proxy.told[0].file.stat().st_size <= 64 * len(part)


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_connection_that_the_provider_has_just_closed_is_not_the_clients_trouble(method, tmp_path):
    script = good("openai-chat")
    async with EvilUpstream(script, Script((Fin(),)), script) as upstream, recording(upstream.url, tmp_path) as proxy:
        for _ in range(2):
            answer = await ask(proxy.url, PATH, method=method, body=b"{}")
            assert (answer.status, answer.end) == (200, "complete")
            await proxy.recorded()
    assert [request.connection for request in upstream.requests] == [0, 0, 1]
