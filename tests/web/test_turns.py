"""A burst begins a few in each turn of the event loop, in its order, and one alone does not wait."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from streamkit.web.heavy import AT_ONCE, Turns
from tests.web.serving import counted_turns


@pytest.fixture
async def turn():
    with counted_turns() as turn:
        yield turn


async def test_a_burst_begins_a_few_in_each_turn_and_in_its_order(turn):
    turns, begun = Turns(), []

    async def one(number):
        await turns.wait()
        begun.append((turn(), number))

    await asyncio.gather(*(one(number) for number in range(100)))
    assert [number for _, number in begun] == list(range(100))
    assert max(Counter(when for when, _ in begun).values()) <= AT_ONCE


async def test_one_alone_does_not_wait(turn):
    turns = Turns()
    for _ in range(3):
        before = turn()
        await turns.wait()
        assert turn() == before
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_who_leaves_while_waiting_takes_nobodys_place(turn):
    turns, begun = Turns(1), []

    async def one(number):
        await turns.wait()
        begun.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(10)]
    await asyncio.sleep(0)
    for task in tasks[1:9]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun == [0, 9]


async def test_nothing_is_scheduled_once_nobody_comes():
    turns = Turns()
    await asyncio.gather(*(turns.wait() for _ in range(20)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not turns._timed
