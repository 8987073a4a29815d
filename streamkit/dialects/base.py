"""The ``Dialect`` value: the framing, decoder, encoder, checker and HTTP surface of one dialect.

``streams/frame_decoder.py`` and ``streams/event_encoder.py`` hold the code that decoders and encoders share. The folder of
each dialect holds the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from streamkit.conversation.checks import PORTABLE_TOOLS, ToolRules
from streamkit.conversation.messages import Citation, Media, Request, Response, Tool, ToolsFound, WebSearched
from streamkit.dialects.http import HTTP, NO_HTTP
from streamkit.dialects.linting import PayloadChecker, Violation
from streamkit.dialects.profiles import Encoding, Prefill, Profile, Provider, Target
from streamkit.dialects.streams.encode_stage import ErrorWriter
from streamkit.dialects.vocabulary.document_places import Document
from streamkit.events import Aside, ErrorType, Event, ProviderFailed, ResponseStarted, WireEvent
from streamkit.framing.frame import Frame
from streamkit.framing.sse import SSEParser
from streamkit.limits import Limits
from streamkit.machines import Machine
from streamkit.report import StreamReport

if TYPE_CHECKING:  # at run time this would be a circular import
    from streamkit.dialects.bodies.responses import ResponseWriter
    from streamkit.dialects.linting import Hints
    from streamkit.dialects.lowering import TellsCapabilities
    from streamkit.dialects.members.fields import Fields, RequestReader
    from streamkit.dialects.quirks import Change
    from streamkit.dialects.streams.frame_decoder import FrameDecoder


class Encoder(ErrorWriter[list[Event]], Protocol):
    """Turns events into the bytes of a dialect."""

    def follow(self, start: ResponseStarted | None, last: Frame, begun: Collection[str], /) -> None:
        """Prepare to write after frames that were forwarded without this encoder, so that an error frame fits after them.

        ``begun`` contains the ids of those calls in the forwarded frames that the client would run (``FrameDecoder.begun``).
        """


class Linter(Protocol):
    """Checks a stream against the grammar of its dialect. Each dialect's linter is in the dialect's ``lint.py``."""

    @property
    def hints(self) -> Hints:
        """For each rule of this checker, the text that explains a violation. See ``linting.py``."""

    def feed(self, frames: list[Frame], /) -> list[Violation]:
        """Return the violations in these frames."""

    def finish(self) -> list[Violation]:
        """Return the violations that only the end of the stream shows."""


Decoder: TypeAlias = Machine[list[Frame], list[WireEvent]]


@frozen
class Bodies:
    """Functions that read and write a dialect's requests and whole responses, in the order in which an exchange calls them.

    See ``members/fields.py`` and ``lowering.py``.
    """

    decode_request: Callable[[Fields, StreamReport], Request]  #: Reads a request body. Raises BadRequest.
    #: Returns the request body as JSON values (argument text as ``orjson.Fragment``). Raises BadRequest for what it cannot
    #: express.
    encode_request: Callable[[Request, Target, StreamReport], dict[str, Any]]
    #: Returns the wire events of a whole response or error body: the events of a stream with the same content, including its
    #: terminator. Accepts as many defects as the stream decoder does. Raises StreamError if the body cannot be read.
    decode_response: Callable[[bytes, Limits, StreamReport], list[WireEvent]]
    #: None if the dialect always streams its responses; then its only whole bodies are errors.
    encode_response: Callable[[Response, Encoding, StreamReport], dict[str, Any]] | None = None
    #: What the dialect's servers accept. ``encode_request`` gets requests lowered to this. None: requests are not lowered.
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
        """Return the bodies of a dialect whose readers and writers are subclasses of the shared ones."""
        return cls(reader.decode_request, write, decoder.decode_response, response_writer.encode_response, capabilities)


#: The HTTP status of each type of error, for dialects that define no other (dialects.md §7.5, the table of error statuses).
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
    """How a dialect writes an error as an HTTP response, before any stream began. See ``streamkit/http_errors.py``."""

    #: The vendors whose errors use this dialect's error words and bodies. Their errors are written unchanged.
    vendors: frozenset[str]
    #: The dialect's words for types of errors. A word counts in any member of the error body.
    words: Mapping[str, ErrorType]
    #: Returns the failure in an error body, or None if the body has another envelope. The second argument is the headers,
    #: with names in lower case.
    decode: Callable[[dict[str, Any], Mapping[str, str]], ProviderFailed | None]
    #: Returns the body as JSON values, and the headers that this error needs.
    encode: Callable[[ProviderFailed, StreamReport], tuple[dict[str, Any], Mapping[str, str]]]
    statuses: Mapping[ErrorType, int] = STATUSES
    #: Whether clients show the body to the user as it is. If so, the body is only the message, as plain text.
    in_words: bool = False


@frozen(kw_only=True)
class CitationForm:
    """How a dialect cites web pages and documents. See ``streamkit/translation/citations.py``."""

    vendor: str
    #: The unit of a citation's position: characters of a block, characters of the whole text of a choice, or bytes of that
    #: text. A citation is written after its text. "none": a citation has no position.
    unit: Literal["block", "choice", "bytes", "none"]
    #: Returns asides that contain these citations. The integer is the index of the choice.
    write: Callable[..., list[Aside]]
    #: Returns the citations in an aside of this vendor, and the names of the aside's other members; both empty for an aside
    #: of another vendor. None: citations of this dialect have no position in a text, so no other dialect can use them.
    read: Callable[..., tuple[Sequence[Citation], Sequence[str]]] | None = None
    documents: bool = False  #: Whether the dialect also cites documents of the request.
    #: Returns the block of a message that is a document. None: documents are next to the messages, and citations name them by
    #: ids. ``write`` then takes ``id_of``, which finds the id at a place, and ``read`` takes ``place_of`` for the reverse.
    document_block: Callable[[Document], dict[str, Any]] | None = None
    at_end: bool = False  #: Whether all citations of a choice are written together, at its end.
    has_text: bool = False  #: Whether a citation repeats the text between its start and its end (``Citation.text``).
    has_quote: bool = False  #: Whether a citation has the text of the source that it cites (``Citation.quote``).


class SearchReader(Protocol):
    """Reads the web searches of one response from the asides of a dialect."""

    def take(self, aside: Aside, /) -> tuple[list[WebSearched], Aside | None]:
        """Return the searches that this aside completes, and the aside without them: None if nothing else is in the aside."""

    def finish(self) -> None:
        """Count as lost the searches that began and never ended."""


@frozen(kw_only=True)
class SearchForm:
    """How a dialect reports web searches that its provider ran. See ``streamkit/translation/citations.py``."""

    vendor: str
    #: None: in this dialect a search is an ordinary call that the provider ran.
    reader: Callable[[Limits, StreamReport], SearchReader] | None = None
    #: Returns the asides for one search. The integers are the search's number in the response and the index of the choice.
    #: None: the dialect has no form for a search.
    write: Callable[[WebSearched, int, int], list[Aside]] | None = None
    #: Whether clients accept a search in the response although their request did not offer a web search.
    unasked: bool = False


class ToolSearchReader(Protocol):
    """Reads the searches of tools of one response, or of a turn of a request, from the asides of a dialect."""

    def take(self, aside: Aside, /) -> tuple[list[ToolsFound], Aside | None]:
        """Return the searches that this aside completes, and the aside if it belongs to no search of tools."""

    def finish(self) -> None:
        """Count as lost the searches that began and never ended."""


@frozen(kw_only=True)
class ToolSearchForm:
    """How a dialect reports searches of deferred tools that its provider ran."""

    vendor: str
    reader: Callable[[Limits, StreamReport], ToolSearchReader]
    #: Returns the asides for one search. The integers are the search's number in the response and the index of the choice;
    #: the tools are those of the request.
    write: Callable[[ToolsFound, int, int, Sequence[Tool]], list[Aside]]


@frozen
class ModelPlace:
    """Where frames name the model: in the member ``model`` of the frame, or of the frame's object ``within``."""

    beside: str  #: this object always has this member; without it, the object is something else, such as an error
    within: str = ""


@frozen(kw_only=True, eq=False)
class Dialect:
    """The description of one dialect, which the recipes, the command line and the property tests use."""

    name: str
    title: str
    #: The media type of a stream. ``parser`` must read the framing of this type. The default means server-sent events.
    media_type: str = "text/event-stream"
    #: The bytes that end a frame. If the last frame of a stream lacks these bytes, they are added. None: a frame
    #: without its end cannot be repaired.
    frame_end: bytes | None = b"\n\n"
    parser: Callable[[Limits, StreamReport], FramingParser] = lambda limits, report: SSEParser(
        limits=limits, report=report, stray_errors=True
    )
    decoder: Callable[[Limits, StreamReport], Decoder]
    encoder: Callable[[Encoding, StreamReport], Encoder]
    #: Creates a checker of the dialect's rules. The default checker only checks that payloads are JSON objects.
    linter: Callable[[], Linter] = PayloadChecker
    #: The bytes to write while the provider is silent, in the form of a comment or of an event. The first entry is the
    #: default form. Empty: clients of the dialect accept neither form.
    keep_alive: Mapping[Literal["comment", "event"], bytes] = field(factory=dict)
    #: The bytes to write after an error frame if the stream already had output. After these bytes, the HTTP transfer is
    #: aborted: a client that ignores the error frame would interpret a normal end of the HTTP body as success. If the
    #: bytes are not empty, they begin an event that never ends. A client that does not notice the aborted transfer then
    #: fails at this event, and other clients drop the event. None: the HTTP body ends normally. This is for dialects in
    #: which every client reads the error frame, and some clients would report the aborted transfer instead of the
    #: error's message.
    failed_end: bytes | None = b""
    done_mark: bool = False  #: Whether ``[DONE]`` ends a stream.
    #: Returns whether an event may belong to this dialect. Takes the event's name and its payload. ``--from auto`` uses
    #: this function to guess the dialect of a stream. The default function never recognises a stream.
    recognises: Callable[[str, Any], bool] = lambda _event, _document: False
    #: Returns the bytes to append to a forwarded stream whose framing differs from the encoder's framing. Returns None
    #: if the framings are the same. Takes the parser of the forwarded bytes, the last of these bytes that is not white
    #: space, and the encoder's error frame (empty if the stream is complete).
    continued: Callable[[FramingParser, bytes, bytes], bytes | None] = lambda _parser, _last, _frame: None
    #: How to read and write requests and whole responses. None: streamkit reads and writes only streams of the dialect.
    bodies: Bodies | None = None
    errors: Errors | None = None  #: How to write the dialect's HTTP errors. None: streamkit cannot write these errors.
    #: How to send requests to the dialect's servers, and how to serve its clients. See ``streamkit/dialects/http.py``.
    http: HTTP = NO_HTTP
    #: How the dialect cites web pages. None: the dialect does not cite web pages.
    citations: CitationForm | None = None
    #: Returns whether a request must contain the bytes of the given media, because servers refuse a URL. The second
    #: argument is True for media in a tool's result, and False for media in a user message.
    wants_bytes: Callable[[Media, bool], bool] = lambda _media, _given: False
    #: Returns whether servers of this dialect can read media that are in a vendor's store and are given by a URL or an
    #: id. The second argument is the name of the dialect of the request that has the media.
    reads_stored: Callable[[Media, str], bool] = lambda _media, _dialect: False
    #: How a response reports web searches. None: the dialect does not report web searches.
    searches: SearchForm | None = None
    #: How a response reports searches of tools. None: the dialect does not report such searches.
    tool_searches: ToolSearchForm | None = None
    #: Returns the settings of a request that must be repeated in the response (``Profile.settings``).
    settings: Callable[[Request], Mapping[str, Any]] = lambda _request: {}
    #: The asides of a response that the next request must repeat. Each pair is the ``vendor`` and ``type`` of an aside.
    resent: Collection[tuple[str, str]] = ()
    #: Returns the headers that a request from another dialect needs, such as those for beta features.
    features: Callable[[Request], Mapping[str, str]] = lambda _request: {}
    #: Which parts of a tool's definition the dialect accepts. See ``streamkit/conversation/checks.py``.
    tools: ToolRules = PORTABLE_TOOLS
    #: The place in a stream where clients look for the model's name. None: clients do not need this name.
    model_place: ModelPlace | None = None
    #: Whether usage is sent in a separate chunk, and only to clients that asked for usage (``Profile.include_usage``).
    usage_on_request: bool = False
    #: The profile of a client that accepts call ids, in a dialect whose strict clients refuse call ids. None in most
    #: dialects.
    with_call_ids: Profile | None = None
    #: How a request asks servers to continue the assistant's last text. None: servers cannot do this, or only some
    #: servers can.
    prefill: Prefill | None = None
    #: The value of the OpenTelemetry attribute ``gen_ai.provider.name``, if no provider is named. Empty: the dialect's
    #: name.
    gen_ai_provider: str = ""
    #: The value of the OpenTelemetry attribute ``gen_ai.operation.name``: the kind of request.
    gen_ai_operation: str = "chat"
    #: How servers may break the dialect's rules. For each kind of repair, this mapping has a change that damages a
    #: correct stream so that streamkit must repair the stream. See ``streamkit/dialects/quirks.py``.
    quirks: Mapping[str, Change] = field(factory=dict)
    #: The known providers of the dialect. Users may write a provider's name instead of the dialect's name.
    providers: tuple[Provider, ...] = ()
    #: The known clients of the dialect. Users may write a client's name instead of the dialect's name.
    clients: tuple[Profile, ...] = ()

    @property
    def answers_whole(self) -> bool:
        """Whether a response may be a whole body. False: every response is a stream."""
        return self.bodies is not None and self.bodies.encode_response is not None


class FramingParser(Machine[bytes, list[Frame]], Protocol):
    """A parser that also reports the offset up to which all frames were complete."""

    @property
    def boundary(self) -> int: ...
