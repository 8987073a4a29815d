"""Chat chunks to wire events: what each chunk says, tolerant of what the clones do to it.

A chunk is read in a fixed order, because clones put everything into one: reasoning, content, refusal, tool calls, log
probabilities, stop reason, usage, error. The response starts with the first chunk that has a choice: Azure's first frame
has neither id nor model. Unknown fields that are there from the start ride in the response's extras; later ones are asides.

Source: dialects.md §1.2, §1.6, quirks.md §1-§9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

from streamkit.dialects.members.known import Members
from streamkit.dialects.members.values import details_of, has_value, text_of
from streamkit.dialects.openai_chat.whole_messages import TEXTS, WholeMessages
from streamkit.dialects.openai_chat.wire import ERROR_TYPES, STOP_REASONS, VENDOR, decode_usage, signature_in
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import RunningText
from streamkit.dialects.vocabulary.error_bodies import is_bare_error, provider_failed
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.errors import StreamArgumentsTooLong, TooManyBlocks, TooManyChoices, TooManyToolCalls
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ErrorType,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    WireEvent,
)
from streamkit.framing.frame import Frame
from streamkit.limits import Limits
from streamkit.report import StreamReport, Withheld

#: Fields that are read here, or mean nothing downstream (``obfuscation`` is padding).
CHUNK_FIELDS = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "error", "obfuscation", "type", "message", "detail"}
)
CHOICE_FIELDS = frozenset(
    {"index", "delta", "message", "finish_reason", "logprobs", "usage", "stop_reason", "matched_stop"}
)
#: Fields that say the same as plain text, in the order in which they are asked (quirks.md 91).
PLAIN_REASONING = ("reasoning", "reasoning_content", "thinking")
REASONING_FIELDS = frozenset({"reasoning_details", *PLAIN_REASONING})
DELTA_FIELDS = REASONING_FIELDS | {"role", "content", "refusal", "tool_calls", "function_call", "audio", "annotations"}
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
    rb'|"created"\s*:\s*(?P<number>\d+)'
    rb'|"obfuscation"\s*:\s*(?P<pad>"(?:[^"\\]|\\.)*+")'
    rb'|"tool_calls"\s*:\s*\[\s*\{\s*"index"\s*:\s*(?P<index>\d+)'
    rb'|"usage"\s*:\s*(?P<usage>\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\})'  # in each chunk, as xAI has it
)
#: Where a message stands, whose text may be all that was said, once more.
WHOLE_MESSAGE = re.compile(rb'"message"\s*:\s*\{')
#: An item of a list, and the step that leads to it.
Entry: TypeAlias = tuple[tuple[int | str, ...], Any]
#: ``extra_content`` that says of a content that it is a thought, and nothing more.
THOUGHTS = tuple({vendor: {"thought": True}} for vendor in ("google", "vertex"))
#: Block and vendor of no signature at all.
UNSIGNED = (-1, "")


def recognises(_event: str, document: Any) -> bool:
    """Whether a payload can be a Chat chunk: not one of the older Completions, whose choices have text and no delta."""
    choices = document.get("choices") if isinstance(document, dict) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return not ("text" in choices[0] and choices[0].keys().isdisjoint({"delta", "message"}))
    if isinstance(choices, dict):  # in the place of a list
        choice = choices.get("0", choices)
        return isinstance(choice, dict) and ("delta" in choice or "message" in choice)
    return isinstance(document, dict) and (
        isinstance(choices, list)
        or document.get("object") == "chat.completion.chunk"
        or ("type" not in document and isinstance(document.get("error"), dict))
    )


def thinks(extra: Any) -> bool:
    """Whether ``extra_content`` says that the content beside it is a thought (Gemini behind this dialect)."""
    return isinstance(extra, dict) and any(details_of(extra, vendor).get("thought") is True for vendor in extra)


class ChatDecoder(FrameDecoder):
    """Reads the chunks of a stream."""

    #: Fields of a chunk that are no extras.
    chunk_fields: ClassVar[frozenset[str]] = CHUNK_FIELDS
    #: Words for the type of an error.
    error_types: ClassVar[Mapping[str, ErrorType]] = ERROR_TYPES
    dialect = "openai-chat"
    vendor = VENDOR
    #: Whether a content as a list, arguments as an object and a flat error are forms of the dialect, and need no repair.
    is_varied: ClassVar[bool] = False
    #: Whether each entry of ``tool_calls`` is a call, and none a fragment of one.
    whole_calls: ClassVar[bool] = False
    opaque_holes = HOLES
    unlike = WHOLE_MESSAGE

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._started = False
        self._extras: dict[str, Any] = {}
        self._head: dict[str, Any] = {}
        self._choices: set[int] = set()
        self._spoke: set[int] = set()  # choices that had a delta or a message with anything in it
        self._id: str | None = None
        self._is_steady = False  # chunks that go on have the id of the first: another id says another response
        self._messages = WholeMessages()
        #: The last signed block of each choice and its vendor: a signature closes its block.
        self._signed: dict[int, tuple[int, str]] = {}
        #: Two members say what is called. By choice, the name that came last in ``tool_calls``, and in ``function_call`` where
        #: that came first: the other member repeats it.
        self._called: dict[int, str] = {}
        self._called_before: dict[int, str] = {}
        self._blocks: set[tuple[int, int]] = set()  # of reasoning, by choice
        self._aside_chars = 0
        self._in_thought: set[int] = set()  # choices whose content is marked as a thought

    def take_other(self, frame: Frame) -> None:
        """Read one frame. Behind the end only counts and errors still tell anything."""
        if self.ended and frame.data:
            self.behind_end(super().take_other, frame, counted=frame is self._unheld)
        else:
            super().take_other(frame)

    def usage(self, raw: dict[str, Any]) -> WireEvent:
        """Token counts of a ``usage`` object."""
        return decode_usage(raw, self.vendor)

    def done(self) -> None:
        """End the stream, at ``[DONE]``."""
        self.recognised = self.ended = True
        if not self.frame.terminated:
            self.unterminated()
        self._start()
        self.out.append(TerminatorSeen(derives_calls=True))

    def close(self) -> None:
        """End the input: a response without a choice starts at least."""
        if self.recognised:
            self._start()

    def decode(self, document: dict[str, Any]) -> None:
        """Read one chunk. Raises TooManyChoices, TooManyBlocks, TooManyToolCalls, StreamArgumentsTooLong."""
        chunk = document
        error = chunk.get("error")
        choices = chunk.get("choices")
        if type(choices) is not list:
            choices = self.items(choices)
        if not (choices or error or recognises("", chunk)):
            self.no_chunk(chunk)
            return
        self.recognised = True
        if choices:
            if not self._started:
                self._head = {**self._head, **{k: v for k, v in chunk.items() if v or k not in self._head}}
                self._start()
            elif chunk.get("id") != self._id or not self._is_steady:
                self._see_id(chunk.get("id"), choices)
            for position, choice in enumerate(choices):
                self._choice(choice, position)
        elif not self._started and not error:
            self._head.update(chunk)
        if not chunk.keys() <= self.chunk_fields:
            self._unknown(chunk)
        if (chunk.get("usage") is not None and (usage := self.fields(chunk["usage"]))) or (
            "x_groq" in chunk and (usage := dict(details_of(details_of(chunk, "x_groq"), "usage")))
        ):
            self._start()
            self.tell_counts(decode_usage(usage, self.vendor))
        if error or self.frame.event == "error":
            self.out.append(provider_failed(error or chunk, self.vendor, self.error_types))
            if not isinstance(error, dict):
                self.report.repair("error_shape")

    def no_chunk(self, chunk: dict[str, Any]) -> None:
        """No chunk: an error in a form that is not the dialect's (dialects.md §1.4), or something unknown."""
        flat = chunk.get("object") == "error" or chunk.get("type") == "error" or "detail" in chunk
        if flat or is_bare_error(chunk) or self.frame.event == "error":
            self.recognised = True
            if not (self.is_varied and chunk.get("object") == "error"):
                self.report.repair("error_shape")
            self.out.append(provider_failed(chunk, self.vendor, self.error_types))
        elif "prompt_tokens" in details_of(chunk, "usage"):
            self.recognised = True
            self._start()
            self.tell_counts(decode_usage(chunk["usage"], self.vendor))
        else:
            self.foreign_frame()
            if self._started:
                self.out.append(Aside(self.vendor, "unknown_event", str(chunk.get("object") or "chunk"), chunk))

    def _start(self) -> None:
        """Say once that the response started: with the first choice, so that blank head frames do not count."""
        if self._started:
            return
        self._started = True
        head = self._head
        self._id = text_of(head.get("id"))
        created = head.get("created")
        self._extras = {
            name: value for name, value in head.items() if name not in self.chunk_fields and has_value(value)
        }
        seconds = int(created) if isinstance(created, int | float) and 0 <= created < 1e11 else None
        model, extras = text_of(head.get("model")), self._extras or None
        self.out.append(ResponseStarted(self._id, model, seconds, self.vendor, extras))
        self._head = {}

    def _see_id(self, value: Any, choices: list[Any]) -> None:
        """The id of a later chunk. Raises SecondResponse where a choice begins again under another one.

        Servers that make an id for each chunk, or say the role in each, are common: there an id tells nothing.
        """
        roles = [text_of(details_of(choice, "delta").get("role")) for choice in choices if type(choice) is dict]
        if value == self._id:
            self._is_steady = bool(roles) and not any(roles)
        elif self._is_steady and any(roles) and text_of(value) and len(choices) == 1:
            index = choices[0].get("index")
            if (index if type(index) is int else 0) in self._choices:  # not where each choice has an id of its own
                self.restarted(self._id, value)

    def _unknown(self, chunk: dict[str, Any]) -> None:
        """Fields beside the dialect's: constant ones are in the extras already."""
        if not self._started:
            return
        for name, value in chunk.items():
            if name not in self.chunk_fields and has_value(value) and self._extras.get(name) != value:
                self.out.append(Aside(self.vendor, "metadata", name, value))

    def _choice(self, choice: Any, position: int) -> None:
        if type(choice) is not dict and type(choice := self.alone(choice)) is not dict:
            self.keep_invalid(choice)
            return
        index = choice.get("index")
        if (type(index) is not int or index) and (index := self.index(index)) is None:
            self.report.repair("choice_index_missing")
            index = position
        delta, message = choice.get("delta"), choice.get("message")
        if type(delta) is not dict and delta is not None:
            delta = self.fields(delta) or None
        if type(message) is not dict and message is not None:
            message = self.fields(message) or None
        is_blank = delta is None or (not delta and index not in self._spoke)
        if is_blank and message is None and not choice.get("finish_reason"):
            self.report.repair("delta_missing")
        if delta or message:
            self._spoke.add(index)
        if index not in self._choices:
            if len(self._choices) >= self.limits.choices:
                raise TooManyChoices(self.limits.choices, offset=self.frame.offset)
            self._choices.add(index)
            self.out.append(ChoiceStarted(index, text_of((delta or message or {}).get("role")) or "assistant"))
        self._read_choice(delta or {}, message or {}, index, position, ends=bool(choice.get("finish_reason")))
        logprobs = choice.get("logprobs")
        if logprobs and (not isinstance(logprobs, dict) or logprobs.get("content") or logprobs.get("refusal")):
            self.out.append(Aside(self.vendor, "logprobs", "logprobs", logprobs, index))
        if not choice.keys() <= CHOICE_FIELDS:
            self.keep_others(choice, CHOICE_FIELDS, "choices.", index)
        if native := choice.get("finish_reason"):
            self._finish_reason(native, choice, index)
        if "usage" in choice and (usage := details_of(choice, "usage")):
            self.tell_counts(decode_usage(usage, self.vendor))

    def _finish_reason(self, native: Any, choice: dict[str, Any], index: int) -> None:
        native = text_of(native)
        if native is None:
            return
        reason = self.stop_reason(native, STOP_REASONS)
        matched = choice.get("stop_reason") or choice.get("matched_stop")  # vLLM, SGLang: text, or a token's number
        if reason in {"stop", "stop_sequence"} and isinstance(matched, str):
            self.out.append(StopReasonSeen("stop_sequence", native, index, matched))
        else:
            self.out.append(StopReasonSeen(reason, native, index))

    # -- deltas and messages ---------------------------------------------------------------------------------------

    def text_of_run(self, model: Any) -> RunningText | None:
        return self.texts.of((type(model), model.choice)) if isinstance(model, TEXTS) else None

    def _read_choice(
        self, delta: dict[str, Any], message: dict[str, Any], choice: int, position: int, *, ends: bool
    ) -> None:
        """Read the delta and the message of one choice; ``ends`` if it has a stop reason, too."""
        before = len(self.out)
        if delta:
            self.delta(delta, choice, (position, "delta"))
            if len(self.out) > before:
                self._messages.remember(self.out[before:], choice, self.texts, by_delta=True)
        if not message or message == delta:
            return
        from_delta, was_signed, start = self.out[before:], choice in self._signed, len(self.out)
        self.delta(message, choice, (position, "message"))
        found = self.out[start:]
        del self.out[start:]
        self.out += self._messages.news(
            found, from_delta, choice, self.texts, self.report, ends=ends, was_signed=was_signed
        )

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
        if "refusal" in delta and (refusal := self.string(delta["refusal"])):
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
                if name not in DELTA_FIELDS and has_value(value):
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
        if not self.is_varied:
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

    def read_calls(self, listed: list[Entry], function: dict[str, Any], choice: int, where: tuple[int, str]) -> None:
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
        """Read one entry of ``tool_calls``; ``path`` is its place below ``choices``."""
        call = self.alone(call)
        if type(call) is not dict:
            self.keep_invalid(call)
            return
        delta = ToolCallDelta(self.index(call.get("index")), self._identity(call.get("id")), choice=choice)
        place = None if call.keys() <= CALL_FIELDS else len(self.out)
        if place is not None:
            delta.extras = {name: value for name, value in call.items() if name not in CALL_FIELDS and has_value(value)}
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
            if not self.is_varied:
                self.report.repair("arguments_not_text")
            delta.arguments = self.text_at("choices", *path, name)
            delta.snapshot = True
        self.out.append(delta)
        if not function.keys() <= FUNCTION.names:
            self.keep_unread(function, FUNCTION, delta.choice, where="function.")
