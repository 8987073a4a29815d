"""Find tool calls that a model wrote into its text.

A server without a parser for its model sends ``<tool_call>{"name": …}</tool_call>`` as content with the stop reason ``stop``,
so an agent believes that the turn is over. This module turns such text into deltas of a call, before
``accumulate_tool_calls``, which gives the call an id, an end and a stop reason like any other.

A possible beginning of a call is held until its head is complete: the marker, a name that the request offered, and the
beginning of the arguments (``grammars.py``). Then arguments are emitted as they arrive: JSON unchanged, and parameters between
tags as the JSON that the tool's schema requires (``parameters.py``). The last character of the arguments is held until the
call is closed, so that a truncated call never looks complete (law L3). A call is closed by its end tag or, after a whole body,
by text, another call or a natural end of the response. Any other call is incomplete, since a call without arguments would mean
``{}``.

Text stays text if it is code (``code_blocks.py``), a call of an unknown tool, a call without a marker, reasoning (models think
about calls there), or after calls on the wire or an error. Markers that are ordinary letters to a model (``<tool_call>``,
``<function=``, ``<invoke``) count only at the start of a line. Arguments are not repaired. Held text is limited by
``limits.arguments_chars``.

Source: dialects.md §1.7; quirks.md §4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, cast

from streamkit.errors import ArgumentsTooLong, UsageError, check_words
from streamkit.events import (
    Aside,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    StopReasonSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    WireEvent,
)
from streamkit.in_text.code_blocks import CodeTracker
from streamkit.in_text.grammars import GRAMMARS, HEAD_CHARS, GrammarSet, Head, Tags
from streamkit.in_text.parameters import STRING, JSONValue, OfferedTools, json_of, json_or_text, quoted
from streamkit.in_text.thinking import BLANK_CHARS, InTextMachine, unfinished
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage, stage_within
from streamkit.policy import TextCalls
from streamkit.report import StreamReport
from streamkit.text.quoting import writable
from streamkit.tool_calls.object_scanner import TextBuffer
from streamkit.tool_calls.schema import Tools

KIND: Final = "call_in_text"
FIRST_LABEL: Final = 1 << 32  #: First label for calls found in text. It is higher than any index on the wire.
KEY_CHARS: Final = 256  #: maximum length in characters of a key in a call's object, with its quotes, and of a name
PIECE: Final = 2048  #: long text is read in such pieces, so that copying the unread rest is cheap
NAMES: Final = frozenset({"name"})  #: keys of the name in a call's object
ARGUMENTS: Final = frozenset({"arguments", "parameters"})  #: keys of the arguments
NATURAL: Final = frozenset({"stop", "stop_sequence", "tool_calls"})  #: the model ended its response
_CONTENT: Final = frozenset({ReasoningDelta, ReasoningSignature, ReasoningOpaque, RefusalDelta, MediaGenerated})
_decode: Final = json.JSONDecoder(strict=False).raw_decode


class TextCallReader:
    """Reads the text of one choice. ``feed`` and ``settle`` append events to ``out``."""

    def __init__(
        self,
        grammars: GrammarSet,
        tools: OfferedTools,
        limits: Limits,
        report: StreamReport,
        choice: int,
        out: list[Any],
    ) -> None:
        self.out = out
        self.block = 0
        self.natural = False  #: whether the wire's stop reason is a natural one
        self._grammars, self._tools, self._limits, self._report = grammars, tools, limits, report
        self._choice = choice
        self._most = limits.arguments_chars + HEAD_CHARS  # maximum of held characters that may be no call
        self.code = CodeTracker()  #: fed with all text outside calls
        self._pending = ""
        self._step: Callable[[], bool] = self._text
        self._blank: str | None = ""  # held white space, dropped if a call follows; None once there was other text
        self._calls = 0
        self._heads: tuple[Head, ...] = ()  # heads whose beginning the pending text may be
        self._head: Head = next(iter(grammars.heads.values()))[0]
        self._begun = False
        self._open = False  # a call was begun, and its end was not emitted
        self._held = ""  # the last character of the arguments so far
        self._body = _Body()

    # -- feeding ---------------------------------------------------------------------------------------------------

    def passes(self, text: str, block: int) -> bool:
        """Return whether a text can't contain any part of a call, however the text was split."""
        if block != self.block or self._step != self._text or self._pending or self._blank is not None:
            return False
        return self._grammars.first_letter.search(text) is None

    def feed(self, delta: TextDelta) -> None:
        if delta.block != self.block:
            self.settle()
            self.block = delta.block
        if self.passes(delta.text, delta.block):
            self.code.feed(delta.text)
            self.out.append(delta)
            return
        for begin in range(0, len(delta.text), PIECE):
            self._pending += delta.text[begin : begin + PIECE]
            while self._step():
                pass

    def emit_blank(self) -> None:
        """Emit held white space as text, unless a call came before it."""
        if self._blank and not self._calls:
            self.out.append(TextDelta(self._blank, self._choice, self.block))
            self._blank = ""

    def settle(self, *, closed: bool = True) -> None:
        """End the text of this block. ``closed``: also end a call whose body is complete."""
        pending, self._pending = self._pending, ""
        if self._step == self._close and self._body.whole and closed:
            self._end()
        elif self._step == self._parameter and self._body.streams:
            # the arguments so far end inside a JSON string, so the call can't look complete with the held character
            self._grow(pending)
            self._emit_held()
        elif self._step in {self._object, self._in_value} and not self._begun:
            self._emit_text(self._body.raw.whole() + pending)
        elif self._step in {self._text, self._head_of, self._after}:
            self._emit_text(pending)
        self._cut()
        self._step = self._text
        self.emit_blank()

    # -- text ------------------------------------------------------------------------------------------------------

    def _emit_text(self, text: str) -> None:
        if not text:
            return
        self.code.feed(text)
        if self._blank is not None:
            text = self._blank + text
            if len(text) <= BLANK_CHARS and text.isspace():
                self._blank = text
                return
            self._blank = None
        self.out.append(TextDelta(text, self._choice, self.block))

    def _text(self) -> bool:
        """Emit text up to a possible beginning of a call."""
        pending = self._pending
        found = self._grammars.any_marker.search(pending)
        if found is None:
            kept = unfinished(pending, self._grammars.markers)
            self._pending = pending[len(pending) - kept :]
            self._emit_text(pending[: len(pending) - kept])
            return False
        self._emit_text(pending[: found.start()])
        self._pending = pending[found.start() :]
        if self.code.in_code:
            self._heads = ()
        else:
            line = self.code.begins_line
            self._heads = tuple(head for head in self._grammars.heads[found[0]] if line or not head.own_line)
        return self._go(self._head_of)

    def _head_of(self) -> bool:
        """Decide, as early as possible, whether the pending text begins a call."""
        window = self._pending[:HEAD_CHARS]
        waits: list[Head] = []
        for head in self._heads:
            found = head.pattern.match(window)
            if found is not None and not waits:
                if self._accept(head, found):
                    self._pending = self._pending[found.end() :]
                    return True
            elif found is not None:
                waits.append(head)  # an earlier head may still match, and takes precedence
            elif len(window) < HEAD_CHARS and head.beginning.fullmatch(window):
                waits.append(head)
        self._heads = tuple(waits)
        return not waits and self._no_call()

    def _no_call(self) -> bool:
        """Emit a marker that begins no call as text, and search the text after it again."""
        marker = self._grammars.any_marker.match(self._pending)
        size = marker.end() if marker is not None else 1
        self._emit_text(self._pending[:size])
        self._pending = self._pending[size:]
        return self._go(self._text)

    def _accept(self, head: Head, found: re.Match[str]) -> bool:
        """Return whether a head that matched begins a call."""
        groups = found.groupdict()
        call_id, name = groups.get("id"), groups.get("name")
        if head.name_in_id and call_id is not None:
            name = call_id.removeprefix("functions.").rpartition(":")[0] or call_id.removeprefix("functions.")
        self._head, self._begun, self._held = head, False, ""
        self._body = _Body()
        if head.body in {"object", "objects"}:
            self._body.raw.append(found[0])
            return self._go(self._object)
        if name is None or not self._tools.has(name):
            return False
        self._begin(name, call_id)
        self._step = self._parameters if head.body == "tags" else self._json
        return True

    # -- a call ----------------------------------------------------------------------------------------------------

    @property
    def _label(self) -> int:
        return FIRST_LABEL + self._calls

    def _begin(self, name: str, call_id: str | None = None) -> None:
        self._report.repair(KIND)
        self._blank = ""
        self._calls += 1
        self._begun = self._open = True
        self._body.name = name
        self._body.raw.clear()
        self.out.append(ToolCallDelta(self._label, call_id, name, None, self._choice, anonymous=call_id is None))

    def _emit_arguments(self, text: str) -> None:
        """Emit arguments, except their last character."""
        text = self._held + text
        if len(text) > 1:
            self.out.append(ToolCallDelta(self._label, arguments=text[:-1], choice=self._choice))
        self._held = text[-1:]

    def _emit_held(self) -> None:
        held, self._held = self._held, ""
        if held:
            self.out.append(ToolCallDelta(self._label, arguments=held, choice=self._choice))

    def _end(self) -> None:
        if self._open:
            self._emit_held()
            self._open = False
            self.out.append(ToolCallEnded(self._label, self._choice))

    def _cut(self) -> None:
        """Mark the open call as incomplete, so that no client takes it for a call without arguments (law L3)."""
        if self._open:
            self._open = False
            self.out.append(ToolCallEnded(self._label, self._choice, whole=False))

    def _close(self) -> bool:
        """Find the end tag after a body, or text that shows that the call is over."""
        stripped = self._stripped()
        if stripped is None:
            return self._leave()
        for end in self._head.ends:
            if stripped.startswith(end):
                self._pending = stripped[len(end) :]
                if self._body.argued:  # the end tag shows that the call is over, even if a bracket is missing
                    self._end()
                return self._leave()
        if not stripped or unfinished(stripped, self._head.ends) == len(stripped):
            return False
        if self._head.body == "objects" and stripped[0] in ",]" and self._body.whole:
            self._end()
            return self._next_object(stripped)
        return self._leave()

    def _leave(self) -> bool:
        """Finish the call: ended if its body is complete, else incomplete."""
        if self._body.whole:
            self._end()
        self._cut()
        return self._go(self._after)

    def _stripped(self) -> str | None:
        """Return the pending text without leading white space, or None if there is too much white space to hold."""
        stripped = self._pending.lstrip()
        return stripped if len(self._pending) - len(stripped) <= BLANK_CHARS else None

    def _go(self, step: Callable[[], bool]) -> bool:
        self._step = step
        return True

    def _next_object(self, stripped: str) -> bool:
        """Read what follows an object in an array of calls: another object, or the end of the array."""
        if stripped[0] == "]":
            self._pending, self._step = stripped[1:], self._after
            return True
        rest = stripped[1:].lstrip()
        blank = len(stripped) - 1 - len(rest)
        if not rest and blank <= BLANK_CHARS:
            return False
        self._step = self._after
        if rest.startswith("{") and blank <= BLANK_CHARS:
            self._pending, self._begun, self._held, self._step = rest[1:], False, "", self._object
            self._body = _Body()
            self._body.raw.append(stripped[: blank + 2])
        return True

    def _after(self) -> bool:
        """Skip the end of a section, and white space, after a call."""
        stripped = self._stripped()
        trailers = self._grammars.trailers
        if stripped is None:
            return self._go(self._text)
        for trailer in trailers:
            if stripped.startswith(trailer):
                self._pending = stripped[len(trailer) :]
                return True
        if not stripped or unfinished(stripped, trailers) == len(stripped):
            return False
        return self._go(self._text)

    # -- an object with name and arguments -------------------------------------------------------------------------

    @property
    def _is_too_long(self) -> bool:
        return not self._begun and self._body.raw.chars > self._most

    def _keep(self, text: str) -> None:
        """Keep the original text while it may turn out to be no call."""
        if not self._begun:
            self._body.raw.append(text)

    def _object(self) -> bool:
        """Read the text between two members of a call's object: a key, or the end of the object."""
        pending = self._pending.lstrip(" \t\r\n,")
        self._keep(self._pending[: len(self._pending) - len(pending)])
        self._pending = pending
        ends = '}"' if self._body.name else '"'  # an object without a name is no call
        if self._is_too_long or (pending and pending[0] not in ends):
            return self._reject()
        if not pending:
            return False
        if pending[0] == "}":
            if not self._begun:
                self._begin(self._body.name)  # a call without arguments
            self._pending = pending[1:]
            self._body.whole = True
            return self._go(self._close)
        key = _string(pending[:KEY_CHARS])
        if key is None:
            return len(pending) >= KEY_CHARS and self._reject()
        window = pending[: KEY_CHARS + HEAD_CHARS]
        rest = window[key[1] :].lstrip()
        if not rest or not rest[1:].strip():
            return len(pending) > len(window) and self._reject()
        if rest[0] != ":":
            return self._reject()
        size = len(window) - len(rest[1:].lstrip())
        self._keep(pending[:size])
        self._pending = pending[size:]
        body = self._body
        body.key, body.value = key[0], JSONValue()
        body.is_arguments = body.key in ARGUMENTS and not body.argued
        if body.is_arguments and body.name and not self._begun:  # with the tool's name known, arguments make it a call
            self._begin(body.name)
        return self._go(self._in_value)

    def _in_value(self) -> bool:
        """Read the value of a member: the name, the arguments, or another value."""
        body, pending = self._body, self._pending
        if not self._begun:
            pending = pending[: max(self._most - body.raw.chars, 0) + 1]
        size = body.value.feed(pending)
        text, self._pending = pending[:size], self._pending[size:]
        self._keep(text)
        self._take(text)
        if body.value.faulty or self._is_too_long:
            return self._reject()
        if not body.value.done:
            return bool(self._pending)
        return self._value_end()

    def _take(self, text: str) -> None:
        body = self._body
        if body.is_arguments and self._begun and body.value.kind in {"object", "array"}:
            self._emit_arguments(text)
        elif body.is_arguments or body.key in NAMES:
            self._gather(text)

    def _gather(self, text: str) -> None:
        body = self._body
        body.gathered.append(text)
        if self._begun and body.gathered.chars > self._limits.arguments_chars:
            raise ArgumentsTooLong(self._limits.arguments_chars)

    def _value_end(self) -> bool:
        body = self._body
        self._step = self._object
        text = body.gathered.take()
        if body.key in NAMES and not self._begun:
            name = _string(text)
            if name is None or len(text) > KEY_CHARS or not self._tools.has(name[0]):
                return self._reject()
            body.name = name[0]
            if body.argued:  # the arguments came before the name
                self._begin(name[0])
                self._emit_arguments(self._arguments(body.early))
                body.early = ""
        elif body.is_arguments:
            body.argued = True
            if self._begun:
                self._emit_arguments(self._arguments(text))
            else:
                body.early = text
        return True

    def _reject(self) -> bool:
        """Treat the object as text. Long text is not searched again, so that no text is read more than a few times."""
        if self._begun:
            return self._go(self._close)
        raw = self._body.raw.take()
        if len(raw) <= HEAD_CHARS:
            self._pending = raw + self._pending
            return self._no_call()
        self._emit_text(raw)
        return self._go(self._text)

    def _arguments(self, text: str) -> str:
        """Return the argument text of a complete value: the content of a string, nothing for ``null``, else the text."""
        found = _string(text)
        if found is None:
            return "" if text.strip() == "null" else text
        value = writable(found[0])
        if value != found[0]:
            self._report.repair("lone_surrogate")
        return value

    # -- a JSON value ----------------------------------------------------------------------------------------------

    def _json(self) -> bool:
        body = self._body
        if not body.value.kind:
            self._pending = self._pending.lstrip()
            if not self._pending:
                return False
            body.is_arguments = True
            if self._pending[0] not in '{"':
                return self._go(self._close)
        size = body.value.feed(self._pending)
        text, self._pending = self._pending[:size], self._pending[size:]
        self._take(text)
        if body.value.faulty:
            return self._go(self._close)
        if not body.value.done:
            return False
        if body.gathered.chars:
            self._emit_arguments(self._arguments(body.gathered.take()))
        body.whole = True
        return self._go(self._close)

    # -- parameters between tags -----------------------------------------------------------------------------------

    def _parameters(self) -> bool:
        """Read between parameters: the next parameter, or the end of the call."""
        tags, body = cast("Tags", self._head.tags), self._body
        pending = self._pending = self._pending.lstrip()
        if pending.startswith(tags.end):
            self._pending = pending[len(tags.end) :]
            self._emit_arguments("}" if body.argued else "{}")
            self._end()
            return self._go(self._after)
        if pending.startswith("{") and not body.argued:  # <function=NAME>{…}</function>
            self._head = Head(self._head.parts, "json", ends=(tags.end,))
            return self._go(self._json)
        if not pending.startswith(tags.begin):
            waits = not pending or unfinished(pending, (tags.end, tags.begin)) == len(pending)
            return not waits and self._go(self._close)
        found = tags.head.match(pending[:HEAD_CHARS])
        if found is None:
            return len(pending) >= HEAD_CHARS and self._go(self._close)
        key, typed = found["key"], found.groupdict().get("string")
        self._pending = pending[found.end() :]
        body.is_json = typed == "false"
        body.types = self._tools.types(body.name, key) if typed is None else STRING
        body.streams = body.types == STRING and not body.is_json
        self._emit_arguments((", " if body.argued else "{") + quoted(key) + (': "' if body.streams else ": "))
        body.argued, body.first = True, True
        return self._go(self._parameter)

    def _parameter(self) -> bool:
        tags, body = cast("Tags", self._head.tags), self._body
        if tags.pads and body.first and self._pending:
            body.first = False
            self._pending = self._pending.removeprefix("\n")
        at = self._pending.find(tags.close)
        if at < 0:
            kept = unfinished(self._pending, (f"\n{tags.close}", tags.close) if tags.pads else (tags.close,))
            at = len(self._pending) - kept
            value, self._pending = self._pending[:at], self._pending[at:]
            self._grow(value)
            return False
        value, self._pending = self._pending[:at], self._pending[at + len(tags.close) :]
        self._grow(value.removesuffix("\n") if tags.pads else value)
        if body.streams:
            self._emit_arguments('"')
        else:
            text = body.gathered.take()
            depth = self._limits.json_depth
            self._emit_arguments(json_or_text(text, depth) if body.is_json else json_of(text, body.types, depth))
        return self._go(self._parameters)

    def _grow(self, value: str) -> None:
        if not self._body.streams:
            self._gather(value)
        elif value:
            self._emit_arguments(quoted(value)[1:-1])


class _Body:
    def __init__(self) -> None:
        self.name = ""
        self.whole = False  #: the body is complete; only the end tag is missing
        self.value = JSONValue()
        self.key = ""
        self.is_arguments = False
        self.argued = False  #: arguments or a parameter were read
        self.early = ""  #: arguments that came before the name
        self.gathered = TextBuffer()
        self.types: frozenset[str] = frozenset()
        self.is_json = False  #: the model marked the parameter as JSON, not a string
        self.streams = False  #: the parameter's text is emitted as it arrives
        self.first = False
        self.raw = TextBuffer()  #: the original text while it may turn out to be no call


def _string(text: str) -> tuple[str, int] | None:
    """Return the JSON string at the start of a text, and the offset of its end; None if it is incomplete or no string."""
    try:
        return _decode(text) if text.startswith('"') else None
    except ValueError:
        return None


class TextCallFinder(InTextMachine):
    """The machine of ``find_text_calls``."""

    def __init__(
        self,
        grammars: GrammarSet,
        *,
        tools: OfferedTools,
        limits: Limits = DEFAULT_LIMITS,
        report: StreamReport | None = None,
    ) -> None:
        super().__init__(report)
        self._grammars, self._tools, self._limits = grammars, tools, limits
        self._failed = False
        self._readers: dict[int, TextCallReader | None] = {}  # None: this choice has calls on the wire

    def release(self) -> None:
        for reader in self._readers.values():
            if reader is not None:
                reader.settle(closed=reader.natural)
        self._readers.clear()

    def take(self, event: WireEvent) -> None:
        model: Any = event
        kind = type(event)
        if kind is ProviderFailed and not self._failed:
            self.release()  # held text precedes the error
            self._failed = True
        elif self._failed:
            pass  # events after an error pass unread
        elif kind is TextDelta:
            reader = self._reader(model.choice)
            if reader is not None:
                reader.feed(model)
                return
        elif kind is Aside and (reader := self._readers.get(model.choice)) is not None:
            reader.emit_blank()  # the aside may belong to the held text
        elif kind is StopReasonSeen and (reader := self._readers.get(model.choice)) is not None:
            reader.natural = model.reason in NATURAL
        elif kind is ToolCallDelta or (kind in _CONTENT and getattr(model, "text", "-") != ""):
            reader = self._readers.get(model.choice)
            if reader is not None:
                reader.settle()
            if kind is ToolCallDelta:
                self._readers[model.choice] = None
        self._out.append(event)

    def _reader(self, choice: int) -> TextCallReader | None:
        if choice not in self._readers:
            self._readers[choice] = TextCallReader(
                self._grammars, self._tools, self._limits, self._report, choice, self._out
            )
        return self._readers[choice]


def find_text_calls(
    *grammars: TextCalls, offered: Tools | None = None, limits: Limits = DEFAULT_LIMITS
) -> Stage[list[WireEvent], list[WireEvent]]:
    """Create a stage that finds calls in the model's text and turns them into tool calls.

    Put the stage before ``accumulate_tool_calls``, and after ``split_thinking`` if you use both. ``grammars`` are the
    syntaxes to search for: ``hermes``, ``qwen``, ``glm``, ``kimi``, ``deepseek``, ``minimax``, ``claude``, ``mistral``,
    ``llama``. ``offered`` are the request's tools. If you pass ``offered``, a call of any other tool stays text. Some
    syntaxes write each parameter between tags, without a type; the type then comes from the tool's schema in
    ``offered``. The stage does not check arguments. Every call that the stage finds counts as one repair,
    ``call_in_text``. Raises UsageError if ``grammars`` is empty or has an unknown name.
    """
    if not grammars:
        raise UsageError(f"find_text_calls needs at least one of these grammars: {', '.join(GRAMMARS)}")
    check_words("a grammar", grammars, GRAMMARS)
    known, tools = GrammarSet.named(grammars), OfferedTools(offered)
    return stage_within(
        "wire events",
        "find_text_calls",
        lambda report: TextCallFinder(known, tools=tools, limits=limits, report=report),
    )
