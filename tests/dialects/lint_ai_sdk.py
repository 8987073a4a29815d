"""UI message streams for the checker of the AI SDK's: one at least for every rule, and streams that break none."""

from __future__ import annotations

from typing import Any

from tests.vectors import ai_sdk as ui
from tests.vectors.vector import sse

HEAD = sse(ui.START, ui.STEP)
END = sse(ui.STEP_END, ui.finish(), ui.DONE)
TEXT = sse(*ui.text("Hi"))
FAILED = sse({"type": "error", "errorText": "no"})


def one(**members: Any) -> bytes:
    return sse(members)


# fmt: off
AI_SDK: list[tuple[str, bytes, str]] = [
    ("text", HEAD + TEXT + END, ""),
    ("a call", HEAD + sse(ui.call_start("a"), ui.piece("a", "{}"), ui.available("a", {})) + END, ""),
    ("a call that is an error", HEAD + one(type="tool-input-error", toolCallId="a", toolName="f", input="{", errorText="no") + END, ""),
    ("a call that the provider ran", HEAD + sse(ui.available("a", {}, providerExecuted=True)) + one(type="tool-output-available", toolCallId="a", output=1) + FAILED, ""),
    ("data", HEAD + one(type="data-x", data=1) + END, ""),
    ("an error", HEAD + TEXT + FAILED, ""),
    ("comments", HEAD + b": hi\n\n" + TEXT + END, ""),
    ("no finish", HEAD + TEXT, "truncated"),
    ("no blank line", (HEAD + TEXT + sse(ui.finish()))[:-1], "unterminated"),
    ("no JSON", HEAD + TEXT + b"data: {\n\n" + END, "not_json"),
    ("no object", HEAD + TEXT + b"data: []\n\n" + END, "not_object"),
    ("no UTF-8", HEAD + TEXT + b'data: {"x":"\xff"}\n\n' + END, "not_utf8"),
    ("no data", HEAD + TEXT + b"data:\n\n" + END, "empty_data"),
    ("a type that nobody knows", HEAD + TEXT + one(type="x") + END, "chunk_type"),
    ("a type of version 7", HEAD + TEXT + one(type="custom", kind="a.b") + END, "chunk_type*"),
    ("an id that is null", HEAD + TEXT + END.replace(b'"finish"', b'"finish","messageId":null'), "member"),
    ("no input", HEAD + one(type="tool-input-available", toolCallId="a", toolName="f") + END, "member"),
    ("metadata that is flat", HEAD + sse(*ui.text("Hi", providerMetadata={"a": "b"})) + END, "member"),
    ("a delta without a part", HEAD + TEXT + one(type="text-delta", id="x", delta="a") + END, "part"),
    ("a part twice", HEAD + sse(ui.text()[0]) + TEXT + END, "part_again"),
    ("a part without its end", HEAD + sse(ui.text()[0]) + END, "part_open*"),
    ("a delta without a call", HEAD + sse(ui.piece("a", "{}")) + END, "call"),
    ("a call that is available twice", HEAD + sse(ui.available("a", {}), ui.available("a", {})) + END, "call_twice"),
    ("a reason that nobody knows", HEAD + TEXT + sse(ui.finish("max_tokens"), ui.DONE), "finish_reason"),
    ("a key that is refused", HEAD + sse(ui.available("a", {"__proto__": 1})) + END, "proto_key"),
    ("no step", sse(ui.START) + TEXT + END, "step*"),
    ("an empty step", HEAD + END, "empty_step"),
    ("a call that runs in a failure", HEAD + sse(ui.available("a", {})) + FAILED, "run_and_failed"),
    ("an end in an error", HEAD + TEXT + sse(ui.finish("error")), "failed_success*"),
    ("an abort", HEAD + TEXT + one(type="abort"), "failed_success*"),
    ("text behind the end", HEAD + TEXT + END + sse(ui.finish()), "after_end"),
]
# fmt: on
