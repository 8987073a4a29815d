"""Events of a block become one block again, citations find their text, and what has no place is counted."""

from __future__ import annotations

from typing import Any

from attrs import define

from streamkit import StreamReport
from streamkit.dialects.bodies.responses import Block, BlockList
from streamkit.events import Aside


@define
class Growing:
    block: Block

    def take(self, delta: Any) -> bool:
        if "more" not in delta:
            return False
        self.block["pieces"].append(delta["more"])
        return True

    def finish(self, report: StreamReport) -> None:
        self.block["text"] = "".join(self.block.pop("pieces"))


class Blocks(BlockList):
    start, delta, stop, citation = "start", "delta", "stop", "citation"

    def growing(self, start: Any) -> Growing | None:
        return Growing({"pieces": [start["piece"]]}) if "piece" in start else None

    def cite(self, block: Block, citation: Any) -> None:
        block.setdefault("citations", []).append(citation)


def aside(kind: str, raw: Any, block: int = 0) -> Aside:
    return Aside("tester", "citation" if kind == "citation" else "unknown_event", kind, raw, block=block)


def test_a_block_grows_by_its_events_at_the_place_where_it_began():
    blocks = Blocks(StreamReport())
    blocks.aside(aside("start", {"piece": "a"}, 7))
    blocks.add({"whole": True})
    blocks.aside(aside("delta", {"delta": {"more": "b"}}, 7))
    blocks.aside(aside("stop", {}, 7))
    assert blocks.finish() == [{"text": "ab"}, {"whole": True}]
    assert blocks.report.losses == {}


def test_a_block_that_came_whole_is_written_as_it_came():
    blocks = Blocks(StreamReport())
    blocks.aside(aside("content.image", {"image": 1}))
    assert blocks.finish() == [{"image": 1}]


def test_a_citation_may_come_before_its_text_and_behind_it():
    blocks = Blocks(StreamReport())
    blocks.aside(aside("citation", 1, 3))
    blocks.add_text({"text": "other"}, 2)
    blocks.add_text({"text": "cited"}, 3)
    blocks.aside(aside("citation", 2, 3))
    assert blocks.finish() == [{"text": "other"}, {"text": "cited", "citations": [1, 2]}]


def test_what_has_no_place_is_a_loss():
    report = StreamReport()
    blocks = Blocks(report)
    blocks.aside(aside("start", {}, 1))
    blocks.aside(aside("delta", {"delta": {"more": "b"}}, 1))
    blocks.aside(aside("start", {"piece": "a"}, 2))
    blocks.aside(aside("delta", {"delta": {}}, 2))
    blocks.aside(aside("citation", 1, 3))
    assert blocks.finish() == [{"text": "a"}]
    assert report.losses == {"unknown_event": 3, "citation": 1}
