"""What models write into their text that is no text: thinking between tags, and calls in the grammar of their training."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.profiles import Provider
from streamkit.in_text.calls import find_text_calls
from streamkit.in_text.thinking import split_thinking
from streamkit.pipeline import Stage
from streamkit.read_options import ReadOptions
from streamkit.tool_calls.accumulate import ToolCallAccumulator


def in_text_stages(options: ReadOptions, provider: Provider | None) -> list[Stage[Any, Any]]:
    """The stages between ``decode`` and ``accumulate_tool_calls`` that a policy wants for what comes from ``provider``."""
    policy = options.policy
    stages: list[Stage[Any, Any]] = []
    thinks = policy.think_tags == "auto" and provider is not None and provider.thinks_in_text
    if thinks or policy.think_tags in {"on", "opened"}:
        stages.append(split_thinking(mode="opened" if policy.think_tags == "opened" else "tags"))
    if policy.text_calls:
        stages.append(find_text_calls(*policy.text_calls, tools=options.tools or None, limits=options.limits))
    return stages


def checked_stages(options: ReadOptions, provider: Provider | None, *, join: bool = False) -> list[Stage[Any, Any]]:
    """Return the stages from what ``decode`` yields to checked events. Raises UsageError for a bad schema."""
    schemas = options.schemas()
    return [
        *in_text_stages(options, provider),
        Stage(
            "accumulate_tool_calls",  # and ``check_json``, whose place is behind it
            lambda report: ToolCallAccumulator(
                limits=options.limits,
                report=report,
                policy=options.policy,
                make_id=options.make_id,
                join=join,
                check=True,
                tools=schemas,
            ),
            takes="wire events",
            gives="events",
        ),
    ]
