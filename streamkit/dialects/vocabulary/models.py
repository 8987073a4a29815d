"""Models and the request options that they accept, in one table with a row for each family; effort in words and in tokens.

A server refuses a whole request because of one word that its model does not know, and a client that named another model cannot
know this. The row of a model is the first whose ``names`` occurs in its id, in the spelling of any vendor, cloud or router
(``claude-opus-4-6``, ``us.anthropic.claude-opus-4-6-v1:0``, ``anthropic/claude-opus-4.6``). Versions are compared in the form
with a point. Providers with other words are in ``SERVERS``. A model without a row gets the default of the dialect
(``UNKNOWN``, or one next to the dialect's writer), which is what nearly all its servers accept: three efforts, no word for
turning thinking off, any sampling option, no cache mark. Only requests of another dialect are changed.

Some dialects have an effort (``reasoning_effort``, ``thinkingLevel``), some a budget of tokens (``budget_tokens``,
``thinkingBudget``, ``token_budget``), some both. The other form is converted to the nearest value, and counted as a loss. A
budget becomes one of the three efforts that every server with efforts accepts. The numbers are Google's, with steps above
them.

How to add a model: docs/how-to/add-a-model.md. Source: dialects.md §7.4, §7.8, which has the vendors' pages;
ai.google.dev, "OpenAI compatibility"; AWS and Anthropic, "Adaptive thinking".
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from attrs import evolve, frozen

#: Tokens for each effort, smallest first.
BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 32768,
    "max": 65536,
}
COMMON: Final = ("low", "medium", "high")
#: The text that Google accepts in place of a missing call signature (ai.google.dev, "Thought signatures").
NO_SIGNATURE: Final = "skip_thought_signature_validator"


def budget_of(effort: str | None) -> int | None:
    """Return the tokens for an effort; None without an effort, or for an unknown word."""
    return BUDGETS.get(effort or "")


def effort_of(budget: int | None) -> str | None:
    """Return the effort whose tokens are nearest to a budget by ratio; None without a budget, or if it is not positive."""
    if budget is None or budget <= 0:
        return None
    return min(COMMON, key=lambda effort: abs(math.log(budget / BUDGETS[effort])))


def nearest(effort: str, known: Collection[str]) -> str | None:
    """Return the strongest ``known`` effort that is not above this one, else the weakest; None for an unknown effort."""
    if effort in known:
        return effort
    order = [word for word in BUDGETS if word in known]
    if effort not in BUDGETS or not order:
        return None
    below = [word for word in order if BUDGETS[word] < BUDGETS[effort]]
    return below[-1] if below else order[0]


def below(budget: int, bound: int | None, least: int = 1) -> int | None:
    """Return the budget if it is below ``bound``, or else half of ``bound``; None if not even ``least`` is below ``bound``."""
    if bound is None or budget < bound:
        return budget
    return max(least, bound // 2) if least < bound else None


Efforts: TypeAlias = tuple[str, ...]

#: Options that OpenAI's models refuse while they think, except for the default value.
UNREASONED: Final = (
    "temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "stop",
)  # fmt: skip
SAMPLING: Final = ("temperature", "top_p", "top_k")


@frozen(kw_only=True)
class Model:
    """The request options that the models of one family accept."""

    names: str  #: A regular expression that occurs in the ids of the family, in lower case.
    #: The words for how much to think, weakest first; ``none`` if thinking can be turned off. Empty: no word is accepted.
    efforts: Efforts = COMMON
    #: Whether the vendor's own API accepts these words. False: it accepts only a number of tokens.
    words: bool = True
    #: The smallest and the largest number of thinking tokens. None: no number is accepted.
    budget: tuple[int, float] | None = (1, float("inf"))
    #: When the model thinks. ``unasked``: unless a request turns thinking off. ``asked``: only if a request turns it on.
    thinks: Literal["always", "unasked", "asked"] = "asked"
    #: Options that the model always refuses, and options that it refuses while it thinks.
    refuses: tuple[str, ...] = ()
    refuses_thinking: tuple[str, ...] = ()
    #: The smallest ``top_p`` that the model accepts while it thinks, although ``top_p`` is in ``refuses_thinking``.
    least_top_p: float | None = None
    both: bool = True  #: whether the model accepts ``temperature`` and ``top_p`` together
    prefill: bool = True  #: whether the model continues the text of a last assistant turn
    compacts: bool = True  #: whether the model can summarise the conversation so far
    #: The longest lifetime of a cache mark ("": no marks are accepted), and whether a tool definition may have a mark.
    cache_marks: Literal["", "short", "long"] = ""
    cached_tools: bool = True
    #: Whether the model refuses a history in which the first call of a turn lacks the vendor's signature.
    signatures: bool = False
    #: Whether the model accepts tools together with a JSON response format, and media inside a tool's result.
    form_with_tools: bool = True
    media_in_results: bool = True

    def fit(self, effort: str | None) -> str | None:
        """Return the nearest effort that the model knows; None if the model knows none that is near."""
        if effort is None or effort in self.efforts:
            return effort
        if effort == "none":
            return next(iter(self.efforts), None) if self.thinks == "always" else None
        return "default" if "default" in self.efforts else nearest(effort, self.efforts)

    def is_thinking(self, effort: str | int | None, *, off: bool) -> bool:
        """Return whether the model thinks, for this effort or number of tokens. ``off``: the request turns thinking off."""
        if self.thinks == "always":
            return True
        if off or effort == "none":
            return "none" not in self.efforts and self.thinks == "unasked"
        return self.thinks == "unasked" or (effort is not None and bool(self.efforts))


LOW_TO_MAX: Final = (*COMMON, "xhigh", "max")
LOW_TO_XHIGH: Final = (*COMMON, "xhigh")
NONE_TO_MAX: Final = ("none", *LOW_TO_MAX)
UNKNOWN: Final = Model(names=r"(?!)")  #: the row for a model that is in no other row

# -- Anthropic: "Effort", "Adaptive thinking", "Prompt caching", what is new in 4.6, 4.7, 5 and 5.5; AWS, "Prompt caching" --

_CLAUDE: Final = r"claude-(?:[a-z]+-)?"
_NEW: Final = Model(
    names=_CLAUDE, efforts=NONE_TO_MAX, budget=None, refuses=SAMPLING, prefill=False, cache_marks="long"
)
_OLD: Final = Model(
    names=_CLAUDE, words=False, budget=(1024, float("inf")), refuses_thinking=SAMPLING, least_top_p=0.95, compacts=False,
    both=False, efforts=("none", *COMMON), cache_marks="short",
)  # fmt: skip
CLAUDE: Final = (
    evolve(_NEW, names=r"claude-mythos-preview", efforts=(*COMMON, "max"), thinks="always"),
    evolve(_NEW, names=r"fable|mythos", efforts=LOW_TO_MAX, thinks="always"),
    evolve(_NEW, names=r"claude-haiku-5[-.]5(?!\d)", thinks="unasked"),
    evolve(_NEW, names=rf"{_CLAUDE}(?:5[-.][5-9](?!\d)|(?:[6-9]|\d\d)(?!\d))", efforts=LOW_TO_MAX, thinks="always"),
    evolve(_NEW, names=rf"{_CLAUDE}5(?!\d)", thinks="unasked"),
    evolve(_NEW, names=rf"{_CLAUDE}4[-.](?:[7-9]|[1-9]\d)(?!\d)"),
    evolve(
        _OLD, names=rf"{_CLAUDE}4[-.]6(?!\d)", efforts=("none", *COMMON, "max"), words=True, prefill=False, compacts=True,
        cache_marks="long",
    ),
    evolve(_OLD, names=rf"{_CLAUDE}4[-.]5(?!\d)", cache_marks="long"),
    evolve(_OLD, names=rf"{_CLAUDE}4[-.][1-4](?!\d)"),
    evolve(_OLD, names=rf"{_CLAUDE}4(?!\d)|claude-3[-.]7", both=True),
    evolve(_OLD, names=r"claude-3[-.]5-(?:haiku|sonnet-20241022|sonnet-v2)", efforts=(), both=True),
    evolve(_OLD, names=r"claude-(?:v?[12](?!\d)|instant|3(?!\d))", efforts=(), both=True, cache_marks=""),
)  # fmt: skip

# -- OpenAI: `ReasoningEffort`, `PromptCacheOptions` of the openai package, "Using GPT-6", the errors of its server ---------

#: Matches what may precede the vendor's id of a model: ``openai/``, ``openai.``, ``openai:``, ``ft:``.
_FIRST: Final = r"(?:^|[/.:]|databricks-)"
_GPT: Final = rf"{_FIRST}gpt-"
_REASONS: Final = Model(names=_GPT, refuses_thinking=UNREASONED, thinks="always")
_PLAIN: Final = Model(names=_GPT, efforts=())
OPENAI: Final = (
    evolve(_PLAIN, names=r"gpt-oss", efforts=COMMON, thinks="always"),
    evolve(
        _REASONS, names=rf"{_GPT}6-astra|{_GPT}6[.][1-9]|{_GPT}(?:[7-9]|[12]\d)(?!\d)", efforts=LOW_TO_MAX, cache_marks="long"
    ),
    evolve(_REASONS, names=rf"{_GPT}(?:6|5[.](?:[6-9]|\d\d))", efforts=NONE_TO_MAX, thinks="unasked", cache_marks="long"),
    evolve(_PLAIN, names=rf"{_GPT}5-chat"),
    evolve(_REASONS, names=rf"{_GPT}5[.]\d+-chat", efforts=("medium",)),
    evolve(_REASONS, names=rf"{_GPT}5-pro", efforts=("high",)),
    evolve(_REASONS, names=rf"{_GPT}5[.]\d+-pro", efforts=("medium", "high", "xhigh")),
    evolve(_REASONS, names=rf"{_GPT}5[.]1-codex-max|{_GPT}5[.]2-codex", efforts=LOW_TO_XHIGH),
    evolve(_REASONS, names=rf"{_GPT}5(?:[.]1)?-codex|codex-mini"),
    evolve(_REASONS, names=rf"{_GPT}5[.]5", efforts=("none", *LOW_TO_XHIGH), thinks="unasked"),
    evolve(_REASONS, names=rf"{_GPT}5[.][2-4]", efforts=("none", *LOW_TO_XHIGH), thinks="asked"),
    evolve(_REASONS, names=rf"{_GPT}5[.]1", efforts=("none", *COMMON), thinks="asked"),
    evolve(_REASONS, names=rf"{_GPT}5", efforts=("minimal", *COMMON)),
    evolve(_REASONS, names=rf"{_FIRST}o\d(?:-[a-z]+)?-deep-research", efforts=("medium",)),
    evolve(_REASONS, names=rf"{_FIRST}o1-(?:mini|preview)", efforts=()),
    evolve(_REASONS, names=rf"{_FIRST}o[1-9](?:-|$)"),
    evolve(_PLAIN, names=rf"{_GPT}|chatgpt-"),
)  # fmt: skip

# -- Google: "Gemini thinking", "Thought signatures" ------------------------------------------------------------------------

_LEVELS: Final = Model(names=r"gemini-", thinks="always", signatures=True)
_TOKENS: Final = Model(
    names=r"gemini-", thinks="unasked", words=False, efforts=("none", "minimal", *COMMON), form_with_tools=False,
    media_in_results=False,
)  # fmt: skip
GOOGLE: Final = (
    evolve(_TOKENS, names=r"gemini-2[.]5-pro", efforts=("minimal", *COMMON), thinks="always", budget=(128, 32768)),
    evolve(_TOKENS, names=r"gemini-2[.]5-flash-lite", budget=(512, 24576)),
    evolve(_TOKENS, names=r"gemini-2[.]5-flash", budget=(1, 24576)),
    evolve(_TOKENS, names=r"gemini-2[.]5|gemini-2[.]0-flash-thinking"),
    evolve(_TOKENS, names=r"gemini-[12](?!\d)", efforts=(), budget=None, thinks="asked"),
    evolve(_LEVELS, names=r"gemini-3(?:[.]0)?-pro", efforts=("low", "high")),
    evolve(_LEVELS, names=r"gemini-3(?:[.][0-5])?-flash", efforts=("minimal", *COMMON)),
    evolve(_LEVELS, names=r"gemini-(?:[3-9]|\d\d)|gemini-(?:pro|flash|flash-lite)-latest"),
)  # fmt: skip

# -- xAI: "Reasoning"; Mistral: "Reasoning"; Cohere: "Reasoning"; AWS: Nova, "Prompt caching" -------------------------------

_GROK: Final = Model(
    names=r"grok-", thinks="always", refuses_thinking=("presence_penalty", "frequency_penalty", "stop")
)
OTHERS: Final = (
    Model(names=r"grok.*non-reasoning|grok-2|grok-3(?!-mini)", efforts=()),
    evolve(_GROK, names=r"grok-3-mini", efforts=("low", "high")),
    evolve(_GROK, names=r"grok-4[.]20-multi-agent|grok-4[.]6", efforts=LOW_TO_XHIGH),
    evolve(_GROK, names=r"grok-4[.]3", efforts=("none", *COMMON), thinks="unasked"),
    evolve(_GROK, names=r"grok-4(?:[.-](?:0709|1|20)|-fast|-latest|$)|grok-code", efforts=()),
    evolve(_GROK, names=r"grok-"),
    Model(names=r"mistral-large-4", efforts=("none", *COMMON)),
    Model(names=r"mistral-(?:small|medium)", efforts=("none", "high")),
    Model(names=r"magistral|ministral|codestral|devstral|mixtral|pixtral|open-mi|mistral-(?:tiny|7b|nemo|saba)", efforts=()),
    Model(names=r"command-(?:r|light|nightly)|command-a-(?:03|vision|translate)|c4ai-|aya-", efforts=(), budget=None),
    Model(names=r"nova-2|nova-premier-v[2-9]", cache_marks="short", cached_tools=False),
    Model(names=r"nova-(?:micro|lite|pro|premier)", efforts=(), cache_marks="short", cached_tools=False),
    Model(names=rf"{_FIRST}(?:meta-)?llama-?\d|titan-text|jamba", efforts=()),
)  # fmt: skip
FAMILIES: Final = (*CLAUDE, *OPENAI, *GOOGLE, *OTHERS)

#: Matches a version that is written without a point: ``gpt-5-2``, ``claude_opus_4_6``. Dates and sizes do not match.
_VERSION: Final = re.compile(r"(?<![\d.])(\d)[-_](\d\d?)(?![\da-z])")

#: Providers with other words for how much to think than the vendor: for parts of a model's id, the accepted words.
SERVERS: Final[Mapping[str, tuple[tuple[str, Efforts], ...]]] = {
    "openrouter": (("", ("none", "minimal", *LOW_TO_XHIGH)),),  # OpenRouter adapts the effort to the model
    "groq": (("gpt-oss", COMMON), ("qwen", ("none", "default")), ("", ())),
    "vllm": (("", COMMON),),
    "sglang": (("", COMMON),),
}


@lru_cache(maxsize=256)
def model_of(
    name: str | None, provider: str = "", unknown: Model = UNKNOWN, words: frozenset[str] | None = None
) -> Model:
    """Return the row of a model at a provider. ``words``: the efforts that the dialect can express; None: any."""
    name = _VERSION.sub(r"\1.\2", (name or "").lower()).replace("_", "-")
    found = next((family for family in FAMILIES if re.search(family.names, name)), unknown)
    efforts = next((efforts for part, efforts in SERVERS.get(provider, ()) if part in name), found.efforts)
    if words is not None:
        efforts = tuple(effort for effort in efforts if effort in words)
    return found if efforts == found.efforts else evolve(found, efforts=efforts)
