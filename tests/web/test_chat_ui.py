"""``chat_ui``: what ``useChat`` asks and is answered, with its own reader where npm has it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
import pytest
from aiohttp import ClientSession, web

from streamkit.conversation.messages import Choice, Response, Text, Tool, ToolCall, ToolResult
from streamkit.conversation.response_events import response_events
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import Verdict
from streamkit.report import StreamReport
from streamkit.resume import MemoryStore
from streamkit.translation.bodies import decode_request
from streamkit.web import chat_ui, setup
from streamkit.web.resume import Resuming, add_resuming
from tests.clients.test_ai_sdk_ui import asked
from tests.gateway.running import upstream_at
from tests.web.evil import EvilUpstream, Play, Received, Script, Until
from tests.web.faults import as_asked, error_midstream, failure, good, status, truncated_chunked
from tests.web.raw_client import ask
from tests.web.serving import eventually, serving

QUESTION: Final = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "How is Zürich?"}]}
LOOK: Final = Tool("look", "Looks.", {"type": "object", "properties": {"city": {"type": "string"}}})
GIVEN: Final = {"city": "Zürich"}
CALL: Final = ToolCall(0, "call_1", "look", json.dumps(GIVEN), verdict=Verdict("complete"))


def application(evil: EvilUpstream, dialect: str = "openai-chat", **options: Any) -> web.Application:
    app = web.Application()
    chat_ui(app, upstream_at(evil, dialect), **{"model": "there", **options})
    return app


async def post(port: int, *messages: Any, path: str = "/api/chat", **more: Any) -> Any:
    body = orjson.dumps({"id": "c", "trigger": "submit-message", "messages": [*messages], **more})
    return await ask(f"http://127.0.0.1:{port}", path, body=body)


def chunks(body: bytes) -> list[dict[str, Any]]:
    frames = [frame.removeprefix("data: ") for frame in body.decode().split("\n\n") if frame.startswith("data: ")]
    return [json.loads(frame) for frame in frames if frame != "[DONE]"]


def joined(body: bytes) -> list[dict[str, Any]]:
    """The chunks, with deltas of one part joined that came one after the other: reads of an upstream divide them."""
    found: list[dict[str, Any]] = []
    for chunk in chunks(body):
        if chunk["type"].endswith("-delta") and found[-1]["type"] == chunk["type"]:
            (name,) = {name for name in chunk if name.lower().endswith("delta")}
            found[-1][name] += chunk[name]
        else:
            found.append(chunk)
    return found


async def test_the_upstream_is_asked_with_what_the_application_says():
    async with (
        EvilUpstream(as_asked("openai-chat")) as evil,
        serving(application(evil, system="Be brief.", tools=[LOOK])) as port,
    ):
        answer = await post(
            port, QUESTION, model="theirs", system="Be rude.", tools={"rm": {}}, callSettings={"maxTokens": 9}
        )
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
        assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert chunks(answer.body)[0] == {"type": "start"}
        assert chunks(answer.body)[-1]["type"] == "finish"
        sent = evil.requests[0].json()
        assert (sent["model"], "max_tokens" in sent) == ("there", False)
        assert [tool["function"]["name"] for tool in sent["tools"]] == ["look"]
        said = [(message["role"], message["content"]) for message in sent["messages"]]
        assert said == [("system", "Be brief."), ("user", "How is Zürich?")]


async def test_so_is_an_upstream_of_the_same_dialect():
    async with EvilUpstream(good("ai-sdk")) as evil, serving(application(evil, "ai-sdk", system="Be brief.")) as port:
        await post(port, QUESTION, system="Be rude.")
        assert b"Be rude." not in evil.requests[0].body
        assert "Be brief." in evil.requests[0].json()["messages"][0]["parts"][0]["text"]


async def test_a_message_of_the_system_is_refused_with_a_sentence():
    async with EvilUpstream(status(500)) as evil, serving(application(evil)) as port:
        answer = await post(port, {**QUESTION, "role": "system"}, QUESTION)
        assert (answer.status, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
        assert answer.body == b"messages: system messages from clients are not accepted"
        assert not evil.requests


async def test_an_error_before_the_stream_is_a_sentence():
    async with EvilUpstream(status(503)) as evil, serving(application(evil)) as port:
        answer = await post(port, QUESTION)
        assert (answer.status, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert answer.body.decode() == failure(503, "no").message


@pytest.mark.parametrize("script", [truncated_chunked("openai-chat"), error_midstream("openai-chat")])
async def test_an_answer_that_breaks_off_ends_with_an_error(script):
    async with EvilUpstream(script) as evil, serving(application(evil)) as port:
        answer = await post(port, QUESTION)
        kinds = [chunk["type"] for chunk in chunks(answer.body)]
        assert kinds[-1] == "error"
        assert "finish" not in kinds
        assert b"[DONE]" not in answer.body


async def test_there_is_nothing_to_resume_and_the_path_is_the_applications():
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app = application(evil, path="/chats")
        setup(app, upstream_at(evil, "openai-chat"), clients=["ollama"])
        async with serving(app) as port:
            resumed = await ask(f"http://127.0.0.1:{port}", "/chats/c%207/stream", method="GET")
            assert (resumed.status, resumed.body) == (204, b"")
            assert (await post(port, QUESTION, path="/chats")).status == 200
            assert (await post(port, QUESTION, path="/api/chat")).status == 400  # Ollama's, which has other messages


# -- answers that go on without their page -----------------------------------------------------------------------------


def keeping(evil: EvilUpstream, *, key: bool = False, **options: Any) -> tuple[web.Application, MemoryStore]:
    app, store = application(evil, **options), MemoryStore()
    named = {"key": lambda request: request.headers.get("x-user", "")} if key else {}
    add_resuming(app, Resuming(store=store, **named))
    return app, store


@asynccontextmanager
async def kept(
    *plays: Play, handler_cancellation: bool = False, **options: Any
) -> AsyncIterator[tuple[int, EvilUpstream, MemoryStore]]:
    async with EvilUpstream(*plays) as evil:
        app, store = keeping(evil, **options)
        async with serving(app, handler_cancellation=handler_cancellation) as port:
            yield port, evil, store


async def again(port: int, chat: str = "c", method: str = "GET", user: str = "") -> Any:
    path = f"/api/chat/{chat}/stream"
    return await ask(f"http://127.0.0.1:{port}", path, method=method, headers={"x-user": user} if user else {})


async def nothing(port: int, chat: str = "c", user: str = "") -> None:
    """Wait until there is nothing to go on with, which is known a moment after a client has the end."""
    async with asyncio.timeout(5):
        while (await again(port, chat, user=user)).status != 204:  # noqa: ASYNC110 - a server tells nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def left(port: int, evil: EvilUpstream, number: int = 0, **headers: str) -> AsyncIterator[None]:
    """A page that asked, and is gone by the end of the block."""
    body = orjson.dumps({"id": "c", "trigger": "submit-message", "messages": [QUESTION]})
    async with ClientSession() as session:
        asking = asyncio.create_task(session.post(f"http://127.0.0.1:{port}/api/chat", data=body, headers=headers))
        await evil.request(number)
        yield
        if asking.done():
            asking.result().close()
        asking.cancel()
        await asyncio.wait({asking})


def held(go: asyncio.Event, *, before: int) -> Script:
    """An answer that waits behind so many pieces."""
    steps = good("openai-chat").steps
    return Script((*steps[:before], Until(go), *steps[before:]))


@pytest.mark.parametrize("cancellation", [False, True])
@pytest.mark.parametrize("before", [0, 6], ids=["before the model spoke", "within"])
async def test_a_page_that_is_loaded_again_gets_the_whole_answer(before, cancellation):
    go = asyncio.Event()
    async with kept(held(go, before=before), good("openai-chat"), handler_cancellation=cancellation) as (
        port,
        evil,
        store,
    ):
        async with left(port, evil):
            await asyncio.sleep(0.05)
        resuming = asyncio.create_task(again(port))
        await eventually(lambda: any(log.readers for log in store._logs.values()))
        go.set()
        resumed = await resuming
        assert resumed.status == 200
        assert resumed.headers["x-vercel-ai-ui-message-stream"] == "v1"
        plain = await post(port, QUESTION, path="/api/chat")
        assert joined(resumed.body)[1:] == joined(plain.body)[1:]  # the answers' ids aside
        await nothing(port)  # both were got to their ends


async def test_a_failure_that_nobody_heard_of_is_in_the_stream():
    go = asyncio.Event()
    async with kept(Script((Until(go), *status(503).steps))) as (port, evil, _):
        async with left(port, evil):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)  # until it is known that the page is gone
        go.set()
        resumed = await again(port)
        assert resumed.status == 200
        assert [chunk["type"] for chunk in chunks(resumed.body)][-1] == "error"


async def test_there_is_nothing_to_go_on_with():
    async with kept(status(503), good("openai-chat"), held(asyncio.Event(), before=6), key=True) as (port, evil, store):
        assert (await again(port)).status == 204  # no answer
        assert (await post(port, QUESTION)).status == 503
        assert (await again(port)).status == 204  # a failure that was told
        assert (await post(port, QUESTION)).status == 200
        await nothing(port)  # a whole answer that was read
        async with left(port, evil, 2):
            pass
        assert (await again(port, "d")).status == 204  # another chat
        assert (await again(port, user="eve")).status == 204  # another's chat of that name
        for log in list(store._logs.values()):
            store.forget(log)
        assert (await again(port)).status == 204  # not any more


async def test_a_chat_of_the_same_name_is_another_clients():
    async with kept(held(asyncio.Event(), before=6), good("openai-chat"), key=True) as (port, evil, store):
        async with left(port, evil, **{"x-user": "ann"}):
            pass
        body = orjson.dumps({"id": "c", "messages": [QUESTION]})
        assert (await ask(f"http://127.0.0.1:{port}", "/api/chat", body=body, headers={"x-user": "bob"})).status == 200
        assert evil.requests[0].left_at is None
        await nothing(port, user="bob")
        await nothing(port)
        assert (await again(port, method="DELETE", user="bob")).status == 204
        assert store.live == 1  # ann's


async def test_an_answer_that_ended_without_its_page_is_kept_for_it():
    go = asyncio.Event()
    async with kept(held(go, before=6)) as (port, evil, store):
        async with left(port, evil):
            pass
        go.set()
        await eventually(lambda: store.kept == 1)
        assert chunks((await again(port)).body)[-1]["type"] == "finish"
        await nothing(port)


async def test_a_stop_is_a_request_of_its_own():
    async with kept(held(asyncio.Event(), before=6)) as (port, evil, _):
        async with left(port, evil):
            pass
        assert (await again(port, method="DELETE")).status == 204
        await evil.requests[0].left()
        assert (await again(port)).status == 204
        assert (await again(port, method="DELETE")).status == 204


async def test_the_next_message_stops_the_answer_before():
    async with kept(held(asyncio.Event(), before=6), good("openai-chat")) as (port, evil, _):
        async with left(port, evil):
            pass
        newest = await post(port, QUESTION)
        await evil.requests[0].left()
        assert chunks(newest.body)[-1]["type"] == "finish"


@pytest.mark.parametrize("options", [{"resumable": "never"}, {"resumable": "asked"}])
async def test_an_application_can_say_which_answers_go_on(options):
    async with kept(held(asyncio.Event(), before=6), **options) as (port, evil, _):
        async with left(port, evil):
            pass
        await evil.requests[0].left()
        assert (await again(port)).status == 204


# -- the SDK's own reader ----------------------------------------------------------------------------------------------


def speaking(*parts: Any, stop: Any) -> Script:
    """An upstream's answer with these parts."""
    said = Response("openai-chat", id="r", model="m", choices=[Choice(parts=[*parts], stop_reason=stop)], clean=True)
    encoder = DIALECTS["openai-chat"].encoder(Encoding(), StreamReport())
    pieces = [*(encoder.feed([event]) for event in response_events(said)), encoder.finish()]
    return good("openai-chat", [piece for piece in pieces if piece])


def calling(request: Received) -> Script:
    """A call, and once it has a result the last word."""
    if any(message["role"] == "tool" for message in request.json()["messages"]):
        return speaking(Text("It is green."), stop="stop")
    return speaking(Text("Let me look."), CALL, stop="tool_calls")


async def looped(script: Script | Callable[[Received], Script], version: int) -> tuple[Any, list[Received]]:
    """What ``useChat`` makes of a question to that upstream."""
    async with EvilUpstream(script) as evil, serving(application(evil, tools=[LOOK])) as port:
        line = {"url": f"http://127.0.0.1:{port}/api/chat", "text": "How is Zürich?", "result": "grün"}
        (seen,) = await asyncio.to_thread(asked, version, [orjson.dumps(line)], "loops")
        return seen, list(evil.requests)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", [7, 6])
async def test_a_tool_runs_and_its_result_is_answered(version):
    seen, requests = await looped(calling, version)
    assert (seen["status"], seen["failure"], seen["requests"]) == ("ready", None, 2)
    assert (seen["ran"], seen["resumed"]) == ([GIVEN], "ready")
    _, said = seen["messages"]
    assert [part["text"] for part in said["parts"] if part["type"] == "text"] == ["Let me look.", "It is green."]
    second = decode_request(requests[1].body, "openai-chat")
    assert [part.text for turn in second.turns for part in turn.parts if isinstance(part, ToolResult)] == ["grün"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", [7, 6])
async def test_what_breaks_off_is_shown_and_runs_nothing(version):
    for script in truncated_chunked("openai-chat"), error_midstream("openai-chat"):
        seen, requests = await looped(script, version)
        assert (seen["status"], seen["ran"], len(requests)) == ("error", [], 1)
        assert seen["failure"]


@pytest.mark.timeout(240)
async def test_an_error_over_http_is_shown_as_its_sentence():
    seen, _ = await looped(status(503), 7)
    assert (seen["status"], seen["failure"]) == ("error", failure(503, "no").message)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("version", "keeps"), [(7, False), (7, True), (6, True)])
async def test_a_page_that_comes_back_shows_the_whole_answer_once(version, keeps):
    go = asyncio.Event()
    whole = speaking(Text("Let me look. It is green."), stop="stop").steps
    rest = speaking(Text(" And it is cold."), stop="stop").steps
    async with kept(Script((*whole[:-3], Until(go), *rest[-4:]))) as (port, _evil, store):
        line = orjson.dumps({"url": f"http://127.0.0.1:{port}/api/chat", "text": "How?", "keeps": keeps})
        asking = asyncio.create_task(asyncio.to_thread(asked, version, [line], "resumes"))
        await eventually(lambda: any(log.readers for log in store._logs.values()), within_s=100)
        go.set()
        (seen,) = await asking
    assert (seen["status"], seen["failure"], seen["statuses"]) == ("ready", None, [200, 200])
    assert "And it is cold." not in str(seen["before"])
    *_, answer = seen["messages"]
    assert [message["role"] for message in seen["messages"]] == (["user", "assistant"] if keeps else ["assistant"])
    assert [part["text"] for part in answer["parts"] if part["type"] == "text"] == [
        "Let me look. It is green. And it is cold."
    ]
