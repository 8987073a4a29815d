"""The checkers of the dialects: small streams (``lint_vectors.py``) and what the field sends."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, ClassVar

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.linting import GrammarChecker, Violation
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from tests.corpora import recordings
from tests.dialects.lint_vectors import DONE, END, ROLE, START, STOP, VECTORS, choice, chunk, say, uses

RULES: dict[str, dict[str, str]] = {
    dialect: import_module(f"streamkit.dialects.{dialect.replace('-', '_')}.lint").RULES for dialect in DIALECTS
}


def lint(dialect: str, chunks: bytes | tuple[bytes, ...]) -> list[Violation]:
    linter, parser = DIALECTS[dialect].linter(), DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport())
    found: list[Violation] = []
    for piece in (chunks,) if isinstance(chunks, bytes) else chunks:
        found += linter.feed(parser.feed(piece))
    found += linter.feed(parser.finish())
    assert parser.fault is None
    return found + linter.finish()


def brief(found: list[Violation]) -> str:
    return " ".join(violation.rule + {"error": "", "note": "*"}[violation.severity] for violation in found)


CASES = [pytest.param(dialect, stream, rules, id=f"{dialect}: {what}") for dialect, vectors in VECTORS.items() for what, stream, rules in vectors]  # fmt: skip


@pytest.mark.parametrize(("dialect", "stream", "rules"), CASES)
def test_a_stream_breaks_these_rules_and_no_others(dialect, stream, rules):
    assert brief(lint(dialect, stream)) == rules


@pytest.mark.parametrize(("dialect", "stream", "rules"), CASES)
def test_what_is_found_does_not_depend_on_the_cuts(dialect, stream, rules):
    pieces = tuple(stream[at : at + 7] for at in range(0, len(stream), 7))
    assert lint(dialect, pieces) == lint(dialect, stream)


@pytest.mark.parametrize("dialect", RULES)
def test_every_rule_has_a_stream_that_breaks_it(dialect):
    broken = {rule.rstrip("*") for _, _, rules in VECTORS[dialect] for rule in rules.split()}
    assert broken == set(RULES[dialect])


@pytest.mark.parametrize("dialect", RULES)
def test_every_rule_is_a_sentence_that_names_its_section(dialect):
    for name, sentence in RULES[dialect].items():
        assert re.fullmatch(r"[a-z0-9_]+", name)
        assert re.fullmatch(r"[A-Z`].+ \(§\d[\d.]*(, §\d[\d.]*)*\)\.", sentence)


@pytest.mark.parametrize("dialect", RULES)
def test_the_empty_stream_is_truncated(dialect):
    assert lint(dialect, b"") == [Violation("truncated", lint(dialect, b"")[0].message, 0, 0)]


def test_a_violation_names_the_byte_and_the_number_of_its_frame():
    stream = b": hello\n\n" + ROLE + STOP + say(content="a")
    (after, done) = lint("openai-chat", stream)
    assert (after.rule, after.offset, after.frame) == ("after_finish", len(stream) - len(say(content="a")), 2)
    assert (done.rule, done.offset, done.frame) == ("done", after.offset, 2)


def test_a_message_is_short_and_without_control_characters():
    (found,) = lint("openai-chat", ROLE + chunk(choice({}, "stop"), object="\x1b[31m\n" * 1000) + DONE)
    assert len(found.message) < 100
    assert found.message.isprintable()


def test_a_rule_that_is_in_no_table_cannot_be_used():
    class Stray(GrammarChecker):
        rules: ClassVar = {"known": "It is known."}

        def check(self, document: dict[str, Any]) -> None:
            self.broken("unknown", "")

    with pytest.raises(LookupError, match="unknown"):
        Stray().feed([Frame(b"{}")])


def test_input_that_is_too_long_to_keep_is_not_judged():
    half = "[" * (DEFAULT_LIMITS.arguments_chars // 2 + 1)
    assert brief(lint("anthropic", START + uses(half, half, half) + END)) == ""


# -- the field ---------------------------------------------------------------------------------------------------------

WRITER = "traceloop+openllmetry/packages/opentelemetry-instrumentation-writer/tests/cassettes/test_chat/"
#: Recordings with errors: the rules that each breaks, with the byte of the first frame that does.
RECORDED_ERRORS: dict[str, dict[str, dict[str, int]]] = {
    "openai-chat": {
        "vercel+ai/packages/moonshotai/src/__fixtures__/moonshotai-stream.chunks.txt": {"object": 0},
        WRITER + "test_writer_async_streaming_chat_multiple_tool_call_requests_legacy.yaml": {"call_repeat": 1686},
        WRITER + "test_writer_async_streaming_chat_multiple_tool_call_requests_with_events_with_content.yaml": {
            "call_repeat": 1686
        },
        WRITER + "test_writer_async_streaming_chat_multiple_tool_call_requests_with_events_with_no_content.yaml": {
            "call_repeat": 1686
        },
        WRITER + "test_writer_streaming_chat_multiple_tool_call_requests_legacy.yaml": {"call_repeat": 1686},
        WRITER + "test_writer_streaming_chat_multiple_tool_call_requests_with_events_with_content.yaml": {
            "call_repeat": 1686
        },
        WRITER + "test_writer_streaming_chat_multiple_tool_call_requests_with_events_with_no_content.yaml": {
            "call_repeat": 1686
        },
        WRITER + "test_writer_async_streaming_chat_tool_call_request_legacy.yaml": {"call_repeat": 1686},
        WRITER + "test_writer_async_streaming_chat_tool_call_request_with_events_with_content.yaml": {
            "call_repeat": 1686
        },
        WRITER + "test_writer_async_streaming_chat_tool_call_request_with_events_with_no_content.yaml": {
            "call_repeat": 1686
        },
        WRITER + "test_writer_streaming_chat_tool_call_request_legacy.yaml": {"call_repeat": 1686},
        WRITER + "test_writer_streaming_chat_tool_call_request_with_events_with_content.yaml": {"call_repeat": 1686},
        WRITER + "test_writer_streaming_chat_tool_call_request_with_events_with_no_content.yaml": {"call_repeat": 1686},
        "vercel+ai/packages/perplexity/src/__fixtures__/perplexity-citations.chunks.txt": {"object": 4919},
        "vercel+ai/packages/perplexity/src/__fixtures__/perplexity-text.chunks.txt": {"object": 4900},
        "looplj+axonhub/internal/llm/transformer/aisdk/testdata/llm-think.stream.jsonl": {
            "call_index": 3211,
            "delta": 3953,
            "after_usage": 4549,
            "choices": 4549,
            "object": 4549,
        },
        "looplj+axonhub/internal/llm/transformer/anthropic/testdata/llm-stop.stream.jsonl": {"delta": 1228},
        "looplj+axonhub/internal/llm/transformer/anthropic/testdata/llm-think.stream.jsonl": {
            "call_index": 11733,
            "call_repeat": 14013,
            "delta": 15665,
            "after_usage": 16261,
            "choices": 16261,
            "object": 16261,
        },
        "looplj+axonhub/internal/llm/transformer/anthropic/testdata/llm-tool.stream.jsonl": {
            "call_repeat": 4485,
            "delta": 8172,
        },
        "simonw+llm/tests/cassettes/test_tools_streaming/test_tools_streaming_variant_a.yaml#0": {
            "call_repeat": 1035,
            "truncated": 1985,
        },
        "simonw+llm/tests/cassettes/test_tools_streaming/test_tools_streaming_variant_b.yaml#0": {"truncated": 1570},
    },
    "anthropic": {},
    "ollama": {},
    # four responses of one conversation, one behind the other
    "openai-responses": {
        "vercel+ai/packages/azure/src/__fixtures__/azure-reasoning-encrypted-content.1.chunks.txt": {"after_end": 38693}
    },
    "cohere": {},
    "ag-ui": {},
    "gemini-interactions": {},
    "ai-sdk": {},
    "gemini": {},
    "mistral": {},
    "bedrock": {  # made of a recording by hand: boto3 refuses a start without its member
        "vercel+ai/packages/amazon-bedrock/src/__fixtures__/amazon-bedrock-tool-no-args.chunks.txt": {"start": 0}
    },
}


@pytest.mark.parametrize("dialect", RULES)
def test_few_recordings_have_errors_and_those_are_named(dialect):
    streams = recordings(dialect)
    found: dict[str, dict[str, int]] = {}
    for stream in streams:
        errors = [violation for violation in lint(dialect, stream.chunks) if violation.severity == "error"]
        if errors:
            found[stream.name] = {violation.rule: violation.offset for violation in reversed(errors)}
    assert len(found) <= 0.15 * len(streams)
    assert found == RECORDED_ERRORS[dialect]
