"""The neutral conversation: requests and whole responses, in terms that every dialect can express.

A turn of a request or a response is a list of parts in order. Data that only one dialect knows is kept: a field in ``extras``,
a whole part as an ``Aside``. It is written again for the same dialect, and counted as lost in others. Arguments are text as
received, never a parsed value.

Source: dialects.md §0.2, §7.3, §7.4; design.md §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

from attrs import define, field, fields, frozen

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
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.text.one_string import one_string
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import NAME_CHARS, check_arguments, fault_of, parse_arguments

Extras: TypeAlias = Mapping[str, Any]
DefinitionKind: TypeAlias = ToolKind | Literal["server"]  #: who runs it: the client, or the provider (``server``)
CacheMark: TypeAlias = Literal["short", "long"]  #: minutes, or hours, in the provider's cache (dialects.md §8.12)


# -- parts -------------------------------------------------------------------------------------------------------------


@define
class Text:
    """A text in a turn, with data that a provider attached to the text."""

    text: str
    signature: Opaque | None = None  #: the provider's signature of this text (Gemini)
    cache: CacheMark | None = None
    extras: Extras | None = None
    block: int = field(default=0, eq=False)  #: the ``block`` label of the text's events, if the text was streamed
    #: The whole item as received, if the dialect has a special form for this text, such as a compaction or a document
    #: to cite.
    item: Extras | None = field(default=None, eq=False, kw_only=True)


@define
class Refusal:
    """The model's text refusing to answer."""

    text: str
    extras: Extras | None = None
    block: int = field(default=0, eq=False)


@define
class Reasoning:
    """Visible reasoning. ``text`` is empty if only a signature was received."""

    text: str
    kind: Literal["raw", "summary"] = "raw"
    signature: Opaque | None = None
    extras: Extras | None = None
    block: int = field(default=0, eq=False)


@define
class RedactedReasoning:
    """Reasoning that only its vendor can read."""

    opaque: Opaque
    extras: Extras | None = None
    block: int = field(default=0, eq=False)


@define
class Media:
    """An image, audio, video or file: as base64 text, at a URL, or by the provider's file id."""

    kind: MediaKind
    media_type: str | None = None  #: ``image/png``; None if not stated
    data: str | None = None  #: base64, without ``data:``
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    detail: str | None = None  #: resolution at which the model reads an image: low, high, auto, original
    place: str = field(default="", eq=False, kw_only=True)  #: path in the decoded request: ``messages[3].content[0]``
    cache: CacheMark | None = None
    extras: Extras | None = None
    block: int = field(default=0, eq=False, kw_only=True)  #: the ``block`` label of its event, if it was streamed
    #: The whole part as received, if a model made the media or few servers know the part's form. The same dialect writes this
    #: part again.
    native: Aside | None = field(default=None, eq=False, kw_only=True)


@define
class ToolCall:
    """A tool call. ``arguments`` is the argument text as received. ``parsed()`` returns the arguments as a dict, and
    raises ValueError if the verdict is bad.

    Run a call only if the response is clean (``Response.clean``) and the verdict is good (``verdict.ok``).
    """

    index: int
    id: str
    name: str
    arguments: str
    kind: ToolKind = "function"
    verdict: Verdict | None = None
    #: The path of the call in the request that was decoded: ``messages[3]``.
    place: str = field(default="", eq=False, kw_only=True)
    ended: bool = True  #: True if the stream reported the end of the call, so that the argument text is complete
    id_made: bool = field(default=False, eq=False)  #: True if the wire had no id and streamkit made this id
    signature: Opaque | None = None
    cache: CacheMark | None = None
    extras: Extras | None = None
    #: The whole item as received, if the dialect has a special form for this call (``local_shell_call``).
    item: Extras | None = field(default=None, eq=False, kw_only=True)
    qualified: QualifiedName | None = None  #: the name that the client uses for the tool, if the tool is in a namespace

    def parsed(self, *, depth: int = DEFAULT_LIMITS.json_depth) -> dict[str, Any]:
        """Return the arguments as a dict, which is empty if there are none, with the numbers of ``parse_arguments``.

        Raise ValueError if the verdict is bad, if there is no verdict and the text is no JSON object, and for a custom
        tool, whose arguments are free text. ``depth`` must be the ``json_depth`` of the ``Limits`` that the check used.
        """
        tool = quoted(self.name, NAME_CHARS)
        if self.kind == "custom":
            raise ValueError(f"the arguments of {tool} are free text: use arguments instead of parsed()")
        verdict = self.verdict or check_arguments(self.arguments, depth=depth)
        if not verdict.ok:
            fault = fault_of(verdict, self.arguments)
            raise ValueError(
                f"{tool} can't be run: {fault}; look at verdict.ok first, and send error_result(call) if it is False"
            )
        return parse_arguments(self.arguments, depth=depth)


@define
class ToolResult:
    """The result of the tool call with the id ``call_id``."""

    call_id: str
    parts: list[Text | Media | Aside] = field(factory=list)
    name: str | None = None  #: the tool's name, if results have a name in the dialect
    is_error: bool = False
    kind: ToolKind = "function"
    cache: CacheMark | None = None
    extras: Extras | None = None
    #: The whole item as received, if the dialect has a special form for this result.
    item: Extras | None = field(default=None, eq=False, kw_only=True)
    #: The name of the member that had the text (``output``), if the result was an object with a single member.
    native: str | None = field(default=None, eq=False)
    #: The path of the result in the request that was decoded: ``messages[3]``.
    place: str = field(default="", eq=False, kw_only=True)
    native_id: str | None = field(default=None, eq=False, kw_only=True)  #: the id that the client gave to the message

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@define
class WebSearched:
    """A web search that the provider ran: the query, and the pages found, as pairs of URL and title."""

    query: str
    pages: list[tuple[str, str]] = field(factory=list)
    failed: bool = False


@define
class ToolsFound:
    """A search of deferred tools that the provider ran: the query, and the names of the tools found."""

    query: str
    names: list[str] = field(factory=list)
    failed: bool = False


@define
class DocumentPlace:
    """A place in a document, or in a search result, of the request. ``kind`` is the unit of ``start`` and ``end``."""

    kind: Literal["char", "page", "block", "search"]
    index: int
    start: int | None = None
    end: int | None = None
    source: str | None = None  #: the source of a search result


@define
class Citation:
    """A web page or a document that a text cites. ``start`` and ``end`` are offsets in the text, or None for all of it."""

    url: str
    title: str | None = None
    quote: str | None = None  #: the text of the page or document
    start: int | None = None
    end: int | None = None
    block: int = 0
    document: DocumentPlace | None = None  #: set for a document, whose ``url`` is empty
    text: str | None = None  #: the model's text between ``start`` and ``end``, for a dialect that repeats it


Part: TypeAlias = Text | Refusal | Reasoning | RedactedReasoning | Media | ToolCall | ToolResult | Aside


# -- requests ----------------------------------------------------------------------------------------------------------


@define
class Turn:
    """One message. Tool results are always parts of a user's turn, even if the dialect has them in separate
    messages.
    """

    role: Literal["system", "user", "assistant"]
    parts: list[Part] = field(factory=list)
    name: str | None = None  #: the participant's name, in dialects that have such a name
    #: The dialect's word for the role, if the dialect has two words for this role (``developer``).
    native_role: str | None = None
    extras: Extras | None = None
    #: The name of the field that had the reasoning, if the dialect has several such fields (``reasoning_details``).
    native_reasoning: str | None = field(default=None, eq=False)
    #: The ids that the client gave to the messages of this turn.
    native_ids: tuple[str, ...] = field(default=(), eq=False)


@define
class Namespace:
    """A group of tools, such as those of an MCP server. Only OpenAI Responses has namespaces; here tools are one flat list."""

    name: str
    description: str | None = None
    extras: Extras | None = None


@define
class WebSearch:
    """The options of a web search that the provider runs."""

    max_uses: int | None = None
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    location: Mapping[str, str] | None = None  #: approximate location of the user: city, region, country, timezone
    context: str | None = None  #: how much of the results the model reads: low, medium, high
    stored_only: bool = False  #: search only what the provider has stored
    extras: Extras | None = None


@frozen
class CallForm:
    """The item that a call of a tool is in the client's dialect, if it is not a function call."""

    item: Extras  #: the members that every such item has
    prefix: str  #: of the item's id
    member: str  #: the member of the item that has the arguments
    events: tuple[
        Aside, ...
    ]  #: the events of a stream with the item; ``raw`` has the members that the item has in them
    own: frozenset[str] = frozenset()  #: arguments that are members of the item itself
    defaults: Extras = field(factory=dict)  #: arguments that the item needs and a call may leave out


@define
class Tool:
    """A tool's definition. ``parameters`` is the JSON schema as received, or None.

    ``name`` is unique in the request: the name of a tool in a namespace has the namespace as a prefix.
    """

    name: str
    description: str | None = None
    parameters: Any = None
    strict: bool | None = None
    kind: DefinitionKind = "function"
    #: The format of a custom tool's input: ``{"type": "text"}`` or ``{"type": "grammar", "syntax": …, "definition":
    #: …}``.
    format: Extras | None = None
    cache: CacheMark | None = None
    extras: Extras | None = None
    #: The whole definition as received, if the provider runs the tool (kind ``server``), or if the tool is not defined
    #: as a function.
    raw: Extras | None = None
    #: The form in which the client expects calls of this tool, if not as function calls.
    called: CallForm | None = field(default=None, eq=False)
    #: The options of the search, if the tool is a web search. The options were read from ``raw``.
    search: WebSearch | None = field(default=None, eq=False)
    namespace: Namespace | None = None  #: the namespace of the tool
    qualified: QualifiedName | None = None  #: the name that the client uses for the tool within the namespace
    #: True if an item of the conversation defined the tool. A request of the same dialect repeats this item instead of
    #: the definition.
    loaded: bool = False
    deferred: bool = False  #: True if the model sees the definition only after a search of tools has found the tool
    finds_tools: bool = field(default=False, eq=False)  #: True if this tool is the provider's search of deferred tools
    #: The schema as received, if the schema is in a dialect's own form instead of JSON schema (Gemini's
    #: ``parameters``).
    native_parameters: Extras | None = field(default=None, eq=False)
    #: True if an item of the conversation withdrew the tool. Only a request of the same dialect still has the tool.
    withdrawn: bool = False


@define
class ToolChoice:
    """``required`` means at least one call. ``names`` limits the tools; ``required`` with one name means that tool."""

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] = ()
    parallel: bool | None = None
    extras: Extras | None = None
    #: The whole value as received, if it names other tools than functions: in a namespace, or run by the provider.
    native: Extras | None = field(default=None, eq=False)


@define
class OutputFormat:
    """The form that the response must have: text, JSON, or JSON that matches a schema."""

    kind: Literal["text", "json", "schema"]
    schema: Any = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    #: The schema as received, if the schema is in a dialect's own form instead of JSON schema (Gemini's
    #: ``responseSchema``).
    native_schema: Extras | None = field(default=None, eq=False)
    #: For the kind ``json``: whether the text must be a JSON object (``object``) or may be any JSON value (``any``, in
    #: Google's dialects). For the kind ``schema``, the schema decides this.
    root: Literal["object", "any"] = field(default="object", eq=False)


@define
class Thinking:
    """How much the model should reason before it answers."""

    effort: str | None = None  #: none, minimal, low, medium, high, xhigh, max
    budget_tokens: int | None = None
    enabled: bool | None = None
    summary: str | None = None  #: how the provider shows reasoning, if at all: none, auto, concise, detailed
    native: str | None = field(default=None, eq=False)  #: the dialect's field for this, if it has two (``reasoning``)


@define
class Compaction:
    """Asks the provider to replace the conversation so far by a summary (Anthropic, Responses)."""

    #: True: the request asks only for the summary. False: the provider summarises when the conversation is long.
    now: bool = False
    threshold: int | None = None  #: number of input tokens that counts as long
    pause: bool | None = None  #: whether the response ends after the summary
    instructions: str | None = None  #: how to summarise
    #: The members as received; for Responses also the item at the end of the input (``input``).
    native: Extras | None = field(default=None, eq=False)


@define
class Options:
    """The options of a request. None: not given."""

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
    native_max_tokens: str | None = field(default=None, eq=False)  #: the dialect's field, if it has two


@frozen
class Unreadable:
    """A part of a request that only one provider can read: a reference to the provider's store, or a text that the
    provider encrypted.
    """

    what: str  #: a description of the part, with an article: ``a container by its id``
    instead: str  #: what the client can send instead: ``send its files in the messages``
    path: str = ""  #: the path of the part in the request: ``tools[1].container``
    reader: str = ""  #: the dialect whose providers can read the part
    #: True if the part refers to earlier messages that are not in the request. A server that does not store
    #: conversations can't read such a part.
    of_conversation: bool = False


@define
class Request:
    """A request to a model. ``stream`` and ``model`` are None in dialects that have these values in the URL."""

    dialect: str
    model: str | None = None
    turns: list[Turn] = field(factory=list)
    tools: list[Tool] = field(factory=list)
    tool_choice: ToolChoice | None = None
    options: Options = field(factory=Options)
    stream: bool | None = None
    stream_usage: bool | None = None  #: whether the stream should end with token counts
    extras: dict[str, Any] = field(factory=dict)  #: fields that only the request's dialect knows
    #: Metadata of the request, which the model never sees. A dialect with such metadata repeats the metadata in the
    #: response.
    exchange: dict[str, Any] = field(factory=dict, eq=False)
    #: Parts that only one provider can read. Media that are given by an id are not in this list: see ``Media.file_id``.
    unreadable: list[Unreadable] = field(factory=list)
    #: Options that an item of the conversation changed, such as a ``configuration_update`` of OpenAI Responses. In a
    #: request of another dialect, these values replace the values in ``options``. In a request of the same dialect, the
    #: item is repeated.
    updates: dict[str, Any] = field(factory=dict)

    def copy(self) -> Request:
        """Return a shallow copy, in a tenth of the time of ``attrs.evolve``."""
        return Request(*_MEMBERS(self))


_MEMBERS: Final = attrgetter(*(member.name for member in fields(Request)))


# -- responses ---------------------------------------------------------------------------------------------------------


@define
class Choice:
    """The model's output in one choice: its parts in the order in which they began."""

    index: int = 0
    role: str = "assistant"
    parts: list[Part] = field(factory=list)
    stop_reason: StopReason | None = None  #: None if the response is not complete
    native_stop_reason: str | None = None
    stop_sequence: str | None = None
    verdict: Verdict | None = None  #: the verdict on ``text``, if the request asked for JSON (``ReadOptions.output``)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def refusal(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Refusal))

    @property
    def reasoning(self) -> str:
        """All reasoning, with a blank line between blocks."""
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
    """A whole response. ``clean`` is False if the stream was interrupted or reported an error.

    ``text``, ``reasoning`` and ``tool_calls`` are those of the first choice. They are empty if there is no choice.
    """

    dialect: str
    report: StreamReport = field(factory=StreamReport, eq=False)
    id: str | None = None
    model: str | None = None
    created: int | None = None
    vendor: str = ""  #: the vendor that defines the fields in ``extras``
    extras: Extras = field(factory=dict)  #: vendor-specific fields that are constant during the response
    choices: list[Choice] = field(factory=list)
    usage: UsageReported | None = None
    clean: bool = False
    error: ProviderFailed | None = None

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return self.choices[0].text if self.choices else ""

    @property
    def reasoning(self) -> str:
        """The visible reasoning of the first choice, with a blank line between blocks."""
        return self.choices[0].reasoning if self.choices else ""

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of the first choice."""
        return self.choices[0].tool_calls if self.choices else []
