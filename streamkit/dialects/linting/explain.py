"""Explain violations: which known failure in the field a violation resembles, and how streamkit handled it.

A checker reports that a rule is broken. The decoders that read the same frame report their reaction: the repairs that they
counted, or an *answer* (``ANSWERS``). Rule and reaction together identify a case of the catalogue
(``docs/reference/field-failures.md``); if no rule is broken, the answer alone does.

The result is only a resemblance, because one violation can have many causes. The tables name the most frequent case. Each
dialect has such a table, ``HINTS``, next to its rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from attrs import frozen

# -- reactions to a frame without a repair -----------------------------------------------------------------------------

READS: Final = "reads it unchanged"
KNOWN: Final = "reads it unchanged, as every known client does"
STOPS: Final = "stops here: emits the events before it, then an error"
STOPPED: Final = "had stopped before this frame"
TORN: Final = "does not use it: the input ended inside it"
TOLD: Final = "reports it as the provider's error"
CUT: Final = "treats the stream as truncated: it ends with an error, never as a success"
UNFINISHED: Final = "treats the stream as truncated despite its terminator: it ends with an error"
ANSWERS: Final = (READS, KNOWN, STOPS, STOPPED, TORN, TOLD, CUT, UNFINISHED)

#: The numbers of the cases that the tables name, with their causes, as in the catalogue.
CASES: Final[Mapping[int, str]] = {
    6: "servers leave `index` out and strict clients refuse",
    9: "every call at index 0",
    11: "a bridge between dialects writes index 0 for calls whose blocks have places of their own",
    14: "the index counts something else: it has gaps, or a call's first chunk has another than its text",
    15: "one call, one id, several indices",
    17: "nothing wrong: the fragments of two calls interleave",
    24: "blank id and blank name on continuations",
    25: "`id` and `name` null on continuations, written by a gateway and read as an update",
    26: "ids never come",
    27: "a translation waits for an id that comes late or never",
    30: "the id in every fragment, and clients that join them",
    32: "the id of later fragments differs from the first",
    33: "a call with a blank id and nothing else",
    36: "the name in every fragment",
    37: "name and complete arguments again under one index",
    38: "the name in pieces from one server, repeated whole by another",
    40: "arguments before the name",
    43: "`arguments` is null and nothing else comes",
    45: "a `{}` before the real arguments",
    46: "arguments as an object where the dialect has text, or as text where it has an object",
    49: "several objects as deltas of one call",
    50: "fragments that the server does not check, so that the text is no JSON or breaks off",
    52: "`stop` though tools are called",
    53: "`end_turn` behind a `tool_use` block",
    54: "`tool_calls` or `tool_use` without any call",
    57: '`finish_reason` is "" in every chunk',
    58: "two chunks with a reason: `tool_calls`, then `stop`",
    59: "the reason comes before the last fragment",
    61: "`[DONE]` and never a reason",
    65: "the input ends without a reason and without `[DONE]`",
    66: "blocks of content without the events that end a message",
    68: "the terminator of another dialect",
    70: "chunks whose `choices` is empty: the one with usage, Azure's first",
    71: "a usage chunk without the member `choices`",
    73: "usage in the chunk of the last content",
    75: "a delta for a block that was never started",
    76: "reasoning where a text block is open: the kinds change, or one chunk has both",
    77: "two blocks started at index 0, the first never closed",
    78: "no `content_block_stop` at all",
    80: "deltas of an item that was never added",
    81: "text blocks without text, which stay in the history",
    82: "gaps in the indices of blocks",
    88: "a long signature, cut by reads, by deltas or by the end of the input",
    94: "raw U+2028, U+2029 or U+0085 inside JSON, where many readers of lines end a line",
    100: "blocks of `retry:`, `id:` or comments alone, and empty `data:`",
    102: "comments sent as data",
    106: "events cut by reads, and a last one without its blank line",
    111: "the backend's JSON error, raw, where events should be",
    112: "errors in other envelopes: bare, with a null type, flat, as text",
    114: "the connection ends before any content, or brings nothing at all",
    115: "a frame that can't be read, and the terminator behind it",
    116: "refusals in a field of their own, and streams that the server cancelled",
    131: "streams of Responses without some of their events",
    132: "deltas of Responses that do not name their call",
    133: "choices without `delta`, which bring results of a content filter",
    140: "`output_item.added` or `content_part.added` has the first text already, or all of it, and deltas say it again",
    141: "the `done` events of Responses have other numbers and ids than the deltas that they repeat",
    147: "a Responses stream ends with `response.done`",
    157: "a stop reason in the words of another dialect: `tool_use` in Chat, `tool_calls` in Messages",
    160: "each fragment of a call in `function_call` and in `tool_calls`, as llama-cpp-python writes a forced tool",
    162: "a character beyond U+FFFF in two deltas, half a surrogate pair in each",
    164: 'a payload that is no object: `null`, `[]`, `"ping"`, an error or a chunk in a list',
    165: "values in another shape: an index as text, arguments, reasoning or `tool_calls` as an object",
    180: "a stop reason that nobody knows behind a whole call is a natural stop, and the call is not run",
    227: "thinking in the content, between `<think>` and `</think>`",
    231: "a call in the text, as Hermes and Qwen write it (`<tool_call>{…}</tool_call>`), behind `stop`",
    241: "a whole JSON body where a stream was asked for, or a stream where a body was, under either media type",
    277: "each fragment says all argument text so far, or the last one says it from the start before the call is complete",
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
    **dict.fromkeys(("text_as_object", "list_missing", "list_unasked", "object_missing"), 165),
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
