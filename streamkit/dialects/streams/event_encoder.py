"""What every encoder would otherwise write again: the loop over events, the end without an end, what is withheld."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, NoReturn

import orjson

from streamkit.conversation.messages import Choice, Response, ToolCall
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.carrier import FIRST, Carrier
from streamkit.dialects.streams.client_calls import WAITS, waiting_message
from streamkit.dialects.streams.compactions import FORMS
from streamkit.dialects.streams.encode_stage import EncoderLink
from streamkit.dialects.streams.media import own_media
from streamkit.dialects.streams.spoken import SPOKEN
from streamkit.dialects.vocabulary.error_bodies import BROKEN
from streamkit.errors import StreamError, StreamkitError
from streamkit.events import (
    OUTPUT,
    Aside,
    ChoiceStarted,
    Event,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StopReasonSeen,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.framing.frame import Frame, escape_separators
from streamkit.limits import Limits
from streamkit.report import StreamReport, Withheld
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import check_arguments
from streamkit.tool_calls.failed_turns import FAILING, failure_in

#: The method of each class of event.
METHODS: Mapping[type, str] = {
    ResponseStarted: "response_started",
    ChoiceStarted: "choice_started",
    TextDelta: "text",
    RefusalDelta: "refusal",
    ReasoningDelta: "reasoning",
    ReasoningSignature: "signature",
    ReasoningOpaque: "opaque",
    ToolCallStarted: "call_started",
    ToolCallArguments: "call_arguments",
    ToolCallDoomed: "pass_over",
    ToolCallFinished: "call_finished",
    UsageReported: "usage_reported",
    Aside: "beside",
    MediaGenerated: "media",
    ProviderFailed: "failed",
    ResponseFinished: "concluded",
    StreamEnded: "stream_ended",
}


class EventEncoder(EncoderLink):
    """Events to ``self.write``, by one method for each class of event."""

    #: Of the class, not of each encoder: an idle pipe is 2 KiB smaller.
    _handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]]
    #: Whose asides are written as they came; those of others may be carried into the dialect's own forms.
    native: ClassVar[str] = ""
    #: Whose extras and media are written as they came.
    vendor: ClassVar[str] = ""

    # Of the class until they change: an encoder is made in two thirds of the time.
    _carrier: Carrier | None = None
    _spoke = False  # text, a refusal or a call came
    _vendor = ""  # of the response
    _usage: UsageReported | None = None

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        self.encoding = encoding
        self.report = report
        self.ended = False  # StreamEnded, or an error frame, was written
        self.parts: list[bytes] = []

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._handlers = {kind: getattr(cls, name) for kind, name in METHODS.items()}

    # What a dialect's encoder defines: one method an event.

    def response_started(self, event: ResponseStarted, /) -> None:
        """Write the start of the response."""
        raise NotImplementedError

    def choice_started(self, event: ChoiceStarted, /) -> None:
        """Write the start of a choice: nothing, where the dialect has no word for it."""

    def text(self, event: TextDelta, /) -> None:
        """Write a piece of text."""
        raise NotImplementedError

    def refusal(self, event: RefusalDelta, /) -> None:
        """Write a piece of a refusal."""
        raise NotImplementedError

    def reasoning(self, event: ReasoningDelta, /) -> None:
        """Write a piece of reasoning."""
        raise NotImplementedError

    def signature(self, event: ReasoningSignature, /) -> None:  # noqa: ARG002 - for those that override it
        """A signature: a loss, unless the dialect has a place for it."""
        self.lose("reasoning_signature")

    def opaque(self, event: ReasoningOpaque, /) -> None:  # noqa: ARG002 - for those that override it
        """Reasoning that only its vendor can read: a loss, unless the dialect has a place for it."""
        self.lose("reasoning_opaque")

    def call_started(self, event: ToolCallStarted, /) -> None:
        """Write the start of a call."""
        raise NotImplementedError

    def call_arguments(self, event: ToolCallArguments, /) -> None:
        """Write a fragment of a call's arguments: nothing, where calls are held until they have ended."""

    def call_finished(self, event: ToolCallFinished, /) -> None:
        """Write the end of a call, or the whole call."""
        raise NotImplementedError

    def media_form(self, _media: MediaGenerated, /) -> Sequence[Aside]:
        """The dialect's own asides that say another vendor's media; none where it has no place for them."""
        return ()

    def aside(self, event: Aside, /) -> None:
        """Write what only the encoder's ``vendor`` knows, or count it as lost; without one, that of any vendor."""
        raise NotImplementedError

    def finished(self, event: ResponseFinished, /) -> None:
        """Take note that a choice finished."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write what is held because the stream failed."""

    def error(self, event: ProviderFailed) -> None:
        """Write the dialect's error frame."""
        raise NotImplementedError

    def terminate(self) -> None:
        """Write the dialect's success terminator."""
        raise NotImplementedError

    def beside(self, event: Aside) -> None:
        """Write an aside, in the dialect's own form if it has one. Raises StreamError if the response waits for the client."""
        if event.type == WAITS and event.vendor != self.native:
            raise StreamError(waiting_message(event.raw))
        vendor = event.vendor
        if vendor != self.native and vendor in FORMS:  # it may become what it is in the dialect's own forms
            is_carried = self._carrier is not None or event.type in FIRST
        else:
            is_carried = vendor != self.vendor and (vendor, event.type) in SPOKEN
        if is_carried:
            if self._carrier is None:
                self._carrier = Carrier(self.native, self.encoding.limits, self.report)
            self._hand_on(self._carrier.take(event))
        elif self.vendor and vendor != self.vendor:
            self.report.lose(event.kind)
        else:
            self.aside(event)

    def media(self, event: MediaGenerated) -> None:
        """Write what the model made, in the dialect's own form."""
        for aside in own_media(event, self.vendor, self.media_form, self.report):
            self.aside(aside)

    def _hand_on(self, events: Sequence[Event]) -> None:
        for found in events:
            if not isinstance(found, Aside):
                self._handlers[type(found)](self, found)
            elif self.vendor and found.vendor != self.vendor:
                self.lose(found.kind)
            else:
                self.aside(found)

    def concluded(self, event: ResponseFinished) -> None:
        """The end of a choice, and before it what was carried and waited for more."""
        if self._carrier is not None:
            self._hand_on(self._carrier.finish(spoke=self._spoke))
            event = self._carrier.finished(event)
        self.finished(event)

    # What they share.

    @property
    def usage(self) -> UsageReported | None:
        """The latest token counts, for the end; None where none came."""
        return self._usage

    def usage_reported(self, event: UsageReported) -> None:
        """Keep the token counts, which stand at the end."""
        self._usage = event

    def response_extras(self, event: ResponseStarted) -> Mapping[str, Any]:
        """Members of a response that only its vendor knows: all for a client of that vendor, else none and a loss."""
        self._vendor = event.vendor
        return self.own_extras(event.extras, "response_fields") if event.extras else {}

    def own_extras(self, extras: Mapping[str, Any] | None, loss: str = "metadata") -> Mapping[str, Any]:
        """Members that only the vendor of the response knows: all for a client of that vendor, else none and a loss."""
        if extras and self._vendor != self.vendor:
            self.lose(loss)
            return {}
        return extras or {}

    def push(self, event: Event, /) -> None:
        """Write one event. Nothing follows an error frame or a terminator."""
        if self.ended:
            return
        kind = type(event)
        if not self._spoke and kind in SAYING:
            self._speaks(event)
        try:
            self._handlers[kind](self, event)
        except KeyError as error:
            self._refuse(event, error)

    def _speaks(self, event: Any) -> None:
        """Note whether an event says something that is not blank."""
        text = getattr(event, "text", None)
        self._spoke = text is None or not text.isspace()

    def _refuse(self, event: Any, error: KeyError) -> NoReturn:
        """Raise what a missing key means: an event that nobody writes, or a fault of the method that writes it."""
        if type(event) in self._handlers:
            raise error
        raise TypeError(f"encode takes the events of accumulate_tool_calls, not {quoted(event)}") from None

    def push_end(self) -> None:
        if not self.ended:  # a stage dropped StreamEnded: without it nobody said that the stream was whole
            self.report.failed(StreamError("a stage dropped the StreamEnded event"))
            self.end(StreamEnded(clean=False, reason="no StreamEnded event came"))

    def written(self) -> bytes:
        """What was written since this was asked last."""
        output = b"".join(self.parts)
        self.parts.clear()
        return output if output.isascii() else self.joined([output])

    # An encoder that is driven alone, in batches.

    def feed(self, events: list[Event], /) -> bytes:  # type: ignore[override] # bytes, not items
        try:
            self.push_batch(events)
            self.end_read()
        except StreamError as error:
            self.fault = error
        return self.written()

    def finish(self) -> bytes:  # type: ignore[override] # as above
        super().finish()
        return self.written()

    def abandon(self) -> bytes:  # type: ignore[override] # as above
        self.flush()
        return self.written()

    def fail(self, error: Exception) -> bytes:
        self.failed(failure_from(error))
        return self.written()

    def follow(self, start: ResponseStarted | None, last: Frame, begun: Collection[str]) -> None:
        """Frames passed without this encoder. Overridden where an error frame names its response, its place or its calls."""

    def pass_over(self, event: Event) -> None:
        """An event for the application, of which no dialect speaks."""

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def joined(self, parts: list[bytes]) -> bytes:
        """What one call wrote, for clients that cut lines as Unicode does. Overridden where nobody cuts at lines."""
        return escape_separators(b"".join(parts))

    def failed(self, event: ProviderFailed) -> None:
        """The provider failed: what is held, then the error frame. What follows is not written."""
        if not self.ended:
            self._give_up()
            self.flush()
            self.ended = True
            self.error(event)

    def _give_up(self) -> None:
        """What was carried and waits is for the report alone: the answer is not whole."""
        if self._carrier is not None:
            self._carrier.abandon()

    def stream_ended(self, event: StreamEnded) -> None:
        if self.ended:
            return
        if not event.clean:
            self._give_up()
            self.flush()
        self.end(event)

    def end(self, event: StreamEnded) -> None:
        """Write the success terminator, or the error frame of a stream that was cut."""
        self.ended = True
        if event.clean:
            self.terminate()
            self.report.completed = True
        else:
            reason = event.reason or "the stream ended before its completion point"
            self.error(ProviderFailed("truncated", f"stream truncated: {reason}", code="stream_truncated"))

    def withhold(self, call: ToolCallFinished, kind: str = "call_withheld") -> None:
        """Count the loss of a call and keep its text in the report."""
        self.report.withhold(kind, call.id, call.name, call.arguments)

    def lose(self, kind: str) -> None:
        self.report.lose(kind)


def stop_word(found: tuple[str, bool], stop_sequence: str | None, report: StreamReport) -> str:
    """A dialect's word for a stop reason; ``found`` has the word, and whether it says less than the reason.

    That it does is a counted loss, and so is the stop sequence, for which such a dialect has no place.
    """
    word, is_less = found
    if is_less:
        report.lose("stop_reason")
    if stop_sequence is not None:
        report.lose("stop_sequence")
    return word


def object_arguments(call: ToolCallFinished | ToolCall, limits: Limits, report: StreamReport) -> bytes | None:
    """The arguments of a call for a dialect that carries an object; None for text that must not be written as one.

    A complete text stays as it is, an empty one is ``{}``, one that is no object is wrapped under one key. A truncated one is
    for no client, which would run it (design.md §4, seeds.md S4).
    """
    if call.kind == "custom" and call.ended:
        report.lose("custom_tool_wrapped")
        return wrapped_input(call.arguments).encode()
    verdict = call.verdict or check_arguments(call.arguments, depth=limits.json_depth)
    if verdict.kind == "truncated" or not call.ended:
        return None
    if not call.arguments.strip():
        return b"{}"  # whatever the verdict: a schema may refuse an empty object, too
    if verdict.kind in {"malformed", "not_an_object"}:
        report.lose("arguments_wrapped")
        return wrapped_arguments(call.arguments)
    # raw line ends can stand between tokens only; clients split lines there
    return call.arguments.strip().replace("\r", " ").replace("\n", " ").encode()


def failure_from(error: Exception) -> ProviderFailed:
    """What broke the reading, as a client is told it: no word of the stream, nor of errors that are not ours."""
    if isinstance(error, StreamkitError):
        return ProviderFailed(error.type, error.summary, code=BROKEN)
    return ProviderFailed("server", "the stream could not be processed", code="stream_failed")


def failure_of(response: Response, report: StreamReport) -> ProviderFailed | None:
    """Why a response can't be written as an answer; None if it can.

    A whole response is an answer or an error, so what the model had said before it failed is a counted loss; the calls are in
    the report.
    """
    failed = next((choice for choice in response.choices if choice.stop_reason in FAILING), None)
    if response.clean and response.error is None and failed is None:
        return None
    for choice in response.choices:
        if choice.parts:
            report.lose("answer_withheld")
        for call in choice.tool_calls:
            report.keep(Withheld("answer_withheld", call.id, call.name or None, call.arguments))
    if response.error is not None:
        return response.error
    if response.clean and failed is not None:
        reason = failed.stop_reason or "error"
        return failure_in(StopReasonSeen(reason, failed.native_stop_reason or reason))
    return ProviderFailed("truncated", "the response was cut before its end", code="stream_truncated")


#: Events that say something to the user, or call a tool of the client.
SAYING = frozenset({TextDelta, RefusalDelta, ToolCallStarted})


#: Events that begin a choice if nothing of it came before.
BEGINNING = OUTPUT | {ChoiceStarted, ToolCallArguments, ToolCallDoomed, ToolCallFinished, ResponseFinished}


class OneChoiceEncoder(EventEncoder):
    """An encoder of a dialect with one choice: the first that comes is written, and no method is handed another's events."""

    _choice: int | None = None
    _dropped: frozenset[int] = frozenset()

    def push(self, event: Event, /) -> None:
        if self.ended:
            return
        kind = type(event)
        if kind in BEGINNING:
            if event.choice != self._choice and not self._begins(event.choice):  # type: ignore[union-attr] # above
                return
            if not self._spoke and kind in SAYING:
                self._speaks(event)
        elif kind is Aside and event.choice in self._dropped:  # type: ignore[union-attr] # it has one
            return
        try:
            self._handlers[kind](self, event)
        except KeyError as error:
            self._refuse(event, error)

    def _begins(self, choice: int) -> bool:
        """Whether a choice that did not come before is the one that is written; the loss of another is counted once."""
        if self._choice is None:
            self._choice = choice
            return True
        if choice not in self._dropped:
            self._dropped |= {choice}
            self.lose("extra_choice")
        return False


def only_choice(response: Response, report: StreamReport) -> Choice:
    """The choice of a whole response that a dialect with one choice writes; the loss of each other is counted."""
    if len(response.choices) > 1:
        report.lose("extra_choice", len(response.choices) - 1)
    return response.choices[0] if response.choices else Choice(stop_reason="stop")


RAW_ARGUMENTS = "_raw_arguments"


def wrapped_arguments(text: str) -> bytes:
    """Text that is no JSON object, as one object with a single key (seeds.md S4)."""
    return orjson.dumps({RAW_ARGUMENTS: text})


def wrapped_input(text: str) -> str:
    """The free text of a custom tool as the arguments of a function (dialects.md §1.8)."""
    return orjson.dumps({"input": text}).decode()


def function_call(call: ToolCallFinished | ToolCall, call_id: str | None, name: str) -> dict[str, Any]:
    """A call as one of ``tool_calls``, a custom tool's too. Readers parse the arguments, and "" is no JSON (quirks.md 42)."""
    text = wrapped_input(call.arguments) if call.kind == "custom" else call.arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text if text.strip() else "{}"}}


def encode_time(seconds: float) -> str:
    """A time as RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
