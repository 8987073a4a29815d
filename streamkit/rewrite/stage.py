"""The stage that changes text, ``map_text``, and the machine that it shares with ``redact`` and ``guard``.

A text is the text, reasoning or refusal of one choice and block, a string in the arguments of one call, or a string that
several asides continue: a vendor's code, the transcript of audio. The next aside of another kind ends that. ``INSIDE`` lists
the events that may arrive within a text. Any other event of the same choice ends the text: text held back is emitted first.
``ENDS_ALL`` lists the events that end the texts of all choices. The arguments of a call end with its ``ToolCallFinished``.

Log probabilities repeat a text token by token, and would contradict the changed text, so they are dropped (loss ``logprobs``).
The signature of changed reasoning is dropped because its vendor would refuse it (loss ``reasoning_signature``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import define, evolve

from streamkit.errors import UsageError, check_words
from streamkit.events import (
    Aside,
    ChoiceStarted,
    Event,
    OutputDoomed,
    ProviderFailed,
    ReasoningDelta,
    ReasoningSignature,
    RefusalDelta,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport
from streamkit.rewrite.strings import JSONStrings
from streamkit.rewrite.window import Change, Window
from streamkit.text.quoting import quoted

#: A part that a stage changes. ``arguments`` are the strings in the JSON of tool calls, or the free text of custom tools;
#: ``asides`` are the strings in data of a single vendor, such as citations.
Part: TypeAlias = Literal["text", "reasoning", "refusal", "arguments", "asides"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
#: Events that may arrive within a text. An aside keeps its place in the text; the others are emitted at once.
INSIDE: Final = frozenset({Aside, ChoiceStarted, OutputDoomed, ResponseStarted, ToolCallDoomed, UsageReported})
#: Events that end the texts of all choices.
ENDS_ALL: Final = frozenset({ProviderFailed, StreamEnded})


@define
class _Run:
    """The open text of a choice."""

    key: tuple[Part, int, str]  #: the part, the block, and the kind of reasoning
    window: Window
    emit: Callable[[str], object]  #: emits a released piece


@define
class _Piecewise:
    """A text that arrives in asides: code that a provider runs, the transcript of audio."""

    key: tuple[Any, ...]  #: what its asides have in common
    window: Window
    last: Aside
    path: tuple[str, ...]


class TextChanger(Link):
    """The machine of ``map_text``: events to events. ``window`` makes the window for each text."""

    def __init__(self, window: Callable[[], Window], parts: Iterable[Part], report: StreamReport) -> None:
        self._make = window
        self._parts = frozenset(parts)
        self._report = report
        self._runs: dict[int, _Run] = {}  # by choice
        self._piecewise: dict[int, _Piecewise] = {}  # by choice
        self._calls: dict[tuple[int, int], JSONStrings] = {}  # the open calls, by choice and call
        self._changed: set[tuple[int, int]] = set()  # choice and block of changed reasoning

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        send = self.next.push_text
        self._delta("text", text, choice, block, lambda piece: send(piece, choice, block))

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        send = self.next.push_reasoning
        self._delta("reasoning", text, choice, block, lambda piece: send(piece, choice, block, kind), kind)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        self._end(choice)
        strings = self._calls.get((choice, call))
        piece = text if strings is None else strings.feed(text)
        if piece:
            self.next.push_arguments(call, piece, choice)
        if strings is not None and strings.blocked is not None:
            self.block(strings.blocked, choice)

    def push(self, event: Event, /) -> None:
        match event:
            case TextDelta():
                self.push_text(event.text, event.choice, event.block)
            case ReasoningDelta():
                self.push_reasoning(event.text, event.choice, event.block, event.kind)
            case RefusalDelta():
                self._delta(
                    "refusal", event.text, event.choice, event.block, lambda text: self.emit(evolve(event, text=text))
                )
            case ToolCallArguments():
                self.push_arguments(event.call, event.fragment, event.choice)
            case Aside():
                self._aside(event)
            case ResponseStarted(extras=extras) if extras and "asides" in self._parts:
                started = evolve(event, extras=self._changed_strings({**extras}, 0))
                if not self.is_ended(0):
                    self.emit(started)
            case _ if type(event) in INSIDE:
                self.emit(event)
            case _ if type(event) in ENDS_ALL:
                self.push_end()
                self.emit(event)
            case _:
                self._end(event.choice)  # type: ignore[union-attr]
                self._emit_after(event)

    def push_end(self) -> None:
        for choice in {**self._runs, **self._piecewise}:
            self._end(choice)

    def push_rest(self) -> None:
        self.push_end()

    def block(self, why: str, choice: int) -> None:
        """Called if a window is blocked."""
        raise NotImplementedError

    def is_ended(self, choice: int) -> bool:  # noqa: ARG002 - for ``Guard``
        """Return whether ``block`` has ended the choice."""
        return False

    def _delta(
        self, part: Part, text: str, choice: int, block: int, emit: Callable[[str], object], kind: str = ""
    ) -> None:
        run, key = self._runs.get(choice), (part, block, kind)
        if run is not None and run.key != key:
            self._end(choice)
            run = None
        if part not in self._parts:
            emit(text)
            return
        if run is None:
            run = self._runs[choice] = _Run(key, self._make(), emit)
        self._send(run, run.window.feed(text), choice)

    def _end(self, choice: int) -> None:
        """End the open texts of a choice."""
        if choice in self._piecewise:
            self._end_piecewise(choice)
        run = self._runs.pop(choice, None)
        if run is not None:
            self._send(run, run.window.end(), choice)
            if run.window.changed and run.key[0] == "reasoning":
                self._changed.add((choice, run.key[1]))

    def _send(self, run: _Run, pieces: Iterator[object], choice: int) -> None:
        for piece in pieces:
            if isinstance(piece, str):
                run.emit(piece)
            else:
                self.emit(piece)
        if run.window.blocked is not None:
            self.block(run.window.blocked, choice)

    def _aside(self, aside: Aside) -> None:
        if aside.kind == "logprobs" and self._parts & {"text", "refusal", "reasoning"}:
            self._report.lose("logprobs")
            return
        if "asides" not in self._parts:
            self._place(aside)
            return
        path = _path_to_piece(aside)
        key, open_text = (aside.type, aside.block, path), self._piecewise.get(aside.choice)
        if open_text is not None and open_text.key != key:
            self._end_piecewise(aside.choice)
        if not path:
            changed = evolve(aside, raw=self._changed_strings(aside.raw, aside.choice))
            if not self.is_ended(aside.choice):
                self._place(changed)
            return
        if open_text is None or open_text.key != key:
            open_text = self._piecewise[aside.choice] = _Piecewise(key, self._make(), aside, path)
        open_text.last = aside
        self._send_piece(open_text, open_text.window.feed(_piece_at(aside.raw, path)), is_rest=False)

    def _end_piecewise(self, choice: int) -> None:
        text = self._piecewise.pop(choice)
        self._send_piece(text, text.window.end(), is_rest=True)

    def _send_piece(self, text: _Piecewise, pieces: Iterator[object], *, is_rest: bool) -> None:
        """Emit the last aside with the released piece of its text; a rest in an aside like it."""
        aside, piece = text.last, "".join(map(str, pieces))
        if piece or not is_rest:
            sent = {"data"} if is_rest else set[str]()  # audio
            raw = {name: value for name, value in aside.raw.items() if name not in sent}
            others = self._changed_strings(_with_piece(raw, text.path, ""), aside.choice)
            if not self.is_ended(aside.choice):
                self._place(evolve(aside, raw=_with_piece(others, text.path, piece)))
        if text.window.blocked is not None and not self.is_ended(aside.choice):
            self.block(text.window.blocked, aside.choice)

    def _place(self, aside: Aside) -> None:
        """Emit an aside in its place within the open text."""
        run = self._runs.get(aside.choice)
        if run is None or not run.window.mark(aside):
            self.emit(aside)

    def _changed_strings(self, value: Any, choice: int) -> Any:
        """Return a JSON value with changed strings. Names of members stay."""
        if self.is_ended(choice):
            return None
        if isinstance(value, str):
            window = self._make()
            changed = "".join(map(str, (*window.feed(value), *window.end())))
            if window.blocked is not None:
                self.block(window.blocked, choice)
            return changed
        if isinstance(value, dict):
            return {name: self._changed_strings(member, choice) for name, member in value.items()}
        return [self._changed_strings(each, choice) for each in value] if isinstance(value, list) else value

    def _emit_after(self, event: Any) -> None:
        """Emit an event that has ended a text."""
        if isinstance(event, ToolCallStarted) and event.extras and "asides" in self._parts:
            event = evolve(event, extras=self._changed_strings({**event.extras}, event.choice))
            if self.is_ended(event.choice):
                return
        if isinstance(event, ToolCallStarted) and "arguments" in self._parts:
            self._calls[event.choice, event.call] = JSONStrings(self._make, plain=event.kind == "custom")
        elif isinstance(event, ToolCallFinished):
            strings = self._calls.get((event.choice, event.call))
            if strings is not None:
                if not strings.fed:
                    self.push_arguments(event.call, event.arguments, event.choice)
                    if self.is_ended(event.choice):
                        return
                event = self._finished(event, self._calls.pop((event.choice, event.call)))
        elif isinstance(event, ReasoningSignature) and (event.choice, event.block) in self._changed:
            self._report.lose("reasoning_signature")
            return
        self.emit(event)

    def _finished(self, event: ToolCallFinished, strings: JSONStrings) -> ToolCallFinished:
        rest = strings.end()
        if rest:
            self.next.push_arguments(event.call, rest, event.choice)
        if not strings.changed:  # escapes that JSON does not need are gone, which changes no verdict
            return evolve(event, arguments="".join(strings.sent))
        if event.verdict is not None:
            self._report.verdicts[event.verdict.kind] -= 1
        return evolve(event, arguments="".join(strings.sent), verdict=None)  # the verdict was about another text


def _path_to_piece(aside: Aside) -> tuple[str, ...]:
    """Return the path to the string in an aside that continues a string of the aside before: a delta, or a transcript."""
    raw = aside.raw if isinstance(aside.raw, dict) and aside.kind != "citation" else {}
    if aside.kind == "audio" and "transcript" not in aside.type:  # the audio itself is base64
        return ("transcript",) if isinstance(raw.get("transcript"), str) else ()
    value: Any = raw.get("delta")
    path: tuple[str, ...] = ("delta",)
    while isinstance(value, dict):
        names = [name for name in value if name != "type"]
        if len(names) != 1:
            return ()
        path += (names[0],)
        value = value[names[0]]
    return path if isinstance(value, str) else ()


def _piece_at(value: Any, path: tuple[str, ...]) -> str:
    for name in path:
        value = value[name]
    return str(value)


def _with_piece(value: Any, path: tuple[str, ...], piece: str) -> Any:
    """Return a JSON value with another string at ``path``."""
    return {**value, path[0]: _with_piece(value[path[0]], path[1:], piece)} if path else piece


def map_text(change: Change, *, hold: int, parts: Iterable[Part] | Part = ("text",)) -> Stage[list[Event], list[Event]]:
    """Create a stage that replaces each text by ``change(text)``, even if the text is spread over several deltas.

    ``change`` gets a text and returns the changed text. ``change`` must be a pure function, since the stage calls
    ``change`` several times with overlapping pieces of a text. The change at any place in the text may depend on at
    most ``hold`` neighbouring characters. The stage holds back at most the last ``hold`` characters of each text, and
    yields them before the event that ends the text. ``parts`` says which kinds of text to change: one or more of
    ``text``, ``reasoning``, ``refusal``, ``arguments`` and ``asides``. In the arguments of calls, only values that are
    strings change, so the arguments stay JSON.

    Put the stage after ``accumulate_tool_calls``. If the stage changes ``arguments``, put the stage before
    ``check_json``, because changing the arguments removes an earlier verdict. Raises UsageError for wrong arguments.
    Also raises UsageError if ``change`` does not return a str.
    """
    if not callable(change):
        raise UsageError(f"map_text: the first argument must be a function from str to str, not {quoted(change)}")
    chosen = checked_parts("map_text", parts, hold)
    return stage_within("events", "map_text", lambda report: TextChanger(lambda: Window(change, hold), chosen, report))


def checked_parts(stage: str, parts: Iterable[Part] | Part, hold: int) -> frozenset[Part]:
    """Return the parts as a set. Raises UsageError for an unknown part, no part, or a ``hold`` that is no whole number."""
    chosen = (parts,) if isinstance(parts, str) or not isinstance(parts, Iterable) else (*parts,)
    check_words(f"{stage}: each of parts", chosen or ("",), PARTS)
    if type(hold) is not int or hold < 0:
        raise UsageError(f"{stage}: hold must be a number of characters, 0 or more, not {quoted(hold)}")
    return frozenset(chosen)
