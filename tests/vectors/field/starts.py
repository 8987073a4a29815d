"""Cases 267 to 271: what starts and ends say beside what is expected of them, and places that are missing."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import gemini_interactions as gi
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Block, Case, Form, Output, Text, Thinking, Use
from tests.vectors.field.shapes import (
    anthropic,
    bedrock,
    failed,
    form,
    message,
    messages,
    responses,
    responses_turn,
    written,
)
from tests.vectors.vector import Call

A = Call("f", '{"x":1}', id="a")
USED = {"anthropic": messages(Use("a", "f", A.arguments), stop="tool_use", usage=None)}
CHAT = {"openai-chat": written(Use("a", "f", A.arguments), stop="tool_calls")}
SPOKEN = {"openai-chat": written(Text("Hi"), Use("a", "f", A.arguments), stop="tool_calls")}


def placeless(*payloads: dict[str, object]) -> tuple[dict[str, object], ...]:
    return tuple({name: value for name, value in payload.items() if name != "index"} for payload in payloads)


def nowhere(*pairs: br.Pair) -> tuple[br.Pair, ...]:
    return tuple(
        (kind, {name: value for name, value in payload.items() if name != "contentBlockIndex"})
        for kind, payload in pairs
    )


def start(*content: dict[str, object], **fields: object) -> dict[str, object]:
    """A start of the message that has content."""
    return {**am.START, "message": {**am.START["message"], "content": list(content), **fields}}


def created(*output: dict[str, object]) -> dict[str, object]:
    """A start of the response that has items."""
    return {**rs.START, "response": {**rs.RESPONSE, "output": list(output)}}


HI = {"type": "text", "text": "Hi"}
CALLED = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
OBJECT = {"type": "function_call", "id": "i0", "call_id": "a", "name": "f", "arguments": {"x": 1}}
NAMELESS = (
    rs.added(0, "function_call", call_id="a", name="", arguments=""),
    rs.event("function_call_arguments.delta", delta=A.arguments),
)
SHELL = {"type": "local_shell_call", "id": "i0", "call_id": "a", "status": "completed", "action": {"type": "exec"}}
GI_CALL = {"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1}}
GI_SEARCH = {"type": "google_search_call", "id": "s"}
SAID = {"type": "model_output", "content": [HI]}


def interaction(
    status: str, steps: list[dict[str, object]], *payloads: object, name: str, to: dict[str, Output], **expected: object
) -> Form:
    """An interaction whose last event has these steps."""
    body = gi.named(
        gi.START, *payloads, gi.event("interaction.completed", interaction=gi.interaction(status, steps=steps))
    )
    return form("gemini-interactions", body, name, to, expected)


BUSY = {"code": "server_error", "message": "busy"}

CASES = (
    Case(
        number=267, refs="recordings that a test changed",
        cause="content blocks of Anthropic or Bedrock have no index",
        does="Each start event opens a new block. Deltas and stops belong to the latest open block, so the arguments reach their call.",
        forms=(
            message(
                *placeless(*am.block(0, "Hi"), *am.tool(1, "a", "f", '{"x":', "1}")), name="with stops", reason="tool_use",
                text="Hi", calls=(A,), stop="tool_calls", repairs={"index_missing": 7}, to=SPOKEN,
            ),
            message(
                *placeless(*am.block(0, "Hi")[:2], *am.tool(1, "a", "f", '{"x":', "1}")[:3]), name="without stops", reason="tool_use",
                text="Hi", calls=(A,), stop="tool_calls", repairs={"index_missing": 5, "block_unclosed": 2}, to=SPOKEN,
            ),
            message(
                *am.block(0, "Hi"), am.tool(1, "a", "f")[0], *placeless(*am.tool(1, "a", "f", A.arguments)[1:]), name="with the start's alone", reason="tool_use",
                text="Hi", calls=(A,), stop="tool_calls", repairs={"index_missing": 2}, to=SPOKEN,
            ),
            bedrock(
                br.START, *nowhere(*br.block(0, "Hi"), *br.tool(1, "a", "f", '{"x":', "1}")), br.finish("tool_use"), name="Bedrock",
                text="Hi", calls=(A,), stop="tool_calls", repairs={"index_missing": 6}, to=SPOKEN,
            ),
        ),
    ),
    Case(
        number=268, refs="langchain-ai/langchain#34406; BerriAI/litellm#38153",
        cause="the `message_start` of an Anthropic stream already has content",
        does="If a block of the same kind and id repeats this content, streamkit reads the content once. If the block continues the text, streamkit joins both. Otherwise, streamkit reads the content of `message_start` at the end of the stream.",
        forms=(
            anthropic(start(HI), am.finish("end_turn"), am.STOP, name="and nothing else", text="Hi", to={"openai-chat": written(Text("Hi"))}),
            anthropic(start(HI), *am.block(0, "Hi"), am.finish("end_turn"), am.STOP, name="and its blocks", text="Hi", repairs={"text_repeated": 1}, to={"openai-chat": written(Text("Hi"))}),
            anthropic(start({"type": "text", "text": ""}), *am.block(0, "Hi"), am.finish("end_turn"), am.STOP, name="blank", text="Hi", to={"openai-chat": written(Text("Hi"))}),
            anthropic(
                start(HI, CALLED), *am.block(0, "Hi"), am.finish("tool_use"), am.STOP, name="and some of its blocks",
                text="Hi", calls=(A,), stop="tool_calls", repairs={"text_repeated": 1}, to=SPOKEN,
            ),
            anthropic(
                start(CALLED), *am.block(0, "Hi"), am.finish("tool_use"), am.STOP, name="and another block at the same index",
                text="Hi", calls=(A,), stop="tool_calls", to=SPOKEN,
            ),
            anthropic(start(HI), *am.block(0, " there"), am.finish("end_turn"), am.STOP, name="which a block continues", text="Hi there", to={"openai-chat": written(Text("Hi there"))}),
            anthropic(
                start(HI), am.begin(0, "text", text="H"), am.delta(0, "text_delta", text=" there"), am.stop(0), am.finish("end_turn"), am.STOP, name="which a block and its start continue", text="Hi there", to={"openai-chat": written(Text("Hi there"))},
            ),
            anthropic(
                start(HI), am.begin(0, "text", text="Oh"), am.stop(0), am.finish("end_turn"), am.STOP, name="and a block with other text", text="OhHi",
                to={"openai-chat": written(Text("OhHi"), losses={"block_boundary": 1})},
            ),
            anthropic(
                start(CALLED), am.tool(0, "a", "f")[0], am.stop(0), am.finish("tool_use"), am.STOP, name="with the arguments of a call", calls=(A,), stop="tool_calls", to=CHAT,
            ),
            anthropic(
                start(CALLED), am.tool(0, "b", "f")[0], am.delta(0, "input_json_delta", partial_json="{}"), am.stop(0), am.finish("tool_use"), am.STOP, name="with another call",
                calls=(Call("f", "{}", id="b"), A), stop="tool_calls", to={"openai-chat": written(Use("b", "f", "{}"), Use("a", "f", A.arguments), stop="tool_calls")},
            ),
            anthropic(
                start(HI, CALLED), am.delta(0, "text_delta", text="Hi"), am.delta(1, "input_json_delta", partial_json='{"x":1}'), am.stop(1), am.finish("tool_use"), am.STOP, name="and blocks without a start",
                text="Hi", calls=(A,), stop="tool_calls", repairs={"block_unopened": 2, "text_repeated": 1, "arguments_replaced": 1, "block_unclosed": 1}, to=SPOKEN,
            ),
            anthropic(
                start({"type": "thinking", "thinking": "hm", "signature": "s"}), am.begin(0, "thinking", thinking=""), am.delta(0, "thinking_delta", thinking="hm"), am.stop(0), *am.block(1, "Hi"), am.finish("end_turn"), am.STOP, name="with a signature", text="Hi", reasoning="hm", repairs={"text_repeated": 1},
                to={"anthropic": messages(Thinking("hm", "s"), Text("Hi"), usage=None)},
            ),
            anthropic(
                start(HI, stop_reason="end_turn"), name="and no end", text="Hi", stop=None,
                to={"openai-chat": failed(Text("Hi"), error="stream truncated: the stream ended without a stop reason", losses={"unknown_event": 1})},
            ),
        ),
    ),
    Case(
        number=269, refs="router-for-me/CLIProxyAPI#1004",
        cause="the name of a Responses call is only in the event that has its complete arguments",
        does="streamkit uses this name for the call. If streamkit already has a different name for the call, it ignores the name in this event.",
        forms=(
            responses_turn(
                *NAMELESS, rs.event("function_call_arguments.done", arguments=A.arguments, name="f"), rs.done(0, "function_call", call_id="a", name="", arguments=A.arguments),
                calls=(A,), stop="tool_calls", repairs={"identity_blank": 1}, to=USED,
            ),
        ),
    ),
    Case(
        number=270, refs="recordings that a test changed",
        cause="`response.completed` contains an `error`",
        does="The response counts as failed: the client gets the error, and no success. If the error contains no text, streamkit ignores the error.",
        forms=(
            responses(
                rs.START, *rs.message(0, "Hi"), rs.last("completed", *[rs.message(0, "Hi")[-1]], error=BUSY), name="completed", text="Hi", stop=None, provider_error="busy", repairs={"stop_conflict": 1},
                to={"openai-chat": failed(Text("Hi"), error="busy"), "anthropic": failed(Text("Hi"), error="busy", losses={"error_detail": 1})},
            ),
            responses(
                rs.START, *rs.message(0, "Hi"), rs.last("completed", *[rs.message(0, "Hi")[-1]], error={"code": None, "message": ""}), name="an error without a word", text="Hi",
                to={"openai-chat": written(Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=271, refs="recordings that a test changed",
        cause="`response.created` already has items, and the arguments in these items are an object. Or an item, such as a call that the client must run, is only in the last event of the response (also of an interaction) or in its own last event",
        does="An item in `response.created` starts there. If an item has no events of its own, streamkit reads it from the last event. If only the start of an item is missing, streamkit writes one. In an interaction, the steps of the last event are compared with all earlier text, because servers may divide the text in another way. The turn then waits for the client, as it does after a whole response.",
        forms=(
            responses(
                rs.START, rs.last("completed", {"item": SHELL}), name="an item for the client to run, in the last event alone", stop="tool_calls", repairs={"block_unopened": 1},
                to={"openai-responses": Output(said=(Block("local_shell_call"),), stop="completed")},
            ),
            responses(
                rs.START, rs.done(0, "local_shell_call", call_id="a", action={"type": "exec"}), rs.last("completed", {"item": SHELL}), name="an item for the client to run, in its own last event alone", stop="tool_calls",
                repairs={"block_unopened": 1}, to={"openai-responses": Output(said=(Block("local_shell_call"),), stop="completed")},
            ),
            responses(
                rs.START, rs.done(0, "image_generation_call", result="iVBORw0KGgo=", output_format="png"), rs.last("completed"), name="an image, in its own last event alone",
                repairs={"block_unopened": 1}, to={"openai-responses": Output(said=(Block("image_generation_call"),), stop="completed")},
            ),
            responses(
                rs.START, rs.done(0, "zz_call", call_id="a"), rs.last("completed"), name="an unknown item, in its own last event alone", stop="tool_calls", repairs={"block_unopened": 1},
                to={"openai-responses": Output(said=(Block("zz_call"),), stop="completed")},
            ),
            responses(
                rs.START, rs.done(0, "function_call", call_id="a", name="f", arguments=A.arguments), rs.done(0, "function_call", id="i1", call_id="b", name="f", arguments="{}"), rs.last("completed"), name="two calls at one index",
                calls=(A, Call("f", "{}", id="b")), stop="tool_calls", repairs={"block_unopened": 1, "index_reused": 1}, to={"anthropic": messages(Use("a", "f", A.arguments), Use("b", "f", "{}"), stop="tool_use", usage=None)},
            ),
            responses(
                rs.START, *(rs.done(0, "message", id=f"i{n}", role="assistant", content=[rs.part("Hi")]) for n in (0, 1)), rs.last("completed"), name="a message twice", text="Hi", repairs={"block_unopened": 2}, to={"openai-chat": written(Text("Hi"))},
            ),
            responses(created(OBJECT), rs.last("completed", {"item": OBJECT}), calls=(A,), stop="tool_calls", repairs={"arguments_not_text": 2, "block_unclosed": 1}, to=USED),
            interaction("requires_action", [SAID, GI_CALL], *gi.text(0, "Hi"), name="a call of Interactions, in the last event alone", text="Hi", calls=(A,), stop="tool_calls", repairs={"fragments_missing": 1}, to=SPOKEN),
            interaction("requires_action", [SAID, GI_CALL], *gi.text(0, "Hi"), *gi.tool(1, "a", "f", A.arguments), name="steps of Interactions again", text="Hi", calls=(A,), stop="tool_calls", to=SPOKEN),
            interaction("requires_action", [GI_CALL], gi.call(0, "a", "f"), gi.piece(0, '{"x"'), name="a call of Interactions whose rest is in the last event", calls=(A,), stop="tool_calls", repairs={"fragments_missing": 1, "block_unclosed": 1}, to=CHAT),
            interaction(
                "requires_action", [{**GI_CALL, "id": "b", "arguments": {}}, GI_CALL], *gi.tool(0, "a", "f", A.arguments), name="another call of Interactions", calls=(A, Call("f", "", "empty", id="b")), stop="tool_calls",
                repairs={"fragments_missing": 1}, to={"openai-chat": written(Use("a", "f", A.arguments), Use("b", "f", "{}"), stop="tool_calls")},
            ),
            interaction(
                "completed", [{"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "c2ln"}, GI_SEARCH, SAID], *gi.text(0, "H"), name="text and a thought of Interactions", text="Hi", reasoning="hm",
                repairs={"fragments_missing": 3}, to={"gemini-interactions": Output(said=(Text("Hi"), Thinking("hm", "c2ln"), Block("google_search_call")), stop="completed")},
            ),
            interaction("completed", [SAID], *gi.text(0, "Hello"), name="another text of Interactions", text="Hello", repairs={"whole_differs": 1}, to={"openai-chat": written(Text("Hello"))}),
            interaction(
                "completed", [{"type": "model_output", "content": [{"type": "image", **gi.IMAGE}, HI]}, {"type": "model_output", "content": [{**HI, "annotations": gi.CITED}]}],
                gi.begin(0, "model_output"), gi.delta(0, "image", **gi.IMAGE), *gi.said(0, "HiHi"), gi.end(0), name="the steps of Interactions, divided in another way", text="HiHi", repairs={"fragments_missing": 1},
                to={"openai-chat": written(Text("HiHi"), losses={"citation": 1})},
            ),
        ),
    ),
)  # fmt: skip
