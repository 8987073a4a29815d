"""How much a model must think, in words and in tokens: one table converts between them, for all dialects.

Some dialects have an effort (``reasoning_effort``, ``thinkingLevel``), some a budget of tokens (``budget_tokens``,
``thinkingBudget``, ``token_budget``), some both; ``models.py`` says which a model accepts. The other form is converted to the
nearest value, and counted as a loss. A budget becomes one of the three efforts that every server with efforts accepts. The
numbers are Google's, with steps above them.

Source: dialects.md §7.4; ai.google.dev, "OpenAI compatibility"; AWS and Anthropic, "Adaptive thinking".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

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
