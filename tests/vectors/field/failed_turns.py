"""Cases 178 to 196: turns that failed and were told as success, and members that nobody read."""

from __future__ import annotations

from tests.framing.binary import chunks
from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Text, Use
from tests.vectors.field.shapes import (
    anthropic,
    bedrock,
    chat,
    cohere,
    failed,
    gemini,
    message,
    messages,
    responses,
    responses_turn,
    written,
)
from tests.vectors.openai_chat import CALLED, DONE, ROLE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call

DETAIL = {"error_detail": 1}
#: What the client is told.
MALFORMED = "the provider gave the finish reason 'MALFORMED_FUNCTION_CALL': Malformed function call: print(f(x=1))"
UNEXPECTED = (
    "the provider gave the finish reason 'UNEXPECTED_TOOL_CALL': the model called a tool, but the request has none"
)
LANGUAGE = "the provider gave the finish reason 'LANGUAGE': the response would be in a language that the model does not support"
OTHER = "the provider gave the finish reason 'OTHER': the provider gave no reason"
TOOL_USE = "the provider gave the finish reason 'malformed_tool_use': the model wrote a call that can't be read"
OUTPUT = "the provider gave the finish reason 'malformed_model_output': the model wrote a response that can't be read"
WHOLE = Call("f", '{"x":1}', id="a")
AGAIN = {**am.START, "message": {**am.START["message"], "id": "msg_8"}}
EDITS = {"applied_edits": [{"type": "clear_tool_uses_20250919"}]}
SECOND = "a second response began before the first had ended"


def explained(finish: str, message: str) -> dict[str, object]:
    """A last chunk without content, that says why there is none."""
    return {"candidates": [{"finishReason": finish, "finishMessage": message, "index": 0}], **gm.HEAD}


CASES = (
    Case(
        number=178, refs="NousResearch/hermes-agent#83886, #83882; any-llm#1202; google-gemini-php/client#137; Antigravity-Manager#1045",
        cause="software reads `MALFORMED_FUNCTION_CALL` and similar stop reasons as a natural stop, and the agent stores an empty response as a finished turn",
        does="Every client gets an error with the provider's stop reason and its meaning, with and without streaming. Clients of Gemini's own dialect get the stop reason unchanged.",
        forms=(
            gemini(
                explained("MALFORMED_FUNCTION_CALL", "Malformed function call: print(f(x=1))"), name="a call that can't be read",
                stop=None, provider_error=MALFORMED,
                to={
                    "anthropic": failed(error=MALFORMED, losses=DETAIL),
                    "openai-chat": failed(error=MALFORMED, lacks=(b"[DONE]",)),
                    "ollama": failed(error=MALFORMED),
                    "gemini": failed(error=MALFORMED),
                },
            ),
            gemini(
                gm.chunk(gm.text("Hi")), gm.chunk(gm.call("f", {"x": 1}), finish="UNEXPECTED_TOOL_CALL"), name="a call that nobody offered",
                text="Hi", calls=(Call("f", '{"x":1}', id="call_1"),), stop=None, provider_error=UNEXPECTED,
                to={"anthropic": failed(Text("Hi"), Use("call_1", "f", '{"x":1}'), error=UNEXPECTED, losses=DETAIL)},
            ),
            gemini(
                gm.chunk(gm.text("Hi"), finish="LANGUAGE"), name="a language",
                text="Hi", stop=None, provider_error=LANGUAGE,
                to={"openai-chat": failed(Text("Hi"), error=LANGUAGE), "anthropic": failed(Text("Hi"), error=LANGUAGE, losses=DETAIL)},
            ),
            gemini(
                gm.chunk(gm.text("Hi"), finish="OTHER"), name="no reason",
                text="Hi", stop=None, provider_error=OTHER,
                to={"cohere": failed(Text("Hi"), error=OTHER), "mistral": failed(Text("Hi"), error=OTHER), "bedrock": failed(Text("Hi"), error=OTHER, losses=DETAIL)},
            ),
        ),
        beside="tests/dialects/test_failed_turns.py::test_no_client_takes_a_failed_turn_for_an_answer",
    ),
    Case(
        number=179, refs="hermes-agent#83886, which is the same failure with Gemini",
        cause="the stop reasons `malformed_tool_use` and `malformed_model_output` of Bedrock reach clients as `end_turn`",
        does="streamkit treats these stop reasons as errors too. Clients of Bedrock's own dialect get the original stop reason.",
        forms=(
            bedrock(
                br.START, *br.block(0, "Hi"), br.finish("malformed_tool_use"), br.counts(), name="a call", text="Hi", stop=None, provider_error=TOOL_USE,
                to={"anthropic": failed(Text("Hi"), error=TOOL_USE, losses={**DETAIL, "metadata": 1}), "openai-chat": failed(Text("Hi"), error=TOOL_USE, losses={"metadata": 1})},
            ),
            bedrock(
                br.START, br.finish("malformed_model_output"), br.counts(), name="an output", stop=None, provider_error=OUTPUT,
                to={"openai-responses": failed(error=OUTPUT, losses={"metadata": 1}), "ollama": failed(error=OUTPUT, losses={"metadata": 1})},
            ),
        ),
    ),
    Case(
        number=180, refs="llama-cpp-python, and servers with stop reasons of their own",
        cause="software reads an unknown stop reason after a complete call as a natural stop, and does not run the call",
        does="If all calls of the response are complete, the stop reason becomes `tool_calls`. If a call is truncated, it becomes `length`. Otherwise the stop reason stays unchanged. In other dialects, which do not have this reason, streamkit counts a loss.",
        forms=(
            chat(
                calls(call(0, "a", "f", '{"x":1}')), chunk(finish="bored"), DONE, name="a call",
                calls=(WHOLE,), stop="tool_calls", repairs={"stop_unknown_with_calls": 1},
                to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use"), "gemini": written(Use("a", "f", '{"x":1}'), stop="STOP")},
            ),
            chat(
                calls(call(0, "a", "f", '{"x":')), chunk(finish="bored"), DONE, name="a call that is cut",
                calls=(Call("f", '{"x":', "truncated", id="a"),), stop="length", repairs={"stop_conflict": 1},
                to={"anthropic": messages(Use("a", "f", '{"x":'), stop="max_tokens")},
            ),
            chat(
                said("Hi"), chunk(finish="bored"), DONE, name="text",
                text="Hi", stop="other",
                to={"anthropic": messages(Text("Hi"), stop="end_turn", losses={"stop_reason": 1}), "gemini": written(Text("Hi"), stop="STOP", losses={"stop_reason": 1})},
            ),
        ),
    ),
    Case(
        number=181, refs="vercel/ai#18331, #18332; bifrost#4556; BerriAI/litellm#32478, #32667, #33859",
        cause="a proxy retries without telling the client. The second message starts inside the first one, and both become one response",
        does="When a different response starts, streamkit ends the stream with an error at that point. This also holds if the client has the same dialect. streamkit ignores a repeated start of the same response.",
        forms=(
            anthropic(
                am.START, *am.tool(0, "a", "f", '{"x":')[:-1], AGAIN, *am.block(0, "Ho"), am.finish("end_turn"), am.STOP,
                name="another message", calls=(Call("f", '{"x":', "truncated", id="a"),), stop=None, fault="SecondResponse",
                to={"openai-chat": failed(Use("a", "f", '{"x":'), error=SECOND, lacks=(b"Ho",)), "anthropic": failed(Use("a", "f", '{"x":'), error=SECOND, losses=DETAIL, lacks=(b"Ho",))},
            ),
            message(
                am.START, *am.block(0, "Hi"), name="the same message", text="Hi", repairs={"response_restarted": 1},
                to={"openai-chat": written(Text("Hi"))},
            ),
            bedrock(
                br.START, *br.block(0, "Hi"), br.START, *br.block(0, "Ho"), br.finish(), name="another message of Bedrock", text="Hi", stop=None, fault="SecondResponse",
                to={"openai-chat": failed(Text("Hi"), error=SECOND), "bedrock": failed(Text("Hi"), error=SECOND, losses=DETAIL)},
            ),
            bedrock(
                chunks(am.START, *am.block(0, "Hi"), AGAIN, *am.block(0, "Ho")), name="another message within InvokeModel", text="Hi", stop=None, fault="SecondResponse",
                to={"openai-chat": failed(Text("Hi"), error=SECOND)},
            ),
            responses(
                rs.START, *rs.message(0, "Hi"), {**rs.START, "response": {**rs.RESPONSE, "id": "resp_8"}}, *rs.message(0, "Ho"), rs.last(),
                name="another response", text="Hi", stop=None, fault="SecondResponse",
                to={"anthropic": failed(Text("Hi"), error=SECOND, losses=DETAIL)},
            ),
            chat(
                ROLE, said("Hi"), {**ROLE, "id": "chatcmpl-8"}, {**said("Ho"), "id": "chatcmpl-8"}, STOP, DONE, name="another completion", text="Hi", stop=None, fault="SecondResponse",
                to={"openai-chat": failed(Text("Hi"), error=SECOND), "anthropic": failed(Text("Hi"), error=SECOND, losses=DETAIL)},
            ),
            chat(
                *({**chunk({"role": "assistant", "content": text}), "id": f"chatcmpl-{text}"} for text in ("H", "i", "!")), {**STOP, "id": "chatcmpl-end"}, DONE,
                name="an id for each chunk", text="Hi!", stop="stop", to={"anthropic": messages(Text("Hi!"))},
            ),
            chat(
                ROLE, said("Hi"), {**said("!"), "id": "chatcmpl-8"}, STOP, DONE,
                name="an id that changes without a start", text="Hi!", stop="stop", to={"anthropic": messages(Text("Hi!"))},
            ),
            cohere(
                *co.block(0, "Hi"), {**co.START, "id": "other"}, *co.block(0, "Ho"), name="another message of Cohere", text="Hi", stop=None, fault="SecondResponse",
                to={"openai-chat": failed(Text("Hi"), error=SECOND)},
            ),
        ),
    ),
    Case(
        number=182, refs="vercel/ai#12154; langchain-ai/langchainjs#11396; stdapi-ai/stdapi.ai#128; vllm-project/semantic-router#3416",
        cause="in Anthropic's `message_delta`, `context_management` and `input_transformations` are next to the delta, where clients do not look",
        does="For Anthropic's clients, streamkit writes both members in the same place again. In whole responses, they are members of the message. For clients of other dialects, streamkit counts them as losses.",
        forms=(
            anthropic(
                am.START, *am.block(0, "Hi"), {**am.finish("end_turn"), "context_management": EDITS, "input_transformations": ["x"]}, am.STOP, text="Hi", stop="stop",
                to={
                    "anthropic": messages(Text("Hi"), usage={"input_tokens": 9, "output_tokens": 4}, holds=(b',"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919"}]},"input_transformations":["x"]}',)),
                    "openai-chat": written(Text("Hi"), losses={"metadata": 2}),
                },
            ),
        ),
        beside="tests/laws/test_l5_no_member_is_silent.py::test_a_member_that_nobody_knows_is_kept_or_counted",
    ),
    Case(
        number=183, refs="BerriAI/litellm#28868; vllm-project/semantic-router#3416",
        cause="events, blocks, parts and functions have new members that clients do not know",
        does="For clients of the same dialect, streamkit keeps each new member. For other clients, streamkit counts a loss. This holds for streams and for whole responses.",
        forms=(
            message(
                {**am.begin(0, "text", text=""), "novel": 1}, am.delta(0, "text_delta", text="Hi"), {**am.stop(0), "novel": 2}, name="events of a block", text="Hi", stop="stop",
                to={"openai-chat": written(Text("Hi"), losses={"unknown_event": 2}), "anthropic": messages(Text("Hi"), usage={"input_tokens": 9, "output_tokens": 4}, losses={"unknown_event": 2})},
            ),
            chat(
                calls({**call(0, "a", "f", '{"x":'), "function": {"name": "f", "arguments": '{"x":', "novel": 1}}), calls({**call(0, None, None, "1}"), "novel": 2}), CALLED, DONE, name="a function",
                calls=(WHOLE,), stop="tool_calls", to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", losses={"unknown_event": 2})},
            ),
            responses_turn(
                *rs.message(0, "Hi")[:-2], {**rs.message(0, "Hi")[-2], "part": {**rs.part("Hi"), "novel": 1}}, rs.message(0, "Hi")[-1], name="a part", text="Hi", stop="stop",
                to={"openai-chat": written(Text("Hi"), losses={"unknown_event": 1})},
            ),
            bedrock(
                br.START, ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}, "novel": 1}), br.stop(0), br.finish(), name="a message of Bedrock", text="Hi", stop="stop",
                to={"openai-chat": written(Text("Hi"), losses={"unknown_event": 1})},
            ),
        ),
    ),
    Case(
        number=184, refs="BerriAI/litellm#28868, for token counts in `usage`",
        cause="some token counts have no name in another dialect, and disappear from the usage",
        does="Clients of the same dialect get these counts. In other dialects, streamkit counts one loss for all of them.",
        forms=(
            chat(
                said("Hi"), STOP, {**chunk(), "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "completion_tokens_details": {"accepted_prediction_tokens": 2}}}, DONE,
                text="Hi", stop="stop",
                to={
                    "anthropic": messages(Text("Hi"), usage={"input_tokens": 9, "output_tokens": 4}, losses={"usage_detail": 1}),
                    "openai-chat": written(Text("Hi"), holds=(b'"accepted_prediction_tokens":2',)),
                },
            ),
        ),
    ),
)  # fmt: skip
