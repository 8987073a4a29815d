"""What readers of requests take alike: the order of members, content, media, tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson
import pytest
from attrs import evolve
from attrs import fields as members_of

from streamkit.conversation.messages import Media, Options, Text, Thinking, Tool, Turn, Unreadable
from streamkit.dialects.members.fields import (
    READERS,
    Fields,
    RequestReader,
    content_of,
    fields_of,
    function_tool,
    image_of,
    media_at,
    read_options,
    server_tool,
    unknown_part,
)
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport

OPTIONS = {"max_tokens": "num_predict", "top_p": "p", "stop": "stops", "logprobs": "logprobs", "user": "user"}


def fields(**members: object) -> Fields:
    return fields_of(orjson.dumps(members))


WHOLE = Unreadable("a prompt", "send it whole")


class Reader(RequestReader):
    dialect = "cohere"
    stores: ClassVar[Mapping[str, Any]] = {"prompt": WHOLE}

    def read_turns(self, fields: Fields) -> None:
        self.turns.append(Turn("user", [Text(fields.needed("prompt"))]))

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
    assert request.unreadable == [evolve(WHOLE, path="prompt", reader="cohere")]


def test_a_content_is_a_text_or_a_list_of_parts():
    def read(part: Fields) -> Text:
        return Text(part.needed("text"))

    assert content_of(fields(content="hi"), read) == [Text("hi")]
    assert content_of(fields(content=""), read) == []
    assert content_of(fields(content=[{"text": "a"}, {"text": "b"}]), read) == [Text("a"), Text("b")]


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


def test_each_option_is_read_by_its_name_in_the_dialect():
    body = fields(num_predict=5, p=0.5, stops=["a", "b"], logprobs=True, user="me", seed=7)
    assert read_options(body, OPTIONS) == Options(max_tokens=5, top_p=0.5, stop=("a", "b"), logprobs=True, user="me")
    assert body.rest() == {"seed": 7}


def test_an_absent_option_is_as_one_that_nobody_set():
    assert read_options(fields(), OPTIONS) == Options()


def test_what_is_read_already_is_not_read_again():
    body = fields(num_predict=-1, p=1)
    options = read_options(body, OPTIONS, max_tokens=None, thinking=Thinking("low"))
    assert options == Options(top_p=1, thinking=Thinking("low"))
    assert body.rest() == {"num_predict": -1}


@pytest.mark.parametrize(("name", "value"), [("num_predict", "5"), ("p", []), ("stops", "a"), ("logprobs", 1)])
def test_a_value_of_another_type_is_refused_by_its_place(name, value):
    with pytest.raises(BadRequest, match=f"^{name}"):
        read_options(fields(**{name: value}), OPTIONS)


def test_every_reader_is_for_an_option():
    assert READERS.keys() <= {member.name for member in members_of(Options)}


def test_an_image_keeps_how_closely_to_look_and_where_it_stands():
    part = fields(image_url={"url": "https://example.com/a.png", "detail": "low"})
    assert image_of(part) == Media("image", url="https://example.com/a.png", detail="low", place=part.at("image_url"))
