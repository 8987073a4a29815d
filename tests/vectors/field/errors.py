"""Cases 108 to 116: errors inside a stream."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import (
    NO_CONTENT,
    NO_REASON,
    anthropic,
    chat,
    failed,
    messages,
    ollama,
    responses,
    responses_turn,
    written,
)
from tests.vectors.openai_chat import DONE, ROLE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call, sse

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
RAW = b'{"error":{"code":400,"message":"too long","type":"exceed"}}'
DETAIL = {"error_detail": 1}

CASES = (
    Case(
        number=108, refs="clawrouter#101, #103",
        cause="the HTTP status is 200, and the first event is an error",
        does="The client gets only this error, in the client's own dialect.",
        forms=(
            chat(
                {"error": {"message": "no credit", "type": "insufficient_quota", "code": None}}, DONE, stop=None, provider_error="no credit",
                to={
                    "anthropic": failed(error="no credit", body=b'event: error\ndata: {"type":"error","error":{"type":"billing_error","message":"no credit"}}\n\n'),
                    "ollama": failed(error="no credit", losses=DETAIL, body=b'{"error":"no credit"}\n'),
                },
            ),
        ),
        beside="tests/web/test_reply.py::test_a_failure_is_a_status_or_a_frame",
    ),
    Case(
        number=109, refs="CLIProxyAPI#4980; clicky#132; celeste#144, #192",
        cause="the HTTP status is 200, but an `event: error` arrives, either first or after text",
        does="streamkit writes everything that it received before the error, then the provider's error. No success follows.",
        forms=(
            anthropic(
                am.START, *am.block(0, "Hi"), OVERLOADED, name="behind text", text="Hi", stop=None, provider_error="busy",
                to={"openai-chat": failed(Text("Hi"), error="busy", lacks=(b"[DONE]",)), "ollama": failed(Text("Hi"), error="busy", losses=DETAIL)},
            ),
            anthropic(OVERLOADED, name="at once", stop=None, provider_error="busy", to={"openai-chat": failed(error="busy", body=b'data: {"error":{"message":"busy","type":"service_unavailable","param":null,"code":null}}\n\n')}),
        ),
        beside="tests/web/test_reply.py::test_a_failure_is_a_status_or_a_frame",
    ),
    Case(
        number=111, refs="lemonade#2826, #2975",
        cause="the stream contains the backend's error as raw JSON instead of an event",
        does="streamkit writes the error as an error frame of the client's dialect.",
        forms=(
            chat(
                RAW, name="nothing but the error", stop=None, fault="NotThisDialect",
                to={"anthropic": failed(error="not an event stream: found a JSON body", losses=DETAIL)},
            ),
            chat(
                sse(said("Hi")) + RAW + b"\n", name="behind text", text="Hi", stop=None, provider_error="too long", repairs={"sse_bare_json": 1},
                to={"anthropic": failed(Text("Hi"), error="too long", losses=DETAIL)},
            ),
            chat(
                sse(said("Hi")) + RAW, name="behind text, without a line end", text="Hi", stop=None, provider_error="too long", repairs={"sse_bare_json": 1, "last_event_unterminated": 1},
                to={"anthropic": failed(Text("Hi"), error="too long", losses=DETAIL)},
            ),
        ),
    ),
    Case(
        number=112, refs="zed#63825, #57024",
        cause="an error has an unusual form, for example no type or a null type, a message outside an `error` object, or a text as `error`",
        does="streamkit recognises each form as an error, and keeps the message.",
        forms=(
            anthropic(am.START, {"type": None, "error": {"message": "no", "type": None}}, name="null types", stop=None, provider_error="no", repairs={"error_shape": 1}, to={"openai-chat": failed(error="no")}),
            anthropic(
                b'data: {"error":{"message":"no"}}\n\n', name="bare", stop=None, provider_error="no", repairs={"error_shape": 1}, to={"openai-chat": failed(error="no")}
            ),
            chat(said("Hi"), {"error": {"message": "no", "type": None, "code": None}}, name="of Chat", text="Hi", stop=None, provider_error="no", to={"anthropic": failed(Text("Hi"), error="no")}),
            *(
                chat(said("Hi"), payload, name=name, text="Hi", stop=None, provider_error="no", repairs={"error_shape": 1}, to={"anthropic": failed(Text("Hi"), error="no")})
                for name, payload in (("text", {"error": "no"}), ("flat", {"object": "error", "message": "no"}), ("detail", {"detail": "no"}))
            ),
            ollama({"error": {"message": "no"}}, name="an object in Ollama", stop=None, provider_error="no", repairs={"error_shape": 1}, to={"anthropic": failed(error="no")}),
            *(
                responses(rs.START, *rs.message(0, "Hi"), payload, name=f"{name} in Responses", text="Hi", stop=None, provider_error="gone", repairs=repairs, to={"anthropic": failed(Text("Hi"), error="gone", losses=losses)})
                for name, payload, repairs, losses in (
                    ("nested", rs.NESTED, {}, DETAIL), ("flat", rs.FLAT, {}, DETAIL), ("failed", rs.FAILED, {}, DETAIL),
                    ("bare", {"type": "", "error": {"message": "gone"}}, {"error_shape": 1}, {}),
                )
            ),
        ),
    ),
    Case(
        number=113, refs="codex-proxy-rs#90",
        cause="clients of Responses ignore `event: error`",
        does="streamkit writes a failure twice: first as `error`, which openai-python raises as an exception, then as `response.failed`.",
        forms=(
            chat(
                said("Hi"), {"error": {"message": "no", "type": "server_error", "code": None}}, text="Hi", stop=None, provider_error="no",
                to={"openai-responses": failed(Text("Hi"), error="no", holds=(b'event: error\ndata: {"type":"error","sequence_number":5,"error":{', b'event: response.failed\ndata: {"type":"response.failed","sequence_number":6,'))},
            ),
            responses(
                rs.START, *rs.message(0, "Hi"), name="cut", text="Hi", stop=None,
                to={"openai-responses": failed(Text("Hi"), error=NO_REASON, lacks=(b"response.completed",))},
            ),
        ),
    ),
    Case(
        number=114, refs="litellm#33222",
        cause="the connection ends before any content, or before a single byte",
        does="streamkit invents no stop reason: an empty stream is an error.",
        forms=(
            chat(ROLE, name="a role and nothing else", stop=None, to={"anthropic": failed(error=NO_REASON), "ollama": failed(error=NO_REASON)}),
            chat(b"", name="nothing", stop=None, to={"anthropic": failed(error=NO_CONTENT, body=b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"%b"}}\n\n' % NO_CONTENT.encode())}),
        ),
    ),
    Case(
        number=115, refs="praxis-proxy/ai#1000",
        cause="a frame cannot be read, and the terminator follows the frame",
        does="streamkit stops reading at this frame. streamkit writes the content before the frame, then an error, and never the terminator.",
        forms=(
            chat(
                said("Hi"), b'{"choices":[{', STOP, DONE, text="Hi", stop=None, fault="BrokenFrame",
                to={"anthropic": failed(Text("Hi"), error="no JSON", losses=DETAIL)},
            ),
        ),
    ),
    Case(
        number=116, refs="sub2api#6923",
        cause="a refusal has its own member, or the server cancels the stream",
        does="The stop reason becomes a refusal. If the client's dialect has no place for the refusal, streamkit writes it as text. A cancelled stream is an error.",
        forms=(
            chat(
                chunk({"refusal": "I can't"}), chunk({"refusal": " do that"}), STOP, DONE, name="refusal", refusal="I can't do that", stop="refusal",
                to={
                    "anthropic": messages(Text("I can't do that"), stop="refusal", losses={"refusal_as_text": 1}),
                    "openai-chat": written(Text("I can't do that"), holds=(b'"refusal":"I can\'t"',)),
                    "ollama": written(Text("I can't do that"), losses={"refusal_as_text": 1, "stop_reason": 1}),
                },
            ),
            chat(
                said("Hi"), calls(call(0, "a", "f", '{"x":1}')), chunk(finish="abort"), DONE, name="cancelled",
                text="Hi", calls=(Call("f", '{"x":1}', "truncated", id="a"),), stop=None, provider_error="the provider gave the finish reason 'abort': the server aborted the request",
                to={"anthropic": failed(Text("Hi"), Use("a", "f", '{"x":1}'), error="the provider gave the finish reason 'abort': the server aborted the request", losses=DETAIL)},
            ),
            responses_turn(
                *rs.REFUSED, name="refusal in Responses", refusal="I won't", stop="refusal",
                to={"openai-responses": written(Text("I won't"), stop="completed", holds=(b'{"type":"refusal","refusal":"I won\'t"}',)), "openai-chat": written(Text("I won't"), losses={})},
            ),
            responses_turn(
                *rs.message(0, "Hi"), end=rs.last("cancelled", kind="response.completed"), name="cancelled in Responses",
                text="Hi", stop=None, repairs={"stop_conflict": 1}, provider_error="the provider gave the finish reason 'cancelled'",
                to={"openai-responses": failed(Text("Hi"), error="the provider gave the finish reason 'cancelled'")},
            ),
        ),
    ),
)  # fmt: skip
