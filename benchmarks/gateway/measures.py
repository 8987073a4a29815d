"""The measurements: each carries out plans in turns among what is compared, and returns all that it saw."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve, field, frozen

from benchmarks.gateway.peers import PEERS, Peer, serving
from benchmarks.gateway.process import ROOT, Server, collector, cpu_ns, gateway
from streamkit.web.resume.settings import ASKED_HEADER
from tests.resume.servers import NAMES, program, running

#: What one measurement saw, as JSON values.
Seen: TypeAlias = dict[str, Any]
#: Beyond what a plan is to take, before something is wrong.
MARGIN_S: Final = 120.0


@frozen(kw_only=True)
class Sizes:
    """How much is measured."""

    rounds: int = 5  #: of each comparison
    streams: int = 200  #: for CPU, lateness and gaps; ten events a second in each
    events: int = 50  #: in each of those
    many: int = 500  #: four events a second in each
    many_events: int = 32
    many_rounds: int = 3
    asked: int = 600  #: short requests, one after the other by each of a few clients
    asked_rounds: int = 5
    few: int = 20  #: streams for other gateways too
    few_rounds: int = 3


FULL: Final = Sizes()
#: To see that it runs: these say nothing.
TINY: Final = Sizes(
    rounds=1, streams=4, events=6, many=6, many_events=3, many_rounds=1, asked=8, asked_rounds=1, few=2, few_rounds=1,
)  # fmt: skip


@frozen
class Bench:
    """What runs, and how much is asked of it. ``say`` is told how far it is."""

    model: Server
    relay: Server
    warm: Server  #: a relay too, its memory warm
    gateway: Server
    sizes: Sizes
    folder: Path  #: for what servers need and say
    say: Callable[[str], None]
    #: Other gateways, by name, and how clients ask them.
    others: Mapping[str, tuple[Server, Mapping[str, Any]]] = field(factory=dict)

    def to(self, leg: str) -> Mapping[str, Any]:
        """Where clients of a leg go, and how they speak."""
        if leg in self.others:
            return self.others[leg][1]
        return {
            "direct": {"port": self.model.port, "dialect": "openai-chat"},
            "relay": {"port": self.relay.port, "dialect": "openai-chat"},
            "warm relay": {"port": self.warm.port, "dialect": "openai-chat"},
            "gateway": {"port": self.gateway.port, "dialect": "anthropic"},
        }[leg]

    def pids(self, leg: str) -> dict[str, int]:
        measured = {"relay": self.relay, "warm relay": self.warm, "gateway": self.gateway}
        measured |= {name: server for name, (server, _) in self.others.items()}
        return {leg: measured[leg].pid} if leg in measured else {}

    def legs(self, name: str, legs: tuple[str, ...], rounds: int) -> Iterator[tuple[int, str]]:
        """The legs in turns, each round beginning with another."""
        for number in range(rounds):
            shift = number % len(legs)
            for leg in legs[shift:] + legs[:shift]:
                self.say(f"{name}: round {number + 1} of {rounds}, {leg}")
                yield number, leg


def clients(what: str, plan: Mapping[str, Any], *, within_s: float) -> Any:
    """What the clients of ``benchmarks.gateway.<what>`` saw, in a process of their own."""
    command = [sys.executable, "-m", f"benchmarks.gateway.{what}"]
    done = subprocess.run(
        command, cwd=ROOT, input=orjson.dumps(plan), capture_output=True, timeout=within_s + MARGIN_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the clients failed: {done.stderr.decode()[-2000:]}")
    return orjson.loads(done.stdout)


def paced(
    bench: Bench,
    name: str,
    legs: tuple[str, ...],
    rounds: int,
    *,
    streams: int,
    events: int,
    gap_s: float,
    within: float,
) -> Seen:
    """So many streams with an event each ``gap_s``, begun ``within`` a share of the time that one takes.

    CPU and events are counted where all are under way.
    """
    lasts_s = gap_s * (events - 1)
    spread_s = lasts_s * within
    seen: list[Seen] = [{} for _ in range(rounds)]
    for number, leg in bench.legs(name, legs, rounds):
        group = {"name": "all", "streams": streams, "spread_s": spread_s, **bench.to(leg)}
        plan = {
            "seed": number,
            "pids": bench.pids(leg),
            "window_s": [spread_s + gap_s, max(lasts_s - gap_s, spread_s + 2 * gap_s)],
            "groups": [{**group, "script": {"events": events, "gap_us": int(gap_s * 1e6)}}],
        }
        seen[number][leg] = clients("load", plan, within_s=spread_s + lasts_s)
    return {"streams": streams, "events": events, "gap_s": gap_s, "rounds": seen}


def cost(bench: Bench) -> Seen:
    sizes = bench.sizes
    legs = ("direct", "relay", "warm relay", "gateway")
    return paced(bench, "cost", legs, sizes.rounds, streams=sizes.streams, events=sizes.events, gap_s=0.1, within=0.2)


def many(bench: Bench) -> Seen:
    sizes = bench.sizes
    legs = ("relay", "gateway")
    return paced(
        bench, "many", legs, sizes.many_rounds, streams=sizes.many, events=sizes.many_events, gap_s=0.25, within=0.4
    )


def peers(bench: Bench) -> Seen:
    """The same few streams through other gateways, in turns with ours."""
    sizes = bench.sizes
    with ExitStack() as stack:
        bench, errors = _with_peers(bench, stack, PEERS)
        legs = ("direct", "relay", "gateway", *bench.others)
        few = {"streams": sizes.few, "events": sizes.events, "gap_s": 0.1, "within": 0.2}
        return {**paced(bench, "peers", legs, sizes.few_rounds, **few), "errors": errors}


#: A short answer, as agents get: so many events, all at once.
SHORT: Final = {"events": 12, "gap_us": 0}
CLIENTS: Final = 8  #: each sends a request when its last one is answered


def requests(bench: Bench) -> Seen:
    """Short requests, streamed and whole, each by a connection of its own: through relay, gateway, and LiteLLM's proxy."""
    sizes = bench.sizes
    with ExitStack() as stack:
        bench, errors = _with_peers(bench, stack, [peer for peer in PEERS if peer.dialect == "anthropic"])
        legs = ("relay", "gateway", *bench.others)
        seen: list[Seen] = [{} for _ in range(sizes.asked_rounds)]
        for number, leg in bench.legs("requests", legs, sizes.asked_rounds):
            for kind in ("streamed", "whole"):
                count = sizes.asked // 10 if leg in bench.others else sizes.asked  # they take fifty times as long
                group = {
                    "name": "all",
                    "streams": max(count, CLIENTS),
                    "at_once": CLIENTS,
                    "stream": kind == "streamed",
                }
                plan = {"seed": number, "pids": bench.pids(leg), "patience_s": 300.0}
                plan["groups"] = [{**group, "script": SHORT, **bench.to(leg)}]
                seen[number][f"{leg}, {kind}"] = clients("load", plan, within_s=300.0)
        return {"rounds": seen, "legs": legs, "errors": errors, "start_s": [_start_s(bench) for _ in seen]}


def _start_s(bench: Bench) -> float:
    """CPU seconds until a new gateway serves."""
    bench.say("requests: starting a gateway")
    folder = bench.folder / "started"
    folder.mkdir(exist_ok=True)
    with gateway(folder, bench.model) as started:
        return cpu_ns(started.pid) / 1e9


def _with_peers(bench: Bench, stack: ExitStack, peers: Iterable[Peer]) -> tuple[Bench, dict[str, str]]:
    """The bench with other gateways, warmed up, and why some are missing."""
    errors: dict[str, str] = {}
    for peer in peers:
        bench.say(f"starting {peer.name}")
        try:
            server, ask = stack.enter_context(serving(peer, bench.folder, bench.model))
        except RuntimeError as error:
            errors[peer.name] = str(error)
        else:
            bench = evolve(bench, others={**bench.others, peer.name: (server, ask)})
    for leg in ("relay", "gateway", *bench.others):  # the first requests of some take seconds
        group = {"name": "all", "streams": 4, "script": {"events": 5, "gap_us": 100_000}, **bench.to(leg)}
        clients("load", {"groups": [group]}, within_s=60)
    return bench, errors


def kept(bench: Bench) -> Seen:
    """The same streams, plain and resumable: with their logs in memory, and in a server where there is one."""
    sizes, plain = bench.sizes, bench.to("gateway")
    asked = {**plain, "headers": {ASKED_HEADER: "1"}}
    with ExitStack() as stack:
        others = {"kept in memory": (bench.gateway, asked)}
        for name in (each for each in NAMES if program(each) is not None):
            folder = bench.folder / name
            folder.mkdir()
            (folder / "url").write_text(stack.enter_context(running(name, folder)).url, "utf-8")
            tables = '[resume]\nstore = "redis"\nurl = { file = "url" }\n'
            server = stack.enter_context(gateway(folder, bench.model, tables=tables))
            others[f"kept in {name}"] = (server, {**asked, "port": server.port})
        bench = evolve(bench, others=others)
        longer = {"streams": sizes.streams, "events": 3 * sizes.events, "gap_s": 0.1, "within": 0.2}
        return paced(bench, "kept", ("gateway", *others), sizes.rounds, **longer)


def observed(bench: Bench) -> Seen:
    """The same streams, plain, with traces and metrics by OTLP, and with the inspector on and nobody at it."""
    sizes, plain = bench.sizes, bench.to("gateway")
    with ExitStack() as stack:
        where = stack.enter_context(collector(bench.folder)).url
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": where, "OTEL_SERVICE_NAME": "bench"}
        others = {}
        for leg, how in (
            ("traced", {"tables": "[telemetry]\notlp = true\n", "environment": environment}),
            ("inspected", {"options": ("--inspect",)}),
        ):
            folder = bench.folder / leg
            folder.mkdir()
            server = stack.enter_context(gateway(folder, bench.model, **how))
            others[leg] = (server, {**plain, "port": server.port})
        bench = evolve(bench, others=others)
        few = {"streams": sizes.streams, "events": sizes.events, "gap_s": 0.1, "within": 0.2}
        return paced(bench, "observed", ("gateway", *others), sizes.rounds, **few)


MEASURES: Final[Mapping[str, Callable[[Bench], Seen]]] = {
    "cost": cost,
    "many": many,
    "requests": requests,
    "peers": peers,
    "kept": kept,
    "observed": observed,
}
