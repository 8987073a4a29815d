"""Cases 137 to 150: the whole answer said again, and what of a Responses stream names its end and its calls."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import chat, message, messages, responses, responses_turn, written
from tests.vectors.openai_chat import DONE, ROLE, call, calls, chunk
from tests.vectors.vector import Call

A = Call("f", '{"x":1}', id="a")
B = Call("g", '{"y":2}', id="b")
BLANK = Call("f", "", "truncated", id="a")
HI = rs.message(0, "Hel", "lo")


def done(*output: object, status: str = "completed", **fields: object) -> dict[str, object]:
    """The event that some servers end with."""
    return rs.last(status, *output, kind="response.done", **fields)


def arguments(fragment: str, **where: object) -> dict[str, object]:
    return {"type": "response.function_call_arguments.delta", "delta": fragment, **where}


def interleaved(first: dict[str, object], second: dict[str, object]) -> tuple[object, ...]:
    """Two calls whose fragments come in turns; nothing but ``first`` and ``second`` tells of which."""
    return (
        rs.added(0, "function_call", call_id="a", name="f", arguments=""), rs.added(1, "function_call", call_id="b", name="g", arguments=""),
        arguments('{"x":', **first), arguments('{"y":', **second), arguments("1}", **first), arguments("2}", **second),
        rs.done(0, "function_call", call_id="a", name="f", arguments=A.arguments), rs.done(1, "function_call", call_id="b", name="g", arguments=B.arguments),
    )  # fmt: skip


TWO = {"anthropic": messages(Use("a", "f", A.arguments), Use("b", "g", B.arguments), stop="tool_use", usage=None)}
CUT_ITEM = rs.done(0, "function_call", call_id="a", name="f", arguments="", status="incomplete")

CASES = (
    Case(
        number=147, refs="servers that end as OpenAI's Realtime does",
        cause="a Responses stream ends with `response.done`",
        does="Its response says how it ended, as that of `response.completed` would; behind the terminal event it says nothing new.",
        forms=(
            responses(rs.START, *HI, done(HI[-1]), name="completed", text="Hello", repairs={"terminal_renamed": 1}, to={"openai-chat": written(Text("Hello"))}),
            responses(
                rs.START, *HI, done(HI[-1], status="incomplete", status_details={"type": "incomplete", "reason": "content_filter"}), name="filtered",
                text="Hello", stop="content_filter", repairs={"terminal_renamed": 1}, to={"openai-chat": written(Text("Hello"), stop="content_filter")},
            ),
            responses(rs.START, *HI, rs.last("completed", HI[-1]), done(HI[-1]), name="behind the end", text="Hello", repairs={"after_end": 1}, to={"openai-chat": written(Text("Hello"))}),
        ),
    ),
    Case(
        number=148, refs="servers that number no items",
        cause="interleaved fragments of arguments that only `call_id`, or `item_id` with a call's id, addresses",
        does="Each finds its call.",
        forms=(
            responses_turn(*interleaved({"call_id": "a"}, {"call_id": "b"}), name="call_id", calls=(A, B), stop="tool_calls", repairs={"index_missing": 4}, to=TWO),
            responses_turn(*interleaved({"item_id": "i0"}, {"item_id": "i1"}), name="item_id", calls=(A, B), stop="tool_calls", repairs={"index_missing": 4}, to=TWO),
            responses_turn(*interleaved({"item_id": "a"}, {"item_id": "b"}), name="the call's id", calls=(A, B), stop="tool_calls", repairs={"index_missing": 4}, to=TWO),
            responses_turn(
                *interleaved({"output_index": 0, "call_id": "a"}, {"output_index": 0, "call_id": "b"}), name="one index", calls=(A, B), stop="tool_calls",
                repairs={"index_reused": 2}, to=TWO,
            ),
        ),
    ),
    Case(
        number=149, refs="Codex, behind a gateway",
        cause="the model is stopped before the first character of a call's arguments",
        does="The call is `incomplete` in Responses and is withheld elsewhere: of no arguments at all, clients make `{}` and run it.",
        forms=(
            chat(
                ROLE, calls(call(0, "a", "f", "")), chunk(finish="length"), DONE, name="length", calls=(BLANK,), stop="length",
                to={
                    "openai-responses": written(
                        Use("a", "f", ""), stop="max_output_tokens", lacks=(b'"status":"completed"', b"function_call_arguments.done"),
                        holds=(b'"status":"incomplete","call_id":"a"',),
                    ),
                    "anthropic": messages(stop="max_tokens", losses={"call_withheld": 1}, withheld=("",)),
                },
            ),
            chat(
                ROLE, calls(call(0, "a", "f", "")), chunk(finish="content_filter"), DONE, name="filter", calls=(BLANK,), stop="content_filter",
                to={
                    "openai-responses": written(Use("a", "f", ""), stop="content_filter", lacks=(b'"status":"completed"',)),
                    "openai-chat": written(stop="content_filter", losses={"call_withheld": 1}, withheld=("",)),
                    "cohere": written(stop="COMPLETE", losses={"call_withheld": 1, "stop_reason": 1}, withheld=("",)),
                },
            ),
            message(
                am.begin(0, "tool_use", id="a", name="f", input={}), reason="max_tokens", name="no stop of its block",
                calls=(BLANK,), stop="length", repairs={"block_unclosed": 1},
                to={"openai-responses": written(Use("a", "f", ""), stop="max_output_tokens", losses={"usage_unknown": 1}, lacks=(b'"status":"completed"',))},
            ),
            responses(
                rs.START, rs.added(0, "function_call", call_id="a", name="f", arguments=""), CUT_ITEM, rs.last("completed", CUT_ITEM), name="an item marked incomplete",
                calls=(BLANK,), stop="tool_calls",
                to={"openai-responses": written(Use("a", "f", ""), stop="completed", holds=(b'"status":"incomplete","call_id":"a"',), lacks=(b"function_call_arguments.done",))},
            ),
        ),
    ),
    Case(
        number=150, refs="servers that give no `incomplete_details`",
        cause="`response.incomplete` without a reason, or with an unknown one",
        does="It is `length` at least, and never a natural end. Written again it has the reason that came, or none.",
        forms=(
            responses(
                rs.START, *HI, rs.last("incomplete", HI[-1]), name="none", text="Hello", stop="length",
                to={
                    "openai-chat": written(Text("Hello"), stop="length"),
                    "openai-responses": written(Text("Hello"), stop="incomplete", holds=(b'"status":"incomplete","error":null,"incomplete_details":null',)),
                },
            ),
            responses(
                rs.START, *HI, rs.cut_off("out_of_luck", HI[-1]), name="unknown", text="Hello", stop="length",
                to={
                    "anthropic": messages(Text("Hello"), stop="max_tokens", usage=None),
                    "openai-responses": written(Text("Hello"), stop="out_of_luck", holds=(b'"incomplete_details":{"reason":"out_of_luck"}',)),
                },
            ),
        ),
    ),
)  # fmt: skip
