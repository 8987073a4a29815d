"""A request as a message, and the messages of an answer as events, whoever writes them."""

from __future__ import annotations

import json

import pytest

from streamkit.dialects.openai_responses.socket import event, is_last, message, refusal


def test_a_body_becomes_a_message_and_keeps_its_text():
    assert message(b' \n{"model":"m","n":1.0e400}') == b'{"type":"response.create","model":"m","n":1.0e400}'


@pytest.mark.parametrize(
    "kind", ["completed", "incomplete", "failed", "cancelled", "done", "created", "in_progress", "output_item.done"]
)
def test_the_last_message_is_told_by_its_type_wherever_that_stands(kind):
    last = kind in {"completed", "incomplete", "failed", "cancelled", "done"}
    for members in ({"type": f"response.{kind}", "a": 1}, {"a": {"type": "error"}, "type": f"response.{kind}"}):
        for indent in (None, 2):
            assert is_last(json.dumps(members, indent=indent).encode()) is last
    assert is_last(b'{"type":"error"}')


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b'{"type":5}', b'{"type":"A b"}', b'"response.completed"', b"\xff"]
)
def test_what_has_no_type_is_an_event_without_a_name_and_not_the_last(text):
    assert event(text) == b"data: %b\n\n" % text
    assert not is_last(text)
    assert refusal(text) is None


def test_a_message_of_several_lines_is_one_event():
    assert (
        event(b'{"type":"response.x",\r\n"a":1}') == b'event: response.x\ndata: {"type":"response.x",\ndata: "a":1}\n\n'
    )


def test_headers_of_an_error_do_not_go_on():
    told = {"type": "error", "headers": {"a": "b"}, "error": {"message": "no", "headers": {"c": "d"}}}
    assert event(json.dumps(told).encode()) == b'event: error\ndata: {"type":"error","error":{"message":"no"}}\n\n'
    assert event(b'{"type":"error","message":"no"}') == b'event: error\ndata: {"type":"error","message":"no"}\n\n'
    assert (
        event(b'{"type":"error","error":"no","headers":5}') == b'event: error\ndata: {"type":"error","error":"no"}\n\n'
    )


@pytest.mark.parametrize("status", [None, True, "429", 200, 399, 600, 2**70, 429.0])
def test_an_error_without_a_status_of_an_error_is_an_event(status):
    assert refusal(json.dumps({"type": "error", "status": status, "error": {}}).encode()) is None


def test_an_error_with_a_status_is_the_body_of_an_error():
    told = {
        "type": "error",
        "status": 429,
        "headers": {"a": "b", "n": 5, "x": None},
        "error": {"code": "c", "headers": {}},
    }
    found = refusal(json.dumps(told).encode())
    assert found is not None
    assert (found.status, found.headers, found.body) == (429, {"a": "b", "n": "5"}, b'{"error":{"code":"c"}}')
    for error in ("no", None, []):
        found = refusal(json.dumps({"type": "error", "status_code": 500, "error": error}).encode())
        assert found is not None
        assert json.loads(found.body) == {"error": error}


DEEP = "[" * 300 + "]" * 300


@pytest.mark.parametrize("text", ['{"type":"error",}', '{"type":"error","status":1e400}'])
def test_an_error_that_is_no_json_is_an_event_for_the_decoder_to_refuse(text):
    assert refusal(text.encode()) is None
    assert event(text.encode()) == b"event: error\ndata: %b\n\n" % text.encode()


def test_an_error_that_is_nested_too_deeply_keeps_its_status():
    for error in (DEEP, f'{{"message":"no","headers":{{}},"x":{DEEP}}}'):
        found = refusal(f'{{"type":"error","status":429,"headers":{{"a":"b"}},"error":{error}}}'.encode())
        assert found is not None
        assert (found.status, found.headers, found.body) == (429, {"a": "b"}, b'{"error":null}')
        told = f'{{"type":"error","headers":{{}},"error":{error}}}'.encode()
        assert event(told) == b'event: error\ndata: {"type":"error","error":null}\n\n'
