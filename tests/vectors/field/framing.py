"""Cases 94 to 107: event streams and lines."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import ollama as ol
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import NO_REASON, anthropic, chat, failed, messages, ollama_turn, written
from tests.vectors.openai_chat import DONE, ROLE, STOP, call, calls, said
from tests.vectors.vector import Call, sse

HI = {"anthropic": messages(Text("Hi")), "ollama": written(Text("Hi"))}
TURN = sse(said("Hi"), STOP, DONE)
MESSAGE = am.named(am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP)
SEPARATORS = "a\u2028b\u2029c\x85d"
WORDS = "日本語 ✅ \N{FAMILY} żółć"
LONG = "x" * 600 * 1024

CASES = (
    Case(
        number=94, refs="codex-lb#1010; dify#39008; evalscope#1642; httpx-sse#34, #37; mcp python-sdk#1356; kagent#1480; sseclient#9; OpenSandbox#1444",
        cause="the JSON contains a raw U+2028, U+2029 or U+0085, which many line readers take for the end of a line",
        does="For streamkit, only CR, LF or CRLF ends a line. In its output, streamkit escapes the three characters.",
        forms=(
            chat(
                said(SEPARATORS), calls(call(0, "a", "f", f'{{"x":"{SEPARATORS}"}}'), finish="tool_calls"), DONE, name="Chat",
                text=SEPARATORS, calls=(Call("f", f'{{"x":"{SEPARATORS}"}}', id="a"),), stop="tool_calls",
                to={
                    "anthropic": messages(Text(SEPARATORS), Use("a", "f", f'{{"x":"{SEPARATORS}"}}'), stop="tool_use", lacks=tuple(c.encode() for c in "\u2028\u2029\x85")),
                    "ollama": written(
                        Text(SEPARATORS), Use(None, "f", '{"x":"a\\u2028b\\u2029c\\u0085d"}'), losses={"call_id": 1}, lacks=tuple(c.encode() for c in "\u2028\u2029\x85")
                    ),
                },
            ),
            ollama_turn(ol.line(SEPARATORS), name="Ollama", text=SEPARATORS, to={"openai-chat": written(Text(SEPARATORS))}),
        ),
    ),
    Case(
        number=95, refs="OpenMetadata#29532",
        cause="UTF-8 bytes contain a line end if they are read as Latin-1. For example, the last byte of ✅ is 0x85",
        does="streamkit always reads bytes as UTF-8.",
        forms=(chat(said("✅"), STOP, DONE, text="✅", to={"anthropic": messages(Text("✅")), "ollama": written(Text("✅"))}),),
    ),
    Case(
        number=96, refs="vercel/ai#6197, #6200; withastro/flue#216; ccs#1359; xuan#194; better-ccflare#454; deepseek-pp#471",
        cause="lines end with CRLF or CR, and a CR and its LF arrive in two reads",
        does="A CR ends its line immediately. If the next byte is an LF, this LF belongs to the same line end.",
        forms=(
            chat(TURN.replace(b"\n", b"\r\n"), name="CRLF", text="Hi", to=HI),
            chat(TURN.replace(b"\n", b"\r"), name="CR", text="Hi", to=HI),
            anthropic(
                b"".join(am.named(payload).replace(b"\n", end) for payload, end in zip((am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP), (b"\r\n", b"\r", b"\n") * 2, strict=True)), name="mixed",
                text="Hi", to={"openai-chat": written(Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=97, refs="claude-code-router#1672; librefang#3448; aisix#111; nuphus#41; litellm-rs#1180; braintrust#2091",
        cause="a character of several bytes is split between two reads",
        does="streamkit collects all bytes of a payload, then decodes them once.",
        forms=(
            chat(said(WORDS), STOP, DONE, name="Chat", text=WORDS, to={"anthropic": messages(Text(WORDS)), "ollama": written(Text(WORDS))}),
            ollama_turn(ol.line(WORDS), name="Ollama", text=WORDS, to={"openai-chat": written(Text(WORDS))}),
        ),
    ),
    Case(
        number=98, refs="openai-python#498, #559; freellmapi#1087; Clawith#106; nullclaw#509",
        cause="`data:` has no space after it",
        does="streamkit reads `data:` with or without the space. streamkit always writes the space.",
        forms=(chat(TURN.replace(b"data: ", b"data:"), text="Hi", to={**HI, "openai-chat": written(Text("Hi"), lacks=(b"data:{",))}),),
    ),
    Case(
        number=99, refs="openai-python#3819; eventsource-parser#41; Effect#6976; assistant-ui#6954; cortex#1034",
        cause="the stream starts with a byte order mark, which may be split between two reads",
        does="streamkit removes this mark.",
        forms=(
            chat(b"\xef\xbb\xbf" + TURN, name="Chat", text="Hi", to={**HI, "openai-chat": written(Text("Hi"), lacks=(b"\xef\xbb\xbf",))}),
            anthropic(
                b"\xef\xbb\xbf" + MESSAGE, name="Anthropic", text="Hi", to={"openai-chat": written(Text("Hi"))}
            ),
        ),
    ),
    Case(
        number=100, refs="openai-python#2722, #3833, #2721, #2933; openai-go#556, #621; httpx-sse#35",
        cause="some events have only `retry:`, `id:` or comment lines, or an empty `data:`",
        does="streamkit ignores these events. streamkit writes no event without data.",
        forms=(
            chat(
                b"retry: 100\n\nid: 1\n\n: there\n\ndata:\n\nevent: ping\n\n" + sse(said("Hi")) + b"data: \n\nid: 2\nretry: 7\n\n" + sse(STOP, DONE),
                text="Hi", to={**HI, "openai-chat": written(Text("Hi"), lacks=(b"retry", b"id: ", b"data: \n"))},
            ),
            anthropic(b"retry: 100\n\nid: 1\n\n: there\n\nevent: ping\n\n" + MESSAGE, name="Anthropic", text="Hi", to={"openai-chat": written(Text("Hi"))}),
            anthropic(
                b"event: ping\ndata:\n\n" + MESSAGE, name="Anthropic with empty data", text="Hi", to={"openai-chat": written(Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=102, refs="mnfst/llm-gateway#2053; routstr#543; opencode#50871",
        cause="a server sends comments as data",
        does="streamkit ignores such data. streamkit does not write received comments again.",
        forms=(
            chat(sse(b": PROCESSING", said("Hi"), b": keepalive", STOP, DONE), name="as data", text="Hi", repairs={"comment_as_data": 2}, to={"anthropic": messages(Text("Hi"), lacks=(b"PROCESSING", b"keepalive"))}),
            anthropic(
                b"data: : keepalive\n\n" + MESSAGE, name="as data in Anthropic", text="Hi", repairs={"comment_as_data": 1}, to={"openai-chat": written(Text("Hi"))},
            ),
            chat(b": PROCESSING\n\n" + TURN, name="as comments", text="Hi", to={"openai-chat": written(Text("Hi"), lacks=(b"PROCESSING",)), **HI}),
        ),
    ),
    Case(
        number=104, refs="openai-python#2796, #2943",
        cause="only the name of an event shows that the event is an error",
        does="When streamkit reads a stream, the event name `error` is enough to recognise the error. For Chat clients, streamkit writes the error into the data of the event.",
        forms=(
            chat(
                sse(said("Hi")) + b'event: error\ndata: {"message":"no more","code":503}\n\n', name="Chat", text="Hi", stop=None, provider_error="no more", repairs={"error_shape": 1},
                to={"anthropic": failed(Text("Hi"), error="no more", losses={"error_detail": 1}, holds=(b'"type":"overloaded_error"',))},
            ),
            anthropic(
                am.START, {"type": "error", "error": {"type": "overloaded_error", "message": "no more"}}, name="Anthropic", stop=None, provider_error="no more",
                to={"openai-chat": failed(error="no more", body=b'data: {"error":{"message":"no more","type":"service_unavailable","param":null,"code":null}}\n\n')},
            ),
        ),
    ),
    Case(
        number=105, refs="aiohttp#4453; Agents-for-python#268, #507; TensorRT-LLM#13952; ansible-ai-connect#2000; aiohttp-sse-client#11",
        cause="a line is longer than the buffer of common line readers",
        does="streamkit does not read line by line. streamkit has its own limits, and an error names the limit that was reached.",
        forms=(chat(said(LONG), STOP, DONE, name="a line of 600 KiB", text=LONG, to={"anthropic": messages(Text(LONG))}),),
    ),
    Case(
        number=106, refs="anarlog#6872; graniet/llm#90; routstr#543",
        cause="events are split between reads, or the last event has no blank line after it",
        does="It does not matter where the bytes are split between reads. If the last event is complete, streamkit keeps the event and counts a repair. If the last event is incomplete, the stream counts as interrupted.",
        forms=(
            chat(sse(said("Hi"), STOP)[:-2], name="without its line end", text="Hi", repairs={"last_event_unterminated": 1}, to=HI),
            chat(sse(said("Hi"), STOP)[:-1], name="without its blank line", text="Hi", repairs={"last_event_unterminated": 1}, to=HI),
            chat(sse(said("Hi"), STOP)[:-9], name="torn", text="Hi", stop=None, to={"anthropic": failed(Text("Hi"), error=f"{NO_REASON} (cut inside a frame)")}),
        ),
    ),
    Case(
        number=107, refs="mozilla any-llm; routstr",
        cause="an event has several `data:` lines",
        does="streamkit joins the lines with LF. streamkit writes each event with one `data:` line.",
        forms=(
            chat(
                sse(ROLE) + sse(said("Hi")).replace(b',"choices"', b',\ndata: "choices"') + sse(STOP, DONE), text="Hi",
                to={**HI, "openai-chat": written(Text("Hi"), lacks=(b'\ndata: "choices',))},
            ),
        ),
    ),
)  # fmt: skip
