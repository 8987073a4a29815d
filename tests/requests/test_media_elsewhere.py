"""Media that are not in a request itself: at a URL, in a vendor's store; films and sounds of Chat; parts that nobody knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from tests.requests.rows import translate
from tests.requests.sdk_types import faults

MP4 = "AAAAGGZ0eXBtcDQy"
TARGETS = [name for name, dialect in DIALECTS.built_in.items() if dialect.bodies is not None]
GOOGLES = "https://generativelanguage.googleapis.com/v1beta/files/abc"
PDF_AT = "https://example.org/a.pdf"


def chat(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": [*parts, {"type": "text", "text": "Q"}]}]}


def claude(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"max_tokens": 9, **chat(*blocks)}


def linked(kind: str, url: str) -> dict[str, Any]:
    return {"type": kind, "source": {"type": "url", "url": url}}


# -- links -------------------------------------------------------------------------------------------------------------

#: The targets that take a link to a document, and what they write of it.
TAKE_LINKS = {"anthropic", "gemini", "gemini-interactions", "openai-responses", "mistral", "ai-sdk", "ag-ui"}


@pytest.mark.parametrize("to", TARGETS)
def test_a_linked_document_is_taken_or_refused_or_dropped_as_a_linked_image_is(to):
    body, source = claude(linked("document", PDF_AT)), "anthropic"
    if to == "anthropic":
        body, source = {"model": "m", "input": [{"role": "user", "content": [{"type": "input_file", "file_url": PDF_AT}]}]}, "openai-responses"  # fmt: skip
    if to in TAKE_LINKS:
        taken, report = translate(body, source, to)
        assert PDF_AT in json.dumps(taken)
        assert "media" not in report.losses
        return
    with pytest.raises(BadRequest, match=rf"{to} does not accept file input at a URL") as raised:
        translate(body, source, to)
    assert raised.value.path == "messages[0].content[0]"
    dropped, report = translate(body, source, to, linked_media="drop")
    assert "example.org" not in json.dumps(dropped)
    assert report.losses["media"] == 1


def test_a_linked_text_is_refused_where_only_pdfs_may_be_links():
    part = {"type": "file", "mediaType": "text/csv", "url": "https://example.org/a.csv"}
    body = {"messages": [{"id": "1", "role": "user", "parts": [part]}]}
    with pytest.raises(BadRequest, match="anthropic does not accept file input at a URL") as raised:
        translate(body, "ai-sdk", "anthropic")
    assert raised.value.path == "messages[0].parts[0]"


#: A part of Chat in which other servers than OpenAI's take an address.
ADDRESSES = [
    {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF_AT}},
    {"type": "file", "file": {"file_id": PDF_AT, "format": "application/pdf"}},
]


@pytest.mark.parametrize("part", ADDRESSES)
def test_a_file_of_chat_may_be_a_link(part):
    taken, _ = translate(chat(part), "openai-chat", "anthropic")
    assert taken["messages"][0]["content"][0]["source"] == {"type": "url", "url": PDF_AT}
    with pytest.raises(BadRequest, match=r"messages\[0\]\.content\[0\]: bedrock does not accept file input at a URL"):
        translate(chat(part), "openai-chat", "bedrock")


# -- the stores of vendors ---------------------------------------------------------------------------------------------

#: Media in a vendor's store: the client's dialect and body, and the targets that can read them.
STORED = [
    ("anthropic", claude(linked("image", "gs://b/a.png")), {"gemini", "gemini-interactions"}),
    ("anthropic", claude(linked("image", "s3://bucket/a.png")), {"bedrock"}),
    ("anthropic", claude(linked("document", GOOGLES)), {"gemini", "gemini-interactions"}),
    ("anthropic", claude({"type": "document", "source": {"type": "file", "file_id": "file_1"}}), set()),
    ("openai-chat", chat({"type": "image_url", "image_url": {"url": "gs://b/a.png"}}), {"gemini", "gemini-interactions"}),
    ("openai-chat", chat({"type": "file", "file": {"file_id": "file-1"}}), {"openai-responses"}),
    ("openai-chat", chat({"type": "file", "file": {"file_id": "gs://b/a.pdf"}}), {"gemini", "gemini-interactions"}),
    ("gemini", {"contents": [{"parts": [{"fileData": {"fileUri": GOOGLES, "mimeType": "image/png"}}, {"text": "Q"}]}]}, {"gemini-interactions"}),
    ("gemini", {"contents": [{"parts": [{"fileData": {"fileUri": "gs://b/a", "mimeType": "image/png"}}, {"text": "Q"}]}]}, {"gemini-interactions"}),
    ("gemini-interactions", {"model": "m", "input": [{"type": "image", "uri": GOOGLES, "mime_type": "image/png"}, {"type": "text", "text": "Q"}]}, {"gemini"}),
    ("bedrock", {"messages": [{"role": "user", "content": [{"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/a"}}}}, {"text": "Q"}]}]}, set()),
    ("mistral", chat({"type": "file", "file_id": "file-1"}), set()),
    ("openai-responses", {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}, {"type": "input_text", "text": "Q"}]}]}, {"openai-chat"}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "body", "readers"), STORED)
def test_what_only_a_vendors_store_has_goes_to_who_can_read_it_and_is_refused_for_others(source, body, readers):
    for to in set(TARGETS) - {source, "ai-sdk", "ag-ui"}:  # they take such URLs: their application decides
        if to in readers:
            _, report = translate(body, source, to)
            assert "media" not in report.losses, to
            continue
        with pytest.raises(
            BadRequest, match=f"{to} cannot read .*, which only another provider can; send its bytes"
        ) as raised:
            translate(body, source, to)
        assert raised.value.path.startswith(("messages[0].content[0]", "contents[0].parts[0]", "input[0]"))
        with pytest.raises(BadRequest, match="unreadable"):
            translate(body, source, to, linked_media="drop")
        _, report = translate(body, source, to, unreadable="drop")
        assert report.losses["media"] == 1, to


# -- films and sounds of Chat ------------------------------------------------------------------------------------------

FILM = {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{MP4}"}}
SOUNDS = [
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "input_audio", "input_audio": {"data": "data:;base64,AAAA", "format": "wav"}},
    {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,AAAA"}},
]


def test_a_film_goes_to_whoever_takes_one():
    found, _ = translate(chat(FILM), "openai-chat", "gemini")
    assert found["contents"][0]["parts"][0] == {"inlineData": {"mimeType": "video/mp4", "data": MP4}}
    found, _ = translate(chat(FILM), "openai-chat", "gemini-interactions")
    assert found["input"][0]["content"][0] == {"type": "video", "mime_type": "video/mp4", "data": MP4}
    found, _ = translate(chat(FILM), "openai-chat", "bedrock")
    assert found["messages"][0]["content"][0] == {"video": {"format": "mp4", "source": {"bytes": MP4}}}
    assert faults("bedrock", found) == []
    found, report = translate(chat(FILM), "openai-chat", "anthropic")
    assert report.losses["media"] == 1


def test_a_linked_film_stays_a_link_or_is_refused():
    part = {"type": "video_url", "video_url": {"url": "https://youtu.be/x", "fps": 2}}
    found, report = translate(chat(part), "openai-chat", "gemini")
    assert found["contents"][0]["parts"][0] == {"fileData": {"fileUri": "https://youtu.be/x"}}
    assert report.lost == [("metadata", "video_url")]
    with pytest.raises(BadRequest, match="bedrock does not accept video input at a URL"):
        translate(chat(part), "openai-chat", "bedrock")


@pytest.mark.parametrize("part", SOUNDS)
def test_a_sound_goes_to_whoever_takes_one(part):
    found, _ = translate(chat(part), "openai-chat", "gemini")
    assert found["contents"][0]["parts"][0] == {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}
    found, _ = translate(chat(part), "openai-chat", "mistral")
    assert found["messages"][0]["content"][0] == {"type": "input_audio", "input_audio": "AAAA"}


@pytest.mark.parametrize(
    "part", [*ADDRESSES, *SOUNDS, FILM, {"type": "video_url", "video_url": {"url": "https://a.b/c", "fps": 2}}]
)
def test_all_of_them_come_back_as_they_came_within_chat(part):
    assert translate(chat(part), "openai-chat", "openai-chat")[0] == chat(part)
    assert translate(chat(part), "openai-chat", "vllm")[0] == chat(part)


# -- parts that nobody knows -------------------------------------------------------------------------------------------

ODD = {"type": "hologram", "hologram": {"url": "u"}}
#: A request of each dialect with a part that nobody knows, and the path to it.
UNKNOWN = {
    "openai-chat": (chat(ODD), "messages[0].content[0]"),
    "openai-responses": ({"model": "m", "input": [{"role": "user", "content": [ODD]}]}, "input[0].content[0]"),
    "anthropic": (claude(ODD), "messages[0].content[0]"),
    "bedrock": ({"messages": [{"role": "user", "content": [{"hologram": {"url": "u"}}]}]}, "messages[0].content[0]"),
    "gemini": ({"contents": [{"parts": [{"text": "a"}, {"hologram": {"url": "u"}}]}]}, "contents[0].parts[1]"),
    "gemini-interactions": ({"model": "m", "input": [{"type": "user_input", "content": [ODD]}]}, "input[0].content[0]"),
    "cohere": (chat(ODD), "messages[0].content[0]"),
    "mistral": (chat(ODD), "messages[0].content[0]"),
    "ag-ui": (
        {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": [ODD]}]},
        "messages[0].content[0]",
    ),
    "ai-sdk": ({"messages": [{"id": "1", "role": "user", "parts": [ODD]}]}, "messages[0].parts[0]"),
}


def test_every_dialect_whose_content_has_parts_is_in_the_table():
    assert UNKNOWN.keys() == {*TARGETS} - {"ollama"}


@pytest.mark.parametrize("source", UNKNOWN)
def test_a_part_that_nobody_knows_is_refused_with_its_path_and_type(source):
    body, path = UNKNOWN[source]
    for to in set(TARGETS) - {source}:
        with pytest.raises(BadRequest, match="a part of the unknown type 'hologram'") as raised:
            translate(body, source, to)
        assert raised.value.path == path
    again, report = translate(body, source, source)
    assert "hologram" in json.dumps(again)
    assert not report.losses


#: Parts that only one dialect knows, and that are text, or say nothing a model must read.
PASSED = [
    ("anthropic", claude({"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]})),
    ("ai-sdk", {"messages": [{"id": "1", "role": "user", "parts": [{"type": "data-seen", "data": 1}, {"type": "text", "text": "Q"}]}]}),
    *[
        ("ai-sdk", {"messages": [{"id": "1", "role": "user", "parts": [{"type": kind, "text": "t"}, {"type": "text", "text": "Q"}]}]})
        for kind in ("reasoning", "tool-f", "dynamic-tool", "custom", "source-document", "step-start")
    ],
    ("anthropic", claude({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "text", "text": "Q"})),
    ("bedrock", {"messages": [{"role": "user", "content": [{"cachePoint": {"type": "default"}}, {"text": "Q"}]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "body"), PASSED)
def test_parts_of_one_dialect_that_are_known_stay_a_loss(source, body):
    _, report = translate(body, source, "openai-chat")
    assert sum(report.losses.values()) == 1


def test_an_assistants_part_stays_a_loss_since_a_model_wrote_it():
    body = chat()
    body["messages"].insert(0, {"role": "assistant", "content": [ODD, {"type": "text", "text": "a"}]})
    _, report = translate(body, "openai-chat", "anthropic")
    assert report.losses["unknown_event"] == 1


@pytest.mark.parametrize("to", ["openai-chat", "openrouter", "mistral", "cohere", "anthropic"])
def test_what_the_system_shows_is_a_loss_where_only_the_user_may_show_anything(to):
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
    shown = {"role": "developer", "content": [{"type": "input_text", "text": "rules"}, image]}
    body, report = translate({"model": "m", "input": [shown, {"role": "user", "content": "Q"}]}, "openai-responses", to)
    assert "rules" in json.dumps(body)
    assert "iVBOR" not in json.dumps(body)
    assert report.losses == {"media": 1}
    if to != "openrouter":
        assert faults(to, body) == []
