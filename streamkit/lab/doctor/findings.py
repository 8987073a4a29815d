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
from streamkit.lab.doctor.probes import Exchange, Probe
from streamkit.lab.recording import Read
from streamkit.report import REPAIRS
from streamkit.text.quoting import quoted, shortened

Severity: TypeAlias = Literal["error", "note"]
#: The media type of errors and of responses that are not streamed, in every dialect.
BODY_TYPE: Final = "application/json"
MANY_EVENTS: Final = 6  #: at least this many events are needed to judge how a response arrives
#: A response with this many events in each read, on average, was probably buffered on the way.
BUNCH_EVENTS: Final = 4.0
BUNCHED_S: Final = 0.2  #: the least seconds of a response for which this is judged
#: If a response arrives in one read after this many seconds, something held it back, or the model was thinking.
HELD_S: Final = 1.0
#: A response with more tokens than the requested maximum times this factor is too long; a smaller excess may be rounding.
OVER: Final = 1.5
#: Kinds of repair for thinking or calls that a server left in the text instead of parsing them.
IN_TEXT: Final = ("thinking_in_text", "call_in_text")
#: The advice for each rule whose findings have the same advice. The names of repairs are rules, too.
ADVICE: Final[Mapping[str, str]] = {
    "arguments": "end a call with one complete JSON object",
    "body_for_stream": "respond to `stream: true` with a stream",
    "bound": "nothing; a model that reasons first needs more tokens than this request allows",
    "buffered": "write and flush each event separately, and turn off buffering on the way (nginx: proxy_buffering off, or the "
    "response header X-Accel-Buffering: no)",
    "call_in_text": "parse the model's calls, because no client runs this one; some servers need a parser for calls",
    "call_name": "let the model call only offered tools, by their exact names",
    "calls": "check whether the call is in the text; some servers need a parser for calls",
    "dialect": "name the dialect that the server uses",
    "empty": "check the model's output: its text may be in a member that the dialect does not have",
    "end": "end the body as HTTP requires, after the last event",
    "error": "read the server's log",
    "fault_after_end": "end the body as HTTP requires, after the last event",
    "forced": "follow the tool choice, or refuse the request, because agents wait for the call",
    "length": "stop at the limit and report it, because clients otherwise take the response for complete",
    "no_answer": "check that the server is running, and that scheme, host and port of the URL are right",
    "stream_for_body": "respond to `stream: false` with one JSON object",
    "thinking_in_text": "put the reasoning into its own member; some servers need a parser for reasoning",
    "too_long": "follow the request's token limit, because users pay for more. If the server has another name for it, name a "
    "provider with that name in --dialect",
    "usage": "send token counts at the end, because users who pay by tokens otherwise count none",
    "whole": "respond to `stream: false` with one complete JSON object, and to errors with their status",
    "whole_model": "name the same model in both",
    "whole_usage": "count the same tokens in both, because users pay for them",
}
SHOWN_CHARS: Final = 300  #: most characters shown of a server's error message


@frozen(kw_only=True)
class Finding:
    """A fault of a response that the grammar does not show."""

    rule: str
    severity: Severity
    message: str
    advice: str


def error(rule: str, message: str, advice: str = "") -> Finding:
    """Return an error, by default with the advice of its rule."""
    return Finding(rule=rule, severity="error", message=message, advice=advice or ADVICE[rule])


def note(rule: str, message: str, advice: str = "") -> Finding:
    """Return a note, by default with the advice of its rule."""
    return Finding(rule=rule, severity="note", message=message, advice=advice or ADVICE[rule])


def shown(message: str) -> str:
    """Return the beginning of a server's error message, since some servers repeat the whole request in their message."""
    return shortened(" ".join(message.split()), SHOWN_CHARS)


# -- the response to a malformed request ---------------------------------------------------------------------------------


def of_refusal(named: Dialect, failed: ProviderFailed, exchange: Exchange) -> Iterator[Finding]:
    """Yield the faults of an error response to a malformed request."""
    status = failed.http_status or 0
    if is_retryable(failed) or status >= 500:
        message = f"the response to a malformed request has status {status}, after which clients retry"
        yield error("bad_request", message, "respond with status 400")
    elif status != 400:
        message = f"the response to a malformed request has status {status}; the dialect's is 400"
        yield note("bad_request", message, "respond with 400: some clients take other statuses for server faults")
    if named.errors is None:
        return
    body = exchange.recording.body
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or named.errors.decode(document, exchange.headers) is None:
        message = f"the error does not have the dialect's form: {quoted(body)}"
        yield error("error_form", message, f"write errors as {named.title} does; clients show no reason otherwise")


def advice_for(status: int, exchange: Exchange, *, keyed: bool) -> str:
    """Return advice for an error status in place of a response. ``keyed``: the request had an API key."""
    request = exchange.recording.request
    path = quoted(request.path) if request is not None else ""
    if 300 <= status < 400:
        return "redirects are not followed, because the key would go with them: give the final address"
    if status in {401, 403}:
        return "check that this key is for this server" if keyed else "name a key: --key-env NAME or --key-file PATH"
    if status in {404, 405}:
        return f"check the model's name and the URL: {path} was requested, and only some servers want /v1 in it"
    if status == 429:
        return "wait, then try again: doctor never retries a request"
    return "read the server's log" if status >= 500 else "see which part of a usual request the server refuses"


# -- how a response arrived and ended ----------------------------------------------------------------------------------


def content_type_of(exchange: Exchange) -> str:
    """Return the media type of a response without its parameters; empty if there is none."""
    return exchange.headers.get("content-type", "").partition(";")[0].strip().lower()


def of_content_type(wanted: str, exchange: Exchange) -> Iterator[Finding]:
    """Yield an error if the content type is not the expected one."""
    is_type = content_type_of(exchange)
    if is_type != wanted:
        message = f"the content type is {quoted(is_type)}" if is_type else "the response has no content type"
        yield error("content_type", message, f"send `content-type: {wanted}`, by which clients choose how to read")


def of_end(exchange: Exchange, *, whole: bool) -> Iterator[Finding]:
    """Yield an error if the body did not end as HTTP requires. ``whole``: its content was complete by then."""
    kind = exchange.recording.ending
    if kind == "client_left":
        size = len(exchange.recording.body)
        yield error("too_long", f"the response exceeds its token limit; doctor disconnected after {size:,} bytes")
    elif kind != "whole":
        when = " after its last event" if whole else ""
        yield error("fault_after_end" if whole else "end", f"the response ended with {kind}{when}: {exchange.failed}")


def of_repair(kind: str) -> Finding:
    """Return an error finding for a kind of repair that is not visible in any single frame."""
    return error(kind, REPAIRS[kind], ADVICE.get(kind, "see the pages of repairs and field failures"))


def of_reads(reads: Sequence[Read], frames: int) -> Iterator[Finding]:
    """Yield a note if the events arrived in too few reads, as if something buffered them."""
    if frames < MANY_EVENTS or not reads:
        return
    lasted = reads[-1].t - reads[0].t
    if len(reads) == 1:
        waited = reads[0].t
        cause = (
            "something on the way holds the response back until it is complete, or the model was silent for so long"
            if waited >= HELD_S
            else "a buffer on the way joins them, or the server is faster than the network"
        )
        yield note("buffered", f"all {frames} events came in one read, {waited:.2f} s after the request: {cause}")
    elif lasted >= BUNCHED_S and frames >= BUNCH_EVENTS * len(reads):
        came = f"{frames} events came in {len(reads)} reads over {lasted:.2f} s"
        yield note("buffered", f"{came}: a buffer on the way joins them, or the server writes several at once")


# -- the content of a response -----------------------------------------------------------------------------------------


def of_what_it_says(probe: Probe, response: Response) -> Iterator[Finding]:
    """Yield the faults in a complete response's content: stop reason, tool calls and token counts."""
    choice = response.choices[0] if response.choices else None
    stop = choice.stop_reason if choice is not None else None
    has_output = choice is not None and bool(choice.text or choice.reasoning or choice.refusal or choice.tool_calls)
    if probe.length:
        within = response.usage is not None and response.usage.output_total in range(1, probe.bound)
        if stop != "length" and not within:
            yield error("length", f"the stop reason is {quoted(stop)} for a hundred words with limit {probe.bound}")
        yield from _of_usage(probe, response.usage, has_output=False)
        return
    if stop == "length" and not response.report.repairs["stop_conflict"]:  # else the server says that it is whole
        yield note("bound", f"the response stops at its limit of {probe.bound} tokens, so its content was not judged")
    elif probe.calls == "none" and not has_output:
        yield error("empty", "the response has no content, but stops as if it were complete")
    else:
        yield from _of_calls(probe, response)
    yield from _of_usage(probe, response.usage, has_output=has_output)


def _of_calls(probe: Probe, response: Response) -> Iterator[Finding]:
    calls = response.tool_calls
    wanted = {"none": 0, "one": 1, "required": 1, "two": 2}[probe.calls]
    if probe.calls == "required" and not calls:
        yield error("forced", "the request requires a call, and the response has none")
    elif len(calls) < wanted:
        cause = "the model made no more, or the server does not parse them"
        yield note("calls", f"the response has {len(calls)} of {wanted} requested calls: {cause}")
    offered = {tool.name for tool in probe.request.tools}
    for call in calls:
        if call.verdict is None or not call.verdict.ok:
            kind = "unchecked" if call.verdict is None else call.verdict.kind
            reason = "" if call.verdict is None or not call.verdict.reason else f" ({call.verdict.reason})"
            yield error("arguments", f"arguments of {quoted(call.name)} are {kind}{reason}: {quoted(call.arguments)}")
        if offered and call.name not in offered:
            yield error("call_name", f"the response calls {quoted(call.name)}, which the request does not offer")


def _of_usage(probe: Probe, usage: UsageReported | None, *, has_output: bool) -> Iterator[Finding]:
    if usage is None:
        if probe.usage:
            why = "the request asked for them" if probe.request.stream_usage else "this dialect always has them"
            yield error("usage", f"the response has no token counts, although {why}")
        return
    wrong = []
    if usage.input_total == 0:
        wrong.append("0 input tokens for a prompt of one sentence")
    if has_output and usage.output_total == 0:
        wrong.append("0 output tokens for a response with content")
    parts = usage.input_total, usage.output_total
    if usage.total is not None and None not in parts and usage.total < max(part for part in parts if part is not None):
        wrong.append(f"{usage.total} tokens in all, fewer than {parts[0]} input or {parts[1]} output tokens")
    for each in wrong:
        yield error("usage", f"impossible token counts: {each}", "leave out a count that is unknown: 0 means no tokens")
    if usage.output_total is not None and usage.output_total > OVER * probe.bound:
        yield error("too_long", f"the response has {usage.output_total} output tokens, and its limit was {probe.bound}")


def of_difference(streamed: Response, whole: Response) -> Iterator[Finding]:
    """Yield the differences between a streamed and a whole response to the same request, except in their texts."""
    if streamed.model and whole.model and streamed.model != whole.model:
        names = f"the stream names the model {quoted(streamed.model)}, the whole response {quoted(whole.model)}"
        yield note("whole_model", names)
    counts = [answer.usage.input_total for answer in (streamed, whole) if answer.usage is not None]
    if len(counts) == 2 and None not in counts and counts[0] != counts[1]:
        tokens = f"{counts[0]} tokens in the stream, {counts[1]} in the whole response"
        yield note("whole_usage", f"the same prompt counts {tokens}")
