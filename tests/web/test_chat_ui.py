"""``chat_ui``: what ``useChat`` asks and is answered, with its own reader where npm has it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import orjson
import pytest
from aiohttp import web

from streamkit.conversation.messages import Choice, Response, Text, Tool, ToolCall, ToolResult
from streamkit.conversation.replay import replay
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import Verdict
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request
from streamkit.web import chat_ui, setup
from tests.clients.test_ai_sdk_ui import asked
from tests.gateway.running import upstream_at
from tests.web.evil import EvilUpstream, Received, Script
from tests.web.faults import as_asked, error_midstream, failure, good, status, truncated_chunked
from tests.web.raw_client import ask
from tests.web.serving import serving

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
        assert answer.body == b"messages: no message of the system is taken from a client"
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


# -- the SDK's own reader ----------------------------------------------------------------------------------------------


def speaking(*parts: Any, stop: Any) -> Script:
    """An upstream's answer with these parts."""
    said = Response("openai-chat", id="r", model="m", choices=[Choice(parts=[*parts], stop_reason=stop)], clean=True)
    encoder = DIALECTS["openai-chat"].encoder(Encoding(), StreamReport())
    pieces = [*(encoder.feed([event]) for event in replay(said)), encoder.finish()]
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
