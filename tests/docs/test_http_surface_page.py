"""The page of the HTTP surface has every path that is served, and the figures of the code."""

from __future__ import annotations

import re

from aiohttp import web

from streamkit.dialects.ollama.http import VERSION
from streamkit.web.inventory import add_inventory
from streamkit.web.surfaces import BODY_S, surfaces
from streamkit.web.token_counts import ESTIMATED, FILE_TOKENS, IMAGE_TOKENS, MOST_CHARS, TOKEN_BYTES, VOCABULARY
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "reference" / "http-surface.md").read_text("utf-8")


def test_each_path_of_a_model_has_a_row():
    rows = re.findall(r"^\| `(/\S+)` \| `(\S+)` \|", TEXT, re.MULTILINE)
    assert rows == [
        (path.replace("{model:.+}", "{model}").replace("{name:(?:models|tunedModels)/.+}", "models/{model}"), dialect)
        for dialect, surface in surfaces().items()
        for path in surface.paths
    ]


def test_each_path_of_the_inventory_has_a_row():
    app = web.Application()
    add_inventory(app.router, [])
    served = [(route.method, route.resource.canonical) for route in app.router.routes() if route.method != "HEAD"]
    assert re.findall(r"^\| (GET|POST) \| `(/\S+)` \|", TEXT, re.MULTILINE) == served


def test_figures_are_those_of_the_code():
    for said in (
        f"`{ESTIMATED}: estimate; method=…`",
        f"`{VOCABULARY}`. Without this extra, or if a request has more than {MOST_CHARS:,} characters",
        f"{TOKEN_BYTES} bytes count as one token.",
        f"An image counts as {IMAGE_TOKENS:,} tokens, and any other file as {FILE_TOKENS:,}.",
        f"may take up to {BODY_S:g} s to arrive",
        f"`{VERSION}`, because clients refuse",
    ):
        assert said in TEXT.replace("\n", " ") or said in TEXT, said
