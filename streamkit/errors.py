"""The exceptions of this package. Each carries its data as attributes.

Failures that the stream itself reports are events: a provider's error, or an end that is not clean. A failure that stops the
reading is an exception of this module, raised after all events before it were emitted. ``StreamError`` means that the input is
bad; ``UsageError`` means that the caller made a mistake.

Source: design.md §2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar, Final, Literal

from streamkit.text.quoting import meant, quoted, shortened

MESSAGE_CHARS: Final = 1000  #: maximum length of a message, which becomes one line of a log or of a response
#: Maximum lengths of the path and of the reason in a ``BadRequest`` message. Both may have long names from the request.
PATH_CHARS, REASON_CHARS = 200, 750


class StreamkitError(Exception):
    """Base class of every error that this package raises on purpose."""

    type: ClassVar[Literal["server", "timeout", "unavailable"]] = "server"  #: one of ``events.ErrorType``

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message, MESSAGE_CHARS))

    @property
    def summary(self) -> str:
        """The message without any text from the stream, safe for logs and for clients."""
        return str(self)


#: The beginning of the note on an exception that a stage raised.
_RAISED_BY: Final = "raised by the stage "


def blame(error: Exception, stage: str) -> None:
    """Add a note to an exception that names the stage that raised it, unless it has such a note."""
    if stage_of(error) is None:
        error.add_note(_RAISED_BY + stage)


def stage_of(error: BaseException | None) -> str | None:
    """Return the name of the user's stage that raised an exception, or None if no such stage did."""
    notes = (str(note) for note in getattr(error, "__notes__", ()))
    return next((note.removeprefix(_RAISED_BY) for note in notes if note.startswith(_RAISED_BY)), None)


class UsageError(StreamkitError):
    """The caller made a mistake, such as an unknown dialect, an argument of the wrong type, or a pipe that was not
    entered.
    """


def check_type(what: str, value: object, kind: type, instead: str) -> None:
    """Raise UsageError if the argument ``what`` is not a ``kind``. The message says what to write ``instead``."""
    if not isinstance(value, kind):
        raise UsageError(f"{what} must be {kind.__qualname__}, not {type(value).__qualname__}: write {instead}")


def check_whole(what: str, value: object, least: int) -> None:
    """Raise UsageError if the argument ``what`` is not a whole number of ``least`` or more."""
    if type(value) is not int or value < least:
        raise UsageError(f"{what} must be a whole number, {least} or more, not {quoted(value)}")


def check_words(what: str, words: Iterable[object], known: Collection[str]) -> None:
    """Raise UsageError if one of the ``words`` in the argument ``what`` is not a known word."""
    for word in words:
        if word not in known:
            raise UsageError(
                f"{what} must be one of {', '.join(map(quoted, known))}, not {quoted(word)}{meant(word, known)}"
            )


class BadRequest(StreamkitError):
    """A request or a whole response is invalid. ``path`` leads to the fault (``messages[3].tool_call_id``).

    A long ``path`` or ``reason`` is shortened.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = shortened(path, PATH_CHARS)
        self.reason = shortened(reason, REASON_CHARS)
        super().__init__(f"{self.path}: {self.reason}" if path else self.reason)


class StreamError(StreamkitError):
    """The input can't be read further. ``offset`` is the position in the stream, in bytes, at which the invalid frame
    begins, or None if this position is not known.
    """

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message if offset is None else f"{message} (at byte {offset})")
        self.offset = offset


class NotThisDialect(StreamError):
    """The bytes are not a stream of the named dialect, but for example a web page, a whole JSON body or a stream of
    another dialect.
    """

    def __init__(self, expected: str, found: str, *, offset: int | None = 0) -> None:
        super().__init__(f"not {expected}: found {found}", offset=offset)
        self.expected = expected
        self.found = found

    @property
    def summary(self) -> str:
        return f"not {self.expected}: found {self.found.partition(' (')[0]}"


class BrokenFrame(StreamError):
    """A complete frame has an invalid payload: not JSON, or not an object where the dialect requires one."""

    def __init__(self, reason: str, payload: bytes, *, offset: int | None = None) -> None:
        super().__init__(f"{reason}: {quoted(payload)}", offset=offset)
        self.reason = reason
        self.payload = payload

    @property
    def summary(self) -> str:
        return self.reason


class SecondResponse(StreamError):
    """A second response began before the first one ended. Proxies cause this when they retry within one stream."""

    def __init__(self, first: str | None = None, second: str | None = None, *, offset: int | None = None) -> None:
        ids = "" if first is None or second is None else f": {quoted(second)} within {quoted(first)}"
        super().__init__(self.summary + ids, offset=offset)
        self.first = first
        self.second = second

    @property
    def summary(self) -> str:
        return "a second response began before the first had ended"


class NeedsRepair(StreamError):
    """The stream breaks a rule of its dialect, and the policy forbids repairs. ``kind`` is a key of ``REPAIRS``."""

    def __init__(self, kind: str, meaning: str, *, offset: int | None = None) -> None:
        super().__init__(f"the policy forbids this repair: {meaning} ({kind})", offset=offset)
        self.kind = kind


class MissingCallId(StreamError):
    """A tool call has no id, and the policy forbids making an id."""


class SourceFailed(StreamError):
    """The source can't read further, because its transport failed. ``__cause__`` is the transport's error. ``upstream``
    is the name of the source, if the source has a name.

    Your own source may raise this error. The error's message is sent to the client, so do not write a host name into
    the message.
    """

    upstream: str = ""
    is_reset: bool = False  #: True if the upstream reset the connection (TCP RST) instead of closing it

    def __str__(self) -> str:
        message = super().__str__()
        return f"{self.upstream}: {message}" if self.upstream else message


class TimedOut(SourceFailed):
    """One of the four timers of a source expired; ``allowed_s`` is the timer's value in seconds."""

    type = "timeout"

    def __init__(self, allowed_s: float) -> None:
        super().__init__(f"{self.__doc__ or ''} within {allowed_s:g} s".replace(".", "", 1))
        self.allowed_s = allowed_s


class ConnectTimeout(TimedOut):
    """The upstream could not be reached."""


class FirstByteTimeout(TimedOut):
    """The upstream sent no first byte."""


class IdleTimeout(TimedOut):
    """The upstream sent no further bytes."""


class TotalTimeout(TimedOut):
    """The upstream's response did not end."""


class Interrupted(SourceFailed):
    """The program stopped reading, for example because the server is shutting down."""

    type = "unavailable"
    end: ClassVar[Literal["shut_down", "cancelled", "abandoned"]] = "shut_down"  #: as in ``streamkit.resume.End``


class Stopped(Interrupted):
    """The response was stopped because its client requested this."""

    end = "cancelled"


class Unattended(Interrupted):
    """The client disconnected, the response continued without a client, and no client resumed the response in time."""

    end = "abandoned"


class LimitExceeded(StreamError):
    """A limit was exceeded. ``limit`` is the name of the limit, and ``allowed`` is its value."""

    limit: str = ""

    def __init_subclass__(cls, *, limit: str = "") -> None:
        super().__init_subclass__()
        cls.limit = limit or cls.limit

    def __init__(self, allowed: int, *, offset: int | None = None) -> None:
        super().__init__(f"{self.what} (limit {self.limit} = {allowed:,})", offset=offset)
        self.allowed = allowed

    @property
    def what(self) -> str:
        return (self.__doc__ or "a limit was exceeded").rstrip(".")


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
    """The stream has more tool calls than the limit."""


class TooManyChoices(LimitExceeded, limit="choices"):
    """The stream has more choices than the limit."""


class TooManyBlocks(LimitExceeded, limit="content_blocks"):
    """The response has more content blocks than the limit."""


class HeldTooLong(LimitExceeded, limit="held_chars"):
    """While another block was open, an encoder had to hold back more characters than the limit."""
