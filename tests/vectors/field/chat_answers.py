"""Cases 262 to 266: answers of Chat, Mistral and Ollama of which a part was lost, said twice or mixed with another."""

from __future__ import annotations

from typing import Any

from tests.vectors import mistral as mi
from tests.vectors import ollama as ol
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import chat, form, messages, mistral, ollama, written
from tests.vectors.openai_chat import CALLED, DONE, HEAD, ROLE, calls, chunk
from tests.vectors.vector import Call, sse

PARTS = tuple(f"part {number} of it. " for number in range(12))
ALL = "".join(PARTS)
A = Call("f", '{"x":1}', id="call_1")
B = Call("g", '{"y":2}', id="b")
EXTRA = {"anthropic": messages(Text("A"), losses={"extra_choice": 1})}


def of_message(text: str, finish: str | None = None, head: dict[str, Any] = HEAD) -> dict[str, Any]:
    """A chunk with a ``message`` in the place of a delta."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {**head, "choices": [choice]}


def two(first: dict[str, Any], second: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk with two choices, neither with an index."""
    return {**HEAD, "choices": [{"delta": delta, "finish_reason": finish} for delta in (first, second)]}


CASES = (
    Case(
        number=262, refs="streamkit itself, which read similar frames together",
        cause="the stream has text fragments in `message`. Then comes a `message` with the whole text, which looks like one of the fragments",
        does="streamkit compares each such `message` with the text so far, even if its frame looks like an earlier one. streamkit emits the text once, wherever the network splits it.",
        forms=(
            chat(*map(of_message, PARTS), of_message(ALL), of_message(ALL, "stop"), DONE, text=ALL, to={"openai-chat": written(Text(ALL)), "anthropic": messages(Text(ALL))}),
            form(
                "mistral", sse(*(of_message(part, head=mi.HEAD) for part in (*PARTS, ALL)), of_message(ALL, "stop", mi.HEAD), mi.DONE), "Mistral",
                {"openai-chat": written(Text(ALL))}, {"text": ALL},
            ),
        ),
    ),
    Case(
        number=263, refs="streamkit itself, which joined the choices into one",
        cause="one chunk or body has several choices without an index, or all choices of a body have the same index",
        does="streamkit reads each choice separately, and numbers the choices by their position. Several deltas with the same index in one chunk belong to one choice.",
        forms=(
            chat(two({"content": "A"}, {"content": "B"}), two({}, {}, "stop"), DONE, name="two without an index", text="A", repairs={"choice_index_missing": 4}, to=EXTRA),
            chat(
                {**HEAD, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None} for text in "AB"]}, chunk(finish="stop"), DONE, name="two deltas of one", text="AB",
                to={"anthropic": messages(Text("AB"))},
            ),
        ),
        beside="tests/responses/test_openai_chat.py::test_each_choice_of_a_body_is_an_answer_of_its_own",
    ),
    Case(
        number=264, refs="streamkit itself, with llama-cpp-python's two members and a call in each",
        cause="`function_call` starts one call, and `tool_calls` starts another. The fragments in `tool_calls` have no name",
        does="streamkit adds a fragment to the latest call in the fragment's own member, so both calls are complete.",
        forms=(
            chat(
                ROLE, chunk({"function_call": {"name": "f", "arguments": '{"x":1}'}}), calls({"index": 0, "id": "b", "function": {"name": "g", "arguments": '{"y"'}}),
                calls({"index": 0, "function": {"arguments": ":2}"}}), CALLED, DONE, calls=(A, B), stop="tool_calls", repairs={"index_reused": 1},
                to={"anthropic": messages(Use("call_1", "f", A.arguments), Use("b", "g", B.arguments), stop="tool_use")},
            ),
            mistral(
                mi.chunk({"function_call": {"name": "f", "arguments": '{"x":1}'}}), mi.calls({"index": 0, "id": "b", "function": {"name": "g", "arguments": '{"y"'}}),
                mi.calls({"index": 0, "function": {"arguments": ":2}"}}), name="Mistral", calls=(A, B), stop="tool_calls", repairs={"index_reused": 1},
                to={"openai-chat": written(Use("call_1", "f", A.arguments), Use("b", "g", B.arguments), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=265, refs="servers that speak Ollama's dialect and repeat the whole response in the last line",
        cause="the last line of an Ollama stream repeats the calls of earlier lines",
        does="If the last line begins with all earlier calls unchanged, streamkit reads only the calls after them. A call with a different index, id or argument is another call.",
        forms=(
            ollama(
                ol.line(tool_calls=[ol.call("f", {"x": 1})]), ol.end(message={"role": "assistant", "content": "", "tool_calls": [ol.call("f", {"x": 1})]}), name="the same",
                calls=(A,), stop="tool_calls", repairs={"arguments_repeated": 1}, to={"openai-chat": written(Use("call_1", "f", A.arguments), stop="tool_calls")},
            ),
            ollama(
                ol.line(tool_calls=[ol.call("f", {"x": 1})]), ol.end(message={"role": "assistant", "content": "", "tool_calls": [ol.call("f", {"x": 1}), ol.call("g", {"y": 2})]}), name="and one more",
                calls=(A, Call("g", '{"y":2}', id="call_2")), stop="tool_calls", repairs={"arguments_repeated": 1},
                to={"openai-chat": written(Use("call_1", "f", A.arguments), Use("call_2", "g", '{"y":2}'), stop="tool_calls")},
            ),
            ollama(
                ol.line(tool_calls=[{"function": {"index": 0, "name": "f", "arguments": {"x": 1}}}]),
                ol.end(message={"role": "assistant", "content": "", "tool_calls": [{"function": {"index": 1, "name": "f", "arguments": {"x": 1}}}]}), name="called twice",
                calls=(A, Call("f", A.arguments, id="call_2")), stop="tool_calls", to={"openai-chat": written(Use("call_1", "f", A.arguments), Use("call_2", "f", A.arguments), stop="tool_calls")},
            ),
        ),
    ),
)  # fmt: skip
