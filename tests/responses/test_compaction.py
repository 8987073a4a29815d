"""Compaction in whole answers: a summary that can be read is text for clients of other dialects."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.bodies import decode_response, encode_response
from streamkit.dialects import DIALECTS
from streamkit.dialects.compacting import SummaryReader
from streamkit.events import Aside, TextDelta
from streamkit.report import StreamReport
from tests.vectors.field.compaction import BLOCK, SUMMARY

OTHERS = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None and name != "anthropic"]
COMPACTION = {"type": "compaction", "content": SUMMARY, "encrypted_content": "E"}
USAGE = {"input_tokens": 9, "output_tokens": 4}


def answer(*blocks: dict[str, Any], stop: str = "end_turn") -> bytes:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(blocks)}
    return orjson.dumps({**head, "stop_reason": stop, "stop_sequence": None, "usage": USAGE})


@pytest.mark.parametrize("target", OTHERS)
def test_a_summary_is_text_in_whole_answers_of_other_dialects(target):
    report = StreamReport()
    response = decode_response(answer(COMPACTION, {"type": "text", "text": "So?"}), "anthropic")
    assert SUMMARY in encode_response(response, target, report=report).decode()
    assert report.losses["compaction"] == 1
    assert not report.losses["unknown_event"]


def test_within_anthropic_it_stays_as_it_came():
    report = StreamReport()
    response = decode_response(answer(COMPACTION, {"type": "text", "text": "So?"}), "anthropic")
    assert orjson.loads(encode_response(response, "anthropic", report=report))["content"][0] == COMPACTION
    assert not report.losses


def test_a_turn_that_paused_behind_its_compaction_says_the_summary():
    response = decode_response(answer(COMPACTION, stop="compaction"), "anthropic")
    assert SUMMARY in encode_response(response, "openai-chat").decode()


def test_a_compaction_that_failed_has_nothing_to_say():
    report = StreamReport()
    response = decode_response(answer({"type": "compaction", "content": None}), "anthropic")
    encode_response(response, "openai-responses", report=report)
    assert report.losses["compaction"] == 1


def aside(document: dict[str, Any]) -> Aside:
    return Aside("anthropic", "unknown_event", document["type"], document, block=3)


def test_a_delta_assigns():
    reader = SummaryReader(StreamReport())
    start, delta, stop = map(aside, BLOCK)
    assert [reader.take(event) for event in (start, delta, delta, stop)] == [[], [], [], [TextDelta(SUMMARY, 0, 3)]]


def test_a_frame_of_another_block_passes():
    reader = SummaryReader(StreamReport())
    stop = aside(BLOCK[-1])
    assert reader.take(stop) == [stop]
