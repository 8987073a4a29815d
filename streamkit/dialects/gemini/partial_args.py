"""Arguments that come as values with a path (``partialArgs``) to JSON text that grows.

Theory: each value names its place (``$.a.b[0]['x y']``), and a string may come in pieces. Where the places come in the order
of the text, which is how a model writes them, text is handed out as it grows: the containers on the way to the last value stay
open until a value comes that is not in them. A place that was left and is touched again can't be mended in text that was
handed out already: from then on everything is kept back, and at the end each member of the arguments that was touched since is
written once more, whole. Of duplicate keys the last one counts (``arguments_out_of_order``).

Rules. Places of an array that nothing fills are null (``arguments_gap``). What has no path, no value, or a place inside a
value that is no container is refused, and the decoder counts it. A number is a double on this wire. Text and gaps together
are bounded by ``limits.arguments_chars``, the nesting by ``limits.json_depth``, an index by ``limits.index``.

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
from streamkit.tool_calls.text_buffer import TextBuffer

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]
#: ``.name``, ``[0]``, ``['name']`` or ``["name"]``.
_step: Final = re.compile(
    r"""\.(?P<name>[^.\[\]'"]++)"""
    r"""|\[(?:(?P<index>[0-9]{1,10})|'(?P<single>(?:[^'\\]++|\\.)*+)'|"(?P<double>(?:[^"\\]++|\\.)*+)")\]""",
    re.DOTALL,
).match
#: In a name between single quotes: what must be written otherwise between double ones.
_quotes: Final = re.compile(r"""\\'|\\.|\"""", re.DOTALL)
_DOUBLE: Final = {r"\'": "'", '"': r"\""}
VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArgs:
    """The arguments of one call. Each method returns the text that it settled, to append to what it returned before.

    No report is kept: they are part of the state of a decoder, which is tried with another one (``FrameDecoder.tried``).
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._root: dict[str, Any] = {}
        self._chars = 0
        self._begun = False
        self._continues = False  #: the last string said that more of it comes
        #: Where the last value that was handed out stands: the containers on the way are open in the text.
        self._open: Path = ()
        self._string: TextBuffer | None = None  #: that value, if it is a string: it may go on
        self._late: dict[Step, None] = {}  #: members that were touched out of order
        self._path: tuple[object, Path | None] = (None, None)  #: the last path as it stood, and its steps

    def add(self, part: object, report: StreamReport) -> str | None:
        """One entry of ``partialArgs``; None if it is none. Raises ArgumentsTooLong."""
        if not isinstance(part, dict):
            return None
        path = part.get("jsonPath")
        if path != self._path[0]:  # a string that goes on has the same one
            self._path = path, steps_of(path, min(self._limits.json_depth, DEPTH))
        steps = self._path[1]
        if steps is None or any(type(step) is int and step > self._limits.index for step in steps):
            return None
        kinds = [name for name in VALUES if name in part]
        if not kinds:
            if steps != self._open:
                return None
            self._continues = part.get("willContinue") is True  # a string may end so
            return ""
        leaf, text = _value(kinds[0], part[kinds[0]])
        if text is None or len(kinds) > 1:
            return None
        self._continues = part.get("willContinue") is True
        return self._put(steps, leaf, text, report)

    @property
    def are_whole(self) -> bool:
        """Return whether there is a value and each is whole, so that the call may have ended here."""
        return bool(self._root) and not self._continues

    def close(self) -> str:
        """The call ended: the rest of its text."""
        return self._rest() + "}"

    def cut(self) -> str:
        """The stream ended inside the call: what was kept back, and no end."""
        return self._rest() if self._late else ""

    def _put(self, steps: Path, leaf: Any, text: str, report: StreamReport) -> str | None:
        """Put a value into its place: give its text, or keep it back."""
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
        """A value for a place that has one: more of its string, or another value instead."""
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
        """What ends the last value and leads to the next member of the container at ``level``."""
        if not self._begun:
            return "{"
        return '"' * (self._string is not None) + _closers(self._open[level + 1 :]) + ","

    def _rest(self) -> str:
        """All that the text still lacks but its last brace."""
        end = '"' * (self._string is not None) + _closers(self._open[1:])
        late = {key: self._root[key] for key in self._late}  # type: ignore[index]  # the first step is a key
        members = orjson.dumps(late, default=TextBuffer.whole).decode()[1:-1]
        return ("" if self._begun else "{") + end + ("," + members if members else "")

    def _grow(self, chars: int) -> None:
        self._chars += chars
        if self._chars > self._limits.arguments_chars:
            raise ArgumentsTooLong(self._limits.arguments_chars)


def steps_of(path: object, depth: int) -> Path | None:
    """The steps of a path; None for one that is none, leads to the whole or deeper than ``depth``."""
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
    """A name between quotes, its escapes read (RFC 9535 §2.3.1.2); None where they are none."""
    quoted = match["double"]
    if quoted is None:
        quoted = _quotes.sub(lambda found: _DOUBLE.get(found[0], found[0]), match["single"])
    try:
        name = str(json.loads(f'"{quoted}"', strict=False))
        name.encode()
    except ValueError:  # half a surrogate pair as well
        return None
    return name


def _value(name: str, value: object) -> tuple[Any, str | None]:
    """A value as the tree keeps it and as text; a string's has its opening quote only. No text: it is of another type."""
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
    """Put ``leaf`` below a container, with all the containers on its way."""
    for step, following in zip(missing, (*missing[1:], None), strict=True):
        value: Any = leaf if following is None else {} if type(following) is str else []
        if type(step) is int:
            node += [None] * (step - len(node))
            node.append(value)
        else:
            node[step] = value
        node = value


def _members(missing: Path, gaps: list[int]) -> str:
    """The text that leads through new members to a value: keys, opening brackets, and null for each gap."""
    text, fill = "", iter(gaps)
    for number, step in enumerate(missing):
        if type(step) is int:
            text += "[" * (number > 0) + "null," * next(fill)
        else:
            text += "{" * (number > 0) + orjson.dumps(step).decode() + ":"
    return text


def _closers(path: Path) -> str:
    """The brackets that close the containers below the first, innermost first."""
    return "".join("}" if type(step) is str else "]" for step in reversed(path))
