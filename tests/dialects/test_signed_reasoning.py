"""Signatures in Chat's flat stream of reasoning: each goes back to its own block, or is a counted loss."""

from __future__ import annotations

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import (
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
)
from streamkit.report import StreamReport
from tests.laws.running import CLOCK, maker, read


def text(words, block):
    return ReasoningDelta(words, 0, block)


def sign(blob, block, vendor="anthropic"):
    return ReasoningSignature(blob, vendor, 0, block)


def through_chat(*events):
    """What of reasoning comes back, as (text, signature) of each block, and what was lost."""
    report = StreamReport()
    encoder = DIALECTS["openai-chat"].encoder(Encoding(make_id=maker(), clock=CLOCK), report)
    body = encoder.feed(
        [ResponseStarted("c", "m", 1, "anthropic"), *events, ResponseFinished("stop"), StreamEnded(clean=True)]
    )
    blocks = {}
    for event in read("openai-chat", [body + encoder.finish()]).events:
        if isinstance(event, ReasoningDelta | ReasoningSignature):
            said = blocks.setdefault(event.block, ["", ""])
            said[isinstance(event, ReasoningSignature)] += (
                event.text if isinstance(event, ReasoningDelta) else event.blob
            )
    return [tuple(said) for said in blocks.values()], dict(report.losses)


@pytest.mark.parametrize(
    ("events", "blocks", "losses"),
    [
        ([text("a", 0), sign("A", 0)], [("a", "A")], {}),
        ([text("a", 0), sign("A", 0), text("b", 1), sign("B", 1)], [("a", "A"), ("b", "B")], {}),
        ([text("a", 0), sign("A1", 0), sign("A2", 0)], [("a", "A1A2")], {}),
        ([sign("A", 0), text("b", 1)], [("", "A"), ("b", "")], {}),
        ([text("a", 0), sign("B", 1)], [("a", ""), ("", "B")], {}),
        ([text("a", 0), text("b", 1), sign("B", 1)], [("a\n\nb", "")], {"block_boundary": 1, "reasoning_signature": 1}),
        ([text("a", 0), sign("B", 1), text("a", 0), sign("A", 0)], [("a", ""), ("", "B"), ("a", "")], {"reasoning_signature": 1}),
        ([text("a", 0), ReasoningOpaque("x", "google"), text("a", 0), sign("A", 0)], [("a", ""), ("a", "")], {"reasoning_signature": 1}),
    ],
)  # fmt: skip
def test_a_signature_comes_back_with_the_very_text_that_it_proves(events, blocks, losses):
    assert through_chat(*events) == (blocks, losses)


def test_thinking_in_a_list_keeps_its_signature():
    body = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"signature":"S"}]},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    found = [event for event in read("openai-chat", [body]).events if isinstance(event, ReasoningSignature)]
    assert found == [ReasoningSignature("S", "mistral", 0, 0)]
