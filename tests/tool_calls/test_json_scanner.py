"""The scanner against a table of its own, against published conformance data, and against ``json`` on generated text."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamkit.tool_calls.json_scanner import JSONScanner
from tests.corpora import CORPORA, require_corpora

DEEP = 100_000  # for conformance data that is about the grammar alone

#: By the kind of its top-level value: whole texts, and texts that break off.
COMPLETE_BY_KIND = {
    "object": [
        "{}", " \t\r\n{ } \n", '{"a":1}', '{ "a" : [ 1 , 2.5 , { } ] , "b" : "" }', '{"a":1,"a":2}',
        '{"":{"":{"":[]}}}', '{"\\udfaa":0}',
    ],
    "array": [
        "[]", "[[[[]]],[]]", "[true,false,null]", "[0,-0,10,-10,0.5,1.0,1e0,1E+2,1e-2,0e0,0.00e-00,-1.5E+07]",
        "[18446744073709551616,1e21,0." + "1" * 100 + "]", '["\\ud800"]', '["\\udc00\\ud800x"]', "[1e400]",
        "[-1e400,1e-400]", "[" * 1100 + "]" * 1100,
    ],
    "string": ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00"', '"\x7f\u2028\u2029\u00a0\U0001f600\uffff"', '""'],
    "literal": ["true", "false ", "\nnull"],
    "number": ["7 ", "-0.25e+3\n"],
}  # fmt: skip
COMPLETE = [(text, kind) for kind, texts in COMPLETE_BY_KIND.items() for text in texts]
INCOMPLETE_BY_KIND = {
    None: ["", " \n"],
    "object": ["{", '{"', '{"a', '{"a"', '{"a":', '{"a": 1', '{"a": 1.', '{"a":1,', '{"a":[{"b":{}}]'],
    "array": ["[", "[1,", "[[]", '["\\', '["\\u', '["\\u00e', "[nul"],
    "string": ['"\\ud83d\\'],
    "literal": ["t", "fals"],
    "number": ["-", "1.", "1e", "1E-"],
}  # fmt: skip
INCOMPLETE = [(text, kind) for kind, texts in INCOMPLETE_BY_KIND.items() for text in texts]
#: By the reason of a fault: texts, and the index of the character at fault.
FAULTS = {
    "a comma without a value after it": [("[1,]", 3), ("[1,,2]", 3)],
    "a colon without a value after it": [('{"a":}', 5), ('{"a":,', 5)],
    "a comma without a key after it": [('{"a":1,}', 7), ('{"a":1,,', 7)],
    "a key without a colon after it": [('{"a" 1}', 5), ('{"a"}', 4)],
    "a character that begins no value": [
        ('{"a"::1}', 5), ("[,1]", 1), ("[}", 1), ("]", 0), ("}", 0), (",", 0), ("NaN", 0), ("[Infinity]", 1),
        ("[True]", 1), ("[+1]", 1), ("[.5]", 1), ("['a']", 1), ("// a\n{}", 0), ("\ufeff{}", 0), ("\x0c{}", 0),
        (" \x0c{}", 1), ("\u00a0{}", 0), ("[\uff11]", 1), ("\\u007b}", 0),
    ],
    "a key that is not a string": [("{a:1}", 1), ("{1:1}", 1), ("{,", 1), ("{]", 1), ("{'a':1}", 1), ('{"a":1,b', 7)],
    "neither a comma nor the end of an array after a value": [
        ("[1 2]", 3), ("[1}", 2), ('["a":1]', 4), ("[0x1]", 2), ("[1\u0665]", 2), ("[1.5.5]", 4), ("[truee]", 5),
        ("[1+1]", 2), ("[1e5e5]", 4), ("[1e5.5]", 4),
    ],
    "neither a comma nor the end of an object after a value": [('{"a":1 "b":2}', 7), ('{"a":[]]', 7)],
    "a number with a leading zero": [("[01]", 2), ("-00", 2), ("01", 1)],
    "a minus sign without a digit after it": [("[-]", 2), ("--", 1), ("-Infinity", 1)],
    "a decimal point without a digit after it": [("[1.]", 3), ("1.e5", 2)],
    "an exponent without a digit": [("[1e]", 3), ("[1ee]", 3), ("[1e+-1]", 4), ("[1E+ 1]", 4)],
    "a word that is neither true, false nor null": [("[tru]", 4), ("nul\n", 3), ("[fAlse]", 2)],
    "a backslash without a valid escape after it": [('["\\x41"]', 3), ('["\\\'"]', 3), ('["\\\n"]', 3), ('["\\U0041"]', 3)],
    "fewer than four hexadecimal digits after \\u": [
        ('["\\u"]', 4), ('["\\u00g0"]', 6), ('["\\u123"]', 7), ('["\\u\uff11234"]', 4), ('["\\u+123"]', 4),
    ],
    "a control character in a string": [('["a\nb"]', 3), ('{"\t":1}', 2), ('"\x00"', 1), ('"\x1f"', 1)],
    "text after the end of the value": [
        ("{}}", 2), ("{}{}", 2), ("[] ,", 3), ('{"a":1}```', 7), ('""""', 2), ("1 2", 2), ("1x", 1), ("null\x00", 4),
        ("{}\u00a0", 2), ("{}\x0b", 2), ("{} \x0c", 3),
    ],
}  # fmt: skip
MALFORMED = [(text, position, reason) for reason, texts in FAULTS.items() for text, position in texts]
EVERY_TEXT = [text for text, *_ in COMPLETE + INCOMPLETE + MALFORMED]


def fed(*fragments: str, depth: int = DEEP) -> JSONScanner:
    scanner = JSONScanner(depth=depth)
    for fragment in fragments:
        scanner.feed(fragment)
    return scanner


def finished(*fragments: str, depth: int = DEEP) -> JSONScanner:
    scanner = fed(*fragments, depth=depth)
    assert scanner.finish() == scanner.state
    return scanner


def is_object(scanner: JSONScanner) -> bool:
    return scanner.state == "complete" and scanner.root == "object"


def facts(scanner: JSONScanner) -> tuple[Any, ...]:
    return scanner.state, scanner.root, scanner.position, scanner.reason, is_object(scanner), scanner.scanned


# -- the table --


@pytest.mark.parametrize(("text", "root"), COMPLETE)
def test_a_whole_value_is_complete(text, root):
    scanner = finished(text)
    assert facts(scanner) == ("complete", root, len(text), None, root == "object", len(text))


@pytest.mark.parametrize(("text", "root"), INCOMPLETE)
def test_an_unfinished_value_is_incomplete(text, root):
    scanner = finished(text)
    assert facts(scanner) == ("incomplete", root, len(text), None, False, len(text))


@pytest.mark.parametrize(("text", "position", "reason"), MALFORMED)
def test_a_fault_is_named_with_its_character(text, position, reason):
    scanner = finished(text)
    assert (scanner.state, scanner.position, scanner.reason) == ("malformed", position, reason)
    assert not is_object(scanner)
    assert finished(text[:position]).state != "malformed"


@pytest.mark.parametrize("text", EVERY_TEXT)
def test_the_verdict_is_the_same_at_every_single_cut_and_character_by_character(text):
    whole = facts(finished(text))
    assert facts(finished(*text)) == whole
    for cut in range(0, len(text) + 1, max(1, len(text) // 200)):
        assert facts(finished(text[:cut], "", text[cut:])) == whole


# -- the rules --


def test_the_root_is_known_at_the_first_character_of_the_value():
    for first, root in {
        "{": "object",
        "[": "array",
        '"': "string",
        "-": "number",
        "7": "number",
        "n": "literal",
    }.items():
        assert fed(" \n").root is None
        assert fed(" \n", first).root == root
    assert fed("[", "{", '"').root == "array"


def test_a_value_that_fits_no_start_has_no_root():
    assert fed("x").root is None


def test_a_number_at_the_top_level_is_complete_only_when_it_cannot_grow():
    scanner = JSONScanner()
    assert scanner.feed("1") == "incomplete"
    assert scanner.feed("2") == "incomplete"
    assert scanner.feed("\n") == "complete"
    assert fed("12").finish() == "complete"
    assert fed("0").finish() == "complete"
    assert fed("1.5e3").finish() == "complete"
    assert fed("[12").finish() == "incomplete"


def test_white_space_keeps_a_value_complete_and_other_text_ends_it():
    scanner = fed("{}")
    assert scanner.feed(" \t\r\n") == "complete"
    assert scanner.feed("") == "complete"
    assert is_object(scanner)
    assert scanner.feed("  x") == "malformed"
    assert scanner.reason is not None
    assert scanner.reason.startswith("text after the end of the value")
    assert (scanner.position, scanner.root, is_object(scanner)) == (8, "object", False)


def test_after_a_fault_text_is_only_counted():
    scanner = fed("[1,]")
    assert scanner.feed("2]") == "malformed"
    assert scanner.finish() == "malformed"
    assert (scanner.position, scanner.reason, scanner.scanned) == (3, "a comma without a value after it", 6)


@pytest.mark.parametrize("depth", [1, 2, 128])
def test_nesting_up_to_the_depth_is_walked_and_one_more_is_a_fault(depth):
    assert finished("[" * (depth - 1) + "{}" + "]" * (depth - 1), depth=depth).state == "complete"
    scanner = finished("[" * depth + "{", depth=depth)
    assert (scanner.state, scanner.position) == ("malformed", depth)
    assert scanner.reason == f"nested deeper than {depth}"


def test_the_depth_is_128_unless_told_otherwise():
    scanner = JSONScanner()
    assert scanner.feed("[" * 128) == "incomplete"
    assert scanner.feed("[") == "malformed"
    assert scanner.reason == "nested deeper than 128"


def test_depth_counts_open_containers_and_not_all_of_them():
    assert finished("[" + "{}," * 500 + "[]]", depth=2).state == "complete"


# -- linear work and constant space --


def watched(monkeypatch) -> list[tuple[int, int]]:
    """Record where each step began and ended within its fragment."""
    spans: list[tuple[int, int]] = []

    def watch(step):
        def watched_step(scanner, text, i):
            end = step(scanner, text, i)
            spans.append((i, end))
            return end

        return watched_step

    monkeypatch.setattr(JSONScanner, "_STEPS", {place: watch(step) for place, step in JSONScanner._STEPS.items()})
    return spans


@pytest.mark.parametrize("size", [1, 7, 14, 10_000])
def test_each_character_is_walked_once(monkeypatch, size):
    text = json.dumps([{"place": "Zürich\n\\", "n": -12.5e-7, "ok": [True, None, {}]}] * 50, indent=1)
    fragments = [text[i : i + size] for i in range(0, len(text), size)]
    spans = watched(monkeypatch)
    scanner = JSONScanner()
    for fragment in fragments:
        spans.clear()
        scanner.feed(fragment)
        assert spans[0][0] == 0
        assert spans[-1][1] == len(fragment)
        assert all(end == start for (_, end), (start, _) in pairwise(spans))
        assert sum(end == start for start, end in spans) <= len(fragment)  # ends of numbers walk nothing
        assert len(spans) <= 2 * len(fragment)
    assert scanner.state == "complete"
    assert scanner.scanned == scanner.position == len(text)


def test_a_long_run_is_one_step(monkeypatch):
    spans = watched(monkeypatch)
    scanner = fed('"')
    for run in ("x" * 100_000, "\\n\\u00e9" * 10_000):
        spans.clear()
        scanner.feed(run)
        assert spans == [(0, len(run))]


def test_nothing_of_the_text_is_kept():
    scanner = fed('{"key":["', "x" * 1000 + "\\u00e", "9" + "y" * 1000, '",-12', "3456789" * 100, ",fals")
    kept = {name: getattr(scanner, name) for name in JSONScanner.__slots__}
    assert kept.pop("_nest") == ["}", "]"]
    assert all(len(value) < 20 for value in kept.values() if isinstance(value, str | list))


# -- conformance data --


def strict_text(document: bytes) -> str | None:
    """RFC 8259 §8.1: JSON is UTF-8. None is what could not be decoded, and so is no JSON."""
    try:
        return document.decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_json(document: bytes) -> bool:
    text = strict_text(document)
    return text is not None and finished(text).state == "complete"


def orjson_accepts(document: bytes) -> bool:
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError:
        return False
    return True


def suite(folder: str) -> dict[str, bytes]:
    if CORPORA is None:
        return {}
    files = (CORPORA / "nst+JSONTestSuite" / folder).glob("*.json")
    return {file.stem: file.read_bytes() for file in sorted(files)}


#: JSONTestSuite's documents that every parser must take or refuse, where that part of the suite is at hand.
PARSING = suite("test_parsing")
#: Its documents that parsers read differently. All of them are grammatical, but for those that are no UTF-8.
TRANSFORM = suite("test_transform")
NOT_UTF8 = {"string_1_invalid_codepoint", "string_2_invalid_codepoints", "string_3_invalid_codepoints"}
#: What the suite leaves open and RFC 8259 does not: these are no JSON, the other i_ documents are.
OPEN_BUT_NOT_JSON = {
    "i_string_UTF-16LE_with_BOM": "UTF-16 (§8.1)",
    "i_string_utf16BE_no_BOM": "UTF-16 (§8.1)",
    "i_string_utf16LE_no_BOM": "UTF-16 (§8.1)",
    "i_structure_UTF-8_BOM_empty_object": "a byte order mark (§8.1)",
    "i_string_UTF-8_invalid_sequence": "no UTF-8",
    "i_string_UTF8_surrogate_U+D800": "no UTF-8",
    "i_string_invalid_utf-8": "no UTF-8",
    "i_string_iso_latin_1": "no UTF-8",
    "i_string_lone_utf8_continuation_byte": "no UTF-8",
    "i_string_not_in_unicode_range": "no UTF-8",
    "i_string_overlong_sequence_2_bytes": "no UTF-8",
    "i_string_overlong_sequence_6_bytes": "no UTF-8",
    "i_string_overlong_sequence_6_bytes_null": "no UTF-8",
    "i_string_truncated-utf-8": "no UTF-8",
}


@pytest.mark.parametrize("name", PARSING)
def test_json_test_suite_is_judged_by_the_rfc(name):
    expected = {"y": True, "n": False, "i": name not in OPEN_BUT_NOT_JSON}[name[0]]
    assert is_json(PARSING[name]) is expected


def test_json_test_suite_transform_documents_are_json_unless_they_are_no_utf8():
    require_corpora()
    assert len(TRANSFORM) == 22
    assert {name for name, document in TRANSFORM.items() if not is_json(document)} == NOT_UTF8


def partial_facts() -> list[tuple[str, str, str]]:
    """Name, text and expected verdict of the facts that other projects' tests of partial JSON hold."""
    rows = []
    for file in sorted((CORPORA / "facts").glob("json_partial_*.json")) if CORPORA else ():
        for fact in json.loads(file.read_bytes()):
            if "strict_state" in fact and fact["name"] != "promplate-infinity":  # three texts in one, see below
                rows.append((fact["name"], fact["input"], fact["strict_state"]))
    return rows


PARTIAL = partial_facts()
#: ``strict_state`` of the facts as (after feed, after finish).
STRICT_STATES = {
    "incomplete": ("incomplete", "incomplete"),
    "complete": ("complete", "complete"),
    "complete-extendable": ("incomplete", "complete"),
    "invalid": ("malformed", "malformed"),
}


@pytest.mark.parametrize(("name", "text", "expected"), PARTIAL, ids=[row[0] for row in PARTIAL])
def test_partial_json_facts_are_judged_by_the_rfc(name, text, expected):
    scanner = fed(text)
    assert (scanner.state, scanner.finish()) == STRICT_STATES[expected]


def test_partial_json_facts_are_all_read():
    corpora = require_corpora()
    assert len(PARTIAL) == 13 + 43 + 60
    assert {state for _, _, state in PARTIAL} == set(STRICT_STATES)
    for fact in json.loads((corpora / "facts" / "json_partial_vercel_fixjson.json").read_bytes()):
        assert (finished(fact["input"]).state == "complete") is fact["expected"]["input_is_complete_json"]


def test_facts_given_as_bytes_are_incomplete_or_complete_or_no_utf8():
    corpora = require_corpora()
    rows = json.loads((corpora / "facts" / "json_partial_jiter.json").read_bytes())
    texts = {row["input_hex"]: strict_text(bytes.fromhex(row["input_hex"])) for row in rows if "input_hex" in row}
    verdicts = {code: None if text is None else finished(text).state for code, text in texts.items()}
    assert verdicts == {
        "22616263e282ac": "incomplete",
        "22616263e282": None,
        "22616263ff": None,
        "22616263ff646566": None,
        "22616263e282ac22": "complete",
    }


@pytest.mark.parametrize("name", ["pass1.json", "medium_response.json"])
def test_no_prefix_of_a_long_document_is_malformed(name):
    text = (require_corpora() / "pydantic+jiter" / "crates" / "jiter" / "benches" / name).read_text("utf-8").rstrip()
    scanner = JSONScanner()
    assert {scanner.feed(c) for c in text[:-1]} == {"incomplete"}
    assert scanner.feed(text[-1]) == "complete"


# -- where orjson and the RFC disagree --

LONE_SURROGATE = "orjson refuses escapes of lone surrogates; §8.2 calls their meaning unpredictable and the text JSON"
TOO_LARGE = "orjson refuses numbers beyond a float; §6 lets a reader limit range, and the text is JSON"
TOO_DEEP = "orjson stops at 1,024 levels; §9 lets a reader limit depth, and the text is JSON"
#: Documents that are JSON by the RFC and that orjson refuses. There are none that it takes against the RFC.
ORJSON_REFUSES = {
    '["\\ud800"]': LONE_SURROGATE,
    '["\\udc00\\ud800x"]': LONE_SURROGATE,
    '{"\\udfaa":0}': LONE_SURROGATE,
    "[1e400]": TOO_LARGE,
    "[-1e400,1e-400]": TOO_LARGE,
    "[" * 1100 + "]" * 1100: TOO_DEEP,
    "string_1_escaped_invalid_codepoint": LONE_SURROGATE,
    "string_2_escaped_invalid_codepoints": LONE_SURROGATE,
    "string_3_escaped_invalid_codepoints": LONE_SURROGATE,
    "i_number_huge_exp": TOO_LARGE,
    "i_number_neg_int_huge_exp": TOO_LARGE,
    "i_number_pos_double_huge_exp": TOO_LARGE,
    "i_number_real_neg_overflow": TOO_LARGE,
    "i_number_real_pos_overflow": TOO_LARGE,
    "i_object_key_lone_2nd_surrogate": LONE_SURROGATE,
    "i_string_1st_surrogate_but_2nd_missing": LONE_SURROGATE,
    "i_string_1st_valid_surrogate_2nd_invalid": LONE_SURROGATE,
    "i_string_incomplete_surrogate_and_escape_valid": LONE_SURROGATE,
    "i_string_incomplete_surrogate_pair": LONE_SURROGATE,
    "i_string_incomplete_surrogates_escape_valid": LONE_SURROGATE,
    "i_string_invalid_lonely_surrogate": LONE_SURROGATE,
    "i_string_invalid_surrogate": LONE_SURROGATE,
    "i_string_inverted_surrogates_U+1D11E": LONE_SURROGATE,
    "i_string_lone_second_surrogate": LONE_SURROGATE,
}


def test_orjson_disagrees_with_the_rfc_on_these_documents_and_no_others():
    documents = {text: text.encode() for text in EVERY_TEXT}
    documents |= {name: text.encode() for name, text, _ in PARTIAL} | TRANSFORM | PARSING
    refused = {name for name, document in documents.items() if is_json(document) and not orjson_accepts(document)}
    taken = {name for name, document in documents.items() if orjson_accepts(document) and not is_json(document)}
    assert taken == set()
    assert refused == ORJSON_REFUSES.keys() & documents.keys()


# -- generated text --

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
styles = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\r\n", " : ")]),
    }
)
texts = st.builds(lambda value, style: json.dumps(value, **style), values, styles)
objects = st.builds(
    lambda value, style: json.dumps(value, **style), st.dictionaries(st.text(max_size=5), values, max_size=4), styles
)
pieces = st.sampled_from(
    [*'{}[],:"\\/ \n\x00\x1f-+.eEu0159tfn\u00a0', "true", "null", "\\u00e9", "\\ud800", "NaN", "-Infinity"]
)


@st.composite
def mutations(draw):
    """A generated document with a few places cut out, doubled or replaced."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + draw(pieces | st.just("") | st.just(text[start:end] * 2)) + text[end:]
    return text


@st.composite
def cuttings(draw, source):
    text = draw(source)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]


def json_accepts(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


@given(cuttings(texts | mutations()))
@example(['{"a":"\\', "u12", 'g4"}'])
@example(["-", "0", "1"])
def test_no_cutting_changes_the_verdict(fragments):
    assert facts(finished(*fragments)) == facts(finished("".join(fragments)))


@given(texts)
def test_generated_json_is_complete(text):
    assert finished(text).state == "complete"


@given(mutations())
def test_mutated_json_is_complete_where_the_json_module_reads_it(text):
    assert (finished(text).state == "complete") is json_accepts(text)


@given(mutations())
def test_nothing_after_the_fault_matters_and_nothing_before_it_is_one(text):
    scanner = finished(text)
    if scanner.state == "malformed":
        assert fed(text[: scanner.position]).state != "malformed"
        assert fed(text[: scanner.position + 1]).state == "malformed"


def assert_incomplete_until_closed(text: str) -> None:
    brace = text.rstrip(" \t\r\n")
    scanner = JSONScanner()
    assert {scanner.feed(c) for c in brace[:-1]} == {"incomplete"}
    assert not is_object(scanner)
    assert scanner.feed(brace[-1]) == "complete"
    assert is_object(scanner)
    for end in range(0, len(brace), max(1, len(brace) // 300)):
        assert finished(brace[:end]).state == "incomplete"


@given(objects)
def test_a_generated_object_is_incomplete_until_its_closing_brace(text):
    assert_incomplete_until_closed(text)


@pytest.mark.parametrize("text", [text for text, root in COMPLETE if root == "object"])
def test_an_object_is_incomplete_until_its_closing_brace(text):
    assert_incomplete_until_closed(text)


def test_objects_of_json_test_suite_are_incomplete_until_their_closing_brace():
    require_corpora()
    documents = {**TRANSFORM, **{name: document for name, document in PARSING.items() if name.startswith("y_")}}
    found = [text for document in documents.values() if (text := strict_text(document)) and text.lstrip()[:1] == "{"]
    assert len(found) >= 5
    for text in found:
        assert_incomplete_until_closed(text)
