"""The paths at which clients look models up. What they are told is in ``model_shapes.py``.

Source: issue text 6 §2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson
from aiohttp import web

from streamkit.dialects.reading import fields_of
from streamkit.errors import BadRequest
from streamkit.web.askers import asker, in_dialect
from streamkit.web.model_shapes import ModelCard, model_detail, models_list
from streamkit.web.refusals import Refused, bad_request, no_such_model
from streamkit.web.surfaces import read_body

__all__ = ["OLLAMA_VERSION", "Inventory", "ModelCard", "add_inventory"]

#: The release of Ollama whose ``/api/chat`` is spoken here. Clients compare it, number by number, with the least that they
#: take (GitHub Copilot 0.6.4, others 0.14), and refuse what is no number.
OLLAMA_VERSION: Final = "0.32.8"
#: What Ollama means by a name without a tag.
LATEST: Final = ":latest"


def add_inventory(router: web.UrlDispatcher, cards: Sequence[ModelCard]) -> None:
    """Serve the paths at which ``cards`` are looked up. What a handler refuses is said in the asker's dialect."""
    inventory = Inventory(cards)
    for path in "/v1/models", "/v1beta/models", "/api/tags":
        router.add_get(path, in_dialect(inventory.models))
    for path in "/v1/models", "/v1beta/models":
        router.add_get(f"{path}/{{model:.+}}", in_dialect(inventory.model))  # names have slashes
    router.add_post("/api/show", in_dialect(inventory.show))
    router.add_get("/api/version", in_dialect(inventory.version))


class Inventory:
    """The handlers. They raise Refused."""

    def __init__(self, cards: Sequence[ModelCard]) -> None:
        self._cards = cards
        self._by_id = {card.id: card for card in cards}

    async def models(self, request: web.Request) -> web.Response:
        """All of them, or a page."""
        try:
            return _json(models_list(asker(request), self._cards, request.query))
        except BadRequest as error:
            raise Refused(bad_request(error)) from error

    async def model(self, request: web.Request) -> web.Response:
        """The one that the path names."""
        return self._detail(asker(request), request.match_info["model"])

    async def show(self, request: web.Request) -> web.Response:
        """Ollama's: the one that the body names."""
        try:
            fields = fields_of(await read_body(request, "ollama"))
            return self._detail("ollama", fields.string("model") or fields.needed("name"))
        except BadRequest as error:
            raise Refused(bad_request(error)) from error

    async def version(self, _request: web.Request) -> web.Response:
        return _json({"version": OLLAMA_VERSION})

    def _detail(self, dialect: str, model: str) -> web.Response:
        card = self._by_id.get(model)
        if card is None and dialect == "ollama":
            card = self._by_id.get(model.removesuffix(LATEST))
        if card is None:
            raise Refused(no_such_model(model))
        return _json(model_detail(dialect, card))


def _json(value: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
