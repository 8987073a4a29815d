"""What all stream encoders share: the loop over events, the end of interrupted streams, and withheld calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, NoReturn

import orjson

from streamkit.conversation.media import own_media
from streamkit.conversation.messages import Choice, Response, ToolCall
from streamkit.dialects.members.values import name_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.approvals import ASKED
from streamkit.dialects.streams.carrier import FIRST, Carrier
from streamkit.dialects.streams.client_calls import WAITS, waiting_message
from streamkit.dialects.streams.compactions import FORMS
from streamkit.dialects.streams.encode_stage import EncoderLink
from streamkit.dialects.streams.spoken import SPOKEN
from streamkit.dialects.vocabulary.error_bodies import BROKEN, TRUNCATED
from streamkit.errors import StreamError, StreamkitError, UsageError
from streamkit.events import (
    OUTPUT,
    Aside,
    ChoiceStarted,
    Event,
    MediaGenerated,
    OutputChecked,
    OutputDoomed,
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
from streamkit.tool_calls.ending import FAILING, failure_in

#: The encoder's method for each class of event.
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
    ToolCallDoomed: "ignore",
    ToolCallFinished: "call_finished",
    OutputDoomed: "ignore",
    OutputChecked: "ignore",
    UsageReported: "usage_reported",
    Aside: "any_aside",
    MediaGenerated: "media",
    ProviderFailed: "failed",
    ResponseFinished: "concluded",
    StreamEnded: "stream_ended",
}


class EventEncoder(EncoderLink):
    """Writes events with ``self.write``. There is one method for each class of event."""

    #: For each class of event, its method. It is set on the class, because an idle pipe is then 2 KiB smaller.
    _handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]]
    #: The vendor whose asides are written unchanged. Asides of other vendors may be translated to the dialect's forms.
    native: ClassVar[str] = ""
    one_text: ClassVar[bool] = False  #: whether clients of the dialect join all text of a response
    vendor: ClassVar[str] = ""  #: the vendor whose extra members and media are written unchanged

    # These are class attributes until an instance sets them, so that an encoder is made in two thirds of the time.
    _carrier: Carrier | None = None
    _spoke = False  # whether text, a refusal or a call was written
    _vendor = ""  # the vendor of the response
    _usage: UsageReported | None = None

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        self.encoding = encoding
        self.report = report
        self.ended = False  # whether the terminator or an error frame was written
        self.parts: list[bytes] = []

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._handlers = {kind: getattr(cls, name) for kind, name in METHODS.items()}

    # Subclasses define one method for each class of event.

    def response_started(self, event: ResponseStarted, /) -> None:
        """Write the start of the response."""
        raise NotImplementedError

    def choice_started(self, event: ChoiceStarted, /) -> None:
        """Write the start of a choice. Does nothing by default, for dialects without such a start."""

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
        """Write a signature. By default it is counted as lost."""
        self.lose("reasoning_signature")

    def opaque(self, event: ReasoningOpaque, /) -> None:  # noqa: ARG002 - for those that override it
        """Write reasoning that only its vendor can read. By default it is counted as lost."""
        self.lose("reasoning_opaque")

    def call_started(self, event: ToolCallStarted, /) -> None:
        """Write the start of a call."""
        raise NotImplementedError

    def call_arguments(self, event: ToolCallArguments, /) -> None:
        """Write a fragment of a call's arguments. Does nothing by default, for dialects that hold a call until it ended."""

    def call_finished(self, event: ToolCallFinished, /) -> None:
        """Write the end of a call, or the whole call."""
        raise NotImplementedError

    def media_form(self, _media: MediaGenerated, /) -> Sequence[Aside]:
        """Return asides of the dialect for media of another vendor; empty if the dialect cannot express them."""
        return ()

    def aside(self, event: Aside, /) -> None:
        """Write an aside of the encoder's ``vendor``, or count it as lost. Without a ``vendor``, write any aside."""
        raise NotImplementedError

    def finished(self, event: ResponseFinished, /) -> None:
        """Handle the end of a choice. Most dialects write it later, with the terminator."""
        raise NotImplementedError

    def flush(self) -> None:
        """Write the held content, because the stream failed and an error frame follows."""

    def error(self, event: ProviderFailed) -> None:
        """Write the dialect's error frame."""
        raise NotImplementedError

    def terminate(self) -> None:
        """Write the dialect's success terminator."""
        raise NotImplementedError

    def any_aside(self, event: Aside) -> None:
        """Write an aside, in the dialect's form if it has one. Raises StreamError if the response waits for the client."""
        if event.type == WAITS and event.vendor != self.native:
            raise StreamError(waiting_message(event.raw))
        vendor = event.vendor
        if vendor != self.native and vendor in FORMS:  # the target dialect may be able to express this aside
            is_carried = self._carrier is not None or event.type in FIRST
        else:
            is_carried = vendor != self.vendor and (event.type == ASKED or (vendor, event.type) in SPOKEN)
        if is_carried:
            if self._carrier is None:
                self._carrier = Carrier(self.native, self.encoding.limits, self.report, one_text=self.one_text)
            self._write_carried(self._carrier.take(event))
        elif self.vendor and vendor != self.vendor:
            self.report.lose(event.kind, what=name_of(event))
        else:
            self.aside(event)

    def media(self, event: MediaGenerated) -> None:
        """Write media that the model made, in the dialect's form."""
        for aside in own_media(event, self.vendor, self.media_form, self.report):
            self.aside(aside)

    def _write_carried(self, events: Sequence[Event]) -> None:
        for found in events:
            if not isinstance(found, Aside):
                self._handlers[type(found)](self, found)
            elif self.vendor and found.vendor != self.vendor:
                self.report.lose(found.kind, what=name_of(found))
            else:
                self.aside(found)

    def concluded(self, event: ResponseFinished) -> None:
        """Write the end of a choice, after the translated asides that waited for that end."""
        if self._carrier is not None:
            self._write_carried(self._carrier.finish(spoke=self._spoke))
            event = self._carrier.finished(event)
        self.finished(event)

    # The following methods are the same in all dialects.

    @property
    def usage(self) -> UsageReported | None:
        """The latest token counts, for the end; None if there are none."""
        return self._usage

    def usage_reported(self, event: UsageReported) -> None:
        self._usage = event

    def response_extras(self, event: ResponseStarted) -> Mapping[str, Any]:
        """Return the extra members of the response if its vendor is the encoder's; otherwise count them as lost."""
        self._vendor = event.vendor
        return self.own_extras(event.extras, "response_fields") if event.extras else {}

    def own_extras(self, extras: Mapping[str, Any] | None, loss: str = "metadata") -> Mapping[str, Any]:
        """Return extra members if the response is from the encoder's vendor; otherwise count them as lost."""
        if extras and self._vendor != self.vendor:
            self.lose(loss)
            return {}
        return extras or {}

    def push(self, event: Event, /) -> None:
        """Write one event. Nothing is written after an error frame or a terminator."""
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
        """Note whether an event contains something that is not blank."""
        text = getattr(event, "text", None)
        self._spoke = text is None or not text.isspace()

    def _refuse(self, event: Any, error: KeyError) -> NoReturn:
        """Raise the right error for a missing key: an unknown event, or a bug in the method that writes the event."""
        if type(event) in self._handlers:
            raise error
        raise TypeError(f"encode needs the events of accumulate_tool_calls, not {quoted(event)}") from None

    def push_end(self) -> None:
        if not self.ended:  # a stage dropped StreamEnded, so nothing shows that the stream is complete
            self.report.failed(StreamError("a stage dropped the StreamEnded event"))
            self.end(StreamEnded(clean=False, reason="no StreamEnded event was received"))

    def written(self) -> bytes:
        """Return the bytes written since the last call."""
        output = b"".join(self.parts)
        self.parts.clear()
        return output if output.isascii() else self.joined([output])

    # For an encoder that is driven alone, in batches.

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
        """Continue after forwarded frames. Overridden if an error frame names its response, its place or its calls."""

    def ignore(self, event: Event) -> None:
        """Ignore an event for the application that no dialect has."""

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def joined(self, parts: list[bytes]) -> bytes:
        """Return the output of one call, safe for clients that split lines at Unicode separators.

        Overridden for dialects whose clients do not split lines.
        """
        return escape_separators(b"".join(parts))

    def failed(self, event: ProviderFailed) -> None:
        """Write what is held and then the error frame, because the provider failed. Nothing is written after that."""
        if not self.ended:
            self._abandon_carried()
            self.flush()
            self.ended = True
            self.error(event)

    def _abandon_carried(self) -> None:
        """Report what the translation of asides holds, because the response is incomplete."""
        if self._carrier is not None:
            self._carrier.abandon()

    def stream_ended(self, event: StreamEnded) -> None:
        if self.ended:
            return
        if not event.clean:
            self._abandon_carried()
            self.flush()
        self.end(event)

    def end(self, event: StreamEnded) -> None:
        """Write the success terminator, or the error frame of an interrupted stream."""
        self.ended = True
        if event.clean:
            self.terminate()
            self.report.completed = True
        else:
            reason = event.reason or "the stream ended before its completion point"
            self.error(ProviderFailed("truncated", f"stream truncated: {reason}", code=TRUNCATED))

    def withhold(self, call: ToolCallFinished, kind: str = "call_withheld") -> None:
        """Count the loss of a call, and keep its text in the report."""
        self.report.withhold(kind, call.id, call.name, call.arguments)

    def lose(self, kind: str) -> None:
        self.report.lose(kind)


def stop_word(found: tuple[str, bool], stop_sequence: str | None, report: StreamReport) -> str:
    """Return a dialect's word for a stop reason. ``found`` has the word, and whether it expresses less than the reason.

    Count a loss if it does, and a loss for the stop sequence, because such dialects have no place for it.
    """
    word, is_less = found
    if is_less:
        report.lose("stop_reason")
    if stop_sequence is not None:
        report.lose("stop_sequence")
    return word


def object_arguments(call: ToolCallFinished | ToolCall, limits: Limits, report: StreamReport) -> bytes | None:
    """Return the arguments of a call for a dialect in which they are an object; None if the call must be withheld.

    Complete text is kept as it is, empty text becomes ``{}``, and text that is not an object is wrapped under one key.
    Truncated arguments are withheld, because a client would run the call (design.md §4, seeds.md S4).
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
    # outside of strings, line ends are only white space; clients would split lines at them
    return call.arguments.strip().replace("\r", " ").replace("\n", " ").encode()


def failure_from(error: Exception) -> ProviderFailed:
    """Return the failure to show to a client.

    It contains no text of the stream, nor of exceptions from other packages, nor of the mistakes of the server's program.
    """
    if isinstance(error, StreamkitError) and not isinstance(error, UsageError):
        return ProviderFailed(error.type, error.summary, code=BROKEN)
    return ProviderFailed("server", "the stream could not be processed", code="stream_failed")


def failure_of(response: Response, report: StreamReport) -> ProviderFailed | None:
    """Return the reason why a response must be written as an error; None if it can be written as a response.

    A whole response is a response or an error. So the text before a failure is counted as lost; its calls are in the report.
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
    return ProviderFailed("truncated", "the response was truncated", code=TRUNCATED)


#: Events that show something to the user, or call a tool of the client.
SAYING = frozenset({TextDelta, RefusalDelta, ToolCallStarted})


#: Events that begin a choice if nothing of this choice was seen before.
BEGINNING = OUTPUT | {
    ChoiceStarted,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    OutputDoomed,
    OutputChecked,
    ResponseFinished,
}


class OneChoiceEncoder(EventEncoder):
    """An encoder of a dialect with one choice. The first choice is written; methods never get events of other choices."""

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
        """Return whether a new choice is the one to write. The loss of another choice is counted once."""
        if self._choice is None:
            self._choice = choice
            return True
        if choice not in self._dropped:
            self._dropped |= {choice}
            self.lose("extra_choice")
        return False


def only_choice(response: Response, report: StreamReport) -> Choice:
    """Return the choice of a whole response that a dialect with one choice writes. Other choices are counted as lost."""
    if len(response.choices) > 1:
        report.lose("extra_choice", len(response.choices) - 1)
    return response.choices[0] if response.choices else Choice(stop_reason="stop")


RAW_ARGUMENTS = "_raw_arguments"


def wrapped_arguments(text: str) -> bytes:
    """Return text that is not a JSON object as an object with a single key (seeds.md S4: never write it as arguments)."""
    return orjson.dumps({RAW_ARGUMENTS: text})


def wrapped_input(text: str) -> str:
    """Return the free text of a custom tool as the arguments of a function (dialects.md §1.8: a function takes an object)."""
    return orjson.dumps({"input": text}).decode()


def function_call(call: ToolCallFinished | ToolCall, call_id: str | None, name: str) -> dict[str, Any]:
    """Return a call as an item of ``tool_calls``. Empty arguments become {}, since "" is not JSON (quirks.md 42)."""
    text = wrapped_input(call.arguments) if call.kind == "custom" else call.arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text if text.strip() else "{}"}}


def encode_time(seconds: float) -> str:
    """Return a time as RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
