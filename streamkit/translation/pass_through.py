"""Pass frames within one dialect byte for byte, while the other machines read them for the report (design.md §1, L4).

This module decides only how many bytes may pass. It decides frame by frame, so that the result does not depend on how the
network cuts the stream (L1):

* Nothing passes before the first frame of the dialect: a web page is no stream. A frame that the end of the input truncated
  never passes; its bytes are in the report.
* A frame with a fault does not pass, nor does anything after it. The whole frames before it pass, then an error frame.
* A terminator and all bytes after it are held until the end of the input, since later bytes may still report a failure.
  If the response is not whole, an error frame takes their place (L3).
* In a dialect whose clients run a tool call as soon as its input is complete, the frame that completes the input is held in
  the same way, unless the provider sends the call's output, too.
* The provider's error is the last frame that passes. Where clients of the dialect would not see it as an error, the
  dialect's error frame replaces it, or follows it if that frame also has output and does not end the response.

A frame that ends inside a character is held until the other half, as in the decoder. A frame that the client did not ask for
is dropped, and a frame without a model gets the name of the requested model (``Rule``). The report counts no repair and no
loss for this: no fault of the provider is repaired, and the report has the usage anyway.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, cast

import orjson
from attrs import frozen

from streamkit.dialects.base import Dialect, ModelPlace
from streamkit.dialects.members.values import json_object
from streamkit.dialects.profiles import Encoding, Profile
from streamkit.errors import HeldTooLong
from streamkit.events import Event, ProviderFailed, ResponseStarted, StreamEnded
from streamkit.framing.frame import Frame
from streamkit.machines import Chain, link_of
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator, says_something
from streamkit.tool_calls.output import OutputCheck, OutputChecker
from streamkit.tool_calls.schema import ToolSchemas

if TYPE_CHECKING:  # a dialect's package imports it
    from streamkit.dialects.streams.frame_decoder import FrameDecoder

#: Repairs of the decoder that are counted for errors in a form that official clients ignore.
UNSEEN_ERRORS: Final = ("error_shape", "event_name_missing", "payload_in_list", "calls_unanswered", "stop_conflict")
#: The same for repairs of the parser, with the beginning of the line that was repaired. The parser may have read beyond the
#: error, so the error is in a frame only if the frame matches.
_UNSEEN_LINES: Final = {
    "sse_error_field": re.compile(rb"(?:\A|[\r\n])error(?![^\r\n:])"),
    "sse_bare_json": re.compile(rb"\A\{"),
}

#: The members of a profile that may differ while frames still pass unchanged.
PASSES: Final = frozenset({"include_usage"})
#: The events that the machine reads for the start, the end and a failure.
_NOTED: Final = frozenset({ProviderFailed, ResponseStarted, StreamEnded})
#: The end of an event's last line and the blank line after it.
_EVENT_END: Final = re.compile(rb"(?>\r\n|\r|\n)(?:\r\n|\r|\n)")
_LINE_END: Final = re.compile(rb"\n")  #: the end of an NDJSON line
_LENGTH_BYTES: Final = 4  #: a binary message begins with its length, in this many bytes

_NAMED: Final = re.compile(rb'"model"\s*:\s*"[^"\s]')
_BLANK: Final = re.compile(rb'("model"\s*:\s*)(?:null|"\s*")')
_DELTA: Final = b'"delta"'
#: The end of an object after its last array: only members whose values are no arrays or objects. The match begins with the
#: ``]`` that ends the array, and the members follow, so that no part of it can be inside a string.
_LAST_MEMBERS: Final = re.compile(rb'\](?:,\s?"[^"\\]*":\s?(?:"[^"\\]*"|[\w.+-]+))+\}')
#: Maximum number of beginnings of frames, and of ends, that are remembered: enough for as many choices.
KNOWN: Final = 8
KNOWN_BYTES: Final = 1024  #: maximum length in bytes of a remembered beginning or end


@frozen
class _Edit:
    """A frame that is changed or dropped: where it begins, its payload, and the payload to write instead, or ``b""``."""

    start: int
    payload: bytes
    instead: bytes
    terminated: bool


class PassThrough:
    """The machine of ``transcode`` within one dialect: bytes to the same bytes, in whole frames."""

    def __init__(
        self,
        dialect: Dialect,
        encoding: Encoding,
        policy: Policy,
        report: StreamReport,
        tools: ToolSchemas | None = None,
        output: OutputCheck | None = None,
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
        checkers = () if output is None else (OutputChecker(output, limits=limits, report=report),)
        self._watch = Chain(self._decoder, self._accumulator, *checkers)
        self._encoder = dialect.encoder(encoding, report)  # writes error frames only
        self._rule = rule_for(dialect, encoding.profile)
        self._edits: deque[_Edit] = deque()  # the edits of frames that have not passed yet
        self._split_end = False  # an event that ended in CR was dropped: drop an LF right after it, too
        #: The stream from byte ``_passed`` on. A growing bytearray, since fragments of two bytes take 43 bytes each in a list.
        self._held = bytearray()
        self._chunk = b""  # the current chunk, if nothing is held
        self._passed = 0  # number of bytes of the input that have passed
        self._last = b""  # the last byte that passed and is not blank
        self._is_known = False  # a frame of the dialect was seen
        self._has_payload = False  # the input ended inside a frame that has a payload
        self._is_over = False  # the terminator was seen
        self._runs_calls = False  # clients would run a call in the held bytes
        #: Bytes from this one on are held: for the first frame of the dialect; or, from the terminator or a call that clients
        #: would run, for the end of the input.
        self._wait_at: int | None = 0
        self._half_at: int | None = None  # frames from this byte on are held for the second half of a character
        self._stop_at: int | None = None  # no byte from this one on ever passes
        self._is_cut = False  # all bytes before ``_stop_at`` have passed
        self._error: ProviderFailed | None = None  # the failure to write at ``_stop_at``
        self._error_after: ProviderFailed | None = None  # the failure to write after the last frame that passed
        self._error_end: int | None = None  # where the provider's error, which passes, ends
        self._start: ResponseStarted | None = None
        self._good: Frame | None = None  # the last whole frame before a fault or the terminator
        self._begun: Collection[str] | None = None  # the calls begun before ``_stop_at``; None: all of the decoder's
        self._reason: str | None = None  # why the stream is not clean

    @property
    def ended(self) -> bool:
        """Whether the stream was clean, or an error frame was written."""
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
        if self.fault is None:  # the source failed: the rest of the last frame is read, as at the end of the input
            self._read(self._cutter.push_rest)
        failure = self._note_end(self._watch.abandon())
        if self.fault is None or self._report.clean:
            return self._end(failure, error)
        self._withhold()
        return self._ended(error)

    def closing(self, error: Exception) -> bytes:
        """Return what to write after a client has received all bytes fed: the error frame, unless the response had an end.

        A truncated frame is ended first: an error in the middle of a frame could not be parsed, so clients would not see it.
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
        """Run ``work``, a method of the parser, and read its frames until the parser or the decoder finds a fault."""
        self._cutter.emit = self._see
        try:
            work(*given)
        except Exception as error:
            if error is not self.fault and error is not self._parser.fault:
                raise
        finally:
            del self._cutter.emit  # else the parser and this machine would keep each other alive

    def _see(self, frame: Frame) -> None:
        """Read a frame and note how many bytes may pass. Raises the fault after which nothing is read."""
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
        """Note whether the decoder has recognised the dialect, and whether the frame at ``begin`` makes clients run a call.

        If clients would run a call, that frame and all bytes after it are held.
        """
        if not self._is_known and self._decoder.recognised:
            self._is_known, self._wait_at = True, None
        if self._decoder.runs_calls is not self._runs_calls and not self._is_over:
            self._runs_calls = self._decoder.runs_calls
            self._wait_at = begin if self._runs_calls else None

    def _hold_against(self, rule: Rule, frame: Frame) -> None:
        """Apply the rule to a frame, and note the edit if the frame is changed or dropped."""
        instead = rule(frame.data)
        if instead is not frame.data:
            self._edits.append(_Edit(frame.offset, frame.data, instead, frame.terminated))

    def _look_at_parser(self) -> None:
        """Check the bytes after the last whole frame: for a fault of the parser, or for too many held bytes."""
        boundary = self._parser.boundary
        if self.fault is None and not self._holds_too_much(boundary) and self._parser.fault is not None:
            self._fails(self._parser.fault, boundary)

    def _fails(self, fault: Exception, at: int) -> None:
        """Set the fault: no byte from ``at`` on passes, and none of a call that clients would run."""
        self.fault = fault
        if self._runs_calls and self._wait_at is not None:
            at = min(at, self._wait_at)
        self._stop_at = at if self._stop_at is None else min(at, self._stop_at)

    def _holds_too_much(self, at: int) -> bool:
        """Set a fault and return True if more bytes than the limit are held before byte ``at``."""
        if self._wait_at is None or at - self._wait_at <= self._limit or self.fault is not None:
            return False
        is_whole = self._is_over and not self._runs_calls
        self._fails(HeldTooLong(self._limit), self._end_of_terminator() if is_whole else 0)
        return True

    def _failed(self, failure: ProviderFailed, frame: Frame, begin: int, unseen: tuple[int, int], speaks: bool) -> None:
        """Read a frame with a failure of the provider, and decide whether it passes, is replaced or is followed by another.

        ``begin``: where the frame, or the frames held with it, begin. ``unseen``: the counts of ``_unseen`` before the frame.
        ``speaks``: the frame also has output, so it passes where clients read the output and only miss the error.
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
        """Count the errors that clients don't see: by the repair ``error_shape``, and by the other ``UNSEEN_ERRORS``."""
        shape, *others = (self._report.repairs[kind] for kind in UNSEEN_ERRORS)
        return shape, sum(others)

    def _looks_unseen(self, frame: Frame) -> bool:
        """Return whether clients see no event in an error's lines. Checks its bytes: the parser may be further on."""
        kinds = [kind for kind in _UNSEEN_LINES if self._report.repairs[kind]]
        if not kinds:
            return False
        raw = self._raw(frame.offset)
        end = _EVENT_END.search(raw)
        event = raw[: end.start()] if end and frame.terminated else raw
        return any(_UNSEEN_LINES[kind].search(event) for kind in kinds)

    def _note(self, event: Event) -> ProviderFailed | None:
        """Note what an event says of the start and the end of the stream; return the event if it is the provider's error."""
        if isinstance(event, ResponseStarted):
            self._start = event
        elif isinstance(event, StreamEnded):
            self._reason = event.reason
        return event if isinstance(event, ProviderFailed) else None

    def _note_end(self, events: list[Event]) -> ProviderFailed | None:
        """Note the events at the end of the input, and return the first failure of the provider."""
        return next(filter(None, [self._note(event) for event in events]), None)

    # -- bytes -----------------------------------------------------------------------------------------------------

    def _pass(self) -> bytes:
        """Return the bytes that may pass and have not yet."""
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
        elif size == len(chunk):  # nearly always, since most reads hold whole events
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
        """Return the input from byte ``at`` on. None of these bytes may have passed already."""
        return bytes(self._held[at - self._passed :] or self._chunk[at - self._passed :])

    def _end_of_terminator(self) -> int:
        at = self._wait_at or 0
        raw = self._raw(at)
        if self._dialect.frame_end is None:  # a binary message
            return at + int.from_bytes(raw[:_LENGTH_BYTES], "big")
        end = _EVENT_END.search(raw) if len(self._dialect.frame_end) > 1 else _LINE_END.search(raw)
        return at + (end.end() if end else len(raw))

    def _edited(self, passing: bytes, start: int) -> bytes:
        """Return the bytes, which begin at byte ``start`` of the stream, with the edits of their frames applied."""
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
                if instead:  # the payload spans several lines
                    instead = b"data: " + instead.replace(b"\n", b" ") + b"\n\n"
            pieces += [passing[done:begin], instead]
            done = end
        return b"".join([*pieces, passing[done:]])

    # -- the end ---------------------------------------------------------------------------------------------------

    def _end(self, failure: ProviderFailed | None, error: Exception | None = None) -> bytes:
        """Return the held bytes that may pass at the end of the input, and an error frame if the response is not whole.

        ``failure``: the provider's failure, if only the stop reasons report one.
        ``error``: the exception that interrupted the input.
        """
        report, half_at, self._half_at = self._report, self._half_at, None
        if half_at is not None:  # the frames held for the second half of a character were read at the end
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
        """Record in the report what never passes, since clients would run calls: their input, and the bytes held after it."""
        if self._runs_calls:
            for call in self._decoder.inputs_at_once:
                self._report.withhold("unclean_call", *call)
            self._report.broken_frame = self._raw(self._wait_at or 0)  # includes a truncated frame at the end

    def _rest(self, *, is_whole: bool, has_payload: bool) -> bytes:
        """Return the bytes after the last whole frame, with the frame's end added. Bytes that can't pass go into the report.

        ``has_payload``: the input ended after a whole payload, of which only the end of the frame is missing.
        """
        torn = self._report.broken_frame is not None
        rest = b"" if torn else bytes(self._held)
        last = rest.rstrip()[-1:]
        end = self._dialect.continued(self._parser, last or self._last, b"")
        if end is not None:  # the stream is a JSON array; it may end with a comma that no element followed
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
        """Return the error frame of a response that is not whole, unless the provider's error passed."""
        if self._error_end is not None and self._error_after is None:
            return self._closed() if self._stop_at is not None else b""
        self._follow()
        if error is not None:
            return self._framed(self._encoder.fail(error))
        return self._framed(self._encoder.feed([StreamEnded(clean=False, reason=self._reason)]))

    def _written(self, failure: ProviderFailed) -> bytes:
        """Return the provider's failure as the dialect's error frame, unless an error frame was written before."""
        self._follow()
        return self._framed(self._encoder.feed([failure]))

    def _follow(self) -> None:
        if self._good is not None:
            begun = self._decoder.begun if self._begun is None else self._begun
            self._encoder.follow(self._start, self._good, begun)

    def _closed(self) -> bytes:
        """Return the end of a JSON array that nothing else follows; empty for other framings."""
        return self._dialect.continued(self._parser, self._last, b"") or b""

    @property
    def _is_array(self) -> bool:
        return self._dialect.continued(self._parser, b"", b"") is not None

    def _framed(self, frame: bytes) -> bytes:
        """Return an error frame of the encoder in the framing of the passed bytes: an element, if those are an array."""
        framed = self._dialect.continued(self._parser, self._last, frame) if frame else None
        return frame if framed is None else framed


# -- the rule for frames that the client did not ask for ------------------------------------------------------------


def rule_for(dialect: Dialect, profile: Profile) -> Rule | None:
    """Return the rule for a stream of ``dialect`` to a client of ``profile``; None where every frame passes unchanged."""
    place = dialect.model_place if profile.model else None
    drops = dialect.usage_on_request and not profile.include_usage
    return Rule(place, profile.model, drops=drops) if place is not None or drops else None


class Rule:
    """The rule for one stream. ``place`` is where frames name ``model``; ``drops``: chunks with only usage are dropped."""

    def __init__(self, place: ModelPlace | None, model: str, *, drops: bool) -> None:
        #: A frame that begins with one of these passes unchanged: the rest of it can't matter to the rule.
        self.known: tuple[bytes, ...] = ()
        self._ends: tuple[bytes, ...] = ()  # a frame that ends with one of these names a model
        self._place = place
        self._model = model
        self._drops = drops
        self._needs = b'"%b"' % (place.within or place.beside).encode() if place is not None else b""

    def __call__(self, payload: bytes) -> bytes:
        if self._drops and _is_bare_usage(payload):
            return b""
        if self._place is not None:
            return self._name(payload, self._place)
        self._know(payload, 0)
        return payload

    def _name(self, payload: bytes, place: ModelPlace) -> bytes:
        if self._needs not in payload or payload.endswith(self._ends):
            return payload
        found = _NAMED.search(payload)
        # the count of braces shows that no other object begins before the name, so the name is the frame's
        if found is not None and payload.count(b"{", 0, found.start()) == (2 if place.within else 1):
            self._know(payload, found.end())
            return payload
        instead = _named(payload, place, self._model)
        if instead is payload and not place.within and found is not None:
            self._know_end(payload)
        return instead

    def _know(self, payload: bytes, end: int) -> None:
        """Remember the first ``end`` bytes of a frame, after which nothing matters to the rule except a delta."""
        if self._drops:
            delta = payload.find(_DELTA)
            if delta < 0:
                return
            end = max(end, delta + len(_DELTA))
        if end <= KNOWN_BYTES:
            self.known = (payload[:end], *self.known[: KNOWN - 1])

    def _know_end(self, payload: bytes) -> None:
        """Remember the end of a frame that names its model after other objects (Azure): later frames may end the same way."""
        end = payload[payload.rfind(b"]") :]
        if (
            len(end) <= KNOWN_BYTES
            and end.count(b'"model"') == 1
            and _NAMED.search(end)
            and _LAST_MEMBERS.fullmatch(end)
        ):
            self._ends = (end, *self._ends[: KNOWN - 1])


def _is_bare_usage(payload: bytes) -> bool:
    if b'"usage"' not in payload or _DELTA in payload:
        return False
    chunk = json_object(payload)
    return chunk is not None and not chunk.get("choices") and bool(chunk.get("usage")) and not chunk.get("error")


def _named(payload: bytes, place: ModelPlace, model: str) -> bytes:
    """Return the payload with ``model`` where it names none. Other bytes stay the same, unless a member occurs twice."""
    frame = json_object(payload)
    holder = frame if frame is None or not place.within else frame.get(place.within)
    if not isinstance(holder, dict) or place.beside not in holder:
        return payload
    known = holder.get("model")
    if isinstance(known, str) and known.strip():
        return payload
    missing = "model" not in holder
    holder["model"] = model
    text = orjson.dumps(model)
    if missing:
        begin = re.search(rb'"%b"\s*:\s*\{' % place.within.encode() if place.within else rb"\{", payload)
        edited = payload if begin is None else payload[: begin.end()] + b'"model":%b,' % text + payload[begin.end() :]
    else:
        edited = _BLANK.sub(lambda found: found[1] + text, payload, count=1)
    return edited if json_object(edited) == frame else orjson.dumps(frame)
