"""Providers and clients of Chat with their differences. Source: dialects.md §1.6, quirks.md §1 to §7.

Habits are accepted in every stream, whether or not the provider is named: this list only shows whose they are. The needs of a
provider in requests are met only if it is named:

* which member limits the response;
* whether and where reasoning is returned (dialects.md §7.4; DeepSeek and Moonshot refuse a message with tool calls without
  it, and accept an empty one);
* how to mark what to cache;
* whether content may be a list of parts (DeepSeek refuses it: cline#230, qwen-code#2318);
* how to request that a text is continued (dialects.md §7.4);
* whether tools are refused together with a JSON response format (vercel/ai#16540).
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from streamkit.dialects.profiles import Prefill, Profile, Provider

WHOLE_CALLS = "each call is sent whole, at index 0 or without an index"


@frozen(kw_only=True)
class ChatProvider(Provider):
    """A provider of Chat, and its needs in a request."""

    max_tokens_field: str = "max_tokens"  #: the member of a request for the most tokens of a response
    #: The member of a request for how much to think: ``reasoning_effort``, or OpenRouter's object ``reasoning``.
    thinking_field: str = "reasoning_effort"
    #: The member of a message for returned reasoning. Empty: reasoning is not returned.
    reasoning_history: str = ""
    reasoning_history_needed: bool = False  #: whether each message with tool calls must have that member, even if empty
    signatures: str = ""  #: the vendor whose signatures are returned in ``extra_content``
    #: The form of cache marks: OpenAI's ``prompt_cache_breakpoint``, or Anthropic's ``cache_control``. Empty: none.
    cache_marks: Literal["", "openai", "anthropic"] = ""
    text_only: bool = False  #: whether content must be one string, not a list of parts
    form_with_tools: bool = True  #: whether tools may be sent together with a JSON response format


#: If no provider is named, a request is written for OpenAI.
UNNAMED: Final = ChatProvider(name="", title="", max_tokens_field="max_completion_tokens", cache_marks="openai")
#: The defaults for a provider about which Chat knows nothing, except that it is not OpenAI.
PLAIN: Final = ChatProvider(name="", title="")


def provider_of(provider: Provider | None) -> ChatProvider:
    """Return what is known of a provider's needs."""
    return UNNAMED if provider is None else provider if isinstance(provider, ChatProvider) else PLAIN


@frozen(kw_only=True)
class ChatClient(Profile):
    """A client of Chat.

    Usage is for clients that requested it (``stream_options.include_usage``): its chunk has no choices, and programs that did
    not request it read the first choice.
    """

    #: The members of a delta for reasoning. Some clients read ``reasoning``, most read ``reasoning_content``.
    reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    #: Whether signed and encrypted reasoning is written as OpenRouter's ``reasoning_details``.
    reasoning_details: bool = True
    #: Whether the usage is in the last chunk with choices, as Mistral writes it, and not in a separate chunk.
    usage_with_stop: bool = False


DEFAULT_CLIENT: Final = ChatClient()
CLIENTS: Final = (
    ChatClient(name="openai-python", title="the openai package, and programs like it"),
    # The clients below send a User-Agent such as ``mistral-client-python/1.9`` or ``ai-sdk/mistral/2.0``.
    ChatClient(
        name="mistral-sdk",
        title="Mistral's own packages, and the AI SDK's for it",
        user_agent="mistral",
        usage_unasked=True,
        usage_with_stop=True,
    ),
)


def client_of(profile: Profile) -> ChatClient:
    """Return the Chat client of a profile, or the default."""
    return profile if isinstance(profile, ChatClient) else DEFAULT_CLIENT


PROVIDERS: Final = (
    ChatProvider(
        name="openai",
        title="OpenAI",
        habits={"stop_with_calls": "`stop` for a call that `tool_choice` forced by name"},
        adds={"obfuscation": "random padding of delta chunks"},
        max_tokens_field="max_completion_tokens",
        cache_marks="openai",
    ),
    ChatProvider(
        name="azure",
        gen_ai_provider="azure.ai.openai",
        title="Azure OpenAI",
        auth="azure",
        habits={
            "stop_with_calls": "as OpenAI",
            "thinking_in_text": "`<think>…</think>` in the content of DeepSeek's models",
        },
        thinks_in_text=True,
        adds={
            "prompt_filter_results": "in a first chunk without choices",
            "choices[].content_filter_results": "next to deltas, or in separate chunks after the text",
            "choices[].content_filter_offsets": "the text that an asynchronous filter has checked",
        },
        max_tokens_field="max_completion_tokens",
        cache_marks="openai",
    ),
    ChatProvider(
        name="openrouter",
        title="OpenRouter",
        habits={"comment_as_data": "`: OPENROUTER PROCESSING`, which proxies write as data"},
        adds={
            "provider": "the provider that ran the model",
            "choices[].native_finish_reason": "that provider's own stop reason",
            "choices[].delta.reasoning_details": "reasoning with its signature, in the vendor's own format",
            "usage.cost": "in credits",
        },
        thinking_field="reasoning",
        reasoning_history="reasoning_details",
        cache_marks="anthropic",
    ),
    ChatProvider(
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
        prefill=Prefill(message={"prefix": True}),  # only at base URLs that end with /beta
    ),
    ChatProvider(
        name="vllm",
        title="vLLM",
        habits={"arguments_repeated": "the whole text again at the end", "identity_blank": "blank ids in fragments"},
        adds={
            "choices[].delta.reasoning": "reasoning; `reasoning_content` in older versions",
            "choices[].stop_reason": "the stop sequence, or the number of a token",
            "choices[].token_ids": "on demand",
        },
        prefill=Prefill(request={"add_generation_prompt": False, "continue_final_message": True}),
    ),
    ChatProvider(
        name="sglang",
        title="SGLang",
        habits={"stop_with_calls": "`stop` although tools are called"},
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].matched_stop": "the stop sequence, or the number of a token",
        },
    ),
    ChatProvider(
        name="llama.cpp",
        title="llama.cpp server",
        habits={
            "sse_error_field": "errors in a field `error:` (until late 2025)",
            "arguments_not_text": "arguments as an object (fixed since)",
        },
        adds={"choices[].delta.reasoning_content": "reasoning", "timings": "the speed of the generation"},
        prefill=Prefill(),  # unless it was started with --no-prefill-assistant
    ),
    ChatProvider(
        name="groq",
        title="Groq",
        form_with_tools=False,  # "json mode cannot be combined with tool/function calling"
        habits={
            "thinking_in_text": "`<think>…</think>` in the content, unless the request has `reasoning_format: parsed`"
        },
        thinks_in_text=True,
        adds={
            "choices[].delta.reasoning": "reasoning, with `reasoning_format: parsed`; otherwise it is in the text",
            "x_groq": "the request's id, then usage",
            "choices[].delta.executed_tools": "tools that Groq ran",
        },
    ),
    ChatProvider(
        name="xai",
        gen_ai_provider="x_ai",
        title="xAI",
        adds={
            "choices[].delta.reasoning_content": "reasoning; `completion_tokens` may not include its tokens",
            "citations": "in the last chunk",
        },
    ),
    ChatProvider(
        name="together",
        title="Together AI",
        habits={"stop_with_calls": "`eos` or `stop` although tools are called"},
        adds={"choices[].delta.token_id": "the token", "warnings": "about the request"},
    ),
    ChatProvider(
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
    ChatProvider(
        name="qwen",
        title="Qwen, DashScope's compatible mode",
        habits={"identity_blank": '`"id": ""` and `"name": ""` in continuations'},
        adds={"choices[].delta.reasoning_content": "reasoning"},
        prefill=Prefill(message={"partial": True}),
    ),
    ChatProvider(
        name="moonshot",
        gen_ai_provider="moonshot_ai",
        title="Moonshot AI (Kimi)",
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].usage": "usage inside the choice of the last chunk",
        },
        reasoning_history="reasoning_content",
        reasoning_history_needed=True,
        prefill=Prefill(message={"partial": True}),
    ),
    ChatProvider(
        name="minimax",
        title="MiniMax",
        habits={"thinking_in_text": "`<think>…</think>` in the content, unless the request has `reasoning_split`"},
        adds={"choices[].delta.reasoning_details": "reasoning, if the request has `reasoning_split`"},
        thinks_in_text=True,
    ),
    ChatProvider(
        name="zhipu",
        title="Zhipu AI (GLM)",
        habits={"id_repeated": "the id in each fragment"},
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].finish_reason": "also `sensitive` and `network_error`",
        },
        reasoning_history="reasoning_content",
    ),
    ChatProvider(
        name="github-copilot",
        title="GitHub Copilot",
        adds={
            "choices[].delta.reasoning_text": "reasoning; `cot_summary` of some models",
            "choices[].delta.reasoning_opaque": "the value that must be sent back with it; `cot_id` next to a `cot_summary`",
        },
        reasoning_history="reasoning_text",
    ),
    ChatProvider(
        name="gemini-openai",
        gen_ai_provider="gcp.gemini",
        title="Gemini through its OpenAI endpoint",
        habits={
            "index_missing": WHOLE_CALLS,
            "index_reused": WHOLE_CALLS,
            "stop_with_calls": "`stop` although tools are called",
        },
        adds={
            "choices[].delta.tool_calls[].extra_content": "the thought signature, which must be sent back with its call",
            "usage": "cumulative, in each chunk",
        },
        signatures="google",
    ),
    ChatProvider(
        name="bedrock-openai",
        gen_ai_provider="aws.bedrock",
        title="Amazon Bedrock through its OpenAI endpoint, `…/openai/v1`, with a Bedrock API key",
        max_tokens_field="max_completion_tokens",
    ),
    ChatProvider(
        name="ollama-v1",
        gen_ai_provider="ollama",
        title="Ollama through its OpenAI endpoint",
        adds={"choices[].delta.reasoning": "reasoning"},
        reasoning_history="reasoning",
    ),
)
