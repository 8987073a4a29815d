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
    """What the models of one family accept in a request, and how many tokens they read and write.

    The defaults are what nearly all servers accept. If the table of models does not know a model, the defaults apply to
    the model.
    """

    #: Patterns of names, as in a shell, separated by blanks. A pattern must match from the start of the name, or from after a
    #: ``/``, ``.`` or ``:`` in the name. A pattern that begins with ``*`` matches anywhere. Names are compared in lower case,
    #: and with a point in versions.
    names: str
    sources: tuple[str, ...]  #: The keys of the sources in the table.
    vendor: str = ""  #: The vendor of the models: ``anthropic``.
    context: int | None = None  #: The most tokens of a conversation, the response included. None: not known.
    #: The most tokens of a response; a larger ``max_tokens`` is refused. None: not known, or it depends on the host.
    output: int | None = None
    inputs: tuple[str, ...] = ("text",)  #: What the models read: ``text``, ``image``, ``pdf``, ``audio``, ``video``.

    #: The words for how much to think, weakest first. They include ``none`` if thinking can be turned off. Empty: no word is
    #: accepted.
    efforts: Efforts = COMMON
    #: Whether the vendor's own API accepts these words. False: it accepts only a number of tokens.
    words: bool = True
    #: The smallest and the largest number of thinking tokens. None: no number is accepted.
    budget: tuple[int, float] | None = (1, float("inf"))
    #: When the model thinks. ``unasked``: always, unless a request turns thinking off. ``asked``: only if a request turns
    #: thinking on.
    thinks: Literal["always", "unasked", "asked"] = "asked"
    off: str = "disabled"  #: The type of Claude's ``thinking`` that turns thinking off.
    #: Whether OpenAI's Chat offers the model less than Responses does: no effort ``max``, and no tools while it thinks.
    legacy_chat: bool = False
    #: Whether the model labels its messages in Responses as commentary or final answer, and works worse if a request does not
    #: repeat these labels (``phase``).
    phases: bool = False

    refuses: tuple[str, ...] = ()  #: Options that the model always refuses, or ignores.
    refuses_thinking: tuple[str, ...] = ()  #: Options that the model refuses while it thinks.
    #: The smallest ``top_p`` that the model accepts while it thinks, even if ``top_p`` is in ``refuses_thinking``.
    least_top_p: float | None = None
    both: bool = True  #: Whether the model accepts ``temperature`` and ``top_p`` together.

    prefill: bool = True  #: Whether the model continues the text of a last assistant turn.
    compacts: bool = True  #: Whether the model can summarise the conversation so far.
    #: The longest lifetime of a cache mark: 5 minutes (``short``) or more. Empty: no marks are accepted.
    cache_marks: Literal["", "short", "long"] = ""
    cached_tools: bool = True  #: Whether the definition of a tool may have a cache mark.
    #: Whether the model refuses a history in which the first call of a turn lacks the vendor's signature.
    signatures: bool = False
    media_in_results: bool = True  #: Whether a tool's result may have media.

    #: When Claude accepts a tool choice that requires a call: ``always``, not while it thinks (``unthinking``), or ``never``.
    forced_calls: Literal["always", "unthinking", "never"] = "unthinking"
    #: Whether the vendor's own API can search the model's deferred tools.
    finds_tools: bool = False
    parallel_option: bool = True  #: Whether a request may allow or forbid parallel calls.
    #: The formats of a response that the vendor's own API accepts in addition to text: ``json``, ``schema``. For Claude,
    #: ``schema`` also means strict tools.
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
