"""Check Bedrock's streams against the needs of the SDKs that read them.

Their readers are generated from a service model. They ignore event types and union members that the model does not name, so
these are accepted. The type of each message is in a header, without which most readers stop. Readers find blocks by their
index, and need not care whether a block was stopped, so many violations are only notes.

The events in chunks of InvokeModelWithResponseStream are checked against the grammar of the model's own dialect.

Source: dialects.md §6.1, §7.6.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, ClassVar

from attrs import define, evolve, field

from streamkit.dialects.anthropic.lint import HINTS as NATIVE_HINTS
from streamkit.dialects.anthropic.lint import AnthropicLinter
from streamkit.dialects.bedrock.wire import CHUNK, DELTAS, EVENTS, REASONING, only_member
from streamkit.dialects.linting import (
    COMMON_HINTS,
    COMMON_RULES,
    CUT,
    KNOWN,
    NO_RULE,
    READS,
    STOPS,
    TORN,
    CallInput,
    GrammarChecker,
    Hint,
    Hints,
    Severity,
    is_filled,
    is_index,
    is_text,
    like,
    like_each,
    load_json,
    shown,
)
from streamkit.dialects.members.values import has_value, is_base64
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "torn": "The last message is whole: readers drop a truncated message, or stop at it (§6.1).",
    "headers": (
        "Each message has the header `:message-type`, and a name in the header `:event-type` or "
        "`:exception-type` (§6.1)."
    ),
    "content_type": "The header `:content-type` is `application/json` (§6.1).",
    "kind": "Either all events of a stream are chunks, or none of them is a chunk (§6.1).",
    "message_start": "`messageStart` is the first event. It is sent once, and has the role `assistant` (§6.1).",
    "block_index": "Blocks have the `contentBlockIndex` 0, 1, 2 … in the order in which they begin (§6.1).",
    "block_order": "Only one block is open at a time, and no block is open when the message stops (§6.1).",
    "start": "`start` is an object with one member. A call has a `toolUseId` and a name that are not blank (§6.1).",
    "tool_id": "Each call has a different `toolUseId`: otherwise a tool result could belong to two calls (§7.3).",
    "delta": "`delta` is an object with one member, which fits the block and has the right type (§6.1).",
    "redacted": "`redactedContent` is base64 text: clients decode it (§6.1).",
    "signature": "A signature is sent once and in one piece, after the reasoning that it signs (§6.1).",
    "input_unparsable": (
        "The joined fragments of a call are empty or one JSON object. Other text may be the model's mistake (§6.1)."
    ),
    "message_stop": "`messageStop` has a stop reason (§6.1, §7.6).",
    "after_stop": "Only one event may follow `messageStop`: `metadata` (§6.1).",
    "metadata": "`metadata` is sent after `messageStop`, not before it (§6.1).",
    "usage": "`usage` has `inputTokens`, `outputTokens` and `totalTokens` (§6.1).",
    "metrics": "`metrics` has the latency in milliseconds (§6.1).",
    "error": "An exception has a `message` that is not blank. An error has its code and its message in headers (§6.1).",
    "after_error": "Nothing follows an exception (§6.1).",
    "chunk": "A chunk has the member `bytes`, which is an event of the model's own dialect, as JSON in base64 (§6.1).",
    "native": "The events in chunks follow the rules of the model's own dialect (§3.1, §6.1).",
}
#: How to report violations in events of InvokeModel: the message begins with the rule of Anthropic's checker.
NATIVE = tuple(
    evolve(look, says=f"{rule}: {look.says}")
    for rule, looks in NATIVE_HINTS.items()
    if rule != NO_RULE
    for look in looks
)
HINTS: Hints = {
    **COMMON_HINTS,
    "unreadable": (*COMMON_HINTS["unreadable"], Hint(STOPS, 115, "a message whose"), Hint(STOPS, 115, "a chunk")),
    "truncated": (Hint(CUT, 66),),
    "torn": (Hint(TORN, 106),),
    **dict.fromkeys(("headers", "content_type", "kind", "message_stop", "metadata", "metrics"), ()),
    "message_start": (like("response_restarted"), Hint(KNOWN, 66)),
    "block_index": (*like_each("block_reopened", "index_reused", "index_invalid", "index_missing"), Hint(KNOWN, 82)),
    "block_order": (
        *like_each("block_unclosed", "block_reopened", "block_unopened", "arguments_late"),
        Hint(KNOWN, 78),
    ),
    "start": (like("id_missing"), like("identity_blank", 33), like("call_nameless"), like("field_invalid")),
    "tool_id": (like("id_duplicate"),),
    "delta": (like("block_mismatch"), like("block_unopened"), like("field_invalid")),
    **dict.fromkeys(("redacted", "usage"), (like("field_invalid"),)),
    "signature": (Hint(READS, 88, "a signature"),),
    "input_unparsable": (Hint(KNOWN, 50),),
    "after_stop": (like("after_end"),),
    "error": (like("error_shape"),),
    "after_error": (like("after_error"), like("after_end")),
    "chunk": (Hint(STOPS, 115),),
    "native": NATIVE,
    NO_RULE: NATIVE_HINTS[NO_RULE],
}


@define
class _CheckedBlock:
    index: object
    kind: str  #: the member of its start or first delta; empty for a start without a member
    signed: bool = False
    input: CallInput = field(factory=CallInput)


class BedrockLinter(GrammarChecker):
    """Checks the messages of one stream against ``RULES``."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    _started = False  # whether there was any event
    _role_seen = False  # whether there was a messageStart
    _stopped = False
    _counted = False
    _failed = False
    _native: AnthropicLinter | None = None
    _open: _CheckedBlock | None = None
    _next_index = 0

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("torn", f"the input ends inside a message, after {len(frame.data)} bytes")
            return
        if self._failed:
            self.broken("after_error", f"message after the exception: {shown(frame.event)}")
        kind = frame.headers.get(":message-type")
        if kind == "exception":
            self._exception(frame)
        elif kind == "error":
            self._failed = True
            if not is_filled(frame.headers.get(":error-code")) or not is_filled(frame.headers.get(":error-message")):
                self.broken("error", f"the headers are {shown(dict(frame.headers))}")
        else:
            self._event(frame, kind)

    def close(self) -> None:
        if self._native is not None and not self._failed:
            self._relay(self._native.finish())
        elif self._native is None and not self._stopped and not self._failed:
            self.broken("truncated", "the stream ends before messageStop")

    def _event(self, frame: Frame, kind: object) -> None:
        event = frame.headers.get(":event-type")
        if kind != "event" or not is_filled(event):
            self.broken("headers", f":message-type is {shown(kind)}, :event-type {shown(event)}")
        if frame.headers.get(":content-type") != "application/json":
            self.broken("content_type", f":content-type is {shown(frame.headers.get(':content-type'))}", "note")
        chunk, known = frame.event == CHUNK, frame.event in EVENTS
        if (chunk and self._started) or (known and self._native is not None):
            self.broken("kind", f"{shown(frame.event)} in a stream {'of other events' if chunk else 'of chunks'}")
            return
        document = self.load(frame)
        if document is None:
            return
        if chunk:
            self._chunk(document)
        elif known:
            if not self._started and frame.event != "messageStart":
                self.broken("message_start", f"{shown(frame.event)} before messageStart", "note")
            self._started = True
            if self._stopped and frame.event != "metadata":
                self.broken("after_stop", f"{shown(frame.event)} after messageStop")
            self.judge(EVENTS[frame.event], document)

    def _exception(self, frame: Frame) -> None:
        self._failed = True
        if not is_filled(frame.headers.get(":exception-type")):
            self.broken("headers", f":exception-type is {shown(frame.headers.get(':exception-type'))}")
        document = self.load(frame)
        if document is not None and not is_filled(document.get("message")):
            self.broken("error", f"the message is {shown(document.get('message'))}")

    def _message_start(self, document: dict[str, Any]) -> None:
        if self._next_index or self._open is not None or self._stopped or self._role_seen:
            self.broken("message_start", "a second or late messageStart")
        self._role_seen = True
        if document.get("role") != "assistant":
            self.broken("message_start", f"the role is {shown(document.get('role'))}")

    def _message_stop(self, document: dict[str, Any]) -> None:
        self._none_open("messageStop")
        self._stopped = True
        self.member(document, "stopReason", is_filled, "message_stop")

    def _metadata(self, document: dict[str, Any]) -> None:
        if not self._stopped:
            self.broken("metadata", "metadata before messageStop", "note")
        elif self._counted:
            self.broken("after_stop", "a second metadata")
        self._counted = True
        self.counts(document.get("usage"), "inputTokens", "outputTokens", "totalTokens", may_lack=False)
        metrics = document.get("metrics")
        if not isinstance(metrics, dict) or not is_index(metrics.get("latencyMs")):
            self.broken("metrics", f"metrics is {shown(metrics)}", "note")

    def _chunk(self, document: dict[str, Any]) -> None:
        encoded = document.get("bytes")
        try:
            data = b64decode(encoded if is_text(encoded) else "", validate=True)
            event = load_json(data)
        except ValueError:
            self.broken("chunk", f"bytes is {shown(encoded)}")
            return
        self._native = self._native or AnthropicLinter()
        kind = event.get("type") if isinstance(event, dict) else None
        self._relay(self._native.feed([Frame(data, event=kind if is_text(kind) else "message")]))

    def _relay(self, found: list[Any]) -> None:
        """Report violations that the model's checker found, at the current message."""
        for violation in found:
            if violation.rule == "truncated":
                self.broken("truncated", violation.message)
            else:
                self.broken("native", f"{violation.rule}: {violation.message}", violation.severity)

    def _block_start(self, document: dict[str, Any]) -> None:
        member, value = only_member(document.get("start"))
        own = member == "toolUse" and isinstance(value, dict) and has_value(value.get("type"))  # provider's tool
        self._begin(document, "server" if own else member)
        if not member:
            self.broken("start", f"start is {shown(document.get('start'))}")
        elif member == "toolUse" and not own:
            self._tool_use(value)

    def _begin(self, document: dict[str, Any], kind: str) -> _CheckedBlock:
        index: Any = document.get("contentBlockIndex")
        self._none_open(f"block {shown(index)}")
        if not is_index(index):
            self.broken("block_index", f"contentBlockIndex is {shown(index)}")
        elif index != self._next_index:
            severity: Severity = "error" if index < self._next_index else "note"
            self.broken("block_index", f"contentBlockIndex is {index}, not {self._next_index}", severity)
        self._next_index = index + 1 if type(index) is int else self._next_index + 1
        self._open = _CheckedBlock(index, kind)
        return self._open

    def _none_open(self, what: str) -> None:
        """Report an open block. An open call is an error, because its reader would not know that it is complete."""
        block, self._open = self._open, None
        if block is not None:
            message = f"{what} while block {shown(block.index)} is open"
            self.broken("block_order", message, "error" if block.kind == "toolUse" else "note")

    def _tool_use(self, use: Any) -> None:
        call_id, name = (use.get("toolUseId"), use.get("name")) if isinstance(use, dict) else (None, None)
        if not is_filled(call_id) or not is_filled(name):
            self.broken("start", f"toolUseId is {shown(call_id)}, name {shown(name)}")
        else:
            self.identify("tool_id", "toolUseId", call_id)

    def _block_delta(self, document: dict[str, Any]) -> None:
        member, value = only_member(document.get("delta"))
        index, block = document.get("contentBlockIndex"), self._open
        if not member:
            self.broken("delta", f"delta is {shown(document.get('delta'))}")
            return
        kind = "text" if member == "citation" else member
        if block is None or block.index != index:
            if member == "toolUse":
                self.broken("block_order", f"toolUse delta for block {shown(index)}, which is not open")
                return
            block = self._begin(document, kind)
        block.kind = block.kind or kind
        if member not in DELTAS or block.kind not in DELTAS:  # content that only the vendor understands is accepted
            return
        if block.kind != kind:
            self.broken("delta", f"{member} in a block of {block.kind}")
        elif member == "text":
            self._text(member, value)
        elif not isinstance(value, dict):
            self.broken("delta", f"{member} is {shown(value)}")
        elif member == "toolUse":
            fragment = value.get("input")
            self._text("input", fragment)
            if is_text(fragment):
                block.input.append(fragment)
        elif member == "reasoningContent":
            self._reasoning(block, value)

    def _text(self, member: str, value: object) -> None:
        if not is_text(value):
            self.broken("delta", f"{member} is {shown(value)}")

    def _reasoning(self, block: _CheckedBlock, delta: dict[str, Any]) -> None:
        member, value = only_member(delta)
        if not member:
            self.broken("delta", f"reasoningContent is {shown(delta)}")
        elif member in REASONING:
            self._text(member, value)
            if block.signed and value != "":
                self.broken("signature", f"{'a signature' if member == 'signature' else member} after the signature")
            block.signed = block.signed or member == "signature"
            if member == "redactedContent" and is_text(value) and not is_base64(value):
                self.broken("redacted", f"redactedContent is {shown(value)}")

    def _block_stop(self, document: dict[str, Any]) -> None:
        block, index = self._open, document.get("contentBlockIndex")
        if block is None or block.index != index:
            if is_index(index) and index == self._next_index:  # an empty text block has only a stop
                self._begin(document, "")
                self._open = None
            else:
                self.broken("block_order", f"contentBlockStop for block {shown(index)}, which is not open")
            return
        self._open = None
        if block.kind == "toolUse" and (text := block.input.unparsable()) is not None:
            self.broken("input_unparsable", f"the input is {shown(text)}", "note")
