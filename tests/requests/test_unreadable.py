"""What only the provider that has it can read: refused towards every other dialect with a sentence, or dropped and counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from tests.requests.rows import at, translate
from tests.requests.test_media_elsewhere import chat, claude

TARGETS = [name for name, dialect in DIALECTS.built_in.items() if dialect.bodies is not None]
Q = {"type": "input_text", "text": "Q"}
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def responses(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"model": "m", "input": [*items, {"role": "user", "content": [Q]}], **members}


def gemini(**members: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": "Q"}]}], **members}


def interactions(**members: Any) -> dict[str, Any]:
    return {"model": "m", "input": "Q", **members}


def tool(**members: Any) -> dict[str, Any]:
    """A tool that refers to a store, after a function."""
    return {"tools": [FUNCTION, members]}


def container(**members: Any) -> dict[str, Any]:
    return tool(type="code_interpreter", container={"type": "auto", **members})


def shell(**members: Any) -> dict[str, Any]:
    return tool(type="shell", environment=members)


CALL = {
    "type": "computer_call",
    "call_id": "c",
    "id": "cu_1",
    "action": {"type": "screenshot"},
    "pending_safety_checks": [],
    "status": "completed",
}
SEEN = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "file_id": "file-1"}}
SKILLS = [{"type": "skill_reference", "skill_id": "s"}]
SPOKEN = {"role": "assistant", "audio": {"id": "audio_1"}}
LOOKED_UP = {
    "type": "tool_search_output",
    "call_id": "s",
    "execution": "server",
    "status": "completed",
    "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}],
}
BEDROCK = {"messages": [{"role": "user", "content": [{"text": "Q"}]}]}

#: The client's dialect, its body, the path that the error names, and some of its words.
ROWS = [
    ("anthropic", claude() | {"container": "c_1"}, "container", "a container by its id"),
    ("anthropic", claude() | {"container": {"id": "c_1"}}, "container.id", "a container by its id"),
    ("anthropic", claude() | {"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}}, "container.skills[0].skill_id", "a skill by its id"),
    ("anthropic", claude({"type": "container_upload", "file_id": "file_1"}), "messages[0].content[0]", "a file by its id"),
    ("anthropic", claude({"type": "image", "source": {"type": "file", "file_id": "file_1"}}), "messages[0].content[0]", "an image by its id"),
    ("openai-responses", responses(previous_response_id="resp_1"), "previous_response_id", "an earlier response by its id"),
    ("openai-responses", responses(conversation="conv_1"), "conversation", "a conversation by its id"),
    ("openai-responses", responses(prompt={"id": "pmpt_1"}), "prompt", "a prompt by its id"),
    ("openai-responses", responses({"type": "item_reference", "id": "msg_1"}), "input[0]", "an item by its id"),
    ("openai-responses", responses({"type": "image_generation_call", "id": "ig_1"}), "input[0]", "an image by its id"),
    ("openai-responses", responses({"type": "compaction", "encrypted_content": "x"}), "input[0]", "a compaction"),
    ("openai-responses", responses(CALL, SEEN), "input[1]", "an image by its id"),
    ("openai-responses", responses(LOOKED_UP), "input[0].tools[0].vector_store_ids", "a vector store by its id"),
    ("openai-responses", responses(**tool(type="file_search", vector_store_ids=["vs_1"])), "tools[1].vector_store_ids", "a vector store by its id"),
    ("openai-responses", responses(**tool(type="code_interpreter", container="cntr_1")), "tools[1].container", "a container by its id"),
    ("openai-responses", responses(**container(file_ids=["file-1"])), "tools[1].container.file_ids", "files by their ids"),
    ("openai-responses", responses(**container(skills=SKILLS)), "tools[1].container.skills[0].skill_id", "a skill by its id"),
    ("openai-responses", responses(**shell(type="container_reference", container_id="cntr_1")), "tools[1].environment.container_id", "a container by its id"),
    ("openai-responses", responses(**shell(type="container_auto", file_ids=["file-1"])), "tools[1].environment.file_ids", "files by their ids"),
    ("openai-responses", responses(**shell(type="container_auto", skills=SKILLS)), "tools[1].environment.skills[0].skill_id", "a skill by its id"),
    ("openai-responses", responses(**tool(type="image_generation", input_image_mask={"file_id": "file-1"})), "tools[1].input_image_mask.file_id", "an image by its id"),
    ("openai-chat", chat() | {"data_sources": [{"type": "azure_search", "parameters": {}}]}, "data_sources", "a data source of Azure"),
    ("openai-chat", chat() | {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}, "tools[0].vector_store_ids", "a vector store by its id"),
    ("openai-chat", {"model": "m", "messages": [SPOKEN, {"role": "user", "content": "Q"}]}, "messages[0].audio", "speech by its id"),
    ("mistral", chat() | {"tools": [{"type": "document_library", "library_ids": ["l"]}]}, "tools[0].library_ids", "a document library by its id"),
    ("mistral", chat({"type": "file", "file_id": "file-1"}), "messages[0].content[0]", "a file by its id"),
    ("gemini", gemini(cachedContent="cachedContents/1"), "cachedContent", "cached contents by their name"),
    ("gemini", gemini(cached_content="cachedContents/1"), "cached_content", "cached contents by their name"),
    ("gemini", gemini(tools=[{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/1"]}}]), "tools[0].fileSearch.fileSearchStoreNames", "a file search store by its name"),
    ("gemini", gemini(tools=[{"file_search": {"file_search_store_names": ["fileSearchStores/1"]}}]), "tools[0].file_search.file_search_store_names", "a file search store by its name"),
    ("gemini", gemini(tools=[{"retrieval": {"vertexAiSearch": {"datastore": "d"}}}]), "tools[0].retrieval.vertexAiSearch", "a data store of Google Cloud"),
    ("gemini", gemini(tools=[{"retrieval": {"vertexRagStore": {"ragResources": []}}}]), "tools[0].retrieval.vertexRagStore", "a data store of Google Cloud"),
    ("gemini-interactions", interactions(previous_interaction_id="i"), "previous_interaction_id", "an earlier interaction by its id"),
    ("gemini-interactions", interactions(continuation_token="t"), "continuation_token", "an earlier request by its token"),
    ("gemini-interactions", interactions(cached_content="cachedContents/1"), "cached_content", "cached contents by their name"),
    ("gemini-interactions", interactions(environment="e"), "environment", "an environment"),
    ("gemini-interactions", interactions(tools=[{"type": "file_search", "file_search_store_names": ["s"]}]), "tools[0].file_search_store_names", "a file search store by its name"),
    ("gemini-interactions", interactions(tools=[{"type": "retrieval", "vertex_ai_search_config": {"engine": "e"}}]), "tools[0].vertex_ai_search_config", "a data store of Google Cloud"),
    ("gemini-interactions", interactions(tools=[{"type": "retrieval", "rag_store_config": {"rag_resources": []}}]), "tools[0].rag_store_config", "a data store of Google Cloud"),
    ("bedrock", BEDROCK | {"promptVariables": {"name": {"text": "n"}}}, "promptVariables", "a prompt by its ARN"),
]  # fmt: skip

IDS = [f"{source} {path} {number}" for number, (source, _, path, _) in enumerate(ROWS)]


@pytest.mark.parametrize(("source", "body", "path", "words"), ROWS, ids=IDS)
def test_what_only_its_provider_can_read_is_refused_for_every_other_or_dropped_and_counted(source, body, path, words):
    for to in set(TARGETS) - {source}:
        with pytest.raises(BadRequest) as raised:
            translate(body, source, to)
        assert raised.value.path == path, to
        assert raised.value.reason.startswith(f"{to} cannot read {words}"), to
        assert raised.value.reason.endswith(", or set unreadable to 'drop'"), to
        dropped, report = translate(body, source, to, unreadable="drop")
        assert report.losses, to
        assert "Q" in json.dumps(dropped), to


@pytest.mark.parametrize(("source", "body", "path", "words"), ROWS, ids=IDS)
def test_within_one_dialect_it_stays_and_is_the_providers_to_judge(source, body, path, words):
    again, report = translate(body, source, source)
    assert again == translate(body, source, source, unreadable="drop")[0]
    assert not report.losses
    assert json.dumps(at(body, path)) in json.dumps(again)


#: What changes no question: hints, and the tools that a provider runs without a store.
ASKED = [
    ("anthropic", claude() | {"container": {}}),
    ("anthropic", claude() | {"mcp_servers": [{"type": "url", "url": "https://a.test", "name": "a"}]}),
    ("anthropic", claude() | {"diagnostics": {"previous_message_id": "msg_1"}}),
    ("openai-chat", chat() | {"prompt_cache_key": "k", "store": True}),
    ("openai-chat", {"model": "m", "messages": [SPOKEN | {"content": "said"}, {"role": "user", "content": "Q"}]}),
    ("openai-responses", responses(prompt_cache_key="k", store=True, metadata={"a": "b"})),
    ("openai-responses", responses(**container())),
    ("openai-responses", responses(**container(skills=[{"type": "inline", "name": "n", "description": "d"}]))),
    ("openai-responses", responses(**tool(type="file_search", vector_store_ids=[]))),
    ("openai-responses", responses({"type": "image_generation_call", "id": "ig_1", "result": "AAAA"})),
    (
        "openai-responses",
        responses({"type": "image_generation_call", "id": "ig_1", "status": "failed", "result": None}),
    ),
    ("gemini", gemini(tools=[{"codeExecution": {}}, {"fileSearch": {}}])),
    ("bedrock", BEDROCK | {"guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}}),
]


@pytest.mark.parametrize(("source", "body"), ASKED)
def test_what_changes_no_question_is_at_most_a_counted_loss(source, body):
    for to in set(TARGETS) - {source}:
        assert "Q" in json.dumps(translate(body, source, to)[0])
