"""One dialect in and out: frames pass byte for byte while the other machines watch them for the report (design.md §1, L4).

How far the bytes may pass is all that is decided here, frame by frame, so that the cuts of the network decide nothing (L1):

* Nothing passes before a frame of the dialect was seen: a web page is no stream. What the end of the input broke off never
  passes: it stands in the report.
* Of a frame in which a fault is found, and of all behind it, nothing passes. What stood whole before it does, and then an
  error frame of the dialect.
* A terminator waits, with all behind it, for the end of the input: what comes there may still say that the answer failed. An
  answer that is not whole gets an error frame in its place (L3).
* So does, in a dialect whose clients run a call as soon as its input is there, a frame that says so, unless the call gets its
  output from the provider.
* The provider's error is the last frame that passes. Where the dialect's clients would not see it as an error, the dialect's
  own form takes its place, or follows the frame if that has output, too, and does not end the response.

A frame that ends inside a character waits for the other half, as in the decoder. A frame that the client did not ask for is
taken out, and one that names no model names the one asked for (``pass_rules.py``).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, cast

from attrs import frozen

from streamkit.dialects.base import Dialect
from streamkit.dialects.profiles import Encoding
from streamkit.errors import HeldTooLong
from streamkit.events import Event, ProviderFailed, ResponseStarted, StreamEnded
from streamkit.framing.frame import Frame
from streamkit.machines import Chain, link_of
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator, says_something
from streamkit.tool_calls.schema import ToolSchemas
from streamkit.translation.pass_rules import Rule, rule_for

if TYPE_CHECKING:  # a dialect's package imports it
    from streamkit.dialects.streams.frame_decoder import FrameDecoder

#: Repairs that show an error to be in a form with which official clients go on: those that a decoder counts.
UNSEEN_ERRORS: Final = ("error_shape", "event_name_missing", "payload_in_list", "calls_unanswered", "stop_conflict")
#: The same of a parser, which may have read further than the error: how the lines of such an event begin.
_UNSEEN_LINES: Final = {
    "sse_error_field": re.compile(rb"(?:\A|[\r\n])error(?![^\r\n:])"),
    "sse_bare_json": re.compile(rb"\A\{"),
}

#: What a profile may change without its stream being written anew.
PASSES: Final = frozenset({"include_usage"})
#: What is to be noted of what the frames say.
_NOTED: Final = frozenset({ProviderFailed, ResponseStarted, StreamEnded})
#: The end of an event's last line, and the blank line behind it.
_EVENT_END: Final = re.compile(rb"(?>\r\n|\r|\n)(?:\r\n|\r|\n)")
_LINE_END: Final = re.compile(rb"\n")
#: A binary message begins with its length.
_LENGTH_BYTES: Final = 4


@frozen
class _Edit:
    """A frame that does not pass as it came: where it begins, its payload, and the one in its place, if any."""

    start: int
    payload: bytes
    instead: bytes
    terminated: bool


class PassThrough:
    """Machine of ``transcode`` within one dialect: bytes to the same bytes, in whole frames."""

    def __init__(
        self,
        dialect: Dialect,
        encoding: Encoding,
        policy: Policy,
        report: StreamReport,
        tools: ToolSchemas | None = None,
    ) -> None:
        limits = encoding.limits
        self.fault: Exception | None = None
        self._dialect = dialect
        self._report = report
        self._limit = limits.held_chars
        self._parser = dialect.parser(limits, report)
        self._cutter = link_of(self._parser)
        self._decoder = cast("FrameDecoder", dialect.decoder(limits, report))
        self._accumulator = ToolCallAccumulator(
            limits=limits, report=report, policy=policy, make_id=encoding.make_id, check=True, tools=tools
        )
        self._watch = Chain(self._decoder, self._accumulator)
        self._encoder = dialect.encoder(encoding, report)  # writes error frames only
        self._rule = rule_for(dialect, encoding.profile)
        self._edits: deque[_Edit] = deque()  # of what did not pass yet
        self._split_end = False  # an event was taken out, and the last line end of it may go on with LF
        #: Of the stream, from byte ``_passed`` on: a growing array, since fragments of two bytes take 43 each in a list.
        self._held = bytearray()
        self._chunk = b""  # the read at hand, where nothing is held
        self._passed = 0  # bytes handed on
        self._last = b""  # the last of them that is not blank
        self._is_known = False  # a frame of the dialect was seen
        self._has_payload = False  # the end broke off a frame that has one
        self._is_over = False  # the terminator was seen
        self._runs_calls = False  # a client would run what waits
        #: The byte from which on all waits: for a frame of the dialect; or, with the terminator or with a call that clients
        #: would run, for the end of the input.
        self._wait_at: int | None = 0
        self._half_at: int | None = None  # the byte from which on frames wait for the second half of a character
        self._stop_at: int | None = None  # the byte from which on nothing passes, ever
        self._is_cut = False  # all up to there has passed
        self._error: ProviderFailed | None = None  # what is written there
        self._error_after: ProviderFailed | None = None  # what is to be written after the last frame that passed
        self._error_end: int | None = None  # the byte behind the provider's own error, which passes
        self._start: ResponseStarted | None = None
        self._good: Frame | None = None  # the last frame before a fault or the terminator
        self._begun: Collection[str] | None = None  # the calls that were begun there; None: all of the decoder's
        self._reason: str | None = None  # why the stream was cut

    @property
    def ended(self) -> bool:
        """Whether the stream was whole, or an error frame was written."""
        return self._report.clean is True or self._encoder.ended

    def feed(self, chunk: bytes, /) -> bytes:
        if not self._is_cut:
            if self._held or self._wait_at is not None:
                self._held += chunk
            else:
                self._chunk = bytes(chunk)
        self._read(self._cutter.push_batch, chunk)
        self._look_at_parser()
        output = self._pass()
        if self._error is not None:
            output += self._written(self._error)
        return output

    def finish(self) -> bytes:
        self._has_payload = False
        self._read(self._cutter.push_end)
        self._look_at_parser()
        failure = None
        if self.fault is None:
            failure = self._note_end(self._watch.finish())
            if self._watch.fault is not None:
                self._fails(self._watch.fault, self._parser.boundary)
        return b"" if self.fault is not None else self._end(failure)

    def abandon(self) -> bytes:
        self._note_end(self._watch.abandon())
        return b""

    def fail(self, error: Exception) -> bytes:
        self._has_payload = False
        if self.fault is None:  # the source's: what there is of the last frame is read, as at any end
            self._read(self._cutter.push_rest)
        failure = self._note_end(self._watch.abandon())
        if self.fault is None or self._report.clean:
            return self._end(failure, error)
        self._withhold()
        return self._ended(error)

    def closing(self, error: Exception) -> bytes:
        """What is to follow all that was fed, where the client has all of it: the error, unless the answer had an end.

        A frame that was broken off is ended first: an error in its middle would be no frame, and nobody would see it.
        """
        torn = bytes(self._held[self._parser.boundary - self._passed :])
        self._read(self._cutter.push_end)
        failure = self._note_end(self._watch.finish()) or self._error_after
        self._last = bytes(self._held).rstrip()[-1:] or self._last
        has_end = (
            self._report.clean or self._error is not None or (self._error_end is not None and not self._error_after)
        )
        if has_end or (failure is not None and self._accumulator.failed_in_own_words):
            return self._closed()
        ending = self._dialect.frame_end if torn.strip() and not self._is_array else None
        return (ending or b"") + (self._ended(error) if failure is None else self._written(failure))

    # -- frames ----------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[..., None], *given: bytes) -> None:
        """Have the parser cut frames, up to a fault: its own, or that of what was read."""
        self._cutter.emit = self._see
        try:
            work(*given)
        except Exception as error:
            if error is not self.fault and error is not self._parser.fault:
                raise
        finally:
            del self._cutter.emit  # or each would hold the other

    def _see(self, frame: Frame) -> None:
        """Read a frame, and note how far the bytes may pass. Raises the fault behind which nothing is read."""
        if self.fault is not None:
            raise self.fault
        offset, decoder, report = frame.offset, self._decoder, self._report
        if self._wait_at is not None and self._holds_too_much(offset):
            report.frames -= 1
            raise cast("Exception", self.fault)
        self._has_payload = self._has_payload or bool(frame.data)
        if self._stop_at is None:
            if self._error_end is not None:
                self._stop_at = self._error_end if self._is_array else offset
                self._error, self._begun = self._error_after, decoder.begun
            elif self._rule is not None and not frame.data.startswith(self._rule.known):
                self._hold_against(self._rule, frame)
        begin = offset if self._half_at is None else self._half_at
        unseen = self._unseen() if report.repairs else (0, 0)
        failure, events = None, self._watch.feed([frame])
        for event in events:
            if type(event) in _NOTED:
                failure = self._note(event) or failure
        if self._watch.fault is not None:
            at = getattr(self._watch.fault, "offset", None)
            self._fails(self._watch.fault, at if at is not None and begin <= at <= offset else begin)
            raise self._watch.fault
        self._half_at = decoder.held_from
        self._settle(begin)
        if self._stop_at is not None:
            return
        if failure is not None:
            self._failed(failure, frame, begin, unseen, says_something(events))
        elif self._is_over:
            return
        elif report.terminated:
            self._wait_at, self._is_over = self._wait_at if self._runs_calls else begin, True
        elif frame.terminated:
            self._good = frame

    def _settle(self, begin: int) -> None:
        """Note whether the decoder knows the dialect by now, and whether the frame at ``begin`` makes clients run a call.

        Such a frame waits, with all behind it.
        """
        if not self._is_known and self._decoder.recognised:
            self._is_known, self._wait_at = True, None
        if self._decoder.runs_calls is not self._runs_calls and not self._is_over:
            self._runs_calls = self._decoder.runs_calls
            self._wait_at = begin if self._runs_calls else None

    def _hold_against(self, rule: Rule, frame: Frame) -> None:
        """Note what passes in the place of a frame, if not the frame itself."""
        instead = rule(frame.data)
        if instead is not frame.data:
            self._edits.append(_Edit(frame.offset, frame.data, instead, frame.terminated))

    def _look_at_parser(self) -> None:
        """What its parser says of the bytes behind the last frame."""
        boundary = self._parser.boundary
        if self.fault is None and not self._holds_too_much(boundary) and self._parser.fault is not None:
            self._fails(self._parser.fault, boundary)

    def _fails(self, fault: Exception, at: int) -> None:
        """Nothing passes from byte ``at`` on."""
        self.fault = fault
        if self._runs_calls and self._wait_at is not None:
            at = min(at, self._wait_at)
        self._stop_at = at if self._stop_at is None else min(at, self._stop_at)

    def _holds_too_much(self, at: int) -> bool:
        """Set a fault if too much waits before byte ``at``; all of it is whole."""
        if self._wait_at is None or at - self._wait_at <= self._limit or self.fault is not None:
            return False
        is_whole = self._is_over and not self._runs_calls
        self._fails(HeldTooLong(self._limit), self._end_of_terminator() if is_whole else 0)
        return True

    def _failed(self, failure: ProviderFailed, frame: Frame, begin: int, unseen: tuple[int, int], speaks: bool) -> None:
        """Read a frame with a failure of the provider.

        ``begin``: where it begins, or what waits with it. ``unseen``: the counts of ``_unseen`` before it. ``speaks``: it has
        output, too, which passes where clients read it and only miss the error.
        """
        shapes, others = self._unseen()
        is_foreign = others > unseen[1] or self._looks_unseen(frame) or begin < frame.offset
        is_unseen = is_foreign or shapes > unseen[0]
        if self._is_over or self._runs_calls:
            self._stop_at, self._error = self._wait_at, failure
        elif is_unseen and (is_foreign or not speaks or self._report.terminated or self._is_array):
            self._stop_at, self._error, self._begun = begin, failure, self._decoder.begun
        else:
            self._error_end = frame.offset + len(frame.data)
            if is_unseen:
                self._error_after, self._good = failure, frame

    def _unseen(self) -> tuple[int, int]:
        """Return how many errors only the decoder sees: by the repair ``error_shape``, and by the other repairs."""
        shape, *others = (self._report.repairs[kind] for kind in UNSEEN_ERRORS)
        return shape, sum(others)

    def _looks_unseen(self, frame: Frame) -> bool:
        """Whether an error's lines are no event's; the parser may have counted others already that came behind it."""
        kinds = [kind for kind in _UNSEEN_LINES if self._report.repairs[kind]]
        if not kinds:
            return False
        raw = self._raw(frame.offset)
        end = _EVENT_END.search(raw)
        event = raw[: end.start()] if end and frame.terminated else raw
        return any(_UNSEEN_LINES[kind].search(event) for kind in kinds)

    def _note(self, event: Event) -> ProviderFailed | None:
        """What an event says of the start and the end; itself if it is the provider's error."""
        if isinstance(event, ResponseStarted):
            self._start = event
        elif isinstance(event, StreamEnded):
            self._reason = event.reason
        return event if isinstance(event, ProviderFailed) else None

    def _note_end(self, events: list[Event]) -> ProviderFailed | None:
        """What the last events say, behind all frames."""
        return next((event for event in list(map(self._note, events)) if event is not None), None)

    # -- bytes -----------------------------------------------------------------------------------------------------

    def _pass(self) -> bytes:
        """Everything that may pass of the stream and did not yet."""
        chunk, self._chunk = self._chunk, b""
        whole = self._parser.boundary
        for at in (self._wait_at, self._half_at, self._stop_at):
            if at is not None and at < whole:
                whole = at
        size = whole - self._passed
        if size <= 0:
            self._held += chunk
            passing = b""
        elif not chunk:
            passing = bytes(self._held[:size])
            del self._held[:size]
        elif size == len(chunk):  # as nearly always at whole events a read
            passing = chunk
        else:
            passing = chunk[:size]
            self._held += memoryview(chunk)[size:]
        if whole == self._stop_at:
            self._is_cut = True
            self._held.clear()
        if not passing:
            return b""
        self._passed = whole
        self._last = passing[-8:].rstrip()[-1:] or passing.rstrip()[-1:] or self._last
        return self._edited(passing, whole - size) if self._edits or self._split_end else passing

    def _raw(self, at: int) -> bytes:
        """What is there of the stream from byte ``at`` on, which did not pass yet."""
        return bytes(self._held[at - self._passed :] or self._chunk[at - self._passed :])

    def _end_of_terminator(self) -> int:
        at = self._wait_at or 0
        raw = self._raw(at)
        if self._dialect.frame_end is None:  # a binary message
            return at + int.from_bytes(raw[:_LENGTH_BYTES], "big")
        end = _EVENT_END.search(raw) if len(self._dialect.frame_end) > 1 else _LINE_END.search(raw)
        return at + (end.end() if end else len(raw))

    def _edited(self, passing: bytes, start: int) -> bytes:
        """Bytes of the stream that begin at ``start``, with what stands in the place of their frames."""
        if self._split_end:
            self._split_end = False
            if passing.startswith(b"\n"):
                passing, start = passing[1:], start + 1
        pieces, done, size = [], 0, len(passing)
        while self._edits and self._edits[0].start < start + size:
            edit = self._edits.popleft()
            begin, instead = edit.start - start, edit.instead
            match = _EVENT_END.search(passing, begin) if edit.terminated else None
            end = match.end() if match else size
            found = passing.find(edit.payload, begin, end)
            if instead and found >= 0:
                begin, end = found, found + len(edit.payload)
            else:
                self._split_end = end == size and passing.endswith(b"\r")
                if instead:  # in several lines
                    instead = b"data: " + instead.replace(b"\n", b" ") + b"\n\n"
            pieces += [passing[done:begin], instead]
            done = end
        return b"".join([*pieces, passing[done:]])

    # -- the end ---------------------------------------------------------------------------------------------------

    def _end(self, failure: ProviderFailed | None, error: Exception | None = None) -> bytes:
        """What may pass at the end of the input, and what tells the client that the answer is not whole, if it is not.

        ``failure``: what the provider says of it in the stop reasons alone.
        ``error``: what broke the input.
        """
        report, half_at, self._half_at = self._report, self._half_at, None
        if half_at is not None:  # frames that waited for the second half of a character were read with the end
            self._settle(half_at)
        is_shown = failure is not None and self._accumulator.failed_in_own_words
        if self._is_known and (report.clean or is_shown):
            self._wait_at = None
        elif self._is_over or self._runs_calls:
            self._stop_at = self._wait_at if self._stop_at is None else min(self._stop_at, self._wait_at or 0)
            self._withhold()
        output = self._pass()
        if self._stop_at is None and self._is_known:
            output += self._rest(is_whole=bool(report.clean or is_shown), has_payload=self._has_payload)
        elif report.clean or is_shown:
            output += self._closed()
        if report.clean:
            report.completed = report.terminated
            return output
        if is_shown and self._error is None:
            return output
        failure = self._error or self._error_after or failure
        return output + (self._ended(error) if failure is None else self._written(failure))

    def _withhold(self) -> None:
        """What never passes since clients would run calls is for the report: their input, and what waited behind it."""
        if self._runs_calls:
            for call in self._decoder.inputs_at_once:
                self._report.withhold("unclean_call", *call)
            self._report.broken_frame = self._raw(self._wait_at or 0)  # a torn frame at its end with it

    def _rest(self, *, is_whole: bool, has_payload: bool) -> bytes:
        """What is held behind the last whole frame, with the end that readers need; what can't pass is for the report.

        ``has_payload``: the input ended behind a whole payload that lacks nothing but its end.
        """
        torn = self._report.broken_frame is not None
        rest = b"" if torn else bytes(self._held)
        last = rest.rstrip()[-1:]
        end = self._dialect.continued(self._parser, last or self._last, b"")
        if end is not None:  # an array; a comma may be left of which no element came
            if not is_whole and self._error_end is None:
                return b""
            return end if end and last else rest + end
        end = self._dialect.frame_end if last else b""
        if end is not None and (is_whole or (has_payload and not torn)):
            edited = self._edited(rest, self._passed)
            return b"" if edited != rest and not edited.strip() else edited + end
        if last:
            self._report.broken_frame = rest
        return b""

    def _ended(self, error: Exception | None) -> bytes:
        """The error frame of an answer that is not whole, unless there was one."""
        if self._error_end is not None and self._error_after is None:
            return self._closed() if self._stop_at is not None else b""
        self._follow()
        if error is not None:
            return self._framed(self._encoder.fail(error))
        return self._framed(self._encoder.feed([StreamEnded(clean=False, reason=self._reason)]))

    def _written(self, failure: ProviderFailed) -> bytes:
        """The provider's failure as the dialect has it, unless there was an error frame."""
        self._follow()
        return self._framed(self._encoder.feed([failure]))

    def _follow(self) -> None:
        if self._good is not None:
            begun = self._decoder.begun if self._begun is None else self._begun
            self._encoder.follow(self._start, self._good, begun)

    def _closed(self) -> bytes:
        """What ends an array of which no more passes."""
        return self._dialect.continued(self._parser, self._last, b"") or b""

    @property
    def _is_array(self) -> bool:
        return self._dialect.continued(self._parser, b"", b"") is not None

    def _framed(self, frame: bytes) -> bytes:
        """An error frame of the encoder, if it wrote one, in the framing of what passed."""
        framed = self._dialect.continued(self._parser, self._last, frame) if frame else None
        return frame if framed is None else framed
