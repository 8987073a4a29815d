"""Neighbours become one message, and results stand in front of what the user says."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.bodies.message_order import Message, joined, results_first
from streamkit.report import StreamReport


def is_result(block: dict[str, Any]) -> bool:
    return "result" in block


RESULT, WORDS = {"result": 1}, {"text": "hi"}


def test_neighbours_with_words_are_one_message_which_is_a_repair():
    report = StreamReport()
    one = joined([Message("user", [WORDS], {"a": 1}), Message("user", [WORDS], {"b": 2})], is_result, report)
    assert one == Message("user", [WORDS, WORDS], {"a": 1, "b": 2})
    assert report.repairs == {"turns_joined": 1}


def test_results_and_what_follows_them_are_no_repair():
    report = StreamReport()
    assert joined([Message("user", [RESULT]), Message("user", [WORDS])], is_result, report).blocks == [RESULT, WORDS]
    assert report.repairs == {}


def test_late_results_move_to_the_first_of_the_users_messages():
    report = StreamReport()
    run = [Message("system", [WORDS]), Message("user", [RESULT, WORDS]), Message("user", [RESULT])]
    assert results_first(run, is_result, report) == [
        Message("system", [WORDS]),
        Message("user", [RESULT, RESULT, WORDS]),
    ]
    assert report.repairs == {"result_moved": 1}


def test_without_a_user_nothing_moves():
    run = [Message("assistant", [WORDS])]
    assert results_first(run, is_result, StreamReport()) is run
