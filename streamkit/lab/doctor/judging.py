"""Send the probes of a plan one after the other, and judge each response.

A response is judged by the grammar of its dialect, and by the expectations of its probe.

``streamkit/lint.py`` has the grammar, and ``findings.py`` the faults that no grammar shows. Doctor cannot see whether a server
stops when its client leaves. So only the beginning of an abandoned response is judged.

Source: observe.md O33, F52 to F55.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, get_args

from aiohttp import ClientSession
from attrs import define, evolve, field, frozen

from streamkit.conversation.messages import Response
from streamkit.dialects import source_named
from streamkit.dialects.base import Dialect
from streamkit.errors import StreamError
from streamkit.events import ProviderFailed
from streamkit.http_errors import decode_error
from streamkit.lab.doctor.findings import (
    BODY_TYPE,
    IN_TEXT,
    Finding,
    advice_for,
    content_type_of,
    error,
    note,
    of_content_type,
    of_difference,
    of_end,
    of_reads,
    of_refusal,
    of_repair,
    of_what_it_says,
    shown,
)
from streamkit.lab.doctor.probes import OWN_TURN_TOKENS, Exchange, Probe, ask, body_of, tokens_of, with_calls
from streamkit.lab.recording import Recording
from streamkit.lint import Check
from streamkit.pipeline import source_of
from streamkit.policy import TOLERANT, TextCalls
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect
from streamkit.report import Status, StreamReport, describe
from streamkit.translation.bodies import decode_response
from streamkit.web.upstream import Upstream

#: The statuses from best to worst. The verdict on a server is the status of its worst response.
WORSE: Final = (Status.DONE, Status.WOULD_BE_REPAIRED, Status.FAILED, Status.NOT_THIS_DIALECT)

_LOOKING: Final = evolve(TOLERANT, think_tags="on", text_calls=get_args(TextCalls))


@frozen(kw_only=True)
class Timing:
    """When a response arrived, in seconds since the request. None: nothing arrived."""

    headers_s: float | None
    first_s: float | None
    last_s: float | None
    greatest_gap_s: float | None  #: between two reads
    reads: int
    frames: int  #: number of events, lines or messages of a stream


@frozen
class Judged:
    """One response and its faults."""

    probe: Probe
    exchange: Exchange
    findings: Sequence[Finding] = ()
    worst: Status = field(default=Status.DONE, kw_only=True)  #: one of ``WORSE``: the status apart from the findings
    frames: int = field(default=0, kw_only=True)  #: number of events, lines or messages of a stream
    check: Check | None = field(default=None, kw_only=True)  #: the grammar's result, for a stream
    response: Response | None = field(default=None, kw_only=True, repr=False)  #: the content, if it could be read
    failed: ProviderFailed | None = field(default=None, kw_only=True)  #: the error, if the server sent one
    #: True: send no more requests, since they would have the same result.
    ends: bool = field(default=False, kw_only=True)

    @property
    def recording(self) -> Recording:
        return self.exchange.recording

    @property
    def status(self) -> Status:
        """The status, one of ``WORSE``. A finding that is an error makes it at least would-be-repaired, and calls that no
        client can run make it failed.
        """
        errors = {finding.rule for finding in self.findings if finding.severity == "error"}
        least = Status.FAILED if "arguments" in errors else Status.WOULD_BE_REPAIRED if errors else Status.DONE
        return max(self.worst, least, key=WORSE.index)

    @property
    def timing(self) -> Timing:
        reads, response = self.recording.reads, self.recording.response
        gaps = [later.t - earlier.t for earlier, later in pairwise(reads)]
        return Timing(
            headers_s=None if response is None else response.t,
            first_s=reads[0].t if reads else None,
            last_s=reads[-1].t if reads else None,
            greatest_gap_s=max(gaps, default=None),
            reads=len(reads),
            frames=self.frames,
        )


async def judge(probe: Probe, exchange: Exchange, dialect: str, *, first: bool, keyed: bool) -> Judged:
    """Judge a response. ``first``: it is the examination's first; ``keyed``: the request had a key. Raises UsageError."""
    named, _ = source_named(dialect)
    recording = exchange.recording
    response_line = recording.response
    if response_line is None:
        return _unanswered(probe, exchange)
    if response_line.status != 200:
        failed = decode_error(response_line.status, recording.body, dialect, exchange.headers)
        if probe.way == "spoiled":
            findings = list(of_refusal(named, failed, exchange))
            return Judged(probe, exchange, findings, failed=failed)
        return _refused(probe, exchange, failed, first=first, keyed=keyed)
    if probe.way == "spoiled":
        message = "the response to a request whose conversation is a number has status 200"
        advice = "respond with 400 to a malformed request: clients take any 200 for a response of the model"
        return Judged(probe, exchange, [error("bad_request", message, advice)])
    if not probe.streams:
        return await _whole(probe, exchange, named, dialect)
    return await _stream(probe, exchange, named, dialect)


def compared(streamed: Judged, whole: Judged) -> Judged:
    """Return ``whole`` with its differences to the streamed response to the same request as additional findings."""
    one, other = streamed.response, whole.response
    if one is None or other is None:
        return whole
    return evolve(whole, findings=(*whole.findings, *of_difference(one, other)))


# -- no response of the model --------------------------------------------------------------------------------------------


def _unanswered(probe: Probe, exchange: Exchange) -> Judged:
    message = "there is no response" if exchange.failed is None else str(exchange.failed)
    return Judged(probe, exchange, [error("no_answer", message)], worst=Status.FAILED, ends=True)


def _refused(probe: Probe, exchange: Exchange, failed: ProviderFailed, *, first: bool, keyed: bool) -> Judged:
    status = failed.http_status or 0
    ends = first or 300 <= status < 400 or status in {401, 403, 404, 429}
    if probe.length and status == 400:
        message = f"the server refuses a limit of {probe.request.options.max_tokens} tokens: {shown(failed.message)}"
        advice = "nothing, if the dialect has a lowest limit; clients that count tokens with such requests will fail"
        return Judged(probe, exchange, [note("length", message, advice)], failed=failed)
    advice = advice_for(status, exchange, keyed=keyed)
    finding = error("status", f"status {status}: {shown(failed.message)}", advice)
    return Judged(probe, exchange, [finding], failed=failed, worst=Status.FAILED, ends=ends)


# -- whole responses and streams -----------------------------------------------------------------------------------------


async def _whole(probe: Probe, exchange: Exchange, named: Dialect, dialect: str) -> Judged:
    findings = list(of_content_type(BODY_TYPE, exchange))
    report = StreamReport()
    response: Response | None = None
    try:
        if content_type_of(exchange) == named.media_type:
            response = await collect(source_of([exchange.recording.body]), dialect, report=report)
            report.repair("stream_for_body")
        else:
            response = decode_response(exchange.recording.body, dialect, report=report)
    except StreamError as failed:
        reason = describe(failed)
    else:
        reason = _why_not_clean(response)
    findings += of_end(exchange, whole=not reason)
    if response is None or reason:
        findings.append(error("whole", reason))
        return Judged(probe, exchange, findings, response=response, worst=Status.FAILED)
    findings += [of_repair(kind) for kind in report.repairs]
    findings += of_what_it_says(probe, response)
    return Judged(probe, exchange, findings, response=response)


def _why_not_clean(response: Response) -> str:
    if response.error is not None:
        return f"the response has status 200 but is an error: {shown(response.error.message)}"
    return "" if response.clean else "the response has no stop reason"


async def _stream(probe: Probe, exchange: Exchange, named: Dialect, dialect: str) -> Judged:
    recording = exchange.recording
    check = Check(named.name)
    for read in recording.reads:
        check.feed(read.data)
    findings = list(of_content_type(named.media_type, exchange))
    if probe.way == "left":  # doctor left on purpose, so how much arrived says nothing about the server
        return Judged(probe, exchange, findings, frames=check.report.frames)
    # doctor left because the response was too long, so the server did not cause the end
    if recording.ending == "client_left":
        findings += of_end(exchange, whole=False)
        clean = not check.report.repairs and all(violation.severity == "note" for violation in check.violations)
        status = Status.DONE if clean else Status.WOULD_BE_REPAIRED
        return Judged(probe, exchange, findings, frames=check.report.frames, check=check, worst=status)
    if (body := _body_for_stream(exchange, dialect)) is not None:
        findings += [*of_end(exchange, whole=True), of_repair("body_for_stream"), *of_what_it_says(probe, body)]
        return Judged(probe, exchange, findings, response=body)
    if exchange.failed is not None:
        check.break_off(exchange.failed)
    status = check.finish()
    frames = check.report.frames
    if status is Status.NOT_THIS_DIALECT:
        message = describe(check.fault) if check.fault is not None else "the response has another dialect"
        found = error("dialect", message)
        return Judged(probe, exchange, (*findings, found), check=check, worst=status, ends=True)
    response = await collect(source_of([recording.body]), dialect)
    findings += of_end(exchange, whole=response.clean)
    if response.error is not None:  # an error may be well-formed, and then breaks no rule of the grammar
        status = Status.FAILED
        findings.append(error("error", f"the stream ends with an error: {shown(response.error.message)}"))
    elif response.clean:
        findings += of_what_it_says(probe, response)
        findings += [of_repair(kind) for kind in await _in_text(probe, recording, dialect)]
    # else not judged: a short response or a tool call may arrive in one read
    if probe.calls == "none" and not probe.length:
        findings += of_reads(recording.reads, frames)
    return Judged(probe, exchange, findings, frames=frames, check=check, response=response, worst=status)


def _body_for_stream(exchange: Exchange, dialect: str) -> Response | None:
    """Return the whole response that the server sent instead of a stream; None if it sent something else."""
    body = exchange.recording.body
    if content_type_of(exchange) != BODY_TYPE or not body.lstrip().startswith(b"{"):
        return None
    try:
        response = decode_response(body, dialect)
    except StreamError:
        return None
    return response if response.clean else None


async def _in_text(probe: Probe, recording: Recording, dialect: str) -> list[str]:
    """Return the repairs that are needed because reasoning or tool calls are inside the text."""
    options = ReadOptions(policy=_LOOKING, offered=probe.request.tools or None)
    report = StreamReport()
    await collect(source_of([recording.body]), dialect, options, report=report)
    return [kind for kind in IN_TEXT if report.repairs[kind]]


# -- the examination ---------------------------------------------------------------------------------------------------


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
