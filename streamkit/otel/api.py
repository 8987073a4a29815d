"""Import OpenTelemetry's API, or raise an error that says what to install."""

try:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, Meter, get_meter
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_tracer, set_span_in_context
    from opentelemetry.util.types import AttributeValue
except ModuleNotFoundError as error:
    raise ImportError("OpenTelemetry is not installed: pip install 'streamkit-llm[otel]'") from error

__all__ = [
    "AttributeValue",
    "Context",
    "Counter",
    "Histogram",
    "Meter",
    "Span",
    "SpanKind",
    "Status",
    "StatusCode",
    "Tracer",
    "get_meter",
    "get_tracer",
    "set_span_in_context",
]
