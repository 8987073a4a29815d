"""What readers of requests take alike: the order of members, content, media, tools."""

from __future__ import annotations

import orjson
import pytest

from streamkit.conversation.messages import Media, Options, Text, Tool, Turn
from streamkit.dialects.bodies.request_reader import (
    RequestReader,
    content_of,
    function_tool,
    media_at,
    server_tool,
    unknown_part,
)
from streamkit.dialects.members.fields import Fields, fields_of
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport


def fields(**members: object) -> Fields:
    return fields_of(orjson.dumps(members))


class Reader(RequestReader):
    dialect = "cohere"

    def read_turns(self, fields: Fields) -> None:
        self.turns.append(Turn("user", [Text(fields.needed("prompt"))]))
        self.references.append(("prompt", "send it whole"))

    def tool(self, tool: Fields) -> Tool:
        return function_tool(tool, tool)

    def options(self, fields: Fields) -> Options:
        return Options(temperature=fields.number("temperature"))


def test_each_member_is_taken_and_the_rest_is_the_dialects_own():
    asked = fields(model="m", stream=True, prompt="hi", tools=[{"name": "f"}], temperature=1, colour="red")
    request = Reader.decode_request(asked, StreamReport())
    assert (request.dialect, request.model, request.stream, request.stream_usage) == ("cohere", "m", True, True)
    assert (request.turns, request.tools) == ([Turn("user", [Text("hi")])], [Tool("f")])
    assert (request.options, request.tool_choice, request.extras) == (Options(temperature=1), None, {"colour": "red"})
    assert request.stored == [("prompt", "send it whole")]


def test_a_content_is_a_text_or_a_list_of_parts():
    def read(part: Fields) -> Text:
        return Text(part.needed("text"))

    assert content_of(fields(content="hi"), read) == [Text("hi")]
    assert content_of(fields(content=""), read) == []
    assert content_of(fields(output=[{"text": "a"}, {"text": "b"}]), read, "output") == [Text("a"), Text("b")]


def test_an_unknown_part_is_kept_whole():
    assert unknown_part("v", "smell", fields(strength=3)) == Aside(
        "v", "unknown_event", "content.smell", {"type": "smell", "strength": 3}
    )


def test_media_stand_somewhere_else_or_in_their_address():
    assert media_at("image", fields(url="https://x/y.png"), "url") == Media("image", url="https://x/y.png", place="")
    assert media_at("image", fields(url="data:image/png;base64,AAAA"), "url") == Media("image", "image/png", "AAAA")
    with pytest.raises(BadRequest, match="base64"):
        media_at("image", fields(url="data:image/png,text"), "url")


@pytest.mark.parametrize(
    ("raw", "name", "called"), [({}, None, "t"), ({"name": "n"}, None, "n"), ({"name": "n"}, "x", "x")]
)
def test_a_tool_of_the_providers_is_called_what_it_says_or_what_its_type_is(raw, name, called):
    assert server_tool("t", fields(**raw), name) == Tool(called, kind="server", raw={"type": "t", **raw})


def test_a_function_keeps_what_nobody_reads_of_it():
    tool = fields(type="function", function={"name": "look", "description": "looks", "parameters": {}, "strict": True})
    read = function_tool(tool.needed_fields("function"), tool)
    assert (read.name, read.description, read.parameters) == ("look", "looks", {})
    assert read.extras == {"type": "function", "function": {"strict": True}}
