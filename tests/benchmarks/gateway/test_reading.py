"""The clients' own reading: which byte came when, and whether it was all."""

from __future__ import annotations

import pytest

from benchmarks.gateway.reading import Reads, clumped, quantiles_ms
from benchmarks.gateway.script import Script, fault_in
from benchmarks.gateway.upstream import _HEAD, _ROLE, _delta, _ending

MS = 1_000_000


def said(script, due_ns=0):
    """A stream as the upstream writes it: its chunks."""
    deltas = [
        _delta(f'{{"content":"@{number}:{due_ns}@{script.prose(number)}"}}', number) for number in range(script.events)
    ]
    return [_HEAD, _ROLE, *deltas, _ending(script.events)]


def read(chunks, every_ns=MS):
    return Reads([(number * every_ns, chunk) for number, chunk in enumerate(chunks)])


def test_a_script_is_its_name():
    script = Script(id="x-1", events=7, gap_us=100_000, chars=30)
    assert Script.named(str(script)) == script
    assert Script.named(f"openai/{script}") == script


def test_each_event_came_with_its_last_byte():
    script = Script(events=3)
    answer = read(said(script)).answer("openai-chat", script)
    assert (answer.status, answer.fault) == (200, "")
    assert [arrival.at_ns // MS for arrival in answer.arrivals] == [2, 3, 4]
    assert (answer.first_ns, answer.gaps_ns) == (MS, [MS, MS])


@pytest.mark.parametrize("size", [1, 7, 100])
def test_reads_may_cut_anywhere(size):
    script = Script(events=3)
    whole = b"".join(said(script))
    reads = read([whole[at : at + size] for at in range(0, len(whole), size)], every_ns=1)
    answer = reads.answer("openai-chat", script)
    assert answer.fault == ""
    for arrival in answer.arrivals:  # the read that ends or has the blank line behind the event
        assert b"\n\n" in b"".join(data for _, data in reads.reads[arrival.at_ns - 1 : arrival.at_ns + 1])


def test_events_that_came_together_are_clumped():
    script = Script(events=4)
    head, role, *deltas, end = said(script)
    answer = Reads([(0, head + role), (5 * MS, deltas[0]), (9 * MS, b"".join(deltas[1:]) + end)])
    assert clumped([answer.answer("openai-chat", script)]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda chunks: chunks[:-1], "it broke off"),
        (lambda chunks: chunks[:3] + chunks[4:], "2 deltas of 3, or in another order"),
        (lambda chunks: [*chunks[:2], chunks[3], chunks[2], *chunks[4:]], "3 deltas of 3, or in another order"),
        (lambda chunks: [chunks[0].replace(b"200", b"503"), *chunks[1:]], "status 503"),
        (lambda chunks: [chunk.replace(b"[DONE]", b'{"a":1}') for chunk in chunks], "not to be read"),
        (lambda chunks: [], "nothing came"),
    ],
)
def test_what_is_not_whole_is_a_fault(spoil, fault):
    script = Script(events=3)
    assert fault in read(spoil(said(script))).answer("openai-chat", script).fault


def test_another_text_is_a_fault():
    script = Script(events=2)
    body = b'data: {"choices":[{"delta":{"content":"@0:1@x@1:2@y"}}]}\n\ndata: [DONE]\n\n'
    assert fault_in(body, "openai-chat", script) == "another text"
    told = body.replace(b"@x@", f"@{script.prose(0)}@".encode()).replace(b"@y", f"@{script.prose(1)}".encode())
    assert fault_in(told, "openai-chat", script) == ""
    assert fault_in(told.replace(b"[DONE]", b""), "openai-chat", script) != ""


def test_quantiles_are_values_that_were_seen():
    assert quantiles_ms(range(0, 101 * MS, MS)) == {"p50": 50, "p90": 90, "p99": 99, "max": 100, "count": 101}
    assert quantiles_ms([]) == {}
