"""Cases 130 to 136, as far as streams show them."""

from __future__ import annotations

from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import calling, chat, messages, responses, responses_turn, written
from tests.vectors.openai_chat import DONE, HEAD, STOP, call, calls, chunk, said
from tests.vectors.vector import Call

WHOLE_LIFE = tuple(
    b'event: response.%b\ndata: {"type":"response.%b",' % (name, name)
    for name in (
        b"created", b"in_progress", b"output_item.added", b"content_part.added", b"output_text.delta", b"output_text.done",
        b"content_part.done", b"output_item.done", b"completed",
    )
)  # fmt: skip
ARGUMENTS = '{"path":"C:\\\\tmp","n":[1,{"s":"}"}]}'
A = Call("f", ARGUMENTS, id="a")

CASES = (
    Case(
        number=130, refs="vllm#55082, #48347, #48852",
        cause="a complete call is in one delta, or fragments end inside an escape sequence, a string or a number",
        does="It does not matter where fragments end. streamkit joins all fragments and checks the result once.",
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
        number=131, refs="llm-rosetta#56; better-ccflare#233; Floway#315; req_llm#662; opencodex#4652",
        cause="a Responses stream lacks some of its events",
        does="In its output, streamkit writes all events of each item. The last event contains the complete output.",
        forms=(
            chat(said("Hi"), STOP, DONE, name="text", text="Hi", stop="stop", to={"openai-responses": written(Text("Hi"), stop="completed", holds=WHOLE_LIFE)}),
            responses(
                rs.START, rs.last("completed", rs.message(0, "Hi")[-1], rs.call(1, "a", "f", ARGUMENTS)[-1]), name="the last event alone",
                text="Hi", calls=(A,), stop="tool_calls", repairs={"block_unopened": 2},
                to={"openai-responses": written(Text("Hi"), Use("a", "f", ARGUMENTS), stop="completed")},
            ),
            responses_turn(
                rs.call(0, "a", "f")[0], rs.call(0, "a", "f", ARGUMENTS)[-1], name="no deltas", calls=(A,), stop="tool_calls",
                to={"openai-responses": written(Use("a", "f", ARGUMENTS), stop="completed")},
            ),
        ),
    ),
    Case(
        number=132, refs="Roo-Code#9666, #10719, #10725",
        cause="argument deltas of Responses have neither the id nor the name of their call",
        does="streamkit takes the id and the name of the call from its item.",
        forms=(
            responses_turn(
                *rs.call(0, "a", "f", ARGUMENTS[:9], ARGUMENTS[9:]), name="by index and item", calls=(A,), stop="tool_calls",
                to={"openai-chat": written(Use("a", "f", ARGUMENTS), stop="tool_calls")},
            ),
            responses_turn(
                rs.call(0, "a", "f")[0], *(rs.event("function_call_arguments.delta", None, "", delta=ARGUMENTS[at : at + 9]) for at in range(0, len(ARGUMENTS), 9)), rs.call(0, "a", "f", ARGUMENTS)[-1],
                name="by nothing at all", calls=(A,), stop="tool_calls", repairs={"index_missing": 4},
                to={"openai-chat": written(Use("a", "f", ARGUMENTS), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=133, refs="zed#39137, #39142",
        cause="a choice has no `delta`, but contains the results of a content filter",
        does="Such a choice adds no text. For clients of the same dialect, streamkit writes the results again. For other clients, streamkit counts a loss.",
        forms=(
            chat(
                said("Hi"), {**HEAD, "object": "", "choices": [{"index": 0, "finish_reason": None, "content_filter_results": {"hate": {"filtered": False}}}]}, STOP, DONE,
                text="Hi", repairs={"delta_missing": 1}, to={"anthropic": messages(Text("Hi"), losses={"metadata": 1})},
            ),
        ),
    ),
)  # fmt: skip
