"""Pytest fixtures, found through the entry point ``pytest11``.

This module is outside the package because pytest imports it in every run where streamkit is installed: until a test uses a
fixture, only pytest is imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # not imported at run time
    from pathlib import Path

    from aiohttp import web

    from streamkit.lab.mock import ServedMock
    from streamkit.lab.replayer.app import Otherwise
    from streamkit.lab.replayer.fixture import ReplayFixture

RECORD = "--streamkit-record"
ALIAS = "--record"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--streamkit-record``."""
    parser.getgroup("streamkit").addoption(
        RECORD,
        action="store_true",
        help=f"streamkit_replay: record what no recording answers, from its `to` (also {ALIAS}, unless that is another's)",
    )


@pytest.hookimpl(trylast=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    """Treat ``--record`` as ``--streamkit-record`` if no other plugin defines it. Plugins and conftests are loaded by now."""
    if ALIAS in args and ALIAS in parser.parse_known_and_unknown_args(args)[1]:
        args[args.index(ALIAS)] = RECORD


@pytest.fixture
def streamkit_replay(request: pytest.FixtureRequest) -> Iterator[ReplayFixture]:
    """Serve recordings in files next to the test. Fail the test if it sends a request that has no recording.

    ``url = streamkit_replay("name")``, with the options of ``ReplayFixture.__call__``.
    """
    from streamkit.lab.replayer.fixture import ReplayFixture  # noqa: PLC0415 - not loaded unless a test uses it

    records = request.config.getoption(RECORD)
    replays = ReplayFixture(request.path.parent, record=_record if records else None)
    yield replays
    if faults := replays.finish():
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.fixture
def open_sources() -> Iterator[Callable[[], int]]:
    """Return ``streamkit.testing.open_sources``. After the test, every ``FaultySource`` that it opened must be closed."""
    from streamkit.testing import sources  # noqa: PLC0415 - not loaded unless a test uses it

    sources.forget_open_sources()
    yield sources.open_sources
    left = sources.forget_open_sources()
    assert not left, f"L7, prompt close: the test left {left} source(s) open"  # noqa: S101 - a fixture's verdict


@pytest.fixture
def stage_checker(open_sources: Callable[[], int]) -> Callable[..., Awaitable[None]]:  # noqa: ARG001 - its teardown counts
    """Return ``streamkit.testing.check_stage``. The fixture ``open_sources`` fails the test if a source stays open."""
    from streamkit.testing.check import check_stage  # noqa: PLC0415 - not loaded unless a test uses it

    return check_stage


@pytest.fixture
def streamkit_mock() -> Iterator[Callable[..., ServedMock]]:
    """Start a scripted provider: ``streamkit.lab.mock.served_mock`` with the same arguments, ``streamkit_mock([Say("Hi")])``.

    The returned object has ``url`` and ``verdict``. With ``clean=True``, the test fails at its end if the verdict has a fault.
    """
    from streamkit.lab.mock import served_mock  # noqa: PLC0415 - not loaded unless a test uses it

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


def _record(app: web.Application, to: str, folder: Path, warn: Callable[[str], None]) -> Otherwise:
    """Return a handler that passes requests to a provider and records them. See ``streamkit.lab.replayer.fixture.Record``."""
    import asyncio  # noqa: PLC0415 - not loaded unless a test records

    from streamkit.lab.recorder import Proxy, base_url  # noqa: PLC0415
    from streamkit.lab.recording.recorder import Recorder  # noqa: PLC0415

    recorder = Recorder(folder, warn=warn)
    proxy = Proxy(base_url(to), recorder, tell=lambda _exchanged: None)
    proxy.add_to(app)

    async def close(_app: web.Application) -> None:
        if not await asyncio.to_thread(recorder.close):
            warn(f"the disk was too slow: not all that {to} answered is in {folder}")

    app.on_cleanup.append(close)
    return proxy.pass_on
