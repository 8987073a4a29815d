"""The rules by which requests are served: a configuration, and what is derived from it.

A reload makes new rules and replaces the old ones in one assignment. A request reads the rules once, when it begins, so it is
served by one configuration from its beginning to its end.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web
from attrs import evolve, field, frozen

from streamkit.dialects.http import ModelCard
from streamkit.dialects.vocabulary.model_names import model_info
from streamkit.gateway.config import Config
from streamkit.gateway.routing import Route, Routes
from streamkit.web.hosts import Hosts, KeyRing, Origins
from streamkit.web.inventory import card_of, untagged
from streamkit.web.reply import Delivery
from streamkit.web.upstream import redactor
from streamkit.web.upstream.hiding import Cut

#: The most keys of earlier configurations that are still hidden: a client may still send a key that was replaced.
RETIRED: Final = 100


@frozen(kw_only=True, eq=False)
class Rules:
    """A configuration as requests need it. Make one with ``rules_of``."""

    config: Config
    routes: Routes
    ring: KeyRing | None  #: the keys of clients; None: every client is served
    hosts: Hosts | None
    origins: Origins
    delivery: Delivery
    cards: tuple[ModelCard, ...]  #: the models that clients may list
    #: Every key of the configuration, and the last ones of earlier configurations.
    secrets: tuple[str, ...] = field(repr=False)
    hide: Cut = field(repr=False)  #: removes these keys from a text, so that the text can be logged or sent

    def find(self, model: str, dialect: str) -> tuple[str, Route] | None:
        """Return the name and the route of a model. Clients of some dialects may add a default tag to the name."""
        plain = untagged(model, dialect)
        names = (plain, model) if plain in self.routes.named and model not in self.routes.named else (model, plain)
        for name in names:
            if (route := self.routes.find(name)) is not None:
                return name, route
        return None

    def card(self, model: str, dialect: str) -> ModelCard | None:
        """Return the description of one model for clients, even if the model is not listed."""
        found = self.find(model, dialect)
        return found and _card(self.config, *found)


#: The rules of a request, which it got at its beginning.
RULES: Final = web.RequestKey("streamkit-rules", Rules)


def rules_of(config: Config, before: Rules | None = None) -> Rules:
    """Return the rules of a configuration. The keys of the rules ``before``, which these rules replace, stay hidden."""
    server, routes = config.server, Routes(config.routes)
    for upstream in config.upstreams.values():
        for account in upstream.accounts:
            _ = account.connection  # certificates are read here, since no request should wait for them
    model_info(
        ""
    )  # compiles the patterns of the model table, which takes 25 ms: no request should wait for this either
    keys = [key.reveal() for key in server.keys]
    known = [*keys, *config.resume.secrets, *(key for each in config.upstreams.values() for key in each.secrets)]
    retired = () if before is None else [key for key in before.secrets if key not in known]
    secrets = (*known, *retired[:RETIRED])
    return Rules(
        config=config,
        routes=routes,
        ring=KeyRing(keys) if keys else None,
        hosts=server.served_hosts,
        origins=Origins(server.cors),
        delivery=server.delivery,
        cards=tuple(_card(config, name, route) for name, route in routes.named.items()),
        secrets=secrets,
        hide=redactor((), keys=secrets),
    )


def _card(config: Config, name: str, route: Route) -> ModelCard:
    mode = config.server.count_tokens
    counts = mode == "estimate" or (
        mode == "upstream" and any(target.upstream.token_count is not None for target in route.targets)
    )
    first = route.targets[0]
    card = card_of(first.upstream.model_like or first.model or name)
    return evolve(card, id=name, tools=route.tools, counts=counts)
