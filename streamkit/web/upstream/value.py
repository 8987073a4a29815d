"""The settings of an upstream, as a value that checks itself when it is created.

A setting that can't work is reported at that point, not at the first request. Each error message begins with the field and
says what to write instead. No error and no ``repr`` shows a key or the value of a header, since a header may contain a key.

Source: limits.md T5, T6, T7.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import Attribute, evolve, field, frozen
from attrs.validators import ge, gt
from yarl import URL

from streamkit.conversation.messages import Request
from streamkit.dialects import endpoints, key_headers, source_named
from streamkit.dialects.base import Dialect
from streamkit.dialects.http import KEY_HEADERS, Compacting, Endpoint, SocketEndpoint, TokenCount
from streamkit.dialects.profiles import DEFAULT_MAX_TOKENS, Provider
from streamkit.dialects.vocabulary.model_names import check_model_like
from streamkit.errors import UsageError, check_type
from streamkit.policy import (
    AssistantFirst,
    AssistantLast,
    CacheMarks,
    TextCalls,
    ThinkTags,
    ToolSearch,
    UnreadableParts,
)
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.translation.changes import Change, operator_changes
from streamkit.translation.deferred_tools import DeferredTools, deferred_tools
from streamkit.translation.tool_ranking import check_library
from streamkit.web.source import DEFAULT_TIMEOUTS, Timeouts
from streamkit.web.upstream.connection import ConnectionOptions, connection_options
from streamkit.web.upstream.learning import Learnt

SHOWN: Final = "[secret]"


class Secret:
    """A text that is shown as ``[secret]``. A comparison takes the same time wherever the texts differ.

    It is not a ``str``, so no join, slice, serialiser or f-string can write it by accident (limits.md T6).
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        check_type("the text of a Secret", text, str, "the key, as in os.environ[…]")
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return SHOWN

    def __format__(self, spec: str) -> str:
        return format(SHOWN, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))


#: How a request is authorised: ``none``, ``sigv4``, ``google``, one of ``KEY_HEADERS``, or a way that one dialect defines
#: (``Endpoint.keys``). ``azure`` means the header ``api-key`` and Azure's URLs for deployments.
Auth: TypeAlias = str
#: A valid header value: printable ASCII with no space at either end (RFC 9110 §5.5: servers treat other values differently).
HEADER_TEXT: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
#: Headers that belong to one connection or to the body: ``send`` writes them, or they are never sent (T7).
NOT_TO_SET: Final = frozenset({
    "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect", "host",
    "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
#: What to do with media given as a URL: the choices of ``LinkedMedia``, or ``fetch`` the media and put them into the request.
FetchedMedia: TypeAlias = Literal["refuse", "fetch", "drop"]
Transport: TypeAlias = Literal["http", "websocket"]  #: how requests are sent
_NAME: Final = re.compile(r"[\w.:-]+", re.ASCII)
_AWS_NAME: Final = re.compile(r"[a-z0-9-]+")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2


#: Operator headers that are never secret, in addition to feature headers. The values of all others may be secret.
PUBLIC: Final = frozenset({"accept", "http-referer", "referer", "user-agent", "x-title"})


@cache
def _public() -> frozenset[str]:
    return PUBLIC.union(*(endpoint.features for endpoint in endpoints()))


def auths() -> tuple[Auth, ...]:
    """Return the names of all ways to authorise a request."""
    return "none", *KEY_HEADERS, "sigv4", "google", *(name for name in key_headers() if name not in KEY_HEADERS)


def _lower(headers: Any) -> dict[str, str]:
    if not isinstance(headers, Mapping) or not all(map(_is_str, (*headers, *headers.values()))):
        raise UsageError("headers: write a dict of names and values, both str")
    return {name.lower(): value for name, value in headers.items()}


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def _is_base_url(_upstream: Upstream, _field: Attribute[str], text: str) -> None:
    if not _is_str(text):
        raise UsageError(f"base_url: write a str, not {type(text).__qualname__}")
    if re.search(r"[\s\\\x00-\x1f\x7f]", text) or not text.startswith(("http://", "https://")):
        raise UsageError("base_url: write a full URL that begins with https:// or http://, such as https://host/v1")
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise UsageError("base_url: leave out user and password; put a key into `key`")
    if "?" in text or "#" in text:
        raise UsageError("base_url: leave out everything from `?` or `#` on; put Azure's version into `api_version`")
    try:
        url = URL(text)
        known = bool(url.host) and url.port != 0
    except ValueError as error:
        raise UsageError("base_url: the host or port is invalid; write https://host:port/path") from error
    if not known:
        raise UsageError("base_url: the host is missing; write https://host/v1")


@frozen(kw_only=True)
class Rest:
    """When a gateway stops using a model of an upstream that fails, and for how long (a circuit breaker)."""

    #: The number of failures after which a model rests, which means that the gateway does not use the model for a time. A
    #: model rests only if at least half of the attempts since the first failure failed. A timeout counts as three failures.
    #: With 0, a model never rests after failures.
    failures: int = field(default=5, validator=ge(0))
    #: The length of the first rest, in seconds. After a rest, the gateway sends one request to the model as a probe. If
    #: this request fails, the next rest is twice as long.
    first_s: float = field(default=10.0, validator=gt(0))
    #: The longest rest, in seconds.
    max_s: float = field(default=300.0, validator=gt(0))

    def __attrs_post_init__(self) -> None:
        if self.max_s < self.first_s:
            raise UsageError("max_s: must not be less than first_s")


DEFAULT_REST: Final = Rest()
#: The types of an upstream's fields that no other check looks at, and what to write.
_KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    **dict.fromkeys(("name", "dialect", "auth"), (str, "a str")),
    **dict.fromkeys(("api_version", "region", "service"), (str | None, "a str")),
    **dict.fromkeys(("ca_file", "client_cert", "client_key"), (str | None, "the path of a file as a str")),
    "proxy": (str | Secret | None, "a str or a Secret"),
    **dict.fromkeys(("tools", "emulate", "learn", "propagate_trace"), (bool, "True or False")),
    "timeouts": (Timeouts, "Timeouts(…)"),
    "rest": (Rest, "Rest(…)"),
    "keys": (tuple, "a tuple"),
    **dict.fromkeys(("text_calls", "drop"), (tuple | list, "a tuple")),
    "set": (Mapping, "a dict"),
}
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("assistant_first", "assistant_last"), get_args(AssistantFirst)),
    "linked_media": get_args(FetchedMedia),
    "unreadable": get_args(UnreadableParts),
    "cache": get_args(CacheMarks),
    "tool_search": get_args(ToolSearch),
    "think_tags": get_args(ThinkTags),
    "transport": get_args(Transport),
}


@frozen(kw_only=True)
class Upstream:
    """One server that serves requests. Raises UsageError for a value that can't work; its message begins with the field."""

    name: str = field(metadata={"no_key": True})  # in a configuration file this is the name of the table
    #: The upstream's dialect, or the name of a provider that speaks a dialect (``"deepseek"``).
    dialect: str
    #: The base URL of the upstream, as the provider's official client expects it: ``"https://api.openai.com/v1"``.
    base_url: str = field(validator=_is_base_url)
    auth: Auth = "bearer"
    #: None for ``none``, and for ``sigv4`` and ``google``, which find credentials as AWS's and Google's tools do.
    key: Secret | None = None
    #: Several keys in place of `key`. The gateway uses one key until the provider refuses this key or limits its rate.
    #: Then the gateway immediately uses the next key, and does not use the first key again for the time in the header
    #: `Retry-After`. Without this header, this time is 10 s, or 300 s if the provider refused the key.
    keys: tuple[Secret, ...] = ()
    #: For Azure: the value of the query parameter ``api-version``.
    api_version: str | None = None
    #: How requests are sent: each as a `POST`, or as a message of its WebSocket if the dialect has one. Counts use HTTP.
    transport: Transport = "http"
    #: For SigV4: the AWS region for which requests are signed.
    region: str | None = None
    #: For SigV4: the AWS service that requests are signed for, by its name in signatures (``"execute-api"``). None: the
    #: service of the dialect. AWS refuses signatures for another service.
    service: str | None = None
    #: The HTTP proxy for requests: ``"http://proxy:3128"``. A URL with user and password must be a Secret. None: no proxy,
    #: even if the environment names one.
    proxy: str | Secret | None = None
    #: A PEM file with the root certificates to accept, instead of the system's.
    ca_file: str | None = None
    #: A PEM file with the client certificate for the upstream (mTLS). The file also contains any intermediate
    #: certificates.
    client_cert: str | None = None
    #: A PEM file with the private key of ``client_cert``, not encrypted. By default, the private key is in the file
    #: ``client_cert``.
    client_key: str | None = None
    tools: bool = True  #: false if the server does not support tools
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    #: When the gateway stops using a model of this upstream after failures, and for how long.
    rest: Rest = DEFAULT_REST
    #: Constant headers that the operator chooses, such as OpenRouter's ``HTTP-Referer``. Names are converted to lower case.
    headers: Mapping[str, str] = field(factory=dict, converter=_lower, repr=lambda headers: f"<{', '.join(headers)}>")
    #: The limit of output tokens that the gateway sends if the dialect requires a limit and the request has none.
    max_tokens: int = DEFAULT_MAX_TOKENS
    #: If true, the gateway imitates features that the dialect lacks. If false, it refuses a request that needs such a feature.
    emulate: bool = True
    #: What to do with a conversation that begins with an assistant message, if the dialect refuses such conversations.
    #: ``bridge``: put a short user message before the assistant message. ``refuse``: return an error.
    assistant_first: AssistantFirst = "bridge"
    #: What to do with a conversation that ends with assistant text, if the model can't continue this text. ``bridge``: add a
    #: short user message after the text. ``refuse``: return an error.
    assistant_last: AssistantLast = "bridge"
    #: What to do with media that a request gives as a URL, if the dialect accepts no URLs. ``refuse``: return an error.
    #: ``fetch``: download the media, over https and from public addresses only. ``drop``: omit the media and count a loss.
    linked_media: FetchedMedia = "refuse"
    #: What to do with parts of a request that only another provider can read. Such parts are the ids of files, containers,
    #: prompts and vector stores. ``refuse``: try the next upstream of the route. If there is no next upstream, return an
    #: error. ``drop``: omit the parts and count a loss.
    unreadable: UnreadableParts = "refuse"
    #: The name of a known model that accepts the same requests as this upstream's models. Set it if the names of the
    #: upstream's models do not show which models they are: an Azure deployment may have any name. By default, the gateway
    #: looks up a model by its own name.
    model_like: str | None = None
    #: When text between thinking tags (`<think>…</think>`) becomes reasoning. `auto`: if the provider is known to send such
    #: tags and the client speaks another dialect, but never with `policy = "strict"`. `on`: always. `opened`: always, for
    #: servers whose text begins with thinking without an opening tag, because the server's template wrote that tag into the
    #: prompt. `off`: never, so thinking stays in the text.
    think_tags: ThinkTags = "auto"
    #: The forms of [tool calls in text](../how-to/thinking-and-calls-in-text.md#calls-in-the-text) that the gateway looks for
    #: in the model's text. If the gateway finds such a form, and the request offers the tool, the client gets a tool call in
    #: place of the text.
    text_calls: tuple[TextCalls, ...] = ()
    #: If `auto`, the gateway sets marks for the provider's cache in prompts. It does so only if the provider caches
    #: only marked prompts and the client has set no mark. The marks are at the end of the tools, of the system prompt,
    #: and of the last two user turns.
    cache: CacheMarks = "off"
    #: How the gateway handles deferred tools (`defer_loading`). `off`: the provider's own search finds them. If the model has
    #: no such search, the request defines all of them. `emulate`: the request does not define deferred tools, but has a
    #: function that searches them. When the model calls this function, the gateway runs the search, and sends the request
    #: again with the tools that it found. This needs the extra `tools`. The client gets the search in the form of its dialect
    #: ([details](../how-to/search-tools.md)).
    tool_search: ToolSearch = "off"
    #: If true, the gateway sends a request again without a parameter that the upstream refused. For an hour, it also omits
    #: this parameter from later requests to the same model. The gateway omits only parameters that a request can do without,
    #: such as `temperature`.
    learn: bool = True
    #: Members that the gateway removes from each request. Write their paths in the upstream's dialect: `["metadata.user_id",
    #: "tools.*.strict"]`.
    drop: tuple[str, ...] = ()
    #: Members that the gateway adds to each request or replaces. Write their paths and values: `{ service_tier = "flex",
    #: "generationConfig.seed" = 1 }`. If a value is a table, the gateway sets each member of the table. An array is set as a
    #: whole.
    set: Mapping[str, Any] = field(factory=dict, repr=lambda values: f"<{', '.join(values)}>")
    #: If true, and if traces are sent (`[telemetry]`), requests to the upstream have the header `traceparent`.
    propagate_trace: bool = True

    def __attrs_post_init__(self) -> None:
        for name, (kinds, written) in _KINDS.items():
            if not isinstance(value := getattr(self, name), kinds):
                raise UsageError(f"{name}: write {written}, not {type(value).__qualname__}")
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                "name: write letters, digits and any of `.`, `:`, `-`, `_`, since logs and metrics show the name"
            )
        try:
            dialect = self.wire
        except UsageError as error:
            raise UsageError(f"dialect: {error}") from error
        if self.auth not in auths():
            raise UsageError(f"auth: write one of {', '.join(auths())}")
        pasted = self.endpoint.pasted if self.endpoint is not None else ""
        if pasted and self.base_url.rstrip("/").endswith(pasted):
            raise UsageError(f"base_url: leave `{pasted}` out; it is added to each request")
        for name, words in _WORDS.items():
            if getattr(self, name) not in words:
                raise UsageError(f"{name}: write one of {', '.join(words)}")
        if not set(self.text_calls) <= set(get_args(TextCalls)):
            raise UsageError(f"text_calls: write a list of any of {', '.join(get_args(TextCalls))}")
        if self.tool_search == "emulate":
            try:
                check_library("or leave tool_search out")
            except UsageError as error:
                raise UsageError(f"tool_search: {error}") from None
        check_model_like(self.model_like)
        if type(self.max_tokens) is not int or self.max_tokens < 1:
            raise UsageError("max_tokens: write a number above 0")
        _ = self.changes  # raises UsageError for an invalid path
        self._check_transport()
        self._check_key()
        self._check_azure(dialect)
        self._check_aws()
        self._check_google()
        self._check_headers()
        self._check_connection()

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes that ``drop`` and ``set`` make in each request."""
        return operator_changes(self.set, self.drop) if self.set or self.drop else ()

    def deferred_tools(self, request: Request, report: StreamReport) -> DeferredTools | None:
        """Return the deferred tools that the gateway searches for a request; None if there is nothing for it to search."""
        return deferred_tools(request, report) if self.tool_search == "emulate" else None

    @cached_property
    def learnt(self) -> Learnt:
        """The changes that this process has learned from requests that the upstream refused."""
        return Learnt()

    @cached_property
    def connection(self) -> ConnectionOptions:
        """The options of connections to this upstream. A copy in another process reads the files again."""
        return connection_options(
            self.base_url,
            proxy=self.proxy_url,
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
        )

    @property
    def proxy_url(self) -> str | None:
        """The proxy's URL, with its password if it has one."""
        return self.proxy.reveal() if isinstance(self.proxy, Secret) else self.proxy

    @property
    def every_key(self) -> tuple[Secret, ...]:
        """All keys of this upstream."""
        return self.keys if self.key is None else (self.key,)

    @cached_property
    def key_header(self) -> Mapping[str, str]:
        """The header with the key. Empty if there is no key."""
        if not self.every_key:
            return {}
        name, scheme = key_headers()[self.auth]
        return {name: scheme + self.every_key[0].reveal()}

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """The keys, the password of the proxy, and the values of the operator's headers, which may be keys."""
        private = [value for name, value in self.headers.items() if name not in _public()]
        without_scheme = [value.rpartition(" ")[2] for value in private]  # the part after `Bearer`
        return (*self.connection.secrets, *(key.reveal() for key in self.every_key), *private, *without_scheme)

    @cached_property
    def accounts(self) -> tuple[Upstream, ...]:
        """The upstream with each of its ``keys`` as its only key; if it has none, itself."""
        return tuple(evolve(self, key=key, keys=()) for key in self.keys) or (self,)

    @cached_property
    def wire(self) -> Dialect:
        """The dialect of this upstream."""
        return source_named(self.dialect)[0]

    @cached_property
    def provider(self) -> Provider | None:
        """The provider, if ``dialect`` names one; else None."""
        return source_named(self.dialect)[1]

    @cached_property
    def endpoint(self) -> Endpoint | None:
        """The dialect's HTTP endpoint. None: requests go to the base URL itself."""
        dialect, provider = source_named(self.dialect)
        return dialect.http.endpoint_of(provider)

    @cached_property
    def known_urls(self) -> dict[tuple[str, bool, str], tuple[URL, str]]:
        """URLs that were used, each with the path for a log, by model, stream and operation: see ``address``."""
        return {}

    @cached_property
    def known_headers(self) -> dict[bool, dict[str, str]]:
        """The request headers without features, for a stream and for a whole response: see ``request_headers``."""
        return {}

    @property
    def socket_endpoint(self) -> SocketEndpoint:
        """The dialect's WebSocket endpoint. Raises UsageError if the dialect has none."""
        socket = None if self.endpoint is None else self.endpoint.socket
        if socket is None:
            raise UsageError(f'transport: leave it out, or write "http"; {self.wire.name} has no WebSocket')
        return socket

    @cached_property
    def has_deployments(self) -> bool:
        """Whether URLs name an Azure deployment and an API version, as in Azure's API before ``/openai/v1``."""
        if not self._may_be_azure or self.base_url.rstrip("/").endswith("/openai/v1"):
            return False
        return self.auth == "azure" or self.api_version is not None

    @cached_property
    def token_count(self) -> TokenCount | None:
        """The operation that counts the tokens of a request.

        None: the dialect has none. A server may lack the operation too.
        """
        return None if self.endpoint is None or self.has_deployments else self.endpoint.count

    @property
    def compacting(self) -> Compacting | None:
        """The path at which the server compacts conversations. None: the dialect has none. A server may lack it too."""
        return None if self.endpoint is None or self.has_deployments else self.endpoint.compact

    @property
    def _may_be_azure(self) -> bool:
        return self.endpoint is not None and self.endpoint.deployment is not None

    def _check_transport(self) -> None:
        socket = None if self.transport == "http" else self.socket_endpoint
        if socket is not None and self.auth == "sigv4":
            raise UsageError('transport: leave it out, or write "http"; auth = "sigv4" signs requests with a body')

    def _check_key(self) -> None:
        name, keys = ("keys" if self.keys else "key"), self.every_key
        if self.key is not None and self.keys:
            raise UsageError("keys: write `key` or `keys`, not both")
        if self.auth in key_headers():
            if not keys:
                raise UsageError(f'key: auth = "{self.auth}" needs a key; write `auth = "none"` if there is no key')
            if not all(isinstance(key, Secret) for key in keys):
                raise UsageError(f'{name}: must be a Secret, which no log shows; write Secret("…")')
            if not all(HEADER_TEXT.fullmatch(key.reveal()) for key in keys):
                raise UsageError(
                    f"{name}: it is empty, or has a blank, a line break or a character that no header may contain"
                )
            if len(set(keys)) < len(keys):
                raise UsageError("keys: two of them are the same key; write each once")
        elif keys:
            raise UsageError(f'{name}: auth = "{self.auth}" sends no key; remove `{name}`, or choose another `auth`')

    def _check_azure(self, dialect: Dialect) -> None:
        if self.has_deployments and not self.api_version:
            raise UsageError("api_version: Azure needs a version, such as 2024-10-21; or end base_url with /openai/v1")
        if self.api_version is not None and not self._may_be_azure:
            raise UsageError(
                f"api_version: leave it out; only Azure's OpenAI has a version, and this is {dialect.name}"
            )

    def _check_aws(self) -> None:
        if self.auth != "sigv4":
            for name in ("region", "service"):
                if getattr(self, name) is not None:
                    raise UsageError(f'{name}: leave it out; only auth = "sigv4" needs a {name}')
            return
        if not _AWS_NAME.fullmatch(self.region or ""):
            raise UsageError('region: auth = "sigv4" needs a region, such as us-east-1')
        if self.service is not None and not _AWS_NAME.fullmatch(self.service):
            raise UsageError("service: write the service's name in signatures, such as execute-api, or leave it out")
        if find_spec("botocore") is None:
            raise UsageError("auth: sigv4 needs botocore, which is not installed: pip install 'streamkit-llm[aws]'")

    def _check_google(self) -> None:
        # packages before their submodules: a submodule's look-up imports them
        if self.auth == "google" and not all(map(find_spec, ("google", "google.auth", "requests"))):
            raise UsageError(
                "auth: google needs google-auth, which is not installed: pip install 'streamkit-llm[google]'"
            )

    def _check_connection(self) -> None:
        if isinstance(self.proxy, str) and "@" in self.proxy:
            raise UsageError(
                'proxy: a URL with user and password must be a Secret, which no log shows; write Secret("…")'
            )
        _ = self.connection  # made here, because no request should wait for files, and errors should be found at once

    def _check_headers(self) -> None:
        own: Any = key_headers().get(self.auth, (None,))[0]
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise UsageError(f"headers: {quoted(name)} is not a valid header name")
            if name in NOT_TO_SET or name.startswith("x-amz-"):
                raise UsageError(f"headers: leave {name} out; streamkit writes this header itself, or never sends it")
            if name == own or (name == "authorization" and self.auth in {"sigv4", "google"}):
                raise UsageError(
                    f'headers: leave {name} out, since auth = "{self.auth}" writes it; or write another `auth`'
                )
            if not HEADER_TEXT.fullmatch(value):
                raise UsageError(f"headers: the value of {name} is empty, or has characters that no header may contain")
