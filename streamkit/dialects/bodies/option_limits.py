"""Options of a request of another dialect, as far as the server that it goes to takes them. What it refuses is left out.

A server answers 400 to a whole request for one option that its model does not take, and the client, which asked for another
model, can't know: OpenAI's models that reason take no ``temperature`` beside it, Claude none but 1 while it thinks and only
one of ``temperature`` and ``top_p``, newer ones none at all; there may be four stop sequences or five, not blank ones; a
user's id may not be the 150 characters that Claude Code writes, nor an address.

Requests within a dialect are not touched: whoever wrote them knows the server.

Source: dialects.md §1.3, §3.0, §7.4; the providers' pages on each parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final, Literal, TypeAlias

from attrs import evolve

from streamkit.conversation.messages import Options
from streamkit.dialects.vocabulary.reasoning_effort import claude_version

#: Counts the loss of an option.
Lose = Callable[[str, str], None]

#: Whose models a dialect's servers run, if what they refuse is known; empty: it is not.
Models: TypeAlias = Literal["", "gpt", "claude"]
#: Which GPT an id names, and whether it is one that does not reason.
_GPT: Final = re.compile(r"(?:^|/)gpt-(\d+)(?:\.(\d+))?(-chat)?")
_O_SERIES: Final = re.compile(r"(?:^|/)o[1-9](?:-|$)")
_DEFAULTS: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
#: Options that OpenAI's models refuse while they reason, but for the value that is the default.
REASONING_REFUSES: Final = (*_DEFAULTS, "logprobs", "top_logprobs", "stop")
#: Providers whose limits are those of their dialect's own server.
LIMITED: Final = frozenset({"", "openai", "azure"})
#: The first Claude that takes no sampling parameters, and the first that takes only one of two.
_UNSAMPLED, _ONE_OF_TWO = (4, 7), (4, 1)
#: The least ``top_p`` beside thinking.
_LEAST_TOP_P: Final = 0.95


def fitting(options: Options, models: Models, most_stops: int | None, model: str | None, lose: Lose) -> Options:
    """The options without those that the server refuses, which takes ``most_stops`` stop sequences; None: any number."""
    kept = tuple(stop for stop in options.stop if (stop.strip() if models == "claude" else stop))[:most_stops]
    if len(kept) < len(options.stop):
        lose("parameter", "stop")
    options, thinking = evolve(options, stop=kept), options.thinking
    if thinking is not None and thinking.enabled is False and thinking.effort not in {None, "none"}:
        lose("parameter", "thinking.effort")  # no thinking is what was asked for
        options = evolve(options, thinking=evolve(thinking, effort=None))
    if models == "gpt" and _reasons(options, model):
        return _without(options, REASONING_REFUSES, lose)
    if models == "claude":
        return _without(options, _refused_by_claude(options, model), lose)
    return options


def least_effort(model: str | None) -> str | None:
    """The effort that asks one of OpenAI's models for no reasoning, or the least; None for a model that takes none."""
    version = _gpt(model)
    if version is None or version < (5, 0):
        return None
    return "none" if version >= (5, 1) else "minimal"


def _gpt(model: str | None) -> tuple[int, int] | None:
    found = _GPT.search(model or "")
    return None if found is None or found[3] else (int(found[1]), int(found[2] or 0))


def _reasons(options: Options, model: str | None) -> bool:
    """Whether a model of OpenAI's reasons about this request; from GPT-5.1 on it does where it is asked to."""
    version = _gpt(model)
    if version is None or version < (5, 0):
        return _O_SERIES.search(model or "") is not None
    thinking = options.thinking
    asked = thinking is not None and (thinking.effort or thinking.budget_tokens) not in {None, "none"}
    return version == (5, 0) or asked


def _refused_by_claude(options: Options, model: str | None) -> Collection[str]:
    version = claude_version(model)
    if version is None:
        return ()
    if version >= _UNSAMPLED:
        return ("temperature", "top_p", "top_k")
    thinking = options.thinking
    if thinking is not None and thinking.enabled is not False and thinking.effort != "none":
        fits = options.top_p is not None and options.top_p >= _LEAST_TOP_P
        return ("temperature", "top_k") if fits else ("temperature", "top_p", "top_k")
    return ("top_p",) if version >= _ONE_OF_TWO and options.temperature is not None else ()


def _without(options: Options, names: Collection[str], lose: Lose) -> Options:
    """The options without these; a default that is left out is no loss."""
    changes: dict[str, Any] = {}
    for name in names:
        value = getattr(options, name)
        if value is None or value == ():
            continue
        changes[name] = () if name == "stop" else None
        if _DEFAULTS.get(name) != value:
            lose("parameter", name)
    return evolve(options, **changes)
