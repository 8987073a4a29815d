"""Quirks: changes that turn a conforming response into one that needs exactly one kind of repair, as real providers do.

There is one quirk for each kind of repair that a stream can need (``STREAM_REPAIRS``), and it has the repair's name. Most
quirks change the frames of a stream, and are defined with their dialect (``dialects/base.py``, ``Dialect.quirks``). Those in
this module change the form or the end of a response in any dialect. If a response lacks the part that a quirk changes, the
quirk returns an equal response. Nothing is random.

Source: observe.md O31.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from itertools import count
from typing import Final, Literal, TypeAlias

from attrs import asdict, evolve, field, frozen

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Response
from streamkit.conversation.response_events import response_events
from streamkit.dialects import dialect_named
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.quirks import Change
from streamkit.errors import UsageError
from streamkit.events import TextDelta
from streamkit.lab.mock.writing import Answer
from streamkit.limits import DEFAULT_LIMITS
from streamkit.observer import Observer
from streamkit.report import STREAM_REPAIRS, StreamReport
from streamkit.testing.cuts import cut_at
from streamkit.text.quoting import quoted_all
from streamkit.translation.bodies import decode_response, encode_response

#: Parts that a response may contain. ``call``: one with arguments; ``calls``: at least two. ``no call``: text, and a natural
#: stop. ``custom call``: a custom tool's call, as a function whose only argument is the text ``input``. ``length``: a stop at
#: the token limit. ``end``: a stop, and no error.
Need: TypeAlias = Literal[
    "stream", "body", "text", "reasoning", "call", "calls", "no call", "custom call", "usage", "length", "error", "end"
]


@frozen
class Meaning:
    """The description of a quirk, the same for all dialects."""

    what: str  #: the deviation, in a sentence
    needs: tuple[Need, ...] = ("stream",)  #: a response is changed only if it contains all of these
    also: tuple[str, ...] = ()  #: other kinds of repair that always occur together with this one
    #: The option that a reader needs in order to repair this deviation, as in the gateway's configuration; empty: none.
    reader: str = ""


@frozen(kw_only=True)
class Quirk(Meaning):
    """One deviation of a provider in one dialect."""

    kind: str  #: the name of the repair, a key of ``STREAM_REPAIRS``
    #: Returns the response with the deviation, or the same response if it lacks a needed part.
    apply: Callable[[Answer], Answer] = field(repr=False)


KINDS: Final[Mapping[str, Meaning]] = {
    # framing
    "sse_field_unknown": Meaning("a line before the first event has an unknown SSE field"),
    "sse_error_field": Meaning("the error is in an `error:` field instead of `data:`", ("stream", "text", "error")),
    "sse_bare_json": Meaning("the error has no `data:` before it", ("stream", "text", "error")),
    "body_for_stream": Meaning("the whole response is one JSON body", ("stream", "end")),
    "stream_for_body": Meaning("the response is a stream although the request asks for a whole response", ("body",)),
    "continued": Meaning("the connection closes after the first text", ("stream", "text"), reader='`on_cut = "continue"`'),
    "array_unclosed": Meaning("the stream is an array that is never closed"),
    "comment_as_data": Meaning("a comment is sent as data after the first event"),
    "last_event_unterminated": Meaning("the end of the last event is missing"),
    "event_name_missing": Meaning("no event has its `event:` line"),
    "event_type_missing": Meaning("no payload has its type", ("stream", "end")),
    "invalid_utf8": Meaning("a byte that is not UTF-8 follows the first text", ("stream", "text")),
    "lone_surrogate": Meaning("half of a surrogate pair follows the first text", ("stream", "text")),
    "character_cut": Meaning("a character after the first text is sent in two halves", ("stream", "text")),
    "number_out_of_range": Meaning("a payload contains a number of 401 digits", ("stream", "text")),
    # decoding
    "payload_no_object": Meaning("a payload `null` follows the first frame"),
    "payload_in_list": Meaning("a payload is the only item of a list", ("stream", "text", "end")),
    "field_invalid": Meaning("a field has a value of another type", ("stream", "text", "usage", "end")),
    "error_shape": Meaning("the error has another form", ("stream", "error")),
    "calls_unanswered": Meaning("no call before the error gets its result", ("stream", "call", "error")),
    "foreign_terminator": Meaning("`[DONE]` follows the end"),
    "choice_index_missing": Meaning("no choice has its index"),
    "index_invalid": Meaning("indices are text", ("stream", "text", "call")),
    "boolean_invalid": Meaning("booleans are text", ("stream", "reasoning")),
    "delta_missing": Meaning("a choice without a delta precedes the first text", ("stream", "text")),
    "thinking_in_text": Meaning(
        "reasoning is in the text, between `<think>` and `</think>`", ("stream", "reasoning"), reader='`think_tags = "on"`'
    ),
    "call_in_text": Meaning(
        "calls are in the text, between `<tool_call>` and `</tool_call>`",
        ("stream", "call"), reader='`text_calls = ["hermes"]`'
    ),
    "text_as_object": Meaning("a text is an object that contains the text", ("stream", "text", "reasoning")),
    "list_missing": Meaning("the only object of a list is sent without the list", ("stream", "call", "usage", "end")),
    "list_unasked": Meaning("an object is the only item of a list", ("stream", "text", "call")),
    "object_missing": Meaning("an object is replaced by the text in it", ("stream", "text", "reasoning")),
    "content_as_list": Meaning("the text is a list of parts", ("stream", "text")),
    "said_twice": Meaning("calls or texts are in two members with the same meaning", ("stream", "text", "call")),
    "arguments_not_text": Meaning("the arguments of a call are an object", ("stream", "call")),
    "arguments_not_object": Meaning("the arguments of a call are text", ("stream", "call")),
    "block_unopened": Meaning("the start of a text is missing, or its end is sent twice", ("stream", "text", "end")),
    "block_unclosed": Meaning("the end of the last block or call is missing", ("stream", "text", "calls", "end")),
    "block_mismatch": Meaning("a text is in a block of another kind", ("stream", "text", "reasoning", "call")),
    "block_reopened": Meaning("the start of a block or call is sent twice", ("stream", "text", "call")),
    "response_bare": Meaning("the members of a response are in its events directly"),
    "response_restarted": Meaning("the start of the response is sent twice"),
    # identity of tool calls
    "identity_blank": Meaning("the id of a call is blank, or each of its fragments has a blank one", ("stream", "call")),
    "index_missing": Meaning("calls or blocks have no index", ("stream", "text", "call")),
    "index_reused": Meaning("all calls or blocks have one index", ("stream", "reasoning", "calls")),
    "index_changed": Meaning("the start of a call has another index than its fragments", ("stream", "call")),
    "id_missing": Meaning("no call has an id", ("stream", "call")),
    "id_repeated": Meaning("each fragment of a call has its id", ("stream", "call")),
    "id_changed": Meaning("the first fragment of a call has another id", ("stream", "call")),
    "id_duplicate": Meaning("all calls have one id", ("stream", "calls")),
    "id_late": Meaning("a call has no id before its last fragment", ("stream", "call"), also=("id_missing",)),
    "name_repeated": Meaning("each fragment of a call has its name", ("stream", "call")),
    "name_pieces": Meaning("the name of a call is sent in two pieces", ("stream", "call")),
    "name_changed": Meaning("a later fragment of a call has another name", ("stream", "call")),
    "objects_split": Meaning(
        "the arguments of the second call follow those of the first, without an id or a name",
        ("stream", "calls"), also=("id_missing",), reader='`policy = "lenient"`',
    ),
    "call_ghost": Meaning("there is one more call, with neither a name nor arguments", ("stream", "call")),
    "call_nameless": Meaning("the first call has no name", ("stream", "call")),
    # arguments
    "arguments_repeated": Meaning("all arguments of a call, or a whole call, are sent again", ("stream", "call", "end")),
    "arguments_cumulative": Meaning("each fragment of a call has all its arguments so far", ("stream", "call")),
    "arguments_replaced": Meaning("a call is first sent with other arguments", ("stream", "call", "end")),
    "empty_object_prefix": Meaning("`{}` precedes the arguments of a call", ("stream", "call")),
    "fragments_missing": Meaning("the last delta is missing from a text that is later sent whole", ("stream", "no call")),
    "whole_differs": Meaning("the whole text after the deltas differs from them", ("stream", "no call")),
    "whole_misplaced": Meaning("the whole text after the deltas has another index", ("stream", "text", "end")),
    "text_repeated": Meaning("a text is also sent with the start or the end of its block", ("stream", "text", "end")),
    "arguments_late": Meaning("a fragment of a call follows its end", ("stream", "call", "end")),
    "arguments_gap": Meaning("the arguments are sent in parts that skip items of an array", ("stream", "call")),
    "arguments_out_of_order": Meaning("the arguments are sent in parts, one of them out of order", ("stream", "call")),
    "custom_input_bare": Meaning(
        "the arguments of a custom tool are only its text", ("stream", "custom call"), reader="a custom tool in the request"
    ),
    # the end
    "stop_with_calls": Meaning("the stop reason after calls is the natural one", ("stream", "call", "end")),
    "stop_unknown_with_calls": Meaning("the stop reason after calls is unknown", ("stream", "call", "end")),
    "calls_without_call": Meaning("the stop reason is that of calls, but there are none", ("stream", "no call")),
    "stop_reason_foreign": Meaning("the stop reason is another dialect's word", ("stream", "length")),
    "stop_conflict": Meaning("a weaker stop reason is sent first", ("stream", "length")),
    "finish_derived": Meaning("there is no stop reason", ("stream", "call", "end")),
    "terminal_renamed": Meaning("the last event is `response.done`", ("stream", "no call")),
    "after_error": Meaning("more content follows the error", ("stream", "text", "error")),
    "fault_after_end": Meaning("the connection is reset after the end", ("stream", "end")),
    "after_end": Meaning("more content follows the end", ("stream", "text", "end")),
}  # fmt: skip


def quirks_of(dialect: str) -> Mapping[str, Quirk]:
    """Return the quirks of a dialect by the kind of repair, in the order of ``STREAM_REPAIRS``.

    Raises UsageError for an unknown dialect, and for a plugin's dialect with a quirk that no repair is named after.
    """
    named = dialect_named(dialect)
    if unknown := named.quirks.keys() - STREAM_REPAIRS.keys():
        raise UsageError(f"{named.name} has quirks without a repair of the same name: {quoted_all(sorted(unknown))}")
    changes = {**_ANSWERS, **{kind: _of_frames(change) for kind, change in named.quirks.items()}}
    if not named.answers_whole or named.frame_end == b"\n":
        del changes["body_for_stream"]  # in NDJSON, a JSON body on one line is also a valid stream
    if not named.answers_whole:
        del changes["stream_for_body"]
    return {
        kind: Quirk(kind=kind, apply=changes[kind], **asdict(KINDS[kind])) for kind in STREAM_REPAIRS if kind in changes
    }


def _of_frames(change: Change) -> Callable[[Answer], Answer]:
    def apply(answer: Answer) -> Answer:
        return evolve(answer, frames=change(answer.frames)) if answer.streamed else answer

    return apply


# -- changes of the form of a response and of its end ------------------------------------------------------------------


def _as_body(answer: Answer) -> Answer:
    """Return a stream as one JSON body with the same content."""
    if not answer.streamed or not (whole := _read(answer)).clean:
        return answer
    body = encode_response(whole, answer.dialect, report=StreamReport())
    return evolve(answer, frames=(body,), content_type="application/json", streamed=False)


def _as_stream(answer: Answer) -> Answer:
    """Return a JSON body as a stream with the same content."""
    if answer.streamed or answer.status != HTTPStatus.OK:
        return answer
    named = dialect_named(answer.dialect)
    whole = decode_response(answer.body, answer.dialect)
    numbers = count()
    encoding = Encoding(make_id=lambda prefix: f"{prefix}{next(numbers)}", clock=lambda: whole.created or 0)
    encoder = named.encoder(encoding, StreamReport())
    written = [encoder.feed([event]) for event in response_events(whole)]
    body = b"".join([*written, encoder.finish()])
    places = [frame.offset for frame in named.parser(DEFAULT_LIMITS, StreamReport()).feed(body)]
    return evolve(answer, frames=tuple(cut_at(body, places[1:])), content_type=named.media_type, streamed=True)


def _cut_in_text(answer: Answer) -> Answer:
    """Return the stream up to its first text, where the connection closes."""
    observer = Observer(answer.dialect)
    for number, frame in enumerate(answer.frames if answer.streamed else (), 1):
        if any(isinstance(event, TextDelta) for seen in observer.feed(frame) for event in seen.events):
            return evolve(answer, frames=answer.frames[:number], end="cut")
    return answer


def _reset_after_end(answer: Answer) -> Answer:
    """Return the stream with a connection reset after its end."""
    return evolve(answer, end="reset") if answer.streamed and _read(answer).clean else answer


def _read(answer: Answer) -> Response:
    observer = Observer(answer.dialect)
    collector = Collector(answer.dialect, observer.report)
    for seen in *observer.feed(answer.body), *observer.finish():
        collector.feed(seen.events)
    return collector.finish()


_ANSWERS: Final[Mapping[str, Callable[[Answer], Answer]]] = {
    "body_for_stream": _as_body,
    "stream_for_body": _as_stream,
    "continued": _cut_in_text,
    "fault_after_end": _reset_after_end,
}
