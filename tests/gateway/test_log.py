"""The log: one line for each request and each event, which nobody outside can forge, and which holds no secret."""

import asyncio
import json
import logging
import os
import pty
import re
import subprocess
import sys

import orjson
import pytest
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, BadStatusLine

from streamkit import Choice, Response, StreamReport, encode_response, response_events
from streamkit.conversation.messages import Text as TextPart
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import UsageReported
from streamkit.gateway.log import BEGUN as READ
from streamkit.gateway.log import TALKATIVE, JSONLines, Text, begun_log
from streamkit.gateway.record import Record, log_record
from streamkit.web.upstream import Secret
from tests.gateway.running import asking, behind, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import FAULTS, answer, as_asked, asks_for_stream, good, refuse, status, whole
from tests.web.raw_client import RawClient
from tests.web.serving import eventually

FORMS = {"json": JSONLines(), "text": Text()}
#: Letters that end a line, move a terminal, or turn a line around, and one that no encoding can write.
NASTY = "a\nb\rc\x1b[31md\x07e\x7ff\x85g\x9b31mh\u2028i\u2029j\u202ek\u2066l\x00m\ud800n\u061co\u200fp\u200bq\ufeffr\U000e0041s\xad"


def logged(level=logging.INFO, message="request", *args, error=None, **fields):
    info = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.LogRecord("streamkit.gateway", level, "file", 1, message, args, info)
    record.fields = fields
    return record


def told(message, fields):
    """A record with these fields, of which one may be called ``error``."""
    record = logged(message=message)
    record.fields = fields
    return record


def raised(error):
    try:
        raise error
    except type(error) as caught:
        return caught


# -- a line ------------------------------------------------------------------------------------------------------------


def test_a_line_is_json_with_time_level_event_and_fields():
    line = json.loads(
        FORMS["json"].format(logged(logging.WARNING, "a %s", "thing", request_id="req_1", attempts=[{"a": 1}]))
    )
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "warning", "event": "a thing", "request_id": "req_1", "attempts": [{"a": 1}]}


def test_a_line_for_people_says_the_same():
    line = FORMS["text"].format(logged(logging.WARNING, "a %s", "thing", request_id="req_1", status=200))
    assert line[8:] == " warning a thing request_id='req_1' status=200"


ASKED = {"request_id": "req_1", "method": "POST", "path": "/v1/messages", "model": "m"}
OVER = {
    **ASKED,
    "client": "anthropic",
    "route": "m",
    "stream": True,
    "status": 200,
    "ending": "whole",
    "seconds": 2.314,
}
WHOLE = {
    "first_byte_s": 0.42, "stop": "tool_calls",
    "attempts": [
        {"upstream": "a", "outcome": "http_503", "path": "/v1/responses", "detail": "no room"}, {"upstream": "b", "outcome": "success"},
    ],
    "usage": {"output": 56, "input": 1204, "input_cached": 1000}, "losses": {"parameter": 1, "metadata": 2},
    "left_out": ["seed", "top_p"], "timings": {"pipe": {"ms": 2.0, "items_in": 1}},
}  # fmt: skip
#: The message and the fields of a record, and its line for people without the time.
LINES = {
    "read": (READ, ASKED, "POST /v1/messages  m  req_1"),
    "a whole stream": (
        "request", OVER | WHOLE,
        "200  POST /v1/messages  m  → a (http_503 /v1/responses no room), b  2.31 s, first byte 0.42 s  1,204 in, 1,000 cached, 56 out  whole, tool_calls  losses: parameter 1, metadata 2  left_out: seed, top_p  timings: pipe 2.0 ms  req_1",
    ),
    "refused": (
        "request", {**ASKED, "model": "x", "status": 404, "ending": "error", "seconds": 0.0, "error": "no such model"},
        "404  POST /v1/messages  x  0.00 s  error  no such model  req_1",
    ),
    "left": (
        "request", OVER | {"status": 499, "ending": "client left", "attempts": [{"upstream": "a", "outcome": "client_left"}]},
        "499  POST /v1/messages  m  → a  2.31 s  client left  req_1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LINES)
def test_a_line_for_people_says_what_became_of_a_request(case):
    message, fields, said = LINES[case]
    assert FORMS["text"].format(told(message, fields))[10:] == said
    coloured = Text(colour=True).format(told(message, fields))
    assert re.sub(r"\x1b\[\d*m", "", coloured)[10:] == said
    assert "\x1b[2mreq_1\x1b[0m" in coloured


@pytest.mark.parametrize("name", [*ASKED, "client", "route", "ending", "error", "stop", "losses"])
def test_no_letter_of_the_wires_is_in_a_line_for_people(name):
    value = {NASTY: 1} if name == "losses" else NASTY
    assert FORMS["text"].format(told("request", OVER | {name: value})).isprintable()


@pytest.mark.parametrize("form", ["text", "json"])
async def test_the_text_has_a_line_once_a_request_is_read_and_the_json_has_not(form, caplog, monkeypatch):
    monkeypatch.setattr(begun_log, "disabled", form == "json")
    caplog.set_level(logging.INFO, "streamkit.gateway")
    async with behind(as_asked("openai-chat")) as running:
        await running.asked("anthropic")
        await running.get("/v1/models")
        await eventually(lambda: running.counted("streams_active") == 0)
    begun, *over = [FORMS["text"].format(record)[10:] for record in caplog.records]
    if form == "text":
        assert begun.startswith("POST /v1/messages  m  req_")
        assert begun.rpartition(" ")[2] == over[0].rpartition(" ")[2]
    assert [record.msg for record in caplog.records] == [*[READ][: form == "text"], "request", "request"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["message", "argument", "field", "inside", "exception"])
def test_no_letter_of_the_wires_ends_a_line_or_moves_a_terminal(form, place):
    record = {
        "message": lambda: logged(20, NASTY),
        "argument": lambda: logged(20, "said %s", NASTY),
        "field": lambda: logged(model=NASTY),
        "inside": lambda: logged(attempts=[{"detail": NASTY}]),
        "exception": lambda: logged(error=raised(RuntimeError(NASTY))),
    }[place]()
    text = FORMS[form].format(record)
    text.encode()  # nothing in it that can't be written
    lines = text.split("\n") if (form, place) == ("text", "exception") else [text]
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])  # so that none looks like the beginning of another
    if form == "json":
        line = json.loads(text)
        where = {"message": line["event"], "argument": line["event"][5:], "field": line.get("model")}
        assert where.get(place, NASTY) == NASTY  # and it says what was said


def test_a_value_that_is_no_json_is_shown():
    assert json.loads(FORMS["json"].format(logged(thing={1})))["thing"] == "{1}"


# -- exceptions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_an_exception_is_told_without_what_looks_like_a_key(form):
    error = raised(RuntimeError("sent Authorization: Bearer abcdef0123456789 and sk-abcdef0123456789"))
    text = FORMS[form].format(logged(message="a request failed", error=error))
    assert "RuntimeError: sent Authorization: Bearer [removed] and [removed]" in text
    assert "test_log.py" in text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (BadHttpMessage("Invalid header value char:\n\n  b'x-api-key: canary\\x01'"), "BadHttpMessage: status 400"),
        (BadStatusLine("GET /?key=canary HTTP/9"), "BadStatusLine: status 400"),
        (
            web.RequestPayloadError("Can not decode content-encoding: canary"),
            "RequestPayloadError: the body can't be read",
        ),
    ],
)
def test_of_what_a_client_sent_that_can_t_be_read_only_the_kind_is_logged(form, error, shown):
    text = FORMS[form].format(logged(message="Error handling request", error=raised(error)))
    assert "canary" not in text
    assert "Traceback" not in text
    assert shown in text


# -- a request ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "ending", "level"),
    [
        (200, "whole", "INFO"),
        (404, "error", "INFO"),
        (499, "client left", "INFO"),
        (500, "error", "WARNING"),
        (200, "broken", "WARNING"),
    ],
)
def test_a_request_is_a_warning_if_it_was_not_the_clients_own_fault(code, ending, level, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    log_record(Record("req_1", "POST", "/", status=code, ending=ending))
    [record] = caplog.records
    assert (record.levelname, record.msg, record.fields["status"]) == (level, "request", code)


async def line_of(caplog, script, client="anthropic", headers=None, server=None, **how):
    caplog.set_level(logging.DEBUG)
    async with behind(script, server=server) as running:
        await running.asked(client, headers=headers, **how)
        await eventually(lambda: running.counted("streams_active") == 0)
    [record] = [record for record in caplog.records if record.name == "streamkit.gateway"]
    return json.loads(FORMS["json"].format(record))


async def test_the_line_of_a_stream(caplog):
    line = await line_of(caplog, as_asked("openai-chat"), tools=True)
    assert line.pop("time")
    assert line.pop("request_id").startswith("req_")
    assert 0 < line.pop("first_byte_s") <= line.pop("seconds") < 5
    assert 0 <= line["attempts"][0].pop("seconds") < 5
    assert 0 < line.pop("first_output_s") < 5
    for figure in (
        "greatest_gap_s",
        "median_gap_s",
        "output_tokens_per_s",
    ):  # where the reads were not joined on the way
        line.pop(figure, None)
    assert line == {
        "level": "info",
        "event": "request",
        "method": "POST",
        "path": "/v1/messages",
        "client": "anthropic",
        "model": "m",
        "route": "m",
        "stream": True,
        "status": 200,
        "ending": "whole",
        "attempts": [{"upstream": "one", "outcome": "success"}],
        "verdicts": {"complete": 1},
        "stop": "tool_calls",
        "usage": {"input": 9, "output": 14},
    }


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
BAD_FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"$ref": "https://x.example/"}}}
CHECKED = {"check_schemas": True}
BEGUN = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "{"}]


def saying(dialect, text):
    """An upstream that says ``text``, as a stream or as a whole response."""
    choices = [Choice(parts=[TextPart(text)], stop_reason="stop")]
    response = Response(dialect, id="r", model="m", choices=choices, usage=UsageReported(9, output_total=1), clean=True)

    def play(request):
        if not asks_for_stream(request, dialect):
            return whole(dialect, encode_response(response, dialect))
        encoder = DIALECTS[dialect].encoder(Encoding(), StreamReport())
        return good(dialect, [*filter(None, map(encoder.feed, ([event] for event in response_events(response))))])

    return play


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
@pytest.mark.parametrize(
    ("text", "body", "server", "kind"),
    [
        ('{"n":1}', {}, None, None),
        ('{"n":1}', {"response_format": {"type": "json_object"}}, None, "complete"),
        ('{"n":', {"response_format": {"type": "json_object"}}, None, "truncated"),
        ('{"n":"x"}', {"response_format": FORM}, None, "unchecked"),
        ("Sure!", {"response_format": FORM}, None, "malformed"),
        ('{"n":"x"}', {"response_format": FORM}, CHECKED, "schema_invalid"),
        ('{"n":1}', {"response_format": FORM}, CHECKED, "complete"),
        ('{"n":1}', {"response_format": BAD_FORM}, CHECKED, "unchecked"),
        ('"n":1}', {"response_format": FORM, "messages": BEGUN}, None, None),
    ],
)
async def test_the_line_has_the_verdict_on_a_text_that_was_to_be_json(
    caplog, text, body, server, kind, dialect, stream
):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    async with behind(saying(dialect, text), dialect=dialect, server=server) as running:
        answer = await running.asked("openai-chat", {"model": "m", **body}, stream=stream)
        assert answer.status == 200
        await eventually(lambda: running.counted("streams_active") == 0)
        found = {} if kind is None else {kind: 1}
        [line] = [record.fields for record in caplog.records if record.msg == "request"]
        assert line.get("output_verdicts", {}) == found
        assert running.counted("outputs_total", upstream="one") == len(found)


#: What each pair of dialects has between its source and what drives the stages.
STAGES = {
    "anthropic": (
        "parse openai-chat", "decode openai-chat", "accumulate_tool_calls", "carry_citations",
        "encode anthropic",
    ),
    "openai-chat": ("pass openai-chat through",),
}  # fmt: skip


@pytest.mark.parametrize("client", STAGES)
async def test_the_line_of_a_stream_that_is_timed_says_what_each_stage_took(caplog, client):
    line = await line_of(caplog, as_asked("openai-chat"), client, server={"timings": True}, tools=True)
    source, *stages = line["timings"].items()
    assert (source[0], *(name for name, _ in stages)) == ("source", *STAGES[client], "pipe")
    assert all(row.keys() == {"ms", "items_in", "items_out"} for row in line["timings"].values())
    assert source[1]["items_out"] > 0
    assert 0 < sum(row["ms"] for row in line["timings"].values()) < 1000 * line["seconds"] + 1


async def test_a_whole_answer_that_goes_on_as_a_stream_is_timed_as_it_is_written(caplog):
    line = await line_of(caplog, whole("openai-chat"), server={"timings": True})
    assert list(line["timings"]) == ["source", "encode anthropic", "pipe"]


async def test_a_whole_answer_is_no_stream_and_not_timed(caplog):
    line = await line_of(caplog, as_asked("openai-chat"), server={"timings": True}, stream=False)
    assert "timings" not in line


async def test_the_line_of_a_failure_has_its_reason_once_and_each_leg(caplog):
    line = await line_of(caplog, status(503, message="no room"), stream=False)
    assert (line["level"], line["status"], line["ending"]) == ("warning", 529, "error")
    assert line["error"] == "the evil upstream says: no room"
    assert [(attempt["outcome"], attempt.get("detail")) for attempt in line["attempts"]] == [("http_503", None)]


async def test_a_leg_that_failed_says_where_it_was_asked_and_why_by_the_systems_word(caplog):
    """Neither host nor query nor key: base URLs have account numbers in their paths, and keys."""
    caplog.set_level(logging.DEBUG)
    async with EvilUpstream(refuse()) as one, EvilUpstream(status(404, message="Not Found")) as two:
        upstreams = [
            upstream_at(one, "openai-chat"),
            upstream_at(two, "gemini", "two", base_url=f"{two.url}/v1/sk-0123456789abcdef/twice"),
        ]
        async with gateway(config_of(upstreams)) as running:
            answer = await running.asked("anthropic", model="x/y z")
    assert answer.status == 502
    told = "one: the connection to the upstream could not be opened: Connection refused"
    assert answer.json()["error"]["message"] == f"{told}; two: status 404"
    [record] = [record for record in caplog.records if record.name == "streamkit.gateway"]
    first, second = json.loads(FORMS["json"].format(record))["attempts"]
    assert (first["outcome"], first["path"], "detail" in first) == ("refused", "/v1/chat/completions", False)
    assert second["path"] == "/v1/[removed]/twice/v1beta/models/x/y%20z:streamGenerateContent"
    assert second["outcome"] == "http_404"
    assert str(one.port) not in record.getMessage() + str(first) + str(second)


REFUSED = {
    "a body that can't be": (b"{", "openai-chat", "JSON"),
    "a model that no route has": (b'{"model":"other","messages":[{"role":"user","content":"hi"}]}', "ollama", "other"),
    "too large a body": (b" " * 2000, "anthropic", "exceeds the limit"),
    "a path that is not served": (b"{}", "/v1/completions", "/v1/completions"),
    "a path like none of ours": (b"{}", "/nothing", "does not exist"),
    "what looks like a key": (b'{"model":"sk-0123456789abcdef","messages":[]}', "openai-chat", "[removed]"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_the_line_of_a_request_that_is_refused_says_why(case, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    body, where, words = REFUSED[case]
    path = where if where.startswith("/") else asking(where)[0]
    async with behind(as_asked("openai-chat"), models=("m",), server={"body_bytes": 1000}) as running:
        await running.ask(path, body=body)
        await eventually(lambda: running.counted("streams_active") == 0)
    [record] = [record for record in caplog.records if record.name == "streamkit.gateway"]
    assert words in record.fields["error"]
    assert "sk-0123456789abcdef" not in record.fields["error"]


@pytest.mark.parametrize("server", [{"keys": (Secret("client-key-1"),)}, {"max_streams": 1}], ids=["no key", "busy"])
async def test_who_is_not_let_in_has_a_line_that_says_why(server, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    hanging = FAULTS["silence before headers"]("openai-chat")
    async with behind(hanging, server=server) as running:
        if "keys" not in server:
            first = asyncio.create_task(running.asked("anthropic"))
            await running.evil.request(0)
        refused = await running.asked("anthropic")
        lines = [record.fields for record in caplog.records if record.msg == "request"]
        if "keys" not in server:
            await first
    assert [(line["status"], line["error"]) for line in lines] == [(refused.status, refused.json()["error"]["message"])]


async def test_the_line_of_a_stream_that_broke(caplog):
    line = await line_of(caplog, FAULTS["truncated chunked body"]("openai-chat"))
    assert (line["level"], line["status"], line["ending"]) == ("warning", 200, "broken")
    assert line["error"] == "one: the connection to the upstream broke"
    assert line["attempts"][0]["outcome"] == "broken"


async def test_what_a_client_wrote_is_no_longer_in_a_line_than_a_line(caplog):
    line = await line_of(caplog, as_asked("openai-chat"), model="m" * 100_000)
    assert line["model"] == "m" * 199 + "…"
    assert len(json.dumps(line)) < 2000


async def test_the_query_is_not_in_a_line(caplog):
    caplog.set_level(logging.DEBUG)
    _, body = asking("gemini")
    async with behind(as_asked("openai-chat")) as running:
        await running.ask("/v1beta/models/m:generateContent?key=canary", body=orjson.dumps(body))
        await running.ask("/v1beta/nothing?key=canary")
    assert "/v1beta/nothing" in str([record.fields for record in caplog.records if hasattr(record, "fields")])
    assert not any("canary" in FORMS[form].format(record) for record in caplog.records for form in FORMS)


async def test_a_client_that_sends_no_http_forges_no_line(caplog):
    caplog.set_level(logging.DEBUG)
    line = b'POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: canary-1\x01\n{"event":"forged"}\r\n\r\n'
    async with behind(as_asked("openai-chat")) as running, RawClient(running.url) as client:
        await client.send_bytes(line)
        assert (await client.read_to_end()).status == 400
    texts = [FORMS[form].format(record) for record in caplog.records for form in FORMS]
    assert any("BadHttpMessage" in text for text in texts)
    assert not any("canary" in text or "forged" in text for text in texts)


# -- the process -------------------------------------------------------------------------------------------------------

#: Logs in a process of its own, since it is set for the whole process.
PROGRAM = """
import logging, sys
from streamkit.gateway.log import configure, log
configure(sys.argv[1], sys.argv[2])
log.debug("debug"); log.info("info", extra={"fields": {"a": 1}}); log.warning("warning")
for name in sys.argv[3:]:
    logging.getLogger(name).debug("talk"); logging.getLogger(name + ".child").debug("talk"); logging.getLogger(name).error("error")
"""


def process(*arguments):
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    assert not done.stdout
    return done.stderr.splitlines()


def test_the_log_is_on_standard_error_from_the_level_that_is_set():
    assert [json.loads(line)["event"] for line in process("json", "info")] == ["info", "warning"]
    assert [json.loads(line)["level"] for line in process("json", "warning")] == ["warning"]
    assert [line[8:] for line in process("text", "debug")] == [" debug debug", " info info a=1", " warning warning"]


@pytest.mark.parametrize(
    ("environment", "mark"), [({}, "\x1b[33mwarning\x1b[0m"), ({"NO_COLOR": "1"}, " warning warning")]
)
def test_the_log_is_text_on_a_terminal_in_colours_unless_they_are_unwanted(environment, mark):
    assert all(json.loads(line) for line in process("auto", "info"))
    terminal, stderr = pty.openpty()
    arguments = [sys.executable, "-c", PROGRAM, "auto", "info"]
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    subprocess.run(arguments, stderr=stderr, check=True, env=clean | environment)
    os.close(stderr)
    said = os.read(terminal, 4096).decode()
    os.close(terminal)
    assert mark in said
    assert ("\x1b" in said) == (not environment)


def test_who_logs_bodies_and_keys_at_the_level_of_debugging_does_not_do_it_here():
    events = [json.loads(line)["event"] for line in process("json", "debug", *TALKATIVE)]
    assert "talk" not in events
    assert events.count("error") == len(TALKATIVE)


async def test_a_body_is_in_no_line_at_any_level(caplog):
    for name in TALKATIVE:
        caplog.set_level(logging.INFO, name)  # as `configure` does
    await line_of(caplog, as_asked("openai-chat"), client="openai-chat", stream=False, tools=True)
    assert not any("Oslo" in FORMS[form].format(record) for record in caplog.records for form in FORMS)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    "body",
    [
        b"words of somebody, and no JSON",
        b'["words of somebody"]',
        b'{"choices":[{"message":{"role":"assistant","content":"words of somebody"}}]}',
        b'data: {"choices":[{"delta":{"content":"words of somebody"}}\n\ndata: {}\n\n',
    ],
    ids=["text", "array", "whole answer", "broken frame"],
)
async def test_what_is_no_answer_may_be_the_models_words_and_is_in_no_line_either(caplog, body, stream):
    for name in TALKATIVE:
        caplog.set_level(logging.INFO, name)
    await line_of(caplog, answer(200, body), client="openai-chat", stream=stream)
    assert not any("somebody" in FORMS[form].format(record) for record in caplog.records for form in FORMS)
