"""One reader for the errors of the field: each known form, in each dialect, stream and body; and what is no error."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.members.values import json_value
from streamkit.dialects.vocabulary.error_bodies import error_in, is_bare_error, provider_failed
from streamkit.http_errors import decode_error
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_response, encode_response
from tests.corpora import require_corpora
from tests.framing.binary import event
from tests.laws.running import recorded, translate
from tests.vectors.openai_chat import CALLED, DONE, ROLE, STOP, call, calls, said
from tests.vectors.vector import sse

NO = "no such luck"
#: Each known form: what a payload says, and the kind, the code and the status that are read of it.
FORMS: dict[str, tuple[dict[str, Any], str, str | None, int | None]] = {
    "x_groq": ({"x_groq": {"id": "r", "error": NO}}, "server", None, None),
    "a choice": ({"choices": [{"index": 0, "delta": {}, "error": {"code": 502, "message": NO}}]}, "server", "502", 502),
    "an object": ({"error": {"message": NO, "code": "429"}}, "rate_limit", "429", 429),
    "a text": ({"error": NO}, "server", None, None),
    "a truth value": ({"error": True, "message": NO}, "server", None, None),
    "a list": ({"error": [{"message": NO, "code": 401}]}, "auth", "401", 401),
    "nested": ({"error": {"error": {"message": NO, "code": 403}}}, "permission", "403", 403),
    "errors": ({"success": False, "errors": [{"code": 10000, "message": NO}], "messages": []}, "server", "10000", None),
    "GraphQL": ({"data": None, "errors": [{"message": NO, "extensions": {"code": "UNAUTHENTICATED"}}]}, "auth", "UNAUTHENTICATED", None),
    "MiniMax": ({"base_resp": {"status_code": 1002, "status_msg": NO}}, "rate_limit", "1002", None),
    "MiniMax, in digits": ({"base_resp": {"status_code": "1008", "status_msg": NO}}, "billing", "1008", None),
    "Baidu": ({"error_code": 110, "error_msg": NO}, "auth", "110", None),
    "Baidu, of a quota": ({"error_code": 18, "error_msg": NO, "id": "as-1"}, "rate_limit", "18", None),
    "Z.AI": ({"code": 1302, "msg": NO, "success": False}, "rate_limit", "1302", None),
    "Apigee": ({"fault": {"faultstring": NO, "detail": {"errorcode": "policies.ratelimit.QuotaViolation"}}}, "rate_limit", "policies.ratelimit.QuotaViolation", None),
    "error_message": ({"error_message": NO}, "server", None, None),
    "Alibaba": ({"code": "InvalidApiKey", "message": NO, "request_id": "r"}, "auth", "InvalidApiKey", None),
    "Alibaba, a limit": ({"code": "Throttling.RateQuota", "message": NO, "request_id": "r"}, "rate_limit", "Throttling.RateQuota", None),
    "Alibaba, of Chat": ({"choices": None, "object": "", "code": "invalid_api_key", "message": NO}, "auth", "invalid_api_key", None),
    "a description": ({"code": "Factory.Error", "description": NO, "detail": '{"code":1}', "solution": ""}, "server", "Factory.Error", None),
    "originalMessage": ({"originalStatusCode": 429, "originalMessage": NO}, "rate_limit", None, 429),
    "FastAPI": ({"detail": NO}, "server", None, None),
    "FastAPI, of a member": ({"detail": [{"loc": ["body", "n"], "msg": NO, "type": "missing"}]}, "invalid_request", None, None),
    "FastAPI, of a member too many": ({"detail": [{"loc": ["body", "n"], "msg": NO, "type": "extra_forbidden"}]}, "invalid_request", None, None),
    "FastAPI, an error inside": ({"detail": {"error": {"message": NO, "code": 503}}}, "unavailable", "503", 503),
    "a type": ({"message": NO, "type": "server_error"}, "server", None, None),
    "Spring": ({"timestamp": 1, "status": 503, "error": "Service Unavailable", "message": NO, "path": "/"}, "unavailable", None, 503),
    "RFC 9457": ({"type": "about:blank", "title": "Forbidden", "status": 403, "detail": NO}, "permission", None, 403),
    "a status": ({"status": "error", "message": NO}, "server", None, None),
    "a code of HTTP": ({"code": 429, "message": NO}, "rate_limit", "429", 429),
}  # fmt: skip
#: Those that may be next to other members.
BESIDE = [
    *("x_groq", "an object", "a text", "a list", "nested", "errors", "MiniMax", "Baidu", "Apigee", "error_message"),
    "originalMessage",
]
NO_ERRORS: dict[str, dict[str, Any]] = {
    "null": {"error": None, "errors": None, "fault": None, "error_code": None, "error_message": None},
    "empty": {"error": {}, "errors": [], "fault": {}, "error_msg": "", "error_message": " ", "x_groq": {}},
    "blank": {"error": "", "x_groq": {"error": ""}},
    "false and 0": {"error": False, "errors": 0, "success": True},
    "an object of nothing": {"error": {"code": None, "message": None, "param": None}},
    "an object of zeros": {"error": {"code": 0, "message": "", "details": []}},
    "an object of success": {"error": {"code": 0, "message": "success"}},
    "a word for none": {"error": "none", "x_groq": {"error": "null"}},
    "a code of success": {"error_code": 0, "error_msg": "success"},
    "a code of success in digits": {"errcode": "000000", "errmsg": "ok"},
    "MiniMax": {"base_resp": {"status_code": 0, "status_msg": ""}},
    "MiniMax, in a word": {"base_resp": {"status_code": 0, "status_msg": "success"}},
    "a choice": {"choices": [{"index": 0, "error": None, "delta": {"content": "error", "error": {}}, "message": {"error": ""}}]},
    "a code and a message": {"code": 0, "message": "success", "data": {}},
    "a code of HTTP": {"code": 200, "msg": "OK"},
    "no success, and nothing else": {"success": False, "errors": []},
    "a message alone": {"message": "hello"},
    "an event with a message": {"type": "log", "message": "warming up", "code": "W1"},
    "a progress": {"code": 102, "message": "processing"},
    "a type of an error without a message": {"type": "rate_limit_error"},
    "titles": {"title": "Hello", "code": "en-US"},
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_what_kind_of_error_it_is(name: str):
    payload, kind, code, status = FORMS[name]
    error = error_in(payload)
    assert error is not None or is_bare_error(payload)
    failed = provider_failed(payload if error is None else error, "", {})
    assert (failed.type, failed.code, failed.http_status) == (kind, code, status)
    assert failed.message.endswith(NO)


@pytest.mark.parametrize("name", NO_ERRORS)
def test_what_is_no_error(name: str):
    assert error_in(NO_ERRORS[name]) is None
    assert not is_bare_error(NO_ERRORS[name])


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_over_http_keeps_its_message(dialect: str, name: str):
    payload, kind, _, status = FORMS[name]
    failed = decode_error(200, json.dumps(payload).encode(), dialect)
    assert failed.message.endswith(NO)
    assert (failed.type, failed.http_status) == (kind, status)


# -- streams -----------------------------------------------------------------------------------------------------------

HI = sse(ROLE, said("tell"), said("ing"), STOP, DONE)


@cache
def spoken(dialect: str, chat: bytes = HI) -> bytes:
    """A Chat stream as ``dialect`` has it."""
    return translate("openai-chat", dialect, [chat], passing=False)[0]


def with_error(dialect: str, payload: dict[str, Any]) -> bytes:
    """The stream of ``HI`` in a dialect, with a payload right after its first text."""
    body = spoken(dialect)
    at = body.index(b"tell")
    if dialect == "bedrock":
        first = next(end for end in messages(body) if end > at)
        return body[:first] + event("note", payload) + body[first:]
    end = b"\n" if dialect == "ollama" else b"\r\n\r\n" if b"\r\n" in body else b"\n\n"
    at = body.index(end, at) + len(end)
    return body[:at] + (b"" if dialect == "ollama" else b"data: ") + orjson.dumps(payload) + end + body[at:]


def messages(body: bytes) -> list[int]:
    """Where the binary messages of a body end."""
    ends = [0]
    while ends[-1] < len(body):
        ends.append(ends[-1] + int.from_bytes(body[ends[-1] : ends[-1] + 4], "big"))
    return ends


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_form_is_an_error_in_each_dialect(dialect: str, name: str):
    payload, kind, *_ = FORMS[name]
    for target in ("anthropic" if dialect != "anthropic" else "openai-chat", dialect):
        body, report = translate(dialect, target, [with_error(dialect, payload)])
        assert report.clean is False, target
        assert report.provider_error is not None
        assert report.provider_error[0] == kind
        assert report.provider_error[1].endswith(NO)
        assert NO.encode() in body
        assert body.index(b"tell") < body.index(NO.encode())
        assert b"[DONE]" not in body
        assert b"message_stop" not in body
        assert b"response.completed" not in body


@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_with_members_of_such_names_is_no_error(dialect: str):
    text = orjson.dumps({name: payload for name, (payload, *_) in FORMS.items()}).decode()
    for chat in sse(ROLE, said(text), STOP, DONE), sse(ROLE, calls(call(0, "call00001", "f", text)), CALLED, DONE):
        body = spoken(dialect, chat)
        for target in ("openai-chat", dialect):
            _, report = translate(dialect, target, [body])
            assert report.clean
            assert report.provider_error is None
            assert not report.repairs


def test_no_recorded_payload_is_an_error():
    require_corpora()
    found = []
    for stream in recorded():
        parser = DIALECTS[stream.dialect].parser(DEFAULT_LIMITS, StreamReport())
        for frame in parser.feed(stream.body) + parser.finish():
            payload = json_value(frame.data)
            if isinstance(payload, dict) and (error_in(payload) is not None or is_bare_error(payload)):
                found.append((stream.name, payload))
    assert not found


# -- whole responses ---------------------------------------------------------------------------------------------------

WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
BODIES = [name for name, dialect in DIALECTS.items() if dialect.answers_whole]


def whole(dialect: str) -> dict[str, Any]:
    """A response that is well, as ``dialect`` has it."""
    response = decode_response(orjson.dumps(WHOLE), "openai-chat")
    body: dict[str, Any] = orjson.loads(encode_response(response, dialect))
    return body


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dialect", BODIES)
def test_a_body_that_is_an_error_is_one_in_each_dialect(dialect: str, name: str):
    payload, kind, *_ = FORMS[name]
    response = decode_response(orjson.dumps(payload), dialect)
    assert response.error is not None
    assert response.error.message.endswith(NO)
    assert response.error.type == kind
    assert not response.clean
    with pytest.raises(KeyError):
        _ = orjson.loads(encode_response(response, "openai-chat"))["choices"]


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("dialect", BODIES)
def test_an_error_next_to_a_whole_response_is_an_error(dialect: str, name: str):
    payload, kind, *_ = FORMS[name]
    response = decode_response(orjson.dumps({**whole(dialect), **payload}), dialect)
    assert response.error is not None
    assert response.error.message.endswith(NO)
    assert response.error.type == kind
    assert not response.clean


def test_a_whole_choice_without_a_message_has_its_error():
    choice = {"index": 0, "finish_reason": "error", "error": {"code": 502, "message": NO}}
    response = decode_response(orjson.dumps({**WHOLE, "choices": [choice]}), "openai-chat")
    assert response.error is not None
    assert (response.error.message, response.error.http_status) == (NO, 502)


@pytest.mark.parametrize("dialect", BODIES)
def test_empty_members_next_to_a_whole_response_are_no_error(dialect: str):
    for name in ("null", "empty", "blank", "an object of zeros", "a code of success", "MiniMax", "MiniMax, in a word"):
        report = StreamReport()
        response = decode_response(orjson.dumps({**whole(dialect), **NO_ERRORS[name]}), dialect, report=report)
        assert response.error is None, name
        assert response.clean
        assert report.repairs["error_shape"] == 0
