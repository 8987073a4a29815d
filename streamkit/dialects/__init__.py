"""The table of dialects, and the two stages that use it: ``decode`` and ``encode``.

Adding a dialect touches its own folder and ``DIALECTS``; the recipes, the command line and every property test read the
table. A dialect of somebody else's package touches nothing here: it joins by an entry point.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from streamkit.dialects.base import Dialect
from streamkit.dialects.http import KEY_HEADERS, Endpoint
from streamkit.dialects.profiles import DEFAULT_PROFILE, Encoding, KeepAliveForm, Prefill, Profile, Provider
from streamkit.dialects.registry import BuiltIn, Registry
from streamkit.dialects.streams.encode_stage import EncodeStage
from streamkit.errors import UsageError
from streamkit.events import Event, WireEvent
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.text.identifiers import random_id
from streamkit.text.quoting import quoted

#: The built-in dialects. Those of other installed distributions join them by entry point: see ``registry.py``.
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


def dialect_named(name: str) -> Dialect:
    """The dialect of that name. Raises UsageError: with what is wrong with an installed one, or with the names there are."""
    try:
        return DIALECTS[name]
    except KeyError:
        if unusable := DIALECTS.named(name):
            raise unusable[0].error() from unusable[0].cause
        raise UsageError(f"no dialect is called {quoted(name)}; there are {', '.join(DIALECTS)}") from None


def source_named(name: str) -> tuple[Dialect, Provider | None]:
    """What comes in, named as a dialect or as a provider that speaks one (``"deepseek"``). Raises UsageError."""
    if (named := DIALECTS.get(name)) is not None:
        return named, None
    known = ((dialect, each) for dialect in DIALECTS.values() for each in dialect.providers if each.name == name)
    return next(known, None) or (dialect_named(name), None)


def prefill_of(name: str) -> Prefill | None:
    """How a source of that name goes on with a text; None: it is not known to. Raises UsageError."""
    dialect, provider = source_named(name)
    return (provider and provider.prefill) or dialect.prefill


def client_named(name: str) -> tuple[Dialect, Profile]:
    """What goes out, named as a dialect or as a client that reads one (``"claude-code"``). Raises UsageError."""
    if (named := DIALECTS.get(name)) is not None:
        return named, DEFAULT_PROFILE
    known = ((dialect, each) for dialect in DIALECTS.values() for each in dialect.clients if each.name == name)
    return next(known, None) or (dialect_named(name), DEFAULT_PROFILE)


def endpoints() -> Iterator[Endpoint]:
    """How servers are asked, of each dialect that says it, and of providers that are asked in another way."""
    for dialect in DIALECTS.values():
        if dialect.http.endpoint is not None:
            yield dialect.http.endpoint
        yield from dialect.http.endpoints.values()


@cache
def key_headers() -> Mapping[str, tuple[str, str]]:
    """By the way to show a key, its header and what stands in front of it, those of every dialect included."""
    return {**KEY_HEADERS, **{name: key for endpoint in endpoints() for name, key in endpoint.keys.items()}}


def decode(dialect: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[list[Frame], list[WireEvent]]:
    """The stage after framing: what each frame of ``dialect`` (or of a provider that speaks it) says, as wire events.

    Raises UsageError for an unknown name; the stage raises BrokenFrame, NotThisDialect and LimitExceeded in the order of
    the stream.
    """
    return decode_frames(source_named(dialect)[0], limits, dialect)


def decode_frames(dialect: Dialect, limits: Limits, name: str) -> Stage[list[Frame], list[WireEvent]]:
    """The stage that ``decode`` gives, of a dialect that was looked up by ``name``."""
    return Stage(f"decode {name}", partial(dialect.decoder, limits), takes="frames", gives="wire events")


def encode_by(name: str, dialect: Dialect, encoding: Encoding) -> EncodeStage[list[Event]]:
    """The stage that ``encode`` gives, of a dialect that was looked up."""
    return EncodeStage(name, partial(dialect.encoder, encoding), takes="events")


def keep_alive(dialect: str, form: KeepAliveForm = "dialect") -> bytes:
    """What to write to a client of ``dialect`` while its provider is silent, between two events and before the first.

    ``form`` is the one to write where the dialect has it, else the dialect's own is written. Clients that take every line for
    JSON want an ``event``, others stumble over events that they do not know. Empty if no client would read any. Raises
    UsageError for an unknown name.
    """
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
    """The last stage: events as bytes of ``dialect``, or of a client that reads it, whose ``profile`` is then the default.

    A ``StreamError`` of the stages before ends the stream with the dialect's own error frame and without its success
    terminator, and stands in the report; it is not raised. Any other exception is raised after a generic error frame.
    Raises UsageError for an unknown name.
    """
    named, client = client_named(dialect)
    encoding = Encoding(limits=limits, profile=profile or client, make_id=make_id, clock=clock)
    return encode_by(f"encode {dialect}", named, encoding)
