"""A page in Chromium whose name is turned to this machine once it is loaded reads nothing of the gateway (limits.md T15)."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

from aiohttp import web

from streamkit.gateway.app import gateway_app, private_app
from streamkit.gateway.metrics import Metrics
from streamkit.web.listening import listening
from streamkit.web.upstream import Upstream
from tests.examples.browser import chromium, opened
from tests.gateway.running import config_of
from tests.web.ports import free_port

SITE = "evil.example"
#: The browser looks that name up as this machine's address.
TURNED = (f"--host-resolver-rules=MAP {SITE} 127.0.0.1",)
NOWHERE = Upstream(name="one", dialect="openai-chat", base_url="http://127.0.0.1:9/v1", auth="none")
PATHS = ("/", "/healthz", "/readyz", "/v1/models", "/api/tags")
READ = f"Promise.all({json.dumps([*PATHS, '/metrics'])}.map(path => fetch(path).then(response => response.status)))"
SENT = "fetch('/v1/chat/completions', {method: 'POST', body: '{}'}).then(response => response.status)"


async def site(_request: web.Request) -> web.Response:
    return web.Response(text="<title>a site</title>", content_type="text/html")


async def test_a_page_whose_name_is_turned_to_the_gateway_reads_nothing(tmp_path):
    chromium()
    ours, any_name = (config_of([NOWHERE], server={"hosts": hosts}) for hosts in ((), ("*",)))
    theirs = web.Application()
    theirs.router.add_get("/", site)
    port = free_port()

    def in_its_place(app):
        return listening(app, ("127.0.0.1", port), idle_s=5.0)

    async with AsyncExitStack() as stack:
        async with in_its_place(theirs):
            page = await stack.enter_async_context(opened(f"http://{SITE}:{port}/", tmp_path, options=TURNED))
            await page.until("document.title === 'a site'")
        async with in_its_place(gateway_app(ours, Metrics())):
            assert await page.value(READ) == [421] * (len(PATHS) + 1)
            assert await page.value(SENT) == 421
        async with in_its_place(private_app(Metrics(), lambda: ours.server.private_hosts)):
            assert await page.value(READ) == [421] * (len(PATHS) + 1)
        async with in_its_place(gateway_app(any_name, Metrics())):  # what it would read
            assert await page.value(READ) == [200] * len(PATHS) + [404]
