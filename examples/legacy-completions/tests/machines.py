"""Read and write streams without an event loop, and judge them."""

from typing import Any

from attrs import frozen

from legacy_completions import DIALECT
from streamkit.dialects import dialect_named
from streamkit.dialects.profiles import Encoding
from streamkit.errors import StreamError
from streamkit.events import Event, ProviderFailed, ResponseFinished, StreamEnded, TextDelta
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Chain
from streamkit.report import StreamReport
from streamkit.testing import drive_machine, joined
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.check import JSONChecker

CLOCK = lambda: 1_700_000_000.0  # noqa: E731


@frozen
class Reading:
    events: list[Event]
    fault: Exception | None
    report: StreamReport

    @property
    def text(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TextDelta) and e.choice == 0)

    @property
    def stop(self) -> ResponseFinished | None:
        return next((e for e in self.events if isinstance(e, ResponseFinished) and e.choice == 0), None)

    @property
    def clean(self) -> bool:
        return any(isinstance(e, StreamEnded) and e.clean for e in self.events)

    @property
    def failure(self) -> ProviderFailed | None:
        return next((e for e in self.events if isinstance(e, ProviderFailed)), None)


def read(reads: list[bytes], dialect: str = DIALECT.name, limits: Limits = DEFAULT_LIMITS) -> Reading:
    """What the reads of a stream say, with adjacent deltas joined."""
    report, named = StreamReport(), dialect_named(dialect)
    chain = Chain(
        named.parser(limits, report),
        named.decoder(limits, report),
        ToolCallAccumulator(limits=limits, report=report, make_id=lambda prefix: f"{prefix}1"),
        JSONChecker(limits=limits, report=report),
    )
    events = [event for batch in drive_machine(chain, reads) for event in batch]
    if chain.fault is not None:
        report.failed(chain.fault)
    return Reading(joined(events), chain.fault, report)


def write(reading: Reading, dialect: str = DIALECT.name) -> tuple[bytes, StreamReport]:
    """The events of a reading in a dialect, as ``transcode`` writes them; and what was lost."""
    report = StreamReport()
    encoder = dialect_named(dialect).encoder(Encoding(make_id=lambda prefix: f"{prefix}1", clock=CLOCK), report)
    output = encoder.feed(reading.events)
    output += encoder.fail(reading.fault) if isinstance(reading.fault, StreamError) else encoder.finish()
    return output, report


def broken_rules(body: bytes, *, notes: bool = True) -> list[str]:
    """The rules that a stream breaks."""
    linter, parser = DIALECT.linter(), DIALECT.parser(DEFAULT_LIMITS, StreamReport())
    found: list[Any] = linter.feed(parser.feed(body) + parser.finish()) + linter.finish()
    return [violation.rule for violation in found if notes or violation.severity == "error"]
