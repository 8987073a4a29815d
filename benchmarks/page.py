"""``docs/benchmarks/README.md``, wholly written from the results of a run: words first, then tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.charts import CHARTS
from benchmarks.goals import Results, Row, judged
from benchmarks.streams import STREAMS_WORK, THREE

HEAD = """\
<!-- Written by `make bench`. `python -m benchmarks --draw` writes it again from results.json, and measures nothing. -->
# Benchmarks

This page says what streamkit costs, how the cost grows, and what other libraries cost for the same work.
"""
GATEWAY = """\
The figures on this page do not include sockets and HTTP. [What the gateway costs](gateway.md) includes both.
"""
LIMITS = """\
## What the numbers do not say

- **How long your users wait.** A model writes about a hundred events a second. In every row on this page, except for
  events of 4 MiB, streamkit reads thousands of events a second. It costs CPU time and memory on your server, but users
  cannot notice the time that it adds before the first token.
- **What a network costs.** No measurement on this page uses a socket, TLS or HTTP.
- **How many microseconds it takes on your machine.** The ratios are similar on other machines. Caches and the versions
  of Python and of orjson change the ratios by tens of per cent.
- **That another library is bad.** The SDKs build typed objects, LiteLLM keeps what its logs need, and LangChain can add
  up any part of a message. streamkit checks, counts and limits more than this comparison asks for. Every library ran with the
  settings that its documentation shows first. All libraries read the same kind of text and calls.
- **What a short stream costs, except in the first table.** The other tables use streams of 4,000 events, unless a table
  says something else. In streams of fewer than a thousand events, the cost of opening and closing a pipe is visible.
- **What a fault costs.** All inputs are clean. Repairs, losses and errors take other paths through the code. Tests run
  these paths, but the benchmarks do not time them.
"""
READING = """\
## How to read the tables

- The **floor** is the time that `orjson.loads` takes for the payloads of all events, without framing and output. "3 ×
  floor" means that the work takes three times as long as the floor, for the same events, in the same second, on the
  same machine.
- A figure is the median of several rounds. The quartiles are in parentheses.
- "Joined" means that streamkit joins adjacent deltas of one read, as `transcode` does by default. "Unjoined" means that
  each delta is kept.
- "64 KiB" and "per event" say how the bytes arrive: in large reads, or one event in each read.

These commands repeat the measurements:

```sh
# measure everything, and write this page: a few minutes on two cores
make bench
# once, before `make bench`: install the other libraries, to measure them too
make bench-peers
# has anything become slower? counts instructions, so any machine will do
make bench-check
```
"""
METHOD = """\
## Method

- **Inputs**, except the recorded ones, come from a seed and are the same on every machine (`benchmarks/mix.py`,
  `content.py`, `inputs.py`). The first table uses streams like the recordings. The other tables use long streams of
  chunks: Chat chunks with OpenAI's order of fields, 300 to 380 bytes an event, and the same content in every other
  dialect. Before the timing, a check reads each input and each output. The text, the stop reason and every character
  of the arguments must be as expected (`oracle.py`). To read Chat and Anthropic, this check shares no code with
  streamkit. For the other dialects it uses streamkit, whose tests compare its results with those of the official
  clients.
- **Ratios.** The speed of a shared machine changes from one second to the next. So the floor is timed before and after
  each run of each task, and a ratio compares times of the same round (`timing.py`). Runs shorter than 12 ms are
  repeated within the round. Garbage collection is on.
- **No event loop** runs while streamkit alone is measured, because the source never waits. In the comparison, each
  library runs in its own process and environment, with in-memory transports instead of sockets, and with an event loop
  if it needs one. The libraries run in turn.
- **Libraries that read no SSE** get the least code that a program needs to read SSE: `bytes.split`, and `orjson` for
  input and output (`peers/worker.py`). The code for each library is in its `peers/time_….py`. The output of the
  libraries is checked in the same way as streamkit's output, but it may have several blocks open at the same time. If a
  result is wrong, the table has no time for it. If only some of many results are wrong, the list below the tables says
  how many.
- **Memory** is the memory that Python allocated since the start of the measurement, according to `tracemalloc`. The
  memory of the source is not counted.
"""
GOALS = """\
## Goals

A goal is a figure that the project wants to reach on a quiet machine. A goal is not a promise, and no test fails if a
goal is missed. `make bench-check` finds changes that make streamkit slower. {held} of {all} goals were met in the
stored run. The first rows are the goals that were met.
"""
TITLES: Mapping[str, str] = {
    "streams": "Streams as they are",
    "stages": "Long streams",
    "peers": "Next to others",
    "pairs": "Dialects",
    "growth": "Growth",
    "memory": "Memory",
}
#: The text above a section's chart and tables.
LEADS: Mapping[str, str] = {
    "streams": "Each stream has its own pipe. The time includes the opening and closing of the pipe. Each read is one event.\n"
    "Half of the streams have fewer than 25 events. *Recorded* streams are measured only on machines that have them\n"
    "(`STREAMKIT_CORPORA`). Every machine has the *seeded mix*: a seed draws streams that are like the recordings\n"
    "(`benchmarks/shapes.json`) in their lengths, sizes and fragments, and in the members that providers add.\n\n"
    "In the third column, 0.8 means that LLM-Rosetta needs 80 % of streamkit's time, so it is faster.\n"
    "If the figure is above 1, streamkit is faster.\n",
    "stages": "The streams are converted from OpenAI Chat to Anthropic. The time includes framing, decoding,\n"
    "accumulating calls, checking their arguments, and encoding.\n",
    "pairs": "One response (reasoning, text, and four calls one after the other) is converted from every dialect to every\n"
    "dialect. The time from Chat to Anthropic is 1. If both dialects are the same, all frames are still decoded and encoded.\n"
    "Ollama, Mistral and Gemini write a call in one piece, so their streams have fewer frames.\n",
    "growth": "The slope is the exponent of growth: 1 is linear, 2 is quadratic.\n"
    "The column after the slope says how many times as long an input of twice the size takes, at the three largest sizes.\n",
    "memory": "The first table is about many pipes that wait. The second table is about one open stream with a long call.\n",
    "peers": '"× streamkit" is the time of a library divided by that of streamkit, for the same work in the same round.\n'
    "If it is below 1, the library is faster than streamkit. On Node, the floor is the time of `JSON.parse`.\n",
}
#: A model writes about so many events a second.
PACE = 100
#: The load average from which a machine has other work than the benchmark.
BUSY = 1.5


def machine(found: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB, {found['system']}; "
        f"{found['python']}, {packages}; commit {found['commit'] or 'unknown'}; {found['when']}; "
        f"load before it {found['load_1_min']}"
        + (", so the machine had other work" if found["load_1_min"] > BUSY else "")
    )


def between(values: Iterable[float]) -> str:
    """The least and the most of ``values``."""
    found = sorted(values)
    least, most = tables.number(found[0]), tables.number(found[-1])
    return least if least == most else f"{least} to {most}"


def medians(rows: Iterable[Row], column: str) -> list[float]:
    return [float(row[column]["median"]) for row in rows if column in row]


def _streams(results: Results) -> Iterator[str]:
    rows = [row for row in results["streams"] if row["source"] != THREE]
    cost = between(row["microseconds_per_stream"] for row in rows)
    yield (
        f"**Streams as a service gets them**, with one event in each read: a whole stream takes {cost} µs of CPU time,\n"
        "  including the opening and closing of its pipe."
    )
    ratios = medians(
        [
            row
            for row in results.get("peers", {}).get("rows", ())
            if row["work"].startswith(STREAMS_WORK) and not row["peer"].startswith("streamkit")
        ],
        "times_streamkit",
    )
    if slower := [ratio for ratio in ratios if ratio < 1]:
        yield (
            f"**streamkit is slower than LLM-Rosetta on these streams** in {len(slower)} of {len(ratios)} comparisons.\n"
            f"  In these comparisons, LLM-Rosetta needs {between(slower)} of streamkit's time."
        )


def _stages(results: Results) -> Iterator[str]:
    recipe, own = results["stages"]["recipe"], results["stages"]["own"]
    yield (
        f"**Long streams**: an event takes {between(row['microseconds_per_event'] for row in recipe)} µs. That is "
        f"{between(medians(recipe, 'times_floor'))} times\n"
        "  as long as `orjson.loads` of the event alone."
    )
    passing, redacting = (
        [
            row["microseconds_per_event"] * (1 - 1 / row["times_without"]["median"])
            for row in own
            if ("redact" in row["stage"]) is redacts
        ]
        for redacts in (False, True)
    )
    yield (
        f"**A stage of your own** that only passes batches on adds at most {tables.number(max(passing))} µs an event.\n"
        f"  `redact`, which looks for e-mail addresses in all text and arguments, adds {between(redacting)} µs."
    )


def _peers(results: Results) -> Iterator[str]:
    works = (
        ("parse SSE", "Reading server-sent events", "Python"),
        ("decode and accumulate", "Decoding and accumulating long streams", ""),
        ("re-encode", "Converting long streams from OpenAI Chat to Anthropic", ""),
    )
    for work, words, kind in works:
        found: dict[str, list[float]] = {}
        for row in results["peers"]["rows"]:
            other = row["work"].startswith(work) and not row["peer"].startswith("streamkit")
            if other and row["kind"].startswith(kind) and "times_streamkit" in row:
                found.setdefault(row["peer"], []).append(float(row["times_streamkit"]["median"]))
        if found:
            ordered = sorted(found.items(), key=lambda item: min(item[1]))
            (first, least), (last, most) = ordered[0], ordered[-1]
            among = f"{kind} libraries" if kind else "libraries"
            yield (
                f"**{words}**: of the other {among}, the fastest ({first}) takes\n"
                f"  {between(least)} times as long as streamkit, and the slowest ({last}) {between(most)} times."
            )
    faster = {
        row["peer"]
        for row in results["peers"]["rows"]
        if row["kind"] != "Python" and row.get("times_streamkit", {"median": 1})["median"] < 1
    }
    if wrong := sorted({row["peer"] for row in results["peers"]["rows"] if row["wrong"]}):
        yield (
            f"**Some results are wrong**, so the tables have no time for them: results of {', '.join(wrong)}.\n"
            "  A list below the tables says what was wrong."
        )
    if faster:
        names = ", ".join(sorted(faster))
        yield f"**Faster than streamkit** in some rows: {names}. These libraries are not written in Python."


def _growth(results: Results) -> Iterator[str]:
    yield f"**Growth**: twice the input takes {between(row['doubling'] for row in results['growth'])} times as long."


def _memory(results: Results) -> Iterator[str]:
    memory = results["memory"]
    idle = tables.number(max(row["bytes_per_pipe"] for row in memory["idle"]) / 2**10)
    flat = max(memory["flat"], key=lambda row: row["bytes"])
    yield (
        f"**Memory**: an open pipe that waits needs {idle} KiB. A stream of {flat['bytes'] / 2**20:.0f} MiB needs "
        f"{tables.number(flat['peak_bytes'] / 2**20)} MiB at its peak."
    )


WORDS: Mapping[str, Callable[[Results], Iterator[str]]] = {
    "streams": _streams,
    "stages": _stages,
    "peers": _peers,
    "growth": _growth,
    "memory": _memory,
}


def result(results: Results) -> Iterator[str]:
    """The result in words, from the figures of the sections that were measured."""
    found = [f"- {line}" for name, words in WORDS.items() if name in results for line in words(results)]
    if found:
        yield "## The result in words\n"
        yield "\n".join(found)
        yield (
            f"\nA model writes about {PACE} events a second.\n"
            f"So a cost of 20 µs an event is {PACE * 20 / 1e6:.1%} of one core for each stream in progress.\n"
        )


def section(results: Results, name: str) -> Iterator[str]:
    yield from (f"## {TITLES[name]}\n", LEADS[name])
    if name in CHARTS:
        yield f"![{CHARTS[name][1]}]({name}.svg)\n"
    yield from tables.SECTIONS[name](results)


def page(results: Results, *, gateway: bool = False) -> str:
    """``gateway``: whether its page (``benchmarks/gateway/``) is next to this one."""
    parts = [HEAD, *([GATEWAY] if gateway else []), *result(results), LIMITS, READING]
    for name in TITLES:
        if name in results:
            parts += section(results, name)
    if "streams" in results:
        found = list(judged(results))
        parts += [GOALS.format(held=sum(one.held for one in found), all=len(found)), tables.goals(results)]
    machines = [f"- {TITLES[name]}: {machine(found)}." for name, found in results["machines"].items()]
    return "\n".join([*parts, "## Machine\n", *machines, "", METHOD])


def write(results: Results, folder: Path) -> None:
    (folder / "README.md").write_text(page(results, gateway=(folder / "gateway.md").exists()), "utf-8")
