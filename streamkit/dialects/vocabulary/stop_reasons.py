"""All dialects' words for why a model stopped, by meaning.

Proxies forward a reason in the words of its original dialect: ``tool_use`` in a Chat chunk, ``MAX_TOKENS`` in an Anthropic
message. A dialect looks in its own words first and then in these; the latter is a counted repair. An unknown word means
``other``.

Source: dialects.md §7.1; the enumerations of the eight dialects, and words of compatible servers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from streamkit.events import StopReason

#: The response was refused or filtered. A client must not run its calls, nor treat it as a complete response.
REFUSED: Final[frozenset[StopReason]] = frozenset({"content_filter", "refusal"})
_BY_REASON: Final[Mapping[StopReason, str]] = {
    "stop": """
        stop stopped eos eos_token eot end_turn end_of_turn end_of_text end complete completed done finish finished
    """,
    "stop_sequence": "stop_sequence stop_sequences stop_word stop_string",
    "length": """
        length max_tokens max_token max_output_tokens max_completion_tokens max_new_tokens max_length max_len limit token_limit
        tokens_exceeded incomplete truncated budget_exceeded
    """,
    "context_full": """
        model_length model_context_window_exceeded context_window_exceeded context_length_exceeded context_length max_context
        context_full error_limit
    """,
    "tool_calls": "tool_calls tool_call tool_use tool_uses tools tool function_call function_calls requires_action",
    "content_filter": """
        content_filter content_filtered sensitive safety recitation blocklist blocked prohibited_content spii model_armor
        escalation guardrail_intervened image_safety image_prohibited_content image_recitation moderation flagged
        error_toxic content_policy_violation policy_violation guardrail guardrails content_moderation unsafe
    """,
    "refusal": "refusal refused",
    "pause": "pause_turn pause paused continuation requires_continuation steered",
    "compaction": "compaction compacted",
    "malformed_tool": """
        malformed_function_call malformed_tool_use malformed_tool_call malformed_model_output unexpected_tool_call
        missing_thought_signature invalid_tool_call
    """,
    "error": """
        error errored failed failure abort aborted cancel cancelled canceled user_cancel network_error server_error
        internal_error insufficient_system_resource malformed_response timeout interrupted
        too_many_tool_calls language no_image image_other pup_limited_disabled
    """,
}
#: Claude's words, which all its providers use.
CLAUDES: Final[Mapping[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop_sequence",
    "max_tokens": "length",
    "model_context_window_exceeded": "context_full",
    "tool_use": "tool_calls",
}
#: Characters and a prefix that are removed before a word is compared, and the meanings of the remaining letters in lower
#: case: ``tool-calls``, ``maxTokens`` and ``FinishReason.STOP`` are all recognised.
_BETWEEN: Final = re.compile(r"[\s_\-.]+")
_PREFIX: Final = re.compile(r"^(?:finish|stop)reason(?=.)")
_MEANINGS: Final[Mapping[str, StopReason]] = {
    word.replace("_", ""): reason for reason, words in _BY_REASON.items() for word in words.split()
}
WORD_CHARS: Final = 64  #: longer words are not looked up, because no dialect has one


def meaning(word: str) -> StopReason | None:
    """Return the meaning of a stop reason in any dialect's words; None for an unknown word."""
    if len(word) > WORD_CHARS:
        return None
    return _MEANINGS.get(_PREFIX.sub("", _BETWEEN.sub("", word).lower()))


def was_stopped(reason: StopReason, native: str | None) -> bool:
    """Return whether the provider stopped the response with a filter. ``native`` is the provider's word for the reason.

    A refusal in the model's own words with a natural end (OpenAI's ``stop`` with a refusal) does not count.
    """
    return reason == "content_filter" or (reason == "refusal" and meaning(native or "") == "refusal")


def as_written(reason: StopReason, native: str | None, *, called: bool) -> StopReason:
    """Return the reason to write in a dialect that has no word for a filter. A filtered response counts as truncated.

    ``called``: whether a call was written. If not, ``tool_calls`` means that all calls were truncated and withheld.
    """
    return "length" if was_stopped(reason, native) or (reason == "tool_calls" and not called) else reason
