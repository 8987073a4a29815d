"""A conversation that is longer than the model's context window: how every provider says so, and what clients look for.

Coding agents shorten the history and ask again, and find out by the provider's own words: Claude Code by ``prompt is too
long`` in the message, Codex and others by the code ``context_length_exceeded``. Other words end the session. What is meant is
the number of tokens, not a body with too many bytes (413) or a rate limit in tokens per minute.

Source: dialects.md §7.5; the messages of the servers named beside the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.events import ErrorType, ProviderFailed

#: OpenAI's code, which its own clients decide by.
CODE: Final = "context_length_exceeded"
#: Codes and types that mean it: of OpenAI, of llama.cpp, of GitHub's models, of Alibaba and Z.AI.
CODES: Final = frozenset(
    {
        CODE,
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
    }
)
#: Of a message this much is looked at: the sentence stands at its beginning.
LOOKED_AT_CHARS: Final = 1000
_SAID: Final = re.compile(
    r"prompt is too long|prompt too long|input is too long for"  # Anthropic; Ollama; Bedrock
    r"|exceed(?:s|ed)? (?:the )?(?:model'?s? |available )?(?:maximum )?(?:context|model token limit)"  # OpenAI, Moonshot
    r"|(?:maximum|max|model'?s) context (?:length|window|size)"  # vLLM, SGLang, OpenRouter, DeepSeek, Mistral
    r"|exceed(?:s|ed)? context limit|context (?:window|length|size) (?:is |was |has been )?exceed"  # Anthropic, MiniMax
    r"|input token count .{0,40}exceeds the maximum|maximum prompt length is"  # Gemini; xAI
    r"|(?:input|prompt) (?:length|token count) .{0,60}(?:exceeds?|longer than) .{0,40}(?:limit|input|allowed|context)",
    re.IGNORECASE | re.DOTALL,
)
#: Kinds of error that a server may give it; a rate limit in such words is one.
_MAY_BE: Final[frozenset[ErrorType]] = frozenset({"invalid_request", "too_large", "server"})


def is_overflow(failed: ProviderFailed) -> bool:
    """Whether a request failed because it has more tokens than the model takes."""
    if failed.type not in _MAY_BE:
        return False
    if failed.code in CODES or failed.native_type in CODES:
        return True
    return _SAID.search(failed.message, 0, LOOKED_AT_CHARS) is not None


def with_code(failed: ProviderFailed, error: Mapping[str, Any]) -> dict[str, Any]:
    """An OpenAI error object as its server wrote it, with a code that clients know where the window was too small.

    Servers that speak the dialect say it in the message alone: vLLM's code is the status, Alibaba's any wrong parameter's.
    """
    return {**error} if failed.code in CODES or not is_overflow(failed) else {**error, "code": CODE}
