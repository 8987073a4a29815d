"""What ends a text, what may stand within it, and what of it goes with a change."""

from __future__ import annotations

import re

import pytest

from streamkit import UsageError, guard, map_text, redact
from streamkit.events import (
    Aside,
    ChoiceStarted,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    Verdict,
)
from streamkit.report import StreamReport
from streamkit.rewrite.stage import PARTS
from streamkit.testing import check_stage, joined

#: Two halves of the word that is changed, in one block.
HALVES = TextDelta("my sec"), TextDelta("ret")
CHANGED = TextDelta("my ***")
END = StreamEnded(clean=True)


def run(*events, parts=PARTS, report=None):
    machine = redact("secret", replacement="***", parts=parts).make(report or StreamReport())
    out = machine.feed(events)
    return joined(out + machine.finish())


INSIDE = {
    "usage": UsageReported(1),
    "an aside": Aside("v", "metadata", "m", 1),
    "a choice": ChoiceStarted(1),
    "the start": ResponseStarted(),
    "another choice's text": TextDelta("other", choice=1),
    "another choice's call": ToolCallStarted(0, "c", "f", choice=1),
    "another choice's end": ResponseFinished("stop", choice=1),
}
ENDS = {
    "another block": TextDelta("a", block=1),
    "reasoning": ReasoningDelta("a"),
    "a refusal": RefusalDelta("a"),
    "a signature": ReasoningSignature("s", "v", on="text"),
    "a picture": MediaGenerated("image"),
    "a call": ToolCallStarted(0, "c", "f"),
    "arguments": ToolCallArguments(0, "{"),
    "the choice's end": ResponseFinished("stop"),
    "a failure": ProviderFailed("server", "no"),
    "the end": END,
}


@pytest.mark.parametrize("event", INSIDE.values(), ids=INSIDE)
def test_a_text_goes_on_after_what_stands_within_it(event):
    out = run(HALVES[0], event, HALVES[1], END)
    out.remove(event)
    assert CHANGED in joined(out)


@pytest.mark.parametrize("event", ENDS.values(), ids=ENDS)
def test_what_ends_a_text_comes_after_all_of_it(event):
    out = run(HALVES[0], event, HALVES[1])
    assert out[0] == HALVES[0]
    assert HALVES[1] in out


@pytest.mark.parametrize(
    ("part", "one", "other", "wanted"),
    [
        ("text", *HALVES, CHANGED),
        ("reasoning", ReasoningDelta("my sec"), ReasoningDelta("ret"), ReasoningDelta("my ***")),
        ("refusal", RefusalDelta("my sec"), RefusalDelta("ret"), RefusalDelta("my ***")),
    ],
)
def test_only_the_parts_that_were_named_are_changed(part, one, other, wanted):
    assert run(one, other, parts=part) == [wanted]
    assert run(one, other, parts=[each for each in PARTS if each != part]) == joined([one, other])


CALL = ToolCallStarted(0, "c", "f"), ToolCallArguments(0, '{"secret": "a sec'), ToolCallArguments(0, 'ret"}')


def test_arguments_and_the_finished_call_agree():
    finished = ToolCallFinished(0, "c", "f", '{"secret": "a secret"}', verdict=Verdict("complete"))
    changed = '{"secret": "a ***"}'
    out = run(*CALL, finished)
    assert out == [CALL[0], ToolCallArguments(0, changed), ToolCallFinished(0, "c", "f", changed)]
    assert run(*CALL, finished, parts="text")[-1] == finished


def test_an_unchanged_call_keeps_its_verdict():
    finished = ToolCallFinished(0, "c", "f", '{"a": "b"}', verdict=Verdict("complete"))
    assert run(CALL[0], ToolCallArguments(0, '{"a": "b"}'), finished)[-1] == finished


def test_an_unchanged_call_agrees_with_its_fragments():
    given = r'{"a": "\u0041"}'
    finished = ToolCallFinished(0, "c", "f", given, verdict=Verdict("complete"))
    out = run(CALL[0], ToolCallArguments(0, given), finished)
    assert out[1].fragment == out[2].arguments == '{"a": "A"}'
    assert out[2].verdict == Verdict("complete")


def test_a_line_break_in_a_string_hides_nothing_that_is_around_it():
    given = '{"a": "one\ntwo"}'  # as some models write it
    for cuts in ([given], [*given]):
        machine = redact("one\ntwo").make(StreamReport())
        fragments = [ToolCallArguments(0, piece) for piece in cuts]
        out = machine.feed([CALL[0], *fragments, ToolCallFinished(0, "c", "f", given)])
        assert out[-1].arguments == '{"a": "[redacted]"}'


def test_a_call_without_fragments_is_changed_too():
    out = run(CALL[0], ToolCallFinished(0, "c", "f", '["secret"]'))
    assert out[1:] == [ToolCallArguments(0, '["***"]'), ToolCallFinished(0, "c", "f", '["***"]')]


def test_free_text_is_changed_as_it_stands():
    started = ToolCallStarted(0, "c", "f", kind="custom")
    out = run(
        started, ToolCallArguments(0, '"sec'), ToolCallArguments(0, 'ret"'), ToolCallFinished(0, "c", "f", '"secret"')
    )
    assert out[-1].arguments == '"***"'


def test_what_repeats_a_changed_text_is_lost():
    report = StreamReport()
    logprobs, signature = Aside("v", "logprobs", "l", ["sec", "ret"]), ReasoningSignature("s", "v")
    out = run(logprobs, ReasoningDelta("secret"), signature, ReasoningDelta("a", block=1), END, report=report)
    assert out == [ReasoningDelta("***"), ReasoningDelta("a", block=1), END]
    assert report.losses == {"logprobs": 1, "reasoning_signature": 1}
    assert run(ReasoningDelta("fine"), signature)[-1] == signature


def test_asides_are_changed_inside():
    raw = {"secret": [{"text": "a secret"}, 1, None]}
    assert run(Aside("v", "citation", "c", raw))[0].raw == {"secret": [{"text": "a ***"}, 1, None]}


@pytest.mark.parametrize("event", [ResponseStarted("r", extras={}), ToolCallStarted(0, "c", "f", extras={})])
def test_what_only_one_vendor_has_is_changed_inside(event):
    event.extras = {"instructions": "a secret", "tools": [{"secret": 1}]}
    assert run(event)[0].extras == {"instructions": "a ***", "tools": [{"secret": 1}]}
    assert run(event, parts=("text", "arguments"))[0] == event


#: Asides with a piece of a text: code that a provider runs, the input of its tool, what a model says aloud.
PIECES = {
    "code": lambda text: Aside("v", "server_tool", "code.delta", {"type": "code.delta", "item": "i", "delta": text}),
    "input": lambda text: Aside("v", "server_tool", "d", {"index": 1, "delta": {"type": "input", "json": text}}),
    "a tool's input": lambda text: Aside("v", "server_tool", "d", {"delta": {"tool": {"input": text}}}),
    "a transcript": lambda text: Aside("v", "audio", "audio", {"id": "secret", "transcript": text}),
    "an event of a transcript": lambda text: Aside("v", "audio", "transcript.delta", {"delta": text}),
}
AFTER = [Aside("v", "server_tool", "code.done", {}), ResponseFinished("stop"), END]


@pytest.mark.parametrize("after", AFTER, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_a_text_in_asides_is_changed_whole(piece, after):
    out = run(piece("my sec"), HALVES[0], piece("ret, a sec"), UsageReported(1), HALVES[1], after)
    released = ["my ", "***, a ", "sec"]
    assert [event for event in out if isinstance(event, Aside) and event != after] == [
        piece(text) if "id" not in piece("").raw else Aside("v", "audio", "audio", {"id": "***", "transcript": text})
        for text in released
    ]
    assert "".join(event.text for event in out if isinstance(event, TextDelta)) == "my ***"
    assert out[-1] == after


def test_audio_is_sent_once():
    said = Aside("v", "audio", "audio", {"transcript": "sec", "data": "AAAA"})
    assert [event.raw for event in run(said, END)[:-1]] == [{"transcript": "", "data": "AAAA"}, {"transcript": "sec"}]


def test_texts_of_two_blocks_in_asides_are_two_texts():
    first, other = (Aside("v", "server_tool", "d", {"delta": text}, block=n) for n, text in enumerate(("sec", "ret")))
    assert [event.raw["delta"] for event in run(first, other, END)[:-1]] == ["", "sec", "ret"]


def test_an_input_that_fails_gives_what_waits():
    machine = redact("secret").make(StreamReport())
    assert joined(machine.feed([HALVES[0]]) + machine.abandon()) == [HALVES[0]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: map_text("a", hold=1), "the first argument must be a function from str to str"),
        (lambda: map_text(str, hold=-1), "hold must be a number of characters, 0 or more, not -1"),
        (lambda: map_text(str, hold=1.5), "hold must be a number"),
        (
            lambda: map_text(str, hold=1, parts="texts"),
            "each of parts must be one of 'text', .*, not 'texts'; did you mean 'text'",
        ),
        (lambda: map_text(str, hold=1, parts=()), "each of parts must be one of .*, not ''"),
        (redact, "each pattern must be"),
        (lambda: redact(""), "each pattern must be"),
        (lambda: redact(b"a"), "each pattern must be"),
        (lambda: redact(re.compile(b"a"), hold=1), "each pattern must be"),
        (lambda: guard(bool, hold=0), "hold must be 1 or more"),
        (lambda: redact(re.compile("a+")), "'a\\+' can match text of any length"),
        (lambda: redact(re.compile("a(?=.*b)")), "can match text of any length"),
        (lambda: redact(re.compile("a{3,9}"), hold=8), "hold must be at least 9"),
        (lambda: redact("a", hold=1.5), "hold must be at least 1, the length of the longest match"),
        (lambda: redact("a", replacement=None), "replacement must be str, not NoneType"),
        (lambda: redact(re.compile("a{0,9}")), "'a\\{0,9}' can match an empty text"),
        (lambda: guard("a", hold=1), "the first argument must be a function that gets a text"),
        (lambda: guard(bool, hold=1, reply="silence"), "reply must be one of 'refusal', 'error', not 'silence'"),
    ],
)
def test_wrong_arguments_are_named(make, words):
    with pytest.raises(UsageError, match=words):
        make()


#: A whole response: text, a call, reasoning and usage.
RESPONSE = [
    [ResponseStarted(id="r"), ChoiceStarted(), ReasoningDelta("It is secret."), UsageReported(3)],
    [TextDelta("Say a secret", block=1), TextDelta(" or two secrets.", block=1)],
    [*CALL, ToolCallFinished(0, "c", "f", '{"secret": "a secret"}'), ResponseFinished("tool_calls"), END],
]


@pytest.mark.parametrize("parts", [PARTS, ("text",), ("arguments",)], ids=str)
async def test_the_stages_keep_the_laws(parts):
    await check_stage(redact("secret", parts=parts), RESPONSE)
    await check_stage(redact(re.compile(r"s\w{1,8}t"), replacement="", parts=parts), RESPONSE)
    await check_stage(guard(lambda text: "nothing" in text, hold=10, parts=parts), RESPONSE)
