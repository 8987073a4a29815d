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

The gateway here is one process of `streamkit serve`, with one upstream and with its log and metrics on. Clients of
Anthropic's API stream from a Chat Completions upstream, so the gateway converts every event. It is compared with a
*relay*: the simplest aiohttp handler that passes bytes on and looks at nothing (`benchmarks/gateway/relay.py`).

Measured on {machine}
The ratios are similar on other machines; milliseconds and microseconds are not.

"""
LIMITS: Final = """\
## What the numbers do not say

- **What a network costs.** Everything runs on one machine and its loopback interface, without TLS. Upstream and clients
  use the same CPUs as the gateway.
- **That a relay would be enough.** The relay checks nothing, measures nothing and limits nothing. The difference between
  gateway and relay pays for those as well as for the conversion.
- **That LiteLLM does the same work.** It keeps what its logs, budgets and keys need, and it ran with the settings that
  its documentation shows first.

"""
METHOD: Final = """\
## How it is measured

- Upstream, relay, gateway and clients are separate processes. What is compared runs in turns, under the same load, in one
  run. A figure is the median of the rounds, with the lowest and the highest in parentheses.
- Each delta carries its number and the moment at which it was due by the upstream's schedule. The *lateness* of an event
  is the time from that moment to the arrival of its last byte, so that one delay cannot hide another. The whole text of
  each stream is compared.
- CPU time is that of the process (clock_getcpuclockid(3)), counted while all streams are in progress and divided by the
  events that arrived in that time. The figures with "requests and ends included" count everything: requests, connections,
  ends.
- asyncio asks for 256 KiB for each read, and glibc maps and unmaps that memory each time until the process has freed a
  larger block. The *warm relay* has freed one, so its row shows how much of a ratio this is. The gateway asks for 32 KiB.
- The *clumping index* is the share of events that arrive within a millisecond of the event before, minus the same share
  with nothing between upstream and client. It shows whether something holds events back and then sends them together.
"""
#: The result in words: a sentence, and the rows whose first figures it names.
WORDS: Final = (
    ("A streamed request costs {} of CPU time in the gateway, and {} in the relay.",
     ("CPU a request, streamed, gateway", "CPU a request, streamed, relay")),
    ("The same request costs LiteLLM {}. One process serves {} requests a second with the gateway, and {} with LiteLLM.",
     ("CPU a request, streamed, LiteLLM", "requests per second, streamed, gateway", "requests per second, streamed, LiteLLM")),
    ("An event of an open stream costs {} of CPU time in the gateway, and {} in the relay.",
     ("CPU an event, gateway", "CPU an event, relay")),
    ("The gateway adds {} to the time of the first byte in the median, and {} at the 99th percentile.",
     ("added to the first byte, p50, gateway", "added to the first byte, p99, gateway")),
    ("Its memory before this load and under it: {}.", ("memory before and under this load, gateway",)),
    ("Every text arrived whole: {} streams.", ("streams that came whole, text compared",)),
)  # fmt: skip


def page(facts: Mapping[str, Any], seen: Mapping[str, Seen]) -> str:
    """The markdown of a run."""
    told = (
        f"{facts['cores']} cores ({facts['processor']}), {facts['python']}, aiohttp {facts['packages']['aiohttp']}; "
        f"load average before it {facts['load_1_min']:.1f}."
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
