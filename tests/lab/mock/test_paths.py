"""Each dialect is asked where its official clients ask, and no two at one path."""

from __future__ import annotations

from collections import Counter

from streamkit.dialects import DIALECTS
from streamkit.lab.mock.server import places


def test_no_path_is_of_two_dialects():
    patterns = Counter(path.pattern for place in places(DIALECTS.built_in) for path in place.paths)
    assert patterns.most_common(1)[0][1] == 1


def test_base_urls_are_those_of_the_clients():
    bases = {place.dialect: place.base for place in places(DIALECTS.built_in)}
    assert bases["openai-chat"] == bases["openai-responses"] == "/v1"
    assert bases["anthropic"] == bases["gemini"] == bases["ollama"] == bases["bedrock"] == ""
    assert (bases["mistral"], bases["ai-sdk"]) == ("/mistral", "/v1/ai-sdk")


def test_a_dialect_alone_needs_no_name_in_its_path():
    (place,) = places(["mistral"])
    assert (place.base, place.paths[0].pattern) == ("", "/v1/chat/completions")
