"""Cases 41 to 51: what stands in the arguments of a call."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import cohere as co
from tests.vectors import mistral as mi
from tests.vectors import ollama as ol
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import (
    NO_REASON,
    anthropic,
    calling,
    chat,
    cohere,
    failed,
    message,
    messages,
    mistral,
    ollama_turn,
    written,
)
from tests.vectors.openai_chat import DONE, call, calls
from tests.vectors.vector import Call, lines, sse

A = Call("f", '{"x":1}', id="a")
EMPTY = Call("f", "", "empty", id="a")
NUMBERS = '{"id":7205759403792793601,"ratio":1.0,"big":18446744073709551616,"b":1e2,"a":0}'
IDS = {"call_id": 1}

#: An empty text means ``{}``: no delta for Anthropic, ``{}`` as text or object for the others.
NOTHING = {
    "anthropic": messages(Use("a", "f", ""), stop="tool_use"),
    "openai-chat": written(Use("a", "f", "{}"), stop="tool_calls"),
    "ollama": written(Use(None, "f", "{}"), losses=IDS),
}
NOTHING_FROM_ANTHROPIC = {
    **NOTHING,
    "anthropic": messages(Use("a", "f", ""), stop="tool_use", usage={"input_tokens": 9, "output_tokens": 4}),
}

CASES = (
    Case(
        number=41, refs="BerriAI/litellm#5063, #5064; pipecat#409; omni#402; oai-compatible-copilot#151",
        cause="a call has no arguments: the stream has one empty `partial_json` for the call, or no delta at all",
        does="streamkit reads empty arguments as `{}`. Their verdict is `empty`.",
        forms=(
            message(*am.tool(0, "a", "f", ""), reason="tool_use", name="an empty delta", calls=(EMPTY,), stop="tool_calls", to=NOTHING_FROM_ANTHROPIC),
            message(*am.tool(0, "a", "f"), reason="tool_use", name="no delta", calls=(EMPTY,), stop="tool_calls", to=NOTHING_FROM_ANTHROPIC),
        ),
    ),
    Case(
        number=42, refs="openai-agents-js#664; CopilotKit#3263; SillyTavern#4083; langchainjs#11319; hermes-evolution#1170",
        cause="`arguments` is an empty string until the stream ends",
        does="streamkit reads empty arguments as `{}`. A Chat client gets the text `{}`, because the client parses this text as JSON.",
        forms=(
            calling(calls(call(0, "a", "f", "")), name="empty", calls=(EMPTY,), to=NOTHING),
            calling(calls(call(0, "a", "f", " ")), calls(call(0, arguments="\n")), name="white space", calls=(Call("f", " \n", "empty", id="a"),), to={"ollama": NOTHING["ollama"]}),
        ),
    ),
    Case(
        number=43, refs="pydantic/pydantic-ai#1654",
        cause="`arguments` is null, and no other arguments follow",
        does="Null adds no text to the arguments. If the arguments are still empty at the end, streamkit reads the arguments as `{}`.",
        forms=(
            calling(calls({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": None}}), calls=(EMPTY,), to=NOTHING),
        ),
    ),
    Case(
        number=44, refs="1jehuang/jcode#225",
        cause="the arguments of a call are null, or JSON that is not an object",
        does="streamkit reads null as a call without arguments. Other JSON keeps its bytes and gets the verdict `not_an_object`. If the client's dialect requires an object, streamkit wraps the JSON text in an object.",
        forms=(
            calling(calls(call(0, "a", "f")), calls({"index": 0, "function": {"arguments": None}}), name="null", calls=(EMPTY,), to=NOTHING),
            *(
                calling(
                    calls(call(0, "a", "f", text)), name=f"the text {text}", calls=(Call("f", text, "not_an_object", id="a"),),
                    to={
                        "anthropic": messages(Use("a", "f", text), stop="tool_use"),
                        "ollama": written(Use(None, "f", f'{{"_raw_arguments":"{text}"}}'), losses={**IDS, "arguments_wrapped": 1}),
                    },
                )
                for text in ("null", "[1]", "7")
            ),
        ),
    ),
    Case(
        number=45, refs="open-webui#22189",
        cause="an empty object (`{}`) arrives before the real arguments",
        does="streamkit holds the `{}` until more arguments arrive. If an object follows, streamkit drops the `{}`. If nothing follows, the arguments are `{}`.",
        forms=(
            calling(calls(call(0, "a", "f", "{}")), calls(call(0, arguments='{"x"')), calls(call(0, arguments=":1}")), name="in front", calls=(A,), repairs={"empty_object_prefix": 1}),
            calling(calls(call(0, "a", "f", "{}")), name="alone", calls=(Call("f", "{}", id="a"),)),
            message(
                am.begin(0, "tool_use", id="a", name="f", input={}), am.delta(0, "input_json_delta", partial_json='{"x":1}'), am.stop(0), reason="tool_use", name="the input of a start",
                calls=(A,), stop="tool_calls", to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=46, refs="ggml-org/llama.cpp#20198; litellm#24091, #24095; ollama#6155",
        cause="the arguments are an object in a dialect that uses text, or a text in a dialect that uses an object",
        does="streamkit keeps the original text of the value. Chat and Anthropic get the text, and Ollama gets an object. Mistral allows both.",
        forms=(
            calling(
                calls(call(0, "a", "f", {"x": 1})), name="an object", calls=(A,), repairs={"arguments_not_text": 1},
                to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use"), "ollama": written(Use(None, "f", '{"x":1}'), losses=IDS)},
            ),
            ollama_turn(
                ol.line(tool_calls=[ol.call("f", '{"x":1}', id="a")]), name="text",
                calls=(A,), stop="tool_calls", repairs={"arguments_not_object": 1},
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"), "ollama": written(Use(None, "f", '{"x":1}'), losses=IDS)},
            ),
            cohere(
                co.call(0, "a", "f", {"x": 1}), co.over(0), reason="TOOL_CALL", name="an object in a start of Cohere's",
                calls=(A,), stop="tool_calls", repairs={"arguments_not_text": 1}, to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"), "cohere": written(Use("a", "f", '{"x":1}'), stop="TOOL_CALL")},
            ),
            mistral(
                mi.calls(mi.call("aaaaaaaa1", "f", {"x": 1})), name="an object where it may be one",
                calls=(Call("f", '{"x":1}', id="aaaaaaaa1"),), stop="tool_calls", to={"openai-chat": written(Use("aaaaaaaa1", "f", '{"x":1}'), stop="tool_calls"), "mistral": written(Use("aaaaaaaa1", "f", '{"x":1}'), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=48, refs="earendil-works/pi#8943; routatic/proxy#173; langsmith-sdk#3391",
        cause="the arguments contain numbers that a JSON parser rounds or rewrites: numbers of 19 digits, 1.0 or 2^64",
        does="streamkit does not rebuild the arguments from parsed JSON. Digits, key order and spelling stay the same, even if the arguments arrive as an object.",
        forms=(
            calling(
                calls(call(0, "a", "f", NUMBERS[:20])), calls(call(0, arguments=NUMBERS[20:])), name="from text", calls=(Call("f", NUMBERS, id="a"),),
                to={"anthropic": messages(Use("a", "f", NUMBERS), stop="tool_use"), "ollama": written(Use(None, "f", NUMBERS), losses=IDS)},
            ),
            chat(
                sse(calls(call(0, "a", "f", "?"), finish="tool_calls"), DONE).replace(b'"?"', NUMBERS.encode()), name="from an object in Chat",
                calls=(Call("f", NUMBERS, id="a"),), stop="tool_calls", repairs={"arguments_not_text": 1},
                to={"anthropic": messages(Use("a", "f", NUMBERS), stop="tool_use")},
            ),
            ollama_turn(
                *(line.replace(b'"?"', NUMBERS.encode()) for line in [lines(ol.line(tool_calls=[ol.call("f", "?", id="a")]))[:-1]]), name="from an object",
                calls=(Call("f", NUMBERS, id="a"),), stop="tool_calls", to={"openai-chat": written(Use("a", "f", NUMBERS), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=49, refs="scale-agentex#353",
        cause="the deltas of one call contain several objects instead of text",
        does="streamkit reads an object as all arguments of the call, so a later object replaces an earlier one.",
        forms=(
            calling(
                calls(call(0, "a", "f", {"x": 0})), calls(call(0, arguments={"x": 1})),
                calls=(A,), repairs={"arguments_not_text": 2, "arguments_replaced": 1},
            ),
        ),
    ),
    Case(
        number=50, refs="envoyproxy/ai-gateway#2585",
        cause="a server does not check the arguments, so they may not be JSON, or may end too early",
        does="streamkit raises no exception. The verdict is `malformed` or `truncated`, with the position of the fault, and the text stays unchanged.",
        forms=(
            message(
                *am.tool(0, "a", "f", '{"x": ye', "s}"), reason="tool_use", name="no JSON", calls=(Call("f", '{"x": yes}', "malformed", id="a"),), stop="tool_calls",
                to={
                    "openai-chat": written(Use("a", "f", '{"x": yes}'), stop="tool_calls"),
                    "ollama": written(Use(None, "f", '{"_raw_arguments":"{\\"x\\": yes}"}'), losses={**IDS, "arguments_wrapped": 1}),
                },
            ),
            message(
                *am.tool(0, "a", "f", '{"x": "ye'), reason="max_tokens", name="broken off", calls=(Call("f", '{"x": "ye', "truncated", id="a"),), stop="length",
                to={
                    "openai-chat": written(Use("a", "f", '{"x": "ye'), stop="length"),
                    "ollama": written(stop="length", losses={"call_withheld": 1}, withheld=('{"x": "ye',)),
                },
            ),
        ),
    ),
    Case(
        number=51, refs="openclaw#126391",
        cause="the input ends inside the last of several calls",
        does="Every call whose end has not arrived gets the verdict `truncated`, even if its arguments are complete. streamkit ends its output with an error, not with a success. Ollama's clients get none of these calls.",
        forms=(
            chat(
                calls(call(0, "a", "f", '{"x":1}')), calls(call(1, "b", "g", '{"y":')), name="Chat",
                calls=(Call("f", '{"x":1}', "truncated", id="a"), Call("g", '{"y":', "truncated", id="b")), stop=None,
                to={
                    "anthropic": failed(Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":'), error=NO_REASON),
                    "ollama": failed(error=NO_REASON, losses={"call_withheld": 2}, withheld=('{"x":1}', '{"y":')),
                },
            ),
            anthropic(
                am.START, *am.block(0, "Hi"), *am.tool(1, "a", "f", '{"x":')[:-1], name="a block that is never closed",
                text="Hi", calls=(Call("f", '{"x":', "truncated", id="a"),), stop=None,
                to={"openai-chat": failed(Text("Hi"), Use("a", "f", '{"x":'), error=NO_REASON), "ollama": failed(Text("Hi"), error=NO_REASON, losses={"call_withheld": 1}, withheld=('{"x":',))},
            ),
        ),
    ),
)  # fmt: skip
