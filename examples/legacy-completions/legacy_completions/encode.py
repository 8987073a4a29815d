"""Events to chunks. The dialect has text and nothing else: what it can't carry is a counted loss, and calls are withheld."""

from typing import Any

import orjson

from legacy_completions.wire import ERROR_NAMES, FINISH_REASONS, VENDOR, encode_usage
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import EventEncoder
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.report import StreamReport

dumps = orjson.dumps


class CompletionsEncoder(EventEncoder):
    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._head = b""
        self._blocks: dict[int, int] = {}  # the block of text that each choice was last in
        self._reasoned: set[tuple[int, int]] = set()
        self._refused: set[int] = set()
        self._called: set[int] = set()
        self._usage: UsageReported | None = None

    # -- chunks ----------------------------------------------------------------------------------------------------

    def response_started(self, event: ResponseStarted) -> None:
        head: dict[str, Any] = {
            "id": event.id or self.encoding.make_id("cmpl-"),
            "object": "text_completion",
            "created": event.created if event.created is not None else int(self.encoding.clock()),
            "model": event.model or "",
        }
        if event.extras and event.vendor == VENDOR:
            head.update(event.extras)
        elif event.extras:
            self.lose("response_fields")
        self._head = b"data: " + dumps(head)[:-1]

    def _chunk(self, fields: bytes) -> None:
        if not self._head:
            self.response_started(ResponseStarted())
        self.write(b"%b,%b}\n\n" % (self._head, fields))

    def _choice(
        self,
        number: int,
        text: bytes = b'""',
        *,
        logprobs: bytes = b"null",
        finish: bytes = b"null",
        more: bytes = b"",
    ) -> None:
        self._chunk(
            b'"choices":[{"text":%b,"index":%d,"logprobs":%b,"finish_reason":%b%b}]'
            % (text, number, logprobs, finish, more)
        )

    def choice_started(self, _event: ChoiceStarted) -> None:
        """The first chunk of a choice says as much."""

    # -- what the model says ---------------------------------------------------------------------------------------

    def text(self, event: TextDelta | RefusalDelta) -> None:
        if self._blocks.setdefault(event.choice, event.block) != event.block:
            self._blocks[event.choice] = event.block
            self.lose("block_boundary")
        if event.choice in self._called:  # the call stood between the texts
            self.lose("block_order")
        self._choice(event.choice, dumps(event.text))

    def refusal(self, event: RefusalDelta) -> None:
        if event.choice not in self._refused:
            self._refused.add(event.choice)
            self.lose("refusal_as_text")
        self.text(event)

    def reasoning(self, event: ReasoningDelta) -> None:
        if (event.choice, event.block) not in self._reasoned:  # once a block, not once a delta
            self._reasoned.add((event.choice, event.block))
            self.lose("reasoning")

    def signature(self, _event: ReasoningSignature) -> None:
        self.lose("reasoning_signature")

    def opaque(self, _event: ReasoningOpaque) -> None:
        self.lose("reasoning_opaque")

    def call_started(self, event: ToolCallStarted) -> None:
        self._called.add(event.choice)

    def call_arguments(self, _event: ToolCallArguments) -> None:
        """The finished call has the whole text."""

    def call_finished(self, event: ToolCallFinished) -> None:
        self.withhold("call_withheld", event.id, event.name or None, event.arguments)

    # -- beside the text -------------------------------------------------------------------------------------------

    def usage_reported(self, event: UsageReported) -> None:
        self._usage = event  # a snapshot: the last one counts

    def aside(self, event: Aside) -> None:
        if event.vendor != VENDOR or event.kind == "unknown_event":
            self.lose(event.kind)
        elif event.kind == "logprobs":
            self._choice(event.choice, logprobs=dumps(event.raw))
        elif event.type.startswith("choices."):
            self._choice(event.choice, more=b"," + dumps({event.type.removeprefix("choices."): event.raw})[1:-1])
        else:
            self._chunk(b'"choices":[],' + dumps({event.type: event.raw})[1:-1])

    # -- the end ---------------------------------------------------------------------------------------------------

    def finished(self, event: ResponseFinished) -> None:
        if event.reason not in FINISH_REASONS:
            self.lose("stop_reason")
        if event.stop_sequence is not None:
            self.lose("stop_sequence")
        self._choice(event.choice, finish=dumps(FINISH_REASONS.get(event.reason, "stop")))

    def terminate(self) -> None:
        if self._usage is not None and self.encoding.profile.include_usage:
            self._chunk(b'"choices":[],"usage":' + dumps(encode_usage(self._usage)))
        self.write(b"data: [DONE]\n\n")

    def error(self, event: ProviderFailed) -> None:
        body = {"message": event.message, "type": ERROR_NAMES[event.type], "param": None, "code": event.code}
        if event.vendor == VENDOR and isinstance(event.raw, dict) and "message" in event.raw:
            body = event.raw  # as it came
        self.write(b'data: {"error":%b}\n\n' % dumps(body))
