"""Where a stream is complete, told without our decoders: the frames by their lines, the fields by their names.

Source: dialects.md §7.6. One entry a dialect; a new dialect adds its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Protocol

from attrs import define, field

from streamkit.dialects import DIALECTS


@define
class Fact:
    """The stream up to a frame. ``end`` is the byte at which the frame's payload is whole."""

    end: int
    complete: bool
    text: str  #: of choice 0, so far
    ended_calls: int  #: how many calls the protocol has ended
    quiet: bool = True  #: the frame says nothing but usage, stop reason or terminator


class Oracle(Protocol):
    complete: bool
    text: str
    ended_calls: int

    def take(self, payload: Any) -> bool:
        """One payload, JSON or ``[DONE]``; whether it is quiet."""


@define
class Chat:
    seen: set[int] = field(factory=set)
    finished: dict[int, str] = field(factory=dict)
    calls: dict[tuple[int, Any], str] = field(factory=dict)
    done: bool = False
    failed: bool = False
    text: str = ""
    ended_calls: int = 0

    @property
    def complete(self) -> bool:
        if self.failed or not self.seen or "abort" in self.finished.values() or "error" in self.finished.values():
            return False
        if not self.finished:  # the one rule for streams without a reason
            return self.done and bool(self.calls) and all(_is_object(text) for text in self.calls.values())
        return self.seen == self.finished.keys()

    def take(self, payload: Any) -> bool:
        if payload == "[DONE]":
            self.done = True
            return True
        if payload.get("error"):
            self.failed = True
        quiet = True
        for choice in payload.get("choices") or ():
            if not isinstance(choice, dict):
                continue
            index = choice.get("index") if type(choice.get("index")) is int else 0
            quiet = quiet and index in self.seen
            self.seen.add(index)
            delta = choice.get("delta") or choice.get("message") or {}
            content = delta.get("content")
            if isinstance(content, list):
                content = "".join(part.get("text") or "" for part in content if part.get("type") == "text")
            if content and index == 0 and not self.failed:
                self.text += content
            for call in delta.get("tool_calls") or ():
                key = (index, call.get("index"))
                function = call.get("function") or {}
                arguments = function.get("arguments")
                if isinstance(arguments, str | None):
                    self.calls[key] = self.calls.get(key, "") + (arguments or "")
                else:
                    self.calls[key] = json.dumps(arguments)
            quiet = quiet and not any(value for name, value in delta.items() if name != "role")
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason.strip() and reason not in {"null", "None"}:
                quiet = quiet and index not in self.finished
                self.finished.setdefault(index, reason)
        return quiet


@define
class Anthropic:
    complete: bool = False
    text: str = ""
    ended_calls: int = 0
    failed: bool = False
    tools: set[int] = field(factory=set)

    def take(self, payload: Any) -> bool:
        kind, index = payload.get("type"), payload.get("index")
        if kind == "error" or (payload.get("error") and not kind):
            self.failed, self.complete = True, False
        elif kind == "content_block_start":
            block = payload["content_block"]
            if block["type"] == "text":
                self.text += block.get("text") or ""
            if block["type"] == "tool_use":
                self.tools.add(index)
        elif kind == "content_block_delta" and payload["delta"]["type"] == "text_delta":
            self.text += payload["delta"]["text"]
        elif kind == "content_block_stop" and index in self.tools:
            self.tools.remove(index)
            self.ended_calls += 1
        elif kind == "message_delta" and payload["delta"].get("stop_reason") and not self.failed:
            self.complete = True
        return kind in {"ping", "message_delta", "message_stop"}


@define
class Ollama:
    complete: bool = False
    text: str = ""
    ended_calls: int = 0

    def take(self, payload: Any) -> bool:
        if payload.get("error"):
            self.complete = False
            return False
        message = payload.get("message") or {"content": payload.get("response")}
        self.text += message.get("content") or ""
        self.ended_calls += len(message.get("tool_calls") or ())
        self.complete = self.complete or (payload.get("done") is True and bool(payload.get("done_reason")))
        return not (message.get("content") or message.get("tool_calls") or message.get("thinking"))


ORACLES: dict[str, tuple[Callable[[], Oracle], Callable[[bytes], list[tuple[int, bytes]]]]] = {}
#: Whether a payload of each dialect is the terminator that only a success has.
SUCCESS: dict[str, Callable[[Any], bool]] = {
    "openai-chat": lambda payload: payload == "[DONE]",
    "anthropic": lambda payload: payload != "[DONE]" and payload.get("type") == "message_stop",
    "ollama": lambda payload: payload.get("done") is True,
}


def sse_payloads(body: bytes) -> list[tuple[int, bytes]]:
    """Each event's data, and the byte behind it; lines end with CR, LF or CRLF."""
    found, data, end = [], [], 0
    at = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    for match in re.finditer(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", body[at:]):
        line = match[1]
        if line.startswith((b"data:", b"error:")):
            data.append(line.partition(b":")[2].removeprefix(b" "))
            end = at + match.start() + len(line.rstrip())
        if data and (not line or match[2] == b""):
            found.append((end, b"\n".join(data)))
            data = []
    return found


def line_payloads(body: bytes) -> list[tuple[int, bytes]]:
    return [
        (match.start() + len(match[0].rstrip()), match[0])
        for match in re.finditer(rb"[^\n]+", body)
        if match[0].strip()
    ]


ORACLES |= {
    "openai-chat": (Chat, sse_payloads),
    "anthropic": (Anthropic, sse_payloads),
    "ollama": (Ollama, line_payloads),
}
assert ORACLES.keys() == SUCCESS.keys() == DIALECTS.keys(), "a new dialect needs its own oracle here"


def facts(dialect: str, body: bytes) -> list[Fact]:
    """What the stream says up to each of its frames, as far as they are JSON."""
    make, payloads = ORACLES[dialect]
    oracle = make()
    found = []
    for end, payload in payloads(body):
        value = _value(payload)
        if value is None:
            if payload.strip() and not payload.startswith(b":"):
                break
            continue
        try:
            quiet = oracle.take(value)
        except (KeyError, TypeError, AttributeError):
            break
        found.append(Fact(end, oracle.complete, oracle.text, oracle.ended_calls, quiet))
    return found


def says_success(dialect: str, output: bytes) -> bool:
    values = (_value(payload) for _, payload in ORACLES[dialect][1](output))
    return any(value is not None and SUCCESS[dialect](value) for value in values)


def _value(payload: bytes) -> Any:
    if payload.strip() == b"[DONE]":
        return "[DONE]"
    try:
        value = json.loads(payload.decode("utf-8", "replace"))
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    text = json.dumps(value, ensure_ascii=False)  # halves of surrogate pairs as U+FFFD
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
