"""The requests of an examination, the limits of their cost, and how one is sent (``ask``).

Each probe requests one feature that servers often get wrong. The dialect's encoder writes the request. If a dialect cannot
express a probe, the plan omits it and says why.

A plan has at most ``MAX_REQUESTS`` requests and ``MAX_TOKENS`` tokens: the bound of each response, plus an estimate for each
body from its bytes without the model's name. Requests set no option except the bound, since some models refuse other options.

A response is kept as a recording: each read with its time, and the end. Redirects are not followed and proxies from the
environment are not used, so that no other host gets the request (``sending.py``). No request is repeated. The time of a read
is the time when the bytes arrived, since nothing else runs between two reads.

Source: observe.md O33, O34, F54.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import orjson
from aiohttp import ClientResponse, ClientSession
from attrs import evolve, frozen

from streamkit import __version__
from streamkit.conversation.messages import (
    Options,
    Part,
    Request,
    Response,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects import source_named
from streamkit.errors import BadRequest, SourceFailed, UsageError
from streamkit.lab.recording import End, Read, RecordedRequest, RecordedResponse, Recording, sha256_of
from streamkit.lab.recording.headers import kept_response_headers, kept_target
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.translation.bodies import encode_request
from streamkit.web.observers import CLIENT_LEFT, WHOLE, end_of
from streamkit.web.source import iter_upstream
from streamkit.web.token_counts import TOKEN_BYTES
from streamkit.web.upstream import Upstream, send
from streamkit.web.upstream.requests import address

MAX_REQUESTS: Final = 10
MAX_TOKENS: Final = 2000
#: The lowest maximum of output tokens that every server accepts. Some servers refuse a lower maximum, so the encoders of their
#: dialects raise it to this number.
LEAST_BOUND: Final = 16
#: The most tokens of a response that the follow-up request repeats as history. A longer response is not repeated.
OWN_TURN_TOKENS: Final = 160

#: How to send a request: unchanged; with a number in place of the conversation; or unchanged, leaving at the first read.
Way: TypeAlias = Literal["whole", "spoiled", "left"]
#: The expected tool calls: none is offered; one or two are likely; at least one is required.
Calls: TypeAlias = Literal["none", "one", "two", "required"]


@frozen(kw_only=True)
class Probe:
    """One request, and the expectations for its response."""

    name: str
    title: str  #: a description for the report
    request: Request
    way: Way = "whole"
    calls: Calls = "none"
    usage: bool = False  #: whether the response must have token counts
    #: whether the maximum of tokens is too low for the whole response, so that the server must stop at the maximum
    length: bool = False
    follows: str = ""  #: the name of the probe to whose tool calls this one gives results
    raised: bool = False  #: whether the dialect raised the maximum of tokens because it allows no lower maximum

    @property
    def streams(self) -> bool:
        return self.request.stream is True

    @property
    def bound(self) -> int:
        """The maximum of output tokens that the request sets."""
        bound = self.request.options.max_tokens or 0
        return max(bound, LEAST_BOUND) if self.raised else bound


@frozen(kw_only=True)
class Plan:
    """The probes of one dialect in order, and the omitted probes with the reason."""

    probes: tuple[Probe, ...]
    left_out: Mapping[str, str]
    prompt_tokens: int  #: estimated tokens of all requests together
    answer_tokens: int  #: the maxima of output tokens of all responses together

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.answer_tokens


_WEATHER: Final = Tool(
    name="get_weather",
    description="Look up the weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
_TIME: Final = evolve(_WEATHER, name="get_time", description="Look up the time in a city.")
_COUNT: Final = "Write the numbers from one to twelve in words, with commas."
_LONG: Final = "Write the numbers from one to one hundred in words, with commas."
_ONE_CITY: Final = "What is the weather in Bern? Call get_weather."
_BOTH: Final = "What is the weather in Bern, and what is the time there? Call get_weather and get_time, both now."
_RESULT: Final = "12 degrees, rain"  #: the result that doctor returns for any call of the tool
#: The tool call to put into the history before the result if the server made no call.
_CALL: Final = ToolCall(index=0, id="call_1", name=_WEATHER.name, arguments='{"city":"Bern"}')


def plan(dialect: str, model: str) -> Plan:
    """Return the probes for a server of ``dialect``, which may be a provider's name.

    Raises UsageError for an unknown name, for a dialect without a bound on responses, and if the limits would be exceeded.
    Raises BadRequest for a model that the dialect cannot request.
    """
    named, _ = source_named(dialect)
    if not named.answers_whole:
        raise UsageError(f"{named.name} has no limit on tokens: doctor examines only servers of models")
    on_request = named.usage_on_request
    probes = [
        _probe("text", "a text, streamed", model, _COUNT, 64, usage=not on_request),
        *([_probe("usage", "the same with usage", model, _COUNT, 64, usage=True, ask=True)] if on_request else ()),
        _probe("whole", "the same as a whole response", model, _COUNT, 64, usage=True, stream=False),
        _probe("tool", "a tool call", model, _ONE_CITY, 128, calls="one"),
        _probe("parallel", "two calls at once", model, _BOTH, 192, calls="two"),
        _probe("forced", "a call that is required", model, _COUNT, 128, calls="required"),
        _result(model),
        _probe("length", "more than its token limit allows", model, _LONG, 1, length=True),
        _probe("cancel", "a response that is abandoned at its first read", model, _LONG, 128, way="left"),
        _probe("bad", "a malformed request", model, _COUNT, 16, way="spoiled"),
    ]
    kept: list[Probe] = []
    left_out: dict[str, str] = {}
    prompt_tokens = 0
    for probe in probes:
        report = StreamReport()
        try:
            prompt_tokens += tokens_of(body_of(probe, dialect, report=report), model)
        except BadRequest as error:
            if probe.calls == "none":
                raise
            left_out[probe.name] = str(error)
        else:
            kept.append(evolve(probe, raised=("parameter", "max_tokens") in report.lost))
    prompt_tokens += OWN_TURN_TOKENS
    answers = sum(probe.bound for probe in kept if probe.way != "spoiled")
    made = Plan(probes=tuple(kept), left_out=left_out, prompt_tokens=prompt_tokens, answer_tokens=answers)
    if len(made.probes) > MAX_REQUESTS or made.tokens > MAX_TOKENS:  # a dialect from a plugin may need larger bodies
        raise UsageError(f"{named.name} would need {len(made.probes)} requests and {made.tokens:,} tokens: too many")
    return made


def body_of(probe: Probe, dialect: str, *, report: StreamReport | None = None) -> bytes:
    """Return a request's body. ``report`` gets its losses. Raises BadRequest if the dialect cannot express the request."""
    body = encode_request(probe.request, dialect, report=report)
    return _spoiled(body) if probe.way == "spoiled" else body


def tokens_of(body: bytes, model: str) -> int:
    """Estimate the tokens of a body without the model's name. The estimate is high, as it counts JSON names and marks."""
    name = orjson.dumps(model)
    return math.ceil((len(body) - (len(name) if name in body else 0)) / TOKEN_BYTES)


def with_calls(probe: Probe, response: Response) -> Probe:
    """Return the probe with the server's own turn in its request, and a result for each of its calls.

    Return ``probe`` unchanged if there is no call, or if a call is incomplete.
    """
    calls = response.tool_calls
    if not calls or not all(call.verdict is not None and call.verdict.kind == "complete" for call in calls):
        return probe
    return evolve(probe, request=evolve(probe.request, turns=_turns(response.choices[0].parts, calls)))


def _turns(parts: Sequence[Part], calls: Sequence[ToolCall]) -> list[Turn]:
    results: list[Part] = [ToolResult(call.id, [Text(_RESULT)], call.name) for call in calls]
    return [Turn("user", [Text(_ONE_CITY)]), Turn("assistant", list(parts)), Turn("user", results)]


def _result(model: str) -> Probe:
    """Return the probe with a tool's result. It refers to ``_CALL``, unless ``with_calls`` finds a call of the server."""
    asked = _probe("result", "a response to a tool's result", model, _ONE_CITY, 96)
    request = evolve(asked.request, turns=_turns([_CALL], [_CALL]), tools=[_WEATHER])
    return evolve(asked, request=request, follows="tool")


def _probe(
    name: str,
    title: str,
    model: str,
    text: str,
    bound: int,
    *,
    stream: bool = True,
    ask: bool = False,
    way: Way = "whole",
    calls: Calls = "none",
    usage: bool = False,
    length: bool = False,
) -> Probe:
    request = Request(
        dialect="",  # no client's dialect: each encoder adapts the request
        model=model,
        turns=[Turn("user", [Text(text)])],
        tools=[] if calls == "none" else [_WEATHER, _TIME] if calls == "two" else [_WEATHER],
        tool_choice=ToolChoice("required", (_WEATHER.name,)) if calls == "required" else None,
        options=Options(max_tokens=bound),
        stream=stream,
        stream_usage=True if ask else None,
    )
    return Probe(name=name, title=title, request=request, way=way, calls=calls, usage=usage, length=length)


def _spoiled(body: bytes) -> bytes:
    """Return a body with a number in place of the conversation, which every server must refuse as invalid."""
    members: dict[str, Any] = orjson.loads(body)
    return orjson.dumps({name: 0 if _COUNT in str(value) else value for name, value in members.items()})


# -- sending a request -------------------------------------------------------------------------------------------------


#: Limits of a response, in case a server ignores the requested bound: events for each token, additional events for the start
#: and end of a stream, and bytes. A longer response is abandoned. A token has about four characters, an event at least one.
TOKEN_EVENTS, MORE_EVENTS, ANSWER_BYTES = 4, 64, 512 * 1024


@frozen(kw_only=True)
class Exchange:
    """The result of a request. ``failed`` and ``headers`` go into the report only, and are not kept on disk."""

    recording: Recording
    headers: Mapping[str, str]  #: all headers of the response, with names in lower case
    failed: SourceFailed | None = None  #: why the response is missing or incomplete; None: it is complete


async def ask(
    session: ClientSession,
    upstream: Upstream,
    body: bytes,
    *,
    model: str,
    stream: bool,
    bound: int,
    leave: bool = False,
) -> Exchange:
    """Send one request and read its response. Stop reading when the response is too long for ``bound`` tokens.

    With ``leave``, close the connection after the first read.

    Raises BadRequest for a model name that cannot be part of a path, and SourceFailed if credentials are missing.
    """
    loop = asyncio.get_running_loop()
    at, started = datetime.now(UTC), loop.time()
    reads: list[Read] = []
    headers: dict[str, str] = {}
    removed = ["request.headers"]
    response_line: RecordedResponse | None = None
    failed: SourceFailed | None = None
    try:
        response = await send(session, upstream, body, model=model, stream=stream)
        headers = {name.lower(): value for name, value in response.headers.items()}
        kept, some_left_out = kept_response_headers(response.headers.items())
        removed += ["response.headers"] if some_left_out else []
        response_line = RecordedResponse(t=loop.time() - started, status=response.status, headers=kept)
        kind = await _read(response, upstream, started, reads, 0 if leave else bound)
    except SourceFailed as error:
        failed, kind = error, end_of(error, answered=response_line is not None)
    path, _ = kept_target(address(upstream, model, stream=stream).raw_path_qs)
    recording = Recording(
        id=random_id("doctor_"),
        at=at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        streamkit=__version__,
        dialect=upstream.wire.name,
        provider="" if upstream.provider is None else upstream.provider.name,
        removed=tuple(removed),
        request=RecordedRequest(path=path, body=body, body_sha256=sha256_of(body)),
        response=response_line,
        reads=tuple(reads),
        end=End.of(reads, kind=kind, t=loop.time() - started),
    )
    return Exchange(recording=recording, headers=headers, failed=failed)


async def _read(response: ClientResponse, upstream: Upstream, started: float, reads: list[Read], bound: int) -> str:
    """Read the response and return its ``End.kind``, unless an error is raised. With bound 0, stop after the first read."""
    loop = asyncio.get_running_loop()
    parser = upstream.wire.parser(DEFAULT_LIMITS, StreamReport())
    events = size = 0
    source = iter_upstream(response, timeouts=upstream.timeouts, started=started)
    try:
        async for chunk in source:
            reads.append(Read(loop.time() - started, chunk))
            size += len(chunk)
            events += len(parser.feed(chunk))
            if not bound or events > bound * TOKEN_EVENTS + MORE_EVENTS or size > ANSWER_BYTES:
                return CLIENT_LEFT
    finally:
        await source.aclose()
    return WHOLE
