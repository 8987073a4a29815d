"""What a client's own provider takes and the other refuses with the whole request: its form is mended, and counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit import StreamReport, decode_request
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from tests.requests.rows import translate

TARGETS = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None and name != "openai-chat"]
#: The first bytes of an image of each kind, as base64.
PNG, JPEG, GIF, WEBP = "iVBORw0KGgo=", "/9j/4AAQSkZJRgABAQ==", "R0lGODlhAQABAAAAACw=", "UklGRiQAAABXRUJQVlA4IA=="
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
ASK = {"role": "user", "content": "a"}


def chat(*messages: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": list(messages) or [ASK], **more}).encode()


def carried(body: bytes, to: str, source: str = "openai-chat") -> tuple[Any, StreamReport]:
    return translate(body, source, to)


def image(said: str, data: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:{said};base64,{data}"}}]}


# -- half of a surrogate pair ------------------------------------------------------------------------------------------

HALVES = [r"cut \ud83d", r"cut \uD83D here", r"\ude00", r"\ud83d\ud83d\ude00", r"\\\ud83d"]


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("half", HALVES)
def test_a_text_that_was_cut_inside_a_character_does_not_cost_the_request(to, half):
    body = b'{"model": "m", "messages": [{"role": "user", "content": "%b"}]}' % half.encode()
    written, report = carried(body, to)
    assert "\N{REPLACEMENT CHARACTER}" in json.dumps(written, ensure_ascii=False)
    assert report.repairs["lone_surrogate"] == 1
    if r"\ude00" in half[1:]:
        assert "\N{GRINNING FACE}" in json.dumps(written, ensure_ascii=False)


@pytest.mark.parametrize("whole", [r"\ud83d\ude00", r"\\ud83d", r"\\\\udead"])
def test_whole_characters_and_escaped_backslashes_stay(whole):
    body = b'{"model": "m", "messages": [{"role": "user", "content": "%b"}]}' % whole.encode()
    written, report = carried(body, "anthropic")
    assert written["messages"][0]["content"] == json.loads(f'"{whole}"')
    assert not report.repairs


def test_a_body_that_is_broken_otherwise_is_refused_as_before():
    with pytest.raises(BadRequest, match="the body is not JSON"):
        decode_request(b'{"model": "m", "messages": [{"role": "user", "content": "\\ud83d"}', "openai-chat")


@pytest.mark.parametrize("to", TARGETS)
def test_half_a_character_in_arguments_is_none_in_an_object(to):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "f", "arguments": r'{"a":"\ud83d","b":"\ud83d\ude00"}'},
    }
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "r"}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    written, report = carried(chat(ASK, calls, result, tools=[tool]), to)
    json.dumps(written, ensure_ascii=False).encode()  # arguments that are text keep the escape in it
    assert report.repairs["lone_surrogate"] == (
        to in {"ai-sdk", "anthropic", "bedrock", "gemini", "gemini-interactions", "ollama"}
    )


# -- images under a wrong name -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "kind"), [(PNG, "png"), (JPEG, "jpeg"), (GIF, "gif"), (WEBP, "webp")])
@pytest.mark.parametrize("said", ["image/png", "image/jpeg", "image/jpg", "application/octet-stream", ""])
def test_an_image_is_sent_as_what_its_bytes_are(said, data, kind):
    written, report = carried(chat(image(said, data)), "anthropic")
    assert written["messages"][0]["content"][0]["source"]["media_type"] == f"image/{kind}"
    written, _ = carried(chat(image(said, data)), "bedrock")
    assert written["messages"][0]["content"][0]["image"]["format"] == kind
    written, _ = carried(chat(image(said, data)), "gemini")
    assert written["contents"][0]["parts"][0]["inlineData"]["mimeType"] == f"image/{kind}"
    assert report.repairs["media_type_mended"] == (said != f"image/{kind}")
    assert not report.losses


def test_an_image_of_unknown_bytes_has_the_usual_name_of_the_type_that_was_said():
    written, _ = carried(chat(image("image/jpg", "AAAA")), "anthropic")
    assert written["messages"][0]["content"][0]["source"]["media_type"] == "image/jpeg"
    written, report = carried(chat(image("image/png", "AAAA")), "anthropic")
    assert written["messages"][0]["content"][0]["source"]["media_type"] == "image/png"
    assert not report.repairs


def test_an_image_in_the_result_of_a_tool_too():
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": JPEG}}
    messages = [
        ASK,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [shot]}]},
    ]
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": messages,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    }
    written, report = carried(json.dumps(body).encode(), "bedrock", "anthropic")
    assert written["messages"][2]["content"][0]["toolResult"]["content"][0]["image"]["format"] == "jpeg"
    assert report.repairs["media_type_mended"] == 1


# -- the form of the answer --------------------------------------------------------------------------------------------


def form(**members: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": members}


@pytest.mark.parametrize("to", TARGETS)
def test_a_form_without_a_schema_is_json_of_any_kind(to):
    written, report = carried(chat(response_format=form(name="n")), to)
    plain, _ = carried(chat(response_format={"type": "json_object"}), to)
    for made in "threadId", "runId", *(["id"] if to == "ai-sdk" else []):
        assert written.pop(made, "") != plain.pop(made, None)
    assert written == plain
    assert report.losses["parameter"]


@pytest.mark.parametrize(
    ("to", "name_of"),
    [
        ("openai-responses", lambda body: body["text"]["format"]["name"]),
        ("mistral", lambda body: body["response_format"]["json_schema"]["name"]),
        ("bedrock", lambda body: body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["name"]),
    ],
)
def test_the_name_of_a_schema_is_one_that_is_taken(to, name_of):
    written, report = carried(chat(response_format=form(name="my.Answer[int]", schema=SCHEMA)), to)
    assert name_of(written).startswith("my_Answer_int__")
    assert report.repairs["name_rewritten"] == 1
    written, report = carried(chat(response_format=form(name="9-lives", schema=SCHEMA)), to)
    assert name_of(written) == "9-lives"
    assert not report.repairs


# -- text that the assistant is to go on with --------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["anthropic", "bedrock"])
def test_claude_is_to_go_on_with_text_that_ends_in_a_word(to):
    begun = {"role": "assistant", "content": "The answer is \n"}
    written, report = carried(chat(ASK, begun), to)
    assert "The answer is" in json.dumps(written["messages"][-1])
    assert "is \\n" not in json.dumps(written)
    assert report.repairs["space_trimmed"] == 1
    written, report = carried(chat(ASK, begun, ASK), to)
    assert "is \\n" in json.dumps(written)
    assert not report.repairs


# -- what would be dropped, or sent as something else ------------------------------------------------------------------


@pytest.mark.parametrize("to", [name for name in [*TARGETS, "openai-chat"] if name != "bedrock"])
def test_text_in_blocks_that_only_bedrock_has_is_said(to):
    blocks = [
        {"guardContent": {"text": {"text": "Is it true?", "qualifiers": ["query"]}}},
        {"searchResult": {"source": "s.example", "title": "t", "content": [{"text": "It was found."}]}},
        {"document": {"name": "d", "source": {"content": [{"text": "It was written."}]}}},
    ]
    system = [{"guardContent": {"text": {"text": "Be brief."}}}]
    body = {"system": system, "messages": [{"role": "user", "content": blocks}]}
    written, report = carried(json.dumps(body).encode(), to, "bedrock")
    for words in "Is it true?", "It was found.", "It was written.", "Be brief.", "s.example":
        assert words in json.dumps(written)
    assert report.losses["metadata"] == (2 if to == "anthropic" else 4)  # the forms, some of which Anthropic has, too
    assert not report.losses["unknown_event"]


def test_guarded_pictures_stay_a_counted_loss():
    picture = {"guardContent": {"image": {"format": "png", "source": {"bytes": PNG}}}}
    body = {"messages": [{"role": "user", "content": [{"text": "a"}, picture]}]}
    written, report = carried(json.dumps(body).encode(), "anthropic", "bedrock")
    assert written["messages"] == [ASK]
    assert report.losses["unknown_event"] == 1


WAV, MP3, OGG = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA", "SUQzBAAAAAAA", "T2dnUwACAAAA"


@pytest.mark.parametrize(("data", "kind", "form"), [(WAV, "wav", "wav"), (MP3, "mpeg", "mp3"), (OGG, "ogg", "ogg")])
def test_a_sound_without_a_type_is_no_picture(data, kind, form):
    sound = {"role": "user", "content": [{"type": "input_audio", "input_audio": data}]}
    written, report = carried(chat(sound), "gemini", "mistral")
    assert written["contents"][0]["parts"][0]["inlineData"]["mimeType"] == f"audio/{kind}"
    written, report = carried(chat(sound), "bedrock", "mistral")
    assert written["messages"][0]["content"][0]["audio"]["format"] == form
    assert not report.losses
