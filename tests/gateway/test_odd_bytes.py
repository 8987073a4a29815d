"""Headers with bytes that are no UTF-8 or that no header may have, either way, and keys where none belong."""

import asyncio
import json
import logging

import orjson
import pytest

from streamkit.gateway.log import JSONLines, Text
from streamkit.gateway.metrics import exposition
from streamkit.http_errors import decode_error, encode_error
from streamkit.web.upstream import Secret
from tests.gateway.running import asking, behind, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream, Script, Send
from tests.web.faults import as_asked, speech

pytestmark = pytest.mark.usefixtures("no_leaks")
#: Headers that are read or passed on, and some that are not.
READ = ["content-type", "retry-after", "retry-after-ms", "date", "x-amzn-errortype", "x-request-id", "x-ratelimit-a", "location", "x-any"]  # fmt: skip
ODD = [b"\xff\xfe", b"a\xffb", b"12\xff", b"\xed\xa0\x80", b"a\x7fb", "ü".encode(), b'application/json; charset="\xff"']
#: Keys as vendors make them, and one of the gateway's own that looks like nothing.
PASTED = ["sk-canary0123456789abcdef", "Bearer canary0123456789", "eyJhbGciOiJI.canary0123456789.c2ln", "AIzacanary0123456789abcdefghij"]  # fmt: skip
OWN, LET_IN = "plain words canary 123", "another canary of 456"


def answer(status, header, value, body):
    head = b"HTTP/1.1 %d X\xff\r\nContent-Length: %d\r\n%b: %b\r\n\r\n"
    return Script((Send(head % (status, len(body), header.encode(), value) + body),))


# -- odd bytes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "bedrock"])
@pytest.mark.parametrize("status", [200, 302, 400, 429])
async def test_no_byte_of_an_upstreams_header_is_the_gateways_failure(dialect, status, caplog):
    scripts = []
    body = b"".join(speech(dialect, whole=True)) if status == 200 else b'{"error":{"message":"no"}}'
    path, asked = asking("openai-chat", stream=False)
    async with behind(lambda _: scripts[-1], dialect=dialect) as running:
        for header, value in ((header, value) for header in READ for value in ODD):
            scripts.append(answer(status, header, value, body))
            came = await running.ask(path, body=orjson.dumps(asked))
            assert came.status == {200: 200, 302: 502, 400: 400, 429: 429}[status], (header, value)
            assert all(text.isascii() and text.isprintable() for text in came.headers.values())
    assert not [record for record in caplog.records if record.exc_info]


def test_an_error_named_in_a_header_of_odd_bytes_is_read():
    failed = decode_error(400, b'{"message":"no"}', "bedrock", {"x-amzn-ErrorType": "Validation\udcffException"})
    assert (failed.type, failed.native_type) == ("invalid_request", "validation�Exception")
    assert orjson.loads(encode_error(failed, "openai-chat").body)["error"]["message"] == "no"


EXPECTED = {
    "/v1/nothing": b"HTTP/1.1 404 Not Found",
    "/nothing": b"HTTP/1.1 404 Not Found",
    "/v1/models/m": b"HTTP/1.1 405 Method Not Allowed",
}


@pytest.mark.parametrize("value", [b"\xff", b"Bearer \xff", b"\xed\xa0\x80", b"100-continue", b"200-ok"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/tags", "/healthz", *EXPECTED])
async def test_no_expectation_of_a_client_is_the_gateways_failure(path, value):
    async with behind(as_asked("openai-chat")) as running:
        body = orjson.dumps(asking("openai-chat", stream=False)[1])
        method = b"GET" if path in {"/api/tags", "/healthz"} else b"POST"
        reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
        writer.write(
            b"%b %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nexpect: %b\r\ncontent-length: %d\r\n\r\n%b"
            % (method, path.encode(), value, len(body), body)
        )
        came = await reader.read()
        writer.close()
    assert came.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").startswith(EXPECTED.get(path, b"HTTP/1.1 200 OK"))
    assert came.startswith(b"HTTP/1.1 100") == (value == b"100-continue")


# -- keys --------------------------------------------------------------------------------------------------------------


def in_body(key, dialect="openai-chat"):
    path, body = asking(dialect, model=key)
    return path, orjson.dumps(body)


#: Where people paste a key, as what is asked of the gateway: a path, and a body.
PLACES = {
    "as a model": in_body,
    "as a model of Ollama": lambda key: in_body(key, "ollama"),
    "as a model in the path": lambda key: (f"/v1beta/models/{key}:generateContent", orjson.dumps(asking("gemini")[1])),
    "in the path": lambda key: (f"/{key}/v1/chat/completions", b"{}"),
    "in a path like ours": lambda key: (f"/v1/chat/completions/{key}", b"{}"),
    "in the query": lambda key: (f"/v1beta/models/m:generateContent?key={key}&alt={key}", b"{}"),
    "in a refused member": lambda key: ("/v1/chat/completions", orjson.dumps({"model": "m", "messages": [{"role": key}]})),
    "in a member's name": lambda key: ("/v1/messages", orjson.dumps({"model": "m", "messages": [{key: key, "role": "user", "content": {key: key}}]})),
    "behind a long path": lambda key: ("/v1/" + "a" * 180 + "/" + key, b"{}"),
    "behind a long model": lambda key: in_body("a" * 180 + " " + key),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
async def test_no_key_is_in_a_line_or_in_the_metrics_wherever_it_was_pasted(place, caplog):
    caplog.set_level(logging.DEBUG)
    answers = {}
    async with EvilUpstream(lambda _: answer(503, "a", b"b", b"{}")) as evil:
        upstreams = [upstream_at(evil, name, name=name, auth="bearer", key=Secret(OWN)) for name in ("openai-chat",)]
        config = config_of(upstreams, server={"keys": (Secret(LET_IN),)})
        async with gateway(config) as running:
            for key in [*PASTED, OWN, LET_IN]:
                path, body = PLACES[place](key)
                answers[key] = await running.ask(
                    path.replace(" ", "%20"), body=body, headers={"Authorization": f"Bearer {LET_IN}"}
                )
            counted = exposition(running.metrics).decode()
    lines = [form.format(record) for record in caplog.records for form in (JSONLines(), Text())]
    assert len([record for record in caplog.records if record.getMessage() == "request"]) == len(answers)
    assert not [line for line in [*lines, counted] if "canary" in line]
    assert all(came.status != 500 for came in answers.values())


async def test_a_key_that_is_cut_in_half_leaves_no_half(caplog):
    caplog.set_level(logging.DEBUG)
    async with behind(as_asked("openai-chat")) as running:
        for before in range(150, 230):
            path, body = in_body("a" * before + " " + PASTED[0])
            await running.ask(path, body=body)
    fields = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert sum(record.getMessage() == "request" for record in caplog.records) == 80
    assert not [line for line in map(json.dumps, fields) if "canary" in line]
