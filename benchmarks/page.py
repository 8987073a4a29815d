"""``docs/benchmarks/README.md``, wholly written from the results of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.charts import CHARTS
from benchmarks.goals import Results, judged

HEAD = """\
<!-- Written by `make bench`. -->
# Benchmarks

What streamkit costs, how that grows, and what others cost at the same work.
Everything here is measured by the repository's own programs and can be repeated:

```sh
make bench          # measures, prints the tables, writes this page, its charts and results.json: a few minutes on two cores
make bench-peers    # before it, once: an environment for each peer, so that `make bench` measures them too
make bench-check    # has anything become slower? by counted instructions, on any machine
```

The yardstick, called the **floor**, is `orjson.loads` of each event's payload, alone: no framing, no output.
"3 × floor" is three times as long as that, for the same events, in the same second, on the same machine.
"""
GATEWAY = """\
What a server costs that has sockets and HTTP: [the gateway](gateway.md).
"""
METHOD = """\
## Method

- **Inputs** but the recorded ones are seeded and the same on every machine (`benchmarks/mix.py`, `content.py`, `inputs.py`):
  for the first table streams as the recordings are, elsewhere large chunked ones: Chat chunks in OpenAI's order of
  fields, 300 to 380 bytes an event, and the same content in every other dialect.
  Before anything is timed, each input is read and must say what it should, and so must each output: text, arguments to the
  last character, stop reason (`oracle.py`).
  For Chat and Anthropic the readers share no code with streamkit; the other dialects are read by streamkit itself, and judged
  by the official clients in its tests.
- **Ratios.** A shared machine changes its speed from one second to the next.
  So the yardstick is timed before and after each run of each task, in rounds, and a ratio is taken within the round.
  The tables have the median of the rounds, with the quartiles in parentheses (`timing.py`).
  Runs shorter than 12 ms are repeated within the round.
  Garbage collection is on.
- **No event loop** drives streamkit in its own figures: a source that never waits never suspends.
  Among the peers everybody has a loop if it needs one, in-memory transports instead of sockets, a process and an environment
  of its own, and takes turns with the others.
- **Peers** that read no SSE get the least that their host would have to do, `bytes.split` and `orjson` on both sides
  (`peers/worker.py`); the work of each is in its `peers/time_….py`.
  Their output is judged like our own, but for one thing: blocks may be open side by side.
  A wrong result has no time; of many streams in one work those that are wrong are counted below the table.
- **Memory** is what Python allocated, by `tracemalloc`, above the start; the source is not counted.
"""
LIMITS = """\
## What the numbers do not say

- How long your users wait.
  A model writes a hundred events a second; the slowest row here reads thousands.
  What streamkit costs is CPU on your server and memory, not time to the first token.
- What a network costs.
  Nothing here has a socket, TLS or HTTP.
- Microseconds on your machine.
  Ratios carry over, within a machine's habits: caches and the versions of the interpreter and of orjson move them by tens of
  per cent.
- That a peer is bad software.
  The SDKs build typed objects that people like to use, LiteLLM keeps what it needs for its logs, LangChain adds up messages so
  that any prefix is one; streamkit checks, counts and bounds more than this comparison asks for.
  Everybody was run with the settings that its documents show first, on text and calls of one shape.
- What a short response costs, but for the first table.
  Streams elsewhere have 4,000 events if nothing else is said; below a thousand, what is done once a stream shows as well.
- What a fault costs.
  All inputs are clean; repairs, losses and errors take other ways through the code, and are tested, not timed.
"""
TITLES: Mapping[str, str] = {
    "streams": "Streams as they are",
    "stages": "The recipe: large chunked streams",
    "peers": "Next to others",
    "pairs": "Dialects",
    "growth": "Growth",
    "memory": "Memory",
}
#: The text above a section's chart and tables.
LEADS: Mapping[str, str] = {
    "streams": "Recorded streams, where they are at hand (`STREAMKIT_CORPORA`), and a mix that everybody has, drawn by a\n"
    "seed from the distribution of the recordings (`benchmarks/shapes.json`: lengths, sizes, fragments, what providers add).\n"
    "Each stream has a recipe of its own, which is opened and closed, and one event a read.\n"
    "Half of the streams have fewer than 25 events.\n",
    "stages": "Chat to Anthropic: framing, decoding, accumulating calls, checking their arguments, encoding.\n",
    "pairs": "One response, reasoning, text and four calls one after the other, from and to every dialect.\n"
    "Chat to Anthropic is 1; within one dialect everything is decoded and encoded all the same.\n"
    "Ollama, Mistral and Gemini write a call whole, and so have fewer frames.\n",
    "growth": "The slope is the exponent of growth: 1 is linear, 2 quadratic.\n"
    "A doubling says by how much time grows at the end, from the three largest sizes.\n",
    "memory": "Many pipes that wait, and one open stream with a long call.\n",
    "peers": "× streamkit: how many times as long as streamkit, at the same work, in the same round.\n"
    "On Node the floor is `JSON.parse`.\n",
}


def machine(found: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB, {found['system']}; "
        f"{found['python']}, {packages}; commit {found['commit'] or 'unknown'}; {found['when']}; "
        f"load before it {found['load_1_min']}"
    )


def section(results: Results, name: str) -> Iterator[str]:
    yield from (f"## {TITLES[name]}\n", LEADS[name])
    if name in CHARTS:
        yield f"![{CHARTS[name][1]}]({name}.svg)\n"
    yield from tables.SECTIONS[name](results)
    if name == "streams":
        found = list(judged(results))
        yield f"## What the benchmarks must show\n\n{sum(one.held for one in found)} of {len(found)} goals are held.\n"
        yield tables.goals(results)


def page(results: Results, *, gateway: bool = False) -> str:
    """``gateway``: whether its page (``benchmarks/gateway/``) is next to this one."""
    parts = [HEAD, *([GATEWAY] if gateway else [])]
    for name in TITLES:
        if name in results:
            parts += section(results, name)
    machines = [f"- {TITLES[name]}: {machine(found)}." for name, found in results["machines"].items()]
    return "\n".join([*parts, "## Machine\n", *machines, "", METHOD, LIMITS])


def write(results: Results, folder: Path) -> None:
    (folder / "README.md").write_text(page(results, gateway=(folder / "gateway.md").exists()), "utf-8")
