"""What is Cohere's alone: the rows of indices, the tool plan, and what stands between the events of two calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.report import StreamReport
from tests.laws.running import OURS, read, translate
from tests.vectors.cohere import HEALTHY, START, begin, block, call, delta, end, event, finish, over, piece, tool
from tests.vectors.openai_chat import call as chat_call
from tests.vectors.openai_chat import calls, said
from tests.vectors.vector import named, sse


def events_in(output: bytes) -> list[tuple[str, Any]]:
    """The type and the index of each event."""
    payloads = [json.loads(line[6:]) for line in output.decode().split("\n") if line.startswith("data: ")]
    return [(payload["type"], payload.get("index")) for payload in payloads]


def through(body: bytes, source: str = "cohere", **limits: int) -> tuple[bytes, StreamReport]:
    return translate(source, "cohere", [body], Limits(**limits), passing=False)


@pytest.mark.parametrize("vector", HEALTHY, ids=lambda vector: vector.name.replace(" ", "-"))
def test_what_conforms_comes_back_with_nothing_lost_but_what_the_vector_names(vector):
    output, report = through(vector.body)
    assert report.losses == vector.losses.get("cohere", {})
    if not report.losses:
        assert read("cohere", [output]).events == read("cohere", [vector.body]).events


def test_calls_and_blocks_have_each_their_own_row_of_indices():
    output, _ = through(
        named(START, *block(0, "hm", "thinking"), *block(1, "Hi"), *tool(0, "a", "f", "{}"), finish("TOOL_CALL"))
    )
    assert [index for kind, index in events_in(output) if kind.endswith("-start")] == [None, 0, 1, 0]


def test_calls_that_interleave_are_written_one_after_another():
    body = named(
        START, call(0, "a", "f"), call(1, "b", "g"), piece(0, '{"x":'), piece(1, "{}"), piece(0, "1}"),
        over(1), over(0), finish("TOOL_CALL"),
    )  # fmt: skip
    output, report = through(body)
    assert not report.losses
    assert [one for one in events_in(output) if one[0].startswith("tool-call")] == [
        ("tool-call-start", 0), ("tool-call-delta", 0), ("tool-call-delta", 0), ("tool-call-end", 0),
        ("tool-call-start", 1), ("tool-call-delta", 1), ("tool-call-end", 1),
    ]  # fmt: skip


def test_what_waits_behind_an_open_call_is_limited():
    head = sse(said("Hi"), calls(chat_call(0, "a", "f", '{"x":')), calls(chat_call(1, "b", "g", '{"y":"' + "y" * 300)))
    _, report = through(head, "openai-chat", held_chars=400)
    assert report.error is None
    _, report = through(head, "openai-chat", held_chars=200)
    assert type(report.error).__name__ == "HeldTooLong"


def test_the_plan_of_another_vendor_is_thinking():
    """A summary is a plan only in Cohere's own streams: elsewhere it has nothing to do with tools."""
    stream = next(one for one in OURS if one.dialect == "anthropic" and one.name == "thinking")
    output, _ = translate("anthropic", "cohere", [stream.body])
    assert b"tool-plan-delta" not in output
    assert read("cohere", [output]).reasoning == read("anthropic", [stream.body]).reasoning


def test_an_error_frame_stands_alone_or_behind_what_is_open():
    assert events_in(through(b"")[0]) == [("message-end", None)]
    output, _ = through(named(START, call(0, "a", "f", '{"x":')))
    assert events_in(output)[-2:] == [("tool-call-delta", 0), ("message-end", None)]


def test_counts_that_are_no_numbers_are_set_aside():
    usage = {"tokens": {"input_tokens": "9", "output_tokens": 4.0}, "cached_tokens": [], "billed_units": None}
    body = named(START, *block(0, "Hi"), finish(usage=usage))
    output, report = through(body)
    assert report.repairs == {"field_invalid": 1}
    assert json.loads(output.rstrip().rpartition(b"data: ")[2])["delta"]["usage"] == {
        "tokens": {"output_tokens": 4.0}, "billed_units": None,
    }  # fmt: skip


def test_an_unknown_event_is_copied_only_under_a_name_that_can_stand_in_a_line():
    body = named(START, {"type": "novelty"}, *block(0, "Hi"), finish())
    assert b"event: novelty\n" in through(body)[0]
    strange = (
        named(START, *block(0, "Hi"), finish())
        .replace(b"event: content-end", b"event: x")
        .replace(b'"content-end"', b'"a\\nb"')
    )
    output, report = through(strange)
    assert b"a\\nb" not in output
    assert report.losses == {"unknown_event": 1}


def test_a_list_of_several_calls_is_not_taken_for_one():
    body = named(START, event("tool-call-start", 0, tool_calls=[{"id": "a"}, {"id": "b"}]), delta(0, "Hi"), finish())
    assert read("cohere", [body]).report.repairs["field_invalid"] == 1


def test_what_stands_beside_a_start_that_is_said_again_is_kept():
    again = event("content-delta", 0, content={"text": "Hel", "thinking": "Hm.", "mood": "gay"})
    outcome = read("cohere", [named(START, begin(0, text="Hello"), again, delta(0, "lo"), end(0), finish())])
    assert (outcome.text(), outcome.reasoning) == ("Hello", "Hm.")
    assert [aside.raw for aside in outcome.events if isinstance(aside, Aside)] == ["gay"]
