"""Roles that a response has beside the model's: what is said in one of them is not the model's text.

Agents behind a server write the results of their tools, and the next question, into the stream of the answer. Names of the
model differ (``assistant``, ``model``, ``ai``, none at all), so that only the roles of others are listed.

Source: dialects.md §1.6.
"""

from __future__ import annotations

from typing import Final

OTHERS: Final = frozenset({
    *("developer", "human", "system", "user"),
    *("environment", "function", "ipython", "observation", "tool", "tool_result", "tool_results", "tools"),
})  # fmt: skip


def is_others(role: object) -> bool:
    """Return whether a role is another's than the model's."""
    return isinstance(role, str) and role.lower() in OTHERS
