"""JSON values counted before they are parsed, and requests with too many refused."""

from __future__ import annotations

from io import BytesIO

import pytest
from aiohttp import ClientSession

from streamkit.dialects import DIALECTS
from streamkit.errors import TooManyValues
from streamkit.limits import REQUEST_VALUES
from streamkit.testing import source_of
from streamkit.web import exchange, forms, surfaces
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource
from tests.gateway.running import asking, behind
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
    monkeypatch.setattr(surfaces, "decode_request", lambda *given, **_: parsed.append(given))
    async with behind(as_asked("openai-chat")) as running:
        path, _ = asking("openai-chat")
        async with ClientSession() as client, client.post(running.url + path, data=BytesIO(BOMBS[bomb])) as answer:
            assert answer.status == 413
            assert f"{REQUEST_VALUES:,} JSON values" in (await answer.json())["error"]["message"]
    assert not parsed


async def test_a_whole_answer_with_too_many_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(exchange, "ANSWER_VALUES", 50_000)
    parsed = []
    monkeypatch.setattr(exchange, "decode_response", lambda *given, **_: parsed.append(given))
    bomb = b'{"choices":[%b{}]}' % (b"{}," * 50_000)
    async with behind(whole("openai-chat", bomb)) as running, ClientSession(running.url) as client:
        path, body = asking("openai-chat", stream=False)
        async with client.post(path, json=body) as answer:
            assert answer.status >= 500
            assert "50,000" in (await answer.json())["error"]["message"]
    assert not parsed


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nor_is_it_parsed_to_tell_whether_it_is_a_body(dialect, monkeypatch):
    monkeypatch.setattr(forms, "ANSWER_VALUES", 50_000)
    parsed, read = [], forms._json
    monkeypatch.setattr(forms, "_json", lambda text: parsed.append(len(text)) or read(text[:100]))
    bomb = b'{"choices":[\n%b{}]}' % (b"{}," * 60_000)
    source = TimedSource(source_of([bomb[at : at + 32_768] for at in range(0, len(bomb), 32_768)]), DEFAULT_TIMEOUTS)
    with pytest.raises(TooManyValues):
        await forms.form_of(source, DIALECTS[dialect])
    assert sum(parsed) < 100
