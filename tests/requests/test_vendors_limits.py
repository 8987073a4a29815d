"""What one vendor's server refuses of a whole request, and what is written instead: rows of a client's request and the result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit import StreamReport, decode_request, encode_request
from tests.requests.rows import translate
from tests.requests.sdk_types import faults

PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQK"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
CHAT_TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}


def carried(body: dict[str, Any], source: str, to: str, **options: Any) -> tuple[Any, StreamReport]:
    """What a client's request becomes for another dialect, which its official client would have let a user write."""
    written, report = translate(body, source, to, **options)
    dialect = {"groq": "openai-chat", "gemini-openai": "openai-chat", "vertex-gemini": "gemini"}.get(to, to)
    assert faults(dialect, written) == []
    return written, report


def chat(*messages: dict[str, Any], model: str = "m", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": list(messages) or [{"role": "user", "content": "Go"}], **more}


def chat_result(content: Any, model: str = "m", arguments: str = "{}") -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": content}
    return chat({"role": "user", "content": "Go"}, called, result, model=model, tools=[CHAT_TOOL])


def claude(*content: dict[str, Any], model: str = "m") -> dict[str, Any]:
    return {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": list(content)}]}


def claude_results(*results: list[dict[str, Any]], model: str) -> dict[str, Any]:
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "f", "input": {}} for n, _ in enumerate(results)]
    answers = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": each} for n, each in enumerate(results)]
    turns = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": calls}]
    turns.append({"role": "user", "content": [*answers, {"type": "text", "text": "And?"}]})
    return {"model": model, "max_tokens": 99, "messages": turns, "tools": [{"name": "f", "input_schema": SCHEMA}]}


def document(data: str = PDF, **more: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}, **more}


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}

# -- results of tools for Gemini ---------------------------------------------------------------------------------------

REFERENCES = [
    '{"properties":{"c":{"$ref":"#/$defs/C"}},"$defs":{"C":{"type":"object"}}}',
    '{"$ref":"#/x"}',
    '{"a":[[{"b":[1,{"\\u0024ref":3}]}]]}',
    '{"x":"$ref","y":{"z":{"$ref":null}}}',
]
OBJECTS = ['{"x":"$ref"}', '{"ref":{"$def":1}}', '{"$defs":{"C":{"type":"object"}}}', '{"\\u00fc":1.0}']


@pytest.mark.parametrize("to", ["gemini", "vertex-gemini"])
@pytest.mark.parametrize("model", ["gemini-3-flash", "gemini-2.5-pro", "m"])
@pytest.mark.parametrize("text", REFERENCES)
def test_a_result_that_refers_to_anything_is_text_for_gemini(text, model, to):
    written, report = carried(chat_result(text, model, arguments=text), "openai-chat", to)
    assert written["contents"][2]["parts"][0]["functionResponse"]["response"] == {"output": text}
    assert written["contents"][1]["parts"][0]["functionCall"]["args"] == json.loads(text)  # which it takes
    assert report.repairs["result_as_text"] == 1


@pytest.mark.parametrize("text", OBJECTS)
def test_any_other_object_stays_one(text):
    written, report = carried(chat_result(text, "gemini-3-flash"), "openai-chat", "gemini")
    assert written["contents"][2]["parts"][0]["functionResponse"]["response"] == json.loads(text)
    assert "result_as_text" not in report.repairs


def test_in_interactions_the_result_of_another_dialect_is_text_in_any_case():
    written, _ = carried(chat_result(REFERENCES[0], "gemini-3-flash"), "openai-chat", "gemini-interactions")
    assert written["input"][2]["result"] == REFERENCES[0]


def test_geminis_own_references_stay():
    answer = {"name": "f", "response": {"image": {"$ref": "a.png"}}, "parts": [{"inlineData": {"data": PNG}}]}
    parts = [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}]
    body = {"contents": [*parts, {"role": "user", "parts": [{"functionResponse": answer}]}]}
    request = decode_request(json.dumps(body).encode(), "gemini")
    assert json.loads(encode_request(request, "gemini")) == body


@pytest.mark.parametrize(
    "model", ["gemini-2.5-pro", "models/gemini-2.0-flash", "gemini-1.5-pro-002", "gemini-exp-1206", "m"]
)
def test_media_of_results_stand_behind_all_of_them_before_gemini_3(model):
    body = claude_results([{"type": "text", "text": "shot"}, IMAGE], [IMAGE], model=model)
    written, report = carried(body, "anthropic", "gemini")
    shot = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    kinds = [next(iter(part)) for part in written["contents"][2]["parts"]]
    assert kinds == ["functionResponse", "functionResponse", "inlineData", "inlineData", "text"]
    assert written["contents"][2]["parts"][2:4] == [shot, shot]
    assert not any("parts" in part.get("functionResponse", {}) for part in written["contents"][2]["parts"])
    assert report.losses["media"] == 2
    assert "result_moved" not in report.repairs
    written, report = carried(body, "anthropic", "gemini-interactions")
    assert [step["type"] for step in written["input"][3:]] == ["function_result", "function_result", "user_input"]
    assert [part["type"] for part in written["input"][-1]["content"]] == ["image", "image", "text"]
    assert report.losses["media"] == 2


@pytest.mark.parametrize("model", ["gemini-3-flash", "models/gemini-3.1-pro-preview", "gemini-10"])
def test_media_of_results_stand_in_them_since_gemini_3(model):
    body = claude_results([{"type": "text", "text": "shot"}, IMAGE], model=model)
    written, report = carried(body, "anthropic", "gemini")
    assert len(written["contents"][2]["parts"][0]["functionResponse"]["parts"]) == 1
    assert not report.losses
    written, report = carried(body, "anthropic", "gemini-interactions")
    assert [part["type"] for part in written["input"][2]["result"]] == ["text", "image"]
    assert not report.losses


# -- an answer in JSON, and tools --------------------------------------------------------------------------------------

#: A target and a model, and where the form of the answer stands there.
NOT_BOTH = [
    ("gemini", "gemini-2.5-flash", ("generationConfig", "responseMimeType")),
    ("vertex-gemini", "gemini-2.0-flash-001", ("generationConfig", "responseMimeType")),
    ("gemini-interactions", "gemini-2.5-pro", ("response_format",)),
    ("gemini-openai", "gemini-2.5-flash", ("response_format",)),
    ("cohere", "command-a-03-2025", ("response_format",)),
    ("groq", "llama-3.3-70b-versatile", ("response_format",)),
]
BOTH = [
    ("gemini", "gemini-3-flash", ("generationConfig", "responseMimeType")),
    ("gemini-interactions", "gemini-3.1-pro", ("response_format",)),
    ("anthropic", "claude-opus-4-7", ("output_config",)),
    ("openai-responses", "gpt-5.2", ("text",)),
]


def at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = (body or {}).get(name)
    return body


def asking(to: str, model: str, **more: Any) -> tuple[dict[str, Any], str]:
    """A request for JSON, of a client that speaks another dialect than the target, and that dialect."""
    if to not in {"groq", "gemini-openai"}:
        return chat(model=model, response_format=FORM, tools=[CHAT_TOOL], **more), "openai-chat"
    tools = [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False}]
    form = {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}
    return {"model": model, "input": "Go", "tools": tools, "text": form, **more}, "openai-responses"


@pytest.mark.parametrize(("to", "model", "path"), NOT_BOTH)
def test_the_tools_stay_where_an_answer_in_json_is_refused_next_to_them(to, model, path):
    written, report = carried(*asking(to, model), to)
    assert written["tools"]
    assert at(written, path) is None
    assert ("parameter", "output") in report.lost


@pytest.mark.parametrize(("to", "model", "path"), NOT_BOTH)
def test_the_form_stays_where_no_tool_may_be_called(to, model, path):
    written, report = carried(*asking(to, model, tool_choice="none"), to)
    assert "tools" not in written
    assert at(written, path) is not None
    assert ("tool_choice", "none") in report.lost


@pytest.mark.parametrize(("to", "model", "path"), BOTH)
def test_both_stand_where_both_are_taken(to, model, path):
    if to == "openai-responses":
        body = {"contents": [{"parts": [{"text": "Go"}]}], "model": model}
        body["tools"] = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}]
        body["generationConfig"] = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
        written = json.loads(encode_request(decode_request(json.dumps(body).encode(), "gemini"), to))
    else:
        written, _ = carried(*asking(to, model), to)
    assert written["tools"]
    assert at(written, path) is not None


@pytest.mark.parametrize(("to", "model", "path"), NOT_BOTH)
def test_an_answer_in_json_without_tools_stays(to, model, path):
    body, source = asking(to, model)
    del body["tools"]
    written, report = carried(body, source, to)
    assert at(written, path) is not None
    assert ("parameter", "output") not in report.lost


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_document_alone_has_a_text_next_to_it_for_bedrock():
    written, report = carried(claude(document()), "anthropic", "bedrock")
    assert written["messages"][0]["content"][-1] == {"text": "(A document is attached.)"}
    assert report.repairs["text_added"] == 1
    blank = {"type": "text", "text": " "}
    written, report = carried(claude(blank, document(), document()), "anthropic", "bedrock")
    assert [next(iter(block)) for block in written["messages"][0]["content"]] == ["document", "document", "text"]


@pytest.mark.parametrize("content", [[IMAGE], [document(), {"type": "text", "text": "Q"}]])
def test_nothing_is_added_to_an_image_or_to_a_text(content):
    written, report = carried(claude(*content), "anthropic", "bedrock")
    assert len(written["messages"][0]["content"]) == len(content)
    assert not report.repairs


#: The type of a file without a name, and the name that it is given.
NAMES = [
    ("application/pdf", "file.pdf"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "file.docx"),
    ("application/json", "file.json"),
    ("application/x-odd+thing", "file"),
]


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_a_file_without_a_name_is_given_one_of_its_type(kind, name, to):
    body = {"contents": [{"parts": [{"inlineData": {"mimeType": kind, "data": PDF}}]}], "model": "m"}
    request = decode_request(json.dumps(body).encode(), "gemini")
    report = StreamReport()
    written = json.loads(encode_request(request, to, report=report))
    part = (written["messages"] if to == "openai-chat" else written["input"])[0]["content"][0]
    assert part.get("file", part)["filename"] == name
    assert report.repairs["file_named"] == 1


def test_a_file_with_a_name_keeps_it():
    written, report = carried(claude(document(title="a b.pdf")), "anthropic", "openai-chat")
    assert written["messages"][0]["content"][0]["file"]["filename"] == "a b.pdf"
    assert not report.repairs
