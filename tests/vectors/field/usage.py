"""Cases 70 to 74: usage, and chunks without choices."""

from __future__ import annotations

from streamkit.dialects.profiles import Profile
from tests.vectors import anthropic as am
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import anthropic, chat, messages, written
from tests.vectors.openai_chat import DONE, HEAD, STOP, USAGE, call, calls, chunk, said
from tests.vectors.vector import Call

COUNTS = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
KNOWN = {"input_tokens": 9, "output_tokens": 4}
HI = {"anthropic": messages(Text("Hi"), usage=KNOWN)}

CASES = (
    Case(
        number=70, refs="spoon-core#179; llmeter#34; Portkey gateway#1627, #1629; OpenManus#482; hello-agents#517; mentat#429",
        cause="some chunks have empty `choices`: the usage chunk, and Azure's first chunk",
        does="streamkit reads the other members of these chunks.",
        forms=(
            chat(
                {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}, said("Hi"), STOP, USAGE, DONE,
                text="Hi", to={"anthropic": messages(Text("Hi"), usage=KNOWN, losses={"response_fields": 1})},
            ),
        ),
    ),
    Case(
        number=71, refs="BerriAI/litellm#8450, #8751, #28738; ROCm/ATOM#1711",
        cause="a usage chunk has no member `choices`",
        does="streamkit reads the usage. In its own usage chunks, streamkit writes `choices: []`.",
        forms=(
            chat(
                said("Hi"), STOP, {**HEAD, "usage": COUNTS}, DONE, name="of a chunk",
                text="Hi", to={**HI, "openai-chat": written(Text("Hi"), usage=COUNTS, holds=(b'"choices":[],"usage":{',))},
            ),
            chat(said("Hi"), STOP, {"usage": COUNTS}, DONE, name="alone", text="Hi", to=HI),
        ),
    ),
    Case(
        number=72, refs="quotio#460",
        cause="the server sends usage, although the client did not request it",
        does="If the client's profile excludes the usage chunk, streamkit writes none. streamkit still reads the token counts.",
        forms=(
            chat(
                said("Hi"), STOP, USAGE, DONE, text="Hi",
                to={"openai-chat": written(Text("Hi"), lacks=(b"usage", b'"choices":[]'), profile=Profile(name="quiet", include_usage=False)), **HI},
            ),
        ),
    ),
    Case(
        number=73, refs="routstr-core#543",
        cause="the chunk with the last content also contains the usage",
        does="streamkit reads the content, the stop reason and the usage of the chunk.",
        forms=(
            chat(chunk({"content": "Hi"}, "stop", usage=COUNTS), DONE, name="text", text="Hi", to=HI),
            chat(
                {**calls(call(0, "a", "f", '{"x":1}'), finish="tool_calls"), "usage": COUNTS}, DONE, name="a call",
                calls=(Call("f", '{"x":1}', id="a"),), stop="tool_calls", to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", usage=KNOWN)},
            ),
            chat({**said("Hi"), "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop", "usage": COUNTS}]}, DONE, name="in the choice", text="Hi", to=HI),
        ),
    ),
    Case(
        number=74, refs="BerriAI/litellm#36376, #27319; rig#2235",
        cause="token counts are in several places: at the start, at the end, and in details",
        does="A later count replaces an earlier one: counts are never added up. A count that arrives only at the start is kept. streamkit keeps the counts of reasoning tokens and cache tokens.",
        forms=(
            anthropic(
                {**am.START, "message": {**am.START["message"], "usage": {"input_tokens": 9, "cache_read_input_tokens": 20, "output_tokens": 1}}},
                *am.block(0, "Hi"), {**am.finish("end_turn"), "usage": {"output_tokens": 3}}, {**am.finish("end_turn"), "usage": {"output_tokens": 4}}, am.STOP, name="start and end",
                text="Hi",
                to={
                    "openai-chat": written(
                        Text("Hi"), usage={"prompt_tokens": 29, "completion_tokens": 4, "total_tokens": 33, "prompt_tokens_details": {"cached_tokens": 20}}
                    ),
                },
            ),
            chat(
                said("Hi"), STOP, {**USAGE, "usage": {**COUNTS, "completion_tokens_details": {"reasoning_tokens": 3}}}, DONE, name="details of reasoning", text="Hi",
                to={"anthropic": messages(Text("Hi"), usage={**KNOWN, "output_tokens_details": {"thinking_tokens": 3}})},
            ),
        ),
    ),
)  # fmt: skip
