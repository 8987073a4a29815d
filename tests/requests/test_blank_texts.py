"""Texts of nothing but white space: many servers refuse them, so they are left out where anything else is said."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from tests.requests.rows import translate

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
CALL = {"type": "tool_use", "id": "toolu_123", "name": "f", "input": {}}
TOOLS = [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
BLANKS = ("", " ", "\n\n", "\u3000")
#: All that can be reached from a dialect that has blocks, with those that refuse blank texts.
TARGETS = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None]
REFUSING = ("anthropic", "bedrock", "gemini")


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def asked(*messages: dict[str, Any], **more: Any) -> bytes:
    return orjson.dumps({"model": "m", "max_tokens": 9, "messages": messages, "tools": TOOLS, **more})


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def result(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_123", "content": list(blocks)}


def written(body: bytes, target: str, source: str = "anthropic", **more: Any) -> tuple[Any, StreamReport]:
    return translate(body, source, target, **more)


def texts(value: Any) -> list[str]:
    """Every text of a body, wherever it stands."""
    if isinstance(value, dict):
        own = [value[name] for name in ("text", "content") if isinstance(value.get(name), str)]
        return [*own, *(found for inner in value.values() for found in texts(inner))]
    return [found for inner in value for found in texts(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_blank_text_beside_calls_media_and_results_is_left_out_and_counted(target, blank):
    body = asked(
        user(text(blank), IMAGE), assistant(text(blank), CALL), user(result(text(blank), text("found")), text(blank))
    )
    request = decode_request(body, "anthropic")
    request.dialect = "another" if target == "anthropic" else request.dialect
    report = StreamReport()
    out = orjson.loads(encode_request(request, target, report=report))
    if target != "ollama":  # which demands a content in each message
        said = [found for found in texts(out) if not found.strip()]
        assert [found for found in said if target == "bedrock" or found != blank] == []
        assert len(said) <= 1  # a space between two texts stays where it is taken
    assert report.repairs["turn_empty"] >= 3


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_system_that_says_nothing_is_left_out(target, blank):
    out, report = written(asked(user(text("Hi")), system=[text(blank)]), target)
    if target == "anthropic":
        assert "system" not in out
    assert [found for found in texts(out) if not found.strip()] == []
    assert report.repairs["turn_empty"] == 1


@pytest.mark.parametrize("target", REFUSING)
def test_a_turn_of_nothing_but_white_space_is_not_written_to_who_refuses_it(target):
    body = asked(user(text("a")), assistant(text("")), user(text("b")))
    out, report = written(body, target)
    assert "" not in texts(out)
    assert report.repairs == {"turn_empty": 1, "turns_joined": 1} if target != "anthropic" else {"turn_empty": 1}


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "ollama"])
def test_a_text_that_is_all_there_is_stays_where_it_is_taken(target):
    out, report = written(asked(user(text(" "))), target)
    assert " " in texts(out)
    assert not report.repairs


@pytest.mark.parametrize("target", TARGETS)
def test_the_space_between_two_texts_of_a_model_stays_where_it_is_taken(target):
    body = asked(user(text("Hi")), assistant(text("one"), text("\n"), text("two")), user(text("on")))
    out, report = written(body, target)
    if target == "bedrock":
        assert report.repairs == {"turn_empty": 1}
    else:
        assert "\n" in "".join(texts(out))
        assert not report.repairs


def test_within_anthropic_a_blank_text_goes_only_where_the_server_surely_refuses_it():
    out, report = written(
        asked(user(text("a")), assistant(text(" "), CALL), user(result(text(" "))), user(text(" "))), "anthropic"
    )
    assert out["messages"] == [
        {"role": "user", "content": "a"},
        assistant(text(" "), CALL),
        user({"type": "tool_result", "tool_use_id": "toolu_123"}),
    ]
    assert report.repairs == {"turn_empty": 2}


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "anthropic"])
def test_a_mark_on_what_is_left_out_is_a_loss(target):
    _, report = written(asked(user(text(" ", cache_control={"type": "ephemeral"}), IMAGE)), target)
    assert report.losses["cache_mark"] == 1


# -- who speaks first --------------------------------------------------------------------------------------------------

GREETING = orjson.dumps({"model": "m", "messages": [
    {"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "I am Bot."}, {"role": "user", "content": "Hi"},
]})  # fmt: skip


@pytest.mark.parametrize(
    ("target", "member", "role"), [("bedrock", "messages", "assistant"), ("gemini", "contents", "model")]
)
def test_before_an_assistant_who_speaks_first_a_turn_of_the_user_is_put_and_counted(target, member, role):
    out, report = written(GREETING, target, "openai-chat")
    assert [message["role"] for message in out[member]] == ["user", role, "user"]
    assert report.repairs == {"turn_added": 1}
    assert not report.losses


@pytest.mark.parametrize(("target", "path"), [("bedrock", "messages"), ("gemini", "contents")])
def test_such_a_history_is_refused_where_that_is_asked_for(target, path):
    with pytest.raises(BadRequest, match="assistant_first") as refused:
        written(GREETING, target, "openai-chat", assistant_first="refuse")
    assert refused.value.path == path


@pytest.mark.parametrize("target", [name for name in TARGETS if name not in {"bedrock", "gemini"}])
def test_where_the_assistant_may_speak_first_nothing_is_put_before_it(target):
    _, report = written(GREETING, target, "openai-chat", assistant_first="refuse")
    assert not report.repairs


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("bedrock", {"messages": [{"role": "assistant", "content": [{"text": "I am Bot."}]}]}),
        ("gemini", {"contents": [{"role": "model", "parts": [{"text": "I am Bot."}]}]}),
    ],
)  # fmt: skip
def test_within_a_dialect_who_speaks_first_is_for_its_server_to_judge(dialect, body):
    assert written(orjson.dumps(body), dialect, dialect, assistant_first="refuse")[0] == body
