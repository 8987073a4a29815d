"""Each switch of a policy, both ways, and the three policies as a whole."""

from __future__ import annotations

import pytest
from attrs import evolve

from streamkit import LENIENT, STRICT, TOLERANT, StreamReport, collect, transcode
from streamkit.errors import MissingCallId, NeedsRepair
from streamkit.read_options import ReadOptions
from streamkit.report import REPAIRS, Status
from streamkit.testing import source_of
from tests.cli.command import run
from tests.vectors import VECTORS
from tests.vectors.vector import sse

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
DONE = b"[DONE]"


def chunk(delta, finish=None):
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index=0, call_id="a", name="f", arguments="{}"):
    entry = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    entry["function"] = {key: value for key, value in entry["function"].items() if value is not None}
    return chunk({"tool_calls": [{key: value for key, value in entry.items() if value is not None}]})


STOP, CALLS = chunk({}, "stop"), chunk({}, "tool_calls")
TEXT_ONLY = sse(chunk({"content": "Hi"}), DONE)
CALL_THEN_DONE = sse(call(), DONE)
CALL_THEN_END = sse(call())
CUT_CALL = sse(call(arguments='{"x":'), DONE)


async def read(body, policy):
    return await collect(source_of([body]), "openai-chat", ReadOptions(policy=policy))


@pytest.mark.parametrize(
    ("body", "accepts"),
    [
        (TEXT_ONLY, {"strict": None, "tolerant": None, "lenient": "stop"}),
        (CALL_THEN_DONE, {"strict": None, "tolerant": "tool_calls", "lenient": "tool_calls"}),
        (CALL_THEN_END, {"strict": None, "tolerant": None, "lenient": "tool_calls"}),
        (CUT_CALL, {"strict": None, "tolerant": None, "lenient": None}),
        (CALL_THEN_END[:-20], {"strict": None, "tolerant": None, "lenient": None}),
        (sse(chunk({"content": "Hi"})), {"strict": None, "tolerant": None, "lenient": None}),
        (b"", {"strict": None, "tolerant": None, "lenient": None}),
    ],
    ids=["text and [DONE]", "call and [DONE]", "call and end", "cut call", "cut frame", "text and end", "nothing"],
)
async def test_an_end_without_a_stop_reason(body, accepts):
    for name, reason in accepts.items():
        response = await read(body, {"strict": STRICT, "tolerant": TOLERANT, "lenient": LENIENT}[name])
        assert response.clean is (reason is not None), name
        if reason is not None:
            assert response.choices[0].stop_reason == reason, name
            assert response.report.repairs == {"finish_derived": 1}, name


async def test_a_missing_id_is_made_or_refused():
    body = sse(call(call_id=None), CALLS, DONE)
    assert (await read(body, TOLERANT)).tool_calls[0].id
    refused = await read(body, evolve(TOLERANT, missing_id="refuse"))
    assert isinstance(refused.report.error, MissingCallId)
    assert refused.report.status is Status.FAILED


async def test_a_name_in_pieces_is_joined_or_the_first_kept():
    body = sse(call(name="edit_", arguments=None), call(call_id=None, name="file"), CALLS, DONE)
    assert (await read(body, TOLERANT)).tool_calls[0].name == "edit_file"
    kept = await read(body, evolve(TOLERANT, name_pieces="first"))
    assert kept.tool_calls[0].name == "edit_"
    assert kept.report.repairs == {"name_changed": 1}


async def test_two_objects_in_one_call_are_reported_or_split():
    body = sse(call(arguments='{"x":1}'), call(call_id=None, name=None, arguments='{"y":2}'), CALLS, DONE)
    reported = await read(body, TOLERANT)
    assert [(made.arguments, made.verdict.kind) for made in reported.tool_calls] == [('{"x":1}{"y":2}', "malformed")]
    split = await read(body, LENIENT)
    assert [(made.name, made.arguments) for made in split.tool_calls] == [("f", '{"x":1}'), ("f", '{"y":2}')]
    assert split.report.repairs == {"objects_split": 1, "id_missing": 1}
    assert len({made.id for made in split.tool_calls}) == 2


async def test_strict_stops_at_the_first_repair_and_keeps_what_came_before():
    body = sse(
        chunk({"content": "Hi"}),
        call(arguments='{"x":1}'),
        call(call_id="other", name=None, arguments=" "),
        CALLS,
        DONE,
    )
    strict = await read(body, STRICT)
    assert isinstance(strict.report.error, NeedsRepair)
    assert strict.report.error.kind == "id_changed"
    assert strict.text == "Hi"
    assert [made.verdict.kind for made in strict.tool_calls] == ["truncated"]
    assert strict.clean is False


@pytest.mark.parametrize("vector", [one for one in VECTORS if one.repairs], ids=lambda one: f"{one.dialect} {one.name}")
async def test_strict_reports_what_it_would_have_repaired(vector):
    report = StreamReport()
    strict = await collect(source_of([vector.body]), vector.dialect, ReadOptions(policy=STRICT), report=report)
    assert strict.clean is False
    if isinstance(report.error, NeedsRepair):
        assert report.repairs[report.error.kind] >= 1
        assert REPAIRS[report.error.kind] in str(report.error)
    else:  # it is a policy's own error, a derived finish, or a fault of the stream
        assert isinstance(report.error, MissingCallId) or not report.clean


@pytest.mark.parametrize(
    "vector", [one for one in VECTORS if not one.repairs], ids=lambda one: f"{one.dialect} {one.name}"
)
async def test_what_needs_no_repair_is_the_same_under_every_policy(vector):
    read_as = [
        await collect(
            source_of([vector.body]), vector.dialect, ReadOptions(policy=policy, make_id=lambda prefix: f"{prefix}1")
        )
        for policy in (STRICT, TOLERANT)
    ]
    assert read_as[0].choices == read_as[1].choices
    assert read_as[0].clean == read_as[1].clean


async def test_strict_passes_the_frames_before_and_writes_an_error_frame():
    good, bad = sse(chunk({"content": "Hi"})), sse(call(call_id=" "), CALLS, DONE)
    async with transcode(source_of([good + bad]), "openai-chat", "openai-chat", ReadOptions(policy=STRICT)) as stream:
        output = b"".join([piece async for piece in stream])
    assert output.startswith(good)
    assert b"identity_blank" in output
    assert b"[DONE]" not in output


def test_the_command_line_takes_a_policy():
    assert run("inspect", "--json", stdin=TEXT_ONLY).returncode == 3
    assert run("inspect", "--json", "--policy", "lenient", stdin=TEXT_ONLY).returncode == 0
    done = run(
        "convert",
        "--policy",
        "strict",
        "--from",
        "openai-chat",
        "--to",
        "anthropic",
        stdin=sse(call(call_id=" "), CALLS, DONE),
    )
    assert done.returncode == 1
    assert b"identity_blank" in done.stderr
