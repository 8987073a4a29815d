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
        cause="the first Gemini candidate is empty and has the finish reason `STOP`. The text follows after it",
        does="streamkit reads to the end of the stream, so it reads all text.",
        forms=(
            gemini(
                gm.chunk(finish="STOP"), gm.chunk(gm.text("High water ")), gm.chunk(gm.text("is at six."), finish="STOP"), text="High water is at six.",
                to={"openai-chat": written(Text("High water is at six.")), "anthropic": messages(Text("High water is at six."))},
            ),
        ),
    ),
    Case(
        number=376, refs="ag-ui-protocol/ag-ui#2813",
        cause="the upstream's stream is interrupted inside a call. For AG-UI clients, software writes the end of the call after the end of the run",
        does="The last event that streamkit writes is `RUN_ERROR`. There is no `RUN_FINISHED`.",
        forms=(
            chat(
                said("I look."), calls(call(0, "c1", "tides", '{"port":')), text="I look.", calls=(Call("tides", '{"port":', "truncated", id="c1"),), stop=None,
                to={"ag-ui": failed(Text("I look."), Use("c1", "tides", '{"port":'), error=CUT, losses={"error_detail": 1}, lacks=(b"RUN_FINISHED",))},
            ),
        ),
    ),
    Case(
        number=377, refs="router-for-me/CLIProxyAPI#5873",
        cause="in Gemini's Interactions, the signature of a thought arrives after the thought's step has ended and the text has begun",
        does="streamkit keeps the signature. If the client's dialect cannot reopen a block, the signature gets a separate block, and the text continues after this block.",
        forms=(
            interactions(
                gi.begin(0, "thought"), gi.summary(0, "Look first."), gi.end(0), gi.begin(1, "model_output"), *gi.said(1, "Six "), gi.signature(0, "c2ln"), *gi.said(1, "o'clock."), gi.end(1),
                text="Six o'clock.", reasoning="Look first.", repairs={"block_unclosed": 1, "block_unopened": 1, "index_reused": 1}, to={"anthropic": messages(Thinking("Look first."), Text("Six "), Thinking("", seal("reasoning", "google", "c2ln")), Text("o'clock."), usage=None, losses={"usage_detail": 1})},
            ),
        ),
    ),
    Case(
        number=378, refs="BigPizzaV3/CodexPlusPlus#614",
        cause="the `name` of a call is blank in `response.output_item.done` and in the last event, which Codex reads",
        does="The call keeps the name from the start of its item. For a client of Responses, this holds only if streamkit writes the stream again. If streamkit forwards the bytes, the name stays blank, and the report counts `identity_blank`.",
        forms=(blank_at_the_end("the name", name=""),),
    ),
    Case(
        number=379, refs="farion1231/cc-switch#4671",
        cause="the `call_id` of a call is blank in `response.output_item.done` and in the last event",
        does="streamkit treats the `call_id` like the name in case 378.",
        forms=(blank_at_the_end("the id", call_id=""), blank_at_the_end("both", call_id="", name="")),
    ),
    Case(
        number=380, refs="openai/openai-node#1965",
        cause="`keepalive` events arrive between the events of a response",
        does="streamkit ignores these events, and counts nothing.",
        forms=(
            responses_turn(
                {"type": "keepalive"}, *rs.message(0, "High ", "water.")[:3], {"type": "keepalive"}, *rs.message(0, "High ", "water.")[3:], text="High water.",
                to={"openai-chat": written(Text("High water."), losses={}), "openai-responses": written(Text("High water."), stop="completed")},
            ),
        ),
    ),
    Case(
        number=381, refs="turnstonelabs/turnstone#1162; laravel/ai#881",
        cause="software stores a response with the stop reason `model_context_window_exceeded` as a finished turn",
        does="streamkit reads this stop reason as a token limit, and writes `incomplete` (Responses), `length` (Chat) or `MAX_TOKENS` (Gemini).",
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
        cause="a response is truncated while the model thinks, but software writes it as `completed`, with an empty message",
        does="streamkit writes the response as `incomplete`, without a message.",
        forms=(
            chat(
                chunk({"reasoning_content": "Weigh the tides and"}), chunk({}, "length"), DONE, reasoning="Weigh the tides and", stop="length",
                to={"openai-responses": written(Thinking("Weigh the tides and"), stop="max_output_tokens", lacks=(b"response.completed", b'"type":"message"'))},
            ),
        ),
    ),
    Case(
        number=383, refs="envoyproxy/ai-gateway#2236, #2279",
        cause="the last token counts say that there were no input tokens, but the first counts had some",
        does="No request is empty, so a count of 0 input tokens replaces no other count. If the whole prompt came from the cache, streamkit uses the count of cached tokens.",
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
        cause="a stream ends cleanly, but its only stop reason is `network_error` or `network-error`",
        does="For streamkit, the response failed, with or without content.",
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
        cause="each delta has its reasoning twice: as `reasoning` and as `reasoning_content`",
        does="streamkit reads one of the two members.",
        forms=(
            chat(
                *(chunk({"reasoning": piece, "reasoning_content": piece}) for piece in ("The", " the", " tide")), said("Six."), STOP, DONE, text="Six.", reasoning="The the tide",
                to={"anthropic": messages(Thinking("The the tide"), Text("Six."))},
            ),
        ),
    ),
    Case(
        number=386, refs="Alishahryar1/free-claude-code#1274",
        cause="reasoning arrives in plain deltas. Later, an entry of `reasoning_details` has all the reasoning again, with its signature",
        does="streamkit reads the text once, with its signature. If the text of an entry is different, streamkit reads it too.",
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
        cause="a search that the provider ran fails, but software shows it as a search without results",
        does="streamkit writes the item of the search with the status `failed`. If the client offered no search, streamkit counts a loss instead.",
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
        cause="a Bedrock response has no content and the stop reason `guardrail_intervened`. Software reads it as an empty response",
        does="The stop reason that streamkit writes says that content was filtered.",
        forms=(
            bedrock(
                ("messageStart", {"role": "assistant"}), br.finish("guardrail_intervened"), br.counts(), stop="content_filter",
                to={"openai-chat": written(stop="content_filter", losses={"metadata": 1}), "openai-responses": written(stop="content_filter", losses={"metadata": 1, "usage_unknown": 1})},
            ),
        ),
    ),
    Case(
        number=389, refs="agentscope-ai/agentscope-java#2642",
        cause="in an AG-UI stream, `RUN_FINISHED` follows `RUN_ERROR`",
        does="streamkit reports the error, and ignores the success after it.",
        forms=(
            form(
                "ag-ui", sse(au.START, au.begin("m"), au.delta("m", "par"), au.failed("model fell over"), au.finish()), "",
                {"openai-chat": failed(Text("par"), error="model fell over", losses={"response_fields": 1})}, {"text": "par", "stop": None, "provider_error": "model fell over", "repairs": {"after_end": 1, "block_unclosed": 1}},
            ),
        ),
    ),
    Case(
        number=390, refs="musistudio/claude-code-router#1808",
        cause="the `tool_use` blocks for a client have ids like `Bash:0`. Claude then rejects every later turn with these ids",
        does="The provider that made these ids gets them back unchanged. In requests for Claude, streamkit writes ids that Claude accepts, even if the client is Anthropic's own.",
        forms=(
            calling(
                calls(call(0, "Bash:0", "Bash", '{"c":1}')), calls(call(1, "Bash:1", "Bash", '{"c":2}')), name="two calls of Kimi's",
                calls=(Call("Bash", '{"c":1}', id="Bash:0"), Call("Bash", '{"c":2}', id="Bash:1")),
            ),
        ),
        beside="tests/requests/test_newest_reports.py::test_what_is_written_of_a_request",
    ),
)  # fmt: skip
