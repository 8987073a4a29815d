"""Providers and clients by name: where they may stand, what they change, and that reading never needs them."""

from __future__ import annotations

import pytest

from streamkit import Profile, StreamReport, UsageError, collect, decode, encode, encode_response, keep_alive, transcode
from streamkit.dialects import DIALECTS, client_named, source_named
from streamkit.read_options import ReadOptions
from streamkit.report import REPAIRS
from streamkit.testing import source_of
from tests.laws.running import CLOCK, maker
from tests.vectors import VECTORS

PROVIDERS = [pytest.param(d, p, id=p.name) for d in DIALECTS.built_in.values() for p in d.providers]
CLIENTS = [pytest.param(d, c, id=c.name) for d in DIALECTS.built_in.values() for c in d.clients]
OF_CHAT = [vector for vector in VECTORS if vector.dialect == "openai-chat"]


async def written(source, target, body, **options):
    report = StreamReport()
    pipe = transcode(
        source_of([body]), source, target, ReadOptions(make_id=maker()), report=report, clock=CLOCK, **options
    )
    async with pipe as stream:
        return b"".join([piece async for piece in stream]), report


def test_names_are_used_once():
    names = [*DIALECTS.built_in, *(one.values[1].name for one in (*PROVIDERS, *CLIENTS))]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("dialect", "provider"), PROVIDERS)
def test_a_provider_stands_for_its_dialect(dialect, provider):
    assert source_named(provider.name) == (dialect, provider)
    assert decode(provider.name).name == f"decode {provider.name}"
    assert provider.title
    assert provider.habits.keys() <= REPAIRS.keys()


@pytest.mark.parametrize(("dialect", "client"), CLIENTS)
def test_a_client_stands_for_its_dialect(dialect, client):
    assert client_named(client.name) == (dialect, client)
    assert encode(client.name).name == f"encode {client.name}"
    assert client.title
    assert keep_alive(client.name) in {b"", *dialect.keep_alive.values()}


@pytest.mark.parametrize("name", ["", "nobody", "OpenAI"])
def test_a_name_that_nobody_has_is_refused_with_those_there_are(name):
    for named in (source_named, client_named):
        with pytest.raises(UsageError, match="the dialects are openai-chat"):
            named(name)


async def test_reading_never_needs_the_provider():
    """The same bytes and the same counts; the habits are all that a name adds."""
    provider = source_named("fireworks")[1]
    for vector in OF_CHAT:
        plain, said = await written("openai-chat", "anthropic", vector.body)
        named, told = await written("fireworks", "anthropic", vector.body)
        assert (named, told.repairs, told.losses) == (plain, said.repairs, said.losses), vector.name
        assert (said.habits, told.habits) == ({}, provider.habits)


async def test_the_dialect_of_a_response_is_no_providers_name():
    assert (await collect(source_of([OF_CHAT[0].body]), "deepseek")).dialect == "openai-chat"


async def test_a_client_gets_what_its_profile_says():
    body = next(vector.body for vector in OF_CHAT if vector.calls and vector.clean)
    assert b'"id":' in (await written("openai-chat", "ollama-python", body))[0]
    assert b'"id":' not in (await written("openai-chat", "zed", body))[0]


IMAGE_OF = {
    "gemini": b'data: {"candidates":[{"content":{"parts":[{"text":"Hi"},{"inlineData":{"mimeType":"image/png","data":"iVBO"}}]},"finishReason":"STOP"}]}\n\n',
    "ollama": b'{"model":"m","message":{"role":"assistant","content":"Hi","images":["iVBO"]},"done":true,"done_reason":"stop"}\n',
}


@pytest.mark.parametrize(("client", "sees"), [("ollama", False), ("ollama-python", False), ("ollama-js", True)])
async def test_only_a_client_of_ollama_that_reads_images_gets_those_of_another_vendor(client, sees):
    """The ollama package raises an error for the whole response."""
    output, report = await written("gemini", client, IMAGE_OF["gemini"])
    assert (b'"images":["iVBO"]' in output, report.losses["media_output"] == 0) == (sees, sees)
    output, report = await written("ollama", client, IMAGE_OF["ollama"], reencode=True)
    assert b'"images":["iVBO"]' in output
    assert not report.losses
    answer = await collect(source_of([IMAGE_OF["gemini"]]), "gemini")
    assert (b'"iVBO"' in encode_response(answer, client)) is sees


async def test_frames_pass_within_a_dialect_unless_the_profile_changes_them():
    body = next(
        vector.body for vector in OF_CHAT if b'"usage":{' in vector.body and vector.clean and not vector.repairs
    )
    assert (await written("deepseek", "openai-python", body))[0] == body
    quiet = (await written("deepseek", "openai-python", body, profile=Profile(include_usage=False)))[0]
    assert b'"usage":{' not in quiet


def test_a_named_client_gets_its_own_form_of_a_keep_alive_unless_another_is_asked_for():
    comment, event = keep_alive("anthropic", "comment"), keep_alive("anthropic", "event")
    assert comment != event
    assert keep_alive("claude-code", "comment") == comment
    assert keep_alive("claude-code", "event") == event
