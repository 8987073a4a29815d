"""Combine events into one whole response."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from streamkit.conversation.messages import (
    Choice,
    Media,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Response,
    Text,
    ToolCall,
)
from streamkit.conversation.response_events import part_of
from streamkit.errors import UsageError
from streamkit.events import (
    Aside,
    ChoiceStarted,
    Event,
    MediaGenerated,
    Opaque,
    OutputChecked,
    OutputDoomed,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

ASIDE_CHARS: Final = 200  #: size of an aside without its text, for ``Limits.aside_chars``
Spoken: TypeAlias = Text | Reasoning | Refusal


class Collector:
    """Combines events into a ``Response``. Texts are kept as fragments and joined once.

    ``feed`` raises UsageError for what is no event.
    """

    def __init__(self, dialect: str, report: StreamReport, limits: Limits = DEFAULT_LIMITS) -> None:
        self._aside_room = limits.aside_chars
        self._report = report
        self._response = Response(dialect, report)
        self._choices: dict[int, Choice] = {}
        self._spoken: dict[tuple[int, type, int], tuple[Spoken, list[str]]] = {}
        self._calls: dict[tuple[int, int], ToolCall] = {}
        self._signatures: dict[tuple[int, type, int], tuple[str, list[str]]] = {}  # the vendor, and the pieces

    def feed(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case TextDelta():
                    self._fragments(Text, event.choice, event.block).append(event.text)
                case ReasoningDelta():
                    self._fragments(Reasoning, event.choice, event.block, event.kind).append(event.text)
                case RefusalDelta():
                    self._fragments(Refusal, event.choice, event.block).append(event.text)
                case ToolCallArguments():
                    pass  # ``ToolCallFinished`` has the whole text
                case _:
                    self._other(event)

    def finish(self) -> Response:
        for part, fragments in self._spoken.values():
            part.text = "".join(fragments)
        for key, (vendor, pieces) in self._signatures.items():
            signed = self._spoken[key][0]
            if isinstance(signed, Text | Reasoning):
                signed.signature = Opaque(vendor, "".join(pieces))
        self._response.choices = [self._choices[number] for number in sorted(self._choices)]
        return self._response

    def _choice(self, number: int) -> Choice:
        return self._choices.setdefault(number, Choice(number))

    def _fragments(self, kind: type[Spoken], choice: int, block: int, *more: Literal["raw", "summary"]) -> list[str]:
        """Return the list of fragments of a block. The block becomes a part of its choice at its first mention."""
        found = self._spoken.get((choice, kind, block))
        if found is None:
            part = Reasoning("", more[0], block=block) if kind is Reasoning and more else kind("", block=block)
            found = self._spoken[choice, kind, block] = part, []
            self._choice(choice).parts.append(part)
        return found[1]

    def _sign(self, event: ReasoningSignature) -> None:
        kind: type[Text | Reasoning] = Text if event.on == "text" else Reasoning
        self._fragments(kind, event.choice, event.block)
        key = event.choice, kind, event.block
        if key in self._signatures and self._signatures[key][0] == event.vendor:  # the next piece of a signature
            self._signatures[key][1].append(event.blob)
        else:
            self._signatures[key] = event.vendor, [event.blob]

    def _keep(self, part: Aside | Media, choice: int, size: int, loss: str, what: str) -> None:
        """Keep an aside or generated media of ``size`` characters if there is room, else count a loss."""
        size += ASIDE_CHARS
        if size > self._aside_room:
            self._report.lose(loss, what=what)
        else:
            self._aside_room -= size
            self._choice(choice).parts.append(part)

    def _other(self, event: Event) -> None:
        match event:
            case ToolCallStarted():
                call = ToolCall(event.call, event.id, event.name, "", event.kind)
                call.signature, call.extras, call.id_made = event.signature, event.extras, event.id_made
                call.qualified = event.qualified
                self._calls[event.choice, event.call] = call
                self._choice(event.choice).parts.append(call)
            case ToolCallFinished():
                call = self._calls[event.choice, event.call]
                call.arguments, call.verdict, call.ended = event.arguments, event.verdict, event.ended
            case ResponseStarted():
                self._response.id, self._response.model = event.id, event.model
                self._response.created, self._response.vendor = event.created, event.vendor
                self._response.extras = event.extras or {}
            case ChoiceStarted():
                self._choice(event.choice).role = event.role
            case ReasoningSignature():
                self._sign(event)
            case ReasoningOpaque():
                opaque = RedactedReasoning(Opaque(event.vendor, event.blob), block=event.block)
                self._choice(event.choice).parts.append(opaque)
            case UsageReported():
                self._response.usage = event
            case Aside():
                size = len(event.raw if isinstance(event.raw, str) else repr(event.raw))
                self._keep(event, event.choice, size, event.kind, event.type)
            case MediaGenerated():
                size = len(event.data or event.url or "") + (0 if event.native is None else len(repr(event.native.raw)))
                self._keep(part_of(event), event.choice, size, "media_output", event.media_type or event.kind)
            case ProviderFailed():
                self._response.error = event
            case OutputChecked():
                self._choice(event.choice).verdict = event.verdict
            case ResponseFinished():
                ended = self._choice(event.choice)
                ended.stop_reason, ended.native_stop_reason = event.reason, event.native
                ended.stop_sequence = event.stop_sequence
            case StreamEnded():
                self._response.clean = event.clean
            case ToolCallDoomed() | OutputDoomed():
                pass  # the verdict follows
            case _:
                raise UsageError(f"collect needs the events of accumulate_tool_calls, not {quoted(event)}")
