"""What the checkers of all dialects share: the loop over frames, the list of violations, and their explanation.

A checker judges a stream by its dialect's grammar and by the official clients, not by what streamkit's decoders tolerate. So
it uses none of their code, only the tables in ``wire.py``. An ``error`` violates the grammar or breaks a client; a ``note``
is common in the field and accepted by every known client. A checker never stops: it checks each frame, even after a violation.

The decoders that read the same frame report their reaction: the repairs that they counted, or an *answer* (``ANSWERS``). Rule
and reaction together identify a known failure in the field (``docs/reference/field-failures.md``); if no rule is broken, the
answer alone does. This is only a resemblance, because one violation can have many causes. The tables name the most frequent
case. Each dialect has such a table, ``HINTS``, next to its rules.

Source: dialects.md §0.3, §0.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeGuard

import orjson
from attrs import define, field, frozen

from streamkit.dialects.members.values import Event
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.text.quoting import shortened
from streamkit.tool_calls.check import refuse_constant

# -- reactions to a frame without a repair -----------------------------------------------------------------------------

READS: Final = "reads it unchanged"
KNOWN: Final = "reads it unchanged, as every known client does"
STOPS: Final = "stops here: emits the events before it, then an error"
STOPPED: Final = "had stopped before this frame"
TORN: Final = "does not use it: the input ended inside it"
TOLD: Final = "reports it as the provider's error"
CUT: Final = "treats the stream as truncated: it ends with an error, never as a success"
UNFINISHED: Final = "treats the stream as truncated despite its terminator: it ends with an error"
GARBLES: Final = "reports the arguments as invalid: it cannot tell which fragments belong to which call"
ANSWERS: Final = (READS, KNOWN, STOPS, STOPPED, TORN, TOLD, CUT, UNFINISHED, GARBLES)

#: The numbers of the cases that the tables name, with their causes, as in the catalogue.
CASES: Final[Mapping[int, str]] = {
    6: "servers omit `index`, and strict clients reject the response",
    9: "every call has index 0",
    11: (
        "a bridge between two dialects writes index 0 for every call, although the content blocks of the "
        "calls have different indices"
    ),
    14: "the index has gaps, or the first chunk of a call has a different index from the arguments of this call",
    15: "one call has one id, but its fragments have several indices",
    17: "nothing is wrong in the stream: the fragments of two calls alternate",
    24: "the later fragments of a call have a blank id and a blank name",
    25: "a gateway writes null as the `id` and the `name` of later fragments, and clients read null as a new value",
    26: "no call has an id",
    27: "software that translates a stream waits for the id of a call, but the id arrives late or never",
    30: "every fragment of a call has the id, and clients join these ids into one string",
    32: "the later fragments of a call have a different id from the first fragment",
    33: "a call has a blank id, and neither a name nor arguments",
    36: "every fragment of a call has the name",
    37: "the name and the complete arguments are sent again at the same index",
    38: "one server sends the name in pieces, and another server repeats the whole name",
    40: "the arguments of a call arrive before its name",
    43: "`arguments` is null, and no other arguments follow",
    45: "an empty object (`{}`) arrives before the real arguments",
    46: "the arguments are an object in a dialect that uses text, or a text in a dialect that uses an object",
    49: "the deltas of one call contain several objects instead of text",
    50: "a server does not check the arguments, so they may not be JSON, or may end too early",
    52: "the stop reason is `stop`, but the response has tool calls",
    53: "the stop reason is `end_turn`, although the response has a `tool_use` block",
    54: "the stop reason is `tool_calls` or `tool_use`, but the response has no call",
    57: "`finish_reason` is an empty string in every chunk",
    58: "one chunk has the stop reason `tool_calls`, and a later chunk has `stop`",
    59: "the stop reason arrives before the last fragment of a call",
    61: "`[DONE]` arrives, but the stream had no stop reason",
    65: "the input ends without a stop reason and without `[DONE]`",
    66: "content blocks arrive, but not the events that end a message",
    68: "a stream ends with the terminator of another dialect",
    70: "some chunks have empty `choices`: the usage chunk, and Azure's first chunk",
    71: "a usage chunk has no member `choices`",
    73: "the chunk with the last content also contains the usage",
    75: "a delta arrives for a content block that never started",
    76: "reasoning arrives while a text block is open, or one chunk has both reasoning and text",
    77: "two blocks start at index 0, and the first is never closed",
    78: "no block has a `content_block_stop`",
    80: "a Responses stream has deltas for an item that was never added",
    81: "text blocks without text stay in the history, and the server rejects every later request",
    82: "the indices of content blocks have gaps",
    88: "a long signature is split between reads or deltas, or the input ends inside the signature",
    94: "the JSON contains a raw U+2028, U+2029 or U+0085, which many line readers take for the end of a line",
    100: "some events have only `retry:`, `id:` or comment lines, or an empty `data:`",
    102: "a server sends comments as data",
    106: "events are split between reads, or the last event has no blank line after it",
    111: "the stream contains the backend's error as raw JSON instead of an event",
    112: (
        "an error has an unusual form, for example no type or a null type, a message outside an `error` "
        "object, or a text as `error`"
    ),
    114: "the connection ends before any content, or before a single byte",
    115: "a frame cannot be read, and the terminator follows the frame",
    116: "a refusal has its own member, or the server cancels the stream",
    131: "a Responses stream lacks some of its events",
    132: "argument deltas of Responses have neither the id nor the name of their call",
    133: "a choice has no `delta`, but contains the results of a content filter",
    140: (
        "`output_item.added` or `content_part.added` already contains the first text or all of it, and the "
        "deltas repeat this text"
    ),
    141: "the `done` events of Responses repeat the deltas, but have different indices and ids from those of the deltas",
    147: "a Responses stream ends with `response.done`",
    157: "the stop reason is a word of another dialect: `tool_use` in place of `tool_calls`, or the reverse",
    160: (
        "each fragment of a call is in both `function_call` and `tool_calls`, as llama-cpp-python writes it if "
        "the request requires a certain tool"
    ),
    162: "a character above U+FFFF is split between two deltas, with half a surrogate pair in each",
    164: 'a payload is not an object: it is `null`, `[]` or `"ping"`, or a list with an error or a chunk in it',
    165: (
        "values have the wrong type or place: an index is text, the arguments, the reasoning or `tool_calls` are an "
        "object, or a call has no `function` around its name and arguments"
    ),
    180: "software reads an unknown stop reason after a complete call as a natural stop, and does not run the call",
    227: "the text contains thinking, between `<think>` and `</think>`",
    231: (
        "a call is in the text, in the form of Hermes and Qwen (`<tool_call>{…}</tool_call>`), and the stop "
        "reason is `stop`"
    ),
    241: (
        "the server sends a whole JSON body where a stream was requested, or a stream where a body was "
        "requested, with either media type"
    ),
    277: "each fragment, or only the last one, begins with all the argument text so far, and then adds more",
}  # fmt: skip

#: The case that a repair resembles, if its hint names no other. The first repairs have None: no case resembles them.
REPAIR_CASES: Final[Mapping[str, int | None]] = {
    **dict.fromkeys((
        "sse_field_unknown", "sse_error_field", "array_unclosed", "event_name_missing", "event_type_missing",
        "invalid_utf8", "lone_surrogate", "number_out_of_range", "field_invalid", "choice_index_missing",
        "index_invalid", "boolean_invalid", "content_as_list", "response_bare", "response_restarted",
        "id_duplicate", "name_changed", "objects_split", "fragments_missing", "custom_input_bare", "whole_differs",
        "arguments_late", "arguments_gap", "arguments_out_of_order", "after_error", "fault_after_end", "after_end",
        "calls_unanswered", "continued",
    )),
    "sse_bare_json": 111,
    "comment_as_data": 102,
    "last_event_unterminated": 106,
    "character_cut": 162,
    **dict.fromkeys(("payload_no_object", "payload_in_list"), 164),
    "error_shape": 112,
    "foreign_terminator": 68,
    "delta_missing": 133,
    **dict.fromkeys(("text_as_object", "list_missing", "list_unasked", "object_missing", "call_shape"), 165),
    "said_twice": 160,
    **dict.fromkeys(("arguments_not_text", "arguments_not_object"), 46),
    "block_unopened": 75,
    "block_unclosed": 78,
    "block_mismatch": 76,
    "block_reopened": 77,
    "identity_blank": 24,
    "index_missing": 6,
    "index_reused": 9,
    "index_changed": 14,
    "id_missing": 26,
    "id_repeated": 30,
    "id_changed": 32,
    "id_late": 27,
    "name_repeated": 36,
    "name_pieces": 38,
    "call_ghost": 33,
    "call_nameless": 40,
    "arguments_repeated": 37,
    "arguments_cumulative": 277,
    "arguments_replaced": 49,
    "empty_object_prefix": 45,
    "stop_with_calls": 52,
    "calls_without_call": 54,
    "stop_reason_foreign": 157,
    "stop_conflict": 58,
    "finish_derived": 61,
    "whole_misplaced": 141,
    "text_repeated": 140,
    "terminal_renamed": 147,
    "stop_unknown_with_calls": 180,
    "thinking_in_text": 227,
    "call_in_text": 231,
    **dict.fromkeys(("body_for_stream", "stream_for_body"), 241),
}  # fmt: skip


@frozen
class Hint:
    """One way to break a rule: what streamkit does then (a kind of repair, or one of ``ANSWERS``), and a case of quirks.md."""

    answer: str
    case: int | None
    says: str = ""  #: only if the checker's message begins so: a rule may forbid several things


Hints: TypeAlias = Mapping[str, tuple[Hint, ...]]
"""For each rule, its hints. Empty: the catalogue has no similar case, and no repair applies."""

NO_RULE: Final = ""  #: The key for repairs in frames that break no rule, if their case differs from ``REPAIR_CASES``.


@frozen
class Explanation:
    """What happened to a frame: the kinds of ``repairs`` that were counted or, if there were none, the ``answer``."""

    case: int | None
    repairs: tuple[str, ...]
    answer: str


def like(kind: str, case: int | None = None, says: str = "") -> Hint:
    """Return a hint for a repair. Its case is the case in ``REPAIR_CASES`` unless another is given."""
    return Hint(kind, REPAIR_CASES[kind] if case is None else case, says)


def like_each(*kinds: str) -> tuple[Hint, ...]:
    """Return a hint for each of these repairs, with the repair's own case."""
    return tuple(map(like, kinds))


def explain(looks: Hints, rule: str, message: str, counted: AbstractSet[str], answer: str) -> Explanation:
    """Return the explanation of a broken rule, from the repairs ``counted`` in the frame and the ``answer`` to it."""
    fitting = [look for look in looks.get(rule, ()) if message.startswith(look.says)]
    mended = [look for look in fitting if look.answer in counted]
    named = mended or [look for look in fitting if look.answer == answer]
    repairs = tuple(dict.fromkeys(look.answer for look in mended))
    return Explanation(next((look.case for look in named if look.case is not None), None), repairs, answer)


def explain_repair(looks: Hints, kind: str, answer: str) -> Explanation:
    """Return the explanation of a repair in a frame, if no broken rule of that frame is explained by it."""
    own = [look.case for look in looks.get(NO_RULE, ()) if look.answer == kind]
    return Explanation(own[0] if own else REPAIR_CASES.get(kind), (kind,), answer)


COMMON_HINTS: Final[Hints] = {
    "not_utf8": (like("invalid_utf8"), Hint(TORN, 106)),
    "not_json": (
        like("comment_as_data"),
        like("lone_surrogate"),
        like("character_cut"),
        like("number_out_of_range"),
        Hint(STOPS, 115),
        Hint(TORN, 106),
        Hint(READS, 100),  # a blank payload, the only accepted payload that is not JSON
    ),
    "not_object": (like("payload_no_object"), like("payload_in_list"), Hint(STOPS, 115), Hint(TORN, 106)),
    "truncated": (),
    "garbled": (),
    "unreadable": (Hint(STOPS, 115, "no JSON"), Hint(STOPS, 115, "a JSON value that is no object")),
}  # fmt: skip
#: Hints for rules of dialects in which a message has start and end events.
MESSAGE_HINTS: Final[Hints] = {
    **COMMON_HINTS,
    "truncated": (Hint(CUT, 66),),
    "unterminated": (like("last_event_unterminated"), Hint(TORN, 106), Hint(CUT, 106)),
    "event": (like("error_shape"), like("event_type_missing"), like("event_name_missing")),
    "message_start": (like("response_restarted"),),
    "message": (like("field_invalid"),),
    "usage": (like("field_invalid"),),
    "error": (like("error_shape"),),
}


Severity: TypeAlias = Literal["error", "note"]

INPUT_CHARS = DEFAULT_LIMITS.arguments_chars  #: the most characters of a call's input that are kept for parsing

#: Rules of every dialect (dialects.md §0.3). Each dialect includes them in its own table.
COMMON_RULES: Mapping[str, str] = {
    "not_utf8": "A payload is UTF-8 text: strict clients raise an error at the first invalid byte (§0.4).",
    "not_json": "A payload is exactly one JSON value, without `NaN` or `Infinity` (§0.3).",
    "not_object": "A payload is a JSON object, not a list, text or number (§0.3).",
    "truncated": "The stream reaches its completion point, or an error frame reports why it does not (§7.6).",
}

#: Rules that a checker cannot test, because only the decoder shows that it cannot read a stream.
READING_RULES: Mapping[str, str] = {
    "unreadable": "streamkit can read the stream to its end: no frame is invalid, and no limit is exceeded (§0.3).",
    "garbled": (
        "If the fragments of calls have no usable index, their order still shows which fragments make up the JSON "
        "object of each call (§0.4)."
    ),
}


@frozen
class Violation:
    """A violation of one rule by one frame of a stream."""

    rule: str  #: short, stable name
    message: str
    offset: int  #: byte of the stream at which the frame begins
    frame: int  #: number of the frame, from 0
    #: ``error``, or ``note`` if it is common and every known client accepts it: then the stream is not called broken.
    severity: str = "error"


class GrammarChecker:
    """The loop of a checker. It turns frames into JSON objects for ``check``, which reports violations with ``broken``."""

    #: Each rule of the dialect and its description. ``broken`` accepts no other rule.
    rules: ClassVar[Mapping[str, str]]
    hints: ClassVar[Hints] = COMMON_HINTS  #: Hints for violations of each rule. See ``explain.py``.

    def __init__(self) -> None:
        self.frame = Frame(b"")
        self._number = -1
        self._found: list[Violation] = []
        self._identity: dict[str, str] = {}
        self._call_ids: set[str] = set()

    def feed(self, frames: list[Frame], /) -> list[Violation]:
        for frame in frames:
            self.frame = frame
            self._number += 1
            self.take(frame)
        return self._take_found()

    def finish(self) -> list[Violation]:
        self.close()
        return self._take_found()

    def take(self, frame: Frame) -> None:
        """Check one frame. Overridden in dialects with payloads that are not JSON, or with rules about framing."""
        document = self.load(frame)
        if document is not None:
            self.check(document)

    def check(self, document: dict[str, Any]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Report violations that only the end of the input shows. Subclasses may override this."""

    def broken(self, rule: str, message: str, severity: Severity = "error") -> None:
        """Report that a frame breaks ``rule``: the current frame or, at the end of the input, the last one."""
        if rule not in self.rules:
            raise LookupError(f"{type(self).__name__} has no rule {rule!r}")
        self._found.append(Violation(rule, message, self.frame.offset, max(self._number, 0), severity))

    def event_type(self, document: dict[str, Any], severity: Severity, *, name: str = "type") -> str | None:
        """Return the type of an event; None if it has none. A different ``event:`` line is reported with ``severity``."""
        kind = document.get(name)
        if not is_filled(kind):
            self.broken("event", f"{name} is {shown(kind)}")
            return None
        if self.frame.event != kind:
            self.broken("event", f"the event line says {shown(self.frame.event)}, the data {shown(kind)}", severity)
        return kind

    def judge(self, event: Event | None, document: dict[str, Any]) -> None:
        """Check an event with the method that its row in ``EVENTS`` names. Without a method, it is not checked."""
        judge = None if event is None else getattr(self, event.method, None)
        if judge is not None:
            judge(document)

    def member(self, document: Mapping[str, Any], name: str, is_right: Callable[[object], bool], rule: str) -> bool:
        """Return whether the member ``name`` passes ``is_right``. If not, report that ``rule`` is broken."""
        value = document.get(name)
        if not is_right(value):
            self.broken(rule, f"{name} is {shown(value)}")
            return False
        return True

    def counts(self, usage: object, *needed: str, may_lack: bool = True) -> dict[str, Any] | None:
        """Return the object of token counts; None if it is missing or not an object. Another type breaks the rule ``usage``.

        A ``needed`` count that is not an integer also breaks it, and so does a missing object unless it ``may_lack``.
        """
        if isinstance(usage, dict):
            for name in needed:
                self.member(usage, name, is_index, "usage")
            return usage
        if usage is not None or not may_lack:
            self.broken("usage", f"usage is {shown(usage)}")
        return None

    def identity(self, document: dict[str, Any], name: str) -> None:
        """Check a member that must have the same value in every payload. Otherwise the rule ``identity`` is broken."""
        value = document.get(name)
        if not is_text(value):
            self.broken("identity", f"{name} is {shown(value)}")
        elif (before := self._identity.setdefault(name, value)) != value:
            self.broken("identity", f"{name} changes from {shown(before)} to {shown(value)}", "note")
            self._identity[name] = value

    def typed(self, document: dict[str, Any], name: str, rule: str) -> dict[str, Any] | None:
        """Return the member ``name`` if it is an object with a ``type``. Otherwise report that ``rule`` is broken."""
        value = document.get(name)
        if isinstance(value, dict) and is_filled(value.get("type")):
            return value
        self.broken(rule, f"{name} is {shown(value)}")
        return None

    def identify(self, rule: str, name: str, call_id: str) -> None:
        """Check the id of a new call, which is in the member ``name``. If an earlier call had this id, ``rule`` is broken."""
        if call_id in self._call_ids:
            self.broken(rule, f"two calls have the {name} {shown(call_id)}")
        self._call_ids.add(call_id)

    def load(self, frame: Frame) -> dict[str, Any] | None:
        """Return the payload. If it is not a JSON object, report this and return None."""
        try:
            document = load_json(frame.data)
        except UnicodeDecodeError as error:
            self.broken("not_utf8", f"byte {error.start} of the payload is not UTF-8")
        except ValueError as error:
            self.broken("not_json", f"{error}: {shown(frame.text)}")
        else:
            if isinstance(document, dict):
                return document
            self.broken("not_object", f"the payload is {shown(document)}")
        return None

    def _take_found(self) -> list[Violation]:
        found, self._found = self._found, []
        return found


class PayloadChecker(GrammarChecker):
    """Checks that each payload is a JSON object or ``[DONE]``, for a dialect that has no checker."""

    rules: ClassVar = COMMON_RULES

    def take(self, frame: Frame) -> None:
        if frame.data.strip() not in {b"", b"[DONE]"}:
            self.load(frame)


@define
class CallInput:
    """The input of a call, whose fragments must form one JSON object or nothing. A very long input is not checked."""

    fragments: list[str] = field(factory=list)
    chars: int = 0
    _judged: tuple[int, str | None] = (-1, None)  # the number of characters at the last check, and its result

    def append(self, fragment: str) -> None:
        """Add a fragment. An empty one changes nothing."""
        self.chars += len(fragment)
        if fragment and self.chars <= INPUT_CHARS:
            self.fragments.append(fragment)

    def unparsable(self) -> str | None:
        """Return the text if it is neither empty nor one JSON object; otherwise None."""
        chars, found = self._judged
        if chars != self.chars:  # the result is kept, because a call may end twice
            text = "".join(self.fragments)
            found = None if self.chars > INPUT_CHARS or is_object(text) else text
            self._judged = self.chars, found
        return found


def load_json(text: bytes | str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or UnicodeDecodeError if it is not UTF-8."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # the grammar allows two things that orjson refuses: an escaped half of a surrogate pair, and 1E400
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        try:
            return json.loads(text, parse_constant=refuse_constant)
        except RecursionError:
            raise ValueError("nested too deeply to be checked") from None


def is_object(text: str) -> bool:
    """Return whether a text of arguments is empty or one JSON object."""
    try:
        return not text or isinstance(load_json(text), dict)
    except ValueError:
        return False


def shown(value: object) -> str:
    """Return a value in at most 60 characters, for messages."""
    return shortened(ascii(value[:60] if isinstance(value, str) else value), 60)


def is_index(value: object) -> bool:
    """Return whether a value is an integer from 0 on. A boolean is not."""
    return type(value) is int and value >= 0


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a string."""
    return isinstance(value, str)


def is_filled(value: object) -> TypeGuard[str]:
    """Return whether a value is a string that is not blank."""
    return isinstance(value, str) and bool(value.strip())
