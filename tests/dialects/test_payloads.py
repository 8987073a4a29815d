"""Bodies whose object stands in a list: what it says is kept, in whole answers and in errors over HTTP."""

from __future__ import annotations

import json

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import NotThisDialect
from streamkit.http_errors import decode_error
from streamkit.translation.bodies import decode_response
from tests.dialects.vocabulary.test_stop_reasons import body
from tests.whole_answers import ANSWERING_WHOLE

GONE = {"error": {"message": "gone", "type": "rate_limit_error", "code": 429, "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize("dialect", sorted({*ANSWERING_WHOLE} - {"bedrock"}))  # its errors have no envelope
@pytest.mark.parametrize("before", [[], [{"id": "x"}], [GONE]])
def test_an_error_in_a_list_keeps_its_message(dialect, before):
    if dialect == "gemini" and before == [{"id": "x"}]:
        before = []  # a list is one of its framings, and reads its own errors
    found = decode_response(json.dumps([*before, GONE]).encode(), dialect)
    assert found.error is not None
    assert (found.error.message, found.error.type) == ("gone", "rate_limit")
    assert not found.clean


@pytest.mark.parametrize("dialect", sorted({*ANSWERING_WHOLE} - {"gemini"}))
def test_an_answer_alone_in_a_list_is_that_answer(dialect):
    word = "max_output_tokens" if dialect == "openai-responses" else "length"
    found = decode_response(json.dumps([body(dialect, word)]).encode(), dialect)
    assert found.choices[0].stop_reason == "length"
    assert found.report.repairs["payload_in_list"] == 1


@pytest.mark.parametrize("text", ["[]", "[1]", '"ping"', "null", "[{}, {}]", "[{", '[{"a": 1}, 2'])
def test_a_body_without_an_answer_is_of_another_kind(text):
    with pytest.raises(NotThisDialect):
        decode_response(text.encode(), "openai-chat")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text", [json.dumps([GONE]), json.dumps([{"id": "x"}, GONE]), f"data: {json.dumps([GONE])}\n\n"]
)
def test_an_error_over_http_in_a_list_keeps_its_message(dialect, text):
    failed = decode_error(429, text.encode(), dialect)
    assert (failed.message, failed.type) == ("gone", "rate_limit")
