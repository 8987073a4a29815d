"""Read fixtures of aimock as recordings.

A fixture has the content of a response and none of its bytes. This module writes the bytes with streamkit's encoder, in the
dialect that the caller names, so the recording is marked as not exact. The recording has no request, since a fixture only has
a rule for the requests that it answers (``match``).

Times, in milliseconds, are the recorded times of the fixture, or its ``streamingProfile`` without the jitter, or its
``latency``. Each is the delay before one piece that the encoder writes. Chaos settings are left out, since they are random.
A fixture that is no chat response (embeddings, images, sounds) is refused, with its place in the file.

Source: observe.md F45, F46, O30; the types and the documentation in @copilotkit/aimock 1.43.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import accumulate, count
from pathlib import Path
from typing import Any, Final, cast, get_args

import orjson
from attrs import evolve

from streamkit.conversation.messages import Choice, Part, Reasoning, Response, Text, ToolCall
from streamkit.conversation.response_events import response_events
from streamkit.dialects import source_named
from streamkit.dialects.base import Dialect
from streamkit.dialects.profiles import Encoding
from streamkit.errors import UsageError
from streamkit.events import Event, ReasoningDelta, StopReason, TextDelta, ToolCallArguments, UsageReported
from streamkit.http_errors import decode_error, encode_error
from streamkit.lab.recording import End, Read, RecordedResponse, Recording, readable
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted_all
from streamkit.tool_calls.check import check_json

CHUNK_CHARS: Final = 20  #: characters in one piece of text or arguments, if the fixture sets no ``chunkSize``
STATUS: Final = 500  #: the status of an error response for which the fixture sets no status
RATE_LIMITED: Final = 429  #: for this status, a response gets ``retry-after: 1`` if the fixture sets no ``retryAfter``
#: The names that a fixture may use for each count of tokens; they are the names of different providers.
_INPUT: Final = ("prompt_tokens", "input_tokens", "promptTokenCount")
_OUTPUT: Final = ("completion_tokens", "output_tokens", "candidatesTokenCount")
_TOTAL: Final = ("total_tokens", "totalTokenCount")
_CHAT_MEMBERS: Final = frozenset({"content", "toolCalls", "blocks"})


def is_aimock(content: bytes) -> bool:
    """Return whether the file is a JSON object with a list ``fixtures``."""
    if not content.lstrip().startswith(b"{"):
        return False
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get("fixtures"), list)


def parse_aimock(content: bytes, *, name: str, dialect: str) -> list[Recording]:
    """Return the fixtures of a file as recordings in ``dialect``. ``name`` is the file's name in error messages.

    Raises BadRecording with the place in the file, and UsageError if ``dialect`` is empty or unknown.
    """
    if not dialect:
        raise UsageError(f"{name}: fixtures of aimock have no dialect: name the one to write (--dialect)")
    named = source_named(dialect)[0]
    recordings = []
    for number, entry in enumerate(json.loads(content)["fixtures"]):
        place = f"fixtures[{number}]"
        with readable(name, None, place):
            recording = _recording(entry, named)
        recordings.append(evolve(recording, id=f"{Path(name).stem}-{number}"))
    return recordings


def _recording(entry: dict[str, Any], dialect: Dialect) -> Recording:
    response = entry["response"]
    if isinstance(response.get("error"), dict):
        return _refusal(response, dialect)
    if not _CHAT_MEMBERS & response.keys():
        raise ValueError(f"it is not a chat response: it has {quoted_all(sorted(response)) or 'no members'}")
    delays = _delays(entry)
    chunk_chars = max(1, int(entry.get("chunkSize") or CHUNK_CHARS))
    pieces = _pieces(_response(response, dialect), dialect, chunk_chars)
    times = accumulate(next(delays) for _ in pieces)
    reads = [Read(t, piece) for t, piece in zip(times, pieces, strict=True)]
    kept, end = _cut(reads, entry)
    return Recording(
        id="",
        dialect=dialect.name,
        exact=False,
        response=RecordedResponse(t=0.0, status=200, headers={"content-type": dialect.media_type}),
        reads=tuple(kept),
        end=end,
    )


def _refusal(response: dict[str, Any], dialect: Dialect) -> Recording:
    """Return a recording of an error response, in the format of the dialect's providers."""
    status = int(response.get("status") or STATUS)
    wait = response.get("retryAfter", 1 if status == RATE_LIMITED else None)
    headers = {} if wait is None else {"retry-after": str(wait)}
    failed = decode_error(status, orjson.dumps({"error": response["error"]}), dialect.name, headers)
    written = encode_error(failed, dialect.name)
    read = Read(0.0, written.body)
    return Recording(
        id="",
        dialect=dialect.name,
        exact=False,
        response=RecordedResponse(
            t=0.0, status=status, headers={name.lower(): text for name, text in written.headers.items()}
        ),
        reads=(read,),
        end=End.of([read]),
    )


# -- the content of a response -----------------------------------------------------------------------------------------


def _response(response: dict[str, Any], dialect: Dialect) -> Response:
    parts: list[Part] = []
    if response.get("reasoning"):
        parts.append(Reasoning(str(response["reasoning"])))
    if response.get("blocks"):
        for block in response["blocks"]:
            parts.append(
                Text(_text(block["text"]), block=len(parts)) if block["type"] == "text" else _call(block, parts)
            )
    else:
        if response.get("content"):
            parts.append(Text(_text(response["content"]), block=len(parts)))
        for call in response.get("toolCalls") or ():
            parts.append(_call(call, parts))
    calls = any(isinstance(part, ToolCall) for part in parts)
    native = str(response.get("finishReason") or ("tool_calls" if calls else "stop"))
    reason = cast("StopReason", native) if native in get_args(StopReason) else "other"
    return Response(
        dialect=dialect.name,
        id=response.get("id"),
        model=response.get("model"),
        created=int(response.get("created") or 0),
        choices=[Choice(parts=parts, stop_reason=reason, native_stop_reason=native)],
        usage=_usage(response.get("usage")),
        clean=True,
    )


def _call(call: dict[str, Any], before: list[Part]) -> ToolCall:
    index = sum(isinstance(part, ToolCall) for part in before)
    return ToolCall(index, str(call.get("id") or f"call_{index + 1}"), str(call["name"]), _text(call["arguments"]))


def _text(value: Any) -> str:
    """Return a string as it is, and any other value as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _usage(usage: dict[str, Any] | None) -> UsageReported | None:
    if not usage:
        return None
    input_total, output_total, total = (
        next((int(usage[name]) for name in names if name in usage), None) for names in (_INPUT, _OUTPUT, _TOTAL)
    )
    if total is None and input_total is not None and output_total is not None:
        total = input_total + output_total
    return UsageReported(input_total, output_total=output_total, total=total)


# -- pieces and their times --------------------------------------------------------------------------------------------


def _pieces(response: Response, dialect: Dialect, chunk_chars: int) -> list[bytes]:
    """Return the encoder's bytes for each event, with texts split. Generated ids are numbers, the same in each run."""
    numbers = count(1)
    encoding = Encoding(make_id=lambda prefix: f"{prefix}{next(numbers)}", clock=lambda: 0.0)
    report = StreamReport()
    encoder = dialect.encoder(encoding, report)
    checked = check_json().make(report).feed(response_events(response))
    written = [encoder.feed([event]) for whole in checked for event in _cut_up(whole, chunk_chars)]
    return [piece for piece in (*written, encoder.finish()) if piece]


def _cut_up(event: Event, chars: int) -> Iterator[Event]:
    match event:
        case TextDelta() | ReasoningDelta():
            yield from (evolve(event, text=event.text[at : at + chars]) for at in range(0, len(event.text), chars))
        case ToolCallArguments():
            text = event.fragment
            yield from (evolve(event, fragment=text[at : at + chars]) for at in range(0, len(text), chars))
        case _:
            yield event


def _delays(entry: dict[str, Any]) -> Iterator[float]:
    """Yield the delay before each piece, in seconds."""
    profile, recorded = entry.get("streamingProfile") or {}, entry.get("recordedTimings")
    latency = _seconds(entry.get("latency"))
    if profile:
        each = 1 / float(profile["tps"]) if profile.get("tps") else latency
        first, between = _seconds(profile["ttft"]) if "ttft" in profile else each, []
    elif recorded:
        first, between = _seconds(recorded.get("ttftMs")), [*map(_seconds, recorded.get("interChunkDelaysMs") or ())]
        each = sum(between) / len(between) if between else 0.0
    else:
        first, between, each = latency, [], latency
    yield first
    yield from between
    while True:
        yield each


def _seconds(milliseconds: Any) -> float:
    seconds = float(milliseconds or 0) / 1000
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _cut(reads: list[Read], entry: dict[str, Any]) -> tuple[list[Read], End]:
    """Return the reads to keep, and the end: a fixture may interrupt the stream after some pieces or some time."""
    pieces, milliseconds = entry.get("truncateAfterChunks"), entry.get("disconnectAfterMs")
    kept = reads if pieces is None else reads[: int(pieces)]
    if milliseconds is not None:
        kept = [read for read in kept if read.t <= _seconds(milliseconds)]
    is_cut = len(kept) < len(reads)
    t = _seconds(milliseconds) if is_cut and milliseconds is not None else None
    return kept, End.of(kept, kind="cut" if is_cut else "whole", t=t)
