"""S2: an OpenAI-shaped history sent to Anthropic, refused with "unexpected `tool_use_id` found in `tool_result` blocks".

What is written is judged by the pairing rules as the server states them, which know nothing of how it was made.

Source: seeds.md S2; dialects.md §3.2 "Pairing rules".
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from streamkit import StreamReport
from streamkit.errors import BadRequest
from streamkit.translation.bodies import decode_request, encode_request
from tests.requests.sdk_types import faults
from tests.sampling import part_of, parts

Messages = list[dict[str, Any]]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]


# -- the rules ---------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """The server would answer 400."""


def judge(messages: Messages) -> None:
    """Refuse messages as the server does: each ``tool_use`` answered in the next message, by results that stand first."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not blocks or any(block["type"] == "text" and not block["text"] for block in blocks):
            raise Refused(f"{where}: text content blocks must be non-empty")
        kinds = [block["type"] for block in blocks]
        before = messages[number - 1]["role"] if number else None
        if message["role"] == "system" and before != "user":
            raise Refused(f"{where}: a system message may only follow a user message")
        if before == "system" and message["role"] != "assistant":
            raise Refused(f"{where}: a system message must be last, or followed by one of the assistant")
        if message["role"] == before:
            raise Refused(f"{where}: roles must alternate")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if kinds[: len(results)] != ["tool_result"] * len(results):
            raise Refused(f"{where}: tool_result blocks must come first")
        if results and message["role"] != "user":
            raise Refused(f"{where}: tool_result blocks can only be in user messages")
        for call_id in results:
            if call_id not in waiting:
                raise Refused(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}")
            waiting.remove(call_id)
        if waiting:
            raise Refused(
                f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {waiting}"
            )
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if calls and message["role"] != "assistant":
            raise Refused(f"{where}: tool_use blocks can only be in assistant messages")
        waiting = [block["id"] for block in calls]
        if len(set(waiting)) < len(waiting):
            raise Refused(f"{where}: `tool_use` ids must be unique")
        for block in calls:
            if type(block["input"]) is not dict or not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
                raise Refused(f"{where}: an input must be an object, an id of letters and digits")


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}],
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]}, {"role": "user", "content": "x"}],
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": "{}"}]}],
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]},
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "a"}]},
        ],
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": i, "input": {}} for i in "ab"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b"}]},
        ],
        [{"role": "user", "content": ""}],
        [{"role": "system", "content": "x"}],
        [{"role": "user", "content": "x"}, {"role": "system", "content": "x"}, {"role": "user", "content": "x"}],
        [{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "x"}],
    ],
)  # fmt: skip
def test_the_judge_refuses(messages):
    with pytest.raises(Refused):
        judge(messages)


# -- the scenario ------------------------------------------------------------------------------------------------------


def to_anthropic(messages: Messages, *, repair: bool = False) -> tuple[Messages, StreamReport]:
    """The messages that an OpenAI-shaped history becomes."""
    report = StreamReport()
    body = json.dumps({"model": "m", "messages": messages, "tools": TOOLS}).encode()
    request = decode_request(body, "openai-chat", report=report)
    written = json.loads(encode_request(request, "anthropic", repair=repair, report=report))
    judge(written["messages"])
    assert faults("anthropic", written) == []
    return written["messages"], report


def call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def calling(*ids: str, content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": [call(call_id) for call_id in ids]}


def tool(call_id: str, content: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def use(call_id: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": arguments or {}}


def result(call_id: str, content: str = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


HI = {"role": "user", "content": "hi"}


def test_a_tool_message_is_a_result_of_the_user_and_the_ids_stay():
    messages, report = to_anthropic([HI, calling("call_1"), tool("call_1")])
    assert messages == [
        HI,
        {"role": "assistant", "content": [use("call_1")]},
        {"role": "user", "content": [result("call_1")]},
    ]
    assert not report.repairs
    assert not report.losses


@pytest.mark.parametrize(("content", "texts"), [(None, []), ("", []), ("wait", [{"type": "text", "text": "wait"}])])
def test_an_assistant_that_calls_is_its_text_if_any_and_the_calls(content, texts):
    said = {**calling("call_1", content=content), "tool_calls": [call("call_1", '{"q": 1.0, "a": "b"}')]}
    messages, report = to_anthropic([HI, said, tool("call_1")])
    assert messages[1] == {"role": "assistant", "content": [*texts, use("call_1", {"q": 1.0, "a": "b"})]}
    assert not report.repairs


def test_several_results_share_one_message_and_come_first():
    messages, report = to_anthropic([HI, calling("a", "b", "c"), tool("a"), tool("b"), tool("c"), HI])
    assert messages[2] == {
        "role": "user",
        "content": [result("a"), result("b"), result("c"), {"type": "text", "text": "hi"}],
    }
    assert len(messages) == 3
    assert not report.repairs


def test_plain_messages_keep_plain_content():
    plain = [HI, {"role": "assistant", "content": "ho"}, HI]
    messages, report = to_anthropic(plain)
    assert messages == plain
    assert not report.repairs


@pytest.mark.parametrize(
    ("history", "path", "words", "mended"),
    [
        # a result without its call
        ([HI, tool("ghost")], "messages[1]", "the tool result 'ghost' has no tool call", {"result_orphaned": 1}),
        (
            [HI, calling("a"), tool("a"), tool("ghost")],
            "messages[3]", "the tool result 'ghost' has no tool call", {"result_orphaned": 1},
        ),
        # a call without its result
        ([HI, calling("a"), HI], "messages[1].tool_calls[0]", "the tool call 'a' has no result", {"result_missing": 1}),
        (
            [HI, calling("a", "b"), tool("b"), HI],
            "messages[1].tool_calls[0]", "the tool call 'a' has no result", {"result_missing": 1},
        ),
        # a result behind another turn of the assistant
        (
            [HI, calling("a"), {"role": "assistant", "content": "so"}, tool("a")],
            "messages[3]", "the tool result 'a' comes after turns[2]", {"result_moved": 1},
        ),
    ],
)  # fmt: skip
def test_what_is_not_paired_is_named_or_mended_and_counted(history, path, words, mended):
    with pytest.raises(BadRequest) as bad:
        to_anthropic(history)
    assert bad.value.path == path
    assert words in bad.value.reason
    _, report = to_anthropic(history, repair=True)
    assert {kind: times for kind, times in report.repairs.items() if kind in mended} == mended


@pytest.mark.parametrize("part", parts(4))
def test_any_history_is_taken_once_it_is_mended(part):
    for number in part_of(range(500), part):
        random.seed(20_261_122 + number)
        history = [HI]
        for _ in range(random.randrange(1, 9)):
            kind = random.randrange(6)
            ids = [random.choice("abc") for _ in range(random.randrange(1, 4))]
            history += [
                [HI],
                [{"role": "assistant", "content": random.choice(["", "ho"])}],
                [calling(*ids, content=random.choice([None, "wait"]))],
                [tool(call_id) for call_id in ids],
                [{"role": "system", "content": "be"}],
                [calling(*dict.fromkeys(ids)), *map(tool, random.sample(ids, len(ids)))],
            ][kind]
        to_anthropic(history, repair=True)
