"""A JSON value against a type hint, all the way down: what is wrong, and where.

The official clients describe their requests as TypedDicts or pydantic models. pydantic itself is too kind a judge: it takes
``Iterable`` for anything lazily, passes unknown keys, and turns numbers into text. Here a list must be a list, a literal one of
its words, and a key that is not in the type is a fault at every level.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from attrs import field, frozen

try:
    from pydantic import BaseModel
except ImportError:  # only the clients bring it
    BaseModel = None

LISTS = (list, Sequence, Iterable, Collection, tuple, set)
SCALARS = {str: str, bytes: str, int: int, float: (int, float), bool: bool}
#: Where it is wrong in these, a value is no such thing at all.
TAGS = {"role", "type"}
Fault = tuple[tuple[str | int, ...], str]


@frozen
class Field:
    hint: Any
    required: bool
    default: Any = None


@frozen
class Checker:
    """Checks values against hints. ``changes`` are hints to use instead of a field's own, by class and field."""

    changes: Mapping[tuple[str, str], Any] = field(factory=dict)

    def faults(self, value: Any, hint: Any) -> list[str]:
        return [f"{shown(path)}: {words}" for path, words in self.check(value, hint, ())]

    def check(self, value: Any, hint: Any, path: tuple[str | int, ...]) -> list[Fault]:
        hint = bare(hint)
        origin = get_origin(hint) or hint
        arguments = get_args(hint)
        if hint in (Any, object) or isinstance(hint, typing.TypeVar):
            return []
        if origin is Literal:
            fits = any(value == word and type(value) is type(word) for word in arguments)
            return [] if fits else [(path, f"{value!r} is none of {', '.join(map(repr, arguments))}")]
        if origin in (Union, types.UnionType):
            return self._union(value, arguments, path)
        if origin in LISTS or getattr(origin, "__name__", "") == "SequenceNotStr":
            return self._list(value, arguments, path)
        if origin in (dict, Mapping):
            return self._mapping(value, arguments, path)
        if is_object(hint):
            return self._object(value, hint, path)
        return scalar(value, hint, path)

    def _list(self, value: Any, arguments: tuple[Any, ...], path: tuple[str | int, ...]) -> list[Fault]:
        if not isinstance(value, list):
            return [(path, f"a list is needed, not {value!r}")]
        return [fault for n, inner in enumerate(value) for fault in self.check(inner, (*arguments, Any)[0], (*path, n))]

    def _mapping(self, value: Any, arguments: tuple[Any, ...], path: tuple[str | int, ...]) -> list[Fault]:
        if not isinstance(value, dict):
            return [(path, f"an object is needed, not {value!r}")]
        inner = arguments[1] if arguments else Any
        return [fault for key, item in value.items() for fault in self.check(item, inner, (*path, key))]

    def _object(self, value: Any, hint: type, path: tuple[str | int, ...]) -> list[Fault]:
        if not isinstance(value, dict):
            return [(path, f"{hint.__name__} is needed, not {value!r}")]
        known = dict(fields(hint))
        for (owner, name), new in self.changes.items():
            if owner == hint.__qualname__:
                known[name] = Field(new, required=name in known and known[name].required)
        faults = []
        for name, inner in value.items():
            if name in known:
                faults += self.check(inner, known[name].hint, (*path, name))
            elif not takes_more(hint):
                faults.append(((*path, name), f"{hint.__name__} has no such key"))
        faults += [
            ((*path, name), "is missing") for name, known_ in known.items() if known_.required and name not in value
        ]
        return faults

    def _union(self, value: Any, branches: tuple[Any, ...], path: tuple[str | int, ...]) -> list[Fault]:
        if any(get_origin(bare(branch)) is Literal for branch in branches):
            branches = tuple(branch for branch in branches if branch is not Any)  # "or whatever comes later"
        several = sum(is_object(bare(branch)) for branch in branches) > 1
        tried = []
        for branch in branches:
            faults = self.check(value, branch, path)
            if several and is_object(bare(branch)) and isinstance(value, dict):
                faults += [
                    ((*path, name), "is missing, and tells which it is") for name in tags(bare(branch)) - value.keys()
                ]
            if not faults:
                return []
            tried.append(faults)
        deep = [faults for faults in tried if any(where != path for where, _ in faults)]
        return nearest(deep or tried)


def nearest(tried: list[list[Fault]]) -> list[Fault]:
    """The faults of the branch that comes nearest, with what the others that come as near say of the same places."""
    best = min(tried, key=lambda faults: (any(path and path[-1] in TAGS for path, _ in faults), len(faults)))
    alike = [faults for faults in tried if [path for path, _ in faults] == [path for path, _ in best]]
    return [(path, "; ".join(dict.fromkeys(faults[n][1] for faults in alike))) for n, (path, _) in enumerate(best)]


def scalar(value: Any, hint: Any, path: tuple[str | int, ...]) -> list[Fault]:
    if hint in (None, type(None)):
        return [] if value is None else [(path, f"null is needed, not {value!r}")]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        words = [member.value for member in hint]
        return [] if value in words else [(path, f"{value!r} is none of {', '.join(map(repr, words))}")]
    wanted = SCALARS.get(hint)
    if wanted is not None and isinstance(value, wanted) and isinstance(value, bool) == (hint is bool):
        return []
    return [(path, f"{getattr(hint, '__name__', hint)} is needed, not {value!r}")]


def bare(hint: Any) -> Any:
    """A hint without what only qualifies it."""
    while True:
        origin = get_origin(hint)
        if origin is Annotated or getattr(origin, "__name__", "") in ("Required", "NotRequired"):
            hint = get_args(hint)[0]
        elif hasattr(origin, "__value__"):  # a TypeAliasType that was given its types
            hint = origin.__value__[get_args(hint)]
        elif hasattr(hint, "__value__"):
            hint = hint.__value__
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        else:
            return hint


def is_object(hint: Any) -> bool:
    return is_typed_dict(hint) or is_model(hint)


def is_typed_dict(hint: Any) -> bool:
    return hasattr(hint, "__required_keys__") and hasattr(hint, "__total__")


def is_model(hint: Any) -> bool:
    return BaseModel is not None and isinstance(hint, type) and issubclass(hint, BaseModel)


def takes_more(hint: type) -> bool:
    """Whether a TypedDict says that other keys may stand beside its own."""
    return is_typed_dict(hint) and getattr(hint, "__pydantic_config__", {}).get("extra") == "allow"


@cache
def fields(hint: type) -> dict[str, Field]:
    """The keys of a TypedDict or a model, as they stand on the wire."""
    if is_model(hint):
        return {
            known.alias or name: Field(known.annotation, known.is_required(), known.default)
            for name, known in hint.model_fields.items()
        }
    return dict(typed_dict_fields(hint))


def typed_dict_fields(hint: type) -> Iterator[tuple[str, Field]]:
    """``__required_keys__`` is wrong where annotations are text: what ``Required`` says is read from the hints themselves."""
    for name, inner in typing.get_type_hints(hint, include_extras=True).items():
        qualifiers = {getattr(get_origin(each), "__name__", "") for each in layers(inner)}
        required = (name in hint.__required_keys__ or "Required" in qualifiers) and "NotRequired" not in qualifiers
        yield alias(inner) or name, Field(inner, required)


def layers(hint: Any) -> Iterator[Any]:
    while get_origin(hint) in (Annotated, Required, NotRequired) or getattr(get_origin(hint), "__name__", "") in (
        "Required",
        "NotRequired",
    ):
        yield hint
        hint = get_args(hint)[0]


def alias(hint: Any) -> str | None:
    """The name on the wire, where a client annotates it."""
    for layer in layers(hint):
        for note in getattr(layer, "__metadata__", ()):
            if getattr(note, "alias", None):
                return note.alias
    return None


@cache
def tags(hint: type) -> frozenset[str]:
    """The keys of a model that say which of a union it is: one word each, which is its default as well."""
    if not is_model(hint):
        return frozenset()
    return frozenset(
        name for name, known in fields(hint).items()
        if get_origin(bare(known.hint)) is Literal and get_args(bare(known.hint)) == (known.default,)
    )  # fmt: skip


def shown(path: tuple[str | int, ...]) -> str:
    return (
        "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".") or "the body"
    )
