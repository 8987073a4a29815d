"""Items that the client runs or approves, in requests: turn them into calls and results for other dialects, and back.

Within this dialect these items are written unchanged. The id of a call shows whether the call was such an item in a response
(``streams/client_calls.py``), the call becomes the item again, provided that its arguments and its result have a form that
the item and its output can have.

Source: openai 3.54, ``types/responses``: ``ResponseOutputItem``, ``ResponseInputItem``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve

from streamkit.conversation.media import data_uri
from streamkit.conversation.messages import Extras, Media, Part, Request, Text, ToolCall, ToolResult, Turn
from streamkit.dialects.lowering import Lowering, Place, each_part
from streamkit.dialects.members.fields import Fields, is_data_uri, media_of
from streamkit.dialects.members.values import json_object, json_value, objects_in
from streamkit.dialects.openai_responses.wire import OUTPUTS
from streamkit.dialects.streams.approvals import APPROVAL, answer_in, answer_text, approval_in
from streamkit.dialects.streams.client_calls import NAMES, SAYING, SEARCH, arguments_of, kind_of_id
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.text.identifiers import hashed

Item: TypeAlias = dict[str, Any]
#: For each type of result: the members that may have the id of the call. The first one present counts.
ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "apply_patch_call_output": ("call_id",),
    "computer_call_output": ("call_id",),
    "local_shell_call_output": ("call_id", "id"),
    "mcp_approval_response": ("approval_request_id",),
    "shell_call_output": ("call_id",),
    "tool_search_output": ("call_id",),
}


def call_id_of(item: Any) -> str | None:
    """Return the id that a call item and its result item share."""
    if not isinstance(item, dict):
        return None
    names = ANSWERS.get(str(item.get("type")), ("call_id", "id"))
    return next((item[name] for name in names if isinstance(item.get(name), str)), None)


def answered(items: Any) -> set[str]:
    """Return the ids of the items and custom calls for which these input items contain a result."""
    answers = [item for item in objects_in(items) if str(item.get("type")) in {*ANSWERS, OUTPUTS["custom"]}]
    return {name for item in answers if (name := call_id_of(item)) is not None}


def call_of(item: Fields, kind: str, index: int) -> ToolCall:
    """Return the call that an item requests. The call also keeps the whole item."""
    raw = {"type": kind, **item.peek_all()}
    text = arguments_of(kind, raw, item.text_of)
    item.rest()
    return ToolCall(index, call_id_of(raw) or "", NAMES[kind], text, place=item.place, item=raw)


def result_of(item: Fields, raw: Extras) -> ToolResult:
    """Return the result in a client's output item, which is kept whole. The caller adds the tools that a tool search found."""
    result = ToolResult(call_id_of(raw) or "", place=item.place, item=raw)
    output = raw.get("output")
    match raw["type"]:
        case "mcp_approval_response":
            result.parts = [Text(answer_text(raw.get("approve") is True, raw.get("reason")))]
        case "computer_call_output" if isinstance(output, dict) and isinstance(output.get("image_url"), str):
            url = output["image_url"]
            shown = Media("image", *media_of(url, item.place)) if is_data_uri(url) else Media("image", url=url)
            shown.place = item.place
            result.parts = [shown]
        case "computer_call_output" if isinstance(output, dict) and isinstance(output.get("file_id"), str):
            result.parts = [Media("image", file_id=output["file_id"], place=item.place)]
        case _:
            text = output if isinstance(output, str) else orjson.dumps(output).decode() if output is not None else ""
            result.parts = [Text(text)] if text else []
    result.is_error = raw.get("status") == "failed"
    return result


def with_items_again(request: Request, to: Lowering) -> None:
    """Turn calls that were items in a response back into items, with their results; remove the names of other results."""
    again = items_again(request.turns)

    def step(part: Part, _place: Place, _to: Lowering) -> Part:
        match part:
            case ToolCall() if part.id in again:
                return evolve(part, item=again[part.id][0], extras=None)
            case ToolResult() if (output := again.get(part.call_id, (None, None))[1]) is not None:
                return ToolResult(part.call_id, kind=part.kind, item=output)
            case ToolResult(name=str()):
                return evolve(part, name=None)
        return part

    each_part(request, to, step)


def items_again(turns: Iterable[Turn]) -> dict[str, tuple[Item, Item | None]]:
    """Return the item and the output for each call that was an item of this dialect in a response, by the call's id."""
    parts = [part for turn in turns for part in turn.parts]
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
    found: dict[str, tuple[Item, Item | None]] = {}
    for call in parts:
        if not isinstance(call, ToolCall) or (item := _item_of(call)) is None:
            continue
        result = results.get(call.id)
        output = None if result is None else _output_of(result, item)
        if result is None or output is not None:
            found[call.id] = item, output
    return found


def _item_of(call: ToolCall) -> Item | None:
    """Return the item that a call was in a response; None if it was none, or if the call contains what the item cannot."""
    known = kind_of_id(call.id)
    arguments = json_object(call.arguments)
    if known is None or arguments is None or call.name != NAMES[known[0]] or known[0] == SEARCH:
        return None  # the output of a search has tool definitions, which a result's text does not
    kind, item_id = known
    if kind == APPROVAL:
        approval = approval_in(call.id, call.name, call.arguments)
        return None if approval is None else approval.item
    first = SAYING[kind][0]
    members = arguments if arguments and arguments.keys() <= set(SAYING[kind]) else {first: arguments}
    item = {"type": kind, "call_id": item_id, **members, "status": "completed"}
    if kind in {"computer_call", "local_shell_call"}:  # these items need an id in addition to the call's
        item["id"] = f"{'cu' if kind == 'computer_call' else 'lsh'}_{MADE}{hashed(item_id, 22)}"
    if kind == "computer_call":
        item.setdefault("pending_safety_checks", [])
    return item


def _output_of(result: ToolResult, item: Item) -> Item | None:
    """Return the output item for a result; None if that output item cannot express the result."""
    text = result.text
    if item["type"] == "computer_call":
        shown = [part for part in result.parts if isinstance(part, Media) and part.kind == "image"]
        url = (data_uri(shown[0]) if shown[0].data is not None else shown[0].url) if shown else None
        if url is None:
            return None
        screenshot = {"type": "computer_screenshot", "image_url": url}
        return {"type": "computer_call_output", "call_id": item["call_id"], "output": screenshot}
    if not all(isinstance(part, Text) for part in result.parts):
        return None
    match item["type"]:
        case "mcp_approval_request":
            return _approval(item["id"], text, failed=result.is_error)
        case "local_shell_call":
            return {"type": "local_shell_call_output", "id": item["call_id"], "output": text}
        case "apply_patch_call":
            status = "failed" if result.is_error else "completed"
            return {"type": "apply_patch_call_output", "call_id": item["call_id"], "status": status, "output": text}
    return {"type": "shell_call_output", "call_id": item["call_id"], "output": _printed(result)}


def _approval(request: str, text: str, *, failed: bool) -> Item:
    """Return the reply to an approval request."""
    approve, reason = answer_in(text, failed=failed)
    answer = {"type": "mcp_approval_response", "approval_request_id": request, "approve": approve}
    return {**answer, "reason": reason} if reason else answer


def _printed(result: ToolResult) -> list[Any]:
    """Return the output of a shell: unchanged, or a plain text as the output of one command."""
    printed = json_value(result.text)
    if isinstance(printed, list) and printed and all(isinstance(each, dict) and "outcome" in each for each in printed):
        return printed
    outcome = {"type": "exit", "exit_code": 1 if result.is_error else 0}
    return [{"stdout": result.text, "stderr": "", "outcome": outcome}]
