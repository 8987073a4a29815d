"""The gateway's OpenTelemetry data: one SERVER span per request, and one CLIENT span per attempt with an upstream.

A request belongs to the trace that its client names. Attempts are siblings, the usage is only in the span of its attempt, and
no span becomes the current span. Texts from clients and upstreams are added without what looks like a key, as in the log.

The client decides the trace and whether it is recorded, as with OpenTelemetry's default samplers
(``OTEL_TRACES_SAMPLER=always_on`` or ``traceidratio`` decides without the client). ``baggage`` is neither read nor passed on:
it is the client's data for parties that the client trusts.

Source: observe.md O2 to O13, F24 to F26; W3C Trace Context Level 2 (its two headers).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache, partial
from typing import Final

from aiohttp import web
from attrs import define, evolve, field
from multidict import MultiMapping
from opentelemetry.sdk.trace.sampling import ParentBased, StaticSampler, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from streamkit.conversation.messages import Response
from streamkit.gateway import config
from streamkit.gateway.log import log
from streamkit.gateway.reasons import HEDGED_OUT
from streamkit.gateway.record import ANSWERS, Attempt, Record
from streamkit.gateway.routing import Route, Target
from streamkit.observer import Observer, Seen
from streamkit.otel import conventions as names
from streamkit.otel.api import AttributeValue, Context, Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from streamkit.otel.content import AnswerContent, Content
from streamkit.otel.inference import (
    Attributes,
    Instruments,
    attribute_text,
    describe_request,
    end_inference,
    inference_of,
    start_inference,
)
from streamkit.otel.providers import Providers, otlp_providers
from streamkit.otel.stage import SCOPE
from streamkit.web.surfaces import Ask
from streamkit.web.upstream.requests import NO_HEADERS

#: Outcomes of attempts whose client disconnected; they are not failures (observe.md F20: a cancelled call is no error).
LEFT: Final = frozenset({"client_left", "client_stalled"})
#: Methods that may be in a span's name. A client may send any word as the method (HTTP conventions, ``http.request.method``).
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"})
#: The value in metrics for every model that no route names in full. Clients may send any number of names (limits.md T13).
OTHER: Final = "_other"
#: The log message if prompts and responses could not be added to a span.
CONTENT_FAILED: Final = "prompts and responses could not be added to a span"
#: Samplers that decide by the trace or by the parent span: all of OpenTelemetry's samplers for ``OTEL_TRACES_SAMPLER``.
WHOLE_TRACES: Final = (ParentBased, StaticSampler, TraceIdRatioBased)
TRACE_RESPONSE: Final = "traceresponse"  #: the response header that names the trace of a response
NO_STATUS: Final = 499  #: the status of a request whose client disconnected before a status was sent


class Telemetry:
    """The OpenTelemetry data of one process."""

    def __init__(self, settings: config.Telemetry, providers: Providers) -> None:
        self.settings = settings
        self.conventions = names.CONVENTIONS[settings.semconv]
        self.tracer: Tracer = providers.traces.get_tracer(SCOPE, schema_url=self.conventions.schema_url)
        meter = providers.metrics.get_meter(SCOPE, schema_url=self.conventions.schema_url)
        self.instruments = Instruments(meter, self.conventions)
        self._providers, self._shutdown_s = providers, settings.shutdown_s
        self._leaves_out_traces = isinstance(providers.traces.sampler, WHOLE_TRACES)

    def begin(self, request: web.Request, record: Record) -> RequestTrace:
        """Start the span of a request, in the trace that the request names."""
        method = record.method if record.method in METHODS else "_OTHER"
        resource = request.match_info.route.resource
        route = None if resource is None else resource.canonical
        attributes: dict[str, AttributeValue] = {"http.request.method": method, "url.scheme": request.scheme}
        if route is not None:
            attributes["http.route"] = route
        name = f"{'HTTP' if method == '_OTHER' else method} {route or ''}".rstrip()
        span = self.tracer.start_span(name, context_in(request.headers), SpanKind.SERVER, attributes)
        if span.is_recording():
            span.set_attribute("url.path", attribute_text(record.logged(record.path)))
        return RequestTrace(self, span, record)

    def is_left_out(self, span: Span) -> bool:
        """Return whether the sampler dropped a span, and would also drop each span below it."""
        return self._leaves_out_traces and not span.is_recording()

    async def running(self, _app: web.Application) -> AsyncGenerator[None, None]:
        """When the application ends, send the remaining data within ``shutdown_s`` seconds."""
        yield
        if not await self._providers.shut_down(self._shutdown_s):
            log.warning("the last traces and metrics could not be sent in time")


def otlp_telemetry(settings: config.Telemetry) -> Telemetry:
    """Return a ``Telemetry`` that sends to the collector in the environment. Raises UsageError for bad settings there."""
    return Telemetry(settings, otlp_providers())


# Arguments are configured names only, never names that clients choose, so the cache stays small.
_inference_of = lru_cache(maxsize=256)(inference_of)


@define
class RequestTrace:
    """The span of a request."""

    telemetry: Telemetry
    span: Span
    record: Record = field(repr=False)
    last: AttemptSpan | None = None  #: the span of the last finished attempt
    _traceparent: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._traceparent = traceparent_of(self.span)

    @property
    def ids(self) -> dict[str, str]:
        """The ids of trace and span, for the log; none if the SDK is switched off (``OTEL_SDK_DISABLED``)."""
        if not self._traceparent:
            return {}
        trace_id, span_id = ids_in(self._traceparent)
        return {"trace_id": trace_id, "span_id": span_id}

    @property
    def headers(self) -> dict[str, str]:
        return {TRACE_RESPONSE: self._traceparent} if self._traceparent else {}

    def attempt(self, route: Route, target: Target, ask: Ask) -> AttemptSpan:
        """Return the span of an attempt with an upstream, below the span of the request.

        If the trace is dropped, return the request's span instead: nothing is recorded in either.
        """
        upstream, model = target.upstream, target.model or ask.model
        is_known = ask.model in route.models
        known = _inference_of(upstream.dialect, model if is_known else OTHER, upstream.base_url)
        if self.telemetry.is_left_out(self.span):
            span = self.span
        else:
            inference = known if is_known else evolve(known, model=attribute_text(self.record.logged(model)))
            span = start_inference(self.telemetry.tracer, inference, set_span_in_context(self.span))
            describe_request(span, ask.request, stream=ask.stream)
        tried = AttemptSpan(self, span, known.attributes, is_streamed=ask.stream, propagates=upstream.propagate_trace)
        settings = self.telemetry.settings
        if settings.content == "on" and span.is_recording():
            tried.content = Content(settings.content_chars, self.record.hide)
            _add_content(span, partial(tried.content.of_request, ask.request))
            if ask.stream:
                tried.reading = _Reading(upstream.dialect, settings.content_chars)
        return tried

    def end(self, record: Record) -> None:
        left = record.ending.startswith("client")
        failed = not left and (record.status >= 500 or record.ending == "broken")
        last = record.attempts[-1].outcome if record.attempts else str(record.status)
        error_type = last if failed else ""
        if self.span.is_recording():
            if record.status != NO_STATUS:
                self.span.set_attribute("http.response.status_code", record.status)
            if left:
                self.span.set_attribute(names.ENDING, record.ending.replace(" ", "_"))
            if error_type:
                self.span.set_attribute(names.ERROR_TYPE, error_type)
                self.span.set_status(Status(StatusCode.ERROR))
        self.span.end()
        if self.last is not None:
            self._measure(record, self.last, error_type)

    def _measure(self, record: Record, last: AttemptSpan, error_type: str) -> None:
        is_whole_stream = last.is_streamed and record.ending == "whole"
        rate = record.attempts[-1].output_tokens_per_s if is_whole_stream else None
        self.telemetry.instruments.request(
            last.measured,
            seconds=record.seconds,
            error_type=error_type,
            first_output_s=record.first_output_s if is_whole_stream else None,
            token_s=1 / rate if rate else None,
        )


@define
class AttemptSpan:
    """The span of an attempt with an upstream."""

    trace: RequestTrace
    span: Span
    measured: Attributes  #: the attributes of this call's metrics
    is_streamed: bool
    propagates: bool
    content: Content | None = None  #: converts prompts and responses to attributes; None: not recorded
    reading: _Reading | None = None

    @property
    def copy_to(self) -> Callable[[bytes], None] | None:
        """A function to call with each chunk of a stream; None: not needed."""
        return None if self.reading is None else self.reading.feed

    @property
    def record_gap(self) -> Callable[[float], None] | None:
        """A function to call with each gap between outputs of a stream; None: not needed."""
        telemetry = self.trace.telemetry
        if not telemetry.settings.time_per_output_chunk:
            return None
        return partial(telemetry.instruments.chunk, self.measured)

    @property
    def headers(self) -> Mapping[str, str]:
        return propagated(self.span) if self.propagates else NO_HEADERS

    def end(self, attempt: Attempt, answer: Response | None) -> None:
        """End the span. ``answer`` is the response if it is whole."""
        if self.content is not None:
            if answer is not None:
                _add_content(self.span, partial(self.content.of_answer, answer))
            elif self.reading is not None:
                _add_content(self.span, partial(self.reading.attributes, self.content))
        error_type = "" if attempt.outcome in ANSWERS else attempt.outcome
        ending = attempt.outcome if attempt.outcome in LEFT else ""
        first_s = attempt.first_output_s if self.is_streamed else None
        conventions = self.trace.telemetry.conventions
        end_inference(
            self.span,
            attempt.report,
            conventions=conventions,
            error_type=error_type,
            ending=ending,
            first_output_s=first_s,
        )
        self.trace.telemetry.instruments.call(
            self.measured, attempt.report.usage, seconds=attempt.seconds, error_type=error_type, first_output_s=first_s
        )
        if attempt.outcome != HEDGED_OUT:
            self.trace.last = self


class _Reading:
    """Parses a stream a second time for its span. An error here does not affect the client's stream."""

    def __init__(self, dialect: str, chars: int) -> None:
        self._observer = Observer(dialect, by_frame=False)
        self._answer = AnswerContent(dialect, chars)
        self._is_read = True

    def feed(self, chunk: bytes) -> None:
        if self._is_read:
            self._take(partial(self._observer.feed, chunk))

    def attributes(self, content: Content) -> dict[str, str | bool]:
        """Return the attributes of the response as far as it was received."""
        if self._is_read:
            self._take(self._observer.finish)
        return content.of_answer(self._answer.finish(), is_cut=self._answer.is_cut)

    def _take(self, read: Callable[[], list[Seen]]) -> None:
        try:
            for seen in read():
                self._answer.feed(seen.events)
        except Exception:  # noqa: BLE001 - an error here must not affect the response
            self._is_read = False
            log.exception(CONTENT_FAILED)


def _add_content(span: Span, attributes: Callable[[], dict[str, str | bool]]) -> None:
    """Add prompts and responses to a span. If that raises, log it and continue, since the client's response matters more."""
    try:
        span.set_attributes(attributes())
    except Exception:  # noqa: BLE001 - as above
        log.exception(CONTENT_FAILED)


# -- trace context -----------------------------------------------------------------------------------------------------


_W3C: Final = TraceContextTextMapPropagator()
_NEW: Final = Context()  #: the context of a request that belongs to no trace


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
