"""Blocks and items of 2026, one row each: in a request, in a stream and in a whole response, in their own dialect and in Chat.

In their own dialect they are written as they came, though the events go through a stage. In Chat, each is carried or a loss that
has its name. The clients' types judge what is written.

Source: anthropic 2.14, ``types/beta``; openai 3.57, ``types/responses`` and ``types/beta``; dialects.md §2.2, §3.1, §3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest
from attrs import frozen

from streamkit import accumulate_tool_calls, collect, decode, encode, parse_sse, pipe
from streamkit.conversation.messages import Text
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import (
    decode_request,
    decode_response,
    drop_unreadable,
    encode_request,
    encode_response,
)
from tests.requests.rows import translate
from tests.requests.sdk_types import faults

CLAUDE, OPENAI, CHAT = "anthropic", "openai-responses", "openai-chat"
Block = Mapping[str, Any]


@frozen
class Row:
    """A block of an assistant's message, or an item of a response."""

    dialect: str
    block: Block
    kind: str = "server_tool"  #: the loss, by the name of the block
    asked: str = "server_tool"  #: the loss in a request; empty where the block is in no request

    @property
    def name(self) -> str:
        return str(self.block["type"])


FUNCTION = {"type": "function", "name": "late", "parameters": {"type": "object", "properties": {}}, "strict": False}
LISTED = {"name": "t", "description": "d", "input_schema": {"type": "object"}}
ROWS = [
    Row(
        CLAUDE,
        {
            "type": "fallback",
            "from": {"model": "claude-fable-5"},
            "to": {"model": "claude-opus-4-8"},
            "trigger": {"type": "refusal", "category": "cyber"},
        },
        *("metadata", "metadata"),
    ),
    Row(CLAUDE, {"type": "container_upload", "file_id": "file_1"}),
    Row(CLAUDE, {"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": [LISTED]}),
    Row(OPENAI, {"type": "program", "id": "prog_1", "call_id": "call_1", "code": "f()", "fingerprint": "F"}),
    Row(OPENAI, {"type": "program_output", "id": "po_1", "call_id": "call_1", "result": "42", "status": "completed"}),
    Row(
        OPENAI,
        {
            "type": "tool_search_output",
            "id": "tso_1",
            "call_id": "call_1",
            "execution": "server",
            "status": "completed",
            "tools": [FUNCTION],
        },
    ),
    Row(OPENAI, {"type": "mcp_approval_response", "id": "mcpr_2", "approval_request_id": "mcpr_1", "approve": True}),
    Row(
        OPENAI,
        {
            "type": "agent_message",
            "id": "am_1",
            "author": "/root",
            "recipient": "/main/a",
            "content": [{"type": "encrypted_content", "encrypted_content": "E"}],
        },
    ),
    Row(
        OPENAI,
        {"type": "multi_agent_call", "id": "mac_1", "call_id": "call_1", "action": "list_agents", "arguments": "{}"},
    ),
    Row(
        OPENAI,
        {
            "type": "multi_agent_call_output",
            "id": "mao_1",
            "call_id": "call_1",
            "action": "list_agents",
            "output": [{"type": "output_text", "text": "none", "annotations": []}],
        },
    ),
    Row(OPENAI, {"type": "configuration_update", "id": "cu_1", "reasoning": {"effort": "low"}}, asked="metadata"),
    Row(OPENAI, {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [FUNCTION]}, asked="metadata"),
]
EVERY = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.dialect} {row.name}")
TEXT = {
    CLAUDE: {"type": "text", "text": "Hi"},
    OPENAI: {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
    },
}


def whole(dialect: str, blocks: Sequence[Block]) -> dict[str, Any]:
    if dialect == CLAUDE:
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [*blocks],
        }
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-6", "status": "completed"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {**response, "error": None, "incomplete_details": None, "output": [*blocks], "usage": usage}


def frames(dialect: str, blocks: Sequence[Block]) -> bytes:
    body = whole(dialect, blocks)
    events: list[dict[str, Any]] = []
    if dialect == CLAUDE:
        events.append({"type": "message_start", "message": {**body, "content": [], "stop_reason": None}})
        for index, block in enumerate(blocks):
            events += (
                {"type": "content_block_start", "index": index, "content_block": block},
                {"type": "content_block_stop", "index": index},
            )
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        events += ({"type": "message_delta", "delta": delta, "usage": body["usage"]}, {"type": "message_stop"})
    else:
        events.append({"type": "response.created", "response": {**body, "status": "in_progress", "output": []}})
        for index, item in enumerate(blocks):
            events += (
                {"type": "response.output_item.added", "output_index": index, "item": item},
                {"type": "response.output_item.done", "output_index": index, "item": item},
            )
        events.append({"type": "response.completed", "response": body})
    return b"".join(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event)) for event in events)


async def staged(data: bytes, source: str, to: str, report: StreamReport) -> bytes:
    """A stream that goes through its events, also where the dialect stays."""
    stages = parse_sse(), decode(source), accumulate_tool_calls(), encode(to)
    async with pipe(source_of([data]), *stages, report=report) as stream:
        return b"".join([chunk async for chunk in stream])


def blocks_in(dialect: str, data: bytes) -> list[Any]:
    """The blocks of a stream, as their first events have them, or the items, as their last events have them."""
    last, member = {CLAUDE: ("content_block_start", "content_block"), OPENAI: ("response.output_item.done", "item")}[
        dialect
    ]
    lines = (line.removeprefix(b"data: ") for line in data.split(b"\n") if line.startswith(b"data: {"))
    return [event[member] for event in map(orjson.loads, lines) if event["type"] == last]


def judged(dialect: str, block: Any) -> None:
    """Whether the client reads a block as the one that it is, strictly."""
    pydantic = pytest.importorskip("pydantic")
    if dialect == CLAUDE:
        types = pytest.importorskip("anthropic.types.beta").BetaContentBlock
    elif block["type"] == "configuration_update":  # a client reads it as an item of a conversation
        types = pytest.importorskip("openai.types.responses").ResponseConfigurationUpdateItem
    else:
        types = pytest.importorskip("openai.types.beta").BetaResponseOutputItem
    read = pydantic.TypeAdapter(types).validate_python(block)
    assert read.type == block["type"]
    assert not read.model_extra


def request(row: Row) -> dict[str, Any]:
    hi, go = {"role": "user", "content": "hi"}, {"role": "user", "content": "go"}
    if row.dialect == CLAUDE:
        said = {"role": "assistant", "content": [row.block, TEXT[CLAUDE]]}
        return {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [hi, said, go]}
    return {"model": "gpt-6", "input": [hi, row.block, go]}


@EVERY
def test_its_own_request_has_it_unchanged(row):
    body = request(row)
    written, report = translate(body, row.dialect, row.dialect)
    assert written == body
    assert not report.losses


@EVERY
def test_a_request_for_chat_is_well_without_it(row):
    written, report = translate(request(row), row.dialect, CHAT)
    assert faults(CHAT, written) == []
    lost = [kind for kind, name in report.lost if row.name in name]
    assert lost == [row.asked]
    assert "unknown_event" not in report.losses


@EVERY
def test_its_own_response_has_it_unchanged(row):
    given = [row.block, TEXT[row.dialect]]
    response = decode_response(orjson.dumps(whole(row.dialect, given)), row.dialect)
    written = orjson.loads(encode_response(response, row.dialect))
    found = written["content" if row.dialect == CLAUDE else "output"][0]
    assert found == row.block
    judged(row.dialect, found)
    assert not response.report.losses


@EVERY
def test_a_whole_response_for_chat_names_what_is_lost(row):
    response = decode_response(orjson.dumps(whole(row.dialect, [row.block, TEXT[row.dialect]])), row.dialect)
    written = orjson.loads(encode_response(response, CHAT))
    assert written["choices"][0]["message"]["content"] == "Hi"
    assert {kind for kind, name in response.report.lost if name == row.name} == {row.kind}
    assert "unknown_event" not in response.report.losses


@EVERY
async def test_its_own_stream_has_it_unchanged(row):
    report = StreamReport()
    data = frames(row.dialect, [row.block, TEXT[row.dialect]])
    found = blocks_in(row.dialect, await staged(data, row.dialect, row.dialect, report))[0]
    assert found == row.block
    judged(row.dialect, found)
    assert report.clean
    assert not report.losses


@EVERY
async def test_a_stream_for_chat_names_what_is_lost(row):
    report = StreamReport()
    data = frames(row.dialect, [row.block, TEXT[row.dialect]])
    written = await staged(data, row.dialect, CHAT, report)
    assert decoded(written) == "Hi"
    assert {kind for kind, name in report.lost if name == row.name} == {row.kind}
    assert "unknown_event" not in report.losses


def decoded(data: bytes) -> str:
    lines = (line.removeprefix(b"data: ") for line in data.split(b"\n") if line.startswith(b"data: {"))
    return "".join(
        choice["delta"].get("content") or "" for event in map(orjson.loads, lines) for choice in event["choices"]
    )


# -- what changes the request ------------------------------------------------------------------------------------------

EARLY, LATE = (
    {"name": name, "description": name, "input_schema": {"type": "object", "properties": {}}}
    for name in ("early", "late")
)
ADDED = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": LATE}}
ADDED_AGAIN = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "early"}}
REMOVED = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "early"}}
OTHER_EARLY = {"type": "tool_definition", "definition": {**EARLY, "description": "other"}}
#: Changes of the tools by system messages: the blocks of each, and the tools that are left, by name and description.
CHANGES: dict[str, tuple[list[list[Block]], dict[str, str]]] = {
    "added": ([[ADDED]], {"early": "early", "late": "late"}),
    "removed": ([[REMOVED]], {}),
    "removed and added again": ([[REMOVED], [ADDED_AGAIN]], {"early": "early"}),
    "exchanged": ([[REMOVED, ADDED]], {"late": "late"}),
    "defined anew": ([[{"type": "tool_addition", "tool": OTHER_EARLY}]], {"early": "other"}),
    "a toolset removed": (
        [[{"type": "tool_removal", "tool": {"type": "mcp_toolset_reference", "server_name": "s"}}]],
        {"early": "early"},
    ),
}


def changing(*systems: list[Block]) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    for blocks in systems:
        messages += (
            {"role": "system", "content": [*blocks, {"type": "text", "text": "rules"}]},
            {"role": "assistant", "content": "ok"},
        )
    messages.append({"role": "user", "content": "go"})
    return {"model": "claude-opus-4-8", "max_tokens": 9, "messages": messages, "tools": [EARLY]}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize(
    "to", [name for name, each in DIALECTS.items() if each.bodies and name not in {"ag-ui", "ai-sdk"}]
)
def test_tools_that_messages_change(name, to):
    systems, left = CHANGES[name]
    body = changing(*systems)
    written, report = translate(body, CLAUDE, to)
    if to == CLAUDE:
        assert written == body
        pydantic = pytest.importorskip("pydantic")
        params = pytest.importorskip("anthropic.types.beta.beta_system_message_param").BetaSystemMessageParam
        for message in written["messages"]:
            if message["role"] == "system":
                pydantic.TypeAdapter(params).validate_python(message)
        assert not report.losses
        return
    tools = written.get("tools") or written.get("toolConfig", {}).get("tools", [])
    definitions = [each for tool in tools for each in definitions_in(tool)]
    assert {each["name"]: each["description"] for each in definitions} == left
    assert report.losses["metadata"] == sum(map(len, systems))
    assert "rules" in str(written)


def definitions_in(tool: Mapping[str, Any]) -> list[Any]:
    """The functions that an entry of ``tools`` defines, in whichever dialect."""
    if "functionDeclarations" in tool:
        return list(tool["functionDeclarations"])
    return [tool.get("function") or tool.get("toolSpec") or tool]


def test_a_change_of_tools_in_a_compaction_is_in_effect():
    summary = {"type": "compaction", "content": "so far", "encrypted_content": "E", "tool_changes": [ADDED, REMOVED]}
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 9,
        "tools": [EARLY],
        "messages": [{"role": "assistant", "content": [summary]}, {"role": "user", "content": "go"}],
    }
    assert translate(body, CLAUDE, CLAUDE)[0] == body
    assert [tool["function"]["name"] for tool in translate(body, CLAUDE, CHAT)[0]["tools"]] == ["late"]


def test_a_file_for_a_container_is_a_stored_file_to_others():
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [
        {"role": "user", "content": [{"type": "container_upload", "file_id": "f", "cache_control": {"type": "ephemeral"}}, TEXT[CLAUDE]]},
    ]}  # fmt: skip
    assert translate(body, CLAUDE, CLAUDE)[0] == body
    request, report = decode_request(orjson.dumps(body), CLAUDE), StreamReport()
    with pytest.raises(BadRequest, match="id"):
        encode_request(request, CHAT)
    written = orjson.loads(encode_request(drop_unreadable(request, CHAT, report=report), CHAT, report=report))
    assert written["messages"] == [{"role": "user", "content": "Hi"}]
    assert report.losses == {"media": 1}


FORMAT = {"type": "json_schema", "name": "n", "schema": {"type": "object", "properties": {}}}
#: Options, the items that change them, and what is written for Chat.
UPDATES: list[tuple[Block, list[Block], Block]] = [
    ({}, [{"reasoning": {"effort": "low"}}], {"reasoning_effort": "low"}),
    ({"reasoning": {"effort": "high"}}, [{"reasoning": {"effort": "low"}}], {"reasoning_effort": "low"}),
    ({}, [{"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "high"}}], {"reasoning_effort": "high"}),
    ({"reasoning": {"effort": "high"}}, [{"text": {"format": FORMAT}}], {"reasoning_effort": "high", "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": FORMAT["schema"]}}}),
    ({"text": {"format": FORMAT}}, [{"text": {"format": {"type": "text"}}}], {"response_format": {"type": "text"}}),
]  # fmt: skip


@pytest.mark.parametrize(("options", "updates", "written"), UPDATES)
def test_options_that_items_change(options, updates, written):
    items = [{"type": "configuration_update", **update} for update in updates]
    body = {
        "model": "gpt-5.4",
        "input": [{"role": "user", "content": "hi"}, *items, {"role": "user", "content": "go"}],
        **options,
    }
    assert translate(body, OPENAI, OPENAI)[0] == body
    found, report = translate(body, OPENAI, CHAT)
    assert {name: found[name] for name in found.keys() & {"reasoning_effort", "response_format"}} == written
    assert report.losses == {"metadata": len(items)}


LOW, MAX = ({"role": "system", "output_config": {"effort": effort}} for effort in ("low", "max"))
ASKS, ANSWERS = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}
CALLS = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}


@pytest.mark.parametrize(
    ("messages", "effort"),
    [
        ([ASKS, LOW], "low"),
        ([ASKS, {**LOW, "content": "rules"}], "low"),
        ([ASKS, LOW, ANSWERS, ASKS], "high"),
        ([ASKS, LOW, CALLS, RESULT], "low"),
        ([ASKS, LOW, ANSWERS, ASKS, MAX], "max"),
        ([ASKS, {**LOW, "output_config": {}}], "high"),
    ],
)
def test_an_effort_that_a_system_message_sets_for_the_turn(messages, effort):
    body = {"model": "gpt-6", "max_tokens": 99, "output_config": {"effort": "high"}, "messages": messages}
    assert translate(body, CLAUDE, CLAUDE)[0] == body
    written, report = translate(body, CLAUDE, OPENAI)
    assert written["reasoning"] == {"effort": effort}
    assert report.lost == [("metadata", "output_config")] * sum(message["role"] == "system" for message in messages)
    assert "output_config" not in str(written)


# -- events of a socket ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.steer.accepted", "steer": {"id": "steer_1", "previous_response_id": "resp_1"}},
        {"type": "response.steer.pending", "steer": {"id": "steer_1", "previous_response_id": "resp_1"}, "reason": "x", "required_input": []},
        {"type": "response.steer.failed", "steer": {"id": "steer_1"}, "error": {"code": "invalid_input", "message": "m"}, "input": "faster"},
        {"type": "response.inject.created", "response_id": "resp_1"},
        {"type": "response.inject.failed", "response_id": "resp_1", "error": {"code": "x", "message": "m"}, "input": []},
    ],
    ids=lambda event: event["type"],
)  # fmt: skip
async def test_an_event_about_what_the_client_sent_meanwhile(event):
    head, tail = frames(OPENAI, [TEXT[OPENAI]]).split(b"\n\n", 1)
    data = b"%b\n\nevent: %b\ndata: %b\n\n%b" % (head, event["type"].encode(), orjson.dumps(event), tail)
    report = StreamReport()
    same = await staged(data, OPENAI, OPENAI, report)
    lines = (line.removeprefix(b"data: ") for line in same.split(b"\n") if line.startswith(b"data: {"))
    found = next(each for each in map(orjson.loads, lines) if each["type"] == event["type"])
    assert found == {**event, "sequence_number": found["sequence_number"]}
    assert report.clean
    assert not report.losses
    report = StreamReport()
    assert decoded(await staged(data, OPENAI, CHAT, report)) == "Hi"
    assert report.lost == [("metadata", event["type"])]
    report = StreamReport()
    await staged(data, OPENAI, "ollama", report)
    assert report.lost == [("metadata", event["type"])]


# -- phases ------------------------------------------------------------------------------------------------------------

ONE_TEXT = {"openai-chat", "mistral", "ollama", "gemini", "cohere"}
PHASED = [
    {**TEXT[OPENAI], "id": f"msg_{phase}", "phase": phase, "content": [{**TEXT[OPENAI]["content"][0], "text": phase}]}
    for phase in ("commentary", "final_answer")
]


@pytest.mark.parametrize("to", [name for name in DIALECTS if name != OPENAI])
async def test_commentary_is_apart_from_the_answer(to):
    texts = ["commentary\n\nfinal_answer"] if to in ONE_TEXT else ["commentary", "final_answer"]
    report = StreamReport()
    written = await staged(frames(OPENAI, PHASED), OPENAI, to, report)
    response = await collect(source_of([written]), to)
    assert [part.text for part in response.choices[0].parts if isinstance(part, Text)] == texts
    assert report.losses["metadata"] == (0 if to == "ai-sdk" else len(PHASED))
    if DIALECTS[to].answers_whole:
        given = decode_response(orjson.dumps(whole(OPENAI, PHASED)), OPENAI)
        response = decode_response(encode_response(given, to), to)
        assert [part.text for part in response.choices[0].parts if isinstance(part, Text)] == texts


async def test_a_phase_comes_back_from_a_page_of_the_ai_sdk():
    written = await staged(frames(OPENAI, PHASED), OPENAI, "ai-sdk", StreamReport())
    chunks = [orjson.loads(line[6:]) for line in written.split(b"\n") if line.startswith(b"data: {")]
    begun = [chunk["providerMetadata"] for chunk in chunks if chunk["type"] == "text-start"]
    assert begun == [{"openai": {"phase": "commentary"}}, {"openai": {"phase": "final_answer"}}]
    said = [{"type": "text", "text": text, "providerMetadata": each} for text, each in zip("ab", begun, strict=True)]
    asked, again = ({"id": name, "role": "user", "parts": [{"type": "text", "text": "hi"}]} for name in ("1", "3"))
    body = {"id": "chat", "messages": [asked, {"id": "2", "role": "assistant", "parts": said}, again]}
    for model in "gpt-6", "m":
        request = decode_request(orjson.dumps(body), "ai-sdk")
        request.model = model
        report = StreamReport()
        found = orjson.loads(encode_request(request, OPENAI, report=report))
        assert [(item["content"], item.get("phase")) for item in found["input"]] == [
            *(("hi", None), ("a", "commentary"), ("b", "final_answer"), ("hi", None))
        ]
        assert "metadata" not in report.losses


@pytest.mark.parametrize(
    ("model", "phases"),
    [
        ("gpt-5.3-codex", ["commentary", "final_answer"]),
        ("openai/gpt-5.4", ["commentary", "final_answer"]),
        ("gpt-5.4-pro", ["commentary", "final_answer"]),
        ("gpt-6", ["commentary", "final_answer"]),
        ("gpt-5.3", [None, None]),
        ("gpt-5.2-codex", [None, None]),
        ("o3", [None, None]),
        ("m", [None, None]),
    ],
)
@pytest.mark.parametrize("source", [CLAUDE, CHAT])
def test_a_history_of_another_dialect_gets_phases(source, model, phases):
    hi, go = {"role": "user", "content": "hi"}, {"role": "user", "content": "go"}
    if source == CLAUDE:
        called = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
        first = {"role": "assistant", "content": [{"type": "text", "text": "I look"}, called]}
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]}
        body: dict[str, Any] = {"model": model, "max_tokens": 99}
    else:
        called = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        first = {"role": "assistant", "content": "I look", "tool_calls": [called]}
        result = {"role": "tool", "tool_call_id": "c", "content": "ok"}
        body = {"model": model}
    last = {"role": "assistant", "content": "Done"}
    written, _ = translate({**body, "messages": [hi, first, result, last, go]}, source, OPENAI)
    said = [item for item in written["input"] if item.get("role") == "assistant"]
    assert [(item["content"], item.get("phase")) for item in said] == list(zip(["I look", "Done"], phases, strict=True))
    assert faults(OPENAI, written) == []
