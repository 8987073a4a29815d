"""Conforming answers of each dialect, as our encoders write them, for quirks to change, and what is read of an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from itertools import pairwise
from typing import Any, Final

from attrs import frozen

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Tool
from streamkit.conversation.restore import restore_calls
from streamkit.dialects import DIALECTS
from streamkit.events import (
    ProviderFailed,
    ReasoningDelta,
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallFinished,
    UsageReported,
)
from streamkit.lab.mock.writing import Answer
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.policy import TOLERANT, Policy
from streamkit.report import StreamReport
from streamkit.translation.bodies import encode_response
from tests.laws.running import chain_of, translate
from tests.vectors.vector import sse

HEAD: Final = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
#: The tools of the request that the answers call.
TOOLS: Final = (Tool(name="get_weather"), Tool(name="get_time"), Tool(name="apply_patch", kind="custom"))


def chunk(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int, text: str, **start: str) -> dict[str, object]:
    function = {"name": start["name"], "arguments": text} if start else {"arguments": text}
    identity = {"id": start["id"], "type": "function"} if start else {}
    return chunk(tool_calls=[{"index": index, **identity, "function": function}])


START: Final = chunk(role="assistant", content="")
THOUGHT: Final = [chunk(reasoning_content="The user asks "), chunk(reasoning_content="for two things.")]
TEXT: Final = [chunk(content="Let me look "), chunk(content="at the weather "), chunk(content="and the time.")]
CALLS: Final = [
    call(0, "", id="call_a", name="get_weather"),
    call(0, '{"city":'),
    call(0, '"Oslo",'),
    call(0, '"days":3}'),
    call(1, "", id="call_b", name="get_time"),
    call(1, '{"zone":'),
    call(1, '"CET"'),
    call(1, "}"),
]
PATCH: Final = [call(0, "", id="call_a", name="apply_patch"), call(0, '{"input":"*** Be'), call(0, 'gin Patch"}')]
USAGE: Final = {**HEAD, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}}
ERROR: Final = {"error": {"message": "overloaded", "type": "server_error", "code": None, "param": None}}
ANSWERS: Final = {
    "calls": sse(START, *THOUGHT, *TEXT, *CALLS, chunk("tool_calls"), USAGE, b"[DONE]"),
    "text": sse(START, *TEXT, chunk("stop"), USAGE, b"[DONE]"),
    "length": sse(START, *TEXT, chunk("length"), USAGE, b"[DONE]"),
    "custom": sse(START, *PATCH, chunk("tool_calls"), USAGE, b"[DONE]"),
    "error": sse(START, *TEXT, ERROR),
    "error behind calls": sse(START, *TEXT, *CALLS, ERROR),
}


@cache
def conforming(dialect: str, name: str) -> Answer:
    """The stream of that name in a dialect."""
    reads = [part + b"\n\n" for part in ANSWERS[name].split(b"\n\n") if part]
    body, _ = translate("openai-chat", dialect, reads, passing=False, join=False)
    return Answer(dialect=dialect, frames=frames_of(dialect, body), content_type=DIALECTS[dialect].media_type)


@cache
def conforming_body(dialect: str, name: str) -> Answer:
    """The same as a whole answer."""
    report = StreamReport()
    collector, chain = Collector(dialect, report), chain_of(dialect, report)
    for events in chain.feed(conforming(dialect, name).body), chain.finish():
        collector.feed(events)
    body = encode_response(collector.finish(), dialect)
    return Answer(dialect=dialect, frames=(body,), content_type="application/json", streamed=False)


def frames_of(dialect: str, body: bytes) -> tuple[bytes, ...]:
    """A stream cut in front of each frame."""
    parser = DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport())
    places = [frame.offset for frame in [*parser.feed(body), *parser.finish()]]
    return tuple(body[begin:end] for begin, end in pairwise([*places, len(body)]))


@frozen
class Said:
    """What an answer says, however it came."""

    text: str
    reasoning: str
    calls: tuple[tuple[str, str], ...]
    stop: str | None
    error: str | None
    clean: bool
    tokens: tuple[int | None, int | None] | None

    @classmethod
    def of(cls, events: Iterable[Any]) -> Said:
        events = list(events)
        calls = sorted((e for e in events if type(e) is ToolCallFinished), key=lambda finished: finished.call)
        usage = [(e.input_total, e.output_total) for e in events if type(e) is UsageReported]
        return cls(
            "".join(e.text for e in events if type(e) is TextDelta),
            "".join(e.text for e in events if type(e) is ReasoningDelta),
            tuple((finished.name, finished.arguments) for finished in calls),
            next((e.reason for e in events if type(e) is ResponseFinished), None),
            next((e.message for e in events if type(e) is ProviderFailed), None),
            any(type(e) is StreamEnded and e.clean for e in events),
            usage[-1] if usage else None,
        )

    @property
    def holds(self) -> Collection[str]:
        """What a stream with it holds, in the words of ``streamkit/lab/mock/quirks.py``."""
        names = [name for name, arguments in self.calls if arguments != "{}"]
        found = {
            "text": bool(self.text),
            "reasoning": bool(self.reasoning),
            "call": bool(names),
            "calls": len(names) > 1,
            "no call": self.stop == "stop",
            "custom call": "apply_patch" in names,
            "length": self.stop == "length",
            "usage": self.tokens is not None,
            "error": self.error is not None,
            "end": self.clean,
        }
        return {"stream", *(name for name, is_held in found.items() if is_held)}


def said(answer: Answer, policy: Policy = TOLERANT) -> tuple[Said, StreamReport]:
    """What a stream says to a client that offered ``TOOLS``, and the report on it."""
    report = StreamReport()
    reading = chain_of(answer.dialect, report, policy=policy, offered=TOOLS)
    chain = Chain(*reading.links, restore_calls(TOOLS).make(report))
    events = [event for frame in answer.frames for event in chain.feed(frame)] + chain.finish()
    if chain.fault is not None:
        raise chain.fault
    return Said.of(events), report
