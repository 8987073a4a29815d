"""Give each finished call a verdict: whether its arguments can be used, and if not, why.

Text that ``orjson`` reads as an object is complete. Other text is walked by ``JSONScanner``, which reports the position and
the reason of a fault, and which follows RFC 8259 where ``orjson`` does not (1E400, lone surrogates). With the request's tools,
usable arguments are also checked against the schema of their tool (``schema.py``).

A dialect requires a result for each call, so ``error_text`` turns a bad verdict into one that tells the model what to correct.

Source: design.md §4; dialects.md §1.8, §2, §4.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final, Literal, NoReturn, Protocol

import orjson
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.events import Event, ToolCallFinished, ToolKind, Verdict, is_event
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted, shortened
from streamkit.tool_calls.json_scanner import JSONScanner
from streamkit.tool_calls.object_scanner import scanned
from streamkit.tool_calls.schema import UNKNOWN_TOOL, Tools, ToolSchemas, compiled

LONG = 1 << 16  #: longer texts, and those with many brackets, are scanned, not parsed
NOT_ENDED = "the stream ended before the protocol ended the call"


def check_arguments(
    text: str, *, depth: int = DEFAULT_LIMITS.json_depth, root: Literal["object", "any"] = "object"
) -> Verdict:
    """Return the verdict on a whole argument text. ``empty`` (only white space) means ``{}``. ``root``: what it may be."""
    if not text.strip():
        return Verdict("empty")
    if len(text) > LONG or text.count("{") + text.count("[") > depth:
        return Verdict("complete") if scanned(text, depth).complete_object else _walked(text, depth, root)
    try:
        if type(orjson.loads(text)) is dict or root == "any":
            return Verdict("complete")
    except orjson.JSONDecodeError:
        pass
    return _walked(text, depth, root)


def _walked(text: str, depth: int, root: Literal["object", "any"]) -> Verdict:
    scanner = JSONScanner(depth=depth)
    scanner.feed(text)
    state = scanner.finish()
    if state == "malformed":
        return Verdict("malformed", scanner.reason, scanner.position)
    if state == "incomplete":
        return Verdict("truncated", "the text ends inside the value", len(text))
    if scanner.root != "object" and root == "object":
        return Verdict("not_an_object", f"the value is {'an' if scanner.root == 'array' else 'a'} {scanner.root}", 0)
    return Verdict("complete")


def parse_arguments(text: str, *, depth: int = DEFAULT_LIMITS.json_depth) -> dict[str, Any]:
    """Parse argument text whose verdict is ``complete`` or ``empty``. Whole numbers keep all their digits.

    A whole number with more digits than Python allows for an ``int`` (``sys.get_int_max_str_digits``, 4,300) becomes a
    ``Decimal``. ``depth`` must be the ``json_depth`` of the ``Limits`` that the check used. Raises ValueError for text
    with another verdict.
    """
    verdict = check_arguments(text, depth=depth)
    if verdict.kind == "empty":
        return {}
    if verdict.kind == "not_an_object":
        raise ValueError(f"the arguments are not a JSON object: {verdict.reason}")
    if verdict.kind != "complete":
        raise ValueError(f"the arguments are {verdict.kind}: {verdict.reason}")
    value: dict[str, Any] = json.loads(text, parse_constant=refuse_constant, parse_int=_whole_number)
    return value


def _whole_number(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:  # Python converts no more digits, because the conversion takes quadratic time
        return Decimal(digits)


def refuse_constant(constant: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity, which ``json.loads`` accepts and JSON does not have."""
    raise ValueError(f"{constant} is not valid JSON")


def verdict_of(event: ToolCallFinished, limits: Limits) -> Verdict:
    """Return the verdict on a finished call without its tool's schema."""
    if not event.ended:
        return Verdict("truncated", NOT_ENDED, len(event.arguments))
    if event.kind == "custom":
        return Verdict("complete")  # free text: there is no JSON to check
    return check_arguments(event.arguments, depth=limits.json_depth)


def verdict_on(event: ToolCallFinished, limits: Limits, report: StreamReport, tools: ToolSchemas | None) -> Verdict:
    """Return the verdict on a finished call, and count the verdict in the report."""
    verdict = verdict_of(event, limits)
    if tools is not None and verdict.ok and event.kind != "custom":
        verdict = tools.check(event.name, event.arguments)
    report.verdicts[verdict.kind] = report.verdicts.get(verdict.kind, 0) + 1
    return verdict


class JSONChecker(Link):
    """The machine of ``check_json``: events to events."""

    def __init__(
        self, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None, tools: ToolSchemas | None = None
    ) -> None:
        self.limits = limits
        self.tools = tools
        self.report = report if report is not None else StreamReport()

    def push(self, event: Event, /) -> None:
        if isinstance(event, ToolCallFinished):
            event = evolve(event, verdict=verdict_on(event, self.limits, self.report, self.tools))
        self.emit(event)

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        self.next.push_text(text, choice, block)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        self.next.push_reasoning(text, choice, block, kind)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        self.next.push_arguments(call, text, choice)


class UncheckedChecker(JSONChecker):
    """Checks what users' stages yield: finished calls without a verdict, whose arguments a stage has changed.

    Raises UsageError for what is no event, which a later machine might drop.
    """

    def push(self, event: Event, /) -> None:
        if isinstance(event, ToolCallFinished) and event.verdict is None:
            super().push(event)
        elif is_event(event):
            self.emit(event)
        else:
            raise UsageError(f"a stage must yield lists of events, not of {type(event).__qualname__}")


def check_json(*, limits: Limits = DEFAULT_LIMITS, tools: Tools | None = None) -> Stage[list[Event], list[Event]]:
    """Create a stage that adds a verdict to each finished call and counts the verdicts.

    Put the stage after ``accumulate_tool_calls``. If you pass the request's ``tools``, the stage also checks arguments
    that are valid JSON against the schema of the tool. If the arguments do not match the schema, the verdict is
    ``schema_invalid`` and contains the reason. ``tools`` needs the extra ``schema``. ``check_json`` compiles all
    schemas when you call it, and raises BadToolSchema for an invalid schema.
    """
    schemas = None if tools is None else compiled(tools, limits)
    return stage_within("events", "check_json", lambda report: JSONChecker(limits=limits, report=report, tools=schemas))


REASON_CHARS: Final = 400  #: of the verdict's reason, which may quote keys; the whole text stays below 500 characters
NAME_CHARS: Final = 64  #: maximum length of the tool's name in the text
AROUND_CHARS: Final = 24  #: number of characters quoted on each side of a fault

FAULTS: Final = {
    "truncated": "its arguments are truncated",
    "malformed": "its arguments are not valid JSON",
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
    return verdict is not None and not verdict.ok


def error_text(call: JudgedCall) -> str:
    """Return the message to the model about a call that was not run. Raise UsageError if the verdict is good or missing."""
    verdict = call.verdict
    if verdict is None or verdict.ok:
        problem = "no verdict (use check_json)" if verdict is None else f"the verdict {verdict.kind}"
        raise UsageError(
            f"an error result needs a call with a bad verdict; {quoted(call.name, NAME_CHARS)} has {problem}"
        )
    tool = shortened(call.name, NAME_CHARS) or "a tool without a name"
    if verdict.reason == UNKNOWN_TOOL:
        return f"{tool} was not run: there is no tool with this name. Call one of the available tools."
    return f"{tool} was not run: {fault_of(verdict, call.arguments)}. Call {tool} again with valid arguments."


def fault_of(verdict: Verdict, arguments: str) -> str:
    """Return what a bad verdict says of ``arguments``, in words that may quote them."""
    fault = FAULTS[verdict.kind]
    if verdict.reason:
        fault += f": {shortened(verdict.reason, REASON_CHARS)}"
    if verdict.kind == "malformed" and verdict.position is not None:
        near = arguments[max(0, verdict.position - AROUND_CHARS) : verdict.position + AROUND_CHARS]
        fault += f", at character {verdict.position}, near {quoted(near)}"
    elif verdict.kind == "truncated":
        fault += f", after {len(arguments)} characters"
    return fault
