"""Which upstreams answer for a model: names and shell patterns, each to an ordered list of upstreams.

A name that a route spells out wins over every pattern; otherwise the first pattern that matches, in the order of the routes.
Patterns are those of shells (``*``, ``?``, ``[abc]``); case counts, and ``*`` matches a slash too.

A target may rename the model: ``*`` in the new name is what the pattern's own ``*`` matched, so ``or/*`` to ``*`` takes a
prefix off.

Source: seeds.md S3; limits.md §1 (openai-python's backoff, and its cap of ``Retry-After``).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from attrs import Attribute, evolve, field, frozen
from attrs.validators import ge, gt

from streamkit.dialects import prefill_of
from streamkit.toml.findings import Refusal
from streamkit.web.resume.settings import Resumable
from streamkit.web.upstream import Upstream

_TOKEN: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)


@frozen(kw_only=True)
class Target:
    """One upstream of a route."""

    #: The upstream's name.
    upstream: Upstream
    #: What the model is called there; by default as the client calls it. `*` stands for what the `*` of the route's pattern
    #: matched.
    model: str | None = field(default=None)

    @model.validator
    def _is_a_name(self, _attribute: Attribute[str | None], value: str | None) -> None:
        if value is not None and (not value.strip() or value.count("*") > 1):
            raise Refusal("a model's name is needed, with one * at most")


def _some(_instance: object, _attribute: Attribute[Any], value: tuple[object, ...]) -> None:
    if not value:
        raise Refusal("at least one is needed")


def _names(_instance: object, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    for index, name in enumerate(value):
        if not name.strip():
            raise Refusal("a model's name or a pattern is needed, not blanks", at=(index,))


@frozen(kw_only=True)
class Route:
    """Upstreams for some models, in the order in which they are asked, and how often."""

    #: Names and shell patterns (`*`, `?`, `[abc]`) of the models, as clients call them. A name wins over every pattern, else
    #: the first pattern of the file that matches. Only names are listed to clients that ask which models there are: a pattern
    #: names none.
    models: tuple[str, ...] = field(validator=[_some, _names])
    #: The upstreams, the first choice first: a name, or `{ upstream = "b", model = "renamed" }`.
    targets: tuple[Target, ...] = field(validator=_some)
    #: Where a request demanded a tool call and a whole answer has none: let the client have it and count it, or ask the `next`
    #: upstream.
    on_tool_choice_ignored: Literal["report", "next"] = "report"
    #: Where an upstream breaks off in the text of a stream: tell the client so (`report`), or let another upstream, or the
    #: same one again, `continue` from there. It is asked with the text so far as the beginning of its answer, so only those
    #: can that are known to answer such a request with the rest. Within one dialect nothing passes byte for byte on such a
    #: route.
    on_cut: Literal["report", "continue"] = "report"
    #: Further rounds over the upstreams after the first, where they failed in a way that passes.
    retries: int = field(default=2, validator=ge(0))
    #: The wait before the second round; it doubles with each, with jitter.
    backoff_s: float = field(default=0.5, validator=gt(0))
    #: The longest such wait.
    backoff_max_s: float = field(default=8.0, validator=gt(0))
    #: The longest `Retry-After` that is waited for. Where an upstream asks for more, the client is told so at once.
    retry_after_max_s: float = field(default=120.0, validator=ge(0))
    #: Which streams a client can come back to: those that it `asked` for so, with `x-streamkit-resumable: 1`, `always` all, or
    #: `never` any. One that can be resumed goes on without its client (`resume.unattended_s`), and costs tokens meanwhile.
    resumable: Resumable = "asked"

    def __attrs_post_init__(self) -> None:
        if self.backoff_max_s < self.backoff_s:
            raise Refusal("less than backoff_s", at=("backoff_max_s",))
        if self.on_cut == "continue" and not any(prefill_of(target.upstream.dialect) for target in self.targets):
            raise Refusal("none of the targets is known to go on with a text that broke off", at=("on_cut",))
        for index, target in enumerate(self.targets):
            if "*" in (target.model or "") and not all(map(_has_one_star, self.models)):
                reason = "what its * stands for is clear only where each of the route's models has one *, and no ? or ["
                raise Refusal(reason, at=("targets", index))

    @property
    def name(self) -> str:
        """One of few, unlike what clients ask for: for metrics."""
        return self.models[0]

    @property
    def tools(self) -> bool:
        """Whether any of its upstreams takes tools."""
        return any(target.upstream.tools for target in self.targets)

    def renamed(self, pattern: str, model: str) -> Route | None:
        """The route for a ``model`` that ``pattern`` matched: ``*`` in the targets' names is filled in. None: by no name."""
        if not any("*" in (target.model or "") for target in self.targets):
            return self
        before, _, behind = pattern.partition("*")
        matched = model[len(before) : len(model) - len(behind)]
        if not matched.strip() or "*" in matched:  # the client's word: no model is called so
            return None
        targets = (evolve(target, model=target.model and target.model.replace("*", matched)) for target in self.targets)
        return evolve(self, targets=tuple(targets))


class Routes:
    """The routes of a configuration, by model."""

    def __init__(self, routes: Iterable[Route]) -> None:
        #: The models that routes spell out, and their routes. A pattern names none, so none of its models is listed.
        self.named: dict[str, Route] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Route]] = []
        for route in routes:
            for model in route.models:
                if is_pattern(model):
                    self._patterns.append((model, re.compile(fnmatch.translate(model)), route))
                else:
                    self.named.setdefault(model, route)

    def find(self, model: str) -> Route | None:
        """The route for a model, its targets' new names filled in. None: no route has it."""
        if model in self.named:
            return self.named[model]
        for pattern, expression, route in self._patterns:
            if expression.match(model):
                return route.renamed(pattern, model)
        return None


def is_pattern(model: str) -> bool:
    """Whether a route's word is a pattern, rather than a model's name."""
    return any(letter in model for letter in "*?[")


def covers(wide: str, narrow: str) -> bool:
    """Whether ``wide`` matches whatever ``narrow`` matches, as far as comparing them letter by letter shows it.

    True is certain. False may be wrong for pairs that nobody writes: ``*?`` and ``?*``.
    """
    tokens = _TOKEN.findall(wide)
    reached = set(_past_stars(tokens, 0))
    for token in _TOKEN.findall(narrow):
        onward: set[int] = set()
        for at in reached:
            if at < len(tokens) and tokens[at] == "*":
                onward.update(_past_stars(tokens, at))
            elif at < len(tokens) and _takes(tokens[at], token):
                onward.update(_past_stars(tokens, at + 1))
        reached = onward
    return len(tokens) in reached


def _past_stars(tokens: list[str], at: int) -> Iterator[int]:
    yield at
    while at < len(tokens) and tokens[at] == "*":
        at += 1
        yield at


def _takes(wide: str, narrow: str) -> bool:
    if narrow == "*":
        return False
    return wide in {"?", narrow} or (len(narrow) == 1 and narrow != "?" and fnmatch.fnmatchcase(narrow, wide))


def _has_one_star(model: str) -> bool:
    return model.count("*") == 1 and not any(letter in model for letter in "?[")
