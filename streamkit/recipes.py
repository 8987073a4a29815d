"""Stage order, in one place: bytes of one dialect to bytes of another, and bytes to a whole response."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable
from functools import cache, partial
from operator import is_
from typing import Any, Final

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Response
from streamkit.conversation.restore import ToolNames, restore_tools
from streamkit.dialects import client_named, decode_frames, encode_by, source_named
from streamkit.dialects.base import Dialect
from streamkit.dialects.profiles import DEFAULT_PROFILE, Encoding, Profile, Provider, report_for
from streamkit.dialects.streams.encode_stage import EncodeStage
from streamkit.errors import StreamError
from streamkit.events import Event
from streamkit.framing.frame import Frame
from streamkit.in_text import checked_stages
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Joined, Pipe, Stage, pipe
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions
from streamkit.report import StreamReport
from streamkit.translation.citations import carry_citations
from streamkit.translation.pass_through import PASSES, PassThrough
from streamkit.translation.web_searches import carry_searches

#: The provider, the options, the profile and the clock of most pipes.
USUAL: Final = None, DEFAULT_OPTIONS, DEFAULT_PROFILE, time.time


def events_of(
    source: AsyncIterable[bytes],
    dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    report: StreamReport | None = None,
    join: bool = False,
    timings: bool = False,
) -> Pipe[list[Event]]:
    """Bytes of a dialect as checked events: the pipe that ``collect`` and ``inspect`` read.

    ``join`` as in ``transcode``, ``timings`` as in ``pipe``.
    """
    named, provider = source_named(dialect)
    stages = reading_stages(named, provider, options, join=join)
    return Pipe(source, tuple(stages), report_for(provider, report), timings=timings)


def client_events(
    source: AsyncIterable[bytes],
    from_dialect: str,
    to_dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[list[Event]]:
    """Bytes of a dialect as the events that ``transcode`` writes for a client: its tools have their names, and it can cite.

    ``timings`` as in ``pipe``.
    """
    dialect, provider = source_named(from_dialect)
    stages = _translating(dialect, provider, client_named(to_dialect)[0], options, join=True)
    return Pipe(source, tuple(stages), report_for(provider, report), timings=timings)


def _translating(
    dialect: Dialect, provider: Provider | None, target: Dialect, options: ReadOptions, *, join: bool
) -> list[Stage[Any, Any]]:
    """The stages from bytes to the events that are written."""
    limits, offered = options.limits, options.offered
    stages = reading_stages(dialect, provider, options, join=join)
    if offered and ToolNames.of(offered):
        stages.append(restore_tools(offered, limits=limits))
    carried = carry_searches(dialect, target, offered, limits=limits), carry_citations(dialect, target, limits=limits)
    stages += [stage for stage in carried if stage is not None]
    return stages


def reading_stages(
    dialect: Dialect, provider: Provider | None, options: ReadOptions, *, join: bool
) -> list[Stage[Any, Any]]:
    """Return the stages from bytes to checked events, of which the first is the parser. Raises UsageError for a bad schema."""
    limits = options.limits
    return [
        _parse(dialect, limits),
        decode_frames(dialect, limits, dialect.name),
        *checked_stages(options, provider, join=join),
    ]


def parse(dialect: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """The framing stage of a dialect, with the tolerances that its providers need."""
    return _parse(source_named(dialect)[0], limits)


def _parse(dialect: Dialect, limits: Limits) -> Stage[bytes, list[Frame]]:
    return Stage(f"parse {dialect.name}", partial(dialect.parser, limits), takes="bytes", gives="frames")


def transcode(
    source: AsyncIterable[bytes],
    from_dialect: str,
    to_dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    report: StreamReport | None = None,
    profile: Profile | None = None,
    reencode: bool = False,
    join: bool = True,
    clock: Callable[[], float] = time.time,
    timings: bool = False,
) -> Pipe[bytes]:
    """The whole recipe: bytes of one dialect in, bytes of another out.

    Either name is a dialect's, a provider's (``"deepseek"``) or a client's (``"claude-code"``). Within one dialect the frames
    pass byte for byte while they are watched for the report, but for usage that ``profile`` did not ask for and a model
    that is not named where ``profile`` has one; ``reencode=True``, or a profile that changes what is written,
    decodes and encodes them all the same, which mends what the provider broke; so does a policy that reads what stands in the
    text (``think_tags="on"``, ``text_calls``). What one read brought of one block or call
    leaves as one delta, which costs everybody less and holds nothing back; ``join=False`` keeps the provider's own deltas.
    ``options`` say what is tolerated and which tools the client offered, ``profile`` varies what is written and is the
    client's by default; ``clock`` gives seconds since the epoch, for a response that came without a time. ``timings`` as in
    ``pipe``.
    Raises UsageError for an unknown name or a bad schema; everything else that can go wrong is told in the output and in the
    report.
    """
    dialect, provider = source_named(from_dialect)
    target, client = client_named(to_dialect)
    report = report_for(provider, report)
    asked = provider, options, profile or client, clock
    if dialect is not target and all(map(is_, asked, USUAL)):
        return Pipe(source, _usual_stages(dialect, target, join=join), report, timings=timings)
    policy = options.policy
    encoding = Encoding(limits=options.limits, profile=profile or client, make_id=options.make_id, clock=clock)
    if dialect is target and not reencode and encoding.profile.changes.keys() <= PASSES and not policy.reads_text:
        schemas = options.schemas()
        return pipe(
            source,
            EncodeStage(
                f"pass {dialect.name} through", lambda report: PassThrough(dialect, encoding, policy, report, schemas)
            ),
            report=report,
            timings=timings,
        )
    stages = _translating(dialect, provider, target, options, join=join)
    stages.append(encode_by(f"encode {to_dialect}", target, encoding))
    return Pipe(source, tuple(stages), report, timings=timings)


@cache
def _usual_stages(dialect: Dialect, target: Dialect, *, join: bool) -> tuple[Stage[Any, Any]]:
    """The stages between two dialects where nothing else was asked for: made once, in a third of the time of a pipe."""
    stages = _translating(dialect, None, target, DEFAULT_OPTIONS, join=join)
    return (Joined(*stages, encode_by(f"encode {target.name}", target, Encoding())),)


async def collect(
    source: AsyncIterable[bytes],
    dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Response:
    """Read a stream of ``dialect`` to its end: one whole response with verdicts, usage and report.

    A stream that was cut or that failed is no exception: what arrived is in the response, ``clean`` is False, and
    ``report.status`` says what happened. ``timings`` as in ``pipe``. Raises UsageError for an unknown dialect or a bad schema.
    """
    async with events_of(source, dialect, options, report=report, join=True, timings=timings) as stream:
        collector = Collector(source_named(dialect)[0].name, stream.report, options.limits)
        try:
            async for batch in stream:
                collector.feed(batch)
        except StreamError as error:
            stream.report.interrupted(error)
    return collector.finish()
