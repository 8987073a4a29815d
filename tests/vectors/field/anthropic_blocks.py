"""Cases 75 to 84: the life of Anthropic's content blocks."""

from __future__ import annotations

from tests.vectors import anthropic as am
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Block, Case, Text, Thinking, Use
from tests.vectors.field.shapes import calling, chat, message, messages, responses_turn, written
from tests.vectors.openai_chat import DONE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call

KNOWN = {"input_tokens": 9, "output_tokens": 4}
USED = {
    "input_tokens": 5,
    "output_tokens": 5,
    "cache_read_input_tokens": 4,
    "output_tokens_details": {"thinking_tokens": 2},
}
A = Call("f", '{"x":1}', id="a")
B = Call("g", '{"y":2}', id="b")
C = Call("h", '{"z":3}', id="c")
BOUNDARY = {"block_boundary": 1}

CASES = (
    Case(
        number=75, refs="BerriAI/litellm#13373; decolua/9router#2225, #2248",
        cause="a delta arrives for a content block that never started",
        does="streamkit starts a block for the delta. The kind of the delta decides the kind of the block. In its output, every block has a start event.",
        forms=(
            message(
                am.delta(0, "text_delta", text="Hi"), am.stop(0), name="text", text="Hi", repairs={"block_unopened": 1},
                to={"anthropic": messages(Text("Hi"), usage=KNOWN), "openai-chat": written(Text("Hi"))},
            ),
            message(
                *am.block(0, "Hi"), am.delta(1, "thinking_delta", thinking="hm"), am.stop(1), name="thinking", text="Hi", reasoning="hm", repairs={"block_unopened": 1},
                to={"anthropic": messages(Text("Hi"), Thinking("hm"), usage=KNOWN), "openai-chat": written(Thinking("hm"), Text("Hi"), losses={"block_order": 1})},
            ),
        ),
    ),
    Case(
        number=76, refs="BerriAI/litellm#21128, #22504, #25212, #34433, #29518, #30043, #33224, #29600, #31495",
        cause="reasoning arrives while a text block is open, or one chunk has both reasoning and text",
        does="In streamkit's output, a block has only one kind of content. streamkit closes the block before it starts a block of another kind. The delta that causes this change is kept.",
        forms=(
            chat(
                chunk({"role": "assistant", "content": "", "reasoning_content": "hm"}), chunk({"reasoning_content": "m", "content": "Hi"}), STOP, DONE, name="both in one chunk",
                text="Hi", reasoning="hmm", to={"anthropic": messages(Thinking("hmm"), Text("Hi"))},
            ),
            chat(
                said("Hi"), chunk({"reasoning_content": "hm"}), said("!"), calls(call(0, "a", "f", '{"x":1}'), finish="tool_calls"), DONE, name="text, reasoning, text, call",
                text="Hi!", reasoning="hm", calls=(A,), stop="tool_calls",
                to={"anthropic": messages(Text("Hi"), Thinking("hm"), Text("!"), Use("a", "f", '{"x":1}'), stop="tool_use")},
            ),
            message(
                am.begin(0, "text", text=""), am.delta(0, "thinking_delta", thinking="hm"), am.stop(0), *am.block(1, "Hi"), name="thinking inside a text block",
                text="Hi", reasoning="hm", repairs={"block_mismatch": 1},
                to={"anthropic": messages(Thinking("hm"), Text("Hi"), usage=KNOWN), "openai-chat": written(Thinking("hm"), Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=77, refs="ollama/ollama#17101",
        cause="two blocks start at index 0, and the first is never closed",
        does="The start of the second block closes the first block. streamkit writes indices 0, 1, 2 and so on.",
        forms=(
            message(
                am.begin(0, "text", text=""), am.delta(0, "text_delta", text="Hi"), am.begin(0, "thinking", thinking="", signature=""), am.delta(0, "thinking_delta", thinking="hm"), am.stop(0),
                text="Hi", reasoning="hm", repairs={"block_reopened": 1},
                to={"anthropic": messages(Text("Hi"), Thinking("hm"), usage=KNOWN), "openai-chat": written(Thinking("hm"), Text("Hi"), losses={"block_order": 1})},
            ),
        ),
    ),
    Case(
        number=78, refs="looplj/axonhub#1677",
        cause="no block has a `content_block_stop`",
        does="streamkit closes all blocks at the end of the message. In its output, streamkit stops each block before it starts the next one.",
        forms=(
            message(
                *am.block(0, "Hi")[:-1], *am.tool(1, "a", "f", '{"x":1}')[:-1], *am.tool(2, "b", "g", '{"y":2}')[:-1], reason="tool_use",
                text="Hi", calls=(A, B), stop="tool_calls", repairs={"block_unclosed": 3},
                to={
                    "anthropic": messages(Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_use", usage=KNOWN),
                    "openai-chat": written(Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_calls"),
                },
            ),
        ),
    ),
    Case(
        number=79, refs="BerriAI/litellm#15307; new-api#6394; open-webui#25963",
        cause="nothing is wrong in the stream: the fragments of parallel calls alternate. The client's dialect does not allow content blocks to alternate",
        does="streamkit writes one block at a time. streamkit holds the arguments of later calls until the earlier calls are complete.",
        forms=(
            calling(
                calls(call(0, "a", "f", "")), calls(call(1, "b", "g", "")), calls(call(2, "c", "h", "")),
                calls(call(2, arguments='{"z"')), calls(call(1, arguments='{"y"'), call(0, arguments='{"x"')), calls(call(1, arguments=":2}")),
                calls(call(0, arguments=":1}"), call(2, arguments=":3}")), calls=(A, B, C),
            ),
        ),
    ),
    Case(
        number=80, refs="BerriAI/litellm#30115, #27442",
        cause="a Responses stream has deltas for an item that was never added",
        does="streamkit starts the item itself, with the data that the stream contains about the item.",
        forms=(
            responses_turn(
                *rs.message(0, "Hi")[2:], *rs.call(1, "a", "f", '{"x":1}')[1:], text="Hi", calls=(A,), stop="tool_calls", repairs={"block_unopened": 2},
                to={
                    "anthropic": messages(Text("Hi"), Use("a", "f", '{"x":1}'), stop="tool_use", usage=USED),
                    "openai-responses": written(Text("Hi"), Use("a", "f", '{"x":1}'), stop="completed"),
                },
            ),
        ),
    ),
    Case(
        number=81, refs="claude-code#88536, #62396; cc-switch#7243; litellm#34692; anthropic-sdk-python#461; hermes#11906; experiential#683",
        cause="text blocks without text stay in the history, and the server rejects every later request",
        does="streamkit starts a text block with its first text, so no block is empty.",
        forms=(
            chat(
                chunk({"role": "assistant", "content": ""}), calls(call(0, "a", "f", '{"x":1}')), chunk({"content": ""}), chunk({"content": ""}, "tool_calls"), DONE, name="blank content",
                calls=(A,), stop="tool_calls", to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", lacks=(b'"type":"text"',))},
            ),
            message(
                am.begin(0, "text", text=""), am.stop(0), *am.tool(1, "a", "f", '{"x":1}'), am.begin(2, "text", text=""), am.delta(2, "text_delta", text=""), am.stop(2), reason="tool_use", name="blank blocks",
                calls=(A,), stop="tool_calls",
                to={"anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", usage=KNOWN, lacks=(b'"type":"text"',)), "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls")},
            ),
        ),
        beside="tests/requests/test_anthropic.py::test_a_request",
    ),
    Case(
        number=82, refs="big-AGI#917",
        cause="the indices of content blocks have gaps",
        does="streamkit accepts gaps when it reads a stream. streamkit writes indices without gaps.",
        forms=(
            message(
                *am.block(0, "Hi"), *am.tool(2, "a", "f", '{"x":1}'), *am.tool(5, "b", "g", '{"y":2}'), reason="tool_use",
                text="Hi", calls=(A, B), stop="tool_calls",
                to={
                    "anthropic": messages(Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_use", usage=KNOWN),
                    "openai-chat": written(Text("Hi"), Use("a", "f", '{"x":1}'), Use("b", "g", '{"y":2}'), stop="tool_calls"),
                },
            ),
        ),
    ),
    Case(
        number=83, refs="claude-worker-proxy#19",
        cause="a server sends one block per token, and no usage",
        does="streamkit joins adjacent text deltas into one block. Blocks that arrive separately stay separate for Anthropic's clients, and are joined for other clients. streamkit always writes usage.",
        forms=(
            chat(said("H"), said("i"), said("!"), STOP, DONE, name="tokens", text="Hi!", to={"anthropic": messages(Text("Hi!"), holds=(b'"usage":{"input_tokens":0,"output_tokens":0,',))}),
            message(
                *am.block(0, "H"), *am.block(1, "i"), name="blocks", text="Hi",
                to={"openai-chat": written(Text("Hi"), losses=BOUNDARY), "ollama": written(Text("Hi"), losses=BOUNDARY), "anthropic": messages(Text("H"), Text("i"), usage=KNOWN)},
            ),
        ),
    ),
    Case(
        number=84, refs="BerriAI/litellm#23047, #23048",
        cause="nothing is wrong in the stream: it contains thinking, a tool that the server ran, the tool's result, more thinking, and text. Other software changes this order",
        does="streamkit keeps the order of the blocks, and each signature stays in its block.",
        forms=(
            message(
                am.begin(0, "thinking", thinking="", signature=""), am.delta(0, "thinking_delta", thinking="one"), am.delta(0, "signature_delta", signature="c2ln"), am.stop(0),
                am.begin(1, "server_tool_use", id="s", name="web_search", input={}), am.delta(1, "input_json_delta", partial_json='{"q":"x"}'), am.stop(1),
                am.begin(2, "web_search_tool_result", tool_use_id="s", content=[]), am.stop(2),
                am.begin(3, "thinking", thinking="", signature=""), am.delta(3, "thinking_delta", thinking="two"), am.delta(3, "signature_delta", signature="bWFy"), am.stop(3),
                *am.block(4, "Hi"),
                text="Hi", reasoning="onetwo",
                to={
                    "anthropic": messages(Thinking("one", "c2ln"), Block("server_tool_use"), Block("web_search_tool_result"), Thinking("two", "bWFy"), Text("Hi"), usage=KNOWN),
                    "openai-chat": written(Thinking("one\n\ntwo", "c2lnbWFy"), Text("Hi"), losses={"server_tool": 5}),
                },
            ),
        ),
    ),
)  # fmt: skip
