"""The gateway under attack: each threat of limits.md §3 that concerns it, T1 to T15, by its number.

Where a threat is met elsewhere: docs/explanation/threat-model.md.
"""

import asyncio
import contextlib
import gc
import gzip
import json
import re
import tracemalloc
import zlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import brotli
import orjson
import pytest
from backports import zstd

from streamkit import collect
from streamkit.conversation.messages import Choice, Response, Text, ToolCall
from streamkit.conversation.response_events import response_events
from streamkit.events import ProviderFailed, Verdict
from streamkit.gateway.app import private_app
from streamkit.gateway.config import Server
from streamkit.gateway.health import REMEMBERED, Ended, Health
from streamkit.gateway.metrics import Metrics, exposition
from streamkit.gateway.routing import Target
from streamkit.http_errors import decode_error
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.web.surfaces import surfaces
from streamkit.web.upstream import Secret, Upstream
from tests.framing.standard import events_of as browser_events
from tests.gateway.running import asking, behind, config_of, end_of, gateway, upstream_at
from tests.gateway.smuggling import CORPUS, FIRST, bodies
from tests.sampling import by_turns
from tests.web import faults
from tests.web.evil import EvilUpstream, Fin, Script, Send
from tests.web.faults import END_OF_CHUNKS, TEXT, as_asked, chunk, good, head, redirect, speech, whole
from tests.web.raw_client import RawClient
from tests.web.serving import eventually, serving

pytestmark = pytest.mark.usefixtures("no_leaks")
ROOT = Path(__file__).parents[2]
CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]
MIB = 1 << 20
CHUNKED = {"Transfer-Encoding": "chunked"}


async def read(answer, client):
    """An answer with status 200 as its client reads it."""
    assert answer.status == 200
    return await collect(source_of([bytes(answer.body)]), client)


def told(answer, client):
    return decode_error(answer.status, bytes(answer.body), client, answer.headers)


class Peak:
    """The most memory that Python's objects took meanwhile, beyond what they took before."""

    def __enter__(self):
        gc.collect()
        tracemalloc.start()
        self.bytes = 0
        return self

    def __exit__(self, *_exc):
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


# -- T1: injection into event streams ----------------------------------------------------------------------------------

#: What a model, or somebody through it, may write to forge an event of its own.
INJECTION = (
    "a\n\nevent: message_stop\ndata: {}\n\n b\r\rdata: [DONE]\r\r c\r\n\r\nid: 9\r\n\r\n: d\u2028\u2029\x85\x00"
    '"},"finish_reason":"stop"}]}\n{"done":true}'
)


def injected(dialect):
    """A response that has the injection in every place where a provider writes text."""
    call = ToolCall(
        0, f"c{INJECTION}", "weather", orjson.dumps({"city": INJECTION}).decode(), verdict=Verdict("complete")
    )
    choice = Choice(parts=[Text(INJECTION), call], stop_reason="tool_calls")
    return Response(dialect, id=f"i{INJECTION}", model=f"m{INJECTION}", created=1, choices=[choice], clean=True)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", CLIENTS)
async def test_t1_what_a_model_writes_forges_no_event(client, upstream):
    spoken = faults._written(upstream, list(response_events(injected(upstream))))
    async with behind(good(upstream, spoken), dialect=upstream) as running:
        answer = await running.asked(client, tools=True)
    response = await read(answer, client)
    assert response.clean
    assert response.choices[0].text == INJECTION
    assert orjson.loads(response.choices[0].tool_calls[0].arguments) == {"city": INJECTION}
    if client == "ollama":
        assert all(orjson.loads(line)["done"] is False for line in bytes(answer.body).split(b"\n")[:-2])
        return
    events = browser_events(bytes(answer.body))
    for kind, data, last_id in events:
        assert last_id == ""
        assert data == "[DONE]" or isinstance(orjson.loads(data), dict)
        assert kind in {"message", *(orjson.loads(data).get("type", "") for _ in [0] if data != "[DONE]")}
    assert sum(data == "[DONE]" for _, data, _ in events) == (client == "openai-chat")


@pytest.mark.parametrize("client", CLIENTS)
async def test_t1_what_an_upstream_says_of_its_failure_forges_none_either(client):
    body = orjson.dumps({"error": {"message": INJECTION, "type": INJECTION, "code": INJECTION, "param": INJECTION}})
    first = speech("openai-chat")[:4]
    async with behind(good("openai-chat", [*first, b"data: " + body + b"\n\n"])) as running:
        answer = await running.asked(client)
    response = await read(answer, client)
    assert not response.clean
    assert response.report.provider_error[1] == INJECTION
    if client != "ollama":
        assert "message_stop" not in {kind for kind, _, _ in browser_events(bytes(answer.body))}
        assert {last_id for _, _, last_id in browser_events(bytes(answer.body))} == {""}


# -- T2, T3, T4: indices, what does not end, what is too deep ----------------------------------------------------------


def delta(**members):
    document = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + orjson.dumps({**document, "choices": [{"index": 0, "finish_reason": None, **members}]}) + b"\n\n"


def endless(before, piece, after=b"", *, headers=None, until=64 * MIB):
    """A stream that begins well, and goes on with the same piece for more than any limit."""
    steps = [Send(head(200, {"Content-Type": "text/event-stream", **CHUNKED, **(headers or {})}))]
    steps += [Send(chunk(data)) for data in before if data]
    steps += [Send(chunk(piece))] * (until // len(piece) + 1)
    return Script((*steps, *([Send(chunk(after))] if after else []), Send(END_OF_CHUNKS)))


ARGUMENTS = b'{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%b"}}]},"finish_reason":null}]}'
CALL = delta(
    delta={
        "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a":"'}}]
    }
)
SPOKEN = list(speech("openai-chat")[:3])
WITHOUT_END = {
    "a line": endless([*SPOKEN, b"data: {"], b"x" * 64 * 1024),
    "an event": endless(SPOKEN, b"data: " + b"x" * 64 * 1024 + b"\n"),
    "arguments": endless([*SPOKEN, CALL], b"data: " + ARGUMENTS % (b"x" * 64 * 1024) + b"\n\n"),
    "a field's name": endless([*SPOKEN], b"x" * 64 * 1024),
}


@pytest.mark.parametrize("client", ["openai-chat", "anthropic", "ollama"])
@pytest.mark.parametrize("what", WITHOUT_END)
async def test_t3_what_never_ends_ends_with_an_error_in_bounded_memory(what, client):
    with Peak() as peak:
        async with behind(WITHOUT_END[what]) as running:
            answer = await running.asked(client, tools=True)
            assert (answer.status, answer.end) == (200, end_of(client, clean=False))
            await running.evil.requests[0].left()  # it is not read any further
            sent = sum(size for _, size in running.evil.requests[0].sent)
            del answer.reads[:]
    assert not (await read(answer, client)).clean
    assert b"(limit " in answer.body[-600:]  # the last frame says which
    assert sent < 40 * MIB  # of the 64 that there were to send; the kernel's buffers take some
    assert peak.bytes < 64 * MIB, f"{peak.bytes:,}"


@pytest.mark.parametrize("client", CLIENTS)
async def test_t3_a_whole_answer_that_never_ends_is_an_error(client):
    script = endless([b'{"id":"'], b"x" * 256 * 1024, headers={"Content-Type": "application/json"}, until=80 * MIB)
    with Peak() as peak:
        async with behind(script) as running:
            answer = await running.asked(client, stream=False)
            await running.evil.requests[0].left()
    assert answer.status == 502
    assert "body_bytes" in told(answer, client).message
    assert peak.bytes < 100 * MIB, f"{peak.bytes:,}"


@pytest.mark.parametrize("index", [2**63, 10**30, -1, 1.5, True, "0", "__proto__"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_t2_no_index_takes_memory(client, index):
    call = {"index": index, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    wild = delta(delta={"tool_calls": [{**call, "index": 7777}]}).replace(b"7777", json.dumps(index).encode())
    chunks = [*SPOKEN, wild, delta(delta={}, finish_reason="tool_calls"), b"data: [DONE]\n\n"]
    async with behind(good("openai-chat", chunks)) as running:
        await running.asked(client)  # what is made once
        with Peak() as peak:
            answer = await running.asked(client)
    clean = (await read(answer, client)).clean
    if isinstance(index, int) and index > 1:
        assert not clean
        assert b"index" in answer.body[-600:]
    else:
        assert clean
    assert peak.bytes < MIB, f"{peak.bytes:,}"


DEEP = {
    "100,000 levels": b'{"a":' * 100_000 + b"}" * 100_000,
    "a list of lists": b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "half a surrogate pair": b'{"id":"\\ud800","error":',
    "5,000 digits": b'{"created":' + b"1" * 5000 + b",",
    "no number": b'{"created":NaN',
    "no object": b"[1,2]",
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("what", "client"), by_turns(DEEP, ["openai-chat", "anthropic", "ollama"], 1, "traps"))
async def test_t4_json_that_is_a_trap_is_an_error_of_the_upstream(what, client, stream):
    script = (
        good("openai-chat", [*SPOKEN, b"data: " + DEEP[what] + b"\n\n"]) if stream else whole("openai-chat", DEEP[what])
    )
    async with behind(script) as running:
        answer = await running.asked(client, stream=stream)
        assert answer.end == end_of(client, clean=not stream)
        if stream:
            response = await read(answer, client)
            assert not response.clean
            assert response.report.provider_error[1]
        else:
            assert answer.status in {500, 502}
            assert told(answer, client).message
        assert (await running.asked(client, stream=stream)).end == answer.end  # and the gateway lives


# -- T5: who is asked --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["openai-chat", "gemini"])
async def test_t5_nothing_in_a_request_leads_to_another_host(dialect, monkeypatch):
    """One upstream has the model in its body, the other in its path."""
    async with EvilUpstream(whole("openai-chat")) as sink, EvilUpstream(as_asked(dialect)) as evil:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, sink.url)
        attempts = list(bodies(sink.url))
        assert len(attempts) >= 200
        async with gateway(config_of([upstream_at(evil, dialect, auth="bearer", key=Secret("own-key-01"))])) as running:
            answers = [await running.ask(path, body=body) for path, body in attempts]
        assert {answer.status for answer in answers} <= {200, 400, 404}
        assert (
            sum(answer.status == 200 for answer in answers) > len(answers) / 2
        )  # most were passed on, and nothing came of it
        assert (sink.connections, sink.garbage) == (0, [])
        assert not evil.garbage
        for request in evil.requests:
            assert request.header("host") == f"127.0.0.1:{evil.port}"
            assert request.header("authorization") == "Bearer own-key-01"
            assert sorted(dict(request.headers)) == [
                "accept", "accept-encoding", "authorization", "content-length", "content-type", "host", "user-agent",
            ]  # fmt: skip
            if dialect == "openai-chat":
                assert request.target == "/v1/chat/completions"
            else:
                assert re.fullmatch(r"/v1beta/models/[^/?#\s]+(/[^/?#\s]+)*:generateContent", request.target)
                segments = unquote(request.path).split("/")
                assert not {".", "..", ""} & set(request.path.split("/")[1:]), request.target
                assert segments[1:3] == ["v1beta", "models"]


@pytest.mark.parametrize("name", ["..", ".", "../x", "x/../../y", "..%2f..", "", "%2e%2e"])
@pytest.mark.parametrize("upstream", ["gemini", "bedrock"])
async def test_t5_a_models_name_does_not_climb_out_of_its_path(name, upstream):
    async with behind(as_asked(upstream), dialect=upstream) as running:
        answer = await running.asked(model=name, stream=False)
    root = "/v1beta/models/" if upstream == "gemini" else "/model/"
    assert answer.status in {200, 400}
    for request in running.evil.requests:
        assert request.path.startswith(root)
        assert not {".", ".."} & set(request.path.split("/"))


@pytest.mark.parametrize("client", CLIENTS)
async def test_t5_a_redirect_takes_no_key_along(client):
    async with (
        EvilUpstream(whole("openai-chat")) as sink,
        behind(
            redirect(f"{sink.url}/v1?k=canary"), upstream={"auth": "bearer", "key": Secret("own-key-01")}
        ) as running,
    ):
        answer = await running.asked(client)
    assert answer.status >= 400
    assert "which is not followed" in told(answer, client).message
    assert b"canary" not in answer.body
    assert str(sink.port) not in str(answer.body) + str(answer.headers)
    assert sink.connections == 0


# -- T6, T7: what passes from one connection to the other --------------------------------------------------------------

#: What clients, and what stands in front of a gateway, may send; none of it is an upstream's to know.
PRIVATE = {
    "Authorization": "Bearer canary",
    "Proxy-Authorization": "Basic canary",
    "X-Api-Key": "canary",
    "Api-Key": "canary",
    "X-Goog-Api-Key": "canary",
    "X-Goog-User-Project": "canary",
    "Cookie": "session=canary",
    "Connection": "keep-alive, x-canary, te",
    "X-Canary": "canary",
    "Keep-Alive": "timeout=canary",
    "TE": "trailers, canary",
    "Trailer": "canary",
    "Accept": "text/canary",
    "Accept-Language": "canary",
    "Accept-Encoding": "gzip, br, canary",
    "User-Agent": "canary/1",
    "X-Forwarded-For": "1.2.3.4",
    "X-Forwarded-Host": "canary",
    "X-Forwarded-Proto": "canary",
    "Forwarded": "for=canary",
    "X-Real-IP": "1.2.3.4",
    "Via": "1.1 canary",
    "Origin": "https://canary",
    "Referer": "https://canary",
    "X-Request-Id": "canary",
    "OpenAI-Organization": "canary",
    "OpenAI-Project": "canary",
    "X-Stainless-Lang": "canary",
    "X-Amz-Security-Token": "canary",
    "X-HTTP-Method-Override": "DELETE",
    "Content-Location": "canary",
    "Range": "bytes=0-1",
    "Idempotency-Key": "canary",
}
SENT = {"accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", CLIENTS)
async def test_t6_of_a_clients_headers_none_reaches_an_upstream_but_those_of_its_dialects_features(client, upstream):
    features = {"Anthropic-Beta": "feature-1", "Anthropic-Version": "2023-06-01", "OpenAI-Beta": "responses=v1"}
    server = {"keys": (Secret("canary"),)}  # or no page of a site could ask
    async with behind(as_asked(upstream), dialect=upstream, server=server) as running:
        assert (await running.asked(client, headers={**PRIVATE, **features})).status == 200
    [request] = running.evil.requests
    assert "canary" not in str(request.headers).replace(request.header("host"), "")
    assert "1.2.3.4" not in str(request.headers)
    names = [name for name, _ in request.headers]
    assert len(names) == len(set(names))
    passed = set()
    if upstream == "anthropic":
        passed = {"anthropic-version", *(["anthropic-beta"] if client == "anthropic" else [])}
    elif upstream == client and upstream.startswith("openai"):
        passed = {"openai-beta"}
    assert set(names) == SENT | passed
    assert request.header("accept-encoding") == "identity"


@pytest.mark.parametrize("case", CORPUS)
async def test_t7_no_bytes_of_one_request_are_taken_for_another(case):
    """Whatever a proxy in front makes of them, the upstream sees one request at most, and never the hidden one."""
    async with behind(as_asked("openai-chat")) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
        writer.write(CORPUS[case])
        await writer.drain()
        answer = b""
        with contextlib.suppress(TimeoutError):  # it waits for the rest of a body, or for the next request
            async with asyncio.timeout(0.3):
                while data := await reader.read(9999):
                    answer += data
        writer.close()
        await writer.wait_closed()
        await eventually(lambda: running.counted("streams_active") == 0)
        assert len(running.evil.requests) <= 1
        assert b"smuggled" not in b"".join(request.body for request in running.evil.requests)
        assert answer.count(b"HTTP/1.") <= 1 or len(running.evil.requests) == 0
        for request in running.evil.requests:
            assert request.json()["model"] == "first"
            assert set(dict(request.headers)) == SENT
        assert (await running.asked(stream=False)).status == 200
    assert not running.evil.garbage


def test_t7_the_corpus_hides_what_it_says():
    assert sum(b"smuggled" in case for case in CORPUS.values()) > 30
    assert sum(FIRST in case for case in CORPUS.values()) > 40


async def test_t7_two_whole_requests_in_one_connection_are_two():
    """So that the corpus is judged by a gateway that would take a second request if it were one."""
    one = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(FIRST) + FIRST
    async with behind(as_asked("openai-chat")) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
        writer.write(one + one)
        await running.evil.request(1)
        writer.close()
        await writer.wait_closed()
        del reader
        await eventually(lambda: running.counted("streams_active") == 0)
    assert len(running.evil.requests) == 2


# -- T8: those who take their time: see test_cancel.py, tests/web/test_surfaces.py and test_listening.py ---------------


async def test_t8_a_body_that_drips_holds_none_of_the_places_for_answers():
    async with behind(as_asked("openai-chat"), server={"max_streams": 1}) as running, RawClient(running.url) as slow:
        await slow.send_bytes(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{")
        await eventually(lambda: running.counted("streams_active") == 1)
        assert (await running.asked()).status == 200


# -- T9: what an upstream sends beside its answer ----------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
STREAM = b"".join(map(chunk, speech("openai-chat"))) + END_OF_CHUNKS
#: Headers of an upstream that try to become more than one of the client's, or too many.
HEADERS = {
    "a bare CR": b"x-request-id: a\rset-cookie: forged=1\r\n",
    "a bare LF": b"x-request-id: a\nset-cookie: forged=1\r\n",
    "an obs-fold": b"x-request-id: a\r\n set-cookie: forged=1\r\n",
    "a NUL": b"x-request-id: a\x00b\r\n",
    "an escape": b"x-request-id: \x1b[31mforged\r\n",
    "letters beyond ASCII": "x-request-id: forged\u2028\u00e9\r\n".encode(),
    "the gateway's own": b"x-accel-buffering: yes\r\nx-accel-redirect: /forged\r\ncache-control: public\r\n",
    "those of a connection": b"connection: upgrade\r\nupgrade: forged\r\ntrailer: forged\r\nkeep-alive: forged\r\n",
    "those of a site": b"set-cookie: forged=1\r\nlocation: /forged\r\naccess-control-allow-origin: forged\r\n",
    "a long one": b"x-request-id: " + b"a" * 5000 + b"\r\n",
    "one that is too long": b"x-request-id: " + b"a" * 100_000 + b"\r\n",
    "a hundred limits": b"".join(b"x-ratelimit-%d: 1\r\n" % number for number in range(100)),
    "a thousand": b"".join(b"x-ratelimit-%d: 1\r\n" % number for number in range(1000)),
    "half a megabyte": b"".join(b"x-%d: %b\r\n" % (number, b"a" * 5000) for number in range(100)),
}
#: What a client may find in an answer.
KNOWN = {
    "cache-control", "connection", "content-length", "content-type", "date", "server", "transfer-encoding",
    "x-accel-buffering", "request-id", "x-request-id", "x-upstream-request-id",
}  # fmt: skip


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("case", HEADERS)
async def test_t9_an_upstreams_headers_forge_none_of_the_clients(case, client):
    script = Script((Send(HEAD + HEADERS[case] + b"\r\n" + STREAM), Fin()))
    async with behind(script) as running:
        answer = await running.asked(client)
    assert (answer.status in {200, 502}, answer.end) == (True, "complete")
    assert "forged" not in str(
        {name: answer.headers[name] for name in answer.headers.keys() - {"x-upstream-request-id"}}
    )
    assert answer.headers.get("x-upstream-request-id", "a").isprintable()
    limits = {name for name in answer.headers if name.startswith("x-ratelimit-")}
    assert answer.headers.keys() - limits <= KNOWN
    assert len(limits) <= 64
    assert len(str(answer.headers)) < 8000
    if answer.status == 200:
        assert (await read(answer, client)).clean
        assert answer.headers["x-accel-buffering"] == "no"
    else:
        assert told(answer, client).message == "one: the upstream's response is not valid HTTP"


def bomb(prefix, size=160 * MIB):
    """Something that begins as an answer and becomes more blanks than may be unpacked."""
    packer = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
    parts = [packer.compress(prefix)]
    parts += [packer.compress(b" " * MIB) for _ in range(size // MIB)]
    return b"".join([*parts, packer.flush()])


@pytest.fixture(scope="module")
def packed():
    """Bombs are slow to make, so they are made once."""
    return {
        "stream": bomb(b"".join(SPOKEN) + b"data: {"),
        "whole": bomb(b'{"id":"'),
        "error": bomb(b'{"error":{"message":"'),
    }


@pytest.mark.parametrize("what", ["stream", "whole", "error"])
async def test_t9_a_bomb_of_an_upstream_is_unpacked_no_further_than_its_limit(what, packed):
    code = 400 if what == "error" else 200
    data = packed[what]
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip", "Content-Length": str(len(data))}
    script = Script((Send(head(code, headers)), Send(data), Fin()))
    with Peak() as peak:
        async with behind(script) as running:
            answer = await running.asked("anthropic", stream=what == "stream")
            await running.evil.requests[0].left()
    if what == "stream":
        response = await read(answer, "anthropic")
        assert not response.clean
        assert "limit " in response.report.provider_error[1]
    else:
        assert answer.status == (400 if what == "error" else 502)
        assert told(answer, "anthropic").message
    assert peak.bytes < (110 if what == "whole" else 64) * MIB, f"{peak.bytes:,}"


PACKERS = {"gzip": gzip.compress, "br": brotli.compress, "zstd": zstd.compress}


@pytest.mark.parametrize("encoding", PACKERS)
async def test_a_body_that_a_client_compressed_is_read(encoding):
    path, asked = asking("openai-responses")
    async with behind(as_asked("openai-chat")) as running:
        data = PACKERS[encoding](json.dumps(asked).encode())
        answer = await running.ask(path, body=data, headers={"content-encoding": encoding})
    assert answer.status == 200
    assert len(running.evil.requests) == 1


@pytest.mark.parametrize("encoding", PACKERS)
async def test_t9_a_bomb_of_a_client_is_unpacked_no_further_than_its_limit(encoding):
    data = PACKERS[encoding](b" " * (96 * MIB))
    path, _ = asking("openai-chat")
    async with behind(as_asked("openai-chat")) as running:
        with Peak() as peak:
            answer = await running.ask(path, body=data, headers={"content-encoding": encoding})
    assert answer.status == 413
    assert not running.evil.requests
    assert peak.bytes < 64 * MIB, f"{peak.bytes:,}"  # 32 MiB may be read


@pytest.mark.parametrize("encoding", ["br", "zstd"])
async def test_t9_no_encoding_that_nobody_asked_for_is_read_as_an_answer(encoding):
    """Those that are refused as such: tests/web/upstream/test_sending.py."""
    async with behind(good("openai-chat", headers={"Content-Encoding": encoding})) as running:
        answer = await running.asked("anthropic")
    assert answer.status == 502 or not (await read(answer, "anthropic")).clean
    assert b"message_stop" not in answer.body


# -- T10: ids ----------------------------------------------------------------------------------------------------------


async def test_t10_there_is_nothing_to_come_back_to_and_ids_cannot_be_guessed():
    async with behind(as_asked("openai-responses"), dialect="openai-responses") as running:
        answers = [await running.asked("openai-responses") for _ in range(20)]
        ids = {answer.headers["x-request-id"] for answer in answers}
        assert len(ids) == 20
        assert all(re.fullmatch(r"req_[0-9A-Za-z]{22}", name) for name in ids)  # 131 bits
        for name in ("evil-7", *ids):
            for path in (f"/v1/responses/{name}", f"/v1/responses/{name}?stream=true&starting_after=0"):
                found = await running.get(path, headers={"Last-Event-ID": name})
                assert (found.status, found.json()["error"]["code"]) == (404, "model_not_found") or found.status == 404
    assert len(running.evil.requests) == 20


# -- T11: half of a tool call ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ["openai-chat", "anthropic", "ollama"])
async def test_t11_an_answer_that_was_cut_is_no_success_however_well_http_ends(client, upstream):
    data = b"".join(speech(upstream))
    cuts = range(1, len(data), max(1, len(data) // 16))
    endings = []
    async with behind(*(good(upstream, [data[:cut]]) for cut in cuts), dialect=upstream) as running:
        for _ in cuts:
            answer = await running.asked(client, tools=True)
            if answer.status != 200:
                assert answer.end == "complete"
                assert told(answer, client).message
                endings.append("error")
                continue
            response = await read(answer, client)
            assert answer.end == end_of(client, clean=response.clean)
            endings.append("whole" if response.clean else "broken")
            if response.clean:  # the cut was behind the completion point
                assert response.choices[0].text == TEXT
                assert orjson.loads(response.choices[0].tool_calls[0].arguments)
            else:
                ends = b"[DONE]", b"message_stop", b"response.completed", b'"done":true'
                assert not any(end in answer.body for end in ends)
    assert endings.index("broken") < len(endings) // 2  # errors first, then broken streams, whole ones at the end
    assert endings.count("broken") > 5
    assert "whole" not in endings[:8]


# -- T13: names without end --------------------------------------------------------------------------------------------


def series_of(metrics):
    return {line.rpartition(" ")[0] for line in exposition(metrics).decode().splitlines() if not line.startswith("#")}


async def test_t13_names_of_models_paths_and_methods_make_no_series():
    async with behind(as_asked("openai-chat"), models=("m-*",)) as running:

        async def some(number):
            await running.asked(model=f"m-{number}", stream=False)
            await running.asked(model=f"other-{number}", stream=False)
            await running.get(f"/v1/models/{number}")
            await running.get(f"/{number}")
            await running.ask(f"/v1/models/{number}", method=f"M{number}")

        await some(0)
        few = series_of(running.metrics)
        for number in range(1, 40):
            await some(number)
        assert series_of(running.metrics) == few


async def test_t13_what_is_remembered_of_models_is_bounded():
    """Where a route renames by a star, clients choose what the upstream is asked for, and so what is remembered of it."""
    failed = ProviderFailed("rate_limit", "busy", retry_after_s=3600.0)
    for busy in (REMEMBERED // 2, 3 * REMEMBERED):
        health, keys = Health(), [("one", f"m-{number}") for number in range(3 * REMEMBERED)]
        for number, key in enumerate(keys):
            begun = health.begin(key, StreamReport(), 0)
            if number < busy:
                health.end(key, NOWHERE, Ended("http_429", failed, StreamReport(), begun, 0))
        assert len(health.known) == REMEMBERED
        kept = keys[:busy] if busy < REMEMBERED else keys[-REMEMBERED:]  # those that rest, or the latest
        assert set(kept) <= health.known.keys()
    busy = faults.status(429, headers={"Retry-After": "60"})
    async with EvilUpstream(busy) as evil:
        renamed = Target(upstream=upstream_at(evil, "openai-chat"), model="there-*")
        async with gateway(config_of([renamed.upstream], models=("m-*",), targets=(renamed,))) as running:
            for number in range(5):
                assert (await running.asked(model=f"m-{number}")).status == 429
    assert [request.json()["model"] for request in evil.requests] == [f"there-{number}" for number in range(5)]


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_threat_model_has_each_threat_and_names_tests_that_there_are():
    page = (ROOT / "docs" / "explanation" / "threat-model.md").read_text("utf-8")
    rows = re.findall(r"^\| (T\d+) \|(.*)\|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == [f"T{number}" for number in range(1, 18)]
    here = {name.split("_")[1] for name in globals() if re.match(r"test_t\d+_", name)}
    for name, row in rows:
        shown = row.rpartition("|")[2]
        files = re.findall(r"`(tests/[\w/]+\.py)`", shown)
        named = re.findall(r"`test_(t\d+)_…`", shown)
        assert files or named, name
        assert all((ROOT / path).is_file() for path in files), name
        assert set(named) <= here, name
    assert here == set(re.findall(r"`test_(t\d+)_…`", page))


# -- T15: a page of the web whose name was turned to this machine ----------------------------------------------


NOWHERE = Upstream(name="one", dialect="openai-chat", base_url="http://127.0.0.1:9/v1", auth="none")
PATHS = [
    "/", "/healthz", "/readyz", "/v1/models", "/api/tags", "/v1beta/models", "/v1/messages", "/v1/responses", "/nothing",
    "/api/nothing", "/metrics",
]  # fmt: skip
METHODS = ["GET", "HEAD", "POST", "OPTIONS", "DELETE", "PROPFIND"]


async def answered(url, path, host, *, method="GET", version="1.1"):
    """The status of a request with this ``Host``; None: without any."""
    where = urlsplit(url)
    named = "" if host is None else f"Host: {host}\r\n"
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    start = f"{method} {path} HTTP/{version}\r\n{named}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}"
    writer.write(start.encode())
    try:
        async with asyncio.timeout(5):
            return int((await reader.readuntil(b"\r\n")).split()[1]), await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("keys", [(), (Secret("k" * 10),)], ids=["no keys", "keys"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "localhost.evil.example"])
async def test_t15_on_loopback_another_name_is_refused_before_anything_else(host, method, keys):
    async with gateway(config_of([NOWHERE], server={"keys": keys})) as running:
        for path in PATHS:
            status, rest = await answered(running.url, path, host, method=method)
            assert status == 421, path
            assert (b"server.hosts" in rest) is (method != "HEAD"), path


@pytest.mark.parametrize("client", surfaces())
async def test_t15_it_is_refused_in_the_clients_dialect(client):
    path = next(path for path in surfaces()[client].generate if "{" not in path or client == "gemini")
    async with gateway(config_of([NOWHERE])) as running:
        named = re.sub(r"\{[^:]*:[^}]*\}", "m", path)
        answer = await running.ask(named, headers={"host": "evil.example"}, body=b"{}")
    assert answer.status == 421
    if client == "ai-sdk":  # useChat shows the body
        assert answer.body.startswith(b"this gateway does not serve the host name 'evil.example'")
        return
    failed = decode_error(answer.status, bytes(answer.body), client)
    assert failed.message.startswith("this gateway does not serve the host name 'evil.example'")


async def test_t15_a_web_socket_of_such_a_page_is_not_opened():
    upgrade = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13"}
    headers = {"host": "evil.example", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", **upgrade}
    async with gateway(config_of([NOWHERE])) as running:
        assert (await running.get("/v1/responses", headers=headers)).status == 421


@pytest.mark.parametrize(
    ("server", "host", "served"),
    [
        ({}, "localhost", True),
        ({}, "127.0.0.1:1", True),
        ({}, "[::1]:8080", True),
        ({}, "host.docker.internal:8080", True),
        ({"hosts": ("llm.example",)}, "llm.example", True),
        ({"hosts": ("llm.example",)}, "localhost:8080", True),
        ({"hosts": ("llm.example",)}, "evil.example", False),
        ({"hosts": ("llm.example",), "keys": (Secret("k" * 10),)}, "evil.example", False),
        ({"hosts": ("*",)}, "evil.example", True),
        ({"keys": (Secret("k" * 10),)}, "llm.example", False),  # a proxy on this machine passes names that are in hosts
        ({"host": "0.0.0.0"}, "gateway:8080", True),  # in a container, under its service's name
        ({"host": "0.0.0.0", "hosts": ("gateway",)}, "evil.example", False),
        ({"host": "::1"}, "evil.example", False),
        ({"host": "localhost"}, "evil.example", False),
    ],
)
async def test_t15_which_names_are_served(server, host, served):
    async with gateway(config_of([NOWHERE], server=server)) as running:
        status, _ = await answered(running.url, "/", host)
    assert status == (200 if served else 421)


async def test_t15_who_names_none_is_served():
    async with gateway(config_of([NOWHERE])) as running:
        assert (await answered(running.url, "/", None, version="1.0"))[0] == 200


@pytest.mark.parametrize(
    ("server", "host", "status"),
    [
        ({}, "localhost:1", 200),
        ({}, "host.docker.internal", 200),
        ({}, "evil.example", 421),
        ({"keys": (Secret("k" * 10),)}, "evil.example", 421),  # /metrics asks for none
        ({"hosts": ("metrics.example",)}, "metrics.example", 200),
        ({"hosts": ("*",)}, "evil.example", 200),
        ({"private": "0.0.0.0:9090"}, "10.1.2.3:9090", 200),  # a pod, as Prometheus finds it
        ({"private": "0.0.0.0:9090"}, "evil.example", 421),  # loopback is among all interfaces
        ({"private": "metrics.example:9090"}, "metrics.example:9090", 200),
        ({"private": "off"}, "evil.example", 421),
    ],
)
async def test_t15_the_private_listener_is_for_the_same_names(server, host, status):
    app = private_app(Metrics(), lambda: Server(**server).private_hosts)
    async with serving(app) as port:
        for path in ("/metrics", "/healthz"):
            for method in ("GET", "HEAD"):
                assert (await answered(f"http://127.0.0.1:{port}", path, host, method=method))[0] == status
        assert (await answered(f"http://127.0.0.1:{port}", "/nothing", host))[0] == (404 if status == 200 else 421)
