"""What a model cites of the web, in the words of each dialect that has a place for it (dialects.md §1.2, §2.2, §3.1, §5.2)."""

from __future__ import annotations

import orjson
import pytest

from streamkit import collect, replay, transcode
from streamkit.bodies import decode_request, decode_response, encode_request, encode_response
from streamkit.citing import CitationCarrier, carry_citations_of
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Encoding
from streamkit.events import Aside, ResponseFinished, TextDelta, ToolCallStarted
from streamkit.limits import Limits
from streamkit.messages import Choice, Citation, Response, Text, Tool, WebSearch
from streamkit.report import StreamReport
from streamkit.testing import source_of

FORMS = {name: dialect.citations for name, dialect in DIALECTS.items() if dialect.citations is not None}
SEARCH = [Tool("web_search", kind="server", raw={}, search=WebSearch())]
#: Two blocks of text, the second of which is cited whole: "é" is two bytes, the emoji four.
FIRST, SECOND = "Hé 😀. ", "It rains 🌧 there."
URL, TITLE = "https://weather.example/a", "Weather"
BEGIN, END = len(FIRST), len(FIRST + SECOND)
IN_BYTES = len(FIRST.encode()), len((FIRST + SECOND).encode())

#: The cited answer as each dialect says it: its asides, with the block that they stand behind.
RAW = {
    "anthropic": ("citations_delta", {"type": "web_search_result_location", "cited_text": "rain", "encrypted_index": "E", "title": TITLE, "url": URL}),
    "openai-responses": ("annotation", {"type": "url_citation", "start_index": 0, "end_index": len(SECOND), "title": TITLE, "url": URL}),
    "openai-chat": ("annotation", {"type": "url_citation", "url_citation": {"start_index": BEGIN, "end_index": END, "title": TITLE, "url": URL}}),
    "gemini": (
        "candidates.groundingMetadata",
        {
            "groundingChunks": [{"web": {"uri": URL, "title": TITLE}}],
            "groundingSupports": [{"segment": {"startIndex": IN_BYTES[0], "endIndex": IN_BYTES[1], "text": SECOND}, "groundingChunkIndices": [0]}],
        },
    ),
}  # fmt: skip
PAIRS = [(source, to) for source in FORMS for to in FORMS if source != to]


def cited(dialect: str) -> Response:
    kind, raw = RAW[dialect]
    merged = dialect in {"openai-chat", "gemini"}  # one block, as these have it
    texts = [Text(FIRST + SECOND)] if merged else [Text(FIRST), Text(SECOND, block=1)]
    aside = Aside(FORMS[dialect].vendor, "citation", kind, raw, block=texts[-1].block)
    vendor = FORMS[dialect].vendor
    choice = Choice(parts=[*texts, aside], stop_reason="stop")
    return Response(dialect, id="r", model="m", vendor=vendor, choices=[choice], clean=True)


def stream(response: Response) -> bytes:
    encoder = DIALECTS[response.dialect].encoder(Encoding(), StreamReport())
    return encoder.feed(list(replay(response))) + encoder.finish()


def violations(dialect: str, data: bytes) -> list[str]:
    """The rules of a dialect that a stream breaks."""
    named, linter = DIALECTS[dialect], DIALECTS[dialect].linter()
    parser = named.parser(Limits(), StreamReport())
    frames = [*parser.feed(data), *parser.finish()]
    return [found.rule for found in [*linter.feed(frames), *linter.finish()] if found.severity == "error"]


def found(response: Response) -> list[tuple[str, str | None, str]]:
    """The pages that a response cites, with the text that cites them."""
    form, pages = FORMS[response.dialect], []
    for choice in response.choices:
        blocks = {part.block: part.text for part in choice.parts if isinstance(part, Text)}
        for aside in choice.asides:
            for citation in form.read(aside)[0]:
                text = choice.text if form.unit != "block" else blocks[aside.block]
                data = text.encode()
                at = slice(citation.start, citation.end)
                pages.append((citation.url, citation.title, data[at].decode() if form.unit == "bytes" else text[at]))
    return pages


@pytest.mark.parametrize(("source", "to"), PAIRS)
async def test_a_streamed_citation_is_one_of_the_same_text(source, to):
    data = stream(cited(source))
    for width in (1, 7, 10_000):
        chunks = [data[at : at + width] for at in range(0, len(data), width)]
        report = StreamReport()
        async with transcode(source_of(chunks), source, to, offered=SEARCH, report=report) as pipe:
            out = b"".join([piece async for piece in pipe])
        read = await collect(source_of([out]), to)
        assert read.clean
        assert violations(to, out) == []
        assert not read.tool_calls
        assert found(read) == [
            (URL, TITLE, (FIRST if to == "anthropic" and source in {"openai-chat", "gemini"} else "") + SECOND)
        ]
        assert report.losses["citation"] == 0


@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_so_is_one_of_a_whole_answer(source, to):
    answer = decode_response(encode_response(cited(source), source), source)
    carry_citations_of(answer, to)
    read = decode_response(encode_response(answer, to), to)
    assert [page[:2] for page in found(read)] == [(URL, TITLE)]
    assert found(read)[0][2].endswith(SECOND)
    assert answer.report.losses["citation"] == 0


@pytest.mark.parametrize(("source", "to"), PAIRS)
async def test_where_no_search_was_offered_it_is_a_counted_loss_as_before(source, to):
    report = StreamReport()
    async with transcode(source_of([stream(cited(source))]), source, to, report=report) as pipe:
        assert b"".join([piece async for piece in pipe])
    assert report.losses["citation"] == 1


def carried(source: str, to: str, events: list, **limits: int) -> tuple[list, StreamReport]:
    report = StreamReport()
    machine = CitationCarrier(FORMS[source], FORMS[to], limits=Limits(**limits), report=report)
    return [made for event in events for made in machine.feed([event])], report


def aside_of(dialect: str, raw: object, block: int = 0) -> Aside:
    return Aside(FORMS[dialect].vendor, "citation", RAW[dialect][0], raw, block=block)


def test_one_of_a_block_that_is_closed_is_a_counted_loss():
    late = [TextDelta("a"), ToolCallStarted(0, "c", "f"), aside_of("openai-chat", RAW["openai-chat"][1])]
    for to in ("openai-responses", "anthropic"):
        out, report = carried("openai-chat", to, late)
        assert (out, dict(report.losses)) == (late[:2], {"citation": 1})
    out, report = carried("openai-chat", "gemini", [*late, ResponseFinished("stop")])
    assert (len(out), dict(report.losses)) == (4, {})


def test_what_cites_no_page_passes_for_the_encoder_to_count():
    for dialect, raw in [("anthropic", {"type": "char_location"}), ("openai-responses", {"type": "file_citation"}), ("openai-chat", 5), ("gemini", {"groundingChunks": [{"maps": {}}, 5]})]:  # fmt: skip
        for to in FORMS.keys() - {dialect}:
            aside = aside_of(dialect, raw)
            assert carried(dialect, to, [TextDelta("a"), aside])[0] == [TextDelta("a"), aside]


def test_what_google_says_beside_is_counted():
    raw = {**RAW["gemini"][1], "searchEntryPoint": {"renderedContent": "<div>"}, "webSearchQueries": ["rain"]}
    _, report = carried("gemini", "openai-chat", [TextDelta(FIRST + SECOND), aside_of("gemini", raw)])
    assert report.lost == [
        ("metadata", "groundingMetadata.searchEntryPoint"),
        ("metadata", "groundingMetadata.webSearchQueries"),
    ]


def test_pages_without_places_are_of_the_whole_text():
    raw = {"groundingChunks": [{"web": {"uri": URL}}]}
    out, _ = carried("gemini", "openai-chat", [TextDelta("a😀"), aside_of("gemini", raw), ResponseFinished("stop")])
    assert out[1].raw["url_citation"] == {"start_index": 0, "end_index": 2, "title": "", "url": URL}


def test_no_more_text_is_kept_than_the_limit():
    events = [TextDelta("aaaa"), aside_of("openai-chat", RAW["openai-chat"][1]), ResponseFinished("stop")]
    out, _ = carried("openai-chat", "gemini", events, held_chars=100)
    assert "groundingSupports" in out[1].raw
    long = [TextDelta("a" * 101), *events[1:]]
    out, report = carried("openai-chat", "gemini", long, held_chars=100)
    assert (out[1].raw, dict(report.losses)) == ({"groundingChunks": [{"web": {"uri": URL, "title": TITLE}}]}, {})
    _, report = carried("gemini", "openai-chat", [long[0], aside_of("gemini", RAW["gemini"][1])], held_chars=100)
    assert dict(report.losses) == {"citation": 1}
    _, report = carried("openai-chat", "gemini", events, held_chars=10)
    assert dict(report.losses) == {"citation": 1}


def test_a_citation_that_was_made_for_a_client_of_anthropics_does_not_go_to_its_server():
    (aside,) = FORMS["anthropic"].write([Citation(URL, TITLE, block=0)], 0)
    own = {**aside.raw, "encrypted_index": "of the server"}
    said = [{"type": "text", "text": "a", "citations": [aside.raw, own]}]
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": said}],
    }
    request = decode_request(orjson.dumps(body), "anthropic")
    assert orjson.loads(encode_request(request, "anthropic"))["messages"][1]["content"][0]["citations"] == [own]
