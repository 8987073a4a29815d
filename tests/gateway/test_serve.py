"""Workers that do not end are ended, and those that do are replaced. All else about processes is looked at in real ones: test_processes.py."""

import asyncio
import logging
import os
import stat
import tempfile
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamkit.errors import UsageError
from streamkit.gateway import serve
from streamkit.gateway.config import Config, Resume, Server
from streamkit.gateway.serve import _ended, _kept, _parent, _Worker
from streamkit.gateway.signals import Signals
from tests.web.serving import eventually


class Stubborn:
    """A worker's process that hears no SIGTERM, or ends by itself with a status."""

    pid = 4711

    def __init__(self, exitcode=None):
        self.exitcode = exitcode
        self.told = []

    def is_alive(self):
        return self.exitcode is None

    def terminate(self):
        self.told.append("terminate")

    def kill(self):
        self.told.append("kill")
        self.exitcode = -9

    def join(self):
        self.told.append("join")


def worker(process, readiness=None):
    """A worker that is told nothing: its end of the pipe is closed."""
    orders, theirs = Pipe()
    theirs.close()
    return _Worker(process, readiness or Pipe()[0], orders)


async def test_a_worker_that_does_not_end_in_time_is_killed_and_the_status_says_so(caplog):
    caplog.set_level(logging.ERROR)
    process = Stubborn()
    assert await _ended([worker(process)], 0.1, Signals(), lambda *_: None) == 1
    assert process.told == ["terminate", "kill", "join"]
    assert caplog.messages == ["a worker did not end in time and is killed"]


@pytest.mark.parametrize(("exitcodes", "status"), [([0, 0], 0), ([0, 1], 1), ([-11, 0], 1)])
async def test_the_status_is_good_if_every_workers_is(exitcodes, status):
    workers = [worker(Stubborn(exitcode)) for exitcode in exitcodes]
    assert await _ended(workers, 0.1, Signals(), lambda *_: None) == status
    assert [worker.process.told for worker in workers] == [["join"]] * 2


CONFIG = Config(server=Server(port=0, private="off", workers=2), upstreams={}, routes=())


@pytest.fixture
def made(monkeypatch):
    """The workers that are started: each lives, and listens where the test writes into its pipe."""
    made = []

    def started(_config, _directory):
        told, listens = Pipe(duplex=False)
        made.append(SimpleNamespace(worker=worker(Stubborn(), told), listens=listens))
        return made[-1].worker

    monkeypatch.setattr(serve, "_started", started)
    monkeypatch.setattr(serve, "forget_live", lambda _pid: None)
    monkeypatch.setattr(serve, "RESTART_S", 0.01)
    monkeypatch.setattr(serve, "LOOK_S", 0.01)
    return made


async def test_workers_that_die_together_are_replaced_together(made, monkeypatch):
    waits = []

    async def wait(_event, seconds):
        waits.append(seconds)

    monkeypatch.setattr(serve, "_wait", wait)
    workers = [worker(Stubborn(exitcode)) for exitcode in (-9, None, -9, -9)]
    kept = await _kept(workers, lambda: serve._started(CONFIG, ""), asyncio.Event())
    assert (len(made), waits) == (3, [0.01])
    assert kept == [made[0].worker, workers[1], made[1].worker, made[2].worker]


def test_a_worker_that_listened_and_gives_no_sign_for_so_many_looks_is_killed_once(caplog):
    caplog.set_level(logging.ERROR)
    read, written = Pipe(duplex=False)
    worker = _Worker(Stubborn(), read, read)

    def looks(number):
        for _ in range(number):
            worker.look(1.0)
        return worker.process.told

    assert looks(50) == []  # it may be importing
    written.send_bytes(b"")
    assert looks(5) == []  # the first look got the sign
    written.send_bytes(b"")
    written.send_bytes(b"")  # while the parent was busy
    assert looks(5) == []
    assert looks(1) == ["kill"]
    worker.process.exitcode = None  # it takes its time to die
    assert looks(9) == ["kill"]
    assert caplog.messages == ["a worker is stopped or hangs, and is killed"]
    assert caplog.records[0].fields == {"pid": 4711, "silent_s": 1.0}


async def test_a_sign_that_the_parent_does_not_read_holds_up_no_worker():
    read, written = Pipe(duplex=False)
    os.set_blocking(written.fileno(), False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(written.fileno(), bytes(65_536))
    serve._give_sign(written, 60.0)  # the parent is stopped
    read.close()
    serve._give_sign(written, 60.0)  # it is gone


async def test_serving_is_said_once_all_workers_listen_and_not_when_one_dies_first(made, monkeypatch):
    signals, announced = Signals(), []
    monkeypatch.setattr(serve, "signals_of_gateway", lambda **_: signals)
    running = asyncio.create_task(_parent(CONFIG, announced.append, directory="", tell=announced.append))
    await eventually(lambda: len(made) == 2)
    made[0].listens.send(None)
    made[1].worker.process.exitcode = 1
    made[1].listens.close()
    await eventually(lambda: len(made) == 3)
    await asyncio.sleep(0.1)
    assert not announced
    made[2].listens.send(None)
    await eventually(lambda: announced)
    made[0].worker.process.exitcode = 1
    await eventually(lambda: len(made) == 4)
    made[3].listens.send(None)
    await asyncio.sleep(0.1)
    assert len(announced) == 1
    for each in made:
        each.worker.process.exitcode = 0
    signals.stop.set()
    assert await running == 0


def test_a_folder_for_counts_that_cant_be_made_refuses_the_start_with_its_name(monkeypatch, tmp_path):
    nowhere = tmp_path / "nowhere"
    monkeypatch.setenv("TMPDIR", str(nowhere))
    monkeypatch.setattr("tempfile.tempdir", str(nowhere))
    with pytest.raises(UsageError) as refused:
        serve.serve(CONFIG, CONFIG.server, lambda _url: None)
    assert str(nowhere) in str(refused.value)
    assert "no such file or directory" in str(refused.value)


@pytest.mark.parametrize("store", ["memory", "off"])
def test_a_folder_that_is_too_long_for_the_sockets_of_workers_is_told_where_they_need_some(
    monkeypatch, tmp_path, store
):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    shared = serve._shared_folder(Resume(store=store))
    if store == "off":
        with shared as directory:
            assert directory.startswith(str(folder))
    else:
        with pytest.raises(UsageError, match="set TMPDIR to a shorter path"), shared:
            raise AssertionError
    assert not list(folder.iterdir())


def test_the_folder_of_workers_is_nobody_elses(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="t-") as short:
        monkeypatch.setattr("tempfile.tempdir", short)
        with serve._shared_folder(Resume()) as directory:
            assert stat.S_IMODE(Path(directory).stat().st_mode) == 0o700
