"""The table of dialects, and the two stages that use it: ``decode`` and ``encode``.

To add a dialect, add its folder and its name in ``DIALECTS``; the recipes, the command line and every property test read this
table. Another installed distribution adds a dialect by an entry point of the group ``streamkit.dialects``:
``workers-ai = "workers_ai:DIALECT"``. Metadata is read when a name is not built in, and a package is imported when its
dialect is requested; both happen once. An entry point that cannot be used adds no dialect, and ``candidates`` gives the
reason. Built-in dialects are never replaced, so installing a package changes nothing for code that does not name its dialect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from attrs import frozen

from streamkit.dialects.base import Dialect
from streamkit.dialects.http import KEY_HEADERS, Endpoint
from streamkit.dialects.profiles import DEFAULT_PROFILE, Encoding, KeepAliveForm, Prefill, Profile, Provider
from streamkit.dialects.streams.encode_stage import EncodeStage
from streamkit.errors import UsageError, check_type, check_words
from streamkit.events import Event, WireEvent
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import describe
from streamkit.text.identifiers import random_id
from streamkit.text.quoting import meant, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "streamkit.dialects"


@frozen(kw_only=True)
class Candidate:
    """An entry point, and either its ``dialect`` or the ``reason`` why it cannot be used."""

    name: str
    value: str  #: ``package.module:DIALECT``
    distribution: str
    version: str
    dialect: Dialect | None = None
    reason: str = ""
    cause: Exception | None = None  #: the exception that the import raised

    def error(self) -> UsageError:
        """Return the error for a request of this dialect."""
        return UsageError(
            f"the dialect {self.name!r} of {self.distribution} {self.version} (entry point {self.name} = {self.value}) "
            f"cannot be used: {self.reason}"
        )


def installed() -> Iterable[EntryPoint]:
    """Return the entry points of the group, from all distributions in the environment."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 13 ms, and most programs never ask

    return entry_points(group=GROUP)


class BuiltIn(Mapping[str, Dialect]):
    """The built-in dialects by name. A package is imported when its dialect is looked up, not when names are listed."""

    def __init__(self, *names: str) -> None:
        self._loaded: dict[str, Dialect | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Dialect:
        try:
            found = self._loaded[name]
        except TypeError:  # a list or a dict in the place of a name
            raise KeyError(name) from None
        if found is None:
            package = import_module(f"streamkit.dialects.{name.replace('-', '_')}")
            found = self._loaded[name] = cast(Dialect, package.DIALECT)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)


class Registry(Mapping[str, Dialect]):
    """Dialects by name, the built-in ones first. Iterating over them imports the packages of other distributions."""

    def __init__(self, built_in: Mapping[str, Dialect], find: Callable[[], Iterable[EntryPoint]] = installed) -> None:
        self.built_in = built_in
        self.find = find
        self._tried: dict[str, tuple[Candidate, ...]] = {}

    def __getitem__(self, name: Any) -> Dialect:
        try:
            return self.built_in[name]
        except KeyError:
            pass
        for candidate in self.named(name) if isinstance(name, str) else ():
            if candidate.dialect is not None:
                return candidate.dialect
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from (candidate.name for candidate in self.candidates() if candidate.dialect is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def candidates(self) -> list[Candidate]:
        """Return the result for each entry point, sorted by name."""
        return [candidate for name in sorted(self._points) for candidate in self.named(name)]

    def named(self, name: str) -> tuple[Candidate, ...]:
        """Return the results for the entry points with this name. Empty if there are none."""
        if name not in self._tried:
            points = self._points.get(name, [])
            self._tried[name] = tuple(self._try(point, points) for point in points)
        return self._tried[name]

    @cached_property
    def _points(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in self.find():
            found.setdefault(point.name, []).append(point)
        return found

    def _try(self, point: EntryPoint, points: list[EntryPoint]) -> Candidate:
        dialect, reason, cause = None, "", None
        if point.name in self.built_in:
            reason = "a built-in dialect has that name"
        elif len(points) > 1:
            reason = f"several distributions provide it: {', '.join(sorted(_origin(other)[0] for other in points))}"
        else:
            try:
                dialect = point.load()
            except Exception as error:  # noqa: BLE001 - another package's code: whatever it raises concerns its dialect only
                reason, cause = describe(error), error
            else:
                reason = _objection(point.name, dialect)
        distribution, version = _origin(point)
        return Candidate(
            name=point.name,
            value=point.value,
            distribution=distribution,
            version=version,
            dialect=None if reason else dialect,
            reason=reason,
            cause=cause,
        )


def _objection(name: str, dialect: object) -> str:
    """Return the reason why an object is not a dialect of that name. Empty if it is one."""
    if not isinstance(dialect, Dialect):
        return f"it must be a Dialect, not {type(dialect).__name__}"
    if dialect.name != name:
        return f"the dialect is named {dialect.name!r}"
    return ""


def _origin(point: EntryPoint) -> tuple[str, str]:
    """Return the name and version of the distribution that an entry point belongs to."""
    return (point.dist.name, point.dist.version) if point.dist is not None else ("an unknown distribution", "")


DIALECTS = Registry(
    BuiltIn(
        "openai-chat",
        "openai-responses",
        "anthropic",
        "ollama",
        "cohere",
        "mistral",
        "bedrock",
        "gemini",
        "gemini-interactions",
        "ag-ui",
        "ai-sdk",
    )
)


#: Words that people use for a dialect, for the messages about unknown names.
SAID_FOR: Final[Mapping[str, str]] = {
    "claude": "anthropic",
    "gpt": "openai-chat",
    "chatgpt": "openai-chat",
    "google": "gemini",
}
#: What has a name besides the dialects: the values of a dialect that have names.
_OTHERS: Final[Mapping[str, Callable[[Dialect], Iterable[Provider | Profile]]]] = {
    "provider": lambda dialect: dialect.providers,
    "client": lambda dialect: dialect.clients,
}


def dialect_named(name: str, *others: Literal["provider", "client"]) -> Dialect:
    """Return the dialect of that name. Raises UsageError that says what to write, or why an installed dialect fails.

    The caller has looked for one of the ``others`` with that name.
    """
    try:
        return DIALECTS[name]
    except KeyError:
        check_type("the name of a dialect", name, str, "'openai-chat', for example")
    if unusable := DIALECTS.named(name):
        raise unusable[0].error() from unusable[0].cause
    what = f"no {' or '.join(['dialect', *others])} is called {quoted(name)}"
    named = {
        kind: {each.name: dialect.name for dialect in DIALECTS.values() for each in having(dialect)}
        for kind, having in _OTHERS.items()
    }
    for kind, dialects in named.items():
        if name in dialects:
            raise UsageError(f"{what}: it is a {kind}; write its dialect, {quoted(dialects[name])}")
    lists = {"dialects": [*DIALECTS], **{f"{kind}s": [*named[kind]] for kind in others}}
    known = "".join(f"; the {kind} are {', '.join(names)}" for kind, names in lists.items())
    raise UsageError(what + (meant(SAID_FOR.get(name, name), chain(*lists.values())) or known))


def source_named(name: str) -> tuple[Dialect, Provider | None]:
    """Return the source dialect, by its name or the name of a provider that speaks it (``"deepseek"``). Raises UsageError."""
    try:
        return DIALECTS[name], None
    except KeyError:
        pass
    known = ((dialect, each) for dialect in DIALECTS.values() for each in dialect.providers if each.name == name)
    return next(known, None) or (dialect_named(name, "provider"), None)


def prefill_of(name: str) -> Prefill | None:
    """Return how a source of that name continues a text; None if this is not known. Raises UsageError."""
    dialect, provider = source_named(name)
    return (provider and provider.prefill) or dialect.prefill


def client_named(name: str) -> tuple[Dialect, Profile]:
    """Return the target dialect, by its name or the name of a client that reads it (``"claude-code"``). Raises UsageError."""
    try:
        return DIALECTS[name], DEFAULT_PROFILE
    except KeyError:
        pass
    known = ((dialect, each) for dialect in DIALECTS.values() for each in dialect.clients if each.name == name)
    return next(known, None) or (dialect_named(name, "client"), DEFAULT_PROFILE)


def endpoints() -> Iterator[Endpoint]:
    """Yield the endpoint of each dialect that has one, and the endpoints of providers that differ."""
    for dialect in DIALECTS.values():
        if dialect.http.endpoint is not None:
            yield dialect.http.endpoint
        yield from dialect.http.endpoints.values()


@cache
def key_headers() -> Mapping[str, tuple[str, str]]:
    """Return the header and the text before the key, for each way to send a key, including the ways of single dialects."""
    return {**KEY_HEADERS, **{name: key for endpoint in endpoints() for name, key in endpoint.keys.items()}}


def decode(dialect: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[list[Frame], list[WireEvent]]:
    """Create a stage that turns frames into wire events. ``dialect`` is the name of a dialect or of a known provider.

    Raises UsageError for an unknown name. If a frame has a fault, the stage yields the events before the fault, and
    then raises BrokenFrame, NotThisDialect or LimitExceeded.
    """
    return decode_frames(source_named(dialect)[0], limits, dialect)


def decode_frames(dialect: Dialect, limits: Limits, name: str) -> Stage[list[Frame], list[WireEvent]]:
    """Return the stage of ``decode`` for a dialect that was looked up by ``name``."""
    return Stage(f"decode {name}", partial(dialect.decoder, limits), takes="frames", gives="wire events")


def encode_by(name: str, dialect: Dialect, encoding: Encoding) -> EncodeStage[list[Event]]:
    """Return the stage of ``encode`` for a dialect that was looked up."""
    return EncodeStage(name, partial(dialect.encoder, encoding), takes="events")


_KEEP_ALIVE_FORMS: Final = get_args(KeepAliveForm)


def keep_alive(dialect: str, form: KeepAliveForm = "dialect") -> bytes:
    """Return the bytes to write to a client of ``dialect`` while its provider is silent, before or between events.

    ``form`` is the preferred form; if the dialect lacks it, its default form is returned. Clients that take every line for
    JSON need an ``event``; others fail at events that they do not know. Empty if no client would read any form. Raises
    UsageError for an unknown name.
    """
    check_words("keep_alive: form", [form], _KEEP_ALIVE_FORMS)
    forms = client_named(dialect)[0].keep_alive
    own = next(iter(forms.values()), b"")
    return own if form == "dialect" else forms.get(form, own)


def encode(
    dialect: str,
    *,
    profile: Profile | None = None,
    limits: Limits = DEFAULT_LIMITS,
    make_id: Callable[[str], str] = random_id,
    clock: Callable[[], float] = time.time,
) -> Stage[list[Event], bytes]:
    """Create the last stage of a pipe, which turns events into bytes. ``dialect`` is the name of a dialect or of a
    known client.

    The default of ``profile`` is the profile of the named client. If an earlier stage raises a ``StreamError``, the
    stage writes the dialect's error frame, and no terminator that means success. The report then has the error, and the
    error is not raised again. For any other exception, the stage writes a generic error frame, and then raises the
    exception. Raises UsageError for an unknown name.
    """
    named, client = client_named(dialect)
    encoding = Encoding(limits=limits, profile=profile or client, make_id=make_id, clock=clock)
    return encode_by(f"encode {dialect}", named, encoding)
