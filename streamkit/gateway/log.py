"""The gateway's log on standard error: one line of JSON per request and per event, or text for people.

The record of a request decides what its line contains; bodies, headers and keys are never included. Text from clients and
upstreams is escaped, so that it can't forge a line or control a terminal (limits.md T6, T12). The text has a second line for
each request to a model, when it has been read: people watch a log while long responses are in progress.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import orjson
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from streamkit.text.quoting import excerpt, printable, redacted
from streamkit.text.terminal import painted, takes_colour

log: Final = logging.getLogger("streamkit.gateway")
#: The logger of requests that have been read. It is on in the text format only (``configure``).
begun_log: Final = logging.getLogger("streamkit.gateway.begun")
begun_log.disabled = True
BEGUN, OVER = "a request began", "request"  #: the messages for a request that has been read, and for one that is over
#: The format of the log. ``auto``: text if standard error is a terminal, else JSON.
LogFormat: TypeAlias = Literal["auto", "json", "text"]
#: Loggers that at level debug log the data that they sign, send and read, which may be secret.
TALKATIVE: Final = ("aiohttp", "asyncio", "botocore", "streamkit.translation.bodies")
#: The most characters of a log message, characters of a traceback's line, and lines of a traceback. A longer traceback keeps
#: its last lines, because they name the error. The limits exist because exceptions of other packages may repeat their input.
MESSAGE_CHARS, TRACED_CHARS, TRACED_LINES = 2000, 500, 200


class JSONLines(logging.Formatter):
    """Formats a log record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": f"{_second(int(record.created))}.{int(record.msecs):03}+00:00",
            "level": record.levelname.lower(),
            "event": excerpt(record.getMessage(), MESSAGE_CHARS),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = _exception(self, record)
        try:
            return printable(orjson.dumps(line, default=str).decode())
        except TypeError:  # a lone surrogate, a number beyond 64 bits: orjson refuses them
            return printable(json.dumps(line, default=str, ensure_ascii=False))


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    """Return the beginning of a time in ISO 8601, without its fraction."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


RED, GREEN, YELLOW, DIM, BOLD = "31", "32", "33", "2", "1"
#: Members of a request's line that the text omits, because it shows them in another form, or only programs use them.
_OMITTED: Final = frozenset({
    "attempts", "client", "ending", "error", "first_byte_s", "first_output_s", "greatest_gap_s", "median_gap_s", "method",
    "model", "output_tokens_per_s", "path", "request_id", "route", "seconds", "span_id", "status", "stop", "stream",
    "trace_id", "usage",
})  # fmt: skip
#: The types of tokens in the text, in its order.
_TOKENS: Final = {"input": "in", "input_cached": "cached", "output": "out"}


class Text(logging.Formatter):
    """Formats a log record as text for people, with colours if ``colour``."""

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        fields, message = getattr(record, "fields", {}), excerpt(record.getMessage(), MESSAGE_CHARS)
        gap = " "
        if message in {BEGUN, OVER} and "request_id" in fields:
            parts, gap = list(_request_parts(fields)), "  "
        else:
            level, marks = record.levelname.lower(), {logging.WARNING: YELLOW, logging.ERROR: RED}
            members = " ".join(f"{name}={value!r}" for name, value in fields.items())
            parts = [(level, marks.get(record.levelno, "")), (message, ""), (members, "")]
        painting = (painted(printable(text), code if self._colour else "") for text, code in parts if text)
        line = gap.join([painted(self.formatTime(record, "%H:%M:%S"), DIM if self._colour else ""), *painting])
        if not record.exc_info:
            return line
        return "\n".join([line, *(f"  {printable(part)}" for part in _exception(self, record).splitlines())])


def _request_parts(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a request's line, each with its colour: the request, its result, and its id."""
    status, ending = fields.get("status"), fields.get("ending", "")
    is_fault = ending == "broken" or (status or 0) >= 500
    if status is not None:
        yield str(status), RED if is_fault else YELLOW if status >= 400 else GREEN
    yield f"{fields['method']} {fields['path']}", BOLD
    attempts = fields.get("attempts", ())
    yield fields.get("model", ""), ""
    if attempts:
        *failed, last = attempts
        upstreams = [f"{attempt['upstream']} ({_outcome(attempt)})" for attempt in failed]
        yield f"→ {', '.join([*upstreams, last['upstream']])}", ""
    if status is not None:
        first = f", first byte {fields['first_byte_s']:.2f} s" if "first_byte_s" in fields else ""
        yield f"{fields['seconds']:.2f} s{first}", ""
    usage = fields.get("usage", {})
    yield ", ".join(f"{usage[kind]:,} {name}" for kind, name in _TOKENS.items() if kind in usage), ""
    is_shown = not attempts or attempts[-1]["outcome"] in {"success", ending.replace(" ", "_")}
    outcome = "" if is_shown else _outcome(attempts[-1])
    yield ", ".join(filter(None, (ending, fields.get("stop"), outcome))), RED if is_fault else ""
    yield fields.get("error", ""), RED if is_fault else YELLOW
    for name, value in fields.items():
        if name not in _OMITTED:
            yield f"{name}: {_shown(value)}", YELLOW if name == "losses" else ""
    yield fields["request_id"], DIM


def _outcome(attempt: Mapping[str, Any]) -> str:
    """Return how an attempt ended. After a failure, add the path, and the upstream's error if the client got another one."""
    return " ".join([attempt[name] for name in ("outcome", "path", "detail") if name in attempt])


def _shown(value: Any) -> str:
    """Return a value for people: items with commas, the members of an object as ``name count``, and the times of stages."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if not isinstance(value, Mapping):
        return str(value)
    texts = {name: f"{each['ms']} ms" if isinstance(each, Mapping) else each for name, each in value.items()}
    return ", ".join(f"{name} {each}" for name, each in texts.items())


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the traceback of a log record; for an unreadable request or body, return only the type of the error.

    aiohttp repeats a line that it can't parse, including keys, and clients without a key must not fill the log.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, RequestPayloadError):
        return f"{type(error).__name__}: the body can't be read"
    if isinstance(error, HttpProcessingError):
        return f"{type(error).__name__}: status {error.code}"
    lines = formatter.formatException(record.exc_info or (None, None, None)).splitlines()
    traced = "\n".join(excerpt(line, TRACED_CHARS) for line in lines[-TRACED_LINES:])
    return redacted(traced.encode("utf-8", "backslashreplace"))


def configure(form: LogFormat, level: str) -> None:
    """Send the log of the whole process to standard error."""
    is_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    # Formatters need neither the caller nor the thread and process, which take most of the time of a log call. The logging
    # HOWTO, section Optimization, documents these four names.
    setattr(logging, "_srcfile", None)  # noqa: B010 - mypy knows no such name
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Text(colour=takes_colour(sys.stderr)) if is_text else JSONLines())
    begun_log.disabled = not is_text
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))
