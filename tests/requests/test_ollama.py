"""Requests to Ollama's ``/api/chat``, both directions: each row of dialects.md §4.1, §7.3 and §7.4 that concerns them."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.conversation.pairing import check_pairing
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from tests.clients.shapes import ASK
from tests.corpora import requests
from tests.requests.sdk_types import faults
from tests.vectors.ollama import end

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
LOOK = {"type": "function", "function": {"name": "look", "description": "looks", "parameters": SCHEMA}}
USER = Turn("user", [Text("Hi")])
CALL = ToolCall(0, "a", "look", '{"q": 1.0}')
ANSWERED = [Turn("assistant", [CALL]), Turn("user", [ToolResult("a", [Text("yes")])])]
WHOLE: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "what is it?", "images": ["AA==", "AAA="]},
        {
            "role": "assistant",
            "content": "so",
            "thinking": "hm",
            "tool_calls": [
                {"id": "call_1", "function": {"name": "look", "arguments": {"q": 1.5}}},
                {"id": "call_2", "function": {"name": "look", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "a cat", "images": ["AA=="], "tool_name": "look", "tool_call_id": "call_1"},
        {"role": "tool", "content": "", "tool_name": "look", "tool_call_id": "call_2"},
        {"role": "system", "content": "more rules"},
        {"role": "user", "content": "go on"},
    ],
    "tools": [LOOK, {"type": "function", "function": {"name": "stop"}}],
    "options": {
        "num_predict": 9, "temperature": 0.5, "top_p": 1, "top_k": 3, "stop": ["x"], "seed": 7,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "num_ctx": 4096, "mirostat": 0,
    },
    "format": SCHEMA,
    "think": "high",
    "logprobs": True,
    "top_logprobs": 2,
    "stream": True,
    "keep_alive": "5m",
    "truncate": False,
    "shift": False,
}  # fmt: skip


def read(body: dict[str, Any]) -> Request:
    return decode_request(orjson.dumps(body), "ollama")


def write(request: Request, **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    options = {"linked_media": "drop", **options}
    return orjson.loads(encode_request(request, "ollama", report=report, **options)), report


def chat(*turns: Turn, **fields: Any) -> Request:
    """A request that came in another dialect."""
    return Request("openai-chat", "m", list(turns), **fields)


def normal(body: dict[str, Any]) -> dict[str, Any]:
    """What a body is once it was read and written again.

    ``content``, ``stream`` and the type of a tool are always said, null, ``""`` for ``format`` and empty lists and ids never; an
    ``index`` that counts the calls goes, and so does a call's ``type``; of a call and its result both have an id if one has,
    and a result names the tool.
    """
    said = {name: value for name, value in deepcopy(body).items() if value not in (None, "", [], {})}
    said["stream"] = body.get("stream") is not False
    for tool in said.get("tools", []):
        tool.setdefault("type", "function")
    said["messages"] = [normal_message(message) for message in body["messages"]]
    name_results(said["messages"])
    return said


def name_results(messages: list[dict[str, Any]]) -> None:
    names: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            names = [call["function"]["name"] for call in message.get("tool_calls", [])]
        elif message["role"] == "tool" and names:
            names.remove(message.setdefault("tool_name", names[0]))


def normal_message(message: dict[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in deepcopy(message).items() if value not in (None, "", [])}
    for number, call in enumerate(said.get("tool_calls", [])):
        call.pop("type", None)
        call["function"].setdefault("arguments", {})
        if call["function"].get("index") == number:
            del call["function"]["index"]
    return {"content": "", **said, "role": message["role"].lower()}


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_whole_request_is_read():
    request = read(WHOLE)
    assert request.model == "m"
    assert request.stream is True
    assert [turn.role for turn in request.turns] == ["system", "user", "assistant", "user", "system", "user"]
    _, asked, said, answered, *_ = request.turns
    assert asked.parts == [Media("image", data="AA=="), Media("image", data="AAA="), Text("what is it?")]
    calls = [ToolCall(0, "call_1", "look", '{"q":1.5}'), ToolCall(1, "call_2", "look", "{}")]
    assert said.parts == [Reasoning("hm"), Text("so"), *calls]
    results = [
        ToolResult("call_1", [Media("image", data="AA=="), Text("a cat")], "look"),
        ToolResult("call_2", [], "look"),
    ]
    assert answered.parts == results
    assert request.tools == [Tool("look", "looks", SCHEMA), Tool("stop")]
    assert request.options == Options(
        9, 0.5, 1, 3, ("x",), 7, 0.1, 0.2,
        logprobs=True, top_logprobs=2, thinking=Thinking("high"), output=OutputFormat("schema", SCHEMA),
    )  # fmt: skip
    assert request.extras == {
        "options": {"num_ctx": 4096, "mirostat": 0},
        "keep_alive": "5m",
        "truncate": False,
        "shift": False,
    }


def test_arguments_are_the_text_of_the_body():
    text = '{"q" :1.0, "big": 18446744073709551616,"q" :1e21}'
    body = orjson.dumps(WHOLE).replace(b'{"q":1.5}', text.encode())
    call = decode_request(body, "ollama").turns[2].parts[2]
    assert isinstance(call, ToolCall)
    assert call.arguments == text


@pytest.mark.parametrize(("stream", "read_as"), [({}, True), ({"stream": True}, True), ({"stream": False}, False)])
def test_it_streams_unless_it_is_told_not_to(stream, read_as):
    request = read({"model": "m", "messages": [], **stream})
    assert request.stream is read_as
    assert request.stream_usage is (True if read_as else None)
    assert write(request)[0]["stream"] is read_as


@pytest.mark.parametrize(
    ("think", "thinking"),
    [(True, Thinking(enabled=True)), (False, Thinking("none")), ("max", Thinking("max")), (None, None)],
)
def test_think_is_a_switch_or_a_level(think, thinking):
    request = read({"model": "m", "messages": [], "think": think})
    assert request.options.thinking == thinking
    assert write(request)[0].get("think") == think


def test_no_bound_is_ollamas_own():
    request = read({"model": "m", "messages": [], "options": {"num_predict": -1}})
    assert request.options.max_tokens is None
    assert write(request)[0]["options"] == {"num_predict": -1}


def history(calls: list[str | None], *results: dict[str, Any]) -> dict[str, Any]:
    made = [{"function": {"name": name, "arguments": {}}} | ({"id": i} if i else {}) for i, name in map(divided, calls)]
    told = [{"role": "tool", "content": "", **result} for result in results]
    return {"model": "m", "messages": [{"role": "assistant", "content": "", "tool_calls": made}, *told]}


def divided(call: str) -> tuple[str, str]:
    """``id:name``, or a name."""
    before, _, name = call.rpartition(":")
    return before, name


@pytest.mark.parametrize(
    ("calls", "results", "ids"),
    [
        (["f", "g"], [{"tool_name": "g"}, {"tool_name": "f"}], ["call_0_1", "call_0_0"]),
        (["f", "f"], [{"tool_name": "f"}, {"tool_name": "f"}], ["call_0_0", "call_0_1"]),
        (["f", "g"], [{}, {}], ["call_0_0", "call_0_1"]),
        (["f", "g"], [{"tool_name": "f"}, {}], ["call_0_0", "call_0_1"]),
        (["a:f", "b:f"], [{"tool_name": "f"}, {"tool_name": "f"}], ["a", "b"]),
        (["a:f", "b:f"], [{"tool_call_id": "b"}, {"tool_name": "f"}], ["b", "a"]),
        (["f", "g"], [{"tool_name": "g", "tool_call_id": "x"}, {"tool_call_id": "y"}], ["x", "y"]),
        (["a:f"], [{"tool_name": "f", "tool_call_id": "x"}], ["x"]),
        (["f"], [{"tool_name": "g"}], [""]),
        (["f"], [{}, {}], ["call_0_0", ""]),
    ],
)
def test_results_without_an_id_are_paired_by_name_and_order(calls, results, ids):
    request = read(history(calls, *results))
    assert [part.call_id for part in request.turns[1].parts if isinstance(part, ToolResult)] == ids


def test_a_call_gets_the_id_that_its_result_has_kept():
    request = read(history(["f", "g"], {"tool_name": "g", "tool_call_id": "x"}, {"tool_name": "f"}))
    check_pairing(request)
    said, *told = write(request)[0]["messages"]
    assert [call.get("id") for call in said["tool_calls"]] == [None, "x"]
    assert [message.get("tool_call_id") for message in told] == ["x", None]


def test_ids_that_were_made_are_for_other_dialects_only():
    body = history(["f", "a:f"], {"tool_name": "f"}, {"tool_name": "f"})
    request = read(body)
    assert [call.get("id") for call in write(request)[0]["messages"][0]["tool_calls"]] == [None, "a"]
    assert [message.get("tool_call_id") for message in write(request)[0]["messages"][1:]] == [None, "a"]
    elsewhere = orjson.loads(encode_request(request, "openai-chat"))["messages"]
    assert [call["id"] for call in elsewhere[0]["tool_calls"]] == ["call_0_0", "a"]
    assert [message["tool_call_id"] for message in elsewhere[1:]] == ["call_0_0", "a"]


def test_a_result_of_an_earlier_turn_is_not_taken_for_one_of_this():
    body = history(["f"], {"tool_name": "f"})
    body["messages"] += history(["f"], {"tool_name": "f"})["messages"]
    ids = [part.call_id for turn in read(body).turns for part in turn.parts if isinstance(part, ToolResult)]
    assert ids == ["call_0_0", "call_2_0"]


def wrong(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hi", **fields}]}


@pytest.mark.parametrize(
    ("body", "path", "words"),
    [
        ({"model": "m", "prompt": "Hi"}, "prompt", "/api/generate"),
        ({"model": "m"}, "messages", "a list is needed"),
        ({"messages": []}, "model", "text is needed"),
        ({"model": "m", "messages": [1]}, "messages[0]", "an object is needed"),
        (wrong(role="developer"), "messages[0].role", "there is no role 'developer'"),
        (wrong(role=None), "messages[0].role", "text is needed"),
        (wrong(content=[{"type": "text", "text": "Hi"}]), "messages[0].content", "not a list"),
        (wrong(images="AA=="), "messages[0].images", "a list is needed"),
        (wrong(images=["AA==", 1]), "messages[0].images[1]", "text is needed"),
        (wrong(images=["AA==", "%"]), "messages[0].images[1]", "no base64"),
        (wrong(images=["data:image/png;base64,AA=="]), "messages[0].images[0]", "without data:"),
        (wrong(role="assistant", tool_calls=[{}]), "messages[0].tool_calls[0].function", "an object is needed"),
        (wrong(role="assistant", tool_calls=[{"function": {}}]), "messages[0].tool_calls[0].function.name", "text is needed"),
        (
            wrong(role="assistant", tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]),
            "messages[0].tool_calls[0].function.arguments", "an object is needed, not text",
        ),
        (wrong() | {"think": "much"}, "think", "'much'"),
        (wrong() | {"think": 1}, "think", "a whole number"),
        (wrong() | {"format": "xml"}, "format", "'xml'"),
        (wrong() | {"format": 1}, "format", "a JSON schema is needed"),
        (wrong() | {"stream": "yes"}, "stream", "true or false"),
        (wrong() | {"options": {"stop": "x"}}, "options.stop", "a list is needed"),
        (wrong() | {"options": {"stop": ["x", 1]}}, "options.stop[1]", "text is needed"),
        (wrong() | {"options": {"temperature": "hot"}}, "options.temperature", "a number is needed"),
        (wrong() | {"options": []}, "options", "an object is needed"),
        (wrong() | {"tools": [{"type": "function"}]}, "tools[0].function", "an object is needed"),
        (wrong() | {"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters", "an object"),
    ],
)  # fmt: skip
def test_a_request_that_cant_be_is_refused_with_its_place(body, path, words):
    with pytest.raises(BadRequest) as caught:
        read(body)
    assert caught.value.path == path
    assert words in caught.value.reason


# -- writing -----------------------------------------------------------------------------------------------------------


def messages(*turns: Turn, **fields: Any) -> tuple[list[dict[str, Any]], StreamReport]:
    body, report = write(chat(*turns, **fields))
    assert faults("ollama", body) == []
    return body["messages"], report


CALLED = {"id": "a", "function": {"name": "look", "arguments": {"q": 1.0}}}


@pytest.mark.parametrize(
    ("turns", "expected", "lost"),
    [
        pytest.param([USER], [{"role": "user", "content": "Hi"}], [], id="plain text"),
        pytest.param(
            [Turn("user", [Text("a"), Text("b")])],
            [{"role": "user", "content": "a\n\nb"}], ["block_boundary"], id="texts of the user",
        ),
        pytest.param(
            [Turn("assistant", [Text("a"), Text("b")])],
            [{"role": "assistant", "content": "ab"}], ["block_boundary"], id="texts of the assistant",
        ),
        pytest.param(
            [Turn("user", [Media("image", "image/png", "AA=="), Text("a")])],
            [{"role": "user", "content": "a", "images": ["AA=="]}], [], id="an image in front",
        ),
        pytest.param(
            [Turn("user", [Text("a"), Media("image", "image/png", "AA==", detail="low", cache="short")])],
            [{"role": "user", "content": "a", "images": ["AA=="]}],
            ["block_order", "metadata detail", "cache_mark short"], id="an image behind the text",
        ),
        pytest.param(
            [Turn("user", [Media("audio", "audio/wav", "AA=="), Text("a")])],
            [{"role": "user", "content": "a", "images": ["AA=="]}], [], id="a sound",
        ),
        pytest.param(
            [Turn("user", [Media("image", url="https://a.example/b.png"), Text("a")])],
            [{"role": "user", "content": "a"}], ["media image"], id="an image by its URL",
        ),
        pytest.param(
            [Turn("user", [Media("file", "application/pdf", "AA==", name="b.pdf"), Text("a", cache="long")])],
            [{"role": "user", "content": "a"}], ["media file", "cache_mark long"], id="a file",
        ),
        pytest.param(
            [Turn("user", [Text("a", extras={"x": 1})], name="Ada", extras={"y": 2})],
            [{"role": "user", "content": "a"}], ["turn_name Ada", "metadata x", "metadata y"], id="what nobody else knows",
        ),
        pytest.param(
            [Turn("user", [Text("a"), Aside("openai", "unknown_event", "content.odd", {})])],
            [{"role": "user", "content": "a"}], ["unknown_event content.odd"], id="an unknown part",
        ),
        pytest.param(
            [Turn("assistant", [Refusal("no")])],
            [{"role": "assistant", "content": "no"}], ["refusal_as_text"], id="a refusal",
        ),
        pytest.param(
            [Turn("assistant", [Reasoning("hm"), Reasoning("so", "summary"), Text("a")])],
            [{"role": "assistant", "content": "a", "thinking": "hm\n\nso"}], ["block_boundary"], id="reasoning",
        ),
        pytest.param(
            [Turn("assistant", [
                Reasoning("hm", signature=Opaque("anthropic", "s")), RedactedReasoning(Opaque("anthropic", "s")),
                Text("a", signature=Opaque("google", "s")),
            ])],
            [{"role": "assistant", "content": "a", "thinking": "hm"}],
            ["reasoning_signature anthropic", "reasoning_opaque anthropic", "reasoning_signature google"], id="signed reasoning",
        ),
        pytest.param(
            ANSWERED,
            [
                {"role": "assistant", "content": "", "tool_calls": [CALLED]},
                {"role": "tool", "content": "yes", "tool_name": "look", "tool_call_id": "a"},
            ], [], id="a call and its result",
        ),
        pytest.param(
            [Turn("assistant", [CALL, Text("a"), Reasoning("late")]), ANSWERED[1]],
            [
                {"role": "assistant", "content": "a", "thinking": "late", "tool_calls": [CALLED]},
                {"role": "tool", "content": "yes", "tool_name": "look", "tool_call_id": "a"},
            ], ["block_order"], id="text behind a call",
        ),
        pytest.param(
            [ANSWERED[0], Turn("user", [ToolResult("a", [Text("x"), Media("image", "image/png", "AA==")], is_error=True), Text("go")])],
            [
                {"role": "assistant", "content": "", "tool_calls": [CALLED]},
                {"role": "tool", "content": "Error: x", "images": ["AA=="], "tool_name": "look", "tool_call_id": "a"},
                {"role": "user", "content": "go"},
            ], ["block_order", "result_error a"], id="a result that is an error, with an image, and text behind it",
        ),
        pytest.param(
            [Turn("assistant", [ToolCall(0, "a", "look", "{oops", extras={"x": 1}, signature=Opaque("google", "s"), cache="short")]), ANSWERED[1]],
            [
                {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": {"_raw_arguments": "{oops"}}}]},
                {"role": "tool", "content": "yes", "tool_name": "look", "tool_call_id": "a"},
            ], ["reasoning_signature google", "cache_mark short", "arguments_wrapped look", "metadata x"], id="arguments that are no JSON",
        ),
        pytest.param(
            [Turn("assistant", [ToolCall(0, "a", "look", "x = 1", "custom")]), Turn("user", [ToolResult("a", [], kind="custom", cache="long")])],
            [
                {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": {"input": "x = 1"}}}]},
                {"role": "tool", "content": "", "tool_name": "look", "tool_call_id": "a"},
            ], ["custom_tool_wrapped look", "cache_mark long"], id="a custom call",
        ),
        pytest.param(
            [Turn("system", [Text("a")]), USER], [{"role": "system", "content": "a"}, {"role": "user", "content": "Hi"}], [], id="a system message",
        ),
        pytest.param(
            [Turn("system", [Text("a")], native_role="developer"), USER, Turn("system", [Text("b")])],
            [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "Hi"}], ["system_place"], id="a system message further down",
        ),
        pytest.param(
            [USER, Turn("system", [Text("b")], name="Bob", extras={"x": 1})],
            [{"role": "system", "content": "b"}, {"role": "user", "content": "Hi"}], ["system_place", "turn_name Bob", "metadata x"], id="one that was not in front",
        ),
    ],
)  # fmt: skip
def test_turns_are_written_as_messages(turns, expected, lost):
    written, report = messages(*turns)
    assert written == expected
    kinds = Counter(loss.split()[0] for loss in lost)
    assert report.losses == kinds
    assert {f"{kind} {what}" for kind, what in report.lost} == {loss for loss in lost if " " in loss}
    assert not report.repairs


def test_what_the_system_says_in_front_is_one_message():
    written, report = messages(
        Turn("system", [Text("a")]), Turn("system", [Text("b"), Media("image", data="AA==")]), USER
    )
    assert written[0] == {"role": "system", "content": "a\n\nb", "images": ["AA=="]}
    assert report.repairs == {"turns_joined": 1}


def test_results_stand_in_front_of_what_the_user_says():
    written, report = messages(ANSWERED[0], Turn("user", [Text("go"), ToolResult("a", [Text("yes")])]))
    assert [message["role"] for message in written] == ["assistant", "tool", "user"]
    assert report.repairs == {"result_moved": 1}


def test_arguments_keep_their_text():
    request = chat(Turn("assistant", [ToolCall(0, "a", "look", '{"q": 1.0, "n": 18446744073709551616}')]))
    assert b'"arguments":{"q": 1.0, "n": 18446744073709551616}' in encode_request(request, "ollama")


def test_within_ollama_system_messages_stay_where_they_are():
    turns = [
        USER,
        Turn("system", [Text("b")]),
        Turn("assistant", [Aside("ollama", "metadata", "message.mood", "calm")]),
    ]
    body, report = write(Request("ollama", "m", turns))
    assert body["messages"][1:] == [
        {"role": "system", "content": "b"},
        {"role": "assistant", "content": "", "mood": "calm"},
    ]
    assert not report.losses


@pytest.mark.parametrize(
    ("options", "expected", "lost"),
    [
        (Options(max_tokens=9, top_k=3, stop=("a", "b")), {"options": {"num_predict": 9, "top_k": 3, "stop": ["a", "b"]}}, []),
        (Options(choices=1), {}, []),
        (Options(logprobs=True, top_logprobs=3), {"logprobs": True, "top_logprobs": 3}, []),
        (Options(service_tier="flex", user="u"), {}, ["service_tier", "user"]),
        (Options(thinking=Thinking("none")), {"think": False}, []),
        (Options(thinking=Thinking("low")), {"think": "low"}, []),
        (Options(thinking=Thinking("minimal")), {"think": "low"}, ["thinking.effort"]),
        (Options(thinking=Thinking("xhigh")), {"think": "high"}, ["thinking.effort"]),
        (Options(thinking=Thinking("much")), {"think": True}, ["thinking.effort"]),
        (Options(thinking=Thinking(enabled=False)), {"think": False}, []),
        (Options(thinking=Thinking(budget_tokens=9, summary="auto")), {"think": True}, ["thinking.budget_tokens", "thinking.summary"]),
        (Options(thinking=Thinking(summary="auto")), {}, ["thinking.summary"]),
        (Options(output=OutputFormat("text")), {}, []),
        (Options(output=OutputFormat("json")), {"format": "json"}, []),
        (Options(output=OutputFormat("schema", SCHEMA, strict=True)), {"format": SCHEMA}, []),
        (Options(output=OutputFormat("schema", SCHEMA, "n", "d")), {"format": SCHEMA}, ["output.name", "output.description"]),
    ],
)  # fmt: skip
def test_options_are_written_where_they_belong(options, expected, lost):
    body, report = write(chat(USER, options=options))
    assert body == {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **expected, "stream": False}
    assert [what for _, what in report.lost] == lost
    assert faults("ollama", body) == []


def test_fields_of_another_dialect_are_losses_with_their_names():
    _, report = write(chat(USER, extras={"logit_bias": {"1": 2}, "store": True, "metadata": {}}))
    assert report.lost == [("parameter", "logit_bias"), ("parameter", "store")]


def test_several_choices_are_refused():
    with pytest.raises(BadRequest, match="one choice") as caught:
        write(chat(USER, options=Options(choices=2)))
    assert caught.value.path == "n"


NARROW = {"type": "object", "properties": {}}
DEEP = {
    "type": "object", "title": "T", "additionalProperties": False, "required": ["a"], "$defs": {"d": {"title": "kept"}},
    "properties": {
        "a": {"type": "string", "minLength": 1, "enum": ["x"], "description": "d"},
        "title": {"type": ["array", "null"], "items": {"minLength": 1}, "maxItems": 3},
        "b": {"anyOf": [{"type": "object", "properties": {"c": {"const": 1}}, "required": ["c"]}, True]},
        "e": True,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "expected", "lost"),
    [
        (None, NARROW, []),
        ({}, NARROW, []),
        (SCHEMA, SCHEMA, []),
        (
            DEEP,
            {
                "type": "object", "required": ["a"], "$defs": {"d": {"title": "kept"}},
                "properties": {
                    "a": {"type": "string", "enum": ["x"], "description": "d"},
                    "title": {"type": ["array", "null"], "items": {"minLength": 1}},
                    "b": {"anyOf": [{"type": "object", "properties": {"c": {}}, "required": ["c"]}, {}]},
                    "e": {},
                },
            },
            [
                ".title", ".additionalProperties", ".properties.a.minLength", ".properties.title.maxItems",
                ".properties.b.anyOf[0].properties.c.const", ".properties.b.anyOf[1]", ".properties.e",
            ],
        ),
    ],
)  # fmt: skip
def test_what_the_server_drops_of_a_schema_is_a_loss_with_its_path(schema, expected, lost):
    body, report = write(chat(USER, tools=[Tool("first", parameters=SCHEMA), Tool("f", parameters=schema)]))
    assert body["tools"][1] == {"type": "function", "function": {"name": "f", "parameters": expected}}
    assert report.lost == [("schema_keyword", f"tools[1].parameters{path}") for path in lost]
    assert faults("ollama", body) == []


def test_a_schema_that_never_ends_is_refused():
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    with pytest.raises(BadRequest, match="nested deeper"):
        write(chat(USER, tools=[Tool("f", parameters=schema)]))


@pytest.mark.parametrize(
    ("tool", "expected", "lost"),
    [
        (Tool("a b", "d", SCHEMA, strict=True, cache="short"), {"name": "a b", "description": "d", "parameters": SCHEMA}, ["tool_strict", "cache_mark"]),
        (Tool("f", parameters=SCHEMA, strict=False, extras={"x": 1}), {"name": "f", "parameters": SCHEMA}, ["metadata"]),
        (
            Tool("f", kind="custom", format={"type": "text"}),
            {"name": "f", "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}},
            ["custom_tool_wrapped"],
        ),
        (Tool("web_search", kind="server", raw={"type": "web_search"}), None, ["tool_definition"]),
    ],
)  # fmt: skip
def test_tools_are_functions(tool, expected, lost):
    body, report = write(chat(USER, tools=[tool]))
    assert body.get("tools") == (None if expected is None else [{"type": "function", "function": expected}])
    assert [kind for kind, _ in report.lost] == lost


def test_a_tool_of_another_type_stays_within_ollama():
    tools = [
        {"type": "browser", "name": "b", "depth": 2},
        {"type": "function", "function": {"name": "f", "strict": True}},
    ]
    body, report = write(read({"model": "m", "messages": [], "tools": tools}))
    assert body["tools"] == tools
    assert not report.losses


TOOLS = [Tool("f", parameters=SCHEMA), Tool("g", parameters=SCHEMA)]


@pytest.mark.parametrize(
    ("choice", "left", "lost"),
    [
        (None, ["f", "g"], []),
        (ToolChoice("auto"), ["f", "g"], []),
        (ToolChoice("none"), [], []),
        (ToolChoice("auto", ("g",)), ["g"], []),
        (ToolChoice("auto", parallel=True), ["f", "g"], []),
        (ToolChoice("auto", parallel=False), ["f", "g"], ["parallel"]),
        (ToolChoice("auto", extras={"x": 1}), ["f", "g"], ["x"]),
    ],
)
def test_a_choice_of_tools_is_made_by_what_is_offered(choice, left, lost):
    body, report = write(chat(USER, tools=TOOLS, tool_choice=choice))
    assert [tool["function"]["name"] for tool in body.get("tools", [])] == left
    assert [what for _, what in report.lost] == lost


@pytest.mark.parametrize(("names", "left"), [((), ["f", "g"]), (("g",), ["g"]), (("f", "g"), ["f", "g"])])
def test_a_tool_that_must_be_called_is_refused_or_imitated(names, left):
    request = chat(USER, tools=TOOLS, tool_choice=ToolChoice("required", names))
    with pytest.raises(BadRequest) as caught:
        write(request)
    assert caught.value.path == "tool_choice"
    body, report = write(request, emulate=True)
    assert [tool["function"]["name"] for tool in body["tools"]] == left
    assert report.losses == {"tool_choice": 1}


# -- there and back ----------------------------------------------------------------------------------------------------


ODD = {
    "model": "m",
    "messages": [
        {"role": "User", "content": None, "images": []},
        {
            "role": "assistant",
            "tool_calls": [
                {"type": "function", "function": {"index": 0, "name": "f"}},
                {"function": {"index": 7, "name": "f", "arguments": {"a": []}, "mood": 1}, "x": 2},
            ],
        },
        {"role": "tool", "tool_name": "f", "content": "1", "x": 3},
        {"role": "tool", "content": "2"},
    ],
    "tools": [{"function": {"name": "f", "parameters": {"type": "object", "additionalProperties": False}}}],
    "format": "",
    "keep_alive": None,
    "options": {},
    "tool_choice": "auto",
}


@pytest.mark.parametrize("body", [WHOLE, ODD], ids=["whole", "odd"])
def test_a_request_comes_back_as_it_was(body):
    written, report = write(read(body))
    assert written == normal(body)
    assert not report.losses
    assert not report.repairs
    assert normal(written) == written


def test_recorded_requests_come_back_as_they_were():
    for recorded in requests("ollama"):
        written, report = write(read(recorded.body))
        assert written == normal(recorded.body), recorded.name
        assert faults("ollama", written) == [], recorded.name
        assert not report.losses, recorded.name


@pytest.mark.parametrize("source", [name for name, dialect in DIALECTS.items() if dialect.bodies and name != "ollama"])
def test_requests_of_other_dialects_are_written_so_that_the_client_takes_them(source):
    for recorded in requests(source):
        report = StreamReport()
        request = decode_request(orjson.dumps(recorded.body), source, report=report)
        body = orjson.loads(
            encode_request(request, "ollama", repair=True, emulate=True, linked_media="drop", report=report)
        )
        model = {} if "model" in body else {"model": "m"}
        assert faults("ollama", body | model) == [], recorded.name


def test_the_official_client_sends_what_is_written(client, replay):
    ollama = client("ollama")
    name = replay.register(orjson.dumps({**end(), "message": {"role": "assistant", "content": "Hi"}}))
    turns = [
        Turn("system", [Text("rules")]),
        *ANSWERED,
        Turn("user", [Media("image", "image/png", "AA=="), Text(ASK[0]["content"])]),
    ]
    body, _ = write(chat(*turns, tools=TOOLS, options=Options(max_tokens=3, thinking=Thinking("low"))))
    assert ollama.chat(**{**body, "model": name}).message.content == "Hi"
