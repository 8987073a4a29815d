"""Arguments against the schema of their tool: what is judged, what is refused, and that nothing outside is ever read."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.errors import UsageError
from streamkit.events import (
    ChoiceStarted,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
    Verdict,
)
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect, transcode
from streamkit.report import StreamReport
from streamkit.tool_calls.check import JSONChecker, check_json
from streamkit.tool_calls.schema import MAX_PATTERNS, UNEXPLAINED, BadToolSchema, ToolSchemas
from tests.cli.command import run

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
SHAPES = [
    pytest.param([{"type": "function", "function": {"name": "f", "parameters": CITY}}], id="chat"),
    pytest.param([{"name": "f", "description": "…", "input_schema": CITY}], id="anthropic"),
    pytest.param([{"type": "function", "name": "f", "parameters": CITY}], id="flat"),
    pytest.param({"f": CITY}, id="mapping"),
]


def check(schema, text, name="f"):
    return ToolSchemas({"f": schema}).check(name, text)


def reason_of(schema, text):
    verdict = check(schema, text)
    assert (verdict.kind, verdict.position) == ("schema_invalid", None)
    return verdict.reason


@pytest.mark.parametrize("tools", SHAPES)
def test_tools_are_taken_as_the_request_has_them(tools):
    schemas = ToolSchemas(tools)
    assert schemas.check("f", '{"city":"Oslo","days":2}') == Verdict("complete")
    assert schemas.check("f", '{"days":"2","x":0}').reason == (
        'at /days: the value is not of type "integer"; '
        "Additional properties are not allowed ('x' was unexpected); "
        '"city" is a required property'
    )


def test_an_unknown_tool_has_its_own_reason():
    assert check(CITY, "{}", name="g") == Verdict("schema_invalid", "unknown_tool")


def test_empty_is_checked_as_an_empty_object():
    assert check({"type": "object"}, " \n") == Verdict("empty")
    assert reason_of(CITY, "") == '"city" is a required property'


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "custom", "custom": {"name": "f"}},
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "function": {"name": "f", "parameters": None}},
        {"type": "web_search_20250305", "name": "f"},
    ],
)
def test_a_definition_without_a_schema_takes_any_object(tool):
    assert ToolSchemas([tool]).check("f", '{"a":1}').kind == "complete"


@pytest.mark.parametrize("tools", [[{}], [{"function": {}}], ["f"], [{"name": 3}], [None]])
def test_what_is_no_definition_is_refused(tools):
    with pytest.raises(UsageError, match="not a tool definition"):
        ToolSchemas(tools)


def test_tools_in_namespaces_are_known_by_their_names_there_and_elsewhere():
    """As Codex sends them, and a search of the web that its provider runs beside."""
    city = {"type": "object", "properties": {}, "required": ["city"]}
    tools = [
        {"type": "function", "name": "plain", "parameters": city},
        {"type": "namespace", "name": "mcp__w", "tools": [{"type": "function", "name": "look", "parameters": city}]},
        {"type": "namespace", "name": "mcp__x", "tools": [
            {"type": "function", "name": "both", "parameters": city},
            {"type": "function", "name": "plain", "parameters": {}},
        ]},
        {"type": "namespace", "name": "mcp__y", "tools": [{"type": "function", "name": "both", "parameters": {}}]},
        {"type": "web_search", "external_web_access": True},
    ]  # fmt: skip
    schemas = ToolSchemas(tools)
    for name in ("plain", "look", "mcp__w__look", "mcp__x__both"):
        assert schemas.check(name, "{}").kind == "schema_invalid"
        assert schemas.check(name, '{"city":"x"}').kind == "complete"
    assert [schemas.check(name, "{}").kind for name in ("both", "mcp__y__both", "mcp__x__plain")] == ["complete"] * 3
    assert schemas.check("mcp__w", "{}").reason.startswith("unknown_tool")


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(BadToolSchema, match="another tool"):
        ToolSchemas([{"name": "f"}, {"name": "f"}])


def test_the_schema_is_a_copy():
    mine = {"type": "object"}
    schemas = ToolSchemas({"f": mine})
    mine["required"] = ["a"]
    assert schemas.check("f", "{}").kind == "complete"


# -- draft 2020-12, through the library --------------------------------------------------------------------------------

#: A schema, an object that matches, one that does not.
KEYWORDS = [
    ({"properties": {"a": {"type": ["string", "null"]}}}, '{"a":null}', '{"a":1}'),
    ({"properties": {"a": {"const": 1}}}, '{"a":1.0}', '{"a":2}'),
    ({"properties": {"a": {"enum": [1, "x"]}}}, '{"a":"x"}', '{"a":true}'),
    ({"properties": {"a": {"multipleOf": 0.1}}}, '{"a":0.3}', '{"a":0.35}'),
    ({"properties": {"a": {"maximum": 3, "minimum": 1}}}, '{"a":3}', '{"a":0}'),
    ({"properties": {"a": {"exclusiveMaximum": 3, "exclusiveMinimum": 1}}}, '{"a":2}', '{"a":3}'),
    ({"properties": {"a": {"maxLength": 2, "minLength": 1}}}, '{"a":"xy"}', '{"a":""}'),
    ({"properties": {"a": {"pattern": "^a+$"}}}, '{"a":"aa"}', '{"a":"ab"}'),
    ({"properties": {"a": {"maxItems": 2, "minItems": 1}}}, '{"a":[1]}', '{"a":[]}'),
    ({"properties": {"a": {"uniqueItems": True}}}, '{"a":[1,2]}', '{"a":[1,1.0]}'),
    ({"properties": {"a": {"contains": {"const": 1}, "minContains": 2, "maxContains": 2}}}, '{"a":[1,1]}', '{"a":[1]}'),
    ({"properties": {"a": {"prefixItems": [{"type": "null"}], "items": False}}}, '{"a":[null]}', '{"a":[null,1]}'),
    ({"properties": {"a": {"prefixItems": [True], "unevaluatedItems": False}}}, '{"a":[1]}', '{"a":[1,2]}'),
    ({"maxProperties": 1, "minProperties": 1}, '{"a":1}', "{}"),
    ({"required": ["a"]}, '{"a":1}', "{}"),
    ({"dependentRequired": {"a": ["b"]}}, '{"a":1,"b":1}', '{"a":1}'),
    ({"dependentSchemas": {"a": {"required": ["b"]}}}, "{}", '{"a":1}'),
    ({"patternProperties": {"^a": {"type": "null"}}}, '{"b":1}', '{"ab":1}'),
    ({"additionalProperties": {"type": "null"}}, '{"b":null}', '{"b":1}'),
    ({"propertyNames": {"maxLength": 1}}, '{"b":1}', '{"bb":1}'),
    ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, '{"a":1}', '{"b":1}'),
    ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"a":1,"b":1}', '{"a":1}'),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"a":1}', "{}"),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"a":1}', '{"a":1,"b":1}'),
    ({"not": {"required": ["a"]}}, "{}", '{"a":1}'),
    ({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}, '{"c":1}', '{"a":1}'),
    ({"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"required": ["a"]}}}, '{"a":1}', "{}"),
    ({"$ref": "#x", "$defs": {"y": {"$anchor": "x", "required": ["a"]}}}, '{"a":1}', "{}"),
    ({"$ref": "urn:in", "$defs": {"y": {"$id": "urn:in", "required": ["a"]}}}, '{"a":1}', "{}"),
    ({"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "type": "object"}, '{"a":{}}', '{"a":1}'),
    ({"properties": {"a": False}}, "{}", '{"a":1}'),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}, "{}", '{"a":1}'),
    (True, "{}", None),
    (False, None, "{}"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "good", "bad"), KEYWORDS, ids=lambda value: json.dumps(value)[:50])
def test_every_keyword_is_judged_by_the_library(schema, good, bad):
    assert good is None or check(schema, good) == Verdict("complete")
    assert bad is None or reason_of(schema, bad)


NUMBER = {"properties": {"n": {"type": "integer"}, "x": {"type": "number", "maximum": 5}}}


@pytest.mark.parametrize(
    "text", ['{"n":18446744073709551616}', '{"n":1.0}', '{"n":1' + "0" * 4000 + "}", '{"x":-1e400}']
)
def test_numbers_keep_what_they_are(text):
    assert check(NUMBER, text).kind == "complete"


@pytest.mark.parametrize(
    "text", ['{"n":1.5}', '{"x":18446744073709551616}', '{"x":1e400}', '{"x":1' + "0" * 4000 + "}"]
)
def test_large_numbers_are_compared(text):
    assert reason_of(NUMBER, text)


def test_equal_to_2_to_the_64_means_exactly():
    schema = {"properties": {"n": {"const": 2**64}}}
    assert check(schema, '{"n":18446744073709551616}').kind == "complete"
    assert check(schema, '{"n":18446744073709551617}').kind == "schema_invalid"
    assert check({"properties": {"n": {"const": None}}}, '{"n":1e400}').kind == "schema_invalid"  # not as null


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"a":1,"a":2}', "'a' is repeated"),
        ('{"b":{"a":1,"\\u0061":2}}', "'a' is repeated"),
        ('{"n":1' + "0" * 5000 + "}", "digits"),
        ('{"a":"\\ud800"}', "surrogate"),
        ('{"\\uDC00":1}', "surrogate"),
        ('{"a":"\ud800"}', "surrogate"),
    ],
)
def test_text_that_readers_disagree_on_matches_no_schema(text, word):
    assert word in reason_of({}, text)
    assert check({}, '{"a":"\\ud83d\\ude00"}').kind == "complete"


def test_reasons_are_bounded_and_do_not_repeat_values():
    secret = "s3cr3t" * 1000
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    reason = reason_of(schema, json.dumps({f"key{i}": secret for i in range(50)}))
    assert reason.endswith("; and 45 more")
    assert len(reason) < 5 * 500
    assert "s3cr3t" not in reason
    assert len(reason_of(schema, json.dumps({"k" * 100_000: "x"}))) < 1000


@pytest.mark.parametrize("text", ["{", "nonsense", '{"a":NaN}'])
def test_text_that_is_no_json_is_the_callers_error(text):
    with pytest.raises(ValueError):
        check({}, text)


# -- nothing outside the schema ----------------------------------------------------------------------------------------


@pytest.fixture
def counting_server():
    """A server on loopback, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type":"object","required":["CANARY"]}')

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def places(reference):
    return [
        {"$ref": reference},
        {"properties": {"a": {"items": {"$ref": reference}}}},
        {"$dynamicRef": reference},
        {"$id": reference.rpartition("/")[0] + "/", "$ref": reference.rpartition("/")[2]},
        {"$schema": reference},
        {"anyOf": [True, {"$ref": f"{reference}#/x"}]},
        {"$defs": {"unused": {"$ref": reference}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$ref": reference}}},
    ]


def test_the_library_would_fetch_so_the_canary_can_be_seen(counting_server):
    base, asked = counting_server
    validator = importlib.import_module("jsonschema_rs").validator_for({"$ref": f"{base}/schema"})
    assert not validator.is_valid({})
    assert asked == ["/schema"]


def test_references_to_http_are_refused_and_nothing_is_fetched(counting_server):
    base, asked = counting_server
    for schema in places(f"{base}/schema"):
        with pytest.raises(BadToolSchema) as caught:
            ToolSchemas({"f": schema}).compile()
        assert "CANARY" not in str(caught.value)
    assert asked == []


def test_references_to_files_are_refused_and_not_read(tmp_path):
    file = tmp_path / "schema.json"
    for content in ('{"required":["CANARY"]}', "CANARY: no JSON"):
        file.write_text(content)
        for schema in places(file.as_uri()):
            with pytest.raises(BadToolSchema) as caught:
                ToolSchemas({"f": schema}).compile()
            seen: BaseException | None = caught.value
            while seen is not None:  # nor in what it was raised from
                assert "CANARY" not in str(seen)
                seen = seen.__cause__ or seen.__context__


@pytest.mark.parametrize(
    "reference", ["other.json", "urn:a:b", "#/nope", "#nope", "ftp://h/x", "//h/x", "json-schema:///x"]
)
def test_references_that_lead_nowhere_are_refused_with_their_place(reference):
    with pytest.raises(BadToolSchema) as caught:
        ToolSchemas({"f": {"properties": {"a": {"$ref": reference}}}}).compile()
    assert caught.value.tool == "f"
    assert caught.value.path in {"/properties/a/$ref", ""}


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"properties": {"a": {"type": "strin"}}}, "/properties/a/type"),
        ({"properties": {"a": {"pattern": "("}}}, "/properties/a/pattern"),
        ({"required": "a"}, "/required"),
        ({"items": [{}]}, "/items"),
        ([], ""),
        (5, ""),
        ({"default": float("nan")}, ""),
        ({"const": {1, 2}}, ""),
        ({"const": "\ud800"}, ""),
    ],
)
def test_a_bad_schema_is_named_with_its_path(schema, path):
    with pytest.raises(BadToolSchema) as caught:
        check_json(tools=ToolSchemas({"weather": schema}))
    assert (caught.value.tool, caught.value.path) == ("weather", path)
    assert "'weather'" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_the_size_of_all_schemas_together_is_bounded():
    limits = Limits(schema_bytes=1000)
    schema = {"description": "é" * 200}
    ToolSchemas({"a": schema, "b": schema}, limits=limits)
    with pytest.raises(BadToolSchema, match="schema_bytes"):
        ToolSchemas({"a": schema, "b": schema, "c": schema}, limits=limits)


def nested(depth):
    schema: dict = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


def test_nesting_is_bounded():
    ToolSchemas({"f": nested(49)}, limits=Limits(json_depth=50)).compile()
    with pytest.raises(BadToolSchema, match="json_depth"):
        ToolSchemas({"f": nested(50)}, limits=Limits(json_depth=50))
    with pytest.raises(BadToolSchema):
        ToolSchemas({"f": nested(100_000)})
    loop: dict = {}
    loop["not"] = loop
    with pytest.raises(BadToolSchema):
        ToolSchemas({"f": loop})


def test_patterns_are_bounded_in_number_size_and_backtracking():
    many = {"properties": {f"k{i}": {"pattern": f"^{i}$"} for i in range(MAX_PATTERNS)}}
    ToolSchemas({"f": many}).compile()
    with pytest.raises(BadToolSchema, match="patterns"):
        ToolSchemas({"f": many, "g": {"patternProperties": {"a": True}}})
    with pytest.raises(BadToolSchema, match="when compiled"):
        ToolSchemas({"f": {"pattern": r"(\pL{200}){50}"}}).compile()
    pattern = {"pattern": "^(?=a)(a|aa)+(?<!b)$"}
    assert reason_of({"additionalProperties": pattern}, json.dumps({"a": "a" * 60 + "!"}))
    # what was given up matches nothing, not even a negation; the library's own limit is ten times ours
    assert check({"additionalProperties": {"not": pattern}}, json.dumps({"a": "a" * 10 + "!"})).kind == "complete"
    assert reason_of({"additionalProperties": {"not": pattern}}, json.dumps({"a": "a" * 24 + "!"}))


def doubling(levels):
    definitions = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "object"}}}


LOOPS = [
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}},
    {"$dynamicAnchor": "n", "anyOf": [{"$dynamicRef": "#n"}]},
    {"$schema": "https://json-schema.org/draft/2019-09/schema", "if": {"$recursiveRef": "#"}},
    {"$id": "http://h/a", "allOf": [{"$ref": "http://h/a"}]},
    {"$id": "http://h/a/", "allOf": [{"$ref": "."}]},
]


@pytest.mark.parametrize("schema", [*LOOPS, doubling(30), {"anyOf": [{}] * 20_000}], ids=lambda s: json.dumps(s)[:60])
def test_subschemas_that_apply_to_one_value_are_bounded(schema):
    with pytest.raises(BadToolSchema, match=r"without a step|apply to one value"):
        ToolSchemas({"f": schema})


@pytest.mark.parametrize("keyword", ["$id", "$anchor", "$dynamicAnchor"])
def test_base_uris_and_anchors_are_bounded(keyword):
    schema = {"$defs": {f"d{i}": {keyword: f"x{i}"} for i in range(1000)}}
    with pytest.raises(BadToolSchema, match="base URIs and anchors"):
        ToolSchemas({"f": schema})


def test_a_long_chain_of_references_is_refused():
    definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5000)}
    with pytest.raises(BadToolSchema, match="nested references"):
        ToolSchemas({"f": {"$ref": "#/$defs/d0", "$defs": {**definitions, "d5000": {}}}})


EXPRESSION = {
    "$ref": "#/$defs/e",
    "$defs": {
        "e": {
            "anyOf": [
                *(
                    {
                        "type": "object",
                        "properties": {"op": {"const": op}, "a": {"$ref": "#/$defs/e"}, "b": {"$ref": "#/$defs/e"}},
                        "required": ["op"],
                    }
                    for op in "+-*/"
                ),
                {"type": "number"},
            ]
        }
    },
}


def expression(depth, leaf):
    for _ in range(depth):
        leaf = {"op": "/", "a": leaf, "b": 1}
    return json.dumps(leaf)


def test_recursive_schemas_are_judged_and_explained_in_bounded_time():
    """Or the time limit of a test ends it."""
    schemas = ToolSchemas({"f": EXPRESSION})
    assert schemas.check("f", expression(100, 1)).kind == "complete"
    assert schemas.check("f", expression(100, "x")) == Verdict("schema_invalid", UNEXPLAINED)
    assert "anyOf" in schemas.check("f", expression(1, "x")).reason


def test_a_million_wrong_values_are_not_listed():
    schema = {"additionalProperties": {"items": {"type": "string"}}}
    assert reason_of(schema, json.dumps({"a": [1] * 300_000})) == UNEXPLAINED


def test_ten_thousand_missing_names_are_not_listed():
    schema = {"required": [f"k{n}" for n in range(10_000)]}
    assert reason_of(schema, "{}") == UNEXPLAINED


# -- the extra ---------------------------------------------------------------------------------------------------------


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(UsageError, match=r"pip install 'streamkit-llm\[schema\]'"):
        check_json(tools=[])
    check_json()


def test_the_library_is_not_imported_without_tools():
    code = "import sys, streamkit; streamkit.check_json(); assert 'jsonschema_rs' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- on the way --------------------------------------------------------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": CITY}}]
CHUNKS = [
    {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant"}}]},
    {
        "id": "c",
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [{"index": 0, "id": "i", "function": {"name": "f", "arguments": '{"city":1}'}}]
                },
            }
        ],
    },
    {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
]
STREAM = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in CHUNKS) + b"data: [DONE]\n\n"


async def source():
    yield STREAM


def test_other_verdicts_are_not_touched():
    checker = JSONChecker(tools=ToolSchemas(TOOLS))
    calls = [
        ToolCallFinished(0, "i", "f", "{"),
        ToolCallFinished(0, "i", "f", "[]"),
        ToolCallFinished(0, "i", "f", '{"city":1}', ended=False),
        ToolCallFinished(0, "i", "g", "free", kind="custom"),
        ToolCallFinished(0, "i", "f", '{"city":""}'),
        ToolCallFinished(0, "i", "f", ""),
        ToolCallFinished(0, "i", "g", "{}"),
    ]
    kinds = [event.verdict.kind for event in checker.feed(calls)]
    assert kinds == [
        "truncated", "not_an_object", "truncated", "complete", "complete", "schema_invalid", "schema_invalid",
    ]  # fmt: skip
    assert checker.report.verdicts["schema_invalid"] == 2


async def test_the_verdict_travels_into_the_response_and_the_report():
    response = await collect(source(), "openai-chat", ReadOptions(tools=TOOLS))
    assert response.choices[0].tool_calls[0].verdict == Verdict(
        "schema_invalid", 'at /city: the value is not of type "string"'
    )
    for target, reencode in (("openai-chat", False), ("openai-chat", True), ("anthropic", False), ("ollama", False)):
        async with transcode(source(), "openai-chat", target, ReadOptions(tools=TOOLS), reencode=reencode) as out:
            data = b"".join([chunk async for chunk in out])
        assert out.report.verdicts == {"schema_invalid": 1}
        assert b"city" in data


@pytest.mark.parametrize("target", ["openai-chat", "anthropic"])
def test_a_bad_schema_is_refused_before_the_stream(target):
    with pytest.raises(BadToolSchema):
        transcode(source(), "openai-chat", target, ReadOptions(tools=[{"name": "f", "input_schema": {"type": "x"}}]))


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_every_encoder_passes_schema_invalid_and_ignores_a_doomed_call(dialect):
    def encoded(verdict, *doomed):
        report = StreamReport()
        encoding = Encoding(make_id=lambda prefix: f"{prefix}1", clock=lambda: 0.0)
        encoder = DIALECTS[dialect].encoder(encoding, report)
        events = [
            ResponseStarted("r", "m"),
            ChoiceStarted(),
            ToolCallStarted(0, "i", "f"),
            ToolCallArguments(0, '{"city":1}'),
            *doomed,
            ToolCallFinished(0, "i", "f", '{"city":1}', verdict=verdict),
            ResponseFinished("tool_calls"),
            StreamEnded(clean=True),
        ]
        output = encoder.feed(events) + encoder.finish()
        assert encoder.fault is None
        return output, report.losses

    plain = encoded(Verdict("complete"))
    assert encoded(Verdict("schema_invalid", "…")) == plain
    assert encoded(Verdict("schema_invalid", "…"), ToolCallDoomed(0, 0, ("city",), "…")) == plain
    assert b"city" in plain[0]


@pytest.mark.parametrize("given", [TOOLS, {"model": "m", "tools": TOOLS}], ids=["list", "request"])
def test_inspect_shows_the_verdict_and_its_reason(given, tmp_path):
    stream, tools = tmp_path / "stream.sse", tmp_path / "tools.json"
    stream.write_bytes(STREAM)
    tools.write_text(json.dumps(given))
    done = run("inspect", "--tools", str(tools), str(stream))
    assert done.returncode == 0
    shown = done.stdout.decode()
    assert "schema_invalid" in shown
    assert 'at /city: the value is not of type "string"' in shown


@pytest.mark.parametrize("content", ["no JSON", "{}", '[{"name":"f","input_schema":{"type":1}}]', "[5]", None])
def test_inspect_refuses_a_bad_file_of_tools(content, tmp_path):
    stream, tools = tmp_path / "stream.sse", tmp_path / "tools.json"
    stream.write_bytes(STREAM)
    if content is not None:
        tools.write_text(content)
    done = run("inspect", "--tools", str(tools), str(stream))
    assert done.returncode == (1 if content is None else 2)
    assert done.stderr.count(b"\n") == 1
    assert done.stdout == b""


# -- anything at all ---------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["a", "b", "#", "#/a", "object", "string", "http://h/x", "x", "#/$defs/a", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            WORDS
            | st.sampled_from(
                ["type", "$ref", "properties", "items", "allOf", "anyOf", "not", "enum", "const", "$id", "$defs"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.dictionaries(WORDS, JSON, max_size=3))
def test_any_schema_is_compiled_or_refused_and_any_object_judged(schema, value):
    try:
        schemas = ToolSchemas({"f": schema})
        schemas.compile()
    except BadToolSchema:
        return
    assert schemas.check("f", json.dumps(value)).kind in {"complete", "schema_invalid"}


@given(st.text(alphabet='{}[]":,.-+eE019tfnrulasd8\\ \n', max_size=40))
def test_any_arguments_are_judged(text):
    checker = JSONChecker(tools=ToolSchemas(TOOLS))
    (event,) = checker.feed([ToolCallFinished(0, "i", "f", text)])
    assert event.verdict is not None
