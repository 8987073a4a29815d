"""The verdict on a client: a client for each fault, and good ones that get none."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import get_args

import httpx
import orjson
import pytest

from streamkit.conversation.messages import Text, ToolCall, ToolResult, Turn
from streamkit.events import ProviderFailed
from streamkit.lab.mock import (
    Call,
    Cut,
    Error,
    ErrorStatus,
    MockTurn,
    Reset,
    Say,
    Script,
    Stall,
    Stop,
    served_mock,
    verdict,
)
from streamkit.lab.mock.verdict import FAULTS, NOTES, ClientVerdict, FaultKind, NoteKind, ReadCall, Watch, read_answer
from streamkit.lab.mock.writing import Answer
from tests.lab.mock.asking import ASKED, assistant, chat, request, said, url_for, user

PATH = "/v1/chat/completions"
OPEN = Call("weather", '{"city": "Berlin"}', finished=False)
#: How a stream ends without its end.
BROKEN = [Cut(), Cut("body"), Reset(), Error("server", "overloaded")]


class Client:
    """Asks a mock of one script, and reads streams as far as they come."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, body: bytes, *, timeout: float = 5.0) -> str:
        """What came, as the text of the frames; the error's name where the connection broke."""
        return self.post(self.url + PATH, body, timeout=timeout)

    @staticmethod
    def post(url: str, body: bytes, *, timeout: float = 5.0) -> str:
        try:
            return httpx.post(url, content=body, timeout=timeout, trust_env=False).text
        except httpx.TransportError as error:
            return type(error).__name__

    @staticmethod
    def call_id(answer: str) -> str:
        """The id of the first call in the frames of a stream."""
        frames = [orjson.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
        deltas = [frame["choices"][0]["delta"] for frame in frames if frame.get("choices")]
        return next(delta["tool_calls"][0]["id"] for delta in deltas if delta.get("tool_calls"))


@pytest.fixture
def serve():
    """Serves a script, and gives the mock and a client of it; the verdict may be looked at while both are there."""
    with ExitStack() as stack:

        def start(*turns, **options):
            script = Script([MockTurn(steps) for steps in turns])
            mock = stack.enter_context(served_mock(script, **options))
            return mock, Client(mock.root)

        yield start


def kinds(mock) -> list[tuple[str, int]]:
    return [(fault.kind, fault.request) for fault in mock.verdict.faults]


# -- answers that broke off --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", BROKEN, ids=str)
def test_a_broken_answer_in_the_history_was_accepted(serve, end):
    mock, client = serve([Say("It rains"), end], [Say("Anything else?")])
    client.ask(chat(user()))
    client.ask(chat(user(), assistant("It rains"), user("And tomorrow?")))
    assert kinds(mock) == [("truncated_stream_accepted", 2)]


@pytest.mark.parametrize("dialect", ASKED)
def test_it_is_seen_in_every_dialect(serve, dialect):
    mock, client = serve([Say("It rains"), Cut("body")], [Say("Anything else?")])
    asked = request(dialect=dialect)
    client.post(url_for(mock.mock, mock.root, asked), said(asked))
    asked.turns += [Turn("assistant", [Text("It rains")]), Turn("user", [Text("And tomorrow?")])]
    assert "Anything" in client.post(url_for(mock.mock, mock.root, asked), said(asked)) or dialect == "bedrock"
    assert kinds(mock) == [("truncated_stream_accepted", 2)]


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([user()], id="asked again"),
        pytest.param([user(), assistant("Something else"), user("And?")], id="another answer in its place"),
        pytest.param([user(), assistant("It rains")], id="it is to go on with what came"),
        pytest.param([user(), user("Are you there?")], id="without the answer"),
    ],
)
def test_a_client_that_drops_the_broken_answer_is_clean(serve, history):
    mock, client = serve([Say("It rains"), Cut()], [Say("It rains"), Say(" a lot")])
    client.ask(chat(user()))
    client.ask(chat(*history))
    assert (mock.verdict.clean, mock.verdict.requests) == (True, 2)


@pytest.mark.parametrize("stream", [True, False])
def test_the_same_words_of_a_whole_answer_are_no_fault(serve, stream):
    mock, client = serve([Say("It rains"), Cut()], [Say("It rains")], [Say("Yes")])
    client.ask(chat(user()))
    client.ask(chat(user(), stream=stream))
    client.ask(chat(user(), assistant("It rains"), user("Really?")))
    assert mock.verdict.clean


def calling(answer: str) -> bytes:
    """A client ran the call in an answer, whatever came of it."""
    call = {"id": Client.call_id(answer), "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    return chat(user(), assistant(None, call), {"role": "tool", "tool_call_id": call["id"], "content": "rain"})


@pytest.mark.parametrize("end", [Cut("body"), Error()], ids=str)
def test_a_result_of_an_unfinished_call_is_a_fault(serve, end):
    mock, client = serve([OPEN, end], [Say("So it rains")])
    client.ask(calling(client.ask(chat(user()))))
    assert kinds(mock) == [("unfinished_call_answered", 2)]


def test_an_unfinished_call_without_a_result_was_accepted(serve):
    mock, client = serve([OPEN, Cut("body")], [Say("So it rains")])
    call = {
        "id": Client.call_id(client.ask(chat(user()))),
        "type": "function",
        "function": {"name": "x", "arguments": "{}"},
    }
    client.ask(chat(user(), assistant(None, call), user("And?")))
    assert kinds(mock) == [("truncated_stream_accepted", 2)]


@pytest.mark.parametrize("dialect", ["anthropic", "ollama"])
def test_a_finished_call_of_a_broken_answer_is_no_whole_answer(serve, dialect):
    """These end a call; where only the end of the stream does, a call of a broken answer is unfinished. Ollama has no ids."""
    mock, client = serve([Call("weather", "{}", id="call_1"), Cut("body")], [Say("So it rains")])
    asked = request(dialect=dialect)
    client.post(url_for(mock.mock, mock.root, asked), said(asked))
    asked.turns += [
        Turn("assistant", [ToolCall(0, "call_1", "weather", "{}")]),
        Turn("user", [ToolResult("call_1", [Text("rain")], name="weather")]),
    ]
    client.post(url_for(mock.mock, mock.root, asked), said(asked))
    assert kinds(mock) == [("truncated_stream_accepted", 2)]


def test_a_client_that_runs_a_whole_call_is_clean(serve):
    mock, client = serve([Call("weather", {"city": "Berlin"})], [Say("So it rains")])
    client.ask(calling(client.ask(chat(user()))))
    assert mock.verdict == ClientVerdict(requests=2)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_asking_before_the_time_is_a_fault(serve):
    mock, client = serve([ErrorStatus(429, retry_after=30)], [Say("x")])
    client.ask(chat(user()))
    client.ask(chat(user()))
    assert kinds(mock) == [("retry_after_ignored", 2)]
    assert "Retry-After was 30 s" in mock.verdict.faults[0].message


def test_asking_after_the_time_is_none(serve):
    mock, client = serve([ErrorStatus(503, retry_after=0.1)], [Say("x")])
    client.ask(chat(user()))
    time.sleep(0.15)
    client.ask(chat(user()))
    assert mock.verdict == ClientVerdict(requests=2)


@pytest.mark.parametrize(("waited", "faults"), [(9.9, ["retry_after_ignored"]), (9.96, []), (11, [])])
def test_a_clock_may_be_a_little_fast(waited, faults):
    now = [100.0]
    watch = Watch(lambda: now[0])
    _, exchange = watch.ask(request(), b"1")
    exchange.failed, exchange.sent_at = ProviderFailed("rate_limit", "", http_status=429, retry_after_s=10), now[0]
    now[0] += waited
    watch.ask(request(), b"2")
    watch.ask(request(), b"3")
    assert [fault.kind for fault in watch.verdict.faults] == faults


def test_the_oldest_conversation_is_forgotten(monkeypatch):
    monkeypatch.setattr(verdict, "CONVERSATIONS", 2)
    watch = Watch(lambda: 0.0)
    first, _ = watch.ask(request("one"), b"")
    second, _ = watch.ask(request("two"), b"")
    assert watch.ask(request("one"), b"")[0] is first
    watch.ask(request("three"), b"")
    assert watch.ask(request("one"), b"")[0] is first
    assert watch.ask(request("two"), b"")[0] is not second


def test_the_oldest_faults_are_forgotten(monkeypatch):
    monkeypatch.setattr(verdict, "FINDINGS", 2)
    watch = Watch(lambda: 0.0)
    for number in range(3):
        watch.out_of_turns(watch.ask(request(str(number)), b"")[1])
    assert [note.request for note in watch.verdict.notes] == [2, 3]


def test_other_conversations_need_not_wait(serve):
    mock, client = serve([ErrorStatus(429, retry_after=30)], [Say("x")])
    client.ask(chat(user()))
    client.ask(chat(user("Another matter")))
    assert mock.verdict.clean


@pytest.mark.parametrize("status", [400, 401, 404])
def test_the_same_request_after_a_final_error_is_a_fault(serve, status):
    mock, client = serve([ErrorStatus(status)], [Say("x")])
    client.ask(chat(user()))
    client.ask(chat(user()))
    assert kinds(mock) == [("bad_request_retried", 2)]


def test_another_request_after_a_final_error_is_none(serve):
    mock, client = serve([ErrorStatus(400)], [Say("x")])
    client.ask(chat(user()))
    client.ask(chat(user(), temperature=0))
    assert mock.verdict == ClientVerdict(requests=2)


def test_an_error_that_may_pass_is_noted_until_it_is_asked_again(serve):
    mock, client = serve([ErrorStatus(503)], [Say("x")])
    client.ask(chat(user()))
    assert [note.kind for note in mock.verdict.notes] == ["not_retried"]
    client.ask(chat(user()))
    assert mock.verdict == ClientVerdict(requests=2)


def test_a_script_without_turns_left_is_noted_and_says_so(serve):
    mock, client = serve([Say("x")])
    client.ask(chat(user()))
    assert "the script has no turn for this request" in client.ask(chat(user()))
    assert [(note.kind, note.request) for note in mock.verdict.notes] == [("out_of_turns", 2)]
    assert mock.verdict.clean


# -- silence -----------------------------------------------------------------------------------------------------------


def test_a_client_that_sits_through_a_stall_has_no_time_out(serve):
    mock, client = serve([Say("x"), Stall(0.1)])
    assert client.ask(chat(user())) == "ReadError"
    assert kinds(mock) == [("no_read_timeout", 1)]


def test_a_client_that_stays_behind_the_end_leaves_late(serve):
    mock, client = serve([Say("x"), Stop(), Stall(0.1)])
    client.ask(chat(user()))
    assert kinds(mock) == [("left_late", 1)]


@pytest.mark.parametrize("steps", [[Say("x"), Stall(30)], [Stall(30)], [Say("x"), Stop(), Stall(30)]], ids=str)
def test_a_client_with_a_time_out_is_clean(serve, steps):
    mock, client = serve(steps)
    assert client.ask(chat(user()), timeout=0.1) == "ReadTimeout"
    assert mock.verdict == ClientVerdict(requests=1)


# -- what is read, and how it is said ----------------------------------------------------------------------------------


def test_a_conversation_that_begins_again_is_another(serve):
    mock, client = serve([Say("one")], [Say("two")])
    for _ in range(2):
        assert "one" in client.ask(chat(user()))
        assert "two" in client.ask(chat(user(), assistant("one"), user("More")))
    assert mock.verdict == ClientVerdict(requests=4)


def test_what_a_stream_says_is_read_as_far_as_it_came():
    frame = b'data: {"choices":[{"index":0,"delta":{"content":"Hi","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}\n\n'
    found = read_answer(Answer(dialect="openai-chat", frames=(frame,), content_type="text/event-stream"))
    assert (found.text, found.calls, found.whole) == ("Hi", (ReadCall("c", "f", finished=False),), False)


def test_bytes_that_are_no_answer_say_nothing():
    assert (
        read_answer(Answer(dialect="openai-chat", frames=(b"<html>",), content_type="text/html", streamed=False))
        is None
    )
    found = read_answer(Answer(dialect="openai-chat", frames=(b"<html>",), content_type="text/html"))
    assert (found.text, found.whole) == ("", False)


def test_a_verdict_is_text_and_json(serve):
    mock, client = serve([ErrorStatus(429, retry_after=30)], [ErrorStatus(503)])
    client.ask(chat(user()))
    client.ask(chat(user()))
    found = httpx.get(f"{mock.root}/verdict", trust_env=False).json()
    assert (found["clean"], found["requests"]) == (False, 2)
    assert [fault["kind"] for fault in found["faults"]] == ["retry_after_ignored"]
    assert [note["kind"] for note in found["notes"]] == ["not_retried"]
    assert str(mock.verdict).splitlines()[0] == "verdict on the client: not clean, 2 requests"
    assert str(mock.verdict).splitlines()[1].startswith("fault: retry_after_ignored: request 2: sent 0.")


def test_every_kind_is_described():
    assert set(FAULTS) == set(get_args(FaultKind))
    assert set(NOTES) == set(get_args(NoteKind))
