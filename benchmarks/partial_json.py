"""Time to look at growing arguments after every 14-character fragment: ``PartialJSON`` beside parsing all of it again.

Run: ``python benchmarks/partial_json.py`` (needs jiter, which the openai and anthropic SDKs bring along; about a minute).

Three documents, seeded, at 16 KB, 64 KB, 256 KB and 1 MB; each result is checked against ``json.loads``. Columns:

* ``look``: ``PartialJSON`` fed a fragment, then ``value``.
* ``read``: the same, and the whole of the string that grew is read (``str``) each time, and let go of at once.
* ``jiter``: the text so far joined with the fragment and parsed by ``jiter.from_json(…, partial_mode=True)``.
* ``sdk``: the same steps as the Anthropic SDK takes for an ``input_json_delta``: bytes encoded, added to the buffer of the
  block, buffer parsed by jiter, value stored. It is rebuilt here from ``lib/streaming/_messages.py``, without the events
  and models around it, which only cost more.

Each time is the best of two runs, of one run where it takes more than three seconds. Re-parsing is quadratic: a size that
the previous one says will take over ``CAP_SECONDS`` is not run, and the line gives the time that its slope foretells, with a
tilde. The slope is the exponent of growth between the last two sizes that were run: 1 is linear, 2 quadratic.

What it does not say: how fast either is on whole documents (jiter is far faster at parsing once), and what drawing costs.
"""
# ruff: noqa: S311 - seeded documents

from __future__ import annotations

import json
import platform
import random
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from math import log
from typing import Any

from jiter import from_json

from streamkit.tool_calls.partial_json import PartialJSON

FRAGMENT_CHARS = 14
SIZES = {"16 KB": 16_384, "64 KB": 65_536, "256 KB": 262_144, "1 MB": 1_048_576}
CAP_SECONDS = 12.0


def mixed(size: int) -> Any:
    """Records with texts, numbers, words and short lists."""
    dice = random.Random(7)
    items: list[Any] = []
    while size > 0:
        item = {
            "id": dice.randrange(10**9),
            "path": f"src/module_{dice.randrange(1000)}/größe.py",
            "weight": dice.random() * 100,
            "flags": [True, False, None],
            "note": " ".join(dice.choices(["alpha", "beta", "gamma", 'a "quoted" word', "line\n"], k=20)),
        }
        items.append(item)
        size -= len(json.dumps(item)) + 2
    return {"items": items}


def one_long_string(size: int) -> Any:
    """What a tool call that writes a file looks like."""
    line = "    return self._place[at]  # a line of code\n"
    return {"path": "a.py", "content": line * (size // (len(line) + 1))}


def nested(size: int) -> Any:
    """Forty levels, again and again."""
    unit: Any = {"leaf": "x" * 40, "n": 1.5}
    for _ in range(20):
        unit = {"child": [unit]}
    return [unit] * (size // (len(json.dumps(unit)) + 2))


def look(fragments: list[str]) -> Any:
    partial = PartialJSON()
    value = None
    for fragment in fragments:
        partial.feed(fragment)
        value = partial.value
    return value


def read(fragments: list[str]) -> Any:
    partial = PartialJSON()
    for fragment in fragments:
        partial.feed(fragment)
        if partial.changes and partial.changes[-1].kind == "grown":
            text = partial.value
            for step in partial.changes[-1].path:
                text = text[step]
            str(text)
    return partial.value


def jiter(fragments: list[str]) -> Any:
    text = b""
    value = None
    for fragment in fragments:
        text += fragment.encode()
        value = from_json(text, partial_mode=True)
    return value


def sdk(fragments: list[str]) -> Any:
    buffers: dict[int, bytes] = {}
    content: dict[str, Any] = {}
    for fragment in fragments:
        buffer = buffers.get(0, b"")
        buffer += bytes(fragment, "utf-8")
        if buffer:
            content["input"] = from_json(buffer, partial_mode=True)
        buffers[0] = buffer
    return content["input"]


def timed(way: Callable[[list[str]], Any], fragments: list[str], expected: Any) -> float:
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        value = way(fragments)
        best = min(best, time.perf_counter() - start)
        if value != expected:
            raise AssertionError(f"{way.__name__} gave another value")
        if best > 3:
            break
    return best


def row(way: Callable[[list[str]], Any], texts: list[str]) -> tuple[list[float], int, float]:
    """The time for each text, how many of them were run, and the slope."""
    times: list[float] = []
    for done, text in enumerate(texts):
        foretold = times[-1] * (len(text) / len(texts[done - 1])) ** slope(times, texts) if done else 0.0
        if foretold > CAP_SECONDS:
            left = [times[-1] * (len(later) / len(texts[done - 1])) ** slope(times, texts) for later in texts[done:]]
            return times + left, done, slope(times, texts)
        fragments = [text[i : i + FRAGMENT_CHARS] for i in range(0, len(text), FRAGMENT_CHARS)]
        times.append(timed(way, fragments, json.loads(text)))
    return times, len(texts), slope(times, texts)


def slope(times: list[float], texts: list[str]) -> float:
    """The exponent of growth between the last two; 2 before there are two."""
    pairs = list(pairwise(zip(times, texts, strict=False)))
    if not pairs:
        return 2.0
    (before, shorter), (after, longer) = pairs[-1]
    return log(after / before) / log(len(longer) / len(shorter))


def main() -> None:
    print(
        f"CPython {platform.python_version()}, jiter {version('jiter')}, fragments of {FRAGMENT_CHARS} characters, seconds"
    )
    for document in (mixed, one_long_string, nested):
        texts = [json.dumps(document(size)) for size in SIZES.values()]
        ours: list[float] = []
        print(f"\n{document.__name__:16}" + "".join(f"{name:>20}" for name in SIZES) + f"{'slope':>8}")
        for way in (look, read, jiter, sdk):
            times, run, exponent = row(way, texts)
            ours = ours or times
            cells = [
                f"{'' if at < run else '~'}{seconds:.3f} ({seconds / ours[at]:.1f} x)"
                for at, seconds in enumerate(times)
            ]
            print(f"  {way.__name__:14}" + "".join(f"{cell:>20}" for cell in cells) + f"{exponent:>8.2f}")


if __name__ == "__main__":
    main()
