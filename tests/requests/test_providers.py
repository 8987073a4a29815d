"""What providers of Chat want otherwise than OpenAI, and media at URLs for dialects that take none."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from tests.requests.rows import translate

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
LINK = {"type": "image", "source": {"type": "url", "url": "https://pictures.test/a.png"}}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def conversation(*user: dict[str, Any], **more: Any) -> bytes:
    messages = [
        {"role": "user", "content": list(user)},
        {
            "role": "assistant",
            "content": [text("one"), text(" two"), {"type": "tool_use", "id": "t", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": [text("a"), text("b")], **more}],
        },
    ]
    return orjson.dumps(
        {"model": "m", "max_tokens": 9, "system": [text("be", **LONG), text("brief")], "messages": messages}
    )


def written(body: bytes, target: str, source: str = "anthropic", **more: Any) -> tuple[Any, StreamReport]:
    return translate(body, source, target, **more)


def test_deepseek_gets_strings():
    body, report = written(conversation(text("see"), text("this"), PNG), "deepseek")
    assert [message["content"] for message in body["messages"]] == ["be\n\nbrief", "see\n\nthis", "one two", "a\n\nb"]
    assert report.losses == {"block_boundary": 4, "cache_mark": 1, "media": 1}


def test_deepseek_gets_strings_from_clients_of_chat_too():
    parts = [text("a"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}]
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": parts}]})
    out, report = written(body, "deepseek", "openai-chat")
    assert out["messages"] == [{"role": "user", "content": "a"}]
    assert report.losses == {"media": 1}


def test_openrouter_gets_anthropics_marks_in_results_too():
    body, report = written(conversation(text("Hi", **MARK), **MARK), "openrouter")
    assert [message["content"] for message in body["messages"]] == [
        [text("be", **LONG), text("brief")],
        [text("Hi", **MARK)],
        [text("one"), text(" two")],
        [text("a"), text("b", **MARK)],
    ]
    assert not report.losses


def test_openrouter_gets_openais_marks_as_anthropics_and_a_loss_counts_their_spans():
    part = text("Hi", prompt_cache_breakpoint={"mode": "explicit", "ttl": "30m"})
    body = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": [part]}]})
    out, report = written(body, "openrouter", "openai-chat")
    assert out["messages"][0]["content"] == [text("Hi", **MARK)]
    assert report.losses == {"cache_mark": 1}


@pytest.mark.parametrize("target", ["ollama", "bedrock"])
def test_an_image_at_a_url_is_refused_where_no_url_is_taken_unless_it_may_be_dropped(target):
    body = conversation(text("What is it?"), LINK)
    with pytest.raises(BadRequest, match="linked_media") as refused:
        written(body, target)
    assert refused.value.path == "messages[0].content[1]"
    _, report = written(body, target, linked_media="drop")
    assert report.losses["media"] == 1


def test_gemini_takes_links_of_the_user_and_none_in_what_a_tool_gave():
    assert written(conversation(text("What is it?"), LINK), "gemini")[1].losses["media"] == 0
    body = conversation(text("look")).replace(orjson.dumps(text("b")), orjson.dumps(LINK))
    with pytest.raises(BadRequest, match="linked_media") as refused:
        written(body, "gemini")
    assert refused.value.path == "messages[2].content[0].content[1]"


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic", "mistral", "cohere"])
def test_where_a_url_is_taken_it_is_written(target):
    body, _ = written(conversation(text("What is it?"), LINK), target)
    assert "https://pictures.test/a.png" in orjson.dumps(body).decode()
