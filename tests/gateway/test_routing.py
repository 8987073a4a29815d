"""A model finds its route: names before patterns, patterns in their order, and its name at each upstream."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.gateway.routing import Route, Routes, Target, covers
from streamkit.toml.findings import Refusal
from streamkit.web.upstream import Upstream


def upstream(name, **more):
    return Upstream(name=name, dialect="openai-chat", base_url="http://127.0.0.1:9/v1", auth="none", **more)


A, B = upstream("a"), upstream("b", tools=False)


def route(*models, to=A, model=None, **more):
    return Route(models=models, targets=(Target(upstream=to, model=model),), **more)


def test_a_name_wins_over_patterns_and_of_patterns_the_first():
    anything, named, gpt = route("*"), route("gpt-4o"), route("gpt-*")
    routes = Routes([gpt, anything, named])
    assert routes.find("gpt-4o") is named
    assert routes.find("gpt-5") is gpt
    assert routes.find("claude") is anything
    assert Routes([named, gpt]).find("claude") is None
    assert Routes([named, gpt]).find("GPT-5") is None, "case counts"


def test_patterns_are_those_of_shells_and_a_star_matches_slashes():
    routes = Routes([route("or/*"), route("m?"), route("x[12]")])
    assert routes.find("or/meta/llama") is not None
    assert routes.find("m1") is not None
    assert routes.find("m12") is None
    assert routes.find("x2") is not None
    assert routes.find("x3") is None
    assert routes.find("or/a\nb") is not None, "whatever a client sends"


def test_only_names_are_listed_in_the_order_of_the_routes():
    routes = Routes([route("z", "gpt-*", "a"), route("b", to=B)])
    assert list(routes.named) == ["z", "a", "b"]
    assert [found.tools for found in routes.named.values()] == [True, True, False]


@pytest.mark.parametrize(
    ("pattern", "model", "asked", "called"),
    [
        ("or/*", "*", "or/meta/llama", "meta/llama"),
        ("gpt-*", "openai/gpt-*", "gpt-4o", "openai/gpt-4o"),
        ("*-fast", "*", "qwen-fast", "qwen"),
        ("a*a", "<*>", "aXa", "<X>"),
        ("gpt-*", "renamed", "gpt-4o", "renamed"),
        ("gpt-*", None, "gpt-4o", None),
    ],
)
def test_a_star_in_the_new_name_is_what_the_patterns_star_matched(pattern, model, asked, called):
    found = Routes([route(pattern, model=model)]).find(asked)
    assert found.targets == (Target(upstream=A, model=called),)
    assert found.name == pattern, "metrics know few routes"


@pytest.mark.parametrize("asked", ["or/", "or/ ", "or/*", "or/a*b"])
def test_a_rest_that_is_no_name_finds_no_route(asked):
    assert Routes([route("or/*", model="*")]).find(asked) is None


def test_other_legs_keep_their_names():
    targets = (Target(upstream=A, model="*"), Target(upstream=B), Target(upstream=B, model="fixed"))
    found = Routes([Route(models=("or/*",), targets=targets)]).find("or/x")
    assert [target.model for target in found.targets] == ["x", None, "fixed"]


@pytest.mark.parametrize("model", ["name", "a*b*", "m?*", "x[12]*"])
def test_a_star_needs_one_star_in_each_of_the_models(model):
    with pytest.raises(Refusal, match="may have a \\* only if") as refused:
        route("or/*", model, model="*")
    assert refused.value.at == ("targets", 0)


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"models": ()}, ()),
        ({"models": ("a", " ")}, (1,)),
        ({"targets": ()}, ()),
        ({"backoff_s": 9.0}, ("backoff_max_s",)),
    ],
)
def test_a_route_refuses_what_can_t_be(more, at):
    with pytest.raises(Refusal) as refused:
        Route(**{"models": ("a",), "targets": (Target(upstream=A),), **more})
    assert refused.value.at == at


def test_a_legs_name_is_not_blank_and_has_one_star_at_most():
    for model in ("", " ", "a*b*"):
        with pytest.raises(Refusal):
            Target(upstream=A, model=model)


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("*", "gpt-*", True),
        ("gpt*", "gpt-4*", True),
        ("gpt-4*", "gpt*", False),
        ("a?", "a*", False),
        ("a?", "a[bc]", True),
        ("a[bc]", "a[bc]", True),
        ("a[bc]", "ab", True),
        ("a[!b]", "ab", False),
        ("*-mini", "gpt-*-mini", True),
        ("*a*", "b?a", True),
        ("**", "x", True),
        ("a", "", False),
    ],
)
def test_a_pattern_covers_another(wide, narrow, covered):
    assert covers(wide, narrow) is covered


WORDS = st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", "[", "]"]), max_size=6).map("".join)


@given(WORDS, WORDS, st.lists(st.text("ab[]", max_size=6), max_size=30))
def test_what_a_pattern_covers_it_matches_as_well(wide, narrow, names):
    if covers(wide, narrow):
        matched = [name for name in names if fnmatch.fnmatchcase(name, narrow)]
        assert [name for name in matched if not fnmatch.fnmatchcase(name, wide)] == []


@given(WORDS)
def test_a_pattern_covers_itself_and_is_covered_by_the_star(pattern):
    assert covers(pattern, pattern)
    assert covers("*", pattern)
