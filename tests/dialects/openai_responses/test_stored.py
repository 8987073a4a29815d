"""Responses that are kept: the texts of what is written, kept and made whole, and how a log says what became of one."""

from __future__ import annotations

import orjson
import pytest

from streamkit.dialects.openai_responses import stored
from streamkit.errors import BadRequest
from streamkit.framing.sse import serialize_sse
from tests.web.faults import speech

EXACT = b'{"type":"message","role":"user","content":"a","n":1.0e2}'
BEGUN = stored.queued("resp_ours", 7, "m", {})


def event(kind, **members):
    return serialize_sse(orjson.dumps({"type": kind, **members}), event=kind)


def test_the_id_is_ours_and_every_other_byte_of_the_stream_is_as_it_came():
    writer = stored.ResponseWriter("resp_ours", is_background=True, previous_id="resp_before")
    for came in speech("openai-responses"):
        written = writer.feed(came)
        if b'"response"' not in came:
            assert written == came
            continue
        before, after = (
            orjson.loads(text.partition(b"data: ")[2].partition(b"\n\n")[0])["response"] for text in (came, written)
        )
        said = {"id": "resp_ours", "background": True, "previous_response_id": "resp_before", "store": True}
        assert after == {**before, **said}
    assert writer.kept(b"")


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"response.created","response":{"id":"a", "n":1.0}}',
        b'{"type":"response.created",\ndata: "response":{}}',
    ],
)
def test_any_lines_of_an_event_are_read(data, end):
    writer = stored.ResponseWriter("resp_ours", is_background=False, previous_id="")
    written = writer.feed(b"event: response.created\ndata: ".replace(b"\n", end[: len(end) // 2]) + data + end)
    assert b'"id":"resp_ours"' in written
    assert (b'"n":1.0' in written) == (b"1.0" in data)


def test_what_is_kept_has_the_items_that_came_where_the_end_has_none():
    writer = stored.ResponseWriter("resp_ours", is_background=False, previous_id="")
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    writer.feed(event("response.output_item.done", item=item))
    writer.feed(event("response.completed", response={"id": "a", "status": "completed", "output": []}))
    kept = writer.kept(EXACT)
    assert kept.items == {"msg_1": orjson.dumps(item)}
    request = stored.KeptRequest(b'{"model":"m","previous_response_id":"resp_ours","input":"b","n":1.0e2}')
    whole = request.resolved(kept.value, {})
    assert EXACT in whole
    assert whole.endswith(b'"n":1.0e2}')
    assert orjson.loads(whole)["input"][1:] == [item, {"type": "message", "role": "user", "content": "b"}]
    assert "previous_response_id" not in orjson.loads(whole)


def test_a_response_that_failed_is_not_kept():
    writer = stored.ResponseWriter("resp_ours", is_background=False, previous_id="")
    writer.feed(event("response.failed", response={"id": "a", "status": "failed", "output": []}))
    writer.whole(b'{"id":"a","status":"failed","output":[]}')
    assert writer.kept(b"") is None


def test_an_id_that_is_none_is_refused():
    with pytest.raises(BadRequest, match="previous_response_id"):
        stored.KeptRequest(b'{"previous_response_id":5}')


CREATED = event(
    "response.created", sequence_number=0, response={"id": "resp_ours", "status": "in_progress", "error": None}
)
TOLD = event("error", sequence_number=1, code="slow_down", message="busy")
LOGS = [
    (b"", "", "queued", None),
    (b"", "aborted", "failed", "server_error"),
    (CREATED, "", "in_progress", None),
    (CREATED, "shut_down", "failed", "server_error"),
    (CREATED + TOLD, "failed", "failed", "slow_down"),
    (TOLD, "failed", "failed", "slow_down"),
    (CREATED + TOLD, "cancelled", "cancelled", None),
    (CREATED + event("response.incomplete", response={"status": "incomplete"}), "done", "incomplete", None),
    (CREATED + event("response.completed", response={"status": "completed"}), "cancelled", "completed", None),
]


@pytest.mark.parametrize(("log", "end", "status", "code"), LOGS)
def test_a_log_says_what_became_of_its_response(log, end, status, code):
    found = orjson.loads(stored.answer_of(log, end, BEGUN))
    assert (found["status"], (found.get("error") or {}).get("code")) == (status, code)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_cursor_passes_what_is_behind_it_however_the_log_is_cut(size):
    log = b"".join(speech("openai-responses"))
    whole = log.split(b"\n\n")[:-1]
    for number in (-1, 0, 4, len(whole) - 1):
        machine = stored.Behind("resp_ours", number)
        passed = b"".join(machine.feed(log[at : at + size]) for at in range(0, len(log), size)) + machine.finish()
        assert passed.split(b"\n\n")[:-1] == whole[number + 1 :]
        assert machine.fault is None


def test_a_failure_is_told_above_any_cursor_and_one_too_high_is_a_fault():
    machine = stored.Behind("resp_ours", 9)
    assert b'"sequence_number":10' in machine.feed(CREATED + TOLD)
    machine = stored.Behind("resp_ours", 9)
    assert machine.feed(CREATED) + machine.finish() == b""
    assert isinstance(machine.fault, BadRequest)


def test_half_of_a_surrogate_pair_breaks_nothing():
    writer = stored.ResponseWriter("resp_ours", is_background=False, previous_id="")
    item = b'{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"\\ud800"}]}'
    came = b'data: {"type":"response.completed","response":{"id":"a","status":"completed","output":[%b]}}\n\n' % item
    assert item in writer.feed(came)
    assert writer.kept(b"").items == {"msg_1": item}
    assert b'"completed"' in stored.answer_of(came, "done", BEGUN)


def test_of_one_long_event_each_byte_is_looked_at_once(monkeypatch):
    looked_at, pattern = 0, stored._EVENT_END

    class Counting:
        def finditer(self, text, begin=0):
            nonlocal looked_at
            looked_at += len(text) - begin
            return pattern.finditer(text, begin)

    monkeypatch.setattr(stored, "_EVENT_END", Counting())
    machine = stored.Behind("resp_ours", 0)
    event = b'data: {"type":"a","sequence_number":1,"delta":"%b"}\r\n\r\n' % (b"a" * 100_000)
    assert b"".join(machine.feed(event[at : at + 100]) for at in range(0, len(event), 100)) == event
    assert looked_at < 2.1 * len(event)
