"""L10 over HTTP: an upstream with a quirk, and the gateway counts just its repair, whether frames pass or are translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
import pytest
from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families

from streamkit.dialects import DIALECTS
from streamkit.gateway.metrics import exposition
from streamkit.lab.mock.quirks import quirks_of
from streamkit.lab.mock.writing import Answer
from tests.gateway.running import Running, asking, behind
from tests.laws.quirky import ANSWERS, conforming, conforming_body
from tests.sampling import few
from tests.web.evil import Fin, Rst, Script, Send, Step
from tests.web.faults import END_OF_CHUNKS, SOON, chunk, head
from tests.web.serving import eventually

#: Clients that ask here; for an upstream of a client's dialect the frames pass.
CLIENTS: Final = ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini", "gemini-interactions")
#: How the gateway is set, where its defaults repair nothing: the upstream, the server and the route.
UPSTREAM: Final[Mapping[str, Mapping[str, Any]]] = {
    "thinking_in_text": {"think_tags": "on"},
    "call_in_text": {"text_calls": ("hermes",)},
}
SERVER: Final[Mapping[str, Mapping[str, Any]]] = {"objects_split": {"policy": "lenient"}}
ROUTE: Final[Mapping[str, Mapping[str, Any]]] = {"continued": {"on_cut": "continue"}}
PARAMETERS: Final = {"type": "object", "properties": {}}
#: The tools of a client of Responses, one of them a custom one.
TOOLS: Final = [
    *(
        {"type": "function", "name": name, "parameters": PARAMETERS, "strict": False}
        for name in ("get_weather", "get_time")
    ),
    {"type": "custom", "name": "apply_patch"},
]
#: Quirks that are asked of a client with those tools.
WITH_TOOLS: Final = frozenset({"call_in_text", "custom_input_bare"})
#: The answers that some quirks are shown with, though they change others too.
NEEDED: Final = {"custom_input_bare": "custom", "continued": "text", "stream_for_body": "text"}
#: Dialects whose servers go on with a text.
GOING_ON: Final = ("anthropic", "mistral", "ollama")


@frozen
class Case:
    dialect: str
    kind: str
    client: str

    def __str__(self) -> str:
        return f"{self.dialect}-{self.kind}-{self.client}"


def clients(dialect: str, kind: str) -> Sequence[str]:
    """One whose frames pass, if there is one, and one for whom they are translated."""
    if kind in WITH_TOOLS:
        return ["openai-responses"] if dialect != "openai-responses" else []
    if kind == "continued" and dialect not in GOING_ON:
        return []
    other = "anthropic" if dialect == "openai-chat" else "openai-chat"
    return [client for client in CLIENTS if client in (dialect, other)]


CASES: Final = [
    Case(dialect, kind, client)
    for dialect in DIALECTS.built_in
    for kind in quirks_of(dialect)
    for client in clients(dialect, kind)
]


def script(answer: Answer) -> Script:
    """The answer as the evil upstream plays it."""
    headers = {"Content-Type": answer.content_type}
    if not answer.streamed:
        [body] = answer.frames
        return Script((Send(head(200, {**headers, "Content-Length": str(len(body))}) + body),))
    begin = Send(head(200, {**headers, "Transfer-Encoding": "chunked"}))
    ends: Mapping[str, Sequence[Step]] = {"whole": [Send(END_OF_CHUNKS)], "cut": [SOON, Fin()], "reset": [SOON, Rst()]}
    return Script((begin, *(Send(chunk(frame)) for frame in answer.frames), *ends[answer.end]))


def request(case: Case, *, stream: bool) -> tuple[str, bytes]:
    path, body = asking(case.client, stream=stream)
    if case.kind in WITH_TOOLS:
        body["tools"] = TOOLS
    return path, orjson.dumps(body)


def repairs(running: Running) -> dict[str, float]:
    """The repairs that were counted, by kind."""
    families = text_string_to_metric_families(exposition(running.metrics).decode())
    samples = [sample for family in families for sample in family.samples if sample.name == "streamkit_repairs_total"]
    return {sample.labels["kind"]: sample.value for sample in samples}


def quirky(case: Case) -> Answer:
    """The first conforming answer that the quirk changes, changed."""
    quirk = quirks_of(case.dialect)[case.kind]
    for name in ANSWERS:
        answer = (conforming_body if case.kind == "stream_for_body" else conforming)(case.dialect, name)
        if name != NEEDED.get(case.kind, name):
            continue
        if (changed := quirk.apply(answer)) != answer:
            return changed
    raise AssertionError(f"no answer of {case.dialect} gets {case.kind}")


@pytest.mark.parametrize("case", few(CASES, 2, "l10 http", kind=lambda case: case.dialect))
async def test_the_gateway_counts_just_that_repair(case):
    scripts = [script(quirky(case))]
    if case.kind == "continued":
        scripts.append(script(conforming(case.dialect, "text")))
    async with behind(
        *scripts,
        dialect=case.dialect,
        upstream={**UPSTREAM.get(case.kind, {})},
        server=SERVER.get(case.kind),
        **ROUTE.get(case.kind, {}),
    ) as running:
        path, body = request(case, stream=case.kind != "stream_for_body")
        await running.ask(path, body=body)
        await eventually(lambda: running.counted("streams_active") == 0)
        assert repairs(running).keys() == {case.kind, *quirks_of(case.dialect)[case.kind].also}
