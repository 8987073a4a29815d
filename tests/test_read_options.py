"""``tools=`` and ``offered=``: what each does, in every place that takes them, with each form of the tools."""

from __future__ import annotations

import json
import sys

import pytest

from streamkit import (
    Observer,
    ReadOptions,
    StreamReport,
    Tool,
    ToolSchemas,
    UsageError,
    accumulate_tool_calls,
    check_json,
    check_schema_early,
    collect,
    decode,
    decode_request,
    decode_response,
    find_text_calls,
    parse_sse,
    pipe,
    restore_calls,
    restore_response_calls,
    transcode,
)
from streamkit.events import ToolCallDoomed
from streamkit.recipes import events_of
from streamkit.testing import source_of
from streamkit.text.identifiers import portable_name

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
RAW = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
RESPONSES = {
    "model": "m",
    "input": "Hi",
    "tools": [
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {"type": "custom", "name": "patch"},
        {"type": "web_search"},
        {
            "type": "namespace",
            "name": "mcp__files",
            "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}],
        },
    ],
}
READ = decode_request(json.dumps(RESPONSES).encode(), "openai-responses").tools


def stream(name: str, arguments: str = '{"x":"no"}') -> bytes:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    deltas = [{"tool_calls": [call]}, {}]
    reasons = [None, "tool_calls"]
    chunks = [
        {"id": "i", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in zip(deltas, reasons, strict=True)
    ]
    return b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


async def verdict(name: str, tools, arguments: str = '{"x":"no"}') -> str:
    answer = await collect(source_of([stream(name, arguments)]), "openai-chat", ReadOptions(tools=tools))
    return answer.tool_calls[0].verdict.kind


async def written(name: str, **given) -> bytes:
    async with transcode(source_of([stream(name)]), "openai-chat", "openai-responses", ReadOptions(**given)) as output:
        return b"".join([piece async for piece in output])


# -- the places that check ---------------------------------------------------------------------------------------------


async def counted(pipe_of) -> list[str]:
    """The verdicts in the report of a pipe over a call whose arguments the schema refuses."""
    report = StreamReport()
    async with pipe_of(source_of([stream("f")]), report) as output:
        async for _ in output:
            pass
    return [*report.verdicts.elements()]


def counting(make):
    return lambda tools: counted(lambda source, report: make(source, ReadOptions(tools=tools), report))


async def no_change(batches):
    async for batch in batches:
        yield batch


async def by_collect(tools) -> list[str]:
    return [await verdict("f", tools)]


async def by_decode_response(tools) -> list[str]:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":"no"}'}}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}}
    response = decode_response(json.dumps({"choices": [choice]}).encode(), "openai-chat", ReadOptions(tools=tools))
    return [call.verdict.kind for call in response.tool_calls]


async def by_observer(tools) -> list[str]:
    observer = Observer("openai-chat", ReadOptions(tools=tools))
    observer.feed(stream("f"))
    observer.finish()
    return [*observer.report.verdicts.elements()]


async def by_check_json(tools) -> list[str]:
    stages = parse_sse(), decode("openai-chat"), accumulate_tool_calls(), check_json(tools=tools)
    return await counted(lambda source, report: pipe(source, *stages, report=report))


async def by_check_schema_early(tools) -> list[str]:
    stages = parse_sse(), decode("openai-chat"), accumulate_tool_calls(), check_schema_early(tools)
    async with pipe(source_of([stream("f")]), *stages) as batches:
        doomed = [event async for batch in batches for event in batch if isinstance(event, ToolCallDoomed)]
    return ["schema_invalid"] * len(doomed)


PLACES = {
    "collect": by_collect,
    "decode_response": by_decode_response,
    "Observer": by_observer,
    "check_json": by_check_json,
    "check_schema_early": by_check_schema_early,
    "events_of": counting(lambda source, how, report: events_of(source, "openai-chat", how, report=report)),
    "transcode": counting(
        lambda source, how, report: transcode(source, "openai-chat", "anthropic", how, report=report)
    ),
    "transcode, frames pass": counting(
        lambda source, how, report: transcode(source, "openai-chat", "openai-chat", how, report=report)
    ),
    "transcode, with a stage": counting(
        lambda source, how, report: transcode(
            source, "openai-chat", "anthropic", how, stages=[no_change], report=report
        )
    ),
}
FORMS = {
    "as read": READ,
    "as they stand": RAW,
    "schemas": ToolSchemas(RAW),
    "a mapping": ToolSchemas({"f": SCHEMA}),
    "schemas of what was read": ToolSchemas(READ),
    "none at all": [],
}


@pytest.mark.parametrize("tools", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
async def test_tools_are_what_arguments_are_checked_against(place, tools):
    assert await place(tools) == ["schema_invalid"]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
async def test_without_the_extra_the_error_says_what_to_write_instead(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(UsageError, match=r"streamkit-llm\[schema\].*ReadOptions\(offered=request.tools\)"):
        await place(READ)


async def test_what_was_offered_is_not_checked_and_needs_no_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    response = await collect(source_of([stream("f")]), "openai-chat", ReadOptions(offered=READ))
    assert response.tool_calls[0].verdict.kind == "complete"
    find_text_calls("hermes", offered=RAW)
    restore_calls(offered=READ)
    restore_response_calls(response, offered=READ)


@pytest.mark.parametrize(
    "given", [{"tools": READ}, {"tools": ToolSchemas(READ)}, {"offered": READ}, {"offered": READ, "tools": RAW}]
)
async def test_calls_get_the_names_back_that_the_client_gave_where_the_tools_were_read(given):
    found = await written("mcp__files__read", **given)
    assert b'"namespace":"mcp__files"' in found
    assert b'"name":"read"' in found
    assert b'"namespace"' not in await written("mcp__files__read")


@pytest.mark.parametrize("name", ["f", "mcp__files__read", "read", portable_name("files.list")])
async def test_schemas_of_tools_that_were_read_know_each_name_that_a_call_may_have(name):
    schemas = ToolSchemas([*READ, Tool("files.list", parameters=SCHEMA)])
    assert await verdict(name, schemas) == "schema_invalid"
    assert await verdict(name, schemas, '{"x":1}') == "complete"


async def test_a_custom_tool_takes_any_object_and_a_tool_of_the_provider_is_not_called():
    schemas = ToolSchemas(READ)
    assert await verdict("patch", schemas, '{"input":"x"}') == "complete"
    assert "web_search" not in schemas


def test_what_is_no_definition_is_refused():
    with pytest.raises(UsageError, match="not a tool definition"):
        transcode(source_of([]), "openai-chat", "anthropic", ReadOptions(tools=[{"type": "function", "function": 1}]))
