"""What the law tests share: read and translate a stream without an event loop, and know the recorded ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import pytest
from attrs import define, frozen

from streamkit.conversation.messages import Tool
from streamkit.dialects import DIALECTS, decode, source_named
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.encode_stage import EncoderLink, ForeignEncoder
from streamkit.errors import StreamError
from streamkit.events import (
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallFinished,
    UsageReported,
)
from streamkit.in_text import in_text_stages
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Chain
from streamkit.policy import TOLERANT, Policy
from streamkit.read_options import ReadOptions
from streamkit.recipes import PassThrough, parse
from streamkit.report import StreamReport
from streamkit.testing import joined
from streamkit.tool_calls.accumulate import ToolCallAccumulator, accumulate_tool_calls
from streamkit.tool_calls.check import JSONChecker, check_json
from streamkit.tool_calls.output import OutputCheck, check_output
from streamkit.tool_calls.value_text import plain_text
from streamkit.translation.citations import carry_citations, carry_searches
from tests.corpora import CORPORA, streams
from tests.sampling import few
from tests.vectors import VECTORS

CLOCK = lambda: 1_700_000_000.0  # noqa: E731
ASKED = OutputCheck("any")  #: gives every text a verdict, as if its request had asked for JSON


def maker():
    """Ids by number: the same stream gets the same ones."""
    counts: Counter[str] = Counter()

    def make_id(prefix: str) -> str:
        counts[prefix] += 1
        return f"{prefix}{counts[prefix]}"

    return make_id


def machines(
    dialect: str,
    report: StreamReport,
    limits: Limits = DEFAULT_LIMITS,
    *,
    policy: Policy = TOLERANT,
    offered: Sequence[Tool] = (),
) -> list[Any]:
    named, provider = source_named(dialect)
    return [
        named.parser(limits, report),
        named.decoder(limits, report),
        *(
            stage.make(report)
            for stage in in_text_stages(ReadOptions(policy=policy, offered=offered or None), provider)
        ),
        ToolCallAccumulator(limits=limits, report=report, policy=policy, make_id=maker()),
        JSONChecker(limits=limits, report=report),
    ]


def chain_of(
    dialect: str,
    report: StreamReport,
    limits: Limits = DEFAULT_LIMITS,
    *,
    join: bool = False,
    policy: Policy = TOLERANT,
    offered: Sequence[Tool] = (),
    to: str | None = None,
    output: OutputCheck | None = None,
) -> Chain:
    """The same machines as a pipe makes them, each calling the next; ``to``: for a client's dialect."""
    stages = [
        parse(dialect, limits=limits),
        decode(dialect, limits=limits),
        *in_text_stages(ReadOptions(policy=policy, offered=offered or None, limits=limits), source_named(dialect)[1]),
        accumulate_tool_calls(limits=limits, policy=policy, make_id=maker(), join=join),
        check_json(limits=limits),
        *(() if output is None else (check_output(output, limits=limits),)),
    ]
    if to is not None:
        ends = source_named(dialect)[0], DIALECTS[to]
        carried = carry_searches(*ends, offered, limits=limits), carry_citations(*ends, limits=limits)
        stages += [stage for stage in carried if stage is not None]
    return Chain(*(stage.make(report) for stage in stages))


def facts_of(report: StreamReport) -> dict[str, Any]:
    """A report but for its bytes; what several stages add to stands in no order."""
    return {
        "repairs": +report.repairs,
        "losses": +report.losses,
        "lost": sorted(report.lost),
        "verdicts": +report.verdicts,
        "output_verdicts": +report.output_verdicts,
        "withheld": sorted(map(str, report.withheld)),
        "frames": report.frames,
        "broken_frame": report.broken_frame,
        "clean": report.clean,
        "error": None if report.error is None else (type(report.error), str(report.error)),
        "provider_error": report.provider_error,
        "failure": report.failure,
        "started": report.started,
        "usage": report.usage,
        "stops": report.stops,
        "spoken": report.spoken,
        "terminated": report.terminated,
        "completed": report.completed,
    }


@define
class Outcome:
    """All that must not depend on the cuts."""

    events: list[Any]
    fault: str
    report: StreamReport

    def facts(self) -> tuple[Any, ...]:
        """What happened, and all of the report; of a stream that failed, not how far its last read went."""
        return (self.events, self.fault, facts_of(self.report), None if self.fault else self.report.bytes_in)

    def text(self, kind: type = TextDelta, choice: int = 0) -> str:
        return "".join(event.text for event in self.events if type(event) is kind and event.choice == choice)

    @property
    def reasoning(self) -> str:
        return self.text(ReasoningDelta)

    @property
    def refusal(self) -> str:
        return self.text(RefusalDelta)

    @property
    def calls(self) -> list[ToolCallFinished]:
        found = [event for event in self.events if type(event) is ToolCallFinished]
        return sorted(found, key=lambda call: (call.choice, call.call))

    @property
    def stops(self) -> dict[int, str]:
        return {event.choice: event.reason for event in self.events if type(event) is ResponseFinished}

    @property
    def clean(self) -> bool:
        return any(type(event) is StreamEnded and event.clean for event in self.events)

    @property
    def error(self) -> str | None:
        return next((event.message for event in self.events if type(event) is ProviderFailed), None)


def read(
    dialect: str,
    reads: list[bytes],
    limits: Limits = DEFAULT_LIMITS,
    *,
    policy: Policy = TOLERANT,
    offered: Sequence[Tool] = (),
    join: bool = False,
    output: OutputCheck | None = None,
) -> Outcome:
    """The checked events of a stream, in normal form."""
    report = StreamReport()
    chain = chain_of(dialect, report, limits, join=join, policy=policy, offered=offered, output=output)
    events: list[Any] = []
    for chunk in reads:
        events += chain.feed(chunk)
        if chain.fault is not None:
            break
    else:
        events += chain.finish()
    fault = chain.fault
    if fault is not None:
        report.failed(fault)
    return Outcome(joined(events), f"{type(fault).__name__}: {fault}" if fault else "", report)


def translate(
    source: str,
    target: str,
    reads: list[bytes],
    limits: Limits = DEFAULT_LIMITS,
    *,
    passing: bool = True,
    policy: Policy = TOLERANT,
    join: bool = True,
) -> tuple[bytes, StreamReport]:
    """``transcode`` without a loop: the same machines, driven as its last stage drives them."""
    report = StreamReport()
    encoding = Encoding(limits=limits, make_id=maker(), clock=CLOCK)
    if source == target and passing:
        encoder: EncoderLink = ForeignEncoder(PassThrough(DIALECTS[target], encoding, policy, report))
        chain = Chain(encoder)
    else:
        encoder = DIALECTS[target].encoder(encoding, report)
        chain = Chain(*chain_of(source, report, limits, join=join, policy=policy, to=target).links, encoder)
    output: list[bytes] = []
    try:
        for work in [*(partial(chain.push_batch, chunk) for chunk in reads), chain.push_end]:
            work()
            output.append(encoder.written())
            if chain.fault is not None:
                raise chain.fault
    except StreamError as error:
        chain.push_rest()
        output += encoder.written(), encoder.fail(error)
        if report.clean and encoder.ended:  # the stream was whole before this
            report.repair("fault_after_end")
        else:
            report.failed(error)
    return b"".join(output), report


#: Dialects that carry arguments as an object: what clients would split lines at is written otherwise.
OBJECTS = frozenset({"ollama", "gemini"})


def in_one_line(arguments: str) -> str:
    """Argument text as it is read of a dialect of objects."""
    return plain_text(arguments.strip().replace("\r", " ").replace("\n", " "))


@frozen
class Stream:
    name: str
    dialect: str
    body: bytes

    def __str__(self) -> str:
        return f"{self.dialect}-{self.name}".replace(" ", "-")


@cache
def recorded() -> tuple[Stream, ...]:
    """The recorded streams of every dialect there is, each body once."""
    if CORPORA is None:
        return ()
    found = {(s.dialect, s.body): Stream(s.name, s.dialect, s.body) for s in streams() if s.dialect in DIALECTS}
    return tuple(found.values())


#: Recordings of each dialect and collection that a law draws in `make test`: about seventy of five hundred.
RECORDED = 3

OURS = tuple(Stream(v.name, v.dialect, v.body) for v in VECTORS)


def every_stream(seed: str, *, ours: int | None = None, recorded_: int = RECORDED) -> list[Any]:
    """Parameters: our vectors and every recording; one that skips where there are no recordings.

    `make test` takes all vectors, or ``ours`` of each dialect, and ``recorded_`` recordings of each collection and dialect that
    ``seed`` draws; the others are exhaustive.
    """
    found = few(OURS, len(OURS) if ours is None else ours, seed) + few(recorded(), recorded_, seed)
    if not recorded():
        skip = pytest.mark.skip(reason="no corpora: set STREAMKIT_CORPORA to their folder")
        found.append(pytest.param(None, id="recordings", marks=skip))
    return found


def says(dialect: str) -> Any:
    """Whether two outputs of a dialect say the same, usage aside: what a start could know of it depends on the reads."""

    def equal(one: bytes, other: bytes) -> bool:
        first, second = (read(dialect, [output or b""]).events for output in (one, other))
        return [e for e in first if type(e) is not UsageReported] == [e for e in second if type(e) is not UsageReported]

    return equal
