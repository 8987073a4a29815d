"""What is known of one client or provider of a dialect, as data, and what an encoder or a request is written for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from attrs import field, fields, frozen

from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import AssistantFirst, KeepAliveForm, Policy
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id


@frozen(kw_only=True)
class Profile:
    """What an encoder writes for one client, as data. Where a client needs nothing of its own it is all defaults."""

    name: str = "default"
    title: str = ""  #: who the client is, for the list
    #: openai-chat: the delta's fields that carry reasoning; some clients read ``reasoning``, most ``reasoning_content``.
    reasoning_fields: tuple[str, ...] = ("reasoning_content",)
    #: openai-chat: whether signed and encrypted reasoning is written as OpenRouter's ``reasoning_details``.
    reasoning_details: bool = True
    #: openai-chat: whether the usage is written. Serve it to clients that asked for it (``stream_options.include_usage``): its
    #: chunk has no choices, and programs that never asked for one read the first of them.
    include_usage: bool = True
    #: openai-chat: whether the usage stands in the last chunk that has choices, as Mistral writes it, not in one of its own.
    usage_with_stop: bool = False
    #: ollama: whether an ``id`` stands beside ``function``; strict readers (Zed, late 2025) refuse it.
    call_ids: bool = False
    #: What this client asked for: said where the provider names no model, since clients' types demand one.
    model: str = ""
    #: openai-responses: what this client's request set, which its answers say again (``Dialect.settings``).
    settings: Mapping[str, Any] = field(factory=dict)
    #: What it is sent while the provider is silent, where a policy does not say otherwise.
    keep_alive: KeepAliveForm = "dialect"

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the defaults, whatever was asked for."""
        names = [field.name for field in fields(Profile) if field.name not in {"name", "title", "model", "settings"}]
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(DEFAULT_PROFILE, name)}


@frozen(kw_only=True)
class Provider:
    """What is known of one provider of a dialect, as data.

    Decoding never needs it: every habit is read from whoever has it, and a report only says which repairs are no surprise. A
    request is written as its provider wants it.
    """

    name: str
    title: str
    #: Repairs that this provider is known to need, and how they come about.
    habits: Mapping[str, str] = field(factory=dict)
    #: What it sends beside the dialect's own fields: a field, and what it is. Carried within the dialect.
    adds: Mapping[str, str] = field(factory=dict)
    #: openai-chat: the request's field for the most tokens of an answer.
    max_tokens_field: str = "max_tokens"
    #: openai-chat: the request's field for how much to think: ``reasoning_effort``, or OpenRouter's object ``reasoning``.
    thinking_field: str = "reasoning_effort"
    #: openai-chat: the field of a message in which it takes reasoning back; empty: it does not.
    reasoning_history: str = ""
    #: openai-chat: whether that field must stand, empty at least, in each message that calls tools.
    reasoning_history_needed: bool = False
    #: openai-chat: the vendor of the signatures that it takes back in ``extra_content``.
    signatures: str = ""
    #: openai-chat: how a part says that the prompt up to it is to be kept: OpenAI's ``prompt_cache_breakpoint``, Anthropic's
    #: ``cache_control``; empty: not at all.
    cache_marks: Literal["", "openai", "anthropic"] = ""
    #: openai-chat: whether content is text alone, as one string: it refuses a list of parts.
    text_only: bool = False
    #: Whether its models' thinking stands in the text between tags (``<think>…</think>``): see ``Policy.think_tags``.
    thinks_in_text: bool = False
    #: anthropic: the version of the API, the newest by default; older ones take a temperature (dialects.md §3.0).
    api_version: str = "2026-10-21"


DEFAULT_PROFILE = Profile()


def under(policy: Policy, report: StreamReport | None, provider: Provider | None) -> StreamReport:
    """The report of what is read under ``policy`` and comes from ``provider``."""
    report = report if report is not None else StreamReport()
    report.habits = provider.habits if provider is not None else {}
    report.refuse_repairs = policy.refuse_repairs
    return report


@frozen(kw_only=True)
class Encoding:
    """What an encoder is made with: everything but the events."""

    limits: Limits = DEFAULT_LIMITS
    profile: Profile = DEFAULT_PROFILE
    #: Makes ids for what came without one; a fixed maker gives reproducible output.
    make_id: Callable[[str], str] = random_id
    #: Seconds since the epoch, for a response that came without a time.
    clock: Callable[[], float] = time.time


DEFAULT_MAX_TOKENS = 4096


@frozen(kw_only=True)
class Target:
    """What a request is written for: everything but the conversation."""

    #: The provider, where it is known by name: what it wants beside its dialect.
    provider: Provider | None = None
    #: Written where a dialect demands a bound and the request has none.
    max_tokens: int = DEFAULT_MAX_TOKENS
    #: Imitate what a dialect lacks (a required tool in Ollama) where that is possible, and count it, instead of refusing.
    emulate: bool = False
    #: A history that begins with the assistant, for a dialect that refuses one.
    assistant_first: AssistantFirst = "bridge"
