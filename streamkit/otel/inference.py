"""One call of a model as a span, with its request, its response and its end; and as metrics.

Spans never become current: streams are read by generators, and a context that is attached in a generator leaks into its reader
(observe.md F38, O7). For a span that is not sampled, no attribute is computed (O11: to save time).

Each metric is recorded once at the end of a call: recording a value takes 4 to 9 µs, as much as two or three events of a
stream. The gaps between outputs are recorded only on request (``Instruments.chunk``). The gateway's ``/metrics`` reports them
without this cost.

Source: observe.md F12 to F20, F31 to F33, O3 to O6, O14.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from attrs import define, field, frozen

from streamkit.conversation.messages import Request
from streamkit.dialects import source_named
from streamkit.events import (
    OUTPUT,
    Event,
    ProviderFailed,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    UsageReported,
)
from streamkit.otel import conventions as names
from streamkit.otel.api import AttributeValue, Context, Meter, Span, SpanKind, Status, StatusCode, Tracer
from streamkit.otel.conventions import ERROR_TYPE, Conventions, Metric
from streamkit.report import StreamReport
from streamkit.text.quoting import excerpt

#: The most characters of a name or id that are put into an attribute, since clients and providers choose them.
NAME_CHARS: Final = 200


def attribute_text(text: str, chars: int = NAME_CHARS) -> str:
    """Return the beginning of another party's text, without what looks like a key.

    Half of a surrogate pair, which JSON may contain, becomes ``?``: with it, no span of the whole batch could be sent.
    """
    return excerpt(text, chars).encode("utf-8", "replace").decode("utf-8")


@frozen(kw_only=True)
class Inference:
    """The attributes of a model call that are known before its span begins, so that samplers can use them."""

    provider: str  #: the provider's name in the conventions (``gen_ai.provider.name``)
    model: str
    operation: str = "chat"
    address: str = ""  #: the host of the server, and its port
    port: int | None = None

    @property
    def name(self) -> str:
        return f"{self.operation} {self.model}"

    @property
    def attributes(self) -> dict[str, AttributeValue]:
        found: dict[str, AttributeValue] = {
            "gen_ai.operation.name": self.operation,
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": self.model,
        }
        if self.address:
            found["server.address"] = self.address
            if self.port is not None:
                found["server.port"] = self.port
        return found


def inference_of(dialect: str, model: str, base_url: str = "") -> Inference:
    """Return the call of ``model`` for a dialect's or provider's name. Raises UsageError for an unknown name."""
    return Inference(model=attribute_text(model), **_server(dialect, base_url))


@lru_cache(maxsize=256)  # uncached, this takes a tenth of the time of a request that is not sampled
def _server(dialect: str, base_url: str) -> Mapping[str, Any]:
    spoken, provider = source_named(dialect)
    called = (provider.gen_ai_provider or provider.name) if provider is not None else spoken.gen_ai_provider
    url = urlsplit(base_url)
    port = url.port or {"https": 443, "http": 80}.get(url.scheme)
    return {
        "provider": called or spoken.name,
        "operation": spoken.gen_ai_operation,
        "address": url.hostname or "",
        "port": port if url.hostname else None,
    }


@define
class SeenEvents:
    """Collects from a response's events the facts that its span and metrics need."""

    started: ResponseStarted | None = None
    usage: UsageReported | None = None
    stops: list[ResponseFinished] = field(factory=list)
    spoken: bool = False  #: some output was received
    failed: ProviderFailed | None = None
    clean: bool | None = None  #: whether the response ended well; None: its end was not received

    def feed(self, events: Sequence[Event]) -> None:
        for event in events:
            if type(event) in OUTPUT:
                self.spoken = True
            elif isinstance(event, ResponseStarted):
                self.started = event
            elif isinstance(event, UsageReported):
                self.usage = event if event.counts else self.usage
            elif isinstance(event, ResponseFinished):
                self.stops.append(event)
            elif isinstance(event, ProviderFailed):
                self.failed = event
            elif isinstance(event, StreamEnded):
                self.clean = event.clean


def start_inference(
    tracer: Tracer, inference: Inference, context: Context | None = None, *, started_ns: int | None = None
) -> Span:
    """Start the span of a call, in ``context`` (None: the current one), at ``started_ns`` of the epoch (None: now)."""
    return tracer.start_span(
        inference.name, context, SpanKind.CLIENT, attributes=inference.attributes, start_time=started_ns
    )


def describe_request(span: Span, request: Request, *, stream: bool) -> None:
    """Set the attributes of a request, except its messages."""
    if not span.is_recording():
        return
    options = request.options
    effort, output = None if options.thinking is None else options.thinking.effort, options.output
    found: dict[str, AttributeValue | None] = {
        "gen_ai.request.stream": stream or None,
        "gen_ai.request.max_tokens": options.max_tokens,
        "gen_ai.request.temperature": options.temperature,
        "gen_ai.request.top_p": options.top_p,
        "gen_ai.request.top_k": options.top_k,
        "gen_ai.request.seed": options.seed,
        "gen_ai.request.frequency_penalty": options.frequency_penalty,
        "gen_ai.request.presence_penalty": options.presence_penalty,
        "gen_ai.request.stop_sequences": tuple(map(attribute_text, options.stop)) or None,
        "gen_ai.request.choice.count": options.choices if options.choices != 1 else None,
        "gen_ai.request.reasoning.level": None if effort is None else attribute_text(effort),
        "gen_ai.output.type": None if output is None else "text" if output.kind == "text" else "json",
    }
    span.set_attributes({name: value for name, value in found.items() if value is not None})


def end_inference(
    span: Span,
    answered: SeenEvents | StreamReport,
    *,
    conventions: names.Conventions,
    error_type: str = "",
    ending: str = "",
    first_output_s: float | None = None,
) -> None:
    """Set the attributes of a call's end, with the names of ``conventions``, and end its span.

    ``error_type`` is one word for a failure. ``ending`` says why the reader left, which is not a failure (observe.md O6). If
    both are empty, the response is complete. ``first_output_s``: seconds until the first output.
    """
    if span.is_recording():
        found = _answer_attributes(answered, conventions, is_whole=not error_type and not ending)
        if first_output_s is not None:
            found["gen_ai.response.time_to_first_chunk"] = first_output_s
        if ending:
            found[names.ENDING] = ending
        if error_type:
            found[names.ERROR_TYPE] = error_type
            span.set_status(Status(StatusCode.ERROR))
        span.set_attributes(found)
    span.end()


def _answer_attributes(
    answered: SeenEvents | StreamReport, conventions: names.Conventions, *, is_whole: bool
) -> dict[str, AttributeValue]:
    """Return the known attributes. Unknown values are left out: no 0 for uncounted tokens."""
    found: dict[str, AttributeValue] = {}
    if answered.started is not None:
        if answered.started.id:
            found["gen_ai.response.id"] = attribute_text(answered.started.id)
        if answered.started.model:
            found["gen_ai.response.model"] = attribute_text(answered.started.model)
    if answered.usage is not None:
        for count, name in conventions.usage.items():
            tokens: int | None = getattr(answered.usage, count)
            if tokens is not None:
                found[name] = tokens
    if reasons := finish_reasons(answered.stops, is_whole=is_whole):
        found["gen_ai.response.finish_reasons"] = reasons
    return found


def finish_reasons(stops: Sequence[ResponseFinished], *, is_whole: bool) -> tuple[str, ...]:
    """Return the stop reasons of the choices in their order; ``error`` if an incomplete response has none."""
    reasons = tuple(stop.reason for stop in sorted(stops, key=lambda stop: stop.choice))
    return reasons if reasons or is_whole else (names.NO_REASON,)


# -- metrics -----------------------------------------------------------------------------------------------------------


Attributes: TypeAlias = Mapping[str, AttributeValue]
_Record: TypeAlias = Callable[[float, Attributes], None]


class Instruments:
    """The instruments of one version of the conventions."""

    def __init__(self, meter: Meter, conventions: Conventions) -> None:
        self._conventions = conventions
        self._records: dict[str, _Record] = {}
        for metric in conventions.metrics:
            if metric.name not in self._records:
                self._records[metric.name] = _made(meter, metric)

    def call(
        self,
        attributes: Attributes,
        usage: UsageReported | None,
        *,
        seconds: float,
        error_type: str = "",
        first_output_s: float | None = None,
    ) -> None:
        """Record a call that is over. ``first_output_s`` is for streams. Unknown token counts are not recorded as 0."""
        names = self._conventions
        self._record(names.duration, seconds, _failed(attributes, error_type))
        if first_output_s is not None:
            self._record(names.first_chunk, first_output_s, attributes)
        for metric in names.tokens:
            tokens: int | None = getattr(usage, metric.count, None)
            if tokens is not None:
                self._record(metric, tokens, {**attributes, **metric.attributes})

    def chunk(self, attributes: Attributes, seconds: float) -> None:
        self._record(self._conventions.chunk_time, seconds, attributes)

    def request(
        self,
        attributes: Attributes,
        *,
        seconds: float,
        error_type: str = "",
        first_output_s: float | None = None,
        token_s: float | None = None,
    ) -> None:
        """Record a request to the gateway that is over; for a complete stream also its time to first output and per token."""
        names = self._conventions
        self._record(names.server_duration, seconds, _failed(attributes, error_type))
        if first_output_s is not None:
            self._record(names.server_first_token, first_output_s, attributes)
        if token_s is not None:
            self._record(names.server_token_time, token_s, attributes)

    def _record(self, metric: Metric, value: float, attributes: Attributes) -> None:
        self._records[metric.name](value, attributes)


def _made(meter: Meter, metric: Metric) -> _Record:
    if not metric.bounds:
        return meter.create_counter(metric.name, metric.unit, metric.description).add
    return meter.create_histogram(
        metric.name, metric.unit, metric.description, explicit_bucket_boundaries_advisory=metric.bounds
    ).record


def _failed(attributes: Attributes, error_type: str) -> Attributes:
    return {**attributes, ERROR_TYPE: error_type} if error_type else attributes
