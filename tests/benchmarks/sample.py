"""Results as a run gives them, made up: for the tests of tables, charts and the page."""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks import contests as works
from benchmarks import growth, memory
from benchmarks.goals import JOINED, UNJOINED
from benchmarks.inputs import recipe_inputs
from benchmarks.reads import CUTS
from benchmarks.streams import AS_RECORDED, MIX, PAIRS, PER_EVENT, RECORDED
from streamkit.dialects import DIALECTS

MACHINE = {
    "processor": "A processor with a rather long name @ 2.60GHz", "cores": 2, "memory_gib": 24.0, "system": "Linux 6.1",
    "python": "CPython 3.11.7", "packages": {"orjson": "3.13.0", "attrs": "26.1.0"}, "commit": "0123456789+",
    "load_1_min": 0.5, "when": "2026-11-22T09:00+00:00",
}  # fmt: skip


def spread(value: float) -> dict[str, Any]:
    return {"median": value, "low": value * 0.97, "high": value * 1.05, "count": 9}


def _row(scale: float, **names: str) -> dict[str, Any]:
    return {**names, "events": 4000, "bytes": 1_200_000, "microseconds_per_event": scale, "events_per_second": 1e6 / scale,
            "megabytes_per_second": 300 / scale, "times_floor": spread(scale)}  # fmt: skip


def stages(scale: float) -> dict[str, Any]:
    names = [stream.name for stream in recipe_inputs(20)]
    recipe = [_row(scale * 1.1, input=name, cut="64 KiB", mode=mode) for name in names for mode in (JOINED, UNJOINED)]
    recipe += [_row(scale * 3 ** list(CUTS).index(cut), input=name, cut=cut, mode=JOINED)
               for name in ("text", "text, obfuscation", "four interleaved calls") for cut in list(CUTS)[1:]]  # fmt: skip
    parts = [
        _row(scale / 5, input=name, cut="64 KiB", mode=JOINED, kind=kind, part=part)
        for name in ("text", "four interleaved calls")
        for part in ("parse", "decode", "accumulate", "check", "encode")
        for kind in ("machine", "stage")
    ]
    framing = [_row(scale / 2, input="text", cut=cut, part="SSEParser") for cut in CUTS]
    return {"recipe": recipe, "parts": parts, "framing": framing}


def streams(scale: float) -> list[dict[str, Any]]:
    return [
        {"source": source, "from": name, "to": target, "cut": cut, "streams": 60, "events": 2_909,
         "microseconds_per_stream": 100 * scale, "times_floor": spread(scale)}
        for source in (MIX, RECORDED) for name, target in PAIRS for cut in (PER_EVENT, AS_RECORDED)
    ]  # fmt: skip


def pairs(scale: float) -> dict[str, Any]:
    names = list(DIALECTS.built_in)
    one = {"microseconds_per_delta": scale, "times_yardstick": spread(scale)}
    return {
        "deltas": 1000,
        "pairs": [{"from": source, "to": target, **one} for source in names for target in names],
        "decode": [{"dialect": name, "bytes": 123_456, **one} for name in names],
        "encode": [{"dialect": name, **one} for name in names],
    }


def _series(name: str, unit: str, sizes: tuple[int, ...], scale: float, **more: str) -> dict[str, Any]:
    seconds = [spread(size * scale * 1e-6) for size in sizes]
    return {"name": name, "unit": unit, "sizes": list(sizes), "seconds": seconds, "slope": 1.0, "doubling": 2.0, **more}


def grown(scale: float) -> dict[str, Any]:
    both = (JOINED, UNJOINED)
    return {
        "text": [_series(f"text, {mode}", "events", growth.TEXT_EVENTS, scale, mode=mode) for mode in both],
        "arguments": [_series(f"arguments, {mode}", "characters", growth.ARGUMENTS, scale, mode=mode) for mode in both],
        "lines": [_series("one line in 1 KiB reads", "bytes", growth.LINES, scale / 1000)],
        "accumulating": [
            {"mode": mode, "characters": 2**20, "milliseconds": 9.0, "times_list_join_loads": spread(scale)}
            for mode in both
        ],
    }


def remembered(scale: float) -> dict[str, Any]:
    return {
        "idle": [{"state": state, "pipes": 10_000, "bytes_per_pipe": 9_000 * scale} for state in ("entered", "waiting")],
        "streams": [{"cut": cut, "bytes": 1_200_000, "peak_bytes": 300_000} for cut in ("64 KiB", "per event")],
        "arguments": [{"characters": size, "mode": mode, "peak_bytes": round(size * 4 * scale)}
                      for size in memory.ARGUMENTS for mode in (JOINED, UNJOINED)],
        "flat": {"bytes": 100 * 2**20, "to": "anthropic", "peak_bytes": 400_000},
        "towards": [{"to": name, "bytes": [2**21, 2**22], "peak_bytes": [1, 2]} for name in DIALECTS.built_in],
    }  # fmt: skip


@cache
def contests() -> list[works.Contest]:
    return list(works.contests())


def peers(scale: float) -> dict[str, Any]:
    """Every contest's row, the last peer of each wrong and the one before it not installed."""
    rows = []
    for contest in contests():
        for place, peer in enumerate(contest.peers):
            row = {"work": contest.work, "input": contest.input, "cut": contest.cut, "events": contest.events,
                   "peer": peer.name, "kind": peer.kind, "version": "12.345.6", "error": "", "wrong": ""}  # fmt: skip
            if place and place == len(contest.peers) - 1:
                row["wrong"] = "the text differs"
            elif place and place == len(contest.peers) - 2:
                row["error"] = "not installed"
            else:
                row["times_streamkit"] = spread(1.0 + place * scale * 7)
                row["microseconds_per_event"] = 1.0 + place * scale
                row["times_floor"] = spread(1.0)
            rows.append(row)
    return {"rows": rows}


def results(scale: float = 1.0) -> dict[str, Any]:
    sections = {
        "streams": streams,
        "stages": stages,
        "pairs": pairs,
        "growth": grown,
        "memory": remembered,
        "peers": peers,
    }
    return {"machines": dict.fromkeys(sections, MACHINE), **{name: make(scale) for name, make in sections.items()}}
