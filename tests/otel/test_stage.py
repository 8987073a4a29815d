"""``traced``: a span an answer, whoever leaves when, and no context left behind (observe.md F38, O5 to O7)."""

import asyncio
import gc
import importlib
import random
import re
import sys
import time
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode, set_span_in_context

from streamkit import accumulate_tool_calls, check_json, collect, decode, encode, parse_sse, pipe
from streamkit.errors import SourceFailed
from streamkit.events import ProviderFailed, StreamEnded, TextDelta
from streamkit.otel import traced
from streamkit.testing import source_of
from tests.docs.pages import ROOT
from tests.otel.spans import Spans
from tests.vectors.openai_chat import ROLE, STOP, said
from tests.vectors.vector import sse

READS = [sse(ROLE), sse(said("one")), sse(said("two")), sse(STOP, "[DONE]")]


@pytest.fixture
def spans():
    return Spans()


def reading(spans, reads=None, **values):
    """A pipe that reads and traces a stream of Chat."""
    stages = (parse_sse(), decode("openai-chat"), accumulate_tool_calls(), check_json())
    watching = traced("openai-chat", model="m", tracer=spans.tracer, **values)
    return pipe(reads if reads is not None else source_of(READS), *stages, watching)


async def test_batches_pass_as_they_are():
    batches = [[TextDelta("a")], [], [StreamEnded(clean=True)]]
    passed = [batch async for batch in traced("ollama", model="m")(source_of(batches))]
    assert all(one is other for one, other in zip(passed, batches, strict=True))


async def test_a_whole_stream_is_one_span_with_its_facts(spans):
    async with reading(spans) as stream:
        events = [event async for batch in stream for event in batch]
    assert isinstance(events[-1], StreamEnded)
    assert (spans.one.name, spans.one.status.status_code) == ("chat m", StatusCode.UNSET)
    assert spans.one.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert spans.one.attributes["gen_ai.response.time_to_first_chunk"] > 0
    assert "gen_ai.usage.input_tokens" not in spans.one.attributes


async def test_it_stands_in_front_of_an_encoder(spans):
    stages = (parse_sse(), decode("openai-chat"), accumulate_tool_calls(), check_json())
    plain = pipe(source_of(READS), *stages, encode("ollama"))
    watched = pipe(source_of(READS), *stages, traced("openai-chat", model="m", tracer=spans.tracer), encode("ollama"))
    answers = []
    for one in (plain, watched):
        async with one as chunks:
            answers.append((await collect(source_of([chunk async for chunk in chunks]), "ollama")).choices)
    assert answers[0] == answers[1]
    assert spans.counts.ended == 1


async def test_no_span_is_opened_before_the_stream_is_read(spans):
    async with reading(spans):
        assert spans.counts.started == 0
    assert spans.counts.started == 0


async def test_a_span_may_begin_when_the_request_was_sent(spans):
    started = time.time_ns() - 2_000_000_000
    async with reading(spans, started_ns=started) as stream:
        async for _ in stream:
            pass
    assert spans.one.start_time == started
    assert 2 <= spans.one.attributes["gen_ai.response.time_to_first_chunk"] < 60


async def test_the_parent_is_what_is_current_or_a_context_that_is_given(spans):
    with spans.tracer.start_as_current_span("mine") as mine:
        async with reading(spans) as stream:
            async for _ in stream:
                pass
    async with reading(spans, context=set_span_in_context(mine)) as stream:
        async for _ in stream:
            pass
    calls = [span for span in spans.ended if span.name == "chat m"]
    assert [span.parent.span_id for span in calls] == [mine.get_span_context().span_id] * 2


# -- how it ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batches", "error", "error_type"),
    [
        ([[TextDelta("a")], [StreamEnded(clean=False)]], None, "cut"),
        ([[TextDelta("a")]], None, "cut"),
        ([[ProviderFailed("server", "no")], [StreamEnded(clean=False)]], None, "error_event"),
        ([[TextDelta("a")]], SourceFailed("broke"), "SourceFailed"),
        ([], ValueError("mine"), "ValueError"),
    ],
)
async def test_what_fails_is_an_error_by_one_word(spans, batches, error, error_type):
    async def source():
        for batch in batches:
            yield batch
        if error is not None:
            raise error

    stream = traced("ollama", model="m", tracer=spans.tracer)(source())
    raised = None
    try:
        async for _ in stream:
            pass
    except (SourceFailed, ValueError) as caught:
        raised = caught
    assert raised is error
    assert spans.one.status.status_code is StatusCode.ERROR
    assert spans.one.attributes["error.type"] == error_type
    assert spans.one.attributes["gen_ai.response.finish_reasons"] == ("error",)


async def test_a_reader_that_leaves_behind_the_end_had_a_whole_answer(spans):
    stream = traced("ollama", model="m", tracer=spans.tracer)(source_of([[StreamEnded(clean=True)], []]))
    await anext(stream)
    await stream.aclose()
    assert "streamkit.ending" not in spans.one.attributes


# -- contexts (F38) ----------------------------------------------------------------------------------------------------


@contextmanager
def untouched(caplog):
    """What is current stays so, and nothing is told of a context that could not be detached."""
    before = trace.get_current_span()
    yield
    assert trace.get_current_span() is before
    assert "detach" not in caplog.text


async def test_a_span_is_not_current_for_who_reads_it(spans, caplog):
    with untouched(caplog):
        with spans.tracer.start_as_current_span("mine") as mine:
            async with reading(spans) as stream:
                async for _ in stream:
                    assert trace.get_current_span() is mine
                    with spans.tracer.start_as_current_span("inner"):
                        pass
        inner = [span for span in spans.ended if span.name == "inner"]
        assert {span.parent.span_id for span in inner} == {mine.get_span_context().span_id}


async def test_a_reader_that_breaks_off_and_closes_nothing_ends_the_span_once(spans, caplog):
    with untouched(caplog):
        stream = traced("ollama", model="m", tracer=spans.tracer)(source_of([[TextDelta("a")], [TextDelta("b")]]))
        async for _ in stream:
            break
        del stream
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert spans.counts.ended == spans.counts.started == 1
        assert spans.one.attributes["streamkit.ending"] == "closed"


async def test_a_stream_that_another_task_closes_ends_its_span_once(spans, caplog):
    with untouched(caplog):
        stream = traced("ollama", model="m", tracer=spans.tracer)(source_of([[TextDelta("a")], [TextDelta("b")]]))
        await anext(stream)
        await asyncio.create_task(stream.aclose())
        assert spans.one.attributes["streamkit.ending"] == "closed"
        assert spans.one.status.status_code is StatusCode.UNSET


async def test_a_reader_that_is_cancelled_ends_the_span_once(spans, caplog):
    with untouched(caplog):

        async def silent():
            yield READS[1]
            await asyncio.Event().wait()

        async def read():
            async with reading(spans, silent()) as stream:
                async for _ in stream:
                    pass

        task = asyncio.create_task(read())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
        assert spans.one.attributes["streamkit.ending"] == "cancelled"
        assert spans.one.status.status_code is StatusCode.UNSET


async def test_as_many_spans_end_as_begin_wherever_readers_are_cancelled(spans, caplog):
    with untouched(caplog):
        choose = random.Random(20261122)

        async def slow():
            for read in READS:
                await asyncio.sleep(0)
                yield read

        async def read():
            async with reading(spans, slow()) as stream:
                async for _ in stream:
                    await asyncio.sleep(0)

        for _ in range(200):
            task = asyncio.create_task(read())
            for _ in range(choose.randrange(12)):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
        assert spans.counts.started == spans.counts.ended > 100


def test_no_span_is_made_current_anywhere():
    making = re.compile(r"start_as_current_span|use_span|\battach\(")
    found = [path for path in (ROOT / "streamkit").rglob("*.py") if making.search(path.read_text("utf-8"))]
    assert found == []


def test_without_the_extra_who_asks_for_the_stage_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in [name for name in sys.modules if name.startswith(("streamkit.otel.", "opentelemetry."))]:
        monkeypatch.delitem(sys.modules, name)
    package = importlib.import_module("streamkit.otel")
    with pytest.raises(ImportError, match=r"streamkit-llm\[otel\]"):
        _ = package.traced
    with pytest.raises(AttributeError, match="has no 'nothing'"):
        _ = package.nothing
