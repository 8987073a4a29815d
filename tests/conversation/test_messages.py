"""What users read of a response: texts, and the arguments of calls with their verdicts."""

from __future__ import annotations

from typing import get_args

import pytest

from streamkit.conversation.messages import Choice, Reasoning, Response, Text, ToolCall
from streamkit.events import Verdict, VerdictKind
from streamkit.tool_calls.check import check_arguments


def test_a_response_shows_its_first_choice():
    first = Choice(parts=[Reasoning("Hm.", block=1), Text("Hi"), Reasoning("So.", block=2)])
    response = Response("openai-chat", choices=[first, Choice(1, parts=[Reasoning("no"), Text("no")])])
    assert (response.text, response.reasoning) == ("Hi", "Hm.\n\nSo.")
    assert (Response("openai-chat").text, Response("openai-chat").reasoning) == ("", "")


def test_a_verdict_is_ok_if_the_arguments_can_be_used():
    assert [kind for kind in get_args(VerdictKind) if Verdict(kind).ok] == ["complete", "empty"]


def call(arguments, verdict=None, **more):
    return ToolCall(0, "c1", "weather", arguments, verdict=verdict, **more)


@pytest.mark.parametrize("verdict", [None, check_arguments])
@pytest.mark.parametrize(
    ("arguments", "value"), [('{"city":"Oslo","days":2}', {"city": "Oslo", "days": 2}), (" ", {}), ("{}", {})]
)
def test_arguments_are_a_dict(arguments, value, verdict):
    assert call(arguments, verdict and verdict(arguments)).parsed() == value


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (call('{"city":"Os'), "its arguments are truncated: the text ends inside the value, after 11 characters"),
        (call('{"city":"Oslo"}', Verdict("truncated", "not ended", 15)), "its arguments are truncated: not ended"),
        (call("{city}"), "its arguments are not valid JSON: "),
        (call("[1]", check_arguments("[1]")), "its arguments must be a JSON object: the value is an array"),
        (call("{}", Verdict("schema_invalid", "at /days: no")), "do not match the tool's schema: at /days: no"),
        (call("{}", Verdict("unchecked", "budget")), "could not be checked against the tool's schema: budget"),
    ],
)
def test_bad_arguments_raise_and_say_what_is_wrong(made, reason):
    with pytest.raises(ValueError, match=r"^'weather' can't be run: ") as refused:
        made.parsed()
    assert reason in str(refused.value)
    assert str(refused.value).endswith("; look at verdict.ok first, and send error_result(call) if it is False")


def test_free_text_of_a_custom_tool_is_no_dict():
    with pytest.raises(ValueError, match=r"^the arguments of 'weather' are free text: use arguments instead"):
        call("SELECT 1", Verdict("complete"), kind="custom").parsed()


def test_arguments_may_nest_as_deep_as_the_limit_that_they_were_read_with():
    deep = '{"a":' * 200 + "1" + "}" * 200
    made = call(deep, check_arguments(deep, depth=300))
    assert "a" in made.parsed(depth=300)
    with pytest.raises(ValueError, match="malformed"):
        made.parsed()
