"""What a dialect is: a framing, a decoder, an encoder and a checker, named together in one value.

``decoding.py`` and ``encoding.py`` hold what decoders and encoders share; a dialect's own folder holds the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from attrs import field, fields, frozen

from streamkit.dialects.explain import Looks
from streamkit.dialects.reading import Fields
from streamkit.events import Aside, ErrorType, Event, ProviderFailed, ResponseStarted, WireEvent
from streamkit.framing.frame import Frame
from streamkit.identifiers import random_id
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.messages import Citation, Media, Request, Response, WebSearched
from streamkit.pipeline import Machine
from streamkit.policy import AssistantFirst, KeepAliveForm, Policy
from streamkit.report import StreamReport
from streamkit.tool_definitions import PORTABLE_TOOLS, ToolRules

A_contra = TypeVar("A_contra", contravariant=True)


@frozen(kw_only=True)
class Profile:
    """What an encoder writes for one client, as data. Where a client needs nothing of its own it is all defaults."""

    name: str = "default"
    title: str = ""  #: who the client is, for the list
    #: openai-chat: the delta's fields that carry reasoning; some clients read ``reasoning``, most ``reasoning_content``.
    reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    #: openai-chat: whether signed and encrypted reasoning is written as OpenRouter's ``reasoning_details``.
    reasoning_details: bool = True
    #: openai-chat: whether the usage is written. Serve it to clients that asked for it (``stream_options.include_usage``): its
    #: chunk has no choices, and programs that never asked for one read the first of them.
    include_usage: bool = True
    #: openai-chat: whether the usage stands in the last chunk that has choices, as Mistral writes it, not in one of its own.
    usage_with_stop: bool = False
    #: ollama: whether an ``id`` stands beside ``function``; strict readers (Zed, late 2025) refuse it.
    call_ids: bool = False
    #: What this client asked for: said where the provider names no model, since clients' types demand one.
    model: str = ""
    #: openai-responses: what this client's request set, which its answers say again (``Dialect.settings``).
    settings: Mapping[str, Any] = field(factory=dict)
    #: What it is sent while the provider is silent, where a policy does not say otherwise.
    keep_alive: KeepAliveForm = "dialect"

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the defaults, whatever was asked for."""
        names = [field.name for field in fields(Profile) if field.name not in {"name", "title", "model", "settings"}]
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(DEFAULT_PROFILE, name)}


@frozen(kw_only=True)
class Provider:
    """What is known of one provider of a dialect, as data.

    Decoding never needs it: every habit is read from whoever has it, and a report only says which repairs are no surprise. A
    request is written as its provider wants it.
    """

    name: str
    title: str
    #: Repairs that this provider is known to need, and how they come about.
    habits: Mapping[str, str] = field(factory=dict)
    #: What it sends beside the dialect's own fields: a field, and what it is. Carried within the dialect.
    adds: Mapping[str, str] = field(factory=dict)
    #: openai-chat: the request's field for the most tokens of an answer.
    max_tokens_field: str = "max_tokens"
    #: openai-chat: the request's field for how much to think: ``reasoning_effort``, or OpenRouter's object ``reasoning``.
    thinking_field: str = "reasoning_effort"
    #: openai-chat: the field of a message in which it takes reasoning back; empty: it does not.
    reasoning_history: str = ""
    #: openai-chat: whether that field must stand, empty at least, in each message that calls tools.
    reasoning_history_needed: bool = False
    #: openai-chat: the vendor of the signatures that it takes back in ``extra_content``.
    signatures: str = ""
    #: openai-chat: how a part says that the prompt up to it is to be kept: OpenAI's ``prompt_cache_breakpoint``, Anthropic's
    #: ``cache_control``; empty: not at all.
    cache_marks: Literal["", "openai", "anthropic"] = ""
    #: openai-chat: whether content is text alone, as one string: it refuses a list of parts.
    text_only: bool = False
    #: Whether its models' thinking stands in the text between tags (``<think>…</think>``): see ``Policy.think_tags``.
    thinks_in_text: bool = False
    #: anthropic: the version of the API, the newest by default; older ones take a temperature (dialects.md §3.0).
    api_version: str = "2026-10-21"


DEFAULT_PROFILE = Profile()


def under(policy: Policy, report: StreamReport | None, provider: Provider | None) -> StreamReport:
    """The report of what is read under ``policy`` and comes from ``provider``."""
    report = report if report is not None else StreamReport()
    report.habits = provider.habits if provider is not None else {}
    report.refuse_repairs = policy.refuse_repairs
    return report


@frozen(kw_only=True)
class Encoding:
    """What an encoder is made with: everything but the events."""

    limits: Limits = DEFAULT_LIMITS
    profile: Profile = DEFAULT_PROFILE
    #: Makes ids for what came without one; a fixed maker gives reproducible output.
    make_id: Callable[[str], str] = random_id
    #: Seconds since the epoch, for a response that came without a time.
    clock: Callable[[], float] = time.time


class ErrorWriter(Machine[A_contra, bytes], Protocol[A_contra]):
    """A machine whose output can say that the reading failed: an encoder."""

    @property
    def ended(self) -> bool:
        """Whether the terminator, or an error frame, was written."""

    def fail(self, error: Exception) -> bytes:
        """What is held, then the dialect's own error frame and no success terminator."""


class Encoder(ErrorWriter[list[Event]], Protocol):
    """Events to a dialect's bytes."""

    def follow(self, start: ResponseStarted | None, last: Frame, /) -> None:
        """Frames passed without this encoder; its error frame is to fit behind the last of them."""


class Linter(Protocol):
    """Checks a stream against its dialect's grammar. See ``lint.py``."""

    @property
    def looks(self) -> Looks:
        """What each of its rules looks like when it is broken. See ``explain.py``."""

    def feed(self, frames: list[Frame], /) -> list[Violation]:
        """The rules that these frames break."""

    def finish(self) -> list[Violation]:
        """The rules that only the end shows to be broken."""


@frozen
class Violation:
    """A rule of the dialect that a stream breaks."""

    rule: str  #: short name, stable
    message: str
    offset: int  #: byte of the stream where the frame begins
    frame: int  #: number of the frame, from 0
    #: ``note``: common and read by every client we know; no reason to call the stream broken.
    severity: str = "error"


Decoder: TypeAlias = Machine[list[Frame], list[WireEvent]]
DEFAULT_MAX_TOKENS = 4096


@frozen(kw_only=True)
class Target:
    """What a request is written for: everything but the conversation."""

    #: The provider, where it is known by name: what it wants beside its dialect.
    provider: Provider | None = None
    #: Written where a dialect demands a bound and the request has none.
    max_tokens: int = DEFAULT_MAX_TOKENS
    #: Imitate what a dialect lacks (a required tool in Ollama) where that is possible, and count it, instead of refusing.
    emulate: bool = False
    #: A history that begins with the assistant, for a dialect that refuses one.
    assistant_first: AssistantFirst = "bridge"


@frozen(kw_only=True)
class Bodies:
    """How a dialect's requests and whole responses are read and written. See ``reading.py`` and ``writing.py``."""

    #: Raises BadRequest.
    decode_request: Callable[[Fields, StreamReport], Request]
    #: A body as JSON values (``orjson.Fragment`` for argument text). Raises BadRequest for what the dialect can't say.
    encode_request: Callable[[Request, Target, StreamReport], dict[str, Any]]
    #: The wire events of a whole response or error body: those of a stream with the same facts, its terminator included. A
    #: provider can't be told, so it is as tolerant as the decoder of streams. Raises what broke the reading (StreamError).
    decode_response: Callable[[bytes, Limits, StreamReport], list[WireEvent]]
    encode_response: Callable[[Response, Encoding, StreamReport], dict[str, Any]]


#: The HTTP status of each kind of error, where a dialect has no other (dialects.md §7.5).
STATUSES: Mapping[ErrorType, int] = {
    "invalid_request": 400,
    "auth": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "too_large": 413,
    "rate_limit": 429,
    "server": 500,
    "truncated": 502,
    "unavailable": 503,
    "timeout": 504,
}


@frozen(kw_only=True)
class Errors:
    """How a dialect says an error over HTTP, where no stream has begun. See ``streamkit/http_errors.py``."""

    #: Whose errors have this dialect's own words and bodies, which are then written as they came.
    vendors: frozenset[str]
    #: Its words for kinds of errors, in whichever member they stand.
    words: Mapping[str, ErrorType]
    #: The failure that a body says; None for a body in another envelope. Takes the headers too, by names in lower case.
    decode: Callable[[dict[str, Any], Mapping[str, str]], ProviderFailed | None]
    #: The body as JSON values, and headers of its own.
    encode: Callable[[ProviderFailed, StreamReport], tuple[dict[str, Any], Mapping[str, str]]]
    statuses: Mapping[ErrorType, int] = STATUSES


@frozen(kw_only=True)
class CitationForm:
    """How a dialect cites pages of the web. See ``streamkit/citing.py``."""

    vendor: str
    #: What places are counted in: characters of a block, characters of a choice's whole text, or its bytes, all at the end.
    unit: Literal["block", "choice", "bytes"]
    #: The citations that an aside of this vendor says, and the names of what else it says; none for another kind of aside.
    read: Callable[[Aside], tuple[Sequence[Citation], Sequence[str]]]
    #: Asides that say them, of that choice.
    write: Callable[[Sequence[Citation], int], list[Aside]]


class SearchReader(Protocol):
    """Reads the searches of one response from the asides of a dialect."""

    def take(self, aside: Aside, /) -> tuple[list[WebSearched], Aside | None]:
        """The searches that are over, and what is left of the aside; None where it was about a search."""

    def finish(self) -> None:
        """Count what has no end."""


@frozen(kw_only=True)
class SearchForm:
    """How a dialect tells of searches of the web that its provider ran. See ``streamkit/searches.py``."""

    vendor: str
    reader: Callable[[Limits, StreamReport], SearchReader]
    #: Asides that tell one, by its number among all, of that choice. None: it has no place of its own.
    write: Callable[[WebSearched, int, int], list[Aside]] | None = None


@frozen
class ModelPlace:
    """Where a dialect's frames name the model: member ``model`` of the frame, or of its object ``within``."""

    beside: str  #: a member that such an object always has: without it, it is of another kind (an error)
    within: str = ""


@frozen(kw_only=True)
class Dialect:
    """One wire vocabulary: all that the recipes, the command line and the property tests need to know of it."""

    name: str
    title: str
    media_type: str
    #: What ends a frame: added to a last one that lacks it. None: such a one can't be mended.
    frame_end: bytes | None
    parser: Callable[[Limits, StreamReport], FramingParser]
    decoder: Callable[[Limits, StreamReport], Decoder]
    encoder: Callable[[Encoding, StreamReport], Encoder]
    linter: Callable[[], Linter]
    #: What is written while the provider is silent, as a comment and as an event; the first is the dialect's own form.
    #: Empty: no client of the dialect would read any.
    keep_alive: Mapping[Literal["comment", "event"], bytes]
    #: A cheap look: whether a frame may be the stream's terminator.
    terminates: Callable[[Frame], bool]
    #: Whether a decoded payload can be this dialect's: for ``auto`` and for a clear refusal.
    recognises: Callable[[str, Any], bool]
    #: For a dialect with another framing than its encoder's: what stands behind bytes that passed in it and end with that
    #: byte, blanks aside, for an encoder's error frame, or for none where the stream is whole. None: as in the encoder's own.
    continued: Callable[[FramingParser, bytes, bytes], bytes | None] = lambda _parser, _last, _frame: None
    #: None for a dialect that only streams.
    bodies: Bodies | None = None
    #: None for a dialect whose errors over HTTP nobody here writes.
    errors: Errors | None = None
    #: None for a dialect that cites no pages of the web.
    citations: CitationForm | None = None
    #: Whether media, in what the user says (False) or a tool gave (True), must stand in a request itself: a URL is not taken.
    wants_bytes: Callable[[Media, bool], bool] = lambda _media, _given: False
    #: None for a dialect that tells of no searches of the web.
    searches: SearchForm | None = None
    #: What of a request its answers say again, for ``Profile.settings``.
    settings: Callable[[Request], Mapping[str, Any]] = lambda _request: {}
    #: The headers that a request needs which a client of another dialect sent: its features that are no part of the API yet.
    features: Callable[[Request], Mapping[str, str]] = lambda _request: {}
    #: What it takes of a tool's definition. See ``tool_definitions.py``.
    tools: ToolRules = PORTABLE_TOOLS
    #: Where its clients look for the model's name. None: its streams need not name it.
    model_place: ModelPlace | None = None
    #: Whether a chunk of nothing but usage is for those that asked for one (``Profile.include_usage``).
    usage_on_request: bool = False
    #: Providers and clients that are known by name, and may be named where the dialect may.
    providers: tuple[Provider, ...] = ()
    clients: tuple[Profile, ...] = ()


class FramingParser(Machine[bytes, list[Frame]], Protocol):
    """A parser that also knows up to which byte everything was whole."""

    @property
    def boundary(self) -> int: ...
