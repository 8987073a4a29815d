"""Read together the payloads of one read that differ in one text alone.

If a decoded payload contained a text and nothing else, the payloads after it that are equal but for their text contain more of
the same block, up to the first payload that differs. Nearly always the bytes around the text are equal
(``delta_template.py``), and only the text is parsed. Some dialects have members that no decoder reads and that change in each
payload, such as a number or the time. There each payload is parsed, these members and the text are removed, and the rest must
serialize to the same bytes: ``True`` and 1.0 are not 1.

Gain: a third to nine tenths of the time of large reads.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import orjson
from attrs import evolve

from streamkit.dialects.streams.delta_template import learned
from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from streamkit.tool_calls.settled import FragmentRun

#: Events that a text alone may be.
Said: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta
Path: TypeAlias = tuple[str | int, ...]
loads, dumps = orjson.loads, orjson.dumps


class ManyReader(Protocol):
    """Reads payloads that are alike."""

    def read(self, payloads: Sequence[bytes], out: list[Any], /) -> int:
        """Append to ``out`` the events of the first payloads, up to one that differs. Return the number of payloads read."""


class Alike:
    """Reads payloads like one that contained a text and nothing else."""

    def __init__(
        self, said: Said | None, find: Callable[[Sequence[bytes]], list[Any]], note: Callable[[str], object]
    ) -> None:
        """``find`` returns the texts of payloads. ``note`` gets these texts first, and refuses them if it returns False."""
        self._said = said
        self._find = find
        self._note = note

    def read(self, payloads: Sequence[bytes], out: list[Any]) -> int:
        texts, said = self._find(payloads), self._said
        if "" in texts:  # which says nothing, and may mean something
            del texts[texts.index("") :]
        text = "".join(texts)
        if not text or self._note(text) is False:
            return 0
        if isinstance(said, ToolCallDelta):
            out.append(FragmentRun([said.index or 0] * len(texts), texts, said.choice))
        elif said is not None:
            out.append(evolve(said, text=text))
        return len(texts)


def finding(
    payload: bytes, following: bytes, text: str, idle: Collection[str]
) -> Callable[[Sequence[bytes]], list[Any]]:
    """Return a function that finds the texts of payloads like ``payload``, which has ``text``, and like the ``following`` one.

    ``idle`` has the names of members that may differ in each payload.
    """
    places = [*places_of(loads(payload), text)]
    if len(places) != 1:  # it is not clear which of them is read
        return _none
    template = learned(payload, loads(payload), places[0])
    if template is not None and template.padded and "obfuscation" not in idle:  # there it is a member like others
        return _none
    if template is not None and template.deltas([following]):
        return template.deltas
    document = loads(payload)
    varying = {name: type(document.pop(name)) for name in idle if name in document}
    if not varying or not {dict, list}.isdisjoint(varying.values()):  # which may be too deep
        return _none
    return Others(document, places[0], varying).texts


def _none(_payloads: Sequence[bytes]) -> list[Any]:
    return []


def text_alone(said: Said) -> str:
    """The text of an event that is nothing else; blank for any other."""
    if not isinstance(said, ToolCallDelta):
        return said.text
    text = said.arguments or ""
    return text if said == ToolCallDelta(said.index or 0, None, None, text, said.choice) else ""


class Others:
    """Finds payloads equal to a document but for the text at ``path`` and ``varying`` members. The document is changed."""

    def __init__(self, document: dict[str, Any], path: Path, varying: dict[str, type]) -> None:
        self._path = path
        self._varying = varying
        self._taken([document])
        self._written = dumps(document)

    def texts(self, payloads: Sequence[bytes]) -> list[str]:
        """Return the texts of the first payloads that are alike, or of fewer of them."""
        while (texts := self._all(payloads)) is None and len(payloads) > 1:
            payloads = payloads[: len(payloads) // 2]
        return texts or []

    def _all(self, payloads: Sequence[bytes]) -> list[str] | None:
        """The texts of all payloads; None if one is not alike."""
        try:
            documents = list(map(loads, payloads))
            for name, kind in self._varying.items():
                if {*map(type, [document.pop(name) for document in documents])} != {kind}:
                    return None
            texts = self._taken(documents)
            written = dumps(documents)
        except (LookupError, TypeError, AttributeError, ValueError):  # a member is missing, or something is no JSON
            return None
        same = written == b"[%b]" % b",".join([self._written] * len(documents)) and {*map(type, texts)} == {str}
        return texts if same else None

    def _taken(self, documents: Sequence[Any]) -> list[Any]:
        """The texts, which are taken out of the documents."""
        *steps, name = self._path
        owners = documents
        for step in steps:
            owners = list(map(itemgetter(step), owners))
        return [owner.pop(name) for owner in owners]


def places_of(value: Any, text: str, path: Path = ()) -> Iterator[Path]:
    """Where a text stands in a value."""
    if value == text:
        yield path
    elif type(value) is dict or type(value) is list:
        for name, member in value.items() if type(value) is dict else enumerate(value):
            yield from places_of(member, text, (*path, name))
