"""How much a model shall think, in words and in tokens: one table between the two, for all dialects.

Some dialects say an effort (``reasoning_effort``, ``thinkingLevel``), some a budget of tokens (``budget_tokens``,
``thinkingBudget``, ``token_budget``), some both; which a model takes is in ``models.py``. The other becomes the nearest, a
counted loss; a budget one of the three efforts that every server with efforts takes. The numbers are Google's, with steps
beyond.

Source: dialects.md §7.4; ai.google.dev, "OpenAI compatibility"; AWS and Anthropic, "Adaptive thinking".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

#: Tokens for an effort, least first.
BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 32768,
    "max": 65536,
}
COMMON: Final = ("low", "medium", "high")
#: What Google takes in place of a signature for a call that has none (ai.google.dev, "Thought signatures").
NO_SIGNATURE: Final = "skip_thought_signature_validator"


def budget_of(effort: str | None) -> int | None:
    """The tokens for an effort; None for none, and for a word that is not known."""
    return BUDGETS.get(effort or "")


def effort_of(budget: int | None) -> str | None:
    """The effort that is nearest to a budget, by the ratio of the two; None for no budget, or one that the model chooses."""
    if budget is None or budget <= 0:
        return None
    return min(COMMON, key=lambda effort: abs(math.log(budget / BUDGETS[effort])))


def nearest(effort: str, known: Collection[str]) -> str | None:
    """The strongest of the ``known`` efforts that is not above this one, else the weakest; None for an effort nobody knows."""
    if effort in known:
        return effort
    order = [word for word in BUDGETS if word in known]
    if effort not in BUDGETS or not order:
        return None
    below = [word for word in order if BUDGETS[word] < BUDGETS[effort]]
    return below[-1] if below else order[0]


def below(budget: int, bound: int | None, least: int = 1) -> int | None:
    """The budget, or half of a bound of the answer that it does not stay below; None where ``least`` does not either."""
    if bound is None or budget < bound:
        return budget
    return max(least, bound // 2) if least < bound else None
