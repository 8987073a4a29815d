"""JSON values counted before they are parsed, and requests with too many refused."""

from __future__ import annotations

from io import BytesIO

import pytest
from aiohttp import ClientSession

from streamkit.limits import REQUEST_VALUES
from streamkit.web import exchange, surfaces, values
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import as_asked, whole

BOMBS = {
    "objects": b'{"model":"m","messages":[%b{}]}' % (b"{}," * REQUEST_VALUES),
    "numbers": b'{"model":"m","messages":[%b0]}' % (b"0," * REQUEST_VALUES),
    "texts": b'{"model":"m","messages":[%b""]}' % (b'"",' * REQUEST_VALUES),
    "keys": b'{"model":"m",%b"messages":[]}' % b"".join(b'"%d":0,' % n for n in range(REQUEST_VALUES)),
    "depth": b'{"model":"m","messages":%b' % (b"[" * (REQUEST_VALUES + 1)),
}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_bomb_is_refused_before_it_is_parsed(bomb, monkeypatch):
    parsed = []
    monkeypatch.setattr(surfaces, "decode_request", lambda *given: parsed.append(given))
    async with (
        EvilUpstream(as_asked("openai-chat")) as evil,
        gateway(config_of([upstream_at(evil, "openai-chat")])) as running,
    ):
        path, _ = asking("openai-chat")
        async with ClientSession() as client, client.post(running.url + path, data=BytesIO(BOMBS[bomb])) as answer:
            assert answer.status == 413
            assert f"{REQUEST_VALUES:,} JSON values" in (await answer.json())["error"]["message"]
    assert not parsed


@pytest.mark.parametrize(
    "text", [b",[{" * 1000, b'\\"' * 999 + b"," * 2000, b"\\\\" * 3000 + b",", b'\\\\\\"{[,' * 500]
)
@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_what_stands_in_texts_is_no_value_wherever_slices_cut(text, size, monkeypatch):
    monkeypatch.setattr(values, "SLICE_BYTES", size)
    monkeypatch.setattr(values, "FEW", 0)
    *_, found = values.counted_values(b'{"a":"%b","b":[1,2,3]}' % text)
    assert found == 5


async def test_a_whole_answer_with_too_many_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(exchange, "ANSWER_VALUES", 50_000)
    parsed = []
    monkeypatch.setattr(exchange, "decode_response", lambda *given, **_: parsed.append(given))
    bomb = b'{"choices":[%b{}]}' % (b"{}," * 50_000)
    async with (
        EvilUpstream(whole("openai-chat", bomb)) as evil,
        gateway(config_of([upstream_at(evil, "openai-chat")])) as running,
        ClientSession(running.url) as client,
    ):
        path, body = asking("openai-chat", stream=False)
        async with client.post(path, json=body) as answer:
            assert answer.status >= 500
            assert "50,000" in (await answer.json())["error"]["message"]
    assert not parsed
