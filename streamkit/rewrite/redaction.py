"""The stage that replaces matches of patterns: ``redact``.

Only text that may be the beginning of a match waits. ``_begun`` makes a second expression from each pattern. It matches where
an attempt to match the pattern reaches the end of the text, so that the text to come decides the result. Before the first such
place, all matches are final: they are the matches in the whole text.

Python's own parser and compiler of regular expressions are used for this, since nothing public shows the parts of a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final

from attrs import frozen

from streamkit.errors import UsageError, check_type
from streamkit.events import Event
from streamkit.pipeline import Stage, stage_within
from streamkit.rewrite.stage import PARTS, Part, TextChanger, checked_parts
from streamkit.rewrite.window import CONTEXT, Window
from streamkit.text.quoting import quoted

_PARSER: Final[Any] = import_module("re._parser")
_COMPILER: Final[Any] = import_module("re._compiler")
_OP: Final[Any] = import_module("re._constants")


@frozen
class _Pattern:
    """A pattern to replace."""

    whole: re.Pattern[str]
    begun: re.Pattern[
        str
    ]  #: matches where a match may have begun that the text to come decides, or at the end of the text
    longest: int  #: on how many characters a match may depend


class RedactionWindow(Window):
    """A window that replaces matches. The text that it holds back may be the beginning of a match."""

    def __init__(self, patterns: Sequence[_Pattern], replacement: str) -> None:
        super().__init__(str, max(each.longest for each in patterns))
        self._patterns = patterns
        self._replacement = replacement

    def feed(self, text: str) -> Iterator[object]:
        self._text += text
        return self._replace(is_whole=False)

    def end(self) -> Iterator[object]:
        return self._replace(is_whole=True)

    def _replace(self, *, is_whole: bool) -> Iterator[object]:
        text, place = self._text, self._released
        # a search from a place may look at the text before it; a match begins at the place or after it
        found = [each.whole.search(text, place) for each in self._patterns]
        final = len(text) if is_whole else self._final(place)
        while True:
            first = min((match for match in found if match is not None), key=re.Match.start, default=None)
            if first is None or first.start() >= final:
                break
            yield from self._release(first.start())
            self._released = place = first.end()
            self.changed = True
            yield self._replacement
            for number, match in enumerate(found):
                if match is not None and match.start() < place:
                    found[number] = self._patterns[number].whole.search(text, place)
            if final < place:
                final = self._final(place)
        yield from self._release(final)
        if self._released > CONTEXT * self._hold:
            self._drop(self._released - self._hold)

    def _final(self, place: int) -> int:
        """Return the first place from ``place`` on at which a match may have begun."""
        place = max(place, len(self._text) - self._hold)
        begun = (each.begun.search(self._text, place) for each in self._patterns)
        return min(match.start() for match in begun if match is not None)

    def _release(self, place: int) -> Iterator[object]:
        while self._marks and self._marks[0][0] <= place:
            yield from self._send(self._marks[0][0])
            yield self._marks.pop(0)[1]
        yield from self._send(place)

    def _send(self, place: int) -> Iterator[str]:
        if place > self._released:
            text, self._released = self._text[self._released : place], place
            yield text


def redact(
    *patterns: str | re.Pattern[str],
    replacement: str = "[redacted]",
    hold: int | None = None,
    parts: Iterable[Part] | Part = PARTS,
) -> Stage[list[Event], list[Event]]:
    """Create a stage that replaces each match of ``patterns``, even if the match is spread over several deltas.

    Every positional argument is a pattern: a ``str`` is literal text, and a compiled pattern is a regular expression.
    ``replacement`` is written in place of each match. If two matches overlap, the match that begins first is replaced.
    If both matches begin at the same place, a literal text takes precedence over an expression, a longer text over a
    shorter text, and an expression that was passed earlier over one that was passed later. Text that may be the
    beginning of a match is held back, so the length of a match must have a limit: write ``[a-z]{1,64}`` instead of
    ``[a-z]+``. ``hold`` is the largest number of characters that may be held back. By default, ``hold`` is the length
    of the longest possible match, including the text that the pattern's assertions look at (``(?=…)``, ``$``).
    ``parts`` says which kinds of text to redact, as in ``map_text``. By default, all kinds are redacted. In the
    arguments of calls, numbers and the names of members are never replaced. Raises UsageError for wrong arguments.
    """
    literals = [each for each in patterns if isinstance(each, str)]
    expressions = [each for each in patterns if isinstance(each, re.Pattern) and isinstance(each.pattern, str)]
    if len(literals) + len(expressions) < len(patterns) or not patterns or "" in literals:
        is_one = len(patterns) == 1 and isinstance(patterns[0], Collection) and not isinstance(patterns[0], str | bytes)
        hint = "; write them as separate arguments, redact(*patterns)" if is_one else ""
        raise UsageError(
            f"redact: each pattern must be a compiled regular expression of text, or a str that is not empty{hint}"
        )
    check_type("redact: replacement", replacement, str, "'[redacted]', for example")
    if literals:
        longest_first = sorted(literals, key=len, reverse=True)
        expressions.insert(0, re.compile("|".join(map(re.escape, longest_first))))
    found = [*map(_read, expressions)]
    longest = max(each.longest for each in found)
    if hold is not None and (type(hold) is not int or hold < longest):
        raise UsageError(
            f"redact: hold must be at least {longest}, the length of the longest match, or left out; not {quoted(hold)}"
        )
    if not isinstance(replacement, str):
        raise UsageError(f"redact: replacement must be a str, not {quoted(replacement)}")
    chosen = checked_parts("redact", parts, longest if hold is None else hold)
    return stage_within(
        "events", "redact", lambda report: TextChanger(lambda: RedactionWindow(found, replacement), chosen, report)
    )


# -- regular expressions -------------------------------------------------------------------------------------------------


def _read(pattern: re.Pattern[str]) -> _Pattern:
    """Return what is known of a pattern. Raises UsageError if its matches have no longest, or may be empty."""
    parsed = _PARSER.parse(pattern.pattern, pattern.flags)
    shortest, longest = parsed.getwidth()
    longest += sum(_asserted(parsed))
    if longest >= _PARSER.MAXREPEAT:
        raise UsageError(
            f"redact: {quoted(pattern.pattern)} can match text of any length, which can't be held back; limit its "
            "repetitions, as in {1,64} instead of +"
        )
    if not shortest:
        raise UsageError(
            f"redact: {quoted(pattern.pattern)} can match an empty text; a match must have at least one character"
        )
    begun = _sequence([(_OP.BRANCH, (None, [_begun(parsed), _sequence([_END])]))])
    return _Pattern(pattern, _COMPILER.compile(begun, pattern.flags & ~re.DEBUG), int(longest))


def _asserted(parsed: Any) -> Iterator[int]:
    """Yield how far each assertion of a parsed expression looks; the ends of words and lines look at one character."""
    for code, argument in _codes(parsed):
        if code is _OP.AT:
            yield 1
        elif code in _ASSERTIONS:
            yield argument[1].getwidth()[1]


def _codes(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each code of a parsed expression with its argument."""
    for code, argument in parsed:
        yield code, argument
        for inner in argument if isinstance(argument, tuple | list) else [argument]:
            for each in inner if isinstance(inner, list) else [inner]:
                if isinstance(each, _PARSER.SubPattern):
                    yield from _codes(each)


def _sequence(codes: Iterable[tuple[Any, Any]]) -> Any:
    return _PARSER.SubPattern(_PARSER.State(), [*codes])


_END: Final = (_OP.AT, _OP.AT_END_STRING)
_ANYTHING: Final = [(_OP.CATEGORY, _OP.CATEGORY_SPACE), (_OP.CATEGORY, _OP.CATEGORY_NOT_SPACE)]
_ANY_TEXT: Final = (_OP.MIN_REPEAT, (0, _OP.MAXREPEAT, _sequence([(_OP.IN, _ANYTHING)])))
_NEVER: Final = (_OP.ASSERT_NOT, (1, _sequence([])))
_REPEATS: Final = {_OP.MAX_REPEAT, _OP.MIN_REPEAT, _OP.POSSESSIVE_REPEAT}
_ASSERTIONS: Final = {_OP.ASSERT, _OP.ASSERT_NOT}
_CHARACTERS: Final = {_OP.LITERAL, _OP.NOT_LITERAL, _OP.IN, _OP.ANY}
_BEGINNINGS: Final = {_OP.AT_BEGINNING, _OP.AT_BEGINNING_STRING, _OP.AT_BEGINNING_LINE}
#: Codes that may look at the text after their place.
_LOOKING: Final = {*_ASSERTIONS, _OP.AT}
#: Codes that ``_loose`` changes: a negative assertion would then match too little, and a look-behind have no fixed width.
_LOOSENED: Final = {_OP.POSSESSIVE_REPEAT, _OP.ATOMIC_GROUP, _OP.GROUPREF, _OP.GROUPREF_EXISTS}


def _begun(parsed: Any) -> Any:
    """Return an expression that matches where an attempt to match ``parsed`` reaches the end of the text."""
    codes = [*parsed]
    if len(codes) < 2:
        return _sequence(_reaching(*codes[0]) if codes else [_NEVER])
    # in halves: the compiler calls itself for each branch within a branch, and a literal text may have 10,000 characters
    first, rest = codes[: len(codes) // 2], codes[len(codes) // 2 :]
    return _sequence([(_OP.BRANCH, (None, [_begun(first), _sequence([*_loose(first), *_begun(rest)])]))])


def _reaching(code: Any, argument: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the codes that match where an attempt to match one code reaches the end of the text."""
    if code in _CHARACTERS:
        yield _END
    elif code in _REPEATS:
        _, most, inner = argument
        yield _OP.MAX_REPEAT, (0, max(most - 1, 0), _loose(inner))
        yield from _begun(inner)
    elif code is _OP.SUBPATTERN:
        yield _OP.SUBPATTERN, (None, *argument[1:3], _begun(argument[3]))
    elif code is _OP.ATOMIC_GROUP:
        yield from _begun(argument)
    elif code is _OP.BRANCH:
        yield _OP.BRANCH, (None, [*map(_begun, argument[1])])
    elif code in _ASSERTIONS:
        if argument[0] > 0:
            yield _OP.ASSERT, (1, _begun(argument[1]))
        elif any(each in _LOOKING for each, _ in _codes(argument[1])):  # a look-behind that looks ahead: ``(?<!x\b)``
            yield from (_ANY_TEXT, _END)
        else:
            yield _NEVER
    elif code is _OP.AT:  # ``$`` matches before a line break at the end too
        line_break = _OP.MAX_REPEAT, (0, 1, _sequence([(_OP.LITERAL, ord("\n"))]))
        yield _NEVER if argument in _BEGINNINGS else (_OP.ASSERT, (1, _sequence([line_break, _END])))
    else:  # a reference to a group
        yield from (_ANY_TEXT, _END)


def _loose(parsed: Iterable[tuple[Any, Any]]) -> Any:
    """Return an expression without groups and references, which matches all that ``parsed`` matches."""
    return _sequence(code for given in parsed for code in _loosened(*given))


def _loosened(code: Any, argument: Any) -> Iterator[tuple[Any, Any]]:
    if code in _REPEATS:
        yield _OP.MAX_REPEAT, (*argument[:2], _loose(argument[2]))
    elif code is _OP.SUBPATTERN:
        yield _OP.SUBPATTERN, (None, *argument[1:3], _loose(argument[3]))
    elif code is _OP.ATOMIC_GROUP:
        yield from _loose(argument)
    elif code is _OP.BRANCH:
        yield _OP.BRANCH, (None, [*map(_loose, argument[1])])
    elif code in _ASSERTIONS:
        if not any(each in _LOOSENED for each, _ in _codes(argument[1])):
            yield code, (argument[0], _loose(argument[1]))
    elif code in {_OP.GROUPREF, _OP.GROUPREF_EXISTS}:
        yield _ANY_TEXT
    else:
        yield code, argument
