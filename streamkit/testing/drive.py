"""Run a stage or a machine over given items.

The functions work for all types of items: bytes in and events out, or the reverse.
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
    """Yield the items, as a source that never waits."""
    for item in items:
        yield item


async def adrive(stage: StageFunction[A, B], items: Iterable[A]) -> list[B]:
    """Return the output of ``stage`` for ``items``, run in a separate pipe. Raises what the stage raises."""
    async with pipe(source_of(items), stage) as stream:
        return [output async for output in stream]


def drive(stage: StageFunction[A, B], items: Iterable[A]) -> list[B]:
    """Run ``adrive`` in a new event loop, for tests that are not coroutines."""
    return asyncio.run(adrive(stage, items))


def drive_machine(machine: Machine[A, B], items: Iterable[A]) -> list[B]:
    """Return the output of a machine for ``items`` and at their end. Falsy outputs are left out, as in a stage.

    A fault ends the run: the output so far stays in the list, and ``machine.fault`` says why.
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
