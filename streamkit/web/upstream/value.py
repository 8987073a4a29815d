"""What an upstream is, as a value that is checked when it is made.

What can't work is told there and not at the first request: each error begins with the field and says what to write instead. No
error and no ``repr`` shows a key, nor the value of a header, which may be one.

Source: limits.md T5, T6, T7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import Attribute, field, frozen
from yarl import URL

from streamkit.dialects import key_headers, source_named
from streamkit.dialects.base import Dialect
from streamkit.dialects.http import KEY_HEADERS, Endpoint, SocketEndpoint, TokenCount
from streamkit.dialects.profiles import DEFAULT_MAX_TOKENS, Provider
from streamkit.errors import UsageError
from streamkit.policy import AssistantFirst, AssistantLast, TextCalls, ThinkTags
from streamkit.text.quoting import quoted
from streamkit.web.source import DEFAULT_TIMEOUTS, Timeouts
from streamkit.web.upstream.secret import Secret

#: How a request shows that it may be made: ``none``, ``sigv4``, ``google``, one of ``KEY_HEADERS``, or a way of a dialect's
#: own (``Endpoint.keys``). ``azure`` is the header ``api-key``, and Azure's addresses for deployments.
Auth: TypeAlias = str


#: What can stand in a header: printable ASCII without blanks at its ends (RFC 9110 §5.5 leaves the rest to luck).
HEADER_TEXT: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
#: Headers that belong to one connection or to the body, and that ``send`` writes or nobody does (T7).
NOT_TO_SET: Final = frozenset({
    "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect", "host",
    "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
#: As ``LinkedMedia``, or ``fetch``: they are fetched, and put into the request.
FetchedMedia: TypeAlias = Literal["refuse", "fetch", "drop"]
#: How answers are asked for.
Transport: TypeAlias = Literal["http", "websocket"]
_NAME: Final = re.compile(r"[\w.:-]+", re.ASCII)
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2


def auths() -> tuple[Auth, ...]:
    """Every way to show that a request may be made."""
    return "none", *KEY_HEADERS, "sigv4", "google", *(name for name in key_headers() if name not in KEY_HEADERS)


def _is_installed(*modules: str) -> bool:
    """Whether all of them can be imported, a package before what is in it: looking for that imports the package."""
    return all(find_spec(name) is not None for name in modules)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _is_base_url(_upstream: Upstream, _field: Attribute[str], text: str) -> None:
    if re.search(r"[\s\\\x00-\x1f\x7f]", text) or not text.startswith(("http://", "https://")):
        raise UsageError("base_url: write a whole address that begins with https:// or http://, as https://host/v1")
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise UsageError("base_url: leave user and password out; a key belongs into `key`")
    if "?" in text or "#" in text:
        raise UsageError("base_url: leave out what begins with `?` or `#`; Azure's version belongs into `api_version`")
    try:
        url = URL(text)
        known = bool(url.host) and url.port != 0
    except ValueError as error:
        raise UsageError("base_url: its host or port can't be read; write it as https://host:port/path") from error
    if not known:
        raise UsageError("base_url: it names no host; write it as https://host/v1")


@frozen(kw_only=True)
class Upstream:
    """One place that answers requests. Raises UsageError for a value that can't work; its message begins with the field."""

    name: str = field(metadata={"no_key": True})  # a configuration has it as the name of the table
    #: A dialect, or a provider that speaks one (``"deepseek"``).
    dialect: str
    #: As the provider's own client takes it: ``"https://api.openai.com/v1"``.
    base_url: str = field(validator=_is_base_url)
    auth: Auth = "bearer"
    #: None for ``none``, and for ``sigv4`` and ``google``, which take credentials from where AWS's and Google's own tools find
    #: them.
    key: Secret | None = None
    #: Azure: the query parameter ``api-version``.
    api_version: str | None = None
    #: How answers are asked for: each by a `POST`, or in a message of a WebSocket of its own, where the dialect has that.
    #: Tokens are counted over HTTP in any case.
    transport: Transport = "http"
    #: SigV4: the region that the signature is for.
    region: str | None = None
    #: False where it has no support for tools.
    tools: bool = True
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    #: Constant headers of the operator's own, such as OpenRouter's ``HTTP-Referer``. Names are in lower case.
    headers: Mapping[str, str] = field(factory=dict, converter=_lower, repr=lambda headers: f"<{', '.join(headers)}>")
    #: Written where a dialect demands a bound and the request has none.
    max_tokens: int = DEFAULT_MAX_TOKENS
    #: Imitate what the dialect lacks instead of refusing it.
    emulate: bool = True
    #: What becomes of a history that begins with the assistant, for a dialect that refuses one: a short turn of the user in
    #: front of it (``bridge``), or an error (``refuse``).
    assistant_first: AssistantFirst = "bridge"
    #: What becomes of a history that ends with the assistant's text, for a model that does not go on with it: a short turn of
    #: the user after it (``bridge``), or an error (``refuse``).
    assistant_last: AssistantLast = "bridge"
    #: What becomes of media at a URL, for a dialect that takes none: an error (``refuse``), the media themselves, which are
    #: fetched over https from public addresses alone (``fetch``), or a counted loss (``drop``).
    linked_media: FetchedMedia = "refuse"
    #: Thinking that stands in the text between tags (`<think>…</think>`), as reasoning. `auto`: as the policy says, which is
    #: so for providers that are known to send it, where the client speaks another dialect. `on`: in any case. `opened`: in any
    #: case, and the text begins with thinking though no tag opens it, since the server's template opened it in the prompt.
    #: `off`: it stays text.
    think_tags: ThinkTags = "auto"
    #: Calls that its models write into their text, as calls: the grammars to look for. Only the request's tools are called.
    text_calls: tuple[TextCalls, ...] = ()
    #: Whether requests to it say which trace they belong to (`traceparent`), where traces are sent (`[telemetry]`).
    propagate_trace: bool = True

    def __attrs_post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError("name: write letters, digits and any of `.`, `:`, `-`, `_`; logs and metrics show it")
        try:
            dialect = self.wire
        except UsageError as error:
            raise UsageError(f"dialect: {error}") from error
        if self.auth not in auths():
            raise UsageError(f"auth: write one of {', '.join(auths())}")
        pasted = self.endpoint.pasted if self.endpoint is not None else ""
        if pasted and self.base_url.rstrip("/").endswith(pasted):
            raise UsageError(f"base_url: leave `{pasted}` out; it is added to each request")
        if self.think_tags not in get_args(ThinkTags):
            raise UsageError(f"think_tags: write one of {', '.join(get_args(ThinkTags))}")
        if not set(self.text_calls) <= set(get_args(TextCalls)):
            raise UsageError(f"text_calls: write any of {', '.join(get_args(TextCalls))}, in a list")
        if self.max_tokens < 1:
            raise UsageError("max_tokens: write a number above 0")
        self._check_transport()
        self._check_key()
        self._check_azure(dialect)
        self._check_aws()
        self._check_google()
        self._check_headers()

    @property
    def wire(self) -> Dialect:
        """The dialect that is spoken."""
        return source_named(self.dialect)[0]

    @property
    def provider(self) -> Provider | None:
        """Who speaks it, where ``dialect`` names a provider."""
        return source_named(self.dialect)[1]

    @property
    def endpoint(self) -> Endpoint | None:
        """How its dialect is asked over HTTP; None: at the base URL."""
        dialect, provider = source_named(self.dialect)
        return dialect.http.endpoint_of(provider)

    @property
    def socket_endpoint(self) -> SocketEndpoint:
        """How it is asked over a WebSocket. Raises UsageError where its dialect has no way to."""
        socket = None if self.endpoint is None else self.endpoint.socket
        if socket is None:
            raise UsageError(f'transport: leave it out, or write "http"; {self.wire.name} is asked in no other way')
        return socket

    @property
    def has_deployments(self) -> bool:
        """Whether the address has Azure's deployments and a version, as before Azure's ``/openai/v1``."""
        if not self._may_be_azure or self.base_url.rstrip("/").endswith("/openai/v1"):
            return False
        return self.auth == "azure" or self.api_version is not None

    @property
    def token_count(self) -> TokenCount | None:
        """How it counts the tokens of a request; None: its dialect has no operation for it. Its server may lack it, too."""
        return None if self.endpoint is None or self.has_deployments else self.endpoint.count

    @property
    def _may_be_azure(self) -> bool:
        return self.endpoint is not None and self.endpoint.deployment is not None

    def _check_transport(self) -> None:
        if self.transport not in get_args(Transport):
            raise UsageError(f"transport: write one of {', '.join(get_args(Transport))}")
        socket = None if self.transport == "http" else self.socket_endpoint
        if socket is not None and self.auth == "sigv4":
            raise UsageError('transport: leave it out, or write "http"; auth = "sigv4" signs requests with a body')

    def _check_key(self) -> None:
        if self.auth in key_headers():
            if self.key is None:
                raise UsageError(f'key: auth = "{self.auth}" needs one; write `auth = "none"` if there is none')
            if not HEADER_TEXT.fullmatch(self.key.reveal()):
                raise UsageError("key: it is empty, or has a blank, a line break or a letter that no header can carry")
        elif self.key is not None:
            raise UsageError(f'key: auth = "{self.auth}" sends none; leave it out, or write another `auth`')

    def _check_azure(self, dialect: Dialect) -> None:
        if self.has_deployments and not self.api_version:
            raise UsageError("api_version: Azure needs one, as 2024-10-21; or let base_url end with /openai/v1")
        if self.api_version is not None and not self._may_be_azure:
            raise UsageError(f"api_version: leave it out; only Azure's OpenAI has one, and this is {dialect.name}")

    def _check_aws(self) -> None:
        if self.auth != "sigv4":
            if self.region is not None:
                raise UsageError('region: leave it out; only auth = "sigv4" needs one')
            return
        if not re.fullmatch(r"[a-z0-9-]+", self.region or ""):
            raise UsageError('region: auth = "sigv4" needs one, as us-east-1')
        if find_spec("botocore") is None:
            raise UsageError("auth: sigv4 signs by botocore, which is not installed: pip install 'streamkit-llm[aws]'")

    def _check_google(self) -> None:
        if self.auth == "google" and not _is_installed("google", "google.auth", "requests"):
            raise UsageError(
                "auth: google has its tokens from google-auth, which is not installed: pip install 'streamkit-llm[google]'"
            )

    def _check_headers(self) -> None:
        own: Any = key_headers().get(self.auth, (None,))[0]
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise UsageError(f"headers: {quoted(name)} can't be a header's name")
            if name in NOT_TO_SET or name.startswith("x-amz-"):
                raise UsageError(f"headers: leave {name} out; it is written for each request, or never")
            if name == own or (name == "authorization" and self.auth in {"sigv4", "google"}):
                raise UsageError(
                    f'headers: leave {name} out, since auth = "{self.auth}" writes it; or write another `auth`'
                )
            if not HEADER_TEXT.fullmatch(value):
                raise UsageError(f"headers: the value of {name} is empty, or can't be sent as it is")
