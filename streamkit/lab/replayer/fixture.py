"""The pytest fixture ``streamkit_replay``: serve recordings during a test, and report at its end what went wrong.

Each replay is a server on loopback in a thread, so tests with and without an event loop use it alike. This module needs no
pytest. It does not use the network either: the handler that records misses is passed in.

Source: observe.md O27, O28.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from aiohttp import web

from streamkit.errors import UsageError
from streamkit.lab.recording import SUFFIX
from streamkit.lab.recording.matching import pattern_in
from streamkit.lab.replayer.app import Otherwise, Replay, ReplayOptions
from streamkit.lab.replayer.loading import cut_in, load, recordings_below
from streamkit.testing.serving import served
from streamkit.text.quoting import quoted
from streamkit.web.hosts import Hosts

FOLDER: Final = "recordings"  #: the folder of the recordings, next to the test's file
MATCHES: Final = ("exact", "canonical")
SHOWN: Final = 5  #: the most requests without a recording that an error message lists
#: Adds to the application a handler that requests a provider's URL and records the responses in a folder. The handler passes
#: messages about failed recordings to the callback, from any thread.
Record: TypeAlias = Callable[[web.Application, str, Path, Callable[[str], None]], Otherwise]


class ReplayFixture:
    """Serve recordings for one test in ``folder``. If ``record`` is given, misses are recorded with it."""

    def __init__(self, folder: Path, *, record: Record | None = None) -> None:
        self._folder, self._record = folder, record
        self._servers = ExitStack()
        self._opened: list[_Opened] = []
        self._unrecorded: list[str] = []

    def __call__(
        self,
        name: str | Path,
        *,
        to: str | None = None,
        speed: float = 0,
        cut: str = "reads",
        match: Literal["exact", "canonical"] = "canonical",
        ignore: Sequence[str] = (),
        once: bool = False,
        silence_s: float = 600.0,
        fail_on_miss: bool = True,
        all_asked: bool = False,
    ) -> str:
        """Serve recordings and return the URL of the server, ``http://127.0.0.1:40123``.

        ``name`` is the NAME of ``recordings/NAME.stream.jsonl``, or of a folder ``recordings/NAME`` with several, or a path
        from the test's folder. ``speed``, ``cut``, ``match``, ``ignore``, ``once`` and ``silence_s`` mean the same as for
        ``streamkit replay``, but the default speed waits for nothing. ``to`` is the provider's URL without the endpoint's
        path, used if the run records. The test fails at its end if a request missed, unless ``fail_on_miss`` is False, and
        with ``all_asked`` if a recording was not requested. Raises UsageError, BadRecording.
        """
        if match not in MATCHES:
            raise UsageError(f"match must be {' or '.join(MATCHES)}, not {quoted(match)}")
        options = ReplayOptions(
            speed=speed,
            cut=cut_in(cut),
            exact=match == "exact",
            ignored=[pattern_in(path) for path in ignore],
            once=once,
            silence_s=silence_s,
        )
        folder = self._folder / FOLDER / name
        found = self._find(folder, self._folder / name)
        record = None if to is None else self._record
        if not found and record is None:
            how = "pytest --record makes one" if to is not None else "with to=URL, pytest --record makes one"
            where = f"{os.path.relpath(folder)}, which may be a folder or, with {SUFFIX}, a file"
            raise UsageError(f"no recording at {where}; {how}")
        replay = Replay(load(os.path.relpath(path) for path in found), options)

        def make_app() -> web.Application:
            app = replay.app(Hosts())
            if record is not None and to is not None:
                written = next((path for path in found if path.is_dir()), folder)
                replay.otherwise = record(app, to, written, self._unrecorded.append)
            return app

        url = self._servers.enter_context(served(make_app, decompress=False))
        self._opened.append(_Opened(replay, fail_on_miss=fail_on_miss, all_asked=all_asked, can_record=to is not None))
        return url

    def finish(self) -> list[str]:
        """Stop the servers. Return the problems of the test's requests, one paragraph each."""
        self._servers.close()
        return [*self._unrecorded, *(fault for opened in self._opened for fault in opened.faults())]

    def _find(self, named: Path, path: Path) -> list[Path]:
        """Return the file and folder of a name in ``recordings``. If neither has recordings, return the path."""
        found = [each for each in (named.with_name(named.name + SUFFIX), named) if _has_recordings(each)]
        return found or ([path] if _has_recordings(path) else [])


def _has_recordings(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and bool(recordings_below(path)))


class _Opened(NamedTuple):
    """A replay of the test, and the conditions that the test's requests must meet."""

    replay: Replay
    fail_on_miss: bool
    all_asked: bool
    can_record: bool

    def faults(self) -> Iterator[str]:
        misses, unasked = self.replay.misses, self.replay.unasked
        if self.fail_on_miss and misses:
            shown = [f"  {miss.method} {miss.path}: {miss.reason}" for miss in misses[:SHOWN]]
            more = [f"  and {len(misses) - SHOWN:,} more"] if len(misses) > SHOWN else []
            record = ["pytest --record records them from the provider"] if self.can_record else []
            yield "\n".join(["no recording answers:", *shown, *more, *record])
        if self.all_asked and unasked:
            yield "\n".join(["no request for:", *(f"  {name}" for name in unasked)])
