"""The order of the stages: from bytes of one dialect to bytes of another, and from bytes to a whole response."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable, Sequence
from functools import cache, partial
from operator import is_
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Response
from streamkit.conversation.restore import ToolNames, restore_calls
from streamkit.dialects import client_named, decode_frames, encode_by, source_named
from streamkit.dialects.base import Dialect
from streamkit.dialects.profiles import DEFAULT_PROFILE, Encoding, Profile, Provider, report_for
from streamkit.dialects.streams.encode_stage import EncodeStage
from streamkit.errors import StreamError, check_type
from streamkit.events import Event
from streamkit.framing.frame import Frame
from streamkit.in_text import checked_stages
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Joined, Pipe, Stage, StageFunction, pipe, stage_within
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions, check_options
from streamkit.report import StreamReport
from streamkit.rewrite.given import EventStage
from streamkit.tool_calls.check import UncheckedChecker
from streamkit.tool_calls.output import check_output
from streamkit.translation.citations import carry_citations, carry_searches
from streamkit.translation.pass_through import PASSES, PassThrough
from streamkit.translation.tool_searches import carry_tool_searches

USUAL: Final = None, DEFAULT_OPTIONS, DEFAULT_PROFILE, time.time  #: what most pipes have


def events_of(
    source: AsyncIterable[bytes],
    dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    stages: Sequence[EventStage] = (),
    report: StreamReport | None = None,
    join: bool = False,
    timings: bool = False,
) -> Pipe[list[Event]]:
    """Return a pipe from the bytes of a dialect to checked events. ``collect`` and ``inspect`` read this pipe.

    ``stages`` and ``join`` are as in ``transcode``, ``timings`` as in ``pipe``.
    """
    check_options(options)
    named, provider = source_named(dialect)
    reading = reading_stages(named, provider, options_before(stages, options), join=join)
    return Pipe(source, (*reading, *own_stages(stages, options)), report_for(provider, report), timings=timings)


def own_stages(stages: Sequence[EventStage], options: ReadOptions) -> Sequence[StageFunction[Any, Any]]:
    """Return the user's stages, one that checks the calls whose arguments they changed, and one that checks the output."""
    if not stages:
        return ()
    check_type("stages", stages, Sequence, "stages=[…]")
    limits, schemas = options.limits, options.schemas()
    check = partial(UncheckedChecker, limits=limits, tools=schemas)
    calls = stage_within("events", "check_json", lambda report: check(report=report))
    output = () if options.output is None else (check_output(options.output, limits=limits),)
    return *stages, calls, *output


def options_before(stages: Sequence[EventStage], options: ReadOptions) -> ReadOptions:
    """Return the options for the stages before the user's: those may change the text, so it is checked after them."""
    return evolve(options, output=None) if stages else options


def client_events(
    source: AsyncIterable[bytes],
    from_dialect: str,
    to_dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[list[Event]]:
    """Return a pipe from bytes to the events that ``transcode`` encodes for a client, with its tool names and citations.

    ``timings`` is as in ``pipe``.
    """
    dialect, provider = source_named(from_dialect)
    stages = _translating(dialect, provider, client_named(to_dialect)[0], options, join=True)
    return Pipe(source, tuple(stages), report_for(provider, report), timings=timings)


def _translating(
    dialect: Dialect, provider: Provider | None, target: Dialect, options: ReadOptions, *, join: bool
) -> list[Stage[Any, Any]]:
    limits, offered = options.limits, options.client_tools
    stages = reading_stages(dialect, provider, options, join=join)
    if offered and ToolNames.of(offered):
        stages.append(restore_calls(offered, limits=limits))
    carried = (
        carry_searches(dialect, target, offered, limits=limits),
        carry_tool_searches(dialect, target, offered, limits=limits),
        carry_citations(dialect, target, documents=options.documents, limits=limits),
    )
    stages += [stage for stage in carried if stage is not None]
    return stages


def reading_stages(
    dialect: Dialect, provider: Provider | None, options: ReadOptions, *, join: bool
) -> list[Stage[Any, Any]]:
    """Return the stages from bytes to checked events; the first is the parser. Raise UsageError for a bad schema."""
    limits = options.limits
    return [
        _parse(dialect, limits),
        decode_frames(dialect, limits, dialect.name),
        *checked_stages(options, provider, join=join),
    ]


def parse(dialect: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """Return the framing stage of a dialect, with the tolerances that its providers need."""
    return _parse(source_named(dialect)[0], limits)


def _parse(dialect: Dialect, limits: Limits) -> Stage[bytes, list[Frame]]:
    return Stage(f"parse {dialect.name}", partial(dialect.parser, limits), takes="bytes", gives="frames")


def transcode(
    source: AsyncIterable[bytes],
    from_dialect: str,
    to_dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    stages: Sequence[EventStage] = (),
    report: StreamReport | None = None,
    profile: Profile | None = None,
    reencode: bool = False,
    join: bool = True,
    clock: Callable[[], float] = time.time,
    timings: bool = False,
) -> Pipe[bytes]:
    """Convert the bytes of a stream from one dialect to another dialect.

    ``from_dialect`` is the name of a dialect or of a provider (``"deepseek"``). ``to_dialect`` is the name of a dialect
    or of a client (``"claude-code"``). ``options`` say which faults to tolerate and which tools the request has.
    ``profile`` adapts the output to one client. The default of ``profile`` is the profile of the named client.

    If both dialects are the same, frames are forwarded byte for byte, and are read only to fill in the report. Two
    things may change: usage that ``profile`` did not ask for is dropped, and a missing model name is taken from
    ``profile``. Faults of the provider are forwarded too. To repair them, use ``reencode=True``: frames are then
    decoded and encoded again. Frames are also decoded and encoded again if you pass ``stages``, if the policy searches
    the text (``think_tags="on"``, ``text_calls``), or if ``profile`` changes more than the usage and the model name.

    ``stages`` are stages that take and yield events: your own stages, or stages such as ``redact``. These stages run
    after the calls were checked and before the events are encoded. If a stage changes the arguments of a call, the
    stage must set ``verdict=None`` in the ``ToolCallFinished``, so that the call is checked again.

    If one read has several deltas of the same block or call, these deltas become one delta. This saves work and causes
    no delay. ``join=False`` keeps the deltas as the provider sent them. ``clock`` returns the time in seconds since the
    epoch, for a response that has no time. ``timings`` means the same as in ``pipe``. Raises UsageError for an unknown
    name or a bad schema. All other failures are reported in the output and in the report.
    """
    dialect, provider = source_named(from_dialect)
    target, client = client_named(to_dialect)
    report = report_for(provider, report)
    asked = provider, options, profile or client, clock
    if dialect is not target and not stages and all(map(is_, asked, USUAL)):
        return Pipe(source, _usual_stages(dialect, target, join=join), report, timings=timings)
    check_options(options)
    policy = options.policy
    encoding = Encoding(limits=options.limits, profile=profile or client, make_id=options.make_id, clock=clock)
    if (
        dialect is target
        and not reencode
        and not stages
        and encoding.profile.changes.keys() <= PASSES
        and not policy.reads_text
    ):
        schemas, check = options.schemas(), options.output_check()
        return pipe(
            source,
            EncodeStage(
                f"pass {dialect.name} through",
                lambda report: PassThrough(dialect, encoding, policy, report, schemas, check),
                takes="bytes",
            ),
            report=report,
            timings=timings,
        )
    writing = encode_by(f"encode {to_dialect}", target, encoding)
    if not stages:
        reading = _translating(dialect, provider, target, options, join=join)
        return Pipe(source, (*reading, writing), report, timings=timings)
    reading = _translating(dialect, provider, target, options_before(stages, options), join=join)
    return Pipe(source, (*reading, *own_stages(stages, options), writing), report, timings=timings)


@cache
def _usual_stages(dialect: Dialect, target: Dialect, *, join: bool) -> tuple[Stage[Any, Any]]:
    """Return the stages between two dialects with default options, cached: making a pipe then takes a third of the time."""
    stages = _translating(dialect, None, target, DEFAULT_OPTIONS, join=join)
    return (Joined(*stages, encode_by(f"encode {target.name}", target, Encoding())),)


async def collect(
    source: AsyncIterable[bytes],
    dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    stages: Sequence[EventStage] = (),
    report: StreamReport | None = None,
    timings: bool = False,
) -> Response:
    """Read a stream of ``dialect`` to its end. Return a whole response with verdicts, usage and a report.

    An interrupted or failed stream raises no error: the response has the content that arrived, ``clean`` is False, and
    ``report.status`` has the reason. ``stages`` means the same as in ``transcode``, and ``timings`` the same as in
    ``pipe``. Raises UsageError for an unknown dialect or a bad schema.
    """
    events = events_of(source, dialect, options, stages=stages, report=report, join=True, timings=timings)
    collector = Collector(source_named(dialect)[0].name, events.report, options.limits)
    try:
        await _fill(collector, events)
    except StreamError as error:
        events.report.interrupted(error)
    return collector.finish()


async def collect_events(
    source: AsyncIterable[list[Event]],
    dialect: str,
    stages: Sequence[EventStage],
    options: ReadOptions,
    *,
    report: StreamReport,
) -> Response:
    """Return the response of events that pass ``stages``. ``dialect`` is the response's. Raises what the stages raise."""
    collector = Collector(dialect, report, options.limits)
    await _fill(collector, Pipe(source, tuple(own_stages(stages, options)), report))
    return collector.finish()


async def _fill(collector: Collector, events: Pipe[list[Event]]) -> None:
    async with events as stream:
        async for batch in stream:
            collector.feed(batch)
