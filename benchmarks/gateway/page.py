"""The page of a run: the result in words, what the numbers do not say, and then the tables.

The tables are all that is kept of a run, so ``read`` takes them from the page, and ``again`` writes the page anew from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.gateway.findings import FINDINGS, TITLES, Finding
from benchmarks.gateway.measures import Seen

#: The load average of a machine that has nothing else to do.
QUIET: Final = 0.5
#: Between these lines stands the machine of the run.
MACHINE: Final = ("Measured on ", "\nThe ratios")
HEAD: Final = """\
<!-- Written by `make bench-gateway`. `python -m benchmarks.gateway --again` writes the text again from the tables. -->
# What the gateway costs and adds

This page says how much CPU time and memory streamkit's gateway needs, and how much delay it adds. The gateway is one process
of `streamkit serve` with one upstream, and writes its log and its metrics. The clients use Anthropic's API, and the upstream
uses Chat Completions, so the gateway converts every event. The gateway is compared with a *relay*: the simplest aiohttp
handler that forwards bytes without parsing them (`benchmarks/gateway/relay.py`).

Measured on {machine}
The ratios are similar on other machines; the milliseconds and microseconds differ.

"""
LIMITS: Final = """\
## What the numbers do not say

- **What a network costs.** Everything runs on one machine and its loopback interface, without TLS. Upstream and clients
  use the same CPUs as the gateway.
- **That a relay would be enough.** The relay checks nothing, measures nothing and limits nothing. The gateway checks,
  measures, limits and converts. This work causes the difference in cost.
- **That LiteLLM does the same work.** LiteLLM also keeps data for its logs, budgets and keys. LiteLLM ran with the
  settings that its documentation shows first.

"""
METHOD: Final = """\
## How it is measured

- Upstream, relay, gateway and clients are separate processes. In one run, the clients send the same load to each
  compared program in turn, and also directly to the upstream. A figure is the median of the rounds. The lowest and the
  highest figure are in parentheses. "A over B" means the figure of A divided by the figure of B.
- Each delta contains its number and its planned time: the time at which the upstream had to send it. The *lateness* of an
  event is the time from this planned time to the arrival of the event's last byte. So if one event is late, this does not
  hide that the next event is late. The whole text of each stream is compared with the text that was sent.
- CPU time is the time that the process used (clock_getcpuclockid(3)). The CPU time for an event is measured while all
  streams are open, and divided by the number of events that arrive in this time. The figures "including the
  beginning and end of its stream" also count the time for the beginnings and ends of requests and connections.
- asyncio allocates 256 KiB for each read. glibc maps and unmaps this memory each time, until the process has freed a
  larger block. The *warm relay* is a relay that has freed such a block. The difference between the two relays shows how
  much of the relay's cost comes from mapping memory. The gateway allocates 32 KiB for each read.
- The *clumping index* is the share of events that arrive within a millisecond after the event before them. The same share
  for clients that are directly connected to the upstream is subtracted. This index shows whether a program holds events
  back and then sends them together.
"""
#: The result in words: a sentence, and the rows whose first figures it names.
WORDS: Final = (
    ("A streamed request costs {} of CPU time in the gateway, and {} in the relay.",
     ("CPU time for a request, streamed, gateway", "CPU time for a request, streamed, relay")),
    ("The same request costs {} in LiteLLM.", ("CPU time for a request, streamed, LiteLLM",)),
    ("One process of the gateway serves {} requests a second. One process of LiteLLM serves {}.",
     ("requests per second, streamed, gateway", "requests per second, streamed, LiteLLM")),
    ("In an open stream, an event costs {} of CPU time in the gateway, and {} in the relay.",
     ("CPU time for an event, gateway", "CPU time for an event, relay")),
    ("The gateway delays the first byte by {} in the median, and by {} at the 99th percentile.",
     ("time added to the first byte, p50, gateway", "time added to the first byte, p99, gateway")),
    ("At the start of this load and at its peak, the gateway uses {} of memory.",
     ("memory before and under this load, gateway",)),
    ("The whole text of {} streams arrived.", ("streams whose whole text arrived",)),
)  # fmt: skip


def page(facts: Mapping[str, Any], seen: Mapping[str, Seen]) -> str:
    """The markdown of a run."""
    told = (
        f"{facts['cores']} cores ({facts['processor']}), {facts['python']}, aiohttp {facts['packages']['aiohttp']}; "
        f"load average before the run {facts['load_1_min']:.1f}."
    )
    if facts["load_1_min"] > QUIET:
        told += " **The machine had other work at the time, so these figures are provisional.**"
    return written(told, {TITLES[name]: list(lines(seen[name])) for name, lines in FINDINGS.items() if name in seen})


def written(machine: str, sections: Mapping[str, list[Finding]]) -> str:
    """The page of a machine and of the rows of each section."""
    found = [f"- {sentence}" for sentence in sentences([line for lines in sections.values() for line in lines])]
    text = HEAD.format(machine=machine)
    if found:
        text += "## The result in words\n\n" + "\n".join(found) + "\n\n"
    return text + LIMITS + "".join(f"## {title}\n\n{table(lines)}\n" for title, lines in sections.items()) + METHOD


def sentences(lines: list[Finding]) -> Iterator[str]:
    """The sentences of which every figure was measured."""
    for sentence, names in WORDS:
        figures = [next((short(line.measured) for line in lines if line.name.startswith(name)), None) for name in names]
        if None not in figures:
            yield sentence.format(*figures)


def short(measured: str) -> str:
    """A figure without its range."""
    return re.sub(r" \([^)]*\)", "", measured)


def table(lines: list[Finding]) -> str:
    rows = ["| what | measured | goal |", "|---|---:|---|"]
    for line in lines:
        result = "" if line.held is None else f"{line.goal}: {'met' if line.held else '**missed**'}"
        rows.append(f"| {line.name} | {line.measured} | {result} |")
    return "\n".join(rows) + "\n"


def read(text: str) -> tuple[str, dict[str, list[Finding]]]:
    """The machine and the rows of each section of a page."""
    machine = text.partition(MACHINE[0])[2].partition(MACHINE[1])[0]
    sections = {}
    for part in text.split("\n## ")[1:]:
        rows = re.findall(r"^\| (.+?) \| (.+?) \| (?:(.+?): \**(met|missed)\**)? *\|$", part, re.MULTILINE)
        lines = [Finding(n, m, goal, held == "met" if held else None) for n, m, goal, held in rows if n != "what"]
        if lines:
            sections[part.partition("\n")[0]] = lines
    return machine, sections


def again(text: str) -> str:
    """The same run with the words of today."""
    return written(*read(text))
