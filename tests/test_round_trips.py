"""There and back: a stream through another dialect says the same again, but for the losses that were counted.

Text, complete calls with the bytes of their arguments, reasoning and what is signed or encrypted are compared as they are, in
their order. What a counted loss allows to differ is one table; nothing else may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import define, evolve, field

from streamkit.dialects import DIALECTS
from streamkit.events import (
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.framing.frame import escape_separators
from streamkit.tool_calls.value_text import plain_text
from tests.laws.running import OBJECTS, OURS, Outcome, Stream, read, recorded, translate
from tests.sampling import drawn, few_pairs, marks

#: Recordings of each collection that `make test` draws for each pair of dialects.
SAMPLE = 1


@define
class Said:
    """What a choice said, in order: ``(kind, block, text)``, and ``("call", number, …)`` where a call began."""

    items: list[tuple[Any, ...]] = field(factory=list)
    calls: list[dict[str, Any]] = field(factory=list)
    stop: str | None = None

    def add(self, kind: str, block: int, text: str) -> None:
        if self.items and self.items[-1][:2] == (kind, block):
            self.items[-1] = (kind, block, self.items[-1][2] + text)
        else:
            self.items.append((kind, block, text))


@define
class Whole:
    choices: dict[int, Said]
    usage: tuple[Any, ...] | None


def whole(outcome: Outcome) -> Whole:
    choices: dict[int, Said] = {}
    usage = None
    starts = {}
    for event in outcome.events:
        if isinstance(event, UsageReported):
            usage = tuple(getattr(event, name) for name in USAGE)
            continue
        said = choices.setdefault(event.choice, Said()) if hasattr(event, "choice") else Said()
        match event:
            case TextDelta():
                said.add("text", event.block, event.text)
            case RefusalDelta():
                said.add("refusal", event.block, event.text)
            case ReasoningDelta():
                said.add("reasoning", event.block, event.text)
            case ReasoningSignature():
                said.add(f"signature of {event.vendor} on {event.on}", event.block, event.blob)
            case ReasoningOpaque():
                said.items.append((f"opaque of {event.vendor}", event.block, event.blob))
            case ToolCallStarted():
                starts[event.choice, event.call] = event.signature
                said.items.append(("call", event.call, ""))
            case ToolCallFinished():
                signature = starts.get((event.choice, event.call))
                said.calls.append(
                    {
                        "call": event.call,
                        "id": event.id,
                        "name": event.name,
                        "arguments": arguments(event),
                        "signature": signature,
                    }
                )
    for number, said in choices.items():
        said.stop = outcome.stops.get(number)
        said.calls.sort(key=lambda call: call["call"])
        said.items = numbered(said.items)
    return Whole({number: said for number, said in choices.items() if said != Said()}, usage)


USAGE = ("input_total", "input_cached", "input_cache_write", "output_total", "output_reasoning")


def arguments(event: ToolCallFinished) -> bytes:
    """The text, blank as ``{}``, with what clients would split lines at written as every dialect may write it."""
    text = event.arguments.strip().replace("\r", " ").replace("\n", " ").encode() or b"{}"
    return escape_separators(text)


def numbered(items: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Blocks by the order in which they were first mentioned: labels are each dialect's own."""
    labels: dict[tuple[str, int], int] = {}
    return [
        (kind, block if kind == "call" else labels.setdefault((kind.split()[-1], block), len(labels)), text)
        for kind, block, text in items
    ]


# -- what a loss allows ------------------------------------------------------------------------------------------------


def without(*kinds: str) -> Callable[[Whole], Whole]:
    def change(seen: Whole) -> Whole:
        for said in seen.choices.values():
            said.items = numbered([item for item in said.items if not item[0].startswith(kinds)])
        return seen

    return change


def by_kind(seen: Whole) -> Whole:
    """All of a kind as one: neither order nor boundaries count, nor the blank line that a boundary becomes."""
    for said in seen.choices.values():
        joined: dict[str, str] = {}
        for kind, _, text in said.items:
            joined[kind] = joined.get(kind, "") + text.replace("\n\n", "")
        said.items = sorted((kind, 0, text) for kind, text in joined.items())
    return seen


def one_text(seen: Whole) -> Whole:
    """Neighbouring texts as one, as they are written for Cohere, and without the blank line between two phases."""
    for said in seen.choices.values():
        items: list[tuple[Any, ...]] = []
        for kind, block, text in said.items:
            if kind == "text" and items and items[-1][0] == "text":
                items[-1] = ("text", items[-1][1], items[-1][2] + text)
            else:
                items.append((kind, block, text))
        texts = [(kind, block, text.replace("\n\n", "") if kind == "text" else text) for kind, block, text in items]
        said.items = numbered(texts)
    return seen


def refusal_as_text(seen: Whole) -> Whole:
    for said in seen.choices.values():
        said.items = [("text" if kind == "refusal" else kind, block, text) for kind, block, text in said.items]
    return by_kind(seen)


def ids_apart(seen: Whole) -> Whole:
    for said in seen.choices.values():
        for call in said.calls:
            call["id"] = None
    return seen


def unsigned_calls(seen: Whole) -> Whole:
    for said in seen.choices.values():
        for call in said.calls:
            call["signature"] = None
    return without("signature")(seen)


def plain_arguments(seen: Whole) -> Whole:
    """Escapes as characters, since arguments that are an object have no escapes of their own."""
    for said in seen.choices.values():
        for call in said.calls:
            call["arguments"] = plain_text(call["arguments"].decode())
    return seen


def calls_apart(seen: Whole) -> Whole:
    for said in seen.choices.values():
        said.calls, said.stop = [], None
    return without("call")(seen)


def any_stop(seen: Whole) -> Whole:
    for said in seen.choices.values():
        said.stop = None
    return seen


def any_usage(seen: Whole) -> Whole:
    return evolve(seen, usage=None)


def one_choice(seen: Whole) -> Whole:
    return evolve(seen, choices={0: next(iter(seen.choices.values()))} if seen.choices else {})


ALLOWED: Mapping[str, Callable[[Whole], Whole]] = {
    "extra_choice": one_choice,
    "refusal_as_text": refusal_as_text,
    "block_order": by_kind,
    "block_boundary": by_kind,
    "reasoning_signature": unsigned_calls,
    "reasoning_opaque": without("opaque"),
    "call_id": ids_apart,
    "call_withheld": calls_apart,
    "late_arguments": calls_apart,
    "arguments_wrapped": calls_apart,
    "custom_tool_wrapped": calls_apart,
    "client_tool": calls_apart,  # it is a call elsewhere, and comes back as one
    "stop_reason": any_stop,
    "usage_detail": any_usage,
    "usage_unknown": any_usage,
}


def check(stream: Stream, through: str) -> None:
    first = read(stream.dialect, [stream.body])
    if not first.clean:
        return
    there, lost = translate(stream.dialect, through, [stream.body], passing=False)
    back, lost_again = translate(through, stream.dialect, [there], passing=False)
    again = read(stream.dialect, [back])
    assert again.clean
    losses = lost.losses + lost_again.losses
    want, seen = whole(first), whole(again)
    for kind, change in ALLOWED.items():
        if losses[kind]:
            want, seen = change(want), change(seen)
    if lost_again.repairs["stop_conflict"]:  # a call that Responses says is incomplete ends a truncated turn
        want, seen = any_stop(want), any_stop(seen)
    if through in OBJECTS:
        want, seen = plain_arguments(want), plain_arguments(seen)
    if "cohere" in {stream.dialect, through} or b'"phase"' in stream.body:
        want, seen = one_text(want), one_text(seen)
    assert seen == want, Counter(losses)


@pytest.mark.parametrize(("stream", "through"), few_pairs(OURS, "there and back", each=2, name=str))
def test_our_streams_come_back(stream, through):
    check(stream, through)


def recorded_cases() -> list[Any]:
    """Every recording through every dialect; each pair draws its own."""
    found = []
    for through in DIALECTS:
        chosen = {id(stream) for stream in drawn(recorded(), SAMPLE, f"there and back {through}")}
        found += [
            pytest.param(stream, through, id=f"{stream}-through-{through}", marks=marks(id(stream) in chosen))
            for stream in recorded()
        ]
    return found


@pytest.mark.parametrize(("stream", "through"), recorded_cases())
def test_recorded_streams_come_back(stream, through):
    check(stream, through)
