"""Convert a whole response to events, for a client that asked for a stream while the provider sent none.

``collect`` turns these events into the same response again.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamkit.conversation.messages import Media, Part, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.errors import check_type
from streamkit.events import (
    Aside,
    ChoiceStarted,
    Event,
    MediaGenerated,
    OutputChecked,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)


def part_of(event: MediaGenerated) -> Media:
    """Return an event as a part of its choice."""
    media = Media(event.kind, event.media_type, event.data, event.url, event.file_id, event.name)
    media.extras, media.block, media.native = event.extras, event.block, event.native
    return media


def event_of(media: Media, choice: int) -> MediaGenerated:
    """Return a part of a choice as an event."""
    return MediaGenerated(
        media.kind,
        media.media_type,
        media.data,
        media.url,
        media.file_id,
        media.name,
        choice,
        media.block,
        media.extras,
        media.native,
    )


def response_events(response: Response) -> list[Event]:
    """Return the events of a whole response as one batch for ``encode``.

    If the response is not ``clean``, the last event is a ``StreamEnded`` with ``clean=False``. ``encode`` then writes
    an error instead of a normal end of the stream.
    """
    check_type("response", response, Response, "decode_response(body, dialect) or await collect(source, dialect)")
    started = ResponseStarted(response.id, response.model, response.created, response.vendor, response.extras or None)
    # all choices begin first: a stage may end the response after the last choice that it has seen
    events: list[Event] = [started, *(ChoiceStarted(choice.index, choice.role) for choice in response.choices)]
    for choice in response.choices:
        for part in choice.parts:
            events += _events_of(part, choice.index)
        for call in choice.tool_calls:
            events.append(
                ToolCallFinished(
                    call.index, call.id, call.name, call.arguments, choice.index, call.kind, call.ended, call.verdict
                )
            )
        if choice.verdict is not None:
            events.append(OutputChecked(choice.verdict, choice.index))
    if response.usage is not None:
        events.append(response.usage)
    if response.error is not None:
        events.append(response.error)
    events += [
        ResponseFinished(choice.stop_reason, choice.native_stop_reason, choice.index, choice.stop_sequence)
        for choice in response.choices
        if choice.stop_reason is not None
    ]
    return [*events, StreamEnded(response.clean)]


def _events_of(part: Part, choice: int) -> Iterator[Event]:
    match part:
        case Text():
            if part.text:
                yield TextDelta(part.text, choice, part.block)
            if part.signature is not None:
                yield ReasoningSignature(part.signature.blob, part.signature.vendor, choice, part.block, "text")
        case Refusal():
            yield RefusalDelta(part.text, choice, part.block)
        case Reasoning():
            if part.text:
                yield ReasoningDelta(part.text, choice, part.block, part.kind)
            if part.signature is not None:
                yield ReasoningSignature(part.signature.blob, part.signature.vendor, choice, part.block)
        case RedactedReasoning():
            yield ReasoningOpaque(part.opaque.blob, part.opaque.vendor, choice, part.block)
        case ToolCall():
            yield ToolCallStarted(
                part.index,
                part.id,
                part.name,
                choice,
                part.kind,
                part.extras,
                part.signature,
                part.id_made,
                part.qualified,
            )
            if part.arguments:
                yield ToolCallArguments(part.index, part.arguments, choice)
        case Aside():
            yield part
        case Media():
            yield event_of(part, choice)
        case _:
            raise TypeError(f"a response can't contain a {type(part).__name__}")
