"""Find the members of a request that a server refused because it does not know them, and that a request can do without.

Servers refuse a whole request because of one member that they, or the model, do not accept. Each server words this error in
another way, but names the member. If the request means the same without the member, it can be sent again without it.

Only a member that is not supported at all is left out. A value that is out of range, of the wrong type, or unknown to a model
that accepts other values (an effort ``minimal``), is the client's error. ``LEARNABLE`` is the closed list of members
that may be left out. It has nothing that programs rely on: the conversation, tools and the choice among them, the form of the
output, the most output tokens, ``stop`` (agents parse up to it), ``n``, ``logit_bias`` (it can restrict the output to some
tokens), ``store``, safety settings and regions (what happens to the data).

Source: dialects.md §1.4; the texts are from reports of users (the tests quote them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

import orjson

from streamkit.events import TOLD_CHARS, ProviderFailed
from streamkit.report import StreamReport
from streamkit.translation.changes import Change

#: How the next token is chosen. A response without these settings is still a response to the request.
_SAMPLING: Final = (
    *("temperature", "top_p", "top_k", "min_p", "top_a", "typical_p", "seed", "random_seed"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "p", "k"),
    *(f"generationConfig.{name}" for name in ("temperature", "topP", "topK", "seed")),
    *(f"generationConfig.{name}" for name in ("presencePenalty", "frequencyPenalty")),
    *(
        f"generation_config.{name}"
        for name in ("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty")
    ),
    *("inferenceConfig.temperature", "inferenceConfig.topP"),
    *("additionalModelRequestFields.top_k", "additionalModelRequestFields.topK"),
)
#: Numbers next to the output. A client that asked for them can see that they are missing.
_PROBABILITIES: Final = ("logprobs", "top_logprobs", "generationConfig.responseLogprobs", "generationConfig.logprobs")
#: How much the model thinks, whether it shows that, and how long its responses are.
_EFFORT: Final = (
    *("reasoning_effort", "reasoning.effort", "reasoning.summary", "reasoning", "include_reasoning", "think"),
    *("thinking.display", "thinking", "thinking_budget", "output_config.effort", "verbosity", "text.verbosity"),
    *(f"generationConfig.thinkingConfig.{name}" for name in ("thinkingLevel", "thinkingBudget", "includeThoughts")),
    *("generationConfig.thinkingConfig", "generation_config.thinking_level", "generation_config.thinking_summaries"),
    *(
        f"additionalModelRequestFields.{name}"
        for name in ("thinking", "reasoning_effort", "reasoning", "output_config.effort")
    ),
)
#: How the provider serves, counts and labels the request. A model never sees these.
_SERVICE: Final = (
    *("service_tier", "serviceTier", "speed", "performanceConfig", "prediction", "context_management"),
    *("metadata.user_id", "metadata", "requestMetadata", "labels", "user", "safety_identifier"),
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
    *("stream_options.include_obfuscation", "stream_options"),
)
#: Permission for several calls at once. Clients also accept one call after the other.
_PARALLEL: Final = ("parallel_tool_calls", "tool_choice.disable_parallel_tool_use")
#: Where the prompt is cached, and that calls must match their schema: each call gets a verdict either way.
_MARKS: Final = tuple(
    f"{place}{name}"
    for name in ("cache_control.ttl", "cache_control.scope", "cache_control")
    for place in ("", "system.*.", "tools.*.", "messages.*.content.*.", "messages.*.content.*.content.*.")
)
_STRICT: Final = ("tools.*.strict", "tools.*.function.strict", "toolConfig.tools.*.toolSpec.strict")
#: The paths of members that may be left out, in the names of the dialects. If two match a name, the first is used.
LEARNABLE: Final = (*_SAMPLING, *_PROBABILITIES, *_EFFORT, *_SERVICE, *_PARALLEL, *_MARKS, *_STRICT)
#: For a member that is left out: the members that must be left out with it.
TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "logprobs": ("top_logprobs",),
    "generationConfig.logprobs": ("generationConfig.responseLogprobs",),
    "generationConfig.responseLogprobs": ("generationConfig.logprobs",),
}
#: For the name of a feature in an error: the members that it may mean.
SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {"thinking": ("think", "reasoning_effort", "reasoning")}
#: Members with the same meaning. One takes the place of the other if the error names that one.
RENAMED: Final = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_NAME: Final = r"[\"'`]?(?P<name>[A-Za-z][\w.\[\]]*)[\"'`]?"
#: Matches a mention of the model without a condition after it.
_THIS: Final = r"(?:this|the current|that|model|models/)(?!.{0,40}\bwhen\b)"
_MEMBER: Final = "parameter|argument|field"
_UNSUPPORTED: Final = r"(?:not supported|unsupported|deprecated|not enabled|not available)"
#: Errors about a member that the server, or the model, never accepts.
_NEVER_ACCEPTED: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"un(?:supported|known|recognized) (?:request )?(?:{_MEMBER})(?:s|\(s\))?(?: supplied)?: (?:parameter )?{_NAME}",
        rf"unsupported value: {_NAME} does not support .{{1,60}} with this model\. Only the default",
        rf"invalid {_NAME}: only \S{{1,20}} is allowed for this model",
        rf"(?:does not|doesn't|don't) support {_NAME}=\S{{1,20}} Only ",
        r"(?P<name>[A-Za-z][\w.]*)(?:: |\s{1,3})Extra inputs are not permitted",
        rf"Extra inputs are not permitted, field: {_NAME}",
        r"'loc': [(\[]'body', '(?P<name>\w+)'[)\]], 'msg': 'Extra inputs",
        r"\"extra_forbidden\",\"loc\":\[\"body\",\"(?P<name>\w+)\"\]",
        r"Unknown name \"(?P<name>\w+)\"(?: at '(?P<place>[\w.\[\]]+)')?: Cannot find field",
        r"#(?P<place>[/\w]*): extraneous key \[(?P<name>\w+)\] is not permitted",
        rf"(?:does not|doesn't) support (?:the )?(?:parameters?:? )?[\[{{]?{_NAME}\]?(?: field| parameter|[:,]|\.|$)",
        rf"extra parameters \[{_NAME}",
        rf"argument not supported on this model: {_NAME}",
        rf"(?:'(?P<place>[\w.\[\]]+)' ?: )?property {_NAME} is unsupported",
        rf"(?:^|[:.;>] |because ){_NAME}(?P<more> (?:level|budget|effort))? is {_UNSUPPORTED} (?:with|for|on|by|in) {_THIS}",
    )
)
#: Errors about a member that is not accepted next to another one. It is left out of this request only.
_CONFLICTING: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NAME} (?:may only be|must be unset|must not be set|cannot be specified|is not supported).{{0,40}} when\b",
        rf"[\"'`]?\w+[\"'`]? and {_NAME} cannot both be specified",
        rf"(?:does not|doesn't|don't) support {_NAME}=\S{{1,20}} while ",
    )
)
_INSTEAD: Final = re.compile(rf"\buse {_NAME} instead", re.IGNORECASE)
_STEP: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")


def refused_members(failed: ProviderFailed, body: bytes) -> tuple[tuple[Change, ...], bool]:
    """Return the changes with which ``body`` may be accepted, and whether later requests to the model need them too.

    There are none if the error names no member, or one that the request needs. The error must be one that refuses the request
    (status 400 or 422).
    """
    text = _messages(failed)
    for patterns, lasts in ((_NEVER_ACCEPTED, True), (_CONFLICTING, False)):
        found = [match for pattern in patterns for match in pattern.finditer(text)]
        if found:
            members = orjson.loads(body)
            changes = [_changes(match, text, members) for match in found]
            return (tuple(dict.fromkeys(chain.from_iterable(changes))) if all(changes) else ()), lasts
    return (), False


def _messages(failed: ProviderFailed) -> str:
    """Return the error's message, and the upstream's own message if the server is a router."""
    metadata = failed.raw.get("metadata") if isinstance(failed.raw, dict) else None
    routed = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{failed.message}\n{routed[:TOLD_CHARS]}" if isinstance(routed, str) else failed.message


def _changes(match: re.Match[str], text: str, body: dict[str, Any]) -> tuple[Change, ...]:
    """Return the changes for one named member; none if it must stay, or if the body does not have it."""
    named = match.groupdict()
    name = named["name"].rstrip(".") + (named.get("more") or "").strip()
    instead = _INSTEAD.search(text)
    if name in RENAMED:
        renames = instead is not None and instead["name"].rstrip(".") == RENAMED[name] and name in body
        return (Change(name, name=RENAMED[name]),) if renames else ()
    steps = [_plain(step) for step in _STEP.findall(f"{named.get('place') or ''}.{name}")]
    steps = steps[1:] if steps[0] == "body" else steps
    for path in LEARNABLE if steps else ():
        if _fits(steps, [_plain(step) for step in path.split(".")]) or path in SYNONYMS.get(name, ()):
            change = Change(path, loss="parameter_refused")
            if change.apply(body, StreamReport()) is not body:
                return (change, *(Change(other, loss="parameter_refused") for other in TOGETHER.get(path, ())))
    return ()


def _plain(step: str) -> str:
    return "*" if step == "*" or step.isdigit() else step.replace("_", "").lower()


def _fits(named: list[str], path: list[str]) -> bool:
    """Return whether an error that names these steps means the member at ``path``.

    Errors name members with steps that the body does not have (``tools.0.custom.strict``), without the first steps
    (``temperature`` in ``inferenceConfig``), or in one word (``reasoningEffort``).
    """
    if len(named) > len(path):
        rest = iter(named)
        return named[-1] == path[-1] and named[0] == path[0] and all(step in rest for step in path)
    return path[len(path) - len(named) :] == named or "".join(path[-2:]) == "".join(named)
