"""What a stream says, read without streamkit's machines, and compared with what it should say.

The readers of Chat and of Anthropic Messages here are written from the dialects' documents with ``json`` alone. The other
dialects are read by ``collect``, so that for them only the round trip is proved; the official clients judge them in the tests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import evolve, frozen

from benchmarks.content import Content
from benchmarks.inputs import CHAT, Input
from streamkit.conversation.messages import Reasoning, Text, ToolCall
from streamkit.recipes import collect
from streamkit.testing import source_of

STOPS = {"end_turn": "stop", "tool_use": "tool_calls"}


class Wrong(AssertionError):
    """What came out is not what went in: nothing of that input may be timed."""


@frozen
class Said:
    """What one response said. ``calls`` are names and argument texts, in the order in which they were first mentioned."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    stop: str | None = None


def meant(said: Content) -> Said:
    order = list(dict.fromkeys(said.order))
    made = tuple((said.calls[number].name, said.calls[number].arguments) for number in order)
    return Said("".join(said.text), "".join(said.reasoning), made, "tool_calls" if made else "stop")


def sse_payloads(body: bytes) -> Iterator[Any]:
    """The JSON documents of an event stream with one ``data`` line an event."""
    for line in body.replace(b"\r\n", b"\n").split(b"\n"):
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield json.loads(line[6:])


def read_chat(documents: Iterator[Any]) -> Said:
    text, reasoning, stop = [], [], None
    found: dict[int, tuple[str, list[str]]] = {}
    for document in documents:
        for choice in document["choices"]:
            delta = choice["delta"]
            text.append(delta.get("content") or "")
            reasoning.append(delta.get("reasoning_content") or "")
            for call in delta.get("tool_calls") or ():
                place = found.setdefault(call["index"], (call["function"].get("name", ""), []))
                place[1].append(call["function"].get("arguments", ""))
            stop = choice["finish_reason"] or stop
    return Said("".join(text), "".join(reasoning), _joined(list(found.values())), stop)


def read_anthropic(documents: Iterator[Any], *, overlapping: bool = False) -> Said:
    """``overlapping``: blocks may be open side by side, told apart by their index, as lenient readers tell them."""
    text, reasoning, stop, ended = [], [], None, False
    found: list[tuple[str, list[str]]] = []
    open_blocks: dict[int, list[str]] = {}
    for document in documents:
        kind = document["type"]
        if kind == "content_block_start":
            if open_blocks and not overlapping:
                raise Wrong("a block was opened while another block was open")
            pieces: list[str] = []
            open_blocks[document["index"]] = pieces
            if document["content_block"]["type"] == "tool_use":
                found.append((document["content_block"]["name"], pieces))
        elif kind == "content_block_stop":
            open_blocks.pop(document["index"], None)
        elif kind == "content_block_delta":
            if document["index"] not in open_blocks:
                raise Wrong("a delta came for a block that is not open")
            delta = document["delta"]
            text.append(delta.get("text") or "")
            reasoning.append(delta.get("thinking") or "")
            open_blocks[document["index"]].append(delta.get("partial_json") or "")
        elif kind == "message_delta":
            stop = document["delta"].get("stop_reason") or stop
        ended = ended or kind == "message_stop"
    return Said("".join(text), "".join(reasoning), _joined(found), STOPS.get(str(stop), stop) if ended else None)


def _joined(found: Sequence[tuple[str, list[str]]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, "".join(pieces)) for name, pieces in found)


def read(dialect: str, body: bytes) -> Said:
    """What a stream of ``dialect`` says."""
    if dialect in (CHAT, "anthropic"):
        return (read_chat if dialect == CHAT else read_anthropic)(sse_payloads(body))
    response = asyncio.run(collect(source_of([body]), dialect))
    if not response.clean:
        raise Wrong(f"{dialect}: the stream does not end as one that is whole")
    choice = response.choices[0]
    parts = choice.parts
    return Said(
        "".join(part.text for part in parts if isinstance(part, Text)),
        "".join(part.text for part in parts if isinstance(part, Reasoning)),
        tuple((part.name, part.arguments) for part in parts if isinstance(part, ToolCall)),
        choice.stop_reason,
    )


def compare(what: str, found: Said, expected: Said) -> None:
    """Raises Wrong, which names the first thing that differs. Arguments are compared as JSON where their text differs."""
    for name in ("text", "reasoning", "stop"):
        if getattr(found, name) != getattr(expected, name):
            raise Wrong(
                f"{what}: {name} differs: {_short(getattr(found, name))} instead of {_short(getattr(expected, name))}"
            )
    if [name for name, _ in found.calls] != [name for name, _ in expected.calls]:
        raise Wrong(f"{what}: the calls are {[name for name, _ in found.calls]}")
    for (name, arguments), (_, wanted) in zip(found.calls, expected.calls, strict=True):
        if arguments != wanted and not _same_json(arguments, wanted):
            raise Wrong(f"{what}: the arguments of {name} differ: {_short(arguments)} instead of {_short(wanted)}")


def _same_json(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:40]} … {text[-30:]} ({len(text)} characters)"


def verify(stream: Input) -> None:
    """Prove an input: independent readers find in its bytes what its content says. Raises Wrong."""
    compare(stream.name, read(stream.dialect, stream.body), meant(stream.said))
    for payload in stream.payloads:
        json.loads(payload)


def verify_output(stream: Input, dialect: str, output: bytes) -> None:
    """The same of what came out of a recipe that read ``stream``. Raises Wrong."""
    compare(f"{stream.name} to {dialect}", read(dialect, output), meant(stream.said))


def compare_carried(what: str, found: Said, stream: Input) -> None:
    """Compare with what ``stream`` says, but for reasoning where the dialect of ``found`` carried none. Raises Wrong."""
    expected = meant(stream.said)
    compare(what, found, expected if found.reasoning else without_reasoning(expected))


def without_reasoning(said: Said) -> Said:
    """For a dialect that can't carry any."""
    return evolve(said, reasoning="")
