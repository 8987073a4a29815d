"""``useChat`` of the AI SDK 7 and 6 runs a loop with a tool through the gateway, from every upstream."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest

from streamkit.conversation.messages import Text, ToolCall, ToolResult
from streamkit.events import Verdict
from tests.clients.test_ai_sdk_ui import asked
from tests.gateway.clients.in_thread import CLIENT_KEY, UPSTREAMS, GatewayThread, listed
from tests.gateway.clients.test_tool_loops import FIRST, LAST, asked_for, parts_of, texts_of, two_legs

QUESTION, RESULT = "How is Zürich?", "grün"
GIVEN: Final = {"city": "Zürich"}


def loop(served: GatewayThread, model: str, key: str = CLIENT_KEY) -> bytes:
    url = f"{served.url}/v1/ai-sdk/{model}"
    return orjson.dumps({"url": url, "headers": {"authorization": f"Bearer {key}"}, "text": QUESTION, "result": RESULT})


def texts(message: dict[str, Any]) -> list[str]:
    return [part["text"] for part in message["parts"] if part["type"] == "text"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", [7, 6])
def test_a_tool_loop_from_every_upstream(served: GatewayThread, version: int):
    call = ToolCall(0, "call_1", "get_weather", orjson.dumps(GIVEN).decode(), verdict=Verdict("complete"))
    models = {name: two_legs(served, name, stream=True, parts=[Text(FIRST), call]) for name in UPSTREAMS}
    found = asked(version, [loop(served, model) for model in models.values()], "loops")
    for came, (upstream, model) in zip(found, models.items(), strict=True):
        assert (came["status"], came["failure"], came["ran"]) == ("ready", None, [GIVEN]), upstream
        _, said = came["messages"]
        assert texts(said) == [FIRST, LAST], upstream
        assert [part["output"] for part in said["parts"] if part["type"] == "tool-get_weather"] == [RESULT], upstream
        _, second = asked_for(served, model, upstream)
        assert (texts_of(second, "user"), texts_of(second, "assistant")) == (QUESTION, FIRST), upstream
        (made,), (told,) = parts_of(second, ToolCall), parts_of(second, ToolResult)
        assert (made.name, told.call_id, told.text) == ("get_weather", made.id, RESULT), upstream


@pytest.mark.timeout(240)
def test_what_is_refused_is_shown(served: GatewayThread):
    nobody, wrong = asked(7, [loop(served, "nobody"), loop(served, listed("anthropic"), "wrong")], "loops")
    assert (nobody["status"], wrong["status"]) == ("error", "error")
    assert "the model 'nobody' does not exist" in nobody["failure"]
    assert "key" in wrong["failure"]
