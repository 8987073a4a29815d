"""An upstream: its settings, and the URL, authorisation and sending of a request to it.

Upstreams are defined by configuration only. A client can never choose a host, a key, or a header that is not one of its
dialect's feature headers (limits.md T5, T6: otherwise a client could reach other hosts or use other keys).
"""

from streamkit.web.upstream.hiding import hidden, redactor
from streamkit.web.upstream.requests import count_of, count_request, path_of, response_headers
from streamkit.web.upstream.sending import client_session, error_of, send
from streamkit.web.upstream.value import Auth, Secret, Upstream

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
