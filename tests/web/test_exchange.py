"""What clients get of an upstream's answer beside its words: usage if they asked, a model always, the form they asked for."""

import orjson
import pytest

from streamkit.bodies import encode_response
from streamkit.dialects import DIALECTS
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream, Script, Send
from tests.web.faults import END_OF_CHUNKS, as_asked, chunk, head, said, speech, whole
from tests.web.raw_client import ask

pytestmark = pytest.mark.usefixtures("no_leaks")
CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]
CHUNKED = {"Transfer-Encoding": "chunked"}
MISTRAL_SDKS = ["mistral-client-python/1.9.11", "ai/5.0.9 ai-sdk/mistral/2.0.4 runtime/node.js/22"]


async def answered(upstream, client, script, *, stream=True, headers=None, **members):
    """What a client of a dialect gets through the gateway from an upstream of a dialect that plays a script."""
    async with EvilUpstream(script) as evil, gateway(config_of([upstream_at(evil, upstream)])) as running:
        path, body = asking(client, stream=stream)
        return await ask(running.url, path, body=orjson.dumps({**body, **members}), headers=headers)


def chunks_of(answer):
    lines = bytes(answer.body).decode().splitlines()
    return [orjson.loads(line[6:]) for line in lines if line.startswith("data: {")]


# -- usage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", [name for name in DIALECTS if name != "openai-chat"])
@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_obfuscation": False}])
async def test_a_client_of_chat_that_asked_for_no_usage_gets_no_chunk_without_choices(upstream, options):
    """OpenAI's quickstart reads ``chunk.choices[0]`` of every chunk."""
    members = {} if options is None else {"stream_options": options}
    chunks = chunks_of(await answered(upstream, "openai-chat", as_asked(upstream), **members))
    assert all(chunk["choices"] for chunk in chunks)
    assert not any("usage" in chunk for chunk in chunks)


@pytest.mark.parametrize("upstream", [name for name in DIALECTS if name != "openai-chat"])
async def test_a_client_of_chat_that_asked_for_usage_gets_it_in_a_chunk_of_its_own(upstream):
    members = {"stream_options": {"include_usage": True}}
    *_, last = chunks_of(await answered(upstream, "openai-chat", as_asked(upstream), **members))
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 23


@pytest.mark.parametrize("agent", MISTRAL_SDKS)
async def test_mistrals_packages_get_the_usage_beside_the_stop_reason(agent):
    """They have no member to ask for it, and the AI SDK's reads ``value.choices[0].delta`` of every chunk."""
    answer = await answered("anthropic", "openai-chat", as_asked("anthropic"), headers={"user-agent": agent})
    *others, last = chunks_of(answer)
    assert all(chunk["choices"] for chunk in [*others, last])
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"]["total_tokens"] == 23
    assert not any("usage" in chunk for chunk in others)


async def test_mistrals_packages_may_say_that_they_want_none():
    answer = await answered(
        "anthropic",
        "openai-chat",
        as_asked("anthropic"),
        headers={"user-agent": MISTRAL_SDKS[0]},
        stream_options={"include_usage": False},
    )
    assert not any("usage" in chunk for chunk in chunks_of(answer))


# -- the model ---------------------------------------------------------------------------------------------------------

#: The member that names the model, in the frame or body of each dialect.
NAMED = {"gemini": "modelVersion"}


def models_in(answer, client):
    """Every model that an answer names, wherever it stands."""
    text = bytes(answer.body).decode()
    lines = [line.removeprefix("data: ") for line in text.splitlines()]
    documents = [orjson.loads(line) for line in lines if line.startswith("{")]
    found = []
    for document in documents:
        for holder in (document, document.get("message"), document.get("response")):
            if isinstance(holder, dict) and NAMED.get(client, "model") in holder:
                found.append(holder[NAMED.get(client, "model")])
    return found


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ["cohere", "bedrock"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_the_model_is_the_one_asked_for_where_the_upstream_names_none(upstream, client, stream):
    answer = await answered(upstream, client, as_asked(upstream), stream=stream)
    assert answer.status == 200
    models = models_in(answer, client)
    assert models
    assert set(models) == {"m"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_blank_model_is_none(upstream, client, stream):
    if stream and upstream == client:
        pytest.skip("within one dialect a stream passes byte for byte")
    answer = await answered(upstream, client, unnamed(upstream, stream=stream), stream=stream)
    assert answer.status == 200
    models = models_in(answer, client)
    assert models
    assert set(models) == {"m"}


def unnamed(upstream, *, stream):
    """A sound answer whose model is blank."""
    if stream:
        frames = b"".join(speech(upstream)).replace(b'"evil-1"', b'""')
        return Script(
            (
                Send(
                    head(200, {"Content-Type": DIALECTS[upstream].media_type, **CHUNKED})
                    + chunk(frames)
                    + END_OF_CHUNKS
                ),
            )
        )
    return whole(upstream, encode_response(said(upstream), upstream).replace(b'"evil-1"', b'""'))
