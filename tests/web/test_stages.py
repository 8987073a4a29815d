"""Stages of one's own in everything that serves: what a client gets has passed them, and one that raises is no success."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from functools import partial

import orjson
import pytest
from aiohttp import ClientSession, web

from streamkit import asgi, collect, decode_response, guard, map_text, parse_sse, pipe, redact, transcode
from streamkit.conversation.messages import Choice, Response, Text
from streamkit.errors import StreamError, UsageError
from streamkit.events import OutputChecked, TextDelta
from streamkit.gateway.routing import RouteStage
from streamkit.resume import MemoryStore
from streamkit.rewrite.given import given_stages
from streamkit.testing import open_sources, source_of
from streamkit.translation.bodies import encode_response
from streamkit.web import Delivery, Upstream, chat_ui, relay, setup
from streamkit.web.exchange import Exchange
from streamkit.web.resume import Resuming, add_resuming
from tests.asgi.test_messages import call
from tests.gateway.running import asking, in_turn, upstream_at
from tests.gateway.test_continuing import body_of
from tests.gateway.test_continuing import whole as streamed
from tests.web.asking import ASKS
from tests.web.evil import EvilUpstream, Hang, Script
from tests.web.faults import CALL, TEXT, as_asked, good, refuse, status, whole
from tests.web.raw_client import Answer, RawClient, ask
from tests.web.serving import answering, eventually, serving

HIDE = redact("Oslo", replacement="there")
QUICK = Delivery(linger_s=0.1)


async def raises_at_once(batches):
    async for _ in batches:
        raise ValueError("a secret text")
        yield []


class Panic(BaseException):
    """What packages in Rust raise after a panic."""


async def panics(batches):
    async for _ in batches:
        raise Panic("a secret text")
        yield []


async def raises_late(batches):
    async for batch in batches:
        yield batch
        if any(isinstance(event, TextDelta) for event in batch):
            raise ValueError("a secret text")


async def fails_to_close(batches):
    try:
        async for batch in batches:
            yield batch
    except asyncio.CancelledError:
        raise ValueError("a secret text") from None


async def distrusts(batches):
    async for batch in batches:
        if any(isinstance(event, TextDelta) for event in batch):
            raise StreamError("the model spoke of Oslo")
        yield batch


async def is_cancelled(batches):
    async for batch in batches:
        yield batch
        if any(isinstance(event, TextDelta) for event in batch):
            raise asyncio.CancelledError


async def one_by_one(batches):
    async for batch in batches:
        for event in batch:
            yield event


async def words_alone(batches):
    async for batch in batches:
        yield [event.text for event in batch if isinstance(event, TextDelta)]


def raises(_text):
    raise ValueError("a secret text")


async def spoils_json(batches):
    """Make JSON with the word malformed, and drop the verdict on the text before."""
    async for batch in redact("Oslo", replacement='"')(batches):
        yield [event for event in batch if not isinstance(event, OutputChecked)]


#: Stages by the names that a configuration gives them: the gateway loads a stage by its name.
STAGES = {
    "HIDE": HIDE,
    "raises_at_once": raises_at_once,
    "panics": panics,
    "raises_late": raises_late,
    "is_cancelled": is_cancelled,
    "one_by_one": one_by_one,
    "words_alone": words_alone,
    "in_text": map_text(raises, hold=0),
    "spoils_json": spoils_json,
}
in_text = STAGES["in_text"]
refuses = guard(lambda text: "Oslo" in text, hold=4)
fails = guard(lambda text: "Oslo" in text and "not there", hold=4, reply="error")
STAGES |= {"refuses": refuses, "fails": fails}


def asked(client, *, stream, **members):
    if client == "ai-sdk":
        return ASKS[client][0], orjson.dumps(ASKS[client][1])
    path, body = asking(client, stream=stream)
    return path, orjson.dumps({**body, **members})


async def by_setup(evil, dialect, stage, client, stream, **members):
    app = web.Application()
    setup(app, upstream_at(evil, dialect), stages=[STAGES[stage]], delivery=QUICK)
    path, body = asked(client, stream=stream, **members)
    async with serving(app) as port:
        return await ask(f"http://127.0.0.1:{port}", path, body=body)


async def by_asgi(evil, dialect, stage, client, stream):
    app = asgi.application(upstream_at(evil, dialect), stages=[STAGES[stage]], delivery=QUICK)
    path, body = asked(client, stream=stream)
    async with app.lifespan():
        return answer_in(await call(app, "POST", path, headers=[(b"content-length", b"%d" % len(body))], bodies=[body]))


def answer_in(messages):
    """The messages of an ASGI application as an answer; its end is missing if the application failed inside the body."""
    body = bytearray(b"".join(message.get("body", b"") for message in messages[1:]))
    is_whole = messages[-1].get("more_body", False) is False
    return Answer(messages[0]["status"], body=body, end="complete" if is_whole else "cut")


async def by_chat_ui(evil, dialect, stage, _client, _stream):
    app = web.Application()
    chat_ui(app, upstream_at(evil, dialect), model="there", stages=[STAGES[stage]])
    async with serving(app) as port:
        return await ask(f"http://127.0.0.1:{port}", "/api/chat", body=asked("ai-sdk", stream=True)[1])


def given(evil, session, dialect, client):
    path, body = asking(dialect)
    return session.post(evil.url + path, json=body), {"client": client, "provider": dialect, "delivery": QUICK}


async def by_relay(evil, dialect, stage, client, _stream):
    async def handler(request):
        async with ClientSession() as session:
            source, names = given(evil, session, dialect, client)
            return await relay(request, source, stages=[STAGES[stage]], **names)

    async with serving(answering(handler)) as port:
        return await ask(f"http://127.0.0.1:{port}", "/")


async def by_asgi_relay(evil, dialect, stage, client, _stream):
    async with ClientSession() as session:
        source, names = given(evil, session, dialect, client)
        return answer_in(await call(asgi.relay(source, stages=[STAGES[stage]], **names), "POST"))


async def by_gateway(evil, dialect, stage, client, stream, **members):
    path, body = asked(client, stream=stream, **members)
    stages = (RouteStage(f"{__name__}:{stage}"),)
    async with in_turn(upstream_at(evil, dialect), stages=stages) as running:
        return await ask(running.url, path, body=body)


WAYS = {
    "setup": by_setup,
    "asgi": by_asgi,
    "chat_ui": by_chat_ui,
    "relay": by_relay,
    "asgi relay": by_asgi_relay,
    "gateway": by_gateway,
}
STREAMING = {"chat_ui", "relay", "asgi relay"}  #: those that only stream
ROWS = [
    (way, client, stream)
    for way in WAYS
    for client in (["ai-sdk"] if way == "chat_ui" else ["openai-chat", "anthropic"])
    for stream in ([True] if way in STREAMING else [True, False])
]
FORMS = {True: "stream", False: "whole"}
each_way = pytest.mark.parametrize(("way", "client", "stream"), ROWS, ids=lambda value: FORMS.get(value, value))


@asynccontextmanager
async def nothing_left():
    """Check that no source, task and connection to an upstream is left."""
    before = len(asyncio.all_tasks())
    yield
    assert open_sources() == 0
    await eventually(lambda: len(asyncio.all_tasks()) <= before)


async def answered(way, client, stream, stage, play=None, dialect="openai-chat", **members):
    async with nothing_left(), EvilUpstream(play or as_asked(dialect)) as evil:
        answer = await WAYS[way](evil, dialect, stage, client, stream, **members)
        await eventually(lambda: all(each.left_at or each.played_at for each in evil.requests))
    return answer


async def read(answer, client, stream):
    if stream:
        return await collect(source_of([bytes(answer.body)]), client)
    return decode_response(bytes(answer.body), client)


@each_way
async def test_what_a_client_gets_has_passed_the_stages(way, client, stream):
    answer = await answered(way, client, stream, "HIDE")
    assert (answer.status, answer.end) == (200, "complete")
    assert b"Oslo" not in answer.body
    response = await read(answer, client, stream)
    assert (response.clean, response.text) == (True, TEXT.replace("Oslo", "there"))
    assert [call.arguments for call in response.tool_calls] == [CALL[1].replace("Oslo", "there")]
    assert response.report.status == 0


@pytest.mark.parametrize("stage", ["raises_at_once", "raises_late", "in_text"])
@each_way
async def test_a_stage_that_raises_is_an_error_without_its_text(way, client, stream, stage, caplog):
    with caplog.at_level(logging.ERROR):
        answer = await answered(way, client, stream, stage)
    assert b"secret text" not in answer.body
    is_begun = stream and stage == "raises_late"
    assert answer.status == (200 if is_begun else 500)
    if is_begun:
        response = await read(answer, client, stream)
        assert (response.clean, response.error is not None) == (False, True)
    told = [record.getMessage() for record in caplog.records if "failed in the stage" in record.getMessage()]
    assert [message.rpartition(" ")[2] for message in told] == ["map_text(raises)" if stage == "in_text" else stage]


@pytest.mark.parametrize("stream", [True, False], ids=FORMS.get)
async def test_a_stage_that_panics_is_an_error_too(stream, caplog):
    answer = await answered("setup", "openai-chat", stream, "panics")
    assert (answer.status, answer.end) == (500, "complete")
    assert b'"error"' in answer.body
    assert b"secret text" not in answer.body
    assert "the response to '/v1/chat/completions' failed" in caplog.text


@pytest.mark.parametrize("stream", [True, False], ids=FORMS.get)
async def test_a_stage_that_is_cancelled_is_no_client_that_left(stream, caplog):
    answer = await answered("setup", "openai-chat", stream, "is_cancelled")
    assert (answer.status, answer.end) == ((200, "cut") if stream else (500, "complete"))
    assert b'"error"' in answer.body
    assert "a stage or a source was cancelled" in caplog.text


@pytest.mark.parametrize("stream", [True, False], ids=FORMS.get)
@pytest.mark.parametrize("stage", ["one_by_one", "words_alone"])
async def test_a_stage_that_yields_something_else_is_an_error_and_is_named(stage, stream, caplog):
    answer = await answered("setup", "anthropic", stream, stage)
    assert (answer.status, b"message_stop" in answer.body) == (500, False)
    assert f"failed in the stage {stage}" in caplog.text
    assert f"check_json takes {'lists of ' * (stage == 'one_by_one')}events, but {stage}" in caplog.text


async def test_a_stage_that_raises_within_a_json_array_is_named(caplog):
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"), stages=[raises_late], delivery=QUICK)
        path, body = asking("gemini")
        async with serving(app) as port:
            answer = await ask(f"http://127.0.0.1:{port}", path.partition("?")[0], body=orjson.dumps(body))
    assert (answer.end, b"secret text" in answer.body) == ("cut", False)
    assert "failed in the stage raises_late" in caplog.text


@each_way
async def test_a_guard_refuses_or_fails_a_response(way, client, stream):
    refused = await answered(way, client, stream, "refuses")
    response = await read(refused, client, stream)
    assert (refused.status, response.clean) == (200, True)
    assert b"not allowed" in refused.body
    assert b"Oslo" not in refused.body
    assert not response.tool_calls or stream
    failed = await answered(way, client, stream, "fails")
    assert b"Oslo" not in failed.body
    assert b"not there" in failed.body
    assert failed.status == (200 if stream else 400)
    if stream:
        assert not (await read(failed, client, stream)).clean


# -- whole responses ---------------------------------------------------------------------------------------------------


def by_choice(*texts):
    choices = [Choice(number, parts=[Text(text)], stop_reason="stop") for number, text in enumerate(texts)]
    return Response("openai-chat", id="c", model="m", created=1, choices=choices, clean=True)


async def test_a_guard_lets_the_other_choices_pass():
    play = whole("openai-chat", encode_response(by_choice("In Oslo.", "In Rome."), "openai-chat"))
    answer = await answered("setup", "openai-chat", False, "refuses", play)
    first, second = answer.json()["choices"]
    assert (first["message"]["content"], second["message"]["content"]) == ("In", "In Rome.")
    assert first["message"]["refusal"].startswith("The response was ended")


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("play", [good, whole], ids=["a stream for a body", "a body for a stream"])
async def test_a_response_in_the_other_form_has_passed_the_stages(play, client):
    stream = play is whole
    answer = await answered("setup", client, stream, "HIDE", play("openai-chat"))
    assert (answer.status, b"Oslo" in answer.body) == (200, False)
    assert (await read(answer, client, stream)).text == TEXT.replace("Oslo", "there")


async def test_a_long_response_passes_in_pieces(monkeypatch):
    """Other tasks run between two pieces, and what a piece divides is found."""
    longest = 0

    async def measured(batches):
        nonlocal longest
        async for batch in batches:
            longest = max(longest, sum(len(event.text) for event in batch if isinstance(event, TextDelta)))
            yield batch

    monkeypatch.setitem(STAGES, "both", lambda batches: HIDE(measured(batches)))
    text = "Oslo " * 16_000
    play = whole("openai-chat", encode_response(by_choice(text), "openai-chat"))
    answer = await answered("setup", "openai-chat", False, "both", play)
    assert longest == 65_536
    assert answer.json()["choices"][0]["message"]["content"] == text.replace("Oslo", "there")


# -- the verdict on a text that was to be JSON --------------------------------------------------------------------------


def in_one_body(dialect, text):
    return whole(dialect, body_of(dialect, text))


@pytest.mark.parametrize(
    ("stream", "play"),
    [(True, streamed), (False, in_one_body), (True, in_one_body), (False, streamed)],
    ids=["stream", "whole", "a body for a stream", "a stream for a body"],
)
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("way", ["setup", "gateway"])
async def test_the_only_verdict_is_on_the_text_that_the_stages_have_changed(way, dialect, stream, play, monkeypatch):
    exchanges, init = [], Exchange.__init__

    def kept(exchange, *values, **named):
        init(exchange, *values, **named)
        exchanges.append(exchange)

    monkeypatch.setattr(Exchange, "__init__", kept)
    form = {"response_format": {"type": "json_object"}}
    text = '{"city": "Oslo"}'
    answer = await answered(way, "openai-chat", stream, "spoils_json", play(dialect, text), dialect, **form)
    assert (await read(answer, "openai-chat", stream)).text == text.replace("Oslo", '"')
    [exchange] = exchanges
    assert exchange.report.output_verdicts == {"malformed": 1}


# -- where it is refused -----------------------------------------------------------------------------------------------


async def no_generator(batches):
    return batches


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (HIDE, r"stages must be a list of stages; for one stage, write stages=\[stage\]"),
        ([redact], "redact is not a stage; give an async generator function"),
        ([no_generator], "no_generator is not a stage"),
        (["streamkit:redact"], "str is not a stage"),
        ([transcode], "transcode is not a stage"),
        ([parse_sse()], "the stage parse_sse takes bytes and yields frames, not events"),
        (3, "stages must be a list"),
    ],
)
def test_what_is_no_stage_is_refused_at_once(stages, words):
    upstream = Upstream(name="u", dialect="openai-chat", base_url="http://127.0.0.1:1", auth="none")
    for give in (
        lambda: setup(web.Application(), upstream, stages=stages),
        lambda: asgi.application(upstream, stages=stages),
        lambda: chat_ui(web.Application(), upstream, model="m", stages=stages),
        lambda: asgi.relay(source_of([]), client="anthropic", stages=stages),
    ):
        with pytest.raises(UsageError, match=words):
            give()


class Passes:
    """A stage that is no generator function."""

    def __init__(self, batches):
        self._batches = aiter(batches)

    def __aiter__(self):
        return self

    async def __anext__(self):
        return await anext(self._batches)


@pytest.mark.parametrize(
    "stage", [HIDE, raises_late, partial(raises_late), Passes, lambda batches: Passes(aiter(batches))]
)
def test_every_form_of_a_stage_is_taken(stage):
    assert given_stages([stage], "setup") == (stage,)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"client": "klaude"}, "klaude"),
        ({"client": "anthropic", "provider": "nobody"}, "nobody"),
        (
            {"client": "anthropic", "pipeline": pipe, "stages": [HIDE]},
            "relay: give either a pipeline or stages; in a pipeline, write transcode",
        ),
    ],
)
def test_a_relay_refuses_wrong_arguments_at_once(given, words):
    with pytest.raises(UsageError, match=words):
        asgi.relay(source_of([]), **given)


# -- relay -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["relay", "asgi relay"])
@pytest.mark.parametrize(("play", "code"), [(refuse(), 502), (status(429), 429)], ids=["down", "busy"])
async def test_a_relay_tells_of_an_upstream_that_does_not_answer(way, play, code):
    async with nothing_left(), EvilUpstream(play) as evil:
        answer = await WAYS[way](evil, "openai-chat", "HIDE", "anthropic", True)
    assert (answer.status, answer.json()["type"]) == (code, "error")


async def test_a_relay_bridges_the_silence_before_the_headers():
    async def handler(request):
        async with ClientSession() as session:
            source, names = given(evil, session, "openai-chat", "anthropic")
            return await relay(request, source, **{**names, "delivery": Delivery(keep_alive_s=0.1)})

    async with EvilUpstream(Script((Hang(),))) as evil, serving(answering(handler)) as port:
        async with RawClient(f"http://127.0.0.1:{port}") as client:
            await client.send("POST", "/")
            await client.read_until(b"event: ping")
            client.leave("fin")
        await (await evil.request()).left()


# -- WebSockets --------------------------------------------------------------------------------------------------------


async def by_socket(stage):
    """The messages of a response over a WebSocket, as one text."""
    received = []
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"), stages=[STAGES[stage]], max_sockets=1)
        async with (
            serving(app) as port,
            ClientSession() as session,
            session.ws_connect(f"http://127.0.0.1:{port}/v1/responses") as ws,
        ):
            await ws.send_json({"type": "response.create", **ASKS["openai-responses"][1]})
            while not received or received[-1]["type"] not in {"response.completed", "response.failed", "error"}:
                received.append(await ws.receive_json())
    return received[-1]["type"], orjson.dumps(received)


async def test_messages_of_a_websocket_have_passed_the_stages():
    last, text = await by_socket("HIDE")
    assert (last, b"Oslo" in text, b"there" in text) == ("response.completed", False, True)
    last, text = await by_socket("raises_late")
    assert (last == "response.completed", b"secret text" in text) == (False, False)


# -- kept responses ----------------------------------------------------------------------------------------------------


async def test_what_is_kept_for_a_client_that_resumes_has_passed_the_stages():
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"), stages=[HIDE])
        add_resuming(app, Resuming(store=MemoryStore()))
        path, body = asked("anthropic", stream=True)
        async with serving(app) as port:
            url = f"http://127.0.0.1:{port}"
            answer = await ask(url, path, body=body, headers={"x-streamkit-resumable": "1"})
            again = await ask(url, answer.headers["location"], method="GET")
    assert (again.status, again.body.count(b"event: message_stop")) == (200, 1)
    assert b"Oslo" not in again.body
    assert b"there" in again.body
