"""The tables of ``docs/reference/http-surface.md`` that are made of the code: statuses and bodies of errors.

The page itself is written by hand. ``tests/docs/test_http_surface_page.py`` holds it to the paths that are served.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from streamkit.dialects import dialect_named
from streamkit.events import ErrorType, ProviderFailed
from streamkit.http_errors import encode_error
from streamkit.web.surfaces import surfaces
from tools.reference import table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "http-surface.md"
MARKED = re.compile(r"(<!-- table: (\w+) -->\n\n).*?(?=\n\n<!-- end of table -->)", re.DOTALL)


def page() -> str:
    """The page with its tables made anew."""
    tables = {
        "statuses": table(["kind", *(f"`{name}`" for name in surfaces())], statuses()),
        "bodies": table(["dialect", "body"], bodies()),
    }
    return MARKED.sub(lambda found: found[1] + tables[found[2]], PAGE.read_text("utf-8"))


def statuses() -> Iterator[tuple[str, ...]]:
    """The status of each kind of error in each dialect."""
    for kind in get_args(ErrorType):
        failed = ProviderFailed(kind, "")
        yield f"`{kind}`", *(str(encode_error(failed, name).status) for name in surfaces())


def bodies() -> Iterator[tuple[str, ...]]:
    """The body of an error in each dialect, for a model that is not there."""
    for name in surfaces():
        body = encode_error(ProviderFailed("not_found", "…"), name).body.decode()
        yield dialect_named(name).title, f"`{body}`"
