"""Documents that a model cites, between Anthropic, Bedrock and Cohere: answers, streamed and whole (dialects.md §3.1, §6.1, §6.2)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit import collect, transcode
from streamkit.dialects import DIALECTS
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from streamkit.translation.citations import CITED_CHARS, carry_citations_of
from tests.requests.sdk_types import shape_faults
from tests.requests.typed import Checker
from tests.translation.test_citations import stream, violations

NAMES = ("anthropic", "bedrock", "cohere")
PAIRS = [(source, to) for source in NAMES for to in NAMES if source != to]
TITLE, SOURCE, QUOTE, OTHER = "Tides", "https://tides.example", "The tide is slow.", "It is wide."

#: By kind: a citation as each dialect says it, and the id of Cohere's document. ``start`` and ``end`` are of the document.
PLACES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "char": (
        {"type": "char_location", "document_index": 0, "start_char_index": 3, "end_char_index": 20},
        {"documentChar": {"documentIndex": 0, "start": 3, "end": 20}}, "char:0:3:20",
    ),
    "page": (
        {"type": "page_location", "document_index": 1, "start_page_number": 2, "end_page_number": 3},
        {"documentPage": {"documentIndex": 1, "start": 2, "end": 3}}, "page:1:2:3",
    ),
    "block": (
        {"type": "content_block_location", "document_index": 2, "start_block_index": 0, "end_block_index": 1},
        {"documentChunk": {"documentIndex": 2, "start": 0, "end": 1}}, "block:2:0:1",
    ),
    "search": (
        {"type": "search_result_location", "search_result_index": 4, "start_block_index": 1, "end_block_index": 2},
        {"searchResultLocation": {"searchResultIndex": 4, "start": 1, "end": 2}}, "search:4:1:2",
    ),
}  # fmt: skip
#: The answer: its texts, the number of citations of each, and where each stands in the whole text ("é" and 🌊 are one character).
TEXTS = [("Tidés 🌊 are ", 0), ("slow", 1), (" and ", 0), ("wide", 2), (".", 0)]
WHOLE = "".join(text for text, _ in TEXTS)
SPANS = [(12, 16), (21, 25)]


def cited(dialect: str, kind: str, quote: str, *, to_client: bool = False) -> dict[str, Any]:
    """A citation, or for Cohere the source of one. The client's own id of a search result is its source."""
    raw, location, name = PLACES[kind]
    is_search = kind == "search"
    if dialect == "anthropic":
        members = {"title": TITLE, "source": SOURCE} if is_search else {"document_title": TITLE, "file_id": None}
        return {"cited_text": quote, **members, **raw}
    if dialect == "bedrock":
        source = {"source": SOURCE} if is_search else {}
        return {"title": TITLE, **source, "sourceContent": [{"text": quote}], "location": location}
    if to_client and is_search:
        return {"type": "document", "id": SOURCE, "document": {"id": SOURCE, "title": TITLE, "text": quote}}
    document = {"id": name, "title": TITLE, **({"source": SOURCE} if is_search else {}), "text": quote}
    return {"type": "document", "id": name, "document": document}


def quotes(count: int) -> list[str]:
    return [QUOTE, OTHER][:count]


def body(dialect: str, kind: str, *, to_client: bool = False) -> dict[str, Any]:
    """The whole answer."""
    if dialect == "cohere":
        citations = [
            {"start": start, "end": end, "text": WHOLE[start:end], "type": "TEXT_CONTENT",
             "sources": [cited(dialect, kind, quote, to_client=to_client) for quote in quotes(count)]}
            for (start, end), count in zip(SPANS, (1, 2), strict=True)
        ]  # fmt: skip
        message = {"role": "assistant", "content": [{"type": "text", "text": WHOLE}], "citations": citations}
        return {"id": "r", "message": message, "finish_reason": "COMPLETE"}
    content: list[dict[str, Any]] = []
    for text, count in TEXTS:
        citations = [cited(dialect, kind, quote) for quote in quotes(count)]
        if dialect == "anthropic":
            content.append({"type": "text", "text": text, "citations": citations})
        elif count:
            content.append({"citationsContent": {"content": [{"text": text}], "citations": citations}})
        else:
            content.append({"text": text})
    if dialect == "bedrock":
        usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
        message = {"role": "assistant", "content": content}
        return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}
    return {
        "id": "r", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip


def said(dialect: str, answer: dict[str, Any]) -> Any:
    """What an answer says and cites."""
    if dialect == "cohere":
        return answer["message"]["content"], answer["message"].get("citations")
    return answer["content"] if dialect == "anthropic" else answer["output"]["message"]["content"]


def faults(dialect: str, answer: dict[str, Any]) -> list[str]:
    """What the vendor's own types find wrong in a whole answer."""
    if dialect == "anthropic":
        types = pytest.importorskip("anthropic.types")
        return Checker().faults(answer["content"], list[types.ContentBlock])
    if dialect == "cohere":
        types = pytest.importorskip("cohere.types")
        return Checker().faults(answer["message"], types.AssistantMessageResponse)
    session = pytest.importorskip("botocore.session").get_session()
    shape = session.get_service_model("bedrock-runtime").shape_for("Message")
    report = pytest.importorskip("botocore.validate").ParamValidator().validate(answer["output"]["message"], shape)
    return [*report.generate_report().splitlines(), *map(str, shape_faults(answer["output"]["message"], shape, ()))]


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_a_whole_answer_cites_the_same_with_the_same_words(source, to, kind):
    answer = decode_response(orjson.dumps(body(source, kind)), source)
    carry_citations_of(answer, to)
    written = orjson.loads(encode_response(answer, to))
    assert said(to, written) == said(to, body(to, kind, to_client=True))
    assert faults(to, written) == []
    assert answer.report.losses["citation"] == answer.report.losses["block_boundary"] == 0


def cohere_events(kind: str) -> bytes:
    """Cohere's stream: each citation follows its text, a word later."""
    events: list[dict[str, Any]] = [
        {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant"}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
    ]
    citations, late = list(body("cohere", kind)["message"]["citations"]), []
    for index, (text, count) in enumerate(TEXTS):
        events += [
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}
            for piece in (text[:2], text[2:])
            if piece
        ]
        for citation in late:
            events += [
                {"type": "citation-start", "index": index, "delta": {"message": {"citations": citation}}},
                {"type": "citation-end", "index": index},
            ]
        late = [citations.pop(0)] if count else []
    events += [{"type": "content-end", "index": 0}, {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}]
    return b"".join(b"event: %b\ndata: %b\n\n" % (each["type"].encode(), orjson.dumps(each)) for each in events)


async def streamed(data: bytes, source: str, to: str, *, width: int = 0, documents: bool = True) -> tuple[Any, Any]:
    chunks = [data[at : at + width] for at in range(0, len(data), width)] if width else [data]
    report = StreamReport()
    options = ReadOptions(documents=documents)
    async with transcode(source_of(chunks), source, to, options, report=report) as pipe:
        out = b"".join([piece async for piece in pipe])
    assert violations(to, out) == []
    read = await collect(source_of([out]), to)
    return orjson.loads(encode_response(read, to)), report


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(("source", "to"), PAIRS)
async def test_a_stream_cites_the_same_with_the_same_words(source, to, kind):
    whole = stream(decode_response(orjson.dumps(body(source, kind)), source))
    for data in [whole, cohere_events(kind)] if source == "cohere" else [whole]:
        for width in 0, 9:
            written, report = await streamed(data, source, to, width=width)
            assert said(to, written) == said(to, body(to, kind, to_client=True))
            assert faults(to, written) == []
            assert report.losses["citation"] == report.losses["block_boundary"] == 0


@pytest.mark.parametrize("to", ["anthropic", "bedrock"])
async def test_text_is_not_held_longer_than_a_cited_span_is(to):
    """Of a request without documents none is held; then the block that is cited is longer than the span, which is counted."""
    form = DIALECTS[to].citations
    written, report = await streamed(cohere_events("char"), "cohere", to, documents=False)
    assert report.losses["block_boundary"] == 2
    texts = [block.get("text") or block["citationsContent"]["content"][0]["text"] for block in said(to, written)]
    assert "".join(texts) == WHOLE
    assert form is not None
    delta = b'event: content-delta\ndata: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"%b"}}}}\n\n'
    start, _, _ = cohere_events("char").partition(b"event: content-delta")
    got = 0
    async with transcode(
        source_of([start, *[delta % (b"a" * 100)] * 20]), "cohere", to, ReadOptions(documents=True)
    ) as pipe:
        async for piece in pipe:
            got += piece.count(b"a" * 100)
            if got >= 20 - CITED_CHARS // 100:
                break
    assert got


def test_what_was_not_sent_as_a_document_is_a_counted_loss():
    """A result of a tool is cited by Cohere alone; next to a document only its own source is lost."""
    tool = {"type": "tool", "id": "call:0", "tool_output": {"content": "x"}}
    answer = body("cohere", "char")
    answer["message"]["citations"][0]["sources"] = [tool]
    answer["message"]["citations"][1]["sources"].append(tool)
    answer["message"]["citations"].append({**answer["message"]["citations"][1], "type": "PLAN"})
    read = decode_response(orjson.dumps(answer), "cohere")
    carry_citations_of(read, "anthropic")
    written = orjson.loads(encode_response(read, "anthropic"))
    assert [len(block["citations"]) for block in written["content"]] == [0, 2, 0]
    assert read.report.lost == [("citation", "citation-start"), ("metadata", "sources"), ("citation", "citation-start")]


def test_a_tool_result_that_was_sent_as_a_document_is_cited():
    """Cohere says of a document in a tool's result that its source is the tool."""
    answer = body("cohere", "search")
    for citation in answer["message"]["citations"]:
        for source in citation["sources"]:
            source |= {"type": "tool", "tool_output": source.pop("document")}
    read = decode_response(orjson.dumps(answer), "cohere")
    carry_citations_of(read, "anthropic")
    written = orjson.loads(encode_response(read, "anthropic"))
    assert said("anthropic", written) == said("anthropic", body("anthropic", "search"))


async def test_a_citation_of_a_block_that_is_closed_is_a_counted_loss():
    """A stream whose text is not held, and that cites a span again when more text was written behind its block."""
    start, between, end = cohere_events("char").partition(b"event: content-end")
    cited = b"event: citation-start" + start.split(b"event: citation-start")[1].partition(b"event: content-delta")[0]
    _, report = await streamed(start + cited + between + end, "cohere", "anthropic", documents=False)
    assert report.losses["citation"] == 1


def test_spans_that_overlap_are_cited_as_far_as_blocks_can():
    answer = body("cohere", "char")
    answer["message"]["citations"][0] |= {"start": 12, "end": 23}
    read = decode_response(orjson.dumps(answer), "cohere")
    carry_citations_of(read, "bedrock")
    written = orjson.loads(encode_response(read, "bedrock"))["output"]["message"]["content"]
    assert [block.get("text") or block["citationsContent"]["content"][0]["text"] for block in written] == [
        WHOLE[:12],
        WHOLE[12:23],
        WHOLE[23:25],
        ".",
    ]
    assert read.report.losses["block_boundary"] == 1
    assert Limits().held_chars > CITED_CHARS


def test_a_span_within_another_is_cited_in_the_order_of_a_stream():
    answer = body("cohere", "char")
    (citation, _) = answer["message"]["citations"]
    spans = [(10, 22), (13, 25), (18, 21)]
    answer["message"]["citations"] = [{**citation, "start": start, "end": end} for start, end in spans]
    read = decode_response(orjson.dumps(answer), "cohere")
    carry_citations_of(read, "anthropic")
    written = orjson.loads(encode_response(read, "anthropic"))["content"]
    assert sum(len(block["citations"]) for block in written) == 3
    assert read.report.losses["citation"] == 0
