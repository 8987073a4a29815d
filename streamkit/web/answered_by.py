"""The response headers that tell a client which upstream answered, and that it need not retry.

An upstream's own headers can't set them: of these names only ``x-should-retry`` is passed on (``RETRY_HEADERS``), and the
gateway's value replaces it. Official SDKs read that header: ``false`` means no retry, whatever the status.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from streamkit.events import ProviderFailed
from streamkit.http_errors import is_retryable

UPSTREAM: Final = "x-streamkit-upstream"  #: the upstream's name
MODEL: Final = "x-streamkit-model"  #: the upstream's name for the model
ATTEMPTS: Final = "x-streamkit-attempts"  #: how many attempts with upstreams were made
NAMES: Final = frozenset({UPSTREAM, MODEL, ATTEMPTS})
SHOULD_RETRY: Final = "x-should-retry"
MODEL_CHARS: Final = 200  #: the most characters of a model's name, which the client may have chosen
_PLAIN: Final = string.punctuation.replace("%", "")
_RETRY_AFTER: Final = frozenset({"retry-after", "retry-after-ms"})


def names_of(upstream: str, model: str, attempts: int) -> dict[str, str]:
    """Return the headers that name an upstream. Other characters of ``model`` than visible ASCII are percent-encoded."""
    shown = quote(model[:MODEL_CHARS], safe=_PLAIN, errors="replace")
    return {UPSTREAM: upstream, MODEL: shown, ATTEMPTS: str(attempts)}


def is_final(failed: ProviderFailed, headers: Mapping[str, str], retries: int) -> bool:
    """Return whether a client's retry is pointless, at a gateway that retries a request up to ``retries`` times.

    It is pointless if the same request would fail again, or if the gateway does the retries. If the upstream with these
    response ``headers`` has said when to retry, the client should do that.
    """
    if failed.retry_after_s is not None or _RETRY_AFTER & headers.keys():
        return False
    return retries > 0 or not is_retryable(failed)
