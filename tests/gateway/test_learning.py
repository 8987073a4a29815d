"""What an upstream refuses of a request and the request can do without: it is left out, remembered, counted and logged."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from streamkit.translation.changes import Change
from streamkit.web.upstream import learning
from streamkit.web.upstream.learning import MODELS, REMEMBERED_S, Learnt
from tests.gateway.running import in_turn, leg, told, upstream_at
from tests.web.evil import Received, Script
from tests.web.faults import as_asked, status, whole
from tests.web.socket_upstream import events, socket_upstream

REFUSED = "Unsupported parameter: '{}' is not supported with this model."
HOT = {"temperature": 0.5, "top_p": 0.9, "seed": 1}


def picky(
    *members: str, words: str = REFUSED, dialect: str = "openai-chat", code: int = 400
) -> Callable[[Received], Script]:
    """An upstream that refuses these members, one at a time."""
    answers = as_asked("openai-chat")

    def play(request: Received) -> Script:
        sent = request.json()
        name = next((name for name in members if name in sent), None)
        return answers(request) if name is None else status(code, message=words.format(name))

    return play


def sent(running: Any) -> list[set[str]]:
    """Which of ``HOT`` each request to the upstream had."""
    return [HOT.keys() & request.json().keys() for request in running.evil.requests]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", ["openai-chat", "openai-responses"])
async def test_a_refused_member_is_left_out_and_remembered(client, stream, caplog):
    caplog.set_level(logging.INFO, logger="streamkit")
    hot = {"temperature": 0.5, "top_p": 0.9}
    async with in_turn(picky("temperature")) as running:
        for _ in range(2):
            answer = await running.asked(client, hot, stream=stream)
            assert (answer.status, answer.end) == (200, "complete")
        assert sent(running) == [{"temperature", "top_p"}, {"top_p"}, {"top_p"}]
        assert await running.outcomes() == {("one", "success"): 2}
        assert running.counted("losses_total", kind="parameter_refused", way="request", client=client) == 2
    lines = [record.fields for record in caplog.records if record.message == "request"]
    assert [(line["left_out"], line["losses"]["parameter_refused"]) for line in lines] == [(["temperature"], 1)] * 2


async def test_an_upstream_may_name_two_members_one_after_the_other():
    async with in_turn(picky("temperature", "top_p")) as running:
        assert (await running.asked(body=HOT)).status == 200
        assert sent(running) == [HOT.keys(), {"top_p", "seed"}, {"seed"}]


@pytest.mark.parametrize(
    ("upstream", "first", "requests"),
    [
        (leg(picky("temperature"), learn=False), "temperature", 1),
        (picky("temperature", "stop"), "temperature", 2),
        (picky("stop"), "stop", 1),
        (picky("messages"), "messages", 1),
        (picky("temperature", words="Invalid value for '{}': must be at most 2"), "temperature", 1),
        (picky("temperature", code=404), "temperature", 1),
    ],
    ids=["off", "one that must stay", "only that", "messages", "a wrong value", "another status"],
)
async def test_else_the_client_gets_the_first_error(upstream, first, requests):
    async with in_turn(upstream) as running:
        for already in range(2):  # nothing was remembered
            answer = await running.asked(body={**HOT, "stop": ["x"]})
            assert answer.status in {400, 404}
            assert f"'{first}'" in told(answer, "openai-chat").message
            assert running.seen == [requests * (already + 1)]
        assert running.counted("losses_total", kind="parameter_refused") == 0


async def test_a_third_member_is_one_too_many_for_a_request_but_not_for_the_next():
    async with in_turn(picky(*HOT)) as running:
        assert [(await running.asked(body=HOT)).status for _ in range(3)] == [400, 200, 200]
        assert sent(running) == [HOT.keys(), {"top_p", "seed"}, {"seed"}, {"seed"}, set(), set()]


async def test_what_is_refused_only_together_with_another_member_is_not_remembered():
    words = "`{}` may only be set to 1 when thinking is enabled."
    async with in_turn(picky("temperature", words=words)) as running:
        for _ in range(2):
            assert (await running.asked(body=HOT)).status == 200
        assert sent(running) == [HOT.keys(), {"top_p", "seed"}] * 2


async def test_each_model_and_each_upstream_is_remembered_alone():
    async with in_turn(leg(status(503), picky("temperature")), picky("top_p")) as running:
        for model in ("m", "other", "m"):
            assert (await running.asked(body=HOT, model=model)).status == 200
        one, two = ([HOT.keys() & request.json().keys() for request in evil.requests] for evil in running.evils)
    assert one == [HOT.keys(), HOT.keys(), {"top_p", "seed"}, HOT.keys(), {"top_p", "seed"}]
    assert two == [HOT.keys(), {"temperature", "seed"}]


async def test_a_busy_upstream_was_told_what_to_leave_out():
    def play(request: Received) -> Script:
        return picky("temperature")(request) if "temperature" in request.json() else status(503)

    async with in_turn(leg(play, play, play, as_asked("openai-chat")), retries=1) as running:
        assert (await running.asked(body=HOT)).status == 503
        assert sent(running) == [HOT.keys(), {"top_p", "seed"}, {"top_p", "seed"}]


async def test_a_member_is_sent_again_after_its_time(monkeypatch):
    monkeypatch.setattr(learning, "REMEMBERED_S", 0.0)
    async with in_turn(picky("temperature")) as running:
        for _ in range(2):
            assert (await running.asked(body=HOT)).status == 200
        assert sent(running) == [HOT.keys(), {"top_p", "seed"}] * 2


def test_what_is_learnt_is_forgotten_in_time_and_bounded():
    one, two = Change("temperature"), Change("top_p")
    learnt = Learnt()
    learnt.add("m", [one], 0.0)
    learnt.add("m", [two], 10.0)
    assert learnt.changes("m", REMEMBERED_S - 1) == (one, two)
    assert learnt.changes("m", REMEMBERED_S) == (two,)
    assert learnt.changes("n", 0.0) == ()
    for number in range(MODELS):
        learnt.add(f"m{number}", [one], 0.0)
    assert learnt.changes("m", 0.0) == ()
    assert learnt.changes("m0", 0.0) == (one,)


async def test_a_request_over_a_websocket_is_sent_again_too():
    async def play(socket: Any, asked: dict[str, Any]) -> None:
        refusal = {"type": "error", "status": 400, "error": {"message": REFUSED.format("temperature")}}
        for message in [json.dumps(refusal)] if "temperature" in asked else events():
            await socket.send_str(message)

    async with (
        socket_upstream(play) as sockets,
        in_turn(upstream_at(sockets, "openai-responses", transport="websocket")) as running,
    ):
        for _ in range(2):
            assert (await running.asked(body=HOT)).status == 200
    assert ["temperature" in asked for asked in sockets.asked] == [True, False, False]


async def test_set_and_drop_change_each_request():
    values = {"drop": ["seed", "metadata.user"], "set": {"temperature": 1, "extra": {"a": True}}}
    async with in_turn(leg(as_asked("openai-chat"), **values)) as running:
        body = {**HOT, "metadata": {"user": "u", "b": "c"}, "extra": {"z": 0}}
        assert (await running.asked(body=body)).status == 200
        got = running.evil.requests[0].json()
        assert {name: got.get(name) for name in ("seed", "metadata", "temperature", "extra", "top_p")} == {
            "seed": None, "metadata": {"b": "c"}, "temperature": 1, "extra": {"z": 0, "a": True}, "top_p": 0.9,
        }  # fmt: skip
        assert running.counted("losses_total", kind="parameter_replaced") == 3


@pytest.mark.parametrize(("cache", "marks"), [("auto", 1), ("off", 0)])
async def test_a_prompt_is_marked_for_the_cache_only_if_the_upstream_wants_it(cache, marks):
    async with in_turn(leg(as_asked("anthropic"), dialect="anthropic", cache=cache)) as running:
        assert (await running.asked()).status == 200
        assert running.evil.requests[0].body.count(b"cache_control") == marks
        assert running.counted("losses_total", kind="cache_mark") == 0


async def test_what_the_cache_read_and_wrote_is_logged_and_counted(caplog):
    caplog.set_level(logging.INFO, logger="streamkit")
    usage = {"input_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20, "output_tokens": 1}
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "a"}],
    }
    body = json.dumps({**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}).encode()
    async with in_turn(leg(whole("anthropic", body), dialect="anthropic", cache="auto")) as running:
        assert (await running.asked(stream=False)).status == 200
        assert running.counted("tokens_total", type="input_cached") == 30
        assert running.counted("tokens_total", type="input_cache_write") == 20
    (line,) = (record.fields for record in caplog.records if record.message == "request")
    assert line["usage"] == {"input": 55, "input_cached": 30, "input_cache_write": 20, "output": 1}
