"""The whole recipe and each of its parts, alone, as multiples of the floor: Chat to Anthropic.

A *machine* is fed what the machine before it gave, without a loop; a *stage* is the same machine in a pipe of its own: the
difference is the price of an async generator. In the recipe the machines call one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import content, inputs, oracle, timing
from benchmarks.inputs import CHAT, Input
from benchmarks.progress import bar
from benchmarks.reads import CUTS
from benchmarks.recipe import MODES, PLAIN, floor, plain, staged, transcoded
from streamkit.dialects import DIALECTS, decode, encode
from streamkit.dialects.profiles import Encoding
from streamkit.framing.sse import SSEParser
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Machine
from streamkit.pipeline import Stage
from streamkit.recipes import parse
from streamkit.report import StreamReport
from streamkit.testing import drive_machine
from streamkit.tool_calls.accumulate import ToolCallAccumulator, accumulate_tool_calls
from streamkit.tool_calls.check import JSONChecker, check_json

TARGET = "anthropic"
EVENTS = 4_000
#: Cut per byte an event is some 300 reads.
EVENTS_PER_BYTE = 400
WHOLE = "64 KiB"


def row(stream: Input, measured: timing.Measured, **names: str) -> dict[str, Any]:
    seconds = measured.seconds.median
    return {
        **names,
        "input": stream.name,
        "events": stream.events,
        "bytes": len(stream.body),
        "microseconds_per_event": seconds / stream.events * 1e6,
        "events_per_second": stream.events / seconds,
        "megabytes_per_second": len(stream.body) / seconds / 1e6,
        "times_floor": measured.ratio.json(),
    }


def measure_recipe(rounds: int, events: int = EVENTS) -> list[dict[str, Any]]:
    """The whole recipe: every input at 64 KiB, joined and not; some at every cut, joined, as the recipe does by itself."""
    rows: list[dict[str, Any]] = []
    streams = inputs.recipe_inputs(events)
    short = {stream.name: stream for stream in inputs.recipe_inputs(events // 10)}
    everywhere = {"text", "text, obfuscation", "four interleaved calls"}
    total = sum(len(_modes(cut)) for stream in streams for cut in _cuts(stream, everywhere)) * rounds
    with bar("whole recipe", total) as progress:
        for stream in streams:
            for cut in _cuts(stream, everywhere):
                cut_stream = short[stream.name] if cut == "per byte" else stream
                reads = CUTS[cut](cut_stream)
                modes = _modes(cut)
                for mode in modes:
                    output = b"".join(transcoded(reads, CHAT, TARGET, mode))
                    oracle.verify_output(cut_stream, TARGET, output)
                tasks = {mode: lambda mode=mode: transcoded(reads, CHAT, TARGET, mode) for mode in modes}
                if stream.name == "text" and cut in (WHOLE, "per event"):
                    oracle.verify_output(cut_stream, TARGET, b"".join(plain(reads, CHAT, TARGET)))
                    tasks[PLAIN] = lambda: plain(reads, CHAT, TARGET)
                found = timing.interleaved(tasks, lambda: floor(cut_stream), rounds=rounds, on_run=progress.update)
                rows += [row(cut_stream, found[mode], cut=cut, mode=mode) for mode in tasks]
    return rows


def _cuts(stream: Input, everywhere: set[str]) -> Sequence[str]:
    return list(CUTS) if stream.name in everywhere else [WHOLE]


def _modes(cut: str) -> Sequence[str]:
    """At small reads there is little to join."""
    return MODES if cut == WHOLE else MODES[:1]


def machines(*, join: bool) -> Mapping[str, Callable[[], Machine[Any, Any]]]:
    """The recipe's machines in their order. Joining is the accumulator's work, and spares its followers theirs."""
    report, dialect = StreamReport(), DIALECTS[CHAT]
    return {
        "parse": lambda: dialect.parser(DEFAULT_LIMITS, report),
        "decode": lambda: dialect.decoder(DEFAULT_LIMITS, report),
        "accumulate": lambda: ToolCallAccumulator(report=report, join=join),
        "check": lambda: JSONChecker(report=report),
        "encode": lambda: DIALECTS[TARGET].encoder(Encoding(), report),
    }


def stages(*, join: bool) -> Mapping[str, Stage[Any, Any]]:
    """The same as stages; ``encode`` is a stage of its own kind, which writes errors too."""
    return {
        "parse": parse(CHAT),
        "decode": decode(CHAT),
        "accumulate": accumulate_tool_calls(join=join),
        "check": check_json(),
        "encode": encode(TARGET),
    }


def measure_parts(rounds: int, events: int = EVENTS) -> list[dict[str, Any]]:
    """Each machine and each stage, for text and for four calls, at 64 KiB and at one event a read."""
    streams = [stream for stream in inputs.recipe_inputs(events) if stream.name in ("text", "four interleaved calls")]
    ways = ((WHOLE, "joined"), (WHOLE, "unjoined"), ("per event", "joined"))
    rows: list[dict[str, Any]] = []
    total = len(streams) * len(ways) * 2 * len(stages(join=True)) * rounds
    with bar("stages and machines", total) as progress:
        for stream in streams:
            for cut, mode in ways:
                tasks = _part_tasks(CUTS[cut](stream), join=mode == "joined")
                found = timing.interleaved(tasks, lambda: floor(stream), rounds=rounds, on_run=progress.update)
                for (kind, part), measured in found.items():
                    rows.append(row(stream, measured, cut=cut, mode=mode, kind=kind, part=part))
    return rows


def _part_tasks(reads: list[bytes], *, join: bool) -> dict[Any, timing.Task]:
    tasks: dict[Any, timing.Task] = {}
    items: list[Any] = reads
    for part, make in machines(join=join).items():
        stage = stages(join=join)[part]
        tasks["machine", part] = lambda make=make, items=items: drive_machine(make(), items)
        tasks["stage", part] = lambda stage=stage, items=items: staged(items, stage)
        items = drive_machine(make(), items)
    return tasks


def measure_framing(rounds: int, events: int = EVENTS) -> list[dict[str, Any]]:
    """SSE parsing alone, to the letter of the standard, at every cut."""
    rows: list[dict[str, Any]] = []
    streams = _framed(events)
    short = {stream.name: stream for stream in _framed(events // 10)}
    with bar("framing", len(streams) * len(CUTS) * rounds) as progress:
        for stream in streams:
            for cut, cutter in CUTS.items():
                cut_stream = short[stream.name] if cut == "per byte" else stream
                reads = cutter(cut_stream)
                frames = [frame.data for batch in drive_machine(SSEParser(), reads) for frame in batch]
                if tuple(frame for frame in frames if frame != b"[DONE]") != cut_stream.payloads:
                    raise oracle.Wrong(f"{stream.name}, {cut}: other frames than went in")
                tasks = {"parse": lambda: _parsed(reads)}
                found = timing.interleaved(tasks, lambda: floor(cut_stream), rounds=rounds, on_run=progress.update)
                rows.append(row(cut_stream, found["parse"], cut=cut, part="SSEParser"))
    return rows


def _parsed(reads: list[bytes]) -> None:
    """Each read's frames are gone before the next, as in service, and as the yardstick's documents are."""
    parser = SSEParser()
    for read in reads:
        parser.feed(read)
    parser.finish()


def _framed(events: int) -> list[Input]:
    """``data`` alone as Chat has it, the same with CRLF, and with an ``event`` line as Anthropic has it."""
    text = content.text(events)
    return [
        inputs.chat("text", text),
        inputs.chat("text, CRLF", text, crlf=True),
        inputs.encoded("text, with event lines", text, TARGET),
    ]


def measure(rounds: int = timing.ROUNDS) -> dict[str, Any]:
    return {"recipe": measure_recipe(rounds), "parts": measure_parts(rounds), "framing": measure_framing(rounds)}
