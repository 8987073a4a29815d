"""Images that a model made, in the history of the next request: as they came for their vendor, in its form for another."""

from __future__ import annotations

import orjson
import pytest
from attrs import evolve

from streamkit import Request, collect, decode_request
from streamkit.conversation.messages import Media, Response, Text, Turn
from streamkit.conversation.response_events import response_events
from streamkit.events import MediaGenerated
from streamkit.testing import source_of
from tests.requests.rows import write
from tests.vectors import VECTORS

PNG = "iVBORw0KGgo="
BODIES = {(vector.dialect, vector.name): vector.body for vector in VECTORS}
MADE = {
    "gemini": "an image that the model made, and one that it tried",
    "openai-chat": "images that the model made",
    "openai-responses": "an image that the model made",
    "ollama": "images that the model made",
}
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
ITEM = {"id": "i1", "type": "image_generation_call", "status": "completed", "result": PNG, "revised_prompt": "a cat"}


async def answer(dialect: str) -> Response:
    return await collect(source_of([BODIES[dialect, MADE[dialect]]]), dialect)


def next_request(response: Response, dialect: str) -> Request:
    turns = [Turn("user", [Text("draw")]), Turn("assistant", response.choices[0].parts), Turn("user", [Text("bigger")])]
    return Request(dialect, "m", turns, stream=True)


async def test_gemini_gets_its_image_back_with_the_signature_of_the_part():
    body, report = write(next_request(await answer("gemini"), "gemini"), "gemini")
    assert body["contents"][1]["parts"][2] == {
        "inlineData": {"mimeType": "image/png", "data": PNG},
        "thoughtSignature": "QUJD",
    }
    assert report.losses == {}


async def test_responses_gets_its_item_back():
    body, report = write(next_request(await answer("openai-responses"), "openai-responses"), "openai-responses")
    (item,) = [item for item in body["input"] if item.get("type") == "image_generation_call"]
    assert (item["id"], item["result"], item["revised_prompt"]) == ("i1", PNG, "a cat")
    assert report.losses == {}


async def test_chat_gets_its_images_back_in_one_list():
    body, report = write(next_request(await answer("openai-chat"), "openai-chat"), "openai-chat")
    assert body["messages"][1]["images"] == [PICTURE, {**PICTURE, "index": 1}]
    assert report.losses == {}


async def test_ollama_gets_its_image_back():
    body, report = write(next_request(await answer("ollama"), "ollama"), "ollama")
    assert body["messages"][1]["images"] == [PNG]
    assert report.losses == {"block_order": 1}  # the server puts images in front of the text


HISTORIES = {
    "openai-chat": {
        "messages": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": "Hi", "images": [PICTURE]},
            {"role": "user", "content": "bigger"},
        ]
    },
    "openai-responses": {"input": [{"role": "user", "content": "draw"}, ITEM, {"role": "user", "content": "bigger"}]},
}


@pytest.mark.parametrize("dialect", HISTORIES)
def test_an_image_of_the_history_goes_to_another_vendors_model(dialect):
    body = {"model": "m", "stream": True, **HISTORIES[dialect]}
    request = decode_request(orjson.dumps(body), dialect)
    parts, report = write(request, "gemini")
    assert parts["contents"][1]["parts"][-1] == {"inlineData": {"mimeType": "image/png", "data": PNG}}
    assert "media" not in report.losses
    again, report = write(request, dialect)
    assert again == body
    assert report.losses == {}


@pytest.mark.parametrize("dialect", ["anthropic", "cohere", "openai-responses"])
def test_an_image_of_the_history_is_a_loss_where_an_assistant_can_have_none(dialect):
    request = decode_request(orjson.dumps({"model": "m", **HISTORIES["openai-chat"]}), "openai-chat")
    assert write(request, dialect)[1].losses["media"] == 1


def test_an_item_that_was_made_of_another_vendors_image_is_not_sent_to_one_who_does_not_know_it():
    said = {"role": "user", "content": "bigger"}
    body = {"model": "m", "input": [{**ITEM, "id": "ig_streamkit_x"}, said]}
    again, report = write(decode_request(orjson.dumps(body), "openai-responses"), "openai-responses")
    assert again["input"] == [said]
    assert report.losses == {"media": 1}


@pytest.mark.parametrize("dialect", MADE)
async def test_what_is_collected_of_a_replayed_answer_is_the_same(dialect):
    response = await answer(dialect)
    media = [event for event in response_events(response) if isinstance(event, MediaGenerated)]
    assert [(each.data, each.url, each.native) for each in media] == [
        (part.data, part.url, part.native) for part in response.choices[0].media
    ]
    assert media


def test_media_that_the_program_changed_are_written_as_changed():
    made = decode_request(orjson.dumps({"model": "m", **HISTORIES["openai-chat"]}), "openai-chat").turns[1].parts[-1]
    assert isinstance(made, Media)
    changed = evolve(made, data="AAAA", native=None)
    body, _ = write(Request("ollama", "m", [Turn("user", [Text("a")]), Turn("assistant", [changed])]), "ollama")
    assert body["messages"][1]["images"] == ["AAAA"]
