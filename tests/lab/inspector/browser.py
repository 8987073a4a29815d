"""Headless Chromium, driven by Playwright. What it says on its console is kept: a breach of the page's policy is said there."""

from __future__ import annotations

import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from tests.examples.browser import chromium


@define
class Browser:
    """A browser that runs."""

    program: Any
    said: list[str] = field(factory=list)  #: on the console of every page, errors of scripts included

    async def open(self, url: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> Any:
        page = await self.program.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.set_default_timeout(20_000)
        await page.goto(url)
        return page


async def keep_picture(page: Any, name: str) -> None:
    """Put a picture of the page into the folder that somebody asks for, in few colours."""
    if folder := os.environ.get("STREAMKIT_PICTURES"):
        image = pytest.importorskip("PIL.Image")
        picture = image.open(io.BytesIO(await page.screenshot()))
        picture.convert("RGB").quantize(256, dither=0).save(Path(folder) / name, optimize=True)


@asynccontextmanager
async def browsing(*arguments: str) -> AsyncIterator[Browser]:
    """A Chromium with these arguments; skips the test where there is none, or no Playwright."""
    path = chromium()
    api = pytest.importorskip("playwright.async_api", reason="no Playwright is installed: pip install playwright")
    async with api.async_playwright() as playwright:
        program = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *arguments])
        try:
            yield Browser(program)
        finally:
            await program.close()
