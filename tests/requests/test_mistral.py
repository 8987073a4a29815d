"""Requests of Mistral: read, written, and written for what other dialects said.

Source: dialects.md §6.3, §7.3, §7.4; mistral-common's validator for the order of messages.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

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
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.events import Aside, Opaque
from streamkit.text.identifiers import nine_characters, portable_name
from streamkit.translation.bodies import decode_response
from tests.requests.rows import HI, Dialect, by_model, by_system, by_user, parameters, rows

PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
NINE = "aaaaaaaa1"
SAID = {"role": "user", "content": "hi"}
MISTRAL = Dialect(
    "mistral",
    {"model": "m", "messages": [SAID]},
    Request("mistral", "m", [HI]),
    Request("anthropic", "m", [HI]),
    {"linked_media": "drop"},
)


def said(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def thinking(*texts: str, **members: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [text(content) for content in texts], **members}


def function(call_id: str = NINE, name: str = "look", arguments: Any = '{"q":1.0}', **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def answer(call_id: str = NINE, content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": "look", "content": content, **more}


def calling(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": None, **message}, answer()]


def answered(*parts: Any, **more: Any) -> list[Turn]:
    return [Turn("assistant", list(parts), **more), Turn("user", [ToolResult(NINE, [Text("done")], "look")])]


def ours(kind: Any, name: str, raw: Any) -> Aside:
    return Aside("mistral", kind, name, raw)


CALL = ToolCall(0, NINE, "look", '{"q":1.0}')
REFERENCE = {"type": "reference", "reference_ids": [1, "a"]}
TOOL_REFERENCE = {"type": "tool_reference", "tool": "web_search", "title": "t"}
EXAMPLE = thinking("your thoughts", closed=True)

#: What messages say, both ways.
MESSAGES: dict[str, tuple[list[dict[str, Any]], list[Turn]]] = {
    "text": ([{"role": "user", "content": "hi"}], [by_user(Text("hi"))]),
    "several texts": (said(text("a"), text("b")), [by_user(Text("a"), Text("b"))]),
    "system": ([{"role": "system", "content": "be"}], [by_system(Text("be"))]),
    "the system shows how to think": ([{"role": "system", "content": [text("be"), EXAMPLE]}], [by_system(Text("be"), ours(
        "unknown_event", "content.thinking", EXAMPLE,
    ))]),
    "image at a URL": (
        said({"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "low"}}),
        [by_user(Media("image", url="https://x.test/a.png", detail="low"))],
    ),
    "image as data": (
        said({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}), [by_user(Media("image", "image/png", PNG))],
    ),
    "a document at a URL": (
        said({"type": "document_url", "document_url": "https://x.test/a.pdf", "document_name": "a.pdf"}),
        [by_user(Media("file", url="https://x.test/a.pdf", name="a.pdf"))],
    ),
    "a document as data": (
        said({"type": "document_url", "document_url": "data:application/pdf;base64,JVBERi0="}),
        [by_user(Media("file", "application/pdf", "JVBERi0="))],
    ),
    "a file by its id": (said({"type": "file", "file_id": "f"}), [by_user(Media("file", file_id="f"))]),
    "a sound": (said({"type": "input_audio", "input_audio": "AAAA"}), [by_user(Media("audio", data="AAAA"))]),
    "a sound with its type": (
        said({"type": "input_audio", "input_audio": "data:audio/mpeg;base64,AAAA"}), [by_user(Media("audio", "audio/mpeg", "AAAA"))],
    ),
    "a sound at a URL": (
        said({"type": "input_audio", "input_audio": "https://x.test/a.mp3"}), [by_user(Media("audio", url="https://x.test/a.mp3"))],
    ),
    "parts that only Mistral has": (said(REFERENCE, {"type": "resource_link", "uri": "u"}), [by_user(
        ours("citation", "content.reference", REFERENCE),
        ours("unknown_event", "content.resource_link", {"type": "resource_link", "uri": "u"}),
    )]),
    "members nobody knows": (
        [{
            "role": "user",
            "content": [{**text("a"), "x": 1}, {"type": "image_url", "image_url": {"url": "https://x.test", "y": 2}, "z": 3}],
            "name": "ann", "w": 4,
        }],
        [by_user(
            Text("a", extras={"x": 1}), Media("image", url="https://x.test", extras={"image_url": {"y": 2}, "z": 3}), name="ann",
            extras={"w": 4},
        )],
    ),
    "to be continued": (
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "prefix": True}],
        [by_user(Text("a")), by_model(Text("b"), extras={"prefix": True})],
    ),
    "thoughts": (
        [{"role": "assistant", "content": [thinking("hm"), thinking("so", signature="S"), text("a")]}],
        [by_model(Reasoning("hm"), Reasoning("so", signature=Opaque("mistral", "S")), Text("a"))],
    ),
    "thoughts with references": (
        [{"role": "assistant", "content": [
            {"type": "thinking", "thinking": [text("h"), REFERENCE, text("m"), TOOL_REFERENCE], "signature": "S", "closed": True},
            text("a"),
        ]}],
        [by_model(
            Reasoning("h"), ours("citation", "thinking.reference", REFERENCE), Reasoning("m"),
            ours("citation", "thinking.tool_reference", TOOL_REFERENCE),
            Reasoning("", signature=Opaque("mistral", "S"), extras={"closed": True}), Text("a"),
        )],
    ),
    "calls and results": (
        [
            {"role": "assistant", "content": "wait", "tool_calls": [function(index=0), function("bbbbbbbb2", "look", "{}", index=1)]},
            answer(content="one"), answer("bbbbbbbb2", [text("t"), {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]),
            {"role": "assistant", "content": "so"},
        ],
        [
            by_model(
                Text("wait"), ToolCall(0, NINE, "look", '{"q":1.0}', extras={"index": 0}),
                ToolCall(1, "bbbbbbbb2", "look", "{}", extras={"index": 1}),
            ),
            by_user(ToolResult(NINE, [Text("one")], "look"), ToolResult(
                "bbbbbbbb2", [Text("t"), Media("image", url="https://x.test/a.png")], "look",
            )),
            by_model(Text("so")),
        ],
    ),
}  # fmt: skip

#: What a message becomes on the way through: the documented normalisation.
NORMAL: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "one text in a list": (said(text("a")), [{"role": "user", "content": "a"}]),
    "an image as text": (said({"type": "image_url", "image_url": "https://x.test"}), said({
        "type": "image_url", "image_url": {"url": "https://x.test"},
    })),
    "a prefix that is none": ([{"role": "assistant", "content": "a", "prefix": False}], [{"role": "assistant", "content": "a"}]),
    "arguments as an object, a call without a type": (
        calling({"tool_calls": [{"id": NINE, "function": {"name": "look", "arguments": {"q": 1.0}}}]}),
        calling({"tool_calls": [function()]}),
    ),
    "no arguments, no text": (
        calling({"content": "", "tool_calls": [function(arguments="")]}), calling({"tool_calls": [function(arguments="{}")]}),
    ),
    "a thinking in pieces": ([{"role": "assistant", "content": [thinking("a", "b")]}], [{
        "role": "assistant", "content": [thinking("ab")],
    }]),
}  # fmt: skip


TOOLS = [
    {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA, "strict": True}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]  # fmt: skip
NEUTRAL_TOOLS = [Tool("look", "d", SCHEMA, True), Tool("now", None, {"type": "object", "properties": {}})]
LIBRARY = {"type": "document_library", "library_ids": ["l"]}

#: What other members say, both ways.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "options": (
        {
            "max_tokens": 5, "temperature": 0.5, "top_p": 1, "top_k": 4, "stop": ["a", "b"], "random_seed": 7, "presence_penalty": 0.1,
            "frequency_penalty": -0.1, "n": 2, "logprobs": True, "top_logprobs": 3, "service_tier": "standard_only",
        },
        {"options": Options(
            max_tokens=5, temperature=0.5, top_p=1, top_k=4, stop=("a", "b"), seed=7, presence_penalty=0.1, frequency_penalty=-0.1,
            choices=2, logprobs=True, top_logprobs=3, service_tier="standard_only",
        )},
    ),
    "effort": ({"reasoning_effort": "high"}, {"options": Options(thinking=Thinking("high"))}),
    "json": ({"response_format": {"type": "json_object"}}, {"options": Options(output=OutputFormat("json"))}),
    "schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": SCHEMA, "strict": True}}},
        {"options": Options(output=OutputFormat("schema", SCHEMA, "n", "d", True))},
    ),
    "streaming": ({"stream": True}, {"stream": True, "stream_usage": True}),
    "not streaming": ({"stream": False}, {"stream": False}),
    "tools": ({"tools": TOOLS}, {"tools": NEUTRAL_TOOLS}),
    "a tool that Mistral runs": ({"tools": [LIBRARY]}, {"tools": [Tool("document_library", kind="server", raw=LIBRARY)]}),
    "a tool with more": (
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": SCHEMA, "x": 1}, "y": 2}]},
        {"tools": [Tool("a", None, SCHEMA, extras={"function": {"x": 1}, "y": 2})]},
    ),
    "choice auto": ({"tool_choice": "auto"}, {"tool_choice": ToolChoice()}),
    "choice none": ({"tool_choice": "none"}, {"tool_choice": ToolChoice("none")}),
    "choice any": ({"tool_choice": "any"}, {"tool_choice": ToolChoice("required")}),
    "choice of one": (
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "look"}}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("look",))},
    ),
    "a choice of another kind": ({"tool_choice": {"type": "x"}}, {"tool_choice": ToolChoice("required", ("x",))}),
    "one call at a time": ({"tool_choice": "any", "parallel_tool_calls": False}, {"tool_choice": ToolChoice("required", parallel=False)}),
    "members that only Mistral has": (
        {
            "safe_prompt": True, "prompt_mode": "reasoning", "guardrails": [{"block_on_error": True}], "min_tokens": 3,
            "prediction": {"type": "content", "content": "x"}, "stream_options": {"include_usage": True},
        },
        {"extras": {
            "safe_prompt": True, "prompt_mode": "reasoning", "guardrails": [{"block_on_error": True}], "min_tokens": 3,
            "prediction": {"type": "content", "content": "x"}, "stream_options": {"include_usage": True},
        }},
    ),
}  # fmt: skip

ALIKE_MEMBERS = [
    ({"stop": "a"}, {"stop": ["a"]}),
    ({"tool_choice": "required"}, {"tool_choice": "any"}),
    ({"tools": TOOLS, "tool_choice": {"function": {"name": "look"}}}, {"tools": TOOLS, "tool_choice": {
        "type": "function", "function": {"name": "look"},
    }}),
    ({"tools": [{"function": TOOLS[0]["function"]}]}, {"tools": TOOLS[:1]}),
    ({"tools": [{"function": {"name": "now"}}]}, {"tools": TOOLS[1:]}),
    ({"temperature": None, "tools": None, "tool_choice": None, "stop": None}, {}),
]  # fmt: skip

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": ...}, "messages", "must be a list"),
    ({"messages": [{"role": "developer", "content": "a"}]}, "messages[0].role", "'assistant' or 'tool', not 'developer'"),
    ({"messages": [{"role": "function", "content": "a"}]}, "messages[0].role", "'assistant' or 'tool', not 'function'"),
    ({"messages": said({"type": "image_url"})}, "messages[0].content[0].image_url", "must be a string"),
    ({"messages": said({"type": "image_url", "image_url": "data:x"})}, "messages[0].content[0].image_url", "base64"),
    ({"messages": said({"type": "image_url", "image_url": {"url": "data:x"}})}, "messages[0].content[0].image_url.url", "base64"),
    ({"messages": said({"type": "document_url", "document_url": "data:x"})}, "messages[0].content[0].document_url", "base64"),
    ({"messages": said({"type": "input_audio", "input_audio": {}})}, "messages[0].content[0].input_audio", "must be a string, not an object"),
    ({"messages": said({"type": "file"})}, "messages[0].content[0].file_id", "must be a string"),
    (
        {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}]}, "messages[0].content[0].thinking",
        "must be a list",
    ),
    (
        {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text"}]}]}]},
        "messages[0].content[0].thinking[0].text", "must be a string",
    ),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": NINE}]}]}, "messages[0].tool_calls[0].function", "must be an object"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [function(arguments=5)]}]}, "messages[0].tool_calls[0].function.arguments",
        "must be a string",
    ),
    ({"tool_choice": "some"}, "tool_choice", "'some'"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.function", "must be an object"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "must be an object"),
    ({"random_seed": 1.5}, "random_seed", "must be an integer"),
]  # fmt: skip


# -- from other dialects -----------------------------------------------------------------------------------------------


FOREIGN_CALL = ToolCall(0, "toolu_1", "look", '{"q":1.0}')


def foreign_answered(*parts: Any) -> list[Turn]:
    return [Turn("assistant", list(parts)), Turn("user", [ToolResult("toolu_1", [Text("done")])])]


#: Turns of another dialect: the messages, the losses, the repairs.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "ids that are not of nine letters": (
        foreign_answered(FOREIGN_CALL), [{"role": "assistant", "content": None, "tool_calls": [function(nine_characters("toolu_1"))]}, answer(nine_characters("toolu_1"))], {},
        {"id_rewritten": 1},
    ),
    "the user speaks behind results": (
        [by_model(CALL), by_user(ToolResult(NINE, [Text("done")]), Text("go on"))],
        [*calling({"tool_calls": [function()]}), {"role": "assistant", "content": "OK."}, {"role": "user", "content": "go on"}], {},
        {"turn_added": 1},
    ),
    "results stand behind the user's words": (
        [by_model(CALL), by_user(Text("wait")), by_user(ToolResult(NINE, [Text("done")])), by_model(Text("so")), by_user(Text("go on"))],
        [
            *calling({"tool_calls": [function()]}), {"role": "assistant", "content": "OK."}, {"role": "user", "content": "wait"},
            {"role": "assistant", "content": "so"}, {"role": "user", "content": "go on"},
        ],
        {}, {"turn_added": 1, "result_moved": 1},
    ),
    "the system speaks later": (
        [
            by_system(Text("a")), by_system(Text("b"), native_role="developer"), by_user(Text("c")), by_system(Text("d")),
            by_model(Text("e")), by_system(Text("f")), by_user(Text("g")),
        ],
        [
            {"role": "system", "content": "a"}, {"role": "system", "content": "b"}, {"role": "system", "content": "f"},
            {"role": "user", "content": "c"}, {"role": "system", "content": "d"}, {"role": "assistant", "content": "e"},
            {"role": "user", "content": "g"},
        ],
        {"system_place": 1}, {},
    ),
    "neighbours of one role": (
        [by_user(Text("a")), by_user(Text("b"))], [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], {}, {},
    ),
    "the assistant speaks last": (
        [by_user(Text("a")), by_model(Text("b"))],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "prefix": True}], {}, {},
    ),
    "nothing is left of a turn": (
        [by_model(RedactedReasoning(Opaque("anthropic", "D")), Reasoning("", signature=Opaque("anthropic", "S"))), by_user(Text("a"))],
        [{"role": "user", "content": "a"}], {"reasoning_opaque": 1, "reasoning_signature": 1}, {"turn_empty": 1},
    ),
    "reasoning": (
        [
            by_model(
                Reasoning("hm", "summary", Opaque("anthropic", "S")), Reasoning("so", signature=Opaque("mistral", "M")), Text(""),
                Text("a"),
            ),
            by_user(Text("b")),
        ],
        [{"role": "assistant", "content": [thinking("hm"), thinking("so", signature="M"), text("a")]}, {"role": "user", "content": "b"}],
        {"reasoning_signature": 1}, {"turn_empty": 1},
    ),
    "what stands behind a call, and what signs it": (
        [
            by_model(
                ToolCall(0, NINE, "look", '{"q":1.0}', signature=Opaque("google", "S"), cache="short"), Text("so", Opaque("google", "T")),
            ),
            by_user(ToolResult(NINE, [Text("done")], cache="short")),
        ],
        calling({"content": "so", "tool_calls": [function()]}), {"block_order": 1, "reasoning_signature": 2, "cache_mark": 2}, {},
    ),
    "a custom call and a refusal": (
        [by_model(Refusal("no"), ToolCall(0, NINE, "look", "1 + 1", "custom")), by_user(ToolResult(NINE, [Text("done")], kind="custom"))],
        calling({"content": "no", "tool_calls": [function(arguments='{"input":"1 + 1"}')]}),
        {"refusal_as_text": 1, "custom_tool_wrapped": 1}, {},
    ),
    "an error, with an image": (
        [by_model(CALL), by_user(ToolResult(NINE, [Text("no"), Media("image", "image/png", PNG)], is_error=True))],
        [*calling({"tool_calls": [function()]})[:1], answer(content=[
            text("Error: no"), {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ])],
        {"result_error": 1}, {},
    ),
    "media": (
        [
            by_system(Text("be"), Media("image", "image/png", PNG)),
            by_user(
                Media("audio", "audio/mpeg", "AAAA"), Media("file", "application/pdf", "JVBERi0=", name="a.pdf"),
                Media("image", url="https://x.test", detail="original"), Media("image", url="gs://a"), Media("file", file_id="f"),
                Media("video", "video/mp4", "AAAA"),
            ),
            by_model(Text("a"), Media("image", "image/png", PNG)), by_user(Text("b", cache="long"), name="ann"),
        ],
        [
            {"role": "system", "content": "be"},
            said({"type": "input_audio", "input_audio": "AAAA"}, {"type": "document_url", "document_url": "data:application/pdf;base64,JVBERi0=", "document_name": "a.pdf"}, {"type": "image_url", "image_url": {"url": "https://x.test"}})[0],
            {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"},
        ],
        {"media": 5, "metadata": 1, "cache_mark": 1, "turn_name": 1}, {},
    ),
    "what only another dialect knows": (
        [
            by_user(Text("a", extras={"citations": {}, "x": 1}), Aside("anthropic", "server_tool", "s", {}), extras={"y": 1}),
            by_model(Aside("anthropic", "citation", "c", {}), Text("b")), by_user(Text("c")),
        ],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
        {"metadata": 2, "server_tool": 1, "citation": 1}, {},
    ),
    "a name with a dot": (
        [by_model(ToolCall(0, NINE, "a.b", "{}")), by_user(ToolResult(NINE, [Text("done")]))],
        [
            {"role": "assistant", "content": None, "tool_calls": [function(name=portable_name("a.b"), arguments="{}")]},
            answer(name=portable_name("a.b")),
        ],
        {}, {"name_rewritten": 1},
    ),
}  # fmt: skip

CHOICES = [
    (ToolChoice("auto", ("look",)), ["look"], "auto"),
    (ToolChoice("required", ("look", "now")), ["look", "now"], "any"),
    (ToolChoice("required", ("now",)), ["look", "now", "run"], {"type": "function", "function": {"name": "now"}}),
    (ToolChoice("none", ("now",)), ["look", "now", "run"], "none"),
    (ToolChoice("required"), ["look", "now", "run"], "any"),
]  # fmt: skip

EFFORTS = [
    (Thinking("low"), "low"),
    (Thinking(enabled=True), "high"),
    (Thinking(enabled=False), "none"),
    (Thinking(), None),
]


# -- the second leg, the recordings, and the official client -----------------------------------------------------------


def test_what_was_said_goes_back_as_the_second_leg():
    message = {
        "role": "assistant",
        "content": [thinking("hm"), {"type": "thinking", "thinking": [REFERENCE], "mood": 1}, text("wait"), REFERENCE],
        "tool_calls": [function()],
        "flavour": "x",
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": {"content": [1]}}
    said_before = decode_response(json.dumps({"id": "i", "choices": [choice]}).encode(), "mistral")
    request = MISTRAL.read()
    request.turns += [
        Turn("assistant", said_before.choices[0].parts),
        Turn("user", [ToolResult(each.id, [Text("done")], each.name) for each in said_before.tool_calls]),
    ]
    written, report = MISTRAL.write(request)
    joined = {"type": "thinking", "thinking": [text("hm"), REFERENCE], "mood": 1}
    assert written["messages"][1:] == [{**message, "content": [joined, text("wait"), REFERENCE]}, answer()]
    assert report.lost == [("logprobs", "logprobs")]


def test_the_official_client_sends_it(client, replay):
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "choices": [], "usage": usage}
    turns = [*foreign_answered(Reasoning("hm"), Text("wait"), FOREIGN_CALL), Turn("assistant", [Text("so")])]
    members = {"turns": turns, "tools": [Tool("look", None, SCHEMA)], "options": Options(max_tokens=5, seed=1)}
    written, _ = MISTRAL.write(evolve(MISTRAL.foreign, **members))
    written["model"] = replay.register(json.dumps(reply).encode(), "application/json")
    client("mistralai.client").chat.complete(**written)
    sent = json.loads(replay.asked[written["model"]])
    said_too = {"stream": False}  # the client's own defaults
    for message in written["messages"]:
        if message["role"] == "assistant":
            message.setdefault("prefix", False)
            for call in message.get("tool_calls") or ():
                call["index"] = 0
    assert sent == {**written, **said_too}


# -- all rows ----------------------------------------------------------------------------------------------------------

WRAPPED = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
NAMES = {
    name: {"type": "function", "function": {"name": name, "parameters": TOOLS[1]["function"]["parameters"]}}
    for name in ("look", "now", "run")
}
SIGNED = [
    thinking("hm", signature=seal("reasoning", "anthropic", "A")), thinking(signature=seal("opaque", "openai", "O")), text("so"),
    thinking(signature=seal("text", "google", "T")), thinking(signature=seal("part", "google", "P")),
    *[thinking(signature=seal("call", "google", blob)) for blob in "CDE"],
]  # fmt: skip
CALLS = {"tool_calls": [function(), function("bbbbbbbb2")]}
ANSWERS = [answer(), answer("bbbbbbbb2")]

ROWS = {
    **rows("messages", MESSAGES, lambda messages, turns: MISTRAL.kept({"messages": messages}, turns=turns)),
    **rows("alike", NORMAL, lambda messages, written: MISTRAL.alike({"messages": messages}, {"messages": written})),
    **rows("members", MEMBERS, lambda members, read: MISTRAL.kept(members, **read)),
    **rows("members alike", ALIKE_MEMBERS, MISTRAL.alike),
    **rows("bad", BAD, MISTRAL.refused),
    "the client's word for no id": MISTRAL.means(
        {"messages": [{"role": "assistant", "tool_calls": [function("null")]}, answer("null")]},
        turns=[by_model(ToolCall(0, "", "look", '{"q":1.0}')), by_user(ToolResult("", [Text("done")], "look"))],
    ),
    "what other vendors signed": MISTRAL.means(
        {"messages": [{"role": "assistant", "content": SIGNED, **CALLS}, *ANSWERS]},
        turns=[
            by_model(
                Reasoning("hm", signature=Opaque("anthropic", "A")), RedactedReasoning(Opaque("openai", "O")), Text("so", Opaque("google", "T")),
                Text("", Opaque("google", "P")), ToolCall(0, NINE, "look", '{"q":1.0}', signature=Opaque("google", "C")),
                ToolCall(1, "bbbbbbbb2", "look", '{"q":1.0}', signature=Opaque("google", "D")), RedactedReasoning(Opaque("google", "E")),
            ),
            by_user(ToolResult(NINE, [Text("done")], "look"), ToolResult("bbbbbbbb2", [Text("done")], "look")),
        ],
    ),
    "it is not for Mistral": MISTRAL.alike(
        {"messages": [{"role": "assistant", "content": SIGNED, **CALLS}, *ANSWERS]},
        {"messages": [{"role": "assistant", "content": [thinking("hm"), text("so"), text("")], **CALLS}, *ANSWERS]},
        losses={"reasoning_signature": 5, "reasoning_opaque": 2},
    ),
    **rows("turns", FOREIGN, lambda turns, messages, *counts: MISTRAL.of_another({"turns": turns}, {"messages": messages}, *counts)),
    "members of another dialect": MISTRAL.of_another(
        {
            "tools": [
                Tool("look", "d", SCHEMA, cache="short"), Tool("now"), Tool("run", kind="custom", format={"type": "text"}),
                Tool("web", kind="server", raw={"type": "web_search"}),
            ],
            "tool_choice": ToolChoice("required", ("look", "now", "run", "web"), parallel=False),
            "options": Options(
                5, top_k=4, stop=("x",), seed=3, thinking=Thinking(budget_tokens=9, enabled=True, summary="auto"),
                output=OutputFormat("schema", SCHEMA), service_tier="flex", user="u",
            ),
            "stream": True, "stream_usage": True, "extras": {"container": "c"},
        },
        {
            "tools": [
                {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA}}, TOOLS[1],
                {"type": "function", "function": {"name": "run", "parameters": WRAPPED}},
            ],
            "tool_choice": "any", "parallel_tool_calls": False, "max_tokens": 5, "top_k": 4, "random_seed": 3, "stop": ["x"],
            "reasoning_effort": "low", "stream": True,
            "response_format": {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}},
        },
        [
            ("cache_mark", "look"), ("custom_tool_wrapped", "run"), ("tool_choice", "web"),
            *parameters("user", "service_tier", "thinking.budget_tokens", "thinking.summary", "container"),
        ],
    ),
    **rows("choices", CHOICES, lambda choice, tools, written: MISTRAL.of_another(
        {"tools": [Tool("look"), Tool("now"), Tool("run")], "tool_choice": choice},
        {"tools": [NAMES[name] for name in tools], "tool_choice": written},
    )),
    **rows("efforts", EFFORTS, lambda thinking, effort: MISTRAL.of_another(
        {"options": Options(thinking=thinking)}, {"reasoning_effort": effort or ...}
    )),
}  # fmt: skip

#: Rows with something that the client does not let its user write.
BEYOND = {
    "members: a choice of another kind", "members: a tool with more", "members: members that only Mistral has",
    "messages: members nobody knows",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    MISTRAL.check(ROWS[name], beyond=name in BEYOND)
