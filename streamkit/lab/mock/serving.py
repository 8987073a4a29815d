"""Serve a mock from a thread, for tests and the pytest fixture ``streamkit_mock``.

Source: observe.md O31, O32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from streamkit.lab.mock.script import Script, Turn
from streamkit.lab.mock.server import ANY, Mock
from streamkit.lab.mock.steps import Step
from streamkit.lab.mock.verdict import ClientVerdict
from streamkit.lab.mock.writing import AT_ONCE, Timing
from streamkit.testing.serving import served

#: A script, its turns, the steps of its only turn, or the path of a TOML file. None: the demo model answers.
ScriptLike: TypeAlias = Script | Iterable[Turn | Step] | str | PathLike[str] | None


@frozen
class ServedMock:
    """A mock and the server that serves it."""

    mock: Mock
    root: str  #: the server's URL

    @property
    def urls(self) -> Mapping[str, str]:
        """The base URL of each dialect, for its official clients."""
        return self.mock.urls(self.root)

    @property
    def url(self) -> str:
        """The base URL of the mock's only dialect; the server's URL if there are several."""
        urls = list(self.urls.values())
        return urls[0] if len(urls) == 1 else self.root

    @property
    def verdict(self) -> ClientVerdict:
        """The verdict on the client so far."""
        return self.mock.verdict


@contextmanager
def served_mock(
    script: ScriptLike = None,
    *,
    dialect: str = ANY,
    quirk: str | Sequence[str] = (),
    timing: Timing = AT_ONCE,
    seed: int = 0,
) -> Iterator[ServedMock]:
    """Serve a mock on a free loopback port while the block runs.

    ``quirk`` is one kind or several (``streamkit mock --list-quirks``). Raises UsageError for an unknown dialect or quirk, or
    an impossible script. A script in a file needs the extra ``gateway``.
    """
    quirks = (quirk,) if isinstance(quirk, str) else tuple(quirk)
    mock = Mock(script_of(script), dialect=dialect, quirks=quirks, timing=timing, seed=seed)
    with served(mock.app) as root:
        yield ServedMock(mock, root)


def script_of(script: ScriptLike) -> Script | None:
    """Return the script. Raises UsageError for an impossible one, and ConfigError for a file with faults."""
    if script is None or isinstance(script, Script):
        return script
    if isinstance(script, str | PathLike):
        from streamkit.lab.mock.script_file import load_script  # noqa: PLC0415 - cattrs is an extra

        return load_script(Path(script))
    return Script(script)
