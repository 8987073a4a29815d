"""Spans in memory, for tests."""

from __future__ import annotations

from attrs import define, field
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler


class _Counting(SpanProcessor):
    """Counts spans as they begin and end."""

    def __init__(self) -> None:
        self.started = self.ended = 0

    def on_start(self, span, parent_context=None):
        self.started += 1

    def on_end(self, span):
        self.ended += 1


@define
class Spans:
    """A provider whose spans are kept."""

    sampler: Sampler = ALWAYS_ON
    provider: TracerProvider = field(init=False)
    counts: _Counting = field(init=False, factory=_Counting)
    _kept: InMemorySpanExporter = field(init=False, factory=InMemorySpanExporter)

    def __attrs_post_init__(self) -> None:
        self.provider = TracerProvider(sampler=self.sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(self.counts)
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    @property
    def tracer(self):
        return self.provider.get_tracer("test")

    @property
    def ended(self) -> list[ReadableSpan]:
        return list(self._kept.get_finished_spans())

    @property
    def one(self) -> ReadableSpan:
        (span,) = self.ended
        return span
