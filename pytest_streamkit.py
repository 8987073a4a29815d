"""Pytest fixtures, found through the entry point ``pytest11``.

The module stands beside the package because pytest imports it at every run of everybody who has streamkit installed:
nothing but pytest is imported until a test asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # nothing of it is imported where nobody asks
    from streamkit.mock import ServedMock


@pytest.fixture
def open_sources() -> Iterator[Callable[[], int]]:
    """``streamkit.testing.open_sources``; after the test every ``FaultySource`` that it opened must be closed."""
    from streamkit.testing import sources  # noqa: PLC0415 - no cost to those who do not ask

    sources.forget_open_sources()
    yield sources.open_sources
    left = sources.forget_open_sources()
    assert not left, f"L7, prompt close: the test left {left} source(s) open"  # noqa: S101 - a fixture's verdict


@pytest.fixture
def stage_checker(open_sources: Callable[[], int]) -> Callable[..., Awaitable[None]]:  # noqa: ARG001 - its teardown counts
    """``streamkit.testing.check_stage``; leaves of it are found by ``open_sources``."""
    from streamkit.testing.check import check_stage  # noqa: PLC0415 - no cost to those who do not ask

    return check_stage


@pytest.fixture
def streamkit_mock() -> Iterator[Callable[..., ServedMock]]:
    """Starts a scripted provider: ``streamkit.mock.served_mock`` with the same arguments, ``streamkit_mock([Say("Hi")])``.

    What it gives has ``url`` and ``verdict``. With ``clean=True`` the test fails at its end where the verdict has a fault.
    """
    from streamkit.mock import served_mock  # noqa: PLC0415 - no cost to those who do not ask

    judged: list[ServedMock] = []
    with ExitStack() as stack:

        def start(script: Any = None, *, clean: bool = False, **options: Any) -> ServedMock:
            mock = stack.enter_context(served_mock(script, **options))
            if clean:
                judged.append(mock)
            return mock

        yield start
    for mock in judged:
        assert mock.verdict.clean, str(mock.verdict)  # noqa: S101 - a fixture's verdict
