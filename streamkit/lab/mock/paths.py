"""Where the mock is asked: the paths of each dialect, and the base URLs that its clients take.

A dialect whose clients the gateway serves has their paths, any other one those of its servers. Where two dialects share a
path, the first has it, and the other one stands behind its own name: ``/NAME/v1/…``.

Source: observe.md O31; clients.md §10.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import evolve, frozen

from streamkit.dialects import dialect_named

#: Stands for a model's name in a URL, where a pattern for it is to stand.
_MODEL: Final = "a-model"
_MODEL_PATTERN: Final = "{model:.+}"


@frozen(kw_only=True)
class Path:
    """A path of a dialect, as a pattern of aiohttp's router."""

    pattern: str
    dialect: str
    #: Whether what is asked there streams; None: the request says so.
    stream: bool | None = None
    counts: bool = False  #: tokens are counted there, and nothing is generated


@frozen(kw_only=True)
class Place:
    """Where one dialect is: its base URL behind the server's, and its paths."""

    dialect: str
    base: str
    paths: tuple[Path, ...]


def places(dialects: Iterable[str]) -> Iterator[Place]:
    """Where each of the dialects is. Raises UsageError for one that is not known."""
    taken: set[str] = set()
    for name in dialects:
        paths = list(_paths(name))
        prefix = f"/{name}" if any(path.pattern in taken for path in paths) else ""
        paths = [evolve(path, pattern=prefix + path.pattern) for path in paths]
        taken.update(path.pattern for path in paths)
        yield Place(dialect=name, base=prefix + _base(name), paths=tuple(paths))


def _paths(name: str) -> Iterator[Path]:
    http = dialect_named(name).http
    if http.surface is not None:
        for pattern, operation in http.surface.paths.items():
            yield Path(pattern=pattern, dialect=name, counts=operation == "count")
        return
    if http.endpoint is None:
        yield Path(pattern=f"/{name}", dialect=name)
        return
    streamed, whole = (http.endpoint.url("", _MODEL, stream).partition("?")[0] for stream in (True, False))
    yield Path(pattern=_pattern(streamed), dialect=name, stream=None if streamed == whole else True)
    if streamed != whole:
        yield Path(pattern=_pattern(whole), dialect=name, stream=False)


def _pattern(path: str) -> str:
    return path.replace(_MODEL, _MODEL_PATTERN)


def _base(name: str) -> str:
    """What stands between the server's URL and the path that the dialect's official clients put behind their base URL."""
    http, paths = dialect_named(name).http, [path.pattern for path in _paths(name)]
    asked = "" if http.endpoint is None else http.endpoint.url("", _MODEL, True).partition("?")[0]
    if not asked:  # it is asked at its base URL
        return paths[0]
    return next((path.removesuffix(asked) for path in paths if path.endswith(asked)), "")
