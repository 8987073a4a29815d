"""The part of Bedrock's checker that follows content blocks: from the first sign of one to its stop."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from attrs import define, field

from streamkit.dialects.anthropic.lint import is_input
from streamkit.dialects.linting.grammar import GrammarChecker, is_filled, is_index, is_text, shown
from streamkit.limits import DEFAULT_LIMITS

#: The deltas that are judged, and the kinds of their blocks: what only the vendor understands is let through.
DELTAS = frozenset({"text", "citation", "reasoningContent", "toolUse"})
#: Characters of a call's input that are kept to be parsed; a longer one is not judged.
INPUT_CHARS = DEFAULT_LIMITS.arguments_chars


@define
class _Block:
    index: object
    kind: str  #: the member of its start or of its first delta; empty if a start told nothing
    signed: bool = False
    input: list[str] = field(factory=list)
    input_chars: int = 0


class ContentChecker(GrammarChecker):
    def __init__(self) -> None:
        super().__init__()
        self.open: _Block | None = None
        self.next_index = 0
        self._call_ids: set[str] = set()

    def _begin(self, document: dict[str, Any], kind: str) -> _Block:
        index = document.get("contentBlockIndex")
        self.none_open(f"block {shown(index)}")
        if not is_index(index):
            self.broken("block_index", f"contentBlockIndex is {shown(index)}")
        elif index != self.next_index:
            again = isinstance(index, int) and index < self.next_index
            self.broken(
                "block_index", f"contentBlockIndex is {index}, not {self.next_index}", "error" if again else "note"
            )
        self.next_index = index + 1 if type(index) is int else self.next_index + 1
        self.open = _Block(index, kind)
        return self.open

    def none_open(self, what: str) -> None:
        """A call that is not stopped is an error: its reader would not know that it is whole."""
        block, self.open = self.open, None
        if block is not None:
            message = f"{what} while block {shown(block.index)} is open"
            self.broken("block_order", message, "error" if block.kind == "toolUse" else "note")

    def block_start(self, document: dict[str, Any]) -> None:
        member, value = _only_member(document.get("start"))
        kind = member if member != "toolUse" or not isinstance(value, dict) or not _is_server(value) else "server"
        self._begin(document, kind)
        if not member:
            self.broken("start", f"start is {shown(document.get('start'))}")
        elif kind == "toolUse":
            self._tool_use(value)

    def _tool_use(self, use: Any) -> None:
        call_id, name = (use.get("toolUseId"), use.get("name")) if isinstance(use, dict) else (None, None)
        if not is_filled(call_id) or not is_filled(name):
            self.broken("start", f"toolUseId is {shown(call_id)}, name {shown(name)}")
        elif call_id in self._call_ids:
            self.broken("tool_id", f"the toolUseId {shown(call_id)} again")
        else:
            self._call_ids.add(call_id)

    def block_delta(self, document: dict[str, Any]) -> None:
        member, value = _only_member(document.get("delta"))
        index, block = document.get("contentBlockIndex"), self.open
        if not member:
            self.broken("delta", f"delta is {shown(document.get('delta'))}")
            return
        kind = "text" if member == "citation" else member
        if block is None or block.index != index:
            if member == "toolUse":
                self.broken("block_order", f"input for block {shown(index)}, which is not open")
                return
            block = self._begin(document, kind)
        block.kind = block.kind or kind
        if member not in DELTAS or block.kind not in DELTAS:
            return
        if block.kind != kind:
            self.broken("delta", f"{member} in a block of {block.kind}")
        elif member == "text":
            self._text(member, value)
        elif not isinstance(value, dict):
            self.broken("delta", f"{member} is {shown(value)}")
        elif member == "toolUse":
            self._input(block, value.get("input"))
        elif member == "reasoningContent":
            self._reasoning(block, value)

    def _text(self, member: str, value: object) -> None:
        if not is_text(value):
            self.broken("delta", f"{member} is {shown(value)}")

    def _input(self, block: _Block, value: object) -> None:
        self._text("input", value)
        if is_text(value) and block.input_chars <= INPUT_CHARS:
            block.input.append(value)
            block.input_chars += len(value)

    def _reasoning(self, block: _Block, delta: dict[str, Any]) -> None:
        member, value = _only_member(delta)
        if not member:
            self.broken("delta", f"reasoningContent is {shown(delta)}")
        elif member in {"text", "signature", "redactedContent"}:
            self._text(member, value)
            if block.signed and value != "":
                self.broken("signature", f"{'a signature' if member == 'signature' else member} after the signature")
            block.signed = block.signed or member == "signature"
            if member == "redactedContent" and is_text(value) and decoded(value) is None:
                self.broken("redacted", f"redactedContent is {shown(value)}")

    def block_stop(self, document: dict[str, Any]) -> None:
        block, index = self.open, document.get("contentBlockIndex")
        if block is None or block.index != index:
            if is_index(index) and index == self.next_index:  # a text without a single delta
                self._begin(document, "")
                self.open = None
            else:
                self.broken("block_order", f"a stop of block {shown(index)}, which is not open")
            return
        self.open = None
        if block.kind == "toolUse" and block.input_chars <= INPUT_CHARS and not is_input("".join(block.input)):
            self.broken("input_unparsable", f"the input is {shown(''.join(block.input))}", "note")


def _only_member(union: object) -> tuple[str, Any]:
    """The one member of a union, null ones aside. botocore raises where there are none or several: no name then."""
    given = {name: value for name, value in union.items() if value is not None} if isinstance(union, dict) else {}
    return next(iter(given.items())) if len(given) == 1 else ("", None)


def _is_server(use: dict[str, Any]) -> bool:
    """Whether a tool is the provider's own: such a one has a type."""
    return use.get("type") not in (None, "", [], {})


def decoded(text: object) -> bytes | None:
    """The bytes of a base64 text; None for anything else."""
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else None
    except ValueError:
        return None
