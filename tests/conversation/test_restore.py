"""Calls come back to the client under the names and as the kinds of tool that it offered (dialects.md §1.8, §7.3)."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit import collect, response_events, transcode
from streamkit.conversation.messages import Choice, Response, Tool, ToolCall
from streamkit.conversation.restore import ToolNames, ToolRestorer, restore_response_calls
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import ToolCallArguments, ToolCallFinished, ToolCallStarted
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.text.identifiers import portable_name
from streamkit.tool_calls.check import JSONChecker
from streamkit.translation.bodies import decode_request, encode_request

PATCH = Tool("apply_patch", kind="custom")
#: Arguments, whether they ended, and the free text, its verdict, whether it may be used, repairs and losses.
ARGUMENTS = [
    ("its one string", '{"input":"*** Begin\\n+é \\ud83d\\ude00"}', True, ("*** Begin\n+é 😀", "complete", True), {}, {}),
    ("white space", ' { "input" : "x" } ', True, ("x", "complete", True), {}, {}),
    ("an empty string", '{"input":""}', True, ("", "complete", True), {}, {}),
    ("nothing", "", True, ("", "complete", True), {}, {}),
    ("no JSON at all", "*** Begin Patch", True, ("*** Begin Patch", "complete", True), {"custom_input_bare": 1}, {}),
    ("another member", '{"patch":"x"}', True, ('{"patch":"x"}', "complete", True), {"custom_input_bare": 1}, {}),
    ("no string", '{"input":["x"]}', True, ('{"input":["x"]}', "complete", True), {"custom_input_bare": 1}, {}),
    ("a string alone", '"x"', True, ('"x"', "complete", True), {"custom_input_bare": 1}, {}),
    ("members beside it", '{"why":{"input":"no"},"input":"x"}', True, ("x", "complete", True), {}, {"custom_tool_members": 1}),
    ("cut in the string", '{"input":"*** Be', True, ("*** Be", "truncated", False), {}, {}),
    ("cut before it", '{"inp', True, ("", "truncated", False), {}, {}),
    ("cut by the protocol", '{"input":"x"}', False, ("x", "truncated", False), {}, {}),
    ("cut by the protocol before it", '{"inp', False, ("", "truncated", False), {}, {}),
    ("malformed behind the string", '{"input":"x",,}', True, ("x", "malformed", False), {}, {}),
    ("half a pair", '{"input":"a\\ud83d"}', True, ("a\ufffd", "complete", True), {"lone_surrogate": 1}, {}),
    ("given twice", '{"input":"x","input":"y"}', True, ("xy", "malformed", False), {}, {}),
]  # fmt: skip
NAMED = [pytest.param(*row[1:], id=row[0].replace(" ", "-")) for row in ARGUMENTS]


def events_of(name, fragments, *, ended=True, choice=0):
    events = [ToolCallStarted(0, "c1", name, choice)]
    events += [ToolCallArguments(0, fragment, choice) for fragment in fragments]
    events.append(ToolCallFinished(0, "c1", name, "".join(fragments), choice, ended=ended))
    return JSONChecker().feed(events)


def restored(tools, events):
    report = StreamReport()
    machine = ToolRestorer(ToolNames.of(tools), report=report)
    return [made for event in events for made in machine.feed([event])], report


@pytest.mark.parametrize("width", [1, 3, 1000])
@pytest.mark.parametrize(("arguments", "ended", "expected", "repairs", "losses"), NAMED)
def test_a_custom_tool_gets_its_free_text(arguments, ended, expected, repairs, losses, width):
    fragments = [arguments[at : at + width] for at in range(0, len(arguments), width)]
    out, report = restored([PATCH], events_of("apply_patch", fragments, ended=ended))
    start, *grown, end = out
    assert (start.name, start.kind, end.name, end.kind) == ("apply_patch", "custom") * 2
    assert "".join(event.fragment for event in grown) == end.arguments
    assert (end.arguments, end.verdict.kind, end.ended) == expected
    assert (dict(report.repairs), dict(report.losses)) == (repairs, losses)
    assert [kept.arguments for kept in report.withheld] == [arguments] * len(losses)


@pytest.mark.parametrize(("arguments", "ended", "expected", "repairs", "losses"), NAMED)
def test_so_it_does_in_a_whole_response(arguments, ended, expected, repairs, losses):
    [*_, judged] = events_of("apply_patch", [arguments], ended=ended)
    call = ToolCall(0, "c1", "apply_patch", arguments, verdict=judged.verdict, ended=ended)
    response = Response("anthropic", choices=[Choice(parts=[call])])
    restore_response_calls(response, [PATCH])
    assert (call.kind, call.arguments, call.verdict.kind, call.ended) == ("custom", *expected)
    assert (dict(response.report.repairs), dict(response.report.losses)) == (repairs, losses)


@given(st.text(), st.lists(st.integers(1, 9), min_size=1))
def test_free_text_grows_as_it_is_written_however_it_was_cut(text, widths):
    arguments, fragments = orjson.dumps({"input": text}).decode(), []
    while arguments:
        width = widths[len(fragments) % len(widths)]
        fragments.append(arguments[:width])
        arguments = arguments[width:]
    out, _ = restored([PATCH], events_of("apply_patch", fragments))
    assert "".join(event.fragment for event in out[1:-1]) == out[-1].arguments == text
    assert len(out) >= min(2 + len(text) // 20, len(fragments))  # nothing is held back until the end


def test_names_that_had_to_be_written_otherwise_are_the_clients_again():
    name = "files.read"
    out, _ = restored([Tool(name)], events_of(portable_name(name), ["{}"]))
    assert [event.name for event in out if hasattr(event, "name")] == [name, name]
    call = ToolCall(0, "c1", portable_name(name), "{}")
    restore_response_calls(Response("anthropic", choices=[Choice(parts=[call])]), [Tool(name)])
    assert call.name == name


def test_a_tool_that_has_that_name_by_itself_keeps_it():
    name = "files.read"
    events = events_of(portable_name(name), ["{}"])
    out, _ = restored([Tool(name), Tool(portable_name(name))], events)
    assert out == events


def test_other_events_and_tools_pass_as_they_are():
    events = [*events_of("f", ["{}"]), *events_of("apply_patch", ["x"], choice=1)]
    assert restored([Tool("f")], events)[0] == events
    custom = [ToolCallStarted(0, "c1", "apply_patch", kind="custom"), ToolCallArguments(0, "free")]
    assert restored([PATCH], custom)[0] == custom  # the upstream has custom tools itself
    assert not ToolNames.of([Tool("f"), Tool("g")])


async def test_the_recipe_restores_what_the_request_had_to_rewrite():
    asked = {
        "model": "m",
        "input": "?",
        "tools": [
            {"type": "custom", "name": "apply_patch"},
            {
                "type": "function",
                "name": "files.read",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
        ],
    }
    request = decode_request(orjson.dumps(asked), "openai-responses")
    sent = orjson.loads(encode_request(request, "anthropic", max_tokens=100))
    body = anthropic(
        [(tool["name"], arguments) for tool, arguments in zip(sent["tools"], ['{"input":"x"}', "{}"], strict=True)]
    )
    async with transcode(source_of([body]), "anthropic", "openai-responses", ReadOptions(tools=request.tools)) as pipe:
        out = b"".join([data async for data in pipe])
    read = await collect(source_of([out]), "openai-responses")
    assert [(call.kind, call.name, call.arguments) for call in read.tool_calls] == [
        ("custom", "apply_patch", "x"),
        ("function", "files.read", "{}"),
    ]


CODEX_TOOLS = [
    {"type": "namespace", "name": "mcp__files", "description": "d", "tools": [
        {"type": "function", "name": "files.read", "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "custom", "name": "apply_patch", "description": "d"},
    ]},
    {"type": "namespace", "name": "mcp__" + "w" * 60, "description": "d", "tools": [
        {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False},
    ]},
]  # fmt: skip


@pytest.mark.parametrize("upstream", sorted(set(DIALECTS.built_in) - {"openai-responses"}))
async def test_streamed_calls_of_tools_in_namespaces_are_the_clients_again(upstream):
    body = {"model": "m", "input": "?", "tools": CODEX_TOOLS}
    request = decode_request(orjson.dumps(body), "openai-responses")
    offered = decode_request(encode_request(request, upstream, max_tokens=100), upstream).tools
    texts = ["{}", '{"input":"x"}' if offered[1].kind == "function" else "x", "{}"]
    said = stream_of(upstream, offered, texts)
    async with transcode(source_of([said]), upstream, "openai-responses", ReadOptions(tools=request.tools)) as pipe:
        out = b"".join([data async for data in pipe])
    read = await collect(source_of([out]), "openai-responses")
    assert read.clean
    calls = [(call.kind, call.name, (call.extras or {}).get("namespace"), call.arguments) for call in read.tool_calls]
    assert calls == [
        ("function", "files.read", "mcp__files", "{}"),
        ("custom", "apply_patch", "mcp__files", "x"),
        ("function", "look", "mcp__" + "w" * 60, "{}"),
    ]
    done = [orjson.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: ")]
    begun = [event["item"]["namespace"] for event in done if event["type"] == "response.output_item.added"]
    assert begun == ["mcp__files", "mcp__files", "mcp__" + "w" * 60]  # from its first event on


def stream_of(dialect, tools, arguments):
    """A stream of calls of those tools, as the dialect writes it."""
    pairs = enumerate(zip(tools, arguments, strict=True))
    parts = [ToolCall(number, f"call_0000{number}", tool.name, text, tool.kind) for number, (tool, text) in pairs]
    said = Response(dialect, id="r", model="m", choices=[Choice(parts=parts, stop_reason="tool_calls")], clean=True)
    encoder = DIALECTS[dialect].encoder(Encoding(), StreamReport())
    return encoder.feed(list(response_events(said))) + encoder.finish()


def anthropic(calls):
    """A stream of those calls, as the API writes it."""
    parts = [ToolCall(index, f"toolu_{index}", *call) for index, call in enumerate(calls)]
    said = Response(
        "anthropic", id="msg_1", model="m", choices=[Choice(parts=parts, stop_reason="tool_calls")], clean=True
    )
    encoder = DIALECTS["anthropic"].encoder(Encoding(), StreamReport())
    return encoder.feed(list(response_events(said))) + encoder.finish()
