"""Events folded into one whole response."""

from __future__ import annotations

from streamkit.events import (
    Aside,
    ChoiceStarted,
    Event,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallFinished,
    UsageReported,
)
from streamkit.messages import Choice, Response, ToolCall
from streamkit.report import StreamReport


class Collector:
    """Folds events into a ``Response``. Texts are kept as fragments and joined once."""

    def __init__(self, dialect: str, report: StreamReport) -> None:
        self._response = Response(dialect, report)
        self._choices: dict[int, Choice] = {}
        self._texts: dict[tuple[int, str], list[str]] = {}

    def feed(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case TextDelta():
                    self._text(event.choice, "text", event.text)
                case ReasoningDelta():
                    self._text(event.choice, "reasoning", event.text)
                case RefusalDelta():
                    self._text(event.choice, "refusal", event.text)
                case ToolCallFinished():
                    self._call(event)
                case _:
                    self._other(event)

    def finish(self) -> Response:
        for (number, name), parts in self._texts.items():
            setattr(self._choices[number], name, "".join(parts))
        for choice in self._choices.values():
            choice.tool_calls.sort(key=lambda call: call.index)
        self._response.choices = [self._choices[number] for number in sorted(self._choices)]
        return self._response

    def _choice(self, number: int) -> Choice:
        return self._choices.setdefault(number, Choice(number))

    def _text(self, choice: int, name: str, text: str) -> None:
        self._choice(choice)
        self._texts.setdefault((choice, name), []).append(text)

    def _call(self, event: ToolCallFinished) -> None:
        self._choice(event.choice).tool_calls.append(
            ToolCall(event.call, event.id, event.name, event.arguments, event.kind, event.verdict)
        )

    def _other(self, event: Event) -> None:
        match event:
            case ResponseStarted():
                self._response.id, self._response.model = event.id, event.model
                self._response.created = event.created
                self._response.extras = event.extras or {}
            case ChoiceStarted():
                self._choice(event.choice).role = event.role
            case ReasoningSignature():
                self._choice(event.choice).signatures.append(event)
            case ReasoningOpaque():
                self._choice(event.choice).opaque.append(event)
            case UsageReported():
                self._response.usage = event
            case Aside():
                self._choice(event.choice).asides.append(event)
            case ProviderFailed():
                self._response.error = event
            case ResponseFinished():
                ended = self._choice(event.choice)
                ended.stop_reason, ended.native_stop_reason = event.reason, event.native
                ended.stop_sequence = event.stop_sequence
            case StreamEnded():
                self._response.clean = event.clean
            case _:
                pass  # a call's start and fragments: its end has them all
