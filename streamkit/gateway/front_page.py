"""The page at ``/``: what this server is, its models, and how to configure clients; for people and for simple health checks.

The page names models to clients that may list them at ``/v1/models``; other clients are told what they lack. It shows no
upstream and no key, and of the configuration only the models. Browsers get HTML that loads and runs nothing; its one style
sheet is allowed by its hash. Other clients get plain text. ``HEAD`` is supported, since some clients send it first.

Source: W3C Content Security Policy Level 3 §6, §2.3.1 (hashes); clients.md §10.2.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from textwrap import indent
from typing import Final

from aiohttp import web
from attrs import frozen

from streamkit.dialects import dialect_named
from streamkit.text.quoting import printable, printable_json
from streamkit.web.hosts import is_host
from streamkit.web.listening import url_of
from streamkit.web.refusals import Refused
from streamkit.web.surfaces import surfaces

TITLE: Final = "streamkit gateway"
WHAT: Final = "This gateway is running. It serves clients of language models in their own dialects, from any provider."
NO_KEY: Final = "This gateway requires no key. Most clients require one: use any word for `key` and `$GATEWAY_KEY`."
A_KEY: Final = "`key` and `$GATEWAY_KEY` stand for the key that the gateway's operator gave you."
SHOWS_STREAMS: Final = "it shows the streams to anyone with its token, which the gateway printed when it started."
NO_NAMES: Final = "None is listed; name a model that matches a pattern of a route."
MODEL: Final = "MODEL"  #: placeholder in the page's examples for a model's name, if the configuration names no model
STYLE: Final = "front_page.css"


def front_page(
    request: web.Request, models: Sequence[str] | Refused, *, has_keys: bool, inspector: str | None = None
) -> web.Response:
    """Return the response to ``GET /`` and ``HEAD /``.

    ``models`` are the names of the models, or why the client may not know them. ``has_keys``: clients need a key.
    ``inspector`` is the URL of the inspector, if it is on.
    """
    page = _Page(_base_url(request), models, has_keys, inspector)
    if "text/html" in request.headers.get("Accept", ""):
        return web.Response(text=page.html(), content_type="text/html", charset="utf-8", headers=_headers())
    return web.Response(text=page.text(), headers=_headers())


@frozen
class _Page:
    base_url: str
    models: Sequence[str] | Refused
    has_keys: bool
    inspector: str | None

    @property
    def names(self) -> Sequence[str]:
        return [] if isinstance(self.models, Refused) else self.models

    @property
    def why_none(self) -> str:
        if isinstance(self.models, Refused):
            reason = str(self.models)
            return f"{reason[:1].upper()}{reason[1:]}."
        return NO_NAMES

    @property
    def key(self) -> str:
        return A_KEY if self.has_keys else NO_KEY

    @property
    def clients(self) -> dict[str, str]:
        """The configuration of each client program for this gateway, by the program's name."""
        model = self.names[0] if self.names else MODEL
        filled = {"{base}": self.base_url, "{model}": printable_json(model)}
        return {client["name"]: _filled(client["code"].strip(), filled) for client in _clients()}

    def text(self) -> str:
        parts = [f"{TITLE}\n{WHAT}"]
        if self.inspector is not None:
            parts.append(f"Inspector: {printable(self.inspector)}\n{SHOWS_STREAMS}")
        parts.append("\n".join(["Models:", *(f"  {printable(name)}" for name in self.names or [self.why_none])]))
        parts.append(f"Point clients at it. {self.key}")
        parts += [f"{name}:\n{indent(code, '  ')}" for name, code in self.clients.items()]
        width = max(len(path) for path, _ in _served())
        parts.append("\n".join(["Paths:", *(f"  {path:{width}}  {title}" for path, title in _served())]))
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        models = "\n".join(f"<li><code>{escape(printable(name))}</code></li>" for name in self.names)
        link = (
            ""
            if self.inspector is None
            else f'<p><a href="{escape(self.inspector)}">Inspector</a>: {_marked(SHOWS_STREAMS)}</p>\n'
        )
        clients = (f"<h3>{escape(name)}</h3>\n<pre>{escape(code)}</pre>" for name, code in self.clients.items())
        paths = (f"<dt><code>{escape(path)}</code></dt><dd>{_marked(title)}</dd>" for path, title in _served())
        return Template(_file("front_page.html")).substitute(
            title=TITLE,
            style=_file(STYLE),
            what=_marked(WHAT),
            inspector=link,
            models=f'<ul class="models">\n{models}\n</ul>' if models else f"<p>{_marked(self.why_none)}</p>",
            key=_marked(self.key),
            clients="\n".join(clients),
            paths="\n".join(paths),
        )


def _base_url(request: web.Request) -> str:
    """Return the base URL that the client used, or the address that it reached if ``Host`` is invalid.

    A proxy that ends TLS sets ``X-Forwarded-Proto``. A client that forges it changes only its own page.
    """
    host = request.headers.get("Host", "")
    if not is_host(host):
        address: tuple[str, int] = request.get_extra_info("sockname")[:2]
        return url_of(address)
    scheme = "https" if request.headers.get("X-Forwarded-Proto") == "https" else request.scheme
    return f"{scheme}://{host}"


def _marked(text: str) -> str:
    """Return a sentence as HTML, with text in backquotes as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _filled(code: str, values: Mapping[str, str]) -> str:
    """Return the code with each name replaced by its value."""
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], code)


def _served() -> list[tuple[str, str]]:
    """Return the paths of each dialect with the dialect's title."""
    first = ((dialect, surface.generate[0]) for dialect, surface in surfaces().items())
    return [(re.sub(r"\{.*\}", "models/…", path), dialect_named(dialect).title) for dialect, path in first] + [
        ("/v1/models", "the list of models"),
        ("/healthz, /readyz", "whether the gateway is alive, and accepts requests"),
    ]


@cache
def _headers() -> Mapping[str, str]:
    """Return headers so that the page loads and runs nothing, is not shown in frames, and its type is not guessed."""
    digest = b64encode(hashlib.sha256(_file(STYLE).encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }


@cache
def _clients() -> list[dict[str, str]]:
    clients: list[dict[str, str]] = tomllib.loads(_file("clients.toml"))["clients"]
    return clients


@cache
def _file(name: str) -> str:
    return files("streamkit.gateway").joinpath("pages", name).read_text("utf-8")
