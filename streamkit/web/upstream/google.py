"""Bearer tokens of Google Cloud by google-auth, which is imported with this module: the extra ``google``.

Credentials are looked for as Google's own tools do (Application Default Credentials): the file that
``GOOGLE_APPLICATION_CREDENTIALS`` names, gcloud's own, the metadata server of a machine in Google's cloud. A token is good for
an hour; one that is about to expire is renewed in a thread, by the first request that needs it, and the others wait for that.

Source: google-auth 2.63, ``credentials.TokenState``; ui-protocols.md §4.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache, partial
from typing import Final

import google.auth
from google.auth.credentials import Credentials, TokenState
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.auth.transport.requests import Request

from streamkit.errors import SourceFailed

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
#: How long a server of tokens is waited for, in seconds.
RENEWAL_S: Final = 30.0
_renewing = threading.Lock()


async def token() -> str:
    """A token that is good for some minutes. Raises SourceFailed without credentials, and where they can't be renewed."""
    if (
        _found.cache_info().currsize and _found().token_state is TokenState.FRESH
    ):  # as nearly always: no thread is needed
        return str(_found().token)
    return await asyncio.to_thread(_renewed)


def _renewed() -> str:
    with _renewing:  # one for all who wait
        credentials = _found()
        if credentials.token_state is not TokenState.FRESH:
            try:
                credentials.refresh(partial(Request(), timeout=RENEWAL_S))  # type: ignore[no-untyped-call]  # google-auth's
            except GoogleAuthError as error:
                raise SourceFailed("the gateway could not get a token for its Google credentials") from error
        return str(credentials.token)


@cache
def _found() -> Credentials:
    """The credentials, looked for once a process: a machine's own are looked for over the network."""
    try:
        credentials, _project = google.auth.default(scopes=[SCOPE])
    except DefaultCredentialsError as error:  # as an exception it is not cached: credentials may come
        raise SourceFailed(
            "the gateway found no Google credentials; set GOOGLE_APPLICATION_CREDENTIALS, or give its machine an account"
        ) from error
    return credentials
