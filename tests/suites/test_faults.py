"""No fault of aimock's is told as success."""

from pathlib import Path

import pytest

from tests.suites import faults


@pytest.mark.agents
@pytest.mark.timeout(600)
async def test_four_hundred_faults_and_no_silent_cut(tmp_path: Path):
    found = await faults.run(tmp_path)
    assert found.sound == 80
    assert found.ends.total() == 400
    assert not found.silent
    # A timer of a busy aimock's may ring too late to cut anything.
    assert {fault for fault, end in found.ends if end == "whole"} <= {"cut-after-time"}


@pytest.mark.agents
@pytest.mark.timeout(600)
async def test_no_silent_cut_of_an_upstream_over_a_websocket(tmp_path: Path):
    found = await faults.run_over_sockets(tmp_path)
    assert found.sound == 10
    assert found.ends.total() == 40
    assert not found.silent
    assert {fault for fault, end in found.ends if end == "whole"} <= {"none", "cut-after-time"}
