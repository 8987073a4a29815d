"""The half of ``against.py`` that runs in a peer's own environment: standard library, orjson and the peer.

One line of JSON in, one out, over standard input and output::

    {"do": "prepare", "work": …, "body": path, "cut": bytes or 0 for one event a read, "fragments": […]}
        → {"result": …} or {"error": …}       the work done once, its result for the oracle
    {"do": "time", "least": seconds}
        → {"seconds": …, "floor": …}          one run, beside ``orjson.loads`` of each payload, before and after

A work is a function of a ``Stream`` that gives a task, which is timed, and a function that tells what the task came to.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import orjson

Task = Callable[[], Any]
Work = Callable[["Stream"], tuple[Task, Callable[[Any], Any]]]
URL = "http://127.0.0.1:9/v1"
MODEL = "gpt-5.2"
MESSAGES = [{"role": "user", "content": "Hi"}]


class Stream:
    """A stream as its bytes, its reads and the payloads of its events."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.body = order.get("raw") or (Path(order["body"]).read_bytes() if order.get("body") else b"")
        cut = order.get("cut")
        if cut:
            self.reads = [self.body[at : at + cut] for at in range(0, len(self.body), cut)]
        else:
            self.reads = [frame + b"\n\n" for frame in self.body.split(b"\n\n") if frame]
        self.payloads = [payload for payload in split(self.body) if payload != b"[DONE]"]
        #: Several streams in one work, and the dialects from which and to which they are written.
        self.many: list[Stream] = []
        self.dialects: tuple[str, str] = order.get("from", ""), order.get("to", "")
        if order.get("many"):
            self.many = [Stream({"raw": base64.b64decode(body)}) for body in json.loads(self.body)]
            self.payloads = [payload for stream in self.many for payload in stream.payloads]
        #: For work on growing arguments.
        self.fragments: list[str] = order.get("fragments") or []

    async def aiter(self) -> AsyncIterator[bytes]:
        for read in self.reads:
            yield read


def split(body: bytes) -> Iterator[bytes]:
    """The least framing there is, for peers that have none: blank lines, then the ``data`` line of each event."""
    for frame in body.split(b"\n\n"):
        at = frame.find(b"data: ")
        if at >= 0:
            yield frame[at + 6 :]


def documents(reads: Iterable[bytes]) -> Iterator[Any]:
    """``split`` over reads, and ``orjson.loads``: what a host of such a peer would have to do at least."""
    rest = b""
    for read in reads:
        body, found, rest = (rest + read).rpartition(b"\n\n")
        if found:
            for payload in split(body):
                if payload != b"[DONE]":
                    yield orjson.loads(payload)


def sse_of(event: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> bytes:
    """One event of Anthropic's dialect. ``default`` is orjson's, for a peer's own values."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event, default))


def digest(data: Iterable[bytes | str]) -> dict[str, Any]:
    """What an SSE parser found: how many events, and a hash of their payloads."""
    texts = [text.encode() if isinstance(text, str) else text for text in data]
    return {"events": len(texts), "sha256": hashlib.sha256(b"\n".join(texts)).hexdigest()}


def said(text: str | None, calls: Iterable[tuple[Any, Any]], stop: str | None) -> dict[str, Any]:
    """What a decoder came to: text, calls as names and argument texts, stop reason in the words of Chat."""
    return {"text": text or "", "calls": [[name or "", arguments or ""] for name, arguments in calls], "stop": stop}


def transport(httpx: Any, stream: Stream) -> Any:
    """An HTTP transport, of ``httpx`` or of a module like it, that answers every request with the reads of ``stream``."""

    class Body(httpx.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for read in stream.reads:
                yield read

    class Transport(httpx.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            headers = {"content-type": "text/event-stream"}
            return httpx.Response(200, headers=headers, stream=Body(), request=request)

    return Transport()


def floor(stream: Stream) -> Task:
    payloads = stream.payloads or [fragment.encode() for fragment in stream.fragments]
    loads = orjson.loads if stream.payloads else len

    def task() -> None:
        for payload in payloads:
            loads(payload)

    return task


def timed(task: Task, repeats: int) -> float:
    start = process_time()
    for _ in range(repeats):
        task()
    return (process_time() - start) / repeats


class Worker:
    def __init__(self, works: Mapping[str, Work]) -> None:
        self.works = works
        self.task: Task | None = None
        self.floor: Task | None = None
        self.seconds = 0.0

    def prepare(self, order: Mapping[str, Any]) -> dict[str, Any]:
        stream = Stream(order)
        self.task, tell = self.works[order["work"]](stream)
        self.floor = floor(stream)
        result = tell(self.task())
        self.seconds = timed(self.task, 1)
        if isinstance(result, list) and result and isinstance(result[0], bytes):
            return {"result": [base64.b64encode(output).decode() for output in result]}
        if isinstance(result, bytes):
            return {"result": base64.b64encode(result).decode()}
        return {"result": result}

    def time(self, order: Mapping[str, Any]) -> dict[str, Any]:
        if self.task is None or self.floor is None:
            raise RuntimeError("nothing is prepared")
        repeats = max(1, round(order["least"] / self.seconds))
        floors = max(1, round(order["least"] / 2 / max(timed(self.floor, 1), 1e-7)))
        gc.collect()
        before = timed(self.floor, floors)
        seconds = timed(self.task, repeats)
        return {"seconds": seconds, "floor": (before + timed(self.floor, floors)) / 2}


def main(works: Mapping[str, tuple[str, Work]]) -> None:
    """Answer orders until standard input ends. ``works`` name the distribution that does each.

    First a line with the versions. What a peer prints goes to standard error.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker({name: work for name, (_, work) in works.items()})
    out.write(
        json.dumps({"versions": {name: version(distribution) for name, (distribution, _) in works.items()}}) + "\n"
    )
    out.flush()
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = worker.prepare(order) if order["do"] == "prepare" else worker.time(order)
        except BaseException as error:  # noqa: BLE001 - whatever a peer raises is its answer
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        out.write(json.dumps(answer) + "\n")
        out.flush()
