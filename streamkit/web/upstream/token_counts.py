"""Counting the tokens of a request: what an upstream's operation takes and answers.

A count takes a part of what a generation takes, and providers refuse the rest. The request is written as for a generation
(``encode_request``), and what the count does not take is left out here: it has no tokens.

Source: limits.md T5; what differs by dialect is ``TokenCount``.
"""

from __future__ import annotations

from typing import Any

import orjson

from streamkit.dialects.members.fields import fields_of
from streamkit.errors import BrokenFrame
from streamkit.web.upstream.addresses import count_at
from streamkit.web.upstream.value import Upstream


def count_request(upstream: Upstream, body: bytes, model: str) -> bytes:
    """The body of a count, from a request's body in the upstream's dialect. Raises UsageError where it can't count."""
    count = count_at(upstream)
    fields = fields_of(body)
    members: dict[str, Any] = {}
    for name in fields.names:
        if count.takes is None or name in count.takes:
            members[name] = orjson.Fragment(fields.body.text_of(fields.peek(name), (name,)))  # numbers as they came
    return orjson.dumps(count.body(members, model))


def count_of(upstream: Upstream, body: bytes) -> int:
    """The number of tokens in a count's answer. Raises BrokenFrame for one that has none."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BrokenFrame("the answer to a count is no JSON", body) from error
    count = answer.get(count_at(upstream).member) if isinstance(answer, dict) else None
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BrokenFrame("the answer to a count has no number of tokens", body)
    return count
