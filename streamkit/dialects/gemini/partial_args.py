"""Turn arguments that arrive as values with paths (``partialArgs``) into growing JSON text.

Each value names its place (``$.a.b[0]['x y']``), and a string may arrive in pieces. While the places arrive in the order of
the text, as a model writes them, the text is returned as it grows: the containers around the last value stay open until a
value arrives that is not in them. Text that was returned can't be changed, so a value for a place that was left can't be
inserted. From then on everything is held back, and at the end each top-level member that was touched since is written again,
whole. Of duplicate keys, JSON readers use the last (repair ``arguments_out_of_order``).

Rules: places of an array that no value fills are null (``arguments_gap``). An entry without a path or a value, or for a place
inside a value that is no container, is refused, and the decoder counts it. Numbers are doubles on this wire. The size of text
and gaps is limited by ``limits.arguments_chars``, nesting by ``limits.json_depth``, an index by ``limits.index``.

Source: dialects.md §5.3; RFC 9535 §2.1, §2.3 (the syntax of paths).
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
from streamkit.tool_calls.text_buffer import TextBuffer

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]
#: ``.name``, ``[0]``, ``['name']`` or ``["name"]``.
_step: Final = re.compile(
    r"""\.(?P<name>[^.\[\]'"]++)"""
    r"""|\[(?:(?P<index>[0-9]{1,10})|'(?P<single>(?:[^'\\]++|\\.)*+)'|"(?P<double>(?:[^"\\]++|\\.)*+)")\]""",
    re.DOTALL,
).match
#: Characters of a name in single quotes that are written differently in double quotes.
_quotes: Final = re.compile(r"""\\'|\\.|\"""", re.DOTALL)
_DOUBLE: Final = {r"\'": "'", '"': r"\""}
VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArgs:
    """The arguments of one call. Each method returns the text that is final by now, to append to earlier text.

    It keeps no report, since it is part of a decoder's state, which is tried with another report (``FrameDecoder.tried``).
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._root: dict[str, Any] = {}
        self._chars = 0
        self._begun = False
        self._continues = False  #: whether more of the last string will come
        #: The path of the last value that was returned. The containers on the way to it are open in the text.
        self._open: Path = ()
        self._string: TextBuffer | None = None  #: that value, if it is a string, which may grow
        self._late: dict[Step, None] = {}  #: members that were touched out of order
        self._path: tuple[object, Path | None] = (None, None)  #: the last path as written, and its steps

    def add(self, part: object, report: StreamReport) -> str | None:
        """Add one entry of ``partialArgs``, and return the new text; None for an invalid entry. Raises ArgumentsTooLong."""
        if not isinstance(part, dict):
            return None
        path = part.get("jsonPath")
        if path != self._path[0]:  # pieces of one string have the same path
            self._path = path, steps_of(path, min(self._limits.json_depth, DEPTH))
        steps = self._path[1]
        if steps is None or any(type(step) is int and step > self._limits.index for step in steps):
            return None
        kinds = [name for name in VALUES if name in part]
        if not kinds:
            if steps != self._open:
                return None
            self._continues = part.get("willContinue") is True  # a string may end with such an entry
            return ""
        leaf, text = _value(kinds[0], part[kinds[0]])
        if text is None or len(kinds) > 1:
            return None
        self._continues = part.get("willContinue") is True
        return self._put(steps, leaf, text, report)

    @property
    def are_whole(self) -> bool:
        """Whether there is a value, and each value is whole, so that the call may have ended here."""
        return bool(self._root) and not self._continues

    def close(self) -> str:
        """Return the rest of the text: the call ended."""
        return self._rest() + "}"

    def cut(self) -> str:
        """Return the text that was held back, without an end: the stream ended inside the call."""
        return self._rest() if self._late else ""

    def _put(self, steps: Path, leaf: Any, text: str, report: StreamReport) -> str | None:
        """Put a value in its place, and return its text, or hold it back."""
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
        """Set a value for a place that has one: append to its string, or replace it."""
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
        """Return the text from the end of the last value to the next member of the container at ``level``."""
        if not self._begun:
            return "{"
        return '"' * (self._string is not None) + _closers(self._open[level + 1 :]) + ","

    def _rest(self) -> str:
        """Return all text that is still missing, except the last brace."""
        end = '"' * (self._string is not None) + _closers(self._open[1:])
        late = {key: self._root[key] for key in self._late}  # type: ignore[index]  # the first step is a key
        members = orjson.dumps(late, default=TextBuffer.whole).decode()[1:-1]
        return ("" if self._begun else "{") + end + ("," + members if members else "")

    def _grow(self, chars: int) -> None:
        self._chars += chars
        if self._chars > self._limits.arguments_chars:
            raise ArgumentsTooLong(self._limits.arguments_chars)


def steps_of(path: object, depth: int) -> Path | None:
    """Return the steps of a path; None if it is invalid, deeper than ``depth``, or does not begin with a member's name."""
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    steps: list[Step] = []
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
    """Return a quoted name with its escapes resolved (RFC 9535 §2.3.1.2); None if they are invalid."""
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
    """Return a value for the tree, and its text (without the closing quote of a string); the text is None for a wrong type."""
    if name == "stringValue" and type(value) is str:
        return TextBuffer(value), orjson.dumps(value).decode()[:-1]
    if name == "numberValue" and (type(value) is int or (type(value) is float and math.isfinite(value))):
        return value, orjson.dumps(value).decode()
    if name == "boolValue" and type(value) is bool:
        return value, "true" if value else "false"
    return None, "null" if name == "nullValue" and value in (None, "NULL_VALUE") else None


def _has(node: object, step: Step) -> bool:
    if type(step) is str:
        return type(node) is dict and step in node
    return type(node) is list and type(step) is int and step < len(node)


def _build(node: Any, missing: Path, leaf: Any) -> None:
    """Put ``leaf`` below a container, and create the containers on the way."""
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
    """Return the brackets that close all containers below the first, innermost first."""
    return "".join("}" if type(step) is str else "]" for step in reversed(path))
