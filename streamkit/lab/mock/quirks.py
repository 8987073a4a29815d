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
    "sse_bare_json": Meaning("the JSON of the error is sent without `data:` before it", ("stream", "text", "error")),
    "body_for_stream": Meaning("the response is one JSON body instead of a stream", ("stream", "end")),
    "stream_for_body": Meaning("the response is a stream, although the request asks for a whole response", ("body",)),
    "continued": Meaning("the connection closes after the first text", ("stream", "text"), reader='`on_cut = "continue"`'),
    "array_unclosed": Meaning("the stream is a JSON array without its closing bracket"),
    "comment_as_data": Meaning("after the first event, a comment is sent as data"),
    "last_event_unterminated": Meaning("the blank line after the last event is missing"),
    "event_name_missing": Meaning("no event has an `event:` line"),
    "event_type_missing": Meaning("no payload has the type of its event", ("stream", "end")),
    "invalid_utf8": Meaning("after the first text, a byte is sent that is not UTF-8", ("stream", "text")),
    "lone_surrogate": Meaning("after the first text, half of a surrogate pair is sent", ("stream", "text")),
    "character_cut": Meaning("a character after the first text is sent in two halves", ("stream", "text")),
    "number_out_of_range": Meaning("a payload contains a number with 401 digits", ("stream", "text")),
    # decoding
    "payload_no_object": Meaning("after the first frame, the payload `null` is sent"),
    "payload_in_list": Meaning("a payload is sent inside a list", ("stream", "text", "end")),
    "field_invalid": Meaning("a field has a value of the wrong type", ("stream", "text", "usage", "end")),
    "error_shape": Meaning("the error does not have the form that the dialect requires", ("stream", "error")),
    "call_shape": Meaning("a call has its name and arguments without the object `function`", ("stream", "call")),
    "calls_unanswered": Meaning("the calls before the error have no results", ("stream", "call", "error")),
    "foreign_terminator": Meaning("`[DONE]` is sent after the end, although the dialect has no `[DONE]`"),
    "choice_index_missing": Meaning("no choice has an index"),
    "index_invalid": Meaning("indices are text instead of numbers", ("stream", "text", "call")),
    "boolean_invalid": Meaning("booleans are text instead of `true` and `false`", ("stream", "reasoning")),
    "delta_missing": Meaning("before the first text, a choice without a delta is sent", ("stream", "text")),
    "thinking_in_text": Meaning(
        "reasoning is in the text, between `<think>` and `</think>`", ("stream", "reasoning"), reader='`think_tags = "on"`'
    ),
    "call_in_text": Meaning(
        "calls are in the text, between `<tool_call>` and `</tool_call>`",
        ("stream", "call"), reader='`text_calls = ["hermes"]`'
    ),
    "text_as_object": Meaning("a text is replaced by an object with the text", ("stream", "text", "reasoning")),
    "list_missing": Meaning("a list with one object is replaced by the object", ("stream", "call", "usage", "end")),
    "list_unasked": Meaning("an object is replaced by a list with this object", ("stream", "text", "call")),
    "object_missing": Meaning("an object with a text is replaced by the text", ("stream", "text", "reasoning")),
    "content_as_list": Meaning("the text is a list of parts", ("stream", "text")),
    "said_twice": Meaning(
        "calls or texts are sent twice, in two members with the same meaning", ("stream", "text", "call")
    ),
    "arguments_not_text": Meaning("the arguments of a call are an object instead of text", ("stream", "call")),
    "arguments_not_object": Meaning("the arguments of a call are text instead of an object", ("stream", "call")),
    "block_unopened": Meaning("the start of a text is missing, or its end is sent twice", ("stream", "text", "end")),
    "block_unclosed": Meaning("the end of the last block or call is missing", ("stream", "text", "calls", "end")),
    "block_mismatch": Meaning("a text is in a block of another kind", ("stream", "text", "reasoning", "call")),
    "block_reopened": Meaning("the start of a block or call is sent twice", ("stream", "text", "call")),
    "response_bare": Meaning("events have the members of the response directly, not in the object `response`"),
    "response_restarted": Meaning("the start of the response is sent twice"),
    # identity of tool calls
    "identity_blank": Meaning("a call, or each fragment of a call, has a blank id", ("stream", "call")),
    "index_missing": Meaning("calls or blocks have no index", ("stream", "text", "call")),
    "index_reused": Meaning("all calls or blocks have the same index", ("stream", "reasoning", "calls")),
    "index_changed": Meaning(
        "the start of a call has a different index from the fragments of the call", ("stream", "call")
    ),
    "id_missing": Meaning("no call has an id", ("stream", "call")),
    "id_repeated": Meaning("each fragment of a call repeats the id of the call", ("stream", "call")),
    "id_changed": Meaning(
        "the first fragment with arguments has a different id from the start of the call", ("stream", "call")
    ),
    "id_duplicate": Meaning("all calls have the same id", ("stream", "calls")),
    "id_late": Meaning("only the last fragment of a call has an id", ("stream", "call"), also=("id_missing",)),
    "name_repeated": Meaning("each fragment of a call repeats the name of the call", ("stream", "call")),
    "name_pieces": Meaning("the name of a call is sent in two pieces", ("stream", "call")),
    "name_changed": Meaning("a later fragment of a call has a different name", ("stream", "call")),
    "objects_split": Meaning(
        "the second call has no start, so its arguments look like more arguments of the first call",
        ("stream", "calls"), also=("id_missing",), reader='`policy = "lenient"`',
    ),
    "call_ghost": Meaning("there is an additional call without a name and without arguments", ("stream", "call")),
    "call_nameless": Meaning("the first call has no name", ("stream", "call")),
    # arguments
    "arguments_repeated": Meaning(
        "all arguments of a call are sent again, or the whole call is sent again", ("stream", "call", "end")
    ),
    "arguments_cumulative": Meaning(
        "each fragment of a call repeats all earlier arguments of the call", ("stream", "call")
    ),
    "arguments_replaced": Meaning(
        "a call is first sent with other arguments, and then with the right ones", ("stream", "call", "end")
    ),
    "empty_object_prefix": Meaning("`{}` is sent before the arguments of a call", ("stream", "call")),
    "fragments_missing": Meaning(
        "the last delta of a text is missing, although the whole text is sent later", ("stream", "no call")
    ),
    "whole_differs": Meaning(
        "the whole text, which is sent after the deltas, differs from the deltas", ("stream", "no call")
    ),
    "whole_misplaced": Meaning(
        "the whole text, which is sent after the deltas, has another index", ("stream", "text", "end")
    ),
    "text_repeated": Meaning("a text is sent again with the start or the end of its block", ("stream", "text", "end")),
    "arguments_late": Meaning("a fragment of a call is sent after the end of the call", ("stream", "call", "end")),
    "arguments_gap": Meaning("the arguments are sent in parts that skip items of an array", ("stream", "call")),
    "arguments_out_of_order": Meaning(
        "the arguments are sent in parts, and one part is out of order", ("stream", "call")
    ),
    "custom_input_bare": Meaning(
        "the arguments of a custom tool's call are only the text, without the object around it",
        ("stream", "custom call"), reader="a custom tool in the request",
    ),
    # the end
    "stop_with_calls": Meaning(
        "after calls, the stop reason is the one for a text without calls", ("stream", "call", "end")
    ),
    "stop_unknown_with_calls": Meaning("after calls, the stop reason is an unknown word", ("stream", "call", "end")),
    "calls_without_call": Meaning(
        "the stop reason says that there are calls, but there are none", ("stream", "no call")
    ),
    "stop_reason_foreign": Meaning("the stop reason is a word of another dialect", ("stream", "length")),
    "stop_conflict": Meaning("the response has two different stop reasons", ("stream", "length")),
    "finish_derived": Meaning("there is no stop reason", ("stream", "call", "end")),
    "terminal_renamed": Meaning("the last event has the name `response.done`", ("stream", "no call")),
    "after_error": Meaning("after the error, more content is sent", ("stream", "text", "error")),
    "fault_after_end": Meaning("after the end, the connection is reset", ("stream", "end")),
    "after_end": Meaning("after the end, more content is sent", ("stream", "text", "end")),
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
