"""Stop reasons of turns that failed: what came is no answer, though a frame with a reason ended it.

A reason of ``FAILING`` ends its response as the provider's failure: every client gets an error that names the reason in the
provider's own word, and nothing that says success. Which kind of error a word is stands in ``FAILED_TURNS`` with what it
means; any other word is a server's error.

Filters that stop a harmful answer (``SAFETY``, ``guardrail_intervened``) are no failures: dialects have words for them.

Source: dialects.md §5.2, §6.1, §6.2, §7.1; Google's ``FinishReason``, Bedrock's ``StopReason``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamkit.events import ErrorType, ProviderFailed, StopReason, StopReasonSeen
from streamkit.text.quoting import quoted

FAILING: Final[frozenset[StopReason]] = frozenset({"error", "malformed_tool"})
#: By the provider's word in small letters: the kind of error, and what it means.
FAILED_TURNS: Final[Mapping[str, tuple[ErrorType, str]]] = {
    # Google: the model wrote what the server could not read, or must not have written
    "malformed_function_call": ("server", "the model wrote a call that can't be read"),
    "unexpected_tool_call": ("server", "the model called a tool, and none was offered"),
    "too_many_tool_calls": ("server", "the model called tools too often in a row"),
    "malformed_response": ("server", "the model wrote a response that can't be read"),
    # Google: the request is at fault, and would fail again
    "missing_thought_signature": ("invalid_request", "the history lacks a thought signature"),
    "language": ("invalid_request", "the answer would be in a language that the model does not support"),
    # Google: a policy on prohibited use, for which no account without a right to it gets an answer
    "pup_limited_disabled": ("permission", "the provider's policy on prohibited use disabled the answer"),
    # Google: nothing usable was made, and nobody says that it was filtered
    "no_image": ("server", "an image was asked for, and the model made none"),
    "image_other": ("server", "the making of an image stopped"),
    "other": ("server", "the provider does not say why"),
    # Bedrock
    "malformed_tool_use": ("server", "the model wrote a call that can't be read"),
    "malformed_model_output": ("server", "the model wrote a response that can't be read"),
    # Cohere, and servers of Chat's dialect
    "timeout": ("timeout", "the model took too long"),
    "abort": ("server", "the server gave up the request"),
    "network_error": ("unavailable", "the provider lost the model"),
    "insufficient_system_resource": ("unavailable", "the provider has no capacity left"),
}


def failure_in(seen: StopReasonSeen) -> ProviderFailed:
    """The failure that a stop reason of ``FAILING`` tells, with the provider's own words for it."""
    kind, meaning = FAILED_TURNS.get(seen.native.lower(), ("server", ""))
    more = seen.message or meaning
    message = f"the provider gave the finish reason {quoted(seen.native)}" + (f": {more}" if more else "")
    return ProviderFailed(kind, message, code=seen.native)
