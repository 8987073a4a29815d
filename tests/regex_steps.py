"""How much work a regular expression makes, counted: a backtracking matcher that counts the characters it looks at.

It matches as ``re`` does, without the shortcuts that ``re`` takes to find where a match may begin, so that it counts no less
than ``re`` does. ``hostile`` makes the texts that such a matcher is slow on out of the pattern itself: what each repetition
repeats, many times, behind what comes before it, and the beginning of a match, many times.

Source: https://docs.python.org/3/library/re.html; the parse trees are those of ``re`` itself.
"""

from __future__ import annotations

import re
import re._constants as c
import re._parser as parser
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

Node: TypeAlias = tuple[Any, Any]
Then: TypeAlias = Callable[[int], int | None]
#: Characters that stand for the others of a class: letters, digits, punctuation, blanks.
LIKELY = "a0_-. \n:/\"'\\A[(<{="
REPEATS = {c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT}
ONE = {c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN}


def tree_of(pattern: re.Pattern[Any]) -> Sequence[Node]:
    text = pattern.pattern
    return list(parser.parse(text.decode("latin-1") if isinstance(text, bytes) else text, pattern.flags & ~re.UNICODE))


def fits(node: Node, char: str, flags: int) -> bool:
    """Whether one character is what a node of one character wants."""
    kind, value = node
    if kind is c.ANY:
        return bool(flags & re.DOTALL) or char != "\n"
    if kind is c.IN:
        negated = value[0][0] is c.NEGATE
        return negated != any(fits(each, char, flags) for each in value[negated:])
    if kind is c.CATEGORY:
        return in_category(str(value), char)
    if kind is c.RANGE:
        return any(value[0] <= ord(each) <= value[1] for each in forms(char, flags))
    same = any(value == ord(each) for each in forms(char, flags))
    return same != (kind is c.NOT_LITERAL)


def forms(char: str, flags: int) -> set[str]:
    return {form for form in (char, char.lower(), char.upper()) if len(form) == 1} if flags & re.IGNORECASE else {char}


def in_category(name: str, char: str) -> bool:
    if "DIGIT" in name:
        found = char.isdecimal()
    elif "SPACE" in name:
        found = char.isspace()
    else:
        found = char.isalnum() or char == "_"
    return found != ("_NOT_" in name)


@cache
def parsed(pattern: re.Pattern[Any]) -> tuple[Sequence[Node], dict[tuple[int, str, int], bool]]:
    """The tree of a pattern, and a place for what is known of its nodes: by id, character and flags, whether it fits."""
    return tree_of(pattern), {}


class Matcher:
    """Counts in ``steps`` while it matches one pattern against one text."""

    def __init__(self, pattern: re.Pattern[Any], text: str, most: int) -> None:
        self.tree, self.known = parsed(pattern)
        self.flags, self.text, self.most = pattern.flags, text, most
        self.steps = 0
        self.groups: dict[int, tuple[int, int]] = {}

    def search(self) -> int:
        """The steps to find all matches."""
        at = 0
        while at <= len(self.text):
            end = self.match(at)
            at = at + 1 if end is None else max(end, at + 1)
        return self.steps

    def match(self, at: int) -> int | None:
        return self._sequence(self.tree, 0, at, self.flags, lambda end: end)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self.most:
            raise OverflowError

    def _one(self, node: Node, at: int, flags: int) -> bool:
        self._step()
        if at >= len(self.text):
            return False
        key = id(node), self.text[at], flags
        if key not in self.known:
            self.known[key] = fits(node, self.text[at], flags)
        return self.known[key]

    def _sequence(self, nodes: Sequence[Node], number: int, at: int, flags: int, then: Then) -> int | None:
        while number < len(nodes) and nodes[number][0] in ONE:
            if not self._one(nodes[number], at, flags):
                return None
            number, at = number + 1, at + 1
        if number == len(nodes):
            return then(at)
        return self._node(nodes[number], at, flags, lambda end: self._sequence(nodes, number + 1, end, flags, then))

    def _node(self, node: Node, at: int, flags: int, then: Then) -> int | None:
        kind, value = node
        if kind in REPEATS:
            return self._repeat(kind, *value, at, flags, then)
        if kind is c.SUBPATTERN:
            group, more, less, inner = value

            def grouped(end: int) -> int | None:
                if group is not None:
                    self.groups[group] = (at, end)
                return then(end)

            return self._sequence(list(inner), 0, at, (flags | more) & ~less, grouped)
        if kind is c.BRANCH:
            ways = (self._sequence(list(way), 0, at, flags, then) for way in value[1])
            return next((end for end in ways if end is not None), None)
        if kind is c.ATOMIC_GROUP:
            end = self._sequence(list(value), 0, at, flags, lambda end: end)
            return None if end is None else then(end)
        if kind in {c.ASSERT, c.ASSERT_NOT}:
            return self._assert(kind is c.ASSERT, *value, at, flags, then)
        if kind is c.AT:
            self._step()
            return then(at) if self._is_at(str(value), at) else None
        if kind is c.GROUPREF:
            begin, end = self.groups.get(value, (0, 0))
            self.steps += end - begin
            same = self.text[at : at + end - begin].lower() == self.text[begin:end].lower()
            return then(at + end - begin) if same else None
        raise NotImplementedError(kind)

    def _assert(self, wanted: bool, way: int, inner: Any, at: int, flags: int, then: Then) -> int | None:
        start = at if way == 1 else at - parser.SubPattern.getwidth(inner)[0]
        found = None if start < 0 else self._sequence(list(inner), 0, start, flags, lambda end: end)
        return then(at) if (found is not None) == wanted else None

    def _is_at(self, name: str, at: int) -> bool:
        if "BOUNDARY" in name:
            before = at > 0 and in_category("WORD", self.text[at - 1])
            behind = at < len(self.text) and in_category("WORD", self.text[at])
            return (before != behind) == (name == "AT_BOUNDARY")
        if "BEGINNING" in name:
            return at == 0
        return at == len(self.text) or (name == "AT_END" and self.text[at:] == "\n")

    def _repeat(self, kind: Any, least: int, most: int, inner: Any, at: int, flags: int, then: Then) -> int | None:
        nodes = list(inner)
        if len(nodes) == 1 and nodes[0][0] in ONE:
            return self._run(kind, least, most, nodes[0], at, flags, then)
        if kind is c.POSSESSIVE_REPEAT:
            end = self._again(c.MAX_REPEAT, least, most, nodes, at, flags, lambda end: end)
            return None if end is None else then(end)
        return self._again(kind, least, most, nodes, at, flags, then)

    def _again(
        self, kind: Any, least: int, most: int, nodes: Sequence[Node], at: int, flags: int, then: Then
    ) -> int | None:
        """One more time, and what follows; a lazy one in the other order."""

        def once() -> int | None:
            if not most:
                return None

            def on(end: int) -> int | None:
                if end == at:  # an empty match is not repeated
                    return None
                return self._again(kind, max(least - 1, 0), most - 1, nodes, end, flags, then)

            return self._sequence(nodes, 0, at, flags, on)

        ways = [lambda: None if least else then(at), once]
        for way in ways if kind is c.MIN_REPEAT else reversed(ways):
            if (end := way()) is not None:
                return end
        return None

    def _run(self, kind: Any, least: int, most: int, node: Node, at: int, flags: int, then: Then) -> int | None:
        """A repetition of one character, without a call for each."""
        count = 0
        if kind is not c.MIN_REPEAT:
            while count < most and self._one(node, at + count, flags):
                count += 1
            if kind is c.POSSESSIVE_REPEAT:
                return then(at + count) if count >= least else None
            while count >= least:
                self._step()
                if (end := then(at + count)) is not None:
                    return end
                count -= 1
            return None
        while True:
            if count >= least and (end := then(at + count)) is not None:
                return end
            if count >= most or not self._one(node, at + count, flags):
                return None
            count += 1


# -- hostile texts -----------------------------------------------------------------------------------------------------


def chars_of(node: Node, flags: int) -> list[str]:
    """A few characters that a node of one character takes, as unlike as may be."""
    wanted = [chr(node[1])] if node[0] is c.LITERAL else []
    if node[0] is c.IN:
        wanted = [
            chr(value if kind is c.LITERAL else value[0]) for kind, value in node[1] if kind in {c.LITERAL, c.RANGE}
        ]
    fit = [char for char in dict.fromkeys([*wanted, *LIKELY]) if fits(node, char, flags)]
    return fit or [next(chr(code) for code in range(0x3000) if fits(node, chr(code), flags))]


def sample(nodes: Sequence[Node], flags: int) -> str:
    """A short text that matches."""
    text = ""
    for kind, value in nodes:
        if kind in ONE:
            text += chars_of((kind, value), flags)[0]
        elif kind in REPEATS:
            text += sample(list(value[2]), flags) * (value[0] or 1)
        elif kind is c.SUBPATTERN:
            text += sample(list(value[3]), (flags | value[1]) & ~value[2])
        elif kind is c.BRANCH:
            text += sample(list(value[1][0]), flags)
        elif kind is c.ATOMIC_GROUP:
            text += sample(list(value), flags)
    return text


def repeats(nodes: Sequence[Node], flags: int, before: str = "") -> Iterator[tuple[str, str]]:
    """Each repetition of a pattern: what comes before it, and what it repeats, in several forms."""
    for number, (kind, value) in enumerate(nodes):
        here = before + sample(nodes[:number], flags)
        if kind in REPEATS:
            inner = list(value[2])
            one = len(inner) == 1 and inner[0][0] in ONE
            yield from ((here, pump) for pump in (chars_of(inner[0], flags)[:4] if one else [sample(inner, flags)]))
            yield from repeats(inner, flags, here)
        elif kind is c.SUBPATTERN:
            yield from repeats(list(value[3]), (flags | value[1]) & ~value[2], here)
        elif kind is c.BRANCH:
            for way in value[1]:
                yield from repeats(list(way), flags, here)
                yield here, sample(list(way), flags)
        elif kind is c.ATOMIC_GROUP:
            yield from repeats(list(value), flags, here)
        elif kind in {c.ASSERT, c.ASSERT_NOT}:
            yield from repeats(list(value[1]), flags, here)


def hostile(pattern: re.Pattern[Any], times: int) -> Iterator[str]:
    """Texts on which a backtracking matcher is slow, if it is on any."""
    tree, flags = tree_of(pattern), pattern.flags
    for before, pump in dict.fromkeys(repeats(tree, flags)):
        for end in ("", "\x00"):
            yield before + pump * times + end
            yield (before + pump * 2) * times + end
            yield (before + pump * 8 + "-") * (times // 4) + end
            yield (before + pump * 8 + " ") * (times // 4) + end
    for number in range(1, len(tree) + 1):
        yield sample(tree[:number], flags) * times + "\x00"


def work(pattern: re.Pattern[Any], text: str, *, searched: bool, most: int = 10**6) -> int:
    """The steps of one match at the beginning, or of finding all; ``most`` where there are more."""
    matcher = Matcher(pattern, text, most)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        if searched:
            return matcher.search()
        matcher.match(0)
    except OverflowError:
        return most
    finally:
        sys.setrecursionlimit(limit)
    return matcher.steps


def slow_texts(pattern: re.Pattern[Any], *, searched: bool, times: int = 100, ratio: float = 2.3) -> Iterator[str]:
    """The hostile texts whose work grows faster than they do, still where they are several times as long."""
    for short, long in zip(hostile(pattern, times), hostile(pattern, 2 * times), strict=True):
        if _grows(pattern, short, long, searched=searched, ratio=ratio):
            yield long


def _grows(pattern: re.Pattern[Any], short: str, long: str, *, searched: bool, ratio: float) -> bool:
    before, behind = (work(pattern, text, searched=searched) for text in (short, long))
    return behind > ratio * before and behind > 2 * len(long)
