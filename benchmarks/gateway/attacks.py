"""What an attack does to others: ``python -m benchmarks.gateway.attacks [--only NAME,…]``. Linux only; half a minute each.

A real ``streamkit serve`` has fifty streams of steady events, and an attack from a process of its own runs beside them. Told
is how long the streams were silent, the gateway's largest memory and most descriptors, and what the attackers were answered. A
row without an attack is measured first: on a machine that others use, only the difference says anything. ``--code`` measures
the gateway of another checkout in the same way, and ``--first`` keeps others of this machine out of the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from benchmarks.gateway.load import Group, ask
from benchmarks.gateway.process import ROOT, first_line, gateway, rss_bytes, running, upstream
from benchmarks.gateway.reading import quantiles_ms
from benchmarks.gateway.script import KEY_LIKE, LONGEST, Script
from benchmarks.gateway.socket_attacks import FLOODS, SOCKET_ATTACKS, flooded

MIB: Final = 1024 * 1024
STREAMS: Final = 50
EVENTS: Final = 400
GAP_US: Final = 50_000
#: Of streams that are only to be open: at the pace of the others, 700 would be a load and no attack.
HELD_GAP_US: Final = 2_000_000
#: The attack begins once the streams run, and has what is left of them.
AFTER_S: Final = 4.0
PATIENCE_S: Final = 60.0
LOOK_S: Final = 0.05
SOFT_LIMIT: Final = 1024


def _post(body: bytes, *, length: int | None = None, path: str = "/v1/chat/completions") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length or len(body)}\r\n"
    return (head + "Content-Type: application/json\r\nConnection: close\r\n\r\n").encode() + body


def _chat(messages: bytes, *, model: str = "m") -> bytes:
    return b'{"model":"%b","stream":true,"messages":[%b]}' % (model.encode(), messages)


def _repeated(item: bytes, size: int = 31 * MIB) -> bytes:
    return b",".join([item] * (size // (len(item) + 1)))


async def _sent(port: int, data: bytes, *, hold_s: float = 20.0) -> str:
    """The status that a request got within a while; what it was instead."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        return type(error).__name__
    try:
        async with asyncio.timeout(hold_s):
            writer.write(data)
            line = await reader.readline()
            if line:
                await reader.read()
            return line.decode("latin-1")[9:12] or "closed"
    except TimeoutError:
        return "held"
    except OSError as error:
        return type(error).__name__
    finally:
        writer.transport.abort()


async def _many(port: int, count: int, data: bytes) -> list[str]:
    return await asyncio.gather(*(_sent(port, data) for _ in range(count)))


def _held_script() -> str:
    return str(Script(id="held", events=1000, gap_us=HELD_GAP_US))


_USER: Final = b'{"role":"user","content":"a"}'
_BOMBS: Final[Mapping[str, Callable[[], bytes]]] = {
    "objects": lambda: _chat(_repeated(b"{}")),
    "turns": lambda: _chat(_repeated(_USER)),
    "most turns": lambda: _chat(_repeated(_USER, 80_000 * (len(_USER) + 1)), model=_held_script()),
    "depth": lambda: _chat(b"[" * 1000 + b"]" * 1000),
    "keys": lambda: b"{%b}" % b",".join(b'"%d":0' % number for number in range(2_500_000)),
    "texts": lambda: _chat(_repeated(b'""')),
    "long text": lambda: _chat(b'{"role":"user","content":"%b"}' % (b"a, " * (10 * MIB)), model=_held_script()),
}
#: 64 KiB in a place that a refusal tells of.
_WORD: Final = KEY_LIKE * (64_000 // len(KEY_LIKE))


def _told(dialect: str = "openai-chat", **members: Any) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}], **members}
    return _post(orjson.dumps(body), path="/api/chat" if dialect == "ollama" else "/v1/chat/completions")


def _call(**members: Any) -> dict[str, Any]:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}, **members}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


_TOOL: Final = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_REFUSED: Final[Mapping[str, Callable[[], bytes]]] = {
    "role": lambda: _told(messages=[{"role": _WORD, "content": ""}]),
    "type of a call": lambda: _told(messages=[_call(type=_WORD)]),
    "tool_choice": lambda: _told(tools=[_TOOL], tool_choice=_WORD),
    "think": lambda: _told("ollama", think=_WORD),
    "format": lambda: _told("ollama", format=_WORD),
    "id": lambda: _told(
        messages=[{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": _WORD, "content": ""}]
    ),
    "path": lambda: _post(b"{}", path="/v1/models" * 790 + "%0Ax"),
    "upstream's 400": lambda: _told(model=str(Script(id="held", refusal=64_000 // len(KEY_LIKE)))),
}


async def _referring(port: int) -> list[str]:
    """800 references to one item of 1 MiB, which a response has that is kept."""
    model = str(Script(id="kept", events=16, chars=LONGEST))
    body = orjson.dumps({"model": model, "input": "a", "store": True})
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_post(body, path="/v1/responses"))
    answer = await reader.read()
    writer.transport.abort()
    item_id = orjson.loads(answer.partition(b"\r\n\r\n")[2])["output"][0]["id"]
    referring = {"model": _held_script(), "stream": True, "input": [{"type": "item_reference", "id": item_id}] * 800}
    return await _many(port, 1, _post(orjson.dumps(referring), path="/v1/responses"))


#: An attack has the gateway's port and returns what its requests were answered.
ATTACKS: Final[Mapping[str, Callable[[int], Awaitable[list[str]]]]] = {
    "nothing": lambda _port: asyncio.sleep(0, []),
    **{f"refusal: {name}": lambda port, make=make: _many(port, 1, make()) for name, make in _REFUSED.items()},
    "descriptors": lambda port: _many(port, 700, _post(_chat(_USER, model=_held_script()))),
    "unfinished": lambda port: _many(port, 20, _post(b" " * (30 * MIB), length=31 * MIB)),
    "open streams": lambda port: _many(
        port, 20, _post(_chat(b'{"role":"user","content":"%b"}' % (b"a" * (20 * MIB)), model=_held_script()))
    ),
    **{f"bomb: {name}": lambda port, make=make: _many(port, 1, _post(make())) for name, make in _BOMBS.items()},
    "four bombs": lambda port: _many(port, 4, _post(_BOMBS["turns"]())),
    "references": _referring,
    **SOCKET_ATTACKS,
    **{f"upstream of {name}": lambda port, name=name: flooded(port, name) for name in FLOODS},
}
FLOODING: Final = [sys.executable, "-m", "benchmarks.gateway.socket_attacks"]
#: The gateway keeps responses, and asks an upstream over WebSockets, which says nothing without end.
TABLES: Final = """
[responses]
state = true
[upstreams.flood]
dialect = "openai-responses"
base_url = "http://127.0.0.1:%d/v1"
transport = "websocket"
auth = "none"
[[routes]]
models = ["flood-*"]
to = ["flood"]
retries = 0
"""


def _descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def _looked(pid: int, most: dict[str, int]) -> None:
    while True:
        most["rss"] = max(most.get("rss", 0), rss_bytes(pid))
        most["descriptors"] = max(most.get("descriptors", 0), _descriptors(pid))
        await asyncio.sleep(LOOK_S)


async def _measured(port: int, pid: int, attack: str) -> dict[str, Any]:
    """Fifty streams, and the attack beside them from another process."""
    most: dict[str, int] = {}
    looking = asyncio.create_task(_looked(pid, most))
    script = Script(id="steady", events=EVENTS, gap_us=GAP_US)
    group = Group(name="others", port=port, dialect="openai-chat", script={}, streams=STREAMS)
    others = [asyncio.create_task(ask(group, script, number * 0.02, PATIENCE_S)) for number in range(STREAMS)]
    await asyncio.sleep(AFTER_S)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.gateway.attacks", "--attacker", attack, str(port)), stdout=subprocess.PIPE
    )
    try:
        done = await asyncio.gather(*others)
        alive = await _sent(port, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", hold_s=2.0)
        told, _ = await process.communicate()
    finally:
        looking.cancel()
    gaps = quantiles_ms([gap for each in done for gap in each.answer.gaps_ns])
    faults = sum(bool(each.answer.fault) for each in done)
    return {**gaps, **most, "faults": faults, "healthz": alive, "answers": orjson.loads(told)}


def _rows(names: list[str], soft_limit: int, code: Path) -> Iterator[str]:
    for name in names:
        with (
            tempfile.TemporaryDirectory(prefix="streamkit-attack-") as folder,
            upstream(Path(folder)) as model,
            upstream(Path(folder), "held") as held,
            running(FLOODING, Path(folder), "flood", port=first_line) as flood,
        ):
            tables = TABLES % flood.port
            with gateway(Path(folder), model, soft_limit=soft_limit, held=held, code=code, tables=tables) as served:
                seen = asyncio.run(_measured(served.port, served.pid, name))
            log_bytes = (Path(folder) / "gateway.log").stat().st_size
        answers = ", ".join(f"{count} × {answer}" for answer, count in Counter(seen["answers"]).items()) or "-"
        yield (
            f"| {name} | {seen['p50']:.0f} | {seen['p99']:.0f} | {seen['max']:.0f} | {seen['p99'] - GAP_US / 1000:.0f} | "
            f"{seen['rss'] // MIB} | "
            f"{seen['descriptors']} | {seen['faults']} | {seen['healthz']} | {log_bytes // 1024} | {answers} |"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway.attacks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(ATTACKS), help=f"some of {', '.join(ATTACKS)}")
    parser.add_argument("--soft-limit", type=int, default=SOFT_LIMIT, help="descriptors the gateway starts with")
    parser.add_argument("--first", action="store_true", help="have the CPUs before all else here, as root")
    parser.add_argument("--code", type=Path, default=ROOT, help="the checkout whose gateway is attacked")
    parser.add_argument("--attacker", nargs=2, metavar=("NAME", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.first:  # what is started from here inherits it
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    if options.attacker:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        answers = asyncio.run(_attacking(*options.attacker))
        print(orjson.dumps(answers).decode())
        return 0
    names = options.only.split(",")
    if unknown := set(names) - set(ATTACKS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    print(f"{STREAMS} streams, an event every {GAP_US // 1000} ms each; gaps in ms, memory in MiB, log in KiB\n")
    print(
        "| attack | p50 | p99 | max | p99 beyond pace | memory | descriptors | broken streams | healthz | log | answers |"
    )
    print("|" + "---|" * 11)
    for row in _rows(names, options.soft_limit, options.code):
        print(row, flush=True)
    return 0


async def _attacking(name: str, port: str) -> list[str]:
    began = time.monotonic()
    answers = await ATTACKS[name](int(port))
    print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    return answers


if __name__ == "__main__":
    sys.exit(main())
