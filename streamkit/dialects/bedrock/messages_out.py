"""Turns to Bedrock's messages.

The roles of user and assistant must alternate, so neighbours of one role are joined, and the results of calls come first in
the one message behind them. What the system says in the middle goes to the top: only some models take it elsewhere, so only a
request that was read in this dialect keeps it there. A blank text is refused by the server, so it is left out. Most models
want the user to speak first.

Documents must have names, each its own, of few characters. Media at a URL are taken from S3 alone.

Reasoning goes back as it came if Claude signed it, here or elsewhere, and the model may be Claude. Most models refuse any
other, so it is left out, unless the request was read in this dialect and nobody signed it: its client knows the model.

Source: dialects.md §6.1, §7.3, §7.4; seeds.md S2; botocore's model of ``DocumentBlock``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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
from streamkit.dialects.bedrock.asides import BlockList
from streamkit.dialects.bedrock.wire import CACHE_POINTS, FORMATS, SAME_TYPES, SIGNER, VENDOR, is_base64
from streamkit.dialects.bodies.request_writer import RequestWriter, given, media_type_of, merged
from streamkit.dialects.profiles import Target
from streamkit.events import Aside
from streamkit.report import StreamReport

Block: TypeAlias = dict[str, Any]
#: Our kinds of media, by the member that such a block has.
MEMBERS: Final[Mapping[str, str]] = {"image": "image", "file": "document", "video": "video", "audio": "audio"}
#: Media that may stand in what a tool said.
IN_RESULTS: Final = frozenset({"image", "document", "video"})
#: What a document's name may not have, and how long it may be.
UNFIT: Final = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
NAME_CHARS: Final = 200
#: Room in a name for what tells it from another: `` (100000)``.
NUMBER_CHARS: Final = 10
#: What the id of a resource has that may be any model.
NAMELESS: Final = re.compile(
    r":(?:application-inference-profile|provisioned-model|default-prompt-router|prompt-router)/"
)
EXTENSION: Final = re.compile(r"\.[A-Za-z0-9]{1,5}$")


@define
class Message:
    role: str
    results: list[Block] = field(factory=list)
    said: list[Block] = field(factory=list)
    extras: Extras = field(factory=dict)

    def body(self) -> dict[str, Any]:
        return merged({"role": self.role, "content": self.results + self.said}, self.extras)


class MessageWriter(RequestWriter):
    """The part of the writer of requests that writes messages."""

    dialect = "bedrock"
    vendor = VENDOR
    ids = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
    names = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    #: Dialects whose marks are for the same two spans.
    same_spans = frozenset({"bedrock", "anthropic"})

    def __init__(self, request: Request, target: Target, report: StreamReport) -> None:
        super().__init__(request, target, report)
        self._documents: set[str] = set()  #: names that are given
        self._numbers: dict[str, int] = {}  #: the last number behind each beginning of a name
        #: Whether the model takes what Claude signed: that of its own client, Claude, or one whose id does not say what it is.
        self.signs = self.own or is_claude(request.model) or is_nameless(request.model)

    def conversation(self) -> tuple[list[Block], list[Message]]:
        """The system's blocks, and the messages."""
        turns = [self._message(turn) for turn in self.request.turns]
        written = [message for message in turns if message.results or message.said]
        leading = len(list(takewhile(lambda message: message.role == "system", written)))
        system = [block for message in written[:leading] for block in message.said]
        messages = written[leading:]
        if not self.own:
            for message in messages:
                if message.role == "system":
                    self.lose("system_place")
                    system += message.said
            messages = [message for message in messages if message.role != "system"]
        runs = groupby(messages, key=lambda message: message.role)
        joined = [self._joined(run) for _, run in runs]
        if (text := self.opening(joined[0].role if joined else None, "messages")) is not None:
            joined.insert(0, Message("user", said=[{"text": text}]))
        return system, joined

    def _joined(self, run: Iterator[Message]) -> Message:
        """Neighbours of one role as one. Results and what follows them are two turns in some dialects, which is no repair."""
        whole = next(run)
        extras = dict(whole.extras)
        for message in run:
            if whole.said and message.said:
                self.report.repair("turns_joined")
            if whole.said:
                self._moved(message.results)
            whole.results += message.results
            whole.said += message.said
            for name, value in message.extras.items():
                extras.setdefault(name, value)
        whole.extras = extras
        return whole

    def _moved(self, results: list[Block]) -> None:
        for block in results:
            if "toolResult" in block:
                self.report.repair("result_moved")

    def _message(self, turn: Turn) -> Message:
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        if not turn.parts:
            self.report.repair("turn_empty")
        results = [part for part in turn.parts if isinstance(part, ToolResult)]
        for _ in results[len(list(takewhile(_is_result, turn.parts))) :]:
            self.report.repair("result_moved")
        said = [part for part in turn.parts if not isinstance(part, ToolResult)]
        return Message(
            turn.role, self.blocks(results, turn.role), self.blocks(said, turn.role), self.extras(turn.extras)
        )

    # -- blocks ----------------------------------------------------------------------------------------------------

    def blocks(self, parts: Iterable[Part], place: str) -> list[Block]:
        blocks = BlockList(self.report)
        for part in parts:
            if isinstance(part, Text | Refusal):
                written = self._text(part, blocks, place)
            elif isinstance(part, Aside):
                written = self.aside(part)
                if written:
                    blocks.aside(part)
            else:
                block = self._block(part, place)
                written = block is not None
                if block is not None:
                    blocks.add(block)
            if isinstance(part, Text | Media | ToolCall | ToolResult) and part.cache is not None:
                self._mark(part.cache, blocks, fits=written and place != "toolResult")
        return blocks.finish()

    def _mark(self, mark: CacheMark, blocks: BlockList, *, fits: bool) -> None:
        """A ``cachePoint`` behind what is marked; there is none within a tool's result."""
        if fits:
            blocks.add({"cachePoint": dict(CACHE_POINTS[mark])})
        if not fits or self.request.dialect not in self.same_spans:
            self.lose("cache_mark", mark)

    def _text(self, part: Text | Refusal, blocks: BlockList, place: str) -> bool:
        """Add a text; False for a blank one, which is left out."""
        signature = part.signature if isinstance(part, Text) else None
        if signature is not None:
            self.lose("reasoning_signature", signature.vendor)
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        if not part.text.strip():
            if signature is None:
                self.report.repair("turn_empty")
            return False
        extras = dict(self.extras(part.extras))
        if extras.pop("json", False) and place == "toolResult" and _is_json(part.text):
            blocks.add({"json": orjson.Fragment(part.text)})
        else:
            blocks.text(part.text, part.block, extras)
        return True

    def _block(self, part: Part, place: str) -> Block | None:
        """A part as a block; None for what the dialect can't carry there."""
        match part:
            case Media():
                return self._media(part, place)
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case Reasoning():
                return self._reasoning(part)
            case RedactedReasoning():
                if part.opaque.vendor == SIGNER and self.signs and is_base64(part.opaque.blob):
                    return {"reasoningContent": {"redactedContent": part.opaque.blob}}
                self.lose("reasoning_opaque", part.opaque.vendor)
                return None
        raise TypeError(f"a message has no {type(part).__name__}")

    def _reasoning(self, part: Reasoning) -> Block | None:
        vendor = part.signature.vendor if part.signature is not None else None
        if (vendor == SIGNER and self.signs) or (vendor is None and self.own):
            thought = given(text=part.text, signature=part.signature.blob if part.signature else None)
            return {"reasoningContent": {"reasoningText": merged(thought, self.extras(part.extras))}}
        if vendor is not None:
            self.lose("reasoning_signature", vendor)
        if part.text:
            self.lose("reasoning_history")
        return None

    def _call(self, call: ToolCall) -> Block:
        if call.signature is not None:
            self.lose("reasoning_signature", call.signature.vendor)
        use = {
            "toolUseId": self.call_id(call.id),
            "name": self.tool_name(call.name),
            "input": self.object_arguments(call),
        }
        return {"toolUse": merged(use, self.extras(call.extras))}

    def _result(self, result: ToolResult) -> Block:
        written = given(
            toolUseId=self.call_id(result.call_id),
            content=self.blocks(result.parts, "toolResult"),
            status="error" if result.is_error else None,
        )
        return {"toolResult": merged(written, self.extras(result.extras))}

    # -- media -----------------------------------------------------------------------------------------------------

    def _media(self, media: Media, place: str) -> Block | None:
        member = MEMBERS[media.kind]
        allowed = self.own or place == "user" or (place == "toolResult" and member in IN_RESULTS)
        source = self._source(media) if allowed else None
        form = self._format(media, member)
        if source is None or (form is None and not (self.own and member == "document")):
            self.lose("media", media.media_type or media.kind)
            return None
        if media.detail not in {None, "auto"}:
            self.lose("metadata", "detail")
        if member != "document" and media.name is not None:
            self.lose("metadata", "name")
        name = self._document_name(media.name) if member == "document" else None
        return {member: merged(given(format=form, name=name, source=source), self.extras(media.extras))}

    def _source(self, media: Media) -> dict[str, Any] | None:
        if media.data is not None:
            return {"bytes": media.data}
        if media.url is not None and media.url.startswith("s3://"):
            return {"s3Location": {"uri": media.url}}
        return None

    def _format(self, media: Media, member: str) -> str | None:
        kind = media.media_type if self.own and member == "document" else media_type_of(media)
        if kind is None:
            return None
        kind = kind.partition(";")[0].strip().lower()
        form = FORMATS[member].get(SAME_TYPES.get(kind, kind))
        return kind.partition("/")[2] if form is None and self.own else form

    def _document_name(self, name: str | None) -> str:
        """A name as the server takes it, and that no other document of the request has: the same at every request."""
        if self.own and name is not None:
            return name
        plain = EXTENSION.sub("", name or "")
        kept = " ".join(UNFIT.sub(" ", plain).split())[:NAME_CHARS].strip()
        if kept != plain:
            self.lose("metadata", f"name {name}")
        kept = kept or "document"
        fit, beginning = kept, kept[: NAME_CHARS - NUMBER_CHARS]
        while fit in self._documents:
            number = self._numbers[beginning] = self._numbers.get(beginning, 1) + 1
            ordinal = f" ({number})"
            fit = kept[: NAME_CHARS - len(ordinal)] + ordinal
        self._documents.add(fit)
        return fit


def is_claude(model: str | None) -> bool:
    """Whether an id says that the model is Anthropic's."""
    return model is not None and ("anthropic" in model or "claude" in model)


def is_nameless(model: str | None) -> bool:
    """Whether an id does not say which model it stands for, as that of an application's inference profile."""
    return model is None or NAMELESS.search(model) is not None


def _is_result(part: Part) -> bool:
    return isinstance(part, ToolResult)


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def wants_bytes(media: Media, _given: bool) -> bool:
    """Media are taken from S3 or in the request itself."""
    return not (media.url or "").startswith("s3://")
