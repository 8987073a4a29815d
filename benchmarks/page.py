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

This page says how much CPU time and memory streamkit needs, how both grow with the input, and how much CPU time other
libraries need for the same work.
"""
GATEWAY = """\
The figures on this page do not include sockets and HTTP. [What the gateway costs](gateway.md) includes both.
"""
LIMITS = """\
## What the numbers do not say

- **How long your users wait.** A model writes about a hundred events a second. In every row on this page, except for
  events of 4 MiB, streamkit reads thousands of events a second. streamkit costs CPU time and memory on your
  server, but users cannot notice the time that streamkit adds before the first token.
- **What a network costs.** No measurement on this page uses a socket, TLS or HTTP.
- **How many microseconds streamkit takes on your machine.** The ratios are similar on other machines. Caches and the
  versions of Python and of orjson can change the ratios by some tens of per cent.
- **That another library is bad.** The SDKs build typed objects, LiteLLM keeps data for its logs, and LangChain can add up
  all parts of a message. These features take time. streamkit also does work that this comparison does not need: it checks,
  counts and limits. Every library ran with the settings that its documentation shows first. All libraries read the same
  kind of text and calls.
- **What a short stream costs.** Only the rows with *recorded* streams, the *seeded mix* and *three events* are about short
  streams. The other rows use streams of 4,000 events, unless a table gives another number. In a stream of fewer than a
  thousand events, opening and closing the pipe takes a noticeable part of the time.
- **What a fault costs.** All inputs are without faults. Repairs, losses and errors take other paths through the code.
  Tests run these paths, but the benchmarks do not time them.
"""
READING = """\
## How to read the tables

- The **floor** is the time that `orjson.loads` takes for the payloads of all events, without framing and output. "3 ×
  floor" means that the work takes three times as long as the floor, for the same events, in the same second, on the
  same machine.
- A figure is the median of several rounds. The quartiles are in parentheses.
- "Joined" means that streamkit joins adjacent deltas of one read, as `transcode` does by default. "Unjoined" means that
  each delta is kept.
- "64 KiB" means that the bytes arrive in reads of 64 KiB. "Per event" means that each read is one event.

These commands repeat the measurements:

```sh
# measure everything, and write this page: a few minutes on two cores
make bench
# once, before `make bench`: install the other libraries, to measure them too
make bench-peers
# count instructions, to find out whether streamkit has become slower
make bench-check
```
"""
METHOD = """\
## Method

- **Inputs.** A seed generates all inputs except the recorded streams, so these inputs are the same on every machine
  (`benchmarks/mix.py`, `content.py`, `inputs.py`). The first table uses the recorded streams, and streams that are like
  them. The other tables use long streams. In OpenAI Chat, the events of a long stream have OpenAI's order of fields, and
  300 to 380 bytes each. The long streams of all other dialects have the same content. Before the timing, a check reads
  each input and each output. The text, the stop reason and every character of the arguments must be as expected
  (`oracle.py`). For Chat and Anthropic, this check does not use streamkit's code. For the other dialects, the check uses
  streamkit's decoders. streamkit's tests compare the results of these decoders with the results of the official clients.
- **Ratios.** The speed of a shared machine changes from one second to the next. So the floor is timed before and after
  each run of each task, and a ratio compares times of the same round (`timing.py`). Runs shorter than 12 ms are
  repeated within the round. Garbage collection is on.
- **Event loops.** If only streamkit is measured, no event loop runs, because the source of the bytes never waits. If
  libraries are compared, each library runs in its own process and environment, and reads the bytes from memory instead
  of a socket. An event loop runs if the library needs an event loop. The libraries run in turn.
- **Libraries that cannot read SSE.** For such a library, the benchmark adds the least code that can read SSE:
  `bytes.split`, and `orjson` for input and output (`peers/worker.py`). The code that runs a library is in its file
  `peers/time_….py`. The output of the libraries is checked in the same way as streamkit's output, but the output of a
  library may have several blocks open at the same time. If a result is wrong, the table has no time for this result. If
  only some of many streams have wrong results, the table has a time, and the list below the tables says how many results
  are wrong.
- **Memory** is the memory that Python has allocated since the start of the measurement, according to `tracemalloc`. The
  memory of the source is not counted.
"""
GOALS = """\
## Goals

A goal is a figure that the project wants to reach on a quiet machine. A goal is not a promise, and no test fails if a
goal is missed. `make bench-check` finds changes that make streamkit slower. {held} of {all} goals were met in the
stored run. The table begins with the goals that were met.
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
    "Half of the streams have fewer than 25 events. The *recorded* streams are not in the repository, so they are measured\n"
    "only on machines that have them (`STREAMKIT_CORPORA`). The *seeded mix* can be measured on every machine: a seed\n"
    "generates streams that are like the recorded streams (`benchmarks/shapes.json`). The generated streams have similar\n"
    "lengths, and events and fragments of similar sizes. Members that providers add are as frequent as in the recordings.\n\n"
    "In the third column, 0.8 means that LLM-Rosetta needs 80 % of streamkit's time, so LLM-Rosetta is faster.\n"
    "If the figure is above 1, streamkit is faster.\n",
    "stages": "The streams are converted from OpenAI Chat to Anthropic. The time includes framing, decoding,\n"
    "accumulating calls, checking their arguments, and encoding. In inputs with *obfuscation*, each event also has\n"
    "OpenAI's padding of random characters. Two calls are *interleaved* if their fragments alternate.\n",
    "pairs": "One response (reasoning, text, and four calls one after the other) is converted from every dialect to every\n"
    "dialect. Each figure of the first table is the time of a conversion, divided by the time from Chat to Anthropic. If\n"
    "both dialects are the same, all frames are still decoded and encoded.\n"
    "Ollama, Mistral and Gemini write a call in one piece, so their streams have fewer frames.\n",
    "growth": "The slope is the exponent of growth: 1 is linear, 2 is quadratic.\n"
    "The column after the slope says how many times as long streamkit takes if the input has twice the size. This figure is\n"
    "measured at the three largest sizes.\n",
    "memory": "The first table is about many pipes that wait for data. The second table is about one open stream with a\n"
    "long call.\n",
    "peers": '"× streamkit" is the time of a library divided by that of streamkit, for the same work in the same round.\n'
    "If this figure is below 1, the library is faster than streamkit. On Node, the floor is the time of `JSON.parse`.\n"
    "The head of a table's first column says which work the table is about. In *look at growing arguments*, the incomplete\n"
    "arguments of a call are read again after each fragment.\n",
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
        f"load average before the run {found['load_1_min']}"
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
        f"**Recorded streams, and streams like them**, with one event in each read: streamkit converts a whole stream in\n"
        f"  {cost} µs of CPU time, including the opening and closing of its pipe."
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
            f"  In these {len(slower)} comparisons, LLM-Rosetta needs {between(slower)} of streamkit's time."
        )


def _stages(results: Results) -> Iterator[str]:
    recipe, own = results["stages"]["recipe"], results["stages"]["own"]
    yield (
        f"**Long streams**: streamkit needs {between(row['microseconds_per_event'] for row in recipe)} µs for an event.\n"
        f"  That is {between(medians(recipe, 'times_floor'))} times as long as `orjson.loads` alone needs for the event."
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
        f"**A stage of your own** that forwards batches unchanged adds at most {tables.number(max(passing))} µs to each\n"
        "  event. The stage `redact`, which here looks for e-mail addresses in all text and arguments, adds\n"
        f"  {between(redacting)} µs to each event."
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
                f"  {between(least)} times as long as streamkit, and the slowest ({last}) takes {between(most)} times as long."
            )
    faster = {
        row["peer"]
        for row in results["peers"]["rows"]
        if row["kind"] != "Python" and row.get("times_streamkit", {"median": 1})["median"] < 1
    }
    if wrong := sorted({row["peer"] for row in results["peers"]["rows"] if row["wrong"]}):
        yield (
            f"**Some results of other libraries are wrong**: {', '.join(wrong)}.\n"
            "  The tables have no time for these results. A list below the tables says what is wrong."
        )
    if faster:
        names = ", ".join(sorted(faster))
        yield (
            "In some rows, a library that is not written in Python is **faster than streamkit**. These libraries are:\n"
            f"  {names}."
        )


def _growth(results: Results) -> Iterator[str]:
    doubling = between(row["doubling"] for row in results["growth"])
    yield f"**Growth**: if the input has twice the size, streamkit takes {doubling} times as long."


def _memory(results: Results) -> Iterator[str]:
    memory = results["memory"]
    idle = tables.number(max(row["bytes_per_pipe"] for row in memory["idle"]) / 2**10)
    flat = max(memory["flat"], key=lambda row: row["bytes"])
    yield (
        f"**Memory**: an open pipe that waits for data needs {idle} KiB. A stream of {flat['bytes'] / 2**20:.0f} MiB needs "
        f"at most\n  {tables.number(flat['peak_bytes'] / 2**20)} MiB at any time."
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
            f"So if an event costs 20 µs, each open stream needs {PACE * 20 / 1e6:.1%} of one core.\n"
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
