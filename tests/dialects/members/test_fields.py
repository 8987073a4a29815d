"""Reading bodies member by member: types, paths, what nobody took, ``data:`` URIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects.members.fields import Fields, base64_of, fields_of, is_data_uri, media_of
from streamkit.errors import BadRequest


def fields(**members: Any) -> Fields:
    return fields_of(json.dumps(members).encode())


def test_what_nobody_took_is_kept_at_every_depth():
    read = fields(a=1, b={"c": 2, "d": {"e": 3, "f": 4}, "g": None}, h={"i": 5}, j={"k": 6}, n=None)
    opened = read.needed_fields("b")
    assert opened.integer("c") == 2
    assert opened.needed_fields("d").integer("e") == 3
    assert read.needed_fields("j").integer("k") == 6
    assert read.rest() == {"a": 1, "h": {"i": 5}, "b": {"d": {"f": 4}}}
    assert read.rest() == {}


def test_null_is_absent():
    read = fields(a=None)
    assert "a" not in read
    assert (read.string("a"), read.fields("a"), read.listed("a"), read.peek("a")) == (None, None, [], None)


def test_peeking_takes_nothing():
    read = fields(a=1)
    assert read.peek("a") == read.take("a") == 1
    assert read.peek("a") is None


def test_content_is_text_or_objects():
    assert fields(a="text").text_or_each("a") == "text"
    assert fields().text_or_each("a") == ""
    [first] = fields(a=[{"b": 1}]).text_or_each("a")
    assert first.at("b") == "a[0].b"


@pytest.mark.parametrize(
    ("value", "found"), [({"type": "x"}, True), ({}, True), ({"type": 5}, True), ({"type": "y"}, False), (None, False)]
)
def test_an_object_of_another_type_stays_where_it_is(value, found):
    read = fields(a=value)
    assert (read.fields_of_type("a", {"x"}) is not None) is found
    if not found:
        assert read.rest() == ({} if value is None else {"a": value})


@pytest.mark.parametrize(
    ("take", "path", "reason"),
    [
        (lambda read: read.needed("x"), "x", "is missing; must be a string"),
        (lambda read: read.needed_fields("x"), "x", "is missing; must be an object"),
        (lambda read: read.needed_each("x"), "x", "is missing; must be a list"),
        (lambda read: read.string("number"), "number", "must be a string, not an integer"),
        (lambda read: read.number("flag"), "flag", "must be a number, not a boolean"),
        (lambda read: read.strings("list"), "list[0]", "must be a string, not an integer"),
        (lambda read: list(read.each("list")), "list[0]", "must be an object, not an integer"),
        (lambda read: read.text_or_each("number"), "number", "must be a string or a list of objects, not an integer"),
        (lambda read: read.fields_of_type("number", {"x"}), "number", "must be an object, not an integer"),
        (lambda read: read.needed_fields("inner").needed("a"), "inner.a", "must be a string"),
    ],
)
def test_what_is_of_the_wrong_type_is_named(take, path, reason):
    with pytest.raises(BadRequest) as caught:
        take(fields(number=1, flag=True, list=[1], inner={}))
    assert caught.value.path == path
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("uri", "media"),
    [
        ("data:image/png;base64,AAAA", ("image/png", "AAAA")),
        ("DATA:Image/PNG;charset=x;BASE64,AA==", ("image/png", "AA==")),
        ("data:;base64,", ("text/plain", "")),
    ],
)
def test_a_data_uri_has_a_type_and_base64(uri, media):
    assert is_data_uri(uri)
    assert media_of(uri, "p") == media


@pytest.mark.parametrize(
    "uri", ["data:image/png", "data:image/png,AAAA", "data:;base64,A", "data:;base64,AA\nAA", "data:;base64,ä"]
)
def test_a_bad_data_uri_is_refused(uri):
    with pytest.raises(BadRequest, match=r"^p: .*base64"):
        media_of(uri, "p")


def test_an_address_is_no_data_uri():
    assert not is_data_uri("https://x.test/data:")


def test_base64_stands_alone():
    assert base64_of("AA==", "p") == "AA=="
    with pytest.raises(BadRequest, match="p: must be base64 without a data: prefix"):
        base64_of("data:image/png;base64,AA==", "p")


@pytest.mark.parametrize("opener", [b"[", b'{"a":'])
def test_what_is_nested_too_deep_to_be_written_again_is_refused(opener):
    closer = b"]" if opener == b"[" else b"}"
    assert "x" in fields_of(b'{"x":' + opener * 200 + b"1" + closer * 200 + b"}")
    with pytest.raises(BadRequest, match="x: nested deeper than 200 levels"):
        fields_of(b'{"x":' + opener * 201 + b"1" + closer * 201 + b"}")


def camel(name: str) -> str:
    first, *others = name.split("_")
    return "".join([first, *map(str.capitalize, others)])


def test_members_may_have_several_names_and_paths_have_the_one_that_came():
    read = fields(a_b={"c_d": [{"e_f": 1.0}]}, g_h={"i_j": 1}, kL=2).spelled(camel)
    assert read.names == ["aB", "gH", "kL"]
    [inner] = read.needed_fields("aB").each("cD")
    assert inner.at("eF") == "a_b.c_d[0].e_f"
    assert inner.at("other") == "a_b.c_d[0].other"
    assert inner.text_of("eF") == "1.0"
    assert read.rest() == {"gH": {"i_j": 1}, "kL": 2}


def test_a_member_that_is_said_by_two_names_is_refused():
    with pytest.raises(BadRequest, match="a_b: the member is also given as aB"):
        fields(aB=1, a_b=2).spelled(camel)
