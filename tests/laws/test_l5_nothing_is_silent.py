"""L5, the other way round: a stream that breaks no rule of its dialect is read without a single repair.

Each repair and loss is seen in a vector in tests/test_vectors.py.
"""

from __future__ import annotations

import pytest

from streamkit import Limits, StreamReport, collect
from streamkit.dialects import DIALECTS
from streamkit.testing import source_of
from tests.corpora import recordings

#: OpenAI itself says `stop` for a call that the request forced by name; the neutral reason is `tool_calls` all the same.
NO_BREACH = {"stop_with_calls"}

#: Of Bedrock's, the others were written by hand from what was recorded, and begin without their first event.
LEAST = {"bedrock": 2}


def rules_broken(dialect: str, body: bytes) -> set[str]:
    linter, parser = DIALECTS[dialect].linter(), DIALECTS[dialect].parser(Limits(), StreamReport())
    found = linter.feed(parser.feed(body) + parser.finish()) + linter.finish()
    return {violation.rule for violation in found}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_conforming_recording_is_not_repaired(dialect):
    streams = recordings(dialect)
    conforming = [stream for stream in streams if not rules_broken(dialect, stream.body)]
    assert len(conforming) >= LEAST.get(dialect, min(8, len(streams))), "the recordings are mostly sound"
    for stream in conforming:
        response = await collect(source_of(stream.chunks), dialect)
        assert response.report.repairs.keys() <= NO_BREACH, stream.name
        assert response.clean, stream.name
