"""Case 259: what of a call only the last event says."""

from __future__ import annotations

from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import messages, responses_turn, written
from tests.vectors.vector import Call

A = Call("f", '{"x":1}', id="a")
OTHER = Call("f", '{"x":2}', id="call_1")
USED = Use("a", "f", A.arguments)
TO = {"anthropic": messages(USED, stop="tool_use", usage=None), "openai-chat": written(USED, stop="tool_calls")}
BOTH = (USED, Use("call_1", "f", OTHER.arguments))
DELTA = rs.event("function_call_arguments.delta", 0, "i0", delta=A.arguments)


def added(name: str = "f", **fields: object) -> dict[str, object]:
    return rs.added(0, "function_call", **{"call_id": "a", "name": name, "arguments": "", **fields})


def done(arguments: object = A.arguments, name: str = "f", **fields: object) -> dict[str, object]:
    return rs.done(0, "function_call", **{"call_id": "a", "name": name, "arguments": arguments, **fields})


WHOLE = done()
END = rs.last("completed", WHOLE)
OBJECT_END = rs.last("completed", done({"x": 1}))
BARE_END = {"type": "response.completed", **OBJECT_END["response"]}

CASES = (
    Case(
        number=259, refs="NVIDIA-NeMo/Switchyard#777; streamkit itself: calls that an item without a name had ended",
        cause="the name of a Responses call, or its arguments, first stand in `response.completed`, behind an `output_item.done` without them",
        does="The call waits for the end of the answer, which adds what is missing. Without it the call ends as it is.",
        forms=(
            responses_turn(added(""), DELTA, done(name=""), end=END, name="its name", calls=(A,), stop="tool_calls", repairs={"block_unclosed": 1}, to=TO),
            responses_turn(
                added("", call_id=""), DELTA, done(name="", call_id=""), end=END, name="its name and its id", calls=(A,), stop="tool_calls", repairs={"block_unclosed": 1}, to=TO,
            ),
            responses_turn(added(), done(""), end=END, name="its arguments", calls=(A,), stop="tool_calls", repairs={"block_unclosed": 1}, to=TO),
            responses_turn(
                added(), done(""), end=OBJECT_END, name="its arguments as an object", calls=(A,), stop="tool_calls",
                repairs={"block_unclosed": 1, "arguments_not_text": 1}, to=TO,
            ),
            responses_turn(
                added(), done(""), end=BARE_END, name="an object in a response that stands in its event", calls=(A,), stop="tool_calls",
                repairs={"block_unclosed": 1, "arguments_not_text": 1, "response_bare": 1}, to=TO,
            ),
            responses_turn(
                added(), {**DELTA, "delta": '{"x"'}, done(""), end=END, name="the rest of its arguments", calls=(A,), stop="tool_calls",
                repairs={"block_unclosed": 1, "fragments_missing": 1}, to=TO,
            ),
            responses_turn(
                added(""), DELTA, done(name=""), *rs.message(1, "Hi"), end=rs.last("completed", WHOLE, rs.message(1, "Hi")[-1]), name="behind a text", text="Hi", calls=(A,), stop="tool_calls",
                repairs={"block_unclosed": 1}, to={"anthropic": messages(Text("Hi"), USED, stop="tool_use", usage=None)},
            ),
            responses_turn(
                added(), WHOLE, end=OBJECT_END, name="an object that says nothing new", calls=(A,), stop="tool_calls", repairs={"arguments_not_text": 1}, to=TO,
            ),
            responses_turn(
                added(), done('{"x": 1}'), end=OBJECT_END, name="an object with other white space", calls=(Call("f", '{"x": 1}', id="a"),), stop="tool_calls",
                repairs={"arguments_not_text": 1}, to={"openai-chat": written(Use("a", "f", '{"x": 1}'), stop="tool_calls")},
            ),
            responses_turn(
                added(), done(""), end=rs.last("completed", done("")), name="nowhere", calls=(Call("f", "", "empty", id="a"),), stop="tool_calls",
                to={"anthropic": messages(Use("a", "f", ""), stop="tool_use", usage=None)},
            ),
        ),
    ),
)  # fmt: skip
