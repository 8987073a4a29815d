"""Which fragment belongs to which call: small sequences of deltas, each with the calls and the repairs it must give.

Rows cite the catalogue's case numbers (quirks.md §1-§5). ``made`` stands for an id that was made.
"""

from __future__ import annotations

import gc
import logging
import tracemalloc
from itertools import count
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.errors import ArgumentsTooLong, NameTooLong, StreamArgumentsTooLong, TooManyToolCalls
from streamkit.events import (
    Aside,
    ChoiceStarted,
    Event,
    LastFrameBroken,
    Opaque,
    ProviderFailed,
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
    ToolCallWhole,
    UsageReported,
    WireEvent,
)
from streamkit.limits import Limits
from streamkit.policy import STRICT, Policy
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.call import EXTRAS
from streamkit.tool_calls.check import JSONChecker, check_arguments
from streamkit.tool_calls.identity import IDS
from tests.tool_calls.deltas import ALL, END, ONE, TWO, X, Y, again, d, whole

MADE = "made"


STOP = StopReasonSeen("stop", "stop")
CALLS = StopReasonSeen("tool_calls", "tool_calls")
LENGTH = StopReasonSeen("length", "length")
DONE = TerminatorSeen(derives_calls=True)


def accumulate(
    events: list[WireEvent], *, batches: list[list[WireEvent]] | None = None
) -> tuple[list[Event], StreamReport]:
    report, made = StreamReport(), count()
    machine = ToolCallAccumulator(report=report, make_id=lambda prefix: f"{prefix}{MADE}{next(made)}")
    out = [event for batch in (batches if batches is not None else [events]) for event in machine.feed(batch)]
    assert machine.fault is None
    return out + machine.finish(), report


def calls_of(events: list[Event], choice: int = 0) -> list[tuple[str, str, str]]:
    """The finished calls by ordinal, once it is shown that start, fragments and end of each agree."""
    finished = sorted(
        (e for e in events if type(e) is ToolCallFinished and e.choice == choice), key=lambda event: event.call
    )
    started = [e for e in events if type(e) is ToolCallStarted and e.choice == choice]
    assert [e.call for e in started] == [e.call for e in finished] == list(range(len(started)))
    for start, end in zip(started, finished, strict=True):
        assert (start.id, start.name, start.kind) == (end.id, end.name, end.kind)
        mine = [e for e in events if getattr(e, "call", None) == end.call and e.choice == choice]
        assert mine[0] is start
        assert mine[-1] is end
        assert "".join(e.fragment for e in mine[1:-1] if type(e) is ToolCallArguments) == end.arguments
    ids = [end.id for end in finished]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    assert all(made.startswith(f"call_{MADE}") for made in ids if MADE in made)
    return [(MADE if MADE in end.id else end.id, end.name, end.arguments) for end in finished]


#: What each row is called (with its cases), the deltas, the calls, the repairs. Every row ends with ``tool_calls``.
ROWS: list[tuple[str, list[WireEvent], list[tuple[str, str, str]], dict[str, int]]] = [
    # the shape that needs nothing
    ("by the book", [d(0, "a", "f", ""), d(0, arguments="{"), d(0, arguments="}")], [("a", "f", "{}")], {}),
    (
        "two by the book",
        [d(0, "a", "f", ""), d(0, arguments="{}"), d(1, "b", "g", ""), d(1, arguments='{"x":1}')],
        [("a", "f", "{}"), ("b", "g", '{"x":1}')],
        {},
    ),
    # §1: index missing
    ("1: whole calls without index", [d(None, "a", "f", "{}"), d(None, "b", "g", "{}")], [("a", "f", "{}"), ("b", "g", "{}")], {"index_missing": 2}),
    ("2: fragments without index", [d(None, "a", "f", "{"), d(arguments='"x":'), d(arguments="1}")], [("a", "f", '{"x":1}')], {"index_missing": 3}),
    ("2: a known id finds its call", [d(None, "a", "f", "{"), d(None, "b", "g", "{}"), d(None, "a", None, "}")], [("a", "f", "{}"), ("b", "g", "{}")], {"index_missing": 3, "id_repeated": 1}),
    ("3, 40: no index, and arguments before the name", [d(arguments='{"x":'), d(arguments="1}"), d(None, "a", "f")], [("a", "f", '{"x":1}')], {"index_missing": 3}),
    ("4: an absent index is not 0", [d(0, "a", "f", "{}"), d(None, "b", "g", "{}")], [("a", "f", "{}"), ("b", "g", "{}")], {"index_missing": 1}),
    ("5: no index, no id, one call after another", [d(None, None, "f", "{}"), d(None, None, "g", "{}")], [(MADE, "f", "{}"), (MADE, "g", "{}")], {"index_missing": 2, "id_missing": 2}),
    ("7: only the continuation lacks its index", [d(0, "a", "f", "{"), d(None, None, None, "}")], [("a", "f", "{}")], {"index_missing": 1}),
    ("8: the id null as a word", [d(0, "null", "f", "{}"), d(1, "null", "g", "{}")], [(MADE, "f", "{}"), (MADE, "g", "{}")], {"identity_blank": 2, "id_missing": 2}),
    # §2: index constant, reused, duplicated
    ("9: index 0 for two calls of one function", [d(0, "a", "f", ""), d(0, "b", "f", ""), d(0, "a", None, '{"x":1}'), d(0, "b", None, '{"x":2}')], [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')], {"index_reused": 1, "id_repeated": 2}),
    ("18: another id for the same call, with its text", [d(0, "a", "f", ""), d(0, "b", "f", '{"x":1}')], [("a", "f", '{"x":1}')], {"id_changed": 1, "name_repeated": 1}),
    ("9: one id for two functions", [d(0, "x", "f", ""), d(1, "x", "g", ""), d(0, arguments="{}"), d(1, arguments='{"y":1}')], [("x", "f", "{}"), (MADE, "g", '{"y":1}')], {"id_duplicate": 1}),
    ("9, 10: every call at index 0", [d(0, "a", "f", '{"p":1}'), d(0, "b", "f", '{"p":2}')], [("a", "f", '{"p":1}'), ("b", "f", '{"p":2}')], {"index_reused": 1}),
    ("9, 23: index 0 and no id at all", [d(0, None, "f", '{"p":1}'), d(0, None, "g", '{"p":2}')], [(MADE, "f", '{"p":1}'), (MADE, "g", '{"p":2}')], {"index_reused": 1, "id_missing": 2}),
    ("12: per-call servers restart at 0", [d(0, "a", "f", "{"), d(0, None, None, "}"), d(0, "b", "g", "{"), d(0, None, None, "}")], [("a", "f", "{}"), ("b", "g", "{}")], {"index_reused": 1}),
    ("13: same index, another id and name before the first was complete", [d(0, "a", "f", ""), d(0, "b", "g", "{}")], [("a", "f", ""), ("b", "g", "{}")], {"index_reused": 1}),
    ("13: same index, another id, same name, first complete", [d(0, "a", "f", "{}"), d(0, "b", "f", "{}")], [("a", "f", "{}"), ("b", "f", "{}")], {"index_reused": 1}),
    ("14, 82: indices with gaps", [d(3, "a", "f", "{}"), d(7, "b", "g", "{}")], [("a", "f", "{}"), ("b", "g", "{}")], {}),
    ("15: one call at several indices", [d(0, "a", "f", "{"), d(1, "a", None, "}")], [("a", "f", "{}")], {"index_changed": 1, "id_repeated": 1}),
    ("16: a second call does not get the first one's arguments", [d(0, "a", "f", "{}"), d(1, "b", "g", '{"city":'), d(1, None, None, '"Boston"}')], [("a", "f", "{}"), ("b", "g", '{"city":"Boston"}')], {}),
    ("17: interleaved arguments", [d(0, "a", "f", ""), d(1, "b", "g", ""), d(1, None, None, "[1"), d(0, None, None, "[0"), d(1, None, None, "]"), d(0, None, None, "]")], [("a", "f", "[0]"), ("b", "g", "[1]")], {}),
    ("18: a new id on each delta of one call", [d(0, "a", "f", "{"), d(0, "b", None, '"x":1'), d(0, "c", None, "}")], [("a", "f", '{"x":1}')], {"id_changed": 2}),
    ("18: and the name again with it", [d(0, "a", "f", "{"), d(0, "b", "f", '"x":1'), d(0, "c", "f", "}")], [("a", "f", '{"x":1}')], {"id_changed": 2, "name_repeated": 2}),
    ("19: two entries of one index in one chunk", [d(0, "a", "f", ""), d(0, None, None, "{}")], [("a", "f", "{}")], {}),
    ("20: later parts with a blank name", [d(0, "a", "f", "{"), d(0, "a", "", "}")], [("a", "f", "{}")], {"identity_blank": 1, "id_repeated": 1}),
    ("21: nothing is split without proof", [d(0, "a", "f", '{"x":'), d(0, None, "f", '{"y":1}'), d(0, None, None, "}")], [("a", "f", '{"x":{"y":1}}')], {"name_repeated": 1}),
    ("22: two calls of one tool at index 0 without ids", [d(0, None, "f", '{"p":1}'), d(0, None, "f", '{"p":2}')], [(MADE, "f", '{"p":1}'), (MADE, "f", '{"p":2}')], {"index_reused": 1, "id_missing": 2}),
    ("22: a call that is sent again", [d(0, "a", "f", '{"p":1}'), d(0, "a", "f", '{"p":1}')], [("a", "f", '{"p":1}')], {"id_repeated": 1, "name_repeated": 1, "arguments_repeated": 1}),
    # §3: id
    ("23: white space for an id on a continuation", [d(0, "a", "f", "{"), d(0, " ", None, "}")], [("a", "f", "{}")], {"identity_blank": 1}),
    ("24: blank id and name on continuations", [d(0, "a", "f", "{"), d(0, "", "", "}")], [("a", "f", "{}")], {"identity_blank": 2}),
    ("25: None for id and name", [d(0, "a", "f", "{"), d(0, "None", "null", "}")], [("a", "f", "{}")], {"identity_blank": 2}),
    ("26, 28: an id that never comes", [d(0, None, "f", "{"), d(0, None, None, "}")], [(MADE, "f", "{}")], {"id_missing": 1}),
    ("29: an id in the first fragment alone", [d(0, "a", "f"), d(0, None, None, "{"), d(0, None, None, "}")], [("a", "f", "{}")], {}),
    ("30, 31: an id in every fragment", [d(0, "call_1", "f"), d(0, "call_1", None, "{"), d(0, "call_1", None, "}")], [("call_1", "f", "{}")], {"id_repeated": 2}),
    ("32: the id of later chunks differs", [d(0, "a", "f", "{"), d(0, "b", None, "}")], [("a", "f", "{}")], {"id_changed": 1}),
    ("33: a ghost", [d(0, "a", "f", "{}"), d(1, "", None, None)], [("a", "f", "{}")], {"identity_blank": 1, "call_ghost": 1}),
    ("33: a ghost between two calls", [d(0, "a", "f", "{}"), d(1, "g"), d(2, "b", "h", "{}")], [("a", "f", "{}"), ("b", "h", "{}")], {"call_ghost": 1}),
    ("35: the tool's name for an id, twice", [d(0, "f", "f", "{}"), d(1, "f", "f", '{"x":1}')], [("f", "f", "{}"), (MADE, "f", '{"x":1}')], {"id_duplicate": 1}),
    ("an id that comes late", [d(0, None, "f"), d(0, "a", None, "{}")], [("a", "f", "{}")], {}),
    # §4: name
    ("36: the name in every chunk", [d(0, "a", "read_file", ""), d(0, None, "read_file", "{"), d(0, None, "read_file", "}")], [("a", "read_file", "{}")], {"name_repeated": 2}),
    ("37: name and complete arguments again under one index", [d(0, "a", "f", '{"x":1}'), d(0, None, "f", '{"x":2}')], [("a", "f", '{"x":1}'), (MADE, "f", '{"x":2}')], {"index_reused": 1, "id_missing": 1}),
    ("38: a name in pieces", [d(0, "a", "edit_ex"), d(0, None, "isting_file"), d(0, None, None, "{}")], [("a", "edit_existing_file", "{}")], {"name_pieces": 1}),
    ("39: consecutive calls of one tool", [d(0, "a", "web_search", "{}"), d(1, "b", "web_search", "{}")], [("a", "web_search", "{}"), ("b", "web_search", "{}")], {}),
    ("40: arguments before the name", [d(0, "a", None, "{"), d(0, None, None, "}"), d(0, None, "f")], [("a", "f", "{}")], {}),
    ("40: a late name keeps its place", [d(0, "a", None, "{"), d(1, "b", "g", "{}"), d(0, None, "f", "}")], [("a", "f", "{}"), ("b", "g", "{}")], {}),
    ("40: a name that never comes", [d(0, "a", None, "{}")], [("a", "", "{}")], {"call_nameless": 1}),
    ("40: a nameless complete call is not the next one", [d(0, "a", None, "{}"), d(0, None, "f", '{"x":1}')], [("a", "", "{}"), (MADE, "f", '{"x":1}')], {"index_reused": 1, "call_nameless": 1, "id_missing": 1}),
    ("40: not even if the next one has an id", [d(0, None, None, '{"y":2}'), d(0, "a", "f", '{"x":1}')], [(MADE, "", '{"y":2}'), ("a", "f", '{"x":1}')], {"index_reused": 1, "call_nameless": 1, "id_missing": 1}),
    ("40: id and name late together", [d(0, None, None, '{"y":2}'), d(0, "a", "f", "")], [("a", "f", '{"y":2}')], {}),
    ("another name after arguments", [d(0, "a", "f", '{"x":'), d(0, None, "g", "1}")], [("a", "f", '{"x":1}')], {"name_changed": 1}),
    # §5: argument values
    ("41, 42: arguments that stay blank", [d(0, "a", "f", ""), d(0, None, None, "")], [("a", "f", "")], {}),
    ("43, 44: arguments null", [d(0, "a", "f", None)], [("a", "f", "")], {}),
    ("45: a seed of {} before the real arguments", [d(0, "a", "f", "{}"), d(0, None, None, '{"a":'), d(0, None, None, "1}")], [("a", "f", '{"a":1}')], {"empty_object_prefix": 1}),
    ("45: {} alone stays", [d(0, "a", "f", "{}")], [("a", "f", "{}")], {}),
    ("45: {} and white space", [d(0, "a", "f", "{}"), d(0, None, None, " ")], [("a", "f", "{} ")], {}),
    ("46: an object's text", [whole('{"a":1.0}', index=0, id="a", name="f")], [("a", "f", '{"a":1.0}')], {}),
    ("48: digits and key order", [d(0, "a", "f", '{"z":18446744073709551616,'), d(0, None, None, '"a":1.0}')], [("a", "f", '{"z":18446744073709551616,"a":1.0}')], {}),
    ("49: a later whole value replaces", [whole('{"a":1}', index=0, id="a", name="f"), whole('{"a":1,"b":2}', index=0)], [("a", "f", '{"a":1,"b":2}')], {"arguments_replaced": 1}),
    ("49: {} and then the value", [whole("{}", index=0, id="a", name="f"), whole('{"b":2}', index=0)], [("a", "f", '{"b":2}')], {"arguments_replaced": 1}),
    ("50: fragments that are no JSON", [d(0, "a", "f", '{"x": tru'), d(0, None, None, "th}")], [("a", "f", '{"x": truth}')], {}),
    ("concatenated objects of one call stay", [d(0, "a", "f", '{"a":1}'), d(0, None, None, '{"b":2}')], [("a", "f", '{"a":1}{"b":2}')], {}),
    ("the whole text once more at the end", [d(0, "a", "f", '{"a":'), d(0, None, None, "1}"), d(0, None, None, '{"a":1}')], [("a", "f", '{"a":1}')], {"arguments_repeated": 1}),
    # the whole text, said beside the fragments (Responses)
    ("a whole text that repeats the fragments", [d(0, "a", "f", '{"x"'), d(0, None, None, ":1}"), ALL(0, '{"x":1}'), ALL(0, '{"x":1}'), END(0)], [("a", "f", '{"x":1}')], {}),
    ("a whole text without any fragment", [d(0, "a", "f"), ALL(0, '{"x":1}'), END(0)], [("a", "f", '{"x":1}')], {}),
    ("a whole text, and fragments that lack its end", [d(0, "a", "f", '{"x"'), ALL(0, '{"x":1}'), END(0)], [("a", "f", '{"x":1}')], {"fragments_missing": 1}),
    ("a whole text that differs", [d(0, "a", "f", '{"x":2}'), ALL(0, '{"x":1}'), END(0)], [("a", "f", '{"x":2}')], {"whole_differs": 1}),
    ("a whole text that is shorter", [d(0, "a", "f", '{"x":1}'), ALL(0, "{"), END(0)], [("a", "f", '{"x":1}')], {"whole_differs": 1}),
    ("a whole text instead of a held {}", [d(0, "a", "f", "{}"), ALL(0, '{"x":1}'), END(0)], [("a", "f", '{"x":1}')], {"arguments_replaced": 1}),
    ("a whole text of a call that has ended, or never was", [d(0, "a", "f", "{}"), END(0), ALL(0, "{}"), ALL(0, "{} "), ALL(7, "{}")], [("a", "f", "{}")], {"whole_differs": 1}),
    # calls that the wire ends
    ("ended and started again at its index", [d(0, "a", "f", "{}"), END(0), d(0, "b", "f", "{}"), END(0)], [("a", "f", "{}"), ("b", "f", "{}")], {"index_reused": 1}),
    ("text after the end", [d(0, "a", "f", "{}"), END(0), d(0, None, None, "{}")], [("a", "f", "{}")], {"arguments_late": 1}),
    ("an end without a call", [END(4), d(0, "a", "f", "{}")], [("a", "f", "{}")], {}),
    ("the same id again behind an end", [d(0, "a", "f", "{}"), END(0), d(0, "a", "f", '{"x":1}')], [("a", "f", "{}"), (MADE, "f", '{"x":1}')], {"id_duplicate": 1}),
    ("15: a second index is known from then on", [d(0, "a", "f", "{"), d(1, "a", None, '"x"'), d(1, "a", None, ":1}")], [("a", "f", '{"x":1}')], {"index_changed": 1, "id_repeated": 2}),
    ("4: no index, and a call that begins without text", [d(None, "a", "f", "{}"), d(None, "b", "g", "")], [("a", "f", "{}"), ("b", "g", "")], {"index_missing": 2}),
    ("7: no index, and white space behind a whole object", [d(None, "a", "f", '{"x":1}'), d(None, arguments=" ")], [("a", "f", '{"x":1} ')], {"index_missing": 2}),
    ("a late id is known from then on", [d(0, None, "f", '{"x":'), d(0, "a", None, "1"), d(0, "a", None, "}"), d(1, "a", None, " ")], [(MADE, "f", '{"x":1} ')], {"id_missing": 1, "id_late": 1, "id_repeated": 2, "index_changed": 1}),
    # text at an index that no call has
    ("14: a start numbered by its tool, and text numbered by its call", [d(3, "a", "f", ""), d(0, arguments="{}")], [("a", "f", "{}")], {"index_changed": 1}),
    ("it is of nobody where the call out of order is complete", [d(3, "a", "f", "{}"), d(0, arguments="{}")], [("a", "f", "{}"), (MADE, "", "{}")], {"id_missing": 1, "call_nameless": 1}),
    ("it is of nobody where the call is in order", [d(0, "a", "f", ""), d(1, arguments="{}")], [("a", "f", ""), (MADE, "", "{}")], {"id_missing": 1, "call_nameless": 1}),
    ("it is of the only call without an index", [d(None, "a", "f", ""), d(0, arguments="{}")], [("a", "f", "{}")], {"index_missing": 2}),
    ("it is of the only call without an index, though not the first", [d(0, "a", "f", ""), d(None, "b", "g", ""), d(1, arguments="{}")], [("a", "f", ""), ("b", "g", "{}")], {"index_missing": 2}),
    ("it is of nobody where two calls have none", [d(None, "a", "f", ""), d(None, "b", "g", ""), d(0, arguments="{}")], [("a", "f", ""), ("b", "g", ""), (MADE, "", "{}")], {"index_missing": 2, "id_missing": 1, "call_nameless": 1}),
    ("it is of nobody where that call is complete", [d(None, "a", "f", "{}"), d(0, arguments="{}")], [("a", "f", "{}"), (MADE, "", "{}")], {"index_missing": 1, "id_missing": 1, "call_nameless": 1}),
    ("it is of nobody where that call has an index by now", [d(None, "a", "f", ""), d(0, arguments='{"x":'), d(1, arguments="1}")], [("a", "f", '{"x":'), (MADE, "", "1}")], {"index_missing": 2, "id_missing": 1, "call_nameless": 1}),
    ("an id makes it a call of its own", [d(None, "a", "f", ""), d(0, "b", None, "{}")], [("a", "f", ""), ("b", "", "{}")], {"index_missing": 1, "call_nameless": 1}),
    ("a name makes it a call of its own", [d(None, "a", "f", ""), d(0, None, "g", "{}")], [("a", "f", ""), (MADE, "g", "{}")], {"index_missing": 1, "id_missing": 1}),
    # behind an end
    ("a name alone begins a call behind an end", [d(0, "a", "f", "{}"), END(0), d(0, None, "f", "{}")], [("a", "f", "{}"), (MADE, "f", "{}")], {"index_reused": 1, "id_missing": 1}),
    ("an id alone begins a call behind an end", [d(0, "a", "f", "{}"), END(0), d(0, "b", None, "{}")], [("a", "f", "{}"), ("b", "", "{}")], {"index_reused": 1, "call_nameless": 1}),
    ("22: a whole call sent again", [d(0, "a", "f", "{}", snapshot=True), END(0), d(1, "a", "f", "{}", snapshot=True)], [("a", "f", "{}")], {"arguments_repeated": 1}),
    ("22: a whole call with another text is another", [d(0, "a", "f", "{}", snapshot=True), END(0), d(0, "a", "f", '{"x":1}', snapshot=True)], [("a", "f", "{}"), (MADE, "f", '{"x":1}')], {"id_duplicate": 1}),
    ("22: a whole call whose id is its name is another", [d(0, "f", "f", "{}", snapshot=True), END(0), d(1, "f", "f", "{}", snapshot=True)], [("f", "f", "{}"), (MADE, "f", "{}")], {"id_duplicate": 1}),
    # a call that is said again
    ("again in fragments with its id", [ONE, END(0), d(1, "a", "f"), d(1, "a", None, '{"x":'), d(1, None, None, "1}"), END(1)], [("a", "f", X)], {"id_repeated": 1, "arguments_repeated": 1}),
    ("again in fragments at its index", [ONE, END(0), d(0, "a", "f"), d(0, None, None, '{"x":'), d(0, None, None, "1}"), END(0)], [("a", "f", X)], {"arguments_repeated": 1}),
    ("again in fragments that repeat themselves", [ONE, END(0), d(1, "a", "f", '{"x"'), d(1, None, None, X), END(1)], [("a", "f", X)], {"arguments_cumulative": 1, "arguments_repeated": 1}),
    ("again at once, and then text without an index", [ONE, d(1, "a", "f", X), END(1), d(None, None, None, " ")], [("a", "f", '{"x":1} ')], {"arguments_repeated": 1, "index_missing": 1}),
    ("again whole with other text of that length, which is another", [whole(X, index=0, id="a", name="f"), END(0), whole('{"x":2}', index=0, id="a", name="f")], [("a", "f", X), (MADE, "f", '{"x":2}')], {"id_duplicate": 1}),
    ("again behind a call that came since", [ONE, END(0), d(1, "a", "f"), d(2, "b", "g", Y), d(1, None, None, X), END(1)], [("a", "f", X), ("b", "g", Y)], {"arguments_repeated": 1}),
    ("again but not to its end, which is another", [ONE, END(0), d(1, "a", "f", '{"x"')], [("a", "f", X), (MADE, "f", '{"x"')], {"id_duplicate": 1}),
    ("again with other text, which is another", [ONE, d(1, "a", "f", '{"x":2}')], [("a", "f", X), (MADE, "f", '{"x":2}')], {"id_duplicate": 1}),
    ("again with more text, which is another", [ONE, d(1, "a", "f", '{"x":1}1')], [("a", "f", X), (MADE, "f", '{"x":1}1')], {"id_duplicate": 1}),
    ("again whole, behind its end, without a name", [ONE, END(0), whole(X, index=0)], [("a", "f", X)], {"arguments_repeated": 1}),
    ("again whole without text, behind its end", [d(0, "a", "f"), END(0), whole(None, index=0)], [("a", "f", "")], {"arguments_repeated": 1}),
    ("another name behind text that is held", [whole('{"x":', index=0, id="a", name="f"), d(0, "a", "g")], [("a", "f", '{"x":')], {"id_repeated": 1, "name_changed": 1}),
    ("an object with white space again as one fragment", [d(0, "a", "f", "{"), d(0, None, None, " }"), d(0, None, None, "{ }")], [("a", "f", "{ }")], {"arguments_repeated": 1}),
    ("an object with a blank name again as one fragment", [d(0, "a", "f", "{"), d(0, None, None, '"":1}'), d(0, None, None, '{"":1}')], [("a", "f", '{"":1}')], {"arguments_repeated": 1}),
    ("{} in two pieces and again is all text so far", [d(0, "a", "f", "{"), d(0, None, None, "}"), d(0, None, None, "{}")], [("a", "f", "{}")], {"arguments_cumulative": 1}),
    ("a doubt is settled when the call ends", [d(0, "a", "f", '{"a":'), d(0, None, None, '{"a":1}'), END(0)], [("a", "f", '{"a":1}')], {"arguments_cumulative": 1}),
    ("{} twice", [d(0, "a", "f"), d(0, None, None, "{}"), d(0, None, None, "{}")], [("a", "f", "{}")], {"empty_object_prefix": 1}),
    ("an object twice", [d(0, "a", "f"), d(0, None, None, X), d(0, None, None, X)], [("a", "f", X)], {"arguments_repeated": 1}),
    ("no object twice", [d(0, "a", "f"), d(0, None, None, '{"a":'), d(0, None, None, '{"a":')], [("a", "f", '{"a":{"a":')], {}),
    ("{} with white space, then the object", [d(0, "a", "f"), d(0, None, None, "{} "), d(0, None, None, X)], [("a", "f", X)], {"empty_object_prefix": 1}),
    ("{}, then white space and the object", [d(0, "a", "f"), d(0, None, None, "{}"), d(0, None, None, ' {"x":1}')], [("a", "f", ' {"x":1}')], {"empty_object_prefix": 1}),
    ("a whole with other white space goes on with what was handed on", [d(0, "a", "f", '{"city": '), d(0, arguments='{"city":"Paris"}')], [("a", "f", '{"city": "Paris"}')], {"arguments_cumulative": 1}),
    ("no fragment overtakes text that waited to be said again", [d(0, "a", "f", " "), d(0, arguments='{"a":1}'), ALL(0, "]"), d(0, arguments="1")], [("a", "f", ' {"a":1}1')], {"whole_differs": 1}),
    ("an id that was announced does not change", [d(0, None, "f", "{"), d(0, "a", None, "}")], [(MADE, "f", "{}")], {"id_missing": 1, "id_late": 1}),
    # all calls once more, at the end
    ("all once more", [ONE, TWO, again(ONE, TWO)], [("a", "f", X), ("b", "g", Y)], {}),
    ("found by their ids", [ONE, TWO, again(d(0, "b", "g", Y), d(1, "a", "f", X))], [("a", "f", X), ("b", "g", Y)], {}),
    ("found by ids that came late", [d(0, None, "f", "{"), d(1, None, "f", "{"), d(0, "x"), d(1, "y"), again(d(0, "y", "f", Y), d(1, "x", "f", X))], [(MADE, "f", X), (MADE, "f", Y)], {"id_missing": 2, "id_late": 2, "fragments_missing": 2}),
    ("found by their text", [ONE, TWO, again(d(0, None, None, Y), d(1, None, None, X))], [("a", "f", X), ("b", "g", Y)], {}),
    ("found by their index", [d(0, "a", "f", '{"x"'), TWO, again(d(0, None, "f", X), d(1, None, "g", Y))], [("a", "f", X), ("b", "g", Y)], {"fragments_missing": 1}),
    ("found by their index, in another order", [d(0, None, "f", "{"), d(1, None, "f", "{"), again(d(1, None, "f", Y), d(0, None, "f", X))], [(MADE, "f", X), (MADE, "f", Y)], {"id_missing": 2, "fragments_missing": 2}),
    ("found by their names", [d(0, "a", "f", '{"x"'), d(1, "b", "g", '{"y"'), again(d(4, None, "g", Y), d(5, None, "f", X))], [("a", "f", X), ("b", "g", Y)], {"fragments_missing": 2}),
    ("found by having no text", [d(0, "", "f"), d(1, "", "f", '{"y"'), again(d(0, None, "f", Y), d(1, None, "f"))], [(MADE, "f", ""), (MADE, "f", Y)], {"identity_blank": 2, "id_missing": 2, "fragments_missing": 1}),
    ("another name is another call", [d(0, "a", "f", '{"x"'), again(d(0, None, "g", Y))], [("a", "f", '{"x"'), (MADE, "g", Y)], {"id_missing": 1}),
    ("another id is another call", [d(0, "a", "f", '{"x"'), again(d(0, "b", "f", X))], [("a", "f", '{"x"'), ("b", "f", X)], {}),
    ("and one that never came", [ONE, again(ONE, d(1, "c", "h", "{}"))], [("a", "f", X), ("c", "h", "{}")], {}),
    ("and two that never came", [ONE, TWO, again(ONE, TWO, d(2, "c", "f", X), d(3, "d", "f", Y))], [("a", "f", X), ("b", "g", Y), ("c", "f", X), ("d", "f", Y)], {}),
    ("only then", [again(ONE)], [("a", "f", X)], {}),
    ("with its name and its id", [d(0, None, None, X), again(ONE)], [("a", "f", X)], {}),
    ("with its name", [d(0, "a", None, X), again(ONE)], [("a", "f", X)], {}),
    ("its id is known from then on", [d(0, None, "f"), again(d(0, "a", "f", '{"x"')), d(None, "a", None, ":1}")], [("a", "f", X)], {"index_missing": 1, "id_repeated": 1}),
    ("the first name stays", [d(0, "a", "f", '{"x":'), again(d(0, "a", "other", X))], [("a", "f", X)], {"fragments_missing": 1}),
    ("the first id stays", [d(0, None, "f", '{"x":'), again(d(0, "real", "f", X))], [(MADE, "f", X)], {"id_missing": 1, "fragments_missing": 1}),
    ("once more with another text", [ONE, again(d(0, "a", "f", '{"x":3}'))], [("a", "f", X)], {"whole_differs": 1}),
    ("once more with white space", [ONE, again(d(0, "a", "f", '{ "x" : 1 }'))], [("a", "f", X)], {}),
    ("once more with blank text", [ONE, again(d(0, "a", "f", ""))], [("a", "f", X)], {}),
    ("once more without text", [ONE, again(d(0, "a", "f"))], [("a", "f", X)], {}),
    ("an ended call grows no more", [d(0, "a", "f", '{"x"'), END(0), ALL(0, X)], [("a", "f", '{"x"')], {"whole_differs": 1}),
]  # fmt: skip

#: Cases of §1-§5 that are not the accumulator's.
ELSEWHERE = {
    6: "the encoder writes the index",
    11: "Responses' decoder: tests/vectors/field/reuse.py",
    27: "Responses' encoder: tests/vectors/field/ids.py",
    34: "ids of two turns: test_made_ids_differ_between_turns",
    47: "requests",
    51: "verdicts of all siblings: test_a_cut_call_leaves_its_siblings_not_ended",
}


@pytest.mark.parametrize(
    ("events", "calls", "repairs"), [pytest.param(*row[1:], id=row[0].replace(" ", "-")) for row in ROWS]
)
def test_identity_is_a_vote(events, calls, repairs):
    for batches in [[events], [[event] for event in events]]:
        out, report = accumulate([], batches=[*batches, [CALLS, DONE]])
        assert calls_of(out) == calls
        named = any(name for _, name, _ in calls)
        cut = any(check_arguments(text).kind == "truncated" for _, _, text in calls)
        if any(
            not name and (text != "{}" or not named) for _, name, text in calls
        ):  # nobody can run it, and the client must see that
            assert dict(report.repairs) == repairs
            assert [type(event) for event in out if type(event) in {ProviderFailed, ResponseFinished}] == [
                ProviderFailed
            ]
        else:
            assert dict(report.repairs) == repairs | ({"stop_conflict": 1} if cut else {})
            stop = ResponseFinished("length", "incomplete") if cut else ResponseFinished("tool_calls", "tool_calls")
            assert out[-2:] == [stop, StreamEnded(clean=True)]


def test_every_case_of_the_catalogue_has_its_row():
    cited = {int(number) for name, *_ in ROWS if ":" in name for number in name.partition(":")[0].split(", ")}
    assert cited | set(ELSEWHERE) >= set(range(1, 52))
    assert not cited & set(ELSEWHERE)


def test_made_ids_differ_between_turns():  # quirks.md 34
    def turn() -> str:
        machine = ToolCallAccumulator()
        (started, *_) = machine.feed([d(0, None, "f", "{")])
        return started.id

    ids = {turn() for _ in range(50)}
    assert len(ids) == 50
    assert all(call_id.startswith("call_") for call_id in ids)


def test_choices_do_not_share_calls():
    events = [d(0, "a", "f", "{"), d(0, "b", "g", "[", choice=1), d(0, arguments="}"), d(0, arguments="]", choice=1)]
    out, report = accumulate([*events, CALLS, evolve(CALLS, choice=1)])
    assert calls_of(out, 0) == [("a", "f", "{}")]
    assert calls_of(out, 1) == [("b", "g", "[]")]
    assert not report.repairs


def test_a_call_is_announced_with_its_first_argument_text():
    machine = ToolCallAccumulator()
    assert machine.feed([d(0, "a", "f", "")]) == []
    assert machine.feed([d(0, arguments="{")]) == [ToolCallStarted(0, "a", "f"), ToolCallArguments(0, "{")]
    assert machine.feed([d(0, arguments="}")]) == [ToolCallArguments(0, "}")]


def test_a_call_is_announced_with_the_first_delta_of_another():
    machine = ToolCallAccumulator()
    machine.feed([d(0, "a", "f")])
    assert machine.feed([d(1, "b", "g")]) == [ToolCallStarted(0, "a", "f")]


def test_a_call_without_a_name_holds_back_those_behind_it():
    machine = ToolCallAccumulator()
    assert machine.feed([d(0, "a", None, '{"x":'), d(1, "b", "g", "{"), d(1, arguments="}")]) == []
    assert machine.feed([d(0, name="f", arguments="1}")])[0] == ToolCallStarted(0, "a", "f")


def test_an_ended_call_is_finished_at_once_and_no_other():
    machine = ToolCallAccumulator()
    out = machine.feed([d(0, "a", "f", "{}"), d(1, "b", "g", "{}"), ToolCallEnded(0)])
    assert [event.call for event in out if type(event) is ToolCallFinished] == [0]


def test_text_that_parses_is_not_finished():  # design.md §4
    machine = ToolCallAccumulator()
    out = machine.feed([d(0, "a", "f", '{"a":1}'), CALLS])
    assert not [event for event in out if type(event) is ToolCallFinished]


def test_members_of_a_calls_own_are_bounded_and_what_is_more_is_said():
    """Each is added once: hundreds of deltas with one more each took quadratic time."""
    deltas = [d(0, "a", "f", extras={f"k{number}": number}) for number in range(EXTRAS + 3)]
    out, _ = accumulate([*deltas, d(0, "a", "f", extras={"k0": 1}), d(0, arguments="{}"), CALLS])
    [started] = [event for event in out if type(event) is ToolCallStarted]
    assert started.extras == {f"k{number}": number for number in range(EXTRAS)}
    late = [(event.type, event.raw) for event in out if type(event) is Aside]
    assert late == [*((f"late:k{number}", number) for number in range(EXTRAS, EXTRAS + 3)), ("late:k0", 1)]


def test_ids_that_come_late_are_bounded():
    machine = ToolCallAccumulator()
    machine.feed([d(0, None, "f", "{")])
    for number in range(IDS + 10):
        machine.feed([d(0, f"id-{number}")])
    assert machine.report.repairs["id_late"] == IDS + 10
    assert len(machine._choices[0].by_id) == IDS


def test_late_text_goes_to_the_report():
    _, report = accumulate([d(0, "a", "f", "{}"), ToolCallEnded(0), d(0, arguments="more"), d(0, arguments=" "), CALLS])
    assert [(held.kind, held.id, held.arguments) for held in report.withheld] == [("arguments_late", "a", "more")]


# -- stop reasons (quirks.md §6) ---------------------------------------------------------------------------------------

OPEN = d(0, "a", "f", '{"x":')
ABORT = StopReasonSeen("error", "abort")


def seen(reason: Any, **rest: Any) -> StopReasonSeen:
    return StopReasonSeen(reason, reason, **rest)


#: Name, events, the reason (None: not clean), repairs.
ENDS: list[tuple[str, list[WireEvent], str | None, dict[str, int]]] = [
    ("text", [TextDelta("hi"), STOP, DONE], "stop", {}),
    ("no [DONE] behind a reason", [TextDelta("hi"), STOP], "stop", {}),
    ("52: stop with calls", [ONE, STOP, DONE], "tool_calls", {"stop_with_calls": 1}),
    ("52: in a dialect where stop covers calls", [ONE, evolve(STOP, covers_calls=True), TerminatorSeen()], "tool_calls", {}),
    ("54: tool_calls without a call", [TextDelta("hi"), CALLS, DONE], "stop", {"calls_without_call": 1}),
    ("54, 33: tool_calls with a ghost only", [d(0, "a"), CALLS, DONE], "stop", {"calls_without_call": 1, "call_ghost": 1}),
    ("55: calls with an open call", [OPEN, CALLS, DONE], "length", {"stop_conflict": 1}),
    ("55: stop with an open call", [OPEN, STOP, DONE], "length", {"stop_conflict": 1}),
    ("55: length wins over calls", [OPEN, LENGTH, DONE], "length", {}),
    ("55: length then tool_calls", [ONE, LENGTH, CALLS, DONE], "length", {"stop_conflict": 1}),
    ("56: length with calls is not upgraded", [ONE, LENGTH, DONE], "length", {}),
    ("content filter wins over calls", [ONE, CALLS, seen("content_filter"), DONE], "content_filter", {"stop_conflict": 1}),
    ("58: tool_calls, then stop", [ONE, CALLS, STOP, DONE], "tool_calls", {"stop_conflict": 1}),
    ("58: stop, then tool_calls", [ONE, STOP, CALLS, DONE], "tool_calls", {"stop_conflict": 1}),
    ("58: the same reason again is no repair", [ONE, CALLS, CALLS, DONE], "tool_calls", {}),
    ("60: calls in the same chunk as the reason, more text after", [OPEN, CALLS, d(0, arguments="1}"), DONE], "tool_calls", {}),
    ("57, 61: no reason at all, complete calls, [DONE]", [ONE, DONE], "tool_calls", {"finish_derived": 1}),
    ("61: with a ghost beside it", [ONE, d(1, "b"), DONE], "tool_calls", {"finish_derived": 1, "call_ghost": 1}),
    ("61: an open call derives nothing", [OPEN, DONE], None, {}),
    ("61: blank arguments derive nothing", [d(0, "a", "f", ""), DONE], None, {}),
    ("61: text alone derives nothing", [TextDelta("hi"), DONE], None, {}),
    ("61: another dialect's terminator derives nothing", [ONE, TerminatorSeen()], None, {}),
    ("64: the end inside a call", [OPEN], None, {}),
    ("64: the end behind a complete call", [ONE], None, {}),
    ("64: the end inside a frame", [OPEN, LastFrameBroken(b"data: {")], None, {}),
    ("nothing at all", [], None, {}),
    ("[DONE] and nothing else", [DONE], None, {}),
    ("another reason with whole calls", [ONE, seen("other"), DONE], "tool_calls", {"stop_unknown_with_calls": 1}),
    ("another reason with free text that the wire ended", [d(0, "a", "f", "ls", kind="custom"), END(0), seen("other"), DONE], "tool_calls", {"stop_unknown_with_calls": 1}),
    ("another reason with an open call", [OPEN, seen("other"), DONE], "length", {"stop_conflict": 1}),
    ("refusal said as stop", [RefusalDelta("no"), STOP, DONE], "refusal", {}),
    ("a stop sequence says more than stop", [TextDelta("hi"), STOP, seen("stop_sequence", stop_sequence="\n"), DONE], "stop_sequence", {"stop_conflict": 1}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "reason", "repairs"), [pytest.param(*row[1:], id=row[0].replace(" ", "-")) for row in ENDS]
)
def test_a_choice_ends_for_one_reason(events, reason, repairs):
    out, report = accumulate([ChoiceStarted(), *events] if events and events != [DONE] else events)
    finished = [event for event in out if type(event) is ResponseFinished]
    assert [event.reason for event in finished] == ([reason] if reason else [])
    assert report.stops == tuple(finished)
    assert [event for event in out if type(event) is RefusalDelta] == [
        event for event in events if type(event) is RefusalDelta
    ]
    assert type(out[-1]) is StreamEnded
    assert out[-1].clean is report.clean is (reason is not None)
    assert bool(out[-1].reason) is (reason is None)
    assert dict(report.repairs) == repairs
    assert {event.ended for event in out if type(event) is ToolCallFinished} <= {reason is not None}


@pytest.mark.parametrize("before", [[], [StopReasonSeen("stop", "eos", 1)]])
def test_the_native_word_and_the_stop_sequence_go_along(before):
    out, report = accumulate([*before, StopReasonSeen("stop_sequence", "stop", 1, "###")])
    assert out[-2] == ResponseFinished("stop_sequence", "stop", 1, "###")
    assert report.stops == (out[-2],)


def test_the_report_has_the_start_and_the_last_usage_that_counts():
    start, usage = ResponseStarted("r", vendor="v"), UsageReported(1, output_total=2)
    out, report = accumulate([start, UsageReported(1), usage, UsageReported(), TextDelta("hi"), STOP])
    assert out[:4] == [start, UsageReported(1), usage, UsageReported()]
    assert (report.started, report.usage, report.has_output) == (start, usage, True)


def test_texts_of_a_read_that_may_bring_several_come_together_at_its_end():
    machine, out = ToolCallAccumulator(), []
    machine.lead_to(out.append)
    machine.joins = True
    machine.hold()
    machine.push_text("a", 0, 1)
    machine.push_text("b", 0, 1)
    assert out == []
    machine.end_read()
    machine.push_text("c", 0, 2)
    assert out == [TextDelta("ab", 0, 1), TextDelta("c", 0, 2)]


def test_each_choice_needs_its_reason():
    out, _ = accumulate([ChoiceStarted(0), ChoiceStarted(1), STOP])
    assert out == [
        ChoiceStarted(0),
        ChoiceStarted(1),
        StreamEnded(False, "the stream ended without a stop reason for choice 1"),
    ]


def test_a_reason_that_says_error_is_an_error():
    out, report = accumulate([ONE, ABORT, STOP, DONE])
    failed, ended = out[-2:]
    assert type(failed) is ProviderFailed
    assert failed.code == "abort"
    assert not ended.clean
    assert not [event for event in out if type(event) is ResponseFinished]
    assert report.status.name == "PROVIDER_ERROR"


def test_a_cut_call_leaves_its_siblings_not_ended():  # quirks.md 51
    out, _ = accumulate([ONE, d(1, "b", "g", '{"y":')])
    checked = JSONChecker().feed(out)
    assert [event.verdict.kind for event in checked if type(event) is ToolCallFinished] == ["truncated", "truncated"]


def test_a_call_that_the_wire_ended_keeps_its_verdict_when_the_stream_is_cut():
    out, _ = accumulate([ONE, ToolCallEnded(0), d(1, "b", "g", '{"y":')])
    checked = JSONChecker().feed(out)
    assert [event.verdict.kind for event in checked if type(event) is ToolCallFinished] == ["complete", "truncated"]


def test_content_after_an_error_is_passed_over():
    out, report = accumulate([OPEN, ProviderFailed("server", "down"), d(0, arguments="1}"), TextDelta("x"), STOP, DONE])
    assert [type(event) for event in out] == [
        ToolCallStarted,
        ToolCallArguments,
        ToolCallFinished,
        ProviderFailed,
        StreamEnded,
    ]
    assert report.repairs["after_error"] == 2


def test_abandoned_calls_are_not_ended():
    machine = ToolCallAccumulator()
    machine.feed([ONE])
    (finished,) = machine.abandon()
    assert finished == ToolCallFinished(0, "a", "f", '{"x":1}', ended=False)


def test_what_fails_behind_the_completion_point_takes_nothing_back():
    machine = ToolCallAccumulator()
    machine.feed([ONE, CALLS])
    finished, _reason, ended = machine.abandon()
    assert finished == ToolCallFinished(0, "a", "f", '{"x":1}', ended=True)
    assert ended.clean
    assert ToolCallAccumulator().abandon() == []
    strict = ToolCallAccumulator(policy=STRICT)
    strict.feed([TextDelta("hi"), STOP])
    assert strict.abandon() == []


# -- limits ------------------------------------------------------------------------------------------------------------


def fault_of(limits: Limits, events: list[WireEvent]) -> tuple[list[Event], Exception | None]:
    machine = ToolCallAccumulator(limits=limits)
    return machine.feed(events), machine.fault


def test_arguments_have_a_limit():
    limits = Limits(arguments_chars=4)
    assert fault_of(limits, [d(0, "a", "f", "123"), d(0, arguments="4")])[1] is None
    out, fault = fault_of(limits, [d(0, "a", "f", "123"), d(0, arguments="45")])
    assert isinstance(fault, ArgumentsTooLong)
    assert out == [ToolCallStarted(0, "a", "f"), ToolCallArguments(0, "123")]


def test_all_arguments_together_have_a_limit():
    limits = Limits(stream_arguments_chars=4)
    assert fault_of(limits, [d(0, "a", "f", "12"), d(1, "b", "g", "34")])[1] is None
    assert isinstance(fault_of(limits, [d(0, "a", "f", "12"), d(1, "b", "g", "345")])[1], StreamArgumentsTooLong)


def test_calls_have_a_limit():
    limits = Limits(tool_calls=2)
    calls = [d(index, f"id{index}", "f") for index in range(3)]
    assert fault_of(limits, calls[:2])[1] is None
    assert isinstance(fault_of(limits, calls)[1], TooManyToolCalls)


# -- properties --------------------------------------------------------------------------------------------------------

IDENTITIES = ["", "a", "b", "null", " ", None]
NAMES = ["", "f", "g", None]
FRAGMENTS = st.sampled_from(["{", "}", "{}", '"x":1', '{"x":1}', "", " ", "tru", None])
WIRE = st.one_of(
    st.builds(
        ToolCallDelta,
        st.sampled_from([None, 0, 1, 5]),
        st.sampled_from(IDENTITIES),
        st.sampled_from(NAMES),
        FRAGMENTS,
        st.sampled_from([0, 0, 1]),
        snapshot=st.sampled_from([False, False, False, True]),
    ),
    st.builds(ToolCallEnded, st.sampled_from([0, 1, 5])),
    st.builds(ToolCallWhole, st.sampled_from([0, 1, 5]), st.sampled_from(["{}", '{"x":1}', "{", ""])),
    st.sampled_from([STOP, CALLS, LENGTH, DONE]),
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), WIRE), max_size=12))
def test_grouping_into_batches_changes_nothing(tagged):
    batches: list[list[WireEvent]] = []
    for new_batch, event in tagged:
        if new_batch or not batches:
            batches.append([])
        batches[-1].append(event)
    one, one_report = accumulate([event for _, event in tagged])
    many, many_report = accumulate([], batches=batches)
    assert one == many
    assert one_report == many_report
    for choice in (0, 1):
        calls_of(one, choice)


def fragments_of(text: str, sizes: list[int]) -> list[str]:
    parts, at = [], 0
    for size in sizes:
        parts.append(text[at : at + size])
        at += size
    return [*parts, text[at:]]


TEXTS = st.lists(
    st.tuples(st.text(alphabet='{}[]":,x1 \\', max_size=20), st.lists(st.integers(0, 6), max_size=5)),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(TEXTS, st.randoms(use_true_random=False), st.booleans())
def test_arguments_never_cross_calls_with_ids_and_indices_of_their_own(texts, rng, repeat):
    """Whatever the interleaving, and whether or not the id is repeated."""
    queues = []
    for index, (text, sizes) in enumerate(texts):
        first, *rest = fragments_of(text, sizes)
        again = f"id{index}" if repeat else None
        queues.append([d(index, f"id{index}", f"f{index}", first), *(d(index, again, None, part) for part in rest)])
    mentioned, events = [], []
    while any(queues):
        queue = rng.choice([queue for queue in queues if queue])
        delta = queue.pop(0)
        if delta.index not in mentioned:
            mentioned.append(delta.index)
        events.append(delta)
    out, report = accumulate([*events, CALLS])
    # fragments that only look as if they said the text so far again: "{" and "{" cannot be one JSON text
    said_again = {"empty_object_prefix", "arguments_repeated", "arguments_cumulative"}
    assert set(report.repairs) <= {"id_repeated", "stop_conflict", *said_again}
    calls = calls_of(out)
    assert [call_id for call_id, _, _ in calls] == [f"id{index}" for index in mentioned]  # the order of first mention
    for index, (_, name, text) in zip(mentioned, calls, strict=True):
        assert name == f"f{index}"
        if not set(report.repairs) & said_again:
            assert text == texts[index][0]


@settings(deadline=None)
@given(st.permutations(range(4)), st.data())
def test_calls_keep_the_order_of_first_mention(indices, data):
    rounds = [[d(index, f"id{index}", f"f{index}") for index in indices]]
    rounds += [[d(index, arguments="x") for index in data.draw(st.permutations(range(4)))] for _ in range(3)]
    ends = [ToolCallEnded(index) for index in data.draw(st.permutations(range(4)))]
    out, _ = accumulate([*(event for events in rounds for event in events), *ends, CALLS])
    assert [call_id for call_id, _, _ in calls_of(out)] == [f"id{index}" for index in indices]


# -- cost --------------------------------------------------------------------------------------------------------------

MIB = 1024 * 1024


PIECES = st.one_of(
    st.builds(lambda index, text: d(index, None, None, text), st.integers(0, 2), st.sampled_from(["a", "bc", '{"k":1}', "}", ""])),
    st.sampled_from([TextDelta("t"), END(0), END(1), d(2, "c", "h", "x"), d(0, "z", "f", "y"), d(1, None, None, "s", choice=1)]),
)  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.lists(st.integers(0, 12), max_size=20))
def test_batches_mean_nothing(events, sizes):
    """Fragments that come a few at a time, or many, are what they are one by one; an empty batch says nothing."""
    start = [d(index, f"i{index}", "f", '{"') for index in (0, 1)]
    batches, rest = [], events
    for size in sizes:
        batches.append(rest[:size])
        rest = rest[size:]
    said = []
    for way in ([*batches, rest], [[event] for event in events]):
        report = StreamReport()
        machine = ToolCallAccumulator(report=report, make_id=lambda _: MADE)
        out = [event for batch in ([ChoiceStarted(), *start], *way) for event in machine.feed(batch)]
        said.append((out + machine.finish(), report.repairs))
    assert said[0] == said[1]


@pytest.mark.parametrize("size", [1, 4, 40])
@pytest.mark.parametrize("join", [True, False])
def test_fragments_of_one_call_at_two_indices_keep_their_order(size, join):
    """quirks.md 14: a start numbered by the tool's place, its text by the call's order, then at both."""
    fragments = [d(5 * (number % 2), None, None, f"<{number}>") for number in range(60)]
    machine = ToolCallAccumulator(join=join)
    out: list[Any] = machine.feed([ChoiceStarted(), d(5, "a", "f", '{"k": "0123456789'), d(0, None, None, "abc")])
    for at in range(0, 60, size):
        out += machine.feed(fragments[at : at + size])
    said = "".join([event.fragment for event in out if type(event) is ToolCallArguments])
    assert said == '{"k": "0123456789abc' + "".join([fragment.arguments for fragment in fragments])


def test_small_fragments_cost_at_most_four_times_their_text():
    """A list of 14-character strings would take ten times the text."""
    size, all_of_it = 14, MIB // 4
    machine = ToolCallAccumulator()
    machine.feed([d(0, "a", "f", "{")])
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(all_of_it // size):
            machine.feed([d(0, arguments=f"{number:014d}")])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept - before < 4 * all_of_it
    assert kept - before > 0.9 * all_of_it  # the text itself is there


# -- the debug log -----------------------------------------------------------------------------------------------------


def test_nothing_is_logged_above_debug(caplog):
    with caplog.at_level(logging.INFO, "streamkit.tool_calls"):
        accumulate([ONE, CALLS])
    assert not caplog.records


def test_the_log_counts_what_was_appended_and_not_what_was_dropped(caplog):
    with caplog.at_level(logging.DEBUG, "streamkit.tool_calls"):
        accumulate([ONE, d(0, arguments='{"x":1}'), d(0, arguments=" "), CALLS])
    assert [message.removeprefix("call a: ") for message in caplog.messages] == [
        "started as number 0: f",
        "+7 characters, 7 in all",
        "+0 characters, 7 in all",
        "+1 characters, 8 in all",
        "finished with 8 characters",
    ]


CUT_CALLS = [
    ("no arguments at length", [d(0, "a", "f", ""), LENGTH], ["truncated"]),
    ("blank arguments at length", [d(0, "a", "f", " "), LENGTH], ["truncated"]),
    ("nothing but the name at a filter", [d(0, "a", "f"), seen("content_filter")], ["truncated"]),
    ("a call without arguments, and one that was being written", [d(0, "a", "f", ""), d(1, "b", "g", ""), LENGTH], ["empty", "truncated"]),
    ("a whole object tells by itself", [d(0, "a", "f", "{}"), LENGTH], ["complete"]),
    ("the wire ended it", [d(0, "a", "f", ""), END(0), LENGTH], ["truncated"]),
    ("the wire ended it, and text follows", [d(0, "a", "f", ""), END(0), TextDelta("Hi"), LENGTH], ["empty"]),
    ("the wire ended it, and another call follows", [d(0, "a", "f", ""), END(0), d(1, "b", "g", "{}"), END(1), LENGTH], ["empty", "complete"]),
    ("the wire ended it, and text of another choice follows", [d(0, "a", "f", ""), END(0), TextDelta("Hi", 1), LENGTH, evolve(LENGTH, choice=1)], ["truncated"]),
    ("the wire ended it before the model ended by itself", [d(0, "a", "f", ""), END(0), CALLS], ["empty"]),
    ("the wire ended free text without a character", [d(0, "a", "f", "", kind="custom"), END(0), LENGTH], ["truncated"]),
    ("the wire ended free text", [d(0, "a", "f", "print(", kind="custom"), END(0), LENGTH], ["complete"]),
    ("the model ended by itself", [d(0, "a", "f", ""), CALLS], ["empty"]),
    ("free text at length", [d(0, "a", "f", "print(", kind="custom"), LENGTH], ["truncated"]),
    ("free text", [d(0, "a", "f", "print(", kind="custom"), CALLS], ["complete"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "verdicts"), [pytest.param(*row[1:], id=row[0].replace(" ", "-")) for row in CUT_CALLS]
)
def test_what_the_model_was_writing_when_it_was_stopped_is_not_taken_for_a_call_without_arguments(events, verdicts):
    """L3: empty arguments mean ``{}``, and a client would run them."""
    out, report = accumulate([ChoiceStarted(), *events, DONE])
    assert report.clean
    checked = JSONChecker().feed(out)
    assert [event.verdict.kind for event in checked if type(event) is ToolCallFinished] == verdicts


FIRST, SECOND = Opaque("gemini", "first"), Opaque("gemini", "second")


@pytest.mark.parametrize(
    ("events", "signature"),
    [
        ([d(0, "a", "f", "{}", signature=FIRST)], FIRST),
        ([d(0, "a"), d(0, None, "f", "{}", signature=SECOND)], SECOND),
        ([d(0, "a", signature=FIRST), d(0, None, "f", "{}", signature=SECOND)], FIRST),
        ([d(0, "a", signature=FIRST), d(0, None, "f", "{}")], FIRST),
        ([d(0, "a", "f", '{"x":'), d(0, arguments="1}", signature=SECOND)], None),  # the call was told without one
    ],
)
def test_a_call_has_the_first_signature_that_came_before_it_was_told(events, signature):
    started = next(event for event in accumulate([*events, CALLS])[0] if type(event) is ToolCallStarted)
    assert started.signature == signature


def test_a_policy_splits_what_begins_behind_a_complete_object():
    report = StreamReport()
    machine = ToolCallAccumulator(report=report, policy=Policy(two_objects="split"))
    events = [d(0, "a", "f", '{"x":1}'), d(0, arguments=' {"y":'), d(0, arguments="2}"), d(0, arguments="}"), CALLS]
    out = machine.feed(events) + machine.finish()
    finished = [event for event in out if type(event) is ToolCallFinished]
    assert [(call.name, call.arguments) for call in finished] == [("f", '{"x":1}'), ("f", ' {"y":2}}')]
    assert report.repairs == {"objects_split": 1, "id_missing": 1}


def test_a_name_in_pieces_has_a_limit():
    machine = ToolCallAccumulator(limits=Limits(name_bytes=8))
    machine.feed([d(0, "a", "1234"), d(0, None, "5678")])
    assert machine.fault is None
    machine.feed([d(0, None, "9")])
    assert type(machine.fault) is NameTooLong
    assert str(machine.fault) == str(NameTooLong(8))


def test_a_policy_keeps_the_first_piece_of_a_name():
    report = StreamReport()
    machine = ToolCallAccumulator(report=report, policy=Policy(name_pieces="first"))
    out = machine.feed([d(0, "a", "one"), d(0, None, "other"), d(0, arguments="{}"), CALLS]) + machine.finish()
    assert [event.name for event in out if type(event) is ToolCallFinished] == ["one"]
    assert report.repairs == {"name_changed": 1}
