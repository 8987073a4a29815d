"""The HTTP side of a dialect, as values: how to send requests to its servers, and which paths and forms its clients use.

``web`` and ``gateway`` contain no dialect's name. What differs between dialects is in ``dialects/<name>/http.py``, and is
read from ``Dialect.http``. A dialect of another package may have this value too; without it, requests go to the base URL, and
its clients are not served. Nothing in this module does I/O, and nothing that a client sends chooses a host.

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
from streamkit.events import ProviderFailed, UsageReported
from streamkit.limits import Limits
from streamkit.machines import Machine
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: What a request asks for: a response of the model, the number of the request's tokens, or a shorter conversation.
Operation: TypeAlias = Literal["generate", "count", "compact"]
Query: TypeAlias = Mapping[str, str]  #: The query of a URL. A name may occur several times.

#: The ways to send a key, each with its header and the text before the key. The ways ``none`` and ``sigv4`` have neither.
KEY_HEADERS: Final[Mapping[str, tuple[str, str]]] = {
    "bearer": ("authorization", "Bearer "),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
    "azure": ("api-key", ""),
}
#: Headers in which a server of any dialect says when to retry. All names of headers in this module are in lower case.
RETRY_HEADERS: Final = ("retry-after", "retry-after-ms", "x-should-retry")
RATE_LIMIT_PREFIXES: Final = ("x-ratelimit", "ratelimit")  #: the beginnings of the names of headers about rate limits
#: Headers in which servers give the id of a request: most servers, Anthropic, AWS and Azure, in this order.
REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id")
MODEL_CHARS: Final = 2048  #: the length of the longest model name, which is an AWS ARN
SHOWN_CHARS: Final = 200  #: An error message repeats at most this many characters of a name that a client sent.
MOST: Final = 1000  #: the most models on one page of a list
#: The error text for a request that refers to an earlier response or conversation, if the server keeps none.
STATELESS: Final = "this gateway is stateless: it keeps no responses and no conversations"
#: For error messages: the settings with which a gateway or an application keeps responses, or runs them in the background.
STATE_SETTING: Final = "unless its operator sets [responses] state = true (Resuming.state in an application)"
BACKGROUND_SETTING: Final = 'unless its operator sets [resume] store = "memory" (add_resuming in an application)'
#: Characters of a path segment that are not percent-encoded (RFC 3986 §3.3), in addition to letters, digits and `-._~`.
_AS_IT_IS: Final = "!$&'()*+,;=:@"
#: Characters in a model's name that a server between client and model may treat as a path separator.
_PARTS: Final = re.compile(r"[/\\]")


# -- sending requests to a server --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class TokenCount:
    """How a server counts the tokens of a request, by ``POST``."""

    #: Returns the URL, from a base URL and a model. Raises BadRequest if the model's name cannot be part of a path.
    url: Callable[[str, str], str]
    #: The members of a request that the provider accepts in a count; it refuses any other member. None: it accepts all.
    takes: frozenset[str] | None = None
    #: Returns the body of the count from the accepted members and the model.
    body: Callable[[dict[str, Any], str], dict[str, Any]] = lambda members, _model: members
    member: str  #: the member of the response with the number of tokens


@frozen(kw_only=True)
class Compacting:
    """How a server replaces a conversation with a shorter one, by ``POST``, for clients of the same dialect."""

    url: Callable[[str], str]  #: returns the URL, from a base URL
    #: The members of a request that the server accepts.
    takes: frozenset[str]
    #: Returns the tokens that the response reports; None: it reports none. Raises BrokenFrame if it is no such response.
    usage: Callable[[bytes], UsageReported | None]


@frozen
class SocketRefusal:
    """An HTTP error response that a server sent as a WebSocket message."""

    status: int  #: from 400 to 599
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)  #: the error's envelope, as in an HTTP body


@frozen(kw_only=True)
class SocketEndpoint:
    """How to send requests to a server over a WebSocket, which ``GET`` opens at the URL for responses.

    A request is one message, and its response is many messages.
    """

    #: Returns the message for a request body. The body is a JSON object without the member ``stream``.
    message: Callable[[bytes], bytes]
    event: Callable[[bytes], bytes]  #: returns a message of a response as bytes of the dialect's stream
    #: Whether this message is the last one of a response. The socket stays open after it.
    is_last: Callable[[bytes], bool]
    #: Returns the refusal, if the server sent this message instead of a response. None: the message is part of a response.
    refusal: Callable[[bytes], SocketRefusal | None]


@frozen(kw_only=True)
class Endpoint:
    """How to send a request to a server of the dialect, by ``POST``. Paths are what official clients add to a base URL."""

    #: Returns the URL for a response, from a base URL (percent-encoded, without a slash at its end), a model, and whether to
    #: stream. Raises BadRequest if the model's name cannot be part of a path.
    url: Callable[[str, str, bool], str]
    #: The last part of a URL that users paste by mistake as a base URL. Empty: this mistake is not detected.
    pasted: str = ""
    #: Returns the URL for a response at a server with deployments, as Azure had before ``/openai/v1``, from a base URL and a
    #: model. None: the dialect has no such servers.
    deployment: Callable[[str, str], str] | None = None
    #: How providers of the dialect expect the key, unless a provider has another way (``Provider.auth``).
    auth: str = "bearer"
    #: More ways to send a key, in addition to ``KEY_HEADERS``: the header, and the text before the key.
    keys: Mapping[str, tuple[str, str]] = field(factory=dict)
    aws_service: str = ""  #: The service name in AWS signatures. Empty: the server does not belong to AWS.
    #: Returns the headers of every request, for the provider if one is named.
    headers: Callable[[Provider | None], Mapping[str, str]] = lambda _provider: {}
    #: Headers with which clients request features, by name in lower case. The value is True if the header is a list; then the
    #: operator's configured values are added to it. Only a server of the client's dialect receives these headers.
    features: Mapping[str, bool] = field(factory=dict)
    #: Suffixes of a model's name (in lower case) with which clients request a feature, and the headers that request it.
    marks: Mapping[str, Mapping[str, str]] = field(factory=dict)
    #: Response headers that are forwarded to clients, by name in lower case. A name that ends with ``-`` is a prefix.
    passed: tuple[str, ...] = ()
    streams_arrays: bool = False  #: whether the server may send a stream as one JSON array
    count: TokenCount | None = None  #: None: the server cannot count tokens
    compact: Compacting | None = None  #: None: the server has no path for compactions
    socket: SocketEndpoint | None = None  #: None: the server has only HTTP


def with_root(base: str, root: str) -> str:
    """Return ``base`` with the path ``root`` (such as ``/v1``) at its end. ``root`` is not added to a base that has it."""
    return base if base.endswith(root) else base + root


def segment(name: str, safe: str = _AS_IT_IS) -> str:
    """Return a model's name as one path segment, percent-encoded except for the characters in ``safe``.

    Raises BadRequest if the name is too long, or if one of its parts is empty or consists of dots: such a part could lead out
    of the path (RFC 3986 §5.2.4), because a proxy before the server may decode the name.
    """
    if len(name) > MODEL_CHARS or not all(part.strip(".") for part in _PARTS.split(unquote(name))):
        raise BadRequest(
            "model", f"must have 1 to {MODEL_CHARS:,} characters, and no path segment that is empty or only dots"
        )
    return quote(name, safe=safe, errors="replace")


# -- serving clients ---------------------------------------------------------------------------------------------------


class RequestLine(Protocol):
    """The part of a client's request before its body."""

    @property
    def path(self) -> str: ...

    @property
    def query(self) -> Query: ...

    @property
    def match_info(self) -> Mapping[str, str]:
        """The values of the names in the path's pattern."""


@frozen
class Address:
    """The model that a request names, and the form of the response."""

    model: str
    stream: bool
    as_array: bool = False  #: whether the stream must be one JSON array (``Surface.array``)


@frozen(kw_only=True)
class ModelCard:
    """One model that clients may name."""

    id: str
    tools: bool = True  #: whether at least one upstream of this model accepts tools
    counts: bool = False  #: whether at least one upstream of this model counts tokens
    created: int = 0  #: seconds since the epoch; 0 means unknown
    owner: str = "streamkit"
    context: int | None = None  #: the most tokens of a conversation; None: not known
    output: int | None = None  #: the most tokens of a response; None: not known
    inputs: tuple[str, ...] = ()  #: what the model reads: ``text``, ``image``, ``pdf``, …; empty: not known
    thinks: bool = False  #: whether the model is known to think

    @property
    def sees(self) -> bool:
        """Whether the model is known to read images."""
        return "image" in self.inputs


@frozen(kw_only=True)
class Models:
    """Where clients look up the available models, and the responses to these requests.

    Unknown facts (sizes, dates) are left out, or have the dialect's value for *unknown* where readers
    require a value. Lists keep the order of the cards.
    """

    #: The path of the list, for ``GET``. Dialects may share a path; then the client's headers decide which dialect it uses.
    path: str
    #: Returns all models, or the page that the query names. Raises BadRequest if there is no such page.
    list: Callable[[Sequence[ModelCard], Query], dict[str, Any]]
    detail: Callable[[ModelCard], dict[str, Any]]  #: returns one model
    #: For clients that look up a model by ``POST`` with the name in the body, instead of by ``GET`` at the list's path and a
    #: name: the path, and a function that returns the name. The function raises BadRequest.
    by_body: tuple[str, Callable[[Fields], str]] | None = None
    constants: Mapping[str, dict[str, Any]] = field(factory=dict)  #: other responses to ``GET`` requests, by path
    #: The end of a model's name that clients may leave out, such as ``:latest``. Empty: clients write the whole name.
    default_tag: str = ""
    keyless: bool = False  #: whether many clients cannot send a key when they look up models

    @property
    def paths(self) -> frozenset[str]:
        """All fixed paths of these look-ups."""
        return frozenset({self.path, *([self.by_body[0]] if self.by_body else ()), *self.constants})


@frozen(kw_only=True)
class ArrayForm:
    """How to write a stream as one JSON array, for clients that request one."""

    #: Returns a machine that turns complete frames of the dialect's encoder into bytes of the array.
    writer: Callable[[Limits], Machine[bytes, bytes]]
    error: Callable[[ProviderFailed], bytes]  #: returns an array that contains only an error


@frozen
class SocketRequest:
    """One request that a client sent as a WebSocket message."""

    body: bytes = field(repr=False)  #: the request, as the body of a ``POST`` would have it
    #: Whether to generate no output, and only keep this request, because a later message refers to it.
    warm_up: bool = False
    report: StreamReport = field(factory=StreamReport, repr=False)  #: the repairs of the message


class Conversation(Protocol):
    """The requests and responses of one WebSocket, in order. It keeps the last response, to which later messages may refer."""

    @property
    def kept_bytes(self) -> int:
        """The size of the last response and its request, plus the size of the request in progress."""

    def read(self, message: bytes) -> SocketRequest | ProviderFailed:
        """Return the request in a client's message, or the reason why the message is not a request."""

    def write(self, chunk: bytes) -> list[str]:
        """Return the WebSocket messages for bytes of a stream that the dialect's encoder wrote."""

    def end(self) -> list[str]:
        """Return the remaining messages after the end of a stream. Keep the response if it is complete."""

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> str:
        """Return an HTTP error response as a message."""

    def over(self) -> None:
        """Drop the request in progress, whether or not its response was complete."""

    def forget(self) -> None:
        """Drop all kept responses, and do not keep the response in progress. Called when memory is short."""

    @property
    def unknown_id(self) -> str:
        """The id of the response that the last message refers to, if it is not kept here. Otherwise empty."""

    def recall(self, answer_id: str, value: bytes) -> None:
        """Use a response from a store as the last response of this WebSocket. ``value`` is a ``KeptAnswer.value``."""


@frozen(kw_only=True)
class SocketForm:
    """Requests and responses as WebSocket messages, for clients that open a socket by ``GET`` at a path of responses."""

    #: Makes the conversation of one WebSocket. The argument is the number of bytes that it may keep between two messages.
    conversation: Callable[[int], Conversation]


@frozen
class KeptAnswer:
    """What the server keeps of a response, because later requests may refer to the response."""

    #: The response and its complete request, in the form that the dialect's ``StoredForm`` reads.
    value: bytes = field(repr=False)
    #: The output items of the response, by id. Later requests may name these ids.
    items: Mapping[str, bytes] = field(repr=False)


class StoredRequest(Protocol):
    """A request that may refer to earlier responses and their items, or whose response must be kept."""

    @property
    def previous_id(self) -> str:
        """The id of the response that this request continues. Empty: none."""

    @property
    def item_ids(self) -> Mapping[str, str]:
        """The ids of the items that the request names, by their places in the request."""

    @property
    def is_kept(self) -> bool:
        """Whether the response must be kept."""

    @property
    def input(self) -> bytes:
        """The model's whole input; after ``resolved``, with the earlier parts. It is an argument of ``AnswerWriter.kept``."""

    def resolved(self, previous: bytes, items: Mapping[str, bytes]) -> bytes:
        """Return the body with kept content in place of references: ``previous`` is a kept value, ``items`` are by id."""

    def unknown(self, place: str) -> ProviderFailed:
        """Return the error for an id at ``place`` that the store lacks. ``place`` is empty for the previous response's id."""


class AnswerWriter(Protocol):
    """Puts the server's id into a response that passes to the client, and collects the response for storage."""

    def feed(self, chunk: bytes, /) -> bytes:
        """Return whole events of a stream, with the server's id."""

    def whole(self, body: bytes, /) -> bytes:
        """Return a whole response, with the server's id."""

    def kept(self, asked: bytes, /) -> KeptAnswer | None:
        """Return the response and its input (``StoredRequest.input``) if the response ended normally; otherwise None."""


@frozen(kw_only=True)
class StoredForm:
    """How clients look up responses that a server keeps, by the id in the response.

    Under ``path`` and an id, clients use ``GET`` (for the response or its stream, and for its ``input_items``), ``DELETE``,
    and ``POST`` to ``cancel``.
    """

    path: str
    prefix: str  #: the prefix of the ids of responses
    #: Returns whether the client requests that the response is generated in the background, and removes that member from the
    #: request. The second argument is whether the server keeps responses. Raises BadRequest if the server has no background.
    background: Callable[[Request, bool], bool]
    request: Callable[[bytes], StoredRequest]  #: Reads a request body. Raises BadRequest.
    #: Makes the writer of a response, from the response's id, whether it is generated in the background, and the id of the
    #: previous response. The response repeats the last two arguments.
    writer: Callable[[str, bool, str], AnswerWriter]
    #: Returns a response without output. Takes its id, its time in seconds since the epoch, its model, and the settings of
    #: its request (``Dialect.settings``).
    queued: Callable[[str, int, str, Mapping[str, Any]], bytes]
    #: Returns the response that the bytes of its stream make so far. The other arguments: how the stream ended
    #: (``streamkit.resume.End``; empty if it has not), and the ``queued`` response, which is returned if the stream has none.
    answer: Callable[[bytes, str, bytes], bytes]
    #: Returns the response in a kept value (``answer_in``), and the ids of its output items (``ids_in``).
    answer_in: Callable[[bytes], bytes]
    ids_in: Callable[[bytes], Sequence[str]]
    #: Returns a page of the input items in a kept value, as the query of a ``GET`` asks. Raises BadRequest.
    input_items: Callable[[bytes, Query], bytes]
    #: Returns whether the query of a ``GET`` requests the stream, and the number of the last event that the client has (-1:
    #: None). Raises BadRequest.
    stream_asked: Callable[[Query], tuple[bool, int]]
    #: Makes a machine that forwards only the events after the event with this number. It sets ``fault`` if no event has it.
    behind: Callable[[str, int], Machine[bytes, bytes]]
    deleted: Callable[[str], dict[str, Any]]  #: returns the confirmation that a response was deleted, from its id
    #: The error for a client that cancels a response which is not generated in the background.
    not_background: ProviderFailed


@frozen(kw_only=True)
class ChatForm:
    """How a user interface in a browser requests responses of an application, at a path of the application's choice.

    The interface sends only the messages.
    """

    resume: str  #: A pattern of aiohttp's router for the rest of the path at which the client resumes a response.
    conversation: str  #: The client's word for its conversation: a name in that pattern, and in ``Request.exchange``.
    #: Adds the response's id to the request, so that a client that already has the start of the response recognises it.
    name_answer: Callable[[Request], None] = lambda _request: None
    headers: Mapping[str, str] = field(factory=dict)  #: the headers of a response


def model_in_path(path: str, member: str, place: str) -> Callable[[RequestLine, Request], Address]:
    """Return a function that finds the model in the path, or else in the request, for paths that only stream.

    The function raises BadRequest about ``member`` if neither names a model. ``place`` describes where a request may name it.
    """

    def address(line: RequestLine, request: Request) -> Address:
        model = line.match_info.get("model") or request.model
        if not model:
            raise BadRequest(member, f"the request names no model; name one in the path, {path}/MODEL, or in {place}")
        return Address(model, stream=True)

    return address


def model_in_body(_line: RequestLine, request: Request) -> Address:
    """Return the model and stream flag of the body, as most dialects do. Raises BadRequest if the body names no model."""
    if not request.model:
        raise BadRequest("model", "is missing; must be the name of a model")
    return Address(request.model, request.stream is True)


@frozen(kw_only=True)
class Surface:
    """The paths that a dialect's clients use, as patterns of aiohttp's router, and other facts. All paths take ``POST``."""

    generate: tuple[str, ...]
    count: tuple[str, ...] = ()
    compact: tuple[str, ...] = ()
    #: For the error if no upstream has a path for compactions: what clients can send instead.
    compact_instead: str = ""
    #: Matches a path of these clients, whether or not it is served. It searches at the end of a path, because an application
    #: may serve streamkit under a prefix. It must take linear time for any path: it is tried before any key is checked.
    path: re.Pattern[str]
    header: str = ""  #: A header that only these clients send, for paths that several dialects share.
    #: The header in which these clients look for the request's id, in addition to ``x-request-id``, which all responses have.
    request_id: str = ""
    #: The words that may follow a colon at the end of a model's path (``:generateContent``).
    methods: frozenset[str] = frozenset()
    in_words: str = ""  #: a description of the paths, if the paths are patterns
    #: Matches paths at which clients request data that a server keeps, and that streamkit does not serve. Searches like
    #: ``path``. None: there are no such paths.
    kept: re.Pattern[str] | None = None
    #: Whether these clients ignore an ``id`` in an event of a stream (resume.md §4.1 needs one to resume).
    event_ids: bool = True
    chat: ChatForm | None = None  #: None: these clients name a model. Otherwise the application chooses the model.
    socket: SocketForm | None = None  #: None: these clients never open a WebSocket
    stored: StoredForm | None = None  #: None: these clients cannot find responses by id
    #: Returns the model of a request and the form of the response. Raises BadRequest.
    address: Callable[[RequestLine, Request], Address] = model_in_body
    #: Raises BadRequest if a well-formed request cannot be served here.
    check: Callable[[Request], None] = lambda _asked: None
    #: Returns the request in the body of a token count, and the member that contains it ("" if it is the whole body). Counts
    #: repairs in the report. Raises BadRequest.
    counted: Callable[[bytes, StreamReport], tuple[bytes, str]] = lambda body, _report: (body, "")
    #: Returns the response to a token count.
    count_answer: Callable[[int], dict[str, Any]] = lambda tokens: {"input_tokens": tokens}
    array: ArrayForm | None = None  #: None: these clients never request arrays
    models: Models | None = None  #: None: these clients do not look up models

    @property
    def paths(self) -> Mapping[str, Operation]:
        """The operation at each path."""
        by_operation: dict[Operation, tuple[str, ...]] = {
            "generate": self.generate,
            "count": self.count,
            "compact": self.compact,
        }
        return {path: operation for operation, paths in by_operation.items() for path in paths}


@frozen(kw_only=True)
class HTTP:
    """How a dialect uses HTTP. Without ``endpoint``, requests go to the base URL; without ``surface``, no client is served."""

    endpoint: Endpoint | None = None
    #: The endpoints of providers that differ from the dialect's, by ``Provider.name``.
    endpoints: Mapping[str, Endpoint] = field(factory=dict)
    surface: Surface | None = None

    def endpoint_of(self, provider: Provider | None) -> Endpoint | None:
        """Return how to send a request to this provider. None: send it to the base URL without a path."""
        return self.endpoint if provider is None else self.endpoints.get(provider.name, self.endpoint)


NO_HTTP: Final = HTTP()

# -- pages of models ---------------------------------------------------------------------------------------------------


def place_of(models: Iterable[ModelCard], query: Query, name: str) -> int:
    """Return the index of the model with the id in the query's ``name``; -1 without ``name``. Raises BadRequest if unknown."""
    cursor = query.get(name)
    if not cursor:
        return -1
    for place, card in enumerate(models):
        if card.id == cursor:
            return place
    raise BadRequest(name, f"no model is called {quoted(cursor, SHOWN_CHARS)} here")


def page_size(query: Query, name: str, default: int, most: int = MOST) -> int:
    """Return the size of a page, from 1 to ``most``. Raises BadRequest."""
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:5]) <= most):
        raise BadRequest(name, f"must be an integer from 1 to {most:,}, not {quoted(text, SHOWN_CHARS)}")
    return int(text)
