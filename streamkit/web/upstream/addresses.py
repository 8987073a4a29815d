"""The URLs of requests to an upstream.

Paths come from the dialect (``Dialect.http``) and are added to the base URL that its official clients take. The base URL may
include the version or not (``https://api.example.com`` or ``…/v1``). If the dialect names no path, requests go to the base
URL. A model's name may come from the client, so it is percent-encoded, and refused if it leaves its path, as ``../x`` does.

Source: limits.md T5.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from yarl import URL

from streamkit.dialects.http import Operation, TokenCount
from streamkit.errors import BadRequest, UsageError
from streamkit.text.redact import excerpt
from streamkit.web.upstream.value import Upstream

#: The most characters of a path that are logged. A path may contain the model's name, which the client chooses.
PATH_CHARS: Final = 300


def count_at(upstream: Upstream) -> TokenCount:
    """Return how ``upstream`` counts tokens. Raises UsageError if its dialect has no operation for it."""
    if upstream.token_count is None:
        raise UsageError(f"{upstream.name} can't count tokens: {upstream.wire.name} has no operation for it there")
    return upstream.token_count


def address(upstream: Upstream, model: str, *, stream: bool, operation: Operation = "generate") -> str:
    """Return the percent-encoded URL of a request.

    Raises BadRequest if the dialect puts the model into the path and this name can't be there. Raises UsageError for a token
    count if the dialect has no operation for it.
    """
    endpoint, base = upstream.endpoint, str(URL(upstream.base_url)).rstrip("/")
    if operation == "count":
        url = count_at(upstream).url(base, model)
    elif endpoint is None:
        return base
    elif endpoint.deployment is not None and upstream.has_deployments:
        url = endpoint.deployment(base, model)
    else:
        url = endpoint.url(base, model, stream)
    return url + (f"?api-version={quote(upstream.api_version, safe='')}" if upstream.api_version else "")


def path_of(upstream: Upstream, model: str, *, stream: bool, operation: Operation = "generate") -> str:
    """Return a request's path for a log, without host, query and likely keys. Empty if the request has no valid URL."""
    try:
        path = URL(address(upstream, model, stream=stream, operation=operation), encoded=True).raw_path
    except (BadRequest, UsageError):
        return ""
    return excerpt(path, PATH_CHARS)
