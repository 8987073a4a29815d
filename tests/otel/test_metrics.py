"""The metrics of calls and requests, by the table of their conventions (observe.md O4, O14)."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from streamkit.events import UsageReported
from streamkit.otel.conventions import CONVENTIONS
from streamkit.otel.inference import Instruments

ASKED = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}
USAGE = UsageReported(input_total=100, input_cached=40, input_cache_write=5, output_total=20, output_reasoning=0)


class Recorded:
    """Instruments whose metrics are read back."""

    def __init__(self, semconv):
        self._reader = InMemoryMetricReader()
        provider = MeterProvider([self._reader], shutdown_on_exit=False)
        self.instruments = Instruments(provider.get_meter("test"), CONVENTIONS[semconv])

    @property
    def points(self):
        """Each point's attributes and value, a histogram's sum, by the metric's name."""
        read = self._reader.get_metrics_data()
        metrics = [] if read is None else read.resource_metrics[0].scope_metrics[0].metrics
        return {
            metric.name: [
                (dict(point.attributes), point.sum if hasattr(point, "sum") else point.value)
                for point in metric.data.data_points
            ]
            for metric in metrics
        }

    def bounds(self, name):
        metrics = self._reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        return next(metric.data.data_points[0].explicit_bounds for metric in metrics if metric.name == name)


@pytest.mark.parametrize("semconv", CONVENTIONS)
def test_a_whole_stream_has_each_metric_of_the_table(semconv):
    recorded = Recorded(semconv)
    recorded.instruments.call(ASKED, USAGE, seconds=2.0, first_output_s=0.5)
    recorded.instruments.chunk(ASKED, 0.05)
    recorded.instruments.request(ASKED, seconds=2.1, first_output_s=0.6, token_s=0.02)
    assert recorded.points.keys() == {metric.name for metric in CONVENTIONS[semconv].metrics}
    for metric in CONVENTIONS[semconv].metrics:
        if metric.bounds:
            assert recorded.bounds(metric.name) == metric.bounds


def test_tokens_of_1_41_are_one_metric_by_type():
    recorded = Recorded("1.41")
    recorded.instruments.call(ASKED, USAGE, seconds=1.0)
    kind = "gen_ai.token.type"
    assert recorded.points["gen_ai.client.token.usage"] == [
        ({**ASKED, kind: "input"}, 100),
        ({**ASKED, kind: "output"}, 20),
    ]


def test_tokens_of_genai_are_counted_by_kind_and_a_0_that_was_told_is_one():
    recorded = Recorded("genai")
    recorded.instruments.call(ASKED, USAGE, seconds=1.0)
    recorded.instruments.call(ASKED, USAGE, seconds=1.0)
    asked = {**ASKED, "gen_ai.token.modality": "unknown"}
    used = "gen_ai.client.inference.usage"
    assert {name: points for name, points in recorded.points.items() if name.startswith(used)} == {
        f"{used}.input_tokens": [(asked, 200)],
        f"{used}.output_tokens": [(asked, 40)],
        f"{used}.cache_read.input_tokens": [(asked, 80)],
        f"{used}.cache_write.input_tokens": [(asked, 10)],
        f"{used}.reasoning.output_tokens": [(asked, 0)],
    }


@pytest.mark.parametrize("semconv", CONVENTIONS)
def test_a_call_that_failed_has_no_tokens_and_no_first_output(semconv):
    recorded = Recorded(semconv)
    recorded.instruments.call(ASKED, None, seconds=1.0, error_type="http_429")
    recorded.instruments.call(ASKED, UsageReported(output_total=3), seconds=1.0)
    duration = CONVENTIONS[semconv].duration.name
    assert recorded.points.pop(duration) == [({**ASKED, "error.type": "http_429"}, 1.0), (ASKED, 1.0)]
    output = {metric.name for metric in CONVENTIONS[semconv].tokens if metric.count == "output_total"}
    assert recorded.points.keys() - {duration} == output
    assert [value for name in output for _, value in recorded.points[name]] == [3] * len(output)
