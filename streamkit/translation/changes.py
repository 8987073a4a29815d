"""Change members of a written request by their paths: leave a member out, set it, or rename it.

An operator changes what an upstream gets (``Upstream.set``, ``Upstream.drop``), and a refused member is left out
(``refused_members``). The body is in the upstream's dialect, so a path has that dialect's names, separated by dots:
``generationConfig.seed``. The step ``*`` means each item of an array: ``tools.*.strict``. Objects on the way are copied,
because a body may share them with the request that it was written from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final

import orjson
from attrs import frozen

from streamkit.errors import UsageError
from streamkit.report import StreamReport

#: Members that must not be changed, because streamkit relies on them: it chooses the model, reads the response as a stream
#: or as one body, restores the tools' names, and must not lose the conversation.
ESSENTIAL: Final = frozenset({
    "model", "stream", "messages", "input", "contents", "tools", "toolConfig", "functions", "background",
})  # fmt: skip
_ABSENT: Final = ...  #: stands for no value; JSON has no such value


@frozen
class Change:
    """A change of the member at ``path``: it gets ``value``, or the new name ``name``; with neither, it is left out."""

    path: str
    value: Any = _ABSENT
    name: str = ""
    #: The loss that is counted if a member of the request was left out or replaced.
    loss: str = "parameter_replaced"

    def apply(self, body: dict[str, Any], report: StreamReport) -> dict[str, Any]:
        """Return the changed body; the same object if there is nothing to change."""
        steps = self.path.split(".")
        changed: dict[str, Any] = self._changed(body, steps)
        if changed is not body and not self.name and _has(body, steps):
            report.lose(self.loss, what=self.path)
        return changed

    def _changed(self, value: Any, steps: Sequence[str]) -> Any:
        step, *below = steps
        if step == "*":
            if not isinstance(value, list):
                return value
            items = [self._changed(item, below) for item in value]
            return value if all(map(is_, items, value)) else items
        if not isinstance(value, dict):
            return value
        if not below:
            return self._changed_member(value, step)
        inner = value.get(step)
        if self.value is not _ABSENT and not isinstance(inner, dict | list):
            inner = {}
        changed = self._changed(inner, below)
        return value if changed is inner else {**value, step: changed}

    def _changed_member(self, members: dict[str, Any], name: str) -> dict[str, Any]:
        if self.value is not _ABSENT:
            return members if _same(members.get(name, _ABSENT), self.value) else {**members, name: self.value}
        if name not in members:
            return members
        if self.name:
            return {self.name if each == name else each: value for each, value in members.items()}
        return {each: value for each, value in members.items() if each != name}


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same; ``True`` and ``1`` are not."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _has(value: Any, steps: Sequence[str]) -> bool:
    """Return whether there is a value at this path, or on the way to it one that is neither an object nor an array."""
    if not steps or not isinstance(value, dict | list):
        return value is not None
    step, *below = steps
    if isinstance(value, list):
        return step == "*" and any(_has(item, below) for item in value)
    return _has(value.get(step), below)


def operator_changes(values: Mapping[str, Any], drop: Iterable[str]) -> tuple[Change, ...]:
    """Return the changes that leave out the members at the paths in ``drop``, and set ``values``, whose keys are paths.

    A table in ``values`` sets its members, and keeps the other members of that object. Raises UsageError, whose
    message begins with ``drop`` or ``set``.
    """
    dropped = [Change(_checked(path, "drop")) for path in drop]
    return (*dropped, *(Change(path, value) for path, value in _leaves(values, "")))


def _leaves(values: Mapping[Any, Any], above: str) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        path = _checked(f"{above}{name}" if isinstance(name, str) else name, "set")
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{path}.")
        else:
            try:
                orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
            except TypeError:
                raise UsageError("set: write JSON values; a date is a string") from None
            yield path, value


def _checked(path: object, field: str) -> str:
    steps = path.split(".") if isinstance(path, str) else [""]
    if not all(steps) or "*" in (steps[0], steps[-1]):
        raise UsageError(f"{field}: write names with dots between them, such as metadata.user_id or tools.*.strict")
    if steps[0] in ESSENTIAL and (len(steps) == 1 or field == "set"):
        raise UsageError(f"{field}: leave {steps[0]} out; streamkit writes this member itself, and relies on it")
    return ".".join(steps)
