"""Cases 375 to 390: reports of summer and autumn 2026, judged before they were run."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors import ag_ui as au
from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import gemini as gm
from tests.vectors import gemini_interactions as gi
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Form, Output, Text, Thinking, Use
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
    responses_turn,
    written,
)
from tests.vectors.openai_chat import DONE, HEAD, STOP, call, calls, chunk, said
from tests.vectors.vector import Call, sse

CMD = '{"cmd":"ls"}'
RUN = Call("exec", CMD, id="c1")
RUN_USE = Use("c1", "exec", CMD)
COUNTS = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
NOTHING = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
GAVE = "the provider gave the finish reason {!r}"
LOST = GAVE.format("network_error") + ": the provider lost the connection to the model"
CUT = "stream truncated: the stream ended without a stop reason"


def blank_at_the_end(title: str, **blank: str) -> Form:
    """A call whose last item lacks what the first has: within the dialect what was said stands, too."""
    item = {"call_id": "c1", "name": "exec", "arguments": CMD, **blank}
    to = {
        "openai-responses": written(RUN_USE, stop="completed", lacks=(b'"name":""', b'"call_id":""')),
        "anthropic": messages(RUN_USE, stop="tool_use", usage=None),
    }
    return responses_turn(
        *rs.call(0, "c1", "exec", CMD)[:-1], rs.done(0, "function_call", **item), name=title, calls=(RUN,), stop="tool_calls", repairs={"identity_blank": 1}, to=to,
    )  # fmt: skip


def interactions(*payloads: Any, to: dict[str, Output], name: str = "", **expected: Any) -> Form:
    return form("gemini-interactions", gi.run(name, *payloads).body, name, to, expected)


def start_of(**usage: int) -> dict[str, Any]:
    return {**am.START, "message": {**am.START["message"], "usage": usage}}


def end_of(**usage: int) -> dict[str, Any]:
    return {**am.finish("end_turn"), "usage": usage}


FIRST = {"input_tokens": 9, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
EMPTY = dict.fromkeys(FIRST, 0)
LOOKED = {"type": "reasoning.text", "text": "Look first.", "index": 0}
SEARCHED = (
    am.begin(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    am.delta(0, "input_json_delta", partial_json='{"query":"tides"}'), am.stop(0),
    am.begin(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content={"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}), am.stop(1),
)  # fmt: skip

CASES = (
    Case(
        number=375, refs="Chevey339/kelivo#1003",
        cause="an empty Gemini candidate with `STOP`, followed by the text",
        does="Reading continues to the end of the stream: all text is read.",
        forms=(
            gemini(
                gm.chunk(finish="STOP"), gm.chunk(gm.text("High water ")), gm.chunk(gm.text("is at six."), finish="STOP"), text="High water is at six.",
                to={"openai-chat": written(Text("High water is at six.")), "anthropic": messages(Text("High water is at six."))},
            ),
        ),
    ),
    Case(
        number=376, refs="ag-ui-protocol/ag-ui#2813",
        cause="an upstream is interrupted inside a call, and the end of the call is written after the end of the run",
        does="`RUN_ERROR` is the last event, and there is no `RUN_FINISHED`.",
        forms=(
            chat(
                said("I look."), calls(call(0, "c1", "tides", '{"port":')), text="I look.", calls=(Call("tides", '{"port":', "truncated", id="c1"),), stop=None,
                to={"ag-ui": failed(Text("I look."), Use("c1", "tides", '{"port":'), error=CUT, losses={"error_detail": 1}, lacks=(b"RUN_FINISHED",))},
            ),
        ),
    ),
    Case(
        number=377, refs="router-for-me/CLIProxyAPI#5873",
        cause="a thought's signature arrives after its step has ended and the text has begun",
        does="The signature is kept, in a separate block where ended blocks cannot reopen. The text continues after it.",
        forms=(
            interactions(
                gi.begin(0, "thought"), gi.summary(0, "Look first."), gi.end(0), gi.begin(1, "model_output"), *gi.said(1, "Six "), gi.signature(0, "c2ln"), *gi.said(1, "o'clock."), gi.end(1),
                text="Six o'clock.", reasoning="Look first.", repairs={"block_unclosed": 1, "block_unopened": 1, "index_reused": 1}, to={"anthropic": messages(Thinking("Look first."), Text("Six "), Thinking("", seal("reasoning", "google", "c2ln")), Text("o'clock."), usage=None, losses={"usage_detail": 1})},
            ),
        ),
    ),
    Case(
        number=378, refs="BigPizzaV3/CodexPlusPlus#614",
        cause="the `name` of a call is blank in `response.output_item.done` and in the last response, which Codex reads",
        does="The name from the item's start stays. Within one dialect this applies when the stream is written again; otherwise only the report says `identity_blank`.",
        forms=(blank_at_the_end("the name", name=""),),
    ),
    Case(
        number=379, refs="farion1231/cc-switch#4671",
        cause="the `call_id` of a call is blank in `response.output_item.done` and in the last response",
        does="It is handled like the name in case 378.",
        forms=(blank_at_the_end("the id", call_id=""), blank_at_the_end("both", call_id="", name="")),
    ),
    Case(
        number=380, refs="openai/openai-node#1965",
        cause="`keepalive` events between those of a response",
        does="They are ignored, and nothing is counted.",
        forms=(
            responses_turn(
                {"type": "keepalive"}, *rs.message(0, "High ", "water.")[:3], {"type": "keepalive"}, *rs.message(0, "High ", "water.")[3:], text="High water.",
                to={"openai-chat": written(Text("High water."), losses={}), "openai-responses": written(Text("High water."), stop="completed")},
            ),
        ),
    ),
    Case(
        number=381, refs="turnstonelabs/turnstone#1162; laravel/ai#881",
        cause="`model_context_window_exceeded`, stored as a finished turn",
        does="It is a token limit: `incomplete`, `length`, `MAX_TOKENS`.",
        forms=(
            message(
                *am.block(0, "The first step is"), reason="model_context_window_exceeded", text="The first step is", stop="context_full",
                to={
                    "openai-responses": written(Text("The first step is"), stop="max_output_tokens", losses={"stop_reason": 1, "usage_unknown": 1}, lacks=(b"response.completed",)),
                    "openai-chat": written(Text("The first step is"), stop="length", losses={"stop_reason": 1}),
                    "gemini": written(Text("The first step is"), stop="MAX_TOKENS", losses={"stop_reason": 1}),
                },
            ),
        ),
    ),
    Case(
        number=382, refs="jundot/omlx#2817",
        cause="a response truncated while the model thinks, written as `completed` with an empty message",
        does="It is `incomplete`, without a message.",
        forms=(
            chat(
                chunk({"reasoning_content": "Weigh the tides and"}), chunk({}, "length"), DONE, reasoning="Weigh the tides and", stop="length",
                to={"openai-responses": written(Thinking("Weigh the tides and"), stop="max_output_tokens", lacks=(b"response.completed", b'"type":"message"'))},
            ),
        ),
    ),
    Case(
        number=383, refs="envoyproxy/ai-gateway#2236, #2279",
        cause="the last counts report no input tokens, but the first ones did",
        does="No request is empty: a count of no input replaces no other count. A prompt that came only from the cache has a count.",
        forms=(
            anthropic(
                start_of(**FIRST, output_tokens=1), *am.block(0, "Hi"), end_of(**EMPTY, output_tokens=16), am.STOP, name="Anthropic", text="Hi",
                to={
                    "openai-chat": written(
                        Text("Hi"), usage={"prompt_tokens": 16, "completion_tokens": 16, "total_tokens": 32, "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2}}
                    ),
                    "anthropic": messages(Text("Hi"), usage={**FIRST, "output_tokens": 16}),
                },
            ),
            anthropic(
                start_of(input_tokens=25, cache_read_input_tokens=0, output_tokens=1), *am.block(0, "Hi"), end_of(input_tokens=0, cache_read_input_tokens=25, output_tokens=4), am.STOP,
                name="all of it from the cache", text="Hi",
                to={"openai-chat": written(Text("Hi"), usage={"prompt_tokens": 25, "completion_tokens": 4, "total_tokens": 29, "prompt_tokens_details": {"cached_tokens": 25}})},
            ),
            chat(
                chunk({"content": "Hi"}, usage=COUNTS), STOP, {**HEAD, "choices": [], "usage": NOTHING}, DONE, name="Chat", text="Hi",
                to={"anthropic": messages(Text("Hi"), usage={"input_tokens": 9, "output_tokens": 4})},
            ),
            gemini(
                gm.chunk(gm.text("Hi"), usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}),
                gm.chunk(finish="STOP", usageMetadata={"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}), name="Gemini", text="Hi",
                to={"openai-chat": written(Text("Hi"), usage=COUNTS)},
            ),
        ),
    ),
    Case(
        number=384, refs="NousResearch/hermes-agent#92161",
        cause="a clean end with only `finish_reason: network_error` or `network-error`",
        does="The response failed, with or without content.",
        forms=(
            chat(
                chunk({"content": ""}), chunk({}, "network_error"), DONE, name="nothing said", stop=None, provider_error=LOST,
                to={"anthropic": failed(error=LOST, losses={"error_detail": 1})},
            ),
            chat(
                said("par"), chunk({}, "network-error"), DONE, name="in other letters", text="par", stop=None, provider_error=GAVE.format("network-error"), repairs={"stop_reason_foreign": 1},
                to={"anthropic": failed(Text("par"), error=GAVE.format("network-error"), losses={"error_detail": 1})},
            ),
        ),
    ),
    Case(
        number=385, refs="MoonshotAI/kimi-code#3928",
        cause="each delta has its reasoning twice, as `reasoning` and as `reasoning_content`",
        does="One of them is read.",
        forms=(
            chat(
                *(chunk({"reasoning": piece, "reasoning_content": piece}) for piece in ("The", " the", " tide")), said("Six."), STOP, DONE, text="Six.", reasoning="The the tide",
                to={"anthropic": messages(Thinking("The the tide"), Text("Six."))},
            ),
        ),
    ),
    Case(
        number=386, refs="Alishahryar1/free-claude-code#1274",
        cause="reasoning in plain deltas, and all of it again in a later entry of `reasoning_details`, with the signature",
        does="The text is read once, with its signature. An entry with different text is read, too.",
        forms=(
            chat(
                chunk({"reasoning": "Look "}), chunk({"reasoning": "first."}), chunk({"reasoning_details": [{**LOOKED, "format": "anthropic-claude-v1", "signature": "c2ln"}]}), said("Six."), STOP, DONE, name="signed",
                text="Six.", reasoning="Look first.", repairs={"said_twice": 1}, to={"anthropic": messages(Thinking("Look first.", "c2ln"), Text("Six."))},
            ),
            chat(
                chunk({"reasoning_content": "Look first."}), chunk({"reasoning_details": [LOOKED]}), said("Six."), STOP, DONE, name="unsigned",
                text="Six.", reasoning="Look first.", repairs={"said_twice": 1}, to={"anthropic": messages(Thinking("Look first."), Text("Six."))},
            ),
            chat(
                chunk({"reasoning": "Look "}), chunk({"reasoning_details": [{**LOOKED, "text": "twice"}]}), chunk({"reasoning_details": [{**LOOKED, "text": "Look twice"}]}), said("Six."), STOP, DONE, name="fragments",
                text="Six.", reasoning="Look twiceLook twice", to={"anthropic": messages(Thinking("Look twiceLook twice"), Text("Six."))},
            ),
        ),
    ),
    Case(
        number=387, refs="unslothai/unsloth#10757",
        cause="a failed server-side search is shown as a search without results",
        does="Its item has the status `failed`. Where the client offered no search, it is a counted loss.",
        forms=(
            message(
                *SEARCHED, *am.block(2, "I could not search."), text="I could not search.",
                to={"openai-responses": written(Text("I could not search."), stop="completed", losses={"server_tool": 5, "usage_unknown": 1}, lacks=(b"web_search_call",))},
            ),
        ),
        beside="tests/translation/test_web_searches.py::test_several_searches_stay_apart_and_one_that_failed_says_so",
    ),
    Case(
        number=388, refs="can1357/oh-my-pi#7564",
        cause="`guardrail_intervened` of Bedrock, without content, is read as an empty response",
        does="The stop reason says that content was filtered.",
        forms=(
            bedrock(
                ("messageStart", {"role": "assistant"}), br.finish("guardrail_intervened"), br.counts(), stop="content_filter",
                to={"openai-chat": written(stop="content_filter", losses={"metadata": 1}), "openai-responses": written(stop="content_filter", losses={"metadata": 1, "usage_unknown": 1})},
            ),
        ),
    ),
    Case(
        number=389, refs="agentscope-ai/agentscope-java#2642",
        cause="`RUN_ERROR` of AG-UI, followed by `RUN_FINISHED`",
        does="The error counts.",
        forms=(
            form(
                "ag-ui", sse(au.START, au.begin("m"), au.delta("m", "par"), au.failed("model fell over"), au.finish()), "",
                {"openai-chat": failed(Text("par"), error="model fell over", losses={"response_fields": 1})}, {"text": "par", "stop": None, "provider_error": "model fell over", "repairs": {"after_end": 1, "block_unclosed": 1}},
            ),
        ),
    ),
    Case(
        number=390, refs="musistudio/claude-code-router#1808",
        cause="ids like `Bash:0` are written to `tool_use`, and Claude rejects every later turn",
        does="The provider gets its own ids back. Requests for Claude get ids that Claude accepts, also from Anthropic's own clients.",
        forms=(
            calling(
                calls(call(0, "Bash:0", "Bash", '{"c":1}')), calls(call(1, "Bash:1", "Bash", '{"c":2}')), name="two calls of Kimi's",
                calls=(Call("Bash", '{"c":1}', id="Bash:0"), Call("Bash", '{"c":2}', id="Bash:1")),
            ),
        ),
        beside="tests/requests/test_newest_reports.py::test_what_is_written_of_a_request",
    ),
)  # fmt: skip
