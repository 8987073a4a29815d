"""Counting the tokens of a request: what an upstream's operation takes and answers.

A count takes a part of what a generation takes, and providers refuse the rest. The request is written as for a generation
(``encode_request``), and what the count does not take is left out here: it has no tokens.

Source: anthropic 2.12 ``message_count_tokens_params``, openai 3.54 ``responses/input_token_count_params``, botocore 1.44
``CountTokens``; ai.google.dev/api/tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.members.fields import fields_of
from streamkit.errors import BrokenFrame, UsageError
from streamkit.web.upstream.addresses import can_count, gemini_model
from streamkit.web.upstream.value import Upstream

#: By dialect, what a count takes. Gemini's takes a whole request.
_TAKEN: Final[Mapping[str, frozenset[str]]] = {
    "anthropic": frozenset(
        {
            "messages",
            "model",
            "cache_control",
            "output_config",
            "speed",
            "system",
            "thinking",
            "tool_choice",
            "tools",
        }
    ),
    "openai-responses": frozenset(
        {
            "conversation",
            "input",
            "instructions",
            "model",
            "parallel_tool_calls",
            "personality",
            "previous_response_id",
            "reasoning",
            "text",
            "tool_choice",
            "tools",
            "truncation",
        }
    ),
    "bedrock": frozenset({"messages", "system", "toolConfig", "additionalModelRequestFields"}),
}
#: By dialect, the answer's member.
_ANSWERS: Final[Mapping[str, str]] = {
    "anthropic": "input_tokens",
    "openai-responses": "input_tokens",
    "gemini": "totalTokens",
    "bedrock": "inputTokens",
}


def count_request(upstream: Upstream, body: bytes, model: str) -> bytes:
    """The body of a count, from a request's body in the upstream's dialect. Raises UsageError where it can't count."""
    if not can_count(upstream):
        raise UsageError(f"{upstream.name} can't count tokens: {upstream.wire.name} has no operation for it there")
    fields = fields_of(body)
    taken = _TAKEN.get(upstream.wire.name)
    members: dict[str, Any] = {}
    for name in fields.names:
        if taken is None or name in taken:
            members[name] = orjson.Fragment(fields.body.text_of(fields.peek(name), (name,)))  # numbers as they came
    if upstream.wire.name == "gemini":
        return orjson.dumps({"generateContentRequest": {"model": gemini_model(model), **members}})
    return orjson.dumps({"input": {"converse": members}} if upstream.wire.name == "bedrock" else members)


def count_of(upstream: Upstream, body: bytes) -> int:
    """The number of tokens in a count's answer. Raises BrokenFrame for one that has none."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BrokenFrame("the answer to a count is no JSON", body) from error
    count = answer.get(_ANSWERS.get(upstream.wire.name, "")) if isinstance(answer, dict) else None
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BrokenFrame("the answer to a count has no number of tokens", body)
    return count
