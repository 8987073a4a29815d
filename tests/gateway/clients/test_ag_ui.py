"""CopilotKit, over both versions of ``@ag-ui/client``, runs a loop with a tool through the gateway, from every upstream."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest

from streamkit.conversation.messages import Text, ToolCall, ToolResult
from streamkit.events import Verdict
from tests.clients.test_ag_ui_readers import VERSIONS, judged
from tests.gateway.clients.in_thread import CLIENT_KEY, UPSTREAMS, GatewayThread, listed
from tests.gateway.clients.test_tool_loops import FIRST, LAST, asked_for, parts_of, texts_of, two_legs

QUESTION, RESULT = "How is Zürich?", "grün"
TOOL: Final = {"name": "get_weather", "result": RESULT}
GIVEN: Final = {"city": "Zürich"}


def loop(served: GatewayThread, model: str, version: str) -> dict[str, Any]:
    url = f"{served.url}/v1/ag-ui/{model}"
    return {"url": url, "key": CLIENT_KEY, "version": version, "text": QUESTION, "tool": TOOL}


@pytest.mark.timeout(240)
def test_a_tool_loop_from_every_upstream(served: GatewayThread):
    call = ToolCall(0, "call_1", "get_weather", orjson.dumps(GIVEN).decode(), verdict=Verdict("complete"))
    ways = [(upstream, version) for upstream in UPSTREAMS for version in VERSIONS]
    models = [two_legs(served, upstream, stream=True, parts=[Text(FIRST), call]) for upstream, _ in ways]
    scenarios = [loop(served, model, version) for model, (_, version) in zip(models, ways, strict=True)]
    found = judged(map(orjson.dumps, scenarios), "loops")
    for came, model, (upstream, version) in zip(found, models, ways, strict=True):
        assert (came["errors"], came["ran"]) == ([], [GIVEN]), (upstream, version)
        if upstream != "ag-ui":  # whose frames pass as they came
            assert came["runs"] == [["thread-7", True]] * 2, (upstream, version)  # as the request named them
        _, said, result, last = came["messages"]
        assert (said["content"], result["content"], last["content"]) == (FIRST, RESULT, LAST), (upstream, version)
        _, second = asked_for(served, model, upstream)
        assert (texts_of(second, "user"), texts_of(second, "assistant")) == (QUESTION, FIRST), (upstream, version)
        (made,), (told,) = parts_of(second, ToolCall), parts_of(second, ToolResult)
        assert (made.name, told.call_id, told.text) == ("get_weather", made.id, RESULT), (upstream, version)


def test_what_is_refused_is_shown(served: GatewayThread):
    scenarios = [loop(served, "nobody", "1.0.0"), loop(served, listed("anthropic"), "1.0.0") | {"key": "wrong"}]
    nobody, wrong = judged(map(orjson.dumps, scenarios), "loops")
    assert "HTTP 404" in nobody["errors"][0]
    assert "the model 'nobody' does not exist" in nobody["errors"][0]
    assert "HTTP 401" in wrong["errors"][0]
