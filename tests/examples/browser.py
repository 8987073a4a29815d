"""Headless Chromium over the DevTools protocol: a page that is opened, asked with JavaScript, and drawn."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse
from attrs import define

from tests.web.serving import eventually

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: How long it may take to start where others want the same cores.
START_S = 40.0


def chromium() -> str:
    """The program; skips the test that asks where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    return found


@define
class Page:
    """A tab that is open."""

    socket: ClientWebSocketResponse
    _number: int = 0

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self._number += 1
        await self.socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = await self.socket.receive_json(timeout=START_S)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    async def value(self, script: str) -> Any:
        """What a script gives."""
        done = await self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def until(self, script: str, within_s: float = 20.0) -> None:
        """Wait until a script gives something true."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within_s
        while not await self.value(script):
            assert loop.time() < end, f"still not after {within_s} s: {script}"
            await asyncio.sleep(0.02)

    async def load_again(self) -> None:
        """Load the page again, and wait until it is there."""
        await self.value("window.isOld = true")
        await self.send("Page.reload")
        await asyncio.sleep(0.2)  # in which the old page has gone, and no script would be answered
        await self.until("window.isOld === undefined && document.readyState === 'complete'")

    async def picture(self) -> bytes:
        """What it looks like, as a PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])


@asynccontextmanager
async def opened(
    url: str, folder: Path, size: tuple[int, int] = (800, 560), options: Sequence[str] = ()
) -> AsyncIterator[Page]:
    """The page at ``url`` in a Chromium of its own with these ``options``, whose profile is in ``folder``."""
    process = _start(folder, size, options)
    try:
        port_file = folder / "DevToolsActivePort"
        await eventually(lambda: port_file.exists() and port_file.stat().st_size > 0, within_s=START_S)
        port = port_file.read_text("utf-8").split()[0]
        async with ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{port}/json/new?{url}") as response:
                tab = await response.json(content_type=None)
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        process.wait()


def _start(folder: Path, size: tuple[int, int], more: Sequence[str]) -> subprocess.Popen[bytes]:
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", *more)
    profile = (f"--user-data-dir={folder}", "--remote-debugging-port=0", f"--window-size={size[0]},{size[1]}")
    with (folder / "said").open("wb") as said:
        return subprocess.Popen([chromium(), *options, *profile, "about:blank"], stdout=said, stderr=said)
