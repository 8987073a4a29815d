"""The tree of errors; each carries its numbers.

What the wire *said* is an event (an in-band error, an unclean end); what broke the *reading* is an exception of this
tree, raised in the order of the stream after everything that preceded it was handed on. Errors that bad input forces are
``StreamError``; ``UsageError`` is the caller's own.

Source: design.md §2.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from streamkit.text.quoting import quoted, shortened

#: No message is longer, whatever stands in it: a client gets it as one line of its answer, and a log as one of its lines.
MESSAGE_CHARS: Final = 1000
#: Of a message of ``BadRequest``, the path and the reason: member names are the client's own, of any length.
PATH_CHARS, REASON_CHARS = 200, 750


class StreamkitError(Exception):
    """Base of every error that this package raises on purpose."""

    #: The kind of error that a client is told, in neutral words (``events.ErrorType``).
    type: ClassVar[Literal["server", "timeout", "unavailable"]] = "server"

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message, MESSAGE_CHARS))

    @property
    def summary(self) -> str:
        """The message without anything that the stream said: for logs, and for clients."""
        return str(self)


class UsageError(StreamkitError):
    """The caller asked for something that can't be: an unknown dialect, a pipe that was not entered."""


class BadRequest(StreamkitError):
    """A request or whole response can't be what it says. ``path`` leads to the fault (``messages[3].tool_call_id``).

    Both are of bounded length.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = shortened(path, PATH_CHARS)
        self.reason = shortened(reason, REASON_CHARS)
        super().__init__(f"{self.path}: {self.reason}" if path else self.reason)


class StreamError(StreamkitError):
    """The input can't be read further. ``offset`` is the byte of the stream where the offending frame begins, if known."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message if offset is None else f"{message} (at byte {offset})")
        self.offset = offset


class NotThisDialect(StreamError):
    """The bytes are no stream of the dialect that was named: a web page, a whole JSON body, another dialect."""

    def __init__(self, expected: str, found: str, *, offset: int | None = 0) -> None:
        super().__init__(f"not {expected}: found {found}", offset=offset)
        self.expected = expected
        self.found = found

    @property
    def summary(self) -> str:
        return f"not {self.expected}: found {self.found.partition(' (')[0]}"


class BrokenFrame(StreamError):
    """A whole frame, ended by the framing, whose payload is not what the dialect promises: no JSON, no object."""

    def __init__(self, reason: str, payload: bytes, *, offset: int | None = None) -> None:
        super().__init__(f"{reason}: {quoted(payload)}", offset=offset)
        self.reason = reason
        self.payload = payload

    @property
    def summary(self) -> str:
        return self.reason


class SecondResponse(StreamError):
    """Another response began before the first had ended, as a proxy splices them that tried again behind the client's back."""

    def __init__(self, first: str | None = None, second: str | None = None, *, offset: int | None = None) -> None:
        ids = "" if first is None or second is None else f": {quoted(second)} within {quoted(first)}"
        super().__init__(self.summary + ids, offset=offset)
        self.first = first
        self.second = second

    @property
    def summary(self) -> str:
        return "a second response began before the first had ended"


class NeedsRepair(StreamError):
    """The stream breaks its dialect's rules, and the policy is to repair nothing. ``kind`` is the repair (``REPAIRS``)."""

    def __init__(self, kind: str, meaning: str, *, offset: int | None = None) -> None:
        super().__init__(f"not repaired, as the policy wants: {meaning} ({kind})", offset=offset)
        self.kind = kind


class MissingCallId(StreamError):
    """A tool call came without an id, and the policy is not to make one."""


class SourceFailed(StreamError):
    """The transport under the source failed. The cause is chained. ``upstream`` is what the source is called, where it is."""

    upstream: str = ""
    #: Whether the other side broke the connection (RST), and did not merely close it.
    is_reset: bool = False

    def __str__(self) -> str:
        message = super().__str__()
        return f"{self.upstream}: {message}" if self.upstream else message


class TimedOut(SourceFailed):
    """One of the four timers of a source ran out; ``allowed_s`` is its value, in seconds."""

    type = "timeout"

    def __init__(self, allowed_s: float) -> None:
        super().__init__(f"{self.__doc__ or ''} within {allowed_s:g} s".replace(".", "", 1))
        self.allowed_s = allowed_s


class ConnectTimeout(TimedOut):
    """The upstream could not be reached."""


class FirstByteTimeout(TimedOut):
    """The upstream sent no first byte."""


class IdleTimeout(TimedOut):
    """The upstream fell silent and sent nothing."""


class TotalTimeout(TimedOut):
    """The upstream's answer did not end."""


class Interrupted(SourceFailed):
    """The reading was stopped from outside: the server is shutting down."""

    type = "unavailable"
    #: How a log of the answer says that it ended (``streamkit.resume.End``).
    end: ClassVar[Literal["shut_down", "cancelled", "abandoned"]] = "shut_down"


class Stopped(Interrupted):
    """The answer was stopped, as its client asked."""

    end = "cancelled"


class Unattended(Interrupted):
    """Nobody came back for an answer that went on without its client."""

    end = "abandoned"


class LimitExceeded(StreamError):
    """A cap of ``Limits`` was passed; ``limit`` names the field, ``allowed`` is its value, in the field's unit."""

    limit: str = ""

    def __init_subclass__(cls, *, limit: str = "") -> None:
        super().__init_subclass__()
        cls.limit = limit or cls.limit

    def __init__(self, allowed: int, *, offset: int | None = None) -> None:
        super().__init__(f"{self.what} (limit {self.limit} = {allowed:,})", offset=offset)
        self.allowed = allowed

    @property
    def what(self) -> str:
        return (self.__doc__ or "a limit was passed").rstrip(".")


class LineTooLong(LimitExceeded, limit="line_bytes"):
    """A line did not end within the limit."""


class EventTooLong(LimitExceeded, limit="event_bytes"):
    """The lines of one event add up to more than the limit."""


class BodyTooLong(LimitExceeded, limit="body_bytes"):
    """A whole body is longer than the limit."""


class TooManyValues(LimitExceeded, limit="answer_values"):
    """A whole body has more JSON values than the limit."""


class TooManyEventValues(TooManyValues, limit="event_values"):
    """One event has more JSON values than the limit."""


class HeadersTooLong(LimitExceeded, limit="headers_bytes"):
    """The headers of one binary message are longer than the limit."""


class NameTooLong(LimitExceeded, limit="name_bytes"):
    """An event name or event id is longer than the limit."""


class IndexTooLarge(LimitExceeded, limit="index"):
    """An index on the wire is larger than the limit."""


class ArgumentsTooLong(LimitExceeded, limit="arguments_chars"):
    """The argument text of one tool call is longer than the limit."""


class StreamArgumentsTooLong(LimitExceeded, limit="stream_arguments_chars"):
    """The argument texts of all calls of one stream are longer than the limit."""


class TooManyToolCalls(LimitExceeded, limit="tool_calls"):
    """More tool calls than the limit."""


class TooManyChoices(LimitExceeded, limit="choices"):
    """More choices than the limit."""


class TooManyBlocks(LimitExceeded, limit="content_blocks"):
    """More content blocks than the limit."""


class HeldTooLong(LimitExceeded, limit="held_chars"):
    """More is held back behind an open block than the limit allows."""
