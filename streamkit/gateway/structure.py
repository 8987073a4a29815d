"""Convert tables of the configuration to values: upstreams with their keys, and targets that refer to upstreams.

No message repeats a value of the file, except a misspelled name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NewType

from cattrs import Converter

from streamkit.dialects import DIALECTS, source_named
from streamkit.errors import UsageError
from streamkit.gateway.keys import WRITTEN, KeyReader, KeySource
from streamkit.gateway.routing import Target
from streamkit.text.redact import without_secrets
from streamkit.toml.findings import Refusal, meant, quoted
from streamkit.toml.tables import SCALARS, ToldElsewhere, exactly, strict_converter, table_hook
from streamkit.web.upstream import Secret, Upstream

#: The value of a header. In the file: a string, or a table that says where to read the value, as for a key.
HeaderText = NewType("HeaderText", str)


def converter(keys: KeyReader, upstreams: Mapping[str, Upstream | None]) -> Converter:
    """Return the converter for one file. It reads keys with ``keys``; ``upstreams`` are known by name, None: with errors.

    ``structure`` raises errors that ``faults_of`` reads.
    """
    made = strict_converter()

    def secret(value: Any, _kind: Any) -> Secret:
        if not isinstance(value, dict):
            raise Refusal(f"a key may not stand in this file; {WRITTEN}")
        return keys.read(made.structure(value, KeySource))

    def upstream(value: Any, _kind: Any) -> Upstream:
        name = str_hook(value, str)
        if name not in upstreams:
            raise Refusal(f"no upstream is called {quoted(name)}{meant(name, upstreams)}")
        found = upstreams[name]
        if found is None:
            raise ToldElsewhere
        return found

    def target(value: Any, kind: Any) -> Target:
        return Target(upstream=upstream(value, Upstream)) if isinstance(value, str) else target_table(value, kind)

    def header(value: Any, _kind: Any) -> str:
        return secret(value, Secret).reveal() if isinstance(value, dict) else str(str_hook(value, str))

    def headers(value: Any, _kind: Any) -> Mapping[str, str]:
        for name, text in value.items() if isinstance(value, dict) else ():
            if isinstance(text, str) and without_secrets({name: text}) != {name: text}:
                raise Refusal(f"what looks like a key may not stand in this file; {WRITTEN}", at=(name,))
        return made.structure(value, dict[str, HeaderText])

    str_hook = made.get_structure_hook(str)
    target_table = table_hook(Target, made, {"upstream": upstream})
    made.register_structure_hook_func(lambda kind: kind is HeaderText, header)
    made.register_structure_hook(Secret, secret)
    made.register_structure_hook(Target, target)
    made.register_structure_hook(Upstream, table_hook(Upstream, made, {"dialect": _dialect, "headers": headers}))
    return made


def _dialect(value: Any, _kind: Any) -> str:
    name = str(exactly(str, SCALARS[str])(value, str))
    try:
        dialect, _ = source_named(name)
    except UsageError as error:
        if DIALECTS.named(name):  # the dialect is installed, but its package fails to load: the error says why
            raise Refusal(str(error)) from None
        known = [*DIALECTS, *(provider.name for dialect in DIALECTS.values() for provider in dialect.providers)]
        raise Refusal(f"no dialect is called {quoted(name)}{meant(name, known)}") from None
    if dialect.bodies is None:
        raise Refusal(f"{quoted(name)} has no requests, so no upstream can be asked in it")
    return name
