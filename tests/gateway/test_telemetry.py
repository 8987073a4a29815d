"""What OpenTelemetry is told of a gateway: one SERVER span a request, one CLIENT span an attempt (observe.md O2 to O11)."""

import asyncio
import json
import logging
import random
import re
import subprocess
import sys
from contextlib import asynccontextmanager

import anthropic
import orjson
import pytest
from aiohttp import ClientSession
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Decision, Sampler, StaticSampler
from opentelemetry.trace import SpanKind, StatusCode, set_tracer_provider

from streamkit.gateway import config
from streamkit.gateway.config_file import parse_config
from streamkit.gateway.telemetry import Telemetry
from streamkit.otel.conventions import CONVENTIONS
from streamkit.otel.providers import Providers
from streamkit.toml.findings import ConfigError
from streamkit.web.source import Timeouts
from tests.gateway.running import asking, behind, in_turn, leg, upstream_at
from tests.otel.spans import Spans
from tests.web.faults import CALL, FAULTS, MODEL, TEXT, as_asked, good
from tests.web.raw_client import RawClient
from tests.web.serving import eventually
from tests.web.socket_upstream import events, saying, socket_upstream

PATIENT = Timeouts(connect_s=20, first_byte_s=20, idle_s=20)
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = {"traceparent": f"00-{TRACE}-{SPAN}-03"}
NO_METRICS = MeterProvider([], shutdown_on_exit=False)
CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini", "gemini-interactions"]


@pytest.fixture
def spans():
    return Spans()


@asynccontextmanager
async def traced(spans, *legs, settings=None, reader=None, **values):
    """A gateway that tells ``spans``, in front of upstreams that have time."""
    metrics = MeterProvider([reader or InMemoryMetricReader()], shutdown_on_exit=False)
    telemetry = Telemetry(settings or config.Telemetry(), Providers(spans.provider, metrics))
    async with in_turn(*legs, telemetry=telemetry, **values) as running:
        yield running


def by_kind(spans):
    """The one SERVER span, and the CLIENT spans in the order of their end."""
    (server,) = [span for span in spans.ended if span.kind is SpanKind.SERVER]
    return server, [span for span in spans.ended if span.kind is SpanKind.CLIENT]


def hexadecimal(span):
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


# -- the tree ----------------------------------------------------------------------------------------------------------


async def test_a_request_over_two_upstreams_is_three_spans(spans):
    async with traced(
        spans, FAULTS["status 500"]("openai-chat"), leg(as_asked("openai-chat"), timeouts=PATIENT)
    ) as running:
        answer = await running.asked(headers=PARENT)
        await running.outcomes()
    sent = [one.requests[0].header("traceparent") for one in (running.evils[0], running.evils[1])]
    server, (first, second) = by_kind(spans)
    assert (server.name, first.name, second.name) == ("POST /v1/chat/completions", "chat m", "chat m")
    assert (f"{server.context.trace_id:032x}", f"{server.parent.span_id:016x}") == (TRACE, SPAN)
    assert [span.parent.span_id for span in (first, second)] == [server.context.span_id] * 2
    assert sent == ["00-{}-{}-03".format(*hexadecimal(span)) for span in (first, second)]
    assert answer.headers["traceresponse"] == "00-{}-{}-03".format(*hexadecimal(server))
    assert (first.attributes["error.type"], first.status.status_code) == ("http_500", StatusCode.ERROR)
    assert "error.type" not in second.attributes
    assert [span.name for span in spans.ended if "gen_ai.usage.input_tokens" in span.attributes] == ["chat m"]
    assert second.attributes["gen_ai.usage.input_tokens"] > 0
    assert not any(name.startswith("gen_ai") for name in server.attributes)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_call_has_the_attributes_of_the_conventions(spans, client, stream):
    async with traced(spans, leg(as_asked("anthropic"), dialect="anthropic", timeouts=PATIENT)) as running:
        answer = await running.asked(client, stream=stream, tools=True)
        assert answer.status == 200
        await running.outcomes()
    server, (call,) = by_kind(spans)
    found = dict(call.attributes)
    first = {"gen_ai.response.time_to_first_chunk": found.get("gen_ai.response.time_to_first_chunk")} if stream else {}
    assert None not in first.values()
    asks_tokens = {"gen_ai.request.max_tokens": 100} if client == "anthropic" else {}
    assert found == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "m",
        "gen_ai.response.id": found["gen_ai.response.id"],
        "gen_ai.response.model": MODEL,
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 14,
        "server.address": "127.0.0.1",
        "server.port": running.evil.port,
        **({"gen_ai.request.stream": True} if stream else {}),
        **asks_tokens,
        **first,
    }
    assert server.attributes["http.response.status_code"] == 200
    assert server.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(("propagate", "state"), [(True, "a=1"), (False, None)])
async def test_an_upstream_may_be_kept_from_knowing_of_the_trace_and_never_gets_the_baggage(spans, propagate, state):
    async with traced(spans, leg(as_asked("openai-chat"), propagate_trace=propagate)) as running:
        await running.asked(headers=PARENT | {"tracestate": "a=1", "baggage": "user=me"})
    (request,) = running.evil.requests
    assert (request.header("tracestate"), request.header("baggage")) == (state, None)
    assert (request.header("traceparent") is None) is not propagate


async def test_what_is_refused_has_a_span_of_its_own_alone(spans):
    async with traced(spans, as_asked("openai-chat"), models=("m",)) as running:
        assert (await running.asked(model="other")).status == 404
        assert (await running.ask("/nowhere", body=b"{}")).status == 404
        assert (await running.get("/healthz")).status == 200
    assert [span.name for span in spans.ended] == ["POST /v1/chat/completions", "POST"]
    assert {span.status.status_code for span in spans.ended} == {StatusCode.UNSET}


async def test_no_key_that_is_pasted_as_a_model_or_into_a_path_is_told(spans):
    key = "sk-proj-abcdefgh12345678"
    async with traced(spans, as_asked("openai-chat")) as running:
        await running.asked(model=key)
        await running.ask(f"/v1/{key}", body=b"{}")
    assert len(spans.ended) == 3
    assert key not in "".join(span.to_json() for span in spans.ended)


async def test_each_message_of_a_websocket_is_a_request_of_its_own_and_its_upstream_may_be_one(spans):
    async with socket_upstream(saying(events())) as sockets:
        one = upstream_at(sockets, "openai-responses", transport="websocket", timeouts=PATIENT)
        async with traced(spans, one) as running, ClientSession() as session:
            async with session.ws_connect(f"{running.url}/v1/responses", headers=PARENT) as ws:
                for _ in range(2):
                    await ws.send_json({"type": "response.create", "model": "m", "input": "hi"})
                    while (await ws.receive_json())["type"] != "response.completed":
                        pass
            await eventually(lambda: spans.counts.ended == spans.counts.started == 5)
        sent = [headers["traceparent"] for headers in sockets.headers]
    servers = {span.context.span_id for span in spans.ended if span.kind is SpanKind.SERVER}
    calls = [span for span in spans.ended if span.kind is SpanKind.CLIENT]
    assert {f"{span.context.trace_id:032x}" for span in spans.ended} == {TRACE}
    assert (len(servers), len({call.parent.span_id for call in calls} & servers)) == (3, 2)
    assert sent == ["00-{}-{}-03".format(*hexadecimal(call)) for call in calls]


# -- how it ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("fault", "outcome", "server_fails"),
    [
        ("refused", "refused", True),
        ("status 429", "http_429", False),
        ("status 500", "http_500", True),
        ("200 with HTML", "not_this_dialect", True),
        ("200 with an error first", "error_event", True),
        ("reset mid-line", "broken", True),
        ("truncated chunked body", "broken", True),
        ("silence before headers", "first_byte_timeout", True),
        ("silence mid-stream", "idle_timeout", True),
    ],
)
async def test_what_fails_is_an_error_by_the_word_of_its_outcome(spans, fault, outcome, server_fails, stream):
    hasty = Timeouts(connect_s=0.2, first_byte_s=0.2, idle_s=0.2)
    async with traced(spans, leg(FAULTS[fault]("openai-chat", whole=not stream), timeouts=hasty)) as running:
        await running.asked(stream=stream)
        await running.outcomes()
    server, (call,) = by_kind(spans)
    assert (call.status.status_code, call.attributes["error.type"]) == (StatusCode.ERROR, outcome)
    assert call.attributes["gen_ai.response.finish_reasons"] == ("error",)
    assert "gen_ai.usage.input_tokens" not in call.attributes
    assert server.attributes.get("error.type") == (outcome if server_fails else None)
    assert (server.status.status_code is StatusCode.ERROR) == server_fails
    assert spans.counts.started == spans.counts.ended == 2


async def test_a_client_that_left_is_no_error(spans, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    async with traced(spans, leg(FAULTS["silence mid-stream"]("openai-chat"), timeouts=PATIENT)) as running:
        async with running.client("openai-chat") as leaver:
            await leaver.read_headers()
            leaver.leave("rst")
        await eventually(lambda: spans.counts.ended == 2)
        await running.outcomes()
    server, (call,) = by_kind(spans)
    for span in (server, call):
        assert span.status.status_code is StatusCode.UNSET
        assert "error.type" not in span.attributes
        assert span.attributes["streamkit.ending"] == "client_left"
    assert call.attributes["gen_ai.response.finish_reasons"] == ("error",)
    (line,) = [each.fields for each in caplog.records if each.message == "request"]
    assert (line["trace_id"], line["span_id"]) == hexadecimal(server)


async def test_a_stream_that_the_gateway_ends_is_an_error(spans):
    async with traced(
        spans, leg(FAULTS["silence mid-stream"]("openai-chat"), timeouts=PATIENT), server={"grace_s": 0.05}
    ) as running:
        path, body = asking("openai-chat")
        client = RawClient(running.url)
        await client.__aenter__()
        await client.send("POST", path, body=orjson.dumps(body))
        await client.read_headers()
    await client.__aexit__(None, None, None)
    _server, (call,) = by_kind(spans)
    assert (call.status.status_code, call.attributes["error.type"]) == (StatusCode.ERROR, "shut_down")


async def test_as_many_spans_end_as_begin_wherever_clients_leave(spans):
    choose = random.Random(20261122)
    script = good("openai-chat", delay_s=0.001)
    async with traced(spans, leg(script, timeouts=PATIENT)) as running:

        async def leave():
            async with running.client("openai-chat") as leaver:
                await asyncio.sleep(choose.random() * 0.05)
                leaver.leave("rst")

        for _ in range(20):
            await asyncio.gather(*(leave() for _ in range(10)))
        await eventually(lambda: spans.counts.started == spans.counts.ended)
        await running.outcomes()
    assert spans.counts.started == spans.counts.ended >= 200


# -- metrics -----------------------------------------------------------------------------------------------------------


def points(reader):
    """The points of each metric by its name: attributes, and how often it was recorded or what it counts."""
    read = reader.get_metrics_data()
    metrics = [] if read is None else read.resource_metrics[0].scope_metrics[0].metrics
    return {
        metric.name: [(dict(point.attributes), getattr(point, "count", None)) for point in metric.data.data_points]
        for metric in metrics
    }


async def measured(spans, script, *, settings=None, **how):
    """The points of a request, and how many gaps between outputs the gateway itself counted."""
    reader = InMemoryMetricReader()
    async with traced(spans, leg(script, timeouts=PATIENT), settings=settings, reader=reader) as running:
        await running.asked(**how)
        await running.outcomes()
        return points(reader), running.counted("output_gap_seconds_count")


@pytest.mark.parametrize("semconv", CONVENTIONS)
async def test_a_stream_is_recorded_once_under_the_names_of_the_table(spans, semconv):
    settings = config.Telemetry(semconv=semconv)
    found, _ = await measured(spans, good("openai-chat", delay_s=0.005), settings=settings)
    table = CONVENTIONS[semconv]
    told = {"input_total", "output_total"}  # what this upstream counts
    untold = {metric.name for metric in table.tokens if metric.count not in told} | {table.chunk_time.name}
    assert found.keys() == {metric.name for metric in table.metrics} - untold
    assert {count for series in found.values() for _, count in series} <= {1, None}


@pytest.mark.parametrize("semconv", CONVENTIONS)
async def test_each_gap_between_two_outputs_is_recorded_where_it_is_wanted(spans, semconv):
    settings = config.Telemetry(semconv=semconv, time_per_output_chunk=True)
    found, gaps = await measured(spans, good("openai-chat", delay_s=0.005), settings=settings)
    ((attributes, count),) = found[CONVENTIONS[semconv].chunk_time.name]
    assert count == gaps > 1
    assert attributes["gen_ai.request.model"] == "m"


async def test_what_only_streams_have_is_absent_for_whole_answers(spans):
    settings = config.Telemetry(time_per_output_chunk=True)
    found, _ = await measured(spans, as_asked("openai-chat"), settings=settings, stream=False)
    names = "gen_ai.client.operation.duration", "gen_ai.client.token.usage", "gen_ai.server.request.duration"
    assert found.keys() == set(names)


async def test_a_failure_has_one_word_on_its_span_and_on_its_point(spans):
    found, _ = await measured(spans, FAULTS["status 500"]("openai-chat"))
    server, (call,) = by_kind(spans)
    durations = "gen_ai.client.operation.duration", "gen_ai.server.request.duration"
    assert found.keys() == set(durations)
    for name, span in zip(durations, (call, server), strict=True):
        ((attributes, count),) = found[name]
        assert (attributes["error.type"], count) == (span.attributes["error.type"], 1) == ("http_500", 1)


async def test_a_model_that_no_route_spells_out_is_no_value_of_its_own(spans):
    found, _ = await measured(spans, as_asked("openai-chat"), model="made-up-4711")
    assert {attributes["gen_ai.request.model"] for series in found.values() for attributes, _ in series} == {"_other"}
    _, (call,) = by_kind(spans)
    assert call.attributes["gen_ai.request.model"] == "made-up-4711"


# -- what was said -----------------------------------------------------------------------------------------------------

SAID = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"


async def told(spans, script, *, upstream="openai-chat", content="on", **how):
    """What the spans of a request tell, and the answer that its client got."""
    telemetry = config.Telemetry(content=content)
    async with traced(spans, leg(script, dialect=upstream), settings=telemetry) as running:
        answer = await running.asked(**how)
        await running.outcomes()
    server, calls = by_kind(spans)
    assert not set(SAID) & set(server.attributes)
    return [
        {name: json.loads(call.attributes[name]) for name in SAID if name in call.attributes} for call in calls
    ], answer


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("upstream", ["openai-chat", "anthropic", "ollama", "bedrock"])
async def test_what_was_said_is_told_where_it_is_to(spans, upstream, stream):
    (said,), answer = await told(spans, as_asked(upstream), upstream=upstream, stream=stream, tools=True)
    assert answer.status == 200
    assert said["gen_ai.input.messages"] == [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    assert [tool["name"] for tool in said["gen_ai.tool.definitions"]] == ["weather"]
    (message,) = said["gen_ai.output.messages"]
    text, call = message["parts"]
    assert (text["content"], call["name"], call["arguments"]) == (TEXT, CALL[0], json.loads(CALL[1]))
    assert message["finish_reason"] == "tool_call"


async def test_nothing_that_was_said_is_told_by_default(spans):
    (said,), _ = await told(spans, as_asked("openai-chat"), content="off", tools=True)
    assert said == {}
    everything = "".join(span.to_json() for span in spans.ended)
    assert not [word for word in (TEXT, "Oslo", "how it is", '"hi"') if word in everything]


async def test_bytes_are_the_same_whether_or_not_it_is_told(spans):
    script = good("openai-chat")
    _, silent = await told(spans, script, content="off")
    _, spoken = await told(Spans(), script)
    assert silent.body == spoken.body


async def test_an_answer_that_breaks_has_what_came_of_it(spans):
    (said,), _ = await told(spans, FAULTS["reset mid-line"]("openai-chat"))
    (message,) = said["gen_ai.output.messages"]
    assert TEXT.startswith(message["parts"][0]["content"])
    assert message["finish_reason"] == "error"


async def test_a_request_that_is_refused_tells_nothing(spans):
    calls, answer = await told(spans, as_asked("openai-chat"), model="")
    assert (answer.status, calls) == (400, [])


async def test_a_fault_of_what_is_told_is_none_of_the_answers(spans, monkeypatch, caplog):
    monkeypatch.setattr("streamkit.otel.content.AnswerContent.feed", lambda *_: 1 / 0)
    monkeypatch.setattr("streamkit.otel.content.Content.of_request", lambda *_: 1 / 0)
    (said,), answer = await told(spans, as_asked("openai-chat"))
    assert (answer.status, answer.end, said) == (200, "complete", {})
    assert caplog.messages.count("prompts and responses could not be added to a span") == 2


# -- where it is not wanted --------------------------------------------------------------------------------------------


async def test_nothing_is_computed_for_what_is_sampled_out(monkeypatch):
    spans = Spans(ALWAYS_OFF)

    def computed(*_arguments, **_values):
        raise AssertionError

    monkeypatch.setattr("streamkit.otel.inference._answer_attributes", computed)
    for name in ("Content", "attribute_text", "describe_request", "start_inference"):
        monkeypatch.setattr(f"streamkit.gateway.telemetry.{name}", computed)
    async with traced(spans, as_asked("openai-chat"), settings=config.Telemetry(content="on")) as running:
        answer = await running.asked()
        await running.outcomes()
    parent = running.evil.requests[0].header("traceparent")
    assert parent.endswith(("-00", "-02"))
    assert (answer.status, answer.headers["traceresponse"]) == (200, parent)
    assert spans.ended == []


async def asked_samplers(sampler_type):
    """Of which spans a sampler that leaves out what is no CLIENT span is asked, and those that are recorded."""
    asked_of = []

    class Asked(sampler_type):
        def should_sample(self, parent_context, trace_id, name, kind=None, *arguments, **values):
            asked_of.append(name)
            sampler = ALWAYS_ON if kind is SpanKind.CLIENT else ALWAYS_OFF
            return sampler.should_sample(parent_context, trace_id, name, kind, *arguments, **values)

        def get_description(self):
            return "asked"

    spans = Spans(Asked(Decision.DROP) if sampler_type is StaticSampler else Asked())
    async with traced(spans, as_asked("openai-chat")) as running:
        await running.asked()
        await running.outcomes()
    return asked_of, [span.name for span in spans.ended]


async def test_a_trace_that_is_left_out_is_asked_for_once():
    assert await asked_samplers(StaticSampler) == (["POST /v1/chat/completions"], [])


async def test_a_sampler_of_the_operators_own_is_asked_for_each_span():
    assert await asked_samplers(Sampler) == (["POST /v1/chat/completions", "chat m"], ["chat m"])


async def test_an_sdk_that_is_switched_off_has_no_trace_to_name(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    async with traced(Spans(), as_asked("openai-chat"), settings=config.Telemetry(content="on")) as running:
        answer = await running.asked()
    assert running.evil.requests[0].header("traceparent") is None
    assert (answer.status, "traceresponse" in answer.headers) == (200, False)
    (line,) = [each.fields for each in caplog.records if each.message == "request"]
    assert "trace_id" not in line


async def test_without_it_no_header_is_added():
    async with behind(as_asked("anthropic"), dialect="anthropic") as running:
        answer = await running.asked("anthropic", headers=PARENT)
    assert running.evil.requests[0].header("traceparent") is None
    assert "traceresponse" not in answer.headers
    assert answer.headers["request-id"] == answer.headers["x-request-id"]


async def test_without_it_nothing_of_it_runs():
    """Exact, where a time would not be: no function of OpenTelemetry's, nor of what tells it, is called."""
    called = set()

    def watch(frame, event, _argument):
        path = frame.f_code.co_filename
        if event == "call" and re.search(r"/opentelemetry/|/streamkit/otel/|/gateway/telemetry\.py", path):
            called.add(frame.f_code.co_qualname)

    async with behind(as_asked("anthropic"), dialect="anthropic") as running:
        sys.setprofile(watch)
        try:
            answer = await running.asked(headers=PARENT)
            await running.outcomes()
        finally:
            sys.setprofile(None)
    assert (answer.status, called) == (200, set())


def test_without_it_nothing_of_opentelemetry_is_imported():
    program = "import sys, streamkit, streamkit.gateway.serve, streamkit.otel.conventions; print([n for n in sys.modules if 'opentelemetry' in n])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


TOML = """
[telemetry]
otlp = true
semconv = "genai"
[upstreams.a]
dialect = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
auth = "none"
propagate_trace = false
[[routes]]
models = ["m"]
to = ["a"]
"""


def parsed(text, **env):
    return parse_config(text, name="g.toml", env=env, read_file=None)


def test_the_file_says_whether_and_by_which_names():
    read = parsed(TOML)
    assert read.telemetry == config.Telemetry(otlp=True, semconv="genai")
    assert not read.upstreams["a"].propagate_trace
    assert "sent by OTLP" in config.describe(read)
    assert "OTLP" not in config.describe(parsed(TOML.replace("true", "false")))


def test_a_version_that_nobody_knows_is_a_fault_of_its_line():
    with pytest.raises(ConfigError, match=r"g.toml:4:\d+: telemetry.semconv"):
        parsed(TOML.replace('"genai"', '"1.40"'))


def test_what_the_environment_wants_and_is_not_there_is_a_fault():
    with pytest.raises(ConfigError, match=r"telemetry.otlp: OTEL_EXPORTER_OTLP_PROTOCOL"):
        parsed(TOML, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    parsed(TOML.replace("otlp = true", ""), OTEL_EXPORTER_OTLP_PROTOCOL="grpc")


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setattr("streamkit.gateway.checks.find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"streamkit-llm\[otel\]"):
        parsed(TOML)


# -- the anthropic package with tracing on -----------------------------------------------------------------------------


async def test_a_call_of_the_anthropic_package_is_one_trace_from_its_span_to_the_upstream(spans, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", None)
    monkeypatch.setattr(
        "opentelemetry.trace._TRACER_PROVIDER_SET_ONCE", type("Once", (), {"do_once": lambda _, f: bool(f()) or True})()
    )
    theirs = Spans()
    set_tracer_provider(theirs.provider)
    async with traced(spans, leg(as_asked("openai-chat"), timeouts=PATIENT)) as running:
        client = anthropic.AsyncAnthropic(base_url=running.url, api_key="none", max_retries=0)
        message = await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        await client.close()
        await running.outcomes()
    sent = running.evil.requests[0].header("traceparent").split("-")
    server, (call,) = by_kind(spans)
    (outer, *_) = [span for span in theirs.ended if span.kind is SpanKind.CLIENT]
    assert {span.context.trace_id for span in (outer, server, call)} == {int(sent[1], 16)}
    assert (server.parent.span_id, call.parent.span_id) == (outer.context.span_id, server.context.span_id)
    assert int(sent[2], 16) == call.context.span_id
    (line,) = [each.fields for each in caplog.records if each.message == "request"]
    assert message._request_id == line["request_id"]
