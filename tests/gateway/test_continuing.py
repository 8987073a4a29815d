"""``on_cut = "continue"``: an answer that breaks off in its text is gone on with by another upstream, as one stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import Choice, Response, Text
from streamkit.conversation.response_events import response_events
from streamkit.dialects import source_named
from streamkit.dialects.profiles import Encoding
from streamkit.events import (
    Event,
    ProviderFailed,
    ReasoningDelta,
    ResponseStarted,
    TextDelta,
    ToolCallArguments,
    ToolCallStarted,
    UsageReported,
)
from streamkit.gateway.routing import Route, Target
from streamkit.report import StreamReport
from streamkit.web.source import Timeouts
from streamkit.web.surfaces import surfaces
from streamkit.web.upstream import Upstream
from tests.clients.recipes import violations
from tests.gateway.running import Running, asking, config_of, gateway, upstream_at
from tests.laws.running import read
from tests.web.evil import EvilUpstream, Fin, Hang, Play, Received, Script, Send
from tests.web.faults import END_OF_CHUNKS, chunk, good, head, status
from tests.web.faults import whole as one_body
from tests.web.raw_client import Answer, ask
from tests.web.serving import eventually

SAID: Final = "It is cold in  Oslo.\n\nIt is  warm in Rome, I think."
WORDS: Final = ("It is", " cold in ", " Oslo.", "\n", "\nIt is ", " warm in Rome,", " I think.")
#: Those that go on with a text, and how.
SOURCES: Final = ("anthropic", "mistral", "ollama", "vllm", "deepseek")
BEGUN: Final = len("It is cold in  Oslo.")


def written(dialect: str, events: Sequence[Event]) -> list[bytes]:
    """Events in the bytes of a dialect, without an end of their own."""
    encoder = source_named(dialect)[0].encoder(Encoding(), StreamReport())
    return [data for event in events if (data := encoder.feed([event]))]


def answer(text: str, words: Sequence[str] = (), *, usage: UsageReported | None = None) -> list[Event]:
    """The events of a whole answer."""
    choice = Choice(parts=[Text(text)], stop_reason="stop")
    usage = usage or UsageReported(input_total=7, output_total=3)
    events = response_events(Response("", id="r1", model="there", choices=[choice], usage=usage, clean=True))
    found: list[Event] = []
    for event in events:
        found += map(TextDelta, words or [text]) if isinstance(event, TextDelta) else [event]
    return found


def broken(dialect: str, events: Sequence[Event], how: str = "fin") -> Script:
    """A stream that breaks off behind these events."""
    media_type = source_named(dialect)[0].media_type
    begin = Send(head(200, {"Content-Type": media_type, "Transfer-Encoding": "chunked"}))
    sent = [Send(chunk(data)) for data in written(dialect, events)]
    ends = {"fin": [Send(b"ff\r\n"), Fin()], "end": [Send(END_OF_CHUNKS)], "silence": [Hang()]}
    return Script((begin, *sent, *ends[how]))


def whole(dialect: str, text: str, **options: Any) -> Script:
    events = answer(text, **options)
    return good(source_named(dialect)[0].name, written(dialect, events))


def last_message(request: Received) -> dict[str, Any]:
    message: dict[str, Any] = request.json()["messages"][-1]
    return message


def text_in(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def rest(dialect: str, **options: Any) -> Callable[[Received], Script]:
    """What goes on from wherever the request's last message breaks off."""

    def play(request: Received) -> Script:
        message = last_message(request)
        if message["role"] != "assistant":
            return whole(dialect, SAID)
        begun = text_in(message)
        assert SAID.startswith(begun), begun
        return whole(dialect, SAID[len(begun) :], **options)

    return play


#: What clients ask whose bodies have messages of their own.
BROWSERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "ai-sdk": (
        "/v1/ai-sdk/m",
        {"id": "c", "messages": [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]},
    ),
    "ag-ui": (
        "/v1/ag-ui/m",
        {
            "threadId": "t",
            "runId": "r",
            "state": {},
            "messages": [{"id": "u", "role": "user", "content": "hi"}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        },
    ),
}


@asynccontextmanager
async def running(
    *plays: tuple[str, Sequence[Play]], server: dict[str, Any] | None = None, **route: Any
) -> AsyncIterator[tuple[Running, list[EvilUpstream]]]:
    """A gateway in front of an upstream for each dialect and its scripts."""
    evils = [EvilUpstream(*scripts) for _, scripts in plays]
    for evil in evils:
        await evil.__aenter__()
    try:
        upstreams = [
            upstream_at(evil, dialect, f"u{number}", timeouts=Timeouts(connect_s=20, first_byte_s=20, idle_s=0.3))
            for number, (evil, (dialect, _)) in enumerate(zip(evils, plays, strict=True))
        ]
        async with gateway(config_of(upstreams, server=server, **{"on_cut": "continue", **route})) as started:
            yield started, evils
    finally:
        for evil in evils:
            await evil.__aexit__()


async def asked(started: Running, dialect: str = "openai-chat", **how: Any) -> Answer:
    path, body = BROWSERS[dialect] if dialect in BROWSERS else asking(dialect, **how)
    return await ask(started.url, path, body=orjson.dumps(body), headers={"content-type": "application/json"})


#: What stands once in each whole stream: of its start, and of its end.
ONCE: Final[dict[str, tuple[bytes, ...]]] = {
    "openai-chat": (b'"role":"assistant"', b"data: [DONE]"),
    "openai-responses": (
        b"event: response.created",
        b"event: response.output_item.added",
        b"event: response.completed",
    ),
    "anthropic": (b"event: message_start", b"event: content_block_start", b"event: message_stop"),
    "ollama": (b'"done":true',),
    "gemini": (b'"finishReason"',),
    "gemini-interactions": (b"event: interaction.completed",),
    "ag-ui": (b'"RUN_STARTED"', b'"TEXT_MESSAGE_START"', b'"RUN_FINISHED"'),
    "ai-sdk": (b'"type":"start"', b'"type":"text-start"', b'"type":"finish"'),
}


def is_whole(client: str, found: Answer, text: str = SAID) -> None:
    """One stream that says all of it, in the form of its dialect."""
    assert (found.status, found.end) == (200, "complete")
    outcome = read(client, [bytes(found.body)])
    said = "".join(event.text for event in outcome.events if isinstance(event, TextDelta))
    assert said == text
    assert (outcome.clean, outcome.fault) == (True, "")
    assert [each.rule for each in violations(bytes(found.body), client) if each.severity == "error"] == []
    assert [found.body.count(word) for word in ONCE[client]] == [1] * len(ONCE[client])


def has_failed(client: str, found: Answer) -> None:
    outcome = read(client, [bytes(found.body)])
    assert not outcome.clean


#: Behind how many events of which dialect the connection breaks, and how: from the first text to the last.
CUTS: Final = [
    (behind, dialect, how)
    for behind in range(2, len(answer(SAID, WORDS)) - 2)
    for dialect in SOURCES
    for how in ("fin", "end")
]


@pytest.mark.parametrize("client", surfaces())
async def test_an_answer_that_breaks_off_behind_an_event_is_one_answer(client):
    place = list(surfaces()).index(client)
    await check(client, CUTS[place :: 2 * len(surfaces()) + 1])


@pytest.mark.exhaustive
@pytest.mark.parametrize("client", surfaces())
async def test_so_it_is_behind_each_event_of_each(client):
    await check(client, CUTS)


async def check(client: str, cuts: Iterable[tuple[int, str, str]]) -> None:
    events = answer(SAID, WORDS)
    for behind, dialect, how in cuts:
        async with running((dialect, [broken(dialect, events[:behind], how)]), (dialect, [rest(dialect)])) as (
            started,
            evils,
        ):
            is_whole(client, await asked(started, client))
            assert [len(evil.requests) for evil in evils] == [1, 1]


async def test_its_timings_are_of_the_last_upstreams_part_and_of_all_that_was_written(caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    cut = broken("anthropic", answer(SAID, WORDS)[:4])
    async with running(("anthropic", [cut]), ("mistral", [rest("mistral")]), server={"timings": True}) as (started, _):
        is_whole("openai-chat", await asked(started))
        await eventually(lambda: started.counted("streams_active") == 0)
    [line] = [record.fields["timings"] for record in caplog.records if record.msg == "request"]
    assert [name for name in line if name not in {"source", "pipe"}] == [
        "parse mistral", "decode mistral", "accumulate_tool_calls", "encode openai-chat", "mark_seams"
    ]  # fmt: skip
    assert line["source"]["items_out"] == line["parse mistral"]["items_in"]
    assert line["encode openai-chat"]["items_in"] > line["accumulate_tool_calls"]["items_out"]


@pytest.mark.parametrize("dialect", SOURCES)
async def test_each_is_asked_in_its_own_way_to_go_on(dialect):
    cut = broken(dialect, answer(SAID, WORDS)[: -len(WORDS)])
    async with running((dialect, [cut, rest(dialect)])) as (started, evils):
        found = await asked(started, "openai-chat")
        is_whole("openai-chat", found)
        assert found.headers["x-streamkit-on-cut"] == "continue"
        assert found.body.count(b": streamkit continued\n") == 1
        _, second = evils[0].requests
        message, body = last_message(second), second.json()
        assert message["role"] == "assistant"
        assert text_in(message) == text_in(message).rstrip()
        assert SAID.startswith(text_in(message))
        assert [each["role"] for each in body["messages"]] == ["user", "assistant"]
        assert message.get("prefix") is (True if dialect in {"mistral", "deepseek"} else None)
        assert body.get("continue_final_message") is (True if dialect == "vllm" else None)
        assert body.get("add_generation_prompt") is (False if dialect == "vllm" else None)
        assert await started.outcomes() == {("u0", "broken"): 1, ("u0", "success"): 1}
        assert started.counted("repairs_total", kind="continued") == 1


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
async def test_within_one_dialect_too_and_the_usage_is_the_sum(client):
    dialect = "vllm" if client == "openai-chat" else client
    start, *begun = answer(SAID, WORDS)[:4]
    assert isinstance(start, ResponseStarted)
    first = [evolve(start, usage=UsageReported(input_total=10, output_total=2)), *begun]
    events = rest(dialect, usage=UsageReported(input_total=12, output_total=5))
    async with running((dialect, [broken(dialect, first)]), (dialect, [events])) as (started, _):
        path, body = asking(client)
        body = {**body, **({"stream_options": {"include_usage": True}} if client == "openai-chat" else {})}
        found = await ask(started.url, path, body=orjson.dumps(body), headers={"content-type": "application/json"})
        is_whole(client, found)
        usages = [event for event in read(client, [bytes(found.body)]).events if isinstance(event, UsageReported)]
        told_at_once = client == "anthropic"  # of a Chat stream that broke off nothing is known
        assert (usages[-1].input_total, usages[-1].output_total) == ((22, 7) if told_at_once else (12, 5)), usages


async def test_the_rest_may_come_as_one_body():
    cut = broken("anthropic", answer(SAID, WORDS)[:4])
    body = orjson.dumps({
        "id": "m", "type": "message", "role": "assistant", "model": "there", "stop_reason": "end_turn", "stop_sequence": None,
        "content": [{"type": "text", "text": " Oslo."}], "usage": {"input_tokens": 1, "output_tokens": 2},
    })  # fmt: skip
    async with running(("anthropic", [cut]), ("anthropic", [one_body("anthropic", body)])) as (started, _):
        is_whole("openai-responses", await asked(started, "openai-responses"), "It is cold in Oslo.")
        assert await started.outcomes() == {("u0", "broken"): 1, ("u1", "success"): 1}
        assert started.counted("repairs_total", kind="body_for_stream") == 1


async def test_what_the_client_put_into_the_assistants_mouth_stands_before_it():
    cut = broken("anthropic", answer(SAID, WORDS)[:4])
    async with running(("anthropic", [cut, whole("anthropic", " and so on")])) as (started, evils):
        path, body = asking("anthropic")
        body["messages"].append({"role": "assistant", "content": "Well: "})
        is_whole("anthropic", await ask(started.url, path, body=orjson.dumps(body)), "It is cold in and so on")
        _, again = evils[0].requests
        assert [text_in(message) for message in again.json()["messages"]] == ["hi", "Well: It is cold in"]


async def test_a_silence_is_a_cut_and_a_second_cut_is_gone_on_with_by_the_next():
    events = answer(SAID, WORDS)

    def cut_again(request: Received) -> Script:
        begun = text_in(last_message(request))
        return broken("anthropic", answer(SAID[len(begun) :], [SAID[len(begun) : len(begun) + 9]])[:4])

    cut = broken("anthropic", events[:4], "silence")
    plays = ("anthropic", [cut]), ("anthropic", [cut_again]), ("anthropic", [rest("anthropic")])
    async with running(*plays) as (started, evils):
        found = await asked(started)
        is_whole("openai-chat", found)
        assert found.body.count(b": streamkit continued\n") == 2
        assert [len(evil.requests) for evil in evils] == [1, 1, 1]
        outcomes = await started.outcomes()
        assert outcomes == {("u0", "idle_timeout"): 1, ("u1", "broken"): 1, ("u2", "success"): 1}


async def test_one_that_fails_before_it_says_anything_is_passed_over():
    events = answer(SAID, WORDS)
    plays = (
        ("anthropic", [broken("anthropic", events[:4])]),
        ("anthropic", [status(400, "anthropic")]),  # as Claude 4.6 does
        ("anthropic", [broken("anthropic", [*answer(SAID)[:1], ProviderFailed("server", "no")], "end")]),
        ("anthropic", [rest("anthropic")]),
    )
    async with running(*plays) as (started, evils):
        is_whole("anthropic", await asked(started, "anthropic"))
        assert [len(evil.requests) for evil in evils] == [1, 1, 1, 1]


CALL: Final = (ToolCallStarted(0, "call_1", "weather"), ToolCallArguments(0, '{"ci'))
ENDS_AS_TODAY: Final[dict[str, Sequence[Event]]] = {
    "in a call": [*answer(SAID, WORDS)[:4], *CALL],
    "in reasoning": [*answer(SAID)[:1], ReasoningDelta("Let me think")],
    "in text behind reasoning": [*answer(SAID)[:1], ReasoningDelta("Hm", block=0), TextDelta("It is", block=1)],
    "behind a provider's error": [*answer(SAID, WORDS)[:4], ProviderFailed("server", "no capacity")],
    "behind blanks alone": [*answer(SAID)[:1], TextDelta(" \n")],
}


@pytest.mark.parametrize("case", ENDS_AS_TODAY)
async def test_what_text_alone_does_not_say_ends_as_ever(case):
    for client in "anthropic", "openai-responses":
        cut = broken("anthropic", ENDS_AS_TODAY[case], "end" if "error" in case else "fin")
        async with running(("anthropic", [cut]), ("anthropic", [rest("anthropic")])) as (started, evils):
            has_failed(client, await asked(started, client, tools=True))
            assert [len(evil.requests) for evil in evils] == [1, 0]


async def test_several_choices_are_not_gone_on_with():
    cut = broken("vllm", answer(SAID, WORDS)[:4])
    async with running(("vllm", [cut]), ("vllm", [rest("vllm")])) as (started, evils):
        path, body = asking("openai-chat")
        found = await ask(started.url, path, body=orjson.dumps({**body, "n": 2}))
        has_failed("openai-chat", found)
        assert "x-streamkit-on-cut" not in found.headers
        assert [len(evil.requests) for evil in evils] == [1, 0]


async def test_who_can_not_go_on_is_not_asked_and_the_client_is_told_of_the_first():
    cut = broken("vllm", answer(SAID, WORDS)[:4])
    async with running(("vllm", [cut]), ("openai-chat", [rest("vllm")]), ("anthropic", [status(529)])) as (
        started,
        evils,
    ):
        found = await asked(started)
        has_failed("openai-chat", found)
        assert b"u0: the connection to the upstream broke" in found.body
        assert [len(evil.requests) for evil in evils] == [2, 0, 1]  # itself once more, at the end
        assert found.body.count(b"[DONE]") == 0


async def test_where_the_route_does_not_say_so_nothing_changes():
    cut = broken("anthropic", answer(SAID, WORDS)[:4])
    async with running(("anthropic", [cut]), ("anthropic", [rest("anthropic")]), on_cut="report") as (started, evils):
        found = await asked(started)
        has_failed("openai-chat", found)
        assert "x-streamkit-on-cut" not in found.headers
        assert [len(evil.requests) for evil in evils] == [1, 0]


async def test_a_client_that_leaves_closes_the_one_that_goes_on():
    cut = broken("anthropic", answer(SAID, WORDS)[:4])
    onward = broken("anthropic", answer(SAID, WORDS)[:2], "silence")
    async with running(("anthropic", [cut]), ("anthropic", [onward])) as (started, evils):
        asking_ = asyncio.create_task(asked(started))
        second = await evils[1].request()
        asking_.cancel()
        await second.left()
        assert (await started.outcomes())["u1", "client_left"] == 1


def test_a_route_on_which_nobody_can_go_on_is_refused():
    upstream = Upstream(name="u", dialect="openai-responses", base_url="http://127.0.0.1:9/v1", auth="none")
    with pytest.raises(ValueError, match="no target is known to continue an interrupted text"):
        Route(models=("m",), targets=(Target(upstream=upstream),), on_cut="continue")
