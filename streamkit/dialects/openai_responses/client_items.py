"""Items that the client runs, or approves, in forms of their own: as calls of tools and their results, for other dialects.

A shell, a patch, a computer, the approval of an MCP server's tool: within this dialect such an item is written as it came. To
the model of another it is a call of a tool by the name of what was run, and what came of it a result.

Source: openai 3.54, ``types/responses``: ``ResponseOutputItem``, ``ResponseInputItem``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.reading import Fields, is_data_uri, media_of
from streamkit.messages import Media, Text, ToolCall, ToolResult

#: The name of the tool, and the member that says what it is to do.
CALLS: Final[Mapping[str, tuple[str, str]]] = {
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "action"),
    "local_shell_call": ("local_shell", "action"),
    "mcp_approval_request": ("", "arguments"),
    "shell_call": ("shell", "action"),
}
#: What answers each, and the member that names the call: the first that is there.
ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "apply_patch_call_output": ("call_id",),
    "computer_call_output": ("call_id",),
    "local_shell_call_output": ("call_id", "id"),
    "mcp_approval_response": ("approval_request_id",),
    "shell_call_output": ("call_id",),
}


def call_id_of(item: Any) -> str | None:
    """The id by which an item and its answer know each other."""
    if not isinstance(item, dict):
        return None
    names = ANSWERS.get(str(item.get("type")), ("call_id", "id"))
    return next((item[name] for name in names if isinstance(item.get(name), str)), None)


def answered(items: Any) -> set[str]:
    """The ids of the calls that these items of an input answer."""
    found = items if isinstance(items, list) else []
    answers = [item for item in found if isinstance(item, dict) and str(item.get("type")) in ANSWERS]
    return {name for item in answers if (name := call_id_of(item)) is not None}


def call_of(item: Fields, kind: str, index: int) -> ToolCall:
    """An item as a call, which has all of the item beside it."""
    name, member = CALLS[kind]
    if kind == "computer_call" and "actions" in item:
        member = "actions"
    value = item.peek(member)
    text = value if isinstance(value, str) else item.text_of(member)
    raw = {"type": kind, **item.rest(), member: value}
    named = name or str(raw.get("name") or "mcp")
    if not text.startswith("{"):
        text = f'{{"{member}":{text}}}' if text else "{}"
    return ToolCall(index, call_id_of(raw) or "", named, text, place=item.place, item=raw)


def result_of(item: Fields, kind: str) -> ToolResult:
    """An answer as a result, which has all of the item beside it."""
    raw = {"type": kind, **item.rest()}
    result = ToolResult(call_id_of(raw) or "", place=item.place, item=raw)
    output = raw.get("output")
    match kind:
        case "mcp_approval_response":
            words = "approved" if raw.get("approve") else "not approved"
            reason = raw.get("reason")
            result.parts = [Text(f"{words}: {reason}" if reason else words)]
        case "computer_call_output" if isinstance(output, dict) and isinstance(output.get("image_url"), str):
            url = output["image_url"]
            shown = Media("image", *media_of(url, item.place)) if is_data_uri(url) else Media("image", url=url)
            shown.place = item.place
            result.parts = [shown]
        case _:
            said = output if isinstance(output, str) else orjson.dumps(output).decode() if output is not None else ""
            result.parts = [Text(said)] if said else []
    result.is_error = raw.get("status") == "failed"
    return result
