"""The paths at which clients list models or look up one model.

``Models`` in ``streamkit/dialects/http.py`` has the formats of the dialects.

Source: clients.md §10.1, §10.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import orjson
from aiohttp import web

from streamkit.dialects.http import ModelCard, Models
from streamkit.dialects.members.fields import Fields, fields_of
from streamkit.dialects.vocabulary.model_names import model_info
from streamkit.errors import BadRequest, UsageError
from streamkit.text.quoting import quoted
from streamkit.web.client_dialect import Handler, client_dialect, expected, in_dialect
from streamkit.web.refusals import Refused, bad_request, no_such_model
from streamkit.web.surfaces import misspelt, read_body, surfaces, unmarked

#: Returns the card of a model, given the client's name for it and the client's dialect. None: there is no such model.
Find: TypeAlias = Callable[[str, str], ModelCard | None]
#: The listed models, or a function that returns the present ones.
Cards: TypeAlias = Sequence[ModelCard] | Callable[[], Sequence[ModelCard]]


def add_inventory(router: web.UrlDispatcher, cards: Cards, find: Find | None = None, *, prefix: str = "") -> None:
    """Serve the paths at which clients list the models ``cards``. ``prefix`` is put before each path.

    ``cards`` may be a function, which is called for each request. ``find`` may also find models that are not listed. Errors
    are in the client's dialect.
    """
    _add(router, Inventory(cards, find), lambda path: [prefix + path])


def add_misspelt_inventory(router: web.UrlDispatcher, cards: Cards, find: Find | None = None) -> None:
    """Serve models as ``add_inventory`` does, at the paths that mistyped base URLs lead to.

    Mistyped means: the version is missing or doubled, or the URL ends with a slash.
    """
    _add(router, Inventory(cards, find), misspelt)


def _add(router: web.UrlDispatcher, inventory: Inventory, spelt: Callable[[str], Iterable[str]]) -> None:
    known: set[str] = set()

    def serve(add: Callable[..., object], canonical: str, handler: Handler) -> None:
        for path in spelt(canonical):
            if path not in known:  # spelt without the version, two paths may be equal
                known.add(path)
                add(path, in_dialect(handler), expect_handler=expected)

    for listing in _listings().values():
        serve(router.add_get, listing.path, inventory.models)
    for listing in _listings().values():
        if listing.by_body is None:
            serve(router.add_get, f"{listing.path}/{{model:.+}}", inventory.model)  # a model's name may contain slashes
    for dialect, listing in _listings().items():
        if listing.by_body is not None:
            path, name_in = listing.by_body
            serve(router.add_post, path, inventory.by_body(dialect, name_in))
        for constant, answer in listing.constants.items():
            serve(router.add_get, constant, _constant(answer))


def _listings() -> dict[str, Models]:
    return {name: surface.models for name, surface in surfaces().items() if surface.models is not None}


def card_of(model: str) -> ModelCard:
    """Return the card of a model, with the sizes and abilities that the table of models knows."""
    info = model_info(model)
    if info is None:
        return ModelCard(id=model)
    thinks = info.thinks != "asked" or bool(info.efforts)
    return ModelCard(id=model, context=info.context, output=info.output, inputs=info.inputs, thinks=thinks)


def listing_of(dialect: str) -> Models:
    """Return how clients of ``dialect`` look up models. Raises UsageError for a dialect without models to look up."""
    listing = _listings().get(dialect)
    if listing is None:
        raise UsageError(f"{quoted(dialect)} has no list of models; these dialects have one: {', '.join(_listings())}")
    return listing


def keyless_paths() -> frozenset[str]:
    """Return the paths for looking up models in dialects whose clients often can't send a key."""
    return frozenset().union(*(listing.paths for listing in _listings().values() if listing.keyless))


def untagged(model: str, dialect: str) -> str:
    """Return a model's name without its mark, and without the tag that clients of ``dialect`` may leave out."""
    model = unmarked(model)[0]
    surface = surfaces().get(dialect)
    tag = "" if surface is None or surface.models is None else surface.models.default_tag
    return model.removesuffix(tag)


class Inventory:
    """The handlers for the paths that list or look up models. They raise Refused."""

    def __init__(self, cards: Cards, find: Find | None = None) -> None:
        self._cards = cards if callable(cards) else lambda: cards
        self._find = find or self._listed

    async def models(self, request: web.Request) -> web.Response:
        """List all models, or a page of them."""
        try:
            return _json(listing_of(client_dialect(request)).list(self._cards(), request.query))
        except BadRequest as error:
            raise Refused(bad_request(error)) from error

    async def model(self, request: web.Request) -> web.Response:
        """Return the model that the path names."""
        return self._detail(client_dialect(request), request.match_info["model"])

    def by_body(self, dialect: str, name_in: Callable[[Fields], str]) -> Handler:
        """Return a handler that looks up the model named in the request's body."""

        async def show(request: web.Request) -> web.Response:
            try:
                return self._detail(dialect, name_in(fields_of(await read_body(request, dialect))))
            except BadRequest as error:
                raise Refused(bad_request(error)) from error

        return show

    def _detail(self, dialect: str, model: str) -> web.Response:
        card = self._find(model, dialect)
        if card is None:
            raise Refused(no_such_model(model))
        return _json(listing_of(dialect).detail(card))

    def _listed(self, model: str, dialect: str) -> ModelCard | None:
        by_id = {card.id: card for card in self._cards()}
        return by_id.get(model) or by_id.get(untagged(model, dialect))


def _constant(answer: dict[str, Any]) -> Handler:
    async def constant(_request: web.Request) -> web.Response:
        return _json(answer)

    return constant


def _json(value: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")
