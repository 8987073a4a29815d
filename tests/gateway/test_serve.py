"""Workers that do not end are ended. All else about processes is looked at in real ones: test_processes.py."""

import logging
from types import SimpleNamespace

import pytest

from streamkit.gateway.serve import _ended, _Worker


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


async def test_a_worker_that_does_not_end_in_time_is_killed_and_the_status_says_so(caplog):
    caplog.set_level(logging.ERROR)
    process = Stubborn()
    assert await _ended([_Worker(process, SimpleNamespace())], within_s=0.1) == 1
    assert process.told == ["terminate", "kill", "join"]
    assert caplog.messages == ["a worker did not end in time and is killed"]


@pytest.mark.parametrize(("exitcodes", "status"), [([0, 0], 0), ([0, 1], 1), ([-11, 0], 1)])
async def test_the_status_is_good_if_every_workers_is(exitcodes, status):
    workers = [_Worker(Stubborn(exitcode), SimpleNamespace()) for exitcode in exitcodes]
    assert await _ended(workers, within_s=0.1) == status
    assert [worker.process.told for worker in workers] == [["join"]] * 2
