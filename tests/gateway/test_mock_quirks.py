"""L10 with the mock as the upstream: what it says by a script, with a quirk, costs the gateway just that repair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson
import pytest
from attrs import frozen

from streamkit.dialects import DIALECTS
from streamkit.lab.mock.quirks import Need, quirks_of
from streamkit.lab.mock.script import Call, Error, MockTurn, Say, Script, Step, Stop, Think
from streamkit.lab.mock.server import Mock
from streamkit.web.upstream import Upstream
from tests.gateway.running import asking, config_of, gateway
from tests.gateway.test_quirks import SERVER, TOOLS, UPSTREAM, WITH_TOOLS, repairs
from tests.sampling import few
from tests.web.raw_client import ask
from tests.web.serving import eventually, serving

#: The answers that some quirks need, by what they need.
SCRIPTS: Final[Mapping[Need, tuple[Step, ...]]] = {
    "length": (Say("It is cold in Oslo, and"), Stop("length")),
    "error": (Say("It is cold in Oslo."), Call("get_weather", {"city": "Oslo"}), Error("server", "overloaded")),
    "no call": (Think("Which city?"), Say("It is cold in Oslo.")),
    "custom call": (Call("apply_patch", {"input": "*** Begin Patch"}),),
}
#: The one for all others.
SCRIPT: Final = (
    Think("The user asks for two things."),
    Say("Let me look at the weather and the time."),
    Call("get_weather", {"city": "Oslo", "days": 3}),
    Call("get_time", {"zone": "CET"}),
)
#: A whole answer is asked for, or the same mock would have to go on with its own text.
OTHERWISE: Final = frozenset({"stream_for_body", "continued"})


@frozen
class Case:
    dialect: str
    kind: str

    def __str__(self) -> str:
        return f"{self.dialect}-{self.kind}"


CASES: Final = [
    Case(dialect, kind)
    for dialect in DIALECTS.built_in
    for kind in quirks_of(dialect)
    if kind not in OTHERWISE and not (kind in WITH_TOOLS and dialect == "openai-responses")
]


@pytest.mark.parametrize("case", few(CASES, 1, "l10 mock", kind=lambda case: case.dialect))
async def test_the_gateway_counts_just_that_repair_of_the_mock(case):
    quirk = quirks_of(case.dialect)[case.kind]
    steps = next((steps for need, steps in SCRIPTS.items() if need in quirk.needs), SCRIPT)
    mock = Mock(Script((MockTurn(steps=steps),)), dialect=case.dialect, quirks=[case.kind])
    async with serving(mock.app()) as port:
        base = mock.urls(f"http://127.0.0.1:{port}")[case.dialect]
        options = UPSTREAM.get(case.kind, {})
        upstream = Upstream(name="one", dialect=case.dialect, base_url=base, auth="none", **options)
        async with gateway(config_of([upstream], server=SERVER.get(case.kind))) as running:
            path, body = asking("openai-responses" if case.kind in WITH_TOOLS else "openai-chat")
            if case.kind in WITH_TOOLS:
                body["tools"] = TOOLS
            await ask(running.url, path, body=orjson.dumps(body))
            await eventually(lambda: running.counted("streams_active") == 0)
            assert repairs(running).keys() == {case.kind, *quirk.also}
