"""What a client is told that asked how many tokens a request has. How an upstream is asked, see ``upstream/count.py``.

Source: issue text 6 §2. Seen: anthropic 2.12 ``MessageTokensCount``, google-genai 3.4 ``CountTokensResponse``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from streamkit.dialects import client_named
from streamkit.errors import UsageError

#: The member that says how many, in each dialect that has a path to ask at.
_MEMBERS: Final[Mapping[str, str]] = {"anthropic": "input_tokens", "gemini": "totalTokens"}


def count_response(dialect: str, tokens: int) -> bytes:
    """The body that tells a client of ``dialect`` a count. Raises UsageError for a dialect in which nobody asks for one."""
    name = client_named(dialect)[0].name
    if name not in _MEMBERS:
        raise UsageError(f"nobody asks for a count in {name}; {' and '.join(_MEMBERS)} have a path for it")
    return orjson.dumps({_MEMBERS[name]: tokens})
