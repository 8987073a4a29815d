"""The strictest readers that are known, of Zed's and Codex' kind, read from the running gateway, whatever its upstream speaks.

They are the ones of ``tests/clients``; only the bytes come from elsewhere.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest

from streamkit.conversation.messages import Response
from tests.clients.recipes import whole
from tests.clients.test_codex_reader import Failed, Turn
from tests.clients.test_zed_reader import refusals
from tests.clients.vectors import BEGUN, FAILURES
from tests.gateway.clients.in_thread import CLIENT_KEY, NO_TOOLS, UPSTREAMS, GatewayThread, listed
from tests.gateway.clients.recorded import Stream, recordings, sampled, script, vectors

SAMPLE: Final = 4
#: Ends of a turn that Codex takes for its failure, beside real ones.
UNFINISHED: Final = {"length", "context_full", "content_filter", "pause"}
OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answer(served: GatewayThread, path: str, asked: dict[str, Any]) -> Any:
    headers = {"content-type": "application/json", "authorization": f"Bearer {CLIENT_KEY}"}
    request = urllib.request.Request(served.url + path, json.dumps(asked).encode(), headers)
    return OPENER.open(request, timeout=20)


def some(source: str) -> list[Stream]:
    return [*sampled(recordings(source), SAMPLE), *sampled(vectors(source), SAMPLE)]


def every(source: str) -> list[Stream]:
    return [*recordings(source), *vectors(source)]


CHOSEN = pytest.mark.parametrize("chosen", [some, pytest.param(every, marks=pytest.mark.exhaustive)])


# -- Zed ---------------------------------------------------------------------------------------------------------------


@CHOSEN
@pytest.mark.parametrize("source", [each for each in UPSTREAMS if each != "ollama"])
def test_zed_takes_every_line(source: str, chosen: Any, served: GatewayThread):
    complaints = []
    for stream in chosen(source):
        model = served.register(source, script(stream))
        asked = {"model": model, "messages": [{"role": "user", "content": "?"}], "stream": True}
        with answer(served, "/api/chat", asked) as response:
            body = response.read()
        complaints += [f"{stream.name}: {refusal}" for refusal in refusals(body)]
        response = whole(stream.body, source)
        lines = [json.loads(line) for line in body.splitlines()]
        names = [call["function"]["name"] for line in lines for call in line["message"].get("tool_calls") or []]
        calls = [call.name for call in response.choices[0].tool_calls]
        own = any(
            aside.kind == "client_tool" for aside in response.choices[0].asides
        )  # what the client runs in a form of its own
        if names != calls and not (own and set(calls) <= set(names)):
            complaints.append(f"{stream.name}: calls of {names}")
    assert not complaints, "\n".join(complaints[:30])


def test_zed_finds_a_model_and_is_told_that_it_takes_tools(served: GatewayThread):
    with OPENER.open(urllib.request.Request(f"{served.url}/api/tags", headers={"x-api-key": CLIENT_KEY})) as response:
        models = json.load(response)["models"]
    assert {model["name"] for model in models} >= {listed(upstream) for upstream in UPSTREAMS}
    for model, able in ((listed("anthropic"), True), (listed(NO_TOOLS), False)):
        with answer(served, "/api/show", {"model": model}) as response:
            assert ("tools" in json.load(response)["capabilities"]) is able


# -- Codex -------------------------------------------------------------------------------------------------------------


def turn(served: GatewayThread, model: str) -> Turn:
    """One turn. Raises Failed."""
    read = Turn()
    asked = {"model": model, "input": [{"role": "user", "content": "?"}], "stream": True, "store": False}
    with answer(served, "/v1/responses", asked) as response:
        for event in events(response):
            if not read.completed:
                read.take(event)
    if not read.completed:
        raise Failed("stream closed before response.completed")
    return read


def events(lines: Any) -> Iterator[dict[str, Any]]:
    yield from (json.loads(line[5:]) for line in lines if line.startswith(b"data:"))


@CHOSEN
@pytest.mark.parametrize("source", [each for each in UPSTREAMS if each != "openai-responses"])
def test_codex_reads_a_turn(source: str, chosen: Any, served: GatewayThread):
    for stream in chosen(source):
        response, model = whole(stream.body, source), served.register(source, script(stream))
        if not response.clean or response.choices[0].stop_reason in UNFINISHED:
            with pytest.raises(Failed):
                turn(served, model)
            continue
        check_turn(turn(served, model), response, stream.name)


def check_turn(read: Turn, response: Response, name: str) -> None:
    said = response.choices[0]
    assert read.text == said.text, name
    made = [item for item in read.items if item["type"] in {"function_call", "custom_tool_call"}]
    assert [item["name"] for item in made] == [call.name for call in said.tool_calls], name
    own = [call.id for call in said.tool_calls if not call.id_made and "made" not in call.id]
    assert [item["call_id"] for item in made if item["call_id"] in own] == own, name
    assert len({item["call_id"] for item in made}) == len(made), name


@pytest.mark.parametrize("source", UPSTREAMS)
def test_codex_sees_a_failure_with_its_message(source: str, served: GatewayThread):
    for body, message in ((BEGUN[source] + FAILURES[source], "all busy"), (BEGUN[source], "truncated")):
        if source == "openai-responses" and message == "all busy":
            continue  # the provider's own words pass as they are
        with pytest.raises(Failed, match=message):
            turn(served, served.register(source, script(Stream("failing", source, (body,)))))
