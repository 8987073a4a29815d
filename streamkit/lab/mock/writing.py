"""Turn the steps of a script into the bytes of one response, with the encoders that the gateway uses for its clients.

The steps become events, which pass through the same machines as events of real providers. Waits are data: seconds of silence
before a frame. Ids and jitter come from one seeded random source, and the clock stands still, so the same seed and request
give the same bytes.

A response that is not streamed waits once, for the sum of its steps' waits. Raw bytes before the first content go before the
body, and later raw bytes after it. If such a response is interrupted, half of its body is sent.

Source: observe.md O31.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from attrs import evolve, field, frozen

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Request
from streamkit.dialects import dialect_named, keep_alive
from streamkit.dialects.profiles import DEFAULT_PROFILE, Encoding
from streamkit.events import (
    ChoiceStarted,
    ProviderFailed,
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    UsageReported,
    WireEvent,
)
from streamkit.http_errors import encode_error
from streamkit.lab.demo_model import DELTAS, texts
from streamkit.lab.mock.script import (
    SPOKEN,
    Call,
    Comment,
    Cut,
    Error,
    ErrorStatus,
    Raw,
    Reset,
    Say,
    Stall,
    Step,
    Stop,
    Think,
    Usage,
    Wait,
    not_negative,
)
from streamkit.limits import DEFAULT_LIMITS
from streamkit.read_options import DEFAULT_OPTIONS
from streamkit.recipes import own_stages
from streamkit.report import StreamReport
from streamkit.rewrite.given import EventStage
from streamkit.sync import PushedStages
from streamkit.testing.cuts import cut_at
from streamkit.text.identifiers import BASE62
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.translation.bodies import encode_response
from streamkit.web.refusals import with_status

#: How the connection ends after the frames. ``whole``: the body ends as HTTP requires. ``cut``: the connection closes inside
#: the body. ``reset``: it is reset (RST) inside the body. ``stalled``: it stays open and silent until the client leaves.
AnswerEnd: TypeAlias = Literal["whole", "cut", "reset", "stalled"]


@frozen(kw_only=True)
class Answer:
    """The mock's response to one request, in ``dialect``.

    ``frames`` are the bytes of each frame of a stream in order, each with its terminator: an SSE event with its blank line, a
    comment, an NDJSON line, a binary message. They may be malformed. If the response is not ``streamed``, there is one frame,
    the whole body.
    """

    dialect: str
    frames: tuple[bytes, ...]
    content_type: str
    streamed: bool = True
    end: AnswerEnd = "whole"
    status: int = 200
    #: Headers in addition to Content-Type and those of HTTP's own framing.
    headers: Mapping[str, str] = field(factory=dict)
    #: Seconds of silence before the frame with this number; ``len(frames)`` means before the end. Larger numbers are ignored,
    #: so that code which removes frames need not renumber the waits.
    waits_s: Mapping[int, float] = field(factory=dict)

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)


# -- writing -----------------------------------------------------------------------------------------------------------


CREATED: Final = 1_767_225_600  #: the creation time of every response: 2026-01-01T00:00:00Z
FRAGMENT_CHARS: Final = 8  #: the number of characters in each streamed fragment of a call's arguments
JITTER: Final = (0.5, 1.5)  #: the range of the random time between two tokens, as factors of the mean
ID_CHARS: Final = 22  #: characters of a generated id after its prefix
_WORD: Final = re.compile(r"\s*\S+|\s+\Z")  #: matches a word with the whitespace before it, or whitespace at the end
_SSE: Final = "text/event-stream"
_JSON: Final = "application/json"


@frozen(kw_only=True)
class Timing:
    """The pace of the mock's output. A token is a word, or a fragment of arguments."""

    first_token_s: float = field(default=0.0, validator=not_negative)  #: seconds before the first token
    #: Tokens per second after the first one; 0: as fast as possible.
    tokens_per_s: float = field(default=0.0, validator=not_negative)
    #: Speed-up of all waits, including each ``wait`` step: 2 is twice as fast, 0 never waits.
    speed: float = field(default=1.0, validator=not_negative)


AT_ONCE: Final = Timing()


@frozen(kw_only=True)
class Written:
    """A response, and the facts about it that the verdict on the client needs."""

    answer: Answer
    failed: ProviderFailed | None = None  #: the error, if the response is an HTTP error; else None
    stall: Stall | None = None  #: the ``stall`` step at its end, if any
    losses: Counter[str] = field(factory=Counter)  #: losses: content that the dialect cannot express, by kind


class Writer:
    """Writes one response to ``request``, whose events pass ``stages``. Raises UsageError for an unknown dialect."""

    def __init__(
        self,
        request: Request,
        *,
        streamed: bool,
        as_array: bool = False,
        timing: Timing = AT_ONCE,
        source: random.Random,
        stages: Sequence[EventStage] = (),
    ) -> None:
        self._request, self._streamed, self._timing, self._source = request, streamed, timing, source
        self._dialect = dialect_named(request.dialect)
        surface = self._dialect.http.surface
        array = None if surface is None or not as_array else surface.array
        self._headers = {} if surface is None or surface.chat is None else surface.chat.headers
        self._array = None if array is None else array.writer(DEFAULT_LIMITS)
        self._report = StreamReport()
        self._reading = ToolCallAccumulator(report=self._report, make_id=self.make_id, check=True)
        self._encoding = self._how_to_write()
        self._encoder = self._dialect.encoder(self._encoding, self._report)
        self._collector = Collector(self._dialect.name, self._report)
        self._own = PushedStages(own_stages(stages, DEFAULT_OPTIONS), self._report) if stages else None
        self._frames: list[bytes] = []
        self._waits: dict[int, float] = {}
        self._tokens: Counter[type] = Counter()
        self._kind: type | None = None  # type of the block that is being written
        self._block = self._calls = 0
        self._raw_before: int | None = None  # number of the script's ``raw`` steps before a body that is not streamed
        self._started = self._has_usage = self._over = False

    def _how_to_write(self) -> Encoding:
        on_request = self._streamed and self._dialect.usage_on_request
        profile = evolve(
            DEFAULT_PROFILE,
            include_usage=self._request.stream_usage is True or not on_request,
            model=self._request.model or "",
            settings=self._dialect.settings(self._request),
        )
        return Encoding(profile=profile, make_id=self.make_id, clock=lambda: CREATED)

    def make_id(self, prefix: str) -> str:
        return prefix + "".join(self._source.choices(BASE62, k=ID_CHARS))

    # -- the two ways to write a response ------------------------------------------------------------------------------

    def events(self, events: Iterable[WireEvent]) -> Written:
        """Return a response with these events, up to its terminator."""
        for event in events:
            self._paced(event)
        self._end()
        return self._written("whole")

    def steps(self, steps: Sequence[Step]) -> Written:
        """Return a response with these steps. ``Turn`` has checked that they can form one."""
        end: AnswerEnd = "whole"
        stall: Stall | None = None
        is_spoken = any(isinstance(step, SPOKEN) for step in steps)
        for step in steps:
            match step:
                case Wait():
                    self._wait(step.seconds)
                case ErrorStatus():
                    return self.refused(_failure_of(step, self._dialect.name))
                case Error() if not self._streamed:
                    return self.refused(ProviderFailed(step.kind, step.message))
                case Raw():
                    self._put(step.data)
                case Comment():
                    self._put(self._comment(step.text))
                case Cut():
                    end = "cut" if step.how == "connection" else "whole"
                case Reset():
                    end = "reset"
                case Stall():
                    end, stall = "stalled", step
                case _:
                    if self._streamed and not self._started:
                        self._start(next((step for step in steps if isinstance(step, Usage)), None))
                    self._say(step)
        breaks_off = isinstance(steps[-1], Cut | Reset | Stall)
        if is_spoken and not self._over and not (breaks_off and self._streamed):
            self._say(Stop("tool_calls" if self._calls else "stop"))
        return self._written(end, stall, breaks_off=breaks_off)

    def _written(self, end: AnswerEnd, stall: Stall | None = None, *, breaks_off: bool = False) -> Written:
        if self._own is not None:
            self._own.close()
        if not self._streamed:
            self._put_body(breaks_off=breaks_off)
        elif self._array is not None and self._over and (closing := self._array.finish()):
            self._frames.append(closing)
        media_type = self._dialect.media_type if self._streamed and self._array is None else _JSON
        answer = Answer(
            dialect=self._dialect.name,
            frames=tuple(self._frames),
            content_type=media_type,
            streamed=self._streamed,
            end=end,
            headers=self._headers if self._streamed else {},
            waits_s=dict(self._waits),
        )
        return Written(answer=answer, stall=stall, losses=self._report.losses)

    def refused(self, failed: ProviderFailed) -> Written:
        """Return an HTTP error, delayed by the sum of the waits before it."""
        status, headers, body = encode_error(failed, self._dialect.name)
        content_type = headers.pop("content-type")
        answer = Answer(
            dialect=self._dialect.name,
            frames=(body,),
            content_type=content_type,
            streamed=False,
            status=status,
            headers=headers,
            waits_s={0: sum(self._waits.values())},
        )
        return Written(answer=answer, failed=evolve(failed, http_status=status))

    # -- from steps to events ------------------------------------------------------------------------------------------

    def _start(self, usage: Usage | None) -> None:
        """Start the response with the count of input tokens, which some dialects report at the start."""
        read = UsageReported(input_total=self._read_words() if usage is None else usage.input)
        self._started = True
        self._feed([ResponseStarted(None, self._request.model, CREATED, usage=read), ChoiceStarted()])

    def _say(self, step: Step) -> None:
        match step:
            case Say() | Think():
                self._begin(type(step))
                delta = TextDelta if isinstance(step, Say) else ReasoningDelta
                for word in _WORD.findall(step.text):
                    self._paced(delta(word, block=self._block))
            case Call():
                self._call(step)
            case Usage():
                self._has_usage = True
                counted = UsageReported(
                    input_total=step.input,
                    input_cached=step.cached,
                    input_cache_write=step.cache_write,
                    output_total=step.output,
                    output_reasoning=step.reasoning,
                    total=None if step.input is None or step.output is None else step.input + step.output,
                )
                self._feed([counted])
            case Error():
                self._feed([ProviderFailed(step.kind, step.message)])
                self._end()
            case Stop():
                usage = [] if self._has_usage else [self._count()]
                self._feed([StopReasonSeen(step.reason, step.reason), *usage, TerminatorSeen()])
                self._end()

    def _begin(self, kind: type) -> None:
        """Start a new block, unless the last step wrote a block of the same kind."""
        if self._kind is not None and kind is not self._kind:
            self._block += 1
        self._kind = kind

    def _call(self, step: Call) -> None:
        self._begin(Call)
        index = self._calls
        self._calls += 1
        self._paced(ToolCallDelta(index, step.id or self.make_id("call_"), step.name, ""))
        for start in range(0, len(step.text), FRAGMENT_CHARS):
            self._paced(ToolCallDelta(index, arguments=step.text[start : start + FRAGMENT_CHARS]))
        if step.finished:
            self._feed([ToolCallEnded(index)])

    def _count(self) -> UsageReported:
        read, output = self._read_words(), self._tokens.total()
        thought = self._tokens[ReasoningDelta]
        return UsageReported(
            input_total=read, input_cached=0, output_total=output, output_reasoning=thought, total=read + output
        )

    def _read_words(self) -> int:
        return sum(len(text.split()) for text in texts(self._request))

    # -- from events to frames -----------------------------------------------------------------------------------------

    def _paced(self, event: WireEvent) -> None:
        """Write an event. If the event is a token, wait first, according to ``Timing``."""
        if isinstance(event, DELTAS):
            gap = self._timing.first_token_s
            if self._tokens:
                gap = self._source.uniform(*JITTER) / self._timing.tokens_per_s if self._timing.tokens_per_s else 0.0
            self._tokens[type(event)] += 1
            self._wait(gap)
        self._feed([event])

    def _wait(self, seconds: float) -> None:
        if self._timing.speed and seconds:
            place = len(self._frames)
            self._waits[place] = self._waits.get(place, 0.0) + seconds / self._timing.speed

    def _feed(self, events: list[WireEvent]) -> None:
        self._take(self._reading.feed(events))

    def _end(self) -> None:
        self._take(self._reading.finish())
        if self._own is not None:
            self._write(self._own.end())
        self._over = True
        if self._streamed and (last := self._encoder.finish()):
            self._put_stream(last)

    def _take(self, events: list[Any]) -> None:
        if self._reading.fault is not None:
            raise self._reading.fault
        if events:
            self._write(events if self._own is None else self._own.push(events))

    def _write(self, events: list[Any]) -> None:
        if not events:
            return
        if not self._streamed:
            if self._raw_before is None:
                self._raw_before = len(self._frames)
            self._collector.feed(events)
        elif written := self._encoder.feed(events):
            self._put_stream(written)
        if self._encoder.fault is not None:
            raise self._encoder.fault

    def _put_stream(self, chunk: bytes) -> None:
        """Split the encoder's bytes into frames and add each frame to the response."""
        frames = self._dialect.parser(DEFAULT_LIMITS, StreamReport()).feed(chunk)
        for frame in cut_at(chunk, [frame.offset for frame in frames[1:]]):
            self._put(frame if self._array is None else self._array.feed(frame))

    def _put(self, data: bytes) -> None:
        if data:
            self._frames.append(data)

    def _comment(self, text: str) -> bytes:
        if not self._streamed:
            return b""
        if text and self._dialect.media_type == _SSE and self._array is None:
            return f": {text}\n\n".encode()
        return b"" if self._array is not None else keep_alive(self._dialect.name)

    def _put_body(self, *, breaks_off: bool) -> None:
        """Make the response one frame: raw bytes, the body in its place between them. Put the sum of all waits before it."""
        body = b""
        if self._over:
            body = encode_response(
                self._collector.finish(),
                self._dialect.name,
                profile=self._encoding.profile,
                report=self._report,
                make_id=self.make_id,
                clock=self._encoding.clock,
            )
        before = self._raw_before or 0
        whole = b"".join([*self._frames[:before], body, *self._frames[before:]])
        whole = whole[: len(whole) // 2] if breaks_off else whole
        self._frames = [whole] if whole else []
        self._waits = {0: sum(self._waits.values())}


def _failure_of(step: ErrorStatus, dialect: str) -> ProviderFailed:
    failed = with_status(step.error_type, step.message, step.status, dialect)
    return evolve(failed, retry_after_s=None if step.retry_after is None else float(step.retry_after))
