"""Convert TOML tables to attrs values with cattrs, and report invalid values with their paths.

Nothing is coerced: ``"8080"`` is no number and ``1`` no boolean. An unknown key is rejected with a suggestion. All faults of a
table are reported together. No message repeats a value, except a misspelt keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.cols import homogenous_tuple_structure_factory, is_mapping, mapping_structure_factory
from cattrs.errors import AttributeValidationNote, ForbiddenExtraKeysError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn, override

from streamkit.errors import UsageError
from streamkit.toml.findings import KeyPath, Refusal, meant, quoted

Hook: TypeAlias = Callable[[Any, Any], Any]

#: Fields whose key in the file differs from the field's name, each with that key.
FILE_NAMES: Final[Mapping[str, str]] = {"targets": "to"}
#: Largest float that is accepted. Most floats are seconds, and this is a century.
MOST: Final = 3.2e9
#: How messages name each scalar type.
SCALARS: Final[Mapping[type, str]] = {str: "a string", bool: "true or false", int: "an integer"}


class ReportedElsewhere(Exception):
    """Raised for a value that is invalid only because of another value, which is reported instead."""


def strict_converter() -> Converter:
    """Return a strict converter from tables to attrs values. ``faults_of`` explains the errors of its ``structure``."""
    made = Converter(forbid_extra_keys=True)
    for kind, word in SCALARS.items():
        made.register_structure_hook(kind, exactly(kind, word))
    made.register_structure_hook(float, _number)
    made.register_structure_hook_func(_is_literal, _word)
    made.register_structure_hook_factory(_is_tuple, _shaped(list, homogenous_tuple_structure_factory))
    made.register_structure_hook_factory(is_mapping, _shaped(dict, mapping_structure_factory))
    made.register_structure_hook_factory(attrs.has, table_hook)
    return made


def is_no_key(field: attrs.Attribute[Any]) -> bool:
    """Return whether the table has no key for this field (``no_key`` in the field's metadata)."""
    return "no_key" in field.metadata


def keys_of(kind: type) -> list[str]:
    """Return the keys of the table that is converted to ``kind``."""
    names = [field.name for field in attrs.fields(kind) if not is_no_key(field)]
    return [FILE_NAMES.get(name, name) for name in names]


def faults_of(error: Exception) -> Iterator[tuple[KeyPath, str]]:
    """Yield each fault in an error of ``structure``: the path from the value to the fault, and the reason."""
    match error:
        case ExceptionGroup():
            for inner in error.exceptions:
                for path, reason in faults_of(inner):
                    yield (*_key_of(inner), *path), reason
        case ForbiddenExtraKeysError():
            for name in error.extra_fields:
                yield (name,), f"unknown key{meant(name, keys_of(error.cl))}"
        case KeyError():
            yield (), "is required"
        case Refusal():
            yield tuple(FILE_NAMES.get(str(key), key) for key in error.at), str(error)
        case UsageError():  # from an upstream; the message begins with the field
            field, _, reason = str(error).partition(": ")
            yield (() if field == "name" else (field,)), reason
        case ValueError():  # from a validator of attrs; the message begins with the field: 'port' must be >= 0: -1
            yield (), str(error).rpartition("' ")[2]
        case ReportedElsewhere():
            pass
        case _:
            raise error


def _key_of(error: Exception) -> KeyPath:
    """Return the key or array index where an error arose; cattrs adds it to the error as a note."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return (FILE_NAMES.get(note.name, note.name),)
        if isinstance(note, IterableValidationNote):
            return (note.index,)
    return ()


# -- hooks -------------------------------------------------------------------------------------------------------------


def described(value: Any) -> str:
    """Describe the type of a value, without the value."""
    words = {**SCALARS, bool: "a boolean", float: "a float", list: "an array", dict: "a table"}
    return words.get(type(value), "a date or time")


def exactly(kind: type, word: str) -> Hook:
    """Return a hook that accepts only values of the type ``kind``; messages call the type ``word``."""

    def hook(value: Any, _kind: Any) -> Any:
        if type(value) is not kind:
            raise Refusal(f"must be {word}, not {described(value)}")
        return value

    return hook


def _number(value: Any, _kind: Any) -> float:
    if type(value) not in {int, float}:
        raise Refusal(f"must be a number, not {described(value)}")
    if not -MOST < value < MOST:  # NaN fails too
        raise Refusal(f"must be a number below {MOST:,.0f}; leave the key out for its default")
    return float(value)


def _word(value: Any, kind: Any) -> Any:
    words = get_args(kind)
    if type(value) is not str or value not in words:
        found = quoted(value) if isinstance(value, str) else described(value)
        raise Refusal(f"must be one of {', '.join(words)}, not {found}")
    return value


def _is_literal(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _shaped(shape: type, factory: Callable[[Any, Any], Hook]) -> Callable[[Any, Converter], Hook]:
    return lambda kind, made: _only(shape, factory(kind, made))


def table_hook(kind: Any, made: Converter, own: Mapping[str, Hook] | None = None) -> Hook:
    """Return the hook for an attrs class, with other hooks for the fields in ``own``.

    A field's validator runs together with its hook, so that the fault has the field's path.
    """
    attrs.resolve_types(kind)
    overrides: dict[str, Any] = {
        field.name: override(
            rename=FILE_NAMES.get(field.name),
            struct_hook=_validated(field, (own or {}).get(field.name) or made.get_structure_hook(field.type)),
        )
        for field in attrs.fields(kind)
    }
    return _only(dict, make_dict_structure_fn(kind, made, **overrides))


def _validated(field: attrs.Attribute[Any], hook: Hook) -> Hook:
    def validated(value: Any, kind: Any) -> Any:
        made = hook(value, kind)
        if field.validator is not None:
            try:
                field.validator(None, field, made)
            except UsageError as error:
                raise Refusal(str(error).removeprefix(f"{field.name}: ")) from None
        return made

    return validated


def _only(shape: type, hook: Hook) -> Hook:
    """Return ``hook``, restricted to values of the type ``shape``: cattrs would also accept a string as a sequence."""
    word = described(shape())

    def only(value: Any, kind: Any) -> Any:
        if not isinstance(value, shape):
            raise Refusal(f"must be {word}, not {described(value)}")
        return hook(value, kind)

    return only
