"""Cases 277 to 281: what reports of 2025 and 2026 broke that no earlier case had."""

from __future__ import annotations

from typing import Any

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Thinking, Use
from tests.vectors.field.shapes import (
    anthropic,
    bedrock,
    calling,
    chat,
    failed,
    form,
    gemini,
    message,
    messages,
    ollama,
    responses,
    written,
)
from tests.vectors.openai_chat import DONE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call, named, sse

A = Call("f", '{"x":1,"y":2}', id="a")
NAMED = calls(call(0, "a", "f", ""))
#: One call, in the dialect of most clients.
CALLED = {"anthropic": messages(Use("a", "f", A.arguments), stop="tool_use")}
NESTED = Call("f", '{"not":{"not":1}}', id="a")
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": ""}
ITEM_DONE = {**ITEM, "arguments": A.arguments}


def grown(*texts: str) -> tuple[dict[str, object], ...]:
    return (NAMED, *[calls(call(0, arguments=text)) for text in texts])


def arguments(kind: str, **fields: str) -> dict[str, object]:
    return {"type": f"response.function_call_arguments.{kind}", "item_id": "fc_1", "output_index": 0, **fields}


def untyped(*payloads: dict[str, Any]) -> bytes:
    """Events whose type stands on their ``event:`` line alone."""
    return b"".join(
        b"event: %b\n%b" % (payload["type"].encode(), sse({k: v for k, v in payload.items() if k != "type"}))
        for payload in payloads
    )


def bare(event: dict[str, Any]) -> dict[str, Any]:
    """An event with the members of its response in itself."""
    return {**event["response"], **{name: value for name, value in event.items() if name != "response"}}


def thought(text: str) -> dict[str, Any]:
    return chunk({"content": text, "extra_content": {"google": {"thought": True}}})


HI_ITEM = rs.message(0, "Hi")
HI = written(Text("Hi"), stop="stop")
QUOTA = {"message": "too many", "type": "too_many_requests_error", "param": "quota", "code": "request_quota_exceeded"}
BUSY = {"code": 503, "message": "busy", "status": "UNAVAILABLE"}


CASES = (
    Case(
        number=277,
        refs="NousResearch/hermes-agent#35718; langchain-ai/langgraphjs#2697; vercel/ai#12052, #15888; anomalyco/opencode#12425, #17339; vllm-project/vllm#42167; sgl-project/sglang#23071; saberjack/SHTUCodeProxy#1",
        cause="each fragment, or only the last one, begins with all the argument text so far, and then adds more",
        does='A fragment is a repetition if it begins with all arguments so far, and could not follow them as valid JSON. From a repetition, streamkit adds only the new part. If both readings are possible (`{"not":`, then `{"not":{`), the next fragment decides, or the reading that gives a complete object wins.',
        forms=(
            calling(*grown("{", '{"x', '{"x":1,"y"', A.arguments), name="from the first", calls=(A,), repairs={"arguments_cumulative": 3}, to=CALLED),
            calling(*grown('{"x":', '{"x":1,"y', A.arguments), name="cut behind a colon", calls=(A,), repairs={"arguments_cumulative": 2}, to=CALLED),
            calling(*grown('{"x":', A.arguments), name="cut behind a colon, and no more", calls=(A,), repairs={"arguments_cumulative": 1}, to=CALLED),
            calling(*grown('{"x":1', ',"y"', A.arguments, A.arguments), name="at the end", calls=(A,), repairs={"arguments_cumulative": 1, "arguments_repeated": 1}, to=CALLED),
            calling(*grown('{"x":1, "y":', " 2", '{"x": 1, "y": 2}'), name="in other white space", calls=(Call("f", '{"x":1, "y": 2}', id="a"),), repairs={"arguments_cumulative": 1}, to={"anthropic": messages(Use("a", "f", '{"x":1, "y": 2}'), stop="tool_use")}),
            calling(*grown('{"not":', '{"not":1', "}}"), name="nested, by the book", calls=(NESTED,), to={"anthropic": messages(Use("a", "f", NESTED.arguments), stop="tool_use")}),
            calling(*grown('{"not":', '{"not":1}}'), name="nested, to the end", calls=(NESTED,), to={"anthropic": messages(Use("a", "f", NESTED.arguments), stop="tool_use")}),
            message(
                *am.tool(0, "a", "f", '{"x":1', A.arguments), reason="tool_use", name="Anthropic", calls=(A,), repairs={"arguments_cumulative": 1}, stop="tool_calls",
                to={"openai-chat": written(Use("a", "f", A.arguments), stop="tool_calls")},
            ),
            bedrock(
                br.START, *br.tool(0, "a", "f", '{"x', A.arguments), br.finish("tool_use"), name="Bedrock", calls=(A,), repairs={"arguments_cumulative": 1}, stop="tool_calls",
                to={"openai-chat": written(Use("a", "f", A.arguments), stop="tool_calls")},
            ),
            responses(
                rs.START, {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
                arguments("delta", delta='{"x":'), arguments("delta", delta=A.arguments), arguments("done", arguments=A.arguments),
                {"type": "response.output_item.done", "output_index": 0, "item": ITEM_DONE}, rs.last("completed", {"item": ITEM_DONE}),
                name="Responses", calls=(A,), repairs={"arguments_cumulative": 1}, stop="tool_calls", to={"openai-chat": written(Use("a", "f", A.arguments), stop="tool_calls")},
            ),
        ),
    ),
    Case(
        number=278,
        refs="7836246/cursor2api#115, #116; BerriAI/litellm#22102; VaalaCat/ai-gateway#9",
        cause="the type of an event is only in its `event:` line, or the event itself has the members of the `response` object",
        does="If the payload has no type, streamkit takes the type from the `event:` line. If the event itself has members of the response, streamkit reads them as if they were in `response`.",
        forms=(
            responses(
                untyped(rs.START, *HI_ITEM, rs.last("completed", HI_ITEM[-1])), name="Responses", text="Hi", repairs={"event_type_missing": 8},
                to={"openai-chat": HI},
            ),
            responses(
                named(bare(rs.START), *HI_ITEM, bare(rs.last("completed", HI_ITEM[-1]))), name="a response in its events", text="Hi", repairs={"response_bare": 2},
                to={"openai-chat": HI},
            ),
            responses(
                untyped(bare(rs.START), *HI_ITEM, bare(rs.last("completed", HI_ITEM[-1]))), name="both", text="Hi", repairs={"event_type_missing": 8, "response_bare": 2},
                to={"openai-chat": HI},
            ),
            responses(named(bare(rs.last("completed", HI_ITEM[-1]))), name="nothing but the last event", text="Hi", repairs={"response_bare": 1, "block_unopened": 1}, to={"openai-chat": HI}),
            anthropic(untyped(am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP), name="Anthropic", text="Hi", repairs={"event_type_missing": 6}, to={"openai-chat": HI}),
            form("cohere", untyped(co.START, *co.block(0, "Hi"), co.finish()), "Cohere", {"openai-chat": HI}, {"text": "Hi", "repairs": {"event_type_missing": 5}}),
        ),
    ),
    Case(
        number=279,
        refs="openai/codex#24973; explyt/explyt#35; nugget/thane-ai-agent#1395; BerriAI/litellm#23711; vercel/ai#11783",
        cause="an error has no `error` object around it, or is next to an empty `error` member, so its message is lost",
        does="A message together with the type or the code of an error counts as an error. If a failed response has no message, streamkit uses the error next to the response.",
        forms=(
            responses(
                rs.START, {"type": "response.failed", "response": {**rs.RESPONSE, "status": "failed", "error": None}, "error": {"message": "busy", "code": "upstream_error"}},
                name="beside the response", stop=None, provider_error="busy", repairs={"error_shape": 1}, to={"openai-chat": failed(error="busy"), "anthropic": failed(error="busy", losses={"error_detail": 1})},
            ),
            responses(rs.START, QUOTA, name="bare, Responses", stop=None, provider_error="too many", repairs={"error_shape": 1}, to={"openai-chat": failed(error="too many")}),
            chat(said("Hi"), QUOTA, name="bare, Chat", text="Hi", stop=None, provider_error="too many", repairs={"error_shape": 1}, to={"anthropic": failed(Text("Hi"), error="too many", losses={"error_detail": 1})}),
            chat(QUOTA, name="bare and first", stop=None, provider_error="too many", repairs={"error_shape": 1}, to={"anthropic": failed(error="too many", losses={"error_detail": 1})}),
            anthropic(am.START, *am.block(0, "Hi"), QUOTA, name="bare, Anthropic", text="Hi", stop=None, provider_error="too many", repairs={"error_shape": 1}, to={"openai-chat": failed(Text("Hi"), error="too many")}),
            anthropic(
                named(am.START, *am.block(0, "Hi")) + b'event: error\ndata: {"message":"busy"}\n\n', name="named by its line", text="Hi", stop=None, provider_error="busy", repairs={"error_shape": 1},
                to={"openai-chat": failed(Text("Hi"), error="busy")},
            ),
            gemini(gm.chunk(gm.text("Hi")), BUSY, name="bare, Gemini", text="Hi", stop=None, provider_error="busy", repairs={"error_shape": 1}, to={"openai-chat": failed(Text("Hi"), error="busy")}),
            ollama(ol.line("Hi"), BUSY, name="bare, Ollama", text="Hi", stop=None, provider_error="busy", repairs={"error_shape": 1}, to={"openai-chat": failed(Text("Hi"), error="busy")}),
            form(
                "cohere", named(co.START, *co.block(0, "Hi"), QUOTA), "bare, Cohere", {"openai-chat": failed(Text("Hi"), error="too many")},
                {"text": "Hi", "stop": None, "provider_error": "too many", "repairs": {"error_shape": 1}},
            ),
        ),
    ),
    Case(
        number=280,
        refs="noho/dayu-agent#45; decolua/9router#1749, #1752; BerriAI/litellm#11000",
        cause="the text contains thinking. The thinking is marked in `extra_content`, and is between `<thought>` tags (Gemini's OpenAI endpoint)",
        does="streamkit reads the marked text as reasoning. streamkit removes the tags, because the model did not write them. Unmarked text stays unchanged.",
        forms=(
            chat(
                thought("<thought>Let me"), thought(" see."), said("</thought>Hi"), said("!"), STOP, DONE, name="streamed", text="Hi!", reasoning="Let me see.", repairs={"thinking_in_text": 1},
                to={"anthropic": messages(Thinking("Let me see."), Text("Hi!"))},
            ),
            chat(thought("Let me see."), said("Hi"), STOP, DONE, name="without tags", text="Hi", reasoning="Let me see.", repairs={"thinking_in_text": 1}, to={"anthropic": messages(Thinking("Let me see."), Text("Hi"))}),
            chat(thought("<thought>Let me see.</thought>Hi"), STOP, DONE, name="in one", text="Hi", reasoning="Let me see.", repairs={"thinking_in_text": 1}, to={"anthropic": messages(Thinking("Let me see."), Text("Hi"))}),
            chat(said("</thought>"), STOP, DONE, name="no mark", text="</thought>", to={"anthropic": messages(Text("</thought>"))}),
        ),
    ),
)  # fmt: skip
