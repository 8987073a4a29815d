"""Blocks are found by their index, labelled by their order, and what was sealed goes back to whoever made it."""

from __future__ import annotations

from typing import Any

import pytest

from streamkit.dialects.members.values import Members
from streamkit.dialects.streams.block_decoder import BlockDecoder, DecodedBlock
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.errors import TooManyBlocks
from streamkit.events import (
    Aside,
    ChoiceStarted,
    Opaque,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseStarted,
    ToolCallDelta,
    ToolCallEnded,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport


class Decoder(BlockDecoder[DecodedBlock]):
    dialect = "test"
    vendor = "tester"
    signer = "signer"
    call_kind = "call"
    block_type = DecodedBlock


@pytest.fixture
def decoder() -> Decoder:
    return Decoder(Limits(), StreamReport())


def test_the_first_block_starts_the_response_and_its_choice(decoder):
    decoder.open_block(0, "text")
    decoder.open_block(1, "text")
    assert decoder.out == [ResponseStarted(vendor="tester"), ChoiceStarted()]


def test_blocks_and_calls_are_numbered_by_their_order_whatever_their_index(decoder):
    opened = [decoder.open_block(index, kind) for index, kind in ((4, "call"), (2, "text"), (9, "call"))]
    assert [(block.number, block.call) for block in opened] == [(0, 0), (1, 1), (2, 1)]


def test_a_start_without_an_index_has_the_next_that_is_free(decoder):
    decoder.open_block(4, "text")
    assert decoder.start_index(None) == 5
    assert decoder.start_index(2) == 2
    assert decoder.report.repairs == {"index_missing": 1}


def test_a_delta_without_an_index_is_of_the_block_opened_last_or_of_the_last_call(decoder):
    decoder.open_block(3, "call")
    decoder.open_block(1, "text")
    assert decoder.block_index(None) == 1
    decoder.close_block(1)
    assert decoder.block_index(None) == 3
    decoder.close_block(3)
    assert decoder.block_index(None) == 3
    decoder.open_block(6, "text")
    decoder.close_block(6)
    assert decoder.block_index(None) == 7


def test_a_block_at_the_index_of_an_open_one_closes_that(decoder):
    decoder.open_block(0, "call")
    decoder.open_block(0, "call")
    assert decoder.out[-1] == ToolCallEnded(0)
    decoder.close_block(0)
    decoder.open_block(0, "text")
    assert decoder.report.repairs == {"block_reopened": 1, "index_reused": 1}


def test_more_blocks_than_the_limit_are_an_error():
    decoder = Decoder(Limits(content_blocks=1), StreamReport())
    decoder.open_block(0, "text")
    with pytest.raises(TooManyBlocks):
        decoder.open_block(1, "text")


def test_the_end_of_the_message_closes_all_blocks_but_calls_once(decoder):
    decoder.open_block(0, "text")
    decoder.open_block(1, "call")
    decoder.stop_message()
    decoder.stop_message()
    assert [*decoder.blocks] == [1]
    assert decoder.report.repairs == {"block_unclosed": 2}
    assert ToolCallEnded(0) not in decoder.out


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("reasoning", ReasoningSignature("blob", "other", 0, 1)),
        ("text", ReasoningSignature("blob", "other", 0, 0, "text")),
        ("part", ReasoningSignature("blob", "other", 0, 1, "text")),
        ("opaque", ReasoningOpaque("blob", "other", 0, 1)),
    ],
)
def test_what_was_sealed_belongs_to_its_vendor_and_its_block(decoder: Decoder, kind: Kind, event: Any):
    decoder.open_block(0, "text")
    decoder.opaque(seal(kind, "other", "blob"), decoder.open_block(1, "thinking"), redacted=False)
    assert decoder.out[-1] == event


def test_the_sealed_signature_of_a_call_is_of_the_next_one(decoder):
    decoder.opaque(seal("call", "other", "blob"), decoder.open_block(0, "thinking"), redacted=True)
    for index in (1, 2):
        decoder.start_call(decoder.open_block(index, "call"), f"id{index}", "look", {})
    calls = [event for event in decoder.out if isinstance(event, ToolCallDelta)]
    assert [call.signature for call in calls] == [Opaque("other", "blob"), None]


def test_what_is_not_sealed_is_the_signers(decoder):
    block = decoder.open_block(0, "thinking")
    decoder.opaque("one", block, redacted=False)
    decoder.opaque("two", block, redacted=True)
    assert decoder.out[-2:] == [ReasoningSignature("one", "signer", 0, 0), ReasoningOpaque("two", "signer", 0, 0)]


def test_what_nobody_reads_of_a_document_is_kept_unless_all_of_it_was(decoder):
    document = {"a": 1}
    whole = Aside("tester", "unknown_event", "a", document)
    decoder.read_and_keep(lambda _: decoder.out.append(whole), document, Members(), "event.")
    assert decoder.out == [whole]
    decoder.read_and_keep(lambda _: None, document, Members(), "event.")
    assert decoder.out[1:] == [Aside("tester", "unknown_event", "unread:event.a", 1)]
    decoder.read_and_keep(lambda _: decoder.out.append(whole), {"a": 1}, Members(), "event.")
    assert decoder.out[2:] == [whole, Aside("tester", "unknown_event", "unread:event.a", 1)]
