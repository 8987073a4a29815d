"""The mock's URL paths for each dialect, and the base URLs for its clients.

If the gateway serves clients of a dialect, the mock uses the same paths; for any other dialect, the paths of its servers. If
two dialects share a path, the first one gets it, and the second one gets its name as a prefix: ``/NAME/v1/…``.

Source: observe.md O31; clients.md §10.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import evolve, frozen

from streamkit.dialects import dialect_named

#: A sample model name for building a URL. It is then replaced by the router's pattern for any name.
_MODEL: Final = "a-model"
_MODEL_PATTERN: Final = "{model:.+}"


@frozen(kw_only=True)
class Path:
    """A path of a dialect, as a pattern for aiohttp's router."""

    pattern: str
    dialect: str
    #: Whether requests to this path stream; None: the request decides.
    stream: bool | None = None
    counts: bool = False  #: the path counts tokens and generates nothing


@frozen(kw_only=True)
class Place:
    """The base URL of one dialect, relative to the server's URL, and its paths."""

    dialect: str
    base: str
    paths: tuple[Path, ...]


def places(dialects: Iterable[str]) -> Iterator[Place]:
    """Yield the place of each dialect. Raises UsageError for an unknown dialect."""
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
    """Return the part of the path between the server's URL and the path that official clients append to their base URL."""
    http, paths = dialect_named(name).http, [path.pattern for path in _paths(name)]
    asked = "" if http.endpoint is None else http.endpoint.url("", _MODEL, True).partition("?")[0]
    if not asked:  # the dialect's requests go to the base URL itself, without a path
        return paths[0]
    return next((path.removesuffix(asked) for path in paths if path.endswith(asked)), "")
