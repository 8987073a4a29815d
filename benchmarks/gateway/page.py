"""The page of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.gateway.findings import FINDINGS, TITLES, Finding
from benchmarks.gateway.measures import Seen

#: The load average of a machine that has nothing else to do.
QUIET: Final = 0.5
HEAD: Final = """\
<!-- Written by `make bench-gateway`. -->
# What the gateway costs and adds

`streamkit serve` with a configuration of one upstream, its log and counts on, in one process; Anthropic clients stream from a
Chat Completions upstream. The yardstick is the plainest aiohttp handler that passes bytes on (`benchmarks/gateway/relay.py`).
{machine}

"""
METHOD: Final = """\
## How it is measured

- Upstream, relay, gateway and clients are processes of their own. What is compared runs in turns, under the same load, in one
  run; a figure is the median of the rounds, with the lowest and the highest behind it.
- Each delta carries its number and the moment at which it was due by the upstream's schedule. *Lateness* is counted from there
  to the arrival of its event's last byte, so that nobody's delay hides another's. Of each stream the whole text is compared.
- CPU is the process's own (clock_getcpuclockid(3)), counted while all streams are under way, over the events that arrived
  meanwhile. The second figures count everything: requests, connections, ends.
- asyncio asks for 256 KiB for each read, and glibc maps and unmaps them each time until the process has freed a larger block.
  The *warm relay* has: its line shows how much of a ratio is that. The gateway asks for 32 KiB.
- The *clumping index* is the share of events that come within a millisecond of the one before, minus that share without
  anybody between: what holds events back and lets them go together shows there, where the time to the first byte hides it.

## What the numbers do not say

Everything shares one machine and its loopback: there is no network and no TLS, and upstream and clients compete with the
gateway for the CPUs. Ratios carry over to other machines; microseconds do not. The relay checks nothing, times nothing and
bounds nothing, so what the gateway costs more buys all of that besides the translation.
"""


def page(facts: Mapping[str, Any], seen: Mapping[str, Seen]) -> str:
    """The markdown of a run."""
    told = (
        f"{facts['cores']} cores ({facts['processor']}), {facts['python']}, aiohttp {facts['packages']['aiohttp']}; "
        f"load average before it {facts['load_1_min']:.1f}."
    )
    if facts["load_1_min"] > QUIET:
        told += "\n**Others were at work on it meanwhile, so that these figures are provisional.**"
    text = HEAD.format(machine=told)
    for name, lines in FINDINGS.items():
        if name in seen:
            text += f"## {TITLES[name]}\n\n{table(list(lines(seen[name])))}\n"
    return text + METHOD


def table(lines: list[Finding]) -> str:
    rows = ["| | measured | goal | held |", "|---|---:|---|---|"]
    for line in lines:
        held = "" if line.held is None else "yes" if line.held else "**no**"
        rows.append(f"| {line.name} | {line.measured} | {line.goal} | {held} |")
    return "\n".join(rows) + "\n"
