r"""Check whether a JSON text that arrives in fragments is one complete object, in a tenth of the time of ``JSONScanner``.

The text is folded until almost nothing is left. Escapes become ``x``; each string becomes one byte, each number or literal
another; white space disappears. Then each container without inner containers becomes a value, repeatedly. Of the finished
members of an open container only the last one stays. Each step is one C call over a whole fragment, whatever the structure.
The state is a short line of open brackets, and the token at the end that may continue (an escape, a number).

The grammar and the limit on nesting are those of ``JSONScanner``, which also reports where and why a text is malformed. Folded
parts are written as control characters, which JSON forbids in its raw text, so ``12 34``, ``truefalse`` and ``tru\n`` fold to
nothing valid.

``TextBuffer`` stores a growing text in large pieces instead of thousands of small strings; ``LazyScanner`` is one with a
scanner.

Source: RFC 8259 §2-§7; design.md §9 ("Folding").
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final, TypeAlias

PIECE: Final = 1 << 14  #: long fragments are folded in pieces of this many characters, to use little memory at a time
_STRING: Final = b"\x01"  #: the byte that replaces a string
_VALUE: Final = b"\x02"  #: the byte that replaces any other whole value
_SPACES: Final = b" \t\n\r"
_RAW_IN_STRINGS: Final = b"\t\n\r"  # white space elsewhere, so not in ``_CONTROLS``
_CONTROLS: Final = bytes(set(range(0x20)) - set(_RAW_IN_STRINGS))
_NO_ESCAPE: Final = re.compile(rb'\\(?!["/bfnrt]|u[0-9A-Fa-f]{4})')  #: escaped backslashes are already replaced
_CUT_ESCAPE: Final = re.compile(rb"\\(?:u[0-9A-Fa-f]{0,3})?\Z")  #: may continue in the next fragment
_LITERAL: Final = rb"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)"
_LITERALS: Final = re.compile(_LITERAL)
#: The bytes of numbers and literals: a token at the end of a fragment may continue.
_TOKEN: Final = b"-+.0123456789" + bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1))
_TOKEN_BYTES: Final = len(b"-12.12e+12")  #: the longest valid token, after all runs of digits are shortened to two
_DIGITS: Final = re.compile(rb"([0-9]{2})[0-9]+")
_ANY: Final = rb"(?:[\x01\x02]|%b)" % _LITERAL
_WHOLE: Final = re.compile(rb"\{(?:\x01:%b(?:,\x01:%b)*+)?\}|\[(?:%b(?:,%b)*+)?\]" % (_ANY, _ANY, _ANY, _ANY))
#: Two token bytes with only white space between them: this is a fault, and removing the white space would hide it.
_APART: Final = re.compile(rb" (?<=[-+.0-9A-Za-z] ) *[-+.0-9A-Za-z]")  # begins with one byte: takes a third of the time
_TO_SPACES: Final = bytes.maketrans(b"\t\n\r", b"   ")
_ITEMS: Final = re.compile(rb"\[[\x01\x02](?:,[\x01\x02])++(?=,|\Z)")
_MEMBERS: Final = re.compile(rb"\{\x01:[\x01\x02](?:,\x01:[\x01\x02])++(?=,|\Z)")
#: Open containers, each at the place of a value, and then any valid beginning of the content of the last one.
_VIABLE: Final = re.compile(
    rb"(?:\[(?:[\x01\x02],)?|\{(?:\x01:[\x01\x02],)?\x01:)*(?:[\x01\x02]|\{(?:\x01:[\x01\x02],)?\x01?|\{\x01:[\x01\x02])?"
)
_STEPS: Final = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
#: The state of a scanner: the attributes ``malformed``, ``_in_string``, ``_kept``, ``_folded`` and ``_root``.
State: TypeAlias = tuple[bool, bool, bytes, bytes, bytes]


def scanned(text: str, depth: int) -> ObjectScanner:
    """Return a scanner that has read a whole text. Parsing it with orjson would need 15 times the text's size in memory."""
    scanner = ObjectScanner(depth=depth)
    scanner.feed(text)
    return scanner


class ObjectScanner:
    """Folds the fragments of one JSON text."""

    __slots__ = ("_depth", "_folded", "_in_string", "_kept", "_root", "malformed")

    def __init__(self, *, depth: int = 128) -> None:
        #: True if no continuation can turn the text into one JSON value. A token that waits at the end is not checked yet.
        self.malformed = False
        self._depth = depth
        self._in_string = False
        self._kept = b""  # text that may continue: an escape in a string, a number or literal elsewhere
        self._folded = b""
        self._root = b""  # the first byte of the text

    @property
    def state(self) -> State:
        """The state for all text so far. Assign it again to go back to this point."""
        return self.malformed, self._in_string, self._kept, self._folded, self._root

    @state.setter
    def state(self, state: State) -> None:
        self.malformed, self._in_string, self._kept, self._folded, self._root = state

    @property
    def complete_object(self) -> bool:
        """True if the text so far is one whole JSON object, white space aside."""
        return self._folded == _VALUE and self._root == b"{" and not self._kept and not self.malformed

    @property
    def open(self) -> bool:
        """True if no beginning of the text so far is a whole value."""
        return not self.malformed and self._folded != _VALUE

    def feed(self, text: str) -> None:
        """Fold one more fragment. After a fault nothing is read."""
        for begin in range(0, len(text), PIECE):
            if not self.malformed:
                self.malformed = not self._fold(text[begin : begin + PIECE].encode("utf-8", "surrogatepass"))

    def _fold(self, raw: bytes) -> bool:
        """Fold a piece. Return False for a fault."""
        if self._kept:
            raw, self._kept = self._kept + raw, b""
        if b"\\" in raw:
            raw = raw.replace(b"\\\\", b"xx")
            if (cut := _CUT_ESCAPE.search(raw, max(0, len(raw) - 5))) is not None:
                raw, self._kept = raw[: cut.start()], cut[0]
            if _NO_ESCAPE.search(raw):
                return False
            raw = raw.replace(b'\\"', b"xx")  # any other backslash outside a string is invalid JSON and found below
        if len(raw.translate(None, _CONTROLS)) != len(raw):
            return False
        parts = raw.split(b'"')
        began_inside, outside = self._in_string, parts[self._in_string :: 2]
        inside = b"".join(parts[not began_inside :: 2])
        if len(inside.translate(None, _RAW_IN_STRINGS)) != len(inside):
            return False
        self._in_string = began_inside is (len(parts) % 2 == 1)
        if not outside:
            return True  # the middle of a string
        structure = _STRING.join(outside)
        if self._in_string:
            structure += _STRING
        elif self._kept:  # a backslash outside a string
            return False
        return self._fold_structure(structure)

    def _fold_structure(self, structure: bytes) -> bool:
        """Fold the text outside strings. Return False for a fault."""
        if not self._in_string:
            head = structure.rstrip(_TOKEN)
            if len(head) < len(structure):
                kept = structure[len(head) :]
                if len(kept) > _TOKEN_BYTES and len(kept := _DIGITS.sub(rb"\1", kept)) > _TOKEN_BYTES:
                    return False
                structure, self._kept = head, kept
        spaced, structure = structure, structure.translate(None, _SPACES)
        if len(spaced) > len(structure) and _APART.search(spaced.translate(_TO_SPACES)):
            return False
        if not structure:
            return True
        self._root = self._root or structure[:1]
        line = whole = self._folded + structure
        height, count = 0, 1
        while count and height <= self._depth:
            line, count = _WHOLE.subn(_VALUE, line)
            height += count > 0
        line = _LITERALS.sub(_VALUE, line)
        line = _ITEMS.sub(lambda items: b"[" + items[0][-1:], line)
        line = self._folded = _MEMBERS.sub(lambda members: b"{" + members[0][-3:], line)
        if height + line.count(b"{") + line.count(b"[") > self._depth:
            depths = accumulate([_STEPS.get(byte, 0) for byte in whole])
            if max(depths) > self._depth:
                return False
        return _VIABLE.fullmatch(line) is not None


JOIN_EVERY = 512  #: a list of 14-character strings takes ten times their text (performance.md §6)


class TextBuffer:
    """Fragments in order. Each character is copied twice: into a part, and into the whole text."""

    __slots__ = ("_parts", "_tail", "chars")

    def __init__(self, text: str = "") -> None:
        self._parts: list[str] = []
        self._tail: list[str] = [text] if text else []
        self.chars = len(text)

    def append(self, fragment: str) -> None:
        tail = self._tail
        tail.append(fragment)
        self.chars += len(fragment)
        if len(tail) >= JOIN_EVERY:
            self._parts.append("".join(tail))
            tail.clear()

    def whole(self) -> str:
        return "".join(self._parts + self._tail)

    def equals(self, text: str) -> bool:
        """Return whether ``text`` equals the whole text. The parts are joined only if the lengths are equal."""
        return len(text) == self.chars and text == self.whole()

    def take(self) -> str:
        whole = "".join(self._parts + self._tail)
        self._parts.clear()
        self._tail.clear()
        self.chars = 0
        return whole

    def clear(self) -> None:
        self._parts.clear()
        self._tail.clear()
        self.chars = 0


class LazyScanner(TextBuffer):
    """Checks whether a growing text is one complete JSON object. It scans only new text, and only when asked."""

    __slots__ = ("_scanner",)

    def __init__(self, depth: int, text: str = "") -> None:
        super().__init__(text)
        self._scanner = ObjectScanner(depth=depth)

    def append_to_end(self, text: str) -> int | None:
        """Add ``text`` up to the end of the JSON object that it completes. Return the number of characters added.

        Return None if all was added, since no part of ``text`` completes the object.
        """
        scanner, waited = self._scanner, self.take()
        before, was_open = scanner.state, scanner.open
        scanner.feed(waited + text)
        if scanner.open:  # nearly always true; scanning in one piece takes half of the time
            return None
        if waited:
            scanner.state = before
            scanner.feed(waited)
            before, was_open = scanner.state, scanner.open
            scanner.feed(text)
        if not was_open:
            return None
        ends_object = scanner.complete_object
        if ends_object:
            return len(text.rstrip(" \t\n\r"))
        scanner.state = before
        end = _feed_to_end(scanner, text)
        if not scanner.complete_object:  # the text became invalid before the object was complete
            scanner.feed(text[end:])
            return None
        return end

    @property
    def complete_object(self) -> bool:
        if self.chars:
            end = (self._tail or self._parts)[-1].rstrip(" \t\n\r")
            if end and end[-1] != "}":  # nearly always true; the text is then scanned later, in few pieces
                return False
            self._scanner.feed(self.take())
        return self._scanner.complete_object


def _feed_to_end(scanner: ObjectScanner, text: str) -> int:
    """Feed text to an ``open`` scanner until it is not open any more. Return the number of characters fed."""
    still_open, end = 0, len(text)
    while end - still_open > 1:
        before, middle = scanner.state, (still_open + end) // 2
        scanner.feed(text[still_open:middle])
        if scanner.open:
            still_open = middle
        else:
            scanner.state, end = before, middle
    scanner.feed(text[still_open:end])
    return end
