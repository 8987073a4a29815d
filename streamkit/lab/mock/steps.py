"""The steps of a script: the actions of a scripted provider in one response, in order.

Each step is a value. In a TOML script a step is a table with one key, its name in ``STEPS``. The key's value is a table of the
step's fields, or only its first field (``{ wait = 0.2 }``), or ``true`` if all fields have defaults (``{ stall = true }``).

Source: observe.md O31.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import orjson
from attrs import Attribute, field, frozen

from streamkit.dialects.vocabulary.error_bodies import ERROR_BY_STATUS
from streamkit.errors import UsageError
from streamkit.events import ErrorType, StopReason
from streamkit.http_errors import RETRY_AFTER_MAX_S

#: A JSON object, or the exact text of the arguments, valid JSON or not.
Arguments: TypeAlias = Mapping[str, Any] | str


def not_negative(_instance: Any, attribute: Attribute[Any], value: float | None) -> None:
    """Raise UsageError for a number below 0. Used as a validator."""
    if value is not None and not value >= 0:  # NaN is refused as well
        raise UsageError(f"{attribute.name}: 0 or more is needed, not {value:g}")


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


def _can_be_json(_instance: Any, attribute: Attribute[Any], value: Arguments) -> None:
    if isinstance(value, str):
        return
    try:
        orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise UsageError(f"{attribute.name}: this can't be JSON ({error}); write its text instead") from None


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
        """The argument text to send."""
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
        raise UsageError(f"status: 400 to 599 is needed, not {value}")


@frozen
class Status:
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
            raise UsageError(f"retry_after: no more than {RETRY_AFTER_MAX_S:g} seconds, a year")


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
            raise UsageError("text: a comment is one line")


Step: TypeAlias = Say | Think | Call | Wait | Usage | Stop | Error | Status | Stall | Cut | Reset | Raw | Comment
#: The steps by their names in TOML.
STEPS: Final[Mapping[str, type[Step]]] = {kind.__name__.lower(): kind for kind in get_args(Step)}
#: Steps that end a turn: no step may follow.
ENDINGS: Final = (Error, Stall, Cut, Reset)
#: Steps that may follow ``stop``.
BEHIND_THE_END: Final = (Wait, Raw, Comment, Stall, Cut, Reset)
#: Steps that produce the events of a response, rather than only bytes.
SPOKEN: Final = (Say, Think, Call, Usage, Stop, Error)


def name_of(step: Step) -> str:
    """Return the name of a step in TOML."""
    return type(step).__name__.lower()
