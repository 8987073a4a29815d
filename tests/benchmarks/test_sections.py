"""Each section runs from end to end on inputs of a few events, proves what it times, and its tables can be written.

The times mean nothing here; the figures of memory do, within wide bounds.
"""

from __future__ import annotations

import json
from statistics import median

import pytest

from benchmarks import goals, growth, inputs, memory, oracle, pairs, stages, streams, tables, timing
from benchmarks.mix import DIALECTS as DRAWN
from benchmarks.mix import SHAPES, mix
from benchmarks.reads import CUTS, KIB
from benchmarks.recipe import PLACES
from streamkit.dialects import DIALECTS


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(timing, "LEAST_SECONDS", 0.0)


def told(name, found):
    return "\n".join(tables.SECTIONS[name]({name: found}))


def test_the_recipe_and_framing():
    measures = {"recipe": stages.measure_recipe, "own": stages.measure_own, "framing": stages.measure_framing}
    found = {name: measure(1, 40) for name, measure in measures.items()}
    assert told("stages", found).count("\n") > 40
    assert {row["mode"] for row in found["recipe"]} == {"joined", "unjoined"}
    assert len(found["own"]) == len(stages.OWN) * len(CUTS) * (len(PLACES) + len(stages.STAGE))
    measured = {one.goal.name for one in goals.judged({"stages": found}) if one.measured is not None}
    assert "Chat to Anthropic at one event a read: text" in measured
    assert "A stage that passes each batch on, at one event a read" in measured
    assert "SSE parsing at 64 KiB reads" in measured


def test_streams_as_they_are():
    found = streams.measure(1, 2)
    assert {row["pair"] for row in found} == {" → ".join(pair) for pair in streams.PAIRS}
    assert goals.three_events({"streams": found}) > 0
    assert told("streams", found).count("| seeded mix |") == 6


def test_a_stream_that_loses_something_is_not_timed(monkeypatch):
    monkeypatch.setattr(streams, "transcoded", lambda *_: [b'event: message_stop\ndata: {"type":"message_stop"}\n\n'])
    with pytest.raises(oracle.Wrong, match="differs"):
        streams.prove(mix("openai-chat")[:1], "anthropic")


@pytest.mark.parametrize("dialect", DRAWN)
def test_the_mix_looks_like_the_recordings(dialect):
    """What it is drawn from is the distribution: its median stream and event are within a factor of two."""
    wanted = json.loads(SHAPES.read_text())[dialect]
    drawn = mix(dialect)
    assert drawn == mix(dialect)
    sizes = [len(payload) for stream in drawn for payload in stream.payloads]
    for name, found in (("events", [stream.events for stream in drawn]), ("payload_bytes", sizes)):
        assert wanted[name][5] / 2.1 <= median(found) <= 2.1 * wanted[name][5], name


def test_recordings_are_read_by_the_reader_of_their_folder(tmp_path):
    (tmp_path / "read.py").write_text(
        "from types import SimpleNamespace as Stream\n"
        "def streams():\n"
        "    for body in (b'data: {}\\r\\n\\r\\ndata: [DONE]\\n\\n', b'data: no JSON\\n\\n'):\n"
        "        yield Stream(framing='sse', dialect='gemini', body=body)\n"
    )
    (stream,) = streams.recordings(tmp_path / "read.py")["gemini"]
    assert (stream.body, stream.payloads) == (b"data: {}\n\ndata: [DONE]\n\n", (b"{}",))


def test_pairs():
    found = pairs.measure(1, 40)
    assert len(found["pairs"]) == len(DIALECTS) ** 2
    assert "`gemini`" in told("pairs", found)
    assert goals.slowest_pair({"pairs": found}) > 0


def test_growth(monkeypatch):
    monkeypatch.setattr(growth, "TEXT_EVENTS", (10, 20, 40))
    monkeypatch.setattr(growth, "ARGUMENTS", (600, 1_200, 2_400))
    monkeypatch.setattr(growth, "LINES", (2 * KIB, 4 * KIB, 8 * KIB))
    found = growth.measure(1)
    assert "joined" in told("growth", found)
    assert [line["name"] for line in found] == ["text", "text", "arguments", "arguments", "one line in 1 KiB reads"]


def test_a_recipe_that_loses_something_is_not_timed(monkeypatch):
    monkeypatch.setattr(stages, "transcoded", lambda *_: [b'event: message_stop\ndata: {"type":"message_stop"}\n\n'])
    with pytest.raises(oracle.Wrong, match="text differs"):
        stages.measure_recipe(1, 40)


def test_a_pair_that_loses_something_is_not_timed(monkeypatch):
    real = pairs.transcoded
    monkeypatch.setattr(
        pairs,
        "transcoded",
        lambda reads, *names: [chunk.replace(b"tool_3", b"tool_4") for chunk in real(reads, *names)],
    )
    with pytest.raises(oracle.Wrong, match="calls are"):
        pairs.measure(1, 40)


def test_memory_of_idle_pipes_is_counted_and_given_back():
    entered, waiting = memory.idle(20)
    assert entered["pipes"] == 20
    assert 1 * KIB < entered["bytes_per_pipe"] <= waiting["bytes_per_pipe"] < 64 * KIB


def test_the_peak_is_of_the_task_and_not_of_its_source():
    kept = b"x" * 3 * 2**20
    assert memory.peak(lambda: len(kept)) < 64 * KIB
    assert memory.peak(lambda: bytes(2**20)) >= 2**20


def test_a_long_stream_is_as_long_as_it_says_and_says_its_text_once_a_block():
    stream = memory.long_stream(3 * 2**20)
    body = b"".join(stream.reads())
    assert 2 * 2**20 < len(body) < 5 * 2**20
    assert oracle.read(inputs.CHAT, body).stop == "stop"


def test_memory_over_a_stream_is_flat():
    short, long = (memory.flat(size)["peak_bytes"] for size in (2 * 2**20, 4 * 2**20))
    assert long < 1.5 * short
