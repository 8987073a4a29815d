"""Searches that a provider ran, told to clients of another dialect, and not taken for the server's own when they come back.

Source: dialects.md §2.1, §2.2, §3.1, §5.2; what Claude Code 2.1 reads of them.
"""

from __future__ import annotations

import orjson
import pytest

from streamkit import collect, response_events, transcode
from streamkit.conversation.messages import Choice, Response, Text, Tool, WebSearch, WebSearched
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import Aside
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response
from streamkit.translation.citations import SearchCarrier, carry_searches_of

FORMS = {
    name: dialect.searches
    for name, dialect in DIALECTS.items()
    if dialect.searches is not None and dialect.searches.reader
}
SEARCH = [Tool("web_search", kind="server", raw={}, search=WebSearch())]
FOUND = WebSearched("rain in Akureyri", [("https://a.example/1", "One"), ("https://a.example/2", "Two")])
PAIRS = [(source, to) for source in FORMS for to in ("anthropic", "openai-responses") if source != to]
TEXT = "It rains."


def searched(dialect: str, *searches: WebSearched) -> Response:
    """An answer after searches, as that dialect has it."""
    form = FORMS[dialect]
    if form.write is None:
        pages = [{"web": {"uri": url, "title": title}} for found in searches for url, title in found.pages]
        raw = {"groundingChunks": pages, "webSearchQueries": [found.query for found in searches]}
        asides = [Aside(form.vendor, "citation", "candidates.groundingMetadata", raw)]
        parts = [Text(TEXT), *asides]
    else:
        asides = [aside for number, found in enumerate(searches) for aside in form.write(found, number, 0)]
        parts = [*asides, Text(TEXT, block=100)]
    choice = Choice(parts=parts, stop_reason="stop")
    return Response(dialect, id="r", model="m", vendor=form.vendor, choices=[choice], clean=True)


def stream(response: Response) -> bytes:
    encoder = DIALECTS[response.dialect].encoder(Encoding(), StreamReport())
    return encoder.feed(list(response_events(response))) + encoder.finish()


def found(response: Response) -> list[WebSearched]:
    """The searches that a response tells of."""
    report = StreamReport()
    reader = FORMS[response.dialect].reader(DEFAULT_LIMITS, report)
    told = [search for aside in response.choices[0].asides for search in reader.take(aside)[0]]
    reader.finish()
    assert not report.losses
    return told


def without_titles(search: WebSearched) -> tuple[str, list[str], bool]:
    return search.query, [url for url, _ in search.pages], search.failed


def violations(dialect: str, data: bytes) -> list[str]:
    named, linter = DIALECTS[dialect], DIALECTS[dialect].linter()
    parser = named.parser(Limits(), StreamReport())
    frames = [*parser.feed(data), *parser.finish()]
    return [found.rule for found in [*linter.feed(frames), *linter.finish()] if found.severity == "error"]


@pytest.mark.parametrize(("source", "to"), PAIRS)
async def test_a_streamed_search_is_told_and_no_call(source, to):
    data = stream(searched(source, FOUND))
    for width in (1, 11, 10_000):
        chunks = [data[at : at + width] for at in range(0, len(data), width)]
        report = StreamReport()
        async with transcode(source_of(chunks), source, to, ReadOptions(offered=SEARCH), report=report) as pipe:
            out = b"".join([piece async for piece in pipe])
        read = await collect(source_of([out]), to)
        assert (read.clean, read.text, read.tool_calls, read.choices[0].stop_reason) == (True, TEXT, [], "stop")
        assert [without_titles(search) for search in found(read)] == [without_titles(FOUND)]
        assert report.losses["server_tool"] == 0
        assert violations(to, out) == []


@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_so_is_one_of_a_whole_answer(source, to):
    answer = decode_response(encode_response(searched(source, FOUND), source), source)
    carry_searches_of(answer, to, SEARCH)
    read = decode_response(encode_response(answer, to), to)
    assert [without_titles(search) for search in found(read)] == [without_titles(FOUND)]
    assert (read.text, read.tool_calls, answer.report.losses["server_tool"]) == (TEXT, [], 0)


@pytest.mark.parametrize("source", FORMS)
async def test_a_user_interface_is_shown_the_search_and_runs_nothing(source):
    report = StreamReport()
    async with transcode(source_of([stream(searched(source, FOUND))]), source, "ai-sdk", report=report) as pipe:
        data = b"".join([piece async for piece in pipe])
    chunks = [orjson.loads(line[6:]) for line in data.split(b"\n\n") if line.startswith(b"data: {")]
    calls = [one for one in chunks if one.get("toolCallId") == "search_0"]
    assert [one["type"] for one in calls] == ["tool-input-start", "tool-input-available", "tool-output-available"]
    assert all(one["providerExecuted"] for one in calls)
    assert calls[1]["input"] == {"query": FOUND.query}
    assert [page["url"] for page in calls[2]["output"]] == [url for url, _ in FOUND.pages]
    assert report.losses["server_tool"] == 0
    assert report.verdicts == {}


def test_several_searches_stay_apart_and_one_that_failed_says_so():
    told = [FOUND, WebSearched("no"), WebSearched("broken", failed=True)]
    for source, to in PAIRS:
        if source != "gemini":
            answer = searched(source, *told)
            carry_searches_of(answer, to, SEARCH)
            again = decode_response(encode_response(answer, to), to)
            assert [without_titles(search) for search in found(again)] == [without_titles(search) for search in told]


def test_where_no_search_was_offered_and_where_there_is_no_place_it_is_a_counted_loss():
    for to in ("openai-chat", "gemini"):
        answer = searched("anthropic", FOUND)
        carry_searches_of(answer, to, SEARCH)
        encode_response(answer, to)
        assert answer.report.losses["server_tool"] > 0


def aside_of(dialect: str, kind: str, raw: object) -> Aside:
    return Aside(FORMS[dialect].vendor, "server_tool", kind, raw)


def test_other_members_of_a_page_are_counted_except_what_only_the_server_reads():
    page = {"type": "web_search_result", "url": "https://a.example/1", "title": "One", "encrypted_content": "E"}
    for age, lost in ("1 day", [("metadata", "page_age")]), (None, []):
        report = StreamReport()
        block = {"type": "web_search_tool_result", "tool_use_id": "t", "content": [{**page, "page_age": age}]}
        start = {"type": "content_block_start", "index": 0, "content_block": block}
        aside = Aside("anthropic", "server_tool", "content_block_start", start)
        [search], _ = FORMS["anthropic"].reader(DEFAULT_LIMITS, report).take(aside)
        assert (search.pages, report.lost) == ([("https://a.example/1", "One")], lost)


def test_what_is_no_search_passes_and_what_has_no_end_is_counted():
    other = [
        aside_of("anthropic", "content_block_start", {"content_block": {"type": "server_tool_use", "name": "bash", "input": {}}}),
        aside_of("anthropic", "content_block_delta", {"delta": {}}),
        aside_of("anthropic", "content_block_start", 5),
    ]  # fmt: skip
    report = StreamReport()
    carrier = SearchCarrier(FORMS["anthropic"].reader(Limits(), report), "anthropic", FORMS["openai-responses"].write)
    assert carrier.feed(other) == other
    begun = FORMS["anthropic"].write(FOUND, 0, 0)
    assert carrier.feed(begun[:3]) == []
    assert carrier.finish() == []
    assert report.losses == {"server_tool": 1}
    carrier = SearchCarrier(
        FORMS["openai-responses"].reader(Limits(), report), FORMS["openai-responses"].vendor, FORMS["anthropic"].write
    )
    opened = {"item": {"type": "web_search_call", "action": {"type": "open_page", "url": "u"}}}
    assert carrier.feed([aside_of("openai-responses", "response.output_item.added", opened)]) == []
    assert carrier.feed([aside_of("openai-responses", "response.web_search_call.searching", {})]) == []
    assert carrier.feed([aside_of("openai-responses", "response.output_item.done", opened)]) == []
    assert report.lost[1:] == [("server_tool", "web_search_call.open_page")]


def test_queries_in_a_list_are_one_search():
    item = {
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "queries": ["a", "b"], "sources": None},
    }
    reader = FORMS["openai-responses"].reader(DEFAULT_LIMITS, StreamReport())
    assert reader.take(aside_of("openai-responses", "response.output_item.done", {"item": item}))[0] == [
        WebSearched("a, b")
    ]


def test_responses_is_asked_for_the_pages():
    body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "q"}]}
    search = {"type": "web_search_20250305", "name": "web_search"}
    request = decode_request(orjson.dumps(body | {"tools": [search]}), "anthropic")
    assert orjson.loads(encode_request(request, "openai-responses"))["include"] == ["web_search_call.action.sources"]


def test_what_another_provider_ran_does_not_go_to_the_server_of_the_dialect():
    for dialect, members, where in [("anthropic", {"max_tokens": 9}, "messages"), ("openai-responses", {}, "input")]:
        other = "openai-responses" if dialect == "anthropic" else "anthropic"
        answer = searched(other, FOUND)
        carry_searches_of(answer, dialect, SEARCH)
        written = orjson.loads(encode_response(answer, dialect))
        said = [{"role": "assistant", "content": written["content"]}] if dialect == "anthropic" else written["output"]
        body = {
            "model": "m",
            **members,
            where: [{"role": "user", "content": "q"}, *said, {"role": "user", "content": "r"}],
        }
        report = StreamReport()
        again = encode_request(decode_request(orjson.dumps(body), dialect), dialect, report=report)
        assert b"search" not in again
        assert TEXT.encode() in again
        assert report.losses["server_tool"] >= 1


def test_what_google_says_again_is_no_search_more():
    def said(words: list[str], pages: int) -> Aside:
        chunks = [{"web": {"uri": f"https://a.example/{number}", "title": "A"}} for number in range(pages)]
        raw = {"groundingChunks": chunks, "webSearchQueries": words}
        return Aside(FORMS["gemini"].vendor, "citation", "candidates.groundingMetadata", raw)

    reader = FORMS["gemini"].reader(DEFAULT_LIMITS, StreamReport())
    told = [
        reader.take(said(*each))[0] for each in [(["rain"], 0), (["rain"], 1), (["rain"], 1), (["rain", "snow"], 1)]
    ]
    pages = [("https://a.example/0", "A")]
    assert told == [[WebSearched("rain")], [WebSearched("rain", pages)], [], [WebSearched("snow")]]
    small = FORMS["gemini"].reader(Limits(held_chars=10), StreamReport())
    assert [len(small.take(said(["rain"], 0))[0]) for _ in range(2)] == [1, 1]
