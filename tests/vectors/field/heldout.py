"""Cases 277 to 281: what reports of 2025 and 2026 broke that no earlier case had."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Use
from tests.vectors.field.shapes import bedrock, calling, message, messages, responses, written
from tests.vectors.openai_chat import call, calls
from tests.vectors.vector import Call

A = Call("f", '{"x":1,"y":2}', id="a")
NAMED = calls(call(0, "a", "f", ""))
#: One call, in the dialect of most clients.
CALLED = {"anthropic": messages(Use("a", "f", A.arguments), stop="tool_use")}
NESTED = Call("f", '{"not":{"not":1}}', id="a")
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": ""}
ITEM_DONE = {**ITEM, "arguments": A.arguments}


def grown(*texts: str) -> tuple[dict[str, object], ...]:
    return (NAMED, *[calls(call(0, arguments=text)) for text in texts])


def arguments(kind: str, **fields: str) -> dict[str, object]:
    return {"type": f"response.function_call_arguments.{kind}", "item_id": "fc_1", "output_index": 0, **fields}


CASES = (
    Case(
        number=277,
        refs="NousResearch/hermes-agent#35718; langchain-ai/langgraphjs#2697; vercel/ai#12052, #15888; anomalyco/opencode#12425, #17339; vllm-project/vllm#42167; sgl-project/sglang#23071; saberjack/SHTUCodeProxy#1",
        cause="each fragment says all argument text so far, or the last one says it from the start before the call is complete",
        does='A fragment that begins with all text so far, where appended it could be no JSON, adds only what is new; where both are possible (`{"not":` and then `{"not":{`) the next one decides, or which of the two texts is an object.',
        forms=(
            calling(*grown("{", '{"x', '{"x":1,"y"', A.arguments), name="from the first", calls=(A,), repairs={"arguments_cumulative": 3}, to=CALLED),
            calling(*grown('{"x":', '{"x":1,"y', A.arguments), name="cut behind a colon", calls=(A,), repairs={"arguments_cumulative": 2}, to=CALLED),
            calling(*grown('{"x":', A.arguments), name="cut behind a colon, and no more", calls=(A,), repairs={"arguments_cumulative": 1}, to=CALLED),
            calling(*grown('{"x":1', ',"y"', A.arguments, A.arguments), name="at the end", calls=(A,), repairs={"arguments_cumulative": 1, "arguments_repeated": 1}, to=CALLED),
            calling(*grown('{"x":1, "y":', " 2", '{"x": 1, "y": 2}'), name="in other white space", calls=(Call("f", '{"x":1, "y": 2}', id="a"),), repairs={"arguments_cumulative": 1}, to={"anthropic": messages(Use("a", "f", '{"x":1, "y": 2}'), stop="tool_use")}),
            calling(*grown('{"not":', '{"not":1', "}}"), name="nested, by the book", calls=(NESTED,), to={"anthropic": messages(Use("a", "f", NESTED.arguments), stop="tool_use")}),
            calling(*grown('{"not":', '{"not":1}}'), name="nested, to the end", calls=(NESTED,), to={"anthropic": messages(Use("a", "f", NESTED.arguments), stop="tool_use")}),
            message(
                *am.tool(0, "a", "f", '{"x":1', A.arguments), reason="tool_use", name="Anthropic", calls=(A,), repairs={"arguments_cumulative": 1}, stop="tool_calls",
                to={"openai-chat": written(Use("a", "f", A.arguments), stop="tool_calls")},
            ),
            bedrock(
                br.START, *br.tool(0, "a", "f", '{"x', A.arguments), br.finish("tool_use"), name="Bedrock", calls=(A,), repairs={"arguments_cumulative": 1}, stop="tool_calls",
                to={"openai-chat": written(Use("a", "f", A.arguments), stop="tool_calls")},
            ),
            responses(
                rs.START, {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
                arguments("delta", delta='{"x":'), arguments("delta", delta=A.arguments), arguments("done", arguments=A.arguments),
                {"type": "response.output_item.done", "output_index": 0, "item": ITEM_DONE}, rs.last("completed", {"item": ITEM_DONE}),
                name="Responses", calls=(A,), repairs={"arguments_cumulative": 1}, stop="tool_calls", to={"openai-chat": written(Use("a", "f", A.arguments), stop="tool_calls")},
            ),
        ),
    ),
)  # fmt: skip
