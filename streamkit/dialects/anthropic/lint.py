"""Check Anthropic's events against the needs of the official client and its accumulating helper.

The helper appends each block to a list, and finds blocks by ``index``. It appends deltas to a block's text, but a signature
replaces an earlier one. It parses a call's input when the block stops. The checker accepts unknown types of events, blocks and
deltas, because the API announces that new types may be added at any time.

Source: dialects.md §0.4, §3.1, §3.3, §7.6.
"""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import define, field

from streamkit.dialects.anthropic.wire import DELTAS, EVENTS
from streamkit.dialects.linting import (
    COMMON_RULES,
    KNOWN,
    MESSAGE_HINTS,
    NO_RULE,
    READS,
    CallInput,
    GrammarChecker,
    Hint,
    Hints,
    is_filled,
    is_text,
    like,
    like_each,
    shown,
)
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": "A blank line ends each event, including the last: clients drop an event without this line (§0.3).",
    "event": "Each event has a `type`, and an `event:` line with the same value: clients drop other events (§0.4).",
    "message_start": "`message_start` is sent once. Only a ping or an error may precede it (§3.1).",
    "message": "At its start, the message has an `id`, a `model`, the role `assistant` and `content: []` (§3.1).",
    "usage": (
        "In `message_start`, `usage` has `input_tokens` and `output_tokens`. "
        "In `message_delta`, `usage` has `output_tokens` (§0.4)."
    ),
    "block_index": "Blocks have the `index` 0, 1, 2 … in the order in which they start (§0.4, §3.1).",
    "block_order": (
        "Only one block is open at a time, and its deltas and its stop have its index. "
        "No block is open when the message stops (§3.1)."
    ),
    "block": "`content_block` is an object with a `type`; a text block has a string `text` (§3.1).",
    "tool_use": "A `tool_use` block has an `id` and a name that are not blank, and starts with `input: {}` (§3.1).",
    "tool_id": "Each `tool_use` block has a different `id`: otherwise a tool result could belong to two calls (§3.2).",
    "delta": (
        "Each delta is an object. Its `type` fits the block, and the delta has the member that belongs to "
        "the type (§3.1)."
    ),
    "signature": (
        "A signature is sent once and in one piece, directly before its block stops: "
        "clients keep only the last piece (§0.4)."
    ),
    "empty_text": "No text block is empty: the API refuses an empty block when a client sends it back (§3.2).",
    "input_unparsable": (
        "The joined fragments of a call are empty or one JSON object. Other text may be the model's mistake (§3.1)."
    ),
    "message_delta": "`message_delta` has an object `delta`, whose `stop_reason` is a string or null (§3.1).",
    "stop_reason": "Before `message_stop`, a `message_delta` has the stop reason (§3.1, §7.6).",
    "message_stop": "If a message has a stop reason, `message_stop` follows (§7.6).",
    "after_stop": "Nothing follows `message_stop` (§3.1).",
    "error": "An error event has an object `error` with the strings `type` and `message` (§3.1).",
    "after_error": "Nothing follows an error event (§3.1).",
}
HINTS: Hints = {
    **MESSAGE_HINTS,
    "block_index": (like("block_reopened"), like("index_invalid"), like("index_missing"), Hint(READS, 82)),
    "block_order": (
        *like_each("block_unopened", "block_reopened", "block_unclosed"),
        Hint(READS, 75, "content_block_stop for"),
        Hint(READS, 78, "message"),
        Hint(READS, 78, "content_block_start"),
    ),
    **dict.fromkeys(("block", "message_delta"), (like("field_invalid"),)),
    "tool_use": (like("id_missing"), like("identity_blank", 33), like("call_nameless"), like("field_invalid")),
    "tool_id": (like("id_duplicate"),),
    "delta": (like("block_mismatch"), like("field_invalid")),
    "signature": (Hint(READS, 88, "signature_delta"),),
    "empty_text": (Hint(READS, 81),),
    "input_unparsable": (Hint(KNOWN, 50),),
    **dict.fromkeys(("stop_reason", "message_stop"), ()),
    "after_stop": (like("foreign_terminator"), like("after_end")),
    "after_error": (like("after_error"), like("after_end")),
    NO_RULE: (Hint("stop_with_calls", 53), Hint("finish_derived", None)),
}
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
#: Blocks that accept only the deltas in ``DELTAS``. Other blocks are not checked.
KNOWN_BLOCKS = CALLS | {"text", "thinking", "redacted_thinking"}


@define
class _CheckedBlock:
    index: object
    type: str
    filled: bool = False  #: whether a delta with content arrived
    signed: bool = False
    input: CallInput = field(factory=CallInput)

    def take(self, delta: dict[str, Any]) -> None:
        match delta["type"]:
            case "text_delta":
                self.filled = self.filled or bool(delta["text"])
            case "signature_delta":
                self.signed = True
            case "input_json_delta":
                self.input.append(delta["partial_json"])


class AnthropicLinter(GrammarChecker):
    """Checks the frames of one stream against ``RULES``."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    _started = False
    _open: _CheckedBlock | None = None
    _next_index = 0
    _stop_reason_seen = False
    _stopped = False
    _failed = False

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event")
        if self._failed:
            self.broken("after_error", f"frame after the error: {shown(frame.text)}")
        elif self._stopped:  # `[DONE]` of another dialect: the client ignores it
            harmless = frame.data == b"[DONE]"
            self.broken("after_stop", f"frame after message_stop: {shown(frame.text)}", "note" if harmless else "error")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        kind = self.event_type(document, "error")
        if kind is None:
            return
        if not self._started and kind not in {"message_start", "ping", "error"}:
            self.broken("message_start", f"{shown(kind)} before message_start")
            self._started = True
        self.judge(EVENTS.get(kind), document)

    def close(self) -> None:
        if self._stopped or self._failed:
            return
        if self._stop_reason_seen and self._open is None:
            self.broken("message_stop", "the stream ends without message_stop", "note")
        else:
            self.broken("truncated", "the stream ends before its stop reason")

    def _message_start(self, document: dict[str, Any]) -> None:
        if self._started:
            self.broken("message_start", "a second message_start")
        self._started = True
        message = document.get("message")
        if not isinstance(message, dict):
            self.broken("message", f"message is {shown(message)}")
            return
        if not is_filled(message.get("id")) or not is_text(message.get("model")):
            self.broken("message", f"id is {shown(message.get('id'))}, model {shown(message.get('model'))}")
        if message.get("role") != "assistant" or message.get("content") != []:
            self.broken("message", f"role is {shown(message.get('role'))}, content {shown(message.get('content'))}")
        self.counts(message.get("usage"), "input_tokens", "output_tokens", may_lack=False)

    def _message_delta(self, document: dict[str, Any]) -> None:
        self._none_open("message_delta")
        delta = document.get("delta")
        if not isinstance(delta, dict):
            self.broken("message_delta", f"delta is {shown(delta)}")
        else:
            reason = delta.get("stop_reason")
            if reason is not None and not is_filled(reason):
                self.broken("message_delta", f"stop_reason is {shown(reason)}")
            self._stop_reason_seen = self._stop_reason_seen or reason is not None
        self.counts(document.get("usage"), "output_tokens", may_lack=False)

    def _message_stop(self, _document: dict[str, Any]) -> None:
        self._none_open("message_stop")
        if not self._stop_reason_seen:
            self.broken("stop_reason", "no stop reason before message_stop")
        self._stopped = True

    def _error(self, document: dict[str, Any]) -> None:
        self._failed = True
        error = document.get("error")
        if not isinstance(error, dict) or not is_text(error.get("type")) or not is_text(error.get("message")):
            self.broken("error", f"error is {shown(error)}")

    def _none_open(self, kind: str) -> None:
        if self._open is not None:
            self.broken("block_order", f"{kind} while block {shown(self._open.index)} is open")
            self._open = None

    def _block_start(self, document: dict[str, Any]) -> None:
        self._none_open("content_block_start")
        index = document.get("index")
        if type(index) is not int or index != self._next_index:
            self.broken("block_index", f"index is {shown(index)}, not {self._next_index}")
        self._next_index += 1
        block = self.typed(document, "content_block", "block") or {"type": ""}
        self._open = _CheckedBlock(index, block["type"])
        if block["type"] == "text":
            self._open.filled = bool(block.get("text"))
            self.member(block, "text", is_text, "block")
        elif block["type"] == "tool_use":
            self._tool_use(block)

    def _tool_use(self, block: dict[str, Any]) -> None:
        call_id, name, start = block.get("id"), block.get("name"), block.get("input")
        if not is_filled(call_id) or not is_filled(name):
            self.broken("tool_use", f"id is {shown(call_id)}, name {shown(name)}")
        else:
            self.identify("tool_id", "id", call_id)
        if start != {}:  # some gateways send the whole input here
            self.broken("tool_use", f"input is {shown(start)}", "note" if isinstance(start, dict) else "error")

    def _block_delta(self, document: dict[str, Any]) -> None:
        block = self._open
        if block is None or document.get("index") != block.index:
            self.broken(
                "block_order", f"content_block_delta for block {shown(document.get('index'))}, which is not open"
            )
        elif (delta := self.typed(document, "delta", "delta")) is not None:
            self._delta(block, delta)

    def _delta(self, block: _CheckedBlock, delta: dict[str, Any]) -> None:
        kind = delta["type"]
        if block.signed:
            self.broken("signature", f"{kind} after the signature")
        if kind not in DELTAS:
            return
        belongs, member = DELTAS[kind]
        value = delta.get(member)
        if block.type in KNOWN_BLOCKS and block.type not in (CALLS if belongs == "tool_use" else {belongs}):
            self.broken("delta", f"{kind} in a block of type {shown(block.type)}")
        elif not isinstance(value, dict if kind == "citations_delta" else str):
            self.broken("delta", f"{member} is {shown(value)}")
        else:
            block.take(delta)

    def _block_stop(self, document: dict[str, Any]) -> None:
        block = self._open
        if block is None or document.get("index") != block.index:
            self.broken(
                "block_order", f"content_block_stop for block {shown(document.get('index'))}, which is not open"
            )
            return
        self._open = None
        if block.type == "text" and not block.filled:
            self.broken("empty_text", f"block {shown(block.index)} ends without text")
        if block.type == "tool_use" and (text := block.input.unparsable()) is not None:
            self.broken("input_unparsable", f"the input is {shown(text)}", "note")
