"""The gateway's log: one line of JSON for each request and each event, on standard error.

What a line says is the record's; bodies, headers and keys are never part of one. Text from the wire is JSON-escaped, so that
no line can be forged and no terminal moved (limits.md T12).
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson

from streamkit.gateway.record import Record
from streamkit.redact import redacted

log: Final = logging.getLogger("streamkit.gateway")
#: They log what they sign and send, keys included, at the level of debugging.
TALKATIVE: Final = ("aiohttp", "asyncio", "botocore")


class JSONLines(logging.Formatter):
    """A log record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = redacted(self.formatException(record.exc_info).encode())
        return orjson.dumps(line, default=str).decode()


class Text(logging.Formatter):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={value!r}" for name, value in getattr(record, "fields", {}).items())
        line = (
            f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower()} {record.getMessage()} {fields}".rstrip()
        )
        return f"{line}\n{redacted(self.formatException(record.exc_info).encode())}" if record.exc_info else line


def configure(form: Literal["json", "text"], level: str) -> None:
    """Send the log of the whole process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines() if form == "json" else Text())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))


def log_record(record: Record) -> None:
    """One line for a request that is over."""
    level = logging.WARNING if record.status >= 500 or record.ending == "broken" else logging.INFO
    log.log(level, "request", extra={"fields": record.document()})
