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
