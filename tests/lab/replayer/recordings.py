"""Recordings for the tests of this room."""

from __future__ import annotations

from pathlib import Path

import orjson

from streamkit.lab.recording import End, Read, RecordedRequest, RecordedResponse, Recording, lines_of
from streamkit.lab.replayer.app import Replay, ReplayOptions
from streamkit.lab.replayer.loading import Loaded

PATH = "/v1/chat/completions"
HEADERS = {"content-type": "text/event-stream"}
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
#: Texts of an answer in Chat, the last of which is the end mark.
EVENTS = [
    *(b'data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}\n\n' % number for number in range(6)),
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]


def body(content: str = "hi", **members) -> bytes:
    return orjson.dumps(BODY | {"messages": [{"role": "user", "content": content}]} | members)


def recording(
    reads=tuple(EVENTS),
    *,
    asked: bytes | None = None,
    path: str = PATH,
    method: str = "POST",
    status: int | None = 200,
    headers=HEADERS,
    kind: str | None = "whole",
    gap_s: float = 0.001,
    **members,
) -> Recording:
    """An exchange whose headers come after a gap, each read a gap behind what came before, and its end too."""
    response = None if status is None else RecordedResponse(t=gap_s, status=status, headers=headers)
    timed = [Read(round(gap_s * number, 5), data) for number, data in enumerate(reads, 2)]
    end = None if kind is None else End(t=gap_s * (len(timed) + 2), kind=kind)
    members = {"id": "1", "at": "2026-11-22T18:01:20.955Z", "dialect": "openai-chat"} | members
    request = RecordedRequest(path=path, method=method, body=body() if asked is None and method == "POST" else asked)
    return Recording(request=request, response=response, reads=timed, end=end, **members)


def replay_of(*recordings: Recording, otherwise=None, notify=lambda _outcome: None, **options) -> Replay:
    loaded = [Loaded(each.id, each, each.request) for each in recordings]
    return Replay(loaded, ReplayOptions(**{"speed": 0, **options}), otherwise=otherwise, notify=notify)


def write(path: Path, written: Recording) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines_of(written)))
    return path
