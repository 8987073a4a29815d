"""S5: one ``currentToolCall`` variable lost arguments across chunks: "Unexpected end of JSON input".

Source: seeds.md S5.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streamkit import Status, collect, parse_arguments, transcode
from streamkit.events import ToolCallFinished, ToolCallStarted
from streamkit.recipes import events_of
from streamkit.testing import cuts, source_of
from tests.cli.command import run

FRAGMENTS = ["", '{"itinerary', '_id": "abc123"}']
WHOLE = '{"itinerary_id": "abc123"}'
LOG = "streamkit.tool_calls"


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode()


def start(index: int, arguments: str = "") -> bytes:
    function = {"name": f"f{index}", "arguments": arguments}
    return chunk({"tool_calls": [{"index": index, "id": f"id{index}", "type": "function", "function": function}]})


def more(index: int, arguments: str) -> bytes:
    return chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})


ROLE = chunk({"role": "assistant", "content": None})
FINISH = chunk({}, "tool_calls")
DONE = b"data: [DONE]\n\n"
ONE = [ROLE, start(0, FRAGMENTS[0]), more(0, FRAGMENTS[1]), more(0, FRAGMENTS[2]), FINISH, DONE]
INTERLEAVED = [
    ROLE,
    start(0, ""),
    start(1, '{"n"'),
    more(0, FRAGMENTS[1]),
    more(1, ": 1"),
    more(0, FRAGMENTS[2]),
    more(1, "}"),
    FINISH,
    DONE,
]


async def calls_of(reads: list[bytes], dialect: str = "openai-chat") -> list[tuple[str, str, str]]:
    response = await collect(source_of(reads), dialect)
    assert response.clean
    return [(call.id, call.arguments, call.verdict.kind) for call in response.tool_calls]


async def test_fragments_of_one_call_are_one_call():
    for reads in cuts(b"".join(ONE), exhaustive=True, pairs_up_to=0):
        response = await collect(source_of(reads), "openai-chat")
        (call,) = response.tool_calls
        assert (call.id, call.name, call.arguments, call.verdict.kind) == ("id0", "f0", WHOLE, "complete")
        assert parse_arguments(call.arguments) == {"itinerary_id": "abc123"}
        assert not response.report.repairs


@pytest.mark.parametrize("dialect", ["anthropic", "ollama", "openai-chat"])
async def test_interleaved_calls_keep_their_own_arguments_in_every_dialect(dialect):
    expected = [WHOLE, '{"n": 1}']
    for reads in cuts(b"".join(INTERLEAVED)):
        assert await calls_of(reads) == [("id0", WHOLE, "complete"), ("id1", '{"n": 1}', "complete")]
        async with transcode(source_of(reads), "openai-chat", dialect, reencode=True) as stream:
            output = [piece async for piece in stream]
        assert [arguments for _, arguments, _ in await calls_of(output, dialect)] == expected


async def test_nothing_is_finished_before_the_protocol_ends_it():
    """The text parses long before; a fragment may still follow, even behind the finish reason."""
    late = [*INTERLEAVED[:-2], FINISH, more(1, " "), DONE]
    given = 0

    async def source() -> AsyncIterator[bytes]:
        nonlocal given
        for given, read in enumerate(late, 1):  # noqa: B007 - counted for the assertion below
            yield read

    seen: list[tuple[int, type]] = []
    async with events_of(source(), "openai-chat") as stream:
        async for batch in stream:
            seen += [(given, type(event)) for event in batch if type(event) in {ToolCallStarted, ToolCallFinished}]
    assert [kind for _, kind in seen] == [ToolCallStarted] * 2 + [ToolCallFinished] * 2
    assert all(at < len(late) - 2 for at, kind in seen if kind is ToolCallStarted)
    assert all(at == len(late) for at, kind in seen if kind is ToolCallFinished)


@pytest.mark.parametrize(
    ("arguments", "kind", "position"),
    [("", "empty", None), ('{"a":', "truncated", 5), ("{'a':1}", "malformed", 1), ("[]", "not_an_object", 0)],
)
async def test_bad_arguments_give_a_verdict_and_no_exception(arguments, kind, position):
    for reads in cuts(b"".join([ROLE, start(0, arguments), start(1, "{}"), FINISH, DONE]), sample=5):
        response = await collect(source_of(reads), "openai-chat")
        bad, good = response.tool_calls
        assert (bad.arguments, bad.verdict.kind, bad.verdict.position) == (arguments, kind, position)
        assert (bad.verdict.reason is None) is (kind == "empty")
        assert good.verdict.kind == "complete"


async def test_a_stream_that_is_cut_inside_a_call_is_no_exception_and_no_success():
    whole = b"".join(ONE)
    for end in range(len(ROLE) + len(ONE[1]) + 1, len(whole) - len(DONE) - len(FINISH)):
        response = await collect(source_of([whole[:end]]), "openai-chat")
        assert response.report.status is Status.CUT
        (call,) = response.tool_calls
        assert call.verdict.kind == "truncated"
        assert WHOLE.startswith(call.arguments)
        assert response.choices[0].stop_reason is None


async def test_the_debug_log_shows_start_growth_and_end_of_each_call(caplog):
    with caplog.at_level(logging.DEBUG, LOG):
        await collect(source_of(INTERLEAVED), "openai-chat")
    lines = [record.getMessage() for record in caplog.records if record.name == LOG]
    told = {name: [line for line in lines if f"call {name}:" in line] for name in ("id0", "id1")}
    assert sum(map(len, told.values())) == len(lines)
    for name, function, growth, total in [("id0", "f0", [11, 26], 26), ("id1", "f1", [4, 7, 8], 8)]:
        sizes = [after - before for before, after in zip([0, *growth], growth, strict=False)]
        grown = [line for line in told[name] if "in all" in line]
        assert [
            f"+{size} characters, {so_far} in all" in line
            for size, so_far, line in zip(sizes, growth, grown, strict=True)
        ]
        assert [f"call {name}: started" in line for line in told[name]] == [True] + [False] * (len(grown) + 1)
        assert told[name][0].endswith(function)
        assert told[name][-1] == f"call {name}: finished with {total} characters"


async def test_the_debug_log_says_that_a_call_was_not_ended(caplog):
    with caplog.at_level(logging.DEBUG, LOG):
        await collect(source_of(ONE[:3]), "openai-chat")
    assert caplog.messages[-1] == "call id0: finished with 11 characters, not ended"


def test_the_command_line_says_the_same():
    inspected = run("inspect", "--json", stdin=b"".join(INTERLEAVED))
    assert inspected.returncode == Status.DONE
    calls = json.loads(inspected.stdout)["choices"][0]["tool_calls"]
    assert [call["arguments"] for call in calls] == [WHOLE, '{"n": 1}']
    cut = run("inspect", "--json", "--from", "openai-chat", stdin=b"".join(ONE[:3]))
    assert cut.returncode == Status.CUT
    document = json.loads(cut.stdout)
    assert document["clean"] is False
    assert document["choices"][0]["tool_calls"][0]["arguments"] == '{"itinerary'
    converted = run("convert", "--from", "openai-chat", "--to", "ollama", stdin=b"".join(ONE))
    assert converted.returncode == Status.DONE
    assert b'"arguments":{"itinerary_id": "abc123"}' in converted.stdout
