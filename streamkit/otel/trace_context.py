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

from streamkit.otel.api import Context, Span

_W3C: Final = TraceContextTextMapPropagator()
#: That of a request which belongs to no trace.
_NEW: Final = Context()


def context_in(headers: MultiMapping[str]) -> Context:
    """The trace that a request says it belongs to; where it says none, several or nothing valid, a new one begins."""
    parents = headers.getall("traceparent", [])
    if len(parents) != 1:
        return _NEW
    return _W3C.extract({"traceparent": parents, "tracestate": headers.getall("tracestate", [])}, _NEW)


def traceparent_of(span: Span) -> str:
    """The ids and the flags of a span, as ``traceparent`` and ``traceresponse`` have them: ``00-<trace>-<span>-<flags>``.

    Empty where the SDK is switched off. The library's own way into a request takes twice as long.
    """
    context = span.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def propagated(span: Span) -> dict[str, str]:
    """The headers of a request that is made within ``span``: ``traceparent``, and ``tracestate`` if the trace has one."""
    headers: dict[str, str] = {}
    if parent := traceparent_of(span):
        headers["traceparent"] = parent
        if state := span.get_span_context().trace_state:
            headers["tracestate"] = state.to_header()
    return headers


def ids_in(traceparent: str) -> tuple[str, str]:
    """The ids of the trace and of the span, in hexadecimal digits."""
    return traceparent[3:35], traceparent[36:52]
