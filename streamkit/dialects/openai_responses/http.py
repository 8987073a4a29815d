"""Responses over HTTP.

Source: clients.md §10.1, §10.5; dialects.md §2.3; openai 3.57 ``responses/input_token_count_params`` and
``response_compact_params``; ui-protocols.md §4.1 for WebSockets.
"""

from __future__ import annotations

import re

from streamkit.conversation.messages import Request
from streamkit.dialects.bodies.openai import ANSWER_HEADERS, FEATURES, MODELS, azure_root
from streamkit.dialects.http import (
    HTTP,
    STATE_SETTING,
    STATELESS,
    Compacting,
    Endpoint,
    SocketForm,
    Surface,
    TokenCount,
)
from streamkit.dialects.members.values import json_value
from streamkit.dialects.openai_responses.socket import ENDPOINT, SocketConversation
from streamkit.dialects.openai_responses.stored import STORED
from streamkit.dialects.openai_responses.wire import decode_usage
from streamkit.errors import BadRequest, BrokenFrame
from streamkit.events import UsageReported

#: The members of a request that a token count accepts.
_COUNTED = frozenset({
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
})  # fmt: skip
#: The members that a compaction accepts: those of openai-python, and those that only Codex sends.
_COMPACTED = frozenset({
    "image", "input", "instructions", "model", "previous_response_id", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "service_tier",
    "parallel_tool_calls", "reasoning", "text", "tools",
})  # fmt: skip


def _usage_of(body: bytes) -> UsageReported | None:
    """Return the tokens in the response to a compaction. Raises BrokenFrame if the response has no list of items."""
    value = json_value(body)
    if not isinstance(value, dict) or not isinstance(value.get("output"), list):
        raise BrokenFrame("the response to a compaction has no list `output`", body)
    usage = value.get("usage")
    return decode_usage(usage) if isinstance(usage, dict) else None


def _refuse_state(request: Request) -> None:
    """Raise BadRequest for a reference to data that are not kept. References to kept data were already replaced (§2.3)."""
    for each in request.unreadable:
        if each.of_conversation:  # the upstream may have others: files, a prompt
            is_whole = each.path == "conversation"
            why = "this gateway stores no conversations" if is_whole else f"{STATELESS}, {STATE_SETTING}"
            raise BadRequest(each.path, f"{why}; {each.instead}")


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, _model, _stream: f"{base}/responses",
        pasted="/responses",
        deployment=lambda base, _model: f"{azure_root(base)}/responses",
        features=FEATURES,
        passed=ANSWER_HEADERS,
        count=TokenCount(
            url=lambda base, _model: f"{base}/responses/input_tokens", takes=_COUNTED, member="input_tokens"
        ),
        compact=Compacting(url=lambda base: f"{base}/responses/compact", takes=_COMPACTED, usage=_usage_of),
        socket=ENDPOINT,
    ),
    surface=Surface(
        generate=("/v1/responses",),
        count=("/v1/responses/input_tokens",),
        compact=("/v1/responses/compact",),
        compact_instead='send the input to /v1/responses with {"type": "compaction_trigger"} as its last item',
        path=re.compile(r"(?:^/?|/v1)/responses(?:/.*+)?\Z", re.DOTALL),
        kept=re.compile(r"(?:^/?|/v1)/responses/"),
        socket=SocketForm(conversation=SocketConversation),
        stored=STORED,
        check=_refuse_state,
        count_answer=lambda tokens: {"object": "response.input_tokens", "input_tokens": tokens},
        models=MODELS,
    ),
)
