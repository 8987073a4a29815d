"""The report on a stream: repairs made, data lost, and how the stream ended.

Nothing is silent (design.md §1, law L5): each tolerated fault is a counted *repair*, each thing that the output could not
carry a counted *loss*. The kinds are closed tables: reference pages are generated from them, and a misspelt kind must fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from typing import Any, Final

from attrs import define, field, frozen

from streamkit.errors import NeedsRepair, NotThisDialect, StreamkitError
from streamkit.limits import LOST_NAMES, WITHHELD_TEXTS
from streamkit.text.quoting import shortened

STREAM_REPAIRS: Final[Mapping[str, str]] = {
    # framing
    "sse_field_unknown": "a line whose field name the event-stream standard does not know was passed over",
    "sse_error_field": "an `error:` field was read as an error event (llama.cpp)",
    "sse_bare_json": "JSON without its `data:` was read as an event",
    "body_for_stream": "a whole answer came where a stream was asked for",
    "stream_for_body": "a stream came where a whole answer was asked for",
    "continued": "an upstream broke off in the text, and another request went on with it (`on_cut`)",
    "array_unclosed": "the closing bracket of a streamed array was missing",
    "comment_as_data": "a `data:` line that held a comment (`: …`) was passed over",
    "last_event_unterminated": "the last event lacked its blank line and was kept",
    "event_name_missing": "an event came without its `event:` line; its payload names it",
    "event_type_missing": "a payload without a type was read by its `event:` line",
    "invalid_utf8": "bytes that are not UTF-8 were read as U+FFFD",
    "lone_surrogate": "half of a surrogate pair, which UTF-8 can't hold, became U+FFFD",
    "character_cut": "a character came as two halves of a surrogate pair in two deltas, and was put together",
    "number_out_of_range": "a number that IEEE doubles can't hold was kept as text beside the argument text",
    # decoding
    "payload_no_object": 'a payload that is no JSON object (`null`, `[]`, `"ping"`) was passed over',
    "payload_in_list": "payloads that came in a list were read one by one",
    "field_invalid": "a field whose value has a type that the dialect does not know was set aside",
    "error_shape": "an error came in a form that is not the dialect's own",
    "calls_unanswered": "an error left calls without a result, and clients of the dialect would run them: each is given one",
    "foreign_terminator": "a terminator of another dialect (`[DONE]`) was passed over",
    "choice_index_missing": "a choice without an index was taken for the one at its place in the list, nearly always choice 0",
    "index_invalid": 'an index that is no whole number was read as the one that it means (`"0"`), or else taken for absent',
    "boolean_invalid": "a truth value that came as text or a number was read as what it means, or else taken for false",
    "delta_missing": "a choice without a delta was passed over",
    "thinking_in_text": "thinking that stood in the text between tags (`<think>…</think>`) was read as reasoning",
    "call_in_text": "a call that the model wrote into its text (`<tool_call>…`) was read as a call",
    "text_as_object": "an object or a list stood where a text should, and the text in it was read",
    "list_missing": "an object stood where a list of such objects should, and was read as its items",
    "list_unasked": "a list of one object stood where the object should, and was read as it",
    "object_missing": "text stood where an object with that text should, and was read as it",
    "content_as_list": "content came as a list of parts instead of text",
    "said_twice": "what came twice, in two members (`function_call` and `tool_calls`) or parts, was read from one of them",
    "arguments_not_text": "arguments came as a JSON value instead of text; its own text was taken",
    "arguments_not_object": "arguments came as text instead of an object",
    "block_unopened": "a delta came for a block that was never started",
    "block_unclosed": "a block was still open when the message ended",
    "block_mismatch": "a delta in a block of another kind was read by its own kind",
    "block_reopened": "a block was started at an index that was already open",
    "response_bare": "members of a response that stood in its event itself were read as the response's",
    "response_restarted": "a second start of the response was passed over",
    # identity of tool calls
    "identity_blank": 'a blank id or name ("", white space, "null") was taken for absent',
    "index_missing": "a tool call or block without an index was placed by id, name or order",
    "index_reused": "one index was used for two calls, blocks or choices of a whole answer; they were told apart",
    "index_changed": "one call came at several indices; they were joined by id",
    "id_missing": "a call without an id was given one",
    "id_repeated": "an id repeated on a continuation was ignored",
    "id_changed": "another id on a continuation was ignored",
    "id_duplicate": "an id used for two calls was replaced for the second",
    "id_late": "an id that came after its call was announced was ignored",
    "name_repeated": "a name repeated on a continuation was ignored",
    "name_pieces": "a name that came in pieces was joined",
    "name_changed": "another name after argument text was ignored",
    "objects_split": "a second object behind a complete one was split off as a call of its own",
    "call_ghost": "a call with neither a name nor arguments was dropped",
    "call_nameless": "a call with arguments had no name",
    # arguments
    "arguments_repeated": "a fragment that repeats the whole complete argument text was dropped, or calls that came again",
    "arguments_cumulative": "a fragment that said all argument text so far again gave only what it adds",
    "arguments_replaced": "a later whole value of the arguments replaced an earlier one",
    "empty_object_prefix": "a `{}` in front of the real arguments was dropped",
    "fragments_missing": "fragments of a text or of arguments that never came were taken from the whole behind them",
    "whole_differs": "a whole text differs from its fragments, which had been handed on and stand",
    "whole_misplaced": "a whole text was numbered otherwise than its fragments, and found by what it says",
    "text_repeated": "text that its block or message had started with came once more, and was dropped",
    "arguments_late": "text for a call that had ended was set aside into the report",
    "arguments_gap": "places of an array that no part of the arguments filled became null",
    "arguments_out_of_order": "parts of arguments that went back to an earlier place were written again at the end",
    "custom_input_bare": "arguments of a custom tool that are not its one string became its input as they are",
    # the end
    "stop_with_calls": "a natural stop with tool calls became `tool_calls`",
    "stop_unknown_with_calls": "a stop reason that nobody knows, behind nothing but whole calls, became `tool_calls`",
    "calls_without_call": "`tool_calls` without any call became `stop`",
    "stop_reason_foreign": "a stop reason in the words of another dialect, or in other letters, was read by its meaning",
    "stop_conflict": "several stop reasons were given; the strongest was taken",
    "finish_derived": "no stop reason came, but the terminator and complete calls: `tool_calls`",
    "terminal_renamed": "`response.done` was read as the end of a response, which has another name (`response.completed`)",
    "after_error": "content after the provider's error was passed over",
    "fault_after_end": "the input failed behind the completion point, which takes nothing back",
    "after_end": "frames came after the terminator; errors of them were read, and token counts if none had come",
}  # fmt: skip

STREAM_LOSSES: Final[Mapping[str, str]] = {
    "extra_choice": "a choice beyond the first that came (the dialect has one)",
    "block_order": "the order of text, reasoning and calls",
    "block_boundary": "the boundary between two blocks of one kind",
    "refusal_as_text": "a refusal, written as text",
    "reasoning": "a block of visible reasoning (the dialect has no place for it)",
    "reasoning_signature": "a signature of reasoning (another vendor's, or the dialect has no place for it)",
    "reasoning_opaque": "opaque (redacted, encrypted) reasoning",
    "stop_reason": "the exact stop reason",
    "stop_sequence": "which stop sequence was met",
    "logprobs": "log probabilities",
    "citation": "citations and annotations",
    "compaction": "the form of a summary of what was said before: its text is written, if anyone can read it, and no more",
    "server_tool": "blocks of tools that the provider ran itself",
    "client_tool": "the form of what the client runs or approves itself (a shell, a computer): it is written as a call",
    "audio": "audio output",
    "media_output": "an image, a film or a file that the model made (the dialect has no place for it)",
    "metadata": "a field that the dialect has no place for (content filter results, timings, …)",
    "response_fields": "constant fields of the response (system fingerprint, service tier, provider, …)",
    "unknown_event": "an event or field that streamkit does not know",
    "usage_detail": "a token count that the dialect has no field for",
    "usage_unknown": "that a token count is unknown: the dialect demands a number, and 0 is written",
    "call_withheld": "a call that is not finished, has no name or has no place in the dialect; its text is in the report",
    "cut_call": "an unfinished call that waited behind an open one when the stream failed; its text is in the report",
    "arguments_wrapped": "argument text that is no JSON object, wrapped as `_raw_arguments`",
    "custom_tool_wrapped": 'the free text of a custom tool, wrapped as `{"input": …}`',
    "custom_tool_members": "what a model wrote beside the input of a custom tool; its text is in the report",
    "call_id": "the id of a call",
    "unclean_call": "a call with its input at once, which clients would run though the answer broke off: it is in the report",
    "late_arguments": "argument text that came after its call's block had to be closed",
    "error_detail": "parts of the provider's error that the dialect has no field for",
}  # fmt: skip

REQUEST_REPAIRS: Final[Mapping[str, str]] = {
    "choices_split": "choices of a whole answer that all end for calls, one of them without any, were read as one message",
    "result_missing": "a call of the history had no result; one was made that says so",
    "result_orphaned": "a result without its call was dropped",
    "result_moved": "a result stood elsewhere than the dialect wants it",
    "turns_joined": "neighbouring turns of one role became one",
    "turn_added": "a short turn was put between results and the user, or before the assistant's first, as the dialect demands",
    "text_added": "a short text was put next to a document that stood alone, as the dialect demands",
    "file_named": "a file without a name, which the dialect demands, was given one of its media type",
    "turn_empty": "a turn or part without any content was dropped",
    "id_rewritten": "an id that the dialect does not allow was rewritten, alike in call and result",
    "properties_added": "an object schema without `properties`, which the dialect refuses, was given none in it",
    "schema_closed": "an object of a schema was closed (`additionalProperties`: false), which the dialect demands",
    "name_rewritten": "a name of a tool or schema that the dialect does not allow was rewritten, alike everywhere",
    "result_as_text": "a tool's result whose object the dialect refuses (a `$ref` in it names a file there) became text",
    "signature_excused": "a call without the signature that Google's models demand since version 3 was marked to have none",
    "media_type_mended": "an image was said to be of another type than its first bytes say, and is sent as what it is",
    "space_trimmed": "white space at the end of the text that the assistant is to go on with was left out: Claude refuses it",
    "tool_declared": "a tool that the history calls and the request does not define was defined, without parameters",
}
REQUEST_LOSSES: Final[Mapping[str, str]] = {
    "parameter": "a parameter of the request that the dialect has no field for",
    "reasoning_history": "reasoning of earlier turns that the dialect or the provider does not take back",
    "media": "an image, a sound or a file that the dialect can't carry in this place",
    "cache_mark": "how long the provider shall keep the prompt (the dialects' spans differ, or there are none)",
    "system_place": "the place of a system message in the middle of the conversation",
    "turn_name": "the name of who speaks",
    "result_error": "that a tool result is an error: its text says so instead",
    "tool_choice": "the exact choice of tools",
    "tool_strict": "that a tool's arguments must match its schema",
    "tool_namespace": "that tools stand in a namespace, and its description: its name stands in front of theirs",
    "tool_definition": "a tool that the dialect can't define (a custom grammar, one that a provider runs itself)",
    "schema_keyword": "a keyword of a schema that the dialect does not take",
    "answer_withheld": "what the model had said before it failed: a whole response is an answer or an error",
}
REPAIRS: Final[Mapping[str, str]] = {**STREAM_REPAIRS, **REQUEST_REPAIRS}
LOSSES: Final[Mapping[str, str]] = {**STREAM_LOSSES, **REQUEST_LOSSES}
#: Longest name of a lost thing in a report: a client may have chosen the name, or a path of names.
NAME_CHARS: Final = 200


class Status(IntEnum):
    """The result of a stream, as the exit status of the command line (design.md §8)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    CUT = 3
    PROVIDER_ERROR = 4
    NOT_THIS_DIALECT = 5
    WOULD_BE_REPAIRED = 6


@define
class Withheld:
    """A call, or a part of its text, that the output could not carry."""

    kind: str  #: the loss or repair that was counted for it
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
    """The report on a stream. It is filled in while the stream is read, and complete once the pipe has ended."""

    bytes_in: int = 0
    frames: int = 0
    repairs: Counter[str] = field(factory=_empty_counter)
    losses: Counter[str] = field(factory=_empty_counter)
    #: The repairs that the named provider is known to need, each with its cause.
    habits: Mapping[str, str] = field(factory=dict)
    #: Kind and name of each thing lost from a request, such as a parameter or a part.
    lost: list[tuple[str, str]] = field(factory=list)
    #: Number of finished calls for each verdict.
    verdicts: Counter[str] = field(factory=_empty_counter)
    #: At most ``WITHHELD_TEXTS`` texts; further losses and repairs are only counted.
    withheld: list[Withheld] = field(factory=list)
    #: The received part of a frame that the end of the input truncated. Within one dialect, also frames held for a clean end.
    broken_frame: bytes | None = None
    #: True once the dialect's completion point was reached, False after an end without it, None until then.
    clean: bool | None = None
    #: The error that stopped the reading.
    error: Exception | None = None
    #: The provider's report of its failure: ``(type, message)``.
    provider_error: tuple[str, str] | None = None
    #: The ``ProviderFailed`` event of that failure.
    failure: Any = None
    #: The ``ResponseStarted`` event, with the provider's response id and model name.
    started: Any = None
    #: The last ``UsageReported`` event, which counts all tokens so far. None: the provider reported no count, or only zeros.
    usage: Any = None
    #: The ``ResponseFinished`` events of the finished choices, in order of arrival.
    stops: tuple[Any, ...] = ()
    #: True if the model has produced text, reasoning or a call. Until then the request can still go to another provider.
    spoken: bool = False
    #: Same as ``spoken``, but code that measures the time between outputs may reset it to False.
    has_output: bool = False
    #: True if the wire's terminator arrived. Some dialects have none, and a stream may end well without it.
    terminated: bool = False
    #: True if the output marks the response as complete: its success terminator was written or passed.
    completed: bool = False
    #: The time of each part, if the pipe was made with ``timings=True``; set when the pipe is left. First ``source``, then the
    #: stages, then ``pipe``, the loop that drives the stages.
    timings: tuple[StageTiming, ...] = field(default=(), eq=False)

    #: True if repairs are refused.
    _refusing: bool = field(default=False, init=False, eq=False, repr=False)
    #: True if the reading has failed, so that a repair refused from now on is not the first fault.
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
                self.repairs.clear()  # these repairs came after the error: an earlier repair would be the error itself
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
