"""The AI SDK's request: messages of several steps, and parts that say both a call and its end. Source: ui-protocols.md §1.8."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from attrs import evolve

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
from streamkit.events import Opaque
from streamkit.translation.bodies import decode_request, encode_request
from tests.requests.rows import Dialect, Row, by_model, by_system, by_user, rows, write

STEP = {"type": "step-start"}


def message(role: str, *parts: dict[str, Any], name: str = "m1", **more: Any) -> dict[str, Any]:
    return {"id": name, "role": role, "parts": [*parts], **more}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def tool(state: str, call: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "tool-look", "toolCallId": call, "state": state, "input": {"q": 1.5}, **more}


HI = message("user", text("Hi"))
USER = by_user(Text("Hi"))
SDK = Dialect(
    "ai-sdk",
    {"id": "chat-1", "trigger": "submit-message", "messages": [HI]},
    Request("ai-sdk", None, [USER], stream=True, stream_usage=True),
    Request("openai-chat", None, [USER]),
)


CALLED = message(
    "assistant",
    STEP,
    {"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": {"anthropic": {"signature": "c2ln"}}},
    text("Let me.", state="done"),
    tool("output-available", output={"found": [1]}),
    STEP,
    text("Done.", state="done"),
    name="a1",
)
CALL = ToolCall(0, "c1", "look", '{"q":1.5}')


FAILED = {
    name: value for name, value in tool("output-error", errorText="no JSON", rawInput="{q").items() if name != "input"
}
SOURCE = {"type": "source-url", "sourceId": "1", "url": "https://a.example"}
SHOWN = {"messages": [HI, message("assistant", STEP, text("so"), SOURCE, name="a", metadata={"t": 1})]}
STEERING = {"type": "steering-message", "id": "s", "parts": [text("faster")]}
INTERFACE = {
    "system": "Be brief.", "tools": {"look": {"description": "d", "parameters": {"type": "object"}}},
    "callSettings": {"maxTokens": 9, "temperature": 0.5}, "config": {"apiKey": "secret"},
}  # fmt: skip


def result(*texts: str, **more: Any) -> ToolResult:
    return ToolResult("c1", [Text(text) for text in texts], "look", **more)


#: A part with the state of a call, and the result that it says.
STATES = [
    (tool("output-error", errorText="gone"), result("gone", is_error=True)),
    (tool("output-denied"), result("Tool call execution denied.", is_error=True)),
    (tool("approval-responded", approval={"id": "p", "approved": False, "reason": "no"}), result("no", is_error=True)),
    (tool("output-available", output="as it is"), result("as it is")),
    (tool("input-available"), None),
    (tool("approval-requested", approval={"id": "p"}), None),
    (tool("approval-responded", approval={"id": "p", "approved": True}), None),
    (tool("output-available", output="so far", preliminary=True), None),
]
#: Names of the SDK for what only a vendor can read.
PROOFS: list[tuple[dict[str, Any], Reasoning | RedactedReasoning]] = [
    ({"google": {"thoughtSignature": "dA=="}}, Reasoning("", signature=Opaque("google", "dA=="))),
    ({"bedrock": {"redactedData": "dA=="}}, RedactedReasoning(Opaque("bedrock", "dA=="))),
    ({"openai": {"reasoningEncryptedContent": "dA=="}}, RedactedReasoning(Opaque("openai", "dA=="))),
    ({"streamkit": {"sealed": seal("reasoning", "acme", "dA==")}}, Reasoning("", signature=Opaque("acme", "dA=="))),
    ({"streamkit": {"sealed": seal("opaque", "acme", "dA==")}}, RedactedReasoning(Opaque("acme", "dA=="))),
]
BAD = [
    ({"id": "m", "role": "user"}, "messages[0].parts"),
    (message("robot", text("Hi")), "messages[0].role"),
    (message("assistant", tool("elsewhere")), "messages[0].parts[0].state"),
    (message("assistant", {"type": "tool-look", "state": "input-available"}), "messages[0].parts[0].toolCallId"),
    (message("user", {"type": "file", "mediaType": "image/png"}), "messages[0].parts[0].url"),
]


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    """A message of the assistant after one of the user."""
    return {"messages": [HI, message("assistant", *parts, name="a")]}


def state_row(part: dict[str, Any], gave: ToolResult | None) -> Row:
    """The call keeps what else its part says."""
    kept = {name: part[name] for name in ("approval", "preliminary") if name in part}
    if "preliminary" in part:
        kept["output"] = part["output"]
    call = evolve(CALL, extras=kept or None)
    turns = [USER, by_model(call), *([] if gave is None else [by_user(gave)])]
    return SDK.kept(said(STEP, part), turns=turns, typed=False)


def proof_row(metadata: dict[str, Any], part: Any) -> Row:
    given = {"type": "reasoning", "text": "", "providerMetadata": metadata}
    return SDK.kept(said(STEP, given), turns=[USER, by_model(part)], typed=False)


ROWS = {
    "steps are turns with results between them": SDK.means(
        {"messages": [HI, CALLED], "model": "m"}, model="m", turns=[
            USER, by_model(Reasoning("hm", signature=Opaque("anthropic", "c2ln")), Text("Let me."), CALL), by_user(result('{"found":[1]}')),
            by_model(Text("Done.")),
        ],
    ),
    "it is a conversation of Chat": SDK.translated("openai-chat", {"messages": [HI, CALLED]}, {
        "messages[0].role": "user", "messages[1].tool_calls[0].function": {"name": "look", "arguments": '{"q":1.5}'},
        "messages[2]": {"role": "tool", "tool_call_id": "c1", "content": '{"found":[1]}'}, "messages[3].role": "assistant",
    }, None),
    "and of Anthropic": SDK.translated("anthropic", {"messages": [HI, CALLED]}, {
        "messages[1].content[0]": {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    }, None, target={"max_tokens": 9}, repairs=None),
    **rows("states", STATES, state_row),
    "a tool that said nothing": SDK.means(said(tool("output-available", output=None)), turns=[USER, by_model(CALL), by_user(result())]),
    "a call that was cut": Row(
        said(text("so"), {**tool("input-streaming"), "input": {"q": 1}}), {"turns": [USER, by_model(Text("so"))]}, losses=[("call_withheld", "look")]
    ),
    "an input that is no JSON": SDK.means(
        said(FAILED), turns=[USER, by_model(ToolCall(0, "c1", "look", "{q")), by_user(result("no JSON", is_error=True))]
    ),
    "an input that is text": SDK.means(
        said(tool("output-available", output="ok") | {"input": "*** x"}),
        turns=[USER, by_model(ToolCall(0, "c1", "look", "*** x", kind="custom")), by_user(result("ok"))],
    ),
    **rows("proofs", PROOFS, proof_row),
    "what an interface shows": SDK.alike(SHOWN, SHOWN),
    "it is not for others": SDK.translated("openai-chat", SHOWN, losses={"unknown_event": 1, "metadata": 1}),
    "files": SDK.means(
        {"messages": [message(
            "user", {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA==", "filename": "a.png"},
            {"type": "file", "mediaType": "image", "url": "https://a.example/b"},
            {"type": "file", "mediaType": "application/pdf", "url": "", "providerReference": {"openai": "file-1"}},
        )]},
        turns=[by_user(
            Media("image", "image/png", "AA==", name="a.png"), Media("image", "image", url="https://a.example/b"),
            Media("file", "application/pdf", file_id="file-1", extras={"providerReference": {"openai": "file-1"}}),
        )],
    ),
    "the user between two steps": SDK.kept(
        said(STEP, text("so"), STEERING, STEP, text("ok")),
        turns=[USER, by_model(Text("so")), by_user(Text("faster"), native_role="steering-message"), by_model(Text("ok"))], typed=False,
    ),
    "what assistant-ui adds": SDK.alike(INTERFACE, INTERFACE),
    **rows("bad", BAD, lambda bad, path: SDK.refused({"messages": [bad]}, path, "")),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    SDK.check(ROWS[name])


def test_numbers_of_an_input_keep_their_text():
    body = orjson.dumps(SDK.body({"messages": [message("assistant", tool("input-available"))]})).replace(
        b"1.5", b"1.00e2"
    )
    assert decode_request(body, "ai-sdk").turns[0].parts == [ToolCall(0, "c1", "look", '{"q":1.00e2}')]


def test_what_assistant_ui_adds_is_read_and_its_key_is_told_nobody():
    found = SDK.read(**INTERFACE)
    assert found.turns[0] == by_system(Text("Be brief."), native_role="system")
    assert found.tools == [Tool("look", "d", {"type": "object"})]
    assert (found.options.max_tokens, found.options.temperature) == (9, 0.5)
    assert "secret" not in str(write(found, "openai-chat")[0])


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
