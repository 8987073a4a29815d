"""Approvals of tools: a request of one dialect in the form of another, and the client's answer on its way back."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Request, Response, Text, ToolResult, Turn
from streamkit.conversation.response_events import response_events
from streamkit.dialects import DIALECTS
from streamkit.dialects.ag_ui.encode import settings_of
from streamkit.dialects.profiles import Encoding, Profile
from streamkit.dialects.streams.approvals import answer_in, answer_text
from streamkit.events import ResponseStarted
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from tests.laws.asking import AG_UI, AI_SDK, RESPONSES, ROLL, interrupted, item_of, requested, responses
from tests.laws.running import CLOCK, maker, translate
from tests.laws.test_l13_no_silent_wait import collected

ITEM = item_of("mcp_approval_request")
NAME = "streamkit_mcp_approval_request_i1"
ARGUMENTS = '{"server_label":"dice","name":"roll","arguments":{"sides": 6.0}}'
#: What the client answers: whether it approves, and why; and the words of the result.
ANSWERS = {"yes": (True, None), "no": (False, None), "no, because": (False, "no games"), "yes, because": (True, "once")}
ASKED = Turn("user", [Text("Roll.")])


def written(target: str, *output: dict[str, Any]) -> list[dict[str, Any]]:
    """The frames of a Responses stream with these items in another dialect."""
    stream, _ = translate(RESPONSES, target, [responses(*output)[0]], passing=False)
    return [orjson.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]


def answer_of(approve: bool, reason: str | None) -> dict[str, Any]:
    answer = {"type": "mcp_approval_response", "approval_request_id": "i1", "approve": approve}
    return answer | ({} if reason is None else {"reason": reason})


def input_of(body: dict[str, Any], client: str) -> tuple[list[Any], StreamReport]:
    report = StreamReport()
    request = decode_request(orjson.dumps(body), client, report=report)
    return orjson.loads(encode_request(request, RESPONSES, report=report))["input"], report


def test_the_ai_sdk_requests_an_approval_of_a_call_that_the_provider_runs():
    frames = written(AI_SDK, ITEM)
    call = {"toolCallId": NAME, "toolName": "mcp.roll", "dynamic": True, "providerExecuted": True}
    assert frames[2:5] == [
        {"type": "tool-input-start", **call},
        {"type": "tool-input-available", **call, "input": {"sides": 6.0}, "providerMetadata": {"streamkit": {"server_label": "dice"}}},
        {"type": "tool-approval-request", "approvalId": "i1", "toolCallId": NAME},
    ]  # fmt: skip
    assert frames[-1] == {"type": "finish", "finishReason": "tool-calls"}


def test_a_client_of_the_ai_sdk_5_gets_a_call():
    encoding = Encoding(profile=DIALECTS[AI_SDK].clients[0], make_id=maker(), clock=CLOCK)
    encoder = DIALECTS[AI_SDK].encoder(encoding, StreamReport())
    stream = encoder.feed(response_events(collected(RESPONSES, responses(ITEM)[0]))) + encoder.finish()
    assert b"tool-approval-request" not in stream
    assert b'"toolName":"mcp_approval_request"' in stream


@pytest.mark.parametrize(("approve", "reason"), ANSWERS.values(), ids=[*ANSWERS])
def test_the_ai_sdk_answers_an_approval(approve, reason):
    start, available, request = written(AI_SDK, ITEM)[2:5]
    part = {  # as ``process-ui-message-stream.ts`` of ai 7.0.173 builds it, and ``addToolApprovalResponse`` changes it
        "type": "dynamic-tool", "toolName": start["toolName"], "toolCallId": start["toolCallId"], "state": "approval-responded",
        "input": available["input"], "providerExecuted": True, "callProviderMetadata": available["providerMetadata"],
        "approval": {"id": request["approvalId"], "approved": approve, **({} if reason is None else {"reason": reason})},
    }  # fmt: skip
    messages = [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Roll."}]},
        {"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, part]},
    ]
    body = {"id": "x", "model": "m", "messages": messages, "trigger": "submit-message"}
    (_, item, answer), report = input_of(body, AI_SDK)
    assert {**item, "arguments": orjson.loads(item["arguments"])} == {**ITEM, "arguments": {"sides": 6.0}}
    assert answer == answer_of(approve, reason)
    assert not report.losses
    again = orjson.loads(encode_request(decode_request(orjson.dumps(body), AI_SDK), AI_SDK))
    assert again["messages"] == messages


def test_ag_ui_gets_an_interrupt_about_the_call():
    *_, last = written(AG_UI, ITEM)
    (interrupt,) = last["outcome"]["interrupts"]
    assert last["outcome"]["type"] == "interrupt"
    assert (interrupt["id"], interrupt["toolCallId"], interrupt["reason"]) == (NAME, NAME, "tool_call")


def ag_ui(**members: Any) -> dict[str, Any]:
    call = {"id": NAME, "type": "function", "function": {"name": "mcp_approval_request", "arguments": ARGUMENTS}}
    messages = [{"id": "u", "role": "user", "content": "Roll."}, {"id": "a", "role": "assistant", "toolCalls": [call]}]
    body = {"threadId": "t", "runId": "r", "state": {}, "messages": messages, "tools": [], "context": []}
    return {**body, "forwardedProps": {"model": "m"}, **members}


@pytest.mark.parametrize(("approve", "reason"), ANSWERS.values(), ids=[*ANSWERS])
def test_ag_ui_resumes_with_an_answer(approve, reason):
    payload = {"approved": approve, **({} if reason is None else {"reason": reason})}
    body = ag_ui(resume=[{"interruptId": NAME, "status": "resolved", "payload": payload}])
    (_, item, answer), report = input_of(body, AG_UI)
    assert (item, answer) == (ITEM, answer_of(approve, reason))
    assert not report.losses
    again = orjson.loads(encode_request(decode_request(orjson.dumps(body), AG_UI), AG_UI))
    assert (again["messages"], again["resume"]) == (body["messages"], body["resume"])


PAYLOADS: dict[str, tuple[dict[str, Any], bool]] = {
    "true": ({"status": "resolved", "payload": True}, True),
    "the word": ({"status": "resolved", "payload": "approved"}, True),
    "the name of Responses": ({"status": "resolved", "payload": {"approve": True}}, True),
    "cancelled": ({"status": "cancelled", "payload": {"approved": True}}, False),
    "nothing": ({"status": "resolved"}, False),
    "a number": ({"status": "resolved", "payload": {"approved": 1}}, False),
    "both": ({"status": "resolved", "payload": {"approved": True, "approve": False}}, False),
    "another word": ({"status": "resolved", "payload": "true"}, False),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_only_a_plain_approval_approves(name):
    entry, approve = PAYLOADS[name]
    (*_, answer), _ = input_of(ag_ui(resume=[{"interruptId": NAME, **entry}]), AG_UI)
    assert answer["approve"] is approve


def test_other_answers_stay_with_the_agent():
    other = {"interruptId": "z", "status": "cancelled"}
    request = decode_request(orjson.dumps(ag_ui(resume=[other])), AG_UI)
    assert (request.extras["resume"], len(request.turns)) == ([other], 2)


def test_results_of_the_same_turn_are_one_turn_in_the_order_of_the_stream():
    body = ag_ui(resume=[{"interruptId": NAME, "status": "resolved", "payload": True}])
    call = {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body["messages"][1]["toolCalls"].append(call)
    body["messages"] += [
        {"id": "t", "role": "tool", "toolCallId": "c2", "content": "done"},
        {"id": "v", "role": "user", "content": "Go on."},
    ]
    request = decode_request(orjson.dumps(body), AG_UI)
    assert [[getattr(part, "call_id", "") for part in turn.parts] for turn in request.turns[2:]] == [["c2", NAME], [""]]


def test_the_next_run_has_the_answer_as_a_message():
    """A client sends ``resume`` once; from then on the history has the result of the call."""
    body = ag_ui(resume=[{"interruptId": NAME, "status": "resolved", "payload": {"approved": True}}])
    settings = settings_of(decode_request(orjson.dumps(body), AG_UI))
    encoding = Encoding(profile=Profile(settings=settings), make_id=maker(), clock=CLOCK)
    stream = DIALECTS[AG_UI].encoder(encoding, StreamReport()).feed([ResponseStarted()])
    started, result = [orjson.loads(line[6:]) for line in stream.splitlines() if line]
    assert "answers" not in started
    assert result == {"type": "TOOL_CALL_RESULT", "toolCallId": NAME, "messageId": "msg_1", "role": "tool", "content": "approved"}  # fmt: skip
    answered = ag_ui()
    answered["messages"].append({"id": "t", "role": "tool", "toolCallId": NAME, "content": result["content"]})
    assert input_of(answered, AG_UI)[0][1:] == [ITEM, answer_of(True, None)]


# -- agents as upstreams -----------------------------------------------------------------------------------------------


def answered(response: Response, upstream: str, text: str, *, failed: bool = False) -> dict[str, Any]:
    """The next request to the upstream, after a client of Chat has answered all calls."""
    results = [ToolResult(call.id, [Text(text)], is_error=failed) for call in response.tool_calls]
    request = Request("openai-chat", "m", [ASKED, Turn("assistant", [*response.tool_calls]), Turn("user", [*results])])
    return orjson.loads(encode_request(request, upstream))


def as_chat(upstream: str, stream: bytes) -> Response:
    return collected("openai-chat", translate(upstream, "openai-chat", [stream], passing=False)[0])


@pytest.mark.parametrize(("approve", "reason"), ANSWERS.values(), ids=[*ANSWERS])
@pytest.mark.parametrize("executed", [False, True])
def test_a_route_of_the_ai_sdk_gets_the_answer(executed, approve, reason):
    response = as_chat(AI_SDK, requested(executed=executed, reason="stop"))
    (call,) = response.tool_calls
    expected = {"server_label": AI_SDK, "name": "roll", "arguments": {"sides": 6}}
    assert (call.name, orjson.loads(call.arguments)) == ("mcp_approval_request", expected)
    body = answered(response, AI_SDK, answer_text(approve, reason))
    kind = {"type": "dynamic-tool", "toolName": "roll"} if executed else {"type": "tool-roll"}
    approval = {"id": "a1", "approved": approve, **({} if reason is None else {"reason": reason})}
    assert body["messages"][1]["parts"][1] == {
        **kind, "toolCallId": "c1", "state": "approval-responded", "input": {"sides": 6}, "approval": approval,
        **({"providerExecuted": True} if executed else {}),
    }  # fmt: skip


@pytest.mark.parametrize("target", [RESPONSES, AG_UI])
@pytest.mark.parametrize(
    "stream", [requested(executed=True, reason="other"), interrupted(*ROLL, reason="tool_call", toolCallId="c1")]
)
def test_what_an_agent_asks_is_an_approval_for_its_client(stream, target):
    source = AI_SDK if b"approvalId" in stream else AG_UI
    output, _ = translate(source, target, [stream], passing=False)
    assert (b'"mcp_approval_request"' if target == RESPONSES else b'"interrupt"') in output


@pytest.mark.parametrize(("approve", "reason"), ANSWERS.values(), ids=[*ANSWERS])
def test_an_agent_of_ag_ui_gets_the_answer(approve, reason):
    response = as_chat(AG_UI, interrupted(*ROLL, reason="tool_call", toolCallId="c1"))
    body = answered(response, AG_UI, answer_text(approve, reason))
    payload = {"approved": approve, **({} if reason is None else {"reason": reason})}
    assert body["resume"] == [{"interruptId": "i1", "status": "resolved", "payload": payload}]
    _, message = body["messages"]
    assert message["toolCalls"] == [{"id": "c1", "type": "function", "function": {"name": "roll", "arguments": '{"sides":6}'}}]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "failed", "entry"),
    [
        ('{"city":"Oslo"}', False, {"status": "resolved", "payload": {"city": "Oslo"}}),
        ("Oslo", False, {"status": "resolved", "payload": "Oslo"}),
        ("Unknown tool", True, {"status": "cancelled"}),
    ],
)
def test_an_interrupt_about_no_call_is_a_call_and_its_result_the_answer(text, failed, entry):
    response = as_chat(AG_UI, interrupted(reason="input_required", message="Which?"))
    (call,) = response.tool_calls
    assert (call.name, orjson.loads(call.arguments)) == ("interrupt", {"reason": "input_required", "message": "Which?"})
    body = answered(response, AG_UI, text, failed=failed)
    assert body["resume"] == [{"interruptId": "i1", **entry}]
    assert [message["role"] for message in body["messages"]] == ["user"]


def test_an_interrupt_that_the_agent_has_left_behind_is_in_no_request():
    response = as_chat(AG_UI, interrupted(*ROLL, reason="tool_call", toolCallId="c1"))
    turns = [
        ASKED,
        Turn("assistant", [*response.tool_calls]),
        Turn("user", [ToolResult(response.tool_calls[0].id, [Text("approved")])]),
    ]
    turns += [Turn("assistant", [Text("6")]), Turn("user", [Text("Thanks.")])]
    report = StreamReport()
    body = orjson.loads(encode_request(Request("openai-chat", "m", turns), AG_UI, report=report))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "resume" not in body
    assert report.losses["metadata"] == 2


def test_a_call_that_was_answered_in_the_stream_asks_nobody():
    stream = requested(executed=False, reason="stop")
    output = b'data: {"type":"tool-output-available","toolCallId":"c1","output":4}\n\n'
    mark = b'data: {"type":"finish-step"}'
    again, report = translate(AI_SDK, AI_SDK, [stream.replace(mark, output + mark)], passing=False)
    frames = [orjson.loads(line[6:])["type"] for line in again.splitlines() if line.startswith(b"data: {")]
    assert frames[2:6] == ["tool-input-start", "tool-input-delta", "tool-approval-request", "tool-output-available"]
    assert not report.losses


WORDS = {
    "approved": True, " Approved ": True, "true": True, '{"approve": true}': True, '{"approved": true}': True,
    "approved: no": False, '{"approve": true, "approved": false}': False, '{"approve": 1}': False, "yes": False, "": False,
}  # fmt: skip


@pytest.mark.parametrize("text", WORDS)
def test_words_that_approve(text):
    assert answer_in(text, failed=False)[0] is WORDS[text]
    assert not answer_in(text, failed=True)[0]
