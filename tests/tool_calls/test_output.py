"""The verdict on the text of a response whose request asked for JSON."""

from __future__ import annotations

import json
import sys

import pytest
from attrs import evolve, frozen

from streamkit import (
    Limits,
    Observer,
    ReadOptions,
    StreamReport,
    UsageError,
    accumulate_tool_calls,
    check_json,
    check_output,
    check_schema_early,
    collect,
    decode,
    decode_request,
    decode_response,
    parse_sse,
    partial_output,
    pipe,
    redact,
    transcode,
)
from streamkit.conversation.messages import OutputFormat
from streamkit.errors import SourceFailed
from streamkit.events import (
    OutputChecked,
    OutputDoomed,
    RefusalDelta,
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallStarted,
    Verdict,
)
from streamkit.testing import FaultySource, source_of
from streamkit.tool_calls.output import NO_TEXT, NOT_ENDED, TOO_LONG, OutputCheck, OutputChecker, output_check
from streamkit.tool_calls.partial_arguments import MISSING, PartialOutput

JSON = OutputFormat("json")
ANY = OutputFormat("json", root="any")
CITY = OutputFormat("schema", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
LIST = OutputFormat("schema", {"type": "array", "items": {"type": "integer"}})
NUMBER = OutputFormat("schema", {"type": "integer"})
LOOSE = OutputFormat("schema")  # strict mode without a schema
CALL = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}


@frozen
class Case:
    """What a model said in Chat, and the verdicts on it. ``stop`` None: the stream was interrupted."""

    name: str
    output: OutputFormat | None
    deltas: list[dict]
    stop: str | None
    verdicts: list[Verdict]

    def stream(self) -> bytes:
        chunks = [
            {"index": 0, "delta": delta, "finish_reason": None} for delta in ({"role": "assistant"}, *self.deltas)
        ]
        if self.stop is not None:
            chunks.append({"index": 0, "delta": {}, "finish_reason": self.stop})
        frames = [b"data: %b\n\n" % json.dumps({"id": "i", "choices": [chunk]}).encode() for chunk in chunks]
        return b"".join(frames) + (b"data: [DONE]\n\n" if self.stop is not None else b"")

    def whole(self) -> bytes:
        message: dict = {"role": "assistant"}
        for delta in self.deltas:
            for name, value in delta.items():
                message[name] = message.get(name, type(value)()) + value
        return json.dumps(
            {"id": "i", "choices": [{"index": 0, "message": message, "finish_reason": self.stop}]}
        ).encode()


def said(*texts: str) -> list[dict]:
    return [{"content": text} for text in texts]


def row(name: str, output: OutputFormat | None, deltas: list[dict], stop: str | None = "stop", *verdict) -> Case:
    return Case(name, output, deltas, stop, [Verdict(*verdict)] if verdict else [])


CASES = [
    row("an object", JSON, said('{"a"', ': "x"}'), "stop", "complete"),
    row("white space around it", JSON, said("\n", '{"a":1}', " \n"), "stop", "complete"),
    row("a list where an object was asked for", JSON, said("[1]"), "stop", "not_an_object", "the value is an array", 0),
    row("a list where any JSON was asked for", ANY, said("[1", "]"), "stop", "complete"),
    row("truncated by its length", JSON, said('{"a": "x'), "length", "truncated", "the text ends inside the value", 8),
    row("truncated, though it stopped", JSON, said('{"a": 1'), "stop", "truncated", "the text ends inside the value", 7),
    row("whole in spite of its length", JSON, said('{"a": 1}'), "length", "complete"),
    row("a number in a text of limited length", NUMBER, said("12"), "length", "truncated", "the text may end inside the number", 2),
    row("a number where an object was asked for", JSON, said("12"), "length", "not_an_object", "the value is a number", 0),
    row("words", JSON, said("Sure! ", '{"a": 1}'), "stop", "malformed", "a character that begins no value", 0),
    row("a fence", CITY, said("```json\n", "{}\n```"), "stop", "malformed", "a character that begins no value", 0),
    row("words after it", JSON, said('{"a": 1}', " Done."), "stop", "malformed", "text after the end of the value", 9),
    row("no text", JSON, said(" "), "stop", "malformed", NO_TEXT, 1),
    row("no text for its length", JSON, said(""), "length", "truncated", NO_TEXT, 0),
    row("matches the schema", CITY, said('{"city":', '"Oslo"}'), "stop", "complete"),
    row("breaks the schema", CITY, said('{"city":', "3}"), "stop", "schema_invalid", 'at /city: the value is not of type "string"'),
    row("misses a member", CITY, said("{}"), "stop", "schema_invalid", '"city" is a required property'),
    row("any root under a schema", LIST, said("[1, 2]"), "stop", "complete"),
    row("another root than the schema's", LIST, said('{"a": 1}'), "stop", "schema_invalid", 'the value is not of type "array"'),
    row("a key that is repeated", CITY, said('{"city":"a","city":"b"}'), "stop", "schema_invalid", "the key 'city' is repeated in one object"),
    row("a schema that is not given", LOOSE, said('"x"'), "stop", "complete"),
    row("interrupted", JSON, said('{"a": 1}'), None, "truncated", NOT_ENDED, 8),
    row("interrupted before the text", JSON, [{"reasoning_content": "Hm."}], None),
    row("reasoning before it", JSON, [{"reasoning_content": "Hm."}, *said("{}")], "stop", "complete"),
    row("a refusal", JSON, [{"refusal": "I can't."}], "stop"),
    row("a refusal after a beginning", JSON, [*said('{"a'), {"refusal": "I can't."}], "stop"),
    row("an interrupted refusal", JSON, [*said('{"a'), {"refusal": "I"}], None),
    row("a call of a tool", JSON, [CALL], "tool_calls"),
    row("words before a call of a tool", JSON, [*said("Let me look."), CALL], "tool_calls"),
    row("an interrupted call", JSON, [*said("Let me look."), CALL], None),
    row("a filtered text", JSON, said('{"a": "'), "content_filter", "truncated", "the text ends inside the value", 7),
    row("no JSON was asked for", OutputFormat("text"), said("Hi"), "stop"),
    row("nothing was asked for", None, said("Hi"), "stop"),
]  # fmt: skip


async def without_verdicts(batches):
    """A stage that drops verdicts of a check before it."""
    async for batch in batches:
        yield [event for event in batch if not isinstance(event, OutputChecked)]


async def counted(make, case: Case) -> list[str]:
    report = StreamReport()
    async with make(source_of([case.stream()]), ReadOptions(output=case.output), report) as output:
        async for _ in output:
            pass
    return [*report.output_verdicts.elements()]


def observed(case: Case) -> list[str]:
    observer = Observer("openai-chat", ReadOptions(output=case.output))
    observer.feed(case.stream())
    observer.finish()
    return [*observer.report.output_verdicts.elements()]


READERS = {
    "check_output": lambda source, how, report: pipe(
        source, parse_sse(), decode("openai-chat"), accumulate_tool_calls(), check_json(), check_output(how.output), report=report
    ),
    "transcode": lambda source, how, report: transcode(source, "openai-chat", "anthropic", how, report=report),
    "frames pass": lambda source, how, report: transcode(source, "openai-chat", "openai-chat", how, report=report),
    "written again": lambda source, how, report: transcode(
        source, "openai-chat", "openai-chat", how, reencode=True, report=report
    ),
    "a stage": lambda source, how, report: transcode(
        source, "openai-chat", "gemini", how, stages=[without_verdicts], report=report
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_each_reader_gives_the_text_the_same_verdict(case):
    response = await collect(source_of([case.stream()]), "openai-chat", ReadOptions(output=case.output))
    assert [choice.verdict for choice in response.choices if choice.verdict] == case.verdicts
    kinds = [verdict.kind for verdict in case.verdicts]
    for name, make in READERS.items():
        assert (name, await counted(make, case)) == (name, kinds)
    assert observed(case) == kinds
    if case.stop is not None:
        whole = decode_response(case.whole(), "openai-chat", ReadOptions(output=case.output))
        assert [choice.verdict for choice in whole.choices if choice.verdict] == case.verdicts
        assert [*whole.report.output_verdicts.elements()] == kinds


#: A request of each dialect that asks for JSON, for any object and with a schema.
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
NAMED = {"name": "n", "schema": SCHEMA}
REQUESTS = [
    ("openai-chat", {"response_format": {"type": "json_object"}}, "object"),
    ("openai-chat", {"response_format": {"type": "json_schema", "json_schema": NAMED}}, "schema"),
    ("mistral", {"response_format": {"type": "json_object"}}, "object"),
    ("openai-responses", {"text": {"format": {"type": "json_object"}}}, "object"),
    ("openai-responses", {"text": {"format": {"type": "json_schema", **NAMED}}}, "schema"),
    ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, "schema"),
    ("anthropic", {"output_format": {"type": "json_schema", "schema": SCHEMA}}, "schema"),
    ("gemini", {"generationConfig": {"responseMimeType": "application/json"}}, "any"),
    ("gemini", {"generationConfig": {"responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}}}}, "schema"),
    ("gemini", {"generationConfig": {"responseJsonSchema": SCHEMA}}, "schema"),
    ("gemini-interactions", {"response_format": {"type": "text", "mime_type": "application/json"}}, "any"),
    ("gemini-interactions", {"response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA}}, "schema"),
    ("ollama", {"format": "json"}, "object"),
    ("ollama", {"format": SCHEMA}, "schema"),
    ("cohere", {"response_format": {"type": "json_object"}}, "object"),
    ("cohere", {"response_format": {"type": "json_object", "json_schema": SCHEMA}}, "schema"),
    ("bedrock", {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"name": "n", "schema": json.dumps(SCHEMA)}}}}}, "schema"),
]  # fmt: skip
BODIES = {
    "openai-responses": {"model": "m", "input": "Hi"},
    "gemini-interactions": {"model": "m", "input": "Hi"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "bedrock": {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]},
}
MESSAGES = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(("dialect", "members", "asked"), REQUESTS)
def test_the_requests_of_each_dialect_say_what_is_checked(dialect, members, asked):
    body = {**BODIES.get(dialect, MESSAGES), **members}
    output = decode_request(json.dumps(body).encode(), dialect).options.output
    check = output_check(output, Limits())
    kinds = [check.verdict(text, 128).kind for text in ('{"a":1}', '{"a":"x"}', "[1]")]
    assert (
        kinds
        == {
            "object": ["complete", "complete", "not_an_object"],
            "any": ["complete"] * 3,
            "schema": ["complete", "schema_invalid", "schema_invalid"],
        }[asked]
    )


def finished(choice: int = 0, reason: str = "stop") -> ResponseFinished:
    return ResponseFinished(reason, choice=choice)


def test_blocks_are_joined_in_the_order_in_which_they_began_and_choices_stay_apart():
    events = [
        TextDelta('{"a"', 0, 1),
        TextDelta("[1", 1),
        TextDelta("1}", 0, 7),
        TextDelta(":", 0, 1),
        finished(),
        TextDelta("]", 1),
        finished(1),
    ]
    report = StreamReport()
    found = OutputChecker(OutputCheck("any"), report=report).feed(events)
    assert [event for event in found if isinstance(event, OutputChecked)] == [
        OutputChecked(Verdict("complete")),
        OutputChecked(Verdict("complete"), 1),
    ]
    assert [*map(type, found)][-2:] == [OutputChecked, ResponseFinished]
    assert report.output_verdicts == {"complete": 2}


@pytest.mark.parametrize("reason", ["refusal", "pause", "compaction", "tool_calls"])
def test_a_text_that_is_not_the_response_has_no_verdict(reason):
    found = OutputChecker(OutputCheck("any")).feed([TextDelta("Let me"), finished(reason=reason)])
    assert [*map(type, found)] == [TextDelta, ResponseFinished]


@pytest.mark.parametrize("limits", [Limits(arguments_chars=3), Limits(stream_arguments_chars=3)])
def test_a_text_beyond_the_limits_is_not_kept_and_not_checked(limits):
    checker = OutputChecker(OutputCheck("any"), limits=limits)
    found = checker.feed([TextDelta("12"), TextDelta("34"), TextDelta("5")])
    assert not checker._choices[0].blocks
    found += checker.feed([finished()])
    assert found[-2] == OutputChecked(Verdict("unchecked", TOO_LONG))


async def test_the_verdict_is_about_the_text_that_stages_have_changed():
    case = row("", CITY, said('{"city":', '"Oslo"}'))
    for replacement, kind in ('"', "malformed"), ("Rome", "complete"):
        response = await collect(
            source_of([case.stream()]),
            "openai-chat",
            ReadOptions(output=CITY),
            stages=[check_output(CITY), redact("Oslo", replacement=replacement)],
        )
        assert response.choices[0].verdict.kind == kind
        assert +response.report.output_verdicts == {kind: 1}


def test_an_interrupted_choice_without_text_has_no_verdict():
    found = OutputChecker(OutputCheck("any")).feed([TextDelta(""), StreamEnded(clean=False)])
    assert [*map(type, found)] == [TextDelta, StreamEnded]


async def test_a_source_that_fails_truncates_the_text():
    source = FaultySource([row("", ANY, said('{"a": 1}'), None).stream()], fail_after=1, error=SourceFailed("gone"))
    response = await collect(source, "openai-chat", ReadOptions(output=ANY))
    assert response.choices[0].verdict == Verdict("truncated", NOT_ENDED, 8)


def test_a_bad_schema_is_an_error_at_once_with_its_place():
    with pytest.raises(UsageError, match="the schema of the output, at /type: "):
        check_output(OutputFormat("schema", {"type": "x"}))
    with pytest.raises(UsageError, match=r"must be an OutputFormat, .* not dict"):
        check_output({"type": "json_object"})
    with pytest.raises(UsageError, match="other documents"):
        transcode(
            source_of([]),
            "openai-chat",
            "openai-chat",
            ReadOptions(output=OutputFormat("schema", {"$ref": "http://x/"})),
        )


@pytest.mark.parametrize("make", [check_output, lambda output: check_schema_early(output=output)])
def test_without_the_extra_a_schema_is_an_error_and_json_is_none(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(UsageError, match=r"streamkit-llm\[schema\].*evolve\(output, schema=None\)"):
        make(CITY)
    for output in (JSON, evolve(CITY, schema=None), OutputFormat("text"), None):
        make(output)


# -- early -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "events", "doomed"),
    [
        (CITY, ['{"city":', " ", "3", "}"], (("city",), "string expected, not integer")),
        (JSON, ["[", "1]"], ((), "object expected, not array")),
        (ANY, ["[1", "]"], None),
        (ANY, ["Su", "re"], ((), "not valid JSON: a character that begins no value")),
        (LIST, ["{", "}"], ((), "array expected, not object")),
        (CITY, ['{"city":"', 'Oslo"}'], None),
        (None, ["Hi"], None),
    ],
)
async def test_a_text_that_cannot_become_valid_is_reported_once_at_the_delta_that_decides(output, events, doomed):
    async def source():
        for text in events:
            yield [TextDelta(text)]
        yield [finished(), StreamEnded(clean=True)]

    async with pipe(source(), check_schema_early(output=output), check_output(output)) as batches:
        found = [event async for batch in batches for event in batch]
    assert [event for event in found if isinstance(event, OutputDoomed)] == (
        [OutputDoomed(0, *doomed)] if doomed else []
    )
    verdicts = [event.verdict.kind for event in found if isinstance(event, OutputChecked)]
    assert verdicts == ([] if output is None else ["complete"] if doomed is None else verdicts)
    assert doomed is None or verdicts[0] in {"malformed", "schema_invalid", "not_an_object"}


@pytest.mark.parametrize(
    "between",
    [TextDelta('" x', 0, 1), RefusalDelta("No."), ToolCallStarted(0, "i", "f")],
    ids=lambda event: type(event).__name__,
)
def test_a_text_is_not_followed_beyond_its_first_block_a_refusal_or_a_call(between):
    machine = check_schema_early(output=ANY).make(StreamReport())
    found = machine.feed([TextDelta('{"a'), between, TextDelta('" x')])
    assert not any(isinstance(event, OutputDoomed) for event in found)


def test_a_text_is_not_followed_beyond_the_limit_on_what_is_kept():
    for chars, doomed in (3, 0), (9, 1):
        machine = check_schema_early(output=ANY, limits=Limits(arguments_chars=chars)).make(StreamReport())
        found = machine.feed([TextDelta('{"a"'), TextDelta(":"), TextDelta("x"), TextDelta("x")])
        assert sum(isinstance(event, OutputDoomed) for event in found) == doomed


# -- while it is written -----------------------------------------------------------------------------------------------


async def test_the_value_is_shown_while_it_is_written():
    async def source():
        yield [TextDelta('{"city":"Os'), TextDelta("[", 1)]
        yield [TextDelta('lo"'), TextDelta("}"), finished(), TextDelta("Hm", 2), StreamEnded(clean=False)]

    async with pipe(source(), partial_output()) as batches:
        found = [
            (event.choice, event.partial.snapshot(), event.path) if isinstance(event, PartialOutput) else type(event)
            async for batch in batches
            for event in batch
        ]
    assert found == [
        TextDelta,
        TextDelta,
        (0, {"city": "Os"}, ("city",)),
        (1, [], ()),
        TextDelta,
        TextDelta,
        (0, {"city": "Oslo"}, ()),
        ResponseFinished,
        TextDelta,
        (2, MISSING, ()),
        StreamEnded,
    ]
