"""Types are tested: mypy and pyright read this file, nobody runs it.

Both report a ``type: ignore`` that is not needed, which turns each into an assertion that the line does not type-check.
"""

# mypy: allow-untyped-defs

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import assert_type

from streamkit import (
    STRICT,
    Pipe,
    Policy,
    Response,
    SyncPipe,
    Tool,
    accumulate_tool_calls,
    check_json,
    check_output,
    collect,
    collect_sync,
    decode,
    encode,
    find_text_calls,
    guard,
    map_text,
    parse_eventstream,
    parse_json_array,
    parse_ndjson,
    parse_sse,
    partial_output,
    pipe,
    redact,
    restore_calls,
    source_of,
    split_thinking,
    transcode,
    transcode_sync,
)
from streamkit.events import (
    Event,
    ProviderFailed,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    UsageReported,
    WireEvent,
)
from streamkit.framing.frame import Frame
from streamkit.report import StageTiming
from streamkit.resume import Log, MemoryStore, Meta, StoredLog, keep, read
from streamkit.sources import iter_httpx
from streamkit.tool_calls.partial_arguments import SeenOutput


async def shout(batches: AsyncIterable[list[Event]]) -> AsyncIterator[list[Event]]:
    async for batch in batches:
        yield [TextDelta(e.text.upper(), e.choice, e.block) if isinstance(e, TextDelta) else e for e in batch]


async def one_by_one(batches: AsyncIterable[list[Event]]) -> AsyncIterator[Event]:
    async for batch in batches:
        for event in batch:
            yield event


async def no_yield(batches: AsyncIterable[list[Frame]]) -> list[Frame]:
    return [frame async for batch in batches for frame in batch]


async def untyped(batches):
    async for batch in batches:
        yield batch


def right(source: AsyncIterable[bytes]) -> None:
    assert_type(pipe(source), Pipe[bytes])
    assert_type(pipe(source, parse_sse()), Pipe[list[Frame]])
    assert_type(pipe(source, parse_ndjson(), decode("ollama")), Pipe[list[WireEvent]])
    assert_type(pipe(source, parse_eventstream(), decode("bedrock")), Pipe[list[WireEvent]])
    assert_type(pipe(source, parse_json_array(), decode("gemini")), Pipe[list[WireEvent]])
    assert_type(pipe(source, parse_sse(), decode("anthropic"), accumulate_tool_calls()), Pipe[list[Event]])
    assert_type(
        pipe(source, parse_sse(), decode("vllm"), split_thinking(), find_text_calls("hermes"), accumulate_tool_calls()),
        Pipe[list[Event]],
    )
    assert_type(
        pipe(
            source,
            parse_sse(),
            decode("openai-chat"),
            accumulate_tool_calls(),
            check_json(),
            check_output(None),
            shout,
            encode("anthropic"),
        ),
        Pipe[bytes],
    )
    assert_type(
        pipe(source, parse_sse(), decode("openai-chat"), accumulate_tool_calls(), partial_output()),
        Pipe[list[SeenOutput]],
    )
    pipe(source, parse_sse(), decode("openai-chat"), accumulate_tool_calls(), untyped, encode("anthropic"))
    assert_type(
        pipe(
            source,
            parse_sse(),
            decode("vllm"),
            split_thinking(),
            find_text_calls("hermes"),
            accumulate_tool_calls(),
            check_json(),
            restore_calls([Tool("f")]),
            map_text(str.upper, hold=0),
            redact("secret"),
            guard(bool, hold=9),
            shout,
            encode("anthropic"),
        ),
        Pipe[bytes],
    )
    assert_type(transcode(source, "openai-chat", "ollama"), Pipe[bytes])
    timed = pipe(source, parse_sse(), decode("anthropic"), timings=True)
    assert_type(timed, Pipe[list[WireEvent]])
    assert_type(timed.report.timings, tuple[StageTiming, ...])
    assert_type(timed.report.usage, UsageReported | None)
    assert_type(timed.report.started, ResponseStarted | None)
    assert_type(timed.report.stops, tuple[ResponseFinished, ...])
    assert_type(timed.report.failure, ProviderFailed | None)


def wrong(source: AsyncIterable[bytes], texts: AsyncIterable[str]) -> None:
    pipe(texts, parse_sse())  # type: ignore[arg-type]
    pipe(source, decode("openai-chat"))  # type: ignore[arg-type]
    pipe(source, parse_sse(), accumulate_tool_calls())  # type: ignore[misc]
    pipe(source, parse_sse(), decode("vllm"), accumulate_tool_calls(), split_thinking())  # type: ignore[misc]
    pipe(source, parse_sse(), decode("openai-chat"), check_json())  # type: ignore[misc]
    pipe(source, parse_sse(), decode("openai-chat"), shout)  # type: ignore[misc]
    pipe(source, parse_sse(), decode("openai-chat"), encode("anthropic"))  # type: ignore[misc]
    pipe(source, parse_sse(), decode("openai-chat"), accumulate_tool_calls(), decode("ollama"))  # type: ignore[misc]
    pipe(source, parse_sse(), decode("openai-chat"), accumulate_tool_calls(), one_by_one, check_json())  # type: ignore[misc]
    pipe(b"", parse_sse())  # type: ignore[call-overload]
    pipe(source, parse_sse, decode("openai-chat"))  # type: ignore[arg-type]
    pipe(source, parse_sse(), no_yield)  # type: ignore[arg-type]
    transcode(source, "openai-chat", "anthropic", {"policy": STRICT})  # type: ignore[arg-type]
    transcode(source, "openai-chat", "anthropic", stages=[one_by_one])  # type: ignore[list-item]
    transcode(source, "openai-chat", "anthropic", stages=[redact])  # type: ignore[list-item]
    Policy(missing_id="refus")  # type: ignore[arg-type]
    map_text(str.upper, hold="9")  # type: ignore[arg-type]


async def results(source: AsyncIterable[bytes]) -> None:
    assert_type(await collect(source, "anthropic"), Response)
    async with transcode(source, "openai-chat", "anthropic") as stream:
        assert_type(await anext(stream), bytes)


def blocking(reads: Iterable[bytes], response: object) -> None:
    assert_type(collect_sync(reads, "anthropic"), Response)
    with transcode_sync(reads, "openai-chat", "anthropic") as stream:
        assert_type(next(stream), bytes)
    transcode_sync(iter_httpx(response), "openai-chat", "anthropic")
    transcode(iter_httpx(response), "openai-chat", "anthropic")
    transcode(reads, "openai-chat", "anthropic")  # type: ignore[arg-type]
    assert_type(next(SyncPipe(pipe(source_of(reads), parse_sse(), decode("anthropic")))), list[WireEvent])


async def kept(source: AsyncIterable[bytes]) -> None:
    store = MemoryStore()
    log = await store.create(store.new_id(), Meta(dialect="anthropic"))
    stored: Log = log
    answer = pipe(
        source, parse_sse(), decode("openai-chat"), accumulate_tool_calls(), encode("anthropic"), keep(stored)
    )
    assert_type(answer, Pipe[bytes])
    async for chunk in read(StoredLog(store, log.id), after=7):
        assert_type(chunk, bytes)
    pipe(read(log), parse_sse())
    pipe(source, parse_sse(), keep(log))  # type: ignore[misc]
    pipe(source, keep(log), encode("anthropic"))  # type: ignore[misc]
    keep("log")  # type: ignore[arg-type]
