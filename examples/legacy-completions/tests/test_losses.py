"""What the dialect has no place for: reasoning and refusals, and above all tool calls, whose text goes to the report."""

import pytest
from machines import broken_rules, read, write
from vectors import DONE, sse

HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chat(*deltas, finish: str = "stop") -> bytes:
    """A stream of Chat: its deltas, then the reason."""
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    last = {"index": 0, "delta": {}, "finish_reason": finish}
    return sse(*[{**HEAD, "choices": [choice]} for choice in [*choices, last]], DONE)


def call(index: int, name: str, arguments: str):
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"call-{index}", "type": "function", "function": function}]}


ROLE = {"role": "assistant", "content": ""}
TEXT = {"content": "Hi"}


def test_calls_are_withheld_with_their_text():
    body = chat(ROLE, TEXT, call(0, "f", '{"x": 1.0}'), call(1, "g", "{}"), finish="tool_calls")
    output, report = write(read([body], "openai-chat"))
    assert report.losses == {"call_withheld": 2, "stop_reason": 1}
    assert [(held.id, held.name, held.arguments) for held in report.withheld] == [
        ("call-0", "f", '{"x": 1.0}'),
        ("call-1", "g", "{}"),
    ]
    back = read([output])
    assert (back.text, back.stop.reason, back.clean) == ("Hi", "stop", True)


def test_a_call_that_was_cut_is_in_the_report_too():
    body = chat(ROLE, call(0, "f", '{"x": '))
    output, report = write(read([body[: body.rindex(b"data: {")]], "openai-chat"))
    assert [held.arguments for held in report.withheld] == ['{"x": ']
    assert b"[DONE]" not in output
    assert broken_rules(output) == []


LOST = {
    "refusal_as_text": ([{"refusal": "No"}, {"refusal": "pe"}], {"refusal_as_text": 1, "stop_reason": 1}, "Nope"),
    "reasoning": ([{"reasoning_content": "h"}, {"reasoning_content": "m"}, TEXT], {"reasoning": 1}, "Hi"),
    "opaque reasoning": (
        [{"reasoning_details": [{"type": "reasoning.text", "signature": "s"}, {"type": "reasoning.encrypted", "data": "x"}]}],
        {"reasoning_signature": 1, "reasoning_opaque": 1},
        "",
    ),
    "text behind a call": ([call(0, "f", '{"x":1}'), TEXT], {"call_withheld": 1, "block_order": 1, "stop_reason": 1}, "Hi"),
    "citations": ([{**TEXT, "annotations": [{"type": "url_citation"}]}], {"citation": 1}, "Hi"),
}  # fmt: skip


@pytest.mark.parametrize("what", LOST)
def test_what_is_lost_is_counted(what):
    deltas, losses, text = LOST[what]
    output, report = write(read([chat(ROLE, *deltas)], "openai-chat"))
    assert report.losses == losses
    assert read([output]).text == text
    assert broken_rules(output) == []


def test_two_blocks_of_text_become_one():
    def event(kind: str, **fields) -> bytes:
        return b"event: %b\n%b" % (kind.encode(), sse({"type": kind, **fields}))

    blocks = [
        event("content_block_start", index=number, content_block={"type": "text", "text": ""})
        + event("content_block_delta", index=number, delta={"type": "text_delta", "text": text})
        + event("content_block_stop", index=number)
        for number, text in enumerate(("one", "two"))
    ]
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": {"input_tokens": 1},
    }
    end = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}) + event("message_stop")
    output, report = write(read([event("message_start", message=message) + b"".join(blocks) + end], "anthropic"))
    assert report.losses == {"block_boundary": 1}
    assert read([output]).text == "onetwo"
