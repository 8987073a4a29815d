"""Stage order, in one place: bytes of one dialect to bytes of another, and bytes to a whole response."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Response, Tool
from streamkit.conversation.restore import ToolNames, restore_tools
from streamkit.dialects import client_named, decode, encode, source_named
from streamkit.dialects.profiles import Encoding, Profile, under
from streamkit.dialects.streams.encode_stage import EncodeStage
from streamkit.errors import StreamError
from streamkit.events import Event
from streamkit.framing.frame import Frame
from streamkit.in_text import in_text_stages
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Pipe, Stage, StageFunction, pipe
from streamkit.policy import TOLERANT, Policy
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.tool_calls.accumulate import accumulate_tool_calls
from streamkit.tool_calls.check import check_json
from streamkit.tool_calls.schema import Tools, compiled
from streamkit.translation.citations import carries, carry_citations
from streamkit.translation.pass_through import PASSES, PassThrough
from streamkit.translation.web_searches import carries_searches, carry_searches


def events_of(
    source: AsyncIterable[bytes],
    dialect: str,
    *,
    limits: Limits = DEFAULT_LIMITS,
    policy: Policy = TOLERANT,
    tools: Tools | None = None,
    offered: Sequence[Tool] = (),
    report: StreamReport | None = None,
    join: bool = False,
    make_id: Callable[[str], str] = random_id,
) -> Pipe[list[Event]]:
    """Bytes of a dialect as checked events: the pipe that ``collect`` and ``inspect`` read. ``join`` as in ``transcode``."""
    provider = source_named(dialect)[1]
    stages: list[StageFunction[Any, Any]] = [
        parse(dialect, limits=limits),
        decode(dialect, limits=limits),
        *in_text_stages(policy, provider, tools=offered or tools, limits=limits),
        accumulate_tool_calls(limits=limits, policy=policy, make_id=make_id, join=join),
        check_json(limits=limits, tools=tools),
    ]
    return Pipe(source, tuple(stages), under(policy, report, provider))


def parse(dialect: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, list[Frame]]:
    """The framing stage of a dialect, with the tolerances that its providers need."""
    named, _ = source_named(dialect)
    return Stage(f"parse {dialect}", lambda report: named.parser(limits, report))


def transcode(
    source: AsyncIterable[bytes],
    from_dialect: str,
    to_dialect: str,
    *,
    limits: Limits = DEFAULT_LIMITS,
    policy: Policy = TOLERANT,
    tools: Tools | None = None,
    report: StreamReport | None = None,
    profile: Profile | None = None,
    reencode: bool = False,
    join: bool = True,
    offered: Sequence[Tool] = (),
    make_id: Callable[[str], str] = random_id,
    clock: Callable[[], float] = time.time,
) -> Pipe[bytes]:
    """The whole recipe: bytes of one dialect in, bytes of another out.

    Either name is a dialect's, a provider's (``"deepseek"``) or a client's (``"claude-code"``). Within one dialect the frames
    pass byte for byte while they are watched for the report, but for usage that ``profile`` did not ask for and a model
    that is not named where ``profile`` has one; ``reencode=True``, or a profile that changes what is written,
    decodes and encodes them all the same, which mends what the provider broke; so does a policy that reads what stands in the
    text (``think_tags="on"``, ``text_calls``). What one read brought of one block or call
    leaves as one delta, which costs everybody less and holds nothing back; ``join=False`` keeps the provider's own deltas.
    ``policy`` says what is tolerated, ``profile`` varies what is written and is the client's by default; ``tools`` are the
    request's, for the verdicts in the report (extra ``schema``). ``offered`` are the tools as the client offered them
    (``Request.tools``): calls get the names and kinds back that these have, where the request had to be written otherwise, and
    only these are looked for in the text, if the policy looks there.
    Raises UsageError for an unknown name or a bad schema; everything else that can go wrong is told in the output and in the
    report.
    """
    dialect, provider = source_named(from_dialect)
    target, client = client_named(to_dialect)
    profile = profile or client
    report = under(policy, report, provider)
    if dialect is target and not reencode and profile.changes.keys() <= PASSES and not policy.reads_text:
        schemas = None if tools is None else compiled(tools, limits)
        encoding = Encoding(limits=limits, profile=profile, make_id=make_id, clock=clock)
        return pipe(
            source,
            EncodeStage(
                f"pass {dialect.name} through", lambda report: PassThrough(dialect, encoding, policy, report, schemas)
            ),
            report=report,
        )
    stages: list[StageFunction[Any, Any]] = [
        parse(from_dialect, limits=limits),
        decode(from_dialect, limits=limits),
        *in_text_stages(policy, provider, tools=offered or tools, limits=limits),
        accumulate_tool_calls(limits=limits, policy=policy, make_id=make_id, join=join),
        check_json(limits=limits, tools=tools),
    ]
    if ToolNames.of(offered):
        stages.append(restore_tools(offered, limits=limits))
    if carries_searches(dialect.name, target.name, offered):
        stages.append(carry_searches(dialect.name, target.name, limits=limits))
    if carries(dialect.name, target.name, offered):
        stages.append(carry_citations(dialect.name, target.name, limits=limits))
    stages.append(encode(to_dialect, profile=profile, limits=limits, make_id=make_id, clock=clock))
    return Pipe(source, tuple(stages), report)


async def collect(
    source: AsyncIterable[bytes],
    dialect: str,
    *,
    limits: Limits = DEFAULT_LIMITS,
    policy: Policy = TOLERANT,
    tools: Tools | None = None,
    offered: Sequence[Tool] = (),
    report: StreamReport | None = None,
    make_id: Callable[[str], str] = random_id,
) -> Response:
    """Read a stream of ``dialect`` to its end: one whole response with verdicts, usage and report.

    A stream that was cut or that failed is no exception: what arrived is in the response, ``clean`` is False, and
    ``report.status`` says what happened. ``tools`` are the request's: arguments are then checked against their schemas (extra
    ``schema``); ``offered`` are they as the client offered them (``Request.tools``), for calls that the model wrote into its
    text (``Policy.text_calls``). Raises UsageError for an unknown dialect or a bad schema.
    """
    async with events_of(
        source,
        dialect,
        limits=limits,
        policy=policy,
        tools=tools,
        offered=offered,
        report=report,
        join=True,
        make_id=make_id,
    ) as stream:
        collector = Collector(source_named(dialect)[0].name, stream.report, limits)
        try:
            async for batch in stream:
                collector.feed(batch)
        except StreamError as error:
            if stream.report.clean:
                stream.report.repair("fault_after_end")
            else:
                stream.report.failed(error)
    return collector.finish()
