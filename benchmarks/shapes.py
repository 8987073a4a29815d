"""What recorded streams look like, as numbers: how long they are, how large their events, what providers add.

    python -m benchmarks.shapes            prints them, measured from the recordings
    python -m benchmarks.shapes --write    and writes benchmarks/shapes.json, from which ``mix.py`` makes streams for everyone

The recordings (``STREAMKIT_CORPORA``) are not in the repository; only their distribution is, as quantiles and shares.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import util
from itertools import groupby
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import orjson
from attrs import frozen

SHAPES: Final = Path(__file__).with_name("shapes.json")
#: Dialects whose recordings are enough to say anything of.
DIALECTS: Final = ("openai-chat", "anthropic", "openai-responses", "gemini")
#: Members of a chunk's delta, and of other dialects' events, that are text of the model.
TEXTS: Final = ("content", "reasoning_content", "reasoning", "text", "thinking", "partial_json", "arguments", "delta")


@frozen
class Recording:
    """A recorded stream: its events as one read each, and their payloads as JSON."""

    dialect: str
    events: tuple[bytes, ...]
    payloads: tuple[bytes, ...]


def recordings(folder: Path) -> Iterator[Recording]:
    """The recorded event streams of a folder of recordings, those with a payload that is no JSON left out."""
    spec = util.spec_from_file_location("read", folder / "read.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(folder / "read.py")
    reader = util.module_from_spec(spec)
    sys.modules["read"] = reader  # dataclasses look their module up
    spec.loader.exec_module(reader)
    for stream in reader.streams():
        if stream.framing != "sse" or stream.dialect not in DIALECTS:
            continue
        events = [event + b"\n\n" for event in stream.body.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]
        payloads = [payload for event in events if (payload := payload_of(event)) not in (b"", b"[DONE]")]
        try:
            list(map(orjson.loads, payloads))
        except orjson.JSONDecodeError:
            continue
        yield Recording(stream.dialect, tuple(events), tuple(payloads))


def folder() -> Path | None:
    """Where the recordings are; None where they are not."""
    named = os.environ.get("STREAMKIT_CORPORA")
    return Path(named) if named and (Path(named) / "read.py").exists() else None


def payload_of(event: bytes) -> bytes:
    """The data of an event of SSE."""
    return b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))


def measured(found: Sequence[Recording]) -> dict[str, Any]:
    """The numbers of the streams of one dialect."""
    sizes = [len(payload) for stream in found for payload in stream.payloads]
    runs, texts = [], []
    extras = dict.fromkeys(EXTRAS, 0)
    for stream in found:
        documents = [orjson.loads(payload) for payload in stream.payloads]
        runs += [sum(1 for _ in group) for _, group in groupby(map(form, documents))]
        texts += [len(text) for document in documents for text in said(document)]
        for name, has in EXTRAS.items():
            extras[name] += bool(has([document for document in documents if isinstance(document, dict)]))
    return {
        "streams": len(found),
        "events": deciles([len(stream.payloads) for stream in found]),
        "payload_bytes": deciles(sizes),
        "alike_in_a_row": deciles(runs),
        "share_of_events_in_runs_of_five": round(sum(run for run in runs if run >= 5) / sum(runs), 3),
        "fragment_chars": deciles(texts),
        "share_of_streams": {name: round(count / len(found), 3) for name, count in extras.items()},
    }


def deciles(values: Sequence[int]) -> list[int]:
    """The least, the nine deciles and the greatest."""
    return [min(values), *map(round, quantiles(values, n=10, method="inclusive")), max(values)]


def form(value: Any) -> Any:
    """What is the same in frames that are alike: names and types, not values."""
    if isinstance(value, dict):
        return tuple((name, form(member)) for name, member in value.items())
    if isinstance(value, list):
        return tuple(form(member) for member in value[:4])
    return type(value).__name__


def said(value: Any) -> Iterator[str]:
    """The texts of the model in an event."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name in TEXTS and isinstance(member, str):
                if member:
                    yield member
            else:
                yield from said(member)
    elif isinstance(value, list):
        for member in value:
            yield from said(member)


def _in_most(documents: Sequence[Any], name: str) -> bool:
    """Whether most events have a member of that name with a value, at the top or in their first choice."""
    places = [[document, *(document.get("choices") or ())[:1]] for document in documents]
    found = sum(any(isinstance(place, dict) and place.get(name) for place in at) for at in places)
    return 2 * found > len(documents)


def _varies(documents: Sequence[Any], name: str) -> bool:
    values = [document.get(name) for document in documents]
    return len({value for value in values if isinstance(value, int | str)}) > max(2, len(values) // 4)


#: What shows that a model reasons aloud.
REASONING: Final = (
    b'"reasoning_content":"',
    b'"reasoning":"',
    b'"thinking_delta"',
    b'"thought":true',
    b"reasoning_summary_text.delta",
)
#: And that it calls.
CALLS: Final = (b'"tool_calls":[', b'"tool_use"', b'"function_call"', b'"functionCall"')
#: What providers add to each event, or have otherwise: whether the stream of these documents does.
EXTRAS: Final = {
    "padding": lambda documents: _in_most(documents, "obfuscation"),
    "usage in each event": lambda documents: _in_most(documents, "usage") or _in_most(documents, "usageMetadata"),
    "time of each event": lambda documents: _varies(documents, "created"),
    "filter results": lambda documents: _in_most(documents, "content_filter_results"),
    "log probabilities": lambda documents: _in_most(documents, "logprobs"),
    "role in each event": lambda documents: _delta_has(documents, "role"),
    "reasoning": lambda documents: any(mark in orjson.dumps(document) for document in documents for mark in REASONING),
    "reasoning in two members": lambda documents: _delta_has(documents, "reasoning_details"),
    "calls": lambda documents: any(mark in orjson.dumps(document) for document in documents for mark in CALLS),
}


def _delta_has(documents: Sequence[Any], name: str) -> bool:
    choices = [choice for document in documents for choice in document.get("choices") or () if isinstance(choice, dict)]
    deltas = [choice.get("delta") for choice in choices]
    return 3 * sum(isinstance(delta, dict) and bool(delta.get(name)) for delta in deltas) > len(deltas) > 0


def measure(at: Path) -> dict[str, Any]:
    """The numbers of each dialect's recordings."""
    found = list(recordings(at))
    return {name: measured([stream for stream in found if stream.dialect == name]) for name in DIALECTS}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {SHAPES.name}")
    options = parser.parse_args(arguments)
    at = folder()
    if at is None:
        print(
            "STREAMKIT_CORPORA names no folder of recordings with its read.py: nothing can be measured", file=sys.stderr
        )
        return 2
    text = json.dumps(measure(at), indent=1)
    print(text)
    if options.write:
        SHAPES.write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
