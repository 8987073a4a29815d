"""Lists of models and their pages, in each dialect: that the official clients read them is in ``test_inventory.py``."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from streamkit.errors import BadRequest, UsageError
from streamkit.web.inventory import ModelCard, card_of, listing_of


def models_list(dialect: str, cards: list[ModelCard], query: dict[str, str] | None = None) -> dict[str, Any]:
    return listing_of(dialect).list(cards, query or {})


def model_detail(dialect: str, card: ModelCard) -> dict[str, Any]:
    return listing_of(dialect).detail(card)


CARDS = [ModelCard(id=f"m{number}") for number in range(5)]
NEWEST = ModelCard(id="acme/new:8b", tools=False, counts=True, created=1_750_000_000, owner="acme")


def anthropic(query: dict[str, str]) -> tuple[list[str], bool]:
    page = models_list("anthropic", CARDS, query)
    ids = [model["id"] for model in page["data"]]
    assert (page["first_id"], page["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
    return ids, page["has_more"]


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ({}, "m0 m1 m2 m3 m4", False),
        ({"limit": "5"}, "m0 m1 m2 m3 m4", False),
        ({"limit": "4"}, "m0 m1 m2 m3", True),
        ({"limit": "1000"}, "m0 m1 m2 m3 m4", False),
        ({"after_id": "m1"}, "m2 m3 m4", False),
        ({"after_id": "m1", "limit": "2"}, "m2 m3", True),
        ({"after_id": "m1", "limit": "3"}, "m2 m3 m4", False),
        ({"after_id": "m4"}, "", False),
        ({"before_id": "m3"}, "m0 m1 m2", False),
        ({"before_id": "m3", "limit": "2"}, "m1 m2", True),
        ({"before_id": "m3", "limit": "3"}, "m0 m1 m2", False),
        ({"before_id": "m0"}, "", False),
        ({"after_id": "", "before_id": "", "limit": ""}, "m0 m1 m2 m3 m4", False),
        ({"lifecycle[]": "active"}, "m0 m1 m2 m3 m4", False),
        ({"lifecycle[]": "retired"}, "", False),
    ],
)
def test_anthropics_pages(query, ids, has_more):
    assert anthropic(query) == (ids.split(), has_more)


def test_anthropics_pages_have_twenty_models_unless_it_is_said():
    page = models_list("anthropic", [ModelCard(id=f"m{number}") for number in range(30)])
    assert (len(page["data"]), page["has_more"]) == (20, True)


@pytest.mark.parametrize(
    ("dialect", "query", "path"),
    [
        ("anthropic", {"after_id": "none"}, "after_id"),
        ("anthropic", {"before_id": "none"}, "before_id"),
        ("anthropic", {"after_id": "m0", "before_id": "m3"}, "before_id"),
        *(("anthropic", {"limit": size}, "limit") for size in ("0", "1001", "-1", "1e3", "x", "²", "9" * 9999)),
        *(("gemini", {"pageSize": size}, "pageSize") for size in ("0", "1001", "-1")),
        ("gemini", {"pageToken": "none"}, "pageToken"),
    ],
)
def test_a_page_that_cant_be_is_a_bad_request_with_its_path(dialect, query, path):
    with pytest.raises(BadRequest) as caught:
        models_list(dialect, CARDS, query)
    assert caught.value.path == path
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_geminis_pages_lead_from_one_to_the_next(size):
    query: dict[str, str] = {"pageSize": str(size)}
    names: list[str] = []
    for _ in range(9):
        page = models_list("gemini", CARDS, query)
        assert len(page["models"]) <= size
        names += [model["name"] for model in page["models"]]
        if "nextPageToken" not in page:
            break
        query["pageToken"] = page["nextPageToken"]
    assert names == [f"models/{card.id}" for card in CARDS]


def test_a_card_says_what_may_be_asked():
    assert model_detail("gemini", NEWEST)["supportedGenerationMethods"][-1] == "countTokens"
    assert "countTokens" not in model_detail("gemini", CARDS[0])["supportedGenerationMethods"]
    assert model_detail("ollama", NEWEST)["capabilities"] == ["completion"]
    assert model_detail("ollama", CARDS[0])["capabilities"] == ["completion", "tools"]


def test_a_card_of_a_known_model_says_its_sizes():
    card, unknown = evolve(card_of("google/gemini-2.5-flash"), owner="acme"), card_of("my-deployment")
    sizes = (1_048_576, 65_536)
    for dialect, names in {
        "openai-chat": ("context_length", "max_completion_tokens"),
        "openai-responses": ("context_length", "max_completion_tokens"),
        "anthropic": ("max_input_tokens", "max_tokens"),
        "gemini": ("inputTokenLimit", "outputTokenLimit"),
    }.items():
        assert tuple(model_detail(dialect, card)[name] for name in names) == sizes
        assert not model_detail(dialect, unknown).keys() & {*names}
    for dialect in ("openai-chat", "openai-responses"):
        shown = model_detail(dialect, card)
        assert shown["top_provider"] == {"context_length": sizes[0], "max_completion_tokens": sizes[1]}
        assert shown["architecture"]["input_modalities"] == ["text", "image", "file", "audio", "video"]
        assert not model_detail(dialect, unknown).keys() & {"architecture", "top_provider"}
    assert model_detail("gemini", card)["thinking"] is True
    assert "thinking" not in model_detail("gemini", unknown)
    shown = model_detail("ollama", card)
    assert shown["model_info"]["acme.context_length"] == sizes[0]
    assert shown["capabilities"] == ["completion", "tools", "vision", "thinking"]
    assert model_detail("ollama", unknown)["capabilities"] == ["completion", "tools"]


def test_times_are_told_as_each_dialect_does():
    assert model_detail("openai-chat", NEWEST)["created"] == 1_750_000_000
    assert model_detail("anthropic", NEWEST)["created_at"] == "2025-06-15T15:06:40.000000Z"
    assert model_detail("anthropic", CARDS[0])["created_at"] == "1970-01-01T00:00:00.000000Z"
    assert models_list("ollama", [NEWEST])["models"][0]["modified_at"] == "2025-06-15T15:06:40.000000Z"


def test_digests_are_stable_and_each_models_own():
    digests = [model["digest"] for model in models_list("ollama", [*CARDS, *CARDS])["models"]]
    assert digests[:5] == digests[5:]
    assert len(set(digests)) == 5
    assert all(len(digest) == 64 and int(digest, 16) for digest in digests)


def zed_reads(listing: dict[str, Any]) -> None:
    """What its reader of ``/api/tags`` demands (crates/ollama, ``LocalModelListing``): no member may be missing or null."""
    for model in listing["models"]:
        assert {name: type(model[name]) for name in ("name", "modified_at", "size", "digest", "details")} == {
            "name": str, "modified_at": str, "size": int, "digest": str, "details": dict,
        }  # fmt: skip
        assert model["size"] >= 0
        details = model["details"]
        assert all(
            isinstance(details[name], str) for name in ("format", "family", "parameter_size", "quantization_level")
        )
        assert all(isinstance(family, str) for family in details["families"])


def test_zed_reads_ollamas_list():
    zed_reads(models_list("ollama", [*CARDS, NEWEST]))


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"])
def test_no_models_are_a_list_too(dialect):
    listing = models_list(dialect, [])
    assert [value for value in listing.values() if isinstance(value, list)] == [[]]


def test_a_dialect_that_is_not_served_has_no_list():
    with pytest.raises(UsageError, match="'cohere' has no list of models"):
        models_list("cohere", CARDS)
    with pytest.raises(UsageError):
        model_detail("cohere", CARDS[0])
