"""One dialect in and out: what passes, what does not, and what stands in its place."""

from __future__ import annotations

import json
import re

import orjson
import pytest

from streamkit import Limits, StreamReport, collect, transcode
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Profile
from streamkit.errors import HeldTooLong, SourceFailed
from streamkit.read_options import ReadOptions
from streamkit.report import Status
from streamkit.testing import FaultySource, cuts, source_of
from streamkit.translation import pass_through
from streamkit.translation.pass_through import rule_for
from tests.laws.running import translate
from tests.vectors import VECTORS, gemini, gemini_interactions, ollama, openai_responses
from tests.vectors.vector import lines, named, sse

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
START = {
    "type": "message_start",
    "message": {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}  # fmt: skip


def chunk(delta, finish=None):
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


HI = sse(chunk({"role": "assistant", "content": "hi"}))
OPEN_CALL = sse(
    chunk(
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}}]}
    )
)
SAID = gemini.chunk(gemini.text("Hi"))
WHOLE = HI + sse(chunk({}, "stop")) + b"data: [DONE]\n\n"
ERROR = b'{"error":{"message":"gone","type":"server_error"}}'


async def passed(reads, dialect="openai-chat", **options):
    report = StreamReport()
    async with transcode(source_of(reads), dialect, dialect, report=report, **options) as stream:
        return b"".join([piece async for piece in stream]), report


def violations(dialect, output):
    linter, parser = DIALECTS[dialect].linter(), DIALECTS[dialect].parser(Limits(), StreamReport())
    found = linter.feed(parser.feed(output) + parser.finish()) + linter.finish()
    return [one.rule for one in found if one.severity == "error"]


@pytest.mark.parametrize(
    "body",
    [HI + b"data: [DONE]\n\n", HI + OPEN_CALL + b"data: [DONE]\n\n", HI + OPEN_CALL + b"data: [DONE]\n\n" + HI],
    ids=["text", "an open call", "more behind it"],
)
async def test_a_terminator_that_comes_too_early_is_replaced_by_an_error(body):
    for reads in cuts(body, sample=10):
        output, report = await passed(reads)
        assert output.startswith(HI)
        assert b"[DONE]" not in output
        assert output.count(b'"id":') == body[: body.index(b"data: [DONE]")].count(b'"id":'), "nothing begins anew"
        assert b"stream_truncated" in output
        assert report.status is Status.CUT


@pytest.mark.parametrize(
    "error",
    [
        b"error: " + ERROR + b"\n\n",
        ERROR + b"\n",
        b'data: {"object":"error","message":"gone"}\n\n',
        b'data: {"detail":"gone"}\n\n',
        b'event: error\ndata: {"message":"gone"}\n\n',
        b'data: {"error":"gone"}\n\n',
    ],
    ids=["a field", "a bare line", "flat", "detail", "event", "text"],
)
async def test_an_error_that_clients_would_not_see_is_written_as_the_dialect_has_it(error):
    for reads in cuts(HI + error, sample=10):
        output, report = await passed(reads)
        assert output.startswith(HI)
        assert output[len(HI) :].startswith(b'data: {"error":{')
        assert b"gone" in output
        assert violations("openai-chat", output) == []
        assert report.status is Status.PROVIDER_ERROR


async def test_an_anthropic_error_without_its_event_line_gets_one():
    begun = named(START)
    output, _ = await passed(
        [begun + b'data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'], "anthropic"
    )
    assert (
        output
        == begun + b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    )


@pytest.mark.parametrize(
    ("dialect", "begun", "failing", "after"),
    [
        ("openai-chat", HI, sse({**chunk({"content": " you"}, "stop"), "x_groq": {"error": "gone"}}), b"data: [DONE]\n\n"),
        ("openai-chat", HI, sse({**chunk({"content": " you"}), "base_resp": {"status_code": 1, "status_msg": "gone"}}), HI),
        ("gemini", gemini.events(SAID), gemini.events({**SAID, "errors": [{"message": "gone"}]}), b""),
        ("gemini", gemini.events(SAID), gemini.events({**SAID, "errors": [{"message": "gone"}]}), gemini.events(SAID)),
        ("ollama", lines(ollama.line("hi")), lines({**ollama.line(" you"), "fault": {"faultstring": "gone"}}), lines(ollama.end())),
    ],
    ids=["next to a stop", "next to text", "at the end", "with CRLF", "lines"],
)  # fmt: skip
async def test_output_next_to_an_error_that_clients_would_miss_passes(dialect, begun, failing, after):
    for reads in cuts(begun + failing + after, sample=20):
        output, report = await passed(reads, dialect)
        assert output.startswith(begun + failing)
        rest = output[len(begun + failing) :]
        assert b"gone" in rest
        assert rest.count(b'"error"') == 1
        assert b"DONE" not in rest
        assert report.status is Status.PROVIDER_ERROR


INSIDE = {"error": {"code": "server_error", "message": "gone"}}


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (
            "openai-responses",
            openai_responses.numbered(
                openai_responses.START, *openai_responses.message(0, "Hi"), openai_responses.last("completed", **INSIDE)
            ),
        ),
        (
            "gemini-interactions",
            gemini_interactions.named(
                gemini_interactions.START, *gemini_interactions.text(0, "Hi"), gemini_interactions.finish(**INSIDE)
            ),
        ),
    ],
    ids=["openai-responses", "gemini-interactions"],
)
async def test_a_completed_response_does_not_pass_with_an_error_inside(dialect, body):
    begun = body[: body.rindex(b"event: ")]
    for reads in cuts(body, sample=10):
        output, report = await passed(reads, dialect)
        assert output.startswith(begun)
        assert b"gone" in output
        assert b".completed" not in output
        assert report.status is Status.PROVIDER_ERROR


async def test_a_line_that_ends_the_response_does_not_pass_with_its_error():
    begun = lines(ollama.line("hi"))
    output, report = await passed([begun + lines({**ollama.end(), "errors": [{"message": "gone"}]})], "ollama")
    assert output == begun + b'{"error":"gone"}\n'
    assert report.status is Status.PROVIDER_ERROR


async def test_an_error_in_the_dialects_own_form_passes_as_it_came():
    body = HI + b"data: " + ERROR + b"\n\n"
    assert (await passed([body]))[0] == body


async def test_an_abort_said_in_the_finish_reason_alone_is_an_error():
    output, report = await passed([HI + sse(chunk({}, "abort")) + b"data: [DONE]\n\n"])
    assert b"[DONE]" not in output
    assert b"'abort'" in output
    assert report.status is Status.PROVIDER_ERROR


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai-chat", b"<!DOCTYPE html>\n\n<html>\n\n502\n\n</html>\n\n"),
        ("openai-chat", named(START)),
        ("anthropic", WHOLE),
        ("ollama", b"<html>\n\n</html>\n"),
    ],
)
async def test_nothing_passes_of_what_is_not_the_dialect(dialect, body):
    for reads in cuts(body, sample=5):
        output, report = await passed(reads, dialect)
        assert report.status is Status.NOT_THIS_DIALECT
        assert not output.startswith(body[:10])
        assert body not in output
        assert b"message_start" not in output.partition(b"rror")[0]


async def test_a_head_without_its_data_does_not_pass():
    for torn in (b"id: 3\n", b"event: mess", b"data"):
        output, report = await passed([HI + torn])
        assert output.startswith(HI + b'data: {"error"')
        assert report.broken_frame == torn


async def test_a_source_that_fails_behind_the_end_takes_nothing_back():
    for to in DIALECTS:
        source = FaultySource([WHOLE], fail_after=1, error=SourceFailed("reset"))
        async with transcode(source, "openai-chat", to) as stream:
            output = b"".join([piece async for piece in stream])
        assert violations(to, output) == []
        assert b"reset" not in output
        assert stream.report.status is Status.DONE
        assert stream.report.repairs == {"fault_after_end": 1}
    response = await collect(FaultySource([WHOLE], fail_after=1, error=SourceFailed("reset")), "openai-chat")
    assert response.clean
    assert response.report.status is Status.DONE


BROKEN_OFF = gemini.array(SAID, SAID)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b"[", 0),
        (b"[" + b'{"candidates":', 0),
        (gemini.array(SAID), len(gemini.array(SAID)) - 2),
        (BROKEN_OFF[:-20], len(gemini.array(SAID)) - 2),
        (BROKEN_OFF[: len(gemini.array(SAID)) + 1], len(gemini.array(SAID)) - 2),
        (BROKEN_OFF[:-1], len(BROKEN_OFF) - 2),
    ],
    ids=["at once", "in the first element", "no reason", "in an element", "behind a comma", "no bracket"],
)
async def test_an_array_that_is_cut_ends_with_an_error_and_its_bracket(body, kept):
    for reads in cuts(body, sample=10):
        output, report = await passed(reads, "gemini")
        assert output[:kept] == body[:kept]
        elements = json.loads(output)
        assert [next(iter(element)) for element in elements] == ["candidates"] * output.count(b'"Hi"') + ["error"]
        assert "truncated" in elements[-1]["error"]["message"]
        assert report.status is Status.CUT


async def test_an_array_whose_error_clients_would_not_see_ends_with_the_dialects_own():
    body = gemini.array(SAID, {"error": "busy"})
    for reads in cuts(body, sample=10):
        output, report = await passed(reads, "gemini")
        assert json.loads(output) == [SAID, {"error": {"code": 500, "message": "busy", "status": "INTERNAL"}}]
        assert report.status is Status.PROVIDER_ERROR
    body = gemini.array({"error": "busy"})
    assert list(json.loads((await passed([body], "gemini"))[0])[0]) == ["error"]


async def test_an_array_that_fails_in_reading_ends_with_an_error_and_its_bracket():
    output, report = await passed([gemini.array(SAID) + b"!"], "gemini")
    assert [next(iter(element)) for element in json.loads(output)] == ["candidates", "error"]
    assert report.status is Status.FAILED


@pytest.mark.parametrize("torso", [b"", b"\n", b",", b',\n{"usageMetadata":{"to'])
async def test_an_array_that_is_whole_but_for_its_end_gets_its_bracket(torso):
    whole = gemini.array(SAID, gemini.STOP)
    for reads in cuts(whole.rstrip(b"\n]") + torso, sample=10):
        output, report = await passed(reads, "gemini")
        assert output.startswith(whole.rstrip(b"\n]"))
        assert output.endswith(b"]")
        assert report.clean
        assert json.loads(output) == [SAID, gemini.STOP]
        assert (report.broken_frame or b"") == torso.strip(b",\n")


async def test_a_torso_behind_the_end_does_not_pass():
    output, report = await passed([HI + sse(chunk({}, "stop")) + b"data: [DO"])
    assert output == HI + sse(chunk({}, "stop"))
    assert report.broken_frame == b"[DO"
    assert report.clean


async def test_what_is_held_is_bounded():
    endless = [HI, b"data: [DONE]\n\n", *[HI] * 100]
    _, report = await passed(endless, options=ReadOptions(limits=Limits(held_chars=1000)))
    assert isinstance(report.error, HeldTooLong)


@pytest.mark.parametrize(
    "fault",
    [b'data: {"choices":[{"delta":}]}\n\n', HI.replace(b'"index":0', b'"index":65536'), b"data: " + ERROR + b"\n\n"],
    ids=["no JSON", "an absurd index", "an error"],
)
async def test_what_stands_before_a_fault_passes_and_nothing_behind_it(fault):
    for reads in cuts(HI + fault + WHOLE, sample=20):
        output, report = await passed(reads)
        assert output.startswith(HI + b'data: {"error":{')
        assert output.count(b"data: ") == 2
        assert not report.clean


@pytest.mark.parametrize(
    "behind", [b"data: " + ERROR + b"\n\n", b"error: " + ERROR + b"\n\n", ERROR + b"\n"], ids=["own", "field", "bare"]
)
async def test_a_terminator_does_not_pass_before_an_error_behind_it(behind):
    for reads in [[WHOLE, behind], *cuts(WHOLE + behind, sample=20)]:
        output, report = await passed(reads)
        assert b"[DONE]" not in output
        assert output.startswith(WHOLE.removesuffix(b"data: [DONE]\n\n") + b'data: {"error":{')
        assert b"gone" in output
        assert report.status is Status.PROVIDER_ERROR


async def test_a_terminator_waits_for_the_end_and_passes_where_the_source_fails_behind_it():
    report = StreamReport()
    source = FaultySource([WHOLE, b": bye\n\n"], fail_after=2, error=SourceFailed("reset"))
    async with transcode(source, "openai-chat", "openai-chat", report=report) as stream:
        pieces = [piece async for piece in stream]
    assert pieces == [WHOLE.removesuffix(b"data: [DONE]\n\n"), b"data: [DONE]\n\n: bye\n\n"]
    assert report.clean
    assert report.completed


async def test_a_broken_frame_behind_the_end_takes_nothing_back_and_does_not_pass():
    for reads in cuts(WHOLE + b": bye\n\ndata: {\n\n" + HI, sample=20):
        output, report = await passed(reads)
        assert output == WHOLE + b": bye\n\n"
        assert report.status is Status.DONE


async def test_a_source_that_fails_behind_a_whole_payload_has_said_it():
    said = HI + sse(chunk({}, "stop"))
    for to in (None, True):
        source = FaultySource([said.rstrip()], fail_after=1, error=SourceFailed("reset"))
        async with transcode(source, "openai-chat", "openai-chat", reencode=bool(to)) as stream:
            output = b"".join([piece async for piece in stream])
        assert stream.report.status is Status.DONE
        assert b'"stop"' in output


async def test_an_array_whose_own_error_ends_it_has_its_bracket():
    own = {"error": {"code": 500, "message": "gone", "status": "INTERNAL"}}
    for behind in ([], [SAID], [SAID, gemini.STOP]):
        body = gemini.array(SAID, own, *behind)
        for reads in cuts(body, sample=10):
            output, report = await passed(reads, "gemini")
            assert json.loads(output) == [SAID, own]
            assert report.status is Status.PROVIDER_ERROR
        if not behind:
            assert output == body


async def test_an_error_in_an_unseen_form_behind_the_providers_own_changes_nothing():
    body = HI + b"data: " + ERROR + b"\n\n"
    for reads in cuts(body + b"error: " + ERROR + b"\n\n", sample=10):
        assert (await passed(reads))[0] == body


async def test_an_abort_that_no_terminator_follows_is_an_error_too():
    body = HI + sse(chunk({}, "abort"))
    output, report = await passed([body])
    assert output.startswith(body + b'data: {"error":{')
    assert report.status is Status.PROVIDER_ERROR


#: An unfinished last frame never passes.
ENDED = [one for one in VECTORS if one.clean and "fault_after_end" not in one.repairs]


@pytest.mark.parametrize("vector", ENDED, ids=lambda one: f"{one.dialect} {one.name}")
async def test_a_stream_that_is_whole_passes_byte_for_byte(vector):
    output, report = await passed([vector.body], vector.dialect)
    assert report.clean
    assert output.startswith(vector.body)
    lacking = output[len(vector.body) :]
    assert lacking in {b"", DIALECTS[vector.dialect].frame_end} or (vector.dialect, lacking) == ("gemini", b"]")


TEXT_VALUE = re.compile(rb'"(?:content|delta|text)": ?"[^"\\]+(?=")')


def with_halves(vector):
    """The stream with the first half of a character at the end of one text, with and without the frames before it."""
    body = vector.body
    for text in list(TEXT_VALUE.finditer(body))[:4]:
        halved = body[: text.end()] + rb"\ud83d" + body[text.end() :]
        start = max(body.rfind(b"\n\n", 0, text.start()) + 2, body.rfind(b"\r\n\r\n", 0, text.start()) + 4)
        if vector.dialect == "ollama":
            start = body.rfind(b"\n", 0, text.start()) + 1
        yield halved
        yield halved[start:]


@pytest.mark.parametrize(
    "vector",
    [one for one in ENDED if one.text and one.dialect != "bedrock"],
    ids=lambda one: f"{one.dialect} {one.name}",
)
async def test_half_a_character_that_waits_for_the_end_takes_nothing_with_it(vector):
    for body in with_halves(vector):
        output, report = await passed([body], vector.dialect)
        assert not report.clean or output.startswith(body), body


BARE_USAGE = {**HEAD, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
COUNTED = (
    HI
    + b": a comment\n\n"
    + sse(BARE_USAGE)
    + sse({**chunk({}, "stop"), "usage": BARE_USAGE["usage"]})
    + sse(BARE_USAGE)
)
UNASKED = Profile(include_usage=False)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("end", [b"data: [DONE]\n\n", b": bye\n\ndata: [DONE]\n\n"])
async def test_a_chunk_of_nothing_but_usage_is_taken_out_wherever_it_is_cut(line_end, end):
    body = (COUNTED + end).replace(b"\n", line_end)
    wanted = body.replace(sse(BARE_USAGE).replace(b"\n", line_end), b"")
    for reads in [[body], *cuts(body, sample=60), [body[at : at + 1] for at in range(len(body))]]:
        output, report = await passed(reads, profile=UNASKED)
        assert output == wanted
        assert report.clean
        assert not report.repairs
    assert (await passed([body]))[0] == body, "by itself nothing is asked of a stream"


async def test_a_comment_behind_a_usage_chunk_in_several_lines_stays():
    lines = b'data: {"choices":[],\r\ndata: "usage":{"prompt_tokens":1,"completion_tokens":2}}\r\n\r\n'
    body = HI + sse(chunk({}, "stop")) + lines + b": bye\r\n\r\ndata: [DONE]\r\n\r\n"
    for reads in [[body[at : at + 1] for at in range(len(body))], *cuts(body, sample=60)]:
        assert (await passed(reads, profile=UNASKED))[0] == body.replace(lines, b"")


async def test_a_usage_chunk_in_several_lines_or_without_its_end_is_taken_out_too():
    lines = b'data: {"choices":[],\ndata: "usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
    stop = sse(chunk({}, "stop"))
    for reads in cuts(HI + stop + lines + b"data: [DONE]\n\n", sample=60):
        assert (await passed(reads, profile=UNASKED))[0] == HI + stop + b"data: [DONE]\n\n"
    torn = HI + stop + sse(BARE_USAGE).rstrip()
    for reads in [[torn], *cuts(torn, sample=20)]:
        assert b"prompt_tokens" not in (await passed(reads, profile=UNASKED))[0]


@pytest.mark.parametrize("vector", ENDED, ids=lambda one: f"{one.dialect} {one.name}")
async def test_a_stream_names_the_model_asked_for_only_where_it_names_none(vector):
    output, _ = await passed([vector.body], vector.dialect, profile=Profile(model="asked"))
    kept, frames = (parsed(vector.dialect, body) for body in (vector.body, output))
    assert len(kept) == len(frames)
    for before, after in zip(kept, frames, strict=True):
        if before != after:
            assert b'"model":"asked"' in after.replace(b" ", b"")
            changed, same = orjson.loads(after), orjson.loads(before)
            for value in (changed, same):
                holder = next(
                    (value[name] for name in ("message", "response", "interaction") if "model" in value.get(name, ())),
                    value,
                )
                holder.pop("model", None)
            same = same if same == changed else {**same, "message": {**same.get("message", {})}}
            assert same == changed


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral", "anthropic", "openai-responses", "ollama"])
@pytest.mark.parametrize("blank", [b'""', b"null", b'" "'])
async def test_a_blank_model_is_named_and_no_other_byte_changes(dialect, blank):
    for vector in VECTORS:
        if vector.dialect == dialect and vector.clean and not vector.repairs and b'"model":"' in vector.body:
            unnamed = re.sub(rb'"model":"[^"]*"', b'"model":' + blank, vector.body)
            for reads in [[unnamed], *cuts(unnamed, sample=3)]:
                output, report = await passed(reads, dialect, profile=Profile(model="asked"))
                assert output == re.sub(rb'"model":"[^"]*"', b'"model":"asked"', vector.body)
                assert report.clean
            return
    pytest.fail(f"no vector of {dialect} names a model")


def parsed(dialect, body):
    parser = DIALECTS[dialect].parser(Limits(), StreamReport())
    return [frame.data for frame in parser.feed(body) + parser.finish()]


async def test_an_error_behind_responses_events_names_the_response_and_counts_on():
    begun = openai_responses.numbered(openai_responses.START, *openai_responses.HI)
    for reads in [*cuts(begun, sample=10), [begun, b"event: resp"], [begun + b'event: x\ndata: {"sequence_number":']]:
        output, _ = await passed(reads, "openai-responses")
        assert output.startswith(begun)
        assert violations("openai-responses", output) == []
        error, failed = [orjson.loads(part.partition(b"data: ")[2]) for part in output[len(begun) :].split(b"\n\n")[:2]]
        assert (error["type"], failed["type"]) == ("error", "response.failed")
        assert failed["response"]["id"] == openai_responses.RESPONSE["id"]
        assert [error["sequence_number"], failed["sequence_number"]] == [8, 9]


async def test_a_call_that_comes_behind_an_error_is_not_said_to_be_unanswered():
    """AG-UI's clients want each call that they were told of answered; of this one they see nothing, in whatever reads it comes."""
    started, call = (
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TOOL_CALL_START", "toolCallName": "f", "toolCallId": "c"},
    )
    begun = sse(orjson.dumps(started))
    body = begun + sse(b'{"detail":"gone"}', orjson.dumps(call))
    for reads in ([body], [begun, body[len(begun) :]], [body[at : at + 1] for at in range(len(body))]):
        output, _ = await passed(reads, "ag-ui")
        assert output == begun + b'data: {"type":"RUN_ERROR","message":"gone","code":"server"}\n\n'


AZURES = (
    b'{"choices":[{"content_filter_results":{},"delta":{"content":"%b"},"finish_reason":null,"index":0,"logprobs":null}],'
    b'"created":1,"id":"c1","model":"m1","object":"chat.completion.chunk","system_fingerprint":null,"usage":null}'
)
OPENAIS = (
    b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m1","choices":[{"index":%d,"delta":{"content":"%b"},'
    b'"finish_reason":null}],"usage":null}'
)


@pytest.mark.parametrize("options", [{"model": "a"}, {"include_usage": False}, {"model": "a", "include_usage": False}])
@pytest.mark.parametrize("azure", [False, True])
def test_frames_that_begin_or_end_alike_are_looked_at_once(azure, options, monkeypatch):
    rule = rule_for(DIALECTS["openai-chat"], Profile(**options))
    payloads = [AZURES % b"x" if azure else OPENAIS % (number % 4, b"x" * number) for number in range(400)]
    parsed, searched = [], []
    loads = pass_through.orjson.loads
    monkeypatch.setattr(pass_through.orjson, "loads", lambda text: parsed.append(text) or loads(text))
    for payload in payloads:
        if not payload.startswith(rule.known):
            searched.append(payload)
            assert rule(payload) is payload
    assert len(parsed) <= 2
    assert len(searched) <= 4 or azure


ODD = [
    b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"","choices":[{"index":0,"delta":{"content":"x"}}]}',
    b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m1","choices":[],"usage":{"prompt_tokens":1}}',
    b'{"id":"c1","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"content":"\\"model\\":"}}]}',
    b'{"choices":[{"delta":{"content":"x","model":"m1"}}],"created":1,"id":"c1"}',
    b'{"choices":[{"delta":{"content":"x"}}],"created":1,"id":"c1","model":"m1"}',
    b'{"choices":[{"delta":{"content":"x"}}],"created":1,"id":"c1","model":" "}',
    b'{"x":{"choices":[],"created":1,"id":"c1","model":"m1"},"choices":[]}',
    b'{"choices":[],"x":{"y":[],"created":1,"id":"c1","model":"m1"}}',
    b'{"choices":[],"x":"],\\"created\\":1,\\"id\\":\\"c1\\",\\"model\\":\\"m1\\"}"}',
    b'{"choices":[],"usage":{"prompt_tokens":1},"created":1,"id":"c1","model":"m1"}',
    b'{"choices":[{"delta":{}}],"model":"m1","model":null}',
    b'{"choices":[{"delta":{}}],"model":"\\u0020"}',
    b'{"choices":[{"delta":{"content":"x"}],"created":1,"id":"c1","model":"m1"}',
    b"",
    b"[DONE]",
]


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral", "anthropic", "openai-responses", "ollama"])
@pytest.mark.parametrize(
    "options", [{"model": "asked"}, {"include_usage": False}, {"model": "a", "include_usage": False}]
)
def test_what_was_seen_of_a_stream_changes_nothing_of_what_a_frame_needs(dialect, options):
    profile = Profile(**options)
    rule = rule_for(DIALECTS[dialect], profile)
    if rule is None:
        return
    bodies = [vector.body for vector in VECTORS if vector.dialect == dialect]
    payloads = [payload for body in bodies for payload in parsed(dialect, body)]
    common = [OPENAIS % (0, b"x"), AZURES % b"x", OPENAIS % (1, b'\\"model\\"'), AZURES % b"\\n"]
    edited = [payload.replace(b'"model":"', b'"model":"","was":"') for payload in payloads]
    cut = [payload[:size] for payload in common for size in range(len(payload))]
    for payload in [*common, *ODD, *payloads, *common, *ODD, *edited, *cut, *ODD]:
        alone = rule_for(DIALECTS[dialect], profile)(payload)
        passes = payload.startswith(rule.known)
        assert (payload if passes else rule(payload)) == alone


@pytest.mark.parametrize("piece", ["", '{"x":'])
def test_a_call_that_waits_for_an_end_that_does_not_come_is_in_the_report(piece):
    """A client would run it; text behind it waits, too (ui-protocols.md §1.6)."""
    chunks = [
        {"type": "start"},
        {"type": "start-step"},
        {"type": "tool-input-start", "toolCallId": "a", "toolName": "f"},
        *([{"type": "tool-input-delta", "toolCallId": "a", "inputTextDelta": piece}] if piece else []),
        {"type": "tool-input-available", "toolCallId": "a", "toolName": "f", "input": {"x": 1}},
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": "behind it"},
    ]
    body = b"".join(b"data: %b\n\n" % orjson.dumps(chunk) for chunk in chunks)
    output, report = translate("ai-sdk", "ai-sdk", [body])
    assert b"available" not in output
    assert b"behind it" not in output
    assert b"behind it" in (report.broken_frame or b"")
    assert [(one.kind, one.arguments) for one in report.withheld] == [("unclean_call", '{"x":1}')]
