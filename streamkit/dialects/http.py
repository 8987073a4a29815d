"""The HTTP half of a dialect, as values: how its servers are asked, and where and how its clients ask.

``web`` and ``gateway`` know no dialect: what differs stands in ``dialects/<name>/http.py`` and is read from ``Dialect.http``.
A dialect of another package gives the same value; one without it is asked at its base URL, and has no clients here. Nothing
here does I/O, and nothing that a client says chooses a host.

Source: clients.md §10; limits.md T5, T6; RFC 3986 §3.3, §5.2.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias
from urllib.parse import quote, unquote

from attrs import field, frozen

from streamkit.conversation.messages import Request
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.profiles import Provider
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.limits import Limits
from streamkit.machines import Machine
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: What is asked: an answer of the model, or how many tokens the request has.
Operation: TypeAlias = Literal["generate", "count"]
#: What stands behind a path; a name may come several times.
Query: TypeAlias = Mapping[str, str]

#: How a key is shown: in which header, and what stands in front of it. Beside these there are ``none`` and ``sigv4``.
KEY_HEADERS: Final[Mapping[str, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
    "azure": ("api-key", ""),
}
#: How a server says when to ask again, whatever its dialect; names of headers are in lower case.
RETRY_HEADERS: Final = ("retry-after", "retry-after-ms", "x-should-retry")
#: How names of headers begin that tell of rate limits.
RATE_LIMIT_PREFIXES: Final = ("x-ratelimit", "ratelimit")
#: Where a server says its own id for a request: most, Claude's, AWS, Azure.
REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")
#: The longest name of a model: an ARN.
MODEL_CHARS: Final = 2048
#: Of what a client called something, this much is repeated to it.
SHOWN_CHARS: Final = 200
#: The most models on a page.
MOST: Final = 1000
#: How clients are told not to lean on what a server keeps.
STATELESS: Final = "this gateway is stateless: it keeps no responses and no conversations"
#: Which settings make it keep them: of a gateway's configuration, of an application with ``add_resuming``.
STATE_SETTING: Final = "unless its operator sets [responses] state = true (Resuming.state in an application)"
BACKGROUND_SETTING: Final = 'unless its operator sets [resume] store = "memory" (add_resuming in an application)'
#: What stands in a segment as it is (RFC 3986 §3.3), beside letters, digits and `-._~`.
_AS_IT_IS: Final = "!$&'()*+,;=:@"
#: What parts a name as it parts a path, somewhere on the way.
_PARTS: Final = re.compile(r"[/\\]")


# -- asking a server ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class TokenCount:
    """How a server counts the tokens of a request, by ``POST``."""

    #: The URL, of a base URL and a model. Raises BadRequest for a model that can't stand in a path.
    url: Callable[[str, str], str]
    #: The members of a request that a count takes: providers refuse the rest. None: all of them.
    takes: frozenset[str] | None = None
    #: The body, of these members and the model.
    body: Callable[[dict[str, Any], str], dict[str, Any]] = lambda members, _model: members
    #: The member of the answer that has the number.
    member: str


@frozen
class SocketRefusal:
    """An answer that would be an error over HTTP, told in a message of a WebSocket."""

    status: int  #: from 400 to 599
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)  #: the error's envelope, as a body over HTTP has it


@frozen(kw_only=True)
class SocketEndpoint:
    """How a server is asked over a WebSocket, opened by ``GET`` at the URL of an answer: one message asks for many."""

    #: The message that asks what a body asks, a JSON object that does not say whether to stream.
    message: Callable[[bytes], bytes]
    #: A message of an answer in the bytes of the dialect's stream.
    event: Callable[[bytes], bytes]
    #: Whether nothing follows a message: the socket stays open behind an answer.
    is_last: Callable[[bytes], bool]
    #: What a message says that stands instead of an answer; None: it is one of an answer.
    refusal: Callable[[bytes], SocketRefusal | None]


@frozen(kw_only=True)
class Endpoint:
    """How a server of the dialect is asked, by ``POST``. Paths are those of the official clients, behind their base URL."""

    #: The URL of an answer, of a base URL (percent-encoded, without a slash at its end), a model and whether to stream. Raises
    #: BadRequest for a model that can't stand in a path.
    url: Callable[[str, str, bool], str]
    #: What a base URL ends with when somebody pasted an endpoint; empty: nothing that could be told.
    pasted: str = ""
    #: The same where the address has deployments, as Azure's had before ``/openai/v1``, of a base URL and a model. None: it
    #: never has.
    deployment: Callable[[str, str], str] | None = None
    #: How its providers want a key, unless one of them says otherwise (``Provider.auth``).
    auth: str = "bearer"
    #: Ways to show a key that have a name of their own here, beside ``KEY_HEADERS``: header, and what stands in front.
    keys: Mapping[str, tuple[str, str]] = field(factory=dict)
    #: The service that AWS's signatures are for; empty: it is none of AWS's.
    aws_service: str = ""
    #: Headers that every request has, by the provider, where one is named.
    headers: Callable[[Provider | None], Mapping[str, str]] = lambda _provider: {}
    #: Headers in which clients ask for features, names in lower case, and whether each is a list, to which an operator's own
    #: is added. They pass from a client to a server of the same dialect.
    features: Mapping[str, bool] = field(factory=dict)
    #: What clients write after a model's name to ask for a feature, in lower case, and the feature headers that ask for it.
    marks: Mapping[str, Mapping[str, str]] = field(factory=dict)
    #: Headers of an answer that clients get too, names in lower case; one that ends with ``-`` is the beginning of names.
    passed: tuple[str, ...] = ()
    #: Whether a stream may come as one JSON array.
    streams_arrays: bool = False
    #: None: it can't count.
    count: TokenCount | None = None
    #: None: it is asked over HTTP alone.
    socket: SocketEndpoint | None = None


def with_root(base: str, root: str) -> str:
    """``base`` with the path ``root`` at its end, which it may have already: ``/v1`` of ``https://api.example.com``."""
    return base if base.endswith(root) else base + root


def segment(name: str, safe: str = _AS_IT_IS) -> str:
    """A model's name as one segment of a path, percent-encoded but for ``safe``.

    Raises BadRequest for one that is too long or could climb out of the path: a part of it that is empty or dots alone
    (RFC 3986 §5.2.4), since what stands in front of a server may decode it.
    """
    if len(name) > MODEL_CHARS or not all(part.strip(".") for part in _PARTS.split(unquote(name))):
        raise BadRequest("model", f"a name of 1 to {MODEL_CHARS:,} characters is needed, and no part of it dots alone")
    return quote(name, safe=safe, errors="replace")


# -- serving clients ---------------------------------------------------------------------------------------------------


class RequestLine(Protocol):
    """What a client's request says before its body."""

    @property
    def path(self) -> str: ...

    @property
    def query(self) -> Query: ...

    @property
    def match_info(self) -> Mapping[str, str]:
        """What stands in the places of the path's pattern."""


@frozen
class Address:
    """Which model is asked, and how it is to answer."""

    model: str
    stream: bool
    #: The stream is to be one JSON array (``Surface.array``).
    as_array: bool = False


@frozen(kw_only=True)
class ModelCard:
    """One model, as clients may call it."""

    id: str
    tools: bool = True  #: whether an upstream of it takes tools
    counts: bool = False  #: whether an upstream of it counts tokens
    created: int = 0  #: seconds since the epoch; 0 is unknown
    owner: str = "streamkit"


@frozen(kw_only=True)
class Models:
    """Where clients look up which models there are, and what they read there.

    What nobody told us, sizes, dates, windows, is left out, or is the value that the dialect has for *unknown* where its
    readers demand one. Lists keep the order of the cards.
    """

    #: ``GET``: the list. Several dialects may share a path; then the client's headers tell whose it is.
    path: str
    #: All models, or the page of them that a query asks for. Raises BadRequest for a page that can't be.
    list: Callable[[Sequence[ModelCard], Query], dict[str, Any]]
    #: One model.
    detail: Callable[[ModelCard], dict[str, Any]]
    #: ``POST`` to a path with a body that names the model, instead of ``GET`` below the list's: the path, and the name in the
    #: body. Raises BadRequest.
    by_body: tuple[str, Callable[[Fields], str]] | None = None
    #: What else is looked up, by ``GET``: path and answer.
    constants: Mapping[str, dict[str, Any]] = field(factory=dict)
    #: What a name ends with that its clients write without; empty: nothing.
    default_tag: str = ""
    #: Whether many of its clients have no place for a key where they look models up.
    keyless: bool = False

    @property
    def paths(self) -> frozenset[str]:
        """Every fixed path of these."""
        return frozenset({self.path, *([self.by_body[0]] if self.by_body else ()), *self.constants})


@frozen(kw_only=True)
class ArrayForm:
    """A stream as one JSON array, for clients that ask for it so."""

    #: Makes what turns whole frames of the dialect's stream, as its encoder writes them, into bytes of the array.
    writer: Callable[[Limits], Machine[bytes, bytes]]
    #: An array that says nothing but an error.
    error: Callable[[ProviderFailed], bytes]


@frozen
class SocketRequest:
    """What a message on a WebSocket asks."""

    #: The request, as it would be the body of a ``POST``.
    body: bytes = field(repr=False)
    #: Nothing is to be generated: only what a later message leans on is to be kept.
    warm_up: bool = False
    #: What was repaired of the message.
    report: StreamReport = field(factory=StreamReport, repr=False)


class Conversation(Protocol):
    """The requests and answers of one WebSocket, one after the other: what it keeps, a later message may lean on."""

    @property
    def kept_bytes(self) -> int:
        """The size of the last response and its request, and of the request under way."""

    def read(self, message: bytes) -> SocketRequest | ProviderFailed:
        """A client's message as a request; why it is none."""

    def write(self, chunk: bytes) -> list[str]:
        """Bytes of a stream, as the dialect's encoder writes them, as messages."""

    def end(self) -> list[str]:
        """What is left to tell of the answer once its stream is over; what it answers is kept if it is whole."""

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> str:
        """An answer that is an error over HTTP, as a message."""

    def over(self) -> None:
        """Drop the request under way, whatever its response was."""

    def forget(self) -> None:
        """Keep nothing of the answers so far, nor of the one under way, for want of memory."""

    @property
    def unknown_id(self) -> str:
        """The answer that the last message leans on, if it is not kept here; else empty."""

    def recall(self, answer_id: str, value: bytes) -> None:
        """Keep this answer, which was found elsewhere, as the last one: a value of ``KeptAnswer``."""


@frozen(kw_only=True)
class SocketForm:
    """Requests and answers as messages of a WebSocket, for clients that ask by ``GET`` at a path of answers."""

    #: What reads and writes one WebSocket's messages, and keeps so many bytes between two of them.
    conversation: Callable[[int], Conversation]


@frozen
class KeptAnswer:
    """What is kept of an answer, for requests that lean on it."""

    #: The answer with all that it was asked, as the dialect's ``StoredForm`` reads it.
    value: bytes = field(repr=False)
    #: The items of its output that requests may name, by their ids.
    items: Mapping[str, bytes] = field(repr=False)


class StoredRequest(Protocol):
    """A request that may lean on earlier answers and their items, or whose answer is to be kept."""

    @property
    def previous_id(self) -> str:
        """The answer that it goes on from; empty: none."""

    @property
    def item_ids(self) -> Mapping[str, str]:
        """The items that it names, by the places where it does."""

    @property
    def is_kept(self) -> bool:
        """Whether its answer is to be kept."""

    @property
    def input(self) -> bytes:
        """All that the model is told, with what was kept once it is ``resolved``: for ``AnswerWriter.kept``."""

    def resolved(self, previous: bytes, items: Mapping[str, bytes]) -> bytes:
        """The body that leans on nothing: with the value of the answer before, and the items by their ids."""

    def unknown(self, place: str) -> ProviderFailed:
        """That nothing is kept of what is named at ``place``, or of the answer before where that is empty."""


class AnswerWriter(Protocol):
    """Gives an answer an id of the server's own on its way to the client, and keeps what it is."""

    def feed(self, chunk: bytes, /) -> bytes:
        """Whole events of a stream."""

    def whole(self, body: bytes, /) -> bytes:
        """A whole answer."""

    def kept(self, asked: bytes, /) -> KeptAnswer | None:
        """The answer and what it was asked (``StoredRequest.input``), once it has ended as it should."""


@frozen(kw_only=True)
class StoredForm:
    """Answers that a server keeps, for clients that know them by the id in the answer itself.

    Behind ``path`` and an id there are ``GET`` (the answer, or its stream), ``DELETE``, and ``POST`` of ``cancel``.
    """

    path: str
    #: How ids begin.
    prefix: str
    #: Whether the answer goes on in the background; the request does not say so any more. ``is_served``: whether the server
    #: keeps answers. Raises BadRequest where it can't be.
    background: Callable[[Request, bool], bool]
    #: Reads a body. Raises BadRequest.
    request: Callable[[bytes], StoredRequest]
    #: What writes an answer with that id. It says again whether it went on in the background, and the id before it.
    writer: Callable[[str, bool, str], AnswerWriter]
    #: An answer of which there is nothing yet: of its id, its time in seconds since the epoch, its model and what its request
    #: set (``Dialect.settings``).
    queued: Callable[[str, int, str, Mapping[str, Any]], bytes]
    #: The answer as far as its stream goes, of the bytes of that and of how it ended (``streamkit.resume.End``; empty: not
    #: yet); where nothing in it says one, of the one that is ``queued``.
    answer: Callable[[bytes, str, bytes], bytes]
    #: The answer of a kept value, and the ids of the items of its output.
    answer_in: Callable[[bytes], bytes]
    ids_in: Callable[[bytes], Sequence[str]]
    #: Whether a query of ``GET`` asks for the stream, and the number of the last event that the client has; -1: it has none.
    #: Raises BadRequest.
    stream_asked: Callable[[Query], tuple[bool, int]]
    #: Passes the events of an answer's stream behind the one with that number. A fault: there is no such event.
    behind: Callable[[str, int], Machine[bytes, bytes]]
    #: What is said of an answer that is forgotten, of its id.
    deleted: Callable[[str], dict[str, Any]]
    #: Why an answer can't be cancelled that never was in the background.
    not_background: ProviderFailed


@frozen(kw_only=True)
class ChatForm:
    """How a user interface in a browser asks an application, at whatever path that has: it sends the messages alone."""

    #: What stands behind the path where it asks to go on with an answer, as a pattern of aiohttp's router.
    resume: str
    #: What the client calls its conversation: a name of that pattern, and of ``Request.exchange``.
    conversation: str
    #: Gives the answer to a request an id, by which a client that has its beginning knows it again.
    name_answer: Callable[[Request], None] = lambda _request: None
    #: The headers of an answer.
    headers: Mapping[str, str] = field(factory=dict)


def model_in_path(path: str, member: str, place: str) -> Callable[[RequestLine, Request], Address]:
    """Return what reads the address of streams alone: the model of the path, or else of the request.

    It raises BadRequest about ``member`` where neither names one; ``place`` is where a request may, in words.
    """

    def address(line: RequestLine, request: Request) -> Address:
        model = line.match_info.get("model") or request.model
        if not model:
            instead = f"name one in the path, {path}/MODEL, or in {place}"
            raise BadRequest(member, f"the name of a model is needed, and there is none; {instead}")
        return Address(model, stream=True)

    return address


def model_in_body(_line: RequestLine, request: Request) -> Address:
    """What the body says, as in most dialects. Raises BadRequest where it names no model."""
    if not request.model:
        raise BadRequest("model", "the name of a model is needed, and there is none")
    return Address(request.model, request.stream is True)


@frozen(kw_only=True)
class Surface:
    """The paths of a dialect's clients, all ``POST``, as patterns of aiohttp's router, and what is peculiar to them."""

    generate: tuple[str, ...]
    count: tuple[str, ...] = ()
    #: A path of these clients, served or not: looked for at the end, since an application may serve us under a prefix of its
    #: own. It must read a path once, whatever stands in it: it is tried before any key is looked at.
    path: re.Pattern[str]
    #: A header that none but these clients send, for paths that several dialects share.
    header: str = ""
    #: The header in which they look for the id of their request; empty: none, or ``x-request-id``, which all get.
    request_id: str = ""
    #: What may be asked behind a colon at the end of a model's path.
    methods: frozenset[str] = frozenset()
    #: The paths in words, where they are patterns.
    in_words: str = ""
    #: Paths at which clients ask for what a server keeps, which nobody does here. As ``path``. None: there are none.
    kept: re.Pattern[str] | None = None
    #: Whether these clients read past an ``id`` in an event of a stream (resume.md §4.1).
    event_ids: bool = True
    #: None: these clients ask for a model, and not an application that chose one.
    chat: ChatForm | None = None
    #: None: these clients never ask for a WebSocket.
    socket: SocketForm | None = None
    #: None: these clients know no answers by their ids.
    stored: StoredForm | None = None
    #: Which model is asked, and how. Raises BadRequest.
    address: Callable[[RequestLine, Request], Address] = model_in_body
    #: Raises BadRequest for what is well-formed and can't be served here.
    check: Callable[[Request], None] = lambda _asked: None
    #: Of a body that asks for a count, the request in it and the member in which it stands; "" where it is the whole body.
    #: What it repairs is in the report. Raises BadRequest.
    counted: Callable[[bytes, StreamReport], tuple[bytes, str]] = lambda body, _report: (body, "")
    #: The answer to a count of that many tokens.
    count_answer: Callable[[int], dict[str, Any]] = lambda tokens: {"input_tokens": tokens}
    #: None: its streams are never arrays.
    array: ArrayForm | None = None
    #: None: its clients look no models up.
    models: Models | None = None

    @property
    def paths(self) -> Mapping[str, Operation]:
        """What is asked at each path."""
        return {**dict.fromkeys(self.generate, "generate"), **dict.fromkeys(self.count, "count")}


@frozen(kw_only=True)
class HTTP:
    """A dialect over HTTP. None: it is asked at the base URL itself; its clients are not served."""

    endpoint: Endpoint | None = None
    #: Of providers that are asked in another way, by ``Provider.name``.
    endpoints: Mapping[str, Endpoint] = field(factory=dict)
    surface: Surface | None = None

    def endpoint_of(self, provider: Provider | None) -> Endpoint | None:
        """How that provider of the dialect is asked; None: at the base URL."""
        return self.endpoint if provider is None else self.endpoints.get(provider.name, self.endpoint)


NO_HTTP: Final = HTTP()

# -- pages of models ---------------------------------------------------------------------------------------------------


def place_of(models: Iterable[ModelCard], query: Query, name: str) -> int:
    """Where the model stands that ``name`` in the query names; -1 if it names none. Raises BadRequest for an unknown one."""
    cursor = query.get(name)
    if not cursor:
        return -1
    for place, card in enumerate(models):
        if card.id == cursor:
            return place
    raise BadRequest(name, f"no model is called {quoted(cursor, SHOWN_CHARS)} here")


def page_size(query: Query, name: str, default: int) -> int:
    """How many models a page has, from 1 to ``MOST``. Raises BadRequest."""
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:5]) <= MOST):
        raise BadRequest(name, f"a whole number from 1 to {MOST:,} is needed, not {quoted(text, SHOWN_CHARS)}")
    return int(text)
