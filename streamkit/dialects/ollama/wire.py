"""Names, values and tables of Ollama that decoder and encoder both need. Source: dialects.md §4.1, §7.1, §7.2, §7.4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from streamkit.conversation.checks import ToolRules
from streamkit.dialects.members.values import count_of
from streamkit.dialects.profiles import Encoding, Profile
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.dialects.vocabulary.stop_reasons import was_stopped
from streamkit.dialects.vocabulary.usage_counts import loses_counts, total_of
from streamkit.events import Aside, MediaGenerated, ProviderFailed, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR = "ollama"

#: ``load`` and ``unload`` are the reasons of an empty request: nothing was generated, and nothing is wrong.
STOP_REASONS: Mapping[str, StopReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}
EXACT_REASONS = frozenset({"stop", "length", "tool_calls"})  # for any other stop reason a loss is counted
THINK_LEVELS = ("low", "medium", "high", "max")  # of ``think``, which may also be true or false
#: By the field of streamkit's ``Options``: the member of a request's ``options``.
OPTIONS: Mapping[str, str] = {
    "max_tokens": "num_predict",
    **{name: name for name in ("temperature", "top_p", "top_k", "stop", "seed")},
    **{name: name for name in ("presence_penalty", "frequency_penalty")},
}
MESSAGE_IMAGES: Final = "message.images"  # the type of the aside for images that the model made
IMAGES = frozenset({"image", "audio"})  # the kinds of media in ``images``: also audio, for models that accept it
#: The server parses a tool's schema into types that have few keywords (``api/types.go``, ``ToolFunctionParameters`` and
#: ``ToolProperty``).
TOOLS = ToolRules(
    names=re.compile(r"(?s).+"),
    root_keywords=frozenset({"type", "$defs", "items", "required", "properties"}),
    keywords=frozenset({"anyOf", "type", "items", "description", "enum", "properties", "required"}),
    whole=frozenset({"items", "$defs"}),
)
COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")


def decode_usage(line: Mapping[str, Any]) -> UsageReported | None:
    """Return the token counts and durations (ns) of a line; None if it has none. Lines leave out counts of 0."""
    raw = {name: count for name in COUNTS if (count := count_of(line, name)) is not None}
    if not raw:
        return None
    prompt, output = count_of(raw, "prompt_eval_count"), count_of(raw, "eval_count")
    return UsageReported(prompt, output_total=output, total=total_of(prompt, output), raw=raw, vendor=VENDOR)


def write_image(media: MediaGenerated, profile: Profile) -> list[Aside]:
    """Return the aside for an image of another vendor's model; empty for other media, or if the client can't read it."""
    takes_images = isinstance(profile, OllamaClient) and profile.images
    if media.kind != "image" or media.data is None or not takes_images:
        return []
    return [image_aside(media.data, media.choice)]


def image_aside(data: str, choice: int = 0) -> Aside:
    """Return the aside that clients of Ollama get as an image."""
    return Aside(VENDOR, "metadata", MESSAGE_IMAGES, [data], choice)


def done_reason(reason: StopReason, native: str | None, *, called: bool) -> tuple[str, bool]:
    """Return the ``done_reason``, and whether it is less exact than ``reason``. The calls themselves show ``tool_calls``."""
    withheld = reason == "tool_calls" and not called  # as if cut off: clients got none of the calls
    is_cut = withheld or reason in {"length", "context_full", "compaction", "pause"} or was_stopped(reason, native)
    word = "length" if is_cut else "stop"
    if native is not None and native in STOP_REASONS and reason == "stop":
        word = native
    return word, withheld or reason not in EXACT_REASONS


def encode_usage(
    usage: UsageReported | None, report: StreamReport, encoding: Encoding, first_s: float | None = None
) -> dict[str, Any]:
    """Return the counts and durations to write, without unknown ones and 0. Counts without a place are a loss.

    A server always reports durations, and clients divide by them, so they are written if the profile has the time of the
    request. ``first_s`` is the time of the first output, by the clock of ``encoding``; None: the time of the last line.
    """
    if usage is not None and usage.vendor == VENDOR:
        return dict(usage.raw or {})
    counts: dict[str, int | None] = dict.fromkeys(COUNTS)
    asked_s = encoding.profile.asked_at
    if asked_s is not None:
        now = encoding.clock()
        prompt_s = 0.0 if first_s is None else first_s - asked_s
        took_s = {
            "total_duration": now - asked_s,
            "prompt_eval_duration": prompt_s,
            "eval_duration": now - asked_s - prompt_s,
        }
        counts |= {name: max(1, round(seconds * 1e9)) for name, seconds in took_s.items()} | {"load_duration": 0}
    if usage is not None:
        if loses_counts(usage, VENDOR, usage.input_cached, usage.input_cache_write, usage.output_reasoning):
            report.lose("usage_detail")
        counts |= {"prompt_eval_count": usage.input_total, "eval_count": usage.output_total}
    return {name: count for name, count in counts.items() if count is not None}


def encode_error(failure: ProviderFailed, report: StreamReport) -> dict[str, Any]:
    """Return an error, which is only its message. Details of another vendor's error are counted as lost."""
    if has_detail(failure, VENDOR):
        report.lose("error_detail")
    return {"error": failure.message}


@frozen(kw_only=True)
class OllamaClient(Profile):
    """A client of Ollama's dialect."""

    #: Whether calls have an ``id`` next to ``function``. Strict clients (Zed, late 2025) refuse it.
    call_ids: bool = False
    #: Whether a response can have images. The ollama package (0.6.3) raises an error for one with images, and so loses its
    #: text as well.
    images: bool = False


def takes_ids(profile: Profile) -> bool:
    """Return whether this client takes calls with ids."""
    return isinstance(profile, OllamaClient) and profile.call_ids
