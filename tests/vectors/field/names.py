"""Cases 36 to 40: the name of a tool comes repeated, in pieces or late."""

from __future__ import annotations

from typing import Any

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import bedrock, calling, cohere, failed, message, responses_turn, uses, written
from tests.vectors.openai_chat import call, calls
from tests.vectors.vector import Call

NAMELESS = "the model called a tool without a name"
#: What a call of which only the id arrived comes to.
NEITHER: dict[str, Any] = {
    "text": "Hi", "calls": (Call("", "", "empty", id="a"),), "stop": None, "repairs": {"call_nameless": 1}, "provider_error": NAMELESS,
    "to": {"ai-sdk": failed(Text("Hi"), error=NAMELESS, losses={"call_withheld": 1}, withheld=("",))},
}  # fmt: skip
A = Call("read_file", '{"x":1}', id="a")

CASES = (
    Case(
        number=36, refs="NousResearch/hermes-agent#8259, #12230",
        cause="every fragment of a call has the name",
        does="streamkit ignores a name that equals the known name.",
        forms=(
            calling(
                calls(call(0, "a", "read_file", "")), calls(call(0, None, "read_file", '{"x"')), calls(call(0, None, "read_file", ":1}")),
                calls=(A,), repairs={"name_repeated": 2},
            ),
        ),
    ),
    Case(
        number=37, refs="open-webui#22235",
        cause="the name and the complete arguments are sent again at the same index",
        does="streamkit does not double the name. A second object with the name is another call. If a second object has no id and no name, streamkit compares this object with the arguments so far. Equal arguments are dropped. Different arguments are added to the text of the call, which then has the verdict `malformed`.",
        forms=(
            calling(calls(call(0, "a", "read_file", "")), calls(call(0, None, "read_file", '{"x":1}')), name="the name", calls=(A,), repairs={"name_repeated": 1}),
            calling(
                calls(call(0, "a", "read_file", '{"x":1}')), calls(call(0, None, "read_file", '{"x":2}')), name="name and other arguments",
                calls=(A, Call("read_file", '{"x":2}', id="call_1")), repairs={"index_reused": 1, "id_missing": 1},
            ),
            calling(
                calls(call(0, "a", "read_file", '{"x":1}')), calls(call(0, arguments='{"x":1}')), name="the same arguments",
                calls=(A,), repairs={"arguments_repeated": 1},
            ),
            calling(
                calls(call(0, "a", "read_file", '{"x":1}')), calls(call(0, arguments='{"x":2}')), name="other arguments alone",
                calls=(Call("read_file", '{"x":1}{"x":2}', "malformed", id="a"),),
                to={"ollama": written(Use(None, "read_file", '{"_raw_arguments":"{\\"x\\":1}{\\"x\\":2}"}'), losses={"arguments_wrapped": 1, "call_id": 1})},
            ),
        ),
    ),
    Case(
        number=38, refs="continuedev/continue#5849",
        cause="one server sends the name in pieces, and another server repeats the whole name",
        does="streamkit joins the pieces of a name until the first arguments arrive. streamkit ignores a repeated name.",
        forms=(
            calling(
                calls(call(0, "a", "read")), calls(call(0, None, "_file")), calls(call(0, arguments='{"x":1}')), name="pieces",
                calls=(A,), repairs={"name_pieces": 1},
            ),
            calling(calls(call(0, "a", "read_file")), calls(call(0, None, "read_file")), calls(call(0, arguments='{"x":1}')), name="whole", calls=(A,), repairs={"name_repeated": 1}),
        ),
    ),
    Case(
        number=39, refs="bytedance/deer-flow#654, #523",
        cause="nothing is wrong in the stream: two calls of the same tool follow each other",
        does="streamkit groups the fragments by index, so the names and the arguments of the two calls are not joined.",
        forms=(
            calling(calls(call(0, "a", "read_file", '{"x":1}')), calls(call(1, "b", "read_file", '{"x":2}')), name="by index", calls=(A, Call("read_file", '{"x":2}', id="b"))),
            message(
                *am.tool(0, "a", "read_file", '{"x":1}'), *am.tool(1, "b", "read_file", '{"x":2}'), reason="tool_use", name="by block",
                calls=(A, Call("read_file", '{"x":2}', id="b")), stop="tool_calls",
                to={"openai-chat": written(*uses((A, Call("read_file", '{"x":2}', id="b"))), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=40, refs="cc-switch#5093; vercel/ai#14760",
        cause="the arguments of a call arrive before its name",
        does="streamkit holds the arguments until the name arrives. If the name never arrives, streamkit withholds and reports the call, and the response ends with an error. In a dialect that reports the ends of calls, this also holds for a call without arguments, unless the response also has a call with a name.",
        forms=(
            calling(calls(call(0, "a", None, '{"x"')), calls(call(0, arguments=":1}")), calls(call(0, None, "read_file")), name="late", calls=(A,)),
            calling(
                calls(call(0, "a", None, '{"x"')), calls(call(1, "b", "g", "{}")), calls(call(0, None, "read_file", ":1}")), name="late, behind another call",
                calls=(A, Call("g", "{}", id="b")),
            ),
            calling(
                calls(call(0, "a", None, '{"x":1}')), name="never",
                calls=(Call("", '{"x":1}', "truncated", id="a"),), stop=None, repairs={"call_nameless": 1}, provider_error=NAMELESS,
                to={
                    "anthropic": failed(error=NAMELESS, losses={"call_withheld": 1, "error_detail": 1}, withheld=('{"x":1}',)),
                    "openai-chat": failed(error=NAMELESS, losses={"call_withheld": 1}, withheld=('{"x":1}',)),
                    "gemini": failed(error=NAMELESS, losses={"call_withheld": 1}, withheld=('{"x":1}',)),
                },
            ),
            message(*am.block(0, "Hi"), am.begin(1, "tool_use", id="a", input={}), am.stop(1), reason="tool_use", name="never, nor arguments", **NEITHER),
            bedrock(br.START, *br.block(0, "Hi"), br.begin(1, toolUse={"toolUseId": "a"}), br.stop(1), br.finish("tool_use"), name="never, nor arguments, of Bedrock", **NEITHER),
            cohere(*co.block(0, "Hi"), co.call(0, "a", None), co.over(0), reason="TOOL_CALL", name="never, nor arguments, of Cohere", **NEITHER),
            responses_turn(*rs.message(0, "Hi"), *rs.call(1, "a", ""), name="never, nor arguments, of Responses", **NEITHER),
            message(
                *am.tool(0, "a", "read_file", A.arguments), am.begin(1, "tool_use", id="b", input={}), am.stop(1), reason="tool_use", name="nor arguments, next to a call",
                calls=(A, Call("", "", "empty", id="b")), stop="tool_calls", repairs={"call_nameless": 1}, to={"openai-chat": written(Use("a", "read_file", A.arguments), stop="tool_calls", losses={"call_withheld": 1}, withheld=("",))},
            ),
        ),
    ),
)  # fmt: skip
