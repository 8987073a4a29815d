r"""Check whether a JSON text that arrives in fragments is one complete object, much faster than ``JSONScanner``.

The text is folded until almost nothing is left. Escapes become ``x``; each string becomes one byte, each number or literal
another; white space disappears. Then each container without inner containers becomes a value, repeatedly. Of the finished
members of an open container only the last one stays. Each step is one C call over a whole fragment, whatever the structure.
The state for all text so far is a short line of open brackets. A token at the end that may continue (an escape, a number)
waits for more text.

The grammar (RFC 8259) and the limit on nesting are those of ``JSONScanner``. Folded parts are written as control characters,
which JSON forbids in its raw text, so ``12 34``, ``truefalse`` and ``tru\n`` fold to nothing valid.

This module does not report where and why a text is malformed; ``JSONScanner`` does.

A MiB of arguments in small members takes a tenth of the scanner's time, and a twentieth of the memory of parsing it.

Source: RFC 8259 §2-§7; design.md §9 ("Folding").
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final, TypeAlias

#: Long fragments are folded in pieces of this many characters, to use little memory at a time.
PIECE: Final = 1 << 14
#: The byte that replaces a string.
_STRING: Final = b"\x01"
#: The byte that replaces any other whole value.
_VALUE: Final = b"\x02"
_SPACES: Final = b" \t\n\r"
_RAW_IN_STRINGS: Final = b"\t\n\r"  # white space elsewhere, so not in ``_CONTROLS``
_CONTROLS: Final = bytes(set(range(0x20)) - set(_RAW_IN_STRINGS))
#: A backslash that begins no valid escape (escaped backslashes are already replaced).
_NO_ESCAPE: Final = re.compile(rb'\\(?!["/bfnrt]|u[0-9A-Fa-f]{4})')
#: A backslash whose escape may continue in the next fragment: the last one, at most five bytes before the end.
_CUT_ESCAPE: Final = re.compile(rb"\\(?:u[0-9A-Fa-f]{0,3})?\Z")
_LITERAL: Final = rb"(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)"
_LITERALS: Final = re.compile(_LITERAL)
#: The bytes of numbers and literals: a token at the end of a fragment may continue.
_TOKEN: Final = b"-+.0123456789" + bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1))
#: The longest valid token, after all runs of digits are shortened to two.
_TOKEN_BYTES: Final = len(b"-12.12e+12")
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
