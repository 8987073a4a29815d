"""The AI SDK's request: messages of several steps, and parts that say both a call and its end. Source: ui-protocols.md §1.8."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import (
    Media,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.events import Opaque
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request

STEP = {"type": "step-start"}


def message(role: str, *parts: dict[str, Any], name: str = "m1", **more: Any) -> dict[str, Any]:
    return {"id": name, "role": role, "parts": [*parts], **more}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def tool(state: str, call: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "tool-look", "toolCallId": call, "state": state, "input": {"q": 1.5}, **more}


def asked(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "chat-1", "trigger": "submit-message", "messages": [*messages], **more}


def read(body: dict[str, Any], report: StreamReport | None = None) -> Request:
    return decode_request(orjson.dumps(body), "ai-sdk", report=report)


def turns_of(*messages: dict[str, Any]) -> list[Turn]:
    return read(asked(*messages)).turns


CALLED = message(
    "assistant", STEP, {"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": {"anthropic": {"signature": "c2ln"}}},
    text("Let me.", state="done"), tool("output-available", output={"found": [1]}), STEP, text("Done.", state="done"), name="a1",
)  # fmt: skip
CALL = ToolCall(0, "c1", "look", '{"q":1.5}')


def test_the_steps_of_a_message_are_turns_with_results_between_them():
    found = read(asked(message("user", text("Hi")), CALLED, model="m"))
    assert (found.model, found.stream, found.extras) == ("m", True, {})
    assert [(turn.role, turn.parts) for turn in found.turns] == [
        ("user", [Text("Hi")]),
        ("assistant", [Reasoning("hm", signature=Opaque("anthropic", "c2ln")), Text("Let me."), CALL]),
        ("user", [ToolResult("c1", [Text('{"found":[1]}')], "look")]),
        ("assistant", [Text("Done.")]),
    ]


def test_towards_other_dialects_it_is_their_conversation():
    report = StreamReport()
    body = orjson.loads(
        encode_request(read(asked(message("user", text("Hi")), CALLED, model="m")), "openai-chat", report=report)
    )
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"q":1.5}'}
    assert body["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": '{"found":[1]}'}
    claude = orjson.loads(
        encode_request(read(asked(message("user", text("Hi")), CALLED, model="m")), "anthropic", max_tokens=9)
    )
    assert claude["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


@pytest.mark.parametrize(
    ("part", "result"),
    [
        (tool("output-error", errorText="gone"), ToolResult("c1", [Text("gone")], "look", is_error=True)),
        (tool("output-denied"), ToolResult("c1", [Text("Tool call execution denied.")], "look", is_error=True)),
        (
            tool("approval-responded", approval={"id": "p", "approved": False, "reason": "no"}),
            ToolResult("c1", [Text("no")], "look", is_error=True),
        ),
        (tool("output-available", output="as it is"), ToolResult("c1", [Text("as it is")], "look")),
        (tool("input-available"), None),
        (tool("approval-requested", approval={"id": "p"}), None),
        (tool("approval-responded", approval={"id": "p", "approved": True}), None),
        (tool("output-available", output="so far", preliminary=True), None),
    ],
)  # fmt: skip
def test_the_state_of_a_call_says_its_result_and_comes_back(part, result):
    given = asked(message("user", text("Hi")), message("assistant", STEP, part, name="a1"))
    found = read(given)
    assert found.turns[2:] == ([] if result is None else [Turn("user", [result])])
    written = orjson.loads(encode_request(found, "ai-sdk"))
    assert written["messages"][1]["parts"] == [STEP, part]


def test_a_tool_that_said_nothing_gives_an_empty_result():
    (_, turn) = turns_of(message("assistant", tool("output-available", output=None)))
    assert turn.parts == [ToolResult("c1", [], "look")]


def test_a_call_that_was_cut_is_dropped_and_counted():
    report = StreamReport()
    found = read(asked(message("assistant", text("so"), {**tool("input-streaming"), "input": {"q": 1}})), report)
    assert [turn.parts for turn in found.turns] == [[Text("so")]]
    assert report.lost == [("call_withheld", "look")]


def test_an_input_that_is_no_json_stays_text():
    failed = tool("output-error", errorText="no JSON", rawInput="{q")
    del failed["input"]
    (turn, _) = turns_of(message("assistant", failed))
    assert turn.parts == [ToolCall(0, "c1", "look", "{q")]
    free = tool("output-available", output="ok") | {"input": "*** x"}
    (turn, _) = turns_of(message("assistant", free))
    assert turn.parts == [ToolCall(0, "c1", "look", "*** x", kind="custom")]


def test_numbers_of_an_input_keep_their_text():
    body = orjson.dumps(asked(message("assistant", tool("input-available")))).replace(b"1.5", b"1.00e2")
    assert decode_request(body, "ai-sdk").turns[0].parts == [ToolCall(0, "c1", "look", '{"q":1.00e2}')]


@pytest.mark.parametrize(
    ("metadata", "part"),
    [
        ({"google": {"thoughtSignature": "dA=="}}, Reasoning("", signature=Opaque("google", "dA=="))),
        ({"bedrock": {"redactedData": "dA=="}}, RedactedReasoning(Opaque("bedrock", "dA=="))),
        ({"openai": {"reasoningEncryptedContent": "dA=="}}, RedactedReasoning(Opaque("openai", "dA=="))),
        ({"streamkit": {"sealed": seal("reasoning", "acme", "dA==")}}, Reasoning("", signature=Opaque("acme", "dA=="))),
        ({"streamkit": {"sealed": seal("opaque", "acme", "dA==")}}, RedactedReasoning(Opaque("acme", "dA=="))),
    ],
)  # fmt: skip
def test_what_only_a_vendor_can_read_comes_back_under_the_names_of_the_sdk(metadata, part):
    given = {"type": "reasoning", "text": "", "providerMetadata": metadata}
    (turn,) = turns_of(message("assistant", given))
    assert turn.parts == [part]
    other = Request("openai-chat", turns=[Turn("user", [Text("Hi")]), turn])
    assert orjson.loads(encode_request(other, "ai-sdk"))["messages"][1]["parts"] == [STEP, given]


def test_a_part_that_only_an_interface_shows_is_kept_for_this_dialect_alone():
    source = {"type": "source-url", "sourceId": "1", "url": "https://a.example"}
    given = asked(
        message("user", text("Hi")), message("assistant", STEP, text("so"), source, name="a", metadata={"t": 1})
    )
    assert orjson.loads(encode_request(read(given), "ai-sdk")) == given
    report = StreamReport()
    encode_request(read(given), "openai-chat", report=report)
    assert report.losses == {"unknown_event": 1, "metadata": 1}


def test_files_are_media_by_url_by_content_and_by_id():
    (turn,) = turns_of(
        message(
            "user",
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA==", "filename": "a.png"},
            {"type": "file", "mediaType": "image", "url": "https://a.example/b"},
            {"type": "file", "mediaType": "application/pdf", "url": "", "providerReference": {"openai": "file-1"}},
        )
    )
    one, two, three = (part for part in turn.parts if isinstance(part, Media))
    assert (one.kind, one.media_type, one.data, one.name) == ("image", "image/png", "AA==", "a.png")
    assert (two.kind, two.url) == ("image", "https://a.example/b")
    assert (three.kind, three.file_id, three.url) == ("file", "file-1", None)


def test_a_message_of_the_user_between_two_steps_is_a_turn_and_comes_back():
    steering = {"type": "steering-message", "id": "s", "parts": [text("faster")]}
    given = asked(
        message("user", text("Hi")), message("assistant", STEP, text("so"), steering, STEP, text("ok"), name="a")
    )
    found = read(given)
    assert [(turn.role, turn.parts) for turn in found.turns[1:]] == [
        ("assistant", [Text("so")]),
        ("user", [Text("faster")]),
        ("assistant", [Text("ok")]),
    ]
    assert orjson.loads(encode_request(found, "ai-sdk")) == given


def test_what_assistant_ui_adds_is_read_and_comes_back():
    given = asked(
        message("user", text("Hi")),
        system="Be brief.",
        tools={"look": {"description": "d", "parameters": {"type": "object"}}},
        callSettings={"maxTokens": 9, "temperature": 0.5},
        config={"apiKey": "secret"},
    )
    found = read(given)
    assert found.turns[0] == Turn("system", [Text("Be brief.")], native_role="system")
    assert found.tools == [Tool("look", "d", {"type": "object"})]
    assert (found.options.max_tokens, found.options.temperature) == (9, 0.5)
    assert orjson.loads(encode_request(found, "ai-sdk")) == given
    assert b"secret" not in encode_request(found, "openai-chat")


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        ([{"id": "m", "role": "user"}], "messages[0].parts"),
        ([message("robot", text("Hi"))], "messages[0].role"),
        ([message("assistant", tool("elsewhere"))], "messages[0].parts[0].state"),
        ([message("assistant", {"type": "tool-look", "state": "input-available"})], "messages[0].parts[0].toolCallId"),
        ([message("user", {"type": "file", "mediaType": "image/png"})], "messages[0].parts[0].url"),
    ],
)  # fmt: skip
def test_what_cant_be_read_is_refused_with_its_place(messages, path):
    with pytest.raises(BadRequest) as refused:
        read(asked(*messages))
    assert refused.value.path == path


def test_messages_of_one_conversation_are_one_message_for_each_speaker():
    called = Turn("assistant", [Text("Let me."), ToolCall(0, "c1", "look", '{"q":1.5}')])
    turns = [
        Turn("system", [Text("Be brief.")]),
        Turn("user", [Text("Hi")]),
        called,
        Turn("user", [ToolResult("c1", [Text("a cat")], is_error=True), Text("Well?")]),
        Turn("assistant", [Text("A cat.")]),
    ]
    body = orjson.loads(encode_request(Request("openai-chat", "m", turns), "ai-sdk"))
    assert [(each["role"], [part["type"] for part in each["parts"]]) for each in body["messages"]] == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["step-start", "text", "tool-look"]),
        ("user", ["text"]),
        ("assistant", ["step-start", "text"]),
    ]
    call = body["messages"][2]["parts"][2]
    assert (call["state"], call["errorText"], call["input"]) == ("output-error", "a cat", {"q": 1.5})
    assert (body["model"], body["trigger"]) == ("m", "submit-message")
