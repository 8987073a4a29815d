"""Play recordings into captures. A file of raw bytes has no times, so it is shown frame by frame, over a scale of bytes.

Source: observe.md O38.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import Final

from streamkit.dialects import source_named
from streamkit.errors import SourceFailed
from streamkit.lab.inspector.captures import Capture
from streamkit.limits import DEFAULT_LIMITS
from streamkit.observer import Observer
from streamkit.pipeline import close_each
from streamkit.read_options import ReadOptions
from streamkit.report import Status, StreamReport

#: The word for each status in the list of streams.
ENDINGS: Final[Mapping[Status, str]] = {
    Status.DONE: "whole",
    Status.CUT: "cut",
    Status.FAILED: "failed",
    Status.PROVIDER_ERROR: "error",
    Status.NOT_THIS_DIALECT: "other dialect",
}


async def follow(
    source: AsyncIterable[bytes],
    capture: Capture,
    dialect: str,
    options: ReadOptions,
    *,
    upstream: str = "",
    whole: bool = False,
) -> None:
    """Put all reads of ``source`` into ``capture`` as they arrive. If the capture has no times, put each frame separately.

    ``upstream`` is the name of the upstream, by default the file. ``whole`` marks one JSON document instead of a stream.

    Closes the source. Raises the source's errors, unless the stream was complete before, and UsageError for an unknown name.
    """
    observer = Observer(dialect, options, whole=whole)
    capture.attempt(upstream or capture.about.get("file", ""), dialect, options, whole=whole)
    chunks = source if capture.timed or whole else frames(source, dialect)
    try:
        try:
            async for chunk in chunks:
                capture.read(chunk)
                observer.feed(chunk)
        except SourceFailed as error:
            if not observer.report.terminated:
                capture.end({"ending": ENDINGS[Status.FAILED], "error": str(error)})
                raise
        observer.finish()
        capture.end({"ending": ENDINGS[observer.report.status]})
    finally:
        if capture.ended is None:
            capture.end({"ending": ENDINGS[Status.FAILED]})
        await close_each(chunks, source)


async def frames(source: AsyncIterable[bytes], dialect: str) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of each frame of ``dialect``; joined, they are the source's bytes. Raises the source's errors."""
    parser = source_named(dialect)[0].parser(DEFAULT_LIMITS, StreamReport())
    held, begin = b"", 0  # bytes that are not yielded yet, and the offset of their first byte
    failed = None
    try:
        async for chunk in source:
            held += chunk
            for frame in parser.feed(chunk):
                if frame.offset > begin:
                    yield held[: frame.offset - begin]
                    held, begin = held[frame.offset - begin :], frame.offset
    except SourceFailed as error:
        failed = error
    if held:
        yield held
    if failed is not None:
        raise failed
