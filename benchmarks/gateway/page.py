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

On this page, the gateway is one process of `streamkit serve` with one upstream. The gateway writes its log and its
metrics. Its clients use Anthropic's API, and its upstream uses Chat Completions, so it converts every event. The gateway is
compared with a *relay*: the simplest aiohttp handler that passes bytes on unread (`benchmarks/gateway/relay.py`).

Measured on {machine}
The ratios are similar on other machines; the milliseconds and microseconds differ.

"""
LIMITS: Final = """\
## What the numbers do not say

- **What a network costs.** Everything runs on one machine and its loopback interface, without TLS. Upstream and clients
  use the same CPUs as the gateway.
- **That a relay would be enough.** The relay checks nothing, measures nothing and limits nothing. The gateway checks,
  measures, limits and converts. This work is the difference in cost.
- **That LiteLLM does the same work.** LiteLLM also keeps data for its logs, budgets and keys. LiteLLM ran with the
  settings that its documentation shows first.

"""
METHOD: Final = """\
## How it is measured

- Upstream, relay, gateway and clients are separate processes. In one run, the clients send the same load to each
  compared program in turn, and also directly to the upstream. A figure is the median of the rounds, with the lowest and
  the highest in parentheses.
- Each delta contains its number and the time at which the upstream had to send it. The *lateness* of an event is the
  time from that moment to the arrival of the event's last byte, so that one delay cannot hide another. The whole text
  of each stream is compared with the text that was sent.
- CPU time is the time that the process used (clock_getcpuclockid(3)). It is measured while all streams are in progress,
  and divided by the number of events that arrive in this time. The figures with "requests and ends included" also count
  the beginnings and ends of requests and connections.
- asyncio allocates 256 KiB for each read. glibc maps and unmaps that memory each time, until the process has freed a
  larger block. The *warm relay* has freed such a block, so its row shows how much of the relay's cost comes from
  mapping memory. The gateway allocates 32 KiB for each read.
- The *clumping index* is the share of events that arrive within a millisecond of the event before, minus the same share
  for clients that are directly connected to the upstream. This index shows whether a program holds events back and then
  sends them together.
"""
#: The result in words: a sentence, and the rows whose first figures it names.
WORDS: Final = (
    ("A streamed request costs {} of CPU time in the gateway, and {} in the relay.",
     ("CPU a request, streamed, gateway", "CPU a request, streamed, relay")),
    ("The same request costs {} in LiteLLM. One process of the gateway serves {} requests a second, and one of LiteLLM {}.",
     ("CPU a request, streamed, LiteLLM", "requests per second, streamed, gateway", "requests per second, streamed, LiteLLM")),
    ("An event of an open stream costs {} of CPU time in the gateway, and {} in the relay.",
     ("CPU an event, gateway", "CPU an event, relay")),
    ("The gateway adds {} to the time of the first byte in the median, and {} at the 99th percentile.",
     ("added to the first byte, p50, gateway", "added to the first byte, p99, gateway")),
    ("The gateway uses {} of memory before and under this load.", ("memory before and under this load, gateway",)),
    ("The text of {} streams arrived whole.", ("streams that came whole, text compared",)),
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
