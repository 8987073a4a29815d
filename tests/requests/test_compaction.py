"""Compaction: a summary that can be read is text elsewhere; one that only its vendor reads is refused, not forgotten."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.bodies import decode_request, encode_request
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.report import StreamReport

COMPACTION = {"type": "compaction", "content": "<summary>They like pelicans.</summary>", "encrypted_content": "E"}
SPOKEN = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [COMPACTION, {"type": "text", "text": "So?"}]},
    {"role": "user", "content": "Go on."},
]
COMPACTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "E"}
ITEMS = [COMPACTED, {"role": "user", "content": "Go on."}]
WITH_BODIES = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None]


def written(source: str, target: str, **members: Any) -> tuple[str, StreamReport]:
    report = StreamReport()
    request = decode_request(orjson.dumps({"model": "m", **members}), source)
    return encode_request(request, target, max_tokens=9, report=report).decode(), report


@pytest.mark.parametrize("target", [name for name in WITH_BODIES if name != "anthropic"])
def test_a_summary_of_anthropic_is_text_elsewhere(target):
    body, report = written("anthropic", target, max_tokens=9, messages=SPOKEN)
    assert "They like pelicans." in body
    assert not report.losses["unknown_event"]


def test_within_anthropic_a_compaction_stays_as_it_came():
    body, report = written("anthropic", "anthropic", max_tokens=9, messages=SPOKEN)
    assert orjson.loads(body)["messages"] == SPOKEN
    assert not report.losses


@pytest.mark.parametrize("target", [name for name in WITH_BODIES if name != "openai-responses"])
def test_what_only_openai_can_read_is_refused_elsewhere(target):
    with pytest.raises(BadRequest, match="their summary as a message") as refused:
        written("openai-responses", target, input=ITEMS)
    assert refused.value.path == "input[0]"


def test_within_responses_a_compaction_stays_as_it_came():
    body, _ = written("openai-responses", "openai-responses", input=[*ITEMS, {"type": "compaction_trigger"}])
    assert orjson.loads(body)["input"] == [*ITEMS, {"type": "compaction_trigger"}]
