"""Recognise the error that a conversation is longer than the model's context window, and mark it for clients.

Coding agents shorten the history and retry after this error. They recognise it by known words: Claude Code by
``prompt is too long`` in the message, Codex and others by the code ``context_length_exceeded``. With other words the session
ends. Only an excess of tokens counts here, not a body with too many bytes (413) or a rate limit in tokens per minute.

Source: dialects.md §7.5; the messages of the servers that are named next to the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.events import ErrorType, ProviderFailed

CODE: Final = "context_length_exceeded"  #: OpenAI's code for this error. Its clients recognise the error by the code.
#: Codes and types of this error, of OpenAI, llama.cpp, GitHub Models and Z.AI.
OVERFLOW_CODES: Final = frozenset(
    {
        CODE,
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "tokens_limit_reached",
        "context_window_exceeded",
        "model_context_window_exceeded",
    }
)
#: The search for known words is limited to this beginning of a message.
LOOKED_AT_CHARS: Final = 1000
_SAID: Final = re.compile(
    r"prompt is too long|prompt too long|input is too long for"  # Anthropic; Ollama; Bedrock
    r"|too many input tokens|input tokens exceeded"  # Bedrock: Titan; Nova
    r"|too many tokens: (?:size limit|total number)"  # Cohere
    r"|prompt .{0,40}is (?:too long to fit|longer than) .{0,20}model|inputs` tokens .{0,40}must be <="  # vLLM; TGI
    r"|context the overflows|range of input length should be|prompt exceeds max"  # LM Studio; Alibaba; Z.AI
    r"|input token count is .{0,40}only supports"  # Vertex AI
    r"|exceed(?:s|ed)? (?:the )?(?:model'?s? |available )?(?:maximum )?(?:context|model token limit)"  # OpenAI, Moonshot
    r"|(?:maximum|max|model'?s) context (?:length|window|size)"  # vLLM, SGLang, OpenRouter, DeepSeek, Mistral
    r"|exceed(?:s|ed)? context limit|context (?:window|length|size) (?:is |was |has been )?exceed"  # Anthropic, MiniMax
    r"|input token count .{0,40}exceeds the maximum|maximum prompt length is"  # Gemini; xAI
    r"|(?:input|prompt) (?:length|token count) .{0,60}(?:exceeds?|longer than) .{0,40}(?:limit|input|allowed|context)",
    re.IGNORECASE | re.DOTALL,
)
#: The types of error that may mean an overflow. A rate limit with the same words is not an overflow.
_MAY_BE: Final[frozenset[ErrorType]] = frozenset({"invalid_request", "too_large", "server"})


def is_overflow(failed: ProviderFailed) -> bool:
    """Return whether a request failed because it has more tokens than the model accepts."""
    if failed.type not in _MAY_BE:
        return False
    if failed.code in OVERFLOW_CODES or failed.native_type in OVERFLOW_CODES:
        return True
    return _SAID.search(failed.message, 0, LOOKED_AT_CHARS) is not None


def with_code(failed: ProviderFailed, error: Mapping[str, Any]) -> dict[str, Any]:
    """Return OpenAI's error object. If the context window was too small, it gets the code that clients know.

    Other servers of this dialect say so only in the message: vLLM's code is the HTTP status, Alibaba's the code of any wrong
    parameter.
    """
    return {**error} if failed.code in OVERFLOW_CODES or not is_overflow(failed) else {**error, "code": CODE}
