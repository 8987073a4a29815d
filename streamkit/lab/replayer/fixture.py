"""What the pytest fixture ``streamkit_replay`` is: replays of recordings beside a test, and what is wrong at its end.

Each replay is a server on loopback in a thread of its own, so that tests with and without an event loop use it alike. Nothing
here needs pytest. What records in place of a miss is given to it: this room knows no network.

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
from streamkit.lab.replayer.cutting import cut_in
from streamkit.lab.replayer.loading import load
from streamkit.testing.serving import served
from streamkit.text.quoting import quoted
from streamkit.web.hosts import Hosts

#: Where recordings are looked for, beside the test.
FOLDER: Final = "recordings"
MATCHES: Final = ("exact", "canonical")
#: Misses that a message names.
SHOWN: Final = 5
#: Makes, as a part of an application, what asks the provider at a URL and records its answers in a folder; what could not be
#: recorded is told, from whichever thread.
Record: TypeAlias = Callable[[web.Application, str, Path, Callable[[str], None]], Otherwise]


class ReplayFixture:
    """Serves recordings for one test, which stands in ``folder``. ``record`` is given where misses are to be recorded."""

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
        """Serve recordings and give the URL of the server, ``http://127.0.0.1:40123``.

        ``name`` is that of ``recordings/NAME.stream.jsonl``, of a folder ``recordings/NAME`` with several, or a path from the
        test's folder. ``speed``, ``cut``, ``match``, ``ignore``, ``once`` and ``silence_s`` are those of ``streamkit replay``,
        but everything comes at once unless a speed is given. ``to`` is the provider's URL without the path of the endpoint,
        asked where a run records. The test fails at its end if a request missed, unless ``fail_on_miss`` is False, and with
        ``all_asked`` if a recording was not asked for. Raises UsageError, BadRecording.
        """
        if match not in MATCHES:
            raise UsageError(f"a match is {' or '.join(MATCHES)}, not {quoted(match)}")
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
        """Stop the servers; what is wrong with what was asked of them, a paragraph each."""
        self._servers.close()
        return [*self._unrecorded, *(fault for opened in self._opened for fault in opened.faults())]

    def _find(self, named: Path, path: Path) -> list[Path]:
        """The files and folders with recordings that a name leads to; only where there are none, the path."""
        found = [each for each in (named.with_name(named.name + SUFFIX), named) if _has_recordings(each)]
        return found or ([path] if _has_recordings(path) else [])


def _has_recordings(path: Path) -> bool:
    return path.is_file() or any(path.rglob(f"*{SUFFIX}"))


class _Opened(NamedTuple):
    """A replay, and what is wanted of it."""

    replay: Replay
    fail_on_miss: bool
    all_asked: bool
    can_record: bool

    def faults(self) -> Iterator[str]:
        misses, unasked = self.replay.misses, self.replay.unasked
        if self.fail_on_miss and misses:
            shown = [f"  {miss.method} {miss.path}: {miss.reason}" for miss in misses[:SHOWN]]
            more = [f"  and {len(misses) - SHOWN:,} more"] if len(misses) > SHOWN else []
            record = ["pytest --record asks the provider, and records what it answers"] if self.can_record else []
            yield "\n".join(["no recording answers:", *shown, *more, *record])
        if self.all_asked and unasked:
            yield "\n".join(["nothing asked for:", *(f"  {name}" for name in unasked)])
