"""L12: no translation writes a request that the vendor's own types forbid.

The judges are the types of the official clients, and botocore's validator with the words and patterns of its model
(``tests/requests/sdk_types.py``); and, since types know no models, a reader of bodies that knows what the table says of each
(``tests/requests/model_judge.py``). A request may be refused, with the path to what is at fault; what is written must be one that
the client's own user could have written.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import orjson
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
    WebSearch,
)
from streamkit.dialects.vocabulary.model_names import model_of
from streamkit.dialects.vocabulary.model_table import ROWS
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.translation.bodies import decode_request, drop_unreadable, encode_request
from tests.corpora import requests
from tests.requests.model_judge import name_of, overstepped
from tests.requests.sdk_types import faults
from tests.sampling import part_of, parts

#: Dialects of which a vendor has types. Of AG-UI and the AI SDK, which agents speak, the clients' own tests judge.
JUDGED = [
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
    "gemini-interactions",
    "bedrock",
    "ollama",
    "mistral",
    "cohere",
]
SOURCES = [*JUDGED, "ai-sdk", "ag-ui"]
#: A name of each row of the table of models, some as routers and clouds write them, and two that it does not know.
MODELS = [
    "m-1", "qwen3", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic/claude-opus-4.6", "openai/gpt-5.5",
    *(name_of(row.names.split()[0]) for row in ROWS),
]  # fmt: skip
#: Responses: only the server gives ids, which an item of the history may do without though the client's types demand one.
WITHOUT_IDS = re.compile(r"input\[\d+\]\.(?:id|status): is missing")


@pytest.mark.parametrize("part", parts(3))
@pytest.mark.parametrize(("source", "target"), [(a, b) for a in SOURCES for b in JUDGED if a != b])
def test_recorded_requests(source, target, part):
    for recording in part_of(requests(source), part, turn=JUDGED.index(target)):
        request = decode_request(orjson.dumps(recording.body), source)
        request.model = request.model or "m-1"  # some have it in the URL
        assert judged(request, target) == [], recording.name


def judged(request: Request, target: str) -> list[str]:
    """The faults of a request in a target's words, where all that can be imitated is; a refusal has a path and no faults."""
    try:
        request = drop_unreadable(request, target)
        body = orjson.loads(encode_request(request, target, repair=True, emulate=True, linked_media="drop"))
    except BadRequest as refused:
        return [] if refused.path else [f"no path: {refused}"]
    typed = [fault for fault in faults(target, body) if not WITHOUT_IDS.fullmatch(fault)]
    return typed + overstepped(target, body, model_of(request.model))


# -- drawn requests ----------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["a", "Hi there", " ", "", "ü\u2028\n", "x" * 300, "{}", "<b>"])
NAMES = st.sampled_from(["look", "files.read", "9 lives", "a" * 90, "größe", "web_search", "tool_search"])
IDS = st.sampled_from(["call_1", "toolu_01", "c:2/3", "é", "x" * 80, ""])
MARKS = st.sampled_from([None, None, "short", "long"])
VENDORS = st.sampled_from(["anthropic", "google", "openai", "mistral", "cohere", "another"])
OPAQUES = st.builds(Opaque, VENDORS, st.sampled_from(["c2ln", "not base64!", ""]))
ARGUMENTS = st.sampled_from(
    ["{}", "", '{"q": "x"}', '{"n": 1e30}', "[1]", '{"q": "', "plain", '{"a": {"$ref": "#/b"}}']
)
DATA = st.sampled_from(["iVBORw0KGgo=", "/9j/AA==", "JVBERi0=", "UklGRg==", "aGVsbG8="])
TYPES = st.sampled_from([None, "image/png", "image/jpg", "image/tiff", "application/pdf", "text/plain", "text/csv", "audio/wav", "audio/mpeg", "video/mp4", "application/x-odd"])  # fmt: skip
ADDRESSES = st.sampled_from(
    [
        "https://x.test/a.png",
        "https://x.test/a.pdf",
        "s3://b/a.png",
        "s3://bucket/a.png",
        "gs://b/a.png",
        "ftp://x.test/a",
    ]
)
KINDS = st.sampled_from(["image", "audio", "video", "file"])


@st.composite
def media(draw: Any) -> Media:
    found = Media(draw(KINDS), draw(TYPES), name=draw(st.sampled_from([None, "a.pdf", "ü?.x"])), cache=draw(MARKS))
    found.detail = draw(st.sampled_from([None, "low", "auto", "original"]))
    where = draw(st.sampled_from(["data", "url", "file_id"]))
    setattr(found, where, draw({"data": DATA, "url": ADDRESSES, "file_id": st.just("file_1")}[where]))
    return found


TEXTS = st.builds(Text, WORDS, st.none() | OPAQUES, cache=MARKS)
ASIDES = st.builds(Aside, st.sampled_from(["openai-chat", "anthropic", "google", "bedrock"]), st.just("unknown_event"), st.just("content.x"), st.just({"type": "x", "text": "said"}))  # fmt: skip
SPOKEN: st.SearchStrategy[Part] = TEXTS | media() | ASIDES
THOUGHT: st.SearchStrategy[Part] = (
    TEXTS
    | st.builds(Refusal, WORDS)
    | st.builds(Reasoning, WORDS, st.sampled_from(["raw", "summary"]), st.none() | OPAQUES)
    | st.builds(RedactedReasoning, OPAQUES)
    | media()
    | ASIDES
)
SCHEMAS = st.sampled_from([
    None, {}, {"type": "object"}, {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    {"type": "object", "properties": {"q": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}, "additionalProperties": False},
])  # fmt: skip
THINKING = st.builds(
    Thinking,
    st.sampled_from([None, "none", "minimal", "low", "medium", "high", "xhigh", "max", "heroic"]),
    st.sampled_from([None, 0, 1, 1024, 31999, 200_000]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "none", "auto", "concise", "detailed"]),
)
OUTPUTS = st.builds(
    OutputFormat, st.sampled_from(["text", "json", "schema"]), SCHEMAS, st.sampled_from([None, "n", "Answer[int]"]), st.sampled_from([None, "d"]),
    st.sampled_from([None, True, False]),
)  # fmt: skip
OPTIONS = st.builds(
    Options,
    max_tokens=st.sampled_from([None, 1, 9, 1025, 64000]), temperature=st.sampled_from([None, 0, 0.5, 1, 1.7]), top_p=st.sampled_from([None, 0.5, 0.97, 1]),
    top_k=st.sampled_from([None, 1, 40]), stop=st.sampled_from([(), ("x",), ("a", " ", "b", "c", "d", "e")]), seed=st.sampled_from([None, 7]),
    presence_penalty=st.sampled_from([None, 0, -1.5]), frequency_penalty=st.sampled_from([None, 0.5]), choices=st.sampled_from([None, 1, 2]),
    logprobs=st.sampled_from([None, True]), top_logprobs=st.sampled_from([None, 2]), thinking=st.none() | THINKING, output=st.none() | OUTPUTS,
    service_tier=st.sampled_from([None, "auto", "default", "flex", "priority", "odd"]), user=st.sampled_from([None, "Bo", "jane@example.com", "x" * 300]),
)  # fmt: skip


@st.composite
def drawn_requests(draw: Any) -> Request:
    """Conversations with parts of every kind, tools and choices of every kind, and every option."""
    turns: list[Turn] = [Turn("system", [draw(TEXTS)])] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        turns.append(Turn("user", draw(st.lists(SPOKEN, max_size=3)), draw(st.sampled_from([None, None, "Bo"]))))
        calls = [
            ToolCall(n, f"{draw(IDS)}{len(turns)}{n}", draw(NAMES), draw(ARGUMENTS), draw(st.sampled_from(["function", "custom"])), cache=draw(MARKS), signature=draw(st.none() | OPAQUES))
            for n in range(draw(st.integers(0, 2)))
        ]  # fmt: skip
        turns.append(Turn("assistant", [*draw(st.lists(THOUGHT, max_size=3)), *calls]))
        if calls:
            results = [
                ToolResult(call.id, draw(st.lists(TEXTS | media(), max_size=2)), call.name, draw(st.booleans()), call.kind, draw(MARKS)) for call in calls
            ]  # fmt: skip
            turns.append(Turn("user", [*results, *draw(st.lists(SPOKEN, max_size=1))]))
        if draw(st.integers(0, 4)) == 0:
            turns.append(Turn("system", [draw(TEXTS)]))
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    kinds = st.sampled_from(["function", "function", "custom"])
    tools = [
        Tool(name, draw(st.sampled_from([None, "d"])), draw(SCHEMAS), draw(st.sampled_from([None, True, False])), draw(kinds), cache=draw(MARKS))
        for name in names
    ]  # fmt: skip
    if draw(st.integers(0, 3)) == 0:
        search = WebSearch(
            draw(st.sampled_from([None, 3])),
            draw(st.sampled_from([(), ("x.test",)])),
            location=draw(st.sampled_from([None, {"city": "Rome"}])),
        )
        tools.append(Tool("search", kind="server", raw={"type": "search"}, search=search))
    chosen = (
        tuple(draw(st.lists(st.sampled_from([tool.name for tool in tools]), max_size=2, unique=True))) if tools else ()
    )
    choice = draw(
        st.none()
        | st.builds(
            ToolChoice,
            st.sampled_from(["auto", "none", "required"]),
            st.just(chosen),
            st.sampled_from([None, True, False]),
        )
    )
    return Request(
        "another",
        draw(st.sampled_from(MODELS)),
        turns,
        tools,
        choice,
        draw(OPTIONS),
        draw(st.sampled_from([None, True])),
    )


# -- each model with each option ---------------------------------------------------------------------------------------

FUNCTION = Tool("f", "d", {"type": "object", "properties": {"q": {"type": "string"}}}, strict=True, cache="long")
REQUIRED = ToolChoice("required", ("f",), False)
SCHEMA = OutputFormat("schema", {"type": "object", "properties": {}, "additionalProperties": False}, "n")
SAMPLED: dict[str, Any] = {
    "temperature": 0.3, "top_p": 0.9, "top_k": 4, "presence_penalty": 0.1, "frequency_penalty": 0.1, "stop": ("x",),
    "logprobs": True, "top_logprobs": 2,
}  # fmt: skip
THINKINGS = [
    None, Thinking(enabled=False), Thinking(enabled=True), Thinking(budget_tokens=600), Thinking(budget_tokens=200_000),
    *map(Thinking, ("none", "minimal", "low", "medium", "high", "xhigh", "max")),
]  # fmt: skip
ASKED = list(
    product(
        MODELS,
        THINKINGS,
        [{}, SAMPLED, {"top_p": 0.97}],
        [(None, "user"), (1500, "user"), (900_000, "assistant")],
        [(None, [], None), (None, [FUNCTION], None), (SCHEMA, [FUNCTION], REQUIRED), (OutputFormat("json"), [], None)],
    )
)


@pytest.mark.parametrize(
    "step", [pytest.param(809, id="some"), pytest.param(1, id="all", marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("target", JUDGED)
def test_each_model_is_asked_for_what_it_takes(target, step):
    for model, thinking, sampled, (bound, last), (output, tools, choice) in ASKED[
        41 * JUDGED.index(target) % step :: step
    ]:
        options = Options(thinking=thinking and evolve(thinking), max_tokens=bound, output=output, **sampled)
        turns = [Turn("system", [Text("s", cache="long")]), Turn("user", [Text("Hi", cache="short")])]
        turns += [Turn("assistant", [Text("So far")])] if last == "assistant" else []
        request = Request("another", model, turns, tools, choice, options)
        assert judged(request, target) == [], request


@pytest.mark.parametrize("target", JUDGED)
@settings(deadline=None)
@given(request=drawn_requests())
def test_drawn_requests(target: str, request: Request):
    assert judged(request, target) == []
