"""The stop reasons of each dialect are understood in all others, and each reason has its word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.ag_ui import wire as agui
from streamkit.dialects.ai_sdk import wire as aisdk
from streamkit.dialects.anthropic import wire as anthropic
from streamkit.dialects.bedrock import wire as bedrock
from streamkit.dialects.cohere import wire as cohere
from streamkit.dialects.gemini import wire as gemini
from streamkit.dialects.gemini_interactions import wire as interactions
from streamkit.dialects.ollama import wire as ollama
from streamkit.dialects.openai_chat import wire as chat
from streamkit.dialects.openai_responses import wire as responses
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.stop_reasons import meaning
from streamkit.events import ResponseFinished, StopReason, StopReasonSeen, StreamEnded, TextDelta
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from tests.laws.running import read
from tests.vectors import ag_ui as au
from tests.vectors import ai_sdk as ui
from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import gemini_interactions as gi
from tests.vectors import mistral as mi
from tests.vectors import ollama as ol
from tests.vectors import openai_chat as oc
from tests.vectors import openai_responses as rs
from tests.vectors.vector import lines, named, sse
from tests.whole_answers import ANSWERING_WHOLE

OWN: Mapping[str, Mapping[str, StopReason]] = {
    "ag-ui": agui.STOP_REASONS,
    "ai-sdk": aisdk.STOP_REASONS,
    "anthropic": anthropic.STOP_REASONS,
    "bedrock": bedrock.STOP_REASONS,
    "cohere": cohere.STOP_REASONS,
    "gemini": gemini.STOP_REASONS,
    "gemini-interactions": interactions.STOP_REASONS,
    "mistral": chat.STOP_REASONS,
    "ollama": ollama.STOP_REASONS,
    "openai-chat": chat.STOP_REASONS,
    "openai-responses": responses.INCOMPLETE_REASONS,
}
#: Words that mean something in their own dialect only.
PRIVATE = {"load", "unload", "OTHER", "other", "unknown", "max_messages"}
WORDS = sorted({(word, reason) for own in OWN.values() for word, reason in own.items() if word not in PRIVATE})
TEXT = {"role": "assistant", "content": "Hi"}


def stream(dialect: str, word: str) -> bytes:
    """A stream of ``Hi`` that ends for the reason ``word``."""
    match dialect:
        case "ag-ui":
            return sse(au.START, *au.text("m", "Hi"), au.finish(word))
        case "ai-sdk":
            return ui.answer(ui.text("Hi"), end=ui.finish(word))
        case "anthropic":
            return named(am.START, *am.block(0, "Hi"), am.finish(word), am.STOP)
        case "bedrock":
            return br.vector("", br.START, *br.block(0, "Hi"), br.finish(word), br.counts()).body
        case "cohere":
            return named(co.START, *co.block(0, "Hi"), co.finish(word))
        case "gemini":
            return gm.events(gm.chunk(gm.text("Hi"), finish=word))
        case "gemini-interactions":
            return gi.named(gi.START, *gi.text(0, "Hi"), gi.finish(word))
        case "mistral":
            return sse(mi.ROLE, mi.said("Hi"), mi.finish(word), mi.DONE)
        case "ollama":
            return lines(ol.line("Hi"), ol.end(word))
        case "openai-chat":
            return sse(oc.said("Hi"), oc.chunk(finish=word), oc.DONE)
        case _:
            return rs.numbered(rs.START, *rs.HI, rs.cut_off(word, rs.HI[-1]))


def body(dialect: str, word: str) -> Any:
    """The same as a whole answer."""
    match dialect:
        case "anthropic":
            return {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "Hi"}],
                "stop_reason": word,
            }
        case "bedrock":
            return {"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}}, "stopReason": word}
        case "cohere":
            return {"id": "i", "message": {**TEXT, "content": [{"type": "text", "text": "Hi"}]}, "finish_reason": word}
        case "gemini":
            return gm.chunk(gm.text("Hi"), finish=word)
        case "gemini-interactions":
            return gi.interaction(word, steps=[{"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}])
        case "mistral" | "openai-chat":
            return {"object": "chat.completion", "choices": [{"index": 0, "message": TEXT, "finish_reason": word}]}
        case "ollama":
            return {"model": "m", "message": TEXT, "done": True, "done_reason": word}
        case _:
            return rs.cut_off(word, rs.HI[-1])["response"]


@pytest.mark.parametrize("dialect", OWN)
def test_every_dialect_is_looked_at(dialect):
    assert OWN.keys() == DIALECTS.keys()
    assert dialect in DIALECTS


@pytest.mark.parametrize("dialect", OWN)
@pytest.mark.parametrize(("word", "reason"), WORDS)
def test_a_stop_reason_of_any_dialect_is_read_by_its_meaning(dialect, word, reason):
    own = OWN[dialect].get(word)
    expected = own or reason
    repairs = {} if own else {"stop_reason_foreign": 1}
    found = read(dialect, [stream(dialect, word)])
    if expected == "tool_calls" and not found.calls:  # there is no call in it
        repairs, expected = {**repairs, "calls_without_call": 1}, "stop"
    if expected in {"error", "malformed_tool"}:
        assert (found.clean, found.error is not None) == (False, True)
    else:
        assert (found.stops.get(0), found.clean) == (expected, True)
    assert found.report.repairs == repairs


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
@pytest.mark.parametrize(("word", "reason"), WORDS)
def test_and_in_a_whole_answer(dialect, word, reason):
    report = StreamReport()
    bodies = DIALECTS[dialect].bodies
    assert bodies is not None
    events = bodies.decode_response(orjson.dumps(body(dialect, word)), DEFAULT_LIMITS, report)
    own = OWN[dialect].get(word)
    assert [event.reason for event in events if type(event) is StopReasonSeen] == [own or reason]
    assert report.repairs == ({} if own else {"stop_reason_foreign": 1})


@pytest.mark.parametrize("dialect", OWN)
@pytest.mark.parametrize("word", ["llama", "STOP!", "x" * 100_000])
def test_a_word_of_nobody_stays_other(dialect, word):
    found = read(dialect, [stream(dialect, word)])
    least = "length" if dialect == "openai-responses" else "other"  # an incomplete response is no whole one
    assert (found.stops.get(0), found.report.repairs) == (least, {})


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("maxTokens", "length"), ("tool-calls", "tool_calls"), ("End Turn", "stop"), ("FinishReason.MAX_TOKENS", "length"),
        ("FINISH_REASON_STOP", "stop"), ("stop_reason", None), ("finish_reason_", None), ("", None), ("unknown", None),
    ],
)  # fmt: skip
def test_letter_case_and_what_joins_a_word_do_not_matter(word, reason):
    assert meaning(word) == reason


@pytest.mark.parametrize(
    ("status", "reason", "clean"),
    [("max_tokens", "length", True), ("stop", "stop", True), ("done", "stop", True), ("content_filter", "content_filter", True), ("aborted", None, False)],
)  # fmt: skip
def test_the_status_of_a_response_may_have_another_dialects_word(status, reason, clean):
    event = rs.last(status, rs.HI[-1], kind="response.completed")
    found = read("openai-responses", [rs.numbered(rs.START, *rs.HI, event)])
    assert (found.stops.get(0), found.clean) == (reason, clean)
    assert found.report.repairs["stop_reason_foreign"] == 1
    report = StreamReport()
    bodies = DIALECTS["openai-responses"].bodies
    assert bodies is not None
    events = bodies.decode_response(orjson.dumps(event["response"]), DEFAULT_LIMITS, report)
    assert [event.reason for event in events if type(event) is StopReasonSeen] == [reason or "error"]
    assert report.repairs == {"stop_reason_foreign": 1}


#: By neutral reason the word that is written; with a star where it is another's, which is counted.
WRITTEN = {
    "cohere": {
        "stop": "COMPLETE", "stop_sequence": "STOP_SEQUENCE", "length": "MAX_TOKENS", "context_full": "MAX_TOKENS*",
        "content_filter": "MAX_TOKENS*", "refusal": "COMPLETE*", "pause": "MAX_TOKENS*", "compaction": "MAX_TOKENS*",
        "malformed_tool": "COMPLETE*", "other": "COMPLETE*",
    },
    "mistral": {
        "stop": "stop", "stop_sequence": "stop*", "length": "length", "context_full": "model_length",
        "content_filter": "length*", "refusal": "stop*", "pause": "length*", "compaction": "length*",
        "malformed_tool": "stop*", "other": "stop*",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "reason"), [(dialect, reason) for dialect, words in WRITTEN.items() for reason in words]
)
def test_every_reason_is_written_as_a_word_of_the_dialect(dialect, reason):
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(Encoding(), report)
    output = encoder.feed([TextDelta("Hi"), ResponseFinished(reason), StreamEnded(clean=True)])
    (word,) = re.findall(rb'"finish_reason":"([^"]*)"', output)
    assert word.decode() + "*" * report.losses["stop_reason"] == WRITTEN[dialect][reason]
