"""Read and write whole bodies: translate requests and responses of any dialect to the neutral conversation and back.

Requests go from a client to a provider, and responses from a provider to a client. Every function takes the name of a dialect,
or of a client or provider that speaks it. A request that can't be read raises ``BadRequest`` with the path to the fault,
because the client's program can be fixed. A provider can't be fixed, so a response is read as a stream is: it becomes the
same wire events, which are accumulated and checked.

Source: design.md §5, §8 (the functions); seeds.md S1, S2, S3 (failures in the field).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, get_args

import orjson
from attrs import evolve

from streamkit.conversation.checks import (
    REPAIRED,
    check_pairing,
    check_tools,
    drop_repeats,
    refuse_tools,
    repair_pairing,
)
from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Media, Request, Response, ToolResult, Unreadable
from streamkit.dialects import client_named, source_named
from streamkit.dialects.base import Bodies, Dialect
from streamkit.dialects.bodies.google import is_own_uri
from streamkit.dialects.members.fields import fields_of
from streamkit.dialects.profiles import DEFAULT_MAX_TOKENS, Encoding, Prefill, Profile, Target, report_for
from streamkit.dialects.streams.carrier import carried
from streamkit.dialects.vocabulary.model_names import check_model_like
from streamkit.errors import BadRequest, StreamError, UsageError, check_type, check_whole, check_words
from streamkit.in_text import checked_stages
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Chain
from streamkit.policy import AssistantFirst, AssistantLast, CacheMarks, LinkedMedia
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions, check_options
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.text.quoting import redacted
from streamkit.translation.cache_marks import has_marks
from streamkit.translation.changes import Change
from streamkit.translation.lowering import lower

log = logging.getLogger("streamkit.translation.bodies")
_FIRST, _LAST, _LINKED, _CACHE = map(get_args, (AssistantFirst, AssistantLast, LinkedMedia, CacheMarks))


def decode_request(body: bytes, dialect: str, *, report: StreamReport | None = None) -> Request:
    """Read a request that a client of ``dialect`` sent.

    Raises BadRequest if the body is invalid, and UsageError for an unknown name.
    """
    named, _ = client_named(dialect)
    _check_body(body)
    report = report if report is not None else StreamReport()
    return _bodies_of(named).decode_request(fields_of(body, report), report)


def encode_request(
    request: Request,
    dialect: str,
    *,
    repair: bool = False,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    emulate: bool = False,
    assistant_first: AssistantFirst = "bridge",
    assistant_last: AssistantLast = "bridge",
    linked_media: LinkedMedia = "refuse",
    model_like: str | None = None,
    prefill: Prefill | None = None,
    cache: CacheMarks = "off",
    changes: Sequence[Change] = (),
    report: StreamReport | None = None,
) -> bytes:
    """Write a request as a body of ``dialect``. ``dialect`` is the name of a dialect or of a known provider.

    Every tool call must have a result, and every result must belong to a call. Otherwise, the function raises
    BadRequest, and the error names the turn and the id. With ``repair=True``, the function adds missing results and
    drops results without a call, and counts each repair. If ``request`` comes from another dialect and ``dialect``
    would refuse some of its tools, BadRequest lists all of these tools. If the dialects are the same, tools are not
    checked; call ``check_tools`` to check them. If the request has a part that only another provider can read,
    BadRequest says what to send instead. Such parts are in ``Request.unreadable``, or are media in the provider's
    store; ``drop_unreadable`` drops them. Any other content that the dialect can't express is counted as a loss.

    * ``max_tokens`` is the limit to write if the dialect requires a limit and the request has none.
    * With ``emulate=True``, features that the dialect lacks are imitated where possible, instead of being refused.
    * ``assistant_first`` says what to do with a conversation that begins with an assistant turn, if the dialect refuses
      such a conversation. ``bridge`` adds a short user turn before the assistant turn, and ``refuse`` raises
      BadRequest.
    * ``assistant_last`` says what to do with a conversation that ends with an assistant's text, if the model does not
      continue such a text. ``bridge`` adds a short user turn after the text, and ``refuse`` raises BadRequest.
    * ``linked_media`` says what to do with media that are given by a URL in a place where the dialect accepts no URL.
      ``refuse`` raises BadRequest, and ``drop`` drops the media and counts them as lost.
    * ``model_like`` is the name of a known model that accepts the same requests. Use ``model_like`` if the request's model
      has a name that does not identify the model, such as the name of an Azure deployment.
    * ``prefill`` says how to ask the provider to continue the last assistant turn (``prefill_of`` returns the value). If the
      model can't continue a turn, BadRequest is raised.
    * With ``cache="auto"``, cache marks are added to the prompt if the provider needs such marks and the request has none.
    * ``changes`` are applied to the written body, in order (``translation.changes``).

    Raises BadRequest, and UsageError for an unknown name.
    """
    named, provider = source_named(dialect)
    bodies = _bodies_of(named)
    check_type("request", request, Request, "decode_request(body, dialect)")
    check_whole("max_tokens", max_tokens, 1)
    check_words("assistant_first", [assistant_first], _FIRST)
    check_words("assistant_last", [assistant_last], _LAST)
    check_words("linked_media", [linked_media], _LINKED)
    check_words("cache", [cache], _CACHE)
    check_model_like(model_like)
    report = report if report is not None else StreamReport()
    is_foreign = request.dialect != named.name
    if is_foreign:
        request = drop_repeats(_in_effect(request), report)
    if repair:
        request = repair_pairing(request, report)
    else:
        check_pairing(request)
    elsewhere = _elsewhere(request) if is_foreign else []
    stored = [_by_reference(media) for media in _stored(elsewhere, request, named)]
    for each in (*request.unreadable, *stored):
        if each.reader != named.name:
            what = f"{named.name} cannot read {each.what}, which only another provider can"
            raise BadRequest(each.path, f"{what}; {each.instead}, or set unreadable to 'drop'")
    if elsewhere:
        request = _reachable(request, named, linked_media, report)
    if is_foreign and request.tools:  # within one dialect, the provider judges what its clients define
        refuse_tools([found for found in check_tools(request.tools, named.tools) if found.rule not in REPAIRED])
    target = Target(
        provider=provider,
        max_tokens=max_tokens,
        emulate=emulate,
        assistant_first=assistant_first,
        assistant_last=assistant_last if prefill is None else "refuse",
        model_like=model_like,
        cache=cache == "auto" and not has_marks(request),
    )
    if bodies.capabilities is not None:
        request = lower(request, bodies.capabilities, target, report)
    body = bodies.encode_request(request, target, report)
    if prefill is not None:
        prefill.add_to(body)
    for change in changes:
        body = change.apply(body, report)
    return orjson.dumps(body)


def _in_effect(request: Request) -> Request:
    """Return a request for another dialect, which has no items that define tools, withdraw them or change options.

    So the request itself has the tools and the options that are in effect at the end of the conversation.
    """
    if not request.updates and not any(tool.loaded or tool.withdrawn for tool in request.tools):
        return request
    tools = [evolve(tool, loaded=False) for tool in request.tools if not tool.withdrawn]
    return evolve(request, tools=tools, options=evolve(request.options, **request.updates), updates={})


def drop_unreadable(request: Request, dialect: str, *, report: StreamReport | None = None) -> Request:
    """Return the request without the parts that no provider of ``dialect`` can read, so that ``encode_request`` accepts
    the request.

    Media are removed from the request, and counted as lost in ``report``. Other parts are removed only from
    ``Request.unreadable``: ``encode_request`` then drops these parts and counts them as lost. Raises UsageError for an
    unknown name.
    """
    named, _ = source_named(dialect)
    kept = [each for each in request.unreadable if each.reader == named.name]
    report = report if report is not None else StreamReport()
    stored = _stored(_elsewhere(request), request, named) if request.dialect != named.name else []
    return evolve(_without_media(request, stored, report), unreadable=kept)


def _stored(elsewhere: Sequence[tuple[Media, str]], request: Request, dialect: Dialect) -> list[Media]:
    """Return those media of another dialect's request that are in a vendor's store, where the dialect can't read them."""
    return [
        media
        for media, place in elsewhere
        if place != "assistant" and not _is_linked(media) and not dialect.reads_stored(media, request.dialect)
    ]


def _by_reference(media: Media) -> Unreadable:
    article = "an" if media.kind in {"image", "audio"} else "a"
    where = "at a URL of a provider's store" if media.url else "by its id"
    return Unreadable(f"{article} {media.kind} {where}", "send its bytes", media.place or "messages")


def _reachable(request: Request, dialect: Dialect, linked_media: LinkedMedia, report: StreamReport) -> Request:
    """Return the request without media at a URL that the dialect can't read. Each is a loss.

    If ``linked_media`` is ``refuse``, raises BadRequest for the first one instead.
    """
    linked = linked_in(request, dialect)
    if linked_media == "refuse" and linked:
        instead = "send its bytes, or set linked_media to 'drop' (in a gateway, also 'fetch')"
        fault = f"{dialect.name} does not accept {linked[0].kind} input at a URL; {instead}"
        raise BadRequest(linked[0].place or "messages", fault)
    return _without_media(request, linked, report)


def _without_media(request: Request, dropped: Sequence[Media], report: StreamReport) -> Request:
    """Return the request without the media ``dropped``, each of which is a loss."""
    for media in dropped:
        report.lose("media", what=media.media_type or media.kind)
    ids = {id(media) for media in dropped}
    return (
        evolve(request, turns=[evolve(turn, parts=_without(turn.parts, ids)) for turn in request.turns])
        if ids
        else request
    )


def _without(parts: Sequence[Any], dropped: Collection[int]) -> list[Any]:
    """Return the parts whose ``id()`` is not in ``dropped``. Parts inside tool results are filtered in the same way."""
    kept = (part for part in parts if id(part) not in dropped)
    return [
        evolve(part, parts=_without(part.parts, dropped)) if isinstance(part, ToolResult) else part for part in kept
    ]


def linked_in(request: Request, dialect: Dialect) -> list[Media]:
    """Return the media at web URLs whose bytes the dialect needs in the request; none for a request of the same dialect."""
    if request.dialect == dialect.name:
        return []
    found = _elsewhere(request)
    return [media for media, place in found if _is_linked(media) and dialect.wants_bytes(media, place == "result")]


def _elsewhere(request: Request) -> list[tuple[Media, str]]:
    """Return the media given by URL or file id, each with the role of its turn, or ``result`` if a tool returned it."""
    return [
        (each, turn.role if each is part else "result")
        for turn in request.turns
        for part in turn.parts
        for each in (part.parts if isinstance(part, ToolResult) else (part,))
        if isinstance(each, Media) and each.data is None and (each.url or each.file_id)
    ]


def _is_linked(media: Media) -> bool:
    """Return whether media are at a web URL, and not in a vendor's store."""
    return (media.url or "").startswith(("http:", "https:")) and not is_own_uri(media.url)


def decode_response(
    body: bytes, dialect: str, options: ReadOptions = DEFAULT_OPTIONS, *, report: StreamReport | None = None
) -> Response:
    """Read a whole response, and return a ``Response`` with verdicts, usage and a report. ``dialect`` is the name of a
    dialect or of a provider.

    An error body raises no exception: ``Response.error`` has the provider's error, and ``clean`` is False. If the
    logger ``streamkit.translation.bodies`` is at debug level, it logs the body, without any text that looks like a
    secret. Raises NotThisDialect for a body of another dialect, other subclasses of ``StreamError`` for a body that
    can't be read, and UsageError for an unknown name.
    """
    named, provider = source_named(dialect)
    _check_body(body)
    check_options(options)
    bodies, limits = _bodies_of(named), options.limits
    report = report_for(provider, report)
    report.bytes_in += len(body)
    report.frames += 1
    if log.isEnabledFor(logging.DEBUG):
        log.debug("response of %s, %d bytes: %s", dialect, len(body), redacted(body))
    reading = Chain(*(stage.make(report) for stage in checked_stages(options, provider)))
    collector = Collector(named.name, report, limits)
    try:
        for events in reading.feed(bodies.decode_response(body, limits, report)), reading.finish():
            if reading.fault is not None:
                raise reading.fault
            collector.feed(events)
    except StreamError as error:
        report.failed(error)
        raise
    return collector.finish()


def encode_response(
    response: Response,
    dialect: str,
    *,
    profile: Profile | None = None,
    limits: Limits = DEFAULT_LIMITS,
    report: StreamReport | None = None,
    make_id: Callable[[str], str] = random_id,
    clock: Callable[[], float] = time.time,
) -> bytes:
    """Write a whole response as a body of ``dialect``. ``dialect`` is the name of a dialect or of a known client.

    The default of ``profile`` is the profile of the named client. A response that is not ``clean`` is written as the
    dialect's error body, never as a success. Losses are counted in ``report``, or by default in the response's report.
    Raises UsageError for an unknown name.
    """
    named, client = client_named(dialect)
    check_type("response", response, Response, "decode_response(body, dialect) or await collect(source, dialect)")
    write = _bodies_of(named).encode_response
    if write is None:
        raise UsageError(f"{named.name} has no whole responses: its responses are always streams")
    encoding = Encoding(limits=limits, profile=profile or client, make_id=make_id, clock=clock)
    report = report if report is not None else response.report
    one_text = bool(getattr(named.encoder, "one_text", False))
    response = carried(response, named.name, limits, report, one_text=one_text)
    return orjson.dumps(write(response, encoding, report))


def _check_body(body: object) -> None:
    if not isinstance(body, bytes | bytearray):
        check_type("the body", body, bytes, "body.encode()" if isinstance(body, str) else "json.dumps(body).encode()")


def _bodies_of(dialect: Dialect) -> Bodies:
    if dialect.bodies is None:
        raise UsageError(f"{dialect.name} has no requests or whole responses in streamkit, only streams")
    return dialect.bodies
