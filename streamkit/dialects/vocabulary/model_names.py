"""Find what a model accepts, by its name.

A server refuses a whole request because of one word that its model does not accept, and a client that named another model
cannot know this. The row of a model is the first of ``model_table.py`` with a pattern that matches its name, in the spelling
of any vendor, cloud or router (``claude-opus-4-6``, ``us.anthropic.claude-opus-4-6-v1:0``, ``anthropic/claude-opus-4.6``).
Names are compared in lower case, and versions in the form with a point. A model without a row gets the default of the dialect
(``UNKNOWN``, or a row next to the dialect's writer), which has what nearly all its servers accept: three efforts, no word for
turning thinking off, any sampling option, no cache mark. Only requests of another dialect are changed.
"""

from __future__ import annotations

import fnmatch
import re
from functools import cache, lru_cache
from typing import Final

from attrs import evolve

from streamkit.dialects.vocabulary.model_table import ROWS, SERVERS
from streamkit.dialects.vocabulary.models import UNKNOWN, ModelInfo
from streamkit.errors import UsageError, check_type
from streamkit.text.quoting import quoted

#: Matches a version that is written without a point: ``gpt-5-2``, ``claude_opus_4_6``. Dates and sizes do not match.
_VERSION: Final = re.compile(r"(?<![\d.])(\d)[-_](\d\d?)(?![\da-z])")
#: Matches the end of what may precede the vendor's name of a model: ``openai/``, ``us.anthropic.``, ``ft:``, ``databricks-``.
_BEFORE: Final = r"(?:^|[/.:]|databricks-)"
LONGEST: Final = 256  #: a longer name is of no known model; it is neither searched nor remembered


def model_info(name: str) -> ModelInfo | None:
    """Return the entry of the model called ``name`` in the table of models, or None if the table has no such model.

    ``name`` may be in the form that any vendor, cloud or router uses: ``gpt-5.5``, ``openai/gpt-5.5``,
    ``us.anthropic.claude-opus-4-6-v1:0``. The model of an Azure deployment can't be found by the deployment's name.
    """
    found = _found(name)
    return None if found is UNKNOWN else found


def check_model_like(name: str | None) -> None:
    """Raise UsageError unless the table knows the model called ``name``, or ``name`` is None."""
    if name is not None:
        check_type("model_like", name, str, "the name of a known model")
        if model_info(name) is None:
            raise UsageError(
                f"model_like: no known model is called {quoted(name)}; write the name of one, such as gpt-5.5"
            )


def model_of(
    name: str | None, provider: str = "", unknown: ModelInfo = UNKNOWN, words: frozenset[str] | None = None
) -> ModelInfo:
    """Return the row of a model at a provider. ``words``: the efforts that the dialect can express; None: any."""
    name = _plain(name or "")
    found = _found(name)
    if found is UNKNOWN:
        found = unknown
    efforts = next(
        (server.efforts for server in SERVERS if server.provider == provider and server.part in name), found.efforts
    )
    if words is not None:
        efforts = tuple(effort for effort in efforts if effort in words)
    return found if efforts == found.efforts else evolve(found, efforts=efforts)


def _found(name: str) -> ModelInfo:
    return UNKNOWN if len(name) > LONGEST else _searched(name)


@lru_cache(maxsize=1024)
def _searched(name: str) -> ModelInfo:
    name = _plain(name)
    return next((row for pattern, row in _patterns() if pattern.search(name)), UNKNOWN)


def _plain(name: str) -> str:
    return _VERSION.sub(r"\1.\2", name.lower()).replace("_", "-")


@cache
def _patterns() -> list[tuple[re.Pattern[str], ModelInfo]]:
    """Return the rows with their patterns as one expression each. It is made when the first name is looked up."""
    return [(re.compile("|".join(map(_expression, row.names.split()))), row) for row in ROWS]


def _expression(pattern: str) -> str:
    if pattern.startswith("*"):
        return fnmatch.translate(pattern[1:])
    return _BEFORE + fnmatch.translate(pattern)
