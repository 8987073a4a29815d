"""The whole recipe, Chat to Anthropic, and SSE framing alone, as multiples of the floor: large chunked streams."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from benchmarks import content, inputs, oracle, timing
from benchmarks.inputs import CHAT, Input
from benchmarks.progress import bar
from benchmarks.reads import CUTS
from benchmarks.recipe import MODES, PLACES, floor, passed_on, piped, transcoded, with_stage
from streamkit.framing.sse import SSEParser
from streamkit.rewrite.given import EventStage
from streamkit.rewrite.redaction import redact
from streamkit.testing import drive_machine

TARGET = "anthropic"
EVENTS = 4_000
#: The inputs that are read one event a read as well.
EVERYWHERE = ("text", "text, obfuscation", "four interleaved calls")
OWN = ("text", "four interleaved calls")  #: the inputs of a recipe with a user's stage
EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,63}")
#: What ``transcode(stages=…)`` is given.
STAGE: dict[str, EventStage] = {
    "stages=: passes each batch on": passed_on,
    "stages=: redact, e-mail addresses": redact(EMAIL),
}


def row(stream: Input, measured: timing.Measured, **names: str) -> dict[str, Any]:
    seconds = measured.seconds.median
    return {
        **names,
        "input": stream.name,
        "microseconds_per_event": seconds / stream.events * 1e6,
        "megabytes_per_second": len(stream.body) / seconds / 1e6,
        "times_floor": measured.ratio.json(),
    }


def measure_recipe(rounds: int, events: int = EVENTS) -> list[dict[str, Any]]:
    """Every input at 64 KiB, joined and not; some at one event a read, where there is little to join."""
    rows: list[dict[str, Any]] = []
    todo = [
        (stream, cut, MODES if cut == "64 KiB" else MODES[:1])
        for stream in inputs.recipe_inputs(events)
        for cut in (CUTS if stream.name in EVERYWHERE else ("64 KiB",))
    ]
    with bar("whole recipe", sum(len(modes) for *_, modes in todo) * rounds) as progress:
        for stream, cut, modes in todo:
            reads = CUTS[cut](stream)
            tasks: dict[str, timing.Task] = {
                mode: lambda mode=mode: transcoded(reads, CHAT, TARGET, mode) for mode in modes
            }
            for task in tasks.values():
                oracle.verify_output(stream, TARGET, b"".join(task()))
            found = timing.interleaved(tasks, lambda: floor(stream), rounds=rounds, on_run=progress.update)
            rows += [row(stream, found[mode], cut=cut, mode=mode) for mode in tasks]
    return rows


def measure_own(rounds: int, events: int = EVENTS) -> list[dict[str, Any]]:
    """A stage that passes each batch on, at each place in the pipe, and ``redact``: as multiples of the pipe without it."""
    rows: list[dict[str, Any]] = []
    streams = [stream for stream in inputs.recipe_inputs(events) if stream.name in OWN]
    with bar("a stage of one's own", len(streams) * len(CUTS) * (len(PLACES) + 2) * rounds) as progress:
        for stream in streams:
            for cut, cutter in CUTS.items():
                reads = cutter(stream)
                plain: timing.Task = partial(transcoded, reads, CHAT, TARGET, MODES[1])
                placed = {place: partial(piped, reads, CHAT, TARGET, place) for place in PLACES}
                given = {name: partial(with_stage, reads, CHAT, TARGET, stage) for name, stage in STAGE.items()}
                for task in (plain, *placed.values(), *given.values()):
                    oracle.verify_output(stream, TARGET, b"".join(task()))
                tasks: tuple[tuple[timing.Task, dict[str, timing.Task]], ...]
                tasks = (partial(piped, reads, CHAT, TARGET), {**placed}), (plain, {**given})
                for without, with_it in tasks:
                    found = timing.interleaved(with_it, without, rounds=rounds, on_run=progress.update)
                    rows += [
                        {
                            "input": stream.name,
                            "cut": cut,
                            "stage": name,
                            "microseconds_per_event": measured.seconds.median / stream.events * 1e6,
                            "times_without": measured.ratio.json(),
                        }
                        for name, measured in found.items()
                    ]
    return rows


def measure_framing(rounds: int, events: int = EVENTS) -> list[dict[str, Any]]:
    """SSE parsing alone: ``data`` alone as Chat has it, with CRLF, and with an ``event`` line as Anthropic has it."""
    rows: list[dict[str, Any]] = []
    text = content.text(events)
    streams = [
        inputs.chat("text", text),
        inputs.chat("text, CRLF", text, crlf=True),
        inputs.encoded("text, with event lines", text, TARGET),
    ]
    with bar("framing", len(streams) * len(CUTS) * rounds) as progress:
        for stream in streams:
            for cut, cutter in CUTS.items():
                reads = cutter(stream)
                frames = [frame.data for batch in drive_machine(SSEParser(), reads) for frame in batch]
                if tuple(frame for frame in frames if frame != b"[DONE]") != stream.payloads:
                    raise oracle.Wrong(f"{stream.name}, {cut}: other frames than went in")
                tasks = {"parse": lambda: parsed(reads)}
                found = timing.interleaved(tasks, lambda: floor(stream), rounds=rounds, on_run=progress.update)
                rows.append(row(stream, found["parse"], cut=cut))
    return rows


def parsed(reads: list[bytes]) -> None:
    """Each read's frames are gone before the next, as in service, and as the yardstick's documents are."""
    parser = SSEParser()
    for read in reads:
        parser.feed(read)
    parser.finish()


def measure(rounds: int = timing.ROUNDS) -> dict[str, Any]:
    return {"recipe": measure_recipe(rounds), "own": measure_own(rounds), "framing": measure_framing(rounds)}
