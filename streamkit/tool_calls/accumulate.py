"""Convert wire events to events: assign each fragment to its call, and decide how the stream ended.

**Identity is a vote** of index, id and name (``identity.py``). An index is a label in a dict, never a position.

**Announcing.** A name may arrive in pieces, and arguments may arrive before the name. So a call is announced at its first
argument text, at its end, or at the first delta of another call, and never before the calls mentioned earlier. A first
fragment ``{}`` is held until the next fragment or the end, since some servers send ``{}`` before the real arguments.

**Nothing is finished early.** A call is finished when the protocol ends it (``ToolCallEnded``) or when the stream ends, not
when its text parses. An ended call without arguments waits for more output or the stop reason, since some servers end a call
in which the token limit stopped the model (case 149). Stop reasons are advisory and ranked at the end (``ending.py``). At an
unclean end every open call is finished with ``ended=False``, whatever its text looks like.

This module never repairs argument text, and never splits a call's text in two without an id or index that tells the two apart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, cast

from attrs import evolve

from streamkit.errors import ArgumentsTooLong, MissingCallId, NeedsRepair, StreamArgumentsTooLong, TooManyToolCalls
from streamkit.events import (
    OUTPUT,
    Aside,
    ChoiceStarted,
    Event,
    LastFrameBroken,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StopReasonSeen,
    StreamEnded,
    TerminatorSeen,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallFinished,
    ToolCallStarted,
    ToolCallsWhole,
    ToolCallWhole,
    UsageReported,
    WireEvent,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage
from streamkit.policy import TOLERANT, Policy
from streamkit.report import StreamReport, Withheld
from streamkit.text.identifiers import random_id
from streamkit.tool_calls.call import SHORT, Call, ChoiceState, FragmentRun, SettledCalls
from streamkit.tool_calls.check import verdict_of, verdict_on
from streamkit.tool_calls.ending import (
    CUTTING,
    FAILING,
    calls_nobody,
    failure_in,
    is_cut,
    missing_end,
    stop_reason,
    strongest,
)
from streamkit.tool_calls.identity import Identity
from streamkit.tool_calls.joining import KEYS, join_deltas
from streamkit.tool_calls.repeats import is_object, is_object_or_part, may_follow, may_repeat, paired, rest_of
from streamkit.tool_calls.schema import ToolSchemas

log = logging.getLogger("streamkit.tool_calls")


class ToolCallAccumulator(Link):
    """The machine of ``accumulate_tool_calls``: wire events to events."""

    # These defaults are on the class, not set for each instance: creating a machine then takes two fifths of the time.
    _calls = 0
    _vendor = ""
    _abandoned = False
    _diverts = False  #: True after a failure, and while a call waits for the proof that the model had finished it
    _is_over = False  # True once the input has ended or failed
    _terminator: TerminatorSeen | None = None
    _debug = False
    _identity: Identity | None = None  #: created with ``_settled`` at the first call

    def __init__(
        self,
        *,
        limits: Limits = DEFAULT_LIMITS,
        report: StreamReport | None = None,
        policy: Policy = TOLERANT,
        make_id: Callable[[str], str] = random_id,
        join: bool = False,
        check: bool = False,
        tools: ToolSchemas | None = None,
    ) -> None:
        self.joins = self.waits = join
        self.holds = False  # set on the instance, where it is found faster: each event looks it up
        self.check = check  #: whether this machine adds the verdict to finished calls, instead of a later machine
        self.tools = tools
        self.limits = limits
        self.policy = policy
        self.report = report if report is not None else StreamReport()
        if policy.refuse_repairs:  # before any machine that shares the report has read anything
            self.report.refuse_repairs()
        self.make_id = make_id
        self._choices: dict[int, ChoiceState] = {}
        self._failed = False
        self._deltas: list[Any] = []  # deltas of the current read, held to be joined
        self._settled = NONE_SETTLED

    def push(self, event: WireEvent, /) -> None:
        kind = type(event)
        if (kind is TextDelta or kind is ReasoningDelta) and not self._diverts:  # the most frequent events
            report = self.report
            report.has_output = report.spoken = True
            if self.holds:
                self._deltas.append(event)
            else:
                self.emit(event)
        else:
            self._takes.get(kind, ToolCallAccumulator._carry)(self, event)

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        if self._diverts or self.holds:
            self.push(TextDelta(text, choice, block))
        else:
            report = self.report
            report.has_output = report.spoken = True
            self.next.push_text(text, choice, block)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        if self._diverts or self.holds:
            self.push(ReasoningDelta(text, choice, block, kind))
        else:
            report = self.report
            report.has_output = report.spoken = True
            self.next.push_reasoning(text, choice, block, kind)

    def push_fragment(self, index: int, text: str, choice: int, /) -> None:
        call = None if self.holds else self._settled.grow(index, text, choice)
        if call is None:
            self._fragment(ToolCallDelta(index, None, None, text, choice))
        else:
            report = self.report
            report.has_output = report.spoken = True
            self.next.push_arguments(call, text, choice)

    def push_end(self) -> None:
        self._is_over = True
        self._end()

    def push_batch(self, batch: Sequence[Any], /) -> None:
        self.holds = self.joins and len(batch) > 1
        for item in batch:
            kind = type(item)
            if kind is TextDelta:
                self.push_text(item.text, item.choice, item.block)
            elif kind is ToolCallDelta:
                self._fragment(item)
            else:
                self.push(item)

    def hold(self) -> None:
        self.holds = self.joins

    def end_read(self) -> None:
        self.holds = False
        if self._deltas:
            self._emit_deltas()

    def _emit_deltas(self) -> None:
        deltas, self._deltas = self._deltas, []
        for event in deltas if len(deltas) < 2 else join_deltas(deltas):
            self.emit(event)

    def _give(self, event: Event) -> None:
        """Emit an event that is not a delta, after the held deltas."""
        if self._deltas:
            self._emit_deltas()
        self.emit(event)

    def _grow(self, delta: Event) -> None:
        """Emit a delta, or hold it until the end of the read."""
        if not self._is_over:
            self.report.has_output = self.report.spoken = True
        if self.holds:
            self._deltas.append(delta)
        else:
            self.emit(delta)

    def _grow_call(self, call: int, delta: ToolCallDelta) -> None:
        """Emit the text of a fragment that was added to the call with the ordinal ``call``."""
        text = delta.arguments or ""
        if self.holds or self._is_over:
            self._grow(ToolCallArguments(call, text, delta.choice))
        else:
            report = self.report
            report.has_output = report.spoken = True
            self.next.push_arguments(call, text, delta.choice)

    def _end(self) -> None:
        if not self._calls and not self._failed and len(self._choices) == 1:
            [(number, choice)] = self._choices.items()
            seen = choice.reasons[0] if len(choice.reasons) == 1 else None
            is_torn = self.report.broken_frame is not None
            if seen is not None and seen.reason not in CORRECTED and not choice.refused and not is_torn:
                # shortcut for text with one valid stop reason, in a third of the time
                self.report.clean = True
                finished = ResponseFinished(seen.reason, seen.native or None, number, seen.stop_sequence)
                self.report.stops = (finished,)
                self._give(finished)
                self._give(StreamEnded(clean=True))
                return
        if self._calls:
            self._settle_doubts()
        reason = self._missing_end()
        if reason is None:
            if (
                self.report.broken_frame is not None and not self._abandoned
            ):  # an error in the input is counted elsewhere
                self.report.repair("fault_after_end")
            if self._calls:
                self._finish_calls(ended=True)
            depth = self.limits.json_depth
            stops = [stop_reason(number, choice, self.report, depth) for number, choice in self._choices.items()]
            self.report.stops = tuple(stops)
            for stop in stops:
                self._give(stop)
        else:
            self._finish_calls(ended=False)
        self.report.clean = reason is None
        self._give(StreamEnded(reason is None, reason))

    def _is_whole(self) -> bool:
        if self._failed or self.fault is not None or not self._choices or self.policy.refuse_repairs:
            return False
        if any(map(calls_nobody, self._choices.values())):
            return False
        return all(choice.reasons and strongest(choice).reason not in FAILING for choice in self._choices.values())

    def _missing_end(self) -> str | None:
        if not self._failed:
            reason = missing_end(self._choices, self._terminator, self.report, self.policy, self.limits.json_depth)
            if reason is not None:
                return reason if self.report.broken_frame is None else f"{reason} (cut inside a frame)"
            for choice in self._choices.values():
                # the stop reason is the only sign of some failures: abort, MALFORMED_FUNCTION_CALL
                if (best := strongest(choice)).reason in FAILING:
                    self._fail(failure_in(best))
            if self._calls and self.report.failure is None and any(map(calls_nobody, self._choices.values())):
                self._fail(ProviderFailed("server", "the model called a tool without a name", code="call_nameless"))
        return "the provider reported an error" if self._failed else None

    @property
    def failed_in_own_words(self) -> bool:
        """True if all failures are stop reasons that every client of the dialect reads as failures."""
        choices = self._choices.values()
        failing = [seen for choice in choices if choice.reasons and (seen := strongest(choice)).reason in FAILING]
        return bool(failing) and all(seen.ends_failed for seen in failing) and not any(map(calls_nobody, choices))

    def push_rest(self) -> None:
        self._is_over = self._abandoned = self.report.failing = True
        with suppress(NeedsRepair):  # if a repair is refused, leave the doubtful text as received
            self._settle_doubts()
        # a failure after the completion point is ignored (law L3)
        if self._is_whole():
            self._end()
            return
        self.report.clean = False
        self._finish_calls(ended=False)

    # -- events ----------------------------------------------------------------------------------------------------

    def _stop_reason(self, event: StopReasonSeen) -> None:
        reasons = (self._choices.get(event.choice) or self._choice(event.choice)).reasons
        if all(seen.reason != event.reason for seen in reasons):  # a repeated reason adds nothing
            reasons.append(event)
        if self._diverts and event.reason not in CUTTING:
            self._announce_ended(event.choice)

    def _terminated(self, event: TerminatorSeen) -> None:
        self._terminator = event
        self.report.terminated = True

    def _broken(self, event: LastFrameBroken) -> None:
        self.report.broken_frame = event.raw

    def _started(self, event: ResponseStarted) -> None:
        self._vendor = event.vendor
        self.report.started = event
        self._give(event)

    def _choice_started(self, event: ChoiceStarted) -> None:
        if not self._failed:
            self._choice(event.choice)
            self._give(event)

    def _counted(self, event: UsageReported) -> None:
        if event.counts:
            self.report.usage = event
        self._give(event)

    def _carry(self, event: Any) -> None:
        """Emit an event unchanged, or drop an event after an error."""
        kind = type(event)
        if self._failed:
            self.report.repair("after_error")
            return
        is_output = kind in OUTPUT or (kind is Aside and event.kind in SPOKEN_ASIDES)
        if is_output and self._diverts:
            self._announce_ended(event.choice)
        if kind is RefusalDelta:
            self._choice(event.choice).refused = True
            self.report.refused = self.report.refused or not self.report.spoken
        if kind in KEYS:
            self._grow(event)
        elif is_output:
            self._speak(event)
        else:
            self._give(event)

    def _announce_ended(self, number: int) -> None:
        """Announce the ended calls of a choice that waited: more output follows, so the model had finished them."""
        self._diverts = False
        for each, choice in self._choices.items():
            while choice.announced < len(choice.calls) and (call := choice.calls[choice.announced]).ended:
                if each != number:
                    self._diverts = True
                    break
                self._start(choice, call)

    def _speak(self, event: Event) -> None:
        """Emit output of the model, and note in the report that there was output."""
        if not self._is_over:
            self.report.has_output = self.report.spoken = True
        self._give(event)

    def _fragment(self, delta: ToolCallDelta) -> None:
        """Take the fields of a call in one frame. Nearly always they only add text to a settled call: nothing to decide."""
        if (call := self._settled.grown(delta)) is not None:
            self._grow_call(call, delta)
        elif self._failed:
            self.report.repair("after_error")
        else:
            self._delta(delta)

    def _choice(self, number: int) -> ChoiceState:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = ChoiceState()
        return choice

    def _fail(self, event: ProviderFailed) -> None:
        if self._failed:
            self.report.repair("after_error")
            return
        self._failed = self._diverts = True
        self._settled.calls.clear()
        self._settle_doubts()
        self.report.provider_error = (event.type, event.message)
        self.report.failure = event
        self._finish_calls(ended=False)
        self._give(event)

    def _ended(self, event: ToolCallEnded) -> None:
        self._settled.calls.clear()
        choice = self._choice(event.choice)
        call = choice.by_index.get(event.index)
        if call is None or call.ended:
            return
        if call.doubt is not None:
            self._settle_doubt(call)
        if not event.whole:
            call.incomplete = True
            return
        call.ended = True
        if call.echo is not None:
            self._settle_echo(choice, call, call.echo, ended=True)
        self._emit_call(choice, call)
        self._diverts = self._diverts or not call.finished

    def _fragments(self, run: FragmentRun) -> None:
        """Take many fragments at once if none needs a decision, else one by one."""
        choice = self._choices.get(run.choice)
        grown = None if choice is None or self._failed else self._settled.grown_together(choice, run)
        if grown is None:
            left = len(run.texts)
            try:
                for index, text in zip(run.indices, run.texts, strict=True):
                    left -= 1  # each fragment is one frame
                    self._fragment(ToolCallDelta(index, None, None, text, run.choice))
            except Exception:
                self.report.frames -= left
                raise
            return
        for arguments in grown:
            self._grow(arguments)

    # -- one delta -------------------------------------------------------------------------------------------------

    def _delta(self, delta: ToolCallDelta) -> None:
        choice = self._choices.get(delta.choice) or self._choice(delta.choice)
        if delta.id is None and delta.name is None and (grown := self._settled.add(choice, delta)) is not None:
            self._grow_call(grown, delta)
            return
        if self._identity is None:
            self._identity = Identity(self.limits, self.report, self.policy, self.make_id)
            self._debug = log.isEnabledFor(logging.DEBUG)
            careful = self._debug or self.policy.two_objects == "split"
            self._settled = SettledCalls(self.limits, careful=careful)
        self._settled.calls.clear()
        call, is_new = self._identity.place(choice, delta)
        if delta.extras or delta.signature is not None:
            self._late_extras(call, delta)
        call.is_ended_by_wire = call.is_ended_by_wire or delta.is_ended_by_wire
        if is_new:
            if self._calls >= self.limits.tool_calls:
                raise TooManyToolCalls(self.limits.tool_calls)
            self._calls += 1
            choice.calls.append(call)
        elif call.ended:
            self._late(call, delta)
            return
        before = call.text.chars
        if delta.arguments:
            self._arguments(call, delta)
            if call.echo is not None and not _echoes(call, call.echo.repeated, delta.arguments, before):
                self._tell_apart(call)
        self._emit_call(choice, call)
        if self._debug and delta.arguments:
            added = call.text.chars - before
            log.debug("call %s: %+d characters, %d in all", call.id or call.name, added, call.text.chars)

    def _tell_apart(self, call: Call) -> None:
        """Keep a call that has the id and name of an earlier call, and give it a new id: the arguments of the two differ."""
        call.echo = None
        cast("Identity", self._identity).duplicate(call)

    def _settle_echo(self, choice: ChoiceState, call: Call, first: Call, *, ended: bool) -> None:
        """Drop a finished call that repeats ``first``. At a clean end (``ended``), also drop a call that has no text yet."""
        is_start = ended and first.ended and not (call.text.chars or call.ended)
        repeats = call.text.chars == first.text.chars and call.text.equals(first.text.whole())
        if not (repeats or is_start):
            self._tell_apart(call)
            return
        self.report.repair("arguments_repeated")
        call.ended = call.finished = True
        if choice.calls[-1] is call:  # nearly always true
            choice.calls.pop()
        else:
            choice.calls.remove(call)
        if call.index is not None:
            choice.by_index[call.index] = first
        choice.last = first
        self._late_extras(first, ToolCallDelta(extras=call.extras, signature=call.signature, choice=call.choice))

    def _late_extras(self, call: Call, delta: ToolCallDelta) -> None:
        """Emit an aside (lost in other dialects) for fields that arrived after the announcement or with a second value."""
        for name, value in (delta.extras or {}).items():
            if (call.extras or {}).get(name) != value:
                self._give(Aside(self._vendor, "unknown_event", f"late:{name}", value, call.choice))
        if delta.signature is not None and delta.signature != call.signature:
            blob = delta.signature.blob
            self._give(Aside(self._vendor, "unknown_event", "late:signature", blob, call.choice))

    def _arguments(self, call: Call, delta: ToolCallDelta) -> None:
        fragment = delta.arguments or ""
        self._settled.chars += len(fragment)
        if call.text.chars + len(fragment) > self.limits.arguments_chars:
            raise ArgumentsTooLong(self.limits.arguments_chars)
        if self._settled.chars > self.limits.stream_arguments_chars:
            raise StreamArgumentsTooLong(self.limits.stream_arguments_chars)
        if not call.text.chars:  # first fragment: there is nothing to compare it with
            call.snapshot = delta.snapshot
            call.append(fragment)
        elif delta.snapshot and not call.sent:
            self.report.repair("arguments_replaced")
            call.snapshot = True
            call.replace(fragment)
        elif call.kind == "custom":  # free text that looks like JSON twice means it
            call.append(fragment)
        elif call.holds_empty_object and fragment.lstrip().startswith("{"):
            call.snapshot = False
            self.report.repair("empty_object_prefix")
            call.replace(fragment)
        elif (
            len(fragment) == call.text.chars > 2
            and call.is_complete(self.limits.json_depth)
            and call.text.equals(fragment)
        ):
            self.report.repair("arguments_repeated")
        else:
            if call.doubt is not None:
                self._settle_doubt(call, fragment)
            call.append(self._added(call, fragment) if may_repeat(fragment, call.text.chars) else fragment)

    def _added(self, call: Call, fragment: str) -> str:
        """Return the new part of a fragment: some providers repeat all earlier text in each fragment (``repeats.py``)."""
        before, depth = call.text.whole(), self.limits.json_depth
        rest = rest_of(fragment, before, depth)
        if rest is None or not is_object_or_part(fragment, depth):
            return fragment
        if not call.cumulative and may_follow(fragment, before, depth):
            call.doubt = len(before)
            return fragment
        self.report.repair("arguments_cumulative")
        call.cumulative = True
        return rest

    def _settle_doubt(self, call: Call, fragment: str | None = None) -> None:
        """Decide whether the last fragment repeated all earlier text. The next ``fragment`` shows this, or the call's end."""
        whole, begin, depth = call.text.whole(), cast("int", call.doubt), self.limits.json_depth
        call.doubt, last = None, whole[begin:]
        if fragment is None:
            again = is_object(last, depth) and not is_object(whole, depth)
        else:
            again = fragment.startswith(last) and not may_follow(fragment, whole, depth)
        rest = rest_of(last, whole[:begin], depth) if again else None
        if rest is not None:
            self.report.repair("arguments_cumulative")
            call.cumulative = True
            call.become(whole[:begin] + rest)  # ``whole`` has the white space that was already emitted

    def _settle_doubts(self) -> None:
        for choice in self._choices.values():
            for call in choice.calls:
                if call.doubt is not None:
                    self._settle_doubt(call)

    def _whole(self, event: ToolCallWhole) -> None:
        """Take the whole text of a call, sent after its fragments, and add the missing part. Emitted fragments stay."""
        if self._failed:
            self.report.repair("after_error")
            return
        self._settled.calls.clear()
        choice = self._choice(event.choice)
        call = choice.by_index.get(event.index)
        if call is not None:
            self._whole_text(choice, call, event.arguments)

    def _wholes(self, event: ToolCallsWhole) -> None:
        """Take the list of all calls, sent after their fragments. Match each by id, text, index or name, or add a new call."""
        if self._failed:
            self.report.repair("after_error")
            return
        self._settled.calls.clear()
        choice = self._choice(event.choice)
        ids: dict[int, set[str]] = {id(each): set() if each.id is None else {each.id} for each in choice.calls}
        for known, each in choice.by_id.items():
            ids.setdefault(id(each), set()).add(known)
        calls = paired(
            event.calls, choice.calls,
            lambda whole, call: bool(whole.id) and whole.id in ids[id(call)],
            lambda whole, call: _may_be(whole, call) and call.text.equals(whole.arguments or ""),
            lambda whole, call: _may_be(whole, call) and whole.index is not None and choice.by_index.get(whole.index) is call,
            _may_be,
        )  # fmt: skip
        for whole, call in zip(event.calls, calls, strict=True):
            if call is None:
                self._delta(evolve(whole, index=1 + max(choice.by_index, default=-1)))
                continue
            if whole.name and call.name is None:
                call.name = whole.name
            if whole.id and call.id is None and whole.id not in choice.by_id:
                call.id, choice.by_id[whole.id] = whole.id, call
            self._whole_text(choice, call, whole.arguments or "")

    def _whole_text(self, choice: ChoiceState, call: Call, text: str) -> None:
        if not text.strip():
            return
        if call.doubt is not None:
            self._settle_doubt(call)
        came = call.text.chars
        # the fragments are joined only if the whole text is long enough to continue them
        goes_on = len(text) >= came and text.startswith(call.text.whole())
        if goes_on and len(text) == came:
            return
        if goes_on and not call.ended:
            if came:
                self.report.repair("fragments_missing")
            self._arguments(call, ToolCallDelta(arguments=text[came:]))
            self._emit_call(choice, call)
        elif call.sent or call.ended:
            if not call.differs and not self._is_same(call, text):
                call.differs = True
                self._set_aside("whole_differs", call, text)
        else:
            self._arguments(call, ToolCallDelta(arguments=text, snapshot=True))

    def _is_same(self, call: Call, text: str) -> bool:
        """Return whether a whole text equals a call's text, white space aside. A much too short text is not compared."""
        if call.kind == "custom":
            return call.text.equals(text)
        is_near = call.text.chars <= SPACED * len(text) + SHORT
        return is_near and rest_of(text, call.text.whole(), self.limits.json_depth) == ""

    def _late(self, call: Call, delta: ToolCallDelta) -> None:
        """Keep text that arrived after the protocol had ended the call in the report, not in the call."""
        if delta.snapshot and call.text.equals(delta.arguments or ""):
            # a whole call, sent again (quirks.md 22: some servers repeat whole calls)
            self.report.repair("arguments_repeated")
        elif delta.arguments and delta.arguments.strip():
            self._set_aside("arguments_late", call, delta.arguments)

    def _set_aside(self, repair: str, call: Call, text: str) -> None:
        self.report.repair(repair)
        self._settled.chars += len(text)
        if self._settled.chars > self.limits.stream_arguments_chars:
            raise StreamArgumentsTooLong(self.limits.stream_arguments_chars)
        self.report.keep(Withheld(repair, call.id, call.name, text))

    # -- announcing and emitting ---------------------------------------------------------------------------------------

    def _emit_call(self, choice: ChoiceState, call: Call) -> None:
        """Emit the new text of ``call``, if the call is announced, and announce the calls that waited for this delta."""
        if call.ordinal is not None:
            self._send(call)
        while choice.announced < len(choice.calls) and self._can_announce(choice, choice.calls[choice.announced]):
            self._start(choice, choice.calls[choice.announced])

    def _can_announce(self, choice: ChoiceState, call: Call) -> bool:
        if call.ended:  # the last call without arguments may be a call that the token limit truncated
            return call is not choice.last or bool(call.text.whole().strip())
        return (
            call.name is not None
            and call.echo is None
            and (call is not choice.last or (call.unsent.chars > 0 and not call.holds))
        )

    def _start(self, choice: ChoiceState, call: Call) -> None:
        if call.id is None:
            if not call.anonymous:
                if self.policy.missing_id == "refuse" and not self._abandoned:
                    raise MissingCallId(f"the call of {call.name or 'a function without a name'} has no id")
                self.report.repair("id_missing")
            call.id, call.id_made = self.make_id("call_"), True
        if call.name is None:
            self.report.repair("call_nameless")
        call.ordinal = choice.announced
        choice.announced += 1
        if self._debug:
            log.debug("call %s: started as number %d: %s", call.id, call.ordinal, call.name)
        name = call.name or ""
        cut = call.incomplete and not call.text.whole().strip()
        self._speak(
            ToolCallStarted(
                call.ordinal, call.id, name, call.choice, call.kind, call.extras, call.signature, call.id_made, cut=cut
            )
        )
        self._send(call)

    def _send(self, call: Call) -> None:
        """Emit the held text of an announced call, and finish the call if the wire ended it."""
        if call.unsent.chars and (call.ended or not call.holds):
            text = call.unsent.take()
            call.sent = True
            self._grow(ToolCallArguments(call.ordinal, text, call.choice))  # type: ignore[arg-type] # announced
        if call.ended and not call.finished:
            self._finish(call, ended=True)

    def _finish(self, call: Call, *, ended: bool) -> None:
        call.finished = True
        text = call.text.whole()
        if self._debug:
            log.debug("call %s: finished with %d characters%s", call.id, len(text), "" if ended else ", not ended")
        number: Any = call.ordinal  # the ordinal and the id are set, since the call is announced
        finished = ToolCallFinished(number, call.id, call.name or "", text, call.choice, call.kind, ended)  # type: ignore[arg-type]
        if self.check:
            finished.verdict = verdict_on(finished, self.limits, self.report, self.tools)
        call.truncated = (finished.verdict or verdict_of(finished, self.limits)).kind == "truncated"
        self._give(finished)

    def _finish_calls(self, *, ended: bool) -> None:
        """At the end of the stream, announce the waiting calls and finish the open calls, in order of first mention."""
        for choice in self._choices.values():
            if choice.announced < len(choice.calls):
                try:
                    self._announce_all(choice, ended=ended)
                except NeedsRepair:
                    if not self._abandoned:
                        raise
            for call in choice.calls:
                if not call.finished and call.ordinal is not None:  # a call whose repair was refused is not announced
                    call.snapshot, call.sent = False, True  # so that ``holds`` is False: nothing waits at the end
                    if call.unsent.chars or call.ended:
                        self._send(call)
                    self._finish(call, ended=ended and not is_cut(choice, call))

    def _announce_all(self, choice: ChoiceState, *, ended: bool) -> None:
        for call in choice.calls[choice.announced :]:
            if call.echo is not None:
                self._settle_echo(choice, call, call.echo, ended=ended)
        for call in choice.calls[choice.announced :]:
            if call.name is None and not call.text.chars:
                self.report.repair("call_ghost")  # quirks.md 33: some servers send an empty call
                choice.calls.remove(call)
            else:
                if ended and is_cut(choice, call):
                    call.ended, call.incomplete = False, True
                self._start(choice, call)

    #: The method that handles each class of wire event. Events of other classes are emitted unchanged.
    _takes: ClassVar[Mapping[type, Callable[[ToolCallAccumulator, Any], None]]] = {
        ToolCallDelta: _fragment,
        FragmentRun: _fragments,
        ResponseStarted: _started,
        ChoiceStarted: _choice_started,
        UsageReported: _counted,
        ToolCallWhole: _whole,
        ToolCallsWhole: _wholes,
        ToolCallEnded: _ended,
        StopReasonSeen: _stop_reason,
        TerminatorSeen: _terminated,
        LastFrameBroken: _broken,
        ProviderFailed: _fail,
    }


SPACED = 16  #: compare a text with its form without white space only if it is at most this many times as long
NONE_SETTLED = SettledCalls(DEFAULT_LIMITS, careful=True)  #: the value of ``_settled`` before the first call
CORRECTED = FAILING | {"tool_calls"}  #: stop reasons that need a correction for a choice without calls


def _echoes(call: Call, earlier: str, fragment: str, before: int) -> bool:
    """Return whether a call may still repeat the ``earlier`` call's arguments. Its ``fragment`` was added at ``before``."""
    if call.text.chars == before + len(fragment):
        return earlier.startswith(fragment, before)
    return earlier.startswith(call.text.whole())


def _may_be(whole: ToolCallDelta, call: Call) -> bool:
    """Return whether ``whole`` may repeat ``call``: neither the id nor the name contradicts that."""
    if whole.id and call.id is not None and not call.id_made and whole.id != call.id:
        return False
    return not whole.name or call.name is None or whole.name == call.name


SPOKEN_ASIDES = frozenset({"server_tool", "citation", "audio"})  #: asides that are output of the model


def accumulate_tool_calls(
    *,
    limits: Limits = DEFAULT_LIMITS,
    policy: Policy = TOLERANT,
    make_id: Callable[[str], str] = random_id,
    join: bool = False,
) -> Stage[list[WireEvent], list[Event]]:
    """Create a stage that turns wire events into events, so that each call has a final id, a final name and an end.

    Put the stage after ``decode``. ``policy`` says which faults to tolerate. If ``policy`` refuses repairs, all stages
    of the pipe refuse repairs. ``make_id(prefix)`` makes an id for a call that has none. The ids must be unique in the
    whole conversation (quirks.md 34), because otherwise a tool result may match the wrong call. With ``join=True``, all
    deltas of one block or call in the same batch become one delta.
    """
    return Stage(
        "accumulate_tool_calls",
        lambda report: ToolCallAccumulator(limits=limits, report=report, policy=policy, make_id=make_id, join=join),
        takes="wire events",
        gives="events",
    )


def says_something(events: Sequence[Any]) -> bool:
    """Return whether the events hold output of the model. A start, a token count or a stop reason is no output."""
    for event in events:
        kind = type(event)
        if kind in OUTPUT or kind is ToolCallArguments or (kind is Aside and event.kind in SPOKEN_ASIDES):
            return True
    return False
