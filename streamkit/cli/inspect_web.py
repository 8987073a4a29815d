"""``streamkit inspect --web``: serve the inspector's page for recordings, or for a live stream on standard input."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import define, field

from streamkit.cli.inputs import open_input
from streamkit.cli.streams import STDIN, name_of, say_failure, size_of
from streamkit.dialects import source_named
from streamkit.errors import NotThisDialect, SourceFailed
from streamkit.lab.inspector.app import inspector_app, new_token, url_with
from streamkit.lab.inspector.captures import Captures
from streamkit.lab.inspector.playback import follow
from streamkit.lab.recording import Recording
from streamkit.lab.recording.loading import is_whole
from streamkit.lab.server import serving
from streamkit.read_options import ReadOptions
from streamkit.report import Status, StreamReport

LOOPBACK = "127.0.0.1"


@define
class _Shown:
    """The files on the page, and the status of every file."""

    dialect: str
    options: ReadOptions
    client: str | None
    captures: Captures
    statuses: list[Status]
    names: Mapping[str, str] = field(factory=dict)

    async def add(self, path: str) -> None:
        """Read one file, or standard input as it arrives, into a capture."""
        try:
            opened, dialect = await open_input(path, self.dialect)
            source, failed = opened.source(StreamReport()), opened.refusal(dialect)
            capture = self.captures.open(
                str(len(self.statuses)),
                clock=lambda: source.now if source.ended_at is None else source.ended_at,
                about={"file": self.names.get(path, name_of(path)), **_request_line(opened.recording)},
                client=self.client,
                encodes=True,
                **_times(path, opened.recording),
            )
            self.statuses.append(Status.DONE)
            upstream = "" if opened.recording is None else opened.recording.provider or dialect
            if failed is None:
                whole = opened.recording is not None and is_whole(opened.recording.body, source_named(dialect)[0])
                await follow(source, capture, dialect, self.options, upstream=upstream, whole=whole)
            else:
                capture.attempt(upstream or capture.about["file"], dialect, self.options)
                with suppress(SourceFailed):  # an error response that was interrupted is still shown as an error
                    async for _ in source:
                        pass  # reading to the end advances the source's clock
                message = f"{failed.type}: {failed.message}"
                capture.end({"ending": "error", "status": failed.http_status, "error": message})
        except NotThisDialect as error:
            self.statuses.append(say_failure(error, path))
        except SourceFailed as error:
            self.statuses.append(say_failure(error, None if name_of(path) in str(error) else path))


def _request_line(recording: Recording | None) -> dict[str, str]:
    """Return the method and path of a recorded request for the list of streams, since file names are often only times."""
    request = None if recording is None else recording.request
    return {} if request is None else {"asked": f"{request.method} {request.path.partition('?')[0]}"}


def shown_names(paths: Sequence[str]) -> dict[str, str]:
    """Return the name of each file on the page: the last part of its path, or the whole path if two names are equal."""
    names = {path: name_of(path) if path == STDIN else Path(path).name for path in paths}
    same = Counter(names.values())
    return {path: name_of(path) if same[name] > 1 else name for path, name in names.items()}


def _times(path: str, recording: Recording | None) -> dict[str, Any]:
    """Return a capture's attributes about time: whether it has times, and when it began."""
    if recording is None:
        return {"timed": _is_live(path)}
    began = {}
    with suppress(ValueError):  # the recording has no valid time
        began["began"] = datetime.fromisoformat(recording.at).timestamp()
    return {"timed": any(read.t for read in recording.reads), **began}


def _is_live(path: str) -> bool:
    """Return whether the input is a live stream, whose reading times are useful."""
    return path == STDIN and size_of(path) is None


async def show(
    paths: Sequence[str], dialect: str, options: ReadOptions, *, client: str | None = None, port: int = 0
) -> Status:
    """Serve the page until an interrupt. If no file can be shown, return the worst status immediately.

    ``client`` is the name of a dialect or client: each stream is also shown as written for it. Raises UsageError if the port
    cannot be used.
    """
    shown = _Shown(dialect, options, client, Captures(), [], shown_names(paths))
    for path in paths:
        if not _is_live(path):
            await shown.add(path)
    live = [asyncio.create_task(shown.add(path)) for path in paths if _is_live(path)]
    if not live and not list(shown.captures):
        return max(shown.statuses)
    token = new_token()
    try:
        async with serving(inspector_app(shown.captures, token), (LOOPBACK, port), "the inspector") as url:
            print(f"{url_with(url, token)}\nOpen this address; Ctrl-C stops the page.", flush=True)
            await asyncio.gather(*live)
            if list(shown.captures):
                await asyncio.Event().wait()
    finally:
        for task in live:
            task.cancel()
        await asyncio.gather(*live, return_exceptions=True)
    return max(shown.statuses)
