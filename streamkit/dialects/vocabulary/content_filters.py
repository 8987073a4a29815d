"""Recognise the error that a provider's content filter refused the request, or the response before its first word.

Providers report it as an invalid request, or as a missing permission. Another provider's filter may allow the same request.
A response that ends by a filter has a stop reason instead (``stop_reasons.py``).

Source: dialects.md §7.5; the messages of the servers that are named next to the patterns.
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.events import ErrorType, ProviderFailed

#: Codes and types of this error: Azure and Moonshot, Azure, OpenAI (the next two), Alibaba in two forms.
FILTER_CODES: Final = frozenset(
    {
        "content_filter",
        "ResponsibleAIPolicyViolation",
        "content_policy_violation",
        "moderation_blocked",
        "data_inspection_failed",
        "DataInspectionFailed",
    }
)
#: The search for known words is limited to this beginning of a message.
LOOKED_AT_CHARS: Final = 1000
_SAID: Final = re.compile(
    r"content management policy|content filter(?:ing)? policy|rejected as a result of our safety"  # Azure; Anthropic; OpenAI
    r"|limited access to this content|flagged (?:as|for|by)\b"  # OpenAI; OpenAI and OpenRouter
    r"|requires moderation|violates? (?:our |the )?usage (?:guidelines|polic)"  # OpenRouter; xAI
    r"|content exists risk|considered high risk|may contain inappropriate content"  # DeepSeek; Moonshot; Alibaba
    r"|unsafe or sensitive content|new_sensitive|responsible ai practices",  # Z.AI; MiniMax; Vertex AI
    re.IGNORECASE,
)
#: The types of error that may mean a filter. A rate limit with the same words does not.
_MAY_BE: Final[frozenset[ErrorType]] = frozenset({"invalid_request", "permission", "server"})


def is_filtered(failed: ProviderFailed) -> bool:
    """Return whether a content filter is the reason why a request failed."""
    if failed.type not in _MAY_BE:
        return False
    if failed.code in FILTER_CODES or failed.native_type in FILTER_CODES:
        return True
    return _SAID.search(failed.message, 0, LOOKED_AT_CHARS) is not None
