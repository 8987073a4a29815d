"""The normal form in which law L1 compares events.

How a network cut the bytes must not be seen in the events, but it may be seen in how much text one event carries: what
one read brought of one block may leave as one delta. So two lists of events say the same if they are equal once deltas
are joined.

Source: design.md §1 (L1), §9 ("Joining").
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from attrs import evolve

from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallArguments


def joined(events: Iterable[Any]) -> list[Any]:
    """``events`` with adjacent deltas joined: equal lists mean equal streams, however they were cut into reads.

    Text, refusal and reasoning: neighbours become one if they are of one class and agree in choice, block and kind; another
    block or choice in between separates them, because order between blocks is part of the stream. Argument fragments: in
    a run with nothing but fragments between them, those of one call become one, in the place of the first; inside a
    read they may be regrouped, so their order across calls says nothing. Every other event, and each event of a class
    that is not streamkit's, stays where it is and ends every run: starts, ends and usage keep their order.

    The given events are not changed.
    """
    result: list[Any] = []
    run: dict[Hashable, tuple[int, list[str]]] = {}  # where each key's delta stands, and its fragments
    run_class: type | None = None
    for event in events:
        key = _key(event)
        if key is None or type(event) is not run_class or (key not in run and run_class is not ToolCallArguments):
            _close(run, result)
            run_class = None if key is None else type(event)
        if key is None:
            result.append(event)
        elif key in run:
            run[key][1].append(_text(event))
        else:
            run[key] = (len(result), [_text(event)])
            result.append(event)
    _close(run, result)
    return result


def _close(run: dict[Hashable, tuple[int, list[str]]], result: list[Any]) -> None:
    for place, fragments in run.values():
        if len(fragments) > 1:
            event = result[place]
            name = "fragment" if isinstance(event, ToolCallArguments) else "text"
            result[place] = evolve(event, **{name: "".join(fragments)})
    run.clear()


def _key(event: Any) -> Hashable | None:
    match event:
        case ToolCallArguments():
            return event.choice, event.call
        case TextDelta() | RefusalDelta():
            return event.choice, event.block
        case ReasoningDelta():
            return event.choice, event.block, event.kind
        case _:
            return None


def _text(event: Any) -> str:
    return str(event.fragment if isinstance(event, ToolCallArguments) else event.text)
