"""Cases 259 and 260: what of a call only the last event says, and calls that are said again."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import bedrock, calling, cohere, message, messages, responses_turn, written
from tests.vectors.openai_chat import call, calls
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
        number=259, refs="NVIDIA-NeMo/Switchyard#777; streamkit itself, which ended a call when its item had no name",
        cause="the name or the arguments of a Responses call are missing in `output_item.done`, and first appear in `response.completed`",
        does="streamkit keeps the call open until the end of the response, which supplies the missing parts. If the parts are missing there too, the call ends without them.",
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
    Case(
        number=260, refs="HKUDS/nanobot#4442; Kilo-Org/kilocode#4596; hermes#12930",
        cause="a finished call is sent again as a separate block or item, with the same id, name and arguments",
        does="streamkit reads this block or item as the same call. If the id, the name or the arguments differ, the block or item is another call. If the id is only the name of the function, the block or item is also another call.",
        forms=(
            message(*am.tool(0, "a", "f", A.arguments), *am.tool(1, "a", "f", '{"x"', ":1}"), reason="tool_use", name="another block", calls=(A,), stop="tool_calls", repairs={"arguments_repeated": 1}, to={"openai-chat": written(USED, stop="tool_calls")}),
            message(
                *am.tool(0, "a", "f", A.arguments), am.begin(0, "tool_use", id="a", name="f", input={"x": 1}), am.stop(0), reason="tool_use", name="at the same index, whole", calls=(A,), stop="tool_calls",
                repairs={"index_reused": 1, "arguments_repeated": 1}, to={"openai-chat": written(USED, stop="tool_calls")},
            ),
            message(
                *am.tool(0, "a", "f"), *am.tool(1, "a", "f"), reason="tool_use", name="without arguments", calls=(Call("f", "", "empty", id="a"),), stop="tool_calls", repairs={"arguments_repeated": 1},
                to={"openai-chat": written(Use("a", "f", "{}"), stop="tool_calls")},
            ),
            message(
                *am.tool(0, "a", "f", A.arguments), *am.tool(1, "a", "f", '{"x"', ":2}"), reason="tool_use", name="other arguments", calls=(A, OTHER), stop="tool_calls", repairs={"id_duplicate": 1},
                to={"openai-chat": written(*BOTH, stop="tool_calls")},
            ),
            message(
                *am.tool(0, "a", "f", A.arguments), *am.tool(1, "a", "f", '{"x"'), reason="tool_use", name="less of its arguments", calls=(A, Call("f", '{"x"', "truncated", "call_1")), stop="length",
                repairs={"id_duplicate": 1, "stop_conflict": 1}, to={"openai-chat": written(USED, Use("call_1", "f", '{"x"'), stop="length")},
            ),
            message(
                *am.tool(0, "f", "f", A.arguments), *am.tool(1, "f", "f", A.arguments), reason="tool_use", name="the function's name for an id", calls=(Call("f", A.arguments, id="f"), Call("f", A.arguments, id="call_1")), stop="tool_calls",
                repairs={"id_duplicate": 1}, to={"openai-chat": written(Use("f", "f", A.arguments), Use("call_1", "f", A.arguments), stop="tool_calls")},
            ),
            responses_turn(
                WHOLE, added(), DELTA, WHOLE, end=END, name="an item that is done before it begins", calls=(A,), stop="tool_calls",
                repairs={"block_unopened": 1, "index_reused": 1, "arguments_repeated": 1}, to=TO,
            ),
            responses_turn(
                WHOLE, added(), end=rs.last("completed"), name="an item that begins once more", calls=(A,), stop="tool_calls",
                repairs={"block_unopened": 1, "index_reused": 1, "block_unclosed": 1, "arguments_repeated": 1}, to=TO,
            ),
            bedrock(
                ("messageStart", {"role": "assistant"}), *br.tool(0, "a", "f", A.arguments), *br.tool(1, "a", "f", A.arguments), br.finish("tool_use"), br.counts(), name="Bedrock", calls=(A,), stop="tool_calls",
                repairs={"arguments_repeated": 1}, to={"openai-chat": written(USED, stop="tool_calls", losses={"metadata": 1})},
            ),
            cohere(
                *co.tool(0, "a", "f", A.arguments), *co.tool(1, "a", "f", A.arguments), reason="TOOL_CALL", name="Cohere", calls=(A,), stop="tool_calls",
                repairs={"arguments_repeated": 1}, to={"openai-chat": written(USED, stop="tool_calls")},
            ),
            calling(calls(call(0, "a", "f", A.arguments)), calls(call(1, "a", "f", '{"x"')), calls(call(1, "a", None, ":1}")), name="Chat", calls=(A,), repairs={"id_repeated": 1, "arguments_repeated": 1}),
        ),
        beside="tests/responses/test_anthropic.py::test_a_call_that_is_said_again_is_one",
    ),
)  # fmt: skip
