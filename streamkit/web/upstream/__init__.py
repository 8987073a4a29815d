"""An upstream: what it is, and how a request to it is addressed, authorised and sent.

Upstreams come from configuration only. Nothing that a client says chooses a host, a key or a header that is not in the list of
its dialect's feature headers (limits.md T5, T6).
"""

from streamkit.web.upstream.addresses import path_of
from streamkit.web.upstream.headers import response_headers
from streamkit.web.upstream.hiding import hidden, redactor
from streamkit.web.upstream.secret import Secret
from streamkit.web.upstream.sending import client_session, error_of, send
from streamkit.web.upstream.token_counts import count_of, count_request
from streamkit.web.upstream.value import Auth, Upstream

__all__ = [
    "Auth",
    "Secret",
    "Upstream",
    "client_session",
    "count_of",
    "count_request",
    "error_of",
    "hidden",
    "path_of",
    "redactor",
    "response_headers",
    "send",
]
