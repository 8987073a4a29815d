"""Parse a TOML script into a ``Script``, or report every fault with its line.

``[[turn]]`` has ``steps`` and optionally ``match``; ``repeat`` must be above the turns. Needs cattrs (the extra ``gateway``).

Source: observe.md O31.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from cattrs import Converter

from streamkit.lab.mock.script import STEPS, Arguments, MockTurn, Raw, Script, Step
from streamkit.toml.document import parse_toml, read_toml
from streamkit.toml.findings import ConfigError, KeyPath, Refusal, meant
from streamkit.toml.tables import described, faults_of, strict_converter

KEYS: Final = ("turn", "repeat")


def load_script(path: str | Path) -> Script:
    """Return the script in a file. Raises ConfigError with every fault in it."""
    path = Path(path)
    return parse_script(read_toml(path), name=str(path))


def parse_script(text: str, *, name: str = "the script") -> Script:
    """Return the script in a TOML text. ``name`` is the file's name in messages. Raises ConfigError with every fault."""
    document = parse_toml(text, name)
    values = document.values
    faults: list[tuple[KeyPath, str]] = [
        ((key,), f"unknown key{meant(key, KEYS)}") for key in values if key not in KEYS
    ]
    made, turns = _converter(), []
    repeat = values.get("repeat", False)
    if type(repeat) is not bool:
        faults.append((("repeat",), f"must be true or false, not {described(repeat)}"))
    tables = values.get("turn", [])
    if not isinstance(tables, list) or not tables:
        faults.append((("turn",), "write at least one, as [[turn]] with steps"))
        tables = []
    for number, table in enumerate(tables):
        try:
            turns.append(made.structure(table, MockTurn))
        except Exception as error:  # noqa: BLE001 - faults_of raises errors of other kinds again
            faults += [(("turn", number, *path), reason) for path, reason in faults_of(error)]
    if faults:
        raise ConfigError(document.finding(*fault) for fault in faults)
    return Script(turns, repeat=repeat)


# -- steps -------------------------------------------------------------------------------------------------------------


def _converter() -> Converter:
    made = strict_converter()
    made.register_structure_hook_func(lambda kind: kind == Step, lambda value, _kind: _step(made, value))
    made.register_structure_hook_func(lambda kind: kind == Arguments, _arguments)
    made.register_structure_hook(bytes, _data)
    return made


def _step(made: Converter, value: Any) -> Step:
    if not isinstance(value, dict) or len(value) != 1:
        shape = f"a table with {len(value)} keys" if isinstance(value, dict) else described(value)
        raise Refusal(f"must be a table with one key, the step's name, not {shape}")
    ((name, fields),) = value.items()
    if name not in STEPS:
        raise Refusal(f"unknown step{meant(name, STEPS)}", at=(name,))
    kind = STEPS[name]
    names = [field.name for field in attrs.fields(kind)]
    is_table = isinstance(fields, dict) and (kind is not Raw or "data" in fields)  # { b64 = "…" } is the field itself
    table = fields if is_table else {} if fields is True else {names[0]: fields} if names else None
    if table is None:
        raise Refusal(f"must be true, not {described(fields)}", at=(name,))
    try:
        step: Step = made.structure(table, kind)
    except Exception as error:  # noqa: BLE001 - faults_of raises errors of other kinds again
        path, reason = next(iter(faults_of(error)))
        raise Refusal(reason, at=(name, *(path if is_table else path[1:]))) from None
    return step


def _arguments(value: Any, _kind: Any) -> Arguments:
    if not isinstance(value, str | Mapping):
        raise Refusal(f"must be a table, or the text of the arguments, not {described(value)}")
    return value


def _data(value: Any, _kind: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict) or set(value) != {"b64"} or not isinstance(value["b64"], str):
        raise Refusal('must be a string, or bytes as { b64 = "…" }')
    try:
        return base64.b64decode(value["b64"], validate=True)
    except binascii.Error:
        raise Refusal("must be base64", at=("b64",)) from None
