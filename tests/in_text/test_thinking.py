"""Thinking between tags: the machine, the recipes around it, and the laws over streams of it."""

from __future__ import annotations

import orjson
import pytest
from aiohttp import web
from attrs import evolve

from streamkit import STRICT, TOLERANT, collect, decode_response, transcode
from streamkit.errors import UsageError
from streamkit.events import (
    Aside,
    MediaGenerated,
    ReasoningDelta,
    RefusalDelta,
    StopReasonSeen,
    TextDelta,
    ToolCallDelta,
    UsageReported,
)
from streamkit.in_text.thinking import BLANK_CHARS, KIND, TAGS, ThinkSplitter, unfinished
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.testing import cuts, source_of
from streamkit.web import Upstream, setup
from tests.cli.command import run
from tests.gateway.running import asking, upstream_at
from tests.laws.running import read
from tests.reports import refusing
from tests.vectors.field.inside_text import CASES, OPENED
from tests.vectors.openai_chat import DONE, ROLE, STOP, said
from tests.vectors.vector import sse
from tests.web.evil import EvilUpstream
from tests.web.faults import answer as status_and_body
from tests.web.raw_client import ask
from tests.web.serving import serving

ON = evolve(TOLERANT, think_tags="on")
FORMS = [form for case in CASES if case.number < 231 for form in case.forms]
MEDIA = {True: "text/event-stream", False: "application/json"}


def fed(*texts: str, mode="tags", report=None):
    """What comes of the fragments, each fed by itself: thoughts and text."""
    machine = ThinkSplitter(mode=mode, report=report)
    out = [event for text in texts for event in machine.feed([TextDelta(text)])] + machine.finish()
    kinds = (ReasoningDelta, TextDelta)
    assert all(type(event) in kinds for event in out)
    return tuple("".join(event.text for event in out if type(event) is kind) for kind in kinds)


# -- the machine -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", TAGS)
def test_each_tag_is_found_at_every_pair_of_cuts(tag):
    text = f"\n {tag}\n thoughts \n{TAGS[tag]}\n\n answer {tag}x{TAGS[tag]}"
    expected = " thoughts \n".lstrip(), f"answer {tag}x{TAGS[tag]}"
    for first in range(len(text)):
        for second in range(first, len(text)):
            assert fed(text[:first], text[first:second], text[second:]) == expected
    assert fed(*text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n", "<", "<th", "<think", "< think>", "<Think>x", "a<think>b</think>", "[THI", "</", "&lt;think>"],
)
def test_what_is_no_tag_stays_as_it_is(text):
    for pieces in ((text,), tuple(text), (text, "")):
        assert fed(*pieces) == ("", text)


def test_white_space_in_front_of_a_tag_counts_up_to_a_bound():
    assert fed(" " * BLANK_CHARS, "<think>a</think>b") == ("a", "b")
    assert fed(" " * (BLANK_CHARS + 1), "<think>a</think>b") == ("", " " * (BLANK_CHARS + 1) + "<think>a</think>b")


def test_what_waits_of_white_space_is_bounded():
    machine = ThinkSplitter()
    given = [len(machine.feed([TextDelta(text)])) for _ in range(BLANK_CHARS + 2) for text in (" ", "")]
    assert given == [*[0] * (2 * BLANK_CHARS), BLANK_CHARS + 1, *[1] * 3]


def test_no_character_is_looked_at_again_and_again():
    """What is held of thoughts is shorter than the closing tag, whatever they look like."""
    machine = ThinkSplitter()
    machine.feed([TextDelta("<think>x")])
    came = sum(len(event.text) for _ in range(20_000) for event in machine.feed([TextDelta("</thin<")]))
    assert 20_000 * 7 - came < len("</think>")


def test_the_longest_end_that_may_begin_a_tag_is_found():
    assert unfinished("a<thin", ("<think>", "<thought>")) == 5
    assert unfinished("a<think>", ("<think>",)) == 0
    assert unfinished("<<", ("<<<",)) == 2
    assert unfinished("", ("<think>",)) == 0


def test_counts_and_asides_do_not_end_the_beginning():
    machine = ThinkSplitter()
    usage, aside, blank = UsageReported(1), Aside("v", "logprobs", "logprobs", {}), ReasoningDelta(" ")
    out = machine.feed([TextDelta("<thi"), usage, aside, blank, TextDelta("nk>a</think>b")])
    assert out == [usage, blank, aside, ReasoningDelta("a"), TextDelta("b")]


def test_asides_keep_their_place_in_text_that_is_held():
    one, two = Aside("v", "citation", "citation", 1), Aside("v", "citation", "citation", 2)
    events = [TextDelta("\n"), one, TextDelta("<th"), two, TextDelta("is>"), one]
    assert ThinkSplitter().feed(events) == events
    machine = ThinkSplitter()
    assert machine.feed(events[:4]) == []
    assert machine.finish() == events[:4]
    many = [TextDelta("\n"), *[one] * 5000]
    assert 0 < len(ThinkSplitter().feed(many)) < len(many)


@pytest.mark.parametrize("other", [ToolCallDelta(0, "a", "f", ""), RefusalDelta("no"), ReasoningDelta("elsewhere")])
def test_behind_anything_else_that_was_said_no_tag_opens(other):
    report = StreamReport()
    machine = ThinkSplitter(report=report)
    assert machine.feed([other, TextDelta("<think>a</think>b")]) == [other, TextDelta("<think>a</think>b")]
    assert not report.repairs


def test_what_is_held_goes_before_what_ends_the_beginning():
    call = ToolCallDelta(0, "a", "f", "")
    assert ThinkSplitter().feed([TextDelta("<thi"), call]) == [TextDelta("<thi"), call]
    held = [TextDelta("<think>a</th"), call, TextDelta("ink>b")]
    assert ThinkSplitter().feed(held) == [ReasoningDelta("a"), ReasoningDelta("</th"), call, ReasoningDelta("ink>b")]


def test_blocks_and_choices_are_apart():
    out = ThinkSplitter().feed(
        [
            TextDelta("<think>a", 1, 4),
            TextDelta("b", 0, 4),
            TextDelta("c", 1, 5),
            TextDelta("<thi", 2, 0),
            TextDelta("nk>", 2, 1),
        ]
    )
    assert out == [
        ReasoningDelta("a", 1, 4), TextDelta("b", 0, 4), TextDelta("c", 1, 5), TextDelta("<thi", 2, 0), TextDelta("nk>", 2, 1),
    ]  # fmt: skip


def test_the_end_and_a_failure_hand_on_what_is_held():
    for end in "finish", "abandon":
        machine = ThinkSplitter()
        machine.feed([TextDelta("<think>a</t"), TextDelta("[TH", 1)])
        assert getattr(machine, end)() == [ReasoningDelta("</t"), TextDelta("[TH", 1)]


def test_opened_reads_thoughts_at_once_and_to_the_end():
    assert fed("Hm.", "</think>", "Hi", mode="opened") == ("Hm.", "Hi")
    assert fed("Hm.", mode="opened") == ("Hm.", "")
    assert fed("</think>Hi", mode="opened") == ("", "Hi")
    assert ThinkSplitter(mode="opened").feed([TextDelta("Hm.")]) == [ReasoningDelta("Hm.")]
    parsed = [ReasoningDelta("elsewhere"), TextDelta("Hi")]
    assert ThinkSplitter(mode="opened").feed(parsed) == parsed


def test_a_policy_that_refuses_repairs_ends_the_stream_behind_what_came_before():
    report = refusing()
    machine = ThinkSplitter(report=report)
    stop = StopReasonSeen("stop", "stop")
    assert machine.feed([stop, TextDelta("<think>a</think>")]) == [stop]
    assert KIND in str(machine.fault)


# -- recipes -----------------------------------------------------------------------------------------------------------

STREAM = sse(ROLE, said("<think>Hm.</think>\n\nHi"), STOP, DONE)
WHOLE = orjson.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "<think>Hm.</think>\n\nHi"}}]})  # fmt: skip


async def test_auto_is_on_for_providers_that_are_known_for_it_only():
    for name, found in ("groq", "Hm."), ("minimax", "Hm."), ("openai", ""), ("openai-chat", ""):
        assert (await collect(source_of([STREAM]), name)).choices[0].reasoning == found
    for policy in evolve(TOLERANT, think_tags="off"), STRICT:
        assert (await collect(source_of([STREAM]), "groq", ReadOptions(policy=policy))).choices[0].reasoning == ""


async def test_within_a_dialect_auto_lets_the_frames_pass_and_on_writes_them_anew():
    async def written(name, **how):
        async with transcode(source_of([STREAM]), name, "openai-chat", **how) as stream:
            return b"".join([chunk async for chunk in stream])

    assert await written("groq") == STREAM
    assert b'"reasoning_content":"Hm."' in await written("groq", options=ReadOptions(policy=ON))
    assert b'"reasoning_content":"Hm."' in await written("groq", reencode=True)


@pytest.mark.parametrize("form", [form for form in FORMS if form.dialect == "openai-chat"], ids=lambda form: form.name)
def test_a_whole_answer_is_read_as_its_stream(form):
    """The same texts, joined into the content of one message, where the stream is one choice of text that ended well."""
    stream = read(form.provider or form.dialect, [form.body], policy=evolve(form.policy, think_tags="off"))
    if not form.clean or len(stream.stops) > 1 or stream.reasoning:
        pytest.skip("no whole answer says this")
    message = {"role": "assistant", "content": stream.text()}
    body = orjson.dumps({"id": "c", "choices": [{"index": 0, "finish_reason": form.stop, "message": message}]})
    whole = decode_response(body, form.provider or form.dialect, ReadOptions(policy=form.policy))
    assert (whole.choices[0].text, whole.choices[0].reasoning) == (form.text, form.reasoning)
    assert whole.report.repairs == form.repairs


def test_the_command_line_says_how(tmp_path):
    file = tmp_path / "stream.sse"
    file.write_bytes(STREAM)
    found = run("inspect", "--json", "--think-tags", "on", str(file))
    assert orjson.loads(found.stdout)["choices"][0]["reasoning"] == "Hm."
    assert orjson.loads(run("inspect", "--json", str(file)).stdout)["choices"][0]["reasoning"] == ""
    converted = run("convert", "--from", "openai-chat", "--to", "anthropic", "--think-tags", "on", stdin=STREAM)
    assert b'"thinking":"Hm."' in converted.stdout
    whole = run("convert-response", "--from", "openai-chat", "--to", "anthropic", "--think-tags", "on", stdin=WHOLE)
    assert b'"thinking":"Hm."' in whole.stdout


# -- the web -----------------------------------------------------------------------------------------------------------


async def answered(dialect, client, *, stream, **how):
    """What a client of an upstream gets whose text begins with thinking."""

    def script(asked):
        streams = asked.json().get("stream")
        return status_and_body(200, STREAM if streams else WHOLE, {"Content-Type": MEDIA[bool(streams)]})

    async with EvilUpstream(script) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, dialect, **how))
        async with serving(app) as port:
            path, body = asking(client, stream=stream)
            answer = await ask(f"http://127.0.0.1:{port}", path, body=orjson.dumps(body))
    assert answer.status == 200
    return answer.body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_an_upstream_may_be_told_to_think_in_its_text(stream):
    assert b'"thinking":"Hm."' in await answered("groq", "anthropic", stream=stream)
    assert b'"thinking":"Hm."' not in await answered("openai-chat", "anthropic", stream=stream)
    assert b'"thinking":"Hm."' in await answered("openai-chat", "anthropic", stream=stream, think_tags="on")
    assert b'"thinking":"Hm."' not in await answered("groq", "anthropic", stream=stream, think_tags="off")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_client_of_the_upstreams_dialect_gets_its_bytes_unless_it_is_on(stream):
    assert await answered("groq", "openai-chat", stream=stream) == (STREAM if stream else WHOLE)
    assert b'"reasoning_content":"Hm."' in await answered("groq", "openai-chat", stream=stream, think_tags="on")


def test_a_word_that_is_none_is_refused():
    with pytest.raises(UsageError, match="think_tags: write one of auto, on, opened, off"):
        Upstream(name="a", dialect="groq", base_url="https://a.example/v1", auth="none", think_tags="yes")


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name or form.dialect)
def test_l1_cuts_change_nothing(form):
    check_cuts(form, cuts(form.body, sample=6, seed=len(form.body)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name or form.dialect)
def test_l1_no_cut_changes_anything(form):
    check_cuts(form, cuts(form.body, exhaustive=True))


def check_cuts(form, ways):
    name = form.provider or form.dialect
    whole = read(name, [form.body], policy=form.policy).facts()
    for reads in ways:
        assert read(name, reads, policy=form.policy).facts() == whole


def without_half_a_tag(text: str) -> str:
    """What the end cut off inside a tag, it leaves as it is."""
    return text[: len(text) - unfinished(text, (*TAGS, *TAGS.values()))]


@pytest.mark.parametrize("form", [form for form in FORMS if form.clean], ids=lambda form: form.name or form.dialect)
def test_l3_a_cut_stream_invents_neither_thoughts_nor_text_nor_an_end(form):
    name = form.provider or form.dialect
    for end in range(0, len(form.body), 3):
        found = read(name, [form.body[:end]], policy=form.policy)
        assert found.clean or not found.stops
        if found.clean:
            assert (found.reasoning, found.text()) == (form.reasoning, form.text)
        else:
            assert form.reasoning.startswith(without_half_a_tag(found.reasoning))
            assert form.text.startswith(without_half_a_tag(found.text()).lstrip())


def test_opened_is_said_of_no_stream_by_itself():
    assert OPENED.reads_text
    assert not TOLERANT.reads_text


def test_an_image_comes_behind_the_text_in_front_of_it():
    image = MediaGenerated("image", data="AA==")
    report, events = StreamReport(), [TextDelta("<thi"), image, TextDelta("nk>")]
    assert ThinkSplitter(report=report).feed([*events]) == events
    assert not report.repairs
