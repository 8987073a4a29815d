"""Roles of messages in a response that are not from the model. Their text is not the model's text.

Servers that run agents write the results of tools, and the next question, into the stream of the response. The model has many
names (``assistant``, ``model``, ``ai``, none at all), so only the other roles are listed.

Source: dialects.md §1.6.
"""

from __future__ import annotations

from typing import Final

OTHER_ROLES: Final = frozenset({
    *("developer", "human", "system", "user"),
    *("environment", "function", "ipython", "observation", "tool", "tool_result", "tool_results", "tools"),
})  # fmt: skip


def is_other_role(role: object) -> bool:
    """Return whether this is the role of another author than the model."""
    return isinstance(role, str) and role.lower() in OTHER_ROLES
