"""What the delta of one choice says: text, reasoning in all its fields, refusals, tool calls, and what else there is.

Source: dialects.md §1.2, §1.6.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, TypeAlias

from streamkit.dialects.members.known import Members
from streamkit.dialects.members.values import details_of, said, text_of
from streamkit.dialects.openai_chat.wire import VENDOR, signature_in
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.errors import StreamArgumentsTooLong, TooManyBlocks, TooManyToolCalls
from streamkit.events import (
    Aside,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport, Withheld

DELTA_FIELDS = frozenset(
    {
        "role",
        "content",
        "refusal",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "thinking",
        "tool_calls",
        "function_call",
        "audio",
        "annotations",
    }
)


#: Fields that say the same as plain text, in the order in which they are asked (quirks.md 91).
PLAIN_REASONING = ("reasoning", "reasoning_content", "thinking")
REASONING_FIELDS = frozenset({"reasoning_details", *PLAIN_REASONING})
CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom"})
#: What is read of a function, of parts of a content, and of an entry of ``reasoning_details``, whose id is nobody's.
NONE = Members()
FUNCTION = Members("name", "arguments", "input")
TEXT_PART = Members("type", "text")
THINKING_PART = Members("type", "signature", "closed", thinking=TEXT_PART)
DETAIL = Members("type", "id", "format", "index", "text", "summary", "signature", "data")
#: Where deltas differ. Reasoning may come twice in one chunk; ``obfuscation`` is padding.
HOLES = re.compile(
    rb'"(?:content|reasoning_content|reasoning|thinking|text|summary|refusal|arguments)"\s*:\s*(?P<text>"(?:[^"\\]|\\.)++")'
    rb'|"obfuscation"\s*:\s*(?P<pad>"(?:[^"\\]|\\.)*+")'
    rb'|"tool_calls"\s*:\s*\[\s*\{\s*"index"\s*:\s*(?P<index>\d+)'
    rb'|"usage"\s*:\s*(?P<usage>\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\})'  # in each chunk, as xAI has it
)
#: An item of a list, and the step that leads to it.
Entry: TypeAlias = tuple[tuple[int | str, ...], Any]
#: ``extra_content`` that says of a content that it is a thought, and nothing more.
THOUGHTS = tuple({vendor: {"thought": True}} for vendor in ("google", "vertex"))
#: Block and vendor of no signature at all.
UNSIGNED = (-1, "")


def thinks(extra: Any) -> bool:
    """Whether ``extra_content`` says that the content beside it is a thought (Gemini behind this dialect)."""
    return isinstance(extra, dict) and any(details_of(extra, vendor).get("thought") is True for vendor in extra)


class DeltaReader(FrameDecoder):
    """The part of the decoder that reads deltas."""

    dialect = "openai-chat"
    vendor = VENDOR
    #: Whether arguments may be an object as well as text.
    takes_objects: ClassVar[bool] = False
    #: Whether a content may be a list of parts as well as text.
    takes_parts: ClassVar[bool] = False
    #: Whether each entry of ``tool_calls`` is a call, and none a fragment of one.
    whole_calls: ClassVar[bool] = False
    holes = HOLES

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        #: The last signed block of each choice and its vendor: a signature closes its block.
        self._signed: dict[int, tuple[int, str]] = {}
        #: Two members say what is called. By choice, the name that came last in ``tool_calls``, and in ``function_call`` where
        #: that came first: the other member repeats it.
        self._called: dict[int, str] = {}
        self._called_before: dict[int, str] = {}
        self._blocks: set[tuple[int, int]] = set()  # of reasoning, by choice
        self._aside_chars = 0
        self._in_thought: set[int] = set()  # choices whose content is marked as a thought

    def delta(self, delta: dict[str, Any], choice: int, where: tuple[int, str]) -> None:
        """Everything that the delta of one choice says; ``where`` is its path below ``choices``."""
        if not REASONING_FIELDS.isdisjoint(delta):
            self._reasoning(delta, choice)
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                if choice in self._in_thought or "extra_content" in delta:
                    self._marked(content, thinks(delta.get("extra_content")), choice)
                else:
                    self.out.append(TextDelta(content, choice))
            else:
                self.parts(content, choice)
        if refusal := self.string(delta.get("refusal")):
            self.out.append(RefusalDelta(refusal, choice))
        calls, function = delta.get("tool_calls"), delta.get("function_call")
        if calls is not None or function is not None:
            self.read_calls(self.listed(calls), self.fields(function), choice, where)
        if audio := delta.get("audio"):
            self.out.append(Aside(self.vendor, "audio", "audio", audio, choice))
        for annotation in self.items(delta.get("annotations")):
            self.out.append(Aside(self.vendor, "citation", "annotation", annotation, choice))
        if not delta.keys() <= DELTA_FIELDS:
            for name, value in delta.items():
                if name == "extra_content" and (self._content_signature(value, choice) or value in THOUGHTS):
                    continue
                if name not in DELTA_FIELDS and said(value):
                    self.out.append(Aside(self.vendor, "metadata", f"delta.{name}", value, choice))

    def _reasoning(self, delta: dict[str, Any], choice: int) -> None:
        """One of the fields that say the same: OpenRouter sends ``reasoning`` beside its details (quirks.md 91)."""
        before, block = len(self.out), self.next_block(choice)
        had_text = False
        for detail in self.items(delta.get("reasoning_details")):
            had_text = self._detail(self.fields(detail), choice) or had_text
        if had_text:
            return
        texts = [text for name in PLAIN_REASONING if (text := self.string(delta.get(name)))]
        if texts:
            text = texts[0]
            if any(other != text for other in texts):
                self.report.repair("said_twice")
            # before a signature of the same chunk: it closes the block
            self.out.insert(before, ReasoningDelta(text, choice, block))

    def _detail(self, detail: dict[str, Any], choice: int) -> bool:
        """One entry of ``reasoning_details``; whether it had text of its own."""
        block = self.bounded(choice, self.index(detail.get("index")) or 0)
        vendor = self._vendor_of(detail, choice, block)
        text, summary = self.string(detail.get("text")), self.string(detail.get("summary"))
        if text:
            self.out.append(ReasoningDelta(text, choice, block))
        if summary:
            self.out.append(ReasoningDelta(summary, choice, block, "summary"))
        signature, data = self.string(detail.get("signature")), self.string(detail.get("data"))
        if signature:
            self.out.append(ReasoningSignature(signature, vendor, choice, block))
        if data:
            self.out.append(ReasoningOpaque(data, vendor, choice, block))
        if signature or data:
            self._signed[choice] = block, vendor
        if not detail.keys() <= DETAIL.names:
            self.keep_unread(detail, DETAIL, choice, block, where="reasoning_details.")
        return bool(text or summary)

    def next_block(self, choice: int) -> int:
        """The block that unlabelled reasoning belongs to: the one behind the last signed. Raises TooManyBlocks."""
        return self.bounded(choice, self._signed.get(choice, UNSIGNED)[0] + 1)

    def bounded(self, choice: int, block: int) -> int:
        """The block, if there are not too many. Raises TooManyBlocks."""
        if (choice, block) not in self._blocks:
            if len(self._blocks) >= self.limits.content_blocks:
                raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
            self._blocks.add((choice, block))
        return block

    def _vendor_of(self, detail: dict[str, Any], choice: int, block: int) -> str:
        """Whose words a detail has; a later part of one need not say it again."""
        named = text_of(detail.get("format"))
        signed = self._signed.get(choice, UNSIGNED)
        if named is None and signed[0] == block:
            return signed[1]
        return (named or "openrouter").split("-")[0]

    def _marked(self, content: str, is_thought: bool, choice: int) -> None:
        """Content that is marked as a thought, or may close one: Gemini's thoughts behind this dialect stand between tags."""
        thought, text = (content, "") if is_thought else ("", content)
        if is_thought and choice not in self._in_thought:  # the tag that closes is only looked for where one opens
            self.report.repair("thinking_in_text")
            thought, tag, text = content.removeprefix("<thought>").partition("</thought>")
            if not tag:
                self._in_thought.add(choice)
        elif not is_thought and choice in self._in_thought:
            self._in_thought.discard(choice)
            text = content.removeprefix("</thought>")
        if thought:
            self.out.append(ReasoningDelta(thought, choice, self.next_block(choice)))
        if text:
            self.out.append(TextDelta(text, choice))

    def _content_signature(self, extra: Any, choice: int) -> bool:
        """``extra_content``: whether it was a signature of the text (Gemini behind this dialect)."""
        signature = signature_in(extra)
        if signature is not None:
            self.out.append(ReasoningSignature(signature.blob, signature.vendor, choice, 0, "text"))
        return signature is not None

    def parts(self, content: Any, choice: int) -> None:
        """Content as a list of parts, as Mistral has it."""
        if not self.takes_parts:
            self.report.repair("content_as_list")
        for each in self.items(content):
            part = self.part_of(each)
            kind = part.get("type")
            if kind == "text":
                if text := self.string(part.get("text")):
                    self.out.append(TextDelta(text, choice))
                self.keep_unread(part, TEXT_PART, choice, where="content.")
            elif kind == "thinking":
                self.thinking(part, choice)
            elif part:
                self.other_part(part, kind, choice)

    def other_part(self, part: dict[str, Any], kind: Any, choice: int) -> None:
        """A part of another type than text and thinking."""
        self.out.append(Aside(self.vendor, "unknown_event", f"content.{kind}", part, choice))

    def thinking(self, part: dict[str, Any], choice: int) -> None:
        """Thinking of Mistral's behind this dialect; a signature closes its block."""
        block = self.next_block(choice)
        for thought in self.contents(part.get("thinking")):
            if text := self.string(self.part_of(thought).get("text")):
                self.out.append(ReasoningDelta(text, choice, block))
        self.keep_unread(part, THINKING_PART, choice, block, where="content.")
        if blob := self.string(part.get("signature")):
            sealed = unseal(blob) or Sealed("reasoning", "mistral", blob)
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, choice, block))
            self._signed[choice] = block, sealed.vendor

    # -- calls -----------------------------------------------------------------------------------------------------

    def read_calls(
        self,
        listed: list[Entry],
        function: dict[str, Any],
        choice: int,
        where: tuple[int, str],
    ) -> None:
        """The two members that say what is called. Some servers write each fragment in both (llama-cpp-python)."""
        self._bound(listed)
        calls = [call for _, call in listed]
        is_twin = bool(function) and choice not in self._called_before and self._is_twin(function, calls, choice)
        for step, call in listed:
            if choice in self._called_before and self._repeats(call, choice):
                self.report.repair("said_twice")
            else:
                self.tool_call(call, choice, (*where, "tool_calls", *step))
        if is_twin:
            self.report.repair("said_twice")
            self._set_aside(function, calls)
        elif function:
            if choice in self._called_before or choice not in self._called:
                self._called_before[choice] = text_of(function.get("name")) or self._called_before.get(choice, "")
            self._function(function, ToolCallDelta(0, choice=choice, anonymous=True), (*where, "function_call"))

    def _bound(self, listed: list[Entry]) -> None:
        """Refuse a list whose entries begin too many calls, whatever else they say, before any of them is read.

        An entry begins one if its name comes with an index and an id that are new, or if each entry is a call. It may still go
        on with a call of an earlier frame, of which there are as many as the limit at most.
        """
        limit = 2 * self.limits.tool_calls
        if len(listed) <= limit:
            return
        ids: set[str | None] = set()
        indices: set[int] = set()
        for number, (_, call) in enumerate(listed):
            if type(call) is not dict:
                continue
            call_id, index = text_of(call.get("id")), number if self.whole_calls else call.get("index")
            name = text_of(details_of(call, "function").get("name")) or text_of(details_of(call, "custom").get("name"))
            is_told = self.whole_calls if call_id is None else call_id not in ids
            if name is None or not is_told or type(index) is not int or index in indices:
                continue
            if len(indices) == limit:
                raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
            ids.add(call_id)
            indices.add(index)

    def _is_twin(self, function: dict[str, Any], calls: list[Any], choice: int) -> bool:
        """Whether ``function_call`` repeats one of the calls beside it, or the last call of the choice."""
        name, last = text_of(function.get("name")), self._called.get(choice)
        names = [text_of(details_of(call, "function").get("name")) for call in calls if type(call) is dict]
        if not names and last is None:
            return False
        return name is None or name in names or name == last

    def _repeats(self, call: Any, choice: int) -> bool:
        """Whether an entry of ``tool_calls`` is the call that ``function_call`` began."""
        if type(call) is not dict or call.get("index") not in (None, 0, "0"):
            return False
        name = text_of(details_of(call, "function").get("name"))
        if name is None:  # a fragment of the call that came last in ``tool_calls``, where another one came there
            return choice not in self._called
        return name == self._called_before[choice]

    def _set_aside(self, function: dict[str, Any], calls: list[Any]) -> None:
        """Keep arguments that are not those of the call which they repeat. Raises StreamArgumentsTooLong."""
        text = function.get("arguments")
        if not calls or not isinstance(text, str) or not text.strip():
            return
        texts = [details_of(call, "function").get("arguments") for call in calls if type(call) is dict]
        if text in texts or any(not isinstance(other, str) for other in texts):
            return
        self._aside_chars += len(text)
        if self._aside_chars > self.limits.stream_arguments_chars:
            raise StreamArgumentsTooLong(self.limits.stream_arguments_chars)
        self.report.keep(Withheld("said_twice", None, text_of(function.get("name")), text))

    def tool_call(self, call: Any, choice: int, path: tuple[Any, ...]) -> None:
        call = self.alone(call)
        if type(call) is not dict:
            self.odd(call)
            return
        delta = ToolCallDelta(self.index(call.get("index")), self._identity(call.get("id")), choice=choice)
        place = None if call.keys() <= CALL_FIELDS else len(self.out)
        if place is not None:
            delta.extras = {name: value for name, value in call.items() if name not in CALL_FIELDS and said(value)}
            delta.signature = signature_in(delta.extras.get("extra_content"))
            if delta.signature is not None:
                del delta.extras["extra_content"]
        function = self.fields(call.get("function"))
        custom = self.fields(call.get("custom"))
        if custom and function:
            self.report.repair("said_twice")
        if custom and (not function or call.get("type") == "custom"):
            delta.kind = "custom"
            self._function(custom, delta, (*path, "custom"), "input")
        else:
            self._function(function, delta, (*path, "function"))
        if delta.name or choice not in self._called:
            self._called[choice] = delta.name or ""
        if place is not None and delta.id is None and delta.name is None:
            self._strip_fragment(delta, place)

    def _strip_fragment(self, delta: ToolCallDelta, place: int) -> None:
        """Make events of their own of what a fragment has beside its text, which is all that is looked at of fragments."""
        if delta.extras:
            self.keep_unread(delta.extras, NONE, delta.choice, where="tool_calls.")
            delta.extras = None
        if delta.signature is not None and delta.index is not None:
            signed = ToolCallDelta(delta.index, choice=delta.choice, kind=delta.kind, signature=delta.signature)
            self.out.insert(place, signed)
            delta.signature = None

    def _identity(self, value: Any) -> str | None:
        return None if value is None else self.string(value)

    def _function(
        self, function: dict[str, Any], delta: ToolCallDelta, path: tuple[Any, ...], name: str = "arguments"
    ) -> None:
        delta.name = self._identity(function.get("name"))
        arguments = function.get(name)
        if isinstance(arguments, str) or arguments is None:
            delta.arguments = arguments
        else:  # an object: its own text, so that 1.0 and 2^64 stay what they were (quirks.md 46, 48)
            if not self.takes_objects:
                self.report.repair("arguments_not_text")
            delta.arguments = self.text_at("choices", *path, name)
            delta.snapshot = True
        self.out.append(delta)
        if not function.keys() <= FUNCTION.names:
            self.keep_unread(function, FUNCTION, delta.choice, where="function.")
