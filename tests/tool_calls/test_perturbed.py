"""What the accumulator makes of hundreds of broken streams stays as it was written down."""

from __future__ import annotations

import pytest

from tests.tool_calls.perturbed import SEEDS, outcome, outcomes

STEP = 10


@pytest.mark.parametrize("first", SEEDS[::STEP])
def test_a_stream_comes_to_what_it_came_to(first):
    written = outcomes()
    for seed in range(first, first + STEP):
        assert outcome(seed) == written[seed], f"python -m tests.tool_calls.perturbed {seed}"


def test_the_streams_meet_nearly_every_repair_of_calls():
    met = {word for text in outcomes().values() for word in text.split("'")[1::2]}
    needed = {
        "index_missing", "index_reused", "id_missing", "id_late", "id_changed", "id_repeated", "id_duplicate", "name_repeated",
        "name_changed", "name_pieces", "identity_blank", "arguments_cumulative", "index_changed", "objects_split",
    }  # fmt: skip
    assert needed <= met
