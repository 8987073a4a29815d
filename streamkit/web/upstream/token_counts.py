"""Counting the tokens of a request: the request to an upstream's count operation, and its response.

A count accepts fewer members than a generation, and providers refuse the others. The request is first written as for a
generation (``encode_request``); this module then removes the members that a count does not accept, which have no tokens.

Source: limits.md T5; ``TokenCount`` has the differences between dialects.
"""

from __future__ import annotations

from typing import Any

import orjson

from streamkit.dialects.members.fields import fields_of
from streamkit.errors import BrokenFrame
from streamkit.web.upstream.addresses import count_at
from streamkit.web.upstream.value import Upstream


def count_request(upstream: Upstream, body: bytes, model: str) -> bytes:
    """Return the body of a count for ``body``, a request in the upstream's dialect. Raises UsageError if it can't count."""
    count = count_at(upstream)
    fields = fields_of(body)
    members: dict[str, Any] = {}
    for name in fields.names:
        if count.takes is None or name in count.takes:
            members[name] = orjson.Fragment(fields.body.text_of(fields.peek(name), (name,)))  # numbers as written
    return orjson.dumps(count.body(members, model))


def count_of(upstream: Upstream, body: bytes) -> int:
    """Return the number of tokens in the response to a count. Raises BrokenFrame if there is none."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BrokenFrame("the answer to a count is no JSON", body) from error
    count = answer.get(count_at(upstream).member) if isinstance(answer, dict) else None
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BrokenFrame("the answer to a count has no number of tokens", body)
    return count
