"""What is Mistral's alone: whole calls, their ids, and signatures that close their thinking."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.events import (
    ReasoningDelta,
    ReasoningSignature,
    StreamEnded,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import nine_characters
from tests.corpora import recordings
from tests.laws.running import read, translate
from tests.vectors.mistral import DONE, HEALTHY, ROLE, finish, said, thinking
from tests.vectors.openai_chat import CALLED, STOP, call
from tests.vectors.openai_chat import ROLE as CHAT_ROLE
from tests.vectors.openai_chat import calls as chat_calls
from tests.vectors.vector import sse


def chunks_in(output: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in output.decode().split("\n") if line.startswith("data: {")]


def deltas_in(output: bytes) -> list[Any]:
    return [choice["delta"] for chunk in chunks_in(output) for choice in chunk["choices"]]


def entries_in(output: bytes) -> list[Any]:
    return [call for delta in deltas_in(output) for call in delta.get("tool_calls", ())]


def encoder(**limits: int):
    return DIALECTS["mistral"].encoder(Encoding(limits=Limits(**limits)), StreamReport())


@pytest.mark.parametrize("vector", HEALTHY, ids=lambda vector: vector.name.replace(" ", "-"))
def test_what_conforms_comes_back_with_nothing_lost(vector):
    output, report = translate("mistral", "mistral", [vector.body], passing=False)
    assert not report.losses
    assert not report.repairs
    first, again = read("mistral", [vector.body]), read("mistral", [output])
    assert (again.text(), again.reasoning, again.stops) == (first.text(), first.reasoning, first.stops)
    assert [(c.id, c.name, c.arguments.strip() or "{}") for c in again.calls] == [
        (c.id, c.name, c.arguments.strip() or "{}") for c in first.calls
    ]


def test_a_call_is_written_whole_when_it_has_ended_in_the_order_of_mention():
    pieces = [call(0, "call_a", "f", '{"x":'), call(1, "bbbbbbbb2", "g", "{}"), call(0, arguments="1}")]
    output, report = translate("openai-chat", "mistral", [sse(CHAT_ROLE, *map(chat_calls, pieces), CALLED, DONE)])
    assert [(c["index"], c["id"], c["function"]["arguments"]) for c in entries_in(output)] == [
        (0, nine_characters("call_a"), '{"x":1}'), (1, "bbbbbbbb2", "{}"),
    ]  # fmt: skip
    assert report.losses == {"call_id": 1}


def test_a_text_of_arguments_that_is_no_object_is_written_as_it_is_and_a_cut_one_is_withheld():
    pieces = [call(0, "aaaaaaaa1", "f", '{"x" 1}'), call(1, "bbbbbbbb2", "g", '{"y":')]
    output, report = translate("openai-chat", "mistral", [sse(CHAT_ROLE, *map(chat_calls, pieces), CALLED, DONE)])
    assert [c["function"]["arguments"] for c in entries_in(output)] == ['{"x" 1}']
    assert report.losses == {"call_withheld": 1}
    assert [held.arguments for held in report.withheld] == ['{"y":']


def test_usage_stands_on_the_last_chunk_and_nowhere_else():
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    stream = sse(CHAT_ROLE, STOP, {**STOP, "choices": [], "usage": usage}, DONE)
    *others, last = chunks_in(translate("openai-chat", "mistral", [stream])[0])
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"] == usage
    assert not any("usage" in chunk for chunk in others)


def test_each_choice_has_the_key_finish_reason():
    for vector in HEALTHY:
        for chunk in chunks_in(translate("mistral", "mistral", [vector.body], passing=False)[0]):
            assert all("finish_reason" in choice for choice in chunk["choices"])


def test_a_signature_in_pieces_is_written_whole_behind_its_thinking():
    machine = encoder()
    machine.feed([ReasoningDelta("hm"), ReasoningSignature("ab", "mistral"), ReasoningSignature("cd", "mistral")])
    output = machine.feed([TextDelta("Hi"), StreamEnded(clean=True)])
    assert [part for delta in deltas_in(output) for part in delta["content"] if "signature" in part] == [
        {"type": "thinking", "thinking": [], "signature": "abcd"}
    ]
    assert output.index(b"abcd") < output.index(b'"Hi"')


def test_a_signature_that_is_held_is_limited():
    machine = encoder(held_chars=100)
    machine.feed([ReasoningDelta("hm"), *[ReasoningSignature("y" * 10, "mistral")] * 10])
    assert machine.fault is None
    machine.feed([ReasoningSignature("y", "mistral")])
    assert type(machine.fault).__name__ == "HeldTooLong"
    machine = encoder(held_chars=100)
    for block in range(20):  # what was written is held no more
        machine.feed([ReasoningDelta("hm", 0, block), ReasoningSignature("y" * 100, "mistral", 0, block)])
        machine.feed([TextDelta("Hi")])
    assert machine.fault is None


@pytest.mark.parametrize(
    "events",
    [
        [ReasoningDelta("a"), ReasoningDelta("b", 0, 1), ReasoningSignature("s", "mistral", 0, 1)],
        [ReasoningDelta("a"), ReasoningSignature("s", "mistral", 0, 1)],
    ],
)
def test_a_signature_does_not_move_to_other_thinking(events):
    machine = encoder()
    output = machine.feed([*events, TextDelta("Hi"), StreamEnded(clean=True)])
    assert b"signature" not in output
    assert machine.report.losses["reasoning_signature"] == 1


def test_the_client_takes_no_error_for_a_chunk():
    """Its types ask a chunk for an id, a model and choices; an error of the provider's own must bring none.

    ``langchain-mistralai`` asks for choices alone, and passes over what has none: at null it raises.
    """
    failure = {
        "object": "error",
        "message": "busy",
        "type": "t",
        "code": "3280",
        "choices": [],
        "id": "c",
        "model": "m",
        "more": 1,
    }
    stream = sse(ROLE, {"error": failure})
    *_, last = chunks_in(translate("mistral", "mistral", [stream], passing=False)[0])
    error = {"object": "error", "message": "busy", "type": "t", "param": None, "code": "3280", "more": 1}
    assert last == {**error, "choices": None}


def test_ids_of_foreign_calls_are_the_same_in_every_stream():
    started = [ToolCallStarted(0, "call_a", "f"), ToolCallFinished(0, "call_a", "f", "{}"), StreamEnded(clean=True)]
    ids = {entries_in(encoder().feed(started))[0]["id"] for _ in range(2)}
    assert ids == {nine_characters("call_a")}
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", ids.pop())


def test_a_signature_closes_its_thinking():
    stream = sse(ROLE, said([thinking("a", signature="s")]), said([thinking("b"), thinking("c")]), finish(), DONE)
    found = read("mistral", [stream]).events
    assert [(e.text, e.block) for e in found if type(e) is ReasoningDelta] == [("a", 0), ("bc", 1)]


def test_chunks_of_chat_say_the_same_here():
    """Recordings of Chat with nothing that only Chat has: an unnamed stream of Mistral's loses nothing by ``auto``."""
    streams = recordings("openai-chat")
    for stream in streams:
        chat, here = (read(dialect, [stream.body]) for dialect in ("openai-chat", "mistral"))
        assert (here.text(), here.reasoning, here.stops, here.clean) == (
            chat.text(),
            chat.reasoning,
            chat.stops,
            chat.clean,
        )
        assert [(c.name, c.arguments) for c in here.calls] == [(c.name, c.arguments) for c in chat.calls], stream.name


@pytest.mark.parametrize(
    ("limits", "fault"), [({"tool_calls": 3}, "TooManyToolCalls"), ({"held_chars": 9}, "HeldTooLong")]
)
def test_signatures_of_calls_that_never_come_are_not_kept_without_end(limits, fault):
    signature = said([thinking(signature=seal("call", "gemini", "abc"))])
    assert read("mistral", [sse(ROLE, *3 * [signature])], Limits(**limits)).fault == ""
    assert read("mistral", [sse(ROLE, *4 * [signature])], Limits(**limits)).fault.startswith(fault)
