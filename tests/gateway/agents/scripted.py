"""An upstream of any dialect with a model that calls one tool, reads its result, and says what it found there.

What it says depends on what it is asked, since agents ask more than their one question: for a title, for a number of tokens,
for the models. A request that ends with the tool's result is answered with what was found, one that offers the tool with a
call, every other one with a line of text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from streamkit.conversation.messages import Part, Request, Text, Tool, ToolCall, ToolResult
from streamkit.events import Verdict
from streamkit.translation.bodies import decode_request
from tests.gateway.clients.test_tool_loops import Cut, script
from tests.web.evil import Received, Script
from tests.web.faults import asks_for_stream, status, whole

#: The tool's result has one, and nothing else that an agent sends.
WORD: Final = re.compile(r"word-[0-9a-f]{12}")
LOOKING: Final = "Let me look."
ASIDE: Final = "A short line."
CALL_ID: Final = "call_1"
#: Answers to those who count tokens, in every dialect that can.
COUNTED: Final = {"input_tokens": 9, "totalTokens": 9}


def saying(word: str) -> str:
    """The model's last answer. The word is turned round, so that an agent that shows the tool's result has not said it."""
    return f"I have seen: {word[::-1]}."


@define
class ScriptedModel:
    """The plays of an upstream: ``PromptUpstream(model.play)``. What it was asked is kept, decoded."""

    dialect: str
    tool: Callable[[Tool], bool]  #: whether it calls this one of the tools that it is offered
    arguments: dict[str, Any] = field(factory=dict)
    offers: list[Request] = field(factory=list)  #: the requests that it answered with a call
    results: list[Request] = field(factory=list)  #: those that it answered with what it found
    called: str = ""  #: the tool, by the name that it had upstream
    cut: Cut = ()  #: its streams with a call lack these events

    def play(self, received: Received) -> Script:
        if received.method == "GET":
            return status(404, self.dialect, message="no such page")
        if "count" in received.path.lower():
            return whole(self.dialect, json.dumps(COUNTED).encode())
        request = decode_request(received.body, self.dialect)
        parts, stop = self._answer(request)
        stream, cut = asks_for_stream(received, self.dialect), self.cut if stop == "tool_calls" else ()
        return script(self.dialect, stream=stream, parts=parts, stop=stop, cut=cut)

    def _answer(self, request: Request) -> tuple[list[Part], str]:
        if word := word_in(request):
            self.results.append(request)
            return [Text(saying(word))], "stop"
        if tool := next(filter(self.tool, request.tools), None):
            self.offers.append(request)
            self.called = tool.name
            arguments, verdict = json.dumps(self.arguments), Verdict("complete")
            call = ToolCall(0, CALL_ID, tool.name, arguments, verdict=verdict, qualified=tool.qualified)
            return [Text(LOOKING), call], "tool_calls"
        return [Text(ASIDE)], "stop"


def word_in(request: Request) -> str:
    """The word in the result of a tool; empty if none has one."""
    results = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolResult)]
    found = [match[0] for result in results if (match := WORD.search(result.text))]
    return found[-1] if found else ""
