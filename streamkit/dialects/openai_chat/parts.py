"""Parts of a message that requests and whole responses write alike. Source: dialects.md §1.2, §1.3, §1.6."""

from __future__ import annotations

from typing import Any

from streamkit.conversation.messages import Reasoning, RedactedReasoning, ToolCall
from streamkit.dialects.openai_chat.wire import format_of
from streamkit.events import Opaque


def tool_call(call: ToolCall, call_id: str, name: str) -> dict[str, Any]:
    """One of ``tool_calls``. Readers parse the arguments of a function, and "" is no JSON (quirks.md 42)."""
    if call.kind == "custom":
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    arguments = call.arguments if call.arguments.strip() else "{}"
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def reasoning_detail(part: Reasoning | RedactedReasoning) -> dict[str, Any]:
    """One of OpenRouter's ``reasoning_details``, without its index; empty for reasoning that says nothing."""
    if isinstance(part, RedactedReasoning):
        return encrypted(part.opaque)
    if not part.text and part.signature is None:
        return {}
    name = "summary" if part.kind == "summary" else "text"
    detail = {"type": f"reasoning.{name}", name: part.text}
    if part.signature is not None:
        detail |= {"signature": part.signature.blob, "format": format_of(part.signature.vendor)}
    return detail


def encrypted(opaque: Opaque) -> dict[str, Any]:
    """What only its vendor can read, as a detail."""
    return {"type": "reasoning.encrypted", "data": opaque.blob, "format": format_of(opaque.vendor)}
