"""What each pair of dialects may lose: the one table of the 9 x 9 matrix.

A row is what comes in, a column what goes out. Text and complete calls are in no cell: they are never lost. What is lost
of a stream beyond its cell fails ``test_matrix.py``, and so does a kind in a cell that no stream loses. The page
``docs/reference/matrix.md`` is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping

LOSSES: Mapping[str, Mapping[str, str]] = {
    "openai-chat": {
        "openai-chat": "block_order call_withheld custom_tool_wrapped stop_reason stop_sequence unknown_event",
        "openai-responses": "audio call_withheld citation cut_call extra_choice late_arguments logprobs metadata response_fields stop_reason stop_sequence unknown_event usage_detail usage_unknown",
        "anthropic": "audio call_withheld citation custom_tool_wrapped cut_call error_detail extra_choice late_arguments logprobs media_output metadata refusal_as_text response_fields stop_reason unknown_event usage_detail usage_unknown",
        "ollama": "arguments_wrapped audio block_order call_id call_withheld citation custom_tool_wrapped error_detail extra_choice logprobs metadata reasoning_opaque reasoning_signature refusal_as_text response_fields stop_reason stop_sequence unknown_event usage_detail",
        "cohere": "audio block_order call_withheld citation custom_tool_wrapped cut_call error_detail extra_choice late_arguments logprobs media_output metadata reasoning_opaque reasoning_signature refusal_as_text response_fields stop_reason stop_sequence unknown_event usage_detail",
        "mistral": "audio block_order call_id call_withheld citation custom_tool_wrapped error_detail logprobs metadata refusal_as_text response_fields stop_reason stop_sequence unknown_event usage_detail",
        "bedrock": "audio call_withheld citation custom_tool_wrapped cut_call error_detail extra_choice late_arguments logprobs metadata refusal_as_text response_fields stop_reason unknown_event usage_detail",
        "gemini": "arguments_wrapped audio block_order call_withheld citation custom_tool_wrapped error_detail logprobs metadata refusal_as_text response_fields stop_reason stop_sequence unknown_event usage_detail",
        "ag-ui": "audio call_withheld citation custom_tool_wrapped error_detail extra_choice logprobs media_output metadata refusal_as_text response_fields unknown_event usage_detail",
    },
    "openai-responses": {
        "openai-chat": "block_boundary block_order citation client_tool custom_tool_wrapped logprobs metadata reasoning_signature response_fields server_tool stop_reason unknown_event usage_detail",
        "openai-responses": "unknown_event",
        "anthropic": "citation client_tool custom_tool_wrapped error_detail logprobs media_output metadata refusal_as_text response_fields server_tool stop_reason unknown_event usage_detail",
        "ollama": "block_boundary block_order call_id call_withheld citation client_tool custom_tool_wrapped error_detail logprobs metadata reasoning_opaque reasoning_signature refusal_as_text response_fields server_tool stop_reason unknown_event usage_detail",
        "cohere": "block_order citation client_tool custom_tool_wrapped error_detail logprobs media_output metadata reasoning_opaque reasoning_signature refusal_as_text response_fields server_tool stop_reason unknown_event usage_detail",
        "mistral": "block_boundary block_order call_id call_withheld citation client_tool custom_tool_wrapped error_detail logprobs metadata reasoning_signature refusal_as_text response_fields server_tool stop_reason unknown_event usage_detail",
        "bedrock": "citation client_tool custom_tool_wrapped error_detail logprobs metadata refusal_as_text response_fields server_tool stop_reason unknown_event usage_detail",
        "gemini": "block_boundary block_order call_withheld citation client_tool custom_tool_wrapped error_detail logprobs metadata refusal_as_text response_fields server_tool stop_reason unknown_event usage_detail",
        "ag-ui": "citation client_tool custom_tool_wrapped error_detail logprobs media_output metadata refusal_as_text response_fields server_tool unknown_event usage_detail",
    },
    "anthropic": {
        "openai-chat": "block_boundary block_order citation compaction metadata server_tool stop_reason stop_sequence unknown_event usage_detail",
        "openai-responses": "citation compaction metadata server_tool stop_reason stop_sequence unknown_event usage_detail usage_unknown",
        "anthropic": "error_detail server_tool stop_reason unknown_event",
        "ollama": "block_boundary call_id call_withheld citation compaction error_detail metadata reasoning_opaque reasoning_signature server_tool stop_reason stop_sequence unknown_event usage_detail",
        "cohere": "block_order citation compaction error_detail metadata reasoning_opaque reasoning_signature server_tool stop_reason stop_sequence unknown_event usage_detail",
        "mistral": "block_boundary block_order call_id call_withheld citation compaction error_detail metadata server_tool stop_reason stop_sequence unknown_event usage_detail",
        "bedrock": "citation compaction error_detail metadata server_tool stop_reason unknown_event usage_detail",
        "gemini": "block_boundary call_withheld citation compaction error_detail metadata server_tool stop_reason stop_sequence unknown_event usage_detail",
        "ag-ui": "citation compaction error_detail metadata server_tool unknown_event usage_detail",
    },
    "ollama": {
        "openai-chat": "logprobs metadata",
        "openai-responses": "logprobs metadata usage_unknown",
        "anthropic": "error_detail logprobs media_output metadata usage_unknown",
        "ollama": "call_id",
        "cohere": "logprobs media_output metadata",
        "mistral": "call_id logprobs metadata",
        "bedrock": "error_detail logprobs metadata usage_unknown",
        "gemini": "logprobs metadata",
        "ag-ui": "error_detail logprobs media_output metadata",
    },
    "cohere": {
        "openai-chat": "block_boundary block_order call_withheld citation logprobs metadata response_fields stop_reason unknown_event",
        "openai-responses": "call_withheld citation cut_call logprobs metadata response_fields stop_reason unknown_event usage_unknown",
        "anthropic": "call_withheld citation cut_call error_detail logprobs metadata response_fields stop_reason unknown_event usage_unknown",
        "ollama": "block_boundary call_id call_withheld citation error_detail logprobs metadata response_fields stop_reason unknown_event usage_detail",
        "cohere": "block_order call_withheld cut_call stop_reason unknown_event",
        "mistral": "block_boundary block_order call_id call_withheld citation error_detail logprobs metadata response_fields stop_reason unknown_event",
        "bedrock": "call_withheld citation cut_call error_detail logprobs metadata response_fields stop_reason unknown_event",
        "gemini": "block_boundary call_withheld citation error_detail logprobs metadata response_fields stop_reason unknown_event",
        "ag-ui": "call_withheld citation error_detail logprobs metadata response_fields unknown_event",
    },
    "mistral": {
        "openai-chat": "block_order citation metadata stop_reason unknown_event",
        "openai-responses": "citation error_detail extra_choice media_output metadata stop_reason unknown_event usage_unknown",
        "anthropic": "citation error_detail extra_choice media_output metadata unknown_event usage_unknown",
        "ollama": "arguments_wrapped block_boundary call_id call_withheld citation error_detail extra_choice media_output metadata reasoning_opaque reasoning_signature stop_reason unknown_event",
        "cohere": "citation error_detail extra_choice media_output metadata reasoning_opaque reasoning_signature stop_reason unknown_event",
        "mistral": "call_id call_withheld reasoning_signature stop_reason unknown_event",
        "bedrock": "citation error_detail extra_choice media_output metadata unknown_event",
        "gemini": "arguments_wrapped call_withheld citation error_detail metadata stop_reason unknown_event",
        "ag-ui": "citation error_detail extra_choice media_output metadata unknown_event",
    },
    "bedrock": {
        "openai-chat": "block_boundary block_order call_withheld citation metadata server_tool stop_reason stop_sequence unknown_event",
        "openai-responses": "call_withheld citation error_detail metadata server_tool stop_reason stop_sequence unknown_event usage_unknown",
        "anthropic": "call_withheld citation error_detail media_output metadata server_tool stop_reason unknown_event usage_unknown",
        "ollama": "block_boundary call_id call_withheld citation error_detail metadata reasoning_opaque reasoning_signature server_tool stop_reason stop_sequence unknown_event usage_detail",
        "cohere": "block_order call_withheld citation error_detail media_output metadata reasoning_opaque reasoning_signature server_tool stop_reason stop_sequence unknown_event usage_detail",
        "mistral": "block_boundary block_order call_id call_withheld citation error_detail metadata server_tool stop_reason stop_sequence unknown_event",
        "bedrock": "call_withheld error_detail metadata stop_reason unknown_event",
        "gemini": "block_boundary call_withheld citation error_detail metadata server_tool stop_reason stop_sequence unknown_event usage_detail",
        "ag-ui": "call_withheld citation error_detail media_output metadata server_tool unknown_event",
    },
    "gemini": {
        "openai-chat": "audio block_boundary block_order call_withheld citation metadata server_tool stop_reason unknown_event usage_detail",
        "openai-responses": "audio call_withheld citation error_detail extra_choice media_output metadata server_tool stop_reason unknown_event usage_detail usage_unknown",
        "anthropic": "audio call_withheld citation error_detail extra_choice media_output metadata server_tool stop_reason unknown_event usage_detail usage_unknown",
        "ollama": "audio block_boundary call_id call_withheld citation error_detail extra_choice media_output metadata reasoning_opaque reasoning_signature server_tool stop_reason unknown_event usage_detail",
        "cohere": "audio block_order call_withheld citation error_detail extra_choice media_output metadata reasoning_opaque reasoning_signature server_tool stop_reason unknown_event usage_detail",
        "mistral": "audio block_boundary block_order call_id call_withheld citation error_detail metadata server_tool stop_reason unknown_event usage_detail",
        "bedrock": "audio call_withheld citation error_detail extra_choice media_output metadata server_tool stop_reason unknown_event usage_detail usage_unknown",
        "gemini": "call_withheld unknown_event",
        "ag-ui": "audio call_withheld citation error_detail extra_choice media_output metadata server_tool unknown_event usage_detail",
    },
    "ag-ui": {
        "openai-chat": "block_boundary block_order metadata response_fields server_tool stop_reason stop_sequence unknown_event usage_detail",
        "openai-responses": "cut_call error_detail metadata response_fields server_tool stop_reason stop_sequence unknown_event usage_detail usage_unknown",
        "anthropic": "cut_call error_detail metadata response_fields server_tool stop_reason unknown_event usage_detail usage_unknown",
        "ollama": "arguments_wrapped block_boundary call_id call_withheld metadata reasoning_opaque reasoning_signature response_fields server_tool stop_reason stop_sequence unknown_event usage_detail",
        "cohere": "cut_call metadata reasoning_opaque reasoning_signature response_fields server_tool stop_reason stop_sequence unknown_event usage_detail",
        "mistral": "block_boundary call_id call_withheld metadata response_fields server_tool stop_reason stop_sequence unknown_event usage_detail",
        "bedrock": "cut_call error_detail metadata response_fields server_tool stop_reason unknown_event usage_detail usage_unknown",
        "gemini": "arguments_wrapped block_boundary call_withheld metadata response_fields server_tool stop_reason stop_sequence unknown_event usage_detail",
        "ag-ui": "error_detail metadata server_tool unknown_event",
    },
}  # fmt: skip
