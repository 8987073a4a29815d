"""What a WebSocket's messages ask, and what of the answers is kept for the next."""

from __future__ import annotations

import json

import pytest

from streamkit.dialects.http import SocketRequest
from streamkit.dialects.openai_responses.socket import SocketConversation
from streamkit.events import ProviderFailed
from streamkit.framing.sse import serialize_sse

ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}


def message(**members):
    return json.dumps({"type": "response.create", "model": "m", **members}).encode()


def asked(conversation, **members):
    read = conversation.read(message(**members))
    assert isinstance(read, SocketRequest), read
    return json.loads(read.body)


def answer(conversation, *events):
    stream = b"".join(serialize_sse(json.dumps(event).encode()) for event in events)
    return [*conversation.write(stream), *conversation.end()]


def completed(output, kind="completed"):
    return {"type": f"response.{kind}", "response": {"id": "resp_1", "output": output}}


def test_a_message_is_a_body_that_streams_without_what_is_the_sockets():
    body = asked(SocketConversation(1000), input=[ITEM], generate=True)
    assert body == {"model": "m", "stream": True, "input": [ITEM]}


def test_the_next_message_continues_what_was_kept():
    conversation = SocketConversation(1000)
    asked(conversation, input="hi")
    done = {"type": "response.output_item.done", "item": ITEM}
    assert len(answer(conversation, done, completed(None))) == 2  # of some servers `output` is null
    body = asked(conversation, input="and?", previous_response_id="resp_1")
    assert [item["content"] for item in body["input"]] == ["hi", ITEM["content"], "and?"]
    assert "previous_response_id" not in body


def test_output_that_a_response_says_itself_is_kept_whatever_its_items_were():
    conversation = SocketConversation(1000)
    asked(conversation)
    answer(conversation, {"type": "response.output_item.done", "item": {}}, completed([ITEM], "incomplete"))
    assert asked(conversation, previous_response_id="resp_1")["input"] == [ITEM]


def test_a_response_that_failed_is_not_kept():
    conversation = SocketConversation(1000)
    asked(conversation, input="hi")
    answer(conversation, completed([ITEM], "failed"))
    assert isinstance(conversation.read(message(previous_response_id="resp_1")), ProviderFailed)
    assert conversation.kept_bytes == 0


def test_more_than_the_limit_is_not_kept():
    size = len(json.dumps(ITEM))
    for limit, kept in ((size - 1, 0), (size, size), (size + 1, size)):
        conversation = SocketConversation(limit)
        asked(conversation)
        answer(conversation, completed([ITEM]))
        assert conversation.kept_bytes == kept


def test_a_done_mark_and_comments_are_no_messages():
    written = SocketConversation(1000).write(b': keep-alive\n\ndata: {"type":"x"}\n\ndata: [DONE]\n\n')
    assert written == ['{"type":"x"}']


def test_what_is_no_request_is_refused():
    conversation = SocketConversation(1000)
    for text in (b"{", b"[]", b"{}", b'{"type":"response.steer"}', message(stream_id="a")):
        failed = conversation.read(text)
        assert isinstance(failed, ProviderFailed)
        assert failed.http_status == 400
        assert "body" in failed.message or failed.raw["param"] in {"type", "stream_id"}
        assert ("send new input in a response.create" in failed.message) == (failed.raw["param"] == "type")


@pytest.mark.parametrize(
    ("members", "warm_up"),
    [
        ({}, False),
        ({"generate": True}, False),
        ({"generate": False}, True),
        ({"prompt_cache_options": {"prewarm": True}}, True),
        ({"prompt_cache_options": {"prewarm": True}, "generate": True}, True),
        ({"prompt_cache_options": {"prewarm": False}}, False),
        ({"prompt_cache_options": "prewarm"}, False),
    ],
)
def test_a_message_that_prepares_generates_nothing(members, warm_up):
    read = SocketConversation(1000).read(message(**members))
    assert isinstance(read, SocketRequest)
    assert read.warm_up is warm_up


NUMBERS = '{"n":18446744073709551617, "f":1.0,"e":1e21,"d":[0.10]}'


def test_numbers_keep_their_text_in_what_is_asked_and_in_what_is_kept():
    conversation = SocketConversation(1000)
    read = conversation.read(f'{{"type":"response.create","model":"m","a":{NUMBERS},"input":[ {NUMBERS} ]}}'.encode())
    assert read.body.decode() == f'{{"model":"m","a":{NUMBERS},"input":[{NUMBERS}],"stream":true}}'
    done = f'{{"type":"response.output_item.done","item":{NUMBERS}}}'
    for end, kept in (('"output":null', 2), (f'"output":[{NUMBERS}]', 3)):
        ended = f'{{"type":"response.completed","response":{{"id":"r",{end}}}}}'
        conversation.write(serialize_sse(done.encode()) + serialize_sse(ended.encode()))
        conversation.end()
        read = conversation.read(b'{"type":"response.create","previous_response_id":"r"}')
        assert read.body.decode().count(NUMBERS) == kept


def test_a_text_as_input_keeps_its_escapes():
    read = SocketConversation(1000).read(b'{"type":"response.create","input":"\\u00e9\\n"}')
    assert b'"content":"\\u00e9\\n"' in read.body


def test_half_of_a_surrogate_pair_is_replaced_and_counted_as_over_http():
    read = SocketConversation(1000).read(b'{"type":"response.create","input":"\\ud83d"}')
    assert b"\\ufffd" in read.body
    assert read.report.repairs == {"lone_surrogate": 1}


def test_a_message_that_is_nested_too_deeply_is_refused_with_its_place():
    deep = b"[" * 300 + b"]" * 300
    failed = SocketConversation(1000).read(b'{"type":"response.create","metadata":%b}' % deep)
    assert failed.raw["param"] == "metadata"


ERROR = {
    "type": "error",
    "sequence_number": 3,
    "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "no"},
}
FAILED = {"type": "response.failed", "response": {"id": "r", "error": {"code": "x", "message": "no"}}}


def kinds(written):
    return [json.loads(each)["type"] for each in written]


def test_a_failure_is_told_once_by_the_response_that_failed():
    conversation = SocketConversation(1000)
    for events in ([ERROR, FAILED], [FAILED], [FAILED, FAILED], [completed([]), ERROR, FAILED]):
        assert kinds(answer(conversation, *events)) == ["response.failed"]
        assert conversation.end() == []


def test_an_answer_has_one_last_event_and_nothing_behind_it():
    conversation, other = SocketConversation(1000), {"type": "response.x"}
    assert kinds(answer(conversation, completed([]), other, completed([ITEM]))) == ["response.x", "response.completed"]
    assert asked(conversation, previous_response_id="resp_1")["input"] == [ITEM]
    for events in ([ERROR, other], [completed([]), ERROR, other], [ERROR, ERROR, other], [ERROR, other, completed([])]):
        assert kinds(answer(conversation, *events)) == ["response.x", "error"]
    assert kinds(answer(conversation, other)) == ["response.x"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ERROR["error"], 429),
        ({"code": "context_length_exceeded", "message": "no"}, 400),
        ({"code": "server_error", "message": "no"}, 500),
        ({"type": "requests", "message": "no"}, 429),
    ],
)
def test_an_error_that_stands_alone_is_told_at_the_end_with_a_status(error, status):
    conversation = SocketConversation(1000)
    for event in (
        {"type": "error", "error": error},
        {"type": "error", **error} if "type" not in error else {**ERROR, "error": error},
    ):
        (told,) = answer(conversation, event)
        assert json.loads(told)["status"] == status
        assert json.loads(told)["error"]["message"] == "no"
        assert conversation.end() == []


def test_what_an_answer_left_is_not_told_in_the_next():
    conversation = SocketConversation(1000)
    conversation.write(serialize_sse(json.dumps(ERROR).encode()))
    asked(conversation)
    assert conversation.end() == []


def test_headers_of_an_error_stand_where_either_client_reads_them():
    told = json.loads(SocketConversation(1000).error(429, {"retry-after": "7"}, b'{"error":{"message":"no"}}'))
    assert told["headers"] == told["error"]["headers"] == {"retry-after": "7"}
    assert (told["type"], told["status"], told["error"]["message"]) == ("error", 429, "no")


def test_a_type_that_stands_on_the_events_line_alone_is_said_in_the_message():
    written = SocketConversation(1000).write(
        b'event: response.created\ndata: { "a":1.0}\n\nevent: response.x\ndata: {}\n\nevent: message\ndata: {"b":2}\n\n'
    )
    assert written == ['{"type":"response.created","a":1.0}', '{"type":"response.x"}', '{"b":2}']


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ({"status": "incomplete"}, "incomplete"),
        ({"status": "failed"}, "failed"),
        ({}, "completed"),
        (None, "completed"),
    ],
)
def test_a_last_event_by_another_name_gets_the_one_that_clients_know(response, kind):
    for event in ({"type": "response.done", "response": response}, {"response": response, "type": "response.done"}):
        (written,) = answer(SocketConversation(1000), event)
        assert json.loads(written) == {"type": f"response.{kind}", "response": response}
