"""Faults of real servers that the mock server can put into Gemini streams: one for each repair that the decoder makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.dialects.quirks import (
    ANY,
    EVENTS,
    Change,
    Frames,
    Payload,
    both,
    call_text,
    compact,
    copied,
    cut,
    end_quirks,
    event_quirks,
    every,
    first,
    last,
    put,
    reword,
    stray_errors,
    surrounded,
    text_quirks,
    turn,
    value_at,
)

CONTENT: Final = "candidates.0.content"
PARTS: Final = "candidates.0.content.parts"
PART: Final = "candidates.0.content.parts.0"
TEXT: Final = "candidates.0.content.parts.0.text"
THOUGHT: Final = "candidates.0.content.parts.0.thought"
CALL: Final = "candidates.0.content.parts.0.functionCall"
NAME: Final = "candidates.0.content.parts.0.functionCall.name"
ID: Final = "candidates.0.content.parts.0.functionCall.id"
FINISH: Final = "candidates.0.finishReason"
FOREIGN: Final = {"STOP": "end_turn", "MAX_TOKENS": "length"}
ERROR: Final = every("error")

edit, add = EVENTS.edit, EVENTS.add


def _parts(*values: tuple[str, Any], named: bool = False, end: bool = True) -> Change:
    """Return a change that splits the first call into parts of its arguments, and adds these paths with their values.

    A text is split in two. ``named`` repeats the call's name in each part. ``end`` False leaves out the part that ends the
    call.
    """

    def parts(payload: Payload) -> list[Payload]:
        call = value_at(payload, CALL)
        found = [(f"$.{name}", value) for name, value in call.get("args", {}).items()]
        if not found:
            return [payload]
        call.pop("args")
        made = [{"partialArgs": [part], "willContinue": True} for pair in [*found, *values] for part in _values(*pair)]
        later = {"name": call["name"]} if named else {}
        calls = [{**(later if number else call), **part} for number, part in enumerate(made)]
        return [copied(payload, put(CALL, one)) for one in [*calls, *([{}] if end else [])]]

    return EVENTS.each(first(NAME), parts)


def _values(path: str, value: Any) -> list[dict[str, Any]]:
    match value:
        case str():
            half = (len(value) + 1) // 2
            return [{"jsonPath": path, "stringValue": text} for text in (value[:half], value[half:])]
        case bool():
            return [{"jsonPath": path, "boolValue": value}]
        case int() | float():
            return [{"jsonPath": path, "numberValue": value}]
    return [{"jsonPath": path, "nullValue": None}]


def _call_as_text(payload: Payload) -> None:
    call = value_at(payload, CALL)
    put(PART, {"text": call_text(call["name"], call.get("args", {}))})(payload)


def _array_without_end(frames: Frames) -> Frames:
    payloads = [compact(payload) for payload in EVENTS.having(ANY, frames)]
    if not payloads:  # no events: the stream is an array already
        return (*frames[:-1], frames[-1].rstrip().removesuffix(b"]"))
    return tuple(f"{',' if number else '['}{text}\n".encode() for number, text in enumerate(payloads))


QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=False, end=b"\r\n\r\n"),
    **stray_errors(ERROR),
    **text_quirks(EVENTS, last(TEXT), TEXT),
    **end_quirks(EVENTS, last(TEXT), end=None, error=ERROR),
    "array_unclosed": _array_without_end,
    "field_invalid": edit(every("usageMetadata"), put("usageMetadata", {"promptTokenCount": -1})),
    "error_shape": edit(ERROR, turn("error", lambda error: error["message"])),
    "index_invalid": edit(every("candidates.0.index"), turn("candidates.0.index", str)),
    "boolean_invalid": edit(every(THOUGHT), put(THOUGHT, "true")),
    "thinking_in_text": both(
        surrounded(EVENTS, first(THOUGHT), last(THOUGHT), TEXT), edit(every(THOUGHT), cut(THOUGHT))
    ),
    "call_in_text": edit(every(NAME), _call_as_text),
    "list_missing": edit(every(PARTS), turn(PARTS, lambda parts: parts[0])),
    "list_unasked": edit(every(CONTENT), turn(CONTENT, lambda content: [content])),
    "object_missing": edit(last(TEXT), turn(PART, lambda part: part["text"])),
    "arguments_not_object": edit(every(NAME), turn(f"{CALL}.args", compact)),
    "block_unclosed": EVENTS.when(first(NAME, at=1), _parts(end=False)),
    "identity_blank": edit(every(NAME), put(ID, " ")),
    "id_duplicate": EVENTS.share(first(NAME), ID, every(NAME), ID),
    "name_repeated": _parts(named=True),
    "call_ghost": add(last(NAME), put(CALL, {})),
    "call_nameless": edit(first(NAME), cut(NAME)),
    "arguments_repeated": add(first(NAME)),
    "arguments_gap": _parts(("$.list[2]", "Monday")),
    "arguments_out_of_order": _parts(("$.place.name", "Oslo"), ("$.unit", "C"), ("$.place.country", "Norway")),
    "stop_reason_foreign": edit(every(FINISH), reword(FINISH, FOREIGN)),
    "stop_conflict": add(every(FINISH, "MAX_TOKENS"), put(FINISH, "STOP"), behind=False),
}
