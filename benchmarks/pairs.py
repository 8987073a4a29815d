"""Every dialect into every other, and what decoding and encoding cost alone, relative to Chat to Anthropic and to Chat.

One response (reasoning, text, four calls one after the other) is written in each dialect. Pairs are compared by the time for
the whole response, told by delta of the content, which is the same for all; Ollama, Mistral and Gemini write a call whole and
so have fewer frames. Within one dialect the pair decodes and encodes all the same (``reencode``); frames that only pass cost
less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import inputs, oracle, timing
from benchmarks.inputs import CHAT, CREATED, Input
from benchmarks.progress import bar
from benchmarks.reads import CUTS
from benchmarks.recipe import transcoded
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.report import StreamReport
from streamkit.testing import drive_machine

YARDSTICK = (CHAT, "anthropic")
FRAGMENTS = 1_200
CUT = "64 KiB"


def decoded(dialect: str, reads: list[bytes]) -> list[Any]:
    """The wire events of a stream: framing and decoding, alone."""
    report = StreamReport()
    named = DIALECTS[dialect]
    return drive_machine(Chain(named.parser(DEFAULT_LIMITS, report), named.decoder(DEFAULT_LIMITS, report)), reads)


def encoded(dialect: str, batches: list[list[Any]]) -> list[bytes]:
    encoder = DIALECTS[dialect].encoder(Encoding(make_id=inputs.counted_ids(), clock=lambda: CREATED), StreamReport())
    return drive_machine(encoder, batches)


def prove(streams: Mapping[str, Input]) -> None:
    """Each pair's output says what went in, but for what its dialect can't carry (reasoning, in some). Raises Wrong."""
    for stream in streams.values():
        for target in streams:
            output = b"".join(transcoded(CUTS[CUT](stream), stream.dialect, target))
            oracle.compare_carried(f"{stream.dialect} to {target}", oracle.read(target, output), stream)


def measure(rounds: int = timing.ROUNDS, fragments: int = FRAGMENTS) -> dict[str, Any]:
    """``pairs``: ratio to Chat → Anthropic of each. ``decode`` and ``encode``: ratio to Chat's of each dialect."""
    streams = inputs.dialect_inputs(fragments)
    prove(streams)
    reads = {name: CUTS[CUT](stream) for name, stream in streams.items()}
    deltas = next(iter(streams.values())).said.deltas
    tasks: dict[Any, timing.Task] = {
        (source, target): lambda source=source, target=target: transcoded(reads[source], source, target)
        for source in streams
        for target in streams
    }
    events = list(inputs.events(streams[CHAT].said))
    batches = [events[at : at + 150] for at in range(0, len(events), 150)]
    decoding: dict[Any, timing.Task] = {name: lambda name=name: decoded(name, reads[name]) for name in streams}
    encoding: dict[Any, timing.Task] = {name: lambda name=name: encoded(name, batches) for name in streams}
    with bar("dialect pairs", (len(tasks) + 2 * len(streams)) * rounds) as progress:
        pairs = timing.interleaved(tasks, tasks[YARDSTICK], rounds=rounds, on_run=progress.update)
        decoders = timing.interleaved(decoding, decoding[CHAT], rounds=rounds, on_run=progress.update)
        encoders = timing.interleaved(encoding, encoding[CHAT], rounds=rounds, on_run=progress.update)
    return {
        "deltas": deltas,
        "pairs": [
            {"from": source, "to": target, **_row(measured, deltas)} for (source, target), measured in pairs.items()
        ],
        "decode": [
            {"dialect": name, "bytes": len(streams[name].body), **_row(found, deltas)}
            for name, found in decoders.items()
        ],
        "encode": [{"dialect": name, **_row(found, deltas)} for name, found in encoders.items()],
    }


def _row(measured: timing.Measured, deltas: int) -> dict[str, Any]:
    return {"microseconds_per_delta": measured.seconds.median / deltas * 1e6, "times_yardstick": measured.ratio.json()}
