"""Cases 250 to 253 and 255: items of Responses that only its clients know, and compactions, in answers for clients of other dialects."""

from __future__ import annotations

from typing import Any

from tests.vectors import anthropic as am
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Block, Case, Form, Text, Use
from tests.vectors.field.compaction import BLOCK, SUMMARY
from tests.vectors.field.shapes import anthropic, messages, responses, responses_turn, written
from tests.vectors.vector import Call

LOST = {"client_tool": 1}
EXEC = {"type": "exec", "command": ["ls"], "env": {}}
SHELL: dict[str, Any] = {"call_id": "c1", "action": {"commands": ["ls"]}}
OUTPUT: dict[str, Any] = {
    "call_id": "c1",
    "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
}
ROLL: dict[str, Any] = {"server_label": "dice", "name": "roll", "arguments": '{"sides": 6.0}'}
CHECKS = [{"id": "s1", "code": "malicious_instructions"}]
FAILED = (
    {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": None}},
    {"type": "content_block_stop", "index": 0},
)


def item(kind: str, index: int = 1, **fields: Any) -> tuple[Any, Any]:
    return rs.added(index, kind, **fields), rs.done(index, kind, **fields)


def run(title: str, kind: str, use: Use, **fields: Any) -> Form:
    """A text, and an item that the client runs: a call for every client but those of its own dialect."""
    bare = Use(None, use.name, use.arguments)
    return responses_turn(
        *rs.message(0, "Hi"), *item(kind, **fields), name=title, text="Hi", stop="tool_calls",
        to={
            "openai-chat": written(Text("Hi"), use, stop="tool_calls", losses=LOST),
            "anthropic": messages(Text("Hi"), use, stop="tool_use", usage=None, losses=LOST),
            "ollama": written(Text("Hi"), bare, losses={**LOST, "call_id": 1, "usage_detail": 1}),
            "gemini": written(Text("Hi"), use, stop="STOP", losses=LOST),
            "cohere": written(Text("Hi"), use, stop="TOOL_CALL", losses={**LOST, "usage_detail": 1}),
            "openai-responses": written(Text("Hi"), Block(kind), stop="completed"),
        },
    )  # fmt: skip


CASES: tuple[Case, ...] = (
    Case(
        number=250, refs="vercel/ai#20427; OpenAI Responses: `local_shell_call`, `shell_call`, `apply_patch_call`, `computer_call`, `mcp_approval_request`",
        cause="an item of Responses that the client must run or approve is dropped in other dialects. Agents then read the turn as complete",
        does="streamkit writes the item as a call, and the stop reason is `tool_calls`. The id of the call says which kind of item it was. In the next request, streamkit turns the call back into the item, and the result into the item's output.",
        forms=(
            run("a local shell", "local_shell_call", Use("streamkit_local_shell_c1", "local_shell", '{"type":"exec","command":["ls"],"env":{}}'), call_id="c1", action=EXEC),
            run("a shell", "shell_call", Use("streamkit_shell_c1", "shell", '{"commands":["ls"]}'), **SHELL),
            run("a patch", "apply_patch_call", Use("streamkit_apply_patch_c1", "apply_patch", '{"type":"delete_file","path":"a"}'), call_id="c1", operation={"type": "delete_file", "path": "a"}),
            run("a computer", "computer_call", Use("streamkit_computer_c1", "computer", '{"type":"wait"}'), call_id="c1", action={"type": "wait"}, pending_safety_checks=[]),
            run("a computer that does much at once", "computer_call", Use("streamkit_computer_c1", "computer", '{"actions":[{"type":"wait"}]}'), call_id="c1", actions=[{"type": "wait"}], pending_safety_checks=[]),
            run("a computer with checks", "computer_call", Use("streamkit_computer_c1", "computer", '{"action":{"type":"wait"},"pending_safety_checks":[{"id":"s1","code":"malicious_instructions"}]}'), call_id="c1", action={"type": "wait"}, pending_safety_checks=CHECKS),
            run("an approval", "mcp_approval_request", Use("streamkit_mcp_approval_request_i1", "mcp_approval_request", '{"server_label":"dice","name":"roll","arguments":{"sides": 6.0}}'), **ROLL),
            responses_turn(
                *item("shell_call", 0, **SHELL), *item("shell_call_output", **OUTPUT), *rs.message(2, "Hi"), name="a shell that the server ran", text="Hi",
                to={"openai-chat": written(Text("Hi"), losses={"server_tool": 3}), "anthropic": messages(Text("Hi"), usage=None, losses={"server_tool": 3})},
            ),
            responses_turn(
                *rs.call(0, "c0", "f", "{}"), *item("local_shell_call", call_id="c1", action=EXEC), name="beside a call of a function",
                calls=(Call("f", "{}", id="c0"),), stop="tool_calls",
                to={"openai-chat": written(Use("c0", "f", "{}"), Use("streamkit_local_shell_c1", "local_shell", '{"type":"exec","command":["ls"],"env":{}}'), stop="tool_calls", losses=LOST)},
            ),
        ),
        beside="tests/requests/test_client_items.py::test_what_was_a_call_in_an_answer_is_the_item_again",
    ),
    Case(
        number=251, refs="streamkit itself",
        cause="an item that the client must run never completes or is marked incomplete, but the response is marked complete",
        does="streamkit withholds the call, so that the client does not run it. The response ends as truncated.",
        forms=(
            responses_turn(
                *rs.message(0, "Hi"), rs.added(1, "local_shell_call", call_id="c1", action=EXEC), name="never done", text="Hi", stop="tool_calls",
                to={
                    "openai-chat": written(Text("Hi"), stop="length", losses={**LOST, "call_withheld": 1}, withheld=('{"type":"exec","command":["ls"],"env":{}}',)),
                    "anthropic": messages(Text("Hi"), stop="max_tokens", usage=None, losses={**LOST, "call_withheld": 1}, withheld=('{"type":"exec","command":["ls"],"env":{}}',)),
                },
            ),
            responses_turn(
                *rs.message(0, "Hi"), rs.added(1, "apply_patch_call", call_id="c1"), rs.done(1, "apply_patch_call", call_id="c1", status="incomplete", operation={"type": "delete_file", "path": "a"}),
                name="incomplete", text="Hi", stop="tool_calls",
                to={"anthropic": messages(Text("Hi"), stop="max_tokens", usage=None, losses={**LOST, "call_withheld": 1}, withheld=('{"type":"delete_file","path":"a"}',))},
            ),
            responses_turn(
                rs.added(0, "local_shell_call", call_id="c1"), name="done in the last response alone", stop="tool_calls", repairs={"block_unclosed": 1},
                end=rs.last("completed", rs.done(0, "local_shell_call", call_id="c1", action=EXEC)),
                to={"openai-chat": written(Use("streamkit_local_shell_c1", "local_shell", '{"type":"exec","command":["ls"],"env":{}}'), stop="tool_calls", losses=LOST)},
            ),
        ),
    ),
    Case(
        number=252, refs="microsoft/vscode-copilot-chat#3740",
        cause="a `compaction` item of Responses replaces the earlier conversation. For clients of other dialects, software drops the item",
        does="Anthropic's clients get a block with the item's `encrypted_content`, sealed. Other clients get the content in the place for encrypted reasoning, if their dialect has this place. OpenAI gets its own item back.",
        forms=(
            responses_turn(
                rs.added(0, "compaction", id="cmp_1"), {"type": "response.compaction.compacting", "item_id": "cmp_1", "output_index": 0},
                rs.done(0, "compaction", id="cmp_1", encrypted_content="gAAAA"), *rs.message(1, "So?"), text="So?",
                to={
                    "anthropic": messages(Block("compaction"), Text("So?"), usage=None, holds=(b'"content":"(A summary', b'"encrypted_content":"c3RyZWFta2l0'), lacks=(b"gAAAA",)),
                    "openai-chat": written(Text("So?"), holds=(b'"format":"openai_compaction-v1"', b'"data":"gAAAA"')),
                    "gemini": written(Block("thoughtSignature"), Text("So?"), stop="STOP"),
                    "ollama": written(Text("So?"), losses={"reasoning_opaque": 1, "usage_detail": 1}),
                    "openai-responses": written(Block("compaction"), Text("So?"), stop="completed"),
                },
            ),
            responses_turn(
                rs.added(0, "compaction", id="cmp_1"), rs.done(0, "compaction", id="cmp_1"), *rs.message(1, "So?"), name="with nothing in it", text="So?",
                to={"anthropic": messages(Text("So?"), usage=None, losses={"compaction": 1})},
            ),
        ),
        beside="tests/responses/test_compaction.py::test_an_item_of_openai_is_a_block_for_anthropic_and_the_item_again",
    ),
    Case(
        number=253, refs="Anthropic's options `pause_after_compaction` and (at the top level) `compaction`",
        cause="a response ends after a summary and before the answer, with the stop reason `compaction`. Software turns this reason into `stop`, and the client takes the summary for the answer",
        does="streamkit writes the stop reason of a truncated response. In Responses, an item shows the compaction. If the compaction failed, there is no item, and the response has the status `incomplete`.",
        forms=(
            anthropic(
                am.START, *BLOCK, am.finish("compaction"), am.STOP, name="paused", stop="compaction",
                to={
                    "openai-chat": written(Text(SUMMARY), stop="length", losses={"compaction": 1, "stop_reason": 1}),
                    "ollama": written(Text(SUMMARY), stop="length", losses={"compaction": 1, "stop_reason": 1}),
                    "gemini": written(Text(SUMMARY), stop="MAX_TOKENS", losses={"compaction": 1, "stop_reason": 1}),
                    "cohere": written(Text(SUMMARY), stop="MAX_TOKENS", losses={"compaction": 1, "stop_reason": 1}),
                    "mistral": written(Text(SUMMARY), stop="length", losses={"compaction": 1, "stop_reason": 1}),
                    "openai-responses": written(Block("compaction"), stop="completed", losses={"stop_reason": 1, "usage_unknown": 1}),
                },
            ),
            anthropic(
                am.START, *FAILED, am.finish("compaction"), am.STOP, name="failed", stop="compaction",
                to={"openai-responses": written(stop="max_output_tokens", losses={"compaction": 1, "stop_reason": 1, "usage_unknown": 1})},
            ),
        ),
    ),
    Case(
        number=255, refs="vercel/ai#9896; xAI, with the tool `x_search`",
        cause="the provider xAI itself searches X, and writes the search as calls of custom tools that no request defines. Software takes these calls for calls that the client must run, although the response is finished",
        does="If the tools of the response include `x_search` and no custom tool of that name, streamkit keeps the call for clients of the same dialect. For other clients, streamkit counts a loss. Such a call needs no result in a later request.",
        forms=(
            responses(
                *({**start, "response": {**rs.RESPONSE, "tools": [*rs.XAI_TOOLS]}} for start in (rs.START, rs.GOING)), *rs.X_SEARCHED, *rs.message(1, "Hi"),
                rs.last("completed", rs.X_SEARCHED[-1]), text="Hi",
                to={
                    "openai-chat": written(Text("Hi"), stop="stop", losses={"server_tool": 4, "response_fields": 1}),
                    "anthropic": messages(Text("Hi"), stop="end_turn", usage=None, losses={"server_tool": 4, "response_fields": 1}),
                    "openai-responses": written(Use("xs_1", "x_keyword_search", '{"query":"q"}'), Text("Hi"), stop="completed"),
                },
            ),
        ),
        beside="tests/requests/test_openai_responses.py::test_a_call_that_xai_itself_has_run_needs_no_result",
    ),
)  # fmt: skip
