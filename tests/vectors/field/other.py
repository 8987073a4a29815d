"""Cases 130 to 136, as far as streams show them."""

from __future__ import annotations

from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import calling, chat, messages
from tests.vectors.openai_chat import DONE, HEAD, STOP, call, calls, chunk, said
from tests.vectors.vector import Call

ARGUMENTS = '{"path":"C:\\\\tmp","n":[1,{"s":"}"}]}'
A = Call("f", ARGUMENTS, id="a")

CASES = (
    Case(
        number=130, refs="vllm#55082, #48347, #48852",
        cause="a whole call in one delta, or fragments that end inside an escape, a string or a number",
        does="Where fragments end means nothing: all texts are joined, and looked at once.",
        forms=(
            chat(
                chunk({"role": "assistant", "content": "Hi", "tool_calls": [call(0, "a", "f", ARGUMENTS)]}, "tool_calls", usage={"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}), DONE,
                name="all in one delta", text="Hi", calls=(A,), stop="tool_calls",
                to={"anthropic": messages(Text("Hi"), Use("a", "f", ARGUMENTS), stop="tool_use", usage={"input_tokens": 9, "output_tokens": 4})},
            ),
            *(
                calling(calls(call(0, "a", "f", ARGUMENTS[:at])), calls(call(0, arguments=ARGUMENTS[at:])), name=f"split at {at}", calls=(A,))
                for at in range(1, len(ARGUMENTS), 3)
            ),
            calling(calls(call(0, "a", "f", "")), *(calls(call(0, arguments=character)) for character in ARGUMENTS), name="by character", calls=(A,)),
        ),
    ),
    Case(
        number=133, refs="zed#39137, #39142",
        cause="choices without `delta`, which bring results of a content filter",
        does="They add nothing to the text; the results are carried, or a counted loss.",
        forms=(
            chat(
                said("Hi"), {**HEAD, "object": "", "choices": [{"index": 0, "finish_reason": None, "content_filter_results": {"hate": {"filtered": False}}}]}, STOP, DONE,
                text="Hi", repairs={"delta_missing": 1}, to={"anthropic": messages(Text("Hi"), losses={"metadata": 1})},
            ),
        ),
    ),
)  # fmt: skip
