"""Facts about one client or provider, as data, and the settings for encoding a response or a request.

A dialect with peculiar clients or providers has subclasses of these, with more fields.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, fields, frozen

from streamkit.errors import check_type
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import AssistantFirst, AssistantLast
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id

#: ``dialect``: the form that the dialect's clients read best. ``comment``: an SSE comment. ``event``: a real event or chunk.
KeepAliveForm: TypeAlias = Literal["dialect", "comment", "event"]


@frozen(kw_only=True)
class Profile:
    """The settings of an encoder for one client. The defaults suit most clients."""

    name: str = "default"
    title: str = ""  #: a description of the client, for lists of clients
    #: A lower-case text that only this client's ``User-Agent`` header contains. Empty: the header does not identify the
    #: client.
    user_agent: str = ""
    #: Whether to write usage, in a dialect whose clients must request usage (``Dialect.usage_on_request``).
    include_usage: bool = True
    usage_unasked: bool = False  #: Whether the client reads usage although the client cannot request usage.
    #: The model that the client requested. If the provider sends no model name, this name is written, because clients
    #: require a name.
    model: str = ""
    #: The settings of the client's request that the response must repeat (``Dialect.settings``).
    settings: Mapping[str, Any] = field(factory=dict)
    #: The time of the request, measured with ``Encoding.clock``. Some dialects report how long a response took after
    #: the request. None: the time when the response begins.
    asked_at: float | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that differ from the defaults, except fields that identify the client or depend on a single
        request.
        """
        others = {"name", "title", "user_agent", "model", "settings", "asked_at"}
        names = [field.name for field in fields(Profile) if field.name not in others]
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(DEFAULT_PROFILE, name)}


@frozen(kw_only=True)
class Prefill:
    """How to request that a server continues the text of a last assistant turn, and returns only the continuation.

    Other servers take such a turn as complete, and begin a new response. Without proof that a server continues, it has no
    prefill (dialects.md §7.4 lists the servers).
    """

    #: Members to add to the last message, and members to add to the request.
    message: Mapping[str, Any] = field(factory=dict, hash=False)
    request: Mapping[str, Any] = field(factory=dict, hash=False)

    def add_to(self, body: dict[str, Any]) -> None:
        """Add these members to a request whose last message is the assistant's."""
        if self.message:
            body["messages"][-1].update(self.message)
        body.update(self.request)


@frozen(kw_only=True)
class Provider:
    """Facts about one provider of a dialect, as data.

    Decoders never need these: they accept every habit from any provider, and a report only marks the repairs that were
    expected. Requests are written as their provider needs them.
    """

    name: str
    title: str
    #: The repairs that this provider is known to need, and their causes.
    habits: Mapping[str, str] = field(factory=dict, hash=False)
    #: Fields that the provider sends in addition to the dialect's, and their meanings. They are kept within the dialect.
    adds: Mapping[str, str] = field(factory=dict, hash=False)
    #: How the provider expects the key, if not as other providers of its dialect do (``Endpoint.auth``).
    auth: str = ""
    #: Whether the models' reasoning is in the text, between tags (``<think>…</think>``). See ``Policy.think_tags``.
    thinks_in_text: bool = False
    #: How to request that it continues a text, if not as other servers of its dialect do (``Dialect.prefill``).
    prefill: Prefill | None = None
    #: OpenTelemetry's name of the provider (``gen_ai.provider.name``). Empty: its name here.
    gen_ai_provider: str = ""


DEFAULT_PROFILE = Profile()


def report_for(provider: Provider | None, report: StreamReport | None) -> StreamReport:
    """Return the report for a stream of ``provider``: the given report, or a new one."""
    if report is None:
        report = StreamReport()
    else:
        check_type("report", report, StreamReport, "StreamReport()")
    report.habits = provider.habits if provider is not None else {}
    return report


@frozen(kw_only=True)
class Encoding:
    """The settings of an encoder."""

    limits: Limits = DEFAULT_LIMITS
    profile: Profile = DEFAULT_PROFILE
    #: Makes an id if the source has none. Pass a deterministic function to get the same output each time.
    make_id: Callable[[str], str] = random_id
    #: Returns the time in seconds since the epoch, for a response without a time.
    clock: Callable[[], float] = time.time

    def __attrs_post_init__(self) -> None:
        if self.profile is not DEFAULT_PROFILE:
            check_type("profile", self.profile, Profile, "Profile(…)")


DEFAULT_MAX_TOKENS = 4096


@frozen(kw_only=True)
class Target:
    """The settings for writing a request, except the conversation."""

    provider: Provider | None = None  #: The provider, if it is known by name. It may need more than its dialect does.
    max_tokens: int = DEFAULT_MAX_TOKENS  #: Written if the dialect requires a limit and the request has none.
    #: Whether to imitate what a dialect lacks (a required tool in Ollama) where that is possible, and count it, instead of
    #: refusing the request.
    emulate: bool = False
    #: What to do with a history that begins with the assistant, if the dialect refuses one.
    assistant_first: AssistantFirst = "bridge"
    #: What to do with a history that ends with the assistant's text, if the model does not continue it.
    assistant_last: AssistantLast = "bridge"
    #: The name of a known model that accepts the same as the request's, whose name says nothing. None: the request's name.
    model_like: str | None = None
    #: Whether to mark the prompt for the provider's cache, if the provider needs marks. The request must have none.
    cache: bool = False
