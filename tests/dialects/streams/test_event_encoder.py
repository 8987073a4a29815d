"""What encoders do alike: words for stop reasons, and what a dialect has no place for."""

from __future__ import annotations

import pytest

from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import EventEncoder, stop_word
from streamkit.events import ReasoningOpaque, ReasoningSignature, ResponseStarted
from streamkit.report import StreamReport


class Encoder(EventEncoder):
    vendor = "acme"


def encoder() -> Encoder:
    return Encoder(Encoding(), StreamReport())


@pytest.mark.parametrize(
    ("found", "sequence", "losses"),
    [
        (("stop", False), None, {}),
        (("stop", True), None, {"stop_reason": 1}),
        (("stop", False), "END", {"stop_sequence": 1}),
        (("stop", True), "END", {"stop_reason": 1, "stop_sequence": 1}),
    ],
)
def test_what_a_word_for_a_stop_reason_does_not_say_is_counted(found, sequence, losses):
    report = StreamReport()
    assert stop_word(found, sequence, report) == "stop"
    assert report.losses == losses


@pytest.mark.parametrize(("vendor", "written", "lost"), [("acme", {"a": 1}, 0), ("other", {}, 1)])
def test_members_of_another_vendor_are_a_loss(vendor, written, lost):
    each = encoder()
    assert each.response_extras(ResponseStarted(vendor=vendor, extras={"a": 1})) == written
    assert each.own_extras({"a": 1}) == written
    assert each.own_extras(None) == {}
    assert [each.report.losses[kind] for kind in ("response_fields", "metadata")] == [lost, lost]


def test_what_has_no_place_is_a_loss_unless_the_dialect_says_otherwise():
    each = encoder()
    each.signature(ReasoningSignature("blob", "acme"))
    each.opaque(ReasoningOpaque("blob", "acme"))
    assert each.report.losses == {"reasoning_signature": 1, "reasoning_opaque": 1}
