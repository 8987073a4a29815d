"""What a WebSocket's messages ask, and what of the answers is kept for the next."""

from __future__ import annotations

import json

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
    return conversation.write(b"".join(serialize_sse(json.dumps(event).encode()) for event in events))


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
    size = len(json.dumps(ITEM, separators=(",", ":")))
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
