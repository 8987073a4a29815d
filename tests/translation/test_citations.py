"""What a model cites of the web, in the words of each dialect that has a place for it (dialects.md §1.2, §2.2, §3.1, §5.2)."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest
from attrs import evolve

from streamkit import collect, response_events, transcode
from streamkit.conversation.messages import Choice, Citation, Response, Text, Tool, WebSearch
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import Aside, ResponseFinished, TextDelta, ToolCallStarted
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response
from streamkit.translation.citations import CitationCarrier, carry_citations_of
from tests.laws.judging import Case, grows
from tests.working import FACTOR

FORMS = {
    name: dialect.citations
    for name, dialect in DIALECTS.items()
    if dialect.citations is not None and dialect.citations.read
}
SEARCH = [Tool("web_search", kind="server", raw={}, search=WebSearch())]
#: Two blocks of text, the second of which is cited whole: "é" is two bytes, the emoji four.
FIRST, SECOND = "Hé 😀. ", "It rains 🌧 there."
URL, TITLE = "https://weather.example/a", "Weather"
BEGIN, END = len(FIRST), len(FIRST + SECOND)
IN_BYTES = len(FIRST.encode()), len((FIRST + SECOND).encode())

#: The cited answer as each dialect says it: its asides, with the block that they stand behind.
RAW = {
    "anthropic": ("citations_delta", {"type": "web_search_result_location", "cited_text": "rain", "encrypted_index": "E", "title": TITLE, "url": URL}),
    "bedrock": ("citation", {"title": TITLE, "sourceContent": [{"text": "rain"}], "location": {"web": {"url": URL}}}),
    "cohere": ("citation-start", {"start": BEGIN, "end": END, "text": SECOND, "type": "TEXT_CONTENT", "sources": [
        {"type": "document", "id": URL, "document": {"id": URL, "url": URL, "title": TITLE}}]}),
    "openai-responses": ("annotation", {"type": "url_citation", "start_index": 0, "end_index": len(SECOND), "title": TITLE, "url": URL}),
    "openai-chat": ("annotation", {"type": "url_citation", "url_citation": {"start_index": BEGIN, "end_index": END, "title": TITLE, "url": URL}}),
    "gemini-interactions": (
        "delta",
        {
            "type": "text_annotation_delta",
            "annotations": [{"type": "url_citation", "url": URL, "title": TITLE, "start_index": IN_BYTES[0], "end_index": IN_BYTES[1]}],
        },
    ),
    "gemini": (
        "candidates.groundingMetadata",
        {
            "groundingChunks": [{"web": {"uri": URL, "title": TITLE}}],
            "groundingSupports": [{"segment": {"startIndex": IN_BYTES[0], "endIndex": IN_BYTES[1], "text": SECOND}, "groundingChunkIndices": [0]}],
        },
    ),
}  # fmt: skip
PAIRS = [(source, to) for source in FORMS for to in FORMS if source != to]


def cited(dialect: str, *after: Text) -> Response:
    kind, raw = RAW[dialect]
    merged = dialect in {"openai-chat", "gemini", "cohere"}  # one block, as these have it
    texts = [Text(FIRST + SECOND)] if merged else [Text(FIRST), Text(SECOND, block=1)]
    aside = Aside(FORMS[dialect].vendor, "citation", kind, raw, block=texts[-1].block)
    vendor = FORMS[dialect].vendor
    choice = Choice(parts=[*texts, aside, *after], stop_reason="stop")
    return Response(dialect, id="r", model="m", vendor=vendor, choices=[choice], clean=True)


def stream(response: Response) -> bytes:
    encoder = DIALECTS[response.dialect].encoder(Encoding(), StreamReport())
    return encoder.feed(list(response_events(response))) + encoder.finish()


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
    for width, tools in (1, SEARCH), (7, []), (10_000, []):  # some providers search without being asked
        chunks = [data[at : at + width] for at in range(0, len(data), width)]
        report = StreamReport()
        async with transcode(
            source_of(chunks), source, to, ReadOptions(offered=tools, documents=True), report=report
        ) as pipe:
            out = b"".join([piece async for piece in pipe])
        read = await collect(source_of([out]), to)
        assert read.clean
        assert violations(to, out) == []
        assert not read.tool_calls
        assert found(read) == [
            (
                URL,
                TITLE,
                (FIRST if to in {"anthropic", "bedrock"} and source in {"openai-chat", "gemini"} else "") + SECOND,
            )
        ]
        assert report.losses["citation"] == 0


@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_so_is_one_of_a_whole_answer(source, to):
    answer = decode_response(encode_response(cited(source), source), source)
    carry_citations_of(answer, to)
    read = decode_response(encode_response(answer, to), to)
    assert [page[:2] for page in found(read)] == [(URL, TITLE)]
    assert found(read)[0][2].endswith(SECOND)


@pytest.mark.parametrize(
    ("source", "to"), [pair for pair in PAIRS if pair[0] not in {"openai-chat", "gemini", "cohere"}]
)
async def test_a_text_is_cited_after_which_another_block_follows(source, to):
    given = cited(source, Text(" Bye.", block=2))
    async with transcode(source_of([stream(given)]), source, to, ReadOptions(), report=StreamReport()) as pipe:
        streamed = await collect(source_of([b"".join([piece async for piece in pipe])]), to)
    answer = decode_response(encode_response(given, source), source)
    carry_citations_of(answer, to)
    for read in streamed, decode_response(encode_response(answer, to), to):
        assert found(read) == [(URL, TITLE, SECOND)]
        labels = {part.block for part in read.choices[0].parts if isinstance(part, Text) and SECOND in part.text}
        asides = {aside.block for aside in read.choices[0].asides if aside.kind == "citation"}
        assert asides == labels or FORMS[to].unit == "choice" or FORMS[to].at_end
    assert answer.report.losses["citation"] == 0


@pytest.mark.parametrize("source", FORMS)
async def test_a_user_interface_gets_each_page_once_as_a_source_though_no_search_was_offered(source):
    report, answer = StreamReport(), cited(source)
    answer.choices[0].parts.append(answer.choices[0].parts[-1])  # the same place of the same page
    async with transcode(source_of([stream(answer)]), source, "ai-sdk", report=report) as pipe:
        data = b"".join([piece async for piece in pipe])
    chunks = [orjson.loads(line[6:]) for line in data.split(b"\n\n") if line.startswith(b"data: {")]
    assert violations("ai-sdk", data) == []
    assert [(one["url"], one["title"]) for one in chunks if one["type"] == "source-url"] == [(URL, TITLE)]
    assert report.losses["citation"] == 0


def test_what_stands_in_front_of_its_text_waits_for_it():
    events = [
        TextDelta("one "),
        aside_of("anthropic", RAW["anthropic"][1], 1),
        TextDelta("two", block=1),
        ResponseFinished("stop"),
    ]
    made, report = carried("anthropic", "openai-chat", events)
    places = [aside.raw["url_citation"] for aside in made if isinstance(aside, Aside)]
    assert [(place["start_index"], place["end_index"]) for place in places] == [(4, 7)]
    assert not report.losses


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


def quoted(dialect: str) -> dict:
    raw = RAW[dialect][1]
    if dialect == "openai-chat":
        return {**raw, "url_citation": {**raw["url_citation"], "content": "rain"}}
    if dialect == "cohere":
        [source] = raw["sources"]
        return {**raw, "sources": [{**source, "document": {**source["document"], "text": "rain"}}]}
    return raw


@pytest.mark.parametrize("to", FORMS)
@pytest.mark.parametrize("source", ["anthropic", "bedrock", "openai-chat", "cohere"])
def test_the_text_of_the_page_is_written_or_counted(source, to):
    if source == to:
        return
    events = [
        TextDelta(FIRST),
        TextDelta(SECOND, block=1),
        aside_of(source, quoted(source), 1),
        ResponseFinished("stop"),
    ]
    out, report = carried(source, to, events)
    [made] = [event for event in out if isinstance(event, Aside)]
    [citation] = FORMS[to].read(made)[0]
    lost = [] if FORMS[to].has_quote else [("metadata", "cited text")]
    assert (citation.quote, report.lost) == (None if lost else "rain", lost)


def test_googles_segment_is_the_text_that_cites_and_not_the_text_of_the_page():
    events = [
        TextDelta(FIRST),
        TextDelta(SECOND, block=1),
        aside_of("anthropic", RAW["anthropic"][1], 1),
        ResponseFinished("stop"),
    ]
    [made] = [event for event in carried("anthropic", "gemini", events)[0] if isinstance(event, Aside)]
    assert made.raw == RAW["gemini"][1]


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock", "openai-chat", "openai-responses"])
def test_other_members_of_a_citation_are_counted(dialect):
    raw = {**RAW[dialect][1], "source": "S", "type_of_page": None}
    if dialect == "openai-chat":
        raw = {**raw, "url_citation": {**raw["url_citation"], "source": "S"}}
    to = "cohere" if dialect != "openai-responses" else "openai-chat"
    _, report = carried(dialect, to, [TextDelta(FIRST + SECOND), aside_of(dialect, raw), ResponseFinished("stop")])
    assert report.lost == [("metadata", "source")]


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
    out, _ = carried("openai-chat", "gemini", events, held_chars=1000)
    assert "groundingSupports" in out[1].raw
    long = [TextDelta("a" * 1001), *events[1:]]
    out, report = carried("openai-chat", "gemini", long, held_chars=1000)
    assert (out[1].raw, dict(report.losses)) == ({"groundingChunks": [{"web": {"uri": URL, "title": TITLE}}]}, {})
    _, report = carried("gemini", "openai-chat", [long[0], aside_of("gemini", RAW["gemini"][1])], held_chars=1000)
    assert dict(report.losses) == {"citation": 1}
    _, report = carried("openai-chat", "gemini", events, held_chars=10)
    assert dict(report.losses) == {"citation": 1}


def supported(*places: tuple[int, int]) -> Aside:
    supports = [
        {"segment": {"startIndex": start, "endIndex": end}, "groundingChunkIndices": [0]} for start, end in places
    ]
    return aside_of("gemini", {"groundingChunks": [{"web": {"uri": URL}}], "groundingSupports": supports})


def test_places_in_a_long_text_are_counted_in_either_unit_however_it_is_cut():
    text = "".join("aé🌧"[number * number % 3] for number in range(5000))
    whole = [(start, start + 700) for start in range(0, 4300, 97)]
    in_bytes = [(len(text[:start].encode()), len(text[:end].encode())) for start, end in whole]
    for cut in (1, 1000, 1024, 5000):
        pieces = [TextDelta(text[start : start + cut]) for start in range(0, len(text), cut)]
        out, _ = carried("gemini", "openai-chat", [*pieces, supported(*in_bytes)])
        told = [event.raw["url_citation"] for event in out[len(pieces) :]]
        assert [(each["start_index"], each["end_index"]) for each in told] == whole
        asides = [
            aside_of(
                "openai-chat",
                {"type": "url_citation", "url_citation": {"url": URL, "start_index": start, "end_index": end}},
            )
            for start, end in whole
        ]
        out, _ = carried("openai-chat", "gemini", [*pieces, *asides, ResponseFinished("stop")])
        segments = [each["segment"] for each in out[-2].raw["groundingSupports"]]
        assert [(each.get("startIndex", 0), each["endIndex"]) for each in segments] == in_bytes
        assert [each["text"] for each in segments] == [text[start:end] for start, end in whole]


def test_an_annotation_of_chat_may_be_flat():
    raw = {"type": "url_citation", "url": URL, "title": TITLE, "start_index": 0, "end_index": 2}
    out, report = carried(
        "openai-chat", "openai-responses", [TextDelta("Hi"), aside_of("openai-chat", raw), ResponseFinished("stop")]
    )
    assert ([event.raw["url"] for event in out if isinstance(event, Aside)], dict(report.losses)) == ([URL], {})


def test_texts_that_are_quoted_again_and_again_stay_within_the_limit():
    raws = [{"url": f"{URL}{number}", "start_index": 0, "end_index": 400} for number in range(50)]
    events = [
        TextDelta("a" * 400),
        *[aside_of("openai-chat", {"type": "url_citation", "url_citation": raw}) for raw in raws],
        ResponseFinished("stop"),
    ]
    out, report = carried("openai-chat", "gemini", events, held_chars=10_000)
    supports = out[1].raw["groundingSupports"]
    assert (len(supports), dict(report.losses)) == (50, {})
    assert all(each["segment"]["endIndex"] == 400 for each in supports)
    assert sum(len(each["segment"].get("text", "")) for each in supports) < 10_000


def test_the_texts_of_all_choices_are_kept_within_one_limit():
    events = [TextDelta("a" * 400, number) for number in range(3)]
    carrier = CitationCarrier(FORMS["openai-chat"], FORMS["gemini"], limits=Limits(held_chars=1000))
    carrier.feed(events)
    raw = {"type": "url_citation", "url_citation": {"url": URL, "start_index": 0, "end_index": 4}}
    for number in range(3):
        told = carrier.feed(
            [evolve(aside_of("openai-chat", raw), choice=number), ResponseFinished("stop", choice=number)]
        )
        assert ("groundingSupports" in told[0].raw) == (number < 2)


def test_citations_that_do_not_wait_need_no_room():
    raws = [
        {"type": "url_citation", "url": f"{URL}{number}", "start_index": 0, "end_index": 1} for number in range(100)
    ]
    events = [TextDelta("a"), *[aside_of("openai-responses", raw) for raw in raws]]
    out, report = carried("openai-responses", "openai-chat", events, held_chars=200)
    assert (len(out), dict(report.losses)) == (101, {})


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "anthropic"])
async def test_what_google_says_again_with_each_chunk_is_cited_once(to):
    def chunk(text: str, pages: int, **members: object) -> bytes:
        support = [
            {"segment": {"endIndex": 5, "text": "Hello"}, "groundingChunkIndices": [page]} for page in range(pages)
        ]
        chunks = [{"web": {"uri": f"{URL}{page}", "title": TITLE}} for page in range(pages)]
        grounding = {"webSearchQueries": ["rain"], "groundingChunks": chunks, "groundingSupports": support}
        said = {"content": {"role": "model", "parts": [{"text": text}]}, "groundingMetadata": grounding, **members}
        return b"data: " + orjson.dumps({"candidates": [said], "responseId": "r", "modelVersion": "m"}) + b"\r\n\r\n"

    data = chunk("Hello", 1) + chunk(" there", 2) + chunk(".", 2, finishReason="STOP")
    async with transcode(source_of([data]), "gemini", to, ReadOptions(offered=SEARCH)) as pipe:
        written = b"".join([piece async for piece in pipe])
    answer = await collect(source_of([written]), to)
    cited = [citation.url for aside in answer.choices[0].asides for citation in FORMS[to].read(aside)[0]]
    assert cited == [f"{URL}0", f"{URL}1"]
    assert written.count(b'"type":"web_search_tool_result"') == (
        2 if to == "anthropic" else 0
    )  # the second has a new page


def _cited(many: int) -> Callable[[], object]:
    events = [TextDelta("a" * 240 * many), supported(*[(number, 240 * number) for number in range(many)])]
    return lambda: carried("gemini", "openai-chat", events)


def test_many_citations_of_a_long_text_take_linear_time():
    assert grows(Case("citations", _cited), 250) <= FACTOR


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


#: One citation of a document each, as Claude and Bedrock say it.
DOCUMENTS = {
    "char": ({"type": "char_location", "document_index": 0, "start_char_index": 3, "end_char_index": 9}, {"documentChar": {"documentIndex": 0, "start": 3, "end": 9}}),
    "page": ({"type": "page_location", "document_index": 1, "start_page_number": 2, "end_page_number": 3}, {"documentPage": {"documentIndex": 1, "start": 2, "end": 3}}),
    "block": (
        {"type": "content_block_location", "document_index": 0, "start_block_index": 0, "end_block_index": 1}, {"documentChunk": {"documentIndex": 0, "start": 0, "end": 1}},
    ),
    "search": (
        {"type": "search_result_location", "search_result_index": 0, "start_block_index": 0, "end_block_index": 1},
        {"searchResultLocation": {"searchResultIndex": 0, "start": 0, "end": 1}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_a_document_is_cited_between_claude_and_bedrock(kind):
    members, location = DOCUMENTS[kind]
    title, beside = ("title", {"source": "s"}) if kind == "search" else ("document_title", {"file_id": None})
    raw = {
        "anthropic": {"cited_text": "six", title: "Tides", **beside, **members},
        "bedrock": {"title": "Tides", "sourceContent": [{"text": "six"}], "location": location} | ({"source": "s"} if kind == "search" else {}),
    }  # fmt: skip
    for source, to in ("bedrock", "anthropic"), ("anthropic", "bedrock"):
        name = {"anthropic": "citations_delta", "bedrock": "citation"}
        parts = [Text(SECOND), Aside(FORMS[source].vendor, "citation", name[source], raw[source])]
        answer = Response(
            source,
            id="r",
            model="m",
            vendor=FORMS[source].vendor,
            choices=[Choice(parts=parts, stop_reason="stop")],
            clean=True,
        )
        report = StreamReport()
        async with transcode(source_of([stream(answer)]), source, to, report=report) as pipe:
            out = b"".join([piece async for piece in pipe])
        assert violations(to, out) == []
        assert [
            aside.raw for aside in (await collect(source_of([out]), to)).choices[0].asides if aside.kind == "citation"
        ] == [raw[to]]
        assert report.losses["citation"] == 0
        async with transcode(source_of([stream(answer)]), source, "openai-responses", report=report) as pipe:
            assert b"annotation.added" not in b"".join([piece async for piece in pipe])
        assert report.losses["citation"] == 1
