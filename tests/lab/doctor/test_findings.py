"""Reads against events, at times that no test waits for."""

from __future__ import annotations

from streamkit.lab.doctor.findings import of_reads
from streamkit.lab.recording import Read


def message(*times, frames):
    """What is said of an answer whose reads came at these times; empty: nothing."""
    return "".join(finding.message for finding in of_reads([Read(t, b"x") for t in times], frames))


def test_one_read_after_a_long_wait_was_held_back():
    said = message(2.5, frames=60)
    assert said.startswith("all 60 events came in one read, 2.50 s after the request")
    assert "until it is complete" in said


def test_one_read_at_once_may_be_a_server_that_is_faster_than_its_network():
    said = message(0.01, frames=60)
    assert "until it is complete" not in said
    assert "faster than the network" in said


def test_bunches_over_some_time_are_named_with_their_numbers():
    assert message(0.1, 1.1, 2.1, frames=60).startswith("60 events came in 3 reads over 2.00 s")


def test_a_stream_and_what_is_too_short_or_too_fast_to_tell_are_no_buffer():
    assert message(*(0.1 * each for each in range(60)), frames=60) == ""
    assert message(*(0.1 * each for each in range(20)), frames=60) == ""
    assert message(0.5, frames=5) == ""
    assert message(0.01, 0.02, frames=60) == ""
    assert message(frames=0) == ""
