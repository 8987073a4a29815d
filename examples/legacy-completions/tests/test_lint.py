"""Each rule of the checker, in a stream that breaks it."""

import pytest
from machines import broken_rules
from vectors import DONE, HEAD, STOP, USAGE, chunk, sse

from legacy_completions.lint import LOOKS, RULES
from streamkit.dialects.linting.grammar import COMMON_RULES, READING_RULES

HI = chunk("Hi")
BROKEN = {
    "unterminated": sse(HI, STOP)[:-2],
    "empty_data": sse(HI, b"", STOP, DONE),
    "object": sse({**HI, "object": "chat.completion.chunk"}, STOP, DONE),
    "identity": sse(HI, {**STOP, "id": "cmpl-8"}, DONE),
    "choices": sse(HI, {**HEAD, "choices": [{"text": ""}]}, STOP, DONE),
    "text": sse(HI, {**HEAD, "choices": [{"index": 0}]}, STOP, DONE),
    "finish_reason": sse(HI, chunk(finish=""), STOP, DONE),
    "after_finish": sse(HI, STOP, chunk("!"), DONE),
    "usage": sse({**HI, "usage": {"prompt_tokens": 1}}, STOP, DONE),
    "error": sse(HI, {"error": "overheated"}),
    "after_error": sse({"error": {"message": "over"}}, HI),
    "done": sse(HI, STOP),
    "after_done": sse(HI, STOP, DONE, USAGE),
    "truncated": sse(HI),
    "not_json": sse(HI, b"{oops}", STOP, DONE),
    "not_object": sse(HI, b"7", STOP, DONE),
    "not_utf8": sse(b'{"x":"\xff"}', HI, STOP, DONE),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_is_broken_is_named(rule):
    assert rule in broken_rules(BROKEN[rule])


def test_a_second_reason_and_a_usage_that_is_no_object_break_rules_too():
    assert broken_rules(sse(HI, STOP, STOP, DONE)) == ["finish_reason"]
    assert broken_rules(sse({**HI, "usage": 7}, STOP, DONE)) == ["usage"]
    assert broken_rules(b"") == ["truncated"]


def test_every_rule_has_its_looks():
    assert set(LOOKS) == {*RULES, *READING_RULES}
    assert COMMON_RULES.keys() <= RULES.keys()
