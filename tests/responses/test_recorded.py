"""The recorded streams of every dialect as whole bodies of every other: each says what the stream said."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from streamkit.conversation.messages import Choice, ToolCall
from streamkit.dialects import DIALECTS
from streamkit.recipes import collect
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.text.identifiers import nine_characters
from streamkit.translation.bodies import decode_response, encode_response
from tests.corpora import recordings

WITH_BODIES = [
    "openai-chat", "openai-responses", "anthropic", "bedrock", "gemini", "mistral", "cohere",
]  # fmt: skip
#: Dialects whose bodies have several choices; the others have the first.
SEVERAL = {"openai-chat", "gemini", "mistral"}


def called(call: ToolCall, target: str) -> Any:
    """A call as a dialect can say it: only OpenAI's have free text next to objects, and Mistral's ids are of nine characters."""
    call_id = nine_characters(call.id) if target == "mistral" else call.id
    if call.kind == "function":
        return call_id, call.name, json.loads(call.arguments or "{}")
    return call_id, call.name, call.arguments if target.startswith("openai") else {"input": call.arguments}


def told(choice: Choice, target: str, withheld: set[str]) -> Any:
    """What a choice says. A refusal is text where the dialect has no other place for it."""
    calls = [called(call, target) for call in choice.tool_calls if call.id not in withheld]
    return choice.text + choice.refusal, choice.reasoning, calls


@pytest.mark.parametrize(
    ("target", "source"), [pair for pair in product(WITH_BODIES, DIALECTS.built_in) if pair[0] != pair[1]]
)
async def test_a_recorded_stream_of_another_dialect_becomes_a_body(target, source):
    for recorded in recordings(source):
        streamed = await collect(source_of([recorded.body]), source)
        report = StreamReport()
        found = decode_response(encode_response(streamed, target, report=report), target)
        if not streamed.clean:
            assert found.error is not None
            continue
        assert found.clean, recorded.name
        assert not found.report.repairs, recorded.name
        withheld = {call.id for call in report.withheld}
        choices = streamed.choices if target in SEVERAL else streamed.choices[:1]
        assert [told(choice, target, withheld) for choice in found.choices] == [
            told(choice, target, withheld) for choice in choices or [Choice()]
        ], recorded.name


#: Of its own stream, a body of these loses no more than what came again with other values, and events that no body has.
LOST = {
    "anthropic": set(),
    "gemini": {"metadata", "citation"},
    "openai-chat": {"metadata", "unknown_event"},
    "cohere": set(),
}


def proofs(choice: Choice) -> list[Any]:
    """What a vendor signed or encrypted of a choice."""
    signed = [getattr(part, "signature", None) or getattr(part, "opaque", None) for part in choice.parts]
    return [proof for proof in signed if proof is not None]


@pytest.mark.parametrize("dialect", LOST)
async def test_a_recorded_stream_as_a_whole_body_says_the_same(dialect):
    for recorded in recordings(dialect):
        streamed = await collect(source_of([recorded.body]), dialect)
        if not streamed.clean:
            continue
        report = StreamReport()
        body = encode_response(streamed, dialect, report=report)
        found = decode_response(body, dialect)
        choices = streamed.choices if dialect in SEVERAL else streamed.choices[:1]
        for ours, theirs in zip(found.choices, choices, strict=True):
            assert told(ours, dialect, set()) == told(theirs, dialect, set()), recorded.name
            assert (ours.index, ours.refusal, ours.stop_reason) == (theirs.index, theirs.refusal, theirs.stop_reason)
            assert [call.ended for call in ours.tool_calls] == [call.ended for call in theirs.tool_calls]
            assert proofs(ours) == proofs(theirs), recorded.name
        for member in ("usage", "id", "model", "created", "clean"):
            assert getattr(found, member) == getattr(streamed, member), (recorded.name, member)
        assert not found.report.repairs, recorded.name
        assert report.losses.keys() <= LOST[dialect], recorded.name
        if dialect != "openai-chat":  # whose streams say members of the response again, with other values
            assert found.extras == streamed.extras, recorded.name
            assert encode_response(found, dialect) == body, recorded.name
