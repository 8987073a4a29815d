"""Text from elsewhere moves no terminal, and as JSON it means what it meant."""

import json
import sys
import unicodedata

import pytest

from streamkit.text.quoting import printable, printable_json

#: C0, DEL, C1, line ends, marks of direction and others that show nothing, a blank that is no space, halves of pairs.
NASTY = "\x00\x07\x1b[2J\n\r\x7f\x85\x9b31m\u2028\u2029\u061c\u200e\u200f\u202a\u202e\u2066\u2069\ufeff\u200b\u00ad\u00a0\ud83d\udc00"


@pytest.mark.parametrize("letter", [*NASTY, "\U000e0041", "\U000f0000"])
def test_what_cannot_be_seen_is_escaped_as_json_has_it(letter):
    assert printable(f"a{letter}b").isprintable()
    assert printable_json({f"a{letter}b": [letter]}).isprintable()
    assert json.loads(printable_json({f"a{letter}b": [letter]})) == {f"a{letter}b": [letter]}
    printable_json(letter).encode()


def test_what_can_be_seen_stays():
    said = 'a "b" \\ ü 日本語 العربية 🙂 {}'
    assert printable(said) == said
    assert printable_json(said) == '"a \\"b\\" \\\\ ü 日本語 العربية 🙂 {}"'


def test_no_control_and_no_mark_of_any_kind_is_left():
    every = "".join(map(chr, [*range(0x32000), *range(0x32000, sys.maxunicode + 1, 32)]))  # the rest is in long runs
    left = {unicodedata.category(letter) for letter in printable(every)}
    assert not left & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
