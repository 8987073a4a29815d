"""Frames that are read by the template of those before: the same events, counts, state and faults as by the decoder."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import orjson
import pytest
from attrs import asdict, evolve, fields, has
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.dialects import DIALECTS, decode
from streamkit.dialects.fast_path import like_frames
from streamkit.dialects.fast_path.like_frames import LikeFrameDecoder, decode_stage
from streamkit.dialects.fast_path.template import Template, template_of
from streamkit.dialects.openai_chat.decode import ChatDecoder
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import RunningText, Texts
from streamkit.events import (
    ChoiceStarted,
    ReasoningDelta,
    ResponseFinished,
    ResponseStarted,
    StopReasonSeen,
    StreamEnded,
    TextDelta,
    UsageReported,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Chain, pipe
from streamkit.recipes import parse
from streamkit.report import StreamReport
from streamkit.testing import cut_at, source_of
from streamkit.tool_calls.delta_run import DeltaRun
from streamkit.tool_calls.text_buffer import TextBuffer
from tests.framing.binary import chunks, events
from tests.laws.running import CLOCK, every_stream, maker
from tests.vectors import anthropic as am

#: Dialects whose frames are read by template.
READ = [
    name
    for name, dialect in DIALECTS.items()
    if isinstance(decoder := dialect.decoder(DEFAULT_LIMITS, StreamReport()), FrameDecoder) and decoder.holes()
]


#: What a decoder has beside its state: how it was made, and what only the frame at hand decides. Texts are compared in
#: ``tests/dialects/streams/test_running_text.py``.
PASSING = frozenset(
    {"limits", "report", "fault", "out", "frame", "marks", "marks_all"}
    | {"texts", "_unheld", "_foreign", "_whole_inputs", "_by_type", "_by_event", "_values"}
    | {"_names", "_unread", "_choice_names", "_choice_unread"}
)


def like_decoder(decoder: Any) -> LikeFrameDecoder:
    return LikeFrameDecoder(decoder, decoder.holes())


def plain(value: Any) -> Any:
    """What a value says, for classes that are equal to themselves alone."""
    if isinstance(value, FrameDecoder):
        return plain({name: member for name, member in vars(value).items() if name not in PASSING})
    if has(type(value)):
        return {field.name: plain(getattr(value, field.name)) for field in fields(type(value))}
    if isinstance(value, Texts | RunningText):
        return type(value)
    if isinstance(value, TextBuffer):
        return value.whole()
    if isinstance(value, dict):
        return [(plain(key), plain(member)) for key, member in value.items()]
    return [plain(item) for item in value] if isinstance(value, list | tuple | deque) else value


def told(machine: Any, parser: Any, decoder: Any, report: StreamReport, reads: list[bytes]):
    """All that reading gives and leaves behind."""
    events = []
    for chunk in reads:
        events += machine.feed(chunk)
        if machine.fault is not None:
            break
    else:
        events += machine.finish()
    fault = machine.fault
    facts = asdict(report)
    if fault is not None:  # the parser may have read on, and counted
        facts = {}
    else:
        facts |= {"boundary": parser.boundary, "id": getattr(parser, "last_event_id", ""), "state": plain(decoder)}
    return events, (type(fault), str(fault), getattr(fault, "offset", None)), facts


def by_frames(dialect: str, reads: list[bytes], limits: Limits = DEFAULT_LIMITS):
    report = StreamReport()
    parser, decoder = DIALECTS[dialect].parser(limits, report), DIALECTS[dialect].decoder(limits, report)
    return told(Chain(parser, decoder), parser, decoder, report, reads)


def by_template(dialect: str, reads: list[bytes], limits: Limits = DEFAULT_LIMITS, *, gives_runs: bool = False):
    report = StreamReport()
    parser: Any = DIALECTS[dialect].parser(limits, report)
    decoder = DIALECTS[dialect].decoder(limits, report)
    machine = like_decoder(decoder)
    machine.gives_runs = gives_runs
    if hasattr(parser, "gives_runs"):
        parser.gives_runs = gives_runs
    events, fault, facts = told(Chain(parser, machine), parser, decoder, report, reads)
    return [one for event in events for one in (event.deltas() if type(event) is DeltaRun else [event])], fault, facts


def check(dialect: str, body: bytes, limits: Limits = DEFAULT_LIMITS, seed: int = 0, ways: int = 3):
    rng = random.Random(seed)
    size = len(body)
    frames = DIALECTS[dialect].parser(limits, StreamReport()).feed(body)
    places = [[], [frame.offset for frame in frames]]
    places += [sorted(rng.choices(range(size + 1), k=rng.randint(1, 9))) for _ in range(ways)]
    for cuts in places:
        reads = cut_at(body, sorted(set(cuts)))
        expected = by_frames(dialect, reads, limits)
        for gives_runs in (False, True):
            found = by_template(dialect, reads, limits, gives_runs=gives_runs)
            assert found == expected, [len(read) for read in reads]


def frames_taken(monkeypatch, dialect: str) -> list[Any]:
    """The frames that the decoder is given from now on."""
    taken: list[Any] = []
    decoder = type(DIALECTS[dialect].decoder(DEFAULT_LIMITS, StreamReport()))
    take = decoder.take
    monkeypatch.setattr(decoder, "take", lambda self, frame: taken.append(frame) or take(self, frame))
    return taken


@pytest.mark.parametrize("stream", every_stream("like frames", ours=24))
def test_every_stream_says_the_same_by_template_and_by_frames(stream):
    if stream.dialect in READ:
        check(stream.dialect, stream.body, seed=len(stream.body))


@pytest.mark.parametrize("count", [2, 3, 5, 9])
@pytest.mark.parametrize("odd", [None, b'"\\ud800"', b'""', b"1"])
def test_a_few_events_a_read_are_read_as_by_frames(count, odd):
    texts = [text(b'"ab%d"' % number) for number in range(40)]
    calls = [call(b"%d" % (number % 3), b'"x%d"' % number) for number in range(40)]
    padded = [text(b'"ab%d"' % number, b',"obfuscation":"p%d"' % number) for number in range(40)]
    if odd is not None:
        texts[21], calls[21], padded[21] = text(odd), call(b"1", odd), text(odd, b',"obfuscation":"p"')
    for frames in (texts, [begun(0), begun(1), begun(2), *calls], padded):
        events = [sse(frame) for frame in (*frames, *LAST)]
        for inside in (0, 7):  # in which the next event begins
            body = b"".join(events)
            places = [len(b"".join(events[:at])) + inside for at in range(count, len(events), count)]
            reads = cut_at(body, places)
            expected = by_frames("openai-chat", reads)
            assert by_template("openai-chat", reads, gives_runs=True) == by_template("openai-chat", reads) == expected


@pytest.mark.parametrize("dialect", READ)
@pytest.mark.parametrize("size", [65536, None])
def test_long_runs_are_read_at_once_and_deltas_alone_as_they_come(dialect, size, monkeypatch):
    """The fast path is used, and not only learned and left."""
    encoder = DIALECTS[dialect].encoder(Encoding(make_id=maker(), clock=CLOCK), StreamReport())
    deltas = [TextDelta(f"word {number}, ") for number in range(600)]
    events = [ResponseStarted("r", "m", 1), ChoiceStarted(), *deltas, ResponseFinished("stop"), StreamEnded(clean=True)]
    frames = [encoder.feed([event]) for event in events]
    taken = frames_taken(monkeypatch, dialect)
    body = b"".join(frames)
    reads = [one for one in frames if one] if size is None else cut_at(body, list(range(0, len(body), size))[1:])
    found, _, _ = by_template(dialect, reads)
    assert [event.text for event in found if type(event) is TextDelta] == [delta.text for delta in deltas]
    assert len(taken) < 120


# -- Chat, made to measure ---------------------------------------------------------------------------------------------

HEAD = b'{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'


def chunk(delta: bytes, more: bytes = b"", finish: bytes = b"null") -> bytes:
    return HEAD + delta + b',"finish_reason":' + finish + b"}]" + more + b"}"


def sse(*payloads: bytes, end: bytes = b"\n") -> bytes:
    return b"".join(b"data: " + payload + end + end for payload in payloads)


def text(value: bytes, more: bytes = b"") -> bytes:
    return chunk(b'{"content":' + value + b"}", more)


def call(index: bytes, fragment: bytes) -> bytes:
    return chunk(b'{"tool_calls":[{"index":' + index + b',"function":{"arguments":' + fragment + b"}}]}")


def begun(index: int) -> bytes:
    return chunk(
        b'{"tool_calls":[{"index":%d,"id":"i%d","type":"function","function":{"name":"f","arguments":""}}]}'
        % (index, index)
    )


LAST = (chunk(b"{}", finish=b'"stop"'), b"[DONE]")
#: What stands where a string should, or nearly.
HOLES = [
    b'"a"', b'","', b'"\\n"', b'"\\u00e9"', '"é\u2028"'.encode(), b'"\\\\"', b'"\\""', b'"{}[]"', b'"]}"', b'"content"', b'"\\ud83d\\ude00"',
    b'""', b'"\\ud800"', b'"\xff"', b'"\\x"', b'"a', b'a"', b'"a","b"', b'"a" ', b' "a"', b'\t"a"', b"null", b"1", b"true", b"[]",
    b'["a"]', b"{}", b'"a"}', b'"a"},"x":{"content":"b"', b'"a","content":"b"', b'"\x00"', b'"\t"', b'"\r"', b'"a"\r', b'"\n"', b'"a"\n', b"",
    b'"\x02probe 0\x03"', b'"a"},"finish_reason":null}]}', b'"a","tool_calls":[{"index":0,"function":{"arguments":"x"}}]',
]  # fmt: skip
INDICES = [
    b"0",
    b"1",
    b"2",
    b"00",
    b"-1",
    b"1.0",
    b"1e0",
    b"99999",
    b"9223372036854775808",
    b'"1"',
    b"null",
    b" 1",
    b"1\n",
    b"",
    b"true",
]


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("more", [b"", b',"obfuscation":"abc"'])
def test_whatever_stands_in_a_hole_is_read_as_by_frames(hole, more):
    good = [text(b'"ab%d"' % number, more) for number in range(4)]
    body = sse(*good, text(hole, more), *good, *LAST)
    check("openai-chat", body, ways=6)
    padded = [text(b'"ab"', b',"obfuscation":"%d"' % number) for number in range(4)]
    check("openai-chat", sse(*padded, text(b'"ab"', b',"obfuscation":' + hole), *padded, *LAST))


def test_a_string_that_begins_in_one_hole_and_ends_in_the_next_is_no_string():
    """Joined, these three holes would be three strings."""
    good = [text(b'"ab%d"' % number) for number in range(4)]
    for holes in ([b'"a', b'b"', b'"c","d"'], [b'"c","d"', b'"a', b'b"']):
        check("openai-chat", sse(*good, *[text(hole) for hole in holes], *good, *LAST), ways=6)


COUNTS = [
    b'{"prompt_tokens":1,"completion_tokens":7,"total_tokens":8}', b'{"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":3}}',
    b'{"a":{"b":{"c":1}}}', b'{"a":"}"}', b'{"a":"{"}', b'{"a":"\\""}', b'{"completion_tokens":-1}', b'{"completion_tokens":1E400}',
    b'{"completion_tokens":12345678901234567890}', b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9,"completion_tokens_details":{"reasoning_tokens":6}}',
    b'{"a":"\\ud800"}', b'{"a":"\xff"}', b'{"a":1,"a":2}', b"{}", b"[]", b"null", b"1", b'"x"', b'{"a":1', b'{"a":1,}', b'{"a":1}}',
    b'{"a":1}\r', b'{"a":\r1}', b'{"a":\n1}', b' {"a": 1} ', b'{"a":1},"usage":{"b":2}', b'{"a":1},"choices":[]', b'{"a":1},"x_groq":{"usage":{"b":2}}',
]  # fmt: skip


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("more", [b"", b',"obfuscation":"abc"'])
def test_whatever_stands_for_token_counts_is_read_as_by_frames(counts, more):
    good = [
        text(b'"ab%d"' % number, b',"usage":{"prompt_tokens":1,"completion_tokens":%d}' % number + more)
        for number in range(4)
    ]
    body = sse(*good, text(b'"x"', b',"usage":' + counts + more), *good, *LAST)
    check("openai-chat", body, ways=6)
    check("openai-chat", sse(*good, text(b'"\\ud800"', b',"usage":' + counts + more), *good, *LAST))
    fragments = [call(b"0", b'"x%d"' % number)[:-1] + b',"usage":{"n":%d}}' % number for number in range(4)]
    odd = call(b"0", b'"y"')[:-1] + b',"usage":' + counts + b"}"
    check("openai-chat", sse(begun(0), *fragments, odd, *fragments, *LAST))


def test_padding_may_be_empty(monkeypatch):
    """OpenAI's is of none to some sixteen letters and digits."""
    taken = frames_taken(monkeypatch, "openai-chat")
    padded = [text(b'"ab%d"' % n, b',"obfuscation":"%b"' % (b"x" * (n % 3))) for n in range(500)]
    for reads in ([sse(*padded, *LAST)], [sse(one) for one in (*padded, *LAST)]):
        taken.clear()
        events, _, _ = by_template("openai-chat", reads, gives_runs=True)
        assert [event.text for event in events if type(event) is TextDelta] == [f"ab{n}" for n in range(500)]
        assert len(taken) < 20


def test_token_counts_in_each_chunk_are_read_with_its_text(monkeypatch):
    taken = frames_taken(monkeypatch, "openai-chat")
    chunks_of = [text(b'"ab%d"' % n, b',"usage":{"prompt_tokens":1,"completion_tokens":%d}' % n) for n in range(500)]
    for reads in ([sse(*chunks_of, *LAST)], [sse(one) for one in (*chunks_of, *LAST)]):
        taken.clear()
        events, _, _ = by_template("openai-chat", reads, gives_runs=True)
        assert [e.output_total for e in events if type(e) is UsageReported] == list(range(500))
        assert len(taken) < 20


@pytest.mark.parametrize("wrong", [(0, 2), (2, 0), (0, 0), (0, 1, 2), (3, 0, 0)])
def test_a_part_between_holes_stands_once_in_each_event(wrong):
    """As many parts as events, and as many strings as holes, but not in the right places."""
    part = b'},"finish_reason":null}],"obfuscation":'
    good = [text(b'"ab%d"' % number, b',"obfuscation":"p"') for number in range(4)]
    odd = [HEAD + b'{"content":' + part.join([b'"x"', b'"y"', b'"z"', b'"w"'][: times + 1]) + b"}" for times in wrong]
    check("openai-chat", sse(*good, *odd, *good, *LAST), ways=6)


@pytest.mark.parametrize("index", INDICES)
def test_whatever_stands_for_an_index_is_read_as_by_frames(index):
    good = [call(b"%d" % (number % 2), b'"x"') for number in range(6)]
    check("openai-chat", sse(begun(0), begun(1), *good, call(index, b'"y"'), *good, *LAST))


ODD = st.sampled_from([
    text(b'"a"'), text(b'","'), text(b'"\\ud800"'), text(b'""'), text(b'"a"', b',"obfuscation":"x"'), text(b'"a"', b',"obfuscation":""'),
    text(b'"a"', b',"obfuscation":1'), chunk(b'{"refusal":"no"}'), chunk(b'{"reasoning":"r"}'), chunk(b'{"reasoning_content":"r"}'),
    chunk(b'{"reasoning":"r","reasoning_details":[{"index":0,"type":"reasoning.text","text":"r","format":"x-v1"}]}'),
    chunk(b'{"reasoning_details":[{"index":0,"type":"reasoning.text","signature":"s","format":"x-v1"}]}'),
    begun(0), begun(1), call(b"0", b'"{}"'), call(b"1", b'"x"'), call(b"7", b'"z"'), call(b"0", b'""'), chunk(b"{}", finish=b'"stop"'),
    chunk(b'{"content":"a","tool_calls":[{"index":0,"function":{"arguments":"b"}}]}'),
    HEAD.replace(b'"index":0', b'"index":1') + b'{"content":"a"},"finish_reason":null}]}',
    text(b'"a"', b',"usage":{"prompt_tokens":1,"completion_tokens":2}'), text(b'"a"', b',"x":"y"'), b"[DONE]", b"{", b"1", b"", b": c",
    b'{"error":{"message":"broken"}}', b'{"other":1}',
])  # fmt: skip
FRAMING = st.sampled_from([b"\n", b"\r\n", b"\r"])
BETWEEN = st.sampled_from(
    [
        b"",
        b"",
        b"",
        b": ping\n\n",
        b"\n",
        b"id: 7\n",
        b"event: x\n",
        b"retry: 5\n",
        b"foo\n",
        b"data: \n\n",
        b"\xef\xbb\xbf",
    ]
)


@given(st.lists(st.tuples(ODD, st.integers(1, 5), FRAMING, BETWEEN), max_size=8), st.data())
@settings(deadline=None)
def test_any_mixture_of_chunks_is_read_as_by_frames(blocks, data):
    body = b"".join(between + sse(*[payload] * times, end=end) for payload, times, end, between in blocks)
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=6).map(sorted))
    reads = cut_at(body, places)
    expected = by_frames("openai-chat", reads)
    assert by_template("openai-chat", reads) == by_template("openai-chat", reads, gives_runs=True) == expected


LIMITED = {
    "line_bytes": [150, 170, 172, 174, 200],
    "event_bytes": [150, 170, 172, 174, 200],
    "index": [0, 1, 2],
    "choices": [1],
    "name_bytes": [1, 7],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in LIMITED.items() for value in values])
def test_limits_are_met_at_the_same_byte(name, value):
    limits = evolve(DEFAULT_LIMITS, **{name: value})
    texts = [text(b'"%b"' % (b"a" * size)) for size in (1, 5, 9, 12, 40, 3)]
    calls = [call(b"%d" % (number % 3), b'"%b"' % (b"x" * number)) for number in range(1, 12)]
    check("openai-chat", sse(*texts, *LAST), limits)
    check("openai-chat", sse(begun(0), begun(1), begun(2), *calls, *LAST), limits)


def test_the_same_bytes_mean_another_block_once_a_signature_closed_the_first():
    """The counter-example: what frames mean depends on the decoder's state, which a template must not outlive."""
    thought = [chunk(b'{"reasoning":"t%d"}' % number) for number in range(5)]
    signed = chunk(b'{"reasoning_details":[{"index":0,"type":"reasoning.text","signature":"s","format":"x-v1"}]}')
    body = sse(*thought, signed, *thought, *LAST)
    check("openai-chat", body, ways=10)
    events, _, _ = by_template("openai-chat", [body])
    assert [event.block for event in events if type(event) is ReasoningDelta] == [0] * 5 + [1] * 5


def test_the_same_bytes_mean_another_block_once_an_index_is_used_again():
    """Anthropic's: a reused index is another block, whose deltas look the same."""

    def block(number):
        start = b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        delta = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%d"}}\n\n'
        stop = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
        return start + (delta % number) * 5 + stop

    body = block(1) + block(2) + block(3)
    check("anthropic", body, ways=10)
    events, _, facts = by_template("anthropic", [body])
    assert [event.block for event in events if type(event) is TextDelta] == [0] * 5 + [1] * 5 + [2] * 5
    assert facts["repairs"]["index_reused"] == 2


def test_what_another_decoder_reads_on_is_counted_in_the_one_report():
    """A decoder that is tried is put back as a copy: what it had handed the report to must not count in a copy of it."""
    deltas = [("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": f"t{number}"}}) for number in range(4)]
    broken = {"type": "content_block_stop", "index": 7}
    body = chunks(am.START, *am.block(0, "Hi")) + events(*deltas) + chunks(broken, broken) + events(*deltas)
    check("bedrock", body, ways=6)
    assert by_template("bedrock", [body])[2]["repairs"]


def of_gemini(choice: int, part: Any) -> bytes:
    content = {"index": choice, "content": {"role": "model", "parts": [part]}}
    return b"data: %b\r\n\r\n" % orjson.dumps({"candidates": [content]})


def of_call(path: str, text: str, *, more: bool = True, **start: str) -> Any:
    arguments = [{"jsonPath": path, "stringValue": text}]
    return {"functionCall": {**start, "partialArgs": arguments, "willContinue": more}}


def deltas_of_bedrock(name: str, count: int) -> list[tuple[str, Any]]:
    return [(name, {"contentBlockIndex": 0, "delta": {"text": f"{name}{number}"}}) for number in range(count)]


LABELLED = HEAD + b'{"tool_calls":[{"index":%d,"function":{"arguments":"x%d"}}]}'
#: What a reader could take for a frame that is alike, and is not.
MISLEADING = {
    "frames of another kind with the same payload": ("bedrock", events(
        ("messageStart", {"role": "assistant"}), *deltas_of_bedrock("contentBlockDelta", 40), *deltas_of_bedrock("somethingNew", 40),
        *deltas_of_bedrock("contentBlockDelta", 40),
    )),
    "an index that comes twice": ("openai-chat", sse(begun(0), *[
        chunk(b'{"tool_calls":[{"index":%d,"index":5,"function":{"arguments":"x%d"}}]}' % (n % 3, n)) for n in range(30)
    ])),
    "an index that the probe could be": ("openai-chat", sse(begun(0), *[
        chunk(b'{"tool_calls":[{"index":%d,"index":%d,"function":{"arguments":"x%d"}}]}' % (n % 3, same, n))
        for same in (0, 1, 2, 3, 4, 60_000) for n in range(9)
    ])),
    "an index beside the delta": ("openai-chat", sse(begun(0), begun(1), begun(2), *[
        LABELLED % (n % 3, n) + b',"message":{"tool_calls":[{"index":%d}]},"finish_reason":null}]}' % ((n + 1) % 3) for n in range(30)
    ])),
    "text that the probe could be": ("openai-chat", sse(*[
        chunk(b'{"content":"a%d","c\\u006fntent":"%b\\u0002probe 0\\u0003"}' % (n, own)) for own in (b"", b"a0", b"a1") for n in range(9)
    ])),
    "an id behind a lone CR": ("openai-chat", b"".join(
        b"data: " + text(b'"a%d"' % n) + b"\r" + field + b"\r\n\r\n" for field in (b"id: 7", b"id: 9", b"retry: 5", b"id: 7") for n in range(4)
    )),
    "a repair that counts beside text of another choice": ("gemini", b"".join([
        of_gemini(0, of_call("$.a", "x", name="f", id="i")), *[of_gemini(1, {"text": f"t{n}"}) for n in range(4)],
        of_gemini(0, of_call("$.b[3]", "y")), of_gemini(0, of_call("$.a", "z", more=False)),
        *[of_gemini(1, {"text": f"t{n}"}) for n in range(4)],
    ])),
}  # fmt: skip


@pytest.mark.parametrize("name", MISLEADING)
def test_what_looks_alike_and_is_not_is_read_as_by_frames(name):
    check(*MISLEADING[name], ways=6)


def looks(monkeypatch) -> list[int]:
    """How many payloads templates are asked for from now on, at each time."""
    looked: list[int] = []
    read, read_many = Template.read, Template.read_many
    monkeypatch.setattr(Template, "read", lambda self, payload: looked.append(1) or read(self, payload))
    monkeypatch.setattr(
        Template, "read_many", lambda self, payloads: looked.append(len(payloads)) or read_many(self, payloads)
    )
    return looked


def test_blocks_that_take_turns_are_read_in_linear_time(monkeypatch):
    """No frame is looked at again for those before it."""
    looked = looks(monkeypatch)
    turns = [delta for number in range(400) for delta in deltas_of_bedrock("contentBlockDelta", 3) * 2]
    for number, (_, payload) in enumerate(turns):
        turns[number] = ("contentBlockDelta", {**payload, "contentBlockIndex": number // 6 % 2})
    by_template("bedrock", [events(("messageStart", {"role": "assistant"}), *turns)])
    assert len(looked) < 3 * len(turns)


@pytest.mark.parametrize("every", [1, 2, 6, 40])
def test_where_something_else_stands_between_like_events_few_are_looked_at_often(every, monkeypatch):
    looked = looks(monkeypatch)
    odd = text(b'"a"', b',"x":1')
    payloads = [one for n in range(4000 // every) for one in (*[text(b'"a%d"' % n)] * every, odd)]
    body = sse(*payloads)
    by_template("openai-chat", cut_at(body, list(range(0, len(body), 65536))[1:]), gives_runs=True)
    assert sum(looked) < 24 * len(payloads)


def attempts(monkeypatch) -> list[int]:
    """The attempts to find a template from now on."""
    tried: list[int] = []
    monkeypatch.setattr(like_frames, "template_of", lambda *given: tried.append(1) or template_of(*given))
    return tried


@pytest.mark.parametrize("size", [65536, None])
def test_frames_that_no_template_fits_are_tried_ever_less_often(size, monkeypatch):
    tried = attempts(monkeypatch)
    payloads = [text(b'"a"', b',"extra":%d' % n) for n in range(5000)]
    body = sse(*payloads)
    by_template("openai-chat", cut_at(body, list(range(0, len(body), size))[1:]) if size else list(map(sse, payloads)))
    assert 3 < len(tried) < 40


def test_calls_that_begin_are_no_attempts(monkeypatch):
    """Their frames are like no others, and fragments that take turns are read by a template soon behind them."""
    fragments = [call(b"%d" % (number % 6), b'"x%d"' % number) for number in range(60)]
    frames = list(map(sse, [*map(begun, range(6)), *fragments]))
    expected = by_frames("openai-chat", frames)
    tried, taken = attempts(monkeypatch), frames_taken(monkeypatch, "openai-chat")
    assert by_template("openai-chat", frames) == expected
    assert len(tried) == 1
    assert len(taken) == 8  # the starts, and two fragments


def test_a_bad_hole_in_every_tenth_frame_costs_no_attempt_each(monkeypatch):
    tried = attempts(monkeypatch)
    body = sse(*[text(b'""' if n % 10 == 0 else b'"a"') for n in range(5000)])
    check("openai-chat", body)
    tried.clear()
    by_template("openai-chat", [body])
    assert len(tried) < 16


def test_a_long_event_that_the_template_does_not_fit_is_left_to_the_decoder():
    longs = [text(b'"%b"' % (b"x" * 5000), b',"extra":%d' % number) for number in range(20)]
    body = sse(*[text(b'"a"')] * 40, *longs, *[text(b'"a"')] * 40, *LAST)
    check("openai-chat", body, ways=8)


def test_what_always_comes_with_a_delta_comes_with_each(monkeypatch):
    """Azure's filter results, and reasoning that stands in two members."""
    taken = frames_taken(monkeypatch, "openai-chat")
    filtered = [text(b'"ab%d"' % n, b',"filtered":{"hate":false}') for n in range(50)]
    twice = [
        chunk(b'{"reasoning":"t%d","reasoning_details":[{"type":"reasoning.text","text":"t%d","index":0}]}' % (n, n))
        for n in range(50)
    ]
    for payloads in (filtered, twice):
        reads = [sse(one) for one in (*payloads, *LAST)]
        expected = by_frames("openai-chat", reads)
        taken.clear()
        assert by_template("openai-chat", reads) == expected
        assert len(taken) < 10


def of_anthropic(value: bytes, end: bytes) -> bytes:
    delta = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
    return b"event: content_block_delta\ndata: %b%b%b\n\n" % (delta, value, end)


@pytest.mark.parametrize("end", [b"}}", b"}  }", b"}", b"} } ", b"}\t}", b"}}}", b"  }}", b"},}", b""])
def test_blanks_at_the_end_of_a_payload_are_padding_and_nothing_else_is(end):
    start = b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    good = [of_anthropic(b'"t%d"' % n, b"}" + b" " * (n % 4) + b"}") for n in range(6)]
    check("anthropic", b"".join([start, *good, of_anthropic(b'"x"', end), *good]), ways=4)


def test_text_that_differs_where_it_stood_twice_is_left_to_the_decoder():
    both = b'{"reasoning":"%b","reasoning_details":[{"type":"reasoning.text","text":"%b","index":0}]}'
    same = [chunk(both % (b"t%d" % n, b"t%d" % n)) for n in range(4)]
    check("openai-chat", sse(*same, chunk(both % (b"a", b"b")), *same, *LAST), ways=6)


async def test_a_users_own_stage_behind_decode_sees_deltas_one_by_one():
    body = sse(*[text(b'"a"')] * 100, *LAST)

    async def own(batches):
        async for batch in batches:
            yield [event for event in batch if type(event) is TextDelta]

    async with pipe(source_of([body]), parse("openai-chat"), decode("openai-chat"), own) as stream:
        assert [event async for batch in stream for event in batch] == [TextDelta("a")] * 100


class EndInText(ChatDecoder):
    """Another package's decoder: built on Chat's, and to it one text is a stop reason. It remembers nothing of it."""

    def decode(self, document: dict[str, Any]) -> None:
        before = len(self.out)
        super().decode(document)
        self.out[before:] = [
            StopReasonSeen("stop", "[END]") if isinstance(event, TextDelta) and event.text == "[END]" else event
            for event in self.out[before:]
        ]


def test_a_decoder_that_looks_into_the_text_is_not_read_by_templates_unless_it_says_that_it_does_not():
    report = StreamReport()
    stage = decode_stage("decode", lambda report: EndInText(DEFAULT_LIMITS, report))
    machine = Chain(DIALECTS["openai-chat"].parser(DEFAULT_LIMITS, report), stage.make(report))
    events = machine.feed(sse(*[text(b'"a"')] * 20, text(b'"[END]"'), text(b'"b"')))
    assert [event for event in events if isinstance(event, StopReasonSeen)] == [StopReasonSeen("stop", "[END]")]


def test_every_decoder_of_a_stream_says_of_itself_whether_its_text_is_opaque():
    assert len(READ) == len(DIALECTS.built_in)
