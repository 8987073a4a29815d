"""``traceparent`` and ``tracestate``, in and out (observe.md F24 to F26, O8, O9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from opentelemetry.context import get_value
from opentelemetry.trace import INVALID_SPAN, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from streamkit.gateway.telemetry import context_in, ids_in, propagated, traceparent_of
from tests.otel.spans import Spans

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SENT = f"00-{TRACE}-{SPAN}-01"


def parent_in(*headers):
    return get_current_span(context_in(CIMultiDict(headers))).get_span_context()


@pytest.mark.parametrize("flags", ["00", "01", "02", "03", "ff"])
def test_flags_of_both_levels_are_read(flags):
    parent = parent_in(("Traceparent", f"00-{TRACE}-{SPAN}-{flags}"))
    assert (parent.trace_id, parent.span_id, parent.is_remote) == (int(TRACE, 16), int(SPAN, 16), True)
    assert parent.trace_flags == int(flags, 16)


def test_a_later_version_may_say_more():
    assert parent_in(("traceparent", f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like")).is_valid


@pytest.mark.parametrize(
    "values",
    [
        [],
        [SENT, SENT],
        [SENT, "00-" + "1" * 32 + f"-{SPAN}-01"],
        [""],
        ["no"],
        [f"{SENT}-more"],
        [f"ff-{TRACE}-{SPAN}-01"],
        [SENT.upper()],
        [f"00-{'0' * 32}-{SPAN}-01"],
        [f"00-{TRACE}-{'0' * 16}-01"],
        [f"00-{TRACE[:-1]}-{SPAN}-01"],
        [f"00-{TRACE}-{SPAN}-0"],
        [f"00-{TRACE}-{SPAN}-+1"],
        [f"{SENT},{SENT}"],
        [f"00_{TRACE}_{SPAN}_01"],
        ["0" * 10_000],
    ],
)
def test_anything_else_begins_a_new_trace(values):
    assert not parent_in(*(("traceparent", value) for value in values)).is_valid


HEADER = st.text("0f-,=@; \tZé\x00", max_size=70)


@given(HEADER, st.lists(HEADER, max_size=3))
def test_no_header_is_an_error(parent, states):
    parent_in(("traceparent", parent), *(("tracestate", state) for state in states))
    parent_in(("traceparent", SENT), *(("tracestate", state) for state in states))


def test_the_state_of_several_lines_is_one():
    assert dict(parent_in(("traceparent", SENT), ("tracestate", "a=1"), ("tracestate", "b=2")).trace_state) == {
        "a": "1",
        "b": "2",
    }


def test_baggage_is_dropped():
    context = context_in(CIMultiDict({"traceparent": SENT, "baggage": "user=me"}))
    assert get_value("baggage", context) is None
    span = Spans().tracer.start_span("a", context)
    assert set(propagated(span)) == {"traceparent"}


def test_a_request_within_a_span_has_the_spans_id_and_the_traces_state():
    span = Spans().tracer.start_span("a", context_in(CIMultiDict({"traceparent": SENT, "tracestate": "a=1"})))
    sent = traceparent_of(span)
    trace_id, span_id = ids_in(sent)
    assert (trace_id, span_id == SPAN) == (TRACE, False)
    assert sent == f"00-{TRACE}-{span_id}-01"
    assert propagated(span) == {"traceparent": sent, "tracestate": "a=1"}


def test_both_headers_are_as_the_library_writes_them():
    span = Spans().tracer.start_span("a", context_in(CIMultiDict({"traceparent": SENT, "tracestate": "a=1,b=2"})))
    theirs: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(theirs, set_span_in_context(span))
    assert propagated(span) == theirs


def test_a_span_that_is_none_has_no_header():
    assert (traceparent_of(INVALID_SPAN), propagated(INVALID_SPAN)) == ("", {})
