"""A message has no more of another's words than a few characters, wherever they stood, and no key.

The first tests look at the source: a message that has words of others in it is built with ``quoted``. The others put a long
word into each place of requests, streams, whole answers and errors of each dialect, as a value and as a member's name, so that
no place has to be thought of.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamkit import parse_sse
from streamkit.dialects import DIALECTS
from streamkit.errors import MESSAGE_CHARS, BadRequest, StreamkitError
from streamkit.events import TOLD_CHARS, WORD_CHARS, ProviderFailed
from streamkit.gateway.record import Attempt, Record
from streamkit.http_errors import decode_error, encode_error
from streamkit.recipes import collect
from streamkit.report import NAME_CHARS, StreamReport
from streamkit.testing import source_of
from streamkit.text.quoting import CUT, QUOTED_WORDS, quoted, quoted_all, shortened
from streamkit.translation.bodies import decode_request, decode_response, encode_request
from tests.sampling import part_of, parts
from tests.web import faults
from tests.whole_answers import ANSWERING_WHOLE

ROOT = Path(__file__).parents[2] / "streamkit"
#: Code that writes no word of a client or a provider with ``!r`` or ``repr``, though it does write something.
OWN_WORDS = {
    "conversation/collector.py",  # a size
    "dialects/linting.py",  # the name of a rule
    "dialects/openai_responses/lint.py",  # a key to sort by
    "dialects/__init__.py",  # the name of an installed plug-in
    "gateway/log.py",  # the fields of a line, each of which is bounded
    "http_errors.py",  # an excerpt
    "text/quoting.py",
    "conversation/restore.py",  # a constant
    "tool_calls/schema.py",  # cut where it stands
}
BODIES = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None]
ERRORS = [name for name, dialect in DIALECTS.items() if dialect.errors is not None]
WORD = "long-" * 2_000
#: A line of a log: two texts of 500 characters, two of 200, and what it says itself.
LINE_CHARS = 2500


# -- the source --------------------------------------------------------------------------------------------------------


def reprs(tree: ast.AST) -> Iterator[int]:
    """The lines where a value is put into a text by its ``repr``."""
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.FormattedValue) and node.conversion != -1)
            or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"repr", "ascii"})
            or (
                isinstance(node, ast.Call)
                and any(isinstance(each, ast.Name) and each.id == "repr" for each in node.args)
            )
        ):
            yield node.lineno


def test_no_message_has_words_of_others_but_through_quoted():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] != "testing" and path.relative_to(ROOT).as_posix() not in OWN_WORDS
        if re.search("![ars]|repr|ascii", text := path.read_text("utf-8"))  # few: to parse all takes seconds
        for line in reprs(ast.parse(text))
    ]
    assert found == []


@pytest.mark.parametrize("planted", ['f"no role {role!r}"', 'f"no role {repr(role)}"', '", ".join(map(repr, names))'])
def test_a_planted_one_is_seen(planted):
    assert list(reprs(ast.parse(planted))) == [1]


# -- the words ---------------------------------------------------------------------------------------------------------


def test_a_short_word_is_said_as_it_is():
    assert quoted("user") == "'user'"
    assert quoted(b"user\xff") == r"'user\\xff'"
    assert quoted(["a", 1, None]) == "['a', 1, None]"
    assert quoted_all(["a", "b"]) == "'a', 'b'"


class Thing:
    def method(self):
        pass


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (lambda: None, "<lambda>"),
        (json.dumps, "dumps"),
        (Thing, "Thing"),
        (Thing().method, "Thing.method"),
        (partial(json.dumps, indent=1), "dumps"),
        (parse_sse(), "parse_sse"),
        (source_of([]), "source_of"),
        (Thing(), "Thing"),
        ([Thing()], "[Thing]"),
    ],
)
def test_what_has_no_text_is_said_by_its_name_and_never_by_its_address(value, name):
    assert quoted(value) == name


def test_a_long_one_is_cut():
    assert quoted(WORD, 20) == repr(WORD[:19] + "…")
    assert len(quoted(WORD.encode())) < 100
    assert len(quoted({WORD: [WORD] * 100})) < 100
    assert quoted_all([WORD] * 1000).endswith(f", {1000 - QUOTED_WORDS} more")
    assert len(quoted_all([WORD] * 1000)) < 1000
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"


def test_what_looks_like_a_key_is_cut_out():
    assert quoted("sk-canary0123456789") == f"'{CUT}'"


# -- requests ----------------------------------------------------------------------------------------------------------

#: A request of Chat that has something of everything.
RICH: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "max_completion_tokens": 100,
    "temperature": 0.5,
    "reasoning_effort": "low",
    "user": "somebody",
    "stop": ["end"],
    "metadata": {"a": "b"},
    "seed": 1,
    "service_tier": "auto",
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {}}}},
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "the weather",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string", "anyOf": [{"type": "string"}]}},
                    "required": ["city"],
                },
            },
        }
    ],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "call_1abcd", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1abcd", "content": "cold"},
        {"role": "user", "content": "and now?"},
    ],
}  # fmt: skip
#: What only some dialects have, beside what the request above becomes in them.
BESIDE: dict[str, dict[str, Any]] = {
    "ollama": {"think": "low", "format": "json"},
    "openai-chat": {"tool_choice": "auto", "cache_control": {"type": "ephemeral"}},
    "openai-responses": {"tool_choice": "auto", "include": ["a"], "truncation": "auto"},
    "anthropic": {"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "5m"}}]},
}


#: What no request of a dialect can say.
UNSAID = {("ollama", "tool_choice"), ("ag-ui", "tool_choice"), ("ai-sdk", "tool_choice")}


def requests_of(dialect: str) -> Iterator[Any]:
    rich = {name: value for name, value in RICH.items() if (dialect, name) not in UNSAID}
    made = orjson.loads(encode_request(decode_request(orjson.dumps(rich), "openai-chat"), dialect, max_tokens=100))
    yield made
    if dialect in BESIDE:
        yield {**made, **BESIDE[dialect]}


def spoilt(value: Any, *, names: bool = True) -> Iterator[Any]:
    """The value with the long word in place of each text, number, list and object in it, and of each member's name."""
    yield WORD
    if isinstance(value, dict):
        for name, inner in value.items():
            rest = {other: each for other, each in value.items() if other != name}
            yield from ({**value, name: other} for other in spoilt(inner, names=names))
            if names:
                yield {**rest, WORD: inner}
                yield {**value, WORD: inner}
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from ([*value[:number], other, *value[number + 1 :]] for other in spoilt(inner, names=names))


def check_error(error: Exception) -> None:
    assert len(str(error)) <= MESSAGE_CHARS
    assert WORD[:250] not in str(error)


def check_report(report: StreamReport) -> None:
    assert all(len(what) <= NAME_CHARS for _, what in report.lost)
    assert max(map(len, report.provider_error or ("",))) <= TOLD_CHARS


@pytest.mark.parametrize("part", parts(3))
@pytest.mark.parametrize("dialect", BODIES)
def test_no_refusal_repeats_a_long_word_of_a_request(dialect, part):
    """Each of them written in a third of the dialects, by turns."""
    refused = 0
    documents = (document for request in requests_of(dialect) for document in spoilt(request))
    for number, document in enumerate(documents):
        report = StreamReport()
        try:
            request = decode_request(orjson.dumps(document), dialect, report=report)
            for target in part_of(BODIES, part, turn=number):
                encode_request(request, target, max_tokens=100, report=report)
        except StreamkitError as error:
            refused += 1
            check_error(error)
        check_report(report)
    assert refused > 10


def test_a_path_keeps_the_sentence_behind_it():
    with pytest.raises(BadRequest) as refused:
        raise BadRequest(WORD, "text is needed")
    assert str(refused.value).endswith("…: text is needed")


# -- answers -----------------------------------------------------------------------------------------------------------


def lines_of(stream: bytes) -> Iterator[tuple[list[bytes], int, bytes, Any]]:
    """The lines of a stream, and each of them that has JSON: its number, what stands before its JSON, and the value."""
    lines = stream.split(b"\n")
    for number, line in enumerate(lines):
        at = line.find(b"{")
        if at >= 0:
            yield lines, number, line[:at], json.loads(line[at:])


@pytest.mark.parametrize("dialect", [name for name in BODIES if name != "bedrock"])
async def test_no_error_repeats_a_long_word_of_a_stream(dialect):
    failed = 0
    broken = orjson.dumps({"type": "error", "error": {"type": "a", "code": "b", "message": "c", "param": "d"}})
    stream = b"".join(faults.speech(dialect))
    for beside in (b"", b"data: " + broken + b"\n\n" if b"data:" in stream else broken + b"\n"):
        for lines, number, before, value in lines_of(
            stream[: len(stream) // 2].rpartition(b"\n")[0] + b"\n\n" + beside
        ):
            for document in spoilt(value):
                spoiled = [*lines[:number], before + orjson.dumps(document), *lines[number + 1 :]]
                report = StreamReport()
                try:
                    answer = await collect(source_of([b"\n".join(spoiled)]), dialect, report=report)
                except StreamkitError as error:
                    report.failed(error)
                else:
                    check_failure(answer.error)
                if report.error is not None:
                    check_error(report.error)
                failed += report.error is not None or report.failure is not None
                check_report(report)
    assert failed > 0


def check_failure(failed: ProviderFailed | None) -> None:
    if failed is not None:
        assert len(failed.message) <= TOLD_CHARS
        assert max(len(failed.code or ""), len(failed.native_type or "")) <= WORD_CHARS


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
def test_no_error_repeats_a_long_word_of_a_whole_answer(dialect):
    for body in (b"".join(faults.speech(dialect, whole=True)), error_body(dialect)):
        for document in spoilt(orjson.loads(body)):
            report = StreamReport()
            try:
                answer = decode_response(orjson.dumps(document), dialect, report=report)
            except StreamkitError as error:
                check_error(error)
            else:
                check_failure(answer.error)
            check_report(report)


def error_body(dialect: str) -> bytes:
    failed = ProviderFailed("invalid_request", "no", native_type="a", code="b", http_status=400, vendor=dialect)
    return encode_error(failed, dialect).body if dialect in ERRORS else b"{}"


@pytest.mark.parametrize("dialect", ERRORS)
def test_no_line_of_a_log_repeats_a_long_word_of_an_error(dialect):
    for document in spoilt(orjson.loads(error_body(dialect))):
        failed = decode_error(400, orjson.dumps(document)[:6_000], dialect)
        check_failure(failed)
        report = StreamReport()
        report.repair("error_shape")
        attempt = Attempt("one", "http_400", 1.0, failed.message, report, StreamReport(), WORD)
        line = Record(
            "req_1", WORD, WORD, model=WORD, error=f"{failed.message}, and more", attempts=[attempt]
        ).document()
        assert len(json.dumps(line, ensure_ascii=False)) < LINE_CHARS
