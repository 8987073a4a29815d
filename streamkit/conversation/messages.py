"""The neutral conversation: requests and whole responses, in the words that every dialect can be told in.

A turn, of a request or of a response, is a list of parts in order. What only one dialect knows rides along: a field in
``extras``, a whole part as an ``Aside``; it is written again for that dialect and is a counted loss elsewhere. Arguments are
text as received, never a parsed value.

Source: dialects.md §0.2, §7.3, §7.4; design.md §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import define, field

from streamkit.events import (
    Aside,
    MediaKind,
    Opaque,
    ProviderFailed,
    QualifiedName,
    StopReason,
    ToolKind,
    UsageReported,
    Verdict,
)
from streamkit.report import StreamReport
from streamkit.text.one_string import one_string

Extras: TypeAlias = Mapping[str, Any]
#: Of a tool's definition: one that the program runs, with JSON or with free text, or one that the provider runs itself.
DefinitionKind: TypeAlias = ToolKind | Literal["server"]
#: How long a provider shall keep the prompt up to here: minutes, or hours (dialects.md §8.12).
CacheMark: TypeAlias = Literal["short", "long"]


# -- parts -------------------------------------------------------------------------------------------------------------


@define
class Text:
    """Text of a turn, with what its provider bound to it."""

    text: str
    signature: Opaque | None = None  #: of this very part (Gemini)
    cache: CacheMark | None = None
    extras: Extras | None = None
    block: int = field(default=0, eq=False)  #: the label of its events, where it came of a stream
    #: All of it, where the dialect has another form for it than for text (a compaction).
    item: Extras | None = field(default=None, eq=False, kw_only=True)


@define
class Refusal:
    """The model's words for not doing it."""

    text: str
    extras: Extras | None = None
    block: int = field(default=0, eq=False)


@define
class Reasoning:
    """Visible thinking. ``text`` is empty where only the signature came."""

    text: str
    kind: Literal["raw", "summary"] = "raw"
    signature: Opaque | None = None
    extras: Extras | None = None
    block: int = field(default=0, eq=False)


@define
class RedactedReasoning:
    """Thinking that only its vendor can read."""

    opaque: Opaque
    extras: Extras | None = None
    block: int = field(default=0, eq=False)


@define
class Media:
    """An image, a sound, a film or a file: as base64 text, at a URL, or by the provider's own id."""

    kind: MediaKind
    media_type: str | None = None  #: ``image/png``; None where nobody said
    data: str | None = None  #: base64, without ``data:``
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    detail: str | None = None  #: how closely an image is to be looked at: low, high, auto, original
    #: In the request that it was read from: ``messages[3].content[0]``.
    place: str = field(default="", eq=False, kw_only=True)
    cache: CacheMark | None = None
    extras: Extras | None = None
    block: int = field(default=0, eq=False, kw_only=True)  #: the label of its event, where it came of a stream
    #: All of it as it came, if a model made it or few servers know its form: the same dialect writes it again.
    native: Aside | None = field(default=None, eq=False, kw_only=True)


@define
class ToolCall:
    """One call. ``arguments`` is the text as received; act on it only if ``verdict`` allows and the end was clean."""

    index: int
    id: str
    name: str
    arguments: str
    kind: ToolKind = "function"
    verdict: Verdict | None = None
    place: str = field(default="", eq=False, kw_only=True)  #: in the request that it was read from: ``messages[3]``
    ended: bool = True  #: the protocol ended it, so its text is all there is
    id_made: bool = field(default=False, eq=False)  #: the wire gave no id
    signature: Opaque | None = None
    cache: CacheMark | None = None
    extras: Extras | None = None
    #: All of it, where the dialect has another form for it than for calls of functions (``local_shell_call``).
    item: Extras | None = field(default=None, eq=False, kw_only=True)
    qualified: QualifiedName | None = None  #: how the client knows ``name``, if its tool is in a namespace


@define
class ToolResult:
    """What a tool said to the call of that id."""

    call_id: str
    parts: list[Text | Media | Aside] = field(factory=list)
    name: str | None = None  #: the tool's, where the dialect says it
    is_error: bool = False
    kind: ToolKind = "function"
    cache: CacheMark | None = None
    extras: Extras | None = None
    item: Extras | None = field(default=None, eq=False, kw_only=True)  #: as that of its call
    #: The member that held its text, where the dialect has an object for it (``output``).
    native: str | None = field(default=None, eq=False)
    place: str = field(default="", eq=False, kw_only=True)  #: in the request that it was read from: ``messages[3]``
    #: The client's own id of the message that it came in, where the dialect has one.
    native_id: str | None = field(default=None, eq=False, kw_only=True)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@define
class WebSearched:
    """A search of the web that the provider ran: what it looked for, and the pages that it found, by URL and title."""

    query: str
    pages: list[tuple[str, str]] = field(factory=list)
    failed: bool = False


@define
class DocumentPlace:
    """A place of a document, or of a search result, of the request. ``start`` and ``end`` count as ``kind`` says."""

    kind: Literal["char", "page", "block", "search"]
    index: int
    start: int | None = None
    end: int | None = None
    source: str | None = None  #: of a search result


@define
class Citation:
    """A page of the web, or a document, that a text cites. ``start`` and ``end``: in the text; None: all of the block."""

    url: str
    title: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    block: int = 0
    document: DocumentPlace | None = None  #: the ``url`` of one is blank


Part: TypeAlias = Text | Refusal | Reasoning | RedactedReasoning | Media | ToolCall | ToolResult | Aside


# -- requests ----------------------------------------------------------------------------------------------------------


@define
class Turn:
    """One message. Tool results are parts of a user's turn, whichever way a dialect places them."""

    role: Literal["system", "user", "assistant"]
    parts: list[Part] = field(factory=list)
    name: str | None = None
    native_role: str | None = None  #: the dialect's own word, where it has two (``developer``)
    extras: Extras | None = None
    #: The dialect's own place for its reasoning, where it has several (``reasoning_details``).
    native_reasoning: str | None = field(default=None, eq=False)
    #: The client's own ids of the messages that the turn came in, where the dialect has any.
    native_ids: tuple[str, ...] = field(default=(), eq=False)


@define
class Namespace:
    """A group of tools: of an MCP server, of sub-agents. Only OpenAI Responses has it; its tools stand side by side."""

    name: str
    description: str | None = None
    extras: Extras | None = None


@define
class WebSearch:
    """What a search of the web may do that the provider runs itself."""

    max_uses: int | None = None
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    location: Mapping[str, str] | None = None  #: of the user, approximately: city, region, country, timezone
    context: str | None = None  #: how much of what is found the model reads: low, medium, high
    stored_only: bool = False  #: it looks at nothing but what the provider has stored
    extras: Extras | None = None


@define
class Tool:
    """A definition. ``parameters`` is the JSON schema as it came; None where none was given.

    No other tool of the request has its ``name``: that of a tool in a namespace has the namespace in front.
    """

    name: str
    description: str | None = None
    parameters: Any = None
    strict: bool | None = None
    kind: DefinitionKind = "function"
    #: Of a custom tool, its input: ``{"type": "text"}`` or ``{"type": "grammar", "syntax": …, "definition": …}``.
    format: Extras | None = None
    cache: CacheMark | None = None
    extras: Extras | None = None
    #: All of it, for a tool that the provider runs itself (kind ``server``), or one whose form is not a function's.
    raw: Extras | None = None
    #: The events of a call of it for the client, if that is no call of a function; without the id and the arguments.
    called: tuple[Aside, ...] = field(default=(), eq=False)
    search: WebSearch | None = field(default=None, eq=False)  #: what ``raw`` says, where it is a search of the web
    namespace: Namespace | None = None  #: the group that it came in
    qualified: QualifiedName | None = None  #: how the client knows it there
    loaded: bool = False  #: an item of the conversation brought it, which its own dialect repeats
    #: The schema as it came, where the dialect has another form beside JSON schema (Gemini's ``parameters``).
    native_parameters: Extras | None = field(default=None, eq=False)


@define
class ToolChoice:
    """``required``: any tool, but one. ``names`` limits it; with one name and ``required`` it is that tool."""

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] = ()
    parallel: bool | None = None
    extras: Extras | None = None
    #: All of it as it came, where it names more than functions: tools in a namespace, or that the provider runs.
    native: Extras | None = field(default=None, eq=False)


@define
class OutputFormat:
    """The form that the answer must have: text, any JSON, or JSON of a schema."""

    kind: Literal["text", "json", "schema"]
    schema: Any = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    #: The schema as it came, where the dialect has another form beside JSON schema (Gemini's ``responseSchema``).
    native_schema: Extras | None = field(default=None, eq=False)


@define
class Thinking:
    """How much the model shall think before it speaks."""

    effort: str | None = None  #: none, minimal, low, medium, high, xhigh, max
    budget_tokens: int | None = None
    enabled: bool | None = None
    summary: str | None = None  #: whether and how it is shown: none, auto, concise, detailed
    native: str | None = field(default=None, eq=False)  #: the dialect's own field, where it has two (``reasoning``)


@define
class Compaction:
    """That the provider shall put a summary in place of the conversation so far, and when (Anthropic, Responses)."""

    #: The summary is all that is asked for; otherwise it comes by itself, where the conversation is long.
    now: bool = False
    threshold: int | None = None  #: how many tokens of input are long
    pause: bool | None = None  #: whether the answer ends behind the summary
    instructions: str | None = None  #: how to summarise
    #: The members that said it, as they came; of Responses also the item at the end of the input (``input``).
    native: Extras | None = field(default=None, eq=False)


@define
class Options:
    """What a request asks of the model besides the conversation. None: not said."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    choices: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    thinking: Thinking | None = None
    compaction: Compaction | None = None
    output: OutputFormat | None = None
    service_tier: str | None = None
    user: str | None = None
    #: The dialect's own field for ``max_tokens``, where it has two.
    native_max_tokens: str | None = field(default=None, eq=False)


@define
class Request:
    """A request to a model. ``stream`` and ``model`` are None in dialects that have them in the URL."""

    dialect: str
    model: str | None = None
    turns: list[Turn] = field(factory=list)
    tools: list[Tool] = field(factory=list)
    tool_choice: ToolChoice | None = None
    options: Options = field(factory=Options)
    stream: bool | None = None
    stream_usage: bool | None = None  #: whether the stream shall end with token counts
    extras: dict[str, Any] = field(factory=dict)  #: fields that only this dialect knows
    #: Names of the exchange itself, which tell no model anything: a dialect that has them says them again in its answer.
    exchange: dict[str, Any] = field(factory=dict, eq=False)
    #: What of the conversation only its provider's store has: the path to each reference, and what to send instead.
    stored: list[tuple[str, str]] = field(factory=list)
    #: The same of what stands for a part of the conversation and that only its vendor can read, and the dialect of that.
    unreadable: list[tuple[str, str, str]] = field(factory=list)


# -- responses ---------------------------------------------------------------------------------------------------------


@define
class Choice:
    """What the model said in one choice: its parts in the order in which they began."""

    index: int = 0
    role: str = "assistant"
    parts: list[Part] = field(factory=list)
    stop_reason: StopReason | None = None  #: None unless the response is whole
    native_stop_reason: str | None = None
    stop_sequence: str | None = None

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def refusal(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Refusal))

    @property
    def reasoning(self) -> str:
        """Return all reasoning, a blank line between its blocks."""
        return one_string(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls, in the order in which the provider first mentioned them."""
        return sorted((part for part in self.parts if isinstance(part, ToolCall)), key=lambda call: call.index)

    @property
    def media(self) -> list[Media]:
        return [part for part in self.parts if isinstance(part, Media)]

    @property
    def asides(self) -> list[Aside]:
        return [part for part in self.parts if isinstance(part, Aside)]


@define
class Response:
    """A whole response, read to its end. ``clean`` is False for a stream that was cut or that reported an error."""

    dialect: str
    report: StreamReport = field(factory=StreamReport, eq=False)
    id: str | None = None
    model: str | None = None
    created: int | None = None
    vendor: str = ""  #: whose words ``extras`` are
    extras: Extras = field(factory=dict)  #: constant fields of the response that are the vendor's own
    choices: list[Choice] = field(factory=list)
    usage: UsageReported | None = None
    clean: bool = False
    error: ProviderFailed | None = None

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return self.choices[0].text if self.choices else ""

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of the first choice."""
        return self.choices[0].tool_calls if self.choices else []
