"""Examine one server: send the probes of a plan one after the other, and judge each response.

The caller loops over a plan's probes, calls ``examine`` for each, and stops after a result with ``ends``. No request is
repeated.

Source: observe.md O33.
"""

from __future__ import annotations

from aiohttp import ClientSession
from attrs import define, field

from streamkit.lab.doctor.exchange import ask
from streamkit.lab.doctor.judging import Judged, compared, judge
from streamkit.lab.doctor.probes import OWN_TURN_TOKENS, Probe, body_of, tokens_of, with_calls
from streamkit.report import Status
from streamkit.web.upstream import Upstream


@define(kw_only=True)
class Examination:
    """The examination of one server, with its results so far. The caller opens and closes the session (``client_session``)."""

    session: ClientSession
    upstream: Upstream
    model: str
    judged: dict[str, Judged] = field(factory=dict)  #: by the name of the probe

    async def examine(self, probe: Probe) -> Judged:
        """Send one request and judge its response. Raises BadRequest, UsageError, and SourceFailed without credentials."""
        dialect = self.upstream.dialect
        probe, body = self._following(probe, body_of(probe, dialect))
        exchange = await ask(
            self.session,
            self.upstream,
            body,
            model=self.model,
            stream=probe.streams,
            bound=probe.bound,
            leave=probe.way == "left",
        )
        found = await judge(probe, exchange, dialect, first=not self.judged, keyed=self.upstream.auth != "none")
        if not probe.streams and (streamed := self.judged.get("usage", self.judged.get("text"))) is not None:
            found = compared(streamed, found)
        self.judged[probe.name] = found
        return found

    def _following(self, probe: Probe, body: bytes) -> tuple[Probe, bytes]:
        """Return the probe and its body, continued from the server's own tool calls if they are complete and short."""
        before = self.judged.get(probe.follows)
        if before is None or before.response is None or before.status is Status.FAILED:
            return probe, body
        following = with_calls(probe, before.response)
        longer = body_of(following, self.upstream.dialect)
        if tokens_of(longer, self.model) > tokens_of(body, self.model) + OWN_TURN_TOKENS:
            return probe, body
        return following, longer
