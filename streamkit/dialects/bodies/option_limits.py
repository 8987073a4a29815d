"""Options of a request of another dialect, as far as the server that it goes to takes them. What it refuses is left out.

A server answers 400 to a whole request for one option that its model does not take, and the client, which asked for another
model, can't know. Which options a model refuses, and when, is in the table of models (``vocabulary/models.py``); how many stop
sequences there may be is the dialect's, and Claude takes no blank one.

Requests within a dialect are not touched: whoever wrote them knows the server.

Source: dialects.md §1.3, §3.0, §7.4; the providers' pages on each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

from attrs import evolve

from streamkit.conversation.messages import Options
from streamkit.dialects.vocabulary.models import Model

#: Counts the loss of an option.
Lose = Callable[[str, str], None]

#: The vendor of the models behind a dialect, where all of them share a rule whatever their names are.
Models: TypeAlias = Literal["", "claude"]
_DEFAULTS: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
#: Providers whose limits are those of their dialect's own server.
LIMITED: Final = frozenset({"", "openai", "azure"})


def fitting(options: Options, models: Models, most_stops: int | None, model: Model, lose: Lose) -> Options:
    """The options without those that the server refuses, which takes ``most_stops`` stop sequences; None: any number."""
    kept = tuple(stop for stop in options.stop if (stop.strip() if models == "claude" else stop))[:most_stops]
    if len(kept) < len(options.stop):
        lose("parameter", "stop")
    options, thinking = evolve(options, stop=kept), options.thinking
    if thinking is not None and thinking.enabled is False and thinking.effort not in {None, "none"}:
        lose("parameter", "thinking.effort")  # no thinking is what was asked for
        options = evolve(options, thinking=evolve(thinking, effort=None))
    return _without(options, _refused(options, models, model), lose)


def _refused(options: Options, models: Models, model: Model) -> Iterable[str]:
    """Return the options that the model refuses next to the other options of the request."""
    thinking, refused = options.thinking, model.refuses
    off, asked = False, None
    if thinking is not None:
        off = thinking.enabled is False
        asked = (
            thinking.effort or thinking.budget_tokens or (thinking.enabled and models == "claude" and "enabled") or None
        )
    if model.is_thinking(asked, off=off):
        least = model.least_top_p
        fits = least is not None and options.top_p is not None and options.top_p >= least
        refused += tuple(name for name in model.refuses_thinking if name != "top_p" or not fits)
    elif not model.both and options.temperature is not None:
        refused += ("top_p",)
    return dict.fromkeys(refused)


def _without(options: Options, names: Iterable[str], lose: Lose) -> Options:
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
