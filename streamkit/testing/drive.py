"""Run a stage or a machine over given items, and compare events in their normal form (law L1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

from streamkit.machines import Machine
from streamkit.pipeline import StageFunction, pipe, source_of
from streamkit.tool_calls.joining import join_deltas

A = TypeVar("A")
B = TypeVar("B")


async def adrive(stage: StageFunction[A, B], items: Iterable[A]) -> list[B]:
    """Return the output of ``stage`` for ``items``, run in a separate pipe. Raises what the stage raises."""
    async with pipe(source_of(items), stage) as stream:
        return [output async for output in stream]


def drive(stage: StageFunction[A, B], items: Iterable[A]) -> list[B]:
    """Run ``adrive`` in a new event loop, for tests that are not coroutines."""
    return asyncio.run(adrive(stage, items))


def drive_machine(machine: Machine[A, B], items: Iterable[A]) -> list[B]:
    """Return the output of a machine for ``items`` and at their end. Falsy outputs are left out, as in a stage.

    A fault ends the run. The list then has the output so far, and ``machine.fault`` is the error.
    """
    outputs: list[B] = []
    for item in items:
        if output := machine.feed(item):
            outputs.append(output)
        if machine.fault is not None:
            break
    else:
        if output := machine.finish():
            outputs.append(output)
    if machine.fault is not None and (output := machine.abandon()):
        outputs.append(output)
    return outputs


def joined(events: Iterable[Any]) -> list[Any]:
    """Return ``events`` with adjacent deltas joined. Equal lists mean equal streams, however they were split into reads.

    Adjacent deltas of text, refusal or reasoning are joined if they have the same class, choice, block and kind. A delta of
    another block or choice separates them, because the order between blocks is part of the stream. In a run of only argument
    fragments, those of one call are joined at the place of the first. The order of fragments across calls has no meaning,
    because streamkit may regroup them inside a read. All other events keep their place and end every run, also events of
    classes that are not streamkit's.

    The given events are not changed.
    """
    return join_deltas([*events])
