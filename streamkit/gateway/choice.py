"""Order the upstreams of a route for one request.

An element of a route's ``to`` may be a group of equals. The groups keep their order; ``balance`` chooses within each. Every
target of a group gets a number between 0 and 1, and the logarithm of this number, divided by the target's weight, ranks the
group. So each target is first as often as its weight says (Efraimidis and Spirakis, 2006).

* ``weighted``: the numbers are random.
* ``fewest_open``: the target with the fewest open streams for its weight is first; random numbers decide between equal ones.
* ``affinity``: the numbers are hashes of the conversation and the target (weighted rendezvous hashing). So every worker and
  node finds the same order without shared state, and if a target is removed or rests, only its conversations move: to the next
  target of their own order. A request that names no conversation is ranked as ``weighted``.

The conversation is read from the decoded request, and only a digest of it is used.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final

from streamkit.conversation.messages import Text
from streamkit.gateway.routing import HEADER, Route, Target
from streamkit.web.surfaces import Ask
from streamkit.web.upstream import Upstream

#: The names in ``Request.exchange`` by which clients of chat interfaces name their conversation.
_CONVERSATIONS: Final = ("threadId", "id")


def conversation_of(ask: Ask, places: Iterable[str], headers: Mapping[str, str]) -> bytes | None:
    """Return a digest of the name of the request's conversation, from the first of ``places`` that has one; None: none has.

    ``headers`` are those of the client.
    """
    for place in places:
        if name := _named(ask, place, headers):
            return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return None


def ordered(route: Route, ask: Ask, conversation: bytes | None, streams: Mapping[str, int]) -> Sequence[Target]:
    """Return the route's targets in the order in which they are tried.

    ``streams`` are the open streams of each upstream, by name.
    """
    if not route.has_groups:
        return route.targets

    def rank(target: Target) -> tuple[float, float]:
        open_streams = streams.get(target.upstream.name, 0) if route.balance == "fewest_open" else 0
        return open_streams / target.weight, -math.log(_number(target, ask.model, conversation)) / target.weight

    groups = groupby(route.targets, key=lambda target: target.place)
    return [target for _, group in groups for target in sorted(group, key=rank)]


def key_order(upstream: Upstream, conversation: bytes | None) -> list[int]:
    """Return the indexes of an upstream's keys in the order of their use. Each conversation has its own order."""
    order = list(range(len(upstream.keys)))
    if conversation is not None:
        order.sort(key=lambda index: _hashed(conversation, upstream.keys[index].reveal()))
    return order


def _number(target: Target, model: str, conversation: bytes | None) -> float:
    """Return the target's number for the conversation, or a random one: above 0, at most 1."""
    if conversation is None:
        return 1.0 - random.random()  # noqa: S311 - not for security
    return _hashed(conversation, f"{target.upstream.name}\0{target.model or model}")


def _hashed(conversation: bytes, name: str) -> float:
    """Return a number between 0 and 1, both excluded."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6, key=conversation).digest()
    return (int.from_bytes(digest) + 0.5) / 2**48


def _named(ask: Ask, place: str, headers: Mapping[str, str]) -> str:
    request = ask.request
    value: Any = None
    match place:
        case "prompt_cache_key":
            value = request.extras.get(place)
        case "conversation":
            value = next((request.exchange[name] for name in _CONVERSATIONS if name in request.exchange), None)
        case "previous_response_id":
            # each response has another id, but the first message stays: the gateway has inserted the stored conversation
            value = _first_message(ask) if ask.stored is not None and ask.stored.previous_id else None
        case "first_message":
            value = _first_message(ask)
        case "user":
            metadata = request.extras.get("metadata")
            value = request.options.user or (metadata.get("user_id") if isinstance(metadata, dict) else None)
        case _:
            value = headers.get(place.removeprefix(HEADER))
    return value if isinstance(value, str) else ""


def _first_message(ask: Ask) -> str:
    """Return the text of the user's first message."""
    parts = next((turn.parts for turn in ask.request.turns if turn.role == "user"), [])
    return "".join(part.text for part in parts if isinstance(part, Text))
