"""Providers and clients that speak Chat, each in its own way. Source: dialects.md §1.6, quirks.md §1 to §7.

The decoder handles the habits of all providers in every stream, named or not: this table only says which provider has which.
What a provider wants in a request is written only if the provider is named: the member for the token limit; whether and where
reasoning is sent back (dialects.md §7.4; DeepSeek and Moonshot refuse a message with tool calls and no reasoning, but take an
empty one); the form of cache marks; whether content may be a list of parts (not for DeepSeek: cline#230, qwen-code#2318); how
it continues a text (dialects.md §7.4); and whether it refuses tools next to a JSON output format (vercel/ai#16540).
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from streamkit.dialects.profiles import Prefill, Profile, Provider

WHOLE_CALLS = "calls come whole, and each at index 0 or without one"


@frozen(kw_only=True)
class ChatProvider(Provider):
    """A provider that speaks Chat, and what it wants in a request."""

    #: The request's member for the most tokens of a response.
    max_tokens_field: str = "max_tokens"
    #: The request's member for how much to think: ``reasoning_effort``, or OpenRouter's object ``reasoning``.
    thinking_field: str = "reasoning_effort"
    #: The member of a message in which the provider takes reasoning back; empty: it takes none.
    reasoning_history: str = ""
    #: Whether each message that calls tools must have that member, at least empty.
    reasoning_history_needed: bool = False
    #: The vendor of the signatures that the provider takes back in ``extra_content``.
    signatures: str = ""
    #: The form of cache marks on parts: OpenAI's ``prompt_cache_breakpoint`` or Anthropic's ``cache_control``; empty: none.
    cache_marks: Literal["", "openai", "anthropic"] = ""
    #: Whether content must be one string: the provider refuses a list of parts.
    text_only: bool = False
    #: Whether the provider takes tools next to a JSON output format.
    form_with_tools: bool = True


#: If no provider is named, a request is written for OpenAI.
UNNAMED: Final = ChatProvider(name="", title="", max_tokens_field="max_completion_tokens", cache_marks="openai")
#: A provider of which nothing is known, except that it is not OpenAI.
PLAIN: Final = ChatProvider(name="", title="")


def provider_of(provider: Provider | None) -> ChatProvider:
    """Return what a provider wants in a Chat request; the defaults if the provider is no ``ChatProvider``."""
    return UNNAMED if provider is None else provider if isinstance(provider, ChatProvider) else PLAIN


@frozen(kw_only=True)
class ChatClient(Profile):
    """A client that reads Chat.

    Only clients that ask for usage (``stream_options.include_usage``) get it: its chunk has no choices, and programs that did
    not ask for it read the first choice of each chunk.
    """

    #: The delta's members for reasoning; some clients read ``reasoning``, most ``reasoning_content``.
    reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    #: Whether signed and encrypted reasoning is written as OpenRouter's ``reasoning_details``.
    reasoning_details: bool = True
    #: Whether the usage is in the last chunk with choices, as Mistral writes it, and not in a separate chunk.
    usage_with_stop: bool = False


DEFAULT_CLIENT: Final = ChatClient()
CLIENTS: Final = (
    ChatClient(name="openai-python", title="the openai package, and programs like it"),
    # user agents: ``mistral-client-python/1.9``, ``ai-sdk/mistral/2.0``
    ChatClient(
        name="mistral-sdk",
        title="Mistral's own packages, and the AI SDK's for it",
        user_agent="mistral",
        usage_unasked=True,
        usage_with_stop=True,
    ),
)


def client_of(profile: Profile) -> ChatClient:
    """Return a profile as a Chat client; the default client if it is none."""
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
            "choices[].content_filter_results": "beside deltas, or in chunks of their own behind the text",
            "choices[].content_filter_offsets": "what an asynchronous filter has looked at",
        },
        max_tokens_field="max_completion_tokens",
        cache_marks="openai",
    ),
    ChatProvider(
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
        prefill=Prefill(message={"prefix": True}),  # only at /beta
    ),
    ChatProvider(
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
        prefill=Prefill(request={"add_generation_prompt": False, "continue_final_message": True}),
    ),
    ChatProvider(
        name="sglang",
        title="SGLang",
        habits={"stop_with_calls": "`stop` though tools are called"},
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
            "arguments_not_text": "arguments as an object (mended since)",
        },
        adds={"choices[].delta.reasoning_content": "reasoning", "timings": "how fast it was"},
        prefill=Prefill(),  # unless the server was started with --no-prefill-assistant
    ),
    ChatProvider(
        name="groq",
        title="Groq",
        form_with_tools=False,  # "json mode cannot be combined with tool/function calling"
        habits={"thinking_in_text": "`<think>…</think>` in the content, unless it is asked for as parsed"},
        thinks_in_text=True,
        adds={
            "choices[].delta.reasoning": "reasoning, where it was asked for as parsed; else it stands in the text",
            "x_groq": "the request's id, then usage",
            "choices[].delta.executed_tools": "tools that Groq ran",
        },
    ),
    ChatProvider(
        name="xai",
        gen_ai_provider="x_ai",
        title="xAI",
        adds={
            "choices[].delta.reasoning_content": "reasoning; its tokens may stand beside `completion_tokens`",
            "citations": "in the last chunk",
        },
    ),
    ChatProvider(
        name="together",
        title="Together AI",
        habits={"stop_with_calls": "`eos` or `stop` though tools are called"},
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
        habits={"thinking_in_text": "`<think>…</think>` in the content, unless the request says `reasoning_split`"},
        adds={"choices[].delta.reasoning_details": "reasoning, where the request says `reasoning_split`"},
        thinks_in_text=True,
    ),
    ChatProvider(
        name="zhipu",
        title="Zhipu AI (GLM)",
        habits={"id_repeated": "the id in each fragment"},
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].finish_reason": "`sensitive` and `network_error` too",
        },
        reasoning_history="reasoning_content",
    ),
    ChatProvider(
        name="github-copilot",
        title="GitHub Copilot",
        adds={
            "choices[].delta.reasoning_text": "reasoning; `cot_summary` of some models",
            "choices[].delta.reasoning_opaque": "what must come back with it; `cot_id` next to a `cot_summary`",
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
            "stop_with_calls": "`stop` though tools are called",
        },
        adds={
            "choices[].delta.tool_calls[].extra_content": "the thought signature, which must come back with its call",
            "usage": "cumulative, in each chunk",
        },
        signatures="google",
    ),
    ChatProvider(
        name="bedrock-openai",
        gen_ai_provider="aws.bedrock",
        title="Amazon Bedrock through its OpenAI endpoint, `…/openai/v1`, with an API key of Bedrock's",
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
