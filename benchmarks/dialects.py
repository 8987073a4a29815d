"""What decoding and encoding cost an event in each dialect, as multiples of OpenAI Chat's in the same run.

    python benchmarks/dialects.py            # prints the table
    python benchmarks/dialects.py --write    # and writes docs/benchmarks/dialects.md

One response (reasoning, text, four calls one after the other, usage) is written in every dialect by our encoders, read again,
and timed: decoding is framing and decoding of whole reads of 64 KiB, encoding is the encoder alone. Each figure is the best of
several runs, taken in turns, so that a busy machine hits all alike. An *event* is a delta of the source.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Encoding
from streamkit.events import (
    ChoiceStarted,
    Event,
    ReasoningDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    Verdict,
)
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "dialects.md"
YARDSTICK = "openai-chat"
READ_BYTES = 64 * 1024
ROUNDS = 9
FRAGMENTS = 1_000


def source() -> list[Event]:
    """The response: 1,000 deltas of reasoning and text each, 250 fragments in each of four calls."""
    events: list[Event] = [ResponseStarted("r-1", "m-1", 1_700_000_000, "bench"), ChoiceStarted()]
    events += [ReasoningDelta(f"thinking of {number} ", 0, 0, "summary") for number in range(FRAGMENTS)]
    events += [TextDelta(f"the word {number} ", 0, 1) for number in range(FRAGMENTS)]
    for call in range(4):
        fragments = ['{"words":[', *[f'"word {number}",' for number in range(FRAGMENTS // 4)], '"end"]}']
        events.append(ToolCallStarted(call, f"call_{call}", f"tool_{call}"))
        events += [ToolCallArguments(call, fragment) for fragment in fragments]
        text = "".join(fragments)
        events.append(ToolCallFinished(call, f"call_{call}", f"tool_{call}", text, verdict=Verdict("complete")))
    usage = UsageReported(100, None, None, 3_000, None, 3_100)
    return [*events, usage, ResponseFinished("tool_calls"), StreamEnded(clean=True)]


def encoded(dialect: str, batches: list[list[Event]]) -> bytes:
    encoder = DIALECTS[dialect].encoder(Encoding(), StreamReport())
    return b"".join([*(encoder.feed(batch) for batch in batches), encoder.finish()])


def decoded(dialect: str, reads: list[bytes]) -> int:
    report = StreamReport()
    parser, decoder = (
        DIALECTS[dialect].parser(DEFAULT_LIMITS, report),
        DIALECTS[dialect].decoder(DEFAULT_LIMITS, report),
    )
    count = sum(len(decoder.feed(parser.feed(read))) for read in reads)
    return count + len(decoder.feed(parser.finish())) + len(decoder.finish())


def best(tasks: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of each, the best of ROUNDS taken in turns."""
    found = dict.fromkeys(tasks, float("inf"))
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


def measure() -> Iterator[tuple[str, float, float, float, float, int]]:
    """For each dialect µs an event decoding and encoding, their multiples of Chat's, and the bytes of its stream."""
    events = source()
    batches = [events[at : at + 150] for at in range(0, len(events), 150)]
    bodies = {name: encoded(name, batches) for name in DIALECTS}
    reads = {
        name: [body[at : at + READ_BYTES] for at in range(0, len(body), READ_BYTES)] for name, body in bodies.items()
    }
    decoding = best({name: lambda name=name: decoded(name, reads[name]) for name in DIALECTS})
    encoding = best({name: lambda name=name: encoded(name, batches) for name in DIALECTS})
    for name in DIALECTS:
        yield (
            name,
            decoding[name] / len(events) * 1e6,
            decoding[name] / decoding[YARDSTICK],
            encoding[name] / len(events) * 1e6,
            encoding[name] / encoding[YARDSTICK],
            len(bodies[name]),
        )


def table() -> Iterator[str]:
    yield "| dialect | decoding, µs an event | times Chat's | encoding, µs an event | times Chat's | bytes of the stream |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, decoding, times, encoding, times_too, size in measure():
        yield f"| `{name}` | {decoding:.2f} | {times:.2f} | {encoding:.2f} | {times_too:.2f} | {size:,} |"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/dialects.md as well")
    options = parser.parse_args(arguments)
    lines = list(table())
    print("\n".join(lines))
    if options.write:
        PAGE.write_text("\n".join([*INTRODUCTION, *lines]) + "\n", "utf-8")
    return 0


INTRODUCTION = [
    "<!-- Written by `python benchmarks/dialects.py --write`. -->",
    "# What each dialect costs",
    "",
    "One response of 1,000 deltas of reasoning, 1,000 of text and four calls of 250 fragments each, in every dialect.",
    "Decoding is framing and decoding together, at reads of 64 KiB; encoding is the encoder alone.",
    "Ollama, Mistral and Gemini write a call whole, so that their streams have fewer events to decode.",
    f"All in one run (CPython {platform.python_version()}, two shared cores): trust the ratios, not the digits.",
    "",
]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
