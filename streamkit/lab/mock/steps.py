"""The steps of a script: what a scripted provider does in one answer, in order.

Each is a value. In a script of TOML a step is a table with one key, its name in ``STEPS``; the value is a table of the step's
fields, or its first field alone (``{ wait = 0.2 }``), or ``true`` where all fields have defaults (``{ stall = true }``).

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

#: A JSON object, or the text of the arguments as it is to be written, well formed or not.
Arguments: TypeAlias = Mapping[str, Any] | str


def not_negative(_instance: Any, attribute: Attribute[Any], value: float | None) -> None:
    """Raise UsageError for a number below 0: a validator."""
    if value is not None and not value >= 0:  # not of NaN either
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
    """Text of the answer, sent word by word."""

    text: str


@frozen
class Think:
    """Visible reasoning, sent word by word."""

    text: str


@frozen
class Call:
    """A call of a tool. Steps ``call`` of one turn are calls that run in parallel.

    Not ``finished``: half of the argument text is sent and the call stays open; a ``cut``, ``reset``, ``stall`` or ``error``
    follows. ``id``: empty: one is made.
    """

    name: str
    arguments: Arguments = field(default="{}", validator=_can_be_json)
    id: str = ""
    finished: bool = True

    @property
    def text(self) -> str:
        """The argument text that is sent."""
        text = self.arguments if isinstance(self.arguments, str) else orjson.dumps(self.arguments).decode()
        return text if self.finished else text[: len(text) // 2]


@frozen
class Wait:
    """Silence before what follows, in seconds; in front of the first bytes the status line is waited for, too."""

    seconds: float = field(validator=not_negative)


@frozen
class Usage:
    """Token counts. ``input`` includes what was ``cached`` and written to the cache, ``output`` the ``reasoning``.

    A turn without this step counts words.
    """

    input: int | None = field(default=None, validator=not_negative)
    output: int | None = field(default=None, validator=not_negative)
    cached: int | None = field(default=None, validator=not_negative)
    cache_write: int | None = field(default=None, validator=not_negative)
    reasoning: int | None = field(default=None, validator=not_negative)


@frozen
class Stop:
    """The end of the answer, with its stop reason and the dialect's terminator.

    A turn without this step ends so where nothing else ends it, with ``tool_calls`` if it has calls, else ``stop``.
    """

    reason: StopReason = "stop"


@frozen
class Error:
    """An error inside the stream, which ends it. A whole answer is an HTTP error instead."""

    kind: ErrorType = "server"
    message: str = "the script says so"


def _status_known(_instance: Any, _attribute: Attribute[Any], value: int) -> None:
    if not 400 <= value <= 599:
        raise UsageError(f"status: 400 to 599 is needed, not {value}")


@frozen
class Status:
    """An HTTP error instead of an answer, the only step of its turn but ``wait``.

    ``kind``: None: what the status usually means. ``retry_after`` is in seconds.
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

    ``bound_s``: a client that is there so many seconds later is a fault of the verdict, and its connection is reset. None:
    ``verdict.READ_TIMEOUT_S``, or behind the end of the stream ``verdict.LEAVE_S``.
    """

    bound_s: float | None = field(default=None, validator=not_negative)


@frozen
class Cut:
    """The answer breaks off without an end of its own.

    ``connection``: closed inside the body. ``body``: the body ends as HTTP says, as it does behind a proxy that gave up.
    Half of a whole answer's body is sent.
    """

    how: Literal["connection", "body"] = "connection"


@frozen
class Reset:
    """The answer breaks off because the connection is reset (TCP RST)."""


@frozen
class Raw:
    """Bytes between two frames as they are, a text in UTF-8. TOML has ``{ raw = "…" }`` and ``{ raw = { b64 = "…" } }``.

    A turn of raw bytes alone is nothing but these, without the start and the end of an answer.
    """

    data: bytes = field(converter=_bytes)


@frozen
class Comment:
    """An SSE comment; without a text, and in other framings, the dialect's own keep-alive, if it has one.

    A whole answer has no place for it.
    """

    text: str = ""

    def __attrs_post_init__(self) -> None:
        if "\n" in self.text or "\r" in self.text:
            raise UsageError("text: a comment is one line")


Step: TypeAlias = Say | Think | Call | Wait | Usage | Stop | Error | Status | Stall | Cut | Reset | Raw | Comment
#: The steps by their names in TOML.
STEPS: Final[Mapping[str, type[Step]]] = {kind.__name__.lower(): kind for kind in get_args(Step)}
#: Nothing follows these.
ENDINGS: Final = (Error, Stall, Cut, Reset)
#: What may follow ``stop``.
BEHIND_THE_END: Final = (Wait, Raw, Comment, Stall, Cut, Reset)
#: What makes an answer, and not bytes alone.
SPOKEN: Final = (Say, Think, Call, Usage, Stop, Error)


def name_of(step: Step) -> str:
    """The name of a step in TOML."""
    return type(step).__name__.lower()
