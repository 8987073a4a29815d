"""Cases 1 to 8: the index of a tool call is missing or null."""

from __future__ import annotations

from streamkit.text.identifiers import nine_characters
from tests.vectors import mistral as mi
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import calling, messages, mistral, written
from tests.vectors.openai_chat import call, calls, said
from tests.vectors.vector import Call

A = Call("f", '{"x":1}', id="a")
B = Call("g", '{"y":2}', id="b")

CASES = (
    Case(
        number=1, refs="ollama/ollama#7881",
        cause="the server sends complete tool calls without an `index`",
        does="streamkit gives each call the next free index, in order of arrival.",
        forms=(
            calling(calls(call(None, "a", "f", '{"x":1}'), call(None, "b", "g", '{"y":2}')), name="both in one chunk", calls=(A, B), repairs={"index_missing": 2}),
            calling(calls(call(None, "a", "f", '{"x":1}')), calls(call(None, "b", "g", '{"y":2}')), name="a chunk each", calls=(A, B), repairs={"index_missing": 2}),
            calling(calls({**call(None, "a", "f", '{"x":1}'), "index": None}), name="null", calls=(A,), repairs={"index_missing": 1}),
        ),
    ),
    Case(
        number=2, refs="openai/openai-python#2806, #3246",
        cause="the fragments of a call have no `index`",
        does="A fragment with a known id belongs to the call with that id. A fragment with neither an id nor a name belongs to the latest call.",
        forms=(
            calling(calls(call(None, "a", "f", '{"x":')), calls(call(None, arguments="1}")), name="one call", calls=(A,), repairs={"index_missing": 2}),
            calling(
                calls(call(None, "a", "f", '{"x":')), calls(call(None, "b", "g", '{"y":2}')), calls(call(None, "a", arguments="1}")),
                name="found by id", calls=(A, B), repairs={"index_missing": 3, "id_repeated": 1},
            ),
        ),
    ),
    Case(
        number=3, refs="vercel/ai#5885, #7240, #15879",
        cause="a call has no `index`, and its arguments arrive before its name",
        does="streamkit holds the arguments until the name arrives, then emits them in one piece.",
        forms=(
            calling(calls(call(None, arguments='{"x":')), calls(call(None, arguments="1}")), calls(call(None, "a", "f")), calls=(A,), repairs={"index_missing": 3}),
        ),
    ),
    Case(
        number=4, refs="SamSaffron/term-llm#314",
        cause="the first call has index 0, and the second call has no `index`",
        does="streamkit does not read a missing index as 0, so the second call becomes a separate call.",
        forms=(
            calling(calls(call(0, "a", "f", '{"x":1}')), calls(call(None, "b", "g", '{"y":')), calls(call(None, arguments="2}")), calls=(A, B), repairs={"index_missing": 2}),
        ),
    ),
    Case(
        number=5, refs="zed-industries/zed#38412",
        cause="a call has no `index`, and every chunk contains `usage`",
        does="streamkit does not need an index to find the call. Only the last `usage` counts: token counts are never added up.",
        forms=(
            calling(
                {**calls(call(None, "a", "f", '{"x":')), "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}},
                {**calls(call(None, arguments="1}")), "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}},
                calls=(A,), repairs={"index_missing": 2},
                to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", usage={"input_tokens": 9, "output_tokens": 4})},
            ),
        ),
    ),
    Case(
        number=6, refs="EricLBuehler/mistral.rs#1507; xorbitsai/inference#3634; chatanywhere/GPT_API_free#254; chenyme/grok2api#239",
        cause="servers omit `index`, and strict clients reject the response",
        does="streamkit writes an index for every call: 0, 1, 2 and so on.",
        forms=(
            calling(
                said("Hi"), calls(call(None, "a", "f", '{"x":1}')), calls(call(None, "b", "g", '{"y":2}')),
                text="Hi", calls=(A, B), repairs={"index_missing": 2},
                to={
                    "openai-chat": written(
                        Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_calls",
                        holds=(b'{"index":0,"id":"a"', b'{"index":1,"id":"b"', b'{"index":1,"function":{"arguments":'),
                    ),
                    "anthropic": messages(Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_use"),
                },
            ),
        ),
    ),
    Case(
        number=7, refs="AstrBotDevs/AstrBot#6692, #6661",
        cause="the first fragment of a call has an `index`, and the later fragments have none",
        does="The later fragments belong to the latest call.",
        forms=(calling(calls(call(0, "a", "f", '{"x"')), calls(call(None, arguments=":")), calls(call(None, arguments="1}")), calls=(A,), repairs={"index_missing": 2}),),
    ),
    Case(
        number=8, refs="langchain-ai/langchainjs#11373",
        cause='each chunk has one entry in `tool_calls`, and the `index` of the entry differs from its position in the list. One id is the string "null"',
        does='streamkit uses the `index`, not the position. streamkit reads the string "null" as a missing id, and generates an id.',
        forms=(
            calling(
                calls(call(0, "a", "f", '{"x"')), calls(call(1, "null", "g", '{"y"')), calls(call(0, arguments=":1}")), calls(call(1, arguments=":2}")),
                calls=(A, Call("g", '{"y":2}', id="call_1")), repairs={"identity_blank": 1, "id_missing": 1},
            ),
            mistral(
                mi.calls(mi.call("null", "f", '{"x":1}')), name="a whole call of Mistral's",
                calls=(Call("f", '{"x":1}', id="call_1"),), stop="tool_calls", repairs={"identity_blank": 1, "id_missing": 1},
                to={"openai-chat": written(Use("call_1", "f", '{"x":1}'), stop="tool_calls"), "mistral": written(Use(nine_characters("call_1"), "f", '{"x":1}'), stop="tool_calls", losses={"call_id": 1})},
            ),
        ),
    ),
)  # fmt: skip
