"""Stop reasons of failed turns: such a stop reason ends the stream regularly, but the output is no valid response.

A reason in ``FAILING`` ends its response as a provider failure. Every client gets an error that quotes the provider's word for
the reason, and nothing that means success. ``FAILED_TURNS`` maps these words to a kind of error and a meaning; any other word
counts as a server error.

A filter that stops a harmful response (``SAFETY``, ``guardrail_intervened``) is no failure: dialects have stop reasons for it.

Source: dialects.md §5.2, §6.1, §6.2, §7.1; Google's ``FinishReason``, Bedrock's ``StopReason``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamkit.events import ErrorType, ProviderFailed, StopReason, StopReasonSeen
from streamkit.text.quoting import quoted

FAILING: Final[frozenset[StopReason]] = frozenset({"error", "malformed_tool"})
#: The provider's word in lower case, with the kind of error and the meaning.
FAILED_TURNS: Final[Mapping[str, tuple[ErrorType, str]]] = {
    # Google: the model's output could not be read, or broke a rule
    "malformed_function_call": ("server", "the model wrote a call that can't be read"),
    "unexpected_tool_call": ("server", "the model called a tool, and none was offered"),
    "too_many_tool_calls": ("server", "the model called tools too often in a row"),
    "malformed_response": ("server", "the model wrote a response that can't be read"),
    # Google: the request is at fault, so a retry would fail again
    "missing_thought_signature": ("invalid_request", "the history lacks a thought signature"),
    "language": ("invalid_request", "the answer would be in a language that the model does not support"),
    # Google: the policy on prohibited use blocks accounts without a special permission
    "pup_limited_disabled": ("permission", "the provider's policy on prohibited use disabled the answer"),
    # Google: no usable output, and no sign of a filter
    "no_image": ("server", "an image was asked for, and the model made none"),
    "image_other": ("server", "the making of an image stopped"),
    "other": ("server", "the provider does not say why"),
    # Bedrock
    "malformed_tool_use": ("server", "the model wrote a call that can't be read"),
    "malformed_model_output": ("server", "the model wrote a response that can't be read"),
    # Cohere, and servers that speak OpenAI Chat
    "timeout": ("timeout", "the model took too long"),
    "abort": ("server", "the server gave up the request"),
    "network_error": ("unavailable", "the provider lost the model"),
    "insufficient_system_resource": ("unavailable", "the provider has no capacity left"),
}


def failure_in(seen: StopReasonSeen) -> ProviderFailed:
    """Return the failure that a stop reason in ``FAILING`` means, quoting the provider's word."""
    kind, meaning = FAILED_TURNS.get(seen.native.lower(), ("server", ""))
    more = seen.message or meaning
    message = f"the provider gave the finish reason {quoted(seen.native)}" + (f": {more}" if more else "")
    return ProviderFailed(kind, message, code=seen.native)
