"""OpenTelemetry's conventions for generative AI: the metrics in one table, and attributes and variables with several uses.

The conventions are in development and moved to another repository. "1.41" is the last version of ``semantic-conventions`` with
them, which instrumentations and back ends support today. "genai" is ``semantic-conventions-genai``, which renamed the metrics.
The span attributes are the same in both, except tokens written to a cache: ``cache_creation`` in "1.41", else ``cache_write``.

This module does not import OpenTelemetry. Source: observe.md F11 to F18, O14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from attrs import field, frozen

from streamkit.errors import UsageError

SemConv: TypeAlias = Literal["1.41", "genai"]
#: The name of a count of tokens in ``UsageReported``.
Count: TypeAlias = Literal["input_total", "input_cached", "input_cache_write", "output_total", "output_reasoning"]

# -- span attributes ---------------------------------------------------------------------------------------------------

ERROR_TYPE: Final = "error.type"
#: Why a span has no complete response although nothing failed: the reader left. The conventions have no attribute for this.
ENDING: Final = "streamkit.ending"
CONTENT_TRUNCATED: Final = "streamkit.content.truncated"  #: streamkit's own: some content was left out
#: The most characters of each content attribute. Claude Code truncates its attributes at the same length.
CONTENT_CHARS: Final = 61_440
NO_REASON: Final = "error"  #: the finish reason to report for a choice that ended without a finish reason

# -- metrics -----------------------------------------------------------------------------------------------------------

#: Histogram bounds for the duration of a call in seconds: 0.01 to 81.92, each bound twice the previous one.
CALL_BOUNDS: Final = tuple(0.01 * 2**power for power in range(14))
#: Histogram bounds for numbers of tokens: each bound four times the previous one.
TOKEN_BOUNDS: Final = tuple(float(4**power) for power in range(14))
FIRST_TOKEN_BOUNDS: Final = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip
TOKEN_TIME_BOUNDS: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)


@frozen(kw_only=True)
class Metric:
    """A metric: a histogram with these bounds, or a counter without bounds."""

    name: str
    unit: str
    description: str
    bounds: tuple[float, ...] = ()


def _seconds(name: str, description: str, bounds: tuple[float, ...] = CALL_BOUNDS) -> Metric:
    return Metric(name=name, unit="s", description=description, bounds=bounds)


@frozen(kw_only=True)
class TokenMetric(Metric):
    """A metric of the tokens of a call: the member of the usage that it counts, and its attributes."""

    count: Count
    attributes: Mapping[str, str] = field(factory=dict)


_SERVER_DURATION: Final = _seconds("gen_ai.server.request.duration", "Generative AI server request duration")
_SERVER_FIRST_TOKEN: Final = _seconds(
    "gen_ai.server.time_to_first_token", "Time to generate the first token", FIRST_TOKEN_BOUNDS
)
_SERVER_TOKEN_TIME: Final = _seconds(
    "gen_ai.server.time_per_output_token", "Time per output token after the first", TOKEN_TIME_BOUNDS
)


@frozen(kw_only=True)
class Conventions:
    """The names of metrics, and of token counts on a span, in one version."""

    schema_url: str
    usage: Mapping[Count, str]  #: by member of ``UsageReported``: totals include cached and reasoning tokens
    duration: Metric  #: of a call, streamed or whole
    first_chunk: Metric  #: from the request to the first output; only of streams
    chunk_time: Metric  #: from each output of a stream to the next; only on request
    tokens: tuple[TokenMetric, ...]
    #: Of a request to the gateway: its duration, and for streams the time to the first output and per token after it.
    server_duration: Metric = _SERVER_DURATION
    server_first_token: Metric = _SERVER_FIRST_TOKEN
    server_token_time: Metric = _SERVER_TOKEN_TIME

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics. Two metrics of tokens may have the same name."""
        of_calls = self.duration, self.first_chunk, self.chunk_time, *self.tokens
        return (*of_calls, self.server_duration, self.server_first_token, self.server_token_time)


def _usage(cache_write: str) -> Mapping[Count, str]:
    return {
        "input_total": "gen_ai.usage.input_tokens",
        "input_cached": "gen_ai.usage.cache_read.input_tokens",
        "input_cache_write": f"gen_ai.usage.{cache_write}.input_tokens",
        "output_total": "gen_ai.usage.output_tokens",
        "output_reasoning": "gen_ai.usage.reasoning.output_tokens",
    }


def _tokens(
    name: str, description: str, count: Count, bounds: tuple[float, ...] = (), **attributes: str
) -> TokenMetric:
    named = {f"gen_ai.token.{name}": value for name, value in attributes.items()}
    return TokenMetric(name=name, unit="{token}", description=description, bounds=bounds, count=count, attributes=named)


def _inference(name: str, description: str, count: Count) -> TokenMetric:
    return _tokens(f"gen_ai.client.inference.usage.{name}", description, count, modality="unknown")


_PER_CALL: Final = "gen_ai.client.inference.operation"
_USED: Final = "Number of input and output tokens used"

CONVENTIONS: Final[Mapping[SemConv, Conventions]] = {
    "1.41": Conventions(
        schema_url="https://opentelemetry.io/schemas/1.41.0",
        usage=_usage("cache_creation"),
        duration=_seconds("gen_ai.client.operation.duration", "GenAI operation duration"),
        first_chunk=_seconds("gen_ai.client.operation.time_to_first_chunk", "Time to receive the first chunk"),
        chunk_time=_seconds("gen_ai.client.operation.time_per_output_chunk", "Time per output chunk after the first"),
        tokens=(
            _tokens("gen_ai.client.token.usage", _USED, "input_total", TOKEN_BOUNDS, type="input"),
            _tokens("gen_ai.client.token.usage", _USED, "output_total", TOKEN_BOUNDS, type="output"),
        ),
    ),
    "genai": Conventions(
        schema_url="https://opentelemetry.io/schemas/gen-ai/1.42.0",
        usage=_usage("cache_write"),
        duration=_seconds("gen_ai.client.inference.duration", "Inference duration"),
        first_chunk=_seconds("gen_ai.client.inference.time_to_first_chunk", "Time to receive the first chunk"),
        chunk_time=_seconds("gen_ai.client.inference.time_per_output_chunk", "Time per output chunk after the first"),
        tokens=(
            _inference("input_tokens", "Input tokens, cached ones included", "input_total"),
            _inference("output_tokens", "Output tokens, with reasoning", "output_total"),
            _inference("cache_read.input_tokens", "Input tokens served from a provider's cache", "input_cached"),
            _inference("cache_write.input_tokens", "Input tokens written to a provider's cache", "input_cache_write"),
            _inference("reasoning.output_tokens", "Output tokens used for reasoning", "output_reasoning"),
            _tokens(f"{_PER_CALL}.input_tokens", "Input tokens of an operation", "input_total", TOKEN_BOUNDS),
            _tokens(f"{_PER_CALL}.output_tokens", "Output tokens of an operation", "output_total", TOKEN_BOUNDS),
        ),
    ),
}


# -- environment variables ---------------------------------------------------------------------------------------------


Signal: TypeAlias = Literal["TRACES", "METRICS"]
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)
#: The only OTLP protocol that the extra ``otel`` supports (``OTEL_EXPORTER_OTLP_PROTOCOL``).
PROTOCOL: Final = "http/protobuf"


def is_sent(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Return whether a signal is sent. Raises UsageError for an exporter or a protocol that is not supported."""
    name = f"OTEL_{signal}_EXPORTER"
    exporter = environment.get(name) or "otlp"
    if exporter not in {"otlp", "none"}:
        raise UsageError(f"{name}: write otlp or none, or unset it")
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if exporter == "otlp" and environment.get(name, PROTOCOL) != PROTOCOL:
            raise UsageError(f"{name}: only {PROTOCOL} is supported; write that, or unset it")
    return exporter == "otlp"
