"""Cases 305 to 314: how an answer ends that was refused, whose call is open, or in which others speak than the model."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from tests.vectors import ag_ui as ag
from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import gemini_interactions as gi
from tests.vectors import mistral as mi
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Form, Output, Text, Thinking, Use
from tests.vectors.field.shapes import (
    anthropic,
    bedrock,
    chat,
    cohere,
    form,
    gemini,
    messages,
    ollama_turn,
    responses_turn,
    written,
)
from tests.vectors.openai_chat import CALLED, DONE, ROLE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call, sse

A, USE = Call("f", '{"x":1}', id="a"), Use("a", "f", '{"x":1}')
DETAILS = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
WHY = Text("Not this.")
PLACES = '{"at":["Oslo","Bergen"]}'
#: A call of which nothing but its name came, and the stream of Chat without it.
NAMED, CUT = Call("f", "", "truncated", id="a"), written(stop="length", losses={"call_withheld": 1}, withheld=("",))
OPEN = {"block_unclosed": 1, "stop_conflict": 1}


def refused(details: dict[str, Any] | None = None) -> dict[str, Any]:
    """The end of a message of Claude's that a classifier stopped."""
    end = am.finish("refusal")
    return {**end, "delta": {**end["delta"], "stop_details": details}}


TOOLS, AGAIN = chunk({"role": "tool", "content": "RAW"}), chunk({"role": "assistant", "content": "Ho"})


def partial(path: str, value: str, *, more: bool = False, name: str | None = None) -> dict[str, Any]:
    """A part of a call of Gemini's with a string, of which more comes or not; more of the call does."""
    entry = {"jsonPath": path, "stringValue": value, **({"willContinue": True} if more else {})}
    return gm.call(name, partialArgs=[entry], willContinue=True)


#: Parts of a call of Gemini's whose arguments can't be read.
UNREADABLE = {
    "a path without its root": gm.partial(("a.b", "v")),
    "an index from the end": gm.partial(("$.a[-1]", "v")),
    "a large index": gm.partial(("$.a[99999999]", "v")),
    "the root": gm.partial(("$", "v")),
    "a number in a text": gm.call(partialArgs=[{"jsonPath": "$.a", "stringValue": 1}], willContinue=True),
    "no list": gm.call(partialArgs="v", willContinue=True),
}


def old(kind: str, **members: Any) -> dict[str, Any]:
    return {"event_type": kind, **members}


def old_delta(index: int, **delta: Any) -> dict[str, Any]:
    return old("content.delta", index=index, delta=delta)


def older(*payloads: Any, name: str, to: dict[str, Output], status: str = "completed", **expected: Any) -> Form:
    """An interaction as it was streamed before its steps."""
    start = old("interaction.start", interaction=gi.interaction("in_progress"))
    end = old("interaction.complete", interaction=gi.interaction(status, usage=gi.USAGE))
    return form("gemini-interactions", sse(start, *payloads, end), name, to, expected)


def never_available(reason: str) -> bytes:
    """A call of the AI SDK with whole arguments, which no chunk makes available."""
    return sse(
        {"type": "start"},
        {"type": "tool-input-start", "toolCallId": "a", "toolName": "f"},
        {"type": "tool-input-delta", "toolCallId": "a", "inputTextDelta": USE.arguments},
        {"type": "finish", "finishReason": reason},
    )


NOT_AVAILABLE = {
    "openai-chat": written(USE, stop="length"),
    "ai-sdk": written(USE, stop="length", lacks=(b"tool-input-available",)),
}


def counted(*losses: str) -> dict[str, int]:
    return {"stop_reason": 1, **dict.fromkeys(losses, 1)}


CASES = (
    Case(
        number=305,
        refs="aaif-goose/goose#9724; NousResearch/hermes-agent#108682; tetsuo-ai/agenc-core#2402",
        cause="a classifier ends the response: before any text, within the text, or after a complete call",
        does=(
            "No client gets a natural stop, or a call that the client would run. In dialects with refusals, Claude's explanation becomes a refusal. In other dialects, it becomes text."
        ),
        forms=(
            anthropic(
                am.START,
                refused(DETAILS),
                am.STOP,
                name="nothing but the reason",
                stop="refusal",
                to={
                    "openai-responses": written(
                        WHY, stop="content_filter", losses=counted("metadata", "usage_unknown")
                    ),
                    "openai-chat": written(WHY, stop="content_filter", losses=counted("metadata")),
                    "ollama": written(WHY, stop="length", losses=counted("metadata", "refusal_as_text")),
                    "ai-sdk": written(WHY, stop="content-filter", losses=counted("metadata", "refusal_as_text")),
                    "anthropic": Output(stop="refusal", holds=(b'"explanation":"Not this."',)),
                },
            ),
            anthropic(
                am.START,
                *am.block(0, "One"),
                *am.tool(1, "a", "f", '{"x":1}'),
                refused(DETAILS),
                am.STOP,
                name="behind text and a whole call",
                text="One",
                calls=(A,),
                stop="refusal",
                to={
                    "openai-responses": written(
                        Text("One"), USE, WHY, stop="content_filter", losses=counted("metadata", "usage_unknown")
                    ),
                    "openai-chat": written(
                        Text("OneNot this."), USE, stop="content_filter", losses=counted("block_order", "metadata")
                    ),
                    "gemini": written(
                        Text("One"), USE, WHY, stop="SAFETY", losses=counted("metadata", "refusal_as_text")
                    ),
                    "bedrock": written(
                        Text("One"), USE, WHY, stop="content_filtered", losses=counted("metadata", "refusal_as_text")
                    ),
                    "cohere": written(
                        Text("One"),
                        USE,
                        WHY,
                        stop="MAX_TOKENS",
                        losses=counted("block_order", "metadata", "refusal_as_text"),
                    ),
                    "gemini-interactions": written(
                        Text("One"), USE, WHY, stop="incomplete", losses=counted("metadata", "refusal_as_text")
                    ),
                    "ag-ui": Output(
                        said=(Text("One"), USE, WHY),
                        stop="refusal",
                        losses={"metadata": 1, "refusal_as_text": 1},
                        holds=(b"this tool call was not run, because the response was refused",),
                    ),
                    "ai-sdk": Output(
                        said=(Text("One"), USE, WHY),
                        stop="content-filter",
                        losses=counted("call_withheld", "metadata", "refusal_as_text"),
                        withheld=('{"x":1}',),
                        lacks=(b"tool-input-available",),
                    ),
                },
            ),
            anthropic(
                am.START,
                *am.block(0, "One"),
                refused(),
                am.STOP,
                name="without details",
                text="One",
                stop="refusal",
                to={
                    "openai-responses": written(Text("One"), stop="content_filter", losses=counted("usage_unknown")),
                    "openai-chat": written(Text("One"), stop="content_filter", losses=counted()),
                    "mistral": written(Text("One"), stop="length", losses=counted()),
                },
            ),
            anthropic(
                am.START,
                am.begin(0, "tool_use", id="a", name="f", input={}),
                refused(),
                am.STOP,
                name="before the arguments of a call",
                calls=(Call("f", "", "truncated", id="a"),),
                stop="refusal",
                repairs={"block_unclosed": 1},
                to={
                    "openai-chat": written(stop="content_filter", losses=counted("call_withheld"), withheld=("",)),
                    "anthropic": Output(stop="refusal", losses={"call_withheld": 1}, withheld=("",)),
                },
            ),
            bedrock(
                br.START,
                *br.tool(0, "a", "f", '{"x":1}'),
                br.finish("guardrail_intervened"),
                br.counts(),
                name="a guardrail of Bedrock's",
                calls=(A,),
                stop="content_filter",
                to={
                    "openai-responses": written(USE, stop="content_filter", losses={"metadata": 1, "usage_unknown": 1}),
                    "ollama": written(Use(None, "f", '{"x":1}'), stop="length", losses=counted("call_id", "metadata")),
                    "ai-sdk": written(
                        USE, stop="content-filter", losses={"call_withheld": 1, "metadata": 1}, withheld=('{"x":1}',)
                    ),
                },
            ),
            gemini(
                gm.chunk(gm.text("One")),
                gm.chunk(finish="PROHIBITED_CONTENT"),
                name="a filter of Google's",
                text="One",
                stop="content_filter",
                to={
                    "openai-responses": written(Text("One"), stop="content_filter"),
                    "cohere": written(Text("One"), stop="MAX_TOKENS", losses=counted()),
                    "mistral": written(Text("One"), stop="length", losses=counted()),
                },
            ),
        ),
    ),
    Case(
        number=306,
        refs="vercel/ai#14358",
        cause="the model stops by itself, but a call is still open",
        does=(
            "The call is complete if its text is one whole object. In Gemini, it is also complete if all its values are whole: streamkit then closes the object. Otherwise the call is truncated, also if a part of its arguments cannot be read. No client gets an empty object for the call. In the AI SDK, a call that never became available is always truncated. In the other dialects, an open call with a whole object is complete only after a natural stop or a stop for calls. If no call is left to run, or if the client gets a truncated call, the stop reason is `length`."
        ),
        forms=(
            gemini(
                gm.chunk(gm.partial(name="f")), gm.chunk(partial("$.at[0]", "Os", more=True)), gm.chunk(partial("$.at[0]", "lo")),
                gm.chunk(partial("$.at[1]", "Bergen")), gm.STOP, name="values that are whole", calls=(Call("f", PLACES, id="call_1"),), stop="tool_calls",
                repairs={"block_unclosed": 1}, to={"openai-chat": written(Use("call_1", "f", PLACES), stop="tool_calls")},
            ),
            gemini(
                gm.chunk(gm.partial(name="f")), gm.chunk(partial("$.at", "Os", more=True)), gm.STOP, name="a string that goes on",
                calls=(Call("f", '{"at":"Os', "truncated", id="call_1"),), stop="length", repairs={"block_unclosed": 1, "stop_conflict": 1},
                to={
                    "openai-chat": written(Use("call_1", "f", '{"at":"Os'), stop="length"),
                    "ollama": written(stop="length", losses={"call_withheld": 1, "usage_detail": 1}, withheld=('{"at":"Os',)),
                },
            ),
            gemini(
                gm.chunk(partial("$.at", "Oslo", name="f")), gm.chunk(finish="MAX_TOKENS"), name="values that are whole, at the limit",
                calls=(Call("f", '{"at":"Oslo', "truncated", id="call_1"),), stop="length", to={"openai-chat": written(Use("call_1", "f", '{"at":"Oslo'), stop="length")},
            ),
            gemini(
                gm.chunk(gm.partial(name="f")), gm.STOP, name="a name alone", calls=(Call("f", "", "truncated", id="call_1"),), stop="length", repairs=OPEN,
                to={"openai-chat": CUT, "ollama": written(stop="length", losses={"call_withheld": 1, "usage_detail": 1}, withheld=("",))},
            ),
            *(
                gemini(
                    gm.chunk(gm.call("f", willContinue=True)), gm.chunk(entry), gm.chunk(gm.call()), gm.STOP, name=f"a value that can't be read ({name})",
                    calls=(Call("f", "{", "truncated", id="call_1"),), stop="length", repairs={"field_invalid": 1, "stop_conflict": 1},
                    to={"openai-chat": written(Use("call_1", "f", "{"), stop="length", losses={"unknown_event": 1})},
                )
                for name, entry in UNREADABLE.items()
            ),
            gemini(
                gm.chunk(gm.call("f", willContinue=True)), gm.chunk({"functionCall": 7}), gm.STOP, name="an end that is no object", calls=(Call("f", "{", "truncated", id="call_1"),), stop="length",
                repairs={"field_invalid": 1, "stop_conflict": 1}, to={"openai-chat": written(Use("call_1", "f", "{"), stop="length", losses={"unknown_event": 1})},
            ),
            gemini(
                gm.chunk(gm.partial(("$.a", "x"), ("b", 1), name="f")), gm.STOP, name="a value that can't be read, and no end", calls=(Call("f", '{"a":"x', "truncated", id="call_1"),), stop="length",
                repairs={"field_invalid": 1, **OPEN}, to={"openai-chat": written(Use("call_1", "f", '{"a":"x'), stop="length", losses={"unknown_event": 1})},
            ),
            anthropic(
                am.START, am.begin(0, "tool_use", id="a", name="f", input={}), am.finish("tool_use"), am.STOP, name="a name alone of Claude's",
                calls=(NAMED,), stop="length", repairs=OPEN, to={"openai-chat": CUT, "anthropic": Output(stop="max_tokens", losses={"call_withheld": 1}, withheld=("",))},
            ),
            anthropic(
                am.START, *am.tool(0, "a", "f", '{"x":')[:-1], am.finish("tool_use"), am.STOP, name="half of an object",
                calls=(Call("f", '{"x":', "truncated", id="a"),), stop="length", repairs=OPEN, to={"openai-chat": written(Use("a", "f", '{"x":'), stop="length")},
            ),
            anthropic(
                am.START, *am.tool(0, "a", "f", '{"x":1}')[:-1], am.finish("tool_use"), am.STOP, name="a whole object",
                calls=(A,), stop="tool_calls", repairs={"block_unclosed": 1}, to={"openai-chat": written(USE, stop="tool_calls")},
            ),
            bedrock(
                br.START, br.begin(0, toolUse={"toolUseId": "a", "name": "f"}), br.finish("tool_use"), br.counts(), name="of Bedrock",
                calls=(NAMED,), stop="length", repairs=OPEN, to={"openai-chat": evolve(CUT, losses={"call_withheld": 1, "metadata": 1})},
            ),
            cohere(co.call(0, "a", "f"), reason="TOOL_CALL", name="of Cohere", calls=(NAMED,), stop="length", repairs=OPEN, to={"openai-chat": CUT}),
            responses_turn(rs.call(0, "a", "f")[0], name="of Responses", calls=(NAMED,), stop="length", repairs=OPEN, to={"openai-chat": CUT}),
            form(
                "gemini-interactions", gi.run("", gi.call(0, "a", "f"), **gi.ACTION).body, "of Interactions",
                {"openai-chat": evolve(CUT, losses={"call_withheld": 1, "usage_detail": 1})}, {"calls": (NAMED,), "stop": "length", "repairs": OPEN},
            ),
            form(
                "ag-ui", ag.run("", ag.call("a", "f")).body, "of AG-UI",
                {"openai-chat": evolve(CUT, losses={"call_withheld": 1, "response_fields": 1, "usage_detail": 1})}, {"calls": (NAMED,), "stop": "length", "repairs": OPEN},
            ),
            form(
                "ai-sdk", sse({"type": "start"}, {"type": "tool-input-start", "toolCallId": "a", "toolName": "f"}, {"type": "finish", "finishReason": "tool-calls"}), "of AI SDK",
                {"openai-chat": CUT}, {"calls": (NAMED,), "stop": "length", "repairs": {"stop_conflict": 1}},
            ),
            *(
                form("ai-sdk", never_available(reason), f"never available in AI SDK, {reason}", NOT_AVAILABLE, {"calls": (Call("f", '{"x":1}', "truncated", id="a"),), "stop": "length", "repairs": repairs})
                for reason, repairs in (("tool-calls", {"stop_conflict": 1}), ("other", {"stop_conflict": 1}), ("length", {}))
            ),
            anthropic(
                am.START, *am.tool(0, "a", "f", '{"x":1}')[:-1], am.finish("bored"), am.STOP, name="a whole object, an unknown reason",
                calls=(Call("f", '{"x":1}', "truncated", id="a"),), stop="length", repairs=OPEN, to={"openai-chat": written(USE, stop="length")},
            ),
            anthropic(
                am.START, *am.tool(0, "a", "f", '{"x":1}')[:-1], am.finish("max_tokens"), am.STOP, name="a whole object at the limit",
                calls=(Call("f", '{"x":1}', "truncated", id="a"),), stop="length", repairs={"block_unclosed": 1}, to={"ai-sdk": written(USE, stop="length", lacks=(b"tool-input-available",))},
            ),
        ),
    ),
    Case(
        number=307,
        refs="huggingface/huggingface.js#1473",
        cause="a server runs its tools itself. The server writes the results of the tools, or the next question, into the response under another role",
        does=(
            "Content under another role is not the model's text: streamkit counts a loss for it. After that, the model continues under its own role. If its choice had already ended, the model may continue under a new id."
        ),
        forms=(
            chat(
                ROLE, said("Hi"), TOOLS, said("RAW"), AGAIN, said("!"), STOP, DONE, name="results in Chat", text="HiHo!",
                to={"anthropic": messages(Text("HiHo!"), losses={"unknown_event": 2}), "openai-chat": written(Text("HiHo!"), losses={"unknown_event": 2})},
            ),
            chat(
                ROLE, calls(call(0, "a", "f", '{"x":1}')), CALLED, {**TOOLS, "id": "a"}, {**AGAIN, "id": "c-8"}, {**said("!"), "id": "c-8"},
                {**STOP, "id": "c-8"}, DONE, name="the next completion of a loop", text="Ho!", calls=(A,), stop="tool_calls",
                repairs={"response_restarted": 1, "stop_conflict": 1}, to={"anthropic": messages(USE, Text("Ho!"), stop="tool_use", losses={"unknown_event": 1})},
            ),
            chat(chunk({"role": "user", "content": "RAW"}), AGAIN, STOP, DONE, name="the question first", text="Ho", to={"anthropic": messages(Text("Ho"), losses={"unknown_event": 1})}),
            form("mistral", sse(mi.ROLE, said("Hi"), TOOLS, AGAIN, mi.finish("stop"), mi.DONE), "Mistral", {"openai-chat": written(Text("HiHo"), losses={"unknown_event": 1})}, {"text": "HiHo"}),
            ollama_turn(
                ol.line("Hi"), {**ol.line(), "message": {"role": "tool", "content": "RAW"}}, ol.line("Ho"), name="Ollama", text="HiHo",
                to={"openai-chat": written(Text("HiHo"), losses={"unknown_event": 1})},
            ),
            gemini(
                gm.chunk(gm.text("Hi")), {**gm.HEAD, "candidates": [{"index": 0, "content": {"role": "user", "parts": [gm.text("RAW")]}}]}, gm.STOP,
                name="Gemini", text="Hi", to={"openai-chat": written(Text("Hi"), losses={"unknown_event": 1})},
            ),
            responses_turn(
                *[{**one, **({"item": {**one["item"], "role": "user"}} if "item" in one else {})} for one in rs.message(0, "RAW")], *rs.message(1, "Hi"),
                name="Responses", text="Hi", to={"openai-chat": written(Text("Hi"), losses={"unknown_event": 1})},
            ),
        ),
    ),
    Case(
        number=308,
        refs="Lingtai-AI/lingtai-kernel#45; abi/screenshot-to-code#603; davidmigloz/langchain_dart#903",
        cause="the stream has events of Gemini's Interactions from before revision 2026-05-20: `interaction.start`, `content.delta`, or a complete call in one delta",
        does="streamkit reads these events like the current events. A *content* of the old events is read as a *step* of the current ones, with or without a start event.",
        forms=(
            older(
                old("content.start", index=0, content={"type": "thought"}), old_delta(0, type="thought_summary", content={"type": "text", "text": "hm"}),
                old_delta(0, type="thought_signature", signature="c2ln"), old("content.stop", index=0), old("content.start", index=1, content={"type": "text"}),
                old_delta(1, type="text", text="Hi"), old("content.stop", index=1), name="a thought and text", text="Hi", reasoning="hm",
                to={"openai-chat": written(Thinking("hm", "c2ln"), Text("Hi"), losses={"usage_detail": 1})},
            ),
            older(
                old("content.start", index=0, content={"type": "function_call"}), old_delta(0, type="function_call", id="a", name="f", arguments={"x": 1}),
                old("content.stop", index=0), name="a whole call", status="requires_action", calls=(A,), stop="tool_calls",
                to={"openai-chat": written(USE, stop="tool_calls", losses={"usage_detail": 1})},
            ),
            older(
                old_delta(0, type="text", text="Hi"), old_delta(1, type="function_call", id="a", name="f", arguments={"x": 1}), name="contents that nothing starts",
                status="requires_action", text="Hi", calls=(A,), stop="tool_calls", repairs={"block_unopened": 1, "block_unclosed": 2},
                to={"openai-chat": written(Text("Hi"), USE, stop="tool_calls", losses={"usage_detail": 1})},
            ),
            older(
                old_delta(0, type="google_search_call", id="s", arguments={"queries": ["q"]}), old("content.stop", index=0), old_delta(1, type="text", text="Hi"),
                old("content.stop", index=1), name="a tool of Google's", text="Hi", repairs={"block_unopened": 1}, to={"openai-chat": written(Text("Hi"), losses={"server_tool": 2, "usage_detail": 1})},
            ),
        ),
    ),
)  # fmt: skip
