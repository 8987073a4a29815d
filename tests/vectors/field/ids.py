"""Cases 23 to 35: the id of a tool call is missing, blank, repeated or unstable."""

from __future__ import annotations

from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import calling, chat, messages, written
from tests.vectors.openai_chat import DONE, STOP, call, calls, said
from tests.vectors.vector import Call

A = Call("f", '{"x":1}', id="a")
MADE = Call("f", '{"x":1}', id="call_1")

#: All that a Chat client must get for case 25: identity in the first fragment, none later.
OMITTED = (
    b"".join(
        b'data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1700000000,"model":"m-1","choices":[{"index":0,%b}]}\n\n'
        % choice
        for choice in (
            b'"delta":{"role":"assistant","content":null},"finish_reason":null',
            b'"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null',
            b'"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"x\\":"}}]},"finish_reason":null',
            b'"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null',
            b'"delta":{},"finish_reason":"tool_calls"',
        )
    )
    + b"data: [DONE]\n\n"
)

CASES = (
    Case(
        number=23, refs="vercel/ai#18440",
        cause="every call has index 0 and no id, or the later fragments of a call have an id that is only white space",
        does="streamkit generates the missing ids. A new name after complete arguments starts another call. An id that is only white space counts as missing.",
        forms=(
            calling(
                calls(call(0, None, "f", '{"x":1}')), calls(call(0, None, "g", '{"y":2}')), name="no ids",
                calls=(MADE, Call("g", '{"y":2}', id="call_2")), repairs={"index_reused": 1, "id_missing": 2},
            ),
            calling(calls(call(0, "a", "f", '{"x"')), calls(call(0, " ", None, ":1}")), name="white space", calls=(A,), repairs={"identity_blank": 1}),
        ),
    ),
    Case(
        number=24, refs="anomalyco/opencode#37841; zed#54872; langchain#39331; vercel/ai#19091, #7834",
        cause="the later fragments of a call have a blank id and a blank name",
        does="A blank id or name counts as missing: the call keeps the id and name of its first fragment.",
        forms=(
            calling(calls(call(0, "a", "f", '{"x"')), calls(call(0, "", "", ":")), calls(call(0, "", "", "1}")), calls=(A,), repairs={"identity_blank": 4}),
            calling(
                calls(call(None, "a", "f", "")), calls(call(None, "a", "", "")), calls(call(None, "", "", '{"x":1}')), name="and no index",
                calls=(A,), repairs={"index_missing": 3, "identity_blank": 3, "id_repeated": 1},
            ),
        ),
    ),
    Case(
        number=25, refs="anomalyco/opencode#43328",
        cause="a gateway writes null as the `id` and the `name` of later fragments, and clients read null as a new value",
        does="streamkit reads null as missing. In its output, streamkit leaves out members without a value.",
        forms=(
            calling(
                calls(call(0, "a", "f", "")), *(calls({"index": 0, "id": None, "function": {"name": None, "arguments": text}}) for text in ('{"x":', "1}")),
                calls=(A,),
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls", body=OMITTED), "anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use")},
            ),
        ),
    ),
    Case(
        number=26, refs="nim-deploy#182; aionrs#99; opencode#47954, #30247; Netcatty#1007",
        cause="no call has an id",
        does="streamkit generates one id for each call. This id does not change later.",
        forms=(calling(calls(call(0, None, "f", '{"x"')), calls(call(0, arguments=":1}")), calls=(MADE,), repairs={"id_missing": 1}),),
    ),
    Case(
        number=27, refs="router-for-me/CLIProxyAPI#4219",
        cause="software that translates a stream waits for the id of a call, but the id arrives late or never",
        does="streamkit generates an id, and starts the call when its first arguments arrive. streamkit ignores an id that arrives later.",
        forms=(
            calling(
                calls(call(0, None, "f", '{"x"')), calls(call(0, "a", None, ":1}")), calls=(MADE,), repairs={"id_missing": 1, "id_late": 1},
                to={
                    "anthropic": messages(Use("call_1", "f", '{"x":1}'), stop="tool_use"),
                    "openai-responses": written(Use("call_1", "f", '{"x":1}'), stop="completed"),
                },
            ),
        ),
    ),
    Case(
        number=28, refs="macanderson/stella#5854",
        cause="after a text, a complete call arrives without an index and without an id",
        does="streamkit keeps the call, generates an id and counts the repairs.",
        forms=(
            calling(
                said("Hi"), calls(call(None, None, "f", '{"x":1}')),
                text="Hi", calls=(MADE,), repairs={"index_missing": 1, "id_missing": 1},
                to={"anthropic": messages(Text("Hi"), Use("call_1", "f", '{"x":1}'), stop="tool_use")},
            ),
        ),
    ),
    Case(
        number=29, refs="BerriAI/litellm#11407",
        cause="nothing is wrong in the stream: only the first fragment of a call has the id, but users expect the id in every fragment",
        does="streamkit finds the call of a later fragment by its index. streamkit writes the id once, as the dialect defines. Otherwise, clients that join the ids of all fragments would get the id several times in one string.",
        forms=(calling(calls(call(0, "a", "f")), calls(call(0, arguments='{"x"')), calls(call(0, arguments=":1}")), calls=(A,)),),
    ),
    Case(
        number=30, refs="SillyTavern#5948; llama_index#21693; openai-agents-python#990; AstrBot#7735",
        cause="every fragment of a call has the id, and clients join these ids into one string",
        does="streamkit sets the id of a call only once.",
        forms=(
            calling(
                calls(call(0, "call_z", "f")), calls(call(0, "call_z", None, '{"x"')), calls(call(0, "call_z", None, ":1}")),
                calls=(Call("f", '{"x":1}', id="call_z"),), repairs={"id_repeated": 2},
                to={
                    "openai-chat": written(Use("call_z", "f", '{"x":1}'), stop="tool_calls", lacks=(b"call_zcall_z",)),
                    "anthropic": messages(Use("call_z", "f", '{"x":1}'), stop="tool_use"),
                },
            ),
        ),
    ),
    Case(
        number=31, refs="JetBrains/koog#2002, #2052",
        cause="every fragment has the id and the name of its call, and clients read each fragment as a new call",
        does="A fragment with a known id continues the call with that id.",
        forms=(calling(calls(call(0, "a", "f", '{"x"')), calls(call(0, "a", "f", ":")), calls(call(0, "a", "f", "1}")), calls=(A,), repairs={"id_repeated": 2, "name_repeated": 2}),),
    ),
    Case(
        number=32, refs="poolsideai/pool#9; mlx-openai-server#216",
        cause="the later fragments of a call have a different id from the first fragment",
        does="A fragment without a name belongs to the call with the same index. The call keeps its first id.",
        forms=(calling(calls(call(0, "a", "f", '{"x"')), calls(call(0, "b", None, ":1}")), calls=(A,), repairs={"id_changed": 1}),),
    ),
    Case(
        number=33, refs="lmstudio-bug-tracker#830",
        cause="a call has a blank id, and neither a name nor arguments",
        does="streamkit drops the call and counts a repair. If the response has no other call, streamkit does not write the stop reason for tool calls.",
        forms=(
            chat(
                said("Hi"), calls({"index": 0, "id": "", "type": "function"}), STOP, DONE, name="alone",
                text="Hi", repairs={"identity_blank": 1, "call_ghost": 1}, to={"anthropic": messages(Text("Hi"))},
            ),
            calling(calls(call(0, "a", "f", '{"x":1}')), calls({"index": 1, "id": "", "type": "function"}), name="behind a call", calls=(A,), repairs={"identity_blank": 1, "call_ghost": 1}),
        ),
    ),
)  # fmt: skip
