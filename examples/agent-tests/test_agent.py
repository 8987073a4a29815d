"""Tests of the agent with recordings. They need no key and no network."""

import openai
import pytest

from agent import ask

GATEWAY = "http://127.0.0.1:8080"  # `streamkit serve`, which pytest --record uses


def test_the_agent_calls_the_tool_and_answers(streamkit_replay):
    url = streamkit_replay("oslo", to=GATEWAY, all_asked=True)
    assert "-3 °C" in ask("How cold is it in Oslo?", f"{url}/v1")


def test_an_interrupted_response_raises_an_error(streamkit_replay):
    url = streamkit_replay("broken", to=GATEWAY)
    with pytest.raises(openai.APIError, match="broke"):
        ask("How cold is it in Oslo?", f"{url}/v1", model="demo-cut")
