"""Where an upstream's operations are: the URL of a request.

Paths are the dialect's (``Dialect.http``), under the base URL that its official clients take; with or without a version in it
(``https://api.example.com`` or ``…/v1``) both do. A dialect that names no path is asked at its base URL. A model's name may
be a client's word, so it is percent-encoded, and refused if it climbs, as ``../x`` does.

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

#: Of a path, in a log: the model may stand in it, which is the client's word.
PATH_CHARS: Final = 300


def count_at(upstream: Upstream) -> TokenCount:
    """How the upstream counts. Raises UsageError where its dialect has no operation for it."""
    if upstream.token_count is None:
        raise UsageError(f"{upstream.name} can't count tokens: {upstream.wire.name} has no operation for it there")
    return upstream.token_count


def address(upstream: Upstream, model: str, *, stream: bool, operation: Operation = "generate") -> str:
    """The URL of a request, percent-encoded as it is to be sent.

    Raises BadRequest for a model that can't stand in a path, where the dialect puts it there, and UsageError for a count that
    the dialect has no operation for.
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
    """The path of a request, for a log: without the host, the query and what looks like a key. Empty: there is none."""
    try:
        path = URL(address(upstream, model, stream=stream, operation=operation), encoded=True).raw_path
    except (BadRequest, UsageError):
        return ""
    return excerpt(path, PATH_CHARS)
