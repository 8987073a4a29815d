"""Read and write whole interactions and error bodies.

The stream decoder reads the ``steps`` (``outputs`` before the revision of May 2026) as the end of a stream that contains all
of them. Responses are written by ``bodies/block_responses.py``: steps are in the order of the parts, and neighbouring texts
and media of one block become one output. Losses are counted as in streams.

Source: dialects.md §5.5, §7.2, §7.5; quirks.md R14 (opaque data must survive).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.bodies.block_list import Block, BlockList
from streamkit.dialects.bodies.block_responses import BlockResponseWriter
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.gemini_interactions import wire
from streamkit.dialects.gemini_interactions.asides import ANNOTATIONS, write_media
from streamkit.dialects.gemini_interactions.decode import AT_END, InteractionsDecoder
from streamkit.dialects.members.values import details_of
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.event_encoder import encode_time, only_choice, stop_word
from streamkit.dialects.vocabulary import google
from streamkit.events import Aside, Opaque, ProviderFailed
from streamkit.report import StreamReport

TELLING: Final = frozenset({"steps", "outputs", "status"})  # members that show that a body is an interaction


class InteractionsBodyDecoder(InteractionsDecoder):
    """Reads a whole body: an interaction or an error."""

    error_forms = (dict,)

    def decode(self, document: dict[str, Any]) -> None:
        is_error = document.get("steps") is None and self.read_error(document, alone=True)
        if not is_error and any(document.get(name) is not None for name in TELLING):
            self.recognised = True
            self._begin(document, AT_END)
            self.end_of(document)
        elif not is_error:
            self.foreign_frame()


class Steps(BlockList):
    """The steps of one interaction while it is written."""

    start = "step.start"
    delta = "step.delta"
    stop = "step.stop"
    citation = wire.DELTA

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._last: tuple[str, int] | None = None  # the kind and label of the last step, if parts may join it
        self._raw: dict[int, Block] = {}

    def add(self, block: Block) -> None:
        self._last = None
        super().add(block)

    def put(self, content: Block, label: int) -> None:
        """Add a content to the output step with this label."""
        if self._last != (wire.TEXT, label):
            self.add({"type": wire.TEXT, "content": []})
            self._last = wire.TEXT, label
        self.blocks[-1]["content"].append(content)

    def put_thought(self, thought: Block, label: int) -> None:
        """Add a thought, which an image may join."""
        self.add(thought)
        self._last = wire.THOUGHT, label

    def aside(self, part: Aside) -> None:
        raw = part.raw
        if part.type == wire.DELTA and raw.get("type") == ANNOTATIONS:
            self._cite(part)
        elif part.type == wire.DELTA:
            self.put(dict(raw), part.block)
        elif part.type == wire.THOUGHT_DELTA:
            if self._last != (wire.THOUGHT, part.block):
                self.put_thought({"type": wire.THOUGHT}, part.block)
            self.blocks[-1].setdefault("summary", []).append(raw["content"])
        elif part.type == self.start:
            step = self._raw[part.block] = dict(details_of(raw, "step"))
            self.add(step)
        elif part.block in self._raw and part.type in {self.delta, self.stop}:
            members = details_of(raw, "delta")
            self._raw[part.block].update({name: value for name, value in members.items() if name != "type"})
        else:
            self.report.lose(part.kind, what=part.type)

    def _cite(self, part: Aside) -> None:
        """Add citations to the last text of their block."""
        contents = self.blocks[-1]["content"] if self._last == (wire.TEXT, part.block) else ()
        texts = [content for content in contents if content.get("type") == "text"]
        if not texts:
            self.report.lose("citation")
            return
        texts[-1].setdefault("annotations", []).extend(part.raw["annotations"])


class InteractionsResponseWriter(BlockResponseWriter):
    """Writes a response as one interaction."""

    vendor = wire.VENDOR
    signer = google.VENDOR
    media_form = staticmethod(write_media)
    inexact_stops = wire.INEXACT_STOPS
    block_list = Steps
    blocks: Steps

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return {"error": wire.encode_error(failure, self.report)}

    def answer(self) -> dict[str, Any]:
        response = self.response
        choice = only_choice(response, self.report)
        steps = self.content(choice)
        native = choice.native_stop_reason if self.own else None
        found = wire.status_of(self.stop(choice), native), False
        body = without_none(
            id=response.id or self.encoding.make_id("interaction_"),
            status=stop_word(found, choice.stop_sequence, self.report),
            object="interaction",
            model=response.model or self.encoding.profile.model,
            created=None if response.created is None else encode_time(response.created),
            steps=steps,
            usage=None if response.usage is None else wire.USAGE.encode(response.usage, self.report),
        )
        return add_missing(add_missing(body, self.members), self.own_extras(response.extras, "response_fields"))

    def text(self, text: str, label: int) -> None:
        self.blocks.put({"type": "text", "text": text}, label)

    def thinking(self, text: str, signature: str | None) -> Block:
        summary = [{"type": "text", "text": text}] if text else None
        return without_none(type=wire.THOUGHT, summary=summary, signature=signature)

    def redacted(self, data: str) -> Block:
        return {"type": wire.THOUGHT, "signature": data}

    def takes(self, _redacted: str) -> bool:
        return False  # no field for it: streamkit's marked form is written as a signature

    def carries(self, signature: Opaque) -> bool:
        return signature.vendor == self.signer

    def use(self, call: ToolCall, arguments: bytes, extras: Mapping[str, Any]) -> Block:
        step: Block = {"type": wire.CALL, "id": call.id, "name": call.name, "arguments": orjson.Fragment(arguments)}
        if call.signature is not None and self.carries(call.signature):
            step["signature"] = call.signature.blob
        return add_missing(step, extras)

    def beside(self, part: Aside) -> bool:
        if part.type == WAITS:  # the call is in the status
            self._calls += 1
            return True
        if not part.type.startswith(wire.INTERACTION_MEMBER):
            return False
        self.members[part.type.removeprefix(wire.INTERACTION_MEMBER)] = part.raw
        return True
