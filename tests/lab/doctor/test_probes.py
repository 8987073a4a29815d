from __future__ import annotations

import orjson
import pytest

from streamkit.conversation.messages import Choice, Response, Text, ToolCall, ToolResult
from streamkit.errors import BadRequest, UsageError
from streamkit.events import Verdict
from streamkit.lab.doctor import probes
from streamkit.lab.doctor.probes import MAX_REQUESTS, MAX_TOKENS, body_of, plan, with_calls
from streamkit.translation.bodies import decode_request
from tests.lab.doctor.servers import EXAMINED


@pytest.mark.parametrize("dialect", EXAMINED)
def test_no_examination_sends_more_requests_or_tokens_than_it_may(dialect):
    chosen = plan(dialect, "m" * 100)
    assert 8 <= len(chosen.probes) <= MAX_REQUESTS
    assert 1000 < chosen.tokens <= MAX_TOKENS
    assert chosen.tokens == plan(dialect, "m").tokens, "a name is no text"
    assert chosen.answer_tokens == sum(probe.bound for probe in chosen.probes if probe.way != "spoiled")


@pytest.mark.parametrize("dialect", EXAMINED)
def test_every_request_can_be_read_by_its_dialect_and_the_wrong_one_by_none(dialect):
    for probe in plan(dialect, "m").probes:
        body = body_of(probe, dialect)
        if probe.way == "spoiled":
            with pytest.raises(BadRequest):
                decode_request(body, dialect)
        else:
            request = decode_request(body, dialect)
            assert request.options.max_tokens in {probe.request.options.max_tokens, probe.bound}
            assert len(request.tools) == len(probe.request.tools)


def test_the_wrong_request_differs_in_its_conversation_alone():
    by_name = {probe.name: orjson.loads(body_of(probe, "anthropic")) for probe in plan("anthropic", "m").probes}
    assert by_name["bad"].pop("messages") == 0
    assert by_name["bad"].items() <= {**by_name["text"], "max_tokens": 16}.items()


def test_usage_is_asked_for_once_where_it_must_be():
    assert "usage" in {probe.name for probe in plan("openai-chat", "m").probes}
    chosen = plan("anthropic", "m")
    assert "usage" not in {probe.name for probe in chosen.probes}
    assert next(probe.usage for probe in chosen.probes if probe.name == "text")


def test_what_a_dialect_can_not_ask_for_is_left_out_with_the_reason():
    assert list(plan("ollama", "m").left_out) == ["forced"]
    assert "cannot be required to call" in plan("ollama", "m").left_out["forced"]
    assert plan("openai-chat", "m").left_out == {}


def test_a_dialect_that_would_cost_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(probes, "TOKEN_BYTES", 1.0)
    with pytest.raises(UsageError, match="would need 10 requests and"):
        plan("openai-chat", "m")


@pytest.mark.parametrize("dialect", ["ag-ui", "ai-sdk"])
def test_a_dialect_without_a_bound_is_refused(dialect):
    with pytest.raises(UsageError, match="has no limit on tokens"):
        plan(dialect, "m")


def test_a_result_goes_on_from_the_servers_own_call():
    probe = next(probe for probe in plan("openai-chat", "m").probes if probe.name == "result")
    call = ToolCall(0, "call_9", "get_weather", '{"city":"Rome"}', verdict=Verdict("complete"))
    response = Response("openai-chat", choices=[Choice(parts=[Text("Let me see."), call])])
    _, assistant, user = with_calls(probe, response).request.turns
    assert assistant.parts == [Text("Let me see."), call]
    (result,) = user.parts
    assert isinstance(result, ToolResult)
    assert result.call_id == "call_9"


@pytest.mark.parametrize("verdict", [None, Verdict("truncated")])
def test_a_call_that_is_not_whole_is_not_repeated(verdict):
    probe = next(probe for probe in plan("openai-chat", "m").probes if probe.name == "result")
    call = ToolCall(0, "call_9", "get_weather", '{"city"', verdict=verdict)
    assert with_calls(probe, Response("openai-chat", choices=[Choice(parts=[call])])) is probe
    assert with_calls(probe, Response("openai-chat")) is probe
