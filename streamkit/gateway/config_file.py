"""Read the gateway's configuration file: convert one TOML text to a ``Config``, or report every error in it with its line.

Each table is converted separately, so one error hides no other. Checks that compare two values run after both are read. An
error says where it is, what it is and what to do, and repeats no value of the file, except a misspelled name. A setting that
is allowed but probably wrong is a warning.

Source: limits.md §3, T5, T6.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NewType, NoReturn, TypeAlias, TypeVar

from attrs import define, evolve, field
from cattrs import Converter

from streamkit.dialects import DIALECTS, SAID_FOR, source_named
from streamkit.errors import UsageError
from streamkit.gateway.checks import environment_faults, faults, warnings
from streamkit.gateway.config import Config, Responses, Resume, Server, Telemetry
from streamkit.gateway.keys import WRITTEN, FileReader, KeyFile, KeyReader, KeySource, read_key_file
from streamkit.gateway.routing import Route, RouteStage, Target
from streamkit.rewrite.given import find_modules_in
from streamkit.text.quoting import without_secrets
from streamkit.toml.document import TOMLDocument, parse_toml, read_toml
from streamkit.toml.findings import ConfigError, Finding, KeyPath, Refusal, meant, quoted, refuse_all
from streamkit.toml.tables import (
    SCALARS,
    Hook,
    ReportedElsewhere,
    described,
    exactly,
    faults_of,
    keys_of,
    strict_converter,
    table_hook,
)
from streamkit.translation.changes import operator_changes
from streamkit.web.upstream import Auth, Secret, Upstream

T = TypeVar("T")

#: The known tables: the type that tomllib returns for each, and how to write it, for error messages.
TABLES: Final[Mapping[str, tuple[type[Any], str]]] = {
    "server": (dict, "write it as a table, [server]"),
    "resume": (dict, "write it as a table, [resume]"),
    "responses": (dict, "write it as a table, [responses]"),
    "telemetry": (dict, "write it as a table, [telemetry]"),
    "upstreams": (dict, "write at least one, as [upstreams.NAME] with dialect and base_url"),
    "routes": (list, "write at least one, as [[routes]] with models and to"),
}
#: Old names of settings, each with its new name, by table. They work for one release, with a warning.
RENAMED: Final = {"server": {"profile": "timings"}}
#: A setting of routes that became a word of `next_on`. It works for one release, with a warning.
OLD_CHOICE: Final = "on_tool_choice_ignored"
REQUIRED: Final = frozenset({"upstreams", "routes"})  #: the gateway can't serve without these tables


#: What shows that a file was changed: the time of the change, the size and the inode; None: it can't be read.
Stamp: TypeAlias = tuple[int, int, int] | None


@define
class ConfigFile:
    """A configuration file, which can be loaded several times.

    Its keys come from this process's environment and from files. Relative paths of files begin at the folder of ``path``, and
    stages may be in modules of that folder. ``server`` has command line options that replace values of the table ``[server]``;
    their errors name the option, such as ``--port``, not a line.
    """

    path: Path = field(converter=Path)
    server: Mapping[str, Any] = field(factory=dict)
    watched: bool = False  #: whether the gateway loads the file again when it is changed
    #: The file and the files that it names, with their stamps from just before the last ``load`` read them.
    stamps: Mapping[Path, Stamp] = field(init=False, factory=dict)

    def load(self) -> Config:
        """Read the configuration. Raises ConfigError with every error."""
        folder, stamps = self.path.parent, {self.path: _stamp(self.path)}

        def read_file(name: str) -> KeyFile:
            stamps[folder / name] = _stamp(folder / name)
            return read_key_file(folder / name)

        find_modules_in(folder)
        try:
            text, name = read_toml(self.path), str(self.path)
            config = parse_config(
                text, name=name, env=os.environ, read_file=read_file, folder=folder, server=self.server
            )
            for upstream in config.upstreams.values():
                for file in filter(None, (upstream.ca_file, upstream.client_cert, upstream.client_key)):
                    stamps[Path(file)] = _stamp(Path(file))
            return config
        finally:
            self.stamps = stamps

    def present_stamps(self) -> Mapping[Path, Stamp]:
        """Return the stamps that the files have now."""
        return {path: _stamp(path) for path in self.stamps}


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: the file's name contains a null character
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def parse_config(
    text: str,
    *,
    name: str,
    env: Mapping[str, str],
    read_file: FileReader,
    folder: Path = Path(),
    server: Mapping[str, Any] | None = None,
) -> Config:
    """Convert a TOML text to a configuration.

    ``name`` is the file's name for messages. ``read_file`` reads key files; relative paths of certificates begin at
    ``folder``. Raises ConfigError with every error.
    """
    document = evolve(parse_toml(text, name), options=frozenset(server or {}))
    keys = KeyReader(env, read_file)
    reading = _Reading(document, keys, folder)
    listener, upstreams, routes = reading.table("server", Server, server), reading.upstreams(), reading.routes()
    resume, responses = reading.table("resume", Resume), reading.table("responses", Responses)
    telemetry = reading.table("telemetry", Telemetry)
    compared = [*faults(document.values, upstreams), *environment_faults(document.values, env)]
    findings = [*reading.faults, *(document.finding(*fault) for fault in compared)]
    if findings or listener is None or resume is None or responses is None or telemetry is None:
        raise ConfigError(sorted(findings, key=_place))
    config = Config(
        server=listener,
        resume=resume,
        responses=responses,
        telemetry=telemetry,
        upstreams={name: upstream for name, upstream in upstreams.items() if upstream is not None},
        routes=tuple(route for route in routes if route is not None),
    )
    remarks = [*_old_names(document.values), *warnings(config, document.values, keys.files)]
    return evolve(config, warnings=tuple(sorted((document.finding(*remark) for remark in remarks), key=_place)))


def _old_names(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for table, names in RENAMED.items():
        for old in names.keys() & values.get(table, {}).keys():
            yield (table, old), f"is now {names[old]}; the next release drops the old name"
    for index, route in enumerate(values["routes"]):
        if OLD_CHOICE in route:
            yield (
                ("routes", index, OLD_CHOICE),
                'is now "tool_choice_ignored" in next_on; the next release drops the old name',
            )


def _place(finding: Finding) -> tuple[int, int]:
    return finding.line or 0, finding.column or 0


class _Reading:
    """Converts the tables in their order, and collects their errors."""

    def __init__(self, document: TOMLDocument, keys: KeyReader, folder: Path) -> None:
        self.document = document
        self.faults: list[Finding] = []
        self._upstreams: dict[str, Upstream | None] = {}
        self._converter = converter(keys, self._upstreams, folder)
        for name in document.values:
            if name not in TABLES:
                self._fault((name,), f"unknown key{meant(name, TABLES)}")

    def table(self, name: str, kind: type[T], instead: Mapping[str, Any] | None = None) -> T | None:
        """Convert a table of settings; the values in ``instead`` replace the file's. Return None if the table has errors."""
        new = RENAMED.get(name, {})
        table = {new.get(key, key): value for key, value in self._top(name).items()}
        return self._read((name,), {**table, **(instead or {})}, kind)

    def upstreams(self) -> dict[str, Upstream | None]:
        """Return the upstreams by name; None for one with errors."""
        for name, table in self._top("upstreams").items():
            path = ("upstreams", name)
            self._upstreams[name] = self._read(path, self._completed(path, table), Upstream)
        return self._upstreams

    def _completed(self, path: KeyPath, table: Any) -> Any:
        """Add what the table itself does not state: the upstream's name, and the usual ``auth`` of its provider."""
        if not isinstance(table, dict):
            return table
        if "name" in table:
            self._fault((*path, "name"), "unknown key; an upstream's name is in its header")
        return {"auth": usual_auth(str(table.get("dialect"))), **table, "name": path[-1]}

    def routes(self) -> list[Route | None]:
        """Return the routes in the order of the file, with the upstreams that were read; None for a route with errors."""
        return [
            self._read(("routes", index), self._with_old_choice(("routes", index), table), Route)
            for index, table in enumerate(self._top("routes"))
        ]

    def _with_old_choice(self, path: KeyPath, table: Any) -> Any:
        """Convert a route's old ``on_tool_choice_ignored`` to ``next_on``."""
        if not isinstance(table, dict) or OLD_CHOICE not in table:
            return table
        table = dict(table)
        choice = table.pop(OLD_CHOICE)
        if choice not in ("report", "next"):
            self._fault((*path, OLD_CHOICE), 'leave it out; write next_on = ["default", "tool_choice_ignored"]')
        elif "next_on" in table:
            self._fault((*path, OLD_CHOICE), "leave it out; next_on replaces it")
        elif choice == "next":
            table["next_on"] = ["default", "tool_choice_ignored"]
        return table

    def _top(self, name: str) -> Any:
        shape, written = TABLES[name]
        value = self.document.values.get(name, shape())
        if not isinstance(value, shape) or (not value and name in REQUIRED):
            self._fault((name,), written)
            return shape()
        return value

    def _read(self, path: KeyPath, table: Any, kind: type[T]) -> T | None:
        try:
            return self._converter.structure(table, kind)
        except Exception as error:  # noqa: BLE001 - faults_of raises what is none of its kinds
            for inner, reason in faults_of(error):
                self._fault((*path, *inner), reason)
            return None

    def _fault(self, path: KeyPath, reason: str) -> None:
        self.faults.append(self.document.finding(path, reason))


def usual_auth(name: str) -> Auth:
    """Return how a dialect's providers, or this provider, expect a key; ``bearer`` if that is unknown."""
    try:
        dialect, provider = source_named(name)
    except UsageError:
        return "bearer"
    if provider is not None and provider.auth:
        return provider.auth
    endpoint = dialect.http.endpoint_of(provider)
    return endpoint.auth if endpoint is not None else "bearer"


# -- tables to values --------------------------------------------------------------------------------------------------


#: An element of a route's ``to``: a target, or an array of targets, a group of equals.
Element = NewType("Element", object)
#: The value of a header. In the file: a string, or a table that says where to read the value, as for a key.
HeaderText = NewType("HeaderText", str)


def converter(keys: KeyReader, upstreams: Mapping[str, Upstream | None], folder: Path) -> Converter:
    """Return the converter for one file. It reads keys with ``keys``; ``upstreams`` are known by name, None: with errors.

    Relative paths begin at ``folder``. ``structure`` raises errors that ``faults_of`` reads.
    """
    made = strict_converter()

    def secret(value: Any, _kind: Any) -> Secret:
        if not isinstance(value, dict):
            raise Refusal(f"must not be a key itself; {WRITTEN}")
        return keys.read(made.structure(value, KeySource))

    def upstream(value: Any, _kind: Any) -> Upstream:
        name = str_hook(value, str)
        if name not in upstreams:
            raise Refusal(f"unknown upstream {quoted(name)}{meant(name, upstreams)}")
        found = upstreams[name]
        if found is None:
            raise ReportedElsewhere
        return found

    def target(value: Any, kind: Any) -> Target:
        return Target(upstream=upstream(value, Upstream)) if isinstance(value, str) else target_table(value, kind)

    def stage(value: Any, _kind: Any) -> RouteStage:
        if not isinstance(value, str | dict):
            raise Refusal(f'must be "package.module:name", or a table with that as use, not {described(value)}')
        return RouteStage(value)

    def header(value: Any, _kind: Any) -> str:
        return secret(value, Secret).reveal() if isinstance(value, dict) else str(str_hook(value, str))

    def headers(value: Any, _kind: Any) -> Mapping[str, str]:
        texts = {name: text for name, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}
        refuse_all(
            Refusal(f"must not contain what looks like a key; {WRITTEN}", at=(name,)) for name in _keys_in(texts)
        )
        return made.structure(value, dict[str, HeaderText])

    def proxy(value: Any, _kind: Any) -> str | Secret:
        if isinstance(value, dict):
            return secret(value, Secret)
        if "@" in (url := str(str_hook(value, str))):
            raise Refusal("must not contain a user and password; write the whole URL as { env = … } or { file = … }")
        return url

    str_hook = made.get_structure_hook(str)
    target_table = table_hook(Target, made, {"upstream": upstream, "place": _place_set})
    made.register_structure_hook_func(lambda kind: kind is HeaderText, header)
    made.register_structure_hook(Secret, secret)
    made.register_structure_hook(Target, target)
    made.register_structure_hook(RouteStage, stage)
    paths = dict.fromkeys(("ca_file", "client_cert", "client_key"), _path_in(folder))
    own: dict[str, Hook] = {"dialect": _dialect, "headers": headers, "proxy": proxy}
    made.register_structure_hook(Route, _route_hook(made))
    made.register_structure_hook(Upstream, table_hook(Upstream, made, {**own, **_changes(made), **paths}))
    return made


def _changes(made: Converter) -> dict[str, Hook]:
    """Return the hooks for the changes that an upstream's table makes in requests."""

    def drop(value: Any, _kind: Any) -> tuple[str, ...]:
        paths: tuple[str, ...] = made.structure(value, tuple[str, ...])
        refuse_all(fault for index, path in enumerate(paths) for fault in _faults({}, path, at=index))
        return paths

    def values(value: Any, _kind: Any) -> Mapping[str, Any]:
        members: Mapping[str, Any] = made.structure(value, dict[str, Any])
        wanted = "must not contain what looks like a key; send keys as `key`, or in `headers`"
        refuse_all(Refusal(wanted, at=(name,)) for name in _keys_in(members))
        refuse_all(fault for name, member in members.items() for fault in _faults({name: member}, at=name))
        return members

    return {"drop": drop, "set": values}


def _keys_in(members: Mapping[str, Any]) -> list[str]:
    """Return the names of the members that contain what looks like a key."""
    return [name for name, member in members.items() if without_secrets({name: member}) != {name: member}]


def _faults(values: Mapping[str, Any], *drop: str, at: str | int) -> Iterator[Refusal]:
    """Yield the reason at the key or index ``at`` if a request can't be changed so."""
    try:
        operator_changes(values, drop)
    except UsageError as error:
        yield Refusal(str(error).partition(": ")[2], at=(at,))


def _place_set(_value: Any, _kind: Any) -> NoReturn:
    raise Refusal(f"unknown key{meant('place', keys_of(Target))}")


def _path_in(folder: Path) -> Hook:
    """Return the hook for the path of a file, which begins at ``folder`` if it is relative."""
    return lambda value, kind: str(folder / exactly(str, SCALARS[str])(value, kind))


def _route_hook(made: Converter) -> Hook:
    """Return the hook for a route, whose ``to`` may contain arrays."""

    def element(value: Any, _kind: Any) -> Any:
        return made.structure(value, tuple[Target, ...] if isinstance(value, list) else Target)

    made.register_structure_hook_func(lambda kind: kind is Element, element)
    return table_hook(Route, made, {"targets": lambda value, _kind: made.structure(value, tuple[Element, ...])})


def _dialect(value: Any, _kind: Any) -> str:
    name = str(exactly(str, SCALARS[str])(value, str))
    try:
        dialect, _ = source_named(name)
    except UsageError as error:
        if DIALECTS.named(name):  # the dialect is installed, but its package fails to load: the error says why
            raise Refusal(str(error)) from None
        known = [*DIALECTS, *(provider.name for dialect in DIALECTS.values() for provider in dialect.providers)]
        raise Refusal(f"unknown dialect {quoted(name)}{meant(SAID_FOR.get(name, name), known)}") from None
    if dialect.bodies is None:
        raise Refusal(f"{quoted(name)} has no requests, so no upstream can have it")
    return name
