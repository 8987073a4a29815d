"""The gateway's log: one line of JSON per request and per event, on standard error.

The record of a request decides what its line contains; bodies, headers and keys are never included. Text from clients and
upstreams is escaped, so that it can't forge a line or control a terminal (limits.md T6, T12).
"""

from __future__ import annotations

import json
import logging
import sys
import time
from functools import lru_cache
from typing import Any, Final, Literal

import orjson
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from streamkit.text.quoting import excerpt, printable, redacted

log: Final = logging.getLogger("streamkit.gateway")
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


class Text(logging.Formatter):
    """Formats a log record as text for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={value!r}" for name, value in getattr(record, "fields", {}).items())
        message = excerpt(record.getMessage(), MESSAGE_CHARS)
        line = f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower()} {message} {fields}"
        line = printable(line.rstrip())
        if not record.exc_info:
            return line
        return "\n".join([line, *(f"  {printable(part)}" for part in _exception(self, record).splitlines())])


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


def configure(form: Literal["json", "text"], level: str) -> None:
    """Send the log of the whole process to standard error."""
    # Formatters need neither the caller nor the thread and process, which take most of the time of a log call. The logging
    # HOWTO, section Optimization, documents these four names.
    setattr(logging, "_srcfile", None)  # noqa: B010 - mypy knows no such name
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines() if form == "json" else Text())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))
