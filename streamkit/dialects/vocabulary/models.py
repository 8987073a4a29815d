"""The columns of the table of models, and the conversion between words and tokens for an effort.

``model_table.py`` has the rows, ``model_names.py`` finds the row of a name.

Some dialects have an effort (``reasoning_effort``, ``thinkingLevel``), some a budget of tokens (``budget_tokens``,
``thinkingBudget``, ``token_budget``), some both. A value in the other form is converted to the nearest one, and counts as a
loss. A budget becomes one of the three efforts that every server with efforts accepts. The numbers are Google's, and two
larger ones.

How to add a model: docs/how-to/add-a-model.md. Source: dialects.md §7.8; ai.google.dev, "OpenAI compatibility".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias

from attrs import frozen

#: Tokens for each effort, smallest first.
BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 32768,
    "max": 65536,
}
COMMON: Final = ("low", "medium", "high")
#: The text that Google accepts in place of a missing call signature (ai.google.dev, "Thought signatures").
NO_SIGNATURE: Final = "skip_thought_signature_validator"


def budget_of(effort: str | None) -> int | None:
    """Return the tokens for an effort; None without an effort, or for an unknown word."""
    return BUDGETS.get(effort or "")


def effort_of(budget: int | None) -> str | None:
    """Return the effort whose tokens are nearest to a budget by ratio; None without a budget, or if it is not positive."""
    if budget is None or budget <= 0:
        return None
    return min(COMMON, key=lambda effort: abs(math.log(budget / BUDGETS[effort])))


def nearest(effort: str, known: Collection[str]) -> str | None:
    """Return the strongest ``known`` effort that is not above this one, else the weakest; None for an unknown effort."""
    if effort in known:
        return effort
    order = [word for word in BUDGETS if word in known]
    if effort not in BUDGETS or not order:
        return None
    below = [word for word in order if BUDGETS[word] < BUDGETS[effort]]
    return below[-1] if below else order[0]


def below(budget: int, bound: int | None, least: int = 1) -> int | None:
    """Return the budget if it is below ``bound``, or else half of ``bound``; None if not even ``least`` is below ``bound``."""
    if bound is None or budget < bound:
        return budget
    return max(least, bound // 2) if least < bound else None


Efforts: TypeAlias = tuple[str, ...]


@frozen
class Source:
    """Where a fact of the table is from, and when it was taken from there."""

    title: str
    place: str  #: a URL, or a package with its version and the file
    date: str  #: ``2026-11-28``


@frozen(kw_only=True)
class ModelInfo:
    """What the models of one family accept in a request, and how many tokens these models read and write.

    The defaults apply to each model that the table of models lacks: nearly all servers accept what the defaults allow.
    """

    #: Patterns of model names, separated by spaces, in shell syntax (``*``, ``?``). A match must begin at the start of
    #: the name, or right after a ``/``, ``.`` or ``:`` in the name. A pattern that begins with ``*`` may match
    #: anywhere. Names are compared in lower case, and with a dot in the version number (``4.6`` instead of ``4-6``).
    names: str
    sources: tuple[str, ...]  #: The sources of these facts, as keys of the table's list of sources.
    vendor: str = ""  #: The vendor of the models: ``anthropic``.
    #: The largest number of tokens in a conversation, including the response. None: not known.
    context: int | None = None
    #: The largest number of tokens in a response. A larger ``max_tokens`` is refused. None: the number is not known, or
    #: depends on the provider that runs the model.
    output: int | None = None
    #: The types of input that the models read: ``text``, ``image``, ``pdf``, ``audio``, ``video``.
    inputs: tuple[str, ...] = ("text",)

    #: The accepted words for how much the model should think, weakest first. The list has ``none`` if thinking can be
    #: turned off. Empty: no word is accepted.
    efforts: Efforts = COMMON
    #: Whether the vendor's own API accepts the words in ``efforts``. False: this API accepts only a number of thinking
    #: tokens.
    words: bool = True
    #: The smallest and the largest number of thinking tokens that a request may set. None: a request may not set a
    #: number.
    budget: tuple[int, float] | None = (1, float("inf"))
    #: When the model thinks. ``always``: in every response. ``unasked``: unless a request turns thinking off.
    #: ``asked``: only if a request turns thinking on.
    thinks: Literal["always", "unasked", "asked"] = "asked"
    off: str = "disabled"  #: For Claude: the ``type`` in the member ``thinking`` that turns thinking off.
    #: Whether OpenAI Chat Completions has restrictions for the model that OpenAI Responses lacks: no effort ``max``,
    #: and no tools while the model thinks.
    legacy_chat: bool = False
    #: Whether the model labels its messages in OpenAI Responses as commentary or final answer (``phase``). Such a model
    #: works worse if the next request does not repeat the labels.
    phases: bool = False

    refuses: tuple[str, ...] = ()  #: Options that the model always refuses or ignores.
    refuses_thinking: tuple[str, ...] = ()  #: Options that the model refuses while it thinks.
    #: The smallest ``top_p`` that the model accepts while it thinks, even if ``top_p`` is in ``refuses_thinking``.
    least_top_p: float | None = None
    both: bool = True  #: Whether a request may have both ``temperature`` and ``top_p``.

    prefill: bool = True  #: Whether the model continues an assistant's text at the end of the conversation.
    compacts: bool = True  #: Whether the model can summarise the conversation so far.
    #: The longest lifetime that a cache mark may set. ``short``: 5 minutes. ``long``: more than 5 minutes. Empty: no
    #: cache marks are accepted.
    cache_marks: Literal["", "short", "long"] = ""
    cached_tools: bool = True  #: Whether the definition of a tool may have a cache mark.
    #: Whether the model refuses a conversation in which the first call of a turn has no signature of the vendor.
    signatures: bool = False
    media_in_results: bool = True  #: Whether a tool's result may have media.

    #: For Claude: when a tool choice may require a call. ``always``, ``never``, or only while the model does not think
    #: (``unthinking``).
    forced_calls: Literal["always", "unthinking", "never"] = "unthinking"
    #: Whether the vendor's own API has a search of deferred tools for this model.
    finds_tools: bool = False
    parallel_option: bool = True  #: Whether a request may allow or forbid parallel calls.
    #: The response formats that the vendor's own API accepts in addition to text: ``json``, ``schema``. For Claude,
    #: ``schema`` also means that tools may be strict.
    forms: tuple[Literal["json", "schema"], ...] = ("json", "schema")
    form_with_tools: bool = True  #: Whether a request may have both tools and a JSON response format.

    def fit(self, effort: str | None) -> str | None:
        """Return the nearest effort that the model knows; None if the model knows none that is near."""
        if effort is None or effort in self.efforts:
            return effort
        if effort == "none":
            return next(iter(self.efforts), None) if self.thinks == "always" else None
        return "default" if "default" in self.efforts else nearest(effort, self.efforts)

    def is_thinking(self, effort: str | int | None, *, off: bool) -> bool:
        """Return whether the model thinks, for this effort or number of tokens. ``off``: the request turns thinking off."""
        if self.thinks == "always":
            return True
        if off or effort == "none":
            return "none" not in self.efforts and self.thinks == "unasked"
        return self.thinks == "unasked" or (effort is not None and bool(self.efforts))


@frozen
class ServerWords:
    """The words for how much to think at a provider that has other words than the vendor."""

    provider: str
    part: str  #: what occurs in the names of the models; empty: all models
    efforts: Efforts
    sources: tuple[str, ...]


UNKNOWN: Final = ModelInfo(names="", sources=())  #: stands for a model that no row of the table is about
