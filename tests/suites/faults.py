"""aimock (formerly llmock) as an upstream of every dialect that it cuts, with its faults, behind a gateway process.

Each of 40 pairs of dialects is asked ten times: seven streams and three whole answers, each with another fault. What came is
judged without our decoders, by ``tests/laws/oracle.py``: a **silent cut** is an answer that says success and has not all of
the text that aimock was to say.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout
from attrs import define, field, frozen

from streamkit.dialects import DIALECTS
from tests import npm
from tests.gateway import processes
from tests.gateway.clients.in_thread import CLIENTS as SERVED
from tests.gateway.running import BASES, asking
from tests.laws.oracle import facts
from tests.web.serving import eventually

FOLDER: Final = Path(__file__).parent
#: The dialects of providers. aimock also plays AG-UI, but from fixtures of their own, which know no cuts, and no AI SDK; it has
#: not been asked in Interactions.
UPSTREAMS: Final = tuple(name for name in DIALECTS.built_in if name not in {"ag-ui", "ai-sdk", "gemini-interactions"})
CLIENTS: Final = tuple(name for name in SERVED if name in UPSTREAMS)
INSTALL_S: Final = 90
#: A call takes milliseconds, and many times that where others want the same cores.
CALL_S: Final = 60.0
AT_ONCE: Final = 4
TEXT: Final = (
    "The answer begins here, goes on for a while so that there is something to cut off, and ends with the last word."
)
#: What aimock is told by a header of the upstream, or by what it was given for the model.
BY_HEADER: Final = ("drop", "malformed", "disconnect", "ratelimit")
BY_MODEL: Final[dict[str, dict[str, Any]]] = {
    "cut-after-1": {"latency": 20, "truncateAfterChunks": 1},
    "cut-after-3": {"latency": 20, "truncateAfterChunks": 3},
    "cut-after-time": {"latency": 20, "disconnectAfterMs": 90},
}
STREAMED: Final = (*BY_HEADER, *BY_MODEL)
WHOLE: Final = ("drop", "malformed", "disconnect")


@frozen
class Call:
    upstream: str
    client: str
    fault: str
    stream: bool

    @property
    def model(self) -> str:
        return f"{self.fault}.{self.upstream}"


@define
class Verdicts:
    """How often each fault ended how, and the calls whose answers were cut silently."""

    ends: Counter[tuple[str, str]] = field(factory=Counter)
    silent: list[Call] = field(factory=list)
    sound: int = 0  #: calls without a fault, asked first, whose answers were whole
    version: str = ""


def calls() -> list[Call]:
    ways = [(fault, True) for fault in STREAMED] + [(fault, False) for fault in WHOLE]
    return [Call(upstream, client, *way) for upstream, client in product(UPSTREAMS, CLIENTS) for way in ways]


async def run(folder: Path) -> Verdicts:
    """All 400 calls, and a sound one of each pair before. ``folder`` is for configurations and logs."""
    found = Verdicts(
        version=json.loads((FOLDER / "package.json").read_text("utf-8"))["dependencies"]["@copilotkit/aimock"]
    )
    async with aimock(folder) as upstream:
        config = folder / "gateway.toml"
        config.write_text(configuration(upstream), "utf-8")
        async with processes.serving(folder, "--config", str(config)) as gateway, session() as client:
            sound = [Call(*pair, "none", stream) for pair in product(UPSTREAMS, CLIENTS) for stream in (True, False)]
            for call, end in await ends_of(client, gateway.url, sound):
                assert end == "whole", (call, end)
                found.sound += 1
            for call, end in await ends_of(client, gateway.url, calls()):
                found.ends[call.fault, end] += 1
                found.silent += [call] if end == "silent cut" else []
    return found


async def run_over_sockets(folder: Path) -> Verdicts:
    """The faults that aimock has on WebSockets too, of an upstream that is asked over one; ``folder`` as of ``run``."""
    found = Verdicts()
    async with aimock(folder) as upstream:
        config = folder / "gateway.toml"
        config.write_text(configuration(upstream, ("openai-responses",), 'transport = "websocket"\n'), "utf-8")
        async with processes.serving(folder, "--config", str(config)) as gateway, session() as client:
            ways = product(CLIENTS, ("none", *BY_MODEL), (True, False))
            wanted = [Call("openai-responses", name, fault, stream) for name, fault, stream in ways]
            for call, end in await ends_of(client, gateway.url, wanted):
                found.ends[call.fault, end] += 1
                found.silent += [call] if end == "silent cut" else []
    found.sound = found.ends["none", "whole"]
    return found


def session() -> ClientSession:
    return ClientSession(timeout=ClientTimeout(total=CALL_S))


async def ends_of(client: ClientSession, url: str, wanted: Sequence[Call]) -> list[tuple[Call, str]]:
    """How each call ended, a few at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(call: Call) -> tuple[Call, str]:
        async with turns:
            return call, await end_of(client, url, call)

    return await asyncio.gather(*map(one, wanted))


async def end_of(client: ClientSession, url: str, call: Call) -> str:
    """What a client sees: ``whole``, ``status 502`` and the like, ``error`` or ``broken`` in a stream, ``silent cut``."""
    path, body = asking(call.client, stream=call.stream, model=call.model)
    try:
        async with client.post(url + path, json=body) as response:
            status, data = response.status, await response.read()
    except ClientError:
        return "broken"
    if status != 200:
        return f"status {status}"
    if not call.stream:
        return "whole" if TEXT in data.decode() else "silent cut"
    seen = facts(call.client, data)
    if seen and seen[-1].complete:
        return "whole" if seen[-1].text == TEXT else "silent cut"
    return "error" if b'"error"' in data else "broken"


@asynccontextmanager
async def aimock(folder: Path) -> AsyncIterator[str]:
    """aimock on a free port; where."""
    modules = npm.installed(FOLDER, "aimock", within_s=INSTALL_S)
    fixtures = folder / "fixtures.json"
    fixtures.write_text(json.dumps({"fixtures": list(answers())}), "utf-8")
    printed = folder / "aimock.log"
    with printed.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            "node", modules / ".bin" / "llmock", "-p", "0", "-c", "10", "-f", fixtures,
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
    try:
        address = re.compile(r"http://127\.0\.0\.1:\d+")
        await eventually(lambda: address.search(printed.read_text("utf-8")), within_s=processes.START_S)
        listening = address.search(printed.read_text("utf-8"))
        assert listening, printed.read_text("utf-8")
        yield listening[0]
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def answers() -> list[dict[str, Any]]:
    """The same text for every model, cut as its name says."""
    models = [(f"{fault}.{upstream}", fault) for fault, upstream in product((*STREAMED, "none"), UPSTREAMS)]
    return [
        {"match": {"model": model}, "response": {"content": TEXT}, **BY_MODEL.get(fault, {})} for model, fault in models
    ]


def configuration(upstream: str, dialects: Sequence[str] = UPSTREAMS, more: str = "") -> str:
    """An upstream and a route for each dialect and fault; ``more`` is said of each upstream."""
    parts = ["[server]\nport = 0\nprivate = 'off'\n"]
    for dialect, fault in product(dialects, (*STREAMED, "none")):
        name = f"{fault}-{dialect}"
        parts.append(
            f'[upstreams.{name}]\ndialect = "{dialect}"\nbase_url = "{upstream}{BASES.get(dialect, "")}"\nauth = "none"\n{more}'
        )
        if fault in BY_HEADER:
            parts.append(f'headers = {{ x-aimock-chaos-{fault} = "1" }}\n')
        parts.append(f'[[routes]]\nmodels = ["{fault}.{dialect}"]\nto = ["{name}"]\nretries = 0\n')
    return "".join(parts)
