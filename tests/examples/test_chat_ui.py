"""The example with ``useChat``, in headless Chromium against the gateway that ``make run`` starts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests import npm
from tests.examples.browser import Page, chromium, opened
from tests.gateway.processes import serving
from tests.web.ports import free_port
from tests.web.serving import eventually

PROJECT = Path(__file__).parents[2] / "examples" / "chat-ui"
INSTALL_S = 90
SEND = "document.querySelector('form button').click()"
SECTIONS = "[...document.querySelectorAll('.message')].map(section => section.className)"
#: How the page was answered that asked to go on with an answer.
RESUMED = (
    "performance.getEntriesByType('resource').filter(each => each.name.endsWith('/stream') && each.responseStatus)"
    ".map(each => each.responseStatus)"
)
STATUS = "document.querySelector('main').dataset.status"
#: Where a picture of the page is put, where somebody asks for one.
PICTURE = os.environ.get("STREAMKIT_PICTURE")

pytestmark = pytest.mark.timeout(240)


@cache
def built() -> None:
    """The script of the page, of packages from npm, once a process."""
    npm.installed(PROJECT, "the page with useChat", within_s=INSTALL_S)
    done = subprocess.run(["npm", "run", "build"], cwd=PROJECT, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


@asynccontextmanager
async def chat(folder: Path, model: str) -> AsyncIterator[Page]:
    """The page with a chat of that model, its server and the gateway running."""
    chromium()
    built()
    for name in "gateway", "profile":
        (folder / name).mkdir()
    port = free_port()
    async with serving(folder / "gateway", "--port", "0") as gateway:
        process = _serve(port, f"{gateway.url}/v1")
        try:
            url = f"http://127.0.0.1:{port}/"
            await eventually(lambda: process.poll() is not None or _listens(port), within_s=40.0)
            async with ClientSession() as session, session.get(url) as response:
                assert response.status == 200
            async with opened(f"{url}?model={model}", folder / "profile") as page:
                await page.until("document.querySelector('form button') !== null")
                yield page
        finally:
            process.terminate()
            process.wait()


def _serve(port: int, upstream: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "serve.py", "--port", str(port), "--upstream", upstream]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _keep(picture: bytes) -> None:
    if PICTURE:
        Path(PICTURE).write_bytes(picture)


async def test_text_streams_in_and_a_tool_runs(tmp_path):
    async with chat(tmp_path, "demo") as page:
        await page.value(
            "window.lengths = new Set(); new MutationObserver(() => lengths.add(document.querySelector('main').innerText.length))"
            ".observe(document.querySelector('main'), {subtree: true, childList: true, characterData: true})"
        )
        await page.value(SEND)
        await page.until(f"{STATUS} === 'ready' && document.querySelectorAll('.assistant p').length >= 2")
        await page.until("document.querySelector('.tool').dataset.state === 'output-available'")
        await page.until(
            f"{STATUS} === 'ready' && !document.querySelector('.assistant p:last-child').classList.contains('tool')"
        )
        said = await page.value("document.querySelector('.assistant').innerText")
        assert '"sky":"clear"' in said
        assert await page.value("lengths.size") > 10  # the text came in pieces
        assert await page.value("document.querySelector('[role=alert]')") is None
        _keep(await page.picture())


async def test_a_page_that_is_loaded_again_in_an_answer_shows_all_of_it_once(tmp_path):
    async with chat(tmp_path, "demo") as page:
        await page.until(f"{RESUMED}.length === 1 && {STATUS} === 'ready'")
        assert await page.value(RESUMED) == [204]  # there was nothing yet, and no error came of it
        await page.value(SEND)
        await page.until("document.querySelector('.assistant p')?.innerText.length > 8")
        begun = await page.value("document.querySelector('.assistant p').innerText")
        await page.load_again()
        await page.until(f"{RESUMED}.length === 1 && {STATUS} === 'ready'")
        await page.until(
            f"{STATUS} === 'ready' && document.querySelector('.tool')?.dataset.state === 'output-available'"
            " && !document.querySelector('.assistant p:last-child').classList.contains('tool')"
        )
        said = await page.value("document.querySelector('main').innerText")
        assert await page.value(RESUMED) == [200]
        assert said.count(begun[:8]) == 1
        assert await page.value(SECTIONS) == ["message user", "message assistant"]
        await page.load_again()
        await page.until(f"{RESUMED}.length === 1 && {STATUS} === 'ready'")
        assert await page.value(RESUMED) == [204]
        assert await page.value("document.querySelector('main').innerText") == said
        assert await page.value("document.querySelector('[role=alert]')") is None


@pytest.mark.exhaustive
async def test_stop_ends_the_answer_for_good(tmp_path):
    async with chat(tmp_path, "demo") as page:
        await page.value(SEND)
        await page.until("document.querySelector('.assistant p')?.innerText.length > 8")
        await page.value("document.querySelector('form button').click()")
        await page.until(f"{STATUS} === 'ready'")
        said = await page.value("document.querySelector('main').innerText")
        await page.load_again()
        await page.until(f"{RESUMED}.length === 1")
        assert await page.value(RESUMED) == [204]
        assert await page.value("document.querySelector('main').innerText") == said


async def test_an_answer_that_breaks_off_shows_an_error_and_runs_no_tool(tmp_path):
    async with chat(tmp_path, "demo-cut") as page:
        await page.value(SEND)
        await page.until(f"{STATUS} === 'error'")
        told = await page.value("document.querySelector('[role=alert]').innerText")
        assert told
        states = json.loads(
            await page.value("JSON.stringify([...document.querySelectorAll('.tool')].map(p => p.dataset.state))")
        )
        assert set(states) <= {"input-streaming"}


@pytest.mark.exhaustive
async def test_a_failure_over_http_is_shown_as_its_sentence(tmp_path):
    async with chat(tmp_path, "demo-error") as page:
        await page.value(SEND)
        await page.until(f"{STATUS} === 'error'")
        told = await page.value("document.querySelector('[role=alert]').innerText")
        assert told == "the model demo-error always fails, so that you can see an error"
