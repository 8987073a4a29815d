"""The page of docs/reference that shows the table of models: what each family takes, and where each fact is from."""

from __future__ import annotations

from collections.abc import Iterator

from streamkit.dialects.vocabulary.model_table import ROWS, SERVERS, SOURCES
from streamkit.dialects.vocabulary.models import UNKNOWN, ModelInfo, ServerWords
from tools import reference

INTRO = """\
What the models of each family accept in a request.
A request that was read in another dialect is changed to match the row, and each change is a
[counted loss](losses.md#requests).
The first row with a matching pattern applies. A model without a row gets what nearly all servers accept.
In the column *thinks*, `unasked` means unless a request turns thinking off, and `asked` only if a request turns it on.
[Add a model](../how-to/add-a-model.md) explains how to write a row, and what to do for a name that no table can know.
In a program, [`model_info`](stages.md#model_info) returns the row for a name as a [`ModelInfo`](stages.md#modelinfo)."""
VENDORS = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "google": "Google",
    "xai": "xAI",
    "mistral": "Mistral",
    "cohere": "Cohere",
    "amazon": "Amazon",
    "": "Others",
}
HEAD = ("names", "efforts", "thinks", "refuses", "also", "context", "output", "reads", "sources")
#: What a row says in a few words, by the member and the value that differs from the default.
WORDS = {
    ("words", False): "a budget in place of efforts",
    ("both", False): "`temperature` or `top_p`, not both",
    ("prefill", False): "no prefill",
    ("compacts", False): "no compaction",
    ("cache_marks", "short"): "cache marks of 5 minutes",
    ("cache_marks", "long"): "cache marks of an hour",
    ("cached_tools", False): "no cache marks on tools",
    ("signatures", True): "the history needs signatures of calls",
    ("media_in_results", False): "no media in results",
    ("off", "between_tools"): "thinking is turned off with `between_tools`",
    ("legacy_chat", True): "in Chat no effort `max`, and no tools while it thinks",
    ("phases", True): "labels messages with a `phase`",
    ("forced_calls", "always"): "a call can be required even while it thinks",
    ("forced_calls", "never"): "a call cannot be required",
    ("finds_tools", True): "can search deferred tools",
    ("parallel_option", False): "no `parallel_tool_calls`",
    ("forms", ()): "no JSON formats",
    ("forms", ("json",)): "JSON without a schema",
    ("form_with_tools", False): "either tools or a JSON format",
}


def page() -> str:
    vendors = [
        f"## {title}\n\n{reference.table(HEAD, (cells(row) for row in ROWS if row.vendor == vendor))}"
        for vendor, title in VENDORS.items()
    ]
    return reference.page(
        "Models",
        INTRO,
        *vendors,
        "## Providers with other words for the effort",
        reference.table(("provider", "models", "efforts", "sources"), map(server_cells, SERVERS)),
        "## Sources",
        "The date is the day on which the facts were read in the source.",
        reference.table(
            ("source", "title", "place", "date"), ((f"`{key}`", s.title, s.place, s.date) for key, s in SOURCES.items())
        ),
    )


def cells(row: ModelInfo) -> Iterator[str]:
    yield code(row.names.split())
    yield code(row.efforts) or "none"
    yield row.thinks + (f", {budget(row.budget)}" if row.efforts and row.budget not in {None, UNKNOWN.budget} else "")
    refused = code(row.refuses) if row.refuses else ""
    thinking = f"while it thinks: {code(row.refuses_thinking)}" if row.refuses_thinking else ""
    least = f" (`top_p` from {row.least_top_p} is accepted)" if row.least_top_p is not None else ""
    yield "; ".join(filter(None, (refused, thinking + least)))
    members = dict.fromkeys(member for member, _ in WORDS if member != "words" or row.efforts)
    values = ((name, getattr(row, name)) for name in members)
    yield "; ".join(WORDS[name, value] for name, value in values if value != getattr(UNKNOWN, name))
    yield size(row.context)
    yield size(row.output)
    yield ", ".join(row.inputs)
    yield sources(row.sources)


def server_cells(server: ServerWords) -> Iterator[str]:
    yield f"`{server.provider}`"
    yield f"`*{server.part}*`" if server.part else "all others"
    yield code(server.efforts) or "none"
    yield sources(server.sources)


def code(words: list[str] | tuple[str, ...]) -> str:
    return " ".join(f"`{word}`" for word in words)


def budget(bounds: tuple[int, float] | None) -> str:
    least, most = bounds or (0, 0)
    return f"{least} to {most:.0f} tokens" if most < float("inf") else f"{least} tokens or more"


def size(tokens: int | None) -> str:
    return "" if tokens is None else f"{tokens:,}"


def sources(keys: tuple[str, ...]) -> str:
    return ", ".join(f"{key} ({SOURCES[key].date})" for key in keys)
