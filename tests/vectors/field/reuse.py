"""Cases 9 to 22: the index of a tool call is constant, restarted, reused or duplicated."""

from __future__ import annotations

from streamkit.text.identifiers import nine_characters
from tests.vectors import anthropic as am
from tests.vectors import gemini as gm
from tests.vectors import mistral as mi
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import calling, gemini, message, messages, mistral, ollama_turn, responses_turn, written
from tests.vectors.openai_chat import call, calls
from tests.vectors.vector import Call

A = Call("f", '{"x":1}', id="a")
B = Call("g", '{"y":2}', id="b")
MADE = (Call("f", '{"x":1}', id="call_1"), Call("f", '{"x":2}', id="call_2"))

CASES = (
    Case(
        number=9, refs="ollama/ollama#15457",
        cause="every call has index 0",
        does="Another call starts when the arguments so far are a complete object and the next fragment has a name. In addition, this fragment must have a new id, a name that differs from the call's, or a second object.",
        forms=(
            calling(calls(call(0, "a", "f", '{"x":1}')), calls(call(0, "b", "g", '{"y":2}')), name="with ids", calls=(A, B), repairs={"index_reused": 1}),
            calling(calls(call(0, None, "f", '{"x":1}')), calls(call(0, None, "g", '{"y":2}')), name="without ids", calls=(MADE[0], Call("g", '{"y":2}', id="call_2")), repairs={"index_reused": 1, "id_missing": 2}),
            mistral(
                mi.calls(mi.call("aaaaaaaa1", "f", '{"x":1}', index=0), mi.call("bbbbbbbb2", "f", '{"x":1}')), name="where that is the rule",
                calls=(Call("f", '{"x":1}', id="aaaaaaaa1"), Call("f", '{"x":1}', id="bbbbbbbb2")), stop="tool_calls",
                to={
                    "openai-chat": written(Use("aaaaaaaa1", "f", '{"x":1}'), Use("bbbbbbbb2", "f", '{"x":1}'), stop="tool_calls", holds=(b'{"index":1,"id":"bbbbbbbb2"',)),
                    "mistral": written(Use("aaaaaaaa1", "f", '{"x":1}'), Use("bbbbbbbb2", "f", '{"x":1}'), stop="tool_calls"),
                },
            ),
        ),
    ),
    Case(
        number=10, refs="BerriAI/litellm#33678",
        cause="every call in an Ollama stream has index 0",
        does="streamkit ignores the index, because Ollama sends each call complete. Each call gets a new index.",
        forms=(
            ollama_turn(
                ol.line(tool_calls=[{"function": {"index": 0, "name": "read", "arguments": {"path": "a"}}}]),
                ol.line(tool_calls=[{"function": {"index": 0, "name": "read", "arguments": {"path": "b"}}}]),
                calls=(Call("read", '{"path":"a"}', id="call_1"), Call("read", '{"path":"b"}', id="call_2")), stop="tool_calls",
                to={
                    "openai-chat": written(
                        Use("call_1", "read", '{"path":"a"}'), Use("call_2", "read", '{"path":"b"}'), stop="tool_calls",
                        holds=(b'{"index":0,"id":"call_1"', b'{"index":1,"id":"call_2"'),
                    ),
                },
            ),
        ),
        beside="tests/requests/test_anthropic.py::test_a_request",
    ),
    Case(
        number=11, refs="BerriAI/litellm#21331, #21337",
        cause="a bridge between two dialects writes index 0 for every call, although the content blocks of the calls have different indices",
        does="streamkit turns the indices of the blocks into call indices 0, 1 and 2. If all indices are 0, streamkit separates the calls by their ids.",
        forms=(
            message(
                *am.block(0, "Hi"), *am.tool(1, "a", "f", '{"x":1}'), *am.tool(2, "b", "g", '{"y":2}'), reason="tool_use", name="blocks 1 and 2",
                text="Hi", calls=(A, B), stop="tool_calls",
                to={"openai-chat": written(Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_calls", holds=(b'{"index":0,"id":"a"', b'{"index":1,"id":"b"'))},
            ),
            calling(
                calls(call(0, "a", "f", "")), calls(call(0, arguments='{"x":1}')), calls(call(0, "b", "g", "")), calls(call(0, arguments='{"y":2}')),
                name="what the bridge wrote", calls=(A, B), repairs={"index_reused": 1},
            ),
            responses_turn(
                *rs.message(0, "Hi"), *rs.call(1, "a", "f", '{"x":1}'), *rs.call(2, "b", "g", '{"y":2}'), name="items 1 and 2",
                text="Hi", calls=(A, B), stop="tool_calls",
                to={"openai-chat": written(Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_calls", holds=(b'{"index":0,"id":"a"', b'{"index":1,"id":"b"'))},
            ),
            responses_turn(
                *({**one, "output_index": 0} for one in (*rs.call(1, "a", "f", '{"x":1}'), *rs.call(2, "b", "g", '{"y":2}'))), name="items at 0",
                calls=(A, B), stop="tool_calls", repairs={"index_reused": 1},
                to={"openai-responses": written(Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="completed", holds=(b'"output_index":1',))},
            ),
        ),
    ),
    Case(
        number=12, refs="ai-dynamo/dynamo#4723",
        cause="a server uses one parser per call, so the index starts at 0 again with each call",
        does="A new id together with a new name starts another call. A fragment with neither an id nor a name belongs to the latest call at its index.",
        forms=(
            calling(
                calls(call(0, "a", "f", '{"x"')), calls(call(0, arguments=":1}")), calls(call(0, "b", "g", '{"y"')), calls(call(0, arguments=":2}")),
                calls=(A, B), repairs={"index_reused": 1},
            ),
        ),
    ),
    Case(
        number=13, refs="huggingface/smolagents#1569, #1958; langchain#34807, #35281; gptscript-ai/gptscript#374; ccNexus#89",
        cause="fragments with the same index have different ids",
        does="A fragment with a new id and a new name starts another call. So does a fragment with a new id that repeats the name, once the arguments are a complete object.",
        forms=(
            calling(calls(call(0, "a", "f", "")), calls(call(0, "b", "g", '{"y":2}')), name="another name", calls=(Call("f", "", "empty", id="a"), B), repairs={"index_reused": 1}),
            calling(
                calls(call(0, "a", "f", '{"x":1}')), calls(call(0, "b", "f", '{"x":2}')), name="the same name",
                calls=(A, Call("f", '{"x":2}', id="b")), repairs={"index_reused": 1},
            ),
        ),
    ),
    Case(
        number=14, refs="sgl-project/sglang#6310",
        cause="the index has gaps, or the first chunk of a call has a different index from the arguments of this call",
        does="streamkit uses an index only as a label, so gaps do not matter. If only arguments arrive, at an index that no call has, they belong to the unfinished call that has no arguments yet.",
        forms=(
            calling(calls(call(1, "a", "f", '{"x"')), calls(call(1, arguments=":1}")), calls(call(3, "b", "g", '{"y":2}')), name="gaps", calls=(A, B)),
            calling(
                calls(call(2, "a", "f", "")), calls(call(0, arguments='{"x":1}')), name="text at another index",
                calls=(A,), repairs={"index_changed": 1},
            ),
            calling(
                calls(call(2, "a", "f", "")), calls(call(0, arguments='{"x":1}')), calls(call(0, "b", "g", "")), calls(call(1, arguments='{"y":2}')),
                name="text of two calls at other indices", calls=(A, B), repairs={"index_changed": 2, "index_reused": 1},
            ),
        ),
    ),
    Case(
        number=15, refs="mudler/LocalAI#9722",
        cause="one call has one id, but its fragments have several indices",
        does="streamkit finds the call by its id, whatever the index is.",
        forms=(
            calling(calls(call(0, "a", "f", '{"x"')), calls(call(1, "a", None, ":1}")), name="fragments", calls=(A,), repairs={"index_changed": 1, "id_repeated": 1}),
            calling(
                calls(call(0, "a", "f", "")), calls(call(1, "a", "f", '{"x":1}')), name="name again, then the text",
                calls=(A,), repairs={"index_changed": 1, "id_repeated": 1, "name_repeated": 1},
            ),
        ),
    ),
    Case(
        number=16, refs="microsoft/semantic-kernel#6106",
        cause="nothing is wrong in the stream: the arguments of one call are empty (`{}`), and another call has arguments",
        does="streamkit adds arguments only to the call with the same index.",
        forms=(
            calling(
                calls(call(0, "a", "f", "{}")), calls(call(1, "b", "g", '{"city":')), calls(call(1, arguments='"Bern"}')),
                calls=(Call("f", "{}", id="a"), Call("g", '{"city":"Bern"}', id="b")),
            ),
        ),
    ),
    Case(
        number=17, refs="mozilla-ai/any-llm#1305; QwenLM/Qwen-Agent#943",
        cause="nothing is wrong in the stream: the fragments of two calls alternate",
        does="streamkit adds arguments to the call with the same index. If the client's dialect has content blocks, streamkit writes one call after the other.",
        forms=(
            calling(
                calls(call(0, "a", "f", "")), calls(call(1, "b", "g", "")), calls(call(0, arguments='{"x"')), calls(call(1, arguments='{"y"')),
                calls(call(0, arguments=":1}")), calls(call(1, arguments=":2}")),
                calls=(A, B),
                to={
                    "anthropic": messages(Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_use"),
                    "ollama": written(Use(None, "f", '{"x":1}'), Use(None, "g", '{"y":2}'), losses={"call_id": 2}),
                    "cohere": written(Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="TOOL_CALL"),
                    "mistral": written(Use(nine_characters("a"), "f", '{"x":1}'), Use(nine_characters("b"), "g", '{"y":2}'), stop="tool_calls", losses={"call_id": 2}),
                },
            ),
        ),
    ),
    Case(
        number=18, refs="0xPlaygrounds/rig#1508, #1510",
        cause="each fragment of one call has a different id",
        does="The call keeps its first id. A new id starts another call only if the fragment also has a name. This name must be new, or the arguments so far must be complete.",
        forms=(
            calling(calls(call(0, "a", "f", '{"x"')), calls(call(0, "b", None, ":")), calls(call(0, "c", None, "1}")), name="ids alone", calls=(A,), repairs={"id_changed": 2}),
            calling(
                calls(call(0, "a", "f", '{"x"')), calls(call(0, "b", "f", ":1}")), name="with the name",
                calls=(A,), repairs={"id_changed": 1, "name_repeated": 1},
            ),
        ),
    ),
    Case(
        number=19, refs="openai/openai-python#3241, #3425",
        cause="one chunk has two entries with the same index",
        does="streamkit reads both entries as fragments of one call.",
        forms=(calling(calls(call(0, "a", "f", '{"x"'), call(0, arguments=":1}")), calls=(A,)),),
    ),
    Case(
        number=20, refs="lmstudio-bug-tracker#759, #723, #1922, #649",
        cause="the stream has several calls, and their later fragments have a blank name",
        does="streamkit ignores a blank name.",
        forms=(
            calling(
                calls(call(0, "a", "f", '{"x"')), calls(call(0, None, "", ":1}")), calls(call(1, "b", "g", '{"y"')), calls(call(1, None, "", ":2}")),
                calls=(A, B), repairs={"identity_blank": 2},
            ),
        ),
    ),
    Case(
        number=21, refs="LibreChat-AI/agents#260",
        cause="calls have the same index or no index, and their arguments arrive in fragments",
        does="streamkit starts another call only if the fragments prove that there are two calls. A name that is repeated while an object is unfinished proves nothing.",
        forms=(
            calling(
                calls(call(0, "a", "f", '{"x":')), calls(call(0, None, "f", '{"z":1}')), calls(call(0, arguments="}")), name="no proof",
                calls=(Call("f", '{"x":{"z":1}}', id="a"),), repairs={"name_repeated": 1},
            ),
            calling(
                calls(call(0, "a", "f", '{"x"')), calls(call(0, arguments=":1}")), calls(call(0, "b", "g", '{"y"')), calls(call(0, arguments=":2}")), name="shared",
                calls=(A, B), repairs={"index_reused": 1},
            ),
            calling(
                calls(call(None, "a", "f", '{"x"')), calls(call(None, arguments=":1}")), calls(call(None, "b", "g", '{"y"')), calls(call(None, arguments=":2}")), name="missing",
                calls=(A, B), repairs={"index_missing": 4},
            ),
        ),
    ),
    Case(
        number=22, refs="microsoft/semantic-kernel#10597; NousResearch/hermes-agent#111686; TanStack/ai#199; brainlid/langchain#620; omnigent#28; hermes#12930",
        cause="parallel calls use the same tool, and each call arrives in its own chunk at index 0. The calls have no id, or a call is sent again with its id",
        does="streamkit reads a second object with the same name, after a complete object, as another call. streamkit reads a call with the same id and the same arguments as the same call.",
        forms=(
            calling(calls(call(0, None, "f", '{"x":1}')), calls(call(0, None, "f", '{"x":2}')), name="no ids", calls=MADE, repairs={"index_reused": 1, "id_missing": 2}),
            calling(
                calls(call(0, "a", "f", '{"x":1}')), calls(call(0, "a", "f", '{"x":1}')), name="sent again",
                calls=(A,), repairs={"id_repeated": 1, "name_repeated": 1, "arguments_repeated": 1},
            ),
            gemini(
                gm.chunk(gm.call("f", {"x": 1})), gm.chunk(gm.call("f", {"x": 2})), gm.STOP, name="Gemini, no ids", calls=MADE, stop="tool_calls",
                to={
                    "openai-chat": written(Use("call_1", "f", '{"x":1}'), Use("call_2", "f", '{"x":2}'), stop="tool_calls"),
                    "gemini": written(Use("call_1", "f", '{"x":1}'), Use("call_2", "f", '{"x":2}'), stop="STOP"),
                },
            ),
            gemini(
                gm.chunk(gm.call("f", {"x": 1}, id="a")), gm.chunk(gm.call("f", {"x": 1}, id="a")), gm.STOP, name="Gemini, sent again",
                calls=(A,), stop="tool_calls", repairs={"arguments_repeated": 1}, to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
        ),
    ),
)  # fmt: skip
