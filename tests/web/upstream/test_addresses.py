from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from streamkit.dialects import DIALECTS, dialect_named
from streamkit.dialects.http import HTTP, Operation
from streamkit.errors import BadRequest, UsageError
from streamkit.web.upstream import Secret, Upstream
from streamkit.web.upstream.requests import address


def upstream(dialect: str, base_url: str = "https://h", **values: Any) -> Upstream:
    return Upstream(name="up", dialect=dialect, base_url=base_url, **{"key": Secret("0123456789"), **values})


def azure(base_url: str, dialect: str = "openai-chat", **values: Any) -> Upstream:
    return upstream(dialect, base_url, **{"auth": "azure", "api_version": "2024-10-21", **values})


@pytest.mark.parametrize(
    ("where", "stream", "whole"),
    [
        (upstream("openai-chat", "https://h/v1"), "/v1/chat/completions", None),
        (upstream("openai-chat", "https://h/v1/"), "/v1/chat/completions", None),
        (upstream("deepseek", "https://h"), "/chat/completions", None),
        (upstream("gemini-openai", "https://h/v1beta/openai/"), "/v1beta/openai/chat/completions", None),
        (upstream("openai-responses", "https://h/v1"), "/v1/responses", None),
        (upstream("anthropic"), "/v1/messages", None),
        (upstream("anthropic", "https://h/"), "/v1/messages", None),
        (upstream("anthropic", "https://h/v1"), "/v1/messages", None),
        (upstream("anthropic", "https://h/anthropic"), "/anthropic/v1/messages", None),
        (upstream("ollama", "http://h:11434"), "/api/chat", None),
        (upstream("ollama", "http://h:11434/api/"), "/api/chat", None),
        (upstream("cohere"), "/v2/chat", None),
        (upstream("cohere", "https://h/v2"), "/v2/chat", None),
        (upstream("mistral"), "/v1/chat/completions", None),
        (upstream("mistral", "https://h/v1"), "/v1/chat/completions", None),
        (upstream("gemini"), "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models/m:generateContent"),
        (
            upstream("gemini", "https://h/v1"),
            "/v1/models/m:streamGenerateContent?alt=sse",
            "/v1/models/m:generateContent",
        ),
        (
            upstream("gemini", "https://h/v1/account/gateway/google-ai-studio"),
            "/v1/account/gateway/google-ai-studio/v1beta/models/m:streamGenerateContent?alt=sse",
            "/v1/account/gateway/google-ai-studio/v1beta/models/m:generateContent",
        ),
        (
            upstream("gemini", "https://h/v1/projects/p/locations/l/publishers/google"),
            "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse",
            "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
        ),
        (upstream("bedrock"), "/model/m/converse-stream", "/model/m/converse"),
        (azure("https://h"), "/openai/deployments/m/chat/completions?api-version=2024-10-21", None),
        (azure("https://h/openai"), "/openai/deployments/m/chat/completions?api-version=2024-10-21", None),
        (
            azure("https://h/openai/deployments/d/"),
            "/openai/deployments/d/chat/completions?api-version=2024-10-21",
            None,
        ),
        (azure("https://h", auth="bearer"), "/openai/deployments/m/chat/completions?api-version=2024-10-21", None),
        (azure("https://h", api_version="a&b"), "/openai/deployments/m/chat/completions?api-version=a%26b", None),
        (azure("https://h", "openai-responses"), "/openai/responses?api-version=2024-10-21", None),
        (azure("https://h/openai/deployments/d", "openai-responses"), "/openai/responses?api-version=2024-10-21", None),
        (azure("https://h/openai/v1/", api_version=None), "/openai/v1/chat/completions", None),
        (azure("https://h/openai/v1", api_version="preview"), "/openai/v1/chat/completions?api-version=preview", None),
        (azure("https://h/openai/v1", "openai-responses", api_version=None), "/openai/v1/responses", None),
        (azure("https://h/anthropic", "anthropic", api_version=None), "/anthropic/v1/messages", None),
    ],
)
def test_a_request_goes_where_the_dialects_own_clients_send_it(where: Upstream, stream: str, whole: str | None):
    assert address(where, "m", stream=True).raw_path_qs == stream
    assert address(where, "m", stream=False).raw_path_qs == (whole or stream)


def test_every_built_in_dialect_has_an_address():
    for dialect in DIALECTS.built_in.keys() - {"ag-ui", "ai-sdk"}:  # asked at their own URLs
        assert str(address(upstream(dialect), "m", stream=True)) != "https://h"


def test_the_base_url_of_a_dialect_that_names_no_path_is_the_address(monkeypatch: pytest.MonkeyPatch):
    other = evolve(dialect_named("openai-chat"), name="other", http=HTTP())
    monkeypatch.setattr(DIALECTS, "built_in", {**DIALECTS.built_in, "other": other})
    assert str(address(upstream("other", "https://h/some/where/"), "m", stream=True)) == "https://h/some/where"


@pytest.mark.parametrize(
    ("where", "model", "path"),
    [
        (upstream("gemini"), "models/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent"),
        (upstream("gemini"), "tunedModels/mine", "/v1beta/tunedModels/mine:generateContent"),
        (upstream("gemini"), "models/", "refused"),
        (upstream("gemini"), "a b/../c?key=1#x", "refused"),
        (upstream("gemini"), "a?key=1#x&y%", "/v1beta/models/a%3Fkey=1%23x&y%25:generateContent"),
        (upstream("gemini"), "models/../../v1/files", "refused"),
        (upstream("gemini"), "tunedModels/.", "refused"),
        (upstream("gemini"), "", "refused"),
        (upstream("gemini"), "m" * 2049, "refused"),
        (upstream("bedrock"), "anthropic.claude-v1:0", "/model/anthropic.claude-v1%3A0/converse"),
        (
            upstream("bedrock"),
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.x",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse",
        ),
        (
            upstream("bedrock"),
            "arn:aws-us-gov:bedrock:us-gov-west-1:123456789012:application-inference-profile/a1b2",
            "/model/arn%3Aaws-us-gov%3Abedrock%3Aus-gov-west-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2/converse",
        ),
        (
            upstream("bedrock"),
            "arn:aws:bedrock:us-east-1:1:custom-model/amazon.nova/a1/b2",
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Acustom-model%2Famazon.nova%2Fa1%2Fb2/converse",
        ),
        (upstream("bedrock"), "..", "refused"),
        (upstream("bedrock"), "../../x", "refused"),
        (upstream("bedrock"), "a/../../x", "refused"),
        (upstream("bedrock"), "a/..", "refused"),
        (upstream("bedrock"), "a/./b", "refused"),
        (upstream("bedrock"), "/x", "refused"),
        (upstream("bedrock"), "x/", "refused"),
        (upstream("bedrock"), "a//b", "refused"),
        (upstream("bedrock"), "..\\..\\x", "refused"),
        (upstream("bedrock"), "%2e%2e%2Fx", "refused"),
        (upstream("gemini"), "%2e%2e", "refused"),
        (upstream("gemini"), "..%2f..%2fx", "refused"),
        (upstream("gemini"), "hf.co/org/x:Q4_K_M", "/v1beta/models/hf.co/org/x:Q4_K_M:generateContent"),
        (upstream("gemini"), "publishers/google/models/g", "/v1beta/models/publishers/google/models/g:generateContent"),
        (
            upstream("gemini", "https://h/v1/projects/p/locations/l/publishers/google"),
            "publishers/meta/models/llama",
            "/v1/projects/p/locations/l/publishers/meta/models/llama:generateContent",
        ),
        (
            upstream("gemini", "https://h/v1/projects/p/locations/l/publishers/google"),
            "endpoints/123",
            "/v1/projects/p/locations/l/endpoints/123:generateContent",
        ),
        (upstream("gemini", "https://h/v1/projects/p/locations/l/publishers/google"), "publishers/../../x", "refused"),
        (azure("https://h"), "../x", "refused"),
        (upstream("bedrock"), "schön\r\n", "/model/sch%C3%B6n%0D%0A/converse"),
        (azure("https://h"), "my dep/x", "/openai/deployments/my%20dep%2Fx/chat/completions?api-version=2024-10-21"),
        (azure("https://h"), "..", "refused"),
        (azure("https://h"), "\udcff", "/openai/deployments/%3F/chat/completions?api-version=2024-10-21"),
        (upstream("openai-chat", "https://h/v1"), "../../x", "/v1/chat/completions"),
    ],
)
def test_a_models_name_is_one_segment_of_the_path_or_refused(where: Upstream, model: str, path: str):
    if path == "refused":
        with pytest.raises(BadRequest, match=r"^model: must have 1 to 2,048 characters"):
            address(where, model, stream=False)
    else:
        assert str(address(where, model, stream=False)) == f"https://h{path}"


COUNTS: dict[str, str] = {
    "anthropic": "/v1/messages/count_tokens",
    "openai-responses": "/responses/input_tokens",
    "gemini": "/v1beta/models/m:countTokens",
    "bedrock": "/model/m/count-tokens",
}


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
def test_who_can_count_has_an_address_for_it_and_the_others_say_that_they_have_none(dialect: str):
    where = upstream(dialect)
    count: Operation = "count"
    assert (where.token_count is not None) == (dialect in COUNTS)
    if dialect in COUNTS:
        assert str(address(where, "m", stream=False, operation=count)) == f"https://h{COUNTS[dialect]}"
        assert str(address(where, "m", stream=True, operation=count)) == f"https://h{COUNTS[dialect]}"
    else:
        with pytest.raises(UsageError, match=f"up can't count tokens: {dialect}"):
            address(where, "m", stream=False, operation=count)


def test_azures_deployments_count_nothing():
    assert azure("https://h", "openai-responses").token_count is None
    assert azure("https://h/openai/v1", "openai-responses", api_version=None).token_count is not None


def test_a_host_in_letters_of_its_own_is_written_as_it_is_resolved():
    where = upstream("openai-chat", "https://münchen.example/v1")
    assert str(address(where, "m", stream=True)) == "https://xn--mnchen-3ya.example/v1/chat/completions"
