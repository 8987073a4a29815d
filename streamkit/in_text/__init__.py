"""Extract thinking between tags, and tool calls in a model's own syntax, from the text of a response."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.profiles import Provider
from streamkit.in_text.calls import find_text_calls
from streamkit.in_text.thinking import split_thinking
from streamkit.pipeline import Stage
from streamkit.read_options import ReadOptions
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.output import output_stage


def in_text_stages(options: ReadOptions, provider: Provider | None) -> list[Stage[Any, Any]]:
    """Return the stages that the policy asks for between ``decode`` and ``accumulate_tool_calls``, given the provider."""
    policy = options.policy
    stages: list[Stage[Any, Any]] = []
    thinks = policy.think_tags == "auto" and provider is not None and provider.thinks_in_text
    if thinks or policy.think_tags in {"on", "opened"}:
        stages.append(split_thinking(mode="opened" if policy.think_tags == "opened" else "tags"))
    if policy.text_calls:
        stages.append(find_text_calls(*policy.text_calls, offered=options.callable_tools, limits=options.limits))
    return stages


def checked_stages(options: ReadOptions, provider: Provider | None, *, join: bool = False) -> list[Stage[Any, Any]]:
    """Return the stages from wire events to checked events. Raise UsageError for a bad schema."""
    schemas, check = options.schemas(), options.output_check()
    return [
        *in_text_stages(options, provider),
        Stage(
            "accumulate_tool_calls",  # includes the stage ``check_json``, which comes after it
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
        *(() if check is None else (output_stage(check, options.limits),)),
    ]
