"""Calls in a text: the machine, the recipes around it, the laws, and that nothing else is taken for one."""

from __future__ import annotations

import random
import re
from collections import Counter

import orjson
import pytest
from aiohttp import web
from attrs import evolve

from streamkit import TOLERANT, collect, decode_response, encode_response, find_text_calls, transcode
from streamkit.dialects import DIALECTS
from streamkit.errors import ArgumentsTooLong, UsageError
from streamkit.events import (
    ReasoningDelta,
    RefusalDelta,
    StopReasonSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallFinished,
    UsageReported,
)
from streamkit.in_text.calls import FIRST_LABEL, KIND, TextCallFinder
from streamkit.in_text.code_blocks import CodeTracker
from streamkit.in_text.grammars import GRAMMARS, HEAD_CHARS, GrammarSet
from streamkit.in_text.parameters import JSONValue, OfferedTools
from streamkit.in_text.thinking import BLANK_CHARS
from streamkit.limits import Limits
from streamkit.policy import TextCalls
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.testing import cuts, joined, source_of
from streamkit.web import Upstream, setup
from tests.cli.command import run
from tests.gateway.running import asking, upstream_at
from tests.laws.running import every_stream, read
from tests.reports import refusing
from tests.vectors import VECTORS
from tests.vectors.field import CASES as FIELD
from tests.vectors.field.inside_text import ALL, CASES, TOOLS
from tests.vectors.field.unclosed import CASES as UNCLOSED
from tests.vectors.openai_chat import DONE, ROLE, STOP, chunk, said
from tests.vectors.vector import sse
from tests.web.evil import EvilUpstream
from tests.web.faults import answer as status_and_body
from tests.web.raw_client import ask
from tests.web.serving import serving

FORMS = [form for case in CASES if case.number > 230 for form in case.forms]
CALLING = [
    form for form in FORMS if form.calls and form.clean and all(call.verdict != "truncated" for call in form.calls)
]
EVERYTHING = evolve(ALL, think_tags="on")
ENDS = ("</tool_call>", "</function>", "invoke>", "</｜DSML", "</｜｜DSML")
MEDIA = {True: "text/event-stream", False: "application/json"}


def name_of(form):
    return form.name or form.dialect


def finder(*grammars, tools=None, report=None, **limits):
    return TextCallFinder(
        GrammarSet.named(grammars or GRAMMARS), tools=OfferedTools(tools), limits=Limits(**limits), report=report
    )


def fed(machine, *texts, reason="stop"):
    events = [event for text in texts for event in machine.feed([TextDelta(text)])]
    return events + machine.feed([StopReasonSeen(reason, reason)] if reason else []) + machine.finish()


def text_of(events):
    return "".join(event.text for event in events if type(event) is TextDelta)


def arguments_of(events):
    return "".join(event.arguments or "" for event in events if type(event) is ToolCallDelta)


# -- the machine -------------------------------------------------------------------------------------------------------


def test_the_names_of_the_grammars_are_those_of_the_policy():
    assert set(GRAMMARS) == set(TextCalls.__args__)
    for names in (), ("hermes", "nothing"):
        with pytest.raises(UsageError, match=r"hermes.*qwen"):
            find_text_calls(*names)


def test_arguments_are_handed_on_as_they_come():
    machine = finder("hermes")
    begun = machine.feed([TextDelta('<tool_call>{"name": "f", "arguments": {"x": ')])
    assert [(event.name, event.arguments) for event in begun] == [("f", None), (None, '{"x":')]
    assert arguments_of(machine.feed([TextDelta('"abc')])) == ' "ab'
    assert machine.feed([TextDelta('"}}</tool')])[-1].arguments == 'c"'
    assert machine.feed([TextDelta("_call>")]) == [
        ToolCallDelta(FIRST_LABEL + 1, arguments="}"), ToolCallEnded(FIRST_LABEL + 1),
    ]  # fmt: skip


def test_strings_between_tags_are_handed_on_as_they_come():
    machine = finder("qwen")
    assert arguments_of(machine.feed([TextDelta("<function=f>\n<parameter=x>\nab")])) == '{"x": "a'
    assert arguments_of(machine.feed([TextDelta("c\n")])) == "b"
    assert arguments_of(machine.feed([TextDelta("d</")])) == "c\\n"


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_a_marker_alone_is_text(grammar):
    for marker in GrammarSet.named([grammar]).markers:
        for text in (
            marker,
            marker[:-1],
            f"{marker}\n",
            f"{marker} is a marker",
            f"{marker}<",
            f"{marker}{{",
            f'{marker}{{"name": 1}}',
        ):
            assert text_of(fed(finder(grammar), *text)) == text
            assert text_of(fed(finder(grammar), text)) == text


def test_what_can_be_no_head_is_handed_on_at_once():
    machine = finder("hermes")
    assert text_of(machine.feed([TextDelta("<tool_call> is")])) == "<tool_call> is"
    assert text_of(machine.feed([TextDelta("\n<tool_call>\n")])) == "\n"
    assert text_of(machine.feed([TextDelta("x")])) == "<tool_call>\nx"


def test_other_content_closes_what_is_whole_and_keeps_the_order():
    call = '<tool_call>{"name": "f", "arguments": {}}'
    for other in ReasoningDelta("hm"), RefusalDelta("no"), ToolCallDelta(0, "a", "g", ""), TextDelta("x", 0, 1):
        out = finder("hermes").feed([TextDelta(call), other])
        assert [type(event) for event in out] == [
            ToolCallDelta,
            ToolCallDelta,
            ToolCallDelta,
            ToolCallEnded,
            type(other),
        ]
        assert out[-1] == other
        held = [TextDelta("a\n<tool"), other]
        assert joined(finder("hermes").feed(held)) == joined([TextDelta("a\n"), TextDelta("<tool"), other])


def test_counts_in_between_change_nothing():
    machine = finder("hermes")
    usage = UsageReported(1)
    out = machine.feed([TextDelta("<tool_"), usage, TextDelta('call>{"name":"f","arguments":{}}</tool_call>')])
    assert (out[0], arguments_of(out)) == (usage, "{}")


def test_choices_are_apart():
    machine = finder("hermes")
    out = machine.feed(
        [TextDelta("<tool_call>", 1), TextDelta('{"name":"f"}', 0), TextDelta('{"name":"f"}</tool_call>', 1)]
    )
    assert [type(event) for event in out] == [TextDelta, ToolCallDelta, ToolCallEnded]
    assert (out[0], out[1].choice) == (TextDelta('{"name":"f"}', 0), 1)


def test_white_space_around_calls_is_dropped_and_elsewhere_kept():
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert text_of(fed(finder("hermes"), f"\n\n{call}\n\n{call}\n")) == ""
    assert text_of(fed(finder("hermes"), f"\n{call}\n b")) == "\n b"
    for blank in "\n", " " * BLANK_CHARS, " " * (BLANK_CHARS + 1):
        assert text_of(fed(finder("hermes"), *blank)) == blank
        assert text_of(fed(finder("hermes"), *f"{blank}x")) == f"{blank}x"


def test_each_call_is_a_repair():
    report = StreamReport()
    fed(finder("mistral", report=report), '[TOOL_CALLS][{"name":"f","arguments":{}},{"name":"f","arguments":{}}]')
    assert report.repairs == {KIND: 2}


def test_a_policy_that_refuses_repairs_ends_the_stream_behind_what_came_before():
    machine = finder("hermes", report=refusing())
    assert text_of(machine.feed([TextDelta('a\n<tool_call>{"name":"f"}')])) == "a\n"
    assert KIND in str(machine.fault)


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_l1_cuts_change_nothing(form):
    check_cuts(form, cuts(form.body, sample=6, seed=len(form.body)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_l1_no_cut_changes_anything(form):
    check_cuts(form, cuts(form.body, exhaustive=True))


def check_cuts(form, ways):
    whole = read(form.dialect, [form.body], policy=form.policy, offered=form.offered).facts()
    for reads in ways:
        assert read(form.dialect, reads, policy=form.policy, offered=form.offered).facts() == whole


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_l1_the_deltas_of_the_provider_change_nothing(form):
    """The same text in other deltas: one letter each, or at random."""
    plain = read(form.dialect, [form.body], policy=evolve(form.policy, text_calls=(), think_tags="off"))
    text, reasons = plain.text(), [StopReasonSeen(form.stop, "")] if form.stop else []
    if plain.calls:
        pytest.skip("calls of the wire's own")
    reasons = [StopReasonSeen("length", "")] if form.stop == "length" else reasons
    rng = random.Random(len(text))

    def said_in(pieces):
        machine = finder(tools=form.offered)
        out = machine.feed([TextDelta(piece) for piece in pieces[:2]])
        for piece in pieces[2:]:
            out += machine.feed([TextDelta(piece)])
        out += machine.feed(reasons) + machine.finish()
        found = (
            text_of(out),
            Counter(type(event) for event in out if type(event) is not ToolCallDelta and type(event) is not TextDelta),
        )
        by_call = {}
        for event in out:
            if type(event) is ToolCallDelta:
                by_call.setdefault(event.index, []).append(event)
        calls = [
            (deltas[0].name, deltas[0].id, "".join(d.arguments or "" for d in deltas)) for deltas in by_call.values()
        ]
        return found, calls

    expected = said_in([text])
    assert said_in(text) == expected
    for _ in range(30):
        ends = sorted(rng.choices(range(len(text) + 1), k=4))
        assert said_in([text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]) == expected


def parts_of_grammars():
    for grammar in GRAMMARS.values():
        for head in grammar.heads:
            yield from (part for part in head.parts if isinstance(part, str))
            yield from head.ends
            yield from (head.tags.begin, head.tags.close, head.tags.end) if head.tags else ()
        yield from grammar.trailers


PARTS = [
    *dict.fromkeys(parts_of_grammars()),
    "read",
    "list_all",
    " ",
    "\n",
    "\n\n",
    " " * 300,
    "`",
    "```",
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    ",",
]


def mutated(rng, texts):
    """One or two of the texts, with letters left out, doubled and put in."""
    text = "".join(rng.choices(texts, k=rng.choice((1, 1, 2))))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        begin = rng.randrange(len(text) + 1)
        end = min(len(text), begin + rng.choice((0, 1, 1, 2, 5, 20)))
        text = text[:begin] + rng.choice(("", rng.choice(PARTS), text[begin:end] * 2)) + text[end:]
    return text


def told_in(pieces, tools, reason, limits):
    machine = TextCallFinder(GrammarSet.named(GRAMMARS), tools=tools, limits=limits)
    out = [event for piece in pieces for event in machine.feed([TextDelta(piece)])]
    out += machine.feed([StopReasonSeen(reason, "")]) + machine.finish()
    told = []
    for event in out:
        if type(event) is StopReasonSeen:
            continue
        said_so = event.text if type(event) is TextDelta else getattr(event, "arguments", None) or ""
        key = type(event), getattr(event, "index", None)
        if told and told[-1][0] == key:
            told[-1] = key, told[-1][1] + said_so, told[-1][2]
        else:
            told.append((key, said_so, getattr(event, "name", None)))
    return told, str(machine.fault)


@pytest.mark.parametrize("seed", range(40))
def test_l1_cuts_of_texts_that_are_nearly_calls_change_nothing(seed):
    rng = random.Random(seed)
    texts = [text_in(form) for form in FORMS if form.dialect == "openai-chat"]
    for _ in range(10):
        text, reason = mutated(rng, texts), rng.choice(("stop", "length"))
        tools = rng.choice((OfferedTools(TOOLS), OfferedTools(None), OfferedTools([{"name": "other"}])))
        limits = rng.choice((Limits(), Limits(arguments_chars=20)))
        whole = told_in([text], tools, reason, limits)
        for _ in range(3):
            ends = sorted(rng.choices(range(len(text) + 1), k=4))
            pieces = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]
            assert told_in(pieces, tools, reason, limits) == whole, pieces
        assert told_in(text, tools, reason, limits) == whole
        if not tools.has("read"):
            assert "".join(piece for (kind, _), piece, _ in whole[0] if kind is TextDelta) == text


def text_in(form):
    """The text of a stream, whatever stands in it."""
    return read(form.dialect, [form.body], policy=evolve(form.policy, text_calls=(), think_tags="off")).text()


def work(monkeypatch, text, size=7):
    """How many characters the scanners were handed, and the events."""
    counts = Counter()

    def counted(cls, what):
        feed = cls.feed

        def counting(self, text):
            counts[what] += len(text)
            return feed(self, text)

        monkeypatch.setattr(cls, "feed", counting)

    counted(JSONValue, "value")
    counted(CodeTracker, "code")
    events = fed(finder(), *(text[at : at + size] for at in range(0, len(text), size)))
    return counts, events


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "f", "arguments": {"x": "' + "a" * 100_000 + '"}}</tool_call>',
        '<tool_call>{"arguments": {"x": "' + "a" * 100_000 + '"}, "name": "f"}</tool_call>',
        '<tool_call>{"x": "' + "\n<tool_call>{" * 8_000 + '"}</tool_call>',
        "<tool_call>{\n" * 8_000,
        "<tool_call" * 10_000,
        "\n<function=f>\n<parameter=x>" + "</parameter" * 9_000,
        "<|tool_calls_section_begin|>" * 4_000,
        "[TOOL_CALLS]" * 9_000,
        "plain text with `code` and <b>tags</b>\n" * 2_500,
    ],
    ids=[
        "arguments",
        "arguments first",
        "markers in a string",
        "heads",
        "markers",
        "ends",
        "sections",
        "brackets",
        "text",
    ],
)
def test_l2_no_character_is_read_more_than_a_few_times(monkeypatch, text):
    counts, events = work(monkeypatch, text)
    assert counts["value"] <= 2 * len(text)
    assert counts["code"] <= len(text)
    assert events


@pytest.mark.parametrize("form", [form for form in CALLING if form.dialect == "openai-chat"], ids=name_of)
def test_l3_a_call_that_was_cut_is_never_complete(form):
    """At each letter of the text the stream ends, without a reason or by its length: a call is whole with its end only."""
    text = text_in(form)
    whole = {call.arguments for call in form.calls}
    for end in range(len(text)):
        for ending in ((), (chunk({}, "length"), DONE)):
            body = sse(ROLE, said(text[:end]), *ending)
            found = read(form.dialect, [body], policy=form.policy, offered=form.offered)
            assert found.clean is bool(ending)
            for call in found.calls:
                if call.verdict.kind != "truncated":
                    assert call.arguments in whole
                    assert is_closed(text[:end], call.arguments)


@pytest.mark.parametrize("form", [form for form in CALLING if len(form.calls) == 1], ids=name_of)
@pytest.mark.parametrize("reason", ["stop", "tool_calls"])
def test_l3_a_call_that_was_cut_is_none_without_arguments(form, reason):
    """Whatever the model wrote last, and though it stopped by itself: ``""`` means ``{}`` to clients."""
    text = text_in(form)
    for end in range(len(text)):
        body = sse(ROLE, said(text[:end]), chunk({}, reason), DONE)
        for call in read("openai-chat", [body], policy=EVERYTHING, offered=TOOLS).calls:
            if call.verdict.kind in {"complete", "empty"}:
                assert call.arguments == form.calls[0].arguments, text[:end]


def is_closed(text, arguments):
    """Whether more than brackets stands behind arguments, or an end of such as are not in the text as they are."""
    if arguments and arguments in text:
        return bool(text.rpartition(arguments)[2].strip(" \n}"))
    return any(end in text for end in ENDS)


def test_l6_what_is_held_is_bounded():
    machine = finder("hermes", arguments_chars=1000)
    out = fed(machine, '<tool_call>{"arguments": "', *["x" * 100] * 20, '", "name": "f"}</tool_call>')
    assert text_of(out).startswith('<tool_call>{"arguments": "xxx')
    assert not arguments_of(out)
    text = '<tool_call>{"' + "k" * HEAD_CHARS
    assert text_of(finder("hermes").feed([TextDelta(text)])) == text
    text = "<function=" + "f" * HEAD_CHARS
    assert text_of(finder("qwen").feed([TextDelta(text)])) == text
    commas = '<tool_call>{"name": "f", ' + ", " * 1000
    assert text_of(finder("hermes", arguments_chars=1000).feed([TextDelta(commas)])) == commas
    machine = finder("mistral")
    machine.feed([TextDelta('[TOOL_CALLS][{"name": "f", "arguments": {}},')])
    assert text_of(machine.feed([TextDelta(" " * 1000)])) == "," + " " * 1000
    for body, grammar in (('<tool_call>{"name": "f", "arguments": "', "hermes"), ("<function=f><parameter=n>", "qwen")):
        machine = finder(
            grammar,
            tools=[{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}],
            arguments_chars=1000,
        )
        machine.feed([TextDelta(body)])
        machine.feed([TextDelta("1" * 1001)])
        assert isinstance(machine.fault, ArgumentsTooLong)


# -- nothing else is taken for a call ----------------------------------------------------------------------------------

#: The field failure whose text holds the tags of Gemini's OpenAI endpoint.
THOUGHT_TAGS = 280
#: Recordings that do hold thinking or calls in their text: there the events must differ.
KNOWN = frozenset(
    {"openai-chat-neilberkman+req_llm/test/support/fixtures/azure/deepseek_r1/reasoning_streaming.json"}  # <think>
)
INSIDE = {id(form) for case in FIELD if case in CASES + UNCLOSED or case.number == THOUGHT_TAGS for form in case.forms}


def same(stream, policy=EVERYTHING):
    """Whether reading a stream with everything switched on gives the same events, in the normal form of L1."""
    plain, found = read(stream.dialect, [stream.body]), read(stream.dialect, [stream.body], policy=policy)
    return found.events == plain.events and found.report.repairs == plain.report.repairs


@pytest.mark.parametrize("stream", every_stream("no such text", ours=24))
def test_no_event_of_a_stream_that_holds_no_such_text_changes(stream):
    assert same(stream) is (str(stream) not in KNOWN)


def test_no_event_of_the_field_failures_changes():
    changed = [form.name for case in FIELD for form in case.forms if id(form) not in INSIDE and not same(form)]
    assert changed == []
    assert len(VECTORS) > 100


def said_by(response):
    return [
        (
            choice.text,
            choice.reasoning,
            [(call.name, call.arguments, call.verdict) for call in choice.tool_calls],
            choice.stop_reason,
        )
        for choice in response.choices
    ]


@pytest.mark.parametrize("stream", every_stream("no such answer", ours=24))
async def test_no_whole_answer_that_holds_no_such_text_changes(stream):
    """The answer of a stream, written whole in its own dialect."""
    response = await collect(source_of([stream.body]), stream.dialect)
    if not response.clean or not DIALECTS[stream.dialect].answers_whole:
        pytest.skip("no whole answer")
    body = encode_response(response, stream.dialect)
    plain, found = (
        decode_response(body, stream.dialect),
        decode_response(body, stream.dialect, ReadOptions(policy=EVERYTHING)),
    )
    assert (said_by(found) == said_by(plain)) is (str(stream) not in KNOWN)
    assert found.clean


TALK = [
    "Use `<think>` for thinking. <think>Like this.</think>",
    "```\n<think>\nx\n</think>\n```\n",
    'A call looks as follows:\n\n```json\n<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>\n```\nThat is all.',
    '~~~~\n```\n<tool_call>{"name": "read", "arguments": {}}</tool_call>\n```\n~~~~\n',
    "- ```\n  <function=read>\n  <parameter=path>\n  a\n  </parameter>\n  </function>\n  ```\n",
    'The model prints `[TOOL_CALLS]read[ARGS]{}` and `<|python_tag|>{"name": "read", "parameters": {}}`.',
    '`` `<｜DSML｜invoke name="read">` `` is DSML.',
    "Grammars: <tool_call>, <function=…>, <invoke name=…>, [TOOL_CALLS], <|tool_call_begin|>.",
    "<tool_call>\nread the docs\n</tool_call>",
    '<invoke name="unknown_tool">\n</invoke>',
    "diff --git a/x b/x\n<<<<<<< HEAD\n<tool_call>\n=======\n>>>>>>> main\n",
]  # fmt: skip


@pytest.mark.parametrize("text", TALK)
def test_text_that_talks_of_calls_stays_text(text):
    for pieces in ([text], list(text), re.findall(r"\S+|\s+", text)):
        body = sse(ROLE, *map(said, pieces), STOP, DONE)
        found = read("openai-chat", [body], policy=EVERYTHING, offered=TOOLS)
        assert (found.text(), found.calls, found.reasoning) == (text, [], "")
        assert not found.report.repairs


# -- recipes -----------------------------------------------------------------------------------------------------------

CONTENT = 'Let me look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
STREAM = sse(ROLE, said(CONTENT), STOP, DONE)
WHOLE = orjson.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": CONTENT}}]})  # fmt: skip
HERMES = evolve(TOLERANT, text_calls=("hermes",))


async def test_collect_and_transcode_find_them():
    response = await collect(source_of([STREAM]), "openai-chat", ReadOptions(policy=HERMES))
    assert [(call.name, call.arguments, call.verdict.kind) for call in response.choices[0].tool_calls] == [
        ("weather", '{"city": "Paris"}', "complete")
    ]
    assert response.choices[0].stop_reason == "tool_calls"
    async with transcode(source_of([STREAM]), "openai-chat", "openai-chat", ReadOptions(policy=HERMES)) as stream:
        again = b"".join([chunk async for chunk in stream])
    assert b'"finish_reason":"tool_calls"' in again
    tools = [{"type": "function", "function": {"name": "other", "parameters": {}}}]
    assert (await collect(source_of([STREAM]), "openai-chat", ReadOptions(policy=HERMES, offered=tools))).choices[
        0
    ].text == CONTENT
    assert (await collect(source_of([STREAM]), "openai-chat", ReadOptions(policy=HERMES, tools=TOOLS))).choices[
        0
    ].text == CONTENT


@pytest.mark.parametrize("form", [form for form in FORMS if form.dialect == "openai-chat"], ids=name_of)
def test_a_whole_answer_is_read_as_its_stream(form):
    plain = read(form.dialect, [form.body], policy=evolve(form.policy, text_calls=(), think_tags="off"))
    if not plain.clean or plain.calls:
        pytest.skip("no whole answer says this")
    message = {"role": "assistant", "content": plain.text()}
    body = orjson.dumps({"id": "c", "choices": [{"index": 0, "finish_reason": plain.stops[0], "message": message}]})
    whole = decode_response(body, form.dialect, ReadOptions(policy=form.policy, offered=form.offered))
    found = [(call.name, call.arguments, call.verdict.kind) for call in whole.choices[0].tool_calls]
    assert found == [(call.name, call.arguments, call.verdict) for call in form.calls]
    assert (whole.choices[0].text, whole.choices[0].reasoning) == (form.text, form.reasoning)
    assert (whole.choices[0].stop_reason, whole.report.repairs) == (form.stop, form.repairs)


@pytest.mark.parametrize("target", DIALECTS.built_in)
async def test_every_dialect_writes_such_a_call(target):
    async with transcode(source_of([STREAM]), "openai-chat", target, ReadOptions(policy=HERMES)) as stream:
        out = b"".join([chunk async for chunk in stream])
    again = await collect(source_of([out]), target)
    assert [(call.name, call.arguments) for call in again.choices[0].tool_calls] == [("weather", '{"city": "Paris"}')]
    assert again.choices[0].stop_reason == "tool_calls"


def test_the_command_line_looks_where_it_is_told_to(tmp_path):
    found = run(
        "inspect", "--from", "openai-chat", "--json", "--text-calls", "qwen", "--text-calls", "hermes", stdin=STREAM
    )
    assert orjson.loads(found.stdout)["choices"][0]["tool_calls"][0]["name"] == "weather"
    assert orjson.loads(run("inspect", "--json", stdin=STREAM).stdout)["choices"][0]["tool_calls"] == []
    whole = run("convert-response", "--from", "openai-chat", "--to", "anthropic", "--text-calls", "hermes", stdin=WHOLE)
    assert b'"stop_reason":"tool_use"' in whole.stdout
    assert (
        run("convert", "--from", "openai-chat", "--to", "anthropic", "--text-calls", "no", stdin=STREAM).returncode == 2
    )


# -- the web -----------------------------------------------------------------------------------------------------------


async def answered(client, *, stream, tools=True, **how):
    """What a client gets of an upstream that leaves calls in its text."""

    def script(asked):
        streams = asked.json().get("stream")
        return status_and_body(200, STREAM if streams else WHOLE, {"Content-Type": MEDIA[bool(streams)]})

    async with EvilUpstream(script) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat", **how))
        async with serving(app) as port:
            path, body = asking(client, stream=stream, tools=tools)
            answer = await ask(f"http://127.0.0.1:{port}", path, body=orjson.dumps(body))
    assert answer.status == 200
    return answer.body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("client", "mark"), [("anthropic", b'"tool_use"'), ("openai-chat", b'"tool_calls"')])
async def test_an_upstream_may_be_told_that_its_models_write_calls_into_the_text(client, mark, stream):
    assert mark not in await answered(client, stream=stream)
    assert mark in await answered(client, stream=stream, text_calls=("hermes",))
    assert mark not in await answered(client, stream=stream, text_calls=("hermes",), tools=False)


def test_a_grammar_that_is_none_is_refused():
    with pytest.raises(UsageError, match="text_calls: write a list of any of hermes, qwen"):
        Upstream(name="a", dialect="groq", base_url="https://a.example/v1", auth="none", text_calls=("x",))


def test_a_finished_call_carries_the_models_id():
    form = next(form for form in FORMS if form.name == "kimi")
    found = read(form.dialect, [form.body], policy=form.policy, offered=form.offered)
    assert [event.id for event in found.events if type(event) is ToolCallFinished] == [
        "functions.read:0",
        "functions.list_all:1",
    ]
