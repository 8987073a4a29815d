"""Binary event streams without our code: the format's layout, number by number (dialects.md §6.1)."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any


def header(name: str, kind: int, value: bytes = b"") -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def string(name: str, text: str | bytes) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return header(name, 7, struct.pack(">H", len(raw)) + raw)


def prelude(length: int, headers: int) -> bytes:
    lengths = struct.pack(">II", length, headers)
    return lengths + struct.pack(">I", zlib.crc32(lengths))


def message(headers: bytes, payload: bytes) -> bytes:
    whole = prelude(12 + len(headers) + len(payload) + 4, len(headers)) + headers + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def as_bytes(payload: Any) -> bytes:
    return payload if isinstance(payload, bytes) else json.dumps(payload, separators=(",", ":")).encode()


def event(kind: str, payload: Any) -> bytes:
    """An event with the three headers that Bedrock writes; its payload is bytes, or a value for JSON."""
    head = string(":event-type", kind) + string(":content-type", "application/json") + string(":message-type", "event")
    return message(head, as_bytes(payload))


def exception(kind: str, payload: Any) -> bytes:
    head = string(":exception-type", kind) + string(":content-type", "application/json")
    return message(head + string(":message-type", "exception"), as_bytes(payload))


def error(code: str, text: str) -> bytes:
    return message(string(":message-type", "error") + string(":error-code", code) + string(":error-message", text), b"")


def events(*pairs: tuple[str, Any]) -> bytes:
    return b"".join(event(kind, payload) for kind, payload in pairs)


def chunks(*payloads: Any) -> bytes:
    """Events of the model itself, as InvokeModelWithResponseStream sends them."""
    return b"".join(event("chunk", {"bytes": base64.b64encode(as_bytes(one)).decode()}) for one in payloads)


def framed(lines: bytes) -> bytes:
    """Events that were recorded as lines of JSON, ``{event type: payload}``, as the messages they came in."""
    pairs: list[Mapping[str, Any]] = [json.loads(line) for line in lines.splitlines() if line.strip()]
    return b"".join(event(kind, payload) for pair in pairs for kind, payload in pair.items())


def message_payloads(body: bytes) -> list[tuple[int, bytes]]:
    """Each whole message's payload under its type, found in the headers by their names alone."""
    found, at = [], 0
    while len(body) >= at + 12:
        length, head = struct.unpack_from(">II", body, at)
        if len(body) < at + length or zlib.crc32(body[at : at + 8]) != struct.unpack_from(">I", body, at + 8)[0]:
            break
        headers, payload = body[at + 12 : at + 12 + head], body[at + 12 + head : at + length - 4]
        names = {":event-type": "", ":exception-type": "exception:", ":error-code": "error:"}
        (kind,) = (prefix + _string_header(headers, name) for name, prefix in names.items() if name.encode() in headers)
        at += length
        found.append((at, b'{"%b":%b}' % (kind.encode(), payload or b"{}")))
    return found


def _string_header(headers: bytes, name: str) -> str:
    at = headers.index(name.encode()) + len(name) + 1
    (size,) = struct.unpack_from(">H", headers, at)
    return headers[at + 2 : at + 2 + size].decode()
