"""What both Google APIs have in common: errors, counts and signatures, and results, tools and formats of requests.

Source: dialects.md §5.2, §5.3, §5.5, §7.3, §7.4, §7.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, frozen

from streamkit.conversation.messages import Media, Part, Request, Text, ToolChoice, ToolResult, Turn, Unreadable
from streamkit.dialects.lowering import Lowering, Place, has_part, of_turns
from streamkit.dialects.members import values
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.dialects.vocabulary.usage_counts import has_more, total_of
from streamkit.events import ErrorType, ProviderFailed, UsageReported
from streamkit.report import StreamReport

VENDOR = "google"
#: Beginnings of URIs that only Google can read: of its Files API and of its storage.
OWN_URIS: Final = ("https://generativelanguage.googleapis.com/", "gs://")
#: Beginnings of video URLs that Google reads itself. Such media need no media type.
FILMS: Final = ("https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/")
#: What only Google's servers can read, in requests of both of its dialects.
FILE_STORE: Final = Unreadable(
    "a file search store by its name", "send the texts that matter, or offer a function that searches them"
)
DATA_STORE: Final = evolve(FILE_STORE, what="a data store of Google Cloud")
FUNCTION_NAMES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")  #: the names that functions may have
#: The words for levels of thinking.
LEVELS: Final = frozenset({"minimal", "low", "medium", "high", "xhigh"})
SERVICE_TIERS: Final[Mapping[str, str]] = {
    "default": "standard",
    "standard": "standard",
    "flex": "flex",
    "priority": "priority",
}
#: Counts must be below this number: JavaScript clients cannot hold a larger one exactly.
MOST_TOKENS: Final = 2**53
ERROR_TYPES: Mapping[str, ErrorType] = {
    **dict.fromkeys(("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"), "invalid_request"),
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "RESOURCE_EXHAUSTED": "rate_limit",
    **dict.fromkeys(("INTERNAL", "UNKNOWN", "DATA_LOSS"), "server"),
    "UNAVAILABLE": "unavailable",
    "DEADLINE_EXCEEDED": "timeout",
}
#: The status and the code to write for an error of another vendor.
ERROR_CODES: Mapping[ErrorType, tuple[str, int]] = {
    "invalid_request": ("INVALID_ARGUMENT", 400),
    "auth": ("UNAUTHENTICATED", 401),
    "billing": ("RESOURCE_EXHAUSTED", 429),
    "permission": ("PERMISSION_DENIED", 403),
    "not_found": ("NOT_FOUND", 404),
    "too_large": ("INVALID_ARGUMENT", 400),
    "rate_limit": ("RESOURCE_EXHAUSTED", 429),
    "server": ("INTERNAL", 500),
    "unavailable": ("UNAVAILABLE", 503),
    "timeout": ("DEADLINE_EXCEEDED", 504),
    "truncated": ("UNAVAILABLE", 503),
}


def encode_error(failure: ProviderFailed, report: StreamReport) -> Any:
    """Return the value of ``error``: Google's unchanged; another vendor's without details, which are counted as lost."""
    if failure.vendor == VENDOR and is_error(failure.raw):
        return failure.raw
    if failure.vendor != VENDOR and failure.native_type:
        report.lose("error_detail")
    status, code = ERROR_CODES[failure.type]
    return {"code": failure.http_status or code, "message": failure.message, "status": status}


def is_error(value: object) -> bool:
    """Return whether Google's official client can read this value as an error."""
    return isinstance(value, dict) and is_count(value.get("code")) and isinstance(value.get("message"), str)


def is_count(value: object) -> bool:
    """Whether a value can be a token count."""
    return type(value) is int and 0 <= value < MOST_TOKENS


def signature_blob(kind: Kind, vendor: str, blob: str) -> str:
    """Return the signature to write: Google's unchanged if it is base64, which clients decode; any other sealed."""
    return blob if vendor == VENDOR and is_base64(blob) else seal(kind, vendor, blob)


def is_base64(text: str) -> bool:
    """Return whether a text is base64 in the standard or the URL alphabet. The official client decodes both."""
    return values.is_base64(text.replace("-", "+").replace("_", "/"))


def is_own_uri(uri: str | None) -> bool:
    """Return whether only Google can read the file at this address."""
    return (uri or "").startswith(OWN_URIS)


def standard_base64(text: str) -> str:
    """Return base64 in the standard alphabet. Google's clients write the URL alphabet, and its servers accept both."""
    text = text.replace("-", "+").replace("_", "/")
    return text + "=" * (-len(text) % 4)


@frozen
class UsageForm:
    """The token counts of a Google dialect. Thoughts are not part of the output, nor the input of tools of the input."""

    vendor: str
    ending: str  #: how the names of all counts end
    #: The names of the counts: input, input of tools, output, thoughts, input from the cache, total.
    names: tuple[str, str, str, str, str, str]

    def decode(self, raw: Mapping[str, Any]) -> UsageReported | None:
        """Return the counts so far of a usage object; None if it has none."""
        whole, tools, output, thoughts, cached, total = values.counts_of(raw, self.names)
        if tools is not None:
            whole = (whole or 0) + tools
        if thoughts is not None:
            output = (output or 0) + thoughts
        if whole is output is cached is total is None:
            return None
        return UsageReported(whole, cached, None, output, thoughts, total, raw, self.vendor)

    def encode(self, usage: UsageReported, report: StreamReport) -> dict[str, Any]:
        """Return a usage object without unknown counts. The dialect's own is returned without malformed counts.

        Another vendor's counts are lost if the cache was written to, or if its thoughts are not part of its output.
        """
        if usage.vendor == self.vendor and usage.raw is not None:
            return {name: value for name, value in usage.raw.items() if not self.is_bad(name, value)}
        output, thoughts = usage.output_total, usage.output_reasoning
        is_inexact = usage.input_cache_write is not None or (thoughts or 0) > (output or 0)
        if usage.vendor != self.vendor and (is_inexact or has_more(usage, self.vendor)):
            report.lose("usage_detail")
        if output is not None and thoughts is not None and thoughts <= output:
            output -= thoughts  # an output below the thoughts does not include them
        total = total_of(usage.input_total, usage.output_total) if usage.total is None else usage.total
        whole_name, _, output_name, thoughts_name, cached_name, total_name = self.names
        counts = {
            whole_name: usage.input_total,
            cached_name: usage.input_cached,
            output_name: output,
            thoughts_name: thoughts,
            total_name: total,
        }
        return {name: count for name, count in counts.items() if count is not None}

    def is_bad(self, name: str, value: object) -> bool:
        """Return whether a member is named like a count but is no number, so it must not be written again."""
        return name.endswith(self.ending) and not is_count(value)


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Return media with bytes, a URL or a file id, from this dialect; otherwise count a loss and return None."""
    if media.data is not None or media.url or media.file_id:
        return media
    to.lose("media", media.media_type or media.kind)
    return None


def media_behind_results(request: Request, to: Lowering, *, kinds: bool = False) -> None:
    """Move media from tool results to after the turn's last result, for a model that accepts no media in results.

    With ``kinds``, the report names the kind of each moved media.
    """

    def apart(turn: Turn, to: Lowering) -> Turn:
        made, moved, last = list[Part](), list[Part](), 0
        for part in turn.parts:
            made.append(part)
            if isinstance(part, ToolResult):
                media = [inner for inner in part.parts if isinstance(inner, Media)]
                for each in media:
                    to.lose("media", f"{f'{each.kind}, ' if kinds else ''}moved after the result {part.call_id}")
                made[-1] = evolve(part, parts=[inner for inner in part.parts if not isinstance(inner, Media)])
                moved += media
                last = len(made)
        return evolve(turn, parts=[*made[:last], *moved, *made[last:]])

    if not to.takes.model.media_in_results and has_part(request.turns, ToolResult):
        of_turns(apart)(request, to)


def telling_text(part: Part, _place: Place, to: Lowering) -> Part | None:
    """Drop an empty text part, unless it has a signature or extras."""
    if not isinstance(part, Text) or part.text or part.signature is not None or part.extras:
        return part
    to.report.repair("turn_empty")
    return None


def schemas_anew(request: Request, _to: Lowering) -> None:
    """Drop schemas in the older form, which only the other Google API has, and empty schemas of functions."""
    output = request.options.output
    if output is not None:
        request.options.output = evolve(output, native_schema=None)
    request.tools = [
        tool if tool.kind == "server" else evolve(tool, parameters=tool.parameters or None, native_parameters=None)
        for tool in request.tools
    ]


def choice_fits(request: Request, to: Lowering, *, validated: str, names: bool = False) -> None:
    """Adapt the tool choice: drop the setting for parallel calls, and the whole choice if there are no functions.

    If the arguments of a tool must match its schema, the mode ``validated`` requests this for all tools. With ``names``, a
    choice that limits the model to some tools without requiring a call is written with that mode, too.
    """
    choice = request.tool_choice
    functions = [tool for tool in request.tools if tool.kind != "server"]
    strict = any(tool.strict for tool in functions)
    if choice is None:
        if strict:
            request.tool_choice = ToolChoice(extras={"mode": validated})
        return
    if choice.parallel is False:
        to.lose("tool_choice", "parallel")
    if not functions and not to.own:  # the server refuses a choice without functions
        if choice.mode == "required":
            to.lose("tool_choice", "required")
        request.tool_choice = None
        return
    if choice.mode == "auto" and not to.own and (strict or (names and choice.names)):
        choice = evolve(choice, extras={"mode": validated})
    request.tool_choice = choice


def form_counted(request: Request, to: Lowering) -> None:
    """Count the members of the output format that are not written; the output always matches its schema."""
    output = request.options.output
    if output is not None and output.kind == "schema":
        to.lose_members(output, "output", "name", "description")
        if output.strict is False:
            to.lose("parameter", "output.strict")


def tier_named(request: Request, _to: Lowering) -> None:
    """Replace the neutral name of the service tier with Google's name."""
    tier = request.options.service_tier
    if tier is not None:
        request.options.service_tier = SERVICE_TIERS[tier]
