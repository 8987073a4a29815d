"""Which recorded request a request matches, and what is said of one that matches none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.errors import UsageError
from streamkit.lab.recording import RecordedRequest, sha256_of
from streamkit.lab.recording.matching import RequestMatcher, differences, pattern_in

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def request(body: bytes | None = b"", path: str = "/v1/messages", method: str = "POST", sha256=None) -> RecordedRequest:
    return RecordedRequest(method=method, path=path, body=body, body_sha256=sha256)


def matched(asked: bytes, recorded: bytes, **how) -> bool:
    return RequestMatcher([request(recorded)], **how).matches(request(asked)) == [0]


def reason(asked: bytes, *recorded: bytes, **how) -> str:
    return RequestMatcher([*map(request, recorded)], **how).explain(request(asked)).reason


def test_the_order_of_members_and_blanks_mean_nothing_unless_an_exact_match_is_wanted():
    asked, recorded = b'{"a": 1, "b": [{"c": 2, "d": 3}]}', b'{"b":[{"d":3,"c":2}],"a":1}'
    assert matched(asked, recorded)
    assert not matched(asked, recorded, exact=True)
    assert matched(asked, asked, exact=True)
    assert "in other bytes" in reason(asked, recorded, exact=True)


@pytest.mark.parametrize(
    ("asked", "recorded"),
    [
        (b"[9007199254740993]", b"[9007199254740992.0]"),
        (b"[1.0]", b"[1]"),
        (b"[1]", b'["1"]'),
        (b"[1]", b"[true]"),
        (b"[1e400]", b"[1e401]"),
        (b"[[]]", b"[{}]"),
        (b"[null]", b"[]"),
        (b'{"a":null}', b"{}"),
        (b"[1,2]", b"[2,1]"),
    ],
)
def test_what_is_written_otherwise_is_something_else(asked, recorded):
    assert not matched(asked, recorded)
    assert not matched(recorded, asked)


@given(VALUES, VALUES)
def test_two_values_differ_as_their_sorted_texts_do(one, other):
    texts = [json.dumps(value, sort_keys=True) for value in (one, other)]
    assert matched(*(text.encode() for text in texts)) == (texts[0] == texts[1])
    assert list(differences(one, one)) == []


def test_ignored_paths_may_differ_or_be_absent():
    asked = b'{"metadata":{"user_id":"a"},"messages":[{"id":"1","content":"x"},{"id":"2","content":"y"}]}'
    recorded = b'{"metadata":{},"messages":[{"id":"3","content":"x"},{"content":"y"}]}'
    ignored = [pattern_in("metadata.user_id"), pattern_in("messages[*].id")]
    assert matched(asked, recorded, ignored=ignored)
    assert not matched(asked, recorded, ignored=ignored[1:])
    assert not matched(asked, recorded, ignored=[pattern_in("metadata[*]"), ignored[1]])
    assert not matched(asked, recorded, ignored=[ignored[0], pattern_in("messages[0].id")])


@pytest.mark.parametrize("text", ["", ".a", "a.", "a..b", "[0]", "a[", "a[x]", "a[-1]", "a.[0]"])
def test_what_is_no_path_is_refused(text):
    with pytest.raises(UsageError, match="not a path in a JSON body"):
        pattern_in(text)


def test_a_path_has_names_and_positions():
    assert pattern_in("a[*].b-c[12]") == ("a", None, "b-c", 12)


def test_method_and_path_must_be_the_same_and_keys_in_a_query_are_passed_over():
    matcher = RequestMatcher([request(path="/v1/models?key=AIza1&page=2"), request(path="/v1/models", method="GET")])
    assert matcher.matches(request(path="/v1/models?page=2&key=other")) == [0]
    assert matcher.matches(request(path="/v1/models?page=2")) == [0]
    assert RequestMatcher([request(path="/?a&b")]).matches(request(path="/?b&a")) == [0]
    assert matcher.matches(request(path="/v1/models?page=3")) == []
    assert matcher.matches(request(path="/v1/models", method="GET")) == [1]
    assert matcher.explain(request(path="/v2")).reason == (
        "the recorded requests are 'GET /v1/models', 'POST /v1/models?page=2'"
    )


def test_a_recorded_path_may_begin_with_that_of_the_provider():
    recorded = [request(path="/api/v1/messages?a=1")]
    assert RequestMatcher(recorded).matches(request(path="/v1/messages?a=1")) == [0]
    assert RequestMatcher(recorded, exact=True).matches(request(path="/v1/messages?a=1")) == []
    assert RequestMatcher(recorded).matches(request(path="/v2/messages?a=1")) == []


def test_a_body_that_was_not_kept_is_matched_by_its_sum():
    matcher = RequestMatcher([request(None, sha256=sha256_of(b"[1]"))])
    assert matcher.matches(request(b"[1]")) == [0]
    assert matcher.matches(request(b"[1] ")) == []
    assert (
        matcher.explain(request(b"[1] ")).reason
        == "the request has a body of 4 bytes, the recording one that was not kept"
    )
    assert RequestMatcher([request(None)]).matches(request()) == [0]


def test_bodies_that_are_no_json_are_matched_by_their_bytes():
    deep = b"[" * 100_000
    assert matched(b"\xff\x00", b"\xff\x00")
    assert matched(deep, deep)
    assert reason(b"\xff", b"\xfe\xfe") == "the request has a body of 1 bytes, the recording one of 2 bytes"


def test_the_reason_is_the_first_difference_from_the_nearest():
    recorded = [
        b'{"model":"n","messages":[{"content":"x"},{"content":"y"}]}',
        b'{"model":"m","messages":[{"content":"x"},{"content":"b"}]}',
    ]
    miss = RequestMatcher([*map(request, recorded)]).explain(
        request(b'{"model":"m","messages":[{"content":"x"},{"content":"a"}]}')
    )
    assert miss == ("messages[1].content: 'a' in the request, 'b' in the recording", 1)


@pytest.mark.parametrize(
    ("asked", "recorded", "said"),
    [
        (b'{"a":1,"b":2}', b'{"a":1}', "b: 2 in the request, nothing in the recording"),
        (b'{"a":[]}', b'{"a":["x"]}', "a[0]: nothing in the request, 'x' in the recording"),
        (b'{"b":1,"a":2}', b'{"a":1,"b":2}', "b: 1 in the request, 2 in the recording"),
        (b"[1,2]", b"[2,1]", "[0]: 1 in the request, 2 in the recording"),
        (b"[1.0]", b"[1]", "[0]: 1.0 in the request, 1 in the recording"),
        (b'"a"', b'"b"', "body: 'a' in the request, 'b' in the recording"),
        (b'{"a":{"b":1}}', b'{"a":[1]}', "a: {'b': 1} in the request, [1] in the recording"),
    ],
)
def test_the_reason_names_the_path(asked, recorded, said):
    assert reason(asked, recorded) == said


def test_the_reason_is_short_shows_where_long_texts_differ_and_has_no_key():
    shared = "x" * 10_000
    asked, recorded = (json.dumps({"a": f"{shared}{end} sk-canary0123456789"}).encode() for end in ("one", "two"))
    said = reason(asked, recorded)
    assert said.startswith("a: '…xxxxxxxxxxone ")
    assert "two" in said
    assert len(said) < 200
    assert "canary" not in said
