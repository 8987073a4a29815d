"""The built site: its search finds the right page first, and no page is wider than its window. `make docs-site` runs this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import pytest
from aiohttp import web
from playwright.async_api import Page, TimeoutError, async_playwright  # noqa: A004

from tests.docs.pages import ROOT
from tests.examples.browser import chromium

SITE: Final = ROOT / "build" / "site"
#: What people type, and the pages of which one must be the first result.
FIRST: Final = {
    "install": ["#install"],
    "timeout": ["how-to/choose-upstreams/"],
    "ctrl-c": ["how-to/run-the-gateway/"],
    "agent loop": ["how-to/write-an-agent-loop/"],
    "litellm": ["migrate/litellm/"],
    "retry": ["how-to/translate-errors/", "how-to/choose-upstreams/"],
    "redact": ["how-to/change-text/", "reference/stages/#redact"],
    "fastapi": ["how-to/serve-with-asgi/"],
    "benchmark": ["benchmarks/"],
    "load balancing": ["how-to/choose-upstreams/#load-balancing"],
    "fallback": ["how-to/choose-upstreams/#fallback"],
    "rate limit": ["how-to/choose-upstreams/#several-keys-and-rate-limits"],
    "license": ["status/#license"],
    "redis": ["how-to/resume-streams/#redis"],
}
PAGES: Final = [
    "",
    "why/",
    "how-to/run-the-gateway/",
    "reference/matrix/",
    "reference/gateway-config/",
    "api/",
    "benchmarks/",
]
#: The links of the search, which is within a shadow root.
LINKS: Final = """() => [...document.querySelectorAll('*')].flatMap(function found(element) {
  const root = element.shadowRoot
  return root ? [...root.querySelectorAll('a')].map(a => a.href).concat([...root.querySelectorAll('*')].flatMap(found)) : []
})"""


@pytest.fixture
async def site(aiohttp_server) -> str:
    """The URL of the built site."""
    if not (SITE / "search.json").exists():
        pytest.skip("the site is not built: make docs-site")
    application = web.Application()

    async def page(request: web.Request) -> web.FileResponse:
        path = SITE / request.match_info["path"]
        return web.FileResponse(path / "index.html" if path.is_dir() else path)

    application.router.add_get("/{path:.*}", page)
    return str((await aiohttp_server(application)).make_url("/"))


@pytest.fixture
async def tab() -> AsyncIterator[Page]:
    path = chromium()
    async with async_playwright() as playwright:
        program = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield await program.new_page(viewport={"width": 1280, "height": 900})
        await program.close()


async def test_the_search_finds_the_right_page_first(site, tab):
    found = {}
    for words in FIRST:
        await tab.goto(site)
        await tab.keyboard.press("/")
        await tab.wait_for_timeout(200)
        await tab.keyboard.type(words)
        with suppress(TimeoutError):
            await tab.wait_for_function(f"({LINKS})().length > 0", timeout=10_000)
        await tab.wait_for_timeout(500)  # each letter is a search
        found[words] = next(iter(await tab.evaluate(LINKS)), "").removeprefix(site)
    assert {words: link for words, link in found.items() if not link.startswith(tuple(FIRST[words]))} == {}


@pytest.mark.parametrize("width", [1280, 400])
async def test_no_page_is_wider_than_its_window(site, tab, width):
    await tab.set_viewport_size({"width": width, "height": 900})
    wide = []
    for path in PAGES:
        await tab.goto(site + path)
        if await tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(path)
    assert wide == []


async def test_the_matrix_shows_every_dialect_without_scrolling(site, tab):
    await tab.goto(site + "reference/matrix/")
    frame = "document.querySelector('article table').parentElement"
    assert await tab.evaluate(f"{frame}.scrollWidth <= {frame}.clientWidth")


def test_the_api_shows_fields_with_their_comments():
    page = SITE / "api" / "index.html"
    if not page.exists():
        pytest.skip("the site is not built: make docs-site")
    text = page.read_text("utf-8")
    assert 'id="streamkit.ReadOptions.policy"' in text
    assert "Which faults of a provider to tolerate." in text


async def test_the_prompt_of_a_console_is_not_copied(site, tab):
    await tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await tab.goto(site + "tutorial/first-stage/")
    button = tab.locator(".highlight:has(.gp) button, .highlight:has(.gp) .md-clipboard").first
    await button.click()
    assert not (await tab.evaluate("navigator.clipboard.readText()")).startswith("$")
