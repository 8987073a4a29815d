"""Each official client's types, deeply: a whole request passes, and what a kind judge would let pass is a fault with its place."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.requests.sdk_types import faults

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
FUNCTION = {"name": "look", "description": "looks", "parameters": SCHEMA}
CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"q":"a"}'}}
PIXEL = "data:image/png;base64,AA=="

WHOLE = {
    "openai-chat": {
        "model": "m", "stream": True, "stream_options": {"include_usage": True}, "temperature": 1, "stop": ["x"],
        "messages": [
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": PIXEL}}]},
            {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": "b"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}], "tool_choice": {"type": "function", "function": {"name": "look"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    },
    "openai-responses": {
        "model": "m", "stream": True, "instructions": "rules", "reasoning": {"effort": "low", "summary": "auto"},
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "b"},
        ],
        "tools": [{"type": "function", "strict": False, **FUNCTION}], "tool_choice": {"type": "function", "name": "look"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    },
    "anthropic": {
        "model": "m", "max_tokens": 9, "stream": True, "system": [{"type": "text", "text": "rules"}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "so", "signature": "s"},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": "a"}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": "b"}]},
        ],
        "tools": [{"name": "look", "input_schema": SCHEMA}], "tool_choice": {"type": "tool", "name": "look"},
    },
    "ollama": {
        "model": "m", "stream": True, "options": {"num_predict": 9, "temperature": 0.5, "stop": ["x"]}, "think": True,
        "messages": [
            {"role": "user", "content": "a", "images": ["AA=="]},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"q": "a"}}}]},
            {"role": "tool", "tool_name": "look", "tool_call_id": "call_1", "content": "b"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}], "format": SCHEMA,
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
            {"role": "model", "parts": [{"functionCall": {"id": "f", "name": "look", "args": {"q": "a"}}, "thoughtSignature": "QUJD"}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "f", "name": "look", "response": {"output": "b"}}}]},
        ],
        "systemInstruction": {"parts": [{"text": "rules"}]},
        "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
        "generationConfig": {"maxOutputTokens": 9, "topK": 3, "thinkingConfig": {"thinkingBudget": 0}},
    },
    "gemini-interactions": {
        "model": "m",
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}]},
            {"type": "thought", "signature": "QUJD", "summary": [{"type": "text", "text": "hm"}]},
            {"type": "function_call", "id": "f", "name": "look", "arguments": {"q": "a"}},
            {"type": "function_result", "call_id": "f", "name": "look", "result": "b"},
        ],
        "system_instruction": "rules", "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}],
        "generation_config": {"max_output_tokens": 9, "thinking_level": "low", "tool_choice": "any"},
        "response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA},
    },
    "bedrock": {
        "messages": [
            {"role": "user", "content": [{"text": "a"}, {"image": {"format": "png", "source": {"bytes": "AA=="}}}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "look", "input": {"q": 1.5}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "status": "error", "content": [{"text": "b"}]}}]},
        ],
        "system": [{"text": "rules"}], "inferenceConfig": {"maxTokens": 9, "temperature": 1},
        "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}], "toolChoice": {"any": {}}},
    },
    "cohere": {
        "model": "m", "stream": True, "k": 3, "p": 0.5,
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": PIXEL}}]},
            {"role": "assistant", "tool_plan": "so", "tool_calls": [CHAT_CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": "b"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "REQUIRED",
    },
    "mistral": {
        "model": "m", "stream": True, "random_seed": 1, "stop": "x",
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": PIXEL}]},
            {"role": "assistant", "content": "", "tool_calls": [CHAT_CALL]},
            {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": "b"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "any",
    },
}  # fmt: skip

CHAT_FAULTS = [
    ("messages[1].role", "nobody"),
    ("messages[1].content", 3),
    ("messages[1].extra", 1),
    ("messages[1].content[0].extra", 1),
    ("messages[2].tool_calls[0].function.arguments", 1),
    ("tools[0].function.extra", 1),
    ("extra", 1),
]  # fmt: skip
#: What is put where (``None`` takes the value away), and where the fault is seen if not there.
BROKEN = {
    "openai-chat": [*CHAT_FAULTS, ("messages[3].tool_call_id", None)],
    "openai-responses": [
        ("input[0].role", "nobody"), ("input[0].content", 3), ("input[0].extra", 1), ("input[0].content[0].extra", 1),
        ("input[2].arguments", {}), ("tools[0].strict", None), ("reasoning.effort", "much"), ("extra", 1),
    ],
    "anthropic": [
        ("messages[0].role", "nobody"), ("messages[0].content", 3), ("messages[0].extra", 1), ("messages[0].content[0].extra", 1),
        ("messages[0].content[0].cache_control.ttl", "9h"), ("messages[1].content[0].signature", None),
        ("messages[1].content[1].input", "{}"), ("max_tokens", None), ("extra", 1),
    ],
    "ollama": [
        ("messages[0].role", "nobody"), ("messages[0].content", 3), ("messages[0].extra", 1), ("messages[0].images", "AA=="),
        ("messages[1].tool_calls[0].function.arguments", "{}"), ("messages[1].tool_calls[0].type", "function"),
        ("tools[0].function.parameters.additionalProperties", False), ("options.max_tokens", 1), ("extra", 1),
    ],
    "gemini": [
        ("contents[0].role", "nobody"), ("contents[0].parts", 3), ("contents[0].extra", 1), ("contents[0].parts[0].extra", 1),
        ("contents[1].parts[0].functionCall.args", "{}"), ("contents[1].parts[0].thought_signature", "QUJD"),
        ("toolConfig.functionCallingConfig.mode", "any"), ("contents", None), ("extra", 1),
    ],
    "gemini-interactions": [
        ("input", 3), ("input[0].content", 3), ("input[0].extra", 1), ("input[2].arguments", "{}"), ("input[3].call_id", None),
        ("generation_config.extra", 1), ("generation_config.max_output_tokens", "9"), ("tools[0].extra", 1), ("extra", 1),
    ],
    "bedrock": [
        ("messages[0].role", "nobody"), ("messages[0].content", 3), ("messages[0].extra", 1, "messages[0]"),
        ("messages[0].content[0].extra", 1, "messages[0].content[0]"), ("messages[1].content[0].toolUse.toolUseId", "ü"),
        ("messages[1].content[0].toolUse.name", "x" * 65), ("messages[2].content[0].toolResult.status", "bad"),
        ("messages[2].content[0].toolResult.content", None, "content"), ("extra", 1),
    ],
    "cohere": [*CHAT_FAULTS, ("messages[1].role", None), ("tool_choice", "any")],
    "mistral": [*CHAT_FAULTS, ("messages[1].role", None), ("tool_choice", "some")],
}  # fmt: skip


def changed(body, path, value):
    body = deepcopy(body)
    *steps, last = [
        int(step) if step.isdecimal() else step for step in path.replace("[", ".").replace("]", "").split(".")
    ]
    at = body
    for step in steps:
        at = at[step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return body


@pytest.mark.parametrize("dialect", WHOLE)
def test_a_whole_request_passes(dialect):
    assert faults(dialect, WHOLE[dialect]) == []


@pytest.mark.parametrize(
    ("dialect", "path", "value", "seen"),
    [(dialect, path, value, *(seen or [path])) for dialect, cases in BROKEN.items() for path, value, *seen in cases],
)  # fmt: skip
def test_a_fault_is_seen_where_it_is(dialect, path, value, seen):
    said = faults(dialect, changed(WHOLE[dialect], path, value))
    assert any(seen in line for line in said), said


def test_a_dialect_without_an_official_client_is_not_passed_by_mistake():
    with pytest.raises(LookupError):
        faults("telegraph", {})
