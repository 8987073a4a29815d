"""Tools, choices among them and searches with something odd in each place: read or refused, and never stumbled over.

Source: dialects.md §1.3, §2.3, §3.2, §5.3.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.translation.bodies import decode_request, encode_request
from tests.requests.spoilt import spoilt

FUNCTION = {"type": "function", "name": "read"}
NAMESPACE = {"type": "namespace", "name": "mcp__files", "tools": [FUNCTION]}
LOADED = [{"type": "additional_tools", "tools": [NAMESPACE, FUNCTION]}]
CALLED = [
    {"type": "function_call", "call_id": "c", "name": "read", "namespace": "mcp__files", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "done"},
]  # fmt: skip
ALLOWED = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "namespace", "name": "mcp__files"}, FUNCTION]}
NEAR = {"type": "approximate", "city": "Akureyri"}
ASKED = {"role": "user", "content": "hi"}
CHAT_FUNCTION = {"type": "function", "function": {"name": "read"}}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "namespaces": ("openai-responses", {"input": CALLED, "tools": [NAMESPACE], "tool_choice": {**FUNCTION, "namespace": "mcp__files"}}),
    "allowed namespaces": ("openai-responses", {"input": LOADED, "tools": [FUNCTION], "tool_choice": ALLOWED}),
    "a search of Responses": ("openai-responses", {
        "input": [ASKED], "tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.is"]}, "user_location": NEAR}],
        "tool_choice": {"type": "web_search"},
    }),
    "a search of Anthropic's": ("anthropic", {
        "max_tokens": 9, "messages": [ASKED],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1, "user_location": NEAR}],
        "tool_choice": {"type": "tool", "name": "web_search"},
    }),
    "a search of Google's": ("gemini", {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"googleSearch": {"excludeDomains": ["a.is"], "blocked_domains": ["b.is"]}}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
    }),
    "a signed call": ("openai-chat", {"messages": [
        {
            "role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
            "reasoning_details": [{"type": "reasoning.encrypted", "format": "google-gemini-v1", "data": "AA==", "id": "c"}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]}),
    "a search of Chat's": ("openai-chat", {
        "messages": [ASKED], "web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Akureyri"}}},
        "tools": [CHAT_FUNCTION], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [CHAT_FUNCTION]}},
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_whatever_stands_there_the_request_is_written_or_refused(name):
    dialect, body = BODIES[name]
    for odd in spoilt({**body, "model": "m"}):
        text = json.dumps(odd).encode()
        for to in DIALECTS.built_in:
            try:
                request = decode_request(text, dialect)
                request.model = request.model or "m"
                encode_request(request, to, emulate=True)
            except BadRequest:
                continue
