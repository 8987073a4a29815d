"""What was said, as the JSON texts of the conventions: bounded, without secrets, of the newest first (observe.md O15)."""

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.conversation.messages import (
    Media,
    Opaque,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.events import ResponseFinished, StreamEnded, TextDelta, ToolCallFinished, ToolCallStarted
from streamkit.otel.content import AnswerContent, Content
from streamkit.otel.stage import traced
from streamkit.testing import source_of
from tests.otel.spans import Spans

TEXT, ID = {"type": "string"}, {"type": ["string", "null"]}


def part(kind, **members):
    """A part of a message: its type, and the members that it has to have."""
    properties = {"type": {"const": kind}, **members}
    return {"type": "object", "required": [*properties], "properties": properties}


#: What the conventions' schemas demand of the parts that are written here: gen-ai-input-messages.json, -output-messages.json,
#: -system-instructions.json and -tool-definitions.json of open-telemetry/semantic-conventions-genai, model/gen-ai, at commits
#: 2b902ce, 16c5f01 and d357ce2, read on 2026-11-26. They let any object through that has a ``type`` (GenericPart), so these are
#: stricter: a part of a known type has to be one, and other types are those that are written on purpose.
KNOWN = [
    part("text", content=TEXT),
    part("reasoning", content=TEXT),
    part("tool_call", id=ID, name=TEXT, arguments={}),
    part("tool_call_response", id=ID, response={}),
    part("uri", modality=TEXT, uri=TEXT),
    part("file", modality=TEXT, file_id=TEXT),
]
PARTS = {
    "type": "array",
    "items": {"anyOf": [*KNOWN, {"required": ["type"], "properties": {"type": {"enum": ["image", "audio", "other"]}}}]},
}
MESSAGE = {
    "type": "object",
    "required": ["role", "parts"],
    "properties": {"role": TEXT, "parts": PARTS, "finish_reason": TEXT},
}
TOOL = {
    "type": "object",
    "required": ["type", "name"],
    "properties": {
        "type": TEXT,
        "name": TEXT,
        "description": {"type": ["string", "null"]},
        "parameters": {"type": ["object", "boolean", "null"]},
    },
}
SCHEMAS = {
    "gen_ai.input.messages": {"type": "array", "items": MESSAGE},
    "gen_ai.output.messages": {"type": "array", "items": {**MESSAGE, "required": ["role", "parts", "finish_reason"]}},
    "gen_ai.system_instructions": PARTS,
    "gen_ai.tool.definitions": {"type": "array", "items": TOOL},
}
TRUNCATED = "streamkit.content.truncated"
KEY = "sk-proj-abcdefgh12345678"


def read(attributes, chars=61_440):
    """The values of the texts, each of which has its schema's form and fits."""
    values = {}
    for name, text in attributes.items():
        if name != TRUNCATED:
            assert len(text) <= chars
            values[name] = json.loads(text)
            jsonschema_rs.validate(SCHEMAS[name], values[name])
    return values


def conversation(*turns, tools=()):
    return Request("openai-chat", "m", turns=list(turns), tools=list(tools))


def test_a_conversation_has_the_form_of_the_conventions():
    request = conversation(
        Turn("system", [Text("be kind")]),
        Turn("user", [Text("look"), Media("image", "image/png", url="https://h/i.png"), Media("image", data="AAAA")]),
        Turn("assistant", [Reasoning("hm"), ToolCall(0, "c1", "f", '{"city":"Oslo"}'), ToolCall(1, "c2", "g", "{")]),
        Turn("user", [ToolResult("c1", [Text("cold")]), Text("and?"), Media("file", file_id="f1")]),
        Turn("assistant", [Refusal("no"), RedactedReasoning(Opaque("v", "secret"))]),
        tools=[Tool("f", "d", {"type": "object"}), Tool("s", kind="server", raw={"type": "s"})],
    )
    values = read(Content().of_request(request))
    assert values["gen_ai.system_instructions"] == [{"type": "text", "content": "be kind"}]
    assert [
        (message["role"], [each["type"] for each in message["parts"]]) for message in values["gen_ai.input.messages"]
    ] == [
        ("user", ["text", "uri", "image"]),
        ("assistant", ["reasoning", "tool_call", "tool_call"]),
        ("tool", ["tool_call_response"]),
        ("user", ["text", "file"]),
        ("assistant", ["text", "other"]),
    ]
    calls = values["gen_ai.input.messages"][1]["parts"][1:]
    assert [call["arguments"] for call in calls] == [{"city": "Oslo"}, "{"]
    assert values["gen_ai.tool.definitions"] == [
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}},
        {"type": "server", "name": "s"},
    ]
    assert "AAAA" not in str(values)
    assert "secret" not in str(values)


def test_an_answer_has_the_form_of_the_conventions():
    answer = AnswerContent("openai-chat")
    answer.feed([TextDelta("Look"), TextDelta("ing"), ToolCallStarted(0, "c1", "f")])
    answer.feed([ToolCallFinished(0, "c1", "f", '{"a":1}'), ResponseFinished("tool_calls"), StreamEnded(clean=True)])
    values = read(Content().of_answer(answer.finish()))
    assert values["gen_ai.output.messages"] == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Looking"},
                {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
            ],
            "finish_reason": "tool_call",
        }
    ]


def test_an_answer_that_broke_off_has_what_came_of_it():
    answer = AnswerContent("openai-chat")
    answer.feed([TextDelta("half")])
    (message,) = read(Content().of_answer(answer.finish()))["gen_ai.output.messages"]
    assert (message["parts"][0]["content"], message["finish_reason"]) == ("half", "error")


def test_of_a_long_conversation_the_newest_messages_stay():
    turns = [Turn("user", [Text(f"{number} " + "x" * 100)]) for number in range(1000)]
    found = Content(chars=1000).of_request(conversation(*turns))
    messages = read(found, 1000)["gen_ai.input.messages"]
    assert [message["parts"][0]["content"].split()[0] for message in messages] == [
        "994",
        "995",
        "996",
        "997",
        "998",
        "999",
    ]
    assert found[TRUNCATED] is True


@pytest.mark.parametrize("text", ["x" * 10_000_000, '"' * 100_000, "é" * 100_000, "\x01" * 100_000])
def test_a_long_message_is_cut(text):
    found = Content(chars=1000).of_request(conversation(Turn("user", [Text(text)])))
    (message,) = read(found, 1000)["gen_ai.input.messages"]
    assert message["parts"][0]["content"].endswith("…")
    assert found[TRUNCATED] is True


def test_a_long_answer_is_cut_while_it_comes():
    answer = AnswerContent("openai-chat", chars=500)
    for _ in range(1000):
        answer.feed([TextDelta("x" * 100)])
    assert answer.is_cut
    found = Content(chars=1000).of_answer(answer.finish(), is_cut=answer.is_cut)
    assert len(read(found, 1000)["gen_ai.output.messages"][0]["parts"][0]["content"]) == 500
    assert found[TRUNCATED] is True


def test_keys_are_cut_out_wherever_they_stand():
    request = conversation(
        Turn("system", [Text(f"use {KEY}")]),
        Turn("user", [Text(f"my key is {KEY}")]),
        Turn(
            "assistant",
            [ToolCall(0, "c", "f", json.dumps({"k": KEY, "api_key": "hunter2"})), ToolCall(1, "d", "g", KEY)],
        ),
        Turn("user", [ToolResult("c", [Text(f"got {KEY} and the-operators-own")])]),
        tools=[Tool("f", KEY, {"default": KEY})],
    )
    found = Content(hide=lambda text: text.replace("the-operators-own", "[removed]")).of_request(request)
    values = str(read(found))
    assert "[removed]" in values
    assert not [secret for secret in (KEY, "hunter2", "the-operators-own") if secret in values]


OWN = "the-operators-own"


def escaped(text):
    """As JSON may spell it, so that no search of the bytes finds it."""
    return "".join(f"\\u{ord(char):04X}" for char in text)


@pytest.mark.parametrize("secret", [KEY, OWN])
@pytest.mark.parametrize(
    "place",
    [
        lambda secret: conversation(tools=[Tool("f", "d", {"properties": {"a": {"default": secret}}})]),
        lambda secret: conversation(tools=[Tool("f", "d", {"properties": {secret: {"type": "string"}}})]),
        lambda secret: conversation(Turn("user", [Media("image", f"image/{secret}", data="AAAA")])),
        lambda secret: conversation(Turn("user", [Media("image", secret, url="https://h/i")])),
        lambda secret: conversation(Turn("assistant", [ToolCall(0, "c", "f", '{"a":"' + escaped(secret) + '"}')])),
        lambda secret: conversation(Turn("assistant", [ToolCall(0, "c", "f", '{"' + escaped(secret) + '":1}')])),
        lambda secret: conversation(Turn("assistant", [ToolCall(0, "c", "f", '{"a":"' + escaped(secret))])),
        lambda secret: conversation(Turn("assistant", [ToolCall(0, "c", "f", json.dumps({secret: {secret: [secret]}}))])),
        lambda secret: conversation(Turn("user", [ToolResult("c", [Text('{"a":"' + escaped(secret) + '"}')])])),
    ],
)  # fmt: skip
def test_keys_are_cut_out_of_names_schemas_media_types_and_escapes(place, secret):
    values = read(Content(hide=lambda text: text.replace(OWN, "[removed]")).of_request(place(secret)))
    assert "[removed]" in str(values)
    assert secret not in str(values)
    assert escaped(secret) not in str(values).replace("\\\\", "\\")


@pytest.mark.parametrize("text", ['{"api_key": "hunter2"', '{"api\\u005fkey": "hunter2"}', '{"password":"hunter2"}'])
def test_what_a_member_is_called_hides_its_value_in_text_too(text):
    found = read(Content().of_request(conversation(Turn("user", [ToolResult("c", [Text(text)])]))))
    assert "hunter2" not in str(found)


def test_text_without_a_key_keeps_its_escapes():
    text = '{"a":"\\u0041"}'
    (message,) = read(Content().of_request(conversation(Turn("user", [Text(text)]))))["gen_ai.input.messages"]
    assert message["parts"][0]["content"] == text


@given(st.recursive(st.text(max_size=20) | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_whatever_was_said_can_be_sent(value):
    arguments = json.dumps(value)
    turns = [Turn("user", [Text(arguments + "\ud800")]), Turn("assistant", [ToolCall(0, "\udfff", "f", arguments)])]
    for text in Content(chars=200).of_request(conversation(*turns)).values():
        if text is not True:
            json.loads(text)
            text.encode("utf-8")


async def test_a_stage_tells_what_was_said_where_it_is_to():
    spans = Spans()
    request = conversation(Turn("user", [Text("hi")]))
    batches = [[TextDelta("ho")], [ResponseFinished("stop")], [StreamEnded(clean=True)]]
    for content in (None, Content()):
        stream = traced("ollama", model="m", request=request, content=content, tracer=spans.tracer)(source_of(batches))
        async for _ in stream:
            pass
    silent, told = (dict(span.attributes) for span in spans.ended)
    assert not SCHEMAS.keys() & silent.keys()
    assert read({name: told[name] for name in SCHEMAS if name in told}) == {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [{"type": "text", "content": "ho"}], "finish_reason": "stop"}
        ],
    }
