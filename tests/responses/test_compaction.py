"""Compaction in whole answers: a summary that can be read is text for clients of other dialects."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Request, Text, Turn
from streamkit.dialects.streams.compactions import CompactionReader
from streamkit.errors import BadRequest
from streamkit.events import Aside, TextDelta
from streamkit.report import StreamReport
from streamkit.translation.bodies import (
    decode_request,
    decode_response,
    drop_unreadable,
    encode_request,
    encode_response,
)
from tests.vectors.field.compaction import BLOCK, SUMMARY
from tests.whole_answers import ANSWERING_WHOLE

WITHIN = {"anthropic", "openai-responses"}
OTHERS = [name for name in ANSWERING_WHOLE if name not in WITHIN]
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
    reader = CompactionReader("openai-chat", StreamReport())
    start, delta, stop = map(aside, BLOCK)
    assert [reader.take(event) for event in (start, delta, delta, stop)] == [[], [], [], [TextDelta(SUMMARY, 0, 3)]]


def test_a_frame_of_another_block_passes():
    reader = CompactionReader("openai-chat", StreamReport())
    stop = aside(BLOCK[-1])
    assert reader.take(stop) == [stop]


# -- there and back ----------------------------------------------------------------------------------------------------

BLOB = "gAAAA-secret"
OPENAIS = {"type": "compaction", "id": "cmp_1", "encrypted_content": BLOB}
SIGNED = {**COMPACTION, "signature": "S", "tool_changes": []}


def compacted(*items: dict[str, Any]) -> bytes:
    """A whole answer of Responses that begins with its compaction."""
    said = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant"}
    text = {"type": "output_text", "text": "So?", "annotations": []}
    head = {"id": "r", "object": "response", "model": "m", "status": "completed"}
    return orjson.dumps({**head, "output": [*items, {**said, "content": [text]}]})


def sent_back(body: bytes, dialect: str) -> Request:
    """The request in which a client of ``dialect`` sends an answer back."""
    answer = decode_response(body, dialect).choices[0]
    return Request(
        dialect, "m", [Turn("user", [Text("Hi")]), Turn("assistant", answer.parts), Turn("user", [Text("On.")])]
    )


def through(source: str, body: bytes, client: str) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    return orjson.loads(encode_response(decode_response(body, source), client, report=report)), report


def test_a_block_of_anthropic_is_an_item_for_responses_and_the_block_again():
    told, report = through("anthropic", answer(SIGNED, {"type": "text", "text": "So?"}), "openai-responses")
    item, message = told["output"]
    assert (item["type"], set(item)) == ("compaction", {"type", "id", "encrypted_content"})
    assert message["content"][0]["text"] == "So?"  # not the summary too, which would come back twice
    assert report.losses == {"usage_unknown": 1}
    body = orjson.dumps(
        {"model": "m", "input": [item, {"role": "user", "content": "On."}]}
    )  # what was before is left out
    request = decode_request(body, "openai-responses")
    written = orjson.loads(encode_request(request, "anthropic", max_tokens=9))
    assert written["messages"] == [{"role": "assistant", "content": [SIGNED]}, {"role": "user", "content": "On."}]
    assert SUMMARY in encode_request(request, "openai-chat").decode()
    [assistant, _] = orjson.loads(encode_request(request, "openai-responses"))["input"]
    assert assistant == {"role": "assistant", "content": SUMMARY}  # OpenAI would refuse the item


def test_an_item_of_openai_is_a_block_for_anthropic_and_the_item_again():
    told, report = through("openai-responses", compacted(OPENAIS), "anthropic")
    block, _ = told["content"]
    assert (block["type"], BLOB in block["content"]) == ("compaction", False)
    assert block["content"]  # null would say that it failed
    assert not report.losses["compaction"] + report.losses["unknown_event"]
    messages = [{"role": "assistant", "content": told["content"]}, {"role": "user", "content": "On."}]
    request = decode_request(orjson.dumps({"model": "m", "max_tokens": 9, "messages": messages}), "anthropic")
    item, *_ = orjson.loads(encode_request(request, "openai-responses"))["input"]
    assert item == {"type": "compaction", "encrypted_content": BLOB}
    for target in ("anthropic", "openai-chat", "gemini"):
        with pytest.raises(BadRequest, match=r"compaction of OpenAI, which only another") as refused:
            encode_request(request, target, max_tokens=9)
        assert refused.value.path == "messages[0].content[0]"
        report = StreamReport()
        encode_request(drop_unreadable(request, target), target, max_tokens=9, report=report)
        assert report.losses["reasoning_opaque"] == 1


@pytest.mark.parametrize("client", OTHERS)
def test_an_item_of_openai_comes_back_through_whoever_has_a_place_for_reasoning_that_nobody_reads(client):
    told, report = through("openai-responses", compacted(OPENAIS), client)
    if report.losses["reasoning_opaque"]:
        assert client in {"ollama", "cohere"}
        return
    assert not report.losses["compaction"] + report.losses["unknown_event"]
    request = sent_back(orjson.dumps(told), client)
    items = orjson.loads(encode_request(request, "openai-responses"))["input"]
    assert {"type": "compaction", "encrypted_content": BLOB} in items
    report = StreamReport()
    encode_request(request, "cohere", report=report)  # the client sent all that was said before, too
    assert report.losses["reasoning_opaque"] == 1


def test_an_item_without_its_text_is_a_counted_loss():
    _, report = through("openai-responses", compacted({"type": "compaction", "id": "cmp_1"}), "anthropic")
    assert report.losses["compaction"] == 1


def test_an_answer_that_paused_and_has_no_compaction_is_incomplete():
    told, report = through(
        "anthropic", answer({"type": "compaction", "content": None}, stop="compaction"), "openai-responses"
    )
    assert (told["status"], told["output"]) == ("incomplete", [])
    assert report.losses["stop_reason"] == 1


@pytest.mark.parametrize("client", OTHERS)
def test_an_answer_that_paused_is_not_told_as_one_that_is_done(client):
    told, _ = through("anthropic", answer(COMPACTION, stop="compaction"), client)
    assert decode_response(orjson.dumps(told), client).choices[0].stop_reason == "length"
