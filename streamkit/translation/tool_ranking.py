"""Rank tools by how well they match a search in words (BM25).

A tool is found by its name, its description, and the names and descriptions of its arguments, as at the vendors. The words of
a name are counted twice. Words are compared by their stems, as English. It needs the extra ``tools``.

Source: Anthropic, "Tool search tool" (what is searched); Robertson and Zaragoza, "The Probabilistic Relevance Framework".
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from streamkit.conversation.messages import Tool
from streamkit.errors import UsageError

LIBRARIES: Final = ("bm25s", "Stemmer")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[\W_]+")
#: The most characters of a tool that are searched, and the most levels of its schema.
TOOL_CHARS, LEVELS = 20_000, 8


def check_library(instead: str) -> None:
    """Raise UsageError without the extra, with what to write ``instead``."""
    if not all(map(find_spec, LIBRARIES)):
        raise UsageError(f"a search of tools needs an extra: pip install 'streamkit-llm[tools]'; {instead}")


class Ranking:
    """An index of tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        bm25s, stemmer = map(importlib.import_module, LIBRARIES)  # imported late: they bring numpy, which takes 0.1 s
        self._names = [tool.name for tool in tools]
        self._stemmer = stemmer.Stemmer("english")
        self._tokenize = bm25s.tokenize
        self._index = bm25s.BM25()
        words = self._words([" ".join(_texts(tool))[:TOOL_CHARS] for tool in tools])
        self._empty = not any(words)
        if not self._empty:
            self._index.index(words, show_progress=False)

    def best(self, query: str, most: int) -> list[str]:
        """Return the names of at most ``most`` tools that match the query, the best first; a tool named exactly is first."""
        exact = [name for name in self._names if name.lower() == query.strip().lower()]
        (words,) = self._words([_plain(query[:TOOL_CHARS])])
        if not words or self._empty:
            return exact[:most]
        scores = self._index.get_scores(words).tolist()
        order = sorted(range(len(scores)), key=lambda at: -scores[at])
        ranked = [self._names[at] for at in order if scores[at] > 0]
        return list(dict.fromkeys([*exact, *ranked]))[:most]

    def _words(self, texts: list[str]) -> list[list[str]]:
        """Return the stems of the words of each text, without words such as "the"."""
        found: list[list[str]] = self._tokenize(
            texts, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False
        )
        return found


def _texts(tool: Tool) -> Iterator[str]:
    name = _plain(tool.name)
    yield from (name, name, tool.description or "")
    if tool.namespace is not None:
        yield tool.namespace.description or ""
    yield from _of_schema(tool.parameters, LEVELS)


def _of_schema(schema: Any, levels: int) -> Iterator[str]:
    """Yield the names and descriptions of arguments, also of those inside other arguments."""
    if levels and isinstance(schema, list):
        for each in schema:
            yield from _of_schema(each, levels - 1)
    if not levels or not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, Mapping) else ():
        yield _plain(str(name))
        if isinstance(inner, Mapping) and isinstance(words := inner.get("description"), str):
            yield words
        yield from _of_schema(inner, levels - 1)
    for name in ("items", "anyOf", "oneOf", "allOf"):
        yield from _of_schema(schema.get(name), levels - 1)


def _plain(text: str) -> str:
    """Return the words of a name such as ``get_userName``, with blanks between them."""
    return _BETWEEN.sub(" ", _HUMP.sub(" ", text))
