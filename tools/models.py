"""The page of docs/reference that shows the table of models: what each family takes, and where each fact is from."""

from __future__ import annotations

from collections.abc import Iterator

from streamkit.dialects.vocabulary.model_table import ROWS, SERVERS, SOURCES
from streamkit.dialects.vocabulary.models import UNKNOWN, ModelInfo, ServerWords
from tools import reference

INTRO = """\
This page lists what the models of each family accept in a request.
If a client's request is in another dialect than the provider's, streamkit changes the request so that it matches the
model's row.
Each change counts as a [loss](losses.md#requests) or as a [repair](repairs.md#requests).

streamkit uses the first row with a pattern that matches the model's name.
If no row matches, streamkit sends only options that nearly all servers accept.
[Add a model](../how-to/add-a-model.md) explains how to write a row. It also explains what to do if the name of your model
is private.
In a program, [`model_info`](stages.md#model_info) returns the row for a name as a [`ModelInfo`](stages.md#modelinfo).

| column | meaning |
| --- | --- |
| names | patterns of model names, as in a shell |
| efforts | the words that tell the model how much to think; the word `none` turns thinking off |
| thinks | when the model thinks. *Unasked* means always, unless a request turns thinking off. *Asked* means only if a \
request turns thinking on. A budget is the range of values that a request may set as the number of thinking tokens |
| refuses | options that the model refuses or ignores |
| other facts | how the model differs from most models |
| context | the largest number of tokens in a conversation, including the response |
| output | the largest number of tokens in a response |
| reads | the kinds of input that the model accepts |
| sources | where the facts are from ([the list](#sources)), and when they were read there |

Some words in the column *other facts* need an explanation:

- A *cache mark* is a member of a request. It asks the provider to keep the request's beginning for some time, so that later
  requests with the same beginning cost less.
- A *prefill* is text of the assistant at the end of a request, which the model continues.
- A *deferred tool* is a tool whose definition the model gets only after it has searched for the tool.
- A *signature* is a text by which the provider recognises an earlier tool call of the model.
- A *phase* says whether a message of the model is a comment or the final answer."""
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
HEAD = ("names", "efforts", "thinks", "refuses", "other facts", "context", "output", "reads", "sources")
#: What a row says in a few words, by the member and the value that differs from the default.
WORDS = {
    ("words", False): "streamkit converts an effort to a number of thinking tokens",
    ("both", False): "refuses a request with both `temperature` and `top_p`",
    ("prefill", False): "refuses a prefill",
    ("compacts", False): "cannot summarise its conversation",
    ("cache_marks", "short"): "accepts cache marks for 5 minutes",
    ("cache_marks", "long"): "accepts cache marks for up to an hour",
    ("cached_tools", False): "refuses cache marks on tools",
    ("signatures", True): "refuses a history in which a turn's first tool call has no signature",
    ("media_in_results", False): "refuses media in tool results",
    ("off", "between_tools"): "the value `between_tools` of `thinking.type` turns thinking off",
    ("legacy_chat", True): "Chat Completions refuses the effort `max`, and refuses tools while the model thinks",
    ("phases", True): "labels its messages with a `phase`",
    ("forced_calls", "always"): "a request may require a tool call even while the model thinks",
    ("forced_calls", "never"): "a request cannot require a tool call",
    ("finds_tools", True): "can search deferred tools",
    ("parallel_option", False): "refuses the option `parallel_tool_calls`",
    ("forms", ()): "refuses JSON response formats",
    ("forms", ("json",)): "accepts a JSON response format, but no schema",
    ("form_with_tools", False): "refuses a request with both tools and a JSON response format",
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
        "For some models, these providers accept other efforts than the vendor of the model.",
        reference.table(("provider", "models", "efforts", "sources"), map(server_cells, SERVERS)),
        "## Sources",
        "A source is a page, a file of a package, or a GitHub issue. The date is the day on which its facts were read.",
        reference.table(
            ("source", "title", "place", "date"), ((f"`{key}`", s.title, s.place, s.date) for key, s in SOURCES.items())
        ),
    )


def cells(row: ModelInfo) -> Iterator[str]:
    yield code(row.names.split())
    yield code(row.efforts) or "not accepted"
    yield row.thinks + (
        f"; a budget of {budget(row.budget)}" if row.efforts and row.budget not in {None, UNKNOWN.budget} else ""
    )
    refused = code(row.refuses) if row.refuses else ""
    thinking = f"while the model thinks: {code(row.refuses_thinking)}" if row.refuses_thinking else ""
    least = f" (a `top_p` of {row.least_top_p} or more is accepted)" if row.least_top_p is not None else ""
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
    alone = [other.provider for other in SERVERS].count(server.provider) == 1
    yield f"`*{server.part}*`" if server.part else "all" if alone else "all others"
    yield code(server.efforts) or "not accepted"
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
