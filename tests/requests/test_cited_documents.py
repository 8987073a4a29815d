"""Documents of requests, and the citations in their history, between Anthropic, Bedrock and Cohere (dialects.md §3.2, §6.1, §6.2)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from streamkit.translation.documents import PIECE_CHARS, has_documents
from tests.requests.sdk_types import faults
from tests.working import FACTOR, growth

CLAUDE, NOVA = "anthropic.claude-sonnet-4-5", "amazon.nova-pro-v1:0"
MODELS = {"anthropic": "claude-sonnet-4-5", "bedrock": CLAUDE, "cohere": "command-a-03-2025"}
ON = {"citations": {"enabled": True}}
TIDES = "The tide is slow. It is wide."


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def claude(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "model": MODELS["anthropic"],
        "max_tokens": 9,
        "messages": [{"role": "user", "content": list(content)}],
        **more,
    }


def converse(*content: dict[str, Any], model: str = CLAUDE) -> dict[str, Any]:
    return {"modelId": model, "messages": [{"role": "user", "content": list(content)}]}


def cohere(*documents: Any, text: str = "How is it?", **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"model": MODELS["cohere"], "messages": [message], "documents": list(documents), **more}


def search(number: int, *texts: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"type": "search_result", "source": f"s{number}", "title": f"t{number}", "content": content, **ON}


def found(number: int, *texts: str) -> dict[str, Any]:
    return {
        "searchResult": {
            "source": f"s{number}",
            "title": f"t{number}",
            "content": [{"text": text} for text in texts],
            **ON,
        }
    }


ASK, ASKED = {"type": "text", "text": "How is it?"}, {"text": "How is it?"}
PLAIN = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": TIDES},
    "title": "Tides",
    "context": "c",
    **ON,
}
BLOCKS = {
    "type": "document",
    "source": {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    "title": "Blocks",
    **ON,
}
PLAIN_B = {"document": {"format": "txt", "name": "Tides", "source": {"bytes": encoded(TIDES)}, "context": "c", **ON}}
BLOCKS_B = {"document": {"name": "Blocks", "source": {"content": [{"text": "a"}, {"text": "b"}]}, **ON}}


def doc(place: str, **data: str) -> dict[str, Any]:
    return {"id": place, "data": data}


#: A body, the body that another dialect's servers get of it, and what is lost.
ROWS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any], Mapping[str, int]]] = {
    "Anthropic to Bedrock": (
        "anthropic", claude(PLAIN, BLOCKS, search(0, "x", "y"), ASK),
        "bedrock", {"content": [PLAIN_B, BLOCKS_B, found(0, "x", "y"), ASKED]}, {},
    ),
    "Bedrock to Anthropic": (
        "bedrock", converse(PLAIN_B, BLOCKS_B, found(0, "x", "y"), ASKED),
        "anthropic", {"content": [PLAIN, BLOCKS, search(0, "x", "y"), ASK]}, {},
    ),
    "Anthropic to Cohere": (
        "anthropic", claude(PLAIN, BLOCKS, search(0, "x", "y"), ASK),
        "cohere", {"content": "How is it?", "documents": [
            doc(f"char:0:0:{len(TIDES)}", title="Tides", context="c", text=TIDES),
            doc("block:1:0:1", title="Blocks", text="a"), doc("block:1:1:2", title="Blocks", text="b"),
            doc("search:0:0:1", title="t0", source="s0", text="x"), doc("search:0:1:2", title="t0", source="s0", text="y"),
        ]}, {"block_order": 3},
    ),
    "Bedrock to Cohere": (
        "bedrock", converse(PLAIN_B, BLOCKS_B, found(0, "x"), ASKED),
        "cohere", {"content": "How is it?", "documents": [
            doc(f"char:0:0:{len(TIDES)}", title="Tides", context="c", text=TIDES),
            doc("block:1:0:1", title="Blocks", text="a"), doc("block:1:1:2", title="Blocks", text="b"),
            doc("search:0:0:1", title="t0", source="s0", text="x"),
        ]}, {"block_order": 3},
    ),
    "Cohere to Anthropic": (
        "cohere", cohere("whole", {"data": {"title": "t", "snippet": "x"}, "id": "mine"}, {"data": {"a": "b", "n": 3}}),
        "anthropic", {"content": [
            {"type": "search_result", "source": "doc:0", "title": "doc:0", "content": [{"type": "text", "text": "whole"}], **ON},
            {"type": "search_result", "source": "mine", "title": "t", "content": [{"type": "text", "text": "x"}], **ON},
            {"type": "search_result", "source": "doc:2", "title": "doc:2", "content": [{"type": "text", "text": "a: b\nn: 3"}], **ON},
            ASK,
        ]}, {},
    ),
    "Cohere to Bedrock": (
        "cohere", cohere({"data": {"title": "t", "text": "x"}, "id": "mine"}, citation_options={"mode": "FAST"}),
        "bedrock", {"content": [{"searchResult": {"source": "mine", "title": "t", "content": [{"text": "x"}], **ON}}, ASKED]},
        {"parameter": 1},
    ),
    "Cohere, without citations": (
        "cohere", cohere({"data": {"text": "x"}, "id": "mine"}, citation_options={"mode": "OFF"}),
        "anthropic", {"content": [
            {"type": "search_result", "source": "mine", "title": "mine", "content": [{"type": "text", "text": "x"}], "citations": {"enabled": False}}, ASK,
        ]}, {},
    ),
    "Cohere, with a schema, next to which Claude does not cite": (
        "cohere", cohere({"data": {"text": "x"}, "id": "mine"}, response_format={"type": "json_object", "json_schema": {"type": "object", "properties": {}, "additionalProperties": False}}),
        "anthropic", {"content": [
            {"type": "search_result", "source": "mine", "title": "mine", "content": [{"type": "text", "text": "x"}], "citations": {"enabled": False}}, ASK,
        ]}, {"parameter": 1},
    ),
    "a document without text": (
        "cohere", cohere({"data": {}}, "x"), "anthropic", {"content": [
            {"type": "search_result", "source": "doc:1", "title": "doc:1", "content": [{"type": "text", "text": "x"}], **ON}, ASK,
        ]}, {"parameter": 1},
    ),
    "a document that is not cited stays a text": (
        "anthropic", claude({**PLAIN, "citations": {"enabled": False}, "context": None}, {**search(0, "x"), "citations": None}, ASK),
        "cohere", {"content": [
            {"type": "text", "text": f"Tides\n\n{TIDES}"}, {"type": "text", "text": "t0\ns0\n\nx"}, {"type": "text", "text": "How is it?"},
        ], "documents": None}, {"metadata": 2},
    ),
    "a turn of documents alone": (
        "anthropic", claude(BLOCKS), "cohere", {"content": "(A document is attached.)", "documents": [
            doc("block:0:0:1", title="Blocks", text="a"), doc("block:0:1:2", title="Blocks", text="b"),
        ]}, {"block_order": 1},
    ),
    "a turn of documents alone, for Bedrock": (
        "anthropic", claude(BLOCKS), "bedrock", {"content": [BLOCKS_B, {"text": "(A document is attached.)"}]}, {},
    ),
    "a document that cannot be sent is counted, so that the next keeps its number": (
        "anthropic", claude({**PLAIN, "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}, BLOCKS, ASK),
        "cohere", {"content": "How is it?", "documents": [
            doc("block:1:0:1", title="Blocks", text="a"), doc("block:1:1:2", title="Blocks", text="b"),
        ]}, {"block_order": 1, "media": 1},
    ),
    "a document in a form that is not accepted keeps its place": (
        "bedrock", converse({"document": {"format": "docx", "name": "Letter", "source": {"bytes": "AAAA"}, **ON}}, BLOCKS_B, ASKED),
        "anthropic", {"content": [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "(This document could not be sent.)"}, "title": "Letter", **ON},
            BLOCKS, ASK,
        ]}, {"media": 1},
    ),
    "a cache mark": (
        "anthropic", claude({**BLOCKS, "cache_control": {"type": "ephemeral"}}, ASK), "cohere", {"content": "How is it?", "documents": [
            doc("block:0:0:1", title="Blocks", text="a"), doc("block:0:1:2", title="Blocks", text="b"),
        ]}, {"block_order": 1, "cache_mark": 1},
    ),
    "documents of one title": (
        "anthropic", claude(BLOCKS, {**BLOCKS, "cache_control": {"type": "ephemeral"}}, ASK), "bedrock", {"content": [
            BLOCKS_B, {"document": {**BLOCKS_B["document"], "name": "Blocks (2)"}}, {"cachePoint": {"type": "default"}}, ASKED,
        ]}, {},
    ),
}  # fmt: skip


def asked(dialect: str, body: dict[str, Any]) -> dict[str, Any]:
    message = body["messages"][-1]
    return {"content": message["content"], **({"documents": body.get("documents")} if dialect == "cohere" else {})}


def lowered(
    source: str, body: dict[str, Any], to: str, model: str | None = None
) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    request = decode_request(orjson.dumps(body), source)
    before = repr(request)
    request.model = model or MODELS[to]
    written = orjson.loads(encode_request(request, to, report=report))
    request.model = body.get("model") or body.get("modelId")
    assert repr(request) == before
    return written, report


@pytest.mark.parametrize("name", ROWS)
def test_documents_are_what_the_other_vendor_cites(name):
    source, body, to, expected, losses = ROWS[name]
    assert faults(source, orjson.loads(orjson.dumps(body))) == [] or "not cited" in name
    written, report = lowered(source, body, to)
    assert asked(to, written) == expected
    assert faults(to, written) == []
    assert {kind: count for kind, count in report.losses.items() if count} == losses


CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {}}


@pytest.mark.parametrize(("to", "content"), [
    ("bedrock", [found(0, "x")]),
    ("cohere", [{"type": "document", "document": {"id": "search:0:0:1", "data": {"title": "t0", "source": "s0", "text": "x"}}}]),
])  # fmt: skip
def test_a_search_result_of_a_tool_stays_in_its_result(to, content):
    body = claude(ASK, tools=[{"name": "f", "input_schema": {"type": "object"}}])
    body["messages"] += [
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [search(0, "x")]}]},
    ]
    written, report = lowered("anthropic", body, to)
    last = written["messages"][-1]["content"]
    assert (last if to == "cohere" else last[0]["toolResult"]["content"]) == content
    assert faults(to, written) == []
    assert not report.losses


def test_a_long_text_is_cited_by_paragraphs():
    """Each document for Cohere is the text at the place in its id, and together they are the whole text."""
    text = "\n\n".join("Sentence é 🌊. " * number for number in range(1, 60))
    body = claude({**PLAIN, "source": {"type": "text", "media_type": "text/plain", "data": text}}, ASK)
    written, _ = lowered("anthropic", body, "cohere")
    spans = [(*map(int, each["id"].split(":")[2:]), each["data"]["text"]) for each in written["documents"]]
    assert [text[start:end] for start, end, _ in spans] == [piece for _, _, piece in spans]
    assert "".join(piece for _, _, piece in spans) == text
    assert all(len(piece) <= PIECE_CHARS for _, _, piece in spans)
    assert all(piece.endswith(("\n\n", ". ")) for _, _, piece in spans[:-1])


@pytest.mark.parametrize(("to", "model"), [("bedrock", NOVA), ("openai-chat", "gpt-4o"), ("gemini", "gemini-2.5-pro")])
def test_a_model_that_cannot_cite_reads_the_documents(to, model):
    written, report = lowered("cohere", cohere({"data": {"title": "t", "text": "needle"}}), to, model)
    assert b"needle" in orjson.dumps(written)
    assert ("metadata", "documents") in report.lost


#: One cited turn of the history in each dialect, of the first search result.
HISTORY = {
    "anthropic": [
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "slow", "citations": [{"type": "search_result_location", "cited_text": "x", "title": "t0", "source": "s0", "search_result_index": 0, "start_block_index": 0, "end_block_index": 1}]},
        {"type": "text", "text": "."},
    ],
    "bedrock": [
        {"text": "It is "},
        {"citationsContent": {"content": [{"text": "slow"}], "citations": [{"title": "t0", "source": "s0", "sourceContent": [{"text": "x"}], "location": {"searchResultLocation": {"searchResultIndex": 0, "start": 0, "end": 1}}}]}},
        {"text": "."},
    ],
}  # fmt: skip


def cohere_turn(name: str, **document: str) -> dict[str, Any]:
    source = {"type": "document", "id": name, "document": {"id": name, "title": "t0", **document, "text": "x"}}
    citation = {"start": 6, "end": 10, "text": "slow", "sources": [source], "type": "TEXT_CONTENT"}
    return {"role": "assistant", "content": "It is slow.", "citations": [citation]}


def conversation(dialect: str) -> dict[str, Any]:
    """A question with a search result, a cited answer, and the next question."""
    if dialect == "cohere":
        body = cohere({"id": "s0", "data": {"title": "t0", "text": "x"}})
        body["messages"] += [cohere_turn("s0"), {"role": "user", "content": "More?"}]
        return body
    body = claude(search(0, "x"), ASK) if dialect == "anthropic" else converse(found(0, "x"), ASKED)
    more = {"type": "text", "text": "More?"} if dialect == "anthropic" else {"text": "More?"}
    body["messages"] += [{"role": "assistant", "content": HISTORY[dialect]}, {"role": "user", "content": [more]}]
    return body


@pytest.mark.parametrize("to", MODELS)
@pytest.mark.parametrize("source", MODELS)
def test_an_answer_in_the_history_is_cited(source, to):
    written, report = lowered(source, conversation(source), to)
    turn = next(message for message in written["messages"] if message["role"] == "assistant")
    if to == "cohere":
        expected = cohere_turn("s0") if source == to else cohere_turn("search:0:0:1", source="s0")
        assert turn == expected
    else:
        assert turn["content"] == HISTORY[to]
    assert faults(to, written) == []
    assert not report.losses["citation"]


#: Between Anthropic and Bedrock nothing is looked up: the numbers are the same.
LOOKED_UP = [(source, to) for source in MODELS for to in MODELS if source != to and "cohere" in {source, to}]


@pytest.mark.parametrize(("source", "to"), LOOKED_UP)
def test_a_citation_of_a_document_that_is_gone_is_a_counted_loss(source, to):
    body = conversation(source)
    if source == "cohere":
        body["documents"] = ["other"]
    else:
        body["messages"][0]["content"].pop(0)
    written, report = lowered(source, body, to)
    turn = next(message for message in written["messages"] if message["role"] == "assistant")
    assert b"citations" not in orjson.dumps(turn)
    assert report.losses["citation"] == 1


def test_a_page_of_the_web_that_is_cited_next_to_a_document_is_a_counted_loss():
    body = conversation("cohere")
    web = {"type": "document", "id": "w", "document": {"url": "https://w.example"}}
    body["messages"][1]["citations"][0]["sources"].append(web)
    written, report = lowered("cohere", body, "anthropic")
    assert written["messages"][1]["content"] == HISTORY["anthropic"]
    assert report.losses["citation"] == 1


def test_text_is_held_only_for_documents_that_are_cited():
    for body, cited in [
        (claude(PLAIN), True),
        (claude(search(0, "x")), True),
        (claude(ASK), False),
        (claude({**BLOCKS, "citations": None}), False),
    ]:
        assert has_documents(decode_request(orjson.dumps(body), "anthropic")) is cited
    assert has_documents(decode_request(orjson.dumps(converse(PLAIN_B)), "bedrock"))


def many(dialect: str, count: int) -> bytes:
    """A request with that many search results, all of which one answer of the history cites."""
    body = conversation(dialect)
    first, turn = body["messages"][0], body["messages"][1]
    if dialect == "cohere":
        (citation,) = turn["citations"]
        body["documents"] = [{"id": f"s{number}", "data": {"text": "x"}} for number in range(count)]
        turn["content"] = "slow " * count
        turn["citations"] = [
            {**citation, "start": 5 * number, "end": 5 * number + 4, "sources": [{"type": "document", "id": f"s{number}", "document": {}}]}
            for number in range(count)
        ]  # fmt: skip
        return orjson.dumps(body)
    first["content"] = [*map(search, range(count), ["x"] * count), ASK]
    cited = turn["content"][1]
    turn["content"] = [
        {**cited, "citations": [{**cited["citations"][0], "search_result_index": number}]} for number in range(count)
    ]
    return orjson.dumps(body)


@pytest.mark.parametrize(
    ("source", "to"),
    [("anthropic", "cohere"), ("anthropic", "bedrock"), ("cohere", "anthropic"), ("cohere", "bedrock")],
)
def test_documents_and_citations_take_work_in_proportion_to_their_number(source, to):
    def writing(size: int) -> Any:
        request = decode_request(many(source, size), source)
        request.model = MODELS[to]
        return lambda: encode_request(request, to)

    assert writing(3)().count(b"slow") >= 3
    assert growth(writing, 300) < FACTOR
