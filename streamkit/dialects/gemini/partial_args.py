"""Turn arguments that arrive as values with a path (``partialArgs``) into JSON text that grows.

Theory: each value names its place (``$.a.b[0]['x y']``), and a string may arrive in pieces. If the places arrive in the order
of the text, as a model writes them, the text is emitted as it grows: the containers around the last value stay open until a
value arrives that is not in them. If a place is used again after another one, the emitted text cannot be changed. From then
on everything is held, and at the end each changed member of the arguments is written again as a whole. Of duplicate keys, the
last one counts (``arguments_out_of_order``).

Rules. Empty places of an array are null (``arguments_gap``). An entry without a path or value, or with a place inside a value
that is not a container, is refused, and the decoder counts it. Then the arguments are known to be incomplete, so their text is
never closed. A number is a double here. Text and gaps together are limited
by ``limits.arguments_chars``, the nesting by ``limits.json_depth``, an index by ``limits.index``.

Source: dialects.md §5.3; RFC 9535 §2.1, §2.3.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, TypeAlias

import orjson

from streamkit.dialects.members.values import DEPTH
from streamkit.errors import ArgumentsTooLong
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.object_scanner import TextBuffer

PathStep: TypeAlias = str | int
Path: TypeAlias = tuple[PathStep, ...]
#: ``.name``, ``[0]``, ``['name']`` or ``["name"]``.
_step: Final = re.compile(
    r"""\.(?P<name>[^.\[\]'"]++)"""
    r"""|\[(?:(?P<index>[0-9]{1,10})|'(?P<single>(?:[^'\\]++|\\.)*+)'|"(?P<double>(?:[^"\\]++|\\.)*+)")\]""",
    re.DOTALL,
).match
#: Sequences in a single-quoted name that are written differently between double quotes.
_quotes: Final = re.compile(r"""\\'|\\.|\"""", re.DOTALL)
_DOUBLE: Final = {r"\'": "'", '"': r"\""}
VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArgs:
    """The arguments of one call. Each method returns new text, to append to what earlier calls returned.

    The report is an argument, and is not kept.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._root: dict[str, Any] = {}
        self._chars = 0
        self._begun = False
        self._continues = False  #: whether the last string continues
        self.lack = False  #: whether a part of the arguments could not be read
        #: The place of the last emitted value. The containers around it are open in the text.
        self._open: Path = ()
        self._string: TextBuffer | None = None  #: the value at ``_open``, if it is a string; more of it may arrive
        self._late: dict[PathStep, None] = {}  #: members that were changed out of order
        self._path: tuple[object, Path | None] = (None, None)  #: the last path, as text and as steps

    def add(self, part: object, report: StreamReport) -> str | None:
        """Add one entry of ``partialArgs``. Return the new text, or None if the entry is invalid. Raises ArgumentsTooLong."""
        text = self._add(part, report)
        self.lack = self.lack or (text is None and bool(part))
        return text

    def _add(self, part: object, report: StreamReport) -> str | None:
        if not isinstance(part, dict):
            return None
        path = part.get("jsonPath")
        if path != self._path[0]:  # the next piece of a string has the same path again
            self._path = path, steps_of(path, min(self._limits.json_depth, DEPTH))
        steps = self._path[1]
        if steps is None or any(type(step) is int and step > self._limits.index for step in steps):
            return None
        kinds = [name for name in VALUES if name in part]
        if not kinds:
            if steps != self._open:
                return None
            self._continues = part.get("willContinue") is True  # an entry without a value may end a string
            return ""
        leaf, text = _value(kinds[0], part[kinds[0]])
        if text is None or len(kinds) > 1:
            return None
        self._continues = part.get("willContinue") is True
        return self._put(steps, leaf, text, report)

    @property
    def are_whole(self) -> bool:
        """Return whether there are values and all are complete, so that the call may have ended here."""
        return bool(self._root) and not self._continues and not self.lack

    def close(self) -> str:
        """Return the rest of the text, because the call ended. Arguments that lack a part get no last brace."""
        return self._rest() + "}" * (not self.lack)

    def cut(self) -> str:
        """Return the held text without an end, because the stream ended inside the call."""
        return self._rest() if self._late else ""

    def _put(self, steps: Path, leaf: Any, text: str, report: StreamReport) -> str | None:
        """Put a value in its place. Return its text, or "" if it is held."""
        node: Any = self._root
        known = 0
        while known < len(steps) and _has(node, steps[known]):
            node = node[steps[known]]
            known += 1
        missing = steps[known:]
        if not missing:
            return self._replace(steps, node, leaf, text, report)
        if type(node) is not (dict if type(missing[0]) is str else list):
            return None
        gaps = [step for step in missing if type(step) is int]
        if type(missing[0]) is int:
            gaps[0] -= len(node)
        self._grow(len(text) + 5 * sum(gaps) + sum(len(str(step)) + 4 for step in missing))
        if any(gaps):
            report.repair("arguments_gap")
        _build(node, missing, leaf)
        if self._late or steps[:known] != self._open[:known]:
            return self._keep(steps, report)
        grown = self._leave(known) + _members(missing, gaps) + text
        self._begun, self._open = True, steps
        self._string = leaf if type(leaf) is TextBuffer else None
        return grown

    def _replace(self, steps: Path, node: Any, leaf: Any, text: str, report: StreamReport) -> str | None:
        """Put a value in a place that has one: more of a string, or a replacement."""
        if isinstance(node, dict | list):
            return None
        self._grow(len(text))
        if isinstance(node, TextBuffer) and isinstance(leaf, TextBuffer):
            node.append(leaf.whole())
            if node is self._string and not self._late:
                return text[1:]
        else:
            holder: Any = self._root
            for step in steps[:-1]:
                holder = holder[step]
            holder[steps[-1]] = leaf
        return self._keep(steps, report)

    def _keep(self, steps: Path, report: StreamReport) -> str:
        if not self._late:
            report.repair("arguments_out_of_order")
        self._late[steps[0]] = None
        return ""

    def _leave(self, level: int) -> str:
        """Return the text that ends the last value and leads to the next member of the container at ``level``."""
        if not self._begun:
            return "{"
        return '"' * (self._string is not None) + _closers(self._open[level + 1 :]) + ","

    def _rest(self) -> str:
        """Return the missing text without the last brace."""
        end = '"' * (self._string is not None) + _closers(self._open[1:])
        late = {key: self._root[key] for key in self._late}  # type: ignore[index] # the first step is a key
        members = orjson.dumps(late, default=TextBuffer.whole).decode()[1:-1]
        return ("" if self._begun else "{") + end + ("," + members if members else "")

    def _grow(self, chars: int) -> None:
        self._chars += chars
        if self._chars > self._limits.arguments_chars:
            raise ArgumentsTooLong(self._limits.arguments_chars)


def steps_of(path: object, depth: int) -> Path | None:
    """Return the steps of a path; None if it is malformed, names the whole arguments, or is deeper than ``depth``."""
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    steps: list[PathStep] = []
    at = 1
    while at < len(path):
        match = _step(path, at)
        if match is None or len(steps) == depth:
            return None
        at = match.end()
        step = int(match["index"]) if match["index"] else match["name"] or _name(match)
        if step is None:
            return None
        steps.append(step)
    return tuple(steps) if steps and type(steps[0]) is str else None


def _name(match: re.Match[str]) -> str | None:
    """Return a quoted name without escapes (RFC 9535 §2.3.1.2); None if it is malformed."""
    quoted = match["double"]
    if quoted is None:
        quoted = _quotes.sub(lambda found: _DOUBLE.get(found[0], found[0]), match["single"])
    try:
        name = str(json.loads(f'"{quoted}"', strict=False))
        name.encode()
    except ValueError:  # also for half a surrogate pair
        return None
    return name


def _value(name: str, value: object) -> tuple[Any, str | None]:
    """Return a value and its text (of a string only the opening quote and the content). The text is None for a wrong type."""
    if name == "stringValue" and type(value) is str:
        return TextBuffer(value), orjson.dumps(value).decode()[:-1]
    if name == "numberValue" and (type(value) is int or (type(value) is float and math.isfinite(value))):
        return value, orjson.dumps(value).decode()
    if name == "boolValue" and type(value) is bool:
        return value, "true" if value else "false"
    return None, "null" if name == "nullValue" and value in (None, "NULL_VALUE") else None


def _has(node: object, step: PathStep) -> bool:
    if type(step) is str:
        return type(node) is dict and step in node
    return type(node) is list and type(step) is int and step < len(node)


def _build(node: Any, missing: Path, leaf: Any) -> None:
    """Put ``leaf`` below a container, and make the containers in between."""
    for step, following in zip(missing, (*missing[1:], None), strict=True):
        value: Any = leaf if following is None else {} if type(following) is str else []
        if type(step) is int:
            node += [None] * (step - len(node))
            node.append(value)
        else:
            node[step] = value
        node = value


def _members(missing: Path, gaps: list[int]) -> str:
    """Return the text that leads through new members to a value: keys, opening brackets, and null for each gap."""
    text, fill = "", iter(gaps)
    for number, step in enumerate(missing):
        if type(step) is int:
            text += "[" * (number > 0) + "null," * next(fill)
        else:
            text += "{" * (number > 0) + orjson.dumps(step).decode() + ":"
    return text


def _closers(path: Path) -> str:
    """Return the brackets that close the containers below the first, innermost first."""
    return "".join("}" if type(step) is str else "]" for step in reversed(path))
