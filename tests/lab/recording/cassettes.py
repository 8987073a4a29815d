"""Cassettes as reel-vcr 0.1.0 writes them."""

from __future__ import annotations

import json

CHUNKS = [
    {"data": {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "2^64: "}}]}, "t_offset_ms": 3, "event": None},
    {"data": {"id": "c", "n": 18446744073709551616, "choices": [{"index": 0, "delta": {"content": "ü"}}]}, "t_offset_ms": 250, "event": None},
    {"data": {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "t_offset_ms": 251, "event": None},
    {"data": "[DONE]", "t_offset_ms": 251, "event": None},
]  # fmt: skip


def entry(request=None, response=None, **more):
    return {
        "schema_version": 1,
        "id": "req_1",
        "ts": "2026-05-15T10:23:11+00:00",
        "provider": "openai",
        "request": {"method": "POST", "path": "/v1/chat/completions", "fingerprint": "f", "body": {"x": 1.0}, **(request or {})},
        "response": {"status": 200, "headers": {"Content-Type": "text/event-stream", "set-cookie": "a=b"}, "body": None,
                     "stream_chunks": CHUNKS, **(response or {})},
        "meta": {},
        **more,
    }  # fmt: skip


def cassette(*entries):
    return b"".join(json.dumps(each).encode() + b"\n" for each in entries)
