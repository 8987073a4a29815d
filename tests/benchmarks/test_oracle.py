"""The oracle lets a right output pass and names what is wrong with another."""

from __future__ import annotations

import pytest

from benchmarks import content, inputs, oracle, pairs
from benchmarks.inputs import CHAT
from benchmarks.recipe import MODES, transcoded

CALLS = inputs.chat("calls", content.calls(600))
TEXT = inputs.chat("text", content.reasoning_then_text(40))


def output(stream):
    return b"".join(transcoded([stream.body], CHAT, "anthropic"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stream", [TEXT, CALLS], ids=lambda stream: stream.name)
def test_what_the_recipe_writes_passes(stream, mode):
    oracle.verify_output(stream, "anthropic", b"".join(transcoded([stream.body], CHAT, "anthropic", mode)))


def test_every_pair_of_dialects_passes():
    pairs.prove(inputs.dialect_inputs(120))


def drop_one_delta(body: bytes) -> bytes:
    frames = body.split(b"\n\n")
    at = next(i for i, frame in enumerate(frames) if b'"text_delta"' in frame or b'"input_json_delta"' in frame)
    return b"\n\n".join(frames[:at] + frames[at + 1 :])


@pytest.mark.parametrize(
    ("stream", "spoil", "wrong"),
    [
        (TEXT, drop_one_delta, "text differs"),
        (CALLS, drop_one_delta, "arguments of tool_\\d differ"),
        (CALLS, lambda body: body.replace(b"tool_2", b"tool_9"), "calls are"),
        (
            TEXT,
            lambda body: body.replace(b"thinking_delta", b"text_delta").replace(b'"thinking":', b'"text":'),
            "differs",
        ),
        (TEXT, lambda body: body.replace(b"message_stop", b"ping"), "stop differs"),
        (CALLS, lambda body: body.replace(b"content_block_stop", b"ping"), "opened while another"),
        (TEXT, lambda body: body.replace(b'"type":"content_block_start"', b'"type":"ping"'), "not open"),
    ],
    ids=["text lost", "arguments lost", "renamed", "reasoning as text", "no end", "never closed", "never opened"],
)
def test_a_wrong_output_is_named(stream, spoil, wrong):
    spoilt = spoil(output(stream))
    assert spoilt != output(stream)
    with pytest.raises(oracle.Wrong, match=wrong):
        oracle.verify_output(stream, "anthropic", spoilt)


def test_swapped_arguments_of_interleaved_calls_are_seen():
    expected = oracle.meant(CALLS.said)
    (one, first), (other, second), *rest = expected.calls
    swapped = oracle.Said(expected.text, expected.reasoning, ((one, second), (other, first), *rest), expected.stop)
    with pytest.raises(oracle.Wrong, match="differ"):
        oracle.compare("swapped", swapped, expected)


def test_a_stream_that_was_cut_is_no_right_output():
    with pytest.raises(oracle.Wrong):
        oracle.read("gemini", b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n')
