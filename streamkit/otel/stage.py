"""``traced``: a stage that observes one response and reports it to OpenTelemetry.

Source: observe.md F15 to F20, F38, O7.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Final, TypeAlias

from streamkit.conversation.messages import Request
from streamkit.events import Event
from streamkit.otel.api import Context, Span, Tracer, get_tracer
from streamkit.otel.content import AnswerContent, Content, describe_content
from streamkit.otel.conventions import CONVENTIONS, Conventions, SemConv
from streamkit.otel.inference import SeenEvents, describe_request, end_inference, inference_of, start_inference

SCOPE: Final = "streamkit"  #: the name of the instrumentation scope of spans and metrics
#: Why a stream was not read to its end: its task was cancelled, or its reader stopped.
CANCELLED, CLOSED = "cancelled", "closed"
#: How a stream failed that ended by itself: too early, or with an error of the provider.
CUT, FAILED = "cut", "error_event"
Traced: TypeAlias = Callable[[AsyncIterable[list[Event]]], AsyncGenerator[list[Event], None]]


def traced(
    dialect: str,
    *,
    model: str,
    base_url: str = "",
    request: Request | None = None,
    started_ns: int | None = None,
    context: Context | None = None,
    tracer: Tracer | None = None,
    semconv: SemConv = "1.41",
    content: Content | None = None,
) -> Traced:
    """Return a stage that passes batches of events on unchanged, and opens a CLIENT span ``chat {model}`` for them.

    Place it after ``check_json``. The span begins with the first read, or at ``started_ns`` (nanoseconds since the epoch), the
    time when the request was sent. Its parent is ``context``, or the context that is current at the first read. It ends once,
    with the stream or when the reader leaves. It never becomes current, so it is not the parent of the reader's spans.

    ``dialect`` is the name of a dialect or a provider (``"deepseek"``), and ``base_url`` the server's URL. ``request`` is used
    for the attributes ``gen_ai.request.…``. Prompts and responses are recorded only with ``content``. The stage may be used in
    many pipes; each use gets its own span. Raises UsageError for an unknown dialect.

    Exceptions of the stream pass through, and the name of their type becomes ``error.type``. A stream without its end gets
    ``cut``, and one with a provider's error ``error_event``. A reader that leaves is not an error: ``streamkit.ending`` is
    then ``closed`` or ``cancelled``. Source: observe.md O3 to O7.
    """
    inference = inference_of(dialect, model, base_url)
    tracing = tracer or get_tracer(SCOPE, schema_url=CONVENTIONS[semconv].schema_url)

    async def trace(source: AsyncIterable[list[Event]]) -> AsyncGenerator[list[Event], None]:
        begun, seen, raised = time.perf_counter(), SeenEvents(), ""
        first_s: float | None = None
        span = start_inference(tracing, inference, context, started_ns=started_ns)
        if request is not None:
            describe_request(span, request, stream=True)
            if content is not None:
                describe_content(span, request, content)
        answer = AnswerContent(dialect, content.chars) if content is not None and span.is_recording() else None
        try:
            async for batch in source:
                seen.feed(batch)
                if answer is not None:
                    answer.feed(batch)
                if seen.spoken and first_s is None:
                    first_s = _since(started_ns, begun)
                yield batch
            raised = "" if seen.clean else CUT
        except asyncio.CancelledError:
            raised = CANCELLED
            raise
        except Exception as error:
            raised = type(error).__name__
            raise
        finally:
            if content is not None and answer is not None:
                span.set_attributes(content.of_answer(answer.finish(), is_cut=answer.is_cut))
            _end(span, seen, raised, first_s, CONVENTIONS[semconv])

    return trace


def _since(started_ns: int | None, begun: float) -> float:
    return time.perf_counter() - begun if started_ns is None else max(0.0, (time.time_ns() - started_ns) / 1e9)


def _end(span: Span, seen: SeenEvents, raised: str, first_s: float | None, conventions: Conventions) -> None:
    error_type, ending = "", ""
    if seen.failed is not None:
        error_type = FAILED
    elif seen.clean:
        pass  # the response is complete, even if its reader left after the end
    elif raised == CANCELLED:
        ending = CANCELLED
    elif raised:
        error_type = raised
    elif seen.clean is False:
        error_type = CUT
    else:
        ending = CLOSED
    end_inference(span, seen, conventions=conventions, error_type=error_type, ending=ending, first_output_s=first_s)
