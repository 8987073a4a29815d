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
        cause="the stop reason is `stop`, but the response has tool calls",
        does="If the response has calls, streamkit changes a natural stop to `tool_calls`.",
        forms=(
            chat(WHOLE, STOP, DONE, calls=(A,), stop="tool_calls", repairs={"stop_with_calls": 1}, to={**USED, "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}),
        ),
    ),
    Case(
        number=53, refs="BerriAI/litellm#34692, #34718; strands harness-sdk#1827, #1810; octo-agent#647",
        cause="the stop reason is `end_turn`, although the response has a `tool_use` block",
        does="streamkit changes the stop reason to `tool_use`. Anthropic's clients also get this reason if streamkit writes the stream again.",
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
        cause="the stop reason is `tool_calls` or `tool_use`, but the response has no call",
        does="streamkit changes the reason to a natural stop. Otherwise a client would wait for a call.",
        forms=(
            chat(said("Hi"), CALLED, DONE, text="Hi", repairs={"calls_without_call": 1}, to={"anthropic": messages(Text("Hi"))}),
            message(*am.block(0, "Hi"), reason="tool_use", text="Hi", repairs={"calls_without_call": 1}, to={"openai-chat": written(Text("Hi"))}),
        ),
    ),
    Case(
        number=55, refs="vllm#9053, #46303",
        cause="the token limit truncates a call, but the server reports `tool_calls`",
        does="The call gets the verdict `truncated`, and the stop reason is `length`, whether or not the server also reports it. Some SDKs accept half of an object as a whole object, and would run the call.",
        forms=(
            calling(
                OPEN, name="tool_calls alone", calls=(CUT,), stop="length", repairs={"stop_conflict": 1},
                to={
                    "anthropic": messages(Use("a", "f", '{"x":'), stop="max_tokens"),
                    "bedrock": written(Use("a", "f", '{"x":'), stop="max_tokens"),
                    "gemini-interactions": written(Use("a", "f", '{"x":'), stop="incomplete"),
                    "openai-responses": written(Use("a", "f", '{"x":'), stop="max_output_tokens"),
                    "ollama": written(stop="length", losses={"call_withheld": 1}, withheld=('{"x":',)),
                },
            ),
            chat(OPEN, STOP, DONE, name="stop alone", calls=(CUT,), stop="length", repairs={"stop_conflict": 1}, to={"anthropic": messages(Use("a", "f", '{"x":'), stop="max_tokens")}),
            message(*am.tool(0, "a", "f", '{"x":'), reason="tool_use", name="a block that Claude ended", calls=(CUT,), stop="length", repairs={"stop_conflict": 1}, to={"openai-chat": written(Use("a", "f", '{"x":'), stop="length")}),
            chat(
                OPEN, CALLED, LENGTH, DONE, name="both", calls=(CUT,), stop="length", repairs={"stop_conflict": 1},
                to={"anthropic": messages(Use("a", "f", '{"x":'), stop="max_tokens")},
            ),
        ),
    ),
    Case(
        number=56, refs="factory-droid-openai#33; experiential#757; rig#2235",
        cause="the stop reason is `length`, and the arguments of a call are incomplete",
        does="The stop reason stays `length`, and the call gets the verdict `truncated`. The response is not an error.",
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
        cause="`finish_reason` is an empty string in every chunk",
        does="streamkit reads a blank reason as missing, and uses only a real reason.",
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
        cause="one chunk has the stop reason `tool_calls`, and a later chunk has `stop`",
        does="streamkit writes one stop reason. The strongest reason wins (here `tool_calls`), in whatever order the reasons arrive.",
        forms=(
            chat(WHOLE, CALLED, STOP, DONE, name="tool_calls first", calls=(A,), stop="tool_calls", repairs={"stop_conflict": 1}, to={**USED, "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")}),
            chat(WHOLE, STOP, CALLED, DONE, name="stop first", calls=(A,), stop="tool_calls", repairs={"stop_conflict": 1}, to=USED),
        ),
    ),
    Case(
        number=59, refs="vllm#10781, #44348, #10398, #9693",
        cause="the stop reason arrives before the last fragment of a call",
        does="The stop reason does not end the call. streamkit adds the fragment to the call, and writes the stop reason last.",
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
        cause="a call and the stop reason are in one chunk, or more arguments follow after that chunk",
        does="streamkit reads the calls of a chunk before its stop reason, and continues to read after the stop reason.",
        forms=(
            chat(calls(call(0, "a", "f", '{"x":1}'), finish="tool_calls"), DONE, name="one chunk", calls=(A,), stop="tool_calls", to=USED),
            chat(calls(call(0, "a", "f", '{"x":'), finish="tool_calls"), calls(call(0, arguments="1}")), DONE, name="and text behind", calls=(A,), stop="tool_calls", to=USED),
        ),
    ),
    Case(
        number=61, refs="CLIProxyAPI#5308, #5310; cc-switch#5093",
        cause="`[DONE]` arrives, but the stream had no stop reason",
        does="If there are calls, and the arguments of each are a complete object, streamkit uses the reason `tool_calls`. Otherwise the stream counts as interrupted.",
        forms=(
            chat(WHOLE, DONE, name="complete call", calls=(A,), stop="tool_calls", repairs={"finish_derived": 1}, to=USED),
            chat(OPEN, DONE, name="open call", calls=(CUT,), stop=None, to={"anthropic": failed(Use("a", "f", '{"x":'), error=NO_REASON)}),
            chat(said("Hi"), DONE, name="text", text="Hi", stop=None, to={"anthropic": failed(Text("Hi"), error=NO_REASON, body=CUT_TEXT)}),
        ),
    ),
    Case(
        number=62, refs="livekit/agents#4307; langchainjs#8454; gcli2api#407",
        cause="a call is in one frame, and the stop reason is in a later frame without content",
        does="streamkit remembers the calls until the stream ends, so the stop reason becomes `tool_calls`.",
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
        cause="text follows a call and the stop reason",
        does="Only the terminator or the end of the input ends a stream, so streamkit reads the text. The text stays after the call if the client's dialect keeps the order of text and calls.",
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
        does="streamkit reports an interrupted stream. The call gets the verdict `truncated`, and streamkit does not replace its arguments.",
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
        cause="the input ends without a stop reason and without `[DONE]`",
        does="The translated stream ends with an error. This stream contains neither `message_stop` nor `end_turn`.",
        forms=(
            chat(
                said("Hi"), text="Hi", stop=None,
                to={"anthropic": failed(Text("Hi"), error=NO_REASON, body=CUT_TEXT, lacks=(b"message_stop", b"end_turn")), "ollama": failed(Text("Hi"), error=NO_REASON)},
            ),
        ),
    ),
    Case(
        number=66, refs="BerriAI/litellm#32686",
        cause="content blocks arrive, but not the events that end a message",
        does="streamkit invents no stop reason and no usage. Its output ends with an error.",
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
        cause="a complete call arrives, and then the stream ends without a stop reason",
        does="The end of the input does not end the message, so streamkit does not emit the call as finished. With the policy `LENIENT`, streamkit accepts the call if the stream ended cleanly, and counts a repair.",
        forms=(
            chat(
                WHOLE, calls=(Call("f", '{"x":1}', "truncated", id="a"),), stop=None,
                to={"anthropic": failed(Use("a", "f", '{"x":1}'), error=NO_REASON), "ollama": failed(error=NO_REASON, losses={"call_withheld": 1}, withheld=('{"x":1}',))},
            ),
        ),
    ),
    Case(
        number=68, refs="decolua/9router#2193",
        cause="a stream ends with the terminator of another dialect",
        does="streamkit writes the terminator of the client's dialect. If the dialect of a stream has no `[DONE]`, streamkit ignores a `[DONE]` after the end.",
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
