"""The official clients read the mock as they read their providers: text, calls, errors, what breaks off."""

from __future__ import annotations

import json
import warnings

import pytest

from streamkit.lab.mock import Call, Cut, Error, ErrorStatus, MockTurn, Say, Script, Usage, served_mock

QUESTION = [{"role": "user", "content": "Weather?"}]
CALLS = [Say("Let me look."), Call("weather", {"city": "Berlin"}), Call("time", {}), Usage(input=7, output=3)]


class Failed(Exception):
    """Whatever a client raised."""


class OpenAI:
    """Of Chat Completions."""

    name = "openai-chat"

    def __init__(self, url: str, *, retries: int) -> None:
        self.package = pytest.importorskip("openai")
        self.client = self.package.OpenAI(base_url=url, api_key="none", max_retries=retries, timeout=20)

    def ask(self):
        with self.client.chat.completions.stream(
            model="m", messages=QUESTION, stream_options={"include_usage": True}
        ) as stream:
            for _ in stream:
                pass
            answer = stream.get_final_completion()
        message = answer.choices[0].message
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
        usage = answer.usage and (answer.usage.prompt_tokens, answer.usage.completion_tokens)
        return message.content, calls, answer.choices[0].finish_reason, usage


class Anthropic:
    """Of Messages."""

    name = "anthropic"

    def __init__(self, url: str, *, retries: int) -> None:
        self.package = pytest.importorskip("anthropic")
        self.client = self.package.Anthropic(base_url=url, api_key="none", max_retries=retries, timeout=20)

    def ask(self):
        with self.client.messages.stream(model="m", max_tokens=99, messages=QUESTION) as stream:
            answer = stream.get_final_message()
        text = "".join(block.text for block in answer.content if block.type == "text")
        calls = [(block.name, block.input) for block in answer.content if block.type == "tool_use"]
        return text, calls, answer.stop_reason, (answer.usage.input_tokens, answer.usage.output_tokens)


READERS = [OpenAI, Anthropic]


@pytest.fixture(params=READERS, ids=lambda reader: reader.name)
def client(request):
    """Asks a mock of these turns with an official client: what it read, and the verdict."""

    def ask(*turns, retries: int = 0):
        with warnings.catch_warnings(), served_mock(Script([MockTurn(steps) for steps in turns])) as mock:
            warnings.simplefilter("ignore")  # of what the clients import
            reader = request.param(mock.urls[request.param.name], retries=retries)
            try:
                read = reader.ask()
            except Exception as error:
                raise Failed(str(error)) from error
            finally:
                reader.client.close()
            return read, mock.verdict

    return ask


def test_text_parallel_calls_and_usage(client):
    (text, calls, reason, usage), verdict = client(CALLS)
    assert (text, calls) == ("Let me look.", [("weather", {"city": "Berlin"}), ("time", {})])
    assert (reason in {"tool_calls", "tool_use"}, usage, verdict.clean) == (True, (7, 3), True)


def test_they_wait_and_ask_again(client):
    (text, *_), verdict = client([ErrorStatus(429, retry_after=0.1)], [Say("Yes")], retries=1)
    assert (text, verdict.clean, verdict.requests, verdict.notes) == ("Yes", True, 2, ())


def test_they_do_not_repeat_a_bad_request(client):
    with pytest.raises(Failed, match="no such thing"):
        client([ErrorStatus(400, message="no such thing")], [Say("Yes")], retries=1)


def test_an_error_in_the_stream_is_raised(client):
    with pytest.raises(Failed, match="try later"):
        client([Say("Let me"), Error("unavailable", "try later")])


def test_a_connection_that_is_closed_is_raised(client):
    with pytest.raises(Failed):
        client([Say("Let me"), Cut()])


def test_a_body_that_ends_too_soon_is_taken_for_an_answer(client):
    """What the page says of them: no error, and the text that came."""
    (text, *_), _ = client([Say("It rai"), Cut("body")])
    assert text == "It rai"
