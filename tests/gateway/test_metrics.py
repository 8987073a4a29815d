"""What is counted at /metrics: how attempts went, calls by verdict, repairs and losses by kind, and time."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import orjson
import pytest
from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from streamkit.events import ResponseFinished, UsageReported
from streamkit.gateway.metrics import BUCKETS, MULTIPROCESS_DIR, Metrics, exposition
from streamkit.gateway.record import Attempt, Record
from streamkit.report import StreamReport
from streamkit.resume import MemoryStore
from streamkit.web.observers import OutputTimes
from streamkit.web.resume.settings import ResumeCounts
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Upstream
from tests.gateway.running import behind, config_of, gateway, in_turn, leg, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import FAULTS, as_asked, good, status, whole
from tests.web.raw_client import RawClient
from tests.web.serving import eventually


def series(text):
    """Every sample of an exposition but those of buckets: name and labels to value."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


def of(metrics, name, *labels):
    """The series of one name that counted anything: the values of these labels to its count."""
    found = {}
    for (known, *pairs), value in series(exposition(metrics)).items():
        if known == f"streamkit_{name}":
            by_name = dict(pairs)
            found[tuple(by_name[label] for label in labels) if len(labels) > 1 else by_name[labels[0]]] = value
    return {labels: value for labels, value in found.items() if value}


def attempt(upstream="one", outcome="success", *, asked_losses=(), asked_repairs=(), **counts):
    answer, asked = StreamReport(), StreamReport()
    for name, found in counts.items():
        getattr(answer, name).update(found)
    asked.losses.update(asked_losses)
    asked.repairs.update(asked_repairs)
    return Attempt(upstream, outcome, 0.1, "", answer, asked)


def observed(*records):
    metrics = Metrics()
    for record in records:
        metrics.observe(record)
    return metrics


def record(**values):
    usual = {"client": "anthropic", "model": "m", "route": "r", "status": 200, "ending": "whole"}
    return Record("req_1", "POST", "/v1/messages", **{**usual, **values})


# -- before anything happened ------------------------------------------------------------------------------------------


def zeros(config):
    metrics = Metrics()
    metrics.begin(config)
    found = Counter()
    for (name, *_), value in series(exposition(metrics)).items():
        assert value == 0
        if name.endswith("_total"):
            found[name.removeprefix("streamkit_").removesuffix("_total")] += 1
    return found


def at_nobody(name):
    return Upstream(name=name, dialect="openai-chat", base_url="http://127.0.0.1:1/v1", auth="none")


def test_what_the_configuration_knows_of_begins_with_zero():
    config = config_of([at_nobody("one"), at_nobody("two")])
    begun = {
        "attempts": 13,
        "tool_calls": 7,
        "outputs": 7,
        "usage_unknown": 5,
        "stalls": 1,
        "tokens": 2,
        "upstream_rests": 1,
    }
    kept = {"not_resumable": 3, "logs_lost": 5}
    recorder = {"recorder_files": 1, "recorder_bytes": 1, "recorder_dropped": 1}
    assert zeros(config) == {**{name: 2 * count for name, count in begun.items()}, **kept, **recorder}
    unkept = evolve(config, resume=evolve(config.resume, store="off"))
    assert not zeros(unkept).keys() & kept.keys()


async def test_the_first_event_is_an_increase_for_whoever_asked_before():
    async with behind(FAULTS["reset mid-line"]("openai-chat")) as running:
        before = series(exposition(running.metrics))
        await running.asked("openai-chat")
        await running.outcomes()
        failed = "streamkit_attempts_total", ("outcome", "broken"), ("upstream", "one")
        assert (before[failed], series(exposition(running.metrics))[failed]) == (0, 1)


# -- a record ----------------------------------------------------------------------------------------------------------


def test_verdicts_repairs_and_losses_are_counted_for_the_leg_that_had_them():
    first = attempt("one", "cut", verdicts={"truncated": 1}, repairs={"index_missing": 312})
    second = attempt(
        "two",
        verdicts={"complete": 2, "empty": 1},
        repairs={"id_missing": 2},
        losses={"call_id": 3},
        asked_losses={"parameter": 4},
        asked_repairs={"turns_joined": 5},
    )
    metrics = observed(record(attempts=[first, second]))
    assert of(metrics, "tool_calls_total", "upstream", "verdict") == {
        ("one", "truncated"): 1,
        ("two", "complete"): 2,
        ("two", "empty"): 1,
    }
    assert of(metrics, "repairs_total", "upstream", "kind") == {
        ("one", "index_missing"): 312,
        ("two", "id_missing"): 2,
        ("two", "turns_joined"): 5,
    }
    assert of(metrics, "losses_total", "upstream", "client", "kind", "way") == {
        ("two", "anthropic", "call_id", "answer"): 3,
        ("two", "anthropic", "parameter", "request"): 4,
    }


def test_times_and_keep_alives_are_counted_where_there_are_any():
    metrics = observed(record(seconds=2.0, first_byte_s=0.3, keep_alives=4), record(seconds=1.0))
    assert of(metrics, "request_seconds_sum", "client", "route", "ending") == {("anthropic", "r", "whole"): 3.0}
    assert of(metrics, "request_seconds_count", "client", "route", "ending") == {("anthropic", "r", "whole"): 2}
    assert of(metrics, "first_byte_seconds_sum", "client", "route") == {("anthropic", "r"): 0.3}
    assert of(metrics, "first_byte_seconds_count", "client", "route") == {("anthropic", "r"): 1}
    assert of(metrics, "keep_alives_total", "client") == {"anthropic": 4}
    assert f'le="{BUCKETS[-1]:.1f}"' in exposition(metrics).decode()


def test_what_became_of_answers_that_are_kept_is_counted_once_however_often_it_is_told():
    metrics, counts, store = Metrics(), ResumeCounts(), MemoryStore()
    counts.resumes["resumed"] += 1
    for _ in range(2):
        metrics.answers_kept(counts, store)
    counts.resumes["resumed"] += 1
    counts.not_resumable["slow"] += 1
    store.lost["full"] += 3
    store.held_bytes = 7
    metrics.answers_kept(counts, store)
    assert of(metrics, "resumes_total", "result") == {"resumed": 2}
    assert of(metrics, "not_resumable_total", "why") == {"slow": 1}
    assert of(metrics, "logs_lost_total", "why") == {"full": 3}
    found = series(exposition(metrics))
    gauges = ("logs_live", "logs_kept", "log_bytes", "log_behind_bytes", "log_behind_seconds")
    assert [found[f"streamkit_{name}",] for name in gauges] == [0, 0, 7, 0, 0]


def test_a_store_elsewhere_is_counted_with_what_it_says_of_itself():
    store = SimpleNamespace(behind_bytes=5, behind_s=0.25, live=1, lost=Counter(behind=1), errors=Counter(timeout=2))
    metrics = Metrics()
    metrics.answers_kept(ResumeCounts(), store)
    found = series(exposition(metrics))
    assert [found[f"streamkit_{name}",] for name in ("logs_live", "log_behind_bytes", "log_behind_seconds")] == [
        1,
        5,
        0.25,
    ]
    assert of(metrics, "store_errors_total", "kind") == {"timeout": 2}
    assert of(metrics, "logs_lost_total", "why") == {"behind": 1}


def test_what_is_recorded_is_counted_as_it_grows():
    recorder = SimpleNamespace(files=2, bytes=100, dropped=0, unrecorded=Counter(disk_error=1))
    metrics = Metrics()
    metrics.recorded(recorder)
    recorder.files, recorder.bytes, recorder.dropped = 3, 150, 7
    recorder.unrecorded["directory_full"] = 2
    for _ in range(2):
        metrics.recorded(recorder)
    found = series(exposition(metrics))
    assert [found[f"streamkit_recorder_{name}_total",] for name in ("files", "bytes", "dropped")] == [3, 150, 7]
    assert of(metrics, "recorder_unrecorded_total", "why") == {"disk_error": 1, "directory_full": 2}


def test_a_client_that_is_none_of_ours_has_a_label_too():
    assert of(observed(record(client="")), "requests_total", "client") == {"_none": 1}


def test_two_gateways_in_a_process_do_not_count_together():
    one, two = Metrics(), Metrics()
    one.observe(record())
    assert of(one, "requests_total", "client") == {"anthropic": 1}
    assert not of(two, "requests_total", "client")


SERIES = """
    requests failed_attempts resumes not_resumable logs_live logs_kept logs_lost log_bytes log_behind_bytes
    log_behind_seconds store_errors attempts tool_calls outputs repairs request_repairs losses keep_alives
    request_seconds first_byte_seconds attempt_seconds first_output_seconds request_first_output_seconds
    output_gap_seconds output_tokens_per_second overhead_seconds tokens usage_unknown stalls stops
    tool_searches tool_search_tokens_saved
    upstreams_resting upstream_rests streams_active sockets_open recorder_files recorder_bytes recorder_dropped recorder_unrecorded
"""


def test_nothing_else_is_counted_and_without_a_process_of_its_own_there_is_nothing():
    """What a series is called belongs to its readers: a new one is a decision, and stands in the guide."""
    names = {family.name for family in text_string_to_metric_families(exposition(Metrics()).decode())}
    assert names == {f"streamkit_{name}" for name in SERIES.split()}
    assert exposition(None) == b""


#: A worker of several; what it counts stays when it is gone.
WORKER = """
from streamkit.gateway.metrics import Metrics
from streamkit.gateway.record import Record
metrics = Metrics()
metrics.observe(Record("req_1", "POST", "/", client="ollama", status=200, ending="whole", seconds=1.0))
metrics.active(1)
metrics.upstreams_rest({("one", "refused"): 2, ("two", "keys"): 0}, {"one": 5})
"""
#: Whoever serves /metrics and /readyz has no counts of its own.
READER = """
import sys
from streamkit.gateway.metrics import exposition, resting
sys.stdout.buffer.write(exposition(None))
print(*resting(None), file=sys.stderr)
"""


def test_several_workers_are_added_up(tmp_path):
    env = {**os.environ, MULTIPROCESS_DIR: str(tmp_path)}
    for _ in range(3):
        subprocess.run([sys.executable, "-c", WORKER], env=env, check=True)
    done = subprocess.run([sys.executable, "-c", READER], env=env, check=True, capture_output=True)
    found, text = series(done.stdout), done.stdout
    assert done.stderr == b"one rests: refused (6)\n"
    assert found["streamkit_upstream_rests_total", ("upstream", "one")] == 15
    labels = (("client", "ollama"), ("ending", "whole"), ("route", "_other"), ("status", "200"))
    assert found["streamkit_requests_total", *labels] == 3
    times = (("client", "ollama"), ("ending", "whole"), ("route", "_other"))
    assert found["streamkit_request_seconds_sum", *times] == 3.0
    assert exposition(Metrics()) != text  # this process is none of them


# -- a gateway ---------------------------------------------------------------------------------------------------------


def delta(**members):
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + orjson.dumps({**chunk, "choices": [{"index": 0, **members}]}) + b"\n\n"


def calls(*fragments):
    return delta(delta={"tool_calls": list(fragments)}, finish_reason=None)


#: Two calls at one index, and a third without any: what providers do (quirks.md R1, R2).
BROKEN_INDEX = [
    calls({"index": 0, "id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}),
    calls(
        {"index": 0, "id": "b", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bergen"}'}}
    ),
    calls({"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city":'}}),
    delta(delta={}, finish_reason="tool_calls"),
    b"data: [DONE]\n\n",
]


async def test_an_upstream_that_breaks_the_index_is_counted_each_time():
    async with behind(good("openai-chat", BROKEN_INDEX)) as running:
        for _ in range(3):
            assert (await running.asked("anthropic", tools=True)).status == 200
        assert await running.outcomes() == {("one", "success"): 3}
        repairs = of(running.metrics, "repairs_total", "upstream", "kind")
        assert repairs["one", "index_reused"] == repairs["one", "index_missing"] == 3
        assert of(running.metrics, "tool_calls_total", "upstream", "verdict") == {
            ("one", "complete"): 6,
            ("one", "truncated"): 3,
        }


async def test_a_conforming_answer_has_no_repairs():
    async with behind(as_asked("openai-chat")) as running:
        for stream in (True, False):
            await running.asked("anthropic", stream=stream)
        await running.outcomes()
        assert not of(running.metrics, "repairs_total", "kind")


def text(word):
    return delta(delta={"content": word}, finish_reason=None)


USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
#: A ping first, which is no output, then five reads of which three are.
PACED = [
    b": ping\n\n",
    delta(delta={"role": "assistant", "content": ""}, finish_reason=None),
    text("a"),
    text("b"),
    text("c"),
    delta(delta={}, finish_reason="stop"),
    b"data: " + orjson.dumps({"id": "c", "model": "m", "choices": [], "usage": USAGE}) + b"\n\n",
    b"data: [DONE]\n\n",
]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat"])
async def test_tokens_stops_and_the_pace_of_a_stream_are_counted(client):
    gap_s = 0.03
    evil = EvilUpstream(good("openai-chat", PACED, delay_s=gap_s))
    async with (
        evil,
        gateway(config_of([upstream_at(evil, "openai-chat")], server={"stall_report_s": gap_s / 2})) as running,
    ):
        await running.asked(client)
        await running.outcomes()
        metrics = running.metrics
        found = of(metrics, "tokens_total", "upstream", "type")
        assert found == {("one", "input"): 9, ("one", "input_cached"): 3, ("one", "output"): 4}
        assert of(metrics, "stops_total", "upstream", "reason") == {("one", "stop"): 1}
        assert not of(metrics, "usage_unknown_total", "upstream", "ending")
        assert of(metrics, "output_gap_seconds_count", "upstream") == {"one": 2}, "outputs but one"
        assert of(metrics, "output_gap_seconds_sum", "upstream")["one"] >= 2 * gap_s * 0.9
        assert of(metrics, "stalls_total", "upstream") == {"one": 2}
        assert of(metrics, "output_tokens_per_second_count", "upstream") == {"one": 1}
        assert of(metrics, "first_output_seconds_sum", "upstream")["one"] >= 2 * gap_s * 0.9, "a ping is no output"
        assert of(metrics, "request_first_output_seconds_count", "client") == {client: 1}
        assert 0 < of(metrics, "overhead_seconds_sum", "client")[client] < 2 * gap_s, "the upstream's time is none"
        assert of(metrics, "attempt_seconds_count", "upstream", "outcome") == {("one", "success"): 1}


def test_the_line_of_a_stream_says_how_it_went():
    times, report = OutputTimes(stall_s=1.0), StreamReport()
    for at in (10.0, 10.5, 12.5, 13.0):
        times.read(report, at)
        report.frames += 1
        report.has_output = report.spoken = True
    times.settle(report)
    report.usage, report.stops = UsageReported(7, output_total=31), (ResponseFinished("stop"),)
    went = Attempt("one", "success", 4.0, "", report, StreamReport(), started=9.0, output_times=times)
    line = record(attempts=[went]).document()
    figures = ("first_output_s", "greatest_gap_s", "median_gap_s", "stalls", "output_tokens_per_s", "stop", "usage")
    assert [line[name] for name in figures] == [1.0, 2.0, 0.5, 1, 10.0, "stop", {"input": 7, "output": 31}]


async def test_time_with_an_upstream_that_was_given_up_adds_to_the_requests_first_output_alone():
    async with in_turn(
        leg(FAULTS["silence before headers"]("openai-chat"), timeouts=Timeouts(first_byte_s=0.2)),
        good("openai-chat", PACED),
    ) as running:
        await running.asked("anthropic")
        assert await running.outcomes() == {("one", "first_byte_timeout"): 1, ("two", "success"): 1}
        assert of(running.metrics, "request_first_output_seconds_sum", "client")["anthropic"] > 0.2
        first = of(running.metrics, "first_output_seconds_sum", "upstream")
        assert set(first) == {"two"}
        assert first["two"] < 0.2


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_without_token_counts_is_counted_as_such(stream):
    async with behind(
        good("openai-chat", [text("a"), delta(delta={}, finish_reason="stop"), b"data: [DONE]\n\n"])
    ) as running:
        await running.asked("anthropic", stream=stream)
        await running.outcomes()
        assert of(running.metrics, "usage_unknown_total", "upstream", "ending") == {("one", "whole"): 1}
        assert not of(running.metrics, "tokens_total", "upstream", "type")


async def test_a_whole_answer_has_no_pace():
    async with behind(as_asked("openai-chat")) as running:
        await running.asked("anthropic", stream=False)
        await running.outcomes()
        found = series(exposition(running.metrics))
        timed = ("first_output", "request_first_output", "output_gap", "overhead", "output_tokens_per_second")
        assert not [name for name, *_ in found if name.removeprefix("streamkit_").startswith(timed)]
        assert of(running.metrics, "stops_total", "reason") == {"tool_calls": 1}


async def test_losses_are_counted_by_the_way_on_which_they_were_lost():
    async with behind(as_asked("openai-chat")) as running:
        await running.asked("ollama", {"options": {"top_k": 5}})
        await running.outcomes()
        losses = of(running.metrics, "losses_total", "upstream", "client", "kind", "way")
        assert losses["one", "ollama", "parameter", "request"] == 1
        assert losses["one", "ollama", "call_id", "answer"] == 1


async def test_each_try_with_an_upstream_is_counted_and_each_request_once():
    async with in_turn(status(503), as_asked("openai-chat")) as running:
        for client in ("anthropic", "gemini"):
            await running.asked(client)
        await running.asked("anthropic", {"messages": 7})
        assert await running.outcomes() == {("one", "http_503"): 2, ("two", "success"): 2}
        assert of(running.metrics, "requests_total", "client", "route", "status", "ending") == {
            ("anthropic", "m", "200", "whole"): 1,
            ("gemini", "m", "200", "whole"): 1,
            ("anthropic", "_other", "400", "error"): 1,
        }


@pytest.mark.parametrize(
    ("script", "stream", "outcome", "status_and_ending"),
    [
        (FAULTS["reset mid-line"]("openai-chat"), True, "broken", ("200", "broken")),
        (FAULTS["error mid-stream"]("openai-chat"), True, "error_event", ("200", "broken")),
        (FAULTS["silence mid-stream"]("openai-chat"), True, "idle_timeout", ("200", "broken")),
        (FAULTS["200 with HTML"]("openai-chat"), True, "not_this_dialect", ("502", "error")),
        (FAULTS["status 404"]("openai-chat"), False, "http_404", ("404", "error")),
        (whole("openai-chat", b'{"choices":[]}'), False, "cut", ("502", "error")),
    ],
    ids=["reset", "error", "silence", "a page", "404", "no end"],
)
async def test_how_a_leg_failed_and_what_the_client_saw(script, stream, outcome, status_and_ending):
    async with behind(script) as running:
        await running.asked("openai-chat", stream=stream)
        assert await running.outcomes() == {("one", outcome): 1}
        assert of(running.metrics, "requests_total", "status", "ending") == {status_and_ending: 1}


async def test_a_client_that_leaves_is_counted_and_answers_under_way_are_shown():
    async with behind(FAULTS["silence mid-stream"]("openai-chat")) as running:
        async with running.client("anthropic") as client:
            await client.read_until(b"message_start")
            assert running.counted("streams_active") == 1
        await eventually(lambda: running.counted("streams_active") == 0)
        assert of(running.metrics, "requests_total", "status", "ending") == {("200", "client left"): 1}
        assert await running.outcomes() == {("one", "client_left"): 1}


async def test_a_client_that_leaves_before_its_request_is_whole_is_counted_as_one_that_left():
    async with behind(as_asked("openai-chat")) as running:
        async with RawClient(running.url) as client:
            await client.send_bytes(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
            await eventually(lambda: running.counted("streams_active") == 1)
        await eventually(lambda: running.counted("streams_active") == 0)
        assert of(running.metrics, "requests_total", "status", "ending") == {("499", "client left"): 1}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("fault", ["silence before headers", "silence mid-stream"])
async def test_a_leg_that_the_gateways_own_end_cuts_is_no_clients_departure(fault, stream):
    patient = Timeouts(first_byte_s=20, idle_s=20)
    async with EvilUpstream(FAULTS[fault]("openai-chat", whole=not stream)) as evil:
        config = config_of([upstream_at(evil, "openai-chat", timeouts=patient)], server={"grace_s": 0.1})
        async with gateway(config) as running:
            answer = asyncio.create_task(running.asked("anthropic", stream=stream))
            await evil.request(0)
        assert b"shutting down" in (await answer).body
        assert await running.outcomes() == {("one", "shut_down"): 1}


async def test_a_leg_that_fails_of_the_gateways_own_fault_says_so(monkeypatch):
    def broken(*_values, **_named):
        raise RuntimeError("a bug")

    monkeypatch.setattr("streamkit.web.opening.encode_request", broken)
    async with behind(as_asked("openai-chat")) as running:
        assert (await running.asked("anthropic")).status == 500
        assert await running.outcomes() == {("one", "failed"): 1}


async def test_probes_are_not_counted():
    async with behind(as_asked("openai-chat")) as running:
        for path in ("/healthz", "/readyz"):
            await running.get(path)
        assert not of(running.metrics, "requests_total", "client")
