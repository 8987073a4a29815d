"""Judge a response: by the grammar of its dialect, and by the expectations of its probe.

``streamkit/lint.py`` has the grammar, and ``findings.py`` the faults that no grammar shows. Doctor cannot see whether a server
stops when its client leaves. So only the beginning of an abandoned response is judged.

Source: observe.md O33, F52 to F55.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, get_args

from attrs import evolve, field, frozen

from streamkit.conversation.messages import Response
from streamkit.dialects import source_named
from streamkit.dialects.base import Dialect
from streamkit.errors import StreamError
from streamkit.events import ProviderFailed
from streamkit.http_errors import decode_error
from streamkit.lab.doctor.exchange import Exchange
from streamkit.lab.doctor.findings import (
    BODY_TYPE,
    IN_TEXT,
    Finding,
    advice_for,
    content_type_of,
    of_content_type,
    of_difference,
    of_end,
    of_reads,
    of_refusal,
    of_repair,
    of_what_it_says,
    shown,
)
from streamkit.lab.doctor.probes import Probe
from streamkit.lab.recording import Recording
from streamkit.lint import Check
from streamkit.policy import TOLERANT, TextCalls
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect
from streamkit.report import Status, StreamReport, describe
from streamkit.testing.drive import source_of
from streamkit.translation.bodies import decode_response

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


@frozen(kw_only=True)
class Judged:
    """One response and its faults."""

    probe: Probe
    exchange: Exchange
    status: Status  #: one of ``WORSE``
    timing: Timing
    findings: tuple[Finding, ...] = ()
    check: Check | None = None  #: the grammar's result, for a stream
    response: Response | None = field(default=None, repr=False)  #: the content, if it could be read
    failed: ProviderFailed | None = None  #: the error, if the server sent one
    ends: bool = False  #: True: send no more requests, since they would have the same result

    @property
    def recording(self) -> Recording:
        return self.exchange.recording


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
            return _judged(probe, exchange, findings, failed=failed)
        return _refused(probe, exchange, failed, first=first, keyed=keyed)
    if probe.way == "spoiled":
        accepted = Finding.error(
            "bad_request",
            "a request whose conversation is a number was answered with status 200",
            "answer 400 to what can't be read: clients take any 200 for an answer of the model",
        )
        return _judged(probe, exchange, (accepted,))
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
    message = "there is no answer" if exchange.failed is None else str(exchange.failed)
    finding = Finding.error(
        "no_answer", message, "look whether the server is up, and whether scheme, host and port of the URL are right"
    )
    return _judged(probe, exchange, (finding,), worst=Status.FAILED, ends=True)


def _refused(probe: Probe, exchange: Exchange, failed: ProviderFailed, *, first: bool, keyed: bool) -> Judged:
    """Judge an error status in place of a response."""
    status = failed.http_status or 0
    ends = first or 300 <= status < 400 or status in {401, 403, 404, 429}
    advice = advice_for(status, exchange, keyed=keyed)
    if probe.length and status == 400:
        finding = Finding.note(
            "length",
            f"an answer of {probe.request.options.max_tokens} tokens is refused: {shown(failed.message)}",
            "nothing, where the dialect has a least bound; clients that count tokens so will fail",
        )
        return _judged(probe, exchange, (finding,), failed=failed)
    finding = Finding.error("status", f"status {status}: {shown(failed.message)}", advice)
    return _judged(probe, exchange, (finding,), failed=failed, worst=Status.FAILED, ends=ends)


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
    except StreamError as error:
        reason = describe(error)
    else:
        reason = _why_not_clean(response)
    findings += of_end(exchange, whole=not reason)
    if response is None or reason:
        findings.append(
            Finding.error(
                "whole", reason, "answer `stream: false` with one whole JSON object, and errors with their status"
            )
        )
        return _judged(probe, exchange, findings, response=response, worst=Status.FAILED)
    findings += [of_repair(kind) for kind in report.repairs]
    findings += of_what_it_says(probe, response)
    return _judged(probe, exchange, findings, response=response)


def _why_not_clean(response: Response) -> str:
    if response.error is not None:
        return f"the answer has status 200 and is an error: {shown(response.error.message)}"
    return "" if response.clean else "the answer has no reason for its end"


async def _stream(probe: Probe, exchange: Exchange, named: Dialect, dialect: str) -> Judged:
    recording = exchange.recording
    check = Check(named.name)
    for read in recording.reads:
        check.feed(read.data)
    findings = list(of_content_type(named.media_type, exchange))
    if probe.way == "left":  # doctor left on purpose, so how much arrived says nothing about the server
        return _judged(probe, exchange, findings, frames=check.report.frames)
    # doctor left because the response was too long, so the server did not cause the end
    if recording.ending == "client_left":
        findings += of_end(exchange, whole=False)
        clean = not check.report.repairs and all(violation.severity == "note" for violation in check.violations)
        status = Status.DONE if clean else Status.WOULD_BE_REPAIRED
        return _judged(probe, exchange, findings, frames=check.report.frames, check=check, worst=status)
    if (body := _body_for_stream(exchange, dialect)) is not None:
        findings += [*of_end(exchange, whole=True), of_repair("body_for_stream"), *of_what_it_says(probe, body)]
        return _judged(probe, exchange, findings, response=body)
    if exchange.failed is not None:
        check.break_off(exchange.failed)
    status = check.finish()
    frames = check.report.frames
    if status is Status.NOT_THIS_DIALECT:
        found = Finding.error(
            "dialect",
            describe(check.fault) if check.fault is not None else "the answer has another dialect",
            "name the dialect that the server speaks",
        )
        return _judged(probe, exchange, (*findings, found), check=check, worst=status, ends=True)
    response = await collect(source_of([recording.body]), dialect)
    findings += of_end(exchange, whole=response.clean)
    if response.error is not None:  # an error may be well-formed, and then breaks no rule of the grammar
        status = Status.FAILED
        findings.append(
            Finding.error(
                "error", f"the stream ends in an error: {shown(response.error.message)}", "look into the server's log"
            )
        )
    elif response.clean:
        findings += of_what_it_says(probe, response)
        findings += [of_repair(kind) for kind in await _in_text(probe, recording, dialect)]
    # else not judged: a short response or a tool call may arrive in one read
    if probe.calls == "none" and not probe.length:
        findings += of_reads(recording.reads, frames)
    return _judged(probe, exchange, findings, frames=frames, check=check, response=response, worst=status)


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
    options = ReadOptions(policy=_LOOKING, tools=probe.request.tools or None)
    report = StreamReport()
    await collect(source_of([recording.body]), dialect, options, report=report)
    return [kind for kind in IN_TEXT if report.repairs[kind]]


# -- the verdict ---------------------------------------------------------------------------------------------------------


def _judged(
    probe: Probe,
    exchange: Exchange,
    findings: Sequence[Finding],
    *,
    worst: Status = Status.DONE,
    frames: int = 0,
    check: Check | None = None,
    response: Response | None = None,
    failed: ProviderFailed | None = None,
    ends: bool = False,
) -> Judged:
    """Return a result whose status is ``worst``, or would-be-repaired if a finding is an error and ``worst`` is better."""
    if any(finding.severity == "error" for finding in findings):
        worst = max(worst, Status.WOULD_BE_REPAIRED, key=WORSE.index)
    return Judged(
        probe=probe,
        exchange=exchange,
        status=worst,
        timing=_timing(exchange.recording, frames),
        findings=tuple(findings),
        check=check,
        response=response,
        failed=failed,
        ends=ends,
    )


def _timing(recording: Recording, frames: int) -> Timing:
    reads = recording.reads
    gaps = [later.t - earlier.t for earlier, later in pairwise(reads)]
    return Timing(
        headers_s=None if recording.response is None else recording.response.t,
        first_s=reads[0].t if reads else None,
        last_s=reads[-1].t if reads else None,
        greatest_gap_s=max(gaps, default=None),
        reads=len(reads),
        frames=frames,
    )
