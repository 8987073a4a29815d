"""One call as a span: its attributes, its status, and nothing for what is not known (observe.md O3, O4, O6)."""

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from streamkit import UsageError
from streamkit.conversation.messages import Options, OutputFormat, Request, Thinking
from streamkit.dialects import DIALECTS
from streamkit.events import ResponseFinished, ResponseStarted, UsageReported
from streamkit.otel.conventions import CONVENTIONS
from streamkit.otel.inference import (
    SeenEvents,
    describe_request,
    end_inference,
    finish_reasons,
    inference_of,
    start_inference,
)
from tests.otel.spans import Spans

LATEST = CONVENTIONS["1.41"]

#: The well-known values of ``gen_ai.provider.name`` that a dialect or a provider here stands for (F18); others have their own.
WELL_KNOWN = {
    "anthropic": "anthropic",
    "azure-anthropic": "anthropic",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "gemini": "gcp.gemini",
    "gemini-interactions": "gcp.gemini",
    "mistral": "mistral_ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure": "azure.ai.openai",
    "azure-responses": "azure.ai.openai",
    "bedrock-openai": "aws.bedrock",
    "bedrock-responses": "aws.bedrock",
    "gemini-openai": "gcp.gemini",
    "vertex-gemini": "gcp.vertex_ai",
    "vertex-anthropic": "gcp.vertex_ai",
    "moonshot": "moonshot_ai",
    "xai": "x_ai",
    "ollama-v1": "ollama",
}
NAMES = [name for d in DIALECTS.built_in.values() for name in (d.name, *(provider.name for provider in d.providers))]


@pytest.mark.parametrize("name", NAMES)
def test_providers_have_the_names_of_the_conventions(name):
    assert inference_of(name, "m").provider == WELL_KNOWN.get(name, name)


def test_the_operation_is_chat_but_for_one():
    assert {name for name in NAMES if inference_of(name, "m").operation != "chat"} == {"gemini", "vertex-gemini"}
    assert inference_of("gemini", "m").name == "generate_content m"


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("https://api.example.com/v1", "api.example.com", 443),
        ("http://[::1]:8000", "::1", 8000),
        ("http://h", "h", 80),
        ("", "", None),
    ],
)
def test_the_server_is_the_upstreams(url, address, port):
    inference = inference_of("openai-chat", "m", url)
    assert (inference.address, inference.port) == (address, port)
    assert ("server.address" in inference.attributes) == bool(address)


def test_an_unknown_dialect_is_named():
    with pytest.raises(UsageError, match="klingon"):
        inference_of("klingon", "m")


def full_request():
    options = Options(
        max_tokens=5, temperature=0.5, top_p=0.9, top_k=3, stop=("a", "b"), seed=7, presence_penalty=0.1,
        frequency_penalty=0.2, choices=2, thinking=Thinking(effort="high"), output=OutputFormat("schema"),
    )  # fmt: skip
    return Request("openai-chat", "m", options=options, stream=True)


def test_zeros_before_anything_was_counted_are_no_count():
    seen = SeenEvents()
    seen.feed([UsageReported(0, None, None, 0)])
    assert seen.usage is None
    seen.feed([UsageReported(5, None, None, 0), UsageReported(0, 0, 0, 0)])
    assert seen.usage == UsageReported(5, None, None, 0)


def test_a_whole_call_has_all_that_is_known_of_it():
    spans = Spans()
    span = start_inference(spans.tracer, inference_of("openai-chat", "m", "https://h:1"))
    describe_request(span, full_request(), stream=True)
    seen = SeenEvents()
    seen.feed([ResponseStarted("r1", "m-2026"), UsageReported(1, 0, None, 1), UsageReported(10, 4, 2, 20, 15)])
    seen.feed([ResponseFinished("length", choice=1), ResponseFinished("stop", choice=0)])
    end_inference(span, seen, conventions=LATEST, first_output_s=0.25)
    assert (spans.one.name, spans.one.kind, spans.one.status.status_code) == (
        "chat m",
        SpanKind.CLIENT,
        StatusCode.UNSET,
    )
    assert dict(spans.one.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "server.address": "h",
        "server.port": 1,
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": 5,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.top_k": 3,
        "gen_ai.request.seed": 7,
        "gen_ai.request.stop_sequences": ("a", "b"),
        "gen_ai.request.presence_penalty": 0.1,
        "gen_ai.request.frequency_penalty": 0.2,
        "gen_ai.request.choice.count": 2,
        "gen_ai.request.reasoning.level": "high",
        "gen_ai.output.type": "json",
        "gen_ai.response.id": "r1",
        "gen_ai.response.model": "m-2026",
        "gen_ai.response.finish_reasons": ("stop", "length"),
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 15,
    }


def test_what_is_not_known_is_absent():
    spans = Spans()
    span = start_inference(spans.tracer, inference_of("openai-chat", "m"))
    describe_request(span, Request("openai-chat", "m", options=Options(choices=1)), stream=False)
    end_inference(span, SeenEvents(), conventions=LATEST)
    assert set(spans.one.attributes) == {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}


def test_a_failure_is_an_error_and_a_reason_that_was_due_is_error():
    spans = Spans()
    end_inference(
        start_inference(spans.tracer, inference_of("ollama", "m")),
        SeenEvents(),
        conventions=LATEST,
        error_type="http_429",
    )
    assert spans.one.status.status_code is StatusCode.ERROR
    assert spans.one.attributes["error.type"] == "http_429"
    assert spans.one.attributes["gen_ai.response.finish_reasons"] == ("error",)


def test_a_reader_that_left_is_no_error():
    spans = Spans()
    end_inference(
        start_inference(spans.tracer, inference_of("ollama", "m")),
        SeenEvents(),
        conventions=LATEST,
        ending="client_left",
    )
    assert spans.one.status.status_code is StatusCode.UNSET
    assert "error.type" not in spans.one.attributes
    assert spans.one.attributes["streamkit.ending"] == "client_left"
    assert spans.one.attributes["gen_ai.response.finish_reasons"] == ("error",)


def test_what_was_written_elsewhere_is_bounded_without_keys_and_can_be_sent():
    spans = Spans()
    written = "sk-proj-abcdefgh12345678 \ud800 " + "x" * 1000
    request = Request("openai-chat", "m", options=Options(stop=(written,), thinking=Thinking(effort=written)))
    span = start_inference(spans.tracer, inference_of("openai-chat", written))
    describe_request(span, request, stream=True)
    end_inference(span, SeenEvents(started=ResponseStarted(written, written)), conventions=LATEST)
    assert "sk-proj" not in spans.one.to_json()
    assert all(len(str(value)) < 250 for value in spans.one.attributes.values())
    assert encode_spans(spans.ended).ByteSize() > 0


def test_nothing_is_computed_for_a_span_that_is_sampled_out():
    spans = Spans(ALWAYS_OFF)
    span = start_inference(spans.tracer, inference_of("ollama", "m"))
    describe_request(span, None, stream=True)  # anything that looked at it would fail
    end_inference(span, None, conventions=LATEST, error_type="cut")
    assert spans.ended == []


def test_reasons_stand_in_the_order_of_their_choices():
    stops = [ResponseFinished("tool_calls", choice=10**9), ResponseFinished("stop", choice=2)]
    assert finish_reasons(stops, is_whole=True) == ("stop", "tool_calls")
    assert finish_reasons([], is_whole=True) == ()
    assert finish_reasons([], is_whole=False) == ("error",)
