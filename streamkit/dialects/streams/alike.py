"""Decode many similar payloads at once: payloads of one network read that differ only in one text.

If a payload contained only a text, the next payloads that are equal except for their text continue the same block. In
most streams the bytes around the text are equal (``delta_template.py``), and only the text is parsed. Some dialects have
members that no decoder reads and that change in each payload, such as a number or the time. There each payload is parsed,
these members and the text are removed, and the rest must serialize to the same bytes: ``True`` and 1.0 differ from 1.

Gain: a third to nine tenths of the time of large reads.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import orjson
from attrs import define, evolve

from streamkit.dialects.streams.delta_template import learned
from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from streamkit.tool_calls.call import FragmentRun

#: Events that may contain nothing but a text.
Said: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta
Path: TypeAlias = tuple[str | int, ...]
loads, dumps = orjson.loads, orjson.dumps


class ManyReader(Protocol):
    """Reads several payloads that differ only in their text."""

    def read(self, payloads: Sequence[bytes], out: list[Any], /) -> int:
        """Append to ``out`` the events of the first payloads, up to one that differs. Return the number of payloads read."""


@define
class Alike:
    """Reads payloads that differ only in their text from a payload which contained nothing but that text."""

    _said: Said | None
    _find: Callable[[Sequence[bytes]], list[Any]]  # returns the texts of payloads
    _note: Callable[[str], object]  # gets the joined text first, and refuses it by returning False

    def read(self, payloads: Sequence[bytes], out: list[Any]) -> int:
        texts, delta = self._find(payloads), self._said
        if "" in texts:  # an empty text may have a meaning, so it ends the run
            del texts[texts.index("") :]
        text = "".join(texts)
        if not text or self._note(text) is False:
            return 0
        if isinstance(delta, ToolCallDelta):
            out.append(FragmentRun([delta.index or 0] * len(texts), texts, delta.choice))
        elif delta is not None:
            out.append(evolve(delta, text=text))
        return len(texts)


def finding(
    payload: bytes, following: bytes, text: str, idle: Collection[str]
) -> Callable[[Sequence[bytes]], list[Any]]:
    """Return a function that finds the texts of payloads that are similar to ``payload`` and ``following``.

    ``text`` is the text of ``payload``. ``idle`` has the names of members that may differ in each payload.
    """
    places = [*places_of(loads(payload), text)]
    if len(places) != 1:  # the text is at several places, or none: unclear which one the decoder reads
        return _none
    template = learned(payload, loads(payload), places[0])
    if template is not None and template.padded and "obfuscation" not in idle:  # ``obfuscation`` is no padding here
        return _none
    if template is not None and template.deltas([following]):
        return template.deltas
    document = loads(payload)
    varying = {name: type(document.pop(name)) for name in idle if name in document}
    if not varying or not {dict, list}.isdisjoint(varying.values()):  # a container may be nested too deeply
        return _none
    return Others(document, places[0], varying).texts


def _none(_payloads: Sequence[bytes]) -> list[Any]:
    return []


def text_alone(delta: Said) -> str:
    """Return the text of an event that contains only a text; blank for any other event."""
    if not isinstance(delta, ToolCallDelta):
        return delta.text
    text = delta.arguments or ""
    return text if delta == ToolCallDelta(delta.index or 0, None, None, text, delta.choice) else ""


class Others:
    """Finds payloads that equal a document except for the text at ``path`` and the ``varying`` members.

    The given document is changed.
    """

    def __init__(self, document: dict[str, Any], path: Path, varying: dict[str, type]) -> None:
        self._path = path
        self._varying = varying
        self._taken([document])
        self._written = dumps(document)

    def texts(self, payloads: Sequence[bytes]) -> list[str]:
        """Return the texts of the first similar payloads, or of fewer of them."""
        while (texts := self._all(payloads)) is None and len(payloads) > 1:
            payloads = payloads[: len(payloads) // 2]
        return texts or []

    def _all(self, payloads: Sequence[bytes]) -> list[str] | None:
        """Return the texts of all payloads; None if one of them differs."""
        try:
            documents = list(map(loads, payloads))
            for name, kind in self._varying.items():
                if {*map(type, [document.pop(name) for document in documents])} != {kind}:
                    return None
            texts = self._taken(documents)
            written = dumps(documents)
        except (LookupError, TypeError, AttributeError, ValueError):  # a member is missing, or a payload is not JSON
            return None
        same = written == b"[%b]" % b",".join([self._written] * len(documents)) and {*map(type, texts)} == {str}
        return texts if same else None

    def _taken(self, documents: Sequence[Any]) -> list[Any]:
        *steps, name = self._path
        owners = documents
        for step in steps:
            owners = list(map(itemgetter(step), owners))
        return [owner.pop(name) for owner in owners]


def places_of(value: Any, text: str, path: Path = ()) -> Iterator[Path]:
    """Yield the paths at which a text occurs in a value."""
    if value == text:
        yield path
    elif type(value) is dict or type(value) is list:
        for name, member in value.items() if type(value) is dict else enumerate(value):
            yield from places_of(member, text, (*path, name))
