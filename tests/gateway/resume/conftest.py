"""Servers for the tests of the store in Redis; a test that takes ``server`` runs with each that is on this machine.

And two workers, each with a store of its own, for those of the store of several.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from streamkit.resume import MemoryStore
from streamkit.resume.memory import new_boot
from streamkit.resume.worker_store import WorkerStore
from tests.resume.contract import LIMITS, Stores
from tests.resume.servers import NAMES, program, running
from tests.web.conftest import no_leaks

__all__ = ["no_leaks"]


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """By name, each started when it is first asked for."""
    started = {}
    with ExitStack() as stack:

        def named(name):
            if program(name) is None:
                pytest.skip(f"no {name}-server on this machine")
            if name not in started or started[name].process.poll() is not None:
                started[name] = stack.enter_context(running(name, tmp_path_factory.mktemp(name)))
            return started[name]

        yield named


@pytest.fixture(params=NAMES)
def server(request, servers):
    found = servers(request.param)
    assert found.say("FLUSHALL") == "+OK"
    return found


@pytest.fixture(params=["valkey", pytest.param("redis", marks=pytest.mark.exhaustive)])
def one_server(request, servers):
    """For tests that mostly wait: in the ordinary run with the server that is everywhere."""
    found = servers(request.param)
    assert found.say("FLUSHALL") == "+OK"
    return found


@pytest.fixture
def directory():
    with tempfile.TemporaryDirectory(prefix="t-") as name:  # tmp_path is too long for sockets
        yield Path(name)


@pytest.fixture
async def workers(directory):
    both = [WorkerStore(MemoryStore(LIMITS, boot=new_boot()), directory) for _ in range(2)]
    yield Stores(*both)
    for store in both:
        await store.close()
