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
        title="Mistral's own packages, and the AI SDK's package for Mistral",
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
        habits={"stop_with_calls": "the stop reason is `stop` if the request's `tool_choice` named the tool"},
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
            "stop_with_calls": "the stop reason is `stop` if the request's `tool_choice` named the tool",
            "thinking_in_text": "DeepSeek's models send `<think>…</think>` in the content",
        },
        thinks_in_text=True,
        adds={
            "prompt_filter_results": "the content filter's results for the prompt, in a first chunk without choices",
            "choices[].content_filter_results": "the content filter's results, in the chunks of the text or in later chunks",
            "choices[].content_filter_offsets": "the range of the text that an asynchronous filter has checked",
        },
        max_tokens_field="max_completion_tokens",
        cache_marks="openai",
    ),
    ChatProvider(
        name="openrouter",
        title="OpenRouter",
        habits={"comment_as_data": "some proxies send OpenRouter's comment `: OPENROUTER PROCESSING` as data"},
        adds={
            "provider": "the name of the provider that ran the model",
            "choices[].native_finish_reason": "the stop reason that this provider sent",
            "choices[].delta.reasoning_details": "reasoning with its signature, in the vendor's own format",
            "usage.cost": "the price of the request in credits",
        },
        thinking_field="reasoning",
        reasoning_history="reasoning_details",
        cache_marks="anthropic",
    ),
    ChatProvider(
        name="deepseek",
        title="DeepSeek",
        habits={"id_repeated": "each fragment of a call repeats the call's id"},
        adds={
            "choices[].delta.reasoning_content": "reasoning, which is sent before the content",
            "usage.prompt_cache_hit_tokens": "input tokens from the cache; `prompt_cache_miss_tokens` counts the others",
        },
        reasoning_history="reasoning_content",
        reasoning_history_needed=True,
        text_only=True,
        prefill=Prefill(message={"prefix": True}),  # only at base URLs that end with /beta
    ),
    ChatProvider(
        name="vllm",
        title="vLLM",
        habits={
            "arguments_repeated": "the whole argument text is sent again at the end of a call",
            "identity_blank": "later fragments of a call have a blank id",
        },
        adds={
            "choices[].delta.reasoning": "reasoning; older versions use `reasoning_content`",
            "choices[].stop_reason": "the stop sequence that ended the text, or the number of the token that ended it",
            "choices[].token_ids": "the numbers of the tokens, if the request asks for them",
        },
        prefill=Prefill(request={"add_generation_prompt": False, "continue_final_message": True}),
    ),
    ChatProvider(
        name="sglang",
        title="SGLang",
        habits={"stop_with_calls": "the stop reason is `stop` although the model called tools"},
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].matched_stop": "the stop sequence that ended the text, or the number of the token that ended it",
        },
    ),
    ChatProvider(
        name="llama.cpp",
        title="llama.cpp server",
        habits={
            "sse_error_field": "errors are sent in a field `error:` (until late 2025)",
            "arguments_not_text": "older versions send arguments as an object",
        },
        adds={"choices[].delta.reasoning_content": "reasoning", "timings": "the speed of the generation"},
        prefill=Prefill(),  # unless it was started with --no-prefill-assistant
    ),
    ChatProvider(
        name="groq",
        title="Groq",
        form_with_tools=False,  # "json mode cannot be combined with tool/function calling"
        habits={
            "thinking_in_text": "`<think>…</think>` is in the content, unless the request has `reasoning_format: parsed`"
        },
        thinks_in_text=True,
        adds={
            "choices[].delta.reasoning": "reasoning, if the request has `reasoning_format: parsed`",
            "x_groq": "the request's id; in a later chunk, the usage",
            "choices[].delta.executed_tools": "tools that Groq ran",
        },
    ),
    ChatProvider(
        name="xai",
        gen_ai_provider="x_ai",
        title="xAI",
        adds={
            "choices[].delta.reasoning_content": "reasoning; its tokens may be missing in `completion_tokens`",
            "citations": "the sources of the text, in the last chunk",
        },
    ),
    ChatProvider(
        name="together",
        title="Together AI",
        habits={"stop_with_calls": "the stop reason is `eos` or `stop` although the model called tools"},
        adds={"choices[].delta.token_id": "the number of the token", "warnings": "warnings about the request"},
    ),
    ChatProvider(
        name="fireworks",
        title="Fireworks AI",
        habits={
            "id_repeated": "each fragment of a call repeats the call's id, type and name",
            "name_repeated": "each fragment of a call repeats the call's id, type and name",
            "thinking_in_text": "some models send `<think>…</think>` in the content",
        },
        thinks_in_text=True,
        adds={
            "usage": "the token counts so far, in each chunk",
            "choices[].raw_output": "the model's raw output, if the request asks for it",
        },
    ),
    ChatProvider(
        name="qwen",
        title="Qwen, DashScope's compatible mode",
        habits={"identity_blank": 'later fragments of a call have `"id": ""` and `"name": ""`'},
        adds={"choices[].delta.reasoning_content": "reasoning"},
        prefill=Prefill(message={"partial": True}),
    ),
    ChatProvider(
        name="moonshot",
        gen_ai_provider="moonshot_ai",
        title="Moonshot AI (Kimi)",
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].usage": "the token counts, in the choice of the last chunk",
        },
        reasoning_history="reasoning_content",
        reasoning_history_needed=True,
        prefill=Prefill(message={"partial": True}),
    ),
    ChatProvider(
        name="minimax",
        title="MiniMax",
        habits={"thinking_in_text": "`<think>…</think>` is in the content, unless the request has `reasoning_split`"},
        adds={"choices[].delta.reasoning_details": "reasoning, if the request has `reasoning_split`"},
        thinks_in_text=True,
    ),
    ChatProvider(
        name="zhipu",
        title="Zhipu AI (GLM)",
        habits={"id_repeated": "each fragment of a call repeats the call's id"},
        adds={
            "choices[].delta.reasoning_content": "reasoning",
            "choices[].finish_reason": "the stop reason, which may also be `sensitive` or `network_error`",
        },
        reasoning_history="reasoning_content",
    ),
    ChatProvider(
        name="github-copilot",
        title="GitHub Copilot",
        adds={
            "choices[].delta.reasoning_text": "reasoning; some models use `cot_summary` instead",
            "choices[].delta.reasoning_opaque": (
                "a value that must be sent back with the reasoning; `cot_id` if the reasoning is in `cot_summary`"
            ),
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
            "stop_with_calls": "the stop reason is `stop` although the model called tools",
        },
        adds={
            "choices[].delta.tool_calls[].extra_content": "the call's thought signature; send it back with the call",
            "usage": "the token counts so far, in each chunk",
        },
        signatures="google",
    ),
    ChatProvider(
        name="bedrock-openai",
        gen_ai_provider="aws.bedrock",
        title="Amazon Bedrock through its OpenAI endpoint (`…/openai/v1`), with a Bedrock API key",
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
