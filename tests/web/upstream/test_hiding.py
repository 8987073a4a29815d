"""Keys are cut out of what upstreams say when they fail, however they write them, and out of nothing else."""

import orjson
import pytest

from streamkit.errors import BrokenFrame
from streamkit.events import ProviderFailed
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.web.upstream import Secret, Upstream, hidden, redactor
from streamkit.web.upstream.hiding import without_keys, without_keys_in
from tests.web.faults import _written, failure, speech

KEY = "Zq7/canary+0123456789=abcdefghij"


def upstream(key=KEY, **values):
    usual = {"name": "up", "dialect": "openai-chat", "base_url": "https://h/v1", "key": Secret(key)}
    return Upstream(**{**usual, **values})


CUT = redactor([upstream()])


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        KEY.replace("/", "\\/"),
        KEY.replace("+", "\\u002b").replace("/", "\\u002F"),
        KEY.replace("=", "\\u003D"),
        KEY.replace("/", "\\\\/"),  # an excerpt of the second, in quotes
        "Zq7%2Fcanary%2B0123456789%3Dabcdefghij",
        orjson.dumps(KEY).decode()[1:-1],
    ],
)
def test_a_key_is_found_as_json_and_urls_write_it(written):
    assert CUT(f"a {written} b") == "a [removed] b"
    assert CUT(f'{{"a":"{written}{written}","b":1}}') == '{"a":"[removed][removed]","b":1}'


@pytest.mark.parametrize("size", range(8, len(KEY)))
def test_the_beginning_of_a_key_is_one_where_a_quotation_or_the_text_ends(size):
    part = KEY[:size]
    assert CUT(f"found '{part}'…") == "found '[removed]'…"
    assert CUT(f'{{"a":"say \\"{part}\\" again"}}') == '{"a":"say \\"[removed]\\" again"}'
    assert CUT(f"{part}…") == "[removed]…"
    assert CUT(part) == "[removed]"
    assert CUT(f"{part} is another's") == f"{part} is another's"


def test_an_excerpt_of_an_error_of_ours_shows_no_part_of_a_key():
    for before in range(60):
        error = BrokenFrame("no JSON", b"x" * before + KEY.encode().replace(b"/", b"\\/"))
        assert not any(KEY[at : at + 8] in CUT(str(error)) for at in range(8, len(KEY) - 8)), before


def test_of_two_keys_with_one_beginning_both_are_cut_whole():
    keys = ["sk-proj-" + "a" * 40, "sk-proj-" + "a" * 30 + "b" * 20, "sk-proj-" + "/" * 30]
    cut = redactor([upstream(key) for key in keys])
    for key in keys:
        assert cut(f'"{key}" {key}') == '"[removed]" [removed]'
    assert cut("sk-proj-other is not known") == "sk-proj-other is not known"


def test_a_session_that_was_sent_is_a_key():
    sigv4 = Upstream(name="up", dialect="bedrock", base_url="https://h", auth="sigv4", region="eu-west-1")
    cut = redactor([sigv4], {"x-amz-security-token": KEY, "authorization": "AWS4-HMAC-SHA256 Credential=AKID"})
    assert cut(f"x-amz-security-token:{KEY}\nhost:h") == "x-amz-security-token:[removed]\nhost:h"
    assert redactor([sigv4])(KEY) == KEY


def test_a_failure_is_hidden_in_all_that_it_says():
    raw = {"error": {KEY: [KEY, 1, None, {"a": KEY}], "message": f"no {KEY}", "n": 10**30}}
    failed = ProviderFailed("auth", f"no {KEY}", KEY, KEY, 401, raw, "openai", 7.0)
    assert hidden(failed, CUT) == ProviderFailed(
        "auth",
        "no [removed]",
        "[removed]",
        "[removed]",
        401,
        {"error": {"[removed]": ["[removed]", 1, None, {"a": "[removed]"}], "message": "no [removed]", "n": 10**30}},
        "openai",
        7.0,
    )
    assert KEY in str(failed)  # a copy
    assert hidden(ProviderFailed("server", "no"), CUT) == ProviderFailed("server", "no")


# -- streams -----------------------------------------------------------------------------------------------------------


async def passed(chunks, to, report):
    out = []
    async with transcode(source_of(chunks), "openai-chat", to, report=report) as stream:
        async for chunk in stream:
            out.append(without_keys(chunk, CUT, report))
    return b"".join(out)


@pytest.mark.parametrize("to", ["openai-chat", "anthropic", "ollama", "gemini", "openai-responses"])
async def test_an_answer_is_left_alone_though_the_model_says_a_key(to):
    """It may be a placeholder. A model is not sent the key: what it says, it has from the conversation."""
    chunks = [chunk.replace(b"Oslo.", KEY.encode()) for chunk in speech("openai-chat")]
    plain = []
    async with transcode(source_of(chunks), "openai-chat", to, ReadOptions(make_id=str), clock=lambda: 1.0) as stream:
        async for chunk in stream:
            plain.append(chunk)
    report = StreamReport()
    out = await passed(chunks, to, report)
    assert report.clean
    assert KEY.encode() in out
    if to == "openai-chat":
        assert out == b"".join(plain) == b"".join(chunks)


@pytest.mark.parametrize("to", ["openai-chat", "anthropic", "ollama", "gemini", "openai-responses"])
@pytest.mark.parametrize("escape", [False, True])
@pytest.mark.parametrize("cut", [1, 7, 10_000])
async def test_an_error_of_a_stream_is_hidden_however_the_network_cut_it(to, escape, cut):
    frame = b"".join(_written("openai-chat", [failure(500, f"who is {KEY}?")]))
    data = b"".join([*speech("openai-chat")[:5], frame.replace(b"/", b"\\/") if escape else frame])
    report = StreamReport()
    out = await passed([data[at : at + cut] for at in range(0, len(data), cut)], to, report)
    assert KEY in report.provider_error[1]  # the report is the operator's
    assert b"who is [removed]?" in out
    assert KEY.encode() not in out.replace(b"\\/", b"/")


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [KEY[:8], KEY[:-1], "Zq7", KEY[:8] + " "])
def test_a_hostile_text_is_gone_through_once(piece):
    """A server that knows the key may repeat its beginning; 16 MiB is the longest event. Going back would take hours."""
    text = piece * ((16 << 20) // len(piece))
    assert len(CUT(text)) > len(text) // 2


def test_a_redactor_is_made_once_for_the_same_keys():
    assert redactor([upstream()]) is redactor([upstream()])
    assert redactor([upstream("another-key-1")]) is not CUT


@pytest.mark.parametrize(
    ("values", "left"),
    [
        (("1", "req-1"), ("1", "req-1")),
        ((f"a {KEY}", "req-1"), ("a [removed]", "req-1")),
        ((KEY[:12], "req-1"), ("[removed]", "req-1")),  # the beginning of a key at the end of a value
        ((*["x" * 4000] * 5, KEY[:12]), (*["x" * 4000] * 5, "[removed]")),
    ],
    ids=["no key", "a key", "the beginning of a key", "more text than is searched at once"],
)
def test_keys_in_headers_are_cut_out_of_each_value(values, left):
    headers = {f"x-{number}": value for number, value in enumerate(values)}
    assert tuple(without_keys_in(headers, CUT).values()) == left
