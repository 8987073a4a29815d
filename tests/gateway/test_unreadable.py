"""What only one vendor can read, in front of upstreams of several: skipped for one that can, refused with a sentence, or dropped."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import orjson
import pytest

from tests.gateway.running import in_turn, leg
from tests.web.faults import as_asked


class Row(NamedTuple):
    """A request of ``client`` that refers to ``name``; how the error begins, and the loss if it is dropped."""

    client: str
    path: str
    body: dict[str, Any]
    name: bytes
    error: str
    loss: str


FILE = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
Q = {"type": "text", "text": "Q"}
SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
WHO = "which only another provider can"
ROWS = {
    "a container": Row(
        "anthropic", "/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "Q"}], "container": "c_1"}, b'"c_1"',
        f"container: openai-chat cannot read a container by its id, {WHO}; send its files", "parameter",
    ),
    "a file": Row(
        "anthropic", "/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": [FILE, Q]}]}, b'"file_1"',
        f"messages[0].content[0]: openai-chat cannot read a file by its id, {WHO}; send its bytes", "media",
    ),
    "a prompt": Row(
        "openai-responses", "/v1/responses", {"input": "Q", "prompt": {"id": "pmpt_1"}}, b'"pmpt_1"',
        f"prompt: openai-chat cannot read a prompt by its id, {WHO}; send the text of the prompt", "parameter",
    ),
    "a vector store": Row(
        "openai-responses", "/v1/responses", {"input": "Q", "tools": [SEARCH]}, b'"vs_1"',
        f"tools[0].vector_store_ids: openai-chat cannot read a vector store by its id, {WHO}; send", "tool_definition",
    ),
}  # fmt: skip


def body_of(row: Row, *, stream: bool = False) -> bytes:
    return orjson.dumps({"model": "m", "stream": stream, **row.body})


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_an_upstream_that_cannot_read_it_is_skipped_for_one_that_can(row, stream):
    async with in_turn(as_asked("openai-chat"), leg(as_asked(row.client), dialect=row.client)) as running:
        answer = await running.ask(row.path, body=body_of(row, stream=stream))
        assert (answer.status, running.seen) == (200, [0, 1])
        assert await running.outcomes() == {("one", "request_unfit"): 1, ("two", "success"): 1}
    assert row.name in running.evils[1].requests[0].body


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_where_no_upstream_can_the_client_is_told_what_it_is_and_what_to_send_instead(row):
    async with in_turn(as_asked("openai-chat"), leg(as_asked("ollama"), dialect="ollama"), retries=3) as running:
        answer = await running.ask(row.path, body=body_of(row))
        assert await running.outcomes() == {("one", "request_unfit"): 1, ("two", "request_unfit"): 1}
        assert running.seen == [0, 0]
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(row.error)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_an_upstream_may_get_the_request_without_it_and_the_loss_is_counted(row):
    async with in_turn(leg(as_asked("openai-chat"), unreadable="drop")) as running:
        answer = await running.ask(row.path, body=body_of(row))
        assert (answer.status, running.seen) == (200, [1])
        assert running.counted("losses_total", kind=row.loss, way="request") == 1
    sent = running.evils[0].requests[0].body
    assert b'"Q"' in sent
    assert row.name not in sent
