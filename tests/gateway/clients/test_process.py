"""The gateway as operators run it, a process with a configuration file, and every client's tool loop through it."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from streamkit.conversation.messages import Text
from tests.gateway import processes
from tests.gateway.clients.conftest import ENTER
from tests.gateway.clients.in_thread import CLIENT_KEY, UPSTREAM_KEY, GatewayThread
from tests.gateway.clients.programs import PROGRAMS, Told
from tests.gateway.clients.test_tool_loops import CALLS, FIRST, LAST, asked_for, calls, check_legs, two_legs

UPSTREAM: Final = "anthropic"
CONFIG: Final = """\
[server]
port = 0
keys = [{ env = "CLIENT_KEY" }]
[upstreams.one]
dialect = "anthropic"
base_url = "%s"
auth = "x-api-key"
key = { env = "UPSTREAM_KEY" }
[[routes]]
models = ["*"]
to = ["one"]
"""


async def test_every_clients_tool_loop_through_a_process(
    served: GatewayThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CLIENT_KEY", CLIENT_KEY)
    monkeypatch.setenv("UPSTREAM_KEY", UPSTREAM_KEY)
    config = tmp_path / "gateway.toml"
    config.write_text(CONFIG % served.upstream, "utf-8")
    async with processes.serving(tmp_path, "--config", str(config)) as gateway:
        for program, stream in product(PROGRAMS, (True, False)):
            model = two_legs(served, UPSTREAM, stream=stream, parts=[Text(FIRST), *calls()])
            with ENTER[program.package](gateway.url, CLIENT_KEY) as client:
                told = await asyncio.to_thread(program.run, client, model, stream)
            assert told == Told(FIRST, list(CALLS.values()), LAST)
            check_legs(*asked_for(served, model, UPSTREAM), with_ids=program.dialect != "ollama")
            assert {request.header("x-api-key") for request in served.asked(model)} == {UPSTREAM_KEY}
        endings = [line["ending"] for line in gateway.events("request")]
    assert endings == ["whole"] * 4 * len(PROGRAMS)
