"""Turns to Gemini's contents.

A turn is one content, and each part of it a part. All results of the calls of a turn stand first in the one content behind it.
What the system says, wherever it does, is one instruction. Neighbours of one role are joined, but requests read in this
dialect keep those of the user as they came. The server wants the user to speak first.

A signature stands on the very part that it came with; one that is not Google's is left out, and none is made up: where the
server demands one, it is told that there is none. Thoughts of
other models are left out, too.

Source: dialects.md §5.3, §7.3, §7.4; seeds.md S2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Final, TypeAlias

import orjson
from attrs import define, field

from streamkit.conversation.messages import (
    CacheMark,
    Extras,
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_writer import RequestWriter, given, media_type_of, merged
from streamkit.dialects.gemini.tools import NAMES
from streamkit.dialects.gemini.wire import VENDOR
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.reasoning_effort import NO_SIGNATURE, wants_signatures
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

PartBody: TypeAlias = dict[str, Any]
#: Types of media that are taken.
MEDIA_TYPES: Final = re.compile(
    r"(?:image|audio|video|text)/.+|application/(?:pdf|json|rtf|(?:x-)?(?:java|type)script)"
)


@define
class Content:
    role: str
    parts: list[PartBody]
    extras: Extras = field(factory=dict)

    def body(self) -> dict[str, Any]:
        return merged({"role": self.role, "parts": self.parts}, self.extras)


class MessageWriter(RequestWriter):
    """The part of the writer of requests that writes contents."""

    dialect = "gemini"
    vendor = VENDOR
    names = NAMES

    def __init__(self, request: Request, target: Target, report: StreamReport) -> None:
        super().__init__(request, target, report)
        calls = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]
        self._names = {call.id: call.name for call in calls}
        #: Ids that were made for calls that came without one; their places tell which result is whose.
        self._made = {call.id: place for place, call in enumerate(calls) if call.id_made} if self.own else {}

    def conversation(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """The instruction of the system, and the contents."""
        instruction: dict[str, Any] = {"parts": []}
        contents: list[Content] = []
        in_front = True
        for turn in self.request.turns:
            content = self._content(turn)
            in_front = in_front and turn.role == "system"
            if turn.role == "system":
                if not in_front:
                    self.lose("system_place")
                if turn.native_role is not None and self.own:
                    instruction["role"] = turn.native_role
                instruction["parts"] += content.parts
            elif content.parts:
                contents.append(content)
        arranged = [content.body() for content in self._arranged(contents)]
        self._vouch(arranged)
        if (text := self.opening(arranged[0]["role"] if arranged else None, "contents")) is not None:
            arranged.insert(0, {"role": "user", "parts": [{"text": text}]})
        return (instruction if instruction["parts"] else None), arranged

    def _vouch(self, contents: list[dict[str, Any]]) -> None:
        """Say of calls of other models, or whose signature a client did not keep, that they have none.

        Since version 3 the server refuses a history in which the first call of a turn lacks its signature, and takes this word
        for one (ai.google.dev, "Thought signatures", questions). Requests of this dialect stay as they came.
        """
        if self.own or not wants_signatures(self.request.model):
            return
        for content in contents:
            first = next((part for part in content["parts"] if "functionCall" in part), None)
            if first is not None and "thoughtSignature" not in first:
                first["thoughtSignature"] = NO_SIGNATURE
                self.report.repair("signature_excused")

    def _content(self, turn: Turn) -> Content:
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        if not turn.parts:
            self.report.repair("turn_empty")
        parts: list[PartBody] = []
        for part in self._by_call(turn.parts):
            self._part(part, parts)
        return Content("model" if turn.role == "assistant" else "user", parts, self.extras(turn.extras))

    # -- the order of contents -------------------------------------------------------------------------------------

    def _by_call(self, parts: list[Part]) -> list[Part]:
        """The parts with results in the order of their calls, where the wire's only other word for them is the name."""
        results = [part for part in parts if isinstance(part, ToolResult)]
        if not all(result.call_id in self._made for result in results):
            return parts
        ordered = iter(sorted(results, key=lambda result: self._made[result.call_id]))
        changed = [next(ordered) if isinstance(part, ToolResult) else part for part in parts]
        for before, after in zip(parts, changed, strict=True):
            if before is not after:
                self.report.repair("result_moved")
        return changed

    def _arranged(self, contents: list[Content]) -> Iterable[Content]:
        """The contents, with results first in the one behind their calls."""
        for role, run in groupby(contents, key=lambda content: content.role):
            several = list(run)
            if role == "model":
                yield self._joined(several)
            else:
                yield from self._results_first(several if self.own else [self._joined(several)])

    def _joined(self, contents: Sequence[Content]) -> Content:
        """Neighbours as one. Results and what follows them are two turns in some dialects and one here, which is no repair."""
        telling = sum(not all(map(_is_result, content.parts)) for content in contents)
        for _ in range(telling - 1):
            self.report.repair("turns_joined")
        extras = {name: value for content in contents for name, value in content.extras.items()}
        return Content(contents[0].role, [part for content in contents for part in content.parts], extras)

    def _results_first(self, contents: list[Content]) -> Iterable[Content]:
        """What the user said between two turns of the model, with all results in front."""
        in_place = len(list(takewhile(_is_result, contents[0].parts)))
        results = [part for content in contents for part in content.parts if _is_result(part)]
        for _ in results[in_place:]:
            self.report.repair("result_moved")
        for content in contents:
            content.parts = [part for part in content.parts if not _is_result(part)]
        contents[0].parts = [*results, *contents[0].parts]
        return (content for content in contents if content.parts)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _part(self, part: Part, parts: list[PartBody]) -> None:
        """Put what a part says behind ``parts``."""
        written: PartBody | None
        match part:
            case Text() | Refusal():
                written = self._text(part)
            case Reasoning() | RedactedReasoning():
                written = self._thought(part)
            case Media():
                written = self._media(part)
            case ToolCall():
                written = self._call(part)
            case ToolResult():
                written = self._result(part)
            case Aside():
                self._aside(part, parts)
                return
        if written is not None:
            parts.append(written)

    def _aside(self, part: Aside, parts: list[PartBody]) -> None:
        """What only this dialect knows: a part, or a member of the part in front of it."""
        if not self.aside(part):
            return
        if part.type == "part" and isinstance(part.raw, Mapping):
            parts.append(dict(part.raw))
        elif part.type.startswith("part.") and parts:
            merged(parts[-1], {part.type.removeprefix("part."): part.raw})
        else:
            self.lose(part.kind, part.type)

    def _text(self, part: Text | Refusal) -> PartBody | None:
        written: PartBody = {"text": part.text}
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        else:
            self._no_mark(part.cache)
            written |= self._signed(part.signature)
        merged(written, self.extras(part.extras))
        if written != {"text": ""}:
            return written
        if isinstance(part, Refusal) or part.signature is None:
            self.report.repair("turn_empty")
        return None

    def _thought(self, part: Reasoning | RedactedReasoning) -> PartBody | None:
        """A thought of Google's; None for any other."""
        if isinstance(part, RedactedReasoning):
            self.lose("reasoning_opaque", part.opaque.vendor)
            return None
        signature = self._signed(part.signature)
        if signature or (self.own and part.signature is None):
            return merged({"text": part.text, "thought": True, **signature}, self.extras(part.extras))
        if part.text:
            self.lose("reasoning_history")
        return None

    def _signed(self, signature: Opaque | None) -> PartBody:
        if signature is None:
            return {}
        if signature.vendor == VENDOR:
            return {"thoughtSignature": signature.blob}
        self.lose("reasoning_signature", signature.vendor)
        return {}

    def _no_mark(self, mark: CacheMark | None) -> None:
        if mark is not None:
            self.lose("cache_mark", mark)

    # -- media -----------------------------------------------------------------------------------------------------

    def _media(self, media: Media, *, links: bool = True) -> PartBody | None:
        """Media as a part; None for what can't be carried. ``links``: whether they may be somewhere else."""
        self._no_mark(media.cache)
        written = self._linked(media) if media.data is None and (links or self.own) else self._inline(media)
        if written is None:
            self.lose("media", media.media_type or media.kind)
            return None
        if media.detail not in {None, "auto"}:
            self.lose("metadata", "detail")
        if media.name is not None and not self.own:  # a member that only one of Google's two servers takes
            self.lose("metadata", "name")
        return merged(written, self.extras(media.extras))

    def _inline(self, media: Media) -> PartBody | None:
        if media.data is None:
            return None
        kind = media.media_type if self.own else media_type_of(media)
        if not self.own and not MEDIA_TYPES.fullmatch(kind or ""):
            return None
        return {"inlineData": given(mimeType=kind, data=media.data, displayName=media.name if self.own else None)}

    def _linked(self, media: Media) -> PartBody | None:
        uri = media.url or (media.file_id if self.own else None)  # another provider's ids mean nothing here
        if uri is None or not (self.own or uri.startswith(("http:", "https:"))):
            return None
        name = media.name if self.own else None
        return {"fileData": given(mimeType=media.media_type, fileUri=uri, displayName=name)}

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> PartBody:
        self._no_mark(call.cache)
        body = given(id=self._id(call.id), name=self.tool_name(call.name), args=self.object_arguments(call))
        return {"functionCall": merged(body, self.extras(call.extras)), **self._signed(call.signature)}

    def _id(self, call_id: str) -> str | None:
        return None if call_id in self._made else call_id or None

    def _result(self, result: ToolResult) -> PartBody:
        self._no_mark(result.cache)
        called = self._names.get(result.call_id, result.name) or ""
        body = given(
            id=self._id(result.call_id),
            name=self.tool_name((result.name if self.own else None) or called),
            response=self._response(result),
            parts=self._inner_parts(result) or None,
        )
        return {"functionResponse": merged(body, self.extras(result.extras))}

    def _response(self, result: ToolResult) -> Any:
        """What a tool said, as an object: its own if it is one, else under the member that says what it is."""
        texts = [part for part in result.parts if isinstance(part, Text)]
        for text in texts:
            self._no_mark(text.cache)
            self.extras(text.extras)
        native = result.native if self.own else None
        if not texts and native is None and self.own:
            return {}
        only = texts[0].text if len(texts) == 1 else ""
        bare = native is None and (self.own or not result.is_error)
        if bare and only.lstrip()[:1] == "{" and check_arguments(only).kind == "complete":
            return orjson.Fragment(only)
        said = [text.text for text in texts] if len(texts) > 1 else only
        return {native or ("error" if result.is_error else "output"): said}

    def _inner_parts(self, result: ToolResult) -> list[PartBody]:
        """Media that a tool gave, which must be in the request itself."""
        parts: list[PartBody] = []
        for part in result.parts:
            match part:
                case Media():
                    if (media := self._media(part, links=False)) is not None:
                        parts.append(media)
                case Aside():
                    self._aside(part, parts)
                case Text():
                    pass
        return parts


def _is_result(part: PartBody) -> bool:
    return "functionResponse" in part


def wants_bytes(_media: Media, given: bool) -> bool:
    """What a tool gave must be in the request itself."""
    return given
