"""The report on a stream: repairs made, data lost, and how the stream ended.

Nothing is silent (design.md §1, law L5): each tolerated fault is a counted *repair*, each thing that the output could not
carry a counted *loss*. The kinds are closed tables: reference pages are generated from them, and a misspelt kind must fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from streamkit.errors import NeedsRepair, NotThisDialect, StreamkitError
from streamkit.limits import LOST_NAMES, WITHHELD_TEXTS
from streamkit.text.quoting import shortened

if TYPE_CHECKING:  # 9 ms, and commands such as --version need no events
    from streamkit.events import ProviderFailed, ResponseFinished, ResponseStarted, UsageReported

STREAM_REPAIRS: Final[Mapping[str, str]] = {
    # framing
    "sse_field_unknown": "a line was skipped because the event-stream standard does not define its field name",
    "sse_error_field": "an `error:` field was read as an error event (llama.cpp)",
    "sse_bare_json": "a JSON object that lacked `data:` was read as an event",
    "body_for_stream": "a whole response was received where a stream was requested",
    "stream_for_body": "a stream was received where a whole response was requested",
    "continued": "an upstream's stream was interrupted within the text, and a second request continued the text (`on_cut`)",
    "array_unclosed": "the closing bracket of a streamed array was missing",
    "comment_as_data": "a `data:` line that contained a comment (`: …`) was skipped",
    "last_event_unterminated": "the last event was kept although no blank line followed the event",
    "event_name_missing": "an event had no `event:` line; the event's name was taken from its payload",
    "event_type_missing": "a payload had no type; the type was taken from the `event:` line",
    "invalid_utf8": "bytes that are not UTF-8 were read as U+FFFD",
    "lone_surrogate": "half of a surrogate pair, which UTF-8 cannot represent, became U+FFFD",
    "character_cut": "the two halves of a surrogate pair were in two deltas, and were joined into one character",
    "number_out_of_range": "a number outside the range of IEEE doubles was read as infinity (argument text keeps the digits)",
    # decoding
    "payload_no_object": 'a payload that is not a JSON object (`null`, `[]`, `"ping"`) was skipped',
    "payload_in_list": "an event had a list of payloads, which were read one by one",
    "field_invalid": "a field was ignored because the dialect does not allow the type of its value",
    "error_shape": "an error was read although the error did not have the dialect's form",
    "call_shape": "a call had members in another place (no `function` around them) or arguments under another name",
    "calls_unanswered": "calls before an error were given results, because clients of the dialect run calls without a result",
    "foreign_terminator": "another dialect's terminator (`[DONE]`) was skipped",
    "choice_index_missing": "a choice had no index; its position in the list was used (nearly always 0)",
    "index_invalid": 'an index that was not a whole number (`"0"`) was converted, or ignored if no conversion was possible',
    "boolean_invalid": "a text or number instead of a boolean was converted, or read as false if no conversion was possible",
    "delta_missing": "a choice without a delta was skipped",
    "thinking_in_text": "thinking between tags in the text (`<think>…</think>`) was read as reasoning",
    "call_in_text": "a call that the model wrote into its text (`<tool_call>…`) was read as a call",
    "text_as_object": "an object or a list was in the place of a text, and the text inside it was read",
    "list_missing": "an object was in the place of a list of such objects, and was read as the list's only item",
    "list_unasked": "a list of one object was in the place of an object; the object in the list was read",
    "object_missing": "a text was in the place of an object that contains such a text, and was read as this object",
    "content_as_list": "content was a list of parts instead of text",
    "said_twice": "the same content was in two members (`function_call` and `tool_calls`) or in two parts, and was read once",
    "arguments_not_text": "arguments were a JSON value instead of text; the JSON text of the value was used",
    "arguments_not_object": "arguments were text instead of an object",
    "block_unopened": "a delta belonged to a block that was never started",
    "block_unclosed": "a block was still open when the message ended",
    "block_mismatch": "the kind of a delta differed from the kind of its block; the delta's own kind was used",
    "block_reopened": "a block was started at an index that was already open",
    "response_bare": "fields of a response were read from the event itself, because the event had no `response` around them",
    "response_restarted": "a second event for the start of the response was skipped",
    # identity of tool calls
    "identity_blank": 'a blank id or name ("", white space, "null") was read as absent',
    "index_missing": "a tool call or block had no index, and was identified by its id, name or order",
    "index_reused": "two calls, two blocks or two choices of a whole response had the same index; they were kept apart",
    "index_changed": "one call had several indices; its fragments were joined by the call's id",
    "id_missing": "a call had no id; an id was generated",
    "id_repeated": "a later delta of a call repeated the call's id, which was ignored",
    "id_changed": "a later delta of a call had a different id, which was ignored",
    "id_duplicate": "two calls had the same id; the second call was given a new id",
    "id_late": "an id was ignored because the id was received after the call had been announced",
    "name_repeated": "a later delta of a call repeated the call's name, which was ignored",
    "name_pieces": "a name was sent in pieces, which were joined",
    "name_changed": "a delta after argument text had a different name, which was ignored",
    "objects_split": "a second JSON object after complete arguments became a separate call",
    "call_ghost": "a call with neither a name nor arguments was dropped",
    "call_nameless": "a call had no name",
    # arguments
    "arguments_repeated": "a fragment that repeated the complete argument text, or a call that was sent twice, was dropped",
    "arguments_cumulative": "a fragment repeated all argument text so far, and only the addition was used",
    "arguments_replaced": "whole arguments were sent again; the later value replaced the earlier value",
    "empty_object_prefix": "a `{}` before the real arguments was dropped",
    "fragments_missing": "fragments of a text or of arguments were missing, and were taken from the whole text that followed",
    "whole_differs": "a whole text differed from its fragments; the fragments were kept because they had already been emitted",
    "whole_misplaced": "a whole text had a different index from its fragments, and was matched by its content",
    "text_repeated": "the text at the start of a block or message was sent once more, and the second copy was dropped",
    "arguments_late": "argument text arrived after its call had ended; the text is only in the report",
    "arguments_gap": "the arguments had an array with items that were never set; these items became null",
    "arguments_out_of_order": "a part of the arguments arrived out of order; the changed members were repeated at the end",
    "custom_input_bare": "a custom tool's arguments were not an object with one string; their text became the tool's input",
    # the end
    "stop_with_calls": "the stop reason `stop` became `tool_calls`, because the response had tool calls",
    "stop_unknown_with_calls": "an unknown stop reason became `tool_calls`, because all calls of the response were whole",
    "calls_without_call": "the stop reason `tool_calls` became `stop`, because the response had no calls",
    "stop_reason_foreign": "a stop reason of another dialect, or in another spelling, was read by its meaning",
    "stop_conflict": "a choice had several stop reasons (the strongest was used), or a truncated call (`length` was used)",
    "finish_derived": "a missing stop reason was derived from how the stream ended (`tool_calls` after complete calls)",
    "terminal_renamed": "`response.done` was read as the end of a response (the correct event is `response.completed`)",
    "after_error": "content after the provider's error was skipped",
    "fault_after_end": "the input failed, or ended inside a frame, after the completion point; the response is complete",
    "after_end": "frames followed the terminator and were skipped, except for errors and for token counts not yet received",
}  # fmt: skip

STREAM_LOSSES: Final[Mapping[str, str]] = {
    "extra_choice": "a choice after the first choice (the dialect has only one choice)",
    "block_order": "the order of text, reasoning and calls",
    "block_boundary": "the boundary between two blocks of the same kind",
    "refusal_as_text": "the fact that a text is a refusal: the refusal is written as text",
    "reasoning": "a block of visible reasoning (the dialect has no place for it)",
    "reasoning_signature": "a signature of reasoning (of another vendor, or the dialect has no place for signatures)",
    "reasoning_opaque": "redacted or encrypted reasoning",
    "stop_reason": "the exact stop reason",
    "stop_sequence": "the stop sequence that ended the text",
    "blocked": "the rest of a response that a guard stopped",
    "logprobs": "log probabilities",
    "citation": "citations and annotations",
    "compaction": "the form of a summary of earlier messages; the summary's text is written if the text can be read",
    "server_tool": "a block of a tool that the provider ran, or an item of the provider's agents",
    "client_tool": "the form of a tool that the client runs or approves (a shell, a computer); a function or call is written",
    "audio": "audio output",
    "media_output": "an image, a video or a file that the model made (the dialect has no place for it)",
    "metadata": "a field or note that the dialect has no place for (content filter results, timings, a fallback model, …)",
    "response_fields": "fields that are constant during the response (system fingerprint, service tier, provider, …)",
    "unknown_event": "an event or field that streamkit does not know",
    "usage_detail": "a token count that the dialect has no field for",
    "usage_unknown": "the fact that a token count is unknown: 0 is written, because the dialect requires a number",
    "call_withheld": "a call that is not finished, has no name or has no place in the dialect; its text is in the report",
    "cut_call": "an unfinished call that waited for the end of another call when the stream failed; its text is in the report",
    "arguments_wrapped": "the form of arguments that are not a JSON object; their text is written as `_raw_arguments`",
    "custom_tool_wrapped": 'the form of a custom tool\'s free text; the text is written as `{"input": …}`',
    "custom_tool_members": "other members that a model wrote next to the input of a custom tool; their text is in the report",
    "call_id": "the id of a call",
    "unclean_call": "a whole call of an interrupted response: clients would run the call, so the call is only in the report",
    "late_arguments": "argument text that was received after the block of its call had to be closed",
    "error_detail": "parts of the provider's error that the dialect has no field for",
}  # fmt: skip

REQUEST_REPAIRS: Final[Mapping[str, str]] = {
    "choices_split": "all choices of a whole response ended with `tool_calls`, but one had no call; they became one message",
    "result_missing": "an earlier call had no result; a result that says so was added",
    "result_orphaned": "a result without its call was dropped",
    "result_moved": "a result was not in the place that the dialect requires, and was moved there",
    "turns_joined": "adjacent turns of the same role were joined",
    "turn_added": "a short turn was added where the dialect requires a turn: after results, at the beginning or at the end",
    "text_added": "a short text was added next to a document, because the dialect requires a text there",
    "file_named": "a file had no name, which the dialect requires; the file was named after its media type",
    "turn_empty": "a turn or part without any content was dropped",
    "id_rewritten": "an id that the dialect does not allow was rewritten, in the call and in its result",
    "properties_added": "an object schema had no `properties`, which the dialect requires; empty `properties` were added",
    "schema_closed": "`additionalProperties: false` was added to an object of a schema, as the dialect requires",
    "name_rewritten": "a name of a tool or schema that the dialect does not allow was rewritten everywhere",
    "result_as_text": "a result became text, because the dialect would read the `$ref` in its object as the name of a file",
    "signature_excused": "a call had no signature, which Google's models since version 3 require; a placeholder was added",
    "media_type_mended": "an image's media type did not match its first bytes, and was corrected",
    "space_trimmed": "white space was removed at the end of the text that the model must continue, as Claude requires",
    "tool_declared": "the request did not define a tool that earlier turns call; a definition without parameters was added",
}
REQUEST_LOSSES: Final[Mapping[str, str]] = {
    "parameter": "a parameter of the request that the dialect has no field for",
    "parameter_refused": "a parameter that the upstream refused; the request was sent again without it (setting `learn`)",
    "parameter_replaced": "a parameter that the upstream's settings leave out or replace (settings `drop` and `set`)",
    "reasoning_history": "reasoning of earlier turns that the dialect or the provider does not accept in a request",
    "media": "an image, an audio file or another file that the dialect does not accept in this place",
    "cache_mark": "how long the provider must keep the prompt in its cache (the dialect has other times, or no cache marks)",
    "system_place": "the position of a system message in the middle of the conversation",
    "turn_name": "the name of the speaker of a message",
    "result_error": "the mark that a tool result is an error; the result's text says so instead",
    "tool_choice": "the exact choice of tools",
    "tool_strict": "the requirement that a tool's arguments match its schema",
    "tool_namespace": "a namespace of tools and its description; the tools' names begin with the namespace's name",
    "tool_definition": "a tool that the dialect cannot define (the tool has a custom grammar, or a provider runs it)",
    "schema_keyword": "a keyword of a schema that the dialect does not accept",
    "answer_withheld": "the text that the model wrote before a failure: the body of an error has no place for this text",
}
REPAIRS: Final[Mapping[str, str]] = {**STREAM_REPAIRS, **REQUEST_REPAIRS}
LOSSES: Final[Mapping[str, str]] = {**STREAM_LOSSES, **REQUEST_LOSSES}
NAME_CHARS: Final = 200  #: longest name of a lost thing, which a client may have chosen


class Status(IntEnum):
    """The result of a stream, as the exit status of the command line (design.md §8)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    CUT = 3
    PROVIDER_ERROR = 4
    NOT_THIS_DIALECT = 5
    WOULD_BE_REPAIRED = 6

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


@define
class Withheld:
    """A call, or a part of a call's text, that could not be written to the output."""

    kind: str  #: the kind of loss or repair that was counted for this call
    id: str | None
    name: str | None
    arguments: str


@frozen
class StageTiming:
    """The time of one stage of a timed pipe and its number of items: a row of ``StreamReport.timings``.

    An item is a frame or an event if the stage works on lists of them, else one read or write.
    """

    name: str
    #: The stage's time, without the time of what it pulls from. For ``source``: the time spent waiting for it.
    seconds: float
    items_in: int
    items_out: int


#: Make an empty counter in a tenth of the time of ``Counter()``; each stream has three.
_empty_counter: Callable[[], Counter[str]] = partial(Counter.__new__, Counter)


@define
class StreamReport:
    """The report on a stream. A report is filled in while the stream is read, and is complete once the pipe has ended."""

    bytes_in: int = 0
    frames: int = 0
    repairs: Counter[str] = field(factory=_empty_counter)
    losses: Counter[str] = field(factory=_empty_counter)
    #: The repairs that are known to be necessary for the named provider. The keys are kinds of repair, and the values
    #: are their causes.
    habits: Mapping[str, str] = field(factory=dict)
    #: The losses of a request. Each pair is the kind of loss and the name of what was lost, such as a parameter or a
    #: part.
    lost: list[tuple[str, str]] = field(factory=list)
    verdicts: Counter[str] = field(factory=_empty_counter)  #: the number of finished calls with each verdict
    #: The number of texts with each verdict, if the request asked for JSON (``check_output``).
    output_verdicts: Counter[str] = field(factory=_empty_counter)
    #: The calls and texts that could not be written to the output. At most 1,000 are kept. Further calls and texts are
    #: only counted.
    withheld: list[Withheld] = field(factory=list)
    #: The received part of a frame that is incomplete because the input ended. If both dialects are the same, this
    #: field also has frames that were never forwarded, because the client would have run the calls of an interrupted
    #: response.
    broken_frame: bytes | None = None
    #: True: the stream reached the dialect's completion point. False: the stream ended before this point. None: the
    #: stream is still being read.
    clean: bool | None = None
    error: Exception | None = None  #: the error that stopped the reading
    provider_error: tuple[str, str] | None = None  #: the failure that the provider reported: ``(type, message)``
    failure: ProviderFailed | None = None  #: the event with the failure, if the provider reported a failure
    started: ResponseStarted | None = None  #: the first event, with the provider's response id and model name
    #: The last event with usage, which counts all tokens so far. None: the provider reported no count, or only zeros.
    usage: UsageReported | None = None
    stops: tuple[ResponseFinished, ...] = ()  #: the events of the finished choices, in order of arrival
    #: True if the model has produced text, reasoning or a call. While this field is False, the request can still be
    #: sent to another provider.
    spoken: bool = False
    #: True if the model's output begins with a refusal.
    refused: bool = False
    #: The same as ``spoken``, except that code that measures the time between outputs may reset ``has_output`` to
    #: False.
    has_output: bool = False
    #: True if the wire's terminator arrived. Some dialects have no terminator, so a complete stream may have False
    #: here.
    terminated: bool = False
    #: True if the output marks the response as complete: the terminator that means success was written or forwarded.
    completed: bool = False
    tool_searches: int = 0  #: the number of searches for deferred tools that the gateway ran instead of the provider
    #: An estimate of the input tokens that were saved because the first request left out the deferred tools. The tokens
    #: of the search function, which the gateway adds to the request, are already subtracted. The tokens of requests
    #: after a search are in ``usage``.
    tokens_saved: int = 0
    #: The time spent in each part of a pipe with ``timings=True``. This field is set when the pipe ends. The parts are
    #: ``source``, the stages, and ``pipe`` (the loop that drives the stages).
    timings: tuple[StageTiming, ...] = field(default=(), eq=False)

    _refusing: bool = field(default=False, init=False, eq=False, repr=False)  #: True if repairs are refused
    #: True if the reading has already failed. Only the first refused repair is counted, so a repair that is refused
    #: later is not counted.
    failing: bool = field(default=False, eq=False, repr=False)

    def refuse_repairs(self) -> None:
        """Refuse repairs from now on: the first repair of the stream is the only one counted, and it raises NeedsRepair."""
        self._refusing = True

    def repair(self, kind: str) -> None:
        """Count a repair. Raise KeyError if ``kind`` is not in ``REPAIRS``, and NeedsRepair if repairs are refused."""
        meaning = REPAIRS[kind]
        if self._refusing:
            if not self.failing:
                self.repairs[kind] = 1
            raise NeedsRepair(kind, meaning)
        self.repairs[kind] += 1

    def lose(self, kind: str, times: int = 1, *, what: str = "") -> None:
        """Count something that the output could not carry. ``what`` names it, if ``kind`` is not specific enough.

        Raise KeyError if ``kind`` is not in ``LOSSES``.
        """
        LOSSES[kind]
        self.losses[kind] = self.losses.get(kind, 0) + times
        if what and len(self.lost) < LOST_NAMES:
            self.lost.append((kind, shortened(what, NAME_CHARS)))

    def withhold(self, kind: str, call_id: str | None, name: str | None, arguments: str) -> None:
        """Count the loss of a call, or of part of its text, and keep the text."""
        self.lose(kind)
        self.keep(Withheld(kind, call_id, name or None, arguments))

    def keep(self, text: Withheld) -> None:
        """Keep a text whose loss or repair is already counted. Beyond ``WITHHELD_TEXTS``, drop the text."""
        if len(self.withheld) < WITHHELD_TEXTS:
            self.withheld.append(text)

    @property
    def status(self) -> Status:
        """The exit status for this stream."""
        if isinstance(self.error, NotThisDialect):
            return Status.NOT_THIS_DIALECT
        if self.error is not None:
            return Status.FAILED
        if self.provider_error is not None:
            return Status.PROVIDER_ERROR
        return Status.DONE if self.clean else Status.CUT

    def failed(self, error: Exception) -> None:
        """Record the error that stopped the reading; only the first error is kept."""
        if self.error is None:
            self.error = error
            if self._refusing and not isinstance(error, NeedsRepair):
                self.repairs.clear()  # counted after the error: an earlier repair would have raised NeedsRepair
        self.clean = False

    def interrupted(self, error: Exception) -> None:
        """Record the error that ended the reading. After the completion point it is only counted as a repair."""
        if self.clean:
            self.repair("fault_after_end")
        else:
            self.failed(error)


def describe(error: BaseException) -> str:
    """Describe an error in one line for people. Errors of other packages get their type name as a prefix."""
    if isinstance(error, StreamkitError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
