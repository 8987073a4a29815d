"""Where a stream is complete, told without our decoders: the frames by their lines, the fields by their names.

Source: dialects.md §7.6. One entry a dialect; a new dialect adds its own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Protocol

from attrs import define, field

from streamkit.dialects import DIALECTS
from tests.framing.binary import message_payloads


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
                texts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
                content = "".join(part.get("text") or "" for part in texts)
            elif not isinstance(content, str):
                content = ""
            if content and index == 0 and not self.failed:
                self.text += content
            calls = delta.get("tool_calls") or ()
            for call in [calls] if isinstance(calls, dict) else calls:
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
class Mistral(Chat):
    def take(self, payload: Any) -> bool:
        if payload != "[DONE]" and payload.get("object") == "error":
            self.failed = True
        return super().take(payload)


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


def means_true(value: Any) -> bool:
    """Whether a truth value says yes, also as a word or a number."""
    return str(value).lower() in {"true", "1"}


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
        self.complete = self.complete or (means_true(payload.get("done")) and bool(payload.get("done_reason")))
        return not (message.get("content") or message.get("tool_calls") or message.get("thinking"))


@define
class Cohere:
    complete: bool = False
    text: str = ""
    ended_calls: int = 0
    open: set[int] = field(factory=set)
    seen: set[int] = field(factory=set)
    last: int = 0

    def take(self, payload: Any) -> bool:
        if payload == "[DONE]":
            return True
        kind, index = payload.get("type"), payload.get("index", self.last)
        message = (payload.get("delta") or {}).get("message") or {}
        if kind in {"content-start", "content-delta"}:
            content = message.get("content") or {}
            for part in content if isinstance(content, list) else [content]:
                self.text += (part if isinstance(part, str) else part.get("text")) or ""
        elif kind == "tool-call-start":
            self.ended_calls += index in self.open  # a start ends the call that was open there
            self.last = index
            self.open.add(index)
            self.seen.add(index)
        elif kind == "tool-call-delta" and index not in self.seen:
            self.open.add(index)
        elif kind == "tool-call-end" and index in self.open:
            self.open.remove(index)
            self.ended_calls += 1
        elif kind == "message-end":
            self.complete = cohere_success(payload)
        elif not kind:
            self.complete = False
        return kind in {"message-end", "citation-start", "citation-end", "debug"}


def cohere_success(payload: Any) -> bool:
    delta = payload.get("delta") or {}
    return (
        bool(delta.get("finish_reason"))
        and delta["finish_reason"] not in {"ERROR", "TIMEOUT"}
        and not delta.get("error")
    )


@define
class Bedrock:
    """Payloads stand under the type of their message: ``{"messageStop": {…}}``."""

    complete: bool = False
    text: str = ""
    ended_calls: int = 0
    failed: bool = False
    kinds: dict[Any, str] = field(factory=dict)  # of the blocks whose start told it
    native: Anthropic = field(factory=Anthropic)

    def take(self, payload: Any) -> bool:
        ((kind, document),) = payload.items()
        if kind == "chunk":
            quiet = self.native.take(json.loads(base64.b64decode(document["bytes"])))
            self.complete, self.text = self.native.complete, self.native.text
            self.ended_calls = self.native.ended_calls
            return quiet
        index = document.get("contentBlockIndex")
        if kind.startswith(("exception:", "error:")):
            self.failed = True
        elif kind == "contentBlockStart":
            self.kinds[index] = "".join(document["start"])
        elif kind == "contentBlockDelta" and not self.kinds.get(index):
            self.text += document["delta"].get("text", "")
            if "toolUse" in document["delta"]:  # its start never came
                self.kinds[index] = "toolUse"
        elif kind == "contentBlockStop":
            self.ended_calls += self.kinds.pop(index, "") == "toolUse"
        self.complete = not self.failed and (
            self.complete or bool(kind == "messageStop" and document.get("stopReason"))
        )
        if kind == "messageStop" and document.get("stopReason") in BEDROCK_FAILURES:
            self.failed, self.complete = True, False
        return kind in {"messageStop", "metadata", "keepAlive"}


#: Reasons that tell no answer but a failure.
GEMINI_FAILURES = frozenset(
    [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
        "OTHER",
        "LANGUAGE",
        "NO_IMAGE",
        "IMAGE_OTHER",
        "PUP_LIMITED_DISABLED",
    ]
)
BEDROCK_FAILURES = frozenset({"malformed_tool_use", "malformed_model_output"})


@define
class Gemini:
    seen: set[int] = field(factory=set)
    finished: set[int] = field(factory=set)
    failed: bool = False
    text: str = ""
    ended_calls: int = 0

    @property
    def complete(self) -> bool:
        return not self.failed and bool(self.seen) and self.seen == self.finished

    def take(self, payload: Any) -> bool:
        if payload == "[DONE]":
            return True
        quiet = True
        for position, candidate in enumerate(payload.get("candidates") or ()):
            index = candidate.get("index", position)
            self.seen.add(index)
            for part in (candidate.get("content") or {}).get("parts") or ():
                if not isinstance(part, dict):
                    continue
                call, text = part.get("functionCall"), part.get("text")
                if call is not None:
                    self.ended_calls += not call.get("willContinue")
                if index == 0 and isinstance(text, str) and not means_true(part.get("thought")) and not self.failed:
                    self.text += text
                quiet = quiet and not text and call is None
            if candidate.get("finishReason"):
                quiet = quiet and index not in self.finished
                self.finished.add(index)
                self.failed = self.failed or candidate["finishReason"] in GEMINI_FAILURES
        if (payload.get("promptFeedback") or {}).get("blockReason"):
            self.seen.add(0)
            self.finished.add(0)
        self.failed = self.failed or bool(payload.get("error"))
        return quiet and not payload.get("error")


def gemini_success(payload: Any) -> bool:
    candidates = payload.get("candidates") or ()
    return bool((payload.get("promptFeedback") or {}).get("blockReason")) or any(
        c.get("finishReason") and c["finishReason"] not in GEMINI_FAILURES for c in candidates
    )


@define
class Responses:
    complete: bool = False
    text: str = ""
    ended_calls: int = 0
    failed: bool = False
    kinds: set[Any] = field(factory=set)  # of the items that came
    said: dict[Any, str] = field(factory=dict)  # the text of each part
    starts: dict[Any, str] = field(factory=dict)  # what of a part's start its deltas may still repeat
    ended: set[Any] = field(factory=set)  # calls

    def take(self, payload: Any) -> bool:
        kind = payload.get("type") if payload != "[DONE]" else ""
        if payload == "[DONE]":
            return True
        place = payload.get("item_id") or payload.get("output_index"), payload.get("content_index")
        if kind == "error" or (payload.get("error") and not kind):
            self.failed = True
        elif kind == "response.output_text.delta":
            self.delta(place, payload["delta"])
        elif kind == "response.output_text.done":
            self.whole(place, payload["text"])
        elif kind == "response.content_part.done":
            self.whole(place, payload["part"].get("text") if payload["part"]["type"] == "output_text" else "")
        elif kind == "response.output_item.added" and payload["item"]:
            for number, part in enumerate(payload["item"].get("content") or ()):
                self.start((payload["item"].get("id") or payload.get("output_index"), number), part.get("text"))
        elif kind == "response.output_item.done" and payload["item"]:
            self.item(payload["item"], payload["item"].get("id") or payload.get("output_index"))
        elif kind in {"response.completed", "response.incomplete", "response.failed", "response.done"}:
            self.terminal(payload.get("response", payload))
        if kind != "response.output_item.added" or payload["item"]:
            self.kinds.add(str((payload.get("item") or {}).get("type")))
        self.complete = self.complete and not self.failed
        return kind in {"response.completed", "response.incomplete", "response.in_progress", "response.done"}

    def say(self, place: Any, text: str | None) -> None:
        if text and not self.failed:
            self.text += text
            self.said[place] = self.said.get(place, "") + text

    def start(self, place: Any, text: str | None) -> None:
        if text and place not in self.said:
            self.say(place, text)
            self.starts[place] = text

    def delta(self, place: Any, text: str) -> None:
        if text and self.starts.get(place, "").startswith(text):
            self.starts[place] = self.starts[place][len(text) :]
        else:
            self.starts.pop(place, None)
            self.say(place, text)

    def whole(self, place: Any, text: str | None) -> None:
        for part in (place, *self.said):
            if text and text.startswith(self.said.get(part) or "\0"):
                self.say(part, text[len(self.said[part]) :])
                return
        if place not in self.said:
            self.say(place, text)

    def item(self, item: Any, place: Any) -> None:
        for number, part in enumerate(item.get("content") or () if item["type"] == "message" else ()):
            if part["type"] == "output_text":
                self.whole((place, number), part["text"])
        if item["type"] in {"function_call", "custom_tool_call"} and item.get("status", "completed") == "completed":
            self.ended_calls += place not in self.ended
            self.ended.add(place)

    def terminal(self, response: Any) -> None:
        seen = frozenset(self.kinds)
        for number, item in enumerate(response.get("output") or ()):
            if item["type"].endswith("_call") or item["type"] not in seen:
                self.item(item, item.get("id") or number)
        if response["status"] in {"completed", "incomplete"}:
            self.complete = True
        else:
            self.failed = True


ORACLES: dict[str, tuple[Callable[[], Oracle], Callable[[bytes], list[tuple[int, bytes]]]]] = {}


#: Whether a payload of each dialect is the terminator that only a success has.
@define
class Interactions:
    complete: bool = False
    text: str = ""
    ended_calls: int = 0
    failed: bool = False
    seen: bool = False  # a step came
    calls: set[Any] = field(factory=set)  # indexes of the calls that are open
    last: Any = None  # the index of an event without one

    def take(self, payload: Any) -> bool:
        if payload == "[DONE]":
            return True
        kind, step = payload.get("event_type") or payload.get("type") or "", payload.get("step") or {}
        index = self.last = payload.get("index") if payload.get("index") is not None else self.last
        if self.failed:  # what comes behind an error is passed over
            return True
        if kind == "step.start":
            self.seen = True
            self.ended_calls += index in self.calls
            self.calls.discard(index)
            self.start(step, index)
        elif kind == "step.delta" and payload["delta"]["type"] == "text":
            text = payload["delta"]["text"]
            self.text += text if isinstance(text, str) else text["text"]
        elif kind == "step.stop":
            self.ended_calls += index in self.calls
            self.calls.discard(index)
        if kind == "error" or (payload.get("error") and not kind):
            self.failed = True
        elif kind == "interaction.completed":
            self.end(payload["interaction"])
        self.complete = self.complete and not self.failed
        return kind in {"interaction.completed", "interaction.status_update"} or (kind == "step.stop" and not step)

    def start(self, step: Any, index: Any) -> None:
        if step.get("type") == "function_call":
            self.calls.add(index)
        elif step.get("type") == "model_output":
            content = step.get("content") or []
            self.text += content if isinstance(content, str) else "".join(part.get("text", "") for part in content)

    def end(self, interaction: Any) -> None:
        for step in interaction.get("steps") or () if not self.seen else ():
            self.start(step, None)
            self.ended_calls += step["type"] == "function_call"
        self.complete = self.complete or interactions_success({"interaction": {"status": "completed", **interaction}})


def interactions_success(payload: Any) -> bool:
    running = {"in_progress", "queued", "idle"}
    return (payload.get("interaction") or {}).get("status") not in running | {"failed", "cancelled"}


@define
class AgUi:
    complete: bool = False
    text: str = ""
    ended_calls: int = 0
    failed: bool = False
    user: set[Any] = field(factory=set)  # messages that the model does not say
    open: set[Any] = field(factory=set)
    chunked: Any = None  # the call that chunks are about
    last: str = ""  # the call that an event without an id is about

    def take(self, payload: Any) -> bool:
        if payload == "[DONE]":
            return True
        kind = payload.get("type") or ""
        call = self.last = payload.get("toolCallId") or self.last
        if kind == "TEXT_MESSAGE_START" and payload.get("role") not in {None, "assistant"}:
            self.user.add(payload["messageId"])
        elif kind in {"TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"} and not self.is_beside(payload):
            delta = payload.get("delta") or ""
            self.text += delta if isinstance(delta, str) else delta["text"]
        elif kind in {"TOOL_CALL_START", "TOOL_CALL_ARGS"}:
            self.open.add(call)
        elif kind == "TOOL_CALL_END":
            self.end(call)
        elif kind == "TOOL_CALL_CHUNK" and self.chunked != call:
            self.end(self.chunked)
            self.chunked = call
            self.open.add(call)
        if kind != "TOOL_CALL_CHUNK" and kind not in {"RAW", "RUN_ERROR"}:
            self.end(self.chunked)
        if kind == "RUN_ERROR" or (payload.get("error") and not kind):
            self.failed = True
        elif kind == "RUN_FINISHED":
            self.complete = agui_success(payload)
        self.complete = self.complete and not self.failed
        quiet = {"RUN_FINISHED", "TEXT_MESSAGE_END", "REASONING_MESSAGE_END", "REASONING_END", "STEP_FINISHED"}
        return kind in quiet | {"RAW", "CUSTOM", "STATE_DELTA", "SUBAGENT_STARTED", "SUBAGENT_FINISHED"}

    def is_beside(self, payload: Any) -> bool:
        return self.failed or payload.get("messageId") in self.user

    def end(self, call: Any) -> None:
        self.ended_calls += call in self.open
        self.open.discard(call)


def agui_success(payload: Any) -> bool:
    told = (payload.get("outcome") or {}).get("type") or (payload.get("metadata") or {}).get("finishReason")
    return told not in {"cancelled", "error"}


@define
class AISDK:
    complete: bool = False
    text: str = ""
    ended_calls: int = 0
    failed: bool = False
    waiting: set[str] = field(factory=set)

    def take(self, payload: Any) -> bool:
        if payload == "[DONE]":
            return True
        kind = payload.get("type")
        if kind in {"error", "abort"}:
            self.failed = True
        elif kind == "text-delta" and not self.failed:
            self.text += payload["delta"]
        elif kind in {"tool-input-available", "tool-input-error"} and not payload.get("providerExecuted"):
            self.waiting.add(payload["toolCallId"])
        elif kind in {"tool-output-available", "tool-output-error", "tool-output-denied"}:
            self.waiting.discard(payload["toolCallId"])  # the server ran it
        self.ended_calls = len(self.waiting)
        self.complete = not self.failed and (
            self.complete or (kind == "finish" and payload.get("finishReason") not in {"error", "interrupted"})
        )
        return kind in {"finish", "finish-step"}


SUCCESS: dict[str, Callable[[Any], bool]] = {
    "openai-responses": lambda payload: (
        payload != "[DONE]" and payload.get("type") in {"response.completed", "response.incomplete", "response.done"}
    ),
    "openai-chat": lambda payload: payload == "[DONE]",
    "mistral": lambda payload: payload == "[DONE]",
    "anthropic": lambda payload: payload != "[DONE]" and payload.get("type") == "message_stop",
    "ollama": lambda payload: means_true(payload.get("done")),
    "bedrock": lambda payload: (
        payload.get("messageStop", {}).get("stopReason", "malformed_tool_use") not in BEDROCK_FAILURES
    ),
    "gemini": lambda payload: payload != "[DONE]" and gemini_success(payload),
    "gemini-interactions": lambda payload: (
        payload != "[DONE]"
        and payload.get("event_type", payload.get("type")) == "interaction.completed"
        and interactions_success(payload)
    ),
    "cohere": lambda payload: payload != "[DONE]" and payload.get("type") == "message-end" and cohere_success(payload),
    "ag-ui": lambda payload: payload != "[DONE]" and payload.get("type") == "RUN_FINISHED" and agui_success(payload),
    "ai-sdk": lambda payload: payload != "[DONE]" and payload.get("type") == "finish",
}


def sse_payloads(body: bytes) -> list[tuple[int, bytes]]:
    """Each event's data, and the byte behind it; lines end with CR, LF or CRLF.

    A type that stands on the event's own line alone is put into the object.
    """
    found, data, end, name = [], [], 0, b""
    at = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    for match in re.finditer(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", body[at:]):
        line = match[1]
        if line.startswith((b"data:", b"error:")):
            data.append(line.partition(b":")[2].removeprefix(b" "))
            end = at + match.start() + len(line.rstrip())
        elif line.startswith(b"event: "):
            name = line.removeprefix(b"event: ")
        if data and (not line or match[2] == b""):
            found.append((end, typed(b"\n".join(data), name)))
            data = []
        if not line:
            name = b""
    return found


def typed(data: bytes, name: bytes) -> bytes:
    value = _value(data) if name and data.startswith(b'{"') else None
    return data if value is None or "type" in value else b'{"type":"%b",%b' % (name, data[1:])


def line_payloads(body: bytes) -> list[tuple[int, bytes]]:
    return [
        (match.start() + len(match[0].rstrip()), match[0])
        for match in re.finditer(rb"[^\n]+", body)
        if match[0].strip()
    ]


def gemini_payloads(body: bytes) -> list[tuple[int, bytes]]:
    """The elements of an array, or events and bare objects, each with the byte behind it."""
    if body.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return objects_from(body, body.index(b"[") + 1)
    bare = re.search(rb"(?:\A|[\r\n])(?=\{)", body)
    if bare is None:
        return sse_payloads(body)
    return sse_payloads(body[: bare.end()]) + objects_from(body, bare.end())


def objects_from(body: bytes, at: int) -> list[tuple[int, bytes]]:
    """JSON objects with commas between them, as far as they are whole. Bytes count as characters."""
    text, found = body.decode("latin-1"), []
    while True:
        start = at + len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
        try:
            _, at = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            return found
        found.append((at, body[start:at]))


ORACLES |= {
    "openai-chat": (Chat, sse_payloads),
    "mistral": (Mistral, sse_payloads),
    "anthropic": (Anthropic, sse_payloads),
    "ollama": (Ollama, line_payloads),
    "openai-responses": (Responses, sse_payloads),
    "bedrock": (Bedrock, message_payloads),
    "cohere": (Cohere, sse_payloads),
    "gemini": (Gemini, gemini_payloads),
    "gemini-interactions": (Interactions, sse_payloads),
    "ag-ui": (AgUi, sse_payloads),
    "ai-sdk": (AISDK, sse_payloads),
}
assert ORACLES.keys() == SUCCESS.keys() == DIALECTS.keys(), "a new dialect needs its own oracle here"


def facts(dialect: str, body: bytes) -> list[Fact]:
    """What the stream says up to each of its frames, as far as they are JSON."""
    make, payloads = ORACLES[dialect]
    oracle = make()
    found: list[Fact] = []
    is_over = False
    for end, payload in payloads(body):
        value = _value(payload)
        values = [value] if value is not None else _values_in(payload)
        if values is None:
            if payload.strip() and not payload.startswith(b":"):
                break
            continue
        quiet = True
        try:  # behind the terminator only a failure counts
            for value in values:
                if not is_over or _is_failure(value):
                    quiet = oracle.take(value) and quiet
                is_over = is_over or (dialect != "gemini" and SUCCESS[dialect](value))
        except (KeyError, TypeError, AttributeError):
            break
        if values:
            found.append(Fact(end, oracle.complete, oracle.text, oracle.ended_calls, quiet))
    return found


def says_success(dialect: str, output: bytes) -> bool:
    values = (_value(payload) for _, payload in ORACLES[dialect][1](output))
    return any(value is not None and SUCCESS[dialect](value) for value in values)


def _is_failure(value: Any) -> bool:
    return value != "[DONE]" and bool(
        value.get("error")
        or value.get("type", value.get("object")) in {"error", "RUN_ERROR"}
        or any(map(_names_failure, value))
    )


def _names_failure(name: str) -> bool:
    return name.startswith(("exception:", "error:"))


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


def _values_in(payload: bytes) -> list[Any] | None:
    """The objects in a payload that is none itself: a list's, or those of ``null`` and the like; None if it is no JSON."""
    try:
        found = json.loads(payload)
    except ValueError:
        return None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


#: Items of Responses that the client is to run or to approve, and what the provider writes behind one that it ran itself.
CLIENT_ITEMS = frozenset(
    {"apply_patch_call", "computer_call", "local_shell_call", "mcp_approval_request", "shell_call"}
)
ANSWERED = "shell_call_output"


def waits_for_client(body: bytes) -> bool:
    """Whether a Responses stream has an item that the client is to run or to approve."""
    waiting: set[str] = set()
    for _, payload in sse_payloads(body):
        value = _value(payload)
        if not isinstance(value, dict):
            continue
        response = value.get("response")
        items = [value.get("item"), *((response.get("output") or ()) if isinstance(response, dict) else ())]
        for item in (item for item in items if isinstance(item, dict)):
            name = str(item.get("call_id") or item.get("id"))
            if str(item.get("type")) in CLIENT_ITEMS:
                waiting.add(name)
            elif item.get("type") == ANSWERED:
                waiting.discard(name)
    return bool(waiting)
