"""What every decoder would otherwise write again: the loading of JSON, half characters, the hand-over of a fault."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, NoReturn

import orjson
from attrs import evolve

from streamkit.dialects.members.known import EVENT, UNREAD, Members
from streamkit.dialects.members.values import (
    DEPTH,
    TEXT_MEMBERS,
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
from streamkit.framing.frame import BOM, Frame, FrameRun
from streamkit.framing.value_count import has_more_values
from streamkit.limits import Limits
from streamkit.machines import Link
from streamkit.report import REPAIRS, StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.json_scanner import JSONScanner
from streamkit.tool_calls.value_text import ValueTexts, item_texts, lenient_text, plain_text, value_text

DONE = b"[DONE]"
#: A payload that is no longer can't have too many levels: each is two bytes. Gain: half the time of ``loads``.
FLAT_BYTES: Final = 2 * DEPTH
loads = orjson.loads

IN_TEXT: Final = Members("type", *TEXT_MEMBERS)
ERROR_PAYLOAD: Final = Members(*ENVELOPE)
#: A template is learned from the fourth payload that is fit for it, since a short stream gains nothing by one, and at most one
#: for each ``LEARN_EVERY`` frames: where none ever matches, all of them cost a twentieth of the time.
LEARN_AT: Final = 4
LEARN_EVERY: Final = 16
#: Texts that alternate are these at most: those of interleaved calls.
MOST_LIKE: Final = 4
#: So many payloads are looked at together at first, and after one that was not like the others.
WINDOW: Final = 16
#: Events whose text may be all that a payload says.
TEXT_KINDS: Final = frozenset({TextDelta, ReasoningDelta, ToolCallDelta})
#: What a frame behind the terminator may still tell.
BEHIND_END: Final = frozenset({UsageReported, ProviderFailed, LastFrameBroken})


class FrameDecoder(Link):
    """Parses frames for ``decode``, which appends to ``self.out`` what each says; from there it is handed on."""

    #: The dialect's name, for messages, and whose words it speaks.
    dialect: str
    vendor: str
    #: The dialect's words for the type of an error, or its code.
    error_types: ClassVar[Mapping[str, ErrorType]] = {}
    #: The types of JSON value that its clients see as an error in a member ``error``.
    error_forms: ClassVar[tuple[type, ...]] = ()
    #: The members of the dialect's envelope for errors, if others in it are kept with the error.
    envelope: ClassVar[frozenset[str]] = frozenset()
    #: What messages call a frame. If it is set, a broken frame before any frame of the dialect means another dialect's stream.
    frame_name: ClassVar[str] = ""
    #: Members of a payload that say nothing and may differ each time (``alike.py``). None: each payload is decoded in full,
    #: since two that differ in their text alone may mean different things.
    idle: ClassVar[frozenset[str] | None] = None
    #: Whether this class learns the bytes around a text, if ``idle`` is not None. False: ``decode`` does, or nothing does.
    learns_alone: ClassVar[bool] = True

    # What each frame asks for: in slots, since a dictionary of over thirty members is slow to make and to look things up in.
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
    # What few streams change stands in the class.
    recognised = False  #: a frame that is the dialect's was seen
    #: Whether clients run a call of what was read, whatever follows. Where frames pass, its frame and all after it then wait
    #: for the end.
    runs_calls = False
    #: Calls whose input is only in the frame after which a client would run them: id, name and input.
    inputs_at_once: Sequence[tuple[str, str, str]] = ()
    in_run = False  #: the payload at hand is one of many
    _alike = 0  # decoded payloads that a template could be learned from, since the last one was learned
    _repaired = 0  # repairs up to the last such payload
    _learn_from = 0  # the number of frames from which a template may be learned
    _foreign: Frame | None = None  # the first frame that is not the dialect's
    _started = False  # whether the response started
    _counted = False  # whether token counts were reported
    _knows_input = False  # whether these had counts of the input
    _went_on = False  # frames came behind the terminator
    unsaid = ""  #: text that the frame at hand added to what waits
    _unheld: Frame | None = None  # the frame that does not wait again
    _values: tuple[Frame, ValueTexts] | None = None  # where values stand in a frame

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.take is not FrameDecoder.take:  # it looks at frames
            cls.push_payload = None  # type: ignore[assignment] # its parser makes them

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        self.limits = limits
        self.report = report
        self.out: list[WireEvent] = []
        self.event = "message"  #: the name of the frame at hand
        self._frame: Frame | None = None  # ``frame`` makes it when it is first read
        self._payload, self._offset, self._last_id = b"", 0, ""  # what it is made of
        #: What comes is behind the terminator, where the decoder asks ``take_other`` about all of it.
        self.ended = False
        self._held: Held | None = None  # frames that wait for the second half of a character
        self.texts = Texts()  # that were said, where the dialect may say them again
        #: Templates of payloads that differ in their text alone: the event's name, the bytes before and after the text, their
        #: number, the bytes between two such texts, the method that takes the text, and the last argument of that method.
        self._templates: Sequence[tuple[str, bytes, bytes, int, bytes, Callable[[Any, str, Any], None], Any]] = ()
        self._is_padded = False  # whether the learned payloads have padding after the text
        self._learns = self.learns_alone and self.idle is not None
        self._set_most()

    @classmethod
    def decode_response(cls, body: bytes, limits: Limits, report: StreamReport) -> list[WireEvent]:
        """The wire events of a whole body, by a decoder that takes one for its only frame.

        Raises NotThisDialect, and what broke the reading.
        """
        decoder = cls(limits, report)
        return decoder.read_whole([Frame(_only_object(decoder, body.removeprefix(BOM)))])

    def read_whole(self, frames: list[Frame]) -> list[WireEvent]:
        """The wire events of all frames that there are. Raises what broke the reading."""
        events = self.feed(frames)
        if self.fault is None:
            events += self.finish()
        if self.fault is not None:
            raise self.fault
        return events

    @property
    def begun(self) -> Collection[str]:
        """The ids of the calls so far that clients would run, however the stream ends. Overridden where they do."""
        return ()

    @property
    def held_from(self) -> int | None:
        """The byte from which on frames wait for the second half of a character; None if none waits."""
        return None if self._held is None else self._held.frames[0].offset

    def push(self, frame: Frame, /) -> None:
        if self._templates and frame.terminated and not frame.headers:
            self.push_payload(frame.data, frame.offset, frame.event, frame.id)
        else:
            self._read_frame(self.take if self._held is None else self._take_halves, frame)

    def push_payload(self, data: bytes, offset: int, event: str, last_id: str, /) -> None:
        """Read the payload of a whole frame: only its text if a template matches, else all. ``frame`` makes the frame."""
        if self._templates:
            body = unpadded(data) if self._is_padded else data
            size = len(body)
            for name, before, behind, around, middle, more, given in self._templates:
                text = body.removeprefix(before).removesuffix(behind)
                if len(text) + around == size and name == event:
                    try:
                        said = loads(once(text, middle) if middle else text)
                    except ValueError:
                        break
                    if type(said) is str and said:
                        more(self, said, given)
                        return
                    break
            if self._learns:
                self._templates = ()  # the next text may mean something else
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
        if len(out) == 1:  # as ``_emit_out``, a call less
            said = out.pop()
            self.emit(said)
            if self._learns and type(said) in TEXT_KINDS:
                self._learn_alone(said)  # type: ignore[arg-type] # it is one of these
        elif out:
            self._emit_out()

    def _learn_alone(self, said: Said) -> None:
        """Learn the bytes around the text of the current payload, if it contained nothing else and was not repaired."""
        repaired, before = self.report.repairs.total(), self._repaired
        self._repaired = repaired
        text = text_alone(said)
        if not text or repaired != before or self._held is not None or not self.may_learn():
            return
        note = self.noting(said)
        document = loads(self._payload)
        places = [*places_of(document, text)]
        if note is not None and len(places) == 1:
            self.learn_text(document, FrameDecoder._more_alone, (note, said), places[0])

    def _more_alone(self, text: str, given: tuple[Callable[[str], object], Said]) -> None:
        """Emit the text of a payload like one that contained a text and nothing else."""
        note, said = given
        note(text)
        if type(said) is TextDelta:
            self.next.push_text(text, said.choice, said.block)
        elif type(said) is ReasoningDelta:
            self.next.push_reasoning(text, said.choice, said.block, said.kind)
        else:
            self.next.push_fragment(said.index, text, said.choice)  # type: ignore[union-attr, arg-type] # of a call

    def _wait_with(self, held: Held | None) -> None:
        """Set the frames that wait for half a character. None: no frame waits, and each payload is complete by itself."""
        self._held, self._templates = held, ()
        self._set_most()

    def _set_most(self) -> None:
        """Set the sizes up to which a payload is parsed at once: ``_most`` with few brackets, ``_flat`` always; -1: never."""
        self._most = -1 if self.ended or self._held is not None else self.limits.event_values
        self._flat = min(self._most, FLAT_BYTES)

    @property
    def frame(self) -> Frame:
        """The frame at hand."""
        frame = self._frame
        if frame is None:
            frame = self._frame = Frame(self._payload, self._offset, self.event, self._last_id)
        return frame

    @frame.setter
    def frame(self, frame: Frame) -> None:
        self._frame, self.event = frame, frame.event

    def push_run(self, run: FrameRun, /) -> None:
        """Read many frames. Payloads that differ in their delta or their text alone are read together, as one event."""
        at, payloads, window = 0, run.payloads, WINDOW
        alike = self.reader(run.event) if self.several is not None else None
        missed = wait = 0  # attempts to find like payloads in vain, and the payloads until the next
        self.in_run = self.several is not None
        while at < len(payloads):
            read = 0
            if alike is not None:
                some = payloads[at : at + window]
                self.frame = run.frame(at)
                read = alike.read(some, self.out)
                missed = 0 if read else missed + 1
                wait = 0 if read else 2**missed
                if read < len(some):  # the next one may change what those like the last one mean
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
        """Return a reader of payloads that differ in their text alone from one of an earlier read; None if none is known.

        ``event`` is the name of their event.
        """
        return None

    def read_alone(self, frame: Frame, following: bytes) -> ManyReader | None:
        """Read a frame. Return a reader of payloads that differ from it in their text alone; None if it contained more.

        The payload ``following`` the frame shows which members vary.
        """
        self.unsaid, repaired = "", self.report.repairs.total()
        heard = self._read_frame(self.take if self._held is None else self._take_halves, frame)
        if self.idle is None or self.several is None:
            return None
        said = heard[0] if heard else None
        if len(heard) > 1 or not isinstance(said, Said | None) or self.report.repairs.total() != repaired:
            return None
        text = self.unsaid if said is None else text_alone(said)
        note = self.noting(said) if text else None
        return None if note is None else Alike(said, finding(frame.data, following, text, self.idle), note)

    def noting(self, event: Said | None) -> Callable[[str], object] | None:  # noqa: ARG002 - for those that remember texts
        """Return a function for the texts of payloads like the one that became ``event`` (None: that gave no event yet).

        It gets each text, and refuses it by returning False. If None is returned instead, each payload must be decoded.
        """
        return len

    def may_learn(self) -> bool:
        """Return whether to learn from the current payload: from the fourth of its kind, and once in so many frames."""
        self._alike += 1
        if self._alike < LEARN_AT or self.report.frames < self._learn_from:
            return False
        self._alike = 0
        self._learn_from += LEARN_EVERY
        return True

    def learn_text(
        self, document: dict[str, Any], more: Callable[[Any, str, Any], None], given: Any, *paths: Sequence[str | int]
    ) -> None:
        """Learn the bytes around the text at a path of the current payload, whose document is not read any more.

        The same text may stand at two paths. ``more`` is a method: it gets the text of a payload that differs in its text
        alone, and what is ``given`` here.
        """
        data = self._payload if self._frame is None else self._frame.data
        found = learned(data, document, *paths) if len(data) <= self.limits.event_values else None
        if found is not None:
            around = len(found.before) + len(found.behind)
            kept = self._templates[: MOST_LIKE - 1] if found.padded is self._is_padded else ()
            self._is_padded = found.padded  # of all that are kept
            self._templates = ((self.event, found.before, found.behind, around, found.middle, more, given), *kept)

    def _read_frame(self, read: Callable[[Frame], None], frame: Frame) -> list[WireEvent]:
        """Read a frame, and hand on what it says; gives the first two events."""
        self._frame, self.event = frame, frame.event
        if self._learns:
            self._templates = ()
        try:
            read(frame)
        except HalfCharacter as half:
            self._wait_with(half.held)
        said = self.out[:2]
        if self.out:
            self._emit_out()
        return said

    def _emit_out(self) -> None:
        """Hand on what was read."""
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
        """Emit the current frame's events from before the error; none if the error is a refused repair. Return the fault."""
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
        """Read a frame where an earlier one waits for the second half of a character (``split_characters.py``)."""
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
        """What was held goes on: count the characters that were put together in its ``first`` frame, which waits no more."""
        held, self.frame, self._unheld = self._held, first, first
        self._wait_with(None)
        if self.several is not None:
            self.several()
        for _ in range(held.joined if held is not None else 0):
            self.report.repair("character_cut")

    def _release(self) -> None:
        """Nothing more comes: read what was held."""
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
        """Hand on what the end says."""
        self.close()
        if self._went_on:
            self.out[:] = [event for event in self.out if type(event) in BEHIND_END]
        if self.out:
            self._emit_out()

    def _other_dialect(self) -> NotThisDialect | None:
        """Frames came and none was the dialect's: the input is another one."""
        if self._foreign is None or self.recognised:
            return None
        return NotThisDialect(
            self.dialect, f"frames of another kind ({quoted(self._foreign.text)})", offset=self._foreign.offset
        )

    def push_rest(self) -> None:
        self.report.failing = True
        self._release()
        self._close()

    def rest(self) -> list[WireEvent]:
        """What is held, where nothing more comes."""
        return [*self._batch(self._release), *self._batch(self._close)]

    def take(self, frame: Frame) -> None:
        """One frame. Nearly always it is a small object, which needs none of the questions of ``load``."""
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
        """Any frame: a payload, the mark ``[DONE]``, or nothing (a blank payload, a comment written as data)."""
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
        """The mark ``[DONE]`` came."""
        self.report.repair("foreign_terminator")

    def decode(self, document: dict[str, Any]) -> None:
        """One payload: append to ``self.out`` what it says."""
        raise NotImplementedError

    def close(self) -> None:
        """The input ended."""

    def start(self, event: ResponseStarted, role: str = "assistant") -> None:
        """The response starts, and with it its only choice."""
        self._started = True
        self.out += (event, ChoiceStarted(0, role))

    def ensure_started(self) -> None:
        if not self._started:
            self.start(ResponseStarted(vendor=self.vendor))

    def restarted(self, first: str | None, second: object) -> None:
        """A second start of the response: the same one again is passed over. Raises SecondResponse for another.

        Its text would be taken for more of the first (vercel/ai#18331).
        """
        other = text_of(second)
        if first is not None and other is not None and first != other:
            raise SecondResponse(first, other, offset=self.frame.offset)
        self.report.repair("response_restarted")

    def behind_end(self, read: Callable[[Any], None], value: Any, *, counted: bool = False) -> None:
        """Read and count what came behind the terminator. Only failures are told, and token counts if none came before.

        ``counted``: it came before, as a frame that had to wait or as one of a list.
        """
        if not counted:
            self.report.repair("after_end")
        if not self._went_on:
            self.close()  # what waits came before the end
            self._went_on = True
        before = len(self.out)
        kept = BEHIND_END - {UsageReported} if self._counted else BEHIND_END  # others count the next answer
        with suppress(SecondResponse):  # it is passed over with the rest
            read(value)
        self.out[before:] = [event for event in self.out[before:] if type(event) in kept]

    def tell_counts(self, usage: UsageReported) -> None:
        """Tell the token counts of the answer."""
        self._counted = True
        if self.counts_anew(usage):
            self.out.append(usage)

    def counts_anew(self, usage: UsageReported) -> bool:
        """Whether counts say anything: nothing but zeros, behind an input that is known, are no news."""
        known, self._knows_input = self._knows_input, self._knows_input or bool(usage.input_total)
        return not known or bool(usage.input_total or usage.output_total or usage.total)

    def named_by_its_line(self, document: dict[str, Any], kinds: Collection[str]) -> dict[str, Any] | None:
        """A payload without a ``type``, with the one of ``kinds`` that its ``event:`` line says; None if that says none."""
        event = self.frame.event
        if has_value(document.get("type")) or event not in kinds:
            return None
        self.report.repair("event_type_missing")
        return {**document, "type": event}

    def foreign_frame(self) -> None:
        """Note a frame that is not the dialect's: if none is, the input is not this dialect at all."""
        if self._foreign is None:
            self._foreign = self.frame

    def unknown_frame(self, name: str, document: dict[str, Any]) -> None:
        """Read a payload that is none of the dialect's: an error in another envelope, or something unknown.

        What is unknown and comes after the start of the response is kept.
        """
        if self.read_error(document, alone=True):
            return
        self.foreign_frame()
        if self._started:
            self.out.append(Aside(self.vendor, "unknown_event", f"{EVENT}{name}", document))

    def read_error(self, document: dict[str, Any], *, alone: bool = False) -> bool:
        """Report the error of a payload in any form but the dialect's own; return whether there is one.

        ``alone``: the payload is none of the dialect's, so that it may be an error without an envelope.
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
        """Return whether a payload that is none of the dialect's is an error without an envelope."""
        return is_bare_error(document)

    def is_own_error(self, document: dict[str, Any], error: Any) -> bool:
        """Return whether the ``error`` of a payload is in a form of the dialect, which its clients see."""
        return isinstance(error, self.error_forms) and error is document.get("error")

    def fail(self, error: Any, document: dict[str, Any] | None = None) -> None:
        """Report an error of the provider, after all that waits. ``document``: the payload that is nothing but the error."""
        self.settle_starts()
        failed = provider_failed(error, self.vendor, self.error_types)
        if self.envelope and document is not None and isinstance(error, dict) and document.get("error") is error:
            failed.raw = document if document.keys() - self.envelope else error
        self.out.append(failed)
        self.several = None  # deltas behind it are counted, each as a repair: none is joined

    def settle_starts(self) -> None:
        """Emit what waits for more of its block, since nothing more comes."""

    def load(self, frame: Frame) -> dict[str, Any] | None:
        """The frame's JSON object; None for the torso of one that the end of input cut off.

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
        if (
            not frame.terminated and type(document) is not list
        ):  # whose closing bracket shows that nothing of it is missing
            self.out.append(LastFrameBroken(frame.data))
            return None
        return self._no_object(frame, document)

    def _no_object(self, frame: Frame, value: Any) -> dict[str, Any] | None:
        """A payload that is another JSON value: objects in a list are read as if each had come alone, errors above all; what
        stands as an error is one; the rest (``null``, ``[]``, ``"ping"``) says nothing.
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
        """The input ended right behind a whole payload."""
        self.report.repair("last_event_unterminated")

    def _load_slowly(self, frame: Frame) -> Any:
        """What orjson refuses and the field sends: bytes that are not UTF-8, 1E400, half a surrogate pair."""
        is_utf8 = True
        try:
            text = frame.data.decode("utf-8")
        except UnicodeDecodeError:
            text, is_utf8 = frame.text, False
            self.report.repair("invalid_utf8")
        try:
            document = json.loads(text, parse_constant=_refuse, parse_int=_whole_number)
            whole = _without_surrogates(document)
        except (ValueError, RecursionError) as error:
            if not frame.terminated:
                return None
            raise BrokenFrame("no JSON", frame.data, offset=frame.offset) from error
        if whole is not document:
            if is_utf8 and frame is not self._unheld and (held := held_by(frame)) is not None:
                raise HalfCharacter(held)
            self.report.repair("lone_surrogate")
        elif is_utf8:  # bytes that are not UTF-8 are counted
            self.report.repair("number_out_of_range")
        return whole

    # Values of the wire by the type they should have: null and absent are nothing, any other type is set aside.

    # Where the meaning is plain, an object is a list of it, a list of one object that object, and text a part with it.

    def fields(self, value: Any) -> dict[str, Any]:
        if type(value) is dict:
            return value
        if type(alone := self.alone(value)) is dict:
            return alone
        if value is not None:
            self.keep_invalid(value)
        return {}

    def alone(self, value: Any) -> Any:
        """The object that is alone in a list; any other value as it is."""
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
        """The parts of a content, each for ``part_of``; text in its place is one."""
        return [value] if type(value) is str and value else self.items(value)

    def part_of(self, value: Any, kind: str | None = "text") -> dict[str, Any]:
        """One part of a content, which may be its text alone: then of the type ``kind``, if the dialect's parts have one."""
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
        """A truth value, which may come as its name or as 0 or 1; of everything else False: what is not said is not so."""
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
        """The items of a list, each with the step that leads to it. Where an object stands instead it is the only item, or has
        them by number (``{"0": …}``, as PHP writes a list with gaps).
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
        """What a stop reason means: by the dialect's ``own`` words, else by the others'; ``other`` if nobody has it."""
        reason = own.get(native)
        if reason is None and (reason := meaning(native)) is not None:
            self.report.repair("stop_reason_foreign")
        return reason or "other"

    def read_and_keep(
        self, read: Callable[[Any], None], document: dict[str, Any], members: Members, where: str
    ) -> None:
        """Read a payload and keep what nobody reads of it, unless it was kept as a whole."""
        before = len(self.out)
        read(document)
        if not any(type(event) is Aside and event.raw is document for event in self.out[before:]):
            self.keep_unread(document, members, where=where)

    def keep_unread(self, document: Any, members: Members, choice: int = 0, block: int = 0, *, where: str = "") -> None:
        """Keep what nobody reads of an object: for the same dialect, and as a counted loss for all others."""
        for path, value in members.unread(document):
            self.out.append(Aside(self.vendor, "unknown_event", f"{UNREAD}{where}{path}", value, choice, block))

    def keep_others(
        self, fields: Mapping[str, Any], known: Collection[str], where: str, choice: int = 0, block: int = 0
    ) -> None:
        """Keep the members that are not ``known``, as asides that the dialect's encoder writes again ``where`` they were."""
        for name, value in others_of(fields, frozenset(known)).items():
            self.out.append(Aside(self.vendor, "metadata", f"{where}{name}", value, choice, block))

    def keep_other_role(self, message: Any, choice: int = 0) -> None:
        """Keep a message of another role than the model's: it is none of the response's text."""
        self.out.append(Aside(self.vendor, "unknown_event", "message", message, choice))

    def keep_invalid(self, value: Any) -> None:
        """Keep what has a type that the dialect does not know."""
        self.report.repair("field_invalid")
        self.out.append(Aside(self.vendor, "unknown_event", "field", value))

    def text_at(self, *path: str | int) -> str:
        """Return the JSON text of the frame's value at ``path``, escapes as characters; the frame is walked once for all."""
        if self._values is None or self._values[0] is not self.frame:
            self._values = self.frame, ValueTexts(self.frame.data)
        return plain_text(self._values[1].text(*path))

    def texts_at(self, count: int, *path: str | int) -> list[bytes]:
        """The JSON text of each of the ``count`` items that ``items`` found at ``path``; the frame is walked once."""
        text = lenient_text(self.frame.data, *path)
        if text[:1] == "[":
            return item_texts(text)
        return [self.text_at(*path, number).encode() for number in range(count)]

    def new_text(self, text: str, repeated: bool) -> str:
        """A text without what repeats the start of its block; count whether it did."""
        if repeated:
            self.report.repair("text_repeated")
        return text

    def index(self, value: object) -> int | None:
        """An index of the wire; None where there is none. Raises IndexTooLarge."""
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
    """The object of a body, which may be alone in a list; of several the error. Raises NotThisDialect for another body."""
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
    """Refuse a payload that could not be written again: orjson reads 1,024 levels and writes 254."""
    scanner = JSONScanner(depth=DEPTH)
    if scanner.feed(frame.text) == "malformed":
        raise BrokenFrame(f"JSON {scanner.reason}", frame.data, offset=frame.offset)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _whole_number(digits: str) -> int | float:
    """As orjson: past 64 bits a float. Argument text never comes this way."""
    return int(digits) if len(digits) < 19 else float(digits)


def _without_surrogates(document: Any) -> Any:
    """The same value, or a copy in which halves of surrogate pairs are U+FFFD (UTF-8 can't hold them)."""
    text = json.dumps(document, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return document
