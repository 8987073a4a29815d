"""OpenAI's words, as both of its dialects have them."""

from __future__ import annotations

import pytest

from streamkit.conversation.messages import Citation, ToolChoice
from streamkit.dialects.bodies.openai import (
    AUDIO_FORMATS,
    AUDIO_TYPES,
    CACHE_SPANS,
    CACHE_TTLS,
    ERROR_TYPES,
    decode_error,
    mode_of_choice,
    read_audio,
    read_cache_mark,
    read_url_citation,
    with_parallel,
    write_cache_mark,
    write_url_citation,
)
from streamkit.dialects.members.fields import Body, Fields
from streamkit.dialects.openai_chat import wire as chat
from streamkit.dialects.openai_responses import wire as responses
from streamkit.errors import BadRequest


def fields(members):
    return Fields(members, ("part",), Body(b"{}"))


@pytest.mark.parametrize("words", [chat.ERROR_TYPES, responses.ERROR_TYPES])
def test_both_dialects_know_the_words_for_errors(words):
    assert words.items() >= ERROR_TYPES.items()


@pytest.mark.parametrize(
    "document",
    [
        {"type": "error", "error": {"message": "Anthropic's"}},
        {"error": {"message": "Google's", "status": "INTERNAL"}},
        {"error": "text"},
        {},
    ],
)
def test_error_bodies_of_others_are_not_openais(document):
    assert decode_error(document, "openai", ERROR_TYPES) is None


def test_an_error_body_has_its_type():
    failed = decode_error({"error": {"message": "no", "type": "tokens"}}, "openai", ERROR_TYPES)
    assert failed is not None
    assert (failed.type, failed.message, failed.vendor) == ("rate_limit", "no", "openai")


def test_tables_lead_there_and_back():
    assert {form: AUDIO_FORMATS[kind] for form, kind in AUDIO_TYPES.items()} == {form: form for form in AUDIO_TYPES}
    assert {cache: CACHE_SPANS[ttl] for cache, ttl in CACHE_TTLS.items()} == {cache: cache for cache in CACHE_TTLS}


@pytest.mark.parametrize("cache", ["short", "long"])
def test_a_cache_mark_is_read_as_it_was_written(cache):
    assert read_cache_mark(fields(write_cache_mark(cache))) == cache


def test_a_part_may_have_no_cache_mark():
    assert read_cache_mark(fields({})) is None


@pytest.mark.parametrize("mark", [{"mode": "auto"}, {"mode": "explicit", "ttl": "1h"}])
def test_an_unknown_cache_mark_is_refused(mark):
    with pytest.raises(BadRequest, match="must be '"):
        read_cache_mark(fields({"prompt_cache_breakpoint": mark}))


def test_audio_of_an_unknown_format_keeps_it():
    media = read_audio(fields({"input_audio": {"data": "AA==", "format": "flac"}}))
    assert (media.kind, media.media_type, media.data) == ("audio", "audio/flac", "AA==")


def test_a_citation_is_read_as_it_was_written():
    citation = Citation("https://a.example/", "A", start=1, end=4)
    assert read_url_citation(write_url_citation(citation)) == ([citation], [])


@pytest.mark.parametrize("raw", [None, {}, {"url": 1}])
def test_what_has_no_address_is_no_citation(raw):
    assert read_url_citation(raw) == ([], ())


def test_a_citation_at_an_impossible_place_has_none():
    raw = {"url": "u", "start_index": 4, "end_index": 1, "content": "quote", "date": "today", "title": None}
    [citation], others = read_url_citation(raw, "content")
    assert (citation.start, citation.end, citation.quote, others) == (None, None, "quote", ["date"])


def test_parallel_calls_make_a_choice_of_their_own():
    assert with_parallel(None, None) is None
    assert with_parallel(None, False) == ToolChoice(parallel=False)
    assert with_parallel(ToolChoice("none"), True) == ToolChoice("none", parallel=True)


def test_a_choice_in_an_unknown_word_is_refused_with_its_place():
    assert mode_of_choice("none", "tool_choice") == ToolChoice("none")
    with pytest.raises(BadRequest, match="tool_choice"):
        mode_of_choice("any", "tool_choice")
