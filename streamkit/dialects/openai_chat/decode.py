"""Decode Chat chunks to wire events, with tolerance for the departures of compatible servers.

A chunk is read in a fixed order, because servers may put everything into one chunk: reasoning, content, refusal, tool calls,
log probabilities, stop reason, usage, error. The response starts with the first chunk that has a choice, because Azure's
first frame has neither id nor model. Unknown fields of the first chunk are the response's extras; later ones are asides.

Source: dialects.md §1.2, §1.6, quirks.md §1-§9.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any, ClassVar, Final, TypeAlias

from streamkit.dialects.members.values import NOTHING, Members, details_of, has_value, json_value, others_of, text_of
from streamkit.dialects.openai_chat.whole_messages import UNSIGNED, ChoiceSoFar
from streamkit.dialects.openai_chat.wire import (
    BLOCK_ID,
    BLOCKS,
    ERROR_TYPES,
    HOLDER,
    IMAGES,
    INPUTS,
    OPAQUE_MEMBERS,
    PLAIN_REASONING,
    STOP_REASONS,
    VENDOR,
    decode_usage,
    maker_of,
    read_images,
    signature_in,
    thinking_blocks,
    vendor_in,
)
from streamkit.dialects.streams.alike import ManyReader, Said
from streamkit.dialects.streams.delta_template import FLAT_BYTES as DELTA_BYTES
from streamkit.dialects.streams.delta_template import DeltaTemplate, learned, loads
from streamkit.dialects.streams.frame_decoder import FUNCTIONS, FrameDecoder
from streamkit.dialects.streams.running_text import FOLD_EVERY, LONG_CHARS, RunningText
from streamkit.dialects.vocabulary.error_bodies import ERROR_MEMBERS, MESSAGES, error_in
from streamkit.dialects.vocabulary.other_apis import other_api
from streamkit.dialects.vocabulary.roles import is_other_role
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.errors import NotThisDialect, StreamArgumentsTooLong, TooManyBlocks, TooManyChoices, TooManyToolCalls
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
from streamkit.text.quoting import quoted
from streamkit.tool_calls.call import FragmentRun

#: Members of a chunk that the decoder reads, or that have no meaning (``obfuscation`` is padding).
CHUNK_FIELDS = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "error", "obfuscation", "type", "message", "detail"}
)
#: Members of a chunk that may be an error next to its choices. A choice or a delta may also have an ``error``.
SUSPECT = (ERROR_MEMBERS | {*MESSAGES}) - {"choices"}
CHOICE_FIELDS = frozenset(
    {"index", "delta", "message", "finish_reason", "logprobs", "usage", "stop_reason", "matched_stop"}
)
REASONING_FIELDS = frozenset({"reasoning_details", BLOCKS, HOLDER, *PLAIN_REASONING, *OPAQUE_MEMBERS})
DELTA_FIELDS = REASONING_FIELDS - {HOLDER} | {
    *("role", "content", "refusal", "tool_calls", "function_call", "audio", "annotations")
}
#: Members of a delta that have their own code. For other members it is only checked whether they have a value.
READ_OTHERWISE = DELTA_FIELDS | {"extra_content", IMAGES, HOLDER, "error"}
CALL_FIELDS = frozenset({"index", "id", "type", "function", "custom"})
FRAGMENT_FIELDS = CALL_FIELDS - {"custom"}
#: Members that may repeat the same reasoning. Only the first member with text is read.
DETAILED: Mapping[str, None] = dict.fromkeys(("reasoning_details", "reasoning", "reasoning_content"))
ODD = 3  #: the number of consecutive chunks unlike the remembered chunk, after which another chunk may be remembered
#: Members of a choice that may differ in later chunks: the delta, or the delta and a message that repeats it.
ALONE: Mapping[str, None] = {"delta": None}
DOUBLED: Mapping[str, None] = {"delta": None, "message": None}
OWN_ROLES = ("assistant", None)
PLAIN = frozenset({"reasoning_content", "reasoning"})  #: members of a delta with reasoning as plain text
TEXT_NAMES = PLAIN | {"content"}
#: The paths of the delta in a chunk, and of a call's text in a delta.
DELTA: Final = ("choices", 0, "delta")
FRAGMENT: Final = ("tool_calls", 0, "function", "arguments")
MEMBER: Final = b'"arguments":'  #: the bytes before the text of a call, as nearly all servers write them
CLOSING: Final = b"}}]}"  #: the bytes after it
#: Text between two blocks in a single string of reasoning (``text/one_string.py``).
BOUNDARIES = frozenset({"\n", "\n\n"})
#: Members that are read of parts of a content, and of ``reasoning_details``. Ids of details are not needed.
NONE = Members()
TEXT_PART = Members("type", "text")
THINKING_PART = Members("type", "signature", "closed", thinking=TEXT_PART)
DETAIL = Members("type", "id", "format", "index", "text", "summary", "signature", "data")
#: How to read another delta that differs only in its text: the method that takes its text, the last argument of that method,
#: and the paths of the text in the delta. Empty: such deltas are decoded in full.
Like: TypeAlias = tuple[Any, ...]
Entry: TypeAlias = tuple[tuple[int | str, ...], Any]  #: the path steps to an item of a list, and the item
#: Values of ``extra_content`` which only mean that the content is a thought.
THOUGHTS = tuple({vendor: {"thought": True}} for vendor in ("google", "vertex"))


def recognises(_event: str, document: Any) -> bool:
    """Return whether a payload may be a Chat chunk. The older Completions API, with text and no delta, does not count."""
    if other_api(document) is not None:
        return False
    choices = document.get("choices") if isinstance(document, dict) else None
    if isinstance(choices, dict):  # an object in place of the list of choices
        choice = choices.get("0", choices)
        return isinstance(choice, dict) and ("delta" in choice or "message" in choice)
    return isinstance(document, dict) and (
        isinstance(choices, list)
        or document.get("object") == "chat.completion.chunk"
        or ("type" not in document and isinstance(document.get("error"), dict))
    )


class ChatDecoder(FrameDecoder):
    """Decodes the chunks of a stream."""

    chunk_fields: ClassVar[frozenset[str]] = CHUNK_FIELDS  #: fields of a chunk that are not extras
    #: Members of a chunk that are not compared with the last chunk's: those without a meaning after the response started, the
    #: choices, and the usage, which is read each time.
    anyway: ClassVar[Mapping[str, None]] = dict.fromkeys(
        ("object", "created", "model", "obfuscation", "choices", "usage")
    )
    error_types: ClassVar[Mapping[str, ErrorType]] = ERROR_TYPES
    error_forms = (dict,)
    idle = frozenset()
    learns_alone = False
    dialect = "openai-chat"
    vendor = VENDOR
    #: Whether the dialect allows content in a list, arguments as an object and flat errors. If not, they count as repairs.
    is_varied: ClassVar[bool] = False
    whole_calls: ClassVar[bool] = False  #: whether each entry of ``tool_calls`` is a whole call, not a fragment
    #: Whether an entry with only an index and arguments is a fragment of the call at that index.
    in_fragments: ClassVar[bool] = True
    __slots__ = (
        *("_always", "_anyway", "_aside", "_beside", "_beside_always", "_beside_delta", "_beside_text"),
        *("_choice_names", "_choice_unread", "_choices", "_constant", "_detail_beside", "_goes_on", "_id"),
        *("_is_steady", "_is_suspect", "_like", "_may_fail", "_names", "_names_tried", "_odd", "_state", "_text_name"),
        *("_unread", "_unread_names"),
    )
    _template: DeltaTemplate | None = None  # for payloads of a large read that differ only in their delta

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        # A chunk is remembered if only its delta has a meaning. A later chunk with the same other members adds only its
        # delta.
        self._goes_on = False  # whether a chunk is remembered
        self._anyway = self.anyway
        self._state: ChoiceSoFar  # the choice that the deltas belong to
        self._beside: Mapping[str, Any] = {}  # members of the chunk; those in ``anyway`` are None
        self._beside_delta: Mapping[str, Any] = {}  # members of its choice; those in ``_aside`` are None
        self._odd = 0  # consecutive chunks that differ from the remembered chunk
        self._aside: Mapping[str, None] = ALONE  # members that may differ in a choice
        self._always: Sequence[tuple[str, Any]] = ()  # asides of each chunk like the remembered one: place and value
        # The same for a delta of which only the text changes.
        self._beside_text: Mapping[str, Any] | None = None
        self._detail_beside: tuple[Any, ...] | None = None  # the same for an entry of ``reasoning_details``
        self._beside_always: Sequence[tuple[str, Any]] = ()  # asides of each such delta, including ``_always``
        self._text_name = ""
        self._names_tried: Sequence[str] = ()
        self._like: Like
        self._head: dict[str, Any] = {}
        self._extras: dict[str, Any] = {}
        self._id: str | None = None
        self._is_steady = False  # all chunks so far had the first id, so a new id means a new response
        #: The member names of the last chunk and choice, and the names that are not read. Nearly always they are the same in
        #: the next chunk. Gain: comparing them takes half of the time of looking up each.
        self._names: list[str] = []
        self._unread_names: Collection[str] = ()
        self._unread: Callable[[dict[str, Any]], Any] | None = None  # returns the values of these
        self._constant: Any = None  # the last such values, if they have no meaning
        self._is_suspect = False  # whether the last chunk may contain an error
        self._may_fail = False  # whether a choice of the current chunk has an error
        self._choice_names: list[str] = []
        self._choice_unread: list[tuple[str, str]] = []
        self._choices: dict[int, ChoiceSoFar] = {}
        self._blocks: set[tuple[int, int]] = set()  # blocks of reasoning, by choice
        self._aside_chars = 0
        self._model: str | None = None

    def take_other(self, frame: Frame) -> None:
        """Read one frame. After the end, only token counts and errors still matter."""
        if self.ended and frame.data:
            self.behind_end(super().take_other, frame, counted=frame is self._unheld)
        else:
            super().take_other(frame)

    def done(self) -> None:
        self.recognised = self.ended = True
        self._forget()
        self._set_most()
        if not self.frame.terminated:
            self.unterminated()
        if not self._started:
            self._start()
        self.out.append(TerminatorSeen(derives_calls=True))

    def close(self) -> None:
        """End the input. A response without any choice gets its start now."""
        if self.recognised and not self._started:
            self._start()

    def decode(self, document: dict[str, Any]) -> None:
        """Read one chunk. Raises TooManyChoices, TooManyBlocks, TooManyToolCalls, StreamArgumentsTooLong."""
        choices = document.get("choices")
        if (
            self._goes_on
            and type(choices) is list
            and len(choices) == 1
            and type(choice := choices[0]) is dict
            and {**choice, **self._aside} == self._beside_delta
            and type(choice["index"]) is int  # False equals 0
            and {**document, **self._anyway} == self._beside
            and type(delta := choice.get("delta")) is dict
            and ((usage := document.get("usage")) is None or type(usage) is dict)
            and (self._aside is ALONE or choice.get("message") == delta)
            and (like := self.again(delta)) is not None
        ):  # nearly all chunks: nothing is new except the delta
            self._odd = 0
            if usage:
                self._tell_usage(document)
            elif like and self.may_learn():
                self._learn(document, like)
        else:
            self._decode(document)

    def _learn(self, document: dict[str, Any], like: Like) -> None:
        """Learn the bytes around the text of a delta, or in a large read those around the delta."""
        more, given, *paths = like
        owners = [("choices", 0, name) for name in self._aside]
        places = [(*owner, *path) for owner in owners for path in paths]
        if self.in_run:
            size = len(self.frame.data) + DELTA_BYTES
            if len(places) == 1 and size <= self.limits.event_values:  # so similar ones fit the limit
                self._template = learned(self.frame.data, document, DELTA)
        elif len(places) <= 2:
            self.learn_text(document, more, given, *places)

    def _decode(self, chunk: dict[str, Any]) -> None:
        """Read any chunk, with all checks."""
        choices = chunk.get("choices")
        if [*chunk] != self._names or type(choices) is not list or not choices:
            choices = self.items(choices)
            if not self._unlike(chunk, choices):
                return
        elif chunk.get("id") != self._id or not self._is_steady:
            self._see_id(chunk.get("id"), choices)
        for position, choice in enumerate(choices):
            self._choice(choice, position)
        if self._unread is not None and (values := self._unread(chunk)) != self._constant:
            self._keep_unread_members(chunk, values)
        if chunk.get("usage") is not None or "x_groq" in chunk:
            self._tell_usage(chunk)
        if self._is_suspect or self._may_fail or self.event == "error":
            self._may_fail = False
            if not self.read_error(chunk):
                self.read_error(chunk, alone=True)
        elif len(choices) == 1:
            self._odd += 1
            if not self._goes_on or self._odd >= ODD:
                self._odd = 0
                self._remember(chunk, choices[0])

    def _keep_unread_members(self, chunk: dict[str, Any], values: Any) -> None:
        """Keep unread members of a chunk. Constant ones are in the extras."""
        before = len(self.out)
        for name in filter(self._unread_names.__contains__, self._names):
            if (value := chunk[name]) not in NOTHING and self._extras.get(name) != value:
                self.out.append(Aside(self.vendor, "metadata", name, value))
        self._constant = values if len(self.out) == before else None

    # -- chunks that differ only in their delta ----------------------------------------------------------------------

    def _remember(self, chunk: dict[str, Any], choice: Any) -> None:
        """Remember a chunk if only its delta has a meaning: a later one with the same other members adds only its delta."""
        index = choice.get("index") if type(choice) is dict else None
        state = self._choices.get(index) if type(index) is int else None
        if state is None or type(choice.get("delta")) is not dict or "x_groq" in chunk:
            return
        begins_another = chunk.get("id") != self._id and self._is_steady
        if begins_another or self.ended:  # each chunk after the end is counted as a repair
            return
        aside = ALONE if choice.get("message") is None else DOUBLED
        if aside is DOUBLED and choice["message"] != choice["delta"]:
            return
        if any(choice.get(name) not in NOTHING for name in ("finish_reason", "logprobs", "usage", "error")):
            return
        if self._unread is not None and self._unread(chunk) != self._constant:
            return
        beside, beside_delta = {**chunk, **self._anyway}, {**choice, **aside}
        if beside != self._beside or beside_delta != self._beside_delta:
            self._template = None  # the template has the bytes around an earlier chunk's delta
            self._forget_deltas()
        self._state, self._goes_on, self._aside = state, True, aside
        self._beside, self._beside_delta = beside, beside_delta
        self._always = [(place, choice[name]) for name, place in self._choice_unread if choice[name] not in NOTHING]

    def _forget(self) -> None:
        self._goes_on = False
        self._forget_deltas()

    def _forget_deltas(self) -> None:
        """Forget what was learned about deltas, but not the remembered chunk."""
        self._names_tried, self._beside_text, self._detail_beside, self._templates = (), None, None, ()

    def _tell(self, asides: Sequence[tuple[str, Any]]) -> None:
        """Append the asides for unread members: each has the place and the value of a member."""
        for place, value in asides:
            self.out.append(Aside(self.vendor, "metadata", place, value, self._state.number))

    def again(self, delta: dict[str, Any]) -> Like | None:
        """Read the delta of a chunk that is otherwise like the remembered one. None: the chunk must be decoded in full."""
        name = self._text_name
        text = delta.get(name)
        if type(text) is str and text and {**delta, name: None} == self._beside_text and not self.out:  # like before
            return self._read_like(text)
        state = self._state
        if not self._goes_on or "error" in delta or not (delta or (state.spoke and state.speaks)):
            return None
        if (
            "tool_calls" in delta
            and state.speaks
            and (self._is_steady or delta.get("role") == "assistant")  # then ``_read_again`` need not check the id
            and not self._always
            and self._grows_calls(state)
        ):
            fragment = _fragment(delta, self.limits.index)
            if fragment is not None:  # text of a call
                index, text = fragment
                if self.in_run:
                    self.out.append(ToolCallDelta(index, None, None, text, state.number))
                else:
                    self._emit_out()
                    self.next.push_fragment(index, text, state.number)
                return ChatDecoder._more_of_call, index, FRAGMENT
        like = self._read_again(delta, state)
        self._tell(self._always)
        return () if self._always or self.in_run else like

    def _read_again(self, delta: dict[str, Any], state: ChoiceSoFar) -> Like:
        """Read a delta that is not like the last one, of a chunk that is otherwise like the remembered one."""
        role = delta.get("role")
        if not self._is_steady:
            if role is None and self._beside.get("id") == self._id:  # see ``_see_id``
                self._is_steady = True
            else:
                self._see_id(self._beside.get("id"), [{"delta": delta}])
        if role == "assistant":
            state.speaks = True
        if (role in OWN_ROLES and state.speaks) or not self._keep_other(delta, state, state.number):
            if self._detail_beside is not None and (like := self._more_of_detail(delta, self._detail_beside, state)):
                return like
            if state.in_thought or not self._read_plain(delta, state, state.number, 0):
                self._remember_detail(delta, self._read_delta(delta, state.number, 0), state)
            elif (names := [*delta]) != self._names_tried:
                self._remember_delta(delta, names)
        return ()

    def _read_like(self, text: str) -> Like:
        state, like = self._state, self._like
        if not self.in_run:
            like[0](self, text, like[1])
            return like
        (self._say_text if self._text_name == "content" else self._say_thought)(text, state, state.number)
        self._tell(self._beside_always)
        return () if self._beside_always else like

    def _more_text(self, text: str, running: RunningText) -> None:
        """Emit the text, or the reasoning, of a delta that is like the last one."""
        state, recent = self._state, running.recent
        recent.append(text)  # ``append`` inlined to save a call
        if len(recent) >= FOLD_EVERY or len(text) > LONG_CHARS:
            running.fold()
        if running is state.text:
            self.next.push_text(text, state.number, 0)
        else:
            self.next.push_reasoning(text, state.number, state.block, "raw")

    def _more_beside(self, text: str, given: tuple[RunningText, Sequence[tuple[str, Any]]]) -> None:
        """Emit the text of a delta like the last one, and an aside for each of its unread members."""
        running, asides = given
        self._more_text(text, running)
        for place, value in asides:
            self.emit(Aside(self.vendor, "metadata", place, value, self._state.number))

    def _more_of_call(self, text: str, index: int) -> None:
        self.next.push_fragment(index, text, self._state.number)

    def _more_detail(self, text: str, event: ReasoningDelta) -> None:
        """Emit the text of an entry of ``reasoning_details`` like the one that became ``event``."""
        state = self._state
        if state.block != event.block:  # there was plain reasoning in between
            self._forget_deltas()
            state.block = event.block
        self.texts.of((ReasoningDelta, state.number)).append(text)
        self.next.push_reasoning(text, state.number, event.block, event.kind)

    def _remember_detail(self, delta: dict[str, Any], found: list[WireEvent], state: ChoiceSoFar) -> None:
        """Remember the members next to the text of an entry of ``reasoning_details``, if the delta contained nothing else."""
        details = delta.get("reasoning_details")
        if type(details) is list and len(details) == len(found) == 1 and type(event := found[0]) is ReasoningDelta:
            detail, name = details[0], "text" if event.kind == "raw" else "summary"
            is_plain = type(detail) is dict and type(detail.get("index", 0)) is int and detail.get(name) == event.text
            if is_plain and not state.in_thought:
                self._detail_beside = name, event, {**detail, name: None}, {**delta, **DETAILED}

    def _more_of_detail(self, delta: dict[str, Any], like: tuple[Any, ...], state: ChoiceSoFar) -> Like:
        """Read a delta with one more text of the same detail. If the delta has anything else, read nothing and return ()."""
        name, event, beside_text, beside = like
        details = delta.get("reasoning_details")
        if type(details) is not list or len(details) != 1 or type(detail := details[0]) is not dict:
            return ()
        text = detail.get(name)
        if type(text) is not str or not text or state.block != event.block or state.signs:
            return ()
        if type(detail.get("index", 0)) is not int:  # False equals 0
            return ()
        if {**detail, name: None} != beside_text or {**delta, **DETAILED} != beside:
            return ()
        if self.in_run:
            self.texts.of((ReasoningDelta, state.number)).append(text)
            self.out.append(ReasoningDelta(text, state.number, event.block, event.kind))
        else:
            self._more_detail(text, event)
        twins = [(twin,) for twin in DETAILED if delta.get(twin) == text]
        return ChatDecoder._more_detail, event, ("reasoning_details", 0, name), *twins

    def _remember_delta(self, delta: dict[str, Any], names: Sequence[str]) -> None:
        """Remember which member of a delta is its only text, unless others are read or say that another response begins."""
        only, asides = None, []
        self._names_tried = names
        for name, value in delta.items():
            if only is None and name in TEXT_NAMES and type(value) is str and value:
                only = name
            elif name != "role" and value not in NOTHING:
                if name in READ_OTHERWISE:
                    return
                asides.append((f"delta.{name}", value))
        if only is not None and (self._is_steady or delta.get("role") == "assistant"):
            state = self._state
            self._text_name, self._beside_text, self._names_tried = only, {**delta, only: None}, ()
            self._beside_always = asides = [*asides, *self._always]
            running = state.text if only == "content" else state.thought
            self._like = ChatDecoder._more_text, running, (only,)
            if asides:
                self._like = ChatDecoder._more_beside, (running, asides), (only,)

    def noting(self, event: Said | None) -> Callable[[str], object] | None:
        if event is None or not self._goes_on:  # a whole message may repeat earlier text
            return None
        return (
            super().noting(event) if type(event) is ToolCallDelta else self.texts.of((type(event), event.choice)).append
        )

    def reader(self, event: str) -> ManyReader | None:
        return None if self._template is None or self._held is not None or event == "error" else self

    def read_alone(self, frame: Frame, following: bytes) -> ManyReader | None:  # noqa: ARG002 - of any that follows
        self._templates = ()  # the template is for the bytes around the delta, not those around its text
        self.push(frame)
        return self.reader(self.event)

    def read(self, payloads: Sequence[bytes], out: list[Any], /) -> int:
        """Read payloads that differ only in their deltas, if the deltas are only text, only reasoning or only fragments."""
        state, template, most = self._state, self._template, self.limits.index
        if (
            template is None
            or not (self._goes_on and self._is_steady and state.speaks)
            or state.in_thought
            or self._always
        ):
            return 0
        first = template.deltas(payloads[:1])
        name = next(iter(first[0]), "") if first and len(first[0]) == 1 else ""
        if name == "tool_calls" and self._grows_calls(state) and (fragment := _fragment(first[0], most)) is not None:
            indices, texts = _fragments(template, payloads, fragment[0], most)
            if indices:
                out.append(FragmentRun(indices, texts, state.number))
            return len(indices)
        if name != "content" and (name not in PLAIN or state.block != state.signed[0] + 1):
            return 0
        around = template.before + b'{"%b":' % name.encode(), b"}" + template.behind
        texts = DeltaTemplate(*around, str, padded=template.padded).deltas(payloads)
        (self._say_text if name == "content" else self._say_thought)("".join(texts), state, state.number)
        return len(texts)

    def _grows_calls(self, state: ChoiceSoFar) -> bool:
        """Return whether an entry of ``tool_calls`` with only an index and arguments adds text to an earlier call."""
        is_one = state.called_before is None and state.called is not None
        return is_one and self.in_fragments and not state.in_thought

    def _unlike(self, chunk: dict[str, Any], choices: list[Any]) -> bool:
        """Begin to read a chunk with other names than the last one. Return False if it is not a chunk.

        Raises NotThisDialect for the first chunk of an API that looks like Chat, because its text would be lost.
        """
        if choices and not self._started and (api := other_api(chunk)) is not None:
            raise NotThisDialect(self.dialect, f"{api} ({quoted(self.frame.text)})", offset=self.frame.offset)
        if not ((choices and self._started) or recognises("", chunk)):
            counts = {} if choices else details_of(chunk, "usage")
            if "prompt_tokens" in counts and error_in(chunk) is None:  # only token counts
                self.recognised = True
                self._start()
                self.tell_counts(decode_usage(counts, self.vendor))
            else:  # an error in another form (dialects.md §1.4), or another payload
                self.unknown_frame(str(chunk.get("object") or "chunk"), chunk)
            return False
        self.recognised = True
        is_first = bool(choices) and not self._started
        if not choices:
            if not self._started and error_in(chunk) is None:
                self._head.update(chunk)
        elif self._started:
            self._see_id(chunk.get("id"), choices)
        else:
            new = {k: v for k, v in chunk.items() if v or k not in self._head} if self._head else chunk
            self._head = {**self._head, **new}
            self._start()
        names = [*chunk] if self._started else []
        if names != self._names:
            self._names = names
            if self._goes_on:
                self._forget()
            unread = self._unread_names = chunk.keys() - self.chunk_fields if names else ()
            self._unread = itemgetter(*unread) if unread else None
            # the values in the first chunk are the extras
            self._constant = self._unread(chunk) if self._unread is not None and is_first else None
        self._is_suspect = not SUSPECT.isdisjoint(chunk)
        return True

    def _tell_usage(self, chunk: dict[str, Any]) -> None:
        usage = self.fields(chunk.get("usage")) or dict(details_of(details_of(chunk, "x_groq"), "usage"))
        if usage:
            if not self._started:
                self._start()
            self.tell_counts(decode_usage(usage, self.vendor))

    def is_own_error(self, document: dict[str, Any], error: Any) -> bool:
        """Return whether the client recognises the error: it is in a member ``error``, and has a message."""
        return super().is_own_error(document, error) and isinstance(error.get("message"), str)

    def _start(self) -> None:
        """Emit the start of the response, once. Blank frames before the first choice do not start it."""
        if self._started:
            return
        self._started = True
        head = self._head
        self._id = text_of(head.get("id"))
        created = head.get("created")
        self._extras = others_of(head, self.chunk_fields)
        seconds = int(created) if isinstance(created, int | float) and 0 <= created < 1e11 else None
        self._model, extras = text_of(head.get("model")), self._extras or None
        self.out.append(ResponseStarted(self._id, self._model, seconds, self.vendor, extras))
        self._head = {}

    def _see_id(self, value: Any, choices: list[Any]) -> None:
        """Check the id of a later chunk. Raises SecondResponse if an unfinished choice begins again under another id.

        Many servers make an id for each chunk, or repeat the role in each. Then an id means nothing.
        """
        if value == self._id and self._is_steady:
            return
        has_choice = has_role = False
        for choice in choices:
            if type(choice) is dict:
                has_choice, role = True, details_of(choice, "delta").get("role")
                has_role = has_role or role == "assistant" or (text_of(role) is not None and not is_other_role(role))
        if value == self._id:
            self._is_steady = has_choice and not has_role
        elif self._is_steady and has_role and text_of(value) and len(choices) == 1:
            index = choices[0].get("index")
            state = self._choices.get(index if type(index) is int else 0)  # None if each choice has an id of its own
            if state is not None and state.ended:  # the server ran the calls and asked the model again
                self.report.repair("response_restarted")
                self._id = text_of(value)
                self._forget()
            elif state is not None:
                self.restarted(self._id, value)

    def _choice(self, choice: Any, position: int) -> None:
        if type(choice) is not dict and type(choice := self.alone(choice)) is not dict:
            self.keep_invalid(choice)
            return
        index = choice.get("index")
        if (type(index) is not int or index) and (index := self.index(index)) is None:
            self.report.repair("choice_index_missing")
            index = position
        delta, message, native = choice.get("delta"), choice.get("message"), choice.get("finish_reason")
        if type(delta) is not dict and delta is not None:
            delta = self.fields(delta) or None
        if type(message) is not dict and message is not None:
            message = self.fields(message) or None
        state = self._choices.get(index)
        if not delta and message is None and not native and (delta is None or state is None or not state.spoke):
            self.report.repair("delta_missing")
        if state is None:
            state = self._begin_choice(index, delta or message or {})
        if spoken := message or delta:
            state.spoke = True
            role = spoken.get("role")
            if role == "assistant":
                state.speaks = True
            if (role not in OWN_ROLES or not state.speaks) and self._keep_other(spoken, state, index):
                pass
            elif message and message != delta:
                self._read_message(message, delta or {}, index, position, ends=bool(native))
            elif state.in_thought or not self._read_plain(spoken, state, index, position):
                self._read_delta(spoken, index, position)
        logprobs = choice.get("logprobs")
        if logprobs and (not isinstance(logprobs, dict) or logprobs.get("content") or logprobs.get("refusal")):
            self.out.append(Aside(self.vendor, "logprobs", "logprobs", logprobs, index))
        if self._choice_unread or [*choice] != self._choice_names:
            self._keep_unread_of(choice, index)
        if native:
            state.ended = True
            self._finish_reason(native, choice, index)
        if "usage" in choice and (usage := details_of(choice, "usage")):
            self.tell_counts(decode_usage(usage, self.vendor))

    def _keep_other(self, spoken: dict[str, Any], state: ChoiceSoFar, index: int) -> bool:
        """Return whether a delta or message is of another role than the model's. If it is, keep it as an aside."""
        self._forget_deltas()
        if role := text_of(spoken.get("role")):
            state.speaks = not is_other_role(role)
        if not state.speaks:
            self.keep_other_role(spoken, index)
        return not state.speaks

    def _keep_unread_of(self, choice: dict[str, Any], index: int) -> None:
        if [*choice] != self._choice_names:
            self._choice_names = [*choice]
            if self._goes_on:
                self._forget()
            unread = () if CHOICE_FIELDS.issuperset(choice) else [name for name in choice if name not in CHOICE_FIELDS]
            self._choice_unread = [(name, f"choices.{name}") for name in unread]
        for name, place in self._choice_unread:
            if (value := choice[name]) is not None and (value or has_value(value)):
                self._may_fail = self._may_fail or name == "error"
                self.out.append(Aside(self.vendor, "metadata", place, value, index))

    def _begin_choice(self, index: int, first: dict[str, Any]) -> ChoiceSoFar:
        """Emit the start of a choice. ``first`` is its first delta or message. Raises TooManyChoices."""
        if len(self._choices) >= self.limits.choices:
            raise TooManyChoices(self.limits.choices, offset=self.frame.offset)
        state = self._choices[index] = ChoiceSoFar(index, self.texts)
        role = text_of(first.get("role"))
        self.out.append(ChoiceStarted(index, "assistant" if role is None or is_other_role(role) else role))
        return state

    def _finish_reason(self, native: Any, choice: dict[str, Any], index: int) -> None:
        native = text_of(native)
        if native is None:
            return
        reason = self.stop_reason(native, STOP_REASONS)
        matched = choice.get("stop_reason") or choice.get("matched_stop")  # vLLM, SGLang: text, or a token id
        if reason in {"stop", "stop_sequence"} and isinstance(matched, str):
            self.out.append(StopReasonSeen("stop_sequence", native, index, matched))
        else:
            self.out.append(StopReasonSeen(reason, native, index))

    # -- deltas and messages ---------------------------------------------------------------------------------------

    def _read_plain(self, delta: dict[str, Any], state: ChoiceSoFar, choice: int, position: int) -> bool:
        """Read a delta with only text, plain reasoning, calls and unknown members. Otherwise, return False and read nothing.

        Gain: nine of ten deltas are such, and this takes a third of the time of ``_read_delta``.
        """
        thought = text = calls = others = None
        for name, value in delta.items():
            if value is None or name == "role":
                continue
            kind = type(value)
            if name == "content" and kind is str:
                text = value
            elif name in PLAIN and kind is str and thought is None:
                thought = value
            elif name == "tool_calls" and kind is list:
                calls = value
            elif name in READ_OTHERWISE:
                return False
            elif has_value(value):
                others = others or []
                others.append((name, value))
        if thought:
            self._say_thought(thought, state, choice)
        if text:
            self._say_text(text, state, choice)
        if calls or others:
            out = self.out
            before = len(out)
            if calls:
                self._read_list(calls, state, choice, position)
            for name, value in others or ():
                out.append(Aside(self.vendor, "metadata", f"delta.{name}", value, choice))
            if len(out) > before:
                state.remember(out[before:], by_delta=True)
        return True

    def _say_text(self, text: str, state: ChoiceSoFar, choice: int) -> None:
        if text:
            self.out.append(TextDelta(text, choice))
            if state.text is None:
                state.text = state.begin(TextDelta)
            state.text.append(text)

    def _say_thought(self, thought: str, state: ChoiceSoFar, choice: int) -> None:
        if thought:
            block = state.signed[0] + 1
            if block == state.block or not self._is_boundary(thought, choice, block):
                self.out.append(ReasoningDelta(thought, choice, block))
            state.block = block
            if state.thought is None:
                state.thought = state.begin(ReasoningDelta)
            state.thought.append(thought)

    def _read_delta(self, delta: dict[str, Any], choice: int, position: int) -> list[WireEvent]:
        """Read a delta of any kind. Return its events."""
        self._forget_deltas()  # the delta may have a signature, or open a thought
        before = len(self.out)
        if delta:
            self.delta(delta, choice, (position, "delta"))
        found = self.out[before:]
        if found:
            self._choices[choice].remember(found, by_delta=True)
        return found

    def _read_message(
        self, message: dict[str, Any], delta: dict[str, Any], choice: int, position: int, *, ends: bool
    ) -> None:
        """Read the message of one choice, and the delta next to it. ``ends``: the choice also has a stop reason."""
        from_delta = self._read_delta(delta, choice, position)
        state, start = self._choices[choice], len(self.out)
        was_signed = state.signed is not UNSIGNED
        self.delta(message, choice, (position, "message"))
        found = self.out[start:]
        del self.out[start:]
        self.out += state.news(found, from_delta, self.report, ends=ends, was_signed=was_signed)

    def delta(self, delta: dict[str, Any], choice: int, where: tuple[int, str]) -> None:
        """Read all members of the delta of one choice. ``where`` is its path below ``choices``."""
        if not REASONING_FIELDS.isdisjoint(delta):
            self._reasoning(delta, choice, whole=where[1] == "message")
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                if self._choices[choice].in_thought or "extra_content" in delta:
                    self._marked(content, delta.get("extra_content"), choice)
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
            others = others_of(delta, DELTA_FIELDS)
            if BLOCKS in details_of(others, HOLDER):
                others |= others_of({HOLDER: others_of(others.pop(HOLDER), {BLOCKS})}, set())
            for name, value in others.items():
                if name == IMAGES and (images := read_images(value, self.vendor, choice)):
                    self.out += images
                elif name == "extra_content" and (signature := signature_in(value)) is not None:
                    self.out.append(ReasoningSignature(signature.blob, signature.vendor, choice, 0, "text"))
                elif name != "extra_content" or value not in THOUGHTS:
                    self._may_fail = self._may_fail or name == "error"
                    self.out.append(Aside(self.vendor, "metadata", f"delta.{name}", value, choice))

    def _reasoning(self, delta: dict[str, Any], choice: int, *, whole: bool) -> None:
        """Read reasoning from one of the members with it: OpenRouter repeats its details in ``reasoning`` (quirks.md 91).

        LiteLLM's blocks in a ``whole`` message separate the text that ``reasoning_content`` joins. In a stream the blocks are
        fragments, too, and a block with a signature may repeat all of its text.
        """
        state = self._choices[choice]
        if state.signature and BLOCK_ID in delta and delta[BLOCK_ID] not in {"", None, state.signature}:
            state.signed = state.signed[0] + 1, OPAQUE_MEMBERS[BLOCK_ID]
        before, block = len(self.out), state.signed[0] + 1
        had_text = False
        for found in self.items(delta.get("reasoning_details")):
            detail = found if type(found) is dict else self.fields(found)
            had_text = self._detail(detail, choice, whole=whole) or had_text
        if had_text:
            return
        blocks = thinking_blocks(delta)
        texts = [text for name in PLAIN_REASONING if (text := self.string(delta.get(name)))]
        if len(blocks) > 1 and not whole:
            words = "".join(self.string(each.get("thinking")) for each in blocks)
            whole = bool(texts) and words == texts[0]
            if not texts and words and len(words) == state.thought_chars - state.signed_chars:
                # the text was emitted as one, so a signature of a part of it proves nothing
                self.out.append(Aside(self.vendor, "metadata", f"delta.{BLOCKS}", blocks, choice))
                return
        if texts and not (whole and any(each.get("thinking") for each in blocks)):
            text = texts[0]
            if any(other != text for other in texts):
                self.report.repair("said_twice")
            if not self._is_boundary(text, choice, block):  # before a signature, which closes the block
                self.out.insert(before, ReasoningDelta(text, choice, block))
        for each in blocks:
            self._block(self.string(each.get("thinking")), each, choice, is_read=bool(texts) and not whole)
        for name, vendor in OPAQUE_MEMBERS.items():
            blob = self.string(delta.get(name))
            if blob and blob != state.signature:  # each delta repeats the id
                state.signature = blob
                has_text = bool(texts) or state.thought_chars > state.signed_chars
                self._sign(blob, choice, vendor, closes=has_text and name != BLOCK_ID)

    def _block(self, text: str, fields: dict[str, Any], choice: int, *, is_read: bool = False) -> None:
        """Read a block in Anthropic's form, or a piece of one. ``is_read``: its text was already read."""
        signature, data = self.string(fields.get("signature")), self.string(fields.get("data"))
        block, state = self.next_block(choice), self._choices[choice]
        if text and not is_read and not (signature and state.thought_chars - state.signed_chars == len(text)):
            self.out.append(ReasoningDelta(text, choice, block))
        if signature:
            self._sign(signature, choice)
        if data:
            sealed = unseal(data) or Sealed("opaque", maker_of(self._model), data)
            self.out.append(ReasoningOpaque(sealed.blob, sealed.vendor, choice, block))
            state.signed = block, sealed.vendor

    def _sign(self, blob: str, choice: int, vendor: str = "", *, closes: bool = True) -> None:
        """Emit a signature. ``closes``: it closes the block before it."""
        state, block = self._choices[choice], self.next_block(choice)
        sealed = unseal(blob) or Sealed("reasoning", vendor or maker_of(self._model), blob)
        self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, choice, block))
        if closes:
            state.signed, state.signs = (block, sealed.vendor), True

    def _detail(self, detail: dict[str, Any], choice: int, *, whole: bool) -> bool:
        """Read one entry of ``reasoning_details``. Return whether it had text.

        The first entry of a stream may repeat all reasoning of earlier deltas, together with its signature.
        """
        state, block, text = self._choices[choice], detail.get("index"), detail.get("text")
        if type(block) is not int or not 0 <= block <= self.limits.index:
            block = self.index(block) or 0
        if block != state.block:
            state.block = self.bounded(choice, block)
        if type(text) is not str:
            text = self.string(text)
        summary = self.string(detail["summary"]) if "summary" in detail else ""
        if text and not whole and not state.detailed and state.has_thought(text):
            self.report.repair("said_twice")
        elif text:
            self.out.append(ReasoningDelta(text, choice, block))
        state.detailed = state.detailed or bool(text or summary)
        if summary:
            self.out.append(ReasoningDelta(summary, choice, block, "summary"))
        if "signature" in detail or "data" in detail:
            self._seal(detail, choice, block)
        if not DETAIL.names.issuperset(detail):
            self.keep_unread(detail, DETAIL, choice, block, where="reasoning_details.")
        return bool(text or summary)

    def _seal(self, detail: dict[str, Any], choice: int, block: int) -> None:
        """Emit the signature and the encrypted reasoning of a detail."""
        form, state = text_of(detail.get("format")), self._choices[choice]
        repeats = form is None and state.signed[0] == block  # later parts of a detail need not name the vendor
        vendor = state.signed[1] if repeats else vendor_in(form or "openrouter")
        signature, data = self.string(detail.get("signature")), self.string(detail.get("data"))
        if signature:
            self.out.append(ReasoningSignature(signature, vendor, choice, block))
        if data:
            self.out.append(ReasoningOpaque(data, vendor, choice, block))
        if signature or data:
            state.signed = block, vendor

    def next_block(self, choice: int) -> int:
        """Return the block of reasoning that names none: the block after the last signed one. Raises TooManyBlocks."""
        return self.bounded(choice, self._choices[choice].signed[0] + 1)

    def _is_boundary(self, thought: str, choice: int, block: int) -> bool:
        """Return whether plain reasoning is only the line ends that streamkit's encoder writes after a signed block.

        A signature proves the exact text of its block. Raises TooManyBlocks.
        """
        is_first = (choice, block) not in self._blocks
        self.bounded(choice, block)
        return is_first and block > 0 and thought in BOUNDARIES

    def bounded(self, choice: int, block: int) -> int:
        """Return ``block``, after it was counted. Raises TooManyBlocks if the response has too many blocks."""
        if (choice, block) not in self._blocks:
            if len(self._blocks) >= self.limits.content_blocks:
                raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
            self._blocks.add((choice, block))
        return block

    def _marked(self, content: str, extra: Any, choice: int) -> None:
        """Read content next to ``extra_content``, which may mark it as a thought, or content that closes a thought.

        Gemini's thoughts are between tags in this dialect.
        """
        is_thought = isinstance(extra, dict) and any(
            details_of(extra, vendor).get("thought") is True for vendor in extra
        )
        thought, text = (content, "") if is_thought else ("", content)
        state = self._choices[choice]
        if is_thought and not state.in_thought:  # a closing tag is only expected after an opening one
            self.report.repair("thinking_in_text")
            thought, tag, text = content.removeprefix("<thought>").partition("</thought>")
            if not tag:
                state.in_thought = True
        elif not is_thought and state.in_thought:
            state.in_thought = False
            text = content.removeprefix("</thought>")
        if thought:
            self.out.append(ReasoningDelta(thought, choice, self.next_block(choice)))
        if text:
            self.out.append(TextDelta(text, choice))

    def parts(self, content: Any, choice: int) -> None:
        """Read content that is a list of parts, which only Mistral's dialect allows."""
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
            elif kind == "reasoning":
                inner = self.contents(part.get("summary") or part.get("content"))
                for block in map(self.part_of, inner or [part]):  # a flat part is its own block
                    self._block(self.string(block.get("text") or block.get("reasoning")), block, choice)
            elif part:
                self.other_part(part, kind, choice)

    def other_part(self, part: dict[str, Any], kind: Any, choice: int) -> None:
        images = read_images([part], self.vendor, choice)
        self.out += images or [Aside(self.vendor, "unknown_event", f"content.{kind}", part, choice)]

    def thinking(self, part: dict[str, Any], choice: int) -> None:
        """Read a thinking part of Mistral's model in this dialect. A signature ends its block."""
        block = self.next_block(choice)
        for thought in self.contents(part.get("thinking")):
            if text := self.string(self.part_of(thought).get("text")):
                self.out.append(ReasoningDelta(text, choice, block))
        self.keep_unread(part, THINKING_PART, choice, block, where="content.")
        if blob := self.string(part.get("signature")):
            sealed = unseal(blob) or Sealed("reasoning", "mistral", blob)
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, choice, block))
            self._choices[choice].signed = block, sealed.vendor

    # -- calls -----------------------------------------------------------------------------------------------------

    def read_calls(self, listed: list[Entry], function: dict[str, Any], choice: int, where: tuple[int, str]) -> None:
        """Read ``tool_calls`` and ``function_call``. Some servers write each fragment in both members (llama-cpp-python)."""
        state = self._choices[choice]
        self._bound(listed)
        calls = [call for _, call in listed]
        is_twin = bool(function) and state.called_before is None and self._is_twin(function, calls, state)
        for step, call in listed:
            if state.called_before is not None and self._repeats(call, state):
                self.report.repair("said_twice")
            else:
                self.tool_call(call, choice, (*where, "tool_calls", *step))
        if is_twin:
            self.report.repair("said_twice")
            self._set_aside(function, calls)
        elif function:
            if state.called_before is not None or state.called is None:
                state.called_before = text_of(function.get("name")) or state.called_before or ""
            self._function(function, ToolCallDelta(0, choice=choice, anonymous=True), (*where, "function_call"))

    def _read_list(self, calls: list[Any], state: ChoiceSoFar, choice: int, position: int) -> None:
        """Read the calls in ``tool_calls``, in a delta without ``function_call``. Nearly all servers send this."""
        if state.called_before is not None or len(calls) > self.limits.tool_calls:
            self.read_calls(self.listed(calls), {}, choice, (position, "delta"))
            return
        for number, call in enumerate(calls):
            self.tool_call(call, choice, (position, "delta", "tool_calls", number))

    def _bound(self, listed: list[Entry]) -> None:
        """Refuse a list with too many new calls, before any entry is read.

        An entry begins a call if it has a name and a new index and id, or if each entry is a call. It may still continue a
        call of an earlier frame, but there are at most as many of those as the limit.
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
            name = _name_in(call) or text_of(details_of(call, "custom").get("name"))
            is_told = self.whole_calls if call_id is None else call_id not in ids
            if name is None or not is_told or type(index) is not int or index in indices:
                continue
            if len(indices) == limit:
                raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
            ids.add(call_id)
            indices.add(index)

    def _is_twin(self, function: dict[str, Any], calls: list[Any], state: ChoiceSoFar) -> bool:
        """Return whether ``function_call`` repeats a call next to it in ``tool_calls``, or the last call of the choice."""
        name = text_of(function.get("name"))
        names = [_name_in(call) for call in calls if type(call) is dict]
        return bool(names or state.called is not None) and (name is None or name in names or name == state.called)

    def _repeats(self, call: Any, state: ChoiceSoFar) -> bool:
        """Return whether an entry of ``tool_calls`` repeats the call that ``function_call`` began."""
        if type(call) is not dict or call.get("index") not in (None, 0, "0"):
            return False
        name = _name_in(call)
        # without a name: a fragment of the last call in ``tool_calls``, if there was another one
        return state.called is None if name is None else name == state.called_before

    def _set_aside(self, function: dict[str, Any], calls: list[Any]) -> None:
        """Report arguments in ``function_call`` that differ from the call it repeats. Raises StreamArgumentsTooLong."""
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
        """Read one entry of ``tool_calls``. ``path`` is its place below ``choices``."""
        if type(call) is not dict and type(call := self.alone(call)) is not dict:
            self.keep_invalid(call)
            return
        index, call_id = call.get("index"), call.get("id")
        if type(index) is not int or not 0 <= index <= self.limits.index:
            index = self.index(index)
        if call_id is not None and type(call_id) is not str:
            call_id = self.string(call_id)
        delta = ToolCallDelta(index, call_id, None, None, choice)
        function = self.fields(call.get("function"))
        custom = self.fields(call["custom"]) if "custom" in call else None
        if custom and function:
            self.report.repair("said_twice")
        if custom and (not function or call.get("type") == "custom"):
            delta.kind, function = "custom", custom
        inner: tuple[Any, ...] = (*path, delta.kind)
        place = None
        if not CALL_FIELDS.issuperset(call):
            place = len(self.out)
            bare = self.bare_function(call, function)
            if bare:
                function, inner = {**function, **bare}, path
                delta.kind = "custom" if call.get("type") == "custom" else delta.kind
            delta.extras = others_of(call, CALL_FIELDS | bare.keys())
            delta.signature = signature_in(delta.extras.get("extra_content"))
            if delta.signature is not None:
                del delta.extras["extra_content"]
        self._function(function, delta, inner)
        state = self._choices[choice]
        if delta.name or state.called is None:
            state.called = delta.name or ""
        if place is not None and delta.id is None and delta.name is None:
            self._strip_fragment(delta, place)

    def _strip_fragment(self, delta: ToolCallDelta, place: int) -> None:
        """Emit the extra members of a fragment as separate events, because only the text of fragments is read later."""
        if delta.extras:
            self.keep_unread(delta.extras, NONE, delta.choice, where="tool_calls.")
            delta.extras = None
        if delta.signature is not None and delta.index is not None:
            signed = ToolCallDelta(delta.index, choice=delta.choice, kind=delta.kind, signature=delta.signature)
            self.out.insert(place, signed)
            delta.signature = None

    def _function(self, function: dict[str, Any], delta: ToolCallDelta, path: tuple[Any, ...]) -> None:
        called = function.get("name")
        delta.name = called if called is None else self.string(called)
        name = self.member_of_arguments(function, INPUTS[delta.kind])
        arguments = function.get(name)
        if isinstance(arguments, str) or arguments is None:
            delta.arguments = arguments
        else:  # an object: its exact text is kept, so that 1.0 and 2^64 are not changed (quirks.md 46, 48)
            if not self.is_varied:
                self.report.repair("arguments_not_text")
            delta.arguments = self.text_at("choices", *path, name)
            delta.snapshot = True
        self.out.append(delta)
        read = FUNCTIONS[name]
        if not read.names.issuperset(function):
            self.keep_unread(function, read, delta.choice, where="function.")


def _name_in(call: dict[str, Any]) -> str | None:
    """Return the name of the function in an entry of ``tool_calls``, which some servers write into the entry itself."""
    return text_of((details_of(call, "function") or call).get("name"))


def _fragments(
    template: DeltaTemplate, payloads: Sequence[bytes], index: int, most: int
) -> tuple[list[int], list[str]]:
    """Return the indices and texts of payloads that are only fragments of calls. ``index`` is the call of the first."""
    head, member, _ = template.texts(payloads[:1])[0].partition(MEMBER)
    one = DeltaTemplate(template.before + head + member, CLOSING + template.behind, str, padded=template.padded)
    if payloads[-1].startswith(one.before):  # nearly always all are of one call
        texts = one.deltas(payloads)
        if len(texts) == len(payloads) and "" not in texts:
            return [index] * len(texts), texts
    heads, texts = _cut(template.texts(payloads), MEMBER, CLOSING)
    found = {head: _fragment(json_value(head + MEMBER + b'"x"' + CLOSING), most) for head in {*heads}}
    indices = [of[0] for of in takewhile(bool, map(found.get, heads)) if of]
    return indices, texts[: len(indices)]


def _cut(deltas: Sequence[bytes], member: bytes, closing: bytes) -> tuple[list[bytes], list[str]]:
    """Return the bytes before ``member`` and the text after it for each delta, up to the first that ends otherwise."""
    cut = [delta.partition(member) for delta in deltas]
    try:
        texts = [*map(loads, [tail[: -len(closing)] for _, _, tail in cut])]
    except ValueError:
        texts = []
    if {*map(type, texts)} == {str} and "" not in texts and all(tail.endswith(closing) for _, _, tail in cut):
        return [head for head, _, _ in cut], texts
    return _cut(deltas[: len(deltas) // 2], member, closing) if len(deltas) > 1 else ([], [])


def _fragment(delta: Any, most: int) -> tuple[int, str] | None:
    """Return the index and text of a delta that is only one fragment of a call; None for any other delta."""
    try:
        [call] = delta["tool_calls"]
        index, function = call["index"], call["function"]
        text = function["arguments"]
    except (KeyError, TypeError, ValueError):  # a member is missing, or of another type
        return None
    if type(index) is not int or not 0 <= index <= most or type(text) is not str or not text:
        return None
    if len(delta) == 1 and len(call) == 2 and len(function) == 1:
        return index, text
    if len(function) > 1 + ("name" in function) or not call.keys() <= FRAGMENT_FIELDS:
        return None
    is_alone = (
        function.get("name") is None and call.get("id") is None and all(map(_says_nothing, delta, delta.values()))
    )
    return (index, text) if is_alone else None


def _says_nothing(name: str, value: Any) -> bool:
    """Return whether a member of a delta with a call has no content."""
    if name == "role":
        return value in OWN_ROLES
    return name == "tool_calls" or value is None or (not has_value(value) and name not in READ_OTHERWISE)
