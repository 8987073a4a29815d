"""What a whole answer and a report keep of a stream is bounded, and pieces are joined once."""

from __future__ import annotations

import pytest

from streamkit.conversation.collector import ASIDE_CHARS, Collector
from streamkit.conversation.messages import Reasoning
from streamkit.events import Aside, MediaGenerated, ReasoningDelta, ReasoningSignature
from streamkit.limits import LOST_NAMES, WITHHELD_TEXTS, Limits
from streamkit.report import StreamReport
from tests.laws.running import read
from tests.vectors import anthropic
from tests.vectors.openai_chat import DONE, ROLE, STOP, chunk
from tests.vectors.vector import named, sse


class Blob(str):
    """A text that counts how many characters are copied where something is put behind it."""

    __slots__ = ()
    copied = 0

    def __add__(self, other):
        Blob.copied += len(self)
        return Blob(str(self) + other)


def test_a_signature_in_pieces_is_joined_once():
    Blob.copied = 0
    collector = Collector("anthropic", StreamReport())
    collector.feed([ReasoningDelta("why"), *(ReasoningSignature(Blob("x"), "anthropic") for _ in range(100))])
    (part,) = collector.finish().choices[0].parts
    assert isinstance(part, Reasoning)
    assert part.signature is not None
    assert part.signature.blob == "x" * 100
    assert Blob.copied == 0


def test_of_signatures_of_two_vendors_the_later_stands():
    collector = Collector("anthropic", StreamReport())
    collector.feed([ReasoningDelta("why"), *(ReasoningSignature(blob, vendor) for vendor, blob in ("a1", "b2", "b3"))])
    (part,) = collector.finish().choices[0].parts
    assert isinstance(part, Reasoning)
    assert (part.signature.vendor, part.signature.blob) == ("b", "23")


@pytest.mark.parametrize("raw", ["x" * 10, ["x" * 6]])
def test_asides_beyond_the_limit_are_counted_losses(raw):
    report = StreamReport()
    collector = Collector("anthropic", report, Limits(aside_chars=3 * (ASIDE_CHARS + 10)))
    collector.feed([Aside("anthropic", "citation", "citation", raw) for _ in range(5)])
    assert len(collector.finish().choices[0].asides) == 3
    assert report.losses == {"citation": 2}


def test_media_beyond_the_limit_are_counted_losses():
    report = StreamReport()
    collector = Collector("gemini", report, Limits(aside_chars=3 * (ASIDE_CHARS + 10)))
    collector.feed([MediaGenerated("image", "image/png", "x" * 10) for _ in range(5)])
    assert len(collector.finish().choices[0].media) == 3
    assert report.losses == {"media_output": 2}


def test_a_report_keeps_a_bounded_number_of_texts_and_names():
    report = StreamReport()
    for number in range(WITHHELD_TEXTS + LOST_NAMES):
        report.withhold("call_withheld", f"call_{number}", "f", "{")
        report.lose("parameter", what="x")
    assert (len(report.withheld), len(report.lost)) == (WITHHELD_TEXTS, LOST_NAMES)
    assert report.losses["call_withheld"] == WITHHELD_TEXTS + LOST_NAMES


def test_of_texts_behind_the_end_of_a_call_a_bounded_number_is_kept():
    count = 2 * WITHHELD_TEXTS
    late = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "x"}}
        for _ in range(count)
    ]
    found = read("anthropic", [named(anthropic.START, *anthropic.tool(0, "t", "f", "{}"), *late)])
    assert found.report.repairs["arguments_late"] == count
    assert len(found.report.withheld) == WITHHELD_TEXTS


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
def test_blocks_of_reasoning_are_bounded(dialect):
    def signed(_):
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "x"}], "signature": "c2ln"}
        return chunk({"content": [thought]})

    limits = Limits(content_blocks=5)
    assert read(dialect, [sse(ROLE, *map(signed, range(5)), STOP, DONE)], limits).fault == ""
    assert "TooManyBlocks" in read(dialect, [sse(ROLE, *map(signed, range(6)), STOP, DONE)], limits).fault


def test_labels_of_reasoning_are_bounded():
    def detail(number):
        return chunk({"reasoning_details": [{"type": "reasoning.text", "text": "x", "index": number}]})

    limits = Limits(content_blocks=5)
    assert read("openai-chat", [sse(ROLE, *map(detail, range(5)), STOP, DONE)], limits).fault == ""
    assert "TooManyBlocks" in read("openai-chat", [sse(ROLE, *map(detail, range(6)), STOP, DONE)], limits).fault
