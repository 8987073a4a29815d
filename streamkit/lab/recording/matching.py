"""Find the recordings that match a request, or the first difference to the nearest recording.

An exact match needs the same method, path and body bytes. A canonical match needs two JSON bodies with the same content:
neither the order of members nor whitespace counts, numbers are compared as text (``1.0`` differs from ``1``), and ignored
paths are skipped. In a canonical match the recorded path may also begin with the path of the provider's base URL. Both kinds
ignore keys in the query. A body that was not kept is compared by its SHA-256 hash. Without a hash it matches an empty body.

The nearest recording is the one with the fewest differences, and of several the first.

Source: observe.md O28.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import frozen

from streamkit.errors import UsageError
from streamkit.lab.recording import RecordedRequest, sha256_of
from streamkit.lab.recording.headers import kept_target
from streamkit.text.quoting import QUOTED_CHARS, quoted, quoted_all, steps

Path: TypeAlias = tuple[str | int, ...]  #: the place of a value in JSON: member names, and positions from 0
Pattern: TypeAlias = tuple[str | int | None, ...]  #: a ``Path`` as a pattern, in which None matches any position

_PATTERN: Final = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[(?:[0-9]{1,9}|\*)\])*+")
_STEP: Final = re.compile(r"\[(\*|[0-9]+)\]|([^.\[\]]+)")
#: If two texts share at least this many characters, show both from ``_CONTEXT_CHARS`` before their first difference.
_SHARED_CHARS: Final = QUOTED_CHARS // 2
_CONTEXT_CHARS: Final = 10  #: how many characters before the first difference are shown
_ABSENT: Final = object()  #: replaces a value that one of the two bodies does not have


def pattern_in(text: str) -> Pattern:
    """Return the pattern of a text like ``metadata.user_id`` or ``messages[*].id``. Raises UsageError for other text."""
    if _PATTERN.fullmatch(text) is None:
        raise UsageError(f"not a path in a JSON body: {quoted(text)}; write it as metadata.user_id or messages[*].id")
    found = (step.groups() for step in _STEP.finditer(text))
    return tuple(name or (None if position == "*" else int(position)) for position, name in found)


class Difference(NamedTuple):
    """A place at which two bodies differ."""

    path: Path
    asked: Any  #: the requested value; ``_ABSENT`` if there is none
    recorded: Any

    def __str__(self) -> str:
        """Return one line: ``messages[2].content: 'a' in the request, 'b' in the recording``."""
        asked, recorded = self.asked, self.recorded
        if isinstance(asked, str) and isinstance(recorded, str):
            asked, recorded = _from_where_they_differ(asked, recorded)
        return f"{steps(self.path).lstrip('.') or 'body'}: {_shown(asked)} in the request, {_shown(recorded)} in the recording"


class Miss(NamedTuple):
    """The reason why no recording matches a request."""

    reason: str
    nearest: int | None = None  #: position of the recording that the reason describes


class RequestMatcher:
    """The recorded requests, searchable for those that match a request."""

    def __init__(
        self, requests: Sequence[RecordedRequest], *, exact: bool = False, ignored: Iterable[Pattern] = ()
    ) -> None:
        self._exact, self._ignored = exact, tuple(ignored)
        self._recorded = [_Comparable.of(request) for request in requests]

    def matches(self, request: RecordedRequest) -> list[int]:
        asked = _Comparable.of(request)
        return [number for number, recorded in self._alike(asked) if self._is_match(asked, recorded)]

    def explain(self, request: RecordedRequest) -> Miss:
        asked = _Comparable.of(request)
        alike = list(self._alike(asked))
        if not alike:
            there = sorted({f"{recorded.method} {recorded.path}" for recorded in self._recorded})
            return Miss(f"the recorded requests are {quoted_all(there)}")
        nearest, fewest = alike[0][0], self._differences(asked, alike[0][1])
        for number, recorded in alike[1:]:
            found = self._differences(asked, recorded, len(fewest))
            if len(found) < len(fewest):
                nearest, fewest = number, found
        if fewest:
            return Miss(str(fewest[0]), nearest)
        if self._exact and self._recorded[nearest].value is not _ABSENT:
            return Miss("the body has the recorded content in other bytes, but the match must be exact", nearest)
        size, body = len(asked.body or b""), self._recorded[nearest].body
        other = "one that was not kept" if body is None else f"one of {len(body):,} bytes"
        return Miss(f"the request has a body of {size:,} bytes, the recording {other}", nearest)

    def _alike(self, asked: _Comparable) -> Iterator[tuple[int, _Comparable]]:
        return (
            (number, recorded)
            for number, recorded in enumerate(self._recorded)
            if recorded.method == asked.method
            if recorded.path == asked.path or (not self._exact and recorded.path.endswith(asked.path))
        )

    def _is_match(self, asked: _Comparable, recorded: _Comparable) -> bool:
        if asked.sha256 == recorded.sha256:
            return True
        if self._exact or asked.value is _ABSENT or recorded.value is _ABSENT:
            return False
        return not self._differences(asked, recorded, 1)

    def _differences(self, asked: _Comparable, recorded: _Comparable, at_most: int | None = None) -> list[Difference]:
        if asked.value is _ABSENT or recorded.value is _ABSENT:
            return []
        return list(islice(differences(asked.value, recorded.value, self._ignored), at_most))


def differences(asked: Any, recorded: Any, ignored: Sequence[Pattern] = ()) -> Iterator[Difference]:
    """Yield the places where two JSON values differ, in the order of ``asked``. A value missing on one side is one place."""
    waiting: list[Difference] = [Difference((), asked, recorded)]
    while waiting:
        path, one, other = found = waiting.pop()
        if ignored and any(_fits(pattern, path) for pattern in ignored):
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            names = [*one, *(name for name in other if name not in one)]
            waiting += [
                Difference((*path, name), one.get(name, _ABSENT), other.get(name, _ABSENT)) for name in reversed(names)
            ]
        elif isinstance(one, list) and isinstance(other, list):
            pairs = [*enumerate(zip_longest(one, other, fillvalue=_ABSENT))]
            waiting += [Difference((*path, number), *pair) for number, pair in reversed(pairs)]
        elif isinstance(one, dict | list) or isinstance(other, dict | list) or one != other:
            yield found


@frozen
class _Comparable:
    """A request, with the values that are compared."""

    method: str
    path: str
    body: bytes | None
    sha256: str
    value: Any  #: the parsed JSON body; ``_ABSENT`` if the body is not JSON

    @classmethod
    def of(cls, request: RecordedRequest) -> _Comparable:
        body = request.body
        sha256 = request.body_sha256 or sha256_of(body or b"")
        return cls(request.method, _without_keys(request.path), body, sha256, _value(body))


@frozen(repr=False)
class _Number:
    text: str

    def __repr__(self) -> str:
        return self.text


def _value(body: bytes | None) -> Any:
    if body is None:
        return _ABSENT
    try:
        return json.loads(body, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError):  # a body that is not JSON, or is nested too deep, is compared by its bytes
        return _ABSENT


def _without_keys(target: str) -> str:
    """Return the path and query without keys, with the query sorted so that its order does not count."""
    path, mark, query = kept_target(target)[0].partition("?")
    return f"{path}{mark}{'&'.join(sorted(query.split('&')))}"


def _fits(pattern: Pattern, path: Path) -> bool:
    return len(pattern) == len(path) and all(
        isinstance(step, int) if wanted is None else wanted == step for wanted, step in zip(pattern, path, strict=True)
    )


def _from_where_they_differ(asked: str, recorded: str) -> tuple[str, str]:
    pairs = enumerate(zip(asked, recorded, strict=False))
    shared = next((number for number, (one, other) in pairs if one != other), min(len(asked), len(recorded)))
    if shared < _SHARED_CHARS:
        return asked, recorded
    at = shared - _CONTEXT_CHARS
    return f"…{asked[at:]}", f"…{recorded[at:]}"


def _shown(value: Any) -> str:
    return "nothing" if value is _ABSENT else quoted(value)
