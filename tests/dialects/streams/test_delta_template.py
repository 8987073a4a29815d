"""What is read by the bytes around a delta is what is read by parsing each payload: the same events, repairs and reports."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from streamkit import errors
from streamkit.dialects import DIALECTS
from streamkit.dialects.openai_chat.decode import ChatDecoder
from streamkit.dialects.streams import frame_decoder
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import STRICT
from streamkit.report import StreamReport
from tests.laws.running import every_stream, read
from tests.vectors.openai_chat import DONE, HEAD, ROLE, STOP, calls, chunk, said
from tests.vectors.vector import named, sse

#: The dialects that learn the bytes around a text.
LEARNING = {name for name in DIALECTS if DIALECTS[name].decoder(DEFAULT_LIMITS, StreamReport()).idle is not None}


def alone(decoder: FrameDecoder, frame: Frame, _following: bytes) -> None:
    """Read a frame of a large read, and look at none like it."""
    decoder.push(frame)


def cuts_of(body: bytes) -> list[list[bytes]]:
    """One event a read, the whole body in one, and reads of 16 KiB."""
    events = [event + b"\n\n" for event in body.split(b"\n\n")]
    return [[*events[:-1], events[-1][:-2]], [body], [body[at : at + 16384] for at in range(0, len(body), 16384)]]


def check(dialect: str, body: bytes, patch: pytest.MonkeyPatch, limits: Limits = DEFAULT_LIMITS) -> None:
    """Read a stream by looking at all of each payload, as it is read, and with a template of each payload that may be one."""
    for reads in cuts_of(body):
        for join in (True, False):
            with patch.context() as without:
                without.setattr(FrameDecoder, "may_learn", lambda _: False)
                without.setattr(ChatDecoder, "again", lambda *_: None)
                for decoder in (FrameDecoder, ChatDecoder):
                    without.setattr(decoder, "read_alone", alone)
                expected = read(dialect, reads, limits, join=join).facts()
            assert not expected[1] or hasattr(
                errors, expected[1].partition(":")[0]
            )  # a StreamError, and no fault of ours
            assert read(dialect, reads, limits, join=join).facts() == expected
            with patch.context() as always:
                always.setattr(FrameDecoder, "may_learn", lambda _: True)
                assert read(dialect, reads, limits, join=join).facts() == expected


@pytest.mark.parametrize(
    "stream", [one for one in every_stream("by template") if one.values[0] is None or one.values[0].dialect in LEARNING]
)
def test_every_stream_says_the_same(stream, monkeypatch):
    check(stream.dialect, stream.body, monkeypatch)


CHUNK = b'{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%b,"finish_reason":null}]}'
TEXT = b'{"content":" word"}'
DEEP = b"[" * 300 + b"]" * 300
#: In the place of a delta.
DELTAS = [
    b'{"content":"x"},"logprobs":null', b'{"content":"x"},"seed":1', b'{"content":"x"},"delta":{"content":"y"}',
    b'{"content":"x"},"index":1', b'{"content":"x"},"index":false', b'{"content":"x"},"index":0.0', b'{"content":"x"},"finish_reason":"stop"', b'{"content":"x"}}],"choices":[{"delta":{"content":"y"}',
    b'[{"content":"x"}]', b"[]", b"7", b"-0.0", b'"x"', b"null", b"true", b"{}", b"", b" ", b'{"content":"x"', b'{"content":"x"}}',
    b"{oops}", b'{"content":"x"}{"content":"y"}', b'{"content":"x"} {"content":"y"}', b'{"content":"x"},{"content":"y"}',
    b' {"content":"x"}\t', b'{"content":"x","content":"y"}', b'{"content":1}', b'{"content":null}', b'{"content":["x"]}',
    b'{"content":""}', b'{"content":"x","n":1E400}', b'{"content":"\xff"}', b'{"content":"\\ud83d"}', b'{"content":"\\ude00"}',
    b'{"content":"x","deep":' + DEEP + b"}", DEEP, b'{"content":"' + b"x" * 600 + b'"}', b'{"content":"%b"}' % b'\\"}]' * 3,
    b'{"role":"assistant","content":"x"}', b'{"role":"user","content":"x"}', b'{"role":null,"content":"x"}',
    b'{"refusal":"x"}', b'{"reasoning_content":"x"}', b'{"reasoning":"x"}', b'{"content":"x","reasoning_content":"y"}',
    b'{"content":"x","other":1}', b'{"tool_calls":[]}', b'{"tool_calls":null}', b'{"tool_calls":{"index":0}}',
    b'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}', b'{"error":{"message":"no"}}',
]  # fmt: skip
#: In the place of a chunk.
CHUNKS = [
    {**chunk({"content": "x"}), "id": "another"}, {**chunk({"role": "assistant", "content": "x"}), "id": "another"},
    {**said("x"), "usage": {"prompt_tokens": 1, "completion_tokens": 1}}, {**said("x"), "model": "another"}, {**said("x"), "new": 1},
    {**HEAD, "choices": []}, {**HEAD, "choices": {"0": chunk({"content": "x"})["choices"][0]}}, {**said("x"), "error": {"message": "no"}},
    {**HEAD, "choices": [*said("x")["choices"], *chunk({"content": "y"}, index=1)["choices"]]}, chunk({"content": "x"}, index=1),
    {**HEAD, "choices": [{**said("x")["choices"][0], "logprobs": {"content": []}}]}, chunk({"content": "x"}, "stop"), b"[DONE]", b"[]", [said("x"), said("y")],
]  # fmt: skip


def hostile(payload: bytes) -> bytes:
    """A stream with a payload amid others of which what stands around their delta was learned."""
    plain = [CHUNK % TEXT] * 5
    return sse(CHUNK % b'{"role":"assistant","content":""}', *plain, payload, *plain, CHUNK % b"{}", DONE)


@pytest.mark.parametrize("delta", DELTAS)
def test_whatever_stands_in_the_place_of_a_delta_is_read_as_it_is(delta, monkeypatch):
    check("openai-chat", hostile(CHUNK % delta), monkeypatch)
    check("mistral", hostile(CHUNK % delta), monkeypatch)


@pytest.mark.parametrize("payload", CHUNKS)
def test_a_chunk_that_says_something_else_is_read_as_it_is(payload, monkeypatch):
    for others in (said("a"), calls({"index": 0, "function": {"arguments": '"b'}})):
        start = calls({"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a":'}})
        body = sse(ROLE, start, *[others] * 5, payload, *[others] * 4, payload, *[others] * 4, STOP, DONE)
        check("openai-chat", body, monkeypatch)


@pytest.mark.parametrize("seed", range(40))
def test_a_payload_with_a_byte_too_many_or_too_few_is_read_as_it_is(seed, monkeypatch):
    rng = random.Random(seed)
    payload = bytearray(CHUNK % TEXT)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(payload))
        payload[at : at + rng.randint(0, 2)] = rng.choices(b'{}[],:"\\ a0', k=rng.randint(0, 2))
    check("openai-chat", hostile(bytes(payload)), monkeypatch)


PADS = [b"aB3", b"x" * 40, b"", b'a\\"b', b"a b", b'",":"', b"\\u0041", b'x"},"new":{"y":"z', b'x","obfuscation":"y']


@pytest.mark.parametrize("pad", PADS)
def test_padding_may_be_anything(pad, monkeypatch):
    padded = (CHUNK % TEXT)[:-1] + b',"obfuscation":"%b"}'
    learned = [padded % b"abc", padded % b"0", padded % (b"Z" * 9)] * 3
    body = sse(CHUNK % b'{"role":"assistant","content":""}', *learned, padded % pad, *learned, CHUNK % TEXT, DONE)
    check("openai-chat", body, monkeypatch)


def fragment(index: int, text: str, **start: Any) -> dict[str, Any]:
    return {"index": index, **start, "function": {**({"name": "f"} if start else {}), "arguments": text}}


def starts(count: int) -> list[Any]:
    return [calls(fragment(index, "", id=f"c{index}", type="function")) for index in range(count)]


GROWING = ['{"a"', '{"a":1', '{"a":1,"b"', '{"a":1,"b":2', '{"a":1,"b":2}']
#: Fragments of calls: indices and texts, of one or of many, and what stands among them.
FRAGMENTS: dict[str, list[Any]] = {
    "many calls by turns": [*starts(30), *(calls(fragment(n % 30, text)) for n, text in enumerate(["{", '"k":"', *"abcd", '"}'] * 150))],
    "several in one chunk": [*starts(2), *[calls(fragment(0, "{"), fragment(1, "[")), calls(fragment(0, "}"), fragment(1, "]"))] * 4],
    "all so far again": [*starts(1), *(calls(fragment(0, text)) for text in GROWING)],
    "the same again and again": [*starts(1), *[calls(fragment(0, '{"a":1}'))] * 9],
    "an index without a start": [*starts(1), *[calls(fragment(0, "a"))] * 5, *[calls(fragment(7, "b"))] * 5, *[calls(fragment(0, "c"))] * 5],
    "an index that is none": [*starts(1), *(calls(fragment(index, "a")) for index in (0, 0, 0, 0, True, -1, "0", 0.0, None, 2**40))],
    "an id and a name": [*starts(1), *[calls(fragment(0, "a"))] * 5, calls(fragment(0, "b", id="c9")), *[calls(fragment(0, "c"))] * 5],
    "text among them": [*starts(1), *[calls(fragment(0, "a"))] * 5, said("b"), *[calls(fragment(0, "c"))] * 5],
    "behind an error": [*starts(1), *[calls(fragment(0, "a"))] * 5, {"error": {"message": "no"}}, *[calls(fragment(0, "c"))] * 9],
    "behind the reason": [*starts(1), *[calls(fragment(0, "a"))] * 5, STOP, *[calls(fragment(0, "c"))] * 9],
    "a number": [*starts(1), *[calls(fragment(0, "1"))] * 5, calls({"index": 0, "function": {"arguments": 1}}), *[calls(fragment(0, "2"))] * 5],
}  # fmt: skip


@pytest.mark.parametrize("chunks", FRAGMENTS.values(), ids=FRAGMENTS)
def test_fragments_are_those_of_their_calls(chunks, monkeypatch):
    check("openai-chat", sse(ROLE, *chunks, chunk({}, "tool_calls"), DONE), monkeypatch)
    check("mistral", sse(ROLE, *chunks, chunk({}, "tool_calls"), DONE), monkeypatch)
    for limits in (Limits(arguments_chars=9), Limits(stream_arguments_chars=20), Limits(tool_calls=1), Limits(index=0)):
        check("openai-chat", sse(ROLE, *chunks, chunk({}, "tool_calls"), DONE), monkeypatch, limits)


DETAIL = {"type": "reasoning.text", "text": "T", "format": "unknown", "index": 0}
#: Deltas that say their text ``T`` twice, or that have members which say nothing, or which nobody reads.
WORDY: dict[str, dict[str, Any]] = {
    "reasoning and its details": {"content": "", "role": "assistant", "reasoning": "T", "reasoning_details": [DETAIL]},
    "details and reasoning": {"reasoning_details": [DETAIL], "reasoning_content": "T"},
    "three times": {"reasoning_details": [DETAIL], "reasoning_content": "T", "reasoning": "T"},
    "details alone": {"reasoning_details": [{"type": "reasoning.summary", "summary": "T", "index": 3}]},
    "beside an unknown member": {"reasoning": "T", "channel": "analysis"},
    "a fragment and nothing": {
        "role": "assistant", "content": None, "refusal": "", "tool_calls": [{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": "T"}}]
    },
    "a fragment and a text": {"content": "T", "tool_calls": [fragment(0, "T")]},
    "nothing": {},
}  # fmt: skip
#: The text of one such delta among others: where it stands first, and where it stands again.
TEXTS = [
    ("a", "a"),
    ("a", "b"),
    ("", ""),
    ("", "a"),
    ('"', '"'),
    ("\\", "\\"),
    ("é", "é"),
    ('a","reasoning":"a', 'a","reasoning":"a'),
]


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("beside", [{}, {"seen": {"safe": True}}], ids=["", "beside"])
@pytest.mark.parametrize("delta", WORDY.values(), ids=WORDY)
def test_a_text_may_stand_twice_and_have_members_beside_it(delta, beside, doubled, monkeypatch):
    def payload(first: str, last: str) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            **({"message": delta} if doubled else {}),
            "finish_reason": None,
            **beside,
        }
        head, *texts = json.dumps({**HEAD, "choices": [choice]}).split('"T"')
        says = [json.dumps(first), *[json.dumps(last)] * len(texts)]
        return "".join([head, *(part for pair in zip(says, texts, strict=False) for part in pair)]).encode()

    first = {"role": "assistant", "tool_calls": [fragment(0, "{", id="c", type="function")]}
    others = [
        chunk({"reasoning": "r"}),
        chunk({"role": "user", "content": "u"}),
        {**chunk({"content": "x"}), "id": "another"},
    ]
    odd = [each for texts in TEXTS for each in (payload(*texts), *[payload(" w", " w")] * 5)]
    more = [each for other in others for each in (other, *[payload(" v", " v")] * 5)]
    check("openai-chat", sse(chunk(first), *[payload("w", "w")] * 6, *odd, *more, STOP, DONE), monkeypatch)


def test_templates_are_learned_again_where_the_time_changes_in_a_long_stream(monkeypatch):
    payloads = [{**said("w"), "created": second} for second in range(9) for _ in range(30)]
    learned, decoded = [], []
    monkeypatch.setattr(FrameDecoder, "learn_text", lambda *_, to=FrameDecoder.learn_text: learned.append(to(*_)))
    monkeypatch.setattr(ChatDecoder, "decode", lambda *_, to=ChatDecoder.decode: decoded.append(to(*_)))
    read("openai-chat", [sse(payload) for payload in [ROLE, *payloads, STOP, DONE]])
    assert len(learned) == 9
    assert len(decoded) < 60


MESSAGE = {
    "type": "message_start",
    "message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []},
}
END = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
BLOCKS = {
    "text": ({"type": "text", "text": ""}, {"type": "text_delta", "text": "a"}),
    "thinking": ({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "a"}),
    "tool_use": (
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        {"type": "input_json_delta", "partial_json": "1"},
    ),
}


def block(kind: str, *deltas: object, index: int = 0) -> list[dict[str, Any]]:
    """A block with its own delta five times, these, and its own again."""
    start, own = BLOCKS[kind]
    found = [
        {"type": "content_block_delta", "index": index, "delta": delta} for delta in [*[own] * 5, *deltas, *[own] * 5]
    ]
    return [
        {"type": "content_block_start", "index": index, "content_block": start}, *found, {"type": "content_block_stop", "index": index}
    ]  # fmt: skip


def answer(*events: dict[str, Any]) -> bytes:
    return named(MESSAGE, *events, *END)


@pytest.mark.parametrize("second", BLOCKS)
@pytest.mark.parametrize("first", BLOCKS)
def test_an_index_may_be_that_of_another_block_later(first, second, monkeypatch):
    check("anthropic", answer(*block(first), *block(second)), monkeypatch)
    check("anthropic", answer(*block(first), *block(second, index=1), *block(first, index=1)), monkeypatch)
    check("anthropic", answer(*block(first)[:-1], *block(second)[1:]), monkeypatch)  # without a stop and a start


ODD: Sequence[object] = [
    {}, None, 7, [], "a", {"type": "text_delta"}, {"type": "text_delta", "text": None}, {"type": "text_delta", "text": 7},
    {"type": "text_delta", "text": ["a"]}, {"type": "text_delta", "text": "a", "more": 1}, {"text": "a"}, {"type": None, "text": "a"},
    {"type": "other_delta", "text": "a"}, {"type": "signature_delta", "signature": "s"}, {"type": "input_json_delta", "partial_json": {}},
    {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "a"}}, {"type": "text_delta", "text": ""},
    *(delta for _, delta in BLOCKS.values()),
]  # fmt: skip


@pytest.mark.parametrize("delta", ODD)
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_delta_of_another_kind_is_read_as_it_is(kind, delta, monkeypatch):
    check("anthropic", answer(*block(kind, delta)), monkeypatch)
    check(
        "anthropic",
        answer(*block(kind)[:8], {"type": "error", "error": {"message": "no"}}, *block(kind)[4:]),
        monkeypatch,
    )


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai-chat", sse(ROLE, *[said("a")] * 50)),
        ("openai-chat", sse(ROLE, *({**said("a"), "obfuscation": "x" * (number % 7 + 1)} for number in range(50)))),
        ("openai-chat", sse(ROLE, *starts(2), *[calls(fragment(0, "a")), calls(fragment(1, "b"))] * 25)),
        ("mistral", sse(ROLE, *[said("a")] * 50)),
        ("anthropic", answer(*block("text", *[BLOCKS["text"][1]] * 40))),
        ("anthropic", answer(*block("tool_use", *[BLOCKS["tool_use"][1]] * 40))),
    ],
)
def test_few_payloads_of_one_kind_are_parsed(dialect, body, monkeypatch):
    """Else the others here would show nothing."""
    parsed: list[bytes] = []

    def loads(data: bytes) -> Any:
        if data[:1] == b"{":  # else it is the text alone
            parsed.append(data)
        return frame_decoder.orjson.loads(data)

    monkeypatch.setattr(frame_decoder, "loads", loads)
    for reads in cuts_of(body)[dialect == "anthropic" :]:  # one event a read, its decoder is as fast without
        parsed.clear()
        read(dialect, reads, join=True)
        assert len(parsed) < 20


@pytest.mark.parametrize("odd", [b"", b",", b"}", b'"id":"c1",', b'"index":1,', b'"index":false,', b'"x":[[,'])
def test_a_fragment_with_something_else_among_those_of_two_calls_is_read_as_it_is(odd, monkeypatch):
    role = CHUNK % b'{"role":"assistant","content":null}'
    start = b'{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f","arguments":"{"}}]}'
    starts = [CHUNK % (start % (at, at)) for at in (0, 1)]
    both = [CHUNK % b'{"tool_calls":[{"index":%d,"function":{"arguments":"word"}}]}' % at for at in (0, 1)]
    other = CHUNK % b'{"tool_calls":[{"index":0,%b"function":{"arguments":"odd"}}]}' % odd
    check("openai-chat", sse(role, *starts, *both * 9, other, *both * 9, other, *both, DONE), monkeypatch)


@pytest.mark.parametrize("usage", [7, "many", [1], True])
def test_the_text_of_a_chunk_that_strict_refuses_is_not_emitted(usage):
    refused = {**said("no"), "usage": usage}
    found = read("openai-chat", [*(sse(each) for each in [ROLE, *[said("x")] * 5, refused])], policy=STRICT)
    assert found.text() == "x" * 5
    assert found.fault.startswith("NeedsRepair")


DETAIL = {"type": "reasoning.text", "text": "why", "index": 0}


@pytest.mark.parametrize(
    "odd", [{"index": False}, {"index": 0.0}, {"index": None}, {"text": ""}, {"signature": "s"}, {"new": 1}]
)
def test_a_detail_with_something_else_is_read_as_it_is(odd, monkeypatch):
    like, other = ({"reasoning_details": [detail], "reasoning": "why"} for detail in (DETAIL, {**DETAIL, **odd}))
    body = sse(ROLE, *[chunk(like)] * 6, *[chunk(other)] * 2, *[chunk(like)] * 3, STOP, DONE)
    check("openai-chat", body, monkeypatch)


@pytest.mark.parametrize("message", [{}, {"message": None}, {"message": {"content": "y"}}, {"message": {}}])
def test_a_chunk_without_the_message_that_others_repeat_is_read_as_it_is(message, monkeypatch):
    delta = {"content": "x"}
    doubled, other = (
        {**HEAD, "choices": [{"index": 0, "delta": delta, **beside}]} for beside in ({"message": delta}, message)
    )
    check("openai-chat", sse(ROLE, *[doubled] * 5, other, doubled, STOP, DONE), monkeypatch)


def test_padding_of_one_template_is_no_padding_of_another(monkeypatch):
    """A member of that name in a delta is an aside, and one that is empty says nothing."""
    padded = [(CHUNK % TEXT)[:-1] + b',"obfuscation":"%d"}' % number for number in range(9)]
    empty, other = CHUNK % b'{"content":"x","obfuscation":""}', CHUNK % b'{"content":"x","obfuscation":"zz"}'
    role = CHUNK % b'{"role":"assistant","content":""}'
    check("openai-chat", sse(role, *padded, *[empty] * 20, *padded[:2], other, DONE), monkeypatch)
