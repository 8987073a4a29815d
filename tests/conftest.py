"""What all tests share: no property test is timed, and the sampled run is the same every time."""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from streamkit.dialects import DIALECTS
from streamkit.gateway.log import TALKATIVE
from tests.sampling import too_long

# Containers often keep Python from writing bytecode. Then each worker rewrites the assertions of four hundred files (10 s), and each
# process that a test starts compiles all of streamkit.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A deadline is a timed test, and a busy machine fails it.
settings.register_profile(
    "sampled", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("exhaustive", parent=settings.get_profile("sampled"), derandomize=False, max_examples=1000)


#: Seconds that a case of a test takes, of tests that take long: ``make durations``.
DURATIONS: dict[str, float] = json.loads(Path(__file__).with_name("durations.json").read_text("utf-8"))

_file = ""

# A dialect that happens to be installed beside streamkit is none of ours: the laws run over the built-in ones.
DIALECTS.find = tuple


@pytest.fixture(autouse=True)
def _levels_of_the_log() -> Generator[None]:
    """Restore the levels of the log, which a command that is run in this process sets for all of it."""
    logs = [logging.getLogger(name) for name in (None, *TALKATIVE)]
    levels = [log.level for log in logs]
    yield
    for log, level in zip(logs, levels, strict=True):
        log.setLevel(level)


class Modules:
    """A plugin for runs of pytest in this process: the modules at their ends."""

    def __init__(self) -> None:
        self.loaded: dict[str, ModuleType] = {}

    def pytest_unconfigure(self) -> None:
        self.loaded |= sys.modules


@pytest.fixture
def modules(tmp_path: Path) -> Generator[Modules]:
    """Keep what runs of pytest in this process import, except the modules of the test's folder.

    pytest takes them out of ``sys.modules``, and their packages keep them. After that ``from http import cookiejar`` gives the old
    module and ``from http.cookiejar import CookieJar`` the class of a second one: requests cannot work with both.
    """
    modules = Modules()
    yield modules
    for name, module in modules.loaded.items():
        if not Path(getattr(module, "__file__", None) or "").is_relative_to(tmp_path.parent):
            sys.modules.setdefault(name, module)


@pytest.fixture
def pytester(modules: Modules, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """pytest's own, with ``modules``."""
    monkeypatch.setattr(pytester, "runpytest_inprocess", partial(pytester.runpytest_inprocess, plugins=[modules]))
    return pytester


def pytest_configure(config: pytest.Config) -> None:
    """`make test` leaves the exhaustive forms out; with them, hypothesis looks for longer and anew."""
    settings.load_profile("sampled" if "not exhaustive" in config.option.markexpr else "exhaustive")
    if hasattr(config, "workerinput"):  # of pytest-xdist
        config.pluginmanager.register(Quiet())


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Make no case that would be left out again: those are most of all, and each worker makes them all."""
    option, markers = metafunc.config.option, metafunc.definition.own_markers
    is_sampled = "not exhaustive" in option.markexpr
    for place, marker in enumerate(markers):
        if is_sampled and marker.name == "parametrize":
            names, values = marker.args
            drawn = [value for value in values if not is_exhaustive(value)]
            markers[place] = pytest.mark.parametrize(names, drawn, **marker.kwargs).mark
    yield
    calls, test = metafunc._calls, metafunc.definition.nodeid
    if is_sampled:  # one stays to be deselected, for without cases a test lacks its arguments
        is_whole = any(marker.name == "exhaustive" for marker in markers)
        calls = [call for call in calls if not (is_whole or is_exhaustive(call))] or calls[:1]
    left: set[str] = set()
    if option.seconds:
        left |= too_long(test, [call.id for call in calls], option.seconds, DURATIONS)
    if option.cases:
        left |= beyond(test, [call.id for call in calls], option.cases, option.about)
    metafunc._calls = [call for call in calls if call.id not in left]


def is_exhaustive(value: object) -> bool:
    return any(mark.name == "exhaustive" for mark in getattr(value, "marks", ()))


def pytest_collection() -> None:
    """Nothing that is collected dies before the end: the garbage collector need not look at it again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take tens of thousands of cases out of the collector's sight: a ``gc.collect()`` of a test looks at what the test made."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The same for what tests import and keep, where the next file begins: else a ``gc.collect()`` takes a second at the end."""
    global _file  # noqa: PLW0603 - one line of state
    if item.location[0] != _file:
        _file = item.location[0]
        gc.collect()
        gc.freeze()
    return (yield)


class Quiet:
    """Runs tests in a worker, which writes each report for the process that counts them: without those that say nothing.

    A setup and a teardown that went well are two of three reports of a test; what was printed there is in the report of the call.
    """

    @staticmethod
    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make check` asks each test for a few of its cases, and for all of the dialects that changed."""
    parser.addoption("--cases", type=int, metavar="N", help="of each test no more than N cases, drawn by a seed")
    parser.addoption(
        "--seconds",
        type=float,
        metavar="S",
        help="of each test no more cases than take S seconds by tests/durations.json, but those that name every dialect",
    )
    parser.addoption(
        "--about", action="append", default=[], metavar="NAME", help="with --cases: all cases that name this"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out programs from npm by the gigabyte where no ``-m agents`` asks for them."""
    if "agents" not in config.option.markexpr:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("agents")])
        items[:] = [item for item in items if not item.get_closest_marker("agents")]


def beyond(test: str, cases: list[str], most: int, about: list[str]) -> set[str]:
    """The cases of a test that are not drawn: all but ``most``, and those whose ids hold one of ``about``."""
    others = [case for case in cases if not any(each in case for each in about)]
    return set(random.Random(test).sample(others, max(0, len(others) - most)))
