"""Requests to an upstream for something other than a model's response: token counts and compactions, as one JSON body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

from aiohttp import ClientSession
from attrs import define, evolve, field

from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import StreamError
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.web.opening import Sending
from streamkit.web.source import whole_body
from streamkit.web.surfaces import Ask
from streamkit.web.upstream import Upstream, hidden
from streamkit.web.upstream.requests import NO_HEADERS

T = TypeVar("T")


@define
class SideRequest(ABC, Generic[T]):
    """One request to one upstream. Call ``fetch`` once; after that, the other fields say what happened."""

    body_bytes: ClassVar[int]  #: the largest response

    ask: Ask
    upstream: Upstream
    session: ClientSession
    client_headers: Mapping[str, str] = field(repr=False)  # includes the client's key
    model: str | None = None  #: the upstream's name for the model; None: the client's name
    asked: StreamReport = field(factory=StreamReport, repr=False)  #: the losses of the request
    report: StreamReport = field(factory=StreamReport, repr=False)  #: the upstream's errors, and the tokens it reported
    status: int | None = None  #: the upstream's HTTP status, if it responded
    upstream_headers: Mapping[str, str] = field(default=NO_HEADERS, repr=False)  #: headers for the client

    @abstractmethod
    def read(self, body: bytes) -> T:
        """Return the result in the upstream's response. Raises StreamError."""

    async def fetch(self) -> T | ProviderFailed:
        """Return the result, or the failure as a value."""
        asked = self.ask.request
        if (tools := self.upstream.deferred_tools(asked, self.asked)) is not None:
            asked = tools.visible()
        request = evolve(asked, model=self.model or self.ask.model, stream=None, stream_usage=None)
        opened = await Sending(
            self.session, self.upstream, request, self.ask, self.client_headers, self.asked, self.report
        ).open()
        self.status, self.upstream_headers = opened.status, opened.upstream_headers
        if isinstance(opened.answer, ProviderFailed):
            return opened.answer
        try:
            return self.read(await whole_body(opened.answer, body_bytes=self.body_bytes))
        except StreamError as error:
            self.report.failed(error)
            return hidden(failure_from(error), opened.cut)
