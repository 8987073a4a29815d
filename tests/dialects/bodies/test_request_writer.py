"""What the writers of requests share: extras and options that are written or counted, ids, arguments, media."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from attrs import fields

from streamkit.conversation.messages import Media, Options, OutputFormat, Request, Thinking, Tool, ToolCall
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.media_types import data_uri, media_type_of
from streamkit.dialects.bodies.request_writer import INPUT_SCHEMA, RequestWriter
from streamkit.dialects.profiles import Target
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.identifiers import portable_id, portable_name


class Writer(RequestWriter):
    dialect = "ours"
    vendor = "us"
    ids = re.compile(r"\w{1,5}")
    names = re.compile(r"\w{1,5}")


def writer(dialect: str = "theirs", **members: Any) -> Writer:
    return Writer(Request(dialect, **members), Target(), StreamReport())


def test_extras_are_written_within_the_dialect_and_lost_elsewhere():
    extras = {"a": {"b": 1}, "nothing": [], "c": 0}
    assert writer("ours").extras(extras) == extras
    foreign = writer()
    assert foreign.extras(extras) == {}
    assert foreign.report.lost == [("metadata", "a"), ("metadata", "c")]
    assert foreign.extras(None) == {}


def test_extras_fill_what_is_not_written():
    body = {"a": {"b": 1}, "c": None, "d": 5}
    assert add_missing(body, {"a": {"b": 2, "x": 3}, "c": 4, "d": 6, "e": 7}) == {
        "a": {"b": 1, "x": 3},
        "c": 4,
        "d": 5,
        "e": 7,
    }


@pytest.mark.parametrize(
    ("dialect", "vendor", "known"), [("ours", "us", True), ("ours", "them", False), ("theirs", "us", False)]
)
def test_an_aside_is_written_where_its_words_are_understood(dialect, vendor, known):
    own = writer(dialect)
    assert own.aside(Aside(vendor, "server_tool", "search", {})) is known
    assert own.report.lost == ([] if known else [("server_tool", "search")])


def test_every_option_is_written_or_lost():
    options = Options(max_tokens=1, temperature=0, stop=("a",), seed=2, user="u", native_max_tokens="max")
    filled = writer(options=options)
    assert filled.options({"temperature": "t", "stop": "s"}, {"max_tokens"}) == {"t": 0, "s": ("a",)}
    assert filled.report.lost == [("parameter", "seed"), ("parameter", "user")]
    assert writer().options({}) == {}
    every = writer(
        options=Options(
            **{option.name: "x" for option in fields(Options)}
            | {"thinking": Thinking("x"), "output": OutputFormat("text")}
        )
    )
    every.options({})
    assert every.report.losses["parameter"] == len(fields(Options)) - 1


def test_ids_and_names_are_rewritten_where_the_dialect_refuses_them():
    foreign = writer()
    assert [foreign.call_id(text) for text in ("short", "toolong", "toolong")] == [
        "short",
        *[portable_id("toolong", Writer.ids)] * 2,
    ]
    assert foreign.tool_name("a.b") == portable_name("a.b", Writer.names)
    assert foreign.report.repairs == {"id_rewritten": 1, "name_rewritten": 1}
    assert writer("ours").call_id("toolong") == "toolong"


@pytest.mark.parametrize(
    ("arguments", "kind", "written", "losses"),
    [
        ('{"a":1.0, "b":18446744073709551616}', "function", b'{"a":1.0, "b":18446744073709551616}', []),
        (" ", "function", b"{}", []),
        ('{"a"', "function", b'{"_raw_arguments":"{\\"a\\""}', [("arguments_wrapped", "f")]),
        ("[1]", "function", b'{"_raw_arguments":"[1]"}', [("arguments_wrapped", "f")]),
        ("1 + 1", "custom", b'{"input":"1 + 1"}', [("custom_tool_wrapped", "f")]),
    ],
)
def test_arguments_are_an_object_of_their_own_text(arguments, kind, written, losses):
    foreign = writer()
    assert orjson.dumps(foreign.object_arguments(ToolCall(0, "c", "f", arguments, kind))) == written
    assert foreign.report.lost == losses


def test_a_custom_tool_is_a_function_that_takes_text():
    foreign = writer()
    assert foreign.as_function(Tool("f", "d", kind="custom", format={"type": "text"})) == Tool("f", "d", INPUT_SCHEMA)
    assert foreign.report.losses == {"custom_tool_wrapped": 1}


def test_given_is_what_was_said():
    assert without_none(a=None, b=0, c="", d=False) == {"b": 0, "c": "", "d": False}


@pytest.mark.parametrize(
    ("media", "kind"),
    [
        (Media("image", "image/x", "AAAA"), "image/x"),
        (Media("image", data="iVBORw0KGgoAAAA"), "image/png"),
        (Media("image", data="/9j/4AAQ"), "image/jpeg"),
        (Media("file", data="JVBERi0x"), "application/pdf"),
        (Media("file", data="AAAA"), "application/octet-stream"),
    ],
)
def test_media_say_their_type_or_begin_with_it(media, kind):
    assert media_type_of(media) == kind
    assert data_uri(media) == f"data:{kind};base64,{media.data}"
