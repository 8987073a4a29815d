"""``next_on``: for which reasons the next upstream is tried, streamed and whole, and what the client gets if none does better."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

import orjson
import pytest
from attrs import frozen

from streamkit.conversation.messages import Choice, Part, Reasoning, Refusal, Response, Text, ToolCall
from streamkit.conversation.response_events import response_events
from streamkit.events import ErrorType, ProviderFailed, StopReason, UsageReported, Verdict
from streamkit.gateway.reasons import DEFAULT_REASONS, Reason, lacks_tools, reasons_of
from streamkit.gateway.routing import RouteStage
from streamkit.http_errors import decode_error, is_retryable
from streamkit.translation.bodies import decode_response, encode_response
from streamkit.web.answered_by import ATTEMPTS, UPSTREAM
from streamkit.web.opening import UNFIT
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from tests.gateway.running import Leg, Running, in_turn, leg
from tests.gateway.running import read as read_stream
from tests.web.evil import Play, Received, Script, Send, Until
from tests.web.faults import FAULTS, TEXT, as_asked, asks_for_stream, chunk, good, status
from tests.web.faults import _written as written
from tests.web.faults import whole as one_body
from tests.web.raw_client import Answer

CLIENTS: Final = ("openai-chat", "anthropic")
SOUND: Final = as_asked("openai-chat")
PATIENT: Final = Timeouts(connect_s=20, first_byte_s=20, idle_s=20)
SPENT: Final = UsageReported(input_total=9, output_total=1)


def ends(
    stop: StopReason,
    *parts: Part,
    dialect: str = "openai-chat",
    name: str = "r1",
    headers: Mapping[str, str] | None = None,
) -> Callable[[Received], Script]:
    """A complete response of these parts, streamed or whole, as the request asks."""
    choice = Choice(parts=list(parts), stop_reason=stop)
    answer = Response(dialect, id=name, model="m", created=1, choices=[choice], usage=SPENT, clean=True)

    def play(request: Received) -> Script:
        if asks_for_stream(request, dialect):
            return good(dialect, written(dialect, response_events(answer)), headers=headers)
        return one_body(dialect, encode_response(answer, dialect), headers=headers)

    return play


def blocked(request: Received) -> Script:
    """Gemini's filter refuses the prompt: no candidate."""
    body = orjson.dumps({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}})
    return good("gemini", [b"data: " + body + b"\r\n\r\n"]) if "stream" in request.path else one_body("gemini", body)


def error_event(request: Received) -> Script:
    """Status 200, and the context is too small."""
    body = orjson.dumps({"error": {"message": "no", "code": "context_length_exceeded"}})
    is_stream = asks_for_stream(request, "openai-chat")
    return good("openai-chat", [b"data: " + body + b"\n\n"]) if is_stream else one_body("openai-chat", body)


def coded(number: int, code: str, message: str = "no") -> Script:
    error = {"message": message, "type": "invalid_request_error", "code": code}
    return status(number, body=orjson.dumps({"error": error}))


#: What the first upstream does, behind the reasons for which the next one is tried: the exact one and the general one.
FIRST: Final[Sequence[tuple[str, Leg | Play]]] = [
    ("overloaded", status(503)),
    ("rate_limit", status(429)),
    ("server_error", status(500)),
    ("server_error", FAULTS["200 with HTML"]("openai-chat")),
    ("auth", status(401)),
    ("billing", coded(429, "insufficient_quota")),
    ("permission", status(403)),
    ("not_found", status(404)),
    ("unsupported_tools not_found", status(404, message="No endpoints found that support tool use")),
    ("connection", FAULTS["refused"]("openai-chat")),
    ("timeout", leg(FAULTS["silence before headers"](""), timeouts=Timeouts(first_byte_s=0.03))),
    ("invalid_request", status(400)),
    ("too_large", status(413)),
    ("context_length too_large", coded(400, "context_length_exceeded")),
    ("context_length too_large", error_event),
    ("content_filter invalid_request", coded(400, "content_filter")),
    ("refusal", ends("refusal", Refusal("I can't."))),
    ("refusal", leg(ends("refusal", dialect="anthropic"), dialect="anthropic")),
    ("content_filter", ends("content_filter")),
    ("content_filter", leg(blocked, dialect="gemini")),
    ("context_length", leg(ends("context_full", dialect="anthropic"), dialect="anthropic")),
    ("no_output", ends("stop")),
    ("no_output", leg(ends("length", dialect="anthropic"), dialect="anthropic")),
    ("no_output", leg(ends("stop", dialect="ollama"), dialect="ollama")),
]
REASONS: Final[tuple[str, ...]] = get_args(Reason)


@frozen
class Heard:
    """What a client understood of an answer."""

    status: int
    kind: str = ""
    text: str = ""
    refusal: str = ""
    stop: str | None = None


async def heard(answer: Answer, client: str, *, stream: bool) -> Heard:
    assert answer.end == "complete"
    if answer.status != 200:
        return Heard(answer.status, decode_error(answer.status, bytes(answer.body), client).type)
    if stream:
        read = await read_stream(answer, client)
    else:
        read = decode_response(bytes(answer.body), client)
    assert read.clean
    [choice] = read.choices
    return Heard(200, "", choice.text, choice.refusal, choice.stop_reason)


async def all_ways(running: Running) -> dict[tuple[str, bool], Heard]:
    """Ask as clients of two dialects do, for streams and for whole responses; each time for another model."""
    found = {}
    for number, (client, stream) in enumerate(product(CLIENTS, (True, False))):
        answer = await running.asked(client, stream=stream, model=f"m{number}", tools=True)
        found[client, stream] = await heard(answer, client, stream=stream)
    return found


@pytest.mark.parametrize(("reasons", "play"), FIRST, ids=[f"{at} {reasons}" for at, (reasons, _) in enumerate(FIRST)])
async def test_the_next_upstream_is_tried_for_the_listed_reasons_only(reasons: str, play: Leg | Play):
    exact = reasons.split(maxsplit=1)[0]
    async with in_turn(play, SOUND, next_on=[exact]) as running:
        found = await all_ways(running)
        assert running.seen[1] == 4
        assert {heard.text for heard in found.values()} == {TEXT}
        await running.outcomes()
        assert running.counted("failed_attempts_total", upstream="one", reason=exact) == 4
    async with in_turn(play, SOUND, next_on=[word for word in REASONS if word not in reasons.split()]) as running:
        unlisted = await all_ways(running)
        assert running.seen[1] == 0
    async with in_turn(play) as alone:
        assert unlisted == await all_ways(alone)


REFUSAL: Final = Refusal("I can't.")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "last", [ends("refusal", Refusal("Nor can I."), name="r2"), status(500), status(400), status(413)]
)
async def test_if_no_upstream_does_better_the_client_gets_the_first_response(
    last: Play, client: str, caplog: pytest.LogCaptureFixture, *, stream: bool
):
    caplog.set_level(logging.INFO)
    first = ends("refusal", REFUSAL, headers={"x-request-id": "one", "x-ratelimit-limit-requests": "1"})
    server = {"name_upstreams": True}
    async with in_turn(first, last, next_on=["default", "refusal"], retries=1, server=server) as running:
        answer = await running.asked(client, stream=stream)
        assert [answer.headers[name] for name in (UPSTREAM, ATTEMPTS)] == ["one", "2"]
        found = await heard(answer, client, stream=stream)
        assert running.seen == [1, 1]
        assert (await running.outcomes())["one", "refusal"] == 1
    assert REFUSAL.text in {found.refusal, found.text}
    assert [value for name, value in answer.headers.items() if "ratelimit" in name] == ["1"]
    [line] = [record.fields for record in caplog.records if record.name == "streamkit.gateway"]
    assert line["stop"] == "refusal", "of the response that the client got"


CONTEXT, LISTED = coded(400, "context_length_exceeded"), ["default", "context_length"]


@pytest.mark.parametrize(
    ("plays", "status_code", "seen"),
    [
        ([CONTEXT, leg(status(503), SOUND)], 200, [1, 2]),
        ([leg(status(503), SOUND), CONTEXT], 200, [2, 1]),
        ([CONTEXT, status(503)], 529, [1, 2]),
        ([CONTEXT, CONTEXT], 400, [1, 1]),
        ([status(401), CONTEXT], 400, [1, 1]),
        ([leg(ends("context_full", dialect="anthropic"), dialect="anthropic"), status(503)], 200, [1, 1]),
    ],
)
async def test_a_context_that_is_too_small_is_not_asked_again(plays: list[Play], status_code: int, seen: list[int]):
    async with in_turn(*plays, next_on=LISTED, retries=1) as running:
        answer = await running.asked("anthropic")
        assert (answer.status, running.seen) == (status_code, seen)
    if status_code == 400:
        assert b"prompt is too long" in answer.body


async def test_one_that_rests_is_asked_rather_than_one_whose_context_is_too_small():
    rests = status(429, headers={"Retry-After": "60"})
    async with in_turn(
        leg(CONTEXT, CONTEXT), leg(rests, status(503), SOUND), next_on=LISTED, retries=1, retry_after_max_s=1
    ) as running:
        assert (await running.asked()).status == 429
        assert (await running.asked()).status == 200
        assert running.seen == [2, 3]


FILTERED: Final = ("refusal", "content_filter", "no_output")


@pytest.mark.parametrize(
    ("stop", "parts", "streamed", "whole"),
    [
        ("content_filter", [Text("So far")], 1, 1),
        ("refusal", [Text("So far"), REFUSAL], 1, 1),
        ("tool_calls", [ToolCall(0, "c1", "weather", "{}", verdict=Verdict("complete"))], 1, 1),
        ("stop", [Reasoning("Hm.")], 1, 2),  # in a stream, the client has the reasoning before the end is known
        ("content_filter", [Reasoning("Hm.")], 1, 2),
        ("stop", [REFUSAL, Text("But so I can.")], 2, 1),  # nothing of the stream was sent, and it ends as a refusal
    ],
)
@pytest.mark.parametrize("client", CLIENTS)
async def test_what_was_sent_is_not_taken_back(
    client: str, stop: StopReason, parts: list[Part], streamed: int, whole: int
):
    async with in_turn(ends(stop, *parts), SOUND, next_on=FILTERED) as running:
        for stream, asked in (True, streamed), (False, whole):
            before = running.seen[1]
            answer = await running.asked(client, stream=stream, tools=True)
            found = await heard(answer, client, stream=stream)
            assert 1 + running.seen[1] - before == asked
            assert (found.text == TEXT) == (asked == 2)


async def test_a_refusal_of_one_choice_is_no_reason():
    choices = [Choice(0, parts=[REFUSAL], stop_reason="refusal"), Choice(1, parts=[Text("Yes.")], stop_reason="stop")]
    answer = Response("openai-chat", id="r1", model="m", created=1, choices=choices, usage=SPENT, clean=True)
    play = good("openai-chat", written("openai-chat", response_events(answer)))
    async with in_turn(play, SOUND, next_on=FILTERED) as running:
        assert b"Yes." in (await running.asked(body={"n": 2})).body
        assert running.seen == [1, 0]


@pytest.mark.parametrize("keys", [(), ("first-key-8f31", "second-key-77b0")], ids=["no key", "two keys"])
async def test_the_last_upstreams_refusal_is_written_while_it_arrives(keys: Sequence[str]):
    done = asyncio.Event()
    *begun, last = written("openai-chat", [*response_events(refusing())])
    steps = good("openai-chat", begun).steps
    slow = Script((*steps[:-1], Until(done), Send(chunk(last)), steps[-1]))
    keyed = {"auth": "bearer", "keys": tuple(map(Secret, keys))} if keys else {}
    async with in_turn(leg(slow, timeouts=PATIENT, **keyed), next_on=FILTERED) as running, running.client() as client:
        await client.read_until(REFUSAL.text.encode())
        done.set()


def refusing() -> Response:
    choice = Choice(parts=[REFUSAL], stop_reason="refusal")
    return Response("openai-chat", id="r1", model="m", created=1, choices=[choice], usage=SPENT, clean=True)


@pytest.mark.parametrize(
    "route", [{"on_cut": "continue"}, {"stages": (RouteStage({"use": "streamkit:redact", "args": ["ACME"]}),)}]
)
async def test_it_is_so_on_routes_that_continue_or_change_responses(route: dict[str, Any]):
    legs = [leg(ends("refusal", dialect="anthropic"), dialect="anthropic")] * 2
    for second, text in (SOUND, TEXT), (ends("refusal", REFUSAL), ""):
        async with in_turn(legs[0], second, next_on=["refusal"], **route) as running:
            found = await all_ways(running)
            assert {each.text for each in found.values()} == {text}
            assert running.seen == [4, 4]


# -- what each failure is called ---------------------------------------------------------------------------------------


def did_better_before(failed: ProviderFailed) -> bool:
    """The rule before routes could choose: what the default must be."""
    redirected = failed.http_status is not None and 300 <= failed.http_status < 400
    its_own = failed.type in {"auth", "billing", "permission", "not_found"} or failed.code == UNFIT
    return is_retryable(failed) or its_own or lacks_tools(failed) or redirected


def test_the_default_is_what_depends_on_the_upstream():
    statuses = [None, 307, 400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 500, 501, 503, 504, 505, 529]
    messages = ["no", "this model does not support tools", "your input was flagged as unsafe", "prompt is too long"]
    for kind, code, text, number in product(get_args(ErrorType), ["x", UNFIT, "content_filter"], messages, statuses):
        failed = ProviderFailed(kind, text, code=code, http_status=number)
        if text == "prompt is too long" and kind in {"invalid_request", "server"}:
            continue  # the type of such an error is too_large
        assert DEFAULT_REASONS.isdisjoint(reasons_of(failed)) != did_better_before(failed), failed


def test_the_guide_explains_each_reason_and_the_default():
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "choose-upstreams.md"
    rows = re.findall(r"^\| `(\w+)` \| (yes|no) \| ", guide.read_text("utf-8"), re.MULTILINE)
    assert {name for name, _ in rows} == {*REASONS}
    assert {name for name, default in rows if default == "yes"} == DEFAULT_REASONS
