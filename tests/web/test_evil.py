"""The harness itself: the evil upstream does what it is told and sees what its clients do, in every dialect."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from streamkit.dialects import DIALECTS
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response
from streamkit.web.source import TimedSource, Timeouts
from tests.laws.running import read
from tests.web.evil import Delay, EvilUpstream, Fin, Rst, Script, Send, Until
from tests.web.faults import (
    CALL,
    END_OF_CHUNKS,
    FAULTS,
    TEXT,
    WHY,
    chunk,
    error_first,
    error_midstream,
    good,
    head,
    silence_before_headers,
    silence_midstream,
    status,
    whole,
)
from tests.web.leaks import in_use
from tests.web.nginx import nginx
from tests.web.raw_client import RawClient, ask
from tests.whole_answers import ANSWERING_WHOLE

pytestmark = pytest.mark.usefixtures("no_leaks")
EACH = pytest.mark.parametrize("dialect", DIALECTS)


# -- sound answers -----------------------------------------------------------------------------------------------------


@EACH
async def test_a_good_answer_says_what_is_said_in_the_dialect(dialect):
    async with EvilUpstream(good(dialect), whole(dialect)) as upstream:
        answer, at_once = [await ask(upstream.url, "/", body=b"{}") for _ in range(2)]
    assert (answer.status, answer.end) == (200, "complete")
    assert answer.headers["content-type"] == DIALECTS[dialect].media_type
    found = read(dialect, [bytes(answer.body)])
    assert (found.text(), [(call.name, call.arguments) for call in found.calls]) == (TEXT, [CALL])
    assert found.clean
    assert not found.report.repairs
    if dialect in ANSWERING_WHOLE:
        response = decode_response(bytes(at_once.body), dialect)
        assert (response.text, [(call.name, call.arguments) for call in response.tool_calls]) == (TEXT, [CALL])
        assert response.clean


# -- what is played when, and what is remembered -----------------------------------------------------------------------


async def test_a_request_without_a_script_is_an_error_of_the_test():
    with pytest.raises(ExceptionGroup) as caught:
        async with EvilUpstream(paths={"/a": [status(401)]}) as upstream:
            await ask(upstream.url, "/b")
    assert "no script for POST /b" in str(caught.value.exceptions[0])


@pytest.mark.parametrize("by", ["fin", "rst"])
@pytest.mark.parametrize(
    "script", [silence_before_headers(), silence_midstream("openai-chat"), good("anthropic"), Script((Delay(3600),))]
)
async def test_it_sees_its_client_leave_and_how(by, script):
    async with EvilUpstream(script) as upstream, RawClient(upstream.url) as client:
        await client.send("POST", "/")
        request = await upstream.request()
        before = asyncio.get_running_loop().time()
        client.leave(by)
        assert await request.left() >= before
        assert request.left_by == by


async def test_what_does_not_come_is_waited_for_a_while_only(monkeypatch):
    monkeypatch.setattr("tests.web.evil.PATIENCE_S", 0.02)
    async with EvilUpstream(silence_before_headers()) as upstream:
        with pytest.raises(AssertionError, match="request 0 never came; there were 0"):
            await upstream.request()
        async with RawClient(upstream.url) as client:
            await client.send("GET", "/x")
            request = await upstream.request()
            with pytest.raises(AssertionError, match="the client of GET /x never left"):
                await request.left()


# -- faults ------------------------------------------------------------------------------------------------------------


@EACH
async def test_an_error_comes_first_or_in_the_middle(dialect):
    found = []
    for script in (error_first(dialect), error_midstream(dialect)):
        async with EvilUpstream(script) as upstream:
            answer = await ask(upstream.url, "/")
        assert (answer.status, answer.end) == (200, "complete")
        found.append(read(dialect, [bytes(answer.body)]))
    first, middle = found
    assert first.text() == ""
    assert middle.text()
    assert TEXT.startswith(middle.text())
    assert WHY in first.error
    assert WHY in middle.error
    assert not first.clean
    assert not middle.clean


@EACH
@pytest.mark.parametrize("entire", [False, True], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("name", "end"), [("reset mid-line", "reset"), ("truncated chunked body", "cut"), ("bad gzip", "complete")]
)
async def test_a_broken_answer_breaks_where_it_says(dialect, entire, name, end):
    async with EvilUpstream(FAULTS[name](dialect, whole=entire)) as upstream:
        answer = await ask(upstream.url, "/")
    assert (answer.status, answer.end) == (200, end)
    assert answer.body
    if name == "bad gzip":
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.body.startswith(b"\x1f\x8b")
    elif not entire:
        found = read(dialect, [bytes(answer.body)])
        assert TEXT.startswith(found.text())
        assert found.text()
        assert not found.clean
        assert not answer.body.endswith(b"\n")  # in the middle of a line


@pytest.mark.parametrize("script", [silence_before_headers(), silence_midstream("gemini")])
async def test_silence_lasts(script, monkeypatch):
    monkeypatch.setattr("tests.web.raw_client.PATIENCE_S", 0.05)
    async with EvilUpstream(script) as upstream, RawClient(upstream.url) as client:
        await client.send("GET", "/")
        with pytest.raises(AssertionError, match=r"nothing came for 0\.05 s"):
            await client.read_to_end()


# -- the raw client ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        ((Send(head(headers={"Content-Length": "2"}) + b"ab"),), "complete"),
        ((Send(head(headers={"Transfer-Encoding": "chunked"}) + chunk(b"ab") + END_OF_CHUNKS),), "complete"),
        ((Send(head(204)),), "complete"),
        ((Send(head() + b"ab"), Fin()), "closed"),
        ((Send(head(headers={"Content-Length": "3"}) + b"ab"), Fin()), "cut"),
        ((Send(head(headers={"Transfer-Encoding": "chunked"}) + chunk(b"ab")), Fin()), "cut"),
        ((Send(b"HTTP/1.1 200 O"), Fin()), "cut"),
        ((Send(head(headers={"Content-Length": "3"}) + b"ab"), Rst()), "reset"),
        ((Rst(),), "reset"),
    ],
)
async def test_it_knows_how_the_answer_ended(steps, end):
    async with EvilUpstream(Script(steps)) as upstream:
        answer = await ask(upstream.url, "/", method="GET")
    assert answer.end == end
    assert answer.body == (b"ab" if answer.headers_at and answer.status == 200 else b"")


# -- virtual time, leaks, nginx ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["task", "generator", "timer", "socket"])
async def test_each_kind_of_leak_is_seen(what):
    before = await in_use()
    async with contextlib.AsyncExitStack() as stack:
        match what:
            case "task":
                stack.callback(asyncio.create_task(asyncio.sleep(3600)).cancel)
            case "generator":
                generator = source_of([b"x"])
                stack.push_async_callback(generator.aclose)
                await anext(generator)
            case "timer":
                timed = TimedSource(source_of([b"x", b"y"]), Timeouts(idle_s=3600))
                stack.push_async_callback(timed.aclose)
                await anext(timed)
                await anext(timed)
            case "socket":
                stack.enter_context(socket.socket())
        assert any(what in name.lower() for name in await in_use() - before)
    assert await in_use() == before


@pytest.mark.parametrize("buffering", [True, False])
async def test_nginx_buffers_unless_it_is_told(nginx_program, tmp_path, buffering):
    go = asyncio.Event()
    headers = {} if buffering else {"X-Accel-Buffering": "no"}
    steps = Send(head(headers=headers)), Send(b"first"), Until(go), Send(b"last"), Fin()
    async with EvilUpstream(Script(steps)) as upstream:
        with nginx(nginx_program, upstream.port, tmp_path) as url:
            async with RawClient(url) as client:
                await client.send("GET", "/")
                with pytest.raises(TimeoutError) if buffering else contextlib.nullcontext():
                    async with asyncio.timeout(0.3 if buffering else None):
                        await client.read_until(b"first")
                go.set()
                answer = await client.read_to_end()
                assert (answer.status, answer.body, answer.end) == (200, b"firstlast", "complete")
