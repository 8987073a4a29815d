"""Choose the upstreams for a model: routes map model names and shell patterns to an ordered list of upstreams.

A name that a route spells out wins over every pattern; otherwise the first matching pattern wins, in the order of the routes.
Patterns are shell patterns (``*``, ``?``, ``[abc]``). They are case-sensitive, and ``*`` also matches a slash.

A target may rename the model: a ``*`` in the new name is replaced with the text that the pattern's ``*`` matched. So a target
``*`` of the pattern ``or/*`` removes the prefix.

Source: seeds.md S3; limits.md §1 (openai-python's backoff, and its cap of ``Retry-After``).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import Attribute, evolve, field, frozen
from attrs.validators import ge, gt, optional

from streamkit.dialects import prefill_of
from streamkit.errors import UsageError
from streamkit.gateway.reasons import DEFAULT_REASONS, Reason
from streamkit.rewrite.given import EventStage, load_stage
from streamkit.toml.findings import Refusal
from streamkit.web.resume.settings import Resumable
from streamkit.web.upstream import Upstream

HEADER: Final = "header:"  #: the prefix of a place of `affinity` that is a header
#: The other places of a request that may name its conversation.
AFFINITY: Final = ("prompt_cache_key", "conversation", "previous_response_id", "user", "first_message")
#: The default: without the first message, which many requests of one program have in common.
DEFAULT_AFFINITY: Final = AFFINITY[:-1]
_TOKEN: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)


@frozen(kw_only=True)
class Target:
    """One upstream of a route."""

    #: The upstream's name.
    upstream: Upstream
    #: The upstream's name for the model. The default is the name that the client sent. A `*` in this name is replaced with the
    #: text that the `*` in the route's pattern matched.
    model: str | None = field(default=None)
    #: How often the upstream is chosen in a group: an upstream with weight 3 is chosen three times as often as one with weight
    #: 1.
    weight: float = field(default=1.0, validator=gt(0))
    #: The index of its element of `to`: targets with the same place are equals. The route sets it.
    place: int = field(default=-1, eq=False, metadata={"no_key": True})

    @model.validator
    def _is_a_name(self, _attribute: Attribute[str | None], value: str | None) -> None:
        if value is not None and (not value.strip() or value.count("*") > 1):
            raise Refusal("must be a model's name, with one * at most")


@frozen
class RouteStage:
    """A stage of a route. A worker's process loads it again, since ``given`` can be pickled and ``stage`` can't."""

    #: The stage as `"package.module:name"`, or a table with that as `use`.
    given: str | Mapping[str, Any]
    stage: EventStage = field(init=False, repr=False, eq=False)

    @stage.default
    def _loaded(self) -> EventStage:
        try:
            return load_stage(self.given)
        except UsageError as error:
            raise Refusal(str(error)) from error

    def __reduce__(self) -> tuple[type[RouteStage], tuple[str | Mapping[str, Any]]]:
        return RouteStage, (self.given,)

    @property
    def use(self) -> str:
        return self.given if isinstance(self.given, str) else str(self.given["use"])


def _some(_instance: object, _attribute: Attribute[Any], value: tuple[object, ...]) -> None:
    if not value:
        raise Refusal("must not be empty")


def _names(_instance: object, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    for index, name in enumerate(value):
        if not name.strip():
            raise Refusal("must be a model's name or a pattern, not blank", at=(index,))


def _placed(elements: Iterable[Target | Sequence[Target]]) -> tuple[Target, ...]:
    """Return the targets of the elements of `to`, each with its place."""
    placed: list[Target] = []
    for place, element in enumerate(elements):
        group = (element,) if isinstance(element, Target) else element
        if not group:
            raise Refusal("must name at least one upstream", at=("targets", place))
        placed += (evolve(target, place=place) if target.place < 0 else target for target in group)
    return tuple(placed)


def _places(_instance: object, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    for index, place in enumerate(value):
        if place not in AFFINITY and not (place.startswith(HEADER) and place.removeprefix(HEADER).strip()):
            raise Refusal(f"must be one of {', '.join(AFFINITY)}, or {HEADER}NAME", at=(index,))


@frozen(kw_only=True)
class Route:
    """The upstreams for some models, in the order in which they are tried, and how often they are tried."""

    #: The models of this route: names that clients may send, and shell patterns (`*`, `?`, `[abc]`). If a route has the full
    #: name of the requested model, the gateway uses this route. Otherwise, it uses the first pattern in the file that matches.
    #: Clients that list the models get only the full names.
    models: tuple[str, ...] = field(validator=[_some, _names])
    #: The upstreams of this route, in the order in which the gateway tries them. Each element is the name of an upstream, or a
    #: table such as `{ upstream = "b", model = "renamed" }`. An array inside this array is a group of equal upstreams, from
    #: which `balance` chooses: `[["a", { upstream = "b", weight = 3 }], "c"]`.
    targets: tuple[Target, ...] = field(validator=_some, converter=_placed)
    #: How the gateway chooses an upstream in a group of equal upstreams. `weighted`: at random, by weight. `fewest_open`: the
    #: upstream for which the number of open streams in this process, divided by the weight, is smallest. `affinity`: the same
    #: upstream for all requests of a conversation, on every worker and node, so that the provider's cache has the prompt. If
    #: the chosen upstream fails, the gateway tries the other upstreams of the group.
    balance: Literal["weighted", "fewest_open", "affinity"] = "weighted"
    #: For `balance = "affinity"`: the places in a request where the gateway looks for a name of the conversation. The gateway
    #: uses the first place that has a name. `prompt_cache_key`: the member of this name. `conversation`: the id that a user
    #: interface sends for its chat. `previous_response_id`: the stored conversation that the request continues.
    #: `user`: the members `metadata.user_id` and `user`. `first_message`: the text of the user's first message. `header:NAME`:
    #: the header `NAME`. If no place has a name, the gateway chooses as with `weighted`.
    affinity: tuple[str, ...] = field(default=DEFAULT_AFFINITY, validator=_places)
    #: The stages that process each streamed or whole response before the client gets it, in this order. A stage may be one of
    #: streamkit's stages or your own. `"package.module:name"` is the name of a stage, or of a function that returns a stage.
    #: With `{ use = "package.module:name", … }`, the gateway calls the function: `args` has the positional arguments, and all
    #: further keys are keyword arguments. An argument `{ regex = "…" }` is a regular expression. The gateway also looks for
    #: modules in the configuration's folder and in the working directory. On a route with stages, the gateway forwards no
    #: response byte for byte.
    stages: tuple[RouteStage, ...] = ()
    #: The reasons for which the gateway tries the next upstream, as long as the client has received nothing of the response.
    #: [Choose upstreams](../how-to/choose-upstreams.md#fallback-the-reasons-to-try-the-next-upstream) explains each reason.
    #: `default` stands for `overloaded`, `rate_limit`, `timeout`, `connection`, `server_error`, `auth`, `billing`,
    #: `permission`, `not_found`, `unsupported_tools` and `unsupported_request`. The remaining reasons are `context_length`,
    #: `content_filter`, `refusal`, `no_output`, `tool_choice_ignored`, `too_large` and `invalid_request`.
    next_on: tuple[Literal["default", Reason], ...] = ("default",)
    #: What the gateway does if an upstream's stream is interrupted in the middle of text. `report`: the client gets an error.
    #: `continue`: another upstream, or the same upstream again, gets the interrupted text as the beginning of its response,
    #: and writes the rest. The gateway uses only upstreams that are known to continue a text. With `continue`, the gateway
    #: forwards no stream of the route byte for byte, even if client and upstream speak the same dialect.
    on_cut: Literal["report", "continue"] = "report"
    #: If an upstream gives no output for this many seconds, the gateway also sends the request to the next upstream. At most
    #: two attempts run at the same time. The client gets the response of the upstream that first produces output, and the
    #: gateway cancels the other attempt. This is off by default, because the providers may charge for both attempts.
    hedge_after_s: float | None = field(default=None, validator=optional(gt(0)))
    #: The largest number of further rounds after the first round. In each round, the gateway tries all upstreams. A further
    #: round begins only if the error may be temporary.
    retries: int = field(default=2, validator=ge(0))
    #: Seconds that the gateway waits before the second round. The wait doubles with each further round, and includes a random
    #: part (jitter).
    backoff_s: float = field(default=0.5, validator=gt(0))
    #: The longest time that the gateway waits between two rounds, in seconds, if no upstream asked for a longer wait.
    backoff_max_s: float = field(default=8.0, validator=gt(0))
    #: The longest `Retry-After` for which the gateway waits, in seconds. If an upstream asks for a longer wait, the client
    #: immediately gets the error.
    retry_after_max_s: float = field(default=120.0, validator=ge(0))
    #: Which streams a client can resume after it has lost its connection. `asked`: streams that the client requests with the
    #: header `x-streamkit-resumable: 1`. `always`: all streams. `never`: no streams. While its client is away, a resumable
    #: stream continues for at most `resume.unattended_s`, and costs tokens.
    resumable: Resumable = "asked"

    def __attrs_post_init__(self) -> None:
        if self.backoff_max_s < self.backoff_s:
            raise Refusal("must not be less than backoff_s", at=("backoff_max_s",))
        if self.on_cut == "continue" and not any(prefill_of(target.upstream.dialect) for target in self.targets):
            raise Refusal("no target is known to continue an interrupted text", at=("on_cut",))
        for target in self.targets:
            if "*" in (target.model or "") and not all(map(_has_one_star, self.models)):
                reason = "may have a * only if each of the route's models has one *, and no ? or ["
                raise Refusal(reason, at=("targets", target.place))

    @property
    def has_groups(self) -> bool:
        """Whether the order of the targets depends on the request."""
        return self.targets[-1].place + 1 < len(self.targets)

    @property
    def name(self) -> str:
        """A name for metrics. There are few such names, whatever models clients ask for."""
        return self.models[0]

    @property
    def tools(self) -> bool:
        return any(target.upstream.tools for target in self.targets)

    def next_for(self, reasons: Iterable[Reason]) -> Reason | None:
        """Return the first of ``reasons`` for which the next upstream is tried; None: for none of them."""
        listed = {*self.next_on, *(DEFAULT_REASONS if "default" in self.next_on else ())}
        return next((reason for reason in reasons if reason in listed), None)

    def renamed(self, pattern: str, model: str) -> Route | None:
        """Return the route for ``model``, which ``pattern`` matched, with ``*`` replaced in its targets' model names.

        Return None if the replacement is not a model's name.
        """
        if not any("*" in (target.model or "") for target in self.targets):
            return self
        before, _, behind = pattern.partition("*")
        matched = model[len(before) : len(model) - len(behind)]
        # the client chose this text; no upstream has a model with an empty name or with `*` in its name
        if not matched.strip() or "*" in matched:
            return None
        targets = (evolve(target, model=target.model and target.model.replace("*", matched)) for target in self.targets)
        return evolve(self, targets=tuple(targets))


class Routes:
    """The routes of a configuration, found by model."""

    def __init__(self, routes: Iterable[Route]) -> None:
        #: The route of each model that a route names in full, without a pattern. Only these models are listed to clients.
        self.named: dict[str, Route] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Route]] = []
        for route in routes:
            for model in route.models:
                if is_pattern(model):
                    self._patterns.append((model, re.compile(fnmatch.translate(model)), route))
                else:
                    self.named.setdefault(model, route)

    def find(self, model: str) -> Route | None:
        """Return the route for a model, with its targets' model names filled in; None: no route matches."""
        if model in self.named:
            return self.named[model]
        for pattern, expression, route in self._patterns:
            if expression.match(model):
                return route.renamed(pattern, model)
        return None


def is_pattern(model: str) -> bool:
    """Return whether a route's ``model`` is a pattern, not a model's name."""
    return any(letter in model for letter in "*?[")


def covers(wide: str, narrow: str) -> bool:
    """Return whether ``wide`` matches everything that ``narrow`` matches, judged by comparing both letter by letter.

    True is certain. False may be wrong for unusual pairs: ``*?`` and ``?*``.
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
