"""What the parts of one candidate's content say: text, thoughts, calls, signatures, and what Google's own tools did.

Unsigned neighbours of a kind are one block that is streamed. A signature is bound to its part (dialects.md §5.3): a signed
part is a block of its own, so that nothing is ever merged with it. A signature that another vendor's stream brought and that
was sealed here closes the block that it follows.

A call is whole in one part and ended by it, unless it says ``willContinue``: then nameless parts go on with it, and the first
of them without ``willContinue`` ends it. Calls are numbered as they come; ids are optional, so making one is no repair.

Source: dialects.md §5.2-§5.4, quirks.md R14, 22, 89.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from attrs import define

from streamkit.dialects.gemini.partial_args import PartialArgs
from streamkit.dialects.gemini.wire import VENDOR
from streamkit.dialects.members.known import Members
from streamkit.dialects.members.values import said
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.sealed_reasoning import unseal
from streamkit.errors import TooManyBlocks, TooManyToolCalls
from streamkit.events import (
    Aside,
    AsideKind,
    Opaque,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.value_text import lenient_text

#: All that a part of text can have.
TEXT_FIELDS = frozenset({"text", "thought", "thoughtSignature"})
CALL_FIELDS = frozenset({"id", "name", "args", "partialArgs", "willContinue"})
CALL = Members(*CALL_FIELDS)
PARTIAL = Members("jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue")
#: Parts that are carried as they are.
ASIDE_PARTS: dict[str, AsideKind] = {
    "inlineData": "metadata",
    "fileData": "metadata",
    "executableCode": "server_tool",
    "codeExecutionResult": "server_tool",
    "toolCall": "server_tool",
    "toolResponse": "server_tool",
    "functionResponse": "server_tool",
}


@define
class OpenCall:
    """A call whose arguments come in parts."""

    index: int
    id: str
    name: str
    arguments: PartialArgs


@define
class Candidate:
    """What must be remembered of a choice from one part to the next."""

    choice: int
    block: int = -1  #: the last one begun
    kind: type | None = None  #: of that block, as long as it may go on
    calls: int = 0
    open: OpenCall | None = None
    sealed: Opaque | None = None  #: a call's signature that came before its call


#: Where chunks differ (``fast_path/template.py``).
HOLES = re.compile(rb'"text"\s*:\s*(?P<text>"(?:[^"\\]|\\.)++")')


#: The position of a candidate in its frame, of a part in the candidate, and how many parts that has.
Place: TypeAlias = tuple[int, int, int]


class PartReader(FrameDecoder):
    """The part of the decoder that reads parts."""

    dialect = "gemini"
    vendor = VENDOR
    holes = HOLES

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._blocks = 0
        self._calls = 0
        #: The texts of a candidate's parts, once a call asks: they are cut up once.
        self._texts: list[bytes] | None = None

    def parts(self, parts: list[Any], of: Candidate, position: int) -> None:
        """Everything that the parts of the candidate at ``position`` in the frame say."""
        self._texts = None
        for number, part in enumerate(parts):
            self._part(part, of, (position, number, len(parts)))

    def _part(self, part: Any, of: Candidate, place: Place) -> None:
        if type(part) is not dict:
            part = self.part_of(part, None)
        if part.get("functionCall") is not None:
            self._call_part(part, of, place)
        elif part.keys() <= TEXT_FIELDS:
            self._text(part, of)
        elif name := next((name for name in ASIDE_PARTS if part.get(name) is not None), None):
            self._aside(name, part, of)
        else:
            self._text(part, of)
            self._unknown(part, of)

    def _unknown(self, part: dict[str, Any], of: Candidate) -> None:
        for name, value in part.items():
            if name not in TEXT_FIELDS and name != "functionCall" and said(value):
                self.out.append(Aside(VENDOR, "metadata", f"part.{name}", value, of.choice, max(of.block, 0)))

    def _aside(self, name: str, part: dict[str, Any], of: Candidate) -> None:
        """A part that means something to Google's own dialect alone: carried whole, with its signature."""
        kind, data = ASIDE_PARTS[name], part[name]
        if name == "inlineData" and isinstance(data, dict) and str(data.get("mimeType")).startswith("audio/"):
            kind = "audio"
        of.kind = None
        self.out.append(Aside(VENDOR, kind, "part", part, of.choice, max(of.block, 0)))

    # -- text and thoughts -----------------------------------------------------------------------------------------

    def _text(self, part: dict[str, Any], of: Candidate) -> None:
        text, thought = self.string(part.get("text")), part.get("thought")
        kind = TextDelta if thought is None or not self.truth(thought) else ReasoningDelta
        signature = self.string(part.get("thoughtSignature"))
        if not (text or signature):
            return
        sealed = unseal(signature) if signature else None
        signed = bool(signature) and sealed is None
        if signed or (of.kind is not kind and (text or sealed is None or sealed.kind in {"reasoning", "text"})):
            self._begin(of, kind)
        if text:
            self.out.append(
                ReasoningDelta(text, of.choice, of.block, "summary")
                if kind is ReasoningDelta
                else TextDelta(text, of.choice, of.block)
            )
        if sealed is not None:
            self._unsealed(sealed.kind, Opaque(sealed.vendor, sealed.blob), of)
        elif signed:
            self._signature(Opaque(VENDOR, signature), of, text=kind is TextDelta)
            of.kind = None

    def _unsealed(self, kind: str, opaque: Opaque, of: Candidate) -> None:
        """What another vendor's stream brought, and the encoder of this dialect sealed."""
        if kind == "call":
            of.sealed = opaque
            return
        if kind == "opaque":
            self._begin(of, None)
            self.out.append(ReasoningOpaque(opaque.blob, opaque.vendor, of.choice, of.block))
        else:
            self._signature(opaque, of, text=kind == "text")
        of.kind = None

    def _signature(self, opaque: Opaque, of: Candidate, *, text: bool) -> None:
        self.out.append(
            ReasoningSignature(opaque.blob, opaque.vendor, of.choice, of.block, "text" if text else "reasoning")
        )

    def _begin(self, of: Candidate, kind: type | None) -> None:
        """A new block. Raises TooManyBlocks."""
        if self._blocks >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._blocks += 1
        of.block += 1
        of.kind = kind

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call_part(self, part: dict[str, Any], of: Candidate, place: Place) -> None:
        call = self.fields(part["functionCall"])
        of.kind = None
        signature = None
        if blob := self.string(part.get("thoughtSignature")):
            sealed = unseal(blob)
            signature = Opaque(VENDOR, blob) if sealed is None else Opaque(sealed.vendor, sealed.blob)
        call_id, name = self.string(call.get("id")), self.string(call.get("name"))
        if of.open is not None and self._goes_on(of.open, call, call_id, name):
            self._continue(of.open, call, name, of)
        elif name or call_id or call.get("args") or call.get("partialArgs"):
            self._start_call(call, call_id, name, signature, of, place)
        else:
            self.report.repair("call_ghost")  # it ends a call, and none is open
        self._unknown(part, of)

    def _goes_on(self, open_call: OpenCall, call: dict[str, Any], call_id: str, name: str) -> bool:
        """Whether a part belongs to the open call: one without a name, or with its own name and more of its arguments."""
        if not name:
            return not call.get("args")
        return name == open_call.name and call_id in ("", open_call.id) and bool(call.get("partialArgs"))

    def _start_call(
        self,
        call: dict[str, Any],
        call_id: str,
        name: str,
        signature: Opaque | None,
        of: Candidate,
        place: Place,
    ) -> None:
        if self._calls >= self.limits.tool_calls:
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        if of.open is not None:  # it never ended, and is not handed out as if it had
            self.report.repair("block_unclosed")
            self._cut(of)
        self._calls += 1
        index, of.calls = of.calls, of.calls + 1
        delta = ToolCallDelta(
            index,
            call_id or None,
            name or None,
            choice=of.choice,
            anonymous=True,
            signature=signature or of.sealed,
        )
        of.sealed = None
        if not call.keys() <= CALL_FIELDS:
            delta.extras = {name: value for name, value in call.items() if name not in CALL_FIELDS and said(value)}
        self.out.append(delta)
        partial, more = call.get("partialArgs"), self.truth(call.get("willContinue"))
        if not call.get("args") and (partial or more):
            of.open = OpenCall(index, call_id, name, PartialArgs(self.limits))
            self._add(of.open, partial, of, more=more)
            return
        delta.snapshot = True
        if partial:
            self.odd(partial)  # all of the arguments are there
        delta.arguments = self._arguments(call.get("args"), place)
        self.out.append(ToolCallEnded(index, of.choice))

    def _arguments(self, arguments: object, place: Place) -> str:
        """The text of the arguments as it stands in the frame: none at all means none, which is ``{}``."""
        if arguments is None:
            return "{}"
        if isinstance(arguments, str):
            self.report.repair("arguments_not_object")
            return arguments
        position, number, count = place
        if self._texts is None:
            self._texts = self.texts_at(count, "candidates", position, "content", "parts")
        return lenient_text(self._texts[number], "functionCall", "args")

    def _continue(self, open_call: OpenCall, call: dict[str, Any], name: str, of: Candidate) -> None:
        self.keep_unread(call, CALL, of.choice, max(of.block, 0), where="functionCall.")
        if name:
            self.out.append(ToolCallDelta(open_call.index, name=name, choice=of.choice, anonymous=True))
        self._add(open_call, call.get("partialArgs"), of, more=self.truth(call.get("willContinue")))

    def _add(self, open_call: OpenCall, partial: Any, of: Candidate, *, more: bool) -> None:
        """More of the arguments of the open call, and perhaps its end."""
        texts = []
        for each in self.items(partial):
            entry = self.alone(each)
            self.keep_unread(entry, PARTIAL, of.choice, max(of.block, 0), where="partialArgs.")
            text = open_call.arguments.add(entry, self.report)
            if text is None:
                self.odd(entry)
            else:
                texts.append(text)
        if not more:
            texts.append(open_call.arguments.close())
            of.open = None
        self._grown(open_call, "".join(texts), of)
        if not more:
            self.out.append(ToolCallEnded(open_call.index, of.choice))

    def _grown(self, open_call: OpenCall, text: str, of: Candidate) -> None:
        if text:
            self.out.append(ToolCallDelta(open_call.index, arguments=text, choice=of.choice, anonymous=True))

    def _cut(self, of: Candidate) -> None:
        """Nothing more comes for the open call: hand over what was kept back."""
        if of.open is not None:
            self._grown(of.open, of.open.arguments.cut(), of)
            of.open = None
