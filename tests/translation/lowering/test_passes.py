"""Each pass by itself: a request, what the servers take, what is left of the request, and what is counted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from attrs import evolve, frozen

from streamkit.conversation.messages import (
    Media,
    Namespace,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
    WebSearch,
)
from streamkit.dialects.lowering import Capabilities, Lowering, OfParts, PartPass, Pass, each_part
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.translation import content_passes as content
from streamkit.translation import lowering

HI, HO = Text("Hi"), Text("Ho")
OURS, THEIRS = Opaque("us", "b1"), Opaque("them", "b2")
CALL = ToolCall(0, "c1", "look", '{"a": 1}')
RESULT, OTHER = ToolResult("c1", [Text("42")]), ToolResult("c2", [Text("43")])
LOOK, GO = Tool("look", parameters={"type": "object"}), Tool("go")
WEB = Tool("web", kind="server", raw={"type": "web"}, search=WebSearch(max_uses=2, context="low"))
CUSTOM = Tool("run", "Runs.", kind="custom")
NOTE = Aside("them", "citation", "note", {"n": 1})
NONE: Mapping[str, Any] = MappingProxyType({})
US = re.compile("[A-Za-z0-9_]{1,40}")


def user(*said: Part) -> Turn:
    return Turn("user", [*said])


def model(*said: Part) -> Turn:
    return Turn("assistant", [*said])


def system(*said: Part) -> Turn:
    return Turn("system", [*said])


@frozen
class Row:
    """A request of another dialect, the pass that it goes through, and what becomes of it."""

    given: dict[str, Any]
    through: Pass
    left: dict[str, Any]
    losses: Mapping[str, int] = NONE
    repairs: Mapping[str, int] = NONE
    takes: Mapping[str, Any] = NONE
    target: Mapping[str, Any] = NONE


def lowered(row: Row) -> tuple[Request, StreamReport]:
    takes = Capabilities(**{"dialect": "ours", "vendor": "us", "title": "Ours", **row.takes})
    to = Lowering(takes, Target(**row.target), StreamReport(), "theirs")
    request = Request("theirs", **row.given)
    to.search = next((tool for tool in request.tools if tool.search is not None), None) if takes.search else None
    row.through(request, to)
    return request, to.report


def of_part(step: PartPass) -> Pass:
    return lambda request, to: each_part(request, to, step)


def part(step: PartPass, given: Part, left: Part | None, *counted: dict[str, int], **takes: Any) -> Row:
    """A row of a pass over one part of the assistant's."""
    return Row(
        {"turns": [model(given)]},
        of_part(step),
        {"turns": [model(*([] if left is None else [left]))]},
        *counted,
        takes=takes,
    )


PARTS = {
    "a text alone in a result": Row(
        {"turns": [user(RESULT)]},
        OfParts({Text: (lambda *_: HI,)}),
        {"turns": [user(evolve(RESULT, parts=[HI]))]},
    ),
    "a refusal is a text": part(content.refusal_as_text, Refusal("no"), Text("no"), {"refusal_as_text": 1}),
    "a refusal stays": part(content.refusal_as_text, Refusal("no"), Refusal("no"), refusals=True),
    "media that fit": part(content.media, Media("image", url="u"), Media("image", url="v"), media=lambda media, *_: evolve(media, url="v")),
    "media that do not": part(content.media, Media("image", url="u"), None, media=lambda *_: None),
    "an aside of another vendor": part(content.aside, NOTE, None, {"citation": 1}),
    "signed reasoning": part(content.signature, Reasoning("t", signature=OURS), Reasoning("t", signature=OURS), signs_reasoning="us"),
    "signed by another": part(
        content.signature, Reasoning("t", signature=THEIRS), None, {"reasoning_signature": 1, "reasoning_history": 1}, signs_reasoning="us"
    ),
    "stripped of the other's": part(
        content.signature, Reasoning("t", signature=THEIRS), Reasoning("t"), {"reasoning_signature": 1}, strips_signatures=True
    ),
    "signed by nobody": part(content.signature, Reasoning("t"), Reasoning("t"), unsigned_reasoning=True),
    "signed by nobody and refused": part(content.signature, Reasoning("t"), None, {"reasoning_history": 1}),
    "opaque": part(content.signature, RedactedReasoning(OURS), RedactedReasoning(OURS), signs_reasoning="us"),
    "opaque of another": part(content.signature, RedactedReasoning(THEIRS), None, {"reasoning_opaque": 1}, signs_reasoning="us"),
    "opaque that is not taken": part(
        content.signature, RedactedReasoning(OURS), None, {"reasoning_opaque": 1}, signs_reasoning="us", takes_opaque=lambda blob: blob != "b1"
    ),
    "a signed text": part(content.signature, Text("t", THEIRS), Text("t"), {"reasoning_signature": 1}),
    "a text for its signature alone": part(content.signature, Text("", THEIRS), None, {"reasoning_signature": 1}, blank_texts="some"),
    "a signed call": part(content.signature, evolve(CALL, signature=OURS), evolve(CALL, signature=OURS), signs_calls="us"),
    "a call signed by another": part(content.signature, evolve(CALL, signature=THEIRS), CALL, {"reasoning_signature": 1}, signs_calls="us"),
    "an error in words": part(
        content.error_in_words, ToolResult("c1", [Text("bad")], is_error=True), ToolResult("c1", [Text("Error: bad")]), {"result_error": 1}, result_errors=False
    ),
    "an error without words": part(
        content.error_in_words, ToolResult("c1", is_error=True), ToolResult("c1", [Text("Error: ")]), {"result_error": 1}, result_errors=False
    ),
    "a form of another dialect": part(content.native_form, ToolCall(0, "c1", "look", "", item={"type": "x"}), ToolCall(0, "c1", "look", "")),
    "members of another dialect": part(content.extras, Text("t", extras={"a": 1, "b": None}), Text("t"), {"metadata": 1}),
    "a custom call": part(
        content.arguments, evolve(CALL, kind="custom", arguments="x"), evolve(CALL, arguments='{"input":"x"}'), {"custom_tool_wrapped": 1}
    ),
    "arguments that are no object": part(
        content.arguments, evolve(CALL, arguments="[1"), evolve(CALL, arguments='{"_raw_arguments":"[1"}'), {"arguments_wrapped": 1}, arguments="object"
    ),
    "no arguments": part(content.arguments, evolve(CALL, arguments=" "), evolve(CALL, arguments="{}"), arguments="object"),
    "half a character": part(
        content.arguments, evolve(CALL, arguments='{"a":"\\ud800"}'), evolve(CALL, arguments='{"a":"\\ufffd"}'), {}, {"lone_surrogate": 1}, arguments="object"
    ),
    "a mark without a place": part(content.cache_mark, Text("t", cache="long"), Text("t"), {"cache_mark": 1}),
    "a mark of another span": part(content.cache_mark, Text("t", cache="long"), Text("t", cache="long"), {"cache_mark": 1}, marked=(Text,)),
    "a mark that means the same": part(
        content.cache_mark, Text("t", cache="long"), Text("t", cache="long"), marked=(Text,), same_marks=frozenset({"theirs"})
    ),
}  # fmt: skip

TURNS = {
    "a block that is text": Row(
        {"turns": [user(Aside("them", "unknown_event", "content.tool_reference", {"tool_name": "f"}))]}, content.readable,
        {"turns": [user(Text("Found the tool f."))]}, {"metadata": 1},
    ),
    "a file of text": Row(
        {"turns": [user(Media("file", "text/plain", "SGk="))]}, content.readable, {"turns": [user(HI)]}, {"metadata": 1}, takes={"text_files": False}
    ),
    "an image of another type": Row(
        {"turns": [user(Media("image", "image/jpg", url="u"))]}, content.readable, {"turns": [user(Media("image", "image/jpeg", url="u"))]}, {}, {"media_type_mended": 1}
    ),
    "blank beside a call": Row({"turns": [model(Text(" "), CALL)]}, content.telling, {"turns": [model(CALL)]}, {}, {"turn_empty": 1}),
    "a space between words": Row({"turns": [model(HI, Text(" "), HO)]}, content.telling, {"turns": [model(HI, Text(" "), HO)]}),
    "a blank system": Row({"turns": [system(Text("")), user(HI)]}, content.telling, {"turns": [user(HI)]}, {}, {"turn_empty": 1}),
    "silent turns": Row(
        {"turns": [user(HI), model(NOTE), model()]}, content.no_silent_turns, {"turns": [user(HI)]}, {"citation": 1}, {"turn_empty": 1}
    ),
    "nothing but silent turns": Row({"turns": [system(HI), model()]}, content.no_silent_turns, {"turns": [system(HI), model()]}),
    "an answer to be continued": Row(
        {"turns": [user(HI), model(HO)]}, content.answerable, {"turns": [user(HI), model(HO), user(Text(content.CLOSING))]}, {}, {"turn_added": 1},
        {"model": evolve(UNKNOWN, prefill=False)},
    ),
    "space at the end of it": Row(
        {"turns": [model(Text("Ho "))]}, content.continuable, {"turns": [model(HO)]}, {}, {"space_trimmed": 1}, {"is_claude": True}
    ),
    "a named turn and an empty one": Row(
        {"turns": [Turn("user", [HI], "Ann"), model()]}, content.turns_counted, {"turns": [user(HI), model()]}, {"turn_name": 1}, {"turn_empty": 1}
    ),
    "empty texts": Row(
        {"turns": [user(HI, Text("", cache="short"), Text(" "))]}, content.no_blank_texts, {"turns": [user(HI, Text(" "))]}, {"cache_mark": 1},
        {"turn_empty": 1}, {"blank_texts": "some"},
    ),
    "blank texts": Row(
        {"turns": [user(HI, Text(" "))]}, content.no_blank_texts, {"turns": [user(HI)]}, {}, {"turn_empty": 1}, {"blank_texts": "none"}
    ),
    "members of turns": Row({"turns": [Turn("user", [HI], extras={"a": 1})]}, content.no_extras, {"turns": [user(HI)]}, {"metadata": 1}),
    "turns that are left empty": Row({"turns": [user(), model(HI)]}, content.no_empty_turns, {"turns": [model(HI)]}),
    "a system behind the user": Row(
        {"turns": [user(HI), system(HO), model(HI)]}, content.system_in_place, {"turns": [user(HI), system(HO), model(HI)]}, takes={"system": "behind user"}
    ),
    "a system in the middle": Row(
        {"turns": [system(HO), user(HI), system(HI), user(HO)]}, content.system_in_place, {"turns": [system(HO), system(HI), user(HI), user(HO)]},
        {"system_place": 1}, takes={"system": "front"},
    ),
    "neighbours": Row(
        {"turns": [user(RESULT), user(HI), user(HO), model(HI)]}, content.neighbours_joined, {"turns": [user(RESULT, HI, HO), model(HI)]},
        {}, {"turns_joined": 1}, {"alternate": True},
    ),
    "results first": Row(
        {"turns": [model(CALL), user(HI, RESULT), user(OTHER)]}, content.results_placed, {"turns": [model(CALL), user(RESULT, OTHER, HI)]},
        {}, {"result_moved": 2}, {"results": "first"},
    ),
    "results behind their calls": Row(
        {"turns": [model(CALL), user(HI), user(RESULT, HO)]}, content.results_placed, {"turns": [model(CALL), user(RESULT), user(HI), user(HO)]},
        {}, {"result_moved": 1}, {"results": "behind calls"},
    ),
    "results apart": Row(
        {"turns": [model(CALL), user(HI, RESULT)]}, content.results_placed, {"turns": [model(CALL), user(RESULT), user(HI)]},
        {}, {"result_moved": 1}, {"results": "apart"},
    ),
    "a system that speaks for the user": Row(
        {"turns": [system(HI), system(HO)]}, content.user_speaks, {"turns": [user(HI, HO)]}, {"system_place": 1}, takes={"needs_user": "messages"}, target={"emulate": True}
    ),
    "an assistant who speaks first": Row(
        {"turns": [system(HI), model(HO)]}, content.user_speaks_first, {"turns": [system(HI), user(Text(content.OPENING)), model(HO)]}, {}, {"turn_added": 1},
        {"needs_user": "messages", "user_first": True},
    ),
}  # fmt: skip

TOOLS = {
    "groups of tools": Row(
        {"tools": [evolve(LOOK, namespace=Namespace("ns"))]}, lowering.namespaces_lost, {"tools": [evolve(LOOK, namespace=Namespace("ns"))]}, {"tool_namespace": 1}
    ),
    "a choice of what is not defined": Row(
        {"tools": [LOOK, WEB], "tool_choice": ToolChoice("auto", ("look", "web"))}, lowering.choice_feasible,
        {"tools": [LOOK, WEB], "tool_choice": ToolChoice("auto", ("look",))}, {"tool_choice": 1},
    ),
    "a choice of nothing that is defined": Row(
        {"tools": [LOOK, WEB], "tool_choice": ToolChoice("auto", ("web",))}, lowering.choice_feasible, {"tools": [LOOK, WEB], "tool_choice": ToolChoice("none")}, {"tool_choice": 1}
    ),
    "a choice where nothing is defined": Row({"tools": [WEB], "tool_choice": ToolChoice()}, lowering.choice_feasible, {"tools": [WEB]}),
    "a choice of some": Row(
        {"tools": [LOOK, GO], "tool_choice": ToolChoice("auto", ("go",))}, lowering.choice_narrowed, {"tools": [GO], "tool_choice": ToolChoice()},
        {"tool_choice": 1}, target={"emulate": True},
    ),
    "a choice of some that can be said": Row(
        {"tools": [LOOK, GO], "tool_choice": ToolChoice("auto", ("go",))}, lowering.choice_narrowed, {"tools": [LOOK, GO], "tool_choice": ToolChoice("auto", ("go",))},
        takes={"some_tools": True},
    ),
    "calls one by one": Row(
        {"tools": [LOOK], "tool_choice": ToolChoice(parallel=False)}, lowering.parallel_counted, {"tools": [LOOK], "tool_choice": ToolChoice()},
        {"tool_choice": 1},
    ),
    "calls one by one that can be said": Row(
        {"tools": [LOOK], "tool_choice": ToolChoice(parallel=False)}, lowering.parallel_counted,
        {"tools": [LOOK], "tool_choice": ToolChoice(parallel=False)}, takes={"parallel": True},
    ),
    "a custom tool": Row(
        {"tools": [CUSTOM]}, lowering.no_custom_tools, {"tools": [Tool("run", "Runs.", lowering.INPUT_SCHEMA)]}, {"custom_tool_wrapped": 1}
    ),
    "a provider's tool": Row({"tools": [LOOK, WEB]}, lowering.tools_fit, {"tools": [LOOK]}, {"tool_definition": 1}),
    "a search": Row(
        {"tools": [WEB], "tool_choice": ToolChoice("required", ("web",), extras={"a": 1})}, lowering.tools_fit,
        {"tools": [evolve(WEB, name="find", raw={"name": "find"})], "tool_choice": ToolChoice("required", ("find",))}, {"parameter": 1, "metadata": 1},
        takes={"search": lambda *_: {"name": "find"}, "search_options": frozenset({"max_uses"})},
    ),
    "the called tools": Row(
        {"turns": [model(CALL)]}, lowering.called_tools_defined, {"turns": [model(CALL)], "tools": [LOOK], "tool_choice": ToolChoice("none")},
        {}, {"tool_declared": 1}, {"declares_called": True},
    ),
    "a schema without properties": Row(
        {"tools": [LOOK, GO]}, lowering.schemas_with_properties, {"tools": [evolve(LOOK, parameters={"type": "object", "properties": {}}), GO]},
        {}, {"properties_added": 1}, {"needs_properties": True},
    ),
    "a choice among none": Row({"tool_choice": ToolChoice()}, lowering.no_choice_among_none, {}),
}  # fmt: skip

OPTIONS = {
    "too many stops, and a blank one": Row(
        {"options": Options(stop=(" ", "a", "b"))}, lowering.options_fit, {"options": Options(stop=("a",))}, {"parameter": 1},
        takes={"is_claude": True, "most_stops": 1},
    ),
    "what the model refuses": Row(
        {"options": Options(temperature=0.5, seed=1)}, lowering.options_fit, {"options": Options(seed=1)}, {"parameter": 1},
        takes={"model": evolve(UNKNOWN, refuses=("temperature",))},
    ),
    "an effort with thinking off": Row(
        {"options": Options(thinking=Thinking("high", enabled=False))}, lowering.options_fit, {"options": Options(thinking=Thinking(enabled=False))}, {"parameter": 1}
    ),
    "a form without its schema": Row(
        {"options": Options(output=OutputFormat("schema", name="n"))}, lowering.options_fit, {"options": Options(output=OutputFormat("json"))}, {"parameter": 1}
    ),
    "a form next to tools": Row(
        {"tools": [LOOK], "options": Options(output=OutputFormat("json"))}, lowering.form_or_tools, {"tools": [LOOK]}, {"parameter": 1}, takes={"form_with_tools": False}
    ),
    "a form next to tools that none may be called of": Row(
        {"tools": [LOOK], "tool_choice": ToolChoice("none"), "options": Options(output=OutputFormat("json"))}, lowering.form_or_tools,
        {"options": Options(output=OutputFormat("json"))}, {"tool_choice": 1}, takes={"form_with_tools": False},
    ),
    "more marks than are taken": Row(
        {"turns": [user(Text("a", cache="short"), Text("b", cache="short"))]}, lowering.marks_counted, {"turns": [user(Text("a"), Text("b", cache="short"))]},
        {"cache_mark": 1}, takes={"most_marks": 1},
    ),
    "options without a place": Row(
        {"options": Options(seed=1, top_k=2, service_tier="fast")}, lowering.options_with_place, {"options": Options(top_k=2)}, {"parameter": 2},
        takes={"options": frozenset({"top_k", "service_tier"}), "service_tiers": frozenset({"slow"})},
    ),
    "members of the request": Row({"extras": {"a": 1, "b": None}}, lowering.no_members_of_others, {}, {"parameter": 1}),
}  # fmt: skip

ROWS = {**PARTS, **TURNS, **TOOLS, **OPTIONS}


@pytest.mark.parametrize("name", ROWS)
def test_a_pass(name):
    row = ROWS[name]
    request, report = lowered(row)
    assert request == Request("theirs", **row.left)
    assert (dict(report.losses), dict(report.repairs)) == (row.losses, row.repairs)


#: What is refused, by the member that the refusal names.
REFUSED = {
    "an unknown part": ("p", Row({"turns": [user(Aside("them", "unknown_event", "content.x", {"type": "x"}, place="p"))]}, content.readable, {})),
    "an answer to be continued": (
        "messages", Row({"turns": [model(HO)]}, content.answerable, {}, takes={"model": evolve(UNKNOWN, prefill=False)}, target={"assistant_last": "refuse"})
    ),
    "a system alone": ("messages", Row({"turns": [system(HI)]}, content.user_speaks, {}, takes={"needs_user": "messages"})),
    "an assistant first": (
        "messages", Row({"turns": [model(HI)]}, content.user_speaks_first, {}, takes={"needs_user": "messages", "user_first": True}, target={"assistant_first": "refuse"})
    ),
    "a tool that is not defined": ("tool_choice", Row({"tools": [WEB], "tool_choice": ToolChoice("required", ("web",))}, lowering.choice_feasible, {})),
    "any tool where there is none": ("tool_choice", Row({"tool_choice": ToolChoice("required")}, lowering.choice_feasible, {})),
    "a choice of some": ("tool_choice", Row({"tools": [LOOK, GO], "tool_choice": ToolChoice("auto", ("go",))}, lowering.choice_narrowed, {})),
    "several choices": ("n", Row({"options": Options(choices=2)}, lowering.one_choice, {})),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal(name):
    path, row = REFUSED[name]
    with pytest.raises(BadRequest) as refused:
        lowered(row)
    assert refused.value.path == path


def test_ids_and_names_are_rewritten_alike_and_counted_once():
    given = [
        model(evolve(CALL, id="a long id", name="look up")),
        user(ToolResult("a long id", [Text("42")], "look up")),
    ]
    row = Row({"turns": given}, of_part(content.portable_words), {}, takes={"ids": US, "names": US})
    request, report = lowered(row)
    (call,), (result,) = (turn.parts for turn in request.turns)
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (call.id, call.name) == (result.call_id, result.name)
    assert US.fullmatch(call.id)
    assert report.repairs == {"id_rewritten": 1, "name_rewritten": 1}
