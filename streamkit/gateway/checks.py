"""Find errors that a single table does not show: unreachable routes, time-outs that never fire, readable key files.

Each remark is the path of a setting and what to do about it. Errors make a configuration unusable. Warnings do not, and are
searched for only if there are no errors.

Source: limits.md §3, T6.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from streamkit.errors import UsageError
from streamkit.gateway.config import Config, Server
from streamkit.gateway.keys import KeyFile
from streamkit.gateway.routing import covers, is_pattern
from streamkit.otel.conventions import SIGNALS, is_sent
from streamkit.toml.findings import KeyPath, dotted
from streamkit.web.hosts import ANY, is_loopback
from streamkit.web.upstream import Upstream

Remark: TypeAlias = tuple[KeyPath, str]

OPEN_FILE: Final = "every user of this machine can read the key file; run chmod o-r on it"


def faults(values: Mapping[str, Any], upstreams: Mapping[str, Upstream | None]) -> Iterator[Remark]:
    """Yield the errors. ``values`` is the file's document; ``upstreams`` are those that could be read."""
    yield from _missing_extra(values)
    yield from _unreachable(values)
    yield from _idle_timers(upstreams)
    if _value(values, "responses", "state") is True and _value(values, "resume", "store") == "off":
        yield ("responses", "state"), 'needs resume.store, which is "off"; change one of the two'


def environment_faults(values: Mapping[str, Any], env: Mapping[str, str]) -> Iterator[Remark]:
    """Yield errors in environment variables that the configuration relies on."""
    if _value(values, "telemetry", "otlp") is not True:
        return
    try:
        for signal in SIGNALS:
            is_sent(signal, env)
    except UsageError as error:
        yield ("telemetry", "otlp"), str(error)


def warnings(config: Config, values: Mapping[str, Any], key_files: Mapping[str, KeyFile]) -> Iterator[Remark]:
    """Yield the warnings. ``key_files`` are the key files that were read, by their names in ``values``."""
    yield from _listeners(config.server)
    yield from _clear_text(config.upstreams)
    yield from _unused(config)
    yield from _groups(config, values)
    yield from _lonely(config)
    yield from _without_tools(config.upstreams)
    yield from _uncontinued(config)
    yield from _open_files(values, key_files)
    yield from _open_client_keys(config.upstreams)


def _missing_extra(values: Mapping[str, Any]) -> Iterator[Remark]:
    if _value(values, "resume", "store") == "redis" and find_spec("redis") is None:
        yield ("resume", "store"), "needs the extra `redis`: pip install 'streamkit-llm[redis]'"
    if _value(values, "telemetry", "otlp") is True and find_spec("opentelemetry") is None:
        yield ("telemetry", "otlp"), "needs the extra `otel`: pip install 'streamkit-llm[otel]'"


def _value(values: Mapping[str, Any], table: str, key: str) -> Any:
    """Return a value of the file, even if its table has other errors."""
    found = values.get(table)
    return found.get(key) if isinstance(found, dict) else None


def _unreachable(values: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield an error for each model that an earlier route already serves.

    Names are compared only with names and patterns with patterns, because a name always wins over a pattern.
    """
    before: list[tuple[KeyPath, str]] = []
    for path, model in _models(values):
        for place, other in before:
            if model == other:
                yield path, f"is already at {dotted(place)}; remove one of the two"
            elif is_pattern(model) and is_pattern(other) and covers(other, model):
                yield path, f"is never used: the earlier {dotted(place)} matches all its models; move it up"
            else:
                continue
            break
        before.append((path, model))


def _models(values: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the models of the file, even if a route has other errors."""
    routes = values.get("routes")
    for index, route in enumerate(routes if isinstance(routes, list) else ()):
        models = route.get("models") if isinstance(route, dict) else None
        for at, model in enumerate(models if isinstance(models, list) else ()):
            if isinstance(model, str):
                yield ("routes", index, "models", at), model


def _idle_timers(upstreams: Mapping[str, Upstream | None]) -> Iterator[Remark]:
    for name, upstream in upstreams.items():
        times = upstream.timeouts if upstream is not None else None
        if times is not None and times.total_s is not None and times.total_s < times.first_byte_s:
            reason = f"must not be less than first_byte_s ({times.first_byte_s:g}), which could never expire"
            yield ("upstreams", name, "timeouts", "total_s"), reason


def _listeners(server: Server) -> Iterator[Remark]:
    if not is_loopback(server.host) and not server.keys:
        reason = "anyone who reaches it uses your upstreams' keys; set server.keys, or listen on loopback"
        yield ("server", "host"), reason
    if ANY in server.cors and not server.keys:
        reason = "any web page can use your upstreams' keys; name the sites, or set server.keys"
        yield ("server", "cors", server.cors.index(ANY)), reason
    private = server.private_address
    if private is not None and not is_loopback(private[0]):
        yield ("server", "private"), "other machines can read /metrics there, which needs no key"


def _clear_text(upstreams: Mapping[str, Upstream]) -> Iterator[Remark]:
    for name, upstream in upstreams.items():
        url = urlsplit(upstream.base_url)
        if upstream.every_key and url.scheme == "http" and not is_loopback(url.hostname or ""):
            yield ("upstreams", name, "base_url"), "the key is sent in clear text; use https"


def _unused(config: Config) -> Iterator[Remark]:
    used = {target.upstream.name for route in config.routes for target in route.targets}
    for name in config.upstreams:
        if name not in used:
            yield ("upstreams", name), "no route uses it"


def _groups(config: Config, values: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield a warning for each setting of a choice where there is nothing to choose."""
    for index, route in enumerate(config.routes):
        table, sizes = values["routes"][index], Counter(target.place for target in route.targets)
        for target in route.targets:
            if target.weight != 1 and sizes[target.place] == 1:
                path = ("routes", index, "to", target.place)
                yield path, "its weight has no effect; write equals as an array in `to`: [[…, …]]"
        many_keys = route.balance == "affinity" and any(target.upstream.keys for target in route.targets)
        if "balance" in table and not route.has_groups and not many_keys:
            yield ("routes", index, "balance"), "has no effect; write equals as an array in `to`: [[…, …]]"
        if "affinity" in table and route.balance != "affinity":
            yield ("routes", index, "affinity"), 'has no effect; write balance = "affinity", too'


def _lonely(config: Config) -> Iterator[Remark]:
    for index, route in enumerate(config.routes):
        if route.hedge_after_s is not None and len(route.targets) == 1:
            yield ("routes", index, "hedge_after_s"), "the route has no next upstream to ask"


def _without_tools(upstreams: Mapping[str, Upstream]) -> Iterator[Remark]:
    for name, upstream in upstreams.items():
        if upstream.tool_search != "off" and not upstream.tools:
            yield ("upstreams", name, "tool_search"), "has no effect; the upstream gets no requests with tools"


def _uncontinued(config: Config) -> Iterator[Remark]:
    for index, route in enumerate(config.routes):
        names = [target.upstream.name for target in route.targets if target.upstream.tool_search == "emulate"]
        if route.on_cut == "continue" and names:
            words = 'sends requests with deferred tools as with on_cut = "report", since its tool_search is "emulate"'
            yield ("routes", index, "on_cut"), f"{names[0]} {words}"


def _open_files(value: Any, key_files: Mapping[str, KeyFile], path: KeyPath = ()) -> Iterator[Remark]:
    """Yield a warning for each ``{ file = "path" }``, anywhere in the file, that every user can read."""
    if isinstance(value, dict):
        name = value.get("file")
        if isinstance(name, str) and name in key_files and key_files[name].open_to_everyone:
            yield (*path, "file"), OPEN_FILE
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _open_files(item, key_files, (*path, key))


def _open_client_keys(upstreams: Mapping[str, Upstream]) -> Iterator[Remark]:
    for name, upstream in upstreams.items():
        field = "client_cert" if upstream.client_key is None else "client_key"  # where the key is
        path = getattr(upstream, field)
        if path is not None and Path(path).stat().st_mode & stat.S_IROTH:
            yield ("upstreams", name, field), OPEN_FILE
