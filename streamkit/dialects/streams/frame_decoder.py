"""What all stream decoders share: parsing JSON, joining split characters, and errors of a stream."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

import orjson
from attrs import evolve

from streamkit.dialects.members.values import (
    DEPTH,
    EVENT,
    TEXT_MEMBERS,
    UNREAD,
    Members,
    has_value,
    is_deep,
    number_in,
    others_of,
    text_in,
    text_of,
)
from streamkit.dialects.streams.alike import Alike, ManyReader, Said, finding, places_of, text_alone
from streamkit.dialects.streams.delta_template import learned, once, unpadded
from streamkit.dialects.streams.running_text import Texts
from streamkit.dialects.streams.split_characters import HalfCharacter, Held, held_by
from streamkit.dialects.vocabulary.error_bodies import (
    ENVELOPE,
    WRAPPERS,
    error_in,
    is_bare_error,
    members_of_error,
    provider_failed,
    wrapped_error,
)
from streamkit.dialects.vocabulary.stop_reasons import meaning
from streamkit.errors import BrokenFrame, IndexTooLarge, NeedsRepair, NotThisDialect, SecondResponse, TooManyEventValues
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ErrorType,
    LastFrameBroken,
    ProviderFailed,
    ReasoningDelta,
    ResponseStarted,
    StopReason,
    TextDelta,
    ToolCallDelta,
    UsageReported,
    WireEvent,
)
from streamkit.framing.frame import BOM, Frame, FrameRun, has_more_values
from streamkit.limits import Limits
from streamkit.machines import Link
from streamkit.report import REPAIRS, StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import refuse_constant
from streamkit.tool_calls.json_scanner import JSONScanner
from streamkit.tool_calls.value_text import ValueTexts, item_texts, lenient_text, plain_text, value_text

DONE = b"[DONE]"
#: A payload of at most this size cannot be nested too deeply: each level is two bytes. Gain: half the time of ``loads``.
FLAT_BYTES: Final = 2 * DEPTH
loads = orjson.loads

IN_TEXT: Final = Members("type", *TEXT_MEMBERS)
#: Names of a call's arguments: OpenAI's, Llama's, Claude's, Gemini's. Servers that wrap a model may keep the model's name.
ARGUMENTS: Final[Mapping[str, None]] = dict.fromkeys(("arguments", "parameters", "input", "args"))
FUNCTIONS: Final = {name: Members("name", name) for name in ARGUMENTS}  # what is read of a function, by that name
BARE_CALL: Final[Mapping[str, None]] = {"name": None, **ARGUMENTS}
ERROR_PAYLOAD: Final = Members(*ENVELOPE)
#: When to learn a template: at the fourth suitable payload, because short streams gain nothing, and at most once in
#: ``LEARN_EVERY`` frames: in a stream in which no template ever matches, learning costs a twentieth of the time.
LEARN_AT: Final = 4
LEARN_EVERY: Final = 16
#: The most templates that are kept at one time. Several are needed if texts alternate, as in interleaved calls.
MOST_LIKE: Final = 4
WINDOW: Final = 16  #: The number of payloads to compare at first, and after a payload that differed from the others.
#: Events of payloads that may contain nothing but a text.
TEXT_KINDS: Final = frozenset({TextDelta, ReasoningDelta, ToolCallDelta})
#: Events that are still emitted if a frame after the terminator causes them.
BEHIND_END: Final = frozenset({UsageReported, ProviderFailed, LastFrameBroken})


class FrameDecoder(Link):
    """Parses frames for ``decode``. Subclasses append the events of each frame to ``self.out``, which is then emitted."""

    #: The dialect's name, for messages, and the vendor whose terms the dialect uses.
    dialect: str
    vendor: str
    error_types: ClassVar[Mapping[str, ErrorType]] = {}  #: the dialect's words for types or codes of errors
    #: The JSON types that the member ``error`` may have. Clients of the dialect recognise an error by them.
    error_forms: ClassVar[tuple[type, ...]] = ()
    #: The members of the dialect's error envelope. If set, all other members of an error payload are kept with the error.
    envelope: ClassVar[frozenset[str]] = frozenset()
    #: What messages call a frame. If set, a broken frame before any frame of the dialect means that the stream is another's.
    frame_name: ClassVar[str] = ""
    #: Members of a payload that have no meaning and may differ each time (``alike.py``). None: each payload is decoded in
    #: full, because two payloads that differ only in their text may have different meanings.
    idle: ClassVar[frozenset[str] | None] = None
    #: Whether this class itself learns the bytes around a text, if ``idle`` is not None. False: only its ``decode`` learns.
    learns_alone: ClassVar[bool] = True

    # Attributes that every frame needs are slots: a dictionary of over thirty members is slow to make and to search.
    __slots__ = (
        *(
            "_flat",
            "_frame",
            "_held",
            "_is_padded",
            "_last_id",
            "_learns",
            "_most",
            "_offset",
            "_payload",
            "_templates",
        ),
        *("ended", "event", "limits", "out", "report", "texts"),
    )
    # Attributes that few streams change are attributes of the class.
    recognised = False  #: whether a frame of the dialect was seen
    #: Whether clients run a call that was read, even if the stream fails later. If so, where frames are forwarded, the frame
    #: of the call and all later frames are withheld until the stream ends.
    runs_calls = False
    #: Calls whose whole input is in one frame, after which a client would run them: id, name and input.
    inputs_at_once: Sequence[tuple[str, str, str]] = ()
    in_run = False  #: whether the current payload is one of many that are read together
    _alike = 0  # number of decoded payloads since a template (``delta_template.py``) was last learned
    _repaired = 0  # number of repairs when the last such payload was read
    _learn_from = 0  # the number of frames from which a template may be learned
    _foreign: Frame | None = None  # the first frame that is not the dialect's
    _started = False  # whether the response started
    _counted = False  # whether token counts were reported
    _knows_input = False  # whether the reported counts included the input
    _went_on = False  # whether frames followed the terminator
    unsaid = ""  #: text that the current frame added to events that wait
    _unheld: Frame | None = None  # the frame that already waited for half a character, and must not wait again
    _values: tuple[Frame, ValueTexts] | None = None  # the positions of values in a frame

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.take is not FrameDecoder.take:  # a subclass with its own ``take`` needs the frame, not only the payload
            cls.push_payload = None  # type: ignore[assignment] # its parser makes them

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        self.limits = limits
        self.report = report
        self.out: list[WireEvent] = []
        self.event = "message"  #: the name of the current frame's event
        self._frame: Frame | None = None  # made when ``frame`` is first read
        self._payload, self._offset, self._last_id = b"", 0, ""  # the values from which ``frame`` makes it
        #: Whether the terminator was read. Then each frame goes to ``take_other``, in decoders that look at such frames.
        self.ended = False
        self._held: Held | None = None  # frames that wait for the second half of a character
        self.texts = Texts()  # earlier texts of the stream, for dialects in which a server may repeat them
        #: Templates of payloads that differ only in their text: the event's name, the bytes before and after the text, the
        #: number of these bytes, the bytes between two such texts, the method that takes the text, and the last argument of
        #: that method.
        self._templates: Sequence[tuple[str, bytes, bytes, int, bytes, Callable[[Any, str, Any], None], Any]] = ()
        self._is_padded = False  # whether the learned payloads have padding after the text
        self._learns = self.learns_alone and self.idle is not None
        self._set_most()

    @classmethod
    def decode_response(cls, body: bytes, limits: Limits, report: StreamReport) -> list[WireEvent]:
        """Return the wire events of a whole body, which the decoder reads as its only frame.

        Raises NotThisDialect if the body has no JSON object, and any error of the reading.
        """
        decoder = cls(limits, report)
        return decoder.read_whole([Frame(_only_object(decoder, body.removeprefix(BOM)))])

    def read_whole(self, frames: list[Frame]) -> list[WireEvent]:
        """Return the wire events of all frames of a stream. Raises any error of the reading."""
        events = self.feed(frames)
        if self.fault is None:
            events += self.finish()
        if self.fault is not None:
            raise self.fault
        return events

    @property
    def begun(self) -> Collection[str]:
        """The ids of calls that clients would run even if the stream fails. Overridden in dialects that have such clients."""
        return ()

    @property
    def held_from(self) -> int | None:
        """The offset of the first frame that waits for the second half of a character; None if none waits."""
        return None if self._held is None else self._held.frames[0].offset

    def push(self, frame: Frame, /) -> None:
        if self._templates and frame.terminated and not frame.headers:
            self.push_payload(frame.data, frame.offset, frame.event, frame.id)
        else:
            self._read_frame(self.take if self._held is None else self._take_halves, frame)

    def push_payload(self, data: bytes, offset: int, event: str, last_id: str, /) -> None:
        """Read the payload of a complete frame. If a template matches, only the text is parsed, and no frame is made."""
        if self._templates:
            body = unpadded(data) if self._is_padded else data
            size = len(body)
            for name, before, behind, around, middle, more, given in self._templates:
                text = body.removeprefix(before).removesuffix(behind)
                if len(text) + around == size and name == event:
                    try:
                        delta = loads(once(text, middle) if middle else text)
                    except ValueError:
                        break
                    if type(delta) is str and delta:
                        more(self, delta, given)
                        return
                    break
            if self._learns:
                self._templates = ()  # the next text may have another meaning
        self._frame = None
        self._payload = data
        self._offset = offset
        self.event = event
        self._last_id = last_id
        size = len(data)
        try:
            if size > self._flat and (size > self._most or data.count(b"{") + data.count(b"[") > DEPTH):
                document = None
            else:
                document = loads(data) if data != DONE else None
        except orjson.JSONDecodeError:
            document = None
        try:
            if type(document) is dict:
                self.decode(document)
            elif self._held is None:
                self.take_other(self.frame)
            else:
                self._take_halves(self.frame)
        except HalfCharacter as half:
            self._wait_with(half.held)
        out = self.out
        if len(out) == 1:  # ``_emit_out``, inlined to save a call
            delta = out.pop()
            self.emit(delta)
            if self._learns and type(delta) in TEXT_KINDS:
                self._learn_alone(delta)  # type: ignore[arg-type] # it is one of these
        elif out:
            self._emit_out()

    def _learn_alone(self, delta: Said) -> None:
        """Learn the bytes around the text of the current payload, if it contained nothing else and was not repaired."""
        repaired, before = self.report.repairs.total(), self._repaired
        self._repaired = repaired
        text = text_alone(delta)
        if not text or repaired != before or self._held is not None or not self.may_learn():
            return
        note = self.noting(delta)
        document = loads(self._payload)
        places = [*places_of(document, text)]
        if note is not None and len(places) == 1:
            self.learn_text(document, FrameDecoder._more_alone, (note, delta), places[0])

    def _more_alone(self, text: str, given: tuple[Callable[[str], object], Said]) -> None:
        """Emit the text of a payload that matches a template. ``given`` has a function that notes the text, and an event."""
        note, delta = given
        note(text)
        if type(delta) is TextDelta:
            self.next.push_text(text, delta.choice, delta.block)
        elif type(delta) is ReasoningDelta:
            self.next.push_reasoning(text, delta.choice, delta.block, delta.kind)
        else:
            self.next.push_fragment(delta.index, text, delta.choice)  # type: ignore[union-attr, arg-type] # of a call

    def _wait_with(self, held: Held | None) -> None:
        """Set the frames that wait for half a character. None: no frame waits, and each payload is complete by itself."""
        self._held, self._templates = held, ()
        self._set_most()

    def _set_most(self) -> None:
        """Set the sizes up to which a payload is parsed at once (-1: never): ``_flat``, or ``_most`` with few brackets."""
        self._most = -1 if self.ended or self._held is not None else self.limits.event_values
        self._flat = min(self._most, FLAT_BYTES)

    @property
    def frame(self) -> Frame:
        frame = self._frame
        if frame is None:
            frame = self._frame = Frame(self._payload, self._offset, self.event, self._last_id)
        return frame

    @frame.setter
    def frame(self, frame: Frame) -> None:
        self._frame, self.event = frame, frame.event

    def push_run(self, run: FrameRun, /) -> None:
        """Read many frames. Payloads that differ only in their delta or text are read together, as one event."""
        at, payloads, window = 0, run.payloads, WINDOW
        alike = self.reader(run.event) if self.several is not None else None
        missed = wait = 0  # failed attempts to find similar payloads, and the number of payloads until the next attempt
        self.in_run = self.several is not None
        while at < len(payloads):
            read = 0
            if alike is not None:
                some = payloads[at : at + window]
                self.frame = run.frame(at)
                read = alike.read(some, self.out)
                missed = 0 if read else missed + 1
                wait = 0 if read else 2**missed
                if read < len(some):  # the payload after this one may change the meaning of the following ones
                    alike = None
            if read:
                window = 4 * window if read == len(some) else WINDOW
                self.report.frames += read
                self._emit_out()
            else:
                read, window, wait = 1, WINDOW, wait - 1
                self.report.frames += 1
                if self.in_run and self.idle is not None and wait <= 0 and at + WINDOW < len(payloads):
                    alike = self.read_alone(run.frame(at), payloads[at + 1])
                elif self.in_run or type(self).push_payload is None:
                    self.push(run.frame(at))
                else:
                    self.push_payload(payloads[at], run.offset_of(at), run.event, run.id)
            at += read
        self.in_run = False

    def reader(self, event: str) -> ManyReader | None:  # noqa: ARG002 - for those that override it
        """Return a reader for payloads that differ only in their text from a payload that was read earlier; None if unknown.

        ``event`` is the name of their event.
        """
        return None

    def read_alone(self, frame: Frame, following: bytes) -> ManyReader | None:
        """Read a frame. Return a reader for payloads that differ from it only in their text; None if it contained more.

        The payload ``following`` the frame shows which members vary.
        """
        self.unsaid, repaired = "", self.report.repairs.total()
        heard = self._read_frame(self.take if self._held is None else self._take_halves, frame)
        if self.idle is None or self.several is None:
            return None
        delta = heard[0] if heard else None
        if len(heard) > 1 or not isinstance(delta, Said | None) or self.report.repairs.total() != repaired:
            return None
        text = self.unsaid if delta is None else text_alone(delta)
        note = self.noting(delta) if text else None
        return None if note is None else Alike(delta, finding(frame.data, following, text, self.idle), note)

    def noting(self, event: Said | None) -> Callable[[str], object] | None:  # noqa: ARG002 - for those that remember texts
        """Return a function for the texts of payloads like the payload that became ``event`` (None: that gave no event).

        The function gets each text, and refuses it by returning False. If None is returned instead, each payload must be
        decoded.
        """
        return len

    def may_learn(self) -> bool:
        """Return whether to learn from the current payload: the fourth of its kind, and once in ``LEARN_EVERY`` frames."""
        self._alike += 1
        if self._alike < LEARN_AT or self.report.frames < self._learn_from:
            return False
        self._alike = 0
        self._learn_from += LEARN_EVERY
        return True

    def learn_text(
        self, document: dict[str, Any], more: Callable[[Any, str, Any], None], given: Any, *paths: Sequence[str | int]
    ) -> None:
        """Learn the bytes around the text at a path of the current payload. Its document must not be read after this.

        The same text may be at two paths. ``more`` is a method that gets the text of a later payload, and ``given``.
        """
        data = self._payload if self._frame is None else self._frame.data
        found = learned(data, document, *paths) if len(data) <= self.limits.event_values else None
        if found is not None:
            around = len(found.before) + len(found.behind)
            kept = self._templates[: MOST_LIKE - 1] if found.padded is self._is_padded else ()
            self._is_padded = found.padded  # of all templates that are kept
            self._templates = ((self.event, found.before, found.behind, around, found.middle, more, given), *kept)

    def _read_frame(self, read: Callable[[Frame], None], frame: Frame) -> list[WireEvent]:
        """Read a frame and emit its events. Return the first two of them."""
        self._frame, self.event = frame, frame.event
        if self._learns:
            self._templates = ()
        try:
            read(frame)
        except HalfCharacter as half:
            self._wait_with(half.held)
        delta = self.out[:2]
        if self.out:
            self._emit_out()
        return delta

    def _emit_out(self) -> None:
        out = self.out
        if len(out) == 1:
            self.emit(out.pop())
            return
        if self.several is not None and len({*map(type, out)}) < len(out):  # only deltas of one class are joined
            self.several()
        for event in out:
            self.emit(event)
        out.clear()

    def stopped_by(self, error: Exception) -> Exception:
        """Emit the events that the current frame gave before the error, unless a repair was refused. Return the fault."""
        fault = error
        if isinstance(error, NeedsRepair):
            fault = NeedsRepair(error.kind, REPAIRS[error.kind], offset=self.frame.offset)
            self.out.clear()
        elif isinstance(error, BrokenFrame):
            if self.frame_name and not self.recognised:
                reason = f"a {self.frame_name} that is {error.reason}: {quoted(self.frame.text)}"
                fault = NotThisDialect(self.dialect, reason)
            else:
                fault = self._other_dialect() or error
        if fault is not error:
            fault.__cause__ = error
        self.fault = fault
        if self.out:
            self._emit_out()
        return fault

    def _take_halves(self, frame: Frame) -> None:
        """Read a frame while an earlier one waits for the second half of a character (``split_characters.py``)."""
        frames = deque([frame])
        while frames:
            frame = frames.popleft()
            if self._held is None:
                self.frame = frame
                try:
                    self.take(frame)
                except HalfCharacter as half:
                    self._wait_with(half.held)
            elif (released := self._held.take(frame)) is not None:
                frames.extendleft(reversed(released))
                self._met(released[0])

    def _met(self, first: Frame) -> None:
        """Stop waiting. ``first`` is the first of the held frames; count the characters that were joined in it."""
        held, self.frame, self._unheld = self._held, first, first
        self._wait_with(None)
        if self.several is not None:
            self.several()
        for _ in range(held.joined if held is not None else 0):
            self.report.repair("character_cut")

    def _release(self) -> None:
        """Read the frames that wait for half a character, because no more frames follow."""
        while self._held is not None and self.fault is None:
            frames = self._held.give_up()
            self._met(frames[0])
            for frame in frames:
                self._read_frame(self._take_halves, frame)

    def push_end(self) -> None:
        if self._held is not None:
            self._release()
        if self._foreign is not None:
            self.fault = self._other_dialect()
            if self.fault is not None:
                raise self.fault
        self._close()

    def _close(self) -> None:
        self.close()
        if self._went_on:
            self.out[:] = [event for event in self.out if type(event) in BEHIND_END]
        if self.out:
            self._emit_out()

    def _other_dialect(self) -> NotThisDialect | None:
        """Return the error that the input is not of this dialect, if frames were read and none was of this dialect."""
        if self._foreign is None or self.recognised:
            return None
        return NotThisDialect(
            self.dialect, f"frames of another dialect ({quoted(self._foreign.text)})", offset=self._foreign.offset
        )

    def push_rest(self) -> None:
        self.report.failing = True
        self._release()
        self._close()

    def rest(self) -> list[WireEvent]:
        """Return the events of held frames, because no more frames follow."""
        return [*self._batch(self._release), *self._batch(self._close)]

    def take(self, frame: Frame) -> None:
        """Read one frame. Nearly always it is a small object, which needs none of the checks of ``load``."""
        data = frame.data
        size = len(data)
        if (
            data[:1] == b"{"
            and frame.terminated
            and size <= self.limits.event_values
            and (size <= FLAT_BYTES or data.count(b"{") + data.count(b"[") <= DEPTH)
            and not self.ended
        ):
            try:
                document = loads(data)
            except orjson.JSONDecodeError:
                self.take_other(frame)
            else:
                self.decode(document)
        else:
            self.take_other(frame)

    def take_other(self, frame: Frame) -> None:
        """Read any frame: a payload, ``[DONE]``, or nothing (a blank payload, or a comment that was written as data)."""
        data = frame.data
        if not data or data.isspace():
            return
        if data.strip() == DONE:
            self.done()
        elif data[:1] == b":":  # `data: : OPENROUTER PROCESSING` (quirks.md 102)
            self.report.repair("comment_as_data")
        elif not frame.terminated and DONE.startswith(data):
            self.out.append(LastFrameBroken(data))
        elif (document := self.load(frame)) is not None:
            self.decode(document)

    def done(self) -> None:
        """Read ``[DONE]``. By default it counts as another dialect's terminator."""
        self.report.repair("foreign_terminator")

    def decode(self, document: dict[str, Any]) -> None:
        """Append the events of one payload to ``self.out``. Subclasses define this."""
        raise NotImplementedError

    def close(self) -> None:
        """Append the events that the end of the input causes. Subclasses may override this."""
        self.settle_starts()

    def start(self, event: ResponseStarted, role: str = "assistant") -> None:
        """Emit the start of the response and of its only choice."""
        self._started = True
        self.out += (event, ChoiceStarted(0, role))

    def ensure_started(self) -> None:
        if not self._started:
            self.start(ResponseStarted(vendor=self.vendor))

    def restarted(self, first: str | None, second: object) -> None:
        """Handle a second start of the response: drop a repetition of the first. Raises SecondResponse for another response.

        The text of another response would be taken for more text of the first (vercel/ai#18331).
        """
        other = text_of(second)
        if first is not None and other is not None and first != other:
            raise SecondResponse(first, other, offset=self.frame.offset)
        self.report.repair("response_restarted")

    def behind_end(self, read: Callable[[Any], None], value: Any, *, counted: bool = False) -> None:
        """Read and count a payload after the terminator. Keep only failures, and token counts if there were none before.

        ``counted`` means that the repair was counted already, for a frame that had to wait or an item of a list.
        """
        if not counted:
            self.report.repair("after_end")
        if not self._went_on:
            self.close()  # the events that wait were sent before the end
            self._went_on = True
        before = len(self.out)
        kept = BEHIND_END - {UsageReported} if self._counted else BEHIND_END  # later counts belong to another response
        with suppress(SecondResponse):  # a second response is dropped, as everything else after the end
            read(value)
        self.out[before:] = [event for event in self.out[before:] if type(event) in kept]

    def tell_counts(self, usage: UsageReported) -> None:
        """Emit the token counts of the response."""
        self._counted = True
        if self.counts_anew(usage):
            self.out.append(usage)

    def counts_anew(self, usage: UsageReported) -> bool:
        """Return whether these counts say something new. Zeros after counts with a known input do not."""
        known, self._knows_input = self._knows_input, self._knows_input or bool(usage.input_total)
        return not known or bool(usage.input_total or usage.output_total or usage.total)

    def named_by_its_line(self, document: dict[str, Any], kinds: Collection[str]) -> dict[str, Any] | None:
        """Return a payload without ``type``, with its ``event:`` line's name as type; None if ``kinds`` lacks that name."""
        event = self.frame.event
        if has_value(document.get("type")) or event not in kinds:
            return None
        self.report.repair("event_type_missing")
        return {**document, "type": event}

    def foreign_frame(self) -> None:
        """Note a frame that is not of this dialect. If the stream has no other frames, the input is of another dialect."""
        if self._foreign is None:
            self._foreign = self.frame

    def unknown_frame(self, name: str, document: dict[str, Any]) -> None:
        """Read a payload that is not of this dialect: an error in another envelope, or something unknown."""
        if not self.read_error(document, alone=True):
            self.foreign_frame()
            self.keep_event(name, document)

    def keep_event(self, name: str, document: dict[str, Any]) -> None:
        """Keep an unknown event as an aside. Before the start of the response it has no place and is a counted loss."""
        if self._started:
            self.out.append(Aside(self.vendor, "unknown_event", f"{EVENT}{name}", document))
        elif document:
            self.report.lose("unknown_event", what=name)

    def read_error(self, document: dict[str, Any], *, alone: bool = False) -> bool:
        """Report the error of a payload, in any form except this dialect's. Return whether there is an error.

        ``alone`` means that the payload is not of this dialect, so it may be an error without an envelope.
        """
        error = error_in(document)
        if error is None and alone:
            if self.frame.event == "error" or self.is_bare_error(document):
                error = members_of_error(document) if document.get("choices") else document
            elif (error := wrapped_error(document)) is not None:
                self.keep_unread(others_of(document, {*WRAPPERS}), ERROR_PAYLOAD)
                document = error
        if error is None:
            return False
        self.recognised = True
        if not self.is_own_error(document, error):
            self.report.repair("error_shape")
        if alone and error is not document and not self.envelope:
            self.keep_unread(document, ERROR_PAYLOAD)
        self.fail(error, document if alone else None)
        return True

    def is_bare_error(self, document: dict[str, Any]) -> bool:
        """Return whether a payload that is not of this dialect is an error without an envelope."""
        return is_bare_error(document)

    def is_own_error(self, document: dict[str, Any], error: Any) -> bool:
        """Return whether the ``error`` of a payload has a form of this dialect, which its clients recognise."""
        return isinstance(error, self.error_forms) and error is document.get("error")

    def fail(self, error: Any, document: dict[str, Any] | None = None) -> None:
        """Report an error of the provider after all events that wait. ``document``: a payload that has only this error."""
        self.settle_starts()
        failed = provider_failed(error, self.vendor, self.error_types)
        if self.envelope and document is not None and isinstance(error, dict) and document.get("error") is error:
            failed.raw = document if document.keys() - self.envelope else error
        self.out.append(failed)
        self.several = None  # deltas after it are counted as repairs one by one, so they must not be joined

    def settle_starts(self) -> None:
        """Emit the starts of blocks that wait for more, because nothing more follows."""

    def load(self, frame: Frame) -> dict[str, Any] | None:
        """Return the frame's JSON object; None if the end of input truncated it.

        Raises BrokenFrame and TooManyEventValues.
        """
        most = self.limits.event_values
        if len(frame.data) > most and has_more_values(frame.data, most):
            raise TooManyEventValues(most, offset=frame.offset)
        try:
            document = loads(frame.data)
        except orjson.JSONDecodeError:
            document = self._load_slowly(frame)
        if type(document) is dict:
            if frame.data.count(b"{") + frame.data.count(b"[") > DEPTH and is_deep(document):
                _check_depth(frame)
            if not frame.terminated:
                self.unterminated()
            return document
        if not frame.terminated and type(document) is not list:  # a list's closing bracket proves that it is complete
            self.out.append(LastFrameBroken(frame.data))
            return None
        return self._no_object(frame, document)

    def _no_object(self, frame: Frame, value: Any) -> dict[str, Any] | None:
        """Handle a payload that is not an object.

        Objects in a list are read as if each were a frame. In an event named ``error``, any value is an error. Other values
        (``null``, ``[]``, ``"ping"``) mean nothing.
        """
        if type(value) is list and any(type(item) is dict for item in value):
            self.report.repair("payload_in_list")
            if self.several is not None:
                self.several()
            for item, text in zip(value, item_texts(value_text(frame.data)), strict=True):
                if type(item) is dict:
                    self.frame = self._unheld = evolve(frame, data=text)
                    self.take(self.frame)
            self.frame = frame
            return None
        if frame.event == "error" and has_value(value):
            return {"error": value}
        self.foreign_frame()
        self.report.repair("payload_no_object")
        return None

    def unterminated(self) -> None:
        """Count a complete payload whose frame was not terminated when the input ended."""
        self.report.repair("last_event_unterminated")

    def _load_slowly(self, frame: Frame) -> Any:
        """Parse what orjson refuses but servers send: bytes that are not UTF-8, 1E400, half a surrogate pair."""
        is_utf8 = True
        try:
            text = frame.data.decode("utf-8")
        except UnicodeDecodeError:
            text, is_utf8 = frame.text, False
            self.report.repair("invalid_utf8")
        try:
            document = json.loads(text, parse_constant=refuse_constant, parse_int=_whole_number)
            whole = _without_surrogates(document)
        except (ValueError, RecursionError) as error:
            if not frame.terminated:
                return None
            raise BrokenFrame("no JSON", frame.data, offset=frame.offset) from error
        if whole is not document:
            if is_utf8 and frame is not self._unheld and (held := held_by(frame)) is not None:
                raise HalfCharacter(held)
            self.report.repair("lone_surrogate")
        elif is_utf8:  # invalid bytes were counted above
            self.report.repair("number_out_of_range")
        return whole

    # The methods below read values of the expected type. Absent values and null are ignored; other types become asides.

    # If the meaning is clear, an object is read as a list of one, a list of one object as that object, and text as a part.

    def fields(self, value: Any) -> dict[str, Any]:
        if type(value) is dict:
            return value
        if type(alone := self.alone(value)) is dict:
            return alone
        if value is not None:
            self.keep_invalid(value)
        return {}

    def bare_function(self, call: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
        """Return the members of a ``function`` that its call has instead, as some servers write them (Workers AI, Sub2API)."""
        if not function.keys().isdisjoint(ARGUMENTS):
            return {}
        names = ARGUMENTS if function else BARE_CALL
        bare = {name: value for name, value in call.items() if name in names and has_value(value)}
        if bare:
            self.report.repair("call_shape")
        return bare

    def member_of_arguments(self, function: dict[str, Any], own: str = "arguments") -> str:
        """Return the name of the member with the arguments: ``own``, or if that is missing another name for them."""
        if function.get(own) is None:
            for name in ARGUMENTS:
                if has_value(function.get(name)):
                    self.report.repair("call_shape")
                    return name
        return own

    def alone(self, value: Any) -> Any:
        """Return the only object of a list; any other value unchanged."""
        if type(value) is list and len(value) == 1 and type(value[0]) is dict:
            self.report.repair("list_unasked")
            return value[0]
        return value

    def items(self, value: Any) -> list[Any]:
        if type(value) is list:
            return value
        if type(value) is dict and value:
            return [item for _, item in self.listed(value)]
        if value is not None:
            self.keep_invalid(value)
        return []

    def contents(self, value: Any) -> list[Any]:
        """Return the parts of a content, for ``part_of``. A text is a list of one part."""
        return [value] if type(value) is str and value else self.items(value)

    def part_of(self, value: Any, kind: str | None = "text") -> dict[str, Any]:
        """Return one part of a content. A text becomes a part of the type ``kind``, or without a type if ``kind`` is None."""
        if type(value) is not str:
            return self.fields(value)
        self.report.repair("object_missing")
        return {"text": value} if kind is None else {"type": kind, "text": value}

    def string(self, value: Any) -> str:
        if type(value) is str:
            return value
        if value is None:
            return ""
        if type(value) in {dict, list} and (text := text_in(value)):
            self.report.repair("text_as_object")
            self.keep_unread(value, IN_TEXT, where="text.")
            return text
        self.keep_invalid(value)
        return ""

    def truth(self, value: Any) -> bool:
        """Return a truth value, which may be written as its name or as 0 or 1. Anything else is False."""
        if type(value) is bool:
            return value
        if value is None:
            return False
        self.report.repair("boolean_invalid")
        word = value.strip().lower() if type(value) is str else value
        is_true = word in {"true", "1"} if type(word) is str else type(word) in {int, float} and word == 1
        if not is_true and word not in ("false", "0", "", 0):
            self.out.append(Aside(self.vendor, "unknown_event", "field", value))
        return is_true

    def listed(self, value: Any) -> list[tuple[tuple[int | str, ...], Any]]:
        """Return the items of a list, each with the path step to it.

        An object in place of the list is its only item, or contains its items by number (``{"0": …}``, as PHP writes a list
        with gaps).
        """
        if type(value) is not dict:
            return [((position,), item) for position, item in enumerate(self.items(value))]
        if not value:
            return []
        self.report.repair("list_missing")
        if all(name.isdigit() and type(item) is dict for name, item in value.items()):
            return [((name,), item) for name, item in value.items()]
        return [((), value)]

    def stop_reason(self, native: str, own: Mapping[str, StopReason]) -> StopReason:
        """Return the meaning of a stop reason: by the dialect's ``own`` words, or else by other dialects'; or ``other``."""
        reason = own.get(native)
        if reason is None and (reason := meaning(native)) is not None:
            self.report.repair("stop_reason_foreign")
        return reason or "other"

    def read_and_keep(
        self, read: Callable[[Any], None], document: dict[str, Any], members: Members, where: str
    ) -> None:
        """Read a payload. Keep its unread members as asides, unless the whole payload was kept."""
        before = len(self.out)
        read(document)
        if not any(type(event) is Aside and event.raw is document for event in self.out[before:]):
            self.keep_unread(document, members, where=where)

    def keep_unread(self, document: Any, members: Members, choice: int = 0, block: int = 0, *, where: str = "") -> None:
        """Keep the unread members of an object as asides. This dialect's encoder writes them; others count them as lost."""
        for path, value in members.unread(document):
            self.out.append(Aside(self.vendor, "unknown_event", f"{UNREAD}{where}{path}", value, choice, block))

    def keep_others(
        self, fields: Mapping[str, Any], known: Collection[str], where: str, choice: int = 0, block: int = 0
    ) -> None:
        """Keep members that are not ``known`` as asides. The dialect's encoder writes them again at ``where``."""
        for name, value in others_of(fields, frozenset(known)).items():
            self.out.append(Aside(self.vendor, "metadata", f"{where}{name}", value, choice, block))

    def keep_other_role(self, message: Any, choice: int = 0) -> None:
        """Keep a message of another role than the model's as an aside. It is not part of the response's text."""
        self.out.append(Aside(self.vendor, "unknown_event", "message", message, choice))

    def keep_invalid(self, value: Any) -> None:
        """Keep a value of an unexpected type as an aside."""
        self.report.repair("field_invalid")
        self.out.append(Aside(self.vendor, "unknown_event", "field", value))

    def text_at(self, *path: str | int) -> str:
        """Return the JSON text of the frame's value at ``path``, with escapes as characters. The frame is scanned once."""
        if self._values is None or self._values[0] is not self.frame:
            self._values = self.frame, ValueTexts(self.frame.data)
        return plain_text(self._values[1].text(*path))

    def texts_at(self, count: int, *path: str | int) -> list[bytes]:
        """Return the JSON text of each of ``count`` items that ``items`` found at ``path``. The frame is scanned once."""
        text = lenient_text(self.frame.data, *path)
        if text[:1] == "[":
            return item_texts(text)
        return [self.text_at(*path, number).encode() for number in range(count)]

    def new_text(self, text: str, repeated: bool) -> str:
        """Return ``text``, from which a repetition of its block's start was removed. Count this if it was ``repeated``."""
        if repeated:
            self.report.repair("text_repeated")
        return text

    def index(self, value: object) -> int | None:
        """Return an index of the wire; None if there is none. Raises IndexTooLarge."""
        if type(value) is int and 0 <= value <= self.limits.index:
            return value
        if value is None:
            return None
        number = number_in(value)
        if (value if number is None and isinstance(value, float) else number or 0) > self.limits.index:
            raise IndexTooLarge(self.limits.index, offset=self.frame.offset)
        self.report.repair("index_invalid")
        return number if number is not None and number >= 0 else None


def _only_object(decoder: FrameDecoder, body: bytes) -> bytes:
    """Return the object of a body or of a list in it; from a list of several, the error. Raises NotThisDialect if none."""
    start = body.lstrip()[:1]
    if start == b"[":
        try:
            items = [item for item in item_texts(value_text(body)) if item[:1] == b"{"] if orjson.loads(body) else []
        except ValueError:
            items = []
        errors = [item for item in items if error_in(orjson.loads(item)) is not None]
        if len(items) == 1 or errors:
            decoder.report.repair("payload_in_list")
            return (errors or items)[0]
    if start != b"{":
        raise NotThisDialect(decoder.dialect, f"no JSON object ({quoted(body)})")
    return body


def _check_depth(frame: Frame) -> None:
    """Refuse a payload that could not be written again: orjson reads 1,024 levels but writes 254."""
    scanner = JSONScanner(depth=DEPTH)
    if scanner.feed(frame.text) == "malformed":
        raise BrokenFrame(f"JSON {scanner.reason}", frame.data, offset=frame.offset)


def _whole_number(digits: str) -> int | float:
    """Parse an integer as orjson does: above 64 bits it becomes a float. Argument text is never parsed with this."""
    return int(digits) if len(digits) < 19 else float(digits)


def _without_surrogates(document: Any) -> Any:
    """Return the value, or a copy with U+FFFD in place of lone surrogates, which UTF-8 cannot encode."""
    text = json.dumps(document, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return document
