"""What models write into their text that is no text: thinking between tags, and calls in the grammar of their training."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.profiles import Provider
from streamkit.in_text.calls import find_text_calls
from streamkit.in_text.parameters import Offered
from streamkit.in_text.thinking import split_thinking
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.policy import Policy


def in_text_stages(
    policy: Policy, provider: Provider | None, *, tools: Offered | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[Stage[Any, Any]]:
    """The stages between ``decode`` and ``accumulate_tool_calls`` that a policy wants for what comes from ``provider``.

    ``tools`` are the request's; where none are said, they are not known.
    """
    stages: list[Stage[Any, Any]] = []
    thinks = policy.think_tags == "auto" and provider is not None and provider.thinks_in_text
    if thinks or policy.think_tags in {"on", "opened"}:
        stages.append(split_thinking(mode="opened" if policy.think_tags == "opened" else "tags"))
    if policy.text_calls:
        stages.append(find_text_calls(*policy.text_calls, tools=tools or None, limits=limits))
    return stages
