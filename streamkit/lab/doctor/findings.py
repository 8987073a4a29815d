"""Findings: faults of a response that its dialect's grammar does not show, each with advice.

An error breaks clients. A note leaves the verdict clean, since the server may have a reason that doctor cannot see.

Findings state only what was observed. For example, all events in one read may mean that something buffers the response, or
that the server is faster than the network.

Source: observe.md O33, F52 to F54.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import orjson
from attrs import frozen

from streamkit.conversation.messages import Response
from streamkit.dialects.base import Dialect
from streamkit.events import ProviderFailed, UsageReported
from streamkit.http_errors import is_retryable
from streamkit.lab.doctor.exchange import Exchange
from streamkit.lab.doctor.probes import Probe
from streamkit.lab.recording import Read
from streamkit.report import REPAIRS
from streamkit.text.quoting import quoted, shortened

Severity: TypeAlias = Literal["error", "note"]
#: The media type of errors and of responses that are not streamed, in every dialect.
BODY_TYPE: Final = "application/json"
#: At least this many events are needed to judge how a response arrives.
MANY_EVENTS: Final = 6
#: A response with this many events in each read, on average, was probably buffered on the way.
BUNCH_EVENTS: Final = 4.0
#: This is judged only if the response took at least so many seconds.
BUNCHED_S: Final = 0.2
#: If a response arrives in one read after this many seconds, something held it back, or the model was thinking.
HELD_S: Final = 1.0
#: A response with more tokens than the requested maximum times this factor is too long; a smaller excess may be rounding.
OVER: Final = 1.5
_UNBUFFERED: Final = (
    "write and flush each event by itself; on the way, turn buffering off (nginx: proxy_buffering off, or the answer's "
    "header X-Accel-Buffering: no)"
)
_BOUND: Final = (
    "keep to the request's bound on tokens: users pay for what goes beyond. If the server knows it by another name, name a "
    "provider that does, too, for --dialect"
)
#: Kinds of repair for thinking or calls that a server left in the text instead of parsing them.
IN_TEXT: Final = ("thinking_in_text", "call_in_text")
_SEE: Final = "see the pages of repairs and field failures"
_REPAIRED: Final[Mapping[str, str]] = {
    "body_for_stream": "answer `stream: true` with a stream",
    "stream_for_body": "answer `stream: false` with one JSON object",
    "thinking_in_text": "give the thinking a member of its own; some servers need a parser named when they start",
    "call_in_text": "parse the calls of the model: no client runs this one; some servers need a parser named when they start",
}
#: Most characters shown of a server's error message.
SHOWN_CHARS: Final = 300


@frozen(kw_only=True)
class Finding:
    """A fault of a response that the grammar does not show."""

    rule: str
    severity: Severity
    message: str
    advice: str

    @classmethod
    def error(cls, rule: str, message: str, advice: str) -> Finding:
        return cls(rule=rule, severity="error", message=message, advice=advice)

    @classmethod
    def note(cls, rule: str, message: str, advice: str) -> Finding:
        return cls(rule=rule, severity="note", message=message, advice=advice)


def shown(message: str) -> str:
    """Return the beginning of a server's error message, since some servers repeat the whole request in their message."""
    return shortened(" ".join(message.split()), SHOWN_CHARS)


# -- the response to a malformed request ---------------------------------------------------------------------------------


def of_refusal(named: Dialect, failed: ProviderFailed, exchange: Exchange) -> Iterator[Finding]:
    """Yield the faults of an error response to a malformed request."""
    status = failed.http_status or 0
    if is_retryable(failed) or status >= 500:
        yield Finding.error(
            "bad_request",
            f"a request that can't be read was answered with status {status}, after which clients try again",
            "answer 400",
        )
    elif status != 400:
        yield Finding.note(
            "bad_request",
            f"a request that can't be read was answered with status {status}; the dialect's is 400",
            "answer 400: some clients take other statuses for faults of the server",
        )
    if named.errors is None:
        return
    body = exchange.recording.body
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or named.errors.decode(document, exchange.headers) is None:
        yield Finding.error(
            "error_form",
            f"the error is not in the dialect's form: {quoted(body)}",
            f"write errors as {named.title} does: clients show no reason otherwise",
        )


def advice_for(status: int, exchange: Exchange, *, keyed: bool) -> str:
    """Return advice for an error status in place of a response. ``keyed``: the request had an API key."""
    request = exchange.recording.request
    path = quoted(request.path) if request is not None else ""
    if 300 <= status < 400:
        return "redirects are not followed, since a key would go with them: give the address that it leads to"
    if status in {401, 403}:
        return "see whether this key is for this server" if keyed else "name a key: --key-env NAME or --key-file PATH"
    if status in {404, 405}:
        return (
            f"look at the model's name, and at the URL: {path} was asked, and some servers want /v1 in it, others not"
        )
    if status == 429:
        return "wait, then try again: nothing is sent twice by itself"
    return "look into the server's log" if status >= 500 else "see what the server does not take of a usual request"


# -- how a response arrived and ended ----------------------------------------------------------------------------------


def content_type_of(exchange: Exchange) -> str:
    """Return the media type of a response without its parameters; empty if there is none."""
    return exchange.headers.get("content-type", "").partition(";")[0].strip().lower()


def of_content_type(wanted: str, exchange: Exchange) -> Iterator[Finding]:
    """Yield an error if the content type is not the expected one."""
    is_type = content_type_of(exchange)
    if is_type != wanted:
        yield Finding.error(
            "content_type",
            f"the content type is {quoted(is_type)}" if is_type else "there is no content type",
            f"send `content-type: {wanted}`: clients choose by it how they read",
        )


def of_end(exchange: Exchange, *, whole: bool) -> Iterator[Finding]:
    """Yield an error if the body did not end as HTTP requires. ``whole``: its content was complete by then."""
    kind = exchange.recording.ending
    if kind == "client_left":
        yield Finding.error(
            "too_long",
            f"the answer is longer than its bound, and was left after {len(exchange.recording.body):,} bytes",
            _BOUND,
        )
    elif kind != "whole":
        yield Finding.error(
            "fault_after_end" if whole else "end",
            ("behind its end " if whole else "") + f"the answer ended with {kind}: {exchange.failed}",
            "end the body as HTTP says, behind the last event",
        )


def of_repair(kind: str) -> Finding:
    """Return an error finding for a kind of repair that is not visible in any single frame."""
    return Finding.error(kind, REPAIRS[kind], _REPAIRED.get(kind, _SEE))


def of_reads(reads: Sequence[Read], frames: int) -> Iterator[Finding]:
    """Yield a note if the events arrived in too few reads, as if something buffered them."""
    if frames < MANY_EVENTS or not reads:
        return
    lasted = reads[-1].t - reads[0].t
    if len(reads) == 1:
        waited = reads[0].t
        held = f"all {frames} events came in one read, {waited:.2f} s after the request: "
        yield Finding.note(
            "buffered",
            held
            + (
                "something on the way holds the answer back until it is whole, or the model was silent for so long"
                if waited >= HELD_S
                else "a buffer on the way does so, and so does a server that is faster than the network hands on"
            ),
            _UNBUFFERED,
        )
    elif lasted >= BUNCHED_S and frames >= BUNCH_EVENTS * len(reads):
        yield Finding.note(
            "buffered",
            f"{frames} events came in {len(reads)} reads over {lasted:.2f} s: a buffer on the way is filled and "
            "emptied, or the server writes several at once",
            _UNBUFFERED,
        )


# -- the content of a response -----------------------------------------------------------------------------------------


def of_what_it_says(probe: Probe, response: Response) -> Iterator[Finding]:
    """Yield the faults in a complete response's content: stop reason, tool calls and token counts."""
    choice = response.choices[0] if response.choices else None
    stop = choice.stop_reason if choice is not None else None
    has_output = choice is not None and bool(choice.text or choice.reasoning or choice.refusal or choice.tool_calls)
    if probe.length:
        within = response.usage is not None and response.usage.output_total in range(1, probe.bound)
        if stop != "length" and not within:
            yield Finding.error(
                "length",
                f"with a bound of {probe.bound} for a hundred words, the stop reason is {quoted(stop)}",
                "stop at the bound, and say so: who reads the answer takes it for whole otherwise",
            )
        yield from _of_usage(probe, response.usage, has_output=False)
        return
    if stop == "length":
        yield Finding.note(
            "bound",
            f"the answer stops at the bound of {probe.bound} tokens, so that what is behind it was not judged",
            "nothing; a model that thinks first needs more than is asked for here",
        )
    elif probe.calls == "none" and not has_output:
        yield Finding.error(
            "empty",
            "the answer says nothing, and stops as if it were whole",
            "see what the model made: its text may be in a member that the dialect does not have",
        )
    else:
        yield from _of_calls(probe, response)
    yield from _of_usage(probe, response.usage, has_output=has_output)


def _of_calls(probe: Probe, response: Response) -> Iterator[Finding]:
    calls = response.tool_calls
    wanted = {"none": 0, "one": 1, "required": 1, "two": 2}[probe.calls]
    if probe.calls == "required" and not calls:
        yield Finding.error(
            "forced",
            "a call is required, and none was made",
            "keep to the choice of a tool, or refuse it: agents wait for the call",
        )
    elif len(calls) < wanted:
        yield Finding.note(
            "calls",
            f"{len(calls)} of {wanted} calls were made: the model did not want to, or the server does not parse them",
            "see whether the call stands in the text; some servers need a parser of calls named when they start",
        )
    offered = {tool.name for tool in probe.request.tools}
    for call in calls:
        if call.verdict is None or call.verdict.kind not in {"complete", "empty"}:
            kind = "unchecked" if call.verdict is None else call.verdict.kind
            reason = "" if call.verdict is None or not call.verdict.reason else f" ({call.verdict.reason})"
            yield Finding.error(
                "arguments",
                f"the arguments of {quoted(call.name)} are {kind}{reason}: {quoted(call.arguments)}",
                "end a call with one whole JSON object",
            )
        if offered and call.name not in offered:
            yield Finding.error(
                "call_name",
                f"{quoted(call.name)} is called, which was not offered",
                "let the model call what is offered, by the name that it was given",
            )


def _of_usage(probe: Probe, usage: UsageReported | None, *, has_output: bool) -> Iterator[Finding]:
    if usage is None:
        if probe.usage:
            yield Finding.error(
                "usage",
                "no token counts came"
                + (", though they were asked for" if probe.request.stream_usage else ", which this dialect always has"),
                "send usage at the end: who pays by tokens counts none",
            )
        return
    wrong = []
    if usage.input_total == 0:
        wrong.append("0 tokens of input for a prompt of a sentence")
    if has_output and usage.output_total == 0:
        wrong.append("0 tokens of output for an answer that says something")
    parts = usage.input_total, usage.output_total
    if usage.total is not None and None not in parts and usage.total < max(part for part in parts if part is not None):
        wrong.append(f"{usage.total} tokens in all, fewer than {parts[0]} of input or {parts[1]} of output")
    for each in wrong:
        yield Finding.error(
            "usage",
            f"the token counts can't be: {each}",
            "leave a count out that is not known: 0 says that nothing was used",
        )
    if usage.output_total is not None and usage.output_total > OVER * probe.bound:
        yield Finding.error(
            "too_long", f"{usage.output_total} tokens of output, where {probe.bound} were the bound", _BOUND
        )


def of_difference(streamed: Response, whole: Response) -> Iterator[Finding]:
    """Yield the differences between a streamed and a whole response to the same request, except in their texts."""
    if streamed.model and whole.model and streamed.model != whole.model:
        yield Finding.note(
            "whole_model",
            f"the stream names the model {quoted(streamed.model)}, the whole answer {quoted(whole.model)}",
            "name one model in both",
        )
    counts = [answer.usage.input_total for answer in (streamed, whole) if answer.usage is not None]
    if len(counts) == 2 and None not in counts and counts[0] != counts[1]:
        yield Finding.note(
            "whole_usage",
            f"the same prompt counts {counts[0]} tokens in the stream, {counts[1]} in the whole answer",
            "count the same in both: users pay by it",
        )
