"""The snippets of docs/how-to/resume-streams.md do what the page says, through the gateway."""

from __future__ import annotations

import asyncio

import pytest

from tests.docs.pages import ROOT, run
from tests.gateway.running import config_of, gateway, upstream_at
from tests.web import official
from tests.web.evil import EvilUpstream
from tests.web.faults import good

PAGE = ROOT / "docs" / "how-to" / "resume-streams.md"


@pytest.fixture
def defined(tmp_path, monkeypatch):
    pytest.importorskip("langgraph_sdk", reason=official.WHY)
    monkeypatch.chdir(tmp_path)
    return asyncio.to_thread(run, PAGE, tmp_path, console=False)


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_official_clients_read_an_answer_again(sdk, defined):
    names = await defined
    dialect = {"openai": "openai-chat"}.get(sdk, sdk)
    upstream = EvilUpstream(good(dialect))
    async with upstream, gateway(config_of([upstream_at(upstream, dialect)])) as running:

        def asked_twice():
            with getattr(official, sdk)(running.url) as client:
                stream = names[f"ask_{sdk}"](client, "How cold is it?")
                location = stream.response.headers["location"]
                return list(stream), list(names[f"again_{sdk}"](client, location))

        first, again = await asyncio.to_thread(asked_twice)
        assert first == again
        assert len(first) > 3
        assert len(upstream.requests) == 1


async def test_langgraphs_client_reads_an_answer(defined):
    names = await defined
    upstream = EvilUpstream(good("anthropic"))
    async with upstream, gateway(config_of([upstream_at(upstream, "anthropic")])) as running:
        parts = await names["ask_langgraph"](running.url, "How cold is it?")
        assert parts[-1] == {"type": "message_stop"}
