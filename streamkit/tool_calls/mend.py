"""Turn a bad verdict into a tool result that tells the model what to correct.

The call was not run, but its dialect requires a result for each call, and a model can correct a fault that is described with
its position. The text names the tool, the fault and its position. It quotes only the arguments around the fault, since the
model knows its arguments and they may be megabytes long. The whole text has a bounded length.

Source: dialects.md §1.8, §2, §4.
"""

from __future__ import annotations

from typing import Final, Protocol

from streamkit.errors import UsageError
from streamkit.events import ToolKind, Verdict
from streamkit.text.quoting import quoted, shortened
from streamkit.tool_calls.schema import UNKNOWN_TOOL

#: Limit for the verdict's reason, which may quote keys from the model. With the excerpt the text stays below 500 characters.
REASON_CHARS: Final = 400
#: Maximum length of the tool's name in the text.
NAME_CHARS: Final = 64
#: Number of characters quoted on each side of a fault.
AROUND_CHARS: Final = 24

GOOD: Final = frozenset({"complete", "empty"})
FAULTS: Final = {
    "truncated": "its arguments were cut off",
    "malformed": "its arguments are no valid JSON",
    "not_an_object": "its arguments must be a JSON object",
    "schema_invalid": "its arguments do not match the tool's schema",
    "unchecked": "its arguments could not be checked against the tool's schema",
}


class JudgedCall(Protocol):
    """The attributes that a ``ToolCall`` of a whole response and a ``ToolCallFinished`` share."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    @property
    def kind(self) -> ToolKind: ...
    @property
    def verdict(self) -> Verdict | None: ...


def is_bad(verdict: Verdict | None) -> bool:
    """Return whether a verdict means that the arguments can't be used."""
    return verdict is not None and verdict.kind not in GOOD


def error_text(call: JudgedCall) -> str:
    """Return the message to the model about a call that was not run. Raise UsageError if the verdict is good or missing."""
    verdict = call.verdict
    if verdict is None or verdict.kind in GOOD:
        problem = "no verdict (use check_json)" if verdict is None else f"the verdict {verdict.kind}"
        raise UsageError(
            f"an error result needs a call with a bad verdict; {quoted(call.name, NAME_CHARS)} has {problem}"
        )
    tool = shortened(call.name, NAME_CHARS) or "a tool without a name"
    if verdict.reason == UNKNOWN_TOOL:
        return f"{tool} was not run: there is no tool of this name. Call one of the tools that were given."
    fault = FAULTS[verdict.kind]
    if verdict.reason:
        fault += f": {shortened(verdict.reason, REASON_CHARS)}"
    if verdict.kind == "malformed" and verdict.position is not None:
        near = call.arguments[max(0, verdict.position - AROUND_CHARS) : verdict.position + AROUND_CHARS]
        fault += f", at character {verdict.position}, near {quoted(near)}"
    elif verdict.kind == "truncated":
        fault += f", after {len(call.arguments)} characters"
    return f"{tool} was not run: {fault}. Call {tool} again with valid arguments."
