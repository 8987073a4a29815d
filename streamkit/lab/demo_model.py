"""Compute the demo model's response: choose a recording for the request, and replace the parts that must fit the request.

The recordings are streams as providers write them. These parts are replaced: the model's name, ids, token counts, the tool
calls with their arguments, and the quoted tool results.

The model calls the offered tools, unless the client has just sent tool results. Then it quotes these results, so that a tool
loop ends. If a call is required, the model always calls. One token is one delta of the output, or one word of the prompt.

Sampling options and ``stop`` have no effect, and only function tools are called. More than one choice is an error, and so is
a schema for which no value can be made.

Source: dialects.md §1.1, §1.2, §1.3.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import Any, Final

import orjson
from attrs import evolve

from streamkit.conversation.messages import (
    OutputFormat,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from streamkit.dialects import dialect_named
from streamkit.errors import BadRequest
from streamkit.events import (
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TextDelta,
    ToolCallDelta,
    UsageReported,
    WireEvent,
)
from streamkit.lab.minimal_value import NoValue, minimal_object
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.text.quoting import quoted, shortened

RESULTS: Final = "{results}"  #: the placeholder for tool results in the recorded response to them
EXCERPT_CHARS: Final = 80  #: the number of characters of a tool result that the response quotes
FRAGMENT_CHARS: Final = 4
DELTAS: Final = (ReasoningDelta, TextDelta, ToolCallDelta)
WORD: Final = re.compile(r"\s*\S+")


@cache
def settings() -> dict[str, Any]:
    """Return the demo's settings next to its recordings: the dialect, and example commands."""
    return tomllib.loads(files("streamkit.lab").joinpath("demo_recordings", "demo.toml").read_text("utf-8"))


def dialect() -> str:
    """Return the name of the demo model's dialect."""
    return str(settings()["dialect"])


@cache
def recording(name: str) -> tuple[WireEvent, ...]:
    """Return the events of a bundled recording. Raises StreamError if the recording is broken."""
    spoken, report = dialect_named(dialect()), StreamReport()
    machines = Chain(spoken.parser(DEFAULT_LIMITS, report), spoken.decoder(DEFAULT_LIMITS, report))
    body = files("streamkit.lab").joinpath("demo_recordings", f"{name}.sse").read_bytes()
    events = (*machines.feed(body), *machines.finish())
    if machines.fault is not None:
        raise machines.fault
    return events


def answer(
    request: Request,
    *,
    reasons: bool,
    make_id: Callable[[str], str] = random_id,
    clock: Callable[[], float] = time.time,
) -> list[WireEvent]:
    """Return the wire events that answer ``request``; ``reasons`` includes reasoning. Raises BadRequest if it is impossible.

    ``make_id`` returns an id with a given prefix, and ``clock`` returns seconds since the epoch. If both are deterministic,
    equal requests get equal events.
    """
    _check(request)
    events = _reply_events(request)
    if not reasons:
        events = [event for event in events if not isinstance(event, ReasoningDelta)]
    events = _bounded(events, request.options.max_tokens)
    ids = {event.index: make_id("call_") for event in events if isinstance(event, ToolCallDelta)}
    for number, event in enumerate(events):
        match event:
            case ResponseStarted():
                events[number] = ResponseStarted(make_id("chatcmpl-"), request.model, int(clock()), event.vendor)
            case ToolCallDelta() if event.id:
                events[number] = evolve(event, id=ids[event.index])
            case UsageReported():
                events[number] = _usage(request, events)
    return events


def _check(request: Request) -> None:
    if not request.model:
        raise BadRequest("model", "must be the name of a model")
    if (request.options.choices or 1) != 1:
        raise BadRequest("n", f"must be 1 for the demo model, not {request.options.choices}")
    most = request.options.max_tokens
    if most is not None and most < 1:
        raise BadRequest(request.options.native_max_tokens or "max_tokens", f"must be at least 1, not {most}")


def _reply_events(request: Request) -> list[WireEvent]:
    choice = request.tool_choice or ToolChoice()
    offered, results, output = _offered(request, choice), _results(request), request.options.output
    if offered and (choice.mode == "required" or not results):
        most = 1 if choice.parallel is False else 2
        return list(_calling([(request.tools[number].name, _arguments(request, number)) for number in offered[:most]]))
    if output is not None and output.kind != "text":
        return list(_writing(_document(output)))
    return list(_reading_back(results) if results else recording("text"))


def _bounded(events: list[WireEvent], max_tokens: int | None) -> list[WireEvent]:
    """Return the events up to ``max_tokens`` tokens. Drop a tool call if none of its arguments fit."""
    tokens = [event for event in events if isinstance(event, DELTAS)]
    if max_tokens is None or len(tokens) <= max_tokens:
        return events
    begun = {event.index for event in tokens[:max_tokens] if isinstance(event, ToolCallDelta) and event.arguments}
    bounded: list[WireEvent] = []
    for event in events:
        if isinstance(event, DELTAS):
            max_tokens -= 1
            if max_tokens >= 0 and not (isinstance(event, ToolCallDelta) and event.index not in begun):
                bounded.append(event)
        else:
            bounded.append(StopReasonSeen("length", "length") if isinstance(event, StopReasonSeen) else event)
    return bounded


def _usage(request: Request, events: list[WireEvent]) -> UsageReported:
    tokens = Counter(type(event) for event in events if isinstance(event, DELTAS))
    read, output = sum(len(text.split()) for text in texts(request)), tokens.total()
    return UsageReported(
        input_total=read, output_total=output, output_reasoning=tokens[ReasoningDelta], total=read + output
    )


def texts(request: Request) -> Iterator[str]:
    """Yield all texts of the conversation: texts, reasoning, refusals, tool call arguments and tool results."""
    for turn in request.turns:
        for part in turn.parts:
            match part:
                case Text() | Reasoning() | Refusal() | ToolResult():
                    yield part.text
                case ToolCall():
                    yield part.arguments


# -- tools -------------------------------------------------------------------------------------------------------------


def _offered(request: Request, choice: ToolChoice) -> list[int]:
    """Return the positions of the tools that may be called. Raises BadRequest for an impossible choice."""
    names = {tool.name: number for number, tool in enumerate(request.tools) if tool.kind == "function"}
    unknown = [name for name in choice.names if name not in names]
    if unknown:
        raise BadRequest("tool_choice", f"must name an offered function, not {quoted(unknown[0])}")
    if choice.mode == "required" and not names:
        raise BadRequest("tool_choice", "requires a call, but no function is offered")
    if choice.mode == "none":
        return []
    return [number for name, number in names.items() if not choice.names or name in choice.names]


def _arguments(request: Request, number: int) -> str:
    try:
        return orjson.dumps(minimal_object(request.tools[number].parameters or {})).decode()
    except NoValue as error:
        raise BadRequest(f"tools[{number}].function.parameters", f"no call can be made: {error}") from error


def _calling(calls: list[tuple[str, str]]) -> Iterator[WireEvent]:
    """Yield the recording of two calls with other names and arguments, in the recorded number of fragments."""
    recorded = recording("calls")
    count = Counter(event.index for event in recorded if isinstance(event, ToolCallDelta) and event.arguments)
    names = {index: name for index, (name, _) in enumerate(calls)}
    fragments = {index: iter(_pieces(text, count[index])) for index, (_, text) in enumerate(calls)}
    for event in recorded:
        if not isinstance(event, ToolCallDelta):
            yield event
        elif event.index in names:
            if event.name:
                yield evolve(event, name=names[event.index])
            elif fragment := next(fragments[event.index]):
                yield evolve(event, arguments=fragment)


def _pieces(text: str, count: int) -> list[str]:
    """Split the text into ``count`` pieces of nearly equal length. In a short text some pieces are empty."""
    ends = [len(text) * number // count for number in range(count + 1)]
    return [text[start:end] for start, end in pairwise(ends)]


# -- text --------------------------------------------------------------------------------------------------------------


def _results(request: Request) -> list[str]:
    """Return a sentence for each tool result since the model's last turn."""
    names = {part.id: part.name for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)}
    latest = takewhile(lambda turn: turn.role != "assistant", reversed(request.turns))
    results = [part for turn in reversed([*latest]) for part in turn.parts if isinstance(part, ToolResult)]
    return [f"{names.get(result.call_id) or 'a tool'} said {_excerpt(result.text)}" for result in results]


def _excerpt(text: str) -> str:
    squeezed = " ".join(text.split())
    if not squeezed:
        return "nothing that is text"
    return f"“{shortened(squeezed, EXCERPT_CHARS)}”"


def _reading_back(results: list[str]) -> Iterator[WireEvent]:
    for event in recording("results"):
        if isinstance(event, TextDelta) and event.text.strip() == RESULTS:
            yield from (TextDelta(word) for word in WORD.findall(f" {', '.join(results)}."))
        else:
            yield event


def _writing(document: str) -> Iterator[WireEvent]:
    """Yield the recording of a text, with ``document`` in fragments as its text."""
    pieces = [document[start : start + FRAGMENT_CHARS] for start in range(0, len(document), FRAGMENT_CHARS)]
    for event in recording("text"):
        if not isinstance(event, TextDelta):
            yield event
        elif pieces:
            yield from map(TextDelta, pieces)
            pieces = []


def _document(output: OutputFormat) -> str:
    """Return the JSON text that the request's output format requires."""
    try:
        return orjson.dumps(minimal_object(output.schema) if output.kind == "schema" else {"answer": "demo"}).decode()
    except NoValue as error:
        raise BadRequest("response_format.json_schema.schema", f"no value can be made: {error}") from error
