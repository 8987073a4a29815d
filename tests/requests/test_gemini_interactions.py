"""Requests for interactions: what is read of them, and what is written."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import (
    Media,
    OutputFormat,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    WebSearch,
)
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request

NAME = "gemini-interactions"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
HI: dict[str, Any] = {"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}
CALL: dict[str, Any] = {"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1.0}}


def said(*texts: str) -> dict[str, Any]:
    return {"type": "model_output", "content": [{"type": "text", "text": text} for text in texts]}


def result(value: Any = "ok", **members: Any) -> dict[str, Any]:
    return {"type": "function_result", "call_id": "a", "name": "f", "result": value, **members}


def read(given: Any = "Hi", **members: Any) -> Request:
    return decode_request(orjson.dumps({"model": "m", "input": given, **members}), NAME)


def write(request: Request, to: str = NAME, **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    return orjson.loads(encode_request(request, to, report=report, **options)), report


def chat(*messages: dict[str, Any], **members: Any) -> Request:
    return decode_request(orjson.dumps({"model": "m", "messages": messages, **members}), "openai-chat")


def parts(request: Request) -> list[tuple[str, Any]]:
    return [(turn.role, part) for turn in request.turns for part in turn.parts]


# -- within the dialect ------------------------------------------------------------------------------------------------

SAME: dict[str, dict[str, Any]] = {
    "a text": {"input": "Hi"},
    "steps": {"input": [HI, said("a", "b"), said("c"), HI]},
    "an output of nothing": {"input": [HI, {"type": "model_output"}]},
    "calls": {"input": [HI, {"type": "thought", "signature": "c2ln"}, CALL, {**CALL, "id": "b"}, result(), {**result({"y": 2}), "call_id": "b"}]},
    "a signed call": {"input": [HI, {**CALL, "signature": "c2ln"}, result()]},
    "thoughts": {"input": [HI, {"type": "thought", "summary": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "signature": "c2ln"}, {"type": "thought", "summary": [{"type": "text", "text": "c"}]}, said("d")]},
    "an image in a thought": {"input": [HI, {"type": "thought", "summary": [{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}]}]},
    "media": {"input": [{"type": "user_input", "content": [{"type": "image", "mime_type": "image/png", "data": "AA==", "resolution": "low"}, {"type": "document", "uri": "gs://b/d"}, {"type": "video", "uri": "https://youtu.be/1"}]}]},
    "an image that the model made": {"input": [HI, {"type": "model_output", "content": [{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}]}]},
    "a result of contents": {"input": [HI, CALL, result([{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": "AA=="}], is_error=True)]},
    "a search that Google ran": {"input": [HI, {"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}}, {"type": "google_search_result", "call_id": "s", "result": []}, said("a")]},
    "members of its own": {"input": [{**HI, "mine": 1}, {**said("a"), "mine": 2}, {**CALL, "mine": 3}, result(mine=4), {"type": "thought", "signature": "c2ln", "mine": 5}]},
    "a content that nobody knows": {"input": [{"type": "user_input", "content": [{"type": "novelty", "a": 1}]}]},
    "a previous interaction": {"input": [result()], "previous_interaction_id": "v1_1"},
    "nothing but a previous interaction": {"previous_interaction_id": "v1_1", "continuation_token": "t"},
    "settings": {
        "input": "Hi", "stream": True, "store": False, "system_instruction": "rules", "service_tier": "flex", "labels": {"a": "b"}, "safety_settings": [{"type": "a", "threshold": "off"}],
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "defer_loading": True}, {"type": "google_search"}, {"type": "mcp_server", "name": "s", "url": "https://a.example"}],
        "generation_config": {"max_output_tokens": 9, "temperature": 0.5, "top_p": 0.5, "seed": 1, "stop_sequences": ["a"], "thinking_level": "low", "thinking_summaries": "auto", "tool_choice": {"allowed_tools": {"mode": "validated", "tools": ["f"], "mine": 1}}, "image_config": {"image_size": "1K"}},
        "response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA},
    },
    "a choice": {"input": "Hi", "generation_config": {"tool_choice": "any"}, "tools": [{"type": "function", "name": "f"}]},
    "any JSON": {"input": "Hi", "response_format": {"type": "text", "mime_type": "application/json"}},
    "a form of its own": {"input": "Hi", "response_format": [{"type": "image", "image_size": "1K"}], "response_modalities": ["image"]},
    "an older form": {"input": "Hi", "response_format": SCHEMA, "response_mime_type": "application/json"},
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_a_request_comes_back_as_it_was(name):
    body = {"model": "m", **SAME[name]}
    written, report = write(decode_request(orjson.dumps(body), NAME))
    assert written == body
    assert not report.losses
    assert not report.repairs


@pytest.mark.parametrize(
    ("given", "as_steps"),
    [
        ({"type": "text", "text": "Hi"}, "Hi"),
        ([{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}], [{"type": "user_input", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "you"}]}]),
        ([HI, CALL, {"type": "user_input", "content": [result(), {"type": "text", "text": "so?"}]}], [HI, CALL, result(), {"type": "user_input", "content": [{"type": "text", "text": "so?"}]}]),
    ],
)  # fmt: skip
def test_other_forms_of_the_input_are_written_as_steps(given, as_steps):
    written, report = write(read(given))
    assert (written["input"], report.losses) == (as_steps, {})


# -- what is read ------------------------------------------------------------------------------------------------------


def test_steps_are_turns():
    thought = {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]}
    request = read([HI, thought, said("a", "b"), CALL, result(), HI], system_instruction="rules")
    assert [turn.role for turn in request.turns] == ["system", "user", "assistant", "user", "user"]
    assert parts(request) == [
        ("system", Text("rules")),
        ("user", Text("Hi")),
        ("assistant", Reasoning("hm", "summary", Opaque("google", "c2ln"))),
        ("assistant", Text("a")),
        ("assistant", Text("b")),
        ("assistant", ToolCall(0, "a", "f", '{"x":1.0}')),
        ("user", ToolResult("a", [Text("ok")], "f")),
        ("user", Text("Hi")),
    ]


def test_what_another_vendor_signed_is_its_own_again():
    def sealed(kind: Any) -> dict[str, Any]:
        return {"type": "thought", "signature": seal(kind, "anthropic", kind)}

    hm = {**sealed("reasoning"), "summary": [{"type": "text", "text": "hm"}]}
    request = read([HI, hm, sealed("opaque"), said("a"), sealed("text"), sealed("call"), CALL, sealed("part")])
    signed = [part for role, part in parts(request) if role == "assistant"]
    assert signed == [
        Reasoning("hm", "summary", Opaque("anthropic", "reasoning")),
        RedactedReasoning(Opaque("anthropic", "opaque")),
        Text("a", Opaque("anthropic", "text")),
        ToolCall(0, "a", "f", '{"x":1.0}', signature=Opaque("anthropic", "call")),
        Text("", Opaque("anthropic", "part")),
    ]
    assert parts(read([HI, sealed("call")]))[-1][1] == RedactedReasoning(Opaque("anthropic", "call"))


def test_settings_have_our_names():
    request = read(
        stream=True,
        service_tier="flex",
        tools=[{"type": "function", "name": "f", "parameters": SCHEMA}, {"type": "google_search"}],
        generation_config={"max_output_tokens": 9, "thinking_level": "LOW", "thinking_summaries": "none", "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}}},
        response_format={"type": "text", "mime_type": "application/json", "schema": SCHEMA},
        labels={"a": "b"},
    )  # fmt: skip
    options = request.options
    assert (request.model, request.stream, options.max_tokens, options.service_tier) == ("m", True, 9, "flex")
    assert options.thinking == Thinking("low", summary="none")
    assert options.output == OutputFormat("schema", SCHEMA)
    assert request.tool_choice == ToolChoice("required", ("f",))
    assert request.tools == [
        Tool("f", parameters=SCHEMA),
        Tool("google_search", kind="server", raw={"type": "google_search"}),
    ]
    assert request.tools[1].search == WebSearch()
    assert request.extras == {"labels": {"a": "b"}}


def test_what_only_a_server_has_is_a_reference():
    request = read(
        previous_interaction_id="v1_1", cached_content="cachedContents/1", environment="e", continuation_token="t"
    )
    assert [path for path, _ in request.stored] == [
        "previous_interaction_id",
        "continuation_token",
        "cached_content",
        "environment",
    ]
    with pytest.raises(BadRequest, match="send all steps so far"):
        write(read(previous_interaction_id="v1_1"), "anthropic")


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"input": 7}, "input"),
        ({"input": [7]}, "input[0]"),
        ({"input": [{"content": []}]}, "input[0].type"),
        ({"input": [{"type": "user_input", "content": [{"text": "Hi"}]}]}, "input[0].content[0].type"),
        ({"input": [{"type": "image"}]}, "input[0]"),
        ({"input": [{"type": "image", "data": "?"}]}, "input[0].data"),
        ({"input": [{**CALL, "arguments": "{}"}]}, "input[0].arguments"),
        ({"input": [{**CALL, "name": None}]}, "input[0].name"),
        ({"input": [result(7)]}, "input[0].result"),
        ({"input": [{"type": "function_result", "result": "ok"}]}, "input[0].call_id"),
        ({"generation_config": {"thinking_level": "extreme"}}, "generation_config.thinking_level"),
        ({"generation_config": {"tool_choice": "some"}}, "generation_config.tool_choice"),
        ({"generation_config": {"tool_choice": {}}}, "generation_config.tool_choice.allowed_tools"),
        ({"tools": [{"name": "f"}]}, "tools[0].type"),
        ({"system_instruction": []}, "system_instruction"),
    ],
)
def test_what_cant_be_is_told_with_its_place(members, path):
    with pytest.raises(BadRequest) as refused:
        read(**{"given": members.pop("input", "Hi"), **members})
    assert refused.value.path == path


# -- what is written of other dialects' requests -----------------------------------------------------------------------


def test_a_conversation_is_steps_and_nothing_of_it_is_stored():
    made = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1.0}'}}
    request = chat(
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Look", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
        {"role": "user", "content": "so?"},
        stream=True,
    )
    written, report = write(request)
    assert written == {
        "model": "m",
        "input": [
            HI,
            said("Look"),
            CALL,
            result(),
            {"type": "user_input", "content": [{"type": "text", "text": "so?"}]},
        ],
        "system_instruction": "rules",
        "store": False,
        "stream": True,
    }
    assert not report.losses


def test_googles_signatures_go_back_in_thoughts_and_others_are_lost():
    signed = Reasoning("hm", "summary", Opaque("google", "c2ln"))
    request = chat({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "a"})
    call = ToolCall(0, "a", "f", "{}", signature=Opaque("google", "c2s="))
    foreign = Reasoning("no", signature=Opaque("anthropic", "s"))
    request.turns[1].parts = [signed, foreign, RedactedReasoning(Opaque("anthropic", "r")), call]
    request.turns.append(chat({"role": "tool", "tool_call_id": "a", "content": "ok"}).turns[0])
    written, report = write(request)
    assert written["input"][1:4] == [
        {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "c2ln"},
        {"type": "thought", "signature": "c2s="},
        {"type": "function_call", "id": "a", "name": "f", "arguments": {}},
    ]
    assert report.losses == {"reasoning_signature": 1, "reasoning_history": 1, "reasoning_opaque": 1}


@pytest.mark.parametrize(
    ("thinking", "config", "lost"),
    [
        (Thinking("max"), {"thinking_level": "high"}, ["thinking.effort"]),
        (Thinking("none"), {"thinking_level": "low"}, ["thinking.enabled"]),
        (Thinking(enabled=False), {"thinking_level": "low"}, ["thinking.enabled"]),
        (Thinking(budget_tokens=1024), {"thinking_level": "low"}, ["thinking.budget_tokens"]),
        (Thinking("high", 1024, summary="detailed"), {"thinking_level": "high", "thinking_summaries": "auto"}, ["thinking.budget_tokens", "thinking.summary"]),
    ],
)  # fmt: skip
def test_how_much_to_think_is_a_level(thinking, config, lost):
    request = chat({"role": "user", "content": "Hi"})
    request.options.thinking = thinking
    written, report = write(request)
    assert (written["generation_config"], [what for _, what in report.lost]) == (config, lost)


def test_what_it_has_no_place_for_is_counted():
    request = chat(
        {"role": "user", "content": "Hi"}, top_logprobs=2, logprobs=True, presence_penalty=1, parallel_tool_calls=False,
        tools=[{"type": "function", "function": {"name": "f", "strict": True, "parameters": SCHEMA}}],
    )  # fmt: skip
    written, report = write(request)
    assert written["generation_config"] == {"tool_choice": "validated"}
    assert {what for _, what in report.lost} == {"presence_penalty", "logprobs", "top_logprobs", "parallel"}
    with pytest.raises(BadRequest, match="one choice"):
        write(chat({"role": "user", "content": "Hi"}, n=2))


def test_media_go_as_contents_and_ids_of_others_do_not():
    request = chat({"role": "user", "content": "Hi"})
    request.turns[0].parts = [
        Media("image", "image/png", data="AA=="),
        Media("video", url="https://a.example/v"),
        Media("file", "application/pdf", file_id="file-1"),
        Aside("anthropic", "unknown_event", "x", {}),
    ]
    written, report = write(request, linked_media="drop")
    assert written["input"] == [
        {"type": "user_input", "content": [{"type": "image", "mime_type": "image/png", "data": "AA=="}, {"type": "video", "uri": "https://a.example/v"}]},
    ]  # fmt: skip
    assert report.losses == {"media": 1, "unknown_event": 1}
