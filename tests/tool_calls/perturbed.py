"""Seeded streams of tool calls as broken servers send them, and what the accumulator made of each when it was written down.

A stream begins as a right one: one to three calls with ids, names and argument text in fragments. Then a few things are done
to it that providers do (docs/spec/quirks.md): indices are left out, moved or used twice, ids and names are left out, late, said
again or changed, fragments repeat all before them, calls are said again as a whole, ended too early, or not at all.

``python -m tests.tool_calls.perturbed --write`` writes ``outcomes.txt`` anew. A change of it is meant, or it is a mistake: read
the difference before it is committed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import evolve

from streamkit.events import (
    Aside,
    LastFrameBroken,
    Opaque,
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallsWhole,
    ToolCallWhole,
)
from streamkit.limits import Limits
from streamkit.policy import LENIENT, STRICT, TOLERANT, Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator

OUTCOMES = Path(__file__).with_name("outcomes.txt")
SEEDS = range(500)
TEXTS = (
    "{}",
    '{"a":1}',
    '{"city":"Oslo","n":[1,2]}',
    '{"q":"a } b"}',
    "",
    '{"a":',
    '{"a":1}{"b":2}',
    '{"a":1} ',
    "null",
    "x",
)
NAMES = ("f", "g", "get_weather")
POLICIES = (
    TOLERANT,
    TOLERANT,
    TOLERANT,
    LENIENT,
    STRICT,
    Policy(two_objects="split"),
    Policy(name_pieces="first", missing_id="refuse"),
    Policy(end_without_finish="refuse"),
)
LIMITS = (*[Limits()] * 9, Limits(name_bytes=5), Limits(json_depth=1), Limits(tool_calls=2), Limits(arguments_chars=12))


def stream(rng: random.Random) -> list[Any]:
    """The events of one stream, each as the frames of a decoder would say it."""
    choices = rng.choice((1, 1, 1, 2))
    calls = [
        list(_call(rng, index, choice)) for choice in range(choices) for index in range(rng.choice((1, 1, 2, 2, 3)))
    ]
    events: list[Any] = []
    waiting = [call for call in calls if call]
    while waiting:  # one after another, or by turns
        call = waiting[0] if rng.random() < 0.7 else rng.choice(waiting)
        events.append(call.pop(0))
        waiting = [each for each in waiting if each]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        _perturb(rng, events)
    return [*_head(rng), *events, *_tail(rng, events)]


def _call(rng: random.Random, index: int, choice: int) -> Iterator[Any]:
    text, name = rng.choice(TEXTS), rng.choice(NAMES)
    call_id = rng.choice((f"call_{choice}{index}", f"call_{choice}{index}", name, "shared"))
    kind: Any = rng.choice(("function", "function", "function", "custom"))
    style = rng.random()
    if style < 0.25:
        yield ToolCallDelta(index, call_id, name, text, choice, kind, snapshot=rng.random() < 0.5)
    else:
        cuts = sorted(rng.sample(range(len(text) + 1), min(len(text) + 1, rng.randint(1, 3))))
        pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        first = pieces.pop(0) if style < 0.6 else rng.choice((None, ""))
        yield ToolCallDelta(index, call_id, name, first, choice, kind, anonymous=rng.random() < 0.1)
        yield from (ToolCallDelta(index, None, None, piece, choice, kind) for piece in pieces)
    if rng.random() < 0.2:
        yield ToolCallWhole(index, text, choice)
    if rng.random() < 0.3:
        yield ToolCallEnded(index, choice, rng.random() < 0.8)


def _perturb(rng: random.Random, events: list[Any]) -> None:
    """Do to the events what one kind of server does."""
    places = [place for place, event in enumerate(events) if isinstance(event, ToolCallDelta)]
    if not places:
        return
    place = rng.choice(places)
    delta: ToolCallDelta = events[place]
    match rng.randrange(18):
        case 0:
            events[:] = [evolve(each, index=None) if isinstance(each, ToolCallDelta) else each for each in events]
        case 1:
            events[place] = evolve(delta, index=rng.choice((None, 0, 1, 5)))
        case 2:
            events[place] = evolve(delta, id=rng.choice((None, "", " ", "other", "call_00", "shared")))
        case 3:
            events[place] = evolve(delta, name=rng.choice((None, "", "null", "f", "ing")))
        case 4:
            events.insert(rng.randint(place, len(events)), evolve(delta))
        case 5:  # each fragment has all text so far
            text = ""
            for at in places:
                if (each := events[at]).index == delta.index and each.choice == delta.choice:
                    text += each.arguments or ""
                    events[at] = evolve(each, arguments=text)
        case 6:
            events[place] = evolve(delta, arguments=rng.choice((None, "", " ", "{", "}", '{"a":1}', '{"b":2}', "x")))
        case 7:
            events[:] = [
                evolve(each, id="call_0", name="f")
                if isinstance(each, ToolCallDelta) and each.index == delta.index
                else each
                for each in events
            ]
        case 8:
            events.insert(place, TextDelta("said", delta.choice))
        case 9:
            events.insert(place + 1, ReasoningDelta("thought", delta.choice))
        case 10:
            events.insert(place + 1, ToolCallEnded(delta.index or 0, delta.choice, rng.random() < 0.5))
        case 11:
            events.insert(
                rng.randint(place, len(events)), ToolCallWhole(delta.index or 0, rng.choice(TEXTS), delta.choice)
            )
        case 12:
            events[place] = evolve(delta, extras={"caller": 1}, signature=Opaque("google", "sig"))
        case 13:
            own = [each for each in events if isinstance(each, ToolCallDelta) and each.choice == delta.choice]
            again = tuple(
                evolve(each, arguments=each.arguments or "{}", snapshot=True) for each in own if each.id or each.name
            )
            events.append(ToolCallsWhole(again[: rng.randint(0, 3)], delta.choice))
        case 14:
            del events[place]
        case 15 | 16:  # the id, or the name, comes with a later fragment
            late = [at for at in places if at > place and events[at].index == delta.index]
            if late:
                part: Any = {"id": delta.id} if rng.random() < 0.6 else {"name": delta.name}
                events[late[0]] = evolve(events[late[0]], **part)
                events[place] = evolve(delta, **dict.fromkeys(part))
        case _:
            events.insert(place, Aside("openai", "unknown_event", "x", {"y": 1}, choice=delta.choice))


def _head(rng: random.Random) -> Iterator[Any]:
    if rng.random() < 0.7:
        yield ResponseStarted("r", "m")
    if rng.random() < 0.3:
        yield TextDelta("Let me see.")


def _tail(rng: random.Random, events: list[Any]) -> Iterator[Any]:
    for choice in sorted({event.choice for event in events if hasattr(event, "choice")}):
        if rng.random() < 0.8:
            reason: Any = rng.choice(("tool_calls", "tool_calls", "tool_calls", "stop", "length", "content_filter"))
            yield StopReasonSeen(reason, reason, choice)
    if rng.random() < 0.1:
        yield LastFrameBroken(b'{"x"')
    if rng.random() < 0.7:
        yield TerminatorSeen()


def outcome(seed: int) -> str:
    """What the accumulator makes of a stream, read in pieces, and what it reports of it: a few lines of text."""
    rng = random.Random(seed)
    events = stream(rng)
    report, policy = StreamReport(), rng.choice(POLICIES)
    made = iter(range(100))
    machine = ToolCallAccumulator(
        limits=rng.choice(LIMITS),
        report=report,
        policy=policy,
        make_id=lambda prefix: f"{prefix}{next(made)}",
        join=rng.random() < 0.3,
    )
    lines, at = [f"== {seed}"], 0
    size = rng.choice((1, 1, 2, 5, 40))
    while at < len(events) and machine.fault is None:
        lines += map(_line, machine.feed(events[at : at + size]))
        at += size
    if machine.fault is None:
        lines += map(_line, machine.finish() if rng.random() < 0.9 else machine.abandon())
    counted = {**report.repairs, **{f"-{kind}": times for kind, times in report.losses.items()}}
    fault = "" if machine.fault is None else f" {type(machine.fault).__name__}"
    lines.append(f"   {dict(sorted(counted.items()))} {report.clean}{fault}")
    return "\n".join(lines)


#: What a line begins with instead of the name of the event's class.
SHORT = {
    "ResponseStarted": "head", "TextDelta": "text", "ReasoningDelta": "thought", "ToolCallStarted": "start",
    "ToolCallArguments": "more", "ToolCallFinished": "end", "ResponseFinished": "stop", "StreamEnded": "over",
}  # fmt: skip


def _line(event: object) -> str:
    """An event without the fields that have their defaults."""
    kind: Any = type(event)
    fields = (
        f"{each.name}={getattr(event, each.name)!r}".removeprefix("call=").removeprefix("arguments=")
        for each in kind.__attrs_attrs__
        if getattr(event, each.name) != each.default and each.name not in {"vendor", "native"}
    )
    return f"{SHORT.get(kind.__name__, kind.__name__)} {' '.join(fields)}".rstrip()


def outcomes() -> dict[int, str]:
    """What was written down, by seed."""
    parts = OUTCOMES.read_text("utf-8").split("== ")[1:]
    return {int(part.partition("\n")[0]): f"== {part}".rstrip("\n") for part in parts}


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        OUTCOMES.write_text("".join(f"{outcome(seed)}\n" for seed in SEEDS), "utf-8")
    else:
        print(outcome(int(sys.argv[1])))
