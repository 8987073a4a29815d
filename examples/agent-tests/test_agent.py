"""The agent against recordings: no key, no network."""

import openai
import pytest

from agent import ask

GATEWAY = "http://127.0.0.1:8080"  # `streamkit serve`, asked where pytest has --record


def test_it_looks_up_what_it_is_asked(streamkit_replay):
    url = streamkit_replay("oslo", to=GATEWAY, all_asked=True)
    assert "-3 °C" in ask("How cold is it in Oslo?", f"{url}/v1")


def test_an_answer_that_breaks_off_is_none(streamkit_replay):
    url = streamkit_replay("broken", to=GATEWAY)
    with pytest.raises(openai.APIError, match="broke"):
        ask("How cold is it in Oslo?", f"{url}/v1", model="demo-cut")
