"""W3C Trace Context over HTTP: read the trace that a request belongs to, and write the headers of requests and responses.

The client decides the trace and whether it is recorded, as with OpenTelemetry's default samplers
(``OTEL_TRACES_SAMPLER=always_on`` or ``traceidratio`` decides without the client). ``baggage`` is neither read nor passed on:
it is the client's data for parties that the client trusts.

Source: observe.md F24 to F26, O8 to O10; W3C Trace Context Level 2 (its two headers).
"""

from __future__ import annotations

from typing import Final

from multidict import MultiMapping
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from streamkit.otel.api import Context, Span

_W3C: Final = TraceContextTextMapPropagator()
#: The context of a request that belongs to no trace.
_NEW: Final = Context()


def context_in(headers: MultiMapping[str]) -> Context:
    """Return the trace that a request names. If it names none, several or an invalid one, a new trace begins."""
    parents = headers.getall("traceparent", [])
    if len(parents) != 1:
        return _NEW
    return _W3C.extract({"traceparent": parents, "tracestate": headers.getall("tracestate", [])}, _NEW)


def traceparent_of(span: Span) -> str:
    """Return the ids and flags of a span as ``traceparent`` and ``traceresponse`` have them: ``00-<trace>-<span>-<flags>``.

    Empty if the SDK is switched off. The library's function for requests takes twice as long.
    """
    context = span.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def propagated(span: Span) -> dict[str, str]:
    """Return the headers for a request inside ``span``: ``traceparent``, and ``tracestate`` if the trace has one."""
    headers: dict[str, str] = {}
    if parent := traceparent_of(span):
        headers["traceparent"] = parent
        if state := span.get_span_context().trace_state:
            headers["tracestate"] = state.to_header()
    return headers


def ids_in(traceparent: str) -> tuple[str, str]:
    """Return the ids of the trace and of the span, in hexadecimal digits."""
    return traceparent[3:35], traceparent[36:52]
