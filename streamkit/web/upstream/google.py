"""Bearer tokens of Google Cloud from google-auth. Importing this module imports google-auth (the extra ``google``).

Credentials are found as Google's tools find them (Application Default Credentials): the file that
``GOOGLE_APPLICATION_CREDENTIALS`` names, gcloud's credentials, or the metadata server of a machine in Google's cloud. A token
is valid for an hour. An expiring token is renewed in a thread by the first request that needs it; others wait for it.

Token servers are reached as the upstream of that request is: through its proxy, and with its root certificates. An upstream
with neither leaves both to the environment, which google-auth reads. The metadata server, which has no TLS, needs no proxy.

Source: google-auth 2.63, ``credentials.TokenState``; ui-protocols.md §4.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache, partial
from typing import Final

import google.auth
import requests
from google.auth.credentials import Credentials, TokenState
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.auth.transport.requests import Request

from streamkit.errors import SourceFailed
from streamkit.web.upstream.value import Upstream

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
RENEWAL_S: Final = 30.0  #: seconds to wait for a token server
_renewing = threading.Lock()


async def token(upstream: Upstream) -> str:
    """Return a token that is valid for some minutes. Raises SourceFailed if credentials are missing or can't be renewed."""
    if (
        _found.cache_info().currsize and _found().token_state is TokenState.FRESH
    ):  # the token is still valid, as nearly always: no thread is needed
        return str(_found().token)
    return await asyncio.to_thread(_renewed, upstream)


def _renewed(upstream: Upstream) -> str:
    with _renewing:  # one renewal for all requests that wait
        credentials = _found()
        if credentials.token_state is not TokenState.FRESH:
            with requests.Session() as session:
                if upstream.proxy is not None or upstream.ca_file is not None:
                    session.trust_env = False  # requests would prefer the environment's proxy and certificates
                    session.proxies = {} if upstream.proxy_url is None else {"https": upstream.proxy_url}
                    session.verify = upstream.ca_file or True
                request = partial(Request(session), timeout=RENEWAL_S)
                try:
                    credentials.refresh(request)  # type: ignore[no-untyped-call]  # google-auth's
                except GoogleAuthError as error:
                    raise SourceFailed("the gateway could not get a token for its Google credentials") from error
        return str(credentials.token)


@cache
def _found() -> Credentials:
    """Return the credentials. They are looked up once per process, because a machine's credentials come over the network."""
    try:
        credentials, _project = google.auth.default(scopes=[SCOPE])
    except DefaultCredentialsError as error:  # exceptions are not cached: credentials may appear later
        raise SourceFailed(
            "the gateway found no Google credentials; set GOOGLE_APPLICATION_CREDENTIALS, or give its machine an account"
        ) from error
    return credentials
