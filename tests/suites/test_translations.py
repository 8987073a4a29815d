"""What CLIProxyAPI's tests of its translators hold, put to our own requests and streams.

Where we do otherwise on purpose the test says why. Left out is what they hold of accounts, of model names and of their own parts.

Source: router-for-me/CLIProxyAPI, ``internal/translator``: ``claude/openai/chat-completions/claude_openai_request_test.go`` at
0937db4, ``openai/claude/openai_claude_request_test.go`` at 0e3f3ea and ``…_response_test.go`` at 0376ace,
``openai/openai/responses/openai_openai-responses_response_test.go`` at 023f59a, ``codex/claude/codex_claude_request_test.go`` at
01e16a8 and ``…_response_test.go`` at 0d6a763. Rules only: no input of theirs is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from streamkit.errors import BadRequest
from streamkit.translation.bodies import decode_request, encode_request
from tests.clients.recipes import converted

PNG: Final = "data:image/png;base64,iVBORw0KGgo="
USAGE: Final = {"prompt_tokens": 21, "completion_tokens": 8, "total_tokens": 29}


def translated(body: Mapping[str, Any], source: str, target: str) -> Any:
    return json.loads(encode_request(decode_request(json.dumps(body).encode(), source), target))


# -- requests of Anthropic's clients -------------------------------------------------------------------------------------


def anthropic(*messages: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    first = {"role": "user", "content": "How deep is the lake?"}
    return {"model": "m", "max_tokens": 50, "messages": [first, *messages], **more}


def assistant(*parts: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(parts)}


def user(*parts: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


SOUNDING: Final = {"type": "tool_use", "id": "toolu_7", "name": "sound", "input": {"at": "pier"}}


def result(content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_7", "content": content}


@pytest.mark.parametrize(
    "thoughts",
    [
        [{"type": "thinking", "thinking": "Deep, I think."}],
        [{"type": "redacted_thinking", "data": "b3BhcXVl"}],
        [{"type": "thinking", "thinking": " \n\t"}],
        [{"type": "thinking", "thinking": "Deep."}, {"type": "thinking", "thinking": "Very."}],
        [{"type": "thinking", "thinking": "Deep."}, {"type": "redacted_thinking", "data": "b3BhcXVl"}],
    ],
    ids=["one", "redacted", "blank", "two", "one and redacted"],
)
def test_thoughts_are_no_part_of_the_visible_text(thoughts: list[dict[str, Any]]):
    """They put thoughts into `reasoning_content`; OpenAI's own API has no such member, so that ours counts a loss instead."""
    body = anthropic(assistant(*thoughts, text("40 metres.")), user(text("Thanks.")))
    said = translated(body, "anthropic", "openai-chat")["messages"][1]
    assert (said["role"], said["content"]) == ("assistant", "40 metres.")


def test_a_turn_of_thoughts_alone_makes_no_message():
    """They keep an empty one; a message that says nothing is refused elsewhere, and Chat takes two of the user's in a row."""
    body = anthropic(assistant({"type": "thinking", "thinking": "Deep."}), user(text("Well?")))
    roles = [message["role"] for message in translated(body, "anthropic", "openai-chat")["messages"]]
    assert roles == ["user", "user"]


def test_thoughts_of_the_user_are_no_thoughts():
    """They drop them silently; Anthropic answers 400, and so do we, with the place."""
    with pytest.raises(BadRequest, match=r"messages\[1\]\.content\[0\]\.type"):
        translated(anthropic(user({"type": "thinking", "thinking": "x"}, text("y"))), "anthropic", "openai-chat")


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize(
    ("system", "wanted"),
    [(None, ""), ("", ""), ("Be brief.", "Be brief."), ([text("Be brief.")], "Be brief."),
     ([text("Be brief."), text("Be kind.")], "Be brief.Be kind.")],
    ids=["none", "empty", "text", "a block", "two blocks"],
)  # fmt: skip
def test_the_system_prompt(system: Any, wanted: str, target: str):
    body = anthropic() if system is None else anthropic(system=system)
    made = translated(body, "anthropic", target)
    first = made["messages"][0] if target == "openai-chat" else made["input"][0]
    said = first["content"] if first["role"] in {"system", "developer"} else made.get("instructions", "")
    found = said if isinstance(said, str) else "".join(part["text"] for part in said)
    assert found.replace("\n", "") == wanted


def test_a_result_follows_its_call_and_the_text_around_it_keeps_its_order():
    body = anthropic(assistant(SOUNDING), user(text("before"), result([text("40")]), text("after")))
    _, called, told, said = translated(body, "anthropic", "openai-chat")["messages"]
    assert called["tool_calls"][0]["id"] == told["tool_call_id"] == "toolu_7"
    assert told["content"] == "40"
    assert [part["text"] for part in said["content"]] == ["before", "after"]


def test_a_result_of_text_and_an_image_loses_neither():
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    body = anthropic(assistant(SOUNDING), user(result([text("see"), {"type": "image", "source": source}])))
    written = json.dumps(translated(body, "anthropic", "openai-chat"))
    assert "see" in written
    assert PNG in written


def test_a_result_that_is_an_object_is_refused_with_its_place():
    """They write it as JSON; Anthropic's API takes text and blocks only, and a client learns it here as it would there."""
    with pytest.raises(BadRequest, match=r"messages\[2\]\.content\[0\]\.content"):
        translated(anthropic(assistant(SOUNDING), user(result({"metres": 40}))), "anthropic", "openai-chat")


@pytest.mark.parametrize(("choice", "wanted"), [({}, True), ({"disable_parallel_tool_use": False}, True),
                                                ({"disable_parallel_tool_use": True}, False)])  # fmt: skip
def test_parallel_calls_are_forbidden_only_where_they_were(choice: dict[str, Any], wanted: bool):
    tools = [{"name": "sound", "input_schema": {"type": "object", "properties": {}}}]
    made = translated(anthropic(tools=tools, tool_choice={"type": "auto", **choice}), "anthropic", "openai-responses")
    assert made.get("parallel_tool_calls", True) is wanted


def test_a_signature_of_anthropics_is_not_shown_to_openai():
    """They pass it on as `encrypted_content`, as their own signatures are; OpenAI refuses what it has not encrypted."""
    thought = {"type": "thinking", "thinking": "Deep.", "signature": "c2lnbmF0dXJl"}
    body = anthropic(assistant(thought, text("40 metres.")), user(text("Thanks.")))
    assert "c2lnbmF0dXJl" not in json.dumps(translated(body, "anthropic", "openai-responses"))


# -- requests of Chat's clients ------------------------------------------------------------------------------------------


def shown(content: Any) -> Any:
    """What Anthropic is shown as the result of a call of a Chat client's."""
    function = {"name": "photo", "arguments": "{}"}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c7", "type": "function", "function": function}]}
    messages = [{"role": "user", "content": "?"}, call, {"role": "tool", "tool_call_id": "c7", "content": content}]
    _, _, said = translated({"model": "m", "messages": messages}, "openai-chat", "anthropic")["messages"]
    (told,) = said["content"]
    assert (said["role"], told["type"], told["tool_use_id"]) == ("user", "tool_result", "c7")
    return told["content"]


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_a_result_in_text_stays_text():
    assert shown("a lake") == "a lake"


def test_images_in_a_result():
    by_url, inline = shown([text("here"), image("https://lake.test/1.png"), image(PNG)])[1:]
    assert by_url["source"] == {"type": "url", "url": "https://lake.test/1.png"}
    assert inline["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


def test_an_image_with_a_parameter_in_its_type():
    """They keep `;charset=utf-8`, which Anthropic's list of media types does not have."""
    messages = [{"role": "user", "content": [image(PNG.replace("png;", "png;charset=utf-8;"))]}]
    (said,) = translated({"model": "m", "messages": messages}, "openai-chat", "anthropic")["messages"]
    assert said["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


@pytest.mark.parametrize(("content", "place"), [(image(PNG), r"\.content"),
                                                ([{"type": "image_url", "image_url": PNG}], r"\.image_url")])  # fmt: skip
def test_shapes_that_openai_refuses_are_refused_with_their_place(content: Any, place: str):
    """They take one part without a list around it, and an image whose URL is not in an object."""
    with pytest.raises(BadRequest, match=place):
        translated({"model": "m", "messages": [{"role": "user", "content": content}]}, "openai-chat", "anthropic")


# -- streams of Chat's upstreams -----------------------------------------------------------------------------------------


def chat(*deltas: Mapping[str, Any], finish: str | None = "tool_calls", usage: str = "") -> bytes:
    """A stream; ``usage``: in the chunk ``with`` the reason, in one ``after`` it, or none."""
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage == "after":
        chunks.append({"choices": []})
    if usage:
        chunks[-1] |= {"usage": USAGE}
    begun = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"".join(b"data: %b\n\n" % json.dumps({**begun, **chunk}).encode() for chunk in chunks) + b"data: [DONE]\n\n"


def calling(*calls: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, **call} for call in calls]}


def function(**members: Any) -> dict[str, Any]:
    return {"function": members}


def events(stream: bytes, target: str) -> list[dict[str, Any]]:
    lines = converted(stream, "openai-chat", target).body.decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def blocks(stream: bytes) -> tuple[list[tuple[int, str, str]], int, str]:
    """The calls of an Anthropic answer: index, id and name; how many blocks were ended; and the stop reason."""
    seen = events(stream, "anthropic")
    begun = [event for event in seen if event["type"] == "content_block_start"]
    ended = sum(event["type"] == "content_block_stop" for event in seen)
    stops = [event["delta"]["stop_reason"] for event in seen if event["type"] == "message_delta"]
    calls = [(event["index"], event["content_block"]["id"], event["content_block"]["name"]) for event in begun]
    return calls, ended, stops[-1] if stops else ""


@pytest.mark.parametrize("name", ["", None, 12], ids=["empty", "null", "a number"])
def test_a_call_without_a_name_is_no_call(name: Any):
    begun = calling({"id": "c7", **function(name=name, arguments="")})
    calls, ended, stop = blocks(chat(begun, calling(function(name=name, arguments=""))))
    assert (calls, ended) == ([], 0)
    assert stop != "tool_use"


def test_a_name_in_every_chunk_is_one_name():
    pieces = [calling(function(name="sound", arguments=piece)) for piece in ('{"at"', ':"pier"}')]
    stream = chat(calling({"id": "c7", **function(name="sound", arguments="")}), *pieces)
    assert blocks(stream) == ([(0, "c7", "sound")], 1, "tool_use")


def test_a_nameless_call_leaves_no_gap_before_the_next():
    begun = calling({"id": "c7", **function(name="", arguments="")}, {"index": 1, "id": "c8", **function(name="sound")})
    stream = chat(begun, calling({"index": 1, **function(arguments="{}")}))
    assert blocks(stream) == ([(0, "c8", "sound")], 1, "tool_use")


@pytest.mark.parametrize(
    "late", [{"id": "c7", **function(arguments="{}")}, {"id": "c7"}], ids=["with arguments", "alone"]
)
def test_a_late_id_is_waited_for(late: dict[str, Any]):
    stream = chat(calling(function(name="sound")), calling(late), calling(function(arguments="")))
    assert blocks(stream) == ([(0, "c7", "sound")], 1, "tool_use")


@pytest.mark.parametrize("usage", ["after", "with", ""])
def test_responses_are_completed_once_with_what_was_counted(usage: str):
    seen = events(
        chat(calling({"id": "c7", **function(name="sound", arguments="{}")}), usage=usage), "openai-responses"
    )
    (done,) = [event["response"] for event in seen if event["type"] == "response.completed"]
    assert seen[-1]["type"] == "response.completed"
    counted = done.get("usage")
    assert (counted and [counted["input_tokens"], counted["output_tokens"]]) == ([21, 8] if usage else None)


def test_no_reason_is_no_success():
    """They tell a stream that ends with `[DONE]` alone as completed. So does one that was cut by a proxy in front (law L3)."""
    seen = events(chat({"content": "40 met"}, finish=None), "openai-responses")
    assert {event["type"] for event in seen} & {"response.completed", "response.failed"} == {"response.failed"}


def test_two_calls_stay_two():
    first, second = '{"file":"C:\\\\lake"}', '{"pattern":"*.{a,b}"}'
    stream = chat(
        calling({"id": "c7", **function(name="read", arguments="")}),
        calling(function(arguments=first)),
        calling({"index": 1, "id": "c8", **function(name="glob", arguments="")}),
        calling({"index": 1, **function(arguments=second)}),
    )
    (done,) = [event for event in events(stream, "openai-responses") if event["type"] == "response.completed"]
    found = [(item["call_id"], item["name"], item["arguments"]) for item in done["response"]["output"]]
    assert found == [("c7", "read", first), ("c8", "glob", second)]


# -- streams of Responses' upstreams -------------------------------------------------------------------------------------


def test_blocks_of_different_kinds_never_share_an_index():
    """A call and a summary that came with the same `output_index`."""
    call = {"type": "function_call", "call_id": "c7", "name": "sound"}
    said = [
        {"type": "response.created", "response": {"id": "r", "model": "m"}},
        {"type": "response.output_item.added", "output_index": 0, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 0, "item": {**call, "arguments": "{}"}},
        {"type": "response.reasoning_summary_part.added", "output_index": 0},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Deep."},
        {"type": "response.reasoning_summary_part.done", "output_index": 0},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    stream = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in said)
    lines = converted(stream, "openai-responses", "anthropic").body.decode().splitlines()
    seen = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    begun = [
        (event["index"], event["content_block"]["type"]) for event in seen if event["type"] == "content_block_start"
    ]
    assert sorted(kind for _, kind in begun) == ["thinking", "tool_use"]
    assert len({index for index, _ in begun}) == 2
