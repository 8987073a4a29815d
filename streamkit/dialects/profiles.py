"""What is known of one client or provider, as data, and what an encoder or a request is written for.

A dialect whose clients or providers differ in ways of its own has classes of its own for them, which add fields to these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, fields, frozen

from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import AssistantFirst, AssistantLast
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id

#: ``dialect``: the form that the dialect's clients read best. ``comment``: an SSE comment. ``event``: a real event or chunk.
KeepAliveForm: TypeAlias = Literal["dialect", "comment", "event"]


@frozen(kw_only=True)
class Profile:
    """What an encoder writes for one client, as data. Where a client needs nothing of its own it is all defaults."""

    name: str = "default"
    title: str = ""  #: who the client is, for the list
    #: What only this client's ``User-Agent`` has, in lower case; empty: nothing tells it.
    user_agent: str = ""
    #: Whether the usage is written, in a dialect whose clients ask for it (``Dialect.usage_on_request``).
    include_usage: bool = True
    #: Whether it reads the usage though it has no way to ask for it.
    usage_unasked: bool = False
    #: What this client asked for: said where the provider names no model, since clients' types demand one.
    model: str = ""
    #: What this client's request set, which its answers say again (``Dialect.settings``).
    settings: Mapping[str, Any] = field(factory=dict)
    #: When it was asked, by the clock of ``Encoding``, for dialects that say how long an answer took; None: as it begins.
    asked_at: float | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the defaults, whatever was asked for."""
        others = {"name", "title", "user_agent", "model", "settings", "asked_at"}
        names = [field.name for field in fields(Profile) if field.name not in others]
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(DEFAULT_PROFILE, name)}


@frozen(kw_only=True)
class Prefill:
    """That a server goes on with the text of an assistant's turn that stands last, and answers with the rest alone.

    Others take such a turn for a whole one, and answer anew: what is not known to go on has no prefill (dialects.md §7.4).
    """

    #: Members of the message that say so, and of the request.
    message: Mapping[str, Any] = field(factory=dict, hash=False)
    request: Mapping[str, Any] = field(factory=dict, hash=False)

    def add_to(self, body: dict[str, Any]) -> None:
        """Say it in a request whose last message is the assistant's."""
        if self.message:
            body["messages"][-1].update(self.message)
        body.update(self.request)


@frozen(kw_only=True)
class Provider:
    """What is known of one provider of a dialect, as data.

    Decoding never needs it: every habit is read from whoever has it, and a report only says which repairs are no surprise. A
    request is written as its provider wants it.
    """

    name: str
    title: str
    #: Repairs that this provider is known to need, and how they come about.
    habits: Mapping[str, str] = field(factory=dict, hash=False)
    #: What it sends beside the dialect's own fields: a field, and what it is. Carried within the dialect.
    adds: Mapping[str, str] = field(factory=dict, hash=False)
    #: How it wants a key, if not as its dialect's other providers do (``Endpoint.auth``).
    auth: str = ""
    #: Whether its models' thinking stands in the text between tags (``<think>…</think>``): see ``Policy.think_tags``.
    thinks_in_text: bool = False
    #: How it is asked to go on with a text, if not as its dialect's other servers are (``Dialect.prefill``).
    prefill: Prefill | None = None
    #: What OpenTelemetry calls it (``gen_ai.provider.name``); empty: its name.
    gen_ai_provider: str = ""


DEFAULT_PROFILE = Profile()


def report_for(provider: Provider | None, report: StreamReport | None) -> StreamReport:
    """The report of what comes from ``provider``: the one that is given, or a new one."""
    report = report if report is not None else StreamReport()
    report.habits = provider.habits if provider is not None else {}
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
    #: One that ends with the assistant's text, for a model that does not go on with it.
    assistant_last: AssistantLast = "bridge"
