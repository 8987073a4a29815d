"""Check the text of a response whose request asked for JSON, and give it a verdict.

The text of a choice is that of all its text blocks, in the order in which they began, as ``Choice.text`` joins them. It is
checked once, at the choice's end, like the arguments of a call (``check.py``, ``schema.py``). If the stream ends unclean, the
verdict is ``truncated``, even if the JSON is complete. If the stop reason says that the text may be truncated, the verdict is
that on the JSON, except that a number is ``truncated``: it may have had more digits.

A choice has no verdict if its text is not the response: the model refused, called a tool of the client, or paused.

If the request asked for JSON, texts are kept up to ``Limits.arguments_chars`` each and ``Limits.stream_arguments_chars``
together; a longer text is ``unchecked``.

Source: design.md §4.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Literal, Protocol, TypeAlias

from attrs import define, field, frozen

from streamkit.errors import UsageError
from streamkit.events import (
    Event,
    OutputChecked,
    ProviderFailed,
    RefusalDelta,
    ResponseFinished,
    StopReason,
    StreamEnded,
    TextDelta,
    ToolCallStarted,
    Verdict,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments
from streamkit.tool_calls.ending import CUTTING
from streamkit.tool_calls.object_scanner import TextBuffer
from streamkit.tool_calls.schema import VIOLATION_CHARS, BadToolSchema, ToolSchemas, schema_library

Root: TypeAlias = Literal["object", "any"]
OUTPUT: Final = "output"  #: the name under which ``ToolSchemas`` has the schema
PLAIN_INSTEAD: Final = (
    "to check only that the text is JSON, give the output format without its schema: attrs.evolve(output, schema=None)"
)
#: Stop reasons after which the text is not the response.
UNANSWERED: Final[frozenset[StopReason]] = frozenset({"tool_calls", "refusal", "pause", "compaction"})
NOT_ENDED: Final = "the stream ended before the response was complete"
NO_TEXT: Final = "the response has no text"
CUT_NUMBER: Final = "the text may end inside the number"
SCHEMA_OFF: Final = "not checked against the schema (check_schemas is off)"
TOO_LONG: Final = "not checked: the text is longer than arguments_chars or stream_arguments_chars allows"
_NUMBERS: Final = frozenset("-0123456789")


class AskedFormat(Protocol):
    """The output format of a request: ``conversation.messages.OutputFormat``."""

    @property
    def kind(self) -> str: ...
    @property
    def schema(self) -> Any: ...
    @property
    def root(self) -> Root: ...


@frozen
class OutputCheck:
    """The check of a request's output format. ``unchecked`` is the reason why the schema is not used, or None if it is."""

    root: Root
    schemas: ToolSchemas | None = None  #: the schema, with the name ``OUTPUT``
    unchecked: str | None = None

    def verdict(self, text: str, depth: int) -> Verdict:
        verdict = check_arguments(text, depth=depth, root=self.root)
        if verdict.kind != "complete":
            return verdict
        if self.unchecked is not None:
            return Verdict("unchecked", self.unchecked)
        return verdict if self.schemas is None else self.schemas.check(OUTPUT, text)


def output_check(
    output: AskedFormat | OutputCheck | None, limits: Limits, *, unchecked: str | None = None
) -> OutputCheck | None:
    """Return the check for an output format, or None if the format is not JSON. The schema is compiled.

    ``unchecked`` is a reason not to use the schema. Raise UsageError for an invalid schema, or for a schema without the extra
    ``schema``.
    """
    if output is None or isinstance(output, OutputCheck):
        return output
    if not hasattr(output, "kind"):
        raise UsageError(f"output must be an OutputFormat, as Request.options.output is, not {type(output).__name__}")
    if output.kind not in {"json", "schema"}:
        return None
    root: Root = output.root if output.kind == "json" else "any"
    if output.kind == "json" or output.schema is None:
        return OutputCheck(root)
    if unchecked is not None:
        return OutputCheck(root, unchecked=unchecked)
    schema_library(PLAIN_INSTEAD)
    try:
        schemas = ToolSchemas({OUTPUT: output.schema}, limits=limits)
        schemas.compile()
    except BadToolSchema as error:
        raise UsageError(f"the schema of the output, at {error.path or 'its root'}: {error.reason}") from None
    return OutputCheck(root, schemas)


def served_check(output: AskedFormat | None, limits: Limits, *, schema: bool) -> OutputCheck | None:
    """Return the check for a client's output format, or None if the format is not JSON. Raise nothing for a bad schema.

    Without ``schema``, or if the client's schema can't be used, valid JSON is ``unchecked``.
    """
    if schema:
        try:
            return output_check(output, limits)
        except UsageError as error:
            return output_check(output, limits, unchecked=f"not checked: {error}"[:VIOLATION_CHARS])
    return output_check(output, limits, unchecked=SCHEMA_OFF)


@define(eq=False)
class _Texts:
    """The text of a choice so far, by block."""

    blocks: dict[int, TextBuffer] = field(factory=dict)
    chars: int = 0
    is_too_long: bool = False
    is_answered: bool = False  #: the choice has a refusal or a call of the client

    def whole(self) -> str:
        return "".join(block.whole() for block in self.blocks.values())


class OutputChecker(Link):
    """The machine of ``check_output``: events to events."""

    def __init__(
        self, check: OutputCheck | None, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None
    ) -> None:
        self._check = check
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._choices: dict[int, _Texts] = {}  # the open choices
        self._chars = 0

    def push(self, event: Event, /) -> None:
        if self._check is not None:
            match event:
                case TextDelta():
                    self._grow(event.text, event.choice, event.block)
                case RefusalDelta() | ToolCallStarted():
                    self._choice(event.choice).is_answered = True
                case OutputChecked():  # from an earlier stage, about a text that may have changed since
                    self._report.output_verdicts -= Counter([event.verdict.kind])
                    return
                case ResponseFinished():
                    self._finish(self._check, event)
                case ProviderFailed() | StreamEnded():
                    self.push_rest()
        self.emit(event)

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        if self._check is not None:
            self._grow(text, choice, block)
        self.next.push_text(text, choice, block)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        self.next.push_reasoning(text, choice, block, kind)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        self.next.push_arguments(call, text, choice)

    def push_rest(self) -> None:
        """Judge the choices that have no end."""
        for number, texts in self._choices.items():
            if texts.chars and not texts.is_answered:
                self._judge(Verdict("truncated", NOT_ENDED, texts.chars), number)
        self._choices.clear()

    def _choice(self, number: int) -> _Texts:
        texts = self._choices.get(number)
        if texts is None:
            texts = self._choices[number] = _Texts()
        return texts

    def _grow(self, text: str, choice: int, block: int) -> None:
        texts = self._choices.get(choice) or self._choice(choice)
        texts.chars += len(text)
        if texts.is_answered or texts.is_too_long:
            return
        self._chars += len(text)
        limits = self._limits
        if texts.chars > limits.arguments_chars or self._chars > limits.stream_arguments_chars:
            texts.is_too_long = True
            texts.blocks.clear()
            return
        kept = texts.blocks.get(block)
        if kept is None:
            kept = texts.blocks[block] = TextBuffer()
        kept.append(text)

    def _finish(self, check: OutputCheck, event: ResponseFinished) -> None:
        texts = self._choices.pop(event.choice, None) or _Texts()
        if texts.is_answered or event.reason in UNANSWERED:
            return
        if texts.is_too_long:
            verdict = Verdict("unchecked", TOO_LONG)
        else:
            text, is_cut = texts.whole(), event.reason in CUTTING
            verdict = check.verdict(text, self._limits.json_depth)
            if verdict.kind == "empty":
                verdict = Verdict("truncated" if is_cut else "malformed", NO_TEXT, len(text))
            elif is_cut and text.lstrip()[0] in _NUMBERS and verdict.kind not in {"malformed", "not_an_object"}:
                verdict = Verdict("truncated", CUT_NUMBER, len(text))
        self._judge(verdict, event.choice)

    def _judge(self, verdict: Verdict, choice: int) -> None:
        verdicts = self._report.output_verdicts
        verdicts[verdict.kind] = verdicts.get(verdict.kind, 0) + 1
        self.emit(OutputChecked(verdict, choice))


def output_stage(check: OutputCheck | None, limits: Limits) -> Stage[list[Event], list[Event]]:
    """Return the stage ``check_output`` for a check that was already made."""
    return stage_within("events", "check_output", lambda report: OutputChecker(check, limits=limits, report=report))


def check_output(
    output: AskedFormat | OutputCheck | None, *, limits: Limits = DEFAULT_LIMITS
) -> Stage[list[Event], list[Event]]:
    """Create a stage that gives the text of each choice a verdict, and counts the verdicts.

    Put the stage after ``accumulate_tool_calls`` and after stages that change the text. ``output`` is the request's
    output format (``Request.options.output``). If ``output`` asks for JSON, the stage adds an ``OutputChecked`` before
    the ``ResponseFinished`` of each choice. A choice in which the model refuses, calls a tool or pauses gets no
    ``OutputChecked``. If ``output`` asks for text, or is None, nothing is checked. A schema is compiled when the stage
    is created, and needs the extra ``schema``. Raises UsageError if the extra is missing or the schema is invalid.
    """
    return output_stage(output_check(output, limits), limits)
