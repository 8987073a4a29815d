"""Cases 52 to 69: why a stream ended, and whether it did."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import gemini as gm
from tests.vectors import ollama as ol
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import (
    NO_REASON,
    anthropic,
    bedrock,
    calling,
    chat,
    failed,
    gemini,
    message,
    messages,
    ollama_turn,
    written,
)
from tests.vectors.openai_chat import CALLED, DONE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call, named, sse

A = Call("f", '{"x":1}', id="a")
CUT = Call("f", '{"x":', "truncated", id="a")
WHOLE = calls(call(0, "a", "f", '{"x":1}'))
OPEN = calls(call(0, "a", "f", '{"x":'))
USED = {"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use")}
LENGTH = chunk(finish="length")

#: What an Anthropic client gets of "Hi" and no more: the text, and an error in place of the end.
CUT_TEXT = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"chatcmpl-7","type":"message","role":"assistant","model":"m-1",'
    b'"content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,'
    b'"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,'
    b'"output_tokens_details":null,"server_tool_use":null,"cache_creation":null,"inference_geo":null,"service_tier":null}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n'
    b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"stream truncated: the stream ended without a stop reason"}}\n\n'
)

CASES = (
    Case(
        number=52, refs="BerriAI/litellm#12862, #12249, #12481; sglang#2877; vllm#9209; mlx-vlm#990, #1014",
        cause="`stop` though tools are called",
        does="A natural stop with calls becomes `tool_calls`.",
        forms=(
            chat(WHOLE, STOP, DONE, calls=(A,), stop="tool_calls", repairs={"stop_with_calls": 1}, to={**USED, "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}),
        ),
    ),
    Case(
        number=53, refs="BerriAI/litellm#34692, #34718; strands harness-sdk#1827, #1810; octo-agent#647",
        cause="`end_turn` behind a `tool_use` block",
        does="It becomes `tool_use`, for Anthropic's own clients too when written anew.",
        forms=(
            message(
                *am.tool(0, "a", "f", '{"x":1}'), calls=(A,), stop="tool_calls", repairs={"stop_with_calls": 1},
                to={
                    "anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", usage={"input_tokens": 9, "output_tokens": 4}),
                    "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"),
                },
            ),
        ),
    ),
    Case(
        number=54, refs="opencode2api#27; earendil-works/pi#9681",
        cause="`tool_calls` or `tool_use` without any call",
        does="It becomes a plain stop: a client would wait for a call.",
        forms=(
            chat(said("Hi"), CALLED, DONE, text="Hi", repairs={"calls_without_call": 1}, to={"anthropic": messages(Text("Hi"))}),
            message(*am.block(0, "Hi"), reason="tool_use", text="Hi", repairs={"calls_without_call": 1}, to={"openai-chat": written(Text("Hi"))}),
        ),
    ),
    Case(
        number=55, refs="vllm#9053, #46303",
        cause="the token limit cuts a call and the server says `tool_calls`",
        does="The call gets the verdict `truncated`. Where `length` is said as well it wins.",
        forms=(
            calling(
                OPEN, name="tool_calls alone", calls=(CUT,),
                to={
                    "anthropic": messages(Use("a", "f", '{"x":'), stop="tool_use"),
                    "ollama": written(stop="length", losses={"call_withheld": 1, "stop_reason": 1}, withheld=('{"x":',)),
                },
            ),
            chat(
                OPEN, CALLED, LENGTH, DONE, name="both", calls=(CUT,), stop="length", repairs={"stop_conflict": 1},
                to={"anthropic": messages(Use("a", "f", '{"x":'), stop="max_tokens")},
            ),
        ),
    ),
    Case(
        number=56, refs="factory-droid-openai#33; experiential#757; rig#2235",
        cause="`length` with a call whose text is open",
        does="`length` stays; the call is `truncated`, and no error is made of it.",
        forms=(
            chat(
                OPEN, LENGTH, DONE, calls=(CUT,), stop="length",
                to={
                    "anthropic": messages(Use("a", "f", '{"x":'), stop="max_tokens"),
                    "ollama": written(stop="length", losses={"call_withheld": 1}, withheld=('{"x":',)),
                },
            ),
        ),
    ),
    Case(
        number=57, refs="goose#10258; opencrabs#1499; cc-switch#5093; workbuddy-gateway#3",
        cause='`finish_reason` is "" in every chunk',
        does="Blank is absent; a reason that says something counts.",
        forms=(
            chat(
                calls(call(0, "a", "f", '{"x"'), finish=""), calls(call(0, arguments=":1}"), finish=""), CALLED, DONE, name="then a reason",
                calls=(A,), stop="tool_calls", to=USED,
            ),
            chat(chunk({"content": "Hi"}, ""), chunk(finish=""), DONE, name="never a reason", text="Hi", stop=None, to={"anthropic": failed(Text("Hi"), error=NO_REASON)}),
        ),
    ),
    Case(
        number=58, refs="ChatMock#114; sglang#8417",
        cause="two chunks with a reason: `tool_calls`, then `stop`",
        does="The strongest reason is taken, whatever the order, and one is written.",
        forms=(
            chat(WHOLE, CALLED, STOP, DONE, name="tool_calls first", calls=(A,), stop="tool_calls", repairs={"stop_conflict": 1}, to={**USED, "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}),
            chat(WHOLE, STOP, CALLED, DONE, name="stop first", calls=(A,), stop="tool_calls", repairs={"stop_conflict": 1}, to=USED),
        ),
    ),
    Case(
        number=59, refs="vllm#10781, #44348, #10398, #9693",
        cause="the reason comes before the last fragment",
        does="Nothing ends with the reason: the fragment is the call's, and the reason is written last.",
        forms=(
            chat(
                OPEN, CALLED, calls(call(0, arguments="1}")), DONE, calls=(A,), stop="tool_calls",
                to={
                    **USED,
                    "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"),
                    "ollama": written(Use(None, "f", '{"x":1}'), losses={"call_id": 1}),
                },
            ),
        ),
    ),
    Case(
        number=60, refs="ranxianglei/billion-context#432; ducks/claux#43",
        cause="a call and its reason in one chunk, or text behind that chunk",
        does="A chunk's calls are read before its reason, and reading goes on behind it.",
        forms=(
            chat(calls(call(0, "a", "f", '{"x":1}'), finish="tool_calls"), DONE, name="one chunk", calls=(A,), stop="tool_calls", to=USED),
            chat(calls(call(0, "a", "f", '{"x":'), finish="tool_calls"), calls(call(0, arguments="1}")), DONE, name="and text behind", calls=(A,), stop="tool_calls", to=USED),
        ),
    ),
    Case(
        number=61, refs="CLIProxyAPI#5308, #5310; cc-switch#5093",
        cause="`[DONE]` and never a reason",
        does="If every call is a complete object `[DONE]` stands for `tool_calls`. Anything else was cut.",
        forms=(
            chat(WHOLE, DONE, name="complete call", calls=(A,), stop="tool_calls", repairs={"finish_derived": 1}, to=USED),
            chat(OPEN, DONE, name="open call", calls=(CUT,), stop=None, to={"anthropic": failed(Use("a", "f", '{"x":'), error=NO_REASON)}),
            chat(said("Hi"), DONE, name="text", text="Hi", stop=None, to={"anthropic": failed(Text("Hi"), error=NO_REASON, body=CUT_TEXT)}),
        ),
    ),
    Case(
        number=62, refs="livekit/agents#4307; langchainjs#8454; gcli2api#407",
        cause="a call in one frame, and the stop in a later frame without content",
        does="Calls are remembered to the end of the stream.",
        forms=(
            ollama_turn(
                ol.line(tool_calls=[ol.call("f", {"x": 1}, id="a")]), ol.line(), name="Ollama", calls=(A,), stop="tool_calls",
                to={"openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"), **USED},
            ),
            chat(WHOLE, chunk({"content": ""}, "stop"), DONE, name="Chat", calls=(A,), stop="tool_calls", repairs={"stop_with_calls": 1}, to=USED),
            gemini(
                gm.chunk(gm.call("f", {"x": 1}, id="a")), gm.STOP, name="Gemini", calls=(A,), stop="tool_calls",
                to={
                    "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls"),
                    "gemini": written(Use("a", "f", '{"x":1}'), stop="STOP"),
                },
            ),
        ),
    ),
    Case(
        number=63, refs="BerriAI/litellm#27139, #19121",
        cause="text behind a call and its reason",
        does="Only the terminator or the end of the input ends a stream: the text is read, and keeps its place where the dialect has one.",
        forms=(
            chat(
                calls(call(0, "a", "f", '{"x":1}'), finish="tool_calls"), said("Hi"), STOP, DONE, text="Hi", calls=(A,), stop="tool_calls", repairs={"stop_conflict": 1},
                to={
                    "anthropic": messages(Use("a", "f", '{"x":1}'), Text("Hi"), stop="tool_use"),
                    "openai-chat": written(Text("Hi"), Use("a", "f", '{"x":1}'), stop="tool_calls", losses={"block_order": 1}),
                },
            ),
        ),
    ),
    Case(
        number=64, refs="CommandCodeAI/command-code#785; agent-afk#635; omnigent#1118, #1189; hermes#69442",
        cause="the input ends inside a call, without `[DONE]`",
        does="The stream is cut and says so; the call is `truncated`, and nothing is put in the place of its text.",
        forms=(
            chat(
                OPEN, name="open text", calls=(CUT,), stop=None,
                to={"anthropic": failed(Use("a", "f", '{"x":'), error=NO_REASON), "openai-chat": failed(Use("a", "f", '{"x":'), error=NO_REASON)},
            ),
            chat(
                calls(call(0, "a", "f", "")), name="no text yet", calls=(Call("f", "", "truncated", id="a"),), stop=None,
                to={"anthropic": failed(Use("a", "f", ""), error=NO_REASON), "ollama": failed(error=NO_REASON, losses={"call_withheld": 1}, withheld=("",))},
            ),
            chat(
                sse(OPEN, calls(call(0, arguments="1}")))[:-9], name="inside a frame", calls=(CUT,), stop=None,
                to={"anthropic": failed(Use("a", "f", '{"x":'), error=f"{NO_REASON} (cut inside a frame)")},
            ),
        ),
    ),
    Case(
        number=65, refs="NVIDIA/TensorRT-LLM#18289",
        cause="the input ends without a reason and without `[DONE]`",
        does="No `message_stop` is made of it, and no `end_turn`: an error ends the translation.",
        forms=(
            chat(
                said("Hi"), text="Hi", stop=None,
                to={"anthropic": failed(Text("Hi"), error=NO_REASON, body=CUT_TEXT, lacks=(b"message_stop", b"end_turn")), "ollama": failed(Text("Hi"), error=NO_REASON)},
            ),
        ),
    ),
    Case(
        number=66, refs="BerriAI/litellm#32686",
        cause="blocks of content without the events that end a message",
        does="Neither a reason nor usage is made up.",
        forms=(
            anthropic(
                am.START, *am.block(0, "Hi"), text="Hi", stop=None,
                to={"openai-chat": failed(Text("Hi"), error=NO_REASON, lacks=(b"usage", b'"finish_reason":"')), "ollama": failed(Text("Hi"), error=NO_REASON, lacks=(b"_count",))},
            ),
            bedrock(
                br.START, *br.tool(0, "a", "f", '{"x":1}'), name="no messageStop", calls=(Call("f", '{"x":1}', id="a"),), stop=None,
                to={
                    "openai-chat": failed(Use("a", "f", '{"x":1}'), error=NO_REASON, lacks=(b"usage", b'"finish_reason":"')),
                    "bedrock": failed(Use("a", "f", '{"x":1}'), error=NO_REASON, lacks=(b"messageStop", b"metadata")),
                },
            ),
        ),
    ),
    Case(
        number=67, refs="earendil-works/pi#6226, #6225, #5793",
        cause="a complete call, then the end without a reason",
        does="The end of the input is no end of the message: the call is not handed out as finished. `LENIENT` takes it at a clean end, counted.",
        forms=(
            chat(
                WHOLE, calls=(Call("f", '{"x":1}', "truncated", id="a"),), stop=None,
                to={"anthropic": failed(Use("a", "f", '{"x":1}'), error=NO_REASON), "ollama": failed(error=NO_REASON, losses={"call_withheld": 1}, withheld=('{"x":1}',))},
            ),
        ),
    ),
    Case(
        number=68, refs="decolua/9router#2193",
        cause="the terminator of another dialect",
        does="Each dialect gets its own: `[DONE]` is written to Chat alone, and behind the end of another dialect it is passed over.",
        forms=(
            chat(
                said("Hi"), STOP, DONE, text="Hi",
                to={"anthropic": messages(Text("Hi"), lacks=(b"[DONE]",)), "ollama": written(Text("Hi"), lacks=(b"[DONE]", b"data:")), "gemini": written(Text("Hi"), stop="STOP", lacks=(b"[DONE]",))},
            ),
            message(*am.block(0, "Hi"), text="Hi", to={"openai-chat": written(Text("Hi"), holds=(b"data: [DONE]\n\n",), lacks=(b"message_stop",))}),
            anthropic(
                named(am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP) + b"data: [DONE]\n\n", name="[DONE] behind message_stop", text="Hi", repairs={"foreign_terminator": 1},
                to={"openai-chat": written(Text("Hi")), "anthropic": messages(Text("Hi"), usage={"input_tokens": 9, "output_tokens": 4})},
            ),
            gemini(
                gm.events(gm.chunk(gm.text("Hi")), gm.STOP) + b"data: [DONE]\n\n", name="[DONE] behind Gemini", text="Hi", repairs={"foreign_terminator": 1},
                to={"openai-chat": written(Text("Hi")), "gemini": written(Text("Hi"), stop="STOP", lacks=(b"[DONE]",))},
            ),
        ),
    ),
)  # fmt: skip
