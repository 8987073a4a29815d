"""L6: each buffer has a limit, it holds at limit - 1 and at the limit, and what is above it is a named error."""

from __future__ import annotations

import tracemalloc

import attrs
import pytest

from streamkit import errors
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.limits import Limits
from streamkit.policy import TOLERANT
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.report import StreamReport
from streamkit.testing import cut_at
from streamkit.translation.citations import carry_citations
from streamkit.translation.pass_through import PassThrough
from tests.framing.binary import event, events, message, prelude, string
from tests.laws.running import read, translate
from tests.sampling import by_turns
from tests.vectors import (
    ag_ui,
    ai_sdk,
    anthropic,
    bedrock,
    cohere,
    gemini,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
from tests.vectors import gemini_interactions as gi
from tests.vectors.openai_chat import CALLED, DONE, ROLE, STOP, call, calls, chunk, said
from tests.vectors.vector import lines, named, sse

MIB = 1024 * 1024


def padded(size: int) -> bytes:
    """A Chat stream with a comment line of ``size`` bytes."""
    return b":" + b"x" * (size - 1) + b"\n\n" + sse(ROLE, said("Hi"), STOP, DONE)


def long_event(size: int) -> bytes:
    """A Chat event whose two lines have ``size`` bytes together."""
    head, tail = b'data: {"object":"chat.completion.chunk",', b'data: "choices":[]'
    return head + b"\n" + tail + b" " * (size - len(head) - len(tail) - 1) + b"}\n\n" + sse(ROLE, STOP, DONE)


def long_line(size: int) -> bytes:
    first = lines(ollama.line("Hi"))[:-2]
    return first + b" " * (size - len(first) - 1) + b"}\n" + lines(ollama.end())


def long_headers(size: int) -> bytes:
    """A Bedrock stream with an event of the future that has ``size`` bytes of headers."""
    head = string(":message-type", "event") + string(":event-type", "keepAlive")
    first, *rest = bedrock.START, *bedrock.HI, bedrock.finish()
    padding = string("x", "y" * (size - len(head) - 5))
    return event(*first) + message(head + padding, b"{}") + events(*rest)


def many_values(count: int) -> bytes:
    """A Chat stream with a chunk of so many values, as they are counted: by commas and brackets."""
    there = sum(map(sse({**said("x"), "zz": []}).count, (b",", b"[", b"{")))
    return sse(ROLE, {**said("x"), "zz": [0] * (count - there + 1)}, STOP, DONE)


#: What waits behind an open call counts as it is held: as the JSON of its deltas.
WAITING = len(b'{"type":"text_delta","text":""}')
BLOCK = len(b'{"type":"text_delta","text":"x"}')

#: Field of Limits: dialect, the limits, a stream that needs exactly ``n`` of it, its limit, and the error.
CASES = {
    "line_bytes": ("openai-chat", 400, padded, errors.LineTooLong),
    "event_bytes": ("openai-chat", 400, long_event, errors.EventTooLong),
    "event_values": ("openai-chat", 400, many_values, errors.TooManyEventValues),
    "name_bytes": ("openai-chat", 20, lambda n: b"event: " + b"e" * n + b"\n" + sse(ROLE, STOP, DONE), errors.NameTooLong),
    "headers_bytes": ("bedrock", 200, long_headers, errors.HeadersTooLong),
    "index": ("openai-chat", 9, lambda n: sse(ROLE, calls(call(n, "a", "f", "{}")), CALLED, DONE), errors.IndexTooLarge),
    "arguments_chars": (
        "openai-chat", 30,
        lambda n: sse(ROLE, calls(call(0, "a", "f", '{"x":"')), calls(call(0, arguments="y" * (n - 8))), calls(call(0, arguments='"}')), CALLED, DONE),
        errors.ArgumentsTooLong,
    ),
    "stream_arguments_chars": (
        "openai-chat", 30,
        lambda n: sse(ROLE, calls(call(0, "a", "f", "{}" + " " * 10)), calls(call(1, "b", "g", "{}" + " " * (n - 14))), CALLED, DONE),
        errors.StreamArgumentsTooLong,
    ),
    "tool_calls": ("openai-chat", 3, lambda n: sse(ROLE, *(calls(call(i, f"i{i}", "f", "{}")) for i in range(n)), CALLED, DONE), errors.TooManyToolCalls),
    "choices": (
        "openai-chat", 3,
        lambda n: sse(*(chunk({"content": "x"}, index=i) for i in range(n)), *(chunk(finish="stop", index=i) for i in range(n)), DONE),
        errors.TooManyChoices,
    ),
    "content_blocks": (
        "anthropic", 3,
        lambda n: named(anthropic.START, *(e for i in range(n) for e in anthropic.block(i, "x")), anthropic.finish("end_turn"), anthropic.STOP),
        errors.TooManyBlocks,
    ),
    "held_chars": (
        "openai-chat", 60,
        lambda n: sse(ROLE, calls(call(0, "a", "f", '{"x":')), said("y" * (n - WAITING)), calls(call(0, arguments="1}")), CALLED, DONE),
        errors.HeldTooLong,
    ),
}  # fmt: skip
#: Not an error: too deep a text is ``malformed``.
VERDICTS = {"json_depth"}
#: Of what the caller gives, not of the stream: tests/tool_calls/test_schema.py.
OF_THE_CALLER = {"schema_bytes"}
#: No error but a counted loss: tests/conversation/test_collector.py.
LOSSES = {"aside_chars"}


def test_every_limit_is_tried():
    assert CASES.keys() | VERDICTS | OF_THE_CALLER | LOSSES == {field.name for field in attrs.fields(Limits)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("reads", ["whole", "per byte"])
def test_a_limit_holds_to_the_last_unit(name, reads):
    dialect, limit, make, error = CASES[name]
    limits = Limits(**{name: limit})
    for size in (limit - 1, limit, limit + 1):
        body = make(size)
        cut = [body] if reads == "whole" else cut_at(body, list(range(1, len(body))))
        output, report = translate(dialect, "anthropic", cut, limits, passing=False)
        if size <= limit:
            assert report.error is None
            assert report.clean
        else:
            assert type(report.error) is error
            assert (report.error.limit, report.error.allowed) == (name, limit)
            assert not report.clean
            assert b"event: error" in output
            assert b"message_stop" not in output


def test_a_line_limit_holds_in_lines_of_json():
    for size in (399, 400, 401):
        _, report = translate("ollama", "ollama", [long_line(size)], Limits(line_bytes=400))
        assert (type(report.error) is errors.LineTooLong) == (size > 400)


def test_an_event_limit_holds_in_binary_messages():
    for size in (399, 400, 401):
        body = events(bedrock.START, ("keepAlive", b"{}" + b" " * (size - 2)), *bedrock.HI, bedrock.finish())
        _, report = translate("bedrock", "bedrock", [body], Limits(event_bytes=400))
        assert (type(report.error) is errors.EventTooLong) == (size > 400)


@pytest.mark.parametrize("depth", [4, 5, 6])
def test_too_deep_a_text_is_malformed(depth):
    body = sse(ROLE, calls(call(0, "a", "f", '{"x":' * depth + "1" + "}" * depth)), CALLED, DONE)
    (found,) = read("openai-chat", [body], Limits(json_depth=5)).calls
    assert found.verdict.kind == ("complete" if depth <= 5 else "malformed")


@pytest.mark.parametrize("index", [b"2147483648", b"%d" % 2**63, b"%d" % 2**64, b"1" + b"0" * 30, b"1e300"])
def test_an_absurd_index_is_a_named_error(index):
    place = 987_654_321
    for dialect, body in (
        ("openai-chat", sse(ROLE, calls(call(place, "a", "f", "{}")), CALLED, DONE)),
        ("openai-chat", sse(chunk({"content": "x"}, index=place), STOP, DONE)),
        ("anthropic", named(anthropic.START, {**anthropic.begin(0, "text", text=""), "index": place})),
    ):
        absurd = body.replace(b"%d" % place, index)
        _, report = translate(dialect, "openai-chat", [absurd], passing=False)
        assert type(report.error) is errors.IndexTooLarge


async def endless(head: bytes, unit: bytes, total: int, tail: bytes = b"", size: int = 64 * 1024):
    """``head``, then ``unit`` over and over until ``total`` bytes went out, in reads of about ``size``, then ``tail``."""
    read_ = unit * (size // len(unit) or 1)
    yield head
    for _ in range(total // len(read_)):
        yield bytes(bytearray(read_))  # a new object each time, as from a socket
    yield tail


async def peak(source, a: str, b: str, limits: Limits) -> tuple[int, int, StreamReport]:
    """The most memory that a translation took, and how many bytes came out."""
    report = StreamReport()
    size = 0
    tracemalloc.start()
    try:
        async with transcode(source, a, b, ReadOptions(limits=limits), report=report) as stream:
            async for piece in stream:
                size += len(piece)
        return tracemalloc.get_traced_memory()[1], size, report
    finally:
        tracemalloc.stop()


LIMIT = 64 * 1024
SMALL = Limits(
    line_bytes=LIMIT, event_bytes=LIMIT, arguments_chars=LIMIT, stream_arguments_chars=LIMIT, held_chars=LIMIT
)
ENDLESS = {
    "line": ("openai-chat", sse(ROLE), b"x", "LineTooLong"),
    "event": ("openai-chat", sse(ROLE), b'data: {"x":\n', "EventTooLong"),
    "line of JSON": ("ollama", lines(ollama.line("Hi")) + b"{", b"x", "LineTooLong"),
    "arguments": ("openai-chat", sse(ROLE, calls(call(0, "a", "f", '{"x":"'))), sse(calls(call(0, arguments="y" * 14))), "ArgumentsTooLong"),
    "arguments of Anthropic": (
        "anthropic",
        named(anthropic.START, anthropic.begin(0, "tool_use", id="t", name="f", input={})),
        named(anthropic.delta(0, "input_json_delta", partial_json="y" * 14)),
        "ArgumentsTooLong",
    ),
    "arguments of Bedrock": (
        "bedrock",
        events(bedrock.START, bedrock.begin(0, toolUse={"toolUseId": "t", "name": "f"})),
        event(*bedrock.delta(0, toolUse={"input": "y" * 14})),
        "ArgumentsTooLong",
    ),
    "message": ("bedrock", event(*bedrock.START) + prelude(2**31, 0), b"x", "EventTooLong"),
    "element": ("gemini", gemini.array(gemini.chunk(gemini.text("Hi")))[:-2] + b",{", b"x", "EventTooLong"),
    "arguments in parts": (
        "gemini",
        gemini.events(gemini.chunk(gemini.partial(("$.a", "y"), name="f"))),
        gemini.events(gemini.chunk(gemini.partial(("$.a", "y" * 14)))),
        "ArgumentsTooLong",
    ),
    "arguments that go back": (
        "gemini",
        gemini.events(gemini.chunk(gemini.partial(("$.a", "y"), ("$.b", "y"), name="f"))),
        gemini.events(gemini.chunk(gemini.partial(("$.a", "y" * 14)))),
        "ArgumentsTooLong",
    ),
    "arguments of Cohere": (
        "cohere", named(cohere.START, cohere.call(0, "t", "f")), named(cohere.piece(0, "y" * 14)), "ArgumentsTooLong",
    ),
    "arguments of Interactions": (
        "gemini-interactions", gi.named(gi.START, gi.call(0, "a", "f")), gi.named(gi.piece(0, "y" * 14)), "ArgumentsTooLong",
    ),
    "arguments of AG-UI": (
        "ag-ui", sse(ag_ui.START, ag_ui.call("t", "f")), sse(ag_ui.piece("t", "y" * 14)), "ArgumentsTooLong",
    ),
    "text behind a call of AG-UI": (
        "ag-ui", sse(ag_ui.START, ag_ui.call("t", "f"), ag_ui.begin("m")), sse(ag_ui.delta("m", "y" * 14)), "HeldTooLong",
    ),
    "arguments of the AI SDK": (
        "ai-sdk", sse(ai_sdk.START, ai_sdk.call_start("t")), sse(ai_sdk.piece("t", "y" * 14)), "ArgumentsTooLong",
    ),
    "held text": ("openai-chat", sse(ROLE, calls(call(0, "a", "f", '{"x":'))), sse(said("y" * 14)), "HeldTooLong"),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_never_ends_takes_no_more_than_its_limit(what):
    dialect, head, unit, error = ENDLESS[what]
    most, _, report = await peak(endless(head, unit, 80 * LIMIT), dialect, "anthropic", SMALL)
    assert type(report.error).__name__ == error
    assert most < 32 * LIMIT


#: What has begun and not ended.
UNENDED = {
    "a line": ("openai-chat", sse(ROLE) + b'data: {"x":"'),
    "a comment": ("openai-chat", sse(ROLE) + b": "),
    "behind the terminator": ("openai-chat", sse(ROLE, STOP, DONE) + b'data: {"x":"'),
    "a line of JSON": ("ollama", lines(ollama.line("Hi")) + b'{"x":"'),
    "an element": ("gemini", gemini.array(gemini.chunk(gemini.text("Hi")))[:-2] + b',{"x":"'),
    "a message": ("bedrock", event(*bedrock.START) + prelude(2**20, 0)),
}


@pytest.mark.parametrize(("what", "size"), by_turns(UNENDED, [1, 64, 2, 4096, 7], 1, "l6 waiting"))
def test_what_waits_to_pass_takes_twice_its_bytes_however_short_the_reads_are(what, size):
    total = 64 * 1024
    # Another thread of the process adds what it allocates (pytest-xdist's receives lists of tests): three takes.
    assert any(waiting(*UNENDED[what], total, size) < 3 * total for _ in range(3))


def waiting(dialect: str, head: bytes, total: int, size: int) -> int:
    """The most bytes that are allocated while ``total`` bytes come, ``size`` a read, of which none passes."""
    passing = PassThrough(DIALECTS[dialect], Encoding(), TOLERANT, StreamReport())
    passing.feed(head)
    tracemalloc.start()
    try:
        for _ in range(total // size):
            passing.feed(bytes(bytearray(b"x" * size)))  # a new object each time, as from a socket
        assert passing.fault is None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("unit", [sse(said("more")), b": more\n\n"], ids=["frames", "comments"])
@pytest.mark.parametrize("size", [1, 1000])
def test_what_waits_behind_a_terminator_has_a_limit_and_takes_nothing_back(unit, size):
    body = sse(ROLE, STOP, DONE) + unit * 2000
    reads = cut_at(body, list(range(size, len(body), size)))
    output, report = translate("openai-chat", "openai-chat", reads, Limits(held_chars=4096))
    assert output == sse(ROLE, STOP, DONE)
    assert report.repairs["fault_after_end"]


#: How often a dialect repeats the text when it ends: Responses in four events, each on its way in a copy or two. What is
#: kept for that has a limit, ``held_chars``: tests/dialects/test_openai_responses.py.
REPEATED = {"openai-responses": 14}


def keeps_text(dialect, target):
    """Whether places in the text are to be counted anew, in bytes or of bytes: its text is kept then, up to ``held_chars``."""
    carrier = carry_citations(DIALECTS[dialect], DIALECTS[target])
    units = {form.unit for name in (dialect, target) if (form := DIALECTS[name].citations)}
    return carrier is not None and "bytes" in units and "none" not in units


@pytest.mark.parametrize(("dialect", "target"), by_turns(DIALECTS, DIALECTS, 1, "l6 flat"))
@pytest.mark.parametrize(
    "total", [3 * MIB, pytest.param(100 * MIB, marks=[pytest.mark.exhaustive, pytest.mark.timeout(900)])]
)
async def test_a_long_text_passes_in_flat_memory(dialect, target, total):
    head, unit, tail = {
        "openai-chat": (sse(ROLE), sse(said("fourteen chars")), sse(STOP, DONE)),
        "anthropic": (
            named(anthropic.START, anthropic.begin(0, "text", text="")),
            named(anthropic.delta(0, "text_delta", text="fourteen chars")),
            named(anthropic.stop(0), anthropic.finish("end_turn"), anthropic.STOP),
        ),
        "ollama": (b"", lines(ollama.line("fourteen chars")), lines(ollama.end())),
        "bedrock": (
            event(*bedrock.START),
            event(*bedrock.delta(0, text="fourteen chars")),
            events(bedrock.stop(0), bedrock.finish(), bedrock.counts()),
        ),
        "gemini": (b"", gemini.events(gemini.chunk(gemini.text("fourteen chars"))), gemini.events(gemini.STOP)),
        "cohere": (
            named(cohere.START, cohere.begin(0)),
            named(cohere.delta(0, "fourteen chars")),
            named(cohere.end(0), cohere.finish()),
        ),
        "mistral": (
            sse(mistral.ROLE),
            sse(mistral.said([mistral.text("fourteen chars")])),
            sse(mistral.finish(), mistral.DONE),
        ),
        "gemini-interactions": (
            gi.named(gi.START, gi.begin(0, "model_output")),
            gi.named(*gi.said(0, "fourteen chars")),
            gi.named(gi.end(0), gi.finish()),
        ),
        "ag-ui": (
            sse(ag_ui.START, ag_ui.begin("m")),
            sse(ag_ui.delta("m", "fourteen chars")),
            sse(ag_ui.end("m"), ag_ui.finish()),
        ),
        "ai-sdk": (
            sse(ai_sdk.START, ai_sdk.STEP, ai_sdk.text("")[0]),
            sse(ai_sdk.text("fourteen chars")[1]),
            sse(ai_sdk.text("")[-1], ai_sdk.STEP_END, ai_sdk.finish(), ai_sdk.DONE),
        ),
        "openai-responses": (
            named(openai_responses.START, *openai_responses.message(0)[:2]),
            named(openai_responses.event("output_text.delta", content_index=0, delta="fourteen chars")),
            named(openai_responses.done(0, "message", content=[]), openai_responses.last()),
        ),
    }[dialect]
    limits = Limits(held_chars=2 * Limits().held_chars) if target in REPEATED else Limits()
    most, size, report = await peak(endless(head, unit, total, tail), dialect, target, limits)
    assert report.clean
    assert report.error is None
    text = total // len(unit) * len("fourteen chars")
    assert size > text
    assert most < 4 * MIB + (REPEATED.get(target, 0) + keeps_text(dialect, target)) * text


def test_the_vectors_are_short_enough_for_the_exhaustive_form():
    assert max(len(vector.body) for vector in openai_chat.VECTORS) < 4096
