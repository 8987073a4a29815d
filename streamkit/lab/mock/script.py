"""Scripts: the steps and turns of a scripted provider, and the choice of the turn that answers a request.

Each step is a value. In a TOML script a step is a table with one key, its name in ``STEPS``. The key's value is a table of the
step's fields, or only its first field (``{ wait = 0.2 }``), or ``true`` if all fields have defaults (``{ stall = true }``).

A request gets the first turn that fits it and that its conversation has not had. Requests with the same first user message are
one conversation. The conversation starts again if a request has a shorter history than the request before it.

Source: observe.md O31.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise
from typing import Any, Final, Literal, TypeAlias, get_args

import orjson
from attrs import Attribute, field, frozen

from streamkit.conversation.messages import Request, Text, Turn
from streamkit.dialects.vocabulary.error_bodies import ERROR_BY_STATUS
from streamkit.errors import UsageError
from streamkit.events import ErrorType, StopReason
from streamkit.http_errors import RETRY_AFTER_MAX_S

Arguments: TypeAlias = Mapping[str, Any] | str  #: a JSON object, or the exact text of the arguments, valid JSON or not


def not_negative(_instance: Any, attribute: Attribute[Any], value: float | None) -> None:
    """Raise UsageError for a number below 0. Used as a validator."""
    if value is not None and not value >= 0:  # NaN is refused as well
        raise UsageError(f"{attribute.name}: must be 0 or more, not {value:g}")


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


def _can_be_json(_instance: Any, attribute: Attribute[Any], value: Arguments) -> None:
    if isinstance(value, str):
        return
    try:
        orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise UsageError(f"{attribute.name}: must be JSON ({error}); or write its text") from None


@frozen
class Say:
    """Text of the response, sent word by word."""

    text: str


@frozen
class Think:
    """Visible reasoning, sent word by word."""

    text: str


@frozen
class Call:
    """A tool call. Several ``call`` steps in one turn are parallel calls.

    If not ``finished``, half of the argument text is sent and the call stays open; the next step must be ``cut``, ``reset``,
    ``stall`` or ``error``. An empty ``id`` is replaced by a generated one.
    """

    name: str
    arguments: Arguments = field(default="{}", validator=_can_be_json)
    id: str = ""
    finished: bool = True

    @property
    def text(self) -> str:
        text = self.arguments if isinstance(self.arguments, str) else orjson.dumps(self.arguments).decode()
        return text if self.finished else text[: len(text) // 2]


@frozen
class Wait:
    """Seconds of silence before the next bytes. Before the first bytes, the status line is delayed too."""

    seconds: float = field(validator=not_negative)


@frozen
class Usage:
    """Token counts. ``input`` includes ``cached`` and ``cache_write``, and ``output`` includes ``reasoning``.

    In a turn without this step, words are counted as tokens.
    """

    input: int | None = field(default=None, validator=not_negative)
    output: int | None = field(default=None, validator=not_negative)
    cached: int | None = field(default=None, validator=not_negative)
    cache_write: int | None = field(default=None, validator=not_negative)
    reasoning: int | None = field(default=None, validator=not_negative)


@frozen
class Stop:
    """The end of the response, with its stop reason and the dialect's terminator.

    A turn that no other step ends gets this step, with ``tool_calls`` if it has calls, else with ``stop``.
    """

    reason: StopReason = "stop"


@frozen
class Error:
    """An error in the stream, which ends it. A response that is not streamed becomes an HTTP error instead."""

    kind: ErrorType = "server"
    message: str = "the script says so"


def _status_known(_instance: Any, _attribute: Attribute[Any], value: int) -> None:
    if not 400 <= value <= 599:
        raise UsageError(f"status: must be 400 to 599, not {value}")


@frozen
class ErrorStatus:
    """An HTTP error instead of a response. Its turn may contain only this step and ``wait``.

    ``kind`` None means the usual kind for the status. ``retry_after`` is in seconds.
    """

    status: int = field(default=500, validator=_status_known)
    kind: ErrorType | None = None
    message: str = "the script says so"
    retry_after: float | None = field(default=None, validator=not_negative)

    @property
    def error_type(self) -> ErrorType:
        usual: ErrorType = "invalid_request" if self.status < 500 else "server"
        return self.kind or ERROR_BY_STATUS.get(self.status, usual)

    def __attrs_post_init__(self) -> None:
        if self.retry_after is not None and self.retry_after > RETRY_AFTER_MAX_S:
            raise UsageError(f"retry_after: must be at most {RETRY_AFTER_MAX_S:g} seconds, a year")


@frozen
class Stall:
    """Silence until the client leaves.

    If the client is still connected after ``bound_s`` seconds, the verdict counts a fault and the connection is reset. None
    means ``verdict.READ_TIMEOUT_S``, or ``verdict.LEAVE_S`` after the end of the stream.
    """

    bound_s: float | None = field(default=None, validator=not_negative)


@frozen
class Cut:
    """The response is interrupted without its end.

    ``connection``: the connection closes inside the body. ``body``: the body ends as HTTP requires, as after a proxy that gave
    up. Of a response that is not streamed, half of the body is sent.
    """

    how: Literal["connection", "body"] = "connection"


@frozen
class Reset:
    """The response is interrupted by a connection reset (TCP RST)."""


@frozen
class Raw:
    """Raw bytes, or a text in UTF-8, between two frames. In TOML: ``{ raw = "…" }`` or ``{ raw = { b64 = "…" } }``.

    If all steps of a turn are raw bytes, only these bytes are sent, without the start and the end of a response.
    """

    data: bytes = field(converter=_bytes)


@frozen
class Comment:
    """An SSE comment. Without a text, and in other framings, the dialect's keep-alive is sent instead, if it has one.

    A response that is not streamed omits the comment.
    """

    text: str = ""

    def __attrs_post_init__(self) -> None:
        if "\n" in self.text or "\r" in self.text:
            raise UsageError("text: a comment must be one line")


Step: TypeAlias = Say | Think | Call | Wait | Usage | Stop | Error | ErrorStatus | Stall | Cut | Reset | Raw | Comment
#: The steps by their names in TOML.
STEPS: Final[Mapping[str, type[Step]]] = {
    "status" if kind is ErrorStatus else kind.__name__.lower(): kind for kind in get_args(Step)
}
_NAMES: Final = {kind: name for name, kind in STEPS.items()}
ENDINGS: Final = (Error, Stall, Cut, Reset)  #: steps that end a turn: no step may follow
BEHIND_THE_END: Final = (Wait, Raw, Comment, Stall, Cut, Reset)  #: steps that may follow ``stop``
#: Steps that produce the events of a response, rather than only bytes.
SPOKEN: Final = (Say, Think, Call, Usage, Stop, Error)


def name_of(step: Step) -> str:
    """Return the name of a step in TOML."""
    return _NAMES[type(step)]


# -- turns and scripts -------------------------------------------------------------------------------------------------


def _counts_from_one(_match: Any, _attribute: Attribute[Any], turn: int | None) -> None:
    if turn is not None and turn < 1:
        raise UsageError(f"turn: must be at least 1, not {turn}")


@frozen(kw_only=True)
class Match:
    """Conditions that a request must meet for a turn to answer it. All given conditions must hold."""

    text: str = ""  #: the turn matches if the user's last message contains this text; empty: any message
    tool: str = ""  #: the turn matches if the request offers the tool with this name; empty: any tools
    #: The number of model responses in the history, plus 1: the first request is 1.
    turn: int | None = field(default=None, validator=_counts_from_one)

    def fits(self, request: Request) -> bool:
        if self.text and self.text not in last_said(request):
            return False
        if self.tool and all(tool.name != self.tool for tool in request.tools):
            return False
        return self.turn is None or self.turn == len(answers_in(request)) + 1


def _is_possible(_turn: Any, _attribute: Attribute[Any], steps: tuple[Step, ...]) -> None:
    """Raise UsageError if the steps cannot form one response."""
    if not steps:
        raise UsageError("steps: must not be empty")
    for number, (before, step) in enumerate(pairwise(steps), 1):
        if isinstance(before, ENDINGS):
            raise UsageError(f"steps: nothing can follow {name_of(before)}, and step {number + 1} does")
        if isinstance(before, Call) and not before.finished and not isinstance(step, (Wait, *ENDINGS)):
            raise UsageError(
                f"steps: only cut, reset, stall or error can follow an unfinished call, not step {number + 1}"
            )
    if isinstance(steps[-1], Call) and not steps[-1].finished:
        raise UsageError("steps: cut, reset, stall or error must follow an unfinished call, and nothing does")
    statuses = [step for step in steps if isinstance(step, ErrorStatus)]
    if statuses and any(not isinstance(step, Wait) for step in steps if step is not statuses[0]):
        raise UsageError("steps: only wait can be in a turn with status, which is a whole response")
    stops = [number for number, step in enumerate(steps) if isinstance(step, Stop)]
    if stops and (late := [step for step in steps[stops[0] + 1 :] if not isinstance(step, BEHIND_THE_END)]):
        raise UsageError(f"steps: {name_of(late[0])} cannot follow stop, which ends the response")


def _steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(steps)


@frozen
class MockTurn:
    """One response, and the requests that it answers; None: any request."""

    steps: tuple[Step, ...] = field(converter=_steps, validator=_is_possible)
    match: Match | None = None


def _turns(given: Iterable[MockTurn | Step]) -> tuple[MockTurn, ...]:
    turns: list[MockTurn] = []
    steps: list[Step] = []
    for each in given:
        if isinstance(each, MockTurn):
            turns.append(each)
        else:
            steps.append(each)
    if turns and steps:
        raise UsageError("turns: must be turns or the steps of one turn, not both")
    return (MockTurn(steps),) if steps else tuple(turns)


@frozen
class Script:
    """The turns of a provider, or the steps of its only turn: ``Script([Say("Hello")])``.

    With ``repeat``, a conversation that has had all fitting turns gets them again. Raises UsageError for steps that cannot
    form a response, and if there is no turn.
    """

    turns: tuple[MockTurn, ...] = field(converter=_turns)
    repeat: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.turns:
            raise UsageError("turns: must not be empty")

    def next(self, request: Request, had: set[int]) -> int | None:
        """Return the number of the turn that answers a request; None: no turn. ``had``: the numbers already used."""
        fitting = [number for number, turn in enumerate(self.turns) if turn.match is None or turn.match.fits(request)]
        left = [number for number in fitting if number not in had]
        if not left and self.repeat:
            had.difference_update(fitting)
            left = fitting
        return left[0] if left else None


def last_said(request: Request) -> str:
    """Return the text of the user's last message that has text. Tool results do not count as text."""
    texts = (text_of(turn) for turn in reversed(request.turns) if turn.role == "user")
    return next((text for text in texts if text), "")


def first_said(request: Request) -> str:
    """Return the text of the user's first message."""
    return next((text_of(turn) for turn in request.turns if turn.role == "user"), "")


def answers_in(request: Request) -> list[list[Turn]]:
    """Return the model's responses in the history. Consecutive assistant messages are one response: some dialects split it."""
    spoken = groupby(request.turns, lambda turn: turn.role == "assistant")
    return [list(turns) for is_answer, turns in spoken if is_answer]


def text_of(turn: Turn) -> str:
    """Return all text of a message."""
    return "".join(part.text for part in turn.parts if isinstance(part, Text))
