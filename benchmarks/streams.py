"""Streams as they are, in six pairs of dialects: recorded ones where they are at hand, for everyone a mix like them.

Half of them have fewer than 25 events, so that what a stream costs to open and to close counts as much as its events. One run
reads all streams of a dialect, each in a recipe of its own, one event a read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, Final

import orjson

from benchmarks import content, inputs, oracle, timing
from benchmarks.content import Call, Content
from benchmarks.inputs import Input
from benchmarks.mix import DIALECTS, mix
from benchmarks.progress import bar
from benchmarks.reads import by_event
from benchmarks.recipe import transcoded

#: How the works of peers on many streams are called, in front of the pair.
STREAMS_WORK = "streams, "
RECORDED, MIX, THREE = "recorded", "seeded mix", "three events"
#: From, to.
PAIRS: Final = (
    ("openai-chat", "anthropic"),
    ("anthropic", "openai-chat"),
    ("openai-responses", "anthropic"),
    ("gemini", "anthropic"),
    ("openai-chat", "openai-responses"),
    ("anthropic", "openai-responses"),
)


@cache
def sources() -> Mapping[str, Mapping[str, Sequence[Input]]]:
    """The streams by where they are from and by dialect."""
    folder = os.environ.get("STREAMKIT_CORPORA")
    recorded = {RECORDED: recordings(Path(folder, "read.py"))} if folder else {}
    return {**recorded, MIX: {dialect: mix(dialect) for dialect in DIALECTS}}


def recordings(program: Path) -> dict[str, list[Input]]:
    """The event streams that the reader of a folder of recordings gives, but those with a payload that is no JSON."""
    spec = util.spec_from_file_location("read", program)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(program)
    reader = util.module_from_spec(spec)
    sys.modules["read"] = reader  # dataclasses look their module up
    spec.loader.exec_module(reader)
    found: dict[str, list[Input]] = {dialect: [] for dialect in DIALECTS}
    for stream in reader.streams():
        if stream.framing != "sse" or stream.dialect not in DIALECTS:
            continue
        events = [event + b"\n\n" for event in stream.body.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]
        payloads = tuple(payload for event in events if (payload := payload_of(event)) not in (b"", b"[DONE]"))
        try:
            list(map(orjson.loads, payloads))
        except orjson.JSONDecodeError:
            continue
        found[stream.dialect].append(Input(RECORDED, stream.dialect, b"".join(events), payloads, Content()))
    return found


def payload_of(event: bytes) -> bytes:
    """The data of an event of SSE."""
    return b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))


def short(count: int) -> tuple[Input, ...]:
    """Streams of three events and ``[DONE]``: what a stream costs to open and to close."""
    said = Content(text=("Hello",))
    return tuple(inputs.chat("short", said) for _ in range(count))


def twelve(count: int) -> tuple[Input, ...]:
    """Streams of twelve events, most of them of a kind that comes once: words, the start of a call, its arguments, the end."""
    call = Call("call_0123456789abcdefghijklmn", "read_file", ('{"path":', '"src/a.py"', "}"))
    said = Content(text=content.words(5), calls=(call,), order=(0, 0, 0))
    return tuple(inputs.chat("twelve", said) for _ in range(count))


def prove(streams: Sequence[Input], target: str) -> None:
    """Each stream of the mix says in ``target`` what it said. Raises Wrong."""
    for stream in streams:
        output = b"".join(transcoded(by_event(stream), stream.dialect, target))
        oracle.compare_carried(f"{stream.name} to {target}", oracle.read(target, output), stream)


def floor(streams: Sequence[Input]) -> timing.Task:
    """``orjson.loads`` of each event of each stream."""
    payloads = [payload for stream in streams for payload in stream.payloads]

    def task() -> None:
        for payload in payloads:
            orjson.loads(payload)

    return task


def measure(rounds: int = timing.ROUNDS, streams: int | None = None) -> list[dict[str, Any]]:
    """A row for each source and pair; of ``streams`` streams each, all of them where it is None."""
    rows: list[dict[str, Any]] = []
    todo = [(source, pair, by_dialect[pair[0]]) for source, by_dialect in sources().items() for pair in PAIRS]
    todo.append((THREE, PAIRS[0], short(60)))
    with bar("streams as they are", len(todo) * rounds) as progress:
        for source, (name, target), all_found in todo:
            found = all_found[:streams]
            if source != RECORDED:
                prove(found, target)
            reads = [by_event(stream) for stream in found]
            tasks = {"": lambda: [transcoded(one, name, target) for one in reads]}
            times = timing.interleaved(tasks, floor(found), rounds=rounds, on_run=progress.update)[""]
            rows.append(
                {
                    "source": source,
                    "pair": f"{name} → {target}",
                    "streams": len(found),
                    "events": sum(stream.events for stream in found),
                    "microseconds_per_stream": times.seconds.median / len(found) * 1e6,
                    "times_floor": times.ratio.json(),
                }
            )
    return rows
