"""Providers that speak Chat, each in its own way. Source: dialects.md §1.6, quirks.md §1 to §7.

Their habits are read from every stream, named or not: this list only says whose they are. What a provider wants in a request
is written only where it is named: which field bounds the answer, whether and where reasoning comes back (dialects.md §7.4;
DeepSeek and Moonshot refuse a message that calls tools without it, and take an empty one), how it is told what to keep of
the prompt, and whether it takes content as a list of parts (DeepSeek does not: cline#230, qwen-code#2318).
"""

from __future__ import annotations

from streamkit.dialects.profiles import Provider

WHOLE_CALLS = "calls come whole, and each at index 0 or without one"

PROVIDERS = (
    Provider(
        name="openai",
        title="OpenAI",
        habits={"stop_with_calls": "`stop` for a call that `tool_choice` forced by name"},
        adds={"obfuscation": "random padding of delta chunks"},
        max_tokens_field="max_completion_tokens",
        cache_marks="openai",
    ),
    Provider(
        name="azure",
        title="Azure OpenAI",
        habits={
            "stop_with_calls": "as OpenAI",
            "thinking_in_text": "`<think>…</think>` in the content of DeepSeek's models",
        },
        thinks_in_text=True,
        adds={
            "prompt_filter_results": "in a first chunk without choices",
            "choices[].content_filter_results": "beside deltas, or in chunks of their own behind the text",
            "choices[].content_filter_offsets": "what an asynchronous filter has looked at",
        },
        max_tokens_field="max_completion_tokens",
        cache_marks="openai",
    ),
    Provider(
        name="openrouter",
        title="OpenRouter",
        habits={"comment_as_data": "`: OPENROUTER PROCESSING` written as data by proxies in front of it"},
        adds={
            "provider": "who ran the model",
            "choices[].native_finish_reason": "that provider's own stop reason",
            "choices[].delta.reasoning_details": "reasoning with its signature, in the vendor's own format",
            "usage.cost": "in credits",
        },
        thinking_field="reasoning",
        reasoning_history="reasoning_details",
        cache_marks="anthropic",
    ),
    Provider(
        name="deepseek",
        title="DeepSeek",
        habits={"id_repeated": "the id in each fragment"},
        adds={
            "choices[].delta.reasoning_content": "reasoning, before the content",
            "usage.prompt_cache_hit_tokens": "the cached part of the input; `…_miss_tokens` is the rest",
        },
        reasoning_history="reasoning_content",
        reasoning_history_needed=True,
        text_only=True,
    ),
    Provider(
        name="vllm",
        title="vLLM",
        habits={
            "arguments_repeated": "the whole text once more at the end",
            "identity_blank": "blank ids in fragments",
        },
        adds={
            "choices[].delta.reasoning": "reasoning; `reasoning_content` in older versions",
            "choices[].stop_reason": "the stop sequence, or the number of a token",
            "choices[].token_ids": "on demand",
        },
    ),
    Provider(
        name="sglang",
        title="SGLang",
        habits={"stop_with_calls": "`stop` though tools are called"},
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].matched_stop": "the stop sequence, or the number of a token",
        },
    ),
    Provider(
        name="llama.cpp",
        title="llama.cpp server",
        habits={
            "sse_error_field": "errors in a field `error:` (until late 2025)",
            "arguments_not_text": "arguments as an object (mended since)",
        },
        adds={"choices[].delta.reasoning_content": "reasoning", "timings": "how fast it was"},
    ),
    Provider(
        name="groq",
        title="Groq",
        habits={"thinking_in_text": "`<think>…</think>` in the content, unless it is asked for as parsed"},
        thinks_in_text=True,
        adds={
            "choices[].delta.reasoning": "reasoning, where it was asked for as parsed; else it stands in the text",
            "x_groq": "the request's id, then usage",
            "choices[].delta.executed_tools": "tools that Groq ran",
        },
    ),
    Provider(
        name="xai",
        title="xAI",
        adds={
            "choices[].delta.reasoning_content": "reasoning; its tokens may stand beside `completion_tokens`",
            "citations": "in the last chunk",
        },
    ),
    Provider(
        name="together",
        title="Together AI",
        habits={"stop_with_calls": "`eos` or `stop` though tools are called"},
        adds={"choices[].delta.token_id": "the token", "warnings": "about the request"},
    ),
    Provider(
        name="fireworks",
        title="Fireworks AI",
        habits={
            "id_repeated": "id, type and name in each fragment",
            "name_repeated": "id, type and name in each fragment",
            "thinking_in_text": "`<think>…</think>` in the content of some models",
        },
        thinks_in_text=True,
        adds={"usage": "cumulative, in each chunk", "choices[].raw_output": "on demand"},
    ),
    Provider(
        name="qwen",
        title="Qwen, DashScope's compatible mode",
        habits={"identity_blank": '`"id": ""` and `"name": ""` in continuations'},
        adds={"choices[].delta.reasoning_content": "reasoning"},
    ),
    Provider(
        name="moonshot",
        title="Moonshot AI (Kimi)",
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].usage": "usage inside the choice of the last chunk",
        },
        reasoning_history="reasoning_content",
        reasoning_history_needed=True,
    ),
    Provider(
        name="minimax",
        title="MiniMax",
        habits={"thinking_in_text": "`<think>…</think>` in the content, unless the request says `reasoning_split`"},
        adds={"choices[].delta.reasoning_details": "reasoning, where the request says `reasoning_split`"},
        thinks_in_text=True,
    ),
    Provider(
        name="zhipu",
        title="Zhipu AI (GLM)",
        habits={"id_repeated": "the id in each fragment"},
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].finish_reason": "`sensitive` and `network_error` too",
        },
        reasoning_history="reasoning_content",
    ),
    Provider(
        name="gemini-openai",
        title="Gemini through its OpenAI endpoint",
        habits={
            "index_missing": WHOLE_CALLS,
            "index_reused": WHOLE_CALLS,
            "stop_with_calls": "`stop` though tools are called",
        },
        adds={
            "choices[].delta.tool_calls[].extra_content": "the thought signature, which must come back with its call",
            "usage": "cumulative, in each chunk",
        },
        signatures="google",
    ),
    Provider(
        name="ollama-v1",
        title="Ollama through its OpenAI endpoint",
        adds={"choices[].delta.reasoning": "reasoning"},
        reasoning_history="reasoning",
    ),
)
