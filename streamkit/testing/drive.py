"""Run a stage or a machine over items that are at hand.

Nothing here knows what flows: bytes in and events out, or the other way round.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from streamkit.machines import Machine
from streamkit.pipeline import StageFunction, pipe

A = TypeVar("A")
B = TypeVar("B")


async def source_of(items: Iterable[A]) -> AsyncIterator[A]:
    """The items as a source that never waits."""
    for item in items:
        yield item


async def adrive(stage: StageFunction[A, B], items: Iterable[A]) -> list[B]:
    """What ``stage`` yields for ``items``, in a pipe of its own. Raises what the stage raises."""
    async with pipe(source_of(items), stage) as stream:
        return [output async for output in stream]


def drive(stage: StageFunction[A, B], items: Iterable[A]) -> list[B]:
    """``adrive`` in an event loop of its own, for tests that are not coroutines."""
    return asyncio.run(adrive(stage, items))


def drive_machine(machine: Machine[A, B], items: Iterable[A]) -> list[B]:
    """What a machine hands over for ``items`` and at their end; falsy outputs are left out, as in a stage.

    A fault ends it: what was handed over stays in the list, and ``machine.fault`` says why.
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
