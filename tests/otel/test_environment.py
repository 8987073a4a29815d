"""Which of OpenTelemetry's environment variables are heeded, and which are refused."""

import pytest

from streamkit import UsageError
from streamkit.otel.conventions import is_sent


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": ""}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False),
        ({"OTEL_METRICS_EXPORTER": "none"}, True),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
def test_a_signal_is_sent_unless_it_says_none(environment, sent):
    assert is_sent("TRACES", environment) is sent


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ],
)
def test_what_is_not_there_is_named(name, value):
    with pytest.raises(UsageError, match=name):
        is_sent("TRACES", {name: value})
