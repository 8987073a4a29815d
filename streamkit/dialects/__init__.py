"""The table of dialects, and the two stages that use it: ``decode`` and ``encode``.

To add a dialect, add its folder and its name in ``DIALECTS``; the recipes, the command line and every property test read this
table. A dialect in another package joins by an entry point, without a change here.
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

#: The built-in dialects. Dialects of other installed distributions join them by entry point: see ``registry.py``.
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
    """Return the dialect of that name. Raises UsageError with the known names, or the reason why an installed one fails."""
    try:
        return DIALECTS[name]
    except KeyError:
        if unusable := DIALECTS.named(name):
            raise unusable[0].error() from unusable[0].cause
        raise UsageError(f"no dialect is called {quoted(name)}; there are {', '.join(DIALECTS)}") from None


def source_named(name: str) -> tuple[Dialect, Provider | None]:
    """Return the source dialect, by its name or the name of a provider that speaks it (``"deepseek"``). Raises UsageError."""
    if (named := DIALECTS.get(name)) is not None:
        return named, None
    known = ((dialect, each) for dialect in DIALECTS.values() for each in dialect.providers if each.name == name)
    return next(known, None) or (dialect_named(name), None)


def prefill_of(name: str) -> Prefill | None:
    """Return how a source of that name continues a text; None if this is not known. Raises UsageError."""
    dialect, provider = source_named(name)
    return (provider and provider.prefill) or dialect.prefill


def client_named(name: str) -> tuple[Dialect, Profile]:
    """Return the target dialect, by its name or the name of a client that reads it (``"claude-code"``). Raises UsageError."""
    if (named := DIALECTS.get(name)) is not None:
        return named, DEFAULT_PROFILE
    known = ((dialect, each) for dialect in DIALECTS.values() for each in dialect.clients if each.name == name)
    return next(known, None) or (dialect_named(name), DEFAULT_PROFILE)


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
    """Return the stage after framing: it turns frames of ``dialect`` (or of a provider that speaks it) into wire events.

    Raises UsageError for an unknown name. The stage raises BrokenFrame, NotThisDialect and LimitExceeded, in the order of
    the stream.
    """
    return decode_frames(source_named(dialect)[0], limits, dialect)


def decode_frames(dialect: Dialect, limits: Limits, name: str) -> Stage[list[Frame], list[WireEvent]]:
    """Return the stage of ``decode`` for a dialect that was looked up by ``name``."""
    return Stage(f"decode {name}", partial(dialect.decoder, limits), takes="frames", gives="wire events")


def encode_by(name: str, dialect: Dialect, encoding: Encoding) -> EncodeStage[list[Event]]:
    """Return the stage of ``encode`` for a dialect that was looked up."""
    return EncodeStage(name, partial(dialect.encoder, encoding), takes="events")


def keep_alive(dialect: str, form: KeepAliveForm = "dialect") -> bytes:
    """Return the bytes to write to a client of ``dialect`` while its provider is silent, before or between events.

    ``form`` is the preferred form; if the dialect lacks it, its default form is returned. Clients that take every line for
    JSON need an ``event``; others fail at events that they do not know. Empty if no client would read any form. Raises
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
    """Return the last stage: it writes events as bytes of ``dialect``, or for a client that reads it.

    ``profile`` defaults to the profile of that client. A ``StreamError`` of an earlier stage ends the stream with the
    dialect's error frame and without its success terminator; it is in the report, and is not raised. Any other exception is
    raised after a generic error frame. Raises UsageError for an unknown name.
    """
    named, client = client_named(dialect)
    encoding = Encoding(limits=limits, profile=profile or client, make_id=make_id, clock=clock)
    return encode_by(f"encode {dialect}", named, encoding)
