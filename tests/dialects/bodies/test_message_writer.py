"""Results are messages right behind their calls, but where a request stays in its dialect."""

from __future__ import annotations

import orjson
import pytest

from streamkit import StreamReport, encode_request
from streamkit.conversation.messages import Request, Text, ToolCall, ToolResult, Turn

CALLED = Turn("assistant", [ToolCall(0, "a", "look", "{}")])
LATE = [CALLED, Turn("user", [Text("wait"), ToolResult("a", [Text("seen")])])]


@pytest.mark.parametrize("dialect", ["openai-chat", "cohere", "ollama", "mistral"])
def test_a_result_behind_words_moves_to_its_call(dialect):
    report = StreamReport()
    body = orjson.loads(encode_request(Request("anthropic", "m", LATE), dialect, report=report))
    roles = [message["role"] for message in body["messages"]]
    assert roles[:2] == ["assistant", "tool"]
    assert report.repairs["result_moved"] == 1


def test_a_name_that_has_no_place_is_lost():
    report = StreamReport()
    encode_request(Request("openai-chat", "m", [Turn("user", [Text("hi")], name="Ann")]), "cohere", report=report)
    assert report.losses == {"turn_name": 1}
