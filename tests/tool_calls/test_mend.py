"""What the model is told of a call that was not run, in each dialect's shape, and how little of its text is repeated."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.conversation.messages import ToolCall
from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.events import ToolCallFinished, Verdict
from streamkit.text.identifiers import nine_characters
from streamkit.tool_calls.check import JSONChecker, error_text
from streamkit.tool_calls.schema import ToolSchemas
from streamkit.translation.tool_loop import error_result

SCHEMA = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}


def judged(arguments, name="get_weather", **rest):
    checker = JSONChecker(tools=ToolSchemas({"get_weather": SCHEMA}))
    (event,) = checker.feed([ToolCallFinished(0, "call_1", name, arguments, **rest)])
    return event


def test_each_dialect_has_its_shape():
    call = judged('{"days":"two"}')
    said = (
        "get_weather was not run: its arguments do not match the tool's schema: "
        'at /days: the value is not of type "integer". Call get_weather again with valid arguments.'
    )
    assert error_result(call, "anthropic") == {
        "type": "tool_result", "tool_use_id": "call_1", "is_error": True, "content": said,
    }  # fmt: skip
    assert error_result(call, "openai-chat") == {"role": "tool", "tool_call_id": "call_1", "content": f"Error: {said}"}
    assert error_result(call, "ollama") == {
        "role": "tool", "tool_name": "get_weather", "tool_call_id": "call_1", "content": f"Error: {said}",
    }  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_that_writes_requests_has_an_error_result(dialect):
    call = judged("[")
    if DIALECTS[dialect].bodies is None:
        with pytest.raises(UsageError, match="no requests are written"):
            error_result(call, dialect)
        return
    written = orjson.dumps(error_result(call, dialect)).decode()
    assert "get_weather was not run: its arguments are truncated" in written
    assert "call_1" in written or nine_characters("call_1") in written


def test_a_call_of_a_whole_response_does_as_well():
    event = judged("[]")
    call = ToolCall(0, event.id, event.name, event.arguments, verdict=event.verdict)
    assert error_result(call, "ollama") == error_result(event, "ollama")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (judged('{"days":1,}'), ["not valid JSON", "a comma without a key", "at character 10", "'{\"days\":1,}'"]),
        (judged('{"days":'), ["truncated", "ends inside", "after 8 characters"]),
        (judged('{"days":1}', ended=False), ["truncated", "before the protocol ended the call"]),
        (judged("[1]"), ["must be a JSON object", "an array"]),
        (judged(""), ["schema", '"days" is a required property']),
        (judged("{}", name="get_wether"), ["no tool with this name", "get_wether"]),
        (judged("{}", name=""), ["a tool without a name"]),
    ],
)
def test_the_text_says_what_is_wrong_and_where(call, words):
    text = error_text(call)
    assert error_result(call, "openai-chat")["content"] == f"Error: {text}"
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize("verdict", [None, Verdict("complete"), Verdict("empty")])
def test_a_call_without_a_bad_verdict_is_refused(verdict):
    with pytest.raises(UsageError, match="bad verdict"):
        error_result(ToolCallFinished(0, "i", "f", "{}", verdict=verdict), "anthropic")


def test_an_unknown_dialect_is_refused():
    with pytest.raises(UsageError, match="telegraph"):
        error_result(judged("["), "telegraph")


def test_what_the_verdict_says_is_clipped():
    checker = JSONChecker(tools=ToolSchemas({"f": {"additionalProperties": {"type": "null"}}}))
    keys = [f"{key}" * 180 for key in "abcde"]
    (event,) = checker.feed([ToolCallFinished(0, "i", "f", "{" + ",".join(f'"{key}":1' for key in keys) + "}")])
    assert len(event.verdict.reason) > 900
    assert len(error_result(event, "anthropic")["content"]) < 520


@given(st.text(), st.text(max_size=5), st.text(min_size=500, max_size=600))
def test_little_of_the_arguments_is_repeated(before, fault, after):
    for text in (f'{{"{before}{after}":{fault}', f'{{"days":{fault}{after}', f'{{"{after * 20}":1}}'):
        call = judged(text)
        content = error_result(call, "openai-chat")["content"]
        assert len(content) < 1000
        assert after not in content
