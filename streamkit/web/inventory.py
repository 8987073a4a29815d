"""The paths at which clients look models up. What they are told is in ``model_shapes.py``.

Source: clients.md §10.1, §10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import orjson
from aiohttp import web

from streamkit.dialects.members.fields import fields_of
from streamkit.errors import BadRequest
from streamkit.web.client_dialect import client_dialect, expected, in_dialect
from streamkit.web.model_shapes import ModelCard, model_detail, models_list
from streamkit.web.refusals import Refused, bad_request, no_such_model
from streamkit.web.surfaces import misspelt, read_body

__all__ = ["OLLAMA_PATHS", "OLLAMA_VERSION", "Inventory", "ModelCard", "add_inventory", "add_misspelt_inventory"]

#: The release of Ollama whose ``/api/chat`` is spoken here. Clients compare it, number by number, with the least that they
#: take (GitHub Copilot 0.6.4, others 0.14), and refuse what is no number.
OLLAMA_VERSION: Final = "0.32.8"
#: Where Ollama's clients look which models there are. Many of them can send no key.
OLLAMA_PATHS: Final = frozenset({"/api/tags", "/api/show", "/api/version", "/api/ps"})
#: What Ollama means by a name without a tag.
LATEST: Final = ":latest"


#: The card of a model, as a client of a dialect calls it. None: there is no such model.
Find: TypeAlias = Callable[[str, str], ModelCard | None]


def add_inventory(
    router: web.UrlDispatcher, cards: Sequence[ModelCard], find: Find | None = None, *, prefix: str = ""
) -> None:
    """Serve the paths at which ``cards`` are looked up, behind ``prefix``. What is refused is said in the asker's dialect.

    ``find`` knows models that are not listed, too.
    """
    inventory = Inventory(cards, find)
    _add(router, inventory, lambda path: [prefix + path])


def add_misspelt_inventory(router: web.UrlDispatcher, cards: Sequence[ModelCard], find: Find | None = None) -> None:
    """The same at the paths that come of a base URL with a version too few, one too many or a slash at its end."""
    _add(router, Inventory(cards, find), misspelt)


def _add(router: web.UrlDispatcher, inventory: Inventory, spelt: Callable[[str], Iterable[str]]) -> None:
    known: set[str] = set()

    def paths(*spelling: str) -> Iterator[str]:
        for path in (other for canonical in spelling for other in spelt(canonical)):
            if path not in known:  # without their versions two are one
                known.add(path)
                yield path

    for path in paths("/v1/models", "/v1beta/models", "/api/tags"):
        router.add_get(path, in_dialect(inventory.models), expect_handler=expected)
    for path in paths("/v1/models/{model:.+}", "/v1beta/models/{model:.+}"):  # names have slashes
        router.add_get(path, in_dialect(inventory.model), expect_handler=expected)
    for path in paths("/api/show"):
        router.add_post(path, in_dialect(inventory.show), expect_handler=expected)
    for path in paths("/api/version"):
        router.add_get(path, in_dialect(inventory.version), expect_handler=expected)
    for path in paths("/api/ps"):
        router.add_get(path, in_dialect(inventory.running), expect_handler=expected)


class Inventory:
    """The handlers. They raise Refused."""

    def __init__(self, cards: Sequence[ModelCard], find: Find | None = None) -> None:
        self._cards = cards
        self._by_id = {card.id: card for card in cards}
        self._find = find or self._listed

    async def models(self, request: web.Request) -> web.Response:
        """All of them, or a page."""
        try:
            return _json(models_list(client_dialect(request), self._cards, request.query))
        except BadRequest as error:
            raise Refused(bad_request(error)) from error

    async def model(self, request: web.Request) -> web.Response:
        """The one that the path names."""
        return self._detail(client_dialect(request), request.match_info["model"])

    async def show(self, request: web.Request) -> web.Response:
        """Ollama's: the one that the body names."""
        try:
            fields = fields_of(await read_body(request, "ollama"))
            return self._detail("ollama", fields.string("model") or fields.needed("name"))
        except BadRequest as error:
            raise Refused(bad_request(error)) from error

    async def running(self, _request: web.Request) -> web.Response:
        """Ollama's: the models that are loaded, of which there are none here, but at others' machines."""
        return _json({"models": []})

    async def version(self, _request: web.Request) -> web.Response:
        return _json({"version": OLLAMA_VERSION})

    def _detail(self, dialect: str, model: str) -> web.Response:
        card = self._find(model, dialect)
        if card is None:
            raise Refused(no_such_model(model))
        return _json(model_detail(dialect, card))

    def _listed(self, model: str, dialect: str) -> ModelCard | None:
        plain = model.removesuffix(LATEST) if dialect == "ollama" else model
        return self._by_id.get(model) or self._by_id.get(plain)


def _json(value: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
