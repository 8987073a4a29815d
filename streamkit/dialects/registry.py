"""Find dialects by name: the built-in ones, and those of other installed distributions.

A distribution adds a dialect by an entry point of the group ``streamkit.dialects``: ``workers-ai = "workers_ai:DIALECT"``.
Metadata is read when a name is not built in, and a package is imported when its dialect is requested; both happen once. An
entry point that cannot be used adds no dialect, and ``candidates`` gives the reason. Built-in dialects are never replaced, so
installing a package changes nothing for code that does not name its dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from attrs import frozen

from streamkit.dialects.base import Dialect
from streamkit.errors import UsageError
from streamkit.report import describe

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "streamkit.dialects"


@frozen(kw_only=True)
class Candidate:
    """An entry point, and either its ``dialect`` or the ``reason`` why it cannot be used."""

    name: str
    value: str  #: ``package.module:DIALECT``
    distribution: str
    version: str
    dialect: Dialect | None = None
    reason: str = ""
    cause: Exception | None = None  #: the exception that the import raised

    def error(self) -> UsageError:
        """Return the error for a request of this dialect."""
        return UsageError(
            f"the dialect {self.name!r} of {self.distribution} {self.version} (entry point {self.name} = {self.value}) "
            f"can't be used: {self.reason}"
        )


def installed() -> Iterable[EntryPoint]:
    """Return the entry points of the group, from all distributions in the environment."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 13 ms, and most programs never ask

    return entry_points(group=GROUP)


class BuiltIn(Mapping[str, Dialect]):
    """The built-in dialects by name. A package is imported when its dialect is looked up, not when names are listed."""

    def __init__(self, *names: str) -> None:
        self._loaded: dict[str, Dialect | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Dialect:
        found = self._loaded[name]
        if found is None:
            package = import_module(f"streamkit.dialects.{name.replace('-', '_')}")
            found = self._loaded[name] = cast(Dialect, package.DIALECT)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)


class Registry(Mapping[str, Dialect]):
    """Dialects by name, the built-in ones first. Iterating over them imports the packages of other distributions."""

    def __init__(self, built_in: Mapping[str, Dialect], find: Callable[[], Iterable[EntryPoint]] = installed) -> None:
        self.built_in = built_in
        self.find = find
        self._tried: dict[str, tuple[Candidate, ...]] = {}

    def __getitem__(self, name: str) -> Dialect:
        found = self.built_in.get(name)
        if found is not None:
            return found
        for candidate in self.named(name):
            if candidate.dialect is not None:
                return candidate.dialect
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from (candidate.name for candidate in self.candidates() if candidate.dialect is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def candidates(self) -> list[Candidate]:
        """Return the result for each entry point, sorted by name."""
        return [candidate for name in sorted(self._points) for candidate in self.named(name)]

    def named(self, name: str) -> tuple[Candidate, ...]:
        """Return the results for the entry points with this name. Empty if there are none."""
        if name not in self._tried:
            points = self._points.get(name, [])
            self._tried[name] = tuple(self._try(point, points) for point in points)
        return self._tried[name]

    @cached_property
    def _points(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in self.find():
            found.setdefault(point.name, []).append(point)
        return found

    def _try(self, point: EntryPoint, points: list[EntryPoint]) -> Candidate:
        dialect, reason, cause = None, "", None
        if point.name in self.built_in:
            reason = "a built-in dialect has that name"
        elif len(points) > 1:
            reason = f"several distributions bring one: {', '.join(sorted(_origin(other)[0] for other in points))}"
        else:
            try:
                dialect = point.load()
            except Exception as error:  # noqa: BLE001 - another package's code: whatever it raises concerns its dialect only
                reason, cause = describe(error), error
            else:
                reason = _objection(point.name, dialect)
        distribution, version = _origin(point)
        return Candidate(
            name=point.name,
            value=point.value,
            distribution=distribution,
            version=version,
            dialect=None if reason else dialect,
            reason=reason,
            cause=cause,
        )


def _objection(name: str, dialect: object) -> str:
    """Return the reason why an object is not a dialect of that name. Empty if it is one."""
    if not isinstance(dialect, Dialect):
        return f"it is no Dialect but of type {type(dialect).__name__}"
    if dialect.name != name:
        return f"the dialect calls itself {dialect.name!r}"
    return ""


def _origin(point: EntryPoint) -> tuple[str, str]:
    """Return the name and version of the distribution that an entry point belongs to."""
    return (point.dist.name, point.dist.version) if point.dist is not None else ("an unknown distribution", "")
