"""W3C Trace Context over HTTP: which trace a request belongs to, and what a request or an answer says of its own.

A client's word is taken for the trace and for whether it is recorded, as OpenTelemetry's samplers do by default
(``OTEL_TRACES_SAMPLER=always_on`` or ``traceidratio`` decides alone). ``baggage`` is not read and not sent on: it is data of
the client's own, for whoever it trusts.

Source: observe.md F24 to F26, O8 to O10; W3C Trace Context Level 2 (its two headers).
"""

from __future__ import annotations

from typing import Final

from multidict import MultiMapping
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from streamkit.otel.api import Context, Span, format_span_id, format_trace_id, set_span_in_context

_W3C: Final = TraceContextTextMapPropagator()


def context_in(headers: MultiMapping[str]) -> Context:
    """The trace that a request says it belongs to; where it says none, several or nothing valid, a new one begins."""
    parents = headers.getall("traceparent", [])
    if len(parents) != 1:
        return Context()
    return _W3C.extract({"traceparent": parents, "tracestate": headers.getall("tracestate", [])}, Context())


def propagated(span: Span) -> dict[str, str]:
    """The headers of a request that is made within ``span``: ``traceparent``, and ``tracestate`` if the trace has one."""
    headers: dict[str, str] = {}
    _W3C.inject(headers, set_span_in_context(span, Context()))
    return headers


def trace_response(span: Span) -> str:
    """The header ``traceresponse``, by which a client finds the trace of its answer."""
    trace_id, span_id = ids_of(span)
    return f"00-{trace_id}-{span_id}-{span.get_span_context().trace_flags:02x}"


def ids_of(span: Span) -> tuple[str, str]:
    """The ids of the trace and of the span, in hexadecimal digits."""
    context = span.get_span_context()
    return format_trace_id(context.trace_id), format_span_id(context.span_id)
