"""L4: what conforms is not repaired. Within a dialect the bytes pass; across dialects argument text keeps its characters."""

from __future__ import annotations

import random
from itertools import pairwise

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.recipes import transcode
from streamkit.testing import FaultySource, cut_at, open_sources
from streamkit.tool_calls.value_text import plain_text
from tests.laws.running import OBJECTS, every_stream, in_one_line, read, translate

#: What a parse and a dump would spoil: numbers, key order, escapes, white space.
ARGUMENTS = [
    '{"x":1.0}',
    '{"x":1e21,"y":-0.0,"z":1E+2}',
    '{"x":18446744073709551616}',
    '{"x":' + "7" * 100 + "}",
    '{"z":1,"a":2,"z":3}',
    '{"s":"\\u00e9\\/\\n\\ud83d\\ude00 é \N{GRINNING FACE}"}',
    '{ "x" : [ 1 ,\t2 ] }',
    '{"x":1E400}',
    '{"s":"\\ud800"}',
    "{}",
]
LINE_ENDS = ['{\n  "x": 1\n}', '{\r\n"x":1}', '{"s":"\u2028\u2029\x85"}']


@pytest.mark.parametrize("stream", every_stream("l4 passes"))
async def test_within_a_dialect_the_bytes_of_a_clean_stream_pass(stream):
    if not read(stream.dialect, [stream.body]).clean:
        pytest.skip("the stream does not end cleanly")
    rng = random.Random(len(stream.body))
    reads = cut_at(stream.body, sorted(rng.choices(range(len(stream.body) + 1), k=9)))
    async with transcode(FaultySource(reads), stream.dialect, stream.dialect) as output:
        passed = b"".join([piece async for piece in output])
    assert open_sources() == 0
    end = DIALECTS[stream.dialect].frame_end
    lacking = passed[len(stream.body) :]  # a last frame without its end gets one, so that readers see it
    assert passed[: len(stream.body)] == stream.body
    assert lacking in (b"", end) or (stream.dialect, lacking) == ("gemini", b"]")
    assert not (lacking and stream.body.endswith((end, b"\r\n\r\n", b"\r\r")))


def chat(arguments: str, size: int) -> bytes:
    """A Chat stream with one call, its arguments in fragments of ``size`` characters."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta, finish=None):
        return b"data: %b\n\n" % orjson.dumps(
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        )

    def call(**function):
        return {"index": 0, "function": function}

    start = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    fragments = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    return b"".join(
        [
            chunk({"role": "assistant", "tool_calls": [start]}),
            *(chunk({"tool_calls": [call(arguments=fragment)]}) for fragment in fragments),
            chunk({}, "tool_calls"),
            b"data: [DONE]\n\n",
        ]
    )


def through(body: bytes, *way: str) -> str:
    """The arguments of the one call once the stream went through all these dialects."""
    for source, target in pairwise(way):
        body, report = translate(source, target, [body], passing=False)
        assert report.repairs.keys() <= {"number_out_of_range", "lone_surrogate"}
    (call,) = read(way[-1], [body]).calls
    assert call.verdict.kind == "complete"
    return call.arguments


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("arguments", [*ARGUMENTS, *LINE_ENDS])
def test_argument_text_keeps_its_bytes_between_dialects_of_text(arguments, size):
    assert through(chat(arguments, size), "openai-chat", "anthropic", "openai-chat", "anthropic") == arguments


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_argument_text_keeps_all_but_escapes_through_a_dialect_of_objects(arguments):
    way = ("openai-chat", "ollama", "anthropic", "gemini", "ollama", "gemini", "openai-chat")
    assert through(chat(arguments, 4), *way) == plain_text(arguments)


@pytest.mark.parametrize("arguments", LINE_ENDS)
@pytest.mark.parametrize("dialect", sorted(OBJECTS))
def test_only_line_ends_and_escapes_change_in_a_dialect_of_objects(arguments, dialect):
    assert through(chat(arguments, 4), "openai-chat", dialect) == in_one_line(arguments)


@pytest.mark.parametrize("stream", every_stream("l4 calls", ours=24))
def test_recorded_calls_come_back_as_they_were(stream):
    there = read(stream.dialect, [stream.body])
    calls = [
        call
        for call in there.calls
        if call.choice == 0 and call.name and call.verdict.kind == "complete" and call.kind == "function"
    ]
    if not there.clean or not calls or len(calls) != len([call for call in there.calls if call.choice == 0]):
        pytest.skip("no clean stream with complete calls")
    for middle in DIALECTS:
        output, report = translate(stream.dialect, middle, [stream.body], passing=False)
        if report.losses["late_arguments"]:
            continue
        if middle != stream.dialect:
            output, _ = translate(middle, stream.dialect, [output], passing=False)
        back = [call for call in read(stream.dialect, [output]).calls if call.choice == 0]
        spelled = [
            (call.name, in_one_line(call.arguments) if OBJECTS & {middle, stream.dialect} else call.arguments)
            for call in calls
        ]
        assert [(call.name, call.arguments) for call in back] == spelled, middle


def test_the_maker_and_the_clock_make_output_reproducible():
    first = translate("openai-chat", "anthropic", [chat("{}", 1)])[0]
    assert first == translate("openai-chat", "anthropic", [chat("{}", 1)])[0]
