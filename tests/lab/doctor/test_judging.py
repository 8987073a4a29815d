"""Each fault on a server that is well behaved otherwise: found, named, and nothing else."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiohttp import web

from streamkit.conversation.messages import Choice, Response, Text
from streamkit.events import UsageReported
from streamkit.lab.doctor import Examination, plan
from streamkit.lab.doctor.findings import of_what_it_says
from streamkit.lab.doctor.probes import LEAST_BOUND
from streamkit.lab.doctor.reporting import status_of
from streamkit.report import Status
from streamkit.web.upstream import Upstream, client_session
from tests.lab.doctor.servers import examined, model_server
from tests.vectors.openai_chat import DONE, HEAD, ROLE, STOP, USAGE, call, calls, chunk, said
from tests.vectors.vector import sse
from tests.web.serving import answering

CHAT = "openai-chat"


def events(*payloads, content_type="text/event-stream"):
    return web.Response(body=sse(*payloads), content_type=content_type)


def always(response):
    """A change of every stream; of what is whole, none."""
    return lambda asked, usual: response() if asked.stream else usual


def rules(judged, severity="error"):
    return {finding.rule for finding in judged.findings if finding.severity == severity}


async def found(change, *names, dialect=CHAT, timeout_s=5.0):
    judged = await examined(model_server(dialect, change), dialect, *names, timeout_s=timeout_s)
    return judged[names[-1]]


# -- what the grammar says -----------------------------------------------------------------------------------------------


async def test_the_stream_that_a_checker_of_members_passes_is_found():
    """observe.md F52: id and model change, content stands behind the finish reason, and there are two reasons."""
    changed = {**said("two"), "id": "chatcmpl-8", "model": "m-2"}
    judged = await found(
        always(lambda: events(ROLE, said("one"), changed, STOP, said("three"), STOP, USAGE, DONE)), "text"
    )
    broken = {violation.rule for violation in judged.check.violations}
    assert {"identity", "after_finish", "finish_reason"} <= broken
    assert judged.status is not Status.DONE


async def test_an_answer_that_streamkit_repairs_is_repairable_and_a_cut_one_broken():
    repaired = events(ROLE, calls(call(None, "a", "get_weather", '{"city":"Bern"}')), chunk(finish="tool_calls"), DONE)
    judged = await found(always(lambda: repaired), "tool")
    assert (judged.status, judged.check.report.repairs) == (Status.WOULD_BE_REPAIRED, {"index_missing": 1})
    judged = await found(always(lambda: events(ROLE, said("one"))), "text")
    assert judged.status is Status.FAILED


async def test_an_error_in_a_stream_is_broken_and_says_what_the_server_says():
    judged = await found(
        always(lambda: events(ROLE, {"error": {"message": "out of memory", "type": "server_error"}})), "text"
    )
    assert rules(judged) == {"error"}
    assert judged.findings[0].message == "the stream ends with an error: out of memory"
    assert judged.status is Status.FAILED


async def test_another_dialect_ends_it():
    body = b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","role":"assistant"}}\n\n'
    judged = await found(always(lambda: web.Response(body=body, content_type="text/event-stream")), "text")
    assert (judged.status, judged.ends) == (Status.NOT_THIS_DIALECT, True)


# -- the answer's headers, and how it came -------------------------------------------------------------------------------


async def test_a_stream_of_another_content_type_is_found():
    judged = await found(always(lambda: events(ROLE, said("one"), STOP, DONE, content_type="text/plain")), "text")
    assert rules(judged) == {"content_type"}
    assert judged.status is Status.WOULD_BE_REPAIRED


async def test_a_whole_answer_where_a_stream_was_asked_for_and_the_other_way_round_are_named():
    judged = await found(lambda asked, usual: web.json_response(orjson.loads(WHOLE)), "text")
    assert rules(judged) == {"content_type", "body_for_stream"}
    assert judged.status is Status.WOULD_BE_REPAIRED
    judged = await found(lambda asked, usual: events(ROLE, said("one"), STOP, USAGE, DONE), "whole")
    assert rules(judged) == {"content_type", "stream_for_body"}
    assert judged.status is Status.WOULD_BE_REPAIRED


async def test_a_json_body_that_is_no_answer_is_another_dialect():
    judged = await found(lambda asked, usual: web.json_response({"hello": 1}), "text")
    assert (judged.status, judged.ends) == (Status.NOT_THIS_DIALECT, True)


def paced(*chunks):
    """A server that writes these chunks, each after so many seconds."""

    async def handle(request):
        await request.read()
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        for wait_s, data in chunks:
            await asyncio.sleep(wait_s)
            await stream.write(data)
        return stream

    return answering(handle)


WORDS = [said(f" {word}") for word in ["one", "two", "three", "four", "five", "six", "seven", "eight"]]
TEXT = sse(ROLE, *WORDS, STOP, DONE)


async def test_how_the_events_came_is_judged_of_a_text_and_never_of_a_call():
    (finding,) = (await examined(paced((0, TEXT)), CHAT, "text"))["text"].findings
    assert (finding.rule, finding.severity) == ("buffered", "note")
    assert (await examined(paced((0, TEXT)), CHAT, "length"))["length"].findings[0].rule == "length"
    one_by_one = [(0.01, sse(each)) for each in (ROLE, *WORDS, STOP, DONE)]
    judged = (await examined(paced(*one_by_one), CHAT, "text"))["text"]
    assert not judged.findings
    assert (judged.timing.reads, judged.timing.frames) == (11, 11)


async def test_an_answer_that_breaks_off_says_how():
    async def handle(request):
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(sse(ROLE, said("one")))
        request.transport.close()
        return stream

    judged = (await examined(answering(handle), CHAT, "text"))["text"]
    assert judged.recording.ending == "cut"
    assert rules(judged) == {"end"}
    assert judged.status is Status.FAILED


async def test_a_connection_that_breaks_behind_the_end_is_named():
    async def handle(request):
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(sse(ROLE, said("one"), STOP, DONE))
        request.transport.close()
        return stream

    judged = (await examined(answering(handle), CHAT, "text"))["text"]
    assert (rules(judged), judged.status) == ({"fault_after_end"}, Status.WOULD_BE_REPAIRED)


async def test_a_body_that_stays_open_is_left_in_time():
    judged = (await examined(paced((0, sse(ROLE, said("one"))), (30, b"")), CHAT, "text", timeout_s=0.2))["text"]
    assert judged.recording.ending.startswith("timeout:")
    assert judged.status is Status.FAILED


async def test_a_server_that_passes_over_the_bound_is_left():
    judged = await examined(paced((0, sse(ROLE)), *[(0.001, sse(said(" and"), said(" on")))] * 200), CHAT, "text")
    assert 320 <= judged["text"].timing.frames < 400
    assert judged["text"].recording.ending == "client_left"
    assert rules(judged["text"]) == {"too_long"}
    assert judged["text"].check.found == [], "that it has no end is our doing"
    assert judged["text"].status is Status.WOULD_BE_REPAIRED


async def test_what_a_server_says_of_its_failure_is_shortened():
    refused = {"error": {"message": "no " * 1000, "type": "server_error"}}
    judged = await found(lambda _asked, _usual: web.json_response(refused, status=500), "text")
    assert len(judged.findings[0].message) < 350


async def test_a_server_that_is_not_there_ends_it(unused_tcp_port):
    upstream = Upstream(name="doctor", dialect=CHAT, base_url=f"http://127.0.0.1:{unused_tcp_port}/v1", auth="none")
    async with client_session() as session:
        asked = Examination(session=session, upstream=upstream, model="m")
        judged = await asked.examine(plan(CHAT, "m").probes[0])
    assert (judged.ends, judged.status, judged.recording.ending) == (True, Status.FAILED, "unreachable")
    assert "Connection refused" in judged.findings[0].message


# -- what it says --------------------------------------------------------------------------------------------------------

WHOLE = orjson.dumps(
    {
        **HEAD,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "one"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
    }
)


async def test_a_required_call_that_is_not_made_is_found():
    judged = await found(always(lambda: events(ROLE, said("no"), STOP, DONE)), "forced")
    assert rules(judged) == {"forced"}


async def test_a_call_and_thinking_in_the_text_are_named():
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bern"}}\n</tool_call>'
    judged = await found(always(lambda: events(ROLE, said(text), STOP, DONE)), "tool")
    assert (rules(judged), rules(judged, "note")) == ({"call_in_text"}, {"calls"})
    judged = await found(always(lambda: events(ROLE, said("<think>Hm.</think>"), said("one"), STOP, DONE)), "text")
    assert rules(judged) == {"thinking_in_text"}
    assert judged.status is Status.WOULD_BE_REPAIRED


@pytest.mark.parametrize("probe", ["tool", "parallel"])
async def test_a_call_that_the_model_need_not_make_is_a_note(probe):
    judged = await found(always(lambda: events(ROLE, said("no"), STOP, DONE)), probe)
    assert (rules(judged), rules(judged, "note"), judged.status) == (set(), {"calls"}, Status.DONE)


async def test_arguments_that_are_no_whole_object_are_found():
    broken = events(ROLE, calls(call(0, "a", "get_weather", '{"city":')), chunk(finish="tool_calls"), DONE)
    assert rules(await found(always(lambda: broken), "tool")) == {"arguments"}


async def test_a_call_of_a_tool_that_was_not_offered_is_found():
    other = events(ROLE, calls(call(0, "a", "get_rain", "{}")), chunk(finish="tool_calls"), DONE)
    assert rules(await found(always(lambda: other), "tool")) == {"call_name"}


async def test_a_stop_reason_that_hides_the_bound_is_found():
    judged = await found(always(lambda: events(ROLE, said("one"), STOP, DONE)), "length")
    assert rules(judged) == {"length"}
    assert judged.status is Status.WOULD_BE_REPAIRED


async def test_an_answer_that_is_shorter_than_its_bound_may_stop_by_itself():
    def few_words(tokens):
        usage = {**USAGE, "usage": {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}}
        return always(lambda: events(ROLE, said("one"), STOP, usage, DONE))

    assert rules(await found(few_words(2), "length")) == {"length", "too_long"}
    (probe,) = (probe for probe in plan("openai-responses", "m").probes if probe.length)
    assert probe.bound == LEAST_BOUND
    short = Response("openai-responses", choices=[Choice(parts=[Text("one")], stop_reason="stop")])
    short.usage = UsageReported(input_total=9, output_total=11)
    assert list(of_what_it_says(probe, short)) == []
    short.usage = UsageReported(input_total=9, output_total=16)
    assert [finding.rule for finding in of_what_it_says(probe, short)] == ["length"]


async def test_a_bound_that_a_dialect_refuses_is_a_note():
    refused = {"error": {"message": "max_tokens is below the minimum", "type": "invalid_request_error"}}

    def change(asked, usual):
        return web.json_response(refused, status=400) if asked.options.max_tokens == 1 else usual

    judged = await found(change, "text", "length")
    assert (rules(judged), rules(judged, "note"), judged.status) == (set(), {"length"}, Status.DONE)


async def test_an_answer_that_stops_at_the_bound_is_not_judged_further():
    judged = await found(always(lambda: events(ROLE, said("one"), chunk(finish="length"), DONE)), "tool")
    assert (rules(judged), rules(judged, "note")) == (set(), {"bound"})


async def test_an_empty_answer_is_found():
    assert rules(await found(always(lambda: events(ROLE, said(""), STOP, DONE)), "text")) == {"empty"}
    assert rules(await found(always(lambda: events(ROLE, STOP, DONE)), "text")) == {"empty"}


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        (None, "no token counts"),
        ({"prompt_tokens": 0, "completion_tokens": 4, "total_tokens": 4}, "0 input tokens"),
        ({"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}, "0 output tokens"),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 3}, "3 tokens in all"),
    ],
)
async def test_token_counts_that_are_missing_or_can_not_be_are_found(usage, says):
    counted = () if usage is None else ({**USAGE, "usage": usage},)
    judged = await found(always(lambda: events(ROLE, said("one"), STOP, *counted, DONE)), "usage")
    (finding,) = judged.findings
    assert finding.rule == "usage"
    assert says in finding.message


async def test_more_tokens_than_the_bound_are_found():
    usage = {**USAGE, "usage": {"prompt_tokens": 9, "completion_tokens": 400, "total_tokens": 409}}
    assert rules(await found(always(lambda: events(ROLE, said("one"), STOP, usage, DONE)), "usage")) == {"too_long"}


# -- whole answers and errors --------------------------------------------------------------------------------------------


def whole(**members):
    return lambda asked, usual: usual if asked.stream else web.json_response({**orjson.loads(WHOLE), **members})


async def test_a_whole_answer_that_counts_otherwise_than_the_stream_is_a_note():
    judged = await found(whole(), "usage", "whole")
    assert rules(judged, "note") == {"whole_model", "whole_usage"}
    assert "the whole response 'm-1'" in judged.findings[0].message
    assert judged.status is Status.DONE


async def test_a_whole_answer_without_usage_and_one_that_is_no_json_are_found():
    assert rules(await found(whole(usage=None), "whole")) == {"usage"}
    judged = await found(lambda _asked, _usual: web.Response(text="<html>", content_type="text/html"), "whole")
    assert rules(judged) == {"content_type", "whole"}
    assert judged.status is Status.FAILED


async def test_an_error_under_status_200_is_broken():
    judged = await found(whole(error={"message": "no such model", "type": "x"}, choices=None), "whole")
    assert rules(judged) == {"whole"}
    assert "no such model" in judged.findings[0].message


async def test_a_whole_answer_that_must_be_repaired_is_repairable():
    tool = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Bern"}}}
    message = {"role": "assistant", "content": None, "tool_calls": [tool]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    judged = await found(whole(choices=choices), "whole")
    assert "arguments_not_text" in rules(judged)
    assert judged.status is Status.WOULD_BE_REPAIRED


def refusing(status, body, content_type="application/json"):
    async def handle(_request):
        return web.Response(status=status, body=body, content_type=content_type)

    return answering(handle)


OWN = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'


@pytest.mark.parametrize(
    ("status", "body", "errors", "notes"),
    [
        (400, OWN, set(), set()),
        (422, OWN, set(), {"bad_request"}),
        (500, OWN, {"bad_request"}, set()),
        (400, b'{"detail":[{"msg":"no"}]}', {"error_form"}, set()),
        (400, b"<html>", {"error_form"}, set()),
        (200, WHOLE, {"bad_request"}, set()),
    ],
)
async def test_the_answer_to_a_wrong_request_is_judged(status, body, errors, notes):
    judged = (await examined(refusing(status, body), CHAT, "bad"))["bad"]
    assert (rules(judged), rules(judged, "note")) == (errors, notes)


async def test_one_broken_answer_outweighs_those_that_would_be_repaired():
    repaired = await found(always(lambda: events(ROLE, said("one"), STOP, DONE, content_type="text/plain")), "text")
    broken = await found(always(lambda: events(ROLE, said("one"))), "text")
    assert status_of([broken, repaired]) is Status.FAILED
    assert status_of([]) is Status.DONE
