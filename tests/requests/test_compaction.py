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


def test_an_edit_that_compacts_is_asked_of_responses():
    body, report = asked("openai-responses", **edited(EDIT))
    assert body["context_management"] == [ENTRY]
    assert not report.losses
    assert asked("openai-responses", **edited({"type": EDIT["type"]}))[0]["context_management"] == [
        {"type": "compaction"}
    ]


def test_what_responses_has_no_word_for_is_a_counted_loss():
    more = {"pause_after_compaction": True, "instructions": "Keep names.", "keep_media": 2}
    body, report = asked("openai-responses", **edited(CLEAR, EDIT | more))
    assert body["context_management"] == [ENTRY]
    assert sorted(report.lost) == [
        ("parameter", "compaction.instructions"),
        ("parameter", "compaction.pause"),
        ("parameter", "context_management"),
    ]
    assert not asked("openai-responses", **edited(EDIT | {"pause_after_compaction": False, "instructions": None}))[
        1
    ].losses


def test_an_entry_that_compacts_is_asked_of_anthropic():
    body, report = asked("anthropic", input=HI, context_management=[ENTRY])
    assert body["context_management"] == {"edits": [EDIT]}
    assert not report.losses
    assert asked("anthropic", input=HI, context_management=[{"type": "compaction"}])[0]["context_management"] == {
        "edits": [{"type": EDIT["type"]}]
    }


def test_anthropic_compacts_from_fifty_thousand_tokens_on():
    body, report = asked("anthropic", input=HI, context_management=[{**ENTRY, "compact_threshold": 1000}])
    assert body["context_management"]["edits"][0]["trigger"]["value"] == 50_000
    assert report.lost == [("parameter", "compaction.threshold")]


def test_entries_of_the_future_are_counted():
    _, report = asked("anthropic", input=HI, context_management=[ENTRY, {"type": "novelty"}])
    assert report.lost == [("parameter", "context_management")]
    assert asked("anthropic", input=HI, context_management=[{**ENTRY, "compact_threshold": "many"}])[1].lost == [
        ("parameter", "context_management")
    ]


def test_nothing_but_a_summary_is_asked_for_either_way():
    body, report = asked("anthropic", input=[*HI, TRIGGER])
    assert (body["compaction"], body["messages"]) == ({"type": "summarize"}, HI)
    assert not report.losses
    body, report = asked(
        "openai-responses", messages=HI, compaction={"type": "summarize", "instructions": "Keep names."}
    )
    assert body["input"] == [*HI, TRIGGER]
    assert report.lost == [("parameter", "compaction.instructions")]


def test_what_only_shapes_a_reply_is_not_beside_a_request_for_a_summary():
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    form = {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}
    body, report = asked(
        "anthropic", input=[*HI, TRIGGER], context_management=[ENTRY], tools=[tool], tool_choice="required", text=form
    )
    assert body.keys() == {"model", "max_tokens", "messages", "tools", "compaction"}
    assert sorted(report.lost) == [
        ("parameter", "compaction.threshold"),
        ("parameter", "output"),
        ("tool_choice", "required"),
    ]


def test_older_models_of_anthropic_are_not_asked():
    request = decode_request(
        orjson.dumps({"model": "claude-sonnet-4-5", "input": HI, "context_management": [ENTRY]}), "openai-responses"
    )
    report = StreamReport()
    assert "context_management" not in orjson.loads(encode_request(request, "anthropic", report=report))
    assert report.lost == [("parameter", "compaction")]


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
