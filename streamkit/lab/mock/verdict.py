"""The mock's verdict on its client: the faults that the mock saw, each with the request that shows it.

A server sees only requests, and how long connections stay open. So each fault shows in a later request, or in a connection
that stays open too long. A client that sends no further request cannot be judged. ``FAULTS`` defines the faults.

Requests belong to the same conversation if they have the same dialect and the same first user message.

Source: observe.md O32, facts 46 and 51.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from attrs import define, field, frozen

from streamkit.conversation.messages import Request, ToolCall, ToolResult, Turn
from streamkit.events import ProviderFailed, TextDelta, ToolCallFinished, ToolCallStarted
from streamkit.http_errors import is_retryable
from streamkit.lab.mock.script import answers_in, first_said, text_of
from streamkit.lab.mock.writing import Answer, Written
from streamkit.observer import Observer

FaultKind: TypeAlias = Literal[
    "truncated_stream_accepted",
    "unfinished_call_answered",
    "retry_after_ignored",
    "bad_request_retried",
    "no_read_timeout",
    "left_late",
]
FAULTS: Final[Mapping[FaultKind, str]] = {
    "truncated_stream_accepted": "a later request contains an interrupted or failed response as if it were complete",
    "unfinished_call_answered": "a later request has the result of a call that was never finished",
    "retry_after_ignored": "the same request was sent again before the time in Retry-After",
    "bad_request_retried": "an identical request was sent after an error that a retry cannot fix (400, 401, 404 …)",
    "no_read_timeout": "the client was still connected at the end of a stall's time limit",
    "left_late": "the client was still connected long after the stream's terminator, while the body stayed open",
}
NoteKind: TypeAlias = Literal["not_retried", "out_of_turns"]
NOTES: Final[Mapping[NoteKind, str]] = {
    "not_retried": "no request of the conversation followed a temporary error (429, 503 …)",
    "out_of_turns": "a request got an error because the script had no turn left for it",
}
READ_TIMEOUT_S: Final = 60.0  #: seconds of a stall after which a client must have left, unless the script sets a bound
LEAVE_S: Final = 5.0  #: seconds after the end of a stream within which a client must have left
#: Tolerance in seconds: clocks and timers are not exact, so a retry this much too early is no fault.
EARLY_S: Final = 0.05
#: Most conversations watched, and most requests kept of each. Older ones are forgotten.
CONVERSATIONS, EXCHANGES = 1000, 100
#: Most faults kept, and most notes kept. Older ones are forgotten.
FINDINGS: Final = 1000


@frozen
class Finding:
    """A fault of the client, or a note, with the number of the request that shows it (the first request is 1)."""

    kind: FaultKind | NoteKind
    request: int
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: request {self.request}: {self.message}"


@frozen(kw_only=True)
class ClientVerdict:
    """The verdict on the client so far. ``notes`` are observations that are no faults."""

    requests: int
    faults: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.faults

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as JSON values, as ``GET /verdict`` does."""
        found = {
            name: [{"kind": each.kind, "request": each.request, "message": each.message} for each in findings]
            for name, findings in (("faults", self.faults), ("notes", self.notes))
        }
        return {"clean": self.clean, "requests": self.requests, **found}

    def __str__(self) -> str:
        count = "1 request" if self.requests == 1 else f"{self.requests} requests"
        head = f"verdict on the client: {'clean' if self.clean else 'not clean'}, {count}"
        return "\n".join([head, *(f"fault: {each}" for each in self.faults), *(f"note: {each}" for each in self.notes)])


@frozen
class ReadCall:
    """A tool call that a client could read, and whether it was finished."""

    id: str
    name: str
    finished: bool
    id_made: bool = False  #: the stream had no id, so one was generated


@frozen(kw_only=True)
class ReadAnswer:
    """The content that a client can read in a response, and whether the response is complete."""

    text: str
    calls: tuple[ReadCall, ...]
    whole: bool


def read_answer(answer: Answer) -> ReadAnswer | None:
    """Return a response's content, read like any provider's response; None for a body that cannot be read."""
    observer = Observer(answer.dialect, whole=not answer.streamed)
    events = [event for seen in (*observer.feed(answer.body), *observer.finish()) for event in seen.events]
    if not answer.streamed and observer.fault is not None:
        return None
    ended = {event.id for event in events if isinstance(event, ToolCallFinished) and event.ended}
    return ReadAnswer(
        text="".join(event.text for event in events if isinstance(event, TextDelta)),
        calls=tuple(
            ReadCall(event.id, event.name, event.id in ended, event.id_made)
            for event in events
            if isinstance(event, ToolCallStarted)
        ),
        whole=observer.report.clean is True,
    )


@define(kw_only=True)
class Exchange:
    """A request, and the facts about its response that are needed to judge later requests."""

    number: int
    depth: int  #: number of model responses in the request's history
    digest: bytes = field(repr=False)
    failed: ProviderFailed | None = None
    read: ReadAnswer | None = None
    sent_at: float | None = None  #: when the latest bytes of the response were sent, by the watch's clock
    followed: bool = False  #: True once the conversation had a later request
    judged: bool = False  #: whether a fault was found in the client's use of the response


@define
class Conversation:
    """The state of one conversation."""

    exchanges: deque[Exchange] = field(factory=lambda: deque(maxlen=EXCHANGES))
    had: set[int] = field(factory=set)  #: the numbers of the script's turns that this conversation has used
    depth: int = 0  #: ``Exchange.depth`` of the conversation's latest request


class Watch:
    """Watches one or more clients. ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._requests = 0
        self._faults: deque[Finding] = deque(maxlen=FINDINGS)
        self._notes: deque[Finding] = deque(maxlen=FINDINGS)
        self._conversations: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    @property
    def verdict(self) -> ClientVerdict:
        notes = [*self._notes, *self._not_retried()]
        return ClientVerdict(requests=self._requests, faults=tuple(self._faults), notes=tuple(notes))

    def ask(self, request: Request, digest: bytes) -> tuple[Conversation, Exchange]:
        """Judge a request by its conversation, and add it there. Repeated requests have the same ``digest``."""
        self._requests += 1
        exchange = Exchange(number=self._requests, depth=len(answers_in(request)), digest=digest)
        key = (request.dialect, first_said(request))
        conversation = self._conversations.pop(key, None)
        if conversation is None or exchange.depth < conversation.depth:
            conversation = Conversation()
        self._conversations[key] = conversation
        if len(self._conversations) > CONVERSATIONS:
            self._conversations.popitem(last=False)
        conversation.depth = exchange.depth
        for earlier in conversation.exchanges:
            self._judge_repetition(earlier, exchange)
            self._judge_history(earlier, exchange, request, conversation)
            earlier.followed = earlier.followed or earlier.sent_at is not None
        conversation.exchanges.append(exchange)
        return conversation, exchange

    def answer(self, exchange: Exchange, written: Written) -> None:
        """Remember the response that is about to be sent, to judge the client's later requests by it."""
        exchange.failed, exchange.read = written.failed, read_answer(written.answer)

    def out_of_turns(self, exchange: Exchange) -> None:
        self._notes.append(Finding("out_of_turns", exchange.number, "the script has no turn left for this request"))

    def stayed(self, exchange: Exchange, seconds: float) -> None:
        """Add the fault that the client is still connected after ``seconds`` of silence."""
        if exchange.read is not None and exchange.read.whole:
            message = f"still connected {seconds:g} s after the end of the stream"
            self._faults.append(Finding("left_late", exchange.number, message))
        else:
            message = f"still connected after {seconds:g} s of silence"
            self._faults.append(Finding("no_read_timeout", exchange.number, message))

    # -- what a request shows about earlier responses ------------------------------------------------------------------

    def _judge_repetition(self, earlier: Exchange, now: Exchange) -> None:
        failed, sent_at = earlier.failed, earlier.sent_at
        if failed is None or sent_at is None or earlier.judged:
            return
        if not is_retryable(failed):
            if now.digest == earlier.digest:
                message = f"identical to request {earlier.number}, which got status {failed.http_status}"
                self._found("bad_request_retried", earlier, now, message)
        elif failed.retry_after_s is not None:
            waited = self.clock() - sent_at
            if waited < failed.retry_after_s - EARLY_S:
                after = f"{waited:.2f} s after request {earlier.number}"
                message = f"sent {after}, whose Retry-After was {failed.retry_after_s:g} s"
                self._found("retry_after_ignored", earlier, now, message)

    def _judge_history(self, earlier: Exchange, now: Exchange, request: Request, conversation: Conversation) -> None:
        read = earlier.read
        if read is None or read.whole or earlier.judged or now.depth <= earlier.depth:
            return
        if request.turns[-1].role == "assistant" and now.depth == earlier.depth + 1:
            return  # the client asks the model to continue the incomplete response
        history = answers_in(request)[earlier.depth]
        instead = [
            each.read
            for each in conversation.exchanges
            if each.depth == earlier.depth and each.read is not None and each.read.whole
        ]
        if any(_says(history, whole) for whole in instead):
            return
        answered = {part.call_id for turn in request.turns for part in turn.parts if isinstance(part, ToolResult)}
        for call in read.calls:
            if not call.finished and any(_is_call(part, call) and part.id in answered for part in _calls(history)):
                message = f"has a result of the call {call.id}, which request {earlier.number} received only in part"
                self._found("unfinished_call_answered", earlier, now, message)
                return
        if _says(history, read):
            message = f"its history contains the interrupted response to request {earlier.number}"
            self._found("truncated_stream_accepted", earlier, now, message)

    def _found(self, kind: FaultKind, earlier: Exchange, now: Exchange, message: str) -> None:
        earlier.judged = True
        self._faults.append(Finding(kind, now.number, message))

    def _not_retried(self) -> Iterator[Finding]:
        for conversation in list(self._conversations.values()):
            for each in list(conversation.exchanges):
                if (
                    each.failed is not None
                    and each.sent_at is not None
                    and is_retryable(each.failed)
                    and not each.followed
                ):
                    message = f"status {each.failed.http_status} may be temporary, but no request followed"
                    yield Finding("not_retried", each.number, message)


def _calls(turns: list[Turn]) -> list[ToolCall]:
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolCall)]


def _is_call(part: ToolCall, call: ReadCall) -> bool:
    """Return whether a call in the history is this call. If the stream had no id, the names decide."""
    return part.id == call.id or ((part.id_made or call.id_made) and part.name == call.name)


def _says(turns: list[Turn], read: ReadAnswer) -> bool:
    """Return whether a response in the history is the one that was read: its text or one of its calls is the same."""
    text = "".join(text_of(turn) for turn in turns).strip()
    if text and text == read.text.strip():
        return True
    return any(_is_call(part, call) for part in _calls(turns) for call in read.calls)
