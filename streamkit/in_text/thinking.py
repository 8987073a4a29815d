"""Turn thinking between tags in the text into reasoning.

A server that does not know its model's tags sends ``<think>…</think>`` as content. Tags count only at the start of a choice,
after white space at most. Everything up to the closing tag is reasoning. White space after either tag is dropped, and so is
blank thinking. Thinking truncated by the end stays reasoning. A closing tag at the start, from servers that removed the
thinking, is dropped. No tag counts after reasoning, a refusal, a call or text in another block.

Some templates write the opening tag into the prompt, so only the closing tag arrives. Such thinking can't be told from a
response without holding back the whole text. So this is a separate mode, ``opened``: the text is reasoning from its first
character to the closing tag, or to the end if there is none.

Source: the tags of DeepSeek, Qwen and MiniMax (``<think>``), Magistral (``[THINK]``), Kimi-VL and Kimi-Dev (``◁think▷``),
Seed-OSS (``<seed:think>``), Gemini's endpoint for OpenAI clients (``<thought>``); several models write ``<thinking>``.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import define, field

from streamkit.errors import check_words
from streamkit.events import (
    Aside,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    WireEvent,
)
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport


class InTextMachine(Link):
    """The base of machines that read the text of a response. ``take`` and ``release`` append their results to ``_out``."""

    reads_texts = True

    def __init__(self, report: StreamReport | None) -> None:
        self._report = report if report is not None else StreamReport()
        self._out: list[Any] = []

    def push(self, event: WireEvent, /) -> None:
        try:
            self.take(event)
        finally:
            self._emit_all()

    def push_end(self) -> None:
        self.release()
        self._emit_all()

    push_rest = push_end

    def _emit_all(self) -> None:
        out = self._out[:]
        self._out.clear()
        if len(out) > 1 and self.several is not None:
            self.several()
        for event in out:
            self.emit(event)

    def take(self, event: Any) -> None:
        raise NotImplementedError

    def release(self) -> None:
        """Release the held events at the end of the input."""
        raise NotImplementedError


#: Each opening tag with its closing tag.
TAGS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
OPENING: Final = tuple(TAGS)
CLOSING: Final = tuple(TAGS.values())
BLANK_CHARS: Final = 256  #: maximum number of white-space characters before a tag; after more, no tag counts
QUEUED: Final = 1024  #: maximum number of events that wait after held text; further events are emitted before it
KIND: Final = "thinking_in_text"
ThinkMode: TypeAlias = Literal["tags", "opened"]
_REASONED: Final = frozenset({ReasoningDelta, ReasoningSignature, ReasoningOpaque})
_OTHER: Final = frozenset({RefusalDelta, MediaGenerated, ToolCallDelta})


def unfinished(text: str, tags: tuple[str, ...]) -> int:
    """Return how many characters at the end of ``text`` may be the beginning of one of ``tags``."""
    longest = max(map(len, tags), default=1) - 1
    first = {tag[0] for tag in tags}
    for at in range(max(0, len(text) - longest), len(text)):
        if text[at] in first:
            end = text[at:]
            if any(len(tag) > len(end) and tag.startswith(end) for tag in tags):
                return len(end)
    return 0


@define
class _SplitChoice:
    """The state of a choice whose text may still hold thinking."""

    state: Literal["start", "thinking", "after"] = "start"
    held: str = ""  #: the beginning of the text, or of a closing tag
    queue: list[TextDelta | ReasoningDelta | Aside] = field(factory=list)  #: held deltas, and asides after them
    block: int = 0  #: the block of ``held``
    closing: tuple[str, ...] = CLOSING
    eats_blank: bool = True  #: white space is dropped, since no thinking has arrived yet
    reasoned: bool = False  #: True if reasoning arrived in its own field, not in the text


class ThinkSplitter(InTextMachine):
    """The machine of ``split_thinking``."""

    def __init__(self, *, mode: ThinkMode = "tags", report: StreamReport | None = None) -> None:
        super().__init__(report)
        self._mode = mode
        self._open: dict[int, _SplitChoice] = {}
        self._settled: set[int] = set()
        self._failed = False

    def take(self, event: WireEvent) -> None:
        # events after an error pass unread
        if self._failed or (type(event) is TextDelta and event.choice in self._settled):
            self._out.append(event)
        elif type(event) is TextDelta:
            self._text(event)
        else:
            self._other(event)

    # -- events ----------------------------------------------------------------------------------------------------

    def _other(self, event: WireEvent) -> None:
        choice = getattr(event, "choice", None)
        if choice is not None and choice not in self._settled:
            begun = self._open.get(choice)
            if isinstance(event, Aside) and begun is not None and begun.held and len(begun.queue) < QUEUED:
                begun.queue.append(event)  # the aside may belong to the held text
                return
            self._note(choice, event)
        elif type(event) is ProviderFailed:
            self.release()  # held text precedes the error
            self._failed = True
        self._out.append(event)

    def _note(self, number: int, event: Any) -> None:
        """Take note of an event that is not text: reasoning in its own field, or an event after which no tag counts."""
        kind = type(event)
        if kind in _REASONED:
            if not getattr(event, "text", "-").strip():
                return
            self._open.setdefault(number, _SplitChoice()).reasoned = True
        elif kind not in _OTHER:
            return
        choice = self._open.get(number)
        if choice is None:
            self._settled.add(number)  # thinking in text can only come first, and there was none
            return
        self._release(choice)
        if choice.state != "thinking" and kind in _OTHER:
            self._settle(number)

    def _settle(self, number: int) -> None:
        self._open.pop(number, None)
        self._settled.add(number)

    def release(self) -> None:
        for choice in self._open.values():
            self._release(choice)
        self._open.clear()

    def _release(self, choice: _SplitChoice) -> None:
        """Emit the held events unchanged."""
        choice.held = ""
        self._out += choice.queue
        choice.queue.clear()

    # -- text ------------------------------------------------------------------------------------------------------

    def _text(self, delta: TextDelta) -> None:
        number, choice = delta.choice, self._open.setdefault(delta.choice, _SplitChoice())
        if delta.block != choice.block and (choice.held or choice.state != "start"):
            self._release(choice)
            self._settle(number)
            self._out.append(delta)
            return
        choice.block = delta.block
        text, choice.held = choice.held + delta.text, ""
        if choice.state == "start":
            text = self._begun(choice, delta, text)
        if choice.state == "thinking" and text:
            text = self._thought(number, choice, text)
        if choice.state == "after" and (text := text.lstrip()):
            self._settle(number)
            self._out.append(TextDelta(text, number, choice.block))

    def _begun(self, choice: _SplitChoice, delta: TextDelta, text: str) -> str:
        """Read the start of a choice's text, ending with ``delta``. Return the text after a tag, or "" if there is none."""
        stripped = text.lstrip()
        blank = len(text) - len(stripped)
        if blank <= BLANK_CHARS:
            for tag in CLOSING if choice.reasoned else OPENING + CLOSING:
                if stripped.startswith(tag):
                    self._report.repair(KIND)
                    choice.state = "thinking" if tag in TAGS else "after"
                    choice.closing = (TAGS.get(tag, tag),)
                    self._drop_text(choice)
                    return stripped[len(tag) :]
            if unfinished(stripped, CLOSING if choice.reasoned else OPENING + CLOSING) == len(stripped):
                choice.held = text
                choice.queue += [delta] if delta.text else []
                return ""
        if self._mode == "opened" and not choice.reasoned:
            self._report.repair(KIND)
            choice.state = "thinking"
            self._drop_text(choice)
            return text
        self._release(choice)
        self._settle(delta.choice)
        self._out.append(delta)
        return ""

    def _drop_text(self, choice: _SplitChoice) -> None:
        """Drop the held text, which was a tag or is emitted in another form, and emit the asides."""
        self._out += [event for event in choice.queue if isinstance(event, Aside)]
        choice.queue.clear()

    def _thought(self, number: int, choice: _SplitChoice, text: str) -> str:
        """Emit thinking. Return the text after the closing tag, or "" if that has not arrived."""
        self._drop_text(choice)
        if choice.eats_blank:
            text = text.lstrip()
            choice.eats_blank = not text
        found = min(((at, tag) for tag in choice.closing if (at := text.find(tag)) >= 0), default=None)
        if found is None:
            kept = unfinished(text, choice.closing)
            choice.held = text[len(text) - kept :]
            if kept:
                choice.queue.append(ReasoningDelta(choice.held, number, choice.block))
            thought, rest = text[: len(text) - kept], ""
        else:
            choice.state = "after"
            thought, rest = text[: found[0]], text[found[0] + len(found[1]) :]
        if thought:
            self._out.append(ReasoningDelta(thought, number, choice.block))
        return rest


def split_thinking(*, mode: ThinkMode = "tags") -> Stage[list[WireEvent], list[WireEvent]]:
    """Create a stage that turns thinking between tags in the text (``<think>…</think>``) into reasoning.

    Put the stage after ``decode``. The stage looks for tags only at the start of a choice. ``mode="opened"`` is for
    servers whose prompt template already contains the opening tag: all text before the closing tag is then reasoning.
    Each choice with thinking between tags counts as one repair, ``thinking_in_text``.
    """
    check_words("split_thinking: mode", [mode], get_args(ThinkMode))
    return stage_within("wire events", "split_thinking", lambda report: ThinkSplitter(mode=mode, report=report))
