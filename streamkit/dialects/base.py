"""What a dialect is: a framing, a decoder, an encoder and a checker, named together in one value.

``streams/frame_decoder.py`` and ``streams/event_encoder.py`` hold what decoders and encoders share; a dialect's own
folder holds the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from streamkit.conversation.messages import Citation, Media, Request, Response, WebSearched
from streamkit.conversation.tool_definitions import PORTABLE_TOOLS, ToolRules
from streamkit.dialects.http import HTTP, NO_HTTP
from streamkit.dialects.linting.grammar import PayloadChecker, Violation
from streamkit.dialects.profiles import Encoding, Prefill, Profile, Provider, Target
from streamkit.dialects.streams.encode_stage import ErrorWriter
from streamkit.events import Aside, ErrorType, Event, ProviderFailed, ResponseStarted, WireEvent
from streamkit.framing.frame import Frame
from streamkit.framing.sse import SSEParser
from streamkit.limits import Limits
from streamkit.machines import Machine
from streamkit.report import StreamReport

if TYPE_CHECKING:  # a dialect's package imports them
    from streamkit.dialects.bodies.request_reader import RequestReader
    from streamkit.dialects.bodies.response_writer import ResponseWriter
    from streamkit.dialects.linting.explain import Hints
    from streamkit.dialects.lowering import TellsCapabilities
    from streamkit.dialects.members.fields import Fields
    from streamkit.dialects.quirks.changes import Change
    from streamkit.dialects.streams.frame_decoder import FrameDecoder


class Encoder(ErrorWriter[list[Event]], Protocol):
    """Events to a dialect's bytes."""

    def follow(self, start: ResponseStarted | None, last: Frame, begun: Collection[str], /) -> None:
        """Frames passed without this encoder; its error frame is to fit behind the last of them.

        ``begun``: the ids of the calls that they began, where clients would run them (``FrameDecoder.begun``).
        """


class Linter(Protocol):
    """Checks a stream against its dialect's grammar. See ``lint.py``."""

    @property
    def hints(self) -> Hints:
        """What each of its rules looks like when it is broken. See ``linting/explain.py``."""

    def feed(self, frames: list[Frame], /) -> list[Violation]:
        """The rules that these frames break."""

    def finish(self) -> list[Violation]:
        """The rules that only the end shows to be broken."""


Decoder: TypeAlias = Machine[list[Frame], list[WireEvent]]


@frozen
class Bodies:
    """How a dialect's requests and whole responses are read and written, in the order of one exchange's directions.

    See ``members/fields.py`` and ``lowering.py``.
    """

    #: Raises BadRequest.
    decode_request: Callable[[Fields, StreamReport], Request]
    #: A body as JSON values (``orjson.Fragment`` for argument text). Raises BadRequest for what the dialect can't say.
    encode_request: Callable[[Request, Target, StreamReport], dict[str, Any]]
    #: The wire events of a whole response or error body: those of a stream with the same facts, its terminator included. A
    #: provider can't be told, so it is as tolerant as the decoder of streams. Raises what broke the reading (StreamError).
    decode_response: Callable[[bytes, Limits, StreamReport], list[WireEvent]]
    #: None for a dialect whose answers are always streams, and whose bodies are errors.
    encode_response: Callable[[Response, Encoding, StreamReport], dict[str, Any]] | None = None
    #: What the servers take: ``encode_request`` gets requests lowered to that. None: it gets every request as it is.
    capabilities: TellsCapabilities | None = None

    @classmethod
    def of(
        cls,
        reader: type[RequestReader],
        write: Callable[[Request, Target, StreamReport], dict[str, Any]],
        decoder: type[FrameDecoder],
        response_writer: type[ResponseWriter],
        capabilities: TellsCapabilities,
    ) -> Bodies:
        """Those of a dialect whose readers and writers derive from the shared ones."""
        return cls(reader.decode_request, write, decoder.decode_response, response_writer.encode_response, capabilities)


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
    #: Whether clients show a body as it is: then it is the message alone, as text.
    in_words: bool = False


@frozen(kw_only=True)
class CitationForm:
    """How a dialect cites pages of the web, and documents. See ``streamkit/translation/citations.py``."""

    vendor: str
    #: What places are counted in: characters of a block, characters of a choice's whole text, or its bytes, all at the end;
    #: or nothing, where a citation has no place.
    unit: Literal["block", "choice", "bytes", "none"]
    #: Asides that say them, of that choice.
    write: Callable[[Sequence[Citation], int], list[Aside]]
    #: The citations that an aside of this vendor says, and the names of what else it says; none for another kind of aside.
    #: None: what this dialect cites has no place in a text, which others want to know.
    read: Callable[[Aside], tuple[Sequence[Citation], Sequence[str]]] | None = None
    #: Whether it cites documents of the request, too.
    documents: bool = False


class SearchReader(Protocol):
    """Reads the searches of one response from the asides of a dialect."""

    def take(self, aside: Aside, /) -> tuple[list[WebSearched], Aside | None]:
        """The searches that are over, and what is left of the aside; None where it was about a search."""

    def finish(self) -> None:
        """Count what has no end."""


@frozen(kw_only=True)
class SearchForm:
    """How a dialect tells of searches of the web that its provider ran. See ``streamkit/translation/web_searches.py``."""

    vendor: str
    #: None: the dialect's searches are calls like any other that a provider ran.
    reader: Callable[[Limits, StreamReport], SearchReader] | None = None
    #: Asides that tell one, by its number among all, of that choice. None: it has no place of its own.
    write: Callable[[WebSearched, int, int], list[Aside]] | None = None
    #: Whether its clients read them though their request offers none.
    unasked: bool = False


@frozen
class ModelPlace:
    """Where a dialect's frames name the model: member ``model`` of the frame, or of its object ``within``."""

    beside: str  #: a member that such an object always has: without it, it is of another kind (an error)
    within: str = ""


@frozen(kw_only=True, eq=False)
class Dialect:
    """One wire vocabulary: all that the recipes, the command line and the property tests need to know of it."""

    name: str
    title: str
    #: The media type and the framing of a stream: server-sent events, unless it says otherwise.
    media_type: str = "text/event-stream"
    #: What ends a frame: added to a last one that lacks it. None: such a one can't be mended.
    frame_end: bytes | None = b"\n\n"
    parser: Callable[[Limits, StreamReport], FramingParser] = lambda limits, report: SSEParser(
        limits=limits, report=report, stray_errors=True
    )
    decoder: Callable[[Limits, StreamReport], Decoder]
    encoder: Callable[[Encoding, StreamReport], Encoder]
    #: Its grammar; one that is not given judges no more than that payloads are JSON objects.
    linter: Callable[[], Linter] = PayloadChecker
    #: What is written while the provider is silent, as a comment and as an event; the first is the dialect's own form.
    #: Empty: no client of the dialect would read any.
    keep_alive: Mapping[Literal["comment", "event"], bytes] = field(factory=dict)
    #: The bytes after the error frame of a stream that had output, instead of the end of its HTTP body: clients that ignore
    #: the frame would take a body that ends for success. Bytes are the beginning of an event, for clients that do not notice
    #: a broken transfer either; other readers drop it. None: the body ends as any other, since every client knows the frame,
    #: and some would show the broken transfer instead of the message.
    failed_end: bytes | None = b""
    #: Whether the mark ``[DONE]`` ends its streams.
    done_mark: bool = False
    #: Whether a payload, with the name of its event, can be this dialect's: for ``auto``. Not given: it is never guessed.
    recognises: Callable[[str, Any], bool] = lambda _event, _document: False
    #: For a dialect with another framing than its encoder's: what stands behind bytes that passed in it and end with that
    #: byte, blanks aside, for an encoder's error frame, or for none where the stream is whole. None: as in the encoder's own.
    continued: Callable[[FramingParser, bytes, bytes], bytes | None] = lambda _parser, _last, _frame: None
    #: None for a dialect that only streams.
    bodies: Bodies | None = None
    #: None for a dialect whose errors over HTTP nobody here writes.
    errors: Errors | None = None
    #: How its servers are asked and its clients served. See ``http.py``.
    http: HTTP = NO_HTTP
    #: None for a dialect that cites no pages of the web.
    citations: CitationForm | None = None
    #: Whether media, in what the user says (False) or a tool gave (True), must stand in a request itself: a URL is not taken.
    wants_bytes: Callable[[Media, bool], bool] = lambda _media, _given: False
    #: Whether media in a vendor's store (an address or an id) can be read here; takes the media and their dialect.
    reads_stored: Callable[[Media, str], bool] = lambda _media, _dialect: False
    #: None for a dialect that tells of no searches of the web.
    searches: SearchForm | None = None
    #: What of a request its answers say again, for ``Profile.settings``.
    settings: Callable[[Request], Mapping[str, Any]] = lambda _request: {}
    #: Of the asides about a response, those that the next request is to say again: their vendor and type.
    resent: Collection[tuple[str, str]] = ()
    #: The headers that a request needs which a client of another dialect sent: its features that are no part of the API yet.
    features: Callable[[Request], Mapping[str, str]] = lambda _request: {}
    #: What it takes of a tool's definition. See ``conversation/tool_definitions.py``.
    tools: ToolRules = PORTABLE_TOOLS
    #: Where its clients look for the model's name. None: its streams need not name it.
    model_place: ModelPlace | None = None
    #: Whether a chunk of nothing but usage is for those that asked for one (``Profile.include_usage``).
    usage_on_request: bool = False
    #: The client for whom calls get their ids, in a dialect whose strict readers refuse them.
    with_call_ids: Profile | None = None
    #: How its servers are asked to go on with a text; None: they can't be, or not all of them can.
    prefill: Prefill | None = None
    #: What OpenTelemetry calls who speaks it, where no provider is named (``gen_ai.provider.name``); empty: its name. And what
    #: it calls asking for an answer (``gen_ai.operation.name``).
    gen_ai_provider: str = ""
    gen_ai_operation: str = "chat"
    #: What its servers may do otherwise: by kind of repair, a change of a conforming stream that needs it. See
    #: ``quirks/changes.py``.
    quirks: Mapping[str, Change] = field(factory=dict)
    #: Providers and clients that are known by name, and may be named where the dialect may.
    providers: tuple[Provider, ...] = ()
    clients: tuple[Profile, ...] = ()

    @property
    def answers_whole(self) -> bool:
        """Whether an answer may be a whole body; if not, it is always a stream."""
        return self.bodies is not None and self.bodies.encode_response is not None


class FramingParser(Machine[bytes, list[Frame]], Protocol):
    """A parser that also knows up to which byte everything was whole."""

    @property
    def boundary(self) -> int: ...
