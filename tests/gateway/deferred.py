"""300 seeded tools of an office, 50 questions that each need one of them, and a scripted model that looks for it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import orjson
from attrs import frozen

from streamkit.conversation.messages import Choice, Request, Response, Text, ToolCall, ToolResult
from streamkit.conversation.response_events import response_events
from streamkit.dialects import source_named
from streamkit.dialects.profiles import Encoding
from streamkit.events import UsageReported
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments
from streamkit.translation.bodies import decode_request, encode_response
from tests.web.evil import Received, Script
from tests.web.faults import asks_for_stream, good, whole

#: What can be done: the word in the name, the description, and how somebody asks for it.
ACTS: Final = (
    ("list", "Lists all {0}s, page by page.", "Which {0}s are there? List them."),
    ("get", "Reads one {0} by its id.", "What does the {0} with the id {1} say? Read it."),
    ("create", "Makes a new {0}.", "Please create another {0} named {1}."),
    ("update", "Changes fields of a {0}.", "Change the owner of {0} {1} by updating it."),
    ("delete", "Removes a {0} for good.", "{0} {1} is no longer needed, remove it."),
    ("search", "Finds {0}s by a text in them.", "Find a {0} that mentions {1}."),
    ("export", "Writes a {0} to a CSV file.", "I need {0} {1} exported as CSV."),
    ("archive", "Puts a {0} into the archive.", "Archive the {0} {1}, I may want it later."),
    ("share", "Gives somebody else access to a {0}.", "Share {0} {1} with my colleague."),
    ("rename", "Gives a {0} another title.", "Please rename {0} {1}, its title is wrong."),
    ("move", "Moves a {0} into another folder.", "Move the {0} {1} to the folder of last year."),
    ("copy", "Duplicates a {0}.", "Make a copy of {0} {1}."),
    ("approve", "Approves a {0} that waits for a decision.", "I approve {0} {1}, say so."),
    ("schedule", "Schedules a {0} for a later date.", "Schedule {0} {1} for Monday."),
    ("print", "Prints a {0} on paper.", "Print {0} {1} on the printer next door."),
)
THINGS: Final = (
    "invoice", "customer", "order", "calendar event", "email", "contact", "document", "spreadsheet", "ticket", "repository",
    "pull request", "deployment", "database", "employee", "expense report", "shipment", "product", "warehouse", "subscription",
    "survey",
)  # fmt: skip


@frozen
class OfficeTool:
    name: str
    description: str
    schema: Mapping[str, Any]


@frozen
class Question:
    text: str
    name: str  #: of the tool that it needs


def office() -> list[OfficeTool]:
    """300 tools in a seeded order."""
    tools = []
    for act, words, _ in ACTS:
        for thing in THINGS:
            arguments = {
                "id": {"type": "string", "description": f"The id of the {thing}."},
                "options": {
                    "type": "object",
                    "description": "How the result is written.",
                    "properties": {
                        "fields": {"type": "array", "items": {"type": "string"}},
                        "limit": {"type": "integer"},
                    },
                },
            }
            schema = {"type": "object", "properties": arguments, "required": ["id"]}
            tools.append(OfficeTool(f"{thing.replace(' ', '_')}s_{act}", words.format(thing), schema))
    random.Random(43).shuffle(tools)
    return tools


def questions() -> list[Question]:
    """50 questions, each about another tool."""
    dice = random.Random(50)
    pairs = dice.sample([(act, thing) for act in ACTS for thing in THINGS], 50)
    return [
        Question(words.format(thing, dice.randrange(100, 999)), f"{thing.replace(' ', '_')}s_{act}")
        for (act, _, words), thing in pairs
    ]


class Model:
    """A model that needs the tool ``wants``: it calls the tool if it is defined, and otherwise searches for it.

    It searches with the user's question, reasons aloud before, and says what the tool returned in the end.
    """

    def __init__(self, dialect: str, wants: str, *, gives_up: bool = True) -> None:
        self.dialect = dialect
        self.wants = wants
        self.gives_up = gives_up  #: whether it says that there is no tool, after a search that did not find it
        self.requests: list[Request] = []
        self.sizes: list[int] = []  #: of the requests in bytes

    def __call__(self, received: Received) -> Script:
        request = decode_request(received.body, self.dialect)
        self.requests.append(request)
        self.sizes.append(len(received.body))
        response = self.answer(request)
        dialect = source_named(self.dialect)[0]
        if not asks_for_stream(received, self.dialect):
            return whole(self.dialect, encode_response(response, self.dialect))
        encoder = dialect.encoder(Encoding(), StreamReport())
        chunks = [encoder.feed([event]) for event in response_events(response)]
        return good(self.dialect, [chunk for chunk in chunks if chunk])

    def answer(self, request: Request) -> Response:
        last = request.turns[-1]
        results = [part for part in last.parts if isinstance(part, ToolResult)]
        names = {tool.name for tool in request.tools}
        called = {part.id: part.name for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)}
        asked = next(part.text for part in request.turns[-1 if not results else 0].parts if isinstance(part, Text))
        if results and called.get(results[-1].call_id) == self.wants:
            return self._says(Text(f"It says: {results[-1].text}"), reason="stop")
        if self.wants in names:
            return self._says(Text("I can do that."), self._call("c_" + self.wants, self.wants, {"id": "17"}))
        if results and self.gives_up:
            return self._says(Text("There is no tool for that."), reason="stop")
        number = len(self.requests)
        return self._says(Text("I look for a tool. "), self._call(f"s{number}", "tool_search", {"query": asked}))

    def _call(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        text = orjson.dumps(arguments).decode()
        return ToolCall(0, call_id, name, text, verdict=check_arguments(text))

    def _says(self, *parts: Any, reason: Any = "tool_calls") -> Response:
        choice = Choice(parts=[*parts], stop_reason=reason)
        usage = UsageReported(input_total=100, output_total=10, total=110)
        number = len(self.requests)
        return Response(self.dialect, id=f"r{number}", model="m", created=1, choices=[choice], usage=usage, clean=True)
