"""``streamkit inspect --web``: the inspector's page over recordings, or over a stream that comes on standard input."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from attrs import define

from streamkit.cli.inputs import open_input
from streamkit.cli.streams import STDIN, STDIN_DESCRIPTOR, name_of, say
from streamkit.errors import NotThisDialect, SourceFailed
from streamkit.framing.frame import NOTHING
from streamkit.gateway.listening import listening, url_of
from streamkit.inspector.app import inspector_app, new_token, url_with
from streamkit.inspector.captures import Captures
from streamkit.inspector.recordings import follow
from streamkit.read_options import ReadOptions
from streamkit.recording import Recording
from streamkit.report import Status, StreamReport

LOOPBACK = "127.0.0.1"
#: Seconds after which a connection without a request is closed.
IDLE_S = 75.0


@define
class _Shown:
    """The files that are shown, and what became of those that are not."""

    dialect: str
    options: ReadOptions
    client: str | None
    captures: Captures
    statuses: list[Status]

    async def add(self, path: str) -> None:
        """Read one file, or standard input as it comes, into a capture."""
        try:
            opened, dialect = await open_input(path, self.dialect)
            source, failed = opened.source(StreamReport()), opened.refusal(dialect)
            capture = self.captures.open(
                str(len(self.statuses)),
                clock=lambda: source.now if source.ended_at is None else source.ended_at,
                about={"file": name_of(path)},
                client=self.client,
                encodes=True,
                **_times(path, opened.recording),
            )
            self.statuses.append(Status.DONE)
            if failed is None:
                await follow(source, capture, dialect, self.options)
            else:
                capture.attempt(capture.about["file"], dialect, self.options)
                with suppress(SourceFailed):  # an error that broke off is one all the same
                    async for _ in source:
                        pass  # its clock goes to the end
                capture.end(
                    {"ending": "error", "status": failed.http_status, "error": f"{failed.type}: {failed.message}"}
                )
        except NotThisDialect as error:
            say(f"{name_of(path)}: {error}")
            self.statuses.append(Status.CUT if error.found == NOTHING else Status.NOT_THIS_DIALECT)
        except SourceFailed as error:
            say(str(error))
            self.statuses.append(Status.FAILED)


def _times(path: str, recording: Recording | None) -> dict[str, Any]:
    """What a capture says of its times: whether there are any, and when they began."""
    if recording is None:
        return {"timed": _is_live(path)}
    began = {}
    with suppress(ValueError):  # what else stands there is no time
        began["began"] = datetime.fromisoformat(recording.at).timestamp()
    return {"timed": any(read.t for read in recording.reads), **began}


def _is_live(path: str) -> bool:
    """Whether its bytes come as they are made, so that their times mean something."""
    return path == STDIN and not stat.S_ISREG(os.fstat(STDIN_DESCRIPTOR).st_mode)


async def show(
    paths: Sequence[str], dialect: str, options: ReadOptions, *, client: str | None = None, port: int = 0
) -> Status:
    """Serve the page until it is interrupted. Where nothing can be shown it ends at once, with the worst status.

    ``client`` is the dialect, or a client that reads one, as which each stream is written beside what was read. Raises
    UsageError where the port can't be had.
    """
    shown = _Shown(dialect, options, client, Captures(), [])
    for path in paths:
        if not _is_live(path):
            await shown.add(path)
    live = [asyncio.create_task(shown.add(path)) for path in paths if _is_live(path)]
    if not live and not list(shown.captures):
        return max(shown.statuses)
    token = new_token()
    try:
        async with listening(
            inspector_app(shown.captures, token), (LOOPBACK, port), idle_s=IDLE_S, what="the inspector"
        ) as bound:
            print(f"{url_with(url_of(bound), token)}\nThat address shows it; Ctrl-C ends it.", flush=True)
            await asyncio.gather(*live)
            if list(shown.captures):
                await asyncio.Event().wait()
    finally:
        for task in live:
            task.cancel()
        await asyncio.gather(*live, return_exceptions=True)
    return max(shown.statuses)
