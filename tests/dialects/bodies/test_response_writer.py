"""What the writers of whole responses count alike."""

from __future__ import annotations

import pytest

from streamkit.conversation.messages import (
    Choice,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Response,
    Text,
    ToolCall,
)
from streamkit.dialects.bodies.responses import ResponseWriter
from streamkit.dialects.profiles import Encoding
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport

SEAL = Opaque("acme", "blob")
CALL = ToolCall(0, "id_0", "look", "{}")


class Writer(ResponseWriter):
    vendor = "acme"


def writer(vendor: str = "acme") -> Writer:
    return Writer(Response("openai-chat", vendor=vendor), Encoding(), StreamReport())


@pytest.mark.parametrize(
    ("parts", "times"),
    [
        ([Reasoning("a"), Text("b"), Refusal("c"), CALL], 0),
        ([Text("a"), Reasoning("b")], 1),
        ([CALL, Text("a"), CALL, Reasoning("b")], 2),
        ([CALL, Aside("acme", "metadata", "x", 1), RedactedReasoning(SEAL), CALL], 0),
    ],
)
def test_parts_that_are_written_in_front_of_earlier_ones_are_counted(parts: list[Part], times: int):
    each = writer()
    each.lose_order(Choice(parts=parts))
    assert each.report.losses["block_order"] == times


def test_a_dialect_with_other_places_counts_by_these():
    class InOrder(Writer):
        def place_of(self, _part: Part) -> int:
            return 0

    each = InOrder(Response("openai-chat"), Encoding(), StreamReport())
    each.lose_order(Choice(parts=[Text("a"), Reasoning("b")]))
    assert not each.report.losses


def test_what_only_its_vendor_can_read_is_counted():
    each = writer()
    each.lose_sealed(
        Choice(parts=[Reasoning("a", signature=SEAL), RedactedReasoning(SEAL), Text("b", SEAL), Text("c")])
    )
    assert each.report.losses == {"reasoning_signature": 2, "reasoning_opaque": 1}


@pytest.mark.parametrize(("vendor", "written", "lost"), [("acme", {"a": 1}, 0), ("other", {}, 1)])
def test_members_of_another_vendor_are_a_loss(vendor, written, lost):
    each = writer(vendor)
    assert each.own_extras({"a": 1}, "response_fields") == written
    assert each.own_extras(None) == {}
    assert each.report.losses["response_fields"] == lost


def test_a_call_that_is_not_written_is_in_the_report():
    each = writer()
    each.withhold(CALL)
    [withheld] = each.report.withheld
    assert (withheld.id, withheld.name, withheld.arguments) == ("id_0", "look", "{}")
