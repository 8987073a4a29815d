"""What the measurements say: each figure with its goal, and whether it was held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from statistics import median
from typing import Any, Final

from attrs import frozen

from benchmarks.gateway.measures import Seen
from streamkit.limits import MIB

CPU_RATIO: Final = 1.3
#: Of a stream that can be resumed, over one that can't: its log in memory, and in a server too.
KEPT_RATIO, STORED_RATIO = 1.1, 1.3
TRACED_RATIO = 1.1
LATE_MS: Final = 20.0
#: Of a short request over the relay's: streamed, and whole.
REQUEST_RATIOS: Final = {"streamed": 3.0, "whole": 2.8}
START_S: Final = 1.0
#: What the gateway adds to the first byte.
FIRST_MS: Final = {"p50": 1.5, "p99": 5.0}


@frozen
class Finding:
    """A line of the table. ``held`` is None where there is no goal."""

    name: str
    measured: str
    goal: str = ""
    held: bool | None = None


@frozen
class Spread:
    """A figure of each round."""

    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        return median(self.values)

    def __format__(self, spec: str) -> str:
        low, high = min(self.values), max(self.values)
        return f"{self.middle:{spec}} ({low:{spec}}–{high:{spec}})"


def findings(seen: Mapping[str, Seen]) -> list[Finding]:
    """The lines for what was measured."""
    return [line for name, told in FINDINGS.items() if name in seen for line in told(seen[name])]


def of_each(rounds: Iterable[Seen], leg: str, *path: str) -> Spread:
    """One figure of a leg's clients."""
    return Spread(tuple(_at(one[leg]["groups"]["all"], path) for one in rounds))


def _at(values: Any, path: Iterable[str]) -> float:
    for key in path:
        values = values[key]
    return float(values)


def _complete(rounds: Iterable[Seen]) -> Finding:
    groups = [group for one in rounds for leg in one.values() for group in leg["groups"].values()]
    streams, complete = sum(group["streams"] for group in groups), sum(group["complete"] for group in groups)
    faults = {fault for group in groups for fault in group["faults"]}
    measured = f"{complete:,} of {streams:,}" + (f"; {'; '.join(sorted(faults))}" if faults else "")
    return Finding("streams whose whole text arrived", measured, "all", complete == streams)


def _cpu_us(result: Seen, leg: str) -> float:
    """Microseconds of CPU for an event, where all streams are under way."""
    events = int(result["groups"]["all"]["window_events"])
    return float(result["cpu"][leg]["window_s"]) * 1e6 / events if events else inf


def _whole_us(result: Seen, leg: str) -> float:
    return float(result["cpu"][leg]["whole_s"]) * 1e6 / int(result["groups"]["all"]["events"])


def _over(figures: Spread, others: Spread) -> Spread:
    """The ratio in each round."""
    return Spread(tuple(one / other for one, other in zip(figures.values, others.values, strict=True)))


def _cost(seen: Seen) -> Iterator[Finding]:
    rounds = seen["rounds"]
    load = f"{seen['streams']} streams × {1 / seen['gap_s']:g} events/s"
    for what, figure, goal in (
        ("CPU time for an event", _cpu_us, CPU_RATIO),
        (
            f"CPU time for an event, including the beginning and end of its stream of {seen['events']} events",
            _whole_us,
            None,
        ),
    ):
        legs = {
            leg: Spread(tuple(figure(one[leg], leg) for one in rounds)) for leg in ("relay", "warm relay", "gateway")
        }
        for leg, spread in legs.items():
            yield Finding(f"{what}, {leg}, {load}", f"{spread:.1f} µs")
        ratio = _over(legs["gateway"], legs["relay"])
        held = None if goal is None else ratio.middle <= goal
        yield Finding(f"{what}, gateway over relay", f"{ratio:.2f}", f"at most {goal}" if goal else "", held)
        yield Finding(f"{what}, gateway over warm relay", f"{_over(legs['gateway'], legs['warm relay']):.2f}")
    for leg in ("relay", "gateway"):
        for what, path in (
            ("time added to the first byte", "first_byte_ms"),
            ("added lateness of an event", "lateness_ms"),
        ):
            for percent in ("p50", "p99"):
                added = Spread(
                    tuple(
                        one[leg]["groups"]["all"][path][percent] - one["direct"]["groups"]["all"][path][percent]
                        for one in rounds
                    )
                )
                goal = FIRST_MS[percent] if (what, leg) == ("time added to the first byte", "gateway") else None
                held = None if goal is None else added.middle <= goal
                bound = "" if goal is None else f"at most {goal} ms"
                yield Finding(f"{what}, {percent}, {leg} minus direct", f"{added:.2f} ms", bound, held)
    for leg in ("direct", "relay", "gateway"):
        gaps = " / ".join(f"{of_each(rounds, leg, 'gap_ms', percent).middle:.1f}" for percent in ("p50", "p90", "p99"))
        yield Finding(f"gap between events, p50 / p90 / p99, {leg}", f"{gaps} ms")
    for leg in ("relay", "gateway"):
        clumped = Spread(
            tuple(one[leg]["groups"]["all"]["clumped"] - one["direct"]["groups"]["all"]["clumped"] for one in rounds)
        )
        yield Finding(f"clumping index, {leg} minus direct", f"{clumped:.4f}")
    yield _complete(rounds)


def _many(seen: Seen) -> Iterator[Finding]:
    rounds = seen["rounds"]
    relay, gateway = (of_each(rounds, leg, "lateness_ms", "p99") for leg in ("relay", "gateway"))
    load = f"{seen['streams']} streams × {1 / seen['gap_s']:g} events/s"
    yield Finding(f"p99 lateness, byte relay, {load}", f"{relay:.1f} ms")
    yield Finding(
        f"p99 lateness, gateway, {load}",
        f"{gateway:.1f} ms",
        f"at most the relay's + {LATE_MS:g} ms",
        gateway.middle <= relay.middle + LATE_MS,
    )
    yield Finding("p99 lateness, gateway over relay", f"{_over(gateway, relay):.2f}")
    yield _complete(rounds)


def _requests(seen: Seen) -> Iterator[Finding]:
    rounds = seen["rounds"]
    for kind, bound in REQUEST_RATIOS.items():
        cost = {leg: Spread(tuple(_request_ms(one[f"{leg}, {kind}"], leg) for one in rounds)) for leg in seen["legs"]}
        for leg, spread in cost.items():
            yield Finding(f"CPU time for a request, {kind}, {leg}", f"{spread:.2f} ms")
            if leg != "relay":
                ratio, goal = _over(spread, cost["relay"]), bound if leg == "gateway" else None
                held = None if goal is None else ratio.middle <= goal
                yield Finding(
                    f"CPU time for a request, {kind}, {leg} over relay",
                    f"{ratio:.2f}",
                    f"at most {goal}" if goal else "",
                    held,
                )
            groups = [one[f"{leg}, {kind}"]["groups"]["all"] for one in rounds]
            rate = Spread(tuple(group["streams"] / group["seconds"] for group in groups))
            yield Finding(f"requests per second, {kind}, {leg}", f"{rate:.0f}")
    start = Spread(tuple(seen["start_s"]))
    yield Finding(
        "CPU time until the gateway accepts requests",
        f"{start:.2f} s",
        f"at most {START_S:g} s",
        start.middle <= START_S,
    )
    for leg in seen["legs"]:
        rss = [one[f"{leg}, streamed"]["rss"][leg] for one in rounds]
        rest, load = rss[0]["before"] / MIB, max(each["peak"] for each in rss) / MIB
        yield Finding(f"memory before and under this load, {leg}", f"{rest:.0f} and {load:.0f} MiB")
    for name, error in seen["errors"].items():
        yield Finding(name, f"can't run: {error.splitlines()[-1][:200]}")
    yield _complete(rounds)


def _request_ms(result: Seen, leg: str) -> float:
    return float(result["cpu"][leg]["whole_s"]) * 1e3 / int(result["groups"]["all"]["streams"])


def _peers(seen: Seen) -> Iterator[Finding]:
    rounds = seen["rounds"]
    yield Finding("load", f"{seen['streams']} streams × {1 / seen['gap_s']:g} events/s")
    relay = Spread(tuple(_cpu_us(one["relay"], "relay") for one in rounds))
    for leg in [leg for leg in rounds[0] if leg != "direct"]:
        cpu = Spread(tuple(_cpu_us(one[leg], leg) for one in rounds))
        yield Finding(f"CPU time for an event, {leg}", f"{cpu:.0f} µs")
        if leg != "relay":
            yield Finding(f"CPU time for an event, {leg} over relay", f"{_over(cpu, relay):.2f}")
        for what, path, percent in (
            ("time added to the first byte", "first_byte_ms", "p50"),
            ("added lateness of an event", "lateness_ms", "p50"),
            ("added lateness of an event", "lateness_ms", "p99"),
        ):
            here, direct = (of_each(rounds, name, path, percent) for name in (leg, "direct"))
            added = Spread(tuple(one - other for one, other in zip(here.values, direct.values, strict=True)))
            yield Finding(f"{what}, {percent}, {leg} minus direct", f"{added:.1f} ms")
    for name, error in seen["errors"].items():
        yield Finding(name, f"can't run: {error.splitlines()[-1][:200]}")
    yield _complete(rounds)


def _kept(seen: Seen) -> Iterator[Finding]:
    rounds = seen["rounds"]
    load = f"{seen['streams']} streams × {1 / seen['gap_s']:g} events/s"
    legs = {leg: Spread(tuple(_cpu_us(one[leg], leg) for one in rounds)) for leg in rounds[0]}
    for leg, spread in legs.items():
        yield Finding(f"CPU time for an event, {leg}, {load}", f"{spread:.1f} µs")
    for leg in (each for each in legs if each != "gateway"):
        ratio, goal = _over(legs[leg], legs["gateway"]), KEPT_RATIO if leg == "kept in memory" else STORED_RATIO
        yield Finding(
            f"CPU time for an event, {leg} over gateway", f"{ratio:.2f}", f"at most {goal}", ratio.middle <= goal
        )
    yield _complete(rounds)


def _observed(seen: Seen) -> Iterator[Finding]:
    """A trace is made at a stream's beginning and end, so those are counted, too."""
    rounds = seen["rounds"]
    for what, figure, goal in (
        ("CPU time for an event", _cpu_us, None),
        (
            f"CPU time for an event, including the beginning and end of its stream of {seen['events']} events",
            _whole_us,
            TRACED_RATIO,
        ),
    ):
        legs = {leg: Spread(tuple(figure(one[leg], leg) for one in rounds)) for leg in rounds[0]}
        for leg, spread in legs.items():
            yield Finding(f"{what}, {leg}", f"{spread:.1f} µs")
        for leg in (each for each in legs if each != "gateway"):
            ratio = _over(legs[leg], legs["gateway"])
            bound = goal if leg == "traced" else None
            held = None if bound is None else ratio.middle <= bound
            yield Finding(f"{what}, {leg} over gateway", f"{ratio:.2f}", f"at most {bound}" if bound else "", held)
    yield _complete(rounds)


FINDINGS: Final = {
    "requests": _requests,
    "cost": _cost,
    "many": _many,
    "peers": _peers,
    "kept": _kept,
    "observed": _observed,
}
TITLES: Final = {
    "requests": "Short requests",
    "cost": "What it costs and adds",
    "many": "Many streams",
    "peers": "Beside other gateways",
    "kept": "Streams that can be resumed",
    "observed": "Streams that are traced, or looked at",
}
