"""Compaction: a summary that can be read is text elsewhere; one that only its vendor reads is refused, not forgotten."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from tests.requests.rows import at

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
    with pytest.raises(BadRequest, match="a summary of them") as refused:
        written("openai-responses", target, input=ITEMS)
    assert refused.value.path == "input[0]"


def test_within_responses_a_compaction_stays_as_it_came():
    body, _ = written("openai-responses", "openai-responses", input=[*ITEMS, {"type": "compaction_trigger"}])
    assert orjson.loads(body)["input"] == [*ITEMS, {"type": "compaction_trigger"}]


# -- asking for one ----------------------------------------------------------------------------------------------------

HI = [{"role": "user", "content": "Hi"}]
EDIT: dict[str, Any] = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 90_000}}
CLEAR = {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 30_000}}
ENTRY = {"type": "compaction", "compact_threshold": 90_000}
TRIGGER = {"type": "compaction_trigger"}


def asked(target: str, **members: Any) -> tuple[dict[str, Any], StreamReport]:
    """A request of the one of the two dialects that it looks like, as written for ``target``."""
    source = "anthropic" if "messages" in members else "openai-responses"
    body, report = written(source, target, **({"max_tokens": 99} if source == "anthropic" else {}), **members)
    return orjson.loads(body), report


def sealed_item(block: dict[str, Any]) -> dict[str, Any]:
    """The item that a client of Responses has of a block of Anthropic's."""
    return {
        "type": "compaction",
        "encrypted_content": seal("opaque", "anthropic_compaction", orjson.dumps(block).decode()),
    }


def edited(*edits: dict[str, Any]) -> dict[str, Any]:
    return {"messages": HI, "context_management": {"edits": list(edits)}}


RESPONSES, ANTHROPIC = "openai-responses", "anthropic"
MORE = {"pause_after_compaction": True, "instructions": "Keep names.", "keep_media": 2}
REPLY = {
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}], "tool_choice": "required",
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
}  # fmt: skip
SUMMARIZE = {"type": "summarize", "instructions": "Keep names."}
#: The dialect that is asked, what the client of the other asks, what stands there, and the names of what is lost.
ASKING: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[str]]] = {
    "an edit": (RESPONSES, edited(EDIT), {"context_management": [ENTRY]}, []),
    "an edit without a threshold": (RESPONSES, edited({"type": EDIT["type"]}), {"context_management": [{"type": "compaction"}]}, []),
    "what Responses has no word for": (
        RESPONSES, edited(CLEAR, EDIT | MORE), {"context_management": [ENTRY]}, ["compaction.instructions", "compaction.pause", "context_management"],
    ),
    "what says nothing": (
        RESPONSES, edited(EDIT | {"pause_after_compaction": False, "instructions": None}), {"context_management": [ENTRY]}, [],
    ),
    "an entry": (ANTHROPIC, {"input": HI, "context_management": [ENTRY]}, {"context_management": {"edits": [EDIT]}}, []),
    "an entry without a threshold": (
        ANTHROPIC, {"input": HI, "context_management": [{"type": "compaction"}]}, {"context_management": {"edits": [{"type": EDIT["type"]}]}}, [],
    ),
    "a small threshold": (
        ANTHROPIC, {"input": HI, "context_management": [{**ENTRY, "compact_threshold": 1000}]},
        {"context_management.edits[0].trigger.value": 50_000}, ["compaction.threshold"],
    ),
    "an entry of the future": (
        ANTHROPIC, {"input": HI, "context_management": [ENTRY, {"type": "novelty"}]}, {"context_management": {"edits": [EDIT]}}, ["context_management"],
    ),
    "an odd threshold": (
        ANTHROPIC, {"input": HI, "context_management": [{**ENTRY, "compact_threshold": "many"}]}, {}, ["context_management"],
    ),
    "a trigger": (ANTHROPIC, {"input": [*HI, TRIGGER]}, {"compaction": {"type": "summarize"}, "messages": HI}, []),
    "a summary": (RESPONSES, {"messages": HI, "compaction": SUMMARIZE}, {"input": [*HI, TRIGGER]}, ["compaction.instructions"]),
    "a trigger, and what only shapes a reply": (
        ANTHROPIC, {"input": [*HI, TRIGGER], "context_management": [ENTRY], **REPLY},
        {"compaction": {"type": "summarize"}, "context_management": ..., "output_config": ..., "tool_choice": ...},
        ["compaction.threshold", "output", "required"],
    ),
    "an older model": (
        ANTHROPIC, {"model": "claude-sonnet-4-5", "input": HI, "context_management": [ENTRY]}, {"context_management": ...}, ["compaction"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKING)
def test_what_one_dialect_asks_is_asked_of_the_other(name):
    target, members, places, lost = ASKING[name]
    body, report = asked(target, **members)
    assert {place: at(body, place) for place in places} == places
    assert sorted(what for _, what in report.lost) == lost


ASKED: dict[str, dict[str, Any]] = {
    "an edit": edited(CLEAR, EDIT | {"instructions": None, "keep_media": 2}),
    "a summary": {"messages": HI, "compaction": {"type": "summarize", "x": 1}},
    "a form of the future": {"messages": HI, "compaction": {"type": "novelty"}, "context_management": {"edits": [{"type": "compact_2027"}]}},
    "an entry": {"input": HI, "context_management": [{"type": "novelty"}, ENTRY | {"x": 1}]},
    "a trigger": {"input": [*HI, {**TRIGGER, "id": "t"}]},
    "a trigger alone": {"input": [TRIGGER], "previous_response_id": "r"},
    "a trigger that is not the last": {"input": [TRIGGER, *HI]},
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_within_a_dialect_what_is_asked_stays_as_it_came(name):
    members = ASKED[name]
    body, report = asked("anthropic" if "messages" in members else "openai-responses", **members)
    assert {each: body[each] for each in members} == members
    assert not report.losses


@pytest.mark.parametrize("target", [name for name in WITH_BODIES if name not in {"anthropic", "openai-responses"}])
@pytest.mark.parametrize("members", [edited(EDIT), {"input": HI, "context_management": [ENTRY]}, {"input": [*HI, TRIGGER]}, {"messages": HI, "compaction": {"type": "summarize"}}])  # fmt: skip
def test_where_nothing_compacts_it_is_one_counted_loss(target, members):
    _, report = asked(target, **members)
    assert {*report.lost} - {("parameter", "max_tokens")} == {("parameter", "compaction")}


BLOCK: dict[str, Any] = {"type": "compaction", "content": "They like pelicans."}
FEATURES: dict[str, tuple[list[Any], dict[str, Any], str | None]] = {
    "nothing": (HI, {}, None),
    "an edit": (HI, {"context_management": [ENTRY]}, "compact-2026-01-12"),
    "a summary alone": ([*HI, TRIGGER], {}, "compact-2026-09-04"),
    "a block": ([sealed_item(BLOCK), *HI], {}, "compact-2026-01-12"),
    "a signed block": ([sealed_item({**BLOCK, "signature": "S"}), *HI], {}, "compact-2026-09-04"),
    "both": ([sealed_item({**BLOCK, "signature": "S"}), *HI], {"context_management": [ENTRY]}, "compact-2026-01-12,compact-2026-09-04"),
}  # fmt: skip


@pytest.mark.parametrize("name", FEATURES)
def test_the_beta_that_a_request_needs_is_named(name):
    items, members, betas = FEATURES[name]
    request = decode_request(orjson.dumps({"model": "m", "input": items, **members}), "openai-responses")
    assert DIALECTS["anthropic"].features(request).get("anthropic-beta") == betas
    assert not DIALECTS["openai-chat"].features(request)
