"""Cohere events to wire events: the message around the content blocks and the calls (``content.py``).

``message-end`` is the completion point; it also brings the usage, and the provider's error where there is one. A
``[DONE]`` behind it says nothing more.

Source: dialects.md §0.3, §6.2, §7.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.cohere.content import ContentReader
from streamkit.dialects.cohere.wire import FAILURES, STOP_REASONS, VENDOR, decode_usage, sound_usage
from streamkit.dialects.members.known import KEPT, Members, kept
from streamkit.dialects.members.values import said, text_of
from streamkit.dialects.vocabulary.error_bodies import is_bare_error, provider_failed
from streamkit.events import Aside, ChoiceStarted, ProviderFailed, ResponseStarted, StopReasonSeen, TerminatorSeen
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

EVENTS = frozenset(
    {
        "message-start",
        "content-start",
        "content-delta",
        "content-end",
        "tool-plan-delta",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-end",
        "citation-start",
        "citation-end",
        "message-end",
    }
)


def _of_message(index: str = "index", **members: Members) -> Members:
    """An event whose ``delta`` has a ``message``."""
    return Members("type", index, delta=Members(message=Members(**members)))


CALL = Members("name", "arguments")
#: What is read of each event; contents that only Cohere understands are kept whole.
MEMBERS: Mapping[str, Members] = {
    "message-start": kept(delta=Members("message")),
    "content-start": _of_message(content=KEPT),
    "content-delta": kept(delta=Members(message=Members(content=KEPT))),
    "content-end": Members("type", "index"),
    "tool-plan-delta": Members("type", delta=Members(message=Members("tool_plan"))),
    "tool-call-start": _of_message(tool_calls=kept(function=CALL)),
    "tool-call-delta": _of_message(tool_calls=Members(function=CALL)),
    "tool-call-end": Members("type", "index"),
    "citation-start": _of_message(citations=KEPT),
    "citation-end": Members("type", "index"),
    "message-end": Members("type", "id", "delta"),
    "debug": KEPT,
}
START_FIELDS = frozenset({"id", "type", "delta"})
END_FIELDS = frozenset({"finish_reason", "usage", "error"})


def recognises(event: str, document: Any) -> bool:
    """Whether a payload can be a Cohere event."""
    if not isinstance(document, dict):
        return False
    kind = document.get("type") or event
    return isinstance(kind, str) and kind in EVENTS


class CohereDecoder(ContentReader):
    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._started = False
        self._id: str | None = None
        self._ended = False
        self._by_type = {
            "message-start": self.message_start,
            "content-start": self.content_start,
            "content-delta": self.content_delta,
            "content-end": self.content_end,
            "tool-plan-delta": self.tool_plan,
            "tool-call-start": self.call_start,
            "tool-call-delta": self.call_delta,
            "tool-call-end": self.call_end,
            "citation-start": self.citation,
            "citation-end": self._pass_over,
            "message-end": self.message_end,
            "debug": self._debug,
        }

    def done(self) -> None:
        if not self._ended:
            super().done()

    def decode(self, document: dict[str, Any]) -> None:
        kind = self.string(document.get("type"))
        handler = self._by_type.get(kind)
        if handler is None:
            if (named := self.named_by_its_line(document, EVENTS)) is not None:
                self.decode(named)
            else:
                self.other(document, kind)
            return
        self.recognised = True
        if self.frame.event == "message":
            self.report.repair("event_name_missing")
        if self._ended:
            self.behind_end(handler, document)
            return
        before = len(self.out)
        handler(document)
        self._unread(document, kind, before)

    def _unread(self, document: dict[str, Any], kind: str, before: int) -> None:
        """Keep what was not read, unless the whole event was kept."""
        if not any(type(event) is Aside and event.raw is document for event in self.out[before:]):
            self.keep_unread(document, MEMBERS[kind], where=f"{kind}.")

    def other(self, document: dict[str, Any], kind: str) -> None:
        """No event of this dialect: an error in another envelope (the body of an HTTP error), or something new."""
        if (
            document.get("error")
            or self.frame.event == "error"
            or is_bare_error(document)
            or (not kind and text_of(document.get("message")))
        ):
            self.recognised = True
            self.report.repair("error_shape")
            self.settle_starts()
            self.out.append(provider_failed(document.get("error") or document, VENDOR, {}))
            return
        self.strange()
        if self._started:
            self.out.append(Aside(VENDOR, "unknown_event", kind or "event", document))

    def _pass_over(self, _document: dict[str, Any]) -> None:
        """``citation-end``: a citation comes whole with its start."""

    def _debug(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        self.out.append(Aside(VENDOR, "metadata", "debug", document))

    # -- the message -----------------------------------------------------------------------------------------------

    def message_start(self, document: dict[str, Any]) -> None:
        if self._started:
            self.restarted(self._id, document.get("id"))
            return
        message = self.message(document)
        extras = {name: value for name, value in document.items() if name not in START_FIELDS and said(value)}
        if inner := {name: value for name, value in message.items() if name != "role" and said(value)}:
            extras["delta"] = inner
        self._start(text_of(document.get("id")), text_of(message.get("role")) or "assistant", extras)

    def _start(self, response_id: str | None, role: str, extras: dict[str, Any]) -> None:
        self._started, self._id = True, response_id
        self.out.append(ResponseStarted(response_id, vendor=VENDOR, extras=extras or None))
        self.out.append(ChoiceStarted(role=role))

    def ensure_started(self) -> None:
        if not self._started:
            self._start(None, "assistant", {})

    def message_end(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        self._ended = True
        delta = self.fields(document.get("delta"))
        if usage := self.fields(delta.get("usage")):
            self._usage(usage)
        for name, value in delta.items():
            if name not in END_FIELDS and said(value):
                self.out.append(Aside(VENDOR, "metadata", f"message-end.{name}", value))
        native = text_of(delta.get("finish_reason"))
        if delta.get("error") or native in FAILURES:
            self._failed(delta, native)
            return
        self.close_all()
        if native is not None:
            self.out.append(StopReasonSeen(self.stop_reason(native, STOP_REASONS), native))
        self.out.append(TerminatorSeen())

    def _usage(self, usage: dict[str, Any]) -> None:
        self.tell_counts(decode_usage(usage))
        if (sound := sound_usage(usage)) != usage:
            self.odd({name: value for name, value in usage.items() if sound.get(name) != value})

    def _failed(self, delta: dict[str, Any], native: str | None) -> None:
        self.settle_starts()
        error = delta.get("error") or f"the provider gave the finish reason {quoted(native)}"
        if not isinstance(error, str):
            self.report.repair("error_shape")
        failure = provider_failed(error, VENDOR, {})
        kind = FAILURES.get(native or "", failure.type)
        self.out.append(ProviderFailed(kind, failure.message, native, failure.code, raw=delta, vendor=VENDOR))
